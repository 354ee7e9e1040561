// Element types: the table, exact conversions between scalars, access to elements held unpacked.
//
// A float format is given by its kind, exponent bits, mantissa bits and bias. Without the sign, patterns grow with the
// value, so rounding works on the pattern as an integer: a carry out of the mantissa lands in the exponent by itself.
#include "ir/dtype.h"

#include <math.h>

// clang-format off
#define ROW(id, name, cls, bits, bytes, ...) [KILN_##id] = {name, KL_CLASS_##cls, bits, bytes, __VA_ARGS__}
const kl_dtype_info kl_dtypes[KILN_DTYPE_COUNT] = {
    //  id             name             class    bits bytes kind     exp man bias  part
    ROW(DTYPE_NONE,    "",              OTHER,   0,   0,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(PRED,          "pred",          PRED,    8,   1,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(S1,            "s1",            SINT,    1,   1,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(U1,            "u1",            UINT,    1,   1,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(S2,            "s2",            SINT,    2,   1,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(U2,            "u2",            UINT,    2,   1,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(S4,            "s4",            SINT,    4,   1,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(U4,            "u4",            UINT,    4,   1,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(S8,            "s8",            SINT,    8,   1,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(U8,            "u8",            UINT,    8,   1,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(S16,           "s16",           SINT,    16,  2,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(U16,           "u16",           UINT,    16,  2,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(S32,           "s32",           SINT,    32,  4,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(U32,           "u32",           UINT,    32,  4,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(S64,           "s64",           SINT,    64,  8,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(U64,           "u64",           UINT,    64,  8,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(F4E2M1FN,      "f4e2m1fn",      FLOAT,   4,   1,    KL_FN0,  2,  1,  1,    KILN_DTYPE_NONE),
    ROW(F8E3M4,        "f8e3m4",        FLOAT,   8,   1,    KL_IEEE, 3,  4,  3,    KILN_DTYPE_NONE),
    ROW(F8E4M3,        "f8e4m3",        FLOAT,   8,   1,    KL_IEEE, 4,  3,  7,    KILN_DTYPE_NONE),
    ROW(F8E4M3FN,      "f8e4m3fn",      FLOAT,   8,   1,    KL_FN,   4,  3,  7,    KILN_DTYPE_NONE),
    ROW(F8E4M3FNUZ,    "f8e4m3fnuz",    FLOAT,   8,   1,    KL_FNUZ, 4,  3,  8,    KILN_DTYPE_NONE),
    ROW(F8E4M3B11FNUZ, "f8e4m3b11fnuz", FLOAT,   8,   1,    KL_FNUZ, 4,  3,  11,   KILN_DTYPE_NONE),
    ROW(F8E5M2,        "f8e5m2",        FLOAT,   8,   1,    KL_IEEE, 5,  2,  15,   KILN_DTYPE_NONE),
    ROW(F8E5M2FNUZ,    "f8e5m2fnuz",    FLOAT,   8,   1,    KL_FNUZ, 5,  2,  16,   KILN_DTYPE_NONE),
    ROW(F8E8M0FNU,     "f8e8m0fnu",     FLOAT,   8,   1,    KL_E8M0, 8,  0,  127,  KILN_DTYPE_NONE),
    ROW(F16,           "f16",           FLOAT,   16,  2,    KL_IEEE, 5,  10, 15,   KILN_DTYPE_NONE),
    ROW(BF16,          "bf16",          FLOAT,   16,  2,    KL_IEEE, 8,  7,  127,  KILN_DTYPE_NONE),
    ROW(F32,           "f32",           FLOAT,   32,  4,    KL_IEEE, 8,  23, 127,  KILN_DTYPE_NONE),
    ROW(F64,           "f64",           FLOAT,   64,  8,    KL_IEEE, 11, 52, 1023, KILN_DTYPE_NONE),
    ROW(C64,           "c64",           COMPLEX, 64,  8,    KL_IEEE, 0,  0,  0,    KILN_F32),
    ROW(C128,          "c128",          COMPLEX, 128, 16,   KL_IEEE, 0,  0,  0,    KILN_F64),
    ROW(TUPLE,         "tuple",         OTHER,   0,   0,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(TOKEN,         "token",         OTHER,   0,   0,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
    ROW(OPAQUE,        "opaque",        OTHER,   0,   0,    KL_IEEE, 0,  0,  0,    KILN_DTYPE_NONE),
};
#undef ROW
// clang-format on

static bool in_range(kl_dtype t) {
  return (unsigned)t < KILN_DTYPE_COUNT;
}

const char *kiln_dtype_name(kiln_dtype t) {
  return in_range(t) ? kl_dtypes[t].name : "";
}

unsigned kiln_dtype_bits(kiln_dtype t) {
  return in_range(t) ? kl_dtypes[t].bits : 0;
}

bool kl_dtype_from_str(kl_str name, kl_dtype *out) {
  for (int t = KILN_DTYPE_NONE + 1; t < KILN_DTYPE_COUNT; t++)
    if (kl_str_is(name, kl_dtypes[t].name)) {
      *out = (kl_dtype)t;
      return true;
    }
  return false;
}

kiln_dtype kiln_dtype_from_name(const char *name) {
  kl_dtype t;
  return kl_dtype_from_str(kl_str_of(name), &t) ? t : KILN_DTYPE_NONE;
}

int64_t kiln_array_bytes(const kiln_array_type *t) {
  unsigned bits = t ? kiln_dtype_bits(t->dtype) : 0;
  if (!bits || t->rank > KILN_MAX_RANK) return -1;
  int64_t n = 1, bytes;
  bool overflow = false, empty = false;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (t->dims[i] < 0) return -1;
    empty |= t->dims[i] == 0;
    overflow |= __builtin_mul_overflow(n, t->dims[i], &n);
  }
  if (empty) return 0;
  if (overflow) return -1;
  if (bits < 8) return n / (8 / bits) + (n % (8 / bits) != 0);
  return __builtin_mul_overflow(n, bits / 8, &bytes) ? -1 : bytes;
}

// --- floats -------------------------------------------------------------------------------------------------------

static inline double double_of(uint64_t u) {
  double v;
  memcpy(&v, &u, sizeof v);
  return v;
}

static inline uint64_t bits_of(double v) {
  uint64_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}

static inline float float_of(uint32_t u) {
  float v;
  memcpy(&v, &u, sizeof v);
  return v;
}

static inline uint32_t float_bits(float v) {
  uint32_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}

static inline uint64_t ones(int n) {
  return (1ull << n) - 1;
}

#define DOUBLE_INF   0x7ff0000000000000ull
#define DOUBLE_QUIET 0x7ff8000000000000ull

// What a format does at its ends, as patterns without the sign. For FNUZ and E8M0 the one NaN takes the whole pattern.
typedef struct top {
  uint64_t largest;  // finite
  uint64_t overflow; // what greater values become: infinity, NaN or the largest
  uint64_t nan;      // the quiet default
} top;

static inline __attribute__((always_inline)) top top_of(kl_float_kind kind, int exp_bits, int man_bits) {
  uint64_t all = ones(exp_bits + man_bits), inf = all - ones(man_bits);
  switch (kind) {
  case KL_IEEE: return (top){inf - 1, inf, inf | 1ull << (man_bits - 1)};
  case KL_FN: return (top){all - 1, all, all};
  case KL_FN0: return (top){all, all, all + 1};
  case KL_FNUZ: return (top){all, all + 1, all + 1};
  case KL_E8M0: return (top){all - 1, all, all};
  }
  return (top){0, 0, 0};
}

// x / 2^shift rounded to nearest, ties to even; shift from 1 to 63.
static inline uint64_t shift_to_even(uint64_t x, int shift) {
  uint64_t half = 1ull << (shift - 1);
  return (x + (half - 1) + ((x >> shift) & 1)) >> shift;
}

// `a` is the pattern of a double without its sign, no NaN. The result may exceed `largest`: then it overflows.
static inline __attribute__((always_inline)) uint64_t round_magnitude(uint64_t a, int man_bits, int bias) {
  int shift = 52 - man_bits, low = (int)(a >> 52) - 1023 - (1 - bias);
  if (low >= 0) return shift_to_even(a, shift) - ((uint64_t)(1023 - bias) << man_bits);
  // Below the least normal exponent the mantissa, hidden bit and all, moves right. A double's own denormals are far
  // below half of every such format's least value, so that their missing hidden bit does not matter.
  shift -= low;
  return shift > 53 ? 0 : shift_to_even((a & ones(52)) | 1ull << 52, shift);
}

static inline __attribute__((always_inline)) uint64_t encode_signed(double v, kl_float_kind kind, int exp_bits,
                                                                    int man_bits, int bias) {
  uint64_t u = bits_of(v), a = u & ~(1ull << 63), sign = (u >> 63) << (exp_bits + man_bits);
  top end = top_of(kind, exp_bits, man_bits);
  uint64_t r;
  if (a > DOUBLE_INF) {
    // Payload bits stay as far as they fit, as the hardware's own conversions have it.
    r = kind == KL_IEEE ? end.nan | ((a & ones(52)) >> (52 - man_bits)) : end.nan;
    if (kind == KL_FN0) return r;
  } else {
    r = round_magnitude(a, man_bits, bias);
    if (r > end.largest) r = end.overflow;
  }
  if (kind == KL_FNUZ && r == 0) return r;
  return r | sign;
}

// Between two powers of two the tie is their sum's half, whose upper neighbour has the even significand (2 * 2^n).
// Positive values below the least power become that; zero and negative values have no neighbour here and become NaN.
static uint64_t encode_e8m0(double v) {
  uint64_t u = bits_of(v);
  if (u == 0 || u > DOUBLE_INF) return 0xff;
  int64_t e = (int64_t)((u + (1ull << 51)) >> 52) - 1023 + 127;
  return e < 0 ? 0 : e > 0xfe ? 0xff : (uint64_t)e;
}

uint64_t kl_float_encode(kl_dtype t, double v) {
  switch (t) {
  case KILN_F64: return bits_of(v);
  case KILN_F32: return float_bits((float)v);
  case KILN_BF16: return encode_signed(v, KL_IEEE, 8, 7, 127);
  case KILN_F16: return encode_signed(v, KL_IEEE, 5, 10, 15);
  case KILN_F8E8M0FNU: return encode_e8m0(v);
  default: break;
  }
  const kl_dtype_info *f = kl_info(t);
  return encode_signed(v, f->kind, f->exp_bits, f->man_bits, f->bias);
}

static inline __attribute__((always_inline)) double decode_signed(uint64_t bits, kl_float_kind kind, int exp_bits,
                                                                  int man_bits, int bias) {
  uint64_t a = bits & ones(exp_bits + man_bits), sign = (bits >> (exp_bits + man_bits)) << 63;
  top end = top_of(kind, exp_bits, man_bits);
  if (kind == KL_FNUZ && bits == end.nan) return double_of(DOUBLE_QUIET);
  if (a > end.largest) {
    if (kind == KL_IEEE && a == end.overflow) return double_of(sign | DOUBLE_INF);
    return double_of(sign | DOUBLE_QUIET | (kind == KL_IEEE ? (a & ones(man_bits)) << (52 - man_bits) : 0));
  }
  if (a >> man_bits) return double_of(sign | ((a << (52 - man_bits)) + ((uint64_t)(1023 - bias) << 52)));
  double scale = double_of((uint64_t)(1024 - bias - man_bits) << 52); // of one unit of the mantissa
  return double_of(sign | bits_of((double)a * scale));
}

double kl_float_decode(kl_dtype t, uint64_t bits) {
  switch (t) {
  case KILN_F64: return double_of(bits);
  case KILN_F32: return float_of((uint32_t)bits);
  case KILN_BF16: return float_of((uint32_t)bits << 16);
  case KILN_F16: return decode_signed(bits & 0xffff, KL_IEEE, 5, 10, 15);
  case KILN_F8E8M0FNU:
    return (bits & 0xff) == 0xff ? double_of(DOUBLE_QUIET) : double_of(((bits & 0xff) + 1023 - 127) << 52);
  default: break;
  }
  const kl_dtype_info *f = kl_info(t);
  return decode_signed(bits & kl_int_mask(t), f->kind, f->exp_bits, f->man_bits, f->bias);
}

static uint64_t magnitude_mask(const kl_dtype_info *f) {
  return ones(f->exp_bits + f->man_bits);
}

bool kl_float_is_nan(kl_dtype t, uint64_t bits) {
  const kl_dtype_info *f = kl_info(t);
  bits &= kl_int_mask(t);
  top end = top_of(f->kind, f->exp_bits, f->man_bits);
  switch (f->kind) {
  case KL_IEEE: return (bits & magnitude_mask(f)) > end.overflow;
  case KL_FN: return (bits & magnitude_mask(f)) == end.nan;
  case KL_FN0: return false;
  case KL_FNUZ:
  case KL_E8M0: return bits == end.nan;
  }
  return false;
}

// Patterns without the sign run from zero away from it; both zeros step over to the first value of the other side.
uint64_t kl_float_next(kl_dtype t, uint64_t bits, bool up) {
  const kl_dtype_info *f = kl_info(t);
  bits &= kl_int_mask(t);
  if (kl_float_is_nan(t, bits)) return bits;
  top end = top_of(f->kind, f->exp_bits, f->man_bits);
  if (f->kind == KL_E8M0) return up ? bits + (bits < end.largest) : bits - (bits > 0);
  uint64_t last = f->kind == KL_IEEE ? end.overflow : end.largest;
  uint64_t a = bits & magnitude_mask(f), sign = bits ^ a, minus = magnitude_mask(f) + 1;
  if (a == 0) return up ? 1 : minus | 1;
  if (up == (sign == 0)) return a < last ? bits + 1 : bits;
  return a == 1 && f->kind == KL_FNUZ ? 0 : bits - 1;
}

// --- integers and conversion --------------------------------------------------------------------------------------

int64_t kl_int_decode(kl_dtype t, uint64_t bits) {
  int unused = 64 - kl_info(t)->bits;
  bits <<= unused;
  return kl_is_signed(t) ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
}

static uint64_t int_from_double(kl_dtype to, double v) {
  int bits = kl_info(to)->bits;
  uint64_t mask = kl_int_mask(to);
  if (isnan(v)) return 0;
  if (!kl_is_signed(to)) {
    if (v <= 0) return 0;
    return v >= double_of((uint64_t)(1023 + bits) << 52) ? mask : (uint64_t)v;
  }
  double limit = double_of((uint64_t)(1023 + bits - 1) << 52);
  if (v >= limit) return mask >> 1;
  return v <= -limit ? mask ^ (mask >> 1) : (uint64_t)(int64_t)v & mask;
}

static uint64_t float_from_int(kl_dtype to, kl_dtype from, uint64_t bits) {
  int64_t v = kl_int_decode(from, bits);
  bool wraps = from == KILN_U64; // v is a pattern then, not a value
  if (to == KILN_F64) return bits_of(wraps ? (double)(uint64_t)v : (double)v);
  float f = wraps ? (float)(uint64_t)v : (float)v;
  return to == KILN_F32 ? float_bits(f) : kl_float_encode(to, f);
}

uint64_t kl_convert(kl_dtype from, kl_dtype to, uint64_t bits) {
  kl_class a = kl_info(from)->cls, b = kl_info(to)->cls;
  if (from == to) return bits;
  if (a == KL_CLASS_FLOAT) {
    double v = kl_float_decode(from, bits);
    if (b == KL_CLASS_FLOAT) return kl_float_encode(to, v);
    return b == KL_CLASS_PRED ? v != 0 : int_from_double(to, v);
  }
  if (b == KL_CLASS_FLOAT) return float_from_int(to, from, bits);
  if (b == KL_CLASS_PRED) return bits != 0;
  return (uint64_t)kl_int_decode(from, bits) & kl_int_mask(to);
}

// --- elements held unpacked ---------------------------------------------------------------------------------------

uint64_t kl_element_get(kl_dtype t, const void *data, int64_t index, int part) {
  const kl_dtype_info *d = kl_info(t);
  size_t size = d->cls == KL_CLASS_COMPLEX ? d->bytes / 2u : d->bytes;
  const char *p = (const char *)data + index * (int64_t)d->bytes + part * (int64_t)size;
  uint8_t u8;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  switch (size) {
  case 1: memcpy(&u8, p, 1); return t == KILN_PRED ? u8 != 0 : u8 & kl_int_mask(t);
  case 2: memcpy(&u16, p, 2); return u16;
  case 4: memcpy(&u32, p, 4); return u32;
  default: memcpy(&u64, p, 8); return u64;
  }
}

void kl_element_set(kl_dtype t, void *data, int64_t index, int part, uint64_t bits) {
  const kl_dtype_info *d = kl_info(t);
  size_t size = d->cls == KL_CLASS_COMPLEX ? d->bytes / 2u : d->bytes;
  char *p = (char *)data + index * (int64_t)d->bytes + part * (int64_t)size;
  uint8_t u8 = (uint8_t)(t == KILN_PRED ? bits != 0 : bits & kl_int_mask(t));
  uint16_t u16 = (uint16_t)bits;
  uint32_t u32 = (uint32_t)bits;
  switch (size) {
  case 1: memcpy(p, &u8, 1); break;
  case 2: memcpy(p, &u16, 2); break;
  case 4: memcpy(p, &u32, 4); break;
  default: memcpy(p, &bits, 8); break;
  }
}
