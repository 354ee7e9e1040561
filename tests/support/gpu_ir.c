#include "gpu_ir.h"

#include "jit/jit.h"
#include "ptx_isa.h"
#include <check.h>
#include <math.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <stdlib.h>

// --- the text -----------------------------------------------------------------------------------------------------

static const struct {
  const char *from, *to;
} changes[] = {
    {"ptr addrspace(1)", "ptr"},
    {"addrspace(1) ", ""},
    {"ptx_kernel ", ""},
    {"target datalayout", "; target datalayout"},
    {"target triple", "; target triple"},
};

static void retarget_line(kl_sb *b, const char *text, size_t n) {
  const char *end = text + n;
  const char *from = text; // not copied yet
  while (text < end) {
    size_t i = 0, n = 0;
    if (!strchr("pat", *text)) { // no change begins so
      text++;
      continue;
    }
    for (; i < KL_COUNT(changes); i++) {
      n = strlen(changes[i].from);
      if (n <= (size_t)(end - text) && strncmp(text, changes[i].from, n) == 0) break;
    }
    if (i == KL_COUNT(changes)) {
      text++;
      continue;
    }
    kl_sb_put(b, (kl_str){from, (size_t)(text - from)});
    kl_sb_puts(b, changes[i].to);
    from = text += n;
  }
  kl_sb_put(b, (kl_str){from, (size_t)(end - from)});
}

static void retarget(kl_sb *b, const char *text) {
  while (*text) {
    size_t n = strcspn(text, "\n");
    retarget_line(b, text, n + (text[n] == '\n'));
    text += n + (text[n] == '\n');
  }
}

static const char *type_of(const kiln_manifest *m, const kiln_argument *a) {
  if (a->kind == KILN_ARGUMENT_COUNT) return "i64";
  if (a->kind == KILN_ARGUMENT_SLOT && m->slots[a->slot].by_value)
    return kiln_dtype_bits(m->slots[a->slot].type.dtype) == 64 ? "i64" : "i32";
  return "ptr";
}

// void gpu_run_K(args, block, thread): one thread of launch K.
static void add_entry(kl_sb *b, const kiln_manifest *m, size_t i) {
  const kiln_launch *l = &m->launches[i];
  kl_sbf(b, "define void @gpu_run_%zu(ptr %%a, i32 %%b, i32 %%t) {\n", i);
  kl_sbf(b, "  store i32 %%b, ptr @gpu_block\n  store i32 %%t, ptr @gpu_thread\n");
  for (size_t k = 0; k < l->argument_count; k++)
    kl_sbf(b, "  %%p%zu = getelementptr i64, ptr %%a, i64 %zu\n  %%v%zu = load %s, ptr %%p%zu\n", k, k, k,
           type_of(m, &l->arguments[k]), k);
  kl_sbf(b, "  call void @%s(", l->kernel);
  for (size_t k = 0; k < l->argument_count; k++)
    kl_sbf(b, "%s%s %%v%zu", k ? ", " : "", type_of(m, &l->arguments[k]), k);
  kl_sbf(b, ")\n  ret void\n}\n");
}

// --- instructions ---------------------------------------------------------------------------------------------------

// What LLVM selects for an IR operation or intrinsic: one PTX instruction. Types of the operands and of the result.
typedef struct selection {
  LLVMOpcode op;
  const char *name, *from, *to;
  unsigned operands;
  const char *mnemonic;
} selection;

// clang-format off
static const selection selections[] = {
    {LLVMFAdd, "fadd", "float", "float", 2, "add.rn.f32"},
    {LLVMFAdd, "fadd", "double", "double", 2, "add.rn.f64"},
    {LLVMFAdd, "fadd", "<2 x half>", "<2 x half>", 2, "add.rn.f16x2"},
    {LLVMFSub, "fsub", "float", "float", 2, "sub.rn.f32"},
    {LLVMFSub, "fsub", "double", "double", 2, "sub.rn.f64"},
    {LLVMFSub, "fsub", "<2 x half>", "<2 x half>", 2, "sub.rn.f16x2"},
    {LLVMFMul, "fmul", "float", "float", 2, "mul.rn.f32"},
    {LLVMFMul, "fmul", "double", "double", 2, "mul.rn.f64"},
    {LLVMFMul, "fmul", "<2 x half>", "<2 x half>", 2, "mul.rn.f16x2"},
    {LLVMFDiv, "fdiv", "float", "float", 2, "div.rn.f32"},
    {LLVMFDiv, "fdiv", "double", "double", 2, "div.rn.f64"},
    {LLVMFNeg, "fneg", "float", "float", 1, "neg.f32"},
    {LLVMFNeg, "fneg", "double", "double", 1, "neg.f64"},
    {LLVMFPTrunc, "fptrunc", "double", "float", 1, "cvt.rn.f32.f64"},
    {LLVMFPTrunc, "fptrunc", "float", "half", 1, "cvt.rn.f16.f32"},
    {LLVMFPExt, "fpext", "half", "float", 1, "cvt.f32.f16"},
    {LLVMFPExt, "fpext", "float", "double", 1, "cvt.f64.f32"},
    {LLVMSIToFP, "sitofp", "i32", "float", 1, "cvt.rn.f32.s32"},
    {LLVMSIToFP, "sitofp", "i64", "float", 1, "cvt.rn.f32.s64"},
    {LLVMSIToFP, "sitofp", "i32", "double", 1, "cvt.rn.f64.s32"},
    {LLVMSIToFP, "sitofp", "i64", "double", 1, "cvt.rn.f64.s64"},
    {LLVMUIToFP, "uitofp", "i32", "float", 1, "cvt.rn.f32.u32"},
    {LLVMUIToFP, "uitofp", "i64", "float", 1, "cvt.rn.f32.u64"},
    {LLVMUIToFP, "uitofp", "i32", "double", 1, "cvt.rn.f64.u32"},
    {LLVMUIToFP, "uitofp", "i64", "double", 1, "cvt.rn.f64.u64"},
    {LLVMFPToSI, "fptosi", "float", "i32", 1, "cvt.rzi.s32.f32"},
    {LLVMFPToSI, "fptosi", "float", "i64", 1, "cvt.rzi.s64.f32"},
    {LLVMFPToSI, "fptosi", "double", "i32", 1, "cvt.rzi.s32.f64"},
    {LLVMFPToSI, "fptosi", "double", "i64", 1, "cvt.rzi.s64.f64"},
    {LLVMFPToUI, "fptoui", "float", "i32", 1, "cvt.rzi.u32.f32"},
    {LLVMFPToUI, "fptoui", "float", "i64", 1, "cvt.rzi.u64.f32"},
    {LLVMFPToUI, "fptoui", "double", "i32", 1, "cvt.rzi.u32.f64"},
    {LLVMFPToUI, "fptoui", "double", "i64", 1, "cvt.rzi.u64.f64"},
    {LLVMCall, "llvm.fma.f32", "float", "float", 3, "fma.rn.f32"},
    {LLVMCall, "llvm.fma.f64", "double", "double", 3, "fma.rn.f64"},
    {LLVMCall, "llvm.fma.v2f16", "<2 x half>", "<2 x half>", 3, "fma.rn.f16x2"},
    {LLVMCall, "llvm.fabs.f32", "float", "float", 1, "abs.f32"},
    {LLVMCall, "llvm.fabs.f64", "double", "double", 1, "abs.f64"},
    {LLVMCall, "llvm.sqrt.f32", "float", "float", 1, "sqrt.rn.f32"},
    {LLVMCall, "llvm.sqrt.f64", "double", "double", 1, "sqrt.rn.f64"},
    {LLVMCall, "llvm.floor.f32", "float", "float", 1, "cvt.rmi.f32.f32"},
    {LLVMCall, "llvm.floor.f64", "double", "double", 1, "cvt.rmi.f64.f64"},
    {LLVMCall, "llvm.ceil.f32", "float", "float", 1, "cvt.rpi.f32.f32"},
    {LLVMCall, "llvm.ceil.f64", "double", "double", 1, "cvt.rpi.f64.f64"},
    {LLVMCall, "llvm.trunc.f32", "float", "float", 1, "cvt.rzi.f32.f32"},
    {LLVMCall, "llvm.trunc.f64", "double", "double", 1, "cvt.rzi.f64.f64"},
    {LLVMCall, "llvm.roundeven.f32", "float", "float", 1, "cvt.rni.f32.f32"},
    {LLVMCall, "llvm.roundeven.f64", "double", "double", 1, "cvt.rni.f64.f64"},
    {LLVMCall, "llvm.maximum.f32", "float", "float", 2, "max.NaN.f32"},
    {LLVMCall, "llvm.minimum.f32", "float", "float", 2, "min.NaN.f32"},
    {LLVMCall, "llvm.maximum.v2f16", "<2 x half>", "<2 x half>", 2, "max.NaN.f16x2"},
    {LLVMCall, "llvm.minimum.v2f16", "<2 x half>", "<2 x half>", 2, "min.NaN.f16x2"},
    {LLVMCall, "llvm.maximum.v2bf16", "<2 x bfloat>", "<2 x bfloat>", 2, "max.NaN.bf16x2"},
    {LLVMCall, "llvm.minimum.v2bf16", "<2 x bfloat>", "<2 x bfloat>", 2, "min.NaN.bf16x2"},
    {LLVMCall, "llvm.nvvm.fma.rn.bf16x2", "<2 x bfloat>", "<2 x bfloat>", 3, "fma.rn.bf16x2"},
    {LLVMCall, "llvm.nvvm.ff2bf16x2.rn", "float", "<2 x bfloat>", 2, "cvt.rn.bf16x2.f32"},
    {LLVMCall, "llvm.nvvm.ff2f16x2.rn", "float", "<2 x half>", 2, "cvt.rn.f16x2.f32"},
    {LLVMCall, "llvm.nvvm.f2i.rz", "float", "i32", 1, "cvt.rzi.s32.f32"},
    {LLVMCall, "llvm.nvvm.f2ui.rz", "float", "i32", 1, "cvt.rzi.u32.f32"},
    {LLVMCall, "llvm.nvvm.d2i.rz", "double", "i32", 1, "cvt.rzi.s32.f64"},
    {LLVMCall, "llvm.nvvm.d2ui.rz", "double", "i32", 1, "cvt.rzi.u32.f64"},
    {LLVMCall, "llvm.nvvm.ex2.approx.ftz.f32", "float", "float", 1, "ex2.approx.ftz.f32"},
    {LLVMCall, "llvm.nvvm.rcp.approx.ftz.f", "float", "float", 1, "rcp.approx.ftz.f32"},
    {LLVMCall, "llvm.nvvm.rsqrt.approx.ftz.f", "float", "float", 1, "rsqrt.approx.ftz.f32"},
    // the sign's operand comes first in PTX, last here
    {LLVMCall, "llvm.copysign.f32", "float", "float", 2, "copysign.f32"},
    {LLVMCall, "llvm.copysign.f64", "double", "double", 2, "copysign.f64"},
};
// clang-format on

// Operations whose IR meaning, PTX instruction and CPU instruction agree on everything the IR defines.
static const LLVMOpcode native[] = {
    LLVMRet,           LLVMBr,
    LLVMPHI,           LLVMAdd,
    LLVMSub,           LLVMMul,
    LLVMUDiv,          LLVMSDiv,
    LLVMURem,          LLVMSRem,
    LLVMAnd,           LLVMOr,
    LLVMXor,           LLVMFCmp,
    LLVMICmp,          LLVMTrunc,
    LLVMZExt,          LLVMSExt,
    LLVMBitCast,       LLVMSelect,
    LLVMLoad,          LLVMStore,
    LLVMFreeze,        LLVMExtractElement,
    LLVMInsertElement, LLVMShuffleVector,
    LLVMGetElementPtr,
};
static const char *const native_calls[] = {"llvm.ctpop.", "llvm.ctlz.", "llvm.smin.",
                                           "llvm.smax.",  "llvm.umin.", "llvm.umax."};

// What the IR leaves open comes out as this: who counts on it gets it wrong.
enum { OPEN = 0x5eed };

// kind: LLVMShl, LLVMLShr or LLVMAShr, and the width times 256.
static uint64_t shift(uint64_t a, uint64_t n, uint64_t kind) {
  unsigned bits = (unsigned)kind >> 8, up = 64 - bits;
  if (n >= bits) return OPEN;
  if ((kind & 255) == LLVMShl) return a << n;
  return (kind & 255) == LLVMLShr ? a >> n : (uint64_t)((int64_t)(a << up) >> up >> n);
}

// In place of an fptosi or fptoui by the instruction: its operand, where the result lies in the range of the type.
// kind: 1 from double, 2 to 64 bits, 4 signed.
static uint64_t in_range(uint64_t a, uint64_t result, uint64_t kind) {
  uint32_t low = (uint32_t)a;
  float f;
  double v;
  memcpy(&f, &low, sizeof f);
  memcpy(&v, &a, sizeof v);
  if (!(kind & 1)) v = (double)f;
  double limit = ldexp(1, (kind & 2 ? 64 : 32) - (kind & 4 ? 1 : 0));
  return trunc(v) < limit && trunc(v) >= (kind & 4 ? -limit : 0) ? result : OPEN;
}

// "Addresses must be naturally aligned" (9.7.9.8 ld, 9.7.9.12 st): the IR's alignment decides on how wide they are.
static uint64_t aligned(uint64_t address, uint64_t align, uint64_t unused) {
  ck_assert_msg(address % align == 0, "an access at %#llx, said to be aligned to %llu", (unsigned long long)address,
                (unsigned long long)align);
  return 0;
}

typedef struct rewriter {
  LLVMModuleRef m;
  LLVMContextRef cx;
  LLVMBuilderRef b;
} rewriter;

static LLVMTypeRef int_type(rewriter *w, unsigned bits) {
  return LLVMIntTypeInContext(w->cx, bits);
}

static unsigned bits_of(LLVMTypeRef t) {
  switch (LLVMGetTypeKind(t)) {
  case LLVMHalfTypeKind:
  case LLVMBFloatTypeKind: return 16;
  case LLVMFloatTypeKind: return 32;
  case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(t);
  case LLVMVectorTypeKind: return LLVMGetVectorSize(t) * bits_of(LLVMGetElementType(t));
  default: return 64;
  }
}

static LLVMValueRef to_register(rewriter *w, LLVMValueRef v) {
  LLVMTypeRef t = LLVMTypeOf(v);
  if (LLVMGetTypeKind(t) == LLVMPointerTypeKind) return LLVMBuildPtrToInt(w->b, v, int_type(w, 64), "");
  v = LLVMBuildBitCast(w->b, v, int_type(w, bits_of(t)), "");
  return LLVMBuildZExt(w->b, v, int_type(w, 64), "");
}

static LLVMValueRef from_register(rewriter *w, LLVMValueRef v, LLVMTypeRef t) {
  return LLVMBuildBitCast(w->b, LLVMBuildTrunc(w->b, v, int_type(w, bits_of(t)), ""), t, "");
}

static LLVMValueRef constant(rewriter *w, uint64_t v) {
  return LLVMConstInt(int_type(w, 64), v, false);
}

static LLVMValueRef call(rewriter *w, ptx_fn fn, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMTypeRef i64 = int_type(w, 64), fty = LLVMFunctionType(i64, (LLVMTypeRef[]){i64, i64, i64}, 3, false);
  LLVMValueRef at = LLVMConstIntToPtr(constant(w, (uintptr_t)fn), LLVMPointerTypeInContext(w->cx, 0));
  return LLVMBuildCall2(w->b, fty, at, (LLVMValueRef[]){a, b, c}, 3, "");
}

static __attribute__((noreturn)) void unknown(LLVMValueRef i) {
  ck_abort_msg("nothing says what PTX this becomes:%s", LLVMPrintValueToString(i));
}

static void replace(rewriter *w, LLVMValueRef i, LLVMValueRef by) {
  if (by) LLVMReplaceAllUsesWith(i, from_register(w, by, LLVMTypeOf(i)));
  LLVMInstructionEraseFromParent(i);
}

// Replaces an instruction by a call of what the PTX instruction does, with its operands in order.
static LLVMValueRef perform(rewriter *w, LLVMValueRef i, const char *mnemonic, unsigned operands) {
  ptx_fn fn = ptx_instruction(mnemonic);
  ck_assert_msg(fn != NULL && operands <= 3, "%s is not described", mnemonic);
  LLVMValueRef x[3] = {constant(w, 0), constant(w, 0), constant(w, 0)};
  bool swap = strncmp(mnemonic, "copysign.", 9) == 0;
  for (unsigned k = 0; k < operands; k++) x[k] = to_register(w, LLVMGetOperand(i, swap ? 1 - k : k));
  return call(w, fn, x[0], x[1], x[2]);
}

static void rewrite_call(rewriter *w, LLVMValueRef i) {
  LLVMValueRef callee = LLVMGetCalledValue(i);
  unsigned n = LLVMGetNumArgOperands(i);
  if (LLVMIsAInlineAsm(callee)) {
    char mnemonic[32];
    size_t size;
    const char *text = LLVMGetInlineAsmAsmString(callee, &size);
    snprintf(mnemonic, sizeof mnemonic, "%.*s", (int)strcspn(text, " "), text);
    return replace(w, i, perform(w, i, mnemonic, n));
  }
  const char *name = LLVMGetValueName2(callee, &(size_t){0});
  for (size_t k = 0; k < KL_COUNT(selections); k++) {
    if (strcmp(name, selections[k].name) == 0) return replace(w, i, perform(w, i, selections[k].mnemonic, n));
  }
  for (size_t k = 0; k < KL_COUNT(native_calls); k++) {
    if (strncmp(name, native_calls[k], strlen(native_calls[k])) == 0) return;
  }
  if (strncmp(name, "llvm.nvvm.griddepcontrol.", 25) == 0) return replace(w, i, NULL);
  bool block = strcmp(name, "llvm.nvvm.read.ptx.sreg.ctaid.x") == 0;
  if (!block && strcmp(name, "llvm.nvvm.read.ptx.sreg.tid.x") != 0) unknown(i);
  LLVMValueRef from = LLVMGetNamedGlobal(w->m, block ? "gpu_block" : "gpu_thread");
  LLVMReplaceAllUsesWith(i, LLVMBuildLoad2(w->b, int_type(w, 32), from, ""));
  LLVMInstructionEraseFromParent(i);
}

static void rewrite_selected(rewriter *w, LLVMValueRef i, LLVMOpcode op) {
  LLVMValueRef x = LLVMGetOperand(i, 0);
  char *from = LLVMPrintTypeToString(LLVMTypeOf(x)), *to = LLVMPrintTypeToString(LLVMTypeOf(i));
  const selection *s = selections, *end = s + KL_COUNT(selections);
  while (s < end && !(s->op == op && strcmp(s->from, from) == 0 && strcmp(s->to, to) == 0)) s++;
  if (s == end) unknown(i);
  LLVMDisposeMessage(from);
  LLVMDisposeMessage(to);
  LLVMValueRef r = perform(w, i, s->mnemonic, (unsigned)LLVMGetNumOperands(i));
  if (op == LLVMFPToSI || op == LLVMFPToUI) {
    uint64_t kind = (bits_of(LLVMTypeOf(x)) == 64) | (bits_of(LLVMTypeOf(i)) == 64) << 1 | (op == LLVMFPToSI) << 2;
    r = call(w, in_range, to_register(w, x), r, constant(w, kind));
  }
  replace(w, i, r);
}

static void rewrite_instruction(rewriter *w, LLVMValueRef i) {
  LLVMOpcode op = LLVMGetInstructionOpcode(i);
  LLVMPositionBuilderBefore(w->b, i);
  if (op == LLVMCall) return rewrite_call(w, i);
  if (op == LLVMShl || op == LLVMLShr || op == LLVMAShr) {
    LLVMValueRef kind = constant(w, (uint64_t)op | bits_of(LLVMTypeOf(i)) << 8);
    return replace(w, i,
                   call(w, shift, to_register(w, LLVMGetOperand(i, 0)), to_register(w, LLVMGetOperand(i, 1)), kind));
  }
  if (op == LLVMLoad || op == LLVMStore)
    call(w, aligned, to_register(w, LLVMGetOperand(i, op == LLVMStore)), constant(w, LLVMGetAlignment(i)),
         constant(w, 0));
  for (size_t k = 0; k < KL_COUNT(native); k++) {
    if (native[k] == op) return;
  }
  rewrite_selected(w, i, op);
}

static bool is_half(LLVMTypeRef t) {
  LLVMTypeKind k = LLVMGetTypeKind(t);
  if (k == LLVMVectorTypeKind) k = LLVMGetTypeKind(LLVMGetElementType(t));
  return k == LLVMHalfTypeKind || k == LLVMBFloatTypeKind;
}

// selp of 16-bit floats, as PTX has it: of their bits.
static void select_bits(rewriter *w, LLVMValueRef i) {
  LLVMTypeRef t = LLVMTypeOf(i), bits = int_type(w, bits_of(t));
  LLVMPositionBuilderBefore(w->b, i);
  LLVMValueRef a = LLVMBuildBitCast(w->b, LLVMGetOperand(i, 1), bits, "");
  LLVMValueRef b = LLVMBuildBitCast(w->b, LLVMGetOperand(i, 2), bits, "");
  LLVMValueRef r = LLVMBuildSelect(w->b, LLVMGetOperand(i, 0), a, b, "");
  LLVMReplaceAllUsesWith(i, LLVMBuildBitCast(w->b, r, t, ""));
  LLVMInstructionEraseFromParent(i);
}

// A cast to a type and back is nothing. This CPU would carry a bfloat from block to block as a float.
static void join_casts(LLVMValueRef i) {
  LLVMValueRef x = LLVMGetOperand(i, 0);
  if (!LLVMIsABitCastInst(x) || LLVMTypeOf(LLVMGetOperand(x, 0)) != LLVMTypeOf(i)) return;
  LLVMReplaceAllUsesWith(i, LLVMGetOperand(x, 0));
  LLVMInstructionEraseFromParent(i);
  if (!LLVMGetFirstUse(x)) LLVMInstructionEraseFromParent(x);
}

static void each_instruction(rewriter *w, LLVMValueRef fn, void (*visit)(rewriter *, LLVMValueRef)) {
  for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(fn); b; b = LLVMGetNextBasicBlock(b)) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
      next = LLVMGetNextInstruction(i);
      visit(w, i);
    }
  }
}

static void rewrite_bits(rewriter *w, LLVMValueRef i) {
  if (LLVMIsASelectInst(i) && is_half(LLVMTypeOf(i))) select_bits(w, i);
}

static void rewrite_casts(rewriter *w, LLVMValueRef i) {
  if (LLVMIsABitCastInst(i)) join_casts(i);
}

static void rewrite_kernel(rewriter *w, LLVMValueRef fn) {
  each_instruction(w, fn, rewrite_instruction);
  each_instruction(w, fn, rewrite_bits);
  each_instruction(w, fn, rewrite_casts);
}

const char *gpu_ir_selection(size_t i, char *ir, size_t n) {
  if (i >= KL_COUNT(selections)) return NULL;
  const selection *s = &selections[i];
  bool is_call = s->op == LLVMCall, cast = !is_call && strcmp(s->from, s->to) != 0;
  char operands[160] = "", types[160] = "", loads[320] = "";
  for (unsigned k = 0; k < s->operands; k++) {
    char *o = operands + strlen(operands), *t = types + strlen(types), *l = loads + strlen(loads);
    snprintf(o, 40, "%s%s%s%%x%u", k ? ", " : "", is_call ? s->from : "", is_call ? " " : "", k);
    snprintf(t, 40, "%s%s", k ? ", " : "", s->from);
    snprintf(l, 100, "  %%x%u = load %s, ptr addrspace(1) %%p%u\n", k, s->from, k);
  }
  char what[400], *at = what;
  if (is_call)
    snprintf(at, sizeof what, "call %s @%s(%s)", s->to, s->name, operands);
  else
    snprintf(at, sizeof what, "%s %s %s%s%s", s->name, s->from, operands, cast ? " to " : "", cast ? s->to : "");
  unsigned bits = strchr(s->to, '<')            ? 32
                  : s->to[0] == 'i'             ? (unsigned)atoi(s->to + 1)
                  : strcmp(s->to, "half") == 0  ? 16
                  : strcmp(s->to, "float") == 0 ? 32
                                                : 64;
  char declare[240] = "";
  if (is_call) snprintf(declare, sizeof declare, "declare %s @%s(%s)\n", s->to, s->name, types);
  // A float is not stored as it is, because a change of sign would become part of the cast: it is multiplied first.
  bool wrap = s->op != LLVMFMul && (strcmp(s->to, "float") == 0 || strcmp(s->to, "double") == 0);
  char use[160] = "";
  if (wrap)
    snprintf(use, sizeof use, "  %%y = load %s, ptr addrspace(1) %%p2\n  %%u = fmul %s %%r, %%y\n", s->to, s->to);
  snprintf(ir, n,
           "%sdefine ptx_kernel void @k(ptr addrspace(1) %%p0, ptr addrspace(1) %%p1, ptr addrspace(1) %%p2) {\n%s"
           "  %%r = %s\n%s  %%b = bitcast %s %%%s to i%u\n  store i%u %%b, ptr addrspace(1) %%p0\n  ret void\n}\n",
           declare, loads, what, use, s->to, wrap ? "u" : "r", bits, bits);
  return s->mnemonic;
}

// --- running ------------------------------------------------------------------------------------------------------

typedef void (*entry)(const uint64_t *args, uint32_t block, uint32_t thread);

static void check(LLVMErrorRef e, const char *what) {
  if (e) ck_abort_msg("%s: %s", what, LLVMGetErrorMessage(e));
}

static LLVMOrcLLJITRef load(const kiln_manifest *f, const char *text, size_t n) {
  LLVMOrcLLJITRef jit;
  LLVMModuleRef m;
  char *why = NULL;
  // One and the same CPU everywhere, and none that would round bfloats by itself.
  LLVMTargetRef target;
  char *triple = LLVMGetDefaultTargetTriple();
  ck_assert(!LLVMGetTargetFromTriple(triple, &target, &why));
  LLVMTargetMachineRef tm = LLVMCreateTargetMachine(target, triple, "haswell", "", LLVMCodeGenLevelDefault,
                                                    LLVMRelocPIC, LLVMCodeModelJITDefault);
  LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
  LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(tm));
  check(LLVMOrcCreateLLJIT(&jit, builder), "starting the JIT");
  LLVMDisposeMessage(triple);
  LLVMContextRef cx = LLVMContextCreate();
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, n, "gpu_ir");
  if (LLVMParseIRInContext(cx, buffer, &m, &why)) ck_abort_msg("%s\n%.2000s", why, text);
  rewriter w = {m, cx, LLVMCreateBuilderInContext(cx)};
  for (size_t i = 0; i < f->launch_count; i++) rewrite_kernel(&w, LLVMGetNamedFunction(m, f->launches[i].kernel));
  LLVMDisposeBuilder(w.b);
  LLVMOrcThreadSafeContextRef safe = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(cx);
  LLVMSetTarget(m, LLVMOrcLLJITGetTripleString(jit));
  LLVMSetDataLayout(m, LLVMOrcLLJITGetDataLayoutStr(jit));
  check(LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcCreateNewThreadSafeModule(m, safe)),
        "adding the kernels");
  LLVMOrcDisposeThreadSafeContext(safe);
  return jit;
}

static uint64_t value_of(const kiln_slot *s, const void *p) {
  uint64_t v = 0;
  unsigned bits = kiln_dtype_bits(s->type.dtype);
  memcpy(&v, p, bits < 8 ? 1 : bits / 8);
  return v;
}

static uint32_t grid_of(const kiln_manifest *m, const kiln_launch *l, int64_t count) {
  if (!m->counted) return l->grid[0];
  int64_t block = (int64_t)l->lanes * l->block[0], rest = (int64_t)l->rest_lanes * l->block[0];
  int64_t whole = count / block;
  return (uint32_t)(whole + (count - whole * block + rest - 1) / rest);
}

static void run_launch(const kiln_manifest *m, size_t i, entry fn, const void *const *params, void *const *results,
                       int64_t count, char *scratch) {
  const kiln_launch *l = &m->launches[i];
  uint64_t args[64];
  ck_assert_uint_le(l->argument_count, 64);
  for (size_t k = 0; k < l->argument_count; k++) {
    const kiln_argument *a = &l->arguments[k];
    args[k] = (uint64_t)count;
    if (a->kind == KILN_ARGUMENT_SCRATCH) args[k] = (uintptr_t)(scratch + a->offset);
    if (a->kind != KILN_ARGUMENT_SLOT) continue;
    const kiln_slot *s = &m->slots[a->slot];
    const void *p = s->result ? results[s->index] : params[s->index];
    args[k] = s->by_value ? value_of(s, p) : (uintptr_t)p;
  }
  for (uint32_t b = 0, grid = grid_of(m, l, count); b < grid; b++)
    for (uint32_t t = 0; t < l->block[0]; t++) fn(args, b, t);
}

void gpu_ir_run(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                int64_t count) {
  const kiln_manifest *m = kiln_artifact_manifest(a);
  kl_jit *state;
  kl_sb text;
  ck_assert_int_eq(kl_jit_get(cx, &state), KILN_OK);
  kl_sb_init(&text, cx);
  retarget(&text, kiln_artifact_text(a, KILN_TEXT_LLVM, NULL));
  kl_sb_puts(&text, "\n@gpu_block = internal global i32 0\n@gpu_thread = internal global i32 0\n");
  for (size_t i = 0; i < m->launch_count; i++) add_entry(&text, m, i);
  char *scratch = calloc(1, m->scratch_bytes + 1);
  LLVMOrcLLJITRef jit = load(m, text.p, text.n);
  for (size_t i = 0; i < m->launch_count; i++) {
    char name[32];
    LLVMOrcExecutorAddress at;
    snprintf(name, sizeof name, "gpu_run_%zu", i);
    check(LLVMOrcLLJITLookup(jit, &at, name), "finding a kernel");
    run_launch(m, i, (entry)(uintptr_t)at, params, results, count, scratch);
  }
  check(LLVMOrcDisposeLLJIT(jit), "ending the JIT");
  free(scratch);
  kl_sb_free(&text);
}
