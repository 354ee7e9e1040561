// What the tests of evaluated ops share: random values of every type, modules from text, evaluation, and folds in every
// order.
#ifndef EVAL_RUN_H
#define EVAL_RUN_H

#include "support/context.h"
#include "eval/eval.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seed;

static inline uint64_t next_random(void) {
  seed += 0x9e3779b97f4a7c15ull;
  return kl_hash(&seed, sizeof seed, 11);
}
static inline int64_t below(int64_t n) {
  return (int64_t)(next_random() % (uint64_t)n);
}
static inline int64_t between(int64_t lo, int64_t hi) {
  return lo + below(hi - lo + 1);
}

static inline kl_dtype part_of(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}
static inline int parts(kl_dtype t) {
  return kl_is_complex(t) ? 2 : 1;
}

// --- arrays -------------------------------------------------------------------------------------------------------

typedef struct array {
  kl_dtype t;
  uint32_t rank;
  int64_t dims[8], count;
  void *data;
} array;

static inline array new_array(kl_dtype t, uint32_t rank, const int64_t *dims) {
  array a = {.t = t, .rank = rank, .count = 1};
  for (uint32_t d = 0; d < rank; d++) a.count *= a.dims[d] = dims[d];
  a.data = calloc((size_t)a.count + 1, 16);
  return a;
}
static inline array new_scalar(kl_dtype t) {
  return new_array(t, 0, NULL);
}
static inline uint64_t get(const array *a, int64_t i, int part) {
  return kl_element_get(a->t, a->data, i, part);
}
static inline void put(array *a, int64_t i, int part, uint64_t bits) {
  kl_element_set(a->t, a->data, i, part, bits);
}
static inline double value(const array *a, int64_t i, int part) {
  uint64_t bits = get(a, i, part);
  return kl_is_float(part_of(a->t)) ? kl_float_decode(part_of(a->t), bits) : (double)kl_int_decode(a->t, bits);
}

// "f32[2,3]"
static inline const char *type_text(const array *a) {
  static char all[8][160];
  static int turn;
  char *s = all[turn++ % 8];
  int n = sprintf(s, "%s[", kiln_dtype_name(a->t));
  for (uint32_t d = 0; d < a->rank; d++) n += sprintf(s + n, "%s%lld", d ? "," : "", (long long)a->dims[d]);
  sprintf(s + n, "]");
  return s;
}
// "1,2"
static inline const char *list_text(uint32_t n, const int64_t *v, const char *between_them) {
  static char all[16][160];
  static int turn;
  char *s = all[turn++ % 16];
  int at = 0;
  s[0] = 0;
  for (uint32_t k = 0; k < n; k++) at += sprintf(s + at, "%s%lld", k ? between_them : "", (long long)v[k]);
  return s;
}

static inline int64_t linear(uint32_t rank, const int64_t *dims, const int64_t *index) {
  int64_t at = 0;
  for (uint32_t d = 0; d < rank; d++) at = at * dims[d] + index[d];
  return at;
}
static inline void unravel(uint32_t rank, const int64_t *dims, int64_t at, int64_t *index) {
  for (uint32_t d = rank; d-- > 0;) {
    index[d] = at % dims[d];
    at /= dims[d];
  }
}

typedef enum fill { FILL_SMALL, FILL_PLAIN, FILL_WILD } fill;

// Small: integers from -3 to 3. Plain: floats around 1, any integers. Wild: any bits.
static inline uint64_t random_bits(kl_dtype t, fill f) {
  t = part_of(t);
  if (t == KILN_PRED) return next_random() >> 63;
  if (!kl_is_float(t)) return (f == FILL_SMALL ? (uint64_t)between(-3, 3) : next_random()) & kl_int_mask(t);
  if (f == FILL_WILD) return next_random() & kl_int_mask(t);
  double v = f == FILL_SMALL ? (double)between(-3, 3) : (double)(int64_t)next_random() * 0x1p-62;
  return kl_float_encode(t, kl_info(t)->kind == KL_E8M0 ? fabs(v) + 0.25 : v);
}
static inline void fill_array(array *a, fill f) {
  for (int64_t i = 0; i < a->count; i++)
    for (int p = 0; p < parts(a->t); p++) put(a, i, p, random_bits(a->t, f));
}

// --- running ------------------------------------------------------------------------------------------------------

typedef struct run {
  kiln_module *m;
  kl_result r[8];
  size_t n;
} run;

static inline run evaluate(const char *text, size_t n, const array *args, bool intervals) {
  run r = {.m = parse(text)};
  const kl_comp *c = &r.m->comp[r.m->entry];
  kl_array a[8];
  for (size_t k = 0; k < n; k++) a[k] = (kl_array){c->instr[c->params[k]].shape, args[k].data};
  r.n = kl_shape_leaf_count(kl_root(c)->shape);
  kl_eval_opts opts = {.intervals = intervals, .threads = 2};
  if (kl_eval(cx, r.m, r.m->entry, a, &opts, r.r) != KILN_OK)
    ck_abort_msg("%s\n%s", kiln_diagnostics_get(cx, kiln_diagnostics_count(cx) - 1)->text, text);
  return r;
}
static inline void drop_run(run *r) {
  for (size_t k = 0; k < r->n; k++) kl_result_free(cx, &r->r[k]);
  kiln_module_destroy(&r->m);
}

static inline bool same_bits(kl_dtype t, uint64_t a, uint64_t b) {
  if (kl_is_float(t) && kl_float_is_nan(t, a) && kl_float_is_nan(t, b)) return true;
  return a == b;
}
static inline const char *bits_text(kl_dtype t, uint64_t bits) {
  static char all[8][96];
  static int turn;
  char *s = all[turn++ % 8];
  uint64_t both[2] = {bits, 0};
  kl_scalar_text(s, t, both);
  return s;
}
static inline uint64_t result_bits(const kl_result *r, const void *plane, int64_t i, int part) {
  return kl_element_get(r->data.shape->dtype, plane, i, part);
}
static inline double result_value(const kl_result *r, const void *plane, int64_t i, int part) {
  kl_dtype t = part_of(r->data.shape->dtype);
  uint64_t bits = result_bits(r, plane, i, part);
  return kl_is_float(t) ? kl_float_decode(t, bits) : (double)kl_int_decode(t, bits);
}
static inline bool is_open(const kl_result *r, int64_t i) {
  return r->any && r->any[i / 64] >> (i % 64) & 1;
}

// --- all orders ---------------------------------------------------------------------------------------------------

static inline double round_to(kl_dtype t, double v) {
  return kl_float_decode(t, kl_float_encode(t, v));
}
static inline double combine(bool product, kl_dtype t, double a, double b) {
  return round_to(t, product ? a * b : a + b);
}

typedef struct outcomes {
  int n;
  double v[20000];
} outcomes;

static inline void add_outcome(outcomes *o, double v) {
  for (int k = 0; k < o->n; k++)
    if (memcmp(&o->v[k], &v, sizeof v) == 0 || (v != v && o->v[k] != o->v[k])) return;
  if (o->n < (int)KL_COUNT(o->v)) o->v[o->n++] = v;
}

// Every result that some binary tree over some order of the terms gives, each node rounded to t.
static inline void all_orders(bool product, kl_dtype t, int n, const double *terms, outcomes *out) {
  outcomes *of = calloc(1u << n, sizeof *of);
  for (int k = 0; k < n; k++) add_outcome(&of[1u << k], terms[k]);
  for (unsigned set = 1; set < 1u << n; set++)
    for (unsigned part = (set - 1) & set; part; part = (part - 1) & set)
      for (int i = 0; i < of[part].n; i++)
        for (int j = 0; j < of[set ^ part].n; j++)
          add_outcome(&of[set], combine(product, t, of[part].v[i], of[set ^ part].v[j]));
  *out = of[(1u << n) - 1];
  free(of);
}

// Element 0 of `z` allows what every order gives, and says nothing at all only where one leaves the numbers.
static inline void expect_all_allowed(const kl_result *z, kl_dtype t, const outcomes *all) {
  bool leaves = false;
  for (int k = 0; k < all->n; k++) {
    uint64_t bits[2] = {kl_float_encode(t, all->v[k]), 0};
    EXPECT(kl_result_allows(z, 0, bits), "%s refused, in [%s, %s]", bits_text(t, bits[0]),
           bits_text(t, result_bits(z, z->lo, 0, 0)), bits_text(t, result_bits(z, z->hi, 0, 0)));
    leaves |= !isfinite(all->v[k]);
  }
  if (is_open(z, 0)) EXPECT(leaves, "open, but all orders give numbers");
}

// One order of many, at random: two of what is left are combined until one is.
static inline double random_order(bool product, kl_dtype t, int64_t n, const double *terms) {
  double *left = malloc((size_t)n * sizeof *left);
  memcpy(left, terms, (size_t)n * sizeof *left);
  bool straight = next_random() & 1;
  while (n > 1) {
    int64_t i = straight ? 0 : below(n), j = straight ? n - 1 : below(n - 1);
    if (!straight && j >= i) j++;
    left[i] = combine(product, t, left[i], left[j]);
    left[j] = left[--n];
  }
  double r = left[0];
  free(left);
  return r;
}

#endif
