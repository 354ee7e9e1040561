// log, square roots and quotients of pairs.

#include "lower/emit/math/half/impl.h"

static kb_reg bits_of(kb *k, kb_reg x) {
  return kb_bitcast(k, x, KB_I32, 1);
}
static kb_reg float_of(kb *k, kb_reg u) {
  return kb_bitcast(k, u, KB_F32, 1);
}

// --- log ------------------------------------------------------------------------------------------------------------

// lg2 knows zeros, negative x, infinity and NaN. Denormals are scaled up past its flushing.
static kb_reg log_bf16(kb *k, const double *c, kb_reg x) {
  kb_reg denormal = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, 0x1p-126));
  kb_reg v = kb_select(k, denormal, kb_fmuli(k, x, 0x1p24), x);
  kb_reg d = kb_select(k, denormal, kb_flike(k, x, c[2]), kb_flike(k, x, c[1]));
  return kb_fma(k, kb_lg2_approx(k, v), kb_flike(k, x, c[0]), d);
}

// Of 1 it is +0, which lg2 does not promise.
kb_reg kh_log_bf16(kb *k, const double *c, const kb_reg *x) {
  kb_reg r = kh_ending(k, kh_each(k, c, *x, log_bf16), *x, 1, 0xffff, 0);
  return kh_ending(k, r, *x, 0x1.d8p-53, 1, 0);
}

// x = 2^n (1 + f) with 1 + f in [2/3, 4/3), n 2^23 as an integer; f + f^2 P(f) + n ln 2. What is not positive and
// finite has an n out of the range of f16, and lg2 knows its logarithm.
static kb_reg log_f16(kb *k, const double *c, kb_reg x) {
  kb_reg u = bits_of(k, x), n = kb_andi(k, kb_addi(k, u, -0x3f2aaaab), 0xff800000);
  kb_reg f = kb_faddi(k, float_of(k, kb_sub(k, u, n)), -1), fn = kb_sitofp(k, n, KB_F32);
  kb_reg p = kh_horner(k, f, c + 1, 8), s = kb_fma(k, kb_fmul(k, f, f), p, f);
  kb_reg r = kb_fma(k, fn, kb_flike(k, x, c[0]), s);
  kb_reg special = kb_fcmp(k, LLVMRealOGT, kb_fabs(k, fn), kb_flike(k, x, 0x1p29));
  return kb_select(k, special, kb_lg2_approx(k, x), r);
}

kb_reg kh_log_f16(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, kh_replace(k, *x, 0x1.5d4p-2, 1), log_f16);
}

// --- roots ----------------------------------------------------------------------------------------------------------

// f of x with denormals of bf16 scaled up by 2^24; those of f16 are normal in f32.
static kb_reg scaled(kb *k, kb_reg x, kb_reg (*f)(kb *k, kb_reg x), double back) {
  kb_reg denormal = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, 0x1p-126));
  kb_reg r = f(k, kb_select(k, denormal, kb_fmuli(k, x, 0x1p24), x));
  return kb_select(k, denormal, kb_fmuli(k, r, back), r);
}

static kb_reg rsqrt_bf16(kb *k, const double *c, kb_reg x) {
  return scaled(k, x, kb_rsqrt_approx, 0x1p12);
}
kb_reg kh_rsqrt_bf16(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, *x, rsqrt_bf16);
}

static kb_reg rsqrt_f16(kb *k, const double *c, kb_reg x) {
  return kb_rsqrt_approx(k, x);
}
kb_reg kh_rsqrt_f16(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, *x, rsqrt_f16);
}

static kb_reg sqrt_bf16(kb *k, const double *c, kb_reg x) {
  return scaled(k, x, kb_sqrt_approx, 0x1p-12);
}
kb_reg kh_sqrt_bf16(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, *x, sqrt_bf16);
}

// No root of an f16 is a tie, but some lie just below one.
static kb_reg sqrt_f16(kb *k, const double *c, kb_reg x) {
  return kb_fmuli(k, kb_sqrt_approx(k, x), 1 - 0x1p-23);
}
kb_reg kh_sqrt_f16(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, *x, sqrt_f16);
}

// --- quotients ------------------------------------------------------------------------------------------------------

// The quotient by the reciprocal, corrected by its own remainder, which is exact; where there is none, or no number, it
// stays.
static kb_reg divide_f16(kb *k, kb_reg a, kb_reg b) {
  kb_reg r = kb_rcp_approx(k, b), q = kb_fmul(k, a, r), rest = kb_fma(k, kb_fneg(k, q), b, a);
  kb_reg inexact = kb_fcmp(k, LLVMRealOGT, kb_fabs(k, rest), kb_flike(k, a, 0));
  return kb_select(k, inexact, kb_fma(k, rest, r, q), q);
}

kb_reg kh_divide_f16(kb *k, const double *c, const kb_reg *x) {
  kb_reg q[2];
  for (unsigned i = 0; i < 2; i++) q[i] = divide_f16(k, kb_unpack(k, x[0], i), kb_unpack(k, x[1], i));
  return kb_pack2(k, q[0], q[1], KB_F16);
}

// Both scaled by a power of two of about the inverse root of the divisor: its reciprocal is then in range. A normal
// quotient of two bf16 is no tie, nor as near to one as the instructions err; a denormal one may be a tie, and then it
// is a multiple of 8 units of f32, to which it is rounded.
static kb_reg divide_bf16(kb *k, kb_reg a, kb_reg scaled_b, kb_reg scale) {
  kb_reg q = kb_fmul(k, kb_fmul(k, a, scale), kb_rcp_approx(k, scaled_b));
  kb_reg snapped = float_of(k, kb_andi(k, kb_addi(k, bits_of(k, q), 4), ~(int64_t)7));
  kb_reg small = kb_fcmp(k, LLVMRealOLT, kb_fabs(k, q), kb_flike(k, q, 0x1p-125)); // and no NaN
  return kb_select(k, small, snapped, q);
}

kb_reg kh_divide_bf16(kb *k, const double *c, const kb_reg *x) {
  kb_reg b = kb_bitcast(k, x[1], KB_I32, 1), q[2];
  kb_reg s = kb_addi(k, kb_lshri(k, kb_andi(k, kb_not(k, b), 0x7f007f00), 1), 0x1f801f80);
  kb_reg scale = kb_bitcast(k, s, KB_BF16, 2), scaled_b = kb_fmul(k, x[1], scale);
  for (unsigned i = 0; i < 2; i++)
    q[i] = divide_bf16(k, kb_unpack(k, x[0], i), kb_unpack(k, scaled_b, i), kb_unpack(k, scale, i));
  return kb_pack2(k, q[0], q[1], KB_BF16);
}
