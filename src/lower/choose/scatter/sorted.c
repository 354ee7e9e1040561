// Scatter of sorted indices: a thread has some windows that lie one behind the other, joins what goes to the same
// elements as long as it does, and then brings it there. An element changes once for each run, not for each update.
//
// That indices are sorted makes runs long; what comes out is right in any order.

#include "lower/choose/scatter/scatter.h"

enum { WARP = 32, FEW_THREADS = 1 << 14, MOST_WINDOWS = 16, MOST_HELD = 64 };

typedef struct sorted {
  kl_updating u;
  kl_var_list vars;
  int64_t nwindows, size; // of all, and elements of one
  int64_t k, lanes;       // windows of a thread, and neighbouring elements of each
  uint32_t run;           // the variable of a thread's windows
  const kl_aff *group;    // number of the thread's windows among all such groups
  const kl_aff *element;  // of a window
} sorted;

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

// Windows that follow each other at one place, if they are spread evenly.
static int64_t run_length(const sorted *x) {
  int64_t places = 1;
  const kl_scatter *s = x->u.x;
  for (uint32_t d = 0; d < s->array->rank; d++)
    if (s->entry[d] >= 0 || s->batching[d] >= 0) places *= s->array->dims[d] - s->size[d] + 1;
  return x->nwindows / places;
}

// A thread has two windows of each run or more, as long as there are threads enough and registers.
static bool find_sizes(sorted *x) {
  const kl_scatter *s = x->u.x;
  x->size = x->nwindows = 1;
  for (uint32_t d = 0; d < s->array->rank; d++) x->size *= s->size[d];
  for (uint32_t i = 0; i < s->nbatch; i++) x->nwindows *= s->updates->dims[s->batch[i]];
  x->lanes = x->size == 1 ? 1 : kl_neighbours(&x->u);
  int64_t length = run_length(x);
  for (x->k = 2; x->k < MOST_WINDOWS && x->k < 2 * length; x->k *= 2) continue;
  while (x->k > 2 && (x->k * x->lanes > MOST_HELD || ceil_div(x->nwindows, x->k) * (x->size / x->lanes) < FEW_THREADS))
    x->k /= 2;
  return length > 1;
}

static void make_vars(sorted *x) {
  kl_affs *p = x->u.p;
  uint32_t var;
  int64_t chunks = x->size / x->lanes, threads = ceil_div(x->nwindows, x->k) * chunks;
  const kl_aff *at = kl_new_var(p, &x->vars, KL_BIND_BLOCK, ceil_div(threads, KL_UPDATING_THREADS), "block", &var);
  at = kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_WARP, KL_UPDATING_WARPS, "warp", &var), at, KL_UPDATING_WARPS);
  at = kl_aff_addmul(p, kl_new_var(p, &x->vars, KL_BIND_LANE, WARP, "lane", &var), at, WARP);
  kl_new_var(p, &x->vars, KL_BIND_REG, x->k, "k", &x->run);
  const kl_aff *v = kl_new_var(p, &x->vars, KL_BIND_REG, x->lanes, "v", &var);
  x->group = kl_aff_floordivc(p, at, chunks);
  x->element = kl_aff_addmul(p, v, kl_aff_modc(p, at, chunks), x->lanes);
}

// Number n of windows, as dims of the updates; and what of it are batching dims of the arrays.
static void window_at(const sorted *x, const kl_aff *n, const kl_aff **batch) {
  const kl_scatter *s = x->u.x;
  for (uint32_t i = s->nbatch; i-- > 0;) {
    int64_t size = s->updates->dims[s->batch[i]];
    batch[i] = i ? kl_aff_modc(x->u.p, n, size) : n;
    n = kl_aff_floordivc(x->u.p, n, size);
  }
}

// The element's place in its window: neighbours are neighbours in the updates.
static void offset_in_window(const sorted *x, const kl_aff **offset) {
  const kl_scatter *s = x->u.x;
  const kl_aff *n = x->element;
  for (uint32_t d = 0; d < s->array->rank; d++) offset[d] = kl_aff_const(x->u.p, 0);
  for (uint32_t i = 0; i < s->updates->rank; i++) {
    int dim = kl_shape_minor_to_major(s->updates, i);
    for (uint32_t d = 0; d < s->array->rank; d++) {
      if (s->window[d] != dim) continue;
      offset[d] = kl_aff_modc(x->u.p, n, s->size[d]);
      n = kl_aff_floordivc(x->u.p, n, s->size[d]);
    }
  }
}

// One window of a thread.
typedef struct window {
  const kl_aff *start[KILN_MAX_RANK];
  uint32_t there, inside; // guards: that there is such a window; and that it lies in the arrays
  bool never;
  uint32_t values[KL_MOST_SCATTERED];
} window;

static uint32_t take(sorted *x, uint32_t value, uint32_t i) {
  kl_writer *w = &x->u.w;
  return kl_has_var(w->steps.p[value].regs, x->run) ? kl_write_take(w, value, x->run, i) : value;
}

static const kl_aff *number_of(const sorted *x, const kl_aff *k) {
  return kl_dom_simplify(x->u.w.body->domain, kl_aff_addmul(x->u.p, k, x->group, x->k));
}

// entries, values: of all windows of a thread.
static void find_window(sorted *x, uint32_t i, const uint32_t *entries, const uint32_t *values, window *out) {
  kl_updating *u = &x->u;
  const kl_scatter *s = u->x;
  const kl_aff *batch[KILN_MAX_RANK], *n = number_of(x, kl_aff_const(u->p, i));
  out->there = kl_guard_and(&u->w.guards, KL_NONE, n, 0, x->nwindows - 1, &out->never);
  window_at(x, n, batch);
  out->inside = out->there;
  for (uint32_t d = 0; d < s->array->rank && !out->never; d++) {
    out->start[d] = s->batching[d] >= 0 ? batch[s->batching[d]] : kl_aff_const(u->p, 0);
    if (s->entry[d] >= 0) out->start[d] = kl_write_index(&u->w, take(x, entries[s->entry[d]], i), kl_starts(s, d));
    out->inside = kl_window_inside(&u->walk, s, d, out->start[d], out->inside, &out->never);
  }
  for (uint32_t a = 0; a < s->n; a++)
    if (u->slot[a] != KL_NONE) out->values[a] = take(x, values[a], i);
}

// Brings what is joined to the place of a window.
static kiln_status bring(sorted *x, const window *at, const uint32_t *joined, uint32_t guard) {
  kl_updating *u = &x->u;
  const kl_scatter *s = u->x;
  const kl_aff *to[KILN_MAX_RANK];
  offset_in_window(x, to);
  for (uint32_t d = 0; d < s->array->rank; d++) to[d] = kl_aff_add(u->p, at->start[d], to[d]);
  for (uint32_t a = 0; a < s->n; a++) {
    if (u->slot[a] == KL_NONE) continue;
    const kl_slot_info *info = &u->c->slots.v.p[u->slot[a]];
    const kl_aff *linear = kl_position_of(u->p, info->shape, to);
    if (!kl_is_sound(linear)) return kl_plan_refuse_index(u->c->cx, u->c->plan, kl_why_unsound(linear));
    kl_write_change(&u->w, &u->how[a], u->slot[a], info, linear, joined[a], guard);
  }
  return KILN_OK;
}

// The guard that the next window is there, and at the same place.
static uint32_t goes_on(sorted *x, const window *at, const window *next, bool *never) {
  kl_updating *u = &x->u;
  uint32_t guard = next->there;
  *never = next->never;
  for (uint32_t d = 0; d < u->x->array->rank && !*never; d++)
    guard = kl_guard_and(&u->w.guards, guard, kl_aff_sub(u->p, next->start[d], at->start[d]), 0, 0, never);
  return guard;
}

// Joins the next window's values, or brings what there is to the one before it and begins anew.
static kiln_status step(sorted *x, const window *at, const window *next, uint32_t *joined) {
  kl_updating *u = &x->u;
  kl_writer *w = &u->w;
  const kl_scatter *s = u->x;
  uint32_t made[KL_MOST_SCATTERED] = {0}, ends = at->inside;
  bool never, stays = at->never;
  uint32_t same = goes_on(x, at, next, &never);
  if (!never) {
    uint32_t yes = kl_write_scalar(w, KILN_PRED, 1, 0), no = kl_write_scalar(w, KILN_PRED, 0, 0);
    const kl_aff *is_same = kl_write_index(w, kl_write_choose(w, same, yes, no), (kl_interval){0, 1});
    if (!stays) ends = kl_guard_and(&w->guards, ends, is_same, 0, 0, &stays);
  }
  if (!stays) KL_TRY(bring(x, at, joined, ends));
  if (!never) KL_TRY(kl_combine(&u->walk, s, joined, next->values, made));
  for (uint32_t a = 0; a < s->n; a++)
    if (u->slot[a] != KL_NONE) joined[a] = never ? next->values[a] : kl_write_choose(w, same, made[a], next->values[a]);
  return KILN_OK;
}

static kiln_status write_body(void *arg) {
  sorted *x = arg;
  kl_updating *u = &x->u;
  const kl_scatter *s = u->x;
  const kl_aff *batch[KILN_MAX_RANK], *offset[KILN_MAX_RANK], *index[KILN_MAX_RANK];
  uint32_t entries[KILN_MAX_RANK], values[KL_MOST_SCATTERED], joined[KL_MOST_SCATTERED];
  window at, next;
  const kl_aff *n = number_of(x, kl_aff_dim(u->p, x->run));
  bool never;
  uint32_t there = kl_guard_and(&u->w.guards, KL_NONE, n, 0, x->nwindows - 1, &never);
  window_at(x, n, batch);
  offset_in_window(x, offset);
  kl_update_index(s, batch, offset, index);
  for (uint32_t d = 0; d < s->array->rank; d++)
    if (s->entry[d] >= 0) KL_TRY(kl_want_entry(&u->walk, s, batch, s->entry[d], there, &entries[s->entry[d]]));
  for (uint32_t a = 0; a < s->n; a++)
    if (u->slot[a] != KL_NONE)
      KL_TRY(kl_walk_want(&u->walk, s->instr->operands[s->n + 1 + a], 0, there, index, &values[a]));
  find_window(x, 0, entries, values, &at);
  memcpy(joined, at.values, sizeof joined);
  for (uint32_t i = 1; i < x->k; i++) {
    find_window(x, i, entries, values, &next);
    KL_TRY(step(x, &at, &next, joined));
    at = next;
  }
  return at.never ? KILN_OK : bring(x, &at, joined, at.inside);
}

kiln_status kl_choose_sorted_scatter(kl_choosing *c, const char **why_not) {
  sorted x = {0};
  kl_scatter s;
  KL_TRY(kl_begin_joins(c, &s, &x.u, why_not));
  if (!*why_not && !s.instr->more->indices_are_sorted) *why_not = "";
  for (uint32_t i = 0; i < s.n && !*why_not; i++)
    if (x.u.slot[i] == KL_NONE) *why_not = "an array that is scattered is no result";
  if (*why_not) return KILN_OK;
  bool long_runs = find_sizes(&x);
  if (!long_runs && !c->params->strategy.chooser) *why_not = "an element has few updates, even of sorted indices";
  if (*why_not) return KILN_OK;
  make_vars(&x);
  return kl_write_updates(&x.u, &x.vars, write_body, &x);
}
