// Integer arithmetic. Sums and products wrap: they are computed without sign.
#include "sim/isa/integer.h"
#include "sim/lanes/each.h"

// A value of 64 bits, clamped to 32 with sign.
static inline s32 clamp_s32(s64 v) {
  return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (s32)v;
}

// The sum, clamped: it overflows where its sign is neither that of a nor that of b.
static inline u32 sat_add(u32 a, u32 b, u32 sum) {
  u32 limit = (a >> 31) + INT32_MAX;
  return (s32)((sum ^ a) & (sum ^ b)) < 0 ? limit : sum;
}
static inline u32 sat_sub(u32 a, u32 b, u32 difference) {
  return sat_add(a, ~b, difference);
}

BINARY(add_16, on16, u16, u16, u16, (u16)(a[i] + b[i]))
BINARY(add_32, on32, u32, u32, u32, a[i] + b[i])
BINARY(add_64, on64, u64, u64, u64, a[i] + b[i])
BINARY(add_sat_s32, on32, u32, u32, u32, sat_add(a[i], b[i], a[i] + b[i]))
BINARY(sub_16, on16, u16, u16, u16, (u16)(a[i] - b[i]))
BINARY(sub_32, on32, u32, u32, u32, a[i] - b[i])
BINARY(sub_64, on64, u64, u64, u64, a[i] - b[i])
BINARY(sub_sat_s32, on32, u32, u32, u32, sat_sub(a[i], b[i], a[i] - b[i]))

// --- products ------------------------------------------------------------------------------------------------------

__extension__ typedef unsigned __int128 wide_u64;
__extension__ typedef __int128 wide_s64;

static inline u64 high_u64(u64 a, u64 b) {
  return (u64)((wide_u64)a * b >> 64);
}
static inline u64 high_s64(s64 a, s64 b) {
  return (u64)((wide_s64)a * b >> 64);
}

#define LO16(a, b)   ((u32)(a) * (b))
#define HI_U16(a, b) ((u32)(a) * (b) >> 16)
#define HI_S16(a, b) ((u32)((s32)(a) * (b)) >> 16)
#define HI_U32(a, b) ((u32)((u64)(a) * (b) >> 32))
#define HI_S32(a, b) ((u32)((u64)((s64)(a) * (b)) >> 32))

BINARY(mul_lo_16, on16, u16, u16, u16, (u16)LO16(a[i], b[i]))
BINARY(mul_lo_32, on32, u32, u32, u32, a[i] * b[i])
BINARY(mul_lo_64, on64, u64, u64, u64, a[i] * b[i])
BINARY(mul_hi_u16, on16, u16, u16, u16, (u16)HI_U16(a[i], b[i]))
BINARY(mul_hi_s16, on16, u16, s16, s16, (u16)HI_S16(a[i], b[i]))
BINARY(mul_hi_u32, on32, u32, u32, u32, HI_U32(a[i], b[i]))
BINARY(mul_hi_s32, on32, u32, s32, s32, HI_S32(a[i], b[i]))
SLOW_BINARY(mul_hi_u64, u64, u64, u64, high_u64(a[i], b[i]))
SLOW_BINARY(mul_hi_s64, u64, s64, s64, high_s64(a[i], b[i]))
BINARY(mul_wide_u16, on32, u32, u16, u16, (u32)a[i] * b[i])
BINARY(mul_wide_s16, on32, s32, s16, s16, (s32)a[i] * b[i])
BINARY(mul_wide_u32, on64, u64, u32, u32, (u64)a[i] * b[i])
BINARY(mul_wide_s32, on64, s64, s32, s32, (s64)a[i] * b[i])

TERNARY(mad_lo_16, on16, u16, u16, u16, u16, (u16)(LO16(a[i], b[i]) + c[i]))
TERNARY(mad_lo_32, on32, u32, u32, u32, u32, a[i] * b[i] + c[i])
TERNARY(mad_lo_64, on64, u64, u64, u64, u64, a[i] * b[i] + c[i])
TERNARY(mad_hi_u16, on16, u16, u16, u16, u16, (u16)(HI_U16(a[i], b[i]) + c[i]))
TERNARY(mad_hi_s16, on16, u16, s16, s16, u16, (u16)(HI_S16(a[i], b[i]) + c[i]))
TERNARY(mad_hi_u32, on32, u32, u32, u32, u32, HI_U32(a[i], b[i]) + c[i])
TERNARY(mad_hi_s32, on32, u32, s32, s32, u32, HI_S32(a[i], b[i]) + c[i])
SLOW_TERNARY(mad_hi_u64, u64, u64, u64, u64, high_u64(a[i], b[i]) + c[i])
SLOW_TERNARY(mad_hi_s64, u64, s64, s64, u64, high_s64(a[i], b[i]) + c[i])
TERNARY(mad_hi_sat_s32, on32, u32, s32, s32, u32, sat_add(HI_S32(a[i], b[i]), c[i], HI_S32(a[i], b[i]) + c[i]))
TERNARY(mad_wide_u16, on32, u32, u16, u16, u32, (u32)a[i] * b[i] + c[i])
TERNARY(mad_wide_s16, on32, u32, s16, s16, u32, (u32)((s32)a[i] * b[i]) + c[i])
TERNARY(mad_wide_u32, on64, u64, u32, u32, u64, (u64)a[i] * b[i] + c[i])
TERNARY(mad_wide_s32, on64, u64, s32, s32, u64, (u64)((s64)a[i] * b[i]) + c[i])

// The low 24 bits, by sign where the type has one; products have 48, of which .hi takes those above 16.
static inline u64 product24_u(u32 a, u32 b) {
  return (u64)(a & 0xffffff) * (b & 0xffffff);
}
static inline s64 product24_s(u32 a, u32 b) {
  return (s64)((s32)(a << 8) >> 8) * ((s32)(b << 8) >> 8);
}

BINARY(mul24_lo_u32, on32, u32, u32, u32, (u32)product24_u(a[i], b[i]))
BINARY(mul24_lo_s32, on32, u32, u32, u32, (u32)product24_s(a[i], b[i]))
BINARY(mul24_hi_u32, on32, u32, u32, u32, (u32)(product24_u(a[i], b[i]) >> 16))
BINARY(mul24_hi_s32, on32, u32, u32, u32, (u32)((u64)product24_s(a[i], b[i]) >> 16))
TERNARY(mad24_lo_u32, on32, u32, u32, u32, u32, (u32)product24_u(a[i], b[i]) + c[i])
TERNARY(mad24_lo_s32, on32, u32, u32, u32, u32, (u32)product24_s(a[i], b[i]) + c[i])
TERNARY(mad24_hi_u32, on32, u32, u32, u32, u32, (u32)(product24_u(a[i], b[i]) >> 16) + c[i])
TERNARY(mad24_hi_s32, on32, u32, u32, u32, u32, (u32)((u64)product24_s(a[i], b[i]) >> 16) + c[i])
SLOW_TERNARY(mad24_hi_sat_s32, s32, u32, u32, s32, clamp_s32((product24_s(a[i], b[i]) >> 16) + c[i]))

// --- sums of products of bytes -------------------------------------------------------------------------------------

#define DP4A(name, A, B)                                                                                               \
  TERNARY(name, on32, u32, u32, u32, u32,                                                                              \
          c[i] + (u32)((A)a[i] * (B)b[i]) + (u32)((A)(a[i] >> 8) * (B)(b[i] >> 8)) +                                   \
              (u32)((A)(a[i] >> 16) * (B)(b[i] >> 16)) + (u32)((A)(a[i] >> 24) * (B)(b[i] >> 24)))
DP4A(dp4a_uu, u8, u8)
DP4A(dp4a_us, u8, s8)
DP4A(dp4a_su, s8, u8)
DP4A(dp4a_ss, s8, s8)

// Both halves of a, by the two bytes of b from bit `from` on.
#define DP2A(name, A, B, from)                                                                                         \
  TERNARY(name, on32, u32, u32, u32, u32,                                                                              \
          c[i] + (u32)((A)a[i] * (B)(b[i] >> (from))) + (u32)((A)(a[i] >> 16) * (B)(b[i] >> ((from) + 8))))
DP2A(dp2a_lo_uu, u16, u8, 0)
DP2A(dp2a_lo_us, u16, s8, 0)
DP2A(dp2a_lo_su, s16, u8, 0)
DP2A(dp2a_lo_ss, s16, s8, 0)
DP2A(dp2a_hi_uu, u16, u8, 16)
DP2A(dp2a_hi_us, u16, s8, 16)
DP2A(dp2a_hi_su, s16, u8, 16)
DP2A(dp2a_hi_ss, s16, s8, 16)

// --- quotients -----------------------------------------------------------------------------------------------------

// Of signed numbers the least by -1 overflows. Both are found before the host's instruction, which would trap.
#define QUOTIENT(T, U)                                                                                                 \
  static inline U div1_##T(T a, T b) {                                                                                 \
    return b == 0 ? (U)-1 : SIGNED(T) && b == (T)-1 ? (U)(0 - (U)a) : (U)(a / b);                                      \
  }                                                                                                                    \
  static inline U rem1_##T(T a, T b) {                                                                                 \
    return b == 0 ? (U)-1 : SIGNED(T) && b == (T)-1 ? 0 : (U)(a % b);                                                  \
  }                                                                                                                    \
  SLOW_BINARY(div_##T, U, T, T, div1_##T(a[i], b[i]))                                                                  \
  SLOW_BINARY(rem_##T, U, T, T, rem1_##T(a[i], b[i]))
QUOTIENT(u16, u16)
QUOTIENT(s16, u16)
QUOTIENT(u32, u32)
QUOTIENT(s32, u32)
QUOTIENT(u64, u64)
QUOTIENT(s64, u64)

// --- order ---------------------------------------------------------------------------------------------------------

#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))
#define RELU(a)       ((a) > 0 ? (a) : 0)
#define ABS(U, a)     ((a) < 0 ? (U)(0 - (U)(a)) : (U)(a))
#define DIFF(U, a, b) ((a) < (b) ? (U)((U)(b) - (U)(a)) : (U)((U)(a) - (U)(b)))

#define ORDER(T, U, on)                                                                                                \
  BINARY(min_##T, on, T, T, T, MIN(a[i], b[i]))                                                                        \
  BINARY(max_##T, on, T, T, T, MAX(a[i], b[i]))                                                                        \
  TERNARY(sad_##T, on, U, T, T, U, (U)(c[i] + DIFF(U, a[i], b[i])))
ORDER(u16, u16, on16)
ORDER(s16, u16, on16)
ORDER(u32, u32, on32)
ORDER(s32, u32, on32)
ORDER(u64, u64, on64)
ORDER(s64, u64, on64)

#define SIGN(T, U, on)                                                                                                 \
  UNARY(abs_##T, on, U, T, ABS(U, a[i]))                                                                               \
  UNARY(neg_##T, on, U, U, (U)(0 - a[i]))
SIGN(s16, u16, on16)
SIGN(s32, u32, on32)
SIGN(s64, u64, on64)

BINARY(min_relu_s32, on32, s32, s32, s32, RELU(MIN(a[i], b[i])))
BINARY(max_relu_s32, on32, s32, s32, s32, RELU(MAX(a[i], b[i])))

// Pairs are twice as many numbers of 16 bits.
#define PAIRS(name, T, value)                                                                                          \
  EXECUTOR(name) {                                                                                                     \
    const T *a = AT(T, o->a), *b = AT(T, o->b);                                                                        \
    union {                                                                                                            \
      T h[2 * KL_LANES];                                                                                               \
      u32 w[KL_LANES];                                                                                                 \
    } r;                                                                                                               \
    ALL(2 * KL_LANES, r.h[i] = (value));                                                                               \
    PUT(u32, on32, r.w);                                                                                               \
  }
PAIRS(add_16x2, u16, (u16)(a[i] + b[i]))
PAIRS(min_u16x2, u16, MIN(a[i], b[i]))
PAIRS(max_u16x2, u16, MAX(a[i], b[i]))
PAIRS(min_s16x2, s16, MIN(a[i], b[i]))
PAIRS(max_s16x2, s16, MAX(a[i], b[i]))
PAIRS(min_relu_s16x2, s16, RELU(MIN(a[i], b[i])))
PAIRS(max_relu_s16x2, s16, RELU(MAX(a[i], b[i])))

KL_TOPIC(integer, KL_ISA_INTEGER);
