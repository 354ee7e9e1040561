// Private to src/lower/plan/cost.
#ifndef KL_COST_IMPL_H
#define KL_COST_IMPL_H

#include "lower/plan/cost/cost.h"

// By step: the copies that something stored takes.
typedef struct kl_live {
  uint64_t copy[KL_MAX_COPIES / 64];
} kl_live;
kl_live *kl_live_copies(kl_plan *p, const kl_body *b); // NULL: all. The plan's arena's
// Is the copy at this point of the reg variables?
bool kl_is_live(const kl_body *b, const kl_live *live, uint32_t step, const int64_t *at);

// change.c: of threads, how many an index lies in the bounds for, if data takes any of its values alike.
double kl_share_of(const kl_body *b, const kl_aff *e, int64_t lo, int64_t hi);
// What a change's requests become, counted with any symbols, where these are any numbers, and for a share of threads.
// bytes: of a lane.
void kl_spread_change(const kl_slot_info *s, const kl_store *store, kl_requests *q, uint32_t bytes, double share);
double kl_change_instructions(const kl_slot_info *s, const kl_store *store); // beside the request itself

// Shuffles of an EXCHANGE step.
int64_t kl_exchanged_words(const kl_body *b, const kl_step *s);
// Instructions of a warp for a step, requests and shuffles aside.
double kl_step_instructions(const kl_plan *p, const kl_body *b, const kl_step *s);

#endif
