// The order of scans by reducers of any ops (docs/numerics.md): blocks of 16 elements, and of 16 of these, and so on.
#ifndef KL_EVAL_BLOCKS_H
#define KL_EVAL_BLOCKS_H

#include "eval/impl.h"

// What stands beside the elements of a scan. CHAIN + level: of the block of this level so far.
enum { KL_BLOCK_LEVELS = 17 };
enum { KL_CHAIN, KL_BEFORE = KL_BLOCK_LEVELS, KL_ELEMENT, KL_RESULT, KL_DONE, KL_TUPLES };

typedef struct kl_blocks {
  const void *arg;
  void (*copy)(const void *arg, uint32_t from, uint32_t to);
  kiln_status (*join)(const void *arg, uint32_t a, uint32_t b, uint32_t to); // a comes before b; `to` may be either
  void (*begin)(const void *arg); // what is before all elements is the initial value
} kl_blocks;

// ELEMENT is element i, which follows those up to i - 1: RESULT becomes what all up to it make.
kiln_status kl_blocks_next(const kl_blocks *b, int64_t i);

#endif
