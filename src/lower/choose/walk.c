// From the roots of a computation to the steps of a body.
//
// A node is an instruction wanted at an index under a guard; nodes are interned, so what two users want alike is made
// once. Index transforms make no step: their node takes the step of the operand's node at the mapped index. The walk
// keeps its own stack, because a fusion may be thousands of operations deep.

#include "lower/choose/walk.h"

// A straight-line body beyond this is refused: ptxas takes a minute for one of 16,000 steps.
enum { KL_MAX_STEPS = 16384, KL_MAX_NODES = 1 << 18 };

typedef struct node {
  uint32_t frame, instr, leaf, guard;
  uint32_t step; // KL_NONE until made
  bool open;     // its operands have been asked for
  uint32_t rank;
  const kl_aff *index[];
} node;

typedef struct walk {
  kl_ctx *cx;
  kl_arena *arena;
  kl_plan *plan;
  kl_slots *slots;
  kl_affs *affs;
  kl_guards guards;
  const kl_aff *unsound; // an index that cannot be computed, NULL if there is none
  VEC(kl_frame) frames;
  VEC(node *) nodes;
  kl_ids frame_ids, node_ids;
  VEC(kl_step) steps;
  VEC(uint32_t) stack;
} walk;

// --- nodes --------------------------------------------------------------------------------------------------------

static uint64_t node_hash(const node *n) {
  uint64_t h = kl_hash(&(uint32_t[5]){n->frame, n->instr, n->leaf, n->guard, n->rank}, 20, 3);
  for (uint32_t i = 0; i < n->rank; i++) h = kl_hash(&n->index[i]->id, sizeof(uint32_t), h);
  return h;
}

static bool node_same(const node *a, const node *b) {
  return a->frame == b->frame && a->instr == b->instr && a->leaf == b->leaf && a->guard == b->guard &&
         a->rank == b->rank && (a->rank == 0 || memcmp(a->index, b->index, a->rank * sizeof(a->index[0])) == 0);
}

// An entry that is looked for in an array of the walk's.
typedef struct wanted {
  const walk *w;
  const void *what;
} wanted;

static bool is_node(const void *arg, uint32_t id) {
  const wanted *x = arg;
  return node_same(x->w->nodes.p[id], x->what);
}

static uint32_t want(walk *w, uint32_t fr, uint32_t instr, uint32_t leaf, uint32_t guard, uint32_t rank,
                     const kl_aff *const *index) {
  node *n = kl_arena_alloc(w->arena, sizeof *n + rank * sizeof(index[0]));
  n->frame = fr;
  n->instr = instr;
  n->leaf = leaf;
  n->guard = guard;
  n->step = KL_NONE;
  n->rank = rank;
  for (uint32_t i = 0; i < rank; i++) {
    n->index[i] = kl_dom_simplify(w->guards.domain, index[i]);
    if (!kl_is_sound(n->index[i])) w->unsound = n->index[i];
  }
  uint32_t id = kl_ids_find(w->cx, &w->node_ids, node_hash(n), is_node, &(wanted){w, n});
  if (id == w->nodes.n) VEC_PUSH(w->cx, &w->nodes, n);
  return id;
}

static bool is_frame(const void *arg, uint32_t id) {
  const wanted *x = arg;
  const kl_frame *f = x->what, *g = &x->w->frames.p[id];
  return f->parent == g->parent && f->caller == g->caller;
}

static uint32_t enter(walk *w, uint32_t parent, uint32_t caller, const kl_comp *comp) {
  kl_frame f = {comp, parent, caller};
  uint64_t hash = kl_hash(&(uint32_t[2]){parent, caller}, 8, 5);
  uint32_t id = kl_ids_find(w->cx, &w->frame_ids, hash, is_frame, &(wanted){w, &f});
  if (id == w->frames.n) VEC_PUSH(w->cx, &w->frames, f);
  return id;
}

// --- what a node needs --------------------------------------------------------------------------------------------

// The nodes a node depends on. `alias`: its value is that of the only one. Operand i of a choice needs guards[i].
typedef struct needs {
  bool alias;
  VEC(uint32_t) nodes;
  VEC(uint32_t) guards;
} needs;

static void need(walk *w, needs *d, const node *n, uint32_t operand, uint32_t leaf, uint32_t guard, uint32_t rank,
                 const kl_aff *const *index) {
  const kl_instr *in = &w->frames.p[n->frame].comp->instr[n->instr];
  VEC_PUSH(w->cx, &d->nodes, want(w, n->frame, in->operands[operand], leaf, guard, rank, index));
}

static kl_reader reader_at(walk *w, const node *n) {
  return (kl_reader){w->affs, w->plan->module, w->frames.p, n->frame, NULL};
}

// One node for each value of the need's range variable, if it has one.
static void need_each(walk *w, needs *d, const node *n, const kl_need *x) {
  int64_t times = x->nranges ? x->ranges[0].in.hi + 1 : 1;
  const kl_aff *index[KILN_MAX_RANK];
  for (int64_t i = 0; i < times; i++) {
    const kl_aff *at[] = {kl_aff_const(w->affs, i)};
    kl_aff_subst s = {.to = {[KL_AFF_RANGE] = at}, .n = {[KL_AFF_RANGE] = x->nranges}};
    kl_aff_replace(w->affs, &s, x->index, x->nindex, index);
    need(w, d, n, x->operand, x->leaf, n->guard, x->nindex, index);
  }
}

static void need_all(walk *w, needs *d, const node *n) {
  kl_reader r = reader_at(w, n);
  kl_needs all = kl_needs_of(&r, n->instr, n->leaf, n->index);
  for (uint32_t i = 0; i < all.n; i++) need_each(w, d, n, &all.p[i]);
}

static bool is_choice(const void *arg, uint32_t id) {
  const wanted *x = arg;
  return x->w->slots->concatenates.p[id].instr == x->what;
}

// Where the operands of a concatenate begin, and behind them the end.
static const int64_t *operand_offsets(walk *w, const kl_comp *c, const kl_instr *in) {
  kl_slots *s = w->slots;
  uint64_t hash = kl_hash(&in, sizeof in, 13); // decides where it is found only
  uint32_t id = kl_ids_find(w->cx, &s->concatenate_ids, hash, is_choice, &(wanted){w, in});
  if (id < s->concatenates.n) return s->concatenates.p[id].offsets;
  int64_t *offsets = KL_NEW_N(w->arena, int64_t, in->noperands + 1u);
  for (uint32_t i = 0; i < in->noperands; i++)
    offsets[i + 1] = offsets[i] + kl_operand(c, in, i)->shape->dims[in->dims[0]];
  VEC_PUSH(w->cx, &s->concatenates, (kl_concatenate){in, offsets});
  return offsets;
}

// The first operand with an index of `at` or above.
static uint32_t operand_at(const int64_t *offsets, uint32_t n, int64_t at) {
  uint32_t lo = 0, hi = n;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (offsets[mid + 1] > at)
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

// Needs an operand under its constraints, if they can hold; true: they always do, and nothing after it is reached.
static bool need_under(walk *w, needs *d, const node *n, const kl_need *x) {
  uint32_t guard = n->guard;
  bool never = false;
  for (uint32_t i = 0; !never && i < x->nconstraints; i++)
    guard =
        kl_guard_and(&w->guards, guard, x->constraints[i].e, x->constraints[i].in.lo, x->constraints[i].in.hi, &never);
  if (never) return false;
  need(w, d, n, x->operand, x->leaf, guard, x->nindex, x->index);
  VEC_PUSH(w->cx, &d->guards, guard);
  return guard == n->guard;
}

// Each operand under its constraints, the last one that can be reached without a test. There are as many as one likes:
// what the index's interval rules out is not looked at.
static void need_concatenated(walk *w, needs *d, const node *n) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  const int64_t *offsets = operand_offsets(w, c, in);
  kl_reader r = reader_at(w, n);
  kl_interval at = kl_dom_interval(w->guards.domain, n->index[in->dims[0]]);
  for (uint32_t i = operand_at(offsets, in->noperands, at.lo); i < in->noperands && offsets[i] <= at.hi; i++) {
    if (kl_operand(c, in, i)->shape->count == 0) continue;
    kl_need x = kl_need_of_concatenate(&r, n->instr, i, offsets[i], n->index);
    if (need_under(w, d, n, &x)) break;
  }
  d->alias = d->nodes.n == 1;
}

// The operand where there is one, else the padding.
static void need_padded(walk *w, needs *d, const node *n) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  kl_reader r = reader_at(w, n);
  bool always = false;
  if (kl_operand(c, in, 0)->shape->count) {
    kl_needs all = kl_needs_of(&r, n->instr, 0, n->index);
    always = need_under(w, d, n, &all.p[0]);
  }
  if (!always) {
    need(w, d, n, 1, 0, n->guard, 0, NULL);
    VEC_PUSH(w->cx, &d->guards, n->guard);
  }
  d->alias = d->nodes.n == 1;
}

static unsigned bits_of(const kl_shape *s) {
  return kl_info(s->dtype)->bits;
}

// Negative: the result has parts of the operand's elements along a new minor dim; positive: the other way round.
static int width_change(const kl_comp *c, const kl_instr *in) {
  if (in->op != KL_OP_BITCAST_CONVERT) return 0;
  return (int)bits_of(in->shape) - (int)bits_of(kl_operand(c, in, 0)->shape);
}

// A copy, by whatever name: bits stay as they are.
static bool is_identity(const kl_comp *c, const kl_instr *in) {
  if (in->op == KL_OP_COPY) return true;
  return (in->op == KL_OP_CONVERT || in->op == KL_OP_REAL) && in->shape->dtype == kl_operand(c, in, 0)->shape->dtype;
}

static void needs_of(walk *w, const node *n, needs *d) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_CONSTANT:
  case KL_KIND_IOTA: return;
  case KL_KIND_PARAMETER:
    if (n->frame == 0) return;
    d->alias = true;
    kl_frame f = w->frames.p[n->frame];
    const kl_instr *call = &w->frames.p[f.parent].comp->instr[f.caller];
    VEC_PUSH(w->cx, &d->nodes, want(w, f.parent, call->operands[in->number], n->leaf, n->guard, n->rank, n->index));
    return;
  case KL_KIND_CALL: {
    d->alias = true;
    const kl_comp *callee = &w->plan->module->comp[in->called[0]];
    uint32_t fr = enter(w, n->frame, n->instr, callee);
    VEC_PUSH(w->cx, &d->nodes, want(w, fr, callee->root, n->leaf, n->guard, n->rank, n->index));
    return;
  }
  case KL_KIND_PAD: return need_padded(w, d, n);
  case KL_KIND_CONCATENATE: return need_concatenated(w, d, n);
  case KL_KIND_TUPLE:
  case KL_KIND_GTE:
  case KL_KIND_BROADCAST:
  case KL_KIND_RESHAPE:
  case KL_KIND_TRANSPOSE:
  case KL_KIND_SLICE:
  case KL_KIND_REVERSE: d->alias = true; break;
  case KL_KIND_BITCAST: d->alias = in->shape->dtype == kl_operand(c, in, 0)->shape->dtype; break;
  default: d->alias = is_identity(c, in);
  }
  need_all(w, d, n);
}

// --- steps --------------------------------------------------------------------------------------------------------

static bool is_constant(const void *arg, uint32_t id) {
  const wanted *x = arg;
  return x->w->slots->constants.p[id] == x->what;
}

static kiln_status constant_slot(walk *w, const kl_instr *in, const kl_array *literal, uint32_t *slot) {
  kl_slots *s = w->slots;
  uint64_t hash = kl_hash(&literal, sizeof literal, 11); // decides where it is found, not what its number is
  uint32_t id = kl_ids_find(w->cx, &s->constant_ids, hash, is_constant, &(wanted){w, literal});
  *slot = s->nargs + id;
  if (id < s->constants.n) return KILN_OK;
  VEC_PUSH(w->cx, &s->constants, literal);
  int64_t bytes = kl_shape_bytes(literal->shape);
  if (bytes > 1 << 20)
    return kl_unsupported(w->cx, in->span, "constant of %lld bytes: at most 1 MiB can be part of a kernel",
                          (long long)bytes);
  void *data = kl_arena_try_alloc(w->arena, (size_t)bytes);
  if (!data) return kl_out_of_memory(w->cx, (size_t)bytes, "a constant");
  kl_array_pack(literal, data);
  VEC_PUSH(w->cx, &s->v, (kl_slot_info){KL_SLOT_CONST, literal->shape, bytes, 16, data, false, KL_NONE});
  return KILN_OK;
}

static kiln_status load_step(walk *w, const node *n, const kl_instr *in, kl_step *s) {
  uint32_t slot = 0;
  if (in->op == KL_OP_CONSTANT)
    KL_TRY(constant_slot(w, in, &in->literal[n->leaf], &slot));
  else
    slot = w->slots->param_base[in->number] + n->leaf;
  const kl_slot_info *info = &w->slots->v.p[slot];
  const kl_aff *linear = kl_position_of(w->affs, info->shape, n->index);
  if (!kl_is_sound(linear)) w->unsound = linear;
  s->kind = KL_STEP_LOAD;
  s->dtype = info->shape->dtype;
  s->access = kl_load_plan(&w->guards, w->arena, info, slot, linear, n->guard);
  return KILN_OK;
}

static kiln_status fill_step(walk *w, const node *n, const needs *d, kl_step *s) {
  const kl_instr *in = s->instr;
  if (in->op == KL_OP_IOTA) {
    s->kind = KL_STEP_IOTA;
    s->expr = n->index[in->number];
  } else if (in->op == KL_OP_CONSTANT && kl_array_is_splat(&in->literal[n->leaf])) {
    const void *data = in->literal[n->leaf].data;
    s->kind = KL_STEP_SCALAR;
    s->bits[0] = kl_element_get(s->dtype, data, 0, 0);
    if (kl_is_complex(s->dtype)) s->bits[1] = kl_element_get(s->dtype, data, 0, 1);
  } else if (in->op == KL_OP_CONSTANT || in->op == KL_OP_PARAMETER) {
    return load_step(w, n, in, s);
  } else {
    int change = width_change(w->frames.p[n->frame].comp, in);
    s->kind = d->guards.n ? KL_STEP_CHOOSE : change < 0 ? KL_STEP_SPLIT : change > 0 ? KL_STEP_JOIN : KL_STEP_OP;
    if (change < 0) s->expr = n->index[n->rank - 1];
    s->noperands = (uint32_t)d->nodes.n;
    uint32_t *ops = KL_NEW_N(w->arena, uint32_t, s->noperands);
    for (uint32_t i = 0; i < s->noperands; i++) ops[i] = w->nodes.p[d->nodes.p[i]]->step;
    s->operands = ops;
    if (d->guards.n) s->guards = kl_arena_dup(w->arena, d->guards.p, (d->guards.n - 1) * sizeof(uint32_t));
  }
  return KILN_OK;
}

static kiln_status make_step(walk *w, node *n, const needs *d) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  kl_step s = {.instr = in, .dtype = kl_shape_leaf(in->shape, n->leaf)->dtype};
  KL_TRY(fill_step(w, n, d, &s));
  if (w->steps.n >= KL_MAX_STEPS)
    return kl_unsupported(w->cx, s.instr->span, "the fusion needs more than %d operations per element", KL_MAX_STEPS);
  n->step = (uint32_t)w->steps.n;
  VEC_PUSH(w->cx, &w->steps, s);
  return KILN_OK;
}

// Asks for the operands that are not made yet; true if there were none.
static bool ready(walk *w, const needs *d) {
  bool all = true;
  for (size_t i = d->nodes.n; i-- > 0;) {
    if (w->nodes.p[d->nodes.p[i]]->step != KL_NONE) continue;
    VEC_PUSH(w->cx, &w->stack, d->nodes.p[i]);
    all = false;
  }
  return all;
}

static kiln_status visit(walk *w, node *n, bool *done) {
  needs d = {0};
  kiln_status st = KILN_OK;
  const kl_comp *c = w->frames.p[n->frame].comp;
  if (!n->open) st = kl_plan_check_op(w->cx, w->plan->module, c, &c->instr[n->instr]);
  n->open = true;
  if (st == KILN_OK) {
    needs_of(w, n, &d);
    *done = ready(w, &d);
    if (*done && d.alias)
      n->step = w->nodes.p[d.nodes.p[0]]->step;
    else if (*done)
      st = make_step(w, n, &d);
  }
  VEC_FREE(w->cx, &d.nodes);
  VEC_FREE(w->cx, &d.guards);
  return st;
}

static kiln_status resolve(walk *w, uint32_t root, uint32_t *step) {
  VEC_PUSH(w->cx, &w->stack, root);
  while (w->stack.n) {
    node *n = w->nodes.p[w->stack.p[w->stack.n - 1]];
    bool done = n->step != KL_NONE;
    if (!done) KL_TRY(visit(w, n, &done));
    if (done) w->stack.n--;
    if (w->unsound) return kl_plan_refuse_index(w->cx, w->plan, kl_why_unsound(w->unsound));
    if (w->nodes.n > KL_MAX_NODES)
      return kl_unsupported(w->cx, kl_root(w->plan->comp)->span,
                            "the fusion reads too many different elements per result");
  }
  *step = w->nodes.p[root]->step;
  return KILN_OK;
}

// --- the body -----------------------------------------------------------------------------------------------------

// The index of the part's element `at`, in physical order; returns where it lies in the results.
static const kl_aff *index_in_part(kl_affs *p, const kl_part *part, const kl_shape *s, const kl_aff *at,
                                   const kl_aff **index) {
  if (part->dim == KL_NONE) {
    kl_index_at(p, s, at, index);
    return at;
  }
  kl_shape box = *s;
  int64_t dims[KILN_MAX_RANK];
  memcpy(dims, s->dims, s->rank * sizeof *dims);
  dims[part->dim] = part->size;
  box.dims = dims;
  kl_index_at(p, &box, at, index);
  index[part->dim] = kl_aff_addc(p, index[part->dim], part->lo);
  return kl_position_of(p, s, index);
}

static kiln_status walk_roots(walk *w, const kl_part *part, kl_body *body) {
  kl_affs *p = w->affs;
  const kl_comp *c = w->plan->comp;
  const kl_aff *t = kl_aff_dim(p, KL_VAR_THREAD), *j = kl_aff_dim(p, KL_VAR_LANE);
  const kl_aff *at = kl_dom_simplify(body->domain, kl_aff_addc(p, kl_aff_addmul(p, j, t, body->lanes), body->first));
  bool never;
  uint32_t keep = kl_guard_and(&w->guards, KL_NONE, at, 0, part->count - 1, &never);
  uint32_t nroots = (uint32_t)kl_shape_leaf_count(kl_root(c)->shape);
  kl_store *stores = KL_NEW_N(w->arena, kl_store, nroots);
  for (uint32_t r = 0; r < nroots; r++) {
    uint32_t slot = w->slots->nargs - nroots + r;
    const kl_shape *s = w->slots->v.p[slot].shape;
    const kl_aff *index[KILN_MAX_RANK], *linear = index_in_part(p, part, s, at, index);
    KL_TRY(resolve(w, want(w, 0, c->root, r, keep, s->rank, index), &stores[r].step));
    // Where lanes can be outside, what is stored at once must be all inside or share a byte.
    uint32_t bits = kl_info(s->dtype)->bits, max_vec = keep == KL_NONE ? body->lanes : bits < 8 ? 8 / bits : 1;
    stores[r].access = kl_store_plan(&w->guards, w->arena, &w->slots->v.p[slot], slot, linear, max_vec);
    stores[r].keep = keep;
  }
  body->nstores = nroots;
  body->stores = stores;
  return KILN_OK;
}

static void begin_walk(walk *w, kl_dom *domain) {
  w->guards.affs = w->affs;
  w->guards.domain = domain;
  w->guards.cx = w->cx;
  enter(w, KL_NONE, KL_NONE, w->plan->comp);
}

static void end_walk(walk *w) {
  VEC_FREE(w->cx, &w->steps);
  VEC_FREE(w->cx, &w->guards.v);
  VEC_FREE(w->cx, &w->frames);
  VEC_FREE(w->cx, &w->nodes);
  VEC_FREE(w->cx, &w->stack);
  kl_ids_free(w->cx, &w->frame_ids);
  kl_ids_free(w->cx, &w->node_ids);
  kl_ids_free(w->cx, &w->guards.ids);
}

kiln_status kl_walk_body(kl_ctx *cx, kl_plan *plan, kl_slots *slots, kl_arena *arena, const kl_part *part,
                         kl_body *body) {
  walk w = {.cx = cx, .arena = arena, .plan = plan, .slots = slots, .affs = plan->affs};
  w.guards.lanes = body->lanes;
  body->domain = kl_body_domain(plan->affs, body->threads, body->lanes);
  begin_walk(&w, body->domain);
  kiln_status st = walk_roots(&w, part, body);
  if (st == KILN_OK) {
    body->nsteps = (uint32_t)w.steps.n;
    body->nguards = (uint32_t)w.guards.v.n;
    body->steps = VEC_FREEZE(cx, arena, &w.steps);
    body->guards = VEC_FREEZE(cx, arena, &w.guards.v);
  }
  end_walk(&w);
  return st;
}

// --- cuts ---------------------------------------------------------------------------------------------------------

// Dim d of these expressions is the results' index in dimension d.
static void add_cuts(walk *w, const node *n, kl_cuts *out) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  const kl_aff *e = n->index[in->dims[0]];
  if (e->n != 1 || e->terms[0].atom->kind != KL_AFF_DIM || (e->terms[0].coef != 1 && e->terms[0].coef != -1)) return;
  const kl_aff_atom *dim = e->terms[0].atom;
  kl_interval within = kl_dom_interval(w->guards.domain, kl_aff_of(w->affs, dim));
  const int64_t *offsets = operand_offsets(w, c, in);
  for (uint32_t i = 1; i < in->noperands; i++) {
    int64_t at = e->terms[0].coef == 1 ? offsets[i] - e->c : e->c - offsets[i] + 1;
    if (at > 0 && at <= within.hi) VEC_PUSH(w->cx, &out->v, (kl_cut){dim->var, at});
  }
}

// Needs are taken one after the other: what counts is which there are, not when.
static kiln_status visit_all(walk *w, uint32_t operands, kl_cuts *out) {
  for (size_t i = 0; i < w->nodes.n && w->nodes.n <= KL_MAX_NODES; i++) {
    node *n = w->nodes.p[i];
    const kl_comp *c = w->frames.p[n->frame].comp;
    const kl_instr *in = &c->instr[n->instr];
    KL_TRY(kl_plan_check_op(w->cx, w->plan->module, c, in));
    out->shared += n->guard == KL_NONE;
    if (kl_op_table[in->op].kind == KL_KIND_CONCATENATE && in->noperands >= operands) add_cuts(w, n, out);
    needs d = {0};
    needs_of(w, n, &d);
    VEC_FREE(w->cx, &d.nodes);
    VEC_FREE(w->cx, &d.guards);
    if (w->unsound) break; // walking the body says so
  }
  return KILN_OK;
}

kiln_status kl_walk_cuts(kl_ctx *cx, kl_plan *plan, kl_slots *slots, kl_arena *arena, uint32_t operands, kl_cuts *out) {
  walk w = {.cx = cx, .arena = arena, .plan = plan, .slots = slots, .affs = plan->affs};
  const kl_comp *c = plan->comp;
  uint32_t nroots = (uint32_t)kl_shape_leaf_count(kl_root(c)->shape);
  const kl_shape *s = slots->v.p[slots->nargs - nroots].shape; // that of all results
  kl_interval bounds[KILN_MAX_RANK + 1];
  const kl_aff *index[KILN_MAX_RANK];
  for (uint32_t d = 0; d < s->rank; d++) {
    bounds[d] = (kl_interval){0, s->dims[d] - 1};
    index[d] = kl_aff_dim(plan->affs, d);
  }
  w.guards.lanes = 1;
  begin_walk(&w, kl_dom_make(plan->affs, s->rank, bounds));
  for (uint32_t r = 0; r < nroots; r++) want(&w, 0, c->root, r, KL_NONE, s->rank, index);
  kiln_status st = visit_all(&w, operands, out);
  end_walk(&w);
  return st;
}
