// A fusion of ENTRY as a module of its own: its computation, and the ones that this one calls.
#include "ir/rewrite/transform.h"

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
  return s;
}
