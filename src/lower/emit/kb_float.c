// kb: floating-point operations. All round to nearest even and keep denormals; none carries a fast-math flag.
//
// Packed bf16 has one native instruction from sm_80 on, fma.rn.bf16x2, and the other operations are instances of it:
//   a + b = fma(a, 1, b)    a - b = fma(b, -1, a)    a * b = fma(a, b, -0)
// Each is exact in its inner product or sum, so it rounds once; the signs of zero come out as IEEE wants them
// (-0 as addend leaves every product's sign alone, 1 * a keeps a).

#include "lower/emit/kb.h"

static kb_reg reg(LLVMValueRef v, kb_kind kind, unsigned lanes) {
  return (kb_reg){.v = v, .kind = (uint8_t)kind, .lanes = (uint16_t)lanes};
}
static kb_reg like(kb_reg a, LLVMValueRef v) {
  return (kb_reg){.v = v, .kind = a.kind, .lanes = a.lanes};
}

static kb_reg overloaded(kb *k, const char *name, const kb_reg *args, unsigned n) {
  LLVMTypeRef t = LLVMTypeOf(args[0].v);
  return kb_intrinsic(k, name, &t, 1, args, n, (kb_kind)args[0].kind, args[0].lanes);
}

static bool packed(kb_reg a) {
  return a.kind == KB_F16 || a.kind == KB_BF16;
}

static kb_reg bf16x2_fma(kb *k, kb_reg a, kb_reg b, kb_reg c) {
  kb_reg args[3] = {a, b, c};
  return kb_intrinsic(k, "llvm.nvvm.fma.rn.bf16x2", NULL, 0, args, 3, KB_BF16, 2);
}

kb_reg kb_fadd(kb *k, kb_reg a, kb_reg b) {
  if (a.kind == KB_BF16) return bf16x2_fma(k, a, kb_flike(k, a, 1.0), b);
  return like(a, LLVMBuildFAdd(k->b, a.v, b.v, ""));
}

kb_reg kb_fsub(kb *k, kb_reg a, kb_reg b) {
  if (a.kind == KB_BF16) return bf16x2_fma(k, b, kb_flike(k, a, -1.0), a);
  return like(a, LLVMBuildFSub(k->b, a.v, b.v, ""));
}

kb_reg kb_fmul(kb *k, kb_reg a, kb_reg b) {
  if (a.kind == KB_BF16) return bf16x2_fma(k, a, b, kb_flike(k, a, -0.0));
  return like(a, LLVMBuildFMul(k->b, a.v, b.v, ""));
}

kb_reg kb_fma(kb *k, kb_reg a, kb_reg b, kb_reg c) {
  if (a.kind == KB_BF16) return bf16x2_fma(k, a, b, c);
  kb_reg args[3] = {a, b, c};
  return overloaded(k, "llvm.fma", args, 3);
}

// Packed signs are flipped in the 32-bit word: one instruction for both lanes. (From sm_90 on comparisons take the
// magnitude of an operand for nothing, which abs says.)
static kb_reg packed_bits(kb *k, kb_reg a, bool clear) {
  kb_reg w = kb_bitcast(k, a, KB_I32, 1);
  w = clear ? kb_andi(k, w, 0x7fff7fff) : kb_xor(k, w, kb_ilike(k, w, 0x80008000));
  return kb_bitcast(k, w, (kb_kind)a.kind, 2);
}

kb_reg kb_fneg(kb *k, kb_reg a) {
  if (packed(a)) return packed_bits(k, a, false);
  return like(a, LLVMBuildFNeg(k->b, a.v, ""));
}

kb_reg kb_fabs(kb *k, kb_reg a) {
  if (packed(a) && k->sm < 90) return packed_bits(k, a, true);
  return overloaded(k, "llvm.fabs", &a, 1);
}

kb_reg kb_fcopysign(kb *k, kb_reg magnitude, kb_reg sign) {
  kb_reg args[2] = {magnitude, sign};
  return overloaded(k, "llvm.copysign", args, 2);
}

kb_reg kb_fdiv(kb *k, kb_reg a, kb_reg b) {
  return like(a, LLVMBuildFDiv(k->b, a.v, b.v, ""));
}
kb_reg kb_fsqrt(kb *k, kb_reg a) {
  return overloaded(k, "llvm.sqrt", &a, 1);
}
kb_reg kb_floor(kb *k, kb_reg a) {
  return overloaded(k, "llvm.floor", &a, 1);
}
kb_reg kb_ceil(kb *k, kb_reg a) {
  return overloaded(k, "llvm.ceil", &a, 1);
}
kb_reg kb_trunc_f(kb *k, kb_reg a) {
  return overloaded(k, "llvm.trunc", &a, 1);
}
kb_reg kb_roundeven(kb *k, kb_reg a) {
  return overloaded(k, "llvm.roundeven", &a, 1);
}

kb_reg kb_fcmp(kb *k, LLVMRealPredicate p, kb_reg a, kb_reg b) {
  return reg(LLVMBuildFCmp(k->b, p, a.v, b.v, ""), KB_I1, a.lanes);
}

// Where the machine has no such instruction: order the pair by value, then by sign for equal zeros, and let a + b make
// the NaN. OR of the bits picks -0 of (+0, -0), AND picks +0, and both are the identity on equal values.
static kb_reg extremum_by_select(kb *k, kb_reg a, kb_reg b, bool max) {
  kb_kind ints = a.kind == KB_F64 ? KB_I64 : KB_I32;
  kb_reg ia = kb_bitcast(k, a, ints, a.lanes), ib = kb_bitcast(k, b, ints, a.lanes);
  kb_reg tie = kb_bitcast(k, max ? kb_and(k, ia, ib) : kb_or(k, ia, ib), (kb_kind)a.kind, a.lanes);
  kb_reg r = kb_select(k, kb_fcmp(k, max ? LLVMRealOGT : LLVMRealOLT, a, b), a, b);
  r = kb_select(k, kb_fcmp(k, LLVMRealOEQ, a, b), tie, r);
  return kb_select(k, kb_fcmp(k, LLVMRealUNO, a, b), kb_fadd(k, a, b), r);
}

static kb_reg extremum(kb *k, kb_reg a, kb_reg b, bool max) {
  bool native = k->machine == KB_NVPTX && k->sm >= 80 && a.kind != KB_F64;
  if (!native && !packed(a)) return extremum_by_select(k, a, b, max);
  kb_reg args[2] = {a, b};
  return overloaded(k, max ? "llvm.maximum" : "llvm.minimum", args, 2);
}

kb_reg kb_fmax(kb *k, kb_reg a, kb_reg b) {
  return extremum(k, a, b, true);
}
kb_reg kb_fmin(kb *k, kb_reg a, kb_reg b) {
  return extremum(k, a, b, false);
}

kb_reg kb_fmax_magnitude(kb *k, kb_reg a, kb_reg b) {
  kb_reg args[2] = {a, b};
  return kb_intrinsic(k, "llvm.nvvm.fmax.nan.xorsign.abs.bf16x2", NULL, 0, args, 2, KB_BF16, 2);
}

// --- NVPTX --------------------------------------------------------------------------------------------------------

static kb_reg approx(kb *k, const char *name, kb_reg a) {
  return kb_intrinsic(k, name, NULL, 0, &a, 1, KB_F32, 1);
}

// ex2 is overloaded on the type, rcp and rsqrt carry it in the name.
kb_reg kb_ex2_approx(kb *k, kb_reg a) {
  LLVMTypeRef t = LLVMTypeOf(a.v);
  return kb_intrinsic(k, "llvm.nvvm.ex2.approx.ftz", &t, 1, &a, 1, KB_F32, 1);
}
kb_reg kb_rcp_approx(kb *k, kb_reg a) {
  return approx(k, "llvm.nvvm.rcp.approx.ftz.f", a);
}
kb_reg kb_rsqrt_approx(kb *k, kb_reg a) {
  return approx(k, "llvm.nvvm.rsqrt.approx.ftz.f", a);
}
kb_reg kb_sqrt_approx(kb *k, kb_reg a) {
  return approx(k, "llvm.nvvm.sqrt.approx.ftz.f", a);
}
kb_reg kb_lg2_approx(kb *k, kb_reg a) {
  return approx(k, "llvm.nvvm.lg2.approx.ftz.f", a);
}
kb_reg kb_fma_down(kb *k, kb_reg a, kb_reg b, kb_reg c) {
  kb_reg args[3] = {a, b, c};
  return kb_intrinsic(k, "llvm.nvvm.fma.rm.f", NULL, 0, args, 3, KB_F32, 1);
}
kb_reg kb_sin_approx(kb *k, kb_reg a) {
  return approx(k, "llvm.nvvm.sin.approx.ftz.f", a);
}
kb_reg kb_cos_approx(kb *k, kb_reg a) {
  return approx(k, "llvm.nvvm.cos.approx.ftz.f", a);
}
kb_reg kb_saturate(kb *k, kb_reg a) {
  return approx(k, "llvm.nvvm.saturate.f", a);
}
kb_reg kb_div_full(kb *k, kb_reg a, kb_reg b) {
  kb_reg args[2] = {a, b};
  return kb_intrinsic(k, "llvm.nvvm.div.full", NULL, 0, args, 2, KB_F32, 1);
}

// cvt.rzi clamps. It makes 0 of a NaN in f32, but the sign bit alone of one in f64.
kb_reg kb_f2i_sat(kb *k, kb_reg a, bool is_signed) {
  if (a.kind == KB_F32)
    return kb_intrinsic(k, is_signed ? "llvm.nvvm.f2i.rz" : "llvm.nvvm.f2ui.rz", NULL, 0, &a, 1, KB_I32, 1);
  kb_reg r = kb_intrinsic(k, is_signed ? "llvm.nvvm.d2i.rz" : "llvm.nvvm.d2ui.rz", NULL, 0, &a, 1, KB_I32, 1);
  return kb_select(k, kb_fcmp(k, LLVMRealORD, a, a), r, kb_ilike(k, r, 0));
}

kb_reg kb_pack2(kb *k, kb_reg lo, kb_reg hi, kb_kind to) {
  // The instruction's first operand is the high half.
  kb_reg args[2] = {hi, lo};
  if (to == KB_BF16) return kb_intrinsic(k, "llvm.nvvm.ff2bf16x2.rn", NULL, 0, args, 2, KB_BF16, 2);
  if (k->sm >= 80) return kb_intrinsic(k, "llvm.nvvm.ff2f16x2.rn", NULL, 0, args, 2, KB_F16, 2);
  kb_reg half[2] = {reg(LLVMBuildFPTrunc(k->b, lo.v, kb_type(k, KB_F16, 1), ""), KB_F16, 1),
                    reg(LLVMBuildFPTrunc(k->b, hi.v, kb_type(k, KB_F16, 1), ""), KB_F16, 1)};
  return kb_join(k, half, 2);
}

static kb_reg mask_of_words(kb *k, kb_kind kind, LLVMRealPredicate p, kb_reg a, kb_reg b) {
  static const char *const text[2][LLVMRealOLT + 1] = {{[LLVMRealOEQ] = "set.eq.u32.f16x2 $0, $1, $2;",
                                                        [LLVMRealOGT] = "set.gt.u32.f16x2 $0, $1, $2;",
                                                        [LLVMRealOGE] = "set.ge.u32.f16x2 $0, $1, $2;",
                                                        [LLVMRealOLT] = "set.lt.u32.f16x2 $0, $1, $2;"},
                                                       {[LLVMRealOEQ] = "set.eq.u32.bf16x2 $0, $1, $2;",
                                                        [LLVMRealOGT] = "set.gt.u32.bf16x2 $0, $1, $2;",
                                                        [LLVMRealOGE] = "set.ge.u32.bf16x2 $0, $1, $2;",
                                                        [LLVMRealOLT] = "set.lt.u32.bf16x2 $0, $1, $2;"}};
  return kb_asm(k, text[kind == KB_BF16][p], "=r,r,r", (kb_reg[]){a, b}, 2, KB_I32);
}

kb_reg kb_mask2(kb *k, LLVMRealPredicate p, kb_reg a, kb_reg b) {
  return mask_of_words(k, (kb_kind)a.kind, p, kb_bitcast(k, a, KB_I32, 1), kb_bitcast(k, b, KB_I32, 1));
}

// The comparison takes the magnitude for nothing if abs says so; of F16's LLVM would make a mask.
static kb_reg size_word(kb *k, kb_reg a) {
  if (a.kind == KB_BF16) return kb_bitcast(k, kb_fabs(k, a), KB_I32, 1);
  kb_reg word = kb_bitcast(k, a, KB_I32, 1);
  return kb_asm(k, "abs.f16x2 $0, $1;", "=r,r", &word, 1, KB_I32);
}

kb_reg kb_size_mask2(kb *k, LLVMRealPredicate p, kb_reg a, double number) {
  kb_reg bound = kb_bitcast(k, kb_flike(k, a, number), KB_I32, 1);
  return mask_of_words(k, (kb_kind)a.kind, p, size_word(k, a), bound);
}

// A bf16 is the high half of its f32: shift or mask the word instead of converting.
kb_reg kb_unpack(kb *k, kb_reg p, unsigned lane) {
  if (p.kind == KB_F16)
    return reg(LLVMBuildFPExt(k->b, kb_extract(k, p, lane).v, kb_type(k, KB_F32, 1), ""), KB_F32, 1);
  kb_reg w = kb_bitcast(k, p, KB_I32, 1);
  w = lane ? kb_andi(k, w, 0xffff0000) : kb_shli(k, w, 16);
  return kb_bitcast(k, w, KB_F32, 1);
}
