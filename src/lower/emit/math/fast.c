// Functions of F32 in numerics `fast` on NVPTX: by approximate instructions, within the bounds that kl_op_bound states
// (src/eval/eval.h), whatever those instructions return within their documented errors. tests/emit/fast.c measures
// them. All inputs are served: denormals, infinities, NaN, and signs of zeros as in `strict`; no result leaves its
// function's range. Functions that are not here, other types, and the host compute what `strict` does.
//
// lg2.approx is good to 2^-22 of its result at and above 1 and to 2^-22 below: functions that are logarithms take it
// from where they reach ln 2, and below that a polynomial.

#include "lower/emit/math/impl.h"

#include <math.h>

// Polynomials: tests/emit/search/coefficients.py fast.
// (sinh(x) / x - 1) / x^2 in x^2, |x| to 1: 2^-31.62 of sinh
static const double sinh_terms[] = {0x1.555556p-3, 0x1.1110ep-7, 0x1.a022bcp-13, 0x1.756c1ep-19};
// (asinh(x) / x - 1) / x^2 in x^2, |x| to 3/4: 2^-27.00 of asinh
static const double asinh_terms[] = {-0x1.5554e2p-3, 0x1.33126ap-4, -0x1.6a8ffep-5,
                                     0x1.cd0178p-6,  -0x1.f5f11p-7, 0x1.31e9d2p-8};
// acosh(1 + d) / sqrt(2 d) for d to 1/4: 2^-29.67
static const double acosh_terms[] = {0x1p+0, -0x1.55552ep-4, 0x1.331ab4p-6, -0x1.68f16p-8, 0x1.91c50cp-10};
// (atanh(x) / x - 1) / x^2 in x^2, |x| to 1/3: 2^-27.73 of atanh
static const double atanh_terms[] = {0x1.555502p-2, 0x1.99d1ccp-3, 0x1.1ec04p-3, 0x1.1eca1cp-3};

#define POLY(a)                                                                                                        \
  (km_poly) {                                                                                                          \
    a, KL_COUNT(a)                                                                                                     \
  }

static kb_reg one_like(kb *k, kb_reg x) {
  return kb_flike(k, x, 1);
}

// x + x^3 p(x^2)
static kb_reg odd_polynomial(kb *k, kb_reg x, km_poly p) {
  kb_reg s = kb_fmul(k, x, x);
  return kb_fma(k, kb_fmul(k, x, s), km_horner(k, s, p), x);
}

static kb_reg below(kb *k, kb_reg x, double c) {
  return kb_fcmp(k, LLVMRealULT, x, kb_flike(k, x, c)); // or NaN
}

static kb_reg denormal(kb *k, kb_reg x) {
  return kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, 0x1p-126)); // or negative, or zero
}

// f(up x) down, where x is a denormal, else f(x).
static kb_reg by_scaling(kb *k, kb_reg (*f)(kb *, kb_reg), kb_reg x, double up, double down) {
  kb_reg is_small = denormal(k, x), y = f(k, kb_select(k, is_small, kb_fmuli(k, x, up), x));
  return kb_select(k, is_small, kb_fmuli(k, y, down), y);
}

// --- exponentials -------------------------------------------------------------------------------------------------

// 2^(c x) as e s with a power of two s: e = ex2(c x - n), s = 2^(n + bias). n stays from `low` to low + 252, and beyond
// them e grows or falls on, to infinity or 0, so that e s is right there, too. c is a sum of two; x may be.
typedef struct scaled {
  kb_reg e, s;
} scaled;

enum { SPAN = 252 };

static scaled ex2_scaled(kb *k, km_two both, km_real c, int bias, int low) {
  const double magic = km_f32.magic + 127 + bias;
  kb_reg x = both.hi;
  kb_reg u = kb_saturate(k, km_fmai(k, x, (double)(float)(c.hi / SPAN), (double)(float)(-low / (double)SPAN)));
  kb_reg t = km_fmai(k, u, SPAN, magic + low);
  kb_reg n = kb_faddi(k, t, -magic), f = kb_fma(k, x, kb_flike(k, x, c.hi), kb_fneg(k, n));
  f = kb_fma(k, x, kb_flike(k, x, c.lo), f);
  if (both.lo.v) f = kb_fma(k, both.lo, kb_flike(k, x, c.hi), f);
  return (scaled){kb_ex2_approx(k, f), km_float(k, kb_shli(k, km_bits(k, t), 23))};
}

static const km_real log2_e = {0x1.715476p+0, 0x1.4ae0cp-26}, minus_log2_e = {-0x1.715476p+0, -0x1.4ae0cp-26};
static const km_real log2_10 = {0x1.a934fp+1, 0x1.2f346ep-24};

static kb_reg exponential(kb *k, kb_reg x) {
  scaled p = ex2_scaled(k, (km_two){x, km_none}, log2_e, 0, -126);
  return kb_fmul(k, p.e, p.s);
}

static kb_reg exponential_decimal(kb *k, kb_reg x) {
  scaled p = ex2_scaled(k, (km_two){x, km_none}, log2_10, 0, -126);
  return kb_fmul(k, p.e, p.s);
}

// 1 / (1 + exp(-x)), all of it times 2^-24, so that the least results come out. Where the sum rounds to 2^-24 its
// reciprocal may be off: from a little below there it is 1, within little more than a unit.
static kb_reg logistic(kb *k, kb_reg x) {
  const double scale = 0x1p-24;
  scaled q = ex2_scaled(k, (km_two){x, km_none}, minus_log2_e, -24, -102);
  kb_reg y = kb_rcp_approx(k, kb_fma(k, q.e, q.s, kb_flike(k, x, scale)));
  return kb_select(k, kb_fcmp(k, LLVMRealOGT, x, kb_flike(k, x, 16.5)), one_like(k, x), kb_fmuli(k, y, scale));
}

// 1 - 2 / (exp(2 |x|) + 1), or for small x the polynomial of `strict`.
static kb_reg hyperbolic_tangent(kb *k, kb_reg x) {
  kb_reg a = kb_fabs(k, x), s = kb_fmul(k, a, a), one = one_like(k, x);
  kb_reg small = kb_fma(k, kb_fmul(k, km_horner(k, s, km_f32.tanh_small), s), a, a);
  kb_reg e = kb_ex2_approx(k, kb_fmuli(k, a, 2 * km_f32.log2e));
  kb_reg large = km_fmai(k, kb_rcp_approx(k, kb_fadd(k, e, one)), -2, 1);
  return kb_fcopysign(k, kb_select(k, kb_fcmp(k, LLVMRealULT, a, kb_flike(k, a, km_f32.tanh_split)), small, large), x);
}

// As `strict`, but for 2^y.
static kb_reg error_function(kb *k, kb_reg x) {
  kb_reg a = kb_fabs(k, x), s = kb_fmul(k, a, a);
  kb_reg small = kb_fma(k, km_horner(k, s, km_f32.erf_small), a, a);
  kb_reg b = km_at_most(k, a, km_f32.erf_one), y = kb_fmul(k, km_horner(k, b, km_f32.erf_large), b);
  kb_reg large = kb_fsub(k, one_like(k, x), kb_ex2_approx(k, y));
  return kb_fcopysign(k, kb_select(k, kb_fcmp(k, LLVMRealULT, a, kb_flike(k, a, km_f32.erf_split)), small, large), x);
}

// As `strict`, but what is lost on the way is lost.
static kb_reg less_one(kb *k, kb_reg x) {
  const km_consts *m = &km_f32;
  kb_reg v = km_at_least(k, km_at_most(k, x, m->exp_high), m->expm1_low), t;
  kb_reg r = km_reduce_natural(k, m, v, m->magic - 1, &t).hi, s = km_power_of_two(k, m, t);
  kb_reg p = kb_fma(k, kb_fmul(k, r, r), km_horner(k, r, m->expm1), r), y = kb_fma(k, s, p, kb_faddi(k, s, -0.5));
  return kb_fcopysign(k, kb_fadd(k, y, y), x);
}

// exp(a) / 2 for a >= 0, and what exp(-a) / 2 is: a quarter of its reciprocal, 0 where it counts nothing.
static kb_reg half_exp(kb *k, kb_reg a, kb_reg *inverse) {
  scaled p = ex2_scaled(k, (km_two){a, km_none}, log2_e, -1, -125);
  kb_reg h = kb_fmul(k, p.e, p.s);
  *inverse = kb_rcp_approx(k, h);
  return h;
}

static kb_reg hyperbolic_sine(kb *k, kb_reg x) {
  kb_reg a = kb_fabs(k, x), inverse, h = half_exp(k, a, &inverse);
  kb_reg large = kb_fcopysign(k, kb_fma(k, inverse, kb_flike(k, x, -0.25), h), x);
  return kb_select(k, below(k, a, 1), odd_polynomial(k, x, POLY(sinh_terms)), large);
}

static kb_reg hyperbolic_cosine(kb *k, kb_reg x) {
  kb_reg inverse, h = half_exp(k, kb_fabs(k, x), &inverse);
  return km_at_least(k, kb_fma(k, inverse, kb_flike(k, x, 0.25), h), 1);
}

// --- logarithms ---------------------------------------------------------------------------------------------------

static kb_reg logarithm(kb *k, kb_reg x) {
  kb_reg is_small = denormal(k, x), l = kb_lg2_approx(k, kb_select(k, is_small, kb_fmuli(k, x, 0x1p+23), x));
  kb_reg more = kb_select(k, is_small, kb_flike(k, x, -0x1.fe2804p+3), kb_flike(k, x, 0)); // 23 ln 2
  return kb_fma(k, l, kb_flike(k, x, km_f32.ln2), more);
}

// factor ln(x) + more
static kb_reg natural(kb *k, kb_reg x, double factor, double more) {
  kb_reg l = kb_lg2_approx(k, x), c = kb_flike(k, x, km_f32.ln2 * factor);
  return more == 0 ? kb_fmul(k, l, c) : kb_fma(k, l, c, kb_flike(k, x, more));
}

// 2 atanh(x / (2 + x)) between -1/2 and 1.
static kb_reg log_plus_one(kb *k, kb_reg x) {
  double c[KL_COUNT(atanh_terms)], quarter = 0.25;
  for (size_t i = 0; i < KL_COUNT(c); i++, quarter *= 0.25) c[i] = atanh_terms[i] * quarter;
  kb_reg w = kb_fmul(k, x, kb_rcp_approx(k, km_fmai(k, x, 0.5, 1)));
  kb_reg is_near = below(k, kb_fabs(k, kb_faddi(k, x, -0.25)), 0.75);
  return kb_select(k, is_near, odd_polynomial(k, w, POLY(c)), natural(k, kb_faddi(k, x, 1), 1, 0));
}

static kb_reg arc_tangent_hyperbolic(kb *k, kb_reg x) {
  kb_reg a = km_at_most(k, kb_fabs(k, x), 2), one = one_like(k, x);
  kb_reg q = kb_fmul(k, kb_fadd(k, one, a), kb_rcp_approx(k, kb_fsub(k, one, a)));
  kb_reg large = kb_fcopysign(k, natural(k, q, 0.5, 0), x);
  return kb_select(k, below(k, a, 0x1.555556p-2), odd_polynomial(k, x, POLY(atanh_terms)), large);
}

// ln(x + sqrt(x^2 + c)) = ln 2 + ln(h + root) with h = x / 2 and the root of h^2 + c / 4. Of large x that is h.
static kb_reg log_of_sum(kb *k, kb_reg x, kb_reg h, kb_reg root) {
  kb_reg is_huge = kb_fcmp(k, LLVMRealOGT, x, kb_flike(k, x, 0x1p+20));
  return natural(k, kb_fadd(k, h, kb_select(k, is_huge, h, root)), 1, km_f32.ln2);
}

static kb_reg arc_sine_hyperbolic(kb *k, kb_reg x) {
  kb_reg a = kb_fabs(k, x), h = kb_fmuli(k, a, 0.5), root = kb_sqrt_approx(k, kb_fma(k, h, h, kb_flike(k, x, 0.25)));
  kb_reg small = odd_polynomial(k, a, POLY(asinh_terms));
  return kb_fcopysign(k, kb_select(k, below(k, a, 0.75), small, log_of_sum(k, a, h, root)), x);
}

// The root is of 2 d where x = 1 + d is near 1; below 1 it is of a negative number.
static kb_reg arc_cosine_hyperbolic(kb *k, kb_reg x) {
  kb_reg d = kb_faddi(k, x, -1), h = kb_fmuli(k, x, 0.5), is_near = below(k, d, 0.25);
  kb_reg square = kb_fma(k, h, h, kb_flike(k, x, -0.25));
  kb_reg root = kb_sqrt_approx(k, kb_select(k, is_near, kb_fadd(k, d, d), square));
  kb_reg small = kb_fmul(k, root, km_horner(k, d, POLY(acosh_terms)));
  return kb_select(k, is_near, small, log_of_sum(k, x, h, root));
}

// --- angles -------------------------------------------------------------------------------------------------------

// asin(a) for a to 1/2; beyond it asin(sqrt((1 - a) / 2)), which is half of what is left to pi / 2, or NaN.
static kb_reg arc_sine_part(kb *k, kb_reg a, kb_reg far) {
  kb_reg z = km_fmai(k, a, -0.5, 0.5), root = kb_sqrt_approx(k, z);
  kb_reg s = kb_select(k, far, z, kb_fmul(k, a, a)), base = kb_select(k, far, root, a);
  return kb_fma(k, kb_fmul(k, base, s), km_horner(k, s, km_f32.asin), base);
}

static kb_reg arc_sine(kb *k, kb_reg x) {
  kb_reg a = kb_fabs(k, x), far = kb_fcmp(k, LLVMRealOGT, a, kb_flike(k, x, 0.5)), r = arc_sine_part(k, a, far);
  return kb_fcopysign(k, kb_select(k, far, km_fmai(k, r, -2, km_f32.half_pi[0]), r), x);
}

static kb_reg arc_cosine(kb *k, kb_reg x) {
  double half_pi = km_f32.half_pi[0];
  kb_reg a = kb_fabs(k, x), far = kb_fcmp(k, LLVMRealOGT, a, kb_flike(k, x, 0.5));
  kb_reg r = kb_fcopysign(k, arc_sine_part(k, a, far), x), zero = kb_flike(k, x, 0);
  kb_reg whole = kb_select(k, kb_fcmp(k, LLVMRealOLT, x, zero), kb_flike(k, x, 2 * half_pi), zero);
  return kb_select(k, far, kb_fma(k, r, kb_flike(k, x, 2), whole), kb_fsub(k, kb_flike(k, x, half_pi), r));
}

static kb_reg arc_tangent(kb *k, kb_reg x) {
  kb_reg a = kb_fabs(k, x), far = kb_fcmp(k, LLVMRealOGT, a, one_like(k, x));
  kb_reg r = odd_polynomial(k, kb_select(k, far, kb_rcp_approx(k, a), a), km_f32.atan);
  return kb_fcopysign(k, kb_select(k, far, kb_fsub(k, kb_flike(k, x, km_f32.half_pi[0]), r), r), x);
}

// From the quotient of the lesser by the greater, which need not be one of infinities or of zeros: those count as
// equal, and equal ones make pi / 4, but zeros 0.
kb_reg km_fast_atan2(kb *k, kb_reg y, kb_reg x) {
  kb_reg a = kb_fabs(k, y), b = kb_fabs(k, x), top = kb_fmin(k, a, b), bottom = kb_fmax(k, a, b);
  kb_reg zero = kb_flike(k, x, 0), half_pi = kb_flike(k, x, km_f32.half_pi[0]);
  kb_reg same = kb_select(k, kb_fcmp(k, LLVMRealOEQ, bottom, zero), zero, kb_fmuli(k, half_pi, 0.5));
  kb_reg r = odd_polynomial(k, kb_div_full(k, top, bottom), km_f32.atan);
  r = kb_select(k, kb_fcmp(k, LLVMRealOEQ, top, bottom), same, r);
  r = kb_select(k, kb_fcmp(k, LLVMRealOGT, a, b), kb_fsub(k, half_pi, r), r);
  kb_reg left = kb_icmp(k, LLVMIntSLT, km_bits(k, x), kb_ilike(k, km_bits(k, x), 0));
  r = kb_select(k, left, kb_fsub(k, kb_fmuli(k, half_pi, 2), r), r);
  return kb_fcopysign(k, r, y);
}

// --- roots and powers ---------------------------------------------------------------------------------------------

static kb_reg reciprocal_root(kb *k, kb_reg x) {
  return by_scaling(k, kb_rsqrt_approx, x, 0x1p+24, 0x1p+12);
}

// With z about a^(-1/3) and e = 1 - a z^3, a z^2 (1 - e)^(-2/3). Denormals and 0 are made larger for z, with something
// added so that z is a number; infinity has its 1 - e of -infinity, whose sign goes.
static kb_reg cube_root(kb *k, kb_reg x) {
  kb_reg a = kb_fabs(k, x), is_small = kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, x, 0x1p-126)), zero = kb_flike(k, x, 0);
  kb_reg l = kb_lg2_approx(k, kb_select(k, is_small, km_fmai(k, a, 0x1p+48, 0x1p-126), a));
  l = km_at_most(k, kb_fadd(k, l, kb_select(k, is_small, kb_flike(k, x, -48), zero)), 128);
  kb_reg z = kb_ex2_approx(k, kb_fmuli(k, l, -0x1.555556p-2)), y = kb_fmul(k, a, kb_fmul(k, z, z));
  kb_reg e = kb_fma(k, kb_fneg(k, y), z, one_like(k, x));
  return kb_fcopysign(k, kb_fmul(k, y, km_fmai(k, e, 0x1.555556p-1, 1)), x);
}

kb_reg km_fast_exp(kb *k, km_two x) {
  kb_reg counts = below(k, kb_fabs(k, x.hi), 0x1p+10);
  x.lo = kb_select(k, counts, x.lo, kb_flike(k, x.hi, 0));
  scaled p = ex2_scaled(k, x, log2_e, 0, -126);
  return kb_fmul(k, p.e, p.s);
}

// --- the table ----------------------------------------------------------------------------------------------------

bool km_is_fast(const kb *k, kb_reg x) {
  return k->fast && k->machine == KB_NVPTX && x.kind == KB_F32 && x.lanes == 1;
}

// Of one operand. sin, cos and tan are `strict` but for the last steps.
static kb_reg (*const table[KM_FN_COUNT])(kb *, kb_reg) = {
    [KM_EXP] = exponential,
    [KM_EXP10] = exponential_decimal,
    [KM_EXPM1] = less_one,
    [KM_SINH] = hyperbolic_sine,
    [KM_COSH] = hyperbolic_cosine,
    [KM_TANH] = hyperbolic_tangent,
    [KM_LOGISTIC] = logistic,
    [KM_ERF] = error_function,
    [KM_LOG] = logarithm,
    [KM_LOG1P] = log_plus_one,
    [KM_ASINH] = arc_sine_hyperbolic,
    [KM_ACOSH] = arc_cosine_hyperbolic,
    [KM_ATANH] = arc_tangent_hyperbolic,
    [KM_ASIN] = arc_sine,
    [KM_ACOS] = arc_cosine,
    [KM_ATAN] = arc_tangent,
    [KM_RSQRT] = reciprocal_root,
    [KM_CBRT] = cube_root,
};

bool km_fast(kb *k, km_fn fn, kb_reg x, kb_reg *out) {
  if (!km_is_fast(k, x)) return false;
  if (fn == KM_SIN || fn == KM_COS || fn == KM_TAN) return *out = km_angle(k, fn, &km_f32, x, true), true;
  if (!table[fn]) return false;
  *out = table[fn](k, x);
  return true;
}

kb_reg km_sqrt(kb *k, kb_reg x) {
  return km_is_fast(k, x) ? by_scaling(k, kb_sqrt_approx, x, 0x1p+24, 0x1p-12) : kb_fsqrt(k, x);
}

kb_reg km_divide(kb *k, kb_reg a, kb_reg b) {
  return km_is_fast(k, a) ? kb_div_full(k, a, b) : kb_fdiv(k, a, b);
}

kb_reg km_reciprocal(kb *k, kb_reg x) {
  return km_is_fast(k, x) ? kb_rcp_approx(k, x) : kb_fdiv(k, one_like(k, x), x);
}
