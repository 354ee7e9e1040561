// Rows of moves that are more than a register's: addresses, special registers, vectors taken apart and put together.
// PTX ISA 9.7.9. Operands: the decoder's own, as the PTX ISA writes them.
#ifndef KL_ISA_MOVE_H
#define KL_ISA_MOVE_H

// clang-format off
//  decoded by   pattern                                                     operands      unit     spread grade  section
#define KL_ISA_MOVE(X)                                                                                                 \
  X(move,        "mov(.pred|.b16|.b32|.b64|.b128|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64)",  \
                                                                             "d, a",       INTEGER, EACH,  EXACT, "9.7.9.3") \
  X(move_special, "mov.v4(.u16|.u32)",                                      "{d}, %vector", INTEGER, EACH, EXACT, "9.7.9.3")\
  X(cvta,        "cvta(.const|.global|.local|.shared|.shared::cta|.shared::cluster|.param|.param::entry)(.u32|.u64)",             \
                                                                             "p, a",       INTEGER, ALL,   EXACT, "9.7.9.21") \
  X(cvta_to,     "cvta.to(.const|.global|.local|.shared|.shared::cta|.shared::cluster|.param|.param::entry)(.u32|.u64)",          \
                                                                             "p, a",       INTEGER, ALL,   EXACT, "9.7.9.21") \
  X(isspacep,    "isspacep(.const|.global|.local|.shared|.shared::cta|.shared::cluster|.param|.param::entry)",         \
                                                                             "p, a",       INTEGER, ALL,   EXACT, "9.7.9.20") \
  X(mapa,        "mapa{.shared::cluster}(.u32|.u64)",                        "d, a, b",    INTEGER, ALL,   EXACT, "9.7.9.23") \
  X(getctarank,  "getctarank{.shared::cluster}(.u32|.u64)",                  "d, a",       INTEGER, ALL,   EXACT, "9.7.9.24")
// clang-format on

#endif
