// Arguments of functions of complex numbers, and errors of their results against complex_ref.h's.
#ifndef KL_TEST_COMPLEX_CASES_H
#define KL_TEST_COMPLEX_CASES_H

#include "complex_ref.h"
#include "ir/dtype.h"
#include "support/random.h"

typedef struct cc_number {
  double re, im;
} cc_number;

// --- arguments ------------------------------------------------------------------------------------------------------

static inline double cc_uniform(void) { // in (-1, 1)
  return (double)(int64_t)random_bits() * 0x1p-63;
}
static inline double cc_to_type(kl_dtype t, double v) {
  volatile float narrow = (float)v; // gcc 12 leaves the rounding out
  return t == KILN_C64 ? (double)narrow : v;
}
// Of either sign and any exponent from -range to range.
static inline double cc_spread(double range) {
  int exponent = (int)(cc_uniform() * range); // one draw a statement: all compilers draw in one order
  double v = ldexp(1 + fabs(cc_uniform()), exponent);
  return cc_uniform() < 0 ? -v : v;
}

// Where something cancels, has a pole, a zero or a branch point; moved off it by all amounts that count.
static inline cc_number cc_near(kl_dtype t, int way) {
  double bits = t == KILN_C64 ? 24 : 53, range = t == KILN_C64 ? 120 : 1000, angle = cc_uniform() * M_PI;
  double off = cc_spread(1);
  off *= ldexp(1, -(int)(bits * fabs(cc_uniform()) * 1.3));
  double tiny = cc_spread(1);
  tiny *= ldexp(1, -(int)(range * fabs(cc_uniform())));
  switch (way) {
  case 0: return (cc_number){cos(angle), sin(angle)}; // the unit circle
  case 1: return (cc_number){cos(angle) * (1 + off), sin(angle) * (1 + off)};
  case 2: return (cc_number){cc_uniform() < 0 ? 1 : -1, tiny}; // its ends
  case 3: return (cc_number){(cc_uniform() < 0 ? 1 : -1) * (1 + off), tiny};
  case 4: return (cc_number){tiny, (cc_uniform() < 0 ? 1 : -1) * (1 + off)};
  case 5: return (cc_number){-tiny * tiny / 2 * (1 + off), tiny};                  // the circle about -1, next to 0
  case 6: return (cc_number){cos(angle) - 1, sin(angle) * (1 + off)};              // and elsewhere
  case 7: return (cc_number){tiny, (int)(cc_uniform() * 20) * M_PI_2 * (1 + off)}; // poles
  case 8: return (cc_number){(int)(cc_uniform() * 20) * M_PI_2 * (1 + off), tiny};
  case 9: return (cc_number){off, (2 * (int)(cc_uniform() * 9) + 1) * M_PI + off};
  case 10: return (cc_number){tiny, off};
  case 11: return (cc_number){cc_uniform() * 4, tiny};
  case 12: return (cc_number){tiny, cc_uniform() * 4};
  default: return (cc_number){-log(fabs(cos(angle))) * (1 + off), angle}; // where e^z - 1 is imaginary
  }
}

// The i-th argument.
static inline cc_number cc_draw(kl_dtype t, int i) {
  double range = t == KILN_C64 ? 126 : 1022, most = t == KILN_C64 ? 100 : 750;
  cc_number z;
  switch (i % 6) {
  case 0:
    z.re = cc_uniform() * 4;
    z.im = cc_uniform() * 4;
    break;
  case 1:
    z.re = cc_spread(8);
    z.im = cc_spread(8);
    break;
  case 2:
    z.re = cc_spread(range);
    z.im = cc_spread(range);
    break;
  case 3:
    z.re = cc_uniform() * most * 2;
    z.im = cc_spread(i % 12 < 6 ? 8 : range);
    break;
  default: z = cc_near(t, (int)(random_bits() % 14)); break;
  }
  if (i % 97 == 0) z.re = cc_to_type(t, ldexp(z.re, t == KILN_C64 ? -140 : -1060));
  return (cc_number){cc_to_type(t, z.re), cc_to_type(t, z.im)};
}

// x for which y / x is next to i or -i: y turned, but for the last places of its parts or the size of the lesser one.
static inline cc_number cc_next_to_pole(kl_dtype t, cc_number y) {
  double bits = t == KILN_C64 ? 23 : 52, off[2];
  for (int k = 0; k < 2; k++) {
    int places = (int)(cc_uniform() * 3), exponent = (int)(bits * (1 - fabs(cc_uniform()) / 2));
    off[k] = 1 + places * ldexp(1, -exponent);
    if (random_bits() % 4 == 0) off[k] = cc_uniform() * 3;
  }
  bool left = random_bits() % 2;
  if (fabs(y.re) > fabs(y.im)) off[0] = 1;
  if (fabs(y.im) > fabs(y.re)) off[1] = 1;
  return left ? (cc_number){-y.im * off[1], y.re * off[0]} : (cc_number){y.im * off[1], -y.re * off[0]};
}

// Exponents that keep a power within range, and divisors for which a part of the quotient is lost.
static inline cc_number cc_draw_second(kl_dtype t, kl_op op, cc_number x, int i) {
  cc_number z = cc_draw(t, (int)(random_bits() >> 40));
  if (op == KL_OP_POWER && i % 4) {
    double size = hypot(log(hypot(x.re, x.im)), atan2(x.im, x.re)), most = t == KILN_C64 ? 60 : 500;
    z.re = cc_uniform() * most / fmax(size, 1e-3);
    z.im = cc_uniform() * most / fmax(size, 1e-3);
  }
  double e = cc_spread(1);
  e = 1 + e * ldexp(1, -(int)(fabs(cc_uniform()) * (t == KILN_C64 ? 26 : 55)));
  if (op == KL_OP_DIVIDE && i % 4 == 1) z = (cc_number){x.im * e, -x.re};
  if (op == KL_OP_DIVIDE && i % 4 == 2) z = (cc_number){x.re * e, x.im};
  if (op == KL_OP_ATAN2 && i % 4 == 1) z = (cc_number){-x.im * e, x.re};
  if (op == KL_OP_ATAN2 && i % 4 == 3) z = cc_next_to_pole(t, x);
  return (cc_number){cc_to_type(t, z.re), cc_to_type(t, z.im)};
}

// --- errors -------------------------------------------------------------------------------------------------------

// In units in the last place of r.
static inline double cc_part_error(kl_dtype t, mpfr_t r, double z) {
  int bits = t == KILN_C64 ? 24 : 53, least = t == KILN_C64 ? -149 : -1074, most = t == KILN_C64 ? 128 : 1024;
  if (isnan(z) || mpfr_nan_p(r)) return INFINITY;
  if (mpfr_zero_p(r)) return z == 0 ? 0 : INFINITY;
  if (mpfr_inf_p(r)) return isinf(z) && !signbit(z) == (mpfr_sgn(r) > 0) ? 0 : INFINITY;
  mpfr_exp_t e = mpfr_get_exp(r);
  if (e > most) return isinf(z) && !signbit(z) == (mpfr_sgn(r) > 0) ? 0 : INFINITY;
  long unit = e - bits < least ? least : e - bits;
  mpfr_t d;
  mpfr_init2(d, 200);
  mpfr_set_ui_2exp(d, 1, most, MPFR_RNDN); // what infinity stands for
  if (signbit(z)) mpfr_neg(d, d, MPFR_RNDN);
  if (isinf(z))
    mpfr_sub(d, r, d, MPFR_RNDN);
  else
    mpfr_sub_d(d, r, z, MPFR_RNDN);
  mpfr_mul_2si(d, d, -unit, MPFR_RNDN);
  double u = fabs(mpfr_get_d(d, MPFR_RNDU));
  mpfr_clear(d);
  return u;
}

// |r - z|, where an infinity, and whatever of r is rounded to one, is the next power of two.
static inline double cc_distance(kl_dtype t, mpfr_t r, double z) {
  mpfr_t most, d;
  mpfr_init2(most, 53), mpfr_init2(d, 2400);
  mpfr_set_ui_2exp(most, 1, t == KILN_C64 ? 128 : 1024, MPFR_RNDN);
  mpfr_set(d, r, MPFR_RNDN);
  if (mpfr_cmpabs(r, most) > 0) mpfr_copysign(d, most, r, MPFR_RNDN);
  if (isinf(z)) {
    if (signbit(z)) mpfr_neg(most, most, MPFR_RNDN);
    mpfr_sub(d, d, most, MPFR_RNDN);
  } else {
    mpfr_sub_d(d, d, z, MPFR_RNDN);
  }
  double distance = fabs(mpfr_get_d(d, MPFR_RNDU));
  mpfr_clear(most), mpfr_clear(d);
  return distance;
}

// What the bound of eval.h counts, of functions whose bound is for both parts together.
static inline double cc_scale(kl_op op, cc_number x, cc_number y, cc_number r) {
  double size = fmax(fabs(r.re), fabs(r.im));
  switch (op) {
  case KL_OP_LOGISTIC: return size * (hypot(r.re, r.im) + hypot(1 - r.re, r.im));
  case KL_OP_EXP10: return size * (1 + fabs(x.im) * M_LN10);
  case KL_OP_POWER: return size * (1 + hypot(y.re, y.im) * hypot(log(hypot(x.re, x.im)), atan2(x.im, x.re)));
  default: return size;
  }
}

// The greater of both parts' errors, in the units of the function's bound, which is for both parts together where it is
// `normwise`; 0 where nothing is promised.
static inline double cc_error(kl_op op, kl_dtype t, bool normwise, cc_number x, cc_number y, cr_complex *want,
                              cc_number z) {
  int man = t == KILN_C64 ? 23 : 52;
  double least = t == KILN_C64 ? 0x1p-149 : 0x1p-1074,
         e[2] = {cc_part_error(t, want->re, z.re), cc_part_error(t, want->im, z.im)};
  if (mpfr_nan_p(want->re) || mpfr_nan_p(want->im)) return isinf(z.re) || isinf(z.im) ? 0 : INFINITY; // a pole
  if (!normwise) return fmax(e[0], e[1]);
  double scale = cc_scale(op, x, y, (cc_number){mpfr_get_d(want->re, MPFR_RNDN), mpfr_get_d(want->im, MPFR_RNDN)});
  if (!isfinite(scale) || !isfinite(hypot(mpfr_get_d(want->re, MPFR_RNDN), mpfr_get_d(want->im, MPFR_RNDN)))) return 0;
  double unit = ldexp(scale, -man) + least, worst = 0;
  for (int k = 0; k < 2; k++) {
    double d = cc_distance(t, k ? want->im : want->re, k ? z.im : z.re);
    worst = fmax(worst, isnan(z.re) || isnan(z.im) ? INFINITY : d / unit);
  }
  return worst;
}

// Axes are branch cuts of many functions; what they give there hangs on signs of zeros.
static inline bool cc_on_axis(cc_number x) {
  return x.im == 0 || x.re == 0;
}

#endif
