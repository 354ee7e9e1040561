// exp, tanh, logistic and erf of pairs.

#include "lower/emit/math/half/impl.h"

// --- exp ------------------------------------------------------------------------------------------------------------

// 2^(2 y) as a square, because ex2 would flush a denormal result. The sum with c[1] costs nothing and moves results off
// their ties.
static kb_reg exp_bf16(kb *k, const double *c, kb_reg x) {
  kb_reg h = kb_ex2_approx(k, kh_fmai(k, x, c[0], c[1]));
  return kb_fmul(k, h, h);
}

kb_reg kh_exp_bf16(kb *k, const double *c, const kb_reg *x) {
  return kh_ending(k, kh_each(k, c, *x, exp_bf16), *x, 57, 1, 0);
}

// Near 1 results are nearer to ties than ex2 tells: there a cubic polynomial serves.
static kb_reg exp_f16(kb *k, const double *c, kb_reg x) {
  kb_reg large = kb_ex2_approx(k, kh_fmai(k, x, c[0], c[1])), small = kh_horner(k, x, c + 3, 4);
  return kb_select(k, kh_is_below(k, x, c[2]), small, large);
}

kb_reg kh_exp_f16(kb *k, const double *c, const kb_reg *x) {
  kb_reg r = kh_each(k, c, kh_replace(k, *x, 0x1.b5cp-4, 1), exp_f16);
  return kh_ending(k, r, *x, 0x1.5fp+3, 3, 2);
}

// --- tanh -----------------------------------------------------------------------------------------------------------

// 1 - 2 / (exp(2 x) + 1) for either sign: an infinite exp gives 1, a flushed one -1.
static kb_reg tanh_large(kb *k, const double *c, kb_reg x) {
  kb_reg e = kb_ex2_approx(k, kb_fmuli(k, x, c[0]));
  return kh_fmai(k, kb_rcp_approx(k, kb_faddi(k, e, c[1])), c[2], c[3]);
}

// Small arguments as a pair: x - x^3 / 3, with a positive zero in the middle that leaves -0 as it is.
kb_reg kh_tanh_bf16(kb *k, const double *c, const kb_reg *x) {
  kb_reg third = kb_flike(k, *x, -0x1.54p-2), zero = kb_flike(k, *x, 0);
  kb_reg q = kb_fma(k, kb_fmul(k, *x, *x), third, zero), small = kb_fma(k, q, *x, *x);
  return kh_blend(k, kh_below(k, *x, 0x1p-4), small, kh_each(k, c, *x, tanh_large));
}

static kb_reg tanh_f16(kb *k, const double *c, kb_reg x) {
  kb_reg p = kb_fma(k, kh_horner(k, kb_fmul(k, x, x), c + 5, 5), kb_fmul(k, x, x), kb_flike(k, x, 1));
  return kb_select(k, kh_is_below(k, x, c[4]), kb_fmul(k, x, p), tanh_large(k, c, x));
}

kb_reg kh_tanh_f16(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, kh_replace(k, *x, -0x1.b1p+0, 7), tanh_f16);
}

// --- logistic -------------------------------------------------------------------------------------------------------

// 2^-12 / (exp(-x) 2^-12 + 2^-12): scaled so, neither the power nor the reciprocal leaves the range in which a bf16
// result is to be found, denormal ones included.
static kb_reg logistic_large(kb *k, const double *c, kb_reg x) {
  kb_reg e = kb_ex2_approx(k, kh_fmai(k, x, c[0], c[1]));
  return kb_fmuli(k, kb_rcp_approx(k, kb_faddi(k, e, c[2])), c[3]);
}

// Small arguments as a pair: x / 4 + 1 / 2, a little less than a quarter, so that no sum is a tie.
kb_reg kh_logistic_bf16(kb *k, const double *c, const kb_reg *x) {
  kb_reg small = kb_fma(k, *x, kb_flike(k, *x, 0x1.fep-3), kb_flike(k, *x, 0.5));
  return kh_blend(k, kh_below(k, *x, 0x1p-5), small, kh_each(k, c, *x, logistic_large));
}

// exp(-x) as a polynomial, and one step of Newton's from the reciprocal of the sum with 1: its own error is gone.
static kb_reg logistic_f16(kb *k, const double *c, kb_reg x) {
  const double magic = 0x1.8p23;
  kb_reg t = kh_fmai(k, x, c[0], magic), n = kb_faddi(k, t, -magic);
  kb_reg f = kb_fma(k, n, kb_flike(k, n, c[1]), kb_fneg(k, x)), p = kh_horner(k, f, c + 4, 6);
  kb_reg bits = kb_add(k, kb_bitcast(k, p, KB_I32, 1), kb_shli(k, kb_bitcast(k, t, KB_I32, 1), 23));
  kb_reg e = kb_bitcast(k, bits, KB_F32, 1), one = kb_flike(k, x, 1);
  kb_reg y = kb_rcp_approx(k, kb_fadd(k, e, one));
  kb_reg rest = kb_fma(k, kb_fneg(k, e), y, kb_fsub(k, one, y)), large = kb_fma(k, rest, y, y);
  return kb_select(k, kh_is_below(k, x, c[3]), kh_fmai(k, x, c[2], 0.5), large);
}

// Beyond the clamp results are 1, and 0 or its least denormal.
kb_reg kh_logistic_f16(kb *k, const double *c, const kb_reg *x) {
  kb_reg u = kh_clamp(k, *x, -0x1.3p4, 10);
  return kh_ending(k, kh_each(k, c, u, logistic_f16), *x, -0x1.4fcp-3, 1, 0);
}

// --- erf ------------------------------------------------------------------------------------------------------------

// x P(x^2), clamped where it is 1; no approximate instruction.
static kb_reg erf_bf16(kb *k, const double *c, kb_reg x) {
  return kb_fmul(k, x, kh_horner(k, kb_fmul(k, x, x), c, 8));
}

kb_reg kh_erf_bf16(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, kh_clamp(k, *x, -0x1.1ap+1, 0x1.1ap+1), erf_bf16);
}

static kb_reg erf_f16(kb *k, const double *c, kb_reg x) {
  return kb_fma(k, x, kh_horner(k, kb_fmul(k, x, x), c, 12), x);
}

kb_reg kh_erf_f16(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, kh_clamp(k, *x, -0x1.4dp+1, 0x1.4dp+1), erf_f16);
}
