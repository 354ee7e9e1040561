// What may be said of a plan's slots once its accesses are known: which launch takes them, shared memory, passing by
// value.

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

// Elements that share a byte belong to one thread. Off guard a load takes anything; only where the store has the same
// guard is nothing made of it.
static bool reads_what_it_writes(kl_plan *p, const kl_access *load, const kl_store *st) {
  return same_elements(p, load, &st->access) && (load->guard == KL_NONE || load->guard == st->keep);
}

// Stores of a body by slot: the last, and by store the one before; KL_NONE: there is none.
typedef struct stores {
  uint32_t *last, *before;
} stores;

static bool reads_what_some_write(kl_plan *p, const kl_body *b, const kl_access *load, const stores *all,
                                  uint32_t slot) {
  for (uint32_t i = all->last[slot]; i != KL_NONE; i = all->before[i])
    if (reads_what_it_writes(p, load, &b->stores[i])) return true;
  return false;
}

static bool stores_in(const kl_body *b, uint32_t slot) {
  for (uint32_t i = 0; i < b->nstores; i++)
    if (b->stores[i].access.slot == slot) return true;
  return false;
}

bool kl_launch_stores(const kl_plan *p, uint32_t launch, uint32_t slot) {
  const kl_plan_launch *l = &p->launches[launch];
  for (uint32_t i = l->first_part; i < l->first_part + l->nparts; i++)
    if (stores_in(&p->parts[i].main, slot) || stores_in(&p->parts[i].tail, slot)) return true;
  return false;
}

uint32_t kl_first_writer(const kl_plan *p, uint32_t slot) {
  for (uint32_t i = 0; i < p->nparts; i++)
    if (stores_in(&p->parts[i].main, slot) || stores_in(&p->parts[i].tail, slot))
      return (uint32_t)(kl_launch_of(p, i) - p->launches);
  return p->nlaunches;
}

bool kl_has_conditions(const kl_plan *p) {
  for (uint32_t i = 0; i < p->nlaunches; i++)
    if (p->launches[i].when != KL_ALWAYS) return true;
  return false;
}

// Of several pairs some may be apart where others are not.
static bool is_launched_shared(const kl_plan_launch *l, uint32_t pairs) {
  return l->when != KL_APART || pairs > 1;
}

bool kl_may_share(const kl_plan *p, const kl_plan_launch *l) {
  uint32_t pairs = 0;
  for (uint32_t i = 0; i < p->nargs; i++) pairs += p->slots[i].kind == KL_SLOT_OUT && p->slots[i].alias != KL_NONE;
  return pairs && is_launched_shared(l, pairs);
}

// Clears shared[i] where some load of slot i by the body forbids it: what a launch reads, later ones may overwrite.
// last: room for one of each slot.
static void check_loads(kl_plan *p, uint32_t launch, const kl_body *b, const uint32_t *result, bool *shared,
                        uint32_t *last) {
  if (kl_body_is_empty(b)) return;
  stores all = {last, KL_NEW_N(p->arena, uint32_t, b->nstores + 1)};
  for (uint32_t i = 0; i < p->nslots; i++) last[i] = KL_NONE;
  for (uint32_t i = 0; i < b->nstores; i++) {
    all.before[i] = last[b->stores[i].access.slot];
    last[b->stores[i].access.slot] = i;
  }
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    if (s->kind != KL_STEP_LOAD || !shared[s->access.slot]) continue;
    if (p->nlaunches > 1 && launch < kl_first_writer(p, result[s->access.slot])) continue;
    shared[s->access.slot] = reads_what_some_write(p, b, &s->access, &all, result[s->access.slot]);
  }
}

void kl_plan_alias(kl_plan *p, const uint32_t *result, bool *shared) {
  uint32_t *last = KL_NEW_N(p->arena, uint32_t, p->nslots + 1);
  uint32_t pairs = 0;
  for (uint32_t i = 0; i < p->nslots; i++) pairs += shared[i] = result[i] != KL_NONE;
  for (uint32_t k = 0; k < p->nparts; k++) {
    uint32_t launch = (uint32_t)(kl_launch_of(p, k) - p->launches);
    if (!is_launched_shared(&p->launches[launch], pairs)) continue;
    check_loads(p, launch, &p->parts[k].main, result, shared, last);
    check_loads(p, launch, &p->parts[k].tail, result, shared, last);
  }
  for (uint32_t i = 0; i < p->nslots; i++)
    if (shared[i]) p->slots[i].alias = result[i], p->slots[result[i]].alias = i;
  kl_plan_order_stores(p);
}

static void note_touched(const kl_body *b, bool *touched) {
  for (uint32_t i = 0; i < b->nsteps; i++)
    if (b->steps[i].kind == KL_STEP_LOAD) touched[b->steps[i].access.slot] = true;
  for (uint32_t i = 0; i < b->nstores; i++) touched[b->stores[i].access.slot] = true;
  for (uint32_t i = 0; i < b->root.n; i++)
    if (b->root.nodes[i].kind == KL_NODE_LAST) touched[b->root.nodes[i].nest->arrival.slot] = true;
}

void kl_plan_find_arguments(kl_plan *p) {
  for (uint32_t i = 0; i < p->nlaunches; i++) {
    kl_plan_launch *l = &p->launches[i];
    bool *touched = KL_NEW_N(p->arena, bool, p->nslots + 1);
    uint32_t *args = KL_NEW_N(p->arena, uint32_t, p->nslots + 1);
    for (uint32_t k = l->first_part; k < l->first_part + l->nparts; k++) {
      note_touched(&p->parts[k].main, touched);
      note_touched(&p->parts[k].tail, touched);
    }
    if (l->tickets) touched[l->tickets->counters] = touched[l->tickets->values] = true;
    l->nargs = 0;
    for (uint32_t s = 0; s < p->nslots; s++) {
      bool all = s < p->nargs && p->nlaunches == 1,
           given = s < p->nargs || p->slots[s].kind == KL_SLOT_SCRATCH || p->slots[s].given;
      if (all || (given && touched[s])) args[l->nargs++] = s;
    }
    l->args = args;
  }
}

bool kl_plan_by_value(kl_plan *p, uint32_t in) {
  kl_slot_info *s = &p->slots[in];
  if (p->target.machine != KL_NVPTX || s->kind != KL_SLOT_IN || s->shape->rank) return false;
  if (!kl_is_int(s->shape->dtype) && s->shape->dtype != KILN_PRED) return false;
  s->by_value = true;
  return true;
}
