// The cube root: all x; what square roots leave. Within 1 ulp wherever tests/emit/math.c looks.

#include "lower/emit/math/impl.h"

#include <math.h>

kb_reg km_half_rsqrt(kb *k, const km_consts *m, kb_reg x) {
  kb_reg u = km_bits(k, x), one_less = kb_ilike(k, u, m->rsqrt_seed - ((int64_t)1 << m->man_bits));
  return km_float(k, kb_sub(k, one_less, kb_lshri(k, u, 1)));
}

// z is about x^(-1/3): from the bits within 4 %, then z (1 - e)^(-1/3) by its series in e = 1 - x z^3, twice. y = x z^2
// is corrected by y^3 - x, of which y^2 is a sum of two.
kb_reg km_cbrt(kb *k, const km_consts *m, kb_reg x) {
  int up = m->man_bits == 23 ? 24 : 54;
  kb_reg a = kb_fabs(k, x), one = kb_flike(k, x, 1);
  kb_reg small = kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, a, m->min_normal));
  kb_reg v = kb_select(k, small, kb_fmuli(k, a, ldexp(1, up)), a), u = km_bits(k, v);
  kb_reg z = km_float(k, kb_sub(k, kb_ilike(k, u, m->cbrt_seed), kb_udiv(k, u, kb_ilike(k, u, 3)))), third, square;
  third = kb_float(k, (kb_kind)x.kind, x.lanes, x.kind == KB_F64 ? 1.0 / 3 : (double)(1.0f / 3));
  static const double series[] = {0x1.555556p-2, 0x1.c71c72p-3, 0x1.61f9aep-3};
  for (int i = 0; i < 2; i++) {
    kb_reg e = kb_fma(k, kb_fneg(k, kb_fmul(k, v, z)), kb_fmul(k, z, z), one);
    kb_reg p = km_horner(k, e, (km_poly){series, KL_COUNT(series)});
    z = kb_fma(k, kb_fmul(k, z, e), p, z);
  }
  square = kb_fmul(k, z, z);
  kb_reg y = kb_fmul(k, v, square);
  km_two s = km_product(k, y, y);
  kb_reg rest = kb_fma(k, s.lo, y, kb_fma(k, s.hi, y, kb_fneg(k, v)));
  y = kb_fma(k, kb_fneg(k, rest), kb_fmul(k, square, third), y);
  y = kb_fmul(k, y, kb_select(k, small, kb_flike(k, x, ldexp(1, -up / 3)), one));
  kb_reg inside = kb_fcmp(k, LLVMRealOLT, a, kb_flike(k, a, (double)INFINITY));
  return kb_select(k, inside, kb_fcopysign(k, y, x), x);
}
