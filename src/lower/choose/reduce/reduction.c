// The chooser of reductions.

#include "lower/choose/reduce/reduce.h"

static bool fits_results(kl_choosing *c, const kl_reductions *x) {
  uint32_t n = (uint32_t)kl_shape_leaf_count(kl_root(c->plan->comp)->shape);
  for (uint32_t i = c->slots.nargs - n; i < c->slots.nargs; i++)
    if (kl_result_of(x, c->slots.v.p[i].shape) == KL_RESULT_NEITHER) return false;
  return true;
}

static kiln_status nothing(kl_choosing *c) {
  kl_plan_add_part(c->plan, &(kl_part){.dim = KL_NONE});
  return KILN_OK;
}

kiln_status kl_choose_reduction(kl_choosing *c, const char **why_not) {
  kl_reductions x = {0};
  KL_TRY(kl_find_reductions(c, &x, why_not));
  if (*why_not) return KILN_OK;
  if (!fits_results(c, &x))
    *why_not = "a result has neither an element for each row nor one for each that is reduced";
  else if (c->plan->counted)
    *why_not = "the element count comes at run time";
  if (*why_not) return KILN_OK;
  if (x.rows == 0) return nothing(c);
  return x.row ? kl_choose_rows(c, &x, why_not) : kl_choose_columns(c, &x, why_not);
}
