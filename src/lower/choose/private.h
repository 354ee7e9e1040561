// Loops that each thread runs by itself.
#ifndef KL_PRIVATE_H
#define KL_PRIVATE_H

#include "ir/hlo.h"

// Is the while, whose rounds data says, one in which each element of what it changes is made of scalars, of what it
// does not change, and of the elements at the same index? Then who wants an element makes its rounds alone, and whether
// there is a next one is for all elements the same.
bool kl_loop_is_private(kl_ctx *cx, const kiln_module *m, const kl_instr *loop);

// By leaf of its state: does its body make another of it?
void kl_loop_changes(const kiln_module *m, const kl_instr *loop, bool *out);

#endif
