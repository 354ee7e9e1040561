// x^y as exp(y log |x|), where the logarithm is a sum of two with twice the kind's bits but a few, so that of the
// product as much is right as the exponential needs: under 1 ulp (what was seen: tests/emit/math.c). C99's values for
// zeros, ones, infinities and NaN.

#include "lower/emit/math/impl.h"

#include <math.h>

static km_two times(kb *k, km_two a, km_two b) {
  km_two p = km_product(k, a.hi, b.hi);
  p.lo = kb_fma(k, a.lo, b.hi, kb_fma(k, a.hi, b.lo, p.lo));
  return p;
}
static km_two constant(kb *k, kb_reg like, double hi, double lo) {
  return (km_two){kb_flike(k, like, hi), kb_flike(k, like, lo)};
}

// log(a) for a > 0 other than infinity. a = 2^n (1 + f), 1 + f in [2/3, 4/3), and log(1 + f) = 2 atanh(s) with
// s = f / (2 + f): 2 s + 2/3 s^3 as sums of two, and 2 s^5 P(s^2). Near a = 4/3 these cancel with ln 2, and F64
// multiplies what is lost by up to 709: 2/5 s^5 is a sum of two as well, before 2 s^7 P(s^2).
static km_two log_of(kb *k, const km_consts *m, kb_reg a) {
  bool wide = m->man_bits == 52;
  kb_reg small = kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, a, m->min_normal));
  kb_reg u = km_bits(k, kb_select(k, small, kb_fmuli(k, a, ldexp(1, (int)m->man_bits)), a));
  kb_reg magic = kb_select(k, small, kb_flike(k, a, -m->magic - m->man_bits), kb_flike(k, a, -m->magic));
  kb_reg n = kb_ashri(k, kb_addi(k, u, -m->two_thirds), m->man_bits);
  kb_reg f = kb_faddi(k, km_float(k, kb_sub(k, u, kb_shli(k, n, m->man_bits))), -1);
  kb_reg fn = kb_fadd(k, km_float(k, kb_add(k, n, km_bits(k, kb_flike(k, a, m->magic)))), magic);

  km_two d = km_fast_sum(k, kb_flike(k, a, 2), f), s;
  kb_reg inverse = km_reciprocal(k, d.hi);
  s.hi = kb_fmul(k, f, inverse);
  kb_reg minus = kb_fneg(k, s.hi);
  s.lo = kb_fmul(k, kb_fma(k, minus, d.lo, kb_fma(k, minus, d.hi, f)), inverse);

  km_two square = km_product(k, s.hi, s.hi);
  square.lo = kb_fma(k, kb_fadd(k, s.hi, s.hi), s.lo, square.lo);
  km_two cube = times(k, square, s), term = times(k, cube,
                                                  constant(k, a, wide ? 0x1.5555555555555p-1 : 0x1.555556p-1,
                                                           wide ? 0x1.5555555555555p-55 : -0x1.555556p-26));
  km_two whole = km_product(k, fn, kb_flike(k, a, m->ln2));
  whole.lo = kb_fma(k, fn, kb_flike(k, a, m->ln2_lo), whole.lo);
  // Each of these is less than what it is added to, unless that is 0.
  km_two sum = km_fast_sum(k, whole.hi, kb_fadd(k, s.hi, s.hi)), next = km_fast_sum(k, sum.hi, term.hi);
  kb_reg lost = kb_fadd(k, sum.lo, next.lo), tail = kb_fmul(k, cube.hi, square.hi);
  if (wide) {
    km_two fifth = times(k, cube, square), more = times(k, fifth, constant(k, a, 0.4, -0x1.999999999999ap-56));
    next = km_fast_sum(k, next.hi, more.hi);
    lost = kb_fadd(k, kb_fadd(k, lost, next.lo), more.lo);
    tail = kb_fmul(k, fifth.hi, square.hi);
  }
  tail = kb_fmul(k, tail, km_horner(k, square.hi, m->atanh));
  kb_reg low = kb_fadd(k, kb_fadd(k, tail, tail), term.lo);
  low = kb_fadd(k, kb_fma(k, s.lo, kb_flike(k, a, 2), low), whole.lo);
  return km_fast_sum(k, next.hi, kb_fadd(k, lost, low));
}

// exp of a sum of two.
static kb_reg exp_of(kb *k, const km_consts *m, km_two x) {
  if (km_is_fast(k, x.hi)) return km_fast_exp(k, x);
  kb_reg hi = km_at_least(k, km_at_most(k, x.hi, m->exp_high), m->exp_low), t;
  kb_reg inside = kb_fcmp(k, LLVMRealOEQ, hi, x.hi), lo = kb_select(k, inside, x.lo, kb_flike(k, hi, 0));
  km_two r = km_reduce_natural(k, m, hi, km_magic_for_halves(m), &t);
  r = km_sum(k, r.hi, kb_fadd(k, r.lo, lo));
  km_two p = km_expm1_of(k, m, r), sum = km_fast_sum(k, kb_flike(k, hi, 1), p.hi);
  return km_scale_by_halves(k, m, kb_fadd(k, sum.hi, kb_fadd(k, sum.lo, p.lo)), t);
}

// C99's values for negative x, 1 and infinities, where r is |x|^y.
static kb_reg special(kb *k, kb_reg x, kb_reg y, kb_reg r) {
  kb_reg zero = kb_flike(k, x, 0), one = kb_flike(k, x, 1), inf = kb_flike(k, x, (double)INFINITY);
  kb_reg half = kb_fmuli(k, y, 0.5), whole = kb_fcmp(k, LLVMRealOEQ, kb_trunc_f(k, y), y);
  kb_reg odd = kb_and(k, whole, kb_fcmp(k, LLVMRealUNE, kb_trunc_f(k, half), half));
  r = kb_select(k, odd, kb_fcopysign(k, r, x), r);
  kb_reg below = kb_and(k, kb_fcmp(k, LLVMRealOLT, x, zero), kb_fcmp(k, LLVMRealOGT, x, kb_fneg(k, inf)));
  r = kb_select(k, kb_and(k, below, kb_not(k, whole)), kb_flike(k, x, (double)NAN), r);
  kb_reg endless = kb_fcmp(k, LLVMRealOEQ, kb_fabs(k, y), inf);
  kb_reg is_one = kb_and(k, endless, kb_fcmp(k, LLVMRealOEQ, kb_fabs(k, x), one));
  is_one = kb_or(k, kb_or(k, is_one, kb_fcmp(k, LLVMRealOEQ, y, zero)), kb_fcmp(k, LLVMRealOEQ, x, one));
  return kb_select(k, is_one, one, r);
}

kb_reg km_power(kb *k, kb_reg x, kb_reg y) {
  const km_consts *m = km_consts_of(x);
  kb_reg zero = kb_flike(k, x, 0), inf = kb_flike(k, x, (double)INFINITY), a = kb_fabs(k, x);
  km_two l = log_of(k, m, a);
  l.hi = kb_select(k, kb_fcmp(k, LLVMRealOEQ, a, zero), kb_fneg(k, inf), l.hi);
  l.hi = kb_select(k, kb_fcmp(k, LLVMRealOLT, a, inf), l.hi, kb_fadd(k, a, zero)); // infinity, NaN
  km_two e = km_product(k, y, l.hi);
  e.lo = kb_fma(k, y, l.lo, e.lo);
  return special(k, x, y, exp_of(k, m, e));
}

// Without the second halves 2^-45 of the result is open where it has the range of bf16, 2^-47 in that of f16. The
// result is rounded to so many bits that what is exact, hence may be a tie, is so again. What is no tie of the type
// lies farther from one than that rounding goes: 2^-36 and 2^-42 are the least distances of bf16 and f16.
kb_reg km_power_narrow(kb *k, kb_reg x, kb_reg y, unsigned man_bits) {
  unsigned drop = man_bits > 7 ? 8 : 10;
  kb_reg l = km_expand(k, KM_LOG, &km_f64, kb_fabs(k, x)), r = km_expand(k, KM_EXP, &km_f64, kb_fmul(k, y, l));
  kb_reg u = kb_andi(k, kb_addi(k, km_bits(k, r), 1ll << (drop - 1)), -(1ll << drop));
  return special(k, x, y, km_float(k, u));
}
