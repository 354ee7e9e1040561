// Scans along as many elements as there are.
//
// What comes behind the last element changes nothing before it in a scan from the first on; one from the end on begins
// at the last, so that lies at the bound's end meanwhile: blocks, whose order is part of the result, begin there. The
// last carries are those of the last element. Where a step returns its carries as outputs they are among these; else
// its step is told of each element whether it is there, and keeps its carries where not.
#include "ir/rewrite/sizes/room.h"

static uint32_t inputs_of(const kl_instr *in) {
  return in->noperands - (uint32_t)in->more->carries;
}

// --- steps ----------------------------------------------------------------------------------------------------------

bool kl_size_is_told(const kl_comp *step, uint32_t carries) {
  const kl_instr *root = kl_root(step);
  bool same = root->op == KL_OP_TUPLE && root->noperands == 2 * carries;
  for (uint32_t k = 0; k < carries && same; k++) same = root->operands[k] == root->operands[carries + k];
  return !same;
}

const kl_size_step *kl_size_step_of(const kl_size_step *all, uint32_t step, uint32_t carries) {
  while (all && (all->of != step || all->carries != carries)) all = all->next;
  return all;
}

// (there, inputs..., carries...) -> (outputs..., there ? new carries : carries...)
uint32_t kl_size_make_step(kl_sizing *z, uint32_t step, uint32_t carries) {
  kl_graph *g = z->g;
  const kl_comp *c = &g->m->comp[step];
  const kl_shape *root = kl_size_known(z, kl_root(c)->shape);
  uint32_t n = c->nparams, results = root->nelems, there = 0;
  uint32_t *values = KL_NEW_N(&g->scratch, uint32_t, n + 1u), *out = KL_NEW_N(&g->scratch, uint32_t, results + 1u);
  kl_graph_begin(g);
  for (uint32_t i = 0; i < n; i++) {
    const kl_shape *s = kl_size_known(z, c->instr[c->params[i]].shape);
    if (!i) there = kl_graph_parameter(g, 0, kl_graph_array(g, KILN_PRED, s->rank, s->dims), "there");
    values[i] = kl_graph_parameter(g, i + 1, s, i + carries < n ? "x" : "c");
  }
  uint32_t all = kl_graph_call(g, step, n, values);
  g->e.instrs.p[all].shape = root; // what it becomes
  for (uint32_t k = 0; k < results; k++) {
    out[k] = kl_graph_element(g, all, k);
    if (k + carries >= results) out[k] = kl_graph_select(g, there, out[k], values[n - (results - k)]);
  }
  return kl_graph_end(g, "told", kl_graph_tuple(g, results, out));
}

// --- the scan -------------------------------------------------------------------------------------------------------

// Of dimensions that are there in inputs and, without that of the scan, in carries: the least sizes; false: they are
// not the same in all.
static bool sizes_of(kl_sizing *z, kl_extents *x) {
  uint32_t rank = z->shapes[0]->rank, dim = (uint32_t)z->in->dims[0], inputs = inputs_of(z->in);
  bool same = true, sized = false;
  for (uint32_t d = 0; d < KILN_MAX_RANK; d++) x->of[d] = KL_WHOLE;
  for (uint32_t k = 0; k < z->in->noperands; k++) {
    bool carry = k >= inputs;
    same &= z->shapes[k]->rank + carry == rank;
    for (uint32_t i = 0; i < z->shapes[k]->rank; i++) {
      uint32_t d = carry && i >= dim ? i + 1 : i;
      sized |= d != dim && kl_is_sized(z, k, i);
      x->of[d] = kl_size_least(z, x->of[d], kl_extent(z, k, i));
    }
  }
  for (size_t k = 0; k < kl_shape_leaf_count(z->in->shape); k++) {
    bool carry = k + (size_t)z->in->more->carries >= kl_shape_leaf_count(z->in->shape);
    const kl_shape *s = kl_shape_leaf(z->in->shape, k);
    same &= s->rank + carry == rank;
    for (uint32_t i = 0; i < s->rank; i++) z->out[k].of[i] = x->of[carry && i >= dim ? i + 1 : i];
  }
  return same || !sized;
}

static uint32_t tell(kl_sizing *z, uint32_t size, uint32_t step) {
  kl_instr own = *z->in;
  uint32_t n = own.noperands, dim = (uint32_t)own.dims[0], *values = KL_NEW_N(&z->g->scratch, uint32_t, n + 1u);
  kl_extents x;
  for (uint32_t d = 0; d < KILN_MAX_RANK; d++) x.of[d] = d == dim ? size : KL_WHOLE;
  values[0] = kl_size_there(z, kl_graph_shape(z->g, z->values[0]), &x);
  memcpy(values + 1, z->values, n * sizeof *values);
  own.called = kl_arena_dup(&z->g->m->arena, &step, sizeof step);
  own.shape = kl_size_known(z, own.shape);
  return kl_size_emit(z, own, n + 1, values);
}

// Steps whose outputs are their carries.
static uint32_t take_last(kl_sizing *z, uint32_t size) {
  kl_graph *g = z->g;
  const kl_instr *in = z->in;
  uint32_t dim = (uint32_t)in->dims[0], n = (uint32_t)in->more->carries, inputs = inputs_of(in);
  int64_t bound = z->shapes[0]->dims[dim];
  bool back = in->more->is_reverse;
  uint32_t *values = KL_NEW_N(&g->scratch, uint32_t, 2 * n + 1u);
  uint32_t behind = kl_graph_binary(g, KL_OP_SUBTRACT, kl_size_number(z, bound), size), at = behind;
  if (!back) at = kl_graph_with(g, KL_OP_MAXIMUM, kl_graph_with(g, KL_OP_SUBTRACT, size, 1), 0);
  for (uint32_t k = 0; k < inputs && back; k++)
    z->values[k] = kl_graph_dynamic_slice(g, kl_graph_pad(g, z->values[k], dim, bound, 0), dim, size, bound);
  uint32_t all = kl_size_keep(z), any = kl_graph_compare_with(g, KL_GT, size, 0);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t v = kl_graph_element(g, all, k), init = z->values[inputs + k];
    const kl_shape *s = kl_graph_shape(g, init);
    uint32_t last = kl_graph_reshape(g, kl_graph_dynamic_slice(g, v, dim, at, 1), s->rank, s->dims);
    values[n + k] = kl_graph_select(g, kl_graph_broadcast(g, any, s->rank, s->dims, NULL), last, init);
    values[k] = back ? kl_graph_dynamic_slice(g, kl_graph_pad(g, v, dim, 0, bound), dim, behind, bound) : v;
  }
  return kl_graph_tuple(g, 2 * n, values);
}

uint32_t kl_size_scan(kl_sizing *z) {
  uint32_t dim = (uint32_t)z->in->dims[0];
  const kl_size_step *step = kl_size_step_of(z->called->steps, z->in->called[0], (uint32_t)z->in->more->carries);
  const kl_shape *first = z->shapes[0];
  kl_extents x;
  bool same = sizes_of(z, &x);
  uint32_t size = x.of[dim];
  for (uint32_t k = 1; k < z->in->noperands && step; k++) // what a step is told has the dimensions of a slice of these
    same &= z->shapes[k]->rank + (k >= inputs_of(z->in)) == first->rank;
  if (!same) return kl_size_refuse(z, "carries of the dimensions of a slice");
  if (size == KL_WHOLE || !first->dims[dim]) return kl_size_keep(z);
  return step ? tell(z, size, step->made) : take_last(z, size);
}
