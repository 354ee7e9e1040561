// Places in memory as expressions: a layout's values (ir/index/layout.h), forward and backward.
#ifndef KL_MEMORY_H
#define KL_MEMORY_H

#include "ir/index/layout.h"
#include "ir/index/map.h"

// The digits of an element's place, slowest first: l->ndigits of them.
void kl_memory_digits(kl_affs *p, const kl_physical *l, const kl_aff *const *index, const kl_aff **digits);
// In elements from the data's beginning.
const kl_aff *kl_memory_position(kl_affs *p, const kl_physical *l, const kl_aff *const *digits);
// The digits of a position that the layout has.
void kl_memory_split(kl_affs *p, const kl_physical *l, const kl_aff *position, const kl_aff **digits);
// The logical index of the element there. Where the constraints, at most KL_MAX_VALUES, do not hold, there is
// padding; returns how many.
uint32_t kl_memory_index(kl_affs *p, const kl_physical *l, const kl_aff *const *digits, const kl_aff **index,
                         kl_constraint *c);

#endif
