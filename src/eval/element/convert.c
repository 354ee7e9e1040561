// compare and convert: ops whose result has another type than the operands.
#include "eval/impl.h"

#include <math.h>

// --- compare ------------------------------------------------------------------------------------------------------

#define AS_IS(x) (x)
// suffix, storage type, from storage to a type that C compares alike
// clang-format off
#define WIDE_TYPES(X)                                                                                                  \
  X(S16, int16_t, AS_IS) X(U16, uint16_t, AS_IS) X(S32, int32_t, AS_IS) X(U32, uint32_t, AS_IS)                        \
  X(S64, int64_t, AS_IS) X(U64, uint64_t, AS_IS)                                                                       \
  X(F16, uint16_t, kl_ev_f16_load) X(BF16, uint16_t, kl_ev_bf16_load)                                                  \
  X(F32, float, AS_IS) X(F64, double, AS_IS)
// clang-format on

// One loop per direction, so that nothing is decided per element.
#define DIRECTION_LOOP(DIRECTION, OP, LOAD)                                                                            \
  case DIRECTION:                                                                                                      \
    for (int64_t i = 0; i < n; i++) o[i] = LOAD(a[i]) OP LOAD(b[i]);                                                   \
    break;
#define COMPARE_LOOP(SUFFIX, T, LOAD)                                                                                  \
  static void compare_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                        \
    const T *a = in[0], *b = in[1];                                                                                    \
    uint8_t *o = out;                                                                                                  \
    switch (e->direction) {                                                                                            \
      DIRECTION_LOOP(KL_EQ, ==, LOAD)                                                                                  \
      DIRECTION_LOOP(KL_NE, !=, LOAD)                                                                                  \
      DIRECTION_LOOP(KL_LT, <, LOAD)                                                                                   \
      DIRECTION_LOOP(KL_LE, <=, LOAD)                                                                                  \
      DIRECTION_LOOP(KL_GT, >, LOAD)                                                                                   \
      DIRECTION_LOOP(KL_GE, >=, LOAD)                                                                                  \
    }                                                                                                                  \
  }
WIDE_TYPES(COMPARE_LOOP)

// C's comparison; NaN is unequal to all and neither less nor greater.
static bool holds(kl_direction d, double x, double y) {
  switch (d) {
  case KL_EQ: return x == y;
  case KL_NE: return x != y;
  case KL_LT: return x < y;
  case KL_LE: return x <= y;
  case KL_GT: return x > y;
  case KL_GE: return x >= y;
  }
  return false;
}

// Lexicographic in (real, imaginary).
#define COMPARE_COMPLEX(SUFFIX, T)                                                                                     \
  static void compare_##SUFFIX(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                        \
    const T *a = in[0], *b = in[1];                                                                                    \
    uint8_t *o = out;                                                                                                  \
    for (int64_t i = 0; i < n; i++, a += 2, b += 2)                                                                    \
      o[i] = a[0] == b[0] ? holds(e->direction, a[1], b[1]) : holds(e->direction, a[0], b[0]);                         \
  }
COMPARE_COMPLEX(C64, float)
COMPARE_COMPLEX(C128, double)

static double byte_value(kl_dtype t, uint8_t bits) {
  return kl_is_float(t) ? kl_float_decode(t, bits) : t == KILN_PRED ? bits != 0 : (double)kl_int_decode(t, bits);
}

static void compare_byte(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const uint8_t *a = in[0], *b = in[1];
  uint8_t *o = out;
  for (int64_t i = 0; i < n; i++) o[i] = holds(e->direction, byte_value(e->in[0], a[i]), byte_value(e->in[0], b[i]));
}

// -NaN < -inf ... -0 < +0 ... inf < NaN: the order of the patterns as sign and magnitude.
static int64_t total_order_key(kl_dtype t, uint64_t bits) {
  const kl_dtype_info *f = kl_info(t);
  if (f->kind == KL_E8M0) return (int64_t)bits;
  uint64_t sign = 1ull << (f->exp_bits + f->man_bits);
  return bits & sign ? -1 - (int64_t)(bits ^ sign) : (int64_t)bits;
}

static void compare_total(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  kl_dtype t = e->in[0];
  uint8_t *o = out;
  for (int64_t i = 0; i < n; i++) {
    int64_t x = total_order_key(t, kl_element_get(t, in[0], i, 0));
    int64_t y = total_order_key(t, kl_element_get(t, in[1], i, 0));
    o[i] = holds(e->direction, (x > y) - (x < y), 0);
  }
}

kl_ew_run *kl_ew_compare(const kl_ew *e) {
  kl_dtype t = e->in[0];
  if (e->out != KILN_PRED || e->in[1] != t) return NULL;
  if (e->compare == KL_CMP_TOTALORDER && kl_is_float(t)) return compare_total;
  switch (t) {
#define COMPARE_CASE(SUFFIX, T, LOAD)                                                                                  \
  case KILN_##SUFFIX: return compare_##SUFFIX;
    WIDE_TYPES(COMPARE_CASE)
  case KILN_C64: return compare_C64;
  case KILN_C128: return compare_C128;
  default: return compare_byte;
  }
}

// --- convert ------------------------------------------------------------------------------------------------------

static int32_t saturate_s32(float x) {
  if (x != x) return 0;
  return x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : (int32_t)x;
}

static uint32_t to_f16(float x) {
  return kl_ev_f16_store(x);
}
static uint32_t to_bf16(float x) {
  return kl_ev_bf16_store(x);
}

// The pairs that programs convert most, beside those from 16 bits and fewer, which are tabulated.
// clang-format off
#define HOT_PAIRS(X)                                                                                                   \
  X(F32, float, BF16, uint16_t, to_bf16) X(F32, float, F16, uint16_t, to_f16)                                          \
  X(F32, float, F64, double, AS_IS) X(F64, double, F32, float, AS_IS)                                                  \
  X(F32, float, S32, int32_t, saturate_s32) X(S32, int32_t, F32, float, AS_IS)                                         \
  X(S32, int32_t, S64, int64_t, AS_IS) X(S64, int64_t, S32, int32_t, AS_IS)                                            \
  X(S32, int32_t, U32, uint32_t, AS_IS) X(U32, uint32_t, S32, int32_t, AS_IS)                                          \
  X(U32, uint32_t, F32, float, AS_IS)
// clang-format on
#define CONVERT_LOOP(FROM, TF, TO, TT, CONV)                                                                           \
  static void convert_##FROM##_##TO(const kl_ew *e, int64_t n, const void *const in[3], void *out) {                   \
    const TF *a = in[0];                                                                                               \
    TT *o = out;                                                                                                       \
    for (int64_t i = 0; i < n; i++) o[i] = (TT)CONV(a[i]);                                                             \
  }
HOT_PAIRS(CONVERT_LOOP)

// Any pair. To complex: the imaginary part is 0; from complex to real: the real part; to pred: either part is not 0.
static void convert_any(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  bool from_complex = kl_is_complex(e->in[0]), to_complex = kl_is_complex(e->out);
  kl_dtype from = from_complex ? kl_info(e->in[0])->part : e->in[0], to = to_complex ? kl_info(e->out)->part : e->out;
  for (int64_t i = 0; i < n; i++) {
    uint64_t re = kl_convert(from, to, kl_element_get(e->in[0], in[0], i, 0));
    uint64_t im = from_complex ? kl_convert(from, to, kl_element_get(e->in[0], in[0], i, 1)) : 0;
    if (to == KILN_PRED) re |= im;
    kl_element_set(e->out, out, i, 0, re);
    if (to_complex) kl_element_set(e->out, out, i, 1, im);
  }
}

kl_ew_run *kl_ew_convert(const kl_ew *e) {
#define CONVERT_PAIR(FROM, TF, TO, TT, CONV)                                                                           \
  if (e->in[0] == KILN_##FROM && e->out == KILN_##TO) return convert_##FROM##_##TO;
  HOT_PAIRS(CONVERT_PAIR)
  return convert_any;
}
