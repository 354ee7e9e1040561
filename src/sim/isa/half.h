// Rows of half precision: f16, bf16 and their pairs. PTX ISA 9.7.4. Every NaN result is 0x7fff.
//
// The ISA does not say which NaN is the one of .oob that stands for an element outside of a tensor: here it is 0x7fff.
#ifndef KL_ISA_HALF_H
#define KL_ISA_HALF_H

// clang-format off
#define KL_ISA_HALF_OP2(X, op, section)                                                                                \
  X(op##_f16,    #op "{.rn}{.ftz}{.sat}.f16",   "h=hh", HALF, ALL,   EXACT, section)                                   \
  X(op##_f16x2,  #op "{.rn}{.ftz}{.sat}.f16x2", "w=ww", HALF, PAIRS, EXACT, section)                                   \
  X(op##_bf16,   #op "{.rn}.bf16",             "h=hh", HALF, ALL,   EXACT, section)                                    \
  X(op##_bf16x2, #op "{.rn}.bf16x2",           "w=ww", HALF, PAIRS, EXACT, section)
#define KL_ISA_HALF_ORDER(X, op, section)                                                                              \
  X(op##_f16,    #op "{.ftz}{.NaN}.f16",                  "h=hh", HALF, ALL,   EXACT, section)                         \
  X(op##_f16,    #op "{.ftz}{.NaN}.xorsign.abs.f16",      "h=hh", HALF, ALL,   EXACT, section)                         \
  X(op##_f16x2,  #op "{.ftz}{.NaN}.f16x2",                "w=ww", HALF, PAIRS, EXACT, section)                         \
  X(op##_f16x2,  #op "{.ftz}{.NaN}.xorsign.abs.f16x2",    "w=ww", HALF, PAIRS, EXACT, section)                         \
  X(op##_bf16,   #op "{.NaN}.bf16",                       "h=hh", HALF, ALL,   EXACT, section)                         \
  X(op##_bf16,   #op "{.NaN}.xorsign.abs.bf16",           "h=hh", HALF, ALL,   EXACT, section)                         \
  X(op##_bf16x2, #op "{.NaN}.bf16x2",                     "w=ww", HALF, PAIRS, EXACT, section)                         \
  X(op##_bf16x2, #op "{.NaN}.xorsign.abs.bf16x2",         "w=ww", HALF, PAIRS, EXACT, section)
#define KL_ISA_HALF_SIGN(X, op, section)                                                                               \
  X(op##_f16,    #op "{.ftz}.f16",             "h=h",  HALF, ALL,   EXACT, section)                                    \
  X(op##_f16x2,  #op "{.ftz}.f16x2",           "w=w",  HALF, PAIRS, EXACT, section)                                    \
  X(op##_bf16,   #op ".bf16",                  "h=h",  HALF, ALL,   EXACT, section)                                    \
  X(op##_bf16x2, #op ".bf16x2",                "w=w",  HALF, PAIRS, EXACT, section)

#define KL_ISA_HALF(X)                                                                                                 \
  KL_ISA_HALF_OP2(X, add, "9.7.4.1")                                                                                   \
  KL_ISA_HALF_OP2(X, sub, "9.7.4.2")                                                                                   \
  KL_ISA_HALF_OP2(X, mul, "9.7.4.3")                                                                                   \
  X(fma_f16,    "fma.rn{.ftz}{.sat}.f16",      "h=hhh", HALF, ALL,   EXACT, "9.7.4.4")                                 \
  X(fma_f16x2,  "fma.rn{.ftz}{.sat}.f16x2",    "w=www", HALF, PAIRS, EXACT, "9.7.4.4")                                 \
  X(fma_f16,    "fma.rn{.ftz}.relu.f16",       "h=hhh", HALF, ALL,   EXACT, "9.7.4.4")                                 \
  X(fma_f16x2,  "fma.rn{.ftz}.relu.f16x2",     "w=www", HALF, PAIRS, EXACT, "9.7.4.4")                                 \
  X(fma_bf16,   "fma.rn{.relu}.bf16",          "h=hhh", HALF, ALL,   EXACT, "9.7.4.4")                                 \
  X(fma_bf16x2, "fma.rn{.relu}.bf16x2",        "w=www", HALF, PAIRS, EXACT, "9.7.4.4")                                 \
  X(fma_f16,    "fma.rn.oob{.relu}.f16",       "h=hhh", HALF, ALL,   MODELLED, "9.7.4.4")                              \
  X(fma_f16x2,  "fma.rn.oob{.relu}.f16x2",     "w=www", HALF, PAIRS, MODELLED, "9.7.4.4")                              \
  X(fma_bf16,   "fma.rn.oob{.relu}.bf16",      "h=hhh", HALF, ALL,   MODELLED, "9.7.4.4")                              \
  X(fma_bf16x2, "fma.rn.oob{.relu}.bf16x2",    "w=www", HALF, PAIRS, MODELLED, "9.7.4.4")                              \
  KL_ISA_HALF_SIGN(X, neg, "9.7.4.5")                                                                                  \
  KL_ISA_HALF_SIGN(X, abs, "9.7.4.6")                                                                                  \
  KL_ISA_HALF_ORDER(X, min, "9.7.4.7")                                                                                 \
  KL_ISA_HALF_ORDER(X, max, "9.7.4.8")
// clang-format on

#endif
