// The module's life, and what the public interface tells of it.
#include "ir/hlo.h"
#include "ir/shape.h"

kiln_module *kl_module_new(kl_ctx *cx) {
  kiln_module *m = kl_alloc(cx, sizeof *m);
  m->cx = cx;
  kl_context_hold(cx);
  kl_arena_init(&m->arena, cx);
  kl_interner_init(&m->names, &m->arena);
  m->hash = KL_NEW(&m->arena, kl_hash_cache);
  return m;
}

void kiln_module_destroy(kiln_module **m) {
  if (!m || !*m) return;
  kl_ctx *cx = (*m)->cx;
  kl_shapes_free(*m);
  kl_interner_free(&(*m)->names);
  kl_arena_free(&(*m)->arena);
  kl_free(cx, *m, sizeof **m);
  kl_context_release(cx);
  *m = NULL;
}

const char *kiln_module_name(const kiln_module *m) {
  return m ? kl_symbol_text(&m->names, m->name).p : "";
}

size_t kiln_module_computation_count(const kiln_module *m) {
  return m ? m->ncomp : 0;
}

size_t kiln_module_instruction_count(const kiln_module *m) {
  size_t n = 0;
  for (uint32_t i = 0; m && i < m->ncomp; i++) n += m->comp[i].ninstr;
  return n;
}

static const kl_comp *entry_of(const kiln_module *m) {
  return &m->comp[m->entry];
}

size_t kiln_module_parameter_count(const kiln_module *m) {
  return m ? entry_of(m)->nparams : 0;
}

const char *kiln_module_parameter_name(const kiln_module *m, size_t i) {
  if (i >= kiln_module_parameter_count(m)) return "";
  const kl_comp *c = entry_of(m);
  return kl_symbol_text(&m->names, c->instr[c->params[i]].name).p;
}

size_t kiln_module_fusions(const kiln_module *m, const char **names, size_t max) {
  size_t n = 0;
  for (uint32_t i = 0; m && i < entry_of(m)->ninstr; i++) {
    const kl_instr *in = &entry_of(m)->instr[i];
    if (in->op != KL_OP_FUSION) continue;
    if (names && n < max) names[n] = kl_symbol_text(&m->names, in->name).p;
    n++;
  }
  return n;
}

void kiln_text_free(kiln_context *cx, char *text, size_t size) {
  if (cx) kl_free(cx, text, size + 1);
}
