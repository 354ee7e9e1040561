// Where stores stand.

#include "lower/plan/plan.h"

// Up to so many results are stored behind all steps, so that every load comes before the first store; of more, each
// group of so many once its values are there, or they would all have to be held at once.
enum { STORES_AT_ONCE = 16 };

typedef struct latest {
  uint32_t step;
} latest;

static void note_latest(void *arg, uint32_t step) {
  latest *x = arg;
  if (step > x->step) x->step = step;
}

// By store: the step behind which it may stand. What it takes is there, and nothing is read any more of what it
// overwrites.
// last_read: room for one of each slot.
static const uint32_t *steps_before_stores(const kl_plan *p, const kl_body *b, uint32_t *last_read) {
  for (uint32_t i = 0; i < b->nstores; i++) last_read[b->stores[i].access.slot] = 0;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    if (b->steps[i].kind != KL_STEP_LOAD) continue;
    uint32_t result = p->slots[b->steps[i].access.slot].alias;
    if (result != KL_NONE) last_read[result] = i;
  }
  uint32_t *behind = KL_NEW_N(p->arena, uint32_t, b->nstores + 1);
  for (uint32_t i = 0; i < b->nstores; i++) {
    latest x = {last_read[b->stores[i].access.slot]};
    kl_each_taken(b, &(kl_node){.kind = KL_NODE_STORE, .index = i}, note_latest, &x);
    behind[i] = x.step;
  }
  return behind;
}

static bool is_straight(const kl_plan *p, const kl_body *b) {
  for (uint32_t i = 0; i < b->root.n; i++)
    if (b->root.nodes[i].nest || b->root.nodes[i].kind == KL_NODE_SYNC || b->root.nodes[i].kind == KL_NODE_MEET)
      return false;
  for (uint32_t i = 0; i < b->nstores; i++)
    if (p->slots[b->stores[i].access.slot].kind == KL_SLOT_SHARED) return false;
  return true;
}

static void order_body(const kl_plan *p, kl_body *b, uint32_t *last_read) {
  if (!is_straight(p, b)) return;
  const uint32_t *behind = steps_before_stores(p, b, last_read);
  kl_node *nodes = KL_NEW_N(p->arena, kl_node, b->nsteps + b->nstores + 1);
  uint32_t n = 0, stored = 0, ready = 0;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    nodes[n++] = (kl_node){.kind = KL_NODE_STEP, .index = i};
    while (ready < b->nstores && behind[ready] <= i) ready++;
    if (b->nstores <= STORES_AT_ONCE || ready - stored < STORES_AT_ONCE) continue;
    while (stored < ready) nodes[n++] = (kl_node){.kind = KL_NODE_STORE, .index = stored++};
  }
  while (stored < b->nstores) nodes[n++] = (kl_node){.kind = KL_NODE_STORE, .index = stored++};
  b->root = (kl_seq){n, nodes};
}

void kl_plan_order_stores(kl_plan *p) {
  uint32_t *last_read = KL_NEW_N(p->arena, uint32_t, p->nslots + 1);
  for (uint32_t i = 0; i < p->nparts; i++) {
    order_body(p, &p->parts[i].main, last_read);
    order_body(p, &p->parts[i].tail, last_read);
  }
}
