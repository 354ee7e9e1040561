// The stand-in as a library that a program can load in the driver's place: the driver's own symbols. A program that
// ends with something alive, a module or memory, ends with status 70. Where STANDIN_TRACE is set, launches are told.
#include "support/standin.c"

#include <stdio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define X(name, symbol, version, need, signature)                                                                      \
  EXPORT extern CUresult symbol signature __attribute__((alias("s_" #name)));
KL_CUDA_CALLS(X)
#undef X

// Entry points that programs call beside those of kiln.
EXPORT CUresult cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status);
EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device);
EXPORT CUresult cuCtxDestroy_v2(CUcontext context);
EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image);
EXPORT CUresult cuLaunchKernel(CUfunction fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, CUstream stream, void **args, void **extra);

CUresult cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status) {
  *fn = standin_resolve(NULL, name, version);
  if (status) *status = *fn ? 0 : 1;
  return *fn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// A context of the caller's: made and at once current, as by the driver.
CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
  *out = malloc(1);
  ADD(contexts, 1);
  return s_cuCtxPushCurrent(*out);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  CUcontext current = NULL;
  s_cuCtxGetCurrent(&current);
  if (current == context) s_cuCtxPopCurrent(&current);
  free(context);
  ADD(contexts, -1);
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
  return s_cuModuleLoadDataEx(out, image, 0, NULL, NULL);
}

CUresult cuLaunchKernel(CUfunction fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void **args, void **extra) {
  if (getenv("STANDIN_TRACE")) fprintf(stderr, "launch: grid %u %u %u, block %u %u %u\n", gx, gy, gz, bx, by, bz);
  CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
  return s_cuLaunchKernelEx(&c, fn, args, extra);
}

__attribute__((destructor)) static void account(void) {
  if (standin_is_clean()) return;
  fprintf(stderr,
          "alive at the end: contexts %ld, streams %ld, events %ld, modules %ld, libraries %ld, allocations %ld, "
          "contexts pushed %ld\n",
          S.contexts, S.streams, S.events, S.modules, S.libraries, S.allocations, S.depth);
  _exit(70);
}
