// What runs on one device as array ops alone.
#ifndef KL_PLAIN_H
#define KL_PLAIN_H

#include "ir/rewrite/transform.h"

// A module of its own whose ENTRY, and computations that its loops and branches with a `wanted` op run, hold no
// structure beside array ops: calls are
// replaced by what they call; what is done asynchronously is done where it starts; barriers, dependencies, domains and
// copies that move nothing are gone; elements are taken of what is no tuple in the text. Where the module is one of one
// replica and one partition, collectives are what they are for one device, and the numbers of devices are 0. Custom
// calls that only say something of an array are that array. *out NULL: there is nothing to do. Errors: UNSUPPORTED
// (2^20 instructions more than before).
kiln_status kl_module_plain(kl_ctx *cx, const kiln_module *m, bool (*wanted)(const kl_instr *), kiln_module **out);

#endif
