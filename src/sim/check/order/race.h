// What the files that judge accesses share.
#ifndef KL_ORDER_RACE_H
#define KL_ORDER_RACE_H

#include "sim/check/order/state.h"

// Who accesses, and what.
typedef struct kl_actor {
  kl_ordering *r;
  kl_order_block *ob;
  kl_order_warp *ow;
  kl_ticks *t;
  kl_warp *w;
  const kl_sim_op *op;
  const kl_sim_access *m;
  const kl_places *p;
  const kl_site *s;
  uint64_t warp;
  uint32_t site;
  uint32_t bytes; // of the whole access
  // of the cell at hand
  uint32_t lanes, step; // one lane, or several that read the same and know the same
  uint32_t at, size;    // where it lies in the access
} kl_actor;

// Where a lane's bytes lie; no page: in memory that is the thread's own or read-only.
typedef struct kl_race_spot {
  kl_page *page;
  uint32_t at; // in the page
} kl_race_spot;
kl_race_spot kl_race_spot_of(const kl_actor *y, unsigned lane);

// Readers of many blocks: the first and the first of another block stand for all. False: y is to be remembered.
bool kl_is_read_enough(const kl_actor *y, kl_seen *seen, uint32_t *n);
// Room for one more: the oldest of its strength goes; of strong ones, so that what one has observed is older than it.
void kl_make_room(const kl_actor *y, kl_seen *seen, uint32_t *n);

// --- quick.c: accesses that are seen at a glance to race with nothing ---------------------------------------------

// Of y's one lane, which makes a plain access. False: it is not seen, and the cell stays as it was.
bool kl_visit_cell(const kl_actor *y, kl_cell *c);
// Visits lanes, by rising number, as long as it is seen of each; which ones are left. What the first of these has
// visited already, it may visit again.
uint32_t kl_visit_quickly(kl_actor *y, uint32_t lanes);

#endif
