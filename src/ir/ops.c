// The op table's rows, and opcodes by name.
#include "ir/hlo.h"

const kl_op_info kl_op_table[KL_OP_COUNT] = {[KL_OP_UNKNOWN] = {"", -1, KL_KIND_UNKNOWN, KL_RESULT_GIVEN, KL_T_A},
#define X(op, text, count, family, how, which)                                                                         \
  [KL_OP_##op] = {text, count, KL_KIND_##family, KL_RESULT_##how, KL_T_##which},
                                             KL_OPS(X)
#undef X
};

uint8_t kl_type_mask(kl_dtype t) {
  switch (kl_info(t)->cls) {
  case KL_CLASS_PRED: return KL_T_P;
  case KL_CLASS_SINT:
  case KL_CLASS_UINT: return KL_T_I;
  case KL_CLASS_FLOAT: return KL_T_F;
  case KL_CLASS_COMPLEX: return KL_T_C;
  default: return 0;
  }
}

// Every opcode, in the order of their names' bytes.
#define O(op) KL_OP_##op
static const uint8_t by_name[] = {
    // clang-format off
    O(ABS), O(ACOS), O(ACOSH), O(ADD), O(ADD_DEPENDENCY), O(AFTER_ALL), O(ALL_GATHER), O(ALL_GATHER_DONE),
    O(ALL_GATHER_START), O(ALL_REDUCE), O(ALL_REDUCE_DONE), O(ALL_REDUCE_START), O(ALL_TO_ALL), O(AND), O(ASIN),
    O(ASINH), O(ASYNC_DONE), O(ASYNC_START), O(ASYNC_UPDATE), O(ATAN), O(ATAN2), O(ATANH), O(BATCH_NORM_GRAD),
    O(BATCH_NORM_INFERENCE), O(BATCH_NORM_TRAINING), O(BITCAST), O(BITCAST_CONVERT), O(BROADCAST), O(CALL), O(CBRT),
    O(CEIL), O(CHOLESKY), O(CLAMP), O(COLLECTIVE_BROADCAST), O(COLLECTIVE_PERMUTE), O(COLLECTIVE_PERMUTE_DONE),
    O(COLLECTIVE_PERMUTE_START), O(COLLECTIVE_REDUCE), O(COMPARE), O(COMPLEX), O(CONCATENATE), O(CONDITIONAL),
    O(CONSTANT), O(CONVERT), O(CONVOLUTION), O(COPY), O(COPY_DONE), O(COPY_START), O(COSH), O(COS), O(CLZ),
    O(CUSTOM_CALL), O(DIVIDE), O(DOMAIN), O(DOT), O(DYNAMIC_RESHAPE), O(DYNAMIC_SLICE), O(DYNAMIC_UPDATE_SLICE),
    O(ERF), O(EXP10), O(EXP), O(EXPM1), O(FFT), O(FLOOR), O(FUSION), O(GATHER), O(GET_DIMENSION_SIZE),
    O(GET_TUPLE_ELEMENT), O(IMAG), O(INFEED), O(IOTA), O(IS_FINITE), O(LOG), O(LOG1P), O(LOGISTIC), O(MAP),
    O(MAXIMUM), O(MINIMUM), O(MULHI), O(MULTIPLY), O(NEGATE), O(NOT), O(OPT_BARRIER), O(OR), O(OUTFEED), O(PAD),
    O(PARAMETER), O(PARTITION_ID), O(POPCNT), O(POWER), O(RAGGED_ALL_TO_ALL), O(RAGGED_DOT), O(REAL), O(RECV),
    O(RECV_DONE), O(REDUCE), O(REDUCE_PRECISION), O(REDUCE_SCATTER), O(REDUCE_WINDOW), O(REMAINDER), O(REPLICA_ID),
    O(RESHAPE), O(REVERSE), O(RNG), O(RNG_BIT_GENERATOR), O(RNG_GET_AND_UPDATE_STATE), O(ROUND_AFZ), O(ROUND_EVEN),
    O(RSQRT), O(SCALED_DOT), O(SCAN), O(SCATTER), O(SELECT), O(SELECT_AND_SCATTER), O(SEND), O(SEND_DONE),
    O(SET_DIMENSION_SIZE), O(SHL), O(SHR_ARITH), O(SHR_LOGICAL), O(SHUFFLE), O(SIGN), O(SIN), O(SINH), O(SLICE),
    O(SORT), O(SQRT), O(STOCHASTIC_CONVERT), O(SUBTRACT), O(TAN), O(TANH), O(TOPK), O(TRANSPOSE), O(TRIANGULAR_SOLVE),
    O(TUPLE), O(WHILE), O(XOR),
    // clang-format on
};
#undef O
_Static_assert(KL_COUNT(by_name) == KL_OP_COUNT - 1 && KL_OP_COUNT <= 256, "every opcode is in the list of names");

bool kl_op_from_str(kl_str name, kl_op *out) {
  size_t low = 0, high = KL_COUNT(by_name);
  while (low < high) {
    size_t middle = (low + high) / 2;
    kl_op op = by_name[middle];
    const char *text = kl_op_table[op].name;
    int order = strncmp(text, name.p, name.n);
    if (order == 0 && text[name.n] == 0 && name.n) {
      *out = op;
      return true;
    }
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

bool kl_op_from_text(kl_str name, kl_op *out, kl_op *wrapped) {
  static const struct {
    const char *end;
    kl_op op;
  } forms[] = {{"-start", KL_OP_ASYNC_START}, {"-update", KL_OP_ASYNC_UPDATE}, {"-done", KL_OP_ASYNC_DONE}};
  *wrapped = KL_OP_UNKNOWN;
  if (kl_op_from_str(name, out)) return true;
  for (size_t i = 0; i < KL_COUNT(forms); i++) {
    kl_str end = kl_str_of(forms[i].end);
    if (name.n <= end.n || memcmp(name.p + name.n - end.n, end.p, end.n) != 0) continue;
    if (!kl_op_from_str((kl_str){name.p, name.n - end.n}, wrapped)) return false;
    *out = forms[i].op;
    return true;
  }
  return false;
}
