// A fusion of ENTRY as a module of its own: its computation, and the ones that this one calls.
//
// Its buffers are those that the fusion has in ENTRY: where the computation lays its parameters or its root out in
// another way, the header says how they lie.
#include "ir/rewrite/transform.h"
#include "ir/text/text.h"

static const kl_instr *find_fusion(const kiln_module *m, const char *name) {
  const kl_comp *c = &m->comp[m->entry];
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (c->instr[i].op == KL_OP_FUSION && kl_str_is(kl_symbol_text(&m->names, c->instr[i].name), name))
      return &c->instr[i];
  return NULL;
}

// Callees come before their callers.
static bool *reached_from(const kiln_module *m, uint32_t comp, kl_arena *arena) {
  bool *reached = KL_NEW_N(arena, bool, m->ncomp);
  reached[comp] = true;
  for (uint32_t i = comp + 1; i-- > 0;)
    for (uint32_t k = 0; reached[i] && k < m->comp[i].ninstr; k++)
      for (uint32_t j = 0; j < m->comp[i].instr[k].ncalled; j++) reached[m->comp[i].instr[k].called[j]] = true;
  return reached;
}

static bool lies_as_in_entry(const kiln_module *m, const kl_instr *fusion) {
  const kl_comp *entry = &m->comp[m->entry], *c = &m->comp[fusion->called[0]];
  for (uint32_t i = 0; i < c->nparams; i++)
    if (!kl_shape_same_in_memory(kl_operand(entry, fusion, i)->shape, c->instr[c->params[i]].shape)) return false;
  return kl_shape_same_in_memory(fusion->shape, kl_root(c)->shape);
}

// With every array's layout, the default one too: what is not written would be the computation's own.
static void put_shape(kl_sb *b, const kl_shape *s) {
  if (s->dtype == KILN_TUPLE) kl_sb_putc(b, '(');
  for (uint32_t i = 0; s->dtype == KILN_TUPLE && i < s->nelems; i++) {
    if (i) kl_sb_puts(b, ", ");
    put_shape(b, s->elems[i]);
  }
  if (s->dtype == KILN_TUPLE) return kl_sb_putc(b, ')');
  kl_shape_print(b, s, true);
  if (s->layout.present || !kl_shape_is_array(s)) return;
  for (uint32_t i = s->rank; i-- > 0;) kl_sbf(b, "%s%u", i + 1 == s->rank ? "{" : ",", i);
  if (s->rank) kl_sb_putc(b, '}');
}

static kiln_status state_layout(kl_ctx *cx, const kiln_module *m, const kl_instr *fusion, kiln_module *part) {
  const kl_comp *entry = &m->comp[m->entry];
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_put_header(&b, part);
  kl_sb_puts(&b, ", entry_computation_layout={(");
  for (uint32_t i = 0; i < fusion->noperands; i++) {
    if (i) kl_sb_puts(&b, ", ");
    put_shape(&b, kl_operand(entry, fusion, i)->shape);
  }
  kl_sb_puts(&b, ")->");
  put_shape(&b, fusion->shape);
  kl_sb_putc(&b, '}');
  kiln_status s = kl_read_header(cx, part, (kl_str){b.p, b.n});
  kl_sb_free(&b);
  kl_interface_make(part);
  return s;
}

kiln_status kiln_module_extract(kiln_context *cx, const kiln_module *m, const char *fusion, kiln_module **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, m, fusion, out);
  const kl_instr *in = find_fusion(m, fusion);
  if (!in) return kl_invalid(cx, KL_NOWHERE, "no fusion named '%s' in ENTRY", fusion);
  kl_arena scratch;
  kl_arena_init(&scratch, cx);
  kiln_module part = *m;
  part.entry = in->called[0];
  part.name = in->name;
  part.nraw = 0;
  part.header = (kl_header){0};
  kl_live live = {.comp = reached_from(m, part.entry, &scratch)};
  kiln_status s = kl_clone(cx, &part, &live, out);
  kl_arena_free(&scratch);
  if (s == KILN_OK && !lies_as_in_entry(m, in)) s = state_layout(cx, m, in, *out);
  if (s != KILN_OK) kiln_module_destroy(out);
  return s;
}
