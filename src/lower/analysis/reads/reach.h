// What an element of one value of a computation needs of all others, or goes into: dependences composed along every
// path, through calls and fusions.
#ifndef KL_REACH_H
#define KL_REACH_H

#include "lower/analysis/reads/reads.h"

typedef enum kl_reach_way {
  KL_REACH_OPERANDS, // from a value back to what it is made from
  KL_REACH_USERS,    // from a value on to what is made from it
} kl_reach_way;

// A value, and the maps from an index of where the walk began to its indices. Together they are the union; each is
// there once (and once more for elements of other devices), and none without a point beside others. `operand` and
// `leaf` of a dependence say nothing here.
typedef struct kl_reach_value {
  uint32_t frame, instr, leaf;
  uint32_t n;
  const kl_dependence *maps;
} kl_reach_value;

typedef struct kl_reach {
  uint32_t nframes;
  const kl_frame *frames;
  struct kl_runtimes *runtimes; // of the runtime variables in the maps
  uint32_t n;
  const kl_reach_value *values; // by frame, instruction and leaf
} kl_reach;

// Begins at leaf `leaf` of instruction `instr` of the computation, with the identity. All of it lives in the arena of
// the pool but the runtimes: kl_reach_free. Values that are reached in more ways than KL_REACH_MOST_MAPS have one map
// that holds every element, and say so. Calls are followed while all computations entered have KL_REACH_MOST_INSTRS
// instructions or fewer, each counted as often as it is entered; of values that others reach nothing is known, and they
// say that.
enum { KL_REACH_MOST_MAPS = 256, KL_REACH_MOST_INSTRS = 1 << 20 };
void kl_reach_make(kl_affs *p, const kiln_module *m, const kl_comp *comp, uint32_t instr, uint32_t leaf,
                   kl_reach_way way, kl_reach *out);
void kl_reach_free(kl_reach *r);
// The maps of a value; n is 0 where it is not reached.
kl_reach_value kl_reach_find(const kl_reach *r, uint32_t frame, uint32_t instr, uint32_t leaf);

#endif
