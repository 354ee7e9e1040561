// Floats by their bits; arrays that must be the same bit for bit, NaNs aside.
#ifndef KL_TEST_BITS_H
#define KL_TEST_BITS_H

#include "ir/dtype.h"
#include <kiln/ir.h>
#include <string.h>

static inline float float_of(uint32_t bits) {
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
static inline double double_of(uint64_t bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

// Number i of a buffer: bits that hold nothing else.
static inline bool is_nan_at(kl_dtype t, const void *p, size_t i) {
  uint64_t bits = 0;
  unsigned n = kl_info(t)->bits;
  memcpy(&bits, (const uint8_t *)p + i * n / 8, n < 8 ? 1 : n / 8);
  return kl_float_is_nan(t, bits >> i * n % 8 & kl_int_mask(t));
}

// No other bits in all that are no NaNs; of arrays with padding only whether all is the same.
static inline bool same_bits(kl_dtype type, const void *a, const void *b, size_t bytes) {
  kl_dtype t = kl_is_complex(type) ? kl_info(type)->part : type;
  unsigned n = kl_info(t)->bits;
  if (memcmp(a, b, bytes) == 0) return true;
  if (!kl_is_float(t)) return false;
  for (size_t i = 0; i < bytes * 8 / n; i++) {
    size_t at = i * n / 8, size = n < 8 ? 1 : n / 8;
    if (memcmp((const char *)a + at, (const char *)b + at, size) != 0 && !(is_nan_at(t, a, i) && is_nan_at(t, b, i)))
      return false;
  }
  return true;
}

#endif
