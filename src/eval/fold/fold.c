// Folds by one of HLO's combiners, in chunks or merged from others: sums of floats with all that any order may give;
// integers and extremes, where every order gives the same.
#include "eval/fold/product.h"

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

size_t kl_fold_bytes(kl_op op, kl_dtype t) {
  size_t head = offsetof(kl_fold, sum);
  switch (method_of(op, t)) {
  case SUM: return head + (sizeof(kl_fold_sum) * (kl_is_complex(t) ? 2 : 1) + 15) / 16 * 16;
  case PRODUCT:
  case COMPLEX_PRODUCT: return head + sizeof(kl_fold_product);
  case BITS: return head + sizeof(kl_fold_bits);
  default: return head + (3 * sizeof(int64_t) + 15) / 16 * 16;
  }
}
_Static_assert(offsetof(kl_fold, sum) % 16 == 0 && sizeof(kl_fold_product) % 16 == 0, "arrays of parts of kl_fold");

void kl_fold_start(kl_fold *f, kl_op op, kl_dtype t, bool intervals) {
  memset(f, 0, kl_fold_bytes(op, t));
  f->op = op;
  f->t = t;
  f->method = method_of(op, t);
  f->intervals = intervals;
  f->point = true;
  switch (f->method) {
  case SUM:
    for (int part = 0; part < 1 + kl_is_complex(t); part++) {
      kl_total *s = &f->sum[part].total;
      s->data.sum = s->lo.sum = s->hi.sum = -0.0; // which any term makes its own
      s->quantum = INT_MAX;
    }
    break;
  case PRODUCT:
  case COMPLEX_PRODUCT: kl_product_start(&f->product, kl_is_complex(t)); break;
  case LEAST: f->key[0] = f->key[1] = f->key[2] = INT64_MAX; break;
  case GREATEST: f->key[0] = f->key[1] = f->key[2] = INT64_MIN; break;
  default: break;
  }
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
  f->sum[part].total.data.sum += (s[0] + s[1]) + (s[2] + s[3]);
}

// Terms above 2^800 go to a sum of their own, scaled by 2^-100, so that neither sum overflows.
static void add_wide(kl_fold *f, int part, int64_t n, const double *x) {
  for (int64_t i = 0; i < n; i++) {
    if (!is_number(x[i]))
      f->sum[part].special += x[i];
    else if (fabs(x[i]) > 0x1p800)
      f->sum[part].high = kl_pair_add(f->sum[part].high, x[i] * 0x1p-100);
    else
      f->sum[part].total.data = kl_pair_add(f->sum[part].total.data, x[i]);
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
  kl_total *s = &f->sum[part].total;
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
  kl_pair low = f->sum[part].total.data, high = f->sum[part].high;
  if (f->sum[part].special != 0) return (kl_pair){f->sum[part].special, 0};
  if (high.sum == 0) return low;
  __float128 sum = ((__float128)high.sum + high.rest) * 0x1p100 + ((__float128)low.sum + low.rest);
  double first = (double)sum;
  return (kl_pair){first, is_number(first) ? (double)(sum - first) : 0};
}

// Sums that are no numbers have no rest, nor do those that they become.
static void merge_pair(kl_pair *p, kl_pair q) {
  kl_pair s = kl_two_sum(p->sum, q.sum);
  *p = (kl_pair){s.sum, is_number(s.sum) ? s.rest + (p->rest + q.rest) : 0};
}

static void merge_sum(kl_fold *f, const kl_fold *g) {
  for (int part = 0; part < 1 + kl_is_complex(f->t); part++) {
    kl_fold_sum *a = &f->sum[part];
    const kl_fold_sum *b = &g->sum[part];
    kl_total *s = &a->total;
    const kl_total *t = &b->total;
    merge_pair(&s->data, t->data);
    merge_pair(&a->high, b->high);
    a->special += b->special;
    if (!f->intervals) continue;
    merge_pair(&s->lo, t->lo);
    if (!f->point) merge_pair(&s->hi, g->point ? t->lo : t->hi);
    s->plus += t->plus;
    s->minus += t->minus;
    s->terms += t->terms;
    s->quantum = t->quantum < s->quantum ? t->quantum : s->quantum;
    s->nan |= t->nan;
    s->plus_inf |= t->plus_inf;
    s->minus_inf |= t->minus_inf;
    s->may_plus_inf |= t->may_plus_inf;
    s->may_minus_inf |= t->may_minus_inf;
  }
}

// Sums of n doubles in double are off by less than n 2^-53 S, as pairs by n^2 2^-104 S; two terms are exact but for the
// one rounding that the result has, too.
static void store_sum(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  bool wide = f->t == KILN_F64 || f->t == KILN_C128;
  for (int part = 0; part < 1 + kl_is_complex(f->t); part++) {
    kl_total s = f->sum[part].total;
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
  if (f->n == 0) f->ints.bits = kl_element_get(f->t, in->data, i++, 0);
  for (; i < n; i++) f->ints.bits = combine(f->op, f->ints.bits, kl_element_get(f->t, in->data, i, 0));
  for (i = 0; f->intervals && i < n; i++) {
    f->ints.lo += int_value(f->t, kl_element_get(f->t, in->lo, i, 0));
    f->ints.hi += int_value(f->t, kl_element_get(f->t, in->hi, i, 0));
  }
}

static void merge_bits(kl_fold *f, const kl_fold *g) {
  if (g->n) f->ints.bits = f->n ? combine(f->op, f->ints.bits, g->ints.bits) : g->ints.bits;
  f->ints.lo += g->ints.lo;
  f->ints.hi += g->ints.hi;
}

static bool fits(kl_dtype t, __int128 v) {
  int bits = kl_info(t)->bits;
  __int128 least = kl_is_signed(t) ? -((__int128)1 << (bits - 1)) : 0;
  return v >= least && v < least + ((__int128)1 << bits);
}

static void store_bits(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  kl_element_set(f->t, out->data, i, 0, f->ints.bits);
  if (!out->lo) return;
  kl_element_set(f->t, out->lo, i, 0, f->ints.bits);
  kl_element_set(f->t, out->hi, i, 0, f->ints.bits);
  if (f->point && !f->open) return;
  if (!f->open && f->op == KL_OP_ADD && fits(f->t, f->ints.lo) && fits(f->t, f->ints.hi)) {
    kl_element_set(f->t, out->lo, i, 0, (uint64_t)f->ints.lo);
    kl_element_set(f->t, out->hi, i, 0, (uint64_t)f->ints.hi);
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

static void merge_extreme(kl_fold *f, const kl_fold *g) {
  for (int k = 0; k < 3; k++)
    if (f->method == LEAST ? g->key[k] < f->key[k] : g->key[k] > f->key[k]) f->key[k] = g->key[k];
}

static void store_extreme(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  char *plane[3] = {out->data, out->lo, out->hi};
  for (int k = 0; k < 3 && plane[k]; k++)
    kl_element_set(f->t, plane[k], i, 0, f->nan ? kl_float_encode(f->t, NAN) : kl_iv_key_bits(f->t, f->key[k]));
  if (out->lo && f->open) kl_ev_open_at(f->t, out, i);
}

// --- any ----------------------------------------------------------------------------------------------------------

// Once some element is no point, the sums of lo and hi go different ways.
static void leave_points(kl_fold *f) {
  for (int part = 0; part < 1 + kl_is_complex(f->t) && f->method == SUM && f->point; part++)
    f->sum[part].total.hi = f->sum[part].total.lo;
  f->point = false;
}

static void add_chunk(kl_fold *f, int64_t n, const kl_iv_in *in) {
  size_t bytes = (size_t)n * kl_ev_size(f->t);
  bool point = !f->intervals || ((in->lo == in->data || !memcmp(in->lo, in->data, bytes)) &&
                                 (in->hi == in->data || !memcmp(in->hi, in->data, bytes)));
  if (!point) leave_points(f);
  f->open |= f->intervals && in->any && memchr(in->any, 1, (size_t)n);
  switch (f->method) {
  case SUM: add_sum(f, n, in, point); break;
  case PRODUCT: kl_product_add(f, n, in, point); break;
  case COMPLEX_PRODUCT: kl_product_add_complex(f, n, in); break;
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

void kl_fold_merge(kl_fold *f, const kl_fold *g) {
  if (!g->point) leave_points(f);
  f->open |= g->open;
  f->nan |= g->nan;
  switch (f->method) {
  case SUM: merge_sum(f, g); break;
  case PRODUCT:
  case COMPLEX_PRODUCT: kl_product_merge(&f->product, &g->product, f->method == COMPLEX_PRODUCT); break;
  case BITS: merge_bits(f, g); break;
  default: merge_extreme(f, g); break;
  }
  f->n += g->n;
}

void kl_fold_store(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  if (out->lo) out->any[i] = 0;
  switch (f->method) {
  case SUM: store_sum(f, out, i); break;
  case PRODUCT: kl_product_store(f, out, i); break;
  case COMPLEX_PRODUCT: kl_product_store_complex(f, out, i); break;
  case BITS: store_bits(f, out, i); break;
  default: store_extreme(f, out, i); break;
  }
}

// What is rounded twice, kept wider first, may be one beside what is rounded once.
static void take_in(kl_dtype t, const kl_iv_out *out, int64_t i, int part, uint64_t bits) {
  kl_dtype p = kl_is_complex(t) ? kl_info(t)->part : t;
  uint64_t best = kl_element_get(t, out->data, i, part);
  if (bits == best) return;
  kl_element_set(t, out->data, i, part, bits);
  bool nan = kl_float_is_nan(p, bits);
  if (nan || kl_float_is_nan(p, best)) {
    out->any[i] |= !(nan && kl_float_is_nan(p, best));
    kl_element_set(t, out->lo, i, part, bits);
    kl_element_set(t, out->hi, i, part, bits);
    return;
  }
  int64_t key = kl_iv_key(p, bits);
  if (key < kl_iv_key(p, kl_element_get(t, out->lo, i, part))) kl_element_set(t, out->lo, i, part, bits);
  if (key > kl_iv_key(p, kl_element_get(t, out->hi, i, part))) kl_element_set(t, out->hi, i, part, bits);
}

void kl_fold_bound(const kl_fold *f, const kl_iv_out *out, int64_t i) {
  uint64_t bits[2];
  int parts = kl_is_complex(f->t) ? 2 : 1;
  for (int part = 0; part < parts; part++) bits[part] = kl_element_get(f->t, out->data, i, part);
  kl_fold_store(f, out, i);
  for (int part = 0; part < parts; part++) take_in(f->t, out, i, part, bits[part]);
}
