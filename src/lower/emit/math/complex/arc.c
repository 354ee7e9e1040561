// asin, acos, acosh and atanh, which asinh and atan are of iz; W. Kahan's formulas ("Branch cuts for complex elementary
// functions", 1987), with which the side of a branch cut is told by the sign of a zero, and no sum loses what counts.

#include "lower/emit/math/complex/impl.h"

#include <math.h>

// With A = sqrt(1 - z) and B = sqrt(1 + z), the real parts of asin and acos are the angles of (Re A B, x) and, twice,
// of (Re B, Re A), and the imaginary ones asinh(+-Im conj(A) B). Very large z are made smaller first, where all of this
// only becomes 2^n less; then n ln 2 is added.
km_complex km_complex_arc(kb *k, kl_op op, const km_consts *m, km_complex z) {
  double far = ldexp(1, km_is_wide(m) ? 900 : 100), n = km_is_wide(m) ? 600 : 64;
  kb_reg size = km_greater(k, kb_fabs(k, z.re), kb_fabs(k, z.im)), one = kb_flike(k, size, 1);
  kb_reg huge = kb_fcmp(k, LLVMRealOGT, size, kb_flike(k, size, far)), zero = kb_flike(k, size, 0);
  kb_reg down = kb_select(k, huge, kb_flike(k, size, ldexp(1, -(int)n)), one);
  kb_reg infinite = kb_or(k, km_is_inf(k, z.re), km_is_inf(k, z.im)), zero_x = km_is_zero(k, z.re);
  kb_reg x = kb_fmul(k, z.re, down), y = kb_fmul(k, z.im, down), above = kb_fabs(k, y), re;
  km_two a_re, a_im, b_re, b_im;
  km_root_signed(k, km_sum(k, one, kb_fneg(k, x)), kb_fneg(k, y), &a_re, &a_im);
  km_root_signed(k, km_sum(k, one, x), y, &b_re, &b_im);

  km_two v = km_add_two(k, km_mul_two(k, a_re, b_im), km_neg_two(k, km_mul_two(k, a_im, b_re)));
  kb_reg im = km_expand(k, KM_ASINH, m, kb_fabs(k, km_rounded(k, v)));
  double more = n * m->ln2;
  im = kb_fadd(k, im, kb_select(k, huge, kb_flike(k, size, km_is_wide(m) ? more : (double)(float)more), zero));
  im = kb_select(k, infinite, kb_flike(k, size, (double)INFINITY), im);
  if (op == KL_OP_ASIN) {
    km_two w = km_add_two(k, km_mul_two(k, a_re, b_re), km_neg_two(k, km_mul_two(k, a_im, b_im)));
    re = km_atan2(k, x, kb_select(k, infinite, above, km_rounded(k, w)));
    return (km_complex){kb_select(k, zero_x, z.re, re), kb_fcopysign(k, im, z.im)};
  }
  re = km_atan2(k, kb_select(k, infinite, above, km_rounded(k, a_re)), kb_select(k, infinite, x, km_rounded(k, b_re)));
  re = kb_fmul(k, re, kb_select(k, infinite, one, kb_flike(k, size, 2)));
  re = kb_select(k, zero_x, kb_flike(k, size, m->half_pi[0]), re);
  if (op == KL_OP_ACOSH) return (km_complex){im, kb_fcopysign(k, re, z.im)};
  return (km_complex){re, kb_fcopysign(k, im, kb_fneg(k, z.im))};
}

// log(1 + 4 a / ((1 - a)^2 + y^2)) / 4 with a = |x|, and half the angle of ((1 - a) (1 + a) - y^2, 2 y). d = 1 - a and
// y are made smaller where their squares would be infinite, and larger next to the pole where they would vanish: there
// 1 counts for nothing beside the quotient, and the power of two becomes a multiple of ln 2.
km_complex km_complex_atanh(kb *k, const km_consts *m, km_complex z, const km_pole_distance *left) {
  int reach = km_pole_reach(m);
  int64_t bias = km_bias(m);
  kb_reg zero = kb_flike(k, z.re, 0), one = kb_flike(k, z.re, 1), a = kb_fabs(k, z.re), y = kb_fabs(k, z.im);
  km_two d = km_sum(k, one, kb_fneg(k, a));
  kb_reg size = km_greater(k, kb_fabs(k, d.hi), y);
  kb_reg large = kb_fcmp(k, LLVMRealOGT, size, kb_flike(k, size, ldexp(1, reach)));
  kb_reg small = kb_fcmp(k, LLVMRealOLT, size, kb_flike(k, size, ldexp(1, -reach)));
  kb_reg field = km_field(k, m, size, 1, 2 * bias - 1), power = km_power_down(k, m, field);
  kb_reg down = kb_select(k, large, power, one), scale = kb_select(k, small, power, down);
  kb_reg e = kb_select(k, small, kb_addi(k, field, -bias), kb_ilike(k, field, 0));
  km_two ds = km_times(k, d, scale);
  kb_reg ys = kb_fmul(k, y, scale), top = kb_fmuli(k, kb_fmul(k, a, down), 4);
  if (left) {
    kb_reg next = kb_fcmp(k, LLVMRealOLT, size, kb_flike(k, size, 0.25));
    ds = km_choose_two(k, next, left->d, ds);
    ys = kb_select(k, next, kb_fabs(k, left->y), ys);
    e = kb_select(k, next, left->e, e);
    small = kb_icmp(k, LLVMIntNE, e, kb_ilike(k, e, 0));
  }
  km_two below = km_add_two(k, km_mul_two(k, ds, ds), km_product(k, ys, ys));
  km_two t = km_times(k, km_quotient(k, km_one(k, top), below, km_inverse(k, below)), down);
  t.lo = kb_select(k, km_is_finite(k, t.hi), t.lo, zero);
  km_two less = km_sum(k, t.hi, kb_flike(k, a, -1));
  less.lo = kb_fadd(k, less.lo, t.lo);
  kb_reg pole = km_both(k, small, km_is_finite(k, t.hi));
  t = km_choose_two(k, pole, less, t);
  t.hi = kb_select(k, km_is_nan(k, t.hi), kb_flike(k, a, (double)INFINITY), t.hi); // 1 / 0
  t.hi = kb_select(k, km_is_nan(k, kb_fadd(k, a, y)), kb_flike(k, a, (double)NAN), t.hi);
  kb_reg twice = kb_sitofp(k, kb_shli(k, kb_sub(k, kb_ilike(k, e, 0), e), 1), (kb_kind)a.kind);
  kb_reg re = kb_fmuli(k, km_log1p_of(k, m, t, kb_select(k, pole, twice, zero)), 0.25);

  km_two sum = km_times(k, km_sum(k, one, a), down), high = km_product(k, kb_fneg(k, ys), kb_fmul(k, y, down));
  kb_reg flat = km_rounded(k, km_add_two(k, km_mul_two(k, ds, sum), high));
  kb_reg im = kb_fmuli(k, km_atan2(k, kb_fmul(k, kb_fmuli(k, ys, 2), down), flat), 0.5);
  kb_reg infinite = kb_or(k, km_is_inf(k, a), km_is_inf(k, y));
  kb_reg right = kb_select(k, km_is_nan(k, y), y, kb_flike(k, y, m->half_pi[0]));
  km_complex r = km_choose(k, infinite, (km_complex){zero, right}, (km_complex){re, im});
  r.re = kb_select(k, km_is_zero(k, a), a, r.re);
  return (km_complex){kb_fcopysign(k, r.re, z.re), kb_fcopysign(k, r.im, z.im)};
}
