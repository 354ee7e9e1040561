// Numbers beside which goes a bound of how far any device's may lie from them, from step to step.
#ifndef KL_EVAL_ROUGH_H
#define KL_EVAL_ROUGH_H

#include "eval/special/num.h"

typedef struct rough {
  num v;
  double e;
} rough;

// Of a type: the error of one operation, the least value above zero, the greatest.
typedef struct rough_type {
  double unit; // four times that of the part for complex numbers
  double least, most;
} rough_type;

static inline rough_type rough_type_of(kl_dtype t) {
  kl_dtype part = num_part(t);
  double most = kl_float_decode(part, kl_float_next(part, kl_float_encode(part, INFINITY), false));
  return (rough_type){num_unit(part) * (kl_is_complex(t) ? 4 : 1), num_least(part), most};
}

static inline double rough_size(rough x) {
  return num_size(x.v) + x.e;
}

static inline rough rough_get(const kl_evval *v, int64_t i) {
  return (rough){num_get(v->shape->dtype, kl_ev_plane(v, KL_EV_DATA), v->splat ? 0 : i), num_slack(v, i)};
}

static inline void rough_put(kl_evval *v, int64_t i, rough x) {
  num_put(v, i, x.v, kl_ev_exact(v) ? 0 : x.e * (1 + 0x1p-20));
}

static inline rough rough_rounded(const rough_type *t, num v, double e) {
  return (rough){v, e + t->unit * (num_size(v) + e) + t->least};
}

static inline rough rough_times(const rough_type *t, rough x, rough y) {
  return rough_rounded(t, num_mul(x.v, y.v), rough_size(x) * rough_size(y) - num_size(x.v) * num_size(y.v));
}

static inline rough rough_minus(const rough_type *t, rough x, rough y) {
  return rough_rounded(t, num_sub(x.v, y.v), x.e + y.e);
}

static inline rough rough_over(const rough_type *t, rough x, rough y) {
  num v = num_div(x.v, y.v);
  double room = num_size(y.v) - y.e;
  return rough_rounded(t, v, room > 0 ? (x.e + num_size(v) * y.e) / room : INFINITY);
}

static inline rough rough_conj(rough x) {
  return (rough){num_conj(x.v), x.e};
}

#endif
