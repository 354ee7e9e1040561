// Fourier transforms of as many points as there are: sums over all of them, of a length that is a value, as no fewer
// steps are known before that is. Dimensions of known lengths are transformed as ever, one after the other.
#include "ir/rewrite/sizes/room.h"

#include <math.h>

enum { MOST_POINTS = 1 << 16 };

static kl_dtype complex_of(kl_dtype t) {
  return t == KILN_F64 || t == KILN_C128 ? KILN_C128 : KILN_C64;
}

static uint32_t real_number(kl_graph *g, kl_dtype t, double v, uint32_t like) {
  const kl_shape *s = kl_graph_shape(g, like);
  return kl_graph_bits(g, t, (uint64_t[2]){kl_float_encode(t, v), 0}, s->rank, s->dims);
}

// exp(-2 pi i m j / size), or its conjugate, of [outputs, points]: m j modulo the size, and from -size / 2 on, so that
// angles have few roundings. Where there is no point, 0.
static uint32_t roots(kl_graph *g, kl_dtype t, uint32_t size, int64_t outputs, int64_t points, bool inverse) {
  int64_t dims[2] = {outputs, points};
  kl_dtype part = kl_info(t)->part;
  kl_dtype places = outputs * points > INT32_MAX ? KILN_S64 : KILN_S32;
  uint32_t m = kl_graph_iota(g, places, 2, dims, 0), j = kl_graph_iota(g, places, 2, dims, 1);
  uint32_t n = kl_graph_convert(g, kl_graph_with(g, KL_OP_MAXIMUM, size, 1), places);
  n = kl_graph_broadcast(g, n, 2, dims, NULL);
  uint32_t at = kl_graph_binary(g, KL_OP_REMAINDER, kl_graph_binary(g, KL_OP_MULTIPLY, m, j), n);
  uint32_t far = kl_graph_compare(g, KL_GT, kl_graph_with(g, KL_OP_MULTIPLY, at, 2), n);
  at = kl_graph_select(g, far, kl_graph_binary(g, KL_OP_SUBTRACT, at, n), at);
  uint32_t angle = kl_graph_convert(g, at, part);
  angle = kl_graph_binary(g, KL_OP_MULTIPLY, angle, real_number(g, part, inverse ? 2 * M_PI : -2 * M_PI, angle));
  angle = kl_graph_binary(g, KL_OP_DIVIDE, angle, kl_graph_convert(g, n, part));
  return kl_graph_complex(g, kl_graph_unary(g, KL_OP_COS, angle), kl_graph_unary(g, KL_OP_SIN, angle));
}

// Along one dimension, of which there are `size` points: complex numbers, `outputs` of them.
static uint32_t sum_up(kl_sizing *z, uint32_t v, uint32_t dim, uint32_t size, int64_t outputs, bool inverse) {
  kl_graph *g = z->g;
  const kl_shape *s = kl_graph_shape(g, v);
  int64_t dims[KILN_MAX_RANK], kept[KILN_MAX_RANK], at[2] = {dim, dim + 1}, folded = dim + 1;
  kl_dtype t = complex_of(s->dtype);
  kl_extents x;
  for (uint32_t d = 0; d < s->rank; d++) {
    kept[d] = d + (d >= dim);
    dims[kept[d]] = s->dims[d];
    x.of[d] = d == dim ? size : KL_WHOLE;
  }
  dims[dim] = outputs;
  v = kl_size_mask(z, v, &x, kl_size_zero(z, s->dtype));
  if (!kl_is_complex(s->dtype)) v = kl_graph_complex(g, v, kl_graph_number_like(g, v, 0));
  uint32_t w = roots(g, t, size, outputs, s->dims[dim], inverse);
  w = kl_graph_broadcast(g, w, s->rank + 1, dims, at);
  v = kl_graph_binary(g, KL_OP_MULTIPLY, kl_graph_broadcast(g, v, s->rank + 1, dims, kept), w);
  v = kl_graph_reduce_over(g, v, 1, &folded, KL_COMBINE_ADD);
  if (!inverse) return v;
  uint32_t parts[2] = {kl_graph_unary(g, KL_OP_REAL, v), kl_graph_unary(g, KL_OP_IMAG, v)};
  const kl_shape *half = kl_graph_shape(g, parts[0]);
  uint32_t n = kl_graph_broadcast(g, kl_graph_convert(g, size, half->dtype), half->rank, half->dims, NULL);
  for (int i = 0; i < 2; i++) parts[i] = kl_graph_binary(g, KL_OP_DIVIDE, parts[i], n);
  return kl_graph_complex(g, parts[0], parts[1]);
}

// Along one dimension of a known length.
static uint32_t transform(kl_sizing *z, uint32_t v, uint32_t dim, int64_t length, kl_fft_type type) {
  kl_graph *g = z->g;
  const kl_shape *s = kl_graph_shape(g, v);
  int64_t order[KILN_MAX_RANK], to[KILN_MAX_RANK];
  kl_dtype t = type == KL_IRFFT ? kl_info(s->dtype)->part : complex_of(s->dtype);
  for (uint32_t d = 0; d < s->rank; d++) order[d] = d == dim ? s->rank - 1 : d + 1 == s->rank ? dim : d;
  v = kl_graph_transpose(g, v, order);
  s = kl_graph_shape(g, v);
  memcpy(to, s->dims, s->rank * sizeof *to);
  if (type == KL_IRFFT) to[s->rank - 1] = length;
  if (type == KL_RFFT) to[s->rank - 1] = length ? length / 2 + 1 : 0;
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  more->fft = type;
  more->sizes = (kl_ints){1, kl_arena_dup(&g->m->arena, &length, sizeof length)};
  kl_instr in = {.op = KL_OP_FFT, .more = more, .given = 1 | 2};
  in.shape = kl_graph_array(g, t, s->rank, to);
  return kl_graph_transpose(g, kl_size_emit(z, in, 1, &v), order);
}

static uint32_t one_dimension(kl_sizing *z, uint32_t v, uint32_t i) {
  kl_ints lengths = z->in->more->sizes;
  kl_fft_type type = z->in->more->fft;
  const kl_shape *s = z->shapes[0];
  uint32_t d = s->rank - lengths.n + i, size = kl_extent(z, 0, d);
  bool inverse = type == KL_IFFT || type == KL_IRFFT, last = i + 1 == lengths.n;
  if (size != KL_WHOLE) return sum_up(z, v, d, size, z->in->shape->dims[d], inverse);
  return transform(z, v, d, lengths.p[i], last ? type : inverse ? KL_IFFT : KL_FFT);
}

// Real numbers are those of the last dimension's transform: its operand is the first to be transformed, its result the
// last.
uint32_t kl_size_fft(kl_sizing *z) {
  kl_ints lengths = z->in->more->sizes;
  const kl_shape *s = z->shapes[0];
  kl_fft_type type = z->in->more->fft;
  uint32_t first = s->rank - lengths.n, v = z->values[0];
  bool any = false;
  for (uint32_t d = 0; d < s->rank; d++) {
    uint32_t size = z->out->of[d] = kl_extent(z, 0, d);
    if (size == KL_WHOLE || d < first) continue;
    any = true;
    if (type == KL_IRFFT && d + 1 == s->rank)
      return kl_size_refuse(z, "a last dimension of real numbers that is known");
    if (s->dims[d] > MOST_POINTS || s->rank == KILN_MAX_RANK)
      return kl_size_refuse(z, "at most 65,536 points along dynamic dimensions, and one dimension fewer");
    if (type != KL_RFFT || d + 1 < s->rank) continue;
    uint32_t there = kl_graph_convert(z->g, kl_graph_compare_with(z->g, KL_GT, size, 0), KILN_S32);
    z->out->of[d] = kl_graph_binary(z->g, KL_OP_ADD, kl_graph_with(z->g, KL_OP_DIVIDE, size, 2), there);
  }
  if (!any) return kl_size_keep(z);
  if (type == KL_RFFT) v = one_dimension(z, v, lengths.n - 1);
  for (uint32_t i = 0; i + (type == KL_RFFT || type == KL_IRFFT) < lengths.n; i++) v = one_dimension(z, v, i);
  return type == KL_IRFFT ? one_dimension(z, v, lengths.n - 1) : v;
}
