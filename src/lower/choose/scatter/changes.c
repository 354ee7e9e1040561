// How elements of the results change, and which of them updates go to.

#include "lower/choose/scatter/scatter.h"

static bool is_ordered(kl_dtype t, kl_op op) {
  bool exact = kl_is_int(t) || t == KILN_PRED;
  if (op == KL_OP_MAXIMUM || op == KL_OP_MINIMUM) return false;
  return op == KL_OP_COPY || op == KL_OP_UNKNOWN || !exact;
}

// How elements of an array change; false: not so.
static bool choose_how(kl_updating *x, uint32_t array, const char **why_not) {
  const kl_target *t = &x->c->plan->target;
  const kl_slot_info *s = &x->c->slots.v.p[x->slot[array]];
  bool alone = x->x->instr->more->unique_indices, whole = kl_info(s->shape->dtype)->bits >= 8;
  kl_op op = kl_combining_op(x->x, array);
  uint32_t most;
  if (op == KL_OP_PARAMETER) {
    *why_not = "nothing is changed";
  } else if (x->c->params->deterministic && !alone && is_ordered(s->shape->dtype, op)) {
    *why_not = "the order of updates would show";
  } else if (op == KL_OP_COPY && whole && (alone || kl_info(s->shape->dtype)->bits <= 64)) {
    x->how[array] = (kl_store){.how = KL_STORE_TAKE, .alone = alone};
  } else if (!alone && kl_can_combine(t, op, s, &most)) {
    x->how[array] = (kl_store){.how = KL_STORE_COMBINE, .combine = op};
  } else if (x->x->n > 1) {
    *why_not = "several arrays change together, or not by one op each";
  } else if (!(alone && whole) && !kl_can_replace(t, s)) {
    *why_not = "no instruction changes such an element, nor replaces what it lies in";
  } else {
    x->how[array] = (kl_store){.how = KL_STORE_REPLACE, .alone = alone && whole};
  }
  return !*why_not;
}

// Which arrays are which results.
static bool find_slots(kl_updating *x, const char **why_not) {
  const kl_comp *c = x->c->plan->comp;
  uint32_t first = kl_scatter_results(x->c), n = x->c->slots.nargs - first;
  memset(x->slot, 0xff, sizeof x->slot);
  for (uint32_t r = 0; r < n; r++) {
    int64_t leaf = kl_scattered_leaf(c, x->x, r);
    if (leaf < 0 || x->slot[leaf] != KL_NONE) {
      *why_not = "a result is computed from the scattered arrays, or one of them twice";
      return false;
    }
    x->slot[leaf] = first + r;
  }
  return true;
}

bool kl_choose_changes(kl_updating *x, const char **why_not) {
  if (!find_slots(x, why_not)) return false;
  for (uint32_t i = 0; i < x->x->n; i++)
    if (x->slot[i] != KL_NONE && !choose_how(x, i, why_not)) return false;
  return true;
}

// Do several arrays change together, or not by one op each?
bool kl_change_together(const kl_scatter *x) {
  bool unknown = false;
  for (uint32_t i = 0; i < x->n; i++) unknown = unknown || kl_combining_op(x, i) == KL_OP_UNKNOWN;
  return unknown && x->n > 1;
}

// Neighbours in a byte may be others' own.
bool kl_choose_owned_changes(kl_updating *x, const char **why_not) {
  if (!find_slots(x, why_not)) return false;
  bool together = kl_change_together(x->x);
  for (uint32_t i = 0; i < x->x->n && !*why_not; i++) {
    if (x->slot[i] == KL_NONE && together) *why_not = "an array that changes with others is no result";
    if (x->slot[i] == KL_NONE) continue;
    const kl_slot_info *s = &x->c->slots.v.p[x->slot[i]];
    bool whole = kl_info(s->shape->dtype)->bits >= 8, takes = together || kl_combining_op(x->x, i) == KL_OP_COPY;
    x->how[i] = (kl_store){.how = takes && whole ? KL_STORE_TAKE : KL_STORE_REPLACE, .alone = whole};
    if (!together && kl_combining_op(x->x, i) == KL_OP_PARAMETER) *why_not = "nothing is changed";
    if (!whole && (together || !kl_can_replace(&x->c->plan->target, s)))
      *why_not = "elements share bytes, which nothing replaces";
  }
  return !*why_not;
}

kiln_status kl_find_target(kl_updating *x, const kl_aff *const *index, uint32_t outer, const kl_aff **to,
                           uint32_t *guard, bool *never) {
  const kl_scatter *s = x->x;
  const kl_aff *batch[KILN_MAX_RANK], *start[KILN_MAX_RANK];
  for (uint32_t i = 0; i < s->nbatch; i++) batch[i] = index[s->batch[i]];
  KL_TRY(kl_window_start(&x->walk, s, batch, outer, start));
  *guard = outer;
  *never = false;
  for (uint32_t d = 0; d < s->array->rank && !*never; d++) {
    to[d] = s->window[d] >= 0 ? kl_aff_add(x->p, start[d], index[s->window[d]]) : start[d];
    *guard = kl_window_inside(&x->walk, s, d, start[d], *guard, never);
  }
  return KILN_OK;
}

kiln_status kl_change(kl_updating *x, uint32_t array, const kl_aff *linear, uint32_t value, uint32_t guard) {
  const kl_slot_info *info = &x->c->slots.v.p[x->slot[array]];
  if (x->how[array].how != KL_STORE_REPLACE) {
    kl_write_change(&x->w, &x->how[array], x->slot[array], info, linear, value, guard);
    return KILN_OK;
  }
  uint32_t old =
      kl_write_update(&x->w, x->how[array].alone, x->slot[array], info, linear, x->w.steps.p[value].regs, guard);
  uint32_t next = value, both[2] = {old, value};
  kl_op op = kl_combining_op(x->x, array);
  if (x->x->n > 1 && op != KL_OP_COPY)
    next = kl_write_op(&x->w, (kl_plan_op){.op = op}, info->shape->dtype, 2, both);
  else if (op != KL_OP_COPY)
    KL_TRY(kl_combine(&x->walk, x->x, &old, &value, &next));
  kl_write_update_end(&x->w, next);
  return KILN_OK;
}

// --- the operands ---------------------------------------------------------------------------------------------------

// Where every result may be written over its operand, a parameter, that is there already: the launch that copies is for
// those that are apart.
static void share_operands(const kl_updating *x, kl_plan_launch *copy) {
  kl_choosing *c = x->c;
  bool all = true;
  for (uint32_t i = 0; i < x->x->n && all; i++) {
    if (x->slot[i] == KL_NONE) continue;
    const kl_shape *memory = c->slots.v.p[x->slot[i]].shape;
    uint32_t parameter = kl_parameter_behind(c, x->x->instr->operands[i], 0, memory);
    all = parameter != KL_NONE && kl_may_overwrite(c, parameter, x->slot[i]);
    if (all) kl_overwrite(c, parameter, x->slot[i]);
  }
  for (uint32_t i = 0; i < c->slots.nargs && !all; i++) c->slots.v.p[i].alias = KL_NONE;
  if (all) copy->when = KL_APART;
}

kiln_status kl_begin_updates(kl_updating *x, uint32_t block, const char **why_not) {
  kl_choosing *c = x->c;
  KL_TRY(kl_copy_operands(c, x->x, why_not));
  if (*why_not) return KILN_OK;
  share_operands(x, kl_last_launch(c->plan));
  kl_plan_add_launch(c->plan, block);
  for (uint32_t i = kl_scatter_results(c); i < c->slots.nargs; i++) c->slots.v.p[i].mode = KL_MODE_UPDATE;
  return KILN_OK;
}

// --- whole kernels --------------------------------------------------------------------------------------------------

// Elements of a window that are neighbours in the updates.
static int64_t row_of(const kl_scatter *x) {
  int64_t n = 1;
  for (uint32_t i = 0; i < x->updates->rank; i++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(x->updates, i);
    bool window = false;
    for (uint32_t k = 0; k < x->array->rank; k++) window = window || x->window[k] == (int)d;
    if (!window) break;
    n *= x->updates->dims[d];
  }
  return n;
}

enum { MANY_UPDATES = 1 << 14 };

int64_t kl_neighbours(const kl_updating *x) {
  const kl_target *t = &x->c->plan->target;
  int64_t row = row_of(x->x), wide = 8, n;
  for (uint32_t i = 0; i < x->x->n; i++) {
    uint32_t bits = kl_info(kl_operand(x->c->plan->comp, x->x->instr, i)->shape->dtype)->bits;
    if (bits > wide) wide = bits;
  }
  n = t->machine == KL_HOST ? t->host_lanes : t->max_bytes * 8 / wide;
  if (t->machine == KL_HOST) return n;
  while (n > 1 && (row > 1 ? row % n != 0 : x->count / n < MANY_UPDATES)) n /= 2;
  return n;
}

static bool joins(const kl_updating *x) {
  for (uint32_t i = 0; i < x->x->n; i++)
    if (x->slot[i] != KL_NONE && x->how[i].how != KL_STORE_COMBINE) return false;
  return true;
}

kiln_status kl_begin_joins(kl_choosing *c, kl_scatter *s, kl_updating *x, const char **why_not) {
  *why_not = "";
  if (c->plan->target.machine == KL_HOST || c->plan->counted) return KILN_OK;
  KL_TRY(kl_find_scatter(c, s, why_not));
  if (!*why_not && (s->array->count == 0 || s->updates->count == 0 || s->instr->more->unique_indices)) *why_not = "";
  if (!*why_not && kl_has_few_windows(s) && !c->params->strategy.chooser) *why_not = "";
  if (*why_not) return KILN_OK;
  *x = (kl_updating){.c = c, .x = s, .p = c->plan->affs, .count = s->updates->count};
  c->plan->count = s->array->count;
  if (kl_choose_changes(x, why_not) && !joins(x)) *why_not = "no instruction joins an update and an element";
  return *why_not ? KILN_OK : kl_begin_updates(x, KL_UPDATING_THREADS, why_not);
}

kiln_status kl_write_updates(kl_updating *x, const kl_var_list *vars, kiln_status (*write)(void *arg), void *arg) {
  kl_body b = {.width = 1};
  kl_take_vars(x->c->arena, vars, &b);
  if (x->c->plan->target.machine == KL_HOST) b.width = (uint32_t)kl_extent(&b, kl_bound(&b, KL_BIND_LANE));
  kl_write_begin(&x->w, x->c->cx, x->c->plan, &b);
  kl_walk_begin(&x->walk, x->c->cx, x->c->plan, &x->c->slots, &x->w);
  kiln_status st = write(arg);
  kl_walk_free(&x->walk);
  if (st != KILN_OK) {
    kl_write_free(&x->w);
    return st;
  }
  kl_write_end(&x->w);
  kl_part part = {.dim = KL_NONE, .count = x->count, .main = b, .blocks = b.blocks, .main_blocks = b.blocks};
  kl_plan_add_part(x->c->plan, &part);
  return KILN_OK;
}
