// Modules as they are compiled: computations cut into pieces where one kernel is not enough. Private to src/jit.
#ifndef KL_PIECES_H
#define KL_PIECES_H

#include "jit/jit.h"
#include "lower/plan/plan.h"

// Makes a module of its own in which what is compiled of `m` is cut, at what is not made element by element too with
// `apart`, and branches with what is not are no branches any more; ENTRY is then all of it, also where `params` pick a
// fusion. *out NULL: there is nothing to do.
kiln_status kl_pieces_make(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params, const kl_target *target,
                           bool apart, kiln_module **out);

#endif
