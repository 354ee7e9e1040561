// asin, acos, atan and atan2. Results are a multiple of pi / 2, as a sum of two, more or less a small one.
// Within 1 ulp wherever tests/emit/math.c looks.

#include "lower/emit/math/impl.h"

#include <math.h>

// c pi / 2 + sign (r.hi + r.lo), where c is 0, 1 or 2 and sign 1 or -1 in every lane; r at most c pi / 2 unless c is 0.
static km_two turned_two(kb *k, const km_consts *m, kb_reg c, kb_reg sign, km_two r) {
  kb_reg whole = kb_fmul(k, c, kb_flike(k, c, m->half_pi[0]));
  km_two sum = km_fast_sum(k, whole, kb_fmul(k, sign, r.hi));
  return (km_two){sum.hi, kb_fma(k, sign, r.lo, kb_fma(k, c, kb_flike(k, c, m->half_pi[1]), sum.lo))};
}

static kb_reg turned(kb *k, const km_consts *m, kb_reg c, kb_reg sign, km_two r) {
  km_two sum = turned_two(k, m, c, sign, r);
  return kb_fadd(k, sum.hi, sum.lo);
}

// asin(a) for a to 1/2; beyond it 2 asin(sqrt((1 - a) / 2)), which is pi / 2 less the result. `far` says which.
static km_two asin_of(kb *k, const km_consts *m, kb_reg a, kb_reg *far) {
  *far = kb_fcmp(k, LLVMRealOGT, a, kb_flike(k, a, 0.5));
  kb_reg z = km_fmai(k, a, -0.5, 0.5), root = kb_fsqrt(k, z);
  kb_reg low = kb_fmul(k, kb_fma(k, kb_fneg(k, root), root, z), km_half_rsqrt(k, m, z));
  z = kb_select(k, *far, z, kb_fmul(k, a, a));
  kb_reg base = kb_select(k, *far, root, a);
  low = kb_select(k, *far, low, kb_flike(k, a, 0));
  kb_reg tail = kb_fma(k, kb_fmul(k, base, z), km_horner(k, z, m->asin), low);
  kb_reg twice = kb_select(k, *far, kb_flike(k, a, 2), kb_flike(k, a, 1));
  return (km_two){kb_fmul(k, base, twice), kb_fmul(k, tail, twice)};
}

static kb_reg asin_all(kb *k, const km_consts *m, kb_reg x) {
  kb_reg far, one = kb_flike(k, x, 1);
  km_two r = asin_of(k, m, kb_fabs(k, x), &far);
  kb_reg c = kb_select(k, far, one, kb_flike(k, x, 0)), sign = kb_select(k, far, kb_flike(k, x, -1), one);
  return kb_fcopysign(k, turned(k, m, c, sign, r), x);
}

static kb_reg acos_all(kb *k, const km_consts *m, kb_reg x) {
  kb_reg far, zero = kb_flike(k, x, 0), one = kb_flike(k, x, 1), two = kb_flike(k, x, 2), minus = kb_flike(k, x, -1);
  km_two r = asin_of(k, m, kb_fabs(k, x), &far);
  kb_reg negative = kb_fcmp(k, LLVMRealOLT, x, zero);
  kb_reg c = kb_select(k, far, kb_select(k, negative, two, zero), one);
  // far: acos(a) = r, and of -a it is pi - r; else acos(a) = pi / 2 - r.
  kb_reg plus = kb_xor(k, far, negative);
  return turned(k, m, c, kb_select(k, plus, one, minus), r);
}

// atan(t) for t from 0 to 1; t.lo is small beside t.hi, and adds t.lo / (1 + t^2).
static km_two atan_of(kb *k, const km_consts *m, km_two t) {
  kb_reg s = kb_fmul(k, t.hi, t.hi), share = kb_fma(k, s, km_fmai(k, s, 0.5, -1), kb_flike(k, s, 1));
  // What rounding the cube loses, up to an eighth of a unit, is added, and in F64 as much of the polynomial.
  kb_reg cube = kb_fmul(k, t.hi, s), lost = kb_fma(k, t.hi, s, kb_fneg(k, cube)), low = kb_fmul(k, t.lo, share);
  kb_reg first = kb_flike(k, s, m->atan.c[0]), rest = km_horner(k, s, (km_poly){m->atan.c + 1, m->atan.n - 1});
  kb_reg p = kb_fma(k, s, rest, first);
  if (m->man_bits == 52) low = kb_fma(k, cube, kb_fma(k, s, rest, kb_fsub(k, first, p)), low);
  return (km_two){t.hi, kb_fma(k, cube, p, kb_fma(k, lost, p, low))};
}

// Where t is 0 the sum is exact, whatever is in its low part.
static kb_reg atan_all(kb *k, const km_consts *m, kb_reg x) {
  kb_reg a = kb_fabs(k, x), zero = kb_flike(k, x, 0), one = kb_flike(k, x, 1);
  kb_reg far = kb_fcmp(k, LLVMRealOGT, a, one), inverse = kb_fdiv(k, one, a);
  kb_reg rest = kb_fmul(k, kb_fma(k, kb_fneg(k, inverse), a, one), inverse);
  kb_reg whole = kb_and(k, far, kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, a, 1 / m->min_normal / 4)));
  km_two t = {kb_select(k, far, inverse, a), kb_select(k, whole, rest, zero)};
  kb_reg c = kb_select(k, far, one, zero), sign = kb_select(k, far, kb_flike(k, x, -1), one);
  return kb_fcopysign(k, turned(k, m, c, sign, atan_of(k, m, t)), x);
}

kb_reg km_arc(kb *k, km_fn fn, const km_consts *m, kb_reg x) {
  switch (fn) {
  case KM_ASIN: return asin_all(k, m, x);
  case KM_ACOS: return acos_all(k, m, x);
  default: return atan_all(k, m, x);
  }
}

// From the quotient of the lesser by the greater of |x| and |y|. Small ones are made larger first, so that the
// remainder is exact; equal infinities count as 1 / 1, two zeros as 0 / 1.
static km_two atan2_size(kb *k, const km_consts *m, kb_reg y, kb_reg x) {
  int reach = m->man_bits == 23 ? 62 : 500, move = m->man_bits == 23 ? 80 : 600;
  kb_reg a = kb_fabs(k, y), b = kb_fabs(k, x), zero = kb_flike(k, x, 0), one = kb_flike(k, x, 1);
  kb_reg inf = kb_flike(k, x, (double)INFINITY);
  kb_reg steep = kb_fcmp(k, LLVMRealOGT, a, b), top = kb_select(k, steep, b, a), bottom = kb_select(k, steep, a, b);
  kb_reg both_inf = kb_fcmp(k, LLVMRealOEQ, top, inf), both_zero = kb_fcmp(k, LLVMRealOEQ, bottom, zero);
  top = kb_select(k, both_inf, one, top);
  bottom = kb_select(k, kb_or(k, both_inf, both_zero), one, bottom);
  kb_reg scale = kb_select(k, kb_fcmp(k, LLVMRealOLT, bottom, kb_flike(k, x, ldexp(1, -reach))),
                           kb_flike(k, x, ldexp(1, move)), one);
  top = kb_fmul(k, top, scale);
  bottom = kb_fmul(k, bottom, scale);
  kb_reg q = kb_fdiv(k, top, bottom), rest = kb_fma(k, kb_fneg(k, q), bottom, top);
  // The rest is no number where the bottom is infinite, and no exact one where the quotient is denormal.
  kb_reg counts = kb_fcmp(k, LLVMRealOGT, q, kb_flike(k, q, m->min_normal));
  kb_reg low = kb_select(k, counts, kb_fmul(k, rest, kb_fdiv(k, one, bottom)), zero);
  kb_reg left = kb_icmp(k, LLVMIntSLT, km_bits(k, x), kb_ilike(k, km_bits(k, x), 0));
  kb_reg c = kb_select(k, steep, one, kb_select(k, left, kb_flike(k, x, 2), zero));
  // flat: t or pi - t; steep: pi / 2 - t or pi / 2 + t
  kb_reg plus = kb_xor(k, steep, left);
  plus = kb_not(k, plus);
  km_two r = turned_two(k, m, c, kb_select(k, plus, one, kb_flike(k, x, -1)), atan_of(k, m, (km_two){q, low}));
  // Where both are infinite the result is to be exact: pi / 4 or three times as much, rounded.
  kb_reg three = kb_flike(k, x, m->man_bits == 23 ? (double)(float)(M_PI * 3 / 4) : 0x1.2d97c7f3321d2p+1);
  km_two corner = {kb_select(k, left, three, kb_flike(k, x, m->half_pi[0] / 2)), zero};
  return km_choose_two(k, both_inf, corner, r);
}

kb_reg km_atan2(kb *k, kb_reg y, kb_reg x) {
  if (km_is_fast(k, x)) return km_fast_atan2(k, y, x);
  km_two sum = atan2_size(k, km_consts_of(x), y, x);
  kb_reg r = kb_fadd(k, sum.hi, sum.lo);
  r = kb_select(k, kb_fcmp(k, LLVMRealUNO, x, y), kb_fadd(k, x, y), r);
  return kb_fcopysign(k, r, y);
}

km_two km_atan2_two(kb *k, kb_reg y, kb_reg x) {
  km_two r = atan2_size(k, km_consts_of(x), y, x);
  kb_reg zero = kb_flike(k, x, 0), unordered = kb_fcmp(k, LLVMRealUNO, x, y);
  r = km_fast_sum(k, r.hi, r.lo);
  kb_reg left = kb_icmp(k, LLVMIntSLT, km_bits(k, y), kb_ilike(k, km_bits(k, y), 0));
  kb_reg lo = kb_select(k, left, kb_fneg(k, r.lo), r.lo);
  kb_reg hi = kb_fcopysign(k, kb_select(k, unordered, kb_fadd(k, x, y), r.hi), y);
  return (km_two){hi, kb_select(k, unordered, zero, lo)};
}
