// QR decompositions by Householder's reflections, as LAPACK has them, and the products of reflections: loops, a round
// for each column.
//
// Reflection k is H = 1 - tau v v^H, with v 0 above place k and 1 there; H^H takes column k, from place k on x, to beta
// there and 0 below: beta = -|x| or |x|, the sign against that of x_k's real part, tau = (beta - x_k) / beta,
// v = x / (x_k - beta). Where x has nothing but a real x_k, tau is 0. What is below place k of v stays in the column.
#include "ir/rewrite/expand/columns.h"
#include "ir/rewrite/expand/numbers.h"

#include "ir/custom/custom.h"

enum { ROUND, MATRIX, TAUS, CARRIED };                    // of a decomposition
enum { PRODUCT = MATRIX, VECTORS, FACTORS, CARRIED_TWO }; // of a product: vectors and their taus stay as they are

static const kl_shape *state_of(kl_graph *g, kl_dtype t, kl_columns z, bool product) {
  const kl_shape *matrix = kl_shape_array(g->m, t, 3, (int64_t[]){z.b, z.m, z.n});
  const kl_shape *taus = kl_shape_array(g->m, t, 2, (int64_t[]){z.b, z.steps});
  const kl_shape *parts[] = {kl_shape_array(g->m, KILN_S32, 0, NULL), matrix, product ? matrix : taus, taus};
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

static uint32_t write_round(kl_graph *g, kl_columns z, uint32_t state) {
  kl_round x = kl_round_begin(g, z, kl_graph_element(g, state, ROUND));
  int64_t dims[] = {z.b, z.m, z.n};
  uint32_t a = kl_graph_element(g, state, MATRIX), taus = kl_graph_element(g, state, TAUS);
  reflection r = reflect(&x, kl_column(&x, a));
  uint32_t i = kl_graph_iota(g, KILN_S32, 3, dims, 1), j = kl_graph_iota(g, KILN_S32, 3, dims, 2);
  uint32_t beta = kl_has_parts(g, a) ? kl_number(g, r.beta, kl_zero_like(g, r.beta)) : r.beta;
  uint32_t head = kl_graph_broadcast(g, beta, 3, dims, (int64_t[]){0});
  uint32_t column = kl_graph_select(g, kl_against(&x, KL_GT, i), kl_along_rows(&x, r.v), head);
  uint32_t next = kl_graph_select(g, kl_against(&x, KL_EQ, j), column, reflected(&x, a, r.v, kl_conjugate(g, r.tau)));
  uint32_t changes = kl_graph_binary(g, KL_OP_AND, kl_against(&x, KL_GE, i), kl_against(&x, KL_GE, j));
  uint32_t some = kl_graph_unary(g, KL_OP_NOT, kl_graph_broadcast(g, r.none, 3, dims, (int64_t[]){0}));
  next = kl_graph_select(g, kl_graph_binary(g, KL_OP_AND, changes, some), next, a);
  return kl_graph_tuple(g, CARRIED,
                        (uint32_t[]){kl_graph_with(g, KL_OP_ADD, x.k, 1), next, kl_with_own(&x, taus, r.tau)});
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
