#include "ir/rewrite/expand/jacobi.h"

#include <math.h>

int64_t kl_even(int64_t n) {
  return n + (n & 1);
}

static kl_dtype part_of(kl_dtype t) {
  return kl_is_complex(t) ? kl_info(t)->part : t;
}

double kl_unit_of(kl_dtype t) {
  return ldexp(1, -kl_info(part_of(t))->man_bits - 1);
}

// --- matrices -------------------------------------------------------------------------------------------------------

uint32_t kl_along(kl_graph *g, uint32_t list, uint32_t to, int64_t dim) {
  return kl_graph_broadcast(g, list, 3, kl_graph_shape(g, to)->dims, (int64_t[]){0, dim});
}

uint32_t kl_rows_to_columns(kl_graph *g, kl_direction d, uint32_t a) {
  const kl_shape *s = kl_graph_shape(g, a);
  return kl_graph_compare(g, d, kl_graph_iota(g, KILN_S32, 3, s->dims, 1), kl_graph_iota(g, KILN_S32, 3, s->dims, 2));
}

uint32_t kl_unit_like(kl_graph *g, uint32_t a) {
  return kl_graph_select(g, kl_rows_to_columns(g, KL_EQ, a), kl_one_like(g, a), kl_zero_like(g, a));
}

uint32_t kl_adjoint(kl_graph *g, uint32_t a) {
  return kl_conjugate(g, kl_graph_transpose(g, a, (int64_t[]){0, 2, 1}));
}

uint32_t kl_first_of(kl_graph *g, uint32_t a, uint32_t dim, int64_t n) {
  return kl_graph_shape(g, a)->dims[dim] == n ? a : kl_graph_slice(g, a, dim, 0, n, 1);
}

uint32_t kl_power_of(kl_graph *g, uint32_t a, uint32_t *finite) {
  static const int64_t both[] = {1, 2};
  uint32_t most = kl_graph_reduce_over(g, kl_largest_part(g, a), 2, both, KL_COMBINE_MAX);
  kl_dtype t = kl_graph_shape(g, most)->dtype, bits = t == KILN_F64 ? KILN_U64 : KILN_U32;
  uint32_t exponent = kl_graph_bitcast(g, kl_float_like(g, most, INFINITY), bits);
  uint32_t power = kl_graph_binary(g, KL_OP_AND, kl_graph_bitcast(g, most, bits), exponent);
  double least = ldexp(1, 1 - kl_info(t)->bias);
  power = kl_graph_binary(g, KL_OP_MAXIMUM, kl_graph_bitcast(g, power, t), kl_float_like(g, most, least));
  *finite = kl_graph_compare(g, KL_LT, most, kl_float_like(g, most, INFINITY));
  return kl_graph_select(g, kl_graph_compare_with(g, KL_EQ, most, 0), kl_one_like(g, most), power);
}

uint32_t kl_of_matrix(kl_graph *g, uint32_t list, uint32_t to) {
  const kl_shape *s = kl_graph_shape(g, to);
  return kl_graph_broadcast(g, list, s->rank, s->dims, (int64_t[]){0});
}

uint32_t kl_divided(kl_graph *g, uint32_t a, uint32_t power, uint32_t finite) {
  uint32_t by = kl_of_matrix(g, power, a), im = kl_imaginary_part(g, a);
  uint32_t re = kl_graph_binary(g, KL_OP_DIVIDE, kl_real_part(g, a), by);
  if (im != KL_NO_PART) im = kl_graph_binary(g, KL_OP_DIVIDE, im, by);
  return kl_graph_select(g, kl_of_matrix(g, finite, a), kl_number(g, re, im), kl_zero_like(g, a));
}

uint32_t kl_or_nan(kl_graph *g, uint32_t v, uint32_t finite) {
  uint32_t nan = kl_float_like(g, kl_real_part(g, v), NAN);
  return kl_graph_select(g, kl_of_matrix(g, finite, v), v, kl_number(g, nan, kl_has_parts(g, v) ? nan : KL_NO_PART));
}

uint32_t kl_phases_of(kl_graph *g, uint32_t a) {
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t rows[] = {s->dims[0], s->dims[1]}, last = s->dims[2] - 1;
  uint32_t size = kl_graph_unary(g, KL_OP_ABS, a);
  uint32_t most = kl_along(g, kl_graph_reduce(g, size, 2, KL_COMBINE_MAX), a, 1);
  uint32_t eight = kl_graph_binary(g, KL_OP_MULTIPLY, size, kl_float_like(g, size, 8));
  uint32_t five = kl_graph_binary(g, KL_OP_MULTIPLY, most, kl_float_like(g, most, 5));
  uint32_t at = kl_graph_iota(g, KILN_S32, 3, s->dims, 2);
  uint32_t from_end = kl_graph_binary(g, KL_OP_SUBTRACT, kl_graph_number_like(g, at, last), at);
  uint32_t large = kl_graph_select(g, kl_graph_compare(g, KL_GE, eight, five), from_end, kl_zero_like(g, at));
  uint32_t first = kl_graph_reduce(g, large, 2, KL_COMBINE_MAX);
  uint32_t is = kl_graph_compare(g, KL_EQ, from_end, kl_along(g, first, from_end, 1));
  uint32_t head = kl_graph_reduce(g, kl_graph_select(g, is, a, kl_zero_like(g, a)), 2, KL_COMBINE_ADD);
  uint32_t length = kl_graph_unary(g, KL_OP_ABS, head), none = kl_graph_compare_with(g, KL_EQ, length, 0);
  length = kl_graph_select(g, none, kl_one_like(g, length), length);
  uint32_t re = kl_graph_binary(g, KL_OP_DIVIDE, kl_real_part(g, head), length), im = kl_imaginary_part(g, head);
  if (im != KL_NO_PART) im = kl_graph_binary(g, KL_OP_DIVIDE, kl_graph_unary(g, KL_OP_NEGATE, im), length);
  uint32_t phase = kl_number(g, re, im);
  return kl_graph_select(
      g, none, kl_graph_bits(g, s->dtype, (uint64_t[2]){kl_float_encode(part_of(s->dtype), 1), 0}, 2, rows), phase);
}

// --- rotations ------------------------------------------------------------------------------------------------------

// With n - 1 = m, i < m meets k - i mod m, and m whom that would be itself.
kl_pairs kl_pairs_of(const kl_round *x) {
  kl_graph *g = x->g;
  int64_t m = x->z.m - 1;
  uint32_t i = x->at, k = kl_everywhere(x, x->k, i), last = kl_graph_number_like(g, i, m);
  uint32_t other = kl_graph_binary(g, KL_OP_SUBTRACT, k, i);
  uint32_t wrapped = kl_graph_with(g, KL_OP_ADD, other, m);
  other = kl_graph_select(g, kl_graph_compare_with(g, KL_LT, other, 0), wrapped, other);
  other = kl_graph_select(g, kl_graph_compare(g, KL_EQ, other, i), last, other);
  uint32_t odd = kl_graph_compare_with(g, KL_EQ, kl_graph_with(g, KL_OP_AND, k, 1), 1);
  uint32_t twice = kl_graph_select(g, odd, kl_graph_with(g, KL_OP_ADD, k, m), k);
  uint32_t alone = kl_graph_with(g, KL_OP_SHR_LOGICAL, twice, 1);
  other = kl_graph_select(g, kl_graph_compare(g, KL_EQ, i, last), alone, other);
  return (kl_pairs){other, kl_graph_compare(g, KL_LT, i, other)};
}

// With w = (other - own) / 2|h|, the tangent is the root of t^2 + 2 w t = 1 of the least magnitude.
kl_rotation kl_rotation_of(kl_graph *g, kl_pairs p, uint32_t own, uint32_t other, uint32_t h, uint32_t none) {
  uint32_t size = kl_graph_unary(g, KL_OP_ABS, h), one = kl_one_like(g, size), zero = kl_zero_like(g, size);
  size = kl_graph_select(g, none, one, size);
  uint32_t w = kl_graph_binary(g, KL_OP_DIVIDE, kl_graph_binary(g, KL_OP_SUBTRACT, other, own),
                               kl_graph_binary(g, KL_OP_ADD, size, size));
  uint32_t root = kl_graph_binary(g, KL_OP_ADD, one, kl_graph_binary(g, KL_OP_MULTIPLY, w, w));
  uint32_t length = kl_graph_unary(g, KL_OP_ABS, w);
  root = kl_graph_binary(g, KL_OP_MINIMUM, kl_graph_unary(g, KL_OP_SQRT, root),
                         kl_graph_binary(g, KL_OP_ADD, one, length)); // where w^2 overflows
  root = kl_graph_binary(g, KL_OP_ADD, length, root);
  uint32_t t = kl_graph_binary(g, KL_OP_DIVIDE, one, root);
  uint32_t level = kl_graph_binary(g, KL_OP_AND, kl_graph_compare_with(g, KL_EQ, w, 0), p.first);
  uint32_t up = kl_graph_binary(g, KL_OP_OR, kl_graph_compare_with(g, KL_GT, w, 0), level);
  t = kl_graph_select(g, up, t, kl_graph_unary(g, KL_OP_NEGATE, t));
  t = kl_graph_select(g, none, zero, t);
  root = kl_graph_binary(g, KL_OP_ADD, one, kl_graph_binary(g, KL_OP_MULTIPLY, t, t));
  root = kl_graph_unary(g, KL_OP_SQRT, root); // 1 / cosine
  uint32_t sine = kl_graph_binary(g, KL_OP_DIVIDE, t, root), by = kl_graph_unary(g, KL_OP_NEGATE, sine);
  kl_rotation r;
  r.off = kl_graph_binary(g, KL_OP_DIVIDE, kl_graph_binary(g, KL_OP_MULTIPLY, t, sine),
                          kl_graph_binary(g, KL_OP_ADD, one, root));
  uint32_t phase = kl_graph_unary(g, KL_OP_SIGN, h);
  if (kl_has_parts(g, h)) {
    uint32_t re = kl_graph_binary(g, KL_OP_DIVIDE, kl_real_part(g, h), size);
    phase = kl_number(g, re, kl_graph_binary(g, KL_OP_DIVIDE, kl_imaginary_part(g, h), size));
  }
  r.sine = kl_scaled(g, phase, by);
  r.less = kl_graph_binary(g, KL_OP_MULTIPLY, t, size);
  return r;
}

uint32_t kl_rotate_rows(kl_graph *g, kl_pairs p, kl_rotation r, uint32_t a) {
  uint32_t by = kl_along(g, kl_conjugate(g, r.sine), a, 1);
  uint32_t turned = kl_graph_binary(g, KL_OP_MULTIPLY, by, kl_graph_take(g, a, p.other));
  uint32_t less = kl_scaled(g, a, kl_along(g, r.off, a, 1));
  return kl_graph_binary(g, KL_OP_ADD, a, kl_graph_binary(g, KL_OP_SUBTRACT, turned, less));
}

// --- sweeps ---------------------------------------------------------------------------------------------------------

enum { MOST_PARTS = 2 };

const kl_shape *kl_sweeps_of(kl_graph *g, uint32_t n, const kl_shape *const *parts) {
  const kl_shape *all[MOST_PARTS + 2] = {kl_graph_array(g, KILN_S32, 0, NULL)};
  for (uint32_t i = 0; i < n; i++) all[i + 1] = parts[i];
  all[n + 1] = kl_graph_array(g, KILN_PRED, 0, NULL);
  return kl_shape_tuple(g->m, n + 2, all);
}

void kl_add_sweeps(kl_graph *g, const kl_shape *state, kl_sweep *sweep) {
  uint32_t n = (uint32_t)state->nelems - 2, all[MOST_PARTS + 2];
  if (kl_graph_loop(g, state)) return;
  kl_graph_begin(g);
  uint32_t now = kl_graph_parameter(g, 0, state, "state");
  uint32_t left = kl_graph_compare_with(g, KL_LT, kl_graph_element(g, now, 0), KL_MOST_SWEEPS);
  left = kl_graph_binary(g, KL_OP_AND, left, kl_graph_element(g, now, n + 1));
  uint32_t condition = kl_graph_end(g, "is_left", left);
  kl_graph_begin(g);
  now = kl_graph_parameter(g, 0, state, "state");
  for (uint32_t i = 0; i <= n; i++) all[i] = kl_graph_element(g, now, i);
  all[0] = kl_graph_with(g, KL_OP_ADD, all[0], 1);
  all[n + 1] = sweep(g, all + 1);
  kl_graph_add_loop(g, state, condition, kl_graph_end(g, "sweep", kl_graph_tuple(g, n + 2, all)));
}

void kl_run_sweeps(kl_graph *g, uint32_t n, uint32_t *parts, uint32_t more) {
  uint32_t all[MOST_PARTS + 2] = {kl_graph_number(g, KILN_S32, 0, 0, NULL)};
  for (uint32_t i = 0; i < n; i++) all[i + 1] = parts[i];
  all[n + 1] = more;
  uint32_t end = kl_graph_while(g, kl_graph_tuple(g, n + 2, all));
  for (uint32_t i = 0; i < n; i++) parts[i] = kl_graph_element(g, end, i + 1);
}
