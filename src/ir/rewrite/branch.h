// Conditionals without branches.
#ifndef KL_BRANCH_H
#define KL_BRANCH_H

#include "ir/rewrite/transform.h"

// A module of its own, in which conditionals with a `wanted` op in a branch, or in what it calls, are calls of all
// their branches and selects; but those with a loop stay, as one that is not begun need not end. *out NULL: there are
// none.
kiln_status kl_module_unbranch(kl_ctx *cx, const kiln_module *m, bool (*wanted)(const kl_instr *), kiln_module **out);

#endif
