// Do a launch's accesses and barriers keep an order that does not depend on timing?
//
// Races: two accesses to the same bytes, one of them a write, that happens-before does not order and that are not both
// strong for each other. Barriers: lanes that are not together, wrong counts, arrivals that nobody waits for, who waits
// where in a deadlock. Shuffles from lanes that take no part. What orders memory: docs/memory_order.md.
#ifndef KL_CHECK_ORDER_H
#define KL_CHECK_ORDER_H

#include "sim/check/report.h"
#include "sim/machine/observe.h"

enum {
  KL_ORDER_RACES = 1, // of global memory, and of the shared memory of blocks and clusters
  KL_ORDER_SYNC = 2,  // barriers, member masks, shuffles
  // With RACES: of what lanes of a warp do together only bar.warp.sync orders memory, as the PTX ISA says to the
  // letter; else shuffles, votes and the like do too, which NVIDIA's own libraries rely on.
  KL_ORDER_LITERAL = 4,
};

// Observes one launch and adds what it finds to `report`, which must stay. `checks`: KL_ORDER_*. The same launch gives
// the same findings. Not for several threads of the host; a launch with observers runs on the caller's.
kl_observer *kl_order_new(kl_ctx *cx, kl_report *report, unsigned checks);
void kl_order_free(kl_observer *o);

#endif
