// batch-norm-training, -inference and -grad as sums and elementwise steps in f32, or in f64 for f64, with one rounding
// to the type at the end: the formulas of eval/eval.h.
#include "ir/rewrite/expand/room.h"

typedef struct norm {
  kl_graph *g;
  const kl_instr *in;
  const kl_shape *shape; // of what is normalised
  uint32_t feature;      // its dimension
  uint32_t count;        // how many elements a feature has, a value of the steps' type without dimensions
  uint32_t there;        // of which elements that is, pred; KL_NORM_ALL: of all
  kl_dtype steps;
} norm;

kl_dtype kl_norm_steps(kl_dtype t) {
  return t == KILN_F64 ? KILN_F64 : KILN_F32;
}

static bool takes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  const kl_shape *s = kl_operand(c, in, 0)->shape;
  return kl_is_float(s->dtype) && !s->dynamic;
}

static void reducers(kl_graph *g, const kl_comp *c, const kl_instr *in) {
  if (in->op != KL_OP_BATCH_NORM_INFERENCE)
    kl_graph_combiner(g, KL_COMBINE_ADD, kl_norm_steps(kl_operand(c, in, 0)->shape->dtype));
}

// --- steps ----------------------------------------------------------------------------------------------------------

static uint32_t add(const norm *n, uint32_t a, uint32_t b) {
  return kl_graph_binary(n->g, KL_OP_ADD, a, b);
}
static uint32_t subtract(const norm *n, uint32_t a, uint32_t b) {
  return kl_graph_binary(n->g, KL_OP_SUBTRACT, a, b);
}
static uint32_t multiply(const norm *n, uint32_t a, uint32_t b) {
  return kl_graph_binary(n->g, KL_OP_MULTIPLY, a, b);
}
static uint32_t divide(const norm *n, uint32_t a, uint32_t b) {
  return kl_graph_binary(n->g, KL_OP_DIVIDE, a, b);
}

// A number, everywhere in an array like this one.
static uint32_t number(const norm *n, double v, uint32_t like) {
  const kl_shape *s = kl_graph_shape(n->g, like);
  return kl_graph_bits(n->g, n->steps, (uint64_t[2]){kl_float_encode(n->steps, v), 0}, s->rank, s->dims);
}

// What belongs to features, for all elements.
static uint32_t spread(const norm *n, uint32_t features) {
  return kl_graph_broadcast(n->g, features, n->shape->rank, n->shape->dims, (int64_t[]){n->feature});
}

// How many elements a feature has, everywhere in an array like this one.
static uint32_t count(const norm *n, uint32_t like) {
  const kl_shape *s = kl_graph_shape(n->g, like);
  return kl_graph_broadcast(n->g, n->count, s->rank, s->dims, NULL);
}

static uint32_t sum(const norm *n, uint32_t a) {
  int64_t dims[KILN_MAX_RANK];
  uint32_t k = 0;
  if (n->there != KL_NORM_ALL) a = kl_graph_select(n->g, n->there, a, number(n, 0, a));
  for (uint32_t d = 0; d < n->shape->rank; d++)
    if (d != n->feature) dims[k++] = d;
  return kl_graph_reduce_over(n->g, a, k, dims, KL_COMBINE_ADD);
}

static uint32_t mean(const norm *n, uint32_t a) {
  uint32_t s = sum(n, a);
  return divide(n, s, count(n, s));
}

// In the steps' type.
static uint32_t operand(const norm *n, const uint32_t *operands, uint32_t i) {
  return kl_graph_convert(n->g, operands[i], n->steps);
}
static uint32_t rounded(const norm *n, uint32_t a) {
  return kl_graph_convert(n->g, a, n->shape->dtype);
}

// --- the three ------------------------------------------------------------------------------------------------------

static uint32_t with_epsilon(const norm *n, uint32_t variance) {
  return add(n, variance, number(n, n->in->more->epsilon, variance));
}

// (x - mean) (scale / sqrt(variance + epsilon)) + offset
static uint32_t normalize(const norm *n, uint32_t x, uint32_t scale, uint32_t offset, uint32_t mean,
                          uint32_t variance) {
  uint32_t factor = multiply(n, kl_graph_unary(n->g, KL_OP_RSQRT, with_epsilon(n, variance)), scale);
  uint32_t y = multiply(n, subtract(n, x, spread(n, mean)), spread(n, factor));
  return rounded(n, add(n, y, spread(n, offset)));
}

static uint32_t infer(const norm *n, const uint32_t *operands) {
  uint32_t v[5];
  for (uint32_t i = 0; i < 5; i++) v[i] = operand(n, operands, i);
  return normalize(n, v[0], v[1], v[2], v[3], v[4]);
}

// Both sums are over the same elements, so that these are read once. What rounding takes below zero is a variance of 0.
static uint32_t train(const norm *n, const uint32_t *operands) {
  uint32_t x = operand(n, operands, 0), m = mean(n, x), squares = mean(n, multiply(n, x, x));
  uint32_t variance = subtract(n, squares, multiply(n, m, m));
  variance = kl_graph_binary(n->g, KL_OP_MAXIMUM, variance, number(n, 0, variance));
  uint32_t y = normalize(n, x, operand(n, operands, 1), operand(n, operands, 2), m, variance);
  return kl_graph_tuple(n->g, 3, (uint32_t[]){y, rounded(n, m), rounded(n, variance)});
}

// With d = x - mean, v = variance + epsilon: scale / (n sqrt v) (n g - sum g - (sum g d) d / v)
static uint32_t differentiate(const norm *n, const uint32_t *operands) {
  uint32_t x = operand(n, operands, 0), scale = operand(n, operands, 1), m = operand(n, operands, 2);
  uint32_t v = with_epsilon(n, operand(n, operands, 3)), g = operand(n, operands, 4);
  uint32_t d = subtract(n, x, spread(n, m)), root = kl_graph_unary(n->g, KL_OP_RSQRT, v);
  uint32_t sum_g = sum(n, g), sum_gd = sum(n, multiply(n, g, d));
  uint32_t product = multiply(n, scale, root), factor = divide(n, product, count(n, product));
  uint32_t last = divide(n, multiply(n, spread(n, sum_gd), d), spread(n, v));
  uint32_t all = multiply(n, g, count(n, g));
  uint32_t inside = subtract(n, subtract(n, all, spread(n, sum_g)), last);
  uint32_t to_x = multiply(n, spread(n, factor), inside), to_scale = multiply(n, sum_gd, root);
  return kl_graph_tuple(n->g, 3, (uint32_t[]){rounded(n, to_x), rounded(n, to_scale), rounded(n, sum_g)});
}

static norm of(kl_graph *g, const kl_instr *in, const uint32_t *operands) {
  norm n = {.g = g, .in = in, .shape = kl_graph_shape(g, operands[0]), .there = KL_NORM_ALL};
  n.feature = (uint32_t)in->more->feature_index;
  n.steps = kl_norm_steps(n.shape->dtype);
  return n;
}

static uint32_t write_out(const norm *n, const uint32_t *operands) {
  if (n->in->op == KL_OP_BATCH_NORM_TRAINING) return train(n, operands);
  return n->in->op == KL_OP_BATCH_NORM_INFERENCE ? infer(n, operands) : differentiate(n, operands);
}

uint32_t kl_norm_of(kl_graph *g, const kl_instr *in, const uint32_t *operands, uint32_t count, uint32_t there) {
  norm n = of(g, in, operands);
  n.count = count;
  n.there = there;
  return write_out(&n, operands);
}

static uint32_t write(const kl_expansion *x) {
  norm n = of(x->g, x->in, x->operands);
  int64_t others = 1;
  for (uint32_t d = 0; d < n.shape->rank; d++) others *= d == n.feature ? 1 : n.shape->dims[d];
  n.count = kl_graph_bits(x->g, n.steps, (uint64_t[2]){kl_float_encode(n.steps, (double)others), 0}, 0, NULL);
  return write_out(&n, x->operands);
}

const kl_expander kl_expand_norm = {takes, reducers, write};
