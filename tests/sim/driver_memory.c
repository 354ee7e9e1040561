// Memory, copies, streams and events of the simulator's driver.
#include "cu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- allocations
// ------------------------------------------------------------------------------------------------------

START_TEST(allocations) {
  CUdeviceptr p = 1, q, base;
  size_t size, pitch, left, total;
  cu_begin();
  SAME(cu.cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemAlloc_v2(&p, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
  SAME(cu.cuMemAlloc_v2(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  WORKS(cu.cuMemGetInfo_v2(&left, &total));
  ck_assert_uint_eq(left, total);
  p = cu_memory(1000);
  ck_assert_uint_eq(p % 256, 0);
  WORKS(cu.cuMemGetInfo_v2(&left, NULL));
  ck_assert_uint_eq(left, total - 1000);
  WORKS(cu.cuMemGetAddressRange_v2(&base, &size, p + 999));
  ck_assert(base == p && size == 1000);
  SAME(cu.cuMemGetAddressRange_v2(&base, &size, p + 1000), CUDA_ERROR_NOT_FOUND);
  SAME(cu.cuMemFree_v2(p + 1), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemFree_v2(12345), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuMemFree_v2(0));
  WORKS(cu.cuMemFree_v2(p));
  SAME(cu.cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
  q = cu_memory(1000);
  ck_assert_uint_ne(p, q); // never given twice
  WORKS(cu.cuMemAllocPitch_v2(&p, &pitch, 1000, 3, 4));
  ck_assert(pitch >= 1000 && pitch % 512 == 0);
  WORKS(cu.cuMemGetAddressRange_v2(NULL, &size, p));
  ck_assert_uint_eq(size, 3 * pitch);
  SAME(cu.cuMemAllocPitch_v2(&p, &pitch, 1000, 3, 5), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemAllocPitch_v2(&p, &pitch, 0, 3, 4), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX, 3, 4), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemAllocPitch_v2(&p, &pitch, 1 << 30, SIZE_MAX / 2, 4), CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

START_TEST(memory_begins_as_zero_and_ends_as_none) {
  unsigned v[4] = {9, 9, 9, 9};
  cu_begin();
  CUdeviceptr p = cu_memory(16);
  WORKS(cu.cuMemcpyDtoH_v2(v, p, 16));
  ck_assert(!v[0] && !v[3]);
  WORKS(cu.cuMemFree_v2(p));
  SAME(cu.cuMemcpyDtoH_v2(v, p, 16), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

// A kernel adds to memory of every kind; the host sees it.
typedef enum kind { PINNED, PORTABLE, REGISTERED, MANAGED, DEVICE, ASYNC } kind;

START_TEST(kernels_use_memory_of_every_kind) {
  unsigned *host = NULL, value = 5, found = 0;
  CUdeviceptr p = 0;
  static unsigned own[64];
  cu_begin();
  switch ((kind)_i) {
  case PINNED: WORKS(cu.cuMemAllocHost_v2((void **)&host, 256)); break;
  case PORTABLE: WORKS(cu.cuMemHostAlloc((void **)&host, 256, CU_MEMHOSTALLOC_PORTABLE)); break;
  case REGISTERED:
    host = own;
    WORKS(cu.cuMemHostRegister_v2(host, sizeof own, 0));
    break;
  case MANAGED:
    WORKS(cu.cuMemAllocManaged(&p, 256, CU_MEM_ATTACH_GLOBAL));
    host = (unsigned *)(uintptr_t)p;
    break;
  case DEVICE: p = cu_memory(256); break;
  case ASYNC: WORKS(cu.cuMemAllocAsync(&p, 256, NULL)); break;
  }
  if (!p) WORKS(cu.cuMemHostGetDevicePointer_v2(&p, host, 0));
  if (host) host[1] = 7;
  p += 4;
  CUfunction f = cu_function(cu_module(PTX_HEAD PTX_ADD), "add");
  void *params[] = {&p, &value};
  WORKS(cu_run(f, NULL, params));
  WORKS(cu.cuMemcpyDtoH_v2(&found, p, 4));
  ck_assert_uint_eq(found, host ? 12 : 5);
  if (host) ck_assert_uint_eq(host[1], 12);
  switch ((kind)_i) {
  case PINNED:
  case PORTABLE:
    SAME(cu.cuMemFreeHost(host + 1), CUDA_ERROR_INVALID_VALUE);
    SAME(cu.cuMemHostUnregister(host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    WORKS(cu.cuMemFreeHost(host));
    SAME(cu.cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    break;
  case REGISTERED:
    SAME(cu.cuMemHostRegister_v2(host + 2, 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    SAME(cu.cuMemHostUnregister(host + 1), CUDA_ERROR_INVALID_VALUE);
    SAME(cu.cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    WORKS(cu.cuMemHostUnregister(host));
    SAME(cu.cuMemHostUnregister(host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    ck_assert_uint_eq(host[1], 12);
    break;
  case MANAGED:
    WORKS(cu.cuMemAdvise(p - 4, 256, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    SAME(cu.cuMemAdvise(p - 4, 257, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    WORKS(cu.cuMemPrefetchAsync(p - 4, 256, CU_DEVICE_CPU, NULL));
    SAME(cu.cuMemPrefetchAsync(p - 4, 256, 9, NULL), CUDA_ERROR_INVALID_DEVICE);
    WORKS(cu.cuMemFree_v2(p - 4));
    break;
  case DEVICE: WORKS(cu.cuMemFreeAsync(p - 4, NULL)); break;
  case ASYNC:
    SAME(cu.cuMemFreeAsync(p, NULL), CUDA_ERROR_INVALID_VALUE);
    WORKS(cu.cuMemFreeAsync(p - 4, NULL));
    SAME(cu.cuMemFreeAsync(p - 4, NULL), CUDA_ERROR_INVALID_VALUE);
    break;
  }
  WORKS(cu.cuCtxSynchronize());
  WORKS(cu_run(f, NULL, params)); // into what is gone
  SAME(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

// The bytes around what was registered are not the kernel's.
START_TEST(only_registered_bytes) {
  static unsigned own[64];
  unsigned value = 1;
  CUdeviceptr p;
  cu_begin();
  WORKS(cu.cuMemHostRegister_v2(own + 8, 16, 0));
  WORKS(cu.cuMemHostGetDevicePointer_v2(&p, own + 9, 0));
  SAME(cu.cuMemHostGetDevicePointer_v2(&p, own + 12, 0), CUDA_ERROR_INVALID_VALUE);
  p += 12; // own[12]
  void *params[] = {&p, &value};
  WORKS(cu_run(cu_function(cu_module(PTX_HEAD PTX_ADD), "add"), NULL, params));
  SAME(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ck_assert_uint_eq(own[12], 0);
}
END_TEST

START_TEST(pools) {
  CUmemoryPool normal, pool;
  CUdeviceptr p;
  uint64_t v = 0;
  CUmemPoolProps props = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .maxSize = 1000};
  cu_begin();
  WORKS(cu.cuDeviceGetDefaultMemPool(&normal, 0));
  WORKS(cu.cuDeviceGetMemPool(&pool, 0));
  ck_assert_ptr_eq(pool, normal);
  SAME(cu.cuMemPoolDestroy(normal), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuMemPoolCreate(&pool, &props));
  WORKS(cu.cuDeviceSetMemPool(0, pool));
  WORKS(cu.cuMemAllocAsync(&p, 600, NULL));
  SAME(cu.cuMemAllocFromPoolAsync(&p, 600, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
  WORKS(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v));
  ck_assert_uint_eq(v, 600);
  WORKS(cu.cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
  ck_assert_uint_eq(v, (uintptr_t)pool);
  WORKS(cu.cuMemFreeAsync(p, NULL));
  WORKS(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v));
  ck_assert_uint_eq(v, 0);
  WORKS(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v));
  ck_assert_uint_eq(v, 600);
  v = 77;
  WORKS(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v));
  SAME(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemPoolGetAttribute(pool, 99, &v), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuMemPoolTrimTo(pool, 0));
  WORKS(cu.cuMemPoolDestroy(pool));
  SAME(cu.cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuDeviceGetMemPool(&pool, 0));
  ck_assert_ptr_eq(pool, normal);
}
END_TEST

typedef struct about {
  CUpointer_attribute which;
  int device, pinned, managed; // what is expected of each kind of memory, -1: refused
} about;
static const about abouts[] = {
    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
    {CU_POINTER_ATTRIBUTE_IS_MANAGED, 0, 0, 1},
    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 0, 0, 0},
    {CU_POINTER_ATTRIBUTE_MAPPED, 1, 1, 1},
    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, 100, 100, 100},
    {CU_POINTER_ATTRIBUTE_HOST_POINTER, -1, -2, -2}, // the address itself
    {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, -2, -2, -2},
    {99, -1, -1, -1},
};

static void is_about(CUpointer_attribute which, CUdeviceptr p, int64_t expected) {
  uint64_t v = 0;
  CUresult code = cu.cuPointerGetAttribute(&v, which, p);
  ck_assert_int_eq(code, expected == -1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
  if (expected != -1)
    ck_assert_msg(v == (expected == -2 ? p : (uint64_t)expected), "%d: %llu", which, (unsigned long long)v);
}

START_TEST(what_an_address_is) {
  void *host;
  CUdeviceptr device, managed;
  CUcontext c;
  cu_begin();
  device = cu_memory(100);
  WORKS(cu.cuMemAllocHost_v2(&host, 100));
  WORKS(cu.cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
  for (size_t i = 0; i < sizeof abouts / sizeof *abouts; i++) {
    is_about(abouts[i].which, device + 3, abouts[i].device);
    is_about(abouts[i].which, (uintptr_t)host + 3, abouts[i].pinned);
    is_about(abouts[i].which, managed + 3, abouts[i].managed);
  }
  uint64_t v;
  SAME(cu.cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4096), CUDA_ERROR_INVALID_VALUE);
  int type = 9, is_managed = 9, ordinal = 9;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT};
  void *out[] = {&type, &is_managed, &ordinal, &c};
  WORKS(cu.cuPointerGetAttributes(4, which, out, (uintptr_t)&type)); // not the driver's
  ck_assert(type == 0 && is_managed == 0 && ordinal == -2 && c == NULL);
  WORKS(cu.cuPointerGetAttributes(4, which, out, managed));
  ck_assert(type == CU_MEMORYTYPE_DEVICE && is_managed == 1 && ordinal == 0 && c != NULL);
}
END_TEST

// --- copies
// -----------------------------------------------------------------------------------------------------------

START_TEST(copies_in_a_line) {
  unsigned char in[64], out[64] = {0};
  cu_begin();
  for (int i = 0; i < 64; i++) in[i] = (unsigned char)(i * 3);
  CUdeviceptr p = cu_memory(64), q = cu_memory(64);
  WORKS(cu.cuMemcpyHtoD_v2(p, in, 64));
  WORKS(cu.cuMemcpyDtoD_v2(q + 1, p, 63));
  WORKS(cu.cuMemcpyDtoD_v2(q, p, 1));
  WORKS(cu.cuMemcpyDtoD_v2(q, q + 1, 63)); // over itself
  WORKS(cu.cuMemcpyDtoH_v2(out, q, 64));
  ck_assert_mem_eq(out, in, 63);
  ck_assert_uint_eq(out[63], in[62]);
  SAME(cu.cuMemcpyHtoD_v2(p, in, 65), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemcpyHtoD_v2(p + 1, in, 64), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemcpyHtoD_v2(p, NULL, 4), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemcpyDtoH_v2(NULL, p, 4), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemcpyHtoD_v2(16, in, 4), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemcpyDtoD_v2(p, q, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  // By what the addresses are.
  memset(out, 0, sizeof out);
  WORKS(cu.cuMemcpy((uintptr_t)out, p, 64));
  ck_assert_mem_eq(out, in, 64);
  WORKS(cu.cuMemcpyAsync(q, (uintptr_t)in, 64, NULL));
  WORKS(cu.cuMemFree_v2(p));
  SAME(cu.cuMemcpy((uintptr_t)out, p, 64), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

typedef struct box_row {
  size_t from_pitch, from_height, from_x, from_y, from_z, to_pitch, to_height, to_x, to_y, to_z, w, h, d;
  CUresult code;
} box_row;
static const box_row box_rows[] = {
    {16, 4, 0, 0, 0, 16, 4, 0, 0, 0, 16, 4, 4, CUDA_SUCCESS},
    {16, 4, 3, 1, 2, 32, 5, 7, 2, 1, 5, 3, 2, CUDA_SUCCESS},
    {17, 3, 1, 0, 1, 13, 7, 0, 1, 0, 12, 2, 3, CUDA_SUCCESS},
    {16, 4, 0, 0, 0, 16, 4, 0, 0, 0, 0, 4, 4, CUDA_SUCCESS},
    {16, 4, 8, 0, 0, 16, 4, 0, 0, 0, 9, 2, 1, CUDA_ERROR_INVALID_VALUE},  // a row beyond its pitch
    {16, 4, 0, 0, 0, 16, 4, 0, 0, 9, 16, 4, 8, CUDA_ERROR_INVALID_VALUE}, // beyond the memory
    {16, 4, 0, SIZE_MAX / 8, 0, 16, 4, 0, 0, 0, 16, 4, 4, CUDA_ERROR_INVALID_VALUE},
    {SIZE_MAX / 2, 4, 0, 0, 0, 16, 4, 0, 0, 0, 16, 4, 4, CUDA_ERROR_INVALID_VALUE},
};
enum { ROOM = 1024 };

START_TEST(copies_of_boxes) {
  const box_row *r = &box_rows[_i];
  static unsigned char from[ROOM], to[ROOM], expected[ROOM], found[ROOM];
  cu_begin();
  CUdeviceptr p = cu_memory(ROOM), q = cu_memory(ROOM);
  for (int i = 0; i < ROOM; i++) from[i] = (unsigned char)(i * 7 + 1), expected[i] = 0;
  WORKS(cu.cuMemcpyHtoD_v2(p, from, ROOM));
  for (size_t z = 0; z < r->d && !r->code; z++)
    for (size_t y = 0; y < r->h; y++)
      for (size_t x = 0; x < r->w; x++)
        expected[((r->to_z + z) * r->to_height + r->to_y + y) * r->to_pitch + r->to_x + x] =
            from[((r->from_z + z) * r->from_height + r->from_y + y) * r->from_pitch + r->from_x + x];
  CUDA_MEMCPY3D c = {.srcXInBytes = r->from_x,
                     .srcY = r->from_y,
                     .srcZ = r->from_z,
                     .srcPitch = r->from_pitch,
                     .srcHeight = r->from_height,
                     .dstXInBytes = r->to_x,
                     .dstY = r->to_y,
                     .dstZ = r->to_z,
                     .dstPitch = r->to_pitch,
                     .dstHeight = r->to_height,
                     .WidthInBytes = r->w,
                     .Height = r->h,
                     .Depth = r->d,
                     .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                     .srcDevice = p,
                     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                     .dstDevice = q};
  SAME(cu.cuMemcpy3D_v2(&c), r->code);
  WORKS(cu.cuMemcpyDtoH_v2(found, q, ROOM));
  ck_assert_mem_eq(found, expected, ROOM);
  if (r->code) return;
  c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = from;
  c.dstMemoryType = CU_MEMORYTYPE_UNIFIED, c.dstDevice = (uintptr_t)to;
  WORKS(cu.cuMemcpy3DAsync_v2(&c, NULL));
  ck_assert_mem_eq(to, expected, ROOM);
  CUDA_MEMCPY3D_PEER peer;
  memcpy(&peer, &c, sizeof peer);
  WORKS(cu.cuCtxGetCurrent(&peer.srcContext));
  peer.dstContext = peer.srcContext;
  WORKS(cu.cuMemcpy3DPeer(&peer));
  peer.dstContext = (CUcontext)77;
  SAME(cu.cuMemcpy3DPeer(&peer), CUDA_ERROR_INVALID_CONTEXT);
  c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  if (r->w) SAME(cu.cuMemcpy3D_v2(&c), CUDA_ERROR_INVALID_HANDLE);
  // A plane of it.
  memset(to, 0, sizeof to);
  CUDA_MEMCPY2D plane = {.srcXInBytes = r->from_x,
                         .srcY = r->from_y,
                         .srcPitch = r->from_pitch,
                         .dstXInBytes = r->to_x,
                         .dstY = r->to_y,
                         .dstPitch = r->to_pitch,
                         .WidthInBytes = r->w,
                         .Height = r->h,
                         .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = p,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = to};
  WORKS(cu.cuMemcpy2D_v2(&plane));
  for (size_t y = 0; y < r->h; y++)
    ck_assert_mem_eq(to + (r->to_y + y) * r->to_pitch + r->to_x, from + (r->from_y + y) * r->from_pitch + r->from_x,
                     r->w);
}
END_TEST

START_TEST(fills) {
  unsigned char out[96];
  unsigned v;
  cu_begin();
  CUdeviceptr p = cu_memory(96);
  WORKS(cu.cuMemsetD8_v2(p, 0xab, 96));
  WORKS(cu.cuMemsetD16_v2(p + 2, 0x1234, 3));
  WORKS(cu.cuMemsetD32_v2(p + 8, 0xdeadbeef, 2));
  WORKS(cu.cuMemsetD2D8_v2(p + 32, 16, 0x77, 3, 4));
  WORKS(cu.cuMemsetD2D32Async(p + 36, 16, 5, 1, 2, NULL));
  WORKS(cu.cuMemcpyDtoH_v2(out, p, 96));
  ck_assert_uint_eq(out[1], 0xab);
  ck_assert(out[2] == 0x34 && out[3] == 0x12 && out[7] == 0x12);
  memcpy(&v, out + 12, 4);
  ck_assert_uint_eq(v, 0xdeadbeef);
  ck_assert_uint_eq(out[16], 0xab);
  for (int y = 0; y < 4; y++) ck_assert(out[32 + 16 * y + 2] == 0x77 && out[32 + 16 * y + 8] == 0xab);
  memcpy(&v, out + 52, 4);
  ck_assert_uint_eq(v, 5);
  SAME(cu.cuMemsetD16_v2(p + 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemsetD32_v2(p + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemsetD8_v2(p, 1, 97), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemsetD32_v2(p, 1, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemsetD2D8_v2(p, 2, 1, 3, 4), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemsetD8_v2(8, 1, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

// --- streams and events
// -------------------------------------------------------------------------------------------------

START_TEST(streams) {
  CUstream s = NULL, t;
  CUcontext c, of;
  CUdevice d = 9;
  int priority;
  unsigned flags;
  unsigned long long a, b;
  CUlaunchAttributeValue v = {.priority = -2};
  cu_begin();
  SAME(cu.cuStreamCreate(&s, 2), CUDA_ERROR_INVALID_VALUE);
  ck_assert_ptr_null(s);
  WORKS(cu.cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -100));
  WORKS(cu.cuStreamCreate(&t, 0));
  WORKS(cu.cuStreamGetPriority(s, &priority));
  ck_assert_int_eq(priority, -5);
  WORKS(cu.cuStreamGetFlags(s, &flags));
  ck_assert_uint_eq(flags, CU_STREAM_NON_BLOCKING);
  WORKS(cu.cuStreamGetId(s, &a));
  WORKS(cu.cuStreamGetId(t, &b));
  ck_assert_uint_ne(a, b);
  WORKS(cu.cuCtxGetCurrent(&c));
  WORKS(cu.cuStreamGetCtx(s, &of));
  ck_assert_ptr_eq(c, of);
  WORKS(cu.cuStreamGetDevice(s, &d));
  ck_assert_int_eq(d, 0);
  WORKS(cu.cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  WORKS(cu.cuStreamCopyAttributes(t, s));
  v.priority = 0;
  WORKS(cu.cuStreamGetAttribute(t, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  ck_assert_int_eq(v.priority, -2);
  SAME(cu.cuStreamGetAttribute(t, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &v), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuStreamQuery(CU_STREAM_LEGACY));
  WORKS(cu.cuStreamQuery(CU_STREAM_PER_THREAD));
  SAME(cu.cuStreamQuery((CUstream)3), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
  WORKS(cu.cuStreamDestroy_v2(s));
  SAME(cu.cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
  WORKS(cu.cuStreamCreate(&t, 0)); // in its place, but another one
  ck_assert_ptr_ne(s, t);
  SAME(cu.cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuEventQuery((CUevent)t), CUDA_ERROR_INVALID_HANDLE); // of another kind
}
END_TEST

START_TEST(events) {
  CUevent a, b, no_time;
  float ms = -1;
  cu_begin();
  SAME(cu.cuEventCreate(&a, 8), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuEventCreate(&a, 0));
  WORKS(cu.cuEventCreate(&b, CU_EVENT_BLOCKING_SYNC));
  WORKS(cu.cuEventCreate(&no_time, CU_EVENT_DISABLE_TIMING));
  WORKS(cu.cuEventQuery(a));
  SAME(cu.cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE); // never recorded
  WORKS(cu.cuEventRecord(a, NULL));
  WORKS(cu.cuEventRecordWithFlags(b, NULL, 0));
  WORKS(cu.cuEventRecord(no_time, NULL));
  WORKS(cu.cuStreamWaitEvent(NULL, a, 0));
  SAME(cu.cuStreamWaitEvent(NULL, a, 2), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuEventSynchronize(b));
  WORKS(cu.cuEventElapsedTime(&ms, a, b));
  ck_assert(ms >= 0 && ms < 10000);
  SAME(cu.cuEventElapsedTime_v2(&ms, a, no_time), CUDA_ERROR_INVALID_HANDLE);
  WORKS(cu.cuEventDestroy_v2(a));
  SAME(cu.cuEventRecord(a, NULL), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

static int called;
static CUresult in_callback;
static void count(void *data) {
  CUdeviceptr p;
  called += *(int *)data;
  in_callback = cu.cuMemAlloc_v2(&p, 4);
  const char *name;
  if (cu.cuGetErrorName(in_callback, &name)) in_callback = CUDA_ERROR_UNKNOWN;
}
static void told(CUstream s, CUresult status, void *data) {
  if (!status) count(data);
}

START_TEST(the_hosts_functions) {
  int by = 3;
  cu_begin();
  WORKS(cu.cuLaunchHostFunc(NULL, count, &by));
  ck_assert_int_eq(called, 3);
  SAME(in_callback, CUDA_ERROR_NOT_PERMITTED);
  WORKS(cu.cuStreamAddCallback(NULL, told, &by, 0));
  ck_assert_int_eq(called, 6);
  SAME(cu.cuStreamAddCallback(NULL, told, &by, 1), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuLaunchHostFunc(NULL, NULL, &by), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

typedef struct wait_row {
  uint64_t there, value;
  unsigned flags;
  bool wide, over;
} wait_row;
static const wait_row wait_rows[] = {
    {5, 5, CU_STREAM_WAIT_VALUE_GEQ, false, true},          {4, 5, CU_STREAM_WAIT_VALUE_GEQ, false, false},
    {0, 0xffffffff, CU_STREAM_WAIT_VALUE_GEQ, false, true}, // around the end
    {6, 5, CU_STREAM_WAIT_VALUE_EQ, false, false},          {6, 2, CU_STREAM_WAIT_VALUE_AND, false, true},
    {6, 1, CU_STREAM_WAIT_VALUE_AND, false, false},         {0xffffffff, 0, CU_STREAM_WAIT_VALUE_NOR, false, false},
    {0xffffffff, 0, CU_STREAM_WAIT_VALUE_NOR, true, true},  {(uint64_t)1 << 40, (uint64_t)1 << 40, 1, true, true},
};

START_TEST(values_in_memory) {
  const wait_row *r = &wait_rows[_i];
  cu_begin();
  CUdeviceptr p = cu_memory(16);
  WORKS(r->wide ? cu.cuStreamWriteValue64_v2(NULL, p, r->there, 0)
                : cu.cuStreamWriteValue32_v2(NULL, p, (uint32_t)r->there, 0));
  SAME(cu.cuStreamWriteValue32_v2(NULL, p + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuStreamWriteValue32_v2(NULL, p + 16, 1, 0), CUDA_ERROR_INVALID_VALUE);
  WORKS(r->wide ? cu.cuStreamWaitValue64_v2(NULL, p, r->value, r->flags)
                : cu.cuStreamWaitValue32_v2(NULL, p, (uint32_t)r->value, r->flags));
  SAME(cu.cuStreamSynchronize(NULL), r->over ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_TIMEOUT);
}
END_TEST

int main(void) {
  return RUN_TESTS("driver_memory", IN_CHILDREN, {allocations}, {memory_begins_as_zero_and_ends_as_none},
                   {kernels_use_memory_of_every_kind, ASYNC + 1}, {only_registered_bytes}, {pools},
                   {what_an_address_is}, {copies_in_a_line}, {copies_of_boxes, KL_COUNT(box_rows)}, {fills}, {streams},
                   {events}, {the_hosts_functions}, {values_in_memory, KL_COUNT(wait_rows)});
}
