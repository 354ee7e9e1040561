// Singular values and vectors, A = U diag(s) V^H, s descending, by one-sided Jacobi's rotations.
//
// Of a matrix with no more columns than rows, A = Q R first. Rotations from the left make the rows of R stand at right
// angles: T R = diag(s) V^H with T unitary, the product of them all, and U = Q T^H. What is carried is one array, R
// beside the unit matrix that becomes T. A row that is nothing to the largest has no direction; what V^H has there
// completes its other rows, by reflections. Other matrices are adjoints of such.
#include "ir/custom/custom.h"
#include "ir/rewrite/expand/jacobi.h"

#include <math.h>

typedef struct sizes {
  int64_t b, m, n, all; // m >= n; columns of U that are wanted
  bool vectors, wide;   // wide: of the adjoint
} sizes;

// --- a round --------------------------------------------------------------------------------------------------------

// Columns of R: all, or half of what is carried.
static int64_t order_of(const kl_shape *s) {
  int64_t rows = s->dims[1], columns = s->dims[2];
  return columns > rows ? columns / 2 : columns;
}

static uint32_t product(kl_graph *g, uint32_t a, uint32_t b) {
  return kl_graph_binary(g, KL_OP_MULTIPLY, a, b);
}

static uint32_t squares(kl_graph *g, uint32_t rows) {
  return kl_graph_reduce(g, kl_square(g, rows), 2, KL_COMBINE_ADD);
}

// The square of a row's length that is nothing where the largest element is 1 or more; what is summed up there is far
// from the least normal number.
static double nothing(kl_dtype t) {
  return t == KILN_F32 || t == KILN_C64 ? 0x1p-100 : 0x1p-900;
}

static uint32_t is_nothing(kl_graph *g, uint32_t square) {
  return kl_graph_compare(g, KL_LT, square, kl_float_like(g, square, nothing(kl_graph_shape(g, square)->dtype)));
}

static uint32_t write_round(kl_graph *g, kl_columns z, uint32_t state) {
  kl_round x = kl_round_begin(g, z, kl_graph_element(g, state, 0));
  uint32_t a = kl_graph_element(g, state, 1);
  uint32_t rows = kl_first_of(g, a, 2, order_of(kl_graph_shape(g, a)));
  kl_pairs p = kl_pairs_of(&x);
  uint32_t own = squares(g, rows), other = kl_graph_take(g, own, p.other);
  uint32_t h = product(g, kl_graph_take(g, rows, p.other), kl_conjugate(g, rows));
  h = kl_graph_reduce(g, h, 2, KL_COMBINE_ADD);
  uint32_t size = kl_graph_unary(g, KL_OP_ABS, h);
  uint32_t most = product(g, kl_graph_unary(g, KL_OP_SQRT, own), kl_graph_unary(g, KL_OP_SQRT, other));
  most = product(g, most, kl_float_like(g, most, kl_unit_of(kl_graph_shape(g, a)->dtype) / 4));
  uint32_t none = kl_graph_binary(g, KL_OP_OR, is_nothing(g, own), is_nothing(g, other));
  none = kl_graph_binary(g, KL_OP_OR, none, kl_graph_compare(g, KL_LE, size, most));
  kl_rotation r = kl_rotation_of(g, p, own, other, h, none);
  return kl_graph_tuple(g, 2, (uint32_t[]){kl_graph_with(g, KL_OP_ADD, x.k, 1), kl_rotate_rows(g, p, r, a)});
}

// --- sweeps ---------------------------------------------------------------------------------------------------------

// a b, or a b^T where both are summed over their last dimension, of batches.
static uint32_t dot(kl_graph *g, uint32_t a, uint32_t b, bool transposed) {
  static const int64_t numbers[] = {0, 1, 2};
  const kl_shape *s = kl_graph_shape(g, a), *t = kl_graph_shape(g, b);
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  more->lhs_batch = more->rhs_batch = (kl_ints){1, kl_arena_dup(&g->m->arena, numbers, sizeof *numbers)};
  more->lhs_contracting = (kl_ints){1, kl_arena_dup(&g->m->arena, numbers + 2, sizeof *numbers)};
  more->rhs_contracting = (kl_ints){1, kl_arena_dup(&g->m->arena, numbers + 1 + transposed, sizeof *numbers)};
  int64_t dims[] = {s->dims[0], s->dims[1], t->dims[transposed ? 1 : 2]};
  return kl_graph_dot(g, a, b, more, 0, s->dtype, 3, dims);
}

// Of each matrix: are there rows that are not at right angles, but for what sums of n products may be off?
static uint32_t is_left(kl_graph *g, uint32_t a) {
  static const int64_t both[] = {1, 2};
  int64_t n = order_of(kl_graph_shape(g, a));
  uint32_t rows = kl_first_of(g, a, 2, n), square = squares(g, rows);
  uint32_t size = kl_graph_unary(g, KL_OP_ABS, dot(g, rows, kl_conjugate(g, rows), true));
  uint32_t length = kl_graph_unary(g, KL_OP_SQRT, square), some = kl_graph_unary(g, KL_OP_NOT, is_nothing(g, square));
  double most = kl_unit_of(kl_graph_shape(g, a)->dtype) * (4 + 2 * sqrt((double)n));
  uint32_t right = product(g, kl_along(g, length, size, 1), kl_along(g, length, size, 2));
  uint32_t left = kl_graph_compare(g, KL_GT, size, product(g, right, kl_float_like(g, right, most)));
  left = kl_graph_binary(g, KL_OP_AND, left, kl_rows_to_columns(g, KL_LT, size));
  left = kl_graph_binary(g, KL_OP_AND, left, kl_along(g, some, size, 1));
  left = kl_graph_binary(g, KL_OP_AND, left, kl_along(g, some, size, 2));
  return kl_graph_reduce_over(g, left, 2, both, KL_COMBINE_OR);
}

static uint32_t any_left(kl_graph *g, uint32_t a) {
  return kl_graph_reduce(g, is_left(g, a), 0, KL_COMBINE_OR);
}

static uint32_t sweep(kl_graph *g, uint32_t *parts) {
  uint32_t state[] = {kl_graph_number(g, KILN_S32, 0, 0, NULL), parts[0]};
  parts[0] = kl_graph_element(g, kl_graph_while(g, kl_graph_tuple(g, 2, state)), 1);
  return any_left(g, parts[0]);
}

static const kl_shape *carried(kl_graph *g, kl_dtype t, const sizes *z) {
  return kl_graph_array(g, t, 3, (int64_t[]){z->b, kl_even(z->n), z->vectors ? 2 * z->n : z->n});
}

// --- matrices with no more columns than rows ------------------------------------------------------------------------

typedef struct factors {
  uint32_t values, u, vt, left; // [b, n], [b, m, all], [b, n, n], [b]
} factors;

// Rows of vt, [b, n, n], of length 1 and at right angles; from the first that `some` does not name on, any that are.
static uint32_t completed(kl_graph *g, uint32_t vt, uint32_t some) {
  uint32_t is = kl_along(g, some, vt, 1);
  vt = kl_graph_select(g, is, vt, kl_zero_like(g, vt));
  uint32_t qr = kl_expand_geqrf(g, kl_adjoint(g, vt));
  uint32_t q = kl_expand_orgqr(g, kl_graph_element(g, qr, 0), kl_graph_element(g, qr, 1));
  return kl_graph_select(g, is, vt, kl_adjoint(g, q));
}

static factors decompose(kl_graph *g, const sizes *z, uint32_t a) {
  uint32_t qr = kl_expand_geqrf(g, a), packed = kl_graph_element(g, qr, 0), q = 0;
  uint32_t r = kl_first_of(g, packed, 1, z->n);
  r = kl_graph_select(g, kl_rows_to_columns(g, KL_LE, r), r, kl_zero_like(g, r));
  if (z->vectors) {
    uint32_t wide = z->all > z->n ? kl_graph_pad(g, packed, 2, 0, z->all - z->n) : packed;
    q = kl_expand_orgqr(g, wide, kl_graph_element(g, qr, 1));
    r = kl_graph_concatenate(g, 2, (uint32_t[]){r, kl_unit_like(g, r)}, 2);
  }
  uint32_t part = kl_even(z->n) > z->n ? kl_graph_pad(g, r, 1, 0, 1) : r;
  if (z->n > 1) kl_run_sweeps(g, 1, &part, any_left(g, part));
  factors f = {.left = is_left(g, part)};
  uint32_t lengths = kl_graph_unary(g, KL_OP_SQRT, squares(g, kl_first_of(g, part, 2, z->n)));
  uint32_t sorted = kl_graph_topk(g, kl_first_of(g, lengths, 1, z->n), z->n, true);
  f.values = kl_graph_element(g, sorted, 0);
  if (!z->vectors) return f;
  uint32_t rows = kl_graph_take(g, part, kl_graph_element(g, sorted, 1)), vt = kl_first_of(g, rows, 2, z->n);
  uint32_t least = kl_float_like(g, f.values, sqrt(nothing(kl_graph_shape(g, a)->dtype)));
  uint32_t some = kl_graph_compare(g, KL_GE, f.values, least);
  uint32_t by = kl_along(g, kl_graph_select(g, some, f.values, kl_one_like(g, f.values)), vt, 1);
  uint32_t re = kl_graph_binary(g, KL_OP_DIVIDE, kl_real_part(g, vt), by), im = kl_imaginary_part(g, vt);
  if (im != KL_NO_PART) im = kl_graph_binary(g, KL_OP_DIVIDE, im, by);
  f.vt = completed(g, kl_number(g, re, im), some);
  uint32_t turned = kl_adjoint(g, kl_graph_slice(g, rows, 2, z->n, 2 * z->n, 1));
  f.u = dot(g, kl_first_of(g, q, 2, z->n), turned, false);
  if (z->all > z->n) f.u = kl_graph_concatenate(g, 2, (uint32_t[]){f.u, kl_graph_slice(g, q, 2, z->n, z->all, 1)}, 2);
  return f;
}

// --- calls ----------------------------------------------------------------------------------------------------------

static sizes sizes_of(const kl_shape *s, const kl_svd *form, const kl_shape *results) {
  int64_t m = s->dims[s->rank - 2], n = s->dims[s->rank - 1];
  sizes z = {kl_batches(s, 2), m, n, m, form->vectors, m < n};
  if (z.wide) z.m = n, z.n = m;
  const kl_shape *u = results->elems[form->u], *v = results->elems[form->v];
  if (!form->vectors)
    z.all = 0;
  else
    z.all = !z.wide ? u->dims[u->rank - 1] : v->dims[v->rank - (form->adjoint ? 2 : 1)];
  return z;
}

void kl_expand_svd_computations(kl_graph *g, const kl_shape *s, const kl_svd *form, const kl_shape *results) {
  sizes z = sizes_of(s, form, results);
  kl_dtype part = kl_is_complex(s->dtype) ? kl_info(s->dtype)->part : s->dtype;
  if (!s->count) return;
  const kl_shape *tall = kl_graph_array(g, s->dtype, 3, (int64_t[]){z.b, z.m, z.n});
  const kl_shape *square = kl_graph_array(g, s->dtype, 3, (int64_t[]){z.b, z.n, z.n});
  const kl_shape *both = carried(g, s->dtype, &z), *round[] = {kl_graph_array(g, KILN_S32, 0, NULL), both};
  kl_columns columns = {z.b, both->dims[1], both->dims[2], both->dims[1] - 1};
  kl_graph_combiner(g, KL_COMBINE_MAX, KILN_S32);
  kl_graph_combiner(g, KL_COMBINE_OR, KILN_PRED);
  kl_expand_qr_loop(g, tall, z.n, false);
  if (z.vectors) {
    kl_expand_qr_loop(g, kl_graph_array(g, s->dtype, 3, (int64_t[]){z.b, z.m, z.all}), z.n, true);
    kl_expand_qr_loop(g, square, z.n, false);
    kl_expand_qr_loop(g, square, z.n, true);
  }
  kl_graph_combiner(g, KL_COMBINE_ADD, part);
  if (z.n < 2) return;
  kl_loop_over_columns(g, columns, kl_shape_tuple(g->m, 2, round), write_round);
  kl_add_sweeps(g, kl_sweeps_of(g, 1, &both), sweep);
}

// List [b, k] with ones behind it, [b, n].
static uint32_t with_ones(kl_graph *g, uint32_t list, int64_t n) {
  const kl_shape *s = kl_graph_shape(g, list);
  int64_t more[] = {s->dims[0], n - s->dims[1]};
  if (!more[1]) return list;
  uint32_t ones = kl_one_like(g, kl_graph_number(g, s->dtype, 0, 2, more));
  return kl_graph_concatenate(g, 2, (uint32_t[]){list, ones}, 1);
}

// Of each row of vt, with the column of u beside it, the first element of at least 5/8 of the largest is made real and
// positive.
static void turn(kl_graph *g, int64_t k, uint32_t *u, uint32_t *vt) {
  uint32_t phases = kl_phases_of(g, kl_first_of(g, *vt, 1, k));
  uint32_t of_u = with_ones(g, kl_conjugate(g, phases), kl_graph_shape(g, *u)->dims[2]);
  uint32_t of_vt = with_ones(g, phases, kl_graph_shape(g, *vt)->dims[1]);
  *u = product(g, *u, kl_along(g, of_u, *u, 2));
  *vt = product(g, *vt, kl_along(g, of_vt, *vt, 1));
}

static uint32_t shaped(kl_graph *g, uint32_t v, const kl_shape *s) {
  return kl_graph_reshape(g, v, s->rank, s->dims);
}

static uint32_t unit(kl_graph *g, const kl_shape *s) {
  int64_t dims[] = {kl_batches(s, 2), s->dims[s->rank - 2], s->dims[s->rank - 1]};
  return shaped(g, kl_unit_like(g, kl_graph_number(g, s->dtype, 0, 3, dims)), s);
}

uint32_t kl_expand_svd(kl_graph *g, uint32_t given, const kl_svd *form, const kl_shape *results) {
  enum { GIVEN, VALUES, INFO = 4, RESULTS };
  const kl_shape *s = kl_graph_shape(g, given);
  uint32_t out[RESULTS], finite;
  sizes z = sizes_of(s, form, results);
  out[GIVEN] = given;
  for (uint32_t k = VALUES; k < RESULTS; k++) {
    const kl_shape *r = results->elems[k];
    bool ones = form->vectors && (k == form->u || k == form->v) && !s->count;
    if (!s->count || !form->vectors) out[k] = ones ? unit(g, r) : kl_graph_number(g, r->dtype, 0, r->rank, r->dims);
  }
  if (!s->count) return kl_graph_tuple(g, RESULTS, out);
  uint32_t a = kl_graph_reshape(g, given, 3, (int64_t[]){z.b, z.wide ? z.n : z.m, z.wide ? z.m : z.n});
  uint32_t power = kl_power_of(g, a, &finite);
  a = kl_divided(g, a, power, finite);
  factors f = decompose(g, &z, z.wide ? kl_adjoint(g, a) : a);
  f.values = product(g, f.values, kl_of_matrix(g, power, f.values));
  out[VALUES] = shaped(g, kl_or_nan(g, f.values, finite), results->elems[VALUES]);
  out[INFO] = shaped(g, kl_graph_convert(g, f.left, KILN_S32), results->elems[INFO]);
  if (!form->vectors) return kl_graph_tuple(g, RESULTS, out);
  uint32_t u = z.wide ? kl_adjoint(g, f.vt) : f.u, vt = z.wide ? kl_adjoint(g, f.u) : f.vt;
  turn(g, z.n, &u, &vt);
  out[form->u] = shaped(g, kl_or_nan(g, u, finite), results->elems[form->u]);
  vt = kl_or_nan(g, vt, finite);
  out[form->v] = shaped(g, form->adjoint ? vt : kl_adjoint(g, vt), results->elems[form->v]);
  return kl_graph_tuple(g, RESULTS, out);
}
