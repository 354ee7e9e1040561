// Bit patterns of scalars: all of them, or edges and random ones.
#ifndef IR_SAMPLES_H
#define IR_SAMPLES_H

#include "ir/dtype.h"
#include "support/random.h"

#include <math.h>

// Different patterns of a type of 16 bits or fewer.
static inline uint32_t patterns_of(kl_dtype t) {
  return 1u << (t == KILN_PRED ? 1 : kl_info(t)->bits);
}

// The lowest and highest patterns, those about the sign, then random ones: powers and sums of few powers of two, which
// round to ties, and all sizes.
static inline uint64_t sample_bits(kl_dtype t, uint32_t i) {
  int bits = kl_info(t)->bits;
  uint64_t r = random_bits();
  if (i < 4) return i & kl_int_mask(t);
  if (i < 12) return (kl_int_mask(t) - (i - 4)) & kl_int_mask(t);
  if (i < 20) return ((1ull << (bits - 1)) + i - 16) & kl_int_mask(t);
  if (kl_is_float(t))
    return i % 2 ? r & kl_int_mask(t) : kl_float_encode(t, ldexp((double)(int64_t)r, (int)(r % 66) - 64));
  if (i % 3 == 0) return (1ull << (r % 64) | 1ull << (r >> 8) % 64 | 1ull << (r >> 16) % 64) & kl_int_mask(t); // ties
  return (r & kl_int_mask(t)) >> (random_bits() % (unsigned)bits);
}

#endif
