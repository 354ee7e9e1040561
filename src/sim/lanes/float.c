// f32 and f64 arithmetic as IEEE 754 has it. What rounds to nearest without further ado vectorises; the rest takes
// three steps: operands flushed, the operation in its direction, the result put right.
#include "sim/isa/float.h"
#include "sim/lanes/floats.h"
#include "sim/lanes/masks.h"

#define FTZ(a) float_of(flush32(bits32(a)))
#define SINGLE_NEAREST(op, value, flushed)                                                                             \
  BINARY(op##_f32, on32, u32, f32, f32, canonical(value))                                                              \
  BINARY(op##_ftz_f32, on32, u32, f32, f32, flush32(canonical(flushed)))
SINGLE_NEAREST(add, a[i] + b[i], FTZ(a[i]) + FTZ(b[i]))
SINGLE_NEAREST(sub, a[i] - b[i], FTZ(a[i]) - FTZ(b[i]))
BINARY(mul_f32, on32, u32, f32, f32, canonical(a[i] * b[i]))
BINARY(mul_ftz_f32, on32, u32, f32, f32,
       flush_tiny(canonical(FTZ(a[i]) * FTZ(b[i])), is_tiny_product(FTZ(a[i]), FTZ(b[i]))))
BINARY(div_f32, on32, u32, f32, f32, canonical(a[i] / b[i]))
UNARY(rcp_f32, on32, u32, f32, canonical(1 / a[i]))
UNARY(sqrt_f32, on32, u32, f32, canonical(__builtin_sqrtf(a[i])))
TERNARY(fma_f32, on32, u32, f32, f32, f32, canonical(__builtin_fmaf(a[i], b[i], c[i])))
TERNARY(fma_ftz_f32, on32, u32, f32, f32, f32,
        flush_tiny(canonical(__builtin_fmaf(FTZ(a[i]), FTZ(b[i]), FTZ(c[i]))),
                   is_tiny_fma(FTZ(a[i]), FTZ(b[i]), FTZ(c[i]))))

static inline u64 result64(double r, double a, double b, double c) {
  return r == r ? bits64(r) : nan_of(bits64(a), bits64(b), bits64(c));
}
BINARY(add_f64, on64, u64, f64, f64, result64(a[i] + b[i], a[i], b[i], 0))
BINARY(sub_f64, on64, u64, f64, f64, result64(a[i] - b[i], a[i], b[i], 0))
BINARY(mul_f64, on64, u64, f64, f64, result64(a[i] * b[i], a[i], b[i], 0))
BINARY(div_f64, on64, u64, f64, f64, result64(a[i] / b[i], a[i], b[i], 0))
TERNARY(fma_f64, on64, u64, f64, f64, f64, result64(__builtin_fma(a[i], b[i], c[i]), a[i], b[i], c[i]))

// --- any direction -------------------------------------------------------------------------------------------------

// Operations on n numbers. An operation of fewer operands leaves the others alone.
typedef void kernel32(f32 *r, const f32 *a, const f32 *b, const f32 *c, int n);
typedef void kernel64(f64 *r, const f64 *a, const f64 *b, const f64 *c, int n);
#define KERNEL(bits, name, value)                                                                                      \
  static void name##_all##bits(f##bits *r, const f##bits *a, const f##bits *b, const f##bits *c, int n) {              \
    ALL(n, r[i] = (value));                                                                                            \
  }
KERNEL(32, add, a[i] + b[i])
KERNEL(32, sub, a[i] - b[i])
KERNEL(32, mul, a[i] * b[i])
KERNEL(32, fma, __builtin_fmaf(a[i], b[i], c[i]))
KERNEL(32, div, a[i] / b[i])
KERNEL(32, rcp, 1 / a[i])
KERNEL(32, sqrt, __builtin_sqrtf(a[i]))
KERNEL(64, add, a[i] + b[i])
KERNEL(64, sub, a[i] - b[i])
KERNEL(64, mul, a[i] * b[i])
KERNEL(64, fma, __builtin_fma(a[i], b[i], c[i]))
KERNEL(64, div, a[i] / b[i])
KERNEL(64, rcp, 1 / a[i])
KERNEL(64, sqrt, __builtin_sqrt(a[i]))

// Hides from the compiler where p points, so that it computes in its place what is read and written there.
#define HIDE(p) __asm__ volatile("" : "+r"(p) : : "memory")

enum { MOST = 2 * KL_LANES };

// Rounded towards zero, what lies below the least normal number stays there.
static void flush_all(kernel32 *k, f32 *r, const f32 *a, const f32 *b, const f32 *c, int n) {
  f32 inward[MOST], *to = inward;
  HIDE(to);
  unsigned before = round_as(KL_RZ);
  k(to, a, b, c, n);
  round_back(before);
  ALL(n, r[i] = float_of(flush_tiny(bits32(r[i]), flush32(bits32(to[i])) << 1 == 0)));
}

// The operation on n numbers, by the flags; what it gives lies in r.
static void compute32(uint32_t flags, kernel32 *k, f32 *r, const f32 *a, const f32 *b, const f32 *c, int n) {
  f32 flushed[3][MOST];
  if (flags & KL_FTZ) {
    ALL(n, flushed[0][i] = flush(a[i]));
    ALL(n, flushed[1][i] = flush(b[i]));
    ALL(n, flushed[2][i] = flush(c[i]));
    a = flushed[0], b = flushed[1], c = flushed[2];
  }
  HIDE(a);
  HIDE(b);
  HIDE(c);
  HIDE(r);
  unsigned before = round_as(flags);
  k(r, a, b, c, n);
  round_back(before);
  if (flags & KL_FTZ) flush_all(k, r, a, b, c, n);
  if (flags & KL_SAT) ALL(n, r[i] = saturate(r[i]));
  ALL(n, r[i] = r[i] == r[i] ? r[i] : float_of(NAN32));
}

static void any32(kl_lanes *x, const kl_sim_op *o, kernel32 *k, const f32 *a, const f32 *b, const f32 *c) {
  f32 r[KL_LANES];
  compute32(o->flags, k, r, a, b, c, KL_LANES);
  PUT(f32, on32, r);
}

// Sources that an operation lacks are the first one again.
#define ANY32(name, k, b, c)                                                                                           \
  EXECUTOR(name) {                                                                                                     \
    any32(x, o, k##_all32, AT(f32, o->a), AT(f32, o->b), AT(f32, o->c));                                               \
  }
ANY32(add_any_f32, add, b, a)
ANY32(sub_any_f32, sub, b, a)
ANY32(mul_any_f32, mul, b, a)
ANY32(fma_any_f32, fma, b, c)
ANY32(div_any_f32, div, b, a)
ANY32(rcp_any_f32, rcp, a, a)
ANY32(sqrt_any_f32, sqrt, a, a)

#define ANY32X2(name, k, c)                                                                                            \
  EXECUTOR(name) {                                                                                                     \
    union {                                                                                                            \
      f32 v[MOST];                                                                                                     \
      u64 w[KL_LANES];                                                                                                 \
    } r;                                                                                                               \
    compute32(o->flags, k##_all32, r.v, AT(f32, o->a), AT(f32, o->b), AT(f32, o->c), MOST);                            \
    PUT(u64, on64, r.w);                                                                                               \
  }
ANY32X2(add_f32x2, add, a)
ANY32X2(sub_f32x2, sub, a)
ANY32X2(mul_f32x2, mul, a)
ANY32X2(fma_f32x2, fma, c)

// Halves with single numbers: an addition's second operand is single, and so is the third of fma.
#define MIXED(T)                                                                                                       \
  EXECUTOR(add_f32_##T) {                                                                                              \
    f32 a[KL_LANES];                                                                                                   \
    widen_all_##T(a, AT(u16, o->a), KL_LANES);                                                                         \
    any32(x, o, add_all32, a, AT(f32, o->b), a);                                                                       \
  }                                                                                                                    \
  EXECUTOR(sub_f32_##T) {                                                                                              \
    f32 a[KL_LANES];                                                                                                   \
    widen_all_##T(a, AT(u16, o->a), KL_LANES);                                                                         \
    any32(x, o, sub_all32, a, AT(f32, o->b), a);                                                                       \
  }                                                                                                                    \
  EXECUTOR(fma_f32_##T) {                                                                                              \
    f32 a[KL_LANES], b[KL_LANES];                                                                                      \
    widen_all_##T(a, AT(u16, o->a), KL_LANES);                                                                         \
    widen_all_##T(b, AT(u16, o->b), KL_LANES);                                                                         \
    any32(x, o, fma_all32, a, b, AT(f32, o->c));                                                                       \
  }
MIXED(f16)
MIXED(bf16)

static void any64(kl_lanes *x, const kl_sim_op *o, kernel64 *k, int operands) {
  const f64 *a = AT(f64, o->a), *b = operands > 1 ? AT(f64, o->b) : a, *c = operands > 2 ? AT(f64, o->c) : a;
  f64 r[KL_LANES], *to = r;
  const f64 *pa = a, *pb = b, *pc = c;
  HIDE(pa);
  HIDE(pb);
  HIDE(pc);
  HIDE(to);
  unsigned before = round_as(o->flags);
  k(to, pa, pb, pc, KL_LANES);
  round_back(before);
  u64 *d = AT(u64, o->d);
  LANES(on64, d, result64(r[i], a[i], b[i], c[i]));
}
#define ANY64(name, k, operands)                                                                                       \
  EXECUTOR(name) {                                                                                                     \
    any64(x, o, k##_all64, operands);                                                                                  \
  }
ANY64(add_any_f64, add, 2)
ANY64(sub_any_f64, sub, 2)
ANY64(mul_any_f64, mul, 2)
ANY64(fma_any_f64, fma, 3)
ANY64(div_any_f64, div, 2)
ANY64(rcp_any_f64, rcp, 1)
ANY64(sqrt_any_f64, sqrt, 1)

// --- signs and kinds of numbers ------------------------------------------------------------------------------------

static inline u32 without_nan(u32 u) {
  return is_nan32(u) ? NAN32 : u;
}
static inline u32 flush_if(u32 u, u32 flags) {
  return flags & KL_FTZ ? flush32(u) : u;
}
UNARY(abs_f32, on32, u32, u32, without_nan(flush_if(a[i], flags) & 0x7fffffff))
UNARY(neg_f32, on32, u32, u32, without_nan(flush_if(a[i], flags) ^ 0x80000000))

#define SIGN64 (1ull << 63)
#define INF64  0x7ff0000000000000ull
static inline u64 resign64(u64 u, u64 r) {
  return (u & ~SIGN64) > INF64 ? u : r;
}
UNARY(abs_f64, on64, u64, u64, resign64(a[i], a[i] & ~SIGN64))
UNARY(neg_f64, on64, u64, u64, resign64(a[i], a[i] ^ SIGN64))
BINARY(copysign_f32, on32, u32, u32, u32, (a[i] & 0x80000000) | (b[i] & 0x7fffffff))
BINARY(copysign_f64, on64, u64, u64, u64, (a[i] & SIGN64) | (b[i] & ~SIGN64))

// By the bits without the sign; zero counts as normal.
#define TESTP(name, U, M, bits, condition)                                                                             \
  EXECUTOR(testp_##name) {                                                                                             \
    const U *a = AT(U, o->a);                                                                                          \
    M m[KL_LANES];                                                                                                     \
    for (int i = 0; i < KL_LANES; i++) {                                                                               \
      U v = a[i] & ((U)-1 >> 1);                                                                                       \
      m[i] = (M) - (condition);                                                                                        \
    }                                                                                                                  \
    put_pred(x, o->d, bits_of_##bits(m));                                                                              \
  }
#define TESTPS(T, U, M, bits, inf, normal)                                                                             \
  TESTP(finite_##T, U, M, bits, v < (inf))                                                                             \
  TESTP(infinite_##T, U, M, bits, v == (inf))                                                                          \
  TESTP(number_##T, U, M, bits, v <= (inf))                                                                            \
  TESTP(notanumber_##T, U, M, bits, v > (inf))                                                                         \
  TESTP(normal_##T, U, M, bits, v == 0 || (v >= (normal) && v < (inf)))                                                \
  TESTP(subnormal_##T, U, M, bits, v != 0 && v < (normal))
TESTPS(f32, u32, s32, 32, 0x7f800000, 0x00800000)
TESTPS(f64, u64, s64, 64, INF64, 0x0010000000000000)

// --- least and greatest --------------------------------------------------------------------------------------------

// Bits that order as the numbers do, -0 below +0.
static inline s32 order32(u32 u) {
  return (s32)(u >> 31 ? u ^ 0x7fffffff : u);
}
static inline s64 order64(u64 u) {
  return (s64)(u >> 63 ? u ^ ~SIGN64 : u);
}
static inline bool is_nan64(u64 u) {
  return (u & ~SIGN64) > INF64;
}

// A NaN gives way to a number, or, with .NaN, to none.
#define EXTREMUM(name, op)                                                                                             \
  static inline u32 name##32(u32 a, u32 b, u32 flags) {                                                                \
    u32 r = order32(a) op order32(b) ? a : b;                                                                          \
    r = is_nan32(a) ? flags & KL_NAN || is_nan32(b) ? NAN32 : b : r;                                                   \
    return is_nan32(b) ? flags & KL_NAN || is_nan32(a) ? NAN32 : a : r;                                                \
  }                                                                                                                    \
  static inline u32 name##_plain(u32 a, u32 b) {                                                                       \
    u32 r = order32(a) op order32(b) ? a : b;                                                                          \
    r = is_nan32(a) ? b : r;                                                                                           \
    r = is_nan32(b) ? a : r;                                                                                           \
    return is_nan32(r) ? NAN32 : r;                                                                                    \
  }                                                                                                                    \
  static inline u64 name##64(u64 a, u64 b) {                                                                           \
    u64 r = order64(a) op order64(b) ? a : b;                                                                          \
    r = is_nan64(a) ? is_nan64(b) ? nan_of(a, b, 0) : b : r;                                                           \
    return is_nan64(b) && !is_nan64(a) ? a : r;                                                                        \
  }                                                                                                                    \
  static inline u32 name##_xorsign(u32 a, u32 b, u32 flags) {                                                          \
    u32 sign = (a ^ b) & 0x80000000, r = name##32(a & 0x7fffffff, b & 0x7fffffff, flags);                              \
    return is_nan32(r) ? r : (r & 0x7fffffff) | sign;                                                                  \
  }                                                                                                                    \
  static inline u32 name##3(u32 a, u32 b, u32 c, u32 flags) {                                                          \
    u32 size = flags & KL_ABS ? 0x7fffffff : ~0u;                                                                      \
    return name##32(name##32(a & size, b & size, flags), c & size, flags);                                             \
  }                                                                                                                    \
  BINARY(name##_flagged_f32, on32, u32, u32, u32, name##32(flush_if(a[i], flags), flush_if(b[i], flags), flags))       \
  BINARY(name##_plain_f32, on32, u32, u32, u32, name##_plain(a[i], b[i]))                                              \
  EXECUTOR(name##_f32) {                                                                                               \
    (o->flags & (KL_FTZ | KL_NAN) ? name##_flagged_f32 : name##_plain_f32)(x, o);                                      \
  }                                                                                                                    \
  BINARY(name##_xorsign_f32, on32, u32, u32, u32, name##_xorsign(flush_if(a[i], flags), flush_if(b[i], flags), flags)) \
  TERNARY(name##3_f32, on32, u32, u32, u32, u32,                                                                       \
          name##3(flush_if(a[i], flags), flush_if(b[i], flags), flush_if(c[i], flags), flags))                         \
  BINARY(name##_f64, on64, u64, u64, u64, name##64(a[i], b[i]))
EXTREMUM(min, <)
EXTREMUM(max, >)

KL_TOPIC(float, KL_ISA_FLOAT);
