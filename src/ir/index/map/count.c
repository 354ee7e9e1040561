// How many points a map has, and how many different results.
//
// Variables that no constraint and no result ties together are counted apart: points multiply, and so do results. What
// is left is counted by form where it is one to one for certain (a sum in which every coefficient exceeds all that
// smaller ones can add up to; a map with a converse), else point by point.

#include "ir/index/impl.h"
#include <stdlib.h>

enum { MOST_VARS = 64, MOST_RESULTS = 32 };

// --- different numbers --------------------------------------------------------------------------------------------

typedef struct numbers {
  kl_ctx *cx;
  int64_t *slots; // number + 1
  size_t n, cap;
} numbers;

static void insert(numbers *s, int64_t number);

static void grow(numbers *s) {
  int64_t *old = s->slots;
  size_t n = s->cap;
  s->cap = n ? 2 * n : 1024;
  s->slots = kl_alloc(s->cx, s->cap * sizeof *s->slots);
  memset(s->slots, 0, s->cap * sizeof *s->slots);
  s->n = 0;
  for (size_t i = 0; i < n; i++) {
    if (old[i]) insert(s, old[i] - 1);
  }
  kl_free(s->cx, old, n * sizeof *old);
}

static void insert(numbers *s, int64_t number) {
  if (2 * s->n >= s->cap) grow(s);
  size_t i = kl_hash(&number, sizeof number, 3) & (s->cap - 1);
  while (s->slots[i] && s->slots[i] != number + 1) i = (i + 1) & (s->cap - 1);
  s->n += s->slots[i] == 0;
  s->slots[i] = number + 1;
}

static void free_numbers(numbers *s) {
  kl_free(s->cx, s->slots, s->cap * sizeof *s->slots);
}

// --- point by point -----------------------------------------------------------------------------------------------

static int64_t times(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t extent(kl_interval in) {
  wide n = (wide)in.hi - in.lo + 1;
  return n > INT64_MAX ? INT64_MAX : n < 0 ? 0 : (int64_t)n;
}

static const kl_map_var *var_of(const kl_map *m, uint32_t i) {
  uint32_t nd = m->nvars[KL_AFF_DIM];
  return i < nd ? &m->vars[KL_AFF_DIM][i] : &m->vars[KL_AFF_RANGE][i - nd];
}

static uint32_t nvars_of(const kl_map *m) {
  return m->nvars[KL_AFF_DIM] + m->nvars[KL_AFF_RANGE];
}

// A tuple of results as a number of mixed radix. False where it leaves int64, or `in`.
static bool number_of(const int64_t *results, const kl_interval *in, uint32_t n, int64_t *out) {
  *out = 0;
  for (uint32_t i = 0; i < n; i++) {
    wide v = (wide)*out * extent(in[i]) + ((wide)results[i] - in[i].lo);
    if (results[i] < in[i].lo || results[i] > in[i].hi || v >= INT64_MAX) return false;
    *out = (int64_t)v;
  }
  return true;
}

static bool next_point(const kl_map *m, int64_t *at) {
  for (uint32_t i = 0; i < nvars_of(m); i++) {
    if (at[i] < var_of(m, i)->in.hi) {
      at[i]++;
      return true;
    }
    at[i] = var_of(m, i)->in.lo;
  }
  return false;
}

// Counts the points of m, without runtime variables, and adds their results to those seen.
static bool walk_points(kl_affs *p, const kl_map *m, const kl_interval *in, numbers *seen, int64_t *points) {
  int64_t at[MOST_VARS], results[MOST_RESULTS], number;
  kl_point x = {.at = {at, at + m->nvars[KL_AFF_DIM]}};
  for (uint32_t i = 0; i < nvars_of(m); i++) at[i] = var_of(m, i)->in.lo;
  do {
    if (!kl_map_contains(p, m, &x)) continue;
    if (!kl_map_eval(p, m, &x, results) || !number_of(results, in, m->nresults, &number)) return false;
    insert(seen, number);
    ++*points;
  } while (next_point(m, at));
  return true;
}

// --- parts of a map -----------------------------------------------------------------------------------------------

// Is the value the same for all points?
static bool is_fixed(const kl_map_var *rt) {
  for (uint32_t i = 0; i < rt->from.nindex; i++) {
    if (!kl_aff_is_const(rt->from.index[i])) return false;
  }
  return true;
}

// m without runtime variables; m itself where there are none, NULL where they decide which points there are. *alike:
// has it as many different results?
static const kl_map *without_runtime(kl_affs *p, const kl_map *m, bool *alike) {
  uint32_t nrt = m->nvars[KL_AFF_RT];
  *alike = true;
  if (!nrt) return m;
  bool *used = KL_NEW_N(p->arena, bool, nrt);
  bool *const marks[KL_AFF_VARS] = {NULL, NULL, used};
  const uint32_t n[KL_AFF_VARS] = {0, 0, nrt};
  const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, m->nresults + 1);
  for (uint32_t i = 0; i < m->nconstraints; i++) kl_aff_mark(p, m->constraints[i].e, marks, n);
  for (uint32_t i = 0; i < nrt; i++) {
    if (used[i]) return NULL;
    *alike = *alike && is_fixed(&m->vars[KL_AFF_RT][i]);
  }
  for (uint32_t i = 0; i < m->nresults; i++) { // one that is only added moves all results
    const kl_aff *e = m->results[i];
    for (uint32_t k = 0; k < m->results[i]->n; k++) {
      const kl_aff_term *t = &m->results[i]->terms[k];
      if (t->atom->kind == KL_AFF_RT) e = kl_aff_addmul(p, e, kl_aff_of(p, t->atom), -t->coef);
    }
    results[i] = e;
    kl_aff_mark(p, e, marks, n);
  }
  for (uint32_t i = 0; i < nrt; i++) *alike = *alike && !used[i];
  kl_map r = *m;
  r.nvars[KL_AFF_RT] = 0;
  r.results = results;
  if (!*alike) r.nresults = 0;
  return kl_map_make(p, &r);
}

static uint64_t vars_in(kl_affs *p, const kl_map *m, const kl_aff *e) {
  bool used[MOST_VARS] = {false};
  uint64_t set = 0;
  kl_aff_mark(p, e, (bool *const[KL_AFF_VARS]){used, used + m->nvars[KL_AFF_DIM], NULL},
              (uint32_t[KL_AFF_VARS]){m->nvars[KL_AFF_DIM], m->nvars[KL_AFF_RANGE], 0});
  for (uint32_t i = 0; i < nvars_of(m); i++) set |= (uint64_t)used[i] << i;
  return set;
}

// The variables tied to those of `set`, by chains of expressions.
static uint64_t closure(uint64_t set, const uint64_t *sets, uint32_t n) {
  for (uint64_t before = 0; before != set;) {
    before = set;
    for (uint32_t i = 0; i < n; i++) {
      if (sets[i] & set) set |= sets[i];
    }
  }
  return set;
}

// The part of m over the variables of `set`: others are taken out, with what is said of them.
static const kl_map *part_of(kl_affs *p, const kl_map *m, uint64_t set, const uint64_t *sets) {
  kl_map r = {.state = KL_MAP_DEFINED};
  const kl_aff **dims = KL_NEW_N(p->arena, const kl_aff *, nvars_of(m) + 1), *zero = kl_aff_const(p, 0);
  const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, m->nresults + 1);
  kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, m->nconstraints + 1);
  kl_map_var *vars = KL_NEW_N(p->arena, kl_map_var, nvars_of(m) + 1);
  for (uint32_t i = 0; i < nvars_of(m); i++) {
    dims[i] = set >> i & 1 ? kl_aff_dim(p, r.nvars[KL_AFF_DIM]) : zero;
    if (set >> i & 1) vars[r.nvars[KL_AFF_DIM]++].in = var_of(m, i)->in;
  }
  kl_aff_subst s = {.to = {dims, dims + m->nvars[KL_AFF_DIM]}, .n = {m->nvars[KL_AFF_DIM], m->nvars[KL_AFF_RANGE]}};
  for (uint32_t i = 0; i < m->nresults; i++) {
    if (sets[i] & set) kl_aff_replace(p, &s, &m->results[i], 1, &results[r.nresults++]);
  }
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    if (!(sets[m->nresults + i] & set)) continue;
    c[r.nconstraints].in = m->constraints[i].in;
    kl_aff_replace(p, &s, &m->constraints[i].e, 1, &c[r.nconstraints++].e);
  }
  r.vars[KL_AFF_DIM] = vars;
  r.results = results;
  r.constraints = c;
  return kl_map_make(p, &r);
}

// --- by form ------------------------------------------------------------------------------------------------------

typedef struct weight {
  wide coef, most; // |coefficient|, and what its term adds at most
} weight;

static int by_coef(const void *a, const void *b) {
  const weight *x = a, *y = b;
  return x->coef < y->coef ? -1 : x->coef > y->coef;
}

// One result, a sum of all the variables, in which no two points give the same.
static bool is_positional(const kl_map *m) {
  weight w[MOST_VARS];
  wide below = 0;
  const kl_aff *e = m->nresults == 1 ? m->results[0] : NULL;
  if (!e || e->n != nvars_of(m)) return false;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind != KL_AFF_DIM) return false;
    w[i].coef = (wide)kl_abs64(e->terms[i].coef);
    w[i].most = w[i].coef * (extent(m->vars[KL_AFF_DIM][a->var].in) - 1);
  }
  qsort(w, e->n, sizeof *w, by_coef);
  for (uint32_t i = 0; i < e->n; i++) {
    if (w[i].coef <= below) return false;
    below += w[i].most;
  }
  return true;
}

static bool is_one_to_one(kl_affs *p, const kl_map *m) {
  if (is_positional(m)) return true;
  const kl_map *back = kl_map_invert(p, m, KL_MAP_QUOTA);
  return back->state == KL_MAP_DEFINED && back->nvars[KL_AFF_RANGE] == 0;
}

// A part whose variables are all tied together.
static kl_map_counts count_part(kl_affs *p, const kl_map *m, int64_t quota) {
  int64_t box = kl_map_points(m), results = 1;
  kl_map_counts r = {.points = box, .points_exact = m->nconstraints == 0};
  if (m->state == KL_MAP_EMPTY) return (kl_map_counts){0, 0, true, true};
  if (m->nresults == 0 && r.points_exact) return (kl_map_counts){box, 1, true, true};
  kl_interval in[MOST_RESULTS];
  kl_map_result_ranges(p, m, in);
  for (uint32_t i = 0; i < m->nresults; i++) results = times(results, extent(in[i]));
  if (box <= quota && !(r.points_exact && is_positional(m))) {
    numbers seen = {.cx = p->cx};
    int64_t points = 0;
    bool all = walk_points(p, m, in, &seen, &points);
    if (all) r = (kl_map_counts){points, (int64_t)seen.n, true, true};
    free_numbers(&seen);
    if (all) return r;
  }
  r.images_exact = r.points_exact && is_one_to_one(p, m);
  r.images = r.images_exact || box < results ? box : results;
  return r;
}

static kl_map_counts count_one(kl_affs *p, const kl_map *m, int64_t quota) {
  kl_map_counts r = {1, 1, true, true};
  uint32_t n = m->nresults + m->nconstraints;
  uint64_t *sets = KL_NEW_N(p->arena, uint64_t, n + 1), left = 0;
  for (uint32_t i = 0; i < n; i++)
    sets[i] = vars_in(p, m, i < m->nresults ? m->results[i] : m->constraints[i - m->nresults].e);
  for (uint32_t i = 0; i < nvars_of(m); i++) left |= (uint64_t)1 << i;
  while (left) {
    uint64_t set = closure(left & (0 - left), sets, n);
    kl_map_counts part = count_part(p, part_of(p, m, set, sets), quota);
    r.points = times(r.points, part.points);
    r.images = times(r.images, part.images);
    r.points_exact = (r.points_exact && part.points_exact) || (part.points_exact && part.points == 0);
    r.images_exact = (r.images_exact && part.images_exact) || (part.images_exact && part.images == 0);
    left &= ~set;
  }
  return r;
}

// --- all of them --------------------------------------------------------------------------------------------------

// One by one, where the results of all of them lie within `in`.
static bool count_together(kl_affs *p, const kl_map *const *m, uint32_t n, int64_t quota, kl_map_counts *out) {
  kl_interval in[MOST_RESULTS], own[MOST_RESULTS];
  numbers seen = {.cx = p->cx};
  int64_t points = 0, box = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (kl_map_points(m[i]) > quota - box) return false;
    box += kl_map_points(m[i]);
    kl_map_result_ranges(p, m[i], own);
    for (uint32_t k = 0; k < m[0]->nresults; k++) {
      in[k].lo = i && in[k].lo < own[k].lo ? in[k].lo : own[k].lo;
      in[k].hi = i && in[k].hi > own[k].hi ? in[k].hi : own[k].hi;
    }
  }
  bool all = true;
  for (uint32_t i = 0; i < n && all; i++) all = walk_points(p, m[i], in, &seen, &points);
  if (all) *out = (kl_map_counts){points, (int64_t)seen.n, true, true};
  free_numbers(&seen);
  return all;
}

kl_map_counts kl_map_count(kl_affs *p, const kl_map *const *maps, uint32_t n, int64_t most, int64_t quota) {
  kl_map_counts r = {0, 0, true, true};
  const kl_map **m = KL_NEW_N(p->arena, const kl_map *, n + 1);
  bool *alike = KL_NEW_N(p->arena, bool, n + 1), fixed = true, covered = false;
  uint32_t left = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (maps[i]->state == KL_MAP_EMPTY) continue;
    bool known =
        maps[i]->state == KL_MAP_DEFINED && nvars_of(maps[i]) <= MOST_VARS && maps[i]->nresults <= MOST_RESULTS;
    m[left] = known ? without_runtime(p, maps[i], &alike[left]) : NULL;
    if (!m[left]) return (kl_map_counts){INT64_MAX, most, false, false};
    fixed = fixed && m[left] == maps[i];
    left++;
  }
  if (left > 1 && fixed && count_together(p, m, left, quota, &r)) return r;
  for (uint32_t i = 0; i < left; i++) {
    kl_map_counts one = count_one(p, m[i], quota);
    if (!alike[i]) one.images = one.points;
    one.images_exact = one.images_exact && alike[i];
    r.points_exact = r.points_exact && one.points_exact;
    r.points = __builtin_add_overflow(r.points, one.points, &r.points) ? INT64_MAX : r.points;
    r.images = __builtin_add_overflow(r.images, one.images, &r.images) ? INT64_MAX : r.images;
    covered = covered || (one.images_exact && one.images == most);
    r.images_exact = left == 1 && one.images_exact;
  }
  if (r.points == INT64_MAX) r.points_exact = false;
  if (covered || r.images > most) r.images = most;
  r.images_exact = r.images_exact || covered || left == 0;
  return r;
}
