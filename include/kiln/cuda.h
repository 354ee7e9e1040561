// kiln: artifacts on NVIDIA GPUs, through the CUDA driver.
//
// The driver is loaded at run time; nothing here needs a toolkit or links libcuda. Contexts, streams and memory are the
// caller's: a kernel is an artifact loaded into one CUcontext. Handles of the driver are passed as they are: a
// CUcontext or CUstream as void *, a CUdeviceptr as uint64_t.
//
// Every failure of the driver becomes KILN_E_DEVICE with a message that names the call, the code and what can be done.
// After one that ruins a context (an illegal address in a kernel, say) every later use of it says that it is lost.
//
// CUDA does not survive fork. A child of a process that has not used the driver yet may use what the parent has opened;
// after the first use (`initialize`, or a call for a device, a context, a kernel) every use in a child is refused, with
// DEVICE. What is destroyed there leaves alone what the parent has.
#ifndef KILN_CUDA_H
#define KILN_CUDA_H

#include <kiln/compile.h>

#ifdef __cplusplus
extern "C" {
#endif

// --- drivers ------------------------------------------------------------------------------------------------------

// A driver's table of entry points. Immutable once open; shared by all threads.
typedef struct kiln_driver kiln_driver;

typedef struct kiln_driver_params {
  size_t struct_size;
  const char *library; // NULL: "libcuda.so.1"
  bool initialize;     // call cuInit; not wanted in a process that does so itself
  // Where entry points come from, in place of a library (a simulator, a stand-in for tests): the address of the entry
  // point that cuGetProcAddress would give for this name and version (12040 is 12.4), or NULL.
  void *(*resolve)(void *user, const char *name, int version);
  void *user;
} kiln_driver_params;

// Opens a driver; `params` may be NULL. The driver is the caller's and outlives everything made with it; the library
// stays loaded. Errors: DEVICE (no driver, one that is too old or lacks an entry point).
KILN_API kiln_status kiln_driver_open(kiln_context *cx, const kiln_driver_params *params, kiln_driver **out);
KILN_API void kiln_driver_close(kiln_driver **d);
// Of CUDA, as the driver reports it: 12080 for 12.8.
KILN_API int kiln_driver_version(const kiln_driver *d);

typedef struct kiln_device_info {
  size_t struct_size;
  char name[128];
  char target[16]; // for kiln_compile_params, e.g. "sm_90"
  uint32_t sm;     // 90
  uint32_t multiprocessors;
  uint32_t threads;      // per multiprocessor
  uint32_t registers;    // per multiprocessor, of 32 bits
  uint32_t shared_bytes; // per multiprocessor
  uint32_t block_shared; // per block without asking
  uint32_t block_shared_optin;
  uint32_t l2_bytes;
  uint64_t memory_bytes;
  double bytes_per_second; // of device memory, nominal; 0 where the driver does not tell its clock
} kiln_device_info;

KILN_API kiln_status kiln_device_count(kiln_context *cx, const kiln_driver *d, uint32_t *count);
KILN_API kiln_status kiln_device_describe(kiln_context *cx, const kiln_driver *d, uint32_t device,
                                          kiln_device_info *out);

// --- kernels ------------------------------------------------------------------------------------------------------

// An artifact for one CUcontext: all its launches, in order. Launches from several threads at once are allowed once it
// is prepared.
typedef struct kiln_cuda_kernel kiln_cuda_kernel;

// `context`: the CUcontext to load into, NULL for the thread's current one. It must outlive the kernel. The artifact
// may be destroyed before the kernel. Nothing is loaded yet. Errors: INVALID (an artifact for the host), DEVICE.
KILN_API kiln_status kiln_cuda_kernel_create(kiln_context *cx, const kiln_driver *d, const kiln_artifact *a,
                                             void *context, kiln_cuda_kernel **out);
KILN_API void kiln_cuda_kernel_destroy(kiln_cuda_kernel **k);

// Loads the code and makes it ready to launch; the driver compiles PTX here. May be called again, also after a failure.
// Errors: DEVICE, with the log of the driver's compiler.
KILN_API kiln_status kiln_cuda_kernel_prepare(kiln_context *cx, kiln_cuda_kernel *k);

// The same with machine code in place of the artifact's PTX: what ptxas, nvPTXCompiler or nvJitLink has made of that
// for this device. The driver's compiler is not needed then, nor a driver that reads the PTX. Nothing is kept of
// `cubin`. What is prepared already stays as it is. Errors: INVALID (no whole cubin; an artifact with kernels for less
// alignment), DEVICE (one for other devices or newer drivers, or of another artifact).
KILN_API kiln_status kiln_cuda_kernel_prepare_cubin(kiln_context *cx, kiln_cuda_kernel *k, const void *cubin,
                                                    size_t size);

// Machine code of one artifact.
typedef struct kiln_cubin {
  const void *bytes;
  size_t size;
} kiln_cubin;

// The same for any artifact: cubins[0] is its own, and cubins[1] that of its kernels for less alignment
// (kiln_artifact_less), where it has such. Errors: as above; INVALID (another number of them).
KILN_API kiln_status kiln_cuda_kernel_prepare_cubins(kiln_context *cx, kiln_cuda_kernel *k, const kiln_cubin *cubins,
                                                     size_t count);

// Least driver that takes this machine code on the devices that it is for, as kiln_driver_version gives it: the first
// one of the CUDA release, 12000 of any 12.x, whose tools have made it. 0: not known; no whole cubin, say.
KILN_API int kiln_cubin_driver_version(const void *cubin, size_t size);

// What an assembler of the caller's has made. All that it points to is the assembler's, and is looked at until
// kiln_artifact_assemble returns.
typedef struct kiln_assembly {
  size_t struct_size;
  const void *cubin;
  size_t size;
  const char *log; // what it has to say where it fails; may be NULL
} kiln_assembly;

typedef struct kiln_assemble_params {
  size_t struct_size;
  const char *library; // NVIDIA's nvJitLink; NULL: libnvJitLink.so.13, else libnvJitLink.so.12
  // Not NULL: an assembler of the caller's, and no library (nvPTXCompiler, which toolkits have as a static library
  // alone, say). Called once, on this thread, with `size` bytes of PTX, behind which is a NUL, and the target to make
  // machine code for ("sm_90a"). True: it is in `*out`, which has nothing but its size before.
  bool (*assemble)(void *user, const char *target, const char *ptx, size_t size, kiln_assembly *out);
  void *user;
} kiln_assemble_params;

// Machine code of the artifact's PTX for the artifact's target, by an assembler of the caller's, or by nvJitLink, a
// library of CUDA toolkits, which is loaded here and stays so. Neither a driver nor a device is needed. `params` may be
// NULL. The bytes are the caller's: free with kiln_artifact_bytes_free (kiln/cache.h). That of kernels for less
// alignment is made of kiln_artifact_less. Thread-safe, as far as the assembler is. Errors: INVALID (an artifact for
// the host), UNSUPPORTED (no such library), DEVICE (what the assembler says of the code; no whole cubin), MEMORY.
KILN_API kiln_status kiln_artifact_assemble(kiln_context *cx, const kiln_artifact *a,
                                            const kiln_assemble_params *params, void **cubin, size_t *size);

typedef struct kiln_cuda_resources {
  size_t struct_size;
  uint32_t registers;   // per thread
  uint32_t local_bytes; // per thread: spills and stack
  uint32_t shared_bytes;
} kiln_cuda_resources;
// What the driver's compiler made of launch i. Prepares.
KILN_API kiln_status kiln_cuda_kernel_resources(kiln_context *cx, kiln_cuda_kernel *k, size_t i,
                                                kiln_cuda_resources *out);

typedef struct kiln_cuda_launch_params {
  size_t struct_size;
  void *stream;               // CUstream; NULL: the default stream
  const uint64_t *parameters; // CUdeviceptr of each flattened parameter
  const uint64_t *results;    // CUdeviceptr of each flattened result
  uint64_t scratch;           // CUdeviceptr of the manifest's scratch memory; 0 where none is needed
  int64_t count;              // of elements, where the artifact takes it, else 0
  // Called behind each launch, with its number in the manifest and how long it took, from its call to its end, which is
  // waited for: not on a stream that is being captured. In a loop each time. May be NULL.
  void (*launched)(void *user, size_t launch, double seconds);
  void *user;
} kiln_cuda_launch_params;

// Enqueues all launches on the stream. parameters[i], results[i]: the buffer of each slot, or its value, as the
// manifest describes it; results overlap nothing but their alias. Prepares if need be, but not while the stream is
// being captured. A stream that is being captured takes loops, too, as conditional nodes, where the driver has them.
// Errors: INVALID (a buffer that is missing, misaligned or overlaps, by slot and address; a count; a capture, and the
// kernel is not prepared, or `launched` is wanted), DEVICE, UNSUPPORTED (a capture, a loop, and a driver before CUDA
// 12.3).
KILN_API kiln_status kiln_cuda_kernel_launch(kiln_context *cx, kiln_cuda_kernel *k,
                                             const kiln_cuda_launch_params *params);

// Makes scratch memory what the first launch needs, in the order of the stream: its zeros and its constants (of the
// manifest), which later launches keep as they are. Where the stream is being captured, the kernel has to outlive the
// graph, which copies the constants each time. Nothing to do where there is neither. Errors: INVALID (the address),
// DEVICE.
KILN_API kiln_status kiln_cuda_kernel_fill_scratch(kiln_context *cx, kiln_cuda_kernel *k, void *stream,
                                                   uint64_t scratch);

// --- frozen launches ----------------------------------------------------------------------------------------------

// All launches of a kernel with their arguments, checked and laid out as the driver takes them: what is left to do is a
// call of the driver for each (benchmarks/README.md has what that costs). Launching changes nothing in it, so any
// number of threads may do so at once, each with a kiln_context and a stream of its own, as far as the buffers allow;
// binding and destroying is for one thread alone while nobody launches.
typedef struct kiln_cuda_frozen kiln_cuda_frozen;

// Prepares the kernel, which must outlive what is frozen. Of the params the stream does not count, and `launched` is
// NULL. Errors: those of kiln_cuda_kernel_prepare and of kiln_cuda_kernel_launch.
KILN_API kiln_status kiln_cuda_frozen_create(kiln_context *cx, kiln_cuda_kernel *k,
                                             const kiln_cuda_launch_params *params, kiln_cuda_frozen **out);
// Before the kernel.
KILN_API void kiln_cuda_frozen_destroy(kiln_cuda_frozen **f);
// Other buffers, another count. After an error it is as before.
KILN_API kiln_status kiln_cuda_frozen_bind(kiln_context *cx, kiln_cuda_frozen *f,
                                           const kiln_cuda_launch_params *params);
// Enqueues all launches on the stream, which may be being captured. Errors: DEVICE; UNSUPPORTED (see
// kiln_cuda_kernel_launch).
KILN_API kiln_status kiln_cuda_frozen_launch(kiln_context *cx, const kiln_cuda_frozen *f, void *stream);

// --- graphs -------------------------------------------------------------------------------------------------------

// All launches of a kernel as a CUDA graph: one call of the driver for all of them. A loop is a conditional node, whose
// condition nobody waits for. Serves one thread at a time; a graph that still runs when it is launched again runs
// behind itself.
typedef struct kiln_cuda_graph kiln_cuda_graph;

// Prepares the kernel, which must outlive the graph. Of the params the stream does not count, and `launched` is NULL.
// Errors: those of kiln_cuda_kernel_prepare and of kiln_cuda_kernel_launch; UNSUPPORTED (a loop, with a driver before
// CUDA 12.3).
KILN_API kiln_status kiln_cuda_graph_create(kiln_context *cx, kiln_cuda_kernel *k,
                                            const kiln_cuda_launch_params *params, kiln_cuda_graph **out);
// Before the kernel. It must not be running.
KILN_API void kiln_cuda_graph_destroy(kiln_cuda_graph **g);
// Other buffers, another count, for launches from now on. The nodes are changed where the launches are the same, else
// the graph is built again, as it always is with loops. After INVALID it is as before; after DEVICE it cannot be
// launched until an update works.
KILN_API kiln_status kiln_cuda_graph_update(kiln_context *cx, kiln_cuda_graph *g,
                                            const kiln_cuda_launch_params *params);
// Errors: INVALID (the last update has failed), DEVICE.
KILN_API kiln_status kiln_cuda_graph_launch(kiln_context *cx, kiln_cuda_graph *g, void *stream);
// The CUgraph, to be a child of another, say. It is the kiln_cuda_graph's, and may be another one after an update.
KILN_API void *kiln_cuda_graph_handle(const kiln_cuda_graph *g);

// --- a device of one's own ----------------------------------------------------------------------------------------

// For programs without a runtime of their own: a device's primary context, one stream, memory, timing. Serves one
// thread at a time.
typedef struct kiln_device kiln_device;

KILN_API kiln_status kiln_device_open(kiln_context *cx, const kiln_driver *d, uint32_t device, kiln_device **out);
KILN_API void kiln_device_close(kiln_device **dev);
KILN_API void *kiln_device_context(const kiln_device *dev); // CUcontext
KILN_API void *kiln_device_stream(const kiln_device *dev);  // CUstream
// Zero bytes give an address that must not be used.
KILN_API kiln_status kiln_device_alloc(kiln_context *cx, kiln_device *dev, uint64_t bytes, uint64_t *address);
KILN_API void kiln_device_free(kiln_device *dev, uint64_t address);
// In the order of the stream. Upload and download return when the host's memory may be used again.
KILN_API kiln_status kiln_device_upload(kiln_context *cx, kiln_device *dev, uint64_t to, const void *from,
                                        uint64_t bytes);
KILN_API kiln_status kiln_device_download(kiln_context *cx, kiln_device *dev, void *to, uint64_t from, uint64_t bytes);
KILN_API kiln_status kiln_device_copy(kiln_context *cx, kiln_device *dev, uint64_t to, uint64_t from, uint64_t bytes);
KILN_API kiln_status kiln_device_fill(kiln_context *cx, kiln_device *dev, uint64_t to, uint8_t value, uint64_t bytes);
KILN_API kiln_status kiln_device_synchronize(kiln_context *cx, kiln_device *dev);
// Time on the device between two points of the stream, in seconds; kiln_device_elapsed waits for the second.
KILN_API kiln_status kiln_device_mark_begin(kiln_context *cx, kiln_device *dev);
KILN_API kiln_status kiln_device_mark_end(kiln_context *cx, kiln_device *dev);
KILN_API kiln_status kiln_device_elapsed(kiln_context *cx, kiln_device *dev, double *seconds);

#ifdef __cplusplus
}
#endif
#endif
