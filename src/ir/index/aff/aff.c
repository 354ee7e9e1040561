// Products, divisions, minima and maxima in normal form.
//
// Rules of floor, each for all integers (k, a > 0):
//   floor(e / -k)               = floor(-e / k)
//   floor((k*q + r) / k)        = q + floor(r / k)              q takes all multiples of k in coefficients and constant
//   floor((g*s + c) / (g*h))    = floor((s + floor(c/g)) / h)   g divides every coefficient
//   floor(-e / k)               = -floor((e + k - 1) / k)       so that the first coefficient is above zero
//   floor((floor(e/a) + w) / k) = floor((e + a*w) / (a*k))      where just one floor has the coefficient 1 or -1
// The first three make coefficients smaller, the last one nests less deeply.

#include "ir/index/impl.h"
#include <stdlib.h>

// --- floor by a constant ------------------------------------------------------------------------------------------

// e = k*whole + rest, coefficients of rest below k in magnitude and of the sign of e's, its constant in 0..k-1.
static void split(kl_affs *p, const kl_aff *e, int64_t k, const kl_aff **whole, const kl_aff **rest) {
  kl_aff_term small[32], *t = small;
  size_t bytes = 2 * (size_t)e->n * sizeof *t;
  if (2 * (size_t)e->n > KL_COUNT(small)) t = kl_alloc(p->cx, bytes);
  kl_aff_term *w = t, *r = t + e->n;
  uint32_t nw = 0, nr = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    kl_aff_term x = e->terms[i];
    if (x.coef / k) w[nw++] = (kl_aff_term){x.coef / k, x.atom};
    if (x.coef % k) r[nr++] = (kl_aff_term){x.coef % k, x.atom};
  }
  int64_t q = kl_floor64(e->c, k);
  *whole = kl_aff_sum(p, q, w, nw);
  *rest = kl_aff_sum(p, e->c - (wide)q * k, r, nr);
  if (t != small) kl_free(p->cx, t, bytes);
}

// e / g, rounded down in the constant.
static const kl_aff *divide_out(kl_affs *p, const kl_aff *e, int64_t g) {
  kl_aff_term small[32], *t = small;
  size_t bytes = (size_t)e->n * sizeof *t;
  if (e->n > KL_COUNT(small)) t = kl_alloc(p->cx, bytes);
  for (uint32_t i = 0; i < e->n; i++) t[i] = (kl_aff_term){e->terms[i].coef / g, e->terms[i].atom};
  const kl_aff *r = kl_aff_sum(p, kl_floor64(e->c, g), t, e->n);
  if (t != small) kl_free(p->cx, t, bytes);
  return r;
}

// The one floor with coefficient 1 or -1; NULL if there is none or more than one.
static const kl_aff_term *lone_floor(const kl_aff *e) {
  const kl_aff_term *found = NULL;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_term *t = &e->terms[i];
    if (t->atom->kind != KL_AFF_FLOOR || (t->coef != 1 && t->coef != -1)) continue;
    if (found) return NULL;
    found = t;
  }
  return found;
}

// (-e + k - 1): floor(e / k) is minus the floor of it over k.
static const kl_aff *mirrored(kl_affs *p, const kl_aff *e, int64_t k) {
  return kl_aff_addmul(p, kl_aff_const(p, k - 1), e, -1);
}

// Over *k: what floor(e / *k) is once its lone floor, with coefficient 1, is flattened. NULL where that leaves int64.
static const kl_aff *flattened(kl_affs *p, const kl_aff *e, const kl_aff_term *f, int64_t *k) {
  const kl_aff_atom *a = f->atom;
  int64_t ak;
  if (__builtin_mul_overflow(a->k, *k, &ak)) return NULL;
  const kl_aff *w = kl_aff_addmul(p, e, kl_aff_of(p, a), -1), *r = kl_aff_addmul(p, a->arg[0], w, a->k);
  if (r->error) return NULL;
  *k = ak;
  return r;
}

// k > 0. Collects whole + sign * floor(e / k) until e is in normal form.
static const kl_aff *floor_by(kl_affs *p, const kl_aff *e, int64_t k) {
  const kl_aff *whole = kl_aff_const(p, 0);
  int64_t sign = 1;
  for (;;) {
    const kl_aff *q;
    split(p, e, k, &q, &e);
    whole = kl_aff_addmul(p, whole, q, sign);
    if (e->n == 0) return e->error ? e : whole; // its constant is below k
    int64_t g = (int64_t)kl_gcd64(kl_aff_content(e), (uint64_t)k);
    if (g > 1) {
      e = divide_out(p, e, g);
      k /= g;
      if (k == 1) return kl_aff_addmul(p, whole, e, sign);
      continue; // the constant may reach k
    }
    const kl_aff_term *f = lone_floor(e);
    if (f ? f->coef < 0 : e->terms[0].coef < 0) {
      e = mirrored(p, e, k);
      if (e->error) return e;
      sign = -sign;
      f = lone_floor(e);
    }
    const kl_aff *flat = f ? flattened(p, e, f, &k) : NULL;
    if (!flat) break;
    e = flat;
  }
  if (e->terms[0].coef < 0) { // a lone floor that could not be flattened
    e = mirrored(p, e, k);
    sign = -sign;
  }
  return kl_aff_addmul(p, whole, kl_aff_of(p, kl_affs_atom(p, KL_AFF_FLOOR, 0, k, &e, 1)), sign);
}

const kl_aff *kl_aff_floordivc(kl_affs *p, const kl_aff *a, int64_t k) {
  if (a->error) return a;
  if (k == 0) return kl_aff_error_value(p, KL_AFF_DIV_BY_ZERO);
  if (k == INT64_MIN) return kl_aff_error_value(p, KL_AFF_OVERFLOW);
  if (k < 0) {
    a = kl_aff_mulc(p, a, -1);
    k = -k;
    if (a->error) return a;
  }
  return k == 1 ? a : floor_by(p, a, k);
}

const kl_aff *kl_aff_modc(kl_affs *p, const kl_aff *a, int64_t k) {
  if (k == INT64_MIN) return a->error ? a : kl_aff_error_value(p, KL_AFF_OVERFLOW);
  if (k < 0) k = -k;
  return kl_aff_addmul(p, a, kl_aff_floordivc(p, a, k), -k);
}

// --- division by what is not constant -----------------------------------------------------------------------------

const kl_aff *kl_aff_floordiv(kl_affs *p, const kl_aff *a, const kl_aff *b) {
  if (a->error || b->error) return a->error ? a : b;
  if (b->n == 0) return kl_aff_floordivc(p, a, b->c);
  const kl_aff *arg[2] = {a, b};
  return kl_aff_of(p, kl_affs_atom(p, KL_AFF_QUOTIENT, 0, 0, arg, 2));
}

const kl_aff *kl_aff_ceildiv(kl_affs *p, const kl_aff *a, const kl_aff *b) {
  return kl_aff_mulc(p, kl_aff_floordiv(p, kl_aff_mulc(p, a, -1), b), -1);
}

const kl_aff *kl_aff_mod(kl_affs *p, const kl_aff *a, const kl_aff *b) {
  if (a->error || b->error) return a->error ? a : b;
  if (b->n == 0) return kl_aff_modc(p, a, b->c);
  const kl_aff *m = kl_aff_max(p, b, kl_aff_mulc(p, b, -1)), *q = kl_aff_floordiv(p, a, m);
  return kl_aff_sub(p, a, kl_aff_mul(p, m, q));
}

// --- products -----------------------------------------------------------------------------------------------------

static uint32_t factors(const kl_aff_atom *a, const kl_aff_atom **out) {
  if (a->kind != KL_AFF_PRODUCT) {
    out[0] = a;
    return 1;
  }
  for (uint32_t i = 0; i < a->n; i++) out[i] = a->arg[i]->terms[0].atom;
  return a->n;
}

static int by_structure(const void *a, const void *b) {
  return kl_aff_atom_compare(*(const kl_aff_atom *const *)a, *(const kl_aff_atom *const *)b);
}

// NULL where there are too many factors.
static const kl_aff_atom *product_of(kl_affs *p, const kl_aff_atom *a, const kl_aff_atom *b) {
  const kl_aff_atom *f[2 * KL_MOST_FACTORS];
  const kl_aff *arg[KL_MOST_FACTORS];
  uint32_t n = factors(a, f);
  n += factors(b, f + n);
  if (n > KL_MOST_FACTORS) return NULL;
  qsort(f, n, sizeof *f, by_structure);
  for (uint32_t i = 0; i < n; i++) arg[i] = kl_aff_of(p, f[i]);
  return kl_affs_atom(p, KL_AFF_PRODUCT, 0, 0, arg, n);
}

const kl_aff *kl_aff_mul(kl_affs *p, const kl_aff *a, const kl_aff *b) {
  if (a->error || b->error) return a->error ? a : b;
  if (b->n == 0) return kl_aff_mulc(p, a, b->c);
  if (a->n == 0) return kl_aff_mulc(p, b, a->c);
  if ((uint64_t)a->n * b->n > KL_MOST_TERMS) return kl_aff_error_value(p, KL_AFF_TOO_LARGE);
  size_t bytes = (size_t)a->n * b->n * sizeof(kl_aff_term);
  kl_aff_term *t = kl_alloc(p->cx, bytes);
  uint32_t n = 0;
  const kl_aff *r = NULL;
  for (uint32_t i = 0; i < a->n && !r; i++) {
    for (uint32_t j = 0; j < b->n && !r; j++, n++) {
      t[n].atom = product_of(p, a->terms[i].atom, b->terms[j].atom);
      if (!t[n].atom)
        r = kl_aff_error_value(p, KL_AFF_TOO_LARGE);
      else if (__builtin_mul_overflow(a->terms[i].coef, b->terms[j].coef, &t[n].coef))
        r = kl_aff_error_value(p, KL_AFF_OVERFLOW);
    }
  }
  if (!r) {
    r = kl_aff_sum(p, 0, t, n);
    r = kl_aff_addmul(p, r, kl_aff_addc(p, a, -a->c), b->c);
    r = kl_aff_addmul(p, r, b, a->c);
  }
  kl_free(p->cx, t, bytes);
  return r;
}

// --- minima and maxima --------------------------------------------------------------------------------------------

// The part that both have: terms of equal coefficient.
static const kl_aff *common(kl_affs *p, const kl_aff *a, const kl_aff *b) {
  kl_aff_term small[32], *t = small;
  size_t bytes = (size_t)a->n * sizeof *t;
  if (a->n > KL_COUNT(small)) t = kl_alloc(p->cx, bytes);
  uint32_t n = 0;
  for (uint32_t i = 0, j = 0; i < a->n && j < b->n;) {
    int order = kl_aff_atom_compare(a->terms[i].atom, b->terms[j].atom);
    if (order == 0 && a->terms[i].coef == b->terms[j].coef) t[n++] = a->terms[i];
    i += order <= 0;
    j += order >= 0;
  }
  const kl_aff *r = kl_aff_sum(p, a->c == b->c ? a->c : 0, t, n);
  if (t != small) kl_free(p->cx, t, bytes);
  return r;
}

typedef struct args {
  const kl_aff **e;
  uint32_t n, cap;
} args;

// The one term of e that is an extremum of that kind, its sign counted; NULL if there is none or more than one.
static const kl_aff_term *lone_extremum(kl_aff_kind kind, const kl_aff *e) {
  const kl_aff_term *found = NULL;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_term *t = &e->terms[i];
    if (t->atom->kind != (t->coef > 0 ? kind : kind == KL_AFF_MIN ? KL_AFF_MAX : KL_AFF_MIN)) continue;
    if (found) return NULL;
    found = t;
  }
  return found;
}

// Beyond so many arguments extrema in extrema stay as they are: flat, shared ones would double with every level.
enum { MOST_FLAT = 16 };

// Adds e, or what it is the extremum of: rest + min(a, b) is min(rest + a, rest + b).
static void flatten_into(kl_affs *p, args *l, kl_aff_kind kind, const kl_aff *e) {
  const kl_aff_term *t = lone_extremum(kind, e);
  if (!t) {
    l->e[l->n++] = e;
    return;
  }
  const kl_aff *rest = kl_aff_addmul(p, e, kl_aff_of(p, t->atom), -t->coef);
  for (uint32_t i = 0; i < t->atom->n; i++) l->e[l->n++] = kl_aff_addmul(p, rest, t->atom->arg[i], t->coef);
}

static uint32_t width(kl_aff_kind kind, const kl_aff *e) {
  const kl_aff_term *t = lone_extremum(kind, e);
  return t ? t->atom->n : 1;
}

static int by_order(const void *a, const void *b) {
  return kl_aff_compare(*(const kl_aff *const *)a, *(const kl_aff *const *)b);
}

// Sorts; of arguments that differ by a constant one stays.
static void drop_dominated(args *l, kl_aff_kind kind) {
  uint32_t n = 0;
  qsort(l->e, l->n, sizeof *l->e, by_order); // the constant counts last: such arguments are neighbours, the least first
  for (uint32_t i = 0; i < l->n; i++) {
    const kl_aff *last = n ? l->e[n - 1] : NULL, *e = l->e[i];
    bool same = last && last->n == e->n && (e->n == 0 || memcmp(last->terms, e->terms, e->n * sizeof *e->terms) == 0);
    if (!same)
      l->e[n++] = e;
    else if (kind == KL_AFF_MAX)
      l->e[n - 1] = e;
  }
  l->n = n;
}

static uint64_t common_factor(const args *l) {
  uint64_t g = 0;
  for (uint32_t i = 0; i < l->n && g != 1; i++) {
    g = kl_gcd64(kl_gcd64(g, kl_aff_content(l->e[i])), kl_abs64(l->e[i]->c));
  }
  return g > INT64_MAX ? 1 : g;
}

static bool all_negative(const args *l) {
  bool any = false;
  for (uint32_t i = 0; i < l->n; i++) {
    if (l->e[i]->n && l->e[i]->terms[0].coef > 0) return false;
    any = any || l->e[i]->n;
  }
  return any;
}

static const kl_aff *failed(const args *l) {
  for (uint32_t i = 0; i < l->n; i++) {
    if (l->e[i]->error) return l->e[i];
  }
  return NULL;
}

// shared + factor * extremum(rest); error values are found by the caller.
static const kl_aff *extremum_of(kl_affs *p, kl_aff_kind kind, args *l, bool flat) {
  drop_dominated(l, kind);
  if (l->n == 1) return l->e[0];
  const kl_aff *shared = l->e[0];
  for (uint32_t i = 1; i < l->n; i++) shared = common(p, shared, l->e[i]);
  for (uint32_t i = 0; i < l->n; i++) l->e[i] = kl_aff_sub(p, l->e[i], shared);
  int64_t factor = (int64_t)common_factor(l);
  for (uint32_t i = 0; i < l->n && factor > 1; i++) l->e[i] = divide_out(p, l->e[i], factor);
  if (all_negative(l)) {
    for (uint32_t i = 0; i < l->n; i++) l->e[i] = kl_aff_mulc(p, l->e[i], -1);
    kind = kind == KL_AFF_MIN ? KL_AFF_MAX : KL_AFF_MIN;
    factor = -factor;
  }
  if (failed(l)) return failed(l);
  bool nested = false; // what was taken out may have hidden an extremum
  for (uint32_t i = 0; i < l->n && flat; i++) nested = nested || width(kind, l->e[i]) > 1;
  qsort(l->e, l->n, sizeof *l->e, by_order);
  const kl_aff *r =
      nested ? kl_aff_extremum(p, kind, l->e, l->n) : kl_aff_of(p, kl_affs_atom(p, kind, 0, 0, l->e, l->n));
  return kl_aff_addmul(p, shared, r, factor);
}

const kl_aff *kl_aff_extremum(kl_affs *p, kl_aff_kind kind, const kl_aff *const *e, uint32_t n) {
  args l = {.cap = 0};
  for (uint32_t i = 0; i < n; i++) l.cap += width(kind, e[i]);
  bool flat = l.cap <= MOST_FLAT;
  if (!flat) l.cap = n;
  const kl_aff *small[MOST_FLAT];
  l.e = l.cap <= KL_COUNT(small) ? small : kl_alloc(p->cx, l.cap * sizeof *l.e);
  for (uint32_t i = 0; i < n; i++) {
    if (flat)
      flatten_into(p, &l, kind, e[i]);
    else
      l.e[l.n++] = e[i];
  }
  const kl_aff *r = failed(&l);
  if (!r) r = l.cap > KL_MOST_TERMS ? kl_aff_error_value(p, KL_AFF_TOO_LARGE) : extremum_of(p, kind, &l, flat);
  if (l.e != small) kl_free(p->cx, l.e, l.cap * sizeof *l.e);
  return r;
}

const kl_aff *kl_aff_min(kl_affs *p, const kl_aff *a, const kl_aff *b) {
  const kl_aff *e[2] = {a, b};
  return kl_aff_extremum(p, KL_AFF_MIN, e, 2);
}
const kl_aff *kl_aff_max(kl_affs *p, const kl_aff *a, const kl_aff *b) {
  const kl_aff *e[2] = {a, b};
  return kl_aff_extremum(p, KL_AFF_MAX, e, 2);
}

const kl_aff *kl_aff_rebuild(kl_affs *p, const kl_aff_atom *a, const kl_aff *const *arg) {
  if (a->kind == KL_AFF_FLOOR) return kl_aff_floordivc(p, arg[0], a->k);
  if (a->kind == KL_AFF_QUOTIENT) return kl_aff_floordiv(p, arg[0], arg[1]);
  if (a->kind == KL_AFF_MIN || a->kind == KL_AFF_MAX) return kl_aff_extremum(p, a->kind, arg, a->n);
  const kl_aff *r = arg[0];
  for (uint32_t i = 1; i < a->n; i++) r = kl_aff_mul(p, r, arg[i]);
  return r;
}
