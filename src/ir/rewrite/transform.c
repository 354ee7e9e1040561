// What rewriting steps share: which instructions are needed, emitting instructions into a fork, the last step.
#include "ir/rules/rules.h"
#include "ir/text/text.h"
#include "ir/shape.h"
#include "ir/rewrite/transform.h"

// --- what is needed -----------------------------------------------------------------------------------------------

// Random numbers count: they advance a hidden state, which the ones after them read.
bool kl_op_has_effect(const kl_instr *in) {
  kl_op op = in->wrapped ? in->wrapped : in->op;
  switch (kl_op_table[op].kind) {
  case KL_KIND_UNKNOWN:
  case KL_KIND_COLLECTIVE:
  case KL_KIND_HOST:
  case KL_KIND_RNG:
  case KL_KIND_RNG_STATE: return true;
  case KL_KIND_CUSTOM_CALL: return in->more->side_effect;
  default: return false;
  }
}

// By computation: does it have an effect? By instruction: does it, or what it calls? The later halves of an async
// operation have the effect of its start.
static bool *find_effects(const kiln_module *m, kl_arena *arena, bool **by_instr) {
  bool *effects = KL_NEW_N(arena, bool, m->ncomp);
  for (uint32_t i = 0; i < m->ncomp; i++) {
    const kl_comp *c = &m->comp[i];
    by_instr[i] = KL_NEW_N(arena, bool, c->ninstr);
    for (uint32_t k = 0; k < c->ninstr; k++) {
      const kl_instr *in = &c->instr[k];
      bool has = kl_op_has_effect(in);
      for (uint32_t j = 0; j < in->ncalled; j++) has |= effects[in->called[j]];
      if ((in->op == KL_OP_ASYNC_UPDATE || in->op == KL_OP_ASYNC_DONE) && in->noperands)
        has |= by_instr[i][in->operands[0]];
      by_instr[i][k] = has;
      effects[i] |= has;
    }
  }
  return effects;
}

// Users come behind what they use, so one walk backwards does.
static void mark_instructions(const kl_comp *c, bool *live) {
  live[c->root] = true;
  for (uint32_t i = 0; i < c->nparams; i++) live[c->params[i]] = true;
  for (uint32_t i = c->ninstr; i-- > 0;) {
    const kl_instr *in = &c->instr[i];
    if (!live[i]) continue;
    for (uint32_t k = 0; k < in->noperands; k++) live[in->operands[k]] = true;
    for (uint32_t k = 0; k < in->ncontrol; k++) live[in->control[k]] = true;
  }
}

static bool names_one(const kiln_module *m, const bool *is_comp, kl_str text) {
  for (size_t i = 0; i < text.n; i++) {
    size_t begin = i;
    uint32_t symbol;
    while (i < text.n && kl_is_name_char(text.p[i])) i++;
    if (i > begin && kl_intern_known(&m->names, (kl_str){text.p + begin, i - begin}, &symbol) && is_comp[symbol])
      return true;
  }
  return false;
}

bool kl_text_names_computations(const kiln_module *m, kl_arena *arena) {
  bool *is_comp = NULL, found = false;
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr && !found; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      if (in->op != KL_OP_UNKNOWN || in->nraw == 0) continue;
      if (!is_comp) {
        is_comp = KL_NEW_N(arena, bool, m->names.strings.n);
        for (uint32_t j = 0; j < m->ncomp; j++) is_comp[m->comp[j].name] = true;
      }
      for (uint32_t j = 0; j < in->nraw; j++) found |= names_one(m, is_comp, in->raw[j].value);
    }
  return found;
}

kl_live kl_live_of(const kiln_module *m, kl_arena *arena) {
  kl_live live = {KL_NEW_N(arena, bool, m->ncomp), KL_NEW_N(arena, bool *, m->ncomp)};
  find_effects(m, arena, live.instr);
  live.comp[m->entry] = true;
  if (kl_text_names_computations(m, arena)) memset(live.comp, true, m->ncomp);
  for (uint32_t i = m->ncomp; i-- > 0;) {
    const kl_comp *c = &m->comp[i];
    if (!live.comp[i]) {
      live.instr[i] = NULL;
      continue;
    }
    mark_instructions(c, live.instr[i]);
    for (uint32_t k = 0; k < c->ninstr; k++)
      for (uint32_t j = 0; live.instr[i][k] && j < c->instr[k].ncalled; j++) live.comp[c->instr[k].called[j]] = true;
  }
  return live;
}

// --- emitting -----------------------------------------------------------------------------------------------------

void kl_emit_begin(kl_emitter *e) {
  e->mark++;
  e->instrs.n = 0;
}

static uint32_t *at_symbol(kl_emitter *e, kl_by_symbol *v, uint32_t symbol) {
  while (v->n <= symbol) VEC_PUSH(e->m->cx, v, 0);
  return &v->p[symbol];
}

static bool take_name(kl_emitter *e, uint32_t symbol) {
  uint32_t *used = at_symbol(e, &e->used, symbol);
  if (*used == e->mark) return false;
  *used = e->mark;
  return true;
}

// The name without a number behind it.
static kl_str stem(kl_str name) {
  size_t n = name.n;
  while (n && name.p[n - 1] >= '0' && name.p[n - 1] <= '9') n--;
  return n > 1 && n < name.n && name.p[n - 1] == '.' ? (kl_str){name.p, n - 1} : name;
}

static uint32_t free_name(kl_emitter *e, uint32_t symbol) {
  if (take_name(e, symbol)) return symbol;
  kl_str base = stem(kl_symbol_text(&e->m->names, symbol));
  uint32_t base_symbol = kl_intern(&e->m->names, base), made;
  kl_sb text;
  kl_sb_init(&text, e->m->cx);
  do {
    text.n = 0;
    kl_sb_put(&text, base);
    kl_sbf(&text, ".%u", ++*at_symbol(e, &e->counter, base_symbol));
    made = kl_intern(&e->m->names, (kl_str){text.p, text.n});
  } while (!take_name(e, made));
  kl_sb_free(&text);
  return made;
}

uint32_t kl_emit(kl_emitter *e, const kl_instr *in) {
  kl_instr own = *in;
  own.name = free_name(e, in->name);
  VEC_PUSH(e->m->cx, &e->instrs, own);
  return (uint32_t)e->instrs.n - 1;
}

uint32_t kl_emit_element(kl_emitter *e, uint32_t value, uint32_t index, uint32_t name) {
  const kl_instr *of = &e->instrs.p[value];
  uint32_t *operand = kl_arena_dup(&e->m->arena, &value, sizeof value);
  kl_instr in = {.op = KL_OP_GET_TUPLE_ELEMENT,
                 .name = name,
                 .shape = of->shape->elems[index],
                 .noperands = 1,
                 .operands = operand,
                 .number = index,
                 .given = 1,
                 .more = &kl_no_more,
                 .span = of->span};
  return kl_emit(e, &in);
}

uint32_t kl_emit_in_layout(kl_emitter *e, uint32_t value, const kl_shape *as) {
  kl_instr in = {.op = KL_OP_COPY,
                 .name = e->instrs.p[value].name,
                 .shape = as,
                 .noperands = 1,
                 .more = &kl_no_more,
                 .span = e->instrs.p[value].span};
  if (kl_shape_same_in_memory(e->instrs.p[value].shape, as)) return value;
  uint32_t *operands = KL_NEW_N(&e->m->arena, uint32_t, as->nelems ? as->nelems : 1);
  in.operands = operands;
  operands[0] = value;
  if (as->dtype != KILN_TUPLE) return kl_emit(e, &in);
  for (uint32_t i = 0; i < as->nelems; i++)
    operands[i] = kl_emit_in_layout(e, kl_emit_element(e, value, i, in.name), as->elems[i]);
  in.op = KL_OP_TUPLE;
  in.noperands = as->nelems;
  return kl_emit(e, &in);
}

static uint32_t emit_on(kl_emitter *e, const kl_instr *named, kl_op op, const kl_shape *s, uint32_t n,
                        const uint32_t *operands) {
  return kl_emit(e, &(kl_instr){.op = op,
                                .name = named->name,
                                .shape = s,
                                .noperands = n,
                                .operands = kl_arena_dup(&e->m->arena, operands, n * sizeof *operands),
                                .given = op == KL_OP_BROADCAST,
                                .more = &kl_no_more,
                                .span = named->span});
}

uint32_t kl_emit_zeros(kl_emitter *e, const kl_instr *named, const kl_shape *s) {
  if (s->dtype == KILN_TOKEN) return emit_on(e, named, KL_OP_AFTER_ALL, s, 0, NULL);
  if (s->dtype == KILN_TUPLE) {
    uint32_t *elements = KL_NEW_N(&e->m->arena, uint32_t, s->nelems + 1);
    for (uint32_t i = 0; i < s->nelems; i++) elements[i] = kl_emit_zeros(e, named, s->elems[i]);
    return emit_on(e, named, KL_OP_TUPLE, s, s->nelems, elements);
  }
  kl_array *zero = KL_NEW(&e->m->arena, kl_array);
  kl_instr number = {.op = KL_OP_CONSTANT, .name = named->name, .more = &kl_no_more, .span = named->span};
  number.shape = kl_shape_array(e->m, s->dtype, 0, NULL);
  *zero = (kl_array){number.shape, KL_NEW_N(&e->m->arena, char, kl_info(s->dtype)->bytes)};
  number.literal = zero;
  uint32_t value = kl_emit(e, &number);
  return s->rank ? emit_on(e, named, KL_OP_BROADCAST, s, 1, &value) : value;
}

void kl_emit_end(kl_emitter *e, kl_comp *c, uint32_t root) {
  uint32_t n = 0;
  c->ninstr = (uint32_t)e->instrs.n;
  c->instr = kl_arena_dup(&e->m->arena, e->instrs.p, e->instrs.n * sizeof(kl_instr));
  c->root = root;
  for (uint32_t i = 0; i < c->ninstr; i++) n += c->instr[i].op == KL_OP_PARAMETER;
  uint32_t *params = KL_NEW_N(&e->m->arena, uint32_t, n);
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_PARAMETER) params[c->instr[i].number] = i;
  c->nparams = n;
  c->params = params;
}

void kl_emit_free(kl_emitter *e) {
  VEC_FREE(e->m->cx, &e->instrs);
  VEC_FREE(e->m->cx, &e->used);
  VEC_FREE(e->m->cx, &e->counter);
}

// --- whole modules ------------------------------------------------------------------------------------------------

static kiln_status clone_live(kl_ctx *cx, const kiln_module *m, kiln_module **out) {
  kl_arena scratch;
  kl_arena_init(&scratch, cx);
  kl_live live = kl_live_of(m, &scratch);
  kiln_status s = kl_clone(cx, m, &live, out);
  kl_arena_free(&scratch);
  return s;
}

kiln_status kl_finish_fork(kl_ctx *cx, kiln_module *fork, kiln_module **out) {
  kiln_status s = clone_live(cx, fork, out);
  kiln_module_destroy(&fork);
  if (s != KILN_OK || kl_verify(*out) == KILN_OK) return s;
  kiln_module_destroy(out);
  return kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "a rewritten module does not pass the checks, please report it");
}

kiln_status kiln_module_remove_dead(kiln_context *cx, const kiln_module *m, kiln_module **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  return clone_live(cx, m, out);
}
