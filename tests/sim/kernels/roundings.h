// CUDA's float and double intrinsics of a stated rounding, and conversions, for the host. Operands and results go
// through volatile variables, so that no arithmetic moves past a change of the rounding mode.
#ifndef ROUNDINGS_H
#define ROUNDINGS_H

#include "integers.h"
#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SIMT_ROUNDED(T, mode, expr)                                                                                    \
  int before = fegetround();                                                                                           \
  fesetround(mode);                                                                                                    \
  volatile T r = expr;                                                                                                 \
  fesetround(before);                                                                                                  \
  return r;
#define SIMT_ROUNDED1(T, name, mode, expr)                                                                             \
  SIMT_FN T name(T a) {                                                                                                \
    volatile T x = a;                                                                                                  \
    SIMT_ROUNDED(T, mode, expr)                                                                                        \
  }
#define SIMT_ROUNDED2(T, name, mode, expr)                                                                             \
  SIMT_FN T name(T a, T b) {                                                                                           \
    volatile T x = a, y = b;                                                                                           \
    SIMT_ROUNDED(T, mode, expr)                                                                                        \
  }
#define SIMT_ROUNDED3(T, name, mode, expr)                                                                             \
  SIMT_FN T name(T a, T b, T c) {                                                                                      \
    volatile T x = a, y = b, z = c;                                                                                    \
    SIMT_ROUNDED(T, mode, expr)                                                                                        \
  }
#define SIMT_OPS(T, f, suffix, fma_of, sqrt_of, mode)                                                                  \
  SIMT_ROUNDED2(T, __##f##add_##suffix, mode, x + y)                                                                   \
  SIMT_ROUNDED2(T, __##f##sub_##suffix, mode, x - y)                                                                   \
  SIMT_ROUNDED2(T, __##f##mul_##suffix, mode, x *y)                                                                    \
  SIMT_ROUNDED2(T, __##f##div_##suffix, mode, x / y)                                                                   \
  SIMT_ROUNDED1(T, __##f##rcp_##suffix, mode, 1 / x)                                                                   \
  SIMT_ROUNDED1(T, __##f##sqrt_##suffix, mode, sqrt_of(x))                                                             \
  SIMT_ROUNDED3(T, simt_##f##fma_##suffix, mode, fma_of(x, y, z))
#define SIMT_MODES(T, f, fma_of, sqrt_of)                                                                              \
  SIMT_OPS(T, f, rn, fma_of, sqrt_of, FE_TONEAREST)                                                                    \
  SIMT_OPS(T, f, rz, fma_of, sqrt_of, FE_TOWARDZERO)                                                                   \
  SIMT_OPS(T, f, rd, fma_of, sqrt_of, FE_DOWNWARD)                                                                     \
  SIMT_OPS(T, f, ru, fma_of, sqrt_of, FE_UPWARD)
SIMT_MODES(float, f, fmaf, sqrtf)
SIMT_MODES(double, d, fma, sqrt)
#define __fmaf_rn         simt_ffma_rn
#define __fmaf_rz         simt_ffma_rz
#define __fmaf_rd         simt_ffma_rd
#define __fmaf_ru         simt_ffma_ru
#define __fma_rn          simt_dfma_rn
#define __fma_rz          simt_dfma_rz
#define __fma_rd          simt_dfma_rd
#define __fma_ru          simt_dfma_ru

// --- numbers of other types ---------------------------------------------------------------------------------------

// Compilers convert unsigned numbers of 64 bits in ways that are right for the nearest alone: halve those of the top
// bit, keeping whether something was lost.
#define SIMT_HALVED(T, x) ((int64_t)(x) >= 0 ? (T)(int64_t)(x) : 2 * (T)(int64_t)((x) >> 1 | ((x)&1)))
#define SIMT_WORD(T, x)   ((T)(int64_t)(x))
#define SIMT_PLAIN(T, x)  ((T)(x))
#define SIMT_FROM(T, name, From, mode, convert)                                                                        \
  SIMT_FN T name(From a) {                                                                                             \
    volatile From x = a;                                                                                               \
    SIMT_ROUNDED(T, mode, convert(T, x))                                                                               \
  }
#define SIMT_FROM_MODES(T, name, From, convert)                                                                        \
  SIMT_FROM(T, name##_rn, From, FE_TONEAREST, convert)                                                                 \
  SIMT_FROM(T, name##_rz, From, FE_TOWARDZERO, convert)                                                                \
  SIMT_FROM(T, name##_rd, From, FE_DOWNWARD, convert)                                                                  \
  SIMT_FROM(T, name##_ru, From, FE_UPWARD, convert)
SIMT_FROM_MODES(float, __int2float, int, SIMT_PLAIN)
SIMT_FROM_MODES(float, __uint2float, unsigned, SIMT_WORD)
SIMT_FROM_MODES(float, __ll2float, long long, SIMT_PLAIN)
SIMT_FROM_MODES(float, __ull2float, unsigned long long, SIMT_HALVED)
SIMT_FROM_MODES(double, __ll2double, long long, SIMT_PLAIN)
SIMT_FROM_MODES(double, __ull2double, unsigned long long, SIMT_HALVED)
SIMT_FROM_MODES(float, __double2float, double, SIMT_PLAIN)

// Integers clamp. A NaN gives `nan`: 0 between f32 and 32-bit integers, else the greatest power of two the bits hold
// (PTX ISA, cvt). `top` is 2^bits, exact where the largest integer is not.
#define SIMT_TO(T, name, From, round, low, high, top, nan)                                                             \
  SIMT_FN T name(From a) {                                                                                             \
    double x = round((double)a);                                                                                       \
    if (isnan(a)) return (T)(nan);                                                                                     \
    return x >= (top) ? (high) : x <= (double)(low) ? (low) : (T)x;                                                    \
  }
#define SIMT_TO_MODES(T, name, From, low, high, top, nan)                                                              \
  SIMT_TO(T, name##_rn, From, nearbyint, low, high, top, nan)                                                          \
  SIMT_TO(T, name##_rz, From, trunc, low, high, top, nan)                                                              \
  SIMT_TO(T, name##_rd, From, floor, low, high, top, nan)                                                              \
  SIMT_TO(T, name##_ru, From, ceil, low, high, top, nan)
SIMT_TO_MODES(int, __float2int, float, INT32_MIN, INT32_MAX, 0x1p31, 0)
SIMT_TO_MODES(unsigned, __float2uint, float, 0, UINT32_MAX, 0x1p32, 0)
SIMT_TO_MODES(long long, __float2ll, float, INT64_MIN, INT64_MAX, 0x1p63, INT64_MIN)
SIMT_TO_MODES(unsigned long long, __float2ull, float, 0, UINT64_MAX, 0x1p64, UINT64_C(1) << 63)
SIMT_TO_MODES(int, __double2int, double, INT32_MIN, INT32_MAX, 0x1p31, INT32_MIN)
SIMT_TO_MODES(unsigned, __double2uint, double, 0, UINT32_MAX, 0x1p32, 1u << 31)
SIMT_TO_MODES(long long, __double2ll, double, INT64_MIN, INT64_MAX, 0x1p63, INT64_MIN)
SIMT_TO_MODES(unsigned long long, __double2ull, double, 0, UINT64_MAX, 0x1p64, UINT64_C(1) << 63)

// Zeros count as different: -0 is less (PTX ISA, min). C leaves that open.
#define SIMT_MINMAX(T, name, greatest)                                                                                 \
  SIMT_FN T name(T a, T b) {                                                                                           \
    if (isnan(a) || isnan(b)) return isnan(a) ? b : a;                                                                 \
    bool a_less = a < b || (a == b && signbit(a));                                                                     \
    return a_less != greatest ? a : b;                                                                                 \
  }
SIMT_MINMAX(float, simt_fminf, false)
SIMT_MINMAX(float, simt_fmaxf, true)
SIMT_MINMAX(double, simt_fmin, false)
SIMT_MINMAX(double, simt_fmax, true)
#define fminf simt_fminf
#define fmaxf simt_fmaxf
#define fmin  simt_fmin
#define fmax  simt_fmax

SIMT_FN float __saturatef(float x) {
  return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
} // a NaN gives 0
SIMT_FN float __frsqrt_rn(float x) {
  return (float)(1 / sqrtl(x));
}

// --- bits ---------------------------------------------------------------------------------------------------------

#define SIMT_BITS(T, name, From)                                                                                       \
  SIMT_FN T name(From v) {                                                                                             \
    T r;                                                                                                               \
    memcpy(&r, &v, sizeof r);                                                                                          \
    return r;                                                                                                          \
  }
SIMT_BITS(unsigned, __float_as_uint, float)
SIMT_BITS(int, __float_as_int, float)
SIMT_BITS(float, __uint_as_float, unsigned)
SIMT_BITS(float, __int_as_float, int)
SIMT_BITS(long long, __double_as_longlong, double)
SIMT_BITS(double, __longlong_as_double, long long)
SIMT_FN int __double2hiint(double v) {
  return (int)(__double_as_longlong(v) >> 32);
}
SIMT_FN int __double2loint(double v) {
  return (int)__double_as_longlong(v);
}
SIMT_FN double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)((uint64_t)(unsigned)high << 32 | (unsigned)low));
}

#endif
