// Column reductions: neighbours in memory belong to different results.
//
// A column's elements r = (s*K + k)*W + j are dealt to threads by j and to rounds of a loop by k; W = 8 threads of a
// column lie in other warps, or where columns are few in lanes of one. V neighbouring columns go to each thread. What
// the parts s of a column make meets in shared memory.
//   column = block*(V*lanes) + lane*V + v, part = round*teams + team, j = (warp*J + jreg)*lanes_j + lane_j
// A part is a group s, or where W is 256 some neighbouring leaves of one: a node of the tree either way.
// Where columns are few and long, several blocks have some neighbouring parts s of them each, and leave what they make
// in scratch memory; the last of them joins it, or a launch behind. On the host vectors run over columns, v of them,
// and j over registers.

#include "lower/choose/reduce/reduce.h"

enum { WARP = 32, MOST_WARPS = 8, MOST_PARTS = 64, MOST_LEAVES = 8, HELD = 32, JOINED = 64, ROOM = 40 << 10 };
// A host's iteration takes several vectors of neighbouring columns, so that it reads several lines of each row, one
// behind the other, where there are iterations enough.
enum { HOST_VECTORS = 8, MANY = 4 };

typedef struct deal {
  int64_t v, lanes, lanes_j, idle; // of a warp
  int64_t w, j, warps_j, teams;    // w: of leaves that there are; j: in registers
  int64_t of_group;                // parts of a group s
  int64_t parts, split, in_block;  // all, of so many blocks, each so many
  int64_t rounds, k, rounds_k;
  int64_t of_warp;                           // parts that a warp joins
  int64_t of_thread, join_lanes, join_warps; // blocks' values that a thread joins; threads for all of them
} deal;

typedef struct columns {
  kl_reducing g;
  deal d;
  bool joins;                                               // joins what blocks have made, and nothing else
  uint32_t v, lane_j, j, k, step_k, step, part, met, met_j; // variables, KL_NONE where there is one value
  uint32_t split, joined, met_joined;
  const struct meeting *meetings;            // by reduction: of the level made last
  uint32_t (*partial)[KL_MAX_VALUES_FOLDED]; // by reduction: slots of what blocks have made
  const kl_aff *row, *r, *part_in_block;
  const kl_aff *set;                // of columns that a block has: its number
  const kl_aff *column, *in_major;  // in the block, and among neighbours
  const kl_aff *lane;               // of those of a column
  const kl_aff *warp_j, *warp;      // of those of a column; of the block
  const kl_aff *idle, *owner;       // 0 in one thread of each column; the first of those that have one element
  uint32_t row_guard, guard, there; // the column is there; and so is the element; it is where its column is
} columns;

// --- dealing --------------------------------------------------------------------------------------------------------

// Leaves of a group that one lane of a column is left with: to registers, warps and parts of their own. What a thread
// holds at once is not too much.
static void deal_leaves(columns *x, int64_t groups) {
  deal *d = &x->d;
  bool host = x->g.c->plan->target.machine == KL_HOST;
  int64_t leaves = d->w / d->lanes_j, most = kl_least(MOST_LEAVES, HELD / d->v);
  d->warps_j = host ? 1 : kl_least(leaves, MOST_WARPS);
  d->j = kl_least(leaves / d->warps_j, most);
  // Warps that have a group each need not meet.
  while (x->g.x->row && d->warps_j > 1 && d->j < most && d->warps_j * groups > MOST_WARPS) {
    d->warps_j /= 2;
    d->j *= 2;
  }
  d->of_group = leaves / (d->warps_j * d->j);
}

// Those of the last group as far as there are elements.
static int64_t parts_of(const columns *x) {
  const kl_reductions *all = x->g.x;
  int64_t length = all->length ? all->length : 1, group = all->w * all->k, whole = (length - 1) / group;
  int64_t rest = kl_ceil_div(length - whole * group, x->d.w / x->d.of_group);
  return whole * x->d.of_group + kl_least(rest, x->d.of_group);
}

// Neighbouring columns: of a thread, and threads that have some of a row.
static void deal_neighbours(columns *x) {
  deal *d = &x->d;
  const kl_target *t = &x->g.c->plan->target;
  bool host = t->machine == KL_HOST;
  d->v = host ? 1 : kl_least(16, 128 / kl_narrowest(&x->g));
  while (d->v > 1 && x->g.x->minor % d->v) d->v /= 2;
  d->lanes = kl_least(host ? t->host_lanes : WARP, kl_power_of_two(kl_ceil_div(x->g.x->minor, d->v)));
  while (host && d->v < HOST_VECTORS && x->g.x->minor >= MANY * 2 * d->v * d->lanes) d->v *= 2;
}

// A thread of the host has all lanes' copies.
static int64_t most_joined(const columns *x) {
  bool host = x->g.c->plan->target.machine == KL_HOST;
  return host ? KL_MAX_COPIES / (x->d.v * x->d.lanes) : KL_MAX_COPIES / x->d.v;
}

static void deal_elements(columns *x) {
  deal *d = &x->d;
  const kl_reductions *all = x->g.x;
  bool host = x->g.c->plan->target.machine == KL_HOST;
  int64_t length = all->length ? all->length : 1;
  d->w = kl_least(all->w, kl_power_of_two(length));
  d->lanes_j = host ? 1 : kl_least(d->w, WARP / d->lanes);
  d->idle = host ? 1 : WARP / (d->lanes * d->lanes_j);
  int64_t groups = kl_ceil_div(length, all->w * all->k);
  deal_leaves(x, groups);
  d->parts = parts_of(x);
  d->in_block = all->split > 1 ? kl_power_of_two(kl_ceil_div(d->parts, all->split)) : d->parts;
  d->split = kl_power_of_two(kl_ceil_div(d->parts, d->in_block));
  d->teams = host ? 1 : kl_least(kl_power_of_two(d->in_block), MOST_WARPS / d->warps_j);
  d->rounds = kl_ceil_div(d->in_block, d->teams);
  int64_t k = groups == 1 ? kl_least(all->k, kl_power_of_two(kl_ceil_div(length, all->w))) : all->k;
  d->rounds_k = 1;
  while (k > d->rounds_k && k / d->rounds_k * d->v * d->j > HELD) d->rounds_k *= 2;
  d->k = k / d->rounds_k;
  int64_t padded = kl_power_of_two(d->in_block), warps = d->teams * d->warps_j;
  d->of_warp = padded / kl_least(padded, warps);
  d->join_lanes = kl_least(d->lanes_j, d->split);
  d->join_warps = kl_least(warps, d->split / d->join_lanes);
  d->of_thread = d->split / (d->join_lanes * d->join_warps);
}

// Bytes of shared memory, as make_room takes them.
static int64_t room_of(const columns *x) {
  const deal *d = &x->d;
  const kl_reductions *all = x->g.x;
  int64_t values =
      (d->warps_j > 1 || d->in_block > 1 ? d->teams * d->warps_j : 0) + (d->in_block > 1 ? d->in_block : 0);
  int64_t bytes = 0;
  for (uint32_t i = 0; i < all->n; i++)
    for (uint32_t k = 0; k < all->reducer[i].n; k++) bytes += kl_info(kl_in_bytes(all->reducer[i].type[k]))->bits / 8;
  return values * bytes * d->v * d->lanes;
}

// Fewer neighbours where their values have no room, or are too many for a thread that joins them.
static void deal_columns(columns *x) {
  deal *d = &x->d;
  bool host = x->g.c->plan->target.machine == KL_HOST;
  deal_neighbours(x);
  deal_elements(x);
  while (d->v > 1 &&
         (d->of_warp > most_joined(x) || d->of_thread > most_joined(x) || (!host && room_of(x) > KL_MOST_SHARED))) {
    d->v /= 2;
    deal_elements(x);
  }
}

// --- variables ------------------------------------------------------------------------------------------------------

static void make_vars(columns *x) {
  const deal *d = &x->d;
  kl_affs *p = x->g.p;
  kl_reducing *g = &x->g;
  uint32_t none, majors, blocks;
  int64_t in_block = d->v * d->lanes;
  const kl_aff *major = kl_add_var(g, KL_BIND_BLOCK, x->g.x->rows / x->g.x->minor, "major", &majors);
  const kl_aff *block = kl_add_var(g, KL_BIND_BLOCK, kl_ceil_div(x->g.x->minor, in_block), "block", &blocks);
  bool one = majors == KL_NONE;
  kl_launch_counted(g, d->split > 1 ? KL_NONE : one ? blocks : majors, one ? in_block : x->g.x->minor);
  const kl_aff *split = kl_add_var(g, KL_BIND_BLOCK, x->joins ? 1 : d->split, "split", &x->split);
  const kl_aff *team = kl_add_var(g, KL_BIND_WARP, d->teams, "team", &none);
  x->warp_j = kl_add_var(g, KL_BIND_WARP, d->warps_j, "warp_j", &none);
  x->idle = kl_add_var(g, KL_BIND_LANE, d->idle, "idle", &none);
  const kl_aff *lane_j = kl_add_var(g, KL_BIND_LANE, d->lanes_j, "lane_j", &x->lane_j);
  const kl_aff *lane = x->lane = kl_add_var(g, KL_BIND_LANE, d->lanes, "lane", &none);
  bool folds = !x->joins, parts = folds && d->in_block > 1;
  const kl_aff *round = kl_add_var(g, KL_BIND_STEP, folds ? d->rounds : 1, "round", &x->step);
  const kl_aff *round_k = kl_add_var(g, KL_BIND_STEP, folds ? d->rounds_k : 1, "round_k", &x->step_k);
  const kl_aff *k = kl_add_var(g, KL_BIND_REG, folds ? d->k : 1, "k", &x->k);
  const kl_aff *j = kl_add_var(g, KL_BIND_REG, folds ? d->j : 1, "j", &x->j);
  const kl_aff *v = kl_add_var(g, KL_BIND_REG, d->v, "v", &x->v);
  kl_add_var(g, KL_BIND_REG, parts ? d->of_warp : 1, "part", &x->part);
  kl_add_var(g, KL_BIND_REG, parts ? kl_power_of_two(d->in_block) / d->of_warp : 1, "met", &x->met);
  kl_add_var(g, KL_BIND_REG, folds ? d->warps_j : 1, "met_j", &x->met_j);
  kl_add_var(g, KL_BIND_REG, d->split > 1 ? d->of_thread : 1, "joined", &x->joined);
  kl_add_var(g, KL_BIND_REG, d->split > 1 ? d->join_warps : 1, "met_joined", &x->met_joined);
  bool host = g->c->plan->target.machine == KL_HOST;
  x->column = host ? kl_aff_addmul(p, lane, v, d->lanes) : kl_aff_addmul(p, v, lane, d->v);
  x->in_major = kl_aff_addmul(p, x->column, block, in_block);
  x->row = kl_aff_addmul(p, x->in_major, major, x->g.x->minor);
  x->warp = kl_aff_addmul(p, x->warp_j, team, d->warps_j);
  x->part_in_block = kl_aff_addmul(p, team, round, d->teams);
  x->set = kl_aff_addmul(p, block, major, kl_ceil_div(x->g.x->minor, in_block));
  const kl_aff *part = kl_aff_addmul(p, x->part_in_block, split, d->in_block);
  const kl_aff *s = kl_aff_floordivc(p, part, d->of_group), *of_group = kl_aff_modc(p, part, d->of_group);
  x->owner = kl_aff_add(p, kl_aff_add(p, x->idle, lane_j), x->warp);
  const kl_aff *all_k = kl_aff_addmul(p, kl_aff_addmul(p, k, round_k, d->k), s, d->k * d->rounds_k);
  const kl_aff *slow_j = kl_aff_addmul(p, kl_aff_addmul(p, j, x->warp_j, d->j), of_group, d->j * d->warps_j);
  x->r = kl_aff_addmul(p, kl_aff_addmul(p, lane_j, slow_j, d->lanes_j), all_k, x->g.x->w);
}

static void make_guards(columns *x) {
  bool never;
  kl_guards *guards = &x->g.w.guards;
  x->row_guard = kl_guard_and(guards, KL_NONE, x->in_major, 0, x->g.x->minor - 1, &never);
  x->guard = kl_guard_and(guards, x->row_guard, x->r, 0, x->g.x->length - 1, &never);
  x->there = kl_guard_and(guards, KL_NONE, x->r, 0, x->g.x->length - 1, &never);
}

// --- folding --------------------------------------------------------------------------------------------------------

// What parts have made is joined as leaves are: several may have some of the same group.
static kl_folding leaves_of(columns *x, uint32_t which) {
  kl_folding f = kl_folding_of(&x->g, which);
  return kl_folding_leaves(&f);
}

// Pairs of j as far as the thread and its warp have them.
static kiln_status fold_leaves(columns *x, kl_folding *f, uint32_t *values) {
  return kl_fold_lanes(f, x->lane_j, x->d.lanes_j, true, x->j, values);
}

static const kl_aff *variable(columns *x, uint32_t var) {
  return var == KL_NONE ? kl_aff_const(x->g.p, 0) : kl_aff_dim(x->g.p, var);
}

// Of lanes that hold the same, one.
static uint32_t one_lane_j(columns *x, uint32_t outer) {
  bool never;
  const kl_aff *e = kl_aff_add(x->g.p, x->idle, variable(x, x->lane_j));
  return kl_guard_and(&x->g.w.guards, outer, e, 0, 0, &never);
}

// Slots of shared memory.
typedef struct meeting {
  uint32_t warps[KL_MAX_VALUES_FOLDED], parts[KL_MAX_VALUES_FOLDED], teams[KL_MAX_VALUES_FOLDED];
  bool has_room; // a value of each column and warp, in `teams`
} meeting;

// Where a column's value lies among those of a block: a thread's 16 bytes beside those of its neighbours, so that lanes
// touch whole sectors, and all banks.
static const kl_aff *place_of_column(columns *x, const kl_reducer *by) {
  const deal *d = &x->d;
  kl_affs *p = x->g.p;
  uint32_t bits = 8;
  for (uint32_t i = 0; i < by->n; i++)
    if (kl_info(by->type[i])->bits > bits) bits = kl_info(by->type[i])->bits;
  int64_t at_once = kl_least(d->v, bits < 128 ? 128 / bits : 1);
  const kl_aff *v = variable(x, x->v);
  const kl_aff *chunk = kl_aff_addmul(p, x->lane, kl_aff_floordivc(p, v, at_once), d->lanes);
  return kl_aff_addmul(p, kl_aff_modc(p, v, at_once), chunk, at_once);
}

static const kl_aff *place(columns *x, const kl_folding *f, const kl_aff *slow) {
  return kl_aff_addmul(x->g.p, place_of_column(x, f->by), slow, x->d.v * x->d.lanes);
}

static void make_room(columns *x, kl_folding *f, meeting *m) {
  const deal *d = &x->d;
  int64_t columns = d->v * d->lanes, warps = d->teams * d->warps_j;
  if (d->warps_j > 1) kl_fold_room(f, warps * columns, NULL, m->warps);
  if (d->in_block > 1) kl_fold_room(f, d->in_block * columns, NULL, m->parts);
  // What has met is read by then: one room does for all meetings of warps.
  if (d->in_block > 1 && x->met != KL_NONE && d->warps_j == 1) kl_fold_room(f, warps * columns, NULL, m->warps);
  memcpy(m->teams, m->warps, sizeof m->teams);
  m->has_room = d->warps_j > 1 || (d->in_block > 1 && x->met != KL_NONE);
}

// Of one part: the pairs of j that lie in other warps.
static void put_warps(columns *x, kl_folding *f, const meeting *m, const uint32_t *values) {
  if (x->d.warps_j > 1) kl_fold_put(f, m->warps, place(x, f, x->warp), one_lane_j(x, KL_NONE), values);
}

static kiln_status fold_warps(columns *x, kl_folding *f, const meeting *m, uint32_t *values) {
  if (x->d.warps_j == 1) return KILN_OK;
  const kl_aff *first = kl_aff_sub(x->g.p, x->warp, x->warp_j);
  kl_fold_get(f, m->warps, place(x, f, kl_aff_add(x->g.p, first, variable(x, x->met_j))), KL_NONE, values);
  return kl_fold_pairs(f, x->met_j, values);
}

// Of several parts: one warp of each column's joins what the others have, and leaves it for all.
static kiln_status put_part(columns *x, kl_folding *f, const meeting *m, uint32_t *values) {
  bool never;
  put_warps(x, f, m, values);
  uint32_t first = kl_guard_and(&x->g.w.guards, KL_NONE, x->warp_j, 0, 0, &never);
  if (first != KL_NONE) kl_write_if(&x->g.w, first);
  KL_TRY(fold_warps(x, f, m, values));
  uint32_t keep = kl_guard_and(&x->g.w.guards, first, x->part_in_block, 0, x->d.in_block - 1, &never);
  kl_fold_put(f, m->parts, place(x, f, x->part_in_block), one_lane_j(x, keep), values);
  if (first != KL_NONE) kl_write_if_end(&x->g.w);
  return KILN_OK;
}

// Warps take neighbouring parts, and what they make of them meets again.
static kiln_status fold_parts(columns *x, kl_folding *f, const meeting *m, uint32_t *values) {
  bool never;
  const kl_aff *part = kl_aff_addmul(x->g.p, variable(x, x->part), x->warp, x->d.of_warp);
  uint32_t there = kl_guard_and(&x->g.w.guards, KL_NONE, part, 0, x->d.in_block - 1, &never);
  kl_fold_get(f, m->parts, place(x, f, part), there, values);
  KL_TRY(kl_fold_pairs(f, x->part, values));
  if (x->met == KL_NONE) return KILN_OK;
  kl_fold_put(f, m->teams, place(x, f, x->warp), one_lane_j(x, KL_NONE), values);
  kl_fold_get(f, m->teams, place(x, f, variable(x, x->met)), KL_NONE, values);
  return kl_fold_pairs(f, x->met, values);
}

static int64_t sets_of(const columns *x) {
  return x->g.x->rows / x->g.x->minor * kl_ceil_div(x->g.x->minor, x->d.v * x->d.lanes);
}

// What the block has made of each column is for others to join; neighbouring columns lie side by side. Columns that are
// not there have places, too: who finds what others have stored reads nothing else there, not even in vain.
static const kl_aff *partial_place(columns *x, const kl_folding *f, const kl_aff *part) {
  int64_t of_set = x->d.v * x->d.lanes;
  const kl_aff *set = kl_aff_addmul(x->g.p, x->set, part, sets_of(x));
  return kl_aff_addmul(x->g.p, place_of_column(x, f->by), set, of_set);
}

static void put_partial(columns *x, uint32_t which, const uint32_t *values) {
  kl_folding f = leaves_of(x, which);
  bool never;
  uint32_t keep = kl_guard_and(&x->g.w.guards, KL_NONE, x->owner, 0, 0, &never);
  kl_fold_scratch(&f, x->d.split * sets_of(x) * x->d.v * x->d.lanes, 0, NULL, x->partial[which]);
  kl_fold_put(&f, x->partial[which], partial_place(x, &f, variable(x, x->split)), keep, values);
}

// Threads of a column take neighbouring blocks' values; what warps make of them meets.
static kiln_status join_partial(columns *x, uint32_t which) {
  kl_affs *p = x->g.p;
  const deal *d = &x->d;
  kl_folding f = leaves_of(x, which);
  uint32_t values[KL_MAX_VALUES_FOLDED], room[KL_MAX_VALUES_FOLDED];
  const kl_aff *lane = kl_aff_modc(p, variable(x, x->lane_j), d->join_lanes);
  const kl_aff *thread = kl_aff_addmul(p, lane, kl_aff_modc(p, x->warp, d->join_warps), d->join_lanes);
  const kl_aff *part = kl_aff_addmul(p, variable(x, x->joined), thread, d->of_thread);
  kl_fold_get(&f, x->partial[which], partial_place(x, &f, part), KL_NONE, values);
  KL_TRY(kl_fold_pairs(&f, x->joined, values));
  KL_TRY(kl_fold_lanes(&f, x->lane_j, d->join_lanes, true, KL_NONE, values));
  if (x->met_joined != KL_NONE) {
    const meeting *m = x->meetings ? &x->meetings[which] : NULL;
    if (m && m->has_room)
      memcpy(room, m->teams, sizeof room);
    else
      kl_fold_room(&f, d->teams * d->warps_j * d->v * d->lanes, NULL, room);
    kl_fold_put(&f, room, place(x, &f, x->warp), one_lane_j(x, KL_NONE), values);
    kl_fold_get(&f, room, place(x, &f, variable(x, x->met_joined)), KL_NONE, values);
    KL_TRY(kl_fold_pairs(&f, x->met_joined, values));
  }
  return kl_fold_give(&x->g, which, x->row, x->row_guard, values);
}

static kiln_status fold_level(columns *x, uint32_t level) {
  const kl_reductions *all = x->g.x;
  meeting *m = KL_NEW_N(x->g.c->arena, meeting, all->n);
  x->meetings = m;
  uint32_t(*values)[KL_MAX_VALUES_FOLDED] = kl_arena_alloc(x->g.c->arena, all->n * sizeof *values);
  if (!all->length) return kl_give_nothing(&x->g, level, x->row, x->row_guard);
  if (x->step != KL_NONE) kl_write_loop(&x->g.w, x->step, 0, NULL, NULL, NULL);
  KL_TRY(
      kl_fold_elements(&x->g, &(kl_elements){x->row, x->r, x->guard, x->there, x->step_k, x->k, NULL}, level, values));
  for (uint32_t i = 0; i < all->n; i++) {
    if (all->level[i] != level) continue;
    kl_folding f = leaves_of(x, i);
    make_room(x, &f, &m[i]);
    KL_TRY(fold_leaves(x, &f, values[i]));
    if (x->d.in_block > 1) KL_TRY(put_part(x, &f, &m[i], values[i]));
  }
  if (x->step != KL_NONE) kl_write_loop_end(&x->g.w, NULL);
  for (uint32_t i = 0; i < all->n; i++) {
    if (all->level[i] != level) continue;
    kl_folding f = leaves_of(x, i);
    if (x->d.in_block == 1) put_warps(x, &f, &m[i], values[i]);
    KL_TRY(x->d.in_block > 1 ? fold_parts(x, &f, &m[i], values[i]) : fold_warps(x, &f, &m[i], values[i]));
    if (x->d.split > 1)
      put_partial(x, i, values[i]);
    else
      KL_TRY(kl_fold_give(&x->g, i, x->row, x->row_guard, values[i]));
  }
  return KILN_OK;
}

// --- results --------------------------------------------------------------------------------------------------------

static kiln_status store_elements(columns *x) {
  if (!kl_has_element_results(&x->g)) return KILN_OK;
  if (x->step != KL_NONE) kl_write_loop(&x->g.w, x->step, 0, NULL, NULL, NULL);
  if (x->step_k != KL_NONE) kl_write_loop(&x->g.w, x->step_k, 0, NULL, NULL, NULL);
  bool never;
  uint32_t guard = kl_guard_and(&x->g.w.guards, x->guard, x->idle, 0, 0, &never);
  KL_TRY(kl_store_elements(&x->g, x->row, x->r, guard));
  if (x->step_k != KL_NONE) kl_write_loop_end(&x->g.w, NULL);
  if (x->step != KL_NONE) kl_write_loop_end(&x->g.w, NULL);
  return KILN_OK;
}

static kiln_status store_columns(columns *x) {
  bool never;
  uint32_t keep = kl_guard_and(&x->g.w.guards, x->row_guard, x->owner, 0, 0, &never);
  for (uint32_t i = 0; i < x->g.x->noutputs; i++) {
    const kl_output *o = &x->g.x->outputs[i];
    const kl_aff *at;
    uint32_t step;
    if (!o->of_row) continue;
    KL_TRY(kl_want_output(&x->g, o, x->row, x->r, x->row_guard, &at, &step));
    kl_write_store(&x->g.w, o->slot, kl_slot_of(&x->g, o->slot), at, step, keep);
  }
  return KILN_OK;
}

// --- the plan -------------------------------------------------------------------------------------------------------

// What stands in LAST is done by one of the blocks.
static kiln_status write_body(columns *x) {
  bool last = x->d.split > 1 && !x->joins && !x->g.x->two_launches;
  make_guards(x);
  for (uint32_t level = 1; level <= x->g.x->levels && !x->joins; level++) KL_TRY(fold_level(x, level));
  if (x->d.split > 1 && !x->joins && !last) return KILN_OK;
  if (last) kl_begin_last(&x->g, x->split, x->set, sets_of(x));
  for (uint32_t i = 0; i < x->g.x->n && x->d.split > 1; i++) KL_TRY(join_partial(x, i));
  KL_TRY(store_elements(x));
  KL_TRY(store_columns(x));
  if (last) kl_write_last_end(&x->g.w);
  return KILN_OK;
}

static kiln_status make_launch(columns *x, const char **why_not) {
  kl_body b = {0};
  make_vars(x);
  kl_reducing_begin(&x->g, &b);
  return kl_reducing_end(&x->g, &b, write_body(x), WARP * x->d.teams * x->d.warps_j, why_not);
}

// On the host a block reads as much of a row as it has vectors of neighbours, if it has not too many parts to join: so
// several blocks have some each.
static int64_t blocks_for_width(columns *x) {
  const kl_reductions *stage = x->g.x;
  const kl_plan_params *params = x->g.c->params;
  if (x->g.c->plan->target.machine != KL_HOST || params->strategy.split || stage->levels > 1) return 1;
  deal_neighbours(x);
  deal_elements(x);
  int64_t most = most_joined(x), n = kl_power_of_two(kl_ceil_div(x->d.parts, most));
  return n <= most ? n : 1;
}

// Parts meet in shared memory, and a thread joins not too many.
void kl_split_columns(kl_choosing *c, kl_reductions *stage) {
  columns x = {.g = {.c = c, .p = c->plan->affs, .x = stage}};
  int64_t wide = stage->split = blocks_for_width(&x);
  deal_columns(&x);
  const deal *d = &x.d;
  if (d->parts == 1) return;
  int64_t cost, blocks = stage->rows / stage->minor * kl_ceil_div(stage->minor, d->v * d->lanes), bytes = 0,
                most = kl_least(MOST_PARTS, most_joined(&x));
  for (uint32_t i = 0; i < stage->n; i++)
    for (uint32_t k = 0; k < stage->reducer[i].n; k++)
      bytes += d->v * d->lanes * kl_info(kl_in_bytes(stage->reducer[i].type[k]))->bits / 8;
  while (most > 1 && most * bytes > ROOM) most /= 2;
  bool whole = !c->params->strategy.split && c->plan->target.machine == KL_NVPTX; // warps, all with a part
  int64_t least = kl_power_of_two(kl_ceil_div(d->parts, most)), warps = whole ? MOST_WARPS : d->warps_j;
  int64_t joined =
      kl_least(kl_power_of_two(d->parts) / (whole ? warps / d->warps_j : 1), JOINED / d->v * warps * d->lanes_j);
  if (least < wide) least = wide;
  stage->split = kl_best_split(&x.g, blocks, least, joined > least ? joined : least, true, &cost);
}

kiln_status kl_choose_columns(kl_choosing *c, const kl_reductions *all, const char **why_not) {
  columns x = {.g = {.c = c, .p = c->plan->affs, .x = all}};
  deal_columns(&x);
  if (x.d.in_block > MOST_PARTS) {
    *why_not = "its columns are too long for one block";
    return KILN_OK;
  }
  x.partial = kl_arena_alloc(c->arena, all->n * sizeof *x.partial);
  KL_TRY(make_launch(&x, why_not));
  if (*why_not || x.d.split == 1 || !all->two_launches) return KILN_OK;
  columns second = {.g = {.c = c, .p = c->plan->affs, .x = all}, .joins = true, .partial = x.partial};
  deal_columns(&second);
  kl_plan_add_launch(c->plan, c->plan->target.block);
  return make_launch(&second, why_not);
}
