// Computations cut into several fusions.
#ifndef KL_SPLIT_H
#define KL_SPLIT_H

#include "ir/rewrite/transform.h"

// A computation that becomes several: `fusion` is the instruction that calls it, of ENTRY or of a computation that is
// run for it, or NULL for ENTRY itself, which then calls no fusion yet. Each instruction that is marked becomes the
// root of a fusion of its own, which others read; results that are none of these are made by one more, the last. What
// several of them need, and is not marked, is there in each.
typedef struct kl_split {
  const kl_instr *fusion;
  const kl_comp *comp; // the computation, or one of the same parameters and results in its place
  const bool *cut;     // by instruction of the computation; parameters, constants and tuples are not marked
  uint32_t in;         // the computation that `fusion` is of; ENTRY
} kl_split;

// A module of its own in which the pieces are called, in an order that suits; its parameters and results are those of
// `m`. `splits` are in the order of computations and instructions, each fusion at most once. *out NULL: a value would
// have to lie in memory in two ways.
kiln_status kl_module_split(kl_ctx *cx, const kiln_module *m, uint32_t n, const kl_split *splits, kiln_module **out);

#endif
