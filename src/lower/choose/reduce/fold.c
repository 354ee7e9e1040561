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

// What is known before of a value's presence is in no step but a constant.
typedef enum known { ABSENT, THERE, EITHER } known;

static known known_of(const kl_folding *f, const uint32_t *values) {
  if (f->by->n == f->by->nvalues) return THERE;
  const kl_step *s = &f->g->w.steps.p[values[f->by->nvalues]];
  return s->kind != KL_STEP_SCALAR ? EITHER : s->bits[0] ? THERE : ABSENT;
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

static const kl_instr *reduce_of(const kl_folding *f) {
  return &f->g->walk.plan->comp->instr[f->by->instr];
}

static kiln_status operand(kl_folding *f, uint32_t i, uint32_t guard, const kl_aff *const *index, uint32_t *value) {
  KL_TRY(kl_walk_want(&f->g->walk, reduce_of(f)->operands[i], 0, guard, index, value));
  *value = kl_converted(f->g, *value, f->by->type[i]);
  return KILN_OK;
}

kiln_status kl_fold_values(kl_folding *f, const kl_aff *const *index, uint32_t guard, uint32_t there,
                           uint32_t *values) {
  const kl_reducer *by = f->by;
  uint32_t nothing[KL_MAX_VALUES_FOLDED];
  if (guard != KL_NONE) kl_fold_nothing(f, nothing);
  for (uint32_t i = 0; i < by->nvalues; i++) {
    KL_TRY(operand(f, i, guard, index, &values[i]));
    if (guard != KL_NONE) values[i] = kl_write_choose(&f->g->w, guard, values[i], nothing[i]);
  }
  if (by->n > by->nvalues)
    values[by->nvalues] = kl_write_choose(&f->g->w, there, presence(f, true), presence(f, false));
  return KILN_OK;
}

// --- joining --------------------------------------------------------------------------------------------------------

static kiln_status call(kl_folding *f, const kl_comp *comp, const uint32_t *lower, const uint32_t *higher,
                        uint32_t *out) {
  const kl_reducer *by = f->by;
  if (by->simple) {
    uint32_t both[2] = {*lower, *higher};
    *out = kl_write_op(&f->g->w, by->op, *by->type, 2, both);
    return KILN_OK;
  }
  uint32_t args[2 * KL_MAX_VALUES_FOLDED];
  memcpy(args, lower, by->nvalues * sizeof *args);
  memcpy(args + by->nvalues, higher, by->nvalues * sizeof *args);
  return kl_walk_call(&f->g->walk, by->instr, comp, args, out);
}

static uint32_t select_of(kl_folding *f, uint32_t c, uint32_t yes, uint32_t no) {
  uint32_t all[3] = {c, yes, no};
  return yes == no ? yes : kl_write_op(&f->g->w, (kl_plan_op){.op = KL_OP_SELECT}, type_of(f, yes), 3, all);
}

// A value of the two that is there, or what `comp` makes of both.
static kiln_status join_by(kl_folding *f, const kl_comp *comp, const uint32_t *lower, const uint32_t *higher,
                           uint32_t *out) {
  const kl_reducer *by = f->by;
  known a = known_of(f, lower), b = known_of(f, higher);
  uint32_t made[KL_MAX_VALUES_FOLDED], n = by->nvalues;
  if (a == ABSENT || b == ABSENT) {
    memmove(out, a == ABSENT ? higher : lower, by->n * sizeof *out);
    return KILN_OK;
  }
  KL_TRY(call(f, comp, lower, higher, made));
  for (uint32_t i = 0; i < n && a == EITHER; i++) made[i] = select_of(f, lower[n], made[i], higher[i]);
  for (uint32_t i = 0; i < n && b == EITHER; i++) made[i] = select_of(f, higher[n], made[i], lower[i]);
  if (by->n > n && a == EITHER && b == EITHER)
    made[n] = kl_write_op(&f->g->w, (kl_plan_op){.op = KL_OP_OR}, KILN_PRED, 2, (uint32_t[]){lower[n], higher[n]});
  else if (by->n > n)
    made[n] = a == THERE ? lower[n] : higher[n];
  memcpy(out, made, by->n * sizeof *out);
  return KILN_OK;
}

kiln_status kl_fold_join(kl_folding *f, const uint32_t *lower, const uint32_t *higher, uint32_t *out) {
  return join_by(f, f->leaves ? f->by->comp : f->by->ordered, lower, higher, out);
}

// --- over variables -------------------------------------------------------------------------------------------------

static void take_all(kl_folding *f, uint32_t var, int64_t at, const uint32_t *values, uint32_t *out) {
  for (uint32_t i = 0; i < f->by->n; i++) out[i] = kl_write_take(&f->g->w, values[i], var, (uint32_t)at);
  if (f->by->n == f->by->nvalues) return;
  const kl_step *steps = f->g->w.steps.p, *s = &steps[values[f->by->nvalues]]; // of elements: there where a guard holds
  if (s->kind == KL_STEP_CHOOSE && steps[s->operands[0]].kind == KL_STEP_SCALAR &&
      kl_guard_holds(&f->g->w.guards, *s->guards, var, at))
    out[f->by->nvalues] = presence(f, true);
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

// Does a lane have 0 in the digit d of the variable?
static uint32_t is_lower(kl_folding *f, uint32_t lane, uint32_t d) {
  bool never;
  const kl_aff *bit = kl_aff_modc(f->g->p, kl_aff_floordivc(f->g->p, kl_aff_dim(f->g->p, lane), d), 2);
  return kl_guard_and(&f->g->w.guards, KL_NONE, bit, 0, 0, &never);
}

// Both lanes of a pair make the same of what they have: where the arguments' order counts, each puts the lower lane's
// first. Or all take themselves for the lower one: then only lanes that are have something of use.
static kiln_status join_lanes(kl_folding *f, uint32_t lane, uint32_t d, bool both, uint32_t *values) {
  uint32_t other[KL_MAX_VALUES_FOLDED], lower[KL_MAX_VALUES_FOLDED], higher[KL_MAX_VALUES_FOLDED];
  uint32_t distance = d * place_of(f->g->w.body, lane);
  for (uint32_t i = 0; i < f->by->n; i++) other[i] = kl_write_shuffle(&f->g->w, values[i], distance);
  if (f->by->commutes || !both) return kl_fold_join(f, values, other, values);
  uint32_t first = is_lower(f, lane, d);
  for (uint32_t i = 0; i < f->by->n; i++) {
    lower[i] = kl_write_choose(&f->g->w, first, values[i], other[i]);
    higher[i] = kl_write_choose(&f->g->w, first, other[i], values[i]);
  }
  return kl_fold_join(f, lower, higher, values);
}

// Of two folds the lower lane of a pair goes on with a, the other with b: each sends what it does not keep.
static kiln_status part_lanes(kl_folding *f, uint32_t lane, uint32_t d, uint32_t *a, const uint32_t *b) {
  uint32_t lower[KL_MAX_VALUES_FOLDED], higher[KL_MAX_VALUES_FOLDED];
  uint32_t first = is_lower(f, lane, d), distance = d * place_of(f->g->w.body, lane);
  for (uint32_t i = 0; i < f->by->n; i++) {
    uint32_t sent = kl_write_choose(&f->g->w, first, b[i], a[i]);
    uint32_t got = kl_write_shuffle(&f->g->w, sent, distance);
    lower[i] = kl_write_choose(&f->g->w, first, a[i], f->by->commutes ? b[i] : got);
    higher[i] = f->by->commutes ? got : kl_write_choose(&f->g->w, first, got, b[i]);
  }
  return kl_fold_join(f, lower, higher, a);
}

// Joins n values in pairs, those that are neighbours.
static kiln_status join_neighbours(kl_folding *f, uint32_t (*at)[KL_MAX_VALUES_FOLDED], int64_t n) {
  for (int64_t i = 0; i < n / 2; i++) KL_TRY(kl_fold_join(f, at[2 * i], at[2 * i + 1], at[i]));
  return KILN_OK;
}

// Folds over `lanes` neighbouring lanes, of which a thread has n, and then these in pairs: powers of two. As long as
// there are several, each step halves them, and lanes that differ in its digit go on with different ones; so n folds
// take little more than one. In at[0] of all of the lanes, or of the first.
static kiln_status fold_over_lanes(kl_folding *f, uint32_t lane, int64_t lanes, bool all,
                                   uint32_t (*at)[KL_MAX_VALUES_FOLDED], int64_t n) {
  uint32_t parted[8], nparted = 0;
  for (uint32_t d = 1; d < lanes; d *= 2) {
    if (n > 1) {
      n /= 2;
      for (int64_t i = 0; i < n; i++) KL_TRY(part_lanes(f, lane, d, at[i], at[i + n]));
      parted[nparted++] = d;
    } else
      KL_TRY(join_lanes(f, lane, d, all, at[0]));
  }
  for (; n > 1; n /= 2) KL_TRY(join_neighbours(f, at, n));
  while (nparted > 0) KL_TRY(join_lanes(f, lane, parted[--nparted], all, at[0]));
  return KILN_OK;
}

kiln_status kl_fold_lanes(kl_folding *f, uint32_t lane, int64_t lanes, bool all, uint32_t var, uint32_t *values) {
  int64_t n = var == KL_NONE ? 1 : f->g->w.body->vars[var].extent;
  if (lane == KL_NONE) return kl_fold_pairs(f, var, values);
  uint32_t(*at)[KL_MAX_VALUES_FOLDED] = kl_arena_alloc(f->g->c->arena, (size_t)n * sizeof *at);
  memcpy(at[0], values, sizeof *at);
  for (int64_t i = 0; i < n && var != KL_NONE; i++) take_all(f, var, i, values, at[i]);
  KL_TRY(fold_over_lanes(f, lane, lanes, all, at, n));
  memcpy(values, at[0], f->by->n * sizeof *values);
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
    KL_TRY(join_neighbours(f, x.at, x.nh * x.nv));
    x.nv /= 2;
  }
  for (; x.nv > 1; x.nv /= 2) KL_TRY(join_neighbours(f, x.at, x.nh * x.nv));
  KL_TRY(fold_over_lanes(f, ring->lane, vars[ring->lane].extent, ring->all, x.at, x.nh));
  memcpy(values, x.at[0], f->by->n * sizeof *values);
  return KILN_OK;
}

// --- rows that begin anywhere ---------------------------------------------------------------------------------------

static bool is_number(const kl_comp *c, const kl_instr *in) {
  return in->op == KL_OP_IOTA || (in->op == KL_OP_BROADCAST && kl_operand(c, in, 0)->op == KL_OP_IOTA);
}

// Operand i for element k of the row: of the same round as it was read, or of the next. A number is made for its place.
static kiln_status shifted_operand(const kl_elements *e, kl_folding *f, uint32_t i, uint32_t read, uint32_t k,
                                   const kl_aff *const *index, uint32_t *value) {
  const kl_comp *c = f->g->c->plan->comp;
  if (is_number(c, kl_operand(c, reduce_of(f), i))) return operand(f, i, KL_NONE, index, value);
  *value = read;
  if (e->k == KL_NONE) return KILN_OK;
  *value = kl_write_take(&f->g->w, read, e->k, k);
  if (k + 1 == f->g->w.body->vars[e->k].extent) return KILN_OK;
  *value = kl_write_choose(&f->g->w, e->shift->early, kl_write_take(&f->g->w, read, e->k, k + 1), *value);
  return KILN_OK;
}

static kiln_status shifted_values(const kl_elements *e, kl_folding *f, const uint32_t *read, uint32_t k,
                                  uint32_t *values) {
  const kl_reductions *x = f->g->x;
  const kl_aff *r = kl_aff_add(f->g->p, e->shift->first, kl_aff_const(f->g->p, k * x->w)), *index[KILN_MAX_RANK];
  bool never, tells = f->by->n > f->by->nvalues;
  uint32_t there = kl_guard_and(&f->g->w.guards, KL_NONE, r, 0, x->length - 1, &never), none[KL_MAX_VALUES_FOLDED];
  kl_fold_nothing(f, none);
  kl_reduced_index(f->g->p, x, e->row, r, index);
  for (uint32_t i = 0; i < f->by->nvalues; i++) {
    KL_TRY(shifted_operand(e, f, i, read[i], k, index, &values[i]));
    if (!tells) values[i] = kl_write_choose(&f->g->w, there, values[i], none[i]);
  }
  if (tells) values[f->by->nvalues] = kl_write_choose(&f->g->w, there, presence(f, true), none[f->by->nvalues]);
  return KILN_OK;
}

// In the order of the row's rounds.
static kiln_status fold_shifted(const kl_elements *e, kl_folding *f, const kl_aff *const *index, uint32_t *values) {
  uint32_t read[KL_MAX_VALUES_FOLDED], next[KL_MAX_VALUES_FOLDED];
  for (uint32_t i = 0; i < f->by->nvalues; i++) KL_TRY(operand(f, i, e->guard, index, &read[i]));
  KL_TRY(shifted_values(e, f, read, 0, values));
  for (uint32_t k = 1; k < e->shift->rounds; k++) {
    KL_TRY(shifted_values(e, f, read, k, next));
    KL_TRY(kl_fold_join(f, values, next, values));
  }
  return KILN_OK;
}

// --- elements in order ----------------------------------------------------------------------------------------------

static kiln_status fold_in_registers(const kl_elements *e, kl_folding *f, const kl_aff *const *index,
                                     uint32_t *values) {
  if (e->shift) return fold_shifted(e, f, index, values);
  KL_TRY(kl_fold_values(f, index, e->guard, e->there, values));
  return kl_fold_in_order(f, e->k, values);
}

// Joins the round's elements to what is carried.
static kiln_status join_round(const kl_elements *e, kl_folding *f, const kl_aff *const *index, uint32_t *sum) {
  uint32_t all[KL_MAX_VALUES_FOLDED], one[KL_MAX_VALUES_FOLDED];
  int64_t n = e->k == KL_NONE ? 1 : f->g->w.body->vars[e->k].extent;
  KL_TRY(kl_fold_values(f, index, e->guard, e->there, all));
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

// Whether values are there has no slot where it is known that they are.
static uint32_t slots_of(const kl_folding *f, const uint32_t *values, uint32_t *slots) {
  uint32_t n = values && known_of(f, values) == THERE ? f->by->nvalues : f->by->n;
  if (f->by->n > n) slots[n] = KL_NONE;
  return n;
}

void kl_fold_room(kl_folding *f, int64_t count, const uint32_t *values, uint32_t *slots) {
  kl_choosing *c = f->g->c;
  for (uint32_t i = 0, n = slots_of(f, values, slots); i < n; i++)
    slots[i] = kl_add_shared(c->cx, c->plan, &c->slots, kl_in_bytes(f->by->type[i]), count);
}

void kl_fold_scratch(kl_folding *f, int64_t count, int64_t row, const uint32_t *values, uint32_t *slots) {
  kl_choosing *c = f->g->c;
  for (uint32_t i = 0, n = slots_of(f, values, slots); i < n; i++) {
    slots[i] = kl_add_scratch(c->cx, c->plan, &c->slots, kl_in_bytes(f->by->type[i]), count);
    c->slots.v.p[slots[i]].row = row;
  }
}

void kl_fold_put(kl_folding *f, const uint32_t *slots, const kl_aff *at, uint32_t keep, const uint32_t *values) {
  const kl_slot_info *info = f->g->c->slots.v.p;
  for (uint32_t i = 0; i < f->by->n && slots[i] != KL_NONE; i++)
    kl_write_store(&f->g->w, slots[i], &info[slots[i]], at, kl_converted(f->g, values[i], kl_in_bytes(f->by->type[i])),
                   keep);
}

void kl_fold_get(kl_folding *f, const uint32_t *slots, const kl_aff *at, uint32_t there, uint32_t *values) {
  const kl_slot_info *info = f->g->c->slots.v.p;
  uint32_t nothing[KL_MAX_VALUES_FOLDED];
  if (there != KL_NONE) kl_fold_nothing(f, nothing);
  for (uint32_t i = 0; i < f->by->n; i++) {
    values[i] =
        slots[i] == KL_NONE ? presence(f, true) : kl_write_load(&f->g->w, slots[i], &info[slots[i]], at, there, NULL);
    values[i] = kl_converted(f->g, values[i], f->by->type[i]);
    if (there != KL_NONE) values[i] = kl_write_choose(&f->g->w, there, values[i], nothing[i]);
  }
}

kiln_status kl_fold_finish(kl_folding *f, uint32_t *values, uint32_t guard) {
  const kl_reducer *by = f->by;
  const kl_instr *in = reduce_of(f);
  uint32_t init[KL_MAX_VALUES_FOLDED];
  for (uint32_t i = 0; i < by->nvalues; i++) {
    KL_TRY(kl_walk_want(&f->g->walk, in->operands[by->nvalues + i], 0, guard, NULL, &init[i]));
    init[i] = kl_converted(f->g, init[i], by->type[i]);
  }
  if (by->n > by->nvalues) init[by->nvalues] = presence(f, true);
  KL_TRY(join_by(f, by->comp, init, values, values));
  for (uint32_t i = 0; i < by->nvalues; i++)
    values[i] = kl_converted(f->g, values[i], kl_shape_leaf(in->shape, i)->dtype);
  return KILN_OK;
}
