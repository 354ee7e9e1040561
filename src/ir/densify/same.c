// Results that are made value by value of parameters that share one structure.
//
// The graph is walked from a result to what it is made of, through calls. Where it is elementwise all the way to sparse
// parameters of one structure and to constants, and makes the implicit value of implicit values, the result's values
// are the same function of values, and its positions and coordinates are theirs.
#include "ir/densify/same.h"
#include "ir/sparse/text/text.h"

#include "ir/densify/fold.h"

enum { MOST_NODES = 256 };

typedef struct frame {
  const kl_comp *c;
  const struct frame *caller; // NULL: of ENTRY
  const kl_instr *call;
} frame;

// A value that is elementwise: what it is where all parameters are implicit.
typedef struct node {
  const frame *f;
  uint32_t instr, leaf;
  bool uniform; // made of constants alone
  uint64_t bits[KL_VALUE_WORDS];
  uint32_t value; // of all values, once written
} node;

typedef struct walker {
  const kl_sharing *s;
  kl_arena *arena;
  kl_shared *of;
  bool any; // of->structure is set
  uint32_t nframes, nnodes;
  frame *frames;
  node *nodes;
  kl_graph *g; // writes; NULL: looks
  const int64_t *dims;
  const uint32_t *values; // by number among of->leaves
} walker;

static bool walk(walker *w, const frame *f, uint32_t instr, uint32_t leaf, node *out);

static const frame *enter(walker *w, const frame *caller, const kl_instr *call) {
  for (uint32_t i = 0; i < w->nframes; i++)
    if (w->frames[i].caller == caller && w->frames[i].call == call) return &w->frames[i];
  if (w->nframes == MOST_NODES) return NULL;
  w->frames[w->nframes] = (frame){&w->s->m->comp[call->called[0]], caller, call};
  return &w->frames[w->nframes++];
}

// --- leaves
// -----------------------------------------------------------------------------------------------------------

static bool parameter_leaf(walker *w, size_t leaf, node *out) {
  const kl_tensor *x = &w->s->tensors[leaf];
  uint32_t i = 0;
  if (!x->shape || kl_tensor_repeats(x)) return false;
  if (w->any && w->of->structure != w->s->structure[leaf]) return false;
  w->any = true;
  w->of->structure = w->s->structure[leaf];
  while (i < w->of->n && w->of->leaves[i] != leaf) i++;
  if (i == KL_MOST_SHARING) return false;
  if (i == w->of->n) w->of->leaves[w->of->n++] = (uint32_t)leaf;
  memcpy(out->bits, x->implicit, sizeof out->bits);
  if (w->g) out->value = w->values[i];
  return true;
}

static bool constant(walker *w, const kl_instr *in, node *out) {
  if (!kl_shape_is_array(in->shape) || !in->literal || !in->shape->count || !kl_array_is_splat(in->literal))
    return false;
  kl_dtype t = in->shape->dtype;
  for (int part = 0; part < (kl_is_complex(t) ? 2 : 1); part++)
    out->bits[part] = kl_element_get(t, in->literal->data, 0, part);
  out->uniform = true;
  if (w->g) out->value = kl_graph_bits(w->g, t, out->bits, 1, w->dims);
  return true;
}

// --- ops
// --------------------------------------------------------------------------------------------------------------

static bool elementwise(walker *w, const frame *f, const kl_instr *in, node *out) {
  uint64_t bits[3];
  uint32_t values[3];
  node x = {0};
  if (in->noperands > 3) return false;
  out->uniform = true;
  for (uint32_t i = 0; i < in->noperands; i++) {
    if (!walk(w, f, in->operands[i], 0, &x)) return false;
    bits[i] = x.bits[0];
    values[i] = x.value;
    out->uniform &= x.uniform;
  }
  if (!kl_fold_scalar(in, kl_operand(f->c, in, in->noperands - 1)->shape->dtype, bits, &out->bits[0])) return false;
  out->bits[1] = 0;
  if (w->g) out->value = kl_graph_like(w->g, in, values, w->dims);
  return true;
}

static uint32_t first_leaf(const kl_comp *c, int64_t parameter) {
  uint32_t n = 0;
  for (int64_t i = 0; i < parameter; i++) n += (uint32_t)kl_shape_leaf_count(c->instr[c->params[i]].shape);
  return n;
}

// What has one operand, and the value of its leaf.
static bool look_through(walker *w, const frame *f, const kl_instr *in, uint32_t leaf, node *out, bool *through) {
  uint32_t i;
  const frame *inner;
  *through = true;
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_PARAMETER:
    if (!f->caller) return parameter_leaf(w, first_leaf(f->c, in->number) + leaf, out);
    return walk(w, f->caller, f->call->operands[in->number], leaf, out);
  case KL_KIND_GTE:
    return walk(w, f, in->operands[0], kl_operand(f->c, in, 0)->shape->first_leaf[in->number] + leaf, out);
  case KL_KIND_TUPLE:
    i = kl_shape_element_of_leaf(in->shape, leaf);
    return walk(w, f, in->operands[i], leaf - in->shape->first_leaf[i], out);
  case KL_KIND_CALL: inner = enter(w, f, in); return inner && walk(w, inner, inner->c->root, leaf, out);
  case KL_KIND_FORWARD: return walk(w, f, in->operands[0], leaf, out);
  case KL_KIND_BROADCAST:
  case KL_KIND_RESHAPE:
  case KL_KIND_TRANSPOSE: return walk(w, f, in->operands[0], leaf, out) && out->uniform;
  default: *through = false; return false;
  }
}

static bool walk(walker *w, const frame *f, uint32_t instr, uint32_t leaf, node *out) {
  const kl_instr *in = &f->c->instr[instr];
  bool through, ok;
  for (uint32_t i = 0; i < w->nnodes; i++)
    if (w->nodes[i].f == f && w->nodes[i].instr == instr && w->nodes[i].leaf == leaf) {
      *out = w->nodes[i];
      return true;
    }
  if (w->nnodes == MOST_NODES) return false;
  *out = (node){0};
  ok = look_through(w, f, in, leaf, out, &through);
  if (!through)
    ok = in->op == KL_OP_CONSTANT ? constant(w, in, out) : kl_op_is_elementwise(in->op) && elementwise(w, f, in, out);
  if (!ok || w->nnodes == MOST_NODES) return false;
  out->f = f;
  out->instr = instr;
  out->leaf = leaf;
  w->nodes[w->nnodes++] = *out;
  return true;
}

static bool walk_result(walker *w, size_t result, node *out) {
  const kl_comp *c = &w->s->m->comp[w->s->m->entry];
  w->frames = KL_NEW_N(w->arena, frame, MOST_NODES);
  w->nodes = KL_NEW_N(w->arena, node, MOST_NODES);
  w->frames[w->nframes++] = (frame){c, NULL, NULL};
  return walk(w, &w->frames[0], c->root, (uint32_t)result, out);
}

// --- is it so
// ---------------------------------------------------------------------------------------------------------

bool kl_same_structure(kl_ctx *cx, const kl_tensor *a, const kl_tensor *b) {
  kl_encoding x = *a->s.e, y = *b->s.e;
  kl_sb s, t;
  kl_sb_init(&s, cx);
  kl_sb_init(&t, cx);
  x.explicit_value = x.implicit_value = y.explicit_value = y.implicit_value = (kl_number){0};
  kl_encoding_print_fields(&s, &x);
  kl_encoding_print_fields(&t, &y);
  bool same = s.n == t.n && (!s.n || memcmp(s.p, t.p, s.n) == 0);
  kl_sb_free(&s);
  kl_sb_free(&t);
  return same && kl_shape_same_dims(a->shape, b->shape);
}

static bool same_bits(kl_dtype t, const uint64_t *a, const uint64_t *b) {
  if (kl_is_float(t) && kl_float_is_nan(t, a[0])) return kl_float_is_nan(t, b[0]);
  return a[0] == b[0] && a[1] == b[1];
}

bool kl_is_shared(kl_ctx *cx, const kl_sharing *s, size_t result, kl_shared *out) {
  const kl_tensor *r = &s->tensors[s->m->interface.nparams + result], *x;
  kl_arena arena;
  node made;
  *out = (kl_shared){0};
  kl_arena_init(&arena, cx);
  walker w = {.s = s, .arena = &arena, .of = out};
  bool is = !r->has_explicit && walk_result(&w, result, &made) && w.any;
  kl_arena_free(&arena);
  if (!is) return false;
  x = &s->tensors[out->structure];
  return kl_tensor_batches(x) > 0 && kl_same_structure(cx, x, r) && same_bits(r->shape->dtype, made.bits, r->implicit);
}

// --- making it
// --------------------------------------------------------------------------------------------------------

// Elements up to `n` of each batch; zeros behind.
static uint32_t cut(kl_graph *g, const kl_tensor *x, uint32_t array, uint32_t n, int64_t length) {
  int64_t dims[] = {kl_tensor_batches(x), length};
  uint32_t a = kl_graph_reshape(g, array, 2, dims), at = kl_graph_iota(g, g->index, 2, dims, 1);
  uint64_t zero[KL_VALUE_WORDS] = {0};
  n = kl_graph_broadcast(g, n, 2, dims, (int64_t[]){0});
  uint32_t none = kl_graph_bits(g, kl_graph_shape(g, a)->dtype, zero, 2, dims);
  return kl_graph_flat(g, kl_graph_select(g, kl_graph_compare(g, KL_LT, at, n), a, none));
}

uint32_t kl_share(kl_graph *g, const kl_sharing *s, size_t result, const kl_shared *of, const char *name) {
  const kl_tensor *x = &s->tensors[of->structure], *r = &s->tensors[s->m->interface.nparams + result];
  uint32_t n = r->nbuffers, *arrays = KL_NEW_N(&g->scratch, uint32_t, n + 1), values[KL_MOST_SHARING];
  uint32_t *need = KL_NEW_N(&g->scratch, uint32_t, n);
  const kl_shape *of_values = kl_tensor_array(r, g->m, n - 1);
  node made;
  g->index = x->narrow ? KILN_S32 : KILN_S64;
  kl_graph_begin(g);
  for (uint32_t i = 0; i + 1 < n; i++) arrays[i] = kl_graph_parameter(g, i, kl_tensor_array(x, g->m, i), "structure");
  for (uint32_t i = 0; i < of->n; i++) {
    const kl_tensor *v = &s->tensors[of->leaves[i]];
    values[i] = kl_graph_parameter(g, n - 1 + i, kl_tensor_array(v, g->m, v->nbuffers - 1), "values");
  }
  kl_shared again = {0};
  walker w = {.s = s, .arena = &g->scratch, .of = &again, .g = g, .dims = of_values->dims, .values = values};
  walk_result(&w, result, &made); // as it was looked at
  arrays[n - 1] = made.value;
  kl_stored_needs(g, x, arrays, need);
  for (uint32_t i = 0; i < n; i++) arrays[i] = cut(g, x, arrays[i], need[i], r->lengths[i]);
  arrays[n] = kl_put_counts(g, r, need, UINT32_MAX);
  return kl_graph_end(g, name, kl_graph_tuple(g, n + 1, arrays));
}
