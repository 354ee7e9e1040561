// What something stored takes: steps, and of these the copies.
//
// Of what nothing takes LLVM makes nothing, but for a load that finds another of the same place later on: that is then
// made where the first one stands, by other threads than the plan says. So what nothing takes is not in plans. Where a
// chunk is known not to be stored, what is made for it alone falls away as well, and so do its loads.

#include "lower/plan/live.h"

static void mark(const kl_body *b, kl_live *live, uint32_t step, const int64_t *at) {
  uint32_t copy = kl_point_number(b, b->steps[step].regs, KL_NONE, at);
  live[step].copy[copy / 64] |= 1ull << copy % 64;
}

static void mark_all(kl_live *live, uint32_t step) {
  memset(live[step].copy, 0xff, sizeof live[step].copy);
}

bool kl_is_live(const kl_body *b, const kl_live *live, uint32_t step, const int64_t *at) {
  if (!live) return true;
  uint32_t copy = kl_point_number(b, b->steps[step].regs, KL_NONE, at);
  return live[step].copy[copy / 64] >> copy % 64 & 1;
}

static void mark_operands(const kl_body *b, kl_live *live, uint32_t step) {
  const kl_step *s = &b->steps[step];
  uint32_t copies = (uint32_t)kl_extent(b, s->regs);
  for (uint32_t i = 0; i < copies; i++) {
    int64_t at[KL_MAX_VARS] = {0};
    if (!(live[step].copy[i / 64] >> i % 64 & 1)) continue;
    kl_nth_point(b, s->regs, KL_NONE, i, at);
    if (s->kind == KL_STEP_TAKE) at[s->var] = s->distance;
    for (uint32_t o = 0; o < s->noperands; o++) mark(b, live, s->operands[o], at);
    for (int64_t v = 0; s->kind == KL_STEP_SLIDE && v < b->vars[s->var].extent; v++) {
      at[s->var] = v;
      for (uint32_t o = 0; o < s->noperands; o++) mark(b, live, s->operands[o], at);
    }
    if (s->kind != KL_STEP_EXCHANGE) continue;
    at[s->var] ^= s->distance; // what the other lane takes
    mark(b, live, s->operands[0], at);
  }
}

static void mark_carried(const kl_seq *s, kl_live *live) {
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_nest *nest = s->nodes[i].nest;
    if (!nest) continue;
    for (uint32_t k = 0; k < nest->ncarried; k++) {
      mark_all(live, nest->carried[k].value);
      if (nest->carried[k].first != KL_NONE) mark_all(live, nest->carried[k].first);
      mark_all(live, nest->carried[k].next);
    }
    mark_carried(&nest->inside, live);
  }
}

static kl_truth kept(kl_plan *p, const kl_body *b, const kl_store *s, uint32_t copy, int64_t *at) {
  memset(at, 0, KL_MAX_VARS * sizeof *at);
  kl_nth_point(b, s->access.regs, s->access.run, copy, at);
  return s->keep == KL_NONE ? KL_YES : kl_guard_at(p, b, s->keep, kl_inner(b), at);
}

kl_live *kl_live_copies(kl_plan *p, const kl_body *b) {
  int64_t at[KL_MAX_VARS];
  bool all = true;
  for (uint32_t i = 0; i < b->nstores && all; i++)
    for (uint32_t k = 0; k < b->stores[i].access.nchunks && b->stores[i].keep != KL_NONE && all; k++)
      all = kept(p, b, &b->stores[i], k * b->stores[i].access.vec, at) != KL_NO;
  if (all) return NULL;
  kl_live *live = KL_NEW_N(p->arena, kl_live, b->nsteps + 1);
  for (uint32_t i = 0; i < b->nstores; i++) {
    const kl_access *a = &b->stores[i].access;
    for (uint32_t k = 0; k < a->nchunks * a->vec; k++)
      if (kept(p, b, &b->stores[i], k / a->vec * a->vec, at) != KL_NO) {
        kl_nth_point(b, a->regs, a->run, k, at);
        mark(b, live, b->stores[i].step, at);
      }
  }
  for (uint32_t i = 0; i < b->nsteps; i++)
    if (b->steps[i].kind == KL_STEP_INDEX) mark_all(live, i);
  mark_carried(&b->root, live);
  for (uint32_t i = b->nsteps; i-- > 0;) mark_operands(b, live, i);
  return live;
}

// --- steps ----------------------------------------------------------------------------------------------------------

typedef struct dropping {
  kl_plan *p;
  const kl_body *b;
  bool *live;       // by step
  uint32_t *number; // by step: of those that stay
  bool more;        // a step has become live
} dropping;

static void note_live(void *arg, uint32_t step) {
  dropping *x = arg;
  x->more |= !x->live[step];
  x->live[step] = true;
}

static void note_carried(dropping *x, const kl_nest *nest) {
  for (uint32_t k = 0; k < nest->ncarried; k++) {
    if (!x->live[nest->carried[k].value]) continue;
    note_live(x, nest->carried[k].first);
    note_live(x, nest->carried[k].next);
  }
}

// What comes before is of all values.
static void note_before(dropping *x, const kl_nest *nest) {
  for (uint32_t k = 0; k < nest->ncarried; k++) note_live(x, nest->carried[k].value);
}

static bool carries_live(const dropping *x, const kl_nest *nest) {
  bool any = false;
  for (uint32_t k = 0; k < nest->ncarried && !any; k++) any = x->live[nest->carried[k].value];
  return any;
}

// Symbols have no other numbers, so what they are stays.
static void find_live(dropping *x, const kl_seq *s) {
  for (uint32_t i = s->n; i-- > 0;) {
    const kl_node *n = &s->nodes[i];
    if (n->kind == KL_NODE_STEP && x->b->steps[n->index].kind == KL_STEP_INDEX) note_live(x, n->index);
    if (n->kind == KL_NODE_UPDATE) note_live(x, n->nest->carried->value);
    if (n->kind == KL_NODE_WHILE && carries_live(x, n->nest)) note_live(x, n->index);
    if (n->kind == KL_NODE_BEFORE) note_before(x, n->nest);
    if (n->kind == KL_NODE_LOOP || n->kind == KL_NODE_WHILE)
      note_carried(x, n->nest);
    else if (n->kind != KL_NODE_STEP || x->live[n->index])
      kl_each_taken(x->b, n, note_live, x);
    if (n->nest) find_live(x, &n->nest->inside);
  }
}

static kl_seq keep_live(const dropping *x, const kl_seq *s);

static const kl_nest *nest_of_live(const dropping *x, const kl_nest *from) {
  kl_nest *nest = kl_arena_dup(x->p->arena, from, sizeof *nest);
  kl_carried *carried = KL_NEW_N(x->p->arena, kl_carried, from->ncarried + 1);
  nest->ncarried = 0;
  nest->carried = carried;
  for (uint32_t k = 0; k < from->ncarried; k++) {
    const kl_carried *c = &from->carried[k];
    if (!x->live[c->value]) continue;
    uint32_t first = c->first == KL_NONE ? KL_NONE : x->number[c->first];
    carried[nest->ncarried++] = (kl_carried){x->number[c->value], first, x->number[c->next]};
  }
  nest->inside = keep_live(x, &from->inside);
  return nest;
}

// Loops and branches of which nothing is left go, too.
static kl_seq keep_live(const dropping *x, const kl_seq *s) {
  kl_node *nodes = KL_NEW_N(x->p->arena, kl_node, s->n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    kl_node node = s->nodes[i];
    if (node.kind == KL_NODE_STEP) {
      if (!x->live[node.index]) continue;
      node.index = x->number[node.index];
    }
    if (node.nest) node.nest = nest_of_live(x, node.nest);
    if (node.kind == KL_NODE_WHILE) node.index = x->number[node.index];
    bool may_go = node.kind == KL_NODE_LOOP || node.kind == KL_NODE_WHILE || node.kind == KL_NODE_IF;
    if (may_go && node.nest->inside.n == 0 && node.nest->ncarried == 0) continue;
    nodes[n++] = node;
  }
  return (kl_seq){n, nodes};
}

static const kl_step *steps_that_live(const dropping *x, uint32_t n) {
  kl_step *steps = KL_NEW_N(x->p->arena, kl_step, n + 1);
  for (uint32_t i = 0; i < x->b->nsteps; i++) {
    if (!x->live[i]) continue;
    kl_step *s = &steps[x->number[i]];
    *s = x->b->steps[i];
    uint32_t *operands = KL_NEW_N(x->p->arena, uint32_t, s->noperands + 1);
    for (uint32_t k = 0; k < s->noperands; k++) operands[k] = x->number[s->operands[k]];
    s->operands = operands;
  }
  return steps;
}

static void drop_dead(kl_plan *p, kl_body *b) {
  if (kl_body_is_empty(b) || !b->nsteps) return;
  dropping x = {.p = p, .b = b, .more = true};
  uint32_t n = 0;
  x.live = KL_NEW_N(p->arena, bool, b->nsteps);
  while (x.more) {
    x.more = false;
    find_live(&x, &b->root);
  }
  x.number = KL_NEW_N(p->arena, uint32_t, b->nsteps);
  for (uint32_t i = 0; i < b->nsteps; i++) x.number[i] = x.live[i] ? n++ : KL_NONE;
  if (n == b->nsteps) return;
  kl_store *stores = kl_arena_dup(p->arena, b->stores, b->nstores * sizeof *stores);
  for (uint32_t i = 0; i < b->nstores; i++) stores[i].step = x.number[stores[i].step];
  kl_symbol *symbols = kl_arena_dup(p->arena, b->symbols, b->nsymbols * sizeof *symbols);
  for (uint32_t i = 0; i < b->nsymbols; i++)
    if (!kl_is_counted_in(&symbols[i])) symbols[i].step = x.number[symbols[i].step];
  kl_seq root = keep_live(&x, &b->root);
  b->steps = steps_that_live(&x, n);
  b->nsteps = n;
  b->stores = stores;
  b->symbols = symbols;
  b->root = root;
}

void kl_plan_drop_dead(kl_plan *p) {
  for (uint32_t i = 0; i < p->nparts; i++) {
    drop_dead(p, &p->parts[i].main);
    drop_dead(p, &p->parts[i].tail);
  }
}
