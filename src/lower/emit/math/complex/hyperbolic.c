// sinh, cosh and tanh, which sin, cos and tan are of iz.

#include "lower/emit/math/complex/impl.h"

#include <math.h>

// sinh and cosh of |x| less 2^n, t = n + km_magic_for_halves(m), n at most what x = `most` gives.
typedef struct pair {
  km_two sinh, cosh;
  kb_reg n, t;
} pair;

// With e^r = 1 + p and e^-r = 1 + q: (1/2 +- l) + (p / 2 +- l q), l = 2^(-2n - 1), which counts for nothing where n is
// more than 40. p and q are of the odd and the even part of exp. Where n is 0, sinh is the odd part alone.
static pair pair_of(kb *k, const km_consts *m, kb_reg x, double most) {
  kb_reg a = km_at_most(k, kb_fabs(k, x), most), half = kb_flike(k, x, 0.5);
  pair r;
  km_two y = km_reduce_natural(k, m, a, km_magic_for_halves(m), &r.t);
  r.n = kb_faddi(k, r.t, -km_magic_for_halves(m));
  kb_reg s = kb_fmul(k, y.hi, y.hi);
  kb_reg odd = kb_fma(k, kb_fmul(k, y.hi, s), km_horner(k, s, m->sinh), y.lo); // beyond y
  kb_reg even = kb_fma(k, s, km_horner(k, s, m->cosh), kb_fmul(k, y.hi, y.lo));
  km_two p = km_fast_sum(k, y.hi, kb_fadd(k, odd, even)), q = km_fast_sum(k, y.hi, kb_fsub(k, odd, even)); // q: -q
  kb_reg l = km_power_of_two(k, m, km_fmai(k, km_at_most(k, r.n, 40), -2, m->magic - 1));
  km_two plus = km_fast_sum(k, half, l), minus = km_fast_sum(k, half, kb_fneg(k, l));
  km_two c = km_fast_sum(k, plus.hi, kb_fmuli(k, p.hi, 0.5)), d = km_fast_sum(k, minus.hi, kb_fmuli(k, p.hi, 0.5));
  kb_reg c_low = kb_fma(k, kb_fneg(k, l), kb_fadd(k, q.hi, q.lo), kb_fma(k, p.lo, half, plus.lo));
  kb_reg d_low = kb_fma(k, l, kb_fadd(k, q.hi, q.lo), kb_fma(k, p.lo, half, minus.lo));
  r.cosh = km_fast_sum(k, c.hi, kb_fadd(k, c.lo, c_low));
  km_two large = km_fast_sum(k, d.hi, kb_fadd(k, d.lo, d_low)), small = km_fast_sum(k, y.hi, odd);
  r.sinh = km_choose_two(k, km_is_zero(k, r.n), small, large);
  return r;
}

// An infinite part beside one that is no number of an angle.
static void settle_turn(kb *k, km_complex z, double sin, km_turn *a) {
  kb_reg lost = km_both(k, km_is_inf(k, z.re), kb_not(k, km_is_finite(k, z.im)));
  a->cos = km_choose_two(k, lost, km_one(k, kb_flike(k, z.re, 1)), a->cos);
  a->sin = km_choose_two(k, lost, km_one(k, kb_flike(k, z.re, sin)), a->sin);
}

// sinh x cos y + i cosh x sin y, cosh x cos y + i sinh x sin y. What is zero whatever stands beside it stays so.
static km_complex wave(kb *k, const km_consts *m, km_complex z, bool cosh) {
  pair h = pair_of(k, m, z.re, ceil((double)(2 * km_bias(m) + m->man_bits + 2) * M_LN2));
  km_turn a = km_sincos(k, m, (km_two){z.im, km_none});
  settle_turn(k, z, (double)NAN, &a);
  km_scaled s = {km_sign_two(k, h.sinh, z.re), h.t}, c = {h.cosh, h.t};
  km_complex r = {km_scaled_product(k, m, cosh ? c : s, a.cos), km_scaled_product(k, m, cosh ? s : c, a.sin)};
  kb_reg zero_x = km_both(k, km_is_zero(k, z.re), kb_not(k, km_is_finite(k, z.im)));
  kb_reg zero_y = km_both(k, km_is_zero(k, z.im), km_is_nan(k, z.re));
  if (!cosh) r.re = kb_select(k, zero_x, z.re, r.re);
  r.im = kb_select(k, zero_y, z.im, r.im);
  if (cosh) r.im = kb_select(k, zero_x, z.re, r.im);
  return r;
}

// (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y), all terms of which are positive. sinh and cosh are less 2^n,
// so all is over 2^2n: of the imaginary part 2^-n is left for the end.
static km_complex tanh_all(kb *k, const km_consts *m, km_complex z) {
  pair h = pair_of(k, m, z.re, floor((double)(km_bias(m) - 1) * M_LN2));
  km_turn a = km_sincos(k, m, (km_two){z.im, km_none});
  settle_turn(k, z, 0, &a);
  kb_reg down = km_power_of_two(k, m, km_fmai(k, h.n, -1, m->magic)), down_re, down_im;
  km_two sinh = km_raised(k, m, h.sinh, &down_re), sin = km_times(k, km_raised(k, m, a.sin, &down_im), down);
  km_two cos = km_times(k, a.cos, down);
  km_two below = km_add_two(k, km_mul_two(k, h.sinh, h.sinh), km_mul_two(k, cos, cos));
  kb_reg inverse = km_inverse(k, below);
  km_two re = km_quotient(k, km_mul_two(k, sinh, h.cosh), below, inverse);
  km_two im = km_quotient(k, km_mul_two(k, sin, a.cos), below, inverse);
  kb_reg sign = kb_fmul(k, a.sin.hi, a.cos.hi); // also of what vanishes
  kb_reg im_rounded = kb_fmul(k, kb_fmul(k, km_rounded(k, im), down), down_im);
  km_complex r = {kb_fcopysign(k, kb_fmul(k, km_rounded(k, re), down_re), z.re), kb_fcopysign(k, im_rounded, sign)};
  kb_reg zero_x = km_is_zero(k, z.re), zero_y = km_is_zero(k, z.im);
  return (km_complex){kb_select(k, zero_x, z.re, r.re), kb_select(k, zero_y, z.im, r.im)};
}

km_complex km_complex_hyperbolic(kb *k, kl_op op, const km_consts *m, km_complex z) {
  if (op == KL_OP_TANH) return tanh_all(k, m, z);
  return wave(k, m, z, op == KL_OP_COSH);
}
