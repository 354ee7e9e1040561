// Floats of fewer than 32 bits, held as F32: rounding to a format, and to and from its bits.
//
// A format is given by its kind, exponent bits, mantissa bits and bias (kl_dtypes). Two facts carry the code:
// - 2^(E + 23 - M) added to |x| in [2^E, 2^(E+1)) leaves M bits of mantissa and rounds ties to even; taking it away
//   again is exact. With E held at or above the least normal exponent the same sum rounds denormals at their fixed
//   unit.
// - Scaled by 2^(bias - 127), a value of the format has the format's own bits at the top of its f32 pattern, denormals
//   included, because both encodings continue denormals alike.
// Both need f32 denormals to be kept, which is so on every machine here.

#include "lower/emit/math/math.h"

#include <math.h>

static kb_reg bits_of(kb *k, kb_reg x) {
  return kb_bitcast(k, x, KB_I32, x.lanes);
}
static kb_reg float_of(kb *k, kb_reg u) {
  return kb_bitcast(k, u, KB_F32, u.lanes);
}
static kb_reg is_nan(kb *k, kb_reg x) {
  return kb_fcmp(k, LLVMRealUNO, x, x);
}
static kb_reg nan_like(kb *k, kb_reg x) {
  return kb_flike(k, x, (double)NAN);
}

// One instruction converts (and two make a round trip) where the machine has the format.
static bool has_convert(const kb *k, kb_reg x, kl_dtype t) {
  return k->machine == KB_NVPTX && x.lanes == 1 && (t == KILN_F16 || (t == KILN_BF16 && k->sm >= 80));
}
static kb_kind packed_kind(kl_dtype t) {
  return t == KILN_F16 ? KB_F16 : KB_BF16;
}
static kb_reg convert(kb *k, kb_reg x, kl_dtype t) {
  return kb_pack2(k, x, kb_flike(k, x, 0), packed_kind(t));
}

// --- rounding -----------------------------------------------------------------------------------------------------

// Adding just under half a unit of bit 16, and the bit itself, carries exactly where nearest-even rounds up; the carry
// runs on into the exponent and from the largest value to infinity. A NaN with bits set in the lower half would carry,
// too; one without stays.
static kb_reg round_bf16(kb *k, kb_reg x, bool clean_nan) {
  kb_reg u = bits_of(k, x), odd = kb_andi(k, kb_lshri(k, u, 16), 1);
  kb_reg r = float_of(k, kb_andi(k, kb_add(k, kb_addi(k, u, 0x7fff), odd), 0xffff0000));
  return clean_nan ? r : kb_select(k, is_nan(k, x), nan_like(k, x), r);
}

// Powers of two have no mantissa to be even: the tie 1.5 * 2^n goes up. Everything positive below 1.5 * 2^-127 becomes
// 2^-127, an f32 denormal. Zero, negative values, NaN and 1.5 * 2^127 and beyond become NaN; their patterns less one
// are all at or above that bound as unsigned numbers.
static kb_reg round_e8m0(kb *k, kb_reg x) {
  kb_reg u = bits_of(k, x), r = kb_andi(k, kb_addi(k, u, 0x400000), 0x7f800000);
  r = kb_select(k, kb_icmp(k, LLVMIntULT, u, kb_ilike(k, u, 0x600000)), kb_ilike(k, u, 0x400000), r);
  kb_reg nan = kb_icmp(k, LLVMIntUGE, kb_addi(k, u, -1), kb_ilike(k, u, 0x7f3fffff));
  return kb_select(k, nan, nan_like(k, x), float_of(k, r));
}

static double largest(const kl_dtype_info *f) {
  unsigned all = (1u << (f->exp_bits + f->man_bits)) - 1;
  if (f->kind == KL_IEEE) all -= 1u << f->man_bits;
  if (f->kind == KL_FN) all -= 1;
  unsigned man = all & ((1u << f->man_bits) - 1);
  return ldexp(1 + ldexp(man, -f->man_bits), (int)(all >> f->man_bits) - f->bias);
}

// The least f32 that overflows: half a unit above the largest value, or the next f32 where that tie is rounded down.
static double overflow_from(const kl_dtype_info *f) {
  int e;
  double top = largest(f), unit = ldexp(1, (frexp(top, &e), e) - 1 - f->man_bits);
  bool odd = fmod(top / unit, 2) != 0;
  return odd ? top + unit / 2 : (double)nextafterf((float)(top + unit / 2), INFINITY);
}

static double overflow_to(const kl_dtype_info *f) {
  return f->kind == KL_IEEE ? (double)INFINITY : f->kind == KL_FN0 ? largest(f) : (double)NAN;
}

// The magic number of a huge x is no number any more; such x overflow, whatever came of the sum.
static kb_reg round_small(kb *k, kb_reg x, const kl_dtype_info *f) {
  int64_t least = (int64_t)(127 + 1 - f->bias) << 23, up = (int64_t)(23 - f->man_bits) << 23;
  kb_reg u = bits_of(k, x), a = kb_fabs(k, x);
  kb_reg e = kb_umax(k, kb_andi(k, u, 0x7f800000), kb_ilike(k, u, least));
  kb_reg magic = float_of(k, kb_addi(k, e, up));
  kb_reg r = kb_fsub(k, kb_fadd(k, a, magic), magic);
  r = kb_select(k, kb_fcmp(k, LLVMRealOGE, a, kb_flike(k, a, overflow_from(f))), kb_flike(k, a, overflow_to(f)), r);
  r = kb_fcopysign(k, r, x);
  if (f->kind == KL_FNUZ) r = kb_faddi(k, r, 0); // -0 + 0 is +0
  if (f->kind == KL_FN0) r = kb_select(k, is_nan(k, x), kb_flike(k, x, -0.0), r);
  return r;
}

static kb_reg round_to(kb *k, kb_reg x, kl_dtype t, bool clean_nan) {
  if (has_convert(k, x, t)) return kb_unpack(k, convert(k, x, t), 0);
  if (t == KILN_BF16) return round_bf16(k, x, clean_nan);
  if (t == KILN_F8E8M0FNU) return round_e8m0(k, x);
  return round_small(k, x, kl_info(t));
}

kb_reg km_round(kb *k, kb_reg x, kl_dtype t) {
  return round_to(k, x, t, false);
}

// A CPU's own NaN has a quiet bit and nothing else, and an operand's NaN is passed on with its bits, of which values of
// narrow formats have none in the lower half. NVPTX makes a NaN of all ones.
kb_reg km_round_computed(kb *k, kb_reg x, kl_dtype t) {
  return round_to(k, x, t, k->machine == KB_HOST);
}

// Rounding to odd: an inexact result gets the neighbour with the last bit set, so that a later rounding to fewer bits
// sees on which side of its ties x lies. The nearest f32 is at hand; the other neighbour is one pattern towards x.
// Patterns order magnitudes, so with the last bit forced that is p | 1 upwards and (p - 1) | 1 downwards, and infinity
// comes down to the largest value. NaN compares false both times.
kb_reg km_narrow_odd(kb *k, kb_reg x) {
  kb_reg near = kb_fptrunc(k, x), p = bits_of(k, near);
  kb_reg a = kb_fabs(k, x), b = kb_fabs(k, kb_fpext(k, near)), one = kb_ilike(k, p, 1);
  kb_reg r = kb_select(k, kb_fcmp(k, LLVMRealOGT, a, b), kb_or(k, p, one), p);
  r = kb_select(k, kb_fcmp(k, LLVMRealOLT, a, b), kb_or(k, kb_addi(k, p, -1), one), r);
  return float_of(k, r);
}

// --- bits ---------------------------------------------------------------------------------------------------------

// Infinity and the quiet bit of NaN come out right by themselves: scaling keeps both, and the mask cuts the exponent of
// all ones down to the format's width. The other kinds have one NaN pattern that no number has.
static kb_reg encode_small(kb *k, kb_reg x, const kl_dtype_info *f) {
  int64_t mask = (1ll << (f->bits - 1)) - 1, sign = mask + 1;
  kb_reg scaled = bits_of(k, kb_fmuli(k, x, ldexp(1, f->bias - 127)));
  kb_reg r = kb_andi(k, kb_lshri(k, scaled, 23u - f->man_bits), mask);
  kb_reg s = kb_andi(k, kb_lshri(k, bits_of(k, x), 32u - f->bits), sign);
  if (f->kind == KL_FN) r = kb_select(k, is_nan(k, x), kb_ilike(k, r, mask), r);
  r = kb_or(k, r, s);
  if (f->kind == KL_FNUZ) r = kb_select(k, is_nan(k, x), kb_ilike(k, r, sign), r);
  return r;
}

kb_reg km_encode(kb *k, kb_reg x, kl_dtype t) {
  if (has_convert(k, x, t)) return kb_bitcast(k, convert(k, x, t), KB_I32, 1);
  if (t == KILN_BF16) return kb_lshri(k, bits_of(k, x), 16);
  if (t == KILN_F8E8M0FNU) return kb_andi(k, kb_lshri(k, bits_of(k, x), 23), 0xff);
  return encode_small(k, x, kl_info(t));
}

// Pattern 0 is 2^-127, an f32 denormal; 0xff would be read as infinity.
static kb_reg decode_e8m0(kb *k, kb_reg bits) {
  kb_reg u = kb_shli(k, kb_andi(k, bits, 0xff), 23);
  kb_reg r = float_of(k, kb_umax(k, u, kb_ilike(k, u, 0x400000)));
  return kb_select(k, kb_icmp(k, LLVMIntEQ, u, kb_ilike(k, u, 0x7f800000)), nan_like(k, r), r);
}

// An exponent of all ones scales to 2^(2^exp_bits - 1 - bias) or more: the f32 exponent then becomes all ones, too.
static kb_reg decode_small(kb *k, kb_reg bits, const kl_dtype_info *f) {
  int64_t mask = (1ll << (f->bits - 1)) - 1, sign = mask + 1;
  kb_reg a = kb_andi(k, bits, mask);
  kb_reg r = kb_fmuli(k, float_of(k, kb_shli(k, a, 23u - f->man_bits)), ldexp(1, 127 - f->bias));
  if (f->kind == KL_IEEE) {
    kb_reg top = kb_fcmp(k, LLVMRealOGE, r, kb_flike(k, r, ldexp(1, (1 << f->exp_bits) - 1 - f->bias)));
    kb_reg u = bits_of(k, r);
    r = float_of(k, kb_select(k, top, kb_or(k, u, kb_ilike(k, u, 0x7f800000)), u));
  }
  if (f->kind == KL_FN) r = kb_select(k, kb_icmp(k, LLVMIntEQ, a, kb_ilike(k, a, mask)), nan_like(k, r), r);
  kb_reg s = kb_shli(k, kb_andi(k, bits, sign), 32u - f->bits);
  r = float_of(k, kb_or(k, bits_of(k, r), s));
  if (f->kind != KL_FNUZ) return r;
  kb_reg nan = kb_icmp(k, LLVMIntEQ, kb_andi(k, bits, mask + sign), kb_ilike(k, bits, sign));
  return kb_select(k, nan, nan_like(k, r), r);
}

kb_reg km_decode(kb *k, kb_reg bits, kl_dtype t) {
  if (t == KILN_BF16) return float_of(k, kb_shli(k, bits, 16));
  if (t == KILN_F8E8M0FNU) return decode_e8m0(k, bits);
  if (k->machine == KB_NVPTX && bits.lanes == 1 && t == KILN_F16)
    return kb_unpack(k, kb_bitcast(k, bits, KB_F16, 2), 0);
  return decode_small(k, bits, kl_info(t));
}
