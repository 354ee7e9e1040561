// Sums of two numbers, and powers of two taken out of numbers.

#include "lower/emit/math/complex/impl.h"

#include <math.h>

km_two km_total(kb *k, kb_reg *v, unsigned n) {
  for (int pass = 0; pass < 2; pass++) {
    for (unsigned i = 1; i < n; i++) {
      km_two s = km_sum(k, v[i], v[i - 1]);
      v[i] = s.hi, v[i - 1] = s.lo;
    }
  }
  kb_reg rest = v[0];
  for (unsigned i = 1; i + 1 < n; i++) rest = kb_fadd(k, rest, v[i]);
  return km_fast_sum(k, v[n - 1], rest);
}

kb_reg km_inverse(kb *k, km_two d) {
  return kb_fdiv(k, kb_flike(k, d.hi, 1), d.hi);
}

km_two km_quotient(kb *k, km_two n, km_two d, kb_reg inverse) {
  kb_reg q = kb_fmul(k, n.hi, inverse), minus = kb_fneg(k, q);
  kb_reg rest = kb_fadd(k, kb_fma(k, minus, d.hi, n.hi), kb_fma(k, minus, d.lo, n.lo));
  return km_fast_sum(k, q, kb_fmul(k, rest, inverse));
}

kb_reg km_field(kb *k, const km_consts *m, kb_reg a, int64_t least, int64_t most) {
  kb_reg field = kb_lshri(k, km_bits(k, kb_fabs(k, a)), m->man_bits);
  return kb_smax(k, kb_smin(k, field, kb_ilike(k, field, most)), kb_ilike(k, field, least));
}

kb_reg km_power_down(kb *k, const km_consts *m, kb_reg field) {
  return km_float(k, kb_shli(k, kb_sub(k, kb_ilike(k, field, 2 * km_bias(m)), field), m->man_bits));
}

km_two km_raised(kb *k, const km_consts *m, km_two v, kb_reg *down) {
  int reach = (int)(km_bias(m) / 2);
  kb_reg one = kb_flike(k, v.hi, 1),
         tiny = kb_fcmp(k, LLVMRealOLT, kb_fabs(k, v.hi), kb_flike(k, v.hi, ldexp(1, -reach)));
  *down = kb_select(k, tiny, kb_flike(k, v.hi, ldexp(1, 3 - reach)), one);
  return km_times(k, v, kb_select(k, tiny, kb_flike(k, v.hi, ldexp(1, reach - 3)), one));
}
