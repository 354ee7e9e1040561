// Executes plans on fingerprints of plan_model.h, thread by thread, and says which promise of plan.h a plan breaks
// first. It has its own reading of plan.h: nothing of emission, nor what the plan's own house numbers copies with.
//
// Between two syncs threads may run in any order: what depends on one is broken. The result of a broken plan says
// where: "slot 2: element 7 is written twice".
#ifndef KL_TEST_INTERPRET_H
#define KL_TEST_INTERPRET_H

#include "lower/plan/plan.h"
#include "../plan_model.h"

typedef long long ll; // for messages

// Runs all of it. Each element of each result must be stored once and be the one of `want`. NULL: nothing is broken.
// The answer lives in `arena`.
const char *interpret(kl_arena *arena, const kl_plan *p, const leaves *want);
// The same of a plan that is counted, for so many rows, of which `want` has the most: what lies behind them is not
// looked at, and not stored.
const char *interpret_rows(kl_arena *arena, const kl_plan *p, const leaves *want, int64_t rows);
// Runs the first, the last and a few other blocks of what is too large for that, or of the threads of loops over
// elements. What they store must be right; `want` NULL: nothing is known of that.
const char *interpret_some(kl_arena *arena, const kl_plan *p, const leaves *want);

#endif
