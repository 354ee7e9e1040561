// Computations with ops written out. Reducers and loops that this takes stand before all computations, so that callees
// still come before their callers.
#include "ir/custom/custom.h"

#include "ir/rewrite/expand/room.h"
#include "ir/rewrite/started.h"

static const kl_expander *expander_of(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  const kl_expander *x = NULL;
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_RNG_BITS: x = &kl_expand_rng; break;
  case KL_KIND_RNG: x = &kl_expand_random; break;
  case KL_KIND_BATCH_NORM: x = &kl_expand_norm; break;
  case KL_KIND_DOT: x = in->op == KL_OP_RAGGED_DOT ? &kl_expand_ragged : NULL; break;
  case KL_KIND_DIMENSION_SIZE: x = &kl_expand_size; break;
  case KL_KIND_CUSTOM_CALL: x = &kl_expand_custom; break;
  case KL_KIND_COLLECTIVE: x = &kl_expand_pieces; break;
  default: break;
  }
  return x && x->takes(m, c, in) ? x : NULL;
}

// Which ops are written out: all, or only calls of libraries.
typedef struct choice {
  bool calls_alone;
} choice;

static const kl_expander *chosen(const choice *w, const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  if (w->calls_alone && !(in->op == KL_OP_CUSTOM_CALL && kl_custom_is_library(kl_custom_named(in)))) return NULL;
  return expander_of(m, c, in);
}

static bool has_any(const choice *w, const kiln_module *m, const kl_comp *c) {
  for (uint32_t i = 0; i < c->ninstr; i++)
    if (chosen(w, m, c, &c->instr[i])) return true;
  return false;
}

// --- what is called ------------------------------------------------------------------------------------------------

// Computations of loops that a call stands for, at most.
enum { MOST_OF_CALL = 16 };

static void make_computations(kl_graph *g, const choice *w) {
  kiln_module *m = g->m;
  uint32_t n = m->ncomp, calls = 0;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++) calls += m->comp[i].instr[k].op == KL_OP_CUSTOM_CALL;
  kl_comp *all = KL_NEW_N(&m->arena, kl_comp, n + KL_COMBINERS * KILN_DTYPE_COUNT + MOST_OF_CALL * calls + 1);
  memcpy(all, m->comp, n * sizeof *all);
  m->comp = all;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      const kl_expander *x = chosen(w, m, &m->comp[i], in);
      if (x && x->computations) x->computations(g, &m->comp[i], in);
    }
  kl_graph_put_made(g, n, NULL);
}

// --- computations ---------------------------------------------------------------------------------------------------

static const uint32_t *map_all(kl_graph *g, uint32_t n, const uint32_t *from, const uint32_t *value) {
  uint32_t *to = KL_NEW_N(&g->m->arena, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) to[i] = value[from[i]];
  return to;
}

static void rewrite(kl_graph *g, const choice *w, kl_comp *c) {
  uint32_t *value = KL_NEW_N(&g->scratch, uint32_t, c->ninstr + 1);
  kl_graph_begin(g);
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_expander *x = chosen(w, g->m, c, &c->instr[i]);
    kl_instr in = c->instr[i];
    in.operands = map_all(g, in.noperands, in.operands, value);
    in.control = map_all(g, in.ncontrol, in.control, value);
    g->span = in.span;
    value[i] = x ? kl_emit_in_layout(&g->e, x->write(&(kl_expansion){g, &in, in.operands, c, i}), in.shape)
                 : kl_emit(&g->e, &in);
  }
  kl_emit_end(&g->e, c, value[c->root]);
}

static kiln_status expand(kl_ctx *cx, const choice *w, const kiln_module *m, kiln_module **out) {
  bool any = false;
  *out = NULL;
  for (uint32_t i = 0; i < m->ncomp && !any; i++) any = has_any(w, m, &m->comp[i]);
  if (!any) return KILN_OK;
  kl_graph g = {.cx = cx, .m = kl_fork(cx, m), .index = KILN_S32};
  g.e.m = g.m;
  kl_arena_init(&g.scratch, cx);
  make_computations(&g, w);
  for (uint32_t i = 0; i < g.m->ncomp; i++)
    if (has_any(w, g.m, &g.m->comp[i])) rewrite(&g, w, &g.m->comp[i]);
  kl_emit_free(&g.e);
  kl_arena_free(&g.scratch);
  return kl_graph_finish(&g, out);
}

kiln_status kl_module_expand(kl_ctx *cx, const kiln_module *m, kiln_module **out) {
  return expand(cx, &(choice){.calls_alone = false}, m, out);
}

static bool starts_calls(const kiln_module *m) {
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++) {
      kl_instr in = m->comp[i].instr[k];
      bool starts = in.op == KL_OP_ASYNC_START && in.wrapped == KL_OP_CUSTOM_CALL;
      in.op = KL_OP_CUSTOM_CALL;
      if (starts && kl_custom_is_library(kl_custom_named(&in))) return true;
    }
  return false;
}

kiln_status kl_module_expand_calls(kl_ctx *cx, const kiln_module *m, kiln_module **out) {
  kiln_module *started = NULL;
  *out = NULL;
  if (starts_calls(m)) KL_TRY(kl_module_started(cx, m, &started));
  kiln_status status = expand(cx, &(choice){.calls_alone = true}, started ? started : m, out);
  kiln_module_destroy(&started);
  return status;
}
