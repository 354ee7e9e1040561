// The chooser of updates in place: results that are a dynamic-update-slice of a parameter, at the same places.
//
// Two launches, of which one is done. Where results are the parameters' memory, only what changes is made: the loop is
// over the elements of the update. Where they are apart, all of them are, by the loop that would be there anyway. What
// others read of a parameter that is overwritten, kl_plan_alias finds.

#include "lower/choose/chooser.h"

static uint32_t first_result(const kl_slots *s, const kl_comp *c) {
  return s->nargs - (uint32_t)kl_shape_leaf_count(kl_root(c)->shape);
}

// --- what is written over what --------------------------------------------------------------------------------------

// An instruction's leaf, and the shape whose positions are those of its elements.
typedef struct kept {
  uint32_t instr, leaf;
  const kl_shape *memory;
} kept;

// Through what leaves every element where it is, to what does not; false where a bitcast moves elements.
static bool go_behind(const kl_comp *c, kept *x) {
  for (;;) {
    const kl_instr *in = &c->instr[x->instr];
    if (in->op == KL_OP_TUPLE) {
      uint32_t e = kl_shape_element_of_leaf(in->shape, x->leaf);
      x->leaf -= in->shape->first_leaf[e];
      x->instr = in->operands[e];
      continue;
    }
    if (in->op == KL_OP_GET_TUPLE_ELEMENT) x->leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
    if (in->op == KL_OP_BITCAST) {
      const kl_shape *from = kl_operand(c, in, 0)->shape;
      if (kl_info(from->dtype)->bits != kl_info(in->shape->dtype)->bits || !kl_layout_is_order(from) ||
          !kl_shape_same_in_memory(x->memory, in->shape))
        return false;
      x->memory = from;
    }
    if (in->op != KL_OP_GET_TUPLE_ELEMENT && in->op != KL_OP_COPY && in->op != KL_OP_BITCAST) return true;
    x->instr = in->operands[0];
  }
}

uint32_t kl_parameter_behind(const kl_choosing *c, uint32_t instr, uint32_t leaf, const kl_shape *memory) {
  const kl_comp *comp = c->plan->comp;
  kept x = {instr, leaf, memory};
  if (!go_behind(comp, &x) || comp->instr[x.instr].op != KL_OP_PARAMETER) return KL_NONE;
  uint32_t slot = c->slots.param_base[comp->instr[x.instr].number] + x.leaf;
  const kl_slot_info *s = &c->slots.v.p[slot];
  return !s->owner && kl_shape_same_dims(s->shape, x.memory) && kl_shape_same_in_memory(s->shape, x.memory) ? slot
                                                                                                            : KL_NONE;
}

bool kl_may_overwrite(const kl_choosing *c, uint32_t parameter, uint32_t result) {
  const kl_slot_info *in = &c->slots.v.p[parameter], *out = &c->slots.v.p[result];
  const uint32_t *partner = c->params->partner;
  if (in->alias != KL_NONE || out->alias != KL_NONE || in->bytes != out->bytes || c->apart || c->plan->counted)
    return false;
  if (partner && partner[parameter] != KL_NONE) return partner[parameter] == result;
  return c->params->lent && c->params->lent[parameter] && c->params->lent[result];
}

void kl_overwrite(kl_choosing *c, uint32_t parameter, uint32_t result) {
  c->slots.v.p[parameter].alias = result;
  c->slots.v.p[result].alias = parameter;
}

// --- the update -----------------------------------------------------------------------------------------------------

static const kl_shape *update_of(const kl_comp *c, const kl_instr *in) {
  return kl_operand(c, in, 1)->shape;
}

// Elements of an update's rows that are whole rows of the result: no data says where they begin.
static int64_t row_of(const kl_comp *c, const kl_update *u) {
  int64_t n = 1;
  for (uint32_t i = 0; i < u->memory->rank; i++) {
    int64_t d = kl_shape_minor_to_major(u->memory, i);
    if (update_of(c, u->instr)->dims[d] != u->memory->dims[d]) break;
    n *= u->memory->dims[d];
  }
  return n;
}

uint32_t kl_update_neighbours(const kl_choosing *c, const kl_update *u) {
  return 1u << __builtin_ctzll((uint64_t)row_of(c->plan->comp, u) | 1 << 16);
}

// Does each byte of the result belong to the update, or to what stays?
static bool has_whole_bytes(const kl_comp *c, const kl_update *u) {
  unsigned bits = kl_info(u->memory->dtype)->bits;
  return bits >= 8 || row_of(c, u) % (8 / bits) == 0;
}

// Where the update begins: scalars, or one array of them.
static kiln_status want_starts(kl_walk *w, const kl_instr *in, const kl_aff **start) {
  const kl_comp *c = w->plan->comp;
  for (uint32_t d = 0; d < in->shape->rank; d++) {
    int64_t last = in->shape->dims[d] - update_of(c, in)->dims[d];
    const kl_aff *at = kl_aff_const(w->affs, d);
    uint32_t step, rank = kl_operand(c, in, 2)->shape->rank;
    start[d] = kl_aff_const(w->affs, 0);
    if (last == 0) continue;
    KL_TRY(kl_walk_want(w, in->operands[rank ? 2 : 2 + d], 0, KL_NONE, &at, &step));
    start[d] = kl_write_index(w->w, step, (kl_interval){0, last});
  }
  return KILN_OK;
}

kiln_status kl_want_update(kl_walk *w, const kl_update *u, const kl_aff *at, uint32_t keep, const kl_aff **linear,
                           uint32_t *value) {
  const kl_aff *index[KILN_MAX_RANK], *start[KILN_MAX_RANK];
  kl_index_at(w->affs, update_of(w->plan->comp, u->instr), at, index);
  KL_TRY(want_starts(w, u->instr, start));
  KL_TRY(kl_walk_want(w, u->instr->operands[1], 0, keep, index, value));
  for (uint32_t d = 0; d < u->instr->shape->rank; d++) index[d] = kl_aff_add(w->affs, index[d], start[d]);
  *linear = kl_position_of(w->affs, u->memory, index);
  return kl_is_sound(*linear) ? KILN_OK : kl_plan_refuse_index(w->cx, w->plan, kl_why_unsound(*linear));
}

void kl_store_update(kl_walk *w, const kl_update *u, uint32_t slot, const kl_aff *linear, uint32_t value,
                     uint32_t keep) {
  const kl_slot_info *info = &w->slots->v.p[slot];
  value = kl_write_word(w->w, value, info->shape->dtype);
  if (has_whole_bytes(w->plan->comp, u)) return kl_write_store(w->w, slot, info, linear, value, keep);
  kl_write_update(w->w, false, slot, info, linear, w->w->steps.p[value].regs, keep);
  kl_write_update_end(w->w, value);
}

// --- the chooser ----------------------------------------------------------------------------------------------------

// The update that a result is, of a parameter that it may be written over; NULL: none.
static const kl_update *find_update(kl_choosing *c, uint32_t r, const char **why_not) {
  const kl_comp *comp = c->plan->comp;
  uint32_t slot = first_result(&c->slots, comp) + r;
  const kl_slot_info *info = &c->slots.v.p[slot];
  kept x = {comp->root, r, info->shape};
  if (info->owner || !go_behind(comp, &x) || comp->instr[x.instr].op != KL_OP_DYNAMIC_UPDATE_SLICE) return NULL;
  const kl_instr *in = &comp->instr[x.instr];
  uint32_t parameter = kl_parameter_behind(c, in->operands[0], 0, x.memory);
  if (update_of(comp, in)->count == 0 || parameter == KL_NONE || !kl_may_overwrite(c, parameter, slot)) return NULL;
  kl_update *u = KL_NEW(c->arena, kl_update);
  *u = (kl_update){in, parameter, x.memory};
  if (!has_whole_bytes(comp, u) && !kl_can_replace(&c->plan->target, info))
    *why_not = "no instruction replaces what an element shares with others";
  kl_overwrite(c, parameter, slot);
  c->slots.v.p[slot].mode = KL_MODE_IN_PLACE;
  return u;
}

kiln_status kl_choose_in_place(kl_choosing *c, const char **why_not) {
  kl_plan *p = c->plan;
  uint32_t n = (uint32_t)kl_shape_leaf_count(kl_root(p->comp)->shape), found = 0;
  const kl_update **updates = KL_NEW_N(c->arena, const kl_update *, n + 1);
  const bool *made = KL_NEW_N(c->arena, bool, n + 1);
  for (uint32_t r = 0; r < n && !*why_not; r++) found += (updates[r] = find_update(c, r, why_not)) != NULL;
  if (!found) *why_not = c->apart ? "threads read of a parameter what others overwrite" : "";
  if (*why_not) return KILN_OK;
  KL_TRY(kl_loop_results(c, made, NULL));
  kl_last_launch(p)->when = KL_APART;
  int64_t count = p->count;
  kl_plan_add_launch(p, p->target.block)->when = KL_IN_PLACE;
  KL_TRY(kl_loop_results(c, made, updates));
  p->count = count;
  return KILN_OK;
}
