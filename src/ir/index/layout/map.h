// Places in memory as expressions and as maps: a layout's values (ir/index/layout/layout.h), forward and backward.
#ifndef KL_LAYOUT_MAP_H
#define KL_LAYOUT_MAP_H

#include "ir/index/layout/layout.h"
#include "ir/index/map/map.h"

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

// The same for a shape, whatever its layout: the position of an element, and the index of the element at a position
// that holds one. Error values for a shape that does not say where elements lie.
const kl_aff *kl_position_of(kl_affs *p, const kl_shape *s, const kl_aff *const *index);
void kl_index_at(kl_affs *p, const kl_shape *s, const kl_aff *position, const kl_aff **index);

// From the logical index to the position; from positions to the logical index, over those that hold an element. Not
// simplified. Undefined, with the reason, for a shape that does not say where elements lie; empty without elements.
const kl_map *kl_layout_map(kl_affs *pool, const kl_shape *s);
const kl_map *kl_layout_inverse_map(kl_affs *pool, const kl_shape *s);

#endif
