// Scatter, element by element: a thread has some neighbouring elements of the results, goes through all windows in
// their order, and combines what is its own.
//
// Nobody meets anybody: any combiner, any type, any number of arrays at once, the same bits every time, and those of
// the updates one after the other. It takes time by the product of elements and windows.

#include "lower/choose/scatter/scatter.h"

enum { WARP = 32, WARPS = 8 };

typedef struct ordered {
  kl_choosing *c;
  const kl_scatter *x;
  kl_affs *p;
  kl_writer w;
  kl_walk walk;
  kl_var_list vars;
  uint32_t step;    // the variable of windows, KL_NONE: at most one
  kl_vars reg;      // that of neighbouring elements
  int64_t windows;  // that an element looks through
  const kl_aff *at; // the element's place in the first result
  uint32_t keep;    // it is there
  const kl_aff *index[KILN_MAX_RANK];
  bool copies;    // looks through no windows
  bool exchanges; // the combiner puts an array's elements into another
} ordered;

static const kl_slot_info *result(const ordered *x, uint32_t i) {
  return &x->c->slots.v.p[kl_scatter_results(x->c) + i];
}

// Elements of a thread: 16 bytes of the narrowest result, but for small arrays, and whole bytes of each.
static int64_t neighbours(const ordered *x) {
  int64_t narrow = 128, least = 1, n;
  for (uint32_t i = 0; i < x->c->slots.nargs - kl_scatter_results(x->c); i++) {
    uint32_t bits = kl_info(result(x, i)->shape->dtype)->bits;
    if (bits < narrow) narrow = bits;
    if (bits < 8 && 8 / bits > least) least = 8 / bits;
  }
  const kl_target *t = &x->c->plan->target;
  if (t->machine == KL_HOST) return t->host_lanes > least ? t->host_lanes : least;
  n = t->max_bytes * 8 / narrow;
  while (n > 1 && x->c->plan->count / n < (1 << 14)) n /= 2;
  return n > least ? n : least;
}

static void make_vars(ordered *x) {
  bool host = x->c->plan->target.machine == KL_HOST;
  int64_t n = neighbours(x), warps = host ? 1 : WARPS, lanes = host ? 1 : WARP, group = n * warps * lanes;
  uint32_t var;
  const kl_aff *at = kl_new_var(x->p, &x->vars, KL_BIND_BLOCK, (x->c->plan->count + group - 1) / group, "block", &var);
  at = kl_aff_addmul(x->p, kl_new_var(x->p, &x->vars, KL_BIND_WARP, warps, "warp", &var), at, warps);
  at = kl_aff_addmul(x->p, kl_new_var(x->p, &x->vars, KL_BIND_LANE, lanes, "lane", &var), at, lanes);
  const kl_aff *v = kl_new_var(x->p, &x->vars, host ? KL_BIND_LANE : KL_BIND_REG, n, host ? "lane" : "v", &var);
  if (!host && var != KL_NONE) x->reg = (kl_vars)1 << var;
  x->at = kl_aff_addmul(x->p, v, at, n);
  x->windows = 1;
  for (uint32_t i = 0; i < x->x->nbatch; i++)
    if (!x->x->batched[i]) x->windows *= x->x->updates->dims[x->x->batch[i]];
  kl_new_var(x->p, &x->vars, KL_BIND_STEP, x->windows && !x->copies ? x->windows : 1, "window", &x->step);
}

// The window that the element looks at: of those that lie along its own place in batching dims.
static void window_of(const ordered *x, const kl_aff **batch) {
  const kl_scatter *s = x->x;
  const kl_aff *n = x->step == KL_NONE ? kl_aff_const(x->p, 0) : kl_aff_dim(x->p, x->step);
  for (uint32_t d = 0; d < s->array->rank; d++)
    if (s->batching[d] >= 0) batch[s->batching[d]] = x->index[d];
  for (uint32_t i = s->nbatch; i-- > 0;) {
    if (s->batched[i]) continue;
    batch[i] = kl_aff_modc(x->p, n, s->updates->dims[s->batch[i]]);
    n = kl_aff_floordivc(x->p, n, s->updates->dims[s->batch[i]]);
  }
}

// The place in the window of the element, and the guard that it has one.
static uint32_t covered(ordered *x, const kl_aff *const *start, const kl_aff **offset, bool *never) {
  const kl_scatter *s = x->x;
  uint32_t guard = x->keep;
  *never = false;
  for (uint32_t d = 0; d < s->array->rank && !*never; d++) {
    offset[d] = kl_aff_sub(x->p, x->index[d], start[d]);
    // Of a window of one element it is said already that it lies inside.
    if (s->size[d] > 1) guard = kl_window_inside(&x->walk, s, d, start[d], guard, never);
    if (!*never) guard = kl_guard_and(&x->w.guards, guard, offset[d], 0, s->size[d] - 1, never);
  }
  return guard;
}

// values: the elements; afterwards with the window's updates.
static kiln_status take_window(ordered *x, uint32_t *values) {
  const kl_scatter *s = x->x;
  const kl_aff *batch[KILN_MAX_RANK], *start[KILN_MAX_RANK], *offset[KILN_MAX_RANK], *at[KILN_MAX_RANK];
  uint32_t updates[KL_MOST_SCATTERED], made[KL_MOST_SCATTERED];
  bool never;
  window_of(x, batch);
  KL_TRY(kl_window_start(&x->walk, s, batch, x->keep, start));
  uint32_t guard = covered(x, start, offset, &never);
  if (never) return KILN_OK;
  kl_update_index(s, batch, offset, at);
  for (uint32_t i = 0; i < s->n; i++)
    KL_TRY(kl_walk_want(&x->walk, s->instr->operands[s->n + 1 + i], 0, guard, at, &updates[i]));
  KL_TRY(kl_combine(&x->walk, s, values, updates, made));
  for (uint32_t i = 0; i < s->n; i++) values[i] = kl_write_choose(&x->w, guard, made[i], values[i]);
  return KILN_OK;
}

// Behind the loop there is what the last round made. Of what it made nothing of, what there was before; of what it only
// handed on from another array, nothing.
static void leave_loop(ordered *x, const uint32_t *first, const uint32_t *carried, uint32_t *values) {
  for (uint32_t i = 0; i < x->x->n; i++)
    for (uint32_t k = 0; k < x->x->n; k++)
      if (values[i] == carried[k] && k != i) x->exchanges = true;
  for (uint32_t i = 0; i < x->x->n; i++)
    if (values[i] == carried[i]) values[i] = first[i];
}

static kiln_status take_windows(ordered *x, uint32_t *values) {
  kl_vars regs[KL_MOST_SCATTERED];
  uint32_t carried[KL_MOST_SCATTERED], first[KL_MOST_SCATTERED];
  if (!x->windows || !x->x->updates->count) return KILN_OK;
  if (x->step == KL_NONE) return take_window(x, values);
  for (uint32_t i = 0; i < x->x->n; i++) regs[i] = x->reg;
  memcpy(first, values, x->x->n * sizeof *first);
  kl_write_loop(&x->w, x->step, x->x->n, first, regs, carried);
  memcpy(values, carried, x->x->n * sizeof *values);
  KL_TRY(take_window(x, values));
  kl_write_loop_end(&x->w, values);
  leave_loop(x, first, carried, values);
  return KILN_OK;
}

// Beyond the end indices say nothing of the place.
static const kl_aff *place_of(const ordered *x, const kl_shape *s) {
  return kl_shape_same_in_memory(s, result(x, 0)->shape) ? x->at : kl_position_of(x->p, s, x->index);
}

static kiln_status write_body(ordered *x) {
  uint32_t values[KL_MOST_SCATTERED], step;
  bool never;
  x->at = kl_dom_simplify(x->w.body->domain, x->at);
  x->keep = kl_guard_and(&x->w.guards, KL_NONE, x->at, 0, x->c->plan->count - 1, &never);
  kl_index_at(x->p, result(x, 0)->shape, x->at, x->index);
  for (uint32_t i = 0; i < x->x->n; i++)
    KL_TRY(kl_walk_want(&x->walk, x->x->instr->operands[i], 0, x->keep, x->index, &values[i]));
  if (!x->copies) KL_TRY(take_windows(x, values));
  for (uint32_t i = 0; i < x->x->n; i++) kl_walk_give(&x->walk, x->x->number, i, x->index, values[i]);
  uint32_t first = kl_scatter_results(x->c);
  for (uint32_t slot = first; slot < x->c->slots.nargs; slot++) {
    const kl_slot_info *info = &x->c->slots.v.p[slot];
    KL_TRY(kl_walk_want(&x->walk, x->c->plan->comp->root, slot - first, x->keep, x->index, &step));
    kl_write_store(&x->w, slot, info, place_of(x, info->shape), step, x->keep);
  }
  return KILN_OK;
}

static kiln_status write_elements(kl_choosing *c, const kl_scatter *s, bool copies, const char **why_not) {
  ordered x = {.c = c, .x = s, .p = c->plan->affs, .copies = copies};
  kl_body b = {0};
  make_vars(&x);
  kl_take_vars(c->arena, &x.vars, &b);
  b.width = c->plan->target.machine == KL_HOST ? (uint32_t)kl_extent(&b, kl_bound(&b, KL_BIND_LANE)) : 1;
  kl_write_begin(&x.w, c->cx, c->plan, &b);
  kl_walk_begin(&x.walk, c->cx, c->plan, &c->slots, &x.w);
  kiln_status st = write_body(&x);
  kl_walk_free(&x.walk);
  if (st == KILN_OK && x.w.splits_bytes) *why_not = "results of several threads would share a byte";
  if (st == KILN_OK && x.exchanges) *why_not = "its combiner hands elements on from one array to another";
  if (st != KILN_OK || *why_not) {
    kl_write_free(&x.w);
    return st;
  }
  kl_write_end(&x.w);
  kl_last_launch(c->plan)->block = c->plan->target.machine == KL_HOST ? 1 : WARP * WARPS;
  kl_part part = {.dim = KL_NONE, .count = c->plan->count, .main = b, .blocks = b.blocks, .main_blocks = b.blocks};
  kl_plan_add_part(c->plan, &part);
  return KILN_OK;
}

kiln_status kl_choose_ordered(kl_choosing *c, const kl_scatter *x, const char **why_not) {
  return write_elements(c, x, false, why_not);
}

kiln_status kl_copy_operands(kl_choosing *c, const kl_scatter *x, const char **why_not) {
  return write_elements(c, x, true, why_not);
}
