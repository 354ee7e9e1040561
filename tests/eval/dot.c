// dot, ragged-dot, scaled-dot and convolution against plain loops over indices of their own; the intervals against sums
// in every order, or many, with products rounded or not.
#include "support/suite.h"
#include "run.h"

typedef struct types {
  kl_dtype lhs, rhs, out;
} types;
static const types type_cases[] = {
    {KILN_PRED, KILN_PRED, KILN_PRED},
    {KILN_S1, KILN_S1, KILN_S32},
    {KILN_U1, KILN_S1, KILN_U1},
    {KILN_U1, KILN_U1, KILN_S8},
    {KILN_S2, KILN_S2, KILN_S32},
    {KILN_S4, KILN_U4, KILN_S32},
    {KILN_S8, KILN_S8, KILN_S32},
    {KILN_U8, KILN_S8, KILN_S32},
    {KILN_S8, KILN_S8, KILN_S8},
    {KILN_U16, KILN_U16, KILN_U16},
    {KILN_S32, KILN_S32, KILN_S32},
    {KILN_U32, KILN_U32, KILN_U32},
    {KILN_S64, KILN_S64, KILN_S64},
    {KILN_U64, KILN_U64, KILN_U64},
    {KILN_S16, KILN_S16, KILN_S64},
    {KILN_F8E4M3FN, KILN_F8E5M2, KILN_F32},
    {KILN_F8E4M3FN, KILN_F8E4M3FN, KILN_F8E4M3FN},
    {KILN_F16, KILN_F16, KILN_F16},
    {KILN_F16, KILN_F16, KILN_F32},
    {KILN_BF16, KILN_BF16, KILN_BF16},
    {KILN_BF16, KILN_BF16, KILN_F32},
    {KILN_F32, KILN_F32, KILN_F32},
    {KILN_F32, KILN_F32, KILN_F64},
    {KILN_F64, KILN_F64, KILN_F64},
    {KILN_C64, KILN_C64, KILN_C64},
    {KILN_C128, KILN_C128, KILN_C128},
    {KILN_S8, KILN_S8, KILN_F32},
};

static bool floats(kl_dtype t) {
  return kl_is_float(t) || kl_is_complex(t);
}
static kl_dtype sum_type(const types *t) {
  bool wide = part_of(t->lhs) == KILN_F64 || part_of(t->rhs) == KILN_F64 || part_of(t->out) == KILN_F64;
  return wide ? KILN_F64 : KILN_F32;
}

// --- one element --------------------------------------------------------------------------------------------------

// The real products that make up part `part` of a sum of products: one for each pair, or two.
typedef struct products {
  int64_t n;
  double *x, *y;
} products;

static void add_pair(products *p, double x, double y) {
  p->x[p->n] = x;
  p->y[p->n++] = y;
}

static void add_product(products *p, const array *a, int64_t i, const array *b, int64_t j, int part) {
  if (!kl_is_complex(a->t)) {
    add_pair(p, value(a, i, 0), value(b, j, 0));
    return;
  }
  add_pair(p, value(a, i, 0), value(b, j, part));
  add_pair(p, part ? value(a, i, 1) : -value(a, i, 1), value(b, j, 1 - part));
}

static double unit_of(kl_dtype t) {
  return ldexp(1, -1 - kl_info(t)->man_bits);
}

// What a device may compute: products rounded to `acc` or kept, added in some order, rounded to the result.
static double device(kl_dtype acc, kl_dtype out, const products *p) {
  double *terms = malloc(sizeof *terms * ((size_t)p->n + 1)), r = 0;
  if (next_random() & 1) {
    for (int64_t k = 0; k < p->n; k++) terms[k] = round_to(acc, p->x[k] * p->y[k]);
    if (p->n) r = random_order(false, acc, p->n, terms);
  } else {
    for (int64_t k = 0; k < p->n; k++)
      r = acc == KILN_F64 ? fma(p->x[k], p->y[k], r) : round_to(acc, p->x[k] * p->y[k] + r);
  }
  free(terms);
  return round_to(out, r);
}

// The one order: leaves of consecutive pairs, each a chain of fused multiply-adds from 0 on, joined from the left. Of
// complex numbers each pair has two products.
static double in_order(kl_dtype acc, int64_t of_pair, const products *p) {
  int64_t leaf = 256 * of_pair;
  double all = 0;
  while (leaf * 4096 < p->n) leaf *= 2;
  for (int64_t first = 0; first < p->n; first += leaf) {
    double sum = 0;
    for (int64_t k = first; k < p->n && k < first + leaf; k++)
      sum = acc == KILN_F64 ? fma(p->x[k], p->y[k], sum) : fmaf((float)p->x[k], (float)p->y[k], (float)sum);
    all = first ? round_to(acc, all + sum) : sum;
  }
  return all;
}

static void check_element(const types *t, kl_dtype acc, const run *r, int64_t i, int part, const products *p,
                          const char *text) {
  const kl_result *z = &r->r[0];
  kl_dtype out = part_of(t->out);
  __float128 sum = 0, sizes = 0;
  for (int64_t k = 0; k < p->n; k++) {
    __float128 x = (__float128)p->x[k] * p->y[k];
    sum += x;
    sizes += x < 0 ? -x : x;
  }
  uint64_t want = kl_float_encode(out, in_order(acc, parts(t->out), p)), got = result_bits(z, z->data.data, i, part);
  if (sum != 0)
    EXPECT(same_bits(out, got, want), "element %lld: %s, expected %s\n%s", (long long)i, bits_text(out, got),
           bits_text(out, want), text);
  for (int trial = 0; trial < 10; trial++) {
    uint64_t bits[2] = {result_bits(z, z->data.data, i, 0),
                        parts(t->out) == 2 ? result_bits(z, z->data.data, i, 1) : 0};
    bits[part] = kl_float_encode(out, device(acc, out, p));
    EXPECT(kl_result_allows(z, i, bits), "element %lld: %s refused, not in [%s, %s]\n%s", (long long)i,
           bits_text(out, bits[part]), bits_text(out, result_bits(z, z->lo, i, part)),
           bits_text(out, result_bits(z, z->hi, i, part)), text);
  }
  double lo = result_value(z, z->lo, i, part), hi = result_value(z, z->hi, i, part);
  double bound = (double)p->n * unit_of(acc) * (double)sizes, ulp = out == acc ? 0 : 4 * unit_of(out) * fabs(hi);
  if (!is_open(z, i) && isfinite(hi - lo))
    EXPECT(hi - lo <= 2.1 * bound + ulp, "element %lld: width %g, bound %g\n%s", (long long)i, hi - lo, bound, text);
}

// Integers wrap in the result; pred is or of ands.
static uint64_t naive_int(const types *t, const array *a, const int64_t *at, const array *b, const int64_t *bt,
                          int64_t n) {
  uint64_t sum = 0;
  for (int64_t k = 0; k < n; k++) {
    uint64_t x = (uint64_t)kl_int_decode(a->t, get(a, at[k], 0)), y = (uint64_t)kl_int_decode(b->t, get(b, bt[k], 0));
    sum = t->out == KILN_PRED ? sum | (x & y) : sum + x * y;
  }
  return sum & kl_int_mask(t->out);
}

// Element i of the result is the sum over k of a[at[k]] * b[bt[k]].
static void check_sum(const types *t, const run *r, int64_t i, const array *a, const int64_t *at, const array *b,
                      const int64_t *bt, int64_t n, const char *text) {
  const kl_result *z = &r->r[0];
  if (!floats(t->out)) {
    uint64_t want = naive_int(t, a, at, b, bt, n), got = result_bits(z, z->data.data, i, 0);
    EXPECT(want == got && z->lo == z->data.data, "element %lld: %s, expected %s\n%s", (long long)i,
           bits_text(t->out, got), bits_text(t->out, want), text);
    return;
  }
  products p = {0, malloc(sizeof(double) * 2 * ((size_t)n + 1)), malloc(sizeof(double) * 2 * ((size_t)n + 1))};
  for (int part = 0; part < parts(t->out); part++) {
    p.n = 0;
    for (int64_t k = 0; k < n; k++) add_product(&p, a, at[k], b, bt[k], part);
    check_element(t, sum_type(t), r, i, part, &p, text);
  }
  free(p.x), free(p.y);
}

// --- dot ----------------------------------------------------------------------------------------------------------

// Dimensions of an operand: kind 'b', 'c' or 'f' and a number within the kind.
typedef struct side {
  uint32_t rank;
  char kind[8];
  int which[8];
} side;

static void shuffle(side *s) {
  for (uint32_t k = s->rank; k > 1; k--) {
    uint32_t j = (uint32_t)below(k);
    char c = s->kind[j];
    int w = s->which[j];
    s->kind[j] = s->kind[k - 1], s->which[j] = s->which[k - 1];
    s->kind[k - 1] = c, s->which[k - 1] = w;
  }
}

static void add_dims(side *s, char kind, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) s->kind[s->rank] = kind, s->which[s->rank++] = (int)k;
}

// The dimensions of one kind, by their number.
static const char *dims_of(const side *s, char kind) {
  int64_t list[8];
  uint32_t n = 0;
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->kind[d] == kind) list[s->which[d]] = d, n++;
  return list_text(n, list, ",");
}

static int64_t element_of(const side *s, const array *a, const int64_t *batch, const int64_t *contracted,
                          const int64_t *free_index) {
  int64_t index[8], seen = 0;
  for (uint32_t d = 0; d < s->rank; d++)
    index[d] = s->kind[d] == 'b'   ? batch[s->which[d]]
               : s->kind[d] == 'c' ? contracted[s->which[d]]
                                   : free_index[seen++];
  return linear(s->rank, a->dims, index);
}

START_TEST(dot_dimensions) {
  const types *t = &type_cases[_i % (int)KL_COUNT(type_cases)];
  seed = (uint64_t)_i;
  int64_t extent[2][4], out_dims[8], contracted[4];
  uint32_t nb = (uint32_t)below(3), nc = (uint32_t)below(3), rank = 0;
  side l = {0}, r = {0};
  for (uint32_t k = 0; k < 4; k++) extent[0][k] = between(1, 3), extent[1][k] = _i % 9 == 8 ? below(3) : between(1, 4);
  add_dims(&l, 'b', nb), add_dims(&l, 'c', nc), add_dims(&l, 'f', (uint32_t)below(3)), shuffle(&l);
  add_dims(&r, 'b', nb), add_dims(&r, 'c', nc), add_dims(&r, 'f', (uint32_t)below(3)), shuffle(&r);
  int64_t ldims[8], rdims[8];
  for (uint32_t k = 0; k < nb; k++) out_dims[rank++] = extent[0][k];
  for (int which = 0; which < 2; which++) {
    side *s = which ? &r : &l;
    int64_t *dims = which ? rdims : ldims;
    for (uint32_t d = 0; d < s->rank; d++) {
      dims[d] = s->kind[d] == 'b' ? extent[0][s->which[d]] : s->kind[d] == 'c' ? extent[1][s->which[d]] : between(1, 4);
      if (s->kind[d] == 'f') out_dims[rank++] = dims[d];
    }
  }
  array a = new_array(t->lhs, l.rank, ldims), b = new_array(t->rhs, r.rank, rdims),
        out = new_array(t->out, rank, out_dims);
  bool whole = _i / (int)KL_COUNT(type_cases) % 2 == 0;
  fill_array(&a, !floats(t->lhs) ? FILL_WILD : whole ? FILL_SMALL : FILL_PLAIN);
  fill_array(&b, !floats(t->rhs) ? FILL_WILD : whole ? FILL_SMALL : FILL_PLAIN);
  char text[2000];
  sprintf(text,
          "HloModule m\nENTRY e { a = %s parameter(0) b = %s parameter(1) ROOT r = %s dot(a, b), lhs_batch_dims={%s}, "
          "lhs_contracting_dims={%s}, rhs_batch_dims={%s}, rhs_contracting_dims={%s} }",
          type_text(&a), type_text(&b), type_text(&out), dims_of(&l, 'b'), dims_of(&l, 'c'), dims_of(&r, 'b'),
          dims_of(&r, 'c'));
  array args[2] = {a, b};
  run got = evaluate(text, 2, args, true);
  int64_t n = 1, at[64], bt[64];
  for (uint32_t k = 0; k < nc; k++) n *= extent[1][k];
  for (int64_t i = 0; i < out.count; i++) {
    int64_t index[8], lfree = 0;
    unravel(rank, out_dims, i, index);
    for (uint32_t d = 0; d < l.rank; d++) lfree += l.kind[d] == 'f';
    for (int64_t k = 0; k < n; k++) {
      unravel(nc, extent[1], k, contracted);
      at[k] = element_of(&l, &a, index, contracted, index + nb);
      bt[k] = element_of(&r, &b, index, contracted, index + nb + lfree);
    }
    check_sum(t, &got, i, &a, at, &b, bt, n, text);
  }
  drop_run(&got);
  free(a.data), free(b.data), free(out.data);
}
END_TEST

// More than one block of rows and columns, several workers, sizes that no tile divides; several leaves.
START_TEST(dot_blocks) {
  static const types cases[] = {{KILN_F32, KILN_F32, KILN_F32},
                                {KILN_F64, KILN_F64, KILN_F64},
                                {KILN_C64, KILN_C64, KILN_C64},
                                {KILN_BF16, KILN_BF16, KILN_BF16},
                                {KILN_S32, KILN_S32, KILN_S32}};
  const types *t = &cases[_i % (int)KL_COUNT(cases)];
  enum { CASES = KL_COUNT(cases), MOST = 800 };
  bool deep = _i >= CASES;
  const int64_t M = deep ? 3 : 69, N = deep ? 2 : 35, K = deep ? 500 + 100 * (_i % 4) : 77;
  const int64_t ld[2] = {M, K}, rd[2] = {K, N}, od[2] = {M, N};
  array args[2] = {new_array(t->lhs, 2, ld), new_array(t->rhs, 2, rd)}, out = new_array(t->out, 2, od);
  seed = (uint64_t)_i;
  fill_array(&args[0], floats(t->lhs) ? FILL_PLAIN : FILL_WILD);
  fill_array(&args[1], floats(t->rhs) ? FILL_PLAIN : FILL_WILD);
  char text[1000];
  sprintf(text,
          "HloModule m\nENTRY e { a = %s parameter(0) b = %s parameter(1) ROOT r = %s dot(a, b), "
          "lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
          type_text(&args[0]), type_text(&args[1]), type_text(&out));
  run r = evaluate(text, 2, args, true);
  for (int64_t i = 0; i < M * N; i++) {
    int64_t at[MOST], bt[MOST];
    for (int64_t k = 0; k < K; k++) at[k] = i / N * K + k, bt[k] = k * N + i % N;
    check_sum(t, &r, i, &args[0], at, &args[1], bt, K, text);
  }
  drop_run(&r);
  free(args[0].data), free(args[1].data), free(out.data);
}
END_TEST

// Sums that leave the numbers in some order or in all: each order's result is allowed, and no sum is open without one
// that does.
typedef struct hard {
  kl_dtype t;
  int n;
  double x[4], y[4];
} hard;
static const hard hard_cases[] = {
    {KILN_F32, 3, {0x1p127, 0x1p127, -0x1p127}, {1, 1, 1}},
    {KILN_F32, 3, {0x1p127, -0x1p127, 1}, {1, 1, 1}},
    {KILN_F32, 2, {0x1p100, 0x1p100}, {0x1p100, -0x1p100}},
    {KILN_F32, 2, {INFINITY, 1}, {0, 1}},
    {KILN_F32, 2, {INFINITY, 1}, {2, 1}},
    {KILN_F32, 2, {INFINITY, -INFINITY}, {1, 1}},
    {KILN_F32, 2, {INFINITY, -0x1p120}, {1, 0x1p120}},
    {KILN_F32, 3, {NAN, 1, 2}, {1, 1, 1}},
    {KILN_F32, 1, {0x1.8p-80}, {0x1.4p-69}},
    {KILN_F32, 3, {0x1.8p-80, 0x1.8p-80, 0x1.234p-76}, {0x1.4p-69, -0x1.6p-68, 0x1.1p-72}},
    {KILN_F32, 3, {0x1.6p-80, 0x1.6p-80, 0x1.6p-80}, {0x1p-69, 0x1p-69, 0x1p-69}},
    {KILN_F32, 3, {0, 0, 0}, {1, -1, 2}},
    {KILN_F32, 4, {1, 1, -1, 0x1p-30}, {1, 0x1p-24, 1, 1}},
    {KILN_F32, 4, {3, 5, 1.1f, 1.7f}, {1, 2, 1.3f, 1.9f}},
    {KILN_F64, 3, {0x1p1000, 0x1p1000, -0x1p1000}, {0x1p23, 0x1p23, 0x1p23}},
    {KILN_F64, 2, {0x1p1000, 0x1p1000}, {0x1p1000, -0x1p1000}},
    {KILN_F64, 3, {0x1p1000, 1, -0x1p1000}, {0x1p20, 1, 0x1p20}},
    {KILN_F64, 2, {INFINITY, -0x1p1000}, {1, 0x1p1000}},
    {KILN_F64, 2, {INFINITY, 3}, {0, 1}},
    {KILN_F64, 3, {1.1, 1.7, -1.3}, {1.9, 1.01, 1.00001}},
    {KILN_F64, 3, {0x1.8p-600, 0x1.1p-590, 1}, {0x1.8p-470, 0x1.3p-480, 0x1p-1070}},
};

START_TEST(dot_hard) {
  const hard *h = &hard_cases[_i];
  const int64_t dims[1] = {h->n};
  array args[2] = {new_array(h->t, 1, dims), new_array(h->t, 1, dims)};
  double terms[4];
  char text[1000];
  static outcomes all;
  for (int k = 0; k < h->n; k++) {
    put(&args[0], k, 0, kl_float_encode(h->t, h->x[k]));
    put(&args[1], k, 0, kl_float_encode(h->t, h->y[k]));
    terms[k] = round_to(h->t, value(&args[0], k, 0) * value(&args[1], k, 0));
  }
  all_orders(false, h->t, h->n, terms, &all);
  sprintf(text,
          "HloModule m\nENTRY e { a = %s parameter(0) b = %s parameter(1) ROOT r = %s[] dot(a, b), "
          "lhs_contracting_dims={0}, rhs_contracting_dims={0} }",
          type_text(&args[0]), type_text(&args[1]), kiln_dtype_name(h->t));
  run r = evaluate(text, 2, args, true);
  const kl_result *z = &r.r[0];
  expect_all_allowed(z, h->t, &all);
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

// Operands that are inexact themselves, floats and integers made of them.
START_TEST(dot_inexact) {
  static const struct {
    kl_dtype t, out;
    const char *chain;
  } cases[] = {
      {KILN_F32, KILN_F32,
       "h = f32[6,9] exponential(a) c = f32[] constant(64) d = f32[6,9] broadcast(c), dimensions={} "
       "g = f32[6,9] multiply(h, d) x = f32[6,9] sine(g)"},
      {KILN_F64, KILN_F64,
       "h = f64[6,9] exponential(a) c = f64[] constant(64) d = f64[6,9] broadcast(c), dimensions={} "
       "g = f64[6,9] multiply(h, d) x = f64[6,9] sine(g)"},
      {KILN_F32, KILN_S32,
       "h = f32[6,9] exponential(a) c = f32[] constant(16777216) d = f32[6,9] broadcast(c), dimensions={} "
       "g = f32[6,9] multiply(h, d) x = s32[6,9] convert(g)"},
  };
  const char *tn = kiln_dtype_name(cases[_i].t), *on = kiln_dtype_name(cases[_i].out), *xn = _i == 2 ? "s32" : tn;
  const int64_t ld[2] = {6, 9}, rd[2] = {9, 4};
  array args[2] = {new_array(cases[_i].t, 2, ld), new_array(_i == 2 ? KILN_S32 : cases[_i].t, 2, rd)};
  char text[2000];
  fill_array(&args[0], FILL_PLAIN);
  fill_array(&args[1], _i == 2 ? FILL_SMALL : FILL_PLAIN);
  sprintf(text, "HloModule m\nENTRY e { a = %s[6,9] parameter(0) %s ROOT r = %s[6,9] copy(x) }", tn, cases[_i].chain,
          xn);
  run e = evaluate(text, 1, args, true);
  sprintf(text,
          "HloModule m\nENTRY e { a = %s[6,9] parameter(0) b = %s[9,4] parameter(1) %s ROOT r = %s[6,4] dot(x, b), "
          "lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
          tn, xn, cases[_i].chain, on);
  run r = evaluate(text, 2, args, true);
  EXPECT(r.r[0].lo != r.r[0].data.data, "exact");
  for (int64_t i = 0; i < 24; i++)
    for (int trial = 0; trial < 60; trial++) {
      double x[9], y[9], sum = 0;
      for (int k = 0; k < 9; k++) {
        bool high = trial == 0 || (trial > 1 && next_random() & 1);
        y[k] = value(&args[1], k * 4 + i % 4, 0);
        if (trial == 2) high = y[k] > 0;
        if (trial == 3) high = y[k] < 0;
        x[k] = result_value(&e.r[0], high ? e.r[0].hi : e.r[0].lo, i / 4 * 9 + k, 0);
        sum += x[k] * y[k];
      }
      uint64_t bits[2] = {0, 0};
      bits[0] = _i == 2 ? (uint64_t)(int64_t)sum & kl_int_mask(KILN_S32)
                        : kl_float_encode(cases[_i].out, device(cases[_i].out, cases[_i].out, &(products){9, x, y}));
      EXPECT(kl_result_allows(&r.r[0], i, bits), "element %d: %s refused, in [%s, %s]", (int)i,
             bits_text(cases[_i].out, bits[0]), bits_text(cases[_i].out, result_bits(&r.r[0], r.r[0].lo, i, 0)),
             bits_text(cases[_i].out, result_bits(&r.r[0], r.r[0].hi, i, 0)));
      EXPECT(!is_open(&r.r[0], i), "open");
      double lo = result_value(&r.r[0], r.r[0].lo, i, 0), hi = result_value(&r.r[0], r.r[0].hi, i, 0), scale = 0;
      for (int k = 0; k < 9; k++) scale += fabs(x[k] * y[k]);
      EXPECT(hi - lo <= scale * 200 * unit_of(cases[_i].t) + 9 * 6000 * unit_of(cases[_i].t), "wide: %g beside %g",
             hi - lo, scale);
    }
  drop_run(&r);
  drop_run(&e);
  free(args[0].data), free(args[1].data);
}
END_TEST

// Zero times infinity for all that is known of x, which may as well be another number.
START_TEST(dot_inexact_infinity) {
  const int64_t dims[1] = {2};
  array args[2] = {new_array(KILN_F32, 1, dims), new_array(KILN_F32, 1, dims)};
  const float x[2] = {1, 1}, y[2] = {INFINITY, 1};
  memcpy(args[0].data, x, sizeof x);
  memcpy(args[1].data, y, sizeof y);
  run r = evaluate(
      "HloModule m\nENTRY e { a = f32[2] parameter(0) b = f32[2] parameter(1) s = f32[2] sine(a) "
      "t = f32[2] sine(a) "
      "x = f32[2] subtract(s, t) ROOT r = f32[] dot(x, b), lhs_contracting_dims={0}, rhs_contracting_dims={0} }",
      2, args, true);
  EXPECT(is_open(&r.r[0], 0), "closed");
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

// --- algorithms ---------------------------------------------------------------------------------------------------

// x with `man` mantissa bits, to nearest or cut off.
static double with_bits(double x, int man, bool nearest) {
  int e;
  double m = frexp(x, &e) * ldexp(1, man + 1);
  return ldexp(nearest ? rint(m) : trunc(m), e - man - 1);
}

START_TEST(dot_algorithms) {
  static const struct {
    const char *name;
    kl_dtype acc;
    int man;    // of operands; 0: as they are
    int splits; // products of so many pieces each
    int leave;  // those of pieces i + j >= leave are left out
  } cases[] = {
      {"dot_tf32_tf32_f32", KILN_F32, 10, 1, 1},    {"dot_bf16_bf16_f32", KILN_F32, 7, 1, 1},
      {"dot_f16_f16_f32", KILN_F32, 10, 1, 1},      {"dot_f16_f16_f16", KILN_F16, 10, 1, 1},
      {"dot_bf16_bf16_bf16", KILN_BF16, 7, 1, 1},   {"dot_bf16_bf16_f32_x3", KILN_F32, 7, 2, 2},
      {"dot_bf16_bf16_f32_x6", KILN_F32, 7, 3, 3},  {"dot_bf16_bf16_f32_x9", KILN_F32, 7, 3, 9},
      {"dot_tf32_tf32_f32_x3", KILN_F32, 10, 2, 2}, {"dot_f32_f32_f32", KILN_F32, 0, 1, 1},
      {"dot_f64_f64_f64", KILN_F64, 0, 1, 1},
  };
  enum { K = 33 };
  const int64_t dims[1] = {K};
  array args[2] = {new_array(KILN_F32, 1, dims), new_array(KILN_F32, 1, dims)};
  char text[1000];
  fill_array(&args[0], FILL_PLAIN);
  fill_array(&args[1], FILL_PLAIN);
  sprintf(text,
          "HloModule m\nENTRY e { a = f32[33] parameter(0) b = f32[33] parameter(1) ROOT r = f32[] dot(a, b), "
          "lhs_contracting_dims={0}, rhs_contracting_dims={0}, algorithm=%s }",
          cases[_i].name);
  run r = evaluate(text, 2, args, true);
  const kl_result *z = &r.r[0];
  double lo = result_value(z, z->lo, 0, 0), hi = result_value(z, z->hi, 0, 0), sizes = 0;
  for (int trial = 0; trial < 200; trial++) {
    double x[9 * K], y[9 * K];
    int64_t n = 0;
    bool nearest = trial & 1;
    sizes = 0;
    for (int k = 0; k < K; k++) {
      double a = value(&args[0], k, 0), b = value(&args[1], k, 0), pa[3] = {a, 0, 0}, pb[3] = {b, 0, 0};
      for (int s = 0; s < cases[_i].splits && cases[_i].man; s++) {
        pa[s] = with_bits(a, cases[_i].man, nearest), a -= pa[s];
        pb[s] = with_bits(b, cases[_i].man, nearest), b -= pb[s];
      }
      sizes += fabs(value(&args[0], k, 0) * value(&args[1], k, 0));
      for (int i = 0; i < cases[_i].splits; i++)
        for (int j = 0; j < cases[_i].splits; j++)
          if (i + j < cases[_i].leave) x[n] = pa[i], y[n++] = pb[j];
    }
    uint64_t bits[2] = {kl_float_encode(KILN_F32, device(cases[_i].acc, KILN_F32, &(products){n, x, y})), 0};
    EXPECT(kl_result_allows(z, 0, bits), "%s: %s refused, in [%g, %g]", cases[_i].name, bits_text(KILN_F32, bits[0]),
           lo, hi);
  }
  double unit = fmax(unit_of(cases[_i].acc) * K, cases[_i].splits > 1 ? 0x1p-13
                                                 : cases[_i].man      ? ldexp(1, 1 - cases[_i].man)
                                                                      : 0);
  EXPECT(hi - lo <= 4.5 * unit * sizes && !is_open(z, 0), "%s: width %g, unit %g", cases[_i].name, hi - lo,
         unit * sizes);
  drop_run(&r);
  free(args[0].data), free(args[1].data);
}
END_TEST

// --- ragged, scaled -----------------------------------------------------------------------------------------------

// Mode 0: rows belong to groups. 1: the depth is divided. 2: batches are. With and without another batch.
START_TEST(ragged_dot) {
  static const types t = {KILN_F32, KILN_F32, KILN_F32};
  int mode = _i % 3, batches = _i / 3 % 2 ? 2 : 1;
  enum { M = 7, K = 5, N = 4, G = 3 };
  const int64_t ld[3] = {batches, M, K}, rd0[4] = {G, batches, K, N}, rd1[3] = {batches, K, N}, gd[2] = {batches, G};
  const int64_t od0[3] = {batches, M, N}, od1[4] = {G, batches, M, N};
  array args[3] = {new_array(KILN_F32, 3, ld), mode == 0 ? new_array(KILN_F32, 4, rd0) : new_array(KILN_F32, 3, rd1),
                   new_array(KILN_S32, 2, gd)};
  array out = mode == 1 ? new_array(KILN_F32, 4, od1) : new_array(KILN_F32, 3, od0);
  static const int sizes[2][G] = {{2, 0, 3}, {1, 9, 2}}; // the second list asks for more than there is
  char text[2000];
  seed = (uint64_t)_i;
  fill_array(&args[0], FILL_SMALL);
  fill_array(&args[1], FILL_SMALL);
  for (int64_t i = 0; i < args[2].count; i++) put(&args[2], i, 0, (uint64_t)sizes[(i / G + _i / 6) % 2][i % G]);
  sprintf(text,
          "HloModule m\nENTRY e { a = %s parameter(0) b = %s parameter(1) g = %s parameter(2) ROOT r = %s "
          "ragged-dot(a, b, g), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={%d}, "
          "rhs_contracting_dims={%d}, lhs_ragged_dims={%d}%s }",
          type_text(&args[0]), type_text(&args[1]), type_text(&args[2]), type_text(&out), mode == 0, mode == 0 ? 2 : 1,
          mode == 0   ? 1
          : mode == 1 ? 2
                      : 0,
          mode == 0 ? ", rhs_group_dims={0}" : ", rhs_group_dims={}");
  run r = evaluate(text, 3, args, true);
  for (int64_t i = 0; i < out.count; i++) {
    int64_t index[4], at[K], bt[K], n = 0, from = 0;
    unravel(out.rank, out.dims, i, index);
    const int64_t *tail = index + (mode == 1); // batch, row, column
    int64_t group = -1, first[G + 1];
    for (int64_t g = 0; g < G; g++) {
      int64_t whole = mode == 0 ? M : K, size = sizes[(tail[0] + _i / 6) % 2][g];
      first[g] = from;
      from = from + size > whole ? whole : from + size;
      if (mode == 0 && tail[1] >= first[g] && tail[1] < from) group = g;
    }
    first[G] = from;
    for (int64_t k = 0; k < K; k++) {
      if (mode == 0 && group < 0) continue;
      if (mode == 1 && (k < first[index[0]] || k >= first[index[0] + 1])) continue;
      at[n] = (tail[0] * M + tail[1]) * K + k;
      bt[n++] = mode == 0 ? ((group * batches + tail[0]) * K + k) * N + tail[2] : (tail[0] * K + k) * N + tail[2];
    }
    check_sum(&t, &r, i, &args[0], at, &args[1], bt, n, text);
    if (n == 0) EXPECT(result_value(&r.r[0], r.r[0].data.data, i, 0) == 0, "element %d of no group\n%s", (int)i, text);
  }
  drop_run(&r);
  for (int k = 0; k < 3; k++) free(args[k].data);
  free(out.data);
}
END_TEST

START_TEST(scaled_dot) {
  const int64_t ld[2] = {3, 64}, rd[2] = {64, 5}, ls[2] = {3, 2}, rs[2] = {4, 5};
  static const struct {
    kl_dtype operand, scale;
  } cases[] = {{KILN_F8E4M3FN, KILN_F8E8M0FNU}, {KILN_F4E2M1FN, KILN_F8E4M3FN}, {KILN_BF16, KILN_F32}};
  kl_dtype t = cases[_i].operand, st = cases[_i].scale;
  array args[4] = {new_array(t, 2, ld), new_array(t, 2, rd), new_array(st, 2, ls), new_array(st, 2, rs)};
  char text[1000];
  fill_array(&args[0], FILL_SMALL);
  fill_array(&args[1], FILL_SMALL);
  for (int k = 2; k < 4; k++)
    for (int64_t i = 0; i < args[k].count; i++) put(&args[k], i, 0, kl_float_encode(st, ldexp(1, (int)between(-2, 3))));
  sprintf(text,
          "HloModule m\nENTRY e { a = %s parameter(0) b = %s parameter(1) c = %s parameter(2) d = %s parameter(3) "
          "ROOT r = f32[3,5] scaled-dot(a, b, c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
          type_text(&args[0]), type_text(&args[1]), type_text(&args[2]), type_text(&args[3]));
  run r = evaluate(text, 4, args, true);
  for (int64_t i = 0; i < 15; i++) {
    double sum = 0;
    for (int64_t k = 0; k < 64; k++)
      sum += value(&args[0], i / 5 * 64 + k, 0) * value(&args[2], i / 5 * 2 + k / 32, 0) *
             value(&args[1], k * 5 + i % 5, 0) * value(&args[3], k / 16 * 5 + i % 5, 0);
    EXPECT(result_value(&r.r[0], r.r[0].data.data, i, 0) == sum, "element %d: %g", (int)i, sum);
  }
  drop_run(&r);
  for (int k = 0; k < 4; k++) free(args[k].data);
}
END_TEST

// --- convolution --------------------------------------------------------------------------------------------------

typedef struct conv {
  int spatial, groups, batch_groups;
  int64_t batch, channels, features; // of the input; of the kernel; of the result
  int64_t extent[3], size[3], stride[3], low[3], high[3], base[3], hole[3], reversed[3], places[3];
} conv;

static bool random_conv(conv *c) {
  c->spatial = (int)below(4);
  c->groups = (int)between(1, 3), c->batch_groups = 1;
  if (below(3) == 0) c->batch_groups = c->groups, c->groups = 1;
  c->batch = c->batch_groups * between(1, 2);
  c->channels = between(1, 3);
  c->features = c->groups * c->batch_groups * between(1, 3);
  for (int d = 0; d < c->spatial; d++) {
    c->extent[d] = between(1, 5), c->size[d] = between(1, 3), c->stride[d] = between(1, 2);
    c->low[d] = between(-2, 3), c->high[d] = between(-2, 3);
    c->base[d] = between(1, 3), c->hole[d] = between(1, 2), c->reversed[d] = below(2);
    int64_t all = (c->extent[d] - 1) * c->base[d] + 1 + c->low[d] + c->high[d],
            reach = (c->size[d] - 1) * c->hole[d] + 1;
    if (all < reach) return false;
    c->places[d] = (all - reach) / c->stride[d] + 1;
  }
  return true;
}

// A shuffled order of two letters and the spatial digits; dims gets the extents in that order.
static void random_labels(char *labels, const char *letters, int spatial, int64_t first, int64_t second,
                          const int64_t *rest, int64_t *dims) {
  int n = spatial + 2;
  for (int k = 0; k < n; k++) labels[k] = k < 2 ? letters[k] : (char)('0' + k - 2);
  labels[n] = 0;
  for (int k = n; k > 1; k--) {
    int j = (int)below(k);
    char t = labels[j];
    labels[j] = labels[k - 1], labels[k - 1] = t;
  }
  for (int k = 0; k < n; k++)
    dims[k] = labels[k] == letters[0] ? first : labels[k] == letters[1] ? second : rest[labels[k] - '0'];
}

static int64_t label_index(const array *a, const char *labels, const char *letters, int64_t first, int64_t second,
                           const int64_t *rest) {
  int64_t index[8];
  for (uint32_t d = 0; d < a->rank; d++)
    index[d] = labels[d] == letters[0] ? first : labels[d] == letters[1] ? second : rest[labels[d] - '0'];
  return linear(a->rank, a->dims, index);
}

static void conv_window(char *to, const conv *c) {
  to[0] = 0;
  if (!c->spatial) return;
  uint32_t n = (uint32_t)c->spatial;
  to += sprintf(to, "window={size=%s stride=%s pad=", list_text(n, c->size, "x"), list_text(n, c->stride, "x"));
  for (uint32_t d = 0; d < n; d++) to += sprintf(to, "%s%d_%d", d ? "x" : "", (int)c->low[d], (int)c->high[d]);
  sprintf(to, " lhs_dilate=%s rhs_dilate=%s rhs_reversal=%s}, ", list_text(n, c->base, "x"), list_text(n, c->hole, "x"),
          list_text(n, c->reversed, "x"));
}

START_TEST(convolution) {
  const types *t = &type_cases[_i % (int)KL_COUNT(type_cases)];
  conv c = {0};
  seed = 1000 + (uint64_t)_i;
  while (!random_conv(&c)) c = (conv){0};
  char il[8], kl[8], ol[8], window[600], text[3000];
  int64_t id[8], kd[8], od[8];
  random_labels(il, "bf", c.spatial, c.batch, c.channels * c.groups, c.extent, id);
  random_labels(kl, "io", c.spatial, c.channels, c.features, c.size, kd);
  random_labels(ol, "bf", c.spatial, c.batch / c.batch_groups, c.features, c.places, od);
  uint32_t rank = (uint32_t)c.spatial + 2;
  array args[2] = {new_array(t->lhs, rank, id), new_array(t->rhs, rank, kd)}, out = new_array(t->out, rank, od);
  bool whole = _i / (int)KL_COUNT(type_cases) % 2 == 0;
  for (int k = 0; k < 2; k++) fill_array(&args[k], !floats(args[k].t) ? FILL_WILD : whole ? FILL_SMALL : FILL_PLAIN);
  conv_window(window, &c);
  sprintf(text,
          "HloModule m\nENTRY e { a = %s parameter(0) b = %s parameter(1) ROOT r = %s convolution(a, b), "
          "%sdim_labels=%s_%s->%s, "
          "feature_group_count=%d, batch_group_count=%d }",
          type_text(&args[0]), type_text(&args[1]), type_text(&out), window, il, kl, ol, c.groups, c.batch_groups);
  run r = evaluate(text, 2, args, true);
  int64_t taps = 1, count = out.count, places = 1;
  for (int d = 0; d < c.spatial; d++) taps *= c.size[d], places *= c.places[d];
  for (int64_t i = 0; i < count; i++) {
    // Batch, feature and place of this element.
    int64_t b = i / (places * c.features), f = i / places % c.features, place[3], at[128], bt[128], n = 0;
    unravel((uint32_t)c.spatial, c.places, i % places, place);
    int64_t group = f / (c.features / (c.groups * c.batch_groups));
    for (int64_t tap = 0; tap < taps; tap++) {
      int64_t k[3], from[3];
      bool in = true;
      unravel((uint32_t)c.spatial, c.size, tap, k);
      for (int d = 0; d < c.spatial; d++) {
        int64_t p = place[d] * c.stride[d] + k[d] * c.hole[d] - c.low[d];
        if (c.reversed[d]) k[d] = c.size[d] - 1 - k[d];
        from[d] = -1;
        for (int64_t x = 0; x < c.extent[d]; x++)
          if (x * c.base[d] == p) from[d] = x;
        in &= from[d] >= 0;
      }
      for (int64_t ch = 0; ch < c.channels && in; ch++) {
        int64_t image = c.batch_groups > 1 ? group * (c.batch / c.batch_groups) + b : b;
        int64_t channel = c.batch_groups > 1 ? ch : group * c.channels + ch;
        at[n] = label_index(&args[0], il, "bf", image, channel, from);
        bt[n++] = label_index(&args[1], kl, "io", ch, f, k);
      }
    }
    check_sum(t, &r, label_index(&out, ol, "bf", b, f, place), &args[0], at, &args[1], bt, n, text);
  }
  drop_run(&r);
  free(args[0].data), free(args[1].data), free(out.data);
}
END_TEST

// Without elements, however large the other extents: sums of nothing, or nothing at all.
START_TEST(dot_without_elements) {
  static const struct {
    const char *lhs, *rhs, *out, *dims;
    int64_t count;
  } rows[] = {
      {"f32[2,0,100000000]", "f32[0,100000000,3]", "f32[2,3]", "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}",
       6},
      {"f32[2,100000000,0]", "f32[100000000,0,3]", "f32[2,3]", "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}",
       6},
      {"f32[0,100000000,2]", "f32[0,100000000,2]", "f32[0,100000000]",
       "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}", 0},
      {"f32[0,100000000,2]", "f32[3,2]", "f32[0,100000000,3]", "lhs_contracting_dims={2}, rhs_contracting_dims={1}", 0},
  };
  for (int on = 0; on < 2; on++) {
    char text[600];
    array args[2] = {new_array(KILN_F32, 0, NULL), new_array(KILN_F32, 2, (int64_t[]){3, 2})};
    snprintf(text, sizeof text,
             "HloModule m\nENTRY e { a = %s parameter(0) b = %s parameter(1) ROOT r = %s dot(a, b), %s }", rows[_i].lhs,
             rows[_i].rhs, rows[_i].out, rows[_i].dims);
    run r = evaluate(text, 2, args, on);
    ck_assert_int_eq(r.r[0].data.shape->count, rows[_i].count);
    for (int64_t i = 0; i < rows[_i].count; i++) ck_assert_uint_eq(result_bits(&r.r[0], r.r[0].data.data, i, 0), 0);
    drop_run(&r);
    free(args[0].data), free(args[1].data);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("eval_dot", EACH(make_context, drop_context), {dot_dimensions, 240}, {dot_blocks, 10},
                   {dot_hard, KL_COUNT(hard_cases)}, {dot_inexact, 3}, {dot_inexact_infinity},
                   {dot_without_elements, 4}, {dot_algorithms, 11}, {ragged_dot, 12}, {scaled_dot, 3},
                   {convolution, 240});
}
