// exp, exp2, log, tanh, logistic, erf and rsqrt for F32 and F64 (the others: exponential.c, logarithm.c, angle.c,
// arc.c, root.c, power.c), from +, -, *, fma, comparisons, selects and integer operations only: every machine that
// rounds these as IEEE 754 says gives the same bits. No division, no table, no branch. Units in the last place (ulp)
// are of the exact result; the figures are the worst ones found by tests/emit/math.c. For F32 that is over all 2^32
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

// exp2: all x. F32 0.90 ulp, F64 0.90 ulp, exact for integers. Remez polynomial for 2^f on +-0.5.
static kb_reg km_exp2(kb *k, const km_consts *m, kb_reg x) {
  double magic = km_magic_for_halves(m);
  x = km_at_least(k, km_at_most(k, x, m->exp2_high), m->exp2_low);
  kb_reg t = kb_faddi(k, x, magic), f = kb_fsub(k, x, kb_faddi(k, t, -magic));
  return km_scale_by_halves(k, m, km_horner(k, f, m->exp2), t);
}

// 2^(c a) for c a in [-bias + 1, 0], without the last bits: c is rounded once, which costs c a half units of the
// result.
static kb_reg exp2_scaled(kb *k, const km_consts *m, kb_reg a, double c) {
  kb_reg t = km_fmai(k, a, c, m->magic), n = kb_faddi(k, t, -m->magic);
  kb_reg f = kb_fma(k, a, kb_flike(k, a, c), kb_fneg(k, n));
  return kb_fmul(k, km_horner(k, f, m->exp2), km_power_of_two(k, m, t));
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

// f + f^2 p + n ln 2. F64 keeps what is lost of n ln2 + f, whose unit may be twice that of the result.
static kb_reg log_sum(kb *k, const km_consts *m, kb_reg f, kb_reg p, kb_reg n) {
  kb_reg s = kb_fmul(k, f, f), ln2 = kb_flike(k, f, m->ln2);
  if (f.kind == KB_F32) return kb_fma(k, n, ln2, kb_fma(k, p, s, f));
  kb_reg sum = kb_fma(k, n, ln2, f), lost = kb_fadd(k, kb_fma(k, n, ln2, kb_fneg(k, sum)), f);
  return kb_fadd(k, sum, kb_fma(k, p, s, kb_fma(k, n, kb_flike(k, f, m->ln2_lo), lost)));
}

// log: all x. F32 0.95 ulp, F64 0.83 ulp, log(1) = +0. x = 2^n (1 + f) with 1 + f in [2/3, 4/3);
// log(1 + f) = f + f^2 P(f) by Remez. Denormals are scaled up by 2^man_bits first.
static kb_reg km_log(kb *k, const km_consts *m, kb_reg x) {
  double up = ldexp(1, (int)m->man_bits);
  kb_reg small = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, m->min_normal));
  kb_reg u = km_bits(k, kb_select(k, small, kb_fmuli(k, x, up), x));
  kb_reg magic = kb_select(k, small, kb_flike(k, x, -m->magic - m->man_bits), kb_flike(k, x, -m->magic));
  kb_reg n = kb_ashri(k, kb_addi(k, u, -m->two_thirds), m->man_bits);
  kb_reg f = kb_faddi(k, km_float(k, kb_sub(k, u, kb_shli(k, n, m->man_bits))), -1);
  kb_reg fn = kb_fadd(k, km_float(k, kb_add(k, n, km_bits(k, kb_flike(k, x, m->magic)))), magic);
  return km_log_special(k, m, x, log_sum(k, m, f, km_horner(k, f, m->log), fn));
}

// --- tanh, logistic, erf ------------------------------------------------------------------------------------------

// n / (1 + q) for q in [0, 1] and n = q or 1, within 0.51 ulp. A polynomial for 1 / (1 + q) and one step of second
// order (F32, leaving 2^-18) or third order (F64, 2^-35) give y; then n y is corrected by its own remainder, which
// squares the error. 1 + q is never rounded, and both differences are exact.
static kb_reg divide_1p(kb *k, const km_consts *m, kb_reg n, kb_reg q) {
  kb_reg y = km_horner(k, q, m->reciprocal), minus_q = kb_fneg(k, q);
  kb_reg e = kb_fma(k, minus_q, y, kb_fsub(k, one_like(k, q), y));
  y = kb_fma(k, y, q.kind == KB_F64 ? kb_fma(k, e, e, e) : e, y);
  kb_reg r = kb_fmul(k, n, y), rest = kb_fma(k, minus_q, r, kb_fsub(k, n, r));
  return kb_fma(k, rest, y, r);
}

// tanh: all x. F32 1.31 ulp, F64 1.16 ulp. Below tanh_split x + x^3 P(x^2); above it 1 - 2 q / (1 + q) with
// q = exp(-2 |x|), where an error of q counts little. q vanishes in the sum before it could underflow.
static kb_reg km_tanh(kb *k, const km_consts *m, kb_reg x) {
  kb_reg a = kb_fabs(k, x), s = kb_fmul(k, a, a);
  kb_reg small = kb_fma(k, kb_fmul(k, km_horner(k, s, m->tanh_small), s), a, a);
  kb_reg q = exp2_scaled(k, m, km_at_most(k, a, m->tanh_one), -2 * m->log2e), large;
  if (x.kind == KB_F64)
    large = km_fmai(k, divide_1p(k, m, q, q), -2, 1);
  else
    large = kb_fma(k, kb_fneg(k, q), km_horner(k, q, m->tanh_large), one_like(k, x));
  kb_reg is_small = kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, a, m->tanh_split));
  return kb_fcopysign(k, kb_select(k, is_small, small, large), x);
}

// logistic: all x. F32 1.48 ulp, F64 1.47 ulp. With q = exp(-|x|): 1 / (1 + q), or q / (1 + q) for negative x. q is
// made as q 2^up first, because the power of two alone may be no normal number.
static kb_reg km_logistic(kb *k, const km_consts *m, kb_reg x) {
  int up = (int)m->man_bits + 9;
  kb_reg y = kb_fneg(k, kb_fabs(k, x)), t;
  if (m->logistic_small != 0) {
    kb_reg small = kb_fcmp(k, LLVMRealOGT, y, kb_flike(k, y, -m->logistic_small));
    y = kb_select(k, small, kb_fmuli(k, y, m->logistic_shrink), y);
  }
  y = km_at_least(k, y, m->exp_low);
  kb_reg r = reduce_natural(k, m, y, m->magic + up, &t);
  kb_reg scaled = kb_fmul(k, km_horner(k, r, m->exp), km_power_of_two(k, m, t));
  kb_reg q = kb_fmuli(k, scaled, ldexp(1, -up));
  kb_reg negative = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, 0));
  return divide_1p(k, m, kb_select(k, negative, q, one_like(k, x)), q);
}

// erf: all x. F32 1.23 ulp, F64 1.12 ulp. Below erf_split x + x P(x^2); above it 1 - 2^P(|x|), where P is the
// logarithm of erfc to base 2.
static kb_reg km_erf(kb *k, const km_consts *m, kb_reg x) {
  kb_reg a = kb_fabs(k, x), s = kb_fmul(k, a, a);
  kb_reg small = kb_fma(k, km_horner(k, s, m->erf_small), a, a);
  kb_reg e = km_horner(k, km_at_most(k, a, m->erf_one), m->erf_large);
  kb_reg t = kb_faddi(k, e, m->magic), f = kb_fsub(k, e, kb_faddi(k, t, -m->magic));
  kb_reg p = km_horner(k, f, m->exp2);
  kb_reg large = kb_fma(k, kb_fneg(k, p), km_power_of_two(k, m, t), one_like(k, x));
  kb_reg is_small = kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, a, m->erf_split));
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
  bool approximate = k->machine == KB_NVPTX && x.kind == KB_F32 && x.lanes == 1;
  kb_reg one = one_like(k, x), denormal = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, m->min_normal));
  kb_reg v = kb_select(k, denormal, kb_fmuli(k, x, ldexp(1, up)), x);
  kb_reg y = approximate ? kb_rsqrt_approx(k, v) : rsqrt_rough(k, m, v), half = kb_fmuli(k, y, 0.5);
  km_two p = km_product(k, v, y);
  kb_reg e = kb_fma(k, kb_fneg(k, p.hi), half, kb_flike(k, x, 0.5));
  e = kb_fma(k, kb_fneg(k, p.lo), half, e);
  kb_reg r = kb_fma(k, y, kb_fma(k, kb_fmuli(k, e, 1.5), e, e), y);
  if (approximate) r = kb_select(k, kb_fcmp(k, LLVMRealOLT, kb_fabs(k, e), one), r, y);
  r = kb_fmul(k, r, kb_select(k, denormal, kb_flike(k, x, ldexp(1, up / 2)), one));
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
  case KM_TAN: return km_angle(k, fn, m, x);
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
  if (bf16 && k->machine == KB_NVPTX && x.lanes == 1 && km_approx(k, fn, t, x, &r)) return r;
  return km_expand(k, fn, consts_for(t), off_ties(k, fn, t, x));
}
