// From what is wanted to the steps of a body.
//
// Index transforms make no step: their node takes the step of the operand's node at the mapped index. The walk keeps
// its own stack, because a fusion may be thousands of operations deep.

#include "lower/choose/walk.h"

// A straight-line body beyond this is refused. ptxas takes a second for a chain of 20,000 steps, but minutes for as
// many of which thousands are held at a time.
enum { KL_MAX_STEPS = 1 << 16, KL_MAX_NODES = 1 << 18 };

typedef struct kl_wanted {
  uint32_t frame, instr, leaf, guard;
  uint32_t step, scope; // KL_NONE until made
  bool open;            // its operands have been asked for
  uint32_t rank;
  const kl_aff *index[];
} node;

typedef kl_walk walk;

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

// Is the step made, and to be had where the writer is now?
static bool is_made(const walk *w, const node *n) {
  return n->step != KL_NONE && kl_scope_is_open(w->w, n->scope);
}

// Is it what n is, whatever the guards?
static bool stands_for(const walk *w, const node *g, const node *n) {
  if (g->frame != n->frame || g->instr != n->instr || g->leaf != n->leaf || g->rank != n->rank) return false;
  return is_made(w, g) && (n->rank == 0 || memcmp(g->index, n->index, n->rank * sizeof(n->index[0])) == 0);
}

// The node that was given for what n is; KL_NONE: none was. Given at another index only, it cannot be had: somebody
// would have to make it again.
static uint32_t find_given(walk *w, const node *n) {
  bool elsewhere = false;
  for (size_t i = 0; i < w->shared.n; i++)
    if (stands_for(w, w->nodes.p[w->shared.p[i]], n)) return w->shared.p[i];
  for (size_t i = 0; i < w->given.n; i++) {
    const node *g = w->nodes.p[w->given.p[i]];
    if (g->frame != n->frame || g->instr != n->instr) continue;
    if (stands_for(w, g, n)) return w->given.p[i];
    elsewhere = true;
  }
  if (elsewhere) w->elsewhere = n;
  return KL_NONE;
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
    n->index[i] = kl_dom_simplify(w->w->body->domain, index[i]);
    if (!kl_is_sound(n->index[i])) w->unsound = n->index[i];
  }
  uint32_t given = find_given(w, n);
  if (given != KL_NONE) return given;
  uint32_t id = kl_ids_find(w->cx, &w->node_ids, node_hash(n), is_node, &(wanted){w, n});
  if (id == w->nodes.n) VEC_PUSH(w->cx, &w->nodes, n);
  return id;
}

static bool is_frame(const void *arg, uint32_t id) {
  const wanted *x = arg;
  const kl_frame *f = x->what, *g = &x->w->frames.p[id];
  return f->parent == g->parent && f->caller == g->caller && f->first_operand == g->first_operand &&
         f->scalars == g->scalars && f->rank == g->rank &&
         (f->rank == 0 || memcmp(f->index, g->index, f->rank * sizeof *f->index) == 0);
}

static uint32_t enter(walk *w, kl_frame f) {
  uint64_t hash = kl_hash(&(uint32_t[3]){f.parent, f.caller, f.first_operand}, 12, 5);
  for (uint32_t i = 0; i < f.rank; i++) hash = kl_hash(&f.index[i]->id, sizeof(uint32_t), hash);
  uint32_t id = kl_ids_find(w->cx, &w->frame_ids, hash, is_frame, &(wanted){w, &f});
  if (id == w->frames.n) VEC_PUSH(w->cx, &w->frames, f);
  return id;
}

// --- what a node needs --------------------------------------------------------------------------------------------

// The nodes a node depends on. `alias`: its value is that of the only one. Operand i of a choice needs guards[i].
// `asks`: these nodes say where others are, which are not known before.
typedef struct needs {
  bool alias, asks;
  VEC(uint32_t) nodes;
  VEC(uint32_t) guards;
} needs;

static void need(walk *w, needs *d, const node *n, uint32_t operand, uint32_t leaf, uint32_t guard, uint32_t rank,
                 const kl_aff *const *index) {
  const kl_instr *in = &w->frames.p[n->frame].comp->instr[n->instr];
  VEC_PUSH(w->cx, &d->nodes, want(w, n->frame, in->operands[operand], leaf, guard, rank, index));
}

static kl_reader reader_at(walk *w, const node *n) {
  return (kl_reader){w->affs, w->plan->module, w->frames.p, n->frame, w->runtimes};
}

// --- names ----------------------------------------------------------------------------------------------------------

// What an index in names is in the body's variables.
static const kl_aff *real(walk *w, const kl_aff *e) {
  if (!w->nnamed) return e;
  uint32_t first = w->w->guards.first_name, n = first + w->nnamed;
  const kl_aff *to[KL_MAX_VARS * (1 + 2 * KL_MAX_CHUNKINGS) + KL_MAX_NAMES];
  for (uint32_t i = 0; i < first; i++) to[i] = kl_aff_dim(w->affs, i);
  memcpy(to + first, w->named, w->nnamed * sizeof *to);
  kl_aff_replace(w->affs, &(kl_aff_subst){.to = {to}, .n = {n}}, &e, 1, &e);
  e = kl_dom_simplify(w->w->body->domain, e);
  if (!kl_is_sound(e)) w->unsound = e;
  return e;
}

// The guard that an index in names lies within bounds. Names that keep theirs, which `guard` says, may do so by
// themselves.
static uint32_t guard_and(walk *w, uint32_t guard, const kl_aff *e, int64_t lo, int64_t hi, bool *never) {
  kl_interval in = kl_dom_interval(w->w->body->domain, e);
  *never = lo > hi || in.hi < lo || in.lo > hi;
  if (*never || (in.lo >= lo && in.hi <= hi)) return guard;
  return kl_guard_and(&w->w->guards, guard, real(w, e), lo, hi, never);
}

// --- places that data says ------------------------------------------------------------------------------------------

// An element that is there needs no guard.
static uint32_t guard_of_place(walk *w, uint32_t guard, const kl_shape *s, const kl_aff *const *index) {
  for (uint32_t d = 0; d < s->rank; d++) {
    kl_interval in = kl_dom_interval(w->w->body->domain, real(w, index[d]));
    if (in.lo < 0 || in.hi >= s->dims[d]) return guard;
  }
  return KL_NONE;
}

// Who only looks takes any value for an integer.
static void pretend(walk *w, uint32_t id, kl_dtype t) {
  node *n = w->nodes.p[id];
  if (!w->looks || n->step != KL_NONE) return;
  n->step = kl_write_scalar(w->w, t, 0, 0);
  n->scope = kl_write_scope(w->w);
}

// The node of what a runtime variable stands for.
static uint32_t want_place(walk *w, const node *n, const kl_map_var *v) {
  const kl_runtime *r = v->from.payload;
  const kl_shape *s = kl_shape_leaf(w->frames.p[r->frame].comp->instr[r->instr].shape, r->leaf);
  uint32_t guard = guard_of_place(w, n->guard, s, v->from.index);
  uint32_t id = want(w, r->frame, r->instr, r->leaf, guard, v->from.nindex, v->from.index);
  pretend(w, id, s->dtype);
  return id;
}

// x with symbols in the place of its runtime variables. False: the values of these have to be made first, and are what
// d holds.
static bool settle(walk *w, needs *d, const node *n, kl_need *x) {
  _Static_assert((int)KL_FIRST_SYMBOL >= KL_NEED_VARS, "symbols are no variables of a need");
  const kl_aff *to[KL_NEED_VARS], **index = KL_NEW_N(w->arena, const kl_aff *, x->nindex + 1);
  kl_constraint *constraints = KL_NEW_N(w->arena, kl_constraint, x->nconstraints + 1);
  for (uint32_t i = 0; i < x->nrts; i++) {
    uint32_t id = want_place(w, n, &x->rts[i]);
    if (is_made(w, w->nodes.p[id])) {
      to[i] = kl_write_index(w->w, w->nodes.p[id]->step, x->rts[i].in);
      continue;
    }
    VEC_PUSH(w->cx, &d->nodes, id);
    d->asks = true;
  }
  if (d->asks) return false;
  kl_aff_subst s = {.to = {[KL_AFF_RT] = to}, .n = {[KL_AFF_RT] = x->nrts}};
  kl_aff_replace(w->affs, &s, x->index, x->nindex, index);
  for (uint32_t i = 0; i < x->nconstraints; i++) {
    constraints[i] = x->constraints[i];
    kl_aff_replace(w->affs, &s, &x->constraints[i].e, 1, &constraints[i].e);
  }
  x->index = index;
  x->constraints = constraints;
  return true;
}

// --- operands -------------------------------------------------------------------------------------------------------

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
  for (uint32_t i = 0; i < all.n; i++) {
    kl_need x = all.p[i];
    if (x.places) continue;
    if (x.nrts && !settle(w, d, n, &x)) return;
    need_each(w, d, n, &x);
  }
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
    guard = guard_and(w, guard, x->constraints[i].e, x->constraints[i].in.lo, x->constraints[i].in.hi, &never);
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
  kl_interval at = kl_dom_interval(w->w->body->domain, n->index[in->dims[0]]);
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

// The update inside of its window, else the operand.
static void need_updated(walk *w, needs *d, const node *n) {
  kl_reader r = reader_at(w, n);
  kl_needs all = kl_needs_of(&r, n->instr, 0, n->index);
  uint32_t i = 0;
  while (all.p[i].operand != 1) i++;
  kl_need x = all.p[i];
  if (!settle(w, d, n, &x)) return;
  if (!need_under(w, d, n, &x)) {
    need(w, d, n, 0, 0, n->guard, n->rank, n->index);
    VEC_PUSH(w->cx, &d->guards, n->guard);
  }
  d->alias = d->nodes.n == 1;
}

// --- calls ----------------------------------------------------------------------------------------------------------

// The root of a computation that the node's instruction calls, for the node's own element.
static void need_root(walk *w, needs *d, const node *n, uint32_t number, uint32_t first_operand) {
  const kl_comp *callee = &w->plan->module->comp[w->frames.p[n->frame].comp->instr[n->instr].called[number]];
  uint32_t fr = enter(w, (kl_frame){callee, n->frame, n->instr, .first_operand = first_operand});
  VEC_PUSH(w->cx, &d->nodes, want(w, fr, callee->root, n->leaf, n->guard, n->rank, n->index));
}

// A map's computation takes and gives scalars.
static void need_mapped(walk *w, needs *d, const node *n) {
  const kl_instr *in = &w->frames.p[n->frame].comp->instr[n->instr];
  const kl_comp *callee = &w->plan->module->comp[in->called[0]];
  kl_frame f = {callee, n->frame, n->instr, .scalars = true, .rank = n->rank, .index = n->index};
  VEC_PUSH(w->cx, &d->nodes, want(w, enter(w, f), callee->root, 0, n->guard, 0, NULL));
  d->alias = true;
}

// What the caller's operand is, or what was given.
static void need_argument(walk *w, needs *d, const node *n) {
  kl_frame f = w->frames.p[n->frame];
  const kl_instr *in = &f.comp->instr[n->instr];
  d->alias = true;
  if (f.scalars && !f.index) {
    VEC_PUSH(w->cx, &d->nodes, want(w, n->frame, n->instr, n->leaf, KL_NONE, 0, NULL));
    return;
  }
  uint32_t operand = w->frames.p[f.parent].comp->instr[f.caller].operands[f.first_operand + in->number];
  uint32_t rank = f.scalars ? f.rank : n->rank;
  const kl_aff *const *index = f.scalars ? f.index : n->index;
  VEC_PUSH(w->cx, &d->nodes, want(w, f.parent, operand, n->leaf, n->guard, rank, index));
}

// Which branch it is: true is the first one; what is no branch's number the last, as -1 is modulo their number. NULL:
// the value has to be made first, and is what d holds.
static const kl_aff *branch_of(walk *w, needs *d, const node *n) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  kl_dtype t = kl_operand(c, in, 0)->shape->dtype;
  uint32_t id = want(w, n->frame, in->operands[0], 0, KL_NONE, 0, NULL);
  pretend(w, id, t);
  if (!is_made(w, w->nodes.p[id])) {
    VEC_PUSH(w->cx, &d->nodes, id);
    d->asks = true;
    return NULL;
  }
  kl_interval all = {t == KILN_PRED ? 0 : -1, in->ncalled - 1};
  const kl_aff *at = kl_write_index(w->w, w->nodes.p[id]->step, all);
  return t == KILN_PRED ? kl_aff_addc(w->affs, kl_aff_mulc(w->affs, at, -1), 1) : kl_aff_modc(w->affs, at, in->ncalled);
}

// All branches are computed, so that what several of them want is made once: under guards of their own, conditionals
// behind one another would double the work each time.
static void need_branches(walk *w, needs *d, const node *n) {
  uint32_t branches = w->frames.p[n->frame].comp->instr[n->instr].ncalled;
  const kl_aff *at = branch_of(w, d, n);
  for (uint32_t i = 0; at && i < branches; i++) {
    bool never = false;
    uint32_t guard = kl_guard_and(&w->w->guards, n->guard, at, i, i, &never);
    if (never) continue;
    need_root(w, d, n, i, i + 1);
    VEC_PUSH(w->cx, &d->guards, guard);
    if (guard == n->guard) break;
  }
  d->alias = d->nodes.n == 1;
}

static unsigned bits_of(const kl_shape *s) {
  return kl_info(s->dtype)->bits;
}

// Negative: the result has parts of the operand's elements; positive: the other way round.
static int width_change(const kl_comp *c, const kl_instr *in) {
  if (in->op != KL_OP_BITCAST_CONVERT && in->op != KL_OP_BITCAST) return 0;
  return (int)bits_of(in->shape) - (int)bits_of(kl_operand(c, in, 0)->shape);
}

// A copy, by whatever name: bits stay as they are.
static bool is_identity(const kl_comp *c, const kl_instr *in) {
  return (in->op == KL_OP_CONVERT || in->op == KL_OP_REAL) && in->shape->dtype == kl_operand(c, in, 0)->shape->dtype;
}

static void needs_of(walk *w, const node *n, needs *d) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  if (in->op == KL_OP_COPY) { // of tuples, too
    d->alias = true;
    return need(w, d, n, 0, n->leaf, n->guard, n->rank, n->index);
  }
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_CONSTANT:
  case KL_KIND_IOTA: return;
  case KL_KIND_PARAMETER: return n->frame ? need_argument(w, d, n) : (void)0;
  case KL_KIND_CALL: d->alias = true; return need_root(w, d, n, 0, 0);
  case KL_KIND_MAP: return need_mapped(w, d, n);
  case KL_KIND_CONDITIONAL: return need_branches(w, d, n);
  case KL_KIND_PAD: return need_padded(w, d, n);
  case KL_KIND_CONCATENATE: return need_concatenated(w, d, n);
  case KL_KIND_DYNAMIC_UPDATE_SLICE: return need_updated(w, d, n);
  case KL_KIND_TUPLE:
  case KL_KIND_GTE:
  case KL_KIND_FORWARD:
  case KL_KIND_BROADCAST:
  case KL_KIND_RESHAPE:
  case KL_KIND_TRANSPOSE:
  case KL_KIND_SLICE:
  case KL_KIND_DYNAMIC_SLICE:
  case KL_KIND_GATHER:
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
  if (id < s->constants.n) {
    *slot = s->constant_slots.p[id];
    return KILN_OK;
  }
  *slot = (uint32_t)s->v.n;
  VEC_PUSH(w->cx, &s->constants, literal);
  VEC_PUSH(w->cx, &s->constant_slots, *slot);
  const kl_shape *shape = kl_in_order(w->plan->arena, literal->shape);
  int64_t bytes = kl_shape_bytes(shape);
  if (bytes > 1 << 20)
    return kl_unsupported(w->cx, in->span, "constant of %lld bytes: at most 1 MiB can be part of a kernel",
                          (long long)bytes);
  void *data = kl_arena_try_alloc(w->arena, (size_t)bytes);
  if (!data) return kl_out_of_memory(w->cx, (size_t)bytes, "a constant");
  kl_array_pack(&(kl_array){shape, literal->data}, data);
  kl_slot_info info = {
      .kind = KL_SLOT_CONST, .shape = shape, .bytes = bytes, .align = 16, .data = data, .alias = KL_NONE};
  VEC_PUSH(w->cx, &s->v, info);
  return KILN_OK;
}

static bool is_splat(const kl_instr *in, uint32_t leaf) {
  return in->op == KL_OP_CONSTANT && kl_array_is_splat(&in->literal[leaf]);
}

static bool is_loaded(const kl_instr *in, uint32_t leaf) {
  return in->op == KL_OP_PARAMETER || (in->op == KL_OP_CONSTANT && !is_splat(in, leaf));
}

// The slot that holds what n is; KL_NONE: none does.
static uint32_t stored_in(const walk *w, const node *n) {
  for (size_t i = 0; n->frame == 0 && i < w->nstored; i++) {
    const kl_stored_value *s = &w->slots->stored.p[i];
    if (s->instr == n->instr && s->leaf == n->leaf) return s->slot;
  }
  return KL_NONE;
}

static void load_stored(walk *w, node *n, uint32_t slot) {
  const kl_instr *in = &w->plan->comp->instr[n->instr];
  const kl_slot_info *info = &w->slots->v.p[slot];
  const kl_aff *linear = kl_position_of(w->affs, info->shape, n->index);
  if (!kl_is_sound(linear)) w->unsound = linear;
  if (w->unsound) return;
  n->step = kl_write_load(w->w, slot, info, linear, n->guard, in);
  kl_dtype t = kl_shape_leaf(in->shape, n->leaf)->dtype;
  if (t != info->shape->dtype) n->step = kl_write_op(w->w, (kl_plan_op){.op = KL_OP_CONVERT}, t, 1, &n->step);
  n->scope = kl_write_scope(w->w);
}

// The value whose word in memory is `step`: its lowest bits. Words are smaller than a pred alone.
static uint32_t of_word(walk *w, uint32_t step, kl_dtype t, const kl_instr *in) {
  kl_dtype word = w->w->steps.p[step].dtype;
  if (word == t) return step;
  if (kl_info(word)->bits < kl_info(t)->bits) return kl_write_op(w->w, (kl_plan_op){.op = KL_OP_CONVERT}, t, 1, &step);
  kl_step low = {.kind = KL_STEP_SPLIT, .dtype = t, .instr = in, .noperands = 1, .expr = kl_aff_const(w->affs, 0)};
  low.operands = kl_arena_dup(w->arena, &step, sizeof step);
  return kl_write_step(w->w, &low);
}

static kiln_status load(walk *w, const node *n, const kl_instr *in, uint32_t *step) {
  uint32_t slot = 0;
  if (in->op == KL_OP_CONSTANT)
    KL_TRY(constant_slot(w, in, &in->literal[n->leaf], &slot));
  else
    slot = w->slots->param_base[in->number] + n->leaf;
  const kl_slot_info *info = &w->slots->v.p[slot];
  const kl_shape *shape = info->owner ? info->owner : info->shape;
  const kl_aff *linear = kl_dom_simplify(w->w->body->domain, kl_position_of(w->affs, shape, n->index));
  if (!kl_is_sound(linear)) w->unsound = linear;
  linear = real(w, linear);
  if (w->unsound) return KILN_OK;
  uint32_t guard = n->guard;
  bool never = false;
  // What follows from the bounds of many digits is easier to see where it is said.
  if (w->tiled) guard = kl_guard_and(&w->w->guards, guard, linear, 0, info->shape->count - 1, &never);
  *step = kl_write_load(w->w, slot, info, linear, guard, in);
  kl_dtype t = kl_shape_leaf(in->shape, n->leaf)->dtype;
  *step = of_word(w, *step, t, in);
  return KILN_OK;
}

// Steps know of an instruction what is said here.
static kl_plan_op op_of(const kl_instr *in) {
  return (kl_plan_op){.op = in->op,
                      .direction = in->direction,
                      .compare_type = in->compare_type,
                      .exponent_bits = (uint32_t)in->exponent_bits,
                      .mantissa_bits = (uint32_t)in->mantissa_bits};
}

// Which part of the wider element. Off a guard, where nobody wants it, it is one of them still.
static const kl_aff *part_of(walk *w, const node *n, const kl_instr *in) {
  const kl_shape *from = kl_operand(w->frames.p[n->frame].comp, in, 0)->shape;
  bool memory = in->op == KL_OP_BITCAST; // else parts are the last dimension
  const kl_aff *at = memory ? kl_position_of(w->affs, in->shape, n->index) : n->index[n->rank - 1];
  const kl_aff *e = kl_aff_modc(w->affs, real(w, at), bits_of(from) / bits_of(in->shape));
  e = kl_dom_simplify(w->w->body->domain, e);
  if (!kl_is_sound(e)) w->unsound = e;
  return e;
}

static void fill_step(walk *w, const node *n, const needs *d, const kl_instr *in, kl_step *s) {
  if (in->op == KL_OP_IOTA) {
    s->kind = KL_STEP_IOTA;
    s->expr = real(w, n->index[in->number]);
  } else if (is_splat(in, n->leaf)) {
    const void *data = in->literal[n->leaf].data;
    s->kind = KL_STEP_SCALAR;
    s->bits[0] = kl_element_get(s->dtype, data, 0, 0);
    if (kl_is_complex(s->dtype)) s->bits[1] = kl_element_get(s->dtype, data, 0, 1);
  } else {
    int change = width_change(w->frames.p[n->frame].comp, in);
    s->kind = d->guards.n ? KL_STEP_CHOOSE : change < 0 ? KL_STEP_SPLIT : change > 0 ? KL_STEP_JOIN : KL_STEP_OP;
    if (change < 0) s->expr = part_of(w, n, in);
    if (s->kind == KL_STEP_OP) s->op = op_of(in);
    s->noperands = (uint32_t)d->nodes.n;
    uint32_t *ops = KL_NEW_N(w->arena, uint32_t, s->noperands);
    for (uint32_t i = 0; i < s->noperands; i++) ops[i] = w->nodes.p[d->nodes.p[i]]->step;
    s->operands = ops;
    if (d->guards.n) s->guards = kl_arena_dup(w->arena, d->guards.p, (d->guards.n - 1) * sizeof(uint32_t));
  }
}

static kiln_status make_step(walk *w, node *n, const needs *d) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  if (w->w->steps.n >= KL_MAX_STEPS)
    return kl_unsupported(w->cx, in->span, "the fusion needs more than %d operations per element", KL_MAX_STEPS);
  if (w->unsound) return KILN_OK;
  if (is_loaded(in, n->leaf)) {
    KL_TRY(load(w, n, in, &n->step));
  } else {
    kl_step s = {.instr = in, .dtype = kl_shape_leaf(in->shape, n->leaf)->dtype};
    fill_step(w, n, d, in, &s);
    n->step = kl_write_step(w->w, &s);
  }
  n->scope = kl_write_scope(w->w);
  return KILN_OK;
}

// Asks for the operands that are not made yet; true if there were none.
static bool ready(walk *w, const needs *d) {
  bool all = true;
  for (size_t i = d->nodes.n; i-- > 0;) {
    if (is_made(w, w->nodes.p[d->nodes.p[i]])) continue;
    VEC_PUSH(w->cx, &w->stack, d->nodes.p[i]);
    all = false;
  }
  return all;
}

static kiln_status visit(walk *w, node *n, bool *done) {
  needs d = {0};
  kiln_status st = KILN_OK;
  const kl_comp *c = w->frames.p[n->frame].comp;
  uint32_t stored = stored_in(w, n);
  if (stored != KL_NONE) {
    load_stored(w, n, stored);
    *done = true;
    return KILN_OK;
  }
  if (!n->open) st = kl_plan_check_op(w->cx, w->plan->module, c, &c->instr[n->instr]);
  n->open = true;
  if (st == KILN_OK) {
    needs_of(w, n, &d);
    *done = ready(w, &d) && !d.asks;
    const node *only = *done && d.alias ? w->nodes.p[d.nodes.p[0]] : NULL;
    if (only)
      n->step = only->step, n->scope = only->scope;
    else if (*done)
      st = make_step(w, n, &d);
  }
  VEC_FREE(w->cx, &d.nodes);
  VEC_FREE(w->cx, &d.guards);
  return st;
}

static kiln_status refuse_elsewhere(walk *w) {
  const kl_instr *in = &w->frames.p[w->elsewhere->frame].comp->instr[w->elsewhere->instr];
  kl_str name = kl_symbol_text(&w->plan->module->names, in->name);
  return kl_unsupported(w->cx, in->span, "%.*s is wanted at other indices than those it is made at", KL_FMT(name));
}

static kiln_status resolve(walk *w, uint32_t root, uint32_t *step) {
  w->stack.n = 0;
  VEC_PUSH(w->cx, &w->stack, root);
  while (w->stack.n) {
    node *n = w->nodes.p[w->stack.p[w->stack.n - 1]];
    bool done = is_made(w, n);
    if (!done) KL_TRY(visit(w, n, &done));
    if (done) w->stack.n--;
    if (w->unsound) return kl_plan_refuse_index(w->cx, w->plan, kl_why_unsound(w->unsound));
    if (w->elsewhere && w->goes_on) break;
    if (w->elsewhere) return refuse_elsewhere(w);
    if (w->nodes.n > KL_MAX_NODES)
      return kl_unsupported(w->cx, kl_root(w->plan->comp)->span,
                            "the fusion reads too many different elements per result");
  }
  const node *n = w->nodes.p[root];
  const kl_instr *in = &w->frames.p[n->frame].comp->instr[n->instr];
  *step = w->elsewhere ? kl_write_scalar(w->w, kl_shape_leaf(in->shape, n->leaf)->dtype, 0, 0) : n->step;
  return KILN_OK;
}

// --- what choosers ask ----------------------------------------------------------------------------------------------

void kl_walk_begin(walk *w, kl_ctx *cx, kl_plan *plan, kl_slots *slots, kl_writer *writer) {
  *w = (walk){.cx = cx, .arena = plan->arena, .plan = plan, .slots = slots, .affs = plan->affs, .w = writer};
  w->runtimes = kl_runtimes_create(cx, plan->arena);
  w->nstored = slots->stored.n;
  for (uint32_t i = 0; i < slots->nargs; i++) w->tiled |= slots->v.p[i].owner != NULL;
  enter(w, (kl_frame){plan->comp, KL_NONE, KL_NONE});
}

void kl_walk_free(walk *w) {
  VEC_FREE(w->cx, &w->frames);
  VEC_FREE(w->cx, &w->nodes);
  VEC_FREE(w->cx, &w->given);
  VEC_FREE(w->cx, &w->shared);
  VEC_FREE(w->cx, &w->stack);
  kl_runtimes_destroy(&w->runtimes);
  kl_ids_free(w->cx, &w->frame_ids);
  kl_ids_free(w->cx, &w->node_ids);
}

static uint32_t rank_of(const walk *w, uint32_t instr, uint32_t leaf) {
  return kl_shape_leaf(w->plan->comp->instr[instr].shape, leaf)->rank;
}

kiln_status kl_walk_want(walk *w, uint32_t instr, uint32_t leaf, uint32_t guard, const kl_aff *const *index,
                         uint32_t *step) {
  uint32_t id = want(w, 0, instr, leaf, guard, rank_of(w, instr, leaf), index);
  return resolve(w, id, step);
}

static uint32_t give(walk *w, uint32_t frame, uint32_t instr, uint32_t leaf, uint32_t rank, const kl_aff *const *index,
                     uint32_t step) {
  uint32_t id = want(w, frame, instr, leaf, KL_NONE, rank, index);
  w->nodes.p[id]->step = step;
  w->nodes.p[id]->scope = kl_write_scope(w->w);
  return id;
}

void kl_walk_share(walk *w, uint32_t instr, uint32_t leaf, const kl_aff *const *index, uint32_t step) {
  uint32_t id = give(w, 0, instr, leaf, rank_of(w, instr, leaf), index, step);
  VEC_PUSH(w->cx, &w->shared, id);
}

void kl_walk_give(walk *w, uint32_t instr, uint32_t leaf, const kl_aff *const *index, uint32_t step) {
  const node *before = w->elsewhere;
  uint32_t id = give(w, 0, instr, leaf, rank_of(w, instr, leaf), index, step);
  w->elsewhere = before; // given at one more index
  VEC_PUSH(w->cx, &w->given, id);
}

// Each call is a frame of its own, whose parameters are given.
kiln_status kl_walk_call(walk *w, uint32_t caller, const kl_comp *comp, const uint32_t *args, uint32_t *results) {
  kl_frame f = {comp, 0, caller, .scalars = true, .first_operand = (uint32_t)w->frames.n}; // no other is the same
  uint32_t frame = enter(w, f), at = 0;
  for (uint32_t i = 0; i < comp->nparams; i++)
    for (uint32_t l = 0; l < kl_shape_leaf_count(comp->instr[comp->params[i]].shape); l++)
      give(w, frame, comp->params[i], l, 0, NULL, args[at++]);
  for (uint32_t l = 0; l < kl_shape_leaf_count(kl_root(comp)->shape); l++)
    KL_TRY(resolve(w, want(w, frame, comp->root, l, KL_NONE, 0, NULL), &results[l]));
  return KILN_OK;
}

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
  if (!is_loaded(in, n->leaf) || (in->op == KL_OP_PARAMETER && n->frame)) return;
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
    uint32_t rank = kl_shape_leaf(kl_root(plan->comp)->shape, looks[i].leaf)->rank;
    looks[i].seen = want(&x.w, 0, plan->comp->root, looks[i].leaf, KL_NONE, rank, looks[i].index);
  }
  for (size_t i = 0; st == KILN_OK && i < x.w.nodes.n && i <= KL_MAX_NODES && !x.w.unsound; i++) {
    node *at = x.w.nodes.p[i];
    const kl_comp *c = x.w.frames.p[at->frame].comp;
    needs d = {0};
    st = kl_plan_check_op(cx, plan->module, c, &c->instr[at->instr]);
    if (st == KILN_OK) needs_of(&x.w, at, &d);
    if (st == KILN_OK && !x.w.unsound) see(&x.w, at, &d, out);
    VEC_FREE(cx, &d.nodes);
    VEC_FREE(cx, &d.guards);
  }
  look_end(&x);
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
  kl_interval within = kl_dom_interval(w->w->body->domain, kl_aff_of(w->affs, dim));
  const int64_t *offsets = operand_offsets(w, c, in);
  for (uint32_t i = 1; i < in->noperands; i++) {
    int64_t at = e->terms[0].coef == 1 ? offsets[i] - e->c : e->c - offsets[i] + 1;
    if (at > 0 && at <= within.hi) VEC_PUSH(w->cx, &out->v, (kl_cut){dim->var, at});
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
    needs d = {0};
    needs_of(w, n, &d);
    VEC_FREE(w->cx, &d.nodes);
    VEC_FREE(w->cx, &d.guards);
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
  for (uint32_t i = 0; i < domain->n; i++) want(&x.w, 0, c->root, domain->leaves[i], KL_NONE, s->rank, index);
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
    if (!kl_is_walked(in->op) || (n->frame == 0 && s->given[n->instr])) continue;
    needs d = {0};
    needs_of(w, n, &d);
    VEC_FREE(w->cx, &d.nodes);
    VEC_FREE(w->cx, &d.guards);
  }
  s->all = s->all && w->nodes.n <= s->most;
}

void kl_walk_survey(kl_ctx *cx, kl_plan *plan, kl_slots *slots, uint32_t n, const uint32_t *roots, kl_survey *s) {
  const kl_instr *instr = plan->comp->instr;
  s->all = true;
  for (uint32_t i = 0; i < n; i++) {
    const kl_shape *first = instr[roots[i]].shape;
    bool done = !kl_shape_is_array(first) || !first->count;
    for (uint32_t k = 0; k < i && !done; k++) done = kl_shape_same_dims(instr[roots[k]].shape, first);
    if (done) continue;
    const kl_aff *index[KILN_MAX_RANK];
    looking x;
    for (uint32_t d = 0; d < first->rank; d++) index[d] = kl_aff_dim(plan->affs, d);
    look_begin(&x, cx, plan, slots, first->rank, first->dims);
    for (uint32_t k = i; k < n; k++)
      if (kl_shape_same_dims(instr[roots[k]].shape, first)) want(&x.w, 0, roots[k], 0, KL_NONE, first->rank, index);
    look_up(&x.w, s);
    look_end(&x);
  }
}
