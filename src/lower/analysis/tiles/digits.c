// Ways to take consecutive values apart into digits. The digits of a tile are a box where, for every divisor, the tile
// is a part of one of its multiples' stretch or is made of whole ones. Else the values are a first stretch, whole ones
// and a last one, each a box or taken apart further: at most 2^n - 1 boxes for n digits.
#include "lower/analysis/tiles/impl.h"

typedef struct splitter {
  tiler *t;
  uint32_t n; // digits
  int64_t k[TILE_MOST_LEVELS + 1];
  VEC(tile_digits) out;
} splitter;

static int64_t radix(const splitter *s, uint32_t l) {
  return s->k[l + 1] / s->k[l];
}

static bool multiple(const tile_axis *a, int64_t k) {
  return a->aligned && a->align % k == 0;
}

// Do all values lie between two multiples of k? Known where the tile is aligned to a divisor of k that is its size.
static bool within(const tile_axis *a, int64_t k) {
  if (!is_const(a->n)) return false;
  if (is_const(a->o)) {
    int64_t last, q = a->o->c / k - (a->o->c % k < 0);
    return !__builtin_add_overflow(a->o->c, a->n->c - 1, &last) && last / k - (last % k < 0) == q;
  }
  return a->n->c == 1 || (a->aligned && a->align > 0 && k % a->align == 0 && a->n->c <= a->align);
}

// floor(values / k): all of them.
static tile_axis quotient(tiler *t, const tile_axis *a, int64_t k) {
  if (k == 1) return *a;
  tile_axis q = {.o = divc(t, a->o, k), .lo = a->lo ? divc(t, a->lo, k) : NULL, .hi = a->hi ? divc(t, a->hi, k) : NULL};
  q.uncut = a->uncut;
  bool whole = multiple(a, k);
  if (within(a, k))
    q.n = num(t, 1);
  else if (whole && is_const(a->n))
    q.n = divc(t, addc(t, a->n, k - 1), k);
  else { // one more, if it begins at a stretch's end
    q.n = addc(t, divc(t, addc(t, a->n, k - 2), k), 1);
    q.hi = tile_min(t, q.hi, divc(t, addc(t, add(t, a->o, a->n), -1), k));
    q.uncut = NULL;
  }
  q.aligned = whole && is_const(a->n); // where n is no number, o is n times something, and the quotient of that
  q.align = whole ? a->align / k : 0;
  return q;
}

static tile_axis point(const kl_aff *at, tiler *t) {
  return (tile_axis){.o = at, .n = num(t, 1)};
}

static tile_axis all_of(tiler *t, int64_t n) {
  return (tile_axis){.o = num(t, 0), .n = num(t, n), .aligned = true};
}

// Digit l of one value.
static const kl_aff *digit(splitter *s, const kl_aff *value, uint32_t l) {
  const kl_aff *q = divc(s->t, value, s->k[l]);
  return l + 1 < s->n ? kl_aff_modc(s->t->p, q, radix(s, l)) : q;
}

// Is e + more, of a number 0 or 1, a multiple of k, or no bound?
static bool cut_at(const kl_aff *e, int64_t k, int64_t more) {
  return !e || (is_const(e) && (e->c % k + more) % k == 0);
}

// As a box, of a size that is a number: digits below the one that the tile is a part of are whole, those above have one
// value. What the tile is cut to must not cut lower digits.
static bool as_box(splitter *s, const tile_axis *a, tile_digits *d) {
  tiler *t = s->t;
  uint32_t part = 0;
  if (!is_const(a->n)) return false;
  for (uint32_t l = 1; l < s->n; l++) {
    int64_t k = s->k[l];
    if (within(a, k)) continue;
    if (part != l - 1 || a->n->c % k || !multiple(a, k) || !cut_at(a->lo, k, 0) || !cut_at(a->hi, k, 1)) return false;
    part = l;
  }
  for (uint32_t l = 0; l < s->n; l++) {
    if (l < part)
      d->at[l] = all_of(t, radix(s, l));
    else if (l > part)
      d->at[l] = point(digit(s, a->o, l), t);
  }
  tile_axis *p = &d->at[part];
  const kl_aff *before = num(t, 0);
  *p = quotient(t, a, s->k[part]);
  if (part + 1 < s->n) before = mulc(t, divc(t, a->o, s->k[part + 1]), radix(s, part));
  p->o = sub(t, p->o, before);
  if (p->lo) p->lo = sub(t, p->lo, before);
  if (p->hi) p->hi = sub(t, p->hi, before);
  if (part + 1 < s->n) p->aligned = false;
  return true;
}

// A box of a size that is not known yet: the conditions for it are asked for.
static void ask_for_box(splitter *s, const tile_axis *a, tile_digits *d) {
  tiler *t = s->t;
  for (uint32_t l = 1; l < s->n; l++) {
    int64_t k = s->k[l], shift = a->aligned ? gcd64(a->align, k) : 1;
    kl_constraint any[2];
    uint32_t n = 0;
    if (a->aligned && shift == k) any[n++] = (kl_constraint){kl_aff_modc(t->p, a->n, k), {0, 0}};
    any[n++] = (kl_constraint){tile_mod(t, shift, a->n), {0, 0}};
    tile_require(t, any, n, "a tile's digits are not a box");
    if (a->lo && !cut_at(a->lo, k, 0)) tile_inexact(t, "bounds cut digits of a tile");
    if (a->hi && !cut_at(a->hi, k, 1)) { // within a stretch, or tiles end there
      kl_constraint uncut[2] = {{tile_mod(t, shift, a->n), {0, 0}}, {a->uncut, {0, 0}}};
      tile_require(t, uncut, a->uncut ? 2 : 1, "bounds cut digits of a tile");
    }
  }
  for (uint32_t l = 0; l < s->n; l++) {
    bool top = l + 1 == s->n;
    const kl_aff *n = divc(t, addc(t, a->n, s->k[l] - 1), s->k[l]);
    d->at[l] = (tile_axis){.o = digit(s, a->o, l), .n = top ? n : kl_aff_min(t->p, n, num(t, radix(s, l)))};
    d->at[l].aligned = a->aligned && a->align == 0; // where the conditions hold
    d->at[l].overhang = a->overhang;
    d->at[l].uncut = a->uncut;
    d->at[l].most = top ? a->most / s->k[l] + (a->most % s->k[l] != 0) : radix(s, l);
    if (top && a->lo) d->at[l].lo = divc(t, a->lo, s->k[l]);
    if (top && a->hi) d->at[l].hi = divc(t, a->hi, s->k[l]);
    if (!top && a->hi && !cut_at(a->hi, s->k[l + 1], 1)) { // in the last stretch
      const kl_aff *before = mulc(t, divc(t, a->o, s->k[l + 1]), radix(s, l));
      d->at[l].hi = sub(t, divc(t, a->hi, s->k[l]), before);
      d->at[l].overhang = false;
    }
  }
}

// All values of lower digits, whatever the higher ones are.
static void as_hull(splitter *s, const tile_axis *a, tile_digits *d) {
  tiler *t = s->t;
  for (uint32_t l = 0; l + 1 < s->n; l++) d->at[l] = all_of(t, radix(s, l));
  d->at[s->n - 1] = quotient(t, a, s->k[s->n - 1]);
}

// Values lo .. hi, at most n of them, by digits 0 .. l; higher digits are in d. lo <= hi need not hold: then none are
// left, as cuts or a guard say.
static void split(splitter *s, const kl_aff *lo, const kl_aff *hi, int64_t n, bool whole, uint32_t l, tile_digits d) {
  tiler *t = s->t;
  kl_ctx *cx = t->cx;
  if (s->out.n > KL_TILE_MOST_BOXES) return;
  if (l == 0) {
    d.at[0] = (tile_axis){.o = lo, .n = num(t, n), .hi = hi};
    VEC_PUSH(cx, &s->out, d);
    return;
  }
  int64_t k = s->k[l];
  const kl_aff *first = divc(t, lo, k), *last = divc(t, hi, k);
  if (!whole) { // the stretch that lo lies in, up to its end or hi
    tile_digits head = d;
    const kl_aff *before = mulc(t, first, k);
    head.at[l] = point(first, t);
    split(s, sub(t, lo, before), kl_aff_min(t->p, num(t, k - 1), sub(t, hi, before)), n < k ? n : k, false, l - 1,
          head);
    n--;
  }
  if (n > k) { // whole stretches before that of hi
    tile_digits body = d;
    body.at[l] = (tile_axis){.o = whole ? first : addc(t, first, 1), .n = num(t, (n - 1) / k), .hi = addc(t, last, -1)};
    for (uint32_t i = 0; i < l; i++) body.at[i] = all_of(t, radix(s, i));
    VEC_PUSH(cx, &s->out, body);
  }
  if (n > 0) { // the stretch of hi, from its begin
    tile_digits tail = d;
    const kl_aff *other = sub(t, last, whole ? first : addc(t, first, 1));
    tail.at[l] = point(last, t);
    tail.guard = d.guard ? kl_aff_min(t->p, d.guard, other) : other;
    split(s, num(t, 0), sub(t, hi, mulc(t, last, k)), n < k ? n : k, true, l - 1, tail);
  }
}

// Conditions on a size that is not known yet are on the tile's own, so its digits begin with those that nothing uses.
static void ask(tiler *t, const tile_number *y, const tile_axis *a, tile_digits *d) {
  splitter s = {.t = t};
  uint32_t unused = y->k[0] > 1;
  if (unused) s.k[s.n++] = 1;
  for (uint32_t l = 0; l < y->nlevels; l++) s.k[s.n++] = y->k[l];
  ask_for_box(&s, a, d);
  for (uint32_t l = 0; unused && l < y->nlevels; l++) d->at[l] = d->at[l + 1];
}

uint32_t tile_split(tiler *t, const tile_number *y, const tile_axis *a, const tile_digits **out) {
  splitter s = {.t = t, .n = y->nlevels};
  tile_axis low = quotient(t, a, y->k[0]);
  tile_digits d = {0};
  for (uint32_t l = 0; l < s.n; l++) s.k[l] = y->k[l] / y->k[0];
  if (s.n == 1)
    d.at[0] = low;
  else if (!is_const(low.n) && !t->hull)
    ask(t, y, a, &d);
  else if (as_box(&s, &low, &d)) {
  } else if (t->hull) {
    tile_inexact(t, "a tile's digits are too many boxes");
    as_hull(&s, &low, &d);
  } else {
    const kl_aff *first = tile_first(t, &low), *last = tile_last(t, &low);
    split(&s, first, last, low.n->c, multiple(&low, s.k[s.n - 1]) && !low.lo, s.n - 1, d);
  }
  if (!s.out.n) VEC_PUSH(t->cx, &s.out, d);
  uint32_t n = (uint32_t)s.out.n;
  *out = VEC_FREEZE(t->cx, t->arena, &s.out);
  return n <= KL_TILE_MOST_BOXES ? n : 0;
}
