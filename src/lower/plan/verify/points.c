// Points of variables where conditions hold: how many there are, and whether an expression tells them apart.
//
// A sum of variables tells points apart where each coefficient exceeds all that smaller ones can add up to: a number of
// mixed radix. Floors are got rid of first: floor((v + d) / k) by two variables, v + d = k*q + r; that of a sum by the
// sum itself as a variable, in the place of those that it determines.

#include "lower/plan/verify/check.h"
#include <stdlib.h>

void kl_points_of(kl_check *k, kl_vars vars, const kl_conditions *c, kl_points *out) {
  const kl_body *b = k->body;
  out->affs = k->p->affs;
  out->n = b->nvars;
  out->vars = vars;
  out->exact = c->all;
  out->c.n = 0;
  for (uint32_t i = 0; i < c->n; i++) {
    if (kl_has_symbols(c->c[i].e))
      out->exact = false;
    else
      out->c.c[out->c.n++] = c->c[i];
  }
  for (uint32_t v = 0; v < b->nvars; v++) {
    out->lo[v] = 0;
    out->hi[v] = b->vars[v].extent - 1;
  }
}

// --- sums -----------------------------------------------------------------------------------------------------------

static bool is_sum(const kl_aff *e) {
  for (uint32_t i = 0; i < e->n; i++)
    if (e->terms[i].atom->kind != KL_AFF_DIM) return false;
  return true;
}

static uint64_t vars_of(const kl_aff *e) {
  uint64_t r = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind == KL_AFF_DIM) r |= (uint64_t)1 << a->var;
    for (uint32_t k = 0; k < a->n; k++) r |= vars_of(a->arg[k]);
  }
  return r;
}

static bool is_fixed(const kl_points *x, uint32_t v) {
  return x->lo[v] == x->hi[v];
}

static bool is_empty(const kl_points *x) {
  for (uint32_t v = 0; v < x->n; v++)
    if (x->vars >> v & 1 && x->lo[v] > x->hi[v]) return true;
  return false;
}

static kl_wide low(const kl_points *x, const kl_aff_term *t) {
  return t->coef * (t->coef > 0 ? x->lo[t->atom->var] : x->hi[t->atom->var]);
}
static kl_wide high(const kl_points *x, const kl_aff_term *t) {
  return t->coef * (t->coef > 0 ? x->hi[t->atom->var] : x->lo[t->atom->var]);
}

static void range_of(const kl_points *x, const kl_aff *sum, kl_wide *lo, kl_wide *hi) {
  *lo = *hi = sum->c;
  for (uint32_t i = 0; i < sum->n; i++) {
    *lo += low(x, &sum->terms[i]);
    *hi += high(x, &sum->terms[i]);
  }
}

static kl_wide floor_of(kl_wide a, kl_wide k) { // k > 0
  kl_wide q = a / k;
  return a % k < 0 ? q - 1 : q;
}

// coef * v is at least lo and at most hi.
static void narrow_var(kl_points *x, uint32_t v, kl_wide coef, kl_wide lo, kl_wide hi) {
  kl_wide first = coef > 0 ? -floor_of(-lo, coef) : -floor_of(hi, -coef);
  kl_wide last = coef > 0 ? floor_of(hi, coef) : floor_of(-lo, -coef);
  if (first > x->lo[v]) x->lo[v] = first;
  if (last < x->hi[v]) x->hi[v] = last;
}

enum { ROUNDS = 3 };

void kl_points_narrow(kl_points *x) {
  for (uint32_t round = 0; round < ROUNDS; round++) {
    for (uint32_t i = 0; i < x->c.n && !is_empty(x); i++) {
      const kl_condition *c = &x->c.c[i];
      kl_wide lo, hi;
      if (!is_sum(c->e)) continue;
      range_of(x, c->e, &lo, &hi);
      for (uint32_t t = 0; t < c->e->n; t++) {
        const kl_aff_term *term = &c->e->terms[t];
        kl_wide others_low = lo - low(x, term), others_high = hi - high(x, term);
        narrow_var(x, term->atom->var, term->coef, c->lo - others_high, c->hi - others_low);
        range_of(x, c->e, &lo, &hi);
      }
    }
  }
}

// --- numbers of mixed radix -----------------------------------------------------------------------------------------

static int by_coef(const void *a, const void *b) {
  const kl_digit *x = a, *y = b;
  return x->coef < y->coef ? -1 : x->coef > y->coef;
}

static bool fits(kl_wide v) {
  return v >= INT64_MIN && v <= INT64_MAX;
}

// The sum as digits of the variables `vars`; false where numbers are too large.
static bool form_of(const kl_points *x, const kl_aff *sum, uint64_t vars, kl_form *f) {
  kl_wide least = sum->c;
  f->n = 0;
  for (uint32_t i = 0; i < sum->n; i++) {
    const kl_aff_term *t = &sum->terms[i];
    uint32_t v = t->atom->var;
    if (!(vars >> v & 1)) continue;
    kl_wide most = x->hi[v] - x->lo[v];
    least += low(x, t);
    if (!fits(least) || !fits(most) || t->coef == INT64_MIN) return false;
    if (most && f->n == KL_MOST_DIGITS) return false;
    if (most) f->d[f->n++] = (kl_digit){t->coef < 0 ? -t->coef : t->coef, (int64_t)most};
  }
  f->least = (int64_t)least;
  qsort(f->d, f->n, sizeof *f->d, by_coef);
  return true;
}

static bool is_mixed_radix(const kl_form *f) {
  kl_wide below = 0;
  for (uint32_t i = 0; i < f->n; i++) {
    if (f->d[i].coef <= below) return false;
    below += (kl_wide)f->d[i].coef * f->d[i].most;
  }
  return fits(below + f->least);
}

// Is every number between the least and the greatest a value?
static bool is_dense(const kl_form *f) {
  kl_wide below = 0;
  for (uint32_t i = 0; i < f->n; i++) {
    if (f->d[i].coef != below + 1) return false;
    below += (kl_wide)f->d[i].coef * f->d[i].most;
  }
  return true;
}

// How many values of a number of mixed radix are at most `most`; false where there are too many.
static bool count_below(const kl_form *f, kl_wide most, kl_wide *n) {
  kl_wide all[KL_MOST_DIGITS + 1] = {1}; // values of the lower digits
  for (uint32_t i = 0; i < f->n; i++) {
    all[i + 1] = all[i] * ((kl_wide)f->d[i].most + 1);
    if (!fits(all[i + 1])) return false;
  }
  *n = 0;
  most -= f->least;
  for (uint32_t i = f->n; i-- > 0 && most >= 0;) {
    kl_wide digit = most / f->d[i].coef;
    if (digit > f->d[i].most) {
      *n += all[i + 1];
      return true;
    }
    *n += digit * all[i];
    most -= digit * f->d[i].coef;
  }
  *n += most >= 0;
  return true;
}

// --- without floors -------------------------------------------------------------------------------------------------

// How good a floor is to begin with: splitting a variable, or a sum that is as good as one, leaves others whole.
static int worth(const kl_points *x, const kl_aff *sum) {
  kl_form f;
  if (sum->n == 1) return sum->terms[0].coef == 1 ? 4 : 1;
  if (!form_of(x, sum, ~0ull, &f)) return 1;
  return !is_mixed_radix(&f) ? 1 : is_dense(&f) ? 3 : 2;
}

// The best floor of a sum of variables in e, if it is better than *most.
static void find_floor(const kl_points *x, const kl_aff *e, const kl_aff_atom **best, int *most) {
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind != KL_AFF_FLOOR) continue;
    if (!is_sum(a->arg[0])) {
      find_floor(x, a->arg[0], best, most);
      continue;
    }
    int w = worth(x, a->arg[0]);
    if (w <= *most) continue;
    *best = a;
    *most = w;
  }
}

static uint32_t new_var(kl_points *x, kl_wide lo, kl_wide hi) {
  x->lo[x->n] = lo;
  x->hi[x->n] = hi;
  x->vars |= (uint64_t)1 << x->n;
  return x->n++;
}

// Puts `by` in the place of variable v everywhere.
static void substitute(kl_points *x, uint32_t v, const kl_aff *by, const kl_aff **e) {
  const kl_aff *to[KL_MOST_POINT_VARS];
  kl_interval in[KL_MOST_POINT_VARS];
  for (uint32_t i = 0; i < x->n; i++) {
    to[i] = i == v ? by : kl_aff_dim(x->affs, i);
    bool whole = fits(x->lo[i]) && fits(x->hi[i]);
    in[i] = whole ? (kl_interval){(int64_t)x->lo[i], (int64_t)x->hi[i]} : (kl_interval){INT64_MIN, INT64_MAX};
  }
  kl_aff_subst s = {.to = {to}, .n = {x->n}};
  kl_dom *d = kl_dom_make(x->affs, x->n, in);
  for (uint32_t i = 0; i < x->c.n; i++) {
    if (!(vars_of(x->c.c[i].e) >> v & 1)) continue;
    kl_aff_replace(x->affs, &s, &x->c.c[i].e, 1, &x->c.c[i].e);
    x->c.c[i].e = kl_dom_simplify(d, x->c.c[i].e);
  }
  x->vars &= ~((uint64_t)1 << v);
  if (!*e) return;
  kl_aff_replace(x->affs, &s, e, 1, e);
  *e = kl_dom_simplify(d, *e);
}

// v + d = k*q + r.
static bool split_var(kl_points *x, const kl_aff_atom *floor, const kl_aff **e) {
  const kl_aff *a = floor->arg[0];
  uint32_t v = a->terms[0].atom->var;
  if (a->terms[0].coef != 1 || x->n + 2 > KL_MOST_POINT_VARS) return false;
  kl_wide lo = x->lo[v], hi = x->hi[v], first = floor_of(lo + a->c, floor->k), last = floor_of(hi + a->c, floor->k);
  uint32_t q = new_var(x, first, last), r = new_var(x, 0, floor->k - 1);
  const kl_aff *by = kl_aff_addmul(x->affs, kl_aff_dim(x->affs, r), kl_aff_dim(x->affs, q), floor->k);
  by = kl_aff_addc(x->affs, by, -a->c);
  if (first * floor->k - a->c < lo || last * floor->k + floor->k - 1 - a->c > hi) {
    if (x->c.n == KL_MOST_CONDITIONS)
      x->exact = false;
    else
      x->c.c[x->c.n++] = (kl_condition){kl_aff_dim(x->affs, v), (int64_t)lo, (int64_t)hi};
  }
  substitute(x, v, by, e);
  return true;
}

static void drop_conditions(kl_points *x, uint64_t vars) {
  for (uint32_t i = x->c.n; i-- > 0;) {
    if (!(vars_of(x->c.c[i].e) & vars)) continue;
    x->c.c[i] = x->c.c[--x->c.n];
    x->exact = false;
  }
}

// The sum, without its constant, becomes a variable. One of the sum's goes for it; others that are not wanted besides
// go as well, if the sum tells their values.
static bool join_vars(kl_points *x, const kl_aff *sum, const kl_aff **e) {
  sum = kl_aff_addc(x->affs, sum, -sum->c);
  const kl_aff_term *unit = NULL;
  for (uint32_t i = 0; i < sum->n && !unit; i++)
    if (sum->terms[i].coef == 1 || sum->terms[i].coef == -1) unit = &sum->terms[i];
  if (!unit || x->n == KL_MOST_POINT_VARS) return false;
  kl_wide lo, hi;
  kl_form all, gone;
  range_of(x, sum, &lo, &hi);
  if (!fits(lo) || !fits(hi) || !form_of(x, sum, ~0ull, &all)) return false;
  kl_points before = *x;
  uint32_t joined = new_var(x, lo, hi), v = unit->atom->var;
  const kl_aff *rest = kl_aff_addmul(x->affs, sum, kl_aff_dim(x->affs, v), -unit->coef);
  const kl_aff *by = kl_aff_mulc(x->affs, kl_aff_sub(x->affs, kl_aff_dim(x->affs, joined), rest), unit->coef);
  substitute(x, v, by, e);
  uint64_t wanted = *e ? vars_of(*e) : 0, mine = vars_of(sum);
  for (uint32_t i = 0; i < x->c.n && !*e; i++) wanted |= vars_of(x->c.c[i].e);
  if (!form_of(&before, sum, mine & ~wanted, &gone) || !is_mixed_radix(&gone)) return false;
  bool leaves = (mine & wanted & x->vars) != 0;
  drop_conditions(x, mine & ~wanted);
  x->vars &= ~(mine & ~wanted);
  x->exact = x->exact && !leaves && is_dense(&all);
  return true;
}

static bool split(kl_points *x, const kl_aff_atom *floor, const kl_aff **e) {
  return floor->arg[0]->n == 1 ? split_var(x, floor, e) : join_vars(x, floor->arg[0], e);
}

// Without floors in e, or where that is NULL in the conditions; false where that is not known how. Of no points at all
// that is well.
static bool without_floors(kl_points *x, const kl_aff **e) {
  for (kl_points_narrow(x); !is_empty(x); kl_points_narrow(x)) {
    const kl_aff_atom *floor = NULL;
    int most = 0;
    if (*e) find_floor(x, *e, &floor, &most);
    for (uint32_t i = 0; i < x->c.n && !*e; i++) find_floor(x, x->c.c[i].e, &floor, &most);
    if (!floor) return !*e || is_sum(*e);
    if (!split(x, floor, e)) return false;
  }
  return true;
}

static bool join_bounded(kl_points *x, const kl_aff **e);

bool kl_points_range(const kl_points *points, const kl_aff *e, kl_wide *lo, kl_wide *hi) {
  kl_points x = *points;
  *lo = 0;
  *hi = -1;
  if (kl_has_symbols(e) || !without_floors(&x, &e)) return false;
  while (!is_empty(&x) && join_bounded(&x, &e)) kl_points_narrow(&x);
  if (is_empty(&x)) return true;
  if (is_sum(e)) range_of(&x, e, lo, hi);
  return is_sum(e);
}

// --- telling points apart -------------------------------------------------------------------------------------------

static uint64_t conditioned(const kl_points *x) {
  uint64_t r = 0;
  for (uint32_t i = 0; i < x->c.n; i++) r |= vars_of(x->c.c[i].e);
  return r;
}

// Is there a variable that changes nothing, or are there two that e takes for one another? Of those that no condition
// is about.
static bool repeats(const kl_points *x, const kl_aff *e) {
  uint64_t in_e = vars_of(e), about = conditioned(x);
  if (!x->exact) return false;
  for (uint32_t v = 0; v < x->n; v++)
    if ((x->vars & ~about & ~in_e) >> v & 1 && !is_fixed(x, v)) return true;
  kl_form f;
  if (!is_sum(e) || !form_of(x, e, x->vars & ~about, &f)) return false;
  for (uint32_t i = 0; i < f.n; i++)
    for (uint32_t j = i + 1; j < f.n; j++)
      if (f.d[j].coef % f.d[i].coef == 0 && f.d[j].coef / f.d[i].coef <= f.d[i].most) return true;
  return false;
}

// Is e a multiple of the sum, as far as the sum's variables go?
static bool has_multiple(const kl_aff *e, const kl_aff *sum) {
  kl_wide of_e = 0, of_sum = sum->terms[0].coef;
  for (uint32_t i = 0; i < sum->n; i++) {
    int64_t coef = kl_aff_coef(e, sum->terms[i].atom->var);
    if (i == 0) of_e = coef;
    if (coef == 0 || of_e * sum->terms[i].coef != coef * of_sum) return false;
  }
  return true;
}

// A sum that a condition bounds more than its variables do becomes one; false where there is none in e.
static bool join_bounded(kl_points *x, const kl_aff **e) {
  for (uint32_t i = 0; i < x->c.n; i++) {
    const kl_condition *c = &x->c.c[i];
    kl_wide lo, hi;
    if (c->e->n < 2 || !is_sum(c->e) || !has_multiple(*e, c->e)) continue;
    range_of(x, c->e, &lo, &hi);
    if (c->lo <= lo && c->hi >= hi) continue;
    return join_vars(x, c->e, e);
  }
  return false;
}

// Of a form, all of whose values e has: without those that no sum of variables, which a condition bounds, makes.
static void tighten(kl_points *x, const kl_aff *e, kl_form *form) {
  kl_form f;
  while (join_bounded(x, &e) && is_sum(e)) {
    kl_points_narrow(x);
    if (is_empty(x) || !form_of(x, e, x->vars, &f) || !is_mixed_radix(&f)) return;
    *form = f;
  }
}

kl_truth kl_points_differ(const kl_points *points, const kl_aff *e, kl_form *form) {
  kl_points x = *points;
  *form = (kl_form){0};
  kl_points_narrow(&x);
  if (is_empty(&x)) return KL_YES;
  if (kl_has_symbols(e)) return KL_UNKNOWN;
  if (repeats(&x, e)) return KL_NO;
  if (!without_floors(&x, &e)) return KL_UNKNOWN;
  for (; !is_empty(&x); kl_points_narrow(&x)) {
    if (repeats(&x, e)) return KL_NO;
    uint64_t lost = x.vars & ~vars_of(e);
    for (uint32_t v = 0; v < x.n; v++)
      if (lost >> v & 1 && !is_fixed(&x, v)) return KL_UNKNOWN;
    if (form_of(&x, e, x.vars, form) && is_mixed_radix(form)) {
      tighten(&x, e, form);
      return KL_YES;
    }
    if (!join_bounded(&x, &e) || !is_sum(e)) return KL_UNKNOWN;
  }
  return KL_YES;
}

// --- counting -------------------------------------------------------------------------------------------------------

enum { MOST_VALUES = 64, MOST_TRIES = 256 };

static bool count(kl_points *x, uint32_t *tries, kl_wide *n);

// Drops what holds of all points of the box.
static void drop_certain(kl_points *x) {
  for (uint32_t i = x->c.n; i-- > 0;) {
    kl_wide lo, hi;
    if (!is_sum(x->c.c[i].e)) continue;
    range_of(x, x->c.c[i].e, &lo, &hi);
    if (lo >= x->c.c[i].lo && hi <= x->c.c[i].hi) x->c.c[i] = x->c.c[--x->c.n];
  }
}

static uint64_t free_vars(const kl_points *x, const kl_aff *e) {
  uint64_t r = vars_of(e) & x->vars;
  for (uint32_t v = 0; v < x->n; v++)
    if (r >> v & 1 && is_fixed(x, v)) r &= ~((uint64_t)1 << v);
  return r;
}

// One condition on a sum.
static bool count_sum(const kl_points *x, const kl_condition *c, kl_wide *n) {
  kl_form f;
  kl_wide above, below;
  if (!form_of(x, c->e, x->vars, &f) || !is_mixed_radix(&f)) return false;
  if (!count_below(&f, c->hi, &above) || !count_below(&f, (kl_wide)c->lo - 1, &below)) return false;
  *n = above - below;
  return true;
}

// Several conditions: for each value of a variable that they share.
static bool count_each(const kl_points *x, uint64_t vars, uint32_t *tries, kl_wide *n) {
  uint64_t once = 0, shared = 0;
  for (uint32_t i = 0; i < x->c.n; i++) {
    uint64_t set = free_vars(x, x->c.c[i].e);
    shared |= once & set;
    once |= set;
  }
  uint32_t best = KL_NONE;
  for (uint32_t v = 0; v < x->n; v++)
    if ((shared & vars) >> v & 1 && (best == KL_NONE || x->hi[v] - x->lo[v] < x->hi[best] - x->lo[best])) best = v;
  if (best == KL_NONE || x->hi[best] - x->lo[best] >= MOST_VALUES) return false;
  *n = 0;
  for (kl_wide at = x->lo[best]; at <= x->hi[best]; at++) {
    kl_points one = *x;
    kl_wide m;
    one.lo[best] = one.hi[best] = at;
    one.vars &= vars;
    drop_conditions(&one, x->vars & ~vars);
    one.exact = true;
    if (!*tries) return false;
    --*tries;
    if (!count(&one, tries, &m)) return false;
    *n += m;
    if (!fits(*n)) return false;
  }
  return true;
}

// Variables that conditions tie to those of `set`.
static uint64_t tied(const kl_points *x, uint64_t set) {
  for (uint64_t before = 0; before != set;) {
    before = set;
    for (uint32_t i = 0; i < x->c.n; i++) {
      uint64_t of = free_vars(x, x->c.c[i].e);
      if (of & set) set |= of;
    }
  }
  return set;
}

static bool count_tied(const kl_points *x, uint64_t set, uint32_t *tries, kl_wide *n) {
  const kl_condition *only = NULL;
  uint32_t conditions = 0;
  for (uint32_t i = 0; i < x->c.n; i++) {
    if (!(free_vars(x, x->c.c[i].e) & set)) continue;
    only = &x->c.c[i];
    conditions++;
  }
  if (conditions == 1) return count_sum(x, only, n);
  if (conditions) return count_each(x, set, tries, n);
  *n = 1;
  for (uint32_t v = 0; v < x->n; v++)
    if (set >> v & 1) *n *= x->hi[v] - x->lo[v] + 1;
  return fits(*n);
}

static bool count(kl_points *x, uint32_t *tries, kl_wide *n) {
  const kl_aff *none = NULL;
  *n = 0;
  if (!without_floors(x, &none)) return false;
  if (is_empty(x)) return true;
  if (!x->exact) return false;
  drop_certain(x);
  *n = 1;
  for (uint64_t left = x->vars, set; left; left &= ~set) {
    kl_wide part;
    set = tied(x, left & (0 - left));
    if (!count_tied(x, set, tries, &part)) return false;
    *n *= part;
    if (!fits(*n)) return false;
  }
  return true;
}

bool kl_points_count(const kl_points *points, int64_t *n) {
  kl_points x = *points;
  kl_wide all = 0;
  uint32_t tries = MOST_TRIES;
  bool known = count(&x, &tries, &all);
  *n = (int64_t)all;
  return known;
}
