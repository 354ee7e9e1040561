// Index maps of single instructions: from the index of an output element to those of the operands it needs.
//
// Indices are multi-indices in logical order, one expression per dim. A map may come with conditions: the operand is
// needed, and its index inside its bounds, only where they hold.
#ifndef KL_INDEX_H
#define KL_INDEX_H

#include "ir/index/affine.h"
#include "ir/hlo.h"

#define KL_MAX_CONDITIONS (2 * KILN_MAX_RANK)

typedef struct kl_condition {
  const kl_expr *expr;
  int64_t lo, hi;
} kl_condition;

typedef struct kl_index_map {
  uint32_t rank;
  const kl_expr *index[KILN_MAX_RANK];
  uint32_t nconditions;
  kl_condition conditions[KL_MAX_CONDITIONS];
} kl_index_map;

// Index of operand `operand` of `in` for the output element `out`. For every op of the table but those without one
// operand index (parameter, constant, iota, tuple, calls); elementwise ops pass `out` on, scalar operands get rank 0.
void kl_index_operand(kl_exprs *p, const kl_comp *c, const kl_instr *in, uint32_t operand, const kl_expr *const *out,
                      kl_index_map *map);

// The same of a concatenate, one of whose operands is known to begin at `offset`: takes time by rank, not by operands.
void kl_index_concatenate(kl_exprs *p, const kl_comp *c, const kl_instr *in, uint32_t operand, int64_t offset,
                          const kl_expr *const *out, kl_index_map *map);

// Physical element offset of a logical index, and back, by the shape's layout (no tiles).
const kl_expr *kl_index_linearize(kl_exprs *p, const kl_shape *s, const kl_expr *const *index);
void kl_index_delinearize(kl_exprs *p, const kl_shape *s, const kl_expr *linear, const kl_expr **index);

// e with every occurrence of `var` replaced by `by`.
const kl_expr *kl_expr_subst(kl_exprs *p, const kl_expr *e, int32_t var, const kl_expr *by);

#endif
