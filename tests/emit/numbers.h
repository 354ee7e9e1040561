// Elements of real and complex arrays as numbers, for oracles of linear algebra.
#ifndef KL_TEST_NUMBERS_H
#define KL_TEST_NUMBERS_H

#include "ir/hlo.h"

#include <complex.h>
#include <math.h>
#include <string.h>

typedef double complex number;

// Where there is no CMPLX.
static inline number number_of(double re, double im) {
  number z;
  memcpy(&z, (double[]){re, im}, sizeof z);
  return z;
}

// LAPACK's, and the letters of its names.
static const kl_dtype types[] = {KILN_F32, KILN_F64, KILN_C64, KILN_C128};
static const char letters[] = "sdcz";

static inline kl_dtype part_of(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}

static inline double unit_of(kl_dtype t) {
  return ldexp(1, -kl_info(part_of(t))->man_bits - 1);
}

static inline number get(kl_dtype t, const void *from, int64_t i) {
  double re = kl_float_decode(part_of(t), kl_element_get(t, from, i, 0));
  double im = kl_is_complex(t) ? kl_float_decode(part_of(t), kl_element_get(t, from, i, 1)) : 0;
  return number_of(re, im);
}

static inline void put(kl_dtype t, void *to, int64_t i, number v) {
  kl_element_set(t, to, i, 0, kl_float_encode(part_of(t), creal(v)));
  if (kl_is_complex(t)) kl_element_set(t, to, i, 1, kl_float_encode(part_of(t), cimag(v)));
}

#endif
