// The table: one row per operation, with the element types it may have and what it needs.
//
// Types of a row: bits for i1 i8 i16 i32 i64 half bfloat float double ptr; lanes: a vector is allowed where the row
// says so. On NVPTX vectors appear in memory accesses, in what takes them apart, and in packed 16-bit arithmetic only;
// on the host every row but atomics takes vectors.

#include "lower/emit/irtable.h"

enum {
  I1 = 1,
  I8 = 2,
  I16 = 4,
  I32 = 8,
  I64 = 16,
  H = 32,
  B = 64,
  F = 128,
  D = 256,
  P = 512,
  INT = I1 | I32 | I64,
  WORD = I32 | I64,
  FD = F | D,
  ANY = 1023,
  MOVE = I1 | I8 | I16 | I32 | I64 | H | B | F | D,
};
enum { SCALAR, PACKED, VECTOR }; // widest form on NVPTX: scalars, also <2 x 16-bit>, any vector
enum { BOTH, GPU, HOST };

typedef struct op_row {
  LLVMOpcode op;
  uint16_t types; // of the result, or of the operand where the result is void or i1
  uint8_t form;
} op_row;

// clang-format off
static const op_row ops[] = {
    {LLVMRet, ANY, SCALAR},          {LLVMBr, ANY, SCALAR},           {LLVMPHI, MOVE, PACKED},
    {LLVMAdd, INT, SCALAR},          {LLVMSub, INT, SCALAR},          {LLVMMul, WORD, SCALAR},
    {LLVMUDiv, WORD, SCALAR},        {LLVMSDiv, WORD, SCALAR},        {LLVMURem, WORD, SCALAR},
    {LLVMSRem, WORD, SCALAR},        {LLVMShl, WORD, SCALAR},         {LLVMLShr, WORD, SCALAR},
    {LLVMAShr, WORD, SCALAR},        {LLVMAnd, INT, SCALAR},          {LLVMOr, INT, SCALAR},
    {LLVMXor, INT, SCALAR},          {LLVMFAdd, FD | H, PACKED},      {LLVMFSub, FD | H, PACKED},
    {LLVMFMul, FD | H, PACKED},      {LLVMFDiv, FD, SCALAR},          {LLVMFNeg, FD, SCALAR},
    {LLVMFCmp, FD, SCALAR},          {LLVMICmp, INT, SCALAR},         {LLVMSelect, ANY, PACKED},
    {LLVMTrunc, I1 | I8 | I16 | I32, SCALAR}, {LLVMZExt, WORD, SCALAR}, {LLVMSExt, WORD, SCALAR},
    {LLVMSIToFP, FD, SCALAR},        {LLVMUIToFP, FD, SCALAR},        {LLVMFPToSI, WORD, SCALAR},
    {LLVMFPToUI, WORD, SCALAR},      {LLVMFPExt, FD, SCALAR},         {LLVMFPTrunc, F | H, SCALAR},
    {LLVMBitCast, MOVE, VECTOR},     {LLVMExtractElement, MOVE, VECTOR}, {LLVMInsertElement, MOVE, VECTOR},
    {LLVMShuffleVector, MOVE, VECTOR}, {LLVMGetElementPtr, P, SCALAR}, {LLVMLoad, ANY, VECTOR},
    {LLVMStore, I8 | I16 | I32 | I64 | FD, VECTOR}, {LLVMFreeze, MOVE, SCALAR}, {LLVMAlloca, P, SCALAR},
};
// clang-format on

typedef struct intrinsic_row {
  const char *name; // without the type suffix
  uint16_t types;
  uint8_t where;
  uint8_t form;
  uint16_t sm, ptx; // least; 0: any
} intrinsic_row;

static const intrinsic_row intrinsics[] = {
    // exact
    {"llvm.fma", FD | H, BOTH, PACKED, 0, 0},
    {"llvm.fabs", FD | H | B, BOTH, PACKED, 0, 0},
    {"llvm.copysign", FD, BOTH, SCALAR, 0, 0},
    {"llvm.sqrt", FD, BOTH, SCALAR, 0, 0},
    {"llvm.floor", FD, BOTH, SCALAR, 0, 0},
    {"llvm.ceil", FD, BOTH, SCALAR, 0, 0},
    {"llvm.trunc", FD, BOTH, SCALAR, 0, 0},
    {"llvm.roundeven", FD, BOTH, SCALAR, 0, 0},
    {"llvm.maximum", F | H | B, GPU, PACKED, 80, 70},
    {"llvm.minimum", F | H | B, GPU, PACKED, 80, 70},
    {"llvm.prefetch", P, HOST, SCALAR, 0, 0},
    {"llvm.masked.gather", WORD | FD, HOST, VECTOR, 0, 0},
    {"llvm.masked.load", WORD | FD, HOST, VECTOR, 0, 0},
    {"llvm.ctpop", WORD, BOTH, SCALAR, 0, 0},
    {"llvm.ctlz", WORD, BOTH, SCALAR, 0, 0},
    {"llvm.smin", WORD, BOTH, SCALAR, 0, 0},
    {"llvm.smax", WORD, BOTH, SCALAR, 0, 0},
    {"llvm.umin", WORD, BOTH, SCALAR, 0, 0},
    {"llvm.umax", WORD, BOTH, SCALAR, 0, 0},
    {"llvm.nvvm.fma.rn.bf16x2", B, GPU, PACKED, 80, 70},
    {"llvm.nvvm.fmax.nan.xorsign.abs.bf16x2", B, GPU, PACKED, 86, 72},
    {"llvm.nvvm.ff2bf16x2.rn", B, GPU, PACKED, 80, 70},
    {"llvm.nvvm.ff2f16x2.rn", H, GPU, PACKED, 80, 70},
    {"llvm.nvvm.fma.rm.f", F, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.ff2f16x2.rz", H, GPU, PACKED, 80, 70},
    {"llvm.nvvm.prmt", I32, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.saturate", F, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.f2i.rz", I32, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.f2ui.rz", I32, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.d2i.rz", I32, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.d2ui.rz", I32, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.read.ptx.sreg.tid.x", I32, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.read.ptx.sreg.ctaid.x", I32, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.shfl.sync.bfly.i32", I32, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.shfl.sync.idx.i32", I32, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.vote.any.sync", I1, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.barrier.cta.sync.aligned.all", 0, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.barrier.cta.red.or.aligned.all", I1, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.barrier.cta.sync.aligned.count", 0, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.barrier.cta.red.or.aligned.count", I1, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.barrier.cluster.arrive.aligned", 0, GPU, SCALAR, 90, 78},
    {"llvm.nvvm.barrier.cluster.wait.aligned", 0, GPU, SCALAR, 90, 78},
    {"llvm.nvvm.griddepcontrol.wait", 0, GPU, SCALAR, 90, 78},
    {"llvm.nvvm.griddepcontrol.launch.dependents", 0, GPU, SCALAR, 90, 78},
    // bounded
    {"llvm.nvvm.ex2.approx.ftz", F, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.rcp.approx.ftz", F, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.rsqrt.approx.ftz", F, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.sqrt.approx.ftz", F, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.lg2.approx.ftz", F, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.sin.approx.ftz", F, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.cos.approx.ftz", F, GPU, SCALAR, 0, 0},
    {"llvm.nvvm.div.full", F, GPU, SCALAR, 0, 0},
};

// Inline assembly: nothing but these texts, with these constraints, from an sm on. The PTX version is the least one
// that has them for a target that came later; the first one may take a later version.
typedef struct template_row {
  const char *text, *constraints;
  uint16_t sm, ptx, ptx_first;
  bool touches; // memory
} template_row;

static const template_row templates[] = {
    {"mul.wide.u32 $0, $1, $2;", "=l,r,n", 0, 0, 0},
    {"lop3.b32 $0, $1, $2, $3, 0x6a;", "=r,r,n,n", 0, 0, 0},
    {"abs.f16x2 $0, $1;", "=r,r", 0, 65, 65},
    {"set.eq.u32.f16x2 $0, $1, $2;", "=r,r,r", 0, 65, 65},
    {"set.ge.u32.f16x2 $0, $1, $2;", "=r,r,r", 0, 65, 65},
    {"set.gt.u32.f16x2 $0, $1, $2;", "=r,r,r", 0, 65, 65},
    {"set.lt.u32.f16x2 $0, $1, $2;", "=r,r,r", 0, 65, 65},
    {"set.lt.u32.bf16x2 $0, $1, $2;", "=r,r,r", 90, 78, 78},
    {"set.eq.u32.bf16x2 $0, $1, $2;", "=r,r,r", 90, 78, 78},
    {"abs.bf16x2 $0, $1;", "=r,r", 80, 70, 70},
    {"set.ge.u32.bf16x2 $0, $1, $2;", "=r,r,r", 90, 78, 78},
    {"set.gt.u32.bf16x2 $0, $1, $2;", "=r,r,r", 90, 78, 78},
    {"cvt.pack.sat.u4.s32.b32 $0, $1, $2, $3;", "=r,r,r,r", 75, 65, 65},
    {"cvt.pack.sat.s4.s32.b32 $0, $1, $2, $3;", "=r,r,r,r", 75, 65, 65},
    {"cvt.pack.sat.u8.s32.b32 $0, $1, $2, $3;", "=r,r,r,r", 75, 65, 65},
    {"cvt.pack.sat.s8.s32.b32 $0, $1, $2, $3;", "=r,r,r,r", 75, 65, 65},
    {"cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", "=h,f,f", 89, 78, 81},
    {"cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2;", "=h,f,f", 89, 78, 81},
    {"cvt.rn.satfinite.e4m3x2.f16x2 $0, $1;", "=h,r", 89, 78, 81},
    {"cvt.rn.satfinite.e5m2x2.f16x2 $0, $1;", "=h,r", 89, 78, 81},
    {"{ .reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, $1, $2; cvt.u16.u8 $0, b; }", "=h,f,f", 100, 86, 86},
    {"{ .reg .b8 b; cvt.u8.u16 b, $1; cvt.rn.f16x2.e2m1x2 $0, b; }", "=r,h", 100, 86, 86},
    {"cvt.rn.f16x2.e4m3x2 $0, $1;", "=r,h", 89, 78, 81},
    {"cvt.rn.f16x2.e5m2x2 $0, $1;", "=r,h", 89, 78, 81},
    {"ld.relaxed.gpu.global.b16 $0, [$1];", "=h,l", 70, 60, 60, true},
    {"ld.relaxed.gpu.global.b32 $0, [$1];", "=r,l", 70, 60, 60, true},
    {"ld.relaxed.gpu.global.b64 $0, [$1];", "=l,l", 70, 60, 60, true},
    {"st.relaxed.gpu.global.b8 [$0], $1;", "l,h", 70, 60, 60, true},
    {"st.relaxed.gpu.global.b16 [$0], $1;", "l,h", 70, 60, 60, true},
    {"st.relaxed.gpu.global.b32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"st.relaxed.gpu.global.b64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"atom.relaxed.gpu.global.cas.b16 $0, [$1], $2, $3;", "=h,l,h,h", 70, 63, 63, true},
    {"atom.relaxed.gpu.global.cas.b32 $0, [$1], $2, $3;", "=r,l,r,r", 70, 60, 60, true},
    {"atom.relaxed.gpu.global.cas.b64 $0, [$1], $2, $3;", "=l,l,l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.add.u32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.gpu.global.add.u64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.min.s32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.gpu.global.min.u32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.gpu.global.min.s64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.min.u64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.max.s32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.gpu.global.max.u32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.gpu.global.max.s64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.max.u64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.and.b32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.gpu.global.and.b64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.or.b32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.gpu.global.or.b64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.xor.b32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.gpu.global.xor.b64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.add.f32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.gpu.global.add.f64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.gpu.global.add.noftz.f16 [$0], $1;", "l,h", 70, 63, 63, true},
    {"red.relaxed.gpu.global.add.noftz.bf16 [$0], $1;", "l,h", 90, 78, 78, true},
    {"red.relaxed.gpu.global.add.noftz.f16x2 [$0], $1;", "l,r", 70, 62, 62, true},
    {"red.relaxed.gpu.global.add.noftz.bf16x2 [$0], $1;", "l,r", 90, 78, 78, true},
    {"red.relaxed.gpu.global.add.v2.f32 [$0], {$1, $2};", "l,r,r", 90, 81, 81, true},
    {"red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};", "l,r,r,r,r", 90, 81, 81, true},
    {"red.relaxed.gpu.global.add.noftz.v2.f16x2 [$0], {$1, $2};", "l,r,r", 90, 81, 81, true},
    {"red.relaxed.gpu.global.add.noftz.v4.f16x2 [$0], {$1, $2, $3, $4};", "l,r,r,r,r", 90, 81, 81, true},
    {"red.relaxed.gpu.global.add.noftz.v2.bf16x2 [$0], {$1, $2};", "l,r,r", 90, 81, 81, true},
    {"red.relaxed.gpu.global.add.noftz.v4.bf16x2 [$0], {$1, $2, $3, $4};", "l,r,r,r,r", 90, 81, 81, true},
    {"ld.relaxed.cta.shared.b32 $0, [$1];", "=r,l", 70, 60, 60, true},
    {"ld.relaxed.cta.shared.b64 $0, [$1];", "=l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.add.u32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.cta.shared.add.u64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.min.s32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.cta.shared.min.u32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.cta.shared.min.s64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.min.u64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.max.s32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.cta.shared.max.u32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.cta.shared.max.s64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.max.u64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.and.b32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.cta.shared.and.b64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.or.b32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.cta.shared.or.b64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.xor.b32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.cta.shared.xor.b64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.add.f32 [$0], $1;", "l,r", 70, 60, 60, true},
    {"red.relaxed.cta.shared.add.f64 [$0], $1;", "l,l", 70, 60, 60, true},
    {"red.relaxed.cta.shared.add.noftz.f16 [$0], $1;", "l,h", 70, 63, 63, true},
    {"red.relaxed.cta.shared.add.noftz.bf16 [$0], $1;", "l,h", 90, 78, 78, true},
    {"red.relaxed.cta.shared.add.noftz.f16x2 [$0], $1;", "l,r", 70, 62, 62, true},
    {"red.relaxed.cta.shared.add.noftz.bf16x2 [$0], $1;", "l,r", 90, 78, 78, true},
};

static const template_row *find_template(LLVMValueRef code) {
  size_t ntext, nconstraints;
  const char *text = LLVMGetInlineAsmAsmString(code, &ntext);
  const char *constraints = LLVMGetInlineAsmConstraintString(code, &nconstraints);
  for (size_t i = 0; i < KL_COUNT(templates); i++) {
    if (kl_str_is((kl_str){text, ntext}, templates[i].text) &&
        kl_str_is((kl_str){constraints, nconstraints}, templates[i].constraints))
      return (bool)LLVMGetInlineAsmHasSideEffects(code) == templates[i].touches ? &templates[i] : NULL;
  }
  return NULL;
}

static uint16_t type_bit(LLVMTypeRef t) {
  switch (LLVMGetTypeKind(t)) {
  case LLVMHalfTypeKind: return H;
  case LLVMBFloatTypeKind: return B;
  case LLVMFloatTypeKind: return F;
  case LLVMDoubleTypeKind: return D;
  case LLVMPointerTypeKind: return P;
  case LLVMIntegerTypeKind: break;
  default: return 0;
  }
  switch (LLVMGetIntTypeWidth(t)) {
  case 1: return I1;
  case 8: return I8;
  case 16: return I16;
  case 32: return I32;
  case 64: return I64;
  default: return 0;
  }
}

static bool type_allowed(LLVMTypeRef t, uint16_t types, uint8_t form, uint32_t sm) {
  if (LLVMGetTypeKind(t) == LLVMVoidTypeKind) return true;
  unsigned lanes = 1;
  if (LLVMGetTypeKind(t) == LLVMVectorTypeKind) {
    lanes = LLVMGetVectorSize(t);
    t = LLVMGetElementType(t);
  }
  uint16_t bit = type_bit(t);
  if (!(bit & types)) return false;
  if (sm == 0 || form == VECTOR || lanes == 1) return true;
  return form == PACKED && lanes == 2 && (bit & (H | B | I16));
}

static kiln_status refuse(kl_ctx *cx, LLVMValueRef i) {
  size_t n;
  char *text = LLVMPrintValueToString(i);
  const char *name = LLVMGetValueName2(LLVMGetBasicBlockParent(LLVMGetInstructionParent(i)), &n);
  kiln_status s = kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "%.*s: the emitter made an operation outside its table:%s",
                          (int)n, name, text);
  LLVMDisposeMessage(text);
  return s;
}

// The intrinsic's name is the row's, or the row's with overloads (".f32", ".v2bf16") or a trailing ".f" / ".d" behind
// it.
static const intrinsic_row *find_intrinsic(const char *name, size_t n) {
  const intrinsic_row *best = NULL;
  size_t best_n = 0;
  for (size_t i = 0; i < KL_COUNT(intrinsics); i++) {
    size_t rn = strlen(intrinsics[i].name);
    if (rn > n || memcmp(name, intrinsics[i].name, rn) != 0 || (rn < n && name[rn] != '.')) continue;
    if (rn > best_n) best = &intrinsics[i], best_n = rn;
  }
  return best;
}

static kiln_status check_template(kl_ctx *cx, LLVMValueRef i, const template_row *r, uint32_t sm, uint32_t *ptx) {
  if (!r || !sm || sm < r->sm) return refuse(cx, i);
  uint32_t least = sm == r->sm ? r->ptx_first : r->ptx;
  if (least > *ptx) *ptx = least;
  return KILN_OK;
}

static kiln_status check_call(kl_ctx *cx, LLVMValueRef i, uint32_t sm, uint32_t *ptx) {
  size_t n;
  LLVMValueRef callee = LLVMGetCalledValue(i);
  if (LLVMIsAInlineAsm(callee)) return check_template(cx, i, find_template(callee), sm, ptx);
  if (LLVMCountBasicBlocks(callee)) return KILN_OK; // a piece of the kernel, or a function of its own
  const char *name = LLVMGetValueName2(callee, &n);
  const intrinsic_row *r = find_intrinsic(name, n);
  if (!r || !type_allowed(LLVMTypeOf(i), r->types, r->form, sm)) return refuse(cx, i);
  if ((sm == 0 && r->where == GPU) || (sm != 0 && (r->where == HOST || r->sm > sm))) return refuse(cx, i);
  if (r->ptx > *ptx) *ptx = r->ptx;
  return KILN_OK;
}

static bool has_fast_math(LLVMValueRef i) {
  return LLVMCanValueUseFastMathFlags(i) && LLVMGetFastMathFlags(i) != LLVMFastMathNone;
}

static bool plain_access(LLVMValueRef i) {
  return LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic && !LLVMGetVolatile(i);
}

// On the host what several threads do to one place: loads and stores in any order, and changes in one step. On NVPTX
// that is a matter of templates.
static bool atomic_access(LLVMValueRef i, uint32_t sm) {
  return !sm && LLVMGetOrdering(i) == LLVMAtomicOrderingMonotonic && !LLVMGetVolatile(i);
}

// Blocks of a GPU count themselves.
static bool counts_up(LLVMValueRef i, uint32_t sm) {
  return sm && LLVMGetAtomicRMWBinOp(i) == LLVMAtomicRMWBinOpUIncWrap && type_bit(LLVMTypeOf(i)) == I32 &&
         LLVMGetOrdering(i) == LLVMAtomicOrderingMonotonic;
}

static bool atomic_change(LLVMValueRef i, uint32_t sm) {
  LLVMTypeRef t = LLVMTypeOf(LLVMGetOperand(i, 1));
  bool whole = LLVMGetTypeKind(t) == LLVMIntegerTypeKind && type_allowed(t, I8 | I16 | I32 | I64, SCALAR, 1);
  LLVMAtomicOrdering order = LLVMIsAAtomicRMWInst(i) ? LLVMGetOrdering(i) : LLVMGetCmpXchgSuccessOrdering(i);
  return !sm && whole && order == LLVMAtomicOrderingMonotonic;
}

static kiln_status check_instruction(kl_ctx *cx, LLVMValueRef i, uint32_t sm, uint32_t *ptx) {
  LLVMOpcode op = LLVMGetInstructionOpcode(i);
  if (has_fast_math(i)) return refuse(cx, i);
  if (op == LLVMCall) return check_call(cx, i, sm, ptx);
  if (op == LLVMAlloca && sm) return refuse(cx, i);
  if (op == LLVMFence) return sm ? KILN_OK : refuse(cx, i);
  if (op == LLVMAtomicRMW && counts_up(i, sm)) return KILN_OK;
  if (op == LLVMAtomicRMW || op == LLVMAtomicCmpXchg) return atomic_change(i, sm) ? KILN_OK : refuse(cx, i);
  if (op == LLVMExtractValue) return sm ? refuse(cx, i) : KILN_OK;
  for (size_t r = 0; r < KL_COUNT(ops); r++) {
    if (ops[r].op != op) continue;
    LLVMTypeRef t = LLVMTypeOf(i);
    if (op == LLVMStore || op == LLVMFCmp || op == LLVMICmp) t = LLVMTypeOf(LLVMGetOperand(i, 0));
    bool access = op == LLVMLoad || op == LLVMStore;
    if (access && !plain_access(i) && !atomic_access(i, sm)) return refuse(cx, i);
    return type_allowed(t, ops[r].types, ops[r].form, sm) ? KILN_OK : refuse(cx, i);
  }
  return refuse(cx, i);
}

kiln_status kl_ir_check(kl_ctx *cx, LLVMModuleRef m, uint32_t sm, uint32_t *ptx) {
  for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f)) {
    // Arguments are addresses of 8 bytes; more than 4096 bytes of them take PTX 8.1.
    if (sm && LLVMCountBasicBlocks(f) && LLVMCountParams(f) > 4096 / 8 && *ptx < 81) *ptx = 81;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        KL_TRY(check_instruction(cx, i, sm, ptx));
    }
  }
  return KILN_OK;
}

uint32_t kl_ptx_floor(uint32_t sm, char variant) {
  static const struct {
    uint16_t sm, plain, a, f;
  } floors[] = {
      {70, 60, 0, 0},    {72, 61, 0, 0},    {75, 63, 0, 0},    {80, 70, 0, 0},    {86, 71, 0, 0},
      {87, 74, 0, 0},    {88, 90, 0, 0},    {89, 78, 0, 0},    {90, 78, 80, 0},   {100, 86, 86, 88},
      {101, 86, 86, 88}, {103, 88, 88, 88}, {110, 90, 90, 90}, {120, 87, 87, 88}, {121, 88, 88, 88},
  };
  for (size_t i = 0; i < KL_COUNT(floors); i++) {
    if (floors[i].sm == sm) return variant == 'a' ? floors[i].a : variant == 'f' ? floors[i].f : floors[i].plain;
  }
  return 0;
}
