// Real floats. Exactly specified ops are computed in the type itself for f32 and f64 and in double, rounded once, for
// narrower types: double has more than twice their bits and two, so that the rounding is that of the exact result.
// Elementary functions come in from math.c. Formats of 8 bits or fewer go through tables when arrays are large, so
// their loops decide per element.
#include "eval/impl.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))

INLINE double float_unary(kl_op op, double x) {
  switch (op) {
  case KL_OP_ABS: return fabs(x);
  case KL_OP_NEGATE: return -x;
  case KL_OP_SIGN: return x != x || x == 0 ? x : copysign(1, x);
  case KL_OP_CEIL: return ceil(x);
  case KL_OP_FLOOR: return floor(x);
  case KL_OP_ROUND_AFZ: return round(x);
  case KL_OP_ROUND_EVEN: return rint(x);
  case KL_OP_SQRT: return sqrt(x);
  case KL_OP_IMAG: return 0;
  default: return x;
  }
}

// remainder, maximum and minimum of values of one type are values of that type.
INLINE double float_binary(kl_op op, double x, double y) {
  switch (op) {
  case KL_OP_ADD: return x + y;
  case KL_OP_SUBTRACT: return x - y;
  case KL_OP_MULTIPLY: return x * y;
  case KL_OP_DIVIDE: return x / y;
  case KL_OP_REMAINDER: return fmod(x, y);
  case KL_OP_MAXIMUM: return kl_ev_max(x, y);
  case KL_OP_MINIMUM: return kl_ev_min(x, y);
  default: return x;
  }
}

// On the pattern without its sign, where rounding may carry from the mantissa into the exponent. What ends above the
// largest value is then infinity, or whatever the format makes of that.
static uint64_t reduce_precision(kl_dtype t, uint64_t bits, int exponent_bits, int mantissa_bits) {
  const kl_dtype_info *f = kl_info(t);
  uint64_t sign_bit = f->kind == KL_E8M0 ? 0 : 1ull << (f->exp_bits + f->man_bits);
  uint64_t sign = bits & sign_bit, a = bits ^ sign, inf = ((1ull << f->exp_bits) - 1) << f->man_bits;
  double signed_one = sign ? -1 : 1;
  if (kl_float_is_nan(t, bits)) return mantissa_bits > 0 ? bits : kl_float_encode(t, INFINITY);
  bool infinite = f->kind == KL_IEEE && a == inf;
  if (mantissa_bits < f->man_bits) {
    int drop = f->man_bits - mantissa_bits;
    a = (a + (1ull << (drop - 1)) - 1 + (a >> drop & 1)) >> drop << drop;
    infinite |= f->kind == KL_IEEE ? a >= inf : kl_float_is_nan(t, a) || a >> (f->exp_bits + f->man_bits);
  }
  if (exponent_bits < f->exp_bits) {
    int64_t reach = (1ll << (exponent_bits - 1)) - 1, field = (int64_t)(a >> f->man_bits);
    infinite |= field > f->bias + reach;
    if (!infinite && field <= f->bias - reach) return kl_float_encode(t, signed_one * 0.0);
  }
  return infinite ? kl_float_encode(t, signed_one * INFINITY) : sign | a;
}

// --- loops --------------------------------------------------------------------------------------------------------

// clang-format off
#define UNARY_OPS(X, ...)                                                                                              \
  X(ABS, __VA_ARGS__) X(NEGATE, __VA_ARGS__) X(SIGN, __VA_ARGS__) X(CEIL, __VA_ARGS__)                                 \
  X(FLOOR, __VA_ARGS__) X(ROUND_AFZ, __VA_ARGS__) X(ROUND_EVEN, __VA_ARGS__) X(SQRT, __VA_ARGS__)                      \
  X(IMAG, __VA_ARGS__)
#define EXACT_OPS(X, ...)                                                                                              \
  X(ADD, +, __VA_ARGS__) X(SUBTRACT, -, __VA_ARGS__) X(MULTIPLY, *, __VA_ARGS__) X(DIVIDE, /, __VA_ARGS__)
#define OTHER_BINARY_OPS(X, ...)                                                                                       \
  X(REMAINDER, __VA_ARGS__)
#define BINARY_OPS(X, ...)                                                                                             \
  X(ADD, __VA_ARGS__) X(SUBTRACT, __VA_ARGS__) X(MULTIPLY, __VA_ARGS__) X(DIVIDE, __VA_ARGS__)                         \
  X(REMAINDER, __VA_ARGS__) X(MAXIMUM, __VA_ARGS__) X(MINIMUM, __VA_ARGS__)

#define AS_IS(x) (x)
// suffix, storage type, type in which + - * / are computed, from storage, to storage
#define WIDE_TYPES(X)                                                                                                  \
  X(F16, uint16_t, double, kl_ev_f16_load, kl_ev_f16_store)                                                            \
  X(BF16, uint16_t, double, kl_ev_bf16_load, kl_ev_bf16_store)                                                         \
  X(F32, float, float, AS_IS, AS_IS)                                                                                   \
  X(F64, double, double, AS_IS, AS_IS)
// clang-format on

#define UNARY_LOOP(OP, SUFFIX, T, W, LOAD, STORE)                                                                      \
  static void run_##OP##_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                     \
    const T *a = in[0];                                                                                                \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++) o[i] = (T)STORE(float_unary(KL_OP_##OP, LOAD(a[i])));                              \
  }
#define EXACT_LOOP(OP, SIGN, SUFFIX, T, W, LOAD, STORE)                                                                \
  static void run_##OP##_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                     \
    const T *a = in[0], *b = in[1];                                                                                    \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++) o[i] = (T)STORE((W)LOAD(a[i]) SIGN(W) LOAD(b[i]));                                 \
  }
#define BINARY_LOOP(OP, SUFFIX, T, W, LOAD, STORE)                                                                     \
  static void run_##OP##_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                     \
    const T *a = in[0], *b = in[1];                                                                                    \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++) o[i] = (T)STORE(float_binary(KL_OP_##OP, LOAD(a[i]), LOAD(b[i])));                 \
  }
// A value of the type itself, and so its own rounding.
#define ORDER_LOOP(OP, CHOOSE, SUFFIX, T, N, LOAD, STORE)                                                              \
  static void run_##OP##_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                     \
    const T *a = in[0], *b = in[1];                                                                                    \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++) o[i] = (T)STORE(CHOOSE(N, LOAD(a[i]), LOAD(b[i])));                                \
  }
#define OTHER_LOOPS(SUFFIX, T, W, LOAD, STORE)                                                                         \
  ORDER_LOOP(MAXIMUM, KL_EV_MAX, SUFFIX, T, __typeof__(LOAD(*(T *)0)), LOAD, STORE)                                    \
  ORDER_LOOP(MINIMUM, KL_EV_MIN, SUFFIX, T, __typeof__(LOAD(*(T *)0)), LOAD, STORE)                                    \
  static void run_CLAMP_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                      \
    const T *lo = in[0], *x = in[1], *hi = in[2];                                                                      \
    T *o = out;                                                                                                        \
    typedef __typeof__(LOAD(*x)) N;                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      N v = KL_EV_MAX(N, LOAD(lo[i]), LOAD(x[i]));                                                                     \
      o[i] = (T)STORE(KL_EV_MIN(N, v, LOAD(hi[i])));                                                                   \
    }                                                                                                                  \
  }                                                                                                                    \
  static void run_FINITE_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                     \
    const T *a = in[0];                                                                                                \
    uint8_t *o = out;                                                                                                  \
    for (int64_t i = 0; i < n; i++) o[i] = isfinite((double)LOAD(a[i])) != 0;                                          \
  }
// Elementary functions in double.
#define FUNCTION_LOOPS(SUFFIX, T, LOAD, STORE)                                                                         \
  static void run_fn1_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                        \
    const T *a = in[0];                                                                                                \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++) o[i] = (T)STORE(e->fn1(LOAD(a[i])));                                               \
  }                                                                                                                    \
  static void run_fn2_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                        \
    const T *a = in[0], *b = in[1];                                                                                    \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++) o[i] = (T)STORE(e->fn2(LOAD(a[i]), LOAD(b[i])));                                   \
  }

#define TYPE_LOOPS(SUFFIX, T, W, LOAD, STORE)                                                                          \
  UNARY_OPS(UNARY_LOOP, SUFFIX, T, W, LOAD, STORE)                                                                     \
  EXACT_OPS(EXACT_LOOP, SUFFIX, T, W, LOAD, STORE)                                                                     \
  OTHER_BINARY_OPS(BINARY_LOOP, SUFFIX, T, W, LOAD, STORE)                                                             \
  OTHER_LOOPS(SUFFIX, T, W, LOAD, STORE)
WIDE_TYPES(TYPE_LOOPS)
FUNCTION_LOOPS(F16, uint16_t, kl_ev_f16_load, kl_ev_f16_store)
FUNCTION_LOOPS(BF16, uint16_t, kl_ev_bf16_load, kl_ev_bf16_store)
FUNCTION_LOOPS(F32, float, AS_IS, AS_IS)

static void run_fn1_F64(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const double *a = in[0];
  double *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = kl_ew_call_f64(e, a[i]);
}

static void run_fn2_F64(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const double *a = in[0], *b = in[1];
  double *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = (double)e->fn2q(a[i], b[i]);
}

static void run_byte_unary(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  kl_dtype t = e->in[0];
  const uint8_t *a = in[0];
  uint8_t *o = out;
  for (int64_t i = 0; i < n; i++) {
    double x = kl_float_decode(t, a[i]);
    o[i] = (uint8_t)kl_float_encode(t, e->fn1 ? e->fn1(x) : float_unary(e->op, x));
  }
}

static void run_byte_binary(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  kl_dtype t = e->in[0];
  const uint8_t *a = in[0], *b = in[1];
  uint8_t *o = out;
  for (int64_t i = 0; i < n; i++) {
    double x = kl_float_decode(t, a[i]), y = kl_float_decode(t, b[i]);
    o[i] = (uint8_t)kl_float_encode(t, e->fn2 ? e->fn2(x, y) : float_binary(e->op, x, y));
  }
}

static void run_byte_clamp(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  kl_dtype t = e->in[1];
  const uint8_t *lo = in[0], *x = in[1], *hi = in[2];
  uint8_t *o = out;
  for (int64_t i = 0; i < n; i++) {
    double v = kl_ev_max(kl_float_decode(t, lo[i]), kl_float_decode(t, x[i]));
    o[i] = (uint8_t)kl_float_encode(t, kl_ev_min(v, kl_float_decode(t, hi[i])));
  }
}

static void run_byte_finite(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const uint8_t *a = in[0];
  uint8_t *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = isfinite(kl_float_decode(e->in[0], a[i])) != 0;
}

static void run_reduce_precision(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  kl_dtype t = e->in[0];
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = kl_element_get(t, in[0], i, 0);
    kl_element_set(t, out, i, 0, reduce_precision(t, bits, e->exponent_bits, e->mantissa_bits));
  }
}

// --- which loop ---------------------------------------------------------------------------------------------------

#define OP_CASE(OP, SUFFIX)                                                                                            \
  case KL_OP_##OP:                                                                                                     \
    return run_##OP##_##SUFFIX;
#define TYPE_SELECT(SUFFIX, T, W, LOAD, STORE)                                                                         \
  static kl_ew_run *select_##SUFFIX(kl_op op) {                                                                        \
    switch (op) {                                                                                                      \
      UNARY_OPS(OP_CASE, SUFFIX)                                                                                       \
      BINARY_OPS(OP_CASE, SUFFIX)                                                                                      \
      OP_CASE(CLAMP, SUFFIX)                                                                                           \
    case KL_OP_IS_FINITE: return run_FINITE_##SUFFIX;                                                                  \
    default: return NULL;                                                                                              \
    }                                                                                                                  \
  }
WIDE_TYPES(TYPE_SELECT)

static kl_ew_run *select_byte(kl_op op) {
#define BYTE_CASE(OP, ARITY)                                                                                           \
  case KL_OP_##OP: return run_byte_##ARITY;
  switch (op) {
    UNARY_OPS(BYTE_CASE, unary)
    BINARY_OPS(BYTE_CASE, binary)
  case KL_OP_CLAMP: return run_byte_clamp;
  case KL_OP_IS_FINITE: return run_byte_finite;
  default: return NULL;
  }
}

static kl_ew_run *select_function(kl_dtype t, bool binary) {
  switch (t) {
#define FUNCTION_CASE(SUFFIX, T, W, LOAD, STORE)                                                                       \
  case KILN_##SUFFIX: return binary ? run_fn2_##SUFFIX : run_fn1_##SUFFIX;
    WIDE_TYPES(FUNCTION_CASE)
  default: return binary ? run_byte_binary : run_byte_unary;
  }
}

kl_ew_run *kl_ew_float(const kl_ew *e) {
  kl_dtype t = e->in[0];
  if (!kl_is_float(t) || e->out != (e->op == KL_OP_IS_FINITE ? KILN_PRED : t)) return NULL;
  if (e->fn1 || e->fn2) return select_function(t, e->fn2 != NULL);
  if (e->op == KL_OP_REDUCE_PRECISION) return run_reduce_precision;
  switch (t) {
#define TYPE_CASE(SUFFIX, T, W, LOAD, STORE)                                                                           \
  case KILN_##SUFFIX: return select_##SUFFIX(e->op);
    WIDE_TYPES(TYPE_CASE)
  default: return select_byte(e->op);
  }
}
