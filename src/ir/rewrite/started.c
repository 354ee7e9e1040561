// Async ops that are written as what they wrap, in the place of which that stands: so every later step finds it as it
// finds any other.
#include "ir/rewrite/started.h"

#include "ir/rewrite/transform.h"

// Ops that do nothing are not started.
static bool stands_for(const kl_instr *in) {
  kl_op_kind kind = kl_op_table[in->wrapped].kind;
  return in->wrapped && kind != KL_KIND_PARAMETER && kind != KL_KIND_CONSTANT && kind != KL_KIND_ASYNC &&
         kind != KL_KIND_GTE;
}

static bool has_any(const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (stands_for(&c->instr[i])) return true;
  return false;
}

static uint32_t tuple_of(kl_emitter *e, const kl_instr *in, const kl_shape *s, const uint32_t *values) {
  kl_instr tuple = {
      .op = KL_OP_TUPLE, .name = in->name, .shape = s, .noperands = s->nelems, .more = &kl_no_more, .span = in->span};
  uint32_t *operands = KL_NEW_N(&e->m->arena, uint32_t, s->nelems + 1);
  for (uint32_t i = 0; i < s->nelems; i++) operands[i] = kl_emit_in_layout(e, values[i], s->elems[i]);
  tuple.operands = operands;
  return kl_emit(e, &tuple);
}

// ((operands), result, contexts...)
static uint32_t start(kl_emitter *e, const kl_instr *in) {
  const kl_shape *s = in->shape;
  uint32_t *parts = KL_NEW_N(&e->m->arena, uint32_t, s->nelems + 1);
  kl_instr own = *in;
  own.op = in->wrapped;
  own.wrapped = KL_OP_UNKNOWN;
  own.shape = s->elems[1];
  parts[0] = tuple_of(e, in, s->elems[0], in->operands);
  parts[1] = kl_emit(e, &own);
  for (uint32_t i = 2; i < s->nelems; i++) parts[i] = kl_emit_zeros(e, in, s->elems[i]);
  return tuple_of(e, in, s, parts);
}

static uint32_t put(kl_emitter *e, const kl_instr *in) {
  if (!stands_for(in)) return kl_emit(e, in);
  if (in->op == KL_OP_ASYNC_START) return start(e, in);
  if (in->op == KL_OP_ASYNC_UPDATE) return in->operands[0];
  return kl_emit_in_layout(e, kl_emit_element(e, in->operands[0], 1, in->name), in->shape);
}

static void rewrite(kl_emitter *e, kl_comp *c, uint32_t *value) {
  kl_emit_begin(e);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    kl_instr in = c->instr[i];
    uint32_t *operands = KL_NEW_N(&e->m->arena, uint32_t, in.noperands + 1);
    uint32_t *control = KL_NEW_N(&e->m->arena, uint32_t, in.ncontrol + 1);
    for (uint32_t k = 0; k < in.noperands; k++) operands[k] = value[in.operands[k]];
    for (uint32_t k = 0; k < in.ncontrol; k++) control[k] = value[in.control[k]];
    in.operands = operands;
    in.control = control;
    value[i] = put(e, &in);
  }
  kl_emit_end(e, c, value[c->root]);
}

kiln_status kl_module_started(kl_ctx *cx, const kiln_module *m, kiln_module **out) {
  kl_emitter e = {0};
  kl_arena scratch;
  *out = NULL;
  kl_arena_init(&scratch, cx);
  for (uint32_t i = 0; i < m->ncomp; i++) {
    if (!has_any(&m->comp[i])) continue;
    if (!e.m) e.m = kl_fork(cx, m);
    rewrite(&e, &e.m->comp[i], KL_NEW_N(&scratch, uint32_t, m->comp[i].ninstr + 1));
  }
  kl_arena_free(&scratch);
  if (!e.m) return KILN_OK;
  kl_emit_free(&e);
  return kl_finish_fork(cx, e.m, out);
}
