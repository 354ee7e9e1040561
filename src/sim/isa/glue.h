// Executors that have no row of PTX: what a decoder puts around instructions. X(executor, operands, spread).
//
// In `operands` the letters are those of isa.h; a source of several places is packed, lowest first, into a, b, c, f,
// and a destination of several is filled the same way: d, e, c, f, where one may be KL_NO_REF. Numbers of 8 bits take
// 16, of which a source's lower half counts; a destination is extended as the executor's name says.
#ifndef KL_ISA_GLUE_H
#define KL_ISA_GLUE_H

// clang-format off
#define KL_ISA_GLUE(X)                                                                                                 \
  X(mov_16,         "h=h",     EACH)                                                                                   \
  X(mov_32,         "w=w",     EACH)                                                                                   \
  X(mov_64,         "l=l",     EACH)                                                                                   \
  X(mov_128,        "q=q",     EACH)                                                                                   \
  X(mov_pred,       "p=p",     EACH)                                                                                   \
  X(not_of_pred,    "p=p",     EACH)                                                                                   \
  X(and_of_preds,   "p=pp",    EACH) /* a and b */                                                                     \
  X(andn_of_preds,  "p=pp",    EACH) /* a and not b */                                                                 \
  X(pred_to_16,     "h=p",     ALL)  /* 1 or 0 */                                                                      \
  X(pred_to_32,     "w=p",     ALL)                                                                                    \
  X(pred_to_64,     "l=p",     ALL)                                                                                    \
  X(pred_of_16,     "p=h",     ALL)  /* not 0 */                                                                       \
  X(pred_of_32,     "p=w",     ALL)                                                                                    \
  X(pred_of_64,     "p=l",     ALL)                                                                                    \
  X(select_32,      "w=wwp",   OWN)  /* a where c holds, else b */                                                     \
  X(zext_8_16,      "h=B",     OWN)                                                                                    \
  X(zext_8_32,      "w=B",     OWN)                                                                                    \
  X(zext_8_64,      "l=B",     OWN)                                                                                    \
  X(zext_16_32,     "w=h",     OWN)                                                                                    \
  X(zext_16_64,     "l=h",     OWN)                                                                                    \
  X(zext_32_64,     "l=w",     OWN)                                                                                    \
  X(zext_64_128,    "q=l",     OWN)                                                                                    \
  X(sext_8_16,      "h=B",     OWN)                                                                                    \
  X(sext_8_32,      "w=B",     OWN)                                                                                    \
  X(sext_8_64,      "l=B",     OWN)                                                                                    \
  X(sext_16_32,     "w=h",     OWN)                                                                                    \
  X(sext_16_64,     "l=h",     OWN)                                                                                    \
  X(sext_32_64,     "l=w",     OWN)                                                                                    \
  X(trunc_32_8,     "h=w",     OWN)  /* zeros above */                                                                 \
  X(trunc_64_8,     "h=l",     OWN)                                                                                    \
  X(trunc_32_16,    "h=w",     OWN)                                                                                    \
  X(trunc_64_16,    "h=l",     OWN)                                                                                    \
  X(trunc_64_32,    "w=l",     OWN)                                                                                    \
  X(trunc_128_64,   "l=q",     OWN)                                                                                    \
  X(pack_2x8_16,    "h=2B",    OWN)                                                                                    \
  X(pack_4x8_32,    "w=4B",    OWN)                                                                                    \
  X(pack_2x16_32,   "w=2h",    OWN)                                                                                    \
  X(pack_4x16_64,   "l=4h",    OWN)                                                                                    \
  X(pack_2x32_64,   "l=2w",    OWN)                                                                                    \
  X(pack_2x64_128,  "q=2l",    OWN)                                                                                    \
  X(pack_4x32_128,  "q=4w",    OWN)                                                                                    \
  X(unpack_2x8_16,  "2B=h",    OWN)                                                                                    \
  X(unpack_4x8_32,  "4B=w",    OWN)                                                                                    \
  X(unpack_2x16_32, "2h=w",    OWN)                                                                                    \
  X(unpack_4x16_64, "4h=l",    OWN)                                                                                    \
  X(unpack_2x32_64, "2w=l",    OWN)                                                                                    \
  X(unpack_2x64_128, "2l=q",   OWN)                                                                                    \
  X(unpack_4x32_128, "4w=q",   OWN)
// clang-format on

#define KL_ISA_GLUE_NAME(executor, ...) KL_GLUE_##executor,
enum { KL_ISA_GLUE(KL_ISA_GLUE_NAME) KL_GLUE_COUNT }; // by number in kl_lane_set.glue
#undef KL_ISA_GLUE_NAME

#endif
