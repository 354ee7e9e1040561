// ragged-all-to-all on one device: pieces of its first operand over its second, the last where several meet. Rows that
// either does not have are left out.
#include "ir/rewrite/expand/room.h"

static bool takes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  const kl_shape *from = kl_operand(c, in, 0)->shape;
  bool alone = m->header.replica_count <= 1 && m->header.num_partitions <= 1;
  return in->op == KL_OP_RAGGED_ALL_TO_ALL && alone && !from->dynamic && !in->shape->dynamic && in->shape->count >= 0;
}

static void reducers(kl_graph *g, const kl_comp *c, const kl_instr *in) {
  kl_graph_combiner(g, KL_COMBINE_MAX, KILN_S64);
}

// One number for each piece; what is no s64 is the greatest.
static uint32_t numbers(kl_graph *g, uint32_t v) {
  if (kl_graph_shape(g, v)->dtype == KILN_U64) v = kl_graph_with(g, KL_OP_MINIMUM, v, INT64_MAX);
  return kl_graph_convert(g, v, KILN_S64);
}

// Of each row of the result and each piece: is the row in it?
static uint32_t is_within(kl_graph *g, uint32_t offset, uint32_t size, uint32_t shift, int64_t rows, int64_t has) {
  int64_t both[] = {rows, kl_graph_shape(g, offset)->dims[0]};
  uint32_t row = kl_graph_iota(g, KILN_S64, 2, both, 0), there;
  uint32_t at = kl_graph_binary(g, KL_OP_SUBTRACT, row, kl_graph_broadcast(g, offset, 2, both, (int64_t[]){1}));
  uint32_t from = kl_graph_binary(g, KL_OP_ADD, row, kl_graph_broadcast(g, shift, 2, both, (int64_t[]){1}));
  there = kl_graph_compare(g, KL_LT, at, kl_graph_broadcast(g, size, 2, both, (int64_t[]){1}));
  there = kl_graph_binary(g, KL_OP_AND, there, kl_graph_compare_with(g, KL_GE, at, 0));
  there = kl_graph_binary(g, KL_OP_AND, there, kl_graph_compare_with(g, KL_GE, from, 0));
  return kl_graph_binary(g, KL_OP_AND, there, kl_graph_compare_with(g, KL_LT, from, has));
}

static uint32_t write(const kl_expansion *x) {
  kl_graph *g = x->g;
  const kl_shape *s = kl_graph_shape(g, x->operands[1]), *in = kl_graph_shape(g, x->operands[0]);
  int64_t rows = s->dims[0], rest = 1;
  if (!in->dims[0] || !kl_graph_shape(g, x->operands[2])->dims[0]) return x->operands[1];
  for (uint32_t d = 1; d < s->rank; d++) rest *= s->dims[d];
  uint32_t offset = numbers(g, x->operands[4]), size = numbers(g, x->operands[3]);
  uint32_t shift = kl_graph_binary(g, KL_OP_SUBTRACT, numbers(g, x->operands[2]), offset);
  uint32_t within = is_within(g, offset, size, shift, rows, in->dims[0]);
  const kl_shape *both = kl_graph_shape(g, within);
  uint32_t number = kl_graph_with(g, KL_OP_ADD, kl_graph_iota(g, KILN_S64, 2, both->dims, 1), 1);
  uint32_t none = kl_graph_number_like(g, number, 0);
  uint32_t last = kl_graph_reduce(g, kl_graph_select(g, within, number, none), 1, KL_COMBINE_MAX);
  uint32_t from = kl_graph_gather(g, shift, kl_graph_with(g, KL_OP_SUBTRACT, last, 1));
  from = kl_graph_binary(g, KL_OP_ADD, from, kl_graph_iota(g, KILN_S64, 1, &rows, 0));
  uint32_t all = kl_graph_reshape(g, x->operands[0], 3, (int64_t[]){1, in->dims[0], rest});
  uint32_t moved = kl_graph_take(g, all, kl_graph_reshape(g, from, 2, (int64_t[]){1, rows}));
  uint32_t given = kl_graph_broadcast(g, kl_graph_compare_with(g, KL_GT, last, 0), s->rank, s->dims, (int64_t[]){0});
  return kl_graph_select(g, given, kl_graph_reshape(g, moved, s->rank, s->dims), x->operands[1]);
}

const kl_expander kl_expand_pieces = {takes, reducers, write};
