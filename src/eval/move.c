// Ops that move elements without computing: strided copies over the planes of a value, and reinterpretation of bits.
#include "eval/impl.h"

// --- strided copies -----------------------------------------------------------------------------------------------

void kl_ev_walk_add(kl_ev_walk *w, int64_t extent, int64_t src_stride, int64_t dst_stride) {
  if (extent == 0) w->empty = true;
  if (extent <= 1 || w->empty) return;
  if (w->n) {
    uint32_t last = w->n - 1;
    if (w->src[last] == extent * src_stride && w->dst[last] == extent * dst_stride) {
      w->extent[last] *= extent;
      w->src[last] = src_stride;
      w->dst[last] = dst_stride;
      return;
    }
  }
  w->extent[w->n] = extent;
  w->src[w->n] = src_stride;
  w->dst[w->n++] = dst_stride;
}

typedef struct copy_job {
  const kl_ev_walk *w;
  size_t size;
  const char *src;
  char *dst;
} copy_job;

#define COPY_LOOP(N)                                                                                                   \
  case N:                                                                                                              \
    for (int64_t i = 0; i < n; i++) memcpy(dst + i * ds, src + i * ss, N);                                             \
    break;

static void copy_run(size_t size, int64_t n, const char *src, int64_t ss, char *dst, int64_t ds) {
  if (ss == (int64_t)size && ds == (int64_t)size) {
    memcpy(dst, src, (size_t)n * size);
    return;
  }
  switch (size) {
    COPY_LOOP(1)
    COPY_LOOP(2)
    COPY_LOOP(4)
    COPY_LOOP(8)
    COPY_LOOP(16)
  }
}

// Rows [begin, end): all dimensions but the last, flattened.
static void copy_rows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const copy_job *job = arg;
  const kl_ev_walk *w = job->w;
  int64_t at[KL_EV_MAX_DIMS], size = (int64_t)job->size, src = w->src_base, dst = w->dst_base, rest = begin;
  uint32_t last = w->n ? w->n - 1 : 0;
  for (uint32_t d = last; d-- > 0;) {
    at[d] = rest % w->extent[d];
    rest /= w->extent[d];
    src += at[d] * w->src[d];
    dst += at[d] * w->dst[d];
  }
  for (int64_t row = begin; row < end; row++) {
    if (w->n)
      copy_run(job->size, w->extent[last], job->src + src * size, w->src[last] * size, job->dst + dst * size,
               w->dst[last] * size);
    else
      copy_run(job->size, 1, job->src + src * size, size, job->dst + dst * size, size);
    for (uint32_t d = last; d-- > 0;) {
      src += w->src[d];
      dst += w->dst[d];
      if (++at[d] < w->extent[d]) break;
      src -= w->src[d] * w->extent[d];
      dst -= w->dst[d] * w->extent[d];
      at[d] = 0;
    }
  }
}

void kl_ev_copy_here(const kl_ev_walk *w, size_t size, const void *src, void *dst) {
  if (w->empty) return;
  int64_t rows = 1;
  for (uint32_t d = 0; d + 1 < w->n; d++) rows *= w->extent[d];
  copy_rows(&(copy_job){w, size, src, dst}, 0, 0, rows);
}

static void copy_walk(const kl_ev *ev, const kl_ev_walk *w, size_t size, const void *src, void *dst) {
  if (w->empty) return;
  int64_t rows = 1, row = w->n ? w->extent[w->n - 1] : 1;
  for (uint32_t d = 0; d + 1 < w->n; d++) rows *= w->extent[d];
  kl_ev_parallel(ev, rows, row >= 1 << 16 ? 1 : (1 << 16) / row, copy_rows, &(copy_job){w, size, src, dst});
}

// A long last dimension is cut into rows, so that threads can share it.
void kl_ev_copy(const kl_ev *ev, const kl_ev_walk *w, size_t size, const void *src, void *dst) {
  const int64_t row = 1 << 15;
  uint32_t last = w->n ? w->n - 1 : 0;
  if (w->n == 0 || w->empty || w->n == KL_EV_MAX_DIMS || w->extent[last] < 4 * row) {
    copy_walk(ev, w, size, src, dst);
    return;
  }
  kl_ev_walk head = *w, tail = *w;
  int64_t extent = w->extent[last], rest = extent % row;
  head.n++;
  head.extent[last] = extent / row;
  head.src[last] = w->src[last] * row;
  head.dst[last] = w->dst[last] * row;
  head.extent[last + 1] = row;
  head.src[last + 1] = w->src[last];
  head.dst[last + 1] = w->dst[last];
  copy_walk(ev, &head, size, src, dst);
  tail.extent[last] = rest;
  tail.empty = rest == 0;
  tail.src_base += (extent - rest) * w->src[last];
  tail.dst_base += (extent - rest) * w->dst[last];
  copy_walk(ev, &tail, size, src, dst);
}

void kl_ev_copy_planes(const kl_ev *ev, const kl_ev_walk *w, const kl_evval *src, kl_evval *dst) {
  size_t size = kl_ev_size(dst->shape->dtype);
  for (int plane = KL_EV_DATA; plane <= KL_EV_HI; plane++)
    if (plane == KL_EV_DATA || dst->plane[plane] != dst->plane[KL_EV_DATA])
      kl_ev_copy(ev, w, size, kl_ev_plane(src, plane), kl_ev_plane(dst, plane));
  uint8_t closed = 0;
  if (!dst->plane[KL_EV_ANY]) return;
  if (src->plane[KL_EV_ANY]) {
    kl_ev_copy(ev, w, 1, kl_ev_plane(src, KL_EV_ANY), kl_ev_plane(dst, KL_EV_ANY));
    return;
  }
  kl_ev_walk none = *w;
  memset(none.src, 0, sizeof none.src);
  none.src_base = 0;
  kl_ev_copy(ev, &none, 1, &closed, kl_ev_plane(dst, KL_EV_ANY));
}

void kl_ev_strides(const kl_shape *s, int64_t *strides) {
  int64_t stride = 1;
  for (uint32_t d = s->rank; d-- > 0;) {
    strides[d] = stride;
    stride = (int64_t)((uint64_t)stride * (uint64_t)s->dims[d]); // may wrap where the array is empty
  }
}

// The operand's value for every output index that the walk reaches from it.
static kiln_status gather(kl_ev *ev, const kl_shape *shape, const kl_ev_walk *w, const kl_evval *src, kl_evval *out) {
  KL_TRY(kl_ev_new(ev, shape, false, !kl_ev_exact(src), out));
  out->raw = src->raw;
  kl_ev_copy_planes(ev, w, src, out);
  return KILN_OK;
}

kiln_status kl_ev_expand(kl_ev *ev, const kl_evval *v, kl_evval *out) {
  if (!v->splat) {
    *out = kl_ev_share(v, v->shape);
    return KILN_OK;
  }
  kl_ev_walk w = {0};
  kl_ev_walk_add(&w, v->shape->count, 0, 1);
  return gather(ev, v->shape, &w, v, out);
}

// --- index transforms ---------------------------------------------------------------------------------------------

static kiln_status broadcast(kl_ev *ev, const kl_instr *in, const kl_evval *src, kl_evval *out) {
  const kl_shape *s = in->shape;
  int64_t *strides = kl_alloc(ev->cx, sizeof(int64_t) * (src->shape->rank + 1));
  kl_ev_strides(src->shape, strides);
  kl_ev_walk w = {0};
  for (uint32_t d = 0; d < s->rank; d++) {
    int64_t from = 0;
    for (uint32_t k = 0; k < in->ndims && k < src->shape->rank; k++)
      if (in->dims[k] == d && src->shape->dims[k] != 1) from = strides[k];
    int64_t inner = 1; // row-major stride of d; no overflow, as the array is not empty
    for (uint32_t k = d + 1; k < s->rank; k++) inner *= s->dims[k];
    kl_ev_walk_add(&w, s->dims[d], from, inner);
  }
  kl_free(ev->cx, strides, sizeof(int64_t) * (src->shape->rank + 1));
  return gather(ev, s, &w, src, out);
}

static kiln_status transpose(kl_ev *ev, const kl_instr *in, const kl_evval *src, kl_evval *out) {
  const kl_shape *s = in->shape;
  int64_t *strides = kl_alloc(ev->cx, 2 * sizeof(int64_t) * (s->rank + 1)), *to = strides + s->rank + 1;
  kl_ev_strides(src->shape, strides);
  kl_ev_strides(s, to);
  kl_ev_walk w = {0};
  for (uint32_t d = 0; d < s->rank; d++) kl_ev_walk_add(&w, s->dims[d], strides[in->dims[d]], to[d]);
  kl_free(ev->cx, strides, 2 * sizeof(int64_t) * (s->rank + 1));
  return gather(ev, s, &w, src, out);
}

static kiln_status slice(kl_ev *ev, const kl_instr *in, const kl_evval *src, kl_evval *out) {
  const kl_shape *s = in->shape;
  int64_t *strides = kl_alloc(ev->cx, 2 * sizeof(int64_t) * (s->rank + 1)), *to = strides + s->rank + 1;
  kl_ev_strides(src->shape, strides);
  kl_ev_strides(s, to);
  kl_ev_walk w = {0};
  for (uint32_t d = 0; d < s->rank; d++) {
    w.src_base += in->slice[d].start * strides[d];
    // A stride may exceed the dimension where one element is taken.
    kl_ev_walk_add(&w, s->dims[d], s->dims[d] > 1 ? in->slice[d].stride * strides[d] : 0, to[d]);
  }
  kl_free(ev->cx, strides, 2 * sizeof(int64_t) * (s->rank + 1));
  return gather(ev, s, &w, src, out);
}

static bool has_dim(const kl_instr *in, uint32_t d) {
  for (uint32_t k = 0; k < in->ndims; k++)
    if (in->dims[k] == d) return true;
  return false;
}

static kiln_status reverse(kl_ev *ev, const kl_instr *in, const kl_evval *src, kl_evval *out) {
  const kl_shape *s = in->shape;
  int64_t *strides = kl_alloc(ev->cx, sizeof(int64_t) * (s->rank + 1));
  kl_ev_strides(s, strides);
  kl_ev_walk w = {0};
  for (uint32_t d = 0; d < s->rank; d++) {
    bool flip = has_dim(in, d);
    if (flip) w.src_base += (s->dims[d] - 1) * strides[d];
    kl_ev_walk_add(&w, s->dims[d], flip ? -strides[d] : strides[d], strides[d]);
  }
  kl_free(ev->cx, strides, sizeof(int64_t) * (s->rank + 1));
  return gather(ev, s, &w, src, out);
}

// --- several operands ---------------------------------------------------------------------------------------------

static kiln_status new_joined(kl_ev *ev, const kl_shape *s, const kl_evval *const *operands, uint32_t n,
                              kl_evval *out) {
  bool inexact = false, raw = true;
  for (uint32_t k = 0; k < n; k++) {
    inexact |= !kl_ev_exact(operands[k]);
    raw &= operands[k]->raw;
  }
  KL_TRY(kl_ev_new(ev, s, false, inexact, out));
  out->raw = raw;
  return KILN_OK;
}

static kiln_status concatenate(kl_ev *ev, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  const kl_shape *s = in->shape;
  KL_TRY(new_joined(ev, s, operands, in->noperands, out));
  if (s->count == 0) return KILN_OK;
  int64_t inner = 1, outer = 1, at = 0;
  uint32_t dim = (uint32_t)in->dims[0];
  for (uint32_t d = 0; d < s->rank; d++) d<dim ? (outer *= s->dims[d]) : d> dim ? (inner *= s->dims[d]) : 0;
  for (uint32_t k = 0; k < in->noperands; k++) {
    int64_t extent = operands[k]->shape->dims[dim] * inner;
    bool single = kl_ev_single(operands[k]);
    kl_ev_walk w = {.dst_base = at};
    kl_ev_walk_add(&w, outer, single ? 0 : extent, s->dims[dim] * inner);
    kl_ev_walk_add(&w, extent, single ? 0 : 1, 1);
    kl_ev_copy_planes(ev, &w, operands[k], out);
    at += extent;
  }
  return KILN_OK;
}

// Which of the operand's indices 0 .. n-1 land in the output: i * (interior + 1) + low in [0, extent).
static void pad_range(const kl_pad_dim *p, int64_t n, int64_t extent, int64_t *first, int64_t *count) {
  __int128 step = (__int128)p->interior + 1, low = p->low;
  __int128 begin = low < 0 ? (-low + step - 1) / step : 0, end = extent > low ? (extent - low + step - 1) / step : 0;
  if (end > n) end = n;
  *first = begin < end ? (int64_t)begin : 0;
  *count = begin < end ? (int64_t)(end - begin) : 0;
}

static kiln_status pad(kl_ev *ev, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  const kl_shape *s = in->shape;
  const kl_evval *src = operands[0];
  kl_evval fill = *operands[1];
  fill.shape = s;
  fill.splat = true;
  KL_TRY(new_joined(ev, s, operands, 2, out));
  kl_ev_walk all = {0};
  kl_ev_walk_add(&all, s->count, 0, 1);
  kl_ev_copy_planes(ev, &all, &fill, out);
  if (s->count == 0 || src->shape->count == 0) return KILN_OK;
  bool single = kl_ev_single(src);
  int64_t *strides = kl_alloc(ev->cx, 2 * sizeof(int64_t) * (s->rank + 1)), *to = strides + s->rank + 1;
  kl_ev_strides(src->shape, strides);
  kl_ev_strides(s, to);
  kl_ev_walk w = {0};
  for (uint32_t d = 0; d < s->rank; d++) {
    const kl_pad_dim *p = &in->pad[d];
    int64_t first, count;
    pad_range(p, src->shape->dims[d], s->dims[d], &first, &count);
    if (count) {
      w.src_base += single ? 0 : first * strides[d];
      w.dst_base += (int64_t)(p->low + (__int128)first * ((__int128)p->interior + 1)) * to[d];
    }
    kl_ev_walk_add(&w, count, single ? 0 : strides[d], count > 1 ? (p->interior + 1) * to[d] : 0);
  }
  kl_ev_copy_planes(ev, &w, src, out);
  kl_free(ev->cx, strides, 2 * sizeof(int64_t) * (s->rank + 1));
  return KILN_OK;
}

// --- sources and dispatch -----------------------------------------------------------------------------------------

// One row of converted indices, then spread over the other dimensions.
static kiln_status iota(kl_ev *ev, const kl_instr *in, kl_evval *out) {
  const kl_shape *s = in->shape;
  kl_dtype t = s->dtype, part = kl_is_complex(t) ? kl_info(t)->part : t;
  KL_TRY(kl_ev_new(ev, s, false, false, out));
  out->raw = true;
  if (s->count == 0) return KILN_OK;
  uint32_t dim = (uint32_t)in->number;
  size_t row_bytes = (size_t)s->dims[dim] * kl_ev_size(t);
  void *row = kl_try_alloc(ev->cx, row_bytes);
  if (!row) {
    kl_ev_free(ev, out);
    return kl_out_of_memory(ev->cx, row_bytes, "iota");
  }
  for (int64_t i = 0; i < s->dims[dim]; i++) kl_element_set(t, row, i, 0, kl_convert(KILN_S64, part, (uint64_t)i));
  kl_ev_walk w = {0};
  int64_t inner = s->count;
  for (uint32_t d = 0; d < s->rank; d++) {
    inner /= s->dims[d];
    kl_ev_walk_add(&w, s->dims[d], d == dim ? 1 : 0, inner);
  }
  kl_ev_copy(ev, &w, kl_ev_size(t), row, kl_ev_plane(out, KL_EV_DATA));
  kl_free(ev->cx, row, row_bytes);
  return KILN_OK;
}

kiln_status kl_ev_move(kl_ev *ev, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  const kl_evval *src = in->noperands ? operands[0] : NULL;
  switch (in->op) {
  case KL_OP_IOTA: return iota(ev, in, out);
  case KL_OP_CONCATENATE: return concatenate(ev, in, operands, out);
  case KL_OP_PAD: return pad(ev, in, operands, out);
  case KL_OP_BITCAST: return kl_ev_bitcast(ev, in, src, out);
  default: break;
  }
  if (in->shape->count == 0) return kl_ev_new(ev, in->shape, false, false, out);
  if (in->op == KL_OP_RESHAPE) {
    *out = kl_ev_share(src, in->shape);
    return KILN_OK;
  }
  if (kl_ev_single(src)) return kl_ev_spread(ev, src, in->shape, out);
  switch (in->op) {
  case KL_OP_BROADCAST: return broadcast(ev, in, src, out);
  case KL_OP_TRANSPOSE: return transpose(ev, in, src, out);
  case KL_OP_SLICE: return slice(ev, in, src, out);
  case KL_OP_REVERSE: return reverse(ev, in, src, out);
  default: return kl_unsupported(ev->cx, in->span, "no evaluation of %s", kl_op_name(in->op));
  }
}
