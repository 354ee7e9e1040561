// Arithmetic of warps: what every row of the table's arithmetic topics does to its lanes. Each topic is a file here,
// its rows a header in isa/; every file is compiled once for each instruction set of the host, and kl_lanes_best picks
// one set when the program runs. Results are the same bits in every set.
//
// Registers are aligned to 64 bytes, predicates to 4. Executors compute in the host's default floating-point
// environment: nearest even, subnormal numbers kept; they leave it as it was.
#ifndef KL_LANES_H
#define KL_LANES_H

#include "sim/isa/bits.h"
#include "sim/isa/carry.h"
#include "sim/isa/compare.h"
#include "sim/isa/convert.h"
#include "sim/isa/float.h"
#include "sim/isa/glue.h"
#include "sim/isa/half.h"
#include "sim/isa/integer.h"
#include "sim/isa/logic.h"
#include "sim/isa/narrow.h"
#include "sim/isa/op.h"
#include "sim/isa/special.h"
#include "sim/isa/video.h"
#include "sim/lanes/memory.h"
#include "sim/lanes/shadow.h"
#include "sim/lanes/shuffle.h"

// topic, its rows
#define KL_LANE_TOPICS(X)                                                                                              \
  X(integer, KL_ISA_INTEGER)                                                                                           \
  X(bits, KL_ISA_BITS)                                                                                                 \
  X(carry, KL_ISA_CARRY)                                                                                               \
  X(logic, KL_ISA_LOGIC)                                                                                               \
  X(compare, KL_ISA_COMPARE)                                                                                           \
  X(float, KL_ISA_FLOAT)                                                                                               \
  X(special, KL_ISA_SPECIAL)                                                                                           \
  X(half, KL_ISA_HALF)                                                                                                 \
  X(convert, KL_ISA_CONVERT)                                                                                           \
  X(narrow, KL_ISA_NARROW)                                                                                             \
  X(video, KL_ISA_VIDEO)

// Executors by topic and row, for one instruction set.
typedef struct kl_lane_set {
  const char *name; // "plain", "avx2"
#define X(topic, rows) kl_run *const *topic##_rows;
  KL_LANE_TOPICS(X)
#undef X
  kl_run *const *glue;   // by KL_GLUE_...
  kl_run *const *shadow; // by KL_SHADOW_...
  const kl_lane_memory *memory;
  kl_shuffle_all *shuffle;
} kl_lane_set;

// The set for this machine; KILN_SIM_SET=plain names another, for tests.
const kl_lane_set *kl_lanes_best(void);
// All sets that this machine can execute: *n of them, the best one last.
const kl_lane_set *const *kl_lanes_sets(size_t *n);

#endif
