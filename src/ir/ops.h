// The op table: one row per HLO opcode that kiln knows. Everything that depends on the opcode alone is a column.
//
// arity: operand count, -1 for any. kind: what family the op is in (it selects inference, evaluation and emission).
// result: how the result dtype follows from the operands.
//   SAME    dtype of operand 0 (all operands agree)      PRED   pred          GIVEN  from the text, checked by kind
//   PART    real part of a complex dtype, else SAME      CPLX   complex of the operands' float type
// types: which operand dtypes are allowed: P pred, I integers, F floats, C complex; A all of them.
#ifndef KL_OPS_H
#define KL_OPS_H

//    enum                      text                      arity kind                   result types
#define KL_OPS(X)                                                                                                      \
  /* elementwise, one operand */                                                                                       \
  X(ABS, "abs", 1, UNARY, PART, IFC)                                                                                   \
  X(NEGATE, "negate", 1, UNARY, SAME, IFC)                                                                             \
  X(SIGN, "sign", 1, UNARY, SAME, IFC)                                                                                 \
  X(NOT, "not", 1, UNARY, SAME, PI)                                                                                    \
  X(POPCNT, "popcnt", 1, UNARY, SAME, I)                                                                               \
  X(CLZ, "count-leading-zeros", 1, UNARY, SAME, I)                                                                     \
  X(CEIL, "ceil", 1, UNARY, SAME, F)                                                                                   \
  X(FLOOR, "floor", 1, UNARY, SAME, F)                                                                                 \
  X(ROUND_AFZ, "round-nearest-afz", 1, UNARY, SAME, F)                                                                 \
  X(ROUND_EVEN, "round-nearest-even", 1, UNARY, SAME, F)                                                               \
  X(IS_FINITE, "is-finite", 1, UNARY, PRED, F)                                                                         \
  X(REAL, "real", 1, UNARY, PART, FC)                                                                                  \
  X(IMAG, "imag", 1, UNARY, PART, FC)                                                                                  \
  X(EXP, "exponential", 1, UNARY, SAME, FC)                                                                            \
  X(EXPM1, "exponential-minus-one", 1, UNARY, SAME, FC)                                                                \
  X(LOG, "log", 1, UNARY, SAME, FC)                                                                                    \
  X(LOG1P, "log-plus-one", 1, UNARY, SAME, FC)                                                                         \
  X(LOGISTIC, "logistic", 1, UNARY, SAME, FC)                                                                          \
  X(TANH, "tanh", 1, UNARY, SAME, FC)                                                                                  \
  X(ERF, "erf", 1, UNARY, SAME, F)                                                                                     \
  X(SQRT, "sqrt", 1, UNARY, SAME, FC)                                                                                  \
  X(RSQRT, "rsqrt", 1, UNARY, SAME, FC)                                                                                \
  X(CBRT, "cbrt", 1, UNARY, SAME, F)                                                                                   \
  X(SIN, "sine", 1, UNARY, SAME, FC)                                                                                   \
  X(COS, "cosine", 1, UNARY, SAME, FC)                                                                                 \
  X(TAN, "tan", 1, UNARY, SAME, FC)                                                                                    \
  X(EXP10, "exp10", 1, UNARY, SAME, FC)                                                                                \
  X(SINH, "sinh", 1, UNARY, SAME, FC)                                                                                  \
  X(COSH, "cosh", 1, UNARY, SAME, FC)                                                                                  \
  X(ASIN, "asin", 1, UNARY, SAME, FC)                                                                                  \
  X(ACOS, "acos", 1, UNARY, SAME, FC)                                                                                  \
  X(ATAN, "atan", 1, UNARY, SAME, FC)                                                                                  \
  X(ASINH, "asinh", 1, UNARY, SAME, FC)                                                                                \
  X(ACOSH, "acosh", 1, UNARY, SAME, FC)                                                                                \
  X(ATANH, "atanh", 1, UNARY, SAME, FC)                                                                                \
  X(REDUCE_PRECISION, "reduce-precision", 1, UNARY, SAME, F)                                                           \
  X(CONVERT, "convert", 1, CONVERT, GIVEN, A)                                                                          \
  X(BITCAST_CONVERT, "bitcast-convert", 1, CONVERT, GIVEN, A)                                                          \
  X(STOCHASTIC_CONVERT, "stochastic-convert", 2, STOCHASTIC, GIVEN, IF)                                                \
  X(COPY, "copy", 1, UNARY, SAME, A)                                                                                   \
  /* elementwise, two operands */                                                                                      \
  X(ADD, "add", 2, BINARY, SAME, A)                                                                                    \
  X(SUBTRACT, "subtract", 2, BINARY, SAME, IFC)                                                                        \
  X(MULTIPLY, "multiply", 2, BINARY, SAME, A)                                                                          \
  X(DIVIDE, "divide", 2, BINARY, SAME, IFC)                                                                            \
  X(REMAINDER, "remainder", 2, BINARY, SAME, IF)                                                                       \
  X(POWER, "power", 2, BINARY, SAME, IFC)                                                                              \
  X(ATAN2, "atan2", 2, BINARY, SAME, FC)                                                                               \
  X(MULHI, "mulhi", 2, BINARY, SAME, I)                                                                                \
  X(MAXIMUM, "maximum", 2, BINARY, SAME, A)                                                                            \
  X(MINIMUM, "minimum", 2, BINARY, SAME, A)                                                                            \
  X(AND, "and", 2, BINARY, SAME, PI)                                                                                   \
  X(OR, "or", 2, BINARY, SAME, PI)                                                                                     \
  X(XOR, "xor", 2, BINARY, SAME, PI)                                                                                   \
  X(SHL, "shift-left", 2, BINARY, SAME, I)                                                                             \
  X(SHR_ARITH, "shift-right-arithmetic", 2, BINARY, SAME, I)                                                           \
  X(SHR_LOGICAL, "shift-right-logical", 2, BINARY, SAME, I)                                                            \
  X(COMPARE, "compare", 2, BINARY, PRED, A)                                                                            \
  X(COMPLEX, "complex", 2, BINARY, CPLX, F)                                                                            \
  /* elementwise, three operands */                                                                                    \
  X(SELECT, "select", 3, SELECT, GIVEN, A)                                                                             \
  X(CLAMP, "clamp", 3, CLAMP, SAME, A)                                                                                 \
  /* pure index transforms and data sources */                                                                         \
  X(PARAMETER, "parameter", 0, PARAMETER, GIVEN, A)                                                                    \
  X(CONSTANT, "constant", 0, CONSTANT, GIVEN, A)                                                                       \
  X(IOTA, "iota", 0, IOTA, GIVEN, IFC)                                                                                 \
  X(BROADCAST, "broadcast", 1, BROADCAST, SAME, A)                                                                     \
  X(RESHAPE, "reshape", 1, RESHAPE, SAME, A)                                                                           \
  X(BITCAST, "bitcast", 1, BITCAST, GIVEN, A)                                                                          \
  X(TRANSPOSE, "transpose", 1, TRANSPOSE, SAME, A)                                                                     \
  X(SLICE, "slice", 1, SLICE, SAME, A)                                                                                 \
  X(REVERSE, "reverse", 1, REVERSE, SAME, A)                                                                           \
  X(CONCATENATE, "concatenate", -1, CONCATENATE, SAME, A)                                                              \
  X(PAD, "pad", 2, PAD, SAME, A)                                                                                       \
  /* windows, contractions, reductions */                                                                              \
  X(DOT, "dot", 2, DOT, GIVEN, A)                                                                                      \
  X(RAGGED_DOT, "ragged-dot", 3, DOT, GIVEN, A)                                                                        \
  X(SCALED_DOT, "scaled-dot", 4, DOT, GIVEN, F)                                                                        \
  X(CONVOLUTION, "convolution", 2, CONVOLUTION, GIVEN, A)                                                              \
  X(REDUCE, "reduce", -1, REDUCE, GIVEN, A)                                                                            \
  X(REDUCE_WINDOW, "reduce-window", -1, REDUCE_WINDOW, GIVEN, A)                                                       \
  X(SELECT_AND_SCATTER, "select-and-scatter", 3, SELECT_AND_SCATTER, SAME, A)                                          \
  X(SCAN, "scan", -1, SCAN, GIVEN, A)                                                                                  \
  X(MAP, "map", -1, MAP, GIVEN, A)                                                                                     \
  /* indexed by data */                                                                                                \
  X(DYNAMIC_SLICE, "dynamic-slice", -1, DYNAMIC_SLICE, SAME, A)                                                        \
  X(DYNAMIC_UPDATE_SLICE, "dynamic-update-slice", -1, DYNAMIC_UPDATE_SLICE, SAME, A)                                   \
  X(GATHER, "gather", 2, GATHER, SAME, A)                                                                              \
  X(SCATTER, "scatter", -1, SCATTER, GIVEN, A)                                                                         \
  X(SORT, "sort", -1, SORT, GIVEN, A)                                                                                  \
  X(TOPK, "topk", 1, TOPK, GIVEN, IF)                                                                                  \
  X(SHUFFLE, "shuffle", 1, SHUFFLE, SAME, A)                                                                           \
  /* random numbers */                                                                                                 \
  X(RNG, "rng", 2, RNG, GIVEN, A)                                                                                      \
  X(RNG_BIT_GENERATOR, "rng-bit-generator", 1, RNG_BITS, GIVEN, I)                                                     \
  X(RNG_GET_AND_UPDATE_STATE, "rng-get-and-update-state", 0, RNG_STATE, GIVEN, I)                                      \
  /* composite mathematics */                                                                                          \
  X(BATCH_NORM_TRAINING, "batch-norm-training", 3, BATCH_NORM, GIVEN, F)                                               \
  X(BATCH_NORM_INFERENCE, "batch-norm-inference", 5, BATCH_NORM, SAME, F)                                              \
  X(BATCH_NORM_GRAD, "batch-norm-grad", 5, BATCH_NORM, GIVEN, F)                                                       \
  X(CHOLESKY, "cholesky", 1, CHOLESKY, SAME, FC)                                                                       \
  X(TRIANGULAR_SOLVE, "triangular-solve", 2, TRIANGULAR_SOLVE, SAME, FC)                                               \
  X(FFT, "fft", 1, FFT, GIVEN, FC)                                                                                     \
  /* dynamic sizes */                                                                                                  \
  X(GET_DIMENSION_SIZE, "get-dimension-size", 1, DIMENSION_SIZE, GIVEN, A)                                             \
  X(SET_DIMENSION_SIZE, "set-dimension-size", 2, DIMENSION_SIZE, SAME, A)                                              \
  X(DYNAMIC_RESHAPE, "dynamic-reshape", -1, DYNAMIC_RESHAPE, SAME, A)                                                  \
  /* structure */                                                                                                      \
  X(TUPLE, "tuple", -1, TUPLE, GIVEN, A)                                                                               \
  X(GET_TUPLE_ELEMENT, "get-tuple-element", 1, GTE, GIVEN, A)                                                          \
  X(FUSION, "fusion", -1, CALL, GIVEN, A)                                                                              \
  X(CALL, "call", -1, CALL, GIVEN, A)                                                                                  \
  /* control, order, asynchrony */                                                                                     \
  X(WHILE, "while", 1, WHILE, GIVEN, A)                                                                                \
  X(CONDITIONAL, "conditional", -1, CONDITIONAL, GIVEN, A)                                                             \
  X(CUSTOM_CALL, "custom-call", -1, CUSTOM_CALL, GIVEN, A)                                                             \
  X(OPT_BARRIER, "opt-barrier", 1, FORWARD, GIVEN, A)                                                                  \
  X(DOMAIN, "domain", 1, FORWARD, GIVEN, A)                                                                            \
  X(ADD_DEPENDENCY, "add-dependency", 2, FORWARD, GIVEN, A)                                                            \
  X(AFTER_ALL, "after-all", -1, TOKEN, GIVEN, A)                                                                       \
  X(COPY_START, "copy-start", 1, COPY_ASYNC, GIVEN, A)                                                                 \
  X(COPY_DONE, "copy-done", 1, COPY_ASYNC, GIVEN, A)                                                                   \
  X(ASYNC_START, "async-start", -1, ASYNC, GIVEN, A)                                                                   \
  X(ASYNC_UPDATE, "async-update", -1, ASYNC, GIVEN, A)                                                                 \
  X(ASYNC_DONE, "async-done", -1, ASYNC, GIVEN, A)                                                                     \
  /* between devices and with the host */                                                                              \
  X(ALL_GATHER, "all-gather", -1, COLLECTIVE, GIVEN, A)                                                                \
  X(ALL_GATHER_START, "all-gather-start", -1, COLLECTIVE, GIVEN, A)                                                    \
  X(ALL_GATHER_DONE, "all-gather-done", 1, COLLECTIVE, GIVEN, A)                                                       \
  X(ALL_REDUCE, "all-reduce", -1, COLLECTIVE, GIVEN, A)                                                                \
  X(ALL_REDUCE_START, "all-reduce-start", -1, COLLECTIVE, GIVEN, A)                                                    \
  X(ALL_REDUCE_DONE, "all-reduce-done", 1, COLLECTIVE, GIVEN, A)                                                       \
  X(REDUCE_SCATTER, "reduce-scatter", -1, COLLECTIVE, GIVEN, A)                                                        \
  X(ALL_TO_ALL, "all-to-all", -1, COLLECTIVE, GIVEN, A)                                                                \
  X(RAGGED_ALL_TO_ALL, "ragged-all-to-all", 6, COLLECTIVE, GIVEN, A)                                                   \
  X(COLLECTIVE_BROADCAST, "collective-broadcast", -1, COLLECTIVE, GIVEN, A)                                            \
  X(COLLECTIVE_REDUCE, "collective-reduce", -1, COLLECTIVE, GIVEN, A)                                                  \
  X(COLLECTIVE_PERMUTE, "collective-permute", -1, COLLECTIVE, GIVEN, A)                                                \
  X(COLLECTIVE_PERMUTE_START, "collective-permute-start", -1, COLLECTIVE, GIVEN, A)                                    \
  X(COLLECTIVE_PERMUTE_DONE, "collective-permute-done", 1, COLLECTIVE, GIVEN, A)                                       \
  X(PARTITION_ID, "partition-id", 0, DEVICE_ID, GIVEN, A)                                                              \
  X(REPLICA_ID, "replica-id", 0, DEVICE_ID, GIVEN, A)                                                                  \
  X(INFEED, "infeed", 1, HOST, GIVEN, A)                                                                               \
  X(OUTFEED, "outfeed", 2, HOST, GIVEN, A)                                                                             \
  X(SEND, "send", 2, HOST, GIVEN, A)                                                                                   \
  X(SEND_DONE, "send-done", 1, HOST, GIVEN, A)                                                                         \
  X(RECV, "recv", 1, HOST, GIVEN, A)                                                                                   \
  X(RECV_DONE, "recv-done", 1, HOST, GIVEN, A)

#endif
