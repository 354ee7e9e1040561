// Executes plans thread by thread on fingerprints of plan_model.h. The first broken promise of a plan fails the test.
#ifndef KL_TEST_PLAN_RUN_H
#define KL_TEST_PLAN_RUN_H

#include "lower/plan/plan.h"
#include "plan_model.h"

#include <check.h>

typedef long long ll; // for messages

// Runs everything: each element of each result must be stored once and be the one of `want`. `about` is for messages.
void run_plan(kl_arena *arena, const kl_plan *p, const leaves *want, const char *about);
// Runs the first, the last and a few other threads of what is too large for that, without results to compare.
void run_some_threads(kl_arena *arena, const kl_plan *p, const char *about);

#endif
