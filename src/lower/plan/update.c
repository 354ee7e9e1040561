// What machines do to an element in one step.

#include "lower/plan/plan.h"

typedef struct combining {
  kl_op op;
  uint8_t bits;
  bool is_float;
  uint16_t sm;         // least
  uint16_t most, from; // elements of one instruction, side by side; from this sm on, in global memory
} combining;

// On GPUs. Minima and maxima of floats are those of integers: of bits that are ordered as the numbers are.
static const combining rows[] = {
    {KL_OP_ADD, 32, false, 0, 1, 0},     {KL_OP_ADD, 64, false, 0, 1, 0},     {KL_OP_MINIMUM, 32, false, 0, 1, 0},
    {KL_OP_MINIMUM, 64, false, 0, 1, 0}, {KL_OP_MAXIMUM, 32, false, 0, 1, 0}, {KL_OP_MAXIMUM, 64, false, 0, 1, 0},
    {KL_OP_AND, 32, false, 0, 1, 0},     {KL_OP_AND, 64, false, 0, 1, 0},     {KL_OP_OR, 32, false, 0, 1, 0},
    {KL_OP_OR, 64, false, 0, 1, 0},      {KL_OP_XOR, 32, false, 0, 1, 0},     {KL_OP_XOR, 64, false, 0, 1, 0},
    {KL_OP_ADD, 32, true, 0, 4, 90},     {KL_OP_ADD, 64, true, 0, 1, 0},      {KL_OP_MINIMUM, 32, true, 0, 1, 0},
    {KL_OP_MINIMUM, 64, true, 0, 1, 0},  {KL_OP_MAXIMUM, 32, true, 0, 1, 0},  {KL_OP_MAXIMUM, 64, true, 0, 1, 0},
};

// f16 and bf16: one, or pairs.
static bool adds_half(const kl_target *t, kl_dtype type, bool shared, uint32_t *most) {
  *most = t->sm >= 90 && !shared ? 8 : 2;
  return type == KILN_F16 || (type == KILN_BF16 && t->sm >= 90);
}

static bool on_host(kl_op op, kl_dtype type) {
  bool known = op == KL_OP_ADD || op == KL_OP_AND || op == KL_OP_OR || op == KL_OP_XOR || op == KL_OP_MINIMUM ||
               op == KL_OP_MAXIMUM;
  return known && kl_is_int(type) && kl_info(type)->bits >= 8;
}

kl_op kl_bitwise(kl_op op, kl_dtype type) {
  bool pred = type == KILN_PRED;
  switch (op) {
  case KL_OP_AND:
  case KL_OP_OR:
  case KL_OP_XOR: return pred || kl_is_int(type) ? op : KL_OP_UNKNOWN;
  case KL_OP_ADD:
  case KL_OP_MAXIMUM: return pred ? KL_OP_OR : KL_OP_UNKNOWN;
  case KL_OP_MULTIPLY:
  case KL_OP_MINIMUM: return pred ? KL_OP_AND : KL_OP_UNKNOWN;
  default: return KL_OP_UNKNOWN;
  }
}

// Bits of elements narrower than a word are those of the words that they lie in.
static bool lies_in_words(const kl_slot_info *s) {
  return s->align >= 4 && s->bytes % 4 == 0;
}

bool kl_can_combine(const kl_target *t, kl_op op, const kl_slot_info *s, uint32_t *most) {
  kl_dtype type = s->shape->dtype;
  bool shared = s->kind == KL_SLOT_SHARED;
  *most = 1;
  if (t->machine == KL_HOST) return on_host(op, type);
  if (kl_info(type)->bits < 32 && kl_bitwise(op, type) != KL_OP_UNKNOWN) return lies_in_words(s);
  if (kl_is_complex(type)) {
    if (type == KILN_C64 && t->sm >= 90 && !shared) *most = 2;
    return op == KL_OP_ADD;
  }
  if (op == KL_OP_ADD && (type == KILN_F16 || type == KILN_BF16)) return adds_half(t, type, shared, most);
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    const combining *r = &rows[i];
    if (r->op != op || r->bits != kl_info(type)->bits || r->is_float != kl_is_float(type) || type == KILN_PRED)
      continue;
    if (t->sm >= r->from && !shared) *most = r->most;
    return t->sm >= r->sm;
  }
  return false;
}

unsigned kl_replaced_bits(kl_machine machine, kl_dtype type) {
  unsigned bits = kl_info(type)->bits, least = machine == KL_HOST ? 8 : 16;
  return bits < least ? least : bits;
}

bool kl_can_replace(const kl_target *t, const kl_slot_info *s) {
  unsigned bytes = kl_replaced_bits(t->machine, s->shape->dtype) / 8;
  return bytes <= 8 && s->align >= bytes && s->bytes % bytes == 0;
}
