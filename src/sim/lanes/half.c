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

static __attribute__((noinline)) void compute(const kl_sim_op *o, bool bf16, kernel *k, u16 *r, const u16 *a,
                                              const u16 *b, const u16 *c, int n) {
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

// Sums and products of f16 eight at a time, as kernels have them: no flags, no NaN. False: there is one.
enum { KL_NOT_PLAIN = KL_FTZ | KL_SAT | KL_RELU | KL_OOB };
#ifdef __F16C__
static inline __m256 get_f16(const u16 *p) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
#define PLAIN_F16(name, op)                                                                                            \
  static inline bool name##_plain(u16 *r, const u16 *a, const u16 *b, int n) {                                         \
    __m256 nan = _mm256_setzero_ps();                                                                                  \
    for (int i = 0; i < n; i += 8) {                                                                                   \
      __m256 v = op(get_f16(a + i), get_f16(b + i));                                                                   \
      nan = _mm256_or_ps(nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));                                                      \
      _mm_storeu_si128((__m128i *)(void *)(r + i), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));                     \
    }                                                                                                                  \
    return _mm256_movemask_ps(nan) == 0;                                                                               \
  }
PLAIN_F16(add, _mm256_add_ps)
PLAIN_F16(sub, _mm256_sub_ps)
PLAIN_F16(mul, _mm256_mul_ps)
#define IS_DONE(k) (!(o->flags & KL_NOT_PLAIN) && k##_plain(d.h, AT(u16, o->a), AT(u16, o->b), N))
#else
#define IS_DONE(k) false
#endif

#define OPERATION(name, bf16, k, c) BOTH(name, compute(o, bf16, k##_all, d.h, AT(u16, o->a), AT(u16, o->b), c, N))
#define OPERATION_F16(name, k)                                                                                         \
  BOTH(name, if (!IS_DONE(k)) compute(o, false, k##_all, d.h, AT(u16, o->a), AT(u16, o->b), NULL, N))
OPERATION_F16(add_f16, add)
OPERATION_F16(sub_f16, sub)
OPERATION_F16(mul_f16, mul)
OPERATION(fma_f16, false, fma_f16, AT(u16, o->c))
OPERATION(add_bf16, true, add, NULL)
OPERATION(sub_bf16, true, sub, NULL)
OPERATION(mul_bf16, true, mul, NULL)
HALVES(fma_bf16, KL_LANES, u16, on16,
       compute(o, true, fma_bf16_all, d.h, AT(u16, o->a), AT(u16, o->b), AT(u16, o->c), N))

// Pairs of bf16, as kernels compute on them. A fused product and sum that is rounded to f32 and then to bf16 is right
// unless the first rounding gives what lies in the middle of two bf16, and is not exact. Products alone never are such:
// their 16 bits are exact in f32 down to 2^-134, and the largest one below, 65535 * 2^-150, is no product of two
// numbers of 8 bits; what remains is too small to reach 2^-134, the least middle, alone or with a sum's other bf16.
#ifdef __AVX2__
// Eight pairs as single numbers.
typedef struct eight_pairs {
  __m256 low, high;
} eight_pairs;

static inline __m256i load_pairs(const u32 *p) {
  return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline eight_pairs widen_pairs(const u32 *p) {
  __m256i v = load_pairs(p);
  return (eight_pairs){_mm256_castsi256_ps(_mm256_slli_epi32(v, 16)),
                       _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000)))};
}
// Words of the low numbers beside those of the high ones: 16 bits of each.
static inline __m256i beside(__m256i low, __m256i high) {
  return _mm256_blend_epi16(low, high, 0xaa);
}

// All ones where s is the sum of a product and c.
static inline __m256 is_sum(__m256 s, __m256 product, __m256 c) {
  return _mm256_and_ps(_mm256_cmp_ps(_mm256_sub_ps(s, product), c, _CMP_EQ_OQ),
                       _mm256_cmp_ps(_mm256_sub_ps(s, c), product, _CMP_EQ_OQ));
}

// What rounding twice does not settle, gathered over all pairs: any bit of theirs.
typedef struct unsettled {
  __m256i middle; // of sums that are not exact
  __m256 nan;
} unsettled;

static inline void fma_eight_pairs(u32 *r, const u32 *pa, const u32 *pb, const u32 *pc, bool adds, unsettled *left) {
  eight_pairs a = widen_pairs(pa), b = widen_pairs(pb), c = widen_pairs(pc);
  __m256 low = _mm256_fmadd_ps(a.low, b.low, c.low), high = _mm256_fmadd_ps(a.high, b.high, c.high);
  __m256i l = _mm256_castps_si256(low), h = _mm256_castps_si256(high), zero = _mm256_setzero_si256();
  __m256i kept = beside(_mm256_srli_epi32(l, 16), h), cut = beside(l, _mm256_slli_epi32(h, 16));
  // What is cut off, as a signed distance from the middle. Up goes what is above it, and the middle below odd numbers.
  __m256i distance = _mm256_xor_si256(cut, _mm256_set1_epi16((short)0x8000));
  __m256i odd = _mm256_and_si256(kept, _mm256_set1_epi16(1));
  __m256i up = _mm256_cmpgt_epi16(_mm256_adds_epi16(distance, odd), zero);
  _mm256_storeu_si256((__m256i *)(void *)r, _mm256_sub_epi16(kept, up));
  left->nan = _mm256_or_ps(left->nan, _mm256_cmp_ps(low, high, _CMP_UNORD_Q));
  if (!adds) return;
  __m256 sum_low = is_sum(low, _mm256_mul_ps(a.low, b.low), c.low);
  __m256 sum_high = is_sum(high, _mm256_mul_ps(a.high, b.high), c.high);
  __m256i is = beside(_mm256_castps_si256(sum_low), _mm256_castps_si256(sum_high));
  left->middle = _mm256_or_si256(left->middle, _mm256_andnot_si256(is, _mm256_cmpeq_epi16(distance, zero)));
}

static inline bool is_any(__m256i bits) {
  return !_mm256_testz_si256(bits, bits);
}
// Whether all are zeros, of any sign: fma is a product then.
static inline bool are_zeros(const u32 *p) {
  __m256i any = _mm256_setzero_si256();
  for (int i = 0; i < KL_LANES; i += 8) any = _mm256_or_si256(any, load_pairs(p + i));
  return _mm256_testz_si256(any, _mm256_set1_epi16(0x7fff));
}
static __attribute__((noinline)) void put_nans(u32 *r, const u32 *pa, const u32 *pb, const u32 *pc) {
  for (int i = 0; i < KL_LANES; i += 8) {
    eight_pairs a = widen_pairs(pa + i), b = widen_pairs(pb + i), c = widen_pairs(pc + i);
    __m256 low = _mm256_fmadd_ps(a.low, b.low, c.low), high = _mm256_fmadd_ps(a.high, b.high, c.high);
    __m256i is_nan = beside(_mm256_castps_si256(_mm256_cmp_ps(low, low, _CMP_UNORD_Q)),
                            _mm256_castps_si256(_mm256_cmp_ps(high, high, _CMP_UNORD_Q)));
    __m256i v = _mm256_blendv_epi8(load_pairs(r + i), _mm256_set1_epi16(NAN16), is_nan);
    _mm256_storeu_si256((__m256i *)(void *)(r + i), v);
  }
}
// r is none of the operands. Whether some result may be wrong. A function for each kind, as all constants of one have
// room in registers.
#define PAIRS(name, adds)                                                                                              \
  static __attribute__((noinline)) bool name(u32 *r, const u32 *a, const u32 *b, const u32 *c) {                       \
    unsettled left = {_mm256_setzero_si256(), _mm256_setzero_ps()};                                                    \
    _Pragma("GCC unroll 1") for (int i = 0; i < KL_LANES; i += 8)                                                      \
        fma_eight_pairs(r + i, a + i, b + i, c + i, adds, &left);                                                      \
    if (is_any(_mm256_castps_si256(left.nan))) put_nans(r, a, b, c);                                                   \
    return is_any(left.middle);                                                                                        \
  }
PAIRS(multiply_pairs, false)
PAIRS(multiply_add_pairs, true)
static bool fma_bf16_pairs(u32 *r, const u32 *a, const u32 *b, const u32 *c) {
  return (are_zeros(c) ? multiply_pairs : multiply_add_pairs)(r, a, b, c);
}
#else
static bool fma_bf16_pairs(u32 *r, const u32 *a, const u32 *b, const u32 *c) {
  (void)r, (void)a, (void)b, (void)c;
  return true;
}
#endif
__attribute__((noinline)) HALVES(fma_bf16x2_slowly, 2 * KL_LANES, u32, on32,
                                 compute(o, true, fma_bf16_all, d.h, AT(u16, o->a), AT(u16, o->b), AT(u16, o->c), N))
    EXECUTOR(fma_bf16x2) {
  u32 r[KL_LANES];
  if ((o->flags & KL_NOT_PLAIN) || fma_bf16_pairs(r, AT(u32, o->a), AT(u32, o->b), AT(u32, o->c)))
    fma_bf16x2_slowly(x, o);
  else
    PUT(u32, on32, r);
}

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
