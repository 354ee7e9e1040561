// Async ops that are written as what they wrap.
#ifndef KL_STARTED_H
#define KL_STARTED_H

#include "ir/hlo.h"

// A module of its own in which no op is written as fusion-start, dot-done and the like: the op itself is where it is
// started, and what it starts is the tuple of its operands, its result and zeros for contexts. *out NULL: there is no
// such op.
kiln_status kl_module_started(kl_ctx *cx, const kiln_module *m, kiln_module **out);

#endif
