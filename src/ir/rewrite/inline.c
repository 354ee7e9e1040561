// Fusions and calls replaced by what they call.
//
// Computations come callees first, so what is put in the place of a call has no calls left in it. An instruction of the
// body that waits for nothing in the body takes over what the call waited for; who waited for the call waits for
// everything in the body that nothing in the body waits for.
#include "ir/rewrite/transform.h"

enum { MOST_NEW = 1 << 20 }; // instructions more than before

typedef VEC(uint32_t) index_list;

typedef struct inliner {
  kl_ctx *cx;
  kiln_module *m; // a fork
  kl_emitter e;
  kl_arena scratch;
  uint64_t total, limit; // instructions
  // Of the computation that is being rewritten.
  uint32_t *value;     // by old instruction
  bool *is_waited_for; // named as a control predecessor
  kl_ints *exits;      // of an inlined call that is waited for: instructions, as numbers
  index_list list;     // of control predecessors
} inliner;

static bool is_inlined(const kl_instr *in) {
  return in->op == KL_OP_CALL || in->op == KL_OP_FUSION;
}

static const uint32_t *freeze(inliner *l, uint32_t *n) {
  *n = (uint32_t)l->list.n;
  const uint32_t *p = kl_arena_dup(&l->m->arena, l->list.p, l->list.n * sizeof(uint32_t));
  l->list.n = 0;
  return p;
}

// Puts what the instruction waits for on the list.
static void list_control(inliner *l, const kl_comp *c, const kl_instr *in) {
  for (uint32_t i = 0; i < in->ncontrol; i++) {
    uint32_t before = in->control[i];
    if (!is_inlined(&c->instr[before])) VEC_PUSH(l->cx, &l->list, l->value[before]);
    for (uint32_t k = 0; k < l->exits[before].n; k++) VEC_PUSH(l->cx, &l->list, (uint32_t)l->exits[before].p[k]);
  }
}

static const uint32_t *map_operands(inliner *l, const kl_instr *in, const uint32_t *value) {
  uint32_t *operands = KL_NEW_N(&l->m->arena, uint32_t, in->noperands);
  for (uint32_t i = 0; i < in->noperands; i++) operands[i] = value[in->operands[i]];
  return operands;
}

static void emit_same(inliner *l, const kl_comp *c, uint32_t index) {
  kl_instr in = c->instr[index];
  in.operands = map_operands(l, &in, l->value);
  list_control(l, c, &in);
  in.control = freeze(l, &in.ncontrol);
  l->value[index] = kl_emit(&l->e, &in);
}

// --- one call -----------------------------------------------------------------------------------------------------

typedef struct body {
  const kl_comp *c;
  uint32_t *value; // by instruction of the body
  bool *is_ended;  // something in the body waits for it
  kl_ints before;  // what the call waits for
} body;

// Does the instruction wait for another one of the body? Marks those.
static bool waits_inside(const body *b, const kl_instr *in) {
  bool waits = false;
  for (uint32_t i = 0; i < in->noperands; i++) {
    waits |= b->c->instr[in->operands[i]].op != KL_OP_PARAMETER;
    b->is_ended[in->operands[i]] = true;
  }
  for (uint32_t i = 0; i < in->ncontrol; i++) {
    waits |= b->c->instr[in->control[i]].op != KL_OP_PARAMETER;
    b->is_ended[in->control[i]] = true;
  }
  return waits;
}

static void emit_inner(inliner *l, body *b, uint32_t index) {
  kl_instr in = b->c->instr[index];
  bool waits = waits_inside(b, &in);
  for (uint32_t i = 0; i < in.ncontrol; i++)
    if (b->c->instr[in.control[i]].op != KL_OP_PARAMETER) VEC_PUSH(l->cx, &l->list, b->value[in.control[i]]);
  for (uint32_t i = 0; !waits && i < b->before.n; i++) VEC_PUSH(l->cx, &l->list, (uint32_t)b->before.p[i]);
  in.operands = map_operands(l, &in, b->value);
  in.control = freeze(l, &in.ncontrol);
  b->value[index] = kl_emit(&l->e, &in);
}

static kl_ints find_exits(inliner *l, const body *b) {
  VEC(int64_t) exits = {0};
  for (uint32_t i = 0; i < b->c->ninstr; i++)
    if (b->c->instr[i].op != KL_OP_PARAMETER && !b->is_ended[i]) VEC_PUSH(l->cx, &exits, b->value[i]);
  if (exits.n == 0) return b->before; // nothing but parameters
  uint32_t n = (uint32_t)exits.n;
  return (kl_ints){n, VEC_FREEZE(l->cx, &l->scratch, &exits)};
}

static void emit_body(inliner *l, const kl_comp *c, uint32_t index) {
  const kl_instr *call = &c->instr[index];
  body b = {.c = &l->m->comp[call->called[0]]};
  b.value = kl_alloc(l->cx, b.c->ninstr * sizeof(uint32_t));
  b.is_ended = kl_alloc(l->cx, b.c->ninstr);
  list_control(l, c, call);
  int64_t *before = KL_NEW_N(&l->scratch, int64_t, l->list.n);
  for (size_t i = 0; i < l->list.n; i++) before[i] = l->list.p[i];
  b.before = (kl_ints){(uint32_t)l->list.n, before};
  l->list.n = 0;
  for (uint32_t i = 0; i < b.c->nparams; i++)
    b.value[b.c->params[i]] = kl_emit_in_layout(&l->e, l->value[call->operands[i]], b.c->instr[b.c->params[i]].shape);
  for (uint32_t i = 0; i < b.c->ninstr; i++)
    if (b.c->instr[i].op != KL_OP_PARAMETER) emit_inner(l, &b, i);
  if (l->is_waited_for[index]) l->exits[index] = find_exits(l, &b);
  l->value[index] = kl_emit_in_layout(&l->e, b.value[b.c->root], call->shape);
  kl_free(l->cx, b.value, b.c->ninstr * sizeof(uint32_t));
  kl_free(l->cx, b.is_ended, b.c->ninstr);
}

// --- all of them --------------------------------------------------------------------------------------------------

static bool inline_comp(inliner *l, kl_comp *c, const bool *live) {
  kl_arena_init(&l->scratch, l->cx);
  l->value = KL_NEW_N(&l->scratch, uint32_t, c->ninstr);
  l->is_waited_for = KL_NEW_N(&l->scratch, bool, c->ninstr);
  l->exits = KL_NEW_N(&l->scratch, kl_ints, c->ninstr);
  for (uint32_t i = 0; i < c->ninstr; i++)
    for (uint32_t k = 0; k < c->instr[i].ncontrol; k++) l->is_waited_for[c->instr[i].control[k]] = true;
  kl_emit_begin(&l->e);
  bool ok = true;
  for (uint32_t i = 0; ok && i < c->ninstr; i++) {
    if (!live[i]) continue;
    if (is_inlined(&c->instr[i]))
      emit_body(l, c, i);
    else
      emit_same(l, c, i);
    ok = l->total + l->e.instrs.n <= l->limit;
  }
  l->total += l->e.instrs.n;
  if (ok) kl_emit_end(&l->e, c, l->value[c->root]);
  kl_arena_free(&l->scratch);
  return ok;
}

kiln_status kiln_module_inline(kiln_context *cx, const kiln_module *m, kiln_module **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  inliner l = {.cx = cx, .m = kl_fork(cx, m), .limit = kiln_module_instruction_count(m) + MOST_NEW};
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_live live = kl_live_of(m, &arena);
  l.e.m = l.m;
  bool ok = true;
  for (uint32_t i = 0; ok && i < m->ncomp; i++)
    if (live.comp[i]) ok = inline_comp(&l, &l.m->comp[i], live.instr[i]);
  kl_emit_free(&l.e);
  VEC_FREE(cx, &l.list);
  kl_arena_free(&arena);
  if (ok) return kl_finish_fork(cx, l.m, out);
  kiln_module_destroy(&l.m);
  return kl_unsupported(cx, KL_NOWHERE, "inline: expected at most 2^20 instructions more than before, found more");
}
