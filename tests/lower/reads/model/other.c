// What is no kind of its own.
#include "look.h"

// Every element with the feature of x.
static void take_feature(const look *k, uint32_t operand, int64_t feature) {
  const kl_shape *s = shape_of(k, operand);
  int64_t y[RANK];
  if (first(s->rank, s->dims, y)) do
      if (y[k->in->more->feature_index] == feature) take(k, operand, 0, y);
    while (next(s->rank, s->dims, y));
}

static void batch_norm(const look *k) {
  int64_t f = k->leaf ? k->x[0] : k->x[k->in->more->feature_index];
  if (k->in->op == KL_OP_BATCH_NORM_GRAD) { // operand, scale, mean, variance, gradient
    take_feature(k, 4, f);
    if (k->leaf == 2) return;
    take_feature(k, 0, f);
    for (uint32_t i = k->leaf ? 2 : 1; i < 4; i++) take(k, i, 0, &f);
    return;
  }
  if (k->in->op == KL_OP_BATCH_NORM_TRAINING)
    take_feature(k, 0, f);
  else
    take_same(k, 0);
  for (uint32_t i = 1; i < k->in->noperands && !k->leaf; i++) take(k, i, 0, &f);
}

static void cholesky(const look *k) {
  uint32_t r = k->out->rank;
  bool lower = k->in->more->lower;
  int64_t y[RANK], i = k->x[r - (lower ? 2 : 1)], j = k->x[r - (lower ? 1 : 2)];
  memcpy(y, k->x, sizeof(int64_t) * r);
  for (int64_t row = 0; row <= i && j <= i; row++)
    for (int64_t column = 0; column <= row && column <= j; column++) {
      if (row > j && row < i) continue;
      y[r - 2] = lower ? row : column, y[r - 1] = lower ? column : row;
      take(k, 0, 0, y);
    }
}

// Its own equation and those that are solved before it: op(a) x = b from above where op(a) is lower, x op(a) = b from
// behind.
static void triangular_solve(const look *k) {
  const kl_more *m = k->in->more;
  uint32_t r = k->out->rank, along = r - (m->left_side ? 2 : 1);
  bool forward = (m->lower == (m->transpose_a == KL_NO_TRANSPOSE)) == m->left_side;
  int64_t y[RANK];
  memcpy(y, k->x, sizeof(int64_t) * r);
  for (y[along] = 0; y[along] < k->out->dims[along]; y[along]++)
    if (forward ? y[along] <= k->x[along] : y[along] >= k->x[along]) take(k, 1, 0, y);
  y[r - 2] = y[r - 1] = k->x[along];
  if (!m->unit_diagonal) take(k, 0, 0, y);
}

static void fft(const look *k) {
  const kl_shape *s = shape_of(k, 0);
  uint32_t kept = s->rank - k->in->more->sizes.n;
  int64_t y[RANK];
  if (first(s->rank, s->dims, y)) do
      if (memcmp(y, k->x, sizeof(int64_t) * kept) == 0) take(k, 0, 0, y);
    while (next(s->rank, s->dims, y));
}

static void collective(const look *k) {
  kl_op op = k->in->op;
  uint32_t n = k->in->noperands, operand = k->leaf % n;
  int64_t y[RANK];
  memcpy(y, k->x, sizeof(int64_t) * k->out->rank);
  if (op == KL_OP_ALL_GATHER_DONE || op == KL_OP_COLLECTIVE_PERMUTE_DONE) {
    uint32_t half = (uint32_t)kl_shape_leaf_count(shape_of(k, 0)->elems[0]);
    take(k, 0, half + k->leaf, y);
    return;
  }
  if (op == KL_OP_ALL_REDUCE_DONE) {
    take_leaf(k);
    return;
  }
  if (op == KL_OP_RAGGED_ALL_TO_ALL) operand = 1; // the rows that nothing is sent to
  bool in_place = n == 4;                         // whose parts are copied where data says
  if (op == KL_OP_COLLECTIVE_PERMUTE_START && (k->leaf > 1 || in_place)) return;
  bool result = op != KL_OP_ALL_GATHER_START || k->leaf >= n;
  if (result && (op == KL_OP_ALL_GATHER || op == KL_OP_ALL_GATHER_START))
    y[k->in->dims[0]] %= shape_of(k, operand)->dims[k->in->dims[0]];
  take(k, operand, 0, y); // reduce-scatter and all-to-all: as device 0 of the group
}

bool look_other(const look *k) {
  switch (kl_op_table[k->in->op].kind) {
  case KL_KIND_RNG:
  case KL_KIND_RNG_BITS:
    for (uint32_t i = 0; i < k->in->noperands; i++) take_all(k, i);
    break;
  case KL_KIND_BATCH_NORM: batch_norm(k); break;
  case KL_KIND_CHOLESKY: cholesky(k); break;
  case KL_KIND_TRIANGULAR_SOLVE: triangular_solve(k); break;
  case KL_KIND_FFT: fft(k); break;
  case KL_KIND_COLLECTIVE: collective(k); break;
  default: return false;
  }
  return true;
}
