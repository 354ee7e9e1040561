// Folds as steps: values, pairs, lanes.
//
// What is absent is the identity of the reducer, which changes no bit of what it is joined with: -0 for a sum of
// floats, as 0 would make -0 into 0. Of a reducer without a known identity each value says whether it is there.

#include "lower/choose/reduce/reduce.h"

static kl_dtype type_of(const kl_folding *f, uint32_t step) {
  return f->g->w.steps.p[step].dtype;
}

static uint32_t presence(kl_folding *f, bool there) {
  return kl_write_scalar(&f->g->w, KILN_PRED, there, 0);
}

// --- values ---------------------------------------------------------------------------------------------------------

void kl_fold_nothing(kl_folding *f, uint32_t *values) {
  const kl_reducer *by = f->by;
  for (uint32_t i = 0; i < by->nvalues; i++) {
    const uint64_t *bits = by->has_identity ? by->identity : (uint64_t[2]){0, 0};
    values[i] = kl_write_scalar(&f->g->w, by->type[i], bits[0], bits[1]);
  }
  if (by->n > by->nvalues) values[by->nvalues] = presence(f, false);
}

kiln_status kl_fold_values(kl_folding *f, const kl_aff *const *index, uint32_t guard, uint32_t *values) {
  const kl_reducer *by = f->by;
  const kl_instr *in = &f->g->walk.plan->comp->instr[by->instr];
  uint32_t nothing[KL_MAX_VALUES_FOLDED];
  if (guard != KL_NONE) kl_fold_nothing(f, nothing);
  for (uint32_t i = 0; i < by->nvalues; i++) {
    KL_TRY(kl_walk_want(&f->g->walk, in->operands[i], 0, guard, index, &values[i]));
    values[i] = kl_converted(f->g, values[i], by->type[i]);
    if (guard != KL_NONE) values[i] = kl_write_choose(&f->g->w, guard, values[i], nothing[i]);
  }
  if (by->n == by->nvalues) return KILN_OK;
  uint32_t there = presence(f, true);
  values[by->nvalues] = guard == KL_NONE ? there : kl_write_choose(&f->g->w, guard, there, nothing[by->nvalues]);
  return KILN_OK;
}

// --- joining --------------------------------------------------------------------------------------------------------

static kiln_status call(kl_folding *f, const uint32_t *lower, const uint32_t *higher, uint32_t *out) {
  const kl_reducer *by = f->by;
  if (by->simple) {
    uint32_t both[2] = {*lower, *higher};
    *out = kl_write_op(&f->g->w, by->op, *by->type, 2, both);
    return KILN_OK;
  }
  uint32_t args[2 * KL_MAX_VALUES_FOLDED];
  memcpy(args, lower, by->nvalues * sizeof *args);
  memcpy(args + by->nvalues, higher, by->nvalues * sizeof *args);
  return kl_walk_call(&f->g->walk, by->instr, by->comp, args, out);
}

static uint32_t select_of(kl_folding *f, uint32_t c, uint32_t yes, uint32_t no) {
  uint32_t all[3] = {c, yes, no};
  return yes == no ? yes : kl_write_op(&f->g->w, (kl_plan_op){.op = KL_OP_SELECT}, type_of(f, yes), 3, all);
}

// A value of the two that is there, or what the reducer makes of both.
kiln_status kl_fold_join(kl_folding *f, const uint32_t *lower, const uint32_t *higher, uint32_t *out) {
  const kl_reducer *by = f->by;
  uint32_t made[KL_MAX_VALUES_FOLDED];
  KL_TRY(call(f, lower, higher, made));
  if (by->n > by->nvalues) {
    uint32_t a = lower[by->nvalues], b = higher[by->nvalues], both[2] = {a, b};
    for (uint32_t i = 0; i < by->nvalues; i++) made[i] = select_of(f, b, select_of(f, a, made[i], higher[i]), lower[i]);
    made[by->nvalues] = kl_write_op(&f->g->w, (kl_plan_op){.op = KL_OP_OR}, KILN_PRED, 2, both);
  }
  memcpy(out, made, by->n * sizeof *out);
  return KILN_OK;
}

// --- over variables -------------------------------------------------------------------------------------------------

static void take_all(kl_folding *f, uint32_t var, int64_t at, const uint32_t *values, uint32_t *out) {
  for (uint32_t i = 0; i < f->by->n; i++) out[i] = kl_write_take(&f->g->w, values[i], var, (uint32_t)at);
}

kiln_status kl_fold_in_order(kl_folding *f, uint32_t var, uint32_t *values) {
  if (var == KL_NONE) return KILN_OK;
  uint32_t sum[KL_MAX_VALUES_FOLDED], next[KL_MAX_VALUES_FOLDED];
  take_all(f, var, 0, values, sum);
  for (int64_t i = 1; i < f->g->w.body->vars[var].extent; i++) {
    take_all(f, var, i, values, next);
    KL_TRY(kl_fold_join(f, sum, next, sum));
  }
  memcpy(values, sum, f->by->n * sizeof *values);
  return KILN_OK;
}

// Of values first .. first+n-1 of the variable.
static kiln_status pairs(kl_folding *f, uint32_t var, int64_t first, int64_t n, const uint32_t *values, uint32_t *out) {
  int64_t extent = f->g->w.body->vars[var].extent;
  if (n == 1) {
    take_all(f, var, first, values, out);
    return KILN_OK;
  }
  KL_TRY(pairs(f, var, first, n / 2, values, out));
  if (first + n / 2 >= extent) return KILN_OK;
  uint32_t higher[KL_MAX_VALUES_FOLDED];
  KL_TRY(pairs(f, var, first + n / 2, n / 2, values, higher));
  return kl_fold_join(f, out, higher, out);
}

kiln_status kl_fold_pairs(kl_folding *f, uint32_t var, uint32_t *values) {
  if (var == KL_NONE) return KILN_OK;
  int64_t n = 1;
  while (n < f->g->w.body->vars[var].extent) n *= 2;
  uint32_t out[KL_MAX_VALUES_FOLDED];
  KL_TRY(pairs(f, var, 0, n, values, out));
  memcpy(values, out, f->by->n * sizeof *values);
  return KILN_OK;
}

// What one more of a LANE variable is in the number of the lane.
static uint32_t place_of(const kl_body *b, uint32_t lane) {
  kl_vars faster = kl_bound(b, KL_BIND_LANE) & ~(((kl_vars)2 << lane) - 1);
  return (uint32_t)kl_extent(b, faster);
}

// Both lanes of a pair make the same of it: where the arguments' order counts, each puts the lower lane's first.
kiln_status kl_fold_lanes(kl_folding *f, uint32_t lane, uint32_t *values) {
  return lane == KL_NONE ? KILN_OK : kl_fold_few_lanes(f, lane, f->g->w.body->vars[lane].extent, values);
}

kiln_status kl_fold_few_lanes(kl_folding *f, uint32_t lane, int64_t n, uint32_t *values) {
  kl_affs *p = f->g->p;
  uint32_t place = place_of(f->g->w.body, lane);
  for (uint32_t d = 1; d < n; d *= 2) {
    uint32_t other[KL_MAX_VALUES_FOLDED], lower[KL_MAX_VALUES_FOLDED], higher[KL_MAX_VALUES_FOLDED];
    for (uint32_t i = 0; i < f->by->n; i++) other[i] = kl_write_shuffle(&f->g->w, values[i], d * place);
    if (f->by->commutes) {
      KL_TRY(kl_fold_join(f, values, other, values));
      continue;
    }
    bool never;
    const kl_aff *bit = kl_aff_modc(p, kl_aff_floordivc(p, kl_aff_dim(p, lane), d), 2);
    uint32_t is_lower = kl_guard_and(&f->g->w.guards, KL_NONE, bit, 0, 0, &never);
    for (uint32_t i = 0; i < f->by->n; i++) {
      lower[i] = kl_write_choose(&f->g->w, is_lower, values[i], other[i]);
      higher[i] = kl_write_choose(&f->g->w, is_lower, other[i], values[i]);
    }
    KL_TRY(kl_fold_join(f, lower, higher, values));
  }
  return KILN_OK;
}

// --- over a ring ----------------------------------------------------------------------------------------------------

enum { MOST_IN_RING = 16 };

// What the lane has of a ring: nv neighbours in each of nh rows of lanes.
typedef struct held {
  int64_t nh, nv;
  uint32_t at[MOST_IN_RING][KL_MAX_VALUES_FOLDED]; // h*nv + v
} held;

// Value v of the lane that is `distance` behind this one in the ring: behind the last lane of a row of them comes the
// first of the next.
static void from_behind(kl_folding *f, const kl_ring *ring, const held *x, int64_t v, uint32_t distance,
                        uint32_t out[][KL_MAX_VALUES_FOLDED]) {
  bool never;
  uint32_t first = kl_guard_and(&f->g->w.guards, KL_NONE, kl_aff_dim(f->g->p, ring->lane), 0, distance - 1, &never);
  for (int64_t h = 0; h < x->nh; h++)
    for (uint32_t i = 0; i < f->by->n; i++) {
      uint32_t own = x->at[h * x->nv + v][i], next = x->at[(h + 1) % x->nh * x->nv + v][i];
      uint32_t sent = own == next ? own : kl_write_choose(&f->g->w, first, next, own);
      out[h][i] = kl_write_rotate(&f->g->w, sent, distance);
    }
}

// Moves all values by one neighbour, or `distance` lanes where there is one of them, where the guard holds.
static void turn(kl_folding *f, const kl_ring *ring, held *x, uint32_t guard, uint32_t distance) {
  uint32_t behind[MOST_IN_RING][KL_MAX_VALUES_FOLDED];
  from_behind(f, ring, x, 0, distance, behind);
  for (int64_t h = 0; h < x->nh; h++)
    for (int64_t v = 0; v < x->nv; v++)
      for (uint32_t i = 0; i < f->by->n; i++) {
        int64_t at = h * x->nv + v;
        uint32_t next = v + 1 < x->nv ? x->at[at + 1][i] : behind[h][i];
        x->at[at][i] = kl_write_choose(&f->g->w, guard, next, x->at[at][i]);
      }
}

// Joins n values in pairs, those that are neighbours.
static kiln_status join_neighbours(kl_folding *f, held *x, int64_t n) {
  for (int64_t i = 0; i < n / 2; i++) KL_TRY(kl_fold_join(f, x->at[2 * i], x->at[2 * i + 1], x->at[i]));
  return KILN_OK;
}

// A digit of the shift at a time, as pairs that it would part are joined.
kiln_status kl_fold_ring(kl_folding *f, const kl_ring *ring, uint32_t *values) {
  const kl_var *vars = f->g->w.body->vars;
  held x = {.nh = ring->h == KL_NONE ? 1 : vars[ring->h].extent, .nv = ring->v == KL_NONE ? 1 : vars[ring->v].extent};
  for (int64_t i = 0; i < x.nh * x.nv; i++)
    for (uint32_t k = 0; k < f->by->n; k++) {
      uint32_t one = ring->h == KL_NONE ? values[k] : kl_write_take(&f->g->w, values[k], ring->h, (uint32_t)(i / x.nv));
      x.at[i][k] = ring->v == KL_NONE ? one : kl_write_take(&f->g->w, one, ring->v, (uint32_t)(i % x.nv));
    }
  uint32_t distance = 1;
  for (int64_t digit = 1; digit < ring->most; digit *= 2) {
    bool never;
    const kl_aff *bit = kl_aff_modc(f->g->p, kl_aff_floordivc(f->g->p, ring->shift, digit), 2);
    uint32_t guard = kl_guard_and(&f->g->w.guards, KL_NONE, bit, 1, 1, &never);
    if (!never) turn(f, ring, &x, guard, distance);
    if (x.nv == 1) {
      distance *= 2;
      continue;
    }
    KL_TRY(join_neighbours(f, &x, x.nh * x.nv));
    x.nv /= 2;
  }
  for (; x.nv > 1; x.nv /= 2) KL_TRY(join_neighbours(f, &x, x.nh * x.nv));
  for (int64_t h = 0; h < x.nh; h++) KL_TRY(kl_fold_lanes(f, ring->lane, x.at[h]));
  for (; x.nh > 1; x.nh /= 2) KL_TRY(join_neighbours(f, &x, x.nh));
  memcpy(values, x.at[0], f->by->n * sizeof *values);
  return KILN_OK;
}

// --- elements in order ----------------------------------------------------------------------------------------------

static kiln_status fold_in_registers(const kl_elements *e, kl_folding *f, const kl_aff *const *index,
                                     uint32_t *values) {
  KL_TRY(kl_fold_values(f, index, e->guard, values));
  return kl_fold_in_order(f, e->k, values);
}

// Joins the round's elements to what is carried.
static kiln_status join_round(const kl_elements *e, kl_folding *f, const kl_aff *const *index, uint32_t *sum) {
  uint32_t all[KL_MAX_VALUES_FOLDED], one[KL_MAX_VALUES_FOLDED];
  int64_t n = e->k == KL_NONE ? 1 : f->g->w.body->vars[e->k].extent;
  KL_TRY(kl_fold_values(f, index, e->guard, all));
  for (int64_t i = 0; i < n; i++) {
    memcpy(one, all, f->by->n * sizeof *one);
    if (e->k != KL_NONE) take_all(f, e->k, i, all, one);
    KL_TRY(kl_fold_join(f, sum, one, sum));
  }
  return KILN_OK;
}

// One loop for all of them, so that what several take is read once.
static kiln_status fold_in_rounds(kl_reducing *g, const kl_elements *e, uint32_t level, const kl_aff *const *index,
                                  uint32_t (*values)[KL_MAX_VALUES_FOLDED]) {
  const kl_body *b = g->w.body;
  uint32_t n = 0, most = 0;
  kl_vars each = 0;
  for (uint32_t i = 0; i < g->x->n; i++) most += g->x->reducer[i].n;
  uint32_t *first = KL_NEW_N(g->c->arena, uint32_t, most), *sum = KL_NEW_N(g->c->arena, uint32_t, most);
  kl_vars *regs = KL_NEW_N(g->c->arena, kl_vars, most);
  for (uint32_t d = 0; d < g->x->shape->rank; d++) each |= kl_vars_of(b, index[d]);
  each &= kl_bound(b, KL_BIND_REG);
  if (e->k != KL_NONE) each &= ~((kl_vars)1 << e->k);
  for (uint32_t i = 0; i < g->x->n; i++) {
    kl_folding f = kl_folding_of(g, i);
    if (g->x->level[i] != level) continue;
    kl_fold_nothing(&f, &first[n]);
    n += f.by->n;
  }
  for (uint32_t i = 0; i < n; i++) regs[i] = each;
  kl_write_loop(&g->w, e->rounds, n, first, regs, sum);
  for (uint32_t i = 0, at = 0; i < g->x->n; i++) {
    kl_folding f = kl_folding_of(g, i);
    if (g->x->level[i] != level) continue;
    KL_TRY(join_round(e, &f, index, &sum[at]));
    memcpy(values[i], &sum[at], f.by->n * sizeof *sum);
    at += f.by->n;
  }
  kl_write_loop_end(&g->w, sum);
  return KILN_OK;
}

kiln_status kl_fold_elements(kl_reducing *g, const kl_elements *e, uint32_t level,
                             uint32_t (*values)[KL_MAX_VALUES_FOLDED]) {
  const kl_aff *index[KILN_MAX_RANK];
  kl_reduced_index(g->p, g->x, e->row, e->r, index);
  if (e->rounds != KL_NONE) return fold_in_rounds(g, e, level, index, values);
  for (uint32_t i = 0; i < g->x->n; i++) {
    kl_folding f = kl_folding_of(g, i);
    if (g->x->level[i] == level) KL_TRY(fold_in_registers(e, &f, index, values[i]));
  }
  return KILN_OK;
}

// --- through shared memory ------------------------------------------------------------------------------------------

void kl_fold_room(kl_folding *f, int64_t count, uint32_t *slots) {
  kl_choosing *c = f->g->c;
  for (uint32_t i = 0; i < f->by->n; i++)
    slots[i] = kl_add_shared(c->cx, c->plan, &c->slots, kl_in_bytes(f->by->type[i]), count);
}

void kl_fold_scratch(kl_folding *f, int64_t count, int64_t row, uint32_t *slots) {
  kl_choosing *c = f->g->c;
  for (uint32_t i = 0; i < f->by->n; i++) {
    slots[i] = kl_add_scratch(c->cx, c->plan, &c->slots, kl_in_bytes(f->by->type[i]), count);
    c->slots.v.p[slots[i]].row = row;
  }
}

void kl_fold_put(kl_folding *f, const uint32_t *slots, const kl_aff *at, uint32_t keep, const uint32_t *values) {
  const kl_slot_info *info = f->g->c->slots.v.p;
  for (uint32_t i = 0; i < f->by->n; i++)
    kl_write_store(&f->g->w, slots[i], &info[slots[i]], at, kl_converted(f->g, values[i], kl_in_bytes(f->by->type[i])),
                   keep);
}

void kl_fold_get(kl_folding *f, const uint32_t *slots, const kl_aff *at, uint32_t there, uint32_t *values) {
  const kl_slot_info *info = f->g->c->slots.v.p;
  uint32_t nothing[KL_MAX_VALUES_FOLDED];
  if (there != KL_NONE) kl_fold_nothing(f, nothing);
  for (uint32_t i = 0; i < f->by->n; i++) {
    values[i] = kl_write_load(&f->g->w, slots[i], &info[slots[i]], at, there, NULL);
    values[i] = kl_converted(f->g, values[i], f->by->type[i]);
    if (there != KL_NONE) values[i] = kl_write_choose(&f->g->w, there, values[i], nothing[i]);
  }
}

kiln_status kl_fold_finish(kl_folding *f, uint32_t *values, uint32_t guard) {
  const kl_reducer *by = f->by;
  const kl_instr *in = &f->g->walk.plan->comp->instr[by->instr];
  uint32_t init[KL_MAX_VALUES_FOLDED];
  for (uint32_t i = 0; i < by->nvalues; i++) {
    KL_TRY(kl_walk_want(&f->g->walk, in->operands[by->nvalues + i], 0, guard, NULL, &init[i]));
    init[i] = kl_converted(f->g, init[i], by->type[i]);
  }
  if (by->n > by->nvalues) init[by->nvalues] = presence(f, true);
  KL_TRY(kl_fold_join(f, init, values, values));
  for (uint32_t i = 0; i < by->nvalues; i++)
    values[i] = kl_converted(f->g, values[i], kl_shape_leaf(in->shape, i)->dtype);
  return KILN_OK;
}
