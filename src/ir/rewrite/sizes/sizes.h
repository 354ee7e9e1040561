// Arrays of dynamic sizes as arrays of known ones, with their sizes beside them.
#ifndef KL_SIZES_H
#define KL_SIZES_H

#include "ir/hlo.h"

// A module of its own in which no dimension is dynamic that set-dimension-size or dynamic-reshape makes so: an array is
// as large as its bounds, and beside it goes the size of each such dimension, an s32 number held to 0 .. bound, which
// get-dimension-size becomes. What lies beyond a size is nobody's; an op that would let it into what lies before puts
// there what changes nothing: a reduction its reducer's neutral value, or word that it is not there, a contraction
// zeros. What such ops compute is what eval/eval.h says. Results of ENTRY are 0 beyond their sizes. Calls and fusions
// of such arrays are replaced by what they call, and so is what is started of arrays, which is done there; what loops
// and branches run takes and gives sizes in tuples. *out NULL: no size is set. Errors: UNSUPPORTED with a finding for
// each op that is not taken (64 at most): among them parameters of ENTRY with dynamic dimensions.
kiln_status kl_module_sizes(kl_ctx *cx, const kiln_module *m, kiln_module **out);

#endif
