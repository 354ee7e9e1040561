// Loops as their bodies, one after the other.
#ifndef KL_UNROLL_H
#define KL_UNROLL_H

#include "ir/rewrite/transform.h"

// A module of its own, in which loops whose rounds the text says (ir/rewrite/trips.h), without a `wanted` op in what
// they call, are calls of their bodies, as far as these are few instructions in all. Says so in `why`, if it is not
// NULL. *out NULL: there are none.
kiln_status kl_module_unroll(kl_ctx *cx, const kiln_module *m, bool (*wanted)(const kl_instr *), kl_sb *why,
                             kiln_module **out);

#endif
