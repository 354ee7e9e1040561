// Copies of values that something stored takes. Where a chunk is known not to be stored, what is made for it alone
// falls away, and so do its loads.

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
