// sin, cos and tan of every number. x = n pi / 2 + r with |r| <= pi / 4 and r a sum of two: below two_over_pi_ends by
// three parts of pi / 2, beyond it by the bits of 2 / pi that matter, in integers. Within 1 ulp wherever
// tests/emit/math.c looks.

#include "lower/emit/math/impl.h"

#include <math.h>

typedef struct reduced {
  km_two r;
  kb_reg quadrant; // an integer of the kind's width; its low two bits count
} reduced;

// n half_pi[0] taken from x is exact, as what is left is less than 1 and a multiple of x's or half_pi's last bit.
static reduced reduce_small(kb *k, const km_consts *m, kb_reg x) {
  kb_reg t = km_fmai(k, x, m->two_over_pi, m->magic), n = kb_faddi(k, t, -m->magic);
  kb_reg r = kb_fma(k, n, kb_flike(k, x, -m->half_pi[0]), x);
  km_two part = km_product(k, n, kb_flike(k, x, -m->half_pi[1])), sum = km_sum(k, r, part.hi);
  sum.lo = kb_fadd(k, sum.lo, kb_fma(k, n, kb_flike(k, x, -m->half_pi[2]), part.lo));
  return (reduced){km_fast_sum(k, sum.hi, sum.lo), km_bits(k, t)};
}

// --- by integers --------------------------------------------------------------------------------------------------

// 2 / pi, behind a word of zeros.
static const uint32_t words_32[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                    0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
static const uint64_t words_64[] = {0,
                                    0xa2f9836e4e441529,
                                    0xfc2757d1f534ddc0,
                                    0xdb6295993c439041,
                                    0xfe5163abdebbc561,
                                    0xb7246e3a424dd2e0,
                                    0x06492eea09d1921c,
                                    0xfe1deb1cb129a73e,
                                    0xe88235f52ebb4484,
                                    0xe99c7026b45f7e41,
                                    0x3991d639835339f4,
                                    0x9c845f8bbdf9283b,
                                    0x1ff897ffde05980f,
                                    0xef2f118b5a0a6d1f,
                                    0x6d367ecf27cb09b7,
                                    0x4f463f669e5fea2d,
                                    0x7527bac7ebe5f17b,
                                    0x3d0739f78a5292ea,
                                    0x6bfb5fb11f8d5d08,
                                    0x56033046fc7b6bab};
enum { MOST_WORDS = 20, TAKEN = 3 };

// TAKEN words from bit `at` of 2 / pi on, highest first: a choice of words by each bit of their number, and a shift.
static void bits_from(kb *k, kb_reg at, kb_reg out[TAKEN]) {
  bool wide = at.kind == KB_I64;
  unsigned n = wide ? KL_COUNT(words_64) : KL_COUNT(words_32), bits = wide ? 64 : 32, log = wide ? 6 : 5;
  kb_reg w[MOST_WORDS], number = kb_lshri(k, at, log), shift = kb_andi(k, at, bits - 1);
  for (unsigned i = 0; i < n; i++) w[i] = kb_ilike(k, at, wide ? (int64_t)words_64[i] : (int64_t)words_32[i]);
  for (unsigned step = wide ? 16 : 4; step; step /= 2) {
    kb_reg on = kb_icmp(k, LLVMIntNE, kb_andi(k, number, step), kb_ilike(k, number, 0));
    unsigned left = step + TAKEN < n ? step + TAKEN : n; // words that the steps to come may still take
    for (unsigned i = 0; i < left; i++)
      if (i + step < n) w[i] = kb_select(k, on, w[i + step], w[i]);
    n = left;
  }
  kb_reg back = kb_sub(k, kb_ilike(k, at, bits - 1), shift);
  for (unsigned i = 0; i < TAKEN; i++)
    out[i] = kb_or(k, kb_shl(k, w[i], shift), kb_lshr(k, kb_lshri(k, w[i + 1], 1), back));
}

static kb_reg to_float(kb *k, const km_consts *m, kb_reg i) {
  return kb_sitofp(k, i, m->man_bits == 23 ? KB_F32 : KB_F64);
}

// An I64 as a sum of two numbers.
static km_two two_of(kb *k, const km_consts *m, kb_reg i) {
  kb_reg hi = to_float(k, m, i);
  return (km_two){hi, to_float(k, m, kb_sub(k, i, kb_fptosi(k, hi, KB_I64)))};
}

// |x| = f 2^e with an integer f: f 2^e 2 / pi mod 4, as 2 bits of a quadrant and a fraction, from the bits of 2 / pi
// from weight 2^(1 - e) on: what lies above makes multiples of 4. The fraction is rounded to the nearest quadrant and
// becomes signed. Words of f32 have 32 bits, of which three times f's bits are more than enough for the closest of all
// numbers to a multiple of pi / 2; those of f64 have 64.
static reduced reduce_large(kb *k, const km_consts *m, kb_reg x) {
  bool wide = m->man_bits == 52;
  unsigned bits = wide ? 64 : 32;
  int64_t hidden = (int64_t)1 << m->man_bits, bias = m->one_bits >> m->man_bits;
  kb_reg u = km_bits(k, kb_fabs(k, x)), f = kb_or(k, kb_andi(k, u, hidden - 1), kb_ilike(k, u, hidden)), w[TAKEN];
  kb_reg e = kb_addi(k, kb_lshri(k, u, m->man_bits), -bias - m->man_bits);
  bits_from(k, kb_addi(k, e, (int64_t)bits - 2), w);
  kb_reg top, low = {.v = NULL};
  if (wide) {
    kb_reg middle = kb_mul(k, f, w[1]), more = kb_umulhi(k, f, w[2]);
    low = kb_add(k, middle, more);
    kb_reg carry = kb_zext(k, kb_icmp(k, LLVMIntULT, low, more), KB_I64);
    top = kb_add(k, kb_add(k, kb_mul(k, f, w[0]), kb_umulhi(k, f, w[1])), carry);
  } else {
    kb_reg f64 = kb_zext(k, f, KB_I64), p[TAKEN];
    for (int i = 0; i < TAKEN; i++) p[i] = kb_mul(k, f64, kb_zext(k, w[i], KB_I64));
    top = kb_add(k, kb_add(k, kb_shli(k, p[0], 32), p[1]), kb_lshri(k, p[2], 32));
  }
  kb_reg quadrant = kb_lshri(k, kb_addi(k, top, (int64_t)1 << 61), 62);
  km_two r = two_of(k, m, kb_sub(k, top, kb_shli(k, quadrant, 62)));
  if (wide) {
    kb_reg rest = kb_fmuli(k, kb_uitofp(k, low, KB_F64), 0x1p-64);
    km_two sum = km_sum(k, r.hi, rest);
    r = km_fast_sum(k, sum.hi, kb_fadd(k, sum.lo, r.lo));
  }
  double unit = 0x1p-62;
  km_two y = km_product(k, r.hi, kb_flike(k, x, m->half_pi[0] * unit));
  y.lo = kb_fma(k, r.hi, kb_flike(k, x, m->half_pi[1] * unit), y.lo);
  y.lo = kb_fma(k, r.lo, kb_flike(k, x, m->half_pi[0] * unit), y.lo);
  y = km_fast_sum(k, y.hi, y.lo);
  if (!wide) quadrant = kb_trunc(k, quadrant, KB_I32);
  kb_reg negative = kb_icmp(k, LLVMIntSLT, km_bits(k, x), kb_ilike(k, u, 0));
  y.hi = kb_select(k, negative, kb_fneg(k, y.hi), y.hi);
  y.lo = kb_select(k, negative, kb_fneg(k, y.lo), y.lo);
  quadrant = kb_select(k, negative, kb_sub(k, kb_ilike(k, u, 0), quadrant), quadrant);
  kb_reg finite = kb_fcmp(k, LLVMRealOLT, kb_fabs(k, x), kb_flike(k, x, (double)INFINITY));
  y.hi = kb_select(k, finite, y.hi, kb_flike(k, x, (double)NAN));
  return (reduced){y, quadrant};
}

static kb_reg merged(kb *k, kb_reg a, LLVMBasicBlockRef from_a, kb_reg b, LLVMBasicBlockRef from_b) {
  kb_reg r = a;
  r.v = LLVMBuildPhi(k->b, LLVMTypeOf(a.v), "");
  LLVMAddIncoming(r.v, (LLVMValueRef[]){a.v, b.v}, (LLVMBasicBlockRef[]){from_a, from_b}, 2);
  return r;
}

// Large angles are rare: their way is taken where a lane has one.
static reduced reduce(kb *k, const km_consts *m, kb_reg x) {
  reduced near = reduce_small(k, m, x), far;
  kb_reg is_near = kb_fcmp(k, LLVMRealULE, kb_fabs(k, x), kb_flike(k, x, m->two_over_pi_ends)); // or NaN
  LLVMBasicBlockRef before = LLVMGetInsertBlock(k->b);
  LLVMBasicBlockRef large = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "angle.large");
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(k->llcx, k->fn, "angle");
  LLVMBuildCondBr(k->b, km_any_lane(k, kb_not(k, is_near)).v, large, after);
  LLVMPositionBuilderAtEnd(k->b, large);
  far = reduce_large(k, m, x);
  far.r.hi = kb_select(k, is_near, near.r.hi, far.r.hi);
  far.r.lo = kb_select(k, is_near, near.r.lo, far.r.lo);
  far.quadrant = kb_select(k, is_near, near.quadrant, far.quadrant);
  LLVMBasicBlockRef last = LLVMGetInsertBlock(k->b);
  LLVMBuildBr(k->b, after);
  LLVMPositionBuilderAtEnd(k->b, after);
  return (reduced){{merged(k, near.r.hi, before, far.r.hi, last), merged(k, near.r.lo, before, far.r.lo, last)},
                   merged(k, near.quadrant, before, far.quadrant, last)};
}

// --- the functions ------------------------------------------------------------------------------------------------

// r + r^3 P(r^2) + r.lo (1 - r^2 / 2)
static km_two sine(kb *k, const km_consts *m, km_two r, kb_reg s) {
  kb_reg low = kb_fma(k, r.lo, kb_fmuli(k, s, -0.5), r.lo);
  return (km_two){r.hi, kb_fma(k, kb_fmul(k, r.hi, s), km_horner(k, s, m->sin), low)};
}

// 1 - r^2 / 2 + r^4 P(r^2) - r r.lo, where the first difference is a sum of two.
static km_two cosine(kb *k, const km_consts *m, km_two r, kb_reg s) {
  kb_reg half = kb_fmuli(k, s, 0.5), one = kb_flike(k, s, 1), w = kb_fsub(k, one, half);
  kb_reg lost = kb_fsub(k, kb_fsub(k, one, w), half);
  kb_reg tail = kb_fma(k, kb_fmul(k, s, s), km_horner(k, s, m->cos), lost);
  return (km_two){w, kb_fma(k, kb_fneg(k, r.hi), r.lo, tail)};
}

// Such angles are their own sine and tangent.
static kb_reg is_tiny(kb *k, const km_consts *m, kb_reg x) {
  return kb_fcmp(k, LLVMRealOLT, kb_fabs(k, x), kb_flike(k, x, ldexp(1, -(int)m->man_bits / 2 - 4)));
}

static kb_reg is_odd(kb *k, kb_reg quadrant) {
  return kb_icmp(k, LLVMIntNE, kb_andi(k, quadrant, 1), kb_ilike(k, quadrant, 0));
}

// The sign bit where the result in the quadrant is negative: of the sine, with one more of the cosine.
static kb_reg turn_sign(kb *k, const km_consts *m, kb_reg quadrant) {
  return kb_shli(k, kb_andi(k, quadrant, 2), m->man_bits == 52 ? 62 : 30);
}

static km_two signed_two(kb *k, km_two a, kb_reg sign) {
  return (km_two){km_float(k, kb_xor(k, km_bits(k, a.hi), sign)), km_float(k, kb_xor(k, km_bits(k, a.lo), sign))};
}

km_turn km_sincos(kb *k, const km_consts *m, km_two x) {
  reduced a = reduce(k, m, x.hi);
  if (x.lo.v) {
    km_two sum = km_sum(k, a.r.hi, x.lo);
    a.r = km_fast_sum(k, sum.hi, kb_fadd(k, sum.lo, a.r.lo));
  }
  kb_reg s = kb_fmul(k, a.r.hi, a.r.hi), odd = is_odd(k, a.quadrant), tiny = is_tiny(k, m, x.hi);
  km_two sin = sine(k, m, a.r, s), cos = cosine(k, m, a.r, s);
  sin = km_fast_sum(k, sin.hi, sin.lo);
  sin.hi = kb_select(k, tiny, x.hi, sin.hi);
  sin.lo = kb_select(k, tiny, x.lo.v ? x.lo : kb_flike(k, s, 0), sin.lo);
  cos = km_fast_sum(k, cos.hi, cos.lo);
  km_turn r;
  r.sin = signed_two(k, km_choose_two(k, odd, cos, sin), turn_sign(k, m, a.quadrant));
  r.cos = signed_two(k, km_choose_two(k, odd, sin, cos), turn_sign(k, m, kb_addi(k, a.quadrant, 1)));
  // Of whole turns from r itself: - r^2 / 2 + r^4 P(r^2) - r r.lo.
  kb_reg far = kb_fadd(k, kb_faddi(k, r.cos.hi, -1), r.cos.lo);
  kb_reg tail = kb_fma(k, kb_fmul(k, s, s), km_horner(k, s, m->cos), kb_fmul(k, kb_fneg(k, a.r.hi), a.r.lo));
  kb_reg whole = kb_icmp(k, LLVMIntEQ, kb_andi(k, a.quadrant, 3), kb_ilike(k, a.quadrant, 0));
  r.cos_less_one = kb_select(k, whole, kb_fma(k, s, kb_flike(k, s, -0.5), tail), far);
  return r;
}

// In `fast` r alone and a reciprocal do.
static kb_reg tangent_fast(kb *k, const km_consts *m, kb_reg r, kb_reg s, kb_reg odd) {
  kb_reg t = kb_fma(k, kb_fmul(k, r, s), km_horner(k, s, m->tan), r);
  return kb_select(k, odd, kb_fneg(k, kb_rcp_approx(k, t)), t);
}

// tan(r) as a sum of two, and -1 over it in odd quadrants. What is beyond r is up to a fifth of it, so r^3 is a sum,
// too.
static kb_reg tangent(kb *k, const km_consts *m, km_two r, kb_reg s, kb_reg odd) {
  kb_reg low = kb_fma(k, r.lo, kb_fmul(k, s, km_fmai(k, s, 0.75, 1)), r.lo); // of 1 + tan^2
  kb_reg p = km_horner(k, s, m->tan), square_lo = kb_fma(k, r.hi, r.hi, kb_fneg(k, s));
  km_two cube = km_product(k, r.hi, s);
  cube.lo = kb_fma(k, r.hi, square_lo, cube.lo);
  km_two t = km_fast_sum(k, r.hi, kb_fma(k, cube.hi, p, kb_fma(k, cube.lo, p, low)));
  kb_reg one = kb_flike(k, s, 1), q = kb_fdiv(k, kb_fneg(k, one), t.hi);
  kb_reg rest = kb_fma(k, q, t.lo, kb_fma(k, q, t.hi, one));
  return kb_select(k, odd, kb_fma(k, q, rest, q), kb_fadd(k, t.hi, t.lo));
}

// Tiny angles are their own sine and tangent, zeros with their sign.
kb_reg km_angle(kb *k, km_fn fn, const km_consts *m, kb_reg x, bool fast) {
  reduced a = reduce(k, m, x);
  kb_reg s = kb_fmul(k, a.r.hi, a.r.hi), odd = is_odd(k, a.quadrant), y;
  if (fn == KM_TAN) {
    y = fast ? tangent_fast(k, m, a.r.hi, s, odd) : tangent(k, m, a.r, s, odd);
  } else {
    kb_reg sin, cos;
    if (fast) {
      sin = kb_sin_approx(k, a.r.hi);
      cos = km_at_most(k, kb_cos_approx(k, a.r.hi), 1);
    } else {
      km_two sines = sine(k, m, a.r, s), cosines = cosine(k, m, a.r, s);
      sin = kb_fadd(k, sines.hi, sines.lo), cos = kb_fadd(k, cosines.hi, cosines.lo);
    }
    y = fn == KM_SIN ? kb_select(k, odd, cos, sin) : kb_select(k, odd, sin, cos);
    kb_reg turn = fn == KM_SIN ? a.quadrant : kb_addi(k, a.quadrant, 1);
    y = km_float(k, kb_xor(k, km_bits(k, y), turn_sign(k, m, turn)));
  }
  if (fn == KM_COS) return y;
  return kb_select(k, is_tiny(k, m, x), x, y);
}
