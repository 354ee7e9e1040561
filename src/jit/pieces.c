// Modules as they are compiled.

#include "jit/pieces.h"

#include "ir/rewrite/branch.h"
#include "ir/rewrite/plain.h"
#include "ir/rewrite/split.h"
#include "ir/rewrite/unroll.h"
#include "lower/choose/choose.h"
#include "lower/fuse/fuse.h"
#include "lower/fuse/layouts.h"

// Of an ENTRY without fusions that is tried as one kernel; of reductions over the same dims, which read what there is
// once.
enum { MOST_HEROES = 4, MOST_ALIKE = 8 };

typedef struct pieces {
  kl_ctx *cx;
  const kiln_module *m;
  const kiln_compile_params *params;
  kl_target target;
  kl_trial trial;
  kl_sb *why;
  kl_arena arena;
  kl_pieces_params how;
  VEC(kl_split) splits;
} pieces;

// Takes the place of the module at hand; `m` itself where nothing has been done.
static void replace(pieces *p, kiln_module **own, kiln_module *made) {
  if (!made) return;
  kiln_module_destroy(own);
  *own = made;
  p->m = made;
}

// --- fusions
// ----------------------------------------------------------------------------------------------------------

// Do all reductions go over elements of the same dims, such as the rows' and the columns' of a norm's backward pass?
static bool are_alike(const kl_comp *c) {
  const kl_shape *first = NULL;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    if (c->instr[i].op != KL_OP_REDUCE) continue;
    const kl_shape *s = kl_operand(c, &c->instr[i], 0)->shape;
    if (first && !kl_shape_same_dims(first, s)) return false;
    first = s;
  }
  return true;
}

// Is ENTRY more than fusions, and more than one kernel is likely to make?
static bool is_mixed(pieces *p) {
  const kl_comp *c = &p->m->comp[p->m->entry];
  const bool *has = kl_find_ops(p->m, kl_needs_kernel, &p->arena);
  bool fusions = false, others = false;
  uint32_t heroes = 0, reductions = 0;
  for (uint32_t i = 0; i < c->ninstr; i++) {
    const kl_instr *in = &c->instr[i];
    fusions |= kl_is_run(in, has);
    others |= in->op != KL_OP_FUSION && in->op != KL_OP_PARAMETER && in->op != KL_OP_TUPLE &&
              in->op != KL_OP_GET_TUPLE_ELEMENT;
    heroes += kl_is_apart(in);
    reductions += in->op == KL_OP_REDUCE;
  }
  if (p->trial == KL_AS_IT_IS)
    return fusions ? others : heroes > (are_alike(c) ? MOST_ALIKE : MOST_HEROES) || heroes > reductions + 1;
  return others;
}

// What acts on more than its result must be taken out or refused before what nobody uses is left behind.
static bool has_effects(pieces *p) {
  return kl_find_ops(p->m, kl_op_has_effect, &p->arena)[p->m->entry];
}

static kiln_status fuse(pieces *p, kiln_module **own) {
  kiln_module *made = NULL;
  KL_TRY(kl_module_unroll(p->cx, p->m, kl_needs_kernel, p->why, &made));
  replace(p, own, made);
  made = NULL;
  KL_TRY(kl_module_plain(p->cx, p->m, kl_needs_kernel, &made));
  replace(p, own, made);
  const bool *has = kl_find_ops(p->m, kl_needs_kernel, &p->arena), *run = kl_find_run(p->m, has, &p->arena);
  KL_TRY(kl_module_unbranch(p->cx, p->m, kl_needs_kernel, run, &made));
  if (made) {
    replace(p, own, made);
    has = kl_find_ops(p->m, kl_needs_kernel, &p->arena), run = kl_find_run(p->m, has, &p->arena);
  }
  KL_TRY(kl_plan_check_module(p->cx, p->m));
  run = kl_find_fused(p->cx, p->m, has, &p->arena);
  kl_fused *how = KL_NEW_N(&p->arena, kl_fused, p->m->ncomp + 1);
  uint32_t n = 0, groups = 0;
  for (uint32_t i = 0; i < p->m->ncomp; i++) {
    if (!run[i]) continue;
    kl_fuse_plan(p->cx, p->m, i, has, &p->arena, &how[n], p->why);
    groups += how[n++].ngroups;
  }
  if (!groups) return KILN_OK;
  KL_TRY(kl_module_fuse(p->cx, p->m, n, how, &made));
  replace(p, own, made);
  return KILN_OK;
}

// --- pieces -------------------------------------------------------------------------------------------------------

// Does some kernel make it whole?
static bool is_made(pieces *p, const kl_comp *c) {
  kl_plan_params how = {.target = p->target,
                        .name = "trial",
                        .align = p->params->argument_align,
                        .deterministic = p->params->deterministic};
  kl_plan *plan;
  kl_diag_mark before = kl_diag_here(p->cx);
  kiln_status st = kl_plan_make(p->cx, p->m, c, &how, &p->arena, &plan);
  if (st == KILN_OK) kl_plan_free(plan);
  kl_diag_forget(p->cx, before, kl_diag_here(p->cx));
  return st == KILN_OK;
}

static void cut_unit(pieces *p, const kl_comp *c, const kl_instr *fusion, uint32_t in) {
  bool *cut = KL_NEW_N(&p->arena, bool, c->ninstr);
  p->how.apart = p->trial == KL_ALL_APART || (p->trial == KL_APART_TOO && !is_made(p, c));
  if (kl_plan_pieces(p->cx, p->m, c, &p->how, cut)) VEC_PUSH(p->cx, &p->splits, ((kl_split){fusion, c, cut, in}));
}

static kiln_status cut_units(pieces *p) {
  kl_unit *units;
  uint32_t n;
  KL_TRY(kl_plan_units(p->cx, p->m, NULL, &p->arena, &units, &n));
  for (uint32_t i = 0; i < n; i++) cut_unit(p, units[i].comp, units[i].from, units[i].in);
  return KILN_OK;
}

// Who asks for shared memory has the order of reads and writes in his hands.
static kiln_status choose_layouts(pieces *p, kiln_module **own, bool *changed) {
  kl_layouts_params how = {.target = p->target};
  kiln_module *made;
  if (p->params->fusion || p->how.least) return KILN_OK;
  KL_TRY(kl_target_parse(p->cx, "sm_90", &how.measure));
  KL_TRY(kl_module_layouts(p->cx, p->m, &how, p->why, &made));
  *changed |= made != NULL;
  replace(p, own, made);
  return KILN_OK;
}

// A fusion that is picked is cut as if it were ENTRY, which may call other fusions.
static kiln_status make(pieces *p, kiln_module **out) {
  const char *fusion = p->params->fusion;
  kiln_module *own = NULL, *made = NULL;
  kiln_status st = fusion ? kiln_module_extract(p->cx, p->m, fusion, &made) : KILN_OK;
  if (st == KILN_OK) replace(p, &own, made), made = NULL;
  if (st == KILN_OK && fusion) st = kl_plan_check_effects(p->cx, p->m);
  bool mixed = st == KILN_OK && !fusion && (has_effects(p) || is_mixed(p));
  if (st == KILN_OK && !mixed) st = kl_module_unbranch(p->cx, p->m, kl_is_apart, NULL, &made);
  bool changed = !fusion || made; // a fusion that is picked as it is, is picked by who compiles it
  if (st == KILN_OK) replace(p, &own, made), made = NULL;
  if (st == KILN_OK && mixed) st = fuse(p, &own);
  if (st == KILN_OK && fusion)
    cut_unit(p, kl_plan_inline(p->cx, p->m, &p->m->comp[p->m->entry], &p->arena), NULL, p->m->entry);
  if (st == KILN_OK && !fusion) st = cut_units(p);
  if (st == KILN_OK && p->splits.n) st = kl_module_split(p->cx, p->m, (uint32_t)p->splits.n, p->splits.p, &made);
  changed |= made != NULL;
  if (st == KILN_OK) replace(p, &own, made);
  if (st == KILN_OK) st = choose_layouts(p, &own, &changed);
  if (st == KILN_OK && changed) *out = own, own = NULL;
  kiln_module_destroy(&own);
  return st;
}

kiln_status kl_pieces_make(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params, const kl_target *target,
                           kl_trial trial, kl_sb *why, kiln_module **out) {
  *out = NULL;
  if (params->max_count) return kl_plan_check_effects(cx, m);
  bool aliased = params->alias_count || m->header.naliases; // one kernel has the order of reads and writes in its hands
  pieces p = {.cx = cx, .m = m, .params = params, .target = *target, .trial = trial, .why = why};
  p.how = (kl_pieces_params){.target = *target, .least = aliased};
  kl_arena_init(&p.arena, cx);
  kiln_status st = make(&p, out);
  VEC_FREE(cx, &p.splits);
  kl_arena_free(&p.arena);
  return st;
}
