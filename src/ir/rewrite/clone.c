// Copies of modules. A clone owns everything; shapes are interned again, so that equal shapes stay one pointer.
#include "ir/shape.h"
#include "ir/rewrite/transform.h"

typedef struct cloner {
  kl_ctx *cx;
  const kiln_module *from;
  kiln_module *to;
  kl_arena *arena; // of `to`
  uint32_t *comps; // new index by old one
  kl_shape_map shapes;
  bool no_memory;
} cloner;

// --- shapes -------------------------------------------------------------------------------------------------------

static struct kl_shape_slot *slot_of(const kl_shape_map *map, const kl_shape *s) {
  size_t i = (size_t)(((uintptr_t)s >> 4) * 0x9e3779b97f4a7c15u >> 20) & (map->nslots - 1);
  while (map->slots[i].from && map->slots[i].from != s) i = (i + 1) & (map->nslots - 1);
  return &map->slots[i];
}

static void grow_map(kl_ctx *cx, kl_shape_map *map) {
  kl_shape_map old = *map;
  map->nslots = old.nslots ? old.nslots * 2 : 64;
  map->slots = kl_alloc(cx, map->nslots * sizeof *map->slots);
  for (size_t i = 0; i < old.nslots; i++)
    if (old.slots[i].from) *slot_of(map, old.slots[i].from) = old.slots[i];
  kl_free(cx, old.slots, old.nslots * sizeof *old.slots);
}

// Shapes nest at most KL_MAX_TUPLE_DEPTH deep, which bounds the recursion.
const kl_shape *kl_map_shape(kl_shape_map *map, kiln_module *m, const kl_shape *s,
                             const kl_shape *make(kiln_module *, const kl_shape *)) {
  if (!s) return NULL;
  if (map->n * 2 >= map->nslots) grow_map(m->cx, map);
  if (slot_of(map, s)->from) return slot_of(map, s)->to;
  const kl_shape *to;
  if (s->dtype == KILN_TUPLE) {
    const kl_shape **elems = kl_alloc(m->cx, s->nelems * sizeof *elems);
    for (uint32_t i = 0; i < s->nelems; i++) elems[i] = kl_map_shape(map, m, s->elems[i], make);
    kl_shape own = *s;
    own.elems = elems;
    to = kl_shape_intern(m, &own);
    kl_free(m->cx, elems, s->nelems * sizeof *elems);
  } else {
    to = make(m, s);
  }
  if (map->n * 2 >= map->nslots) grow_map(m->cx, map);
  *slot_of(map, s) = (struct kl_shape_slot){s, to};
  map->n++;
  return to;
}

void kl_shape_map_free(kl_ctx *cx, kl_shape_map *map) {
  kl_free(cx, map->slots, map->nslots * sizeof *map->slots);
  *map = (kl_shape_map){0};
}

static const kl_shape *clone_shape(cloner *c, const kl_shape *s) {
  return kl_map_shape(&c->shapes, c->to, s, kl_shape_intern);
}

// --- parts of instructions ----------------------------------------------------------------------------------------

static uint32_t clone_symbol(cloner *c, uint32_t symbol) {
  return kl_intern(&c->to->names, kl_symbol_text(&c->from->names, symbol));
}

static kl_str clone_str(cloner *c, kl_str s) {
  return s.p ? kl_str_dup(c->arena, s) : s;
}

static kl_ints clone_ints(cloner *c, kl_ints v) {
  return (kl_ints){v.n, v.n ? kl_arena_dup(c->arena, v.p, v.n * sizeof(int64_t)) : NULL};
}

static kl_span clone_span(cloner *c, kl_span s) {
  s.src = s.src ? c->to->source : NULL;
  return s;
}

static const kl_raw_attr *clone_raw(cloner *c, uint32_t n, const kl_raw_attr *raw) {
  kl_raw_attr *to = n ? KL_NEW_N(c->arena, kl_raw_attr, n) : NULL;
  for (uint32_t i = 0; i < n; i++) to[i] = (kl_raw_attr){clone_str(c, raw[i].key), clone_str(c, raw[i].value)};
  return to;
}

static const kl_conv_dims *clone_conv(cloner *c, const kl_conv_dims *from) {
  if (!from) return NULL;
  kl_conv_dims *to = kl_arena_dup(c->arena, from, sizeof *from);
  to->input = kl_arena_dup(c->arena, from->input, from->n * sizeof(int64_t));
  to->kernel = kl_arena_dup(c->arena, from->kernel, from->n * sizeof(int64_t));
  to->result = kl_arena_dup(c->arena, from->result, from->n * sizeof(int64_t));
  return to;
}

// The rows of the op say what kl_more and the instruction hold; flat members came over with the struct.
static void clone_value(cloner *c, const kl_attr_row *row, kl_instr *in) {
  void *at = (void *)kl_attr_at(in, row);
  kl_more *more = (kl_more *)in->more;
  switch (row->type) {
  case KL_ATTR_DIMS: in->dims = kl_arena_dup(c->arena, in->dims, in->ndims * sizeof *in->dims); break;
  case KL_ATTR_SLICES: in->slice = kl_arena_dup(c->arena, in->slice, in->ndims * sizeof *in->slice); break;
  case KL_ATTR_PADDING: in->pad = kl_arena_dup(c->arena, in->pad, in->ndims * sizeof *in->pad); break;
  case KL_ATTR_INTS:
  case KL_ATTR_NAMES:
  case KL_ATTR_PAIRS: *(kl_ints *)at = clone_ints(c, *(kl_ints *)at); break;
  case KL_ATTR_QUOTED: *(kl_str *)at = clone_str(c, *(kl_str *)at); break;
  case KL_ATTR_WINDOW: more->window = kl_arena_dup(c->arena, more->window, more->nwindow * sizeof *more->window); break;
  case KL_ATTR_DIM_LABELS: *(const kl_conv_dims **)at = clone_conv(c, *(const kl_conv_dims **)at); break;
  case KL_ATTR_GROUPS:
    more->groups.text = clone_str(c, more->groups.text);
    more->groups.ids = clone_ints(c, more->groups.ids);
    break;
  case KL_ATTR_SHAPE: *(const kl_shape **)at = clone_shape(c, *(const kl_shape **)at); break;
  case KL_ATTR_INT:
  case KL_ATTR_BITS:
  case KL_ATTR_BOOL:
  case KL_ATTR_REAL:
  case KL_ATTR_NAME:
  case KL_ATTR_COMP:
  case KL_ATTR_COMPS: break;
  }
}

static const kl_array *clone_literal(cloner *c, const kl_shape *s, const kl_array *from) {
  size_t n = kl_shape_leaf_count(s);
  kl_array *to = KL_NEW_N(c->arena, kl_array, n);
  for (size_t i = 0; i < n; i++) {
    size_t size = (size_t)from[i].shape->count * kl_info(from[i].shape->dtype)->bytes;
    to[i] = (kl_array){clone_shape(c, from[i].shape), kl_arena_try_alloc(c->arena, size)};
    if (!to[i].data) {
      kl_out_of_memory(c->cx, size, "a copy of a constant");
      c->no_memory = true;
      return NULL;
    }
    if (size) memcpy(to[i].data, from[i].data, size);
  }
  return to;
}

// --- instructions -------------------------------------------------------------------------------------------------

// Indices as `where` renumbers them, NULL: as they are; UINT32_MAX: left out.
static const uint32_t *clone_indices(cloner *c, uint32_t *n, const uint32_t *list, const uint32_t *where) {
  uint32_t *to = *n ? KL_NEW_N(c->arena, uint32_t, *n) : NULL, k = 0;
  for (uint32_t i = 0; i < *n; i++) {
    uint32_t index = where ? where[list[i]] : list[i];
    if (index != UINT32_MAX) to[k++] = index;
  }
  *n = k;
  return to;
}

static void clone_instr(cloner *c, const kl_instr *from, const uint32_t *where, kl_instr *to) {
  *to = *from;
  to->name = clone_symbol(c, from->name);
  to->opcode_text = clone_symbol(c, from->opcode_text);
  to->shape = clone_shape(c, from->shape);
  to->operands = clone_indices(c, &to->noperands, from->operands, where);
  to->control = clone_indices(c, &to->ncontrol, from->control, where);
  to->called = clone_indices(c, &to->ncalled, from->called, c->comps);
  to->more = from->more == &kl_no_more ? &kl_no_more : kl_arena_dup(c->arena, from->more, sizeof *from->more);
  kl_attr_list rows = kl_instr_attrs(from);
  for (uint32_t i = 0; i < rows.n; i++) clone_value(c, &rows.p[i], to);
  to->raw_operands = clone_str(c, from->raw_operands);
  to->literal = from->literal ? clone_literal(c, from->shape, from->literal) : NULL;
  to->raw = clone_raw(c, from->nraw, from->raw);
  to->span = clone_span(c, from->span);
}

// --- computations -------------------------------------------------------------------------------------------------

// New index of each instruction, UINT32_MAX where it is left out; NULL if all are kept. In scratch memory.
static uint32_t *renumber(const kl_comp *from, const bool *live, kl_arena *scratch, uint32_t *n) {
  *n = from->ninstr;
  if (!live) return NULL;
  uint32_t *where = KL_NEW_N(scratch, uint32_t, from->ninstr);
  *n = 0;
  for (uint32_t i = 0; i < from->ninstr; i++) where[i] = live[i] ? (*n)++ : UINT32_MAX;
  return where;
}

static void clone_comp(cloner *c, const kl_comp *from, const bool *live, kl_arena *scratch, kl_comp *to) {
  const uint32_t *where = renumber(from, live, scratch, &to->ninstr);
  to->name = clone_symbol(c, from->name);
  to->instr = KL_NEW_N(c->arena, kl_instr, to->ninstr);
  for (uint32_t i = 0; i < from->ninstr && !c->no_memory; i++)
    if (!live || live[i]) clone_instr(c, &from->instr[i], where, &to->instr[where ? where[i] : i]);
  to->root = where ? where[from->root] : from->root;
  to->nparams = from->nparams;
  to->params = clone_indices(c, &to->nparams, from->params, where);
  to->nraw = from->nraw;
  to->raw = clone_raw(c, from->nraw, from->raw);
  to->span = clone_span(c, from->span);
}

// --- modules ------------------------------------------------------------------------------------------------------

static void clone_header(cloner *c) {
  const kl_header *from = &c->from->header;
  kl_header *to = &c->to->header;
  *to = *from;
  const kl_shape **params = from->nparams ? KL_NEW_N(c->arena, const kl_shape *, from->nparams) : NULL;
  for (uint32_t i = 0; i < from->nparams; i++) params[i] = clone_shape(c, from->params[i]);
  kl_alias *aliases = KL_NEW_N(c->arena, kl_alias, from->naliases);
  for (uint32_t i = 0; i < from->naliases; i++) {
    aliases[i] = from->aliases[i];
    aliases[i].result = clone_ints(c, aliases[i].result);
    aliases[i].path = clone_ints(c, aliases[i].path);
  }
  kl_donor *donors = KL_NEW_N(c->arena, kl_donor, from->ndonors);
  for (uint32_t i = 0; i < from->ndonors; i++)
    donors[i] = (kl_donor){from->donors[i].param, clone_ints(c, from->donors[i].path)};
  to->params = params;
  to->result = clone_shape(c, from->result);
  to->aliases = aliases;
  to->donors = donors;
}

static bool clone_source(cloner *c) {
  const kl_source *from = c->from->source;
  if (!from) return true;
  char *text = kl_arena_try_alloc(c->arena, from->text.n + 1);
  if (!text) {
    kl_out_of_memory(c->cx, from->text.n + 1, "a copy of a module's text");
    return false;
  }
  if (from->text.n) memcpy(text, from->text.p, from->text.n);
  c->to->source = KL_NEW(c->arena, kl_source);
  *c->to->source = (kl_source){kl_str_dup(c->arena, kl_str_of(from->name)).p, {text, from->text.n}};
  return true;
}

static void clone_comps(cloner *c, const kl_live *live, kl_arena *scratch) {
  const kiln_module *m = c->from;
  c->comps = KL_NEW_N(scratch, uint32_t, m->ncomp);
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->ncomp; i++) c->comps[i] = !live || live->comp[i] ? n++ : UINT32_MAX;
  c->to->comp = KL_NEW_N(c->arena, kl_comp, n);
  c->to->ncomp = n;
  c->to->entry = c->comps[m->entry];
  for (uint32_t i = 0; i < m->ncomp && !c->no_memory; i++)
    if (c->comps[i] != UINT32_MAX)
      clone_comp(c, &m->comp[i], live && live->instr ? live->instr[i] : NULL, scratch, &c->to->comp[c->comps[i]]);
}

kiln_status kl_clone(kl_ctx *cx, const kiln_module *m, const kl_live *live, kiln_module **out) {
  cloner c = {.cx = cx, .from = m, .to = kl_module_new(cx)};
  kl_arena scratch;
  c.arena = &c.to->arena;
  kl_arena_init(&scratch, cx);
  c.no_memory = !clone_source(&c);
  if (!c.no_memory) {
    c.to->name = clone_symbol(&c, m->name);
    c.to->nraw = m->nraw;
    c.to->raw = clone_raw(&c, m->nraw, m->raw);
    c.to->tables = clone_str(&c, m->tables);
    clone_header(&c);
    clone_comps(&c, live, &scratch);
  }
  kl_shape_map_free(cx, &c.shapes);
  kl_arena_free(&scratch);
  if (c.no_memory)
    kiln_module_destroy(&c.to);
  else
    kl_interface_make(c.to);
  *out = c.to;
  return *out ? KILN_OK : KILN_E_MEMORY;
}

kiln_status kiln_module_clone(kiln_context *cx, const kiln_module *m, kiln_module **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  return kl_clone(cx, m, NULL, out);
}

kiln_module *kl_fork(kl_ctx *cx, const kiln_module *m) {
  kiln_module *to = kl_module_new(cx);
  for (size_t i = 1; i < m->names.strings.n; i++) kl_intern(&to->names, m->names.strings.p[i]);
  to->source = m->source;
  to->name = m->name;
  to->nraw = m->nraw;
  to->raw = m->raw;
  to->header = m->header;
  to->tables = m->tables;
  to->ncomp = m->ncomp;
  to->comp = kl_arena_dup(&to->arena, m->comp, m->ncomp * sizeof *m->comp);
  for (uint32_t i = 0; i < m->ncomp; i++)
    to->comp[i].instr = kl_arena_dup(&to->arena, m->comp[i].instr, m->comp[i].ninstr * sizeof(kl_instr));
  to->entry = m->entry;
  return to;
}
