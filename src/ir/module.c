// The module's life, and what the public interface tells of it.
#include "ir/hlo.h"
#include "ir/shape.h"

kiln_module *kl_module_new(kl_ctx *cx) {
  kiln_module *m = kl_alloc(cx, sizeof *m);
  m->cx = cx;
  kl_context_hold(cx);
  kl_arena_init(&m->arena, cx);
  kl_interner_init(&m->names, &m->arena);
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

static bool array_type(const kl_shape *s, kiln_array_type *out) {
  if (!kl_shape_is_array(s) || s->dynamic) return false;
  *out = (kiln_array_type){.dtype = s->dtype, .rank = s->rank};
  if (s->rank) memcpy(out->dims, s->dims, s->rank * sizeof(int64_t));
  return true;
}

size_t kiln_module_param_count(const kiln_module *m) {
  return m ? entry_of(m)->nparams : 0;
}

size_t kiln_module_result_count(const kiln_module *m) {
  return m ? kl_shape_leaf_count(kl_root(entry_of(m))->shape) : 0;
}

bool kiln_module_param_type(const kiln_module *m, size_t i, kiln_array_type *out) {
  if (!m || !out) return false;
  const kl_comp *c = entry_of(m);
  return i < c->nparams && array_type(c->instr[c->params[i]].shape, out);
}

bool kiln_module_result_type(const kiln_module *m, size_t i, kiln_array_type *out) {
  return m && out && i < kiln_module_result_count(m) && array_type(kl_shape_leaf(kl_root(entry_of(m))->shape, i), out);
}

void kiln_text_free(kiln_context *cx, char *text, size_t size) {
  if (cx) kl_free(cx, text, size + 1);
}
