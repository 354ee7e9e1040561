#include "functions.h"

#include "emit/complex_cases.h"

#include <math.h>
#include <string.h>

const nu_type_info nu_types[NU_TYPES] = {
    [NU_F64] = {"f64", "f64", 64, 53, -1074, 0x1.fffffffffffffp1023},
    [NU_F32] = {"f32", "f32", 32, 24, -149, 0x1.fffffep127},
    [NU_F16] = {"f16", "f16", 16, 11, -24, 0x1.ffcp15},
    [NU_BF16] = {"bf16", "bf16", 16, 8, -133, 0x1.fep127},
    [NU_F32_FAST] = {"f32-fast", "f32", 32, 24, -149, 0x1.fffffep127},
    [NU_C64] = {"c64", "c64", 64, 24, -149, 0x1.fffffep127, NU_F32},
    [NU_C128] = {"c128", "c128", 128, 53, -1074, 0x1.fffffffffffffp1023, NU_F64},
};

// --- references ------------------------------------------------------------------------------------------------------

// glibc has these functions for vectors too, within 4 units; where there are none a loop calls them one by one.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define VECTORS __attribute__((simd("notinbranch"), const))
#else
#define VECTORS
#endif
#define OF_ONE(f) extern double f(double) VECTORS;
OF_ONE(exp)
OF_ONE(exp10)
OF_ONE(expm1)
OF_ONE(log)
OF_ONE(log1p)
OF_ONE(tanh)
OF_ONE(erf)
OF_ONE(cbrt)
OF_ONE(sin)
OF_ONE(cos)
OF_ONE(tan)
OF_ONE(asin)
OF_ONE(acos)
OF_ONE(atan)
OF_ONE(sinh)
OF_ONE(cosh)
OF_ONE(asinh)
OF_ONE(acosh)
OF_ONE(atanh)
extern double atan2(double, double) VECTORS;
extern double pow(double, double) VECTORS;
extern long double exp10l(long double);

#define VALUES(name, expression)                                                                                       \
  FOR_AVX2 static void name##_values(const double *x, const double *y, double *r, size_t n) {                          \
    for (size_t i = 0; i < n; i++) r[i] = expression;                                                                  \
  }
#define WIDE(name, expression)                                                                                         \
  static long double name##_wide(long double x, long double y) {                                                       \
    return expression;                                                                                                 \
  }
#define EXACT(name, call)                                                                                              \
  static void name##_exact(mpfr_t r, mpfr_t x, mpfr_t y) {                                                             \
    call;                                                                                                              \
  }
#define UNARY(name) VALUES(name, name(x[i])) WIDE(name, name##l(x)) EXACT(name, mpfr_##name(r, x, MPFR_RNDN))
#define BINARY(name)                                                                                                   \
  VALUES(name, name(x[i], y[i])) WIDE(name, name##l(x, y)) EXACT(name, mpfr_##name(r, x, y, MPFR_RNDN))

UNARY(exp)
UNARY(exp10)
UNARY(expm1)
UNARY(log)
UNARY(log1p)
UNARY(tanh)
UNARY(erf)
UNARY(cbrt)
UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(sinh)
UNARY(cosh)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
UNARY(sqrt)
BINARY(atan2)
BINARY(pow)
BINARY(fmod)
VALUES(divide, x[i] / y[i])
WIDE(divide, x / y)
EXACT(divide, mpfr_div(r, x, y, MPFR_RNDN))
// The sign of a zero is that of 1 / sqrt(x).
VALUES(rsqrt, 1 / sqrt(x[i]))
WIDE(rsqrt, 1 / sqrtl(x))
EXACT(rsqrt, mpfr_rec_sqrt(r, x, MPFR_RNDN); if (mpfr_zero_p(x)) mpfr_set_inf(r, mpfr_signbit(x) ? -1 : 1))
VALUES(logistic, (x[i] < 0 ? exp(-fabs(x[i])) : 1) / (1 + exp(-fabs(x[i]))))
WIDE(logistic, 1 / (1 + expl(-x)))
EXACT(logistic, mpfr_neg(r, x, MPFR_RNDN); mpfr_exp(r, r, MPFR_RNDN); mpfr_add_ui(r, r, 1, MPFR_RNDN);
      mpfr_ui_div(r, 1, r, MPFR_RNDN))

#define FUNCTION(op, operands, name, from, to, cuda_f32, cuda_f64, ...)                                                \
  { op, operands, name##_values, name##_wide, name##_exact, from, to, cuda_f32, cuda_f64, __VA_ARGS__ }
const nu_function nu_functions[] = {
    FUNCTION("exponential", 1, exp, -746, 710, 2, 1, KL_OP_EXP),
    FUNCTION("exp10", 1, exp10, -324, 309, 2, 1, KL_OP_EXP10, true),
    FUNCTION("exponential-minus-one", 1, expm1, -40, 710, 1, 1, KL_OP_EXPM1, true),
    FUNCTION("log", 1, log, 0, 4, 1, 1, KL_OP_LOG),
    FUNCTION("log-plus-one", 1, log1p, -1, 4, 1, 1, KL_OP_LOG1P),
    FUNCTION("logistic", 1, logistic, -746, 40, -1, -1, KL_OP_LOGISTIC, true),
    FUNCTION("tanh", 1, tanh, -22, 22, 2, 1, KL_OP_TANH),
    FUNCTION("erf", 1, erf, -6, 6, 2, 2, KL_OP_UNKNOWN),
    FUNCTION("sine", 1, sin, -100, 100, 2, 2, KL_OP_SIN),
    FUNCTION("cosine", 1, cos, -100, 100, 2, 2, KL_OP_COS),
    FUNCTION("tan", 1, tan, -100, 100, 4, 2, KL_OP_TAN),
    FUNCTION("asin", 1, asin, -1, 1, 4, 2, KL_OP_ASIN),
    FUNCTION("acos", 1, acos, -1, 1, 3, 2, KL_OP_ACOS),
    FUNCTION("atan", 1, atan, -20, 20, 2, 2, KL_OP_ATAN),
    FUNCTION("sinh", 1, sinh, -711, 711, 3, 2, KL_OP_SINH),
    FUNCTION("cosh", 1, cosh, -711, 711, 2, 1, KL_OP_COSH),
    FUNCTION("asinh", 1, asinh, -20, 20, 3, 2, KL_OP_ASINH),
    FUNCTION("acosh", 1, acosh, 1, 20, 4, 2, KL_OP_ACOSH),
    FUNCTION("atanh", 1, atanh, -1, 1, 3, 2, KL_OP_ATANH),
    FUNCTION("cbrt", 1, cbrt, -8, 8, 1, 1, KL_OP_UNKNOWN),
    FUNCTION("sqrt", 1, sqrt, 0, 4, 0, 0, KL_OP_SQRT),
    FUNCTION("rsqrt", 1, rsqrt, 0, 4, 2, 1, KL_OP_RSQRT),
    FUNCTION("atan2", 2, atan2, -4, 4, 3, 2, KL_OP_ATAN2, true),
    FUNCTION("power", 2, pow, 0, 4, 9, 2, KL_OP_POWER, true),
    FUNCTION("divide", 2, divide, -4, 4, 0, 0, KL_OP_DIVIDE),
    FUNCTION("remainder", 2, fmod, -4, 4, 0, 0, KL_OP_UNKNOWN),
    {"abs", 1, .cuda_f32 = -1, .cuda_f64 = -1, .complex = KL_OP_ABS},
    {"sign", 1, .cuda_f32 = -1, .cuda_f64 = -1, .complex = KL_OP_SIGN},
};
const size_t nu_function_count = sizeof nu_functions / sizeof *nu_functions;

const nu_function *nu_function_of(const char *op) {
  for (size_t i = 0; i < nu_function_count; i++)
    if (strcmp(nu_functions[i].op, op) == 0) return &nu_functions[i];
  return NULL;
}

// --- patterns --------------------------------------------------------------------------------------------------------

double nu_decode(nu_type t, uint64_t bits) {
  double d;
  float f;
  uint32_t low = (uint32_t)bits;
  switch (t) {
  case NU_F64: return memcpy(&d, &bits, sizeof d), d;
  case NU_BF16: low <<= 16; // fallthrough
  case NU_F32_FAST:
  case NU_F32: return memcpy(&f, &low, sizeof f), f;
  default: break;
  }
  int e = (int)(bits >> 10 & 31);
  double m = (double)(bits & 1023);
  double v = e == 31 ? m ? (double)NAN : (double)INFINITY : ldexp(e ? m + 1024 : m, (e ? e : 1) - 25);
  return bits >> 15 & 1 ? -v : v;
}

uint64_t nu_encode(nu_type t, double value) {
  const nu_type_info *i = &nu_types[t];
  uint64_t sign = (uint64_t) !!signbit(value) << (i->bits - 1), bits;
  unsigned fraction = i->significand - 1;
  if (t == NU_F64) return memcpy(&bits, &value, sizeof bits), bits;
  uint64_t infinity = ((UINT64_C(1) << (i->bits - 1)) - 1) >> fraction << fraction;
  if (isnan(value)) return sign | infinity | UINT64_C(1) << (fraction - 1);
  int e;
  double a = fabs(value);
  frexp(a, &e);
  int unit = e - (int)i->significand < i->least ? i->least : e - (int)i->significand;
  double m = a > i->largest * 2 ? INFINITY : nearbyint(ldexp(a, -unit)); // the default rounding: ties to even
  if (m == 0) return sign;
  if (isinf(m) || ldexp(m, unit) > i->largest) return sign | infinity;
  // With the hidden bit in the lowest exponent's place, a carry out of the significand is right by itself.
  return sign | ((uint64_t)m + ((uint64_t)(unit - i->least) << fraction));
}

uint64_t nu_all_count(const nu_function *f, nu_type t) {
  unsigned bits = nu_types[t].bits * (unsigned)f->operands; // complex ones have 64 at least
  return bits <= 32 ? UINT64_C(1) << bits : 0;
}

static uint64_t pattern(nu_type t, uint64_t index) {
  unsigned fraction = nu_types[t].significand - 1, bits = nu_types[t].bits;
  uint64_t sign = UINT64_C(1) << (bits - 1), infinity = (sign - 1) >> fraction << fraction;
  if (index <= infinity) return sign | (infinity - index);
  index -= infinity + 1;
  if (index <= infinity) return index;
  index -= infinity + 1;
  uint64_t nans = sign - 1 - infinity;
  return index < nans ? infinity + 1 + index : sign | (infinity + 1 + index - nans);
}

void nu_all(const nu_function *f, nu_type t, uint64_t index, uint64_t *x, uint64_t *y) {
  unsigned bits = nu_types[t].bits;
  bool two = f->operands == 2;
  *x = pattern(t, two ? index >> bits : index);
  *y = two ? pattern(t, index & ((UINT64_C(1) << bits) - 1)) : 0;
}

// --- samples ---------------------------------------------------------------------------------------------------------

static uint64_t mixed(uint64_t x) { // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}
static double unit_of(uint64_t random) { // in [0, 1)
  return (double)(random >> 11) * 0x1p-53;
}
static double of_size(uint64_t random, int low, int high) { // any significand and sign, exponents from low to high
  double m = 1 + unit_of(mixed(random));
  return ldexp(random & 1 ? -m : m, low + (int)((random >> 1) % (uint64_t)(high - low + 1)));
}

bool nu_neighbours(uint64_t index) {
  return index / 2 % 4 == 3;
}

static uint64_t of_one(const nu_function *f, nu_type t, uint64_t index) {
  const nu_type_info *i = &nu_types[t];
  uint64_t pair = index / 2, r = mixed(nu_neighbours(index) ? pair * 2 : index), s = mixed(r);
  int top = i->least + (int)i->significand, reach = ilogb(fmax(fabs(f->from), fabs(f->to)));
  uint64_t bits;
  switch (pair / 4 % 6) {
  case 0: bits = s >> (64 - i->bits); break;
  case 1: bits = nu_encode(t, of_size(s, -40, 3)); break;
  case 2: bits = nu_encode(t, of_size(s, i->least, top)); break; // denormal, or nearly
  case 3: bits = nu_encode(t, of_size(s, i->least, reach)); break;
  default: bits = nu_encode(t, f->from + (f->to - f->from) * unit_of(s));
  }
  return nu_neighbours(index) && index % 2 ? bits + 1 : bits;
}

static void of_two(const nu_function *f, nu_type t, uint64_t index, uint64_t *x, uint64_t *y) {
  const nu_type_info *i = &nu_types[t];
  uint64_t r = mixed(index), s = mixed(r);
  double u = unit_of(mixed(s)), v = 2 * unit_of(mixed(~s)) - 1, range = log(i->largest), a, b;
  *x = r >> (64 - i->bits), *y = s >> (64 - i->bits);
  switch (index % 8) {
  case 0: return;
  case 1: a = of_size(r, i->least, i->least + (int)i->significand), b = of_size(s, i->least, 3); break;
  case 2: a = of_size(r, -3, 3), b = (double)(int)(v * 40); break;
  case 3: a = of_size(r, -12, 12), b = a * of_size(s, -(int)i->significand, 2); break; // neither is much larger
  default:
    a = index % 8 < 6 ? exp(range * (2 * u - 1)) : 1 + v * exp(-25 * u);
    // A power in range for every base; half of the negative bases with integers.
    b = v * 1.02 * range / fmax(fabs(log(a)), 0x1p-52);
    if (index % 8 == 5) a = -a, b = rint(b);
  }
  *x = nu_encode(t, a), *y = nu_encode(t, b);
}

void nu_sample(const nu_function *f, nu_type t, uint64_t index, uint64_t *x, uint64_t *y) {
  if (f->operands == 2)
    of_two(f, t, index, x, y);
  else
    *x = *y = of_one(f, t, index);
}

bool nu_sample_complex(const nu_function *f, nu_type t, uint64_t index, nu_number *x, nu_number *y) {
  kl_dtype type = t == NU_C64 ? KILN_C64 : KILN_C128;
  random_seed(mixed(index));
  cc_number a = cc_draw(type, (int)(index % INT32_MAX)), b = a;
  if (f->operands == 2) b = cc_draw_second(type, f->complex, a, (int)(index % INT32_MAX));
  *x = (nu_number){a.re, a.im}, *y = (nu_number){b.re, b.im};
  return !cc_on_axis(a) && !cc_on_axis(b);
}
