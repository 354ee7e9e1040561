// Rows of comparisons and selections. PTX ISA 9.7.6 (set, setp, selp, slct), 9.7.7 (of halves).
#ifndef KL_ISA_COMPARE_H
#define KL_ISA_COMPARE_H

// clang-format off
#define KL_OPS_BITS     "(.eq|.ne)"
#define KL_OPS_SIGNED   "(.eq|.ne|.lt|.le|.gt|.ge)"
#define KL_OPS_UNSIGNED "(.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs)"
#define KL_OPS_FLOAT    "(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)"
#define KL_BOOL         "(.and|.or|.xor)"

// Of each type: its comparisons, its modifiers, the letters of two operands.
#define KL_ISA_SETP_OF(X, executor, type, ops, ftz, operands, unit, section)                                           \
  X(executor, "setp" ops ftz type,         "P=" operands,     unit, ALL, EXACT, section)                               \
  X(executor, "setp" ops KL_BOOL ftz type, "P=" operands "p", unit, ALL, EXACT, section)
#define KL_ISA_SETP_ONE_OF(X, executor, type, ops, ftz, operands, unit, section) /* no p|q */                          \
  X(executor, "setp" ops ftz type,         "p=" operands,     unit, ALL, EXACT, section)                               \
  X(executor, "setp" ops KL_BOOL ftz type, "p=" operands "p", unit, ALL, EXACT, section)
#define KL_ISA_SET_OF(X, executor, to, d, type, ops, ftz, operands, unit, section)                                     \
  X(executor, "set" ops ftz to type,         d "=" operands,     unit, ALL, EXACT, section)                            \
  X(executor, "set" ops KL_BOOL ftz to type, d "=" operands "p", unit, ALL, EXACT, section)
#define KL_ISA_SET_TYPE(X, T, type, ops, ftz, operands, unit, section)                                                 \
  KL_ISA_SET_OF(X, set_mask_##T, "(.u32|.s32)", "w", type, ops, ftz, operands, unit, section)                          \
  KL_ISA_SET_OF(X, set_f32_##T,  ".f32",  "w", type, ops, ftz, operands, unit, section)                                \
  KL_ISA_SET_OF(X, set_f16_##T,  ".f16",  "h", type, ops, ftz, operands, unit, "9.7.7.1")                              \
  KL_ISA_SET_OF(X, set_bf16_##T, ".bf16", "h", type, ops, "", operands, unit, "9.7.7.1")

#define KL_ISA_COMPARE(X)                                                                                              \
  KL_ISA_SETP_OF(X, setp_s32, ".s32", KL_OPS_SIGNED,   "", "ww", INTEGER, "9.7.6.2")                                   \
  KL_ISA_SETP_OF(X, setp_u32, ".u32", KL_OPS_UNSIGNED, "", "ww", INTEGER, "9.7.6.2")                                   \
  KL_ISA_SETP_OF(X, setp_u32, ".b32", KL_OPS_BITS,     "", "ww", INTEGER, "9.7.6.2")                                   \
  KL_ISA_SETP_OF(X, setp_s64, ".s64", KL_OPS_SIGNED,   "", "ll", INTEGER, "9.7.6.2")                                   \
  KL_ISA_SETP_OF(X, setp_u64, ".u64", KL_OPS_UNSIGNED, "", "ll", INTEGER, "9.7.6.2")                                   \
  KL_ISA_SETP_OF(X, setp_u64, ".b64", KL_OPS_BITS,     "", "ll", INTEGER, "9.7.6.2")                                   \
  KL_ISA_SETP_OF(X, setp_s16, ".s16", KL_OPS_SIGNED,   "", "hh", INTEGER, "9.7.6.2")                                   \
  KL_ISA_SETP_OF(X, setp_u16, ".u16", KL_OPS_UNSIGNED, "", "hh", INTEGER, "9.7.6.2")                                   \
  KL_ISA_SETP_OF(X, setp_u16, ".b16", KL_OPS_BITS,     "", "hh", INTEGER, "9.7.6.2")                                   \
  KL_ISA_SETP_OF(X, setp_f32, ".f32", KL_OPS_FLOAT, "{.ftz}", "ww", FLOAT, "9.7.6.2")                                  \
  KL_ISA_SETP_OF(X, setp_f64, ".f64", KL_OPS_FLOAT, "",       "ll", DOUBLE, "9.7.6.2")                                 \
  KL_ISA_SETP_ONE_OF(X, setp_f16, ".f16", KL_OPS_FLOAT, "{.ftz}", "hh", HALF, "9.7.7.2")                               \
  KL_ISA_SETP_ONE_OF(X, setp_bf16, ".bf16", KL_OPS_FLOAT, "",     "hh", HALF, "9.7.7.2")                               \
  KL_ISA_SETP_OF(X, setp_f16x2, ".f16x2", KL_OPS_FLOAT, "{.ftz}", "ww", HALF, "9.7.7.2")                               \
  KL_ISA_SETP_OF(X, setp_bf16x2, ".bf16x2", KL_OPS_FLOAT, "", "ww", HALF, "9.7.7.2")                                   \
  KL_ISA_SET_TYPE(X, s32, ".s32", KL_OPS_SIGNED,   "", "ww", INTEGER, "9.7.6.1")                                       \
  KL_ISA_SET_TYPE(X, u32, ".u32", KL_OPS_UNSIGNED, "", "ww", INTEGER, "9.7.6.1")                                       \
  KL_ISA_SET_TYPE(X, u32, ".b32", KL_OPS_BITS,     "", "ww", INTEGER, "9.7.6.1")                                       \
  KL_ISA_SET_TYPE(X, s64, ".s64", KL_OPS_SIGNED,   "", "ll", INTEGER, "9.7.6.1")                                       \
  KL_ISA_SET_TYPE(X, u64, ".u64", KL_OPS_UNSIGNED, "", "ll", INTEGER, "9.7.6.1")                                       \
  KL_ISA_SET_TYPE(X, u64, ".b64", KL_OPS_BITS,     "", "ll", INTEGER, "9.7.6.1")                                       \
  KL_ISA_SET_TYPE(X, s16, ".s16", KL_OPS_SIGNED,   "", "hh", INTEGER, "9.7.6.1")                                       \
  KL_ISA_SET_TYPE(X, u16, ".u16", KL_OPS_UNSIGNED, "", "hh", INTEGER, "9.7.6.1")                                       \
  KL_ISA_SET_TYPE(X, u16, ".b16", KL_OPS_BITS,     "", "hh", INTEGER, "9.7.6.1")                                       \
  KL_ISA_SET_TYPE(X, f32, ".f32", KL_OPS_FLOAT, "{.ftz}", "ww", FLOAT, "9.7.6.1")                                      \
  KL_ISA_SET_TYPE(X, f64, ".f64", KL_OPS_FLOAT, "",       "ll", DOUBLE, "9.7.6.1")                                     \
  KL_ISA_SET_OF(X, set_mask_f16,  "(.u32|.s32)", "w", ".f16",  KL_OPS_FLOAT, "{.ftz}", "hh", HALF, "9.7.7.1")          \
  KL_ISA_SET_OF(X, set_f16_f16,   ".f16",        "h", ".f16",  KL_OPS_FLOAT, "{.ftz}", "hh", HALF, "9.7.7.1")          \
  KL_ISA_SET_OF(X, set_bf16_f16,  ".bf16",       "h", ".f16",  KL_OPS_FLOAT, "",       "hh", HALF, "9.7.7.1")          \
  KL_ISA_SET_OF(X, set_mask_bf16, "(.u32|.s32)", "w", ".bf16", KL_OPS_FLOAT, "",       "hh", HALF, "9.7.7.1")          \
  KL_ISA_SET_OF(X, set_bf16_bf16, ".bf16",       "h", ".bf16", KL_OPS_FLOAT, "",       "hh", HALF, "9.7.7.1")          \
  KL_ISA_SET_OF(X, set_mask16_f16,  "(.u16|.s16)", "h", ".f16",  KL_OPS_FLOAT, "{.ftz}", "hh", HALF, "9.7.7.1")        \
  KL_ISA_SET_OF(X, set_mask16_bf16, "(.u16|.s16)", "h", ".bf16", KL_OPS_FLOAT, "",       "hh", HALF, "9.7.7.1")        \
  KL_ISA_SET_OF(X, set_mask_f16x2,  "(.u32|.s32)", "w", ".f16x2",  KL_OPS_FLOAT, "{.ftz}", "ww", HALF, "9.7.7.1")      \
  KL_ISA_SET_OF(X, set_mask_bf16x2, "(.u32|.s32)", "w", ".bf16x2", KL_OPS_FLOAT, "",       "ww", HALF, "9.7.7.1")      \
  KL_ISA_SET_OF(X, set_f16x2_f16x2,   ".f16x2",  "w", ".f16x2",  KL_OPS_FLOAT, "{.ftz}", "ww", HALF, "9.7.7.1")        \
  KL_ISA_SET_OF(X, set_bf16x2_bf16x2, ".bf16x2", "w", ".bf16x2", KL_OPS_FLOAT, "",       "ww", HALF, "9.7.7.1")        \
  X(selp_32, "selp(.b32|.u32|.s32|.f32)", "w=wwp", INTEGER, OWN, EXACT, "9.7.6.3")                                     \
  X(selp_64, "selp(.b64|.u64|.s64|.f64)", "l=llp", INTEGER, OWN, EXACT, "9.7.6.3")                                     \
  X(selp_16, "selp(.b16|.u16|.s16)",      "h=hhp", INTEGER, OWN, EXACT, "9.7.6.3")                                     \
  X(slct_32_s32, "slct(.b32|.u32|.s32|.f32).s32",       "w=www", INTEGER, ALL, EXACT, "9.7.6.4")                       \
  X(slct_64_s32, "slct(.b64|.u64|.s64|.f64).s32",       "l=llw", INTEGER, ALL, EXACT, "9.7.6.4")                       \
  X(slct_16_s32, "slct(.b16|.u16|.s16).s32",            "h=hhw", INTEGER, ALL, EXACT, "9.7.6.4")                       \
  X(slct_32_f32, "slct{.ftz}(.b32|.u32|.s32|.f32).f32", "w=www", FLOAT,   ALL, EXACT, "9.7.6.4")                       \
  X(slct_64_f32, "slct{.ftz}(.b64|.u64|.s64|.f64).f32", "l=llw", FLOAT,   ALL, EXACT, "9.7.6.4")                       \
  X(slct_16_f32, "slct{.ftz}(.b16|.u16|.s16).f32",      "h=hhw", FLOAT,   ALL, EXACT, "9.7.6.4")
// clang-format on

#endif
