// Sums of reals: limits of formats, and from what is known of the terms to data, lo and hi.
#include "eval/fold/sum.h"

#include <limits.h>
#include <math.h>

kl_limits kl_limits_of(kl_dtype t) {
  const kl_dtype_info *f = kl_info(t);
  bool e8m0 = f->kind == KL_E8M0;
  kl_limits l = {.unit = ldexp(1, -1 - f->man_bits),
                 .max = ldexp(1, 127), // of e8m0
                 .digits = f->man_bits + 1,
                 .exponent = e8m0 ? -127 : 1 - f->bias - f->man_bits,
                 .infinite = f->kind == KL_IEEE,
                 .saturates = f->kind == KL_FN0};
  l.least = ldexp(1, l.exponent);
  if (e8m0) return l;
  // The pattern of infinity or NaN, or for the formats without either the greatest one, is next above the largest.
  uint64_t top = (1ull << (f->exp_bits + f->man_bits)) - 1;
  if (f->kind == KL_IEEE) top -= (1ull << f->man_bits) - 1;
  l.max = kl_float_decode(t, f->kind == KL_IEEE || f->kind == KL_FN ? top - 1 : top);
  return l;
}

#define DECODE_LOOP(T, LOAD)                                                                                           \
  do {                                                                                                                 \
    const T *v = p;                                                                                                    \
    for (int64_t i = 0; i < n; i++) out[i] = LOAD(v[i]);                                                               \
  } while (0)
#define DECODE_PARTS(T)                                                                                                \
  do {                                                                                                                 \
    const T *v = (const T *)p + part;                                                                                  \
    for (int64_t i = 0; i < n; i++) out[i] = v[2 * i];                                                                 \
  } while (0)
#define AS_IS(x) (x)

void kl_ev_decode(kl_dtype t, int64_t n, const void *p, int part, double *out) {
  switch (t) {
  case KILN_F32: DECODE_LOOP(float, AS_IS); break;
  case KILN_F64: memcpy(out, p, (size_t)n * sizeof(double)); break;
  case KILN_BF16: DECODE_LOOP(uint16_t, kl_ev_bf16_load); break;
  case KILN_F16: DECODE_LOOP(uint16_t, kl_ev_f16_load); break;
  case KILN_C64: DECODE_PARTS(float); break;
  case KILN_C128: DECODE_PARTS(double); break;
  default:
    for (int64_t i = 0; i < n; i++) out[i] = kl_float_decode(t, ((const uint8_t *)p)[i]);
  }
}

void kl_ev_open_at(kl_dtype t, const kl_iv_out *out, int64_t i) {
  if (t == KILN_PRED)
    out->lo[i] = 0, out->hi[i] = 1;
  else
    out->any[i] = 1;
}

// --- rounding inwards ---------------------------------------------------------------------------------------------

// The least value of t that is not below x + rest, where rest is at most half a unit of x; infinity where there is
// none.
static double round_up(kl_dtype t, const kl_limits *l, kl_pair x) {
  if (x.sum > l->max || (x.sum == l->max && x.rest > 0)) return INFINITY;
  if (x.sum < -l->max) return -l->max;
  if (kl_info(t)->kind == KL_E8M0 && x.sum <= l->least) return l->least;
  uint64_t bits = kl_float_encode(t, x.sum);
  double r = kl_float_decode(t, bits);
  if (r < x.sum || (r == x.sum && x.rest > 0)) r = kl_float_decode(t, kl_float_next(t, bits, true));
  return r;
}

static double round_down(kl_dtype t, const kl_limits *l, kl_pair x) {
  if (kl_info(t)->kind != KL_E8M0) return -round_up(t, l, (kl_pair){-x.sum, -x.rest});
  double r = round_up(t, l, x);
  return r > x.sum ? fmax(r / 2, l->least) : r;
}

// x + y, y a bound that may grow a little.
static kl_pair shifted(kl_pair x, double y) {
  kl_pair r = kl_two_sum(x.sum, y);
  double rest = r.rest + x.rest;
  return kl_two_sum(r.sum, rest);
}

// --- the interval -------------------------------------------------------------------------------------------------

typedef struct reach {
  double roundings; // of results of the accumulation type
  double error;     // by which any order may miss the exact sum
  double slack;     // by which the ends here may
} reach;

static bool is_exact(const kl_total *s, const kl_limits *l) {
  if (s->terms == 0) return true;
  if (s->quantum == INT_MIN || s->quantum < l->exponent) return false;
  return s->size <= ldexp(1, l->digits + s->quantum < 2000 ? l->digits + s->quantum : 2000);
}

static reach reach_of(const kl_total *s, const kl_limits *l) {
  reach r = {0, 0, 0};
  if (is_exact(s, l)) return r;
  r.slack = s->slack;
  bool rounded = s->products && !s->exact_products;
  r.roundings = (double)(s->terms - 1) + (rounded ? 1 : 0); // one per product and addition, n u S in all
  double unit = r.roundings * l->unit * (1 + 0x1p-6);
  r.error = isfinite(s->size) ? unit * s->size : unit * s->plus + unit * s->minus;
  if (rounded) r.error += (double)s->terms * l->least; // products that underflow
  return r;
}

bool kl_total_stays_finite(const kl_total *s, kl_dtype acc) {
  kl_limits l = kl_limits_of(acc);
  reach r = reach_of(s, &l);
  return s->size + r.error + r.slack <= l.max;
}

// How a sum may end outside the numbers: certainly NaN, possibly anything, or infinite to one side.
typedef struct outside {
  bool nan, open, plus, minus, may_plus, may_minus;
} outside;

static outside outside_of(const kl_total *s, const kl_limits *l, reach reach) {
  double error = reach.error + reach.slack;
  bool over = s->plus + error > l->max, under = s->minus + error > l->max;
  outside r = {.nan = s->nan || (s->plus_inf && s->minus_inf), .open = s->open};
  r.plus = s->plus_inf;
  r.minus = s->minus_inf;
  r.may_plus = s->plus_inf || s->may_plus_inf || over;
  r.may_minus = s->minus_inf || s->may_minus_inf || under;
  if (r.open || r.nan) return r;
  if (l->infinite) {
    r.open = r.may_plus && r.may_minus;
  } else if (!l->saturates && (over || under)) {
    // Beyond the top is NaN, in every order if the exact sum is there.
    r.nan = s->lo.sum - error > l->max || s->hi.sum + error < -l->max;
    r.open = !r.nan;
  } else if (l->saturates && (over || under)) {
    r.may_plus = r.may_minus = true; // cut off at either end, and moved on from there
  }
  return r;
}

// The ends as values of the accumulation type. One rounding is a rounding of the exact sum.
static void ends_of(const kl_total *s, kl_dtype acc, const kl_limits *l, reach r, double *lo, double *hi) {
  if (r.roundings <= 1 && r.slack == 0) {
    *lo = kl_float_decode(acc, kl_float_encode(acc, s->lo.sum + s->lo.rest));
    *hi = kl_float_decode(acc, kl_float_encode(acc, s->hi.sum + s->hi.rest));
    return;
  }
  double away = (r.error + r.slack) * (1 + 0x1p-40);
  *lo = round_up(acc, l, shifted(s->lo, -away));
  *hi = round_down(acc, l, shifted(s->hi, away));
}

static void store_part(kl_dtype t, void *p, int64_t i, int part, uint64_t bits) {
  kl_element_set(t, p, i, part, bits);
}

// Stores ends that are values of the accumulation type.
static void store_ends(kl_dtype t, uint64_t data, double lo, double hi, const kl_iv_out *out, int64_t i, int part) {
  kl_dtype p = kl_is_complex(t) ? kl_info(t)->part : t;
  uint64_t a = kl_float_encode(p, lo), b = kl_float_encode(p, hi);
  int nans = kl_float_is_nan(p, a) + kl_float_is_nan(p, b) + kl_float_is_nan(p, data);
  if (nans) {
    if (nans < 3 || (lo < 0) != (hi < 0)) out->any[i] = 1;
    a = b = data;
  } else {
    int64_t k = kl_iv_key(p, data), ka = kl_iv_key(p, a), kb = kl_iv_key(p, b);
    if (ka > k) a = data;
    if (kb < k) b = data;
  }
  store_part(t, out->lo, i, part, a);
  store_part(t, out->hi, i, part, b);
}

void kl_ends_store(kl_dtype t, kl_pair lo, kl_pair hi, const kl_iv_out *out, int64_t i, int part) {
  kl_dtype p = kl_is_complex(t) ? kl_info(t)->part : t;
  kl_limits l = kl_limits_of(p);
  double a = lo.sum == -INFINITY ? lo.sum : round_up(p, &l, lo),
         b = hi.sum == INFINITY ? hi.sum : round_down(p, &l, hi);
  store_ends(t, kl_element_get(t, out->data, i, part), a, b, out, i, part);
}

void kl_total_store(const kl_total *s, kl_dtype acc, kl_dtype t, const kl_iv_out *out, int64_t i, int part) {
  kl_dtype p = kl_is_complex(t) ? kl_info(t)->part : t;
  double value = s->data.rest != 0 && isfinite(s->data.sum) ? s->data.sum + s->data.rest : s->data.sum; // -0 stays
  uint64_t data = kl_float_encode(p, s->ordered ? s->value : value);
  store_part(t, out->data, i, part, data);
  if (!out->lo) return;
  store_part(t, out->lo, i, part, data);
  store_part(t, out->hi, i, part, data);
  kl_limits l = kl_limits_of(acc);
  reach r = reach_of(s, &l);
  outside o = outside_of(s, &l, r);
  if (o.open || (o.nan && !kl_float_is_nan(p, data) && kl_info(p)->kind != KL_FN0)) out->any[i] = 1;
  if (o.open || o.nan) return;
  bool certain = s->point && r.roundings == 0 && r.slack == 0 && !o.may_plus && !o.may_minus;
  if (certain && acc == p && !s->zero_sign_open) return;
  double lo, hi;
  ends_of(s, acc, &l, r, &lo, &hi);
  if (o.plus) lo = INFINITY;
  if (o.minus) hi = -INFINITY;
  if (o.may_plus) hi = l.saturates ? l.max : INFINITY;
  if (o.may_minus) lo = l.saturates ? -l.max : -INFINITY;
  bool free_zero = s->zero_sign_open || !s->point || r.roundings > 1;
  if (lo == 0 && free_zero) lo = -0.0;
  if (hi == 0 && free_zero) hi = 0.0;
  store_ends(t, data, lo, hi, out, i, part);
}
