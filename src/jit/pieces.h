// Modules as they are compiled: ENTRY as fusions, and computations cut into pieces where one kernel is not enough.
// Private to src/jit.
#ifndef KL_PIECES_H
#define KL_PIECES_H

#include "jit/jit.h"
#include "lower/plan/plan.h"

// How much is tried: what is fusions only, or can be one kernel, as it is; all of ENTRY put into fusions; those of them
// that no kernel makes cut at what is not made element by element; all of them, since a kernel may make one whose
// buffers lie as the computation has them, and not as their owners do.
typedef enum kl_trial { KL_AS_IT_IS, KL_FUSED, KL_APART_TOO, KL_ALL_APART, KL_TRIALS } kl_trial;

// Makes a module of its own of what is compiled of `m`: ENTRY is then all of it, also where `params` pick a fusion.
// Says in `why`, if it is not NULL, what was fused. *out NULL: there is nothing to do.
kiln_status kl_pieces_make(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params, const kl_target *target,
                           kl_trial trial, kl_sb *why, kiln_module **out);

#endif
