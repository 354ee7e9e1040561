// Simplifying maps: constraints, bounds, results.
//
// Rules for a constraint e in [L, U], beside those for expressions (k > 0; other constraints may be used, never
// itself):
//   e + c in [L, U]            e in [L-c, U-c]
//   k*e in [L, U]              e in [ceil(L/k), floor(U/k)]                     k divides every coefficient
//   -e in [L, U]               e in [-U, -L]                                    so that the first coefficient is above
//   0 floor(y/k) + g in [L, U]   y + k*g in [k*L, k*U + k-1] (y + c) mod b in [L, U]    y mod b in [L', U'], or the
//   least interval from 0 where that would wrap around (a*v) mod b in [r, r]      v mod b in [r/a, r/a] v a variable, a
//   prime to b min(a, b) in [L, U]        a in [L, ...], b in [L, ...], and the upper bound if not implied; max alike
//   e mod b = r, e mod c = s   e mod lcm(b, c) = t, or nothing                  the Chinese remainder theorem
//   implied by bounds and the other constraints: dropped; excluded by them: the map is empty
// Bounds of dims and ranges are then the tightest that each constraint by itself gives, up to residue classes, to a
// fixed point; where none is reached soon, they stay as they were.

#include "ir/index/decide/solve.h"
#include <stdlib.h>

enum { MOST_ROUNDS = 12, MOST_SWEEPS = 24, MOST_FACTS = 128, EMPTINESS_QUOTA = 1 << 10 };

// e in `in`; where it fixes a residue class, e is sub mod b.
typedef struct entry {
  kl_constraint c;
  const kl_aff *sub;
  int64_t b;
} entry;

typedef struct work {
  kl_affs *p;
  kl_ctx *cx;
  kl_map m; // bounds so far; results not yet
  kl_map_var *vars[KL_AFF_VARS];
  VEC(entry) list;
  VEC(entry) made;    // what one constraint becomes
  VEC(kl_fact) facts; // of dom
  kl_dom dom;
  bool empty;
} work;

// --- the domain ---------------------------------------------------------------------------------------------------

static void add_fact(work *w, const kl_aff *e, kl_span64 in) {
  in.lo = in.lo == INT64_MIN || __builtin_sub_overflow(in.lo, e->c, &in.lo) ? INT64_MIN : in.lo;
  in.hi = in.hi == INT64_MAX || __builtin_sub_overflow(in.hi, e->c, &in.hi) ? INT64_MAX : in.hi;
  if (in.m > 1) in.r = (int64_t)(((wide)in.r - e->c % in.m + in.m) % in.m);
  if (in.m == 0) in = (kl_span64){in.lo, in.hi, 0, in.lo};
  VEC_PUSH(w->cx, &w->facts, (kl_fact){kl_aff_addc(w->p, e, -e->c), in});
}

// What bounds and constraints say, without constraint `skip`; with `plain` what bounds alone say.
static void open_domain(work *w, uint32_t skip, bool plain) {
  kl_dom *d = &w->dom;
  d->p = w->p;
  d->empty = false;
  w->facts.n = 0;
  for (int k = 0; k < KL_AFF_VARS; k++) {
    d->n[k] = w->m.nvars[k];
    for (uint32_t i = 0; i < d->n[k]; i++) d->vars[k][i] = kl_span_of(w->vars[k][i].in);
  }
  for (uint32_t i = 0; i < w->list.n && i < MOST_FACTS && !plain; i++) {
    const entry *x = &w->list.p[i];
    if (i == skip || x->c.e->error) continue;
    kl_span64 class = {INT64_MIN, INT64_MAX, x->b, x->c.in.lo};
    const kl_aff_atom *v = x->sub ? kl_aff_is_var(x->sub) : NULL;
    const kl_aff_atom *own = kl_aff_is_var(x->c.e); // a runtime variable, on a condition
    if (own)
      kl_span_meet(&d->vars[own->kind][own->var], x->c.in, 1, 0);
    else if (x->c.e->c != INT64_MIN)
      add_fact(w, x->c.e, kl_span_of(x->c.in));
    if (own && d->vars[own->kind][own->var].lo > d->vars[own->kind][own->var].hi) d->empty = true;
    if (v)
      kl_span_meet(&d->vars[v->kind][v->var], (kl_interval){INT64_MIN, INT64_MAX}, class.m, class.r);
    else if (x->sub && x->sub->c != INT64_MIN)
      add_fact(w, x->sub, class);
    if (v && d->vars[v->kind][v->var].lo > d->vars[v->kind][v->var].hi) d->empty = true;
  }
  d->facts = w->facts.p;
  d->nfacts = (uint32_t)w->facts.n;
  d->stamp = kl_affs_stamp(w->p);
  w->empty = w->empty || d->empty;
}

// --- one constraint -----------------------------------------------------------------------------------------------

static int64_t lower(wide v) {
  return v < INT64_MIN ? INT64_MIN : v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

// Bounds that were moved, of which an end of int64 would say that there is none. False, and nothing is changed, where
// one leaves int64.
static bool take_bounds(kl_interval *in, wide lo, wide hi) {
  bool fits = (in->lo == INT64_MIN || (lo > INT64_MIN && lo <= INT64_MAX)) &&
              (in->hi == INT64_MAX || (hi < INT64_MAX && hi >= INT64_MIN));
  if (!fits) return false;
  *in = (kl_interval){in->lo == INT64_MIN ? INT64_MIN : (int64_t)lo, in->hi == INT64_MAX ? INT64_MAX : (int64_t)hi};
  return true;
}

static bool shift(kl_interval *in, int64_t c) { // v + c in `in`: v
  return take_bounds(in, (wide)in->lo - c, (wide)in->hi - c);
}
static bool negate(kl_interval *in) {
  kl_interval turned = {in->hi == INT64_MAX ? INT64_MIN : 0, in->lo == INT64_MIN ? INT64_MAX : 0};
  if (!take_bounds(&turned, -(wide)in->hi, -(wide)in->lo)) return false;
  *in = turned;
  return true;
}
static kl_interval divided(kl_interval in, int64_t k) { // k*v in `in`: v
  return (kl_interval){in.lo == INT64_MIN ? INT64_MIN : (int64_t)-kl_floor128(-(wide)in.lo, k),
                       in.hi == INT64_MAX ? INT64_MAX : kl_floor64(in.hi, k)};
}

// sub mod b in `in`, as one of the arcs from `first` of `length` values: with the sign and shift that are normal.
static entry normal_mod(kl_affs *p, const kl_aff *sub, int64_t b, kl_interval in) {
  int64_t length = in.hi - in.lo + 1;
  wide first = (wide)in.lo - sub->c;
  sub = kl_aff_addc(p, sub, -sub->c);
  if (sub->n && sub->terms[0].coef < 0) {
    sub = kl_aff_mulc(p, sub, -1);
    first = -(first + length - 1);
  }
  const kl_aff_term *t = sub->terms;
  if (length == 1 && sub->n == 1 && t->coef != 1 && kl_gcd64(kl_abs64(t->coef), (uint64_t)b) == 1) {
    int64_t m, r; // a*v = first mod b: the class of a*v as a multiple of a, divided by a
    bool fits;
    if (kl_crt(t->coef, 0, b, (int64_t)(first - kl_floor128(first, b) * b), &m, &r, &fits) && fits) {
      first = r / t->coef;
      sub = kl_aff_of(p, t->atom);
    }
  }
  int64_t at = (int64_t)(first - kl_floor128(first, b) * b);
  entry x = {.c.in = {at, at + length - 1}, .b = b};
  if (at > b - length) { // would wrap around
    sub = kl_aff_addc(p, sub, b - at);
    x.c.in = (kl_interval){0, length - 1};
  }
  x.sub = sub;
  x.c.e = kl_aff_modc(p, sub, b);
  return x;
}

// One mod alone? Then its sub and b, and `in` for it.
static bool is_mod(kl_affs *p, const kl_aff *e, kl_interval *in, const kl_aff **sub, int64_t *b) {
  kl_units u;
  if (e->n < 2 || !kl_aff_units(p, e, 0, &u) || u.n != 1 || u.u[0].atom || u.c > INT64_MAX || u.c < INT64_MIN) {
    return false;
  }
  if (!shift(in, (int64_t)u.c)) return false;
  int64_t m = u.u[0].coef;
  if (m == INT64_MIN) return false;
  if (m < 0 && !negate(in)) return false;
  *in = divided(*in, m < 0 ? -m : m);
  *sub = u.u[0].sub;
  *b = u.u[0].b;
  if (in->lo < 0) in->lo = 0;
  if (in->hi > *b - 1) in->hi = *b - 1;
  return true;
}

static void make(work *w, const kl_aff *e, kl_interval in);

// The floor with coefficient 1 or -1 and the largest divisor, unfolded; NULL if there is none.
static const kl_aff *unfolded(kl_affs *p, const kl_aff *e, kl_interval *in) {
  const kl_aff_term *f = NULL;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_term *t = &e->terms[i];
    if (t->atom->kind == KL_AFF_FLOOR && (t->coef == 1 || t->coef == -1)) f = t;
  }
  if (!f) return NULL;
  const kl_aff_atom *a = f->atom;
  const kl_aff *g = kl_aff_mulc(p, kl_aff_addmul(p, e, kl_aff_of(p, a), -f->coef), f->coef);
  const kl_aff *r = kl_aff_addmul(p, a->arg[0], g, a->k);
  kl_interval v = *in;
  if (r->error || (f->coef < 0 && !negate(&v)) || !take_bounds(&v, (wide)v.lo * a->k, (wide)v.hi * a->k + a->k - 1))
    return NULL;
  *in = v;
  return r;
}

// min(...) >= L is every argument >= L. The other side stays where the arguments do not imply it.
static bool split_extremum(work *w, const kl_aff *e, kl_interval in) {
  if (e->n != 1 || e->terms[0].coef != 1 || e->c != 0) return false;
  const kl_aff_atom *a = e->terms[0].atom;
  bool least = a->kind == KL_AFF_MIN;
  if (!least && a->kind != KL_AFF_MAX) return false;
  kl_interval side = least ? (kl_interval){in.lo, INT64_MAX} : (kl_interval){INT64_MIN, in.hi};
  for (uint32_t i = 0; i < a->n; i++) make(w, a->arg[i], side);
  in = least ? (kl_interval){INT64_MIN, in.hi} : (kl_interval){in.lo, INT64_MAX};
  if (in.lo > INT64_MIN || in.hi < INT64_MAX) VEC_PUSH(w->cx, &w->made, (entry){.c = {e, in}});
  return true;
}

static bool covers(kl_interval in, const kl_span64 *s) {
  return in.lo <= s->lo && s->hi <= in.hi;
}

// e in `in` in normal form, into w->made.
static void make(work *w, const kl_aff *e, kl_interval in) {
  const kl_aff *sub;
  int64_t b;
  for (;;) {
    const kl_aff *simple = kl_dom_simplify(&w->dom, e);
    e = simple;
    kl_span64 s = kl_dom_range(&w->dom, e);
    if (s.lo > in.hi || s.hi < in.lo || in.lo > in.hi) {
      w->empty = true;
      return;
    }
    if (covers(in, &s) && !e->partial) return;
    if (e->c == INT64_MIN || !shift(&in, e->c)) break;
    e = kl_aff_addc(w->p, e, -e->c);
    int64_t g = lower(kl_aff_content(e));
    if (g == INT64_MAX || e->terms[0].coef == INT64_MIN) break;
    if (e->terms[0].coef < 0) {
      const kl_aff *minus = kl_aff_mulc(w->p, e, -1);
      if (minus->error || !negate(&in)) break;
      e = minus;
    }
    if (g > 1) {
      in = divided(in, g);
      kl_aff_term *t = KL_NEW_N(w->p->arena, kl_aff_term, e->n);
      for (uint32_t i = 0; i < e->n; i++) t[i] = (kl_aff_term){e->terms[i].coef / g, e->terms[i].atom};
      e = kl_aff_sum(w->p, 0, t, e->n);
    }
    const kl_aff *r = unfolded(w->p, e, &in);
    if (!r) break;
    e = r;
  }
  if (split_extremum(w, e, in)) return;
  kl_interval of_mod = in;
  if (is_mod(w->p, e, &of_mod, &sub, &b)) {
    if (of_mod.lo > of_mod.hi) {
      w->empty = true;
      return;
    }
    if (of_mod.lo == 0 && of_mod.hi == b - 1 && !e->partial) return;
    entry x = normal_mod(w->p, sub, b, of_mod);
    if (of_mod.lo != of_mod.hi) x.sub = NULL;
    if (!x.c.e->error) {
      VEC_PUSH(w->cx, &w->made, x);
      return;
    }
  }
  VEC_PUSH(w->cx, &w->made, (entry){.c = {e, in}});
}

// --- all of them --------------------------------------------------------------------------------------------------

static int by_structure(const void *a, const void *b) {
  const entry *x = a, *y = b;
  return kl_aff_compare(x->c.e, y->c.e);
}

static void meet(kl_interval *a, kl_interval b) {
  if (b.lo > a->lo) a->lo = b.lo;
  if (b.hi < a->hi) a->hi = b.hi;
}

// A constraint on a dim or range alone is a bound.
static bool as_bound(work *w, const entry *x) {
  const kl_aff_atom *v = kl_aff_is_var(x->c.e);
  if (!v || v->kind == KL_AFF_RT || v->var >= w->m.nvars[v->kind]) return false;
  kl_interval *in = &w->vars[v->kind][v->var].in;
  meet(in, x->c.in);
  if (in->lo > in->hi) w->empty = true;
  return true;
}

static void replace_entry(work *w, uint32_t i) {
  size_t tail = w->list.n - i - 1, more = w->made.n;
  VEC_RESERVE(w->cx, &w->list, w->list.n + more);
  memmove(w->list.p + i + more, w->list.p + i + 1, tail * sizeof(entry));
  if (more) memcpy(w->list.p + i, w->made.p, more * sizeof(entry));
  w->list.n = w->list.n - 1 + more;
}

// Every constraint in its simplest form where bounds and the others hold.
static void normalise_all(work *w) {
  bool plain = w->list.n > MOST_FACTS;
  if (plain) open_domain(w, 0, true);
  for (uint32_t i = 0; i < w->list.n && !w->empty;) {
    if (!plain) open_domain(w, i, false);
    entry x = w->list.p[i];
    w->made.n = 0;
    make(w, x.c.e, x.c.in);
    if (w->dom.empty) w->empty = true;
    uint32_t n = 0;
    for (uint32_t j = 0; j < w->made.n; j++) {
      if (!as_bound(w, &w->made.p[j])) w->made.p[n++] = w->made.p[j];
    }
    w->made.n = n;
    replace_entry(w, i);
    i += n;
  }
}

// a and b fix the class of one expression.
static bool join_classes(work *w, entry *a, const entry *b) {
  int64_t m, r;
  bool fits;
  if (!kl_crt(a->b, a->c.in.lo, b->b, b->c.in.lo, &m, &r, &fits)) {
    w->empty = true;
    return true;
  }
  const kl_aff *e = fits ? kl_aff_modc(w->p, a->sub, m) : NULL;
  if (!e || e->error) return false;
  *a = (entry){{e, {r, r}}, a->sub, m};
  return true;
}

static void join(work *w) {
  size_t n = 0;
  if (w->list.n > 1) qsort(w->list.p, w->list.n, sizeof *w->list.p, by_structure);
  for (size_t i = 0; i < w->list.n; i++) {
    entry x = w->list.p[i];
    bool done = n && w->list.p[n - 1].c.e == x.c.e;
    if (done) meet(&w->list.p[n - 1].c.in, x.c.in);
    if (done && w->list.p[n - 1].c.in.lo > w->list.p[n - 1].c.in.hi) w->empty = true;
    for (size_t j = 0; j < n && n <= MOST_FACTS && !done && x.sub; j++) {
      done = w->list.p[j].sub == x.sub && join_classes(w, &w->list.p[j], &x);
    }
    if (!done) w->list.p[n++] = x;
  }
  w->list.n = n;
  if (n > 1) qsort(w->list.p, n, sizeof *w->list.p, by_structure);
}

// --- bounds of variables ------------------------------------------------------------------------------------------

static bool tighten(work *w, const kl_aff *e, kl_interval in, unsigned depth);

// coef * atom in `in`.
static bool tighten_atom(work *w, const kl_aff_atom *a, kl_interval in, unsigned depth) {
  if (a->kind == KL_AFF_DIM || a->kind == KL_AFF_RANGE) {
    if (a->var >= w->m.nvars[a->kind]) return false;
    kl_span64 *s = &w->dom.vars[a->kind][a->var], before = *s;
    kl_span_meet(s, in, 1, 0);
    if (s->lo > s->hi) {
      w->empty = true;
      *s = before;
      return false;
    }
    return s->lo != before.lo || s->hi != before.hi;
  }
  kl_span64 s = kl_dom_range(&w->dom, kl_aff_of(w->p, a));
  if (covers(in, &s) || depth > 16) return false;
  if (a->kind == KL_AFF_FLOOR) {
    wide lo = in.lo == INT64_MIN ? INT64_MIN : (wide)in.lo * a->k,
         hi = in.hi == INT64_MAX ? INT64_MAX : (wide)in.hi * a->k + a->k - 1;
    return tighten(w, a->arg[0], (kl_interval){lower(lo), lower(hi)}, depth + 1);
  }
  bool changed = false;
  if (a->kind == KL_AFF_MIN || a->kind == KL_AFF_MAX) {
    kl_interval side = a->kind == KL_AFF_MIN ? (kl_interval){in.lo, INT64_MAX} : (kl_interval){INT64_MIN, in.hi};
    for (uint32_t i = 0; i < a->n; i++) changed = tighten(w, a->arg[i], side, depth + 1) || changed;
  }
  return changed;
}

// The interval that is left for coef * x where e = coef * x + rest in `in`.
static kl_interval left_for(kl_interval in, const kl_span64 *rest, int64_t coef) {
  wide lo = in.lo == INT64_MIN || rest->hi == INT64_MAX ? INT64_MIN : (wide)in.lo - rest->hi;
  wide hi = in.hi == INT64_MAX || rest->lo == INT64_MIN ? INT64_MAX : (wide)in.hi - rest->lo;
  kl_interval v = {lower(lo), lower(hi)};
  if (coef < 0 && !negate(&v)) return (kl_interval){INT64_MIN, INT64_MAX};
  return divided(v, coef < 0 ? -coef : coef);
}

static bool tighten(work *w, const kl_aff *e, kl_interval in, unsigned depth) {
  bool changed = false;
  kl_units u;
  bool units = kl_aff_units(w->p, e, 0, &u);
  uint32_t n = units ? u.n : 0;
  bool mods = false;
  for (uint32_t i = 0; i < n; i++) mods = mods || !u.u[i].atom;
  for (uint32_t i = 0; i < n && mods && !w->empty; i++) { // a mod takes 0..b-1 whatever it is of
    int64_t c = u.u[i].coef;
    if (!u.u[i].atom || c == INT64_MIN) continue;
    kl_span64 rest = kl_dom_range(&w->dom, kl_aff_addmul(w->p, e, kl_aff_of(w->p, u.u[i].atom), -c));
    changed = tighten_atom(w, u.u[i].atom, left_for(in, &rest, c), depth) || changed;
  }
  for (uint32_t i = 0; i < e->n && e->n <= KL_MOST_UNITS && !w->empty; i++) {
    int64_t c = e->terms[i].coef;
    if (c == INT64_MIN) continue;
    const kl_aff *others = kl_aff_addmul(w->p, e, kl_aff_of(w->p, e->terms[i].atom), -c);
    if (others->error) continue;
    kl_span64 rest = kl_dom_range(&w->dom, others);
    changed = tighten_atom(w, e->terms[i].atom, left_for(in, &rest, c), depth) || changed;
  }
  return changed;
}

static void propagate(work *w) {
  open_domain(w, UINT32_MAX, w->list.n > MOST_FACTS);
  bool changed = true;
  for (int sweep = 0; changed && !w->empty; sweep++) {
    if (sweep == MOST_SWEEPS) return;
    changed = false;
    for (uint32_t i = 0; i < w->list.n && !w->empty; i++) {
      changed = tighten(w, w->list.p[i].c.e, w->list.p[i].c.in, 0) || changed;
    }
    w->dom.stamp = kl_affs_stamp(w->p);
  }
  for (int k = 0; k <= KL_AFF_RANGE && !w->empty; k++) {
    for (uint32_t i = 0; i < w->m.nvars[k]; i++) {
      w->vars[k][i].in = (kl_interval){w->dom.vars[k][i].lo, w->dom.vars[k][i].hi};
    }
  }
}

// --- the whole ----------------------------------------------------------------------------------------------------

static bool same_state(const work *w, const kl_map_var *const before[KL_AFF_VARS], const entry *list, size_t n) {
  if (n != w->list.n) return false;
  for (size_t i = 0; i < n; i++) {
    const kl_constraint *a = &list[i].c, *b = &w->list.p[i].c;
    if (a->e != b->e || a->in.lo != b->in.lo || a->in.hi != b->in.hi) return false;
  }
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < w->m.nvars[k]; i++) {
      const kl_interval *a = &before[k][i].in, *b = &w->vars[k][i].in;
      if (a->lo != b->lo || a->hi != b->hi) return false;
    }
  }
  return true;
}

// Intervals of constraints no wider than what the bounds of variables allow.
static void trim(work *w) {
  open_domain(w, UINT32_MAX, true);
  for (uint32_t i = 0; i < w->list.n; i++) {
    kl_span64 s = kl_dom_range(&w->dom, w->list.p[i].c.e);
    meet(&w->list.p[i].c.in, (kl_interval){s.lo, s.hi});
    if (w->list.p[i].c.in.lo > w->list.p[i].c.in.hi) w->empty = true;
  }
}

static void simplify_domain(work *w) {
  kl_arena *arena = w->p->arena;
  for (int round = 0; round < MOST_ROUNDS && w->list.n && !w->empty; round++) {
    const kl_map_var *before[KL_AFF_VARS];
    size_t n = w->list.n;
    entry *list = kl_arena_dup(arena, w->list.p, n * sizeof *list);
    for (int k = 0; k < KL_AFF_VARS; k++) {
      before[k] = w->m.nvars[k] ? kl_arena_dup(arena, w->vars[k], w->m.nvars[k] * sizeof **before) : NULL;
    }
    normalise_all(w);
    if (!w->empty) join(w);
    if (!w->empty) propagate(w);
    if (!w->empty) trim(w);
    if (same_state(w, before, list, n)) break;
  }
}

static const kl_map *rebuild(work *w) {
  kl_affs *p = w->p;
  kl_map r = w->m;
  kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, w->list.n + 1);
  for (uint32_t i = 0; i < w->list.n; i++) c[i] = w->list.p[i].c;
  r.constraints = c;
  r.nconstraints = (uint32_t)w->list.n;
  if (w->empty) r.state = KL_MAP_EMPTY;
  if (r.state == KL_MAP_DEFINED && r.nconstraints && kl_domain_is_empty(p, &r, EMPTINESS_QUOTA, NULL) == KL_YES)
    r.state = KL_MAP_EMPTY;
  if (r.state == KL_MAP_DEFINED) {
    const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, r.nresults + 1);
    open_domain(w, UINT32_MAX, w->list.n > MOST_FACTS);
    for (uint32_t i = 0; i < r.nresults; i++) results[i] = kl_dom_simplify(&w->dom, r.results[i]);
    if (r.nvars[KL_AFF_RT]) open_domain(w, 0, true); // constraints could bring a variable into its own index
    for (uint32_t i = 0; i < r.nvars[KL_AFF_RT]; i++) {
      kl_producer *from = &w->vars[KL_AFF_RT][i].from;
      const kl_aff **index = KL_NEW_N(p->arena, const kl_aff *, from->nindex + 1);
      for (uint32_t j = 0; j < from->nindex; j++) index[j] = kl_dom_simplify(&w->dom, from->index[j]);
      from->index = index;
    }
    r.results = results;
    if (w->dom.empty) r.state = KL_MAP_EMPTY;
  }
  return kl_map_make(p, &r);
}

const kl_map *kl_map_simplify(kl_affs *p, const kl_map *m, unsigned flags) {
  if (m->state != KL_MAP_DEFINED) return m;
  work w = {.p = p, .cx = p->cx, .m = *m};
  w.dom.keep_points = flags & KL_MAP_KEEP_POINTS;
  for (int k = 0; k < KL_AFF_VARS; k++) {
    w.vars[k] = KL_NEW_N(p->arena, kl_map_var, m->nvars[k] + 1);
    if (m->nvars[k]) memcpy(w.vars[k], m->vars[k], m->nvars[k] * sizeof *w.vars[k]);
    w.m.vars[k] = w.vars[k];
    w.dom.vars[k] = KL_NEW_N(p->arena, kl_span64, m->nvars[k] + 1);
  }
  for (uint32_t i = 0; i < m->nconstraints; i++) VEC_PUSH(w.cx, &w.list, (entry){.c = m->constraints[i]});
  simplify_domain(&w);
  const kl_map *r = rebuild(&w);
  VEC_FREE(w.cx, &w.list);
  VEC_FREE(w.cx, &w.made);
  VEC_FREE(w.cx, &w.facts);
  return r;
}

bool kl_map_result_ranges(kl_affs *p, const kl_map *m, kl_interval *out) {
  if (m->state == KL_MAP_UNDEFINED) return false;
  work w = {.p = p, .cx = p->cx, .m = *kl_map_simplify(p, m, 0)};
  if (w.m.state == KL_MAP_DEFINED) {
    for (int k = 0; k < KL_AFF_VARS; k++) {
      w.vars[k] = (kl_map_var *)w.m.vars[k]; // not written
      w.dom.vars[k] = KL_NEW_N(p->arena, kl_span64, w.m.nvars[k] + 1);
    }
    for (uint32_t i = 0; i < w.m.nconstraints; i++) {
      entry x = {.c = w.m.constraints[i]};
      kl_interval in = x.c.in;
      if (is_mod(p, x.c.e, &in, &x.sub, &x.b) && in.lo != in.hi) x.sub = NULL;
      VEC_PUSH(w.cx, &w.list, x);
    }
    open_domain(&w, UINT32_MAX, w.list.n > MOST_FACTS);
    for (uint32_t i = 0; i < m->nresults; i++) {
      kl_span64 s = kl_dom_range(&w.dom, w.m.results[i]), before = kl_dom_range(&w.dom, m->results[i]);
      kl_span_meet(&s, (kl_interval){before.lo, before.hi}, before.m, before.r);
      out[i] = (kl_interval){s.lo, s.hi};
    }
    VEC_FREE(w.cx, &w.list);
    VEC_FREE(w.cx, &w.facts);
    return true;
  }
  for (uint32_t i = 0; i < m->nresults; i++) out[i] = (kl_interval){0, -1};
  return true;
}
