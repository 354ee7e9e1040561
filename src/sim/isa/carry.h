// Rows of extended precision: sums with a carry in CC.CF. PTX ISA 9.7.2. A difference sets CC.CF where it does not
// borrow, as GPUs do; the ISA says where it does, which shows only where CC.CF of a sum is taken by a difference or
// back.
#ifndef KL_ISA_CARRY_H
#define KL_ISA_CARRY_H

// clang-format off
//  executor        pattern                                operands  unit      spread  grade  section
#define KL_ISA_CARRY(X)                                                                                                \
  X(add_cc_32,      "add.cc(.u32|.s32)",                   "w=ww",   INTEGER,  UP,     EXACT, "9.7.2.1")               \
  X(add_cc_64,      "add.cc(.u64|.s64)",                   "l=ll",   INTEGER,  UP,     EXACT, "9.7.2.1")               \
  X(addc_32,        "addc(.u32|.s32)",                     "w=ww",   INTEGER,  UP,     EXACT, "9.7.2.2")               \
  X(addc_64,        "addc(.u64|.s64)",                     "l=ll",   INTEGER,  UP,     EXACT, "9.7.2.2")               \
  X(addc_cc_32,     "addc.cc(.u32|.s32)",                  "w=ww",   INTEGER,  UP,     EXACT, "9.7.2.2")               \
  X(addc_cc_64,     "addc.cc(.u64|.s64)",                  "l=ll",   INTEGER,  UP,     EXACT, "9.7.2.2")               \
  X(sub_cc_32,      "sub.cc(.u32|.s32)",                   "w=ww",   INTEGER,  UP,     EXACT, "9.7.2.3")               \
  X(sub_cc_64,      "sub.cc(.u64|.s64)",                   "l=ll",   INTEGER,  UP,     EXACT, "9.7.2.3")               \
  X(subc_32,        "subc(.u32|.s32)",                     "w=ww",   INTEGER,  UP,     EXACT, "9.7.2.4")               \
  X(subc_64,        "subc(.u64|.s64)",                     "l=ll",   INTEGER,  UP,     EXACT, "9.7.2.4")               \
  X(subc_cc_32,     "subc.cc(.u32|.s32)",                  "w=ww",   INTEGER,  UP,     EXACT, "9.7.2.4")               \
  X(subc_cc_64,     "subc.cc(.u64|.s64)",                  "l=ll",   INTEGER,  UP,     EXACT, "9.7.2.4")               \
  X(mad_lo_cc_u32,  "mad.lo.cc(.u32|.s32)",                "w=www",  MULTIPLY, UP,     EXACT, "9.7.2.5")               \
  X(mad_hi_cc_u32,  "mad.hi.cc.u32",                       "w=www",  MULTIPLY, ALL,    EXACT, "9.7.2.5")               \
  X(mad_hi_cc_s32,  "mad.hi.cc.s32",                       "w=www",  MULTIPLY, ALL,    EXACT, "9.7.2.5")               \
  X(mad_lo_cc_u64,  "mad.lo.cc(.u64|.s64)",                "l=lll",  MULTIPLY, UP,     EXACT, "9.7.2.5")               \
  X(mad_hi_cc_u64,  "mad.hi.cc.u64",                       "l=lll",  MULTIPLY, ALL,    EXACT, "9.7.2.5")               \
  X(mad_hi_cc_s64,  "mad.hi.cc.s64",                       "l=lll",  MULTIPLY, ALL,    EXACT, "9.7.2.5")               \
  X(madc_lo_u32,    "madc.lo(.u32|.s32)",                  "w=www",  MULTIPLY, UP,     EXACT, "9.7.2.6")               \
  X(madc_hi_u32,    "madc.hi.u32",                         "w=www",  MULTIPLY, ALL,    EXACT, "9.7.2.6")               \
  X(madc_hi_s32,    "madc.hi.s32",                         "w=www",  MULTIPLY, ALL,    EXACT, "9.7.2.6")               \
  X(madc_lo_u64,    "madc.lo(.u64|.s64)",                  "l=lll",  MULTIPLY, UP,     EXACT, "9.7.2.6")               \
  X(madc_hi_u64,    "madc.hi.u64",                         "l=lll",  MULTIPLY, ALL,    EXACT, "9.7.2.6")               \
  X(madc_hi_s64,    "madc.hi.s64",                         "l=lll",  MULTIPLY, ALL,    EXACT, "9.7.2.6")               \
  X(madc_lo_cc_u32, "madc.lo.cc(.u32|.s32)",               "w=www",  MULTIPLY, UP,     EXACT, "9.7.2.6")               \
  X(madc_hi_cc_u32, "madc.hi.cc.u32",                      "w=www",  MULTIPLY, ALL,    EXACT, "9.7.2.6")               \
  X(madc_hi_cc_s32, "madc.hi.cc.s32",                      "w=www",  MULTIPLY, ALL,    EXACT, "9.7.2.6")               \
  X(madc_lo_cc_u64, "madc.lo.cc(.u64|.s64)",               "l=lll",  MULTIPLY, UP,     EXACT, "9.7.2.6")               \
  X(madc_hi_cc_u64, "madc.hi.cc.u64",                      "l=lll",  MULTIPLY, ALL,    EXACT, "9.7.2.6")               \
  X(madc_hi_cc_s64, "madc.hi.cc.s64",                      "l=lll",  MULTIPLY, ALL,    EXACT, "9.7.2.6")
// clang-format on

#endif
