// Keys: integers in the order of a comparator that compares one value of the one element with the same of the other.
//
// compare(f(a), f(b)), LT or GT, of integers, or of floats in their total order, is an order of the bits of f: those of
// unsigned integers as they are; of signed ones with the sign turned over; of floats, which are sign and magnitude,
// with the sign turned over where it is not set, and else all bits. GT is the order of the complement. So elements that
// are equal to the comparator, and no others, have equal keys. Floats by value, without a total order, are none: NaN is
// neither before nor behind any other, which no integers are like.

#include "ir/dtype.h"
#include "lower/choose/staged/sort/sort.h"

enum { MOST_LOOKS = 256 }; // pairs of instructions

typedef struct mirror {
  const kl_comp *comp;
  uint32_t array; // KL_NONE: none has been met
  bool swapped;   // the left side is of the second element
  uint32_t looks;
} mirror;

static bool is_same_constant(const kl_instr *a, const kl_instr *b) {
  if (a->shape != b->shape || a->shape->dtype == KILN_TUPLE || !a->literal || !b->literal) return a == b;
  size_t bytes = (size_t)a->shape->count * kl_info(a->shape->dtype)->bytes;
  return a->shape->rank == 0 && memcmp(a->literal->data, b->literal->data, bytes) == 0;
}

// Parameters 2i and 2i+1 are array i's.
static bool mirrors_parameter(mirror *m, int64_t left, int64_t right) {
  if ((left ^ 1) != right) return false;
  uint32_t array = (uint32_t)(left / 2);
  bool swapped = left & 1;
  if (m->array != KL_NONE && (m->array != array || m->swapped != swapped)) return false;
  m->array = array;
  m->swapped = swapped;
  return true;
}

// Is the right side what the left is, with the other element in the place of the one?
static bool mirrors(mirror *m, uint32_t left, uint32_t right) {
  const kl_instr *a = &m->comp->instr[left], *b = &m->comp->instr[right];
  if (m->looks == 0) return false;
  m->looks--;
  if (a->op != b->op || a->shape->dtype != b->shape->dtype || a->noperands != b->noperands) return false;
  if (a->op == KL_OP_PARAMETER) return mirrors_parameter(m, a->number, b->number);
  if (a->op == KL_OP_CONSTANT) return is_same_constant(a, b);
  if (!kl_op_is_elementwise(a->op) || a->shape->rank || a->direction != b->direction ||
      a->compare_type != b->compare_type || a->exponent_bits != b->exponent_bits ||
      a->mantissa_bits != b->mantissa_bits)
    return false;
  for (uint32_t i = 0; i < a->noperands; i++)
    if (!mirrors(m, a->operands[i], b->operands[i])) return false;
  return true;
}

static bool has_order(kl_dtype t, kl_compare_type by) {
  if (kl_is_float(t)) return by == KL_CMP_TOTALORDER;
  return t == KILN_PRED || kl_is_int(t);
}

bool kl_sort_finds_key(const kl_sort *x, kl_sort_key *key) {
  if (!x->less) {
    *key = (kl_sort_key){.type = *x->type, .falls = x->s->instr->more->largest};
    return has_order(key->type, KL_CMP_TOTALORDER);
  }
  const kl_instr *root = kl_root(x->less);
  while (root->op == KL_OP_COPY) root = kl_operand(x->less, root, 0);
  if (root->op != KL_OP_COMPARE || (root->direction != KL_LT && root->direction != KL_GT)) return false;
  mirror m = {.comp = x->less, .array = KL_NONE, .looks = MOST_LOOKS};
  if (!mirrors(&m, root->operands[0], root->operands[1]) || m.array == KL_NONE) return false;
  kl_comp *of = kl_arena_dup(x->s->c->arena, x->less, sizeof *of);
  of->root = root->operands[0];
  *key = (kl_sort_key){.array = m.array, .of = of, .type = kl_root(of)->shape->dtype};
  key->falls = (root->direction == KL_GT) != m.swapped;
  return has_order(key->type, root->compare_type);
}

unsigned kl_sort_key_bits(const kl_sort_key *key) {
  return key->type == KILN_PRED ? 1 : kl_info(key->type)->bits;
}

// --- as steps -------------------------------------------------------------------------------------------------------

static uint32_t as(kl_stage_body *b, uint32_t value, kl_op op, kl_dtype t) {
  if (b->w.steps.p[value].dtype == t) return value;
  return kl_write_op(&b->w, (kl_plan_op){.op = op}, t, 1, &value);
}

static kl_dtype word_of_float(unsigned bits) {
  return bits == 4 ? KILN_U4 : bits == 8 ? KILN_U8 : bits == 16 ? KILN_U16 : bits == 32 ? KILN_U32 : KILN_U64;
}

// The value's bits; of integers all that the word has are those of the sign.
static uint32_t bits_of(const kl_sort_key *key, kl_stage_body *b, uint32_t value, kl_dtype word) {
  if (kl_is_float(key->type)) value = as(b, value, KL_OP_BITCAST_CONVERT, word_of_float(kl_sort_key_bits(key)));
  return as(b, value, KL_OP_CONVERT, word);
}

// Of a key's bits all, the highest, and those that are turned over whatever the element is.
typedef struct turning {
  uint64_t all, sign, turned;
  bool by_sign; // the others are turned over where the element's sign is set, else the sign alone
} turning;

static turning turning_of(const kl_sort_key *key) {
  unsigned bits = kl_sort_key_bits(key);
  turning t = {.all = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, .sign = (uint64_t)1 << (bits - 1)};
  t.by_sign = kl_is_float(key->type) && kl_info(key->type)->kind != KL_E8M0;
  t.turned = (key->falls ? t.all : 0) ^ (kl_is_signed(key->type) && !t.by_sign ? t.sign : 0);
  return t;
}

// The word with all bits turned over that are in one of two masks, by whether its sign is set.
static uint32_t turn(kl_stage_body *b, const turning *t, uint32_t value, uint64_t set, uint64_t clear) {
  kl_dtype word = b->w.steps.p[value].dtype;
  uint32_t is_set = kl_stage_compare(b, KL_GE, KL_CMP_DEFAULT, value, kl_write_scalar(&b->w, word, t->sign, 0));
  uint32_t by =
      kl_stage_select(b, is_set, kl_write_scalar(&b->w, word, set, 0), kl_write_scalar(&b->w, word, clear, 0));
  return kl_stage_op(b, KL_OP_XOR, value, by);
}

kiln_status kl_sort_key_of(const kl_sort *x, const kl_sort_key *key, kl_stage_body *b, uint32_t element,
                           uint32_t *out) {
  kl_dtype word = kl_sort_key_bits(key) > 32 ? KILN_U64 : KILN_U32;
  turning t = turning_of(key);
  uint32_t value = element;
  if (key->of) {
    uint32_t *args = KL_NEW_N(x->s->c->arena, uint32_t, 2 * x->n);
    for (uint32_t i = 0; i < 2 * x->n; i++)
      args[i] = i / 2 == key->array ? element : kl_write_scalar(&b->w, x->type[i / 2], 0, 0);
    KL_TRY(kl_walk_call(&b->walk, x->s->number, key->of, args, &value));
  }
  value = bits_of(key, b, value, word);
  if (t.by_sign) {
    value = turn(b, &t, value, t.all ^ t.turned, t.sign ^ t.turned);
  } else {
    if (t.turned) value = kl_stage_op(b, KL_OP_XOR, value, kl_write_scalar(&b->w, word, t.turned, 0));
    if (kl_is_signed(key->type) && t.all < UINT32_MAX)
      value = kl_stage_op(b, KL_OP_AND, value, kl_write_scalar(&b->w, word, t.all, 0));
  }
  *out = value;
  return KILN_OK;
}

// Of a key whose highest bit is as the element's sign is not, unless the key falls.
uint32_t kl_sort_element_of(const kl_sort_key *key, kl_stage_body *b, uint32_t value) {
  kl_dtype word = b->w.steps.p[value].dtype;
  turning t = turning_of(key);
  uint64_t was_set = t.all ^ t.turned, was_clear = t.sign ^ t.turned;
  if (t.by_sign)
    value = key->falls ? turn(b, &t, value, was_set, was_clear) : turn(b, &t, value, was_clear, was_set);
  else if (t.turned)
    value = kl_stage_op(b, KL_OP_XOR, value, kl_write_scalar(&b->w, word, t.turned, 0));
  if (!kl_is_float(key->type)) return as(b, value, KL_OP_CONVERT, key->type);
  value = as(b, value, KL_OP_CONVERT, word_of_float(kl_sort_key_bits(key)));
  return as(b, value, KL_OP_BITCAST_CONVERT, key->type);
}
