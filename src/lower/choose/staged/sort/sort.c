// Sort and topk: what is sorted, by what, and how (merge.h, digits.c, top.c).

#include "lower/choose/staged/sort/sort.h"

static void find_compared(kl_sort *x) {
  x->compared = KL_NEW_N(x->s->c->arena, bool, x->n);
  *x->compared = !x->less;
  for (uint32_t i = 0; x->less && i < x->n; i++)
    for (uint32_t which = 0; which < 2; which++) {
      uint32_t p = x->less->params[2 * i + which];
      x->compared[i] |= x->less->root == p;
      for (uint32_t k = 0; k < x->less->ninstr; k++)
        for (uint32_t o = 0; o < x->less->instr[k].noperands; o++) x->compared[i] |= x->less->instr[k].operands[o] == p;
    }
}

void kl_sort_describe(const kl_stage *s, kl_sort *x) {
  const kl_instr *in = s->instr;
  const kl_comp *comp = s->c->plan->comp;
  bool sorts = in->op == KL_OP_SORT;
  const kl_shape *whole = kl_operand(comp, in, 0)->shape;
  *x = (kl_sort){.s = s, .n = sorts ? in->noperands : 2, .out = s->slot ? kl_stage_result(s, 0) : whole};
  kl_shape *shape = kl_in_order(s->c->plan->arena, x->out);
  shape->dims = whole->dims;
  shape->count = whole->count;
  x->shape = shape;
  x->dim = sorts ? (uint32_t)in->dims[0] : x->shape->rank - 1;
  x->length = x->shape->dims[x->dim];
  x->less = sorts ? &s->c->plan->module->comp[in->called[0]] : NULL;
  x->integer = kl_stage_integer(2 * x->length > 0 ? 4 * x->length : INT64_MAX);
  kl_dtype *type = KL_NEW_N(s->c->arena, kl_dtype, x->n);
  for (uint32_t i = 0; i < x->n; i++) type[i] = kl_shape_leaf(in->shape, i)->dtype;
  x->type = type;
  find_compared(x);
}

kl_sorting kl_sort_way(const kl_sort *x, kl_sorting wanted) {
  if (wanted == KL_KEEPS_FEW) return kl_sort_keeps_few(x) ? KL_KEEPS_FEW : KL_MERGES;
  if (wanted == KL_MERGES || x->s->c->plan->target.machine != KL_NVPTX) return KL_MERGES;
  return kl_sort_digits_way(x, wanted);
}

kiln_status kl_stage_sort(const kl_stage *s, const char **why_not) {
  kl_sort x;
  kl_sort_describe(s, &x);
  kl_sorting way = kl_sort_way(&x, s->c->sorting);
  if (way == KL_KEEPS_FEW) return kl_sort_top(&x);
  return way == KL_SORTS_BY_DIGITS ? kl_sort_by_digits(&x) : kl_sort_by_merging(&x, way);
}
