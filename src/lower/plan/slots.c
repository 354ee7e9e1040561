// What may be said of a plan's slots once its accesses are known: shared memory, passing by value.

#include "lower/plan/plan.h"

static const kl_store *store_to(const kl_body *b, uint32_t slot) {
  for (uint32_t i = 0; i < b->nstores; i++)
    if (b->stores[i].access.slot == slot) return &b->stores[i];
  return NULL;
}

static const kl_expr *element(kl_plan *p, const kl_access *a, uint32_t lane) {
  uint32_t i = lane % a->vec;
  if (a->reversed) i = a->vec - 1 - i;
  return kl_expr_addc(&p->exprs, a->base[lane / a->vec], a->stride * (int64_t)i);
}

// Expressions are interned: the same element in every thread is the same pointer.
static bool same_elements(kl_plan *p, const kl_access *a, const kl_access *b, uint32_t lanes) {
  for (uint32_t i = 0; i < lanes; i++)
    if (element(p, a, i) != element(p, b, i)) return false;
  return true;
}

// Lanes that share a byte belong to one thread. Off guard, a load reads element 0 whatever the thread's own are; only
// where the store has the same guard is nothing done then.
static bool reads_what_it_writes(kl_plan *p, const kl_body *b, uint32_t in, uint32_t result) {
  const kl_store *st = store_to(b, result);
  for (uint32_t i = 0; b->threads && i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    if (s->kind != KL_STEP_LOAD || s->access.slot != in) continue;
    if (!same_elements(p, &s->access, &st->access, b->lanes)) return false;
    if (s->access.guard != KL_NONE && s->access.guard != st->keep) return false;
  }
  return true;
}

bool kl_plan_alias(kl_plan *p, uint32_t in, uint32_t result, const char **why) {
  kl_slot_info *a = &p->slots[in], *b = &p->slots[result];
  *why = NULL;
  for (uint32_t i = 0; i < p->nparts; i++)
    if (!reads_what_it_writes(p, &p->parts[i].main, in, result) ||
        !reads_what_it_writes(p, &p->parts[i].tail, in, result))
      *why = "threads read elements that others overwrite";
  if (*why) return false;
  a->alias = result;
  b->alias = in;
  return true;
}

bool kl_plan_by_value(kl_plan *p, uint32_t in) {
  kl_slot_info *s = &p->slots[in];
  if (p->target.machine != KL_NVPTX || s->kind != KL_SLOT_IN || s->shape->rank) return false;
  if (!kl_is_int(s->shape->dtype) && s->shape->dtype != KILN_PRED) return false;
  s->by_value = true;
  return true;
}
