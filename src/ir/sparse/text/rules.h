// What may be wrong with an encoding: a row each, under the name that findings give it.
#ifndef KL_SPARSE_RULES_H
#define KL_SPARSE_RULES_H

#include "base/base.h"

// clang-format off
// id, when it is found, modes in which it holds (S strict, D default), what it says
#define KL_SPARSE_RULES(X)                                                                             \
  X(FORM,       READ,   "SD", "the text is an encoding, brackets closed")                              \
  X(KEY,        READ,   "SD", "fields are map, posWidth, crdWidth, explicitVal, implicitVal")          \
  X(TWICE,      READ,   "D",  "a field stands once")                                                   \
  X(SEP,        READ,   "SD", "a comma or the closing brace follows a field")                          \
  X(LIST,       READ,   "SD", "lists stand in brackets, with commas between")                          \
  X(ARROW,      READ,   "SD", "an arrow stands between dimensions and levels")                         \
  X(IDENT,      READ,   "SD", "variables are bare identifiers")                                        \
  X(REDEF,      READ,   "SD", "a variable is declared once")                                           \
  X(UNDEF,      READ,   "SD", "levels use dimensions and symbols, dimensions levels and symbols")      \
  X(LVLBIND,    READ,   "SD", "where levels are declared, each is bound to its expression")            \
  X(LVLCOUNT,   READ,   "SD", "as many levels are declared as there are")                              \
  X(LVLORDER,   READ,   "SD", "levels are declared in the order in which they stand")                  \
  X(COLON,      READ,   "SD", "a level's type follows a colon")                                        \
  X(FMT,        READ,   "SD", "a level's format is one of those there are")                            \
  X(PROP,       READ,   "SD", "a level's property is one of those there are")                          \
  X(PROPFMT,    READ,   "SD", "the format can have the property")                                      \
  X(NM2,        READ,   "SD", "structured has two sizes, before its properties")                       \
  X(NMNEG,      READ,   "SD", "the sizes of structured are not negative")                              \
  X(NMORD,      READ,   "SD", "structured stores no more than there are: n <= m")                      \
  X(NMMAX,      READ,   "D",  "groups of structured hold 1 to 65536")                                  \
  X(AFFINE,     READ,   "SD", "expressions are affine")                                                \
  X(SLICEATTR,  READ,   "SD", "what follows a dimension's colon is a slice")                           \
  X(SLICENEG,   READ,   "SD", "offset, size and stride of a slice are numbers from 0 on or ?")         \
  X(SLICESZ,    READ,   "SD", "a slice has a size")                                                    \
  X(SLICEST,    READ,   "SD", "a slice has a stride")                                                  \
  X(POSINT,     READ,   "SD", "posWidth is an integer")                                                \
  X(CRDINT,     READ,   "SD", "crdWidth is an integer")                                                \
  X(EXPNUM,     READ,   "SD", "explicitVal is a number")                                               \
  X(IMPNUM,     READ,   "SD", "implicitVal is a number")                                               \
  X(NUMBER,     READ,   "SD", "a number has a value in its type")                                      \
  X(LARGE,      READ,   "SD", "what kiln has room for")                                                \
  X(POSW,       VERIFY, "SD", "posWidth is 0, 8, 16, 32 or 64")                                        \
  X(CRDW,       VERIFY, "SD", "crdWidth is 0, 8, 16, 32 or 64; by default also 2 or 4")                \
  X(SNGPRED,    VERIFY, "SD", "singletons follow a compressed level, or other singletons")             \
  X(SNGMIX,     VERIFY, "SD", "singletons that follow each other are stored alike, soa or not")        \
  X(BATCHLEAD,  VERIFY, "SD", "batch levels come first")                                               \
  X(SOAONLY,    VERIFY, "SD", "soa is a property of singletons")                                       \
  X(NMLAST,     VERIFY, "S",  "structured is the last level")                                          \
  X(NMDENSE,    VERIFY, "S",  "all levels before structured are dense")                                \
  X(NMBLOCK,    VERIFY, "S",  "the map is one of blocks where structured is in it and ranks differ")   \
  X(NMCOEF1,    VERIFY, "S",  "the map has blocks of one size where structured is in it")              \
  X(NMCOEFM,    VERIFY, "SD", "the blocks of a structured level have its m elements")                  \
  X(EMPTY,      VERIFY, "SD", "there is a map, and in strict mode a level")                            \
  X(LRANK,      VERIFY, "S",  "the map has as many levels as level types")                             \
  X(NOINV,      VERIFY, "SD", "dimensions follow from levels")                                         \
  X(BADINV,     VERIFY, "SD", "the inverse that is written leads from levels back to dimensions")      \
  X(DIMGTLVL,   VERIFY, "S",  "there are no fewer levels than dimensions")                             \
  X(SLICERANK,  VERIFY, "S",  "with slices there are as many levels as dimensions")                    \
  X(TYPE,       TYPE,   "SD", "the tensor's type can be read")                                         \
  X(SCALAR,     TYPE,   "S",  "the tensor has dimensions")                                             \
  X(RANK,       TYPE,   "SD", "the tensor has as many dimensions as the map")                          \
  X(EXPTY,      TYPE,   "SD", "explicitVal is of the tensor's type")                                   \
  X(IMPTY,      TYPE,   "SD", "implicitVal is of the tensor's type")                                   \
  X(IMPZERO,    TYPE,   "S",  "implicitVal is zero")
// clang-format on

typedef enum kl_sparse_rule {
  KL_RULE_NONE,
#define X(id, stage, modes, text) KL_RULE_##id,
  KL_SPARSE_RULES(X)
#undef X
      KL_RULE_COUNT,
} kl_sparse_rule;

// "SNGPRED"; "" for NONE.
const char *kl_sparse_rule_name(kl_sparse_rule rule);
// A finding that ends with the rule's name. Returns INVALID (UNSUPPORTED for LARGE).
kiln_status kl_sparse_vbroken(kl_ctx *cx, kl_span where, kl_sparse_rule rule, const char *fmt, va_list ap);

#endif
