// What a reducer does with two tuples of values.

#include "lower/choose/walk/walk.h"

static bool is_one_op(const kl_comp *c) {
  const kl_instr *root = kl_root(c);
  if (c->nparams != 2 || root->noperands != 2 || !kl_op_is_elementwise(root->op)) return false;
  uint32_t a = root->operands[0], b = root->operands[1], p = c->params[0], q = c->params[1];
  return (a == p && b == q) || (a == q && b == p);
}

static bool commutes(kl_op op) {
  return op == KL_OP_ADD || op == KL_OP_MULTIPLY || op == KL_OP_MAXIMUM || op == KL_OP_MINIMUM || op == KL_OP_AND ||
         op == KL_OP_OR || op == KL_OP_XOR;
}

// Sums and products of 16 bits or fewer are made in f32 and rounded once.
static kl_dtype folded_in(const kl_combiner *x, kl_dtype t) {
  bool sums = x->simple && (x->op.op == KL_OP_ADD || x->op.op == KL_OP_MULTIPLY);
  return sums && kl_is_float(t) && kl_info(t)->bits <= 16 ? KILN_F32 : t;
}

kl_combiner kl_combiner_of(kl_arena *arena, const kl_comp *by, uint32_t caller) {
  kl_combiner x = {.comp = by, .caller = caller, .n = by->nparams / 2};
  x.simple = is_one_op(by);
  if (x.simple) x.op = (kl_plan_op){.op = kl_root(by)->op};
  x.simple = x.simple && commutes(x.op.op);
  kl_dtype *type = KL_NEW_N(arena, kl_dtype, x.n + 1), *given = KL_NEW_N(arena, kl_dtype, x.n + 1);
  for (uint32_t i = 0; i < x.n; i++) {
    given[i] = by->instr[by->params[i]].shape->dtype;
    type[i] = folded_in(&x, given[i]);
  }
  x.type = type;
  x.given = given;
  return x;
}

static uint32_t converted(kl_writer *w, uint32_t value, kl_dtype t) {
  if (w->steps.p[value].dtype == t) return value;
  return kl_write_op(w, (kl_plan_op){.op = KL_OP_CONVERT}, t, 1, &value);
}

uint32_t kl_combiner_take(kl_writer *w, const kl_combiner *x, uint32_t i, uint32_t value) {
  return converted(w, converted(w, value, x->given[i]), x->type[i]);
}

uint32_t kl_combiner_give(kl_writer *w, const kl_combiner *x, uint32_t i, uint32_t value, kl_dtype t) {
  return converted(w, converted(w, value, x->given[i]), t);
}

kiln_status kl_combine_values(kl_walk *w, const kl_combiner *x, const uint32_t *lower, const uint32_t *higher,
                              uint32_t *out) {
  if (x->simple) {
    uint32_t both[2] = {*lower, *higher};
    *out = kl_write_op(w->w, x->op, *x->type, 2, both);
    return KILN_OK;
  }
  uint32_t *args = KL_NEW_N(w->arena, uint32_t, 2 * x->n + 1);
  memcpy(args, lower, x->n * sizeof *args);
  memcpy(args + x->n, higher, x->n * sizeof *args);
  return kl_walk_call(w, x->caller, x->comp, args, out);
}
