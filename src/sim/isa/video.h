// Rows of video instructions: on bytes, halves and words of one register, and SIMD on all of them at once. PTX ISA
// 9.7.18. Operands may have selectors (r1.b0, r1.h10): the letter `v`, and kl_sim_op.imm.
#ifndef KL_ISA_VIDEO_H
#define KL_ISA_VIDEO_H

// clang-format off
// Results and both operands by their signs: u or s.
#define KL_ISA_VIDEO_OP(X, op, d, a, b, section)                                                                       \
  X(op##_##d##a##b,     #op "." #d "32." #a "32." #b "32{.sat}", "v=vvw", INTEGER, ALL, EXACT, section)                \
  X(op##_add_##d##a##b, #op "." #d "32." #a "32." #b "32.add",   "v=vvw", INTEGER, ALL, EXACT, section)
#define KL_ISA_VIDEO_SIGNS(X, op, section)                                                                             \
  KL_ISA_VIDEO_OP(X, op, u, u, u, section) KL_ISA_VIDEO_OP(X, op, u, u, s, section)                                    \
  KL_ISA_VIDEO_OP(X, op, u, s, u, section) KL_ISA_VIDEO_OP(X, op, u, s, s, section)                                    \
  KL_ISA_VIDEO_OP(X, op, s, u, u, section) KL_ISA_VIDEO_OP(X, op, s, u, s, section)                                    \
  KL_ISA_VIDEO_OP(X, op, s, s, u, section) KL_ISA_VIDEO_OP(X, op, s, s, s, section)
#define KL_ISA_VIDEO_SET(X, op, a, b, section)                                                                         \
  X(op##_##a##b,     #op "." #a "32." #b "32(.eq|.ne|.lt|.le|.gt|.ge)",     "v=vvw", INTEGER, ALL, EXACT, section)     \
  X(op##_add_##a##b, #op "." #a "32." #b "32(.eq|.ne|.lt|.le|.gt|.ge).add", "v=vvw", INTEGER, ALL, EXACT, section)
#define KL_ISA_VIDEO_SETS(X, op, section)                                                                              \
  KL_ISA_VIDEO_SET(X, op, u, u, section) KL_ISA_VIDEO_SET(X, op, u, s, section)                                        \
  KL_ISA_VIDEO_SET(X, op, s, u, section) KL_ISA_VIDEO_SET(X, op, s, s, section)

#define KL_ISA_SCALAR_ROWS(X, name, pattern, signs, section)                                                           \
  X(name##_##signs,     pattern,        "v=vv?w", INTEGER, ALL, EXACT, section)                                        \
  X(name##_add_##signs, pattern ".add", "v=vvw",  INTEGER, ALL, EXACT, section)                                        \
  X(name##_min_##signs, pattern ".min", "v=vvw",  INTEGER, ALL, EXACT, section)                                        \
  X(name##_max_##signs, pattern ".max", "v=vvw",  INTEGER, ALL, EXACT, section)
#define KL_ISA_SCALAR_OP(X, op, d, a, b)                                                                               \
  KL_ISA_SCALAR_ROWS(X, op, #op "." #d "32." #a "32." #b "32{.sat}", d##a##b, "9.7.18.1.1")
#define KL_ISA_SCALAR_SIGNS(X, op)                                                                                     \
  KL_ISA_SCALAR_OP(X, op, u, u, u) KL_ISA_SCALAR_OP(X, op, u, u, s)                                                    \
  KL_ISA_SCALAR_OP(X, op, u, s, u) KL_ISA_SCALAR_OP(X, op, u, s, s)                                                    \
  KL_ISA_SCALAR_OP(X, op, s, u, u) KL_ISA_SCALAR_OP(X, op, s, u, s)                                                    \
  KL_ISA_SCALAR_OP(X, op, s, s, u) KL_ISA_SCALAR_OP(X, op, s, s, s)
#define KL_ISA_SCALAR_SHIFT(X, op, d, a)                                                                               \
  KL_ISA_SCALAR_ROWS(X, op, #op "." #d "32." #a "32.u32{.sat}(.clamp|.wrap)", d##a##u, "9.7.18.1.2")
#define KL_ISA_SCALAR_SHIFTS(X, op)                                                                                    \
  KL_ISA_SCALAR_SHIFT(X, op, u, u) KL_ISA_SCALAR_SHIFT(X, op, u, s)                                                    \
  KL_ISA_SCALAR_SHIFT(X, op, s, u) KL_ISA_SCALAR_SHIFT(X, op, s, s)
#define KL_ISA_SCALAR_SET(X, a, b)                                                                                     \
  KL_ISA_SCALAR_ROWS(X, vset, "vset." #a "32." #b "32(.eq|.ne|.lt|.le|.gt|.ge)", u##a##b, "9.7.18.1.4")
#define KL_ISA_VMAD(X, a, b)                                                                                           \
  X(vmad_##a##b,       "vmad(.u32|.s32)." #a "32." #b "32{.sat}",          "w=vvv", MULTIPLY, ALL, EXACT, "9.7.18.1.3")\
  X(vmad_shr7_##a##b,  "vmad(.u32|.s32)." #a "32." #b "32{.sat}.shr7",     "w=vvv", MULTIPLY, ALL, EXACT, "9.7.18.1.3")\
  X(vmad_shr15_##a##b, "vmad(.u32|.s32)." #a "32." #b "32{.sat}.shr15",    "w=vvv", MULTIPLY, ALL, EXACT, "9.7.18.1.3")\
  X(vmad_po_##a##b,       "vmad(.u32|.s32)." #a "32." #b "32.po{.sat}",       "w=vvv", MULTIPLY, ALL, EXACT, "9.7.18.1.3")\
  X(vmad_po_shr7_##a##b,  "vmad(.u32|.s32)." #a "32." #b "32.po{.sat}.shr7",  "w=vvv", MULTIPLY, ALL, EXACT, "9.7.18.1.3")\
  X(vmad_po_shr15_##a##b, "vmad(.u32|.s32)." #a "32." #b "32.po{.sat}.shr15", "w=vvv", MULTIPLY, ALL, EXACT, "9.7.18.1.3")

#define KL_ISA_VIDEO(X)                                                                                                \
  KL_ISA_VIDEO_SIGNS(X, vadd2, "9.7.18.2.1")                                                                             \
  KL_ISA_VIDEO_SIGNS(X, vsub2, "9.7.18.2.1")                                                                             \
  KL_ISA_VIDEO_SIGNS(X, vavrg2, "9.7.18.2.1")                                                                            \
  KL_ISA_VIDEO_SIGNS(X, vabsdiff2, "9.7.18.2.1")                                                                         \
  KL_ISA_VIDEO_SIGNS(X, vmin2, "9.7.18.2.1")                                                                             \
  KL_ISA_VIDEO_SIGNS(X, vmax2, "9.7.18.2.1")                                                                             \
  KL_ISA_VIDEO_SETS(X, vset2, "9.7.18.2.2")                                                                              \
  KL_ISA_VIDEO_SIGNS(X, vadd4, "9.7.18.2.3")                                                                             \
  KL_ISA_VIDEO_SIGNS(X, vsub4, "9.7.18.2.3")                                                                             \
  KL_ISA_VIDEO_SIGNS(X, vavrg4, "9.7.18.2.3")                                                                            \
  KL_ISA_VIDEO_SIGNS(X, vabsdiff4, "9.7.18.2.3")                                                                         \
  KL_ISA_VIDEO_SIGNS(X, vmin4, "9.7.18.2.3")                                                                             \
  KL_ISA_VIDEO_SIGNS(X, vmax4, "9.7.18.2.3")                                                                             \
  KL_ISA_VIDEO_SETS(X, vset4, "9.7.18.2.4")                                                                            \
  KL_ISA_SCALAR_SIGNS(X, vadd)                                                                                         \
  KL_ISA_SCALAR_SIGNS(X, vsub)                                                                                         \
  KL_ISA_SCALAR_SIGNS(X, vabsdiff)                                                                                     \
  KL_ISA_SCALAR_SIGNS(X, vmin)                                                                                         \
  KL_ISA_SCALAR_SIGNS(X, vmax)                                                                                         \
  KL_ISA_SCALAR_SHIFTS(X, vshl)                                                                                        \
  KL_ISA_SCALAR_SHIFTS(X, vshr)                                                                                        \
  KL_ISA_SCALAR_SET(X, u, u) KL_ISA_SCALAR_SET(X, u, s) KL_ISA_SCALAR_SET(X, s, u) KL_ISA_SCALAR_SET(X, s, s)          \
  KL_ISA_VMAD(X, u, u) KL_ISA_VMAD(X, u, s) KL_ISA_VMAD(X, s, u) KL_ISA_VMAD(X, s, s)
// clang-format on

#endif
