// Ops that are made of others: random bits and numbers, batch normalisation, dots over ragged groups, pieces that one
// device sends itself, custom calls that stand for ops.
#ifndef KL_EXPAND_H
#define KL_EXPAND_H

#include "ir/rewrite/graph.h"

// A module of its own in which these ops are written out in ops that have kernels, wherever they stand: in ENTRY, in
// fusions, in what calls, loops and branches run. What they compute is what eval/eval.h says of them: the bits of
// rng-bit-generator are the same, batch norms take the steps that it names, each sum of a ragged dot has the order that
// the same dot has without groups. *out NULL: there is nothing to do. What the evaluator does not take, stays.
kiln_status kl_module_expand(kl_ctx *cx, const kiln_module *m, kiln_module **out);
// The same of calls of libraries alone (ir/custom/custom.h), also of those that custom-call-start starts.
kiln_status kl_module_expand_calls(kl_ctx *cx, const kiln_module *m, kiln_module **out);

// What takes the place of a batch norm of floats whose features have so many elements, a value without dimensions of
// the type of its steps, of which `there` says which they are: pred in their dimensions, KL_NORM_ALL: all. The sums of
// -training and -grad take kl_graph_combiner(g, KL_COMBINE_ADD, that type).
#define KL_NORM_ALL UINT32_MAX
uint32_t kl_norm_of(kl_graph *g, const kl_instr *in, const uint32_t *operands, uint32_t count, uint32_t there);
kl_dtype kl_norm_steps(kl_dtype t); // of elements of type t

#endif
