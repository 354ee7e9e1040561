// The chooser of contractions: a launch for each, behind those of what it is made of.
//
// What is made of operands element by element is made where they are read. Where all results are made of the last
// contraction's elements, each of one, its launch makes them, too; else it leaves its elements in scratch memory, and a
// loop makes the results.

#include "lower/choose/contract/contract.h"

// --- where sums go --------------------------------------------------------------------------------------------------

static uint32_t first_result(const kl_choosing *c) {
  return c->slots.nargs - (uint32_t)kl_shape_leaf_count(kl_root(c->plan->comp)->shape);
}

// Where all results want the contraction at one index, which *element becomes; false: they do not.
static kiln_status find_element(kl_choosing *c, const kl_contraction *x, const kl_shape *s,
                                const kl_aff *const **element, bool *found) {
  kl_plan *p = c->plan;
  uint32_t first = first_result(c), n = c->slots.nargs - first;
  const kl_aff **index = KL_NEW_N(c->arena, const kl_aff *, s->rank + 1u);
  kl_look *looks = KL_NEW_N(c->arena, kl_look, n);
  kl_sights sights = {{0}};
  for (uint32_t d = 0; d < s->rank; d++) index[d] = kl_aff_dim(p->affs, d);
  for (uint32_t r = 0; r < n; r++) looks[r] = (kl_look){.instr = p->comp->root, .leaf = r, .index = index};
  kiln_status st = kl_walk_look(c->cx, p, &c->slots, s->rank, s->dims, n, looks, &sights);
  const kl_seen *seen = NULL;
  *found = true;
  for (size_t i = 0; st == KILN_OK && i < sights.v.n; i++) {
    const kl_seen *k = &sights.v.p[i];
    if (k->frame || k->instr != x->number) continue;
    if (!seen) seen = k;
    *found = *found && (!k->rank || memcmp(k->index, seen->index, k->rank * sizeof *k->index) == 0);
  }
  *found = *found && seen;
  if (*found) *element = kl_arena_dup(c->arena, seen->index, seen->rank * sizeof *seen->index);
  VEC_FREE(c->cx, &sights.v);
  return st;
}

// The same row-major number, where dims have no digits in common. An element's index is dims of the pool.
static bool by_number(kl_affs *p, const kl_contraction *x, const kl_contract_outputs *o, const kl_aff **index) {
  const kl_shape *s = o->shape;
  kl_interval extents[KILN_MAX_RANK];
  int64_t place = 1;
  const kl_aff *number = kl_aff_const(p, 0), *same = number, *all = number;
  for (uint32_t d = 0; d < x->shape->rank; d++) {
    number = kl_aff_add(p, kl_aff_mulc(p, number, x->shape->dims[d]), o->element[d]);
    all = kl_aff_add(p, kl_aff_mulc(p, all, x->shape->dims[d]), kl_aff_dim(p, d));
  }
  for (uint32_t d = 0; d < s->rank; d++) {
    extents[d] = (kl_interval){0, s->dims[d] - 1};
    same = kl_aff_add(p, kl_aff_mulc(p, same, s->dims[d]), kl_aff_dim(p, d));
  }
  kl_dom *box = kl_dom_make(p, s->rank, extents);
  bool equal = kl_dom_simplify(box, kl_aff_sub(p, number, same)) == kl_aff_const(p, 0);
  for (uint32_t d = s->rank; d-- > 0;) {
    index[d] = kl_aff_floordivc(p, all, place);
    place *= s->dims[d];
    if (place < s->count) index[d] = kl_aff_modc(p, index[d], s->dims[d]);
  }
  return equal;
}

// Turns o->element round: digits of the outputs' dims, as transposes and reshapes leave them, are digits of the
// contraction's.
static void find_index(kl_choosing *c, const kl_contraction *x, kl_contract_outputs *o) {
  kl_affs *p = c->plan->affs;
  const kl_map *all = kl_map_identity(p, o->shape->rank, o->shape->dims);
  const kl_map *m = kl_map_invert(p, kl_map_with_results(p, all, o->element, x->shape->rank), KL_MAP_QUOTA);
  const kl_aff **index = KL_NEW_N(c->arena, const kl_aff *, o->shape->rank + 1u);
  if (m->state == KL_MAP_DEFINED && !m->nvars[KL_AFF_RANGE])
    o->index = m->results;
  else if (by_number(p, x, o, index))
    o->index = index;
}

// Results that this contraction's launch makes; *found: all of them. turns: it goes by the contraction's elements, and
// has to know which of the results' each is.
static kiln_status find_results(kl_choosing *c, const kl_contraction *x, bool turns, kl_contract_outputs *o,
                                bool *found) {
  uint32_t first = first_result(c), n = c->slots.nargs - first, *slots = KL_NEW_N(c->arena, uint32_t, n + 1);
  *found = n > 0;
  for (uint32_t r = 0; r < n; r++) {
    const kl_slot_info *s = &c->slots.v.p[slots[r] = first + r];
    *found = *found && !s->owner && s->shape->count == x->shape->count &&
             kl_shape_same_dims(s->shape, c->slots.v.p[first].shape);
  }
  if (!*found) return KILN_OK;
  *o = (kl_contract_outputs){.shape = c->slots.v.p[first].shape, .n = n, .slots = slots};
  KL_TRY(find_element(c, x, o->shape, &o->element, found));
  if (!*found || !turns) return KILN_OK;
  if (x->shape->count) find_index(c, x, o);
  *found = o->index || !x->shape->count;
  return KILN_OK;
}

static void store_itself(kl_choosing *c, const kl_contraction *x, kl_contract_outputs *o) {
  uint32_t *slot = KL_NEW(c->arena, uint32_t);
  *slot = kl_store_value(c->cx, c->plan, &c->slots, x->number, 0);
  *o = (kl_contract_outputs){.shape = c->slots.v.p[*slot].shape, .n = 1, .slots = slot, .stored = true};
}

void kl_contract_output_element(kl_affs *p, const kl_contraction *x, const kl_contract_outputs *o,
                                const kl_aff *const *index, const kl_aff **element) {
  uint32_t rank = x->shape->rank;
  if (o->stored)
    memcpy(element, index, rank * sizeof *element);
  else
    kl_aff_replace(p, &(kl_aff_subst){.to = {index}, .n = {o->shape->rank}}, o->element, rank, element);
}

void kl_contract_output_index(kl_affs *p, const kl_contraction *x, const kl_contract_outputs *o,
                              const kl_aff *const *element, const kl_aff **index) {
  uint32_t rank = o->shape->rank;
  if (o->stored)
    memcpy(index, element, rank * sizeof *index);
  else
    kl_aff_replace(p, &(kl_aff_subst){.to = {element}, .n = {x->shape->rank}}, o->index, rank, index);
}

kiln_status kl_store_outputs(kl_walk *walk, const kl_contraction *x, const kl_contract_outputs *o,
                             const kl_aff *const *index, const kl_aff *at, kl_parts sum, uint32_t keep) {
  const kl_aff *element[KILN_MAX_RANK];
  uint32_t value = kl_round_sum(walk->w, x, sum);
  uint32_t *values = KL_NEW_N(walk->arena, uint32_t, o->n);
  if (!o->stored) {
    kl_contract_output_element(walk->affs, x, o, index, element);
    kl_walk_give(walk, x->number, 0, element, value);
  }
  for (uint32_t i = 0; i < o->n; i++) {
    kl_dtype t = walk->slots->v.p[o->slots[i]].shape->dtype;
    values[i] = value;
    if (o->stored && t != x->shape->dtype)
      values[i] = kl_write_op(walk->w, (kl_plan_op){.op = KL_OP_CONVERT}, t, 1, &value);
    if (!o->stored) KL_TRY(kl_walk_want(walk, walk->plan->comp->root, i, keep, index, &values[i]));
  }
  for (uint32_t i = 0; i < o->n; i++) {
    const kl_slot_info *s = &walk->slots->v.p[o->slots[i]];
    bool as_first = at && kl_shape_same_in_memory(s->shape, walk->slots->v.p[*o->slots].shape);
    const kl_aff *place = kl_dom_simplify(walk->w->body->domain, kl_position_of(walk->affs, s->shape, index));
    kl_write_store(walk->w, o->slots[i], s, as_first ? at : kl_real(walk, place), values[i], keep);
  }
  return KILN_OK;
}

// --- all of them ----------------------------------------------------------------------------------------------------

typedef struct writer {
  kiln_status (*write)(kl_choosing *c, const kl_contraction *x, const kl_contract_outputs *o, const char **why_not);
  bool turns; // it goes by the contraction's elements, and not by the results'
} writer;

static kiln_status make_contraction(kl_choosing *c, const kl_contraction *x, const writer *w, bool last, bool *done,
                                    const char **why_not) {
  kl_contract_outputs o;
  size_t stored = c->slots.stored.n;
  if (last) KL_TRY(find_results(c, x, w->turns, &o, done));
  if (!*done) store_itself(c, x, &o);
  if (x->shape->count == 0) return KILN_OK;
  if (c->plan->nparts) kl_plan_add_launch(c->plan, c->plan->target.block);
  // What this launch stores it does not find itself.
  kl_stored_value itself = {KL_NONE, 0, 0};
  if (c->slots.stored.n > stored) itself = c->slots.stored.p[--c->slots.stored.n];
  KL_TRY(w->write(c, x, &o, why_not));
  if (itself.instr != KL_NONE) VEC_PUSH(c->cx, &c->slots.stored, itself);
  return KILN_OK;
}

static kiln_status make_rest(kl_choosing *c) {
  bool *made = KL_NEW_N(c->arena, bool, c->slots.nargs + 1u);
  if (c->plan->nparts) kl_plan_add_launch(c->plan, c->plan->target.block);
  return kl_loop_results(c, made, NULL);
}

static kiln_status choose(kl_choosing *c, const writer *w, const char **why_not) {
  kl_contractions all;
  bool done = false;
  *why_not = NULL;
  KL_TRY(kl_find_contractions(c, &all, why_not));
  if (!*why_not && c->plan->counted) *why_not = "the element count comes at run time";
  if (*why_not) return KILN_OK;
  c->plan->count = 0;
  for (uint32_t i = first_result(c); i < c->slots.nargs; i++)
    if (c->slots.v.p[i].shape->count > c->plan->count) c->plan->count = c->slots.v.p[i].shape->count;
  for (uint32_t i = 0; i < all.n && !*why_not; i++)
    KL_TRY(make_contraction(c, &all.p[i], w, i + 1 == all.n, &done, why_not));
  if (*why_not) return KILN_OK;
  if (!done) return make_rest(c);
  if (!c->plan->nparts) kl_plan_add_part(c->plan, &(kl_part){.dim = KL_NONE});
  return KILN_OK;
}

kiln_status kl_choose_contraction(kl_choosing *c, const char **why_not) {
  return choose(c, &(writer){.write = kl_contract_elements}, why_not);
}

kiln_status kl_choose_tiled_contraction(kl_choosing *c, const char **why_not) {
  bool host = c->plan->target.machine == KL_HOST;
  return choose(c, &(writer){.write = host ? kl_contract_registers : kl_contract_tiles, .turns = true}, why_not);
}

kiln_status kl_choose_few_contraction(kl_choosing *c, const char **why_not) {
  return choose(c, &(writer){.write = kl_contract_few, .turns = true}, why_not);
}
