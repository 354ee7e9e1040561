// Rows of SIMD within a word: halves and bytes of a and b in their order, all of them written. PTX ISA 9.7.18.2.
//
// Operands with selectors or masks of their own (a.b7654, d.h1) have no row.
#ifndef KL_ISA_VIDEO_H
#define KL_ISA_VIDEO_H

// clang-format off
// Results and both operands by their signs: u or s.
#define KL_ISA_VIDEO_OP(X, op, d, a, b, section)                                                                       \
  X(op##_##d##a##b,     #op "." #d "32." #a "32." #b "32{.sat}", "w=www", INTEGER, ALL, EXACT, section)                \
  X(op##_add_##d##a##b, #op "." #d "32." #a "32." #b "32.add",   "w=www", INTEGER, ALL, EXACT, section)
#define KL_ISA_VIDEO_SIGNS(X, op, section)                                                                             \
  KL_ISA_VIDEO_OP(X, op, u, u, u, section) KL_ISA_VIDEO_OP(X, op, u, u, s, section)                                    \
  KL_ISA_VIDEO_OP(X, op, u, s, u, section) KL_ISA_VIDEO_OP(X, op, u, s, s, section)                                    \
  KL_ISA_VIDEO_OP(X, op, s, u, u, section) KL_ISA_VIDEO_OP(X, op, s, u, s, section)                                    \
  KL_ISA_VIDEO_OP(X, op, s, s, u, section) KL_ISA_VIDEO_OP(X, op, s, s, s, section)
#define KL_ISA_VIDEO_SET(X, op, a, b, section)                                                                         \
  X(op##_##a##b,     #op "." #a "32." #b "32(.eq|.ne|.lt|.le|.gt|.ge)",     "w=www", INTEGER, ALL, EXACT, section)     \
  X(op##_add_##a##b, #op "." #a "32." #b "32(.eq|.ne|.lt|.le|.gt|.ge).add", "w=www", INTEGER, ALL, EXACT, section)
#define KL_ISA_VIDEO_SETS(X, op, section)                                                                              \
  KL_ISA_VIDEO_SET(X, op, u, u, section) KL_ISA_VIDEO_SET(X, op, u, s, section)                                        \
  KL_ISA_VIDEO_SET(X, op, s, u, section) KL_ISA_VIDEO_SET(X, op, s, s, section)

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
  KL_ISA_VIDEO_SETS(X, vset4, "9.7.18.2.4")
// clang-format on

#endif
