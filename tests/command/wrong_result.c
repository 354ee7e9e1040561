// Preloaded into the command: a device that gets one bit of its first result wrong, so that --check has something to
// find.
#include <dlfcn.h>
#include <kiln/run.h>
#include <stdint.h>

typedef kiln_status run_fn(kiln_context *, const kiln_kernel *, const void *const *, void *const *,
                           const kiln_run_params *);

kiln_status kiln_kernel_run(kiln_context *cx, const kiln_kernel *k, const void *const *parameters, void *const *results,
                            const kiln_run_params *params) {
  run_fn *real = (run_fn *)(uintptr_t)dlsym(RTLD_NEXT, "kiln_kernel_run");
  kiln_status s = real ? real(cx, k, parameters, results, params) : KILN_E_INTERNAL;
  if (s == KILN_OK) *(uint8_t *)results[0] ^= 1;
  return s;
}
