// Kernels as the files of src/jit/cuda see them: what is loaded, and launches with all that the driver asks for.
#ifndef KL_CUDA_KERNEL_H
#define KL_CUDA_KERNEL_H

#include "jit/cuda/cuda.h"
#include "jit/jit.h"

#include <pthread.h>

enum { KL_LOG_BYTES = 8192 };

struct kiln_cuda_kernel {
  kl_ctx *cx; // its own
  kl_arena arena;
  const kiln_driver *d;
  CUcontext context;
  kl_cuda_fate fate;
  kiln_cuda_kernel *less; // for buffers of less alignment; or NULL
  kiln_artifact *a;       // shared with whoever gave it, for its code and its constants
  kl_program program;
  pthread_mutex_t loading;
  atomic_bool ready;
  CUlibrary library; // where the driver has libraries, else a module
  CUmodule module;
  CUfunction *fn;
  CUmodule conditions; // of artifacts with loops: what sets a condition in a graph
  CUfunction set_condition;
  CUresult no_conditions;       // why it could not be loaded; 0: it could
  char error_log[KL_LOG_BYTES]; // the driver may write to it as long as the code is loaded
};

// --- machine code (cubin.c) -----------------------------------------------------------------------------------------

// Is all of the ELF file there that its head speaks of?
bool kl_cubin_is_whole(const void *cubin, size_t size);

// --- launches with their arguments (launch.c) -----------------------------------------------------------------------

// One of the artifact's launches, as the driver takes it. No blocks: nothing to launch.
typedef struct kl_shot {
  CUlaunchConfig config; // but for the stream
  CUlaunchAttribute attributes[2];
  void **args;
} kl_shot;

// All of them, for the buffers of one call. Who launches changes nothing of it.
typedef struct kl_volley {
  kiln_cuda_kernel *k;
  uint64_t *at; // by slot
  int64_t count;
  uint64_t scratch;
  kl_shot *shots; // by launch
  uint32_t *list; // without steps: the launches that there are, in order
  size_t listed;
  void *memory; // of all that
  size_t bytes;
} kl_volley;

void kl_volley_free(kl_ctx *memory, kl_volley *v);
// Checks the buffers, which are then the ones that launches are for. After a failure it is as before.
// They are of that kernel, or of the one for buffers of less alignment behind it; memory is from a context that is
// always the same. An empty one becomes one.
kiln_status kl_volley_set(kl_ctx *cx, kl_ctx *memory, kiln_cuda_kernel *k, const kiln_cuda_launch_params *p,
                          kl_volley *v);
// Loads what is not loaded, unless the stream is being captured. The kernel's context is current.
kiln_status kl_prepare_unless_capturing(kl_ctx *cx, kiln_cuda_kernel *k, CUstream stream);
// What is bound for several launches tells of none: expects no `launched`.
kiln_status kl_check_silent(kl_ctx *cx, const kiln_cuda_launch_params *p, const char *what);

// --- graphs (graph.c)
// -------------------------------------------------------------------------------------------------

// Loads what artifacts with loops need in graphs, where the driver has it; what fails is told where it is wanted.
void kl_conditions_load(kiln_cuda_kernel *k);
// Adds all that there is to do to the graph that the stream is being captured into.
kiln_status kl_capture_steps(kl_ctx *cx, const kl_volley *v, CUstream stream);

#endif
