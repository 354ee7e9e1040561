// Pools, and memory that is allocated and freed in the order of a stream.

#include "sim/driver/impl.h"

static CUresult pool_check(CUmemoryPool handle, kl_cu_pool **out) {
  *out = kl_object_find(handle, KL_POOL);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static kl_cu_pool *new_pool(CUdevice device, uint64_t most) {
  kl_cu_pool *p = kl_object_new(KL_POOL, sizeof *p, NULL);
  if (!p) return NULL;
  p->device = device;
  p->most = most;
  for (size_t i = 0; i < KL_COUNT(p->reuse); i++) p->reuse[i] = 1;
  return p;
}

static CUresult default_pool(CUdevice device, kl_cu_pool **out) {
  kl_cu_device *d;
  KL_RESULT(kl_device_check(device, &d));
  if (!d->default_pool) d->default_pool = new_pool(device, 0);
  if (!d->default_pool) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = d->default_pool;
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
  kl_cu_pool *p;
  KL_GIVEN(out);
  KL_RESULT(default_pool(device, &p));
  *out = KL_HANDLE(CUmemoryPool, p);
  return CUDA_SUCCESS;
}

static CUresult current_pool(CUdevice device, kl_cu_pool **out) {
  KL_RESULT(default_pool(device, out));
  if (kl_sim.devices[device].pool) *out = kl_sim.devices[device].pool;
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
  kl_cu_pool *p;
  KL_GIVEN(out);
  KL_RESULT(current_pool(device, &p));
  *out = KL_HANDLE(CUmemoryPool, p);
  return CUDA_SUCCESS;
}

CUresult kl_cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  kl_cu_device *d;
  kl_cu_pool *p;
  KL_RESULT(kl_device_check(device, &d));
  KL_RESULT(pool_check(handle, &p));
  if (p->device != device) return CUDA_ERROR_INVALID_VALUE;
  d->pool = p;
  return CUDA_SUCCESS;
}

CUresult kl_cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) {
  kl_cu_device *d;
  KL_GIVEN(out, props);
  if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  if (props->handleTypes) return CUDA_ERROR_NOT_SUPPORTED;
  if (kl_device_check(props->location.id, &d)) return CUDA_ERROR_INVALID_VALUE;
  kl_cu_pool *p = new_pool(props->location.id, props->maxSize);
  if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = KL_HANDLE(CUmemoryPool, p);
  return CUDA_SUCCESS;
}

// Its memory lives on, of no pool.
CUresult kl_cuMemPoolDestroy(CUmemoryPool handle) {
  kl_cu_pool *p;
  KL_RESULT(pool_check(handle, &p));
  kl_cu_device *d = &kl_sim.devices[p->device];
  if (p == d->default_pool) return CUDA_ERROR_INVALID_VALUE;
  if (d->pool == p) d->pool = NULL;
  for (size_t i = 0; i < kl_sim.allocations.n; i++)
    if (kl_sim.allocations.p[i].pool == p) kl_sim.allocations.p[i].pool = NULL;
  kl_object_delete(p, sizeof *p);
  return CUDA_SUCCESS;
}

CUresult kl_cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  kl_cu_pool *p;
  return pool_check(handle, &p);
}

CUresult kl_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void *value) {
  kl_cu_pool *p;
  uint64_t v64;
  KL_GIVEN(value);
  KL_RESULT(pool_check(handle, &p));
  switch (which) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    memcpy(&p->reuse[which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES], value, sizeof(int));
    return CUDA_SUCCESS;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: memcpy(&p->threshold, value, sizeof p->threshold); return CUDA_SUCCESS;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    memcpy(&v64, value, sizeof v64);
    if (v64) return CUDA_ERROR_INVALID_VALUE; // it can be set back alone
    p->used_high = p->used;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult kl_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void *value) {
  kl_cu_pool *p;
  const uint64_t *v64 = NULL;
  KL_GIVEN(value);
  KL_RESULT(pool_check(handle, &p));
  switch (which) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    memcpy(value, &p->reuse[which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES], sizeof(int));
    return CUDA_SUCCESS;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: v64 = &p->threshold; break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
  case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: v64 = &p->used; break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH: v64 = &p->used_high; break;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  memcpy(value, v64, sizeof *v64);
  return CUDA_SUCCESS;
}

CUresult kl_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *access, size_t n) {
  kl_cu_pool *p;
  kl_cu_device *d;
  KL_GIVEN(access);
  KL_RESULT(pool_check(handle, &p));
  for (size_t i = 0; i < n; i++) {
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    KL_RESULT(kl_device_check(access[i].location.id, &d));
    if (access[i].location.id == p->device && access[i].flags != 3) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult kl_cuMemPoolGetAccess(CUmemAccess_flags *out, CUmemoryPool handle, CUmemLocation *location) {
  kl_cu_pool *p;
  kl_cu_device *d;
  KL_GIVEN(out, location);
  KL_RESULT(pool_check(handle, &p));
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_device_check(location->id, &d));
  *out = 3;
  return CUDA_SUCCESS;
}

// --- in the order of a stream ---------------------------------------------------------------------------------------

// In a capture the address is given now and the node makes the memory be there.
static CUresult allocate(CUdeviceptr *out, size_t bytes, kl_cu_pool *p, kl_cu_stream *s) {
  uint64_t base;
  if (bytes == 0) {
    *out = 0;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (p->most && (p->used > p->most || bytes > p->most - p->used)) return CUDA_ERROR_OUT_OF_MEMORY;
  KL_RESULT(kl_allocate(s->o.context, KL_MEM_ASYNC, bytes, 0, p, &base));
  *out = base;
  if (!s->capture) return CUDA_SUCCESS;
  kl_allocation_find(base)->of_graph = true;
  kl_work w = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .context = s->o.context->o.handle};
  w.alloc = (CUDA_MEM_ALLOC_NODE_PARAMS){.bytesize = bytes, .dptr = base};
  w.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  w.alloc.poolProps.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, p->device};
  return kl_submit(s, &w);
}

CUresult kl_cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool handle, CUstream stream) {
  kl_cu_pool *p;
  kl_cu_stream *s;
  KL_GIVEN(out);
  KL_RESULT(kl_stream_check(stream, &s));
  KL_RESULT(pool_check(handle, &p));
  return allocate(out, bytes, p, s);
}

CUresult kl_cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream) {
  kl_cu_pool *p;
  kl_cu_stream *s;
  KL_GIVEN(out);
  KL_RESULT(kl_stream_check(stream, &s));
  KL_RESULT(current_pool(s->o.context->device, &p));
  return allocate(out, bytes, p, s);
}

CUresult kl_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  kl_cu_stream *s;
  KL_RESULT(kl_stream_check(stream, &s));
  if (address == 0) return CUDA_ERROR_INVALID_VALUE;
  kl_allocation *a = kl_allocation_find(address);
  if (!a || a->base != address || a->host) return CUDA_ERROR_INVALID_VALUE;
  kl_work w = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .context = s->o.context->o.handle};
  w.free = address;
  return kl_submit(s, &w);
}
