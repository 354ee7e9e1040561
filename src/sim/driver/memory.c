// Memory: of the device, of pools, pinned, managed; what is known of an address.

#include "sim/driver/impl.h"
#include "sim/machine/map.h"

// --- allocations ----------------------------------------------------------------------------------------------------

kl_allocation *kl_allocation_find(uint64_t address) {
  const kl_region *r = kl_memory_find(&kl_sim.memory, address);
  return r && !r->freed && r->tag ? &kl_sim.allocations.p[r->tag - 1] : NULL;
}

static kl_allocation *new_allocation(uint64_t base) {
  uint32_t index = (uint32_t)kl_sim.allocations.n;
  if (kl_sim.free_allocations.n)
    index = kl_sim.free_allocations.p[--kl_sim.free_allocations.n];
  else
    VEC_PUSH(kl_sim.cx, &kl_sim.allocations, (kl_allocation){0});
  kl_memory_tag(&kl_sim.memory, base, index + 1);
  return &kl_sim.allocations.p[index];
}

static uint64_t device_memory_in_use(CUdevice device) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kl_sim.allocations.n; i++) {
    const kl_allocation *a = &kl_sim.allocations.p[i];
    if (a->alive && !a->host && a->context->device == device) sum += a->size;
  }
  return sum;
}

// What one device of several has left.
static bool has_room(CUdevice device, uint64_t bytes) {
  uint64_t most = kl_sim.devices[device].gpu->memory;
  uint64_t used = kl_sim.ndevices == 1 ? kl_sim.memory.in_use : device_memory_in_use(device);
  return used <= most && bytes <= most - used;
}

static CUresult place(kl_memory_kind kind, uint64_t bytes, char *host, uint64_t *base) {
  kiln_status s = host ? kl_memory_share(&kl_sim.memory, host, bytes, base)
                       : kl_memory_alloc(&kl_sim.memory, bytes, KL_REGION_USER, (kl_str){0}, base);
  return s ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult enter(kl_cu_context *c, kl_memory_kind kind, uint64_t bytes, unsigned flags, char *host,
                      uint64_t *base) {
  KL_RESULT(place(kind, bytes, host, base));
  *new_allocation(*base) = (kl_allocation){.kind = kind,
                                           .alive = true,
                                           .base = *base,
                                           .size = bytes,
                                           .host = host,
                                           .flags = flags,
                                           .id = ++kl_sim.serial,
                                           .context = c};
  return CUDA_SUCCESS;
}

CUresult kl_allocate(kl_cu_context *c, kl_memory_kind kind, uint64_t bytes, unsigned flags, kl_cu_pool *pool,
                     uint64_t *out) {
  bool on_device = kind == KL_MEM_DEVICE || kind == KL_MEM_ASYNC;
  char *host = NULL;
  *out = 0;
  if (on_device && !has_room(c->device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!on_device && !(host = kl_map(bytes, KL_MAP_DENSE))) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult code = enter(c, kind, bytes, flags, host, out);
  if (code && host) kl_unmap(host, bytes);
  if (code || !pool) return code;
  kl_allocation_find(*out)->pool = pool;
  pool->used += bytes;
  if (pool->used > pool->used_high) pool->used_high = pool->used;
  return CUDA_SUCCESS;
}

CUresult kl_release(kl_allocation *a) {
  const kl_region *r = kl_memory_find(&kl_sim.memory, a->base);
  uint32_t index = r->tag - 1;
  if (a->pool) a->pool->used -= a->size;
  kl_memory_release(&kl_sim.memory, a->base);
  if (a->host && a->kind != KL_MEM_REGISTERED) kl_unmap(a->host, a->size);
  a->alive = false;
  VEC_PUSH(kl_sim.cx, &kl_sim.free_allocations, index);
  return CUDA_SUCCESS;
}

void kl_release_context_memory(kl_cu_context *c) {
  for (size_t i = 0; i < kl_sim.allocations.n; i++)
    if (kl_sim.allocations.p[i].alive && kl_sim.allocations.p[i].context == c) kl_release(&kl_sim.allocations.p[i]);
}

// The allocation that begins at an address.
static kl_allocation *begins_at(uint64_t address) {
  kl_allocation *a = kl_allocation_find(address);
  return a && a->base == address ? a : NULL;
}

// --- memory of the device -------------------------------------------------------------------------------------------

CUresult kl_cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
  uint64_t base;
  KL_GIVEN(out);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_allocate(kl_current(), KL_MEM_DEVICE, bytes, 0, NULL, &base));
  *out = base;
  return CUDA_SUCCESS;
}

enum { PITCH = 512 };

CUresult kl_cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
  size_t row, bytes;
  KL_GIVEN(out, pitch);
  if (width == 0 || height == 0 || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_add_overflow(width, PITCH - 1, &row)) return CUDA_ERROR_INVALID_VALUE;
  row = row / PITCH * PITCH;
  if (row > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  KL_RESULT(kl_cuMemAlloc_v2(out, bytes));
  *pitch = row;
  return CUDA_SUCCESS;
}

CUresult kl_cuMemFree_v2(CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  kl_allocation *a = begins_at(address);
  if (!a || a->kind == KL_MEM_HOST || a->kind == KL_MEM_REGISTERED) return CUDA_ERROR_INVALID_VALUE;
  return a->of_graph ? CUDA_SUCCESS : kl_release(a);
}

CUresult kl_cuMemGetInfo_v2(size_t *left, size_t *total) {
  kl_cu_context *c = kl_current();
  uint64_t most = kl_sim.devices[c->device].gpu->memory;
  uint64_t used = kl_sim.ndevices == 1 ? kl_sim.memory.in_use : device_memory_in_use(c->device);
  if (left) *left = most > used ? most - used : 0;
  if (total) *total = most;
  return CUDA_SUCCESS;
}

CUresult kl_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
  const kl_region *r = kl_memory_find(&kl_sim.memory, address);
  if (!r || r->freed) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = r->base;
  if (size) *size = r->size;
  return CUDA_SUCCESS;
}

// --- pinned and managed memory --------------------------------------------------------------------------------------

static CUresult allocate_host(void **out, size_t bytes, unsigned flags) {
  uint64_t base;
  KL_GIVEN(out);
  *out = NULL;
  if (flags & ~(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED))
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_allocate(kl_current(), KL_MEM_HOST, bytes, flags, NULL, &base));
  *out = kl_allocation_find(base)->host;
  return CUDA_SUCCESS;
}

CUresult kl_cuMemAllocHost_v2(void **out, size_t bytes) {
  return allocate_host(out, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult kl_cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  return allocate_host(out, bytes, flags);
}

// The pinned memory that holds an address of the host's. It is the device's as well but where another one had to do.
static kl_allocation *pinned_at(const void *p) {
  uint64_t at = (uint64_t)(uintptr_t)p;
  kl_allocation *a = kl_allocation_find(at);
  if (a && a->host && a->base == (uint64_t)(uintptr_t)a->host) return a;
  for (size_t i = 0; i < kl_sim.allocations.n; i++) {
    a = &kl_sim.allocations.p[i];
    uint64_t host = (uint64_t)(uintptr_t)a->host;
    if (a->alive && host && host != a->base && at - host < a->size) return a;
  }
  return NULL;
}

CUresult kl_cuMemFreeHost(void *p) {
  if (!p) return CUDA_SUCCESS;
  kl_allocation *a = pinned_at(p);
  if (!a || a->kind != KL_MEM_HOST || a->host != p) return CUDA_ERROR_INVALID_VALUE;
  return kl_release(a);
}

CUresult kl_cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags) {
  uint64_t base, at = (uint64_t)(uintptr_t)p;
  KL_GIVEN(p);
  if (bytes == 0 || flags > 15) return CUDA_ERROR_INVALID_VALUE;
  if (flags & 4) return CUDA_ERROR_NOT_SUPPORTED; // memory of another device
  if (at + bytes < at) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < kl_sim.allocations.n; i++) {
    const kl_allocation *a = &kl_sim.allocations.p[i];
    uint64_t host = (uint64_t)(uintptr_t)a->host;
    if (a->alive && host && host < at + bytes && at < host + a->size) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  return enter(kl_current(), KL_MEM_REGISTERED, bytes, flags, p, &base);
}

CUresult kl_cuMemHostUnregister(void *p) {
  KL_GIVEN(p);
  kl_allocation *a = pinned_at(p);
  if (!a || a->kind != KL_MEM_REGISTERED) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (a->host != p) return CUDA_ERROR_INVALID_VALUE;
  return kl_release(a);
}

CUresult kl_cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p, unsigned flags) {
  KL_GIVEN(out, p);
  *out = 0;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  kl_allocation *a = pinned_at(p);
  if (!a || a->kind == KL_MEM_MANAGED) return CUDA_ERROR_INVALID_VALUE;
  *out = a->base + ((uint64_t)(uintptr_t)p - (uint64_t)(uintptr_t)a->host);
  return CUDA_SUCCESS;
}

CUresult kl_cuMemHostGetFlags(unsigned *out, void *p) {
  KL_GIVEN(out, p);
  kl_allocation *a = pinned_at(p);
  if (!a || a->kind != KL_MEM_HOST) return CUDA_ERROR_INVALID_VALUE;
  *out = a->flags | CU_MEMHOSTALLOC_DEVICEMAP; // as addressing is unified, all is mapped
  return CUDA_SUCCESS;
}

CUresult kl_cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) {
  uint64_t base;
  KL_GIVEN(out);
  if (bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_allocate(kl_current(), KL_MEM_MANAGED, bytes, flags, NULL, &base));
  *out = base;
  return CUDA_SUCCESS;
}

// --- hints for managed memory: what is there is there for all
// ---------------------------------------------------------

static CUresult is_managed(CUdeviceptr address, size_t bytes) {
  kl_allocation *a = kl_allocation_find(address);
  bool fits = a && a->kind == KL_MEM_MANAGED && bytes <= a->size - (address - a->base);
  return bytes && fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult is_place(CUdevice device) {
  kl_cu_device *d;
  return device == CU_DEVICE_CPU ? CUDA_SUCCESS : kl_device_check(device, &d);
}

CUresult kl_cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  if (advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION) KL_RESULT(is_place(device));
  return is_managed(address, bytes);
}

static CUresult location_check(CUmemLocation l) {
  kl_cu_device *d;
  if (l.type == CU_MEM_LOCATION_TYPE_DEVICE) return kl_device_check(l.id, &d);
  return l.type >= CU_MEM_LOCATION_TYPE_HOST && l.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult kl_cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation l) {
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  if (advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION && advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
    KL_RESULT(location_check(l));
  return is_managed(address, bytes);
}

CUresult kl_cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  kl_cu_stream *s;
  KL_RESULT(kl_stream_check(stream, &s));
  KL_RESULT(is_place(device));
  return is_managed(address, bytes);
}

CUresult kl_cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation l, unsigned flags, CUstream stream) {
  kl_cu_stream *s;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_stream_check(stream, &s));
  KL_RESULT(location_check(l));
  return is_managed(address, bytes);
}

CUresult kl_cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags) {
  kl_cu_stream *s;
  KL_RESULT(kl_stream_check(stream, &s));
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
    return CUDA_ERROR_INVALID_VALUE;
  kl_allocation *a = kl_allocation_find(address);
  if (!a || a->kind != KL_MEM_MANAGED || a->base != address || (bytes && bytes != a->size))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult kl_cuMemRangeGetAttribute(void *out, size_t size, CUmem_range_attribute which, CUdeviceptr address,
                                   size_t bytes) {
  int value = 0;
  KL_GIVEN(out);
  KL_RESULT(is_managed(address, bytes));
  if (size < sizeof value || size % sizeof value) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
  case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: break;
  case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
  case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
  case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: value = CU_DEVICE_INVALID; break;
  case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
  case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
  case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
  case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: value = CU_MEM_LOCATION_TYPE_INVALID; break;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < size / sizeof value; i++) memcpy((char *)out + i * sizeof value, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult kl_cuMemRangeGetAttributes(void **out, size_t *sizes, CUmem_range_attribute *which, size_t n,
                                    CUdeviceptr address, size_t bytes) {
  KL_GIVEN(out, sizes, which);
  if (n == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < n; i++) KL_RESULT(kl_cuMemRangeGetAttribute(out[i], sizes[i], which[i], address, bytes));
  return CUDA_SUCCESS;
}

// --- what an address is ---------------------------------------------------------------------------------------------

static int memory_type(const kl_allocation *a) {
  return a && (a->kind == KL_MEM_HOST || a->kind == KL_MEM_REGISTERED) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

// One attribute as bytes. INVALID_VALUE: it does not exist, or not for such memory.
static CUresult attribute(const kl_region *r, const kl_allocation *a, CUpointer_attribute which, uint64_t address,
                          uint64_t *value, size_t *size) {
  uint64_t at = r ? address - r->base : 0;
  kl_cu_context *c = a ? a->context : kl_current();
  *size = 4;
  switch (which) {
  case CU_POINTER_ATTRIBUTE_CONTEXT: *size = 8, *value = c ? c->o.handle : 0; break;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *value = (uint64_t)memory_type(a); break;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *size = 8, *value = address; break;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    if (!a || !a->host) return CUDA_ERROR_INVALID_VALUE;
    *size = 8, *value = (uint64_t)(uintptr_t)a->host + at;
    break;
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *value = a && a->sync_memops; break;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID: *size = 8, *value = a ? a->id : 0; break;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED: *value = a && a->kind == KL_MEM_MANAGED; break;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *value = c ? (uint64_t)c->device : 0; break;
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
  case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
  case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: *value = 0; break;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
  case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *size = 8, *value = r->base; break;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
  case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *size = 8, *value = r->size; break;
  case CU_POINTER_ATTRIBUTE_MAPPED: *value = 1; break;
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *size = 8, *value = 0; break;
  case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: *value = 3; break; // reads and writes
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *size = 8, *value = a && a->pool ? a->pool->o.handle : 0; break;
  case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: *size = 8, *value = a ? a->id : 0; break;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

static const kl_region *live_region(uint64_t address) {
  const kl_region *r = kl_memory_find(&kl_sim.memory, address);
  return r && !r->freed ? r : NULL;
}

CUresult kl_cuPointerGetAttribute(void *out, CUpointer_attribute which, CUdeviceptr address) {
  uint64_t value = 0;
  size_t size;
  const kl_region *r = live_region(address);
  KL_GIVEN(out);
  if (!r) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(attribute(r, kl_allocation_find(address), which, address, &value, &size));
  memcpy(out, &value, size);
  return CUDA_SUCCESS;
}

// As above, but what does not apply reads as 0, also for addresses that the driver does not know.
CUresult kl_cuPointerGetAttributes(unsigned n, CUpointer_attribute *which, void **out, CUdeviceptr address) {
  const kl_region *r = live_region(address);
  static const kl_region nothing = {0};
  KL_GIVEN(which, out);
  if (n == 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < n; i++) {
    uint64_t value = 0;
    size_t size;
    KL_GIVEN(out[i]);
    CUresult code = attribute(r ? r : &nothing, kl_allocation_find(address), which[i], address, &value, &size);
    if (code && which[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER) return code;
    if (code) value = 0, size = 8;
    if (!r) value = which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (uint64_t)-2 : 0;
    memcpy(out[i], &value, size);
  }
  return CUDA_SUCCESS;
}

CUresult kl_cuPointerSetAttribute(const void *value, CUpointer_attribute which, CUdeviceptr address) {
  int on;
  KL_GIVEN(value);
  kl_allocation *a = kl_allocation_find(address);
  if (which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !a || memory_type(a) != CU_MEMORYTYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  memcpy(&on, value, sizeof on);
  a->sync_memops = on != 0;
  return CUDA_SUCCESS;
}
