// The chooser of scatter.

#include "lower/choose/scatter/scatter.h"

kiln_status kl_choose_scatter(kl_choosing *c, const char **why_not) {
  kl_scatter x;
  *why_not = NULL;
  KL_TRY(kl_find_scatter(c, &x, why_not));
  if (!*why_not && c->plan->counted) *why_not = "the element count comes at run time";
  if (*why_not) return KILN_OK;
  c->plan->count = x.array->count;
  if (c->plan->count == 0) {
    kl_plan_add_part(c->plan, &(kl_part){.dim = KL_NONE});
    return KILN_OK;
  }
  return kl_choose_ordered(c, &x, why_not);
}
