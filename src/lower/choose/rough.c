// Rough costs of instructions, before anything is planned.

#include "lower/choose/rough.h"

#include "lower/choose/choose.h"

enum { FUNCTION_COST = 20 };

// Index transforms and structure make nothing.
double kl_rough_work(const kl_instr *in) {
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_UNARY:
  case KL_KIND_BINARY: break;
  case KL_KIND_CONVERT:
  case KL_KIND_SELECT:
  case KL_KIND_CLAMP:
  case KL_KIND_STOCHASTIC:
  case KL_KIND_CONCATENATE:
  case KL_KIND_PAD:
  case KL_KIND_DYNAMIC_UPDATE_SLICE:
  case KL_KIND_CALL: return 2;
  case KL_KIND_REDUCE_WINDOW: return (double)kl_window_taps(in);
  default: return 0;
  }
  switch (in->op) {
  case KL_OP_ABS:
  case KL_OP_NEGATE:
  case KL_OP_NOT:
  case KL_OP_ADD:
  case KL_OP_SUBTRACT:
  case KL_OP_MULTIPLY:
  case KL_OP_MAXIMUM:
  case KL_OP_MINIMUM:
  case KL_OP_AND:
  case KL_OP_OR:
  case KL_OP_XOR:
  case KL_OP_SHL:
  case KL_OP_SHR_LOGICAL:
  case KL_OP_SHR_ARITH:
  case KL_OP_COMPARE: return 1;
  default: return kl_is_float(in->shape->dtype) || kl_is_complex(in->shape->dtype) ? FUNCTION_COST : 4;
  }
}

double kl_rough_elements(const kl_instr *in) {
  return kl_shape_is_array(in->shape) ? (double)in->shape->count : 0;
}

double kl_rough_bytes(const kl_instr *in) {
  return kl_shape_is_array(in->shape) ? kl_rough_elements(in) * kl_info(in->shape->dtype)->bits / 8 : 0;
}
