// Rows of bit counting and fields. PTX ISA 9.7.1.
#ifndef KL_ISA_BITS_H
#define KL_ISA_BITS_H

// clang-format off
//  executor        pattern                                operands  unit      spread  grade  section
#define KL_ISA_BITS(X)                                                                                                 \
  X(popc_b32,       "popc.b32",                            "w=w",    INTEGER,  ALL,    EXACT, "9.7.1.14")              \
  X(popc_b64,       "popc.b64",                            "w=l",    INTEGER,  ALL,    EXACT, "9.7.1.14")              \
  X(clz_b32,        "clz.b32",                             "w=w",    INTEGER,  ALL,    EXACT, "9.7.1.15")              \
  X(clz_b64,        "clz.b64",                             "w=l",    INTEGER,  ALL,    EXACT, "9.7.1.15")              \
  X(bfind_u32,      "bfind{.shiftamt}.u32",                "w=w",    INTEGER,  ALL,    EXACT, "9.7.1.16")              \
  X(bfind_s32,      "bfind{.shiftamt}.s32",                "w=w",    INTEGER,  ALL,    EXACT, "9.7.1.16")              \
  X(bfind_u64,      "bfind{.shiftamt}.u64",                "w=l",    INTEGER,  ALL,    EXACT, "9.7.1.16")              \
  X(bfind_s64,      "bfind{.shiftamt}.s64",                "w=l",    INTEGER,  ALL,    EXACT, "9.7.1.16")              \
  X(fns_b32,        "fns.b32",                             "w=www",  INTEGER,  ALL,    EXACT, "9.7.1.17")              \
  X(brev_b32,       "brev.b32",                            "w=w",    INTEGER,  OWN,    EXACT, "9.7.1.18")              \
  X(brev_b64,       "brev.b64",                            "l=l",    INTEGER,  OWN,    EXACT, "9.7.1.18")              \
  X(bfe_u32,        "bfe.u32",                             "w=www",  INTEGER,  OWN,    EXACT, "9.7.1.19")              \
  X(bfe_s32,        "bfe.s32",                             "w=www",  INTEGER,  OWN,    EXACT, "9.7.1.19")              \
  X(bfe_u64,        "bfe.u64",                             "l=lww",  INTEGER,  OWN,    EXACT, "9.7.1.19")              \
  X(bfe_s64,        "bfe.s64",                             "l=lww",  INTEGER,  OWN,    EXACT, "9.7.1.19")              \
  X(bfi_b32,        "bfi.b32",                             "w=wwww", INTEGER,  OWN,    EXACT, "9.7.1.20")              \
  X(bfi_b64,        "bfi.b64",                             "l=llww", INTEGER,  OWN,    EXACT, "9.7.1.20")              \
  X(szext_s32,      "szext(.clamp|.wrap).s32",             "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.21")              \
  X(szext_u32,      "szext(.clamp|.wrap).u32",             "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.21")              \
  X(bmsk_b32,       "bmsk(.clamp|.wrap).b32",              "w=ww",   INTEGER,  ALL,    EXACT, "9.7.1.22")
// clang-format on

#endif
