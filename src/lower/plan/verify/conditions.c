// What holds at a place, and what follows from it.
//
// An index is within its bounds by the intervals of its variables; or because it is a multiple of what a guard bounds,
// and little besides; or by the digits that its floors take variables apart into; or because no point violates it,
// which the search of index maps decides; or, of few points, because each says so.

#include "lower/plan/verify/check.h"

static void add_chain(const kl_body *b, uint32_t guard, kl_conditions *out) {
  for (; guard != KL_NONE; guard = b->guards[guard].outer) {
    const kl_guard *g = &b->guards[guard];
    out->all = out->all && out->n < KL_MOST_CONDITIONS;
    if (out->all) out->c[out->n++] = (kl_condition){g->expr, g->lo, g->hi};
  }
}

void kl_conditions_at(kl_check *k, const kl_place *place, uint32_t guard, kl_conditions *out) {
  out->n = 0;
  out->all = true;
  add_chain(k->body, guard, out);
  for (; place; place = place->up)
    if (place->kind == KL_NODE_IF) add_chain(k->body, place->index, out);
  if (k->launched && out->n < KL_MOST_CONDITIONS) out->c[out->n++] = (kl_condition){k->launched, INT64_MIN, -1};
}

// --- by sums --------------------------------------------------------------------------------------------------------

enum { MOST_TRIES = 16 };

// One side of a bound at a time: below is `negate`d, so that it is always an upper bound that is looked for.
typedef struct bound {
  kl_check *k;
  const kl_conditions *c;
  kl_wide most;
  uint32_t tries;
} bound;

static bool highest(kl_check *k, const kl_aff *e, kl_wide *out) {
  kl_interval in = kl_dom_interval(k->body->domain, e);
  *out = in.hi;
  return !e->error && in.hi < INT64_MAX;
}

// What the condition lets a * e be at most.
static bool highest_of(kl_check *k, const kl_condition *c, int64_t a, kl_wide *out) {
  kl_interval in = kl_dom_interval(k->body->domain, c->e);
  int64_t lo = in.lo > c->lo ? in.lo : c->lo, hi = in.hi < c->hi ? in.hi : c->hi, end = a > 0 ? hi : lo;
  *out = (kl_wide)a * end;
  return end > INT64_MIN && end < INT64_MAX;
}

// The coefficient of an atom of e, 0 if there is none. Terms are in structural order, but few.
static int64_t coef_of(const kl_aff *e, const kl_aff_atom *a) {
  for (uint32_t i = 0; i < e->n; i++)
    if (e->terms[i].atom == a) return e->terms[i].coef;
  return 0;
}

// Is e + more at most x->most, by conditions from number `from` on?
static bool stays_below(bound *x, const kl_aff *e, kl_wide more, uint32_t from) {
  kl_wide top;
  if (highest(x->k, e, &top) && top + more <= x->most) return true;
  for (uint32_t i = from; i < x->c->n; i++) {
    const kl_condition *c = &x->c->c[i];
    int64_t tried = 0;
    for (uint32_t t = 0; t < c->e->n && x->tries; t++) {
      int64_t of_e = coef_of(e, c->e->terms[t].atom), of_c = c->e->terms[t].coef;
      if (!of_e || of_e % of_c != 0 || of_e / of_c == tried) continue;
      tried = of_e / of_c;
      x->tries--;
      if (tried == INT64_MIN || !highest_of(x->k, c, tried, &top)) continue;
      if (stays_below(x, kl_aff_addmul(x->k->p->affs, e, c->e, -tried), more + top, i + 1)) return true;
    }
  }
  return false;
}

static bool is_at_most(kl_check *k, const kl_aff *e, kl_wide most, const kl_conditions *c) {
  bound x = {k, c, most, MOST_TRIES};
  return stays_below(&x, e, 0, 0);
}

// --- by search ------------------------------------------------------------------------------------------------------

enum { QUOTA = 1 << 12 };

enum { MOST_SYMBOLS = 32 };

// Symbols may have any value within their bounds: they are dims behind the variables.
static const kl_aff *with_symbols(kl_check *k, const kl_aff *e) {
  const kl_body *b = k->body;
  kl_affs *p = k->p->affs;
  const kl_aff *to[KL_FIRST_SYMBOL + MOST_SYMBOLS];
  for (uint32_t i = 0; i < KL_FIRST_SYMBOL; i++) to[i] = kl_aff_rt(p, i);
  for (uint32_t i = 0; i < b->nsymbols; i++) to[KL_FIRST_SYMBOL + i] = kl_aff_dim(p, b->nvars + i);
  kl_aff_subst s = {.to = {[KL_AFF_RT] = to}, .n = {[KL_AFF_RT] = KL_FIRST_SYMBOL + b->nsymbols}};
  if (b->nsymbols) kl_aff_replace(p, &s, &e, 1, &e);
  return e;
}

bool kl_is_impossible(kl_check *k, const kl_conditions *c) {
  const kl_body *b = k->body;
  if (b->nsymbols > MOST_SYMBOLS) return false;
  kl_constraint all[KL_MOST_CONDITIONS];
  kl_map_var vars[KL_MAX_VARS + MOST_SYMBOLS] = {0};
  for (uint32_t v = 0; v < b->nvars; v++) vars[v].in = (kl_interval){0, b->vars[v].extent - 1};
  for (uint32_t i = 0; i < b->nsymbols; i++) vars[b->nvars + i].in = (kl_interval){b->symbols[i].lo, b->symbols[i].hi};
  for (uint32_t i = 0; i < c->n; i++) all[i] = (kl_constraint){with_symbols(k, c->c[i].e), {c->c[i].lo, c->c[i].hi}};
  kl_map m = {.state = KL_MAP_DEFINED, .nconstraints = c->n, .constraints = all};
  m.nvars[KL_AFF_DIM] = b->nvars + b->nsymbols;
  m.vars[KL_AFF_DIM] = vars;
  return kl_map_is_empty(k->p->affs, kl_map_make(k->p->affs, &m), QUOTA, NULL) == KL_YES;
}

static bool excludes(kl_check *k, const kl_aff *e, int64_t lo, int64_t hi, const kl_conditions *c) {
  kl_conditions with = *c;
  if (with.n == KL_MOST_CONDITIONS) with.n--;
  with.c[with.n++] = (kl_condition){e, lo, hi};
  return kl_is_impossible(k, &with);
}

// --- all of them ----------------------------------------------------------------------------------------------------

// By the digits that floors take variables apart into.
static bool is_within_by_digits(kl_check *k, const kl_aff *e, int64_t lo, int64_t hi, const kl_conditions *c) {
  kl_points x;
  kl_wide least, most;
  kl_points_of(k, (kl_vars)(((uint64_t)1 << k->body->nvars) - 1), c, &x);
  if (!kl_points_range(&x, e, &least, &most)) return false;
  return least > most || (least >= lo && most <= hi);
}

// Of so many points each is looked at, where nothing else tells.
enum { MOST_POINTS = 1 << 14 };

static bool holds_at(kl_check *k, const kl_conditions *c, kl_vars known, const kl_point *at) {
  for (uint32_t i = 0; i < c->n; i++) {
    int64_t v;
    const kl_aff *e = c->c[i].e;
    if (kl_has_symbols(e) || kl_vars_of(k->body, e) & ~known) continue;
    if (kl_aff_eval(k->p->affs, e, at, &v) && (v < c->c[i].lo || v > c->c[i].hi)) return false;
  }
  return true;
}

static bool is_within_at_all(kl_check *k, const kl_aff *e, int64_t lo, int64_t hi, const kl_conditions *c) {
  const kl_body *b = k->body;
  kl_vars vars = kl_vars_of(b, e);
  int64_t n = 1, at[KL_MAX_VARS] = {0}, v;
  if (kl_has_symbols(e)) return false;
  for (uint32_t d = 0; d < b->nvars && n <= MOST_POINTS; d++)
    if (kl_has_var(vars, d) && __builtin_mul_overflow(n, b->vars[d].extent, &n)) return false;
  if (n > MOST_POINTS) return false;
  kl_point point = {.at = {[KL_AFF_DIM] = at}};
  for (uint32_t i = 0; i < (uint32_t)n; i++) {
    kl_nth_point(b, vars, KL_NONE, i, at);
    if (!holds_at(k, c, vars, &point)) continue;
    if (!kl_aff_eval(k->p->affs, e, &point, &v) || v < lo || v > hi) return false;
  }
  return true;
}

bool kl_is_within(kl_check *k, const kl_aff *e, int64_t lo, int64_t hi, const kl_conditions *c) {
  kl_interval in = kl_dom_interval(k->body->domain, e);
  if (e->error) return false;
  if (in.lo >= lo && in.hi <= hi) return true;
  bool below = is_at_most(k, e, hi, c), above = is_at_most(k, kl_aff_mulc(k->p->affs, e, -1), -(kl_wide)lo, c);
  if ((below && above) || is_within_by_digits(k, e, lo, hi, c)) return true;
  below = below || (hi < INT64_MAX && excludes(k, e, hi + 1, INT64_MAX, c));
  if (below && (above || (lo > INT64_MIN && excludes(k, e, INT64_MIN, lo - 1, c)))) return true;
  return is_within_at_all(k, e, lo, hi, c);
}
