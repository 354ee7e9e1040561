// What may be said of a plan's slots once its accesses are known: shared memory, passing by value.

#include "lower/plan/plan.h"

static const kl_aff *element(kl_plan *p, const kl_access *a, uint32_t lane) {
  uint32_t i = lane % a->vec;
  if (a->reversed) i = a->vec - 1 - i;
  return kl_aff_addc(p->affs, a->base[lane / a->vec], a->stride * (int64_t)i);
}

// Expressions are interned: the same element in every thread is the same pointer.
static bool same_elements(kl_plan *p, const kl_access *a, const kl_access *b, uint32_t lanes) {
  for (uint32_t i = 0; i < lanes; i++)
    if (element(p, a, i) != element(p, b, i)) return false;
  return true;
}

// Lanes that share a byte belong to one thread. Off guard, a load reads element 0 whatever the thread's own are; only
// where the store has the same guard is nothing done then.
static bool reads_what_it_writes(kl_plan *p, const kl_body *b, const kl_access *load, const kl_store *st) {
  return st && same_elements(p, load, &st->access, b->lanes) && (load->guard == KL_NONE || load->guard == st->keep);
}

// Clears shared[i] where some load of slot i by the body forbids it. store: room for one of each slot.
static void check_loads(kl_plan *p, const kl_body *b, const uint32_t *result, bool *shared, const kl_store **store) {
  if (!b->threads) return;
  memset(store, 0, p->nslots * sizeof *store);
  for (uint32_t i = 0; i < b->nstores; i++) store[b->stores[i].access.slot] = &b->stores[i];
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    if (s->kind != KL_STEP_LOAD || !shared[s->access.slot]) continue;
    shared[s->access.slot] = reads_what_it_writes(p, b, &s->access, store[result[s->access.slot]]);
  }
}

void kl_plan_alias(kl_plan *p, const uint32_t *result, bool *shared) {
  const kl_store **store = KL_NEW_N(p->arena, const kl_store *, p->nslots + 1);
  for (uint32_t i = 0; i < p->nslots; i++) shared[i] = result[i] != KL_NONE;
  for (uint32_t k = 0; k < p->nparts; k++) {
    check_loads(p, &p->parts[k].main, result, shared, store);
    check_loads(p, &p->parts[k].tail, result, shared, store);
  }
  for (uint32_t i = 0; i < p->nslots; i++)
    if (shared[i]) p->slots[i].alias = result[i], p->slots[result[i]].alias = i;
}

bool kl_plan_by_value(kl_plan *p, uint32_t in) {
  kl_slot_info *s = &p->slots[in];
  if (p->target.machine != KL_NVPTX || s->kind != KL_SLOT_IN || s->shape->rank) return false;
  if (!kl_is_int(s->shape->dtype) && s->shape->dtype != KILN_PRED) return false;
  s->by_value = true;
  return true;
}
