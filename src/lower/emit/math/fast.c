// Functions of F32 in numerics `fast` on NVPTX: by approximate instructions, within the bounds that kl_op_bound states
// (src/eval/eval.h), whatever those instructions return within their documented errors. tests/emit/fast.c measures
// them. All inputs are served: denormals, infinities, NaN, and signs of zeros as in `strict`; no result leaves its
// function's range. Functions that are not here, other types, and the host compute what `strict` does.

#include "lower/emit/math/impl.h"

#include <math.h>

static kb_reg one_like(kb *k, kb_reg x) {
  return kb_flike(k, x, 1);
}

// 2^(c x) as e s with a power of two s: e = ex2(c x - n), s = 2^(n + bias). n stays from `low` to low + 252, and beyond
// them e grows or falls on, to infinity or 0, so that e s is right there, too. c is a sum of two.
typedef struct scaled {
  kb_reg e, s;
} scaled;

enum { SPAN = 252 };

static scaled ex2_scaled(kb *k, kb_reg x, km_real c, int bias, int low) {
  const double magic = km_f32.magic + 127 + bias;
  kb_reg u = kb_saturate(k, km_fmai(k, x, (double)(float)(c.hi / SPAN), (double)(float)(-low / (double)SPAN)));
  kb_reg t = km_fmai(k, u, SPAN, magic + low);
  kb_reg n = kb_faddi(k, t, -magic), f = kb_fma(k, x, kb_flike(k, x, c.hi), kb_fneg(k, n));
  f = kb_fma(k, x, kb_flike(k, x, c.lo), f);
  return (scaled){kb_ex2_approx(k, f), km_float(k, kb_shli(k, km_bits(k, t), 23))};
}

static const km_real log2_e = {0x1.715476p+0, 0x1.4ae0cp-26}, minus_log2_e = {-0x1.715476p+0, -0x1.4ae0cp-26};
static const km_real log2_10 = {0x1.a934fp+1, 0x1.2f346ep-24};

static kb_reg exponential(kb *k, kb_reg x, km_real c) {
  scaled p = ex2_scaled(k, x, c, 0, -126);
  return kb_fmul(k, p.e, p.s);
}

// 1 / (1 + exp(-x)), all of it times 2^-24, so that the least results come out.
static kb_reg logistic(kb *k, kb_reg x) {
  const double scale = 0x1p-24;
  scaled q = ex2_scaled(k, x, minus_log2_e, -24, -102);
  kb_reg y = kb_rcp_approx(k, kb_fma(k, q.e, q.s, kb_flike(k, x, scale)));
  return km_at_most(k, kb_fmuli(k, y, scale), 1);
}

static kb_reg denormal(kb *k, kb_reg x) {
  return kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, 0x1p-126)); // or negative, or zero
}

// f(up x) down, where x is a denormal, else f(x).
static kb_reg by_scaling(kb *k, kb_reg (*f)(kb *, kb_reg), kb_reg x, double up, double down) {
  kb_reg is_small = denormal(k, x), y = f(k, kb_select(k, is_small, kb_fmuli(k, x, up), x));
  return kb_select(k, is_small, kb_fmuli(k, y, down), y);
}

static kb_reg logarithm(kb *k, kb_reg x) {
  kb_reg is_small = denormal(k, x), l = kb_lg2_approx(k, kb_select(k, is_small, kb_fmuli(k, x, 0x1p+23), x));
  kb_reg more = kb_select(k, is_small, kb_flike(k, x, -0x1.fe2804p+3), kb_flike(k, x, 0)); // 23 ln 2
  return kb_fma(k, l, kb_flike(k, x, km_f32.ln2), more);
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

static bool is_fast(const kb *k, kb_reg x) {
  return k->fast && k->machine == KB_NVPTX && x.kind == KB_F32 && x.lanes == 1;
}

bool km_fast(kb *k, km_fn fn, kb_reg x, kb_reg *out) {
  if (!is_fast(k, x)) return false;
  switch (fn) {
  case KM_EXP: *out = exponential(k, x, log2_e); return true;
  case KM_EXP10: *out = exponential(k, x, log2_10); return true;
  case KM_LOG: *out = logarithm(k, x); return true;
  case KM_TANH: *out = hyperbolic_tangent(k, x); return true;
  case KM_LOGISTIC: *out = logistic(k, x); return true;
  case KM_ERF: *out = error_function(k, x); return true;
  case KM_SIN:
  case KM_COS: *out = km_angle(k, fn, &km_f32, x, true); return true;
  case KM_RSQRT: *out = by_scaling(k, kb_rsqrt_approx, x, 0x1p+24, 0x1p+12); return true;
  default: return false;
  }
}

kb_reg km_sqrt(kb *k, kb_reg x) {
  return is_fast(k, x) ? by_scaling(k, kb_sqrt_approx, x, 0x1p+24, 0x1p-12) : kb_fsqrt(k, x);
}

kb_reg km_divide(kb *k, kb_reg a, kb_reg b) {
  return is_fast(k, a) ? kb_div_full(k, a, b) : kb_fdiv(k, a, b);
}
