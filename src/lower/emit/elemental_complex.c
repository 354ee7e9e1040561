// Complex ops on wide registers, part by part. Sums, products and comparisons are the sequences of rounded operations
// that eval.h defines, so their results are the same bits. The parts are F32 or F64.

#include "lower/emit/emit.h"
#include "lower/emit/math/complex/complex.h"
#include "lower/emit/math/math.h"

static kl_pair multiply(kb *k, kl_pair x, kl_pair y) {
  return (kl_pair){kb_fsub(k, kb_fmul(k, x.re, y.re), kb_fmul(k, x.im, y.im)),
                   kb_fadd(k, kb_fmul(k, x.re, y.im), kb_fmul(k, x.im, y.re))};
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

static kl_pair extreme(kb *k, kl_pair x, kl_pair y, bool greatest) {
  kb_reg first = ordered(k, x, y, greatest, true);
  return (kl_pair){kb_select(k, first, x.re, y.re), kb_select(k, first, x.im, y.im)};
}

static km_complex parts(kl_pair x) {
  return (km_complex){x.re, x.im};
}
static kl_pair pair(km_complex z) {
  return (kl_pair){z.re, z.im};
}

kl_pair kl_emit_complex_op(kb *k, const kl_plan_op *op, kl_dtype part, const kl_pair *x) {
  switch (op->op) {
  case KL_OP_ADD: return (kl_pair){kb_fadd(k, x[0].re, x[1].re), kb_fadd(k, x[0].im, x[1].im)};
  case KL_OP_SUBTRACT: return (kl_pair){kb_fsub(k, x[0].re, x[1].re), kb_fsub(k, x[0].im, x[1].im)};
  case KL_OP_MULTIPLY: return multiply(k, x[0], x[1]);
  case KL_OP_DIVIDE: return pair(km_complex_divide(k, parts(x[0]), parts(x[1])));
  case KL_OP_POWER: return pair(km_complex_power(k, parts(x[0]), parts(x[1])));
  case KL_OP_ATAN2: return pair(km_complex_atan2(k, parts(x[0]), parts(x[1])));
  case KL_OP_NEGATE: return (kl_pair){kb_fneg(k, x[0].re), kb_fneg(k, x[0].im)};
  case KL_OP_ABS: return (kl_pair){.re = km_hypot(k, x[0].re, x[0].im)};
  case KL_OP_REAL: return (kl_pair){.re = x[0].re};
  case KL_OP_IMAG: return (kl_pair){.re = x[0].im};
  case KL_OP_COMPARE: return (kl_pair){.re = compare(k, op->direction, x[0], x[1])};
  case KL_OP_MAXIMUM: return extreme(k, x[0], x[1], true);
  case KL_OP_MINIMUM: return extreme(k, x[0], x[1], false);
  case KL_OP_CLAMP: return extreme(k, extreme(k, x[0], x[1], true), x[2], false);
  default: return pair(km_complex_call(k, op->op, parts(x[0])));
  }
}
