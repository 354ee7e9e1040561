// kiln: artifacts as custom calls of XLA, by its foreign function interface (xla/ffi/api/c_api.h), on XLA's buffers
// and, on a GPU, XLA's stream. kiln needs nothing of XLA for it: the interface comes with each call.
#ifndef KILN_XLA_H
#define KILN_XLA_H

#include <kiln/cuda.h>
#include <kiln/run.h>

#ifdef __cplusplus
extern "C" {
#endif

// An artifact made ready for calls, from several threads at once.
typedef struct kiln_xla_kernel kiln_xla_kernel;

// For the host: of an artifact for it, `d` and `context` are NULL. For a GPU: `d` is the driver and `context` the
// CUcontext that XLA uses, its device's primary one (kiln_device_context); the code is loaded here, so that calls can
// be captured into graphs. The artifact may be destroyed before the kernel, driver and context may not. Errors:
// UNSUPPORTED (a run-time count or arguments by value, which XLA's calls do not have), and those of kiln_kernel_load
// and kiln_cuda_kernel_prepare.
KILN_API kiln_status kiln_xla_kernel_create(kiln_context *cx, const kiln_artifact *a, const kiln_driver *d,
                                            void *context, kiln_xla_kernel **out);
// Not before the last executable that calls it is gone.
KILN_API void kiln_xla_kernel_destroy(kiln_xla_kernel **k);

// Do its calls wait for what they have launched? So do those of loops and branches on a GPU that go by what kernels
// compute (KILN_STEP_WHILE, KILN_STEP_BRANCH): each time a value is copied, in the order of the stream, and the thread
// of the call waits for it. They need kiln_xla_call_waiting. Of NULL: false. Thread-safe.
KILN_API bool kiln_xla_kernel_waits(const kiln_xla_kernel *k);

// The handler to register with XLA, for the platforms "cpu" and "CUDA": an XLA_FFI_Handler, which takes an
// XLA_FFI_CallFrame * and returns an XLA_FFI_Error *, NULL if all is well. A call's operands are the artifact's
// flattened parameters, its results the flattened results, in the layouts of the manifest's slots; the attribute
// "kernel", an s64, is the address of the kiln_xla_kernel. What does not fit is an INVALID_ARGUMENT that names the
// slot, what fails in kiln an error with its findings. Thread-safe.
//
// XLA captures calls of this handler into its command buffers (XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE), by
// whose contract they enqueue the same work each time; a kernel whose calls wait is an INVALID_ARGUMENT.
KILN_API void *kiln_xla_call(void *call_frame);

// The same without that trait, for any kernel: XLA never captures its calls, and what is around them goes into command
// buffers before and behind. It is the way for kernels whose calls wait, because what XLA captures becomes a child of
// its graph, where CUDA allows no conditional nodes. Register it by a name of its own.
KILN_API void *kiln_xla_call_waiting(void *call_frame);

#ifdef __cplusplus
}
#endif
#endif
