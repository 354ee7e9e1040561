// f16 and bf16 functions on pairs of lanes, for NVPTX: those of sm_80 on, where the machine computes on pairs of both
// types, and of sm_90 on, where it also compares pairs of bf16. Other targets, other types and lanes without a partner
// take km_call (math.h); both ways are correctly rounded, so they give the same bits.
#ifndef KL_HALF_H
#define KL_HALF_H

#include "ir/hlo.h"
#include "lower/emit/kb.h"

// Is there one of `op` for this machine and type?
bool kh_has(const kb *k, kl_op op, kl_dtype t);
// The op on n pairs at once, packed registers F16 or BF16: x[o] are the n of operand o, the results go to out. May emit
// blocks.
void kh_call(kb *k, kl_op op, unsigned n, const kb_reg *const *x, kb_reg *out);

#endif
