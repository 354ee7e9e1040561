// A program of the CUDA driver API that knows nothing of kiln: it opens a driver by name, loads PTX, launches a kernel
// on a stream, and once more from a graph that it captured. driver_api [LIBRARY]; libcuda.so.1 by default. With kiln's
// simulator in the driver's place it needs no GPU: driver_api libkilnsim.so.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// What cuda.h would declare.
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef uint64_t CUdeviceptr;

static const char ptx[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    "// y[i] = a * x[i] + y[i], for i < n\n"
    ".visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {\n"
    "  .reg .b64 %x, %y, %o; .reg .b32 %i, %n, %b, %t; .reg .f32 %a, %v, %w; .reg .pred %p;\n"
    "  ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.f32 %a, [a]; ld.param.u32 %n, [n];\n"
    "  mov.u32 %i, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %t, %ntid.x; mad.lo.u32 %i, %b, %t, %i;\n"
    "  setp.ge.u32 %p, %i, %n; @%p bra DONE;\n"
    "  mul.wide.u32 %o, %i, 4; add.u64 %x, %x, %o; add.u64 %y, %y, %o;\n"
    "  ld.global.f32 %v, [%x]; ld.global.f32 %w, [%y]; fma.rn.f32 %w, %a, %v, %w; st.global.f32 [%y], %w;\n"
    "DONE: ret;\n}\n";

static void *library;

static void *entry(const char *name) {
  void *p = dlsym(library, name);
  if (!p) {
    fprintf(stderr, "no entry point %s\n", name);
    exit(1);
  }
  return p;
}

// Calls an entry point by its name in the library; gives up where it fails.
#define CALL(name, signature, ...)                                                                                     \
  do {                                                                                                                 \
    int code = ((int(*) signature)entry(name))(__VA_ARGS__);                                                           \
    if (code) {                                                                                                        \
      fprintf(stderr, "%s failed: %d\n", name, code);                                                                  \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)

enum { N = 100003, BLOCK = 128 };

int main(int argc, char **argv) {
  static float x[N], y[N];
  char name[128];
  int device;
  CUcontext context;
  CUmodule module;
  CUfunction axpy;
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  CUdeviceptr dx, dy;
  float a = 3;
  uint32_t n = N;
  library = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;

  CALL("cuInit", (unsigned), 0);
  CALL("cuDeviceGet", (int *, int), &device, 0);
  CALL("cuDeviceGetName", (char *, int, int), name, sizeof name, device);
  CALL("cuDevicePrimaryCtxRetain", (CUcontext *, int), &context, device);
  CALL("cuCtxSetCurrent", (CUcontext), context);
  CALL("cuModuleLoadData", (CUmodule *, const void *), &module, ptx);
  CALL("cuModuleGetFunction", (CUfunction *, CUmodule, const char *), &axpy, module, "axpy");
  CALL("cuMemAlloc_v2", (CUdeviceptr *, size_t), &dx, sizeof x);
  CALL("cuMemAlloc_v2", (CUdeviceptr *, size_t), &dy, sizeof y);
  CALL("cuStreamCreate", (CUstream *, unsigned), &stream, 1);
  CALL("cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream), dx, x, sizeof x, stream);
  CALL("cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream), dy, y, sizeof y, stream);

  void *params[] = {&dx, &dy, &a, &n};
#define LAUNCH()                                                                                                       \
  CALL("cuLaunchKernel",                                                                                               \
       (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **), \
       axpy, (N + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, stream, params, NULL)
  LAUNCH();
  CALL("cuStreamBeginCapture_v2", (CUstream, int), stream, 0);
  LAUNCH();
  LAUNCH();
  CALL("cuStreamEndCapture", (CUstream, CUgraph *), stream, &graph);
  CALL("cuGraphInstantiateWithFlags", (CUgraphExec *, CUgraph, unsigned long long), &exec, graph, 0);
  CALL("cuGraphLaunch", (CUgraphExec, CUstream), exec, stream);
  CALL("cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream), y, dy, sizeof y, stream);
  CALL("cuStreamSynchronize", (CUstream), stream);

  for (int i = 0; i < N; i++)
    if (y[i] != 3 * a * x[i] + 1) {
      fprintf(stderr, "element %d: expected %g, found %g\n", i, (double)(3 * a * x[i] + 1), (double)y[i]);
      return 1;
    }
  printf("%s: %d elements are right\n", name, N);
  CALL("cuGraphExecDestroy", (CUgraphExec), exec);
  CALL("cuGraphDestroy", (CUgraph), graph);
  CALL("cuDevicePrimaryCtxRelease_v2", (int), device);
  return 0;
}
