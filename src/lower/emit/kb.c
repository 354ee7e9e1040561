// kb: types, constants, integers, conversions and vectors. Floats are in kb_float.c.

#include "lower/emit/kb.h"

LLVMTypeRef kb_type(kb *k, kb_kind kind, unsigned lanes) {
  LLVMTypeRef t = NULL;
  switch (kind) {
  case KB_I1: t = LLVMInt1TypeInContext(k->llcx); break;
  case KB_I8: t = LLVMInt8TypeInContext(k->llcx); break;
  case KB_I16: t = LLVMInt16TypeInContext(k->llcx); break;
  case KB_I32: t = LLVMInt32TypeInContext(k->llcx); break;
  case KB_I64: t = LLVMInt64TypeInContext(k->llcx); break;
  case KB_F16: t = LLVMHalfTypeInContext(k->llcx); break;
  case KB_BF16: t = LLVMBFloatTypeInContext(k->llcx); break;
  case KB_F32: t = LLVMFloatTypeInContext(k->llcx); break;
  case KB_F64: t = LLVMDoubleTypeInContext(k->llcx); break;
  case KB_PTR: t = LLVMPointerTypeInContext(k->llcx, 0); break;
  }
  return lanes > 1 ? LLVMVectorType(t, lanes) : t;
}

unsigned kb_kind_bits(kb_kind kind) {
  static const uint8_t bits[] = {[KB_I1] = 1,   [KB_I8] = 8,    [KB_I16] = 16, [KB_I32] = 32, [KB_I64] = 64,
                                 [KB_F16] = 16, [KB_BF16] = 16, [KB_F32] = 32, [KB_F64] = 64, [KB_PTR] = 64};
  return bits[kind];
}

static kb_reg reg(LLVMValueRef v, kb_kind kind, unsigned lanes) {
  return (kb_reg){.v = v, .kind = (uint8_t)kind, .lanes = (uint16_t)lanes};
}
static kb_reg like(kb_reg a, LLVMValueRef v) {
  return (kb_reg){.v = v, .kind = a.kind, .lanes = a.lanes};
}

enum { KB_MAX_LANES = 256 };

static LLVMValueRef splat_const(LLVMValueRef c, unsigned lanes) {
  if (lanes <= 1) return c;
  LLVMValueRef v[KB_MAX_LANES];
  for (unsigned i = 0; i < lanes; i++) v[i] = c;
  return LLVMConstVector(v, lanes);
}

kb_reg kb_int(kb *k, kb_kind kind, unsigned lanes, int64_t v) {
  unsigned bits = kb_kind_bits(kind);
  uint64_t masked = bits < 64 ? (uint64_t)v & ((1ull << bits) - 1) : (uint64_t)v;
  return reg(splat_const(LLVMConstInt(kb_type(k, kind, 1), masked, false), lanes), kind, lanes);
}

kb_reg kb_float(kb *k, kb_kind kind, unsigned lanes, double v) {
  return reg(splat_const(LLVMConstReal(kb_type(k, kind, 1), v), lanes), kind, lanes);
}

kb_reg kb_ints(kb *k, const int64_t *values, unsigned n) {
  LLVMValueRef v[KB_MAX_LANES];
  bool narrow = true;
  for (unsigned i = 0; i < n; i++) narrow = narrow && values[i] == (int32_t)values[i];
  kb_kind kind = narrow ? KB_I32 : KB_I64;
  for (unsigned i = 0; i < n; i++) v[i] = kb_int(k, kind, 1, values[i]).v;
  return reg(n > 1 ? LLVMConstVector(v, n) : v[0], kind, n);
}

kb_reg kb_intrinsic(kb *k, const char *name, const LLVMTypeRef *types, unsigned ntypes, const kb_reg *args,
                    unsigned nargs, kb_kind kind, unsigned lanes) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMTypeRef *tys = (LLVMTypeRef *)types;
  LLVMValueRef fn = LLVMGetIntrinsicDeclaration(k->module, id, tys, ntypes);
  LLVMTypeRef fty = LLVMIntrinsicGetType(k->llcx, id, tys, ntypes);
  LLVMValueRef v[4];
  for (unsigned i = 0; i < nargs; i++) v[i] = args[i].v;
  return reg(LLVMBuildCall2(k->b, fty, fn, v, nargs, ""), kind, lanes);
}

// --- integers -----------------------------------------------------------------------------------------------------

#define BINARY(fn, build)                                                                                              \
  kb_reg fn(kb *k, kb_reg a, kb_reg b) {                                                                               \
    return like(a, build(k->b, a.v, b.v, ""));                                                                         \
  }
BINARY(kb_add, LLVMBuildAdd)
BINARY(kb_sub, LLVMBuildSub)
BINARY(kb_mul, LLVMBuildMul)
BINARY(kb_sdiv, LLVMBuildSDiv)
BINARY(kb_udiv, LLVMBuildUDiv)
BINARY(kb_srem, LLVMBuildSRem)
BINARY(kb_urem, LLVMBuildURem)
BINARY(kb_and, LLVMBuildAnd)
BINARY(kb_or, LLVMBuildOr)
BINARY(kb_xor, LLVMBuildXor)
BINARY(kb_shl, LLVMBuildShl)
BINARY(kb_lshr, LLVMBuildLShr)
BINARY(kb_ashr, LLVMBuildAShr)

// LLVM selects mul.wide from its first optimisation level on only.
kb_reg kb_mul_wide(kb *k, kb_reg a, uint32_t by) {
  if (k->machine != KB_NVPTX || LLVMIsConstant(a.v)) return kb_mul(k, kb_zext(k, a, KB_I64), kb_int(k, KB_I64, 1, by));
  return kb_asm(k, "mul.wide.u32 $0, $1, $2;", "=l,r,n", (kb_reg[]){a, kb_int(k, KB_I32, 1, by)}, 2, KB_I64);
}

// floor(a / d) = floor(a * m / 2^(32+s)) with m = ceil(2^(32+s) / d): the excess a * (m*d - 2^(32+s)) / (d * 2^(32+s))
// stays below 1/d, so that no a reaches the next multiple early. One multiplication, where LLVM, which knows nothing of
// `most`, may need an addition of 33 bits besides.
kb_reg kb_udiv_most(kb *k, kb_reg a, uint32_t d, uint32_t most) {
  if (k->machine == KB_NVPTX && a.kind == KB_I32 && (d & (d - 1)) != 0 && !LLVMIsConstant(a.v)) {
    for (unsigned s = 0; s < 32; s++) {
      uint64_t two = (uint64_t)1 << (32 + s), m = (two + d - 1) / d, excess = m * d - two;
      if (m > UINT32_MAX) break;
      if ((__uint128_t)excess * most >= two) continue;
      kb_reg wide = kb_mul(k, kb_zext(k, a, KB_I64), kb_int(k, KB_I64, a.lanes, (int64_t)m));
      return kb_trunc(k, kb_lshri(k, wide, 32 + s), KB_I32);
    }
  }
  return kb_udiv(k, a, kb_ilike(k, a, d));
}

// By the four products of halves.
kb_reg kb_umulhi(kb *k, kb_reg a, kb_reg b) {
  kb_reg al = kb_andi(k, a, 0xffffffff), ah = kb_lshri(k, a, 32), bl = kb_andi(k, b, 0xffffffff),
         bh = kb_lshri(k, b, 32);
  kb_reg low = kb_lshri(k, kb_mul(k, al, bl), 32), middle = kb_add(k, kb_mul(k, ah, bl), low);
  kb_reg other = kb_add(k, kb_mul(k, al, bh), kb_andi(k, middle, 0xffffffff));
  return kb_add(k, kb_mul(k, ah, bh), kb_add(k, kb_lshri(k, middle, 32), kb_lshri(k, other, 32)));
}

kb_reg kb_not(kb *k, kb_reg a) {
  return like(a, LLVMBuildNot(k->b, a.v, ""));
}

static kb_reg overloaded(kb *k, const char *name, kb_reg a, kb_reg b) {
  LLVMTypeRef t = LLVMTypeOf(a.v);
  kb_reg args[2] = {a, b};
  return kb_intrinsic(k, name, &t, 1, args, 2, (kb_kind)a.kind, a.lanes);
}

kb_reg kb_ctpop(kb *k, kb_reg a) {
  LLVMTypeRef t = LLVMTypeOf(a.v);
  return kb_intrinsic(k, "llvm.ctpop", &t, 1, &a, 1, (kb_kind)a.kind, a.lanes);
}

kb_reg kb_ctlz(kb *k, kb_reg a) {
  return overloaded(k, "llvm.ctlz", a, kb_int(k, KB_I1, 1, 0));
}

kb_reg kb_shli(kb *k, kb_reg a, unsigned n) {
  return n ? kb_shl(k, a, kb_ilike(k, a, n)) : a;
}
kb_reg kb_lshri(kb *k, kb_reg a, unsigned n) {
  return n ? kb_lshr(k, a, kb_ilike(k, a, n)) : a;
}
kb_reg kb_ashri(kb *k, kb_reg a, unsigned n) {
  return n ? kb_ashr(k, a, kb_ilike(k, a, n)) : a;
}
kb_reg kb_andi(kb *k, kb_reg a, int64_t mask) {
  return kb_and(k, a, kb_ilike(k, a, mask));
}
kb_reg kb_addi(kb *k, kb_reg a, int64_t v) {
  return v ? kb_add(k, a, kb_ilike(k, a, v)) : a;
}

kb_reg kb_smin(kb *k, kb_reg a, kb_reg b) {
  return overloaded(k, "llvm.smin", a, b);
}
kb_reg kb_smax(kb *k, kb_reg a, kb_reg b) {
  return overloaded(k, "llvm.smax", a, b);
}
kb_reg kb_umin(kb *k, kb_reg a, kb_reg b) {
  return overloaded(k, "llvm.umin", a, b);
}
kb_reg kb_umax(kb *k, kb_reg a, kb_reg b) {
  return overloaded(k, "llvm.umax", a, b);
}

kb_reg kb_icmp(kb *k, LLVMIntPredicate p, kb_reg a, kb_reg b) {
  return reg(LLVMBuildICmp(k->b, p, a.v, b.v, ""), KB_I1, a.lanes);
}

kb_reg kb_select(kb *k, kb_reg c, kb_reg a, kb_reg b) {
  if (LLVMIsAConstantInt(c.v)) return LLVMConstIntGetZExtValue(c.v) ? a : b;
  return like(a, LLVMBuildSelect(k->b, c.v, a.v, b.v, ""));
}

kb_reg kb_opaque(kb *k, kb_reg a) {
  return like(a, LLVMBuildFreeze(k->b, a.v, ""));
}

// --- conversions --------------------------------------------------------------------------------------------------

#define CONVERT(fn, build)                                                                                             \
  kb_reg fn(kb *k, kb_reg a, kb_kind to) {                                                                             \
    return a.kind == to ? a : reg(build(k->b, a.v, kb_type(k, to, a.lanes), ""), to, a.lanes);                         \
  }
CONVERT(kb_trunc, LLVMBuildTrunc)
CONVERT(kb_zext, LLVMBuildZExt)
CONVERT(kb_sext, LLVMBuildSExt)
CONVERT(kb_sitofp, LLVMBuildSIToFP)
CONVERT(kb_uitofp, LLVMBuildUIToFP)
CONVERT(kb_fptosi, LLVMBuildFPToSI)
CONVERT(kb_fptoui, LLVMBuildFPToUI)

kb_reg kb_bitcast(kb *k, kb_reg a, kb_kind to, unsigned lanes) {
  return reg(LLVMBuildBitCast(k->b, a.v, kb_type(k, to, lanes), ""), to, lanes);
}

kb_reg kb_fpext(kb *k, kb_reg a) {
  return reg(LLVMBuildFPExt(k->b, a.v, kb_type(k, KB_F64, a.lanes), ""), KB_F64, a.lanes);
}
kb_reg kb_fptrunc(kb *k, kb_reg a) {
  return reg(LLVMBuildFPTrunc(k->b, a.v, kb_type(k, KB_F32, a.lanes), ""), KB_F32, a.lanes);
}

// --- vectors ------------------------------------------------------------------------------------------------------

static LLVMValueRef lane_const(kb *k, unsigned i) {
  return LLVMConstInt(kb_type(k, KB_I32, 1), i, false);
}

static kb_reg shuffle(kb *k, kb_reg a, kb_reg b, const unsigned *mask, unsigned n) {
  LLVMValueRef m[KB_MAX_LANES];
  for (unsigned i = 0; i < n; i++) m[i] = lane_const(k, mask[i]);
  return reg(LLVMBuildShuffleVector(k->b, a.v, b.v, LLVMConstVector(m, n), ""), (kb_kind)a.kind, n);
}

kb_reg kb_shuffle(kb *k, kb_reg vec, const unsigned *mask, unsigned n) {
  if (n == 1) return kb_extract(k, vec, mask[0]);
  return shuffle(k, vec, like(vec, LLVMGetPoison(LLVMTypeOf(vec.v))), mask, n);
}

kb_reg kb_shuffle_two(kb *k, kb_reg a, kb_reg b, const unsigned *mask, unsigned n) {
  return shuffle(k, a, b, mask, n);
}

kb_reg kb_splat(kb *k, kb_reg scalar, unsigned lanes) {
  if (lanes <= 1) return scalar;
  if (LLVMIsConstant(scalar.v)) return reg(splat_const(scalar.v, lanes), (kb_kind)scalar.kind, lanes);
  unsigned mask[KB_MAX_LANES] = {0};
  LLVMValueRef undef = LLVMGetPoison(kb_type(k, (kb_kind)scalar.kind, lanes));
  kb_reg one = reg(LLVMBuildInsertElement(k->b, undef, scalar.v, lane_const(k, 0), ""), (kb_kind)scalar.kind, lanes);
  return shuffle(k, one, like(one, undef), mask, lanes);
}

kb_reg kb_extract(kb *k, kb_reg vec, unsigned lane) {
  if (vec.lanes <= 1) return vec;
  return reg(LLVMBuildExtractElement(k->b, vec.v, lane_const(k, lane), ""), (kb_kind)vec.kind, 1);
}

static bool is_one_value(const kb_reg *scalars, unsigned n) {
  for (unsigned i = 1; i < n; i++)
    if (scalars[i].v != scalars[0].v) return false;
  return true;
}

kb_reg kb_join(kb *k, const kb_reg *scalars, unsigned n) {
  if (n == 1) return scalars[0];
  if (k->machine == KB_HOST && is_one_value(scalars, n)) return kb_splat(k, scalars[0], n);
  LLVMValueRef v = LLVMGetPoison(kb_type(k, (kb_kind)scalars[0].kind, n));
  for (unsigned i = 0; i < n; i++) v = LLVMBuildInsertElement(k->b, v, scalars[i].v, lane_const(k, i), "");
  return reg(v, (kb_kind)scalars[0].kind, n);
}

// With `from`, a pointer or a vector of them, and `mask`; lanes off the mask are 0.
static kb_reg load_lanes(kb *k, const char *name, kb_reg from, kb_reg mask, kb_kind to) {
  LLVMTypeRef types[2] = {kb_type(k, to, mask.lanes), LLVMTypeOf(from.v)};
  kb_reg args[3] = {from, mask, reg(LLVMConstNull(types[0]), to, mask.lanes)};
  kb_reg r = kb_intrinsic(k, name, types, 2, args, 3, to, mask.lanes);
  unsigned align = LLVMGetEnumAttributeKindForName("align", 5);
  LLVMAddCallSiteAttribute(r.v, 1, LLVMCreateEnumAttribute(k->llcx, align, kb_kind_bits(to) / 8));
  return r;
}

kb_reg kb_gather(kb *k, kb_reg base, kb_reg index, unsigned size, kb_kind to) {
  LLVMTypeRef element = LLVMIntTypeInContext(k->llcx, 8 * size);
  kb_reg at = reg(LLVMBuildInBoundsGEP2(k->b, element, base.v, &index.v, 1, ""), KB_PTR, index.lanes);
  return load_lanes(k, "llvm.masked.gather", at, kb_int(k, KB_I1, index.lanes, 1), to);
}

kb_reg kb_load_where(kb *k, kb_reg base, kb_reg index, kb_reg mask, kb_kind to) {
  kb_reg at = reg(LLVMBuildGEP2(k->b, kb_type(k, to, 1), base.v, &index.v, 1, ""), KB_PTR, 1);
  return load_lanes(k, "llvm.masked.load", at, mask, to);
}

kb_reg kb_slice(kb *k, kb_reg vec, unsigned first, unsigned n) {
  if (n == vec.lanes) return vec;
  if (n == 1) return kb_extract(k, vec, first);
  unsigned mask[KB_MAX_LANES];
  for (unsigned i = 0; i < n; i++) mask[i] = first + i;
  return kb_shuffle(k, vec, mask, n);
}

kb_reg kb_concat_halves(kb *k, kb_reg *vecs, unsigned n) {
  for (; n > 1; n /= 2)
    for (unsigned i = 0; i < n / 2; i++) vecs[i] = kb_concat(k, vecs + 2 * i, 2);
  return vecs[0];
}

kb_reg kb_concat(kb *k, const kb_reg *vecs, unsigned n) {
  if (n == 1) return vecs[0];
  if (vecs[0].lanes == 1) return kb_join(k, vecs, n);
  if (n == 2) {
    unsigned mask[KB_MAX_LANES];
    for (unsigned i = 0; i < 2u * vecs[0].lanes; i++) mask[i] = i;
    return shuffle(k, vecs[0], vecs[1], mask, 2u * vecs[0].lanes);
  }
  // Halves pair by pair where n is even (it is a power of two at all call sites but odd tails).
  kb_reg lanes[KB_MAX_LANES] = {0};
  unsigned m = 0;
  for (unsigned i = 0; i < n; i++) {
    for (unsigned j = 0; j < vecs[i].lanes; j++) lanes[m++] = kb_extract(k, vecs[i], j);
  }
  return kb_join(k, lanes, m);
}

kb_reg kb_reverse(kb *k, kb_reg vec) {
  if (vec.lanes <= 1) return vec;
  unsigned mask[KB_MAX_LANES];
  for (unsigned i = 0; i < vec.lanes; i++) mask[i] = vec.lanes - 1u - i;
  return kb_shuffle(k, vec, mask, vec.lanes);
}

// --- lanes of a warp ------------------------------------------------------------------------------------------------

static kb_reg word_of_lane(kb *k, kb_reg a, const char *shuffle, kb_reg lane) {
  LLVMTypeRef i32 = kb_type(k, KB_I32, 1);
  kb_reg args[4] = {{LLVMConstAllOnes(i32), KB_I32, 1}, a, lane, kb_int(k, KB_I32, 1, 31)};
  return kb_intrinsic(k, shuffle, NULL, 0, args, 4, KB_I32, 1);
}

static kb_reg of_lane(kb *k, kb_reg a, const char *shuffle, kb_reg lane) {
  if (a.kind == KB_I1)
    return kb_icmp(k, LLVMIntNE, word_of_lane(k, kb_zext(k, a, KB_I32), shuffle, lane), kb_int(k, KB_I32, 1, 0));
  unsigned bits = kb_kind_bits((kb_kind)a.kind) * a.lanes;
  if (bits == 32) {
    kb_reg r = word_of_lane(k, kb_bitcast(k, a, KB_I32, 1), shuffle, lane);
    return kb_bitcast(k, r, (kb_kind)a.kind, a.lanes);
  }
  kb_reg words = kb_bitcast(k, a, KB_I32, 2), both[2];
  for (unsigned i = 0; i < 2; i++) both[i] = word_of_lane(k, kb_extract(k, words, i), shuffle, lane);
  return kb_bitcast(k, kb_join(k, both, 2), (kb_kind)a.kind, 1);
}

kb_reg kb_lane_xor(kb *k, kb_reg a, unsigned distance) {
  unsigned mask[KB_MAX_LANES];
  for (unsigned i = 0; i < a.lanes; i++) mask[i] = i ^ distance;
  if (k->machine == KB_HOST) return kb_shuffle(k, a, mask, a.lanes);
  return of_lane(k, a, "llvm.nvvm.shfl.sync.bfly.i32", kb_int(k, KB_I32, 1, distance));
}

kb_reg kb_lane_plus(kb *k, kb_reg a, unsigned distance) {
  unsigned mask[KB_MAX_LANES];
  for (unsigned i = 0; i < a.lanes; i++) mask[i] = (i + distance) % a.lanes;
  if (k->machine == KB_HOST) return kb_shuffle(k, a, mask, a.lanes);
  kb_reg thread = kb_intrinsic(k, "llvm.nvvm.read.ptx.sreg.tid.x", NULL, 0, NULL, 0, KB_I32, 1);
  kb_reg lane = kb_add(k, thread, kb_int(k, KB_I32, 1, distance));
  return of_lane(k, a, "llvm.nvvm.shfl.sync.idx.i32", kb_and(k, lane, kb_int(k, KB_I32, 1, 31)));
}

kb_reg kb_any_lane(kb *k, kb_reg c) {
  kb_reg args[2] = {kb_int(k, KB_I32, 1, -1), c};
  return kb_intrinsic(k, "llvm.nvvm.vote.any.sync", NULL, 0, args, 2, KB_I1, 1);
}

kb_reg kb_of_lane(kb *k, kb_reg a, kb_reg lane) {
  return of_lane(k, a, "llvm.nvvm.shfl.sync.idx.i32", lane);
}

void kb_meet(kb *k) {
  kb_intrinsic(k, "llvm.nvvm.barrier.cluster.arrive.aligned", NULL, 0, NULL, 0, KB_I1, 1);
  kb_intrinsic(k, "llvm.nvvm.barrier.cluster.wait.aligned", NULL, 0, NULL, 0, KB_I1, 1);
}

void kb_sync(kb *k) {
  if (k->machine == KB_HOST) return;
  if (k->team) {
    kb_reg args[2] = {k->barrier, kb_int(k, KB_I32, 1, k->team)};
    kb_intrinsic(k, "llvm.nvvm.barrier.cta.sync.aligned.count", NULL, 0, args, 2, KB_I1, 1);
    return;
  }
  kb_reg id = kb_int(k, KB_I32, 1, 0);
  kb_intrinsic(k, "llvm.nvvm.barrier.cta.sync.aligned.all", NULL, 0, &id, 1, KB_I1, 1);
}

// True for all threads if it is for one.
kb_reg kb_sync_or(kb *k, kb_reg c) {
  if (k->team) {
    kb_reg args[3] = {k->barrier, kb_int(k, KB_I32, 1, k->team), c};
    return kb_intrinsic(k, "llvm.nvvm.barrier.cta.red.or.aligned.count", NULL, 0, args, 3, KB_I1, 1);
  }
  kb_reg args[2] = {kb_int(k, KB_I32, 1, 0), c};
  return kb_intrinsic(k, "llvm.nvvm.barrier.cta.red.or.aligned.all", NULL, 0, args, 2, KB_I1, 1);
}

kb_reg kb_special(kb *k, const char *name) {
  return kb_intrinsic(k, name, NULL, 0, NULL, 0, KB_I32, 1);
}

// --- blocks of a launch ---------------------------------------------------------------------------------------------

static unsigned device_scope(kb *k) {
  return LLVMGetSyncScopeID(k->llcx, "device", 6);
}

void kb_fence(kb *k) {
  LLVMBuildFenceSyncScope(k->b, LLVMAtomicOrderingAcquireRelease, device_scope(k), "");
}

kb_reg kb_count_up(kb *k, kb_reg p, uint32_t last) {
  LLVMValueRef v = LLVMBuildAtomicRMWSyncScope(k->b, LLVMAtomicRMWBinOpUIncWrap, p.v, kb_int(k, KB_I32, 1, last).v,
                                               LLVMAtomicOrderingMonotonic, device_scope(k));
  return (kb_reg){v, KB_I32, 1};
}
