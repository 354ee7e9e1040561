// Tuples taken apart.
//
// While a computation is rewritten, a tuple made in sight is a list of values: taking an element of it costs nothing,
// and only who reads it as a whole makes a tuple instruction. In ENTRY, parameters of tuple type become one parameter
// per array, and a result of nested tuples becomes one tuple of arrays.
#include "ir/text/text.h"
#include "ir/shape.h"
#include "ir/rewrite/transform.h"

enum { NONE = UINT32_MAX }; // no instruction yet

typedef struct value value;
struct value {
  const kl_shape *shape;
  uint32_t whole;       // instruction, or NONE
  value **elems;        // one per element of the shape; NULL: not known
  const kl_instr *from; // the tuple that `whole` will be made from
  uint32_t part_of;     // instruction whose element `part` this is, or NONE
  int64_t part;
};

typedef struct flattener {
  kl_ctx *cx;
  kiln_module *m; // a fork
  kl_emitter e;
  kl_arena scratch;
  value **values;  // by old instruction
  bool *is_fixed;  // waits for others or is waited for: stays an instruction
  size_t *numbers; // ENTRY: by old parameter, the number of its first array
} flattener;

static value *new_value(flattener *f, const kl_shape *s, uint32_t whole) {
  value *v = KL_NEW(&f->scratch, value);
  *v = (value){.shape = s, .whole = whole, .part_of = NONE};
  return v;
}

static uint32_t emit_op(flattener *f, const kl_instr *like, kl_op op, const kl_shape *s, uint32_t n,
                        const uint32_t *operands, int64_t number) {
  kl_instr in = *like;
  in.op = op;
  in.shape = s;
  in.noperands = n;
  in.operands = operands;
  in.number = number;
  return kl_emit(&f->e, &in);
}

// --- values -------------------------------------------------------------------------------------------------------

// The tuple that `v` puts together again from its own elements, all of them and in order; or NONE.
static uint32_t taken_apart(flattener *f, const value *v) {
  uint32_t of = v->shape->nelems ? v->elems[0]->part_of : NONE;
  if (of == NONE || f->e.instrs.p[of].shape != v->shape) return NONE;
  for (uint32_t i = 0; i < v->shape->nelems; i++)
    if (v->elems[i]->part_of != of || v->elems[i]->part != i) return NONE;
  return of;
}

// Tuples nest at most KL_MAX_TUPLE_DEPTH deep, which bounds the recursion.
static uint32_t whole(flattener *f, value *v) {
  if (v->whole != NONE || (v->whole = taken_apart(f, v)) != NONE) return v->whole;
  uint32_t n = v->shape->nelems, *operands = KL_NEW_N(&f->m->arena, uint32_t, n);
  for (uint32_t i = 0; i < n; i++) operands[i] = whole(f, v->elems[i]);
  return v->whole = emit_op(f, v->from, KL_OP_TUPLE, v->shape, n, operands, 0);
}

static value *take_element(flattener *f, value *v, uint32_t index, const kl_instr *like) {
  if (v->elems) return v->elems[index];
  uint32_t of = whole(f, v), *operand = kl_arena_dup(&f->m->arena, &of, sizeof of);
  const kl_shape *s = v->shape->elems[index];
  value *e = new_value(f, s, emit_op(f, like, KL_OP_GET_TUPLE_ELEMENT, s, 1, operand, index));
  e->part_of = of;
  e->part = index;
  return e;
}

// The value in the layout that the text gives it. A pointer says equal; else a copy may be needed.
static value *in_layout(flattener *f, value *v, const kl_shape *as) {
  if (v->shape == as) return v;
  uint32_t from = whole(f, v), to = kl_emit_in_layout(&f->e, from, as);
  return to == from ? v : new_value(f, as, to);
}

// --- instructions -------------------------------------------------------------------------------------------------

static const uint32_t *map_indices(flattener *f, uint32_t n, const uint32_t *list) {
  uint32_t *to = KL_NEW_N(&f->m->arena, uint32_t, n);
  for (uint32_t i = 0; i < n; i++) to[i] = whole(f, f->values[list[i]]);
  return to;
}

static value *rewrite_same(flattener *f, const kl_instr *in) {
  kl_instr own = *in;
  own.operands = map_indices(f, in->noperands, in->operands);
  own.control = map_indices(f, in->ncontrol, in->control);
  return new_value(f, in->shape, kl_emit(&f->e, &own));
}

static value *rewrite_tuple(flattener *f, const kl_instr *in, bool is_fixed) {
  value *v = is_fixed ? rewrite_same(f, in) : new_value(f, in->shape, NONE);
  v->from = in;
  v->elems = KL_NEW_N(&f->scratch, value *, in->noperands);
  for (uint32_t i = 0; i < in->noperands; i++)
    v->elems[i] = in_layout(f, f->values[in->operands[i]], in->shape->elems[i]);
  return v;
}

static value *rewrite_element(flattener *f, const kl_instr *in, bool is_fixed) {
  value *of = f->values[in->operands[0]];
  if (is_fixed) return rewrite_same(f, in);
  kl_instr like = *in;
  like.ncontrol = 0;
  return in_layout(f, take_element(f, of, (uint32_t)in->number, &like), in->shape);
}

// --- attributes of parameters that become several -----------------------------------------------------------------

// Element `index` of the list {a, b, ...} that has `n` elements; an empty text if it is no such list.
static kl_str list_element(kl_str list, size_t n, size_t index) {
  if (list.n < 2 || list.p[0] != '{') return (kl_str){0};
  kl_str found = {0};
  size_t begin = 1, k = 0, depth = 0;
  bool quoted = false;
  for (size_t i = 1; i < list.n; i++) {
    char c = list.p[i];
    if (c == '"' && list.p[i - 1] != '\\') quoted = !quoted;
    if (quoted) continue;
    bool closes = c == '}' || c == ')' || c == ']', ends = depth == 0 && (c == ',' || closes);
    if (ends && k++ == index) found = (kl_str){list.p + begin, i - begin};
    if (ends) begin = i + 1 + (i + 1 < list.n && list.p[i + 1] == ' ');
    depth += c == '{' || c == '(' || c == '[' ? 1 : closes && depth ? (size_t)-1 : 0;
  }
  return k == n ? found : (kl_str){0};
}

// What an array of a tuple parameter has of the parameter's attributes: of lists its own entry, else the same.
static void split_raw(flattener *f, const kl_instr *in, size_t n, size_t index, kl_instr *out) {
  kl_raw_attr *raw = KL_NEW_N(&f->m->arena, kl_raw_attr, in->nraw);
  out->nraw = 0;
  for (uint32_t i = 0; i < in->nraw; i++) {
    kl_raw_attr a = in->raw[i];
    bool by_array = kl_str_is(a.key, "parameter_replication") ||
                    (kl_str_is(a.key, "sharding") && a.value.n > 1 && a.value.p[1] == '{');
    if (by_array) a.value = list_element(a.value, n, index);
    if (by_array && kl_str_is(a.key, "parameter_replication"))
      a.value = kl_str_of(kl_strf(&f->m->arena, "{%.*s}", KL_FMT(a.value)));
    if (a.value.n) raw[out->nraw++] = a;
  }
  out->raw = raw;
}

// --- ENTRY --------------------------------------------------------------------------------------------------------

static value *split_parameter(flattener *f, const kl_instr *in, const kl_shape *s, size_t *leaf) {
  if (s->dtype == KILN_TUPLE) {
    value *v = new_value(f, s, NONE);
    kl_instr *from = kl_arena_dup(&f->scratch, in, sizeof *in);
    from->nraw = 0;
    from->ncontrol = 0;
    v->from = from;
    v->elems = KL_NEW_N(&f->scratch, value *, s->nelems);
    for (uint32_t i = 0; i < s->nelems; i++) v->elems[i] = split_parameter(f, in, s->elems[i], leaf);
    return v;
  }
  kl_instr own = *in;
  own.shape = s;
  own.number = (int64_t)(f->numbers[in->number] + *leaf);
  own.control = map_indices(f, in->ncontrol, in->control);
  if (in->shape->dtype == KILN_TUPLE) {
    kl_sb name;
    kl_sb_init(&name, f->cx);
    kl_sb_put(&name, kl_symbol_text(&f->m->names, in->name));
    kl_sbf(&name, ".%zu", *leaf);
    own.name = kl_intern(&f->m->names, (kl_str){name.p, name.n});
    kl_sb_free(&name);
    split_raw(f, in, kl_shape_leaf_count(in->shape), *leaf, &own);
  }
  ++*leaf;
  return new_value(f, s, kl_emit(&f->e, &own));
}

typedef VEC(uint32_t) index_list;

static void list_leaves(flattener *f, value *v, const kl_instr *like, index_list *out) {
  if (v->shape->dtype != KILN_TUPLE) {
    VEC_PUSH(f->cx, out, whole(f, v));
    return;
  }
  for (uint32_t i = 0; i < v->shape->nelems; i++) list_leaves(f, take_element(f, v, i, like), like, out);
}

// A nested tuple as one of arrays. What it has of attributes goes by array already.
static uint32_t flatten_root(flattener *f, const kl_instr *root, value *v) {
  index_list leaves = {0};
  VEC(const kl_shape *) shapes = {0};
  kl_instr like = {.name = root->name, .more = &kl_no_more, .given = 1, .span = root->span};
  list_leaves(f, v, &like, &leaves);
  for (size_t i = 0; i < leaves.n; i++) VEC_PUSH(f->cx, &shapes, f->e.instrs.p[leaves.p[i]].shape);
  if (root->op == KL_OP_TUPLE) {
    like.nraw = root->nraw;
    like.raw = root->raw;
  }
  uint32_t n = (uint32_t)leaves.n;
  const kl_shape *s = kl_shape_tuple(f->m, n, shapes.p);
  VEC_FREE(f->cx, &shapes);
  uint32_t *operands = VEC_FREEZE(f->cx, &f->m->arena, &leaves);
  return emit_op(f, &like, KL_OP_TUPLE, s, n, operands, 0);
}

// --- computations -------------------------------------------------------------------------------------------------

static value *rewrite(flattener *f, const kl_comp *c, uint32_t i, bool is_entry) {
  const kl_instr *in = &c->instr[i];
  size_t leaf = 0;
  switch (in->op) {
  case KL_OP_TUPLE: return rewrite_tuple(f, in, f->is_fixed[i]);
  case KL_OP_GET_TUPLE_ELEMENT: return rewrite_element(f, in, f->is_fixed[i]);
  case KL_OP_PARAMETER: return is_entry ? split_parameter(f, in, in->shape, &leaf) : rewrite_same(f, in);
  default: return rewrite_same(f, in);
  }
}

static void flatten_comp(flattener *f, kl_comp *c, const bool *live, bool is_entry) {
  kl_arena_init(&f->scratch, f->cx);
  f->values = KL_NEW_N(&f->scratch, value *, c->ninstr);
  f->is_fixed = KL_NEW_N(&f->scratch, bool, c->ninstr);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    f->is_fixed[i] |= c->instr[i].ncontrol > 0;
    for (uint32_t k = 0; k < c->instr[i].ncontrol; k++) f->is_fixed[c->instr[i].control[k]] = true;
  }
  kl_emit_begin(&f->e);
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (live[i]) f->values[i] = rewrite(f, c, i, is_entry);
  const kl_instr *root = kl_root(c);
  value *v = f->values[c->root];
  kl_emit_end(&f->e, c, is_entry && root->shape->depth > 1 ? flatten_root(f, root, v) : whole(f, v));
  kl_arena_free(&f->scratch);
}

// --- the header ---------------------------------------------------------------------------------------------------

// The number of the array that a path leads to; false if it leads elsewhere.
static bool leaf_of_path(const kl_shape *s, kl_ints path, size_t *leaf) {
  *leaf = 0;
  for (uint32_t i = 0; i < path.n; i++) {
    if (path.p[i] < 0 || path.p[i] >= s->nelems) return false;
    *leaf += s->first_leaf[path.p[i]];
    s = s->elems[path.p[i]];
  }
  return s->dtype != KILN_TUPLE;
}

typedef struct interface {
  const kl_comp *entry; // as it was
  const kl_shape *result;
  const size_t *numbers;
  bool nested_result;
} interface;

static bool put_param(kl_sb *b, const interface *io, int64_t param, kl_ints path) {
  size_t leaf;
  if (param < 0 || param >= io->entry->nparams) return false;
  if (!leaf_of_path(io->entry->instr[io->entry->params[param]].shape, path, &leaf)) return false;
  kl_sbf(b, "(%zu, {}", io->numbers[param] + leaf);
  return true;
}

static bool put_result_path(kl_sb *b, const interface *io, kl_ints path) {
  size_t leaf;
  kl_sb_putc(b, '{');
  if (io->nested_result) {
    if (!leaf_of_path(io->result, path, &leaf)) return false;
    kl_sbf(b, "%zu", leaf);
  }
  for (uint32_t i = 0; !io->nested_result && i < path.n; i++) kl_sbf(b, "%s%lld", i ? ", " : "", (long long)path.p[i]);
  kl_sb_puts(b, "}: ");
  return true;
}

static bool put_aliases(kl_sb *b, const interface *io, const kl_header *h) {
  for (uint32_t i = 0; i < h->naliases; i++) {
    const kl_alias *a = &h->aliases[i];
    if (i) kl_sb_puts(b, ", ");
    if (!put_result_path(b, io, a->result) || !put_param(b, io, a->param, a->path)) return false;
    kl_sb_puts(b, a->must ? ", must-alias)" : ", may-alias)");
  }
  return true;
}

static bool put_donors(kl_sb *b, const interface *io, const kl_header *h) {
  for (uint32_t i = 0; i < h->ndonors; i++) {
    if (i) kl_sb_puts(b, ", ");
    if (!put_param(b, io, h->donors[i].param, h->donors[i].path)) return false;
    kl_sb_putc(b, ')');
  }
  return true;
}

// Arrays in the layouts that the header gives; commas as in all text that is kept.
static void put_leaves(kl_sb *b, const kl_shape *s, bool *first) {
  for (uint32_t i = 0; i < s->nelems; i++) put_leaves(b, s->elems[i], first);
  if (s->dtype == KILN_TUPLE) return;
  kl_sb one;
  kl_sb_init(&one, b->cx);
  kl_shape_print(&one, s, true);
  if (!*first) kl_sb_puts(b, ", ");
  for (size_t i = 0; i < one.n; i++) {
    kl_sb_putc(b, one.p[i]);
    if (one.p[i] == ',' && one.p[i + 1] != ' ') kl_sb_putc(b, ' ');
  }
  kl_sb_free(&one);
  *first = false;
}

static bool put_layout(kl_sb *b, const interface *io, const kl_header *h) {
  bool first = true, is_tuple = h->result->dtype == KILN_TUPLE;
  kl_sb_putc(b, '(');
  for (uint32_t i = 0; i < h->nparams; i++) put_leaves(b, h->params[i], &first);
  kl_sb_puts(b, is_tuple ? ")->(" : ")->");
  first = true;
  put_leaves(b, h->result, &first);
  if (is_tuple) kl_sb_putc(b, ')');
  return true;
}

// A list with an entry for each parameter gets one for each array. One that has a single entry stays, and so does one
// for the elements of an only parameter.
static bool put_by_param(kl_sb *b, const interface *io, kl_str list) {
  size_t n = io->entry->nparams, all = io->numbers[n];
  bool same = list.p[0] != '{' || list_element(list, 1, 0).n || (n == 1 && list_element(list, all, 0).n);
  if (same) kl_sb_put(b, list);
  for (size_t i = 0; !same && i < n; i++) {
    kl_str one = list_element(list, n, i);
    if (!one.n) return false;
    for (size_t k = io->numbers[i]; k < io->numbers[i + 1]; k++) {
      kl_sb_puts(b, k ? ", " : "{");
      kl_sb_put(b, one);
    }
  }
  if (!same) kl_sb_putc(b, '}');
  return true;
}

// The attribute's new text behind `b`; false if it cannot follow.
static bool put_attr(kl_sb *b, const interface *io, const kl_header *h, const kl_raw_attr *a) {
  bool aliases = kl_str_is(a->key, "input_output_alias"), donors = kl_str_is(a->key, "buffer_donor");
  bool layout = kl_str_is(a->key, "entry_computation_layout") && h->result;
  if (kl_str_is(a->key, "allow_spmd_sharding_propagation_to_parameters")) return put_by_param(b, io, a->value);
  if (!aliases && !donors && !layout) {
    kl_sb_put(b, a->value);
    return true;
  }
  kl_sb_putc(b, '{');
  bool ok = aliases ? put_aliases(b, io, h) : donors ? put_donors(b, io, h) : put_layout(b, io, h);
  kl_sb_putc(b, '}');
  return ok;
}

static kiln_status rewrite_header(flattener *f, const interface *io) {
  kl_raw_attr *raw = KL_NEW_N(&f->m->arena, kl_raw_attr, f->m->nraw);
  for (uint32_t i = 0; i < f->m->nraw; i++) {
    kl_sb b;
    kl_sb_init(&b, f->cx);
    bool ok = put_attr(&b, io, &f->m->header, &f->m->raw[i]);
    raw[i] = (kl_raw_attr){f->m->raw[i].key, kl_str_dup(&f->m->arena, (kl_str){b.p, b.n})};
    kl_sb_free(&b);
    if (!ok)
      return kl_unsupported(f->cx, KL_NOWHERE, "flatten: expected the attribute '%.*s' to name arrays, found '%.*s'",
                            KL_FMT(raw[i].key), (int)(f->m->raw[i].value.n < 200 ? f->m->raw[i].value.n : 200),
                            f->m->raw[i].value.p);
  }
  f->m->raw = raw;
  kl_sb text;
  kl_sb_init(&text, f->cx);
  kl_put_header(&text, f->m);
  kiln_status s = kl_read_header(f->cx, f->m, (kl_str){text.p, text.n});
  kl_sb_free(&text);
  return s == KILN_OK || s == KILN_E_MEMORY ? s : KILN_E_INTERNAL;
}

// --- the module ---------------------------------------------------------------------------------------------------

// By parameter, the number of its first array, and behind the last one their sum.
static size_t *number_arrays(const kl_comp *entry, kl_arena *arena) {
  size_t *numbers = KL_NEW_N(arena, size_t, entry->nparams + 1);
  for (uint32_t i = 0; i < entry->nparams; i++)
    numbers[i + 1] = numbers[i] + kl_shape_leaf_count(entry->instr[entry->params[i]].shape);
  return numbers;
}

static bool has_tuples(const interface *io) {
  bool has = io->nested_result;
  for (uint32_t i = 0; i < io->entry->nparams; i++)
    has |= io->entry->instr[io->entry->params[i]].shape->dtype == KILN_TUPLE;
  return has;
}

kiln_status kiln_module_flatten_tuples(kiln_context *cx, const kiln_module *m, kiln_module **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  flattener f = {.cx = cx, .m = kl_fork(cx, m)};
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_live live = kl_live_of(m, &arena);
  const kl_comp *entry = &m->comp[m->entry];
  f.numbers = number_arrays(entry, &arena);
  f.e.m = f.m;
  interface io = {entry, kl_root(entry)->shape, f.numbers, kl_root(entry)->shape->depth > 1};
  kiln_status s = has_tuples(&io) ? rewrite_header(&f, &io) : KILN_OK;
  for (uint32_t i = 0; s == KILN_OK && i < m->ncomp; i++)
    if (live.comp[i]) flatten_comp(&f, &f.m->comp[i], live.instr[i], i == m->entry);
  kl_emit_free(&f.e);
  kl_arena_free(&arena);
  if (s == KILN_OK) return kl_finish_fork(cx, f.m, out);
  kiln_module_destroy(&f.m);
  return s;
}
