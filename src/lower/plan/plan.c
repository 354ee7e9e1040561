// What holds of any plan: its life, and the proof that 32-bit indices do.

#include "lower/plan/plan.h"

void kl_plan_free(kl_plan *p) {
  kl_affs_destroy(&p->affs);
}

const kl_aff *kl_at_lane(kl_affs *p, kl_dom *d, const kl_aff *e, const kl_aff *lane) {
  const kl_aff *to[KL_VAR_COUNT] = {[KL_VAR_THREAD] = kl_aff_dim(p, KL_VAR_THREAD), [KL_VAR_LANE] = lane};
  kl_aff_replace(p, &(kl_aff_subst){.to = {to}, .n = {KL_VAR_COUNT}}, &e, 1, &e);
  return kl_dom_simplify(d, e);
}

// What holds for all lanes alike depends on the thread: guards that always hold are not made.
kl_truth kl_guard_at(kl_plan *p, const kl_body *b, uint32_t guard, uint32_t lane) {
  kl_truth all = KL_YES;
  for (; guard != KL_NONE && all != KL_NO; guard = b->guards[guard].outer) {
    const kl_guard *g = &b->guards[guard];
    kl_interval in = {INT64_MIN, INT64_MAX};
    if (g->uniform < b->lanes)
      in = kl_dom_interval(b->domain, kl_at_lane(p->affs, b->domain, g->expr, kl_aff_const(p->affs, lane)));
    if (in.lo > g->hi || in.hi < g->lo)
      all = KL_NO;
    else if (in.lo < g->lo || in.hi > g->hi)
      all = KL_UNKNOWN;
  }
  return all;
}

int64_t kl_floor_shift(kl_dom *d, const kl_aff_atom *floor) {
  int64_t lo = kl_dom_interval(d, floor->arg[0]).lo;
  return lo < 0 ? (-lo + floor->k - 1) / floor->k : 0;
}

// Do `bits` bits hold e? Sums and products may wrap on the way, only their value counts; what stands under a floor must
// be right by itself. Threads and lanes fit. A bound at the end of int64 is none.
static bool fits(kl_dom *d, const kl_aff *e, unsigned bits) {
  int64_t end = INT64_MAX >> (64 - bits);
  kl_interval in = kl_dom_interval(d, e);
  if (e->error || in.lo < -end || in.hi > end || in.hi == INT64_MAX) return false;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind < KL_AFF_VARS) continue;
    // A negative dividend is moved up by a multiple of k before the unsigned division; the sum must stay in its bits.
    int64_t lo = kl_dom_interval(d, a->arg[0]).lo;
    if (lo < 0 && (lo < -(end >> 1) || a->k > end >> 1)) return false;
    if (a->k > end || !fits(d, a->arg[0], bits)) return false;
  }
  return true;
}

static bool access_fits(kl_dom *d, const kl_access *a, unsigned bits) {
  for (uint32_t c = 0; c < a->nchunks; c++) {
    if (!fits(d, a->base[c], bits)) return false;
  }
  return bits == 64 || (a->stride >= INT32_MIN && a->stride <= INT32_MAX);
}

bool kl_body_fits(const kl_body *b, unsigned bits) {
  if (bits == 32 && b->threads > INT32_MAX) return false;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    if (s->kind == KL_STEP_LOAD && !access_fits(b->domain, &s->access, bits)) return false;
    if (s->expr && !fits(b->domain, s->expr, bits)) return false;
  }
  for (uint32_t i = 0; i < b->nguards; i++) {
    const kl_guard *g = &b->guards[i];
    if (!fits(b->domain, g->expr, bits)) return false;
    if (bits == 32 && (g->lo < INT32_MIN || g->hi > INT32_MAX)) return false;
  }
  for (uint32_t i = 0; i < b->nstores; i++) {
    if (!access_fits(b->domain, &b->stores[i].access, bits)) return false;
  }
  return true;
}
