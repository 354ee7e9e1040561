// Calls of a GPU's libraries as the ops that XLA has made them of: contractions, and what becomes of their sums
// (kl_after). Steps behind a sum are in f32 or f64, and rounded once, as the libraries have it.
#include "ir/custom/custom.h"

#include "ir/rewrite/expand/room.h"

#include <math.h>

enum { NONE = UINT32_MAX };

// --- numbers --------------------------------------------------------------------------------------------------------

static uint32_t number(kl_graph *g, uint32_t like, double re, double im) {
  const kl_shape *s = kl_graph_shape(g, like);
  bool complex = kl_is_complex(s->dtype);
  kl_dtype part = complex ? kl_info(s->dtype)->part : s->dtype;
  return kl_graph_bits(g, s->dtype, (uint64_t[2]){kl_float_encode(part, re), complex ? kl_float_encode(part, im) : 0},
                       s->rank, s->dims);
}

static uint32_t with(kl_graph *g, kl_op op, uint32_t a, double b) {
  return kl_graph_binary(g, op, a, number(g, a, b, 0));
}

static uint32_t spread(kl_graph *g, uint32_t one, uint32_t like) {
  const kl_shape *s = kl_graph_shape(g, like);
  return s->rank ? kl_graph_broadcast(g, one, s->rank, s->dims, NULL) : one;
}

static uint32_t zeros(kl_graph *g, const kl_shape *s) {
  return kl_graph_bits(g, s->dtype, (uint64_t[2]){0, 0}, s->rank, s->dims);
}

// --- what becomes of sums -------------------------------------------------------------------------------------------

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
static uint32_t gelu(kl_graph *g, uint32_t x) {
  uint32_t cube = kl_graph_binary(g, KL_OP_MULTIPLY, kl_graph_binary(g, KL_OP_MULTIPLY, x, x), x);
  uint32_t t = kl_graph_binary(g, KL_OP_ADD, x, with(g, KL_OP_MULTIPLY, cube, 0.044715));
  t = kl_graph_unary(g, KL_OP_TANH, with(g, KL_OP_MULTIPLY, t, sqrt(2 / M_PI)));
  return kl_graph_binary(g, KL_OP_MULTIPLY, x, with(g, KL_OP_MULTIPLY, with(g, KL_OP_ADD, t, 1), 0.5));
}

static uint32_t gelu_erf(kl_graph *g, uint32_t x) {
  uint32_t t = kl_graph_unary(g, KL_OP_ERF, with(g, KL_OP_MULTIPLY, x, sqrt(0.5)));
  return kl_graph_binary(g, KL_OP_MULTIPLY, x, with(g, KL_OP_MULTIPLY, with(g, KL_OP_ADD, t, 1), 0.5));
}

// x where it is positive, else another value.
static uint32_t positive_or(kl_graph *g, uint32_t x, uint32_t other) {
  return kl_graph_select(g, kl_graph_compare(g, KL_GT, x, number(g, x, 0, 0)), x, other);
}

static uint32_t activated(kl_graph *g, const kl_after *a, uint32_t x) {
  switch (a->activation) {
  case KL_ACTIVATION_SIGMOID: return kl_graph_unary(g, KL_OP_LOGISTIC, x);
  case KL_ACTIVATION_RELU: return with(g, KL_OP_MAXIMUM, x, 0);
  case KL_ACTIVATION_RELU6: return with(g, KL_OP_MINIMUM, with(g, KL_OP_MAXIMUM, x, 0), 6);
  case KL_ACTIVATION_TANH: return kl_graph_unary(g, KL_OP_TANH, x);
  case KL_ACTIVATION_ELU: return positive_or(g, x, kl_graph_unary(g, KL_OP_EXPM1, x));
  case KL_ACTIVATION_LEAKY_RELU: return positive_or(g, x, with(g, KL_OP_MULTIPLY, x, a->slope));
  case KL_ACTIVATION_GELU: return gelu(g, x);
  case KL_ACTIVATION_GELU_ERF: return gelu_erf(g, x);
  case KL_ACTIVATION_SWISH: return kl_graph_binary(g, KL_OP_MULTIPLY, x, kl_graph_unary(g, KL_OP_LOGISTIC, x));
  default: return x;
  }
}

// In the steps' type.
static uint32_t operand(const kl_expansion *x, const kl_after *a, int i) {
  return kl_graph_convert(x->g, x->operands[i], a->steps);
}

static uint32_t one(const kl_expansion *x, const kl_after *a, int i) {
  return kl_graph_reshape(x->g, operand(x, a, i), 0, NULL);
}

// alpha and the operands' scales in one, everywhere.
static uint32_t scaled(const kl_expansion *x, const kl_after *a, uint32_t sum) {
  kl_graph *g = x->g;
  uint32_t factor = NONE;
  for (int i = 0; i < 2; i++)
    if (a->scale[i] != KL_NO_OPERAND) {
      uint32_t own = one(x, a, a->scale[i]);
      factor = i ? kl_graph_binary(g, KL_OP_MULTIPLY, factor, own) : own;
    }
  bool plain = a->alpha[0] == 1 && a->alpha[1] == 0;
  if (factor == NONE)
    return plain ? sum : kl_graph_binary(g, KL_OP_MULTIPLY, sum, number(g, sum, a->alpha[0], a->alpha[1]));
  if (!plain) factor = with(g, KL_OP_MULTIPLY, factor, a->alpha[0]);
  return kl_graph_binary(g, KL_OP_MULTIPLY, sum, spread(g, factor, sum));
}

static uint32_t added(const kl_expansion *x, const kl_after *a, uint32_t sum) {
  kl_graph *g = x->g;
  if (a->addend != KL_NO_OPERAND) {
    uint32_t c = operand(x, a, a->addend);
    if (a->beta != 1) c = with(g, KL_OP_MULTIPLY, c, a->beta);
    sum = kl_graph_binary(g, KL_OP_ADD, sum, c);
  }
  if (a->bias != KL_NO_OPERAND) {
    const kl_shape *s = kl_graph_shape(g, sum);
    uint32_t bias = kl_graph_broadcast(g, operand(x, a, a->bias), s->rank, s->dims, a->bias_dims);
    sum = kl_graph_binary(g, KL_OP_ADD, sum, bias);
  }
  return sum;
}

// The largest finite value of a type of 8 bits or fewer.
static double largest(kl_dtype t) {
  double most = 0;
  for (uint64_t bits = 0; bits >> kl_info(t)->bits == 0; bits++) {
    double v = kl_float_decode(t, bits);
    if (isfinite(v) && v > most) most = v;
  }
  return most;
}

// Integers of fewer bits.
static uint32_t held(kl_graph *g, uint32_t x, kl_dtype t) {
  unsigned bits = kl_info(t)->bits;
  if (bits >= kl_info(kl_graph_shape(g, x)->dtype)->bits) return x;
  int64_t high = ((int64_t)1 << (bits - kl_is_signed(t))) - 1, low = kl_is_signed(t) ? -high - 1 : 0;
  x = kl_graph_binary(g, KL_OP_MAXIMUM, x, kl_graph_number_like(g, x, low));
  return kl_graph_binary(g, KL_OP_MINIMUM, x, kl_graph_number_like(g, x, high));
}

// To nearest, and held to the range of a type of integers or of 8 bits; conversions of floats to integers do the
// latter.
static uint32_t rounded(kl_graph *g, uint32_t x, kl_dtype t) {
  kl_dtype from = kl_graph_shape(g, x)->dtype;
  if (from == t) return x;
  if (kl_is_int(t)) x = kl_is_int(from) ? held(g, x, t) : kl_graph_unary(g, KL_OP_ROUND_EVEN, x);
  if (kl_is_float(t) && kl_info(t)->bits <= 8) {
    double most = largest(t);
    x = with(g, KL_OP_MINIMUM, with(g, KL_OP_MAXIMUM, x, -most), most);
  }
  return kl_graph_convert(g, x, t);
}

// The largest magnitude of all.
static uint32_t largest_of(kl_graph *g, uint32_t x, kl_dtype t) {
  int64_t dims[KILN_MAX_RANK];
  uint32_t rank = kl_graph_shape(g, x)->rank;
  for (uint32_t d = 0; d < rank; d++) dims[d] = d;
  return kl_graph_convert(g, kl_graph_reduce_over(g, kl_graph_unary(g, KL_OP_ABS, x), rank, dims, KL_COMBINE_MAX), t);
}

// Does nothing become of a sum but that it is the result?
static bool is_plain(const kl_after *a) {
  return a->alpha[0] == 1 && a->alpha[1] == 0 && a->activation == KL_ACTIVATION_NONE && !a->most && !a->before &&
         a->addend == KL_NO_OPERAND && a->bias == KL_NO_OPERAND && a->scale[0] == KL_NO_OPERAND &&
         a->result_scale == KL_NO_OPERAND;
}

// What a sum is made in: the result's type, where it is that.
static kl_dtype sum_type(const kl_after *a, kl_dtype to) {
  return is_plain(a) && kl_info(to)->bits > 8 ? to : a->steps;
}

// All results of the call.
static uint32_t results(const kl_expansion *x, const kl_after *a, uint32_t sum) {
  kl_graph *g = x->g;
  const kl_shape *s = x->in->shape, *to = s->dtype == KILN_TUPLE ? s->elems[0] : s;
  uint32_t value[4], n = 0, before, y, given;
  // A sum of the result's type is the result; integers that become others are but held to their range.
  bool kept = is_plain(a) && (kl_graph_shape(g, sum)->dtype == to->dtype || kl_is_int(to->dtype));
  before = kept ? sum : added(x, a, scaled(x, a, kl_graph_convert(g, sum, a->steps)));
  given = y = activated(g, a, before);
  if (a->result_scale != KL_NO_OPERAND)
    given = kl_graph_binary(g, KL_OP_MULTIPLY, y, spread(g, one(x, a, a->result_scale), y));
  value[n++] = rounded(g, given, to->dtype);
  if (s->dtype != KILN_TUPLE) return value[0];
  if (a->before) value[n] = rounded(g, before, s->elems[n]->dtype), n++;
  if (a->most) value[n] = largest_of(g, y, s->elems[n]->dtype), n++;
  if (a->spare) value[n] = zeros(g, s->elems[n]), n++;
  return kl_graph_tuple(g, n, value);
}

// --- calls ----------------------------------------------------------------------------------------------------------

static const kl_shape *first_result(const kl_instr *in) {
  return in->shape->dtype == KILN_TUPLE ? in->shape->elems[0] : in->shape;
}

static uint32_t write_gemm(const kl_expansion *x) {
  enum { ALGORITHM_ROW = 5 };
  kl_graph *g = x->g;
  const kl_shape *to = first_result(x->in);
  kl_gemm m;
  if (!kl_custom_gemm(x->c, &x->c->instr[x->at], &m)) return zeros(g, to);
  kl_more *more = KL_NEW(&g->m->arena, kl_more);
  *more = kl_no_more;
  kl_ints *const lists[4] = {&more->lhs_batch, &more->lhs_contracting, &more->rhs_batch, &more->rhs_contracting};
  for (int i = 0; i < 4; i++)
    *lists[i] = (kl_ints){m.n[i], kl_arena_dup(&g->m->arena, m.dims[i], m.n[i] * sizeof(int64_t))};
  more->algorithm = m.algorithm;
  uint32_t sum = kl_graph_dot(g, x->operands[0], x->operands[1], more, m.algorithm ? 1u << ALGORITHM_ROW : 0,
                              sum_type(&m.after, to->dtype), to->rank, to->dims);
  return results(x, &m.after, sum);
}

// Of integers: the result's type where that has room for sums, else one that has.
static kl_dtype conv_sum(const kl_expansion *x, const kl_after *a, kl_dtype to) {
  kl_dtype l = kl_graph_shape(x->g, x->operands[0])->dtype, r = kl_graph_shape(x->g, x->operands[1])->dtype;
  if (!kl_is_int(l)) return sum_type(a, to);
  if (is_plain(a) && kl_is_int(to) && kl_info(to)->bits >= 32) return to;
  return kl_info(l)->bits > 16 || kl_info(r)->bits > 16 ? KILN_S64 : KILN_S32;
}

static uint32_t write_conv(const kl_expansion *x) {
  kl_graph *g = x->g;
  const kl_shape *to = first_result(x->in);
  kl_after a;
  if (!kl_custom_conv(x->c, &x->c->instr[x->at], &a)) return zeros(g, to);
  return results(x, &a, kl_expand_conv(x, to, conv_sum(x, &a, to->dtype)));
}

// --- steps ----------------------------------------------------------------------------------------------------------

// In f32; a: the first value that it takes, b: the second.
static uint32_t step_of(kl_graph *g, kl_conv_step_kind kind, uint32_t a, uint32_t b) {
  static const kl_op ops[] = {[KL_CONV_STEP_ADD] = KL_OP_ADD,
                              [KL_CONV_STEP_SCALE] = KL_OP_MULTIPLY,
                              [KL_CONV_STEP_DIVIDE] = KL_OP_DIVIDE,
                              [KL_CONV_STEP_MIN] = KL_OP_MINIMUM,
                              [KL_CONV_STEP_MAX] = KL_OP_MAXIMUM};
  if (kind == KL_CONV_STEP_RELU) return with(g, KL_OP_MAXIMUM, a, 0);
  if (kind == KL_CONV_STEP_ELU) return positive_or(g, a, kl_graph_unary(g, KL_OP_EXPM1, a));
  return kl_graph_binary(g, ops[kind], a, b);
}

static uint32_t write_steps(const kl_expansion *x) {
  kl_graph *g = x->g;
  const kl_shape *s = x->in->shape, *to = s->dtype == KILN_TUPLE ? s->elems[0] : s;
  kl_conv_steps all;
  uint32_t whole[KL_MOST_CONV_STEPS], value[KL_MOST_CONV_STEPS], result[KL_MOST_CONV_STEPS + 1], n = 1;
  if (!kl_custom_steps(x->c, &x->c->instr[x->at], &all)) return zeros(g, to);
  for (uint32_t i = 0; i < all.n; i++) {
    const kl_conv_step *p = &all.step[i];
    if (p->kind == KL_CONV_STEP_LARGEST) {
      result[n] = largest_of(g, whole[p->a], s->elems[n]->dtype), n++;
      continue;
    }
    uint32_t a = i ? kl_graph_convert(g, value[p->a], KILN_F32) : 0, b = a;
    if (p->b != KL_NO_OPERAND) b = kl_graph_convert(g, value[p->b], KILN_F32);
    if (p->operand != KL_NO_OPERAND) {
      b = kl_graph_convert(g, x->operands[p->operand], KILN_F32);
      if (p->kind == KL_CONV_STEP_SCALE || p->kind == KL_CONV_STEP_DIVIDE)
        b = spread(g, kl_graph_reshape(g, b, 0, NULL), a);
    }
    whole[i] = i ? step_of(g, p->kind, a, b) : kl_expand_conv(x, to, KILN_F32);
    value[i] = rounded(g, whole[i], p->type);
  }
  result[0] = value[all.last];
  if (s->dtype != KILN_TUPLE) return result[0];
  if (all.spare) result[n] = zeros(g, s->elems[n]), n++;
  return kl_graph_tuple(g, n, result);
}

// --- others ---------------------------------------------------------------------------------------------------------

// Arrays, and memory beside them.
static uint32_t beside_memory(kl_graph *g, const kl_shape *s, uint32_t n, const uint32_t *values) {
  uint32_t all[3] = {values[0], n > 1 ? values[1] : 0};
  if (s->dtype != KILN_TUPLE) return values[0];
  if (s->nelems > n) all[n] = zeros(g, s->elems[n]);
  return kl_graph_tuple(g, s->nelems, all);
}

static uint32_t write_solve(const kl_expansion *x) {
  kl_more more;
  kl_custom_solve(x->in, &more);
  uint32_t solved = kl_graph_triangular_solve(x->g, x->operands[0], x->operands[1], &more);
  return beside_memory(x->g, x->in->shape, 1, &solved);
}

static uint32_t write_sort(const kl_expansion *x) {
  uint32_t n = x->in->noperands, sorted[2];
  bool descending = false;
  kl_custom_sort(x->in, &descending);
  sorted[0] = kl_graph_sort(x->g, n, x->operands, descending);
  if (n > 1) {
    sorted[1] = kl_graph_element(x->g, sorted[0], 1);
    sorted[0] = kl_graph_element(x->g, sorted[0], 0);
  }
  return beside_memory(x->g, x->in->shape, n, sorted);
}

uint32_t kl_expand_library(const kl_expansion *x) {
  switch (kl_custom_named(x->in)) {
  case KL_CUSTOM_GEMM:
  case KL_CUSTOM_GEMM_F8: return write_gemm(x);
  case KL_CUSTOM_SOLVE: return write_solve(x);
  case KL_CUSTOM_SORT: return write_sort(x);
  case KL_CUSTOM_ATTENTION: return kl_expand_attention(x);
  case KL_CUSTOM_CONV_STEPS: return write_steps(x);
  case KL_CUSTOM_THREE_FRY: {
    uint32_t words[2] = {x->operands[2], x->operands[3]};
    kl_expand_three_fry(x->g, x->operands, words);
    return kl_graph_tuple(x->g, 2, words);
  }
  default: return write_conv(x);
  }
}

void kl_expand_library_computations(kl_graph *g, const kl_comp *c, const kl_instr *in) {
  kl_gemm m;
  bool product = kl_custom_named(in) == KL_CUSTOM_GEMM || kl_custom_named(in) == KL_CUSTOM_GEMM_F8;
  if (product && kl_custom_gemm(c, in, &m) && m.after.most) kl_graph_combiner(g, KL_COMBINE_MAX, m.after.steps);
  kl_conv_steps steps;
  if (kl_custom_named(in) == KL_CUSTOM_ATTENTION) kl_expand_attention_computations(g);
  if (kl_custom_named(in) == KL_CUSTOM_CONV_STEPS && kl_custom_steps(c, in, &steps) && steps.nlargest)
    kl_graph_combiner(g, KL_COMBINE_MAX, KILN_F32);
  if (kl_custom_named(in) == KL_CUSTOM_SORT) {
    bool descending = false;
    kl_custom_sort(in, &descending);
    kl_dtype beside = in->noperands > 1 ? kl_operand(c, in, 1)->shape->dtype : KILN_DTYPE_NONE;
    kl_graph_comparator(g, kl_operand(c, in, 0)->shape->dtype, beside, descending);
  }
}
