// The op table's rows, and opcodes by name.
#include "ir/hlo.h"

const kl_op_info kl_op_table[KL_OP_COUNT] = {[KL_OP_UNKNOWN] = {"", -1, KL_KIND_UNKNOWN, KL_RESULT_GIVEN, KL_T_A},
#define X(op, text, count, family, how, which)                                                                         \
  [KL_OP_##op] = {text, count, KL_KIND_##family, KL_RESULT_##how, KL_T_##which},
                                             KL_OPS(X)
#undef X
};

static const uint8_t name_lengths[KL_OP_COUNT] = {
#define X(op, text, count, family, how, which) [KL_OP_##op] = sizeof(text) - 1,
    KL_OPS(X)
#undef X
};

const char *const kl_direction_names[6] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
const char *const kl_compare_type_names[5] = {NULL, "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};

bool kl_op_from_str(kl_str name, kl_op *out) {
  if (name.n == 0) return false;
  for (kl_op op = KL_OP_UNKNOWN + 1; op < KL_OP_COUNT; op++) {
    if (name_lengths[op] != name.n || kl_op_table[op].name[0] != name.p[0]) continue;
    if (memcmp(kl_op_table[op].name, name.p, name.n) != 0) continue;
    *out = op;
    return true;
  }
  return false;
}
