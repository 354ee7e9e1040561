// Memory traffic of a plan on a GPU: the instructions that each access becomes, counted over all warps.

#include "lower/analysis/coalesce.h"
#include "lower/plan/plan.h"

typedef struct counting {
  kl_plan *p;
  const kl_body *body;
  uint32_t base;
  int64_t quota; // threads looked at for one instruction
  kl_traffic sum;
  VEC(kl_request) load; // of the load that is counted
} counting;

enum { KL_MAX_CONDITIONS = 64 };

// What the guard and its outer ones say of a lane.
static uint32_t conditions_of(counting *c, uint32_t guard, uint32_t lane, kl_constraint *out) {
  uint32_t n = 0;
  for (; guard != KL_NONE && n < KL_MAX_CONDITIONS; guard = c->body->guards[guard].outer) {
    const kl_guard *g = &c->body->guards[guard];
    const kl_aff *at = kl_aff_const(c->p->affs, lane);
    out[n++] = (kl_constraint){kl_at_lane(c->p->affs, c->body->domain, g->expr, at), {g->lo, g->hi}};
  }
  if (guard != KL_NONE) c->sum.exact = false;
  return n;
}

static void count(counting *c, const kl_aff *element, int64_t bit, uint32_t bytes, const kl_access *a, uint32_t guard,
                  uint32_t lane, bool store) {
  kl_affs *p = c->p->affs;
  unsigned bits = kl_info(c->p->slots[a->slot].shape->dtype)->bits;
  kl_constraint conditions[KL_MAX_CONDITIONS];
  kl_request r = {kl_aff_addc(p, kl_aff_mulc(p, element, bits), bit), bytes, 0, conditions, !store};
  if (guard != KL_NONE && kl_guard_at(c->p, c->body, guard, lane) != KL_YES)
    r.nconditions = conditions_of(c, guard, lane, conditions);
  kl_sectors s = kl_count_sectors(p, &r, c->body->threads, c->base, c->quota);
  c->sum.requests += s.requests;
  c->sum.sectors += s.sectors;
  c->sum.least += s.least;
  c->sum.exact = c->sum.exact && s.exact;
  r.nconditions = 0, r.conditions = NULL; // XLA drops them
  if (!store) VEC_PUSH(kl_affs_context(p), &c->load, r);
}

// A chunk of lanes side by side is read in pieces of at most 16 bytes; other lanes, and the parts of complex numbers
// that are taken one by one, each for themselves. Lanes that all have one element read it once.
static void count_access(counting *c, const kl_access *a, uint32_t guard, bool store) {
  const kl_dtype_info *t = kl_info(c->p->slots[a->slot].shape->dtype);
  unsigned parts = kl_is_complex(c->p->slots[a->slot].shape->dtype) ? 2 : 1, part = t->bits / parts;
  bool together = a->vec > 1 && a->stride == 1;
  for (uint32_t k = 0; k < a->nchunks; k++) {
    uint32_t lane = k * a->vec;
    if (together) {
      uint32_t bytes = a->vec * t->bits / 8, piece = bytes < 16 ? bytes : 16;
      if (a->align && a->align < piece) piece = a->align;
      for (uint32_t at = 0; at < bytes; at += piece)
        count(c, a->base[k], 8 * (int64_t)at, piece, a, guard, lane, store);
      continue;
    }
    for (uint32_t i = 0; i < (a->stride ? a->vec : 1); i++)
      for (uint32_t q = 0; q < (part < 8 ? 1 : parts); q++)
        count(c, a->base[k], (int64_t)i * a->stride * t->bits + q * part, part < 8 ? 1 : part / 8, a, guard, lane,
              store);
  }
}

static void count_body(counting *c, uint32_t slot) {
  const kl_body *b = c->body;
  if (!b->threads) return;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_access *a = &b->steps[i].access;
    if (b->steps[i].kind != KL_STEP_LOAD || a->slot != slot) continue;
    c->load.n = 0;
    count_access(c, a, a->guard, false);
    c->sum.read = true;
    if (!kl_is_coalesced_for_xla(c->p->affs, c->load.p, (uint32_t)c->load.n, b->threads))
      c->sum.coalesced_for_xla = false;
  }
  for (uint32_t i = 0; i < b->nstores; i++) {
    const kl_access *a = &b->stores[i].access;
    if (a->slot == slot) count_access(c, a, b->stores[i].keep, true);
  }
}

// All instructions of a plan together cost about what one may.
static int64_t quota_of(const kl_plan *p) {
  int64_t accesses = 1;
  for (uint32_t i = 0; i < p->nparts; i++) {
    const kl_part *part = &p->parts[i];
    accesses += (int64_t)part->main.lanes * (part->main.nsteps + part->main.nstores);
    accesses += (int64_t)part->tail.lanes * (part->tail.nsteps + part->tail.nstores);
  }
  return 4 * (int64_t)KL_SECTORS_QUOTA / accesses;
}

kl_traffic kl_plan_traffic(kl_plan *p, uint32_t slot, uint32_t base) {
  counting c = {.p = p, .base = base, .quota = quota_of(p), .sum = {.exact = true, .coalesced_for_xla = true}};
  if (p->slots[slot].by_value) return c.sum;
  for (uint32_t i = 0; i < p->nparts; i++) {
    c.body = &p->parts[i].main;
    count_body(&c, slot);
    c.body = &p->parts[i].tail;
    count_body(&c, slot);
  }
  VEC_FREE(kl_affs_context(p->affs), &c.load);
  return c.sum;
}
