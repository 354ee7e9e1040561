// Simplifying an expression where a domain holds.
//
// Rules, beside those of normal form. R(e) is the span of e; g, k > 0:
//   e                        = c                         R(e) is the single value c
//   floor((g*A + B) / (g*h)) = floor((A + j) / h)        R(B) within j*g .. j*g + g-1
//   m*(floor(y/k) + G)       = m*c                       R(floor((y + k*G) / k)) is the single value c
//   m*k*floor(y/k)           = m*(y - r)                 every value of y is r mod k
//   floor((y + c) / k)       = floor((y + c') / k) + c"  every value of y is r mod g, g divides k; c' least
//   e                        = e + t*(f - v)             a fact says f = v, and this is shorter
//   min(a, b)                = a                         R(b - a) is not below 0; max alike
// What may have no value (a divisor that is not constant) is never dropped: no value where there was none.
// Each makes the expression smaller to write, or removes a floor from its top, so repetition ends.

#include "ir/index/impl.h"

enum { MOST_ROUNDS = 16, MOST_ARGUMENTS = 16 };

static const kl_aff *simplify(kl_dom *d, const kl_aff *e);

// --- floors -------------------------------------------------------------------------------------------------------

// floor(e / k) with the units that g does not divide taken out of it; NULL where they may carry into the others.
static const kl_aff *without_low(kl_dom *d, const kl_units *u, int64_t k, int64_t g) {
  kl_affs *p = d->p;
  wide q = kl_floor128(u->c, g);
  if (q > INT64_MAX || q < INT64_MIN) return NULL;
  const kl_aff *high = kl_aff_const(p, (int64_t)q), *low = kl_aff_const(p, (int64_t)(u->c - q * g));
  for (uint32_t i = 0; i < u->n; i++) {
    const kl_aff *x = kl_unit_value(p, &u->u[i]);
    high = kl_aff_addmul(p, high, x, u->u[i].coef / g);
    low = kl_aff_addmul(p, low, x, u->u[i].coef % g);
  }
  if (high->error || low->error || low->partial) return NULL;
  kl_span64 s = kl_dom_range(d, low);
  if (s.lo == INT64_MIN || s.hi == INT64_MAX || kl_floor64(s.lo, g) != kl_floor64(s.hi, g)) return NULL;
  if (low->n == 0 && g == 1) return NULL;
  const kl_aff *r = kl_aff_floordivc(p, kl_aff_addc(p, high, kl_floor64(s.lo, g)), k / g);
  return r->error ? NULL : r;
}

// e = y + c, y of the class r modulo a divisor g of k: the floor depends on floor((r + c) / g) alone, so that there is
// a least constant that does. NULL if that is c.
static const kl_aff *without_constant(kl_dom *d, const kl_aff *e, int64_t k, const kl_span64 *s) {
  int64_t g = (int64_t)kl_gcd64((uint64_t)s->m, (uint64_t)k), c = e->c;
  if (g == 1 || c < 0 || c >= k) return NULL;
  wide r = (((wide)s->r - c) % g + g) % g, low = kl_floor128(r + c, g) * g - r;
  int64_t carry = low <= k && low + g - 1 >= k; // a constant of k is 0, and one more outside
  int64_t best = carry || low <= 0 ? 0 : (int64_t)low;
  if (best == c) return NULL;
  const kl_aff *q = kl_aff_floordivc(d->p, kl_aff_addc(d->p, e, best - c), k);
  return q->error ? NULL : kl_aff_addc(d->p, q, carry);
}

static const kl_aff *simplify_floor(kl_dom *d, const kl_aff *e, int64_t k) {
  kl_span64 s = kl_dom_range(d, e);
  if (!e->partial && s.lo > INT64_MIN && s.hi < INT64_MAX && kl_floor64(s.lo, k) == kl_floor64(s.hi, k)) {
    return kl_aff_const(d->p, kl_floor64(s.lo, k));
  }
  if (s.m > 1) {
    const kl_aff *r = without_constant(d, e, k, &s);
    if (r) return r;
  }
  kl_units u;
  int64_t last = INT64_MAX;
  bool parts = e->n > 1 && kl_aff_units(d->p, e, 0, &u) && u.n > 1;
  while (parts) { // divisors of k among the coefficients, the largest first
    int64_t g = 1;
    for (uint32_t i = 0; i < u.n; i++) {
      int64_t x = (int64_t)kl_gcd64(kl_abs64(u.u[i].coef), (uint64_t)k);
      if (x < last && x > g) g = x;
    }
    if (g == 1) break;
    const kl_aff *r = without_low(d, &u, k, g);
    if (r) return r;
    last = g;
  }
  return kl_aff_floordivc(d->p, e, k);
}

// --- other atoms --------------------------------------------------------------------------------------------------

static bool is_dominated(kl_dom *d, kl_aff_kind kind, const kl_aff *by, const kl_aff *e, bool ties) {
  if (e->partial) return false;
  const kl_aff *gap = kind == KL_AFF_MIN ? kl_aff_sub(d->p, e, by) : kl_aff_sub(d->p, by, e);
  if (gap->error) return false;
  kl_span64 s = kl_dom_range(d, gap);
  return s.lo > 0 || (s.lo == 0 && (ties || s.hi > 0));
}

static const kl_aff *simplify_extremum(kl_dom *d, const kl_aff_atom *a) {
  const kl_aff *arg[MOST_ARGUMENTS], *kept[MOST_ARGUMENTS];
  uint32_t n = 0;
  if (a->n > MOST_ARGUMENTS) return kl_aff_of(d->p, a);
  for (uint32_t i = 0; i < a->n; i++) arg[i] = simplify(d, a->arg[i]);
  for (uint32_t i = 0; i < a->n; i++) {
    bool out = false; // of arguments that are always equal the first stays
    for (uint32_t j = 0; j < n && !out; j++) out = is_dominated(d, a->kind, kept[j], arg[i], true);
    for (uint32_t j = i + 1; j < a->n && !out; j++) out = is_dominated(d, a->kind, arg[j], arg[i], false);
    if (!out) kept[n++] = arg[i];
  }
  if (n == 0) return kl_aff_of(d->p, a);
  const kl_aff *r = kept[0];
  for (uint32_t i = 1; i < n; i++) {
    r = a->kind == KL_AFF_MIN ? kl_aff_min(d->p, r, kept[i]) : kl_aff_max(d->p, r, kept[i]);
  }
  return r;
}

static const kl_aff *simplify_quotient(kl_dom *d, const kl_aff_atom *a) {
  const kl_aff *x = simplify(d, a->arg[0]), *y = simplify(d, a->arg[1]), *q = kl_aff_floordiv(d->p, x, y);
  if (q->error) return kl_aff_of(d->p, a); // a divisor of 0 is no value, and not the only one
  kl_span64 s = kl_dom_range(d, y), v = kl_dom_range(d, q);
  return (s.lo > 0 || s.hi < 0) && kl_span_is_point(&v) ? kl_aff_const(d->p, v.lo) : q;
}

static const kl_aff *simplify_atom(kl_dom *d, const kl_aff_atom *a) {
  const kl_aff *e = kl_aff_of(d->p, a);
  if (a->kind < KL_AFF_VARS) {
    kl_span64 s = kl_dom_range(d, e);
    return kl_span_is_point(&s) && !d->keep_points ? kl_aff_const(d->p, s.lo) : e;
  }
  if (a->kind == KL_AFF_FLOOR) return simplify_floor(d, simplify(d, a->arg[0]), a->k);
  if (a->kind == KL_AFF_QUOTIENT) return simplify_quotient(d, a);
  if (a->kind == KL_AFF_PRODUCT) {
    const kl_aff *r = simplify(d, a->arg[0]);
    for (uint32_t i = 1; i < a->n; i++) r = kl_aff_mul(d->p, r, simplify(d, a->arg[i]));
    return r;
  }
  return simplify_extremum(d, a);
}

// --- sums ---------------------------------------------------------------------------------------------------------

static bool only_variables(const kl_aff *e) {
  for (uint32_t i = 0; i < e->n; i++) {
    if (e->terms[i].atom->kind >= KL_AFF_VARS) return false;
  }
  return true;
}

static wide magnitude(const kl_aff *e) {
  wide n = kl_abs64(e->c);
  for (uint32_t i = 0; i < e->n; i++) n += kl_abs64(e->terms[i].coef);
  return n;
}

static bool is_simpler(const kl_aff *a, const kl_aff *b) {
  if (a->error) return false;
  return a->size != b->size ? a->size < b->size : magnitude(a) < magnitude(b);
}

// Term i, a floor, together with what its coefficient divides; or by the residue class of what it floors.
static const kl_aff *simplify_term(kl_dom *d, const kl_aff *e, uint32_t i) {
  const kl_aff_atom *a = e->terms[i].atom;
  int64_t m = e->terms[i].coef;
  const kl_aff *rest, *inner = kl_aff_unfold(d->p, e, i, &rest);
  if (inner && !e->partial) {
    kl_span64 s = kl_dom_range(d, inner);
    if (s.lo > INT64_MIN && s.hi < INT64_MAX && kl_floor64(s.lo, a->k) == kl_floor64(s.hi, a->k)) {
      const kl_aff *r = kl_aff_addmul(d->p, rest, kl_aff_const(d->p, kl_floor64(s.lo, a->k)), m);
      if (!r->error) return r;
    }
  }
  if (m % a->k != 0) return e;
  kl_span64 y = kl_dom_range(d, a->arg[0]);
  if (y.m <= 0 || y.m % a->k != 0) return e;
  const kl_aff *exact = kl_aff_addc(d->p, a->arg[0], -(y.r % a->k));
  const kl_aff *r = kl_aff_addmul(d->p, kl_aff_addmul(d->p, e, kl_aff_of(d->p, a), -m), exact, m / a->k);
  return r->error ? e : r;
}

static const kl_aff *by_equality(kl_dom *d, const kl_aff *e, const kl_fact *f) {
  for (uint32_t i = 0; i < f->e->n; i++) {
    for (uint32_t j = 0; j < e->n; j++) {
      int64_t c = f->e->terms[i].coef, x = e->terms[j].coef;
      if (f->e->terms[i].atom != e->terms[j].atom || x == INT64_MIN || x % c != 0) continue;
      const kl_aff *zero = kl_aff_addc(d->p, f->e, f->in.lo == INT64_MIN ? 0 : -f->in.lo);
      const kl_aff *r = kl_aff_addmul(d->p, e, zero, -(x / c));
      if (is_simpler(r, e)) return r;
    }
  }
  return e;
}

static const kl_aff *simplify_sum(kl_dom *d, const kl_aff *e) {
  if (e->n == 0) return e;
  kl_span64 s = kl_dom_range(d, e);
  if (kl_span_is_point(&s) && !e->partial) {
    return d->keep_points && only_variables(e) ? e : kl_aff_const(d->p, s.lo);
  }
  for (uint32_t i = 0; i < e->n && e->n <= KL_MOST_UNITS; i++) {
    if (e->terms[i].atom->kind != KL_AFF_FLOOR) continue;
    const kl_aff *r = simplify_term(d, e, i);
    if (r != e) return r;
  }
  for (uint32_t i = 0; i < d->nfacts; i++) {
    const kl_fact *f = &d->facts[i];
    if (e->partial || !kl_span_is_point(&f->in)) continue;
    const kl_aff *r = by_equality(d, e, f);
    if (r != e) return r;
  }
  return e;
}

static const kl_aff *rebuild(kl_dom *d, const kl_aff *e) {
  kl_adder sum;
  kl_adder_open(&sum, e->c);
  for (uint32_t i = 0; i < e->n; i++) kl_adder_add(d->p, &sum, simplify_atom(d, e->terms[i].atom), e->terms[i].coef);
  return kl_adder_sum(d->p, &sum);
}

static void remember(kl_dom *d, const kl_aff *e, const kl_aff *simple) {
  kl_note *note = kl_aff_note(d->p, e);
  note->simple_at = d->stamp;
  note->simple = simple;
}

// What leaves int64 on the way leaves the expression as it was.
static const kl_aff *simplify(kl_dom *d, const kl_aff *e) {
  if (e->n == 0) return e;
  if (kl_aff_note(d->p, e)->simple_at == d->stamp) return kl_aff_note(d->p, e)->simple;
  const kl_aff *s = e;
  for (int i = 0; i < MOST_ROUNDS; i++) {
    const kl_aff *r = rebuild(d, s);
    if (!r->error) r = simplify_sum(d, r);
    if (r->error || r == s) break;
    s = r;
    if (kl_aff_note(d->p, s)->simple_at == d->stamp && kl_aff_note(d->p, s)->simple == s) break;
  }
  remember(d, s, s);
  remember(d, e, s);
  return s;
}

// --- what may have no value -----------------------------------------------------------------------------------------

enum { MOST_DIVISORS = 64, MOST_VISITS = 1 << 12 };

typedef struct divisors {
  const kl_aff *of[MOST_DIVISORS]; // simplified; those that may be 0
  uint32_t n, visits;
} divisors;

// False where there are too many to tell.
static bool collect(kl_dom *d, const kl_aff *e, divisors *out) {
  if (!e->partial) return true;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (!a->partial) continue;
    if (++out->visits > MOST_VISITS) return false;
    for (uint32_t j = 0; j < a->n; j++) {
      if (!collect(d, a->arg[j], out)) return false;
    }
    if (a->kind != KL_AFF_QUOTIENT) continue;
    const kl_aff *y = simplify(d, a->arg[1]);
    kl_span64 s = kl_dom_range(d, y);
    if (s.lo > 0 || s.hi < 0) continue;
    bool known = false;
    for (uint32_t j = 0; j < out->n && !known; j++) known = out->of[j] == y;
    if (known) continue;
    if (out->n == MOST_DIVISORS) return false;
    out->of[out->n++] = y;
  }
  return true;
}

// Terms that cancel and factors of 0 take divisors with them: every one of `before` that may be 0 must be in `after`.
static bool keeps_divisors(kl_dom *d, const kl_aff *before, const kl_aff *after) {
  divisors x = {.n = 0}, y = {.n = 0};
  if (before == after || !before->partial) return true;
  if (!collect(d, before, &x) || !collect(d, after, &y)) return false;
  for (uint32_t i = 0; i < x.n; i++) {
    bool found = false;
    for (uint32_t j = 0; j < y.n && !found; j++) found = x.of[i] == y.of[j];
    if (!found) return false;
  }
  return true;
}

const kl_aff *kl_dom_simplify(kl_dom *d, const kl_aff *e) {
  const kl_aff *s = simplify(d, e);
  return keeps_divisors(d, e, s) ? s : e;
}
