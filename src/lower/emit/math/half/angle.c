// sin and cos of pairs: n = x / pi rounded to an integer, or for cos to an odd half; r = x - n pi on +-pi/2 with pi in
// two parts; an odd polynomial; the sign by n's last bit. That serves all f16. bf16 from 2^FAR_FROM on are reduced by
// integers, where a thread has any.

#include "lower/emit/math/half/impl.h"

enum { FAR_FROM = 16 };
// Where things stand among the constants.
enum { PI = 1, NEAR = 3, FAR = 7 };

static kb_reg reduce(kb *k, const double *c, kb_reg x, kb_reg n) {
  return kb_fma(k, n, kb_flike(k, n, c[PI + 1]), kb_fma(k, n, kb_flike(k, n, c[PI]), x));
}

// Four coefficients, or three where the last one is 0.
static kb_reg odd_polynomial(kb *k, const double *c, kb_reg r) {
  kb_reg s = kb_fmul(k, r, r);
  return kb_fmul(k, r, kb_fma(k, kh_horner(k, s, c, c[3] != 0 ? 4 : 3), s, kb_flike(k, r, 1)));
}

static kb_reg with_sign(kb *k, kb_reg y, kb_reg sign) {
  return kb_bitcast(k, kb_xor(k, kb_bitcast(k, y, KB_I32, 1), sign), KB_F32, 1);
}

static kb_reg sin_of(kb *k, const double *c, kb_reg x) {
  const double magic = 0x1.8p23;
  kb_reg t = kh_fmai(k, x, c[0], magic), n = kb_faddi(k, t, -magic);
  kb_reg y = odd_polynomial(k, c + NEAR, reduce(k, c, x, n));
  return with_sign(k, y, kb_shli(k, kb_bitcast(k, t, KB_I32, 1), 31));
}

// With half the magic the last bit of t counts halves: rounded down and set, it makes the odd half next to x / pi. All
// but the bit is negated, which puts the sign right.
static kb_reg cos_of(kb *k, const double *c, kb_reg x) {
  const double magic = 0x1.8p22;
  kb_reg t = kb_fma_down(k, x, kb_flike(k, x, c[0]), kb_flike(k, x, magic));
  kb_reg u = kb_or(k, kb_bitcast(k, t, KB_I32, 1), kb_int(k, KB_I32, 1, 1));
  kb_reg n = kb_fsub(k, kb_flike(k, x, magic), kb_bitcast(k, u, KB_F32, 1));
  kb_reg y = odd_polynomial(k, c + NEAR, reduce(k, c, kb_fneg(k, x), n));
  return with_sign(k, y, kb_andi(k, kb_shli(k, u, 30), 0x80000000));
}

kb_reg kh_sin(kb *k, const double *c, const kb_reg *x) {
  kb_reg r = kh_each(k, c, *x, sin_of);
  return x->kind == KB_F16 ? kh_ending(k, r, kb_fabs(k, *x), 0x1.accp-3, 1, 1) : r;
}

kb_reg kh_cos(kb *k, const double *c, const kb_reg *x) {
  return kh_each(k, c, *x, cos_of);
}

// --- bf16 from 2^FAR_FROM on
// ------------------------------------------------------------------------------------------------

// The word of 1 / pi behind the point that is `first` behind the at-th, at to 3.
static kb_reg word_of(kb *k, kb_reg at, unsigned first) {
  static const uint32_t inverse_pi[] = {0x517cc1b7, 0x27220a94, 0xfe13abe8, 0xfa9a6ee0, 0x6db14acc, 0x9e21c820};
  kb_reg w = kb_int(k, KB_I32, 1, inverse_pi[first + 3]);
  for (unsigned i = 3; i-- > 0;)
    w = kb_select(k, kb_icmp(k, LLVMIntEQ, at, kb_ilike(k, at, i)), kb_int(k, KB_I32, 1, inverse_pi[first + i]), w);
  return kb_zext(k, w, KB_I64);
}

// x = m 2^s with an m of 8 bits. The 64 bits of 1 / pi from the one on that 2^s makes units of, times m, are x / pi
// modulo 2 in units of 2^-63: what is cut off behind them counts less than 2^-55. Shifted left once and taken as
// signed, they are the distance from the nearest integer, whose last bit is the sum of the upper two.
static kb_reg far_lane(kb *k, const double *c, kb_reg x, kb_reg near, bool cosine) {
  kb_reg u = kb_bitcast(k, x, KB_I32, 1), e = kb_andi(k, kb_lshri(k, u, 23), 0xff);
  kb_reg far = kb_icmp(k, LLVMIntULT, kb_addi(k, e, -127 - FAR_FROM), kb_ilike(k, e, 128 - FAR_FROM));
  kb_reg m = kb_zext(k, kb_or(k, kb_andi(k, kb_lshri(k, u, 16), 0x7f), kb_ilike(k, u, 0x80)), KB_I64);
  kb_reg o = kb_addi(k, e, -135), at = kb_andi(k, kb_lshri(k, o, 5), 3);
  kb_reg by = kb_zext(k, kb_andi(k, o, 31), KB_I64);
  kb_reg w0 = word_of(k, at, 0), w1 = word_of(k, at, 1), w2 = word_of(k, at, 2);
  kb_reg high = kb_shl(k, kb_or(k, kb_shli(k, w0, 32), w1), by);
  kb_reg low = kb_shl(k, kb_or(k, kb_shli(k, w1, 32), w2), by);
  kb_reg window = kb_or(k, kb_andi(k, high, (int64_t)0xffffffff00000000), kb_lshri(k, low, 32));
  kb_reg p = kb_mul(k, m, window);
  if (cosine) p = kb_add(k, p, kb_ilike(k, p, 1ll << 62)); // half of pi more
  kb_reg f = kb_shli(k, p, 1), r = kb_fmuli(k, kb_sitofp(k, f, KB_F32), 0x1.921fb6p-63);
  kb_reg y = odd_polynomial(k, c + FAR, r);
  kb_reg sign = kb_trunc(k, kb_lshri(k, kb_xor(k, p, f), 32), KB_I32);
  if (!cosine) sign = kb_xor(k, sign, u);
  return kb_select(k, far, with_sign(k, y, kb_andi(k, sign, 0x80000000)), near);
}

static kb_reg far_pair(kb *k, const double *c, kb_reg u, kb_reg near, bool cosine) {
  kb_reg r[2];
  for (unsigned i = 0; i < 2; i++) r[i] = far_lane(k, c, kb_unpack(k, u, i), kb_unpack(k, near, i), cosine);
  return kb_pack2(k, r[0], r[1], KB_BF16);
}

// Is |x| not below 2^FAR_FROM anywhere?
static kb_reg any_far(kb *k, unsigned n, const kb_reg *x) {
  kb_reg most = x[0];
  for (unsigned i = 1; i < n; i++) most = kb_fmax_magnitude(k, most, x[i]);
  kb_reg below = kb_size_mask2(k, LLVMRealOLT, most, 1 << FAR_FROM);
  return kb_icmp(k, LLVMIntNE, below, kb_ilike(k, below, -1));
}

typedef struct ring {
  LLVMValueRef x, r;           // phis
  LLVMValueRef next_x, next_r; // for the next round
} ring;
enum { MOST_PAIRS = 64 };

static LLVMValueRef phi_of(kb *k, kb_reg like) {
  return LLVMBuildPhi(k->b, kb_type(k, (kb_kind)like.kind, like.lanes), "");
}
static void incoming(LLVMValueRef phi, LLVMValueRef a, LLVMBasicBlockRef from, LLVMValueRef b, LLVMBasicBlockRef or) {
  LLVMAddIncoming(phi, (LLVMValueRef[]){a, b}, (LLVMBasicBlockRef[]){from, or }, 2);
}

// One round for each pair, of the first of them, behind which they all move up: a loop, for the sake of its size.
static void far_pairs(kb *k, const double *c, unsigned n, const kb_reg *x, kb_reg *r, bool cosine) {
  ring ring[MOST_PAIRS];
  kb_reg any = any_far(k, n, x), zero = kb_int(k, KB_I32, 1, 0);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b);
  LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "far");
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "");
  LLVMBuildCondBr(k->b, any.v, loop, after);
  LLVMPositionBuilderAtEnd(k->b, loop);
  kb_reg round = {phi_of(k, zero), KB_I32, 1};
  for (unsigned i = 0; i < n; i++) ring[i].x = phi_of(k, x[i]), ring[i].r = phi_of(k, x[i]);
  kb_reg first = {ring[0].x, KB_BF16, 2}, near = {ring[0].r, KB_BF16, 2};
  kb_reg done = far_pair(k, c, first, near, cosine), next = kb_addi(k, round, 1);
  for (unsigned i = 0; i < n; i++) {
    ring[i].next_x = ring[(i + 1) % n].x;
    ring[i].next_r = i + 1 < n ? ring[i + 1].r : done.v;
  }
  incoming(round.v, zero.v, before, next.v, loop);
  for (unsigned i = 0; i < n; i++) {
    incoming(ring[i].x, x[i].v, before, ring[i].next_x, loop);
    incoming(ring[i].r, r[i].v, before, ring[i].next_r, loop);
  }
  LLVMBuildCondBr(k->b, kb_icmp(k, LLVMIntULT, next, kb_ilike(k, next, n)).v, loop, after);
  LLVMPositionBuilderAtEnd(k->b, after);
  for (unsigned i = 0; i < n; i++) {
    LLVMValueRef result = phi_of(k, x[i]);
    incoming(result, r[i].v, before, ring[i].next_r, loop);
    r[i].v = result;
  }
}

void kh_sin_far(kb *k, const double *c, unsigned n, const kb_reg *x, kb_reg *r) {
  far_pairs(k, c, n, x, r, false);
}

void kh_cos_far(kb *k, const double *c, unsigned n, const kb_reg *x, kb_reg *r) {
  far_pairs(k, c, n, x, r, true);
}
