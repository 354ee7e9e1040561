// What may be said of a plan's slots once its accesses are known: shared memory, passing by value.

#include "lower/plan/plan.h"

// Element i of all that an access touches, in its order.
static const kl_aff *element(kl_plan *p, const kl_access *a, uint32_t i) {
  uint32_t place = i % a->vec;
  if (a->reversed) place = a->vec - 1 - place;
  return kl_aff_addc(p->affs, a->base[i / a->vec], a->stride * (int64_t)place);
}

// Expressions are interned: the same element in every thread is the same pointer.
static bool same_elements(kl_plan *p, const kl_access *a, const kl_access *b) {
  if (a->regs != b->regs || a->run != b->run) return false;
  for (uint32_t i = 0; i < a->nchunks * a->vec; i++)
    if (element(p, a, i) != element(p, b, i)) return false;
  return true;
}

// Elements that share a byte belong to one thread. Off guard, a load reads element 0 whatever the thread's own are;
// only where the store has the same guard is nothing done then.
static bool reads_what_it_writes(kl_plan *p, const kl_access *load, const kl_store *st) {
  return st && same_elements(p, load, &st->access) && (load->guard == KL_NONE || load->guard == st->keep);
}

// Clears shared[i] where some load of slot i by the body forbids it. store: room for one of each slot.
static void check_loads(kl_plan *p, const kl_body *b, const uint32_t *result, bool *shared, const kl_store **store) {
  if (kl_body_is_empty(b)) return;
  memset(store, 0, p->nslots * sizeof *store);
  for (uint32_t i = 0; i < b->nstores; i++) store[b->stores[i].access.slot] = &b->stores[i];
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    if (s->kind != KL_STEP_LOAD || !shared[s->access.slot]) continue;
    shared[s->access.slot] = reads_what_it_writes(p, &s->access, store[result[s->access.slot]]);
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
  kl_plan_order_stores(p);
}

bool kl_plan_by_value(kl_plan *p, uint32_t in) {
  kl_slot_info *s = &p->slots[in];
  if (p->target.machine != KL_NVPTX || s->kind != KL_SLOT_IN || s->shape->rank) return false;
  if (!kl_is_int(s->shape->dtype) && s->shape->dtype != KILN_PRED) return false;
  s->by_value = true;
  return true;
}
