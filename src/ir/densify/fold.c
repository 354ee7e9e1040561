// Ops on single values: exact arithmetic, rounded once, which all implementations agree on, and elementary functions at
// zero.
#include "ir/densify/fold.h"

#include <math.h>

static bool is_folded(kl_dtype t) {
  return t == KILN_PRED || kl_is_int(t) || (kl_is_float(t) && kl_info(t)->kind != KL_E8M0);
}

// --- integers
// ---------------------------------------------------------------------------------------------------------

static int64_t as_int(kl_dtype t, uint64_t bits) {
  unsigned n = kl_info(t)->bits;
  if (kl_is_int(t) && kl_is_signed(t) && n < 64 && bits >> (n - 1) & 1) bits |= ~kl_int_mask(t);
  return (int64_t)bits;
}

static bool less(kl_dtype t, uint64_t a, uint64_t b) {
  return kl_is_int(t) && kl_is_signed(t) ? as_int(t, a) < as_int(t, b) : a < b;
}

static bool fold_int(kl_op op, kl_dtype t, const uint64_t *x, uint64_t *out) {
  int64_t a = as_int(t, x[0]);
  switch (op) {
  case KL_OP_COPY: *out = x[0]; break;
  case KL_OP_ABS: *out = kl_is_signed(t) && a < 0 ? 0 - x[0] : x[0]; break;
  case KL_OP_NEGATE: *out = 0 - x[0]; break;
  case KL_OP_NOT: *out = ~x[0]; break;
  case KL_OP_SIGN: *out = (uint64_t)(kl_is_signed(t) && a < 0 ? -1 : a != 0); break;
  case KL_OP_ADD: *out = x[0] + x[1]; break;
  case KL_OP_SUBTRACT: *out = x[0] - x[1]; break;
  case KL_OP_MULTIPLY: *out = x[0] * x[1]; break;
  case KL_OP_AND: *out = x[0] & x[1]; break;
  case KL_OP_OR: *out = x[0] | x[1]; break;
  case KL_OP_XOR: *out = x[0] ^ x[1]; break;
  case KL_OP_MAXIMUM: *out = less(t, x[0], x[1]) ? x[1] : x[0]; break;
  case KL_OP_MINIMUM: *out = less(t, x[1], x[0]) ? x[1] : x[0]; break;
  default: return false;
  }
  *out &= kl_int_mask(t);
  return true;
}

// Sums of truths have no meaning that is asked for here.
static bool fold_pred(kl_op op, const uint64_t *x, uint64_t *out) {
  switch (op) {
  case KL_OP_COPY: *out = x[0]; return true;
  case KL_OP_NOT: *out = !x[0]; return true;
  case KL_OP_AND: *out = x[0] & x[1]; return true;
  case KL_OP_OR: *out = x[0] | x[1]; return true;
  case KL_OP_XOR: *out = x[0] ^ x[1]; return true;
  default: return false;
  }
}

// --- floats
// -----------------------------------------------------------------------------------------------------------

// Of elementary functions their values at zero, which they have in every corner.
static bool at_zero(kl_op op, double x, double *out) {
  if (x != 0) return false;
  switch (op) {
  case KL_OP_SIN:
  case KL_OP_TAN:
  case KL_OP_ASIN:
  case KL_OP_ATAN:
  case KL_OP_SINH:
  case KL_OP_ASINH:
  case KL_OP_ATANH:
  case KL_OP_TANH:
  case KL_OP_ERF:
  case KL_OP_CBRT:
  case KL_OP_EXPM1:
  case KL_OP_LOG1P: *out = x; return true;
  case KL_OP_EXP:
  case KL_OP_COS:
  case KL_OP_COSH: *out = 1; return true;
  default: return false;
  }
}

// Of doubles; what has fewer bits is rounded once, which is right for these ops.
static bool fold_double(kl_op op, double a, double b, double *out) {
  switch (op) {
  case KL_OP_COPY: *out = a; return true;
  case KL_OP_ABS: *out = fabs(a); return true;
  case KL_OP_NEGATE: *out = -a; return true;
  case KL_OP_SIGN: *out = a > 0 ? 1 : a < 0 ? -1 : a; return !isnan(a);
  case KL_OP_CEIL: *out = ceil(a); return true;
  case KL_OP_FLOOR: *out = floor(a); return true;
  case KL_OP_SQRT: *out = sqrt(a); return true;
  case KL_OP_ADD: *out = a + b; return true;
  case KL_OP_SUBTRACT: *out = a - b; return true;
  case KL_OP_MULTIPLY: *out = a * b; return true;
  case KL_OP_DIVIDE: *out = a / b; return true;
  case KL_OP_MAXIMUM: *out = a > b ? a : b; return !isnan(a) && !isnan(b) && (a != b || signbit(a) == signbit(b));
  case KL_OP_MINIMUM: *out = a < b ? a : b; return !isnan(a) && !isnan(b) && (a != b || signbit(a) == signbit(b));
  default: return at_zero(op, a, out);
  }
}

static bool fold_float(kl_op op, kl_dtype t, const uint64_t *x, uint32_t n, uint64_t *out) {
  double v;
  if (!fold_double(op, kl_float_decode(t, x[0]), n > 1 ? kl_float_decode(t, x[1]) : 0, &v)) return false;
  *out = kl_float_encode(t, v);
  return true;
}

// --- between types
// ----------------------------------------------------------------------------------------------------

static bool convert(kl_dtype from, kl_dtype to, uint64_t x, uint64_t *out) {
  double v = kl_is_float(from) ? kl_float_decode(from, x) : 0;
  int64_t whole = kl_is_float(from) ? 0 : as_int(from, x);
  if (to == KILN_PRED) {
    *out = kl_is_float(from) ? v != 0 : whole != 0;
    return !isnan(v);
  }
  if (kl_is_float(from) && kl_is_float(to)) {
    *out = kl_float_encode(to, v);
    return true;
  }
  if (kl_is_float(from)) {
    // Small whole parts that every integer type but the smallest has; others wrap or saturate.
    if (!(fabs(v) < 128) || trunc(v) != 0) return false;
    *out = 0;
    return true;
  }
  if (kl_is_float(to)) {
    if (whole < -(1 << 20) || whole > 1 << 20) return false;
    *out = kl_float_encode(to, (double)whole);
    return true;
  }
  *out = (uint64_t)whole & kl_int_mask(to);
  return true;
}

static bool fold_compare(const kl_instr *in, kl_dtype t, const uint64_t *x, uint64_t *out) {
  bool lt, eq, gt;
  if (in->compare_type == KL_CMP_TOTALORDER) return false;
  if (kl_is_float(t)) {
    double a = kl_float_decode(t, x[0]), b = kl_float_decode(t, x[1]);
    lt = a<b, eq = a == b, gt = a> b;
  } else {
    lt = less(t, x[0], x[1]), eq = x[0] == x[1], gt = less(t, x[1], x[0]);
  }
  switch (in->direction) {
  case KL_EQ: *out = eq; break;
  case KL_NE: *out = !eq; break;
  case KL_LT: *out = lt; break;
  case KL_LE: *out = lt || eq; break;
  case KL_GT: *out = gt; break;
  case KL_GE: *out = gt || eq; break;
  }
  return true;
}

bool kl_fold_scalar(const kl_instr *in, kl_dtype t, const uint64_t *x, uint64_t *out) {
  if (!is_folded(t) || !is_folded(in->shape->dtype)) return false;
  switch (in->op) {
  case KL_OP_SELECT: *out = x[0] ? x[1] : x[2]; return true;
  case KL_OP_COMPARE: return fold_compare(in, t, x, out);
  case KL_OP_CONVERT: return convert(t, in->shape->dtype, x[0], out);
  default: break;
  }
  if (in->noperands > 2 || in->shape->dtype != t) return false;
  if (t == KILN_PRED) return fold_pred(in->op, x, out);
  return kl_is_int(t) ? fold_int(in->op, t, x, out) : fold_float(in->op, t, x, in->noperands, out);
}
