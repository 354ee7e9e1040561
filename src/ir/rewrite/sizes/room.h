// One op on arrays of dynamic sizes. Private to this room.
#ifndef KL_SIZES_ROOM_H
#define KL_SIZES_ROOM_H

#include "ir/rewrite/graph.h"
#include "ir/rewrite/sizes/sizes.h"

#define KL_WHOLE UINT32_MAX // as large as its bound

// Of each dimension of an array, its size: a value of the open computation, s32[], from 0 to the bound; or KL_WHOLE.
typedef struct kl_extents {
  uint32_t of[KILN_MAX_RANK];
} kl_extents;

// A value and the extents of its leaves; NULL: all are whole.
typedef struct kl_sized {
  uint32_t value;
  const kl_extents *leaf;
} kl_sized;

// Sizes that have been held between numbers in the open computation, so that the same size is one value.
typedef struct kl_held {
  uint32_t size, value;
  int64_t least, most;
  struct kl_held *next;
} kl_held;

typedef struct kl_sizing {
  kl_graph *g;
  kl_shape_map *known; // shapes without what is dynamic
  const kl_instr *in;
  const kl_shape *const *shapes; // of the operands, as they are written
  uint32_t *values;              // operands; rules may put others in their place
  const kl_sized *operands;
  const uint32_t *orders; // by comparator of sorts along dynamic dimensions: the one that knows, + 1; 0: there is none
  kl_held **held;
  kl_extents *out; // of the result's leaves, whole at first
  bool refused;
} kl_sizing;

static inline uint32_t kl_extent(const kl_sizing *z, uint32_t k, uint32_t d) {
  return z->operands[k].leaf ? z->operands[k].leaf->of[d] : KL_WHOLE;
}
static inline bool kl_is_sized(const kl_sizing *z, uint32_t k, uint32_t d) {
  return kl_extent(z, k, d) != KL_WHOLE;
}

// "OP: DIMENSION is dynamic: expected ...": where the op is not taken. Returns a value all the same.
uint32_t kl_size_refuse(kl_sizing *z, const char *expected);
// The op on z->values, its type at its bounds.
uint32_t kl_size_keep(kl_sizing *z);
const kl_shape *kl_size_known(kl_sizing *z, const kl_shape *s);

// Sizes: the least of two, the number, sums and so on with numbers.
uint32_t kl_size_least(kl_sizing *z, uint32_t a, uint32_t b);
uint32_t kl_size_number(kl_sizing *z, int64_t v);
uint32_t kl_size_or_bound(kl_sizing *z, uint32_t size, int64_t bound);
uint32_t kl_size_hold(kl_sizing *z, uint32_t size, int64_t least, int64_t most);
// `value` with `fill`, a value without dimensions, at all places beyond an extent.
uint32_t kl_size_mask(kl_sizing *z, uint32_t value, const kl_extents *x, uint32_t fill);
uint32_t kl_size_zero(kl_sizing *z, kl_dtype t);

// Bits that the reducer leaves as they are of any element of operand i of n, of type t; false: it is none that has
// such a value.
bool kl_size_neutral(const kiln_module *m, uint32_t reducer, uint32_t n, uint32_t i, kl_dtype t, uint64_t bits[2]);

// What takes the place of an op some of whose operands have extents, or that sets one. Structure is the driver's.
uint32_t kl_size_op(kl_sizing *z);
uint32_t kl_size_fold(kl_sizing *z); // fold.c: reduce, reduce-window, dot, convolution

#endif
