// Approximations: the function in double precision, whose error is far below what is rounded off, then rounded once.
#include "sim/isa/special.h"
#include "sim/lanes/functions.h"

// --- other values within the bounds --------------------------------------------------------------------------------

typedef struct bound {
  double ulps, relative, absolute;
} bound;
static const bound bounds[] = {
#define BOUND(function, ulps, relative, absolute, instructions, text) {ulps, relative, absolute},
    KL_ISA_BOUNDS(BOUND)
#undef BOUND
};

// A format of results: nearest numbers, and the unit in the last place of one of them.
typedef struct result_format {
  float (*nearest)(double v);
  int fraction, least; // the exponent of the least normal number
} result_format;
static float nearest_f32(double v) {
  return (float)v;
}
static float nearest_f16(double v) {
  return widen_f16(narrow_f16(odd_of(v)));
}
static float nearest_bf16(double v) {
  return widen_bf16(narrow_bf16(odd_of(v)));
}
static const result_format result_f32 = {nearest_f32, 23, -126}, result_f16 = {nearest_f16, 10, -14},
                           result_bf16 = {nearest_bf16, 7, -126};

static uint64_t mix(uint64_t z) { // the finaliser of splitmix64
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// Somewhere within the bound around v, one time in four at an end of it; r, the number nearest to v, where what is
// picked would be rounded out of the bound or to another sign.
static float picked(const result_format *f, const bound *limit, uint64_t key, double v, float r) {
  if (r == 0 || !(fabsf(r) < INFINITY)) return r;
  int e = ilogbf(r);
  double ulp = ldexp(1, (e < f->least ? f->least : e) - f->fraction);
  double most = fmax(fmax(limit->ulps * ulp, limit->relative * fabs(v)), limit->absolute);
  uint64_t random = mix(key);
  double part = (random & 3) == 0 ? (random & 4 ? 1 : -1) : (double)(int64_t)random * 0x1p-63;
  float to = f->nearest(v + part * most);
  bool within = fabs((double)to - v) <= most && (to < 0) == (r < 0) && to != 0 && fabsf(to) < INFINITY;
  return within ? to : r;
}

// --- functions -----------------------------------------------------------------------------------------------------

// For |b| above 2^126 the reciprocal is taken for 0.
static inline float by_reciprocal(float a, float b) {
  float size = __builtin_fabsf(b);
  return size > 0x1p126f && size < INFINITY ? a * (b < 0 ? -0.0f : 0.0f) : a / b;
}

// name, the f32 nearest to the function of a, or of a and b, the value it is nearest to, the bound around it
#define FUNCTIONS(X)                                                                                                   \
  X(div_full, a / b, (double)a / (double)b, KL_BOUND_DIV)                                                              \
  X(div_approx, by_reciprocal(a, b), (double)a / (double)b,                                                            \
    fabsf(b) >= 0x1p-126f && fabsf(b) <= 0x1p126f ? KL_BOUND_DIV : KL_BOUND_NONE)                                      \
  X(rcp, 1 / a, 1 / (double)a, KL_BOUND_RCP)                                                                           \
  X(sqrt, __builtin_sqrtf(a), __builtin_sqrt((double)a), KL_BOUND_SQRT)                                                \
  X(rsqrt, (float)rsqrt_of((double)a), rsqrt_of((double)a), KL_BOUND_RSQRT)                                            \
  X(sin, (float)sine_from(a, 0), sine_from(a, 0), sine_bound(a))                                                       \
  X(cos, (float)sine_from(a, 1), sine_from(a, 1), sine_bound(a))                                                       \
  X(lg2, (float)log2_of((double)a), log2_of((double)a), a > 0.5f && a < 2 ? KL_BOUND_LG2_NEAR : KL_BOUND_LG2)          \
  X(ex2, (float)exp2_of((double)a), exp2_of((double)a), KL_BOUND_EX2)                                                  \
  X(tanh, (float)tanh_of((double)a), tanh_of((double)a), KL_BOUND_TANH)

static inline double rsqrt_of(double v) {
  return 1 / __builtin_sqrt(v); // -0 gives -inf, a negative number NaN
}
static int sine_bound(float v) {
  double size = fabs((double)v);
  return size <= 0x1.921fb54442d18p+2   ? KL_BOUND_SINE
         : size <= 0x1.3a28c59d5433bp+8 ? KL_BOUND_SINE_FAR
                                        : KL_BOUND_NONE;
}

enum { MOST = 2 * KL_LANES };
typedef void function(f32 *r, const f32 *a, const f32 *b, int n);
typedef void perturbation(const result_format *f, uint64_t seed, int limit, f32 *r, const f32 *a, const f32 *b, int n);
#define FUNCTION(name, nearest, value, limit)                                                                          \
  static inline float name##_near(float a, float b) {                                                                  \
    (void)b;                                                                                                           \
    return (nearest);                                                                                                  \
  }                                                                                                                    \
  static void name##_all(f32 *r, const f32 *a, const f32 *b, int n) {                                                  \
    ALL(n, r[i] = name##_near(a[i], b[i]));                                                                            \
  }                                                                                                                    \
  static void name##_picked(const result_format *f, uint64_t seed, int given, f32 *r, const f32 *as, const f32 *bs,    \
                            int n) {                                                                                   \
    for (int i = 0; i < n; i++) {                                                                                      \
      float a = as[i], b = bs[i];                                                                                      \
      int k = given == KL_BOUND_NONE ? (limit) : given;                                                                \
      uint64_t operands = (uint64_t)bits32(a) << 32 | bits32(b);                                                       \
      if (k != KL_BOUND_NONE) r[i] = picked(f, &bounds[k], mix(seed + (uint64_t)k) ^ operands, (value), r[i]);         \
    }                                                                                                                  \
  }
FUNCTIONS(FUNCTION)

// Single numbers: operands and results flushed where the flags say so, NaNs of results canonical.
static inline float operand(uint32_t flags, float v) {
  return flags & KL_FTZ ? flush(v) : v;
}
static inline float result(uint32_t flags, float v) {
  float r = v == v ? v : float_of(NAN32);
  return flags & KL_FTZ ? flush(r) : r;
}

static __attribute__((noinline)) void perturbed(kl_lanes *x, const kl_sim_op *o, function *fn, perturbation *other,
                                                const f32 *a, const f32 *b) {
  f32 fa[KL_LANES], fb[KL_LANES], r[KL_LANES];
  ALL(KL_LANES, fa[i] = operand(o->flags, a[i]));
  ALL(KL_LANES, fb[i] = operand(o->flags, b[i]));
  fn(r, fa, fb, KL_LANES);
  other(&result_f32, x->perturb, KL_BOUND_NONE, r, fa, fb, KL_LANES);
  ALL(KL_LANES, r[i] = result(o->flags, r[i]));
  PUT(f32, on32, r);
}

// The second operand of a function of one is the first again.
#define SPECIAL(name, fn, second)                                                                                      \
  EXECUTOR(name) {                                                                                                     \
    const f32 *a = AT(f32, o->a), *b = AT(f32, o->second);                                                             \
    f32 *d = AT(f32, o->d);                                                                                            \
    const uint32_t flags = o->flags;                                                                                   \
    if (x->perturb)                                                                                                    \
      perturbed(x, o, fn##_all, fn##_picked, a, b);                                                                    \
    else                                                                                                               \
      LANES(on32, d, result(flags, fn##_near(operand(flags, a[i]), operand(flags, b[i]))));                            \
  }
SPECIAL(div_full_f32, div_full, b)
SPECIAL(div_approx_f32, div_approx, b)
SPECIAL(rcp_approx_f32, rcp, a)
SPECIAL(sqrt_approx_f32, sqrt, a)
SPECIAL(rsqrt_approx_f32, rsqrt, a)
SPECIAL(sin_f32, sin, a)
SPECIAL(cos_f32, cos, a)
SPECIAL(lg2_f32, lg2, a)
SPECIAL(tanh_f32, tanh, a)

// 2^a with fewer terms, where no result is near to the middle of two numbers, or subnormal and not flushed. Operands
// are clamped as integers: what is above 128 is so as a signed one, what is below -160 as one without a sign; NaNs come
// back at the end. A subnormal operand gives 1, flushed or not.
EXECUTOR(ex2_f32) {
  const u32 *a = AT(u32, o->a), most = bits32(128), least = bits32(-160), normal = bits32(-125.5f);
  const u32 none = bits32(o->flags & KL_FTZ ? -126 : -150), subnormals = o->flags & KL_FTZ ? 0 : none + 1 - normal;
  f32 v[KL_LANES], r[KL_LANES];
  u32 subnormal = 0;
  u64 middle = 0;
  if (x->perturb) {
    perturbed(x, o, ex2_all, ex2_picked, AT(f32, o->a), AT(f32, o->a));
    return;
  }
  KL_EACH for (int i = 0; i < KL_LANES; i++) {
    u32 u = (s32)a[i] > (s32)most ? most : a[i];
    u64 near;
    u = u > least ? least : u;
    subnormal |= (u32)(u - normal < subnormals);
    v[i] = float_of(u);
    r[i] = near_exp2(float_of(u), &near);
    middle |= near;
  }
  if (subnormal | middle) ex2_all(r, v, v, KL_LANES);
  u32 *d = AT(u32, o->d);
  LANES(on32, d, is_nan32(a[i]) ? NAN32 : a[i] > none ? 0 : bits32(r[i]));
}

// --- halves --------------------------------------------------------------------------------------------------------

// Values as single numbers that are rounded to odd, from which halves are rounded as from the values themselves.
#define ODD(name)                                                                                                      \
  static void name##_odd(f32 *r, const f32 *a, int n) {                                                                \
    ALL(n, r[i] = odd_of(name##_of((double)a[i])));                                                                    \
  }
ODD(tanh)
ODD(exp2)

#define HALVES(name, T, fn, odd, limit, n, U, on, ftz)                                                                 \
  EXECUTOR(name) {                                                                                                     \
    f32 a[n], r[n];                                                                                                    \
    union {                                                                                                            \
      u16 h[n];                                                                                                        \
      U w[KL_LANES];                                                                                                   \
    } d;                                                                                                               \
    widen_all_##T(a, AT(u16, o->a), n);                                                                                \
    if (ftz) ALL(n, a[i] = flush(a[i]));                                                                               \
    odd(r, a, n);                                                                                                      \
    narrow_all_##T(d.h, r, n);                                                                                         \
    if (x->perturb) {                                                                                                  \
      widen_all_##T(r, d.h, n);                                                                                        \
      fn##_picked(&result_##T, x->perturb, limit, r, a, a, n);                                                         \
      narrow_all_##T(d.h, r, n);                                                                                       \
    }                                                                                                                  \
    if (ftz) ALL(n, d.h[i] = d.h[i] & 0x7f80 ? d.h[i] : d.h[i] & 0x8000);                                              \
    PUT(U, on, d.w);                                                                                                   \
  }
#define BOTH_HALVES(name, T, fn, odd, limit, ftz)                                                                      \
  HALVES(name, T, fn, odd, limit, KL_LANES, u16, on16, ftz)                                                            \
  HALVES(name##x2, T, fn, odd, limit, MOST, u32, on32, ftz)
BOTH_HALVES(tanh_f16, f16, tanh, tanh_odd, KL_BOUND_TANH_F16, false)
BOTH_HALVES(tanh_bf16, bf16, tanh, tanh_odd, KL_BOUND_TANH_BF16, false)
BOTH_HALVES(ex2_f16, f16, ex2, exp2_odd, KL_BOUND_EX2_F16, false)
BOTH_HALVES(ex2_bf16, bf16, ex2, exp2_odd, KL_BOUND_EX2_BF16, true)

// --- double precision: only the upper 32 bits of operand and result count ------------------------------------------

// Rounded to the bits that are left; subnormal numbers are zeros.
static inline u64 upper(u64 u) {
  u64 exponent = u & 0x7ff0000000000000;
  return exponent ? u & 0xffffffff00000000 : u & 1ull << 63;
}
static inline double upper_of(u64 u) {
  double v = double_of(u); // a NaN may have nothing else above
  return v == v ? double_of(upper(u)) : v;
}
static inline u64 round_upper(double r) {
  u64 u = bits64(r);
  if (r != r) return 0x7fffffff00000000;
  return upper(u + 0x7fffffff + (u >> 32 & 1));
}
SLOW_UNARY(rcp_approx_f64, u64, u64, round_upper(1 / upper_of(a[i])))
SLOW_UNARY(rsqrt_approx_ftz_f64, u64, u64, round_upper(rsqrt_of(upper_of(a[i]))))

// One step of an iteration of third order, whose residual is exact but for its last addition.
static inline u64 rsqrt64(double v) {
  double y = rsqrt_of(v);
  if (!(y > 0 && y < INFINITY)) return y == y ? bits64(y) : nan_of(bits64(v), 0, 0);
  double h = v * y, rest = fma(-h, y, 1) - fma(v, y, -h) * y;
  return bits64(y + 0.5 * y * (rest * (1 + 0.75 * rest)));
}
SLOW_UNARY(rsqrt_approx_f64, u64, f64, rsqrt64(a[i]))

KL_TOPIC(special, KL_ISA_SPECIAL);
