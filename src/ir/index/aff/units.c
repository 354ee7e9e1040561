// Finding the mods of a sum again.
//
// m * (x mod b) is m*x - m*b*floor(x/b). So a floor f = floor(y/k) with coefficient c stands for a mod if, for a factor
// b of k, c = -m*b and the sum holds m*x for x = floor(y / (k/b)). With b = k, x is y itself; with another b, x is a
// digit's floor, which the sum must hold as well. A coefficient of the other sign stands for the mod of the mirror:
// floor(y/k) = -floor((-y + k - 1)/k). Where b does not divide c, some of the floor is left: 32*x - 255*floor(x/8) is
// 32*(x mod 8) + floor(x/8). A mod is taken where the rest gets no longer to write (what is left of the floor aside),
// and smaller if not shorter.

#include "ir/index/impl.h"

typedef struct sum {
  wide c;
  uint32_t n;
  kl_aff_term t[KL_MOST_UNITS];
} sum;

static uint64_t cost(const sum *s) {
  uint64_t n = s->n + (s->c != 0);
  for (uint32_t i = 0; i < s->n; i++) n += s->t[i].atom->size;
  return n;
}

static wide magnitude(const sum *s) {
  wide n = 0;
  for (uint32_t i = 0; i < s->n; i++) n += kl_abs64(s->t[i].coef);
  return n;
}

// out = s with coefficient `left` for its term `term`, minus m*x. False where it does not fit.
static bool without(const sum *s, uint32_t term, wide left, const kl_aff *x, wide m, int64_t modulus, sum *out) {
  out->n = 0;
  out->c = s->c - m * x->c;
  if (out->c > (wide)1 << 100 || out->c < -((wide)1 << 100)) return false;
  for (uint32_t i = 0, j = 0; i < s->n || j < x->n;) {
    int order = i == s->n ? 1 : j == x->n ? -1 : kl_aff_atom_compare(s->t[i].atom, x->terms[j].atom);
    const kl_aff_atom *atom = order <= 0 ? s->t[i].atom : x->terms[j].atom;
    wide coef = 0;
    if (order <= 0) coef += i == term ? left : s->t[i].coef, i++;
    if (order >= 0) coef -= m * x->terms[j++].coef;
    if (modulus && coef % modulus == 0) coef = 0;
    if (!coef) continue;
    if (out->n == KL_MOST_UNITS || coef > INT64_MAX || coef < INT64_MIN) return false;
    out->t[out->n++] = (kl_aff_term){(int64_t)coef, atom};
  }
  if (modulus) out->c -= kl_floor128(out->c, modulus) * modulus;
  return true;
}

// The multiple m of (x mod b) that term i of s, with coefficient c, may stand for: c = -m*b, or what the first term of
// x has in s, if that leaves less of the floor. 0: none.
static int64_t multiple(const sum *s, uint32_t i, const kl_aff *x, int64_t b, int64_t modulus) {
  int64_t c = s->t[i].coef;
  if (c % b == 0) return c == INT64_MIN && b == 1 ? 0 : -(c / b);
  for (uint32_t j = 0; j < s->n && x->n; j++) {
    if (s->t[j].atom != x->terms[0].atom || s->t[j].coef == INT64_MIN) continue;
    if (s->t[j].coef % x->terms[0].coef != 0) continue;
    int64_t m = s->t[j].coef / x->terms[0].coef;
    wide left = (wide)c + (wide)m * b;
    if (modulus && left % modulus == 0) return m;
    return left < kl_abs64(c) && -left < (wide)kl_abs64(c) ? m : 0;
  }
  return 0;
}

typedef struct found {
  sum rest;
  uint64_t cost;
  wide magnitude;
  kl_unit unit;
} found;

// Takes the mod in the place of term i, but for `left` of it, if that is better than what was found.
static void consider(const sum *s, uint32_t i, wide left, const kl_unit *u, int64_t modulus, found *best) {
  sum rest;
  if (!without(s, i, left, u->sub, u->coef, modulus, &rest)) return;
  uint64_t c = cost(&rest) + 1 + u->sub->size - (left != 0);
  wide size = magnitude(&rest) + kl_abs64(u->coef);
  if (c > best->cost || (c == best->cost && size >= best->magnitude)) return;
  *best = (found){rest, c, size, *u};
}

// Term i of s as the mod of floor(y / a), k = a*b, and of its mirror.
static void try_digit(kl_affs *p, const sum *s, uint32_t i, int64_t a, int64_t modulus, found *best) {
  const kl_aff_atom *f = s->t[i].atom;
  int64_t b = f->k / a;
  const kl_aff *x = a == 1 ? f->arg[0] : kl_aff_floordivc(p, f->arg[0], a);
  int64_t m = multiple(s, i, x, b, modulus);
  wide left = (wide)s->t[i].coef + (wide)m * b;
  if (!m) return;
  consider(s, i, left, &(kl_unit){m, NULL, x, b}, modulus, best);
  const kl_aff *mirror = kl_aff_addmul(p, kl_aff_const(p, b - 1), x, -1);
  if (m != INT64_MIN && !mirror->error) consider(s, i, left, &(kl_unit){-m, NULL, mirror, b}, modulus, best);
}

static bool take_mod(kl_affs *p, sum *s, int64_t modulus, kl_unit *unit) {
  found best = {.cost = cost(s), .magnitude = magnitude(s)};
  for (uint32_t i = s->n; i-- > 0;) {
    const kl_aff_atom *f = s->t[i].atom;
    if (f->kind != KL_AFF_FLOOR) continue;
    try_digit(p, s, i, 1, modulus, &best);
    for (uint32_t j = 0; j < s->n; j++) {
      const kl_aff_atom *g = s->t[j].atom;
      if (j != i && g->kind == KL_AFF_FLOOR && g->k < f->k && f->k % g->k == 0) {
        try_digit(p, s, i, g->k, modulus, &best);
      }
    }
  }
  if (!best.unit.b) return false;
  *s = best.rest;
  *unit = best.unit;
  return true;
}

bool kl_aff_units(kl_affs *p, const kl_aff *e, int64_t modulus, kl_units *out) {
  sum s = {.c = e->c, .n = e->n};
  out->n = 0;
  out->c = e->c;
  if (e->n > KL_MOST_UNITS) return false;
  bool floors = false;
  for (uint32_t i = 0; i < e->n; i++) {
    s.t[i] = e->terms[i];
    floors = floors || e->terms[i].atom->kind == KL_AFF_FLOOR;
  }
  while (floors && out->n + s.n <= KL_MOST_UNITS && out->n < KL_MOST_UNITS && take_mod(p, &s, modulus, &out->u[out->n]))
    out->n++;
  if (out->n + s.n > KL_MOST_UNITS) return false;
  for (uint32_t i = 0; i < s.n; i++) out->u[out->n++] = (kl_unit){s.t[i].coef, s.t[i].atom, NULL, 0};
  out->c = s.c;
  return true;
}

const kl_aff *kl_unit_value(kl_affs *p, const kl_unit *u) {
  return u->atom ? kl_aff_of(p, u->atom) : kl_aff_modc(p, u->sub, u->b);
}
