// Walks that make no steps: what a computation would want, and how often.

#include "lower/choose/walk/impl.h"

typedef kl_wanted node;
typedef kl_walk walk;
typedef kl_node_needs needs;

// --- looking --------------------------------------------------------------------------------------------------------

// A walk that makes no steps. Needs are taken one after the other: what counts is which there are, not when.
typedef struct looking {
  kl_body box;
  kl_writer writer;
  walk w;
} looking;

static void look_begin(looking *x, kl_ctx *cx, kl_plan *plan, kl_slots *slots, uint32_t nvars, const int64_t *extents) {
  kl_var *vars = KL_NEW_N(plan->arena, kl_var, nvars + 1);
  for (uint32_t v = 0; v < nvars; v++) vars[v] = (kl_var){KL_BIND_STEP, extents[v], ""};
  x->box = (kl_body){.nvars = nvars, .vars = vars, .width = 1};
  kl_write_begin(&x->writer, cx, plan, &x->box);
  kl_walk_begin(&x->w, cx, plan, slots, &x->writer);
  x->w.looks = true;
}

static void look_end(looking *x) {
  kl_walk_free(&x->w);
  kl_write_free(&x->writer);
}

static void note_load(walk *w, const node *n, const kl_instr *in, kl_seen *x) {
  if (!kl_is_loaded(in, n->leaf) || (in->op == KL_OP_PARAMETER && n->frame)) return;
  const kl_shape *s;
  if (in->op == KL_OP_PARAMETER) {
    x->slot = w->slots->param_base[in->number] + n->leaf;
    s = w->slots->v.p[x->slot].shape;
  } else {
    s = in->literal[n->leaf].shape;
  }
  x->place = kl_dom_simplify(w->w->body->domain, kl_position_of(w->affs, s, n->index));
}

static void see(walk *w, const node *n, const needs *d, kl_sights *out) {
  const kl_instr *in = &w->frames.p[n->frame].comp->instr[n->instr];
  kl_seen x = {.frame = n->frame,
               .instr = n->instr,
               .leaf = n->leaf,
               .guard = n->guard,
               .dtype = kl_shape_leaf(in->shape, n->leaf)->dtype,
               .rank = n->rank,
               .index = n->index,
               .nneeds = (uint32_t)d->nodes.n,
               .needs = kl_arena_dup(w->arena, d->nodes.p, d->nodes.n * sizeof *d->nodes.p),
               .slot = KL_NONE};
  note_load(w, n, in, &x);
  VEC_PUSH(w->cx, &out->v, x);
}

kiln_status kl_walk_look(kl_ctx *cx, kl_plan *plan, kl_slots *slots, uint32_t nvars, const int64_t *extents, uint32_t n,
                         kl_look *looks, kl_sights *out) {
  looking x;
  kiln_status st = KILN_OK;
  look_begin(&x, cx, plan, slots, nvars, extents);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t rank = kl_shape_leaf(plan->comp->instr[looks[i].instr].shape, looks[i].leaf)->rank;
    looks[i].seen = kl_want(&x.w, 0, looks[i].instr, looks[i].leaf, KL_NONE, rank, looks[i].index);
  }
  for (size_t i = 0; st == KILN_OK && i < x.w.nodes.n && i <= KL_MAX_NODES && !x.w.unsound; i++) {
    node *at = x.w.nodes.p[i];
    const kl_comp *c = x.w.frames.p[at->frame].comp;
    needs d = {0};
    bool walked = kl_is_walked(&c->instr[at->instr]);
    if (walked) st = kl_plan_check_op(cx, plan->module, c, &c->instr[at->instr]);
    if (walked && st == KILN_OK) kl_needs_of_node(&x.w, at, &d);
    if (st == KILN_OK && !x.w.unsound) see(&x.w, at, &d, out);
    kl_node_needs_free(&x.w, &d);
  }
  look_end(&x);
  return st;
}

// --- cuts ---------------------------------------------------------------------------------------------------------

// The place `at` of an index, which begins something else: dim d of these expressions is the results' index in
// dimension d.
static void add_cut(walk *w, const kl_aff *e, int64_t at, bool pads, kl_cuts *out) {
  if (e->n != 1 || e->terms[0].atom->kind != KL_AFF_DIM || (e->terms[0].coef != 1 && e->terms[0].coef != -1)) return;
  const kl_aff_atom *dim = e->terms[0].atom;
  kl_interval within = kl_dom_interval(w->w->body->domain, kl_aff_of(w->affs, dim));
  at = e->terms[0].coef == 1 ? at - e->c : e->c - at + 1;
  if (at > 0 && at <= within.hi) VEC_PUSH(w->cx, &out->v, (kl_cut){dim->var, at, pads});
}

static void add_cuts(walk *w, const node *n, kl_cuts *out) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  const int64_t *offsets = kl_operand_offsets(w, c, in);
  for (uint32_t i = 1; i < in->noperands; i++) add_cut(w, n->index[in->dims[0]], offsets[i], false, out);
}

// Where what is padded begins and ends, if it lies together.
static void add_padding_cuts(walk *w, const node *n, kl_cuts *out) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  const kl_shape *s = kl_operand(c, in, 0)->shape;
  for (uint32_t d = 0; d < n->rank; d++) {
    const kl_pad_dim *p = &in->pad[d];
    if (p->interior) continue;
    add_cut(w, n->index[d], p->low, true, out);
    add_cut(w, n->index[d], p->low + s->dims[d], true, out);
  }
}

static kiln_status visit_all(walk *w, uint32_t operands, kl_cuts *out) {
  for (size_t i = 0; i < w->nodes.n && w->nodes.n <= KL_MAX_NODES; i++) {
    node *n = w->nodes.p[i];
    const kl_comp *c = w->frames.p[n->frame].comp;
    const kl_instr *in = &c->instr[n->instr];
    KL_TRY(kl_plan_check_op(w->cx, w->plan->module, c, in));
    out->shared += n->guard == KL_NONE;
    if (kl_op_table[in->op].kind == KL_KIND_CONCATENATE && in->noperands >= operands) add_cuts(w, n, out);
    if (kl_op_table[in->op].kind == KL_KIND_PAD && operands <= 2) add_padding_cuts(w, n, out);
    needs d = {0};
    kl_needs_of_node(w, n, &d);
    kl_node_needs_free(w, &d);
    if (w->unsound) break; // walking the body says so
  }
  return KILN_OK;
}

kiln_status kl_walk_cuts(kl_ctx *cx, kl_plan *plan, kl_slots *slots, const kl_domain *domain, uint32_t operands,
                         kl_cuts *out) {
  const kl_comp *c = plan->comp;
  uint32_t nroots = (uint32_t)kl_shape_leaf_count(kl_root(c)->shape);
  const kl_shape *s = slots->v.p[slots->nargs - nroots + domain->leaves[0]].shape; // that of all
  const kl_aff *index[KILN_MAX_RANK];
  looking x;
  for (uint32_t d = 0; d < s->rank; d++) index[d] = kl_aff_dim(plan->affs, d);
  look_begin(&x, cx, plan, slots, s->rank, s->dims);
  for (uint32_t i = 0; i < domain->n; i++) kl_want(&x.w, 0, c->root, domain->leaves[i], KL_NONE, s->rank, index);
  kiln_status st = visit_all(&x.w, operands, out);
  look_end(&x);
  return st;
}

// --- how often ----------------------------------------------------------------------------------------------------

static void look_up(walk *w, kl_survey *s) {
  for (size_t i = 0; i < w->nodes.n && w->nodes.n <= s->most && !w->unsound; i++) {
    const node *n = w->nodes.p[i];
    const kl_instr *in = &w->frames.p[n->frame].comp->instr[n->instr];
    if (n->frame == 0) s->times[n->instr]++;
    if (!kl_is_walked(in) || (n->frame == 0 && s->given[n->instr])) continue;
    needs d = {0};
    kl_needs_of_node(w, n, &d);
    kl_node_needs_free(w, &d);
  }
  s->all = s->all && w->nodes.n <= s->most;
}

void kl_walk_survey(kl_ctx *cx, kl_plan *plan, kl_slots *slots, uint32_t n, const kl_root_leaf *roots, kl_survey *s) {
  const kl_shape **shapes = KL_NEW_N(plan->arena, const kl_shape *, n + 1u);
  for (uint32_t i = 0; i < n; i++) shapes[i] = kl_shape_leaf(plan->comp->instr[roots[i].instr].shape, roots[i].leaf);
  s->all = true;
  for (uint32_t i = 0; i < n; i++) {
    const kl_shape *first = shapes[i];
    bool done = !kl_shape_is_array(first) || !first->count;
    for (uint32_t k = 0; k < i && !done; k++) done = kl_shape_same_dims(shapes[k], first);
    if (done) continue;
    const kl_aff *index[KILN_MAX_RANK];
    looking x;
    for (uint32_t d = 0; d < first->rank; d++) index[d] = kl_aff_dim(plan->affs, d);
    look_begin(&x, cx, plan, slots, first->rank, first->dims);
    for (uint32_t k = i; k < n; k++)
      if (kl_shape_same_dims(shapes[k], first))
        kl_want(&x.w, 0, roots[k].instr, roots[k].leaf, KL_NONE, first->rank, index);
    look_up(&x.w, s);
    look_end(&x);
  }
}
