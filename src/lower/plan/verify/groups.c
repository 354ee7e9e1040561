// Expressions over aligned groups of values of one variable, by remainders, or by bounds.
//
// In a group v = u*q + i the number i runs over 0 .. u-1, and what else there is stays. A sum moves by the variable's
// coefficient each time, if no floor in it moves. floor((y + s*i) / k) does not if y is r mod g, g divides k, and
// r + s*i stays in 0 .. g-1: y + s*i then lies between the same two multiples of g. As g serves the greatest number
// that divides k and every coefficient of y, that of i's own term times u.
//
// Nor does it if all that is no multiple of k stays in one stretch of k numbers. There i may move floors of the
// variable alone: floor(v / d) is q*u/d + floor(i / d) where d divides u.
//
// What depends on v alone is looked at group by group besides.

#include "lower/plan/verify/check.h"

static kl_wide gcd(kl_wide a, kl_wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b) {
    kl_wide t = a % b;
    a = b;
    b = t;
  }
  return a;
}

static kl_wide modulo(kl_wide a, kl_wide m) {
  kl_wide r = a % m;
  return r < 0 ? r + m : r;
}

// floor(v / u), which is q?
static bool is_group(const kl_aff_atom *a, uint32_t var, int64_t u) {
  if (a->kind != KL_AFF_FLOOR || a->k != u) return false;
  const kl_aff *e = a->arg[0];
  return e->n == 1 && e->c == 0 && e->terms[0].coef == 1 && e->terms[0].atom->kind == KL_AFF_DIM &&
         e->terms[0].atom->var == var;
}

// The first of every group is e.c modulo this; 0: it is e.c.
static kl_wide modulus(const kl_aff *e, uint32_t var, int64_t u) {
  kl_wide g = 0, of_q = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind == KL_AFF_DIM && a->var == var)
      of_q += (kl_wide)e->terms[i].coef * u;
    else if (is_group(a, var, u))
      of_q += e->terms[i].coef;
    else
      g = gcd(g, e->terms[i].coef);
  }
  return gcd(g, of_q);
}

// Is a symbol the same over a group? It says itself over which it is.
static bool is_still(const kl_body *b, uint32_t symbol, uint32_t var, int64_t u) {
  const kl_symbol *s = &b->symbols[symbol];
  return !kl_has_var(s->vars, var) || (s->uniform[var] && s->uniform[var] % u == 0);
}

typedef struct stretch {
  kl_wide lo, hi;
} stretch;

static void add_range(stretch *x, kl_wide coef, kl_wide most) {
  *(coef < 0 ? &x->lo : &x->hi) += coef * most;
}

// Does floor(e / k) stay in groups, by bounds?
static bool is_bounded(const kl_body *b, const kl_aff *e, int64_t k, uint32_t var, int64_t u) {
  stretch x = {modulo(e->c, k), modulo(e->c, k)};
  kl_wide of_group = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    const kl_aff *in = a->kind == KL_AFF_FLOOR ? a->arg[0] : NULL;
    kl_wide coef = e->terms[i].coef;
    if (in && in->n == 1 && in->c == 0 && in->terms[0].coef == 1 && in->terms[0].atom->kind == KL_AFF_DIM &&
        in->terms[0].atom->var == var && u % a->k == 0) {
      of_group += coef * (u / a->k);
      add_range(&x, coef, u / a->k - 1);
      continue;
    }
    if (a->kind != KL_AFF_DIM) return false;
    if (a->var == var) {
      of_group += coef * u;
      add_range(&x, coef, u - 1);
    } else if (coef % k) {
      add_range(&x, coef, b->vars[a->var].extent - 1);
    }
  }
  if (of_group % k) add_range(&x, of_group, b->vars[var].extent / u - 1);
  return x.lo >= 0 && x.hi < k;
}

// The atom where the variable is x; false if it depends on others.
static bool value_at(const kl_aff_atom *a, uint32_t var, int64_t x, kl_wide *out) {
  *out = x;
  if (a->kind != KL_AFF_FLOOR) return a->kind == KL_AFF_DIM && a->var == var;
  kl_wide sum = a->arg[0]->c, term;
  for (uint32_t i = 0; i < a->arg[0]->n; i++) {
    if (!value_at(a->arg[0]->terms[i].atom, var, x, &term)) return false;
    sum += a->arg[0]->terms[i].coef * term;
  }
  *out = (sum - modulo(sum, a->k)) / a->k;
  return true;
}

enum { MOST_LOOKED_AT = 1024 };

static bool stays_as_seen(const kl_body *b, const kl_aff_atom *a, uint32_t var, int64_t u) {
  kl_wide first = 0, at;
  if (b->vars[var].extent > MOST_LOOKED_AT) return false;
  for (int64_t x = 0; x < b->vars[var].extent; x++) {
    if (!value_at(a, var, x, &at) || (x % u && at != first)) return false;
    first = at;
  }
  return true;
}

static bool stays(const kl_body *b, const kl_aff_atom *a, uint32_t var, int64_t u) {
  int64_t each = 0;
  if (a->kind == KL_AFF_FLOOR && is_bounded(b, a->arg[0], a->k, var, u)) return true;
  for (uint32_t i = 0; i < a->n; i++) {
    if (!kl_spread(b, a->arg[i], var, u, &each) || (each && a->kind != KL_AFF_FLOOR))
      return stays_as_seen(b, a, var, u);
  }
  if (!each) return true;
  kl_wide g = gcd(a->k, modulus(a->arg[0], var, u)), last = modulo(a->arg[0]->c, g) + (kl_wide)each * (u - 1);
  return (last >= 0 && last < g) || stays_as_seen(b, a, var, u);
}

bool kl_spread(const kl_body *b, const kl_aff *e, uint32_t var, int64_t u, int64_t *each) {
  *each = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind == KL_AFF_DIM && a->var == var) *each = e->terms[i].coef;
    if (a->kind == KL_AFF_RT && !is_still(b, a->var - KL_FIRST_SYMBOL, var, u)) return false;
    if (a->kind >= KL_AFF_VARS && !stays(b, a, var, u)) return false;
  }
  return true;
}

// Has lo .. hi a number that is r mod m, or for m = 0 is r?
static bool meets(kl_wide m, kl_wide r, kl_wide lo, kl_wide hi) {
  if (lo > hi) return false;
  return m ? lo + modulo(r - lo, m) <= hi : r >= lo && r <= hi;
}

// It changes in a group where the first lies so near one of the ends that the last lies behind it.
bool kl_same_over(const kl_body *b, const kl_guard *g, uint32_t var, int64_t u) {
  int64_t each;
  if (!kl_spread(b, g->expr, var, u, &each)) return false;
  if (!each) return true;
  kl_interval in = kl_dom_interval(b->domain, g->expr);
  kl_wide way = (kl_wide)each * (u - 1), glo = g->lo, ghi = g->hi;
  kl_wide lo[2] = {glo - way, ghi - way + 1}, hi[2] = {glo - 1, ghi};
  if (way < 0) {
    lo[0] = glo, hi[0] = glo - way - 1;
    lo[1] = ghi + 1, hi[1] = ghi - way;
  }
  kl_wide m = modulus(g->expr, var, u);
  for (int side = 0; side < 2; side++) {
    kl_wide from = lo[side] > in.lo ? lo[side] : in.lo, to = hi[side] < in.hi ? hi[side] : in.hi;
    if (meets(m, g->expr->c, from, to)) return false;
  }
  return true;
}
