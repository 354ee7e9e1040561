// Copies and fills: every form is a box of three dimensions.

#include "sim/driver/impl.h"

// --- where a side of a copy lies
// --------------------------------------------------------------------------------------

typedef struct side {
  CUmemorytype type;
  char *host;
  CUdeviceptr device;
  size_t x, y, z, pitch, height;
} side;

static side source_of(const CUDA_MEMCPY3D *c) {
  return (side){
      c->srcMemoryType, (char *)(uintptr_t)c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcZ, c->srcPitch,
      c->srcHeight};
}
static side target_of(const CUDA_MEMCPY3D *c) {
  return (side){c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes,
                c->dstY,          c->dstZ,    c->dstPitch,  c->dstHeight};
}

// Offset of the first byte, and how many bytes there are up to the last; false if that is no box.
static bool extent(const CUDA_MEMCPY3D *c, const side *s, size_t *at, size_t *bytes) {
  size_t plane, offset, rows, end;
  if (__builtin_mul_overflow(s->pitch, s->height, &plane)) return false;
  if (__builtin_mul_overflow(plane, s->z, at) || __builtin_mul_overflow(s->pitch, s->y, &offset)) return false;
  if (__builtin_add_overflow(*at, offset, at) || __builtin_add_overflow(*at, s->x, at)) return false;
  if (__builtin_mul_overflow(plane, c->Depth - 1, bytes) || __builtin_mul_overflow(s->pitch, c->Height - 1, &rows))
    return false;
  if (__builtin_add_overflow(*bytes, rows, bytes) || __builtin_add_overflow(*bytes, c->WidthInBytes, bytes))
    return false;
  return !__builtin_add_overflow(*at, *bytes, &end);
}

// The host's address of a side's first byte, and the device's where it has one.
static CUresult resolve(const CUDA_MEMCPY3D *c, side s, char **out, uint64_t *address) {
  size_t at, bytes, width;
  if (__builtin_add_overflow(s.x, c->WidthInBytes, &width)) return CUDA_ERROR_INVALID_VALUE;
  if (s.pitch == 0) s.pitch = width;
  if (s.height == 0) s.height = s.y + c->Height;
  if (s.pitch < width && (c->Height > 1 || c->Depth > 1)) return CUDA_ERROR_INVALID_VALUE;
  if (c->Depth > 1 && s.height < c->Height) return CUDA_ERROR_INVALID_VALUE;
  if (!extent(c, &s, &at, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  bool unified = s.type == CU_MEMORYTYPE_UNIFIED;
  *address = 0;
  if (s.type == CU_MEMORYTYPE_DEVICE || (unified && kl_memory_find(&kl_sim.memory, s.device + at))) {
    *out = kl_memory_at(&kl_sim.memory, s.device + at, bytes);
    *address = s.device + at;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  char *host = unified ? (char *)(uintptr_t)s.device : s.host;
  if ((s.type != CU_MEMORYTYPE_HOST && !unified) || !host) return CUDA_ERROR_INVALID_VALUE;
  if (unified && s.device >= KL_DEVICE_MEMORY && s.device < kl_sim.memory.next) return CUDA_ERROR_INVALID_VALUE;
  *out = host + at;
  return CUDA_SUCCESS;
}

static bool is_empty(const CUDA_MEMCPY3D *c) {
  return c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0;
}

CUresult kl_copy_check(const CUDA_MEMCPY3D *c) {
  char *p;
  if (c->srcLOD || c->dstLOD) return CUDA_ERROR_INVALID_VALUE;
  if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return CUDA_ERROR_INVALID_HANDLE; // none can be made
  if (is_empty(c)) return CUDA_SUCCESS;
  uint64_t address;
  KL_RESULT(resolve(c, source_of(c), &p, &address));
  return resolve(c, target_of(c), &p, &address);
}

// What the checks of undefined values know of bytes goes with them. What the host reads must have been written.
static void note(uint64_t to, uint64_t from, uint64_t bytes) {
  const uint32_t both = KL_CHECK_UNDEFINED | KL_CHECK_UNWRITTEN;
  uint64_t at, n;
  if (!(kl_sim.options.checks & KL_CHECK_UNDEFINED)) return;
  if (to && from) kl_memory_define_as(&kl_sim.memory, to, from, bytes);
  if (to && !from) kl_memory_define(&kl_sim.memory, to, bytes);
  while (from && !to && (kl_sim.options.checks & both) == both &&
         kl_memory_find_undefined(&kl_sim.memory, from, bytes, &at, &n)) {
    kl_findings_unwritten(&kl_sim.findings, &kl_sim.memory, at, n);
    kl_memory_define(&kl_sim.memory, at, n);
    bytes -= at + n - from;
    from = at + n;
  }
}

CUresult kl_copy_perform(const CUDA_MEMCPY3D *c) {
  char *from, *to;
  uint64_t from_address, to_address;
  if (is_empty(c)) return CUDA_SUCCESS;
  side s = source_of(c), t = target_of(c);
  KL_RESULT(resolve(c, s, &from, &from_address));
  KL_RESULT(resolve(c, t, &to, &to_address));
  size_t from_pitch = s.pitch ? s.pitch : s.x + c->WidthInBytes, to_pitch = t.pitch ? t.pitch : t.x + c->WidthInBytes;
  size_t from_plane = from_pitch * (s.height ? s.height : s.y + c->Height);
  size_t to_plane = to_pitch * (t.height ? t.height : t.y + c->Height);
  for (size_t z = 0; z < c->Depth; z++)
    for (size_t y = 0; y < c->Height; y++) {
      size_t to_row = z * to_plane + y * to_pitch, from_row = z * from_plane + y * from_pitch;
      memmove(to + to_row, from + from_row, c->WidthInBytes);
      note(to_address ? to_address + to_row : 0, from_address ? from_address + from_row : 0, c->WidthInBytes);
    }
  return CUDA_SUCCESS;
}

// --- copies by kind -------------------------------------------------------------------------------------------------

static CUresult submit_copy(const CUDA_MEMCPY3D *c, CUstream stream) {
  kl_cu_stream *s;
  KL_RESULT(kl_stream_check(stream, &s));
  KL_RESULT(kl_copy_check(c));
  kl_work w = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .context = s->o.context->o.handle};
  w.copy = *c;
  return kl_submit(s, &w);
}

// Calls without a stream wait: a capture does not allow that.
static CUresult copy_now(const CUDA_MEMCPY3D *c) {
  KL_RESULT(kl_capture_permits());
  KL_RESULT(kl_copy_check(c));
  return kl_copy_perform(c);
}

static CUDA_MEMCPY3D line(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from, size_t bytes) {
  CUDA_MEMCPY3D c = {
      .srcMemoryType = from_type, .dstMemoryType = to_type, .WidthInBytes = bytes, .Height = 1, .Depth = 1};
  if (from_type == CU_MEMORYTYPE_HOST)
    c.srcHost = (const void *)(uintptr_t)from;
  else
    c.srcDevice = from;
  if (to_type == CU_MEMORYTYPE_HOST)
    c.dstHost = (void *)(uintptr_t)to;
  else
    c.dstDevice = to;
  return c;
}

enum { HOST = CU_MEMORYTYPE_HOST, DEVICE = CU_MEMORYTYPE_DEVICE, EITHER = CU_MEMORYTYPE_UNIFIED };

CUresult kl_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n) {
  CUDA_MEMCPY3D c = line(EITHER, to, EITHER, from, n);
  return copy_now(&c);
}
CUresult kl_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
  CUDA_MEMCPY3D c = line(EITHER, to, EITHER, from, n);
  return submit_copy(&c, stream);
}
CUresult kl_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n) {
  CUDA_MEMCPY3D c = line(DEVICE, to, HOST, (uintptr_t)from, n);
  return copy_now(&c);
}
CUresult kl_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream stream) {
  CUDA_MEMCPY3D c = line(DEVICE, to, HOST, (uintptr_t)from, n);
  return submit_copy(&c, stream);
}
CUresult kl_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n) {
  CUDA_MEMCPY3D c = line(HOST, (uintptr_t)to, DEVICE, from, n);
  return copy_now(&c);
}
CUresult kl_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream stream) {
  CUDA_MEMCPY3D c = line(HOST, (uintptr_t)to, DEVICE, from, n);
  return submit_copy(&c, stream);
}
CUresult kl_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) {
  CUDA_MEMCPY3D c = line(DEVICE, to, DEVICE, from, n);
  return copy_now(&c);
}
CUresult kl_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
  CUDA_MEMCPY3D c = line(DEVICE, to, DEVICE, from, n);
  return submit_copy(&c, stream);
}

static CUresult contexts_check(CUcontext a, CUcontext b) {
  kl_cu_context *c;
  if (a) KL_RESULT(kl_context_check(a, &c));
  if (b) KL_RESULT(kl_context_check(b, &c));
  return CUDA_SUCCESS;
}

CUresult kl_cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t n) {
  CUDA_MEMCPY3D c = line(DEVICE, to, DEVICE, from, n);
  KL_RESULT(contexts_check(to_context, from_context));
  return copy_now(&c);
}
CUresult kl_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t n,
                              CUstream stream) {
  CUDA_MEMCPY3D c = line(DEVICE, to, DEVICE, from, n);
  KL_RESULT(contexts_check(to_context, from_context));
  return submit_copy(&c, stream);
}

static CUDA_MEMCPY3D of_plane(const CUDA_MEMCPY2D *p) {
  return (CUDA_MEMCPY3D){.srcXInBytes = p->srcXInBytes,
                         .srcY = p->srcY,
                         .srcMemoryType = p->srcMemoryType,
                         .srcHost = p->srcHost,
                         .srcDevice = p->srcDevice,
                         .srcPitch = p->srcPitch,
                         .dstXInBytes = p->dstXInBytes,
                         .dstY = p->dstY,
                         .dstMemoryType = p->dstMemoryType,
                         .dstHost = p->dstHost,
                         .dstDevice = p->dstDevice,
                         .dstPitch = p->dstPitch,
                         .WidthInBytes = p->WidthInBytes,
                         .Height = p->Height,
                         .Depth = 1};
}

CUresult kl_cuMemcpy2D_v2(const CUDA_MEMCPY2D *p) {
  KL_GIVEN(p);
  CUDA_MEMCPY3D c = of_plane(p);
  return copy_now(&c);
}
CUresult kl_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *p) {
  return kl_cuMemcpy2D_v2(p);
}
CUresult kl_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream stream) {
  KL_GIVEN(p);
  CUDA_MEMCPY3D c = of_plane(p);
  return submit_copy(&c, stream);
}
CUresult kl_cuMemcpy3D_v2(const CUDA_MEMCPY3D *c) {
  KL_GIVEN(c);
  return copy_now(c);
}
CUresult kl_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream) {
  KL_GIVEN(c);
  return submit_copy(c, stream);
}

// The same struct, but for contexts in place of what is reserved.
static CUresult of_peers(const CUDA_MEMCPY3D_PEER *p, CUDA_MEMCPY3D *out) {
  KL_GIVEN(p);
  KL_RESULT(contexts_check(p->dstContext, p->srcContext));
  _Static_assert(sizeof *p == sizeof *out, "as the interface has them");
  memcpy(out, p, sizeof *out);
  out->reserved0 = out->reserved1 = NULL;
  return CUDA_SUCCESS;
}

CUresult kl_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *p) {
  CUDA_MEMCPY3D c;
  KL_RESULT(of_peers(p, &c));
  return copy_now(&c);
}
CUresult kl_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream stream) {
  CUDA_MEMCPY3D c;
  KL_RESULT(of_peers(p, &c));
  return submit_copy(&c, stream);
}

// --- fills ----------------------------------------------------------------------------------------------------------

// Where the rows of a fill begin, and their pitch. INVALID_VALUE: misaligned, or not all in one piece of memory.
static CUresult fill_place(const CUDA_MEMSET_NODE_PARAMS *f, char **to, size_t *row, size_t *pitch) {
  size_t rows, bytes;
  unsigned e = f->elementSize;
  if (e != 1 && e != 2 && e != 4) return CUDA_ERROR_INVALID_VALUE;
  if (f->dst % e || (f->height > 1 && f->pitch % e)) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(f->width, e, row)) return CUDA_ERROR_INVALID_VALUE;
  *pitch = f->height > 1 ? f->pitch : *row;
  *to = NULL;
  if (*row == 0 || f->height == 0) return CUDA_SUCCESS;
  if (*pitch < *row) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(*pitch, f->height - 1, &rows) || __builtin_add_overflow(rows, *row, &bytes))
    return CUDA_ERROR_INVALID_VALUE;
  *to = kl_memory_at(&kl_sim.memory, f->dst, bytes);
  return *to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult kl_fill_check(const CUDA_MEMSET_NODE_PARAMS *f) {
  char *to;
  size_t row, pitch;
  return fill_place(f, &to, &row, &pitch);
}

CUresult kl_fill_perform(const CUDA_MEMSET_NODE_PARAMS *f) {
  char *to;
  size_t row, pitch;
  KL_RESULT(fill_place(f, &to, &row, &pitch));
  for (size_t y = 0; to && y < f->height; y++, to += pitch) {
    if (kl_sim.options.checks) kl_memory_define(&kl_sim.memory, f->dst + y * pitch, row);
    if (f->elementSize == 1)
      memset(to, (int)f->value, row);
    else
      for (size_t x = 0; x < row; x += f->elementSize) memcpy(to + x, &f->value, f->elementSize);
  }
  return CUDA_SUCCESS;
}

static CUDA_MEMSET_NODE_PARAMS fill(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
                                    size_t height) {
  return (CUDA_MEMSET_NODE_PARAMS){to, pitch, value, element, width, height};
}

static CUresult fill_now(CUDA_MEMSET_NODE_PARAMS f) {
  KL_RESULT(kl_capture_permits());
  return kl_fill_perform(&f);
}

static CUresult submit_fill(CUDA_MEMSET_NODE_PARAMS f, CUstream stream) {
  kl_cu_stream *s;
  KL_RESULT(kl_stream_check(stream, &s));
  KL_RESULT(kl_fill_check(&f));
  kl_work w = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .context = s->o.context->o.handle};
  w.fill = f;
  return kl_submit(s, &w);
}

#define FILLS(NAME, NAME_2D, T, element)                                                                               \
  CUresult kl_cuMemset##NAME##_v2(CUdeviceptr to, T value, size_t n) {                                                 \
    return fill_now(fill(to, 0, value, element, n, 1));                                                                \
  }                                                                                                                    \
  CUresult kl_cuMemset##NAME##Async(CUdeviceptr to, T value, size_t n, CUstream stream) {                              \
    return submit_fill(fill(to, 0, value, element, n, 1), stream);                                                     \
  }                                                                                                                    \
  CUresult kl_cuMemset##NAME_2D##_v2(CUdeviceptr to, size_t pitch, T value, size_t width, size_t height) {             \
    return fill_now(fill(to, pitch, value, element, width, height));                                                   \
  }                                                                                                                    \
  CUresult kl_cuMemset##NAME_2D##Async(CUdeviceptr to, size_t pitch, T value, size_t width, size_t height,             \
                                       CUstream stream) {                                                              \
    return submit_fill(fill(to, pitch, value, element, width, height), stream);                                        \
  }
FILLS(D8, D2D8, unsigned char, 1)
FILLS(D16, D2D16, unsigned short, 2)
FILLS(D32, D2D32, unsigned, 4)
