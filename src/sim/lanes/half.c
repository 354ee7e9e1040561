// Half precision. Numbers are widened, computed in a type in which one more rounding does no harm, and narrowed; pairs
// are twice as many numbers.
//
// f32 has more than twice the bits of a half and two more, so that a sum or product that is rounded to it and then to
// the half is the half that rounding once gives. A fused product and sum is rounded to odd in between: the last bit is
// set where anything was cut off, which no later rounding to fewer bits mistakes for a tie.
#include "sim/isa/half.h"
#include "sim/lanes/floats.h"

enum { MOST = 2 * KL_LANES };

static inline u16 flush16(u16 h) {
  return h & 0x7c00 ? h : h & 0x8000;
}

// n operands, flushed where the flags say so.
static const u16 *take(const kl_sim_op *o, u16 *flushed, const u16 *h, int n) {
  if (!(o->flags & KL_FTZ)) return h;
  ALL(n, flushed[i] = flush16(h[i]));
  return flushed;
}

// --- sums and products ---------------------------------------------------------------------------------------------

// Products of halves are exact in f32, and so is the error of the sum, as long as nothing over- or underflows: of f16
// nothing does.
static inline float fma_odd(float a, float b, float c) {
  float p = a * b, s = p + c, back = s - p;
  return odd32(s, (p - (s - back)) + (c - back));
}
// Of bf16 nothing does far from both ends of the range. A product's 16 bits end above 2^-120, the summand's 8 above
// 2^-149.
static inline u32 is_near(float a, float b, float c) {
  const u32 low = 0x0d800000, high = 0x7e000000; // 2^-100, 2^125
  u32 p = bits32(a * b) & 0x7fffffff, has_a = (bits32(a) << 1) != 0, has_b = (bits32(b) << 1) != 0;
  u32 far = p - low >= high - low, large = (bits32(c) & 0x7fffffff) >= high;
  return (has_a & has_b & far) | large;
}
// Products of bf16 always have the range of double.
static inline float fma_odd_wide(float a, float b, float c) {
  double p = (double)a * (double)b, s = p + (double)c, back = s - p;
  s = odd64(s, (p - (s - back)) + ((double)c - back));
  return odd_of(s);
}

typedef void kernel(f32 *r, const f32 *a, const f32 *b, const f32 *c, int n);
#define KERNEL(name, value)                                                                                            \
  static void name##_all(f32 *r, const f32 *a, const f32 *b, const f32 *c, int n) {                                    \
    ALL(n, r[i] = (value));                                                                                            \
  }
KERNEL(add, a[i] + b[i])
KERNEL(sub, a[i] - b[i])
KERNEL(mul, a[i] * b[i])
KERNEL(fma_f16, fma_odd(a[i], b[i], c[i]))
KERNEL(fma_wide, fma_odd_wide(a[i], b[i], c[i]))
static void fma_bf16_all(f32 *r, const f32 *a, const f32 *b, const f32 *c, int n) {
  u32 near = 0;
  ALL(n, near |= is_near(a[i], b[i], c[i]));
  (near ? fma_wide_all : fma_f16_all)(r, a, b, c, n);
}

// Negative numbers become 0, of whichever sign; a NaN stays.
static inline float relu(float v) {
  return v <= 0 ? 0 : v;
}
static void limit(uint32_t flags, f32 *r, int n) {
  if (flags & KL_SAT) ALL(n, r[i] = saturate(r[i]));
  if (flags & KL_RELU) ALL(n, r[i] = relu(r[i]));
}

// The NaN that stands for an element outside of a tensor: as a or b of fma.oob it makes the result 0.
enum { OOB_NAN = 0x7fff };
static void out_of_bounds(u16 *r, const u16 *a, const u16 *b, int n) {
  ALL(n, r[i] = a[i] == OOB_NAN || b[i] == OOB_NAN ? 0 : r[i]);
}

static void compute(const kl_sim_op *o, bool bf16, kernel *k, u16 *r, const u16 *a, const u16 *b, const u16 *c, int n) {
  void (*widen)(f32 *, const u16 *, int) = bf16 ? widen_all_bf16 : widen_all_f16;
  u16 flushed[MOST];
  f32 fa[MOST], fb[MOST], fc[MOST], fr[MOST];
  widen(fa, take(o, flushed, a, n), n);
  widen(fb, take(o, flushed, b, n), n);
  if (c) widen(fc, take(o, flushed, c, n), n);
  k(fr, fa, fb, fc, n);
  if (o->flags & KL_FTZ)
    ALL(n, fr[i] = __builtin_fabsf(fr[i]) < 0x1p-14f ? float_of(bits32(fr[i]) & 0x80000000) : fr[i]);
  limit(o->flags, fr, n);
  (bf16 ? narrow_all_bf16 : narrow_all_f16)(r, fr, n);
  if (o->flags & KL_OOB) out_of_bounds(r, a, b, n);
}

// An executor that fills d.h with n halves, then writes those of the lanes that execute.
#define HALVES(name, n, U, on, statement)                                                                              \
  EXECUTOR(name) {                                                                                                     \
    union {                                                                                                            \
      u16 h[n];                                                                                                        \
      U w[KL_LANES];                                                                                                   \
    } d;                                                                                                               \
    enum { N = n };                                                                                                    \
    statement;                                                                                                         \
    PUT(U, on, d.w);                                                                                                   \
  }
#define BOTH(name, statement)                                                                                          \
  HALVES(name, KL_LANES, u16, on16, statement)                                                                         \
  HALVES(name##x2, 2 * KL_LANES, u32, on32, statement)

#define OPERATION(name, bf16, k, c) BOTH(name, compute(o, bf16, k##_all, d.h, AT(u16, o->a), AT(u16, o->b), c, N))
OPERATION(add_f16, false, add, NULL)
OPERATION(sub_f16, false, sub, NULL)
OPERATION(mul_f16, false, mul, NULL)
OPERATION(fma_f16, false, fma_f16, AT(u16, o->c))
OPERATION(add_bf16, true, add, NULL)
OPERATION(sub_bf16, true, sub, NULL)
OPERATION(mul_bf16, true, mul, NULL)
HALVES(fma_bf16, KL_LANES, u16, on16,
       compute(o, true, fma_bf16_all, d.h, AT(u16, o->a), AT(u16, o->b), AT(u16, o->c), N))

// Pairs of bf16, as kernels compute on them. A fused product and sum that is rounded to f32 and then to bf16 is right
// unless the first rounding gives what lies in the middle of two bf16, and is not exact.
#ifdef __FMA__
static inline float low(u32 pair) {
  return float_of(pair << 16);
}
static inline float high(u32 pair) {
  return float_of(pair & 0xffff0000);
}
// Not both the product, of 16 bits, and the sum are exact: s + error is their sum where nothing leaves the range.
static inline u32 is_inexact(float a, float b, float c) {
  float p = a * b, s = p + c, back = s - p, error = (p - (s - back)) + (c - back);
  u32 small = (u32)((bits32(p) & 0x7f800000) == 0) & (u32)(a != 0) & (u32)(b != 0);
  return small | (u32) !(error == 0);
}
static inline u32 in_middle(float s) {
  return (u32)(bits32(s) << 16 == 0x80000000);
}
static inline u32 to_even(float s) {
  return bits32(s) + 0x7fff + (bits32(s) >> 16 & 1);
}
// Some result may be wrong.
static bool fma_bf16_pairs(u32 *r, const u32 *a, const u32 *b, const u32 *c) {
  u32 middle = 0, inexact = 0;
  KL_EACH for (int i = 0; i < KL_LANES; i++) {
    float s = __builtin_fmaf(low(a[i]), low(b[i]), low(c[i])), t = __builtin_fmaf(high(a[i]), high(b[i]), high(c[i]));
    middle |= in_middle(s) | in_middle(t);
    r[i] = (s == s ? to_even(s) >> 16 : NAN16) | (t == t ? to_even(t) & 0xffff0000 : (u32)NAN16 << 16);
  }
  if (!middle) return false;
  KL_EACH for (int i = 0; i < KL_LANES; i++) {
    float s = __builtin_fmaf(low(a[i]), low(b[i]), low(c[i])), t = __builtin_fmaf(high(a[i]), high(b[i]), high(c[i]));
    inexact |= (in_middle(s) & is_inexact(low(a[i]), low(b[i]), low(c[i]))) |
               (in_middle(t) & is_inexact(high(a[i]), high(b[i]), high(c[i])));
  }
  return inexact;
}
#else
static bool fma_bf16_pairs(u32 *r, const u32 *a, const u32 *b, const u32 *c) {
  (void)r, (void)a, (void)b, (void)c;
  return true;
}
#endif
HALVES(fma_bf16x2, 2 * KL_LANES, u32, on32, {
  if ((o->flags & (KL_FTZ | KL_SAT | KL_RELU | KL_OOB)) ||
      fma_bf16_pairs(d.w, AT(u32, o->a), AT(u32, o->b), AT(u32, o->c)))
    compute(o, true, fma_bf16_all, d.h, AT(u16, o->a), AT(u16, o->b), AT(u16, o->c), N);
})

// --- signs ---------------------------------------------------------------------------------------------------------

static void change_sign(const kl_sim_op *o, u16 inf, u16 keep, u16 flip, u16 *r, const u16 *a, int n) {
  u16 flushed[MOST];
  a = take(o, flushed, a, n);
  ALL(n, r[i] = (a[i] & 0x7fff) > inf ? NAN16 : (u16)((a[i] & keep) ^ flip));
}
#define SIGNS(T, inf)                                                                                                  \
  BOTH(neg_##T, change_sign(o, inf, 0xffff, 0x8000, d.h, AT(u16, o->a), N))                                            \
  BOTH(abs_##T, change_sign(o, inf, 0x7fff, 0, d.h, AT(u16, o->a), N))
SIGNS(f16, INF_F16)
SIGNS(bf16, INF_BF16)

// --- least and greatest --------------------------------------------------------------------------------------------

static void extrema(const kl_sim_op *o, bool max, u16 inf, u16 *r, const u16 *a, const u16 *b, int n) {
  u16 fa[MOST], fb[MOST];
  uint32_t flags = o->flags;
  a = take(o, fa, a, n), b = take(o, fb, b, n);
  ALL(n, r[i] = extremum(a[i], b[i], max, inf, flags));
}
#define EXTREMA(name, max, inf) BOTH(name, extrema(o, max, inf, d.h, AT(u16, o->a), AT(u16, o->b), N))
EXTREMA(min_f16, false, INF_F16)
EXTREMA(max_f16, true, INF_F16)
EXTREMA(min_bf16, false, INF_BF16)
EXTREMA(max_bf16, true, INF_BF16)

KL_TOPIC(half, KL_ISA_HALF);
