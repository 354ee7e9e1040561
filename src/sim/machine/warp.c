// Which strand of a warp runs: the one that has had the fewest turns, of these the one deepest in calls, of these the
// one at the lowest op. So strands wait for those behind them and join, as code is laid out, where their ways meet; and
// one that goes round in circles gives way to the others when its turn is over.

#include "sim/machine/observe.h"

// Backward branches and calls of a turn: fewer while others of the warp are ready, which may be what the strand waits
// for; but more than rounds of loops that lanes leave one after the other, to go on together, such as a remainder's.
enum { LONG_TURN = 256, SHORT_TURN = 64 };

uint32_t kl_draw_below(kl_cluster *c, uint32_t n) {
  if (!c->random || n < 2) return 0;
  c->random ^= c->random << 13, c->random ^= c->random >> 7, c->random ^= c->random << 17;
  return (uint32_t)((c->random >> 32) * n >> 32);
}

static bool goes_before(const kl_strand *a, const kl_strand *b) {
  if (a->turns != b->turns) return a->turns < b->turns;
  if (a->frame->depth != b->frame->depth) return a->frame->depth > b->frame->depth;
  return a->pc < b->pc;
}

// Strands at the same place become one.
static void join(kl_warp *w) {
  for (uint32_t k = 0; k < w->nwaiting; k++)
    for (uint32_t n = k + 1; n < w->nwaiting;) {
      kl_strand *a = &w->waiting[k], *b = &w->waiting[n];
      if (a->wait != KL_READY || b->wait != KL_READY || a->pc != b->pc || a->frame != b->frame) {
        n++;
        continue;
      }
      a->mask |= b->mask;
      a->turns = a->turns > b->turns ? a->turns : b->turns;
      a->spent = a->spent > b->spent ? a->spent : b->spent;
      *b = w->waiting[--w->nwaiting];
    }
}

// The strand that ran, if it has lanes left, is one of those that wait.
static void put_back(kl_warp *w) {
  if (!w->strand.mask) return;
  w->strand.pc = (uint32_t)(w->next - w->strand.frame->code->ops);
  w->strand.wait = KL_READY;
  w->waiting[w->nwaiting++] = w->strand;
  w->strand.mask = 0;
}

// Takes the strand that goes next; it runs up to the next one of its function that it may join.
static bool pick(kl_warp *w) {
  uint32_t best = w->nwaiting, ready = 0, end;
  for (uint32_t k = 0; k < w->nwaiting; k++) {
    if (w->waiting[k].wait != KL_READY) continue;
    ready++;
    if (best == w->nwaiting || goes_before(&w->waiting[k], &w->waiting[best])) best = k;
  }
  if (!ready) return false;
  for (uint32_t skip = kl_draw_below(w->block->cluster, ready), k = 0; skip && k < w->nwaiting; k++)
    if (w->waiting[k].wait == KL_READY && --skip == 0) best = k;
  w->strand = w->waiting[best];
  w->waiting[best] = w->waiting[--w->nwaiting];
  end = w->strand.frame->code->nops;
  for (uint32_t k = 0; k < w->nwaiting; k++) {
    const kl_strand *s = &w->waiting[k];
    if (s->wait == KL_READY && s->frame == w->strand.frame && s->pc > w->strand.pc && s->pc < end) end = s->pc;
  }
  kl_enter_frame(w, w->strand.frame);
  w->next = w->strand.frame->code->ops + w->strand.pc;
  w->limit = w->strand.frame->code->ops + end;
  kl_set_mask(&w->x, w->strand.mask);
  w->alone = ready == 1;
  w->turn = w->alone ? LONG_TURN : SHORT_TURN;
  return true;
}

static void run(kl_warp *w) {
  do {
    const kl_sim_op *o = w->next;
    w->next = o + 1;
    o->run(&w->x, o);
  } while (w->next < w->limit);
}

// Counts `branches` of the warp; false if the block has had all that the launch allows.
static bool may_go_on(kl_warp *w, uint32_t branches) {
  uint64_t most = w->block->run->launch->most_branches;
  w->block->branches += branches;
  if (!most || w->block->branches <= most) return true;
  uint32_t mask = w->strand.mask;
  const kl_sim_op *at = w->next < w->strand.frame->code->ops + w->strand.frame->code->nops ? w->next : w->next - 1;
  if (mask) kl_faulted(w, at, KL_FAULT_TIME, (unsigned)__builtin_ctz(mask), 0);
  put_back(w);
  return false;
}

static void run_observed(kl_warp *w) {
  kl_observer *const *tell = w->block->run->steppers;
  const uint32_t n = w->block->run->nsteppers;
  const bool all = w->block->run->tells_all;
  do {
    const kl_sim_op *o = w->next;
    w->next = o + 1;
    if (o->told || all || w->strand.frame->lacks)
      for (uint32_t k = 0; k < n; k++) tell[k]->step(tell[k], w, o);
    o->run(&w->x, o);
  } while (w->next < w->limit);
}

bool kl_warp_run(kl_warp *w) {
  bool ran = false;
  if (w->nflights) kl_copies_drift(w);
  for (;;) {
    join(w);
    if (!pick(w)) return ran;
    ran = true;
    if (w->observed)
      run_observed(w);
    else
      run(w);
    if (w->rounds >= LONG_TURN) { // lanes part and join, round after round: others of the block get their turn
      if (!may_go_on(w, w->rounds)) return true;
      w->rounds = 0;
      put_back(w);
      return true;
    }
    if (w->strand.spent >= w->turn) {
      if (!may_go_on(w, w->strand.spent)) return true;
      w->strand.spent = 0;
      w->strand.turns++;
      bool alone = true;
      for (uint32_t k = 0; k < w->nwaiting; k++) alone &= w->waiting[k].wait != KL_READY;
      put_back(w);
      if (alone || w->strand.turns % 16 == 0) return true; // others of the block get their turn
    } else {
      put_back(w);
    }
    if (w->exited) {
      kl_warp_after_exit(w);
      kl_barriers_after_exit(w->block);
      kl_cluster_after_exit(w->block->cluster);
    }
    if (atomic_load_explicit(&w->block->run->failed_block, memory_order_relaxed) <= w->block->number) return true;
  }
}
