// Remainder and hypotenuse.

#include "lower/emit/math/impl.h"

#include <math.h>

// sqrt(re^2 + im^2): under 1.3 ulp (the worst seen is 0.97). The greater part decides on one power of two that brings
// both parts where their squares neither overflow nor lose bits that count; it is taken out again at the end, where the
// result may overflow. An infinite part makes the result infinite even beside a NaN.
kb_reg km_hypot(kb *k, kb_reg re, kb_reg im) {
  bool wide = re.kind == KB_F64;
  double big = ldexp(1, wide ? 500 : 62), small = ldexp(1, wide ? -450 : -40);
  double down = ldexp(1, wide ? -600 : -80), up = ldexp(1, wide ? 700 : 100);
  kb_reg a = kb_fabs(k, re), b = kb_fabs(k, im), one = kb_flike(k, re, 1), inf = kb_flike(k, re, (double)INFINITY);
  kb_reg less = kb_fcmp(k, LLVMRealOLT, a, b), x = kb_select(k, less, b, a), y = kb_select(k, less, a, b);
  kb_reg is_big = kb_fcmp(k, LLVMRealOGT, x, kb_flike(k, x, big));
  kb_reg is_small = kb_fcmp(k, LLVMRealOLT, x, kb_flike(k, x, small));
  kb_reg in = kb_select(k, is_big, kb_flike(k, x, down), kb_select(k, is_small, kb_flike(k, x, up), one));
  kb_reg out = kb_select(k, is_big, kb_flike(k, x, 1 / down), kb_select(k, is_small, kb_flike(k, x, 1 / up), one));
  x = kb_fmul(k, x, in);
  y = kb_fmul(k, y, in);
  kb_reg r = kb_fmul(k, kb_fsqrt(k, kb_fma(k, x, x, kb_fmul(k, y, y))), out);
  kb_reg infinite = kb_or(k, kb_fcmp(k, LLVMRealOEQ, a, inf), kb_fcmp(k, LLVMRealOEQ, b, inf));
  return kb_select(k, infinite, inf, r);
}

// --- fmod ---------------------------------------------------------------------------------------------------------

km_split km_split_of(kb *k, const km_consts *m, kb_reg v) {
  kb_reg a = kb_fabs(k, v), denormal = kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, a, m->min_normal));
  kb_reg u = km_bits(k, kb_select(k, denormal, kb_fmuli(k, a, ldexp(1, (int)m->man_bits)), a));
  kb_reg e = kb_lshri(k, u, m->man_bits);
  int64_t bias = m->one_bits >> m->man_bits, low = (1ll << m->man_bits) - 1;
  kb_reg off = kb_select(k, denormal, kb_ilike(k, u, -bias - m->man_bits), kb_ilike(k, u, -bias));
  kb_reg man = km_float(k, kb_or(k, kb_andi(k, u, low), kb_ilike(k, u, m->one_bits)));
  return (km_split){man, kb_add(k, e, off)};
}

kb_reg km_any_lane(kb *k, kb_reg c) {
  kb_reg r = kb_extract(k, c, 0);
  if (c.lanes % 8 != 0 || c.lanes > 64 || (c.lanes & (c.lanes - 1)) != 0) {
    for (unsigned i = 1; i < c.lanes; i++) r = kb_or(k, r, kb_extract(k, c, i));
    return r;
  }
  kb_kind kind = c.lanes == 64 ? KB_I64 : c.lanes == 32 ? KB_I32 : c.lanes == 16 ? KB_I16 : KB_I8;
  kb_reg word = kb_bitcast(k, c, kind, 1);
  if (c.lanes < 32) word = kb_zext(k, word, KB_I32);
  return kb_icmp(k, LLVMIntNE, word, kb_ilike(k, word, 0));
}

// One step of long division: r 2^s - q y for r in [0, y), y in [1, 2), s <= step. `inverse` is 1 / y made larger by a
// few units, so that the truncated quotient q is the true one or one more; the difference is a multiple of r's and y's
// unit less than y in magnitude, hence exact by fma, and so is adding y where it is negative.
static kb_reg divide_step(kb *k, const km_consts *m, kb_reg r, kb_reg y, kb_reg inverse, kb_reg s) {
  kb_reg power = km_float(k, kb_addi(k, kb_shli(k, s, m->man_bits), m->one_bits));
  kb_reg t = kb_fmul(k, r, power), q = kb_trunc_f(k, kb_fmul(k, t, inverse));
  r = kb_fma(k, kb_fneg(k, q), y, t);
  return kb_select(k, kb_fcmp(k, LLVMRealOLT, r, kb_flike(k, r, 0)), kb_fadd(k, r, y), r);
}

// r * 2^n mod y by long division in a loop that ends when no lane has bits left to bring down.
static kb_reg divide_loop(kb *k, const km_consts *m, kb_reg r, kb_reg y, kb_reg n) {
  double units = ldexp(1, 2 - (int)m->man_bits);
  int64_t step = (int64_t)m->man_bits - 4;
  kb_reg inverse = kb_fmuli(k, kb_fdiv(k, kb_flike(k, y, 1), y), 1 + units), zero = kb_ilike(k, n, 0);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b);
  LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "fmod");
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "fmod.step");
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "fmod.end");
  LLVMBuildBr(k->b, head);

  LLVMPositionBuilderAtEnd(k->b, head);
  kb_reg rest = r, left = n;
  rest.v = LLVMBuildPhi(k->b, LLVMTypeOf(r.v), "");
  left.v = LLVMBuildPhi(k->b, LLVMTypeOf(n.v), "");
  LLVMBuildCondBr(k->b, km_any_lane(k, kb_icmp(k, LLVMIntSGT, left, zero)).v, body, after);

  LLVMPositionBuilderAtEnd(k->b, body);
  kb_reg most = kb_ilike(k, n, step), some = kb_select(k, kb_icmp(k, LLVMIntSLT, left, most), left, most);
  some = kb_select(k, kb_icmp(k, LLVMIntSGT, some, zero), some, zero);
  kb_reg next = divide_step(k, m, rest, y, inverse, some), fewer = kb_sub(k, left, some);
  LLVMBasicBlockRef last = LLVMGetInsertBlock(k->b);
  LLVMBuildBr(k->b, head);

  LLVMBasicBlockRef from[2] = {before, last};
  LLVMAddIncoming(rest.v, (LLVMValueRef[]){r.v, next.v}, from, 2);
  LLVMAddIncoming(left.v, (LLVMValueRef[]){n.v, fewer.v}, from, 2);
  LLVMPositionBuilderAtEnd(k->b, after);
  return rest;
}

kb_reg km_scale(kb *k, const km_consts *m, kb_reg r, kb_reg n) {
  kb_reg half = kb_ashri(k, n, 1), rest = kb_sub(k, n, half);
  kb_reg a = km_float(k, kb_addi(k, kb_shli(k, half, m->man_bits), m->one_bits));
  kb_reg b = km_float(k, kb_addi(k, kb_shli(k, rest, m->man_bits), m->one_bits));
  return kb_fmul(k, kb_fmul(k, r, a), b);
}

// x = mx 2^(ey + n), y = my 2^ey: the remainder is (mx 2^n mod my) 2^ey. Where |x| < |y| it is x; lanes without a
// remainder (x infinite, y zero, either NaN) run along on numbers that do no harm.
bool km_fmod(kb *k, kb_reg x, kb_reg y, kb_reg *out) {
  if (x.kind != KB_F32 && x.kind != KB_F64) return false;
  const km_consts *m = km_consts_of(x);
  kb_reg a = kb_fabs(k, x), b = kb_fabs(k, y), zero = kb_flike(k, x, 0), inf = kb_flike(k, x, (double)INFINITY);
  kb_reg bad = kb_or(k, kb_fcmp(k, LLVMRealUNO, x, y),
                     kb_or(k, kb_fcmp(k, LLVMRealOEQ, a, inf), kb_fcmp(k, LLVMRealOEQ, b, zero)));
  kb_reg whole = kb_or(k, bad, kb_fcmp(k, LLVMRealOLT, a, b));
  km_split sx = km_split_of(k, m, x), sy = km_split_of(k, m, y);
  kb_reg n = kb_select(k, whole, kb_ilike(k, sx.exponent, 0), kb_sub(k, sx.exponent, sy.exponent));
  kb_reg above = kb_fcmp(k, LLVMRealOGE, sx.mantissa, sy.mantissa);
  kb_reg r = kb_select(k, above, kb_fsub(k, sx.mantissa, sy.mantissa), sx.mantissa);
  r = km_scale(k, m, divide_loop(k, m, r, sy.mantissa, n), sy.exponent);
  r = kb_select(k, whole, a, r);
  r = kb_fcopysign(k, r, x);
  *out = kb_select(k, bad, kb_flike(k, x, (double)NAN), r);
  return true;
}
