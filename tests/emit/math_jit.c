#include "math_jit.h"

#include "jit/jit.h"
#include "lower/emit/irtable.h"
#include "support/ptx_isa.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct mj {
  kl_ctx *cx;
  unsigned count;
  unsigned njits;
  LLVMOrcLLJITRef jits[1024];
};

static __attribute__((noreturn)) void fail(mj *j, const char *what) {
  fprintf(stderr, "# %s\n", what);
  for (size_t i = 0; i < kiln_diagnostics_count(j->cx); i++)
    fprintf(stderr, "# %s", kiln_diagnostics_get(j->cx, i)->text);
  exit(1);
}

mj *mj_open(void) {
  mj *j = calloc(1, sizeof *j);
  j->cx = kiln_context_create(NULL);
  kl_jit *state;
  if (kl_jit_get(j->cx, &state) != KILN_OK) fail(j, "LLVM");
  return j;
}

void mj_clear(mj *j) {
  for (unsigned i = 0; i < j->njits; i++) LLVMConsumeError(LLVMOrcDisposeLLJIT(j->jits[i]));
  j->njits = 0;
}

void mj_close(mj *j) {
  mj_clear(j);
  kiln_context_destroy(&j->cx);
  free(j);
}

static LLVMValueRef element(kb *k, LLVMValueRef base, LLVMValueRef i, kb_kind kind) {
  return LLVMBuildGEP2(k->b, kb_type(k, kind, 1), base, &i, 1, "");
}

static kb_reg load(kb *k, LLVMValueRef base, LLVMValueRef i, kb_kind kind, unsigned lanes) {
  LLVMValueRef v = LLVMBuildLoad2(k->b, kb_type(k, kind, lanes), element(k, base, i, kind), "");
  LLVMSetAlignment(v, kb_kind_bits(kind) / 8);
  return (kb_reg){v, (uint8_t)kind, (uint16_t)lanes};
}

static void store(kb *k, LLVMValueRef base, LLVMValueRef i, kb_reg v) {
  kb_kind kind = v.kind == KB_F32 ? KB_I32 : v.kind == KB_F64 ? KB_I64 : (kb_kind)v.kind;
  v = kb_bitcast(k, v, kind, v.lanes);
  LLVMSetAlignment(LLVMBuildStore(k->b, v.v, element(k, base, i, kind)), kb_kind_bits(kind) / 8);
}

static kb begin(mj *j, kb_machine machine, int sm, LLVMTypeRef *types, unsigned n, const char *name) {
  kb k = {.cx = j->cx, .llcx = LLVMContextCreate(), .machine = machine, .sm = sm};
  k.module = LLVMModuleCreateWithNameInContext(name, k.llcx);
  k.b = LLVMCreateBuilderInContext(k.llcx);
  for (unsigned i = 0; i < n; i++) types[i] = LLVMPointerTypeInContext(k.llcx, machine == KB_NVPTX ? 1 : 0);
  types[n] = LLVMInt64TypeInContext(k.llcx);
  LLVMTypeRef fty = LLVMFunctionType(LLVMVoidTypeInContext(k.llcx), types, machine == KB_NVPTX ? n : n + 1, false);
  k.fn = LLVMAddFunction(k.module, name, fty);
  LLVMPositionBuilderAtEnd(k.b, LLVMAppendBasicBlockInContext(k.llcx, k.fn, ""));
  return k;
}

static void host_loop(kb *k, const mj_spec *s) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(k->llcx);
  LLVMBasicBlockRef entry = LLVMGetInsertBlock(k->b);
  LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "loop");
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "done");
  LLVMBuildBr(k->b, loop);
  LLVMPositionBuilderAtEnd(k->b, loop);
  LLVMValueRef i = LLVMBuildPhi(k->b, i64, "");
  kb_reg a = load(k, LLVMGetParam(k->fn, 0), i, s->in, s->lanes),
         b = load(k, LLVMGetParam(k->fn, 1), i, s->in, s->lanes);
  store(k, LLVMGetParam(k->fn, 2), i, s->emit(k, s->user, a, b));
  LLVMValueRef next = LLVMBuildAdd(k->b, i, LLVMConstInt(i64, s->lanes, false), "");
  LLVMBasicBlockRef last = LLVMGetInsertBlock(k->b);
  LLVMBuildCondBr(k->b, LLVMBuildICmp(k->b, LLVMIntSLT, next, LLVMGetParam(k->fn, 3), ""), loop, done);
  LLVMAddIncoming(i, (LLVMValueRef[]){LLVMConstInt(i64, 0, false), next}, (LLVMBasicBlockRef[]){entry, last}, 2);
  LLVMPositionBuilderAtEnd(k->b, done);
  LLVMBuildRetVoid(k->b);
}

static LLVMMemoryBufferRef generate(mj *j, kb *k, const kl_target *t, const char *name) {
  LLVMMemoryBufferRef code;
  uint32_t ptx;
  LLVMDisposeBuilder(k->b);
  if (kl_codegen(j->cx, k->llcx, k->module, t, false, name, NULL, NULL, &ptx, &code) != KILN_OK) fail(j, name);
  LLVMContextDispose(k->llcx);
  return code;
}

static void layout(mj *j, kb *k, const kl_target *t) {
  char *text, *triple;
  if (kl_machine_layout(j->cx, t, &triple, &text) != KILN_OK) fail(j, "target");
  LLVMSetDataLayout(k->module, text);
  LLVMSetTarget(k->module, triple);
  LLVMDisposeMessage(text);
  LLVMDisposeMessage(triple);
}

static mj_fn load_object(mj *j, LLVMMemoryBufferRef object, const char *name) {
  LLVMOrcJITDylibRef library;
  uintptr_t address = 0;
  if (j->njits == KL_COUNT(j->jits)) fail(j, "too many functions");
  kl_object o = {(void *)LLVMGetBufferStart(object), LLVMGetBufferSize(object)};
  if (kl_objects_load(j->cx, &o, 1, &j->jits[j->njits++], &library) != KILN_OK) fail(j, name);
  LLVMDisposeMemoryBuffer(object);
  if (kl_object_look_up(j->cx, j->jits[j->njits - 1], library, name, &address) != KILN_OK) fail(j, name);
  return (mj_fn)address;
}

mj_fn mj_compile(mj *j, const mj_spec *s) {
  kl_target t;
  char name[32];
  LLVMTypeRef types[4];
  if (kl_target_parse(j->cx, "host", &t) != KILN_OK) fail(j, "target");
  snprintf(name, sizeof name, "f%u", j->count++);
  kb k = begin(j, KB_HOST, 0, types, 3, name);
  layout(j, &k, &t);
  host_loop(&k, s);
  return load_object(j, generate(j, &k, &t, name), name);
}

// --- approximate instructions ---------------------------------------------------------------------------------------

static const char *const approximations[] = {[PTX_EX2] = "llvm.nvvm.ex2.approx.ftz",
                                             [PTX_RCP] = "llvm.nvvm.rcp.approx.ftz",
                                             [PTX_RSQRT] = "llvm.nvvm.rsqrt.approx.ftz",
                                             [PTX_SQRT] = "llvm.nvvm.sqrt.approx.ftz",
                                             [PTX_LG2] = "llvm.nvvm.lg2.approx.ftz"};
enum { KINDS = KL_COUNT(approximations) };
unsigned mj_pick[MJ_SITES];

static float approximate(int kind, unsigned site, float x) {
  return ptx_approx_value((ptx_approx)kind, x, mj_pick[site]);
}

// What the host's code generator does not know, or would round twice: by the manual, in C.
static const struct {
  const char *name, *mnemonic; // of an LLVM intrinsic; of the instruction
} exact[] = {
    {"llvm.fma.v2f16", "fma.rn.f16x2"},
    {"llvm.nvvm.fma.rn.bf16x2", "fma.rn.bf16x2"},
    {"llvm.maximum.v2f16", "max.NaN.f16x2"},
    {"llvm.minimum.v2f16", "min.NaN.f16x2"},
    {"llvm.maximum.v2bf16", "max.NaN.bf16x2"},
    {"llvm.minimum.v2bf16", "min.NaN.bf16x2"},
    {"llvm.fabs.v2f16", "abs.f16x2"},
    {"llvm.fabs.v2bf16", "abs.bf16x2"},
    {"llvm.nvvm.fmax.nan.xorsign.abs.bf16x2", "max.NaN.xorsign.abs.bf16x2"},
    {"llvm.nvvm.ff2f16x2.rn", "cvt.rn.f16x2.f32"},
    {"llvm.nvvm.ff2bf16x2.rn", "cvt.rn.bf16x2.f32"},
    {"llvm.nvvm.fma.rm.f", "fma.rm.f32"},
};

static LLVMValueRef pointer_to(kb *k, uintptr_t fn) {
  return LLVMConstIntToPtr(LLVMConstInt(LLVMInt64TypeInContext(k->llcx), fn, false),
                           LLVMPointerTypeInContext(k->llcx, 0));
}

static bool starts_with(const char *text, const char *start) {
  return strncmp(text, start, strlen(start)) == 0;
}

// The instruction that a call or sum stands for, or NULL: the host has it.
static ptx_fn instruction_of(LLVMValueRef i) {
  LLVMTypeRef t = LLVMTypeOf(i);
  bool packed = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
  switch (LLVMGetInstructionOpcode(i)) {
  case LLVMFAdd: return packed ? ptx_instruction("add.rn.f16x2") : NULL;
  case LLVMFSub: return packed ? ptx_instruction("sub.rn.f16x2") : NULL;
  case LLVMFMul: return packed ? ptx_instruction("mul.rn.f16x2") : NULL;
  case LLVMCall: break;
  default: return NULL;
  }
  size_t n;
  LLVMValueRef callee = LLVMGetCalledValue(i);
  if (LLVMIsAInlineAsm(callee)) { // its text begins with the mnemonic
    char mnemonic[32] = {0};
    const char *text = LLVMGetInlineAsmAsmString(callee, &n);
    memcpy(mnemonic, text, strcspn(text, " "));
    return ptx_instruction(mnemonic);
  }
  const char *name = LLVMGetValueName2(callee, &n);
  for (size_t e = 0; e < KL_COUNT(exact); e++) {
    if (starts_with(name, exact[e].name)) return ptx_instruction(exact[e].mnemonic);
  }
  return NULL;
}

static void replace(LLVMValueRef i, LLVMValueRef by) {
  LLVMReplaceAllUsesWith(i, by);
  LLVMInstructionEraseFromParent(i);
}

// Registers go as patterns of 64 bits.
static void emulate_exact(kb *k, LLVMValueRef i, ptx_fn fn) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(k->llcx), i64 = LLVMInt64TypeInContext(k->llcx);
  LLVMTypeRef fty = LLVMFunctionType(i64, (LLVMTypeRef[]){i64, i64, i64}, 3, false);
  int n = LLVMGetInstructionOpcode(i) == LLVMCall ? (int)LLVMGetNumArgOperands(i) : LLVMGetNumOperands(i);
  LLVMValueRef args[3] = {LLVMConstInt(i64, 0, false), LLVMConstInt(i64, 0, false), LLVMConstInt(i64, 0, false)};
  for (int a = 0; a < n; a++)
    args[a] = LLVMBuildZExt(k->b, LLVMBuildBitCast(k->b, LLVMGetOperand(i, (unsigned)a), i32, ""), i64, "");
  LLVMValueRef r = LLVMBuildCall2(k->b, fty, pointer_to(k, (uintptr_t)fn), args, 3, "");
  replace(i, LLVMBuildBitCast(k->b, LLVMBuildTrunc(k->b, r, i32, ""), LLVMTypeOf(i), ""));
}

static bool emulate_approximation(kb *k, LLVMValueRef i, unsigned site) {
  size_t n;
  const char *name = LLVMIsACallInst(i) ? LLVMGetValueName2(LLVMGetCalledValue(i), &n) : "";
  unsigned kind = 0;
  while (kind < KINDS && !starts_with(name, approximations[kind])) kind++;
  if (kind == KINDS) return false;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(k->llcx), f32 = LLVMFloatTypeInContext(k->llcx);
  LLVMTypeRef fty = LLVMFunctionType(f32, (LLVMTypeRef[]){i32, i32, f32}, 3, false);
  LLVMValueRef args[3] = {LLVMConstInt(i32, kind, false), LLVMConstInt(i32, site, false), LLVMGetOperand(i, 0)};
  replace(i, LLVMBuildCall2(k->b, fty, pointer_to(k, (uintptr_t)approximate), args, 3, ""));
  return true;
}

// Pairs go from block to block as words: x86 takes <2 x bfloat> apart there, and rounds what it puts together again
// with a function of compiler-rt.
static void carry_words(kb *k, LLVMValueRef phi) {
  LLVMTypeRef type = LLVMTypeOf(phi), i32 = LLVMInt32TypeInContext(k->llcx);
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return;
  LLVMValueRef words = LLVMBuildPhi(k->b, i32, "");
  for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
    LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
    LLVMPositionBuilderBefore(k->b, LLVMGetBasicBlockTerminator(from));
    LLVMValueRef word = LLVMBuildBitCast(k->b, LLVMGetIncomingValue(phi, i), i32, "");
    LLVMAddIncoming(words, &word, &from, 1);
  }
  LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetInstructionParent(phi));
  while (LLVMIsAPHINode(first)) first = LLVMGetNextInstruction(first);
  LLVMPositionBuilderBefore(k->b, first);
  replace(phi, LLVMBuildBitCast(k->b, words, type, ""));
}

// Puts calls in the place of the instructions that this machine has not got; the number of approximations.
static unsigned emulate(kb *k) {
  unsigned sites = 0;
  for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(k->fn); b; b = LLVMGetNextBasicBlock(b)) {
    for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
      next = LLVMGetNextInstruction(i);
      LLVMPositionBuilderBefore(k->b, i);
      ptx_fn fn = instruction_of(i);
      if (LLVMIsAPHINode(i))
        carry_words(k, i);
      else if (fn)
        emulate_exact(k, i, fn);
      else
        sites += emulate_approximation(k, i, sites);
    }
  }
  return sites;
}

mj_fn mj_compile_approx(mj *j, const mj_spec *s, unsigned sm, unsigned *mj_sites) {
  kl_target t;
  char name[32], *why = NULL;
  LLVMTypeRef types[4];
  LLVMTargetMachineRef tm;
  LLVMMemoryBufferRef object;
  if (kl_target_parse(j->cx, "host", &t) != KILN_OK || kl_machine_get(j->cx, &t, 0, false, &tm) != KILN_OK)
    fail(j, "target");
  snprintf(name, sizeof name, "f%u", j->count++);
  kb k = begin(j, KB_HOST, 0, types, 3, name);
  layout(j, &k, &t);
  k.machine = KB_NVPTX;
  k.sm = (int)sm;
  host_loop(&k, s);
  *mj_sites = emulate(&k);
  LLVMDisposeBuilder(k.b);
  if (LLVMTargetMachineEmitToMemoryBuffer(tm, k.module, LLVMObjectFile, &why, &object)) fail(j, why);
  LLVMDisposeModule(k.module);
  LLVMContextDispose(k.llcx);
  return load_object(j, object, name);
}

// --- PTX -------------------------------------------------------------------------------------------------------------

char *mj_ptx(mj *j, const mj_spec *s, unsigned sm) {
  kl_target t;
  char name[32];
  LLVMTypeRef types[3];
  snprintf(name, sizeof name, "sm_%u", sm);
  if (kl_target_parse(j->cx, name, &t) != KILN_OK) fail(j, "target");
  snprintf(name, sizeof name, "f%u", j->count++);
  kb k = begin(j, KB_NVPTX, (int)sm, types, 2, name);
  layout(j, &k, &t);
  LLVMSetFunctionCallConv(k.fn, 71);
  LLVMValueRef tid = kb_intrinsic(&k, "llvm.nvvm.read.ptx.sreg.tid.x", NULL, 0, NULL, 0, KB_I32, 1).v;
  kb_reg a = load(&k, LLVMGetParam(k.fn, 0), tid, s->in, 1);
  store(&k, LLVMGetParam(k.fn, 1), tid, s->emit(&k, s->user, a, a));
  LLVMBuildRetVoid(k.b);
  LLVMMemoryBufferRef code = generate(j, &k, &t, name);
  char *text = strndup(LLVMGetBufferStart(code), LLVMGetBufferSize(code));
  LLVMDisposeMemoryBuffer(code);
  return text;
}
