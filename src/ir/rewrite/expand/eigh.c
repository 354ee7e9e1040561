// Eigenvalues and eigenvectors of Hermitian matrices by Jacobi's rotations: A = V diag(w) V^H, w ascending. A round
// rotates all pairs of a tournament's round, a sweep is all rounds, and sweeps end where the sum of squares beside the
// diagonal is nothing to the sum of all.
//
// A rotation is made of the two rows' elements in an order that makes elements (i, j) and (j, i) the same steps: what
// is Hermitian stays so bit by bit. An odd order has one more row and column, of zeros, which no rotation touches.
#include "ir/rewrite/expand/jacobi.h"

#include <math.h>

enum { MATRIX, VECTORS, PARTS }; // V^H

typedef struct order {
  int64_t b, n, even;
} order;

static order order_of(const kl_shape *s) {
  int64_t n = s->dims[s->rank - 1];
  return (order){kl_batches(s, 2), n, kl_even(n)};
}

static kl_columns columns_of(order o) {
  return (kl_columns){o.b, o.even, o.even, o.even - 1};
}

// --- a round --------------------------------------------------------------------------------------------------------

// Elements (row[i], i) of a [b, n, n].
static uint32_t of_columns(kl_graph *g, uint32_t a, uint32_t row, uint32_t i) {
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t n = s->dims[1];
  uint32_t at = kl_graph_binary(g, KL_OP_ADD, kl_graph_with(g, KL_OP_MULTIPLY, row, n), i);
  return kl_graph_take(g, kl_graph_reshape(g, a, 2, (int64_t[]){s->dims[0], n * n}), at);
}

static uint32_t sum(kl_graph *g, uint32_t a, uint32_t b) {
  return kl_graph_binary(g, KL_OP_ADD, a, b);
}

static uint32_t product(kl_graph *g, uint32_t a, uint32_t b) {
  return kl_graph_binary(g, KL_OP_MULTIPLY, a, b);
}

// J^H a J with zeros for the pairs. With f = 1 - cosine and q whom i or j meets, element (i, j) is
// a_ij + (f_i f_j - (f_i + f_j)) a_ij + s_i* s_j a_qq + ((1 - f_i) s_j a_iq + s_i* (1 - f_j) a_qj).
static uint32_t rotated(kl_graph *g, kl_pairs p, kl_rotation r, uint32_t a, uint32_t own) {
  uint32_t below = kl_graph_take(g, a, p.other), right = kl_graph_take_columns(g, a, p.other);
  uint32_t both = kl_graph_take_columns(g, below, p.other), one = kl_one_like(g, r.off);
  uint32_t cosine = kl_graph_binary(g, KL_OP_SUBTRACT, one, r.off);
  uint32_t ci = kl_along(g, cosine, a, 1), cj = kl_along(g, cosine, a, 2);
  uint32_t fi = kl_along(g, r.off, a, 1), fj = kl_along(g, r.off, a, 2);
  uint32_t si = kl_along(g, kl_conjugate(g, r.sine), a, 1), sj = kl_along(g, r.sine, a, 2);
  uint32_t off = kl_graph_binary(g, KL_OP_SUBTRACT, product(g, fi, fj), sum(g, fi, fj));
  uint32_t more = sum(g, kl_scaled(g, a, off), product(g, product(g, si, sj), both));
  uint32_t across = sum(g, product(g, kl_scaled(g, sj, ci), right), product(g, kl_scaled(g, si, cj), below));
  uint32_t all = sum(g, a, sum(g, more, across));
  uint32_t j = kl_graph_iota(g, KILN_S32, 3, kl_graph_shape(g, a)->dims, 2);
  uint32_t meets = kl_graph_compare(g, KL_EQ, kl_along(g, p.other, j, 1), j);
  all = kl_graph_select(g, meets, kl_zero_like(g, all), all);
  uint32_t left = kl_graph_binary(g, KL_OP_SUBTRACT, own, r.less);
  if (kl_has_parts(g, a)) left = kl_graph_complex(g, left, kl_zero_like(g, left));
  return kl_graph_select(g, kl_rows_to_columns(g, KL_EQ, a), kl_along(g, left, a, 1), all);
}

// An element this small is made zero without a rotation, whose angle what lies below the normal numbers would lead
// away.
static double nothing(kl_dtype t) {
  return pow(kl_unit_of(t), 3);
}

static uint32_t write_round(kl_graph *g, kl_columns z, uint32_t state) {
  kl_round x = kl_round_begin(g, z, kl_graph_element(g, state, 0));
  uint32_t a = kl_graph_element(g, state, 1 + MATRIX), v = kl_graph_element(g, state, 1 + VECTORS);
  kl_pairs p = kl_pairs_of(&x);
  uint32_t own = kl_real_part(g, of_columns(g, a, x.at, x.at)), h = of_columns(g, a, p.other, x.at);
  uint32_t size = kl_graph_unary(g, KL_OP_ABS, h);
  uint32_t none = kl_graph_compare(g, KL_LE, size, kl_float_like(g, size, nothing(kl_graph_shape(g, a)->dtype)));
  kl_rotation r = kl_rotation_of(g, p, own, kl_graph_take(g, own, p.other), h, none);
  uint32_t next[] = {kl_graph_with(g, KL_OP_ADD, x.k, 1), rotated(g, p, r, a, own), kl_rotate_rows(g, p, r, v)};
  return kl_graph_tuple(g, 1 + PARTS, next);
}

// --- sweeps ---------------------------------------------------------------------------------------------------------

// Of each matrix: is there anything beside the diagonal, [b]?
static uint32_t is_left(kl_graph *g, uint32_t a) {
  static const int64_t both[] = {1, 2};
  double u = kl_unit_of(kl_graph_shape(g, a)->dtype);
  uint32_t squares = kl_square(g, a);
  uint32_t beside = kl_graph_select(g, kl_rows_to_columns(g, KL_NE, a), squares, kl_zero_like(g, squares));
  uint32_t all = kl_graph_reduce_over(g, squares, 2, both, KL_COMBINE_ADD);
  beside = kl_graph_reduce_over(g, beside, 2, both, KL_COMBINE_ADD);
  return kl_graph_compare(g, KL_GT, beside, kl_graph_binary(g, KL_OP_MULTIPLY, all, kl_float_like(g, all, u * u)));
}

static uint32_t any_left(kl_graph *g, uint32_t a) {
  return kl_graph_reduce(g, is_left(g, a), 0, KL_COMBINE_OR);
}

static uint32_t sweep(kl_graph *g, uint32_t *parts) {
  uint32_t state[] = {kl_graph_number(g, KILN_S32, 0, 0, NULL), parts[MATRIX], parts[VECTORS]};
  uint32_t end = kl_graph_while(g, kl_graph_tuple(g, 1 + PARTS, state));
  for (uint32_t i = 0; i < PARTS; i++) parts[i] = kl_graph_element(g, end, 1 + i);
  return any_left(g, parts[MATRIX]);
}

void kl_expand_eigh_computations(kl_graph *g, const kl_shape *s) {
  order o = order_of(s);
  kl_dtype part = kl_is_complex(s->dtype) ? kl_info(s->dtype)->part : s->dtype;
  const kl_shape *matrix = kl_graph_array(g, s->dtype, 3, (int64_t[]){o.b, o.even, o.even});
  const kl_shape *parts[] = {matrix, matrix};
  const kl_shape *round[] = {kl_graph_array(g, KILN_S32, 0, NULL), matrix, matrix};
  if (!s->count) return;
  kl_graph_combiner(g, KL_COMBINE_ADD, s->dtype);
  kl_graph_combiner(g, KL_COMBINE_ADD, part);
  kl_graph_combiner(g, KL_COMBINE_MAX, part);
  kl_graph_combiner(g, KL_COMBINE_MAX, KILN_S32);
  kl_graph_combiner(g, KL_COMBINE_OR, KILN_PRED);
  kl_loop_over_columns(g, columns_of(o), kl_shape_tuple(g->m, 1 + PARTS, round), write_round);
  kl_add_sweeps(g, kl_sweeps_of(g, PARTS, parts), sweep);
}

// --- results --------------------------------------------------------------------------------------------------------

// As the triangle that is named has it.
static uint32_t hermitian(kl_graph *g, uint32_t a, bool lower) {
  uint32_t all = kl_graph_select(g, kl_rows_to_columns(g, lower ? KL_GE : KL_LE, a), a, kl_adjoint(g, a));
  if (!kl_has_parts(g, a)) return all;
  uint32_t re = kl_real_part(g, all);
  return kl_graph_select(g, kl_rows_to_columns(g, KL_EQ, a), kl_graph_complex(g, re, kl_zero_like(g, re)), all);
}

uint32_t kl_expand_eigh(kl_graph *g, uint32_t given, bool lower, const kl_shape *results) {
  const kl_shape *s = kl_graph_shape(g, given), *info = results->elems[2], *list = results->elems[1];
  order o = order_of(s);
  if (!s->count)
    return kl_graph_tuple(g, 3,
                          (uint32_t[]){given, kl_graph_number(g, list->dtype, 0, list->rank, list->dims),
                                       kl_graph_number(g, KILN_S32, 0, info->rank, info->dims)});
  uint32_t finite, a = hermitian(g, kl_graph_reshape(g, given, 3, (int64_t[]){o.b, o.n, o.n}), lower);
  uint32_t power = kl_power_of(g, a, &finite), parts[PARTS];
  a = kl_divided(g, a, power, finite);
  for (uint32_t d = 1; d < 3; d++) a = kl_graph_pad(g, a, d, 0, o.even - o.n);
  parts[MATRIX] = a;
  parts[VECTORS] = kl_unit_like(g, a);
  kl_run_sweeps(g, PARTS, parts, any_left(g, a));
  uint32_t i = kl_graph_iota(g, KILN_S32, 2, (int64_t[]){o.b, o.even}, 1);
  uint32_t diagonal = kl_first_of(g, kl_real_part(g, of_columns(g, parts[MATRIX], i, i)), 1, o.n);
  uint32_t sorted = kl_graph_topk(g, diagonal, o.n, false), values = kl_graph_element(g, sorted, 0);
  uint32_t rows = kl_first_of(g, kl_graph_take(g, parts[VECTORS], kl_graph_element(g, sorted, 1)), 2, o.n);
  rows = kl_graph_binary(g, KL_OP_MULTIPLY, rows, kl_along(g, kl_phases_of(g, rows), rows, 1));
  uint32_t vectors = kl_adjoint(g, rows);
  values = kl_or_nan(g, kl_graph_binary(g, KL_OP_MULTIPLY, values, kl_of_matrix(g, power, values)), finite);
  vectors = kl_or_nan(g, vectors, finite);
  uint32_t left = kl_graph_convert(g, is_left(g, parts[MATRIX]), KILN_S32);
  return kl_graph_tuple(g, 3,
                        (uint32_t[]){kl_graph_reshape(g, vectors, s->rank, s->dims),
                                     kl_graph_reshape(g, values, list->rank, list->dims),
                                     kl_graph_reshape(g, left, info->rank, info->dims)});
}
