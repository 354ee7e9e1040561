// What becomes of bits without a value: executors over shadows. A shadow is a register of the width of the one it
// belongs to, whose set bits are those that have no value. These have no rows: src/sim/check chooses them by the spread
// of a row, and the operands of kl_sim_op are shadows, but where `how` says otherwise.
#ifndef KL_LANES_SHADOW_H
#define KL_LANES_SHADOW_H

#include "sim/isa/op.h"

typedef struct kl_shadow_part {
  kl_ref at;
  uint16_t low;  // of 16 bits, those that count
  uint8_t bytes; // 0: a predicate
} kl_shadow_part;

// Behind kl_sim_op.imm.
typedef struct kl_shadow_how {
  kl_shadow_part from[5], to[4]; // all: sources and destinations
  uint8_t nfrom, nto;
  kl_ref value[4];   // of the operands themselves: a, b, c, f
  uint32_t table;    // lop3: the function
  kl_sim_op moved;   // moved: the instruction itself, over shadows but for its amounts
  kl_ref amount[2];  // shadows of its amounts
  uint32_t counts;   // and the bits of these that count
  kl_ref carry;      // CC.CF's shadow: a word, a bit for each lane
  bool takes, gives; // the carry
} kl_shadow_how;

// X(executor): what a bit of the result depends on
//   merge_N      the same bit of a, b and c
//   up_N         that and lower ones; with a carry, if `how` says so
//   all          every bit of every source
//   pairs        every bit of the same half of 16 bits of a, b and c
//   and_N or_N   a and b, where a 0 or a 1 that is known decides; andn_pred: a and not b
//   lop3         a, b and c by a table; lop3_bool: also the predicate e, with q in f
//   select_N     a or b, by predicate c
//   moved        what an instruction moves, by amounts that are known or not
#define KL_SHADOWS(X)                                                                                                  \
  X(merge_pred)                                                                                                        \
  X(merge_16)                                                                                                          \
  X(merge_32)                                                                                                          \
  X(merge_64)                                                                                                          \
  X(up_16)                                                                                                             \
  X(up_32)                                                                                                             \
  X(up_64)                                                                                                             \
  X(all)                                                                                                               \
  X(pairs)                                                                                                             \
  X(and_pred)                                                                                                          \
  X(andn_pred)                                                                                                         \
  X(and_16)                                                                                                            \
  X(and_32)                                                                                                            \
  X(and_64) X(or_pred) X(or_16) X(or_32) X(or_64) X(lop3) X(lop3_bool) X(select_16) X(select_32) X(select_64) X(moved)

#define KL_SHADOW_NAME(executor, ...) KL_SHADOW_##executor,
enum { KL_SHADOWS(KL_SHADOW_NAME) KL_SHADOW_COUNT }; // by number in kl_lane_set.shadow
#undef KL_SHADOW_NAME

#endif
