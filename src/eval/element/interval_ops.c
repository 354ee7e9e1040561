// Interval rules of single ops: compare, is-finite, select, sine and cosine, and complex arithmetic.
#include "eval/element/interval.h"

#include <math.h>

// --- pred results -------------------------------------------------------------------------------------------------

static void set_pred(kl_iv_scratch *s, int64_t i, bool lo, bool hi) {
  s->lo[i] = lo;
  s->hi[i] = hi;
  s->open[i] = 0;
}

typedef struct span {
  int64_t lo, hi;
} span;

static bool less_certain(kl_direction d, span a, span b) {
  return d == KL_LE || d == KL_GE ? a.hi <= b.lo : a.hi < b.lo;
}
static bool less_possible(kl_direction d, span a, span b) {
  return d == KL_LE || d == KL_GE ? a.lo <= b.hi : a.lo < b.hi;
}

// Can the comparison be false, can it be true, for independent values of the two spans?
static void compare_spans(kl_direction d, span a, span b, bool *certain, bool *possible) {
  bool meet = a.lo <= b.hi && b.lo <= a.hi, same = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;
  switch (d) {
  case KL_EQ: *certain = same, *possible = meet; break;
  case KL_NE: *certain = !meet, *possible = !same; break;
  case KL_LT:
  case KL_LE: *certain = less_certain(d, a, b), *possible = less_possible(d, a, b); break;
  case KL_GT:
  case KL_GE: *certain = less_certain(d, b, a), *possible = less_possible(d, b, a); break;
  }
}

// Outside the total order both zeros are one value.
static span span_of(const kl_ew *e, const kl_iv_scratch *s, int operand, int64_t i) {
  span r = {s->in_lo[operand][i], s->in_hi[operand][i]};
  if (kl_is_float(e->in[0]) && e->compare != KL_CMP_TOTALORDER) r.lo += r.lo < 0, r.hi += r.hi < 0;
  return r;
}

void kl_iv_compare(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const bool nan_open[3],
                   const kl_iv_out *out) {
  bool total = e->compare == KL_CMP_TOTALORDER && kl_is_float(e->in[0]);
  for (int k = 0; k < 2; k++) kl_iv_load(s, k, e->in[k], n, &in[k]);
  for (int64_t i = 0; i < n; i++) {
    bool nan0 = kl_is_float(e->in[0]) && kl_iv_is_nan(s, 0, i), nan1 = kl_is_float(e->in[0]) && kl_iv_is_nan(s, 1, i);
    bool certain = false, possible = true;
    if (s->open[i]) {
      set_pred(s, i, false, true);
    } else if (nan0 || nan1) {
      // Unordered. In the total order the sign of a NaN counts, which computed NaNs do not promise.
      bool sure = !total || (s->point[i] && !(nan0 && nan_open[0]) && !(nan1 && nan_open[1]));
      set_pred(s, i, sure ? out->data[i] : false, sure ? out->data[i] : true);
    } else {
      compare_spans(e->direction, span_of(e, s, 0, i), span_of(e, s, 1, i), &certain, &possible);
      set_pred(s, i, certain, possible);
    }
  }
}

// Only an end that is infinite makes a number possibly not finite.
void kl_iv_finite(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3]) {
  kl_dtype t = e->in[0];
  for (int64_t i = 0; i < n; i++) {
    uint64_t lo = kl_element_get(t, in[0].lo, i, 0), hi = kl_element_get(t, in[0].hi, i, 0);
    bool all = isfinite(kl_float_decode(t, lo)) && isfinite(kl_float_decode(t, hi));
    if (s->open[i])
      set_pred(s, i, false, true);
    else if (!s->point[i])
      set_pred(s, i, all, true);
  }
}

// --- select -------------------------------------------------------------------------------------------------------

// Either operand may be taken.
static void select_hull(kl_dtype t, int64_t i, const kl_iv_in *a, const kl_iv_in *b, const kl_iv_out *out) {
  kl_dtype part = kl_iv_part(t);
  out->any[i] = (a->any && a->any[i]) || (b->any && b->any[i]);
  for (int lane = 0; lane < kl_iv_lanes(t) && !out->any[i]; lane++) {
    int64_t alo = kl_iv_key(part, kl_element_get(t, a->lo, i, lane)),
            blo = kl_iv_key(part, kl_element_get(t, b->lo, i, lane));
    int64_t ahi = kl_iv_key(part, kl_element_get(t, a->hi, i, lane)),
            bhi = kl_iv_key(part, kl_element_get(t, b->hi, i, lane));
    bool nan_a = kl_is_float(part) && alo == KL_KEY_NAN, nan_b = kl_is_float(part) && blo == KL_KEY_NAN;
    if (nan_a != nan_b) {
      out->any[i] = 1;
    } else if (!nan_a) {
      kl_element_set(t, out->lo, i, lane, kl_iv_key_bits(part, alo < blo ? alo : blo));
      kl_element_set(t, out->hi, i, lane, kl_iv_key_bits(part, ahi > bhi ? ahi : bhi));
    }
  }
}

void kl_iv_select(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const kl_iv_out *out) {
  size_t size = kl_ev_size(e->out);
  for (int64_t i = 0; i < n; i++) {
    bool open = (in[0].any && in[0].any[i]) || in[0].lo[i] != in[0].hi[i];
    const kl_iv_in *from = in[0].data[i] ? &in[1] : &in[2];
    size_t at = (size_t)i * size;
    memcpy(out->lo + at, from->lo + at, size);
    memcpy(out->hi + at, from->hi + at, size);
    out->any[i] = from->any ? from->any[i] : 0;
    if (open) select_hull(e->out, i, &in[1], &in[2], out);
  }
}

// --- sine and cosine ----------------------------------------------------------------------------------------------

static double decode_key(kl_dtype t, int64_t key) {
  return kl_float_decode(t, kl_iv_key_bits(t, key));
}

// |f(x') - f(x)| <= |x' - x|. Half a unit of the rounding of f(x) is at most 2^-man / 2; double's own rounding of the
// ends is outweighed by the whole 2^-man and by one more value outwards.
void kl_iv_wave(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const kl_iv_out *out) {
  kl_dtype t = e->in[0];
  kl_iv_load(s, 0, t, n, &in[0]);
  for (int64_t i = 0; i < n; i++) {
    if (s->point[i] || s->open[i] || kl_iv_is_nan(s, 0, i)) continue;
    double x = kl_float_decode(t, kl_element_get(t, in[0].data, i, 0));
    double y = kl_float_decode(t, kl_element_get(t, out->data, i, 0));
    double lo = decode_key(t, s->in_lo[0][i]), hi = decode_key(t, s->in_hi[0][i]);
    if (!isfinite(lo) || !isfinite(hi)) {
      s->open[i] = 1;
      continue;
    }
    double w = fmax(hi - x, x - lo) * (1 + 0x1p-40) + ldexp(1, -kl_info(t)->man_bits);
    double from = fmax(y - w, -1), to = fmin(y + w, 1);
    s->lo[i] = from > -1 ? kl_iv_key(t, kl_float_next(t, kl_float_encode(t, from), false))
                         : kl_iv_key(t, kl_float_encode(t, -1));
    s->hi[i] =
        to < 1 ? kl_iv_key(t, kl_float_next(t, kl_float_encode(t, to), true)) : kl_iv_key(t, kl_float_encode(t, 1));
    s->seen[i] = KL_IV_NUMBER;
  }
}

// --- complex ------------------------------------------------------------------------------------------------------

// hypot grows with the size of each part, so its ends are at the parts' least and greatest sizes.
void kl_iv_complex_abs(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3]) {
  kl_dtype t = e->in[0], part = kl_info(t)->part;
  kl_iv_load(s, 0, t, n, &in[0]);
  const void *at[3] = {s->b, NULL, NULL};
  for (int far = 0; far < 2; far++) {
    memcpy(s->b, in[0].data, (size_t)n * kl_ev_size(t));
    for (int64_t j = 0; j < 2 * n; j++) {
      int64_t lo = s->in_lo[0][j], hi = s->in_hi[0][j], a = lo < 0 ? -1 - lo : lo, b = hi < 0 ? -1 - hi : hi;
      if (lo == KL_KEY_NAN) continue;
      int64_t least = lo <= 0 && hi >= -1 ? 0 : a < b ? a : b;
      kl_element_set(t, s->b, j / 2, (int)(j % 2), kl_iv_key_bits(part, far ? (a > b ? a : b) : least));
    }
    kl_iv_take(e, s, n, at);
  }
}

typedef struct iv {
  double lo, hi;
  bool open; // also where a bound is not finite
} iv;

// Double is wide enough that rounding its result to f32 is the rounding of the exact result.
static double round_part(kl_dtype part, double v) {
  return part == KILN_F32 ? (float)v : v;
}

static iv iv_hull(kl_dtype part, const double *v, int n, bool open) {
  iv r = {round_part(part, v[0]), round_part(part, v[0]), open};
  for (int k = 0; k < n; k++) {
    double x = round_part(part, v[k]);
    r.open |= !isfinite(x);
    r.lo = fmin(r.lo, x);
    r.hi = fmax(r.hi, x);
  }
  // The sign of a zero depends on more than the ends: allow both.
  if (r.lo == 0) r.lo = -0.0;
  if (r.hi == 0) r.hi = 0.0;
  return r;
}

static iv iv_add(kl_dtype p, iv a, iv b) {
  return iv_hull(p, (double[]){a.lo + b.lo, a.hi + b.hi}, 2, a.open || b.open);
}
static iv iv_sub(kl_dtype p, iv a, iv b) {
  return iv_hull(p, (double[]){a.lo - b.hi, a.hi - b.lo}, 2, a.open || b.open);
}
static iv iv_mul(kl_dtype p, iv a, iv b) {
  return iv_hull(p, (double[]){a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi}, 4, a.open || b.open);
}

// The quotient as such, whose bound is added later: in a type where products are exact.
typedef struct quad {
  __float128 lo, hi;
} quad;

static quad quad_hull(const __float128 *v, int n) {
  quad r = {v[0], v[0]};
  for (int k = 1; k < n; k++) {
    if (v[k] < r.lo) r.lo = v[k];
    if (v[k] > r.hi) r.hi = v[k];
  }
  return r;
}

static quad quad_mul(iv a, iv b) {
  __float128 v[4] = {(__float128)a.lo * b.lo, (__float128)a.lo * b.hi, (__float128)a.hi * b.lo,
                     (__float128)a.hi * b.hi};
  return quad_hull(v, 4);
}

static quad quad_square(iv a) {
  quad r = quad_mul(a, a);
  if (a.lo <= 0 && a.hi >= 0)
    r.lo = 0;
  else if (r.lo < 0)
    r.lo = -r.lo;
  return r;
}

static iv quad_quotient(kl_dtype p, quad num, quad den) {
  if (!(den.lo > 0)) return (iv){0, 0, true};
  __float128 v[4] = {num.lo / den.lo, num.lo / den.hi, num.hi / den.lo, num.hi / den.hi};
  quad q = quad_hull(v, 4);
  return iv_hull(p, (double[]){(double)q.lo, (double)q.hi}, 2, false);
}

static void iv_quotient(kl_dtype p, iv a, iv b, iv c, iv d, iv *re, iv *im) {
  quad ac = quad_mul(a, c), bd = quad_mul(b, d), bc = quad_mul(b, c), ad = quad_mul(a, d);
  quad cc = quad_square(c), dd = quad_square(d), den = {cc.lo + dd.lo, cc.hi + dd.hi};
  *re = quad_quotient(p, (quad){ac.lo + bd.lo, ac.hi + bd.hi}, den);
  *im = quad_quotient(p, (quad){bc.lo - ad.hi, bc.hi - ad.lo}, den);
  re->open |= a.open || b.open || c.open || d.open;
}

static iv iv_of(kl_dtype part, const kl_iv_scratch *s, int operand, int64_t j) {
  int64_t lo = s->in_lo[operand][j], hi = s->in_hi[operand][j];
  if (lo == KL_KEY_NAN) return (iv){0, 0, true};
  iv r = {decode_key(part, lo), decode_key(part, hi), false};
  r.open = !isfinite(r.lo) || !isfinite(r.hi);
  return r;
}

// Multiply and divide. Operand keys are loaded; elements with anything infinite or NaN stay open.
void kl_iv_complex_product(const kl_ew *e, kl_iv_scratch *s, int64_t n) {
  kl_dtype p = kl_info(e->out)->part;
  for (int64_t i = 0; i < n; i++) {
    if (s->point[i] || s->open[i]) continue;
    iv a = iv_of(p, s, 0, 2 * i), b = iv_of(p, s, 0, 2 * i + 1), c = iv_of(p, s, 1, 2 * i),
       d = iv_of(p, s, 1, 2 * i + 1);
    iv part[2];
    if (e->op == KL_OP_MULTIPLY) {
      part[0] = iv_sub(p, iv_mul(p, a, c), iv_mul(p, b, d));
      part[1] = iv_add(p, iv_mul(p, a, d), iv_mul(p, b, c));
    } else {
      iv_quotient(p, a, b, c, d, &part[0], &part[1]);
    }
    s->open[i] = part[0].open || part[1].open;
    for (int lane = 0; lane < 2 && !s->open[i]; lane++) {
      s->lo[2 * i + lane] = kl_iv_key(p, kl_float_encode(p, part[lane].lo));
      s->hi[2 * i + lane] = kl_iv_key(p, kl_float_encode(p, part[lane].hi));
      s->seen[2 * i + lane] = KL_IV_NUMBER;
    }
  }
}

// --- complex functions --------------------------------------------------------------------------------------------

typedef struct number {
  double re, im;
} number;

static number number_at(kl_dtype t, const char *p, int64_t i) {
  kl_dtype part = kl_info(t)->part;
  return (number){kl_float_decode(part, kl_element_get(t, p, i, 0)), kl_float_decode(part, kl_element_get(t, p, i, 1))};
}

static bool is_finite(number z) {
  return isfinite(z.re) && isfinite(z.im);
}
static bool is_pole(number z) {
  return (isnan(z.re) && isinf(z.im)) || (isinf(z.re) && isnan(z.im));
}

// The greater part; the largest finite value in place of infinity.
static double size_of(kl_dtype part, number z) {
  double most = kl_float_decode(part, kl_float_next(part, kl_float_encode(part, INFINITY), false));
  return fmin(fmax(fabs(z.re), fabs(z.im)), most);
}

// What the bound of eval.h counts units of.
static double scale_of(kl_op op, double size, number x, number y, number r) {
  switch (op) {
  case KL_OP_LOGISTIC: return size * (hypot(r.re, r.im) + hypot(1 - r.re, r.im));
  case KL_OP_EXP10: return size * (1 + fabs(x.im) * M_LN10);
  case KL_OP_POWER: return size * (1 + hypot(y.re, y.im) * hypot(log(hypot(x.re, x.im)), atan2(x.im, x.re)));
  default: return size;
  }
}

// How far the angle of an exponential is from the nearest axis, as the lesser of its sine and cosine.
static double off_axes(kl_op op, number x, number y) {
  if (op != KL_OP_POWER && op != KL_OP_EXP10) return 1;
  double angle = log(hypot(x.re, x.im)) * y.im + atan2(x.im, x.re) * y.re;
  if (op == KL_OP_EXP10) angle = x.im * M_LN10;
  return fmin(fabs(sin(angle)), fabs(cos(angle)));
}

void kl_iv_complex_function(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const kl_iv_out *out,
                            double bound) {
  kl_dtype t = e->out, part = kl_info(t)->part;
  double least = kl_float_decode(part, 1);
  for (int64_t i = 0; i < n; i++) {
    if (!s->point[i] || s->open[i]) continue;
    number x = number_at(t, in[0].data, i), y = e->nin == 2 ? number_at(t, in[1].data, i) : x;
    number r = number_at(t, out->data, i);
    if (!is_finite(x) || !is_finite(y)) continue;
    if (is_pole(r)) {
      s->open[i] = true;
      continue;
    }
    double scale = scale_of(e->op, size_of(part, r), x, y, r);
    double radius = bound * (ldexp(scale, -kl_info(part)->man_bits) + least);
    // Where the size is not known, an angle's error may turn a part that is infinite, too.
    double turn = bound * ldexp(scale / size_of(part, r), -kl_info(part)->man_bits);
    s->open[i] |= !isfinite(radius) || (!is_finite(r) && off_axes(e->op, x, y) <= turn);
    for (int lane = 0; lane < 2 && !s->open[i]; lane++) {
      double v = lane ? r.im : r.re;
      if (isnan(v)) continue;
      s->lo[2 * i + lane] = kl_iv_key(part, kl_float_encode(part, isinf(v) && v > 0 ? size_of(part, r) : v - radius));
      s->hi[2 * i + lane] = kl_iv_key(part, kl_float_encode(part, isinf(v) && v < 0 ? -size_of(part, r) : v + radius));
    }
  }
}

void kl_iv_complex_corners(const kl_ew *e, kl_iv_scratch *s, int64_t n, const kl_iv_in in[3], const kl_iv_out *out) {
  for (int64_t i = 0; i < n; i++) {
    if (s->open[i] ||
        (is_finite(number_at(e->out, in[0].data, i)) && (e->nin == 1 || is_finite(number_at(e->out, in[1].data, i)))))
      continue;
    number r = number_at(e->out, out->data, i), x = number_at(e->out, in[0].data, i);
    s->open[i] = is_pole(r);
    // The signs of exp10 are those of an angle that is rounded.
    double turn = ldexp(fabs(x.im) * M_LN10, -kl_info(kl_info(e->out)->part)->man_bits);
    s->open[i] |= e->op == KL_OP_EXP10 && isfinite(x.im) && turn > 0x1p-5;
    for (int lane = 0; lane < 2; lane++)
      if ((lane ? r.im : r.re) == 0) s->lo[2 * i + lane] = -1, s->hi[2 * i + lane] = 0;
  }
}
