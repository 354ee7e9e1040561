// Ops that are made of others: random bits and numbers, batch normalisation, dots over ragged groups, pieces that one
// device sends itself, custom calls that stand for ops.
#ifndef KL_EXPAND_H
#define KL_EXPAND_H

#include "ir/hlo.h"

// A module of its own in which these ops are written out in ops that have kernels, wherever they stand: in ENTRY, in
// fusions, in what calls, loops and branches run. What they compute is what eval/eval.h says of them: the bits of
// rng-bit-generator are the same, batch norms take the steps that it names, each sum of a ragged dot has the order that
// the same dot has without groups. *out NULL: there is nothing to do. What the evaluator does not take, stays.
kiln_status kl_module_expand(kl_ctx *cx, const kiln_module *m, kiln_module **out);

#endif
