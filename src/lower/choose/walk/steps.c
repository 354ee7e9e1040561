// From what is wanted to the steps of a body.
//
// Index transforms make no step: their node takes the step of the operand's node at the mapped index. The walk keeps
// its own stack, because a fusion may be thousands of operations deep.
#include "lower/choose/walk/impl.h"

typedef kl_wanted node;
typedef kl_walk walk;
typedef kl_node_needs needs;

// --- steps --------------------------------------------------------------------------------------------------------

enum { MOST_IN_TEXT = 1 << 20 }; // bytes

static bool is_constant(const void *arg, uint32_t id) {
  const kl_sought *x = arg;
  return x->w->slots->constants.p[id] == x->what;
}

static kiln_status constant_slot(walk *w, const kl_instr *in, const kl_array *literal, uint32_t *slot) {
  kl_slots *s = w->slots;
  uint64_t hash = kl_hash(&literal, sizeof literal, 11); // decides where it is found, not what its number is
  uint32_t id = kl_ids_find(w->cx, &s->constant_ids, hash, is_constant, &(kl_sought){w, literal});
  if (id < s->constants.n) {
    *slot = s->constant_slots.p[id];
    return KILN_OK;
  }
  *slot = (uint32_t)s->v.n;
  VEC_PUSH(w->cx, &s->constants, literal);
  VEC_PUSH(w->cx, &s->constant_slots, *slot);
  const kl_shape *shape = kl_in_order(w->plan->arena, literal->shape);
  int64_t bytes = kl_shape_bytes(shape);
  void *data = kl_arena_try_alloc(w->arena, (size_t)bytes);
  if (!data) return kl_out_of_memory(w->cx, (size_t)bytes, "a constant");
  kl_array_pack(&(kl_array){shape, literal->data}, data);
  kl_slot_info info = {
      .kind = KL_SLOT_CONST, .shape = shape, .bytes = bytes, .align = 16, .data = data, .alias = KL_NONE};
  // In PTX a constant is text, several times as long, which the driver's compiler reads.
  info.given = w->plan->target.machine == KL_NVPTX && bytes > MOST_IN_TEXT;
  VEC_PUSH(w->cx, &s->v, info);
  return KILN_OK;
}

bool kl_is_splat(const kl_instr *in, uint32_t leaf) {
  return in->op == KL_OP_CONSTANT && kl_array_is_splat(&in->literal[leaf]);
}

bool kl_is_loaded(const kl_instr *in, uint32_t leaf) {
  return in->op == KL_OP_PARAMETER || (in->op == KL_OP_CONSTANT && !kl_is_splat(in, leaf));
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
  const kl_aff *linear = kl_dom_simplify(w->w->body->domain, kl_position_of(w->affs, info->shape, n->index));
  if (!kl_is_sound(linear)) w->unsound = linear;
  linear = kl_real(w, linear);
  if (w->unsound) return;
  n->step = kl_write_load(w->w, slot, info, linear, n->guard, in);
  kl_dtype t = kl_shape_leaf(in->shape, n->leaf)->dtype;
  if (t != info->shape->dtype) n->step = kl_write_op(w->w, (kl_plan_op){.op = KL_OP_CONVERT}, t, 1, &n->step);
  n->scope = kl_write_scope_of(w->w, n->step);
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
  linear = kl_real(w, linear);
  if (w->unsound) return KILN_OK;
  uint32_t guard = n->guard;
  bool never = false;
  // What follows from the bounds of many digits is easier to see where it is said.
  if (w->tiled || w->plan->bounded)
    guard = kl_guard_and(&w->w->guards, guard, linear, 0, info->shape->count - 1, &never);
  if (w->copies && slot < w->slots->nargs && w->copies[slot] != KL_NONE) {
    slot = w->copies[slot];
    info = &w->slots->v.p[slot];
  }
  *step = kl_write_load(w->w, slot, info, linear, guard, in);
  kl_dtype t = kl_shape_leaf(in->shape, n->leaf)->dtype;
  *step = of_word(w, *step, t, in);
  return KILN_OK;
}

// Steps know of an instruction what is said here.
static kl_plan_op op_of(const walk *w, const kl_comp *c, const kl_instr *in) {
  return (kl_plan_op){.op = in->op,
                      .nonpositive = kl_is_nonpositive(w->plan->module, c, in),
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
  const kl_aff *e = kl_aff_modc(w->affs, kl_real(w, at), kl_info(from->dtype)->bits / kl_info(in->shape->dtype)->bits);
  e = kl_dom_simplify(w->w->body->domain, e);
  if (!kl_is_sound(e)) w->unsound = e;
  return e;
}

static void fill_step(walk *w, const node *n, const needs *d, const kl_instr *in, kl_step *s) {
  if (in->op == KL_OP_IOTA) {
    s->kind = KL_STEP_IOTA;
    s->expr = kl_real(w, n->index[in->number]);
  } else if (kl_is_splat(in, n->leaf)) {
    const void *data = in->literal[n->leaf].data;
    s->kind = KL_STEP_SCALAR;
    s->bits[0] = kl_element_get(s->dtype, data, 0, 0);
    if (kl_is_complex(s->dtype)) s->bits[1] = kl_element_get(s->dtype, data, 0, 1);
  } else {
    int change = kl_width_change(w->frames.p[n->frame].comp, in);
    s->kind = d->guards.n ? KL_STEP_CHOOSE : change < 0 ? KL_STEP_SPLIT : change > 0 ? KL_STEP_JOIN : KL_STEP_OP;
    if (change < 0) s->expr = part_of(w, n, in);
    if (s->kind == KL_STEP_OP) s->op = op_of(w, w->frames.p[n->frame].comp, in);
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
  if (in->op == KL_OP_REDUCE_WINDOW) return kl_make_window(w, n, d);
  if (kl_is_loaded(in, n->leaf)) {
    KL_TRY(load(w, n, in, &n->step));
    if (w->unsound) return KILN_OK;
  } else {
    kl_step s = {.instr = in, .dtype = kl_shape_leaf(in->shape, n->leaf)->dtype};
    fill_step(w, n, d, in, &s);
    n->step = kl_write_step(w->w, &s);
  }
  n->scope = kl_write_scope_of(w->w, n->step);
  return KILN_OK;
}

// Asks for the operands that are not made yet; true if there were none.
static bool ready(walk *w, const needs *d) {
  bool all = true;
  for (size_t i = d->nodes.n; i-- > 0;) {
    if (kl_is_made(w, w->nodes.p[d->nodes.p[i]])) continue;
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
  if (st == KILN_OK && kl_find_carried(w, n)) {
    *done = true;
  } else if (st == KILN_OK && kl_carries(w, n)) {
    st = kl_make_rounds(w, n, done);
  } else if (st == KILN_OK) {
    kl_needs_of_node(w, n, &d);
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

kiln_status kl_resolve(walk *w, uint32_t root, uint32_t *step) {
  size_t below = w->stack.n; // of what called is made for
  VEC_PUSH(w->cx, &w->stack, root);
  while (w->stack.n > below) {
    node *n = w->nodes.p[w->stack.p[w->stack.n - 1]];
    bool done = kl_is_made(w, n);
    if (!done && !w->elsewhere) KL_TRY(visit(w, n, &done));
    if (done) w->stack.n--;
    if (w->unsound) return kl_plan_refuse_index(w->cx, w->plan, kl_why_unsound(w->unsound));
    if (w->elsewhere && w->goes_on) {
      w->stack.n = below;
      break;
    }
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
  kl_walk_enter(w, (kl_frame){plan->comp, KL_NONE, KL_NONE});
}

void kl_walk_free(walk *w) {
  VEC_FREE(w->cx, &w->frames);
  VEC_FREE(w->cx, &w->nodes);
  VEC_FREE(w->cx, &w->given);
  VEC_FREE(w->cx, &w->shared);
  VEC_FREE(w->cx, &w->stack);
  VEC_FREE(w->cx, &w->loops);
  VEC_FREE(w->cx, &w->rounds);
  kl_runtimes_destroy(&w->runtimes);
  kl_ids_free(w->cx, &w->frame_ids);
  kl_ids_free(w->cx, &w->node_ids);
}

static uint32_t rank_of(const walk *w, uint32_t instr, uint32_t leaf) {
  return kl_shape_leaf(w->plan->comp->instr[instr].shape, leaf)->rank;
}

kiln_status kl_walk_want(walk *w, uint32_t instr, uint32_t leaf, uint32_t guard, const kl_aff *const *index,
                         uint32_t *step) {
  uint32_t id = kl_want(w, 0, instr, leaf, guard, rank_of(w, instr, leaf), index);
  return kl_resolve(w, id, step);
}

static uint32_t give(walk *w, uint32_t frame, uint32_t instr, uint32_t leaf, uint32_t rank, const kl_aff *const *index,
                     uint32_t step) {
  uint32_t id = kl_want(w, frame, instr, leaf, KL_NONE, rank, index);
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
  uint32_t frame = kl_walk_enter(w, f), at = 0;
  for (uint32_t i = 0; i < comp->nparams; i++)
    for (uint32_t l = 0; l < kl_shape_leaf_count(comp->instr[comp->params[i]].shape); l++)
      give(w, frame, comp->params[i], l, 0, NULL, args[at++]);
  for (uint32_t l = 0; l < kl_shape_leaf_count(kl_root(comp)->shape); l++)
    KL_TRY(kl_resolve(w, kl_want(w, frame, comp->root, l, KL_NONE, 0, NULL), &results[l]));
  return KILN_OK;
}

kiln_status kl_walk_apply(kl_walk *w, uint32_t caller, const kl_comp *comp, const kl_aff *const *index,
                          const uint32_t *args, uint32_t *results) {
  uint32_t at = 0, frame = kl_walk_enter(w, (kl_frame){comp, 0, caller, .first_operand = (uint32_t)w->frames.n});
  for (uint32_t i = 0; i < comp->nparams; i++) {
    const kl_shape *s = comp->instr[comp->params[i]].shape;
    for (uint32_t l = 0; l < kl_shape_leaf_count(s); l++) {
      uint32_t id = give(w, frame, comp->params[i], l, kl_shape_leaf(s, l)->rank, index, args[at++]);
      VEC_PUSH(w->cx, &w->given, id);
    }
  }
  for (uint32_t l = 0; l < kl_shape_leaf_count(kl_root(comp)->shape); l++) {
    uint32_t rank = kl_shape_leaf(kl_root(comp)->shape, l)->rank;
    KL_TRY(kl_resolve(w, kl_want(w, frame, comp->root, l, KL_NONE, rank, index), &results[l]));
  }
  return KILN_OK;
}
