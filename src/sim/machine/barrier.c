// Barriers of blocks and clusters.

#include "sim/machine/execute.h"
#include "sim/machine/observe.h"
#include "sim/machine/warp.h"

// --- of a block ---------------------------------------------------------------------------------------------------

// What the barrier's reduction gives a strand that waits in it.
static void give(kl_warp *w, const kl_strand *s, const kl_barrier *b) {
  const kl_sim_op *o = &s->frame->code->ops[s->pc];
  char *regs = s->frame->regs + (o->d & ~(kl_ref)3);
  if (o->d == KL_NO_REF) return;
  if (o->imm == KL_REDUCE_COUNT) {
    for (int i = 0; i < KL_LANES; i++)
      if (s->mask >> i & 1) ((uint32_t *)regs)[i] = b->count;
  } else {
    bool holds = o->imm == KL_REDUCE_AND ? b->all : b->any;
    *(uint32_t *)regs = (*(uint32_t *)regs & ~s->mask) | (holds ? s->mask : 0);
  }
  (void)w;
}

static bool is_complete(const kl_block *b, const kl_barrier *bar) {
  return bar->waiting && (bar->expected ? bar->arrived >= bar->expected : bar->waiting == b->alive);
}

static void open_barrier(kl_block *b, unsigned id) {
  kl_barrier *bar = &b->barriers[id];
  KL_TELL(b, open, b, id);
  for (uint32_t k = 0; k < b->nwarps; k++) {
    kl_warp *w = &b->warps[k];
    for (uint32_t n = 0; n < w->nwaiting; n++) {
      kl_strand *s = &w->waiting[n];
      if (s->wait != KL_AT_BARRIER || s->barrier != id) continue;
      give(w, s, bar);
      s->wait = KL_READY;
      s->pc++;
    }
    w->arrived[id] = 0;
  }
  *bar = (kl_barrier){.all = true};
}

void kl_barriers_after_exit(kl_block *b) {
  for (unsigned id = 0; id < KL_BARRIERS; id++)
    if (is_complete(b, &b->barriers[id])) open_barrier(b, id);
}

// Threads that arrive: a warp of which no lane is missing counts 32, as warps do.
static void count(kl_warp *w, kl_barrier *bar, unsigned id, uint32_t mask) {
  w->arrived[id] |= mask;
  bar->arrived += (uint32_t)__builtin_popcount(mask);
  if (w->arrived[id] == w->alive) bar->arrived += KL_LANES - (uint32_t)__builtin_popcount(w->alive);
}

// Barrier and thread count are those of the strand's first lane; lanes that name others part from it.
static bool arrive(kl_warp *w, const kl_sim_op *o, unsigned *id, uint32_t *expected) {
  kl_lanes *x = &w->x;
  const uint32_t *a = AT(uint32_t, o->a), *b = o->b == KL_NO_REF ? NULL : AT(uint32_t, o->b);
  unsigned lane = (unsigned)__builtin_ctz(x->mask);
  uint32_t same = 0;
  for (unsigned i = 0; i < KL_LANES; i++) same |= (uint32_t)(a[i] == a[lane] && (!b || b[i] == b[lane])) << i;
  if (a[lane] >= KL_BARRIERS || (b && b[lane] % KL_LANES != 0)) {
    kl_faulted(w, o, KL_FAULT_BARRIER, lane, a[lane]);
    return false;
  }
  if (x->mask & ~same) {
    kl_split_off(w, x->mask & ~same, kl_op_number(w, o));
    kl_set_mask(x, w->strand.mask);
  }
  *id = a[lane];
  *expected = b ? b[lane] : 0;
  if (w->observed) KL_TELL(w->block, arrive, w, o, *id, *expected, x->mask);
  return true;
}

void kl_x_barrier(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  unsigned id = 0;
  uint32_t expected = 0;
  if (!arrive(w, o, &id, &expected)) return;
  kl_barrier *bar = &w->block->barriers[id];
  uint32_t mask = x->mask;
  if (o->c != KL_NO_REF && o->imm != KL_REDUCE_NONE) {
    uint32_t p = (*AT(uint32_t, o->c) ^ (o->flags & KL_NOT_C ? KL_ALL_LANES : 0)) & mask;
    bar->all &= p == mask;
    bar->any |= p != 0;
    bar->count += (uint32_t)__builtin_popcount(p);
  }
  kl_strand *s = kl_split_off(w, mask, kl_op_number(w, o));
  s->wait = KL_AT_BARRIER;
  s->barrier = (uint8_t)id;
  bar->waiting += (uint32_t)__builtin_popcount(mask);
  bar->expected = expected;
  count(w, bar, id, mask);
  if (is_complete(w->block, bar)) open_barrier(w->block, id);
}

void kl_x_arrive(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  unsigned id = 0;
  uint32_t expected = 0;
  if (!arrive(w, o, &id, &expected)) return;
  kl_barrier *bar = &w->block->barriers[id];
  bar->expected = expected;
  count(w, bar, id, x->mask);
  if (is_complete(w->block, bar)) open_barrier(w->block, id);
}

// --- of a cluster -------------------------------------------------------------------------------------------------

static uint32_t alive_in(const kl_cluster *c) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < c->n; k++) n += c->blocks[k].alive;
  return n;
}

static void open_cluster(kl_cluster *c) {
  KL_TELL(&c->blocks[0], open_cluster, c);
  c->arrived = 0;
  c->phase++;
  for (uint32_t k = 0; k < c->n; k++)
    for (uint32_t n = 0; n < c->blocks[k].nwarps; n++) {
      kl_warp *w = &c->blocks[k].warps[n];
      for (uint32_t i = 0; i < w->nwaiting; i++)
        if (w->waiting[i].wait == KL_AT_CLUSTER) w->waiting[i].wait = KL_READY; // asks again
    }
}

void kl_cluster_after_exit(kl_cluster *c) {
  if (c->arrived && c->arrived >= alive_in(c)) open_cluster(c);
}

void kl_x_cluster_arrive(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  kl_cluster *c = w->block->cluster;
  (void)o;
  for (unsigned i = 0; i < KL_LANES; i++)
    if (x->mask >> i & 1) w->phase[i] = c->phase;
  c->arrived += (uint32_t)__builtin_popcount(x->mask);
  if (c->arrived >= alive_in(c)) open_cluster(c);
}

void kl_x_cluster_wait(kl_lanes *x, const kl_sim_op *o) {
  kl_warp *w = kl_warp_of(x);
  uint32_t waits = kl_cluster_waits(w, x->mask);
  if (!waits) return;
  kl_split_off(w, waits, kl_op_number(w, o))->wait = KL_AT_CLUSTER;
  kl_set_mask(x, w->strand.mask);
}
