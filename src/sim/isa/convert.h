// Rows of conversions between integers, f16, bf16, f32 and f64. PTX ISA 9.7.9.21.
//
// A NaN becomes 0 as an integer, or, from f64 or to 64 bits, the integer of the top bit alone; one of f64 made of
// another is that one's bits moved up.
#ifndef KL_ISA_CONVERT_H
#define KL_ISA_CONVERT_H

// clang-format off
#define KL_CVT_INT "(.rni|.rzi|.rmi|.rpi)"
#define KL_CVT_RND "(.rn|.rz|.rm|.rp)"
#define KL_CVT_ANY "{.rn|.rz|.rm|.rp}" // of exact ones: nothing is rounded; between halves: without one to the nearest
#define KL_CVT_S   "9.7.9.21"

// From an integer of type S, whose operand is the letter s.
#define KL_ISA_CVT_FROM(X, S, s)                                                                                       \
  X(cvt_u8_##S,  "cvt.u8." #S,  "B=" s, CONVERT, OWN, EXACT, KL_CVT_S)                                                 \
  X(cvt_s8_##S,  "cvt.s8." #S,  "B=" s, CONVERT, OWN, EXACT, KL_CVT_S)                                                 \
  X(cvt_u16_##S, "cvt.u16." #S, "H=" s, CONVERT, OWN, EXACT, KL_CVT_S)                                                 \
  X(cvt_s16_##S, "cvt.s16." #S, "H=" s, CONVERT, OWN, EXACT, KL_CVT_S)                                                 \
  X(cvt_u32_##S, "cvt.u32." #S, "W=" s, CONVERT, OWN, EXACT, KL_CVT_S)                                                 \
  X(cvt_s32_##S, "cvt.s32." #S, "W=" s, CONVERT, OWN, EXACT, KL_CVT_S)                                                 \
  X(cvt_u64_##S, "cvt.u64." #S, "l=" s, CONVERT, OWN, EXACT, KL_CVT_S)                                                 \
  X(cvt_s64_##S, "cvt.s64." #S, "l=" s, CONVERT, OWN, EXACT, KL_CVT_S)                                                 \
  X(cvt_f32_##S,     "cvt.rn.f32." #S,                     "W=" s, CONVERT, ALL, EXACT, KL_CVT_S)                      \
  X(cvt_any_f32_##S, "cvt" KL_CVT_RND "{.ftz}{.sat}.f32." #S, "W=" s, CONVERT, ALL, EXACT, KL_CVT_S)                   \
  X(cvt_f64_##S,     "cvt.rn.f64." #S,                     "l=" s, CONVERT, ALL, EXACT, KL_CVT_S)                      \
  X(cvt_any_f64_##S, "cvt" KL_CVT_RND "{.sat}.f64." #S,    "l=" s, CONVERT, ALL, EXACT, KL_CVT_S)                      \
  X(cvt_f16_##S,     "cvt" KL_CVT_RND "{.sat}.f16." #S,    "H=" s, CONVERT, ALL, EXACT, KL_CVT_S)                      \
  X(cvt_bf16_##S,    "cvt" KL_CVT_RND ".bf16." #S,         "h=" s, CONVERT, ALL, EXACT, KL_CVT_S)

// Where the type to convert to lacks numbers of the other one: the two types and the letters of their operands.
#define KL_ISA_CVT_SATURATING(M, X)                                                                                    \
  M(X, s8, "B", u8, "B")                                                                                               \
  M(X, u8, "B", s8, "B") M(X, u16, "H", s8, "B") M(X, u32, "W", s8, "B") M(X, u64, "l", s8, "B")                       \
  M(X, u8, "B", u16, "H") M(X, s8, "B", u16, "H") M(X, s16, "H", u16, "H")                                             \
  M(X, u8, "B", s16, "H") M(X, s8, "B", s16, "H") M(X, u16, "H", s16, "H") M(X, u32, "W", s16, "H")                    \
  M(X, u64, "l", s16, "H")                                                                                             \
  M(X, u8, "B", u32, "W") M(X, s8, "B", u32, "W") M(X, u16, "H", u32, "W") M(X, s16, "H", u32, "W")                    \
  M(X, s32, "W", u32, "W")                                                                                             \
  M(X, u8, "B", s32, "W") M(X, s8, "B", s32, "W") M(X, u16, "H", s32, "W") M(X, s16, "H", s32, "W")                    \
  M(X, u32, "W", s32, "W") M(X, u64, "l", s32, "W")                                                                    \
  M(X, u8, "B", u64, "l") M(X, s8, "B", u64, "l") M(X, u16, "H", u64, "l") M(X, s16, "H", u64, "l")                    \
  M(X, u32, "W", u64, "l") M(X, s32, "W", u64, "l") M(X, s64, "l", u64, "l")                                           \
  M(X, u8, "B", s64, "l") M(X, s8, "B", s64, "l") M(X, u16, "H", s64, "l") M(X, s16, "H", s64, "l")                    \
  M(X, u32, "W", s64, "l") M(X, s32, "W", s64, "l") M(X, u64, "l", s64, "l")
#define KL_ISA_CVT_SATURATING_ROW(X, D, d, S, s)                                                                       \
  X(cvt_sat_##D##_##S, "cvt.sat." #D "." #S, d "=" s, CONVERT, ALL, EXACT, KL_CVT_S)

// To integers from a floating type S.
#define KL_ISA_CVT_TO(X, S, s, more)                                                                                   \
  X(cvt_u8_##S,  "cvt" KL_CVT_INT more ".u8." #S,  "B=" s, CONVERT, ALL, EXACT, KL_CVT_S)                              \
  X(cvt_s8_##S,  "cvt" KL_CVT_INT more ".s8." #S,  "B=" s, CONVERT, ALL, EXACT, KL_CVT_S)                              \
  X(cvt_u16_##S, "cvt" KL_CVT_INT more ".u16." #S, "H=" s, CONVERT, ALL, EXACT, KL_CVT_S)                              \
  X(cvt_s16_##S, "cvt" KL_CVT_INT more ".s16." #S, "H=" s, CONVERT, ALL, EXACT, KL_CVT_S)                              \
  X(cvt_u32_##S, "cvt" KL_CVT_INT more ".u32." #S, "W=" s, CONVERT, ALL, EXACT, KL_CVT_S)                              \
  X(cvt_s32_##S, "cvt" KL_CVT_INT more ".s32." #S, "W=" s, CONVERT, ALL, EXACT, KL_CVT_S)                              \
  X(cvt_u64_##S, "cvt" KL_CVT_INT more ".u64." #S, "l=" s, CONVERT, ALL, EXACT, KL_CVT_S)                              \
  X(cvt_s64_##S, "cvt" KL_CVT_INT more ".s64." #S, "l=" s, CONVERT, ALL, EXACT, KL_CVT_S)

#define KL_ISA_CONVERT(X)                                                                                              \
  KL_ISA_CVT_FROM(X, u8, "B")                                                                                          \
  KL_ISA_CVT_FROM(X, s8, "B")                                                                                          \
  KL_ISA_CVT_FROM(X, u16, "H")                                                                                         \
  KL_ISA_CVT_FROM(X, s16, "H")                                                                                         \
  KL_ISA_CVT_FROM(X, u32, "W")                                                                                         \
  KL_ISA_CVT_FROM(X, s32, "W")                                                                                         \
  KL_ISA_CVT_FROM(X, u64, "l")                                                                                         \
  KL_ISA_CVT_FROM(X, s64, "l")                                                                                         \
  KL_ISA_CVT_SATURATING(KL_ISA_CVT_SATURATING_ROW, X)                                                                  \
  KL_ISA_CVT_TO(X, f32, "W", "{.ftz}{.sat}")                                                                           \
  KL_ISA_CVT_TO(X, f64, "l", "{.sat}")                                                                                 \
  KL_ISA_CVT_TO(X, f16, "H", "{.sat}")                                                                                 \
  KL_ISA_CVT_TO(X, bf16, "h", "")                                                                                      \
  X(cvt_f64_f32,      "cvt{.ftz}{.sat}.f64.f32",                  "l=W", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_f32_f64,      "cvt.rn.f32.f64",                           "W=l", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_any_f32_f64,  "cvt" KL_CVT_RND "{.ftz}{.sat}.f32.f64",    "W=l", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_f32_f16,      "cvt{.ftz}{.sat}.f32.f16",                  "W=H", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_f32_bf16,     "cvt" KL_CVT_ANY "{.ftz}.f32.bf16",            "W=h", CONVERT, ALL, EXACT, KL_CVT_S)             \
  X(cvt_f64_f16,      "cvt{.sat}.f64.f16",                        "l=H", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_f64_bf16,     "cvt" KL_CVT_ANY ".f64.bf16",                  "l=h", CONVERT, ALL, EXACT, KL_CVT_S)             \
  X(cvt_f16_f32,      "cvt.rn.f16.f32",                           "H=W", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_any_f16_f32,  "cvt" KL_CVT_RND "{.ftz}{.sat}.f16.f32",    "H=W", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_any_f16_f32,  "cvt(.rn|.rz){.relu}{.satfinite}.f16.f32",  "H=W", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_bf16_f32,     "cvt.rn.bf16.f32",                          "h=W", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_any_bf16_f32, "cvt" KL_CVT_RND "{.ftz}.bf16.f32",         "h=W", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_any_bf16_f32, "cvt(.rn|.rz){.relu}{.satfinite}.bf16.f32", "h=W", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_f16_f64,      "cvt" KL_CVT_RND "{.sat}.f16.f64",          "H=l", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_bf16_f64,     "cvt" KL_CVT_RND ".bf16.f64",               "h=l", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_f16_bf16,     "cvt" KL_CVT_ANY ".f16.bf16",               "H=h", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_bf16_f16,     "cvt" KL_CVT_ANY ".bf16.f16",               "h=H", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_f16x2_f32,    "cvt.rn.f16x2.f32",                         "w=ww", CONVERT, ALL, EXACT, KL_CVT_S)               \
  X(cvt_any_f16x2_f32, "cvt(.rn|.rz){.relu}{.satfinite}.f16x2.f32", "w=ww", CONVERT, ALL, EXACT, KL_CVT_S)             \
  X(cvt_bf16x2_f32,   "cvt.rn.bf16x2.f32",                        "w=ww", CONVERT, ALL, EXACT, KL_CVT_S)               \
  X(cvt_any_bf16x2_f32, "cvt(.rn|.rz){.relu}{.satfinite}.bf16x2.f32", "w=ww", CONVERT, ALL, EXACT, KL_CVT_S)           \
  X(cvt_f32_f32,      "cvt{.ftz}{.sat}.f32.f32",                  "W=W", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_int_f32_f32,  "cvt" KL_CVT_INT "{.ftz}{.sat}.f32.f32",    "W=W", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_f64_f64,      "cvt{.sat}.f64.f64",                        "l=l", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_int_f64_f64,  "cvt" KL_CVT_INT "{.sat}.f64.f64",          "l=l", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_f16_f16,      "cvt{.sat}.f16.f16",                        "H=H", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_int_f16_f16,  "cvt" KL_CVT_INT "{.sat}.f16.f16",          "H=H", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_bf16_bf16,    "cvt.bf16.bf16",                            "h=h", CONVERT, ALL, EXACT, KL_CVT_S)                \
  X(cvt_int_bf16_bf16, "cvt" KL_CVT_INT ".bf16.bf16",             "h=h", CONVERT, ALL, EXACT, KL_CVT_S)
// clang-format on

#endif
