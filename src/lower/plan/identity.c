// Identities of ops that join two values.

#include "lower/plan/plan.h"

static uint64_t lowest(kl_dtype t) {
  if (!kl_is_float(t)) return kl_is_signed(t) ? (kl_int_mask(t) >> 1) + 1 : 0;
  return kl_float_encode(t, -__builtin_inf());
}

static uint64_t highest(kl_dtype t) {
  if (!kl_is_float(t)) return kl_is_signed(t) ? kl_int_mask(t) >> 1 : kl_int_mask(t);
  return kl_float_encode(t, __builtin_inf());
}

// Formats without infinities have none for max and min but their ends, which are not looked for here.
bool kl_identity_of(kl_op op, kl_dtype t, uint64_t bits[2]) {
  bool complex = kl_is_complex(t), real = kl_is_float(t), pred = t == KILN_PRED;
  bool has_infinity = !real || t == KILN_F16 || t == KILN_BF16 || t == KILN_F32 || t == KILN_F64;
  kl_dtype part = complex ? kl_info(t)->part : t;
  bits[0] = bits[1] = 0;
  switch (op) {
  case KL_OP_ADD:
    if (complex || real) bits[0] = bits[1] = kl_float_encode(part, -0.0);
    return true;
  case KL_OP_MULTIPLY: bits[0] = real ? kl_float_encode(t, 1) : 1; return !complex;
  case KL_OP_MAXIMUM: bits[0] = pred ? 0 : lowest(t); return has_infinity && !complex;
  case KL_OP_MINIMUM: bits[0] = pred ? 1 : highest(t); return has_infinity && !complex;
  case KL_OP_AND: bits[0] = pred ? 1 : kl_int_mask(t); return true;
  case KL_OP_OR:
  case KL_OP_XOR: return true;
  default: return false;
  }
}
