// Fusions that no kernel can be, as they hold loops of kernels: calls take their places.
#include "ir/rewrite/branch.h"
#include "lower/choose/private.h"

// By computation: is there a loop in it, or in what it runs, that threads do not run by themselves? Callees come first.
static bool *find_loops(kl_ctx *cx, const kiln_module *m, kl_arena *arena) {
  bool *has = KL_NEW_N(arena, bool, m->ncomp + 1);
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr && !has[i]; k++) {
      const kl_instr *in = &m->comp[i].instr[k];
      bool runs = in->op == KL_OP_FUSION || in->op == KL_OP_CALL || in->op == KL_OP_CONDITIONAL;
      has[i] = in->op == KL_OP_WHILE && !kl_loop_is_private(cx, m, in);
      for (uint32_t j = 0; runs && j < in->ncalled && !has[i]; j++) has[i] = has[in->called[j]];
    }
  return has;
}

static bool is_loop(const kl_instr *in) {
  return in->op == KL_OP_WHILE;
}

static bool is_opened(const kl_instr *in, const bool *has) {
  return in->op == KL_OP_FUSION && in->ncalled == 1 && has[in->called[0]];
}

static bool any_opened(const kiln_module *m, const bool *has) {
  for (uint32_t i = 0; i < m->ncomp; i++)
    for (uint32_t k = 0; k < m->comp[i].ninstr; k++)
      if (is_opened(&m->comp[i].instr[k], has)) return true;
  return false;
}

kiln_status kl_module_open(kl_ctx *cx, const kiln_module *m, kiln_module **out) {
  kl_arena scratch;
  kiln_module *fork = NULL;
  *out = NULL;
  kl_arena_init(&scratch, cx);
  const bool *has = kl_find_ops(m, is_loop, &scratch);
  bool some = any_opened(m, has);
  if (some) has = find_loops(cx, m, &scratch); // which takes longer
  for (uint32_t i = 0; some && i < m->ncomp; i++) {
    bool any = false;
    for (uint32_t k = 0; k < m->comp[i].ninstr && !any; k++) any = is_opened(&m->comp[i].instr[k], has);
    if (!any) continue;
    if (!fork) fork = kl_fork(cx, m);
    kl_comp *c = &fork->comp[i];
    kl_instr *own = kl_arena_dup(&fork->arena, c->instr, c->ninstr * sizeof *own);
    for (uint32_t k = 0; k < c->ninstr; k++)
      if (is_opened(&own[k], has)) own[k].op = KL_OP_CALL, own[k].more = &kl_no_more, own[k].given = 1;
    c->instr = own;
  }
  kl_arena_free(&scratch);
  return fork ? kl_finish_fork(cx, fork, out) : KILN_OK;
}
