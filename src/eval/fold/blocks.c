#include "eval/fold/blocks.h"

enum { BASE = 16 };

// A block of level 0 has ended before element i: its chain joins the blocks that it is in, as far up as they end, too.
static kiln_status end_block(const kl_blocks *b, int64_t i) {
  b->copy(b->arg, KL_CHAIN, KL_DONE);
  int64_t number = i / BASE;
  for (uint32_t level = KL_CHAIN + 1;; level++, number /= BASE) {
    if (number % BASE == 1)
      b->copy(b->arg, KL_DONE, level);
    else
      KL_TRY(b->join(b->arg, level, KL_DONE, level));
    if (number % BASE) return KILN_OK;
    b->copy(b->arg, level, KL_DONE);
  }
}

// What comes before the block of 16 that begins at i.
static kiln_status before_block(const kl_blocks *b, int64_t i) {
  uint32_t top = 0, digit[KL_BLOCK_LEVELS];
  for (int64_t number = i / BASE; number; number /= BASE) digit[++top] = (uint32_t)(number % BASE);
  b->begin(b->arg);
  for (uint32_t level = top; level > 0; level--)
    if (digit[level]) KL_TRY(b->join(b->arg, KL_BEFORE, KL_CHAIN + level, KL_BEFORE));
  return KILN_OK;
}

kiln_status kl_blocks_next(const kl_blocks *b, int64_t i) {
  if (i % BASE) {
    KL_TRY(b->join(b->arg, KL_CHAIN, KL_ELEMENT, KL_CHAIN));
  } else {
    if (i) KL_TRY(end_block(b, i));
    KL_TRY(before_block(b, i));
    b->copy(b->arg, KL_ELEMENT, KL_CHAIN);
  }
  return b->join(b->arg, KL_BEFORE, KL_CHAIN, KL_RESULT);
}
