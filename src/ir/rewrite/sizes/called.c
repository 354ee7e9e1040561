// Comparators and reducers that are told of each element whether it is there.
#include "ir/rewrite/expand/expand.h"
#include "ir/rewrite/sizes/room.h"

static uint32_t parameter(kl_graph *g, uint32_t number, kl_dtype t, const char *name) {
  return kl_graph_parameter(g, number, kl_graph_array(g, t, 0, NULL), name);
}

// Calls it with the parameters of the open computation that `number` gives for each of its own.
static uint32_t call(kl_graph *g, uint32_t comp, const uint32_t *values) {
  return kl_graph_call(g, comp, g->m->comp[comp].nparams, values);
}

// less(a, b) of elements that are there, which come before others: parameters 0 and 1 say of two whether they are not.
static uint32_t make_order(kl_graph *g, uint32_t less) {
  const kl_comp *c = &g->m->comp[less];
  uint32_t *values = KL_NEW_N(&g->scratch, uint32_t, c->nparams + 1u), beyond[2];
  kl_graph_begin(g);
  for (uint32_t i = 0; i < 2; i++) beyond[i] = parameter(g, i, KILN_PRED, i ? "b" : "a");
  for (uint32_t i = 0; i < c->nparams; i++)
    values[i] = parameter(g, i + 2, c->instr[c->params[i]].shape->dtype, i % 2 ? "y" : "x");
  uint32_t first = kl_graph_binary(g, KL_OP_AND, kl_graph_unary(g, KL_OP_NOT, beyond[0]), beyond[1]);
  uint32_t both = kl_graph_compare(g, KL_EQ, beyond[0], beyond[1]);
  both = kl_graph_binary(g, KL_OP_AND, both, call(g, less, values));
  return kl_graph_end(g, "there", kl_graph_binary(g, KL_OP_OR, first, both));
}

// (p, a...), (q, b...) -> (p or q, reducer(a..., b...) where both are there, else the one that is): as associative as
// the reducer, whatever that does with elements that are not.
static uint32_t make_reducer(kl_graph *g, uint32_t reducer) {
  const kl_comp *c = &g->m->comp[reducer];
  uint32_t n = c->nparams / 2, there[2];
  uint32_t *values = KL_NEW_N(&g->scratch, uint32_t, 2 * n), *out = KL_NEW_N(&g->scratch, uint32_t, n + 1u);
  kl_graph_begin(g);
  for (uint32_t i = 0; i < 2; i++) {
    there[i] = parameter(g, i * (n + 1), KILN_PRED, i ? "q" : "p");
    for (uint32_t k = 0; k < n; k++)
      values[i * n + k] = parameter(g, i * (n + 1) + 1 + k, c->instr[c->params[i * n + k]].shape->dtype, i ? "b" : "a");
  }
  uint32_t both = kl_graph_binary(g, KL_OP_AND, there[0], there[1]), result = call(g, reducer, values);
  out[0] = kl_graph_binary(g, KL_OP_OR, there[0], there[1]);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t joined = kl_root(c)->shape->dtype == KILN_TUPLE ? kl_graph_element(g, result, k) : result;
    out[k + 1] = kl_graph_select(g, both, joined, kl_graph_select(g, there[0], values[k], values[n + k]));
  }
  return kl_graph_end(g, "there", kl_graph_tuple(g, n + 1, out));
}

static bool is_dynamic(const kl_comp *c, const kl_instr *in, uint32_t k, uint32_t d) {
  const kl_shape *s = kl_operand(c, in, k)->shape;
  return s->dynamic && s->dynamic[d];
}

static bool sorts_along_size(const kl_comp *c, const kl_instr *in) {
  bool any = false;
  for (uint32_t k = 0; in->op == KL_OP_SORT && k < in->noperands; k++)
    any |= is_dynamic(c, in, k, (uint32_t)in->dims[0]);
  return any;
}

static bool scans_sizes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  if (in->op != KL_OP_SCAN) return false;
  uint32_t carries = (uint32_t)in->more->carries;
  bool any = false;
  for (uint32_t k = 0; k + carries < in->noperands; k++) any |= is_dynamic(c, in, k, (uint32_t)in->dims[0]);
  return any && kl_size_is_told(&m->comp[in->called[0]], carries);
}

// A batch norm or a transform that becomes sums over what is there: their type.
static bool sums_sizes(const kl_comp *c, const kl_instr *in, kl_dtype *t) {
  bool norm = kl_op_table[in->op].kind == KL_KIND_BATCH_NORM && in->op != KL_OP_BATCH_NORM_INFERENCE;
  if (!norm && in->op != KL_OP_FFT) return false;
  bool any = false;
  for (uint32_t k = 0; k < in->noperands; k++)
    for (uint32_t d = 0; d < kl_operand(c, in, k)->shape->rank; d++) any |= is_dynamic(c, in, k, d);
  *t = kl_operand(c, in, 0)->shape->dtype;
  *t = norm ? kl_norm_steps(*t) : *t == KILN_F64 || *t == KILN_C128 ? KILN_C128 : KILN_C64;
  return any;
}

static bool folds_sizes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  if (in->op != KL_OP_REDUCE && in->op != KL_OP_REDUCE_WINDOW) return false;
  bool any = false, neutral = true;
  uint64_t bits[2];
  uint32_t n = in->noperands / 2;
  for (uint32_t k = 0; k < n; k++) {
    const kl_shape *s = kl_operand(c, in, k)->shape;
    for (uint32_t d = 0; d < s->rank; d++) any |= is_dynamic(c, in, k, d);
    neutral = neutral && kl_size_neutral(m, in->called[0], n, k, s->dtype, bits);
  }
  return any && !neutral;
}

// Makes what the op at hand asks for, if it is not there yet.
static void make_for(kl_sizing *z, const kiln_module *from, const kl_comp *c, const kl_instr *in, uint32_t *orders,
                     uint32_t *reducers, uint32_t *picks, kl_size_step **steps) {
  kl_graph *g = z->g;
  kl_dtype t;
  uint32_t called = in->ncalled ? in->called[0] : 0;
  if (sorts_along_size(c, in) && !orders[called]) orders[called] = make_order(g, called) + 1;
  if (folds_sizes(from, c, in) && !reducers[called]) reducers[called] = make_reducer(g, called) + 1;
  const kl_shape *first = in->noperands ? kl_operand(c, in, 0)->shape : NULL;
  if (first && kl_size_picks(in, first) && !picks[called]) picks[called] = kl_size_make_pick(g, called) + 1;
  uint32_t carries = (uint32_t)in->more->carries;
  if (scans_sizes(from, c, in) && !kl_size_step_of(*steps, called, carries)) {
    kl_size_step *s = KL_NEW(&g->scratch, kl_size_step);
    *s = (kl_size_step){called, carries, kl_size_make_step(z, called, carries), *steps};
    *steps = s;
  }
  if (sums_sizes(c, in, &t)) kl_graph_combiner(g, KL_COMBINE_ADD, t);
}

// Behind all computations, until these are whole. What takes the place of one stands behind that.
kl_size_called kl_size_make_called(kl_sizing *z, const kiln_module *from, const kl_live *live) {
  kl_graph *g = z->g;
  uint32_t n = from->ncomp, most = 3 * n + KILN_DTYPE_COUNT, made = 0;
  kl_size_step *steps = NULL;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < from->comp[i].ninstr; k++) most += from->comp[i].instr[k].op == KL_OP_SCAN;
  kl_comp *all = KL_NEW_N(&g->m->arena, kl_comp, (size_t)n + most);
  memcpy(all, g->m->comp, n * sizeof *all);
  g->m->comp = all;
  uint32_t *orders = KL_NEW_N(&g->scratch, uint32_t, n + 1u), *reducers = KL_NEW_N(&g->scratch, uint32_t, n + 1u);
  uint32_t *behind = KL_NEW_N(&g->scratch, uint32_t, most), *picks = KL_NEW_N(&g->scratch, uint32_t, n + 1u);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; live->comp[i] && k < from->comp[i].ninstr; k++) {
      const kl_instr *in = &from->comp[i].instr[k];
      make_for(z, from, &from->comp[i], in, orders, reducers, picks, &steps);
      while (made < g->m->ncomp - n) behind[made++] = in->ncalled ? in->called[0] : KL_GRAPH_FIRST;
    }
  return (kl_size_called){orders, reducers, picks, steps, behind};
}
