// Rounding by MPFR: operations whose results have a format's precision and range.
#ifndef TESTS_SIM_LANES_ROUNDING_H
#define TESTS_SIM_LANES_ROUNDING_H

#include "number.h"
#include <mpfr.h>

static inline mpfr_rnd_t direction_of(const instruction *i) {
  return has(i, ".rz") || has(i, ".rzi")   ? MPFR_RNDZ
         : has(i, ".rm") || has(i, ".rmi") ? MPFR_RNDD
         : has(i, ".rp") || has(i, ".rpi") ? MPFR_RNDU
                                           : MPFR_RNDN;
}

// op: + - * / f (a * b + c) s (square root of a) = (a itself). Of doubles, rounded once.
static inline double rounded(const number_format *f, char op, double a, double b, double c, mpfr_rnd_t to) {
  static mpfr_t x, y, z, r;
  static bool made;
  mpfr_set_emin(-2000);
  mpfr_set_emax(2000);
  if (!made) {
    mpfr_inits2(64, x, y, z, NULL);
    mpfr_init(r);
    made = true;
  }
  mpfr_set_d(x, a, MPFR_RNDN);
  mpfr_set_d(y, b, MPFR_RNDN);
  mpfr_set_d(z, c, MPFR_RNDN);
  mpfr_set_prec(r, f->fraction + 1);
  mpfr_set_emin(2 - f->bias - f->fraction);
  mpfr_set_emax(f->bias + 1);
  int t = 0;
  switch (op) {
  case '+': t = mpfr_add(r, x, y, to); break;
  case '-': t = mpfr_sub(r, x, y, to); break;
  case '*': t = mpfr_mul(r, x, y, to); break;
  case '/': t = mpfr_div(r, x, y, to); break;
  case 'f': t = mpfr_fma(r, x, y, z, to); break;
  case 's': t = mpfr_sqrt(r, x, to); break;
  default: t = mpfr_set(r, x, to); break;
  }
  t = mpfr_check_range(r, t, to);
  mpfr_subnormalize(r, t, to);
  return mpfr_get_d(r, MPFR_RNDN);
}

#endif
