// Attention, and what it hands back, as ops in f32: with scores x = scale q k^T + bias, -inf where the mask has
// nothing,
//   l = m + log(sum of exp(x - m)), m the largest of a row,  p = exp(x - m) / sum,  result = p v
// and back, from l, the result o and its gradient g,
//   p = exp(x - l),  v' = p^T g,  x' = p (g v^T - sum of g o),  q' = scale x' k,  k' = scale x'^T q,  bias' = sums of
//   x'
#include "ir/custom/custom.h"

#include "ir/rewrite/expand/room.h"

#include <math.h>

typedef struct attention {
  const kl_expansion *x;
  kl_graph *g;
  kl_attention a;
  int64_t heads, tokens; // dimensions of what is given
} attention;

static uint32_t in_f32(const attention *t, int i) {
  return kl_graph_convert(t->g, t->x->operands[i], KILN_F32);
}

static uint32_t number(const attention *t, double v) {
  return kl_graph_bits(t->g, KILN_F32, (uint64_t[2]){kl_float_encode(KILN_F32, v), 0}, 4, t->a.size);
}

static uint32_t times(const attention *t, uint32_t a, double by) {
  const kl_shape *s = kl_graph_shape(t->g, a);
  uint32_t b = kl_graph_bits(t->g, KILN_F32, (uint64_t[2]){kl_float_encode(KILN_F32, by), 0}, s->rank, s->dims);
  return by == 1 ? a : kl_graph_binary(t->g, KL_OP_MULTIPLY, a, b);
}

// One number of each row for all of it.
static uint32_t spread(const attention *t, uint32_t rows) {
  return kl_graph_broadcast(t->g, rows, 4, t->a.size, (int64_t[]){0, 1, 2});
}

static kl_ints keep(const attention *t, uint32_t n, const int64_t *dims) {
  return (kl_ints){n, kl_arena_dup(&t->g->m->arena, dims, n * sizeof *dims)};
}

// A product by batches and heads in f32; what is made has these before all else. `apart`: the left operand is one of
// scores, which has heads before tokens.
static uint32_t product(const attention *t, uint32_t a, bool apart, int64_t left, uint32_t b, int64_t right,
                        const int64_t *dims) {
  kl_more *more = KL_NEW(&t->g->m->arena, kl_more);
  *more = kl_no_more;
  more->lhs_batch = keep(t, 2, (int64_t[]){0, apart ? 1 : t->heads});
  more->rhs_batch = keep(t, 2, (int64_t[]){0, t->heads});
  more->lhs_contracting = keep(t, 1, &left);
  more->rhs_contracting = keep(t, 1, &right);
  return kl_graph_dot(t->g, a, b, more, 0, KILN_F32, 4, dims);
}

static uint32_t scores(const attention *t) {
  kl_graph *g = t->g;
  const kl_attention *a = &t->a;
  uint32_t x = times(t, product(t, t->x->operands[0], false, 3, t->x->operands[1], 3, a->size), a->scale);
  if (a->bias != KL_NO_OPERAND) {
    uint32_t bias = in_f32(t, a->bias), n = 0;
    const kl_shape *s = kl_graph_shape(g, bias);
    int64_t own[4], to[4];
    for (int64_t d = 0; d < 4; d++)
      if (s->dims[d] == a->size[d]) own[n] = s->dims[d], to[n++] = d;
    x = kl_graph_binary(g, KL_OP_ADD, x, kl_graph_broadcast(g, kl_graph_reshape(g, bias, n, own), 4, a->size, to));
  }
  if (!a->causal) return x;
  uint32_t row = kl_graph_iota(g, KILN_S32, 4, a->size, 2), column = kl_graph_iota(g, KILN_S32, 4, a->size, 3);
  uint32_t seen = kl_graph_compare(g, KL_LE, column, row);
  if (a->window) {
    uint32_t back = kl_graph_binary(g, KL_OP_SUBTRACT, row, column);
    seen = kl_graph_binary(g, KL_OP_AND, seen, kl_graph_compare_with(g, KL_LT, back, a->window));
  }
  return kl_graph_select(g, seen, x, number(t, -INFINITY));
}

static uint32_t with_memory(const attention *t, uint32_t n, uint32_t *values) {
  const kl_shape *s = t->x->in->shape;
  for (uint32_t i = 0; i < n; i++) values[i] = kl_graph_convert(t->g, values[i], s->elems[i]->dtype);
  if (t->a.spare) values[n] = kl_graph_number(t->g, s->elems[n]->dtype, 0, s->elems[n]->rank, s->elems[n]->dims), n++;
  return kl_graph_tuple(t->g, n, values);
}

static uint32_t forward(const attention *t) {
  kl_graph *g = t->g;
  const kl_attention *a = &t->a;
  int64_t last = 3;
  uint32_t x = scores(t),
           least = kl_graph_bits(g, KILN_F32, (uint64_t[2]){kl_float_encode(KILN_F32, -INFINITY), 0}, 0, NULL);
  uint32_t most = kl_graph_reduce_from(g, x, 1, &last, KL_COMBINE_MAX, least);
  uint32_t e = kl_graph_unary(g, KL_OP_EXP, kl_graph_binary(g, KL_OP_SUBTRACT, x, spread(t, most)));
  uint32_t sum = kl_graph_reduce(g, e, 3, KL_COMBINE_ADD), p = kl_graph_binary(g, KL_OP_DIVIDE, e, spread(t, sum));
  uint32_t value[3] = {
      product(t, p, true, 3, t->x->operands[2], t->tokens, (int64_t[]){a->size[0], a->size[1], a->size[2], a->width})};
  if (a->more) value[1] = kl_graph_binary(g, KL_OP_ADD, most, kl_graph_unary(g, KL_OP_LOG, sum));
  return with_memory(t, 1 + a->more, value);
}

// Sums along dimensions in which the bias has one element for all.
static uint32_t of_bias(const attention *t, uint32_t x) {
  const kl_shape *s = kl_graph_shape(t->g, t->x->operands[t->a.bias]);
  int64_t dims[4];
  uint32_t n = 0;
  for (int64_t d = 0; d < 4; d++)
    if (s->dims[d] != t->a.size[d]) dims[n++] = d;
  uint32_t sums = n ? kl_graph_reduce_over(t->g, x, n, dims, KL_COMBINE_ADD) : x;
  return kl_graph_reshape(t->g, sums, 4, s->dims);
}

static uint32_t back(const attention *t) {
  kl_graph *g = t->g;
  const kl_attention *a = &t->a;
  const uint32_t *in = t->x->operands;
  int64_t width = kl_graph_shape(g, in[0])->dims[3], rows[] = {0, t->heads, t->tokens}, last = 3;
  uint32_t gradient = in[4], made = in[t->x->in->noperands - 1];
  uint32_t p = kl_graph_unary(g, KL_OP_EXP, kl_graph_binary(g, KL_OP_SUBTRACT, scores(t), spread(t, in_f32(t, 3))));
  uint32_t along = product(t, gradient, false, 3, in[2], 3, a->size);
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  more->lhs_batch = more->rhs_batch = keep(t, 3, rows);
  more->lhs_contracting = more->rhs_contracting = keep(t, 1, &last);
  uint32_t own = kl_graph_dot(g, gradient, made, more, 0, KILN_F32, 3, a->size);
  uint32_t x = kl_graph_binary(g, KL_OP_MULTIPLY, p, kl_graph_binary(g, KL_OP_SUBTRACT, along, spread(t, own)));
  const int64_t of_q[] = {a->size[0], a->size[1], a->size[2], width},
                of_k[] = {a->size[0], a->size[1], a->size[3], width},
                of_v[] = {a->size[0], a->size[1], a->size[3], a->width};
  uint32_t value[5] = {times(t, product(t, x, true, 3, in[1], t->tokens, of_q), a->scale),
                       times(t, product(t, x, true, 2, in[0], t->tokens, of_k), a->scale),
                       product(t, p, true, 2, gradient, t->tokens, of_v)};
  if (a->more) value[3] = of_bias(t, x);
  return with_memory(t, 3 + a->more, value);
}

uint32_t kl_expand_attention(const kl_expansion *x) {
  attention t = {.x = x, .g = x->g};
  kl_custom_attention(x->c, &x->c->instr[x->at], &t.a);
  t.heads = t.a.heads;
  t.tokens = 3 - t.heads;
  return t.a.back ? back(&t) : forward(&t);
}

void kl_expand_attention_computations(kl_graph *g) {
  kl_graph_combiner(g, KL_COMBINE_MAX, KILN_F32);
  kl_graph_combiner(g, KL_COMBINE_ADD, KILN_F32);
}
