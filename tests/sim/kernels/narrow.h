// CUDA's half, bfloat16 and fp8 types for the host: values in doubles, rounded once.
#ifndef NARROW_H
#define NARROW_H

#include "intrinsics.h"

typedef struct simt_format {
  int mantissa, least; // bits stored; exponent of the least normal number
  unsigned infinity;   // bits of infinity, or of what is above the greatest finite number
  unsigned nan;
  bool saturates; // to the number below
} simt_format;
static const simt_format simt_half = {10, -14, 0x7c00, 0x7fff, false}, simt_bf16 = {7, -126, 0x7f80, 0x7fff, false};
static const simt_format simt_e4m3 = {3, -6, 0x7f, 0x7f, true}, simt_e5m2 = {2, -14, 0x7c, 0x7f, true};

// The bits of v in a format; the sign is the bit above all.
SIMT_FN unsigned simt_pack(const simt_format *f, unsigned sign_bit, double v, int mode) {
  double a = fabs(v);
  bool minus = signbit(v) != 0, up = mode == (minus ? FE_DOWNWARD : FE_UPWARD);
  unsigned sign = minus ? sign_bit : 0, bits;
  if (isnan(v)) return f->nan;
  if (isinf(v)) return sign | (f->saturates ? f->infinity - 1 : f->infinity);
  if (a == 0) return sign;
  int e = ilogb(a) < f->least ? f->least : ilogb(a);
  double q = ldexp(a, f->mantissa - e), whole = mode == FE_TONEAREST ? nearbyint(q) : up ? ceil(q) : floor(q);
  bits = ((unsigned)(e - f->least) << f->mantissa) + (unsigned)whole; // a carry goes into the exponent
  bool over = e > 200 || bits >= f->infinity;
  if (over) bits = f->saturates || (mode != FE_TONEAREST && !up) ? f->infinity - 1 : f->infinity;
  return sign | bits;
}

SIMT_FN double simt_unpack(const simt_format *f, unsigned sign_bit, unsigned bits) {
  unsigned a = bits & (sign_bit - 1), field = a >> f->mantissa, m = a & ((1u << f->mantissa) - 1);
  double v = field ? ldexp(m + (1u << f->mantissa), f->least + (int)field - 1 - f->mantissa)
                   : ldexp(m, f->least - f->mantissa);
  if (a > f->infinity || (f->nan == f->infinity && a == f->nan))
    v = NAN;
  else if (a == f->infinity)
    v = INFINITY;
  return bits & sign_bit ? -v : v;
}

// a + b rounded to odd, from which rounding to fewer bits is right (Boldo and Melquiond).
SIMT_FN double simt_odd_sum(double a, double b) {
  volatile double s = a + b, bb = s - a, e = (a - (s - bb)) + (b - bb);
  if (!isfinite(s) || e == 0 || __double_as_longlong(s) & 1) return s;
  return nextafter(s, e > 0 ? INFINITY : -INFINITY);
}

typedef struct __half {
  uint16_t bits;
} __half;
typedef struct __attribute__((aligned(4))) __half2 {
  __half x, y;
} __half2;
typedef struct __nv_bfloat16 {
  uint16_t bits;
} __nv_bfloat16;
typedef struct __attribute__((aligned(4))) __nv_bfloat162 {
  __nv_bfloat16 x, y;
} __nv_bfloat162;

#define SIMT_VALUE(T, format, v) simt_unpack(&format, 0x8000, (v).bits)
#define SIMT_ROUND(T, format, v) ((T){(uint16_t)simt_pack(&format, 0x8000, v, FE_TONEAREST)})
SIMT_FN double simt_clamp01(double v) {
  return v > 0 ? (v < 1 ? v : 1) : 0;
}
SIMT_FN double simt_relu(double v) {
  return isnan(v) || v > 0 ? v : 0;
}

// An operation over one number and over pairs of them.
#define SIMT_NARROW1(T, T2, format, name, name2, expr)                                                                 \
  SIMT_FN T name(T p) {                                                                                                \
    double a = SIMT_VALUE(T, format, p);                                                                               \
    return SIMT_ROUND(T, format, expr);                                                                                \
  }                                                                                                                    \
  SIMT_FN T2 name2(T2 p) {                                                                                             \
    return (T2){name(p.x), name(p.y)};                                                                                 \
  }
#define SIMT_NARROW2(T, T2, format, name, name2, expr)                                                                 \
  SIMT_FN T name(T p, T q) {                                                                                           \
    double a = SIMT_VALUE(T, format, p), b = SIMT_VALUE(T, format, q);                                                 \
    return SIMT_ROUND(T, format, expr);                                                                                \
  }                                                                                                                    \
  SIMT_FN T2 name2(T2 p, T2 q) {                                                                                       \
    return (T2){name(p.x, q.x), name(p.y, q.y)};                                                                       \
  }
#define SIMT_NARROW3(T, T2, format, name, name2, expr)                                                                 \
  SIMT_FN T name(T p, T q, T r) {                                                                                      \
    double a = SIMT_VALUE(T, format, p), b = SIMT_VALUE(T, format, q), c = SIMT_VALUE(T, format, r);                   \
    return SIMT_ROUND(T, format, expr);                                                                                \
  }                                                                                                                    \
  SIMT_FN T2 name2(T2 p, T2 q, T2 r) {                                                                                 \
    return (T2){name(p.x, q.x, r.x), name(p.y, q.y, r.y)};                                                             \
  }

#define SIMT_NARROW(T, T2, format, overloaded)                                                                         \
  SIMT_NARROW1(T, T2, format, overloaded##_neg, overloaded##_neg2, -a)                                                 \
  SIMT_NARROW1(T, T2, format, overloaded##_abs, overloaded##_abs2, fabs(a))                                            \
  SIMT_NARROW2(T, T2, format, overloaded##_add, overloaded##_add2, simt_odd_sum(a, b))                                 \
  SIMT_NARROW2(T, T2, format, overloaded##_sub, overloaded##_sub2, simt_odd_sum(a, -b))                                \
  SIMT_NARROW2(T, T2, format, overloaded##_mul, overloaded##_mul2, a *b)                                               \
  SIMT_NARROW2(T, T2, format, overloaded##_min, overloaded##_min2, fmin(a, b))                                         \
  SIMT_NARROW2(T, T2, format, overloaded##_max, overloaded##_max2, fmax(a, b))                                         \
  SIMT_NARROW2(T, T2, format, overloaded##_gt, overloaded##_gt2, a > b)                                                \
  SIMT_NARROW2(T, T2, format, overloaded##_eq, overloaded##_eq2, a == b)                                               \
  SIMT_NARROW2(T, T2, format, overloaded##_add_sat, overloaded##_add_sat2, simt_clamp01(simt_odd_sum(a, b)))           \
  SIMT_NARROW3(T, T2, format, overloaded##_fma, overloaded##_fma2, simt_odd_sum(a *b, c))                              \
  SIMT_NARROW3(T, T2, format, overloaded##_fma_sat, overloaded##_fma_sat2, simt_clamp01(simt_odd_sum(a *b, c)))        \
  SIMT_NARROW3(T, T2, format, overloaded##_fma_relu, overloaded##_fma_relu2, simt_relu(simt_odd_sum(a *b, c)))
SIMT_NARROW(__half, __half2, simt_half, simt_h)
SIMT_NARROW(__nv_bfloat16, __nv_bfloat162, simt_bf16, simt_b)

#define SIMT_OVERLOAD(op, v)  _Generic((v), __half2 : simt_h_##op, __nv_bfloat162 : simt_b_##op)
#define __hneg2(a)            SIMT_OVERLOAD(neg2, a)(a)
#define __habs2(a)            SIMT_OVERLOAD(abs2, a)(a)
#define __hadd2(a, b)         SIMT_OVERLOAD(add2, a)(a, b)
#define __hsub2(a, b)         SIMT_OVERLOAD(sub2, a)(a, b)
#define __hmul2(a, b)         SIMT_OVERLOAD(mul2, a)(a, b)
#define __hmin2(a, b)         SIMT_OVERLOAD(min2, a)(a, b)
#define __hmax2(a, b)         SIMT_OVERLOAD(max2, a)(a, b)
#define __hgt2(a, b)          SIMT_OVERLOAD(gt2, a)(a, b)
#define __heq2(a, b)          SIMT_OVERLOAD(eq2, a)(a, b)
#define __hadd2_sat(a, b)     SIMT_OVERLOAD(add_sat2, a)(a, b)
#define __hfma2(a, b, c)      SIMT_OVERLOAD(fma2, a)(a, b, c)
#define __hfma2_sat(a, b, c)  SIMT_OVERLOAD(fma_sat2, a)(a, b, c)
#define __hfma2_relu(a, b, c) SIMT_OVERLOAD(fma_relu2, a)(a, b, c)

#define SIMT_CONVERT(T, format, to, suffix, mode)                                                                      \
  SIMT_FN T to##suffix(float v) {                                                                                      \
    return (T){(uint16_t)simt_pack(&format, 0x8000, v, mode)};                                                         \
  }
SIMT_CONVERT(__half, simt_half, __float2half, _rn, FE_TONEAREST)
SIMT_CONVERT(__half, simt_half, __float2half, _rz, FE_TOWARDZERO)
SIMT_CONVERT(__half, simt_half, __float2half, _rd, FE_DOWNWARD)
SIMT_CONVERT(__half, simt_half, __float2half, _ru, FE_UPWARD)
SIMT_CONVERT(__nv_bfloat16, simt_bf16, __float2bfloat16, _rn, FE_TONEAREST)
SIMT_CONVERT(__nv_bfloat16, simt_bf16, __float2bfloat16, _rz, FE_TOWARDZERO)
SIMT_FN float __half2float(__half v) {
  return (float)simt_unpack(&simt_half, 0x8000, v.bits);
}
SIMT_FN float __bfloat162float(__nv_bfloat16 v) {
  return (float)simt_unpack(&simt_bf16, 0x8000, v.bits);
}
SIMT_FN float2 __half22float2(__half2 v) {
  return (float2){__half2float(v.x), __half2float(v.y)};
}
SIMT_FN __half2 __floats2half2_rn(float x, float y) {
  return (__half2){__float2half_rn(x), __float2half_rn(y)};
}
SIMT_FN __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return (__nv_bfloat162){__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
SIMT_FN __half2 __lowhigh2highlow(__half2 v) {
  return (__half2){v.y, v.x};
}
SIMT_FN __half2 __half2half2(__half v) {
  return (__half2){v, v};
}
#define __low2half(v)  ((v).x)
#define __high2half(v) ((v).y)
SIMT_FN uint16_t __half_as_ushort(__half v) {
  return v.bits;
}
SIMT_FN __half __ushort_as_half(unsigned short v) {
  return (__half){v};
}
// Integers: nearest or towards zero as named, clamped, a NaN gives 0.
SIMT_FN int __half2int_rz(__half v) {
  return __float2int_rz(__half2float(v));
}
SIMT_FN short __half2short_rn(__half v) {
  double x = nearbyint(__half2float(v));
  return isnan(x) ? 0 : (short)SIMT_CLAMP(x, -32768, 32767);
}
SIMT_FN __half __int2half_rn(int v) {
  return SIMT_ROUND(__half, simt_half, (double)v);
}
SIMT_FN __half __uint2half_rz(unsigned v) {
  return (__half){(uint16_t)simt_pack(&simt_half, 0x8000, v, FE_TOWARDZERO)};
}

typedef enum simt_fp8_kind { __NV_E4M3, __NV_E5M2 } simt_fp8_kind;
enum { __NV_SATFINITE = 1 };
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
SIMT_FN unsigned char __nv_cvt_float_to_fp8(float v, int saturate, simt_fp8_kind kind) {
  (void)saturate;
  return (unsigned char)simt_pack(kind == __NV_E4M3 ? &simt_e4m3 : &simt_e5m2, 0x80, v, FE_TONEAREST);
}
SIMT_FN unsigned short __nv_cvt_float2_to_fp8x2(float2 v, int saturate, simt_fp8_kind kind) {
  return (unsigned short)(__nv_cvt_float_to_fp8(v.x, saturate, kind) | __nv_cvt_float_to_fp8(v.y, saturate, kind) << 8);
}
// The bits of the half.
SIMT_FN unsigned short simt_fp8_to_half(unsigned char v, simt_fp8_kind kind) {
  double x = simt_unpack(kind == __NV_E4M3 ? &simt_e4m3 : &simt_e5m2, 0x80, v);
  return (unsigned short)simt_pack(&simt_half, 0x8000, x, FE_TONEAREST);
}

#endif
