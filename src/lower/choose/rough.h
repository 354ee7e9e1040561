// Rough costs of instructions, before anything is planned: for where computations are cut and what is fused. They are
// those of one machine for all targets, so that a module becomes the same kernels everywhere.
#ifndef KL_ROUGH_H
#define KL_ROUGH_H

#include "ir/hlo.h"

// Of the machine, per nanosecond; and of a launch, in nanoseconds.
#define KL_ROUGH_ISSUED 28000.0
#define KL_ROUGH_MOVED  3300.0
#define KL_ROUGH_LAUNCH 3000.0

double kl_rough_work(const kl_instr *in);     // instructions for an element; 0: it makes nothing
double kl_rough_elements(const kl_instr *in); // 0 for a tuple
double kl_rough_bytes(const kl_instr *in);

#endif
