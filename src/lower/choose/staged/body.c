// What bodies of stages have in common.

#include "lower/choose/staged/staged.h"

enum { WARP = 32, WARPS = 8 };

const kl_aff *kl_stage_elements(kl_stage_body *b, const kl_stage *s, int64_t count, int64_t each) {
  const kl_target *t = &s->c->plan->target;
  bool host = t->machine == KL_HOST;
  *b = (kl_stage_body){.s = s, .keep = KL_NONE};
  int64_t n = host ? t->host_lanes : each, warps = host ? 1 : WARPS, lanes = host ? 1 : WARP, group = n * warps * lanes;
  uint32_t var;
  int64_t blocks = count / group + (count % group != 0);
  const kl_aff *at = kl_new_var(s->p, &b->vars, KL_BIND_BLOCK, blocks, "block", &var);
  at = kl_aff_addmul(s->p, kl_new_var(s->p, &b->vars, KL_BIND_WARP, warps, "warp", &var), at, warps);
  at = kl_aff_addmul(s->p, kl_new_var(s->p, &b->vars, KL_BIND_LANE, lanes, "lane", &var), at, lanes);
  const kl_aff *v = kl_new_var(s->p, &b->vars, host ? KL_BIND_LANE : KL_BIND_REG, n, host ? "lane" : "v", &var);
  if (!host && var != KL_NONE) b->element = (kl_vars)1 << var;
  return kl_aff_addmul(s->p, v, at, n);
}

void kl_stage_index(kl_stage_body *b, const kl_shape *shape, const kl_aff *at, const kl_aff **index) {
  bool never;
  at = kl_dom_simplify(b->w.body->domain, at);
  b->keep = kl_guard_and(&b->w.guards, KL_NONE, at, 0, shape->count - 1, &never);
  kl_index_at(b->s->p, shape, at, index);
}

kiln_status kl_stage_write(kl_stage_body *b, int64_t count, kiln_status (*write)(void *arg), void *arg) {
  kl_choosing *c = b->s->c;
  kl_plan *p = c->plan;
  bool host = p->target.machine == KL_HOST;
  kl_body body = {0};
  kl_take_vars(c->arena, &b->vars, &body);
  uint32_t threads =
      host ? 1 : (uint32_t)kl_extent(&body, kl_bound(&body, KL_BIND_WARP) | kl_bound(&body, KL_BIND_LANE));
  if (!host && body.blocks > INT32_MAX)
    return kl_unsupported(c->cx, b->s->instr->span, "%lld elements need %lld blocks: a grid has at most 2^31-1",
                          (long long)count, (long long)body.blocks);
  if (kl_last_launch(p)->nparts)
    kl_plan_add_launch(p, threads);
  else
    kl_last_launch(p)->block = threads;
  body.width = host ? (uint32_t)kl_extent(&body, kl_bound(&body, KL_BIND_LANE)) : 1;
  kl_write_begin(&b->w, c->cx, p, &body);
  kl_walk_begin(&b->walk, c->cx, p, &c->slots, &b->w);
  kiln_status st = write(arg);
  kl_walk_free(&b->walk);
  if (st != KILN_OK) {
    kl_write_free(&b->w);
    return st;
  }
  kl_write_end(&b->w);
  kl_part part = {.dim = KL_NONE, .count = count, .main = body, .blocks = body.blocks, .main_blocks = body.blocks};
  kl_plan_add_part(p, &part);
  return KILN_OK;
}

const kl_shape *kl_stage_result(const kl_stage *s, uint32_t leaf) {
  while (s->slot[leaf] == KL_NONE) leaf++;
  return s->c->slots.v.p[s->slot[leaf]].shape;
}

// --- memory ---------------------------------------------------------------------------------------------------------

static const kl_slot_info *slot_of(const kl_stage_body *b, uint32_t slot) {
  return &b->s->c->slots.v.p[slot];
}

static uint32_t converted(kl_stage_body *b, uint32_t value, kl_dtype t) {
  if (b->w.steps.p[value].dtype == t) return value;
  return kl_write_op(&b->w, (kl_plan_op){.op = KL_OP_CONVERT}, t, 1, &value);
}

uint32_t kl_stage_load(kl_stage_body *b, uint32_t slot, const kl_aff *const *index, uint32_t keep, kl_dtype t) {
  const kl_slot_info *info = slot_of(b, slot);
  const kl_aff *linear = kl_dom_simplify(b->w.body->domain, kl_position_of(b->s->p, info->shape, index));
  bool never;
  if (b->s->c->plan->bounded) keep = kl_guard_and(&b->w.guards, keep, linear, 0, info->shape->count - 1, &never);
  return converted(b, kl_write_load(&b->w, slot, info, linear, keep, b->s->instr), t);
}

kiln_status kl_stage_store(kl_stage_body *b, uint32_t slot, const kl_aff *const *index, uint32_t value, uint32_t keep) {
  const kl_slot_info *info = slot_of(b, slot);
  const kl_aff *linear = kl_dom_simplify(b->w.body->domain, kl_position_of(b->s->p, info->shape, index));
  if (!kl_is_sound(linear)) return kl_plan_refuse_index(b->s->c->cx, b->s->c->plan, kl_why_unsound(linear));
  kl_write_store(&b->w, slot, info, linear, converted(b, value, info->shape->dtype), keep);
  return KILN_OK;
}

uint32_t kl_stage_scratch(const kl_stage *s, const kl_shape *shape, kl_dtype t) {
  kl_choosing *c = s->c;
  kl_shape *as = kl_in_order(c->plan->arena, shape);
  as->dtype = kl_in_bytes(t);
  uint32_t slot = kl_add_scratch(c->cx, c->plan, &c->slots, as->dtype, as->count);
  c->slots.v.p[slot].shape = as;
  return slot;
}

uint32_t kl_stage_beside(kl_stage_body *b, const uint32_t *values, const kl_aff *v, int64_t n) {
  kl_arena *arena = b->s->c->arena;
  kl_step s = {.kind = KL_STEP_CHOOSE, .dtype = b->w.steps.p[*values].dtype, .noperands = (uint32_t)n};
  uint32_t *guards = KL_NEW_N(arena, uint32_t, n);
  bool never;
  if (n == 1) return *values;
  for (int64_t i = 0; i < n; i++)
    guards[i] = i + 1 < n ? kl_guard_and(&b->w.guards, KL_NONE, v, i, i, &never) : KL_NONE;
  s.operands = kl_arena_dup(arena, values, (size_t)n * sizeof *values);
  s.guards = guards;
  return kl_write_step(&b->w, &s);
}

// --- integers -------------------------------------------------------------------------------------------------------

kl_dtype kl_stage_integer(int64_t most) {
  return most <= INT32_MAX ? KILN_S32 : KILN_S64;
}

uint32_t kl_stage_number(kl_stage_body *b, kl_dtype t, const kl_aff *e) {
  e = kl_dom_simplify(b->w.body->domain, e);
  if (!e->n) return kl_write_scalar(&b->w, t, (uint64_t)e->c & kl_int_mask(t), 0);
  return kl_write_step(&b->w, &(kl_step){.kind = KL_STEP_IOTA, .dtype = t, .expr = e});
}

uint32_t kl_stage_op(kl_stage_body *b, kl_op op, uint32_t x, uint32_t y) {
  return kl_write_op(&b->w, (kl_plan_op){.op = op}, b->w.steps.p[x].dtype, 2, (uint32_t[]){x, y});
}

uint32_t kl_stage_compare(kl_stage_body *b, kl_direction d, kl_compare_type type, uint32_t x, uint32_t y) {
  kl_plan_op op = {.op = KL_OP_COMPARE, .direction = d, .compare_type = type};
  return kl_write_op(&b->w, op, KILN_PRED, 2, (uint32_t[]){x, y});
}

uint32_t kl_stage_select(kl_stage_body *b, uint32_t which, uint32_t yes, uint32_t no) {
  kl_dtype t = b->w.steps.p[yes].dtype;
  return yes == no ? yes : kl_write_op(&b->w, (kl_plan_op){.op = KL_OP_SELECT}, t, 3, (uint32_t[]){which, yes, no});
}

// --- loops ----------------------------------------------------------------------------------------------------------

void kl_stage_box_vars(kl_stage_body *b, kl_stage_box *x, uint32_t n, const int64_t *sizes) {
  static const char *const names[] = {"i", "j", "k", "l"};
  *x = (kl_stage_box){.n = n};
  for (uint32_t d = 0, named = 0; d < n; d++) {
    const char *name = named < KL_COUNT(names) ? names[named] : kl_strf(b->s->c->arena, "i%u", named);
    x->at[d] = kl_new_var(b->s->p, &b->vars, KL_BIND_STEP, sizes[d], name, &x->var[d]);
    named += x->var[d] != KL_NONE;
  }
}

void kl_stage_box_begin(kl_stage_body *b, kl_stage_box *x, uint32_t nvalues, uint32_t *values) {
  kl_arena *arena = b->s->c->arena;
  kl_vars *regs = KL_NEW_N(arena, kl_vars, nvalues + 1u);
  uint32_t *first = KL_NEW_N(arena, uint32_t, nvalues + 1u);
  x->nvalues = nvalues;
  for (uint32_t i = 0; i < nvalues; i++) regs[i] = b->element;
  for (uint32_t d = 0; d < x->n; d++) {
    if (x->var[d] == KL_NONE) continue;
    if (nvalues) memcpy(first, values, nvalues * sizeof *first);
    kl_write_loop(&b->w, x->var[d], nvalues, first, regs, values);
  }
}

// What a round hands on as it was, or from another value, is a value of its own behind the loop.
void kl_stage_box_end(kl_stage_body *b, kl_stage_box *x, uint32_t *values) {
  for (uint32_t i = 0; i < x->nvalues; i++) {
    const kl_step *s = &b->w.steps.p[values[i]];
    kl_dtype t = s->dtype;
    if (s->kind == KL_STEP_CARRIED) values[i] = kl_write_op(&b->w, (kl_plan_op){.op = KL_OP_COPY}, t, 1, &values[i]);
  }
  for (uint32_t d = x->n; d-- > 0;)
    if (x->var[d] != KL_NONE) kl_write_loop_end(&b->w, values);
}

// Points that take no more code one by one than is worth a loop's index arithmetic, which is of every round.
enum { FEW_POINTS = 16 };

void kl_stage_box_points(kl_stage_body *b, kl_stage_box *x, uint32_t n, const int64_t *sizes) {
  int64_t points = 1;
  for (uint32_t d = 0; d < n; d++)
    if (__builtin_mul_overflow(points, sizes[d], &points)) points = INT64_MAX;
  if (points > FEW_POINTS) return kl_stage_box_vars(b, x, n, sizes);
  *x = (kl_stage_box){.n = n, .few = kl_arena_dup(b->s->c->arena, sizes, n * sizeof *sizes)};
}

static kiln_status write_points(kl_stage_body *b, kl_stage_box *x, uint32_t dim, uint32_t *values,
                                kiln_status (*write)(void *arg, uint32_t *values), void *arg) {
  if (dim == x->n) return write(arg, values);
  for (int64_t i = 0; i < x->few[dim]; i++) {
    x->at[dim] = kl_aff_const(b->s->p, i);
    KL_TRY(write_points(b, x, dim + 1, values, write, arg));
  }
  return KILN_OK;
}

kiln_status kl_stage_box_write(kl_stage_body *b, kl_stage_box *x, uint32_t nvalues, uint32_t *values,
                               kiln_status (*write)(void *arg, uint32_t *values), void *arg) {
  if (x->few) return write_points(b, x, 0, values, write, arg);
  kl_stage_box_begin(b, x, nvalues, values);
  KL_TRY(write(arg, values));
  kl_stage_box_end(b, x, values);
  return KILN_OK;
}

// --- lines ----------------------------------------------------------------------------------------------------------

void kl_stage_count_lines(const kl_shape *s, uint32_t dim, int64_t *outer, int64_t *inner) {
  *outer = *inner = 1;
  bool faster = true;
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(s, i);
    if (d == dim)
      faster = false;
    else
      *(faster ? inner : outer) *= s->dims[d];
  }
}

void kl_stage_line_index(kl_affs *p, const kl_shape *s, uint32_t dim, const kl_aff *outer, const kl_aff *inner,
                         const kl_aff *i, const kl_aff **index) {
  const kl_aff *number = inner;
  uint32_t last = KL_NONE;
  for (uint32_t k = 0; k < s->rank; k++) {
    uint32_t d = (uint32_t)kl_shape_minor_to_major(s, k);
    if (last != KL_NONE && d != dim) {
      index[last] = kl_aff_modc(p, number, s->dims[last]);
      number = kl_aff_floordivc(p, number, s->dims[last]);
    } else if (last != KL_NONE) {
      index[last] = number;
    }
    last = d == dim ? KL_NONE : d;
    if (d == dim) number = outer;
  }
  if (last != KL_NONE) index[last] = number;
  index[dim] = i;
}
