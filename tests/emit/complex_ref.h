// References for functions of complex numbers, by MPFR: definitions through exponentials, logarithms and square roots
// of real numbers, in so many bits that whatever they lose does not count.
#ifndef KL_TEST_COMPLEX_REF_H
#define KL_TEST_COMPLEX_REF_H

#include "ir/hlo.h"
#include <math.h>
#include <mpfr.h>

typedef struct cr_complex {
  mpfr_t re, im;
} cr_complex;

enum { CR_SPARE = 24 };
static _Thread_local cr_complex cr_spare[CR_SPARE];
static _Thread_local mpfr_t cr_real[CR_SPARE];

static inline void cr_init(cr_complex *z, mpfr_prec_t bits) {
  mpfr_init2(z->re, bits);
  mpfr_init2(z->im, bits);
}
static inline void cr_clear(cr_complex *z) {
  mpfr_clear(z->re);
  mpfr_clear(z->im);
}
static inline void cr_open(mpfr_prec_t bits) {
  for (int i = 0; i < CR_SPARE; i++) cr_init(&cr_spare[i], bits), mpfr_init2(cr_real[i], bits);
}
static inline void cr_close(void) {
  for (int i = 0; i < CR_SPARE; i++) cr_clear(&cr_spare[i]), mpfr_clear(cr_real[i]);
  mpfr_free_cache();
}

#define N MPFR_RNDN
static inline void cr_copy(cr_complex *r, cr_complex *z) {
  mpfr_set(r->re, z->re, N);
  mpfr_set(r->im, z->im, N);
}
static inline void cr_set(cr_complex *r, double re, double im) {
  mpfr_set_d(r->re, re, N);
  mpfr_set_d(r->im, im, N);
}
static inline void cr_add(cr_complex *r, cr_complex *x, cr_complex *y) {
  mpfr_add(r->re, x->re, y->re, N);
  mpfr_add(r->im, x->im, y->im, N);
}
// r may be neither x nor y in what follows.
static inline void cr_mul(cr_complex *r, cr_complex *x, cr_complex *y) {
  mpfr_fmms(r->re, x->re, y->re, x->im, y->im, N);
  mpfr_fmma(r->im, x->re, y->im, x->im, y->re, N);
}
static inline void cr_div(cr_complex *r, cr_complex *x, cr_complex *y) {
  mpfr_fmma(cr_real[0], y->re, y->re, y->im, y->im, N);
  mpfr_fmma(r->re, x->re, y->re, x->im, y->im, N);
  mpfr_fmms(r->im, x->im, y->re, x->re, y->im, N);
  mpfr_div(r->re, r->re, cr_real[0], N);
  mpfr_div(r->im, r->im, cr_real[0], N);
}
static inline void cr_exp(cr_complex *r, cr_complex *z) {
  mpfr_exp(cr_real[0], z->re, N);
  mpfr_sin_cos(r->im, r->re, z->im, N);
  mpfr_mul(r->re, r->re, cr_real[0], N);
  mpfr_mul(r->im, r->im, cr_real[0], N);
}
static inline void cr_log(cr_complex *r, cr_complex *z) {
  mpfr_fmma(cr_real[0], z->re, z->re, z->im, z->im, N);
  mpfr_atan2(r->im, z->im, z->re, N);
  mpfr_log(r->re, cr_real[0], N);
  mpfr_div_2ui(r->re, r->re, 1, N);
}
// The part that would be lost is the other one's partner.
static inline void cr_sqrt(cr_complex *r, cr_complex *z) {
  if (mpfr_zero_p(z->re) && mpfr_zero_p(z->im)) {
    mpfr_set_zero(r->re, 1), mpfr_set(r->im, z->im, N);
    return;
  }
  mpfr_fmma(cr_real[0], z->re, z->re, z->im, z->im, N);
  mpfr_sqrt(cr_real[0], cr_real[0], N);
  mpfr_abs(cr_real[1], z->re, N);
  mpfr_add(cr_real[0], cr_real[0], cr_real[1], N);
  mpfr_div_2ui(cr_real[0], cr_real[0], 1, N);
  mpfr_sqrt(cr_real[0], cr_real[0], N);
  mpfr_div(cr_real[1], z->im, cr_real[0], N);
  mpfr_div_2ui(cr_real[1], cr_real[1], 1, N);
  bool left = mpfr_sgn(z->re) < 0;
  mpfr_abs(r->re, left ? cr_real[1] : cr_real[0], N);
  mpfr_copysign(r->im, left ? cr_real[0] : cr_real[1], z->im, N);
}
static inline void cr_one_over(cr_complex *r, cr_complex *z) {
  cr_set(&cr_spare[0], 1, 0);
  cr_div(r, &cr_spare[0], z);
}

// (e^z +- e^-z) / 2
static inline void cr_half_sum(cr_complex *r, cr_complex *z, bool minus) {
  cr_exp(&cr_spare[1], z);
  mpfr_neg(cr_spare[2].re, z->re, N);
  mpfr_neg(cr_spare[2].im, z->im, N);
  cr_exp(&cr_spare[3], &cr_spare[2]);
  if (minus) mpfr_neg(cr_spare[3].re, cr_spare[3].re, N), mpfr_neg(cr_spare[3].im, cr_spare[3].im, N);
  cr_add(r, &cr_spare[1], &cr_spare[3]);
  mpfr_div_2ui(r->re, r->re, 1, N);
  mpfr_div_2ui(r->im, r->im, 1, N);
}
// Where exponentials would leave MPFR's range: +-1 + 4i sin(im z) cos(im z) e^(-2 |re z|), what is left out being less
// than anything that counts.
static inline void cr_tanh_far(cr_complex *r, cr_complex *z) {
  mpfr_abs(cr_real[0], z->re, N);
  mpfr_mul_si(cr_real[0], cr_real[0], -2, N);
  mpfr_exp(cr_real[0], cr_real[0], N);
  mpfr_sin_cos(cr_real[1], cr_real[2], z->im, N);
  mpfr_mul(cr_real[1], cr_real[1], cr_real[2], N);
  mpfr_mul_ui(cr_real[1], cr_real[1], 4, N);
  mpfr_mul(r->im, cr_real[1], cr_real[0], N);
  mpfr_set_si(r->re, mpfr_sgn(z->re), N);
}
static inline bool cr_is_far(mpfr_t x) {
  return mpfr_cmpabs_ui(x, 1 << 20) > 0;
}
static inline void cr_tanh(cr_complex *r, cr_complex *z) {
  if (cr_is_far(z->re)) {
    cr_tanh_far(r, z);
    return;
  }
  cr_half_sum(&cr_spare[4], z, true);
  cr_half_sum(&cr_spare[5], z, false);
  cr_div(r, &cr_spare[4], &cr_spare[5]);
}
// -i log(iz + sqrt(1 - z^2)) in the quadrant where nothing is lost: x >= 0 and y <= 0; the others are its mirror
// images.
static inline void cr_asin(cr_complex *r, cr_complex *z) {
  cr_complex *w = &cr_spare[6], *s = &cr_spare[7], *t = &cr_spare[8];
  mpfr_abs(w->re, z->re, N);
  mpfr_abs(w->im, z->im, N);
  mpfr_neg(w->im, w->im, N);
  cr_mul(s, w, w);
  mpfr_ui_sub(s->re, 1, s->re, N);
  mpfr_neg(s->im, s->im, N);
  cr_sqrt(t, s);
  mpfr_sub(t->re, t->re, w->im, N);
  mpfr_add(t->im, t->im, w->re, N);
  cr_log(s, t);
  mpfr_copysign(r->re, s->im, z->re, N);
  mpfr_copysign(r->im, s->re, z->im, N);
}
static inline void cr_acos(cr_complex *r, cr_complex *z) {
  cr_asin(r, z);
  mpfr_const_pi(cr_real[0], N);
  mpfr_div_2ui(cr_real[0], cr_real[0], 1, N);
  mpfr_sub(r->re, cr_real[0], r->re, N);
  mpfr_neg(r->im, r->im, N);
}
// log((1 + z) / (1 - z)) / 2, its two angles taken apart.
static inline void cr_atanh(cr_complex *r, cr_complex *z) {
  mpfr_add_ui(cr_real[0], z->re, 1, N);
  mpfr_ui_sub(cr_real[1], 1, z->re, N);
  mpfr_atan2(cr_real[2], z->im, cr_real[0], N);
  mpfr_atan2(cr_real[3], z->im, cr_real[1], N);
  mpfr_add(cr_real[2], cr_real[2], cr_real[3], N);
  mpfr_fmma(cr_real[0], cr_real[0], cr_real[0], z->im, z->im, N);
  mpfr_fmma(cr_real[1], cr_real[1], cr_real[1], z->im, z->im, N);
  mpfr_div(cr_real[0], cr_real[0], cr_real[1], N);
  mpfr_log(r->re, cr_real[0], N);
  mpfr_div_2ui(r->re, r->re, 2, N);
  mpfr_div_2ui(r->im, cr_real[2], 1, N);
}
// -i f(iz)
static inline void cr_turned(cr_complex *r, cr_complex *z, void (*f)(cr_complex *, cr_complex *)) {
  cr_complex *w = &cr_spare[9], *s = &cr_spare[10];
  mpfr_neg(w->re, z->im, N);
  mpfr_set(w->im, z->re, N);
  f(s, w);
  mpfr_set(r->re, s->im, N);
  mpfr_neg(r->im, s->re, N);
}
static inline void cr_sinh(cr_complex *r, cr_complex *z) {
  cr_half_sum(r, z, true);
}

// r = op(x, y), for finite operands off the branch cuts and the poles.
static inline void cr_function(kl_op op, cr_complex *r, cr_complex *x, cr_complex *y) {
  cr_complex *w = &cr_spare[11], *s = &cr_spare[12];
  switch (op) {
  case KL_OP_EXP: cr_exp(r, x); break;
  case KL_OP_EXPM1:
    cr_exp(r, x);
    mpfr_sub_ui(r->re, r->re, 1, N);
    break;
  case KL_OP_EXP10:
    mpfr_set_ui(cr_real[4], 10, N);
    mpfr_log(cr_real[4], cr_real[4], N);
    mpfr_mul(w->re, x->re, cr_real[4], N);
    mpfr_mul(w->im, x->im, cr_real[4], N);
    cr_exp(r, w);
    break;
  case KL_OP_LOG: cr_log(r, x); break;
  case KL_OP_LOG1P:
    cr_copy(w, x);
    mpfr_add_ui(w->re, w->re, 1, N);
    cr_log(r, w);
    break;
  case KL_OP_LOGISTIC: // far to the left as good as e^x
    if (cr_is_far(x->re) && mpfr_sgn(x->re) < 0) {
      cr_exp(r, x);
      break;
    }
    mpfr_neg(w->re, x->re, N);
    mpfr_neg(w->im, x->im, N);
    cr_exp(s, w);
    mpfr_add_ui(s->re, s->re, 1, N);
    cr_one_over(r, s);
    break;
  case KL_OP_SQRT: cr_sqrt(r, x); break;
  case KL_OP_RSQRT:
    cr_sqrt(w, x);
    cr_one_over(r, w);
    break;
  case KL_OP_SIGN:
    mpfr_fmma(cr_real[4], x->re, x->re, x->im, x->im, N);
    mpfr_sqrt(cr_real[4], cr_real[4], N);
    mpfr_div(r->re, x->re, cr_real[4], N);
    mpfr_div(r->im, x->im, cr_real[4], N);
    break;
  case KL_OP_ABS: // a real number
    mpfr_fmma(r->re, x->re, x->re, x->im, x->im, N);
    mpfr_sqrt(r->re, r->re, N);
    mpfr_set_zero(r->im, 1);
    break;
  case KL_OP_SINH: cr_sinh(r, x); break;
  case KL_OP_COSH: cr_half_sum(r, x, false); break;
  case KL_OP_TANH: cr_tanh(r, x); break;
  case KL_OP_SIN: cr_turned(r, x, cr_sinh); break;
  case KL_OP_TAN: cr_turned(r, x, cr_tanh); break;
  case KL_OP_COS:
    mpfr_neg(w->re, x->im, N);
    mpfr_set(w->im, x->re, N);
    cr_half_sum(r, w, false);
    break;
  case KL_OP_ASIN: cr_asin(r, x); break;
  case KL_OP_ACOS: cr_acos(r, x); break;
  case KL_OP_ASINH: cr_turned(r, x, cr_asin); break;
  case KL_OP_ACOSH: // +-i acos(z), with a real part that is not negative
    cr_acos(w, x);
    mpfr_abs(r->re, w->im, N);
    mpfr_copysign(r->im, w->re, x->im, N);
    break;
  case KL_OP_ATANH: cr_atanh(r, x); break;
  case KL_OP_ATAN: cr_turned(r, x, cr_atanh); break;
  case KL_OP_DIVIDE: cr_div(r, x, y); break;
  case KL_OP_POWER:
    cr_log(w, x);
    cr_mul(s, w, y);
    cr_exp(r, s);
    break;
  default: // atan2 of (x, y): -i log((y + ix) / sqrt(x^2 + y^2))
    cr_mul(w, x, x);
    cr_mul(s, y, y);
    cr_add(w, w, s);
    cr_sqrt(s, w);
    mpfr_sub(w->re, y->re, x->im, N);
    mpfr_add(w->im, y->im, x->re, N);
    cr_div(&cr_spare[13], w, s);
    cr_log(w, &cr_spare[13]);
    mpfr_set(r->re, w->im, N);
    mpfr_neg(r->im, w->re, N);
  }
}
#undef N

#endif
