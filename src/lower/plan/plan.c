// What holds of any plan: its life, and the proof that 32-bit indices do.

#include "lower/plan/plan.h"

void kl_plan_free(kl_plan *p) {
  kl_affs_destroy(&p->affs);
}

// --- launches -------------------------------------------------------------------------------------------------------

kl_plan_launch *kl_plan_add_launch(kl_plan *p, uint32_t block) {
  kl_plan_launch *all = KL_NEW_N(p->arena, kl_plan_launch, p->nlaunches + 1u), *l = &all[p->nlaunches];
  if (p->nlaunches) memcpy(all, p->launches, p->nlaunches * sizeof *all);
  *l = (kl_plan_launch){.name = p->name, .first_part = p->nparts, .block = block};
  // No name of a kernel ends in this way but by a number behind it.
  if (p->nlaunches) l->name = kl_strf(p->arena, "%s_then%u", p->name, p->nlaunches);
  p->launches = all;
  p->nlaunches++;
  return l;
}

void kl_plan_add_part(kl_plan *p, const kl_part *part) {
  kl_plan_launch *l = kl_last_launch(p);
  kl_part *all = KL_NEW_N(p->arena, kl_part, p->nparts + 1u), *added = &all[p->nparts];
  if (p->nparts) memcpy(all, p->parts, p->nparts * sizeof *all);
  *added = *part;
  added->first_block = l->grid;
  added->first_iteration = l->iterations;
  l->grid += part->blocks;
  l->iterations += part->main.threads + part->main.blocks;
  l->nparts++;
  p->parts = all;
  p->nparts++;
}

const kl_plan_launch *kl_launch_of(const kl_plan *p, uint32_t part) {
  const kl_plan_launch *l = p->launches;
  while (part >= l->first_part + l->nparts) l++;
  return l;
}

// --- variables and points -------------------------------------------------------------------------------------------

kl_vars kl_bound(const kl_body *b, kl_binding binding) {
  kl_vars r = 0;
  for (uint32_t v = 0; v < b->nvars; v++)
    if (b->vars[v].binding == binding) r |= (kl_vars)1 << v;
  return r;
}

kl_vars kl_inner(const kl_body *b) {
  return kl_bound(b, KL_BIND_REG) | (b->width > 1 ? kl_bound(b, KL_BIND_LANE) : 0);
}

int64_t kl_extent(const kl_body *b, kl_vars vars) {
  int64_t n = 1;
  for (uint32_t v = 0; v < b->nvars; v++)
    if (kl_has_var(vars, v)) n *= b->vars[v].extent;
  return n;
}

void kl_nth_point(const kl_body *b, kl_vars vars, uint32_t run, uint32_t i, int64_t *at) {
  if (run != KL_NONE) {
    at[run] = i % b->vars[run].extent;
    i /= (uint32_t)b->vars[run].extent;
  }
  for (uint32_t v = b->nvars; v-- > 0;) {
    if (!kl_has_var(vars, v) || v == run) continue;
    at[v] = i % b->vars[v].extent;
    i /= (uint32_t)b->vars[v].extent;
  }
}

uint32_t kl_point_number(const kl_body *b, kl_vars vars, uint32_t run, const int64_t *at) {
  uint32_t i = 0;
  for (uint32_t v = 0; v < b->nvars; v++)
    if (kl_has_var(vars, v) && v != run) i = i * (uint32_t)b->vars[v].extent + (uint32_t)at[v];
  return run == KL_NONE ? i : i * (uint32_t)b->vars[run].extent + (uint32_t)at[run];
}

const kl_aff *kl_at_point(kl_affs *p, const kl_body *b, const kl_aff *e, kl_vars vars, const int64_t *at) {
  if (!(kl_vars_of(b, e) & vars)) return kl_dom_simplify(b->domain, e);
  const kl_aff *to[KL_MAX_VARS];
  for (uint32_t v = 0; v < b->nvars; v++) to[v] = kl_has_var(vars, v) ? kl_aff_const(p, at[v]) : kl_aff_dim(p, v);
  kl_aff_replace(p, &(kl_aff_subst){.to = {to}, .n = {b->nvars}}, &e, 1, &e);
  return kl_dom_simplify(b->domain, e);
}

static kl_vars vars_of_atom(const kl_body *b, const kl_aff_atom *a);

static kl_vars vars_of(const kl_body *b, const kl_aff *e) {
  kl_vars r = 0;
  for (uint32_t i = 0; i < e->n; i++) r |= vars_of_atom(b, e->terms[i].atom);
  return r;
}

static kl_vars vars_of_atom(const kl_body *b, const kl_aff_atom *a) {
  if (a->kind == KL_AFF_RT) return b->symbols[a->var - KL_FIRST_SYMBOL].vars;
  if (a->kind < KL_AFF_VARS) return a->var < KL_MAX_VARS ? (kl_vars)1 << a->var : 0;
  kl_vars r = 0;
  for (uint32_t i = 0; i < a->n; i++) r |= vars_of(b, a->arg[i]);
  return r;
}

kl_vars kl_vars_of(const kl_body *b, const kl_aff *e) {
  return vars_of(b, e) & (kl_vars)(((uint64_t)1 << b->nvars) - 1);
}

bool kl_has_symbols(const kl_aff *e) {
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind == KL_AFF_RT) return true;
    for (uint32_t k = 0; a->kind >= KL_AFF_VARS && k < a->n; k++)
      if (kl_has_symbols(a->arg[k])) return true;
  }
  return false;
}

void kl_each_symbol(const kl_aff *e, void (*f)(void *arg, uint32_t symbol), void *arg) {
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind == KL_AFF_RT) f(arg, a->var - KL_FIRST_SYMBOL);
    for (uint32_t k = 0; a->kind >= KL_AFF_VARS && k < a->n; k++) kl_each_symbol(a->arg[k], f, arg);
  }
}

typedef struct taking {
  const kl_body *b;
  void (*f)(void *arg, uint32_t step);
  void *arg;
} taking;

static void take_symbol(void *arg, uint32_t symbol) {
  const taking *x = arg;
  if (!kl_is_counted_in(&x->b->symbols[symbol])) x->f(x->arg, x->b->symbols[symbol].step);
}

static void take_guard(taking *x, uint32_t guard) {
  for (; guard != KL_NONE; guard = x->b->guards[guard].outer) kl_each_symbol(x->b->guards[guard].expr, take_symbol, x);
}

static void take_access(taking *x, const kl_access *a) {
  for (uint32_t c = 0; c < a->nchunks; c++) kl_each_symbol(a->base[c], take_symbol, x);
  take_guard(x, a->guard);
}

static void take_step(taking *x, const kl_step *s) {
  for (uint32_t i = 0; i < s->noperands; i++) x->f(x->arg, s->operands[i]);
  if (!x->b->nsymbols) return;
  if (s->kind == KL_STEP_LOAD) take_access(x, &s->access);
  for (uint32_t i = 0; s->kind == KL_STEP_CHOOSE && i + 1 < s->noperands; i++) take_guard(x, s->guards[i]);
  if (s->expr) kl_each_symbol(s->expr, take_symbol, x);
}

static void take_store(taking *x, const kl_store *s) {
  x->f(x->arg, s->step);
  if (!x->b->nsymbols) return;
  take_access(x, &s->access);
  take_guard(x, s->keep);
}

void kl_each_taken(const kl_body *b, const kl_node *n, void (*f)(void *arg, uint32_t step), void *arg) {
  taking x = {b, f, arg};
  switch (n->kind) {
  case KL_NODE_STEP: return take_step(&x, &b->steps[n->index]);
  case KL_NODE_STORE: return take_store(&x, &b->stores[n->index]);
  case KL_NODE_IF: return take_guard(&x, n->index);
  case KL_NODE_UPDATE: return take_store(&x, &b->stores[n->index]);
  case KL_NODE_LOOP:
  case KL_NODE_WHILE:
  case KL_NODE_BEFORE:
    for (uint32_t i = 0; i < n->nest->ncarried; i++)
      f(arg, n->nest->carried[i].first), f(arg, n->nest->carried[i].next);
    return;
  case KL_NODE_LAST:
  case KL_NODE_MEET:
  case KL_NODE_SYNC: return;
  }
}

kl_vars kl_cluster_vars(const kl_body *b, uint32_t n) {
  kl_vars vars = 0;
  for (uint32_t v = b->nvars; v-- > 0 && kl_extent(b, vars) < n;)
    if (b->vars[v].binding == KL_BIND_BLOCK) vars |= (kl_vars)1 << v;
  return kl_extent(b, vars) == n ? vars : 0;
}

uint32_t kl_most_in_cluster(const kl_target *t) {
  return t->machine == KL_NVPTX && t->sm >= 90 ? 8 : 0;
}

// Of GPUs that a target may be; with 128 registers each.
enum { FEWEST_MULTIPROCESSORS = 16, FEW_THREADS = 512 };

uint32_t kl_fewest_multiprocessors(const kl_target *t) {
  return t->multiprocessors ? t->multiprocessors : FEWEST_MULTIPROCESSORS;
}

// ptxas holds registers down so that more blocks run at once on a multiprocessor, and rather spills a few. A launch of
// so few blocks that a multiprocessor has no more than one of them, or few threads of several, has nothing of that: it
// is told to take what it needs.
uint32_t kl_resident(const kl_target *t, int64_t grid, uint32_t block) {
  int64_t multiprocessors = kl_fewest_multiprocessors(t);
  int64_t each = grid / multiprocessors + (grid % multiprocessors != 0);
  return each == 1 || (each > 1 && each <= FEW_THREADS / block) ? (uint32_t)each : 0;
}

uint32_t kl_most_shared(const kl_target *t) {
  static const struct {
    uint32_t sm, kilobytes;
  } most[] = {{70, 96},  {72, 96}, {75, 64},  {80, 163},  {86, 99},
              {87, 163}, {89, 99}, {90, 227}, {100, 227}, {103, 227}};
  if (t->machine == KL_NVPTX && t->shared_bytes) return t->shared_bytes;
  for (size_t i = 0; t->machine == KL_NVPTX && i < KL_COUNT(most); i++)
    if (most[i].sm == t->sm) return most[i].kilobytes << 10;
  return KL_MOST_SHARED;
}

kl_vars kl_guard_vars(const kl_body *b, uint32_t guard) {
  kl_vars r = 0;
  for (; guard != KL_NONE; guard = b->guards[guard].outer) r |= kl_vars_of(b, b->guards[guard].expr);
  return r;
}

// Guards that always hold are not made: what holds is known where a point says more than nothing.
kl_truth kl_guard_at(kl_plan *p, const kl_body *b, uint32_t guard, kl_vars vars, const int64_t *at) {
  kl_truth all = KL_YES;
  for (; guard != KL_NONE && all != KL_NO; guard = b->guards[guard].outer) {
    const kl_guard *g = &b->guards[guard];
    kl_interval in = {INT64_MIN, INT64_MAX};
    if (kl_vars_of(b, g->expr) & vars) in = kl_dom_interval(b->domain, kl_at_point(p->affs, b, g->expr, vars, at));
    if (in.lo > g->hi || in.hi < g->lo)
      all = KL_NO;
    else if (in.lo < g->lo || in.hi > g->hi)
      all = KL_UNKNOWN;
  }
  return all;
}

int64_t kl_floor_shift(kl_dom *d, const kl_aff_atom *floor) {
  int64_t lo = kl_dom_interval(d, floor->arg[0]).lo;
  return lo < 0 ? (-lo + floor->k - 1) / floor->k : 0;
}

// Do `bits` bits hold e? Sums and products may wrap on the way, only their value counts; what stands under a floor, a
// minimum or a maximum must be right by itself. Threads, lanes and symbols as far as they count fit. A bound at the end
// of int64 is none.
bool kl_expr_fits(kl_dom *d, const kl_aff *e, unsigned bits) {
  int64_t end = INT64_MAX >> (64 - bits);
  kl_interval in = kl_dom_interval(d, e);
  if (e->error || in.lo < -end || in.hi > end || in.hi == INT64_MAX) return false;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind < KL_AFF_VARS) continue;
    for (uint32_t k = 0; k < a->n; k++)
      if (!kl_expr_fits(d, a->arg[k], bits)) return false;
    if (a->kind != KL_AFF_FLOOR) continue;
    // A negative dividend is moved up by a multiple of k before the unsigned division; the sum must stay in its bits.
    int64_t lo = kl_dom_interval(d, a->arg[0]).lo;
    if (lo < 0 && (lo < -(end >> 1) || a->k > end >> 1)) return false;
    if (a->k > end) return false;
  }
  return true;
}

static bool access_fits(kl_dom *d, const kl_access *a, unsigned bits) {
  for (uint32_t c = 0; c < a->nchunks; c++) {
    if (!kl_expr_fits(d, a->base[c], bits)) return false;
  }
  return bits == 64 || (a->stride >= INT32_MIN && a->stride <= INT32_MAX);
}

bool kl_body_fits(const kl_body *b, unsigned bits) {
  if (bits == 32 && (b->threads > INT32_MAX || b->blocks > INT32_MAX)) return false;
  for (uint32_t i = 0; i < b->nsteps; i++) {
    const kl_step *s = &b->steps[i];
    if (s->kind == KL_STEP_LOAD && !access_fits(b->domain, &s->access, bits)) return false;
    if (s->expr && !kl_expr_fits(b->domain, s->expr, bits)) return false;
  }
  for (uint32_t i = 0; i < b->nguards; i++) {
    const kl_guard *g = &b->guards[i];
    if (!kl_expr_fits(b->domain, g->expr, bits)) return false;
    if (bits == 32 && (g->lo < INT32_MIN || g->hi > INT32_MAX)) return false;
  }
  for (uint32_t i = 0; i < b->nstores; i++) {
    if (!access_fits(b->domain, &b->stores[i].access, bits)) return false;
  }
  return true;
}
