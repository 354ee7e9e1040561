// Why a plan is as it is and what it costs, for people and as JSON.
#ifndef KL_EXPLAIN_H
#define KL_EXPLAIN_H

#include "lower/plan/plan.h"

void kl_plan_explain(kl_sb *b, kl_plan *p);
void kl_plan_explain_json(kl_sb *b, kl_plan *p); // one object
#endif
