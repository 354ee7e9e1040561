// Where threads of a block wait for each other: from what is written to shared memory and read from it.
//
// What is read waits for what was written before, and what is written for what was read before, of one slot. Writes do
// not wait for writes: whoever writes plans lets no two threads write one element without a read between. What is
// changed waits for both, and they for it, but not for other changes.

#include "lower/plan/write.h"

// Slots that have been read, written and changed since the threads last waited; of slots that say so the element that
// all of these have named, NULL where these are several.
typedef struct state {
  bool *read, *written, *changed;
  const kl_aff **element;
} state;

typedef struct placing {
  kl_plan *p;
  const kl_body *body;
  kl_arena *arena;
} placing;

static state new_state(const placing *x) {
  bool *all = KL_NEW_N(x->arena, bool, 3 * (x->p->nslots + 1));
  const kl_aff **element = KL_NEW_N(x->arena, const kl_aff *, x->p->nslots + 1);
  return (state){all, all + x->p->nslots + 1, all + 2 * (x->p->nslots + 1), element};
}

static bool touches(const state *s, uint32_t slot) {
  return s->read[slot] || s->written[slot] || s->changed[slot];
}

static void add(const placing *x, state *to, const state *s) {
  for (uint32_t i = 0; i < x->p->nslots; i++) {
    if (touches(s, i)) to->element[i] = !touches(to, i) || to->element[i] == s->element[i] ? s->element[i] : NULL;
    to->read[i] |= s->read[i];
    to->written[i] |= s->written[i];
    to->changed[i] |= s->changed[i];
  }
}

static void clear(const placing *x, state *s) {
  memset(s->read, 0, x->p->nslots);
  memset(s->written, 0, x->p->nslots);
  memset(s->changed, 0, x->p->nslots);
}

static bool conflicts(const placing *x, const state *before, const state *now) {
  for (uint32_t i = 0; i < x->p->nslots; i++) {
    if (x->p->slots[i].own && before->element[i] && before->element[i] == now->element[i]) continue;
    if ((before->written[i] || before->changed[i]) && now->read[i]) return true;
    if ((before->read[i] || before->changed[i]) && now->written[i]) return true;
    if ((before->read[i] || before->written[i]) && now->changed[i]) return true;
  }
  return false;
}

static bool is_shared(const placing *x, uint32_t slot) {
  return x->p->slots[slot].kind == KL_SLOT_SHARED;
}

static void touch(const placing *x, const kl_access *a, state *s, bool *done) {
  if (!is_shared(x, a->slot)) return;
  s->element[a->slot] = !touches(s, a->slot) || s->element[a->slot] == a->element ? a->element : NULL;
  done[a->slot] = true;
}

static void summarize(const placing *x, const kl_node *n, state *s) {
  if (n->kind == KL_NODE_STEP && x->body->steps[n->index].kind == KL_STEP_LOAD)
    touch(x, &x->body->steps[n->index].access, s, s->read);
  if (n->kind == KL_NODE_STORE) {
    const kl_store *t = &x->body->stores[n->index];
    touch(x, &t->access, s, t->how == KL_STORE_PUT ? s->written : s->changed);
  }
  for (uint32_t i = 0; n->nest && i < n->nest->inside.n; i++) summarize(x, &n->nest->inside.nodes[i], s);
}

// Threads that wait for other blocks wait for each other.
static bool waits(const kl_node *n) {
  return n->kind == KL_NODE_MEET || n->kind == KL_NODE_BEFORE;
}

static kl_seq place(const placing *x, const kl_seq *s, state *now);

// What has been touched where a round ends, and the next one begins.
static state end_of_round(const placing *x, const kl_node *loop) {
  state end = new_state(x);
  place(x, &loop->nest->inside, &end);
  return end;
}

// Do threads wait for each other in each round before they touch what they have to wait for?
static bool waits_inside(const placing *x, const kl_node *loop, const state *before) {
  state round = end_of_round(x, loop);
  for (uint32_t i = 0; i < loop->nest->inside.n; i++) {
    const kl_node *n = &loop->nest->inside.nodes[i];
    state here = new_state(x);
    summarize(x, n, &here);
    if (n->kind == KL_NODE_LAST || waits(n) || conflicts(x, &round, &here)) return true;
    if (conflicts(x, before, &here)) return false;
    add(x, &round, &here);
  }
  return true;
}

// A round begins as the one before ended.
static kl_node place_loop(const placing *x, const kl_node *n, state *now) {
  state end = end_of_round(x, n);
  add(x, now, &end);
  kl_nest *nest = kl_arena_dup(x->p->arena, n->nest, sizeof *nest);
  nest->inside = place(x, &n->nest->inside, now);
  return (kl_node){n->kind, n->index, nest};
}

// Blocks that come last have met at its beginning.
static kl_node place_last(const placing *x, const kl_node *n, state *now) {
  kl_nest *nest = kl_arena_dup(x->p->arena, n->nest, sizeof *nest);
  clear(x, now);
  nest->inside = place(x, &n->nest->inside, now);
  return (kl_node){n->kind, n->index, nest};
}

static bool must_wait(const placing *x, const kl_node *n, const state *now, const state *here) {
  if (n->kind == KL_NODE_LAST || !conflicts(x, now, here)) return false;
  return n->kind != KL_NODE_LOOP || !waits_inside(x, n, now);
}

static kl_seq place(const placing *x, const kl_seq *s, state *now) {
  kl_node *nodes = KL_NEW_N(x->p->arena, kl_node, 2 * s->n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    state here = new_state(x);
    summarize(x, &s->nodes[i], &here);
    if (waits(&s->nodes[i])) clear(x, now);
    if (must_wait(x, &s->nodes[i], now, &here)) {
      nodes[n++] = (kl_node){.kind = KL_NODE_SYNC};
      clear(x, now);
    }
    nodes[n] = s->nodes[i];
    if (s->nodes[i].kind == KL_NODE_LOOP) nodes[n] = place_loop(x, &s->nodes[i], now);
    if (s->nodes[i].kind == KL_NODE_LAST) nodes[n] = place_last(x, &s->nodes[i], now);
    add(x, now, &here);
    n++;
  }
  return (kl_seq){n, nodes};
}

static void place_in(kl_plan *p, kl_body *b) {
  if (kl_body_is_empty(b)) return;
  kl_arena scratch;
  kl_arena_init(&scratch, kl_affs_context(p->affs));
  placing x = {p, b, &scratch};
  state now = new_state(&x);
  b->root = place(&x, &b->root, &now);
  kl_arena_free(&scratch);
}

void kl_plan_place_syncs(kl_plan *p) {
  for (uint32_t i = 0; i < p->nparts; i++) {
    if (!kl_launch_of(p, i)->shared_bytes) continue;
    place_in(p, &p->parts[i].main);
    place_in(p, &p->parts[i].tail);
  }
}
