// Values as they are summed: operands' elements in the type of the sum, products, and the result's element.

#include "lower/choose/contract/contract.h"

static uint32_t converted(kl_writer *w, uint32_t value, kl_dtype to) {
  if (w->steps.p[value].dtype == to) return value;
  return kl_write_op(w, (kl_plan_op){.op = KL_OP_CONVERT}, to, 1, &value);
}

static bool is_exact(const kl_contraction *x) {
  return !kl_is_float(x->type);
}

static uint32_t constant(kl_writer *w, kl_dtype t, double v) {
  return kl_write_scalar(w, t, kl_is_float(t) ? kl_float_encode(t, v) : (uint64_t)v, 0);
}

static kl_parts constants(kl_writer *w, const kl_contraction *x, double v) {
  uint32_t value = constant(w, x->type, v);
  return (kl_parts){value, x->complex ? value : KL_NONE};
}

kl_parts kl_begin_leaf(kl_writer *w, const kl_contraction *x) {
  return constants(w, x, 0);
}

// A zero that changes nothing of what is added to it.
kl_parts kl_no_leaf(kl_writer *w, const kl_contraction *x) {
  return constants(w, x, is_exact(x) ? 0 : -0.0);
}

// Integers and predicates become numbers of the result's type first; floats are all numbers of the sum's.
static uint32_t as_summed(kl_writer *w, const kl_contraction *x, uint32_t value) {
  if (!kl_is_float(w->steps.p[value].dtype)) value = converted(w, value, x->shape->dtype);
  return converted(w, value, x->type);
}

// The operand's element by the scale of its block, rounded to the type of both.
static kiln_status scale(kl_walk *walk, const kl_contraction *x, int side, const kl_aff *const *at, uint32_t guard,
                         uint32_t *value) {
  const kl_shape *s = x->scale[side];
  const kl_aff *block[KILN_MAX_RANK];
  uint32_t both[2] = {*value, KL_NONE};
  for (uint32_t d = 0; d < s->rank; d++)
    block[d] = s->count == 1 ? kl_aff_const(walk->affs, 0)
                             : kl_aff_floordivc(walk->affs, at[d], x->from[side]->dims[d] / s->dims[d]);
  KL_TRY(kl_walk_want(walk, x->instr->operands[2 + side], 0, guard, block, &both[1]));
  for (int i = 0; i < 2; i++) both[i] = converted(walk->w, both[i], x->term[side]);
  *value = kl_write_op(walk->w, (kl_plan_op){.op = KL_OP_MULTIPLY}, x->term[side], 2, both);
  return KILN_OK;
}

kiln_status kl_want_term(kl_walk *walk, const kl_contraction *x, int side, const kl_aff *const *index, const kl_aff *r,
                         uint32_t guard, kl_parts *out) {
  kl_writer *w = walk->w;
  const kl_aff *at[KILN_MAX_RANK];
  kl_constraint in[2 * KILN_MAX_RANK];
  uint32_t n, value, there = guard;
  bool never = false;
  kl_pair_index(walk->affs, x, side, index, r, at, &n, in);
  for (uint32_t i = 0; i < n && !never; i++)
    there = kl_walk_guard(walk, there, in[i].e, in[i].in.lo, in[i].in.hi, &never);
  uint32_t outside = there == guard ? KL_NONE : there, zero = KL_NONE;
  if (never || outside != KL_NONE) zero = constant(w, x->type, 0);
  *out = (kl_parts){zero, x->complex ? zero : KL_NONE};
  if (never) return KILN_OK;
  KL_TRY(kl_walk_want(walk, x->instr->operands[side], 0, there, at, &value));
  if (x->scale[side]) KL_TRY(scale(walk, x, side, at, there, &value));
  kl_parts v = {value, KL_NONE};
  if (x->complex) {
    kl_dtype part = kl_info(x->from[side]->dtype)->part;
    v.im = converted(w, kl_write_op(w, (kl_plan_op){.op = KL_OP_IMAG}, part, 1, &value), x->type);
    v.re = converted(w, kl_write_op(w, (kl_plan_op){.op = KL_OP_REAL}, part, 1, &value), x->type);
  } else {
    v.re = as_summed(w, x, value);
  }
  out->re = kl_write_choose(w, outside, v.re, zero);
  if (x->complex) out->im = kl_write_choose(w, outside, v.im, zero);
  return KILN_OK;
}

static uint32_t join(kl_writer *w, kl_dtype t, kl_op op, uint32_t a, uint32_t b) {
  return kl_write_op(w, (kl_plan_op){.op = op}, t, 2, (uint32_t[]){a, b});
}

kl_parts kl_add_product(kl_writer *w, const kl_contraction *x, kl_parts a, kl_parts b, kl_parts sum) {
  kl_dtype t = x->type;
  if (is_exact(x)) {
    bool pred = t == KILN_PRED;
    uint32_t product = join(w, t, pred ? KL_OP_AND : KL_OP_MULTIPLY, a.re, b.re);
    return (kl_parts){join(w, t, pred ? KL_OP_OR : KL_OP_ADD, sum.re, product), KL_NONE};
  }
  sum.re = kl_write_fma(w, a.re, b.re, sum.re);
  if (!x->complex) return sum;
  sum.re = kl_write_fma(w, kl_write_op(w, (kl_plan_op){.op = KL_OP_NEGATE}, t, 1, &a.im), b.im, sum.re);
  sum.im = kl_write_fma(w, a.re, b.im, sum.im);
  sum.im = kl_write_fma(w, a.im, b.re, sum.im);
  return sum;
}

kl_parts kl_join_leaf(kl_writer *w, const kl_contraction *x, kl_parts before, kl_parts leaf) {
  before.re = join(w, x->type, KL_OP_ADD, before.re, leaf.re);
  if (x->complex) before.im = join(w, x->type, KL_OP_ADD, before.im, leaf.im);
  return before;
}

uint32_t kl_round_sum(kl_writer *w, const kl_contraction *x, kl_parts sum) {
  if (!x->complex) return converted(w, sum.re, x->shape->dtype);
  kl_dtype whole = x->type == KILN_F64 ? KILN_C128 : KILN_C64;
  uint32_t value = join(w, whole, KL_OP_COMPLEX, sum.re, sum.im);
  return converted(w, value, x->shape->dtype);
}

uint32_t kl_absent_term(kl_writer *w, const kl_contraction *x, int side) {
  return constant(w, x->type, side || is_exact(x) ? 0 : -0.0);
}

// --- leaves in memory -----------------------------------------------------------------------------------------------

void kl_add_leaf_sums(kl_choosing *c, const kl_contraction *x, kl_leaf_sums *out) {
  *out = (kl_leaf_sums){.leaves = (x->length - 1) / x->leaf + 1};
  for (uint32_t part = 0; part < (x->complex ? 2 : 1); part++)
    out->slot[part] = kl_add_scratch(c->cx, c->plan, &c->slots, x->type, out->leaves * x->shape->count);
}

void kl_store_leaf(kl_choosing *c, kl_writer *w, const kl_contraction *x, const kl_leaf_sums *s, const kl_aff *leaf,
                   const kl_aff *at, kl_parts sum, uint32_t keep) {
  const kl_aff *place = kl_dom_simplify(w->body->domain, kl_aff_addmul(w->plan->affs, at, leaf, x->shape->count));
  for (uint32_t part = 0; part < (x->complex ? 2 : 1); part++)
    kl_write_store(w, s->slot[part], &c->slots.v.p[s->slot[part]], place, part ? sum.im : sum.re, keep);
}
