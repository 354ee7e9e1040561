// exp, expm1, exp10 and logistic: e^x (cos y + i sin y), the power of two taken out until the end, so that the product
// is a number wherever it should be one. Both factors are sums of two.

#include "lower/emit/math/complex/impl.h"

#include <math.h>

// The exponents that a product with the least number may need.
static int most_exponent(const km_consts *m) {
  return (int)(2 * km_bias(m) + m->man_bits + 1);
}

static km_scaled scaled(kb *k, const km_consts *m, km_two r, kb_reg t) {
  km_two p = km_expm1_of(k, m, r), sum = km_fast_sum(k, kb_flike(k, t, 1), p.hi);
  return (km_scaled){{sum.hi, kb_fadd(k, sum.lo, p.lo)}, t};
}

km_scaled km_exp_scaled(kb *k, const km_consts *m, km_two x) {
  kb_reg hi = km_at_least(k, km_at_most(k, x.hi, ceil(most_exponent(m) * M_LN2)), m->exp_low), t;
  km_two r = km_reduce_natural(k, m, hi, km_magic_for_halves(m), &t);
  if (x.lo.v) {
    kb_reg inside = kb_fcmp(k, LLVMRealOEQ, hi, x.hi), lo = kb_select(k, inside, x.lo, kb_flike(k, hi, 0));
    r = km_sum(k, r.hi, kb_fadd(k, r.lo, lo));
  }
  return scaled(k, m, r, t);
}

// A small s is made larger by 2^64, for which n is made less; then n has two halves that are exponents of numbers. The
// first half goes to e, whose product with s loses nothing unless the whole result vanishes.
kb_reg km_scaled_product(kb *k, const km_consts *m, km_scaled e, km_two s) {
  int64_t bias = km_bias(m);
  kb_reg small = kb_fcmp(k, LLVMRealOLT, kb_fabs(k, s.hi), kb_flike(k, s.hi, ldexp(1, km_is_wide(m) ? -900 : -100)));
  s = km_times(k, s, kb_select(k, small, kb_flike(k, s.hi, 0x1p64), kb_flike(k, s.hi, 1)));
  kb_reg t = kb_fadd(k, e.t, kb_select(k, small, kb_flike(k, s.hi, -64), kb_flike(k, s.hi, 0)));
  kb_reg u = km_bits(k, km_at_most(k, t, km_magic_for_halves(m) + 2 * (double)bias));
  kb_reg first = kb_andi(k, kb_shli(k, u, m->man_bits - 1), m->inf_bits);
  kb_reg second = kb_sub(k, kb_shli(k, u, m->man_bits), first);
  km_two v = km_times(k, e.v, km_float(k, first));
  kb_reg r = km_mul_rounded(k, v, s);
  r = kb_select(k, km_is_zero(k, r), kb_fmul(k, v.hi, s.hi), r); // the sign of zero
  return kb_fmul(k, r, km_float(k, second));
}

// An infinite x beside a y that is not finite: an infinity and NaN, or two zeros.
static km_complex turned(kb *k, const km_consts *m, kb_reg x, kb_reg y, km_scaled e, km_turn a) {
  kb_reg zero = kb_flike(k, x, 0), lost = km_both(k, km_is_inf(k, x), kb_not(k, km_is_finite(k, y)));
  kb_reg above = kb_fcmp(k, LLVMRealOGT, x, zero);
  km_two sin = km_one(k, kb_select(k, above, kb_flike(k, x, (double)NAN), zero)), cos = km_one(k, kb_flike(k, x, 1));
  km_complex r = {km_scaled_product(k, m, e, km_choose_two(k, lost, cos, a.cos)),
                  km_scaled_product(k, m, e, km_choose_two(k, lost, sin, a.sin))};
  r.im = kb_select(k, km_is_zero(k, y), y, r.im);
  return r;
}

km_complex km_exp_of(kb *k, const km_consts *m, km_two x, km_two y) {
  return turned(k, m, x.hi, y.hi, km_exp_scaled(k, m, x), km_sincos(k, m, y));
}

// x less than ln 2 / 2: (e^x - 1) cos y + (cos y - 1).
static km_complex expm1_all(kb *k, const km_consts *m, km_complex z) {
  km_turn a = km_sincos(k, m, (km_two){z.im, km_none});
  km_scaled e = km_exp_scaled(k, m, (km_two){z.re, km_none});
  km_complex r = turned(k, m, z.re, z.im, e, a);
  kb_reg small = kb_fcmp(k, LLVMRealOEQ, e.t, kb_flike(k, e.t, km_magic_for_halves(m))), t;
  km_two p = km_expm1_of(k, m, km_reduce_natural(k, m, z.re, m->magic, &t));
  kb_reg low = kb_fma(k, p.hi, a.cos.lo, kb_fma(k, p.lo, a.cos.hi, a.cos_less_one));
  r.re = kb_select(k, small, kb_fma(k, p.hi, a.cos.hi, low), kb_faddi(k, r.re, -1));
  return r;
}

// 10^x, and the angle y ln 10 as a sum of two.
static km_complex exp10_all(kb *k, const km_consts *m, km_complex z) {
  kb_reg ln10 = kb_flike(k, z.re, m->ln10), t;
  kb_reg x = km_at_least(k, km_at_most(k, z.re, ceil(most_exponent(m) * M_LN2 / M_LN10)), m->exp10_low);
  km_two r = km_reduce_decimal(k, m, x, km_magic_for_halves(m), &t);
  km_two y = km_product(k, z.im, ln10);
  y.lo = kb_fma(k, z.im, kb_flike(k, z.im, m->ln10_lo), y.lo);
  // What is lost counts while it is less than a turn; and the angle of a number is a number.
  kb_reg near = kb_fcmp(k, LLVMRealOLT, kb_fabs(k, z.im), kb_flike(k, z.im, ldexp(1, (int)m->man_bits - 5)));
  y.lo = kb_select(k, near, y.lo, kb_flike(k, z.im, 0));
  double most = km_is_wide(m) ? 0x1p1023 : 0x1p127;
  y.hi = kb_select(k, km_is_finite(k, z.im), km_at_least(k, km_at_most(k, y.hi, most), -most), y.hi);
  return turned(k, m, z.re, z.im, scaled(k, m, r, t), km_sincos(k, m, y));
}

// On each side of 0 by the exponential that does not overflow, e = e^-|x| (cos y +- i sin y): 1 / (1 + e), or
// e / (1 + e) = (e (1 + e*)) / |1 + e|^2.
static km_complex logistic_all(kb *k, const km_consts *m, km_complex z) {
  kb_reg zero = kb_flike(k, z.re, 0), one = kb_flike(k, z.re, 1);
  kb_reg left = kb_fcmp(k, LLVMRealOLT, z.re, zero);
  kb_reg x = kb_select(k, left, z.re, kb_fneg(k, z.re)), y = kb_select(k, left, z.im, kb_fneg(k, z.im));
  km_complex e = km_exp_of(k, m, (km_two){x, km_none}, (km_two){y, km_none});
  kb_reg square = kb_fmul(k, e.im, e.im), right_re = kb_fadd(k, one, e.re);
  kb_reg inverse = kb_fdiv(k, one, kb_fma(k, right_re, right_re, square));
  kb_reg left_re = kb_fma(k, e.re, right_re, square);
  left_re = kb_select(k, km_is_zero(k, square), kb_fmul(k, e.re, right_re), left_re); // keeps -0
  return (km_complex){kb_fmul(k, kb_select(k, left, left_re, right_re), inverse),
                      kb_fmul(k, kb_select(k, left, e.im, kb_fneg(k, e.im)), inverse)};
}

km_complex km_complex_exponential(kb *k, kl_op op, const km_consts *m, km_complex z) {
  switch (op) {
  case KL_OP_EXPM1: return expm1_all(k, m, z);
  case KL_OP_EXP10: return exp10_all(k, m, z);
  case KL_OP_LOGISTIC: return logistic_all(k, m, z);
  default: return km_exp_of(k, m, (km_two){z.re, km_none}, (km_two){z.im, km_none});
  }
}
