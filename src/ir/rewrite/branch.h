// Conditionals without branches.
#ifndef KL_BRANCH_H
#define KL_BRANCH_H

#include "ir/rewrite/transform.h"

// By computation: does it have a `wanted` op, or call one that has?
bool *kl_find_ops(const kiln_module *m, bool (*wanted)(const kl_instr *), kl_arena *arena);

// Has a branch of the conditional, by what kl_find_ops found, a wanted op?
bool kl_is_branching(const kl_instr *in, const bool *has);

// A module of its own, in which conditionals with a `wanted` op in a branch, or in what it calls, are calls of all
// their branches and selects; but those with a loop stay, as one that is not begun need not end, and those of
// computations that are marked in `but`, if it is not NULL. *out NULL: there are none.
kiln_status kl_module_unbranch(kl_ctx *cx, const kiln_module *m, bool (*wanted)(const kl_instr *), const bool *but,
                               kiln_module **out);

#endif
