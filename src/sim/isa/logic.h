// Rows of logic, shifts and permutations of bytes. PTX ISA 9.7.8, 9.7.9.7 (prmt).
#ifndef KL_ISA_LOGIC_H
#define KL_ISA_LOGIC_H

// clang-format off
//  executor        pattern                                operands     unit      spread  grade  section
#define KL_ISA_LOGIC(X)                                                                                                \
  X(and_b32,        "and.b32",                             "w=ww",      INTEGER,  EACH,   EXACT, "9.7.8.1")            \
  X(and_b64,        "and.b64",                             "l=ll",      INTEGER,  EACH,   EXACT, "9.7.8.1")            \
  X(and_b16,        "and.b16",                             "h=hh",      INTEGER,  EACH,   EXACT, "9.7.8.1")            \
  X(and_pred,       "and.pred",                            "p=pp",      INTEGER,  EACH,   EXACT, "9.7.8.1")            \
  X(or_b32,         "or.b32",                              "w=ww",      INTEGER,  EACH,   EXACT, "9.7.8.2")            \
  X(or_b64,         "or.b64",                              "l=ll",      INTEGER,  EACH,   EXACT, "9.7.8.2")            \
  X(or_b16,         "or.b16",                              "h=hh",      INTEGER,  EACH,   EXACT, "9.7.8.2")            \
  X(or_pred,        "or.pred",                             "p=pp",      INTEGER,  EACH,   EXACT, "9.7.8.2")            \
  X(xor_b32,        "xor.b32",                             "w=ww",      INTEGER,  EACH,   EXACT, "9.7.8.3")            \
  X(xor_b64,        "xor.b64",                             "l=ll",      INTEGER,  EACH,   EXACT, "9.7.8.3")            \
  X(xor_b16,        "xor.b16",                             "h=hh",      INTEGER,  EACH,   EXACT, "9.7.8.3")            \
  X(xor_pred,       "xor.pred",                            "p=pp",      INTEGER,  EACH,   EXACT, "9.7.8.3")            \
  X(not_b32,        "not.b32",                             "w=w",       INTEGER,  EACH,   EXACT, "9.7.8.4")            \
  X(not_b64,        "not.b64",                             "l=l",       INTEGER,  EACH,   EXACT, "9.7.8.4")            \
  X(not_b16,        "not.b16",                             "h=h",       INTEGER,  EACH,   EXACT, "9.7.8.4")            \
  X(not_pred,       "not.pred",                            "p=p",       INTEGER,  EACH,   EXACT, "9.7.8.4")            \
  X(cnot_b32,       "cnot.b32",                            "w=w",       INTEGER,  ALL,    EXACT, "9.7.8.5")            \
  X(cnot_b64,       "cnot.b64",                            "l=l",       INTEGER,  ALL,    EXACT, "9.7.8.5")            \
  X(cnot_b16,       "cnot.b16",                            "h=h",       INTEGER,  ALL,    EXACT, "9.7.8.5")            \
  X(lop3_b32,       "lop3.b32",                            "w=wwwi",    INTEGER,  EACH,   EXACT, "9.7.8.6")            \
  X(lop3_bool_b32,  "lop3(.and|.or).b32",                  "w|p=wwwip", INTEGER,  OWN,    EXACT, "9.7.8.6")            \
  X(shf_l_b32,      "shf.l(.clamp|.wrap).b32",             "w=www",     INTEGER,  OWN,    EXACT, "9.7.8.7")            \
  X(shf_r_b32,      "shf.r(.clamp|.wrap).b32",             "w=www",     INTEGER,  OWN,    EXACT, "9.7.8.7")            \
  X(shl_32,         "shl.b32",                             "w=ww",      INTEGER,  SHIFT,  EXACT, "9.7.8.8")            \
  X(shl_64,         "shl.b64",                             "l=lw",      INTEGER,  SHIFT,  EXACT, "9.7.8.8")            \
  X(shl_16,         "shl.b16",                             "h=hw",      INTEGER,  SHIFT,  EXACT, "9.7.8.8")            \
  X(shr_u32,        "shr(.b32|.u32)",                      "w=ww",      INTEGER,  SHIFT,  EXACT, "9.7.8.9")            \
  X(shr_s32,        "shr.s32",                             "w=ww",      INTEGER,  SHIFT,  EXACT, "9.7.8.9")            \
  X(shr_u64,        "shr(.b64|.u64)",                      "l=lw",      INTEGER,  SHIFT,  EXACT, "9.7.8.9")            \
  X(shr_s64,        "shr.s64",                             "l=lw",      INTEGER,  SHIFT,  EXACT, "9.7.8.9")            \
  X(shr_u16,        "shr(.b16|.u16)",                      "h=hw",      INTEGER,  SHIFT,  EXACT, "9.7.8.9")            \
  X(shr_s16,        "shr.s16",                             "h=hw",      INTEGER,  SHIFT,  EXACT, "9.7.8.9")            \
  X(prmt_b32,       "prmt.b32",                            "w=www",     INTEGER,  OWN,    EXACT, "9.7.9.7")            \
  X(prmt_f4e,       "prmt.b32.f4e",                        "w=www",     INTEGER,  OWN,    EXACT, "9.7.9.7")            \
  X(prmt_b4e,       "prmt.b32.b4e",                        "w=www",     INTEGER,  OWN,    EXACT, "9.7.9.7")            \
  X(prmt_rc8,       "prmt.b32.rc8",                        "w=www",     INTEGER,  OWN,    EXACT, "9.7.9.7")            \
  X(prmt_ecl,       "prmt.b32.ecl",                        "w=www",     INTEGER,  OWN,    EXACT, "9.7.9.7")            \
  X(prmt_ecr,       "prmt.b32.ecr",                        "w=www",     INTEGER,  OWN,    EXACT, "9.7.9.7")            \
  X(prmt_rc16,      "prmt.b32.rc16",                       "w=www",     INTEGER,  OWN,    EXACT, "9.7.9.7")
// clang-format on

#endif
