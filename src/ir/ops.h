// The op table: one row per HLO opcode that kiln knows. Everything that depends on the opcode alone is a column.
//
// arity: operand count, -1 for any. kind: what family the op is in (it selects inference, evaluation and emission).
// result: how the result dtype follows from the operands.
//   SAME    dtype of operand 0 (all operands agree)      PRED   pred          GIVEN  from the text, checked by kind
//   PART    real part of a complex dtype, else SAME      CPLX   complex of the operands' float type
// types: which operand dtypes are allowed: P pred, I integers, F floats, C complex; A all of them.
#ifndef KL_OPS_H
#define KL_OPS_H

//        enum             text                         arity kind         result types
#define KL_OPS(X)                                                                                                      \
  /* elementwise, one operand */                                                                                       \
  X(ABS,                "abs",                           1, UNARY,        PART,  IFC)                                  \
  X(NEGATE,             "negate",                        1, UNARY,        SAME,  IFC)                                  \
  X(SIGN,               "sign",                          1, UNARY,        SAME,  IFC)                                  \
  X(NOT,                "not",                           1, UNARY,        SAME,  PI)                                   \
  X(POPCNT,             "popcnt",                        1, UNARY,        SAME,  I)                                    \
  X(CLZ,                "count-leading-zeros",           1, UNARY,        SAME,  I)                                    \
  X(CEIL,               "ceil",                          1, UNARY,        SAME,  F)                                    \
  X(FLOOR,              "floor",                         1, UNARY,        SAME,  F)                                    \
  X(ROUND_AFZ,          "round-nearest-afz",             1, UNARY,        SAME,  F)                                    \
  X(ROUND_EVEN,         "round-nearest-even",            1, UNARY,        SAME,  F)                                    \
  X(IS_FINITE,          "is-finite",                     1, UNARY,        PRED,  F)                                    \
  X(REAL,               "real",                          1, UNARY,        PART,  FC)                                   \
  X(IMAG,               "imag",                          1, UNARY,        PART,  FC)                                   \
  X(EXP,                "exponential",                   1, UNARY,        SAME,  FC)                                   \
  X(EXPM1,              "exponential-minus-one",         1, UNARY,        SAME,  FC)                                   \
  X(LOG,                "log",                           1, UNARY,        SAME,  FC)                                   \
  X(LOG1P,              "log-plus-one",                  1, UNARY,        SAME,  FC)                                   \
  X(LOGISTIC,           "logistic",                      1, UNARY,        SAME,  FC)                                   \
  X(TANH,               "tanh",                          1, UNARY,        SAME,  FC)                                   \
  X(ERF,                "erf",                           1, UNARY,        SAME,  F)                                    \
  X(SQRT,               "sqrt",                          1, UNARY,        SAME,  FC)                                   \
  X(RSQRT,              "rsqrt",                         1, UNARY,        SAME,  FC)                                   \
  X(CBRT,               "cbrt",                          1, UNARY,        SAME,  F)                                    \
  X(SIN,                "sine",                          1, UNARY,        SAME,  FC)                                   \
  X(COS,                "cosine",                        1, UNARY,        SAME,  FC)                                   \
  X(TAN,                "tan",                           1, UNARY,        SAME,  FC)                                   \
  X(REDUCE_PRECISION,   "reduce-precision",              1, UNARY,        SAME,  F)                                    \
  X(CONVERT,            "convert",                       1, CONVERT,      GIVEN, A)                                    \
  X(BITCAST_CONVERT,    "bitcast-convert",               1, CONVERT,      GIVEN, A)                                    \
  X(COPY,               "copy",                          1, UNARY,        SAME,  A)                                    \
  /* elementwise, two operands */                                                                                      \
  X(ADD,                "add",                           2, BINARY,       SAME,  A)                                    \
  X(SUBTRACT,           "subtract",                      2, BINARY,       SAME,  IFC)                                  \
  X(MULTIPLY,           "multiply",                      2, BINARY,       SAME,  A)                                    \
  X(DIVIDE,             "divide",                        2, BINARY,       SAME,  IFC)                                  \
  X(REMAINDER,          "remainder",                     2, BINARY,       SAME,  IF)                                   \
  X(POWER,              "power",                         2, BINARY,       SAME,  IFC)                                  \
  X(ATAN2,              "atan2",                         2, BINARY,       SAME,  FC)                                   \
  X(MAXIMUM,            "maximum",                       2, BINARY,       SAME,  A)                                    \
  X(MINIMUM,            "minimum",                       2, BINARY,       SAME,  A)                                    \
  X(AND,                "and",                           2, BINARY,       SAME,  PI)                                   \
  X(OR,                 "or",                            2, BINARY,       SAME,  PI)                                   \
  X(XOR,                "xor",                           2, BINARY,       SAME,  PI)                                   \
  X(SHL,                "shift-left",                    2, BINARY,       SAME,  I)                                    \
  X(SHR_ARITH,          "shift-right-arithmetic",        2, BINARY,       SAME,  I)                                    \
  X(SHR_LOGICAL,        "shift-right-logical",           2, BINARY,       SAME,  I)                                    \
  X(COMPARE,            "compare",                       2, BINARY,       PRED,  A)                                    \
  X(COMPLEX,            "complex",                       2, BINARY,       CPLX,  F)                                    \
  /* elementwise, three operands */                                                                                    \
  X(SELECT,             "select",                        3, SELECT,       GIVEN, A)                                    \
  X(CLAMP,              "clamp",                         3, CLAMP,        SAME,  IF)                                   \
  /* pure index transforms and data sources */                                                                         \
  X(PARAMETER,          "parameter",                     0, PARAMETER,    GIVEN, A)                                    \
  X(CONSTANT,           "constant",                      0, CONSTANT,     GIVEN, A)                                    \
  X(IOTA,               "iota",                          0, IOTA,         GIVEN, IFC)                                  \
  X(BROADCAST,          "broadcast",                     1, BROADCAST,    SAME,  A)                                    \
  X(RESHAPE,            "reshape",                       1, RESHAPE,      SAME,  A)                                    \
  X(BITCAST,            "bitcast",                       1, BITCAST,      GIVEN, A)                                    \
  X(TRANSPOSE,          "transpose",                     1, TRANSPOSE,    SAME,  A)                                    \
  X(SLICE,              "slice",                         1, SLICE,        SAME,  A)                                    \
  X(REVERSE,            "reverse",                       1, REVERSE,      SAME,  A)                                    \
  X(CONCATENATE,        "concatenate",                  -1, CONCATENATE,  SAME,  A)                                    \
  X(PAD,                "pad",                           2, PAD,          SAME,  A)                                    \
  /* structure */                                                                                                      \
  X(TUPLE,              "tuple",                        -1, TUPLE,        GIVEN, A)                                    \
  X(GET_TUPLE_ELEMENT,  "get-tuple-element",             1, GTE,          GIVEN, A)                                    \
  X(FUSION,             "fusion",                       -1, CALL,         GIVEN, A)                                    \
  X(CALL,               "call",                         -1, CALL,         GIVEN, A)

#endif
