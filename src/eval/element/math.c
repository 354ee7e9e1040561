// Elementary functions: double for f32 and narrower types, _Float128 for f64, each rounded once to the result. The
// functions of libm are within a few units of those wider types, which leaves the rounded result right except within
// about 2^-28 (f32) or 2^-58 (f64) of a tie. And the table of error bounds that compiled code is held to.
#include "eval/impl.h"

#include <float.h>
#include <math.h>

// libm has these for every compiler, its headers only declare them for some.
// clang-format off
#define QUAD1(X)                                                                                                       \
  X(exp)                                                                                                               \
  X(expm1)                                                                                                             \
  X(log)                                                                                                               \
  X(log1p) X(tanh) X(erf) X(cbrt) X(sin) X(cos) X(tan) X(sqrt) X(exp10) X(sinh) X(cosh) X(asin) X(acos) X(atan)        \
      X(asinh) X(acosh) X(atanh)
// clang-format on
#define DECLARE1(f) extern __float128 f##f128(__float128);
QUAD1(DECLARE1)
extern __float128 powf128(__float128, __float128);
extern __float128 atan2f128(__float128, __float128);

// No cancellation on either side, and exp overflows only where the result is below every type's least value.
static double logistic(double x) {
  return 1 / (1 + exp(-x));
}
static __float128 logisticf128(__float128 x) {
  return 1 / (1 + expf128(-x));
}
static double rsqrt(double x) {
  return 1 / sqrt(x);
}
static __float128 rsqrtf128(__float128 x) {
  return 1 / sqrtf128(x);
}
static long double logisticl(long double x) {
  return 1 / (1 + expl(-x));
}
static long double rsqrtl(long double x) {
  return 1 / sqrtl(x);
}

// Powers of ten are exact where T holds them, which libm does not promise: 10^2 is a tie between values of f8e4m3,
// 10^23 one between values of f64.
#define POWER_OF_TEN(name, T, libm, most)                                                                              \
  static T name(T x) {                                                                                                 \
    if (!(x >= 0 && x <= (most)) || x != (T)(int)x) return libm(x);                                                    \
    T r = 1;                                                                                                           \
    for (int k = (int)x; k > 0; k--) r *= 10;                                                                          \
    return r;                                                                                                          \
  }
POWER_OF_TEN(power_of_ten, double, exp10, 22)
POWER_OF_TEN(power_of_tenl, long double, exp10l, 27)
POWER_OF_TEN(power_of_tenf128, __float128, exp10f128, 48)

// A result that is too small for a double is not zero, which f8e8m0fnu would take for NaN.
static double power(double x, double y) {
  double r = pow(x, y);
  return r == 0 && x != 0 && isfinite(x) && isfinite(y) ? copysign(0x1p-1074, r) : r;
}
static __float128 powerf128(__float128 x, __float128 y) {
  return powf128(x, y);
}

// A small angle is less than its quotient, which may be a tie between denormals of a narrow type, by less than libm
// says.
static double angle(double y, double x) {
  double r = atan2(y, x);
  return x > 0 && fabs(r) < 0x1p-26 ? nextafter(r, copysign(0, r)) : r;
}
static __float128 anglef128(__float128 y, __float128 x) {
  return atan2f128(y, x);
}

// Bounds in units in the last place; types of 16 bits and fewer are correctly rounded. Complex: per part,
// or of both parts together where kl_op_bound_is_normwise. f32 in `fast`, with approximate instructions anywhere within
// their documented errors: tests/emit/fast.c measures it.
// clang-format off
/* op           function      f32  f64  complex fast    and absolute */
#define FUNCTIONS1(X)                                                                                                  \
  X(EXP,        exp,          1,   1,   1.5,    5,      0)                                                             \
  X(EXPM1,      expm1,        1,   1,   2,      2,      0)                                                             \
  X(LOG,        log,          1,   1,   1.5,    5,      0x1p-22)                                                       \
  X(LOG1P,      log1p,        1,   1,   2,      6,      0)                                                             \
  X(LOGISTIC,   logistic,     1,   1,   3,      8,      0)                                                             \
  X(TANH,       tanh,         1,   1,   2,      3,      0)                                                             \
  X(ERF,        erf,          1,   1,   4,      2,      0)                                                             \
  X(RSQRT,      rsqrt,        1,   1,   1,      2.2,    0)                                                             \
  X(CBRT,       cbrt,         1,   1,   4,      2.5,    0)                                                             \
  X(SIN,        sin,          1,   1,   1.5,    1,      0x1p-20)                                                       \
  X(COS,        cos,          1,   1,   1.5,    1,      0x1p-20)                                                       \
  X(TAN,        tan,          1,   1,   2,      3.5,    0)                                                             \
  X(EXP10,      power_of_ten, 1,   1,   2,      5,      0)                                                             \
  X(SINH,       sinh,         1,   1,   1.5,    6,      0)                                                             \
  X(COSH,       cosh,         1,   1,   1.5,    4,      0)                                                             \
  X(ASIN,       asin,         1,   1,   3,      4.5,    0)                                                             \
  X(ACOS,       acos,         1,   1,   3,      3,      0)                                                             \
  X(ATAN,       atan,         1,   1,   2,      2.5,    0)                                                             \
  X(ASINH,      asinh,        1,   1,   3,      6.5,    0)                                                             \
  X(ACOSH,      acosh,        1,   1,   3,      6,      0)                                                             \
  X(ATANH,      atanh,        1,   1,   2,      8,      0)
#define FUNCTIONS2(X)                                                                                                  \
  X(POWER,      power,        1,   1,   2,      5,      0)                                                             \
  X(ATAN2,      angle,        1,   1,   2,      5,      0)
// Exact on real floats, but for `fast`.
#define COMPLEX_ONLY(X)                                                                                                \
  X(ABS,        hypot,        0,   0,   2,      0,      0)                                                             \
  X(DIVIDE,     divide,       0,   0,   1,      2,      0)                                                             \
  X(SIGN,       sign,         0,   0,   2,      0,      0)                                                             \
  X(SQRT,       sqrt,         0,   0,   1,      2,      0)
// clang-format on

double kl_op_ulp_bound(kl_op op, kl_dtype t) {
#define BOUND(OP, f, F32, F64, COMPLEX, FAST, ABSOLUTE)                                                                \
  case KL_OP_##OP: return t == KILN_F32 ? F32 : t == KILN_F64 ? F64 : kl_is_complex(t) ? COMPLEX : 0;
  switch (op) {
    FUNCTIONS1(BOUND)
    FUNCTIONS2(BOUND)
    COMPLEX_ONLY(BOUND)
  default: return 0;
  }
}

kl_bound kl_op_bound(kl_op op, kl_dtype t, bool fast) {
#define FAST_BOUND(OP, f, F32, F64, COMPLEX, FAST, ABSOLUTE)                                                           \
  case KL_OP_##OP: return (kl_bound){FAST, ABSOLUTE};
  switch (fast && t == KILN_F32 ? op : KL_OP_UNKNOWN) {
    FUNCTIONS1(FAST_BOUND)
    FUNCTIONS2(FAST_BOUND)
    COMPLEX_ONLY(FAST_BOUND)
  default: return (kl_bound){kl_op_ulp_bound(op, t), 0};
  }
}

bool kl_op_bound_is_normwise(kl_op op, kl_dtype t) {
  switch (kl_is_complex(t) ? op : KL_OP_UNKNOWN) {
  case KL_OP_EXPM1:
  case KL_OP_LOGISTIC:
  case KL_OP_EXP10:
  case KL_OP_POWER:
  case KL_OP_ATAN2: return true;
  default: return false;
  }
}

bool kl_ew_math(kl_ew *e) {
  switch (e->op) {
#define BIND1(OP, f, F32, F64, COMPLEX, FAST, ABSOLUTE)                                                                \
  case KL_OP_##OP:                                                                                                     \
    e->fn1 = f, e->fn1l = f##l, e->fn1q = f##f128;                                                                     \
    return true;
#define BIND2(OP, f, F32, F64, COMPLEX, FAST, ABSOLUTE)                                                                \
  case KL_OP_##OP: e->fn2 = f, e->fn2q = f##f128; return true;
    FUNCTIONS1(BIND1)
    FUNCTIONS2(BIND2)
  default: return false;
  }
}

// _Float128 is slow, and the 80-bit functions decide almost all results: libm's stay within 4 units of their 64 bits,
// so 16 units of distance from the nearest tie between doubles are proof enough. Denormal and overflowing results have
// their ties elsewhere.
static bool decides(long double v, double *out) {
#if LDBL_MANT_DIG == 64
  uint64_t mantissa;
  memcpy(&mantissa, &v, sizeof mantissa);
  int tail = (int)(mantissa & 0x7ff);
  *out = (double)v;
  long double a = fabsl(v);
  return (tail < 1024 - 16 || tail > 1024 + 16) && a > DBL_MIN && a < DBL_MAX / 2;
#else
  return false;
#endif
}

double kl_ew_call_f64(const kl_ew *e, double x) {
  double r;
  return decides(e->fn1l(x), &r) ? r : (double)e->fn1q(x);
}
