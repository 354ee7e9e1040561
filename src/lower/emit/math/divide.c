// Several numbers divided by one.

#include "lower/emit/math/impl.h"

// What y and the quotients must be for the steps below to be exact: 2^-24 <= y <= 2^24, and x is a zero or in
// 2^-96 .. 2^96 by magnitude. Anything else is divided one by one.
static kb_reg all_within(kb *k, const kb_reg *x, unsigned n, kb_reg y, kl_within known) {
  kb_reg least = {0}, most = {0};
  for (unsigned i = 0; i < n; i++) {
    kb_reg u = km_bits(k, known.positive ? x[i] : kb_fabs(k, x[i])),
           below = kb_addi(k, u, -1); // a zero is the greatest
    least = i ? kb_umin(k, least, below) : below;
    if (!known.moderate) most = i ? kb_umax(k, most, u) : u;
  }
  kb_reg low = kb_ilike(k, least, ((127 - 96) << 23) - 1), high = kb_ilike(k, least, (127 + 96) << 23);
  kb_reg r = kb_icmp(k, LLVMIntUGE, least, low);
  if (!known.moderate) r = kb_and(k, r, kb_icmp(k, LLVMIntULE, most, high));
  kb_reg above = kb_fcmp(k, LLVMRealOGE, y, kb_flike(k, y, 0x1p-24));
  return kb_and(k, r, kb_and(k, above, kb_fcmp(k, LLVMRealOLE, y, kb_flike(k, y, 0x1p24))));
}

// r is 1 / y correctly rounded, and r + low is 1 / y to 2^-47. So q, rounded once, is within an ulp of x / y, what it
// leaves of x is a number, and q and that times r, rounded, is the correctly rounded quotient (Markstein: for r
// correctly rounded, any such q). A zero's sign is x's.
static void by_reciprocal(kb *k, const kb_reg *x, unsigned n, kb_reg y, kl_within known, kb_reg *out) {
  kb_reg minus = kb_fneg(k, y), one = kb_flike(k, y, 1), r = kb_fdiv(k, one, y);
  kb_reg low = kb_fmul(k, r, kb_fma(k, minus, r, one));
  for (unsigned i = 0; i < n; i++) {
    kb_reg q = kb_fma(k, x[i], r, kb_fmul(k, x[i], low));
    q = kb_fma(k, kb_fma(k, minus, q, x[i]), r, q);
    out[i] = known.positive ? q : kb_fcopysign(k, q, x[i]);
  }
}

void km_divide_by(kb *k, const kb_reg *x, unsigned n, kb_reg y, kl_within known, kb_reg *out) {
  LLVMBasicBlockRef quick = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "by_reciprocal");
  LLVMBasicBlockRef each = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "by_division");
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "divided");
  LLVMBuildCondBr(k->b, all_within(k, x, n, y, known).v, quick, each);
  LLVMPositionBuilderAtEnd(k->b, quick);
  by_reciprocal(k, x, n, y, known, out);
  LLVMBuildBr(k->b, after);
  LLVMBasicBlockRef from[2] = {quick, each};
  for (unsigned i = 0; i < n; i++) {
    LLVMPositionBuilderAtEnd(k->b, after);
    LLVMValueRef phi = LLVMBuildPhi(k->b, LLVMTypeOf(x[i].v), ""), both[2] = {out[i].v};
    LLVMPositionBuilderAtEnd(k->b, each);
    both[1] = kb_fdiv(k, x[i], y).v;
    LLVMAddIncoming(phi, both, from, 2);
    out[i].v = phi;
  }
  LLVMBuildBr(k->b, after);
  LLVMPositionBuilderAtEnd(k->b, after);
}
