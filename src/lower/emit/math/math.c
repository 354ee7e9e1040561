// exp, exp2, log, tanh, logistic, erf and rsqrt for F32 and F64 (the others: exponential.c, logarithm.c, angle.c,
// arc.c, root.c, power.c), from +, -, *, /, fma, comparisons, selects and integer operations: every machine that rounds
// these as IEEE 754 says gives the same bits. Where NVPTX takes an approximate instruction for F32 in the place of
// exact steps (log, logistic, rsqrt), every value within its documented error leads to the same bits. No table, no
// branch. Units in the last place (ulp) are of the exact result; the figures are the worst ones found by
// tests/emit/math.c. For F32 that is over all 2^32
// inputs, hence a proof. For F64 it is over some tens of millions of samples, with more of them where the error peaks
// (seams, reduced arguments near their ends, the first binade of denormal results, which are rounded twice): what was
// seen, a little rounded up, and no proof. What is promised is kl_op_ulp_bound. For f16 the same steps run on F32 with
// constants of their own, with which every result is right.
//
// Common steps. x + magic, with magic = 1.5 * 2^man_bits + c, is x rounded to an integer n: n + c stands in the low
// bits, and taking magic away again leaves n exactly. A power of two is then made by shifting those bits into the
// exponent field. NaN goes through every step but comparisons, which are put so that NaN takes the path it survives.

#include "lower/emit/math/impl.h"

#include <math.h>

kb_reg km_horner(kb *k, kb_reg x, km_poly p) {
  kb_reg r = kb_flike(k, x, p.c[p.n - 1]);
  for (unsigned i = p.n - 1; i-- > 0;) r = kb_fma(k, r, x, kb_flike(k, x, p.c[i]));
  return r;
}

static bool has_min(const kb *k, kb_reg x) {
  return k->machine == KB_NVPTX && k->sm >= 80 && x.kind == KB_F32;
}

kb_reg km_at_most(kb *k, kb_reg x, double c) {
  kb_reg v = kb_flike(k, x, c);
  return has_min(k, x) ? kb_fmin(k, x, v) : kb_select(k, kb_fcmp(k, LLVMRealOGT, x, v), v, x);
}

kb_reg km_at_least(kb *k, kb_reg x, double c) {
  kb_reg v = kb_flike(k, x, c);
  return has_min(k, x) ? kb_fmax(k, x, v) : kb_select(k, kb_fcmp(k, LLVMRealOLT, x, v), v, x);
}

kb_reg km_replace(kb *k, kb_reg x, km_nudge n) {
  return kb_select(k, kb_fcmp(k, LLVMRealOEQ, x, kb_flike(k, x, n.from)), kb_flike(k, x, n.to), x);
}

static kb_reg one_like(kb *k, kb_reg x) {
  return kb_flike(k, x, 1);
}

// --- powers of two ------------------------------------------------------------------------------------------------

// p * 2^n for n from -2 * bias to bias + 1, rounded once; t = n + magic with 2 * bias added to magic. 2^n may be no
// number itself, so it is applied as two halves, the first of them exact on p in [0.7, 1.5].
kb_reg km_scale_by_halves(kb *k, const km_consts *m, kb_reg p, kb_reg t) {
  kb_reg u = km_bits(k, t);
  kb_reg first = kb_andi(k, kb_shli(k, u, m->man_bits - 1), m->inf_bits);
  kb_reg second = kb_sub(k, kb_shli(k, u, m->man_bits), first);
  return kb_fmul(k, kb_fmul(k, p, km_float(k, first)), km_float(k, second));
}
double km_magic_for_halves(const km_consts *m) {
  return m->magic + 2 * (double)(m->one_bits >> m->man_bits);
}

// 2^(n + c) where that is a normal number; t = n + magic + c.
kb_reg km_power_of_two(kb *k, const km_consts *m, kb_reg t) {
  return km_float(k, kb_addi(k, kb_shli(k, km_bits(k, t), m->man_bits), m->one_bits));
}

// x = n ln 2 + r with |r| <= ln 2 / 2 and *t = n + magic. ln2 is rounded to the kind, so that n ln2 taken from x is
// exact by fma; ln2_lo is the rest.
static kb_reg reduce_natural(kb *k, const km_consts *m, kb_reg x, double magic, kb_reg *t) {
  *t = km_fmai(k, x, m->log2e, magic);
  kb_reg n = kb_faddi(k, *t, -magic);
  kb_reg r = kb_fma(k, n, kb_flike(k, n, -m->ln2), x);
  return kb_fma(k, n, kb_flike(k, n, -m->ln2_lo), r);
}

// exp: all x. F32 0.90 ulp, F64 0.91 ulp. Remez polynomial for exp on +-ln 2 / 2 with 1 + r exact.
// The clamped ends still round to 0 and to infinity.
static kb_reg km_exp(kb *k, const km_consts *m, kb_reg x) {
  x = km_at_least(k, km_at_most(k, x, m->exp_high), m->exp_low);
  kb_reg t, r = reduce_natural(k, m, x, km_magic_for_halves(m), &t);
  return km_scale_by_halves(k, m, km_horner(k, r, m->exp), t);
}

// The same of x <= 0. 2^n is raised so far that it is a number; the result is rounded once, where it is taken down
// again. The low bits of t are the exponent field.
static kb_reg exp_nonpositive(kb *k, const km_consts *m, kb_reg x) {
  double bias = (double)(m->one_bits >> m->man_bits), up = ceil(bias / 2);
  kb_reg t, r = reduce_natural(k, m, km_at_least(k, x, m->exp_low), m->magic + bias + up, &t);
  kb_reg power = km_float(k, kb_shli(k, km_bits(k, t), m->man_bits));
  return kb_fmuli(k, kb_fmul(k, km_horner(k, r, m->exp), power), ldexp(1, -(int)up));
}

// exp2: all x. F32 0.90 ulp, F64 0.90 ulp, exact for integers. Remez polynomial for 2^f on +-0.5.
static kb_reg km_exp2(kb *k, const km_consts *m, kb_reg x) {
  double magic = km_magic_for_halves(m);
  x = km_at_least(k, km_at_most(k, x, m->exp2_high), m->exp2_low);
  kb_reg t = kb_faddi(k, x, magic), f = kb_fsub(k, x, kb_faddi(k, t, -magic));
  return km_scale_by_halves(k, m, km_horner(k, f, m->exp2), t);
}

// p 2^n by the exponent alone, where both are normal numbers; t = n + magic.
static kb_reg times_power_of_two(kb *k, const km_consts *m, kb_reg p, kb_reg t) {
  return km_float(k, kb_add(k, km_bits(k, p), kb_shli(k, km_bits(k, t), m->man_bits)));
}

// May an approximate instruction stand for exact steps that it cannot tell apart from?
static bool takes_approx(const kb *k, kb_reg x) {
  return k->machine == KB_NVPTX && x.kind == KB_F32 && x.lanes == 1;
}

// --- log ----------------------------------------------------------------------------------------------------------

// The results for zero, negative x, infinity and NaN: -inf, NaN, inf, NaN. Their patterns less one are at or above that
// of infinity less one. x inf + inf is infinite for x = inf and NaN otherwise.
kb_reg km_log_special(kb *k, const km_consts *m, kb_reg x, kb_reg r) {
  kb_reg u = km_bits(k, x), inf = kb_flike(k, x, (double)INFINITY);
  kb_reg special = kb_icmp(k, LLVMIntUGE, kb_addi(k, u, -1), kb_ilike(k, u, m->inf_bits - 1));
  kb_reg zero = kb_fcmp(k, LLVMRealOEQ, x, kb_flike(k, x, 0));
  kb_reg s = kb_select(k, zero, kb_flike(k, x, -(double)INFINITY), kb_fma(k, x, inf, inf));
  return kb_select(k, special, s, r);
}

// f + f^2 p + n ln 2, where n counts in units of 1 / per. F64 keeps what is lost of n ln2 + f, whose unit may be twice
// that of the result.
static kb_reg log_sum(kb *k, const km_consts *m, kb_reg f, kb_reg p, kb_reg n, double per) {
  kb_reg s = kb_fmul(k, f, f), ln2 = kb_flike(k, f, m->ln2 / per);
  if (f.kind == KB_F32) return kb_fma(k, n, ln2, kb_fma(k, p, s, f));
  kb_reg sum = kb_fma(k, n, ln2, f), lost = kb_fadd(k, kb_fma(k, n, ln2, kb_fneg(k, sum)), f);
  return kb_fadd(k, sum, kb_fma(k, p, s, kb_fma(k, n, kb_flike(k, f, m->ln2_lo / per), lost)));
}

// log: all x. F32 0.95 ulp, F64 0.83 ulp, log(1) = +0. x = 2^n (1 + f) with 1 + f in [2/3, 4/3);
// log(1 + f) = f + f^2 P(f) by Remez. Denormals are scaled up by 2^man_bits first; n is left in its place among the
// bits, where an I32 becomes a float in one step. lg2.approx knows zero, infinity, NaN and negative x.
static kb_reg km_log(kb *k, const km_consts *m, kb_reg x) {
  kb_reg small = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, m->min_normal));
  kb_reg v = kb_select(k, small, kb_fmuli(k, x, ldexp(1, (int)m->man_bits)), x), u = km_bits(k, v);
  int64_t exponent = m->inf_bits | (int64_t)((uint64_t)1 << (x.kind == KB_F64 ? 63 : 31));
  kb_reg e = kb_andi(k, kb_addi(k, u, -m->two_thirds), exponent), n;
  kb_reg f = kb_faddi(k, km_float(k, kb_sub(k, u, e)), -1);
  if (x.kind == KB_F32) {
    n = kb_sitofp(k, kb_select(k, small, kb_addi(k, e, -((int64_t)m->man_bits << m->man_bits)), e), KB_F32);
  } else {
    kb_reg magic = kb_select(k, small, kb_flike(k, x, -m->magic - m->man_bits), kb_flike(k, x, -m->magic));
    n = kb_add(k, kb_ashri(k, e, m->man_bits), km_bits(k, kb_flike(k, x, m->magic)));
    n = kb_fadd(k, km_float(k, n), magic);
  }
  kb_reg r = log_sum(k, m, f, km_horner(k, f, m->log), n, x.kind == KB_F32 ? ldexp(1, (int)m->man_bits) : 1);
  if (!takes_approx(k, x)) return km_log_special(k, m, x, r);
  kb_reg special = kb_icmp(k, LLVMIntUGE, kb_addi(k, u, -1), kb_ilike(k, u, m->inf_bits - 1));
  return kb_select(k, special, kb_lg2_approx(k, v), r);
}

// --- tanh, logistic, erf ------------------------------------------------------------------------------------------

// 1 / d for d > 0, but for the last bits, which nothing may depend on. F64: taking the pattern from a constant leaves
// 5 %, of which e = 1 - d y goes by y (1 + e + e^2 + e^3), and the rest by y (1 + e + e^2), to 2^-51.
static kb_reg reciprocal_of(kb *k, const km_consts *m, kb_reg d) {
  kb_reg one = one_like(k, d), minus_d = kb_fneg(k, d), u = km_bits(k, d);
  if (d.kind == KB_F32) return takes_approx(k, d) ? kb_rcp_approx(k, d) : kb_fdiv(k, one, d);
  kb_reg y = km_float(k, kb_sub(k, kb_ilike(k, u, m->reciprocal_seed), u)), e = kb_fma(k, minus_d, y, one);
  y = kb_fma(k, kb_fma(k, kb_fma(k, e, e, e), e, e), y, y);
  e = kb_fma(k, minus_d, y, one);
  return kb_fma(k, kb_fma(k, e, e, e), y, y);
}

// tanh: all x. F32 0.96 ulp, F64 0.85 ulp. Below tanh_split x + x^3 P(x^2); above it 1 - 2 q / (1 + q) with
// q = exp(-2 |x|) < 1/4, where an error of q counts little: F32 has 2 / (1 + q) from a polynomial, F64 from a
// reciprocal that the remainder corrects, with what 1 + q lost. With |x| = -n ln 2 / 2 + r, q is exp(-2 r) 2^n.
static kb_reg km_tanh(kb *k, const km_consts *m, kb_reg x) {
  kb_reg a = kb_fabs(k, x), s = kb_fmul(k, a, a), one = one_like(k, x), large;
  kb_reg small = kb_fma(k, kb_fmul(k, km_horner(k, s, m->tanh_small), s), a, a);
  kb_reg b = km_at_most(k, a, m->tanh_one), t = km_fmai(k, b, -2 * m->log2e, m->magic), n = kb_faddi(k, t, -m->magic);
  kb_reg r = kb_fma(k, n, kb_flike(k, x, m->ln2 / 2), b);
  if (x.kind == KB_F64) r = kb_fma(k, n, kb_flike(k, x, m->ln2_lo / 2), r);
  double c[KM_MOST_TERMS], power = 1;
  for (unsigned i = 0; i < m->exp.n; i++, power *= -2) c[i] = m->exp.c[i] * power;
  kb_reg q = times_power_of_two(k, m, km_horner(k, r, (km_poly){c, m->exp.n}), t);
  if (x.kind == KB_F32) {
    large = kb_fma(k, kb_fneg(k, q), km_horner(k, q, m->tanh_large), one);
  } else {
    kb_reg d = kb_fadd(k, q, one), lost = kb_fsub(k, q, kb_faddi(k, d, -1)), y = reciprocal_of(k, m, d);
    kb_reg minus_y = kb_fneg(k, y), rest = kb_fma(k, minus_y, lost, kb_fma(k, minus_y, d, one));
    large = kb_fma(k, kb_fmuli(k, q, -2), kb_fma(k, rest, y, y), one);
  }
  kb_reg is_small = kb_fcmp(k, LLVMRealULT, a, kb_flike(k, a, m->tanh_split)); // or NaN
  return kb_fcopysign(k, kb_select(k, is_small, small, large), x);
}

// logistic: all x. F32 0.97 ulp, F64 under 1 ulp. 1 / (1 + exp(-x)) for either sign, all of it times 2^-up so that no
// part overflows. With exp(-x) = s + s e, s a power of two, the sum is d and what its rounding lost, and its reciprocal
// y is corrected by the remainder of both. In F32 one more step makes y the nearest number to (1 - 2^-24) / d whatever
// the seed was, but for some d; beside 1 - 2^-24 no such d stands where the result, too, is near a tie, as happens
// beside 1 for x near 0. So the result is the same for every seed within a unit.
static kb_reg km_logistic(kb *k, const km_consts *m, kb_reg x) {
  int up = (int)m->man_bits + 9;
  double scale = ldexp(1, -up), magic = m->magic + (double)(m->one_bits >> m->man_bits) - up;
  kb_reg one = kb_flike(k, x, scale), t;
  if (m->logistic_small != 0) {
    kb_reg small = kb_fcmp(k, LLVMRealOLT, kb_fabs(k, x), kb_flike(k, x, m->logistic_small));
    x = kb_select(k, small, kb_fmuli(k, x, m->logistic_shrink), x);
  }
  x = km_at_least(k, km_at_most(k, x, m->logistic_one), m->exp_low);
  kb_reg r = reduce_natural(k, m, kb_fneg(k, x), magic, &t), s = km_float(k, kb_shli(k, km_bits(k, t), m->man_bits));
  kb_reg e = kb_fma(k, kb_fmul(k, r, r), km_horner(k, r, (km_poly){m->exp.c + 2, m->exp.n - 2}), r);
  kb_reg d = kb_fma(k, s, e, kb_fadd(k, s, one)), lost = kb_fma(k, s, e, kb_fsub(k, one, kb_fsub(k, d, s)));
  kb_reg y = reciprocal_of(k, m, d), minus_d = kb_fneg(k, d);
  if (x.kind == KB_F32) y = kb_fma(k, kb_fma(k, minus_d, y, kb_flike(k, y, 1 - 0x1p-24)), y, y);
  kb_reg rest = kb_fma(k, kb_fneg(k, y), lost, kb_fma(k, minus_d, y, one_like(k, y)));
  return kb_fmul(k, kb_fma(k, rest, y, y), one);
}

// erf: all x. F32 0.98 ulp, F64 under 1 ulp. Below erf_split x + x P(x^2), in F64 of x^2 less 1/2, which costs nothing
// and halves what the polynomial loses; above it 1 - 2^(|x| P(|x|)), where |x| P is the logarithm of erfc to base 2.
static kb_reg km_erf(kb *k, const km_consts *m, kb_reg x) {
  kb_reg a = kb_fabs(k, x);
  kb_reg s = m->erf_middle ? kb_fma(k, a, a, kb_flike(k, a, -m->erf_middle)) : kb_fmul(k, a, a);
  kb_reg small = kb_fma(k, km_horner(k, s, m->erf_small), a, a);
  kb_reg b = km_at_most(k, a, m->erf_one), l = km_horner(k, b, m->erf_large);
  kb_reg t = kb_fma(k, l, b, kb_flike(k, x, m->magic)), f = kb_fma(k, l, b, kb_fneg(k, kb_faddi(k, t, -m->magic)));
  kb_reg large = kb_fsub(k, one_like(k, x), times_power_of_two(k, m, km_horner(k, f, m->exp2), t));
  kb_reg is_small = kb_fcmp(k, LLVMRealULT, a, kb_flike(k, a, m->erf_split)); // or NaN
  return kb_fcopysign(k, kb_select(k, is_small, small, large), x);
}

// --- rsqrt --------------------------------------------------------------------------------------------------------

// The results for zeros, infinity, NaN and negative x: infinities of their sign, +0, NaN, NaN. The pattern of infinity
// less x's own is the result for all but negative numbers.
static kb_reg rsqrt_special(kb *k, const km_consts *m, kb_reg x, kb_reg r) {
  kb_reg u = km_bits(k, x), inf = kb_ilike(k, u, m->inf_bits);
  kb_reg special = kb_icmp(k, LLVMIntUGE, kb_addi(k, u, -1), kb_ilike(k, u, m->inf_bits - 1));
  kb_reg negative = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, 0));
  kb_reg s = kb_select(k, negative, kb_flike(k, x, (double)NAN), km_float(k, kb_sub(k, inf, u)));
  return kb_select(k, special, s, r);
}

// 1 / sqrt(v) for normal v, to some units: halving the pattern gives 3.5%; with e = 1 - v y^2, y (1 + e / 2 + 3 e^2 /
// 8) leaves 5/16 e^3 of an error, and y (1 + e / 2) leaves 3/8 e^2.
static kb_reg rsqrt_rough(kb *k, const km_consts *m, kb_reg v) {
  kb_reg u = km_bits(k, v), one = one_like(k, v);
  kb_reg y = km_float(k, kb_sub(k, kb_ilike(k, u, m->rsqrt_seed), kb_lshri(k, u, 1)));
  for (unsigned i = 0; i <= m->rsqrt_cubic; i++) {
    kb_reg e = kb_fma(k, kb_fneg(k, kb_fmul(k, v, y)), y, one);
    kb_reg half = i < m->rsqrt_cubic ? km_fmai(k, e, 0.375, 0.5) : kb_flike(k, v, 0.5);
    y = kb_fma(k, kb_fmul(k, y, e), half, y);
  }
  return y;
}

// rsqrt: all x. F32 correctly rounded, F64 0.51 ulp. With e = (1 - v y^2) / 2, where v y is a sum of two, y (1 + e +
// 3/2 e^2) leaves nothing of y's own error: in F32 the result is the same for every y within 2^-22.9, so that the
// approximate instruction serves as well as the steps above. It knows zeros, infinity, NaN and negative x, where e is
// none below 1.
static kb_reg km_rsqrt(kb *k, const km_consts *m, kb_reg x) {
  int up = (int)(m->man_bits + 1) & ~1;
  bool approximate = takes_approx(k, x);
  kb_reg one = one_like(k, x), denormal = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, m->min_normal));
  kb_reg v = kb_select(k, denormal, kb_fmuli(k, x, ldexp(1, up)), x);
  kb_reg y = approximate ? kb_rsqrt_approx(k, v) : rsqrt_rough(k, m, v), half = kb_fmuli(k, y, 0.5);
  km_two p = km_product(k, v, y);
  kb_reg e = kb_fma(k, kb_fneg(k, p.hi), half, kb_flike(k, x, 0.5));
  e = kb_fma(k, kb_fneg(k, p.lo), half, e);
  kb_reg r = kb_fma(k, y, kb_fma(k, kb_fmuli(k, e, 1.5), e, e), y);
  if (approximate) r = kb_select(k, kb_fcmp(k, LLVMRealOLT, kb_fabs(k, e), one), r, y);
  r = kb_select(k, denormal, kb_fmuli(k, r, ldexp(1, up / 2)), r);
  return approximate ? r : rsqrt_special(k, m, x, r);
}

kb_reg km_expand(kb *k, km_fn fn, const km_consts *m, kb_reg x) {
  if (m->nudge[fn].from != 0) x = km_replace(k, x, m->nudge[fn]);
  switch (fn) {
  case KM_EXP: return km_exp(k, m, x);
  case KM_EXP2: return km_exp2(k, m, x);
  case KM_LOG: return km_log(k, m, x);
  case KM_TANH: return km_tanh(k, m, x);
  case KM_LOGISTIC: return km_logistic(k, m, x);
  case KM_ERF: return km_erf(k, m, x);
  case KM_RSQRT: return km_rsqrt(k, m, x);
  case KM_EXPM1:
  case KM_EXP10:
  case KM_SINH:
  case KM_COSH: return km_exponential(k, fn, m, x);
  case KM_LOG1P:
  case KM_ASINH:
  case KM_ACOSH:
  case KM_ATANH: return km_logarithm(k, fn, m, x);
  case KM_SIN:
  case KM_COS:
  case KM_TAN: return km_angle(k, fn, m, x, false);
  case KM_ASIN:
  case KM_ACOS:
  case KM_ATAN: return km_arc(k, fn, m, x);
  case KM_CBRT: return km_cbrt(k, m, x);
  case KM_FN_COUNT: break;
  }
  return x;
}

static const km_consts *consts_for(kl_dtype t) {
  return t == KILN_F64 ? &km_f64 : t == KILN_F16 ? &km_f16 : &km_f32;
}

// Inputs of f16 and bf16 whose result lies so near to a tie that F32 does not see on which side, and neighbours that it
// sees right. Of odd and even functions both signs are meant.
static const struct {
  km_fn fn;
  kl_dtype t;
  bool signs;
  km_nudge nudge;
} near_ties[] = {
    {KM_EXPM1, KILN_F16, false, {0x1.6ap-11, 0x1.6a0002p-11}},
    {KM_SINH, KILN_F16, true, {0x1.3c8p+1, 0x1.3c8002p+1}},
    {KM_COSH, KILN_F16, true, {0x1p-5, 0x1.000556p-5}},
    {KM_LOG1P, KILN_F16, false, {0x1.80cp-8, 0x1.80c002p-8}},
    {KM_LOG1P, KILN_F16, false, {-0x1.7f4p-8, -0x1.7f3ffep-8}},
    {KM_ASINH, KILN_F16, true, {0x1.c7cp+3, 0x1.c7bff8p+3}},
    {KM_ACOSH, KILN_F16, false, {0x1.39p+0, 0x1.390002p+0}},
    {KM_SIN, KILN_F16, true, {0x1.accp-3, 0x1.acc002p-3}},
    {KM_SIN, KILN_F16, true, {0x1.2cp+8, 0x1.2bfffep+8}},
    {KM_COS, KILN_F16, true, {0x1.dfp-5, 0x1.defdf4p-5}},
    {KM_TAN, KILN_F16, true, {0x1.25p-5, 0x1.250002p-5}},
    {KM_TAN, KILN_F16, true, {0x1.7b4p+6, 0x1.7b3ffep+6}},
    {KM_TAN, KILN_F16, true, {0x1.d28p+14, 0x1.71ec6p+0}},
    {KM_ACOS, KILN_F16, false, {-0x1.2cp-18, -0x1.38p-18}},
    {KM_ACOS, KILN_F16, false, {-0x1.2bcp-4, -0x1.2bbfe2p-4}},
    {KM_ACOS, KILN_F16, false, {-0x1.1dp-1, -0x1.1d0006p-1}},
    {KM_ATAN, KILN_F16, true, {0x1.d14p-6, 0x1.d14002p-6}},
    {KM_ATAN, KILN_F16, true, {0x1.ad4p-3, 0x1.ad4002p-3}},
    {KM_ATAN, KILN_F16, true, {0x1.9b8p+2, 0x1.9b8014p+2}},
    {KM_EXP10, KILN_BF16, false, {-0x1.2ap-6, -0x1.2a0016p-6}},
};

static kb_reg off_ties(kb *k, km_fn fn, kl_dtype t, kb_reg x) {
  if (fn == KM_CBRT && t == KILN_F16) return kb_fmuli(k, x, 1 + 0x1p-22); // one tie, in every third binade
  kb_reg a = x;
  bool signs = false;
  for (size_t i = 0; i < KL_COUNT(near_ties); i++) {
    if (near_ties[i].fn != fn || near_ties[i].t != t) continue;
    if (near_ties[i].signs && !signs) a = kb_fabs(k, a), signs = true;
    a = km_replace(k, a, near_ties[i].nudge);
  }
  return signs ? kb_fcopysign(k, a, x) : a;
}

kb_reg km_call(kb *k, km_fn fn, kl_dtype t, kb_reg x) {
  bool bf16 = kl_info(t)->bits < 16 || t == KILN_BF16 || (t == KILN_F16 && fn == KM_RSQRT);
  kb_reg r;
  if (t == KILN_F32 && km_fast(k, fn, x, &r)) return r;
  if (bf16 && k->machine == KB_NVPTX && x.lanes == 1 && km_approx(k, fn, t, x, &r)) return r;
  return km_expand(k, fn, consts_for(t), off_ties(k, fn, t, x));
}

kb_reg km_exp_nonpositive(kb *k, kl_dtype t, kb_reg x) {
  if (kl_info(t)->bits < 32 || k->fast) return km_call(k, KM_EXP, t, x);
  return exp_nonpositive(k, consts_for(t), x);
}
