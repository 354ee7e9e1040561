// What each op makes of sizes: which dimension of its result has which, and what stands where elements would come from
// beyond one.
#include "ir/rewrite/sizes/room.h"

// --- sizes ----------------------------------------------------------------------------------------------------------

uint32_t kl_size_number(kl_sizing *z, int64_t v) {
  return kl_graph_number(z->g, KILN_S32, v, 0, NULL);
}

uint32_t kl_size_least(kl_sizing *z, uint32_t a, uint32_t b) {
  if (a == b || b == KL_WHOLE) return a;
  return a == KL_WHOLE ? b : kl_graph_binary(z->g, KL_OP_MINIMUM, a, b);
}

uint32_t kl_size_or_bound(kl_sizing *z, uint32_t size, int64_t bound) {
  return size == KL_WHOLE ? kl_size_number(z, bound) : size;
}

uint32_t kl_size_hold(kl_sizing *z, uint32_t size, int64_t least, int64_t most) {
  kl_held *h = *z->held;
  while (h && (h->size != size || h->least != least || h->most != most)) h = h->next;
  if (h) return h->value;
  uint32_t value = kl_graph_with(z->g, KL_OP_MINIMUM, kl_graph_with(z->g, KL_OP_MAXIMUM, size, least), most);
  *(h = KL_NEW(&z->g->scratch, kl_held)) = (kl_held){size, value, least, most, *z->held};
  *z->held = h;
  return value;
}

uint32_t kl_size_zero(kl_sizing *z, kl_dtype t) {
  return kl_graph_bits(z->g, t, (uint64_t[2]){0, 0}, 0, NULL);
}

uint32_t kl_size_there(kl_sizing *z, const kl_shape *s, const kl_extents *x) {
  uint32_t there = KL_WHOLE;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (x->of[d] == KL_WHOLE) continue;
    uint32_t at = kl_graph_iota(z->g, KILN_S32, s->rank, s->dims, d);
    uint32_t in = kl_graph_compare(z->g, KL_LT, at, kl_graph_broadcast(z->g, x->of[d], s->rank, s->dims, NULL));
    there = there == KL_WHOLE ? in : kl_graph_binary(z->g, KL_OP_AND, there, in);
  }
  return there;
}

uint32_t kl_size_mask(kl_sizing *z, uint32_t value, const kl_extents *x, uint32_t fill) {
  const kl_shape *s = kl_graph_shape(z->g, value);
  uint32_t there = kl_size_there(z, s, x);
  if (there == KL_WHOLE) return value;
  return kl_graph_select(z->g, there, value, kl_graph_broadcast(z->g, fill, s->rank, s->dims, NULL));
}

// --- ops as they are ------------------------------------------------------------------------------------------------

// Dimensions without a bound (`?`) stay what they are, and are refused as such.
static const kl_shape *without_dynamic(kiln_module *m, const kl_shape *s) {
  kl_shape own = *s;
  own.dynamic = NULL;
  const kl_shape *known = kl_shape_intern(m, &own);
  return known ? known : kl_shape_intern(m, s);
}

const kl_shape *kl_size_known(kl_sizing *z, const kl_shape *s) {
  return kl_map_shape(z->known, z->g->m, s, without_dynamic);
}

uint32_t kl_size_emit(kl_sizing *z, kl_instr in, uint32_t n, const uint32_t *values) {
  in.name = z->in->name;
  in.span = z->in->span;
  if (!in.more) in.more = &kl_no_more;
  in.noperands = n;
  in.operands = kl_arena_dup(&z->g->m->arena, values, n * sizeof *values);
  return kl_emit(&z->g->e, &in);
}

uint32_t kl_size_keep(kl_sizing *z) {
  kl_instr in = *z->in;
  in.shape = kl_size_known(z, in.shape);
  return kl_size_emit(z, in, in.noperands, z->values);
}

uint32_t kl_size_refuse(kl_sizing *z, const char *expected) {
  kl_unsupported(z->g->cx, z->in->span, "%s of an array of a dynamic size is not compiled here: expected %s",
                 kl_op_name(z->in->op), expected);
  z->refused = true;
  return kl_size_keep(z);
}

// --- element by element ---------------------------------------------------------------------------------------------

// Operands of as many dimensions as the result: the least of their sizes.
static uint32_t same_places(kl_sizing *z, int64_t but) {
  uint32_t rank = kl_shape_leaf(z->in->shape, 0)->rank;
  for (size_t leaf = 0; leaf < kl_shape_leaf_count(z->in->shape); leaf++)
    for (uint32_t k = 0; k < z->in->noperands; k++)
      for (uint32_t d = 0; z->shapes[k]->rank == rank && d < rank; d++)
        if (d != but) z->out[leaf].of[d] = kl_size_least(z, z->out[leaf].of[d], kl_extent(z, k, d));
  return KL_WHOLE;
}

static uint32_t convert(kl_sizing *z) {
  uint32_t from = z->shapes[0]->rank, to = z->in->shape->rank;
  if (from > to && kl_is_sized(z, 0, to)) return kl_size_refuse(z, "a last dimension that is not dynamic");
  for (uint32_t d = 0; d < from && d < to; d++) z->out->of[d] = kl_extent(z, 0, d);
  return kl_size_keep(z);
}

// --- moves ----------------------------------------------------------------------------------------------------------

static uint32_t slice(kl_sizing *z) {
  kl_extents beyond;
  bool zeros = false;
  for (uint32_t d = 0; d < z->in->shape->rank; d++) {
    kl_slice_dim s = z->in->slice[d];
    uint32_t size = beyond.of[d] = KL_WHOLE;
    if (!kl_is_sized(z, 0, d)) continue;
    size = kl_extent(z, 0, d);
    if (s.start || s.limit < z->shapes[0]->dims[d] || s.stride != 1) {
      size = kl_size_hold(z, size, s.start, s.limit);
      size = kl_graph_with(z->g, KL_OP_SUBTRACT, size, s.start);
      if (s.stride > INT32_MAX) return kl_size_refuse(z, "a stride below 2^31");
      // ceil(size / stride), where size + stride may not be a number
      uint32_t over = kl_graph_compare_with(z->g, KL_GT, kl_graph_with(z->g, KL_OP_REMAINDER, size, s.stride), 0);
      size = kl_graph_binary(z->g, KL_OP_ADD, kl_graph_with(z->g, KL_OP_DIVIDE, size, s.stride),
                             kl_graph_convert(z->g, over, KILN_S32));
    }
    if (z->in->shape->dynamic && z->in->shape->dynamic[d])
      z->out->of[d] = size;
    else
      beyond.of[d] = size, zeros = true;
  }
  uint32_t v = kl_size_keep(z);
  return zeros ? kl_size_mask(z, v, &beyond, kl_size_zero(z, z->in->shape->dtype)) : v;
}

// Element i comes from size - 1 - i: from i of the array turned round, bound - size elements on.
static uint32_t reverse(kl_sizing *z) {
  const kl_shape *s = kl_size_known(z, z->in->shape);
  uint32_t v = kl_size_keep(z);
  for (uint32_t d = 0; d < s->rank; d++) z->out->of[d] = kl_extent(z, 0, d);
  for (uint32_t i = 0; i < z->in->ndims; i++) {
    uint32_t d = (uint32_t)z->in->dims[i];
    if (!kl_is_sized(z, 0, d)) continue;
    uint32_t on = kl_graph_binary(z->g, KL_OP_SUBTRACT, kl_size_number(z, s->dims[d]), kl_extent(z, 0, d));
    v = kl_graph_dynamic_slice(z->g, kl_graph_pad(z->g, v, d, 0, s->dims[d]), d, on, s->dims[d]);
  }
  return v;
}

// At places that data says, along one dimension.
static uint32_t starts(kl_sizing *z, uint32_t rank, uint32_t dim, uint32_t at, uint32_t *values) {
  uint32_t zero = kl_size_number(z, 0);
  for (uint32_t d = 0; d < rank; d++) values[d] = d == dim ? at : zero;
  return rank;
}

// Each operand is put behind what is there of those before, over what is not.
static uint32_t concatenate(kl_sizing *z) {
  uint32_t dim = (uint32_t)z->in->dims[0], n = z->in->noperands, operands[KILN_MAX_RANK + 2];
  const kl_shape *s = kl_size_known(z, z->in->shape);
  bool sized = false;
  same_places(z, dim);
  for (uint32_t k = 0; k < n; k++) sized |= kl_is_sized(z, k, dim);
  uint32_t v = kl_size_keep(z);
  if (!sized) return v;
  if (s->dims[dim] > INT32_MAX) return kl_size_refuse(z, "a bound below 2^31");
  uint32_t at = kl_size_or_bound(z, kl_extent(z, 0, dim), z->shapes[0]->dims[dim]);
  bool moved = kl_is_sized(z, 0, dim);
  for (uint32_t k = 1; k < n; k++) {
    operands[0] = v;
    operands[1] = z->values[k];
    uint32_t count = starts(z, s->rank, dim, at, operands + 2);
    if (moved) v = kl_size_emit(z, (kl_instr){.op = KL_OP_DYNAMIC_UPDATE_SLICE, .shape = s}, count + 2, operands);
    at = kl_graph_binary(z->g, KL_OP_ADD, at, kl_size_or_bound(z, kl_extent(z, k, dim), z->shapes[k]->dims[dim]));
    moved |= kl_is_sized(z, k, dim);
  }
  z->out->of[dim] = at;
  return v;
}

// low + k + (k - 1) interior + high elements, where k > 0.
static uint32_t pad(kl_sizing *z) {
  enum { MOST = 1 << 28 };
  kl_extents beyond;
  for (uint32_t d = 0; d < z->in->shape->rank; d++) {
    kl_pad_dim p = z->in->pad[d];
    int64_t bound = z->shapes[0]->dims[d];
    uint32_t size = kl_extent(z, 0, d);
    beyond.of[d] = p.high > 0 ? size : KL_WHOLE;
    z->out->of[d] = size;
    if (size == KL_WHOLE || (!p.low && !p.high && !p.interior)) continue;
    if (bound > MOST || p.interior > MOST / (bound ? bound : 1) || p.low > MOST || p.low < -MOST || p.high > MOST ||
        p.high < -MOST)
      return kl_size_refuse(z, "padding and a bound of at most 2^28");
    uint32_t wide = kl_graph_with(z->g, KL_OP_MULTIPLY, kl_graph_with(z->g, KL_OP_SUBTRACT, size, 1), p.interior + 1);
    wide = kl_size_hold(z, kl_graph_with(z->g, KL_OP_ADD, wide, 1), 0, INT32_MAX);
    z->out->of[d] = kl_size_hold(z, kl_graph_with(z->g, KL_OP_ADD, wide, p.low + p.high), 0, z->in->shape->dims[d]);
  }
  z->values[0] = kl_size_mask(z, z->values[0], &beyond, z->values[1]);
  return kl_size_keep(z);
}

// --- along one dimension ---------------------------------------------------------------------------------------------

// What lies beyond the size comes last: whether it does is the first key.
static uint32_t sort(kl_sizing *z) {
  const kl_instr *in = z->in;
  kiln_module *m = z->g->m;
  uint32_t dim = (uint32_t)in->dims[0], n = in->noperands, size = KL_WHOLE;
  const kl_shape *s = z->shapes[0];
  for (uint32_t k = 0; k < n; k++) size = kl_size_least(z, size, kl_extent(z, k, dim));
  same_places(z, -1);
  if (size == KL_WHOLE) return kl_size_keep(z);
  uint32_t *values = KL_NEW_N(&z->g->scratch, uint32_t, n + 1), called = z->called->orders[in->called[0]] - 1;
  const kl_shape **shapes = KL_NEW_N(&z->g->scratch, const kl_shape *, n + 1);
  uint32_t at = kl_graph_iota(z->g, KILN_S32, s->rank, s->dims, dim);
  values[0] = kl_graph_compare(z->g, KL_GE, at, kl_graph_broadcast(z->g, size, s->rank, s->dims, NULL));
  shapes[0] = kl_graph_shape(z->g, values[0]);
  for (uint32_t k = 0; k < n; k++) {
    values[k + 1] = z->values[k];
    shapes[k + 1] = kl_size_known(z, kl_shape_leaf(in->shape, k));
  }
  kl_instr own = *in;
  own.called = kl_arena_dup(&m->arena, &called, sizeof called);
  own.shape = kl_shape_tuple(m, n + 1, shapes);
  uint32_t sorted = kl_size_emit(z, own, n + 1, values);
  for (uint32_t k = 0; k < n; k++) values[k] = kl_graph_element(z->g, sorted, k + 1);
  return in->shape->dtype == KILN_TUPLE ? kl_graph_tuple(z->g, n, values) : values[0];
}

// The last in the order of a type, which is that of the bits of sign and magnitude for floats.
static uint64_t last_of(kl_dtype t, bool largest) {
  uint64_t all = kl_info(t)->bits == 64 ? UINT64_MAX : ((uint64_t)1 << kl_info(t)->bits) - 1, sign = all ^ all >> 1;
  if (kl_is_float(t) && kl_info(t)->kind != KL_E8M0) return largest ? all : all ^ sign;
  if (!kl_is_signed(t) || kl_is_float(t)) return largest ? 0 : all;
  return largest ? sign : all ^ sign;
}

// What lies beyond the size comes last, also of equals, as those before it come first. Where there are fewer than are
// wanted, the rest is 0.
static uint32_t topk(kl_sizing *z) {
  const kl_shape *s = z->shapes[0];
  uint32_t dim = s->rank - 1, size = kl_extent(z, 0, dim), values[2];
  kl_extents x;
  if (size == KL_WHOLE) return same_places(z, dim), kl_size_keep(z);
  for (uint32_t d = 0; d < KILN_MAX_RANK; d++) x.of[d] = d == dim ? size : KL_WHOLE;
  uint64_t bits[2] = {last_of(s->dtype, z->in->more->largest), 0};
  z->values[0] = kl_size_mask(z, z->values[0], &x, kl_graph_bits(z->g, s->dtype, bits, 0, NULL));
  same_places(z, dim);
  uint32_t found = kl_size_keep(z);
  for (uint32_t leaf = 0; leaf < 2; leaf++) {
    const kl_shape *to = kl_shape_leaf(z->in->shape, leaf);
    values[leaf] = kl_graph_element(z->g, found, leaf);
    if (to->dynamic && to->dynamic[dim])
      z->out[leaf].of[dim] = kl_size_hold(z, size, 0, to->dims[dim]);
    else
      values[leaf] = kl_size_mask(z, values[leaf], &x, kl_size_zero(z, to->dtype));
  }
  return kl_graph_tuple(z->g, 2, values);
}

// --- sizes themselves ------------------------------------------------------------------------------------------------

// Elements that a smaller size has left out are 0 where a larger one is set later.
static uint32_t set_size(kl_sizing *z) {
  const kl_shape *s = z->in->shape;
  uint32_t dim = (uint32_t)z->in->dims[0], v = z->values[0];
  const kl_instr *to = &z->g->e.instrs.p[z->values[1]];
  kl_extents beyond;
  for (uint32_t d = 0; d < s->rank; d++) {
    beyond.of[d] = d == dim ? kl_extent(z, 0, d) : KL_WHOLE;
    z->out->of[d] = d == dim ? KL_WHOLE : kl_extent(z, 0, d);
  }
  int64_t bound = s->dims[dim], size = -1;
  if (to->op == KL_OP_CONSTANT && to->literal)
    size = kl_int_decode(KILN_S32, kl_element_get(KILN_S32, to->literal->data, 0, 0));
  if (bound > INT32_MAX) return kl_size_refuse(z, "a bound below 2^31");
  if (size < bound && !(s->dynamic && s->dynamic[dim]))
    return kl_size_refuse(z, "a result of that size, or one whose dimension is dynamic");
  if (size < bound) z->out->of[dim] = kl_size_hold(z, z->values[1], 0, bound);
  return kl_size_mask(z, v, &beyond, kl_size_zero(z, s->dtype));
}

static uint32_t size_op(kl_sizing *z) {
  if (z->in->op == KL_OP_SET_DIMENSION_SIZE) return set_size(z);
  uint32_t dim = (uint32_t)z->in->dims[0];
  if (!kl_is_sized(z, 0, dim) && z->shapes[0]->dims[dim] > INT32_MAX) return kl_size_refuse(z, "a bound below 2^31");
  return kl_size_or_bound(z, kl_extent(z, 0, dim), z->shapes[0]->dims[dim]);
}

// --- all ops ---------------------------------------------------------------------------------------------------------

uint32_t kl_size_op(kl_sizing *z) {
  const kl_instr *in = z->in;
  kl_op_kind kind = kl_op_table[in->op].kind;
  if (kind == KL_KIND_CONVERT) return convert(z);
  if (kl_op_is_elementwise(in->op) || kind == KL_KIND_MAP || kind == KL_KIND_STOCHASTIC)
    return same_places(z, -1), kl_size_keep(z);
  switch (kind) {
  case KL_KIND_BROADCAST:
    for (uint32_t i = 0; i < z->shapes[0]->rank; i++) z->out->of[in->dims[i]] = kl_extent(z, 0, i);
    return kl_size_keep(z);
  case KL_KIND_TRANSPOSE:
    for (uint32_t i = 0; i < in->shape->rank; i++) z->out->of[i] = kl_extent(z, 0, (uint32_t)in->dims[i]);
    return kl_size_keep(z);
  case KL_KIND_RESHAPE:
  case KL_KIND_DYNAMIC_RESHAPE:
  case KL_KIND_BITCAST: return kl_size_reshape(z);
  case KL_KIND_SLICE: return slice(z);
  case KL_KIND_REVERSE: return reverse(z);
  case KL_KIND_CONCATENATE: return concatenate(z);
  case KL_KIND_PAD: return pad(z);
  case KL_KIND_REDUCE:
  case KL_KIND_REDUCE_WINDOW:
  case KL_KIND_DOT:
  case KL_KIND_SELECT_AND_SCATTER:
  case KL_KIND_CONVOLUTION: return kl_size_fold(z);
  case KL_KIND_DYNAMIC_SLICE:
  case KL_KIND_DYNAMIC_UPDATE_SLICE:
  case KL_KIND_GATHER:
  case KL_KIND_SCATTER: return kl_size_placed(z);
  case KL_KIND_SORT: return sort(z);
  case KL_KIND_SCAN: return kl_size_scan(z);
  case KL_KIND_TOPK: return topk(z);
  case KL_KIND_FFT: return kl_size_fft(z);
  case KL_KIND_CHOLESKY:
  case KL_KIND_TRIANGULAR_SOLVE:
  case KL_KIND_BATCH_NORM: return kl_size_whole_op(z);
  case KL_KIND_DIMENSION_SIZE: return size_op(z);
  default: return kl_size_refuse(z, "the array at its bounds, with its size as an s32[] beside it");
  }
}
