// Tridiagonal systems, as LAPACK's gtsv solves them: two scans along the rows, of all right-hand sides side by side.
//
// The first carries a row that nothing is below of, (d, u, c): with the next one, (l, d', u', c'), it is the row that
// stays, or, where the magnitude of l is greater, l's is, and what is left of the other is carried on. Rows that stay
// have three elements and a right-hand side. The second solves them from the last on.
#include "ir/rewrite/expand/columns.h"
#include "ir/rewrite/expand/numbers.h"

enum { LOWER, DIAGONAL, UPPER, SIDE, GIVEN }; // of a row that comes
enum { D, U, C, ROUND, INFO, CARRIED };       // carried: the row, its number, info
enum { FIRST, SECOND, THIRD, RIGHT, STAYS };  // of a row that stays
enum { NEXT, AFTER, CARRIED_BACK };           // carried back: unknowns of the rows before

static uint32_t times(kl_graph *g, uint32_t a, uint32_t b) {
  return kl_graph_binary(g, KL_OP_MULTIPLY, a, b);
}

static uint32_t minus(kl_graph *g, uint32_t a, uint32_t b) {
  return kl_graph_binary(g, KL_OP_SUBTRACT, a, b);
}

static uint32_t over(kl_graph *g, uint32_t a, uint32_t b) {
  return kl_graph_binary(g, KL_OP_DIVIDE, a, b);
}

// |re| + |im|.
static uint32_t height(kl_graph *g, uint32_t v) {
  uint32_t re = kl_graph_unary(g, KL_OP_ABS, kl_real_part(g, v)), im = kl_imaginary_part(g, v);
  return im == KL_NO_PART ? re : kl_graph_binary(g, KL_OP_ADD, re, kl_graph_unary(g, KL_OP_ABS, im));
}

static void parameters(kl_graph *g, uint32_t n, uint32_t from, const kl_shape *s, uint32_t *values) {
  for (uint32_t k = 0; k < n; k++) values[k] = kl_graph_parameter(g, from + k, s, "p");
}

// The number of the row, from 1, if its pivot is the first that is zero.
static uint32_t info_of(kl_graph *g, uint32_t pivot, uint32_t round, uint32_t info) {
  uint32_t zero = kl_graph_compare_with(g, KL_EQ, pivot, 0), first = kl_graph_compare_with(g, KL_EQ, info, 0);
  return kl_graph_select(g, kl_graph_binary(g, KL_OP_AND, zero, first), round, info);
}

static uint32_t write_forward(kl_graph *g, const kl_shape *s) {
  uint32_t next[GIVEN], was[CARRIED], out[STAYS + CARRIED];
  const kl_shape *whole = kl_graph_array(g, KILN_S32, s->rank, s->dims);
  parameters(g, GIVEN, 0, s, next);
  parameters(g, ROUND, GIVEN, s, was);
  parameters(g, 2, GIVEN + ROUND, whole, was + ROUND);
  uint32_t stays = kl_graph_compare(g, KL_GE, height(g, was[D]), height(g, next[LOWER]));
  uint32_t *row = out, *on = out + STAYS, zero = kl_zero_like(g, was[D]);
  row[FIRST] = kl_graph_select(g, stays, was[D], next[LOWER]);
  row[SECOND] = kl_graph_select(g, stays, was[U], next[DIAGONAL]);
  row[THIRD] = kl_graph_select(g, stays, zero, next[UPPER]);
  row[RIGHT] = kl_graph_select(g, stays, was[C], next[SIDE]);
  uint32_t other = kl_graph_select(g, stays, next[LOWER], was[D]);
  uint32_t f = over(g, other, row[FIRST]);
  on[D] = minus(g, kl_graph_select(g, stays, next[DIAGONAL], was[U]), times(g, f, row[SECOND]));
  on[U] = kl_graph_select(g, stays, next[UPPER], kl_graph_unary(g, KL_OP_NEGATE, times(g, f, next[UPPER])));
  on[C] = minus(g, kl_graph_select(g, stays, next[SIDE], was[C]), times(g, f, row[RIGHT]));
  on[ROUND] = kl_graph_with(g, KL_OP_ADD, was[ROUND], 1);
  on[INFO] = info_of(g, row[FIRST], was[ROUND], was[INFO]);
  return kl_graph_tuple(g, STAYS + CARRIED, out);
}

static uint32_t write_back(kl_graph *g, const kl_shape *s) {
  uint32_t row[STAYS], x[CARRIED_BACK];
  parameters(g, STAYS, 0, s, row);
  parameters(g, CARRIED_BACK, STAYS, s, x);
  uint32_t left = minus(g, row[RIGHT], times(g, row[SECOND], x[NEXT]));
  left = over(g, minus(g, left, times(g, row[THIRD], x[AFTER])), row[FIRST]);
  return kl_graph_tuple(g, 1 + CARRIED_BACK, (uint32_t[]){left, left, x[NEXT]});
}

// --- calls ----------------------------------------------------------------------------------------------------------

// Right-hand sides, one of zeros where there are none, as they say nothing of the matrix.
typedef struct sides {
  int64_t b, m, n;
} sides;

static sides sides_of(const kl_shape *s) {
  int64_t n = s->dims[s->rank - 1];
  return (sides){kl_batches(s, 2), s->dims[s->rank - 2], n ? n : 1};
}

static const kl_shape *line_of(kl_graph *g, kl_dtype t, const sides *z) {
  return kl_graph_array(g, t, 2, (int64_t[]){z->b, z->n});
}

// Both steps are kept as a loop's computations are, by a state that no loop has.
static const kl_shape *key_of(kl_graph *g, kl_dtype t, const sides *z) {
  return kl_shape_tuple(g->m, 2, (const kl_shape *[]){line_of(g, t, z), line_of(g, KILN_S32, z)});
}

void kl_expand_gtsv_computations(kl_graph *g, const kl_shape *s) {
  sides z = sides_of(s);
  const kl_shape *line = line_of(g, s->dtype, &z), *key = key_of(g, s->dtype, &z);
  if (kl_graph_loop(g, key)) return;
  kl_graph_begin(g);
  uint32_t forward = kl_graph_end(g, "eliminate", write_forward(g, line));
  kl_graph_begin(g);
  kl_graph_add_loop(g, key, forward, kl_graph_end(g, "substitute", write_back(g, line)));
}

// A diagonal beside each right-hand side, [b, m, n].
static uint32_t beside(kl_graph *g, const sides *z, uint32_t diagonal) {
  uint32_t flat = kl_graph_reshape(g, diagonal, 2, (int64_t[]){z->b, z->m});
  return kl_graph_broadcast(g, flat, 3, (int64_t[]){z->b, z->m, z->n}, (int64_t[]){0, 1});
}

static uint32_t row_of(kl_graph *g, const sides *z, uint32_t a, int64_t k) {
  return kl_graph_reshape(g, kl_graph_slice(g, a, 1, k, k + 1, 1), 2, (int64_t[]){z->b, z->n});
}

// All rows that stay, [b, m, n] each; info, [b, n].
static uint32_t eliminate(kl_graph *g, const sides *z, const kl_graph_loop_of *steps, const uint32_t *given,
                          uint32_t *rows) {
  uint32_t values[GIVEN + CARRIED], *init = values + GIVEN, last[CARRIED];
  init[D] = row_of(g, z, given[DIAGONAL], 0);
  init[U] = row_of(g, z, given[UPPER], 0);
  init[C] = row_of(g, z, given[SIDE], 0);
  init[INFO] = kl_graph_number(g, KILN_S32, 0, 2, (int64_t[]){z->b, z->n});
  init[ROUND] = kl_graph_with(g, KL_OP_ADD, init[INFO], 1);
  memcpy(last, init, sizeof last);
  if (z->m > 1) {
    for (uint32_t k = 0; k < GIVEN; k++) values[k] = kl_graph_slice(g, given[k], 1, 1, z->m, 1);
    uint32_t end = kl_graph_steps(g, steps->condition, GIVEN, CARRIED, values, 1, false);
    for (uint32_t k = 0; k < STAYS; k++) rows[k] = kl_graph_element(g, end, k);
    for (uint32_t k = 0; k < CARRIED; k++) last[k] = kl_graph_element(g, end, STAYS + k);
  }
  uint32_t own[STAYS] = {last[D], last[U], kl_zero_like(g, last[D]), last[C]};
  for (uint32_t k = 0; k < STAYS; k++) {
    uint32_t line = kl_graph_reshape(g, own[k], 3, (int64_t[]){z->b, 1, z->n});
    rows[k] = z->m > 1 ? kl_graph_concatenate(g, 2, (uint32_t[]){rows[k], line}, 1) : line;
  }
  return info_of(g, last[D], last[ROUND], last[INFO]);
}

uint32_t kl_expand_gtsv(kl_graph *g, const uint32_t *operands, const kl_shape *results) {
  const kl_shape *s = kl_graph_shape(g, operands[SIDE]);
  sides z = sides_of(s);
  uint32_t given[GIVEN], rows[STAYS], x = operands[SIDE];
  bool all = results->dtype == KILN_TUPLE;
  uint32_t info = all ? kl_graph_number(g, KILN_S32, 0, results->elems[GIVEN]->rank, results->elems[GIVEN]->dims) : 0;
  if (z.b && z.m) {
    const kl_graph_loop_of *steps = kl_graph_loop(g, key_of(g, s->dtype, &z));
    for (uint32_t k = 0; k < SIDE; k++) given[k] = beside(g, &z, operands[k]);
    given[SIDE] = s->count ? kl_graph_reshape(g, x, 3, (int64_t[]){z.b, z.m, z.n}) : kl_zero_like(g, given[DIAGONAL]);
    uint32_t i = kl_graph_iota(g, KILN_S32, 3, kl_graph_shape(g, given[SIDE])->dims, 1);
    uint32_t end = kl_graph_compare_with(g, KL_EQ, i, z.m - 1); // where nothing is above
    given[UPPER] = kl_graph_select(g, end, kl_zero_like(g, given[UPPER]), given[UPPER]);
    uint32_t first = eliminate(g, &z, steps, given, rows);
    uint32_t zero = kl_graph_number(g, s->dtype, 0, 2, (int64_t[]){z.b, z.n});
    uint32_t back =
        kl_graph_steps(g, steps->body, STAYS, CARRIED_BACK,
                       (uint32_t[]){rows[FIRST], rows[SECOND], rows[THIRD], rows[RIGHT], zero, zero}, 1, true);
    if (s->count) x = kl_graph_reshape(g, kl_graph_element(g, back, 0), s->rank, s->dims);
    if (all)
      info = kl_graph_reshape(g, kl_graph_slice(g, first, 1, 0, 1, 1), results->elems[GIVEN]->rank,
                              results->elems[GIVEN]->dims);
  }
  if (!all) return x;
  return kl_graph_tuple(g, 5, (uint32_t[]){operands[LOWER], operands[DIAGONAL], operands[UPPER], x, info});
}
