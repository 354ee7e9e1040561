// What barriers order. A barrier of a block: all that came before it opened, for those that waited in it; lanes that
// met in bar.warp.sync, or in another .sync operation; a cluster's barrier by arrive.release and wait.acquire.

#include "sim/check/order/state.h"

void kl_sync_arrive(kl_observer *o, kl_warp *w, const kl_sim_op *op, unsigned barrier, uint32_t expected,
                    uint32_t lanes) {
  kl_ordering *r = kl_order_of(o);
  kl_order_block *ob = kl_order_block_of(r, w->block);
  if (!ob) return;
  if (r->checks & KL_ORDER_SYNC) kl_misuse_arrive(r, ob, w, op, barrier, expected, lanes);
  if (op->run != kl_x_arrive || !(r->checks & KL_ORDER_RACES)) return;
  kl_ticks *t = &ob->warps[w->rank].t;
  ob->arrivals[barrier].came = kl_past_gather(&r->clocks, ob->arrivals[barrier].came, t, lanes);
  kl_tick(&r->clocks, t, lanes);
}

void kl_sync_open(kl_observer *o, kl_block *b, unsigned barrier) {
  kl_ordering *r = kl_order_of(o);
  kl_order_block *ob = kl_order_block_of(r, b);
  uint32_t lanes[KL_LANES], gone[KL_LANES], waiting = 0;
  if (!ob) return;
  if (r->checks & KL_ORDER_SYNC) kl_misuse_open(r, b, barrier);
  if (!(r->checks & KL_ORDER_RACES)) return;
  kl_ticks *ticks[KL_LANES];
  for (uint32_t k = 0; k < b->nwarps; k++) {
    const kl_warp *w = &b->warps[k];
    lanes[k] = 0;
    gone[k] = w->lanes & ~w->alive;
    ticks[k] = &ob->warps[k].t;
    for (uint32_t i = 0; i < w->nwaiting; i++)
      if (w->waiting[i].wait == KL_AT_BARRIER && w->waiting[i].barrier == barrier) lanes[k] |= w->waiting[i].mask;
    waiting += (uint32_t)__builtin_popcount(lanes[k]);
  }
  kl_past *came = ob->arrivals[barrier].came;
  ob->arrivals[barrier].came = NULL;
  kl_all_meet(&r->clocks, ticks, lanes, gone, waiting == b->alive && !came, came);
}

void kl_sync_meet(kl_observer *o, const kl_party *p) {
  kl_ordering *r = kl_order_of(o);
  kl_order_block *ob = kl_order_block_of(r, p->w->block);
  if (!ob) return;
  if (r->checks & KL_ORDER_SYNC) kl_misuse_meet(r, p);
  kl_run *run = p->op[__builtin_ctz(p->mask)]->run;
  bool orders = run == kl_x_warp_sync || (run != kl_x_matrices && !(r->checks & KL_ORDER_LITERAL));
  if (r->checks & KL_ORDER_RACES && orders) kl_meet(&r->clocks, &ob->warps[p->w->rank].t, p->mask);
}

// --- of a cluster -------------------------------------------------------------------------------------------------

void kl_sync_cluster_arrive(kl_ordering *r, kl_warp *w, const kl_sim_op *op, const kl_order_op *how) {
  kl_order_block *ob = kl_order_block_of(r, w->block), *first = kl_order_block_of(r, w->block->cluster->blocks);
  kl_order_warp *ow = &ob->warps[w->rank];
  if (r->checks & KL_ORDER_SYNC) kl_misuse_cluster(r, ow, w, op, how, true);
  KL_EACH_LANE(i, w->x.mask) ow->arrivals[i]++;
  if (!(r->checks & KL_ORDER_RACES) || !how->releases) return;
  first->cluster_came = kl_past_gather(&r->clocks, first->cluster_came, &ow->t, w->x.mask);
  kl_tick(&r->clocks, &ow->t, w->x.mask);
}

void kl_sync_open_cluster(kl_observer *o, kl_cluster *c) {
  kl_ordering *r = kl_order_of(o);
  kl_order_block *first = kl_order_block_of(r, c->blocks);
  if (!first) return;
  kl_past_drop(&r->clocks, first->cluster_past);
  first->cluster_past = first->cluster_came;
  first->cluster_came = NULL;
}

void kl_sync_cluster_wait(kl_ordering *r, kl_warp *w, const kl_sim_op *op, const kl_order_op *how) {
  const kl_cluster *c = w->block->cluster;
  kl_order_block *ob = kl_order_block_of(r, w->block), *first = kl_order_block_of(r, c->blocks);
  kl_order_warp *ow = &ob->warps[w->rank];
  uint32_t passes = w->x.mask & ~kl_cluster_waits(w, w->x.mask); // others ask again
  if (r->checks & KL_ORDER_SYNC) kl_misuse_cluster(r, ow, w, op, how, false);
  KL_EACH_LANE(i, passes) {
    ow->arrive[i] = NULL;
    if (++ow->meetings[i] > ob->meetings) ob->meetings = ow->meetings[i];
  }
  if (r->checks & KL_ORDER_RACES && how->acquires && first->cluster_past)
    kl_learn(&r->clocks, &ow->t, passes, first->cluster_past);
}
