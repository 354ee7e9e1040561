#include "ptx_isa.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

// --- registers ----------------------------------------------------------------------------------------------------

static float f32_of(uint64_t u) {
  uint32_t w = (uint32_t)u;
  float v;
  memcpy(&v, &w, sizeof v);
  return v;
}
static uint32_t bits32(float v) {
  uint32_t w;
  memcpy(&w, &v, sizeof w);
  return w;
}
static double f64_of(uint64_t u) {
  double v;
  memcpy(&v, &u, sizeof v);
  return v;
}
static uint64_t bits64(double v) {
  uint64_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}

// 9.7.3: single precision gives an unspecified NaN, which no operand's payload reaches; devices give 0x7fffffff.
// Payloads of f64 are supported, which says not whose: this is none of them.
static uint64_t result32(float v) {
  return isnan(v) ? 0x7fffffff : bits32(v);
}
static uint64_t result64(double v) {
  return isnan(v) ? 0xfff8000000000000 : bits64(v);
}

// --- 9.7.3 floating point, IEEE 754 with .rn, subnormal numbers kept
// --------------------------------------------------

#define F32(name, expression)                                                                                          \
  static uint64_t name##_f32(uint64_t a, uint64_t b, uint64_t c) {                                                     \
    float x = f32_of(a), y = f32_of(b), z = f32_of(c);                                                                 \
    (void)y, (void)z;                                                                                                  \
    return result32(expression);                                                                                       \
  }
#define F64(name, expression)                                                                                          \
  static uint64_t name##_f64(uint64_t a, uint64_t b, uint64_t c) {                                                     \
    double x = f64_of(a), y = f64_of(b), z = f64_of(c);                                                                \
    (void)y, (void)z;                                                                                                  \
    return result64(expression);                                                                                       \
  }
F32(add, x + y)
F64(add, x + y)
F32(sub, x - y)
F64(sub, x - y)
F32(mul, x *y)
F64(mul, x *y)
F32(div, x / y)
F64(div, x / y)
F32(fma, fmaf(x, y, z))
F64(fma, fma(x, y, z))
F32(sqrt, sqrtf(x))
F64(sqrt, sqrt(x))
// 9.7.3.9, 9.7.3.10: a NaN of f32 yields an unspecified NaN, of which the sign is as open as the rest; abs.f64 passes a
// NaN through unchanged, its sign included.
F32(neg, -x)
F64(neg, -x)
F32(abs, fabsf(x))
static uint64_t abs_f64(uint64_t a, uint64_t b, uint64_t c) {
  return isnan(f64_of(a)) ? a : bits64(fabs(f64_of(a)));
}
// 9.7.3.2: "copy sign bit of a into value of b".
static uint64_t copysign_f32(uint64_t a, uint64_t b, uint64_t c) {
  return (a & 0x80000000) | (b & 0x7fffffff);
}
static uint64_t copysign_f64(uint64_t a, uint64_t b, uint64_t c) {
  return (a & 1ull << 63) | (b & ~(1ull << 63));
}

// 9.7.3.11, 9.7.3.12, with .NaN: canonical NaN if any input is NaN; +0 is greater than -0.
static double extremum(double x, double y, bool max) {
  if (isnan(x) || isnan(y)) return (double)NAN;
  if (x == y) return (signbit(x) != 0) == max ? y : x;
  return (x > y) == max ? x : y;
}
// .rm: towards minus infinity. The sum of the exact product, rounded to odd in double, has one rounding left.
static double sum_to_odd(double a, double b);
static float fma_down(float x, float y, float z) {
  double s = sum_to_odd((double)x * y, z);
  float f = (float)s;
  return (double)f > s ? nextafterf(f, -INFINITY) : f;
}
F32(fma_down, fma_down(x, y, z))

F32(max_nan, (float)extremum(x, y, true))
F32(min_nan, (float)extremum(x, y, false))

// --- 9.7.9.21 cvt between floats, and to an integral value
// -------------------------------------------------------------

F32(rmi, floorf(x))
F64(rmi, floor(x))
F32(rpi, ceilf(x))
F64(rpi, ceil(x))
F32(rzi, truncf(x))
F64(rzi, trunc(x))
F32(rni, rintf(x))
F64(rni, rint(x))

static uint64_t cvt_f64_f32(uint64_t a, uint64_t b, uint64_t c) {
  return result64((double)f32_of(a));
}
static uint64_t cvt_f32_f64(uint64_t a, uint64_t b, uint64_t c) {
  return result32((float)f64_of(a));
}

// 16-bit formats by their fraction bits and bias. NaN becomes the canonical 0x7fff.
typedef struct half {
  int man, bias;
} half;
static const half f16 = {10, 15}, bf16 = {7, 127};

// To nearest even. The unit is that of the number's binade, or of the least normal one; a quotient that is rounded up
// to the next binade carries into the exponent by itself.
static uint16_t round16(half f, double v) {
  if (isnan(v)) return 0x7fff;
  uint16_t sign = signbit(v) ? 0x8000 : 0, inf = (uint16_t)((2 * f.bias + 1) << f.man);
  double a = fabs(v);
  if (isinf(a)) return sign | inf;
  if (a == 0) return sign;
  int e = ilogb(a);
  if (e < 1 - f.bias) e = 1 - f.bias;
  if (e > f.bias) return sign | inf;
  uint32_t q = (uint32_t)rint(ldexp(a, f.man - e));
  return (uint16_t)(sign | (((uint32_t)(e + f.bias - 1) << f.man) + q));
}

static double value16(half f, uint64_t u) {
  int e = (int)(u >> f.man) & (2 * f.bias + 1), man = (int)u & ((1 << f.man) - 1);
  double a = e == 2 * f.bias + 1 ? (man ? (double)NAN : (double)INFINITY)
             : e == 0            ? ldexp(man, 1 - f.bias - f.man)
                                 : ldexp(man + (1 << f.man), e - f.bias - f.man);
  return u & 0x8000 ? -a : a;
}

static uint64_t cvt_f16_f32(uint64_t a, uint64_t b, uint64_t c) {
  return round16(f16, (double)f32_of(a));
}
static uint64_t cvt_f32_f16(uint64_t a, uint64_t b, uint64_t c) {
  return result32((float)value16(f16, a));
}
// The first operand goes to the upper half.
static uint64_t cvt_f16x2_f32(uint64_t a, uint64_t b, uint64_t c) {
  return (uint32_t)round16(f16, (double)f32_of(a)) << 16 | round16(f16, (double)f32_of(b));
}
static uint64_t cvt_bf16x2_f32(uint64_t a, uint64_t b, uint64_t c) {
  return (uint32_t)round16(bf16, (double)f32_of(a)) << 16 | round16(bf16, (double)f32_of(b));
}

// --- 9.7.9.21 cvt from integers: rounded once
// --------------------------------------------------------------------------

#define FROM_INT(from, type)                                                                                           \
  static uint64_t cvt_f32_##from(uint64_t a, uint64_t b, uint64_t c) {                                                 \
    return bits32((float)(type)a);                                                                                     \
  }                                                                                                                    \
  static uint64_t cvt_f64_##from(uint64_t a, uint64_t b, uint64_t c) {                                                 \
    return bits64((double)(type)a);                                                                                    \
  }
FROM_INT(s32, int32_t)
FROM_INT(u32, uint32_t)
FROM_INT(s64, int64_t)
FROM_INT(u64, uint64_t)

// --- 9.7.9.21 cvt.rzi to integers
// ---------------------------------------------------------------------------------------

// "NaN input results in: zero if source is not .f64 and destination is not .s64, .u64; otherwise
// 1 << (BitWidth(dst) - 1)." Out of range: "the result is clamped to the destination range by default".
static uint64_t to_int(double v, bool from_f64, unsigned bits, bool is_signed) {
  uint64_t top = 1ull << (bits - 1), most = is_signed ? top - 1 : top + (top - 1);
  if (isnan(v)) return from_f64 || bits == 64 ? top : 0;
  v = trunc(v);
  if (is_signed && v < -ldexp(1, (int)bits - 1)) return top;
  if (!is_signed && v <= 0) return 0;
  if (v >= ldexp(1, (int)bits - is_signed)) return most;
  return is_signed ? (uint64_t)(int64_t)v : (uint64_t)v;
}
#define TO_INT(to, bits, is_signed)                                                                                    \
  static uint64_t cvt_##to##_f32(uint64_t a, uint64_t b, uint64_t c) {                                                 \
    return to_int((double)f32_of(a), false, bits, is_signed);                                                          \
  }                                                                                                                    \
  static uint64_t cvt_##to##_f64(uint64_t a, uint64_t b, uint64_t c) {                                                 \
    return to_int(f64_of(a), true, bits, is_signed);                                                                   \
  }
TO_INT(s32, 32, true)
TO_INT(u32, 32, false)
TO_INT(s64, 64, true)
TO_INT(u64, 64, false)

// --- 9.7.4 half precision, lane by lane; each result is rounded once, NaN is 0x7fff
// -------------------------------------

// a + b rounded to odd: where the nearest double is not the sum itself, one that says on which side of it the sum lies.
// (The sum's error is exact; doubles order as their patterns do.)
static double sum_to_odd(double a, double b) {
  double s = a + b, bb = s - a, error = (a - (s - bb)) + (b - bb);
  if (!(fabs(s) <= 0x1p1023) || error == 0 || bits64(s) & 1) return s;
  return nextafter(s, error > 0 ? (double)INFINITY : -(double)INFINITY);
}

// A product of two halves is exact in double.
static uint64_t fma16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return round16(f, sum_to_odd(value16(f, a) * value16(f, b), value16(f, c)));
}
static uint64_t add16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return round16(f, sum_to_odd(value16(f, a), value16(f, b)));
}
static uint64_t sub16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return round16(f, sum_to_odd(value16(f, a), -value16(f, b)));
}
static uint64_t mul16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return round16(f, value16(f, a) * value16(f, b));
}
static uint64_t max16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return round16(f, extremum(value16(f, a), value16(f, b), true));
}
static uint64_t min16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return round16(f, extremum(value16(f, a), value16(f, b), false));
}

// .xorsign.abs: of the magnitudes, with the exclusive or of the signs.
static uint64_t max_magnitude16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return round16(f, extremum(fabs(value16(f, a)), fabs(value16(f, b)), true)) | ((a ^ b) & 0x8000);
}

#define X2(name, format)                                                                                               \
  static uint64_t name##_##format##x2(uint64_t a, uint64_t b, uint64_t c) {                                            \
    uint64_t low = name##16(format, a & 0xffff, b & 0xffff, c & 0xffff);                                               \
    return low | name##16(format, a >> 16 & 0xffff, b >> 16 & 0xffff, c >> 16 & 0xffff) << 16;                         \
  }
X2(add, f16)
X2(sub, f16)
X2(mul, f16)
X2(fma, f16)
X2(max, f16)
X2(min, f16)
X2(max_magnitude, bf16)
X2(fma, bf16)
X2(max, bf16)
X2(min, bf16)

// 9.7.4.8: "the subnormal numbers are supported"; a NaN yields one.
static uint64_t abs16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return round16(f, fabs(value16(f, a)));
}
X2(abs, f16)
X2(abs, bf16)
// 9.7.7.1, with .u32: all bits of a half are set where the comparison, which is an ordered one, holds for it.
static uint64_t lt16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return value16(f, a) < value16(f, b) ? 0xffff : 0;
}
static uint64_t eq16(half f, uint64_t a, uint64_t b, uint64_t c) {
  return value16(f, a) == value16(f, b) ? 0xffff : 0;
}
X2(lt, f16)
X2(eq, f16)
X2(lt, bf16)
X2(eq, bf16)

// --- 9.7.1, 9.7.8 integers
// ----------------------------------------------------------------------------------------------

static uint64_t mul_wide_u32(uint64_t a, uint64_t b, uint64_t c) {
  return (uint64_t)(uint32_t)a * (uint32_t)b;
}

// --- 9.7.3.13, 9.7.3.16, 9.7.3.21: .approx.ftz.f32
// ----------------------------------------------------------------------

// .ftz: subnormal inputs and results become zero of their sign.
static float flush(float x) {
  return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static double exact(ptx_approx kind, float x) {
  switch (kind) {
  case PTX_EX2: return exp2((double)x);
  case PTX_RCP: return 1 / (double)x;
  case PTX_SQRT: return sqrt((double)x);
  case PTX_LG2: return log2((double)x);
  default: return 1 / sqrt((double)x); // -0 gives -inf
  }
}

static double ulp(double v) {
  int e;
  frexp(v, &e);
  return ldexp(1, (e < -125 ? -125 : e) - 24);
}

// ex2: 2 ulp from the correctly rounded result; the manual up to 7.x says 2^-22 relative instead. rcp: 1 ulp; 2^-23
// relative there. rsqrt: 2^-22.9 relative. The greater of the two each. sqrt: 2^-23 relative. lg2: 2^-22 absolute for x
// in (0.5, 2), and relative elsewhere.
static double allowance(ptx_approx kind, float x, double v) {
  double a = fabs(v);
  switch (kind) {
  case PTX_EX2: return fmax(2.5 * ulp(v), a * 0x1p-22);
  case PTX_RCP: return fmax(ulp(v), a * 0x1p-23);
  case PTX_SQRT: return a * 0x1p-23;
  case PTX_LG2: return x > 0.5f && x < 2 ? 0x1p-22 : fmax(ulp(v), a * 0x1p-22);
  default: return a * exp2(-22.9);
  }
}

float ptx_approx_value(ptx_approx kind, float x, unsigned pick) {
  double v = exact(kind, x = flush(x));
  bool near_zero = kind == PTX_LG2 && v == 0;
  if (isnan(v) || isinf(v) || (v == 0 && !near_zero)) return (float)v;
  double off = allowance(kind, x, v), from = v - off, to = v + off;
  bool up = pick < PTX_PICKS / 2;
  float f = (float)(up ? from : to), end = up ? INFINITY : -INFINITY;
  if (up ? (double)f < from : (double)f > to) f = nextafterf(f, end);
  for (unsigned i = up ? pick : PTX_PICKS - 1 - pick; i > 0; i--) {
    float next = nextafterf(f, end);
    if (up ? (double)next > to : (double)next < from) break;
    f = next;
  }
  return kind == PTX_LG2 ? flush(f) : copysignf(flush(f), (float)v); // no error of the others changes the sign
}

static uint64_t approx(ptx_approx kind, uint64_t a) {
  return result32(ptx_approx_value(kind, f32_of(a), ((uint32_t)a * 2654435761u >> 16) % PTX_PICKS));
}
static uint64_t ex2(uint64_t a, uint64_t b, uint64_t c) {
  return approx(PTX_EX2, a);
}
static uint64_t rcp(uint64_t a, uint64_t b, uint64_t c) {
  return approx(PTX_RCP, a);
}
static uint64_t rsqrt(uint64_t a, uint64_t b, uint64_t c) {
  return approx(PTX_RSQRT, a);
}
static uint64_t sqrt_approx(uint64_t a, uint64_t b, uint64_t c) {
  return approx(PTX_SQRT, a);
}
static uint64_t lg2(uint64_t a, uint64_t b, uint64_t c) {
  return approx(PTX_LG2, a);
}

// --- the table
// ----------------------------------------------------------------------------------------------------------

static const struct {
  const char *mnemonic;
  ptx_fn fn;
} instructions[] = {
    {"add.rn.f32", add_f32},
    {"add.rn.f64", add_f64},
    {"sub.rn.f32", sub_f32},
    {"sub.rn.f64", sub_f64},
    {"mul.rn.f32", mul_f32},
    {"mul.rn.f64", mul_f64},
    {"div.rn.f32", div_f32},
    {"div.rn.f64", div_f64},
    {"fma.rn.f32", fma_f32},
    {"fma.rn.f64", fma_f64},
    {"sqrt.rn.f32", sqrt_f32},
    {"sqrt.rn.f64", sqrt_f64},
    {"neg.f32", neg_f32},
    {"neg.f64", neg_f64},
    {"abs.f32", abs_f32},
    {"abs.f64", abs_f64},
    {"copysign.f32", copysign_f32},
    {"copysign.f64", copysign_f64},
    {"max.NaN.f32", max_nan_f32},
    {"min.NaN.f32", min_nan_f32},
    {"cvt.rmi.f32.f32", rmi_f32},
    {"cvt.rmi.f64.f64", rmi_f64},
    {"cvt.rpi.f32.f32", rpi_f32},
    {"cvt.rpi.f64.f64", rpi_f64},
    {"cvt.rzi.f32.f32", rzi_f32},
    {"cvt.rzi.f64.f64", rzi_f64},
    {"cvt.rni.f32.f32", rni_f32},
    {"cvt.rni.f64.f64", rni_f64},
    {"cvt.f64.f32", cvt_f64_f32},
    {"cvt.rn.f32.f64", cvt_f32_f64},
    {"cvt.rn.f16.f32", cvt_f16_f32},
    {"cvt.f32.f16", cvt_f32_f16},
    {"cvt.rn.f16x2.f32", cvt_f16x2_f32},
    {"cvt.rn.bf16x2.f32", cvt_bf16x2_f32},
    {"cvt.rn.f32.s32", cvt_f32_s32},
    {"cvt.rn.f32.u32", cvt_f32_u32},
    {"cvt.rn.f32.s64", cvt_f32_s64},
    {"cvt.rn.f32.u64", cvt_f32_u64},
    {"cvt.rn.f64.s32", cvt_f64_s32},
    {"cvt.rn.f64.u32", cvt_f64_u32},
    {"cvt.rn.f64.s64", cvt_f64_s64},
    {"cvt.rn.f64.u64", cvt_f64_u64},
    {"cvt.rzi.s32.f32", cvt_s32_f32},
    {"cvt.rzi.u32.f32", cvt_u32_f32},
    {"cvt.rzi.s64.f32", cvt_s64_f32},
    {"cvt.rzi.u64.f32", cvt_u64_f32},
    {"cvt.rzi.s32.f64", cvt_s32_f64},
    {"cvt.rzi.u32.f64", cvt_u32_f64},
    {"cvt.rzi.s64.f64", cvt_s64_f64},
    {"cvt.rzi.u64.f64", cvt_u64_f64},
    {"add.rn.f16x2", add_f16x2},
    {"sub.rn.f16x2", sub_f16x2},
    {"mul.rn.f16x2", mul_f16x2},
    {"fma.rn.f16x2", fma_f16x2},
    {"max.NaN.f16x2", max_f16x2},
    {"min.NaN.f16x2", min_f16x2},
    {"max.NaN.xorsign.abs.bf16x2", max_magnitude_bf16x2},
    {"fma.rn.bf16x2", fma_bf16x2},
    {"max.NaN.bf16x2", max_bf16x2},
    {"min.NaN.bf16x2", min_bf16x2},
    {"mul.wide.u32", mul_wide_u32},
    {"ex2.approx.ftz.f32", ex2},
    {"rcp.approx.ftz.f32", rcp},
    {"rsqrt.approx.ftz.f32", rsqrt},
    {"sqrt.approx.ftz.f32", sqrt_approx},
    {"lg2.approx.ftz.f32", lg2},
    {"fma.rm.f32", fma_down_f32},
    {"abs.f16x2", abs_f16x2},
    {"abs.bf16x2", abs_bf16x2},
    {"set.lt.u32.f16x2", lt_f16x2},
    {"set.eq.u32.f16x2", eq_f16x2},
    {"set.lt.u32.bf16x2", lt_bf16x2},
    {"set.eq.u32.bf16x2", eq_bf16x2},
};

ptx_fn ptx_instruction(const char *mnemonic) {
  for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
    if (strcmp(instructions[i].mnemonic, mnemonic) == 0) return instructions[i].fn;
  }
  return NULL;
}
