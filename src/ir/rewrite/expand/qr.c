// QR decompositions by Householder's reflections, as LAPACK has them, and the products of reflections: loops, a round
// for each column.
//
// Reflection k is H = 1 - tau v v^H, with v 0 above place k and 1 there; H^H takes column k, from place k on x, to beta
// there and 0 below: beta = -|x| or |x|, the sign against that of x_k's real part, tau = (beta - x_k) / beta,
// v = x / (x_k - beta). Where x has nothing but a real x_k, tau is 0. What is below place k of v stays in the column.
#include "ir/rewrite/expand/columns.h"
#include "ir/rewrite/expand/numbers.h"

#include "ir/custom/custom.h"

enum { ROUND, MATRIX, TAUS, CARRIED };           // of a decomposition
enum { NUMBERS = CARRIED, GIVEN, CARRIED_FIVE }; // of one with columns exchanged: what is asked, and came of it
enum { PRODUCT = MATRIX, VECTORS, FACTORS, CARRIED_TWO }; // of a product: vectors and their taus stay as they are

static const kl_shape *state_of(kl_graph *g, kl_dtype t, kl_columns z, bool product) {
  const kl_shape *matrix = kl_graph_array(g, t, 3, (int64_t[]){z.b, z.m, z.n});
  const kl_shape *taus = kl_graph_array(g, t, 2, (int64_t[]){z.b, z.steps});
  const kl_shape *parts[] = {kl_graph_array(g, KILN_S32, 0, NULL), matrix, product ? matrix : taus, taus};
  return kl_shape_tuple(g->m, product ? CARRIED_TWO : CARRIED, parts);
}

// --- a round --------------------------------------------------------------------------------------------------------

// [b, m, n] less tau v (v^H a), of v [b, m] and tau [b].
static uint32_t reflected(const kl_round *x, uint32_t a, uint32_t v, uint32_t tau) {
  kl_graph *g = x->g;
  uint32_t by = kl_along_rows(x, kl_conjugate(g, v));
  uint32_t sums = kl_graph_reduce(g, kl_graph_binary(g, KL_OP_MULTIPLY, by, a), 1, KL_COMBINE_ADD);
  uint32_t scaled = kl_graph_binary(g, KL_OP_MULTIPLY, v, kl_of_batch(x, tau));
  uint32_t less = kl_graph_binary(g, KL_OP_MULTIPLY, kl_along_rows(x, scaled), kl_along_columns(x, sums));
  return kl_graph_binary(g, KL_OP_SUBTRACT, a, less);
}

// 0 above place k, 1 there, and these below.
static uint32_t vector(const kl_round *x, uint32_t below) {
  kl_graph *g = x->g;
  uint32_t head = kl_graph_select(g, kl_against(x, KL_EQ, x->at), kl_one_like(g, below), kl_zero_like(g, below));
  return kl_graph_select(g, kl_against(x, KL_GT, x->at), below, head);
}

typedef struct reflection {
  uint32_t none, beta, tau, v; // [b], [b], [b], [b, m]
} reflection;

// Lengths are those of the column divided by its largest part, so that squares neither overflow nor vanish.
static reflection reflect(const kl_round *x, uint32_t column) {
  kl_graph *g = x->g;
  uint32_t part = kl_graph_select(g, kl_against(x, KL_GE, x->at), kl_largest_part(g, column),
                                  kl_zero_like(g, kl_real_part(g, column)));
  uint32_t scale = kl_graph_reduce(g, part, 1, KL_COMBINE_MAX);
  scale = kl_graph_select(g, kl_graph_compare_with(g, KL_EQ, scale, 0), kl_one_like(g, scale), scale);
  uint32_t by = kl_of_batch(x, scale), im = kl_imaginary_part(g, column);
  uint32_t re = kl_graph_binary(g, KL_OP_DIVIDE, kl_real_part(g, column), by);
  if (im != KL_NO_PART) im = kl_graph_binary(g, KL_OP_DIVIDE, im, by);
  uint32_t unit = kl_number(g, re, im), squares = kl_square(g, unit), nothing = kl_zero_like(g, squares);
  uint32_t all = kl_graph_select(g, kl_against(x, KL_GE, x->at), squares, nothing);
  uint32_t sum = kl_graph_reduce(g, all, 1, KL_COMBINE_ADD);
  uint32_t below = kl_graph_select(g, kl_against(x, KL_GT, x->at), part, kl_zero_like(g, part));
  uint32_t rest = kl_graph_reduce(g, below, 1, KL_COMBINE_MAX); // whose square may vanish
  uint32_t alpha = kl_own(x, column), alpha_re = kl_real_part(g, alpha), alpha_im = kl_imaginary_part(g, alpha);
  uint32_t length = kl_graph_binary(g, KL_OP_MULTIPLY, scale, kl_graph_unary(g, KL_OP_SQRT, sum));
  reflection r;
  r.none = kl_graph_compare_with(g, KL_EQ, rest, 0);
  if (alpha_im != KL_NO_PART)
    r.none = kl_graph_binary(g, KL_OP_AND, r.none, kl_graph_compare_with(g, KL_EQ, alpha_im, 0));
  r.beta =
      kl_graph_select(g, kl_graph_compare_with(g, KL_LT, alpha_re, 0), length, kl_graph_unary(g, KL_OP_NEGATE, length));
  uint32_t less = kl_graph_binary(g, KL_OP_SUBTRACT, alpha_re, r.beta);
  uint32_t tau_re = kl_graph_unary(g, KL_OP_NEGATE, kl_graph_binary(g, KL_OP_DIVIDE, less, r.beta)),
           tau_im = KL_NO_PART;
  if (alpha_im != KL_NO_PART)
    tau_im = kl_graph_unary(g, KL_OP_NEGATE, kl_graph_binary(g, KL_OP_DIVIDE, alpha_im, r.beta));
  r.tau = kl_number(g, tau_re, tau_im);
  r.tau = kl_graph_select(g, r.none, kl_zero_like(g, r.tau), r.tau);
  uint32_t off = kl_number(g, less, alpha_im);
  r.v = vector(x, kl_graph_binary(g, KL_OP_DIVIDE, column, kl_of_batch(x, off)));
  return r;
}

// Column k of a matrix made 0 below its diagonal, and what is right of it reflected; the list of taus with its own.
static uint32_t reduced(const kl_round *x, uint32_t a, uint32_t *taus) {
  kl_graph *g = x->g;
  int64_t dims[] = {x->z.b, x->z.m, x->z.n};
  reflection r = reflect(x, kl_column(x, a));
  uint32_t i = kl_graph_iota(g, KILN_S32, 3, dims, 1), j = kl_graph_iota(g, KILN_S32, 3, dims, 2);
  uint32_t beta = kl_has_parts(g, a) ? kl_number(g, r.beta, kl_zero_like(g, r.beta)) : r.beta;
  uint32_t head = kl_graph_broadcast(g, beta, 3, dims, (int64_t[]){0});
  uint32_t column = kl_graph_select(g, kl_against(x, KL_GT, i), kl_along_rows(x, r.v), head);
  uint32_t next = kl_graph_select(g, kl_against(x, KL_EQ, j), column, reflected(x, a, r.v, kl_conjugate(g, r.tau)));
  uint32_t changes = kl_graph_binary(g, KL_OP_AND, kl_against(x, KL_GE, i), kl_against(x, KL_GE, j));
  uint32_t some = kl_graph_unary(g, KL_OP_NOT, kl_graph_broadcast(g, r.none, 3, dims, (int64_t[]){0}));
  *taus = kl_with_own(x, *taus, r.tau);
  return kl_graph_select(g, kl_graph_binary(g, KL_OP_AND, changes, some), next, a);
}

static uint32_t write_round(kl_graph *g, kl_columns z, uint32_t state) {
  kl_round x = kl_round_begin(g, z, kl_graph_element(g, state, ROUND));
  uint32_t taus = kl_graph_element(g, state, TAUS);
  uint32_t next = reduced(&x, kl_graph_element(g, state, MATRIX), &taus);
  return kl_graph_tuple(g, CARRIED, (uint32_t[]){kl_graph_with(g, KL_OP_ADD, x.k, 1), next, taus});
}

// The last reflection comes first.
static uint32_t write_round_of_product(kl_graph *g, kl_columns z, uint32_t state) {
  uint32_t round = kl_graph_element(g, state, ROUND), last = kl_graph_number_like(g, round, z.steps - 1);
  kl_round x = kl_round_begin(g, z, kl_graph_binary(g, KL_OP_SUBTRACT, last, round));
  uint32_t q = kl_graph_element(g, state, PRODUCT), vectors = kl_graph_element(g, state, VECTORS);
  uint32_t taus = kl_graph_element(g, state, FACTORS);
  uint32_t next = reflected(&x, q, vector(&x, kl_column(&x, vectors)), kl_own(&x, taus));
  return kl_graph_tuple(g, CARRIED_TWO, (uint32_t[]){kl_graph_with(g, KL_OP_ADD, round, 1), next, vectors, taus});
}

// --- columns exchanged ----------------------------------------------------------------------------------------------

// Of what is right of and below place k, the squares of the columns' lengths, [b, n], divided by one number; 0 left of
// it.
static uint32_t squares_left(const kl_round *x, uint32_t a) {
  static const int64_t both[] = {1, 2};
  kl_graph *g = x->g;
  int64_t dims[] = {x->z.b, x->z.m, x->z.n};
  uint32_t i = kl_graph_iota(g, KILN_S32, 3, dims, 1), j = kl_graph_iota(g, KILN_S32, 3, dims, 2);
  uint32_t there = kl_graph_binary(g, KL_OP_AND, kl_against(x, KL_GE, i), kl_against(x, KL_GE, j));
  uint32_t part = kl_graph_select(g, there, kl_largest_part(g, a), kl_zero_like(g, kl_real_part(g, a)));
  uint32_t scale = kl_graph_reduce_over(g, part, 2, both, KL_COMBINE_MAX);
  scale = kl_graph_select(g, kl_graph_compare_with(g, KL_EQ, scale, 0), kl_one_like(g, scale), scale);
  uint32_t by = kl_graph_broadcast(g, scale, 3, dims, (int64_t[]){0}), im = kl_imaginary_part(g, a);
  uint32_t re = kl_graph_binary(g, KL_OP_DIVIDE, kl_real_part(g, a), by);
  if (im != KL_NO_PART) im = kl_graph_binary(g, KL_OP_DIVIDE, im, by);
  uint32_t squares = kl_square(g, kl_number(g, re, im));
  return kl_graph_reduce(g, kl_graph_select(g, there, squares, kl_zero_like(g, squares)), 1, KL_COMBINE_ADD);
}

// The first place that `is` names, [b, n], and the number of places where it names none.
static uint32_t first_place(kl_graph *g, uint32_t is, uint32_t j, int64_t n) {
  uint32_t from_end = kl_graph_binary(g, KL_OP_SUBTRACT, kl_graph_number_like(g, j, n), j);
  uint32_t most = kl_graph_reduce(g, kl_graph_select(g, is, from_end, kl_zero_like(g, j)), 1, KL_COMBINE_MAX);
  return kl_graph_binary(g, KL_OP_SUBTRACT, kl_graph_number_like(g, most, n), most);
}

// Column p of [b, m, n], [b, m].
static uint32_t column_at(const kl_round *x, uint32_t a, uint32_t p) {
  uint32_t rows = kl_graph_transpose(x->g, a, (int64_t[]){0, 2, 1});
  uint32_t row = kl_graph_take(x->g, rows, kl_graph_reshape(x->g, p, 2, (int64_t[]){x->z.b, 1}));
  return kl_graph_reshape(x->g, row, 2, (int64_t[]){x->z.b, x->z.m});
}

// The first of the columns that are to come first, or else the first of the longest; place k where some is NaN.
static uint32_t write_round_of_exchanges(kl_graph *g, kl_columns z, uint32_t state) {
  kl_round x = kl_round_begin(g, z, kl_graph_element(g, state, ROUND));
  int64_t lists[] = {z.b, z.n}, dims[] = {z.b, z.m, z.n};
  uint32_t a = kl_graph_element(g, state, MATRIX), taus = kl_graph_element(g, state, TAUS);
  uint32_t number = kl_graph_element(g, state, NUMBERS), given = kl_graph_element(g, state, GIVEN);
  uint32_t j = kl_graph_iota(g, KILN_S32, 2, lists, 1), left = kl_against(&x, KL_GE, j);
  uint32_t length = squares_left(&x, a);
  uint32_t most = kl_graph_broadcast(g, kl_graph_reduce(g, length, 1, KL_COMBINE_MAX), 2, lists, (int64_t[]){0});
  uint32_t longest = kl_graph_binary(g, KL_OP_AND, left, kl_graph_compare(g, KL_EQ, length, most));
  uint32_t wanted = kl_graph_binary(g, KL_OP_AND, left, kl_graph_compare_with(g, KL_NE, given, 0));
  uint32_t p = first_place(g, longest, j, z.n), before = first_place(g, wanted, j, z.n);
  p = kl_graph_select(g, kl_graph_compare_with(g, KL_LT, before, z.n), before, p);
  p = kl_graph_select(g, kl_graph_compare_with(g, KL_LT, p, z.n), p, kl_everywhere(&x, x.k, p));
  uint32_t at = kl_graph_broadcast(g, p, 2, lists, (int64_t[]){0}), is = kl_graph_compare(g, KL_EQ, j, at);
  uint32_t from = kl_graph_select(g, is, kl_everywhere(&x, x.k, j), j);
  from = kl_graph_select(g, kl_against(&x, KL_EQ, j), at, from);
  uint32_t column = kl_graph_iota(g, KILN_S32, 3, dims, 2);
  uint32_t moved = kl_graph_select(g, kl_along_columns(&x, is), kl_along_rows(&x, kl_column(&x, a)), a);
  moved = kl_graph_select(g, kl_against(&x, KL_EQ, column), kl_along_rows(&x, column_at(&x, a, p)), moved);
  uint32_t next = reduced(&x, moved, &taus);
  return kl_graph_tuple(g, CARRIED_FIVE,
                        (uint32_t[]){kl_graph_with(g, KL_OP_ADD, x.k, 1), next, taus, kl_graph_take(g, number, from),
                                     kl_graph_take(g, given, from)});
}

// --- loops ----------------------------------------------------------------------------------------------------------

static kl_columns columns_of(const kl_shape *matrix, const kl_shape *taus) {
  kl_columns z = kl_columns_of(matrix);
  if (taus) z.steps = taus->dims[taus->rank - 1];
  return z;
}

void kl_expand_qr_loop(kl_graph *g, const kl_shape *s, int64_t steps, bool product) {
  kl_columns z = kl_columns_of(s);
  kl_dtype part = kl_is_complex(s->dtype) ? kl_info(s->dtype)->part : s->dtype;
  z.steps = steps;
  kl_graph_combiner(g, KL_COMBINE_ADD, s->dtype);
  kl_graph_combiner(g, KL_COMBINE_ADD, part);
  kl_graph_combiner(g, KL_COMBINE_MAX, part);
  kl_loop_over_columns(g, z, state_of(g, s->dtype, z, product), product ? write_round_of_product : write_round);
}

void kl_expand_qr_computations(kl_graph *g, const kl_comp *c, const kl_instr *in) {
  const kl_shape *s = kl_operand(c, in, 0)->shape;
  bool product = kl_custom_named(in) == KL_CUSTOM_ORGQR;
  kl_expand_qr_loop(g, s, columns_of(s, product ? kl_operand(c, in, 1)->shape : NULL).steps, product);
}

uint32_t kl_expand_geqrf(kl_graph *g, uint32_t a) {
  const kl_shape *s = kl_graph_shape(g, a);
  kl_columns z = columns_of(s, NULL);
  uint32_t state[CARRIED] = {
      [ROUND] = kl_graph_number(g, KILN_S32, 0, 0, NULL),
      [MATRIX] = kl_graph_reshape(g, a, 3, (int64_t[]){z.b, z.m, z.n}),
      [TAUS] = kl_graph_number(g, s->dtype, 0, 2, (int64_t[]){z.b, z.steps}),
  };
  int64_t dims[KILN_MAX_RANK];
  memcpy(dims, s->dims, s->rank * sizeof *dims);
  uint32_t end = kl_graph_while(g, kl_graph_tuple(g, CARRIED, state));
  uint32_t matrix = kl_graph_reshape(g, kl_graph_element(g, end, MATRIX), s->rank, dims);
  dims[s->rank - 2] = z.steps;
  uint32_t taus = kl_graph_reshape(g, kl_graph_element(g, end, TAUS), s->rank - 1, dims);
  return kl_graph_tuple(g, 2, (uint32_t[]){matrix, taus});
}

uint32_t kl_expand_orgqr(kl_graph *g, uint32_t a, uint32_t taus) {
  const kl_shape *s = kl_graph_shape(g, a);
  kl_columns z = columns_of(s, kl_graph_shape(g, taus));
  int64_t dims[] = {z.b, z.m, z.n};
  uint32_t one =
      kl_graph_compare(g, KL_EQ, kl_graph_iota(g, KILN_S32, 3, dims, 1), kl_graph_iota(g, KILN_S32, 3, dims, 2));
  uint32_t zeros = kl_graph_number(g, s->dtype, 0, 3, dims);
  uint32_t state[CARRIED_TWO] = {
      [ROUND] = kl_graph_number(g, KILN_S32, 0, 0, NULL),
      [PRODUCT] = kl_graph_select(g, one, kl_one_like(g, zeros), zeros),
      [VECTORS] = kl_graph_reshape(g, a, 3, dims),
      [FACTORS] = kl_graph_reshape(g, taus, 2, (int64_t[]){z.b, z.steps}),
  };
  uint32_t end = kl_graph_while(g, kl_graph_tuple(g, CARRIED_TWO, state));
  return kl_graph_reshape(g, kl_graph_element(g, end, PRODUCT), s->rank, s->dims);
}

// --- with columns exchanged -----------------------------------------------------------------------------------------

void kl_expand_geqp3_computations(kl_graph *g, const kl_shape *s) {
  kl_columns z = kl_columns_of(s);
  kl_dtype part = kl_is_complex(s->dtype) ? kl_info(s->dtype)->part : s->dtype;
  const kl_shape *list = kl_graph_array(g, KILN_S32, 2, (int64_t[]){z.b, z.n});
  const kl_shape *parts[] = {
      [ROUND] = kl_graph_array(g, KILN_S32, 0, NULL),
      [MATRIX] = kl_graph_array(g, s->dtype, 3, (int64_t[]){z.b, z.m, z.n}),
      [TAUS] = kl_graph_array(g, s->dtype, 2, (int64_t[]){z.b, z.steps}),
      [NUMBERS] = list,
      [GIVEN] = list,
  };
  kl_graph_combiner(g, KL_COMBINE_ADD, s->dtype);
  kl_graph_combiner(g, KL_COMBINE_ADD, part);
  kl_graph_combiner(g, KL_COMBINE_MAX, part);
  kl_graph_combiner(g, KL_COMBINE_MAX, KILN_S32);
  kl_loop_over_columns(g, z, kl_shape_tuple(g->m, CARRIED_FIVE, parts), write_round_of_exchanges);
}

uint32_t kl_expand_geqp3(kl_graph *g, uint32_t a, uint32_t given, const kl_shape *results) {
  const kl_shape *s = kl_graph_shape(g, a), *taus = results->elems[2];
  kl_columns z = kl_columns_of(s);
  int64_t list[] = {z.b, z.n};
  uint32_t state[CARRIED_FIVE] = {
      [ROUND] = kl_graph_number(g, KILN_S32, 0, 0, NULL),
      [MATRIX] = kl_graph_reshape(g, a, 3, (int64_t[]){z.b, z.m, z.n}),
      [TAUS] = kl_graph_number(g, s->dtype, 0, 2, (int64_t[]){z.b, z.steps}),
      [NUMBERS] = kl_graph_with(g, KL_OP_ADD, kl_graph_iota(g, KILN_S32, 2, list, 1), 1),
      [GIVEN] = kl_graph_reshape(g, given, 2, list),
  };
  const kl_shape *numbers = kl_graph_shape(g, given);
  uint32_t end = kl_graph_while(g, kl_graph_tuple(g, CARRIED_FIVE, state));
  return kl_graph_tuple(
      g, 3,
      (uint32_t[]){kl_graph_reshape(g, kl_graph_element(g, end, MATRIX), s->rank, s->dims),
                   kl_graph_reshape(g, kl_graph_element(g, end, NUMBERS), numbers->rank, numbers->dims),
                   kl_graph_reshape(g, kl_graph_element(g, end, TAUS), taus->rank, taus->dims)});
}
