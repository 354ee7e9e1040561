// Counting bits, finding them, and fields of them.
#include "sim/isa/bits.h"
#include "sim/lanes/each.h"

// Bits set, by halves: sums of 2, 4 and 8 bits, then of the bytes.
static inline u32 count32(u32 v) {
  v -= v >> 1 & 0x55555555;
  v = (v & 0x33333333) + (v >> 2 & 0x33333333);
  v = (v + (v >> 4)) & 0x0f0f0f0f;
  return v * 0x01010101 >> 24;
}
static inline u32 count64(u64 v) {
  return count32((u32)v) + count32((u32)(v >> 32));
}
// Ones from the highest set bit on downwards.
static inline u32 below32(u32 v) {
  v |= v >> 1;
  v |= v >> 2;
  v |= v >> 4;
  v |= v >> 8;
  return v | v >> 16;
}
static inline u32 zeros32(u32 v) {
  return 32 - count32(below32(v));
}
static inline u32 zeros64(u64 v) {
  u32 high = (u32)(v >> 32);
  return high ? zeros32(high) : 32 + zeros32((u32)v);
}

UNARY(popc_b32, on32, u32, u32, count32(a[i]))
UNARY(popc_b64, on32, u32, u64, count64(a[i]))
UNARY(clz_b32, on32, u32, u32, zeros32(a[i]))
UNARY(clz_b64, on32, u32, u64, zeros64(a[i]))

// The highest bit that differs from the sign, or how far it must move to the top; all ones if there is none.
static inline u32 find32(u32 v, u32 sign, bool amount) {
  u32 n = zeros32(v ^ sign);
  return n == 32 ? ~0u : amount ? n : 31 - n;
}
static inline u32 find64(u64 v, u64 sign, bool amount) {
  u32 n = zeros64(v ^ sign);
  return n == 64 ? ~0u : amount ? n : 63 - n;
}
#define AMOUNT (flags & KL_SHIFTAMT)
UNARY(bfind_u32, on32, u32, u32, find32(a[i], 0, AMOUNT))
UNARY(bfind_s32, on32, u32, u32, find32(a[i], a[i] >> 31 ? ~0u : 0, AMOUNT))
UNARY(bfind_u64, on32, u32, u64, find64(a[i], 0, AMOUNT))
UNARY(bfind_s64, on32, u32, u64, find64(a[i], a[i] >> 63 ? ~0ull : 0, AMOUNT))

// The n-th bit set in `mask`, counted from `base` upwards, or downwards where n is negative; the ISA asks for a base
// of at most 31 and leaves others open: there is no bit there.
static u32 nth_set(u32 mask, u32 base, s32 n) {
  if (base > 31) return ~0u;
  if (n == 0) return mask >> base & 1 ? base : ~0u;
  u32 left = n < 0 ? 0u - (u32)n : (u32)n;
  for (int at = (int)base; at >= 0 && at < 32; at += n < 0 ? -1 : 1) {
    if ((mask >> at & 1) && --left == 0) return (u32)at;
  }
  return ~0u;
}
SLOW_TERNARY(fns_b32, u32, u32, u32, s32, nth_set(a[i], b[i], c[i]))

static inline u32 reverse32(u32 v) {
  v = (v & 0x55555555) << 1 | (v >> 1 & 0x55555555);
  v = (v & 0x33333333) << 2 | (v >> 2 & 0x33333333);
  v = (v & 0x0f0f0f0f) << 4 | (v >> 4 & 0x0f0f0f0f);
  return v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24;
}
UNARY(brev_b32, on32, u32, u32, reverse32(a[i]))
UNARY(brev_b64, on64, u64, u64, (u64)reverse32((u32)a[i]) << 32 | reverse32((u32)(a[i] >> 32)))

// --- fields ---------------------------------------------------------------------------------------------------------

// Of positions and lengths the low 8 bits count; of fields of 64 bits all of them, as GPUs have it, where the ISA
// has 8.

// Moved down by the position (the sign fills up), then cut to the length; an empty field is 0.
#define FIELDS(U, S, bits)                                                                                             \
  static inline U ones_##U(u32 n) {                                                                                    \
    return n >= (bits) ? (U)-1 : ((U)1 << n) - 1;                                                                      \
  }                                                                                                                    \
  static inline U extract_##U(U a, u32 at, u32 n) {                                                                    \
    return at >= (bits) ? 0 : (a >> at) & ones_##U(n);                                                                 \
  }                                                                                                                    \
  static inline U extract_##S(U a, u32 at, u32 n) {                                                                    \
    U v = (U)((S)a >> (at >= (bits) ? (bits)-1 : at));                                                                 \
    u32 up = n >= (bits) ? 0 : (bits)-n;                                                                               \
    return n == 0 ? 0 : (U)((S)(v << up) >> up);                                                                       \
  }                                                                                                                    \
  static inline U insert_##U(U a, U into, u32 at, u32 n) {                                                             \
    if (at >= (bits)) return into;                                                                                     \
    U field = ones_##U(n) << at;                                                                                       \
    return (into & ~field) | (a << at & field);                                                                        \
  }
FIELDS(u32, s32, 32)
FIELDS(u64, s64, 64)
TERNARY(bfe_u32, on32, u32, u32, u32, u32, extract_u32(a[i], b[i] & 255, c[i] & 255))
TERNARY(bfe_s32, on32, u32, u32, u32, u32, extract_s32(a[i], b[i] & 255, c[i] & 255))
SLOW_TERNARY(bfe_u64, u64, u64, u32, u32, extract_u64(a[i], b[i], c[i]))
SLOW_TERNARY(bfe_s64, u64, u64, u32, u32, extract_s64(a[i], b[i], c[i]))

EXECUTOR(bfi_b32) {
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c), *f = AT(u32, o->f);
  u32 *d = AT(u32, o->d);
  LANES(on32, d, insert_u32(a[i], b[i], c[i] & 255, f[i] & 255));
}
EXECUTOR(bfi_b64) {
  const u64 *a = AT(u64, o->a), *b = AT(u64, o->b);
  const u32 *c = AT(u32, o->c), *f = AT(u32, o->f);
  u64 *d = AT(u64, o->d);
  SLOWLY(d, insert_u64(a[i], b[i], c[i], f[i]));
}

// The low n bits, where n wraps at 32 or everything counts from there on. No bits have no sign.
static inline u32 low_bits(u32 n, u32 flags) {
  return n >= 32 && !(flags & KL_WRAP) ? ~0u : (1u << (n & 31)) - 1;
}
static inline u32 low_signed(u32 a, u32 n, u32 flags) {
  u32 low = low_bits(n, flags), top = low ^ low >> 1; // the highest of them
  return (a & low) | (low != ~0u && (a & top) ? ~low : 0);
}
BINARY(szext_u32, on32, u32, u32, u32, a[i] & low_bits(b[i], flags))
BINARY(szext_s32, on32, u32, u32, u32, low_signed(a[i], b[i], flags))

// Ones from bit `at` on, `n` of them, as far as there are bits.
static inline u32 mask_of(u32 at, u32 n, u32 flags) {
  u32 from = at >= 32 && !(flags & KL_WRAP) ? 0 : ~0u << (at & 31);
  u32 end = (at & 31) + (n & 31);
  bool over = end >= 32 || (!(flags & KL_WRAP) && (at >= 32 || n >= 32));
  u32 beyond = over ? 0 : ~0u << (end & 31);
  return from & ~beyond;
}
BINARY(bmsk_b32, on32, u32, u32, u32, mask_of(a[i], b[i], flags))

KL_TOPIC(bits, KL_ISA_BITS);
