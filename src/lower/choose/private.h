// Loops that each thread runs by itself.
#ifndef KL_PRIVATE_H
#define KL_PRIVATE_H

#include "ir/hlo.h"

typedef struct kl_loop_value {
  uint32_t instr, leaf;
} kl_loop_value;

// lanes.c: what a loop has rounds for. `lanes` is the shape of preds that each say of one lane whether there is another
// round: of rank 0, if rounds are everything's. An array that changes has the lanes' dims, or more: then all its
// elements that are at a lane's place in the lanes' dims are that lane's.
typedef struct kl_loop_lanes {
  const kl_shape *lanes;
  kl_loop_value again;   // of the condition's values
  bool *changes;         // by leaf of the state: does the body make another of it?
  kl_loop_value *next;   // of these: what the body makes of it for a lane that has a round
  const int64_t **along; // of these: the dim of the leaf that each of the lanes' is
} kl_loop_lanes;
kl_loop_lanes *kl_loop_find_lanes(const kiln_module *m, const kl_instr *loop, kl_arena *arena);

// Does the body hand the leaf of its state on as it is?
bool kl_loop_keeps(const kl_comp *body, uint32_t leaf);

// Is the while, whose rounds data says, one in which each element of what it changes is made of scalars, of what it
// does not change, of the elements at the same index, and of its lane's? Then who wants an element makes its rounds
// alone, and whether there is a next one is for all elements of a lane the same.
bool kl_loop_is_private(kl_ctx *cx, const kiln_module *m, const kl_instr *loop);

// opened.c: a module of its own in which fusions with a loop of any other kind are calls, as no kernel is such a one.
// *out NULL: there is none.
kiln_status kl_module_open(kl_ctx *cx, const kiln_module *m, kiln_module **out);

#endif
