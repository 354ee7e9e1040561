// Conditionals whose branches have kernels of their own: whoever launches reads which of them is taken.

#include "jit/place/impl.h"

// The number of the branch that a constant picks.
static bool is_settled(const placing *p, const kl_instr *in, uint32_t *out) {
  uint32_t leaf = 0;
  const kl_shape *as;
  const kl_instr *from = kl_place_resolve(p->c, in->operands[0], &leaf, &as);
  if (from->op != KL_OP_CONSTANT || !from->literal) return false;
  kl_dtype t = from->shape->dtype;
  uint64_t bits = kl_element_get(t, from->literal[0].data, 0, 0);
  int64_t number = t == KILN_PRED ? bits == 0 : kl_int_decode(t, bits);
  *out = number < 0 || number >= in->ncalled ? in->ncalled - 1 : (uint32_t)number;
  return true;
}

// Each result lies where all branches write it.
static void run_branch(placing *p, uint32_t i, uint32_t number) {
  const kl_instr *in = &p->c->instr[i], *operand = kl_operand(p->c, in, number + 1);
  uint32_t n = kl_place_leaves(in), params = kl_place_leaves(operand);
  place *given = KL_NEW_N(p->k->arena, place, params + 1u);
  for (uint32_t l = 0; l < params; l++)
    if (kl_shape_is_array(kl_shape_leaf(operand->shape, l))) given[l] = kl_place_of(p, in->operands[number + 1], l);
  bool *any = KL_NEW_N(p->k->arena, bool, n + 1u);
  placing x = kl_place_inside(p, &p->k->m->comp[in->called[number]], given);
  kl_place_aim(&x, p->at[i], any, NULL);
  kl_place_run(&x, p->at[i], any);
  kl_place_end(&x);
}

void kl_place_branches(placing *p, uint32_t i) {
  kl_kernels *k = p->k;
  const kl_instr *in = &p->c->instr[i];
  for (uint32_t l = 0; l < kl_place_leaves(in); l++) {
    const kl_shape *s = kl_shape_leaf(in->shape, l);
    if (!p->placed[i][l] && kl_shape_is_array(s)) p->at[i][l] = kl_place_buffer(p, s);
  }
  uint32_t number;
  if (is_settled(p, in, &number)) return run_branch(p, i, number);
  place index = kl_place_of(p, in->operands[0], 0);
  kl_place_end_step(p->cx, k);
  kl_place_read(p, &index.argument, (uint32_t)k->list.n);
  size_t step = k->steps.n;
  VEC_PUSH(p->cx, &k->steps,
           ((kiln_step){.kind = KILN_STEP_BRANCH,
                        .condition_bytes = index.shape->dtype == KILN_PRED ? 1 : 4,
                        .count = in->ncalled,
                        .condition = index.argument}));
  for (uint32_t b = 0; b < in->ncalled; b++) {
    size_t own = k->steps.n;
    VEC_PUSH(p->cx, &k->steps, ((kiln_step){.kind = KILN_STEP_CASE}));
    run_branch(p, i, b);
    kl_place_end_step(p->cx, k);
    k->steps.p[own].body = k->steps.n - own - 1;
  }
  k->steps.p[step].body = k->steps.n - step - 1;
  if (k->why) {
    kl_sb_puts(k->why, "conditional ");
    kl_sb_put(k->why, kl_symbol_text(&k->m->names, in->name));
    kl_sbf(k->why, ": %u branches, of which one is launched, by a value that is read before\n", in->ncalled);
  }
}
