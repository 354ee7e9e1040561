// Is there an integer point? The map's variables, and one more variable for every other atom of its constraints, with
// rows lo <= sum(coef * variable) <= hi: q = floor(y/k) is the row 0 <= y - k*q <= k-1.
//
//   propagation  every variable has an interval and a residue class; rows narrow both until nothing changes. A row
//                whose values all are r mod g holds only the values of that class between its bounds, or none at all
//   search       over the map's variables, halving, and trying the ends of the box as points, which are checked on the
//                constraints themselves: KL_NO is never a matter of belief
//   lattice      equalities have no solution in integers, by Hermite's form, or a lattice of them, whose points within
//                the other rows are walked, in coordinates in which few are looked at in vain (polytope.c)
//   choices      an extremum is one of its arguments: each in turn
//   enumeration  of boxes of at most KL_ENUMERATED points, whatever the quota
//
// Work is counted in rows looked at.

#include "ir/index/decide/lattice.h"
#include "ir/index/decide/polytope.h"
#include "ir/index/decide/solve.h"
#include <stdlib.h>

enum { KL_ENUMERATED = 4096, MOST_ROWS = 2048, MOST_WIDTH = 64, MOST_SEARCH_DEPTH = 256 };

typedef struct cell {
  uint32_t var;
  int64_t coef;
} cell;

typedef struct row {
  cell *t;
  uint32_t n;
  kl_interval in;
} row;

typedef struct kl_system {
  kl_affs *p;
  kl_ctx *cx;
  const kl_map *m;
  const kl_constraint *c;
  uint32_t nc;
  uint32_t first[KL_AFF_VARS];    // of the map's variables
  uint32_t points;                // how many variables are the map's
  VEC(kl_span64) vars;            // the root box
  VEC(const kl_aff_atom *) atoms; // of variables behind `points`
  VEC(row) rows;
  uint32_t *of_atom; // by atom's id: variable + 1
  uint32_t natoms;
  int64_t *value[KL_AFF_VARS]; // a point to check
  uint32_t left;               // of the quota
  bool extrema;                // rows say of extrema only that they are one
  bool partial;                // rows leave something out (products, quotients, or too many)
} kl_system;

// --- making -------------------------------------------------------------------------------------------------------

static uint32_t variable_of(kl_system *s, const kl_aff_atom *a);

static bool add_row(kl_system *s, cell *t, uint32_t n, kl_interval in) {
  if (s->rows.n >= MOST_ROWS || n > MOST_WIDTH) {
    s->partial = true;
    return false;
  }
  VEC_PUSH(s->cx, &s->rows, (row){t, n, in});
  return true;
}

// False where there is no room for it. The row "e + coef * var in `in`" (coef 0: e alone), constants moved to the
// bounds.
static bool add_sum(kl_system *s, const kl_aff *e, int64_t coef, uint32_t var, kl_interval in) {
  cell *t = KL_NEW_N(s->p->arena, cell, e->n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < e->n; i++) t[n++] = (cell){variable_of(s, e->terms[i].atom), e->terms[i].coef};
  if (coef) t[n++] = (cell){var, coef};
  wide lo = in.lo == INT64_MIN ? INT64_MIN : (wide)in.lo - e->c,
       hi = in.hi == INT64_MAX ? INT64_MAX : (wide)in.hi - e->c;
  if (lo < INT64_MIN || hi > INT64_MAX || lo > INT64_MAX || hi < INT64_MIN) {
    s->partial = true;
    return false;
  }
  return add_row(s, t, n, (kl_interval){(int64_t)lo, (int64_t)hi});
}

static uint32_t variable_of(kl_system *s, const kl_aff_atom *a) {
  if (a->kind < KL_AFF_VARS) return s->first[a->kind] + a->var;
  if (s->of_atom[a->id]) return s->of_atom[a->id] - 1;
  uint32_t v = (uint32_t)s->vars.n;
  s->of_atom[a->id] = v + 1;
  VEC_PUSH(s->cx, &s->vars, (kl_span64){INT64_MIN, INT64_MAX, 1, 0});
  VEC_PUSH(s->cx, &s->atoms, a);
  if (a->kind == KL_AFF_FLOOR) {
    add_sum(s, a->arg[0], -a->k, v, (kl_interval){0, a->k - 1});
  } else if (a->kind == KL_AFF_MIN || a->kind == KL_AFF_MAX) { // below, or above, all its arguments
    kl_interval in = a->kind == KL_AFF_MIN ? (kl_interval){0, INT64_MAX} : (kl_interval){INT64_MIN, 0};
    for (uint32_t i = 0; i < a->n; i++) add_sum(s, a->arg[i], -1, v, in);
    s->extrema = true;
  } else {
    s->partial = true;
  }
  return v;
}

// Spans of atoms' variables, from bounds alone.
static bool first_spans(kl_system *s) {
  kl_dom d = {.p = s->p, .stamp = kl_affs_stamp(s->p)};
  for (int k = 0; k < KL_AFF_VARS; k++) {
    d.vars[k] = s->vars.p + s->first[k];
    d.n[k] = s->m->nvars[k];
  }
  for (uint32_t i = 0; i < s->atoms.n; i++) {
    s->vars.p[s->points + i] = kl_dom_range(&d, kl_aff_of(s->p, s->atoms.p[i]));
  }
  return !d.empty;
}

static void open_system(kl_system *s, kl_affs *p, const kl_map *m) {
  *s = (kl_system){.p = p, .cx = p->cx, .m = m, .c = m->constraints, .nc = m->nconstraints};
  VEC_RESERVE(s->cx, &s->vars, 8);
  for (int k = 0; k < KL_AFF_VARS; k++) {
    s->first[k] = (uint32_t)s->vars.n;
    s->value[k] = KL_NEW_N(p->arena, int64_t, m->nvars[k] + 1);
    for (uint32_t i = 0; i < m->nvars[k]; i++) VEC_PUSH(s->cx, &s->vars, kl_span_of(m->vars[k][i].in));
  }
  s->points = (uint32_t)s->vars.n;
  s->natoms = (uint32_t)p->atoms.n;
  s->of_atom = kl_alloc(p->cx, s->natoms * sizeof *s->of_atom);
  for (uint32_t i = 0; i < s->nc; i++) add_sum(s, s->c[i].e, 0, 0, s->c[i].in);
}

static void close_system(kl_system *s) {
  VEC_FREE(s->cx, &s->vars);
  VEC_FREE(s->cx, &s->atoms);
  VEC_FREE(s->cx, &s->rows);
  kl_free(s->cx, s->of_atom, s->natoms * sizeof *s->of_atom);
}

// --- points -------------------------------------------------------------------------------------------------------

// Runtime variables of one producer at one index have one value.
static bool is_consistent(kl_system *s, const kl_point *x) {
  const kl_map_var *v = s->m->vars[KL_AFF_RT];
  uint32_t n = s->m->nvars[KL_AFF_RT];
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < i; j++) {
      if (!v[i].from.id || v[i].from.id != v[j].from.id || v[i].from.nindex != v[j].from.nindex) continue;
      bool same = true;
      for (uint32_t k = 0; k < v[i].from.nindex && same; k++) {
        int64_t a, b;
        same = kl_aff_eval(s->p, v[i].from.index[k], x, &a) && kl_aff_eval(s->p, v[j].from.index[k], x, &b) && a == b;
      }
      if (same && s->value[KL_AFF_RT][i] != s->value[KL_AFF_RT][j]) return false;
    }
  }
  return true;
}

static void spend(kl_system *s, uint64_t steps) {
  s->left = steps < s->left ? s->left - (uint32_t)steps : 0;
}

// Are the constraints satisfied at s->value? Where one has no value that can be computed, *unsure. What is long to
// compute counts as steps.
static bool holds(kl_system *s, bool *unsure) {
  kl_point x = {{s->value[0], s->value[1], s->value[2]}};
  for (uint32_t i = 0; i < s->nc; i++) {
    wide v;
    spend(s, (s->c[i].e->size < 4096 ? s->c[i].e->size : 4096) / 32);
    if (!kl_aff_eval_wide(s->p, s->c[i].e, &x, &v)) {
      if (!s->c[i].e->partial && unsure) *unsure = true;
      return false;
    }
    if (!kl_in_interval(v, s->c[i].in)) return false;
  }
  return is_consistent(s, &x);
}

static bool is_box_small(const kl_system *s, const kl_span64 *v, uint64_t most) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < s->points; i++) {
    wide size = ((wide)v[i].hi - v[i].lo) / (v[i].m > 1 ? v[i].m : 1) + 1;
    if (size > (wide)most) return false;
    n *= (uint64_t)size;
    if (n > most) return false;
  }
  return true;
}

static int64_t *slot(kl_system *s, uint32_t i) {
  int k = i >= s->first[KL_AFF_RT] ? KL_AFF_RT : i >= s->first[KL_AFF_RANGE] ? KL_AFF_RANGE : KL_AFF_DIM;
  return &s->value[k][i - s->first[k]];
}

// KL_NO at a point that satisfies all; KL_UNKNOWN where some point could not be computed.
static kl_truth enumerate(kl_system *s, const kl_span64 *v) {
  bool unsure = false;
  for (uint32_t i = 0; i < s->points; i++) *slot(s, i) = v[i].lo;
  for (;;) {
    if (holds(s, &unsure)) return KL_NO;
    uint32_t i = s->points;
    while (i > 0) { // the last variable counts fastest
      int64_t step = v[i - 1].m > 1 ? v[i - 1].m : 1, *x = slot(s, i - 1);
      if ((wide)*x + step <= v[i - 1].hi) {
        *x += step;
        break;
      }
      *x = v[i - 1].lo;
      i--;
    }
    if (i == 0) return unsure ? KL_UNKNOWN : KL_YES;
  }
}

// --- propagation --------------------------------------------------------------------------------------------------

typedef struct sums {
  wide lo, hi;               // of all terms with bounds
  uint32_t lo_open, hi_open; // how many have none
  bool huge;                 // a product leaves what sums of them have room for
} sums;

static bool is_huge(wide v) {
  return v > (wide)1 << 110 || v < -((wide)1 << 110);
}

static sums sum_up(const row *r, const kl_span64 *v) {
  sums t = {0};
  for (uint32_t i = 0; i < r->n; i++) {
    int64_t c = r->t[i].coef;
    const kl_span64 *x = &v[r->t[i].var];
    int64_t low = c < 0 ? x->hi : x->lo, high = c < 0 ? x->lo : x->hi;
    if (low == INT64_MIN || low == INT64_MAX)
      t.lo_open++;
    else
      t.lo += (wide)c * low;
    if (high == INT64_MIN || high == INT64_MAX)
      t.hi_open++;
    else
      t.hi += (wide)c * high;
    t.huge = t.huge || is_huge((wide)c * low) || is_huge((wide)c * high);
    if (t.huge) break;
  }
  return t;
}

static const wide beyond = (wide)1 << 100; // in place of a bound that there is not

static wide clamp(wide v) {
  return v < INT64_MIN ? INT64_MIN : v > INT64_MAX ? INT64_MAX : v;
}

static int64_t residue(wide a, int64_t m) {
  return (int64_t)(a - kl_floor128(a, m) * m);
}

// The class of the row's sum without term `skip`: *g = 0 for a single value.
static void class_of(const row *r, const kl_span64 *v, uint32_t skip, uint64_t *g, wide *at) {
  *g = 0;
  *at = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    if (i == skip) continue;
    const kl_span64 *x = &v[r->t[i].var];
    bool point = kl_span_is_point(x);
    wide m = point ? 0 : (wide)(x->m ? x->m : 1) * r->t[i].coef;
    if (m < 0) m = -m;
    if (m > INT64_MAX) m = 1;
    wide part = (wide)r->t[i].coef * (point ? x->lo : x->r);
    *g = is_huge(part) ? 1 : kl_gcd64(*g, (uint64_t)m);
    if (*g == 1) { // nothing is known
      *at = 0;
      return;
    }
    *at += part;
  }
  if (*g) *at = residue(*at, (int64_t)*g);
}

// What the row leaves of the variable of term i. False if nothing.
static bool narrow(const row *r, kl_span64 *v, uint32_t i, const sums *t, kl_interval in, bool *changed) {
  int64_t c = r->t[i].coef;
  kl_span64 *x = &v[r->t[i].var], before = *x;
  if (before.lo == before.hi) return true;
  int64_t low = c < 0 ? x->hi : x->lo, high = c < 0 ? x->lo : x->hi;
  bool lo_own = low == INT64_MIN || low == INT64_MAX, hi_own = high == INT64_MIN || high == INT64_MAX;
  bool lo_known = t->lo_open == (uint32_t)lo_own, hi_known = t->hi_open == (uint32_t)hi_own; // of the others
  wide others_lo = t->lo - (lo_own ? 0 : (wide)c * low), others_hi = t->hi - (hi_own ? 0 : (wide)c * high);
  wide lo = in.lo > INT64_MIN && hi_known ? (wide)in.lo - others_hi : -beyond;
  wide hi = in.hi < INT64_MAX && lo_known ? (wide)in.hi - others_lo : beyond;
  if (c < 0) {
    wide swap = -lo;
    lo = -hi;
    hi = swap;
  }
  wide k = c < 0 ? -(wide)c : c;
  kl_interval left = {(int64_t)clamp(-kl_floor128(-lo, k)), (int64_t)clamp(kl_floor128(hi, k))};
  int64_t m = 1, res = 0;
  if (kl_is_value(in)) { // c*x = in - others: others' class leaves a class of x
    uint64_t g;
    wide at;
    class_of(r, v, i, &g, &at);
    int64_t d = (int64_t)kl_gcd64(g, kl_abs64(c)), n = d ? (int64_t)(g / (uint64_t)d) : 0;
    if (g > 1 && g <= INT64_MAX && n > 1) {
      wide rhs = (wide)in.lo - at;
      if (rhs % d != 0) return false;
      int64_t cls, val;
      bool fits;
      if (!kl_crt((int64_t)(k / d), 0, n, residue(c < 0 ? -(rhs / d) : rhs / d, n), &cls, &val, &fits)) return false;
      if (fits) {
        m = n;
        res = residue(val / (int64_t)(k / d), n);
      }
    }
  }
  kl_span_meet(x, left, m, res);
  if (x->lo > x->hi) return false;
  *changed = *changed || x->lo != before.lo || x->hi != before.hi || x->m != before.m;
  return true;
}

// Narrows all variables of a row. False if the row cannot hold.
static bool narrow_row(kl_system *s, const row *r, kl_span64 *v, bool *changed) {
  sums t = sum_up(r, v);
  kl_interval in = r->in;
  if (s->left) s->left--;
  if (t.huge) return true;
  if (t.lo_open == 0 && t.lo > in.lo) in.lo = (int64_t)clamp(t.lo);
  if (t.hi_open == 0 && t.hi < in.hi) in.hi = (int64_t)clamp(t.hi);
  if (in.lo > in.hi) return false;
  uint64_t g;
  wide at;
  class_of(r, v, UINT32_MAX, &g, &at);
  if (g > 1 && g <= INT64_MAX) {
    wide lo = in.lo == INT64_MIN ? -beyond : (wide)in.lo + residue(at - in.lo, (int64_t)g);
    wide hi = in.hi == INT64_MAX ? beyond : (wide)in.hi - residue(in.hi - at, (int64_t)g);
    if (lo > hi) return false;
    in = (kl_interval){(int64_t)clamp(lo), (int64_t)clamp(hi)};
  }
  for (uint32_t i = 0; i < r->n; i++) {
    bool moved = false;
    if (!narrow(r, v, i, &t, in, &moved)) return false;
    if (!moved) continue;
    *changed = true;
    t = sum_up(r, v);
    if (t.huge) return true;
  }
  return true;
}

// False if there is no point. Bounds that creep are left to search: a few sweeps only.
static bool propagate(kl_system *s, kl_span64 *v) {
  bool changed = true;
  for (int sweep = 0; changed && sweep < 32 && s->left; sweep++) {
    changed = false;
    for (uint32_t i = 0; i < s->rows.n && s->left; i++) {
      if (!narrow_row(s, &s->rows.p[i], v, &changed)) return false;
    }
  }
  return true;
}

// --- lattice ------------------------------------------------------------------------------------------------------

enum { MOST_LATTICE = 64 }; // variables of a lattice whose points are walked

// The rows that are equalities, and variables of one value.
static kl_lattice *equalities(kl_system *s, const kl_span64 *box) {
  uint32_t rows = 0, n = 0;
  for (uint32_t i = 0; i < s->rows.n; i++) rows += kl_is_value(s->rows.p[i].in);
  if (rows > 64 || s->vars.n > 192) return NULL;
  for (uint32_t i = 0; i < s->vars.n; i++) rows += kl_span_is_point(&box[i]);
  kl_lattice *l = kl_lattice_open(s->cx, rows, (uint32_t)s->vars.n);
  for (uint32_t i = 0; i < s->vars.n; i++) {
    if (!kl_span_is_point(&box[i])) continue;
    kl_lattice_add(l, n, i, 1);
    kl_lattice_value(l, n++, box[i].lo);
  }
  for (uint32_t i = 0; i < s->rows.n; i++) {
    const row *e = &s->rows.p[i];
    if (!kl_is_value(e->in)) continue;
    for (uint32_t j = 0; j < e->n; j++) kl_lattice_add(l, n, e->t[j].var, e->t[j].coef);
    kl_lattice_value(l, n++, e->in.lo);
  }
  return l;
}

// A row of the system in coordinates of the lattice. What does not fit is left out.
static void bound_row(const kl_lattice *l, kl_polytope *p, const cell *t, uint32_t cells, wide lo, wide hi) {
  wide sum[KL_MOST_COORDINATES] = {0}, d;
  const wide *by;
  for (uint32_t i = 0; i < cells; i++) {
    wide one = kl_lattice_unknown(l, t[i].var, &by);
    if (__builtin_mul_overflow(one, (wide)t[i].coef, &d) || __builtin_sub_overflow(lo, d, &lo) ||
        __builtin_sub_overflow(hi, d, &hi))
      return;
    for (uint32_t k = 0; k < kl_lattice_dimension(l); k++) {
      if (__builtin_mul_overflow(by[k], (wide)t[i].coef, &d) || __builtin_add_overflow(sum[k], d, &sum[k])) return;
    }
  }
  kl_polytope_add(p, sum, lo, hi);
}

typedef struct found {
  kl_system *s;
  const kl_lattice *l;
} found;

// Coordinates of the lattice as a point of the map.
static kl_truth try_point(void *state, const wide *x) {
  const found *f = state;
  bool unsure = false;
  for (uint32_t i = 0; i < f->s->points; i++) {
    const wide *by;
    wide v = kl_lattice_unknown(f->l, i, &by), d;
    for (uint32_t k = 0; k < kl_lattice_dimension(f->l); k++) {
      if (__builtin_mul_overflow(by[k], x[k], &d) || __builtin_add_overflow(v, d, &v)) return KL_UNKNOWN;
    }
    if (v < f->s->vars.p[i].lo || v > f->s->vars.p[i].hi) return KL_YES;
    *slot(f->s, i) = (int64_t)v;
  }
  return holds(f->s, &unsure) ? KL_NO : unsure ? KL_UNKNOWN : KL_YES;
}

// Points of the lattice within the box and the rows.
static kl_truth walk(kl_system *s, const kl_lattice *l, const kl_span64 *box) {
  uint32_t n = kl_lattice_dimension(l);
  if (n > KL_MOST_COORDINATES) return KL_UNKNOWN;
  kl_polytope *p = kl_polytope_open(s->cx, n, (uint32_t)(s->rows.n + s->vars.n));
  for (uint32_t i = 0; i < s->rows.n; i++) {
    const row *r = &s->rows.p[i];
    sums t = sum_up(r, box);
    if (kl_is_value(r->in) || t.huge) continue;
    wide lo = t.lo_open || r->in.lo > t.lo ? r->in.lo : t.lo, hi = t.hi_open || r->in.hi < t.hi ? r->in.hi : t.hi;
    if (lo > INT64_MIN && hi < INT64_MAX) bound_row(l, p, r->t, r->n, lo, hi);
  }
  for (uint32_t i = 0; i < s->vars.n; i++) {
    cell one = {i, 1};
    if (box[i].lo > INT64_MIN && box[i].hi < INT64_MAX) bound_row(l, p, &one, 1, box[i].lo, box[i].hi);
  }
  kl_truth t = kl_polytope_walk(p, &s->left, try_point, &(found){s, l});
  kl_polytope_close(p);
  return t;
}

// Integer solutions of the rows that are equalities: none, or a lattice, of which the points within the box and the
// other rows are walked.
static kl_truth by_lattice(kl_system *s, const kl_span64 *box) {
  size_t bytes = s->vars.n * sizeof *box;
  kl_span64 *v = kl_alloc(s->cx, bytes + 1);
  kl_truth t = KL_UNKNOWN;
  kl_lattice *l = NULL;
  if (bytes) memcpy(v, box, bytes);
  if (!propagate(s, v))
    t = KL_YES;
  else
    l = equalities(s, v);
  if (l) {
    uint32_t left = s->left;
    s->left = left / 2;
    kl_lattice_state state = kl_lattice_solve(l, &s->left);
    if (state == KL_LATTICE_EMPTY) t = KL_YES;
    if (state == KL_LATTICE_SOLVED && s->vars.n <= MOST_LATTICE) t = walk(s, l, v);
    s->left += left - left / 2;
    kl_lattice_close(l);
  }
  kl_free(s->cx, v, bytes + 1);
  return t;
}

// --- search -------------------------------------------------------------------------------------------------------

static bool try_end(kl_system *s, const kl_span64 *v, bool high) {
  for (uint32_t i = 0; i < s->points; i++) {
    *slot(s, i) = high ? v[i].hi : v[i].lo;
    if (v[i].lo == INT64_MIN || v[i].hi == INT64_MAX)
      *slot(s, i) = v[i].lo > INT64_MIN ? v[i].lo : v[i].hi < INT64_MAX ? v[i].hi : 0;
  }
  return holds(s, NULL);
}

// The map's variable with the fewest values, more than one; else another variable; UINT32_MAX if all are settled.
static uint32_t pick(const kl_system *s, const kl_span64 *v) {
  uint32_t best = UINT32_MAX;
  wide least = 0;
  for (uint32_t i = 0; i < s->vars.n; i++) {
    if (v[i].lo == v[i].hi || (i >= s->points && (s->partial || s->extrema || best < s->points))) continue;
    wide size = ((wide)v[i].hi - v[i].lo) / (v[i].m > 1 ? v[i].m : 1);
    if (best == UINT32_MAX || size < least) {
      best = i;
      least = size;
    }
  }
  return best;
}

static kl_truth search(kl_system *s, const kl_span64 *box, unsigned depth);

static kl_truth both_halves(kl_system *s, kl_span64 *v, uint32_t i, unsigned depth) {
  kl_span64 x = v[i];
  int64_t middle = (int64_t)(((wide)x.lo + x.hi - (x.hi < 0 && x.lo < 0)) / 2);
  if (middle >= x.hi) middle = x.hi - 1;
  if (middle < x.lo) middle = x.lo;
  kl_truth all = KL_YES;
  for (int half = 0; half < 2; half++) {
    v[i] = x;
    kl_span_meet(&v[i], half ? (kl_interval){middle + 1, x.hi} : (kl_interval){x.lo, middle}, 1, 0);
    if (v[i].lo > v[i].hi) continue;
    kl_truth t = search(s, v, depth + 1);
    if (t == KL_NO) return KL_NO;
    if (t == KL_UNKNOWN) all = KL_UNKNOWN;
    if (!s->left) return KL_UNKNOWN;
  }
  return all;
}

static kl_truth search(kl_system *s, const kl_span64 *box, unsigned depth) {
  size_t bytes = s->vars.n * sizeof *box;
  kl_span64 *v = kl_alloc(s->cx, bytes + 1);
  kl_truth t = KL_UNKNOWN;
  if (bytes) memcpy(v, box, bytes);
  if (!propagate(s, v)) {
    t = KL_YES;
  } else if (try_end(s, v, false) || try_end(s, v, true)) {
    t = KL_NO;
  } else if (is_box_small(s, v, 16)) {
    t = enumerate(s, v);
  } else if (s->left && depth < MOST_SEARCH_DEPTH) {
    uint32_t i = pick(s, v);
    if (i != UINT32_MAX) t = both_halves(s, v, i, depth);
  }
  kl_free(s->cx, v, bytes + 1);
  return t;
}

// --- choices ------------------------------------------------------------------------------------------------------

// An extremum is one of its arguments: each in turn, for every extremum from atom `from` on.
static kl_truth by_choices(kl_system *s, const kl_span64 *box, uint32_t from) {
  const kl_aff_atom *a = NULL;
  for (; from < s->atoms.n && !a; from++) {
    a = s->atoms.p[from];
    if (a->kind != KL_AFF_MIN && a->kind != KL_AFF_MAX) a = NULL;
  }
  if (!a) {
    kl_truth t = by_lattice(s, box);
    return t == KL_UNKNOWN ? search(s, box, 0) : t;
  }
  size_t bytes = s->vars.n * sizeof *box, rows = s->rows.n;
  kl_span64 *v = kl_alloc(s->cx, bytes);
  kl_truth all = KL_YES;
  for (uint32_t i = 0; i < a->n && s->left && all != KL_NO; i++) {
    memcpy(v, box, bytes);
    add_sum(s, a->arg[i], -1, s->points + from - 1, (kl_interval){0, 0});
    if (propagate(s, v)) {
      kl_truth t = by_choices(s, v, from);
      if (t != KL_YES) all = t;
    }
    s->rows.n = rows;
  }
  kl_free(s->cx, v, bytes);
  return s->left || all == KL_NO ? all : KL_UNKNOWN;
}

// --- the whole ----------------------------------------------------------------------------------------------------

static kl_truth is_empty(kl_system *s, uint32_t quota, const char **why) {
  kl_truth t = KL_UNKNOWN;
  const char *reason = "the search met its quota";
  s->left = quota;
  if (!first_spans(s)) t = KL_YES;
  for (uint32_t i = 0; i < s->points; i++) {
    if (s->vars.p[i].lo > s->vars.p[i].hi) t = KL_YES;
  }
  if (t == KL_UNKNOWN && is_box_small(s, s->vars.p, 64)) {
    t = enumerate(s, s->vars.p);
    if (t == KL_UNKNOWN) reason = "a constraint has a value beyond 64 bits";
  } else if (t == KL_UNKNOWN) {
    s->left = quota / 8;
    t = search(s, s->vars.p, 0);
    s->left = quota;
    if (t == KL_UNKNOWN) t = by_choices(s, s->vars.p, 0);
    if (t == KL_UNKNOWN && is_box_small(s, s->vars.p, KL_ENUMERATED)) t = enumerate(s, s->vars.p);
  }
  if (why && t == KL_UNKNOWN) *why = reason;
  return t;
}

kl_truth kl_system_is_empty(kl_affs *p, const kl_map *m, uint32_t quota, const char **why) {
  kl_system s;
  open_system(&s, p, m);
  kl_truth t = is_empty(&s, quota, why);
  close_system(&s);
  return t;
}
