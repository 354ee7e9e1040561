// Ops that are whole algorithms, over as many elements as there are: matrices, and norms of batches.
#include "ir/rewrite/expand/expand.h"
#include "ir/rewrite/sizes/room.h"

// --- matrices -------------------------------------------------------------------------------------------------------

// The first `size` rows and columns of a matrix each, and a unit matrix beyond them: what is made of the two parts does
// not mix.
static uint32_t bordered(kl_sizing *z, uint32_t a, uint32_t size) {
  kl_graph *g = z->g;
  const kl_shape *s = kl_graph_shape(g, a);
  kl_extents x = {{0}};
  for (uint32_t d = 0; d < s->rank; d++) x.of[d] = d + 2 < s->rank ? KL_WHOLE : size;
  uint32_t there = kl_size_there(z, s, &x);
  uint32_t i = kl_graph_iota(g, KILN_S32, s->rank, s->dims, s->rank - 2);
  uint32_t j = kl_graph_iota(g, KILN_S32, s->rank, s->dims, s->rank - 1);
  uint32_t unit = kl_graph_convert(g, kl_graph_compare(g, KL_EQ, i, j), s->dtype);
  return kl_graph_select(g, there, a, unit);
}

static uint32_t order_of(kl_sizing *z) {
  uint32_t rank = z->shapes[0]->rank;
  return kl_size_least(z, kl_extent(z, 0, rank - 2), kl_extent(z, 0, rank - 1));
}

// Rows and columns of a factor are made of those before them.
static uint32_t cholesky(kl_sizing *z) {
  uint32_t rank = z->shapes[0]->rank, order = order_of(z);
  for (uint32_t d = 0; d < rank; d++) z->out->of[d] = d + 2 < rank ? kl_extent(z, 0, d) : order;
  return kl_size_keep(z);
}

// Rows of b beyond the order are zeros, and so is what comes of them.
static uint32_t triangular_solve(kl_sizing *z) {
  uint32_t rank = z->shapes[0]->rank, shared = rank - (z->in->more->left_side ? 2 : 1);
  uint32_t order = kl_size_least(z, order_of(z), kl_extent(z, 1, shared));
  kl_extents x;
  for (uint32_t d = 0; d < rank; d++) {
    x.of[d] = d == shared ? order : KL_WHOLE;
    z->out->of[d] = d == shared ? order : kl_extent(z, 1, d);
    if (d + 2 < rank) z->out->of[d] = kl_size_least(z, z->out->of[d], kl_extent(z, 0, d));
  }
  if (order != KL_WHOLE) {
    z->values[0] = bordered(z, z->values[0], order);
    z->values[1] = kl_size_mask(z, z->values[1], &x, kl_size_zero(z, z->shapes[1]->dtype));
  }
  return kl_size_keep(z);
}

// --- norms ----------------------------------------------------------------------------------------------------------

// Of as many elements each: in the type of its steps.
static uint32_t count_of(kl_sizing *z, const kl_extents *x) {
  const kl_shape *s = z->shapes[0];
  int64_t known = 1;
  uint32_t all = KL_WHOLE;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (d == (uint32_t)z->in->more->feature_index) continue;
    if (x->of[d] == KL_WHOLE) {
      known *= s->dims[d];
      continue;
    }
    uint32_t size = kl_graph_convert(z->g, x->of[d], KILN_S64);
    all = all == KL_WHOLE ? size : kl_graph_binary(z->g, KL_OP_MULTIPLY, all, size);
  }
  all = all == KL_WHOLE ? kl_graph_number(z->g, KILN_S64, known, 0, NULL)
                        : kl_graph_with(z->g, KL_OP_MULTIPLY, all, known);
  return kl_graph_convert(z->g, all, kl_norm_steps(s->dtype));
}

// Sums are over what is there of each feature; one that is not there is nobody's.
static uint32_t norm(kl_sizing *z) {
  const kl_shape *s = z->shapes[0];
  uint32_t feature = (uint32_t)z->in->more->feature_index;
  bool sums = z->in->op != KL_OP_BATCH_NORM_INFERENCE;
  kl_extents x, of;
  for (uint32_t d = 0; d < s->rank; d++) {
    x.of[d] = kl_extent(z, 0, d);
    for (uint32_t k = 1; k < z->in->noperands; k++)
      if (k == 4 && sums)
        x.of[d] = kl_size_least(z, x.of[d], kl_extent(z, k, d));
      else if (d == feature)
        x.of[d] = kl_size_least(z, x.of[d], kl_extent(z, k, 0));
    of.of[d] = d == feature ? KL_WHOLE : x.of[d];
    z->out[0].of[d] = x.of[d];
  }
  for (uint32_t leaf = 1; sums && leaf < 3; leaf++) z->out[leaf].of[0] = x.of[feature];
  uint32_t there = kl_size_there(z, s, &of);
  if (!sums || there == KL_WHOLE) return kl_size_keep(z);
  if (!kl_is_float(s->dtype)) return kl_size_refuse(z, "floats");
  return kl_norm_of(z->g, z->in, z->values, count_of(z, &x), there);
}

uint32_t kl_size_whole_op(kl_sizing *z) {
  if (z->in->op == KL_OP_CHOLESKY) return cholesky(z);
  return z->in->op == KL_OP_TRIANGULAR_SOLVE ? triangular_solve(z) : norm(z);
}
