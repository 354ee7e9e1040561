#include "standin.h"

#include "cuda/driver.h"

#include <stdlib.h>
#include <string.h>

standin standin_state;
static char primary; // its address is the primary context
// Each thread has a stack of contexts of its own.
static _Thread_local CUcontext stack[64];
static _Thread_local long depth;
#define S               standin_state
// Relaxed, so that the account puts no order between threads that would hide a race of theirs. The new value.
#define ADD(counter, n) __atomic_add_fetch(&S.counter, n, __ATOMIC_RELAXED)

void standin_reset(void) {
  S = (standin){0};
  depth = 0;
}

bool standin_is_clean(void) {
  return !S.contexts && !S.streams && !S.events && !S.modules && !S.libraries && !S.allocations && !S.graphs &&
         !S.execs && !S.links && !S.depth;
}

// Counts the call and says whether it is to fail.
static CUresult enter(const char *name) {
  long call = ADD(calls, 1);
  if (!S.fail_at || (S.sticky ? call < S.fail_at : call != S.fail_at)) return CUDA_SUCCESS;
  if (!S.failed) S.failed = name;
  return S.code;
}
#define ENTER()                                                                                                        \
  do {                                                                                                                 \
    CUresult code = enter(__func__ + 2);                                                                               \
    if (code) return code;                                                                                             \
  } while (0)

static CUresult s_cuInit(unsigned flags) {
  ENTER();
  return CUDA_SUCCESS;
}
static CUresult s_cuDriverGetVersion(int *v) {
  ENTER();
  *v = S.version ? S.version : 13000;
  return CUDA_SUCCESS;
}
// Naming a failure is no call of its own.
static CUresult s_cuGetErrorName(CUresult code, const char **out) {
  switch (code) {
#define X(name, value)                                                                                                 \
  if (code == value && strncmp(#name, "CUDA_", 5) == 0) {                                                              \
    *out = #name;                                                                                                      \
    return CUDA_SUCCESS;                                                                                               \
  }
  default: KL_CUDA_CONSTANTS(X)
#undef X
  }
  *out = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}
static CUresult s_cuGetErrorString(CUresult code, const char **out) {
  *out = "the stand-in was told to fail";
  return CUDA_SUCCESS;
}
static int device_count(void) {
  return S.devices < 0 ? 0 : S.devices ? S.devices : 1;
}
static CUresult s_cuDeviceGetCount(int *n) {
  ENTER();
  *n = device_count();
  return CUDA_SUCCESS;
}
static CUresult s_cuDeviceGet(CUdevice *d, int i) {
  ENTER();
  if (i < 0 || i >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *d = i;
  return CUDA_SUCCESS;
}
static CUresult s_cuDeviceGetName(char *out, int n, CUdevice d) {
  ENTER();
  strncpy(out, "Stand-in", (size_t)n);
  return CUDA_SUCCESS;
}
static CUresult s_cuDeviceGetAttribute(int *out, CUdevice_attribute which, CUdevice d) {
  ENTER();
  *out = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
         : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                 : 1000 + which;
  return CUDA_SUCCESS;
}
static CUresult s_cuDeviceTotalMem(size_t *out, CUdevice d) {
  ENTER();
  *out = 1ull << 37;
  return CUDA_SUCCESS;
}
static CUresult s_cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d) {
  ENTER();
  ADD(contexts, 1);
  *out = (CUcontext)&primary;
  return CUDA_SUCCESS;
}
static CUresult s_cuDevicePrimaryCtxRelease(CUdevice d) {
  CUresult code = enter("cuDevicePrimaryCtxRelease");
  ADD(contexts, -1); // what is destroyed is gone, whatever the driver says of it
  return code;
}
static CUresult s_cuCtxGetCurrent(CUcontext *out) {
  ENTER();
  *out = depth ? stack[depth - 1] : NULL;
  return CUDA_SUCCESS;
}
static CUresult s_cuCtxPushCurrent(CUcontext c) {
  ENTER();
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  if (c == S.dead) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  stack[depth++] = c;
  ADD(depth, 1);
  return CUDA_SUCCESS;
}
static CUresult s_cuCtxPopCurrent(CUcontext *out) {
  CUresult code = enter("cuCtxPopCurrent");
  *out = NULL;
  if (depth) { // even a failing driver forgets it
    *out = stack[--depth];
    ADD(depth, -1);
  }
  return code;
}
static CUresult s_cuCtxGetDevice(CUdevice *d) {
  ENTER();
  *d = 0;
  return CUDA_SUCCESS;
}

static void write_log(unsigned n, const CUjit_option *options, void **values) {
  for (unsigned i = 0; i < n && S.log; i++)
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) strcpy(values[i], S.log);
}
// Modules and graphs that are ready go with their context; the last ones are remembered for that.
typedef struct mortal {
  void *p;
  long *alive; // how many of its kind
} mortal;
static mortal mortals[16];
static void remember(void *p, void *in_place_of, long *alive) {
  for (size_t i = 0; i < sizeof mortals / sizeof mortals[0]; i++) {
    void *expected = in_place_of;
    if (!__atomic_compare_exchange_n(&mortals[i].p, &expected, p, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
    __atomic_store_n(&mortals[i].alive, alive, __ATOMIC_RELAXED);
    return;
  }
}
void standin_destroy_context(CUcontext context) {
  S.dead = context;
  for (size_t i = 0; i < sizeof mortals / sizeof mortals[0]; i++) {
    if (!mortals[i].p) continue;
    --*mortals[i].alive;
    free(mortals[i].p);
    mortals[i].p = NULL;
  }
}
static CUresult take_image(const void *image) {
  bool cubin = memcmp(image, "\177ELF", 4) == 0;
  if (cubin && S.refuses_cubins) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (!cubin) ADD(compiled, 1);
  __atomic_store_n(&S.images[(ADD(loads, 1) - 1) % 2], image, __ATOMIC_RELAXED);
  return CUDA_SUCCESS;
}
static CUresult s_cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, CUjit_option *o, void **v) {
  CUresult code = enter("cuModuleLoadDataEx");
  if (!code) code = take_image(image);
  if (code) return write_log(n, o, v), code;
  ADD(modules, 1);
  *out = malloc(1);
  remember(*out, NULL, &S.modules);
  return CUDA_SUCCESS;
}
static CUresult s_cuModuleUnload(CUmodule m) {
  CUresult code = enter("cuModuleUnload");
  remember(NULL, m, NULL);
  free(m);
  ADD(modules, -1);
  return code;
}
static CUresult s_cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name) {
  ENTER();
  *out = (CUfunction)m;
  return CUDA_SUCCESS;
}
static CUresult s_cuLibraryLoadData(CUlibrary *out, const void *code_, CUjit_option *o, void **v, unsigned n,
                                    CUlibraryOption *lo, void **lv, unsigned ln) {
  CUresult code = enter("cuLibraryLoadData");
  if (!code) code = take_image(code_);
  if (code) return write_log(n, o, v), code;
  ADD(libraries, 1);
  *out = malloc(1);
  return CUDA_SUCCESS;
}
static CUresult s_cuLibraryUnload(CUlibrary l) {
  CUresult code = enter("cuLibraryUnload");
  free(l);
  ADD(libraries, -1);
  return code;
}
static CUresult s_cuLibraryGetKernel(CUkernel *out, CUlibrary l, const char *name) {
  ENTER();
  *out = (CUkernel)l;
  return CUDA_SUCCESS;
}
static CUresult s_cuKernelGetFunction(CUfunction *out, CUkernel k) {
  ENTER();
  *out = (CUfunction)k;
  return CUDA_SUCCESS;
}
static CUresult s_cuLinkCreate(unsigned n, CUjit_option *o, void **v, CUlinkState *out) {
  ENTER();
  ADD(links, 1);
  *out = malloc(1);
  return CUDA_SUCCESS;
}
static CUresult s_cuLinkAddData(CUlinkState l, CUjitInputType type, void *data, size_t size, const char *name,
                                unsigned n, CUjit_option *o, void **v) {
  ENTER();
  ADD(compiled, 1);
  return CUDA_SUCCESS;
}
// An ELF file without sections.
static CUresult s_cuLinkComplete(CUlinkState l, void **out, size_t *size) {
  ENTER();
  static char cubin[64] = "\177ELF\002";
  *out = cubin;
  *size = sizeof cubin;
  return CUDA_SUCCESS;
}
static CUresult s_cuLinkDestroy(CUlinkState l) {
  CUresult code = enter("cuLinkDestroy");
  free(l);
  ADD(links, -1);
  return code;
}
static CUresult s_cuFuncGetAttribute(int *out, CUfunction_attribute which, CUfunction f) {
  ENTER();
  *out = 10 + which;
  return CUDA_SUCCESS;
}
static CUresult s_cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int v) {
  ENTER();
  return CUDA_SUCCESS;
}
static CUresult s_cuFuncLoad(CUfunction f) {
  ENTER();
  return CUDA_SUCCESS;
}
static CUresult s_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **args, void **extra) {
  ENTER();
  ADD(launches, 1);
  if (S.launched) return S.launched(c, args), CUDA_SUCCESS;
  S.last = *c;
  S.function = f;
  for (int i = 0; i < 2; i++) memcpy(&S.arguments[i], args[i], 8);
  return CUDA_SUCCESS;
}
static CUresult s_cuStreamCreate(CUstream *out, unsigned flags) {
  ENTER();
  ADD(streams, 1);
  *out = malloc(1);
  return CUDA_SUCCESS;
}
static CUresult s_cuStreamDestroy(CUstream s) {
  CUresult code = enter("cuStreamDestroy");
  free(s);
  ADD(streams, -1);
  return code;
}
static CUresult s_cuStreamSynchronize(CUstream s) {
  ENTER();
  return CUDA_SUCCESS;
}
static CUresult s_cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *out) {
  ENTER();
  *out = S.capturing;
  return CUDA_SUCCESS;
}
static CUresult s_cuEventCreate(CUevent *out, unsigned flags) {
  ENTER();
  ADD(events, 1);
  *out = malloc(1);
  return CUDA_SUCCESS;
}
static CUresult s_cuEventDestroy(CUevent e) {
  CUresult code = enter("cuEventDestroy");
  free(e);
  ADD(events, -1);
  return code;
}
static CUresult s_cuEventRecord(CUevent e, CUstream s) {
  ENTER();
  return CUDA_SUCCESS;
}
static CUresult s_cuEventSynchronize(CUevent e) {
  ENTER();
  return CUDA_SUCCESS;
}
static CUresult s_cuEventElapsedTime(float *ms, CUevent a, CUevent b) {
  ENTER();
  *ms = 2.5f;
  return CUDA_SUCCESS;
}
static CUresult s_cuMemAlloc(CUdeviceptr *out, size_t n) {
  ENTER();
  void *p = NULL;
  if (posix_memalign(&p, 256, n)) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(p, 0, n); // what a loop goes by: no kernel will write it
  ADD(allocations, 1);
  *out = (uintptr_t)p;
  return CUDA_SUCCESS;
}
static CUresult s_cuMemFree(CUdeviceptr p) {
  CUresult code = enter("cuMemFree");
  free((void *)(uintptr_t)p);
  ADD(allocations, -1);
  return code;
}
static CUresult s_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream s) {
  ENTER();
  memcpy((void *)(uintptr_t)to, from, n);
  return CUDA_SUCCESS;
}
static CUresult s_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream s) {
  ENTER();
  memcpy(to, (const void *)(uintptr_t)from, n);
  return CUDA_SUCCESS;
}
static CUresult s_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
  ENTER();
  memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, n);
  return CUDA_SUCCESS;
}
static CUresult s_cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) {
  ENTER();
  memset((void *)(uintptr_t)to, v, n);
  return CUDA_SUCCESS;
}

// A graph is the number of its nodes, which all are launches; a node its number.
typedef struct graph {
  long nodes;
} graph;
static CUresult s_cuGraphCreate(CUgraph *out, unsigned flags) {
  ENTER();
  ADD(graphs, 1);
  *out = calloc(1, sizeof(graph));
  return CUDA_SUCCESS;
}
static CUresult s_cuGraphDestroy(CUgraph g) {
  CUresult code = enter("cuGraphDestroy");
  free(g);
  ADD(graphs, -1);
  return code;
}
static CUresult s_cuGraphAddKernelNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, size_t n,
                                       const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  ENTER();
  *out = (CUgraphNode)(intptr_t)++((graph *)g)->nodes;
  return CUDA_SUCCESS;
}
static CUresult s_cuGraphKernelNodeSetAttribute(CUgraphNode n, CUlaunchAttributeID id,
                                                const CUlaunchAttributeValue *v) {
  ENTER();
  return CUDA_SUCCESS;
}
static CUresult s_cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags) {
  ENTER();
  ADD(execs, 1);
  *out = calloc(1, sizeof(graph));
  *(graph *)*out = *(graph *)g;
  remember(*out, NULL, &S.execs);
  return CUDA_SUCCESS;
}
static CUresult s_cuGraphExecKernelNodeSetParams(CUgraphExec e, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
  ENTER();
  return CUDA_SUCCESS;
}
static CUresult s_cuGraphExecDestroy(CUgraphExec e) {
  CUresult code = enter("cuGraphExecDestroy");
  remember(NULL, e, NULL);
  free(e);
  ADD(execs, -1);
  return code;
}
static CUresult s_cuGraphLaunch(CUgraphExec e, CUstream s) {
  ENTER();
  ADD(launches, ((graph *)e)->nodes);
  return CUDA_SUCCESS;
}
static CUresult s_cuGraphConditionalHandleCreate(uint64_t *out, CUgraph g, CUcontext c, unsigned v, unsigned flags) {
  ENTER();
  return CUDA_ERROR_NOT_SUPPORTED;
}
static CUresult s_cuGraphAddNode(CUgraphNode *out, CUgraph g, const CUgraphNode *before, const CUgraphEdgeData *edges,
                                 size_t n, CUgraphNodeParams *p) {
  ENTER();
  return CUDA_ERROR_NOT_SUPPORTED;
}
static CUresult s_cuStreamGetCaptureInfo(CUstream s, CUstreamCaptureStatus *status, uint64_t *id, CUgraph *g,
                                         const CUgraphNode **before, size_t *n) {
  ENTER();
  static graph captured;
  *g = (CUgraph)&captured;
  *before = NULL;
  *n = 0;
  return CUDA_SUCCESS;
}
static CUresult s_cuStreamUpdateCaptureDependencies(CUstream s, CUgraphNode *nodes, size_t n, unsigned flags) {
  ENTER();
  return CUDA_ERROR_NOT_SUPPORTED;
}

void *standin_resolve(void *user, const char *name, int version) {
  if (S.missing && strcmp(S.missing, name) == 0) return NULL;
#define X(call, symbol, asked, need, signature)                                                                        \
  if (strcmp(name, #call) == 0) return need || (S.version ? S.version : 13000) >= asked ? (void *)s_##call : NULL;
  KL_CUDA_CALLS(X)
#undef X
  return NULL;
}
