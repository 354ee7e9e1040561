// kb: NVPTX's conversions of pairs, and what puts pairs together. The lower lane is the lower half of every pair; in
// PTX the first operand is the upper one.

#include "lower/emit/kb.h"

static kb_reg reg(LLVMValueRef v, kb_kind kind, unsigned lanes) {
  return (kb_reg){.v = v, .kind = (uint8_t)kind, .lanes = (uint16_t)lanes};
}

// --- words ----------------------------------------------------------------------------------------------------------

static uint32_t permuted(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t all = (uint64_t)b << 32 | a;
  uint32_t r = 0;
  for (unsigned i = 0; i < 4; i++) {
    uint32_t pick = selector >> 4 * i & 15, byte = all >> 8 * (pick & 7) & 0xff;
    r |= (pick & 8 ? byte >> 7 ? 0xffu : 0 : byte) << 8 * i;
  }
  return r;
}

kb_reg kb_permute(kb *k, kb_reg a, kb_reg b, uint32_t selector) {
  if (LLVMIsAConstantInt(a.v) && LLVMIsAConstantInt(b.v)) {
    uint32_t x = (uint32_t)LLVMConstIntGetZExtValue(a.v), y = (uint32_t)LLVMConstIntGetZExtValue(b.v);
    return kb_int(k, KB_I32, 1, permuted(x, y, selector));
  }
  return kb_permute_by(k, a, b, kb_int(k, KB_I32, 1, selector));
}

kb_reg kb_permute_by(kb *k, kb_reg a, kb_reg b, kb_reg selector) {
  kb_reg args[3] = {a, b, selector};
  return kb_intrinsic(k, "llvm.nvvm.prmt", NULL, 0, args, 3, KB_I32, 1);
}

kb_reg kb_and_xor(kb *k, kb_reg a, uint32_t mask, uint32_t flip) {
  kb_reg args[3] = {a, kb_int(k, KB_I32, 1, mask), kb_int(k, KB_I32, 1, flip)};
  return kb_asm(k, "lop3.b32 $0, $1, $2, $3, 0x6a;", "=r,r,n,n", args, 3, KB_I32);
}

kb_reg kb_word_of_pairs(kb *k, kb_reg low, kb_reg high) {
  kb_reg halves[2] = {low, high};
  return kb_bitcast(k, kb_join(k, halves, 2), KB_I32, 1);
}

kb_reg kb_pair_of_word(kb *k, kb_reg word, unsigned half) {
  return kb_extract(k, kb_bitcast(k, word, KB_I16, 2), half);
}

kb_reg kb_pack_sat(kb *k, unsigned bits, bool is_signed, kb_reg lo, kb_reg hi, kb_reg above) {
  static const char *const text[] = {
      "cvt.pack.sat.u4.s32.b32 $0, $1, $2, $3;", "cvt.pack.sat.s4.s32.b32 $0, $1, $2, $3;",
      "cvt.pack.sat.u8.s32.b32 $0, $1, $2, $3;", "cvt.pack.sat.s8.s32.b32 $0, $1, $2, $3;"};
  return kb_asm(k, text[(bits == 8) * 2 + is_signed], "=r,r,r,r", (kb_reg[]){hi, lo, above}, 3, KB_I32);
}

// --- pairs of f16 ---------------------------------------------------------------------------------------------------

kb_reg kb_pack2_rz(kb *k, kb_reg lo, kb_reg hi) {
  kb_reg args[2] = {hi, lo};
  return kb_intrinsic(k, "llvm.nvvm.ff2f16x2.rz", NULL, 0, args, 2, KB_F16, 2);
}

// --- pairs of 8 bits ------------------------------------------------------------------------------------------------

kb_reg kb_f8x2_of_f32(kb *k, kb_f8 to, kb_reg lo, kb_reg hi) {
  static const char *const text[] = {[KB_E4M3] = "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;",
                                     [KB_E5M2] = "cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2;",
                                     [KB_E2M1] =
                                         "{ .reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, $1, $2; cvt.u16.u8 $0, b; }"};
  return kb_asm(k, text[to], "=h,f,f", (kb_reg[]){hi, lo}, 2, KB_I16);
}

kb_reg kb_f8x2_of_f16x2(kb *k, kb_f8 to, kb_reg x) {
  static const char *const text[] = {
      [KB_E4M3] = "cvt.rn.satfinite.e4m3x2.f16x2 $0, $1;", [KB_E5M2] = "cvt.rn.satfinite.e5m2x2.f16x2 $0, $1;"};
  return kb_asm(k, text[to], "=h,r", (kb_reg[]){kb_bitcast(k, x, KB_I32, 1)}, 1, KB_I16);
}

kb_reg kb_f16x2_of_f8x2(kb *k, kb_f8 from, kb_reg x) {
  static const char *const text[] = {[KB_E4M3] = "cvt.rn.f16x2.e4m3x2 $0, $1;",
                                     [KB_E5M2] = "cvt.rn.f16x2.e5m2x2 $0, $1;",
                                     [KB_E2M1] = "{ .reg .b8 b; cvt.u8.u16 b, $1; cvt.rn.f16x2.e2m1x2 $0, b; }"};
  return kb_bitcast(k, kb_asm(k, text[from], "=r,h", &x, 1, KB_I32), KB_F16, 2);
}

kb_reg kb_asm(kb *k, const char *text, const char *constraints, const kb_reg *args, unsigned n, kb_kind kind) {
  LLVMTypeRef types[4];
  LLVMValueRef v[4];
  for (unsigned i = 0; i < n; i++) {
    v[i] = args[i].v;
    types[i] = LLVMTypeOf(v[i]);
  }
  LLVMTypeRef fty = LLVMFunctionType(kb_type(k, kind, 1), types, n, false);
  LLVMValueRef fn = LLVMGetInlineAsm(fty, text, strlen(text), constraints, strlen(constraints), false, false,
                                     LLVMInlineAsmDialectATT, false);
  LLVMValueRef r = LLVMBuildCall2(k->b, fty, fn, v, n, "");
  unsigned memory = LLVMGetEnumAttributeKindForName("memory", 6); // none
  LLVMAddCallSiteAttribute(r, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                           LLVMCreateEnumAttribute(k->llcx, memory, 0));
  return reg(r, kind, 1);
}
