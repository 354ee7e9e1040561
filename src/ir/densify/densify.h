// Modules with sparse tensors as modules over the arrays that these are stored in.
//
// A value with an encoding is a dense tensor to every op. So a parameter that has one becomes its arrays and a fusion
// that makes the dense tensor of them, ENTRY computes as before, and of a result with one a fusion makes arrays. What
// comes out is HLO without encodings, which prints, is evaluated and is compiled like any other.
#ifndef KL_DENSIFY_H
#define KL_DENSIFY_H

#include "ir/hlo.h"
#include <kiln/artifact.h>
#include <kiln/sparse.h>

// Has a leaf of ENTRY an encoding, or a value of any computation?
bool kl_has_encodings(const kiln_module *m);

// What a leaf of the module that was made is of the one that it was made from.
typedef struct kl_stored_leaf {
  uint32_t leaf; // of the parameters, or of the results
  kiln_slot_role role;
  uint32_t level; // of positions and coordinates: the first one
} kl_stored_leaf;

typedef struct kl_stored_interface {
  uint32_t nparams, nresults;
  const kl_stored_leaf *leaves; // parameters, then results
  const char *told;             // lines that say what became of each tensor, and what memory it takes
} kl_stored_interface;

// *out: the module; `io`, in the arena, tells its leaves. kiln_module_densify says the rest.
kiln_status kl_module_densify(kl_ctx *cx, const kiln_module *m, const kiln_sparse_slot *slots, size_t n,
                              kl_arena *arena, kl_stored_interface *io, kiln_module **out);

#endif
