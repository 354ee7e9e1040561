// expm1, exp10, sinh and cosh. The reduced argument and the exponential less one are sums of two numbers, so that what
// is lost in taking 1, or another exponential, away again is a small part of a unit. Within 1 ulp wherever
// tests/emit/math.c looks.

#include "lower/emit/math/impl.h"

#include <math.h>

// n ln2 taken from x is exact: ln2 has as many bits as x, and what is left is less than half of it.
km_two km_reduce_natural(kb *k, const km_consts *m, kb_reg x, double magic, kb_reg *t) {
  *t = km_fmai(k, x, m->log2e, magic);
  kb_reg n = kb_faddi(k, *t, -magic), low = kb_flike(k, x, -m->ln2_lo);
  kb_reg r = kb_fma(k, n, kb_flike(k, x, -m->ln2), x), hi = kb_fma(k, n, low, r);
  return (km_two){hi, kb_fma(k, n, low, kb_fsub(k, r, hi))};
}

// exp(r) - 1 for |r| to ln 2 / 2: r + r^2 P(r), and r.lo (1 + r).
km_two km_expm1_of(kb *k, const km_consts *m, km_two r) {
  kb_reg low = kb_fma(k, r.hi, r.lo, r.lo);
  return km_fast_sum(k, r.hi, kb_fma(k, kb_fmul(k, r.hi, r.hi), km_horner(k, r.hi, m->expm1), low));
}

// 2^(n-1) p + (2^(n-1) - 1/2), twice. Tiny x are their own results.
static kb_reg expm1_all(kb *k, const km_consts *m, kb_reg x) {
  kb_reg v = km_at_least(k, km_at_most(k, x, m->exp_high), m->expm1_low), t;
  km_two p = km_expm1_of(k, m, km_reduce_natural(k, m, v, m->magic - 1, &t));
  kb_reg s = km_power_of_two(k, m, t), d = kb_faddi(k, s, -0.5), lost = kb_faddi(k, kb_fsub(k, s, d), -0.5);
  km_two sum = km_fast_sum(k, d, kb_fmul(k, s, p.hi));
  kb_reg r = kb_fadd(k, sum.hi, kb_fadd(k, sum.lo, kb_fma(k, s, p.lo, lost)));
  kb_reg tiny = kb_fcmp(k, LLVMRealOLT, kb_fabs(k, x), kb_flike(k, x, 4 * m->min_normal));
  return kb_select(k, tiny, x, kb_fadd(k, r, r));
}

km_two km_reduce_decimal(kb *k, const km_consts *m, kb_reg x, double magic, kb_reg *t) {
  *t = km_fmai(k, x, m->log2_10, magic);
  kb_reg n = kb_faddi(k, *t, -magic), low = kb_flike(k, x, -m->log10_2_lo);
  kb_reg r = kb_fma(k, n, kb_flike(k, x, -m->log10_2), x), hi = kb_fma(k, n, low, r);
  kb_reg lo = kb_fma(k, n, low, kb_fsub(k, r, hi));
  km_two y = km_product(k, hi, kb_flike(k, x, m->ln10));
  y.lo = kb_fma(k, hi, kb_flike(k, x, m->ln10_lo), kb_fma(k, lo, kb_flike(k, x, m->ln10), y.lo));
  return y;
}

static kb_reg exp10_all(kb *k, const km_consts *m, kb_reg x) {
  kb_reg t;
  x = km_at_least(k, km_at_most(k, x, m->exp10_high), m->exp10_low);
  km_two p = km_expm1_of(k, m, km_reduce_decimal(k, m, x, km_magic_for_halves(m), &t));
  km_two sum = km_fast_sum(k, kb_flike(k, x, 1), p.hi);
  return km_scale_by_halves(k, m, kb_fadd(k, sum.hi, kb_fadd(k, sum.lo, p.lo)), t);
}

// With h = 2^(n-2) and l = 2^(-n-2), and exp(r) = 1 + p, exp(-r) = 1 + q:
// (exp(x) -+ exp(-x)) / 4 = (h -+ l) + (h p -+ l q), and both p and q come from the odd and the even part of exp. Where
// n is 0, sinh is the odd part alone. l is 0 where it is too small to count.
static kb_reg hyperbolic(kb *k, const km_consts *m, kb_reg x, bool cosh) {
  kb_reg a = km_at_most(k, kb_fabs(k, x), m->cosh_high), t;
  km_two r = km_reduce_natural(k, m, a, m->magic - 2, &t);
  kb_reg s = kb_fmul(k, r.hi, r.hi);
  kb_reg odd = kb_fma(k, kb_fmul(k, r.hi, s), km_horner(k, s, m->sinh), r.lo); // beyond r
  kb_reg even = kb_fma(k, s, km_horner(k, s, m->cosh), kb_fmul(k, r.hi, r.lo));
  km_two p = km_fast_sum(k, r.hi, kb_fadd(k, odd, even));
  kb_reg q = kb_fsub(k, kb_fsub(k, even, odd), r.hi);
  kb_reg h = km_power_of_two(k, m, t), bits = km_bits(k, h);
  kb_reg other = kb_sub(k, kb_ilike(k, bits, 2 * m->one_bits - ((int64_t)4 << m->man_bits)), bits);
  kb_reg l = km_float(k, kb_smax(k, other, kb_ilike(k, bits, 0)));
  if (!cosh) l = kb_fneg(k, l);
  km_two d = km_fast_sum(k, h, l), sum = km_fast_sum(k, d.hi, kb_fmul(k, h, p.hi));
  kb_reg rest = kb_fma(k, l, q, kb_fma(k, h, p.lo, d.lo));
  kb_reg y = kb_fadd(k, sum.hi, kb_fadd(k, sum.lo, rest));
  y = kb_fadd(k, y, y);
  if (cosh) return y;
  kb_reg small = kb_fcmp(k, LLVMRealOEQ, t, kb_flike(k, t, m->magic - 2));
  return kb_fcopysign(k, kb_select(k, small, kb_fadd(k, r.hi, odd), y), x);
}

kb_reg km_exponential(kb *k, km_fn fn, const km_consts *m, kb_reg x) {
  switch (fn) {
  case KM_EXPM1: return expm1_all(k, m, x);
  case KM_EXP10: return exp10_all(k, m, x);
  default: return hyperbolic(k, m, x, fn == KM_COSH);
  }
}
