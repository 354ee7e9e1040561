// Conversions. Numbers of 8 bits lie in registers of 16, extended as their type says.
#include "sim/isa/convert.h"
#include "sim/lanes/encode.h"

__extension__ typedef __int128 s128;

typedef u16 kept_u8;
typedef s16 kept_s8;
typedef u16 kept_u16;
typedef s16 kept_s16;
typedef u32 kept_u32;
typedef s32 kept_s32;
typedef u64 kept_u64;
typedef s64 kept_s64;

// D and S for every type; all types for one.
#define EACH_INTEGER(M, ...)                                                                                           \
  M(u8, on16, __VA_ARGS__)                                                                                             \
  M(s8, on16, __VA_ARGS__)                                                                                             \
  M(u16, on16, __VA_ARGS__)                                                                                            \
  M(s16, on16, __VA_ARGS__)                                                                                            \
  M(u32, on32, __VA_ARGS__)                                                                                            \
  M(s32, on32, __VA_ARGS__)                                                                                            \
  M(u64, on64, __VA_ARGS__)                                                                                            \
  M(s64, on64, __VA_ARGS__)

// --- integers ------------------------------------------------------------------------------------------------------

static inline s128 clamp(s128 v, s128 least, s128 most) {
  return v < least ? least : v > most ? most : v;
}
#define LEAST(T)          (SIGNED(T) ? -((s128)1 << (8 * sizeof(T) - 1)) : 0)
#define MOST(T)           (SIGNED(T) ? ((s128)1 << (8 * sizeof(T) - 1)) - 1 : ((s128)1 << (8 * sizeof(T))) - 1)

#define BETWEEN(D, on, S) UNARY(cvt_##D##_##S, on, kept_##D, kept_##S, (kept_##D)(D)(S)a[i])
#define SATURATING(X, D, d, S, s)                                                                                      \
  SLOW_UNARY(cvt_sat_##D##_##S, kept_##D, kept_##S, (kept_##D)(D)clamp((S)a[i], LEAST(D), MOST(D)))
KL_ISA_CVT_SATURATING(SATURATING, )
EACH_INTEGER(BETWEEN, u8)
EACH_INTEGER(BETWEEN, s8)
EACH_INTEGER(BETWEEN, u16)
EACH_INTEGER(BETWEEN, s16)
EACH_INTEGER(BETWEEN, u32)
EACH_INTEGER(BETWEEN, s32)
EACH_INTEGER(BETWEEN, u64)
EACH_INTEGER(BETWEEN, s64)

// --- integers to floats --------------------------------------------------------------------------------------------

#define HIDE(p) __asm__ volatile("" : "+r"(p) : : "memory")

// A sum that makes up a conversion may give -0 where rounding is downwards: 0 has no sign here.
#define FROM_INTEGER(S, on, unused)                                                                                    \
  UNARY(cvt_f32_##S, on32, f32, kept_##S, (f32)(S)a[i])                                                                \
  UNARY(cvt_f64_##S, on64, f64, kept_##S, (f64)(S)a[i])                                                                \
  EXECUTOR(cvt_any_f32_##S) {                                                                                          \
    const kept_##S *a = AT(kept_##S, o->a);                                                                            \
    f32 v[KL_LANES], *r = v;                                                                                           \
    HIDE(a);                                                                                                           \
    HIDE(r);                                                                                                           \
    unsigned before = round_as(o->flags);                                                                              \
    ALL(KL_LANES, r[i] = (f32)(S)a[i]);                                                                                \
    round_back(before);                                                                                                \
    ALL(KL_LANES, r[i] = r[i] == 0 ? 0 : r[i]);                                                                        \
    if (o->flags & KL_SAT) ALL(KL_LANES, r[i] = saturate(r[i]));                                                       \
    PUT(f32, on32, r);                                                                                                 \
  }                                                                                                                    \
  EXECUTOR(cvt_any_f64_##S) {                                                                                          \
    const kept_##S *a = AT(kept_##S, o->a);                                                                            \
    f64 v[KL_LANES], *r = v;                                                                                           \
    HIDE(a);                                                                                                           \
    HIDE(r);                                                                                                           \
    unsigned before = round_as(o->flags);                                                                              \
    ALL(KL_LANES, r[i] = (f64)(S)a[i]);                                                                                \
    round_back(before);                                                                                                \
    ALL(KL_LANES, r[i] = r[i] == 0 ? 0 : r[i]);                                                                        \
    if (o->flags & KL_SAT) ALL(KL_LANES, r[i] = saturate64(r[i]));                                                     \
    PUT(f64, on64, r);                                                                                                 \
  }                                                                                                                    \
  SLOW_UNARY(cvt_f16_##S, u16, kept_##S, (u16)encode(&f16_format, NUMBER(S, a[i]), flags))                             \
  SLOW_UNARY(cvt_bf16_##S, u16, kept_##S, (u16)encode(&bf16_format, NUMBER(S, a[i]), flags))
#define NUMBER(S, v) (SIGNED(S) ? number_of_s64((s64)(S)(v)) : number_of_u64((u64)(S)(v)))
EACH_INTEGER(FROM_INTEGER, )

// --- floats to integers --------------------------------------------------------------------------------------------

// Integral values in the direction of the flags; towards zero is what a conversion does by itself.
static void integral32(f32 *r, const f32 *v, uint32_t flags, bool zero) {
  switch (flags & KL_ROUND) {
  case KL_RN: ALL(KL_LANES, r[i] = __builtin_rintf(v[i])); break;
  case KL_RM: ALL(KL_LANES, r[i] = __builtin_floorf(v[i])); break;
  case KL_RP: ALL(KL_LANES, r[i] = __builtin_ceilf(v[i])); break;
  default:
    if (zero)
      ALL(KL_LANES, r[i] = __builtin_truncf(v[i]));
    else
      ALL(KL_LANES, r[i] = v[i]);
    break;
  }
}
static void integral64(f64 *r, const f64 *v, uint32_t flags, bool zero) {
  switch (flags & KL_ROUND) {
  case KL_RN: ALL(KL_LANES, r[i] = __builtin_rint(v[i])); break;
  case KL_RM: ALL(KL_LANES, r[i] = __builtin_floor(v[i])); break;
  case KL_RP: ALL(KL_LANES, r[i] = __builtin_ceil(v[i])); break;
  default:
    if (zero)
      ALL(KL_LANES, r[i] = __builtin_trunc(v[i]));
    else
      ALL(KL_LANES, r[i] = v[i]);
    break;
  }
}

// Single numbers of an operand.
static void take_f32(f32 *r, const kl_lanes *x, const kl_sim_op *o) {
  const f32 *a = AT(f32, o->a);
  if (o->flags & KL_FTZ)
    ALL(KL_LANES, r[i] = flush(a[i]));
  else
    ALL(KL_LANES, r[i] = a[i]);
}
static void take_f16(f32 *r, const kl_lanes *x, const kl_sim_op *o) {
  widen_all_f16(r, AT(u16, o->a), KL_LANES);
}
static void take_bf16(f32 *r, const kl_lanes *x, const kl_sim_op *o) {
  widen_all_bf16(r, AT(u16, o->a), KL_LANES);
}
static void take_f64(f64 *r, const kl_lanes *x, const kl_sim_op *o) {
  const f64 *a = AT(f64, o->a);
  ALL(KL_LANES, r[i] = a[i]);
}

// What lies below or above the type's range is its end; D's least and most are the bounds of what a cast defines.
#define LIMIT_LOW(D)  (SIGNED(D) ? -(double)(1ull << (8 * sizeof(D) - 1)) : 0)
#define LIMIT_HIGH(D) (SIGNED(D) ? (double)(1ull << (8 * sizeof(D) - 1)) : 2 * (double)(1ull << (8 * sizeof(D) - 1)))
#define TOP_BIT(D)    ((D)((u64)1 << (8 * sizeof(D) - 1)))
#define NAN_AS(D, S)  (sizeof(D) == 8 || sizeof(S) == 8 ? TOP_BIT(D) : (D)0)
#define SAFE(v, D, F) ((v) >= (F)LIMIT_LOW(D) && (v) < (F)LIMIT_HIGH(D) ? (v) : 0)
#define AS_INTEGER(v, D, F)                                                                                            \
  ((v) >= (F)LIMIT_HIGH(D) ? (D)MOST(D)                                                                                \
   : (v) < (F)LIMIT_LOW(D) ? (D)LEAST(D)                                                                               \
   : (v) != (v)            ? NAN_AS(D, F)                                                                              \
                           : (D)SAFE(v, D, F))
#define TO_INTEGER(D, on, S, F, bits)                                                                                  \
  EXECUTOR(cvt_##D##_##S) {                                                                                            \
    F v[KL_LANES];                                                                                                     \
    take_##S(v, x, o);                                                                                                 \
    integral##bits(v, v, o->flags, false);                                                                             \
    kept_##D r[KL_LANES];                                                                                              \
    ALL(KL_LANES, r[i] = (kept_##D)AS_INTEGER(v[i], D, F));                                                            \
    PUT(kept_##D, on, r);                                                                                              \
  }
EACH_INTEGER(TO_INTEGER, f32, f32, 32)
EACH_INTEGER(TO_INTEGER, f16, f32, 32)
EACH_INTEGER(TO_INTEGER, bf16, f32, 32)
EACH_INTEGER(TO_INTEGER, f64, f64, 64)

// --- floats --------------------------------------------------------------------------------------------------------

// Results by the flags, NaNs canonical.
static void put_f32(kl_lanes *x, const kl_sim_op *o, f32 *r) {
  if (o->flags & KL_SAT) ALL(KL_LANES, r[i] = saturate(r[i]));
  if (o->flags & KL_FTZ) ALL(KL_LANES, r[i] = flush(r[i]));
  u32 *d = AT(u32, o->d);
  LANES(on32, d, canonical(r[i]));
}
static void put_f64(kl_lanes *x, const kl_sim_op *o, f64 *r) {
  if (o->flags & KL_SAT) ALL(KL_LANES, r[i] = saturate64(r[i]));
  u64 *d = AT(u64, o->d);
  LANES(on64, d, r[i] == r[i] ? bits64(r[i]) : nan_of(bits64(r[i]), 0, 0));
}

#define FROM(name, take, put, D, S, step)                                                                              \
  EXECUTOR(name) {                                                                                                     \
    S v[KL_LANES];                                                                                                     \
    D r[KL_LANES];                                                                                                     \
    take(v, x, o);                                                                                                     \
    step;                                                                                                              \
    put(x, o, r);                                                                                                      \
  }
FROM(cvt_f32_f32, take_f32, put_f32, f32, f32, ALL(KL_LANES, r[i] = v[i]))
FROM(cvt_f32_f16, take_f16, put_f32, f32, f32, ALL(KL_LANES, r[i] = v[i]))
FROM(cvt_f32_bf16, take_bf16, put_f32, f32, f32, ALL(KL_LANES, r[i] = v[i]))
FROM(cvt_f64_f32, take_f32, put_f64, f64, f32, ALL(KL_LANES, r[i] = (double)v[i]))
FROM(cvt_f64_f16, take_f16, put_f64, f64, f32, ALL(KL_LANES, r[i] = (double)float_of(canonical(v[i]))))
FROM(cvt_f64_bf16, take_bf16, put_f64, f64, f32, ALL(KL_LANES, r[i] = (double)float_of(canonical(v[i]))))
FROM(cvt_f64_f64, take_f64, put_f64, f64, f64, ALL(KL_LANES, r[i] = v[i]))
FROM(cvt_int_f32_f32, take_f32, put_f32, f32, f32, integral32(r, v, o->flags, true))
FROM(cvt_int_f64_f64, take_f64, put_f64, f64, f64, integral64(r, v, o->flags, true))

UNARY(cvt_f32_f64, on32, u32, f64, canonical((float)a[i]))
EXECUTOR(cvt_any_f32_f64) {
  const f64 *a = AT(f64, o->a);
  f32 v[KL_LANES], *r = v;
  HIDE(a);
  HIDE(r);
  unsigned before = round_as(o->flags);
  ALL(KL_LANES, r[i] = (float)a[i]);
  round_back(before);
  if (o->flags & KL_FTZ)
    ALL(KL_LANES, r[i] = __builtin_fabs(a[i]) < LEAST_NORMAL ? float_of(bits32(r[i]) & 0x80000000) : r[i]);
  put_f32(x, o, r);
}

// --- to halves -----------------------------------------------------------------------------------------------------

#define TO_HALF(T)                                                                                                     \
  EXECUTOR(cvt_##T##_f32) {                                                                                            \
    u16 r[KL_LANES];                                                                                                   \
    narrow_all_##T(r, AT(f32, o->a), KL_LANES);                                                                        \
    PUT(u16, on16, r);                                                                                                 \
  }                                                                                                                    \
  SLOW_UNARY(cvt_any_##T##_f32, u16, f32, (u16)single_as(&T##_format, a[i], flags))                                    \
  SLOW_BINARY(cvt_any_##T##x2_f32, u32, f32, f32,                                                                      \
              single_as(&T##_format, a[i], flags) << 16 | single_as(&T##_format, b[i], flags))                         \
  SLOW_UNARY(cvt_##T##_f64, u16, f64, (u16)encode(&T##_format, number_of_f64(a[i]), flags))

// To f16 GPUs take a subnormal operand as it is, also with .ftz.
static inline uint32_t single_as(const format *f, float v, uint32_t flags) {
  bool flushes = flags & KL_FTZ && f == &bf16_format;
  return encode(f, number_of_f64((double)(flushes ? flush(v) : v)), flags);
}
TO_HALF(f16)
TO_HALF(bf16)
EXECUTOR(cvt_f16x2_f32) {
  u16 high[KL_LANES], low[KL_LANES];
  narrow_all_f16(high, AT(f32, o->a), KL_LANES);
  narrow_all_f16(low, AT(f32, o->b), KL_LANES);
  u32 *d = AT(u32, o->d);
  LANES(on32, d, (u32)high[i] << 16 | low[i]);
}
BINARY(cvt_bf16x2_f32, on32, u32, f32, f32, narrow_bf16(a[i]) << 16 | narrow_bf16(b[i]))
SLOW_UNARY(cvt_f16_bf16, u16, u16, (u16)encode(&f16_format, number_of_f64((double)widen_bf16(a[i])), flags))
SLOW_UNARY(cvt_bf16_f16, u16, u16, (u16)encode(&bf16_format, number_of_f64((double)widen_f16(a[i])), flags))

// Halves that are integral are halves again.
#define PUT_HALF(T)                                                                                                    \
  static void put_##T(kl_lanes *x, const kl_sim_op *o, f32 *v) {                                                       \
    u16 r[KL_LANES];                                                                                                   \
    if (o->flags & KL_SAT) ALL(KL_LANES, v[i] = saturate(v[i]));                                                       \
    narrow_all_##T(r, v, KL_LANES);                                                                                    \
    PUT(u16, on16, r);                                                                                                 \
  }
PUT_HALF(f16)
PUT_HALF(bf16)
FROM(cvt_f16_f16, take_f16, put_f16, f32, f32, ALL(KL_LANES, r[i] = v[i]))
FROM(cvt_int_f16_f16, take_f16, put_f16, f32, f32, integral32(r, v, o->flags, true))
FROM(cvt_bf16_bf16, take_bf16, put_bf16, f32, f32, ALL(KL_LANES, r[i] = v[i]))
FROM(cvt_int_bf16_bf16, take_bf16, put_bf16, f32, f32, integral32(r, v, o->flags, true))

KL_TOPIC(convert, KL_ISA_CONVERT);
