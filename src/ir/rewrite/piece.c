// Pieces of computations. Each becomes a computation behind those that are there, and so does what calls them.
#include "ir/rewrite/piece.h"

#include <stdlib.h>

void kl_piecer_begin(kl_piecer *p, kl_ctx *cx, const kiln_module *m) {
  *p = (kl_piecer){.cx = cx, .m = kl_fork(cx, m)};
  p->e.m = p->m;
  kl_arena_init(&p->scratch, cx);
  p->made_of = KL_NEW_N(&p->scratch, uint32_t, m->ncomp + 1);
  for (uint32_t i = 0; i < m->ncomp; i++) {
    p->made_of[i] = i;
    VEC_PUSH(cx, &p->comps, p->m->comp[i]);
    while (p->is_comp.n <= m->comp[i].name) VEC_PUSH(cx, &p->is_comp, 0);
    p->is_comp.p[m->comp[i].name] = 1;
  }
}

kiln_status kl_piecer_end(kl_piecer *p, bool drop, kiln_module **out) {
  p->m->entry = p->made_of[p->m->entry];
  p->m->ncomp = (uint32_t)p->comps.n;
  p->m->comp = VEC_FREEZE(p->cx, &p->m->arena, &p->comps);
  VEC_FREE(p->cx, &p->is_comp);
  VEC_FREE(p->cx, &p->counter);
  VEC_FREE(p->cx, &p->stack);
  kl_emit_free(&p->e);
  kl_arena_free(&p->scratch);
  *out = NULL;
  if (!drop) return kl_finish_fork(p->cx, p->m, out);
  kiln_module_destroy(&p->m);
  return KILN_OK;
}

// --- names of computations ------------------------------------------------------------------------------------------

static uint32_t *at_symbol(kl_piecer *p, kl_by_symbol *v, uint32_t symbol) {
  while (v->n <= symbol) VEC_PUSH(p->cx, v, 0);
  return &v->p[symbol];
}

// Distinct, and like this one with something before it.
static uint32_t comp_name(kl_piecer *p, const char *before, uint32_t name) {
  kl_sb text;
  kl_sb_init(&text, p->cx);
  kl_sb_puts(&text, before);
  kl_sb_put(&text, kl_symbol_text(&p->m->names, name));
  uint32_t base = kl_intern(&p->m->names, (kl_str){text.p, text.n}), made = base;
  size_t stem = text.n;
  while (*at_symbol(p, &p->is_comp, made)) {
    text.n = stem;
    kl_sbf(&text, ".%u", ++*at_symbol(p, &p->counter, base));
    made = kl_intern(&p->m->names, (kl_str){text.p, text.n});
  }
  kl_sb_free(&text);
  *at_symbol(p, &p->is_comp, made) = 1;
  return made;
}

static uint32_t add_comp(kl_piecer *p, uint32_t name, uint32_t root, kl_span span) {
  kl_comp c = {.name = name, .span = span};
  kl_emit_end(&p->e, &c, root);
  VEC_PUSH(p->cx, &p->comps, c);
  return (uint32_t)p->comps.n - 1;
}

// The old one takes another name: fusions may call it still.
void kl_put_in_place(kl_piecer *p, uint32_t comp, uint32_t root) {
  uint32_t name = p->comps.p[comp].name;
  p->made_of[comp] = add_comp(p, name, root, p->comps.p[comp].span);
  p->comps.p[comp].name = comp_name(p, "", name);
}

// --- one piece ------------------------------------------------------------------------------------------------------

void kl_take_apart(kl_piecer *p, const kl_comp *c) {
  p->c = c;
  p->piece = 0;
  p->seen = KL_NEW_N(&p->scratch, uint32_t, c->ninstr + 1);
  p->value = KL_NEW_N(&p->scratch, uint32_t, c->ninstr + 1);
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

typedef VEC(uint32_t) list;

// All that the roots need, up to what is handed in, ascending.
static void find_body(kl_piecer *p, uint32_t n, const uint32_t *roots, kl_is_handed *is_handed, const void *arg,
                      list *body) {
  p->piece++;
  for (uint32_t i = 0; i < n; i++) VEC_PUSH(p->cx, &p->stack, roots[i]);
  while (p->stack.n) {
    uint32_t i = p->stack.p[--p->stack.n];
    if (p->seen[i] == p->piece) continue;
    p->seen[i] = p->piece;
    VEC_PUSH(p->cx, body, i);
    if (is_handed(arg, i)) continue;
    for (uint32_t o = 0; o < p->c->instr[i].noperands; o++) VEC_PUSH(p->cx, &p->stack, p->c->instr[i].operands[o]);
  }
  qsort(body->p, body->n, sizeof *body->p, ascending);
}

static kl_instr parameter(const kl_instr *like, uint32_t number) {
  return (kl_instr){.op = KL_OP_PARAMETER,
                    .name = like->name,
                    .shape = like->shape,
                    .number = number,
                    .more = &kl_no_more,
                    .span = like->span};
}

static kl_instr with_operands(kl_piecer *p, const kl_instr *in, const uint32_t *value) {
  kl_instr own = *in;
  uint32_t *operands = KL_NEW_N(&p->m->arena, uint32_t, in->noperands + 1);
  for (uint32_t o = 0; o < in->noperands; o++) operands[o] = value[in->operands[o]];
  own.operands = operands;
  own.ncontrol = 0;
  return own;
}

uint32_t kl_emit_tuple(kl_piecer *p, const kl_instr *like, uint32_t n, const uint32_t *values) {
  const kl_shape **shapes = KL_NEW_N(&p->scratch, const kl_shape *, n + 1);
  for (uint32_t i = 0; i < n; i++) shapes[i] = p->e.instrs.p[values[i]].shape;
  kl_instr in = {.op = KL_OP_TUPLE,
                 .name = like->name,
                 .shape = kl_shape_tuple(p->m, n, shapes),
                 .noperands = n,
                 .operands = kl_arena_dup(&p->m->arena, values, n * sizeof *values),
                 .more = &kl_no_more,
                 .span = like->span};
  return kl_emit(&p->e, &in);
}

kl_piece kl_make_piece(kl_piecer *p, uint32_t n, const uint32_t *roots, kl_is_handed *is_handed, const void *arg,
                       const char *before, const kl_instr *named) {
  list body = {0};
  find_body(p, n, roots, is_handed, arg, &body);
  kl_piece made = {.named = named};
  uint32_t *inputs = KL_NEW_N(&p->scratch, uint32_t, body.n + 1), *results = KL_NEW_N(&p->scratch, uint32_t, n + 1);
  kl_emit_begin(&p->e);
  for (size_t b = 0; b < body.n; b++) {
    uint32_t i = body.p[b];
    kl_instr in = p->c->instr[i];
    if (is_handed(arg, i)) {
      inputs[made.ninputs] = i;
      in = parameter(&in, made.ninputs++);
    } else {
      in = with_operands(p, &in, p->value);
    }
    p->value[i] = kl_emit(&p->e, &in);
  }
  for (uint32_t i = 0; i < n; i++) results[i] = p->value[roots[i]];
  uint32_t root = n == 1 ? results[0] : kl_emit_tuple(p, named, n, results);
  made.inputs = inputs;
  made.comp = add_comp(p, comp_name(p, before, named->name), root, named->span);
  VEC_FREE(p->cx, &body);
  return made;
}

// --- who calls it ---------------------------------------------------------------------------------------------------

uint32_t kl_call_piece(kl_piecer *p, const kl_piece *piece, uint32_t name, const kl_shape *shape,
                       const uint32_t *value) {
  uint32_t *operands = KL_NEW_N(&p->m->arena, uint32_t, piece->ninputs + 1);
  for (uint32_t i = 0; i < piece->ninputs; i++) operands[i] = value[piece->inputs[i]];
  kl_instr in = {.op = KL_OP_FUSION,
                 .name = name,
                 .shape = shape,
                 .noperands = piece->ninputs,
                 .operands = operands,
                 .ncalled = 1,
                 .called = kl_arena_dup(&p->m->arena, &piece->comp, sizeof piece->comp),
                 .given = 3,
                 .more = &kl_no_more,
                 .span = piece->named->span};
  return kl_emit(&p->e, &in);
}

uint32_t kl_emit_again(kl_piecer *p, const kl_instr *in, const uint32_t *value) {
  kl_instr own = with_operands(p, in, value);
  uint32_t *called = KL_NEW_N(&p->m->arena, uint32_t, in->ncalled + 1);
  for (uint32_t k = 0; k < in->ncalled; k++) called[k] = p->made_of[in->called[k]];
  own.called = called;
  return kl_emit(&p->e, &own);
}
