// log, log1p and power. The real part is log(1 + t) / 2, where t is the square of the number's size less 1: a sum of
// products that are all exact, summed so that nothing of it is lost where the size is next to 1.

#include "lower/emit/math/complex/impl.h"

#include <math.h>

// x^2 + y^2 + more, for x and y whose squares are neither too large nor too small to count.
static km_two squares_and(kb *k, kb_reg x, kb_reg y, kb_reg more) {
  km_two p = km_product(k, x, x), q = km_product(k, y, y);
  return km_total(k, (kb_reg[]){p.lo, q.lo, more, p.hi, q.hi}, 5);
}

// The greater part has exponent e, which is taken out of both; of a half it is left, so that sizes next to 1 come out
// exactly.
km_log_parts km_log_size(kb *k, const km_consts *m, km_complex z) {
  kb_reg x = kb_fabs(k, z.re), y = kb_fabs(k, z.im), size = km_greater(k, x, y), one = kb_flike(k, x, 1);
  int64_t bias = km_bias(m);
  kb_reg tiny = kb_fcmp(k, LLVMRealOLT, size, kb_flike(k, x, m->min_normal));
  kb_reg up = kb_select(k, tiny, kb_flike(k, x, ldexp(1, (int)m->man_bits)), one);
  kb_reg field = km_field(k, m, kb_fmul(k, size, up), 1, 2 * bias - 1);
  field = kb_select(k, kb_icmp(k, LLVMIntEQ, field, kb_ilike(k, field, bias - 1)), kb_ilike(k, field, bias), field);
  kb_reg scale = km_power_down(k, m, field);
  x = kb_fmul(k, kb_fmul(k, x, up), scale);
  y = kb_fmul(k, kb_fmul(k, y, up), scale);
  kb_reg twice = kb_shli(k, kb_addi(k, field, -bias), 1);
  twice = kb_select(k, tiny, kb_addi(k, twice, -2 * (int64_t)m->man_bits), twice);
  km_two t = squares_and(k, x, y, kb_flike(k, x, -1));
  kb_reg infinite = kb_or(k, km_is_inf(k, x), km_is_inf(k, y)), inf = kb_flike(k, x, (double)INFINITY);
  t = km_choose_two(k, infinite, km_one(k, inf), t);
  return (km_log_parts){t, kb_sitofp(k, twice, (kb_kind)x.kind)};
}

static km_complex log_all(kb *k, const km_consts *m, km_complex z) {
  km_log_parts p = km_log_size(k, m, z);
  return (km_complex){kb_fmuli(k, km_log1p_of(k, m, p.t, p.more), 0.5), km_atan2(k, z.im, z.re)};
}

// 1 + x is exact where it is less than a half in size, and beyond -2 near enough: then log|1 + z|. Else
// (2 x + x^2) + y^2, unless that is large.
static km_complex log1p_all(kb *k, const km_consts *m, km_complex z) {
  kb_reg x = kb_faddi(k, z.re, 1), zero = kb_flike(k, x, 0);
  kb_reg size = km_greater(k, kb_fabs(k, z.re), kb_fabs(k, z.im));
  kb_reg near =
      km_both(k, kb_fcmp(k, LLVMRealOGT, z.re, kb_flike(k, x, -0.5)), kb_fcmp(k, LLVMRealOLT, size, kb_flike(k, x, 4)));
  km_log_parts p = km_log_size(k, m, (km_complex){x, z.im});
  km_two t = squares_and(k, z.re, z.im, kb_fadd(k, z.re, z.re));
  t = km_choose_two(k, near, t, p.t);
  kb_reg re = km_log1p_of(k, m, t, kb_select(k, near, zero, p.more));
  re = kb_select(k, km_both(k, km_is_zero(k, z.re), km_is_zero(k, z.im)), z.re, kb_fmuli(k, re, 0.5));
  return (km_complex){re, km_atan2(k, z.im, x)};
}

km_complex km_complex_logarithm(kb *k, kl_op op, const km_consts *m, km_complex z) {
  return op == KL_OP_LOG ? log_all(k, m, z) : log1p_all(k, m, z);
}

// --- power --------------------------------------------------------------------------------------------------------

// The parts of y log x, times 2^64 where y is large, and within the finite numbers if what it is made of is.
static km_two settled(kb *k, km_two a, kb_reg up, kb_reg finite) {
  kb_reg hi = kb_fmul(k, a.hi, up);
  double most = a.hi.kind == KB_F64 ? 0x1p1023 : 0x1p127;
  hi = kb_select(k, finite, km_at_least(k, km_at_most(k, hi, most), -most), hi);
  kb_reg small = kb_fcmp(k, LLVMRealOLT, kb_fabs(k, hi), kb_flike(k, hi, a.hi.kind == KB_F64 ? 0x1p47 : 0x1p18));
  return (km_two){hi, kb_select(k, small, kb_fmul(k, a.lo, up), kb_flike(k, hi, 0))};
}

// y log x where something is not finite: what single numbers make it. Finite factors are those less `down`, so that no
// infinity comes of their product, but beside an infinite one. Parts of the logarithm that are too small for a number
// are none of 0: its size where x is +-1 and something tiny, its angle.
static km_complex without_end(kb *k, km_complex x, km_complex y, km_complex y_down, kb_reg size, kb_reg angle) {
  kb_reg endless = km_is_inf(k, size), none = kb_or(k, km_is_zero(k, x.re), km_is_zero(k, x.im));
  kb_reg least = kb_flike(k, size, km_consts_of(size)->min_normal);
  size = kb_select(k, km_both(k, km_is_zero(k, size), kb_not(k, none)), least, size);
  kb_reg turns = km_both(k, km_is_zero(k, angle), km_both(k, km_is_finite(k, x.re), kb_not(k, km_is_zero(k, x.im))));
  angle = kb_select(k, turns, kb_fcopysign(k, least, x.im), angle);
  km_complex s = km_choose(k, endless, y, y_down);
  return (km_complex){kb_fsub(k, kb_fmul(k, size, s.re), kb_fmul(k, angle, y_down.im)),
                      kb_fadd(k, kb_fmul(k, size, s.im), kb_fmul(k, angle, y_down.re))};
}

// e^(y log x), the logarithm a sum of two in both parts; 1 for y = 0, and 0 for x = 0 and a y with a positive real
// part.
km_complex km_complex_power(kb *k, km_complex x, km_complex y) {
  const km_consts *m = km_consts_of(x.re);
  kb_reg zero = kb_flike(k, x.re, 0), one = kb_flike(k, x.re, 1);
  km_log_parts p = km_log_size(k, m, x);
  km_two size = km_log1p_two(k, m, p.t, p.more), angle = km_atan2_two(k, x.im, x.re);
  size = km_times(k, size, kb_flike(k, zero, 0.5));
  kb_reg finite = km_both(k, km_is_finite(k, size.hi), km_both(k, km_is_finite(k, y.re), km_is_finite(k, y.im)));
  finite = km_both(k, finite, km_is_finite(k, angle.hi));
  kb_reg large = kb_fcmp(k, LLVMRealOGT, km_greater(k, kb_fabs(k, y.re), kb_fabs(k, y.im)), kb_flike(k, zero, 0x1p60));
  kb_reg down = kb_select(k, large, kb_flike(k, zero, 0x1p-64), one),
         up = kb_select(k, large, kb_flike(k, zero, 0x1p64), one);
  km_two u = km_one(k, kb_fmul(k, y.re, down)), v = km_one(k, kb_fmul(k, y.im, down));
  km_two re = km_add_two(k, km_mul_two(k, size, u), km_neg_two(k, km_mul_two(k, angle, v)));
  km_two im = km_add_two(k, km_mul_two(k, size, v), km_mul_two(k, angle, u));
  km_complex endless = without_end(k, x, y, (km_complex){u.hi, v.hi}, size.hi, angle.hi);
  re.hi = kb_select(k, finite, re.hi, endless.re);
  im.hi = kb_select(k, finite, im.hi, endless.im);
  up = kb_select(k, finite, up, one);
  km_complex r = km_exp_of(k, m, settled(k, re, up, finite), settled(k, im, up, finite));
  kb_reg zero_x = km_both(k, km_is_zero(k, x.re), km_is_zero(k, x.im));
  r = km_choose(k, km_both(k, zero_x, kb_fcmp(k, LLVMRealOGT, y.re, zero)), (km_complex){zero, zero}, r);
  kb_reg zero_y = km_both(k, km_is_zero(k, y.re), km_is_zero(k, y.im));
  return km_choose(k, zero_y, (km_complex){one, zero}, r);
}
