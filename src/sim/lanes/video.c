// SIMD within a word: two halves or four bytes, one lane at a time.
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

static u32 combine(const shape *s, u32 a, u32 b, u32 c, uint32_t flags) {
  int bits = 32 / s->count;
  u32 sum = c, word = 0;
  for (int i = 0; i < s->count; i++) {
    s32 v = operate(s->op, part(a, i, bits, s->a), part(b, i, bits, s->b), flags);
    if (flags & KL_SAT) v = clamp(v, bits, s->d);
    sum += (u32)v;
    word |= ((u32)v & ((1u << bits) - 1)) << bits * i;
  }
  return s->add ? sum : word;
}

static void run(kl_lanes *x, const kl_sim_op *o, const shape *s) {
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c);
  u32 *d = AT(u32, o->d);
  SLOWLY(d, combine(s, a[i], b[i], c[i], o->flags));
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

KL_TOPIC(video, KL_ISA_VIDEO);
