// Index expressions as ops on whole arrays.
#include "ir/densify/expression.h"

static bool is_small(kl_interval x) {
  return x.lo > INT32_MIN / 2 && x.hi < INT32_MAX / 2;
}

bool kl_graph_is_narrow(kl_dom *d, const kl_aff *e) {
  if (!is_small(kl_dom_interval(d, e))) return false;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind == KL_AFF_FLOOR && a->k > INT32_MAX / 2) return false;
    for (uint32_t k = 0; a->kind >= KL_AFF_VARS && k < a->n; k++)
      if (!kl_graph_is_narrow(d, a->arg[k])) return false;
  }
  return true;
}

bool kl_graph_is_writable(const kl_aff *e) {
  if (e->error || e->partial) return false;
  return true;
}

// a / k, towards minus infinity.
static uint32_t floor_of(kl_graph *g, kl_dom *d, const kl_aff *e, uint32_t a, int64_t k) {
  uint32_t q = kl_graph_with(g, KL_OP_DIVIDE, a, k);
  if (kl_dom_interval(d, e).lo >= 0) return q;
  uint32_t rest = kl_graph_binary(g, KL_OP_SUBTRACT, a, kl_graph_with(g, KL_OP_MULTIPLY, q, k));
  return kl_graph_select(g, kl_graph_compare_with(g, KL_LT, rest, 0), kl_graph_with(g, KL_OP_ADD, q, -1), q);
}

static uint32_t atom(kl_graph *g, kl_dom *d, const kl_aff_atom *a, const uint32_t *dims, uint32_t like_value) {
  static const kl_op ops[] = {
      [KL_AFF_PRODUCT] = KL_OP_MULTIPLY, [KL_AFF_MIN] = KL_OP_MINIMUM, [KL_AFF_MAX] = KL_OP_MAXIMUM};
  if (a->kind == KL_AFF_DIM) return dims[a->var];
  uint32_t v = kl_graph_expression(g, d, a->arg[0], dims, like_value);
  if (a->kind == KL_AFF_FLOOR) return floor_of(g, d, a->arg[0], v, a->k);
  for (uint32_t i = 1; i < a->n; i++)
    v = kl_graph_binary(g, ops[a->kind], v, kl_graph_expression(g, d, a->arg[i], dims, like_value));
  return v;
}

uint32_t kl_graph_expression(kl_graph *g, kl_dom *d, const kl_aff *e, const uint32_t *dims, uint32_t like_value) {
  uint32_t sum = UINT32_MAX;
  for (uint32_t i = 0; i < e->n; i++) {
    uint32_t v = kl_graph_with(g, KL_OP_MULTIPLY, atom(g, d, e->terms[i].atom, dims, like_value), e->terms[i].coef);
    sum = sum == UINT32_MAX ? v : kl_graph_binary(g, KL_OP_ADD, sum, v);
  }
  return sum == UINT32_MAX ? kl_graph_number_like(g, like_value, e->c) : kl_graph_with(g, KL_OP_ADD, sum, e->c);
}
