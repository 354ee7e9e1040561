// Shuffles of a warp whose lanes stand at one instruction.
#ifndef KL_LANES_SHUFFLE_H
#define KL_LANES_SHUFFLE_H

#include "sim/isa/op.h"

typedef enum kl_shuffle { KL_SHUFFLE_UP, KL_SHUFFLE_DOWN, KL_SHUFFLE_BFLY, KL_SHUFFLE_IDX } kl_shuffle;

// PTX ISA 9.7.9.6: the source lane from b, and from c the segments and the bound.
static inline __attribute__((always_inline)) unsigned kl_source_lane(kl_shuffle mode, unsigned lane, uint32_t b,
                                                                     uint32_t c, bool *inside) {
  int bval = (int)(b & 31), cval = (int)(c & 31), segment = (int)(c >> 8 & 31), at = (int)lane;
  int most = (at & segment) | (cval & ~segment), least = at & segment, j = 0;
  switch (mode) {
  case KL_SHUFFLE_UP: j = at - bval; break;
  case KL_SHUFFLE_DOWN: j = at + bval; break;
  case KL_SHUFFLE_BFLY: j = at ^ bval; break;
  case KL_SHUFFLE_IDX: j = least | (bval & ~segment); break;
  }
  *inside = mode == KL_SHUFFLE_UP ? j >= most : j <= most;
  return (unsigned)(*inside ? j : at) & 31;
}

// value[i] = what lane i takes of a; of a lane that is none of `members`: anything. A bit for each lane whose source
// lies inside. `value` overlaps no operand.
typedef uint32_t kl_shuffle_all(kl_shuffle mode, const uint32_t a[KL_LANES], const uint32_t b[KL_LANES],
                                const uint32_t c[KL_LANES], uint32_t members, uint32_t value[KL_LANES]);

#endif
