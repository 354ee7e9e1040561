// What a function's text is to those who look at it as a whole: its blocks, and who reads and writes registers.
#ifndef KL_DECODE_BLOCKS_H
#define KL_DECODE_BLOCKS_H

#include "sim/ptx/ptx.h"

// Blocks: runs of instructions that are executed one after the other.
typedef struct kl_blocks {
  uint32_t n;
  uint32_t *of;          // by instruction: its block
  uint32_t *begin, *end; // by block: itself and those it dominates, in an order of their own; end 0: not reached
  size_t bytes;          // of `of`, which the caller frees
} kl_blocks;
// False: no memory.
bool kl_blocks_find(kl_ctx *cx, const kl_ptx_func *f, kl_blocks *out);
// Does every way from the function's begin to block `of` lead through block `a`?
bool kl_dominates(const kl_blocks *b, uint32_t a, uint32_t of);

// Registers that an instruction reads, its guard among them, then those that it writes, which where it is guarded may
// keep what they have.
typedef void kl_register_fn(void *with, uint32_t reg, bool write);
void kl_each_register(const kl_ptx_instr *i, kl_register_fn *f, void *with);

#endif
