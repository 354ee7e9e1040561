// Which copies of values something stored takes.
#ifndef KL_LIVE_H
#define KL_LIVE_H

#include "lower/plan/plan.h"

// By step: the copies that something stored takes.
typedef struct kl_live {
  uint64_t copy[KL_MAX_COPIES / 64];
} kl_live;
kl_live *kl_live_copies(kl_plan *p, const kl_body *b); // NULL: all. The plan's arena's
// Is the copy at this point of the reg variables?
bool kl_is_live(const kl_body *b, const kl_live *live, uint32_t step, const int64_t *at);

#endif
