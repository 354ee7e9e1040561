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
  const char *why_no_updates = NULL;
  size_t slots = c->slots.v.n, constants = c->slots.constants.n;
  KL_TRY(kl_choose_updates(c, &x, &why_no_updates));
  if (!why_no_updates) return KILN_OK;
  VEC_PUSH(c->cx, &c->declined, (kl_declined){"updates", why_no_updates});
  kl_forget_choice(c, slots, constants);
  c->plan->count = x.array->count;
  return kl_choose_ordered(c, &x, why_not);
}
