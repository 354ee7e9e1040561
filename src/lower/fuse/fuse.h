// Which instructions of ENTRY become which fusions.
//
// A value is made where it is wanted, in registers, or written once and read. It is written where it is wanted outside
// fusions; where what makes it has no place in the kernels that want it; where making it again costs more, by counted
// time, than writing and reading it. One that is written is made beside what reads it at the same index, if anything
// does, and kernels over the same elements that read something alike are one.
#ifndef KL_LOWER_FUSE_H
#define KL_LOWER_FUSE_H

#include "ir/rewrite/fuse.h"

// Fills in what becomes of a computation without calls, whose tuples are taken apart (ir/rewrite/plain.h): fusions,
// loops and branches that it has stay as they are; `has` says by computation what kl_find_ops does of ops that need
// kernels. All of `out` is in `arena`. Says in `why`, if it is not NULL, what becomes one
// and what is written, a line each. Takes time nearly by the number of instructions.
void kl_fuse_plan(kl_ctx *cx, const kiln_module *m, uint32_t comp, const bool *has, kl_arena *arena, kl_fused *out,
                  kl_sb *why);

// Is it one of the ops that stay where they are, for whoever runs ENTRY, with computations of their own?
bool kl_is_run(const kl_instr *in, const bool *has);

#endif
