// Computations rewritten: values with the sizes of their dimensions, through tuples, calls, loops and branches.
#include "ir/rewrite/sizes/room.h"

enum { MOST_NEW = 1 << 20, MOST_REFUSED = 64, MOST_NESTED = 256 };

typedef struct sizer {
  kl_ctx *cx;
  const kiln_module *from;
  kl_live live;
  kl_graph g;
  kl_shape_map known;
  kl_size_called called;
  const kl_carried *carried;
  const bool *stepped; // computations that are steps of scans
  kl_held *held;
  uint32_t refused, depth;
  bool entry; // ENTRY itself is being rewritten
  uint64_t limit;
  bool full;
} sizer;

// --- what is there to do --------------------------------------------------------------------------------------------

static bool sets_sizes(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_SET_DIMENSION_SIZE || c->instr[i].op == KL_OP_DYNAMIC_RESHAPE ||
        (c->instr[i].op == KL_OP_GET_DIMENSION_SIZE && kl_size_is_dynamic(kl_operand(c, &c->instr[i], 0)->shape)))
      return true;
  return false;
}

static bool has_dynamic(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (kl_size_is_dynamic(c->instr[i].shape)) return true;
  return false;
}

// What passes between it and its callers.
static bool passes_dynamic(const kl_comp *c) {
  bool any = kl_size_is_dynamic(kl_root(c)->shape);
  for (uint32_t i = 0; i < c->nparams; i++) any |= kl_size_is_dynamic(c->instr[c->params[i]].shape);
  return any;
}

static const bool *steps_of(sizer *x) {
  bool *all = KL_NEW_N(&x->g.scratch, bool, x->from->ncomp + 1u);
  for (uint32_t i = 0; i < x->from->ncomp; i++)
    for (uint32_t k = 0; k < x->from->comp[i].ninstr; k++)
      if (x->from->comp[i].instr[k].op == KL_OP_SCAN) all[x->from->comp[i].instr[k].called[0]] = true;
  return all;
}

// --- one instruction ------------------------------------------------------------------------------------------------

static kl_sized rewrite(sizer *x, const kl_comp *c, const kl_sized *args);

kl_extents *kl_size_whole(kl_graph *g, size_t n) {
  kl_extents *out = KL_NEW_N(&g->scratch, kl_extents, n + 1);
  for (size_t k = 0; k < n; k++)
    for (uint32_t d = 0; d < KILN_MAX_RANK; d++) out[k].of[d] = KL_WHOLE;
  return out;
}

static bool any_sized(const kl_extents *leaf, size_t n) {
  for (size_t k = 0; leaf && k < n; k++)
    for (uint32_t d = 0; d < KILN_MAX_RANK; d++)
      if (leaf[k].of[d] != KL_WHOLE) return true;
  return false;
}

// Leaves of operands in a row, as a tuple has them: how many.
static size_t put_together(kl_sizing *z) {
  size_t at = 0;
  for (uint32_t k = 0; k < z->in->noperands; k++) {
    const kl_extents *own = z->operands[k].leaf;
    size_t n = kl_shape_leaf_count(z->shapes[k]);
    for (size_t leaf = 0; own && leaf < n; leaf++) z->out[at + leaf] = own[leaf];
    at += n;
  }
  return at;
}

static kl_sized call(sizer *x, kl_sizing *z) {
  const kl_comp *callee = &x->from->comp[z->in->called[0]];
  x->full |= x->g.e.instrs.n + callee->ninstr > x->limit || x->depth >= MOST_NESTED;
  if (x->full) return (kl_sized){0};
  bool entry = x->entry;
  x->entry = false;
  x->depth++;
  kl_sized v = rewrite(x, callee, z->operands);
  x->depth--;
  x->entry = entry;
  return v;
}

// What is started is done there: ((operands), results, contexts...), or of a copy (it, its operand, contexts...).
static bool is_started(const kl_instr *in) {
  kl_op_kind kind = kl_op_table[in->op].kind;
  return kind == KL_KIND_ASYNC || kind == KL_KIND_COPY_ASYNC;
}

static bool starts(const kl_instr *in) {
  return in->op == KL_OP_ASYNC_START || in->op == KL_OP_COPY_START;
}

// Can what it gives be taken apart as that?
static bool has_parts(const kl_sizing *z) {
  const kl_shape *s = starts(z->in) ? z->in->shape : z->shapes[0];
  bool calls = z->in->op != KL_OP_ASYNC_START || z->in->ncalled == 1;
  return calls && s->dtype == KILN_TUPLE && s->nelems >= 2;
}

static kl_sized start(sizer *x, kl_sizing *z) {
  const kl_shape *s = z->in->shape;
  bool copies = z->in->op == KL_OP_COPY_START;
  uint32_t *parts = KL_NEW_N(&x->g.scratch, uint32_t, s->nelems + 1u), n = z->in->noperands;
  kl_sized result = copies ? z->operands[0] : call(x, z);
  z->refused |= x->refused >= MOST_REFUSED; // what it calls was left half way
  if (x->full || z->refused) return (kl_sized){0};
  parts[0] = copies ? z->values[0] : kl_graph_tuple(&x->g, n, z->values);
  parts[1] = result.value;
  for (uint32_t i = 2; i < s->nelems; i++) parts[i] = kl_emit_zeros(&x->g.e, z->in, kl_size_known(z, s->elems[i]));
  size_t at = put_together(z);
  for (size_t leaf = 0; result.leaf && leaf < kl_shape_leaf_count(s->elems[1]); leaf++)
    z->out[at + leaf] = result.leaf[leaf];
  return (kl_sized){kl_graph_tuple(&x->g, s->nelems, parts), z->out};
}

// Element i of a tuple.
static kl_sized element(sizer *x, kl_sizing *z, uint32_t i) {
  size_t first = z->shapes[0]->first_leaf[i];
  for (size_t k = 0; z->operands[0].leaf && k < kl_shape_leaf_count(z->shapes[0]->elems[i]); k++)
    z->out[k] = z->operands[0].leaf[first + k];
  return (kl_sized){kl_graph_element(&x->g, z->values[0], i), z->out};
}

static kl_sized started(sizer *x, kl_sizing *z) {
  if (!has_parts(z)) return (kl_sized){kl_size_refuse(z, "a start that says what it gives, and a done of that"), NULL};
  if (starts(z->in)) return start(x, z);
  if (z->in->op == KL_OP_ASYNC_UPDATE) return z->operands[0];
  return element(x, z, z->in->op == KL_OP_ASYNC_DONE);
}

static bool is_structure(const kl_instr *in) {
  kl_op op = in->op;
  return op == KL_OP_TUPLE || op == KL_OP_GET_TUPLE_ELEMENT || op == KL_OP_FUSION || op == KL_OP_CALL ||
         is_started(in) || kl_op_table[op].kind == KL_KIND_FORWARD ||
         (op == KL_OP_COPY && in->shape->dtype == KILN_TUPLE);
}

static kl_sized structure(sizer *x, kl_sizing *z) {
  const kl_instr *in = z->in;
  const kl_sized *operands = z->operands;
  if (in->op == KL_OP_TUPLE) return put_together(z), (kl_sized){kl_size_keep(z), z->out};
  if (in->op == KL_OP_FUSION || in->op == KL_OP_CALL) return call(x, z);
  if (is_started(in)) return started(x, z);
  size_t first = in->op == KL_OP_GET_TUPLE_ELEMENT ? z->shapes[0]->first_leaf[in->number] : 0;
  for (size_t k = 0; operands[0].leaf && k < kl_shape_leaf_count(in->shape); k++)
    z->out[k] = operands[0].leaf[first + k];
  return (kl_sized){kl_size_keep(z), z->out};
}

// A dimension that is not dynamic by its type is as large as that says.
static void check_type(kl_sizing *z, kl_sized *v) {
  const kl_shape *whole = z->in->shape;
  for (size_t k = 0; v->leaf && k < kl_shape_leaf_count(whole); k++) {
    const kl_shape *s = kl_shape_leaf(whole, k);
    for (uint32_t d = 0; v->leaf && kl_shape_is_array(s) && d < s->rank; d++)
      if (v->leaf[k].of[d] != KL_WHOLE && !(s->dynamic && s->dynamic[d])) {
        kl_unsupported(z->g->cx, z->in->span,
                       "%s: expected a result whose dimension %u is dynamic (<=%lld), as %s, found %s",
                       kl_op_name(z->in->op), d, (long long)s->dims[d],
                       z->in->op == KL_OP_PARAMETER ? "that of what is given for it is" : "those of its operands are",
                       kl_shape_text(&z->g->scratch, s));
        z->refused = true;
        v->leaf = NULL;
      }
  }
}

static void refuse_parameter(kl_sizing *z) {
  kl_unsupported(z->g->cx, z->in->span,
                 "parameter %lld of ENTRY has a dynamic dimension in a module that asks for sizes: "
                 "expected an array of known dimensions, its size as a parameter of type s32[], and set-dimension-size",
                 (long long)z->in->number);
  z->refused = true;
}

// A computation that loops or branches run, with what is dynamic.
static bool is_carried(const sizer *x, uint32_t comp) {
  const kl_carried *k = &x->carried[comp];
  return k->param && (kl_size_is_dynamic(k->param) || kl_size_is_dynamic(k->result));
}

static bool runs_carried(const sizer *x, const kl_instr *in) {
  bool any = false;
  for (uint32_t k = 0; (in->op == KL_OP_WHILE || in->op == KL_OP_CONDITIONAL) && k < in->ncalled; k++)
    any |= is_carried(x, in->called[k]);
  return any;
}

static kl_sized put(sizer *x, const kl_comp *c, const kl_instr *in, const kl_sized *value, const kl_sized *args) {
  uint32_t n = in->noperands;
  kl_sized *operands = KL_NEW_N(&x->g.scratch, kl_sized, n + 1);
  const kl_shape **shapes = KL_NEW_N(&x->g.scratch, const kl_shape *, n + 1);
  kl_sizing z = {.g = &x->g,
                 .known = &x->known,
                 .in = in,
                 .shapes = shapes,
                 .operands = operands,
                 .called = &x->called,
                 .carried = x->carried,
                 .held = &x->held};
  bool any = in->op == KL_OP_SET_DIMENSION_SIZE || in->op == KL_OP_DYNAMIC_RESHAPE ||
             (in->op == KL_OP_GET_DIMENSION_SIZE && has_dynamic(c)) || is_started(in);
  z.values = KL_NEW_N(&x->g.m->arena, uint32_t, n + 1);
  if (in->op == KL_OP_PARAMETER && args) {
    kl_sized given = args[in->number];
    check_type(&z, &given);
    x->refused += z.refused;
    return given;
  }
  for (uint32_t k = 0; k < n; k++) {
    operands[k] = value[in->operands[k]];
    z.values[k] = operands[k].value;
    shapes[k] = kl_operand(c, in, k)->shape;
    any |= operands[k].leaf != NULL;
  }
  x->g.span = in->span;
  kl_instr own = *in;
  uint32_t *control = KL_NEW_N(&x->g.m->arena, uint32_t, in->ncontrol + 1);
  for (uint32_t k = 0; k < in->ncontrol; k++) control[k] = value[in->control[k]].value;
  own.control = control;
  z.in = &own;
  bool inlined = (in->op == KL_OP_FUSION || in->op == KL_OP_CALL) && passes_dynamic(&x->from->comp[in->called[0]]);
  bool controls = runs_carried(x, in);
  size_t leaves = kl_shape_leaf_count(in->shape);
  z.out = any || inlined || controls ? kl_size_whole(&x->g, leaves) : NULL;
  kl_sized made = {.leaf = z.out};
  if (in->op == KL_OP_PARAMETER && x->entry && kl_size_is_dynamic(in->shape)) refuse_parameter(&z);
  if (controls) {
    made.value = kl_size_control(&z);
  } else if (!any && !inlined) {
    bool passes = false;
    for (uint32_t k = 0; k < in->ncalled; k++)
      passes |= passes_dynamic(&x->from->comp[in->called[k]]) && in->op != KL_OP_SCAN;
    made.value =
        passes ? kl_size_refuse(&z, "arrays of known dimensions, and sizes as s32[] beside them") : kl_size_keep(&z);
  } else if (is_structure(in)) {
    made = structure(x, &z);
  } else {
    made.value = kl_size_op(&z);
  }
  if (!z.refused && !x->full) check_type(&z, &made);
  x->refused += z.refused;
  if (any && !z.refused && !x->full) made.value = kl_emit_in_layout(&x->g.e, made.value, kl_size_known(&z, in->shape));
  if (!any_sized(made.leaf, leaves)) made.leaf = NULL;
  return made;
}

static kl_sized rewrite(sizer *x, const kl_comp *c, const kl_sized *args) {
  kl_sized *value = KL_NEW_N(&x->g.scratch, kl_sized, c->ninstr + 1);
  const bool *live = x->live.instr[c - x->from->comp];
  for (uint32_t i = 0; i < c->ninstr && !x->full && x->refused < MOST_REFUSED; i++)
    if (live[i]) value[i] = put(x, c, &c->instr[i], value, args);
  return value[c->root];
}

// --- results --------------------------------------------------------------------------------------------------------

// The value with zeros beyond its sizes.
static uint32_t fill(sizer *x, kl_sizing *z, uint32_t value, const kl_shape *s, const kl_extents *leaf) {
  if (s->dtype != KILN_TUPLE) return kl_size_mask(z, value, leaf, kl_size_zero(z, s->dtype));
  uint32_t *elements = KL_NEW_N(&x->g.scratch, uint32_t, s->nelems + 1);
  for (uint32_t i = 0; i < s->nelems; i++) {
    const kl_extents *own = leaf + s->first_leaf[i];
    uint32_t e = kl_graph_element(&x->g, value, i);
    elements[i] = any_sized(own, kl_shape_leaf_count(s->elems[i])) ? fill(x, z, e, s->elems[i], own) : e;
  }
  return kl_graph_tuple(&x->g, s->nelems, elements);
}

static void rewrite_whole(sizer *x, uint32_t comp) {
  const kl_comp *c = &x->from->comp[comp];
  const kl_carried *carried = is_carried(x, comp) ? &x->carried[comp] : NULL;
  kl_sizing z = {.g = &x->g, .known = &x->known, .held = &x->held};
  kl_sized argument;
  kl_graph_begin(&x->g);
  x->g.span = c->span;
  x->held = NULL;
  x->entry = comp == x->from->entry;
  if (carried && !kl_size_begin(&z, c, carried, &argument)) return;
  kl_sized root = rewrite(x, c, carried ? &argument : NULL);
  if (x->refused || x->full) return;
  if (carried)
    root.value = kl_size_end(&z, carried, root);
  else if (root.leaf)
    root.value = fill(x, &z, root.value, kl_root(c)->shape, root.leaf);
  kl_emit_end(&x->g.e, &x->g.m->comp[comp], root.value);
}

// --- the module ----------------------------------------------------------------------------------------------------

// Does anything change in it, if it is rewritten where it is?
static bool is_rewritten(const sizer *x, uint32_t comp) {
  const kl_comp *c = &x->from->comp[comp];
  if (!x->live.comp[comp]) return false;
  if (is_carried(x, comp)) return true;
  // Steps of scans take slices at their bounds; others' callers put them in place.
  if (comp != x->from->entry && passes_dynamic(c)) return x->stepped[comp];
  bool any = has_dynamic(c) || sets_sizes(c);
  for (uint32_t i = 0; i < c->ninstr && !any; i++) any = runs_carried(x, &c->instr[i]);
  return any;
}

static void make_header(sizer *x) {
  kl_header *h = &x->g.m->header;
  kl_sizing z = {.g = &x->g, .known = &x->known, .held = &x->held};
  const kl_shape **params = KL_NEW_N(&x->g.m->arena, const kl_shape *, h->nparams + 1);
  for (uint32_t i = 0; i < h->nparams; i++) params[i] = kl_size_known(&z, h->params[i]);
  h->params = params;
  if (h->result) h->result = kl_size_known(&z, h->result);
}

kiln_status kl_module_sizes(kl_ctx *cx, const kiln_module *m, kiln_module **out) {
  *out = NULL;
  bool any = false;
  for (uint32_t i = 0; i < m->ncomp && !any; i++) any = sets_sizes(&m->comp[i]);
  if (!any) return KILN_OK;
  kl_arena scratch;
  kl_arena_init(&scratch, cx);
  kl_live live = kl_live_of(m, &scratch);
  sizer x = {.cx = cx, .from = m, .live = live, .g = {.cx = cx, .m = kl_fork(cx, m), .index = KILN_S32}};
  x.limit = kiln_module_instruction_count(m) + MOST_NEW;
  x.g.e.m = x.g.m;
  kl_arena_init(&x.g.scratch, cx);
  x.called = kl_size_make_called(&(kl_sizing){.g = &x.g, .known = &x.known, .held = &x.held}, m, &live);
  x.stepped = steps_of(&x);
  x.carried = kl_size_carried(&x.g, m, &live);
  for (uint32_t i = 0; i < m->ncomp && x.refused < MOST_REFUSED && !x.full; i++)
    if (is_rewritten(&x, i)) rewrite_whole(&x, i);
  kl_graph_put_made(&x.g, m->ncomp, x.called.behind);
  make_header(&x);
  kl_emit_free(&x.g.e);
  kl_shape_map_free(cx, &x.known);
  kl_arena_free(&x.g.scratch);
  kl_arena_free(&scratch);
  if (!x.refused && !x.full) return kl_graph_finish(&x.g, out);
  kiln_module_destroy(&x.g.m);
  if (x.refused) return KILN_E_UNSUPPORTED;
  return kl_unsupported(cx, KL_NOWHERE,
                        "calls of arrays of dynamic sizes: expected at most 2^20 instructions more without "
                        "them, nested at most 256 deep");
}
