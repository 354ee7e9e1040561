// What a value needs of others, op by op.

#include "lower/choose/walk/impl.h"

typedef kl_wanted node;
typedef kl_walk walk;
typedef kl_node_needs needs;

// --- what a node needs --------------------------------------------------------------------------------------------

static void need(walk *w, needs *d, const node *n, uint32_t operand, uint32_t leaf, uint32_t guard, uint32_t rank,
                 const kl_aff *const *index) {
  const kl_instr *in = &w->frames.p[n->frame].comp->instr[n->instr];
  VEC_PUSH(w->cx, &d->nodes, kl_want(w, n->frame, in->operands[operand], leaf, guard, rank, index));
}

static kl_reader reader_at(walk *w, const node *n) {
  return (kl_reader){w->affs, w->plan->module, w->frames.p, n->frame, w->runtimes};
}

// --- names ----------------------------------------------------------------------------------------------------------

const kl_aff *kl_real(walk *w, const kl_aff *e) {
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

uint32_t kl_walk_guard(walk *w, uint32_t guard, const kl_aff *e, int64_t lo, int64_t hi, bool *never) {
  kl_interval in = kl_dom_interval(w->w->body->domain, e);
  *never = lo > hi || in.hi < lo || in.lo > hi;
  if (*never || (in.lo >= lo && in.hi <= hi)) return guard;
  return kl_guard_and(&w->w->guards, guard, kl_real(w, e), lo, hi, never);
}

// --- places that data says ------------------------------------------------------------------------------------------

// An element that is there needs no guard.
static uint32_t guard_of_place(walk *w, uint32_t guard, const kl_shape *s, const kl_aff *const *index) {
  for (uint32_t d = 0; d < s->rank; d++) {
    kl_interval in = kl_dom_interval(w->w->body->domain, kl_real(w, index[d]));
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
  uint32_t id = kl_want(w, r->frame, r->instr, r->leaf, guard, v->from.nindex, v->from.index);
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
    if (kl_is_made(w, w->nodes.p[id])) {
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
    if (x.places || !x.known) continue; // nobody makes an op that needs what is not known, but surveys come by
    if (x.nrts && !settle(w, d, n, &x)) return;
    need_each(w, d, n, &x);
  }
}

static bool is_choice(const void *arg, uint32_t id) {
  const kl_sought *x = arg;
  return x->w->slots->concatenates.p[id].instr == x->what;
}

// Where the operands of a concatenate begin, and behind them the end.
const int64_t *kl_operand_offsets(walk *w, const kl_comp *c, const kl_instr *in) {
  kl_slots *s = w->slots;
  uint64_t hash = kl_hash(&in, sizeof in, 13); // decides where it is found only
  uint32_t id = kl_ids_find(w->cx, &s->concatenate_ids, hash, is_choice, &(kl_sought){w, in});
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
    guard = kl_walk_guard(w, guard, x->constraints[i].e, x->constraints[i].in.lo, x->constraints[i].in.hi, &never);
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
  const int64_t *offsets = kl_operand_offsets(w, c, in);
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
  uint32_t fr = kl_walk_enter(w, (kl_frame){callee, n->frame, n->instr, .first_operand = first_operand});
  VEC_PUSH(w->cx, &d->nodes, kl_want(w, fr, callee->root, n->leaf, n->guard, n->rank, n->index));
}

// A map's computation takes and gives scalars.
static void need_mapped(walk *w, needs *d, const node *n) {
  const kl_instr *in = &w->frames.p[n->frame].comp->instr[n->instr];
  const kl_comp *callee = &w->plan->module->comp[in->called[0]];
  kl_frame f = {callee, n->frame, n->instr, .scalars = true, .rank = n->rank, .index = n->index};
  VEC_PUSH(w->cx, &d->nodes, kl_want(w, kl_walk_enter(w, f), callee->root, 0, n->guard, 0, NULL));
  d->alias = true;
}

// What the caller's operand is, or what was given.
static void need_argument(walk *w, needs *d, const node *n) {
  kl_frame f = w->frames.p[n->frame];
  const kl_instr *in = &f.comp->instr[n->instr];
  d->alias = true;
  if (f.scalars && !f.index) {
    VEC_PUSH(w->cx, &d->nodes, kl_want(w, n->frame, n->instr, n->leaf, KL_NONE, 0, NULL));
    return;
  }
  uint32_t operand = w->frames.p[f.parent].comp->instr[f.caller].operands[f.first_operand + in->number];
  uint32_t rank = f.scalars ? f.rank : n->rank;
  const kl_aff *const *index = f.scalars ? f.index : n->index;
  VEC_PUSH(w->cx, &d->nodes, kl_want(w, f.parent, operand, n->leaf, n->guard, rank, index));
}

// Which branch it is: true is the first one; what is no branch's number the last, as -1 is modulo their number. NULL:
// the value has to be made first, and is what d holds.
static const kl_aff *branch_of(walk *w, needs *d, const node *n) {
  const kl_comp *c = w->frames.p[n->frame].comp;
  const kl_instr *in = &c->instr[n->instr];
  kl_dtype t = kl_operand(c, in, 0)->shape->dtype;
  uint32_t id = kl_want(w, n->frame, in->operands[0], 0, KL_NONE, 0, NULL);
  pretend(w, id, t);
  if (!kl_is_made(w, w->nodes.p[id])) {
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

// Negative: the result has parts of the operand's elements; positive: the other way round.
int kl_width_change(const kl_comp *c, const kl_instr *in) {
  if (in->op != KL_OP_BITCAST_CONVERT && in->op != KL_OP_BITCAST) return 0;
  return (int)kl_info(in->shape->dtype)->bits - (int)kl_info(kl_operand(c, in, 0)->shape->dtype)->bits;
}

// A copy, by whatever name: bits stay as they are.
static bool is_identity(const kl_comp *c, const kl_instr *in) {
  return (in->op == KL_OP_CONVERT || in->op == KL_OP_REAL) && in->shape->dtype == kl_operand(c, in, 0)->shape->dtype;
}

void kl_needs_of_node(walk *w, const node *n, needs *d) {
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
  case KL_KIND_WHILE: return kl_need_rounds(w, d, n);
  case KL_KIND_PAD: return need_padded(w, d, n);
  case KL_KIND_REDUCE_WINDOW: return kl_need_window(w, d, n);
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

void kl_node_needs_free(kl_walk *w, kl_node_needs *d) {
  VEC_FREE(w->cx, &d->nodes);
  VEC_FREE(w->cx, &d->guards);
}
