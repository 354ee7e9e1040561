// Reshapes: dimensions that stay, or take in what is next to them, keep what lies before their sizes where it is; all
// else goes element by element to where it is in an array of the other sizes.
#include "ir/rewrite/sizes/room.h"

// --- in place -------------------------------------------------------------------------------------------------------

// Runs of dimensions with as many elements before and behind, [*a, a2) and [*b, b2).
static void next_run(const kl_shape *from, const kl_shape *to, uint32_t *a2, uint32_t *b2) {
  uint32_t a = *a2, b = *b2;
  int64_t n = a < from->rank ? from->dims[a++] : 1, m = b < to->rank ? to->dims[b++] : 1;
  while (n != m && (n < m ? a < from->rank : b < to->rank)) {
    if (n < m)
      n *= from->dims[a++];
    else
      m *= to->dims[b++];
  }
  while (a < from->rank && from->dims[a] == 1) a++;
  while (b < to->rank && to->dims[b] == 1) b++;
  *a2 = a;
  *b2 = b;
}

static int64_t product(const kl_shape *s, uint32_t from, uint32_t to) {
  int64_t n = 1;
  for (uint32_t d = from; d < to; d++) n *= s->dims[d];
  return n;
}

// In [a, a2) and [b, b2): one dimension is sized, nothing is slower than that, nor than the one that it becomes.
static bool reshape_run(kl_sizing *z, uint32_t a, uint32_t a2, uint32_t b, uint32_t b2) {
  const kl_shape *from = z->shapes[0], *to = z->in->shape;
  uint32_t at = a, is = b;
  while (at < a2 && !kl_is_sized(z, 0, at)) at++;
  if (at == a2) return true;
  for (uint32_t d = at + 1; d < a2; d++)
    if (kl_is_sized(z, 0, d)) return false;
  while (is < b2 && !(to->dynamic && to->dynamic[is])) is++;
  if (is == b2 || product(from, a, at) != 1 || product(to, b, is) != 1) return false;
  int64_t rows = product(from, at + 1, a2), of = product(to, is + 1, b2);
  if (rows == of) return z->out->of[is] = kl_extent(z, 0, at), true;
  if (of == 0 || rows % of || to->dims[is] > INT32_MAX) return false;
  z->out->of[is] = kl_graph_with(z->g, KL_OP_MULTIPLY, kl_extent(z, 0, at), rows / of);
  return true;
}

static bool in_place(kl_sizing *z) {
  const kl_shape *from = z->shapes[0], *to = z->in->shape;
  for (uint32_t a = 0, b = 0, a2 = 0, b2 = 0; a < from->rank || b < to->rank; a = a2, b = b2) {
    next_run(from, to, &a2, &b2);
    if (!reshape_run(z, a, a2, b, b2)) return false;
  }
  return true;
}

// --- element by element ---------------------------------------------------------------------------------------------

static bool is_dynamic(const kl_shape *s, uint32_t d) {
  return s->dynamic && s->dynamic[d];
}

// The dimension of the operand that dimension d of the result is, behind `before` elements: one as large, but one that
// is known behind one of a single element that may be missing, as both may have become it. The rank: there is none.
static uint32_t same_dimension(const kl_shape *from, const kl_shape *to, uint32_t d, int64_t before) {
  int64_t b = 1;
  bool behind = false;
  uint32_t o = 0;
  for (; o < from->rank && (b != before || from->dims[o] != to->dims[d]); b *= from->dims[o++])
    behind |= b == before && is_dynamic(from, o);
  return o < from->rank && (!behind || is_dynamic(from, o)) ? o : from->rank;
}

// Sizes of the result's dimensions, of which one may be what is left of all elements. False: more than one would be.
static bool sizes_of(kl_sizing *z, const uint32_t *was, uint32_t *is, kl_dtype t) {
  const kl_shape *from = z->shapes[0], *to = z->in->shape;
  kl_graph *g = z->g;
  uint32_t open = KL_WHOLE, all = kl_graph_number(g, t, 1, 0, NULL), rest = all;
  int64_t before = 1;
  for (uint32_t d = 0; d < to->rank; before *= to->dims[d++]) {
    is[d] = kl_graph_number(g, t, to->dims[d], 0, NULL);
    if (!is_dynamic(to, d)) continue;
    uint32_t o = same_dimension(from, to, d, before);
    if (o == from->rank && open != KL_WHOLE) return false;
    if (o == from->rank)
      open = d;
    else
      z->out->of[d] = kl_extent(z, 0, o), is[d] = was[o];
  }
  if (open == KL_WHOLE) return true;
  if (to->dims[open] > INT32_MAX) return false;
  for (uint32_t o = 0; o < from->rank; o++) all = kl_graph_binary(g, KL_OP_MULTIPLY, all, was[o]);
  for (uint32_t d = 0; d < to->rank; d++)
    if (d != open) rest = kl_graph_binary(g, KL_OP_MULTIPLY, rest, is[d]);
  rest = kl_graph_with(g, KL_OP_MAXIMUM, rest, 1);
  is[open] = kl_graph_with(g, KL_OP_MINIMUM, kl_graph_binary(g, KL_OP_DIVIDE, all, rest), to->dims[open]);
  z->out->of[open] = kl_graph_convert(g, is[open], KILN_S32);
  return true;
}

// Sizes that are given, of what is dynamic.
static bool given_sizes(kl_sizing *z, uint32_t *is, kl_dtype t) {
  const kl_shape *to = z->in->shape;
  for (uint32_t d = 0; d < to->rank; d++) {
    is[d] = kl_graph_number(z->g, t, to->dims[d], 0, NULL);
    if (!is_dynamic(to, d)) continue;
    if (to->dims[d] > INT32_MAX) return false;
    z->out->of[d] = kl_size_hold(z, z->values[d + 1], 0, to->dims[d]);
    is[d] = kl_graph_convert(z->g, z->out->of[d], t);
  }
  return true;
}

static uint32_t one_by_one(kl_sizing *z) {
  const kl_shape *from = z->shapes[0], *to = z->in->shape;
  kl_graph *g = z->g;
  kl_dtype t = from->count > INT32_MAX || to->count > INT32_MAX ? KILN_S64 : KILN_S32;
  uint32_t was[KILN_MAX_RANK], is[KILN_MAX_RANK], n = to->rank;
  for (uint32_t o = 0; o < from->rank; o++) {
    uint32_t size = kl_extent(z, 0, o);
    was[o] = size == KL_WHOLE ? kl_graph_number(g, t, from->dims[o], 0, NULL) : kl_graph_convert(g, size, t);
  }
  bool given = z->in->op == KL_OP_DYNAMIC_RESHAPE;
  if (given && !given_sizes(z, is, t)) return kl_size_refuse(z, "bounds below 2^31");
  if (!given && !sizes_of(z, was, is, t))
    return kl_size_refuse(z, "each dynamic dimension but one of the result to be one of the operand's");
  uint32_t at = kl_graph_number(g, t, 0, n, to->dims), place = at;
  for (uint32_t d = 0; d < n; d++) {
    at = kl_graph_binary(g, KL_OP_MULTIPLY, at, kl_graph_broadcast(g, is[d], n, to->dims, NULL));
    at = kl_graph_binary(g, KL_OP_ADD, at, kl_graph_iota(g, t, n, to->dims, d));
  }
  int64_t step = 1;
  for (uint32_t o = from->rank; o-- > 0; step *= from->dims[o]) {
    uint32_t size = kl_graph_broadcast(g, kl_graph_with(g, KL_OP_MAXIMUM, was[o], 1), n, to->dims, NULL);
    uint32_t own = o ? kl_graph_binary(g, KL_OP_REMAINDER, at, size) : at;
    place = kl_graph_binary(g, KL_OP_ADD, place, kl_graph_with(g, KL_OP_MULTIPLY, own, step));
    if (o) at = kl_graph_binary(g, KL_OP_DIVIDE, at, size);
  }
  return kl_graph_gather(g, kl_graph_flat(g, z->values[0]), place);
}

uint32_t kl_size_reshape(kl_sizing *z) {
  const kl_shape *from = z->shapes[0], *to = z->in->shape;
  if (z->in->op == KL_OP_BITCAST && (from->dtype != to->dtype || from->count != to->count ||
                                     !kl_shape_default_layout(from) || !kl_shape_default_layout(to)))
    return kl_size_refuse(z, "a reshape");
  if (z->in->op == KL_OP_DYNAMIC_RESHAPE) return one_by_one(z);
  if (kl_shape_same_dims(from, to)) {
    for (uint32_t d = 0; d < to->rank; d++) z->out->of[d] = kl_extent(z, 0, d);
    return kl_size_keep(z);
  }
  if (to->count && in_place(z)) return kl_size_keep(z);
  for (uint32_t d = 0; d < to->rank; d++) z->out->of[d] = KL_WHOLE;
  return one_by_one(z);
}
