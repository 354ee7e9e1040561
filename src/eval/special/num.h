// Numbers of ops that are no sequence of rounded steps (cholesky, triangular-solve, fft, batch-norm): computed in long
// double as if complex, with a radius in which the results of correct devices lie around them. eval.h states the radii.
#ifndef KL_EVAL_NUM_H
#define KL_EVAL_NUM_H

#include "eval/impl.h"

#include <math.h>

typedef struct num {
  long double re, im;
} num;

static inline num num_add(num x, num y) {
  return (num){x.re + y.re, x.im + y.im};
}
static inline num num_sub(num x, num y) {
  return (num){x.re - y.re, x.im - y.im};
}
static inline num num_mul(num x, num y) {
  return (num){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
static inline num num_conj(num x) {
  return (num){x.re, -x.im};
}
static inline num num_div(num x, num y) {
  if (y.im == 0) return (num){x.re / y.re, x.im / y.re};
  long double norm = y.re * y.re + y.im * y.im;
  num n = num_mul(x, num_conj(y));
  return (num){n.re / norm, n.im / norm};
}
static inline double num_size(num x) {
  return x.im == 0 ? fabs((double)x.re) : hypot((double)x.re, (double)x.im);
}

static inline kl_dtype num_part(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}

static inline num num_get(kl_dtype t, const void *p, int64_t i) {
  switch (t) {
  case KILN_F32: return (num){((const float *)p)[i], 0};
  case KILN_F64: return (num){((const double *)p)[i], 0};
  case KILN_C64: return (num){((const float *)p)[2 * i], ((const float *)p)[2 * i + 1]};
  case KILN_C128: return (num){((const double *)p)[2 * i], ((const double *)p)[2 * i + 1]};
  default: return (num){kl_float_decode(t, kl_element_get(t, p, i, 0)), 0};
  }
}

static inline uint64_t num_encode(kl_dtype part, long double v) {
  if (part == KILN_F32) return kl_ev_f32_bits((float)v);
  return kl_float_encode(part, (double)v);
}
static inline void num_set(kl_dtype t, void *p, int64_t i, num v) {
  kl_element_set(t, p, i, 0, num_encode(num_part(t), v.re));
  if (kl_is_complex(t)) kl_element_set(t, p, i, 1, num_encode(num_part(t), v.im));
}

// How far element i of an operand may lie from its data; infinite where it is open.
static inline double num_slack(const kl_evval *v, int64_t i) {
  if (kl_ev_exact(v)) return 0;
  kl_dtype t = v->shape->dtype;
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  if (v->splat) i = 0;
  if (any && any[i]) return INFINITY;
  num x = num_get(t, kl_ev_plane(v, KL_EV_DATA), i), lo = num_get(t, kl_ev_plane(v, KL_EV_LO), i),
      hi = num_get(t, kl_ev_plane(v, KL_EV_HI), i);
  double re = (double)fmaxl(hi.re - x.re, x.re - lo.re), im = (double)fmaxl(hi.im - x.im, x.im - lo.im);
  double r = hypot(re, im) * (1 + 0x1p-50);
  return isnan(r) ? isnan(x.re) || isnan(x.im) ? 0 : INFINITY : r;
}

static inline bool num_is_nan(kl_dtype t, const void *p, int64_t i) {
  num x = num_get(t, p, i);
  return isnan(x.re) || isnan(x.im);
}

// Writes element i: v rounded, and every value that v +- radius rounds to. A radius that is infinite or NaN opens it,
// and so does an end that is NaN, as formats without infinities have it, where v is none.
static inline void num_put(kl_evval *out, int64_t i, num v, double radius) {
  kl_dtype t = out->shape->dtype;
  num_set(t, kl_ev_plane(out, KL_EV_DATA), i, v);
  if (kl_ev_exact(out)) return;
  bool open = !isfinite(radius);
  if (open) radius = 0;
  num_set(t, kl_ev_plane(out, KL_EV_LO), i, (num){v.re - radius, v.im - radius});
  num_set(t, kl_ev_plane(out, KL_EV_HI), i, (num){v.re + radius, v.im + radius});
  int nans = 0;
  for (int plane = KL_EV_DATA; plane <= KL_EV_HI; plane++) nans += num_is_nan(t, kl_ev_plane(out, plane), i);
  ((uint8_t *)kl_ev_plane(out, KL_EV_ANY))[i] = open || nans % 3;
}

// Half a unit in the last place of 1, and the least value above zero.
static inline double num_unit(kl_dtype part) {
  return ldexp(1, -kl_info(part)->man_bits - 1);
}
static inline double num_least(kl_dtype part) {
  return ldexp(1, 1 - kl_info(part)->bias - kl_info(part)->man_bits);
}

static inline void num_close(kl_ev *ev, kl_evval *out) {
  const uint8_t *any = kl_ev_plane(out, KL_EV_ANY);
  if (any && !memchr(any, 1, (size_t)out->shape->count)) kl_ev_drop_any(ev, out);
}

#endif
