// Arithmetic of real and complex numbers alike: what is real has no imaginary part. Private to this room.
#ifndef KL_EXPAND_NUMBERS_H
#define KL_EXPAND_NUMBERS_H

#include "ir/rewrite/graph.h"

#define KL_NO_PART UINT32_MAX

bool kl_has_parts(kl_graph *g, uint32_t v);
uint32_t kl_real_part(kl_graph *g, uint32_t v);
uint32_t kl_imaginary_part(kl_graph *g, uint32_t v); // KL_NO_PART of what is real
uint32_t kl_number(kl_graph *g, uint32_t re, uint32_t im);
uint32_t kl_conjugate(kl_graph *g, uint32_t v);
// v times what is real.
uint32_t kl_scaled(kl_graph *g, uint32_t v, uint32_t by);

// Constants of the type and dimensions of v.
uint32_t kl_float_like(kl_graph *g, uint32_t v, double value);
uint32_t kl_zero_like(kl_graph *g, uint32_t v);
uint32_t kl_one_like(kl_graph *g, uint32_t v);

// Real: |v|^2, and the greater of what the magnitudes of its parts are.
uint32_t kl_square(kl_graph *g, uint32_t v);
uint32_t kl_largest_part(kl_graph *g, uint32_t v);

#endif
