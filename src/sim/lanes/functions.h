// Functions that only approximations compute, of operands that are single numbers, in double precision: so near to the
// function's value that rounding to single precision gives the nearest number, of every operand. They are made of
// additions, multiplications, divisions and fused ones alone, and so have the same bits on every machine.
#ifndef KL_LANES_FUNCTIONS_H
#define KL_LANES_FUNCTIONS_H

#include "sim/lanes/floats.h"

// 2^f - 1 for |f| <= 1/2: the Taylor series; the first term left out is below 1e-19 of the sum.
static inline double exp2_less_1(double f) {
  double p = 0x1.314964d5878a9p-44;
  p = p * f + 0x1.816193166d0f9p-40;
  p = p * f + 0x1.c3bd650fc2986p-36;
  p = p * f + 0x1.e8cac7351bb25p-32;
  p = p * f + 0x1.e4cf5158b8ecap-28;
  p = p * f + 0x1.b5253d395e7c4p-24;
  p = p * f + 0x1.62c0223a5c824p-20;
  p = p * f + 0x1.ffcbfc588b0c7p-17;
  p = p * f + 0x1.430912f86c787p-13;
  p = p * f + 0x1.5d87fe78a6731p-10;
  p = p * f + 0x1.3b2ab6fba4e77p-7;
  p = p * f + 0x1.c6b08d704a0c0p-5;
  p = p * f + 0x1.ebfbdff82c58fp-3;
  p = p * f + 0x1.62e42fefa39efp-1;
  return p * f;
}

// v = n + f, n the nearest integer: added to this, v leaves n in the low bits, and 2^n is made of them.
#define ROUNDER 0x1.8p52
static inline double power_of(double shifted) {
  return double_of((bits64(shifted) << 52) + (1023ull << 52));
}

// 2^v, rounded to odd: of all single numbers two give values so near to the middle of two others that the last bit of
// double decides. Beyond the clamps single numbers are 0 or infinite; a NaN stays one.
static inline double exp2_of(double v) {
  double c = v > 130 ? 130 : v < -160 ? -160 : v, shifted = c + ROUNDER;
  double less = exp2_less_1(c - (shifted - ROUNDER)), sum = less + 1;
  return power_of(shifted) * odd64(sum, less - (sum - 1));
}

// a * b + c, rounded once or twice: for what has an error anyway.
static inline double about(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

static inline float about32(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// 2^v, of which *unsure is told 1 where it may not round to the f32 that 2^v itself rounds to. The polynomial is the
// one of degree 8 that is 1 at 0 and whose largest relative error for |f| <= 1/2 is least, 2^-39.75. Its four highest
// terms are below 2^-14 and added up in single precision, with errors below 2^-38: all of them are below 2^-37 of the
// value, and so below 2^16 units in the last place of p. What is cut off, 29 bits, may be that near to the middle. Only
// for -125.5 < v <= 128: fewer bits are kept of what is below the normal numbers, and above is no power that can be
// made.
static inline float near_exp2(float v, u64 *unsure) {
  float rounder = 0x1.8p23f, shifted = v + rounder, f = v - (shifted - rounder), high = 0x1.663484p-20f;
  high = about32(high, f, 0x1.00ee06p-16f);
  high = about32(high, f, 0x1.4306c2p-13f);
  high = about32(high, f, 0x1.5d872ap-10f);
  double g = (double)f, p = (double)high;
  p = about(p, g, 0x1.3b2ab7f3b1124p-7);
  p = about(p, g, 0x1.c6b08defc20b9p-5);
  p = about(p, g, 0x1.ebfbdff7c5a8ap-3);
  p = about(p, g, 0x1.62e42fef7a78dp-1);
  p = about(p, g, 1);
  u64 above = (bits64(p) - (0x10000000 - 0x10000)) & 0x1fffffff; // the middle is 0x10000000
  *unsure = (above - 0x20000) >> 63;
  return float_of(bits32((float)p) + (bits32(shifted) << 23));
}

// With t = e^2|v| - 1, t / (t + 2). Beyond the clamp the result is nearest to 1.
static inline double tanh_of(double v) {
  double a = __builtin_fabs(v) * 0x1.71547652b82fep+1, c = a > 60 ? 60 : a, shifted = c + ROUNDER;
  double scale = power_of(shifted), t = scale * exp2_less_1(c - (shifted - ROUNDER)) + (scale - 1);
  return __builtin_copysign(t / (t + 2), v);
}

// The binary logarithm: v = 2^e m with m between the roots of 1/2 and 2, and with f = (m - 1) / (m + 1) the series
// 2 / ln 2 * (f + f^3 / 3 + ...) for m; |f| < 0.172, and the first term left out is below 1e-20 of the sum.
static inline double log2_of(double v) {
  u64 u = bits64(v);
  s32 e = (s32)((u32)(u >> 32) - 0x3fe6a09e) >> 20;
  double m = double_of(u - ((u64)(u32)e << 52)), f = (m - 1) / (m + 1), s = f * f;
  double p = 0x1.d8be0817f5ffep-4;
  p = p * s + 0x1.00ecd7e080215p-3;
  p = p * s + 0x1.1964ec6fc9491p-3;
  p = p * s + 0x1.3703c1f4d0ffep-3;
  p = p * s + 0x1.5b9ac9b743f0dp-3;
  p = p * s + 0x1.89f3b1694cffep-3;
  p = p * s + 0x1.c68f568d31760p-3;
  p = p * s + 0x1.0c9a84994022dp-2;
  p = p * s + 0x1.484b13d7c02a9p-2;
  p = p * s + 0x1.a61762a7aded9p-2;
  p = p * s + 0x1.2776c50ef9bfep-1;
  p = p * s + 0x1.ec709dc3a03fdp-1;
  p = p * s + 0x1.71547652b82fep+1;
  double r = (double)e + f * p;
  r = v < INFINITY ? r : v; // and NaN
  return v > 0 ? r : v == 0 ? -(double)INFINITY : (double)NAN;
}

// --- sine and cosine -----------------------------------------------------------------------------------------------

__extension__ typedef unsigned __int128 bits128;
__extension__ typedef __int128 signed128;

// An angle in radians, as the sum of two doubles.
typedef struct angle {
  double high, low;
} angle;

// A number n of quarters of a turn, scaled by 2^126, in radians.
static inline angle radians(signed128 n) {
  const double high = 0x1.921fb54442d18p+0, low = 0x1.1a62633145c07p-54; // pi / 2
  double f = (double)n, rest = (double)(n - (signed128)f), r = f * high;
  return (angle){r * 0x1p-126, (__builtin_fma(f, high, -r) + (f * low + rest * high)) * 0x1p-126};
}

// v as quarters of a turn: their number, and the rest, of at most half a quarter. v = m 2^e times 2/pi is taken from
// the 128 bits of 2/pi that decide on the two bits before the point and on those after it; m has 24 bits, so that 102
// of these are right, and no single number but 0 comes nearer to a quarter than 2^-40.
static inline unsigned quarters(float v, angle *rest) {
  static const uint64_t two_over_pi[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
                                         0xb7246e3a424dd2e0};
  u32 u = bits32(v), m = (u & 0x7fffff) | 0x800000;
  int first = (int)(u >> 23 & 255) - 150 - 2; // bit of 2/pi, the first one after the point being 0
  if (__builtin_fabsf(v) <= 0x1.921fb4p-1f) {
    *rest = (angle){(double)v, 0};
    return 0;
  }
  bits128 window = (bits128)two_over_pi[0] << 64 | two_over_pi[1];
  if (first < 0) {
    window >>= -first;
  } else {
    const uint64_t *w = two_over_pi + first / 64;
    window = (bits128)w[0] << 64 | w[1];
    if (first % 64) window = window << first % 64 | w[2] >> (64 - first % 64);
  }
  bits128 product = window * m;
  unsigned quarter = (unsigned)((product + ((bits128)1 << 125)) >> 126);
  angle r = radians((signed128)(product - ((bits128)quarter << 126)));
  *rest = u >> 31 ? (angle){-r.high, -r.low} : r;
  return u >> 31 ? 0u - quarter : quarter;
}

// Taylor series for at most pi / 4. The last sum is rounded to odd, as one argument in four thousand millions wants.
static inline double sine(angle r) {
  double s = r.high * r.high, p = 0x1.952c77030ad4ap-49;
  p = p * s - 0x1.ae7f3e733b81fp-41;
  p = p * s + 0x1.6124613a86d09p-33;
  p = p * s - 0x1.ae64567f544e4p-26;
  p = p * s + 0x1.71de3a556c734p-19;
  p = p * s - 0x1.a01a01a01a01ap-13;
  p = p * s + 0x1.1111111111111p-7;
  p = p * s - 0x1.5555555555555p-3;
  double more = r.high * s * p + r.low * (1 - 0.5 * s), sum = r.high + more;
  return r.high == 0 ? r.high : odd64(sum, more - (sum - r.high)); // zero keeps its sign
}
static inline double cosine(angle r) {
  double s = r.high * r.high, p = -0x1.6827863b97d97p-53;
  p = p * s + 0x1.ae7f3e733b81fp-45;
  p = p * s - 0x1.93974a8c07c9dp-37;
  p = p * s + 0x1.1eed8eff8d898p-29;
  p = p * s - 0x1.27e4fb7789f5cp-22;
  p = p * s + 0x1.a01a01a01a01ap-16;
  p = p * s - 0x1.6c16c16c16c17p-10;
  p = p * s + 0x1.5555555555555p-5;
  p = p * s - 0.5;
  double more = s * p - r.high * r.low, sum = 1 + more;
  return odd64(sum, more - (sum - 1));
}

// sin(v + ahead * pi / 2).
static inline double sine_from(float v, unsigned ahead) {
  angle r;
  if (!(__builtin_fabsf(v) < INFINITY)) return (double)NAN;
  unsigned quarter = quarters(v, &r) + ahead;
  double value = quarter & 1 ? cosine(r) : sine(r);
  return quarter & 2 ? -value : value;
}

#endif
