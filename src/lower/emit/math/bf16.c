// bf16 functions on NVPTX through the approximate instructions ex2, rcp and rsqrt, one lane at a time: for targets
// below sm_90, lanes without a partner, and narrower formats. Pairs have half/.
//
// A bf16 result needs 9 good bits, and only that the f32 before the last rounding lies on the right side of a tie. Each
// expansion below was chosen so that for every one of the 65,536 inputs the rounded result is the correctly rounded one
// whatever value the approximate instructions return within their documented error: 2 units in the last place for ex2,
// 1 for rcp, 2^-22.9 relative for rsqrt. tests/emit/math.c tries every such value. Where an input lies too near a tie
// for that, it is replaced by a neighbour in f32 that gives the same bf16 ("nudged"). The instructions flush denormals;
// ranges are kept so that this does not matter: a flushed denormal stands beside a 1 or is a result that rounds to 0.
//
// Of the narrower formats all values are bf16 values, and the same expansions serve them, with the same proof.

#include "lower/emit/math/impl.h"

enum { TANH_TERMS = 3, LOGISTIC_TERMS = 2, ERF_TERMS = 4 };
// tanh(x) / x in x^2 for |x| < 0.375
static const double tanh_small[TANH_TERMS] = {1, -0x1.55p-2, 0x1.08p-3};
// (logistic(x) - 0.5) / x in x^2 for |x| < 0.25, a little small, so that x / 4 alone is never a tie
static const double logistic_small[LOGISTIC_TERMS] = {0x1.fffea4p-3, -0x1.52af74p-6};
// erf(x) / x in x^2 for |x| < 0.875
static const double erf_small[ERF_TERMS] = {0x1.20dd6ep+0, -0x1.80aa14p-2, 0x1.c1642ep-4, -0x1.481216p-6};
// log2(erfc(x)) for x from 0.875 to where erf is 1; falls for ever
static const double erf_large[ERF_TERMS] = {-0x1.216272p-5, -0x1.80f27ap+0, -0x1.159426p+0, -0x1.7142aep-5};

static kb_reg one_like(kb *k, kb_reg x) {
  return kb_flike(k, x, 1);
}

static kb_reg below(kb *k, kb_reg x, double c) {
  return kb_fcmp(k, LLVMRealOLT, kb_fabs(k, x), kb_flike(k, x, c));
}

// 2^(2 y), as a square because ex2 would flush a denormal result.
static kb_reg ex2_squared(kb *k, kb_reg y) {
  kb_reg h = kb_ex2_approx(k, y);
  return kb_fmul(k, h, h);
}

static kb_reg bf16_exp(kb *k, kb_reg x) {
  x = km_replace(k, x, (km_nudge){-0x1.ccp-3, -0x1.cb8p-3});
  x = km_replace(k, x, (km_nudge){0x1.c8p5, 0x1.c7fep5});
  return ex2_squared(k, kb_fmuli(k, x, 0x1.71547ap-1)); // log2(e) / 2, and 2 units more for the sake of one input
}

static kb_reg bf16_exp2(kb *k, kb_reg x) {
  return ex2_squared(k, kb_fmuli(k, x, 0.5));
}

// 1 - 2 / (exp(2 x) + 1) for either sign: an infinite exp gives 1, a flushed one -1.
static kb_reg bf16_tanh(kb *k, kb_reg x) {
  kb_reg e = kb_ex2_approx(k, kb_fmuli(k, x, 0x1.715476p+1));
  kb_reg large = km_fmai(k, kb_rcp_approx(k, kb_faddi(k, e, 1)), -2, 1);
  kb_reg small = kb_fmul(k, x, km_horner(k, kb_fmul(k, x, x), (km_poly){tanh_small, TANH_TERMS}));
  return kb_select(k, below(k, x, 0.375), small, large);
}

// 1 / (1 + q), or q / (1 + q) for negative x, with q = exp(-|x|).
static kb_reg bf16_logistic(kb *k, kb_reg x) {
  kb_reg q = ex2_squared(k, kb_fmuli(k, kb_fabs(k, x), -0x1.715476p-1));
  kb_reg inverse = kb_rcp_approx(k, kb_faddi(k, q, 1));
  kb_reg negative = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, 0));
  kb_reg large = kb_fmul(k, inverse, kb_select(k, negative, q, one_like(k, x)));
  kb_reg p = km_horner(k, kb_fmul(k, x, x), (km_poly){logistic_small, LOGISTIC_TERMS});
  return kb_select(k, below(k, x, 0.25), kb_fma(k, x, p, kb_flike(k, x, 0.5)), large);
}

static kb_reg bf16_erf(kb *k, kb_reg x) {
  kb_reg small = kb_fmul(k, x, km_horner(k, kb_fmul(k, x, x), (km_poly){erf_small, ERF_TERMS}));
  kb_reg e = kb_ex2_approx(k, km_horner(k, kb_fabs(k, x), (km_poly){erf_large, ERF_TERMS}));
  kb_reg large = kb_fcopysign(k, kb_fsub(k, one_like(k, x), e), x);
  return kb_select(k, below(k, x, 0.875), small, large);
}

// Denormals are scaled up past the flushing, by a square; negative x with them, which does no harm. Those of f16 are
// normal here.
static kb_reg bf16_rsqrt(kb *k, kl_dtype t, kb_reg x) {
  if (t == KILN_F16) return kb_rsqrt_approx(k, x);
  kb_reg denormal = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, 0x1p-126)), one = one_like(k, x);
  kb_reg y = kb_rsqrt_approx(k, kb_fmul(k, x, kb_select(k, denormal, kb_flike(k, x, 0x1p24), one)));
  return kb_fmul(k, y, kb_select(k, denormal, kb_flike(k, x, 0x1p12), one));
}

bool km_approx(kb *k, km_fn fn, kl_dtype t, kb_reg x, kb_reg *out) {
  switch (fn) {
  case KM_EXP: *out = bf16_exp(k, x); return true;
  case KM_EXP2: // of an integer, this may be a tie between denormals of a narrower format
    if (t != KILN_BF16) return false;
    *out = bf16_exp2(k, x);
    return true;
  case KM_TANH: *out = bf16_tanh(k, x); return true;
  case KM_LOGISTIC: *out = bf16_logistic(k, x); return true;
  case KM_ERF: *out = bf16_erf(k, x); return true;
  case KM_RSQRT: *out = bf16_rsqrt(k, t, x); return true;
  default: return false; // log: a documented absolute error of 2^-22 near 1 decides nothing
  }
}
