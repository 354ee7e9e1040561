// Logic, shifts and permutations of bytes.
#include "sim/isa/logic.h"
#include "sim/lanes/each.h"

#define LOGIC(bits, U, on)                                                                                             \
  BINARY(and_b##bits, on, U, U, U, a[i] & b[i])                                                                        \
  BINARY(or_b##bits, on, U, U, U, a[i] | b[i])                                                                         \
  BINARY(xor_b##bits, on, U, U, U, a[i] ^ b[i])                                                                        \
  UNARY(not_b##bits, on, U, U, (U)~a[i])                                                                               \
  UNARY(cnot_b##bits, on, U, U, (U)(a[i] == 0))
LOGIC(16, u16, on16)
LOGIC(32, u32, on32)
LOGIC(64, u64, on64)

EXECUTOR(and_pred) {
  put_pred(x, o->d, PRED(o->a) & PRED(o->b));
}
EXECUTOR(or_pred) {
  put_pred(x, o->d, PRED(o->a) | PRED(o->b));
}
EXECUTOR(xor_pred) {
  put_pred(x, o->d, PRED(o->a) ^ PRED(o->b));
}
EXECUTOR(not_pred) {
  put_pred(x, o->d, ~PRED(o->a));
}

// --- any function of three bits: bit (4a + 2b + c) of the table ----------------------------------------------------

typedef struct table3 {
  u32 at[8]; // each all ones or 0
} table3;

static table3 spread_table(uint64_t bits) {
  table3 t;
  for (int i = 0; i < 8; i++) t.at[i] = bits >> i & 1 ? ~0u : 0;
  return t;
}
// Bits of `one` where s is set, else of `zero`.
static inline u32 choose(u32 s, u32 one, u32 zero) {
  return zero ^ (s & (one ^ zero));
}
static inline u32 look_up(const table3 *t, u32 a, u32 b, u32 c) {
  u32 a0 = choose(b, choose(c, t->at[3], t->at[2]), choose(c, t->at[1], t->at[0]));
  u32 a1 = choose(b, choose(c, t->at[7], t->at[6]), choose(c, t->at[5], t->at[4]));
  return choose(a, a1, a0);
}

EXECUTOR(lop3_b32) {
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c);
  u32 *d = AT(u32, o->d);
  table3 t = spread_table(o->imm);
  LANES(on32, d, look_up(&t, a[i], b[i], c[i]));
}

// Also p = (d != 0) and/or q, where d may be missing.
EXECUTOR(lop3_bool_b32) {
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c);
  table3 t = spread_table(o->imm);
  u32 r[KL_LANES], set = 0, q = PRED(o->f) ^ (o->flags & KL_NOT_C ? ~0u : 0);
  ALL(KL_LANES, r[i] = look_up(&t, a[i], b[i], c[i]));
  for (int i = 0; i < KL_LANES; i++) set |= (u32)(r[i] != 0) << i;
  if (o->d != KL_NO_REF) PUT(u32, on32, r);
  put_pred(x, o->e, KL_COMBINE_OF(o->flags) == KL_AND ? set & q : set | q);
}

// --- shifts: amounts beyond the width count as the width -----------------------------------------------------------

BINARY(shl_16, on16, u16, u16, u32, (u16)(b[i] > 15 ? 0 : (u32)a[i] << b[i]))
BINARY(shl_32, on32, u32, u32, u32, b[i] > 31 ? 0 : a[i] << (b[i] & 31))
BINARY(shl_64, on64, u64, u64, u32, b[i] > 63 ? 0 : a[i] << (b[i] & 63))
BINARY(shr_u16, on16, u16, u16, u32, (u16)(b[i] > 15 ? 0 : a[i] >> b[i]))
BINARY(shr_u32, on32, u32, u32, u32, b[i] > 31 ? 0 : a[i] >> (b[i] & 31))
BINARY(shr_u64, on64, u64, u64, u32, b[i] > 63 ? 0 : a[i] >> (b[i] & 63))
BINARY(shr_s16, on16, s16, s16, u32, (s16)(a[i] >> (b[i] > 15 ? 15 : b[i])))
BINARY(shr_s32, on32, s32, s32, u32, a[i] >> (b[i] > 31 ? 31 : b[i]))
BINARY(shr_s64, on64, s64, s64, u32, a[i] >> (b[i] > 63 ? 63 : b[i]))

// Of the 64 bits b:a, moved by at most 32: the upper half to the left, the lower one to the right.
static inline u32 funnel(u32 c, u32 flags) {
  return flags & KL_WRAP ? c & 31 : c > 32 ? 32 : c;
}
static inline u64 joined(u32 a, u32 b) {
  return (u64)b << 32 | a;
}
TERNARY(shf_l_b32, on32, u32, u32, u32, u32, (u32)(joined(a[i], b[i]) << funnel(c[i], flags) >> 32))
TERNARY(shf_r_b32, on32, u32, u32, u32, u32, (u32)(joined(a[i], b[i]) >> funnel(c[i], flags)))

// --- bytes: four selectors of 4 bits, each a byte of b:a, or its sign in all bits ----------------------------------

static inline u32 byte_of(u32 a, u32 b, u32 selector) {
  return ((selector & 4 ? b : a) >> 8 * (selector & 3)) & 255;
}
static inline u32 pick_byte(u32 a, u32 b, u32 selector) {
  u32 v = byte_of(a, b, selector);
  return selector & 8 ? (v & 128 ? 255 : 0) : v;
}
static inline u32 permute(u32 a, u32 b, u32 c) {
  return pick_byte(a, b, c) | pick_byte(a, b, c >> 4) << 8 | pick_byte(a, b, c >> 8) << 16 |
         pick_byte(a, b, c >> 12) << 24;
}
TERNARY(prmt_b32, on32, u32, u32, u32, u32, permute(a[i], b[i], c[i]))

// Modes: the selectors for each value of the low two bits of c.
#define MODE(name, zero, one, two, three)                                                                              \
  EXECUTOR(prmt_##name) {                                                                                              \
    static const uint16_t selectors[4] = {zero, one, two, three};                                                      \
    const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c);                                              \
    u32 *d = AT(u32, o->d);                                                                                            \
    SLOWLY(d, permute(a[i], b[i], selectors[c[i] & 3]));                                                               \
  }
MODE(f4e, 0x3210, 0x4321, 0x5432, 0x6543)  // forward, four bytes
MODE(b4e, 0x5670, 0x6701, 0x7012, 0x0123)  // backward
MODE(rc8, 0x0000, 0x1111, 0x2222, 0x3333)  // one byte everywhere
MODE(ecl, 0x3210, 0x3211, 0x3222, 0x3333)  // clamped at the left edge
MODE(ecr, 0x0000, 0x1110, 0x2210, 0x3210)  // at the right edge
MODE(rc16, 0x1010, 0x3232, 0x1010, 0x3232) // one half everywhere

KL_TOPIC(logic, KL_ISA_LOGIC);
