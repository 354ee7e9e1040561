// kb: the kernel builder. A typed layer over LLVM-C, and the only way the emitters meet LLVM.
//
// A kb_reg is an LLVM value with its machine kind and lane count; lanes == 1 is a scalar, more an LLVM vector. The same
// emitter code serves NVPTX (scalars, and packed <2 x half> / <2 x bfloat>) and the host (vectors of many lanes).
// Every operation here is a row of the closed table of ops.c: exactly specified, no fast-math flags, no libcalls.
// Integer kinds carry no sign; the operation says it. Operands of one operation agree in kind and lanes.
#ifndef KL_KB_H
#define KL_KB_H

#include "base/base.h"
#include <llvm-c/Core.h>

typedef enum kb_kind { KB_I1, KB_I8, KB_I16, KB_I32, KB_I64, KB_F16, KB_BF16, KB_F32, KB_F64, KB_PTR } kb_kind;

typedef struct kb_reg {
  LLVMValueRef v;
  uint8_t kind;
  uint16_t lanes;
} kb_reg;

typedef enum kb_machine { KB_NVPTX, KB_HOST } kb_machine;

typedef struct kb {
  kl_ctx *cx;
  LLVMContextRef llcx;
  LLVMModuleRef module;
  LLVMBuilderRef b;
  LLVMValueRef fn; // the function being built
  kb_machine machine;
  int sm;      // 70, 75, 80, 90 ... ; 0 on the host
  bool narrow; // conversions to and from 4 bits, which targets with a or f have from sm_100 on
  bool fast;   // functions of F32 may be approximate (math/fast.c)
  bool calls;  // elementary functions are called, not expanded in place
  // On NVPTX, where several blocks' work is done side by side: the threads of one, and the I32 number of the barrier by
  // which they wait for each other. 0: all of the block are.
  uint32_t team;
  kb_reg barrier;
} kb;

LLVMTypeRef kb_type(kb *k, kb_kind kind, unsigned lanes);
unsigned kb_kind_bits(kb_kind kind);

// Constants, splat over `lanes`.
kb_reg kb_int(kb *k, kb_kind kind, unsigned lanes, int64_t v);
kb_reg kb_float(kb *k, kb_kind kind, unsigned lanes, double v); // F32 or F64; v must be exact in the kind
kb_reg kb_ints(kb *k, const int64_t *values, unsigned n);       // one a lane; I32, or I64 where that does not hold them
// As many lanes and the same kind as `like`.
static inline kb_reg kb_ilike(kb *k, kb_reg like, int64_t v) {
  return kb_int(k, (kb_kind)like.kind, like.lanes, v);
}
static inline kb_reg kb_flike(kb *k, kb_reg like, double v) {
  return kb_float(k, (kb_kind)like.kind, like.lanes, v);
}

// Integers (I1 too for and, or, xor).
kb_reg kb_add(kb *k, kb_reg a, kb_reg b);
kb_reg kb_sub(kb *k, kb_reg a, kb_reg b);
kb_reg kb_mul(kb *k, kb_reg a, kb_reg b);
kb_reg kb_sdiv(kb *k, kb_reg a, kb_reg b); // undefined for b == 0 and MIN / -1
kb_reg kb_udiv(kb *k, kb_reg a, kb_reg b); // undefined for b == 0
kb_reg kb_srem(kb *k, kb_reg a, kb_reg b);
kb_reg kb_urem(kb *k, kb_reg a, kb_reg b);
kb_reg kb_udiv_most(kb *k, kb_reg a, uint32_t by, uint32_t most); // I32 a <= most, by > 0
kb_reg kb_mul_wide(kb *k, kb_reg a, uint32_t by);                 // I32 scalars, unsigned: the whole product, I64
kb_reg kb_umulhi(kb *k, kb_reg a, kb_reg b);                      // I64: the high half of the unsigned product
kb_reg kb_and(kb *k, kb_reg a, kb_reg b);
kb_reg kb_or(kb *k, kb_reg a, kb_reg b);
kb_reg kb_xor(kb *k, kb_reg a, kb_reg b);
kb_reg kb_not(kb *k, kb_reg a);
kb_reg kb_shl(kb *k, kb_reg a, kb_reg b); // undefined for b >= width
kb_reg kb_lshr(kb *k, kb_reg a, kb_reg b);
kb_reg kb_ashr(kb *k, kb_reg a, kb_reg b);
kb_reg kb_ctpop(kb *k, kb_reg a); // I32, I64
kb_reg kb_ctlz(kb *k, kb_reg a);  // I32, I64; width for 0
// By a constant.
kb_reg kb_shli(kb *k, kb_reg a, unsigned n);
kb_reg kb_lshri(kb *k, kb_reg a, unsigned n);
kb_reg kb_ashri(kb *k, kb_reg a, unsigned n);
kb_reg kb_andi(kb *k, kb_reg a, int64_t mask);
kb_reg kb_addi(kb *k, kb_reg a, int64_t v);
kb_reg kb_smin(kb *k, kb_reg a, kb_reg b);
kb_reg kb_smax(kb *k, kb_reg a, kb_reg b);
kb_reg kb_umin(kb *k, kb_reg a, kb_reg b);
kb_reg kb_umax(kb *k, kb_reg a, kb_reg b);
kb_reg kb_icmp(kb *k, LLVMIntPredicate p, kb_reg a, kb_reg b); // I1 lanes

// Floats: round to nearest even, denormals kept. F32 and F64; also F16 and BF16 (sm_80+) as <2 x ..> on NVPTX.
kb_reg kb_fadd(kb *k, kb_reg a, kb_reg b);
kb_reg kb_fsub(kb *k, kb_reg a, kb_reg b);
kb_reg kb_fmul(kb *k, kb_reg a, kb_reg b);
kb_reg kb_fma(kb *k, kb_reg a, kb_reg b, kb_reg c);
kb_reg kb_fneg(kb *k, kb_reg a);                           // of NaN any NaN (on NVPTX its sign is open)
kb_reg kb_fabs(kb *k, kb_reg a);                           // the same
kb_reg kb_fcopysign(kb *k, kb_reg magnitude, kb_reg sign); // F32, F64
kb_reg kb_fdiv(kb *k, kb_reg a, kb_reg b);                 // F32, F64; about 25 SASS instructions
kb_reg kb_fsqrt(kb *k, kb_reg a);                          // F32, F64
kb_reg kb_floor(kb *k, kb_reg a);                          // F32, F64
kb_reg kb_ceil(kb *k, kb_reg a);
kb_reg kb_trunc_f(kb *k, kb_reg a);
kb_reg kb_roundeven(kb *k, kb_reg a);
// NaN-propagating, -0 < +0 (IEEE 754-2019 minimum, maximum); F32, F64 and the packed kinds.
kb_reg kb_fmax(kb *k, kb_reg a, kb_reg b);
kb_reg kb_fmin(kb *k, kb_reg a, kb_reg b);
kb_reg kb_fmax_magnitude(kb *k, kb_reg a, kb_reg b); // the greater of the magnitudes, of open sign; packed BF16, sm_90+
kb_reg kb_fcmp(kb *k, LLVMRealPredicate p, kb_reg a, kb_reg b); // F32, F64; I1 lanes
static inline kb_reg kb_fmuli(kb *k, kb_reg a, double v) {
  return kb_fmul(k, a, kb_flike(k, a, v));
}
static inline kb_reg kb_faddi(kb *k, kb_reg a, double v) {
  return kb_fadd(k, a, kb_flike(k, a, v));
}

// c is I1 with as many lanes, or one lane for all.
kb_reg kb_select(kb *k, kb_reg c, kb_reg a, kb_reg b);
// a, of which LLVM's analysis of loops follows nothing back: strength reduction finds no pointers to move along.
kb_reg kb_opaque(kb *k, kb_reg a);

// Conversions; lanes stay.
kb_reg kb_trunc(kb *k, kb_reg a, kb_kind to);
kb_reg kb_zext(kb *k, kb_reg a, kb_kind to);
kb_reg kb_sext(kb *k, kb_reg a, kb_kind to);
kb_reg kb_bitcast(kb *k, kb_reg a, kb_kind to, unsigned lanes);
kb_reg kb_sitofp(kb *k, kb_reg a, kb_kind to); // I32, I64 to F32, F64
kb_reg kb_uitofp(kb *k, kb_reg a, kb_kind to);
// Truncates toward zero; undefined (any value, no trap) for NaN and out of range: guard with selects.
kb_reg kb_fptosi(kb *k, kb_reg a, kb_kind to); // F32, F64 to I32, I64
kb_reg kb_fptoui(kb *k, kb_reg a, kb_kind to);
kb_reg kb_fpext(kb *k, kb_reg a);   // F32 to F64
kb_reg kb_fptrunc(kb *k, kb_reg a); // F64 to F32, nearest even

// Vectors.
kb_reg kb_splat(kb *k, kb_reg scalar, unsigned lanes);
kb_reg kb_extract(kb *k, kb_reg vec, unsigned lane);
kb_reg kb_join(kb *k, const kb_reg *scalars, unsigned n); // n scalars to one vector; n == 1: the scalar
kb_reg kb_slice(kb *k, kb_reg vec, unsigned first, unsigned n);
kb_reg kb_concat(kb *k, const kb_reg *vecs, unsigned n);  // equal lanes
kb_reg kb_concat_halves(kb *k, kb_reg *vecs, unsigned n); // the same of a power of two; `vecs` are overwritten
kb_reg kb_reverse(kb *k, kb_reg vec);
kb_reg kb_shuffle(kb *k, kb_reg vec, const unsigned *mask, unsigned n); // lane i of the result is lane mask[i]
kb_reg kb_shuffle_two(kb *k, kb_reg a, kb_reg b, const unsigned *mask, unsigned n); // lanes of b behind those of a
// On the host: of each lane what lies `index * size` bytes behind base; index: I32 or I64 lanes, signed; of 32 or 64
// bits.
kb_reg kb_gather(kb *k, kb_reg base, kb_reg index, unsigned size, kb_kind to);
// On the host: elements that follow each other from number `index` (signed) behind base on, of 32 or 64 bits; of lanes
// whose mask is false 0, and nothing is read there.
kb_reg kb_load_where(kb *k, kb_reg base, kb_reg index, kb_reg mask, kb_kind to);

// What the lane has whose number differs by the bit `distance`; any kind but PTR. On NVPTX of a warp, all of whose
// lanes are there; on the host of the register.
kb_reg kb_lane_xor(kb *k, kb_reg a, unsigned distance);
kb_reg kb_lane_plus(kb *k, kb_reg a, unsigned distance); // behind the last lane comes the first
kb_reg kb_any_lane(kb *k, kb_reg c);                     // is c true for one lane of the warp? On NVPTX
kb_reg kb_of_lane(kb *k, kb_reg a, kb_reg lane);         // what the lane has, on NVPTX
kb_reg kb_special(kb *k, const char *name);              // a special register, I32, on NVPTX
kb_reg kb_sync_or(kb *k, kb_reg c);                      // of kb_sync's threads; is c true for one of them? On NVPTX
// On NVPTX, of the whole GPU: what the thread knows to have been stored, others know who find what it writes behind
// this; and it knows what they did whose writes it found before.
void kb_fence(kb *k);
// *p, an I32 in global memory, before it was counted up by one, from `last` to 0; whatever others do, at once.
kb_reg kb_count_up(kb *k, kb_reg p, uint32_t last);
void kb_meet(kb *k); // of all threads of a cluster's blocks, and what they have stored; on NVPTX
void kb_sync(kb *k); // of the threads of a block, and what they stored in shared memory; nothing on the host

// Elements that several threads may touch at a time: in one step each, in no order with others. `bits`: I8 (stores only
// on NVPTX), I16, I32 or I64 scalars; p: their address.
kb_reg kb_load_any(kb *k, kb_reg p, kb_kind bits);
void kb_store_any(kb *k, kb_reg p, kb_reg bits);
// If what is there is `old`, it becomes `next`; what was there.
kb_reg kb_compare_swap(kb *k, kb_reg p, kb_reg old, kb_reg next);
typedef enum kb_change { KB_ADD, KB_AND, KB_OR, KB_XOR, KB_SMIN, KB_SMAX, KB_UMIN, KB_UMAX } kb_change;
void kb_change_int(kb *k, kb_change how, kb_reg p, kb_reg bits); // NVPTX: I32, I64
// NVPTX: adds floats given as bits, F32 and F64 scalars or n words: 1, 2 or 4 F32 (sm_90+ but for 1) or pairs of F16
// and BF16 (sm_90+ but for 1 pair of F16), side by side and aligned to all of them. I16: one F16 or BF16.
void kb_add_float(kb *k, kb_kind kind, kb_reg p, const kb_reg *bits, unsigned n);

// NVPTX only, F32 scalars: approximate instructions with the error PTX documents, for use inside proven functions only.
// All of them flush denormals on both sides.
kb_reg kb_ex2_approx(kb *k, kb_reg a);         // ex2.approx.ftz.f32: 2 ulp from the correctly rounded result
kb_reg kb_rcp_approx(kb *k, kb_reg a);         // rcp.approx.ftz.f32: 1 ulp
kb_reg kb_rsqrt_approx(kb *k, kb_reg a);       // rsqrt.approx.ftz.f32: 2^-22.9 relative
kb_reg kb_sqrt_approx(kb *k, kb_reg a);        // sqrt.approx.ftz.f32: 2^-23 relative
kb_reg kb_lg2_approx(kb *k, kb_reg a);         // lg2.approx.ftz.f32: 2^-22 absolute in (0.5, 2), else relative
kb_reg kb_sin_approx(kb *k, kb_reg a);         // sin.approx.ftz.f32: 2^-20.5 absolute in [-2 pi, 2 pi]
kb_reg kb_cos_approx(kb *k, kb_reg a);         // cos.approx.ftz.f32: the same
kb_reg kb_saturate(kb *k, kb_reg a);           // to [0, 1], NaN to 0; for nothing beside the arithmetic that made a
kb_reg kb_div_full(kb *k, kb_reg a, kb_reg b); // div.full.f32: 2 ulp; denormals are kept
kb_reg kb_fma_down(kb *k, kb_reg a, kb_reg b, kb_reg c); // fma.rm.f32: exact, rounded downwards
// NVPTX scalars: saturating conversion toward zero, NaN to 0; F32 or F64 to I32.
kb_reg kb_f2i_sat(kb *k, kb_reg a, bool is_signed);
// NVPTX packed conversions. F32 scalars lo, hi to one <2 x half> / <2 x bfloat>, nearest even (sm_80+; F16 on any).
kb_reg kb_pack2(kb *k, kb_reg lo, kb_reg hi, kb_kind to);
// An I32 whose halves are all ones where the comparison of two packed registers holds, one of OEQ, OGT, OGE and OLT,
// else zeros; zeros for NaN (BF16: sm_90+).
kb_reg kb_mask2(kb *k, LLVMRealPredicate p, kb_reg a, kb_reg b);
// The same of |a| and a number.
kb_reg kb_size_mask2(kb *k, LLVMRealPredicate p, kb_reg a, double number);
// Lane of <2 x half> / <2 x bfloat> to F32.
kb_reg kb_unpack(kb *k, kb_reg packed, unsigned lane);

// NVPTX words, I32 scalars. Byte i of the result is the byte of b:a that nibble i of the selector names, or with 8
// added eight times its sign.
kb_reg kb_permute(kb *k, kb_reg a, kb_reg b, uint32_t selector);
kb_reg kb_permute_by(kb *k, kb_reg a, kb_reg b, kb_reg selector);
// (a & mask) ^ flip, as one instruction: of two constants ptxas makes two.
kb_reg kb_and_xor(kb *k, kb_reg a, uint32_t mask, uint32_t flip);
kb_reg kb_word_of_pairs(kb *k, kb_reg low, kb_reg high); // of two I16
kb_reg kb_pair_of_word(kb *k, kb_reg word, unsigned half);
// sm_75+: two I32 clamped to 4 or 8 bits each, lo lowest, and `above` shifted up behind them.
kb_reg kb_pack_sat(kb *k, unsigned bits, bool is_signed, kb_reg lo, kb_reg hi, kb_reg above);
// As kb_pack2 to F16, toward zero (sm_80+).
kb_reg kb_pack2_rz(kb *k, kb_reg lo, kb_reg hi);
// NVPTX sm_89+: pairs of 8-bit floats as I16, from F32 scalars or <2 x half> and to the latter. Nearest even; what is
// too large, infinity too, becomes the largest finite number. NaN is 0x7f. With `narrow`, but not from <2 x half>, also
// pairs of 4 bits in the low byte, where NaN becomes the largest number.
typedef enum kb_f8 { KB_E4M3, KB_E5M2, KB_E2M1 } kb_f8;
kb_reg kb_f8x2_of_f32(kb *k, kb_f8 to, kb_reg lo, kb_reg hi);
kb_reg kb_f8x2_of_f16x2(kb *k, kb_f8 to, kb_reg x);
kb_reg kb_f16x2_of_f8x2(kb *k, kb_f8 from, kb_reg x);

// A call of an intrinsic by its LLVM name, overloaded on `types`. Internal to kb_*.c.
kb_reg kb_intrinsic(kb *k, const char *name, const LLVMTypeRef *types, unsigned ntypes, const kb_reg *args,
                    unsigned nargs, kb_kind kind, unsigned lanes);
// One instruction of inline assembly, a row of irtable.c, that touches no memory. Internal to kb*.c.
kb_reg kb_asm(kb *k, const char *text, const char *constraints, const kb_reg *args, unsigned n, kb_kind kind);

#endif
