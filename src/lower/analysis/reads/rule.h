// What the rules of this room share: a need under construction, and where finished ones go.
#ifndef KL_READS_RULE_H
#define KL_READS_RULE_H

#include "lower/analysis/reads/reads.h"

enum { RULE_MAX_CONSTRAINTS = 16 * KILN_MAX_RANK };

// One instruction looked at for one of its result leaves.
typedef struct rule {
  const kl_reader *r;
  kl_affs *p;
  const kl_comp *c;
  const kl_instr *in;
  uint32_t leaf;
  const kl_shape *out;
  const kl_aff *const *at; // the element asked about
  VEC(kl_need) found;
  // the need under construction
  uint32_t nranges, nrts, nresults, nconstraints;
  kl_map_var ranges[KL_NEED_VARS], rts[KL_NEED_VARS];
  const kl_aff *results[KILN_MAX_RANK + 1];
  kl_constraint constraints[RULE_MAX_CONSTRAINTS];
} rule;

static inline const kl_shape *rule_operand(const rule *u, uint32_t i) {
  return kl_operand(u->c, u->in, i)->shape;
}
static inline const kl_aff *rule_dim(rule *u, uint32_t d) {
  return u->at[d];
}
// Place of v in the list, or -1.
static inline int64_t rule_place(kl_ints list, int64_t v) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.p[i] == v) return i;
  return -1;
}

// A new need, of the operand's element without an index.
void rule_begin(rule *u);
void rule_result(rule *u, const kl_aff *e);
// Of a dimension; one whose extent is not known has no end.
kl_interval rule_indices(int64_t size);
// Range variable with values 0 .. size-1; of one value, that.
const kl_aff *rule_range(rule *u, int64_t size);
void rule_constrain(rule *u, const kl_aff *e, int64_t lo, int64_t hi);
// The value of element `index` of operand `operand` within lo..hi: clamped to it, or with no element outside of it.
// What is known without running (constants, iota) is its value at once.
const kl_aff *rule_runtime(rule *u, uint32_t operand, uint32_t nindex, const kl_aff *const *index, bool clamped,
                           int64_t lo, int64_t hi);
// Adds it as a need of (operand, leaf): exact.
kl_need *rule_end(rule *u, uint32_t operand, uint32_t leaf);
// The same, but it holds more than is needed.
void rule_end_over(rule *u, uint32_t operand, uint32_t leaf, const char *why);
void rule_end_remote(rule *u, uint32_t operand, uint32_t leaf, const char *why);
void rule_unknown(rule *u, uint32_t operand, uint32_t leaf, const char *why);

// --- whole needs --------------------------------------------------------------------------------------------------

void rule_same(rule *u, uint32_t operand);                 // the same index
void rule_scalar(rule *u, uint32_t operand);               // the one element of a rank-0 operand
void rule_all(rule *u, uint32_t operand, const char *why); // every element of every leaf; why NULL: exact
// dims[i]: the result's dim along dim i of the operand, or -1 for a range over all of it.
void rule_along(rule *u, uint32_t operand, const int64_t *dims);

// --- the families -------------------------------------------------------------------------------------------------

typedef void rule_fn(rule *u);
rule_fn rule_elementwise, rule_broadcast, rule_reshape, rule_bitcast, rule_bitcast_convert, rule_transpose, rule_slice,
    rule_reverse, rule_concatenate, rule_pad, rule_tuple, rule_get_tuple_element, rule_forward,
    rule_copy_async;                                                              // move.c
rule_fn rule_dot, rule_reduce, rule_scan, rule_sort, rule_topk;                   // fold.c
rule_fn rule_reduce_window, rule_convolution, rule_select_and_scatter;            // window.c
rule_fn rule_dynamic_slice, rule_dynamic_update_slice, rule_gather, rule_scatter; // runtime.c
rule_fn rule_collective, rule_batch_norm, rule_cholesky, rule_triangular_solve, rule_fft, rule_rng, rule_dimension_size,
    rule_dynamic_reshape; // other.c

void rule_concatenate_operand(rule *u, uint32_t operand, int64_t begin);

// The index of the element at position `linear` of a row-major array, without a mod for the first dim.
void rule_delinearize(rule *u, const kl_aff *linear, uint32_t rank, const int64_t *dims, const kl_aff **index);
const kl_aff *rule_linearize(rule *u, uint32_t rank, const int64_t *dims, const kl_aff *const *index);

#endif
