// Private to src/lower/plan/cost.
#ifndef KL_COST_IMPL_H
#define KL_COST_IMPL_H

#include "lower/plan/cost/cost.h"

// Instructions of a warp for a step, requests and shuffles aside.
double kl_step_instructions(const kl_plan *p, const kl_body *b, const kl_step *s);

#endif
