// Ops on single values that are known. Private to this room.
#ifndef KL_DENSIFY_FOLD_H
#define KL_DENSIFY_FOLD_H

#include "ir/hlo.h"

// The bits of an elementwise op's result, of operands of this type with these bits (a select's pred first, then values
// of `t`). False where they are not known: of ops, types and values for which exact arithmetic, and the roots and
// identities that every implementation keeps, do not say.
bool kl_fold_scalar(const kl_instr *in, kl_dtype t, const uint64_t *operands, uint64_t *out);

#endif
