// Which function is which.

#include "lower/emit/math/complex/impl.h"

#include <math.h>

// f(z) as g(iz) / i: the parts change places, once more in the result.
static km_complex turned(kb *k, km_complex (*g)(kb *, kl_op, const km_consts *, km_complex), kl_op op,
                         const km_consts *m, km_complex z) {
  return km_swap(g(k, op, m, km_swap(z)));
}

static km_complex cos_all(kb *k, const km_consts *m, km_complex z) {
  return km_complex_hyperbolic(k, KL_OP_COSH, m, (km_complex){kb_fneg(k, z.im), z.re});
}

kb_reg km_unsigned_nan(kb *k, kb_reg x) {
  return kb_select(k, km_is_nan(k, x), kb_flike(k, x, (double)NAN), x);
}

km_complex km_complex_call(kb *k, kl_op op, km_complex z) {
  const km_consts *m = km_consts_of(z.re);
  z = (km_complex){km_unsigned_nan(k, z.re), km_unsigned_nan(k, z.im)};
  switch (op) {
  case KL_OP_EXP:
  case KL_OP_EXPM1:
  case KL_OP_EXP10:
  case KL_OP_LOGISTIC: return km_complex_exponential(k, op, m, z);
  case KL_OP_LOG:
  case KL_OP_LOG1P: return km_complex_logarithm(k, op, m, z);
  case KL_OP_SQRT:
  case KL_OP_RSQRT:
  case KL_OP_SIGN: return km_complex_root(k, op, m, z);
  case KL_OP_SINH:
  case KL_OP_COSH:
  case KL_OP_TANH: return km_complex_hyperbolic(k, op, m, z);
  case KL_OP_SIN: return turned(k, km_complex_hyperbolic, KL_OP_SINH, m, z);
  case KL_OP_TAN: return turned(k, km_complex_hyperbolic, KL_OP_TANH, m, z);
  case KL_OP_COS: return cos_all(k, m, z);
  case KL_OP_ASIN:
  case KL_OP_ACOS:
  case KL_OP_ACOSH: return km_complex_arc(k, op, m, z);
  case KL_OP_ASINH: return turned(k, km_complex_arc, KL_OP_ASIN, m, z);
  case KL_OP_ATANH: return km_complex_atanh(k, m, z, NULL);
  case KL_OP_ATAN: return km_swap(km_complex_atanh(k, m, km_swap(z), NULL));
  default: return z;
  }
}
