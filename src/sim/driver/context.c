// Contexts, and each thread's stack of current ones.

#include "sim/driver/impl.h"

enum { MOST_DEPTH = 128 };

static _Thread_local struct {
  uint64_t stack[MOST_DEPTH]; // handles; 0: none, pushed by no one but cuCtxSetCurrent
  unsigned depth;
} thread;

static void *as_handle(uint64_t h) {
  return (void *)(uintptr_t)h;
}

static uint64_t top(void) {
  return thread.depth ? thread.stack[thread.depth - 1] : 0;
}

kl_cu_context *kl_current(void) {
  return kl_object_find(as_handle(top()), KL_CONTEXT);
}

bool kl_current_is_stale(void) {
  return top() && !kl_current();
}

CUresult kl_context_check(CUcontext handle, kl_cu_context **out) {
  *out = kl_object_find(handle, KL_CONTEXT);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// --- life -----------------------------------------------------------------------------------------------------------

enum {
  FLAGS = CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD | CU_CTX_SCHED_BLOCKING_SYNC | CU_CTX_MAP_HOST |
          CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_SYNC_MEMOPS
};

static CUresult make(CUdevice device, unsigned flags, kl_cu_context **out) {
  *out = kl_object_new(KL_CONTEXT, sizeof **out, NULL);
  kl_cu_context *c = *out;
  if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
  c->device = device;
  c->flags = flags;
  c->api_version = 3020;
  c->limits[CU_LIMIT_STACK_SIZE] = 1024;
  c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
  c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  c->legacy = kl_stream_new(c, 0, 0);
  if (c->legacy) {
    c->legacy->is_default = true;
    return CUDA_SUCCESS;
  }
  kl_object_delete(c, sizeof *c);
  *out = NULL;
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// What was made in the context goes with it.
void kl_context_delete(kl_cu_context *c) {
  size_t at = 0;
  for (kl_cu_stream *s; (s = kl_object_next(KL_STREAM, &at));)
    if (s->o.context == c) kl_stream_delete(s);
  at = 0;
  for (kl_cu_event *e; (e = kl_object_next(KL_EVENT, &at));)
    if (e->o.context == c) kl_event_delete(e);
  at = 0;
  for (kl_cu_module *m; (m = kl_object_next(KL_MODULE, &at));)
    if (m->o.context == c) kl_module_unload(m);
  kl_release_context_memory(c);
  kl_object_delete(c, sizeof *c);
}

static bool is_flags(unsigned flags) {
  unsigned schedule = flags & 7;
  return (flags & ~(unsigned)FLAGS) == 0 && schedule != 3 && schedule < 5;
}

static CUresult push(uint64_t handle) {
  if (thread.depth == MOST_DEPTH) return CUDA_ERROR_OUT_OF_MEMORY;
  thread.stack[thread.depth++] = handle;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
  kl_cu_device *d;
  kl_cu_context *c;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  if (!is_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  if (thread.depth == MOST_DEPTH) return CUDA_ERROR_OUT_OF_MEMORY;
  KL_RESULT(make(device, flags, &c));
  push(c->o.handle);
  *out = KL_HANDLE(CUcontext, c);
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int n, unsigned flags, CUdevice device) {
  if (n < 0 || (n > 0 && !affinity)) return CUDA_ERROR_INVALID_VALUE;
  if (n > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return kl_cuCtxCreate_v2(out, flags, device);
}

CUresult kl_cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice device) {
  if (params && params->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
  return kl_cuCtxCreate_v3(out, params ? params->execAffinityParams : NULL, params ? params->numExecAffinityParams : 0,
                           flags, device);
}

CUresult kl_cuCtxDestroy_v2(CUcontext handle) {
  kl_cu_context *c;
  KL_RESULT(kl_context_check(handle, &c));
  if (c->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (top() == c->o.handle) thread.depth--;
  kl_context_delete(c);
  return CUDA_SUCCESS;
}

// --- primary contexts -----------------------------------------------------------------------------------------------

CUresult kl_cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  kl_cu_device *d;
  KL_GIVEN(out);
  KL_RESULT(kl_device_check(device, &d));
  if (!d->primary) {
    KL_RESULT(make(device, d->primary_flags, &d->primary));
    d->primary->primary = true;
  }
  d->retains++;
  *out = KL_HANDLE(CUcontext, d->primary);
  return CUDA_SUCCESS;
}

static void end_primary(kl_cu_device *d) {
  if (d->primary) kl_context_delete(d->primary);
  d->primary = NULL;
}

CUresult kl_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  kl_cu_device *d;
  KL_RESULT(kl_device_check(device, &d));
  if (!d->retains) return CUDA_ERROR_INVALID_CONTEXT;
  if (--d->retains == 0) end_primary(d);
  return CUDA_SUCCESS;
}

CUresult kl_cuDevicePrimaryCtxReset_v2(CUdevice device) {
  kl_cu_device *d;
  KL_RESULT(kl_device_check(device, &d));
  end_primary(d);
  d->retains = 0;
  return CUDA_SUCCESS;
}

CUresult kl_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  kl_cu_device *d;
  KL_RESULT(kl_device_check(device, &d));
  if (!is_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  d->primary_flags = flags;
  if (d->primary) d->primary->flags = flags;
  return CUDA_SUCCESS;
}

CUresult kl_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  kl_cu_device *d;
  KL_GIVEN(flags, active);
  KL_RESULT(kl_device_check(device, &d));
  *flags = d->primary_flags;
  *active = d->primary != NULL;
  return CUDA_SUCCESS;
}

// --- the current one ------------------------------------------------------------------------------------------------

CUresult kl_cuCtxPushCurrent_v2(CUcontext handle) {
  kl_cu_context *c;
  KL_RESULT(kl_context_check(handle, &c));
  return push(c->o.handle);
}

CUresult kl_cuCtxPopCurrent_v2(CUcontext *out) {
  if (out) *out = NULL;
  if (!thread.depth || !top()) return CUDA_ERROR_INVALID_CONTEXT;
  uint64_t handle = thread.stack[--thread.depth];
  if (out) *out = as_handle(handle);
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxSetCurrent(CUcontext handle) {
  kl_cu_context *c;
  if (!handle) {
    if (thread.depth) thread.depth--;
    return CUDA_SUCCESS;
  }
  KL_RESULT(kl_context_check(handle, &c));
  if (!thread.depth) return push(c->o.handle);
  thread.stack[thread.depth - 1] = c->o.handle;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxGetCurrent(CUcontext *out) {
  KL_GIVEN(out);
  *out = as_handle(top());
  return CUDA_SUCCESS;
}

// A context by its handle, or the current one for NULL.
static CUresult given_or_current(CUcontext handle, kl_cu_context **out) {
  *out = handle ? kl_object_find(handle, KL_CONTEXT) : kl_current();
  if (*out) return CUDA_SUCCESS;
  return !handle && kl_current_is_stale() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult kl_cuCtxGetDevice_v2(CUdevice *out, CUcontext handle) {
  kl_cu_context *c;
  KL_GIVEN(out);
  KL_RESULT(given_or_current(handle, &c));
  *out = c->device;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxGetDevice(CUdevice *out) {
  return kl_cuCtxGetDevice_v2(out, NULL);
}

CUresult kl_cuCtxGetId(CUcontext handle, unsigned long long *out) {
  kl_cu_context *c;
  KL_GIVEN(out);
  KL_RESULT(given_or_current(handle, &c));
  *out = c->o.handle & 0xffffffffffffff;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxGetApiVersion(CUcontext handle, unsigned *out) {
  kl_cu_context *c;
  KL_GIVEN(out);
  KL_RESULT(given_or_current(handle, &c));
  *out = c->api_version;
  return CUDA_SUCCESS;
}

// Everything has happened already, unless it is being captured.
CUresult kl_cuCtxSynchronize_v2(CUcontext handle) {
  kl_cu_context *c;
  KL_RESULT(given_or_current(handle, &c));
  if (c->lost) return c->lost;
  return kl_capture_permits();
}

CUresult kl_cuCtxSynchronize(void) {
  return kl_cuCtxSynchronize_v2(NULL);
}

// No profiler looks on; programs mark what one would.
CUresult kl_cuProfilerStart(void) {
  return CUDA_SUCCESS;
}
CUresult kl_cuProfilerStop(void) {
  return CUDA_SUCCESS;
}

// --- settings -------------------------------------------------------------------------------------------------------

CUresult kl_cuCtxGetFlags(unsigned *out) {
  KL_GIVEN(out);
  *out = kl_current()->flags;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxSetFlags(unsigned flags) {
  if (!is_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  kl_current()->flags = flags;
  return CUDA_SUCCESS;
}

static bool is_limit(CUlimit which) {
  return which == CU_LIMIT_STACK_SIZE || which == CU_LIMIT_PRINTF_FIFO_SIZE || which == CU_LIMIT_MALLOC_HEAP_SIZE ||
         which == CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

CUresult kl_cuCtxSetLimit(CUlimit which, size_t value) {
  kl_cu_context *c = kl_current();
  if (which < 0 || which >= KL_LIMITS) return CUDA_ERROR_INVALID_VALUE;
  if (!is_limit(which)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (which == CU_LIMIT_STACK_SIZE && value > 512 * 1024) return CUDA_ERROR_INVALID_VALUE;
  size_t most = kl_sim.devices[c->device].gpu->l2 / 4 * 3;
  c->limits[which] = which == CU_LIMIT_PERSISTING_L2_CACHE_SIZE && value > most ? most : value;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxGetLimit(size_t *out, CUlimit which) {
  KL_GIVEN(out);
  if (which < 0 || which >= KL_LIMITS) return CUDA_ERROR_INVALID_VALUE;
  if (!is_limit(which)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *out = kl_current()->limits[which];
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxGetCacheConfig(CUfunc_cache *out) {
  KL_GIVEN(out);
  *out = kl_current()->cache_config;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxSetCacheConfig(CUfunc_cache config) {
  if (config < 0 || config > 3) return CUDA_ERROR_INVALID_VALUE;
  kl_current()->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxGetSharedMemConfig(CUsharedconfig *out) {
  KL_GIVEN(out);
  *out = 1; // banks of four bytes, whatever is asked for
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return config < 0 || config > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult kl_cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = KL_GREATEST_PRIORITY;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxResetPersistingL2Cache(void) {
  return CUDA_SUCCESS;
}

// --- peers ----------------------------------------------------------------------------------------------------------

static CUresult peer_of(CUcontext handle, kl_cu_context **out) {
  KL_RESULT(kl_context_check(handle, out));
  return *out == kl_current() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult kl_cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  kl_cu_context *peer, *c = kl_current();
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(peer_of(handle, &peer));
  if (peer->device == c->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  if (c->peers >> peer->device & 1) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  c->peers |= 1u << peer->device;
  return CUDA_SUCCESS;
}

CUresult kl_cuCtxDisablePeerAccess(CUcontext handle) {
  kl_cu_context *peer, *c = kl_current();
  KL_RESULT(peer_of(handle, &peer));
  if (!(c->peers >> peer->device & 1)) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  c->peers &= ~(1u << peer->device);
  return CUDA_SUCCESS;
}
