// All topics of the table, in the order in which their rows are tried.
#ifndef KL_ISA_TOPICS_H
#define KL_ISA_TOPICS_H

#include "sim/isa/atomic.h"
#include "sim/isa/control.h"
#include "sim/isa/memory.h"
#include "sim/isa/move.h"
#include "sim/isa/warp.h"
#include "sim/lanes/lanes.h"

// topic, its rows: those that the machine decodes itself, beside KL_LANE_TOPICS
#define KL_MACHINE_TOPICS(X)                                                                                           \
  X(move, KL_ISA_MOVE)                                                                                                 \
  X(memory, KL_ISA_MEMORY)                                                                                             \
  X(atomic, KL_ISA_ATOMIC)                                                                                             \
  X(control, KL_ISA_CONTROL)                                                                                           \
  X(warp, KL_ISA_WARP)

#endif
