// Reducers as they are where one argument's elements come before the other's.
//
// An operand that counts along the row, as that of a reduction to the place of the greatest does, is less in the first
// argument as long as the reducer does nothing but choose between the two. So comparisons of places are known, and with
// them which of equal values is taken.

#include "lower/choose/reduce/reduce.h"

typedef enum truth { UNKNOWN, TRUE, FALSE } truth;

typedef struct ordering {
  const kl_comp *by;
  uint32_t nvalues;
  const bool *counts; // by value of the reduction
  kl_instr *instr;    // those of `by`, changed
  uint32_t *same;     // by instruction: the one that has its value, itself as a rule
  truth *known;       // and whether it is known to be true or false; then it has no other value
  bool changed;
} ordering;

// Has the operand, along the only reduced dimension, the element's number or one that grows with it?
static bool counts(const kl_comp *c, const kl_reductions *x, const kl_instr *reduce, const kl_instr *v) {
  int64_t dim = v->number;
  const kl_instr *iota = v;
  if (v->op == KL_OP_BROADCAST) {
    iota = kl_operand(c, v, 0);
    if (iota->op == KL_OP_IOTA) dim = v->dims[iota->number];
  }
  if (iota->op != KL_OP_IOTA || kl_is_float(iota->shape->dtype) || kl_is_complex(iota->shape->dtype)) return false;
  bool reduced = false;
  for (uint32_t i = 0; i < reduce->ndims; i++) reduced |= reduce->dims[i] == dim;
  return reduced && v->shape->dims[dim] == x->length && (uint64_t)x->length <= kl_int_mask(iota->shape->dtype) / 2;
}

// Is the value one of parameters p and q, whatever they are?
static bool is_chosen(kl_arena *a, const kl_comp *c, uint32_t value, uint32_t p, uint32_t q) {
  bool *chosen = KL_NEW_N(a, bool, value + 1);
  for (uint32_t i = 0; i <= value; i++) {
    const kl_instr *in = &c->instr[i];
    chosen[i] = i == p || i == q || (in->op == KL_OP_SELECT && chosen[in->operands[1]] && chosen[in->operands[2]]);
  }
  return chosen[value];
}

static bool is_comparison(const kl_instr *in, kl_direction d) {
  return in->op == KL_OP_COMPARE && in->direction == d;
}

static truth of_comparison(const ordering *o, const kl_instr *in) {
  for (uint32_t v = 0; v < o->nvalues; v++) {
    uint32_t p = o->by->params[v], q = o->by->params[o->nvalues + v], a = in->operands[0], b = in->operands[1];
    if (!o->counts[v] || !((a == p && b == q) || (a == q && b == p))) continue;
    kl_direction d = in->direction;
    if (d == KL_EQ || d == KL_NE) return d == KL_NE ? TRUE : FALSE;
    return (d == KL_LT || d == KL_LE) == (a == p) ? TRUE : FALSE;
  }
  return UNKNOWN;
}

// a > b or a = b is one comparison, as a < b or a = b is.
static void join_comparisons(ordering *o, kl_instr *in) {
  for (uint32_t k = 0; k < 2; k++) {
    const kl_instr *a = &o->instr[in->operands[k]], *b = &o->instr[in->operands[1 - k]];
    bool greater = is_comparison(a, KL_GT);
    if ((!greater && !is_comparison(a, KL_LT)) || !is_comparison(b, KL_EQ) || a->compare_type != b->compare_type)
      continue;
    if (a->operands[0] != b->operands[0] || a->operands[1] != b->operands[1]) continue;
    kl_direction d = greater ? KL_GE : KL_LE;
    uint32_t name = in->name;
    *in = *a;
    in->name = name;
    in->direction = d;
    return;
  }
}

// AND and OR: `rules` decides whatever the other is.
static void simplify_logic(ordering *o, uint32_t i, truth rules) {
  kl_instr *in = &o->instr[i];
  for (uint32_t k = 0; k < 2; k++) {
    truth t = o->known[in->operands[k]];
    if (t == UNKNOWN) continue;
    if (t == rules)
      o->known[i] = t;
    else if (o->known[in->operands[1 - k]] == UNKNOWN)
      o->same[i] = in->operands[1 - k];
    else
      o->known[i] = o->known[in->operands[1 - k]];
    return;
  }
  if (in->op == KL_OP_OR) join_comparisons(o, in);
}

// False: a known value is wanted as a value.
static bool simplify(ordering *o, uint32_t i) {
  kl_instr *in = &o->instr[i];
  bool logic = in->shape->dtype == KILN_PRED;
  if (in->op == KL_OP_COMPARE) o->known[i] = of_comparison(o, in);
  if (logic && in->op == KL_OP_AND) simplify_logic(o, i, FALSE);
  if (logic && in->op == KL_OP_OR) simplify_logic(o, i, TRUE);
  if (in->op == KL_OP_SELECT && o->known[in->operands[0]] != UNKNOWN)
    o->same[i] = in->operands[o->known[in->operands[0]] == TRUE ? 1 : 2];
  if (o->known[i] != UNKNOWN || o->same[i] != i) {
    o->changed = true;
    return true;
  }
  for (uint32_t k = 0; k < in->noperands; k++)
    if (o->known[in->operands[k]] != UNKNOWN) return false;
  return true;
}

const kl_comp *kl_ordered_reducer(kl_choosing *c, const kl_reductions *x, const kl_instr *reduce) {
  const kl_comp *comp = c->plan->comp, *by = &c->plan->module->comp[reduce->called[0]];
  uint32_t n = reduce->noperands / 2;
  bool *of = KL_NEW_N(c->arena, bool, n), any = false;
  for (uint32_t v = 0; v < n && n > 1; v++) {
    const kl_instr *root = kl_root(by);
    of[v] = root->op == KL_OP_TUPLE && counts(comp, x, reduce, kl_operand(comp, reduce, v)) &&
            is_chosen(c->arena, by, root->operands[v], by->params[v], by->params[n + v]);
    any |= of[v];
  }
  if (!any) return by;
  ordering o = {.by = by, .nvalues = n, .counts = of};
  o.instr = kl_arena_dup(c->arena, by->instr, by->ninstr * sizeof *by->instr);
  o.same = KL_NEW_N(c->arena, uint32_t, by->ninstr);
  o.known = KL_NEW_N(c->arena, truth, by->ninstr);
  for (uint32_t i = 0; i < by->ninstr; i++) {
    kl_instr *in = &o.instr[i];
    uint32_t *operands = KL_NEW_N(c->arena, uint32_t, in->noperands + 1);
    for (uint32_t k = 0; k < in->noperands; k++) operands[k] = o.same[in->operands[k]];
    in->operands = operands;
    o.same[i] = i;
    if (!simplify(&o, i)) return by;
  }
  if (!o.changed || o.known[by->root] != UNKNOWN || o.same[by->root] != by->root) return by;
  kl_comp *made = kl_arena_dup(c->arena, by, sizeof *by);
  made->instr = o.instr;
  return made;
}
