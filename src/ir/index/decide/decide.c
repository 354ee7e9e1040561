// Emptiness, inclusion, equality of maps.
//
// a is included in b if for every point of a there are range values of b that give the same results within b's domain.
// They are proposed (solved from the results; else a's own, by position), then proved: nothing of a's domain violates a
// bound or constraint of b, or differs in a result. If the proposal is the only one possible, a violation is a proof of
// the contrary. Small domains are enumerated on both sides.

#include "ir/index/decide/solve.h"
#include <stdlib.h>

enum { MOST_POINTS = 4096 };

static const char *const undefined = "a map is undefined";

kl_truth kl_map_is_empty(kl_affs *p, const kl_map *m, uint32_t quota, const char **why) {
  if (m->state == KL_MAP_EMPTY) return KL_YES;
  if (m->state == KL_MAP_UNDEFINED) {
    if (why) *why = undefined;
    return KL_UNKNOWN;
  }
  kl_truth t = kl_domain_is_empty(p, m, quota / 16, why);
  if (t != KL_UNKNOWN) return t;
  const kl_map *s = kl_map_simplify(p, kl_map_with_results(p, m, NULL, 0), 0);
  return s->state == KL_MAP_EMPTY ? KL_YES : kl_domain_is_empty(p, s, quota, why);
}

// --- one space for both -------------------------------------------------------------------------------------------

// a, with b's runtime variables that a lacks behind its own; and where b's dims and runtime variables are in it.
typedef struct pair {
  const kl_map *a, *b;
  kl_map space;
  const kl_aff **to[KL_AFF_VARS];
  uint32_t *rt; // b's runtime variables in space
} pair;

static bool binds_alike(kl_affs *p, const kl_producer *a, const kl_producer *b, const kl_aff_subst *to) {
  if (!a->id || a->id != b->id || a->nindex != b->nindex) return false;
  for (uint32_t i = 0; i < a->nindex; i++) {
    const kl_aff *e;
    kl_aff_replace(p, to, &b->index[i], 1, &e);
    if (e != a->index[i]) return false;
  }
  return true;
}

static uint32_t find_rt(kl_affs *p, const pair *x, uint32_t j) {
  const kl_map_var *v = x->a->vars[KL_AFF_RT], *own = &x->b->vars[KL_AFF_RT][j];
  kl_aff_subst to = {.to = {x->to[KL_AFF_DIM]}, .n = {x->b->nvars[KL_AFF_DIM]}};
  if (!own->from.id) return j < x->a->nvars[KL_AFF_RT] && !v[j].from.id ? j : UINT32_MAX;
  for (uint32_t i = 0; i < x->a->nvars[KL_AFF_RT]; i++) {
    if (binds_alike(p, &v[i].from, &own->from, &to)) return i;
  }
  return UINT32_MAX;
}

static pair pair_of(kl_affs *p, const kl_map *a, const kl_map *b) {
  pair x = {.a = a, .b = b, .space = *a};
  uint32_t na = a->nvars[KL_AFF_RT], nb = b->nvars[KL_AFF_RT];
  for (int k = 0; k < KL_AFF_VARS; k++) x.to[k] = KL_NEW_N(p->arena, const kl_aff *, b->nvars[k] + 1);
  for (uint32_t i = 0; i < b->nvars[KL_AFF_DIM]; i++) x.to[KL_AFF_DIM][i] = kl_aff_dim(p, i);
  kl_map_var *rts = KL_NEW_N(p->arena, kl_map_var, na + nb + 1);
  if (na) memcpy(rts, a->vars[KL_AFF_RT], na * sizeof *rts);
  x.rt = KL_NEW_N(p->arena, uint32_t, nb + 1);
  for (uint32_t j = 0; j < nb; j++) {
    uint32_t i = find_rt(p, &x, j);
    if (i == UINT32_MAX) {
      i = x.space.nvars[KL_AFF_RT]++;
      rts[i] = b->vars[KL_AFF_RT][j];
      rts[i].from = (kl_producer){0};
    }
    x.rt[j] = i;
    x.to[KL_AFF_RT][j] = kl_aff_rt(p, i);
  }
  x.space.vars[KL_AFF_RT] = rts;
  return x;
}

// --- by proof -----------------------------------------------------------------------------------------------------

typedef struct proof {
  kl_affs *p;
  const kl_map *space;
  uint32_t quota;
  bool refuted, open; // a condition fails somewhere; a condition is not decided
  const char *why;
} proof;

static void require_side(proof *w, const kl_aff *e, kl_interval outside) {
  const char *why = NULL;
  if (w->refuted || outside.lo > outside.hi) return;
  kl_truth t = kl_domain_excludes(w->p, w->space, e, outside, w->quota, &why);
  if (t == KL_NO) w->refuted = true;
  if (t != KL_UNKNOWN) return;
  w->open = true;
  w->why = why;
}

// e in `in` everywhere in the space.
static void require(proof *w, const kl_aff *e, kl_interval in) {
  if (kl_aff_is_const(e) && e->c >= in.lo && e->c <= in.hi) return;
  if (in.lo > INT64_MIN) require_side(w, e, (kl_interval){INT64_MIN, in.lo - 1});
  if (in.hi < INT64_MAX) require_side(w, e, (kl_interval){in.hi + 1, INT64_MAX});
}

static const kl_aff *of_b(kl_affs *p, const pair *x, const kl_aff *e) {
  kl_aff_subst s = {.to = {x->to[0], x->to[1], x->to[2]}, .n = {x->b->nvars[0], x->b->nvars[1], x->b->nvars[2]}};
  const kl_aff *r;
  kl_aff_replace(p, &s, &e, 1, &r);
  return r;
}

// With b's ranges as x->to says: every result equal, every bound and constraint of b kept. All are simplified where a's
// domain holds before any is searched.
static void prove(proof *w, const pair *x) {
  const kl_map *a = x->a, *b = x->b;
  uint32_t most = b->nresults + b->nvars[0] + b->nvars[1] + b->nvars[2] + b->nconstraints, n = 0;
  const kl_aff **e = KL_NEW_N(w->p->arena, const kl_aff *, most + 1);
  kl_interval *in = KL_NEW_N(w->p->arena, kl_interval, most + 1);
  for (uint32_t i = 0; i < b->nresults; i++) {
    e[n++] = kl_aff_sub(w->p, of_b(w->p, x, b->results[i]), a->results[i]); // 0
  }
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < b->nvars[k]; i++) {
      if (k == KL_AFF_RT && x->rt[i] >= a->nvars[KL_AFF_RT]) continue; // it has no other values
      e[n] = x->to[k][i];
      in[n++] = b->vars[k][i].in;
    }
  }
  for (uint32_t i = 0; i < b->nconstraints; i++) {
    e[n] = of_b(w->p, x, b->constraints[i].e);
    in[n++] = b->constraints[i].in;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (!e[i]->error && !e[i]->partial) continue;
    w->open = true;
    w->why = e[i]->error ? kl_aff_error_text(e[i]->error) : "a divisor is not constant";
    return;
  }
  const kl_map *s = kl_map_simplify(w->p, kl_map_with_results(w->p, &x->space, e, n), 0);
  if (s->state == KL_MAP_EMPTY) return;
  w->space = s;
  for (uint32_t i = 0; i < n && !w->refuted; i++) require(w, s->results[i], in[i]);
}

// Both proposals in turn.
static kl_truth by_proof(kl_affs *p, pair *x, uint32_t quota, const char **why) {
  const kl_map *a = x->a, *b = x->b;
  uint32_t n = b->nvars[KL_AFF_RANGE];
  kl_aff_subst known = {.to = {x->to[0], x->to[1], x->to[2]}, .n = {b->nvars[0], b->nvars[1], b->nvars[2]}};
  for (int attempt = 0; attempt < 2; attempt++) {
    bool unique = n == 0, there = attempt == 0;
    if (attempt == 0 && n) {
      there = kl_map_solve_ranges(p, b, &known, a->results, quota, x->to[KL_AFF_RANGE], &unique);
    } else if (attempt == 1 && n && n == a->nvars[KL_AFF_RANGE]) {
      there = true;
      for (uint32_t i = 0; i < n; i++) x->to[KL_AFF_RANGE][i] = kl_aff_range(p, i);
    }
    if (!there) continue;
    proof w = {.p = p, .quota = quota};
    prove(&w, x);
    if (!w.refuted && !w.open) return KL_YES;
    if (w.refuted && unique) return KL_NO;
    if (w.open) *why = w.why;
  }
  return KL_UNKNOWN;
}

// --- by enumeration -----------------------------------------------------------------------------------------------

// Rows of dims, b's runtime values, results.
typedef struct rows {
  int64_t *p;
  size_t n, width;
  bool failed;
} rows;

typedef void visit(void *state, const kl_point *x);

static void each_point(const kl_map *m, visit *f, void *state, int64_t *value[KL_AFF_VARS]) {
  kl_point x = {{value[0], value[1], value[2]}};
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) value[k][i] = m->vars[k][i].in.lo;
  }
  for (;;) {
    f(state, &x);
    bool moved = false;
    for (int k = 0; k < KL_AFF_VARS && !moved; k++) {
      for (uint32_t i = 0; i < m->nvars[k] && !moved; i++) {
        moved = value[k][i] < m->vars[k][i].in.hi;
        if (moved)
          value[k][i]++;
        else
          value[k][i] = m->vars[k][i].in.lo;
      }
    }
    if (!moved) return;
  }
}

typedef struct collector {
  kl_affs *p;
  const kl_map *m; // its dims and results
  const uint32_t *rt;
  uint32_t nrt;
  rows *out;
} collector;

static void collect(void *state, const kl_point *x) {
  collector *c = state;
  int64_t *row = c->out->p + c->out->n * c->out->width;
  if (!kl_map_contains(c->p, c->m, x)) return;
  for (uint32_t i = 0; i < c->m->nvars[KL_AFF_DIM]; i++) *row++ = x->at[KL_AFF_DIM][i];
  for (uint32_t i = 0; i < c->nrt; i++) *row++ = x->at[KL_AFF_RT][c->rt ? c->rt[i] : i];
  if (!kl_map_eval(c->p, c->m, x, row)) c->out->failed = true;
  c->out->n++;
}

static rows rows_of(kl_affs *p, const kl_map *m, const uint32_t *rt, uint32_t nrt) {
  rows r = {.width = m->nvars[KL_AFF_DIM] + nrt + m->nresults + 1};
  int64_t *value[KL_AFF_VARS];
  r.p = KL_NEW_N(p->arena, int64_t, r.width * (size_t)kl_map_points(m));
  for (int k = 0; k < KL_AFF_VARS; k++) value[k] = KL_NEW_N(p->arena, int64_t, m->nvars[k] + 1);
  collector c = {p, m, rt, nrt, &r};
  each_point(m, collect, &c, value);
  return r;
}

static int by_row(const void *a, const void *b, void *width) {
  const int64_t *x = a, *y = b;
  for (size_t i = 0; i < *(size_t *)width; i++) {
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

static bool has_row(const rows *r, const int64_t *row) {
  size_t lo = 0, hi = r->n;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    int order = by_row(r->p + mid * r->width, row, (void *)&r->width);
    if (order == 0) return true;
    if (order < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return false;
}

static bool is_bound(const kl_map *m) {
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++) {
    if (m->vars[KL_AFF_RT][i].from.id) return true;
  }
  return false;
}

static kl_truth by_enumeration(kl_affs *p, const pair *x) {
  if (kl_map_points(&x->space) > MOST_POINTS || kl_map_points(x->b) > MOST_POINTS) return KL_UNKNOWN;
  rows a = rows_of(p, &x->space, x->rt, x->b->nvars[KL_AFF_RT]), b = rows_of(p, x->b, NULL, x->b->nvars[KL_AFF_RT]);
  if (a.failed || b.failed) return KL_UNKNOWN;
  qsort_r(b.p, b.n, b.width * sizeof(int64_t), by_row, &b.width);
  for (size_t i = 0; i < a.n; i++) {
    // Points at which equal elements would have to differ may be among those of a: then a miss proves nothing.
    if (!has_row(&b, a.p + i * a.width)) return is_bound(&x->space) ? KL_UNKNOWN : KL_NO;
  }
  return KL_YES;
}

// Without ranges that no result asks for. Runtime variables keep their places, by which those of no producer are known.
static const kl_map *without_unused_ranges(kl_affs *p, const kl_map *m) {
  const kl_map *less = m->nvars[KL_AFF_RANGE] ? kl_map_remove_unused(p, m, false, NULL) : m;
  return less->state == m->state && less->nvars[KL_AFF_RT] == m->nvars[KL_AFF_RT] ? less : m;
}

kl_truth kl_map_included(kl_affs *p, const kl_map *a, const kl_map *b, uint32_t quota, const char **why) {
  const char *reason = "no formula for the other map's range variables";
  kl_truth empty = kl_map_is_empty(p, a, quota, &reason), t = KL_UNKNOWN;
  if (a->state == KL_MAP_UNDEFINED || b->state == KL_MAP_UNDEFINED) {
    reason = undefined;
  } else if (empty == KL_YES) {
    return KL_YES;
  } else if (a->nvars[KL_AFF_DIM] != b->nvars[KL_AFF_DIM] || a->nresults != b->nresults || b->state == KL_MAP_EMPTY) {
    t = empty;
  } else {
    const kl_map *less = without_unused_ranges(p, b);
    pair x = pair_of(p, a, b);
    t = by_proof(p, &x, quota, &reason);
    if (t == KL_UNKNOWN && less != b) {
      pair y = pair_of(p, a, less);
      t = by_proof(p, &y, quota, &reason);
    }
    if (t == KL_UNKNOWN) t = by_enumeration(p, &x);
  }
  if (t == KL_UNKNOWN && why) *why = reason;
  return t;
}

kl_truth kl_map_equal(kl_affs *p, const kl_map *a, const kl_map *b, uint32_t quota, const char **why) {
  kl_truth t = kl_map_included(p, a, b, quota, why);
  if (t == KL_NO) return KL_NO;
  kl_truth u = kl_map_included(p, b, a, quota, why);
  return u == KL_NO ? KL_NO : t == KL_YES && u == KL_YES ? KL_YES : KL_UNKNOWN;
}
