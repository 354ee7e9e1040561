// Binary floating-point formats, described by their numbers alone: bits to doubles and back, exactly.
#ifndef TESTS_SIM_LANES_NUMBER_H
#define TESTS_SIM_LANES_NUMBER_H

#include "warp.h"
#include <math.h>
#include <string.h>

// Bits in all, of the fraction, and the exponent's bias; the quiet NaN that results are.
typedef struct number_format {
  const char *name;
  int bits, fraction, bias;
  uint64_t nan;
} number_format;
static const number_format number_f16 = {"f16", 16, 10, 15, 0x7fff}, number_bf16 = {"bf16", 16, 7, 127, 0x7fff},
                           number_f32 = {"f32", 32, 23, 127, 0x7fffffff},
                           number_f64 = {"f64", 64, 52, 1023, 0xfff8000000000000};

// By the name of a type, also of a pair.
static inline const number_format *number_of_type(const char *type) {
  const number_format *all[] = {&number_f16, &number_bf16, &number_f32, &number_f64};
  for (int k = 0; k < 4; k++) {
    size_t n = strlen(all[k]->name);
    if (strncmp(type, all[k]->name, n) == 0 && (type[n] == 0 || strcmp(type + n, "x2") == 0)) return all[k];
  }
  return NULL;
}

static inline double number_value(const number_format *f, value v) {
  int exponents = (1 << (f->bits - 1 - f->fraction)) - 1, e = (int)(v >> f->fraction) & exponents;
  double m = (double)(uint64_t)(v & (((value)1 << f->fraction) - 1));
  double r = e == exponents ? (m != 0 ? (double)NAN : (double)INFINITY)
             : e == 0       ? ldexp(m, 1 - f->bias - f->fraction)
                            : ldexp(m + ldexp(1, f->fraction), e - f->bias - f->fraction);
  return v >> (f->bits - 1) & 1 ? -r : r;
}

// Of a number that the format has; a NaN is the format's own.
static inline value number_bits(const number_format *f, double v) {
  if (isnan(v)) return f->nan;
  value sign = signbit(v) ? (value)1 << (f->bits - 1) : 0;
  v = fabs(v);
  if (isinf(v)) return sign | (value)(2 * f->bias + 1) << f->fraction;
  if (v == 0) return sign;
  int e = ilogb(v) < 1 - f->bias ? 1 - f->bias : ilogb(v);
  return sign | (((value)(e + f->bias - 1) << f->fraction) + (value)ldexp(v, f->fraction - e));
}

// Below the least normal number.
static inline bool number_is_small(const number_format *f, double v) {
  return fabs(v) < ldexp(1, 1 - f->bias);
}
static inline double number_flush(const number_format *f, double v) {
  return number_is_small(f, v) ? copysign(0, v) : v;
}

#endif
