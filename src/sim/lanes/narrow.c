// Conversions to and from formats of 8 bits and fewer: a number at a time.
#include "sim/isa/narrow.h"
#include "sim/lanes/encode.h"

// Where a format has no infinity or no NaN, its largest number stands for it.
static const format e4m3_format = {3, -6, 0x7e, 0x7e, 0x7f, 0x80};
static const format e5m2_format = {2, -14, 0x7b, 0x7c, 0x7f, 0x80};
static const format e2m3_format = {3, 0, 0x1f, 0x1f, 0x1f, 0x20};
static const format e3m2_format = {2, -2, 0x1f, 0x1f, 0x1f, 0x20};
static const format e2m1_format = {1, 0, 0x07, 0x07, 0x07, 0x08};
static const format tf32_format = {10, -126, 0x3fbff, 0x3fc00, 0x3ffff, 0x40000};

static uint32_t narrow(const format *f, double v, uint32_t flags) {
  return encode(f, number_of_f64(v), flags);
}

// A code's value as f16, which has every number of these formats.
static uint32_t widen(const format *f, uint32_t code, uint32_t flags) {
  uint32_t size = code & (f->sign - 1), sign = code & f->sign ? 0x8000 : 0;
  if (size > f->largest) {
    if (size != f->infinite) return NAN16;
    return sign && flags & KL_RELU ? 0 : sign | 0x7c00;
  }
  u64 m = size & ((1u << f->fraction) - 1);
  int e = (int)(size >> f->fraction);
  number v = {
      .negative = sign != 0, .m = e ? m | 1ull << f->fraction : m, .e = f->least - f->fraction + (e ? e - 1 : 0)};
  return encode(&f16_format, v, flags);
}

// Pairs: the first operand, or the upper half, goes to the upper bits; `bits` apart.
#define PAIR_OF_SINGLES(T, bits)                                                                                       \
  SLOW_BINARY(cvt_##T##x2_f32, u16, f32, f32,                                                                          \
              (u16)(narrow(&T##_format, (double)a[i], flags) << (bits) | narrow(&T##_format, (double)b[i], flags)))
#define PAIR_OF_HALVES(T, bits)                                                                                        \
  SLOW_UNARY(cvt_##T##x2_f16x2, u16, u32,                                                                              \
             (u16)(narrow(&T##_format, (double)widen_f16(a[i] >> 16), flags) << (bits) |                               \
                   narrow(&T##_format, (double)widen_f16(a[i] & 0xffff), flags)))
#define PAIR_WIDENED(T, bits)                                                                                          \
  SLOW_UNARY(cvt_f16x2_##T##x2, u32, u16,                                                                              \
             widen(&T##_format, a[i] >> (bits)&ONES(T), flags) << 16 | widen(&T##_format, a[i] & ONES(T), flags))
#define ONES(T) (2 * T##_format.sign - 1)
#define PAIRS(T, bits)                                                                                                 \
  PAIR_OF_SINGLES(T, bits)                                                                                             \
  PAIR_WIDENED(T, bits)
PAIRS(e4m3, 8)
PAIRS(e5m2, 8)
PAIRS(e2m3, 8)
PAIRS(e3m2, 8)
PAIRS(e2m1, 4)
PAIR_OF_HALVES(e4m3, 8)
PAIR_OF_HALVES(e5m2, 8)
PAIR_OF_HALVES(e2m1, 4)

// --- powers of two -------------------------------------------------------------------------------------------------

// The exponent of |v|, rounded up or towards zero; the least one, 2^-127, also stands for what lies below. 0xff is NaN.
static uint32_t exponent(float v, uint32_t flags) {
  u32 size = bits32(v) & 0x7fffffff, code = size >> 23;
  bool up = (flags & KL_ROUND) == KL_RP && (size & 0x7fffff) && size > 0x400000;
  if (size > 0x7f800000) return 0xff;
  code += up && size < 0x7f800000;
  return flags & KL_SATFINITE && code == 0xff ? 0xfe : code;
}
static uint32_t power(uint32_t code) {
  return code == 0xff ? NAN16 : code == 0 ? 0x40 : code << 7;
}
SLOW_BINARY(cvt_ue8m0x2_f32, u16, f32, f32, (u16)(exponent(a[i], flags) << 8 | exponent(b[i], flags)))
SLOW_UNARY(cvt_ue8m0x2_bf16x2, u16, u32,
           (u16)(exponent(widen_bf16(a[i] >> 16), flags) << 8 | exponent(widen_bf16(a[i] & 0xffff), flags)))
SLOW_UNARY(cvt_bf16x2_ue8m0x2, u32, u16, power(a[i] >> 8) << 16 | power(a[i] & 255))

// --- tf32: the bits below its fraction are 0 -----------------------------------------------------------------------

static uint32_t tf32(float v, uint32_t flags) {
  return v == v ? narrow(&tf32_format, (double)v, flags) << 13 : NAN32;
}
SLOW_UNARY(cvt_tf32_f32, u32, f32, tf32(a[i], flags))

// --- stochastic rounding -------------------------------------------------------------------------------------------

static uint32_t stochastic(const format *f, float v, uint32_t flags, uint32_t random, int bits) {
  number n = number_of_f64((double)v);
  n.random = random & ((1u << bits) - 1);
  n.random_bits = bits;
  return encode(f, n, flags);
}
#define STOCHASTIC_PAIR(T, bits)                                                                                       \
  SLOW_TERNARY(cvt_rs_##T##x2_f32, u32, f32, f32, u32,                                                                 \
               stochastic(&T##_format, a[i], flags, c[i] >> 16, bits) << 16 |                                          \
                   stochastic(&T##_format, b[i], flags, c[i], bits))
STOCHASTIC_PAIR(f16, 13)
STOCHASTIC_PAIR(bf16, 16)

// Four numbers, the first one uppermost, `step` bits apart; each has `bits` random bits from bit shift[k] on.
static inline void stochastic_four(kl_lanes *x, const kl_sim_op *o, const format *f, int step, int bits,
                                   const int *shift, uint32_t *r) {
  const f32 *v[4] = {AT(f32, o->a), AT(f32, o->b), AT(f32, o->c), AT(f32, o->f)};
  const u32 *random = AT(u32, o->e);
  for (int i = 0; i < KL_LANES; i++) {
    r[i] = 0;
    for (int k = 0; k < 4; k++) r[i] = r[i] << step | stochastic(f, v[k][i], o->flags, random[i] >> shift[k], bits);
  }
}
#define STOCHASTIC_FOUR(T, U, on, step, bits, ...)                                                                     \
  EXECUTOR(cvt_rs_##T##x4_f32) {                                                                                       \
    static const int shift[4] = {__VA_ARGS__};                                                                         \
    uint32_t r[KL_LANES];                                                                                              \
    stochastic_four(x, o, &T##_format, step, bits, shift, r);                                                          \
    U *d = AT(U, o->d);                                                                                                \
    LANES(on, d, (U)r[i]);                                                                                             \
  }
STOCHASTIC_FOUR(e4m3, u32, on32, 8, 16, 16, 16, 0, 0)
STOCHASTIC_FOUR(e5m2, u32, on32, 8, 16, 16, 16, 0, 0)
STOCHASTIC_FOUR(e2m3, u32, on32, 8, 16, 16, 16, 0, 0)
STOCHASTIC_FOUR(e3m2, u32, on32, 8, 16, 16, 16, 0, 0)
STOCHASTIC_FOUR(e2m1, u16, on16, 4, 8, 24, 8, 16, 0)

// --- integers ------------------------------------------------------------------------------------------------------

// The low bits of a number that is clamped to so many, with sign or without.
static uint32_t clamped(s32 v, int bits, bool sign) {
  s32 most = (s32)((1u << (sign ? bits - 1 : bits)) - 1), least = sign ? -most - 1 : 0;
  return (u32)(v < least ? least : v > most ? most : v) & ((1u << bits) - 1);
}
// b lowest, a above it, then c.
#define PACK(T, bits, sign)                                                                                            \
  SLOW_TERNARY(cvt_pack_##T, u32, s32, s32, u32,                                                                       \
               clamped(b[i], bits, sign) | clamped(a[i], bits, sign) << (bits) | c[i] << 2 * (bits))
PACK(u2, 2, false)
PACK(s2, 2, true)
PACK(u4, 4, false)
PACK(s4, 4, true)
PACK(u8, 8, false)
PACK(s8, 8, true)
SLOW_BINARY(cvt_pack_u16, u32, s32, s32, clamped(b[i], 16, false) | clamped(a[i], 16, false) << 16)
SLOW_BINARY(cvt_pack_s16, u32, s32, s32, clamped(b[i], 16, true) | clamped(a[i], 16, true) << 16)

KL_TOPIC(narrow, KL_ISA_NARROW);
