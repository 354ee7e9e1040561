// Products of floats and complex numbers, with all that any order may give.
#include "eval/fold/product.h"

#include <float.h>
#include <math.h>

static bool is_number(double x) {
  return fabs(x) <= DBL_MAX;
}

static __float128 size_of(__float128 x) {
  return x < 0 ? -x : x;
}

static bool is_finite(__float128 x) {
  return x - x == 0;
}

static void scale_by(kl_scaled *s, __float128 x) {
  s->m *= x;
  while (size_of(s->m) >= 0x1p512 && is_finite(s->m)) s->m *= 0x1p-512, s->e += 512;
  while (s->m != 0 && size_of(s->m) < 0x1p-512) s->m *= 0x1p512, s->e -= 512;
}

static __float128 unscale(kl_scaled s) {
  if (!is_finite(s.m) || s.m == 0) return s.m;
  for (; s.e > 0 && size_of(s.m) < 0x1p1022; s.e -= 512) s.m *= 0x1p512;
  if (s.e > 0) return s.m * (__float128)INFINITY;
  if (s.e < -8192) return s.m * 0; // far below any format, to either side of which it makes no difference
  for (; s.e < 0; s.e += 512) s.m *= 0x1p-512;
  return s.m;
}

void kl_product_start(kl_fold_product *p, bool complex) {
  p->data.m = p->near.m = p->far.m = p->least.m = p->most.m = 1;
  if (complex) p->near.m = 0;
}

static void factor_ends(kl_fold *f, double a, double b) {
  kl_fold_product *p = &f->product;
  if (a != a || b != b) {
    f->nan = true;
    return;
  }
  bool crosses = signbit(a) != signbit(b);
  double least = crosses ? 0 : fmin(fabs(a), fabs(b)), most = fmax(fabs(a), fabs(b));
  p->sign_open |= crosses;
  p->negative ^= signbit(a) != 0;
  p->zero |= most == 0;
  p->may_zero |= least == 0;
  p->infinite |= least == INFINITY;
  p->may_infinite |= most == INFINITY;
  p->factors += !(least == 1 && most == 1);
  if (least != 0 && is_number(least)) {
    scale_by(&p->near, least);
    scale_by(&p->least, fmin(least, 1));
  }
  if (most != 0 && is_number(most)) {
    scale_by(&p->far, most);
    scale_by(&p->most, fmax(most, 1));
  }
}

void kl_product_add(kl_fold *f, int64_t n, const kl_iv_in *in, bool point) {
  kl_fold_product *p = &f->product;
  double x[KL_EV_CHUNK], y[KL_EV_CHUNK];
  kl_ev_decode(f->t, n, in->data, 0, x);
  for (int64_t i = 0; i < n; i++) {
    if (is_number(x[i]) && x[i] != 0)
      scale_by(&p->data, x[i]);
    else
      p->data.m *= x[i];
  }
  if (!f->intervals) return;
  if (!point) {
    kl_ev_decode(f->t, n, in->lo, 0, x);
    kl_ev_decode(f->t, n, in->hi, 0, y);
  }
  for (int64_t i = 0; i < n; i++) factor_ends(f, x[i], point ? x[i] : y[i]);
}

// Sizes of the product, ends included. Each rounding is off by u of its result, or where that is denormal by the least
// value, which later factors may enlarge by all there is above 1.
typedef struct sizes {
  __float128 near, far; // far may be infinite
  bool vanishes;        // some partial product may be 0
} sizes;

static sizes sizes_of(const kl_fold_product *p, const kl_limits *l) {
  double roundings = p->factors > 1 ? (double)(p->factors - 1) : 0;
  double grow = expm1(roundings * log1p(l->unit * (1 + 0x1p-6))), shrink = fmin(1, grow);
  __float128 most = unscale(p->most) * (1 + (__float128)grow), least = unscale(p->least) * (1 - (__float128)shrink);
  sizes r = {unscale(p->near) * (1 - (__float128)shrink), unscale(p->far) * (1 + (__float128)grow), p->may_zero};
  double normal = ldexp(1, l->exponent + l->digits - 1);
  if (roundings > 1 && least < normal) {
    __float128 lost = most * roundings * l->least;
    r.near = r.near > lost ? r.near - lost : 0;
    r.far += lost;
    r.vanishes = true;
  }
  if (p->may_zero) r.near = 0;
  if (p->zero) r.far = 0;
  if (p->may_infinite || most > l->max) r.far = INFINITY;
  return r;
}

static kl_pair pair_of(__float128 x) {
  double sum = (double)x;
  return (kl_pair){sum, is_number(sum) ? (double)(x - sum) : 0};
}

static void store_product_ends(const kl_fold *f, const kl_limits *l, const kl_iv_out *out, int64_t i) {
  const kl_fold_product *p = &f->product;
  sizes z = sizes_of(p, l);
  bool boundless = z.far == (__float128)INFINITY;
  if (boundless && l->saturates) { // cut off at the largest value, and moved on from there
    z.near = 0;
    z.far = l->max;
    boundless = false;
  }
  if (f->open || (boundless && (z.vanishes || !l->infinite))) {
    if (!(f->nan && !f->open)) kl_ev_open_at(f->t, out, i);
    return;
  }
  kl_pair near = p->infinite ? (kl_pair){INFINITY, 0} : pair_of(z.near);
  kl_pair far = boundless ? (kl_pair){INFINITY, 0} : pair_of(z.far);
  if (p->sign_open)
    kl_ends_store(f->t, (kl_pair){-far.sum, -far.rest}, far, out, i, 0);
  else if (p->negative)
    kl_ends_store(f->t, (kl_pair){-far.sum, -far.rest}, (kl_pair){-near.sum, -near.rest}, out, i, 0);
  else
    kl_ends_store(f->t, near, far, out, i, 0);
}

void kl_product_store(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  const kl_fold_product *p = &f->product;
  double data = (double)unscale(p->data);
  kl_element_set(f->t, out->data, i, 0, kl_float_encode(f->t, data));
  if (!out->lo) return;
  size_t size = kl_ev_size(f->t), at = (size_t)i * size;
  memcpy(out->lo + at, out->data + at, size);
  memcpy(out->hi + at, out->data + at, size);
  kl_limits l = kl_limits_of(f->t);
  if (f->nan && !f->open) return;
  if (f->point && !f->open && (p->factors <= 2 || (p->infinite && p->zero))) return;
  store_product_ends(f, &l, out, i);
}

// --- products of complex numbers ----------------------------------------------------------------------------------

static void multiply_by(kl_fold_product *p, __float128 a, __float128 b) {
  __float128 re = p->data.m * a - p->near.m * b, im = p->data.m * b + p->near.m * a;
  p->data.m = re;
  p->near.m = im;
  while (size_of(re) + size_of(im) >= 0x1p512 && is_finite(re) && is_finite(im)) {
    p->data.m = re *= 0x1p-512;
    p->near.m = im *= 0x1p-512;
    p->data.e += 512;
  }
  while (size_of(re) + size_of(im) < 0x1p-512 && (re != 0 || im != 0)) {
    p->data.m = re *= 0x1p512;
    p->near.m = im *= 0x1p512;
    p->data.e -= 512;
  }
}

void kl_product_add_complex(kl_fold *f, int64_t n, const kl_iv_in *in) {
  kl_fold_product *p = &f->product;
  double re[KL_EV_CHUNK], im[KL_EV_CHUNK];
  kl_ev_decode(f->t, n, in->data, 0, re);
  kl_ev_decode(f->t, n, in->data, 1, im);
  for (int64_t i = 0; i < n; i++) {
    double size = hypot(re[i], im[i]) * (1 + 0x1p-50);
    multiply_by(p, re[i], im[i]);
    p->factors += !(re[i] == 1 && im[i] == 0);
    p->infinite |= !is_number(size);
    p->zero |= size == 0;
    if (size == 0 || !is_number(size)) continue;
    scale_by(&p->far, size);
    scale_by(&p->most, fmax(size, 1));
  }
}

// A product z w of rounded operations is off by at most sqrt(5) u |z||w| (Brent, Percival and Zimmermann 2007), and by
// three of the least values where parts of it underflow. Open where something is not finite, or may not be.
void kl_product_store_complex(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  const kl_fold_product *p = &f->product;
  kl_dtype part = kl_info(f->t)->part;
  kl_limits l = kl_limits_of(part);
  __float128 value[2] = {unscale(p->data), unscale((kl_scaled){p->near.m, p->data.e})};
  for (int k = 0; k < 2; k++) kl_element_set(f->t, out->data, i, k, kl_float_encode(part, (double)value[k]));
  if (!out->lo) return;
  size_t size = kl_ev_size(f->t), at = (size_t)i * size;
  memcpy(out->lo + at, out->data + at, size);
  memcpy(out->hi + at, out->data + at, size);
  if (f->n == 1 && f->point && !f->open) return;
  double roundings = (double)(f->n - 1), grow = expm1((double)p->factors * log1p(2.25 * l.unit));
  __float128 most = unscale(p->most) * (1 + (__float128)grow), lost = most * roundings * 3 * l.least;
  __float128 radius = (p->zero ? 0 : unscale(p->far) * (__float128)grow) + lost;
  if (f->open || !f->point || p->infinite || 2 * most > l.max) {
    kl_ev_open_at(f->t, out, i);
    return;
  }
  for (int k = 0; k < 2; k++) {
    kl_pair lo = pair_of(value[k] - radius), hi = pair_of(value[k] + radius);
    kl_ends_store(f->t, lo, hi, out, i, k);
  }
}

// --- both ---------------------------------------------------------------------------------------------------------

static void merge_scaled(kl_scaled *a, const kl_scaled *b) {
  a->e += b->e;
  scale_by(a, b->m);
}

void kl_product_merge(kl_fold_product *p, const kl_fold_product *q, bool complex) {
  if (complex) {
    p->data.e += q->data.e;
    multiply_by(p, q->data.m, q->near.m);
  } else {
    merge_scaled(&p->data, &q->data);
    merge_scaled(&p->near, &q->near);
  }
  merge_scaled(&p->far, &q->far);
  merge_scaled(&p->least, &q->least);
  merge_scaled(&p->most, &q->most);
  p->factors += q->factors;
  p->zero |= q->zero;
  p->may_zero |= q->may_zero;
  p->infinite |= q->infinite;
  p->may_infinite |= q->may_infinite;
  p->negative ^= q->negative;
  p->sign_open |= q->sign_open;
}
