// Approximations: the function in double precision, whose error is far below what is rounded off, then rounded once.
#include "sim/isa/special.h"
#include "sim/lanes/floats.h"

// 2^v: v = n + f with |f| <= 1/2, a Taylor series for 2^f (the first term left out is below 1e-19), n to the exponent.
// Beyond the clamps f32 is 0 or infinite.
static inline double exp2_of(double v) {
  v = v > 130 ? 130 : v;
  v = v < -160 ? -160 : v;
  double shifted = v + 0x1.8p52, f = v - (shifted - 0x1.8p52);
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
  p = p * f + 1;
  return p * double_of((bits64(shifted) << 52) + (1023ull << 52));
}

// A NaN stays one beside a clamped function.
static inline double exp2_or_nan(double v) {
  return v == v ? exp2_of(v) : v;
}
static inline double rsqrt_of(double v) {
  return 1 / __builtin_sqrt(v); // -0 gives -inf, a negative number NaN
}
static inline double quotient(float a, float b) {
  return (double)(a / b);
}
// For |b| above 2^126 the reciprocal is taken for 0.
static inline double quotient_by_rcp(float a, float b) {
  float size = fabsf(b);
  return (double)(size > 0x1p126f && size < INFINITY ? a * (b < 0 ? -0.0f : 0.0f) : a / b);
}

typedef void function32(f32 *r, const f32 *a, const f32 *b, int n);
#define FUNCTION(name, value)                                                                                          \
  static void name##_all(f32 *r, const f32 *a, const f32 *b, int n) {                                                  \
    ALL(n, r[i] = (float)(value));                                                                                     \
  }
FUNCTION(div_full, quotient(a[i], b[i]))
FUNCTION(div_approx, quotient_by_rcp(a[i], b[i]))
FUNCTION(rcp_approx, 1 / a[i])
FUNCTION(sqrt_approx, __builtin_sqrtf(a[i]))
FUNCTION(rsqrt_approx, rsqrt_of((double)a[i]))
FUNCTION(ex2, exp2_or_nan((double)a[i]))
FUNCTION(lg2, log2((double)a[i]))
FUNCTION(sin, sin((double)a[i]))
FUNCTION(cos, cos((double)a[i]))
FUNCTION(tanh, tanh((double)a[i]))

// Of n numbers, with operands and results flushed where the flags say so, and NaNs canonical.
static void compute(const kl_op *o, function32 *fn, f32 *r, const f32 *a, const f32 *b, int n) {
  f32 fa[KL_LANES], fb[KL_LANES];
  if (o->flags & KL_FTZ) {
    ALL(n, fa[i] = flush(a[i]));
    ALL(n, fb[i] = flush(b[i]));
    a = fa, b = fb;
  }
  fn(r, a, b, n);
  ALL(n, r[i] = r[i] == r[i] ? r[i] : float_of(NAN32));
  if (o->flags & KL_FTZ) ALL(n, r[i] = flush(r[i]));
}

// The second operand of a function of one is the first again.
#define SPECIAL(name, fn, b)                                                                                           \
  EXECUTOR(name) {                                                                                                     \
    f32 r[KL_LANES];                                                                                                   \
    compute(o, fn##_all, r, AT(f32, o->a), AT(f32, o->b), KL_LANES);                                                   \
    PUT(f32, on32, r);                                                                                                 \
  }
SPECIAL(div_full_f32, div_full, b)
SPECIAL(div_approx_f32, div_approx, b)
SPECIAL(rcp_approx_f32, rcp_approx, a)
SPECIAL(sqrt_approx_f32, sqrt_approx, a)
SPECIAL(rsqrt_approx_f32, rsqrt_approx, a)
SPECIAL(sin_f32, sin, a)
SPECIAL(cos_f32, cos, a)
SPECIAL(lg2_f32, lg2, a)
SPECIAL(ex2_f32, ex2, a)
SPECIAL(tanh_f32, tanh, a)

// --- halves
// -----------------------------------------------------------------------------------------------------------

// Single precision is wide enough in between: no value of these functions of a half lies so near to the middle of two.
#define HALVES(name, T, fn, n, U, on, ftz)                                                                             \
  EXECUTOR(name) {                                                                                                     \
    f32 a[n], r[n];                                                                                                    \
    union {                                                                                                            \
      u16 h[n];                                                                                                        \
      U w[KL_LANES];                                                                                                   \
    } d;                                                                                                               \
    widen_all_##T(a, AT(u16, o->a), n);                                                                                \
    if (ftz) ALL(n, a[i] = flush(a[i]));                                                                               \
    fn##_all(r, a, a, n);                                                                                              \
    narrow_all_##T(d.h, r, n);                                                                                         \
    if (ftz) ALL(n, d.h[i] = d.h[i] & 0x7f80 ? d.h[i] : d.h[i] & 0x8000);                                              \
    PUT(U, on, d.w);                                                                                                   \
  }
HALVES(tanh_f16, f16, tanh, KL_LANES, u16, on16, false)
HALVES(tanh_f16x2, f16, tanh, 2 * KL_LANES, u32, on32, false)
HALVES(tanh_bf16, bf16, tanh, KL_LANES, u16, on16, false)
HALVES(tanh_bf16x2, bf16, tanh, 2 * KL_LANES, u32, on32, false)
HALVES(ex2_f16, f16, ex2, KL_LANES, u16, on16, false)
HALVES(ex2_f16x2, f16, ex2, 2 * KL_LANES, u32, on32, false)
HALVES(ex2_bf16, bf16, ex2, KL_LANES, u16, on16, true)
HALVES(ex2_bf16x2, bf16, ex2, 2 * KL_LANES, u32, on32, true)

// --- double precision: only the upper 32 bits of operand and result count
// ------------------------------------------------

// Rounded to the bits that are left; subnormal numbers are zeros.
static inline u64 upper(u64 u) {
  u64 exponent = u & 0x7ff0000000000000;
  return exponent ? u & 0xffffffff00000000 : u & 1ull << 63;
}
static inline u64 round_upper(double r) {
  u64 u = bits64(r);
  if (r != r) return 0x7fffffff00000000;
  return upper(u + 0x7fffffff + (u >> 32 & 1));
}
SLOW_UNARY(rcp_approx_f64, u64, u64, round_upper(1 / double_of(upper(a[i]))))
SLOW_UNARY(rsqrt_approx_ftz_f64, u64, u64, round_upper(rsqrt_of(double_of(upper(a[i])))))

// One step of Newton's iteration, whose residual is exact but for its last addition.
static inline u64 rsqrt64(double v) {
  double y = rsqrt_of(v);
  if (!(y > 0 && y < INFINITY)) return y == y ? bits64(y) : nan_of(bits64(v), 0, 0);
  double h = v * y, rest = fma(-h, y, 1) - fma(v, y, -h) * y;
  return bits64(y + 0.5 * y * rest);
}
SLOW_UNARY(rsqrt_approx_f64, u64, f64, rsqrt64(a[i]))

KL_TOPIC(special, KL_ISA_SPECIAL);
