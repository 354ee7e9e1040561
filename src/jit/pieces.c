// Modules as they are compiled.

#include "jit/pieces.h"

#include "ir/rewrite/branch.h"
#include "ir/rewrite/split.h"
#include "lower/choose/choose.h"

typedef struct pieces {
  kl_ctx *cx;
  const kiln_module *m;
  kl_arena arena;
  kl_pieces_params how;
  VEC(kl_split) splits;
} pieces;

static void cut_unit(pieces *p, const kl_comp *c, const kl_instr *fusion) {
  bool *cut = KL_NEW_N(&p->arena, bool, c->ninstr);
  if (kl_plan_pieces(p->cx, p->m, c, &p->how, cut)) VEC_PUSH(p->cx, &p->splits, ((kl_split){fusion, c, cut}));
}

static kiln_status cut_units(pieces *p) {
  kl_unit *units;
  uint32_t n;
  KL_TRY(kl_plan_units(p->cx, p->m, NULL, &p->arena, &units, &n));
  for (uint32_t i = 0; i < n; i++) cut_unit(p, units[i].comp, units[i].from);
  return KILN_OK;
}

// A fusion that is picked is cut as if it were ENTRY, which may call other fusions.
static kiln_status make(pieces *p, const char *fusion, kiln_module **out) {
  kiln_module *own = NULL, *plain = NULL;
  if (fusion) KL_TRY(kiln_module_extract(p->cx, p->m, fusion, &own));
  if (own) p->m = own;
  kiln_status st = kl_module_unbranch(p->cx, p->m, kl_is_apart, &plain);
  if (plain) p->m = plain;
  if (st == KILN_OK && fusion) cut_unit(p, kl_plan_inline(p->cx, p->m, &p->m->comp[p->m->entry], &p->arena), NULL);
  if (st == KILN_OK && !fusion) st = cut_units(p);
  if (st == KILN_OK && p->splits.n) st = kl_module_split(p->cx, p->m, (uint32_t)p->splits.n, p->splits.p, out);
  if (st == KILN_OK && !*out) *out = plain, plain = NULL;
  kiln_module_destroy(&plain);
  kiln_module_destroy(&own);
  return st;
}

kiln_status kl_pieces_make(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params, const kl_target *target,
                           bool apart, kiln_module **out) {
  *out = NULL;
  if (params->max_count) return KILN_OK;
  bool aliased = params->alias_count || m->header.naliases; // one kernel has the order of reads and writes in its hands
  pieces p = {.cx = cx, .m = m, .how = {.target = *target, .least = aliased, .apart = apart}};
  kl_arena_init(&p.arena, cx);
  kiln_status st = make(&p, params->fusion, out);
  VEC_FREE(cx, &p.splits);
  kl_arena_free(&p.arena);
  return st;
}
