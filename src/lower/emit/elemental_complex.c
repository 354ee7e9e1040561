// Complex ops on wide registers, part by part. The sequences of rounded operations are those that eval.h defines, so
// the results are the same bits. The parts are F32 or F64.

#include "lower/emit/emit.h"
#include "lower/emit/math/math.h"

static kb_reg cmp(kb *k, LLVMRealPredicate p, kb_reg a, double b) {
  return kb_fcmp(k, p, a, kb_flike(k, a, b));
}
static kb_reg is_nan(kb *k, kb_reg a) {
  return kb_fcmp(k, LLVMRealUNO, a, a);
}
static kb_reg is_inf(kb *k, kb_reg a) {
  return cmp(k, LLVMRealOEQ, kb_fabs(k, a), __builtin_inf());
}
static kb_reg is_finite(kb *k, kb_reg a) {
  return cmp(k, LLVMRealOLT, kb_fabs(k, a), __builtin_inf());
}
static kb_reg choose(kb *k, kb_reg c, kb_reg a, kb_reg b) {
  return kb_select(k, c, a, b);
}

static kl_pair multiply(kb *k, kl_pair x, kl_pair y) {
  return (kl_pair){kb_fsub(k, kb_fmul(k, x.re, y.re), kb_fmul(k, x.im, y.im)),
                   kb_fadd(k, kb_fmul(k, x.re, y.im), kb_fmul(k, x.im, y.re))};
}

// Smith's quotient. With the larger part p and the smaller q of the divisor, r = q / p and den = p + q*r in both cases;
// only the order of the operands differs, and + is commutative.
static kl_pair smith(kb *k, kl_pair x, kl_pair y) {
  kb_reg wide = kb_fcmp(k, LLVMRealOGE, kb_fabs(k, y.re), kb_fabs(k, y.im));
  kb_reg p = choose(k, wide, y.re, y.im), q = choose(k, wide, y.im, y.re);
  kb_reg r = kb_fdiv(k, q, p), den = kb_fadd(k, p, kb_fmul(k, q, r));
  kb_reg ar = kb_fmul(k, x.re, r), br = kb_fmul(k, x.im, r);
  kb_reg re = choose(k, wide, kb_fadd(k, x.re, br), kb_fadd(k, ar, x.im));
  kb_reg im = choose(k, wide, kb_fsub(k, x.im, ar), kb_fsub(k, br, x.re));
  return (kl_pair){kb_fdiv(k, re, den), kb_fdiv(k, im, den)};
}

// copysign(a infinite ? 1 : 0, a)
static kb_reg boxed(kb *k, kb_reg a) {
  return kb_fcopysign(k, choose(k, is_inf(k, a), kb_flike(k, a, 1), kb_flike(k, a, 0)), a);
}

// Where Smith's quotient is NaN in both parts although the operands tell a zero or an infinity; the rules are ordered.
static kl_pair divide(kb *k, kl_pair x, kl_pair y) {
  kl_pair r = smith(k, x, y);
  kb_reg lost = kb_and(k, is_nan(k, r.re), is_nan(k, r.im));
  kb_reg inf = kb_flike(k, x.re, __builtin_inf()), zero = kb_flike(k, x.re, 0);
  kb_reg nan_x = kb_and(k, is_nan(k, x.re), is_nan(k, x.im));
  kb_reg zero_y = kb_and(k, cmp(k, LLVMRealOEQ, y.re, 0), cmp(k, LLVMRealOEQ, y.im, 0));
  kb_reg one = kb_and(k, zero_y, kb_not(k, nan_x));
  kb_reg inf_x = kb_or(k, is_inf(k, x.re), is_inf(k, x.im)), fin_y = kb_and(k, is_finite(k, y.re), is_finite(k, y.im));
  kb_reg two = kb_and(k, inf_x, fin_y);
  kb_reg inf_y = kb_or(k, is_inf(k, y.re), is_inf(k, y.im)), fin_x = kb_and(k, is_finite(k, x.re), is_finite(k, x.im));
  kb_reg three = kb_and(k, inf_y, fin_x);

  kb_reg s = kb_fcopysign(k, inf, y.re);
  kl_pair by_zero = {kb_fmul(k, s, x.re), kb_fmul(k, s, x.im)};
  // Rules 2 and 3 are one form: (a*c + b*d, b*c - a*d) with one side boxed, times infinity or zero.
  kl_pair xb = {choose(k, two, boxed(k, x.re), x.re), choose(k, two, boxed(k, x.im), x.im)};
  kl_pair yb = {choose(k, two, y.re, boxed(k, y.re)), choose(k, two, y.im, boxed(k, y.im))};
  kb_reg scale = choose(k, two, inf, zero);
  kl_pair boxed_q = {kb_fmul(k, scale, kb_fadd(k, kb_fmul(k, xb.re, yb.re), kb_fmul(k, xb.im, yb.im))),
                     kb_fmul(k, scale, kb_fsub(k, kb_fmul(k, xb.im, yb.re), kb_fmul(k, xb.re, yb.im)))};

  kb_reg use_boxed = kb_and(k, lost, kb_or(k, two, three)), use_zero = kb_and(k, lost, one);
  r.re = choose(k, use_zero, by_zero.re, choose(k, use_boxed, boxed_q.re, r.re));
  r.im = choose(k, use_zero, by_zero.im, choose(k, use_boxed, boxed_q.im, r.im));
  return r;
}

// x < y (or, with `equal`, x <= y) in the lexicographic order of (re, im).
static kb_reg ordered(kb *k, kl_pair x, kl_pair y, bool greater, bool equal) {
  LLVMRealPredicate strict = greater ? LLVMRealOGT : LLVMRealOLT;
  LLVMRealPredicate last = !equal ? strict : greater ? LLVMRealOGE : LLVMRealOLE;
  kb_reg tie = kb_and(k, kb_fcmp(k, LLVMRealOEQ, x.re, y.re), kb_fcmp(k, last, x.im, y.im));
  return kb_or(k, kb_fcmp(k, strict, x.re, y.re), tie);
}

static kb_reg compare(kb *k, kl_direction d, kl_pair x, kl_pair y) {
  switch (d) {
  case KL_EQ: return kb_and(k, kb_fcmp(k, LLVMRealOEQ, x.re, y.re), kb_fcmp(k, LLVMRealOEQ, x.im, y.im));
  case KL_NE: return kb_or(k, kb_fcmp(k, LLVMRealUNE, x.re, y.re), kb_fcmp(k, LLVMRealUNE, x.im, y.im));
  case KL_LT: return ordered(k, x, y, false, false);
  case KL_LE: return ordered(k, x, y, false, true);
  case KL_GT: return ordered(k, x, y, true, false);
  default: return ordered(k, x, y, true, true);
  }
}

kl_pair kl_emit_complex_op(kb *k, const kl_instr *in, kl_dtype part, const kl_pair *x) {
  kl_pair r = x[0];
  switch (in->op) {
  case KL_OP_ADD: return (kl_pair){kb_fadd(k, x[0].re, x[1].re), kb_fadd(k, x[0].im, x[1].im)};
  case KL_OP_SUBTRACT: return (kl_pair){kb_fsub(k, x[0].re, x[1].re), kb_fsub(k, x[0].im, x[1].im)};
  case KL_OP_MULTIPLY: return multiply(k, x[0], x[1]);
  case KL_OP_DIVIDE: return divide(k, x[0], x[1]);
  case KL_OP_NEGATE: return (kl_pair){kb_fneg(k, x[0].re), kb_fneg(k, x[0].im)};
  case KL_OP_ABS: return (kl_pair){.re = km_hypot(k, x[0].re, x[0].im)};
  case KL_OP_REAL: return (kl_pair){.re = x[0].re};
  case KL_OP_IMAG: return (kl_pair){.re = x[0].im};
  case KL_OP_COMPARE: return (kl_pair){.re = compare(k, in->direction, x[0], x[1])};
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM: {
    kb_reg first = ordered(k, x[0], x[1], in->op == KL_OP_MAXIMUM, true);
    r.re = kb_select(k, first, x[0].re, x[1].re);
    r.im = kb_select(k, first, x[0].im, x[1].im);
    return r;
  }
  default: return r; // copy
  }
}
