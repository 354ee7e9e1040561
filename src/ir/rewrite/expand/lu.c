// LU decompositions with rows exchanged, and the permutations that exchanges make: loops, a round for each column.
//
// A round of the decomposition of [b, m, n] looks for the first of the largest elements of column k from row k on, puts
// that row in row k's place, and takes multiples of it from the rows below, which end up below the diagonal.
#include "ir/rewrite/expand/columns.h"

#include "ir/custom/custom.h"

static kl_columns of_rows(const kl_shape *pivots, const kl_shape *rows) {
  int64_t m = rows->dims[rows->rank - 1], steps = pivots->dims[pivots->rank - 1];
  return (kl_columns){kl_batches(pivots, 1), m, 1, steps < m ? steps : m};
}

// --- what loops carry -----------------------------------------------------------------------------------------------

enum { ROUND, MATRIX, PIVOTS, INFO, CARRIED };        // of a decomposition
enum { ROWS = MATRIX, GIVEN = PIVOTS, CARRIED_ROWS }; // of a permutation: the pivots are those that are given

static const kl_shape *state_of(kl_graph *g, kl_dtype t, kl_columns z) {
  const kl_shape *parts[CARRIED] = {
      [ROUND] = kl_graph_array(g, KILN_S32, 0, NULL),
      [MATRIX] = kl_graph_array(g, t, 3, (int64_t[]){z.b, z.m, z.n}),
      [PIVOTS] = kl_graph_array(g, KILN_S32, 2, (int64_t[]){z.b, z.steps}),
      [INFO] = kl_graph_array(g, KILN_S32, 1, &z.b),
  };
  return kl_shape_tuple(g->m, CARRIED, parts);
}

static const kl_shape *state_of_rows(kl_graph *g, kl_columns z) {
  const kl_shape *parts[CARRIED_ROWS] = {
      [ROUND] = kl_graph_array(g, KILN_S32, 0, NULL),
      [ROWS] = kl_graph_array(g, KILN_S32, 3, (int64_t[]){z.b, z.m, 1}),
      [GIVEN] = kl_graph_array(g, KILN_S32, 2, (int64_t[]){z.b, z.steps}),
  };
  return kl_shape_tuple(g->m, CARRIED_ROWS, parts);
}

// --- a round --------------------------------------------------------------------------------------------------------

// Which row comes to each place where row k changes places with row p, [b].
static uint32_t exchanged(const kl_round *x, uint32_t p) {
  kl_graph *g = x->g;
  uint32_t other = kl_graph_compare(g, KL_EQ, x->at, kl_of_batch(x, p));
  uint32_t rest = kl_graph_select(g, other, kl_everywhere(x, x->k, x->at), x->at);
  return kl_graph_select(g, kl_against(x, KL_EQ, x->at), kl_of_batch(x, p), rest);
}

// |re| + |im|, as LAPACK has it.
static uint32_t height_of(kl_graph *g, uint32_t v) {
  if (!kl_is_complex(kl_graph_shape(g, v)->dtype)) return kl_graph_unary(g, KL_OP_ABS, v);
  return kl_graph_binary(g, KL_OP_ADD, kl_graph_unary(g, KL_OP_ABS, kl_graph_unary(g, KL_OP_REAL, v)),
                         kl_graph_unary(g, KL_OP_ABS, kl_graph_unary(g, KL_OP_IMAG, v)));
}

// The first row from k on that is the highest of a column [b, m]; k where some is NaN, which equals nothing.
static uint32_t find_pivot(const kl_round *x, uint32_t column) {
  kl_graph *g = x->g;
  uint32_t height = height_of(g, column);
  uint32_t open = kl_against(x, KL_GE, x->at);
  height = kl_graph_select(g, open, height, kl_graph_number_like(g, height, 0));
  uint32_t most = kl_of_batch(x, kl_graph_reduce(g, height, 1, KL_COMBINE_MAX));
  uint32_t is = kl_graph_binary(g, KL_OP_AND, open, kl_graph_compare(g, KL_EQ, height, most));
  uint32_t from_end = kl_graph_binary(g, KL_OP_SUBTRACT, kl_graph_number_like(g, x->at, x->z.m), x->at);
  uint32_t first = kl_graph_select(g, is, from_end, kl_graph_number_like(g, x->at, 0));
  first = kl_graph_reduce(g, first, 1, KL_COMBINE_MAX);
  uint32_t row = kl_graph_binary(g, KL_OP_SUBTRACT, kl_graph_number_like(g, first, x->z.m), first);
  return kl_graph_select(g, kl_graph_compare_with(g, KL_EQ, first, 0), kl_everywhere(x, x->k, first), row);
}

static uint32_t write_round(kl_graph *g, kl_columns z, uint32_t state) {
  kl_round x = kl_round_begin(g, z, kl_graph_element(g, state, ROUND));
  int64_t all[] = {z.b, z.m, z.n}, line[] = {z.b, z.n};
  uint32_t a = kl_graph_element(g, state, MATRIX), pivots = kl_graph_element(g, state, PIVOTS);
  uint32_t info = kl_graph_element(g, state, INFO);
  uint32_t p = find_pivot(&x, kl_column(&x, a));
  uint32_t moved = kl_graph_take(g, a, exchanged(&x, p));
  uint32_t row = kl_graph_reshape(g, kl_graph_take(g, a, kl_graph_reshape(g, p, 2, (int64_t[]){z.b, 1})), 2, line);
  uint32_t pivot = kl_own(&x, row);
  uint32_t zero = kl_graph_compare_with(g, KL_EQ, pivot, 0);
  uint32_t column = kl_column(&x, moved);
  uint32_t factor = kl_graph_binary(g, KL_OP_DIVIDE, column, kl_of_batch(&x, pivot));
  factor = kl_graph_select(g, kl_of_batch(&x, zero), column, factor); // that is zero, too
  uint32_t factors = kl_along_rows(&x, factor);
  uint32_t rows = kl_along_columns(&x, row);
  uint32_t less = kl_graph_binary(g, KL_OP_SUBTRACT, moved, kl_graph_binary(g, KL_OP_MULTIPLY, factors, rows));
  uint32_t i = kl_graph_iota(g, KILN_S32, 3, all, 1), j = kl_graph_iota(g, KILN_S32, 3, all, 2);
  uint32_t right = kl_graph_select(g, kl_against(&x, KL_EQ, j), factors, less);
  uint32_t changes = kl_graph_binary(g, KL_OP_AND, kl_against(&x, KL_GT, i), kl_against(&x, KL_GE, j));
  uint32_t next = kl_graph_select(g, changes, right, moved);
  pivots = kl_with_own(&x, pivots, kl_graph_with(g, KL_OP_ADD, p, 1));
  uint32_t after = kl_graph_with(g, KL_OP_ADD, x.k, 1);
  uint32_t first = kl_graph_binary(g, KL_OP_AND, zero, kl_graph_compare_with(g, KL_EQ, info, 0));
  info = kl_graph_select(g, first, kl_everywhere(&x, after, info), info);
  return kl_graph_tuple(g, CARRIED, (uint32_t[]){after, next, pivots, info});
}

// A pivot that is no row changes nothing.
static uint32_t write_round_of_rows(kl_graph *g, kl_columns z, uint32_t state) {
  kl_round x = kl_round_begin(g, z, kl_graph_element(g, state, ROUND));
  uint32_t rows = kl_graph_element(g, state, ROWS), pivots = kl_graph_element(g, state, GIVEN), p = kl_own(&x, pivots);
  uint32_t is =
      kl_graph_binary(g, KL_OP_AND, kl_graph_compare_with(g, KL_GE, p, 0), kl_graph_compare_with(g, KL_LT, p, z.m));
  p = kl_graph_select(g, is, p, kl_everywhere(&x, x.k, p));
  uint32_t next = kl_graph_take(g, rows, exchanged(&x, p));
  return kl_graph_tuple(g, CARRIED_ROWS, (uint32_t[]){kl_graph_with(g, KL_OP_ADD, x.k, 1), next, pivots});
}

// --- loops ----------------------------------------------------------------------------------------------------------

static bool is_lu(const kl_instr *in) {
  return kl_custom_named(in) == KL_CUSTOM_GETRF;
}

void kl_expand_lu_computations(kl_graph *g, const kl_comp *c, const kl_instr *in) {
  const kl_shape *s = kl_operand(c, in, 0)->shape;
  kl_columns z = is_lu(in) ? kl_columns_of(s) : of_rows(s, in->shape);
  const kl_shape *state = is_lu(in) ? state_of(g, s->dtype, z) : state_of_rows(g, z);
  if (is_lu(in)) {
    kl_graph_combiner(g, KL_COMBINE_MAX, KILN_S32);
    kl_graph_combiner(g, KL_COMBINE_MAX, kl_is_complex(s->dtype) ? kl_info(s->dtype)->part : s->dtype);
  }
  kl_loop_over_columns(g, z, state, is_lu(in) ? write_round : write_round_of_rows);
}

uint32_t kl_expand_getrf(kl_graph *g, uint32_t a) {
  const kl_shape *s = kl_graph_shape(g, a);
  kl_columns z = kl_columns_of(s);
  uint32_t state[CARRIED] = {
      [ROUND] = kl_graph_number(g, KILN_S32, 0, 0, NULL),
      [MATRIX] = kl_graph_reshape(g, a, 3, (int64_t[]){z.b, z.m, z.n}),
      [PIVOTS] = kl_graph_number(g, KILN_S32, 0, 2, (int64_t[]){z.b, z.steps}),
      [INFO] = kl_graph_number(g, KILN_S32, 0, 1, &z.b),
  };
  uint32_t rank = s->rank;
  int64_t dims[KILN_MAX_RANK];
  memcpy(dims, s->dims, rank * sizeof *dims);
  uint32_t end = kl_graph_while(g, kl_graph_tuple(g, CARRIED, state));
  uint32_t factors = kl_graph_reshape(g, kl_graph_element(g, end, MATRIX), rank, dims);
  dims[rank - 2] = z.steps;
  uint32_t pivots = kl_graph_reshape(g, kl_graph_element(g, end, PIVOTS), rank - 1, dims);
  uint32_t info = kl_graph_reshape(g, kl_graph_element(g, end, INFO), rank - 2, dims);
  return kl_graph_tuple(g, 3, (uint32_t[]){factors, pivots, info});
}

uint32_t kl_expand_permutation(kl_graph *g, uint32_t pivots, const kl_shape *to) {
  const kl_shape *s = kl_graph_shape(g, pivots);
  kl_columns z = of_rows(s, to);
  int64_t steps = s->dims[s->rank - 1];
  uint32_t given = kl_graph_reshape(g, pivots, 2, (int64_t[]){z.b, steps});
  uint32_t state[CARRIED_ROWS] = {
      [ROUND] = kl_graph_number(g, KILN_S32, 0, 0, NULL),
      [ROWS] = kl_graph_iota(g, KILN_S32, 3, (int64_t[]){z.b, z.m, 1}, 1),
      [GIVEN] = kl_graph_slice(g, given, 1, 0, z.steps, 1),
  };
  uint32_t end = kl_graph_while(g, kl_graph_tuple(g, CARRIED_ROWS, state));
  return kl_graph_reshape(g, kl_graph_element(g, end, ROWS), to->rank, to->dims);
}
