// Video instructions: bytes, halves or words of registers, one lane at a time; and SIMD on two halves or four bytes.
#include "sim/isa/video.h"
#include "sim/lanes/each.h"

enum { ADD, SUB, AVERAGE, DISTANCE, LEAST, GREATEST, SET };

// How an instruction takes its numbers: how many of them, which have signs, and whether they are added to c.
typedef struct shape {
  int op, count;
  bool d, a, b, add;
} shape;

static inline s32 part(u32 word, int i, int bits, bool sign) {
  u32 v = word >> bits * i << (32 - bits);
  return sign ? (s32)v >> (32 - bits) : (s32)(v >> (32 - bits));
}

static bool holds(uint32_t kind, s32 a, s32 b) {
  switch (kind) {
  case KL_CMP_EQ: return a == b;
  case KL_CMP_NE: return a != b;
  case KL_CMP_LT: return a < b;
  case KL_CMP_LE: return a <= b;
  case KL_CMP_GT: return a > b;
  default: return a >= b;
  }
}

static s32 operate(int op, s32 a, s32 b, uint32_t flags) {
  switch (op) {
  case ADD: return a + b;
  case SUB: return a - b;
  case AVERAGE: return (a + b + (a + b >= 0)) >> 1; // halves away from zero
  case DISTANCE: return a < b ? b - a : a - b;
  case LEAST: return a < b ? a : b;
  case GREATEST: return a > b ? a : b;
  default: return holds(KL_COMPARE_OF(flags), a, b);
  }
}

static s32 clamp(s32 v, int bits, bool sign) {
  s32 most = (1 << (sign ? bits - 1 : bits)) - 1, least = sign ? -most - 1 : 0;
  return v < least ? least : v > most ? most : v;
}

// Element i of an operand by its selectors, of both operands' elements; `own` is the one that it is without.
static s32 selected(u64 both, uint64_t selectors, int i, int own, int bits, bool sign) {
  int which = (int)(selectors >> 4 * i & 15) ^ own;
  return part((u32)(both >> bits * which), 0, bits, sign);
}

static u32 combine(const shape *s, uint64_t imm, u32 a, u32 b, u32 c, uint32_t flags) {
  int bits = 32 / s->count;
  u64 both = a | (u64)b << 32;
  u32 sum = c, word = 0;
  for (int i = 0; i < s->count; i++) {
    s32 v = operate(s->op, selected(both, imm >> KL_SIMD_A, i, i, bits, s->a),
                    selected(both, imm >> KL_SIMD_B, i, s->count + i, bits, s->b), flags);
    u32 ones = ((1u << bits) - 1) << bits * i;
    bool kept = imm >> (KL_SIMD_KEPT + i) & 1;
    if (flags & KL_SAT) v = clamp(v, bits, s->d);
    if (!kept) sum += (u32)v;
    word |= (kept ? c : (u32)v << bits * i) & ones;
  }
  return s->add ? sum : word;
}

static void run(kl_lanes *x, const kl_sim_op *o, const shape *s) {
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c);
  u32 *d = AT(u32, o->d);
  SLOWLY(d, combine(s, o->imm, a[i], b[i], c[i], o->flags));
}

enum { u, s };
#define VIDEO(name, ...)                                                                                               \
  EXECUTOR(name) {                                                                                                     \
    static const shape how = {__VA_ARGS__};                                                                            \
    run(x, o, &how);                                                                                                   \
  }
#define SIGNS_OF(name, op, count, d, a, b)                                                                             \
  VIDEO(name##_##d##a##b, op, count, d, a, b, false)                                                                   \
  VIDEO(name##_add_##d##a##b, op, count, d, a, b, true)
#define SIGNS(name, op, count)                                                                                         \
  SIGNS_OF(name, op, count, u, u, u)                                                                                   \
  SIGNS_OF(name, op, count, u, u, s)                                                                                   \
  SIGNS_OF(name, op, count, u, s, u)                                                                                   \
  SIGNS_OF(name, op, count, u, s, s)                                                                                   \
  SIGNS_OF(name, op, count, s, u, u)                                                                                   \
  SIGNS_OF(name, op, count, s, u, s)                                                                                   \
  SIGNS_OF(name, op, count, s, s, u)                                                                                   \
  SIGNS_OF(name, op, count, s, s, s)
SIGNS(vadd2, ADD, 2)
SIGNS(vsub2, SUB, 2)
SIGNS(vavrg2, AVERAGE, 2)
SIGNS(vabsdiff2, DISTANCE, 2)
SIGNS(vmin2, LEAST, 2)
SIGNS(vmax2, GREATEST, 2)
SIGNS(vadd4, ADD, 4)
SIGNS(vsub4, SUB, 4)
SIGNS(vavrg4, AVERAGE, 4)
SIGNS(vabsdiff4, DISTANCE, 4)
SIGNS(vmin4, LEAST, 4)
SIGNS(vmax4, GREATEST, 4)

#define SETS(name, count, a, b)                                                                                        \
  VIDEO(name##_##a##b, SET, count, u, a, b, false)                                                                     \
  VIDEO(name##_add_##a##b, SET, count, u, a, b, true)
SETS(vset2, 2, u, u)
SETS(vset2, 2, u, s)
SETS(vset2, 2, s, u)
SETS(vset2, 2, s, s)
SETS(vset4, 4, u, u)
SETS(vset4, 4, u, s)
SETS(vset4, 4, s, u)
SETS(vset4, 4, s, s)

// --- scalar --------------------------------------------------------------------------------------------------------

__extension__ typedef __int128 s128;

enum { SHIFT_LEFT = SET + 1, SHIFT_RIGHT };
enum { SECOND_NONE, SECOND_ADD, SECOND_MIN, SECOND_MAX };

typedef struct scalar {
  int op, second;
  bool d, a, b;
} scalar;

// Bits and place of what a selector means.
static int part_bits(unsigned selector) {
  return selector == KL_PART_WORD ? 32 : selector < KL_PART_H0 ? 8 : 16;
}
static int part_at(unsigned selector) {
  return selector == KL_PART_WORD ? 0 : (int)(selector - (selector < KL_PART_H0 ? KL_PART_B0 : KL_PART_H0));
}
static s64 taken(u32 word, unsigned selector, bool sign) {
  int bits = part_bits(selector);
  u32 v = word >> bits * part_at(selector) << (32 - bits);
  return sign ? (s64)((s32)v >> (32 - bits)) : (s64)(v >> (32 - bits));
}

static s128 within(s128 v, int bits, bool sign) {
  s128 most = ((s128)1 << (sign ? bits - 1 : bits)) - 1, least = sign ? -most - 1 : 0;
  return v < least ? least : v > most ? most : v;
}

static s128 scalar_result(int op, s64 a, s64 b, uint32_t flags) {
  int n = (int)(flags & KL_WRAP ? b & 31 : b > 32 ? 32 : b);
  switch (op) {
  case ADD: return (s128)a + b;
  case SUB: return (s128)a - b;
  case DISTANCE: return a < b ? b - a : a - b;
  case LEAST: return a < b ? a : b;
  case GREATEST: return a > b ? a : b;
  case SHIFT_LEFT: return (s128)a * ((s128)1 << n);
  case SHIFT_RIGHT: return (s128)a >> n;
  default:
    switch (KL_COMPARE_OF(flags)) {
    case KL_CMP_EQ: return a == b;
    case KL_CMP_NE: return a != b;
    case KL_CMP_LT: return a < b;
    case KL_CMP_LE: return a <= b;
    case KL_CMP_GT: return a > b;
    default: return a >= b;
    }
  }
}

static u32 scalar_of(const scalar *s, uint64_t imm, u32 a, u32 b, u32 c, uint32_t flags) {
  unsigned to = imm >> KL_PART_D & 15;
  s128 v = scalar_result(s->op, taken(a, imm >> KL_PART_A & 15, s->a), taken(b, imm >> KL_PART_B & 15, s->b), flags);
  s128 other = s->d ? (s128)(s32)c : (s128)c;
  if (flags & KL_SAT) v = within(v, part_bits(to), s->d);
  if (s->second == SECOND_ADD) v += other;
  if (s->second == SECOND_MIN) v = v < other ? v : other;
  if (s->second == SECOND_MAX) v = v > other ? v : other;
  if (to == KL_PART_WORD) return (u32)v;
  u32 ones = ((1u << part_bits(to)) - 1) << part_bits(to) * part_at(to);
  return ((u32)v << part_bits(to) * part_at(to) & ones) | (c & ~ones);
}

// c is missing where nothing is done with it.
static void run_scalar(kl_lanes *x, const kl_sim_op *o, const scalar *s) {
  static const u32 none[KL_LANES];
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = o->c == KL_NO_REF ? none : AT(u32, o->c);
  u32 *d = AT(u32, o->d);
  SLOWLY(d, scalar_of(s, o->imm, a[i], b[i], c[i], o->flags));
}

#define SCALAR(name, ...)                                                                                              \
  EXECUTOR(name) {                                                                                                     \
    static const scalar how = {__VA_ARGS__};                                                                           \
    run_scalar(x, o, &how);                                                                                            \
  }
#define SCALAR_OF(name, op, d, a, b)                                                                                   \
  SCALAR(name##_##d##a##b, op, SECOND_NONE, d, a, b)                                                                   \
  SCALAR(name##_add_##d##a##b, op, SECOND_ADD, d, a, b)                                                                \
  SCALAR(name##_min_##d##a##b, op, SECOND_MIN, d, a, b)                                                                \
  SCALAR(name##_max_##d##a##b, op, SECOND_MAX, d, a, b)
#define SCALAR_UNSIGNED(name, op)                                                                                      \
  SCALAR_OF(name, op, u, u, u)                                                                                         \
  SCALAR_OF(name, op, u, s, u)                                                                                         \
  SCALAR_OF(name, op, s, u, u)                                                                                         \
  SCALAR_OF(name, op, s, s, u)
#define SCALAR_SIGNS(name, op)                                                                                         \
  SCALAR_UNSIGNED(name, op)                                                                                            \
  SCALAR_OF(name, op, u, u, s)                                                                                         \
  SCALAR_OF(name, op, u, s, s)                                                                                         \
  SCALAR_OF(name, op, s, u, s)                                                                                         \
  SCALAR_OF(name, op, s, s, s)
SCALAR_SIGNS(vadd, ADD)
SCALAR_SIGNS(vsub, SUB)
SCALAR_SIGNS(vabsdiff, DISTANCE)
SCALAR_SIGNS(vmin, LEAST)
SCALAR_SIGNS(vmax, GREATEST)
SCALAR_UNSIGNED(vshl, SHIFT_LEFT)
SCALAR_UNSIGNED(vshr, SHIFT_RIGHT)
SCALAR_OF(vset, SET, u, u, u)
SCALAR_OF(vset, SET, u, u, s)
SCALAR_OF(vset, SET, u, s, u)
SCALAR_OF(vset, SET, u, s, s)

// The product and c, one of them negated by its complement and one, or one more (.po); shifted; within 32 bits.
static u32 vmad_of(uint64_t imm, bool sa, bool sb, int shift, bool more, u32 a, u32 b, u32 c, uint32_t flags) {
  bool minus = imm & KL_MINUS_PRODUCT, minus_c = imm & KL_MINUS_C, sign = sa || sb || minus || minus_c;
  s128 product = (s128)taken(a, imm >> KL_PART_A & 15, sa) * taken(b, imm >> KL_PART_B & 15, sb);
  bool one = more || minus || minus_c;
  if (!more && minus) product = ~product;
  if (!more && !minus && minus_c) c = ~c;
  s128 v = (product + (sign ? (s128)(s32)c : (s128)c) + one) >> shift;
  return (u32)(flags & KL_SAT ? within(v, 32, sign) : v);
}
#define VMAD(name, a_, b_, shift, more)                                                                                \
  EXECUTOR(name##_##a_##b_) {                                                                                          \
    const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c);                                              \
    u32 *d = AT(u32, o->d);                                                                                            \
    SLOWLY(d, vmad_of(o->imm, a_, b_, shift, more, a[i], b[i], c[i], o->flags));                                       \
  }
#define VMADS(name, shift, more)                                                                                       \
  VMAD(name, u, u, shift, more)                                                                                        \
  VMAD(name, u, s, shift, more)                                                                                        \
  VMAD(name, s, u, shift, more)                                                                                        \
  VMAD(name, s, s, shift, more)
VMADS(vmad, 0, false)
VMADS(vmad_shr7, 7, false)
VMADS(vmad_shr15, 15, false)
VMADS(vmad_po, 0, true)
VMADS(vmad_po_shr7, 7, true)
VMADS(vmad_po_shr15, 15, true)

KL_TOPIC(video, KL_ISA_VIDEO);
