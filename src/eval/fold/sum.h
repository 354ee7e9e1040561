// Sums and other folds whose order a device chooses: the best single value, and an interval of all that some order of
// correctly rounded operations can give.
//
// A sum of n terms, in any order, differs from the exact sum by at most (n - 1) u S, where u is the unit roundoff and S
// the sum of the sizes (Jeannerod and Rump 2013; addition never underflows with an error). Terms that are zero do not
// count. Where a partial sum may be kept in a wider type and narrowed later, each addition is rounded twice, and u
// becomes u (1 + 2^-6) or less. Results are values of the type, so the ends are rounded inwards to it. Two terms have
// one rounding, and their result is exact; and no rounding happens at all where every term is a multiple of a quantum q
// and S <= 2^p q.
#ifndef KL_EVAL_SUM_H
#define KL_EVAL_SUM_H

#include "eval/impl.h"

// A value's planes from element i on; those of a result, lo NULL where it has data alone.
static inline kl_iv_in kl_ev_in(const kl_evval *v, int64_t i) {
  size_t at = (size_t)i * kl_ev_size(v->shape->dtype);
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  return (kl_iv_in){(const char *)kl_ev_plane(v, KL_EV_DATA) + at, (const char *)kl_ev_plane(v, KL_EV_LO) + at,
                    (const char *)kl_ev_plane(v, KL_EV_HI) + at, any ? any + i : NULL};
}
static inline kl_iv_out kl_ev_out(const kl_evval *v, int64_t i) {
  kl_iv_in at = kl_ev_in(v, i);
  if (!v->plane[KL_EV_ANY]) return (kl_iv_out){(char *)at.data, NULL, NULL, NULL};
  return (kl_iv_out){(char *)at.data, (char *)at.lo, (char *)at.hi, (uint8_t *)at.any};
}

// A float format as numbers. `infinite`: beyond `max` lies infinity; else NaN, or for f4e2m1fn the largest value.
typedef struct kl_limits {
  double unit, max, least; // unit roundoff, largest finite value, least positive value
  int digits, exponent;    // of the significand; least == 2^exponent
  bool infinite, saturates;
} kl_limits;
kl_limits kl_limits_of(kl_dtype t);

// Values of a float or complex type as doubles.
void kl_ev_decode(kl_dtype t, int64_t n, const void *p, int part, double *out);

// An unevaluated sum of two doubles.
typedef struct kl_pair {
  double sum, rest;
} kl_pair;
static inline kl_pair kl_two_sum(double a, double b) {
  double s = a + b, z = s - a;
  return (kl_pair){s, (a - (s - z)) + (b - z)};
}
static inline kl_pair kl_pair_add(kl_pair p, double x) {
  kl_pair r = kl_two_sum(p.sum, x);
  r.rest += p.rest;
  return r;
}

// What is known of a sum of real terms: of products where `products` is set.
typedef struct kl_total {
  kl_pair data, lo, hi; // sums of the terms' own planes; infinite terms count in `data` only
  double slack;         // how far lo and hi may be from what they stand for
  double size;          // of the terms' greatest sizes
  double plus, minus;   // of their greatest positive and negative sizes; `size` serves where they are not known
  int64_t terms;        // that may be other than zero
  int quantum;          // every term is a multiple of 2^quantum; INT_MIN: not known
  bool ordered;         // the data is `value`, what one order gives, and not the exact sum
  double value;
  bool products;       // each term has been rounded, too
  bool exact_products; // ... to no effect
  bool point;          // lo and hi are data
  bool zero_sign_open; // either zero may come out
  bool nan, open;      // a term is NaN; is anything at all
  bool plus_inf, minus_inf, may_plus_inf, may_minus_inf;
} kl_total;

// Can every partial sum and product stay finite, whatever the order? Else plus and minus are worth knowing.
bool kl_total_stays_finite(const kl_total *s, kl_dtype acc);
// Sums rounded in `acc` and then to the part type of t; writes part `part` of element i. out->lo NULL: data alone. Sets
// out->any[i], never clears it.
void kl_total_store(const kl_total *s, kl_dtype acc, kl_dtype t, const kl_iv_out *out, int64_t i, int part);
// Ends of an element's part whose data stands; results between them are values of the part type of t.
void kl_ends_store(kl_dtype t, kl_pair lo, kl_pair hi, const kl_iv_out *out, int64_t i, int part);
// An open element: for pred both values, else `any`.
void kl_ev_open_at(kl_dtype t, const kl_iv_out *out, int64_t i);

// --- folds --------------------------------------------------------------------------------------------------------

// m * 2^e, with m near 1.
typedef struct kl_scaled {
  __float128 m;
  int64_t e;
} kl_scaled;

// Of one part.
typedef struct kl_fold_sum {
  kl_total total;
  double special; // of the terms that are no numbers
  kl_pair high;   // of f64 terms of great size, scaled down
} kl_fold_sum;

// Of the data, of the least and greatest sizes; of sizes below and above 1, which bound partial products. Complex: data
// and near are the parts, with the exponent of data.
typedef struct kl_fold_product {
  kl_scaled data, near, far, least, most;
  int64_t factors; // other than 1 and -1
  bool zero, may_zero, infinite, may_infinite, negative, sign_open;
} kl_fold_product;

typedef struct kl_fold_bits {
  __int128 lo, hi; // sums, where the op adds
  uint64_t bits;
} kl_fold_bits;

// One value folded from many by a combiner (kl_ev_program_combiner).
typedef struct kl_fold {
  kl_op op;
  kl_dtype t;
  int method;
  bool intervals;
  bool point, open, nan;
  int64_t n;
  union {
    kl_fold_sum sum[2];
    kl_fold_product product;
    kl_fold_bits ints;
    int64_t key[3]; // extremes as order keys, by plane
  };
} kl_fold;

// False: the result may depend on the order in a way that is not followed (complex maximum and minimum).
bool kl_fold_knows(kl_op op, kl_dtype t);
// May a fold of exact values have more than one right result?
static inline bool kl_fold_rounds(kl_op op, kl_dtype t) {
  return (op == KL_OP_ADD || op == KL_OP_MULTIPLY) && (kl_is_float(t) || kl_is_complex(t));
}
// How much of a kl_fold is in use: an array of folds may take that many bytes for each.
size_t kl_fold_bytes(kl_op op, kl_dtype t);
void kl_fold_start(kl_fold *f, kl_op op, kl_dtype t, bool intervals);
// n elements; without intervals only their data counts. There is at least one before the end.
void kl_fold_add(kl_fold *f, int64_t n, const kl_iv_in *in);
// The elements of g, too, started alike.
void kl_fold_merge(kl_fold *f, const kl_fold *g);
// Writes element i; out->lo NULL: data alone.
void kl_fold_store(const kl_fold *f, const kl_iv_out *out, int64_t i);
// Writes the ends of element i, whose data stands: what one order gives, kept wider in places perhaps.
void kl_fold_bound(const kl_fold *f, const kl_iv_out *out, int64_t i);

#endif
