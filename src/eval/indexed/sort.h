// Between sort.c (lines by key, results) and order.c (what comparators say).
#ifndef KL_EVAL_SORT_H
#define KL_EVAL_SORT_H

#include "eval/impl.h"

#include <stdatomic.h>

// Lines along one dimension, reordered alike in several arrays. Element i of a line is at its base plus i * stride.
typedef struct kl_lines {
  int64_t n, stride, lines, kept; // of n elements the first `kept` are results
  bool descending, total;         // by key; total: in the total order of floats
  bool stable;                    // equal keys keep their order on every device
} kl_lines;

static inline int64_t kl_line_base(const kl_lines *l, int64_t line, int64_t n) {
  return line / l->stride * n * l->stride + line % l->stride;
}

// Does `comparator` compare one value computed from the operands' first elements with the same of their second? Then
// *keys are these values for all elements (under a shape of its own, *shape), and l->descending, l->total say how.
// operands: arrays of one shape.
kiln_status kl_sort_keys(kl_ev *ev, const kl_comp *comparator, const kl_evval *const *operands, kl_lines *l,
                         kl_shape *shape, bool *found, kl_evval *keys);

// The order that a comparator gives, by merging; any comparator yields some order. perm: for every line its elements
// in order; joined (NULL: not asked for): 1 where an element may change places with the one before it.
typedef struct kl_merge {
  kl_ev *ev;
  const kl_lines *l;
  const kl_ev_program *program;
  uint32_t n;                // operands
  const kl_evval *const *in; // written out in full
  const bool *used;          // the comparator looks at operand k
  int64_t *perm;
  uint8_t *joined;
  uint8_t *disorder; // with `joined`, by line, zero: 1 where the comparator is seen to be no order of its elements
} kl_merge;
kiln_status kl_sort_merge(const kl_merge *m);
// Which operands a comparator looks at.
void kl_sort_used(kl_ev *ev, const kl_comp *comparator, uint32_t n, bool *used);

#endif
