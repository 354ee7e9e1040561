// Instructions of a computation put into fusions.
#ifndef KL_FUSE_H
#define KL_FUSE_H

#include "ir/rewrite/transform.h"

#define KL_NO_GROUP UINT32_MAX

// What becomes of a computation's instructions. One with a home is a result of that group, which makes it and hands it
// to whoever else wants it; homes are arrays. One that is given stays in the computation, and groups read it. All
// others are made by each group that needs them, and stay where something that stays needs them, too.
typedef struct kl_fused {
  uint32_t comp;
  uint32_t ngroups;
  const uint32_t *home; // by instruction: group, or KL_NO_GROUP
  const bool *given;    // by instruction
} kl_fused;

// A module of its own in which each group is a fusion, of one result or of a tuple of them; instructions stand in an
// order that suits, near to the one they had. `list` is in the order of computations, and has with a computation all
// that call it. INTERNAL: groups need each other in a circle.
kiln_status kl_module_fuse(kl_ctx *cx, const kiln_module *m, uint32_t n, const kl_fused *list, kiln_module **out);

#endif
