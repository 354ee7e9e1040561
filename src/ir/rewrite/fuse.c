// Instructions of a computation put into fusions, as somebody has decided.
//
// Each group becomes a piece; then a new version of the computation that they are taken from, which calls them.
// Everything takes time by the size of what is made.
#include "ir/rewrite/fuse.h"

#include "ir/rewrite/piece.h"

#define NONE UINT32_MAX

typedef struct group {
  kl_piece piece;
  uint32_t nresults;
  bool open;               // what it needs is being emitted
  const uint32_t *results; // instructions of the computation, ascending
} group;

typedef struct fuser {
  kl_piecer p;
  // Of the computation that is being rewritten.
  const kl_comp *c;
  const kl_fused *how;
  group *groups;
  uint32_t *value; // by instruction: in the new version, NONE: not yet
  bool circle;     // some groups need each other
} fuser;

// --- groups ---------------------------------------------------------------------------------------------------------

typedef struct reader {
  const kl_fused *how;
  uint32_t group;
} reader;

static bool is_read(const void *arg, uint32_t i) {
  const reader *r = arg;
  return r->how->given[i] || (r->how->home[i] != KL_NO_GROUP && r->how->home[i] != r->group);
}

static void make_group(fuser *f, uint32_t g) {
  group *x = &f->groups[g];
  const kl_instr *named = &f->c->instr[x->results[x->nresults - 1]];
  x->piece = kl_make_piece(&f->p, x->nresults, x->results, is_read, &(reader){f->how, g}, "fused_", named);
}

// Results by group: counted, then listed.
static void list_results(fuser *f) {
  const kl_fused *how = f->how;
  uint32_t **at = KL_NEW_N(&f->p.scratch, uint32_t *, how->ngroups + 1);
  for (uint32_t i = 0; i < f->c->ninstr; i++)
    if (how->home[i] != KL_NO_GROUP) f->groups[how->home[i]].nresults++;
  for (uint32_t g = 0; g < how->ngroups; g++)
    f->groups[g].results = at[g] = KL_NEW_N(&f->p.scratch, uint32_t, f->groups[g].nresults + 1);
  for (uint32_t i = 0; i < f->c->ninstr; i++)
    if (how->home[i] != KL_NO_GROUP) *at[how->home[i]]++ = i;
}

// --- the computation that calls them --------------------------------------------------------------------------------

static void call_group(fuser *f, uint32_t g) {
  const group *x = &f->groups[g];
  const kl_shape *shape = kl_root(&f->p.comps.p[x->piece.comp])->shape;
  uint32_t made = kl_call_piece(&f->p, &x->piece, x->piece.named->name, shape, f->value);
  for (uint32_t i = 0; i < x->nresults; i++)
    f->value[x->results[i]] =
        x->nresults == 1 ? made : kl_emit_element(&f->p.e, made, i, f->c->instr[x->results[i]].name);
}

// Puts what is needed for it and is not there on the stack; false: all is there.
static bool wants(fuser *f, uint32_t i) {
  uint32_t g = f->how->home[i];
  const uint32_t *needed = g == KL_NO_GROUP ? f->c->instr[i].operands : f->groups[g].piece.inputs;
  size_t before = f->p.stack.n;
  for (uint32_t k = g == KL_NO_GROUP ? f->c->instr[i].noperands : f->groups[g].piece.ninputs; k-- > 0;)
    if (f->value[needed[k]] == NONE) VEC_PUSH(f->p.cx, &f->p.stack, needed[k]);
  return f->p.stack.n > before;
}

static void emit_from(fuser *f, uint32_t root) {
  VEC_PUSH(f->p.cx, &f->p.stack, root);
  while (f->p.stack.n && !f->circle) {
    uint32_t i = f->p.stack.p[f->p.stack.n - 1], g = f->how->home[i];
    if (f->value[i] == NONE && wants(f, i)) {
      f->circle = g != KL_NO_GROUP && f->groups[g].open;
      if (g != KL_NO_GROUP) f->groups[g].open = true;
      continue;
    }
    f->p.stack.n--;
    if (f->value[i] != NONE) continue;
    if (g == KL_NO_GROUP)
      f->value[i] = kl_emit_again(&f->p, &f->c->instr[i], f->value);
    else
      call_group(f, g);
  }
}

static void rewrite(fuser *f, const kl_fused *how) {
  const kl_comp *c = &f->p.m->comp[how->comp];
  f->c = c;
  f->how = how;
  f->groups = KL_NEW_N(&f->p.scratch, group, how->ngroups + 1);
  f->value = KL_NEW_N(&f->p.scratch, uint32_t, c->ninstr + 1);
  kl_take_apart(&f->p, c);
  list_results(f);
  for (uint32_t g = 0; g < how->ngroups; g++)
    if (f->groups[g].nresults) make_group(f, g);
  for (uint32_t i = 0; i < c->ninstr; i++) f->value[i] = NONE;
  kl_emit_begin(&f->p.e);
  for (uint32_t i = 0; i < c->nparams; i++) emit_from(f, c->params[i]);
  emit_from(f, c->root);
  if (!f->circle) kl_put_in_place(&f->p, how->comp, f->value[c->root]);
}

kiln_status kl_module_fuse(kl_ctx *cx, const kiln_module *m, uint32_t n, const kl_fused *how, kiln_module **out) {
  fuser f = {.how = NULL};
  kl_piecer_begin(&f.p, cx, m);
  for (uint32_t i = 0; i < n && !f.circle; i++) rewrite(&f, &how[i]);
  kiln_status st = kl_piecer_end(&f.p, f.circle, out);
  if (!f.circle) return st;
  return kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "fusions need each other in a circle, please report it");
}
