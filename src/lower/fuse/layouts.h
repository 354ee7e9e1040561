// How values lie that pass from fusion to fusion: so that what only puts elements into another order moves nothing.
#ifndef KL_LOWER_LAYOUTS_H
#define KL_LOWER_LAYOUTS_H

#include "lower/plan/plan.h"

typedef struct kl_layouts_params {
  kl_target measure; // the GPU whose costs decide, the same for all targets, so that a module becomes the same kernels
  kl_target target;  // that is compiled for: what is decided can be compiled for it, too
} kl_layouts_params;

// Makes a module of its own in which fusions of ENTRY, and of what its loops and branches run, that only move elements
// are bitcasts, where that takes less time than they do: where they move nothing; where what they read may lie as their
// result does; or their result as what they read. Values that somebody outside knows, or whose bytes are looked at, lie
// as they did; computations stay as they are, and so do all bits. Says in `why`, if it is not NULL, what has become of
// what, a line each. *out NULL: there is nothing to do. Errors: MEMORY.
kiln_status kl_module_layouts(kl_ctx *cx, const kiln_module *m, const kl_layouts_params *params, kl_sb *why,
                              kiln_module **out);

#endif
