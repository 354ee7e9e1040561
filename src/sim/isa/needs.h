// What instructions need that not every module has: a version of PTX, and a target. Those that older assemblers refuse
// and a GPU of the module's target lacks; what all versions and targets of today have is not listed.
#ifndef KL_ISA_NEEDS_H
#define KL_ISA_NEEDS_H

#include "sim/ptx/ptx.h"

// Which targets have it.
typedef enum kl_having {
  KL_HAVE_LATER,    // all from that number on
  KL_HAVE_OWN,      // sm_100a and sm_103a alone
  KL_HAVE_SPECIFIC, // sm_90a, and from sm_100 on those that say `a` or `f`
} kl_having;

// clang-format off
//  what                       opcodes            which of them            version  sm   targets   section
#define KL_ISA_NEEDS(X)                                                                                                \
  X("three inputs",            "min max",         operands(i) == 4,        88,      100, LATER,    "9.7.3.11, 12")     \
  X("pairs of f32",            "add sub mul fma", has(i, "f32x2"),         86,      100, LATER,    "9.7.3.3 to 6")     \
  X("stochastic rounding",     "cvt",             has(i, "rs"),            87,      100, OWN,      "9.7.9.21")         \
  X("an access of 256 bits",   "ld ldu st",       bits(i) == 256,          88,      100, LATER,    "9.7.9.8, 11")      \
  X("setmaxnreg",              "setmaxnreg",      true,                    80,      90,  SPECIFIC, "9.7.19.5")
// clang-format on

typedef struct kl_need {
  const char *what, *section;
  uint32_t version; // 88: 8.8
  uint32_t sm;
  uint8_t having; // kl_having
} kl_need;

// What the instruction needs and the module does not have; NULL: nothing.
const kl_need *kl_isa_lacking(const kl_ptx_module *m, const kl_ptx_instr *i);
// "sm_100 or later", as messages say it.
const char *kl_need_targets(const kl_need *n);

#endif
