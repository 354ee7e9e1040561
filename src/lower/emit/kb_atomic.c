// kb: what several threads do to one element. On NVPTX templates of inline assembly, relaxed and seen by the device, or
// in shared memory by the block: LLVM drops orderings and scopes, and makes loops of some. On the host LLVM's own,
// monotonic.

#include "lower/emit/kb.h"

#include <stdio.h>

// A template that touches memory at args[0], $* its scope and space; kind KB_PTR: without a result.
static kb_reg touch(kb *k, const char *template, const char *constraints, const kb_reg *args, unsigned n,
                    kb_kind kind) {
  LLVMTypeRef types[5];
  LLVMValueRef v[5];
  char text[96];
  bool gives = kind != KB_PTR;
  for (unsigned i = 0; i < n; i++) v[i] = args[i].v, types[i] = LLVMTypeOf(v[i]);
  const char *where = strstr(template, "$*"),
             *space = LLVMGetPointerAddressSpace(types[0]) == 3 ? "cta.shared" : "gpu.global";
  snprintf(text, sizeof text, "%.*s%s%s", (int)(where - template), template, space, where + 2);
  LLVMTypeRef fty = LLVMFunctionType(gives ? kb_type(k, kind, 1) : LLVMVoidTypeInContext(k->llcx), types, n, false);
  LLVMValueRef fn = LLVMGetInlineAsm(fty, text, strlen(text), constraints, strlen(constraints), true, false,
                                     LLVMInlineAsmDialectATT, false);
  return (kb_reg){LLVMBuildCall2(k->b, fty, fn, v, n, ""), (uint8_t)kind, 1};
}

static unsigned size_row(kb_kind bits) {
  return bits == KB_I64 ? 2 : bits == KB_I32 ? 1 : 0;
}

kb_reg kb_load_any(kb *k, kb_reg p, kb_kind bits) {
  static const char *const text[] = {"ld.relaxed.$*.b16 $0, [$1];", "ld.relaxed.$*.b32 $0, [$1];",
                                     "ld.relaxed.$*.b64 $0, [$1];"};
  static const char *const constraints[] = {"=h,l", "=r,l", "=l,l"};
  if (k->machine == KB_NVPTX) return touch(k, text[size_row(bits)], constraints[size_row(bits)], &p, 1, bits);
  LLVMValueRef v = LLVMBuildLoad2(k->b, kb_type(k, bits, 1), p.v, "");
  LLVMSetOrdering(v, LLVMAtomicOrderingMonotonic);
  LLVMSetAlignment(v, kb_kind_bits(bits) / 8);
  return (kb_reg){v, (uint8_t)bits, 1};
}

void kb_store_any(kb *k, kb_reg p, kb_reg bits) {
  static const char *const text[] = {"st.relaxed.$*.b16 [$0], $1;", "st.relaxed.$*.b32 [$0], $1;",
                                     "st.relaxed.$*.b64 [$0], $1;"};
  static const char *const constraints[] = {"l,h", "l,r", "l,l"};
  unsigned row = size_row((kb_kind)bits.kind);
  if (k->machine == KB_HOST) {
    LLVMValueRef v = LLVMBuildStore(k->b, bits.v, p.v);
    LLVMSetOrdering(v, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(v, kb_kind_bits((kb_kind)bits.kind) / 8);
  } else if (bits.kind == KB_I8) {
    kb_reg half = kb_trunc(k, kb_zext(k, bits, KB_I32), KB_I16);
    touch(k, "st.relaxed.$*.b8 [$0], $1;", "l,h", (kb_reg[]){p, half}, 2, KB_PTR);
  } else {
    touch(k, text[row], constraints[row], (kb_reg[]){p, bits}, 2, KB_PTR);
  }
}

kb_reg kb_compare_swap(kb *k, kb_reg p, kb_reg old, kb_reg next) {
  static const char *const text[] = {"atom.relaxed.$*.cas.b16 $0, [$1], $2, $3;",
                                     "atom.relaxed.$*.cas.b32 $0, [$1], $2, $3;",
                                     "atom.relaxed.$*.cas.b64 $0, [$1], $2, $3;"};
  static const char *const constraints[] = {"=h,l,h,h", "=r,l,r,r", "=l,l,l,l"};
  kb_kind kind = (kb_kind)old.kind;
  unsigned row = size_row(kind);
  if (k->machine == KB_NVPTX) return touch(k, text[row], constraints[row], (kb_reg[]){p, old, next}, 3, kind);
  LLVMValueRef v =
      LLVMBuildAtomicCmpXchg(k->b, p.v, old.v, next.v, LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingMonotonic, false);
  return (kb_reg){LLVMBuildExtractValue(k->b, v, 0, ""), (uint8_t)kind, 1};
}

void kb_change_int(kb *k, kb_change how, kb_reg p, kb_reg bits) {
  static const struct {
    const char *b32, *b64;
    LLVMAtomicRMWBinOp op;
  } rows[] = {
      [KB_ADD] = {"red.relaxed.$*.add.u32 [$0], $1;", "red.relaxed.$*.add.u64 [$0], $1;", LLVMAtomicRMWBinOpAdd},
      [KB_AND] = {"red.relaxed.$*.and.b32 [$0], $1;", "red.relaxed.$*.and.b64 [$0], $1;", LLVMAtomicRMWBinOpAnd},
      [KB_OR] = {"red.relaxed.$*.or.b32 [$0], $1;", "red.relaxed.$*.or.b64 [$0], $1;", LLVMAtomicRMWBinOpOr},
      [KB_XOR] = {"red.relaxed.$*.xor.b32 [$0], $1;", "red.relaxed.$*.xor.b64 [$0], $1;", LLVMAtomicRMWBinOpXor},
      [KB_SMIN] = {"red.relaxed.$*.min.s32 [$0], $1;", "red.relaxed.$*.min.s64 [$0], $1;", LLVMAtomicRMWBinOpMin},
      [KB_SMAX] = {"red.relaxed.$*.max.s32 [$0], $1;", "red.relaxed.$*.max.s64 [$0], $1;", LLVMAtomicRMWBinOpMax},
      [KB_UMIN] = {"red.relaxed.$*.min.u32 [$0], $1;", "red.relaxed.$*.min.u64 [$0], $1;", LLVMAtomicRMWBinOpUMin},
      [KB_UMAX] = {"red.relaxed.$*.max.u32 [$0], $1;", "red.relaxed.$*.max.u64 [$0], $1;", LLVMAtomicRMWBinOpUMax},
  };
  if (k->machine == KB_HOST) {
    LLVMBuildAtomicRMW(k->b, rows[how].op, p.v, bits.v, LLVMAtomicOrderingMonotonic, false);
    return;
  }
  bool wide = bits.kind == KB_I64;
  touch(k, wide ? rows[how].b64 : rows[how].b32, wide ? "l,l" : "l,r", (kb_reg[]){p, bits}, 2, KB_PTR);
}

void kb_add_float(kb *k, kb_kind kind, kb_reg p, const kb_reg *bits, unsigned n) {
  static const char *const constraints[] = {[1] = "l,r", [2] = "l,r,r", [4] = "l,r,r,r,r"};
  static const char *const f32[] = {[1] = "red.relaxed.$*.add.f32 [$0], $1;",
                                    [2] = "red.relaxed.$*.add.v2.f32 [$0], {$1, $2};",
                                    [4] = "red.relaxed.$*.add.v4.f32 [$0], {$1, $2, $3, $4};"};
  static const char *const f16[] = {[1] = "red.relaxed.$*.add.noftz.f16x2 [$0], $1;",
                                    [2] = "red.relaxed.$*.add.noftz.v2.f16x2 [$0], {$1, $2};",
                                    [4] = "red.relaxed.$*.add.noftz.v4.f16x2 [$0], {$1, $2, $3, $4};"};
  static const char *const bf16[] = {[1] = "red.relaxed.$*.add.noftz.bf16x2 [$0], $1;",
                                     [2] = "red.relaxed.$*.add.noftz.v2.bf16x2 [$0], {$1, $2};",
                                     [4] = "red.relaxed.$*.add.noftz.v4.bf16x2 [$0], {$1, $2, $3, $4};"};
  kb_reg args[5] = {p};
  memcpy(args + 1, bits, n * sizeof *bits);
  if (kind == KB_F64) {
    touch(k, "red.relaxed.$*.add.f64 [$0], $1;", "l,l", args, 2, KB_PTR);
  } else if (bits->kind == KB_I16) {
    bool half = kind == KB_F16;
    touch(k, half ? "red.relaxed.$*.add.noftz.f16 [$0], $1;" : "red.relaxed.$*.add.noftz.bf16 [$0], $1;", "l,h", args,
          2, KB_PTR);
  } else {
    touch(k, (kind == KB_F32 ? f32 : kind == KB_F16 ? f16 : bf16)[n], constraints[n], args, n + 1, KB_PTR);
  }
}
