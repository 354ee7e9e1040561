// What values an expression can have, given the spans of variables and facts about sums of them.
//
// A sum's span is the narrowest of: the sum of its terms' spans; that of its units, since a mod lies in 0..b-1 whatever
// it is of; a fact's span plus that of what the fact leaves over; and, for each floor with coefficient m, the span of
// m*floor((y + k*g) / k) + rest, where m*g are the terms that m divides: normal form has moved multiples of k out of
// the floor, and y + k*g may be known where its parts are not. Each is sound by itself.

#include "ir/index/impl.h"

// --- spans --------------------------------------------------------------------------------------------------------

static const kl_span64 anything = {INT64_MIN, INT64_MAX, 1, 0};

static int64_t modulo(wide a, int64_t m) {
  return (int64_t)(a - kl_floor128(a, m) * m);
}

// Moves the bounds to the nearest values of the class, and names a single value.
static void settle(kl_span64 *s) {
  if (s->m > 1) {
    if (s->lo > INT64_MIN) {
      wide lo = (wide)s->lo + modulo((wide)s->r - s->lo, s->m);
      s->lo = lo > INT64_MAX ? INT64_MAX : (int64_t)lo;
    }
    if (s->hi < INT64_MAX) {
      wide hi = (wide)s->hi - modulo((wide)s->hi - s->r, s->m);
      s->hi = hi < INT64_MIN ? INT64_MIN : (int64_t)hi;
    }
  }
  if (kl_span_is_point(s)) {
    s->m = 0;
    s->r = s->lo;
  }
}

kl_span64 kl_span_of(kl_interval in) {
  kl_span64 s = {in.lo, in.hi, 1, 0};
  settle(&s);
  return s;
}

bool kl_crt(int64_t m1, int64_t r1, int64_t m2, int64_t r2, int64_t *m, int64_t *r, bool *fits) {
  // x = r1 + m1*t, m1*t = r2 - r1 mod m2; the extended Euclid gives t.
  wide a = m1, b = m2, u = 1, v = 0;
  while (b) {
    wide q = a / b, t = a - q * b;
    a = b;
    b = t;
    t = u - q * v;
    u = v;
    v = t;
  }
  wide g = a, d = (wide)r2 - r1;
  *fits = true;
  if (d % g != 0) return false;
  wide step = m2 / g, l = (wide)m1 * step;
  if (l > INT64_MAX) {
    *fits = false;
    return true;
  }
  wide t = ((d / g) % step) * (u % step) % step;
  *m = (int64_t)l;
  *r = modulo(r1 + (wide)m1 * (t < 0 ? t + step : t), *m);
  return true;
}

void kl_span_meet(kl_span64 *s, kl_interval in, int64_t m, int64_t r) {
  if (in.lo > s->lo) s->lo = in.lo;
  if (in.hi < s->hi) s->hi = in.hi;
  if (s->lo > s->hi) return;
  if (m == 0 && (r < s->lo || r > s->hi)) {
    s->lo = 1;
    s->hi = 0;
    return;
  }
  if (m == 0) s->lo = s->hi = r;
  if (m > 1 && s->m >= 1) {
    bool fits;
    int64_t cm, cr;
    if (!kl_crt(s->m, s->r, m, r, &cm, &cr, &fits)) {
      s->lo = 1;
      s->hi = 0;
      return;
    }
    if (fits)
      s->m = cm, s->r = cr;
    else if (m > s->m)
      s->m = m, s->r = r;
  } else if (m > 1 && s->m == 0 && modulo((wide)s->r - r, m) != 0) {
    s->lo = 1;
    s->hi = 0;
    return;
  }
  settle(s);
}

// A sum of spans on its way: bounds beyond int64 are kept until the end.
typedef struct total {
  wide lo, hi;
  bool lo_open, hi_open;
  int64_t m, r; // m = 0: all so far were single values, of sum lo
} total;

static total total_of(wide c) {
  return (total){.lo = c, .hi = c};
}

// lo + coef * span.
static void total_add(total *t, int64_t coef, const kl_span64 *s) {
  bool flip = coef < 0;
  int64_t low = flip ? s->hi : s->lo, high = flip ? s->lo : s->hi;
  wide before = t->m ? t->r : t->lo;
  t->lo_open = t->lo_open || low == INT64_MIN || low == INT64_MAX;
  t->hi_open = t->hi_open || high == INT64_MIN || high == INT64_MAX;
  if (__builtin_add_overflow(t->lo, (wide)coef * low, &t->lo)) t->lo_open = true;
  if (__builtin_add_overflow(t->hi, (wide)coef * high, &t->hi)) t->hi_open = true;
  wide m = s->m ? (wide)s->m * (coef < 0 ? -(wide)coef : coef) : 0, r = (wide)coef * (s->m ? s->r : s->lo);
  if (m > INT64_MAX) m = 1;
  int64_t g = (int64_t)kl_gcd64((uint64_t)t->m, (uint64_t)m);
  if (g == 0) return; // still a single value
  t->r = (int64_t)(((wide)modulo(before, g) + modulo(r, g)) % g);
  t->m = g;
}

static kl_span64 total_span(const total *t) {
  kl_span64 s = {t->lo_open || t->lo < INT64_MIN ? INT64_MIN
                 : t->lo > INT64_MAX             ? INT64_MAX
                                                 : (int64_t)t->lo,
                 t->hi_open || t->hi > INT64_MAX ? INT64_MAX
                 : t->hi < INT64_MIN             ? INT64_MIN
                                                 : (int64_t)t->hi,
                 t->m ? t->m : 1, t->m ? t->r : 0};
  settle(&s);
  return s;
}

static kl_span64 span_floor(const kl_span64 *s, int64_t k) {
  kl_span64 q = {s->lo == INT64_MIN ? INT64_MIN : kl_floor64(s->lo, k),
                 s->hi == INT64_MAX ? INT64_MAX : kl_floor64(s->hi, k), 1, 0};
  if (s->m > 1 && s->m % k == 0) {
    q.m = s->m / k;
    q.r = kl_floor64(s->r, k);
    if (q.m == 1) q.r = 0;
  }
  settle(&q);
  return q;
}

static bool open_below(const kl_span64 *s) {
  return s->lo == INT64_MIN;
}
static bool open_above(const kl_span64 *s) {
  return s->hi == INT64_MAX;
}

static kl_span64 hull(const wide *v, uint32_t n) {
  wide lo = v[0], hi = v[0];
  for (uint32_t i = 1; i < n; i++) {
    if (v[i] < lo) lo = v[i];
    if (v[i] > hi) hi = v[i];
  }
  kl_span64 s = {lo < INT64_MIN   ? INT64_MIN
                 : lo > INT64_MAX ? INT64_MAX
                                  : (int64_t)lo,
                 hi > INT64_MAX   ? INT64_MAX
                 : hi < INT64_MIN ? INT64_MIN
                                  : (int64_t)hi,
                 1, 0};
  settle(&s);
  return s;
}

static kl_span64 span_product(const kl_span64 *a, const kl_span64 *b) {
  if (open_below(a) || open_above(a) || open_below(b) || open_above(b)) return anything;
  wide v[4] = {(wide)a->lo * b->lo, (wide)a->lo * b->hi, (wide)a->hi * b->lo, (wide)a->hi * b->hi};
  return hull(v, 4);
}

static wide floor_any(int64_t a, int64_t b) {
  return b < 0 ? kl_floor128(-(wide)a, -(wide)b) : kl_floor128(a, b);
}

static kl_span64 span_quotient(const kl_span64 *a, const kl_span64 *b) {
  if (open_below(a) || open_above(a) || open_below(b) || open_above(b)) return anything;
  if (b->lo > 0 || b->hi < 0) {
    wide v[4] = {floor_any(a->lo, b->lo), floor_any(a->lo, b->hi), floor_any(a->hi, b->lo), floor_any(a->hi, b->hi)};
    return hull(v, 4);
  }
  wide most = a->hi > -(wide)a->lo ? a->hi : -(wide)a->lo;
  wide v[2] = {-most, most};
  return hull(v, 2);
}

// --- spans of expressions -----------------------------------------------------------------------------------------

static kl_span64 range_of(kl_dom *d, const kl_aff *e, bool deep);

// Two factors alike: squares are not below zero.
static bool is_even(const kl_aff_atom *a) {
  for (uint32_t i = 0; i < a->n; i += 2) {
    if (i + 1 >= a->n || a->arg[i] != a->arg[i + 1]) return false;
  }
  return true;
}

static kl_span64 range_atom(kl_dom *d, const kl_aff_atom *a) {
  if (a->kind < KL_AFF_VARS) return a->var < d->n[a->kind] ? d->vars[a->kind][a->var] : anything;
  kl_span64 s = range_of(d, a->arg[0], true);
  if (a->kind == KL_AFF_FLOOR) return span_floor(&s, a->k);
  for (uint32_t i = 1; i < a->n; i++) {
    kl_span64 t = range_of(d, a->arg[i], true);
    if (a->kind == KL_AFF_QUOTIENT) {
      s = span_quotient(&s, &t);
    } else if (a->kind == KL_AFF_PRODUCT) {
      s = span_product(&s, &t);
    } else {
      bool least = a->kind == KL_AFF_MIN;
      s.lo = least ? (s.lo < t.lo ? s.lo : t.lo) : (s.lo > t.lo ? s.lo : t.lo);
      s.hi = least ? (s.hi < t.hi ? s.hi : t.hi) : (s.hi > t.hi ? s.hi : t.hi);
      s.m = 1;
      s.r = 0;
      settle(&s);
    }
  }
  if (a->kind == KL_AFF_PRODUCT && s.lo < 0 && is_even(a)) {
    s.lo = 0;
    settle(&s);
  }
  return s;
}

static void meet(kl_dom *d, kl_span64 *s, const kl_span64 *t) {
  kl_span64 before = *s;
  kl_span_meet(s, (kl_interval){t->lo, t->hi}, t->m, t->r);
  if (s->lo <= s->hi) return;
  d->empty = true;
  *s = before;
}

// e = t * fact + rest, the fact's terms all among those of e: the span by way of the fact. False where it is not so.
static bool by_fact(kl_dom *d, const kl_aff *e, const kl_fact *f, kl_span64 *out) {
  int64_t t = 0;
  if (f->e->n > e->n) return false;
  total sum = total_of(e->c);
  for (uint32_t i = 0, j = 0; i < e->n; i++) {
    const kl_aff_term *x = &e->terms[i];
    if (j < f->e->n && f->e->terms[j].atom == x->atom) {
      int64_t c = f->e->terms[j++].coef;
      if (t == 0) t = x->coef != INT64_MIN && x->coef % c == 0 ? x->coef / c : 0;
      if (t == 0 || (wide)t * c != x->coef) return false;
    } else {
      kl_span64 s = range_atom(d, x->atom);
      total_add(&sum, x->coef, &s);
    }
    if (i + 1 == e->n && j < f->e->n) return false;
  }
  if (t == 0) return false;
  total_add(&sum, t, &f->in);
  *out = total_span(&sum);
  return true;
}

static void by_facts(kl_dom *d, const kl_aff *e, kl_span64 *s) {
  for (uint32_t i = 0; i < d->nfacts; i++) {
    kl_span64 t;
    if (by_fact(d, e, &d->facts[i], &t)) meet(d, s, &t);
  }
}

static kl_span64 mod_span(kl_dom *d, const kl_unit *u) {
  kl_span64 s = range_of(d, u->sub, true), t = {0, u->b - 1, 1, 0};
  if (s.lo > INT64_MIN && s.hi < INT64_MAX && kl_floor64(s.lo, u->b) == kl_floor64(s.hi, u->b)) {
    wide base = (wide)kl_floor64(s.lo, u->b) * u->b;
    t.lo = (int64_t)(s.lo - base);
    t.hi = (int64_t)(s.hi - base);
  }
  int64_t g = s.m > 1 ? (int64_t)kl_gcd64((uint64_t)s.m, (uint64_t)u->b) : 1;
  if (g > 1) {
    t.m = g;
    t.r = s.r % g;
  }
  settle(&t);
  return t;
}

static void by_units(kl_dom *d, const kl_aff *e, kl_span64 *s) {
  kl_units u;
  if (!kl_aff_units(d->p, e, 0, &u)) return;
  bool any = false;
  total sum = total_of(u.c);
  for (uint32_t i = 0; i < u.n; i++) {
    any = any || !u.u[i].atom;
    kl_span64 t = u.u[i].atom ? range_atom(d, u.u[i].atom) : mod_span(d, &u.u[i]);
    total_add(&sum, u.u[i].coef, &t);
  }
  if (!any) return;
  kl_span64 t = total_span(&sum);
  meet(d, s, &t);
}

const kl_aff *kl_aff_unfold(kl_affs *p, const kl_aff *e, uint32_t i, const kl_aff **rest) {
  const kl_aff_atom *f = e->terms[i].atom;
  int64_t m = e->terms[i].coef;
  const kl_aff *y = f->arg[0];
  *rest = kl_aff_const(p, m == -1 && e->c == INT64_MIN ? e->c : e->c % m);
  const kl_aff *g = kl_aff_const(p, m == -1 && e->c == INT64_MIN ? 0 : e->c / m);
  bool any = false;
  for (uint32_t j = 0; j < e->n; j++) {
    if (j == i) continue;
    int64_t c = e->terms[j].coef;
    const kl_aff *x = kl_aff_of(p, e->terms[j].atom);
    if (c == INT64_MIN || c % m != 0) {
      *rest = kl_aff_addmul(p, *rest, x, c);
    } else {
      g = kl_aff_addmul(p, g, x, c / m);
      any = true;
    }
  }
  if (!any) return NULL;
  const kl_aff *r = kl_aff_addmul(p, y, g, f->k);
  return r->error || (*rest)->error ? NULL : r;
}

static void by_unfolding(kl_dom *d, const kl_aff *e, kl_span64 *s) {
  if (e->n > KL_MOST_UNITS) return;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff *rest, *inner;
    if (e->terms[i].atom->kind != KL_AFF_FLOOR) continue;
    inner = kl_aff_unfold(d->p, e, i, &rest);
    if (!inner) continue;
    kl_span64 t = range_of(d, inner, false), q = span_floor(&t, e->terms[i].atom->k);
    kl_span64 left = range_of(d, rest, false);
    total sum = total_of(0);
    total_add(&sum, e->terms[i].coef, &q);
    total_add(&sum, 1, &left);
    t = total_span(&sum);
    meet(d, s, &t);
  }
}

static kl_span64 compute(kl_dom *d, const kl_aff *e, bool deep) {
  total sum = total_of(e->c);
  bool floors = false;
  for (uint32_t i = 0; i < e->n; i++) {
    kl_span64 s = range_atom(d, e->terms[i].atom);
    floors = floors || e->terms[i].atom->kind == KL_AFF_FLOOR;
    total_add(&sum, e->terms[i].coef, &s);
  }
  kl_span64 s = total_span(&sum);
  if (kl_span_is_point(&s)) return s;
  by_facts(d, e, &s);
  if (floors && e->n > 1) by_units(d, e, &s);
  if (deep && floors && e->n > 1) by_unfolding(d, e, &s);
  return s;
}

// Not deep: without unfolding, which makes sums of its own.
static kl_span64 range_of(kl_dom *d, const kl_aff *e, bool deep) {
  if (e->n == 0) return kl_span_of((kl_interval){e->c, e->c});
  kl_note *note = kl_aff_note(d->p, e);
  if (note->range_at == d->stamp) return note->range;
  if (!deep && note->lite_at == d->stamp) return note->lite;
  kl_span64 s = compute(d, e, deep);
  note = kl_aff_note(d->p, e);
  if (deep)
    note->range_at = d->stamp, note->range = s;
  else
    note->lite_at = d->stamp, note->lite = s;
  return s;
}

kl_span64 kl_dom_range(kl_dom *d, const kl_aff *e) {
  return range_of(d, e, true);
}

kl_dom *kl_dom_make(kl_affs *p, uint32_t n, const kl_interval *bounds) {
  kl_dom *d = KL_NEW(p->arena, kl_dom);
  *d = (kl_dom){.p = p, .n = {n}};
  d->vars[KL_AFF_DIM] = KL_NEW_N(p->arena, kl_span64, n + 1);
  for (uint32_t i = 0; i < n; i++) d->vars[KL_AFF_DIM][i] = kl_span_of(bounds[i]);
  d->stamp = kl_affs_stamp(p);
  return d;
}

void kl_dom_add_runtime(kl_dom *d, uint32_t i, kl_interval in) {
  uint32_t n = d->n[KL_AFF_RT], room = n ? n : 1;
  if (i >= n) {
    while (room <= i) room *= 2;
    kl_span64 *vars = KL_NEW_N(d->p->arena, kl_span64, room);
    for (uint32_t k = 0; k < room; k++) vars[k] = k < n ? d->vars[KL_AFF_RT][k] : anything;
    d->vars[KL_AFF_RT] = vars;
    d->n[KL_AFF_RT] = room;
  }
  d->vars[KL_AFF_RT][i] = kl_span_of(in);
}

kl_interval kl_dom_interval(kl_dom *d, const kl_aff *e) {
  kl_span64 s = kl_dom_range(d, e);
  return (kl_interval){s.lo, s.hi};
}
