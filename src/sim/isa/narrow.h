// Rows of conversions to and from formats narrower than a half, tf32, stochastic rounding, and packed integers. PTX ISA
// 9.7.9.21, 9.7.9.22.
//
// Of stochastic rounding (.rs) the ISA says which random bits are whose, and that they are added to what is cut off;
// here their top bit lies on its top bit.
#ifndef KL_ISA_NARROW_H
#define KL_ISA_NARROW_H

// clang-format off
#define KL_ISA_NARROW_X2(X, T, d)                                                                                      \
  X(cvt_##T##x2_f32,   "cvt.rn.satfinite{.relu}." #T "x2.f32",   d "=ww", CONVERT, ALL, EXACT, "9.7.9.21")             \
  X(cvt_##T##x2_f16x2, "cvt.rn.satfinite{.relu}." #T "x2.f16x2", d "=w",  CONVERT, ALL, EXACT, "9.7.9.21")             \
  X(cvt_f16x2_##T##x2, "cvt.rn{.relu}.f16x2." #T "x2",           "w=" d,  CONVERT, ALL, EXACT, "9.7.9.21")
#define KL_ISA_NARROW_X2_OF_F32(X, T, d)                                                                               \
  X(cvt_##T##x2_f32,   "cvt.rn.satfinite{.relu}." #T "x2.f32",   d "=ww", CONVERT, ALL, EXACT, "9.7.9.21")             \
  X(cvt_f16x2_##T##x2, "cvt.rn{.relu}.f16x2." #T "x2",           "w=" d,  CONVERT, ALL, EXACT, "9.7.9.21")
#define KL_ISA_NARROW_PACK(X, T)                                                                                       \
  X(cvt_pack_##T,      "cvt.pack.sat." #T ".s32.b32",            "w=www", CONVERT, ALL, EXACT, "9.7.9.22")

//  executor        pattern                                          operands  unit     spread  grade  section
#define KL_ISA_NARROW(X)                                                                                               \
  KL_ISA_NARROW_X2(X, e4m3, "h")                                                                                       \
  KL_ISA_NARROW_X2(X, e5m2, "h")                                                                                       \
  KL_ISA_NARROW_X2_OF_F32(X, e2m3, "h")                                                                                \
  KL_ISA_NARROW_X2_OF_F32(X, e3m2, "h")                                                                                \
  KL_ISA_NARROW_X2(X, e2m1, "B")                                                                                       \
  X(cvt_ue8m0x2_f32,    "cvt(.rz|.rp){.satfinite}.ue8m0x2.f32",      "h=ww",   CONVERT, ALL, EXACT, "9.7.9.21")        \
  X(cvt_ue8m0x2_bf16x2, "cvt(.rz|.rp){.satfinite}.ue8m0x2.bf16x2",   "h=w",    CONVERT, ALL, EXACT, "9.7.9.21")        \
  X(cvt_bf16x2_ue8m0x2, "cvt.rn.bf16x2.ue8m0x2",                     "w=h",    CONVERT, ALL, EXACT, "9.7.9.21")        \
  X(cvt_tf32_f32,       "cvt.rna{.satfinite}.tf32.f32",              "w=w",    CONVERT, ALL, EXACT, "9.7.9.21")        \
  X(cvt_tf32_f32,       "cvt(.rn|.rz){.satfinite}{.relu}.tf32.f32",  "w=w",    CONVERT, ALL, EXACT, "9.7.9.21")        \
  X(cvt_rs_f16x2_f32,   "cvt.rs{.relu}{.satfinite}.f16x2.f32",       "w=www",  CONVERT, ALL, MODELLED, "9.7.9.21")     \
  X(cvt_rs_bf16x2_f32,  "cvt.rs{.relu}{.satfinite}.bf16x2.f32",      "w=www",  CONVERT, ALL, MODELLED, "9.7.9.21")     \
  X(cvt_rs_e4m3x4_f32,  "cvt.rs{.relu}.satfinite.e4m3x4.f32",        "w=4ww",  CONVERT, ALL, MODELLED, "9.7.9.21")     \
  X(cvt_rs_e5m2x4_f32,  "cvt.rs{.relu}.satfinite.e5m2x4.f32",        "w=4ww",  CONVERT, ALL, MODELLED, "9.7.9.21")     \
  X(cvt_rs_e2m3x4_f32,  "cvt.rs{.relu}.satfinite.e2m3x4.f32",        "w=4ww",  CONVERT, ALL, MODELLED, "9.7.9.21")     \
  X(cvt_rs_e3m2x4_f32,  "cvt.rs{.relu}.satfinite.e3m2x4.f32",        "w=4ww",  CONVERT, ALL, MODELLED, "9.7.9.21")     \
  X(cvt_rs_e2m1x4_f32,  "cvt.rs{.relu}.satfinite.e2m1x4.f32",        "h=4ww",  CONVERT, ALL, MODELLED, "9.7.9.21")     \
  X(cvt_pack_u16,       "cvt.pack.sat.u16.s32",                      "w=ww",   CONVERT, ALL, EXACT, "9.7.9.22")        \
  X(cvt_pack_s16,       "cvt.pack.sat.s16.s32",                      "w=ww",   CONVERT, ALL, EXACT, "9.7.9.22")        \
  KL_ISA_NARROW_PACK(X, u2)                                                                                            \
  KL_ISA_NARROW_PACK(X, s2)                                                                                            \
  KL_ISA_NARROW_PACK(X, u4)                                                                                            \
  KL_ISA_NARROW_PACK(X, s4)                                                                                            \
  KL_ISA_NARROW_PACK(X, u8)                                                                                            \
  KL_ISA_NARROW_PACK(X, s8)
// clang-format on

#endif
