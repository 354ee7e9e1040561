// Computations cut into several fusions: the reverse of fusing.
//
// First every piece becomes a computation behind those that are there; then a new ENTRY, behind all, calls them in the
// place of what was cut.

#include "ir/rewrite/split.h"

#include "ir/rewrite/piece.h"

#define NONE UINT32_MAX

// Results are the operands of the root tuple, or the root alone.
typedef struct cutting {
  const kl_comp *c;
  const bool *cut;
  const kl_instr *fusion; // NULL: of ENTRY itself
  uint32_t in;            // computation that is rewritten
  const kl_shape *whole;  // results as they lie in the new ENTRY
  uint32_t *made;         // by instruction: number of the piece whose result it is + 1
  VEC(kl_piece) pieces;
  VEC(uint32_t) rest; // results that the last piece makes, by number
  uint32_t *in_rest;  // by result: which of these it is, NONE: it is there without
  uint32_t last;      // number of that piece + 1; 0: none
} cutting;

typedef struct splitter {
  kl_piecer p;
  bool lies_otherwise; // a value of what is rewritten, than the old one's
} splitter;

// --- pieces -------------------------------------------------------------------------------------------------------

// `own`: what is cut, and made by this one.
typedef struct reader {
  const cutting *k;
  uint32_t own;
} reader;

static bool is_given(const void *arg, uint32_t i) {
  const reader *r = arg;
  return r->k->c->instr[i].op == KL_OP_PARAMETER || (r->k->cut[i] && i != r->own);
}

// Roots are `n` instructions: one, or the elements of a tuple.
static void add_piece(splitter *s, cutting *k, uint32_t n, const uint32_t *roots, uint32_t own, const kl_instr *named) {
  VEC_PUSH(s->p.cx, &k->pieces, kl_make_piece(&s->p, n, roots, is_given, &(reader){k, own}, "", named));
}

// A parameter, what is cut, or an element of such.
static bool passes(const cutting *k, uint32_t i) {
  const kl_instr *in = &k->c->instr[i];
  while (in->op == KL_OP_GET_TUPLE_ELEMENT && !k->cut[i]) {
    i = in->operands[0];
    in = &k->c->instr[i];
  }
  return in->op == KL_OP_PARAMETER || k->cut[i];
}

static bool has_several(const cutting *k) {
  return kl_root(k->c)->op == KL_OP_TUPLE;
}

static uint32_t result_count(const cutting *k) {
  return has_several(k) ? kl_root(k->c)->noperands : 1;
}

// The instruction that result e is, and how it lies.
static uint32_t result_of(const cutting *k, uint32_t e) {
  return has_several(k) ? kl_root(k->c)->operands[e] : k->c->root;
}

static const kl_shape *shape_of_result(const cutting *k, uint32_t e) {
  return has_several(k) ? k->whole->elems[e] : k->whole;
}

// --- how values lie in ENTRY --------------------------------------------------------------------------------------

static const kl_shape *tuple_with(splitter *s, const kl_shape *tuple, uint32_t index, const kl_shape *elem) {
  const kl_shape **elems = kl_arena_dup(&s->p.scratch, tuple->elems, tuple->nelems * sizeof *elems);
  elems[index] = elem;
  return kl_shape_tuple(s->p.m, tuple->nelems, elems);
}

// `shape` of value i, but laid out as `as` where result r is i, or an element of it.
static const kl_shape *laid_out(splitter *s, const kl_comp *c, uint32_t i, const kl_shape *shape, uint32_t r,
                                const kl_shape *as) {
  const kl_instr *in = &c->instr[r];
  if (r == i) return as;
  if (in->op != KL_OP_GET_TUPLE_ELEMENT) return shape;
  const kl_shape *tuple = i == in->operands[0] ? shape : c->instr[in->operands[0]].shape;
  return laid_out(s, c, i, shape, in->operands[0], tuple_with(s, tuple, (uint32_t)in->number, as));
}

// Of what is cut: where it is a result it lies as that, as the first of them if it is several. A scatter's arrays lie
// as they do: several threads change what would share a byte, or a tile.
static const kl_shape *shape_of_cut(splitter *s, const cutting *k, uint32_t i) {
  const kl_shape *shape = k->c->instr[i].shape;
  if (k->c->instr[i].op == KL_OP_SCATTER) return shape;
  for (uint32_t e = result_count(k); e-- > 0;)
    shape = laid_out(s, k->c, i, shape, result_of(k, e), shape_of_result(k, e));
  return shape;
}

// Of what passes.
static const kl_shape *shape_in_entry(splitter *s, const cutting *k, uint32_t i) {
  const kl_instr *in = &k->c->instr[i];
  if (k->cut[i]) return shape_of_cut(s, k, i);
  if (in->op == KL_OP_GET_TUPLE_ELEMENT) return shape_in_entry(s, k, in->operands[0])->elems[in->number];
  return k->fusion ? s->p.m->comp[k->in].instr[k->fusion->operands[in->number]].shape : in->shape;
}

// May buffers of results lie otherwise than values of ENTRY? They do as the header says.
static bool buffers_may_differ(const splitter *s) {
  const kl_shape *stated = s->p.m->header.result;
  for (size_t i = 0; stated && i < kl_shape_leaf_count(stated); i++)
    if (!kl_shape_same_in_memory(kl_shape_leaf(stated, i),
                                 kl_shape_leaf(kl_root(&s->p.m->comp[s->p.m->entry])->shape, i)))
      return true;
  return false;
}

// A scatter's arrays are copied to buffers that may lie otherwise.
static bool is_scattered(const cutting *k, uint32_t i) {
  while (k->c->instr[i].op == KL_OP_GET_TUPLE_ELEMENT && !k->cut[i]) i = k->c->instr[i].operands[0];
  return k->c->instr[i].op == KL_OP_SCATTER;
}

// Results that are not there, or lie otherwise, are the last piece's.
static void find_rest(splitter *s, cutting *k) {
  uint32_t n = result_count(k);
  bool differ = k->in == s->p.m->entry && buffers_may_differ(s);
  k->in_rest = KL_NEW_N(&s->p.scratch, uint32_t, n + 1);
  for (uint32_t e = 0; e < n; e++) {
    uint32_t r = result_of(k, e);
    const kl_shape *as = shape_of_result(k, e);
    k->in_rest[e] = NONE;
    bool passing = passes(k, r) && !(differ && is_scattered(k, r));
    if (passing && kl_shape_same_in_memory(shape_in_entry(s, k, r), as)) continue;
    for (uint32_t j = 0; j < k->rest.n && k->in_rest[e] == NONE; j++)
      if (result_of(k, k->rest.p[j]) == r && kl_shape_same_in_memory(shape_of_result(k, k->rest.p[j]), as))
        k->in_rest[e] = j;
    if (k->in_rest[e] != NONE) continue;
    k->in_rest[e] = (uint32_t)k->rest.n;
    VEC_PUSH(s->p.cx, &k->rest, e);
  }
}

// What only hands a value on says nothing of how it lies, even where its shape does; behind a cut it would.
static bool hands_on_as_it_says(const kl_comp *c, const kl_instr *in) {
  if (in->op == KL_OP_GET_TUPLE_ELEMENT)
    return kl_shape_same_in_memory(in->shape, kl_operand(c, in, 0)->shape->elems[in->number]);
  if (kl_op_table[in->op].kind == KL_KIND_FORWARD)
    return kl_shape_same_in_memory(in->shape, kl_operand(c, in, 0)->shape);
  for (uint32_t i = 0; in->op == KL_OP_TUPLE && i < in->noperands; i++)
    if (!kl_shape_same_in_memory(in->shape->elems[i], kl_operand(c, in, i)->shape)) return false;
  return true;
}

static void cut(splitter *s, cutting *k) {
  const kl_comp *c = k->c;
  for (uint32_t i = 0; i < c->ninstr; i++) s->lies_otherwise |= !hands_on_as_it_says(c, &c->instr[i]);
  kl_take_apart(&s->p, c);
  k->made = KL_NEW_N(&s->p.scratch, uint32_t, c->ninstr);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    if (!k->cut[i]) continue;
    add_piece(s, k, 1, &i, i, &c->instr[i]);
    k->made[i] = (uint32_t)k->pieces.n;
  }
  find_rest(s, k);
  if (!k->rest.n) return;
  uint32_t *roots = KL_NEW_N(&s->p.scratch, uint32_t, k->rest.n);
  for (size_t j = 0; j < k->rest.n; j++) roots[j] = result_of(k, k->rest.p[j]);
  const kl_instr *named = k->rest.n == 1 ? &c->instr[roots[0]] : kl_root(c);
  add_piece(s, k, (uint32_t)k->rest.n, roots, NONE, named);
  k->last = (uint32_t)k->pieces.n;
}

// --- ENTRY ----------------------------------------------------------------------------------------------------------

static const kl_shape *shape_of_rest(splitter *s, const cutting *k) {
  const kl_shape **elems = KL_NEW_N(&s->p.scratch, const kl_shape *, k->rest.n);
  for (size_t i = 0; i < k->rest.n; i++) elems[i] = shape_of_result(k, k->rest.p[i]);
  return k->rest.n == 1 ? elems[0] : kl_shape_tuple(s->p.m, (uint32_t)k->rest.n, elems);
}

// What passes.
static uint32_t passed(splitter *s, const cutting *k, uint32_t r, const uint32_t *value) {
  const kl_instr *in = &k->c->instr[r];
  if (in->op == KL_OP_PARAMETER || k->cut[r]) return value[r];
  return kl_emit_element(&s->p.e, passed(s, k, in->operands[0], value), (uint32_t)in->number, in->name);
}

static uint32_t result(splitter *s, const cutting *k, uint32_t e, const uint32_t *value, uint32_t last) {
  uint32_t r = result_of(k, e);
  if (k->in_rest[e] == NONE) return passed(s, k, r, value);
  return k->rest.n == 1 ? last : kl_emit_element(&s->p.e, last, k->in_rest[e], k->c->instr[r].name);
}

// A piece of a fusion has its name before its own.
static uint32_t name_of(splitter *s, const kl_instr *fusion, const kl_piece *p) {
  if (!fusion) return p->named->name;
  kl_sb text;
  kl_sb_init(&text, s->p.cx);
  kl_sb_put(&text, kl_symbol_text(&s->p.m->names, fusion->name));
  kl_sb_putc(&text, '.');
  kl_sb_put(&text, kl_symbol_text(&s->p.m->names, p->named->name));
  uint32_t name = kl_intern(&s->p.m->names, (kl_str){text.p, text.n});
  kl_sb_free(&text);
  return name;
}

// Emits what the computation is, of parameters whose values are there; returns its result.
static uint32_t emit_calls(splitter *s, cutting *k, uint32_t *value) {
  const kl_instr *root = kl_root(k->c);
  uint32_t last = 0, n = result_count(k);
  for (uint32_t i = 0; i < k->c->ninstr; i++) {
    if (!k->made[i]) continue;
    const kl_piece *p = &k->pieces.p[k->made[i] - 1];
    value[i] = kl_call_piece(&s->p, p, name_of(s, k->fusion, p), shape_of_cut(s, k, i), value);
  }
  if (k->last) {
    const kl_piece *p = &k->pieces.p[k->last - 1];
    last = kl_call_piece(&s->p, p, name_of(s, k->fusion, p), shape_of_rest(s, k), value);
  }
  if (!has_several(k)) return result(s, k, 0, value, last);
  uint32_t *elements = KL_NEW_N(&s->p.scratch, uint32_t, n + 1);
  for (uint32_t e = 0; e < n; e++) elements[e] = result(s, k, e, value, last);
  return kl_emit_tuple(&s->p, k->fusion ? k->fusion : root, n, elements);
}

static uint32_t emit_cut_entry(splitter *s, cutting *k) {
  uint32_t *value = KL_NEW_N(&s->p.scratch, uint32_t, k->c->ninstr);
  for (uint32_t i = 0; i < k->c->nparams; i++) value[k->c->params[i]] = kl_emit(&s->p.e, &k->c->instr[k->c->params[i]]);
  return emit_calls(s, k, value);
}

static uint32_t emit_cut_fusion(splitter *s, cutting *k, const uint32_t *outer) {
  uint32_t *value = KL_NEW_N(&s->p.scratch, uint32_t, k->c->ninstr);
  for (uint32_t i = 0; i < k->c->nparams; i++) value[k->c->params[i]] = outer[k->fusion->operands[i]];
  return emit_calls(s, k, value);
}

static void note_layout(splitter *s, uint32_t value, const kl_shape *as) {
  s->lies_otherwise |= !kl_shape_same_in_memory(s->p.e.instrs.p[value].shape, as);
}

// A computation as it was, but for the fusions that are cut, and for what calls such; *next: of the cuts.
static uint32_t emit_with_pieces(splitter *s, uint32_t comp, uint32_t n, const kl_split *splits, cutting *cuts,
                                 uint32_t *next) {
  const kl_comp *c = &s->p.m->comp[comp];
  uint32_t *value = KL_NEW_N(&s->p.scratch, uint32_t, c->ninstr);
  if (n == 1 && !splits[0].fusion) {
    uint32_t root = emit_cut_entry(s, &cuts[0]);
    note_layout(s, root, c->instr[c->root].shape);
    return root;
  }
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    if (*next < n && splits[*next].in == comp && splits[*next].fusion->name == in->name) {
      value[i] = emit_cut_fusion(s, &cuts[*next], value);
      note_layout(s, value[i], in->shape);
      ++*next;
      continue;
    }
    value[i] = kl_emit_again(&s->p, in, value);
  }
  return value[c->root];
}

// Does it have something that is cut, or call what is made anew?
static bool changes(const splitter *s, uint32_t comp, uint32_t n, const kl_split *splits, uint32_t next) {
  const kl_comp *c = &s->p.m->comp[comp];
  bool does = next < n && splits[next].in == comp;
  for (uint32_t i = 0; i < c->ninstr; i++)
    for (uint32_t k = 0; k < c->instr[i].ncalled; k++)
      does |= s->p.made_of[c->instr[i].called[k]] != c->instr[i].called[k];
  return does;
}

// Callees come before their callers, also among the new ones.
static void emit_all(splitter *s, const kiln_module *m, uint32_t n, const kl_split *splits, cutting *cuts) {
  uint32_t next = 0;
  for (uint32_t i = 0; i <= m->entry; i++) {
    if (!changes(s, i, n, splits, next)) continue;
    kl_emit_begin(&s->p.e);
    uint32_t root = emit_with_pieces(s, i, n, splits, cuts, &next);
    kl_put_in_place(&s->p, i, root);
  }
}

kiln_status kl_module_split(kl_ctx *cx, const kiln_module *m, uint32_t n, const kl_split *splits, kiln_module **out) {
  splitter s = {.lies_otherwise = false};
  kl_piecer_begin(&s.p, cx, m);
  cutting *cuts = KL_NEW_N(&s.p.scratch, cutting, n);
  for (uint32_t i = 0; i < n; i++) {
    const kl_split *x = &splits[i];
    const kl_shape *whole = x->fusion ? x->fusion->shape : kl_root(x->comp)->shape;
    cuts[i] = (cutting){.c = x->comp, .cut = x->cut, .fusion = x->fusion, .in = x->in, .whole = whole};
    cut(&s, &cuts[i]);
  }
  emit_all(&s, m, n, splits, cuts);
  for (uint32_t i = 0; i < n; i++) {
    VEC_FREE(cx, &cuts[i].pieces);
    VEC_FREE(cx, &cuts[i].rest);
  }
  return kl_piecer_end(&s.p, s.lies_otherwise, out);
}
