// Dependences as the public API has them: names and texts beside maps, apart from the module.
#include "lower/analysis/reads/reach.h"

#include <kiln/index.h>

struct kiln_indexing {
  kl_ctx *cx;
  kl_arena arena; // of all texts
  VEC(kiln_dependence) all;
  VEC(int64_t) elements; // of the array that each leads to
};

// One array of an instruction's value.
typedef struct end {
  const kl_comp *comp;
  uint32_t instr, leaf;
} end;

typedef struct listing {
  kiln_indexing *list;
  const kiln_module *m;
  kiln_index_params how;
  kl_affs *p;
  const kl_frame *frames;         // of runtime variables
  const kl_comp *caller, *callee; // parameters of the callee are operands of the call
  const kl_instr *call;
} listing;

// --- texts --------------------------------------------------------------------------------------------------------

static const char *text(listing *l, kl_str s) {
  return kl_str_dup(&l->list->arena, s).p;
}

static const char *name_of(listing *l, const kl_comp *c, uint32_t instr) {
  return text(l, kl_symbol_text(&l->m->names, c->instr[instr].name));
}

static const kl_shape *shape_of(end e) {
  return kl_shape_leaf(e.comp->instr[e.instr].shape, e.leaf);
}

static const char *type_of(listing *l, end e) {
  kl_sb b;
  kl_sb_init(&b, l->list->cx);
  kl_shape_print(&b, shape_of(e), shape_of(e)->layout.present);
  const char *t = text(l, (kl_str){b.p, b.n});
  kl_sb_free(&b);
  return t;
}

static const char *index_text(listing *l, const kl_producer *from) {
  kl_sb b;
  kl_aff_names names = {{NULL}, KL_AFF_SLASH};
  kl_sb_init(&b, l->list->cx);
  kl_sb_putc(&b, '(');
  for (uint32_t i = 0; i < from->nindex; i++) {
    if (i) kl_sb_puts(&b, ", ");
    if (!kl_aff_print(l->p, &b, from->index[i], &names)) kl_sb_puts(&b, "...");
  }
  kl_sb_putc(&b, ')');
  const char *t = text(l, (kl_str){b.p, b.n});
  kl_sb_free(&b);
  return t;
}

static kiln_runtime_value runtime_of(listing *l, const kl_map_var *v) {
  const kl_runtime *r = v->from.payload;
  const kl_comp *c = l->frames[r->frame].comp;
  const kl_instr *in = &c->instr[r->instr];
  kiln_runtime_value out = {.leaf = r->leaf, .index = index_text(l, &v->from), .clamped = r->clamped};
  bool given = l->call && c == l->callee && in->op == KL_OP_PARAMETER;
  out.instruction = given ? name_of(l, l->caller, l->call->operands[in->number]) : name_of(l, c, r->instr);
  if (r->clamped) out.to = (kiln_interval){r->lo, r->hi};
  return out;
}

// --- the list -----------------------------------------------------------------------------------------------------

static void add(listing *l, end from, end to, uint32_t operand, const kl_dependence *d) {
  kiln_indexing *list = l->list;
  const kl_map *m = d->map;
  if (l->how.physical) m = kl_in_memory(l->p, m, shape_of(from), shape_of(to));
  const char *why = m->state == KL_MAP_UNDEFINED ? m->why : d->why;
  kiln_dependence out = {.from = name_of(l, from.comp, from.instr),
                         .to = name_of(l, to.comp, to.instr),
                         .from_type = type_of(l, from),
                         .to_type = type_of(l, to),
                         .from_leaf = from.leaf,
                         .to_leaf = to.leaf,
                         .operand = operand,
                         .map = kl_map_publish(list->cx, m),
                         .exact = d->exact && m->state != KL_MAP_UNDEFINED,
                         .remote = d->remote,
                         .reason = why ? text(l, kl_str_of(why)) : ""};
  uint32_t n = m->state == KL_MAP_DEFINED ? m->nvars[KL_AFF_RT] : 0;
  kiln_runtime_value *runtime = KL_NEW_N(&list->arena, kiln_runtime_value, n + 1);
  for (uint32_t i = 0; i < n; i++) runtime[i] = runtime_of(l, &m->vars[KL_AFF_RT][i]);
  out.runtime_count = n;
  out.runtime = runtime;
  VEC_PUSH(list->cx, &list->all, out);
  VEC_PUSH(list->cx, &list->elements, shape_of(to)->count);
}

static uint32_t leaves(const kl_comp *c, uint32_t instr) {
  return (uint32_t)kl_shape_leaf_count(c->instr[instr].shape);
}

// A pool for one walk or instruction: what is listed has pools of its own.
static void open_pool(listing *l, kl_arena *arena) {
  kl_arena_init(arena, l->list->cx);
  l->p = kl_affs_create(l->list->cx, arena);
}

static void close_pool(listing *l, kl_arena *arena) {
  kl_affs_destroy(&l->p);
  kl_arena_free(arena);
}

// From one array of a computation's result or parameters to all arrays on the other side. Ends are named as the caller
// has them: the call and its operands, where there is one.
static void walk(listing *l, const kl_comp *c, uint32_t param, uint32_t leaf) {
  bool back = l->how.way == KILN_INDEX_FROM_OUTPUT;
  kl_arena arena;
  kl_reach r;
  open_pool(l, &arena);
  kl_reach_make(l->p, l->m, c, back ? c->root : c->params[param], leaf, back ? KL_REACH_OPERANDS : KL_REACH_USERS, &r);
  l->frames = r.frames;
  const kl_comp *at = l->call ? l->caller : c;
  uint32_t result = l->call ? (uint32_t)(l->call - l->caller->instr) : c->root;
  uint32_t first = back ? 0 : param, last = back ? c->nparams : param + 1;
  for (uint32_t i = first; i < last; i++) {
    uint32_t operand = l->call ? l->call->operands[i] : c->params[i], to = back ? c->params[i] : c->root;
    for (uint32_t k = 0; k < leaves(c, to); k++) {
      kl_reach_value v = kl_reach_find(&r, 0, to, k);
      end in = {at, operand, back ? k : leaf}, out = {at, result, back ? leaf : k};
      for (uint32_t j = 0; j < v.n; j++) add(l, back ? out : in, back ? in : out, i, &v.maps[j]);
    }
  }
  kl_reach_free(&r);
  close_pool(l, &arena);
}

static void walk_all(listing *l, const kl_comp *c) {
  if (l->how.way == KILN_INDEX_FROM_OUTPUT)
    for (uint32_t k = 0; k < leaves(c, c->root); k++) walk(l, c, 0, k);
  else
    for (uint32_t i = 0; i < c->nparams; i++)
      for (uint32_t k = 0; k < leaves(c, c->params[i]); k++) walk(l, c, i, k);
}

static void one_instruction(listing *l, const kl_comp *c, uint32_t instr) {
  kl_arena arena;
  open_pool(l, &arena);
  struct kl_runtimes *runtimes = kl_runtimes_create(l->list->cx, &arena);
  kl_frame frame = {.comp = c};
  kl_reader r = {l->p, l->m, &frame, 0, runtimes};
  l->frames = &frame;
  for (uint32_t leaf = 0; leaf < leaves(c, instr); leaf++) {
    kl_dependences d = kl_reads(&r, instr, leaf);
    for (uint32_t i = 0; i < d.n; i++) {
      end in = {c, c->instr[instr].operands[d.p[i].operand], d.p[i].leaf}, out = {c, instr, leaf};
      bool back = l->how.way == KILN_INDEX_FROM_OUTPUT;
      kl_dependence said = back ? d.p[i] : kl_converse(&r, instr, &d.p[i], KL_MAP_QUOTA);
      add(l, back ? out : in, back ? in : out, d.p[i].operand, &said);
    }
  }
  kl_runtimes_destroy(&runtimes);
  close_pool(l, &arena);
}

// --- the module ---------------------------------------------------------------------------------------------------

static bool find_in(const kiln_module *m, const kl_comp *c, kl_str name, uint32_t *instr) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (kl_str_eq(kl_symbol_text(&m->names, c->instr[i].name), name)) {
      *instr = i;
      return true;
    }
  return false;
}

static const kl_comp *find(const kiln_module *m, kl_str name, uint32_t *instr) {
  if (name.n && name.p[0] == '%') name.p++, name.n--;
  if (find_in(m, &m->comp[m->entry], name, instr)) return &m->comp[m->entry];
  for (uint32_t i = 0; i < m->ncomp; i++)
    if (find_in(m, &m->comp[i], name, instr)) return &m->comp[i];
  return NULL;
}

static kiln_status look(listing *l) {
  const kl_comp *c = &l->m->comp[l->m->entry];
  uint32_t instr;
  if (!l->how.instruction) {
    walk_all(l, c);
    return KILN_OK;
  }
  c = find(l->m, kl_str_of(l->how.instruction), &instr);
  if (!c)
    return kl_invalid(l->list->cx, KL_NOWHERE,
                      "expected the name of an instruction, found '%s': no computation has one", l->how.instruction);
  const kl_instr *in = &c->instr[instr];
  if (kl_op_table[in->op].kind != KL_KIND_CALL) {
    one_instruction(l, c, instr);
    return KILN_OK;
  }
  l->call = in, l->caller = c, l->callee = &l->m->comp[in->called[0]];
  walk_all(l, l->callee);
  return KILN_OK;
}

kiln_status kiln_module_index(kiln_context *cx, const kiln_module *m, const kiln_index_params *params,
                              kiln_indexing **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  listing l = {.m = m};
  KL_TRY(KL_PARAMS_IN(cx, kiln_index_params, params, &l.how));
  if ((unsigned)l.how.way > KILN_INDEX_FROM_INPUT)
    return kl_invalid(cx, KL_NOWHERE, "expected a way, 0 or 1, found %d", (int)l.how.way);
  kiln_indexing *list = l.list = kl_alloc(cx, sizeof *list);
  *list = (kiln_indexing){.cx = cx};
  kl_context_hold(cx);
  kl_arena_init(&list->arena, cx);
  kiln_status s = look(&l);
  if (s != KILN_OK) kiln_indexing_destroy(&list);
  *out = list;
  return s;
}

void kiln_indexing_destroy(kiln_indexing **list) {
  kiln_indexing *l = list ? *list : NULL;
  if (!l) return;
  kl_ctx *cx = l->cx;
  for (size_t i = 0; i < l->all.n; i++) kiln_map_destroy((kiln_map **)&l->all.p[i].map);
  VEC_FREE(cx, &l->all);
  VEC_FREE(cx, &l->elements);
  kl_arena_free(&l->arena);
  kl_free(cx, l, sizeof *l);
  kl_context_release(cx);
  *list = NULL;
}

size_t kiln_indexing_count(const kiln_indexing *list) {
  return list ? list->all.n : 0;
}

const kiln_dependence *kiln_indexing_at(const kiln_indexing *list, size_t i) {
  return list && i < list->all.n ? &list->all.p[i] : NULL;
}

// --- counts -------------------------------------------------------------------------------------------------------

static bool same_ends(const kiln_dependence *a, const kiln_dependence *b) {
  return strcmp(a->from, b->from) == 0 && strcmp(a->to, b->to) == 0 && a->from_leaf == b->from_leaf &&
         a->to_leaf == b->to_leaf && a->operand == b->operand;
}

bool kiln_indexing_counts(const kiln_indexing *list, size_t i, kiln_index_counts *out) {
  if (!list || !out || i >= list->all.n) return false;
  size_t first = i, end = i + 1;
  while (first > 0 && same_ends(&list->all.p[first - 1], &list->all.p[i])) first--;
  while (end < list->all.n && same_ends(&list->all.p[end], &list->all.p[i])) end++;
  kl_arena arena;
  kl_arena_init(&arena, list->cx);
  kl_affs *p = kl_affs_create(list->cx, &arena);
  const kl_map **maps = KL_NEW_N(&arena, const kl_map *, end - first);
  for (size_t k = first; k < end; k++) maps[k - first] = kl_map_import(p, kl_map_published(list->all.p[k].map));
  int64_t elements = list->elements.p[i];
  kl_map_counts c = kl_map_count(p, maps, (uint32_t)(end - first), elements, KL_COUNT_QUOTA);
  for (size_t k = first; k < end; k++) { // more than is needed is no count of what is
    c.images_exact = c.images_exact && list->all.p[k].exact;
    c.points_exact = c.points_exact && list->all.p[k].exact;
  }
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
  kiln_index_counts own = {sizeof own, elements, c.images, c.points, c.images_exact, c.points_exact};
  return KL_PARAMS_OUT(NULL, kiln_index_counts, &own, out) == KILN_OK;
}
