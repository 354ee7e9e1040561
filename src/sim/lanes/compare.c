// Comparisons and selections. A comparison of all lanes is a word of bits; what is made of it differs.
#include "sim/isa/compare.h"
#include "sim/lanes/floats.h"
#include "sim/lanes/masks.h"

// Fills m with all ones or 0.
#define INTO(condition) ALL(n, m[i] = (M) - (condition))

// The comparison of n pairs of numbers.
#define INTEGERS(T, MASK)                                                                                              \
  static inline void against_##T(uint32_t kind, const T *a, const T *b, MASK *m, int n) {                              \
    typedef MASK M;                                                                                                    \
    switch (kind) {                                                                                                    \
    case KL_CMP_EQ: INTO(a[i] == b[i]); break;                                                                         \
    case KL_CMP_NE: INTO(a[i] != b[i]); break;                                                                         \
    case KL_CMP_LT: INTO(a[i] < b[i]); break;                                                                          \
    case KL_CMP_LE: INTO(a[i] <= b[i]); break;                                                                         \
    case KL_CMP_GT: INTO(a[i] > b[i]); break;                                                                          \
    default: INTO(a[i] >= b[i]); break;                                                                                \
    }                                                                                                                  \
  }
INTEGERS(s16, s16)
INTEGERS(u16, s16)
INTEGERS(s32, s32)
INTEGERS(u32, s32)
INTEGERS(s64, s64)
INTEGERS(u64, s64)

// With a NaN none of these holds but .ne; those with u are the negation of the opposite.
#define FLOATS(T, MASK)                                                                                                \
  static inline void against_##T(uint32_t kind, const T *a, const T *b, MASK *m, int n) {                              \
    typedef MASK M;                                                                                                    \
    switch (kind) {                                                                                                    \
    case KL_CMP_EQ: INTO(a[i] == b[i]); break;                                                                         \
    case KL_CMP_NE: INTO(a[i]<b[i] || a[i]> b[i]); break;                                                              \
    case KL_CMP_LT: INTO(a[i] < b[i]); break;                                                                          \
    case KL_CMP_LE: INTO(a[i] <= b[i]); break;                                                                         \
    case KL_CMP_GT: INTO(a[i] > b[i]); break;                                                                          \
    case KL_CMP_GE: INTO(a[i] >= b[i]); break;                                                                         \
    case KL_CMP_EQU: INTO(!(a[i] < b[i] || a[i] > b[i])); break;                                                       \
    case KL_CMP_NEU: INTO(a[i] != b[i]); break;                                                                        \
    case KL_CMP_LTU: INTO(!(a[i] >= b[i])); break;                                                                     \
    case KL_CMP_LEU: INTO(!(a[i] > b[i])); break;                                                                      \
    case KL_CMP_GTU: INTO(!(a[i] <= b[i])); break;                                                                     \
    case KL_CMP_GEU: INTO(!(a[i] < b[i])); break;                                                                      \
    case KL_CMP_NUM: INTO(a[i] == a[i] && b[i] == b[i]); break;                                                        \
    default: INTO(a[i] != a[i] || b[i] != b[i]); break;                                                                \
    }                                                                                                                  \
  }
FLOATS(f32, s32)
FLOATS(f64, s64)

// The bits of a comparison, one of each lane.
#define COMPARISON(T, MASK, bits)                                                                                      \
  static uint32_t compare_##T(const kl_lanes *x, const kl_sim_op *o) {                                                 \
    MASK m[KL_LANES];                                                                                                  \
    against_##T(KL_COMPARE_OF(o->flags), AT(T, o->a), AT(T, o->b), m, KL_LANES);                                       \
    return bits_of_##bits(m);                                                                                          \
  }
COMPARISON(s16, s16, 16)
COMPARISON(u16, s16, 16)
COMPARISON(s32, s32, 32)
COMPARISON(u32, s32, 32)
COMPARISON(s64, s64, 64)
COMPARISON(u64, s64, 64)
COMPARISON(f64, s64, 64)

static uint32_t compare_f32(const kl_lanes *x, const kl_sim_op *o) {
  const f32 *a = AT(f32, o->a), *b = AT(f32, o->b);
  f32 fa[KL_LANES], fb[KL_LANES];
  s32 m[KL_LANES];
  if (o->flags & KL_FTZ) {
    ALL(KL_LANES, fa[i] = flush(a[i]));
    ALL(KL_LANES, fb[i] = flush(b[i]));
    a = fa, b = fb;
  }
  against_f32(KL_COMPARE_OF(o->flags), a, b, m, KL_LANES);
  return bits_of_32(m);
}

static inline u16 flush16(u16 h) {
  return h & 0x7c00 ? h : h & 0x8000;
}

// Halves are compared as single numbers; n of them. Of bf16 .ftz does not exist.
static void halves(const kl_lanes *x, const kl_sim_op *o, bool bf16, s32 *m, int n) {
  const u16 *a = AT(u16, o->a), *b = AT(u16, o->b);
  u16 ha[2 * KL_LANES], hb[2 * KL_LANES];
  f32 fa[2 * KL_LANES], fb[2 * KL_LANES];
  if (o->flags & KL_FTZ) {
    ALL(n, ha[i] = flush16(a[i]));
    ALL(n, hb[i] = flush16(b[i]));
    a = ha, b = hb;
  }
  (bf16 ? widen_all_bf16 : widen_all_f16)(fa, a, n);
  (bf16 ? widen_all_bf16 : widen_all_f16)(fb, b, n);
  against_f32(KL_COMPARE_OF(o->flags), fa, fb, m, n);
}
static uint32_t compare_f16(const kl_lanes *x, const kl_sim_op *o) {
  s32 m[KL_LANES];
  halves(x, o, false, m, KL_LANES);
  return bits_of_32(m);
}
static uint32_t compare_bf16(const kl_lanes *x, const kl_sim_op *o) {
  s32 m[KL_LANES];
  halves(x, o, true, m, KL_LANES);
  return bits_of_32(m);
}

// The lower and the upper halves of all lanes.
typedef struct pair_masks {
  s32 low[KL_LANES], high[KL_LANES];
} pair_masks;
static void compare_bf16x2(const kl_lanes *x, const kl_sim_op *o, pair_masks *m) {
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b);
  f32 fa[KL_LANES], fb[KL_LANES];
  ALL(KL_LANES, fa[i] = float_of(a[i] << 16));
  ALL(KL_LANES, fb[i] = float_of(b[i] << 16));
  against_f32(KL_COMPARE_OF(o->flags), fa, fb, m->low, KL_LANES);
  ALL(KL_LANES, fa[i] = float_of(a[i] & 0xffff0000));
  ALL(KL_LANES, fb[i] = float_of(b[i] & 0xffff0000));
  against_f32(KL_COMPARE_OF(o->flags), fa, fb, m->high, KL_LANES);
}
static void compare_f16x2(const kl_lanes *x, const kl_sim_op *o, pair_masks *m) {
  s32 both[2 * KL_LANES];
  halves(x, o, false, both, 2 * KL_LANES);
  ALL(KL_LANES, m->low[i] = both[2 * i]);
  ALL(KL_LANES, m->high[i] = both[2 * i + 1]);
}

// With the predicate c, where there is one.
static inline uint32_t combine(const kl_lanes *x, const kl_sim_op *o, uint32_t t) {
  uint32_t kind = KL_COMBINE_OF(o->flags);
  if (kind == 0) return t;
  uint32_t c = PRED(o->c) ^ (o->flags & KL_NOT_C ? ~0u : 0);
  return kind == KL_AND ? t & c : kind == KL_OR ? t | c : t ^ c;
}

// setp p|q: q is made of the opposite. Of pairs, p is the lower half's and q the upper one's.
#define SETP(T)                                                                                                        \
  EXECUTOR(setp_##T) {                                                                                                 \
    uint32_t t = compare_##T(x, o);                                                                                    \
    uint32_t p = combine(x, o, t), q = combine(x, o, ~t);                                                              \
    put_pred(x, o->d, p);                                                                                              \
    put_pred(x, o->e, q);                                                                                              \
  }
#define SETP_PAIRS(T)                                                                                                  \
  EXECUTOR(setp_##T) {                                                                                                 \
    pair_masks t;                                                                                                      \
    compare_##T(x, o, &t);                                                                                             \
    uint32_t p = combine(x, o, bits_of_32(t.low)), q = combine(x, o, bits_of_32(t.high));                              \
    put_pred(x, o->d, p);                                                                                              \
    put_pred(x, o->e, q);                                                                                              \
  }

// Values of 32 or 16 bits by the bits of t.
static void put32(kl_lanes *x, const kl_sim_op *o, uint32_t t, uint32_t one) {
  u32 *d = AT(u32, o->d);
  LANES(on32, d, t & kl_bit[i] ? one : 0);
}
static void put16(kl_lanes *x, const kl_sim_op *o, uint32_t t, uint16_t one) {
  u16 *d = AT(u16, o->d);
  LANES(on16, d, t & kl_bit[i] ? one : 0);
}

enum { ONE_F16 = 0x3c00, ONE_BF16 = 0x3f80, ONE_F32 = 0x3f800000 };
#define SET(name, T, put, one)                                                                                         \
  EXECUTOR(name) {                                                                                                     \
    put(x, o, combine(x, o, compare_##T(x, o)), one);                                                                  \
  }
#define SETS(T)                                                                                                        \
  SET(set_mask_##T, T, put32, ~0u)                                                                                     \
  SET(set_f32_##T, T, put32, ONE_F32)                                                                                  \
  SET(set_f16_##T, T, put16, ONE_F16)                                                                                  \
  SET(set_bf16_##T, T, put16, ONE_BF16)
#define COMPARES(T)                                                                                                    \
  SETP(T)                                                                                                              \
  SETS(T)
COMPARES(s16)
COMPARES(u16)
COMPARES(s32)
COMPARES(u32)
COMPARES(s64)
COMPARES(u64)
COMPARES(f32)
COMPARES(f64)
SETP(f16)
SETP(bf16)
SET(set_mask_f16, f16, put32, ~0u)
SET(set_f16_f16, f16, put16, ONE_F16)
SET(set_bf16_f16, f16, put16, ONE_BF16)
SET(set_mask_bf16, bf16, put32, ~0u)
SET(set_bf16_bf16, bf16, put16, ONE_BF16)
SET(set_mask16_f16, f16, put16, 0xffff)
SET(set_mask16_bf16, bf16, put16, 0xffff)
SETP_PAIRS(f16x2)
SETP_PAIRS(bf16x2)

// As masks, with the predicate c where there is one.
static void combine_masks(const kl_lanes *x, const kl_sim_op *o, s32 *m) {
  uint32_t t = combine(x, o, bits_of_32(m));
  ALL(KL_LANES, m[i] = t & kl_bit[i] ? -1 : 0);
}
#define SET_PAIRS(name, T, one)                                                                                        \
  EXECUTOR(name) {                                                                                                     \
    pair_masks t;                                                                                                      \
    compare_##T(x, o, &t);                                                                                             \
    if (KL_COMBINE_OF(o->flags)) {                                                                                     \
      combine_masks(x, o, t.low);                                                                                      \
      combine_masks(x, o, t.high);                                                                                     \
    }                                                                                                                  \
    u32 *d = AT(u32, o->d);                                                                                            \
    LANES(on32, d, ((u32)t.low[i] & (one)) | ((u32)t.high[i] & (u32)(one) << 16));                                     \
  }
SET_PAIRS(set_mask_f16x2, f16x2, 0xffff)
SET_PAIRS(set_mask_bf16x2, bf16x2, 0xffff)
SET_PAIRS(set_f16x2_f16x2, f16x2, ONE_F16)
SET_PAIRS(set_bf16x2_bf16x2, bf16x2, ONE_BF16)

// --- selections ----------------------------------------------------------------------------------------------------

#define SELECT(bits, U, on)                                                                                            \
  EXECUTOR(selp_##bits) {                                                                                              \
    const U *a = AT(U, o->a), *b = AT(U, o->b);                                                                        \
    U *d = AT(U, o->d);                                                                                                \
    uint32_t p = PRED(o->c) ^ (o->flags & KL_NOT_C ? ~0u : 0);                                                         \
    LANES(on, d, p &kl_bit[i] ? a[i] : b[i]);                                                                          \
  }                                                                                                                    \
  TERNARY(slct_##bits##_s32, on, U, U, U, s32, c[i] >= 0 ? a[i] : b[i])                                                \
  TERNARY(slct_##bits##_f32, on, U, U, U, f32, (flags & KL_FTZ ? flush(c[i]) : c[i]) >= 0 ? a[i] : b[i])
SELECT(16, u16, on16)
SELECT(32, u32, on32)
SELECT(64, u64, on64)

KL_TOPIC(compare, KL_ISA_COMPARE);
