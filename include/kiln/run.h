// kiln: running artifacts on the host.
#ifndef KILN_RUN_H
#define KILN_RUN_H

#include <kiln/compile.h>

#ifdef __cplusplus
extern "C" {
#endif

// An artifact of target "host", loaded into this process. Runs from several threads at once.
typedef struct kiln_kernel kiln_kernel;

// The kernel is the caller's; the artifact may be destroyed before it. Errors: INVALID (the artifact is for another
// target), UNSUPPORTED (this CPU lacks FMA), INTERNAL.
KILN_API kiln_status kiln_kernel_load(kiln_context *cx, const kiln_artifact *a, kiln_kernel **out);
KILN_API void kiln_kernel_destroy(kiln_kernel **k);

typedef struct kiln_run_params {
  size_t struct_size;
  uint32_t threads; // 0: all cores
  int64_t count;    // of elements, where the artifact takes it (kiln_manifest), else 0
  // Called behind each launch, with its number in the manifest and how long it took; in a loop each time. May be NULL.
  void (*launched)(void *user, size_t launch, double seconds);
  void *user;
} kiln_run_params;

// Runs all launches and returns when they are done. parameters[i], results[i]: the buffer of each slot, as the manifest
// describes it; results overlap nothing but their alias. The floating-point environment is set for the kernel and
// restored. Errors: INVALID (a buffer that is missing, misaligned or overlaps, by slot and address; a count), MEMORY.
KILN_API kiln_status kiln_kernel_run(kiln_context *cx, const kiln_kernel *k, const void *const *parameters,
                                     void *const *results, const kiln_run_params *params);

#ifdef __cplusplus
}
#endif
#endif
