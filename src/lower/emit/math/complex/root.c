// sqrt, rsqrt and sign. With w = |a + ib|, one part of the root is sqrt((w + |a|) / 2), the other b over twice that. An
// even power of two is taken out of a and b, so that their squares count as they should.

#include "lower/emit/math/complex/impl.h"

#include <math.h>

km_root km_root_parts(kb *k, const km_consts *m, km_two a, kb_reg b) {
  int up = km_is_wide(m) ? 54 : 24;
  kb_reg one = kb_flike(k, b, 1);
  km_root r;
  a = km_sign_two(k, a, a.hi);
  b = kb_fabs(k, b);
  kb_reg greater = km_greater(k, a.hi, b), tiny = kb_fcmp(k, LLVMRealOLT, greater, kb_flike(k, b, m->min_normal));
  r.up = kb_select(k, tiny, kb_flike(k, b, ldexp(1, up)), one);
  r.root_of_up = kb_select(k, tiny, kb_flike(k, b, ldexp(1, up / 2)), one);
  a = km_times(k, a, r.up);
  b = kb_fmul(k, b, r.up);
  // Odd fields are even exponents.
  kb_reg field = km_field(k, m, kb_fmul(k, greater, r.up), 1, 2 * km_bias(m));
  field = kb_or(k, kb_addi(k, field, -1), kb_ilike(k, field, 1));
  r.down = km_power_down(k, m, field);
  kb_reg half = km_float(k, kb_shli(k, kb_lshri(k, kb_addi(k, field, km_bias(m)), 1), m->man_bits));
  km_two x = km_times(k, a, r.down);
  kb_reg y = kb_fmul(k, b, r.down);
  r.size = km_root_of(k, m, km_add_two(k, km_mul_two(k, x, x), km_product(k, y, y)));
  km_two mean = km_times(k, km_add_two(k, r.size, x), kb_flike(k, b, 0.5));
  r.major = km_times(k, km_root_of(k, m, mean), half);
  return r;
}

// |b| / twice.
static km_two minor_of(kb *k, km_two twice, kb_reg b) {
  kb_reg down;
  km_two raised = km_raised(k, km_consts_of(b), km_one(k, kb_fabs(k, b)), &down);
  return km_times(k, km_quotient(k, raised, twice, km_inverse(k, twice)), down);
}

static kb_reg is_negative(kb *k, kb_reg a) {
  return kb_icmp(k, LLVMIntSLT, km_bits(k, a), kb_ilike(k, km_bits(k, a), 0));
}

void km_root_signed(kb *k, km_two a, kb_reg b, km_two *re, km_two *im) {
  const km_consts *m = km_consts_of(b);
  km_root r = km_root_parts(k, m, a, b);
  kb_reg zero = km_both(k, km_is_zero(k, a.hi), km_is_zero(k, b)), left = is_negative(k, a.hi);
  kb_reg down = kb_select(k, kb_fcmp(k, LLVMRealOEQ, r.up, kb_flike(k, b, 1)), r.up,
                          kb_flike(k, b, ldexp(1, km_is_wide(m) ? -27 : -12)));
  km_two none = km_one(k, kb_flike(k, b, 0));
  km_two minor = minor_of(k, km_times(k, r.major, kb_flike(k, b, 2)), kb_fmul(k, b, r.up));
  *re = km_choose_two(k, zero, none, km_times(k, km_choose_two(k, left, minor, r.major), down));
  *im = km_choose_two(k, zero, none, km_times(k, km_choose_two(k, left, r.major, minor), down));
  *im = km_sign_two(k, *im, b);
}

static km_complex sqrt_all(kb *k, km_complex z) {
  kb_reg inf = kb_flike(k, z.re, (double)INFINITY), zero = kb_flike(k, z.re, 0);
  km_two re, im;
  km_root_signed(k, km_one(k, z.re), z.im, &re, &im);
  km_complex r = {km_rounded(k, re), kb_fcopysign(k, km_rounded(k, im), z.im)};
  kb_reg finite = km_is_finite(k, z.im), inf_re = km_is_inf(k, z.re), left = is_negative(k, z.re);
  kb_reg other = kb_select(k, finite, zero, kb_flike(k, z.re, (double)NAN));
  km_complex above = {inf, kb_fcopysign(k, other, z.im)}, below = {other, kb_fcopysign(k, inf, z.im)};
  r = km_choose(k, inf_re, km_choose(k, left, below, above), r);
  return km_choose(k, km_is_inf(k, z.im), (km_complex){inf, z.im}, r);
}

// The root's conjugate over |z|, which is size / down: where that makes the lesser part larger, it does so first.
// Infinity for zero, beside NaN, and zero for what is infinite.
static km_complex rsqrt_all(kb *k, const km_consts *m, km_complex z) {
  kb_reg inf = kb_flike(k, z.re, (double)INFINITY), zero = kb_flike(k, z.re, 0), left = is_negative(k, z.re);
  kb_reg one = kb_flike(k, z.re, 1);
  km_root p = km_root_parts(k, m, km_one(k, z.re), z.im);
  km_two major = km_quotient(k, p.major, p.size, km_inverse(k, p.size));
  kb_reg grows = kb_fcmp(k, LLVMRealOGT, p.down, one);
  kb_reg first = kb_select(k, grows, p.down, one), last = kb_select(k, grows, one, p.down);
  km_two twice = km_mul_two(k, km_times(k, p.major, kb_flike(k, one, 2)), p.size);
  km_two minor = minor_of(k, twice, kb_fmul(k, kb_fmul(k, z.im, p.up), first));
  kb_reg a = kb_fmul(k, kb_fmul(k, km_rounded(k, major), p.down), p.root_of_up);
  kb_reg b = kb_fmul(k, kb_fmul(k, km_rounded(k, minor), last), p.root_of_up), minus = kb_fneg(k, z.im);
  km_complex r = {kb_select(k, left, b, a), kb_fcopysign(k, kb_select(k, left, a, b), minus)};
  kb_reg is_zero = km_both(k, km_is_zero(k, z.re), km_is_zero(k, z.im));
  r = km_choose(k, is_zero, (km_complex){inf, kb_flike(k, zero, (double)NAN)}, r);
  kb_reg infinite = kb_or(k, km_is_inf(k, z.re), km_is_inf(k, z.im));
  return km_choose(k, infinite, (km_complex){zero, kb_fcopysign(k, zero, minus)}, r);
}

// Zero stays; where |z| is infinite, finite parts are zero and others NaN.
static km_complex sign_all(kb *k, const km_consts *m, km_complex z) {
  kb_reg zero = kb_flike(k, z.re, 0);
  km_root p = km_root_parts(k, m, km_one(k, z.re), z.im);
  kb_reg inverse = km_inverse(k, p.size);
  km_complex r;
  r.re = kb_fmul(k, kb_fmul(k, z.re, p.up), p.down);
  r.im = kb_fmul(k, kb_fmul(k, z.im, p.up), p.down);
  r.re = kb_fcopysign(k, km_rounded(k, km_quotient(k, km_one(k, r.re), p.size, inverse)), z.re);
  r.im = kb_fcopysign(k, km_rounded(k, km_quotient(k, km_one(k, r.im), p.size, inverse)), z.im);
  r = km_choose(k, km_both(k, km_is_zero(k, z.re), km_is_zero(k, z.im)), z, r);
  kb_reg infinite = kb_or(k, km_is_inf(k, z.re), km_is_inf(k, z.im));
  km_complex lost = {kb_fmul(k, z.re, zero), kb_fmul(k, z.im, zero)};
  return km_choose(k, infinite, lost, r);
}

km_complex km_complex_root(kb *k, kl_op op, const km_consts *m, km_complex z) {
  switch (op) {
  case KL_OP_SQRT: return sqrt_all(k, z);
  case KL_OP_RSQRT: return rsqrt_all(k, m, z);
  default: return sign_all(k, m, z);
  }
}
