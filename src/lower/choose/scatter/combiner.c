// What a combiner does with each of its arrays.

#include "lower/choose/scatter/scatter.h"

// The instruction that makes a leaf of another.
static const kl_instr *maker(const kl_comp *c, uint32_t i, uint32_t *leaf) {
  const kl_instr *in = &c->instr[i];
  for (;;) {
    if (in->op == KL_OP_TUPLE) {
      uint32_t k = kl_shape_element_of_leaf(in->shape, *leaf);
      *leaf -= in->shape->first_leaf[k];
      in = kl_operand(c, in, k);
    } else if (in->op == KL_OP_GET_TUPLE_ELEMENT) {
      *leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
      in = kl_operand(c, in, 0);
    } else if (in->op == KL_OP_COPY) {
      in = kl_operand(c, in, 0);
    } else {
      return in;
    }
  }
}

// The parameter that operand k of `in` is, as it is or converted to f32; -1: it is none.
static int64_t parameter_of(const kl_comp *c, const kl_instr *in, uint32_t k, bool converted) {
  const kl_instr *from = kl_operand(c, in, k);
  if (converted && (from->op != KL_OP_CONVERT || from->shape->dtype != KILN_F32)) return -1;
  if (converted) from = kl_operand(c, from, 0);
  return from->op == KL_OP_PARAMETER ? from->number : -1;
}

// f32 has more than twice the digits of 16-bit types, so that a sum rounded to it and then to them is rounded once.
static bool is_widened_sum(const kl_comp *c, const kl_instr *in, kl_dtype t) {
  return in->op == KL_OP_CONVERT && (t == KILN_F16 || t == KILN_BF16) && kl_operand(c, in, 0)->op == KL_OP_ADD &&
         kl_operand(c, in, 0)->shape->dtype == KILN_F32;
}

kl_op kl_combining_op(const kl_scatter *x, uint32_t array) {
  const kl_comp *c = x->by;
  uint32_t leaf = array;
  const kl_instr *in = maker(c, c->root, &leaf);
  if (in->op == KL_OP_PARAMETER)
    return in->number == array ? KL_OP_PARAMETER : in->number == x->n + array ? KL_OP_COPY : KL_OP_UNKNOWN;
  bool widened = is_widened_sum(c, in, in->shape->dtype);
  if (widened) in = kl_operand(c, in, 0);
  if (in->noperands != 2 || !kl_op_is_elementwise(in->op)) return KL_OP_UNKNOWN;
  int64_t a = parameter_of(c, in, 0, widened), b = parameter_of(c, in, 1, widened), element = array,
          update = (int64_t)x->n + array;
  return (a == element && b == update) || (a == update && b == element) ? in->op : KL_OP_UNKNOWN;
}

int64_t kl_scattered_leaf(const kl_comp *c, const kl_scatter *x, uint32_t result) {
  uint32_t leaf = result;
  const kl_instr *in = &c->instr[c->root];
  while (in->op == KL_OP_TUPLE || in->op == KL_OP_GET_TUPLE_ELEMENT) {
    if (in->op == KL_OP_TUPLE) {
      uint32_t k = kl_shape_element_of_leaf(in->shape, leaf);
      leaf -= in->shape->first_leaf[k];
      in = kl_operand(c, in, k);
    } else {
      leaf += kl_operand(c, in, 0)->shape->first_leaf[in->number];
      in = kl_operand(c, in, 0);
    }
  }
  return in == x->instr ? (int64_t)leaf : -1;
}
