// Custom calls that stand for ops.
#include "ir/custom.h"

#include "ir/rewrite/expand/room.h"

static bool takes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  bool largest;
  kl_custom kind = kl_custom_of(c, in);
  return kind == KL_CUSTOM_BUFFER || (kind == KL_CUSTOM_TOPK && kl_custom_topk(m, in, &largest));
}

// Who allocates a buffer and reads it without writing gets zeros.
static uint32_t write(const kl_expansion *x) {
  kl_graph *g = x->g;
  const kl_shape *s = x->in->shape;
  if (s->dtype != KILN_TUPLE) return kl_graph_bits(g, s->dtype, (uint64_t[2]){0, 0}, s->rank, s->dims);
  bool largest;
  kl_custom_topk(g->m, x->in, &largest);
  const kl_shape *values = s->elems[0];
  return kl_graph_topk(g, x->operands[0], values->dims[values->rank - 1], largest);
}

const kl_expander kl_expand_custom = {takes, NULL, write};
