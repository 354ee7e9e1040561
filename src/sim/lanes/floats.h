// What the files of floating point share: NaNs, flushing of subnormal numbers, directions of rounding, and halves as
// single numbers.
#ifndef KL_LANES_FLOATS_H
#define KL_LANES_FLOATS_H

#include "sim/lanes/each.h"
#include <fenv.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

// --- bits ----------------------------------------------------------------------------------------------------------

static inline u32 bits32(float v) {
  uint32_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}
static inline float float_of(uint32_t u) {
  float v;
  memcpy(&v, &u, sizeof v);
  return v;
}
static inline u64 bits64(double v) {
  uint64_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}
static inline double double_of(uint64_t u) {
  double v;
  memcpy(&v, &u, sizeof v);
  return v;
}

enum { NAN16 = 0x7fff, NAN32 = 0x7fffffff };
#define NAN64 0xfff8000000000000

static inline u32 is_nan32(u32 u) {
  return (u & 0x7fffffff) > 0x7f800000;
}

// Results as bits: every NaN of 32 bits is the canonical one.
static inline u32 canonical(float r) {
  return r == r ? bits32(r) : NAN32;
}
// Subnormal numbers become zeros of their sign.
static inline u32 flush32(u32 u) {
  return u & 0x7f800000 ? u : u & 0x80000000;
}
static inline float flush(float v) {
  return float_of(flush32(bits32(v)));
}
// .ftz of results: what lies below the least normal number before it is rounded becomes a zero, also where rounding
// would make it that number.
#define LEAST_NORMAL 0x1p-126
static inline u32 flush_tiny(u32 r, u32 tiny) {
  return tiny ? r & 0x80000000 : flush32(r);
}
static inline u32 is_tiny_product(float a, float b) {
  return __builtin_fabs((double)a * (double)b) < LEAST_NORMAL;
}
// A sum's double, and what it lacks.
static inline u32 is_tiny_fma(float a, float b, float c) {
  double p = (double)a * (double)b, s = p + (double)c, back = s - p, lacks = (p - (s - back)) + ((double)c - back);
  double size = __builtin_fabs(s), inward = s > 0 ? lacks : -lacks;
  return size < LEAST_NORMAL || (size <= LEAST_NORMAL && inward < 0);
}

// To [0, 1], NaN to 0 and no zero negative.
static inline float saturate(float v) {
  return v > 0 ? (v < 1 ? v : 1) : 0;
}
static inline double saturate64(double v) {
  return v > 0 ? (v < 1 ? v : 1) : 0;
}

// A NaN result of f64: the first operand that is one, quiet, or what an invalid operation gives.
static inline u64 nan_of(u64 a, u64 b, u64 c) {
  const uint64_t inf = 0x7ff0000000000000, quiet = 0x0008000000000000, size = ~(1ull << 63);
  u64 r = (c & size) > inf ? c | quiet : NAN64;
  r = (b & size) > inf ? b | quiet : r;
  return (a & size) > inf ? a | quiet : r;
}

// --- directions of rounding ----------------------------------------------------------------------------------------

// Between round_as and round_back operations round in the direction of the flags. The compiler knows nothing of
// directions; it moves no access of memory over these calls, so operands that are loaded and results that are stored
// between them are computed between them.
#ifdef __SSE2__
static inline unsigned round_as(uint32_t flags) {
  static const unsigned direction[] = {0x0000, 0x6000, 0x2000, 0x4000}; // of MXCSR
  unsigned before = _mm_getcsr();
  _mm_setcsr((before & ~0x6000u) | direction[flags & KL_ROUND]);
  __asm__ volatile("" ::: "memory");
  return before;
}
static inline void round_back(unsigned before) {
  __asm__ volatile("" ::: "memory");
  _mm_setcsr(before);
}
#else
static inline unsigned round_as(uint32_t flags) {
  static const int direction[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  int before = fegetround();
  fesetround(direction[flags & KL_ROUND]);
  __asm__ volatile("" ::: "memory");
  return (unsigned)before;
}
static inline void round_back(unsigned before) {
  __asm__ volatile("" ::: "memory");
  fesetround((int)before);
}
#endif

// --- rounding to odd -----------------------------------------------------------------------------------------------

// The last bit is set where anything was cut off, which no later rounding to fewer bits mistakes for a tie.

// One step towards the error, where the last bit is even; the error has the sign of what is missing.
static inline float odd32(float s, float error) {
  u32 u = bits32(s), step = (bits32(error) ^ u) >> 31 ? ~0u : 1;
  return (error < 0 || error > 0) && !(u & 1) ? float_of(u + step) : s;
}
static inline double odd64(double s, double error) {
  u64 u = bits64(s), step = (bits64(error) ^ u) >> 63 ? ~0ull : 1;
  return (error < 0 || error > 0) && !(u & 1) ? double_of(u + step) : s;
}

// A double as a single number.
static inline float odd_of(double v) {
  float r = (float)v;
  return odd32(r, (float)(v - (double)r > 0) - (float)(v - (double)r < 0));
}

// --- halves --------------------------------------------------------------------------------------------------------

// f16 as f32, exactly: its bits moved up, times 2^112, which also makes subnormal numbers normal ones.
static inline float widen_f16(u32 h) {
  u32 magnitude = (h & 0x7fff) << 13;
  float v = float_of(magnitude) * 0x1p112f;
  u32 u = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : bits32(v);
  return float_of(u | (h & 0x8000) << 16);
}
static inline float widen_bf16(u32 h) {
  return float_of(h << 16);
}

// To nearest even; NaN becomes 0x7fff. A normal result: half of the last place is added, a bit less for an even one,
// and the exponent moved. A subnormal one: 0.5 has the last place of them, so that the sum rounds as it should.
static inline u32 narrow_f16(float v) {
  u32 u = bits32(v), size = u & 0x7fffffff, sign = u >> 16 & 0x8000;
  u32 normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
  u32 small = bits32(float_of(size) + 0.5f) - 0x3f000000;
  u32 r = size >= 0x477ff000 ? 0x7c00 : size < 0x38800000 ? small : normal;
  return size > 0x7f800000 ? NAN16 : r | sign;
}
static inline u32 narrow_bf16(float v) {
  u32 u = bits32(v);
  return is_nan32(u) ? NAN16 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

// n halves, a multiple of 32, as single numbers and back.
static inline void widen_all_f16(f32 *r, const u16 *h, int n) {
#ifdef __F16C__
  for (int i = 0; i < n; i += 8)
    _mm256_storeu_ps((float *)r + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(h + i))));
#else
  ALL(n, r[i] = widen_f16(h[i]));
#endif
}
static inline void widen_all_bf16(f32 *r, const u16 *h, int n) {
  ALL(n, r[i] = widen_bf16(h[i]));
}
static inline void narrow_all_f16(u16 *r, const f32 *v, int n) {
#ifdef __F16C__
  for (int i = 0; i < n; i += 8) {
    __m256 w = _mm256_loadu_ps((const float *)v + i);
    __m128i h = _mm256_cvtps_ph(w, _MM_FROUND_TO_NEAREST_INT);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(w, w, _CMP_UNORD_Q));
    __m128i nans = _mm_packs_epi32(_mm256_castsi256_si128(nan), _mm256_extracti128_si256(nan, 1));
    h = _mm_blendv_epi8(h, _mm_set1_epi16(NAN16), nans);
    _mm_storeu_si128((__m128i *)(void *)(r + i), h);
  }
#else
  ALL(n, r[i] = (u16)narrow_f16(v[i]));
#endif
}
static inline void narrow_all_bf16(u16 *r, const f32 *v, int n) {
  ALL(n, r[i] = (u16)narrow_bf16(v[i]));
}

enum { INF_F16 = 0x7c00, INF_BF16 = 0x7f80 };

// Halves order as these integers do, -0 below +0. A NaN gives way to a number, or, with .NaN, to none.
static inline s16 order16(u16 h) {
  return (s16)(h & 0x8000 ? ~(h & 0x7fff) : h);
}
static inline u16 extremum(u16 a, u16 b, bool max, u16 inf, uint32_t flags) {
  u16 sign = (a ^ b) & 0x8000, size = flags & KL_XORSIGN_ABS ? 0x7fff : 0xffff;
  a &= size, b &= size;
  bool na = (a & 0x7fff) > inf, nb = (b & 0x7fff) > inf;
  u16 r = (order16(a) < order16(b)) != max ? a : b;
  r = nb ? a : r;
  r = na ? b : r;
  r = flags & KL_XORSIGN_ABS ? (r & 0x7fff) | sign : r;
  return (flags & KL_NAN ? na || nb : na && nb) ? NAN16 : r;
}
#endif
