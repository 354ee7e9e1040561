#include "ir/rewrite/expand/numbers.h"

bool kl_has_parts(kl_graph *g, uint32_t v) {
  return kl_is_complex(kl_graph_shape(g, v)->dtype);
}

uint32_t kl_real_part(kl_graph *g, uint32_t v) {
  return kl_has_parts(g, v) ? kl_graph_unary(g, KL_OP_REAL, v) : v;
}

uint32_t kl_imaginary_part(kl_graph *g, uint32_t v) {
  return kl_has_parts(g, v) ? kl_graph_unary(g, KL_OP_IMAG, v) : KL_NO_PART;
}

uint32_t kl_number(kl_graph *g, uint32_t re, uint32_t im) {
  return im == KL_NO_PART ? re : kl_graph_complex(g, re, im);
}

uint32_t kl_conjugate(kl_graph *g, uint32_t v) {
  if (!kl_has_parts(g, v)) return v;
  return kl_number(g, kl_real_part(g, v), kl_graph_unary(g, KL_OP_NEGATE, kl_imaginary_part(g, v)));
}

uint32_t kl_scaled(kl_graph *g, uint32_t v, uint32_t by) {
  uint32_t re = kl_graph_binary(g, KL_OP_MULTIPLY, kl_real_part(g, v), by), im = kl_imaginary_part(g, v);
  return im == KL_NO_PART ? re : kl_graph_complex(g, re, kl_graph_binary(g, KL_OP_MULTIPLY, im, by));
}

uint32_t kl_float_like(kl_graph *g, uint32_t v, double value) {
  const kl_shape *s = kl_graph_shape(g, v);
  kl_dtype part = kl_is_complex(s->dtype) ? kl_info(s->dtype)->part : s->dtype;
  return kl_graph_bits(g, s->dtype, (uint64_t[2]){kl_float_encode(part, value), 0}, s->rank, s->dims);
}

uint32_t kl_zero_like(kl_graph *g, uint32_t v) {
  return kl_graph_number_like(g, v, 0);
}

uint32_t kl_one_like(kl_graph *g, uint32_t v) {
  return kl_float_like(g, v, 1);
}

uint32_t kl_square(kl_graph *g, uint32_t v) {
  uint32_t re = kl_real_part(g, v), im = kl_imaginary_part(g, v), s = kl_graph_binary(g, KL_OP_MULTIPLY, re, re);
  return im == KL_NO_PART ? s : kl_graph_binary(g, KL_OP_ADD, s, kl_graph_binary(g, KL_OP_MULTIPLY, im, im));
}

uint32_t kl_largest_part(kl_graph *g, uint32_t v) {
  uint32_t re = kl_graph_unary(g, KL_OP_ABS, kl_real_part(g, v)), im = kl_imaginary_part(g, v);
  return im == KL_NO_PART ? re : kl_graph_binary(g, KL_OP_MAXIMUM, re, kl_graph_unary(g, KL_OP_ABS, im));
}
