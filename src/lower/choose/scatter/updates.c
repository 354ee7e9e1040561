// Scatter, update by update: a thread has some neighbouring updates, and changes the elements that they belong to,
// whatever other threads do to these at the time. A launch before stores the operands in the results.

#include "lower/choose/scatter/scatter.h"

enum { BLOCK = 256, FEW_WINDOWS = 8, MANY_UPDATES = 1 << 14 };

typedef struct updates {
  kl_choosing *c;
  const kl_scatter *x;
  kl_affs *p;
  kl_writer w;
  kl_walk walk;
  int64_t count;                    // of updates
  uint32_t slot[KL_MOST_SCATTERED]; // by array
  kl_store how[KL_MOST_SCATTERED];  // the same
} updates;

// --- what can be done -----------------------------------------------------------------------------------------------

static bool is_ordered(kl_dtype t, kl_op op) {
  bool exact = kl_is_int(t) || t == KILN_PRED;
  if (op == KL_OP_MAXIMUM || op == KL_OP_MINIMUM) return false;
  return op == KL_OP_COPY || op == KL_OP_UNKNOWN || !exact;
}

// How elements of an array change; false: not so.
static bool choose_how(updates *x, uint32_t array, const char **why_not) {
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

static bool choose_changes(updates *x, const char **why_not) {
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
  for (uint32_t i = 0; i < x->x->n; i++)
    if (x->slot[i] != KL_NONE && !choose_how(x, i, why_not)) return false;
  return true;
}

static int64_t windows_of_element(const kl_scatter *x) {
  int64_t n = 1;
  for (uint32_t i = 0; i < x->nbatch; i++)
    if (!x->batched[i]) n *= x->updates->dims[x->batch[i]];
  return n;
}

// --- bodies ---------------------------------------------------------------------------------------------------------

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

// Updates of a thread: of one window, or where windows are of one element of several, 16 bytes of the widest.
static int64_t neighbours(const updates *x) {
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

// Threads of all blocks in one row, as in loops over elements: whole blocks in `main`, the rest one by one.
static void shape_body(updates *x, kl_body *b, int64_t lanes, int64_t threads, int64_t first) {
  bool host = x->c->plan->target.machine == KL_HOST;
  kl_var *vars = KL_NEW_N(x->c->arena, kl_var, 2);
  vars[0] = (kl_var){KL_BIND_THREAD, threads, "t"};
  vars[1] = (kl_var){host ? KL_BIND_LANE : KL_BIND_REG, lanes, "lane"};
  *b = (kl_body){.nvars = 2, .vars = vars, .threads = threads, .lanes = (uint32_t)lanes, .first = first};
  b->width = host ? (uint32_t)lanes : 1;
}

// Where the thread's updates go, and the guard that they go anywhere.
static kiln_status find_target(updates *x, const kl_aff *const *index, const kl_aff **to, uint32_t *guard,
                               bool *never) {
  const kl_scatter *s = x->x;
  const kl_aff *batch[KILN_MAX_RANK], *start[KILN_MAX_RANK];
  for (uint32_t i = 0; i < s->nbatch; i++) batch[i] = index[s->batch[i]];
  KL_TRY(kl_window_start(&x->walk, s, batch, KL_NONE, start));
  *guard = KL_NONE;
  *never = false;
  for (uint32_t d = 0; d < s->array->rank && !*never; d++) {
    to[d] = s->window[d] >= 0 ? kl_aff_add(x->p, start[d], index[s->window[d]]) : start[d];
    *guard = kl_window_inside(&x->walk, s, d, start[d], *guard, never);
  }
  return KILN_OK;
}

static kiln_status change(updates *x, uint32_t array, const kl_aff *linear, uint32_t value, uint32_t guard) {
  const kl_slot_info *info = &x->c->slots.v.p[x->slot[array]];
  if (x->how[array].how != KL_STORE_REPLACE) {
    kl_write_change(&x->w, &x->how[array], x->slot[array], info, linear, value, guard);
    return KILN_OK;
  }
  uint32_t old =
      kl_write_update(&x->w, x->how[array].alone, x->slot[array], info, linear, x->w.steps.p[value].regs, guard);
  uint32_t next = value;
  if (kl_combining_op(x->x, array) != KL_OP_COPY) KL_TRY(kl_combine(&x->walk, x->x, &old, &value, &next));
  kl_write_update_end(&x->w, next);
  return KILN_OK;
}

static kiln_status write_body(updates *x) {
  const kl_scatter *s = x->x;
  const kl_aff *index[KILN_MAX_RANK], *to[KILN_MAX_RANK];
  uint32_t values[KL_MOST_SCATTERED], guard;
  bool never;
  const kl_body *b = x->w.body;
  const kl_aff *at = kl_aff_addmul(x->p, kl_aff_dim(x->p, 1), kl_aff_dim(x->p, 0), b->lanes);
  kl_index_at(x->p, s->updates, kl_dom_simplify(b->domain, kl_aff_addc(x->p, at, b->first)), index);
  KL_TRY(find_target(x, index, to, &guard, &never));
  if (never) return KILN_OK;
  for (uint32_t i = 0; i < s->n; i++)
    if (x->slot[i] != KL_NONE)
      KL_TRY(kl_walk_want(&x->walk, s->instr->operands[s->n + 1 + i], 0, KL_NONE, index, &values[i]));
  for (uint32_t i = 0; i < s->n; i++) {
    if (x->slot[i] == KL_NONE) continue;
    const kl_aff *linear = kl_position_of(x->p, x->c->slots.v.p[x->slot[i]].shape, to);
    if (!kl_is_sound(linear)) return kl_plan_refuse_index(x->c->cx, x->c->plan, kl_why_unsound(linear));
    KL_TRY(change(x, i, linear, values[i], guard));
  }
  return KILN_OK;
}

static kiln_status write_one(updates *x, kl_body *b) {
  if (kl_body_is_empty(b)) return KILN_OK;
  kl_write_begin(&x->w, x->c->cx, x->c->plan, b);
  kl_walk_begin(&x->walk, x->c->cx, x->c->plan, &x->c->slots, &x->w);
  kiln_status st = write_body(x);
  kl_walk_free(&x->walk);
  if (st == KILN_OK)
    kl_write_end(&x->w);
  else
    kl_write_free(&x->w);
  return st;
}

static kiln_status write_updates(updates *x, int64_t block) {
  kl_part part = {.dim = KL_NONE, .count = x->count};
  int64_t lanes = neighbours(x), threads = x->count / lanes / block * block, rest = x->count - threads * lanes;
  shape_body(x, &part.main, lanes, threads, 0);
  int64_t tail_lanes = rest % lanes ? 1 : lanes;
  rest /= tail_lanes;
  shape_body(x, &part.tail, tail_lanes, rest, threads * lanes);
  part.main_blocks = threads / block;
  part.blocks = part.main_blocks + rest / block + (rest % block != 0);
  KL_TRY(write_one(x, &part.main));
  KL_TRY(write_one(x, &part.tail));
  kl_plan_add_part(x->c->plan, &part);
  return KILN_OK;
}

// --- the plan -------------------------------------------------------------------------------------------------------

kiln_status kl_choose_updates(kl_choosing *c, const kl_scatter *s, const char **why_not) {
  updates x = {.c = c, .x = s, .p = c->plan->affs, .count = s->updates->count};
  uint32_t block = c->plan->target.machine == KL_HOST ? 1 : BLOCK, first = kl_scatter_results(c);
  if (windows_of_element(s) <= FEW_WINDOWS || x.count == 0) *why_not = "an element has few windows to look through";
  if (*why_not || !choose_changes(&x, why_not)) return KILN_OK;
  KL_TRY(kl_copy_operands(c, s, why_not));
  if (*why_not) return KILN_OK;
  kl_last_launch(c->plan)->block = block;
  kl_plan_add_launch(c->plan, block);
  for (uint32_t i = first; i < c->slots.nargs; i++) c->slots.v.p[i].mode = KL_MODE_UPDATE;
  return write_updates(&x, block);
}
