// Sizes of dimensions that are known.
#include "ir/rewrite/expand/room.h"

static int64_t size_of(const kl_comp *c, const kl_instr *in) {
  return kl_operand(c, in, 0)->shape->dims[in->dims[0]];
}

// The size is set to what it is.
static bool sets_nothing(const kl_comp *c, const kl_instr *in) {
  const kl_instr *to = kl_operand(c, in, 1);
  if (to->op != KL_OP_CONSTANT || !to->literal || in->shape->dynamic) return false;
  return kl_int_decode(to->shape->dtype, kl_element_get(to->shape->dtype, to->literal->data, 0, 0)) == size_of(c, in);
}

static bool takes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  const kl_shape *s = kl_operand(c, in, 0)->shape;
  if (!kl_shape_is_array(s) || (s->dynamic && s->dynamic[in->dims[0]])) return false;
  return in->op == KL_OP_GET_DIMENSION_SIZE || sets_nothing(c, in);
}

static uint32_t write(const kl_expansion *x) {
  const kl_shape *s = kl_graph_shape(x->g, x->operands[0]);
  if (x->in->op == KL_OP_SET_DIMENSION_SIZE) return x->operands[0];
  return kl_graph_number(x->g, KILN_S32, s->dims[x->in->dims[0]], 0, NULL);
}

const kl_expander kl_expand_size = {takes, NULL, write};
