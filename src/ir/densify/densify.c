// Modules with sparse tensors as modules over arrays: parameters, ENTRY, results.
#include "ir/densify/densify.h"

#include "ir/densify/same.h"
#include "ir/text/text.h"

typedef struct densifier {
  kl_ctx *cx;
  const kiln_module *m;
  kl_graph g;
  kl_arena *arena; // of what is handed out
  kl_shape_map shapes;
  const kiln_sparse_slot *slots;
  size_t nslots;
  kl_tensor *tensors;      // by leaf of the interface; those without an encoding are empty
  uint32_t *unpack, *pack; // by leaf: computations
  uint32_t *structure;     // by leaf of a parameter: whose positions and coordinates it has
  kl_sharing sharing;
  kl_shared *shared; // by result; those that are made of values alone have leaves
  uint32_t **arrays; // by leaf of a parameter: its arrays, or it
  VEC(kl_stored_leaf) leaves;
} densifier;

static bool is_sparse(const densifier *d, size_t leaf) {
  return d->m->interface.shapes[leaf]->layout.sparse != NULL;
}

static bool shape_has(const kl_shape *s) {
  for (uint32_t i = 0; s->dtype == KILN_TUPLE && i < s->nelems; i++)
    if (shape_has(s->elems[i])) return true;
  return s->layout.sparse != NULL;
}

bool kl_has_encodings(const kiln_module *m) {
  for (size_t i = 0; i < m->interface.nparams + m->interface.nresults; i++)
    if (m->interface.shapes[i]->layout.sparse) return true;
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++)
      if (shape_has(m->comp[i].instr[k].shape)) return true;
  return false;
}

// --- tensors -------------------------------------------------------------------------------------------------------

static const kiln_sparse_slot *slot_of(const densifier *d, size_t leaf) {
  bool result = leaf >= d->m->interface.nparams;
  for (size_t i = 0; i < d->nslots; i++)
    if (d->slots[i].result == result && d->slots[i].leaf + (result ? d->m->interface.nparams : 0) == leaf)
      return &d->slots[i];
  return NULL;
}

static kiln_status check_slots(const densifier *d) {
  const kl_interface *io = &d->m->interface;
  for (size_t i = 0; i < d->nslots; i++) {
    const kiln_sparse_slot *s = &d->slots[i];
    size_t all = s->result ? io->nresults : io->nparams, leaf = s->leaf + (s->result ? io->nparams : 0);
    const char *what = s->result ? "result" : "parameter";
    if (s->leaf >= all || !is_sparse(d, leaf))
      return kl_invalid(d->cx, KL_NOWHERE, "sparse_slots: expected the number of a %s with an encoding, found %zu",
                        what, s->leaf);
    if (slot_of(d, leaf) != s)
      return kl_invalid(d->cx, KL_NOWHERE, "sparse_slots: expected %s %zu once, found it again", what, s->leaf);
  }
  return KILN_OK;
}

static kiln_status open_tensor(densifier *d, size_t leaf, const int64_t *counts) {
  bool result = leaf >= d->m->interface.nparams;
  size_t number = leaf - (result ? d->m->interface.nparams : 0);
  const char *what = kl_strf(&d->g.scratch, "%s %zu", result ? "result" : "parameter", number);
  return kl_tensor_open(d->cx, &d->g.scratch, d->m->interface.shapes[leaf], counts, what, &d->tensors[leaf]);
}

// A parameter with the structure of another one, which is open.
static kiln_status open_sharing(densifier *d, size_t leaf, size_t with) {
  kl_tensor *x = &d->tensors[leaf];
  const kl_tensor *y = &d->tensors[with];
  if (with >= d->m->interface.nparams || !y->shape || d->structure[with] != with)
    return kl_invalid(d->cx, KL_NOWHERE,
                      "sparse_slots: expected a parameter with an encoding and positions of its own, found %zu for "
                      "parameter %zu to share",
                      with, leaf);
  KL_TRY(open_tensor(d, leaf, NULL));
  if (!kl_same_structure(d->cx, x, y))
    return kl_invalid(d->cx, KL_NOWHERE,
                      "sparse_slots: expected parameters of one shape and encoding, but for their values, to share "
                      "positions, found %zu and %zu",
                      leaf, with);
  kl_tensor_take_lengths(x, y);
  d->structure[leaf] = (uint32_t)with;
  return KILN_OK;
}

static kiln_status open_parameters(densifier *d) {
  for (int sharing = 0; sharing < 2; sharing++)
    for (size_t i = 0; i < d->m->interface.nparams; i++) {
      const kiln_sparse_slot *s = slot_of(d, i);
      d->structure[i] = sharing ? d->structure[i] : (uint32_t)i;
      if (!is_sparse(d, i) || (s && s->shares) != sharing) continue;
      KL_TRY(sharing ? open_sharing(d, i, s->with) : open_tensor(d, i, s ? s->counts : NULL));
    }
  return KILN_OK;
}

static bool same_lengths(const kl_tensor *a, const kl_tensor *b) {
  return memcmp(a->lengths, b->lengths, a->nbuffers * sizeof *a->lengths) == 0;
}

static kiln_status open_result(densifier *d, size_t i) {
  size_t leaf = d->m->interface.nparams + i;
  const kiln_sparse_slot *s = slot_of(d, leaf);
  kl_tensor *x = &d->tensors[leaf];
  KL_TRY(open_tensor(d, leaf, s ? s->counts : NULL));
  if (kl_is_shared(d->cx, &d->sharing, i, &d->shared[i])) {
    const kl_tensor *of = &d->tensors[d->shared[i].structure];
    if (!s || !s->counts) kl_tensor_take_lengths(x, of);
    if (same_lengths(x, of)) return KILN_OK;
  }
  d->shared[i].n = 0;
  return kl_pack_check(d->cx, x, kl_strf(&d->g.scratch, "result %zu", i));
}

static kiln_status open_tensors(densifier *d) {
  const kl_interface *io = &d->m->interface;
  size_t n = io->nparams + io->nresults;
  d->tensors = KL_NEW_N(&d->g.scratch, kl_tensor, n + 1);
  d->unpack = KL_NEW_N(&d->g.scratch, uint32_t, n + 1);
  d->pack = KL_NEW_N(&d->g.scratch, uint32_t, n + 1);
  d->structure = KL_NEW_N(&d->g.scratch, uint32_t, n + 1);
  d->shared = KL_NEW_N(&d->g.scratch, kl_shared, n + 1);
  d->arrays = KL_NEW_N(&d->g.scratch, uint32_t *, n + 1);
  d->sharing = (kl_sharing){d->m, d->tensors, d->structure};
  KL_TRY(check_slots(d));
  KL_TRY(open_parameters(d));
  for (size_t i = 0; i < io->nresults; i++)
    if (is_sparse(d, io->nparams + i)) KL_TRY(open_result(d, i));
  return KILN_OK;
}

static uint32_t make_result(densifier *d, size_t i) {
  const char *name = kl_strf(&d->g.scratch, d->shared[i].n ? "keeping_%zu" : "packing_%zu", i);
  if (d->shared[i].n) return kl_share(&d->g, &d->sharing, i, &d->shared[i], name);
  return kl_pack_tensor(&d->g, &d->tensors[d->m->interface.nparams + i], name);
}

// Where the text has the leaf: at the parameter that it is of, or at ENTRY's root.
static kl_span place_in_text(const densifier *d, size_t leaf) {
  const kl_comp *c = &d->m->comp[d->m->entry];
  size_t end = 0;
  for (uint32_t p = 0; p < c->nparams; p++) {
    end += kl_shape_leaf_count(c->instr[c->params[p]].shape);
    if (leaf < end) return c->instr[c->params[p]].span;
  }
  return kl_root(c)->span;
}

static void make_computations(densifier *d) {
  const kl_interface *io = &d->m->interface;
  size_t n = io->nparams + io->nresults;
  for (size_t i = 0; i < n; i++)
    if (is_sparse(d, i)) kl_tensor_combiners(&d->g, &d->tensors[i]);
  for (size_t i = 0; i < n; i++) {
    if (!is_sparse(d, i)) continue;
    d->g.span = place_in_text(d, i);
    if (i < io->nparams)
      d->unpack[i] = kl_unpack(&d->g, &d->tensors[i], kl_strf(&d->g.scratch, "unpacking_%zu", i));
    else
      d->pack[i] = make_result(d, i - io->nparams);
  }
}

// --- what is there already -----------------------------------------------------------------------------------------

static const kl_shape *without(densifier *d, const kl_shape *s) {
  return kl_map_shape(&d->shapes, d->g.m, s, kl_shape_without_encoding);
}

static const kl_array *plain_literal(densifier *d, const kl_instr *in) {
  size_t n = kl_shape_leaf_count(in->shape);
  kl_array *to = kl_arena_dup(&d->g.m->arena, in->literal, n * sizeof *to);
  for (size_t i = 0; i < n; i++)
    if (to[i].shape) to[i].shape = without(d, to[i].shape);
  return to;
}

static kiln_status drop_encodings(densifier *d) {
  for (uint32_t i = 0; i < d->m->ncomp; i++) {
    const kl_comp *c = &d->m->comp[i];
    for (uint32_t k = 0; k < c->ninstr; k++) {
      const kl_instr *in = &c->instr[k];
      if (in->op == KL_OP_BITCAST && (shape_has(in->shape) || shape_has(kl_operand(c, in, 0)->shape)))
        return kl_unsupported(d->cx, in->span, "bitcast with a sparse encoding (SP)");
      kl_instr *to = &d->g.m->comp[i].instr[k];
      to->shape = without(d, in->shape);
      if (in->literal) to->literal = plain_literal(d, in);
    }
  }
  return KILN_OK;
}

// --- leaves --------------------------------------------------------------------------------------------------------

static void note_leaf(densifier *d, size_t leaf, kiln_slot_role role, size_t level) {
  size_t nparams = d->m->interface.nparams;
  kl_stored_leaf x = {(uint32_t)(leaf < nparams ? leaf : leaf - nparams), role, (uint32_t)level};
  VEC_PUSH(d->cx, &d->leaves, x);
}

static void note_array(densifier *d, size_t leaf, uint32_t i) {
  static const kiln_slot_role roles[] = {KILN_SLOT_POSITIONS, KILN_SLOT_COORDINATES, KILN_SLOT_VALUES};
  const kiln_sparse_buffer *b = &d->tensors[leaf].buffers[i];
  note_leaf(d, leaf, roles[b->role], b->level);
}

static const char *array_name(densifier *d, const char *tensor, size_t leaf, uint32_t i) {
  static const char *const roles[] = {"positions", "coordinates", "values"};
  const kiln_sparse_buffer *b = &d->tensors[leaf].buffers[i];
  if (b->role == KILN_SPARSE_VALUES) return kl_strf(&d->g.scratch, "%s_values", tensor);
  return kl_strf(&d->g.scratch, "%s_%s%zu", tensor, roles[b->role], b->level);
}

static const char *name_of(densifier *d, const kl_instr *in) {
  return kl_strf(&d->g.scratch, "%.*s", KL_FMT(kl_symbol_text(&d->g.m->names, in->name)));
}

// --- parameters ----------------------------------------------------------------------------------------------------

// The parameters of leaf `leaf`; *next is the number of the first of them. What it shares is another's.
static uint32_t *emit_parameters(densifier *d, size_t leaf, const char *name, uint32_t *next) {
  const kl_tensor *x = &d->tensors[leaf];
  uint32_t n = is_sparse(d, leaf) ? x->nbuffers : 1, *values = KL_NEW_N(&d->g.scratch, uint32_t, n);
  if (!is_sparse(d, leaf)) {
    values[0] = kl_graph_parameter(&d->g, (*next)++, d->m->interface.shapes[leaf], name);
    note_leaf(d, leaf, KILN_SLOT_ARRAY, 0);
    return values;
  }
  for (uint32_t i = d->structure[leaf] == leaf ? 0 : n - 1; i < n; i++) {
    const char *own = array_name(d, name, leaf, i);
    values[i] = kl_graph_parameter(&d->g, (*next)++, kl_tensor_array(x, d->g.m, i), own);
    note_array(d, leaf, i);
  }
  return values;
}

static void share_arrays(densifier *d) {
  for (size_t i = 0; i < d->m->interface.nparams; i++)
    for (uint32_t k = 0; d->structure[i] != i && k + 1 < d->tensors[i].nbuffers; k++)
      d->arrays[i][k] = d->arrays[d->structure[i]][k];
}

// Values of leaves become the value that they are leaves of.
static uint32_t put_together(densifier *d, const kl_shape *s, const uint32_t **leaves) {
  if (s->dtype != KILN_TUPLE) return *(*leaves)++;
  uint32_t *elements = KL_NEW_N(&d->g.scratch, uint32_t, s->nelems + 1);
  for (uint32_t i = 0; i < s->nelems; i++) elements[i] = put_together(d, s->elems[i], leaves);
  return kl_graph_tuple(&d->g, s->nelems, elements);
}

static void take_apart(densifier *d, uint32_t value, uint32_t **leaves) {
  const kl_shape *s = kl_graph_shape(&d->g, value);
  if (s->dtype != KILN_TUPLE) {
    *(*leaves)++ = value;
    return;
  }
  for (uint32_t i = 0; i < s->nelems; i++) take_apart(d, kl_graph_element(&d->g, value, i), leaves);
}

// By parameter of ENTRY, its value: all arrays first, then what is made of them.
static uint32_t *emit_operands(densifier *d) {
  const kl_comp *c = &d->m->comp[d->m->entry];
  size_t n = d->m->interface.nparams, leaf = 0;
  uint32_t **arrays = d->arrays, *leaves = KL_NEW_N(&d->g.scratch, uint32_t, n + 1);
  uint32_t *values = KL_NEW_N(&d->g.scratch, uint32_t, c->nparams + 1u), next = 0;
  for (uint32_t p = 0; p < c->nparams; p++) {
    const kl_instr *in = &c->instr[c->params[p]];
    size_t end = leaf + kl_shape_leaf_count(in->shape), first = leaf;
    for (; leaf < end; leaf++) {
      const char *name = name_of(d, in);
      if (in->shape->dtype == KILN_TUPLE) name = kl_strf(&d->g.scratch, "%s_%zu", name, leaf - first);
      arrays[leaf] = emit_parameters(d, leaf, name, &next);
    }
  }
  share_arrays(d);
  for (size_t i = 0; i < n; i++) {
    leaves[i] = arrays[i][0];
    if (!is_sparse(d, i)) continue;
    const char *name = kl_strf(&d->g.scratch, "unpack_%zu", i);
    leaves[i] = kl_graph_fusion(&d->g, d->unpack[i], d->tensors[i].nbuffers, arrays[i], name);
  }
  const uint32_t *at = leaves;
  for (uint32_t p = 0; p < c->nparams; p++) values[p] = put_together(d, c->instr[c->params[p]].shape, &at);
  return values;
}

// --- ENTRY ---------------------------------------------------------------------------------------------------------

static bool calls_fusions(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_FUSION) return true;
  return false;
}

// The result as its buffers lie, where it has no encoding.
static const kl_shape *result_shape(densifier *d, const kl_shape *s, const kl_shape *const **leaf) {
  if (s->dtype != KILN_TUPLE) return *(*leaf)++;
  const kl_shape **elements = KL_NEW_N(&d->g.scratch, const kl_shape *, s->nelems + 1);
  for (uint32_t i = 0; i < s->nelems; i++) elements[i] = result_shape(d, s->elems[i], leaf);
  return kl_shape_tuple(d->g.m, s->nelems, elements);
}

// An ENTRY without fusions is one.
static uint32_t emit_whole(densifier *d, const uint32_t *operands) {
  kl_comp *c = &d->g.m->comp[d->g.m->entry];
  const kl_shape *const *leaf = d->m->interface.dense + d->m->interface.nparams;
  uint32_t whole = kl_graph_fusion(&d->g, d->g.m->entry, c->nparams, operands, name_of(d, kl_root(c)));
  d->g.e.instrs.p[whole].shape = result_shape(d, kl_root(c)->shape, &leaf);
  return whole;
}

static uint32_t emit_parts(densifier *d, const uint32_t *operands) {
  const kl_comp *c = &d->g.m->comp[d->g.m->entry];
  uint32_t *value = KL_NEW_N(&d->g.scratch, uint32_t, c->ninstr);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    kl_instr in = c->instr[i];
    if (in.op == KL_OP_PARAMETER) {
      value[i] = kl_emit_in_layout(&d->g.e, operands[in.number], in.shape);
      continue;
    }
    uint32_t *own = KL_NEW_N(&d->g.m->arena, uint32_t, in.noperands + in.ncontrol + 1u);
    for (uint32_t k = 0; k < in.noperands; k++) own[k] = value[in.operands[k]];
    for (uint32_t k = 0; k < in.ncontrol; k++) own[in.noperands + k] = value[in.control[k]];
    in.operands = own;
    in.control = own + in.noperands;
    value[i] = kl_emit(&d->g.e, &in);
  }
  return value[c->root];
}

// --- results -------------------------------------------------------------------------------------------------------

// Of a result what its dense tensor makes, or values alone.
static uint32_t emit_packed(densifier *d, size_t i, uint32_t dense) {
  const kl_shared *of = &d->shared[i];
  const kl_tensor *x = &d->tensors[d->m->interface.nparams + i];
  const char *name = kl_strf(&d->g.scratch, of->n ? "keep_%zu" : "pack_%zu", i);
  uint32_t *operands = KL_NEW_N(&d->g.scratch, uint32_t, x->nbuffers + of->n), n = x->nbuffers - 1;
  if (!of->n) return kl_graph_fusion(&d->g, d->pack[d->m->interface.nparams + i], 1, &dense, name);
  for (uint32_t k = 0; k < n; k++) operands[k] = d->arrays[of->structure][k];
  for (uint32_t k = 0; k < of->n; k++) operands[n + k] = d->arrays[of->leaves[k]][n];
  return kl_graph_fusion(&d->g, d->pack[d->m->interface.nparams + i], n + of->n, operands, name);
}

// All arrays, as one flat tuple; a lone result without an encoding is one itself.
static uint32_t emit_results(densifier *d, uint32_t value) {
  const kl_interface *io = &d->m->interface;
  uint32_t *leaves = KL_NEW_N(&d->g.scratch, uint32_t, io->nresults + 1), *end = leaves, n = 0;
  VEC(uint32_t) all = {0};
  bool lone = kl_graph_shape(&d->g, value)->dtype != KILN_TUPLE && !is_sparse(d, io->nparams);
  take_apart(d, value, &end);
  for (size_t i = 0; i < io->nresults; i++) {
    size_t leaf = io->nparams + i;
    if (!is_sparse(d, leaf)) {
      bool array = kl_shape_is_array(io->shapes[leaf]);
      VEC_PUSH(d->cx, &all, array ? kl_emit_in_layout(&d->g.e, leaves[i], io->shapes[leaf]) : leaves[i]);
      note_leaf(d, leaf, KILN_SLOT_ARRAY, 0);
      continue;
    }
    uint32_t packed = emit_packed(d, i, leaves[i]);
    for (uint32_t k = 0; k <= d->tensors[leaf].nbuffers; k++) {
      VEC_PUSH(d->cx, &all, kl_graph_element(&d->g, packed, k));
      if (k < d->tensors[leaf].nbuffers)
        note_array(d, leaf, k);
      else
        note_leaf(d, leaf, KILN_SLOT_COUNTS, 0);
    }
  }
  n = lone ? all.p[0] : kl_graph_tuple(&d->g, (uint32_t)all.n, all.p);
  VEC_FREE(d->cx, &all);
  return n;
}

// --- the header ----------------------------------------------------------------------------------------------------

// The leaf at a path, of a shape whose first leaf has number *leaf.
static bool leaf_at(const kl_shape *s, kl_ints path, size_t *leaf) {
  for (uint32_t i = 0; i < path.n; i++) {
    if (s->dtype != KILN_TUPLE || path.p[i] < 0 || path.p[i] >= s->nelems) return false;
    *leaf += s->first_leaf[path.p[i]];
    s = s->elems[path.p[i]];
  }
  return kl_shape_is_array(s);
}

// Where a leaf without an encoding stands in the new interface.
static uint32_t place_of(const densifier *d, bool result, size_t leaf, uint32_t nparams) {
  uint32_t i = result ? nparams : 0;
  while (d->leaves.p[i].leaf != leaf) i++;
  return result ? i - nparams : i;
}

static kiln_status put_alias(densifier *d, kl_sb *b, const kl_alias *a, uint32_t nparams, bool lone) {
  const kl_comp *c = &d->m->comp[d->m->entry];
  const kl_interface *io = &d->m->interface;
  size_t parameter = 0, result = 0;
  if (a->param < 0 || a->param >= c->nparams) return KILN_OK; // the verifier has said so
  for (int64_t i = 0; i < a->param; i++) parameter += kl_shape_leaf_count(c->instr[c->params[i]].shape);
  bool arrays = leaf_at(c->instr[c->params[a->param]].shape, a->path, &parameter) &&
                leaf_at(kl_root(c)->shape, a->result, &result);
  if (!arrays || is_sparse(d, parameter) || is_sparse(d, io->nparams + result)) {
    static const char why[] = "input_output_alias of parameter %lld: tensors with an encoding do not share memory";
    if (a->must) return kl_unsupported(d->cx, KL_NOWHERE, why, (long long)a->param);
    kl_warn(d->cx, KL_NOWHERE, why, (long long)a->param);
    return KILN_OK;
  }
  kl_sb_puts(b, b->n && b->p[b->n - 1] != '{' ? ", {" : "{");
  if (!lone) kl_sb_u64(b, place_of(d, true, result, nparams));
  kl_sbf(b, "}: (%u, {}, %s)", place_of(d, false, parameter, nparams), a->must ? "must-alias" : "may-alias");
  return KILN_OK;
}

// Attributes that say nothing of the interface stay.
static kiln_status rewrite_header(densifier *d, uint32_t nparams, bool lone) {
  static const char *const gone[] = {"entry_computation_layout", "input_output_alias", "buffer_donor", "is_scheduled"};
  kiln_module *m = d->g.m;
  const kl_header *h = &d->m->header;
  kl_raw_attr *raw = KL_NEW_N(&m->arena, kl_raw_attr, m->nraw + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->nraw; i++) {
    bool keep = true;
    for (uint32_t k = 0; k < KL_COUNT(gone); k++) keep &= !kl_str_is(m->raw[i].key, gone[k]);
    if (keep) raw[n++] = m->raw[i];
  }
  m->raw = raw;
  m->nraw = n;
  kl_sb text, aliases;
  kl_sb_init(&text, d->cx);
  kl_sb_init(&aliases, d->cx);
  kiln_status st = KILN_OK;
  for (uint32_t i = 0; i < h->naliases && st == KILN_OK; i++)
    st = put_alias(d, &aliases, &h->aliases[i], nparams, lone);
  kl_put_header(&text, m);
  if (aliases.n) kl_sbf(&text, ", input_output_alias={ %s }", aliases.p);
  if (st == KILN_OK) st = kl_read_header(d->cx, m, (kl_str){text.p, text.n});
  kl_sb_free(&text);
  kl_sb_free(&aliases);
  return st;
}

// --- what is told of it --------------------------------------------------------------------------------------------

static bool has_fusion(const kiln_module *m, const char *name) {
  const kl_comp *c = &m->comp[m->entry];
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (kl_str_is(kl_symbol_text(&m->names, c->instr[i].name), name)) return true;
  return false;
}

// `made`: the new module, which lacks what nobody needs.
static const char *tell(const densifier *d, const kiln_module *made) {
  const kl_interface *io = &d->m->interface;
  kl_sb b;
  kl_sb_init(&b, d->cx);
  for (size_t i = 0; i < io->nparams + io->nresults; i++) {
    const kl_tensor *x = &d->tensors[i];
    bool result = i >= io->nparams;
    size_t leaf = result ? i - io->nparams : i;
    int64_t bytes = 0;
    if (!is_sparse(d, i)) continue;
    for (uint32_t k = 0; k < x->nbuffers; k++)
      bytes += (x->lengths[k] * kl_tensor_batches(x) * kl_info(x->types[k])->bits + 7) / 8;
    if (result && d->shared[leaf].n) {
      kl_sbf(
          &b,
          "result %zu: %s in %u arrays of %lld bytes, by keep_%zu: those of parameter %u, and its values of theirs\n",
          leaf, kl_shape_text(d->arena, x->shape), x->nbuffers, (long long)bytes, leaf, d->shared[leaf].structure);
      continue;
    }
    if (!result && !has_fusion(made, kl_strf(d->arena, "unpack_%zu", leaf))) {
      kl_sbf(&b, "parameter %zu: %s in %u arrays of %lld bytes, without a dense tensor\n", leaf,
             kl_shape_text(d->arena, x->shape), x->nbuffers, (long long)bytes);
      continue;
    }
    kl_sbf(&b, "%s %zu: %s in %u arrays of %lld bytes, %s %s_%zu, %s a dense tensor of %lld bytes\n",
           result ? "result" : "parameter", leaf, kl_shape_text(d->arena, x->shape), x->nbuffers, (long long)bytes,
           result ? "packed by" : "unpacked by", result ? "pack" : "unpack", leaf, result ? "from" : "into",
           (long long)kl_shape_dense_bytes(x->shape));
  }
  const char *text = kl_str_dup(d->arena, (kl_str){b.p, b.n}).p;
  kl_sb_free(&b);
  return text;
}

// --- the module ----------------------------------------------------------------------------------------------------

static void make_room(kiln_module *m, size_t leaves) {
  size_t room = m->ncomp + leaves + KL_COMBINERS * KILN_DTYPE_COUNT + 1;
  kl_comp *all = KL_NEW_N(&m->arena, kl_comp, room);
  memcpy(all, m->comp, m->ncomp * sizeof *all);
  m->comp = all;
}

static kiln_status rewrite(densifier *d, uint32_t *nparams) {
  kiln_module *m = d->g.m;
  KL_TRY(open_tensors(d));
  KL_TRY(drop_encodings(d));
  make_room(m, d->m->interface.nparams + d->m->interface.nresults);
  make_computations(d);
  d->g.span = kl_root(&d->m->comp[d->m->entry])->span;
  bool apart = calls_fusions(&m->comp[m->entry]);
  uint32_t name = m->comp[m->entry].name;
  m->comp[m->entry].name = kl_intern(&m->names, kl_str_of(apart ? "" : "dense"));
  kl_graph_begin(&d->g);
  uint32_t *operands = emit_operands(d);
  *nparams = (uint32_t)d->leaves.n;
  uint32_t value = apart ? emit_parts(d, operands) : emit_whole(d, operands);
  uint32_t root = emit_results(d, value);
  bool lone = kl_graph_shape(&d->g, root)->dtype != KILN_TUPLE;
  m->entry = kl_graph_end(&d->g, kl_strf(&d->g.scratch, "%.*s", KL_FMT(kl_symbol_text(&m->names, name))), root);
  return rewrite_header(d, *nparams, lone);
}

kiln_status kl_module_densify(kl_ctx *cx, const kiln_module *m, const kiln_sparse_slot *slots, size_t n,
                              kl_arena *arena, kl_stored_interface *io, kiln_module **out) {
  densifier d = {.cx = cx, .m = m, .g = {.cx = cx, .m = kl_fork(cx, m)}, .arena = arena, .slots = slots, .nslots = n};
  uint32_t nparams = 0;
  d.g.e.m = d.g.m;
  d.g.span = kl_root(&m->comp[m->entry])->span;
  kl_arena_init(&d.g.scratch, cx);
  *out = NULL;
  kiln_status st = rewrite(&d, &nparams);
  kl_emit_free(&d.g.e);
  if (st == KILN_OK)
    st = kl_graph_finish(&d.g, out);
  else
    kiln_module_destroy(&d.g.m);
  const char *told = st == KILN_OK ? tell(&d, *out) : "";
  for (size_t i = 0; d.tensors && i < m->interface.nparams + m->interface.nresults; i++) kl_tensor_close(&d.tensors[i]);
  *io = (kl_stored_interface){nparams, (uint32_t)d.leaves.n - nparams,
                              kl_arena_dup(arena, d.leaves.p, d.leaves.n * sizeof *d.leaves.p), told};
  VEC_FREE(cx, &d.leaves);
  kl_shape_map_free(cx, &d.shapes);
  kl_arena_free(&d.g.scratch);
  return st;
}

kiln_status kiln_module_densify(kiln_context *cx, const kiln_module *m, const kiln_sparse_slot *slots, size_t n,
                                kiln_module **out) {
  kl_arena arena;
  kl_stored_interface io;
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  if (n) KL_EXPECT(cx, slots);
  kl_arena_init(&arena, cx);
  kiln_status st = kl_module_densify(cx, m, slots, n, &arena, &io, out);
  kl_arena_free(&arena);
  return st;
}
