// Positions in memory as expressions: the element offset of an index by the shape's layout (no tiles), and back.
#ifndef KL_INDEX_H
#define KL_INDEX_H

#include "ir/hlo.h"
#include "ir/index/aff.h"

const kl_aff *kl_index_linearize(kl_affs *p, const kl_shape *s, const kl_aff *const *index);
// `linear` is taken to be in bounds.
void kl_index_delinearize(kl_affs *p, const kl_shape *s, const kl_aff *linear, const kl_aff **index);

#endif
