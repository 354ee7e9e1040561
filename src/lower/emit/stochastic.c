// stochastic-convert: of the two neighbours of x in the result type, the farther from zero where the random number is
// less than the fraction of the way to it, in as many bits as x has. All in integers, on the pattern of |x|: `drop` of
// its bits are the fraction, and the rest is the neighbour towards zero.

#include "lower/emit/emit.h"
#include "lower/emit/math/math.h"

static kb_reg choose_int(kb *k, kb_reg c, int64_t a, int64_t b, kb_reg like) {
  return kb_select(k, c, kb_ilike(k, like, a), kb_ilike(k, like, b));
}

static kb_reg converted(kb *k, kl_dtype to, kb_reg x) {
  if (x.kind == KB_F64 && to == KILN_F32) return kb_fptrunc(k, x);
  if (x.kind == KB_F64) x = km_narrow_odd(k, x);
  return km_round(k, x, to);
}

// The pattern of |x| in the kind of its machine type: where its mantissa begins, and its bias.
typedef struct pattern {
  unsigned man, bits;
  int64_t bias;
  kb_reg u;
} pattern;

static pattern pattern_of(kb *k, kb_reg x) {
  bool wide = x.kind == KB_F64;
  kb_reg a = kb_bitcast(k, kb_fabs(k, x), wide ? KB_I64 : KB_I32, x.lanes);
  return (pattern){wide ? 52 : 23, wide ? 64 : 32, wide ? 1023 : 127, a};
}

static kb_reg value_of(kb *k, const pattern *p, kb_reg u) {
  return kb_bitcast(k, u, p->bits == 64 ? KB_F64 : KB_F32, u.lanes);
}

// How many bits of the significand the result type has no room for. Powers of two have no fraction but half-way to the
// next at their top, where there is none, and begin at 2^-127.
static kb_reg dropped(kb *k, const pattern *p, kl_dtype to, kb_reg exponent) {
  const kl_dtype_info *f = kl_info(to);
  if (f->kind == KL_E8M0) {
    kb_reg denormal = kb_icmp(k, LLVMIntEQ, exponent, kb_ilike(k, exponent, 0));
    kb_reg top = kb_icmp(k, LLVMIntUGE, exponent, kb_ilike(k, exponent, p->bias + 127));
    return choose_int(k, kb_or(k, top, denormal), (int64_t)p->man - 1, p->man, exponent);
  }
  kb_reg e = kb_umax(k, exponent, kb_ilike(k, exponent, 1));
  kb_reg short_of = kb_sub(k, kb_ilike(k, e, p->bias + 1 - f->bias), e);
  return kb_addi(k, kb_smax(k, short_of, kb_ilike(k, e, 0)), (int64_t)p->man - f->man_bits);
}

// floor(low / 2^drop * 2^bits), I64; low < 2^drop.
static kb_reg threshold(kb *k, kb_reg low, kb_reg drop, unsigned bits) {
  if (low.kind == KB_I32) {
    kb_reg most = kb_zext(k, kb_umin(k, drop, kb_ilike(k, drop, 63)), KB_I64);
    return kb_lshr(k, kb_shli(k, kb_zext(k, low, KB_I64), bits), most);
  }
  kb_reg up = kb_umin(k, kb_sub(k, kb_ilike(k, drop, 64), drop), kb_ilike(k, drop, 63)); // many where drop is over 64
  kb_reg down = kb_umin(k, kb_addi(k, drop, -64), kb_ilike(k, drop, 63));
  kb_reg far = kb_icmp(k, LLVMIntUGE, drop, kb_ilike(k, drop, 64));
  return kb_select(k, far, kb_lshr(k, low, down), kb_shl(k, low, up));
}

static kb_reg to_float(kb *k, kl_dtype from, kl_dtype to, kb_reg x, kb_reg random) {
  const kl_dtype_info *f = kl_info(to);
  pattern p = pattern_of(k, x);
  kb_reg u = p.u, zero = kb_ilike(k, u, 0), one = kb_ilike(k, u, 1);
  int64_t least = p.bits == 64 ? (1023ll - 127) << 52 : 1 << 22; // 2^-127
  if (f->kind == KL_E8M0) u = kb_umax(k, u, kb_ilike(k, u, least));
  kb_reg exponent = kb_lshri(k, u, p.man), drop = dropped(k, &p, to, exponent);
  kb_reg hidden = choose_int(k, kb_icmp(k, LLVMIntEQ, exponent, zero), 0, 1ll << p.man, u);
  kb_reg significand = kb_or(k, kb_andi(k, u, (1ll << p.man) - 1), hidden);
  kb_reg some = kb_umin(k, drop, kb_ilike(k, drop, p.man + 1)), unit = kb_shl(k, one, some);
  kb_reg low = kb_and(k, significand, kb_addi(k, unit, -1));
  kb_reg next = kb_icmp(k, LLVMIntULT, random, threshold(k, low, drop, kl_info(from)->bits));

  // Below the least number of the type there is zero.
  kb_reg below = kb_icmp(k, LLVMIntUGT, drop, kb_ilike(k, drop, p.man));
  int64_t lowest = 1 - f->bias - f->man_bits + p.bias; // the exponent field of the least number
  int64_t first = lowest > 0 ? lowest << p.man : 1ll << ((int64_t)p.man - 1 + lowest);
  kb_reg toward = kb_select(k, below, zero, kb_sub(k, u, low));
  kb_reg away = kb_select(k, below, kb_ilike(k, u, first), kb_add(k, kb_sub(k, u, low), unit));
  kb_reg r = kb_fcopysign(k, value_of(k, &p, kb_select(k, next, away, toward)), x);
  r = converted(k, to, r);
  // What is no number, or none in the result type, is what convert makes it.
  kb_reg plain = converted(k, to, x), a = kb_fabs(k, x);
  kb_reg finite = kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, a, __builtin_inf()));
  return kb_select(k, kb_and(k, finite, kb_fcmp(k, LLVMRealORD, plain, plain)), r, plain);
}

static kb_reg to_integer(kb *k, kl_dtype from, kl_dtype to, kb_reg x, kb_reg random) {
  unsigned bits = kl_info(to)->bits;
  bool has_sign = kl_is_signed(to);
  double top = (has_sign ? 1.0 : 2.0) * (double)(1ull << (bits - 1)), most = bits < 25 ? top - 1 : top;
  if (x.kind == KB_F64 && bits < 54) most = top - 1;
  int64_t max = (int64_t)(has_sign ? kl_int_mask(to) >> 1 : kl_int_mask(to)), min = has_sign ? -max - 1 : 0;
  kb_reg zero = kb_flike(k, x, 0);
  kb_reg high = kb_fcmp(k, LLVMRealOGE, x, kb_flike(k, x, most));
  kb_reg low = kb_fcmp(k, LLVMRealOLE, x, kb_flike(k, x, has_sign ? -top : 0));
  kb_reg out = kb_or(k, kb_or(k, high, low), kb_fcmp(k, LLVMRealUNO, x, x));
  kb_reg a = kb_select(k, out, zero, kb_fabs(k, x)), whole = kb_floor(k, a), part = kb_fsub(k, a, whole);
  double unit = 2 * (double)(1ull << (kl_info(from)->bits - 1));
  kb_reg next = kb_icmp(k, LLVMIntULT, random, kb_fptoui(k, kb_fmuli(k, part, unit), KB_I64));
  kb_reg r = kb_add(k, kb_fptoui(k, whole, KB_I64), kb_zext(k, next, KB_I64));
  r = kb_select(k, kb_fcmp(k, LLVMRealOLT, x, zero), kb_sub(k, kb_ilike(k, r, 0), r), r);
  r = kb_select(k, high, kb_ilike(k, r, max), kb_select(k, low, kb_ilike(k, r, min), r));
  r = kb_select(k, kb_fcmp(k, LLVMRealUNO, x, x), kb_ilike(k, r, 0), r);
  return bits == 64 ? r : kl_canon(k, to, kb_trunc(k, r, KB_I32));
}

kb_reg kl_emit_stochastic(kb *k, kl_dtype from, kl_dtype to, kb_reg x, kb_reg random) {
  if (random.kind == KB_I32) random = kb_zext(k, random, KB_I64);
  if (kl_is_int(to)) return to_integer(k, from, to, x, random);
  if (to == KILN_F64 || (to == KILN_F32 && x.kind == KB_F32)) return kl_emit_convert(k, from, to, to, x);
  return to_float(k, from, to, x, random);
}
