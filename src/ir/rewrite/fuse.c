// Instructions of a computation put into fusions, as somebody has decided.
//
// Each group becomes a computation behind those that are there; then a new version of the computation that they are
// taken from, which calls them. Everything takes time by the size of what is made.
#include "ir/rewrite/fuse.h"

#include <stdlib.h>

#define NONE UINT32_MAX

typedef VEC(uint32_t) list;

typedef struct group {
  uint32_t comp;
  uint32_t nresults, ninputs;
  bool open;                        // what it needs is being emitted
  const uint32_t *results, *inputs; // instructions of the computation, ascending
} group;

typedef struct fuser {
  kl_ctx *cx;
  kiln_module *m; // a fork
  kl_emitter e;
  kl_arena scratch;
  VEC(kl_comp) comps;   // those of the fork, then the ones that are made
  uint32_t *made_of;    // by computation: what stands in its place
  kl_by_symbol is_comp; // names of computations; 0: free
  kl_by_symbol counter; // the last number tried behind this name
  // Of the computation that is being rewritten.
  const kl_comp *c;
  const kl_fused *how;
  group *groups;
  uint32_t *seen;  // by instruction: the last group whose body it was found in + 1
  uint32_t *value; // by instruction: in the new version, NONE: not yet
  bool circle;     // some groups need each other
  list stack;
} fuser;

// --- names of computations ------------------------------------------------------------------------------------------

static uint32_t *at_symbol(fuser *f, kl_by_symbol *v, uint32_t symbol) {
  while (v->n <= symbol) VEC_PUSH(f->cx, v, 0);
  return &v->p[symbol];
}

// Distinct, and like this one with something before it.
static uint32_t comp_name(fuser *f, const char *before, uint32_t name) {
  kl_sb text;
  kl_sb_init(&text, f->cx);
  kl_sb_puts(&text, before);
  kl_sb_put(&text, kl_symbol_text(&f->m->names, name));
  uint32_t base = kl_intern(&f->m->names, (kl_str){text.p, text.n}), made = base;
  size_t stem = text.n;
  while (*at_symbol(f, &f->is_comp, made)) {
    text.n = stem;
    kl_sbf(&text, ".%u", ++*at_symbol(f, &f->counter, base));
    made = kl_intern(&f->m->names, (kl_str){text.p, text.n});
  }
  kl_sb_free(&text);
  *at_symbol(f, &f->is_comp, made) = 1;
  return made;
}

static uint32_t add_comp(fuser *f, uint32_t name, uint32_t root, kl_span span) {
  kl_comp c = {.name = name, .span = span};
  kl_emit_end(&f->e, &c, root);
  VEC_PUSH(f->cx, &f->comps, c);
  return (uint32_t)f->comps.n - 1;
}

// --- groups
// -----------------------------------------------------------------------------------------------------------

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static bool is_read(const fuser *f, uint32_t i, uint32_t g) {
  return f->how->given[i] || (f->how->home[i] != KL_NO_GROUP && f->how->home[i] != g);
}

// All that the group's results need, up to what it reads, ascending.
static void find_body(fuser *f, uint32_t g, list *body) {
  const group *x = &f->groups[g];
  for (uint32_t i = 0; i < x->nresults; i++) VEC_PUSH(f->cx, &f->stack, x->results[i]);
  while (f->stack.n) {
    uint32_t i = f->stack.p[--f->stack.n];
    if (f->seen[i] == g + 1) continue;
    f->seen[i] = g + 1;
    VEC_PUSH(f->cx, body, i);
    if (is_read(f, i, g)) continue;
    for (uint32_t o = 0; o < f->c->instr[i].noperands; o++) VEC_PUSH(f->cx, &f->stack, f->c->instr[i].operands[o]);
  }
  qsort(body->p, body->n, sizeof *body->p, ascending);
}

static kl_instr parameter(const kl_instr *like, uint32_t number) {
  return (kl_instr){.op = KL_OP_PARAMETER,
                    .name = like->name,
                    .shape = like->shape,
                    .number = number,
                    .more = &kl_no_more,
                    .span = like->span};
}

static kl_instr with_operands(fuser *f, const kl_instr *in, const uint32_t *value) {
  kl_instr own = *in;
  uint32_t *operands = KL_NEW_N(&f->m->arena, uint32_t, in->noperands + 1);
  for (uint32_t o = 0; o < in->noperands; o++) operands[o] = value[in->operands[o]];
  own.operands = operands;
  own.ncontrol = 0;
  return own;
}

static uint32_t emit_tuple(fuser *f, const kl_instr *named, uint32_t n, const uint32_t *values) {
  const kl_shape **shapes = KL_NEW_N(&f->scratch, const kl_shape *, n + 1);
  for (uint32_t i = 0; i < n; i++) shapes[i] = f->e.instrs.p[values[i]].shape;
  kl_instr in = {.op = KL_OP_TUPLE,
                 .name = named->name,
                 .shape = kl_shape_tuple(f->m, n, shapes),
                 .noperands = n,
                 .operands = kl_arena_dup(&f->m->arena, values, n * sizeof *values),
                 .more = &kl_no_more,
                 .span = named->span};
  return kl_emit(&f->e, &in);
}

static const kl_instr *named_for(const fuser *f, const group *g) {
  return &f->c->instr[g->results[g->nresults - 1]];
}

static void make_group(fuser *f, uint32_t g) {
  group *x = &f->groups[g];
  list body = {0};
  find_body(f, g, &body);
  uint32_t *value = f->value, ninputs = 0; // of this body; they are set again before they are looked at elsewhere
  uint32_t *inputs = KL_NEW_N(&f->scratch, uint32_t, body.n + 1),
           *results = KL_NEW_N(&f->scratch, uint32_t, x->nresults);
  kl_emit_begin(&f->e);
  for (size_t b = 0; b < body.n; b++) {
    uint32_t i = body.p[b];
    kl_instr in = f->c->instr[i];
    if (is_read(f, i, g)) {
      inputs[ninputs] = i;
      in = parameter(&in, ninputs++);
    } else {
      in = with_operands(f, &in, value);
    }
    value[i] = kl_emit(&f->e, &in);
  }
  for (uint32_t i = 0; i < x->nresults; i++) results[i] = value[x->results[i]];
  const kl_instr *named = named_for(f, x);
  uint32_t root = x->nresults == 1 ? results[0] : emit_tuple(f, named, x->nresults, results);
  x->ninputs = ninputs;
  x->inputs = inputs;
  x->comp = add_comp(f, comp_name(f, "fused_", named->name), root, named->span);
  VEC_FREE(f->cx, &body);
}

// Results by group: counted, then listed.
static void list_results(fuser *f) {
  const kl_fused *how = f->how;
  uint32_t **at = KL_NEW_N(&f->scratch, uint32_t *, how->ngroups + 1);
  for (uint32_t i = 0; i < f->c->ninstr; i++)
    if (how->home[i] != KL_NO_GROUP) f->groups[how->home[i]].nresults++;
  for (uint32_t g = 0; g < how->ngroups; g++)
    f->groups[g].results = at[g] = KL_NEW_N(&f->scratch, uint32_t, f->groups[g].nresults + 1);
  for (uint32_t i = 0; i < f->c->ninstr; i++)
    if (how->home[i] != KL_NO_GROUP) *at[how->home[i]]++ = i;
}

// --- the computation that calls them --------------------------------------------------------------------------------

static void call_group(fuser *f, uint32_t g) {
  const group *x = &f->groups[g];
  const kl_instr *named = named_for(f, x);
  uint32_t *operands = KL_NEW_N(&f->m->arena, uint32_t, x->ninputs + 1);
  for (uint32_t i = 0; i < x->ninputs; i++) operands[i] = f->value[x->inputs[i]];
  kl_instr in = {.op = KL_OP_FUSION,
                 .name = named->name,
                 .shape = kl_root(&f->comps.p[x->comp])->shape,
                 .noperands = x->ninputs,
                 .operands = operands,
                 .ncalled = 1,
                 .called = kl_arena_dup(&f->m->arena, &x->comp, sizeof x->comp),
                 .given = 3,
                 .more = &kl_no_more,
                 .span = named->span};
  uint32_t made = kl_emit(&f->e, &in);
  for (uint32_t i = 0; i < x->nresults; i++)
    f->value[x->results[i]] =
        x->nresults == 1 ? made : kl_emit_element(&f->e, made, i, f->c->instr[x->results[i]].name);
}

static void emit_kept(fuser *f, uint32_t i) {
  kl_instr in = with_operands(f, &f->c->instr[i], f->value);
  uint32_t *called = KL_NEW_N(&f->m->arena, uint32_t, in.ncalled + 1);
  for (uint32_t k = 0; k < in.ncalled; k++) called[k] = f->made_of[in.called[k]];
  in.called = called;
  f->value[i] = kl_emit(&f->e, &in);
}

// Puts what is needed for it and is not there on the stack; false: all is there.
static bool wants(fuser *f, uint32_t i) {
  uint32_t g = f->how->home[i];
  const uint32_t *needed = g == KL_NO_GROUP ? f->c->instr[i].operands : f->groups[g].inputs;
  size_t before = f->stack.n;
  for (uint32_t k = g == KL_NO_GROUP ? f->c->instr[i].noperands : f->groups[g].ninputs; k-- > 0;)
    if (f->value[needed[k]] == NONE) VEC_PUSH(f->cx, &f->stack, needed[k]);
  return f->stack.n > before;
}

static void emit_from(fuser *f, uint32_t root) {
  VEC_PUSH(f->cx, &f->stack, root);
  while (f->stack.n && !f->circle) {
    uint32_t i = f->stack.p[f->stack.n - 1], g = f->how->home[i];
    if (f->value[i] == NONE && wants(f, i)) {
      f->circle = g != KL_NO_GROUP && f->groups[g].open;
      if (g != KL_NO_GROUP) f->groups[g].open = true;
      continue;
    }
    f->stack.n--;
    if (f->value[i] != NONE) continue;
    if (g == KL_NO_GROUP)
      emit_kept(f, i);
    else
      call_group(f, g);
  }
}

static void rewrite(fuser *f, const kl_fused *how) {
  const kl_comp *c = &f->m->comp[how->comp];
  f->c = c;
  f->how = how;
  f->groups = KL_NEW_N(&f->scratch, group, how->ngroups + 1);
  f->seen = KL_NEW_N(&f->scratch, uint32_t, c->ninstr + 1);
  f->value = KL_NEW_N(&f->scratch, uint32_t, c->ninstr + 1);
  list_results(f);
  for (uint32_t g = 0; g < how->ngroups; g++)
    if (f->groups[g].nresults) make_group(f, g);
  for (uint32_t i = 0; i < c->ninstr; i++) f->value[i] = NONE;
  kl_emit_begin(&f->e);
  for (uint32_t i = 0; i < c->nparams; i++) emit_from(f, c->params[i]);
  emit_from(f, c->root);
  if (f->circle) return;
  f->made_of[how->comp] = add_comp(f, c->name, f->value[c->root], c->span);
  f->comps.p[how->comp].name = comp_name(f, "", c->name); // fusions may call it still
}

kiln_status kl_module_fuse(kl_ctx *cx, const kiln_module *m, uint32_t n, const kl_fused *how, kiln_module **out) {
  fuser f = {.cx = cx, .m = kl_fork(cx, m)};
  f.e.m = f.m;
  kl_arena_init(&f.scratch, cx);
  f.made_of = KL_NEW_N(&f.scratch, uint32_t, m->ncomp + 1);
  for (uint32_t i = 0; i < m->ncomp; i++) {
    f.made_of[i] = i;
    VEC_PUSH(cx, &f.comps, f.m->comp[i]);
    *at_symbol(&f, &f.is_comp, m->comp[i].name) = 1;
  }
  for (uint32_t i = 0; i < n && !f.circle; i++) rewrite(&f, &how[i]);
  f.m->entry = f.made_of[m->entry];
  f.m->ncomp = (uint32_t)f.comps.n;
  f.m->comp = VEC_FREEZE(cx, &f.m->arena, &f.comps);
  VEC_FREE(cx, &f.is_comp);
  VEC_FREE(cx, &f.counter);
  VEC_FREE(cx, &f.stack);
  kl_emit_free(&f.e);
  kl_arena_free(&f.scratch);
  if (!f.circle) return kl_finish_fork(cx, f.m, out);
  kiln_module_destroy(&f.m);
  return kl_fail(cx, KILN_E_INTERNAL, KL_NOWHERE, "fusions need each other in a circle, please report it");
}
