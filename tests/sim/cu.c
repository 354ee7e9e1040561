#include "cu.h"

#include <dlfcn.h>

cu_table cu;

// Of a library, its entry point; the simulator's by name and version.
static void *entry_point(void *library, const char *name, const char *symbol, int since) {
  return library ? dlsym(library, symbol) : kl_sim_resolve(name, since);
}

void cu_open(void) {
  const char *path = getenv("KILN_TEST_CUDA");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  ck_assert_msg(!path || library, "%s", dlerror());
#define X(name, symbol, since, need, stream, params, args)                                                             \
  cu.symbol = (CUresult(*) params)entry_point(library, #name, #symbol, since);                                         \
  ck_assert_msg(library || cu.symbol, "%s", #symbol);
  KL_SIM_CALLS(X)
#undef X
}

void cu_begin(void) {
  CUcontext c;
  cu_open();
  WORKS(cu.cuInit(0));
  WORKS(cu.cuDevicePrimaryCtxRetain(&c, 0));
  WORKS(cu.cuCtxSetCurrent(c));
}

CUmodule cu_module(const char *ptx) {
  CUmodule m = NULL;
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)sizeof log};
  CUresult code = cu.cuModuleLoadDataEx(&m, ptx, 2, options, values);
  ck_assert_msg(code == CUDA_SUCCESS, "%d: %s", code, log);
  return m;
}

CUfunction cu_function(CUmodule m, const char *name) {
  CUfunction f = NULL;
  WORKS(cu.cuModuleGetFunction(&f, m, name));
  return f;
}

CUdeviceptr cu_memory(size_t bytes) {
  CUdeviceptr p = 0;
  WORKS(cu.cuMemAlloc_v2(&p, bytes));
  return p;
}

CUresult cu_run(CUfunction f, CUstream s, void **params) {
  return cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL);
}
