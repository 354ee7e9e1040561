// rng as arithmetic on the words of a Philox generator, whose key is KL_RANDOM_KEY and whose counter's high word says
// which rng of its computation it is. docs/numerics.md has the rule.
#include "ir/rewrite/expand/room.h"

#include <math.h>

typedef struct random {
  kl_graph *g;
  const kl_shape *s; // of the result
  kl_dtype word;     // u32, or u64 for types of 64 bits
  kl_dtype work;     // what floats are computed in
  unsigned digits;   // of a float: as many bits of a word as it can have
  uint32_t from, to; // the two operands
} random;

static bool takes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  kl_dtype t = in->shape->dtype;
  return !in->shape->dynamic && in->shape->count >= 0 && in->shape->count <= INT64_MAX / 2 &&
         (t == KILN_PRED || kl_is_int(t) || kl_is_float(t));
}

// --- which one ------------------------------------------------------------------------------------------------------

typedef struct frame {
  uint32_t instr, next;
} frame;

// How many come before it, depth first from the root through the operands, each behind its own, and what is not reached
// so in the order of the text.
static uint64_t count_before(const kl_comp *c, uint32_t at, bool *seen, frame *stack) {
  uint64_t before = 0;
  for (uint32_t i = 0; i <= c->ninstr; i++) {
    uint32_t n = 0, root = i ? i - 1 : c->root;
    if (!seen[root]) stack[n++] = (frame){root, 0}, seen[root] = true;
    while (n) {
      frame *f = &stack[n - 1];
      const kl_instr *in = &c->instr[f->instr];
      while (f->next < in->noperands && seen[in->operands[f->next]]) f->next++;
      if (f->next < in->noperands) {
        uint32_t operand = in->operands[f->next];
        seen[operand] = true;
        stack[n++] = (frame){operand, 0};
        continue;
      }
      if (f->instr == at) return before;
      before += in->op == KL_OP_RNG;
      n--;
    }
  }
  return before;
}

static uint64_t place_of(kl_ctx *cx, const kl_comp *c, uint32_t at) {
  size_t marks = c->ninstr * sizeof(bool), frames = c->ninstr * sizeof(frame);
  bool *seen = kl_alloc(cx, marks);
  frame *stack = kl_alloc(cx, frames);
  memset(seen, 0, marks);
  uint64_t before = count_before(c, at, seen, stack);
  kl_free(cx, seen, marks);
  kl_free(cx, stack, frames);
  return before;
}

// --- words ----------------------------------------------------------------------------------------------------------

static uint32_t spread(const random *r, uint32_t scalar) {
  return kl_graph_broadcast(r->g, scalar, r->s->rank, r->s->dims, NULL);
}

// Words [k * n, k * n + n) of all, n the number of elements, in the result's shape.
static uint32_t words(const random *r, uint32_t all, int64_t k) {
  int64_t n = r->s->count;
  return kl_graph_reshape(r->g, kl_graph_slice(r->g, all, 0, k * n, k * n + n, 1), r->s->rank, r->s->dims);
}

static uint32_t number(const random *r, double v) {
  uint32_t one = kl_graph_bits(r->g, r->work, (uint64_t[2]){kl_float_encode(r->work, v), 0}, 0, NULL);
  return spread(r, one);
}

// The first digits of a word, and `more`, as a fraction.
static uint32_t fraction(const random *r, uint32_t word, int64_t more) {
  unsigned bits = (unsigned)kl_info(r->word)->bits;
  uint32_t top = kl_graph_with(r->g, KL_OP_SHR_LOGICAL, word, bits - r->digits);
  uint32_t v = kl_graph_convert(r->g, kl_graph_with(r->g, KL_OP_ADD, top, more), r->work);
  return kl_graph_binary(r->g, KL_OP_MULTIPLY, v, number(r, ldexp(1, -(int)r->digits)));
}

// --- distributions --------------------------------------------------------------------------------------------------

static uint32_t operand(const random *r, uint32_t a) {
  return spread(r, kl_graph_convert(r->g, a, r->work));
}

// from + fraction (to - from)
static uint32_t uniform_floats(const random *r, uint32_t all) {
  kl_graph *g = r->g;
  uint32_t from = operand(r, r->from), width = kl_graph_binary(g, KL_OP_SUBTRACT, operand(r, r->to), from);
  width = kl_graph_binary(g, KL_OP_MULTIPLY, fraction(r, words(r, all, 0), 0), width);
  return kl_graph_binary(g, KL_OP_ADD, from, width);
}

// from + to sqrt(-2 log u) cos(2 pi v), u and v fractions, u above zero.
static uint32_t normal_floats(const random *r, uint32_t all) {
  kl_graph *g = r->g;
  uint32_t size = kl_graph_unary(g, KL_OP_LOG, fraction(r, words(r, all, 0), 1));
  size = kl_graph_unary(g, KL_OP_SQRT, kl_graph_binary(g, KL_OP_MULTIPLY, size, number(r, -2)));
  uint32_t turn = kl_graph_binary(g, KL_OP_MULTIPLY, fraction(r, words(r, all, 1), 0), number(r, 6.283185307179586));
  uint32_t v = kl_graph_binary(g, KL_OP_MULTIPLY, size, kl_graph_unary(g, KL_OP_COS, turn));
  v = kl_graph_binary(g, KL_OP_MULTIPLY, v, operand(r, r->to));
  return kl_graph_binary(g, KL_OP_ADD, operand(r, r->from), v);
}

static kl_dtype signed_of(kl_dtype word) {
  return word == KILN_U64 ? KILN_S64 : KILN_S32;
}

// As a word, signs drawn out.
static uint32_t widened(const random *r, uint32_t a) {
  kl_dtype wide = kl_is_signed(r->s->dtype) ? signed_of(r->word) : r->word;
  return spread(r, kl_graph_bitcast(r->g, kl_graph_convert(r->g, a, wide), r->word));
}

// from + the high half of word (to - from)
static uint32_t uniform_integers(const random *r, uint32_t all) {
  kl_graph *g = r->g;
  uint32_t from = widened(r, r->from), range = kl_graph_binary(g, KL_OP_SUBTRACT, widened(r, r->to), from);
  uint32_t v = kl_graph_binary(g, KL_OP_ADD, from, kl_graph_binary(g, KL_OP_MULHI, words(r, all, 0), range));
  if (kl_is_signed(r->s->dtype)) v = kl_graph_bitcast(g, v, signed_of(r->word));
  return kl_graph_convert(g, v, r->s->dtype);
}

// The first bit, where the ends differ.
static uint32_t uniform_truths(const random *r, uint32_t all) {
  kl_graph *g = r->g;
  uint32_t from = spread(r, r->from), other = kl_graph_binary(g, KL_OP_XOR, from, spread(r, r->to));
  uint32_t bit = kl_graph_compare_with(g, KL_NE, kl_graph_with(g, KL_OP_SHR_LOGICAL, words(r, all, 0), 31), 0);
  return kl_graph_select(g, other, bit, from);
}

// Of a uniform number as many as its type has, so that 1 is not among those from 0 to 1.
static unsigned digits_of(kl_dtype t, kl_dtype work, bool normal) {
  return (unsigned)kl_info(normal ? work : t)->man_bits + 1;
}

static uint32_t write(const kl_expansion *x) {
  kl_graph *g = x->g;
  kl_dtype t = x->in->shape->dtype;
  bool wide = kl_info(t)->bits == 64, normal = x->in->more->distribution == KL_RNG_NORMAL;
  random r = {.g = g,
              .s = x->in->shape,
              .word = wide ? KILN_U64 : KILN_U32,
              .work = wide ? KILN_F64 : KILN_F32,
              .digits = digits_of(t, wide ? KILN_F64 : KILN_F32, normal),
              .from = x->operands[0],
              .to = x->operands[1]};
  int64_t n = r.s->count * (normal ? 2 : 1);
  uint64_t place = place_of(g->cx, x->c, x->at);
  uint32_t all = kl_expand_words(g, kl_graph_array(g, r.word, 1, &n), KL_RANDOM_KEY, (uint64_t[2]){0, place});
  if (t == KILN_PRED) return uniform_truths(&r, all);
  if (kl_is_int(t)) return uniform_integers(&r, all);
  return kl_graph_convert(g, (normal ? normal_floats : uniform_floats)(&r, all), t);
}

const kl_expander kl_expand_random = {takes, NULL, write};
