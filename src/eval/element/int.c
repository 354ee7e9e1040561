// Integers and pred. One inline function gives the meaning of each op on 64-bit words; the loops instantiate it per op
// and type, so that nothing is decided per element from 16 bits up. Narrower types go through tables when arrays are
// large (see elementwise.c), so their loops decide per element.
#include "eval/impl.h"

#define INLINE static inline __attribute__((always_inline))

// Wrapping power by squaring. A negative exponent leaves 0 except for the bases 1 and -1.
static uint64_t int_power(bool is_signed, uint64_t x, uint64_t y) {
  if (is_signed && (int64_t)y < 0) {
    if (x == 1) return 1;
    return x == ~0ull ? (y & 1 ? ~0ull : 1) : 0;
  }
  uint64_t r = 1;
  for (; y; y >>= 1, x *= x)
    if (y & 1) r *= x;
  return r;
}

// The upper half of the product of twice the width.
INLINE uint64_t int_mulhi(int bits, bool is_signed, uint64_t x, uint64_t y) {
  if (is_signed) return (uint64_t)(((__int128)(int64_t)x * (int64_t)y) >> bits);
  return (uint64_t)(((unsigned __int128)x * y) >> bits);
}

// x and y are extended to 64 bits by their type's sign; of the result only the low `bits` count.
INLINE uint64_t int_binary(kl_op op, int bits, bool is_signed, uint64_t x, uint64_t y) {
  int64_t sx = (int64_t)x, sy = (int64_t)y;
  switch (op) {
  case KL_OP_ADD: return x + y;
  case KL_OP_SUBTRACT: return x - y;
  case KL_OP_MULTIPLY: return x * y;
  case KL_OP_MULHI: return int_mulhi(bits, is_signed, x, y);
  case KL_OP_DIVIDE:
    if (y == 0) return ~0ull;
    if (!is_signed) return x / y;
    return sy == -1 ? 0 - x : (uint64_t)(sx / sy);
  case KL_OP_REMAINDER:
    if (y == 0) return x;
    if (!is_signed) return x % y;
    return sy == -1 ? 0 : (uint64_t)(sx % sy);
  case KL_OP_POWER: return int_power(is_signed, x, y);
  case KL_OP_MAXIMUM: return (is_signed ? sx > sy : x > y) ? x : y;
  case KL_OP_MINIMUM: return (is_signed ? sx < sy : x < y) ? x : y;
  case KL_OP_AND: return x & y;
  case KL_OP_OR: return x | y;
  case KL_OP_XOR: return x ^ y;
  // A negative amount is at least `bits` as an unsigned number, whatever the width.
  case KL_OP_SHL: return y < (uint64_t)bits ? x << y : 0;
  case KL_OP_SHR_ARITH: {
    int64_t s = (int64_t)(x << (64 - bits)) >> (64 - bits);
    return (uint64_t)(s >> (y < (uint64_t)bits ? y : 63));
  }
  case KL_OP_SHR_LOGICAL: return y < (uint64_t)bits ? (x << (64 - bits)) >> (64 - bits) >> y : 0;
  default: return 0;
  }
}

INLINE uint64_t int_unary(kl_op op, int bits, bool is_signed, uint64_t x) {
  uint64_t field = (x << (64 - bits)) >> (64 - bits);
  int64_t sx = (int64_t)x;
  switch (op) {
  case KL_OP_ABS: return is_signed && sx < 0 ? 0 - x : x;
  case KL_OP_NEGATE: return 0 - x;
  case KL_OP_SIGN: return is_signed && sx < 0 ? ~0ull : x != 0;
  case KL_OP_NOT: return ~x;
  case KL_OP_POPCNT: return (uint64_t)__builtin_popcountll(field);
  case KL_OP_CLZ: return field ? (uint64_t)(__builtin_clzll(field) - (64 - bits)) : (uint64_t)bits;
  default: return 0;
  }
}

static bool pred_unary(kl_op op, bool x) {
  return op == KL_OP_NOT ? !x : x;
}

static bool pred_binary(kl_op op, bool x, bool y) {
  switch (op) {
  case KL_OP_ADD:
  case KL_OP_MAXIMUM:
  case KL_OP_OR: return x | y;
  case KL_OP_XOR: return x ^ y;
  default: return x & y;
  }
}

// --- loops --------------------------------------------------------------------------------------------------------

// clang-format off
#define UNARY_OPS(X, ...)                                                                                              \
  X(ABS, __VA_ARGS__) X(NEGATE, __VA_ARGS__) X(SIGN, __VA_ARGS__) X(NOT, __VA_ARGS__)                                  \
  X(POPCNT, __VA_ARGS__) X(CLZ, __VA_ARGS__)
#define BINARY_OPS(X, ...)                                                                                             \
  X(ADD, __VA_ARGS__) X(SUBTRACT, __VA_ARGS__) X(MULTIPLY, __VA_ARGS__) X(DIVIDE, __VA_ARGS__)                         \
  X(REMAINDER, __VA_ARGS__) X(POWER, __VA_ARGS__) X(MAXIMUM, __VA_ARGS__) X(MINIMUM, __VA_ARGS__)                      \
  X(AND, __VA_ARGS__) X(OR, __VA_ARGS__) X(XOR, __VA_ARGS__) X(SHL, __VA_ARGS__)                                       \
  X(SHR_ARITH, __VA_ARGS__) X(SHR_LOGICAL, __VA_ARGS__) X(MULHI, __VA_ARGS__)
// suffix, C type, bits, signed
#define WIDE_TYPES(X)                                                                                                  \
  X(S16, int16_t, 16, true) X(U16, uint16_t, 16, false)                                                                \
  X(S32, int32_t, 32, true) X(U32, uint32_t, 32, false)                                                                \
  X(S64, int64_t, 64, true) X(U64, uint64_t, 64, false)
// clang-format on

#define UNARY_LOOP(OP, SUFFIX, T, BITS, SIGNED)                                                                        \
  static void run_##OP##_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                     \
    const T *a = in[0];                                                                                                \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++) o[i] = (T)int_unary(KL_OP_##OP, BITS, SIGNED, (uint64_t)(int64_t)a[i]);            \
  }
#define BINARY_LOOP(OP, SUFFIX, T, BITS, SIGNED)                                                                       \
  static void run_##OP##_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                     \
    const T *a = in[0], *b = in[1];                                                                                    \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++)                                                                                    \
      o[i] = (T)int_binary(KL_OP_##OP, BITS, SIGNED, (uint64_t)(int64_t)a[i], (uint64_t)(int64_t)b[i]);                \
  }
#define CLAMP_LOOP(SUFFIX, T)                                                                                          \
  static void run_CLAMP_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                      \
    const T *lo = in[0], *x = in[1], *hi = in[2];                                                                      \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      T v = x[i] > lo[i] ? x[i] : lo[i];                                                                               \
      o[i] = v < hi[i] ? v : hi[i];                                                                                    \
    }                                                                                                                  \
  }
#define TYPE_LOOPS(SUFFIX, T, BITS, SIGNED)                                                                            \
  UNARY_OPS(UNARY_LOOP, SUFFIX, T, BITS, SIGNED)                                                                       \
  BINARY_OPS(BINARY_LOOP, SUFFIX, T, BITS, SIGNED)                                                                     \
  CLAMP_LOOP(SUFFIX, T)
WIDE_TYPES(TYPE_LOOPS)

static void run_byte_unary(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  kl_dtype t = e->in[0];
  const uint8_t *a = in[0];
  uint8_t *o = out, mask = (uint8_t)kl_int_mask(t);
  for (int64_t i = 0; i < n; i++)
    o[i] = mask & (uint8_t)int_unary(e->op, kl_info(t)->bits, kl_is_signed(t), (uint64_t)kl_int_decode(t, a[i]));
}

static void run_byte_binary(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  kl_dtype t = e->in[0];
  const uint8_t *a = in[0], *b = in[1];
  uint8_t *o = out, mask = (uint8_t)kl_int_mask(t);
  for (int64_t i = 0; i < n; i++)
    o[i] = mask & (uint8_t)int_binary(e->op, kl_info(t)->bits, kl_is_signed(t), (uint64_t)kl_int_decode(t, a[i]),
                                      (uint64_t)kl_int_decode(t, b[i]));
}

static void run_byte_clamp(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  kl_dtype t = e->in[1];
  const uint8_t *lo = in[0], *x = in[1], *hi = in[2];
  uint8_t *o = out, mask = (uint8_t)kl_int_mask(t);
  for (int64_t i = 0; i < n; i++) {
    int64_t l = kl_int_decode(t, lo[i]), v = kl_int_decode(t, x[i]), h = kl_int_decode(t, hi[i]);
    v = v > l ? v : l;
    o[i] = mask & (uint8_t)(v < h ? v : h);
  }
}

static void run_pred_unary(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const uint8_t *a = in[0];
  uint8_t *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = pred_unary(e->op, a[i] != 0);
}

static void run_pred_binary(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const uint8_t *a = in[0], *b = in[1];
  uint8_t *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = pred_binary(e->op, a[i] != 0, b[i] != 0);
}

static void run_pred_clamp(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const uint8_t *lo = in[0], *x = in[1], *hi = in[2];
  uint8_t *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = (lo[i] || x[i]) && hi[i];
}

// --- which loop ---------------------------------------------------------------------------------------------------

#define OP_CASE(OP, SUFFIX, T, BITS, SIGNED)                                                                           \
  case KL_OP_##OP:                                                                                                     \
    return run_##OP##_##SUFFIX;
#define TYPE_SELECT(SUFFIX, T, BITS, SIGNED)                                                                           \
  static kl_ew_run *select_##SUFFIX(kl_op op) {                                                                        \
    switch (op) {                                                                                                      \
      UNARY_OPS(OP_CASE, SUFFIX, T, BITS, SIGNED)                                                                      \
      BINARY_OPS(OP_CASE, SUFFIX, T, BITS, SIGNED)                                                                     \
    case KL_OP_CLAMP: return run_CLAMP_##SUFFIX;                                                                       \
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
  default: return NULL;
  }
}

static kl_ew_run *select_pred(kl_op op) {
  switch (op) {
  case KL_OP_NOT: return run_pred_unary;
  case KL_OP_ADD:
  case KL_OP_MULTIPLY:
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM:
  case KL_OP_AND:
  case KL_OP_OR:
  case KL_OP_XOR: return run_pred_binary;
  case KL_OP_CLAMP: return run_pred_clamp;
  default: return NULL;
  }
}

kl_ew_run *kl_ew_int(const kl_ew *e) {
  kl_dtype t = e->in[0];
  if (e->out != t) return NULL;
  switch (t) {
#define TYPE_CASE(SUFFIX, T, BITS, SIGNED)                                                                             \
  case KILN_##SUFFIX: return select_##SUFFIX(e->op);
    WIDE_TYPES(TYPE_CASE)
  case KILN_PRED: return select_pred(e->op);
  default: return kl_is_int(t) ? select_byte(e->op) : NULL;
  }
}
