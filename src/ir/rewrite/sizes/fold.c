// Ops that join elements along dimensions: what lies beyond a size is made neutral first.
#include "ir/rewrite/sizes/room.h"

#include <math.h>

// --- neutral values -------------------------------------------------------------------------------------------------

static const kl_instr *behind_conversions(const kl_comp *c, const kl_instr *in) {
  while (in->op == KL_OP_CONVERT && kl_is_float(in->shape->dtype) && kl_is_float(kl_operand(c, in, 0)->shape->dtype))
    in = kl_operand(c, in, 0);
  return in;
}

// The op of a reducer whose result i is made of its parameters i and n + i alone.
static bool combiner(const kl_comp *c, uint32_t n, uint32_t i, kl_op *op) {
  const kl_instr *root = kl_root(c);
  if (root->shape->dtype == KILN_TUPLE) {
    if (root->op != KL_OP_TUPLE || root->noperands != n) return false;
    root = kl_operand(c, root, i);
  }
  root = behind_conversions(c, root);
  if (kl_op_table[root->op].kind != KL_KIND_BINARY) return false;
  const kl_instr *a = behind_conversions(c, kl_operand(c, root, 0)), *b = behind_conversions(c, kl_operand(c, root, 1));
  *op = root->op;
  return a->op == KL_OP_PARAMETER && b->op == KL_OP_PARAMETER &&
         ((a->number == i && b->number == n + i) || (b->number == i && a->number == n + i));
}

// The end of a float type: infinity, where there is one.
static uint64_t end_of(kl_dtype t, bool up) {
  uint64_t at = kl_float_encode(t, kl_info(t)->kind == KL_IEEE ? up ? INFINITY : -INFINITY : 1), next;
  while (kl_info(t)->kind != KL_IEEE && (next = kl_float_next(t, at, up)) != at) at = next; // of 8 bits at most
  return at;
}

static bool float_neutral(kl_op op, kl_dtype t, uint64_t *bits) {
  switch (op) {
  case KL_OP_ADD:
    *bits = kl_info(t)->kind == KL_FNUZ ? 0 : kl_float_encode(t, -0.0);
    return kl_info(t)->kind != KL_E8M0;
  case KL_OP_MULTIPLY: *bits = kl_float_encode(t, 1); return true;
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM: *bits = end_of(t, op == KL_OP_MINIMUM); return true;
  default: return false;
  }
}

static bool int_neutral(kl_op op, kl_dtype t, uint64_t *bits) {
  uint64_t all = t == KILN_PRED ? 1 : kl_int_mask(t), sign = kl_is_signed(t) ? all ^ all >> 1 : 0;
  switch (op) {
  case KL_OP_ADD:
  case KL_OP_OR:
  case KL_OP_XOR: *bits = 0; return true;
  case KL_OP_MULTIPLY: *bits = 1; return true;
  case KL_OP_AND: *bits = all; return true;
  case KL_OP_MAXIMUM: *bits = sign; return true;
  case KL_OP_MINIMUM: *bits = all ^ sign; return true;
  default: return false;
  }
}

bool kl_size_neutral(const kiln_module *m, uint32_t reducer, uint32_t n, uint32_t i, kl_dtype t, uint64_t bits[2]) {
  const kl_comp *c = &m->comp[reducer];
  kl_op op;
  bits[0] = bits[1] = 0;
  if (!combiner(c, n, i, &op)) return false;
  if (kl_is_complex(t)) {
    bits[0] = bits[1] = kl_float_encode(kl_info(t)->part, -0.0);
    return op == KL_OP_ADD;
  }
  if (!kl_is_float(t)) return int_neutral(op, t, bits);
  // In a wider type than this one, the end of this one is not the end.
  bool wider = c->instr[c->params[n + i]].shape->dtype != t || c->instr[c->params[i]].shape->dtype != t;
  return (kl_info(t)->kind == KL_IEEE || !wider) && float_neutral(op, t, bits);
}

// --- reductions -----------------------------------------------------------------------------------------------------

// The extents that all inputs have.
static kl_extents least_of(kl_sizing *z, uint32_t n) {
  kl_extents x = {{0}};
  for (uint32_t d = 0; d < z->shapes[0]->rank; d++) {
    x.of[d] = KL_WHOLE;
    for (uint32_t k = 0; k < n; k++) x.of[d] = kl_size_least(z, x.of[d], kl_extent(z, k, d));
  }
  return x;
}

// Whether an element is there is folded with it: a reducer that is told leaves out what is not. The initial value is.
static uint32_t fold_told(kl_sizing *z, uint32_t n, const kl_extents *x) {
  kl_graph *g = z->g;
  kl_instr own = *z->in;
  uint32_t reducer = z->called->reducers[own.called[0]] - 1;
  const kl_shape *acc = kl_root(&g->m->comp[reducer])->shape;
  uint32_t *values = KL_NEW_N(&g->scratch, uint32_t, 2ull * n + 2);
  const kl_shape **shapes = KL_NEW_N(&g->scratch, const kl_shape *, n + 1u);
  for (uint32_t i = 0; i <= n; i++) {
    const kl_shape *s = kl_size_known(z, kl_shape_leaf(own.shape, i ? i - 1 : 0));
    shapes[i] = s->dtype == acc->elems[i]->dtype ? s : kl_graph_array(g, acc->elems[i]->dtype, s->rank, s->dims);
    if (i) values[i] = z->values[i - 1], values[n + 1 + i] = z->values[n + i - 1];
  }
  values[0] = kl_size_there(z, kl_graph_shape(g, values[1]), x);
  values[n + 1] = kl_graph_number(g, KILN_PRED, 1, 0, NULL);
  own.called = kl_arena_dup(&g->m->arena, &reducer, sizeof reducer);
  own.shape = kl_shape_tuple(g->m, n + 1, shapes);
  uint32_t all = kl_size_emit(z, own, 2 * n + 2, values);
  for (uint32_t i = 0; i < n; i++)
    values[i] = kl_graph_convert(g, kl_graph_element(g, all, i + 1), kl_shape_leaf(z->in->shape, i)->dtype);
  return z->in->shape->dtype == KILN_TUPLE ? kl_graph_tuple(g, n, values) : values[0];
}

// The fold of what lies before the extents of `x`, of n inputs: neutral values beyond, where the reducer has such.
static uint32_t fold_before(kl_sizing *z, uint32_t n, const kl_extents *x) {
  uint64_t bits[2];
  for (uint32_t i = 0; i < n; i++)
    if (!kl_size_neutral(z->g->m, z->in->called[0], n, i, z->shapes[i]->dtype, bits)) return fold_told(z, n, x);
  for (uint32_t i = 0; i < n; i++) {
    kl_dtype t = z->shapes[i]->dtype;
    kl_size_neutral(z->g->m, z->in->called[0], n, i, t, bits);
    z->values[i] = kl_size_mask(z, z->values[i], x, kl_graph_bits(z->g, t, bits, 0, NULL));
  }
  return kl_size_keep(z);
}

static uint32_t reduce(kl_sizing *z) {
  uint32_t n = z->in->noperands / 2, rank = z->shapes[0]->rank, to = 0;
  kl_ints folded = {z->in->ndims, z->in->dims};
  kl_extents x = least_of(z, n), inside = x;
  bool any = false;
  for (uint32_t d = 0; d < rank; d++) {
    if (kl_size_has(folded, d)) {
      any |= inside.of[d] != KL_WHOLE;
      continue;
    }
    inside.of[d] = KL_WHOLE;
    for (size_t k = 0; k < kl_shape_leaf_count(z->in->shape); k++) z->out[k].of[to] = x.of[d];
    to++;
  }
  return any ? fold_before(z, n, &inside) : kl_size_keep(z);
}

static uint32_t reduce_window(kl_sizing *z) {
  uint32_t n = z->in->noperands / 2;
  kl_extents x = least_of(z, n), inside = x;
  bool any = false;
  for (uint32_t d = 0; d < z->shapes[0]->rank; d++) {
    const kl_window_dim *w = &z->in->more->window[d];
    if (x.of[d] == KL_WHOLE) continue;
    if (kl_size_is_each(w))
      inside.of[d] = KL_WHOLE;
    else if (!kl_size_is_small(w, z->shapes[0]->dims[d]))
      return kl_size_refuse(z, "a window, padding, and bounds of at most 2^28 with what lies between elements");
    else {
      any = true;
      x.of[d] = kl_size_windows(z, x.of[d], KL_WHOLE, w, kl_shape_leaf(z->in->shape, 0)->dims[d]);
    }
  }
  for (size_t k = 0; k < kl_shape_leaf_count(z->in->shape); k++) z->out[k] = x;
  for (size_t k = 0; k < kl_shape_leaf_count(z->in->shape); k++)
    for (uint32_t d = z->shapes[0]->rank; d < KILN_MAX_RANK; d++) z->out[k].of[d] = KL_WHOLE;
  return any ? fold_before(z, n, &inside) : kl_size_keep(z);
}

// --- contractions ---------------------------------------------------------------------------------------------------

// Of groups that are not there, or have no matrix, no rows. Their number is the result's first where they are of what
// is summed.
static bool leave_groups(kl_sizing *z, uint32_t *to) {
  const kl_more *more = z->in->more;
  uint32_t last = z->shapes[2]->rank - 1, groups = kl_extent(z, 2, last);
  kl_extents x;
  if (more->rhs_group.n) groups = kl_size_least(z, groups, kl_extent(z, 1, (uint32_t)more->rhs_group.p[0]));
  for (uint32_t d = 0; d <= last; d++) {
    x.of[d] = d == last ? groups : KL_WHOLE;
    if (d < last && kl_is_sized(z, 2, d)) return false;
  }
  z->values[2] = kl_size_mask(z, z->values[2], &x, kl_size_zero(z, z->shapes[2]->dtype));
  if (kl_size_has(more->lhs_contracting, (uint32_t)more->lhs_ragged.p[0])) z->out->of[(*to)++] = groups;
  return true;
}

static uint32_t dot(kl_sizing *z) {
  const kl_more *more = z->in->more;
  uint32_t to = 0;
  if (z->in->op == KL_OP_SCALED_DOT) return kl_size_refuse(z, "a dot without scales");
  if (z->in->op == KL_OP_RAGGED_DOT && !leave_groups(z, &to)) return kl_size_refuse(z, "batches of known groups");
  for (uint32_t i = 0; i < more->lhs_batch.n; i++)
    z->out->of[to++] = kl_size_least(z, kl_extent(z, 0, (uint32_t)more->lhs_batch.p[i]),
                                     kl_extent(z, 1, (uint32_t)more->rhs_batch.p[i]));
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t d = 0; d < z->shapes[k]->rank; d++)
      if (!kl_size_has(k ? more->rhs_batch : more->lhs_batch, d) &&
          !kl_size_has(k ? more->rhs_contracting : more->lhs_contracting, d) && !(k && kl_size_has(more->rhs_group, d)))
        z->out->of[to++] = kl_extent(z, k, d);
  kl_extents x[2];
  kl_size_pairs(z, more->lhs_contracting, more->rhs_contracting, x);
  return kl_size_zeros_beyond(z, x) ? kl_size_keep(z) : kl_size_refuse(z, "a type that has a zero");
}

uint32_t kl_size_fold(kl_sizing *z) {
  switch (kl_op_table[z->in->op].kind) {
  case KL_KIND_REDUCE: return reduce(z);
  case KL_KIND_REDUCE_WINDOW: return reduce_window(z);
  case KL_KIND_DOT: return dot(z);
  case KL_KIND_SELECT_AND_SCATTER: return kl_size_select(z);
  default: return kl_size_convolution(z);
  }
}
