// Elementwise ops on wide registers: HLO's semantics in every corner.
//
// Integers of fewer than 32 bits are computed in I32 and brought back to their width after every op (kl_canon). Floats
// narrower than 32 bits are computed in F32, where +, -, *, / and sqrt of two such values rounded once more to the type
// give the correctly rounded result (24 >= 2p + 2 for all of them), and rounded after every op (km_round).

#include "lower/emit/emit.h"
#include "lower/emit/math/math.h"

// `to` is the type to round to, or F32 where the caller's packing does it.
static kb_reg rounded(kb *k, kl_dtype to, kb_reg x) {
  return kl_is_narrow_float(to) ? km_round_computed(k, x, to) : x;
}
// Formats whose values are not closed under a change of sign.
static kb_reg resigned(kb *k, kl_dtype t, kb_reg x) {
  kl_float_kind kind = kl_info(t)->kind;
  return kind == KL_FNUZ || kind == KL_E8M0 ? km_round(k, x, t) : x;
}

static kb_reg is_zero(kb *k, kb_reg x) {
  return kb_icmp(k, LLVMIntEQ, x, kb_ilike(k, x, 0));
}
static kb_reg non_zero(kb *k, kb_reg x) {
  return kb_icmp(k, LLVMIntNE, x, kb_ilike(k, x, 0));
}

// --- integers -----------------------------------------------------------------------------------------------------

static kb_reg unsigned_bits(kb *k, kl_dtype t, kb_reg x) {
  return kl_info(t)->bits < 32 ? kb_andi(k, x, (int64_t)kl_int_mask(t)) : x;
}

static kb_reg int_unary(kb *k, kl_op op, kl_dtype t, kb_reg x) {
  unsigned bits = kl_info(t)->bits, machine = kb_kind_bits((kb_kind)x.kind);
  kb_reg zero = kb_ilike(k, x, 0), one = kb_ilike(k, x, 1);
  switch (op) {
  case KL_OP_ABS: return kl_is_signed(t) ? kl_canon(k, t, kb_smax(k, x, kb_sub(k, zero, x))) : x;
  case KL_OP_NEGATE: return kl_canon(k, t, kb_sub(k, zero, x));
  case KL_OP_SIGN: {
    kb_reg s = kb_select(k, non_zero(k, x), one, zero);
    return kl_is_signed(t) ? kb_or(k, kb_ashri(k, x, machine - 1), s) : kl_canon(k, t, s);
  }
  case KL_OP_NOT: return kl_canon(k, t, kb_not(k, x));
  case KL_OP_POPCNT: return kl_canon(k, t, kb_ctpop(k, unsigned_bits(k, t, x)));
  case KL_OP_CLZ: return kl_canon(k, t, kb_addi(k, kb_ctlz(k, unsigned_bits(k, t, x)), -(int64_t)(machine - bits)));
  default: return x; // copy, real
  }
}

// x / 0 = all ones, MIN / -1 = MIN; x rem 0 = x, MIN rem -1 = 0: the divisor becomes 1 where the machine would trap.
static kb_reg int_divide(kb *k, kl_dtype t, kb_reg x, kb_reg y, bool remainder) {
  kb_reg zero = is_zero(k, y), trap = zero;
  if (kl_is_signed(t)) {
    int64_t min = x.kind == KB_I64 ? INT64_MIN : INT32_MIN;
    kb_reg over =
        kb_and(k, kb_icmp(k, LLVMIntEQ, x, kb_ilike(k, x, min)), kb_icmp(k, LLVMIntEQ, y, kb_ilike(k, y, -1)));
    trap = kb_or(k, zero, over);
  }
  kb_reg d = kb_select(k, trap, kb_ilike(k, y, 1), y);
  if (remainder) return kb_select(k, zero, x, kl_is_signed(t) ? kb_srem(k, x, d) : kb_urem(k, x, d));
  kb_reg q = kl_is_signed(t) ? kb_sdiv(k, x, d) : kb_udiv(k, x, d);
  return kl_canon(k, t, kb_select(k, zero, kb_ilike(k, q, -1), q));
}

// Is it known to be no more, as a bit mask of it has made it?
static bool is_masked_to(kb_reg n, unsigned most) {
  LLVMValueRef v = n.v;
  while (LLVMIsAZExtInst(v)) v = LLVMGetOperand(v, 0);
  if (!LLVMIsABinaryOperator(v) || LLVMGetInstructionOpcode(v) != LLVMAnd) return false;
  LLVMValueRef mask = LLVMGetOperand(v, 1);
  return LLVMIsAConstantInt(mask) && LLVMConstIntGetZExtValue(mask) <= most;
}

// Shift distances count as unsigned; at the width and beyond nothing but zeros or sign is left.
static kb_reg int_shift(kb *k, kl_op op, kl_dtype t, kb_reg x, kb_reg y) {
  unsigned bits = kl_info(t)->bits;
  kb_reg n = unsigned_bits(k, t, y), last = kb_ilike(k, n, bits - 1);
  kb_reg zero = kb_ilike(k, x, 0);
  kb_reg in = is_masked_to(n, bits - 1) ? kb_int(k, KB_I1, 1, 1) : kb_icmp(k, LLVMIntULE, n, last);
  kb_reg safe = kb_select(k, in, n, last);
  if (op == KL_OP_SHL) return kl_canon(k, t, kb_select(k, in, kb_shl(k, x, safe), zero));
  if (op == KL_OP_SHR_LOGICAL) return kl_canon(k, t, kb_select(k, in, kb_lshr(k, unsigned_bits(k, t, x), safe), zero));
  unsigned up = bits < 32 ? 32 - bits : 0;
  kb_reg sign = kb_ashri(k, kb_shli(k, x, up), up);
  return kl_canon(k, t, kb_ashr(k, sign, safe));
}

// x^n mod 2^bits by squaring over all bits of n. A negative exponent leaves 1 for 1, +-1 for -1 and 0 for the rest,
// but x^n of 0 is as evaluated: 0.
static kb_reg int_power(kb *k, kl_dtype t, kb_reg x, kb_reg n) {
  unsigned bits = kl_info(t)->bits;
  kb_reg one = kb_ilike(k, x, 1), zero = kb_ilike(k, x, 0), r = one, square = x;
  for (unsigned i = 0; i < bits; i++) {
    kb_reg set = non_zero(k, kb_andi(k, n, (int64_t)(1ull << i)));
    r = kb_mul(k, r, kb_select(k, set, square, one));
    square = kb_mul(k, square, square);
  }
  r = kl_canon(k, t, r);
  if (!kl_is_signed(t)) return r;
  kb_reg negative = kb_icmp(k, LLVMIntSLT, n, zero), odd = non_zero(k, kb_andi(k, n, 1));
  kb_reg minus_one = kb_icmp(k, LLVMIntEQ, x, kb_ilike(k, x, -1)), is_one = kb_icmp(k, LLVMIntEQ, x, one);
  kb_reg inverse = kb_select(k, is_one, one, kb_select(k, minus_one, kb_select(k, odd, kb_ilike(k, x, -1), one), zero));
  return kl_canon(k, t, kb_select(k, negative, inverse, r));
}

// The high half of a product of twice as many bits.
static kb_reg int_mulhi(kb *k, kl_dtype t, kb_reg x, kb_reg y) {
  unsigned bits = kl_info(t)->bits;
  bool s = kl_is_signed(t);
  if (bits == 64) {
    kb_reg high = kb_umulhi(k, x, y);
    if (!s) return high;
    high = kb_sub(k, high, kb_and(k, kb_ashri(k, x, 63), y)); // a negative factor counts 2^64 too much
    return kb_sub(k, high, kb_and(k, kb_ashri(k, y, 63), x));
  }
  kb_reg a = s ? kb_sext(k, x, KB_I64) : kb_zext(k, x, KB_I64), b = s ? kb_sext(k, y, KB_I64) : kb_zext(k, y, KB_I64);
  return kl_canon(k, t, kb_trunc(k, kb_lshri(k, kb_mul(k, a, b), bits), KB_I32));
}

static kb_reg int_binary(kb *k, kl_op op, kl_dtype t, kb_reg x, kb_reg y) {
  bool s = kl_is_signed(t);
  switch (op) {
  case KL_OP_ADD: return kl_canon(k, t, kb_add(k, x, y));
  case KL_OP_SUBTRACT: return kl_canon(k, t, kb_sub(k, x, y));
  case KL_OP_MULTIPLY: return kl_canon(k, t, kb_mul(k, x, y));
  case KL_OP_DIVIDE: return int_divide(k, t, x, y, false);
  case KL_OP_REMAINDER: return int_divide(k, t, x, y, true);
  case KL_OP_POWER: return int_power(k, t, x, y);
  case KL_OP_MULHI: return int_mulhi(k, t, x, y);
  case KL_OP_MAXIMUM: return s ? kb_smax(k, x, y) : kb_umax(k, x, y);
  case KL_OP_MINIMUM: return s ? kb_smin(k, x, y) : kb_umin(k, x, y);
  case KL_OP_AND: return kb_and(k, x, y);
  case KL_OP_OR: return kb_or(k, x, y);
  case KL_OP_XOR: return kb_xor(k, x, y);
  default: return int_shift(k, op, t, x, y);
  }
}

static kb_reg pred_binary(kb *k, kl_op op, kb_reg x, kb_reg y) {
  bool any = op == KL_OP_ADD || op == KL_OP_OR || op == KL_OP_MAXIMUM;
  if (op == KL_OP_XOR) return kb_xor(k, x, y);
  return any ? kb_or(k, x, y) : kb_and(k, x, y);
}

// --- floats -------------------------------------------------------------------------------------------------------

static kb_reg round_afz(kb *k, kb_reg x) {
  kb_reg t = kb_trunc_f(k, x), half = kb_fcmp(k, LLVMRealOGE, kb_fabs(k, kb_fsub(k, x, t)), kb_flike(k, x, 0.5));
  kb_reg away = kb_fadd(k, t, kb_fcopysign(k, kb_flike(k, x, 1), x));
  return kb_fcopysign(k, kb_select(k, half, away, t), x);
}

static kb_reg float_sign(kb *k, kb_reg x) {
  kb_reg keep = kb_fcmp(k, LLVMRealUEQ, x, kb_flike(k, x, 0)); // zero or NaN
  return kb_select(k, keep, x, kb_fcopysign(k, kb_flike(k, x, 1), x));
}

static kb_reg float_unary(kb *k, const kl_plan_op *op, kl_dtype t, kl_dtype to, kb_reg x) {
  switch (op->op) {
  case KL_OP_ABS: return kb_fabs(k, x);
  case KL_OP_NEGATE: return resigned(k, t, kb_fneg(k, x));
  case KL_OP_SIGN: return resigned(k, t, float_sign(k, x));
  case KL_OP_CEIL: return rounded(k, to, kb_ceil(k, x));
  case KL_OP_FLOOR: return rounded(k, to, kb_floor(k, x));
  case KL_OP_ROUND_EVEN: return rounded(k, to, kb_roundeven(k, x));
  case KL_OP_ROUND_AFZ: return rounded(k, to, round_afz(k, x));
  case KL_OP_SQRT: return rounded(k, to, t == KILN_F32 ? km_sqrt(k, x) : kb_fsqrt(k, x));
  case KL_OP_EXP: return rounded(k, to, op->nonpositive ? km_exp_nonpositive(k, t, x) : km_call(k, KM_EXP, t, x));
  case KL_OP_LOG: return rounded(k, to, km_call(k, KM_LOG, t, x));
  case KL_OP_TANH: return rounded(k, to, km_call(k, KM_TANH, t, x));
  case KL_OP_LOGISTIC: return rounded(k, to, km_call(k, KM_LOGISTIC, t, x));
  case KL_OP_ERF: return rounded(k, to, km_call(k, KM_ERF, t, x));
  case KL_OP_RSQRT: return rounded(k, to, km_call(k, KM_RSQRT, t, x));
  case KL_OP_EXPM1: return rounded(k, to, km_call(k, KM_EXPM1, t, x));
  case KL_OP_EXP10: return rounded(k, to, km_call(k, KM_EXP10, t, x));
  case KL_OP_SINH: return rounded(k, to, km_call(k, KM_SINH, t, x));
  case KL_OP_COSH: return rounded(k, to, km_call(k, KM_COSH, t, x));
  case KL_OP_LOG1P: return rounded(k, to, km_call(k, KM_LOG1P, t, x));
  case KL_OP_ASINH: return rounded(k, to, km_call(k, KM_ASINH, t, x));
  case KL_OP_ACOSH: return rounded(k, to, km_call(k, KM_ACOSH, t, x));
  case KL_OP_ATANH: return rounded(k, to, km_call(k, KM_ATANH, t, x));
  case KL_OP_CBRT: return rounded(k, to, km_call(k, KM_CBRT, t, x));
  case KL_OP_SIN: return rounded(k, to, km_call(k, KM_SIN, t, x));
  case KL_OP_COS: return rounded(k, to, km_call(k, KM_COS, t, x));
  case KL_OP_TAN: return rounded(k, to, km_call(k, KM_TAN, t, x));
  case KL_OP_ASIN: return rounded(k, to, km_call(k, KM_ASIN, t, x));
  case KL_OP_ACOS: return rounded(k, to, km_call(k, KM_ACOS, t, x));
  case KL_OP_ATAN: return rounded(k, to, km_call(k, KM_ATAN, t, x));
  default: return x; // copy, real
  }
}

// The one format that reaches down to F32's least values and has no zero: a product or quotient that vanished is a
// small positive number.
static kb_reg keep_positive(kb *k, kl_dtype t, kb_reg r) {
  if (t != KILN_F8E8M0FNU) return r;
  return kb_select(k, kb_fcmp(k, LLVMRealOEQ, r, kb_flike(k, r, 0)), kb_flike(k, r, 0x1p-127), r);
}

// Two arguments come nearer to a tie of a narrow result than F32 sees, but not than F64 does. A small angle is a little
// less than its quotient, which may be a tie between denormals of bf16, and nearer to it than F64 sees; no angle lies
// so near above a tie that the factor would take it below.
static kb_reg of_two(kb *k, kl_op op, kl_dtype t, kl_dtype to, kb_reg a, kb_reg b) {
  bool angle = op == KL_OP_ATAN2;
  if (!kl_is_narrow_float(t)) return angle ? km_atan2(k, a, b) : km_power(k, a, b);
  kb_reg x = kb_fpext(k, a), y = kb_fpext(k, b);
  kb_reg r = angle ? kb_fmuli(k, km_atan2(k, x, y), 1 - 0x1p-50) : km_power_narrow(k, x, y, kl_info(t)->man_bits);
  r = km_narrow_odd(k, r);
  return kl_is_narrow_float(to) ? km_round(k, keep_positive(k, to, r), to) : r;
}

static kb_reg float_binary(kb *k, kl_op op, kl_dtype t, kl_dtype to, kb_reg x, kb_reg y) {
  switch (op) {
  case KL_OP_ADD: return rounded(k, to, kb_fadd(k, x, y));
  case KL_OP_SUBTRACT: return rounded(k, to, kb_fsub(k, x, y));
  case KL_OP_MULTIPLY: return rounded(k, to, keep_positive(k, to, kb_fmul(k, x, y)));
  case KL_OP_DIVIDE: return rounded(k, to, keep_positive(k, to, t == KILN_F32 ? km_divide(k, x, y) : kb_fdiv(k, x, y)));
  case KL_OP_MAXIMUM: return kb_fmax(k, x, y);
  case KL_OP_MINIMUM: return kb_fmin(k, x, y);
  case KL_OP_ATAN2:
  case KL_OP_POWER: return of_two(k, op, t, to, x, y);
  default: {
    kb_reg r = x;
    km_fmod(k, x, y, &r);
    return rounded(k, to, r);
  }
  }
}

// Sign and magnitude to two's complement: an order of all bit patterns, -NaN < -inf < ... < -0 < +0 < ... < NaN.
static kb_reg total_order_key(kb *k, kl_dtype t, kb_reg b) {
  unsigned bits = kl_info(t)->bits;
  if (kl_info(t)->kind == KL_E8M0) return b; // no sign
  unsigned machine = kb_kind_bits((kb_kind)b.kind);
  b = kb_shli(k, b, machine - bits);
  kb_reg sign = kb_ashri(k, b, machine - 1);
  return kb_xor(k, b, kb_lshri(k, sign, 1));
}

static const LLVMIntPredicate signed_order[] = {[KL_EQ] = LLVMIntEQ,  [KL_NE] = LLVMIntNE,  [KL_LT] = LLVMIntSLT,
                                                [KL_LE] = LLVMIntSLE, [KL_GT] = LLVMIntSGT, [KL_GE] = LLVMIntSGE};

kb_reg kl_emit_total_order(kb *k, kl_direction d, kl_dtype t, kb_reg x, kb_reg y) {
  return kb_icmp(k, signed_order[d], total_order_key(k, t, x), total_order_key(k, t, y));
}

static kb_reg compare(kb *k, kl_direction d, kl_dtype t, kb_reg x, kb_reg y) {
  static const LLVMRealPredicate real[] = {[KL_EQ] = LLVMRealOEQ, [KL_NE] = LLVMRealUNE, [KL_LT] = LLVMRealOLT,
                                           [KL_LE] = LLVMRealOLE, [KL_GT] = LLVMRealOGT, [KL_GE] = LLVMRealOGE};
  static const LLVMIntPredicate uint[] = {[KL_EQ] = LLVMIntEQ,  [KL_NE] = LLVMIntNE,  [KL_LT] = LLVMIntULT,
                                          [KL_LE] = LLVMIntULE, [KL_GT] = LLVMIntUGT, [KL_GE] = LLVMIntUGE};
  if (kl_is_float(t)) return kb_fcmp(k, real[d], x, y);
  if (t == KILN_PRED) x = kb_zext(k, x, KB_I32), y = kb_zext(k, y, KB_I32);
  return kb_icmp(k, kl_is_signed(t) ? signed_order[d] : uint[d], x, y);
}

// A pattern for either sign, known as constants.
static kb_reg by_sign(kb *k, kb_reg sign, uint64_t sign_bit, uint64_t positive, uint64_t negative) {
  if (negative == positive) return kb_ilike(k, sign, (int64_t)positive);
  if (negative == (positive | sign_bit)) return kb_or(k, sign, kb_ilike(k, sign, (int64_t)positive));
  return kb_select(k, non_zero(k, sign), kb_ilike(k, sign, (int64_t)negative), kb_ilike(k, sign, (int64_t)positive));
}

// The pattern above which there are only NaNs and what is none of the type's; of infinity, where there is one.
static uint64_t end_of(const kl_dtype_info *f) {
  uint64_t all = (1ull << (f->exp_bits + f->man_bits)) - 1;
  switch (f->kind) {
  case KL_IEEE: return all - (1ull << f->man_bits) + 1;
  case KL_FN0:
  case KL_FNUZ: return all;
  default: return all - 1;
  }
}

// Rounds the fraction of the type's own bits to `man` bits, ties to even, then maps what the smaller exponent cannot
// hold: too large to infinity, or whatever the format has for it, too small to zero of the same sign. NaN stays NaN
// while there is a fraction to hold it.
static kb_reg reduce_precision(kb *k, const kl_plan_op *op, kl_dtype t, kb_reg x) {
  const kl_dtype_info *f = kl_info(t);
  uint64_t sign_bit = f->kind == KL_E8M0 ? 0 : 1ull << (f->bits - 1);
  uint64_t top = kl_float_encode(t, __builtin_inf()), bottom = kl_float_encode(t, -__builtin_inf());
  kb_reg b = kl_to_bits(k, t, x), nan = kb_fcmp(k, LLVMRealUNO, x, x), sign = kb_andi(k, b, (int64_t)sign_bit);
  kb_reg over = {.v = NULL}, under = {.v = NULL};
  if (op->mantissa_bits < f->man_bits) {
    unsigned drop = f->man_bits - op->mantissa_bits;
    kb_reg odd = kb_andi(k, kb_lshri(k, b, drop), 1);
    if (f->kind != KL_IEEE) b = kb_xor(k, b, sign); // else the sign is in nobody's way
    b = kb_add(k, b, kb_addi(k, odd, (1ll << (drop - 1)) - 1));
    b = kb_andi(k, b, (int64_t) ~((1ull << drop) - 1));
    if (f->kind != KL_IEEE) {
      over = kb_icmp(k, LLVMIntUGT, b, kb_ilike(k, b, (int64_t)end_of(f)));
      b = kb_or(k, b, sign);
    }
  }
  if (op->exponent_bits < f->exp_bits) {
    int64_t exp_mask = ((1ll << f->exp_bits) - 1) << f->man_bits, reach = (1ll << (op->exponent_bits - 1)) - 1;
    int64_t max_exp = (f->bias + reach) << f->man_bits, min_exp = (f->bias - reach + 1) << f->man_bits;
    kb_reg e = kb_andi(k, b, exp_mask), above = kb_icmp(k, LLVMIntUGT, e, kb_ilike(k, e, max_exp));
    over = over.v ? kb_or(k, over, above) : above;
    under = kb_icmp(k, LLVMIntULT, e, kb_ilike(k, e, min_exp));
  }
  if (under.v) b = kb_select(k, under, by_sign(k, sign, sign_bit, kl_float_encode(t, 0), kl_float_encode(t, -0.0)), b);
  if (over.v) b = kb_select(k, over, by_sign(k, sign, sign_bit, top, bottom), b);
  kb_reg r = kl_from_bits(k, t, b), lost = kl_from_bits(k, t, kb_ilike(k, b, (int64_t)top));
  return kb_select(k, nan, op->mantissa_bits ? x : lost, r);
}

// --- conversions --------------------------------------------------------------------------------------------------

static kb_reg int_to_float(kb *k, kl_dtype from, kl_dtype to, kl_dtype round_to, kb_reg x) {
  kb_kind kind = to == KILN_F64 ? KB_F64 : KB_F32;
  kb_reg r = kl_is_signed(from) ? kb_sitofp(k, x, kind) : kb_uitofp(k, x, kind);
  return rounded(k, round_to, r);
}

static kb_reg float_to_float(kb *k, kl_dtype from, kl_dtype to, kl_dtype round_to, kb_reg x) {
  if (from == to) return x;
  if (to == KILN_F64) return kb_fpext(k, x);
  if (from == KILN_F64 && to == KILN_F32) return kb_fptrunc(k, x);
  if (from == KILN_F64) x = km_narrow_odd(k, x);
  return kl_is_narrow_float(round_to) ? km_round(k, x, round_to) : x;
}

// Toward zero, saturating, NaN to 0. Values that the machine's conversion cannot take are replaced by 0 before it, and
// by the bound after it; the bounds 2^(bits-1) and 2^bits are powers of two, so exact in every source kind.
static kb_reg float_to_machine_int(kb *k, kb_reg x, kb_kind to, bool is_signed) {
  unsigned bits = kb_kind_bits(to);
  double above = is_signed ? 0x1p31 : 0x1p32;
  if (bits == 64) above = is_signed ? 0x1p63 : 0x1p64;
  double below = is_signed ? -above : 0;
  int64_t max = is_signed ? (int64_t)(bits == 64 ? INT64_MAX : INT32_MAX) : -1;
  int64_t min = is_signed ? (int64_t)(bits == 64 ? INT64_MIN : INT32_MIN) : 0;
  kb_reg high = kb_fcmp(k, LLVMRealOGE, x, kb_flike(k, x, above)),
         low = kb_fcmp(k, LLVMRealOLE, x, kb_flike(k, x, below));
  kb_reg out = kb_or(k, kb_or(k, high, low), kb_fcmp(k, LLVMRealUNO, x, x));
  kb_reg safe = kb_select(k, out, kb_flike(k, x, 0), x);
  kb_reg i = is_signed ? kb_fptosi(k, safe, to) : kb_fptoui(k, safe, to);
  i = kb_select(k, high, kb_ilike(k, i, max), i);
  return kb_select(k, low, kb_ilike(k, i, min), i);
}

static kb_reg float_to_int(kb *k, kl_dtype to, kb_reg x) {
  unsigned bits = kl_info(to)->bits;
  bool s = kl_is_signed(to);
  if (bits == 64) return float_to_machine_int(k, x, KB_I64, s);
  kb_reg i = k->machine == KB_NVPTX && x.lanes == 1 ? kb_f2i_sat(k, x, s) : float_to_machine_int(k, x, KB_I32, s);
  if (bits == 32) return i;
  int64_t max = (int64_t)(s ? kl_int_mask(to) >> 1 : kl_int_mask(to));
  if (!s) return kb_umin(k, i, kb_ilike(k, i, max));
  return kb_smax(k, kb_smin(k, i, kb_ilike(k, i, max)), kb_ilike(k, i, -max - 1));
}

static kb_reg int_to_int(kb *k, kl_dtype from, kl_dtype to, kb_reg x) {
  kb_kind kind = kl_wide_kind(to);
  if (x.kind == KB_I32 && kind == KB_I64) return kl_is_signed(from) ? kb_sext(k, x, KB_I64) : kb_zext(k, x, KB_I64);
  if (x.kind == KB_I64 && kind == KB_I32) x = kb_trunc(k, x, KB_I32);
  return kl_canon(k, to, x);
}

kb_reg kl_emit_convert(kb *k, kl_dtype from, kl_dtype to, kl_dtype round_to, kb_reg x) {
  if (from == to) return x;
  if (to == KILN_PRED) return kl_is_float(from) ? kb_fcmp(k, LLVMRealUNE, x, kb_flike(k, x, 0)) : non_zero(k, x);
  if (from == KILN_PRED) {
    x = kb_zext(k, x, KB_I32);
    from = KILN_U32;
  }
  if (kl_is_float(from)) return kl_is_float(to) ? float_to_float(k, from, to, round_to, x) : float_to_int(k, to, x);
  return kl_is_float(to) ? int_to_float(k, from, to, round_to, x) : int_to_int(k, from, to, x);
}

static kl_pair convert(kb *k, kl_dtype from, kl_dtype to, kl_dtype round_to, const kl_pair *x) {
  kl_dtype pf = kl_is_complex(from) ? kl_info(from)->part : from, pt = kl_is_complex(to) ? kl_info(to)->part : to;
  if (kl_is_complex(to)) round_to = pt;
  kl_pair r = {.re = kl_emit_convert(k, pf, pt, round_to, x->re)};
  if (!kl_is_complex(to)) {
    if (kl_is_complex(from) && to == KILN_PRED) r.re = kb_or(k, r.re, kl_emit_convert(k, pf, pt, round_to, x->im));
    return r;
  }
  r.im = kl_is_complex(from) ? kl_emit_convert(k, pf, pt, round_to, x->im) : kb_flike(k, r.re, 0);
  return r;
}

// --- one op -------------------------------------------------------------------------------------------------------

static kb_reg clamp(kb *k, kl_dtype t, kb_reg lo, kb_reg x, kb_reg hi) {
  if (kl_is_float(t)) return kb_fmin(k, kb_fmax(k, lo, x), hi);
  bool s = kl_is_signed(t);
  kb_reg r = s ? kb_smax(k, lo, x) : kb_umax(k, lo, x);
  return s ? kb_smin(k, r, hi) : kb_umin(k, r, hi);
}

static kb_reg is_finite(kb *k, kb_reg x) {
  kb_reg a = kb_fabs(k, x);
  return kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, a, __builtin_inf()));
}

kl_pair kl_emit_op(kb *k, const kl_plan_op *op, kl_dtype from, kl_dtype to, kl_dtype round_to, const kl_pair *x) {
  kl_pair r = {0};
  if (kl_emit_call(k, op, from, to, round_to, x, &r)) return r;
  switch (op->op) {
  case KL_OP_CONVERT: return convert(k, from, to, round_to, x);
  case KL_OP_COMPLEX: return (kl_pair){x[0].re, x[1].re};
  case KL_OP_STOCHASTIC_CONVERT: return (kl_pair){.re = kl_emit_stochastic(k, from, to, x[0].re, x[1].re)};
  default: break;
  }
  if (kl_is_complex(from)) { // is made of the functions of `strict`
    bool fast = k->fast;
    k->fast = false;
    r = kl_emit_complex_op(k, op, kl_info(from)->part, x);
    k->fast = fast;
    return r;
  }
  bool is_float = kl_is_float(from), binary = kl_op_table[op->op].kind == KL_KIND_BINARY;
  if (op->op == KL_OP_COMPARE)
    r.re = compare(k, op->direction, from, x[0].re, x[1].re);
  else if (op->op == KL_OP_CLAMP && from == KILN_PRED)
    r.re = kb_and(k, kb_or(k, x[0].re, x[1].re), x[2].re);
  else if (op->op == KL_OP_CLAMP)
    r.re = clamp(k, from, x[0].re, x[1].re, x[2].re);
  else if (op->op == KL_OP_IS_FINITE)
    r.re = is_finite(k, x->re);
  else if (op->op == KL_OP_IMAG)
    r.re = resigned(k, to, kb_flike(k, x->re, 0));
  else if (op->op == KL_OP_REDUCE_PRECISION)
    r.re = reduce_precision(k, op, from, x->re);
  else if (from == KILN_PRED)
    r.re = binary ? pred_binary(k, op->op, x[0].re, x[1].re) : op->op == KL_OP_NOT ? kb_not(k, x->re) : x->re;
  else if (is_float && binary)
    r.re = float_binary(k, op->op, from, round_to, x[0].re, x[1].re);
  else if (is_float)
    r.re = float_unary(k, op, from, round_to, x->re);
  else
    r.re = binary ? int_binary(k, op->op, from, x[0].re, x[1].re) : int_unary(k, op->op, from, x->re);
  return r;
}
