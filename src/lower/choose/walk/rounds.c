// Loops whose rounds data says: an element of what one changes, from round to round.
//
// Who wants an element carries it, and with it all that its next value may be made of: elements of arrays of the same
// dims at the same index, and those of its lane, or scalars (choose/private.h). What the loop does not change is wanted
// from before it, at whatever index.

#include "lower/choose/walk/impl.h"

#include "lower/choose/private.h"

typedef kl_wanted node;
typedef kl_walk walk;
typedef kl_node_needs needs;

// What is known of a while.
struct kl_loop {
  const kl_instr *instr;
  const kl_loop_lanes *lanes;
};

// What computations called in a round find in the place of their parameter.
struct kl_rounds {
  uint32_t frame; // of the one that is called
  uint32_t rank, lane_rank;
  const kl_aff *const *index, *const *lane; // of elements of arrays, and of their lane
  const uint32_t *steps;                    // by leaf; KL_NONE: it is not carried
  kl_vars scalars, elements;                // reg variables that scalars, and elements, may depend on
};

static const kl_instr *instr_of(const walk *w, const node *n) {
  return &w->frames.p[n->frame].comp->instr[n->instr];
}

static const kl_loop_lanes *lanes_of(walk *w, const kl_instr *in) {
  for (size_t i = w->loops.n; i-- > 0;)
    if (w->loops.p[i]->instr == in) return w->loops.p[i]->lanes;
  struct kl_loop *loop = KL_NEW(w->arena, struct kl_loop);
  loop->instr = in;
  loop->lanes = kl_loop_find_lanes(w->plan->module, in, w->arena);
  VEC_PUSH(w->cx, &w->loops, loop);
  return loop->lanes;
}

static const bool *changes_of(walk *w, const kl_instr *in) {
  return lanes_of(w, in)->changes;
}

bool kl_carries(walk *w, const node *n) {
  const kl_instr *in = instr_of(w, n);
  return in->op == KL_OP_WHILE && changes_of(w, in)[n->leaf];
}

static bool is_like(const walk *w, const node *n, uint32_t l) {
  const kl_shape *whole = instr_of(w, n)->shape;
  return kl_shape_same_dims(kl_shape_leaf(whole, l), kl_shape_leaf(whole, n->leaf));
}

static bool is_of_lanes(walk *w, const node *n, uint32_t l) {
  const kl_instr *in = instr_of(w, n);
  return kl_shape_same_dims(kl_shape_leaf(in->shape, l), lanes_of(w, in)->lanes);
}

// Does a loop that carries the node carry leaf l with it?
static bool goes_along(walk *w, const node *n, uint32_t l) {
  return changes_of(w, instr_of(w, n))[l] && (is_of_lanes(w, n, l) || is_like(w, n, l));
}

static uint32_t rank_of(const walk *w, const node *n, uint32_t l) {
  return kl_shape_leaf(instr_of(w, n)->shape, l)->rank;
}

// The computation that a while calls, on its state as it is at first, or, with `carried`, in rounds.
static kl_frame frame_of(const walk *w, const node *n, uint32_t number, const bool *carried) {
  const kl_comp *comp = &w->plan->module->comp[instr_of(w, n)->called[number]];
  return (kl_frame){comp, n->frame, n->instr, .carried = carried};
}

// The index of the lane of what is wanted.
static const kl_aff *const *lane_of(walk *w, const node *n) {
  const kl_loop_lanes *x = lanes_of(w, instr_of(w, n));
  const kl_aff **lane = KL_NEW_N(w->arena, const kl_aff *, x->lanes->rank + 1);
  for (uint32_t d = 0; d < x->lanes->rank; d++) lane[d] = n->index[x->along[n->leaf][d]];
  return lane;
}

static const kl_aff *const *index_of(walk *w, const node *n, uint32_t l) {
  return is_like(w, n, l) ? n->index : lane_of(w, n);
}

static uint32_t want_first(walk *w, const node *n, uint32_t l) {
  const kl_aff *const *index = l == n->leaf ? n->index : index_of(w, n, l);
  return kl_want(w, n->frame, instr_of(w, n)->operands[0], l, n->guard, rank_of(w, n, l), index);
}

static uint32_t want_next(walk *w, const node *n, uint32_t frame, uint32_t l) {
  kl_loop_value next = lanes_of(w, instr_of(w, n))->next[l];
  return kl_want(w, frame, next.instr, next.leaf, n->guard, rank_of(w, n, l), index_of(w, n, l));
}

static uint32_t want_condition(walk *w, const node *n, uint32_t frame) {
  const kl_loop_lanes *x = lanes_of(w, instr_of(w, n));
  return kl_want(w, frame, x->again.instr, x->again.leaf, n->guard, x->lanes->rank, lane_of(w, n));
}

// What has to be there before the first round; to who looks, what rounds read as well.
void kl_need_rounds(walk *w, needs *d, const node *n) {
  const kl_instr *in = instr_of(w, n);
  const bool *changes = changes_of(w, in);
  d->alias = !changes[n->leaf];
  if (d->alias) {
    VEC_PUSH(w->cx, &d->nodes, want_first(w, n, n->leaf));
    return;
  }
  uint32_t body = w->looks ? kl_walk_enter(w, frame_of(w, n, 1, changes)) : 0;
  for (uint32_t l = 0; l < kl_shape_leaf_count(in->shape); l++) {
    if (!goes_along(w, n, l)) continue;
    VEC_PUSH(w->cx, &d->nodes, want_first(w, n, l));
    if (!w->looks) continue;
    VEC_PUSH(w->cx, &d->nodes, want_next(w, n, body, l));
  }
  VEC_PUSH(w->cx, &d->nodes, want_condition(w, n, kl_walk_enter(w, frame_of(w, n, 0, NULL))));
}

// --- variables ------------------------------------------------------------------------------------------------------

static kl_vars vars_of_index(const walk *w, uint32_t rank, const kl_aff *const *index) {
  kl_vars vars = 0;
  for (uint32_t i = 0; i < rank; i++) vars |= kl_vars_of(w->w->body, index[i]);
  return vars;
}

static const struct kl_rounds *rounds_of(const walk *w, uint32_t frame) {
  for (size_t i = w->rounds.n; i-- > 0;)
    if (w->rounds.p[i]->frame == frame) return w->rounds.p[i];
  return NULL;
}

// Variables that what the frame is called with may depend on: in rounds around, what these carry; in a map, an element.
static void vars_around(const walk *w, uint32_t frame, kl_vars *scalars, kl_vars *elements) {
  bool mapped = false;
  for (uint32_t f = frame; f; f = w->frames.p[f].parent) {
    const kl_frame *at = &w->frames.p[f];
    const struct kl_rounds *r = rounds_of(w, f);
    mapped |= at->scalars;
    if (at->scalars) *scalars |= vars_of_index(w, at->index ? at->rank : 0, at->index);
    if (r) *elements |= r->elements, *scalars |= mapped ? r->elements : r->scalars;
  }
  *elements |= *scalars;
}

// --- rounds ---------------------------------------------------------------------------------------------------------

// One element from round to round.
typedef struct carrying {
  const node *n;
  uint32_t nleaves, count; // of what is carried: leaves, and behind them whether there is another round
  uint32_t *leaf, *first, *carried, *next;
  kl_vars *regs;
  struct kl_rounds in_round;
} carrying;

static uint32_t *by_leaf(walk *w, const carrying *c, const uint32_t *steps) {
  uint32_t *out = KL_NEW_N(w->arena, uint32_t, c->nleaves + 1);
  for (uint32_t l = 0; l < c->nleaves; l++) out[l] = KL_NONE;
  for (uint32_t i = 0; i + 1 < c->count; i++) out[c->leaf[i]] = steps[i];
  return out;
}

// Begins a frame whose parameter's leaves are `steps`.
static uint32_t enter(walk *w, const carrying *c, uint32_t number, const uint32_t *steps) {
  const bool *changes = changes_of(w, instr_of(w, c->n));
  // an array of its own, so that no frame is this one
  const bool *own = kl_arena_dup(w->arena, changes, (c->nleaves + 1) * sizeof *own);
  struct kl_rounds *r = kl_arena_dup(w->arena, &c->in_round, sizeof *r);
  r->frame = kl_walk_enter(w, frame_of(w, c->n, number, own));
  r->steps = by_leaf(w, c, steps);
  VEC_PUSH(w->cx, &w->rounds, r);
  return r->frame;
}

static void list_carried(walk *w, carrying *c) {
  uint32_t n = c->nleaves + 1;
  c->leaf = KL_NEW_N(w->arena, uint32_t, n);
  c->first = KL_NEW_N(w->arena, uint32_t, n);
  c->carried = KL_NEW_N(w->arena, uint32_t, n);
  c->next = KL_NEW_N(w->arena, uint32_t, n);
  c->regs = KL_NEW_N(w->arena, kl_vars, n);
  for (uint32_t l = 0; l < c->nleaves; l++)
    if (goes_along(w, c->n, l)) c->leaf[c->count++] = l;
  c->count++;
}

// Where nobody wants the element there is no round: with what stands in its place, one might follow the other for ever.
static uint32_t first_condition(walk *w, const node *n, uint32_t step) {
  if (n->guard == KL_NONE) return step;
  return kl_write_choose(w->w, n->guard, step, kl_write_scalar(w->w, KILN_PRED, 0, 0));
}

static void set_firsts(walk *w, carrying *c) {
  const node *n = c->n;
  const kl_step *steps;
  kl_vars scalars = 0, around = 0, elements = vars_of_index(w, n->rank, n->index);
  kl_vars reg = kl_bound(w->w->body, KL_BIND_REG);
  uint32_t lane_rank = lanes_of(w, instr_of(w, n))->lanes->rank;
  const kl_aff *const *lane = lane_of(w, n);
  uint32_t test = want_condition(w, n, kl_walk_enter(w, frame_of(w, n, 0, NULL))), last = c->count - 1;
  c->first[last] = first_condition(w, n, w->nodes.p[test]->step);
  vars_around(w, n->frame, &scalars, &around);
  if (lane_rank) scalars |= around | vars_of_index(w, lane_rank, lane);
  elements |= around;
  for (uint32_t i = 0; i < last; i++) {
    uint32_t first = want_first(w, n, c->leaf[i]);
    c->first[i] = w->nodes.p[first]->step;
  }
  steps = w->w->steps.p;
  scalars |= steps[c->first[last]].regs;
  for (uint32_t i = 0; i < last; i++)
    *(is_of_lanes(w, n, c->leaf[i]) ? &scalars : &elements) |= steps[c->first[i]].regs;
  elements |= scalars;
  for (uint32_t i = 0; i < c->count; i++)
    c->regs[i] = (i < last && !is_of_lanes(w, n, c->leaf[i]) ? elements : scalars) & reg;
  c->in_round = (struct kl_rounds){.rank = n->rank,
                                   .index = n->index,
                                   .lane_rank = lane_rank,
                                   .lane = lane,
                                   .scalars = scalars & reg,
                                   .elements = elements & reg};
}

static kiln_status make_round(walk *w, carrying *c) {
  const node *n = c->n;
  uint32_t last = c->count - 1, body = enter(w, c, 1, c->carried);
  for (uint32_t i = 0; i < last; i++) KL_TRY(kl_resolve(w, want_next(w, n, body, c->leaf[i]), &c->next[i]));
  return kl_resolve(w, want_condition(w, n, enter(w, c, 0, c->next)), &c->next[last]);
}

// Scalars are wanted without a guard by others, for whom there has been no round off it.
static void set_results(walk *w, const carrying *c) {
  const node *n = c->n;
  for (uint32_t i = 0; i + 1 < c->count; i++) {
    uint32_t l = c->leaf[i], rank = rank_of(w, n, l);
    if (l != n->leaf && rank != n->rank && n->guard != KL_NONE) continue;
    uint32_t id = kl_want(w, n->frame, n->instr, l, n->guard, rank, index_of(w, n, l));
    node *made = w->nodes.p[id];
    if (kl_is_made(w, made)) continue;
    made->step = c->carried[i];
    made->scope = kl_write_scope_of(w->w, made->step);
  }
}

kiln_status kl_make_rounds(walk *w, node *n, bool *done) {
  carrying c = {.n = n, .nleaves = (uint32_t)kl_shape_leaf_count(instr_of(w, n)->shape)};
  needs d = {0};
  *done = true;
  kl_need_rounds(w, &d, n);
  for (size_t i = d.nodes.n; i-- > 0;) {
    if (kl_is_made(w, w->nodes.p[d.nodes.p[i]])) continue;
    VEC_PUSH(w->cx, &w->stack, d.nodes.p[i]);
    *done = false;
  }
  kl_node_needs_free(w, &d);
  if (!*done || w->unsound) return KILN_OK;
  list_carried(w, &c);
  set_firsts(w, &c);
  kl_write_while(w->w, c.count - 1, c.count, c.first, c.regs, c.carried);
  KL_TRY(make_round(w, &c));
  kl_write_while_end(w->w, c.next);
  set_results(w, &c);
  return KILN_OK;
}

bool kl_find_carried(walk *w, node *n) {
  const kl_frame *f = &w->frames.p[n->frame];
  if (!f->carried || instr_of(w, n)->op != KL_OP_PARAMETER || !f->carried[n->leaf]) return false;
  const struct kl_rounds *r = rounds_of(w, n->frame);
  bool same = (n->rank == r->rank && (!n->rank || memcmp(n->index, r->index, n->rank * sizeof *n->index) == 0)) ||
              (n->rank == r->lane_rank && (!n->rank || memcmp(n->index, r->lane, n->rank * sizeof *n->index) == 0));
  if (!same || r->steps[n->leaf] == KL_NONE) {
    w->elsewhere = n;
    return true;
  }
  n->step = r->steps[n->leaf];
  n->scope = kl_write_scope_of(w->w, n->step);
  return true;
}
