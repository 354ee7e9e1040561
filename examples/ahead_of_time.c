// A program with a kernel compiled ahead of time, and no kiln in it:
//
//   kiln compile examples/axpy.hlo --target sm_80,sm_90,sm_100 --max-count 1073741824 --alias 2=0 --emit header -o
//   axpy.h cc ahead_of_time.c -o ahead_of_time -ldl
//   ./ahead_of_time [LIBRARY]        the CUDA driver, libcuda.so.1 if none is named
//
// axpy.h declares axpy_load, which loads the code for the device that is there, axpy_launch and axpy_unload. They take
// the driver's entry points as a table, so that this program links on a machine without a driver.
#define axpy_IMPLEMENTATION
#include "axpy.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { N = 1000000 };

// What this program itself wants of the driver.
static struct {
  int (*cuInit)(unsigned);
  int (*cuDeviceGet)(int *, int);
  int (*cuDevicePrimaryCtxRetain)(void **, int);
  int (*cuDevicePrimaryCtxRelease)(int);
  int (*cuCtxPushCurrent)(void *);
  int (*cuCtxPopCurrent)(void **);
  int (*cuMemAlloc)(uint64_t *, size_t);
  int (*cuMemFree)(uint64_t);
  int (*cuMemcpyHtoDAsync)(uint64_t, const void *, size_t, void *);
  int (*cuMemcpyDtoHAsync)(void *, uint64_t, size_t, void *);
  int (*cuStreamSynchronize)(void *);
} cuda;
static kiln_entry_points entry_points;

static int failed(const char *what, int code) {
  if (code) fprintf(stderr, "ahead_of_time: %s gave %d\n", what, code);
  return code;
}
#define TRY(call) (failed(#call, call) != 0)

static int find(void *library, const char *symbol, void *entry) {
  void *at = dlsym(library, symbol);
  if (!at) fprintf(stderr, "ahead_of_time: the driver has no %s\n", symbol);
  memcpy(entry, &at, sizeof at); // ISO C has no cast from void * to a function
  return at != NULL;
}

static int open_driver(const char *name) {
  void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!lib) fprintf(stderr, "ahead_of_time: %s\n", dlerror());
  return lib && find(lib, "cuInit", &cuda.cuInit) && find(lib, "cuDeviceGet", &cuda.cuDeviceGet) &&
         find(lib, "cuDevicePrimaryCtxRetain", &cuda.cuDevicePrimaryCtxRetain) &&
         find(lib, "cuDevicePrimaryCtxRelease_v2", &cuda.cuDevicePrimaryCtxRelease) &&
         find(lib, "cuCtxPushCurrent_v2", &cuda.cuCtxPushCurrent) &&
         find(lib, "cuCtxPopCurrent_v2", &cuda.cuCtxPopCurrent) && find(lib, "cuMemAlloc_v2", &cuda.cuMemAlloc) &&
         find(lib, "cuMemFree_v2", &cuda.cuMemFree) && find(lib, "cuMemcpyHtoDAsync_v2", &cuda.cuMemcpyHtoDAsync) &&
         find(lib, "cuMemcpyDtoHAsync_v2", &cuda.cuMemcpyDtoHAsync) &&
         find(lib, "cuStreamSynchronize", &cuda.cuStreamSynchronize) &&
         find(lib, "cuModuleLoadData", &entry_points.cuModuleLoadData) &&
         find(lib, "cuModuleUnload", &entry_points.cuModuleUnload) &&
         find(lib, "cuModuleGetFunction", &entry_points.cuModuleGetFunction) &&
         find(lib, "cuFuncSetAttribute", &entry_points.cuFuncSetAttribute) &&
         find(lib, "cuLaunchKernel", &entry_points.cuLaunchKernel) &&
         find(lib, "cuCtxGetDevice", &entry_points.cuCtxGetDevice) &&
         find(lib, "cuDeviceGetAttribute", &entry_points.cuDeviceGetAttribute);
}

// y := 2*x + y with x = i, y = 1 for the first `n` elements; the others stay 1.
static int run(const axpy_kernels *kernel, uint64_t memory, int n) {
  static float x[N], y[N];
  const float a = 2;
  uint64_t at_a = memory, at_x = memory + 256, at_y = at_x + sizeof x;
  for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;
  if (TRY(cuda.cuMemcpyHtoDAsync(at_a, &a, sizeof a, NULL)) || TRY(cuda.cuMemcpyHtoDAsync(at_x, x, sizeof x, NULL)) ||
      TRY(cuda.cuMemcpyHtoDAsync(at_y, y, sizeof y, NULL)))
    return 1;
  if (TRY(axpy_launch(&entry_points, kernel, NULL, at_a, at_x, at_y, at_y, n))) return 1;
  if (TRY(cuda.cuMemcpyDtoHAsync(y, at_y, sizeof y, NULL)) || TRY(cuda.cuStreamSynchronize(NULL))) return 1;
  int right = 0;
  for (int i = 0; i < N; i++) right += y[i] == (i < n ? 2 * (float)i + 1 : 1);
  printf("%d elements: y[1] = %g, %d of %d are right\n", n, (double)y[1], right, N);
  return 0;
}

static int with_memory(void) {
  axpy_kernels kernel;
  uint64_t memory = 0;
  int bad = TRY(axpy_load(&entry_points, &kernel));
  if (bad) return 1;
  bad = TRY(cuda.cuMemAlloc(&memory, 256 + 2 * N * sizeof(float)));
  if (!bad) bad = run(&kernel, memory, N) || run(&kernel, memory, 777);
  // The launch function refuses what the kernel cannot do.
  if (!bad)
    printf("misaligned: %d\n", axpy_launch(&entry_points, &kernel, NULL, memory, memory + 4, memory, memory, 1));
  if (memory) cuda.cuMemFree(memory);
  axpy_unload(&entry_points, &kernel);
  return bad;
}

int main(int argc, char **argv) {
  int device = 0;
  void *context = NULL;
  if (!open_driver(argc > 1 ? argv[1] : "libcuda.so.1")) return 1;
  if (TRY(cuda.cuInit(0)) || TRY(cuda.cuDeviceGet(&device, 0)) || TRY(cuda.cuDevicePrimaryCtxRetain(&context, device)))
    return 1;
  int bad = TRY(cuda.cuCtxPushCurrent(context));
  if (!bad) {
    bad = with_memory();
    cuda.cuCtxPopCurrent(&context);
  }
  cuda.cuDevicePrimaryCtxRelease(device);
  return bad;
}
