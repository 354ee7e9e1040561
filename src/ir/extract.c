// A fusion of ENTRY as a module of its own: its computation and the ones before it, printed and parsed again.

#include "ir/hlo.h"

static const kl_instr *find_fusion(const kiln_module *m, const char *name) {
  const kl_comp *c = &m->comp[m->entry];
  for (uint32_t i = 0; i < c->ninstr; i++) {
    if (c->instr[i].op == KL_OP_FUSION && kl_str_is(kl_symbol_text(&m->names, c->instr[i].name), name))
      return &c->instr[i];
  }
  return NULL;
}

kiln_status kiln_module_extract(kiln_context *cx, const kiln_module *m, const char *fusion, kiln_module **out) {
  *out = NULL;
  const kl_instr *in = find_fusion(m, fusion);
  if (!in) return kl_invalid(cx, KL_NOWHERE, "no fusion named '%s' in ENTRY", fusion);
  // Callees come before their callers, so this prefix is closed under calls.
  kiln_module part = *m;
  part.entry = in->called;
  part.ncomp = in->called + 1;
  part.name = in->name;
  part.nraw = 0;
  char *text;
  size_t size;
  KL_TRY(kiln_module_print(cx, &part, &text, &size));
  kiln_status st = kiln_module_parse(cx, fusion, text, size, out);
  kiln_text_free(cx, text, size);
  return st;
}
