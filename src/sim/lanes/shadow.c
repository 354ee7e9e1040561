// Shadows: which bits of a result have no value, from those of its sources.
#include "sim/lanes/shadow.h"
#include "sim/lanes/masks.h"

#define HOW ((const kl_shadow_how *)(uintptr_t)o->imm)

// Lanes in which some bit is set.
static inline u32 lanes_of_16(const u16 *a, u16 low) {
  s16 m[KL_LANES];
  ALL(KL_LANES, m[i] = (s16) - ((a[i] & low) != 0));
  return bits_of_16(m);
}
static inline u32 lanes_of_32(const u32 *a) {
  s32 m[KL_LANES];
  ALL(KL_LANES, m[i] = (s32) - (a[i] != 0));
  return bits_of_32(m);
}
static inline u32 lanes_of_64(const u64 *a) {
  s64 m[KL_LANES];
  ALL(KL_LANES, m[i] = (s64) - (a[i] != 0));
  return bits_of_64(m);
}
static u32 lanes_of(kl_lanes *x, const kl_shadow_part *p) {
  u32 any = 0;
  switch (p->bytes) {
  case 0: return PRED(p->at);
  case 2: return lanes_of_16(AT(u16, p->at), p->low);
  case 4: return lanes_of_32(AT(u32, p->at));
  case 8: return lanes_of_64(AT(u64, p->at));
  default: break;
  }
  const b128 *a = AT(b128, p->at);
  for (int i = 0; i < KL_LANES; i++) any |= (u32)((a[i].low | a[i].high) != 0) << i;
  return any;
}

// All bits in the lanes of `any`, none in the others.
static void fill(kl_lanes *x, const kl_shadow_part *p, u32 any) {
  switch (p->bytes) {
  case 0: put_pred(x, p->at, any); return;
  case 2: {
    u16 *d = AT(u16, p->at);
    LANES(on16, d, any & kl_bit[i] ? 0xffff : 0);
    return;
  }
  case 4: {
    u32 *d = AT(u32, p->at);
    LANES(on32, d, any & kl_bit[i] ? ~0u : 0);
    return;
  }
  case 8: {
    u64 *d = AT(u64, p->at);
    LANES(on64, d, any & kl_bit[i] ? ~0ull : 0);
    return;
  }
  default: {
    b128 *d = AT(b128, p->at);
    SLOWLY(d, (any >> i & 1 ? (b128){~0ull, ~0ull} : (b128){0, 0}));
  }
  }
}

EXECUTOR(all) {
  const kl_shadow_how *how = HOW;
  u32 any = how->takes ? PRED(how->carry) : 0;
  for (int k = 0; k < how->nfrom; k++) any |= lanes_of(x, &how->from[k]);
  for (int k = 0; k < how->nto; k++) fill(x, &how->to[k], any);
  if (how->gives) put_pred(x, how->carry, any);
}

EXECUTOR(pairs) {
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c);
  u32 *d = AT(u32, o->d);
#define BOTH(v) (((v)&0xffff ? 0xffffu : 0) | ((v) >> 16 ? 0xffff0000u : 0))
  LANES(on32, d, BOTH(a[i] | b[i] | c[i]));
}

EXECUTOR(merge_pred) {
  put_pred(x, o->d, PRED(o->a) | PRED(o->b));
}
// A known 0 decides an and, a known 1 an or.
EXECUTOR(and_pred) {
  const kl_shadow_how *how = HOW;
  u32 a = PRED(o->a), b = PRED(o->b), va = PRED(how->value[0]), vb = PRED(how->value[1]);
  put_pred(x, o->d, (a | b) & (a | va) & (b | vb));
}
EXECUTOR(andn_pred) {
  const kl_shadow_how *how = HOW;
  u32 a = PRED(o->a), b = PRED(o->b), va = PRED(how->value[0]), vb = ~PRED(how->value[1]);
  put_pred(x, o->d, (a | b) & (a | va) & (b | vb));
}
EXECUTOR(or_pred) {
  const kl_shadow_how *how = HOW;
  u32 a = PRED(o->a), b = PRED(o->b), va = PRED(how->value[0]), vb = PRED(how->value[1]);
  put_pred(x, o->d, (a | b) & (a | ~va) & (b | ~vb));
}

// The lowest unknown bit and all above it: a carry may come out of it.
#define UP(v) ((v) | (0 - (v)))
#define OF_WIDTH(bits, U, on)                                                                                          \
  TERNARY(merge_##bits, on, U, U, U, U, (U)(a[i] | b[i] | c[i]))                                                       \
  EXECUTOR(up_##bits) {                                                                                                \
    const kl_shadow_how *how = HOW;                                                                                    \
    const U *a = AT(U, o->a), *b = AT(U, o->b), *c = AT(U, o->c);                                                      \
    U *d = AT(U, o->d);                                                                                                \
    u32 carry = how && how->takes ? PRED(how->carry) & x->mask : 0, any = carry;                                       \
    if (how && how->gives) any |= lanes_of_##bits##_any(a) | lanes_of_##bits##_any(b) | lanes_of_##bits##_any(c);      \
    LANES(on, d, (U)UP((U)(a[i] | b[i] | c[i])));                                                                      \
    if (carry) SLOWLY(d, carry >> i & 1 ? (U)-1 : d[i]);                                                               \
    if (how && how->gives) put_pred(x, how->carry, any);                                                               \
  }                                                                                                                    \
  EXECUTOR(and_##bits) {                                                                                               \
    const kl_shadow_how *how = HOW;                                                                                    \
    const U *a = AT(U, o->a), *b = AT(U, o->b), *va = AT(U, how->value[0]), *vb = AT(U, how->value[1]);                \
    U *d = AT(U, o->d);                                                                                                \
    LANES(on, d, (U)((a[i] | b[i]) & (a[i] | va[i]) & (b[i] | vb[i])));                                                \
  }                                                                                                                    \
  EXECUTOR(or_##bits) {                                                                                                \
    const kl_shadow_how *how = HOW;                                                                                    \
    const U *a = AT(U, o->a), *b = AT(U, o->b), *va = AT(U, how->value[0]), *vb = AT(U, how->value[1]);                \
    U *d = AT(U, o->d);                                                                                                \
    LANES(on, d, (U)((a[i] | b[i]) & (a[i] | (U)~va[i]) & (b[i] | (U)~vb[i])));                                        \
  }                                                                                                                    \
  EXECUTOR(select_##bits) { /* an unknown choice between equal bits that are known is none */                          \
    const kl_shadow_how *how = HOW;                                                                                    \
    const U *a = AT(U, o->a), *b = AT(U, o->b), *va = AT(U, how->value[0]), *vb = AT(U, how->value[1]);                \
    U *d = AT(U, o->d);                                                                                                \
    u32 c = PRED(o->c), p = PRED(how->value[2]) ^ (o->flags & KL_NOT_C ? ~0u : 0);                                     \
    LANES(on, d, (U)(c & kl_bit[i] ? a[i] | b[i] | (va[i] ^ vb[i]) : p & kl_bit[i] ? a[i] : b[i]));                    \
  }
#define lanes_of_16_any(a) lanes_of_16(a, 0xffff)
#define lanes_of_32_any(a) lanes_of_32(a)
#define lanes_of_64_any(a) lanes_of_64(a)
OF_WIDTH(16, u16, on16)
OF_WIDTH(32, u32, on32)
OF_WIDTH(64, u64, on64)

// --- any function of three bits ------------------------------------------------------------------------------------

static inline u32 look_up(u32 table, u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (int k = 0; k < 8; k++)
    if (table >> k & 1) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  return r;
}

// A bit is unknown if the function changes when some of the unknown bits among the three do.
static u32 unknown_of(const kl_shadow_how *how, u32 sa, u32 sb, u32 sc, u32 a, u32 b, u32 c, u32 *value) {
  u32 r = 0;
  *value = look_up(how->table, a, b, c);
  for (int k = 1; k < 8; k++) {
    u32 may = (k & 4 ? sa : ~0u) & (k & 2 ? sb : ~0u) & (k & 1 ? sc : ~0u);
    if (may) r |= may & (*value ^ look_up(how->table, k & 4 ? ~a : a, k & 2 ? ~b : b, k & 1 ? ~c : c));
  }
  return r;
}

static void lop3_of(kl_lanes *x, const kl_sim_op *o, u32 *unknown, u32 *value) {
  const kl_shadow_how *how = HOW;
  const u32 *a = AT(u32, o->a), *b = AT(u32, o->b), *c = AT(u32, o->c);
  const u32 *va = AT(u32, how->value[0]), *vb = AT(u32, how->value[1]), *vc = AT(u32, how->value[2]);
  for (int i = 0; i < KL_LANES; i++) unknown[i] = unknown_of(how, a[i], b[i], c[i], va[i], vb[i], vc[i], &value[i]);
}

EXECUTOR(lop3) {
  u32 unknown[KL_LANES], value[KL_LANES];
  lop3_of(x, o, unknown, value);
  PUT(u32, on32, unknown);
}

// The predicate says whether the word is 0: a 1 in it that is known decides, and so may q.
EXECUTOR(lop3_bool) {
  const kl_shadow_how *how = HOW;
  u32 unknown[KL_LANES], value[KL_LANES], us = 0, set = 0;
  u32 uq = PRED(o->f), q = PRED(how->value[3]) ^ (o->flags & KL_NOT_C ? ~0u : 0);
  lop3_of(x, o, unknown, value);
  for (int i = 0; i < KL_LANES; i++) {
    bool known = (value[i] & ~unknown[i]) != 0;
    us |= (u32)(unknown[i] && !known) << i;
    set |= (u32)known << i;
  }
  if (o->d != KL_NO_REF) PUT(u32, on32, unknown);
  if (KL_COMBINE_OF(o->flags) == KL_AND)
    put_pred(x, o->e, (us | uq) & (us | set) & (uq | q));
  else
    put_pred(x, o->e, (us | uq) & (us | ~set) & (uq | ~q));
}

// --- what is moved -------------------------------------------------------------------------------------------------

EXECUTOR(moved) {
  const kl_shadow_how *how = HOW;
  const u32 *a = AT(u32, how->amount[0]), *b = AT(u32, how->amount[1]);
  u32 unknown = 0;
  for (int i = 0; i < KL_LANES; i++) unknown |= (u32)(((a[i] | b[i]) & how->counts) != 0) << i;
  how->moved.run(x, &how->moved); // which may write where an amount's shadow lies
  if (!unknown) return;
  kl_shadow_part to = how->to[0];
  switch (to.bytes) {
  case 2: {
    u16 *d = AT(u16, to.at);
    LANES(on16, d, unknown & kl_bit[i] ? 0xffff : d[i]);
    return;
  }
  case 4: {
    u32 *d = AT(u32, to.at);
    LANES(on32, d, unknown & kl_bit[i] ? ~0u : d[i]);
    return;
  }
  default: {
    u64 *d = AT(u64, to.at);
    LANES(on64, d, unknown & kl_bit[i] ? ~0ull : d[i]);
  }
  }
}

#define EXECUTOR_OF(executor) executor,
extern kl_run *const KL_PASTE(kl_lanes_, KL_SET, _shadow)[];
kl_run *const KL_PASTE(kl_lanes_, KL_SET, _shadow)[] = {KL_SHADOWS(EXECUTOR_OF)};
