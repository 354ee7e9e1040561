// Rounding of any number to any narrow binary format, one at a time, for what is rare. A number is m * 2^e with a sign.
#ifndef KL_LANES_ENCODE_H
#define KL_LANES_ENCODE_H

#include "sim/lanes/floats.h"

__extension__ typedef unsigned __int128 u128;

typedef struct number {
  bool negative, nan, infinite;
  u64 m;
  int e;
  // With stochastic rounding, so many random bits are added to the uppermost ones of what is cut off.
  int random_bits;
  uint32_t random;
} number;

static inline number number_of_u64(u64 v) {
  return (number){.m = v};
}
static inline number number_of_s64(s64 v) {
  return (number){.negative = v < 0, .m = v < 0 ? 0 - (u64)v : (u64)v};
}
static inline number number_of_f64(double v) {
  u64 u = bits64(v), m = u & 0x000fffffffffffff;
  int e = (int)(u >> 52 & 0x7ff);
  number r = {.negative = u >> 63, .nan = e == 0x7ff && m, .infinite = e == 0x7ff && !m};
  r.m = e ? m | 1ull << 52 : m;
  r.e = (e ? e : 1) - 1075;
  return r;
}

// A format: bits of the fraction, exponent of the least normal number, codes of the largest finite number, of infinity
// (that of the largest one, where there is none) and of NaN, and the sign's bit.
typedef struct format {
  int fraction, least;
  uint32_t largest, infinite, nan, sign;
} format;
static const format f16_format = {10, -14, 0x7bff, 0x7c00, NAN16, 0x8000};
static const format bf16_format = {7, -126, 0x7f7f, 0x7f80, NAN16, 0x8000};

// Whether what is cut off, of `bits` bits, adds one to the last place.
static inline bool rounds_up(uint32_t flags, bool negative, u64 kept, u64 rest, u64 half) {
  if (rest == 0) return false;
  if (flags & KL_AWAY) return rest >= half;
  switch (flags & KL_ROUND) {
  case KL_RN: return rest > half || (rest == half && (kept & 1));
  case KL_RZ: return false;
  case KL_RM: return negative;
  default: return !negative;
  }
}

// Whether a result beyond the largest number becomes that one.
static inline bool stays_finite(uint32_t flags, bool negative) {
  if (flags & KL_SATFINITE) return true;
  if (flags & KL_AWAY) return false;
  switch (flags & KL_ROUND) {
  case KL_RN: return false;
  case KL_RZ: return true;
  case KL_RM: return !negative;
  default: return negative;
  }
}

// m * 2^e cut off so that the last place of what is kept is worth 2^(e + cut); beyond 63 bits nothing is kept, and what
// is cut off is less than half.
static inline u64 round_at(const number *v, int cut, uint32_t flags) {
  u64 m = v->m;
  if (m == 0) return 0;
  if (cut <= 0) return m << -cut;
  if (v->random_bits) { // m has 53 bits: far below the random bits there is no carry into what is kept
    if (cut > 60 + v->random_bits) return 0;
    return (u64)((m + ((u128)v->random << cut >> v->random_bits)) >> cut);
  }
  if (cut > 64) return rounds_up(flags, v->negative, 0, m != 0, 2);
  u64 kept = cut == 64 ? 0 : m >> cut, rest = cut == 64 ? m : m & ((1ull << cut) - 1);
  return kept + rounds_up(flags, v->negative, kept, rest, 1ull << (cut - 1));
}

static inline uint32_t overflow(const format *f, uint32_t flags, bool negative) {
  return stays_finite(flags, negative) ? f->largest : f->infinite;
}

// The code of v by the flags: direction, .satfinite, .relu, .sat.
static inline uint32_t encode(const format *f, number v, uint32_t flags) {
  if (v.nan) return flags & KL_SAT ? 0 : f->nan;
  if (v.negative && (flags & (KL_RELU | KL_SAT))) return 0;
  uint32_t one = (uint32_t)(1 - f->least) << f->fraction, sign = v.negative ? f->sign : 0, r;
  int top = v.m ? v.e + 63 - __builtin_clzll(v.m) : f->least, least = top < f->least ? f->least : top;
  if (v.infinite) {
    r = flags & KL_SATFINITE ? f->largest : f->infinite;
  } else if (top > 128) { // above every format's range: its code would not fit
    r = overflow(f, flags, v.negative);
  } else {
    u64 code = round_at(&v, least - f->fraction - v.e, flags) + ((u64)(least - f->least) << f->fraction);
    r = code > f->largest ? overflow(f, flags, v.negative) : (uint32_t)code;
  }
  return (flags & KL_SAT && r > one ? one : r) | sign;
}

#endif
