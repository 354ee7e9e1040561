// Positions in memory as expressions.

#include "lower/analysis/index.h"

const kl_aff *kl_index_linearize(kl_affs *p, const kl_shape *s, const kl_aff *const *index) {
  const kl_aff *sum = kl_aff_const(p, 0);
  int64_t stride = 1;
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(s, i);
    sum = kl_aff_addmul(p, sum, index[d], stride);
    stride *= s->dims[d];
  }
  return sum;
}

// Dim by dim q = dim*(q div dim) + q mod dim, so that linearize gives back `linear` itself. The major-most dim needs no
// mod: the linear index is in bounds.
void kl_index_delinearize(kl_affs *p, const kl_shape *s, const kl_aff *q, const kl_aff **index) {
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(s, i);
    bool last = i + 1 == s->rank;
    index[d] = last ? q : kl_aff_modc(p, q, s->dims[d]);
    if (!last) q = kl_aff_floordivc(p, q, s->dims[d]);
  }
}
