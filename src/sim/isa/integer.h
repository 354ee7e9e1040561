// Rows of integer arithmetic. PTX ISA 9.7.1.
//
// What the ISA leaves open is as devices give it: a division or remainder by zero gives all ones, the least number
// divided by -1 is itself and leaves 0, and its absolute value and negation are itself.
#ifndef KL_ISA_INTEGER_H
#define KL_ISA_INTEGER_H

// clang-format off
//  executor        pattern                                operands  unit      spread  grade  section
#define KL_ISA_INTEGER(X)                                                                                              \
  X(add_32,         "add(.u32|.s32)",                      "w=ww",   INTEGER,  UP,     EXACT, "9.7.1.1")               \
  X(add_64,         "add(.u64|.s64)",                      "l=ll",   INTEGER,  UP,     EXACT, "9.7.1.1")               \
  X(add_16,         "add(.u16|.s16)",                      "h=hh",   INTEGER,  UP,     EXACT, "9.7.1.1")               \
  X(add_16x2,       "add(.u16x2|.s16x2)",                  "w=ww",   INTEGER,  PAIRS,  EXACT, "9.7.1.1")               \
  X(add_sat_s32,    "add.sat.s32",                         "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.1")               \
  X(sub_32,         "sub(.u32|.s32)",                      "w=ww",   INTEGER,  UP,     EXACT, "9.7.1.2")               \
  X(sub_64,         "sub(.u64|.s64)",                      "l=ll",   INTEGER,  UP,     EXACT, "9.7.1.2")               \
  X(sub_16,         "sub(.u16|.s16)",                      "h=hh",   INTEGER,  UP,     EXACT, "9.7.1.2")               \
  X(sub_sat_s32,    "sub.sat.s32",                         "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.2")               \
  X(mul_lo_32,      "mul.lo(.u32|.s32)",                   "w=ww",   MULTIPLY, UP,     EXACT, "9.7.1.3")               \
  X(mul_lo_64,      "mul.lo(.u64|.s64)",                   "l=ll",   MULTIPLY, UP,     EXACT, "9.7.1.3")               \
  X(mul_lo_16,      "mul.lo(.u16|.s16)",                   "h=hh",   MULTIPLY, UP,     EXACT, "9.7.1.3")               \
  X(mul_hi_u16,     "mul.hi.u16",                          "h=hh",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mul_hi_s16,     "mul.hi.s16",                          "h=hh",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mul_hi_u32,     "mul.hi.u32",                          "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mul_hi_s32,     "mul.hi.s32",                          "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mul_hi_u64,     "mul.hi.u64",                          "l=ll",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mul_hi_s64,     "mul.hi.s64",                          "l=ll",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mul_wide_u16,   "mul.wide.u16",                        "w=hh",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mul_wide_s16,   "mul.wide.s16",                        "w=hh",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mul_wide_u32,   "mul.wide.u32",                        "l=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mul_wide_s32,   "mul.wide.s32",                        "l=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.3")               \
  X(mad_lo_32,      "mad.lo(.u32|.s32)",                   "w=www",  MULTIPLY, UP,     EXACT, "9.7.1.4")               \
  X(mad_lo_64,      "mad.lo(.u64|.s64)",                   "l=lll",  MULTIPLY, UP,     EXACT, "9.7.1.4")               \
  X(mad_lo_16,      "mad.lo(.u16|.s16)",                   "h=hhh",  MULTIPLY, UP,     EXACT, "9.7.1.4")               \
  X(mad_hi_u16,     "mad.hi.u16",                          "h=hhh",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_hi_s16,     "mad.hi.s16",                          "h=hhh",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_hi_u32,     "mad.hi.u32",                          "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_hi_s32,     "mad.hi.s32",                          "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_hi_u64,     "mad.hi.u64",                          "l=lll",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_hi_s64,     "mad.hi.s64",                          "l=lll",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_hi_sat_s32, "mad.hi.sat.s32",                      "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_wide_u16,   "mad.wide.u16",                        "w=hhw",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_wide_s16,   "mad.wide.s16",                        "w=hhw",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_wide_u32,   "mad.wide.u32",                        "l=wwl",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mad_wide_s32,   "mad.wide.s32",                        "l=wwl",  MULTIPLY, ALL,    EXACT, "9.7.1.4")               \
  X(mul24_lo_u32,   "mul24.lo.u32",                        "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.5")               \
  X(mul24_lo_s32,   "mul24.lo.s32",                        "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.5")               \
  X(mul24_hi_u32,   "mul24.hi.u32",                        "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.5")               \
  X(mul24_hi_s32,   "mul24.hi.s32",                        "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.5")               \
  X(mad24_lo_u32,   "mad24.lo.u32",                        "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.6")               \
  X(mad24_lo_s32,   "mad24.lo.s32",                        "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.6")               \
  X(mad24_hi_u32,   "mad24.hi.u32",                        "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.6")               \
  X(mad24_hi_s32,   "mad24.hi.s32",                        "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.6")               \
  X(mad24_hi_sat_s32, "mad24.hi.sat.s32",                  "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.6")               \
  X(sad_u16,        "sad.u16",                             "h=hhh",  INTEGER,  ALL,    EXACT, "9.7.1.7")               \
  X(sad_s16,        "sad.s16",                             "h=hhh",  INTEGER,  ALL,    EXACT, "9.7.1.7")               \
  X(sad_u32,        "sad.u32",                             "w=www",  INTEGER,  ALL,    EXACT, "9.7.1.7")               \
  X(sad_s32,        "sad.s32",                             "w=www",  INTEGER,  ALL,    EXACT, "9.7.1.7")               \
  X(sad_u64,        "sad.u64",                             "l=lll",  INTEGER,  ALL,    EXACT, "9.7.1.7")               \
  X(sad_s64,        "sad.s64",                             "l=lll",  INTEGER,  ALL,    EXACT, "9.7.1.7")               \
  X(div_u16,        "div.u16",                             "h=hh",   MULTIPLY, ALL,    EXACT, "9.7.1.8")               \
  X(div_s16,        "div.s16",                             "h=hh",   MULTIPLY, ALL,    EXACT, "9.7.1.8")               \
  X(div_u32,        "div.u32",                             "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.8")               \
  X(div_s32,        "div.s32",                             "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.8")               \
  X(div_u64,        "div.u64",                             "l=ll",   MULTIPLY, ALL,    EXACT, "9.7.1.8")               \
  X(div_s64,        "div.s64",                             "l=ll",   MULTIPLY, ALL,    EXACT, "9.7.1.8")               \
  X(rem_u16,        "rem.u16",                             "h=hh",   MULTIPLY, ALL,    EXACT, "9.7.1.9")               \
  X(rem_s16,        "rem.s16",                             "h=hh",   MULTIPLY, ALL,    EXACT, "9.7.1.9")               \
  X(rem_u32,        "rem.u32",                             "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.9")               \
  X(rem_s32,        "rem.s32",                             "w=ww",   MULTIPLY, ALL,    EXACT, "9.7.1.9")               \
  X(rem_u64,        "rem.u64",                             "l=ll",   MULTIPLY, ALL,    EXACT, "9.7.1.9")               \
  X(rem_s64,        "rem.s64",                             "l=ll",   MULTIPLY, ALL,    EXACT, "9.7.1.9")               \
  X(abs_s16,        "abs.s16",                             "h=h",    INTEGER,  ALL,    EXACT, "9.7.1.10")              \
  X(abs_s32,        "abs.s32",                             "w=w",    INTEGER,  ALL,    EXACT, "9.7.1.10")              \
  X(abs_s64,        "abs.s64",                             "l=l",    INTEGER,  ALL,    EXACT, "9.7.1.10")              \
  X(neg_s16,        "neg.s16",                             "h=h",    INTEGER,  UP,     EXACT, "9.7.1.11")              \
  X(neg_s32,        "neg.s32",                             "w=w",    INTEGER,  UP,     EXACT, "9.7.1.11")              \
  X(neg_s64,        "neg.s64",                             "l=l",    INTEGER,  UP,     EXACT, "9.7.1.11")              \
  X(min_u16,        "min.u16",                             "h=hh",   INTEGER,  ALL,    EXACT, "9.7.1.12")              \
  X(min_s16,        "min.s16",                             "h=hh",   INTEGER,  ALL,    EXACT, "9.7.1.12")              \
  X(min_u32,        "min.u32",                             "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.12")              \
  X(min_s32,        "min.s32",                             "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.12")              \
  X(min_relu_s32,   "min.relu.s32",                        "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.12")              \
  X(min_u64,        "min.u64",                             "l=ll",   INTEGER,  ALL,    EXACT, "9.7.1.12")              \
  X(min_s64,        "min.s64",                             "l=ll",   INTEGER,  ALL,    EXACT, "9.7.1.12")              \
  X(min_u16x2,      "min.u16x2",                           "w=ww",   INTEGER,  PAIRS,  EXACT, "9.7.1.12")              \
  X(min_s16x2,      "min.s16x2",                           "w=ww",   INTEGER,  PAIRS,  EXACT, "9.7.1.12")              \
  X(min_relu_s16x2, "min.relu.s16x2",                      "w=ww",   INTEGER,  PAIRS,  EXACT, "9.7.1.12")              \
  X(max_u16,        "max.u16",                             "h=hh",   INTEGER,  ALL,    EXACT, "9.7.1.13")              \
  X(max_s16,        "max.s16",                             "h=hh",   INTEGER,  ALL,    EXACT, "9.7.1.13")              \
  X(max_u32,        "max.u32",                             "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.13")              \
  X(max_s32,        "max.s32",                             "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.13")              \
  X(max_relu_s32,   "max.relu.s32",                        "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.13")              \
  X(max_u64,        "max.u64",                             "l=ll",   INTEGER,  ALL,    EXACT, "9.7.1.13")              \
  X(max_s64,        "max.s64",                             "l=ll",   INTEGER,  ALL,    EXACT, "9.7.1.13")              \
  X(max_u16x2,      "max.u16x2",                           "w=ww",   INTEGER,  PAIRS,  EXACT, "9.7.1.13")              \
  X(max_s16x2,      "max.s16x2",                           "w=ww",   INTEGER,  PAIRS,  EXACT, "9.7.1.13")              \
  X(max_relu_s16x2, "max.relu.s16x2",                      "w=ww",   INTEGER,  PAIRS,  EXACT, "9.7.1.13")              \
  X(dp4a_uu,        "dp4a.u32.u32",                        "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.23")              \
  X(dp4a_us,        "dp4a.u32.s32",                        "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.23")              \
  X(dp4a_su,        "dp4a.s32.u32",                        "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.23")              \
  X(dp4a_ss,        "dp4a.s32.s32",                        "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.23")              \
  X(dp2a_lo_uu,     "dp2a.lo.u32.u32",                     "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.24")              \
  X(dp2a_lo_us,     "dp2a.lo.u32.s32",                     "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.24")              \
  X(dp2a_lo_su,     "dp2a.lo.s32.u32",                     "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.24")              \
  X(dp2a_lo_ss,     "dp2a.lo.s32.s32",                     "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.24")              \
  X(dp2a_hi_uu,     "dp2a.hi.u32.u32",                     "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.24")              \
  X(dp2a_hi_us,     "dp2a.hi.u32.s32",                     "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.24")              \
  X(dp2a_hi_su,     "dp2a.hi.s32.u32",                     "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.24")              \
  X(dp2a_hi_ss,     "dp2a.hi.s32.s32",                     "w=www",  MULTIPLY, ALL,    EXACT, "9.7.1.24")
// clang-format on

#endif
