// Elementary functions out of line. A kernel expands a function once for each of its lanes, or on the host of its
// vectors; where that would make it long, it calls one copy of each instead, so that compile time follows the number of
// functions. A kernel that is not long, or on NVPTX of one function only, pays nothing for that.

#include "lower/emit/emit.h"

#include <stdio.h>

// About how many operations the expansion of an op on one lane is; 0 where a call would be as long.
static unsigned size_of(kl_op op, kl_dtype t) {
  if (!kl_is_float(t) && !kl_is_complex(t)) return 0;
  unsigned n = 0;
  switch (op) {
  case KL_OP_EXP:
  case KL_OP_LOG:
  case KL_OP_RSQRT: n = 25; break;
  case KL_OP_TANH:
  case KL_OP_LOGISTIC:
  case KL_OP_ERF:
  case KL_OP_EXPM1:
  case KL_OP_EXP10:
  case KL_OP_CBRT: n = 40; break;
  case KL_OP_LOG1P:
  case KL_OP_SINH:
  case KL_OP_COSH:
  case KL_OP_ASIN:
  case KL_OP_ACOS:
  case KL_OP_ATAN: n = 50; break;
  case KL_OP_ASINH:
  case KL_OP_ACOSH:
  case KL_OP_ATANH:
  case KL_OP_ATAN2: n = 75; break;
  case KL_OP_REMAINDER:
  case KL_OP_SIN:
  case KL_OP_COS:
  case KL_OP_TAN: n = 110; break;
  case KL_OP_POWER: n = 150; break;
  case KL_OP_SIGN:
  case KL_OP_SQRT:
  case KL_OP_DIVIDE: n = kl_is_complex(t) ? 40 : 0; break;
  default: return 0;
  }
  return kl_is_complex(t) ? 4 * n : n;
}

// On the host LLVM takes more than linear time for a function: one that is made for each of many copies is worth a call
// by itself.
enum { LONG_BODY = 2400, LONG_ON_HOST = 12000 };

bool kl_is_long(const kl_emit *e, const kl_body *body) {
  uint64_t size = 0, functions = 0;
  for (uint32_t i = 0; i < body->nsteps; i++) {
    const kl_step *s = &body->steps[i];
    if (s->kind != KL_STEP_OP || !s->noperands) continue;
    unsigned n = size_of(s->op.op, body->steps[s->operands[0]].dtype);
    size += n * (uint64_t)kl_extent(body, s->regs);
    functions += n != 0;
  }
  if (e->k.machine == KB_HOST) return size > (e->plan->seldom ? 0 : LONG_ON_HOST);
  return functions > 1 && size > LONG_BODY;
}

// The parts of complex numbers are passed one by one, and come back side by side.
static kb_reg join(kb *k, kl_dtype to, kl_pair r) {
  return kl_is_complex(to) ? kb_concat(k, (kb_reg[]){r.re, r.im}, 2) : r.re;
}
static kl_pair part(kb *k, kl_dtype to, kb_reg r) {
  if (!kl_is_complex(to)) return (kl_pair){.re = r};
  unsigned n = r.lanes / 2u;
  return (kl_pair){kb_slice(k, r, 0, n), kb_slice(k, r, n, n)};
}

static unsigned arguments(kl_dtype from, unsigned n, const kl_pair *x, kb_reg *out) {
  unsigned count = 0;
  for (unsigned i = 0; i < n; i++) {
    out[count++] = x[i].re;
    if (kl_is_complex(from)) out[count++] = x[i].im;
  }
  return count;
}

static void attribute(kb *k, LLVMValueRef fn, const char *name) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(k->llcx, kind, 0));
}

// Builds the function where there is none of the name yet.
static LLVMValueRef function_of(kb *k, const kl_plan_op *op, kl_dtype from, kl_dtype to, kl_dtype round_to,
                                const kb_reg *args, unsigned n, kb_kind result, unsigned lanes) {
  char name[96];
  snprintf(name, sizeof name, "kiln$%u$%u$%u$%u$%u$%u", (unsigned)op->op, op->nonpositive, (unsigned)from, (unsigned)to,
           (unsigned)round_to, args[0].lanes);
  LLVMValueRef fn = LLVMGetNamedFunction(k->module, name);
  if (fn) return fn;
  LLVMTypeRef types[4];
  for (unsigned i = 0; i < n; i++) types[i] = LLVMTypeOf(args[i].v);
  fn = LLVMAddFunction(k->module, name, LLVMFunctionType(kb_type(k, result, lanes), types, n, false));
  LLVMSetLinkage(fn, LLVMInternalLinkage);
  attribute(k, fn, "noinline");
  attribute(k, fn, "nounwind");
  attribute(k, fn, "memory"); // none

  kb inner = *k;
  inner.fn = fn;
  inner.calls = false;
  inner.b = LLVMCreateBuilderInContext(k->llcx);
  LLVMPositionBuilderAtEnd(inner.b, LLVMAppendBasicBlockInContext(k->llcx, fn, ""));
  kl_pair x[3] = {{{0}}};
  unsigned at = 0;
  for (unsigned i = 0; at < n; i++) {
    x[i].re = args[at], x[i].re.v = LLVMGetParam(fn, at), at++;
    if (kl_is_complex(from)) x[i].im = args[at], x[i].im.v = LLVMGetParam(fn, at), at++;
  }
  LLVMBuildRet(inner.b, join(&inner, to, kl_emit_op(&inner, op, from, to, round_to, x)).v);
  LLVMDisposeBuilder(inner.b);
  return fn;
}

bool kl_emit_call(kb *k, const kl_plan_op *op, kl_dtype from, kl_dtype to, kl_dtype round_to, const kl_pair *x,
                  kl_pair *out) {
  if (!k->calls || !size_of(op->op, from)) return false;
  kb_reg args[4];
  unsigned n = arguments(from, (unsigned)kl_op_table[op->op].arity, x, args);
  unsigned lanes = args[0].lanes * (kl_is_complex(to) ? 2u : 1u);
  kb_kind kind = kl_wide_kind(to);
  LLVMValueRef fn = function_of(k, op, from, to, round_to, args, n, kind, lanes), v[4];
  for (unsigned i = 0; i < n; i++) v[i] = args[i].v;
  LLVMValueRef r = LLVMBuildCall2(k->b, LLVMGlobalGetValueType(fn), fn, v, n, "");
  *out = part(k, to, (kb_reg){r, (uint8_t)kind, (uint16_t)lanes});
  return true;
}
