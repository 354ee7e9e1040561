// References for elementary functions, by MPFR.
#ifndef KL_TEST_MATH_REF_H
#define KL_TEST_MATH_REF_H

#include "ir/hlo.h"
#include "lower/emit/math/math.h"
#include <math.h>
#include <mpfr.h>

static const char *const mr_names[KM_FN_COUNT] = {
    "exp",   "exp2",  "log",   "tanh",  "logistic", "erf", "rsqrt", "expm1", "exp10", "sinh", "cosh",
    "log1p", "asinh", "acosh", "atanh", "cbrt",     "sin", "cos",   "tan",   "asin",  "acos", "atan"};

// r = fn(x) to the precision of r (but for logistic, whose last bits are not sure).
static inline void mr_function(km_fn fn, mpfr_t r, mpfr_t x) {
  switch (fn) {
  case KM_EXP: mpfr_exp(r, x, MPFR_RNDN); break;
  case KM_EXP2: mpfr_exp2(r, x, MPFR_RNDN); break;
  case KM_LOG: mpfr_log(r, x, MPFR_RNDN); break;
  case KM_TANH: mpfr_tanh(r, x, MPFR_RNDN); break;
  case KM_ERF: mpfr_erf(r, x, MPFR_RNDN); break;
  case KM_RSQRT: mpfr_rec_sqrt(r, x, MPFR_RNDN); break;
  case KM_EXPM1: mpfr_expm1(r, x, MPFR_RNDN); break;
  case KM_EXP10: mpfr_exp10(r, x, MPFR_RNDN); break;
  case KM_SINH: mpfr_sinh(r, x, MPFR_RNDN); break;
  case KM_COSH: mpfr_cosh(r, x, MPFR_RNDN); break;
  case KM_LOG1P: mpfr_log1p(r, x, MPFR_RNDN); break;
  case KM_ASINH: mpfr_asinh(r, x, MPFR_RNDN); break;
  case KM_ACOSH: mpfr_acosh(r, x, MPFR_RNDN); break;
  case KM_ATANH: mpfr_atanh(r, x, MPFR_RNDN); break;
  case KM_CBRT: mpfr_cbrt(r, x, MPFR_RNDN); break;
  case KM_SIN: mpfr_sin(r, x, MPFR_RNDN); break;
  case KM_COS: mpfr_cos(r, x, MPFR_RNDN); break;
  case KM_TAN: mpfr_tan(r, x, MPFR_RNDN); break;
  case KM_ASIN: mpfr_asin(r, x, MPFR_RNDN); break;
  case KM_ACOS: mpfr_acos(r, x, MPFR_RNDN); break;
  case KM_ATAN: mpfr_atan(r, x, MPFR_RNDN); break;
  default:
    mpfr_neg(r, x, MPFR_RNDN);
    mpfr_exp(r, r, MPFR_RNDN);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
  }
  if (fn == KM_RSQRT && mpfr_zero_p(x)) mpfr_set_inf(r, mpfr_signbit(x) ? -1 : 1); // as 1 / sqrt(x)
}

// r rounded to odd in double, so that a rounding to fewer bits sees on which side of its ties r lies.
static inline double mr_odd_double(mpfr_t r) {
  double d = mpfr_get_d(r, MPFR_RNDZ);
  if (!isfinite(d) || mpfr_cmp_d(r, d) == 0) return d;
  uint64_t b;
  memcpy(&b, &d, sizeof b);
  b |= 1;
  memcpy(&d, &b, sizeof d);
  return copysign(d, mpfr_sgn(r));
}

typedef void (*mr_fn)(mpfr_t r, mpfr_t x, int which);

// Patterns of a function on every pattern of `t` (16 bits or fewer), correctly rounded.
static inline void mr_table_by(mr_fn fn, int which, kl_dtype t, uint32_t *want) {
  mpfr_t x, r;
  mpfr_init2(x, 53);
  mpfr_init2(r, 200);
  for (uint32_t i = 0; i < 1u << kl_info(t)->bits; i++) {
    mpfr_set_d(x, kl_float_decode(t, i), MPFR_RNDN);
    fn(r, x, which);
    want[i] = (uint32_t)kl_float_encode(t, mr_odd_double(r));
  }
  mpfr_clear(x);
  mpfr_clear(r);
}

static inline void mr_by_fn(mpfr_t r, mpfr_t x, int fn) {
  mr_function((km_fn)fn, r, x);
}
static inline void mr_table(km_fn fn, kl_dtype t, uint32_t *want) {
  mr_table_by(mr_by_fn, (int)fn, t, want);
}

// The same of an op, one of those with expansions for pairs.
static inline void mr_by_op(mpfr_t r, mpfr_t x, int op) {
  static const km_fn fns[] = {
      [KL_OP_EXP] = KM_EXP, [KL_OP_TANH] = KM_TANH,   [KL_OP_ERF] = KM_ERF, [KL_OP_LOGISTIC] = KM_LOGISTIC,
      [KL_OP_LOG] = KM_LOG, [KL_OP_RSQRT] = KM_RSQRT, [KL_OP_SIN] = KM_SIN, [KL_OP_COS] = KM_COS};
  if (op == KL_OP_SQRT)
    mpfr_sqrt(r, x, MPFR_RNDN);
  else
    mr_function(fns[op], r, x);
}
static inline void mr_table_of_op(kl_op op, kl_dtype t, uint32_t *want) {
  mr_table_by(mr_by_op, (int)op, t, want);
}

static inline bool mr_same(kl_dtype t, uint32_t a, uint32_t b) {
  return a == b || (kl_float_is_nan(t, a) && kl_float_is_nan(t, b));
}

#endif
