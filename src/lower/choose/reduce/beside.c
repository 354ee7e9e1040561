// Sums of columns beside rows: what a launch of rows has of each element anyway is reduced along the other dimensions,
// too, so that nothing is read for it again.
//
// The order of a column is the column's (find.c): its leaves are rows (s*K + k)*8 + j in the order of k. A block has
// some neighbouring leaves, one for each of its teams: the team's rows come one behind the other, and each thread joins
// what it has of one to sums of its own in shared memory. At the end the teams' sums meet, and lie in scratch memory,
// where a launch behind joins those of all blocks.
//
// Sums lie as threads touch them: of V*lanes neighbouring columns, which a warp has, 16 bytes of each lane side by
// side.

#include "lower/choose/reduce/reduce.h"

enum { WARP = 32, JOIN_WARPS = 8, JOIN_LANES = 8, JOINED_AT_ONCE = WARP / JOIN_LANES * JOIN_WARPS, AT_ONCE = 4 };

// Where the sum of a column lies among those of all.
static const kl_aff *place_of(kl_affs *p, kl_dom *d, const kl_sums *x, const kl_aff *column) {
  int64_t set = x->v * WARP, at_once = kl_least(x->v, AT_ONCE);
  const kl_aff *of_set = kl_aff_modc(p, column, set), *v = kl_aff_modc(p, of_set, x->v);
  const kl_aff *lane = kl_aff_floordivc(p, of_set, x->v);
  const kl_aff *chunk = kl_aff_addmul(p, lane, kl_aff_floordivc(p, v, at_once), WARP);
  const kl_aff *in_set = kl_aff_addmul(p, kl_aff_modc(p, v, at_once), chunk, at_once);
  return kl_dom_simplify(d, kl_aff_addmul(p, in_set, kl_aff_floordivc(p, column, set), set));
}

static kl_folding folding_of(kl_reducing *g, const kl_sums *x, uint32_t which) {
  return (kl_folding){g, &x->columns->reducer[which], true};
}

int64_t kl_sums_bytes(const kl_reductions *columns) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < columns->n; i++) bytes += kl_info(kl_in_bytes(*columns->reducer[i].type))->bits / 8;
  return bytes;
}

void kl_sums_begin(kl_reducing *g, kl_sums *x) {
  uint32_t nothing[KL_MAX_VALUES_FOLDED];
  const kl_aff *place = place_of(g->p, g->w.body->domain, x, x->column);
  x->own = kl_aff_addmul(g->p, place, x->team, x->padded);
  x->slots = kl_arena_alloc(g->c->arena, x->columns->n * sizeof *x->slots);
  x->partial = kl_arena_alloc(g->c->arena, x->columns->n * sizeof *x->partial);
  for (uint32_t i = 0; i < x->columns->n; i++) {
    kl_folding f = folding_of(g, x, i);
    kl_fold_room(&f, x->teams * x->padded, NULL, x->slots[i]);
    g->c->slots.v.p[*x->slots[i]].own = true;
    kl_fold_nothing(&f, nothing);
    kl_fold_put(&f, x->slots[i], x->own, KL_NONE, nothing);
  }
}

kiln_status kl_sums_add(kl_reducing *g, const kl_sums *x, uint32_t level, const kl_aff *const *index, uint32_t guard) {
  for (uint32_t i = 0; i < x->columns->n; i++) {
    kl_folding f = folding_of(g, x, i);
    uint32_t sum[KL_MAX_VALUES_FOLDED], values[KL_MAX_VALUES_FOLDED];
    if (x->columns->behind[i] != level) continue;
    KL_TRY(kl_fold_values(&f, index, guard, guard, values));
    kl_fold_get(&f, x->slots[i], x->own, KL_NONE, sum);
    KL_TRY(kl_fold_join(&f, sum, values, sum));
    kl_fold_put(&f, x->slots[i], x->own, KL_NONE, sum);
  }
  return KILN_OK;
}

kiln_status kl_sums_end(kl_reducing *g, const kl_sums *x) {
  for (uint32_t i = 0; i < x->columns->n; i++) {
    kl_folding f = folding_of(g, x, i);
    uint32_t sum[KL_MAX_VALUES_FOLDED];
    bool never;
    const kl_aff *team = x->met == KL_NONE ? kl_aff_const(g->p, 0) : kl_aff_dim(g->p, x->met);
    uint32_t there = kl_guard_and(&g->w.guards, KL_NONE, x->run, 0, x->padded - 1, &never);
    kl_fold_get(&f, x->slots[i], kl_aff_addmul(g->p, x->run, team, x->padded), there, sum);
    KL_TRY(kl_fold_pairs(&f, x->met, sum));
    kl_fold_scratch(&f, x->parts * x->padded, 0, NULL, x->partial[i]);
    kl_fold_put(&f, x->partial[i], kl_aff_addmul(g->p, x->run, x->part, x->padded), there, sum);
  }
  return KILN_OK;
}

// --- what blocks have made ------------------------------------------------------------------------------------------

// A block has some neighbouring columns; threads of a column have neighbouring parts each, and what warps make of them
// meets in shared memory.
typedef struct joining {
  kl_reducing g;
  const kl_sums *sums;
  uint32_t joined, met, lane_part;
  const kl_aff *column, *in_block, *part, *warp, *owner;
} joining;

static kiln_status join_one(joining *x, uint32_t which, uint32_t there, uint32_t column_guard) {
  kl_affs *p = x->g.p;
  kl_folding f = {&x->g, &x->g.x->reducer[which], true};
  uint32_t values[KL_MAX_VALUES_FOLDED], room[KL_MAX_VALUES_FOLDED];
  bool never;
  const kl_aff *place = place_of(p, x->g.w.body->domain, x->sums, x->column);
  kl_fold_get(&f, x->sums->partial[which], kl_aff_addmul(p, place, x->part, x->sums->padded), there, values);
  KL_TRY(kl_fold_pairs(&f, x->joined, values));
  KL_TRY(kl_fold_lanes(&f, x->lane_part, WARP / JOIN_LANES, true, KL_NONE, values));
  kl_fold_room(&f, JOIN_WARPS * JOIN_LANES * AT_ONCE, NULL, room);
  uint32_t keep = kl_guard_and(&x->g.w.guards, KL_NONE, kl_aff_dim(p, x->lane_part), 0, 0, &never);
  kl_fold_put(&f, room, kl_aff_addmul(p, x->in_block, x->warp, JOIN_LANES * AT_ONCE), keep, values);
  kl_fold_get(&f, room, kl_aff_addmul(p, x->in_block, kl_aff_dim(p, x->met), JOIN_LANES * AT_ONCE), KL_NONE, values);
  KL_TRY(kl_fold_pairs(&f, x->met, values));
  return kl_fold_give(&x->g, which, x->column, column_guard, values);
}

static kiln_status join_all(joining *x) {
  bool never;
  kl_guards *guards = &x->g.w.guards;
  const kl_reductions *all = x->g.x;
  uint32_t inside = kl_guard_and(guards, KL_NONE, x->column, 0, all->rows - 1, &never);
  uint32_t there = kl_guard_and(guards, inside, x->part, 0, x->sums->parts - 1, &never);
  uint32_t keep = kl_guard_and(guards, inside, x->owner, 0, 0, &never);
  for (uint32_t i = 0; i < all->n; i++) KL_TRY(join_one(x, i, there, inside));
  for (uint32_t i = 0; i < all->noutputs; i++) {
    const kl_output *o = &all->outputs[i];
    const kl_aff *at;
    uint32_t step;
    KL_TRY(kl_want_output(&x->g, o, x->column, kl_aff_const(x->g.p, 0), inside, &at, &step));
    kl_write_store(&x->g.w, o->slot, kl_slot_of(&x->g, o->slot), at, step, keep);
  }
  return KILN_OK;
}

kiln_status kl_join_sums(kl_choosing *c, const kl_sums *sums, const char **why_not) {
  joining x = {.g = {.c = c, .p = c->plan->affs, .x = sums->columns}, .sums = sums};
  kl_affs *p = x.g.p;
  kl_body b = {0};
  uint32_t none;
  int64_t columns = JOIN_LANES * AT_ONCE, of_thread = kl_power_of_two(kl_ceil_div(sums->parts, JOINED_AT_ONCE));
  kl_plan_add_launch(c->plan, c->plan->target.block);
  const kl_aff *block = kl_add_var(&x.g, KL_BIND_BLOCK, kl_ceil_div(x.g.x->rows, columns), "block", &none);
  x.warp = kl_add_var(&x.g, KL_BIND_WARP, JOIN_WARPS, "warp", &none);
  const kl_aff *lane_part = kl_add_var(&x.g, KL_BIND_LANE, WARP / JOIN_LANES, "lane_part", &x.lane_part);
  const kl_aff *lane = kl_add_var(&x.g, KL_BIND_LANE, JOIN_LANES, "lane", &none);
  const kl_aff *joined = kl_add_var(&x.g, KL_BIND_REG, of_thread, "joined", &x.joined);
  const kl_aff *v = kl_add_var(&x.g, KL_BIND_REG, AT_ONCE, "v", &none);
  kl_add_var(&x.g, KL_BIND_REG, JOIN_WARPS, "met", &x.met);
  x.in_block = kl_aff_addmul(p, v, lane, AT_ONCE);
  x.column = kl_aff_addmul(p, x.in_block, block, columns);
  x.part = kl_aff_addmul(p, joined, kl_aff_addmul(p, lane_part, x.warp, WARP / JOIN_LANES), of_thread);
  x.owner = kl_aff_add(p, lane_part, x.warp);
  kl_reducing_begin(&x.g, &b);
  return kl_reducing_end(&x.g, &b, join_all(&x), WARP * JOIN_WARPS, why_not);
}
