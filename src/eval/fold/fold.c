// Folds by one of HLO's combiners, in chunks: sums and products of floats with all that any order may give; integers
// and extremes, where every order gives the same.
#include "eval/fold/sum.h"

#include <float.h>
#include <limits.h>
#include <math.h>

enum { SUM, PRODUCT, COMPLEX_PRODUCT, LEAST, GREATEST, BITS };

static int method_of(kl_op op, kl_dtype t) {
  if (op == KL_OP_MAXIMUM) return GREATEST;
  if (op == KL_OP_MINIMUM) return LEAST;
  if (t == KILN_PRED && op != KL_OP_XOR) return op == KL_OP_ADD || op == KL_OP_OR ? GREATEST : LEAST;
  if (t == KILN_PRED || kl_is_int(t)) return BITS;
  return op == KL_OP_ADD ? SUM : kl_is_complex(t) ? COMPLEX_PRODUCT : PRODUCT;
}

bool kl_fold_knows(kl_op op, kl_dtype t) {
  return !kl_is_complex(t) || op == KL_OP_ADD || op == KL_OP_MULTIPLY;
}

void kl_fold_start(kl_fold *f, kl_op op, kl_dtype t, bool intervals) {
  *f = (kl_fold){.op = op, .t = t, .method = method_of(op, t), .intervals = intervals, .point = true};
  if (f->method == SUM)
    for (int part = 0; part < 2; part++) {
      kl_total *s = &f->sum[part];
      s->data.sum = s->lo.sum = s->hi.sum = -0.0; // which any term makes its own
      s->quantum = INT_MAX;
    }
  if (f->method == PRODUCT || f->method == COMPLEX_PRODUCT)
    f->data.m = f->near.m = f->far.m = f->least.m = f->most.m = 1;
  if (f->method == COMPLEX_PRODUCT) f->near.m = 0;
  f->key[0] = f->key[1] = f->key[2] = f->method == LEAST ? INT64_MAX : INT64_MIN;
}

// --- sums ---------------------------------------------------------------------------------------------------------

static bool is_number(double x) {
  return fabs(x) <= DBL_MAX;
}

// Numbers narrower than f64 cannot leave a double however many there are.
static void add_narrow(kl_fold *f, int part, int64_t n, const double *x) {
  double s[4] = {-0.0, -0.0, -0.0, -0.0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; k++) s[k] += x[i + k];
  for (; i < n; i++) s[0] += x[i];
  f->sum[part].data.sum += (s[0] + s[1]) + (s[2] + s[3]);
}

// Terms above 2^800 go to a sum of their own, scaled by 2^-100, so that neither sum overflows.
static void add_wide(kl_fold *f, int part, int64_t n, const double *x) {
  for (int64_t i = 0; i < n; i++) {
    if (!is_number(x[i]))
      f->special[part] += x[i];
    else if (fabs(x[i]) > 0x1p800)
      f->high[part] = kl_pair_add(f->high[part], x[i] * 0x1p-100);
    else
      f->sum[part].data = kl_pair_add(f->sum[part].data, x[i]);
  }
}

static int quantum_of(double x) {
  uint64_t u = kl_ev_f64_bits(x), e = u >> 52 & 0x7ff, m = u & ((1ull << 52) - 1);
  if (e) m |= 1ull << 52;
  return (int)(e ? e : 1) - 1075 + __builtin_ctzll(m);
}

static void note_special(kl_total *s, double lo, double hi) {
  s->plus_inf |= lo == INFINITY;
  s->minus_inf |= hi == -INFINITY;
  s->may_plus_inf |= hi == INFINITY;
  s->may_minus_inf |= lo == -INFINITY;
}

static void add_end(kl_pair *s, double x, bool wide) {
  if (!is_number(x)) return;
  if (wide)
    *s = kl_pair_add(*s, x);
  else
    s->sum += x;
}

// What the interval needs to know. Open elements have been looked after; NaN is NaN in all planes.
static void add_ends(kl_fold *f, int part, int64_t n, const double *lo, const double *hi, bool point) {
  kl_total *s = &f->sum[part];
  bool wide = f->t == KILN_F64 || f->t == KILN_C128;
  for (int64_t i = 0; i < n; i++) {
    double a = lo[i], b = hi[i];
    if (a != a || b != b) {
      s->nan = true;
      continue;
    }
    if (!is_number(a) || !is_number(b)) note_special(s, a, b);
    add_end(&s->lo, a, wide);
    if (!f->point) add_end(&s->hi, b, wide);
    if (a == 0 && b == 0) continue;
    s->terms++;
    s->plus += b > 0 && is_number(b) ? b : 0;
    s->minus += a < 0 && is_number(a) ? -a : 0;
    int q = point && is_number(a) ? quantum_of(a) : s->quantum;
    if (q < s->quantum) s->quantum = q;
  }
}

static void add_sum(kl_fold *f, int64_t n, const kl_iv_in *in, bool point) {
  double x[KL_EV_CHUNK], y[KL_EV_CHUNK];
  bool wide = f->t == KILN_F64 || f->t == KILN_C128;
  for (int part = 0; part < 1 + kl_is_complex(f->t); part++) {
    kl_ev_decode(f->t, n, in->data, part, x);
    if (wide)
      add_wide(f, part, n, x);
    else
      add_narrow(f, part, n, x);
    if (!f->intervals) continue;
    if (point) {
      add_ends(f, part, n, x, x, true);
      continue;
    }
    kl_ev_decode(f->t, n, in->lo, part, x);
    kl_ev_decode(f->t, n, in->hi, part, y);
    add_ends(f, part, n, x, y, false);
  }
}

static kl_pair total_data(const kl_fold *f, int part) {
  kl_pair low = f->sum[part].data, high = f->high[part];
  if (f->special[part] != 0) return (kl_pair){f->special[part], 0};
  if (high.sum == 0) return low;
  __float128 sum = ((__float128)high.sum + high.rest) * 0x1p100 + ((__float128)low.sum + low.rest);
  double first = (double)sum;
  return (kl_pair){first, is_number(first) ? (double)(sum - first) : 0};
}

// Sums of n doubles in double are off by less than n 2^-53 S, as pairs by n^2 2^-104 S; two terms are exact but for the
// one rounding that the result has, too.
static void store_sum(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  bool wide = f->t == KILN_F64 || f->t == KILN_C128;
  for (int part = 0; part < 1 + kl_is_complex(f->t); part++) {
    kl_total s = f->sum[part];
    double n = (double)s.terms;
    s.data = total_data(f, part);
    s.point = f->point;
    s.open = f->open;
    if (s.point) s.hi = s.lo;
    if (!s.point || s.quantum == INT_MAX) s.quantum = INT_MIN;
    s.plus *= 1 + n * 0x1p-52;
    s.minus *= 1 + n * 0x1p-52;
    s.size = s.plus + s.minus;
    if (s.terms > 2 || (!wide && !s.point)) {
      double unit = wide ? n * n * 0x1p-104 : n * 0x1p-52;
      s.slack = unit * s.plus + unit * s.minus;
    }
    if (s.point && s.terms <= 2) s.lo = s.hi = s.data;
    kl_total_store(&s, kl_is_complex(f->t) ? kl_info(f->t)->part : f->t, f->t, out, i, part);
  }
}

// --- products -----------------------------------------------------------------------------------------------------

static __float128 size_of(__float128 x) {
  return x < 0 ? -x : x;
}

static bool is_finite(__float128 x) {
  return x - x == 0;
}

static void scale_by(kl_scaled *s, double x) {
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

static void factor_ends(kl_fold *f, double a, double b) {
  if (a != a || b != b) {
    f->nan = true;
    return;
  }
  bool crosses = signbit(a) != signbit(b);
  double least = crosses ? 0 : fmin(fabs(a), fabs(b)), most = fmax(fabs(a), fabs(b));
  f->sign_open |= crosses;
  f->negative ^= signbit(a) != 0;
  f->zero |= most == 0;
  f->may_zero |= least == 0;
  f->infinite |= least == INFINITY;
  f->may_infinite |= most == INFINITY;
  f->factors += !(least == 1 && most == 1);
  if (least != 0 && is_number(least)) {
    scale_by(&f->near, least);
    scale_by(&f->least, fmin(least, 1));
  }
  if (most != 0 && is_number(most)) {
    scale_by(&f->far, most);
    scale_by(&f->most, fmax(most, 1));
  }
}

static void add_product(kl_fold *f, int64_t n, const kl_iv_in *in, bool point) {
  double x[KL_EV_CHUNK], y[KL_EV_CHUNK];
  kl_ev_decode(f->t, n, in->data, 0, x);
  for (int64_t i = 0; i < n; i++) {
    if (is_number(x[i]) && x[i] != 0)
      scale_by(&f->data, x[i]);
    else
      f->data.m *= x[i];
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

static sizes sizes_of(const kl_fold *f, const kl_limits *l) {
  double roundings = f->factors > 1 ? (double)(f->factors - 1) : 0;
  double grow = expm1(roundings * log1p(l->unit * (1 + 0x1p-6))), shrink = fmin(1, grow);
  __float128 most = unscale(f->most) * (1 + (__float128)grow), least = unscale(f->least) * (1 - (__float128)shrink);
  sizes r = {unscale(f->near) * (1 - (__float128)shrink), unscale(f->far) * (1 + (__float128)grow), f->may_zero};
  double normal = ldexp(1, l->exponent + l->digits - 1);
  if (roundings > 1 && least < normal) {
    __float128 lost = most * roundings * l->least;
    r.near = r.near > lost ? r.near - lost : 0;
    r.far += lost;
    r.vanishes = true;
  }
  if (f->may_zero) r.near = 0;
  if (f->zero) r.far = 0;
  if (f->may_infinite || most > l->max) r.far = INFINITY;
  return r;
}

static kl_pair pair_of(__float128 x) {
  double sum = (double)x;
  return (kl_pair){sum, is_number(sum) ? (double)(x - sum) : 0};
}

static void store_product_ends(const kl_fold *f, const kl_limits *l, const kl_iv_out *out, int64_t i) {
  sizes z = sizes_of(f, l);
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
  kl_pair near = f->infinite ? (kl_pair){INFINITY, 0} : pair_of(z.near);
  kl_pair far = boundless ? (kl_pair){INFINITY, 0} : pair_of(z.far);
  if (f->sign_open)
    kl_ends_store(f->t, (kl_pair){-far.sum, -far.rest}, far, out, i, 0);
  else if (f->negative)
    kl_ends_store(f->t, (kl_pair){-far.sum, -far.rest}, (kl_pair){-near.sum, -near.rest}, out, i, 0);
  else
    kl_ends_store(f->t, near, far, out, i, 0);
}

static void store_product(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  double data = (double)unscale(f->data);
  kl_element_set(f->t, out->data, i, 0, kl_float_encode(f->t, data));
  if (!out->lo) return;
  size_t size = kl_ev_size(f->t), at = (size_t)i * size;
  memcpy(out->lo + at, out->data + at, size);
  memcpy(out->hi + at, out->data + at, size);
  kl_limits l = kl_limits_of(f->t);
  if (f->nan && !f->open) return;
  if (f->point && !f->open && (f->factors <= 2 || (f->infinite && f->zero))) return;
  store_product_ends(f, &l, out, i);
}

// --- products of complex numbers ----------------------------------------------------------------------------------

static void multiply_by(kl_fold *f, double a, double b) {
  __float128 re = f->data.m * a - f->near.m * b, im = f->data.m * b + f->near.m * a;
  f->data.m = re;
  f->near.m = im;
  while (size_of(re) + size_of(im) >= 0x1p512 && is_finite(re) && is_finite(im)) {
    f->data.m = re *= 0x1p-512;
    f->near.m = im *= 0x1p-512;
    f->data.e += 512;
  }
  while (size_of(re) + size_of(im) < 0x1p-512 && (re != 0 || im != 0)) {
    f->data.m = re *= 0x1p512;
    f->near.m = im *= 0x1p512;
    f->data.e -= 512;
  }
}

static void add_complex_product(kl_fold *f, int64_t n, const kl_iv_in *in) {
  double re[KL_EV_CHUNK], im[KL_EV_CHUNK];
  kl_ev_decode(f->t, n, in->data, 0, re);
  kl_ev_decode(f->t, n, in->data, 1, im);
  for (int64_t i = 0; i < n; i++) {
    double size = hypot(re[i], im[i]) * (1 + 0x1p-50);
    multiply_by(f, re[i], im[i]);
    f->factors += !(re[i] == 1 && im[i] == 0);
    f->infinite |= !is_number(size);
    f->zero |= size == 0;
    if (size == 0 || !is_number(size)) continue;
    scale_by(&f->far, size);
    scale_by(&f->most, fmax(size, 1));
  }
}

// A product z w of rounded operations is off by at most sqrt(5) u |z||w| (Brent, Percival and Zimmermann 2007), and by
// three of the least values where parts of it underflow. Open where something is not finite, or may not be.
static void store_complex_product(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  kl_dtype part = kl_info(f->t)->part;
  kl_limits l = kl_limits_of(part);
  __float128 value[2] = {unscale(f->data), unscale((kl_scaled){f->near.m, f->data.e})};
  for (int k = 0; k < 2; k++) kl_element_set(f->t, out->data, i, k, kl_float_encode(part, (double)value[k]));
  if (!out->lo) return;
  size_t size = kl_ev_size(f->t), at = (size_t)i * size;
  memcpy(out->lo + at, out->data + at, size);
  memcpy(out->hi + at, out->data + at, size);
  if (f->n == 1 && f->point && !f->open) return;
  double roundings = (double)(f->n - 1), grow = expm1((double)f->factors * log1p(2.25 * l.unit));
  __float128 most = unscale(f->most) * (1 + (__float128)grow), lost = most * roundings * 3 * l.least;
  __float128 radius = (f->zero ? 0 : unscale(f->far) * (__float128)grow) + lost;
  if (f->open || !f->point || f->infinite || 2 * most > l.max) {
    kl_ev_open_at(f->t, out, i);
    return;
  }
  for (int k = 0; k < 2; k++) {
    kl_pair lo = pair_of(value[k] - radius), hi = pair_of(value[k] + radius);
    kl_ends_store(f->t, lo, hi, out, i, k);
  }
}

// --- integers and extremes ----------------------------------------------------------------------------------------

static uint64_t combine(kl_op op, uint64_t x, uint64_t y) {
  switch (op) {
  case KL_OP_ADD: return x + y;
  case KL_OP_MULTIPLY: return x * y;
  case KL_OP_AND: return x & y;
  case KL_OP_OR: return x | y;
  default: return x ^ y;
  }
}

static __int128 int_value(kl_dtype t, uint64_t bits) {
  return kl_is_signed(t) ? (__int128)kl_int_decode(t, bits) : (__int128)bits;
}

static void add_bits(kl_fold *f, int64_t n, const kl_iv_in *in, bool point) {
  int64_t i = 0;
  if (f->n == 0) f->bits = kl_element_get(f->t, in->data, i++, 0);
  for (; i < n; i++) f->bits = combine(f->op, f->bits, kl_element_get(f->t, in->data, i, 0));
  for (i = 0; f->intervals && i < n; i++) {
    f->lo += int_value(f->t, kl_element_get(f->t, in->lo, i, 0));
    f->hi += int_value(f->t, kl_element_get(f->t, in->hi, i, 0));
  }
}

static bool fits(kl_dtype t, __int128 v) {
  int bits = kl_info(t)->bits;
  __int128 least = kl_is_signed(t) ? -((__int128)1 << (bits - 1)) : 0;
  return v >= least && v < least + ((__int128)1 << bits);
}

static void store_bits(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  kl_element_set(f->t, out->data, i, 0, f->bits);
  if (!out->lo) return;
  kl_element_set(f->t, out->lo, i, 0, f->bits);
  kl_element_set(f->t, out->hi, i, 0, f->bits);
  if (f->point && !f->open) return;
  if (!f->open && f->op == KL_OP_ADD && fits(f->t, f->lo) && fits(f->t, f->hi)) {
    kl_element_set(f->t, out->lo, i, 0, (uint64_t)f->lo);
    kl_element_set(f->t, out->hi, i, 0, (uint64_t)f->hi);
  } else {
    kl_ev_open_at(f->t, out, i);
  }
}

static void add_extreme(kl_fold *f, int64_t n, const kl_iv_in *in) {
  int64_t keys[KL_EV_CHUNK];
  const void *plane[3] = {in->data, in->lo, in->hi};
  bool floats = kl_is_float(f->t);
  for (int k = 0; k < (f->intervals ? 3 : 1); k++) {
    kl_iv_keys(f->t, n, plane[k], keys);
    int64_t best = f->key[k];
    for (int64_t i = 0; i < n; i++) {
      if (floats && keys[i] == KL_KEY_NAN)
        f->nan = true;
      else if (f->method == LEAST ? keys[i] < best : keys[i] > best)
        best = keys[i];
    }
    f->key[k] = best;
  }
}

static void store_extreme(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  char *plane[3] = {out->data, out->lo, out->hi};
  for (int k = 0; k < 3 && plane[k]; k++)
    kl_element_set(f->t, plane[k], i, 0, f->nan ? kl_float_encode(f->t, NAN) : kl_iv_key_bits(f->t, f->key[k]));
  if (out->lo && f->open) kl_ev_open_at(f->t, out, i);
}

// --- any ----------------------------------------------------------------------------------------------------------

static void add_chunk(kl_fold *f, int64_t n, const kl_iv_in *in) {
  size_t bytes = (size_t)n * kl_ev_size(f->t);
  bool point = !f->intervals || ((in->lo == in->data || !memcmp(in->lo, in->data, bytes)) &&
                                 (in->hi == in->data || !memcmp(in->hi, in->data, bytes)));
  for (int part = 0; part < 2 && f->point && !point; part++) f->sum[part].hi = f->sum[part].lo;
  f->point &= point;
  f->open |= f->intervals && in->any && memchr(in->any, 1, (size_t)n);
  switch (f->method) {
  case SUM: add_sum(f, n, in, point); break;
  case PRODUCT: add_product(f, n, in, point); break;
  case COMPLEX_PRODUCT: add_complex_product(f, n, in); break;
  case BITS: add_bits(f, n, in, point); break;
  default: add_extreme(f, n, in); break;
  }
  f->n += n;
}

void kl_fold_add(kl_fold *f, int64_t n, const kl_iv_in *in) {
  size_t size = kl_ev_size(f->t);
  for (int64_t at = 0; at < n; at += KL_EV_CHUNK) {
    size_t offset = (size_t)at * size;
    kl_iv_in chunk = {in->data + offset, NULL, NULL, NULL};
    if (f->intervals)
      chunk = (kl_iv_in){in->data + offset, in->lo + offset, in->hi + offset, in->any ? in->any + at : NULL};
    add_chunk(f, n - at < KL_EV_CHUNK ? n - at : KL_EV_CHUNK, &chunk);
  }
}

void kl_fold_store(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  if (out->lo) out->any[i] = 0;
  switch (f->method) {
  case SUM: store_sum(f, out, i); break;
  case PRODUCT: store_product(f, out, i); break;
  case COMPLEX_PRODUCT: store_complex_product(f, out, i); break;
  case BITS: store_bits(f, out, i); break;
  default: store_extreme(f, out, i); break;
  }
}
