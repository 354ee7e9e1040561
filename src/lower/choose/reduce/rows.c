// Row reductions: the reduced elements are neighbours in memory.
//
// A row is dealt to lanes, in runs of V elements, then to registers h and k, then to warps and rounds of a loop:
//   r = (s*K + k)*W + h*(V*lanes) + lane*V + v,  s = round*warps + warp
// Where rows are few and long, several blocks have some neighbouring groups s each, and leave what they make of them in
// scratch memory; the last of them joins it, or a launch behind.
// As long as what a thread holds of a row fits its registers, nothing is read twice however many reductions follow
// another. Else each level of reductions is a loop over the row, and so are the results. What the warps of a row have
// made meets in shared memory, where each of them reads all of it.

#include "lower/choose/reduce/reduce.h"

enum { // threads that make several rows one behind the other, for each multiprocessor; registers of it, and of a thread
  LEAST_THREADS = 384,
  USUAL_MULTIPROCESSORS = 132,
  MOST_ROW_ROUNDS = 32,
  REGISTERS = 1 << 16,
  OTHER_REGISTERS = 24,
  MOST_HELD = 64,
  HARDLY = 25, // what is read alike counts less than one in so many
  MOST_COPIED = 32 << 10,
  MOST_MET = 8 << 10, // of what warps make of rows
};
enum { // of rows that share a warp: bits of each that a request has, elements of a lane, warps of a multiprocessor
  LEAST_AT_ONCE = 8 * 128,
  MOST_OF_LANE = 32,
  LEAST_WARPS = 8,
};
enum { MOST_WARPS = 32, SPLIT_WARPS = 8, WARP = 32, BLOCK_WARPS = 4, MOST_PARTS = 1024, MOST_JOINED = 32 };

// How a row is dealt out.
typedef struct deal {
  int64_t v, lanes, h, k, rounds_k, warps, rounds; // k: in registers; the rest of K is a loop
  int64_t rows_in_warp, rows_in_block, row_rounds; // rows of a block: their product
  int64_t parts, split, in_block;                  // s: all, of so many blocks, each so many
  int64_t joined, join_lanes;                      // blocks' values that a lane joins; lanes for all of them
  int64_t unit, more_k;                            // see deal_shift
} deal;

typedef struct rows {
  kl_reducing g;
  deal d;
  bool joins;  // joins what blocks have made, and nothing else
  bool copies; // what rows read alike, to shared memory
  kl_alike alike;
  uint32_t copy;                              // variable of what a thread copies
  kl_sums sums;                               // of columns beside
  uint32_t v, h, k, lane, step_k, step, part; // variables, KL_NONE where there is one value; part: see fold_parts
  uint32_t row_round, split, joined;
  uint32_t (*partial)[KL_MAX_VALUES_FOLDED];    // by reduction: slots of what blocks have made
  const kl_aff *row, *r, *warp, *s;             // s: in the block
  const kl_aff *shift, *in_group;               // see deal_shift; the element's number in its group
  kl_shift in_order;                            // likewise
  const kl_aff *row_at_once;                    // of the rows that a block has at one time
  const kl_aff *row_in_block, *in_row, *thread; // the thread's number in the row, and in the block
  const kl_aff *out, *out_in_block;             // rows as results are stored
  uint32_t row_guard, guard, there;             // the row is there; and so is the element; it is where its row is
} rows;

// --- dealing --------------------------------------------------------------------------------------------------------

// The bits of the narrowest result that has an element for each row; 0: there is none.
static uint32_t narrowest_row_result(const rows *x) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < x->g.x->noutputs; i++) {
    const kl_output *o = &x->g.x->outputs[i];
    uint32_t b = kl_info(kl_slot_of(&x->g, o->slot)->shape->dtype)->bits;
    if (o->of_row && (!bits || b < bits)) bits = b;
  }
  return bits;
}

// Results of as many rows belong to one block.
static int64_t rows_in_byte(const rows *x) {
  uint32_t bits = narrowest_row_result(x);
  return bits && bits < 8 ? 8 / bits : 1;
}

// Are results for each element stored in shifted rows, too? What rows read alike is then read element by element, for
// each row, and rows of several groups have so many rounds more that wide stores do not make up for them.
static bool stores_shifted(rows *x) {
  const kl_reductions *all = x->g.x;
  if (all->length > all->w * all->k) return false;
  return kl_find_alike(&x->g, &x->alike) == KILN_OK && !x->alike.bits;
}

// Rows that are no multiples of a vector begin anywhere in one. Then lanes hold what lies side by side from the sector
// on that the row begins in, and each element of theirs is `shift` less: r = ((s*K + k)*W + j) - shift, shift < unit.
// The first elements of a group's round k are then the last of round k-1, and its last ones, of round K-1, are in a
// round more, which but a few lanes have. Leaves are turned by the shift as they are joined.
static void deal_shift(rows *x, int64_t v) {
  deal *d = &x->d;
  const kl_reductions *all = x->g.x;
  int64_t unit = kl_least(32 * 8, 32 * 8 / kl_narrowest(&x->g));
  bool host = x->g.c->plan->target.machine == KL_HOST, wanted = all->length % v != 0 && all->length > WARP / 2 * v;
  bool counted = x->g.c->plan->counted; // then nothing beside a row may be read: it may not be there
  uint32_t align = x->g.c->params->align;
  d->unit = 1;
  if (host || counted || x->joins || all->beside || !wanted || (align && align < 16) || !all->flat || all->flat % v ||
      all->w / (WARP * v) < 1)
    return;
  if (all->k > 4 || (kl_has_element_results(&x->g) && !stores_shifted(x))) return;
  d->unit = unit;
}

// Fewer lanes for a row, of which more share a warp, waste fewer of their registers where it ends between: of 384
// elements 16 lanes have 24 each, but of 32 half would have 16 for 8. Each request still has whole lines of a row, and
// each multiprocessor its warps.
static int64_t lanes_without_waste(const rows *x, int64_t lanes) {
  int64_t v = x->d.v, length = x->g.x->length, n = USUAL_MULTIPROCESSORS, best = lanes;
  if (x->g.c->plan->target.multiprocessors) n = x->g.c->plan->target.multiprocessors;
  for (int64_t few = lanes / 2; few * v * kl_narrowest(&x->g) >= LEAST_AT_ONCE; few /= 2) {
    if (kl_ceil_div(length, few * v) * v > MOST_OF_LANE || x->g.x->rows / (WARP / few) < LEAST_WARPS * n) break;
    if (kl_ceil_div(length, few * v) * few < kl_ceil_div(length, best * v) * best) best = few;
  }
  return best;
}

// Lanes hold V elements side by side; each row of them begins where the row does, so that V divides its length, or is
// shifted.
static void deal_lanes(rows *x) {
  deal *d = &x->d;
  bool host = x->g.c->plan->target.machine == KL_HOST;
  int64_t w = x->g.x->w, length = x->g.x->length ? x->g.x->length : 1;
  d->v = host ? 1 : kl_least(8, 128 / kl_narrowest(&x->g));
  deal_shift(x, d->v);
  while (d->v > 1 && length % d->v && d->unit == 1) d->v /= 2;
  int64_t most = host ? x->g.c->plan->target.host_lanes : WARP;
  d->lanes = kl_least(most, kl_power_of_two(kl_ceil_div(length, d->v)));
  if (!host && d->unit == 1) d->lanes = lanes_without_waste(x, d->lanes);
  if (d->lanes > w) d->lanes = w;
  if (host) d->lanes = d->lanes > rows_in_byte(x) ? d->lanes : rows_in_byte(x); // they store results, too
  length += d->unit - 1;
  d->h = kl_least(w / (d->v * d->lanes), kl_power_of_two(kl_ceil_div(length, d->v * d->lanes)));
  d->rows_in_warp = host ? 1 : WARP / d->lanes;
}

static int64_t rows_of_block(const deal *d) {
  return d->row_rounds * d->rows_in_block * d->rows_in_warp;
}

// Who only joins has neighbouring blocks' values in a lane, and lanes enough for all of them.
static void deal_joined(rows *x) {
  deal *d = &x->d;
  bool host = x->g.c->plan->target.machine == KL_HOST;
  int64_t all = d->split, lanes = host ? x->g.c->plan->target.host_lanes : WARP;
  if (x->joins) d->lanes = host ? lanes : kl_least(lanes, all);
  if (x->joins) d->rows_in_warp = host ? 1 : WARP / d->lanes;
  if (x->joins) d->v = d->h = d->k = d->rounds_k = d->warps = d->rounds = d->in_block = 1;
  d->join_lanes = kl_least(d->lanes, all);
  d->joined = all / d->join_lanes;
}

static void deal_rows(rows *x) {
  deal *d = &x->d;
  bool host = x->g.c->plan->target.machine == KL_HOST;
  int64_t w = x->g.x->w, length = x->g.x->length ? x->g.x->length : 1, k = x->g.x->k;
  deal_lanes(x);
  d->parts = kl_ceil_div(length, w * k);
  d->in_block = x->g.x->split > 1 ? kl_power_of_two(kl_ceil_div(d->parts, x->g.x->split)) : d->parts;
  d->split = kl_power_of_two(kl_ceil_div(d->parts, d->in_block));
  if (d->parts == 1) k = kl_least(k, kl_ceil_div(length, w));
  d->rounds_k = 1;
  while (k / d->rounds_k > 4) d->rounds_k *= 2;
  d->k = k / d->rounds_k;
  d->more_k = d->unit > 1 && (d->parts > 1 || length + d->unit - 1 > d->k * w);
  d->warps =
      host ? 1 : kl_least(d->split > 1 && !x->g.x->cluster ? SPLIT_WARPS : MOST_WARPS, kl_power_of_two(d->in_block));
  // Registers are for what will be wanted again.
  d->rounds = kl_ceil_div(d->in_block, d->warps);
  deal_joined(x);
  bool alone = host || d->warps >= BLOCK_WARPS || (d->split > 1 && !x->joins);
  d->rows_in_block = alone ? 1 : BLOCK_WARPS / d->warps;
  while (d->rows_in_block > 1 && d->rows_in_block * d->rows_in_warp > x->g.x->rows) d->rows_in_block /= 2;
  d->row_rounds = 1;
  while (rows_of_block(d) < rows_in_byte(x)) d->row_rounds *= 2;
}

static bool copies_alike(const rows *x) {
  return x->alike.bits && x->alike.copied && x->alike.bytes <= MOST_COPIED;
}

// Bits of what has an element for each reduced one, for one of them.
static int64_t bits_of_element(const rows *x) {
  int64_t bits = 0;
  for (uint32_t i = 0; i < x->g.c->slots.nargs; i++) {
    const kl_shape *s = x->g.c->slots.v.p[i].shape;
    if (s->count >= x->g.x->rows * x->g.x->length / 2) bits += kl_info(s->dtype)->bits;
  }
  return bits;
}

// Rounds of a block of so many threads, which has `at_once` rows at one time: each multiprocessor keeps some threads,
// and as good as every one a block. 1: there are too few rows.
static int64_t rounds_of(const rows *x, int64_t at_once, int64_t threads) {
  const deal *d = &x->d;
  const kl_plan *p = x->g.c->plan;
  int64_t times = x->g.c->params->strategy.times, blocks = kl_ceil_div(x->g.x->rows, at_once);
  int64_t all = p->target.multiprocessors ? p->target.multiprocessors : USUAL_MULTIPROCESSORS;
  int64_t least = kl_ceil_div(all * LEAST_THREADS, threads), most;
  if (least < all - all / 16) least = all - all / 16;
  most = kl_least(times ? kl_least(times, blocks) : blocks / least, MOST_ROW_ROUNDS);
  if (most < 2) return 1;
  int64_t rounds = most;
  while (rounds > 1 && x->g.x->rows % (at_once * rounds)) rounds--;
  bool inside = d->lanes * d->warps * d->k * d->h * d->v == x->g.x->length;
  return rounds <= most / 2 && inside ? most : rounds;
}

// What rows read alike a thread holds for several rows, which its block makes one behind the other, as long as
// registers hold it beside what it has of a row. Where that is still read too often, the block copies it to shared
// memory, for more rows at one time. Elements that may be outside are guarded as their row is, so that they stay with
// it where rows may be outside, too.
static kiln_status deal_rounds(rows *x) {
  deal *d = &x->d;
  const kl_strategy *asked = &x->g.c->params->strategy;
  int64_t elements = d->k * d->h * d->v, threads = WARP * d->warps * d->rows_in_block, more = 1, rounds = 1;
  if (x->g.c->plan->target.machine == KL_HOST || x->joins || d->split > 1 || d->rounds > 1 || d->rounds_k > 1 ||
      d->unit > 1)
    return KILN_OK;
  if (x->g.x->rows == 0 || x->g.x->length == 0 || asked->times == 1) return KILN_OK;
  if (rounds_of(x, rows_of_block(d), threads) < 2) return KILN_OK;
  KL_TRY(kl_find_alike(&x->g, &x->alike));
  int64_t held = kl_ceil_div(elements * x->alike.bits, 32), least = x->alike.bits * HARDLY / bits_of_element(x);
  if (!x->alike.bits) return KILN_OK;
  if (held <= MOST_HELD && held + 2 * elements + OTHER_REGISTERS <= kl_least(REGISTERS / threads, 255))
    rounds = rounds_of(x, rows_of_block(d), threads);
  int64_t first = asked->times ? asked->teams : 1, last = asked->times ? first : MOST_WARPS;
  for (int64_t n = first; n && n <= last && copies_alike(x) && n * threads <= MOST_WARPS * WARP; n *= 2) {
    int64_t times = rounds_of(x, n * rows_of_block(d), n * threads), by = x->copies ? more * d->rows_in_block : 1;
    if (!asked->times && rounds * by * d->rows_in_warp >= least) break;
    if (2 * elements + OTHER_REGISTERS > kl_least(REGISTERS / (n * threads), 255)) break;
    if (n * d->rows_in_block == 1 || times * n * d->rows_in_block <= rounds * by) continue;
    x->copies = true;
    more = n;
    rounds = times;
  }
  d->rows_in_block *= more;
  d->row_rounds *= rounds;
  return KILN_OK;
}

// --- columns beside -------------------------------------------------------------------------------------------------

// Registers of a thread, of which it has so many elements: what it loads, and what it makes of that.
static int64_t registers_beside(const deal *d) {
  return 3 * d->k * d->h * d->v + OTHER_REGISTERS;
}

// Rows of a block at one time are neighbouring leaves of the columns' order, as many as memory has room for; a leaf's
// come one behind the other. Blocks leave sums of columns for others to join: few of them leave little.
static bool deal_beside(rows *x) {
  deal *d = &x->d;
  const kl_reductions *all = x->g.x, *columns = all->beside;
  const kl_plan *p = x->g.c->plan;
  int64_t asked = x->g.c->params->strategy.teams, threads = WARP * d->warps;
  int64_t of_team = (d->warps * d->k - 1) * all->w + d->lanes * d->h * d->v;
  if (p->target.machine == KL_HOST || d->split > 1 || d->rounds > 1 || d->rounds_k > 1 || d->unit > 1) return false;
  if (d->rows_in_warp > 1 || rows_in_byte(x) > 1) return false;
  int64_t bytes = of_team * kl_sums_bytes(columns), room = MOST_MET + (copies_alike(x) ? x->alike.bytes : 0);
  int64_t leaves = kl_ceil_div(all->rows, columns->w * columns->k) * columns->w;
  int64_t processors = p->target.multiprocessors ? p->target.multiprocessors : USUAL_MULTIPROCESSORS;
  int64_t read = all->rows * all->length * kl_narrowest(&x->g) / 8;
  for (int64_t n = asked ? asked : columns->w; n > 0; n /= 2) {
    if (n * threads > MOST_WARPS * WARP || registers_beside(d) * n * threads > REGISTERS) continue;
    if (n * bytes + room > kl_most_shared(&p->target)) continue;
    if (!asked && leaves / n < processors - processors / 16) continue;
    if (!asked && (leaves * threads < processors * LEAST_THREADS || 4 * leaves / n * bytes > read)) return false;
    x->copies = copies_alike(x);
    x->sums = (kl_sums){.columns = columns, .v = d->v, .padded = of_team, .teams = n, .parts = leaves / n};
    d->rows_in_block = n;
    d->row_rounds = columns->k;
    return true;
  }
  return false;
}

kiln_status kl_rows_have_columns(kl_choosing *c, const kl_reductions *all, const kl_reductions *columns, bool *have) {
  kl_reductions both = *all;
  rows x = {.g = {.c = c, .p = c->plan->affs, .x = &both}};
  both.beside = columns;
  *have = false;
  if (all->length == 0 || all->rows == 0) return KILN_OK;
  deal_rows(&x);
  KL_TRY(kl_find_alike(&x.g, &x.alike));
  *have = deal_beside(&x);
  return KILN_OK;
}

// The number of a team's row: a leaf of the columns' order, and which of it.
static const kl_aff *row_beside(rows *x, const kl_aff *team, const kl_aff *round) {
  const kl_reductions *columns = x->g.x->beside;
  kl_affs *p = x->g.p;
  uint32_t none;
  int64_t in_group = columns->w / x->sums.teams;
  const kl_aff *group = kl_add_var(&x->g, KL_BIND_BLOCK, x->sums.parts / in_group, "group", &none);
  const kl_aff *leaf = kl_add_var(&x->g, KL_BIND_BLOCK, in_group, "leaf", &none);
  x->sums.team = team;
  x->sums.part = kl_aff_addmul(p, leaf, group, in_group);
  const kl_aff *in_k = kl_aff_addmul(p, round, group, columns->k);
  return kl_aff_addmul(p, kl_aff_addmul(p, team, leaf, x->sums.teams), in_k, columns->w);
}

// Sums that the thread joins of all teams: of neighbouring threads neighbouring ones.
static void make_vars_beside(rows *x) {
  kl_affs *p = x->g.p;
  uint32_t none;
  int64_t threads = WARP * x->d.warps * x->d.rows_in_block, at_once = kl_least(x->d.v, 4);
  const kl_aff *run = kl_add_var(&x->g, KL_BIND_REG, kl_ceil_div(x->sums.padded, threads * at_once), "run", &none);
  const kl_aff *one = kl_add_var(&x->g, KL_BIND_REG, at_once, "one", &none);
  kl_add_var(&x->g, KL_BIND_REG, x->sums.teams, "met", &x->sums.met);
  x->sums.column = x->r;
  x->sums.run = kl_aff_addmul(p, one, kl_aff_addmul(p, x->thread, run, threads), at_once);
}

// --- variables ------------------------------------------------------------------------------------------------------

// Results of several rows of a block meet in shared memory, so that neighbours are stored at once. Those of
// teams are no neighbours.
static bool meets(const rows *x) {
  return rows_of_block(&x->d) > 1 && !x->g.x->beside;
}

// Results of rows that a thread stores at once, side by side. Where there are rows for whole vectors but in the last
// block, or their number comes at run time, each row has a guard of its own, and they are lanes'.
static int64_t stored_at_once(const rows *x) {
  uint32_t bits = narrowest_row_result(x);
  int64_t least = rows_in_byte(x), n = x->g.c->plan->target.machine == KL_HOST || !bits ? 1 : 128 / bits;
  while (n > least && (x->g.x->rows % n || x->g.c->plan->counted)) n /= 2;
  while (rows_of_block(&x->d) % n || (n > 1 && !meets(x))) n /= 2;
  return n;
}

// Runs of V elements of the largest array that is copied.
static int64_t copies_of_thread(const rows *x) {
  const deal *d = &x->d;
  int64_t most = 1;
  for (uint32_t i = 0; x->copies && i < x->g.c->slots.nargs; i++)
    if (x->alike.of[i] && x->g.c->slots.v.p[i].shape->count > most) most = x->g.c->slots.v.p[i].shape->count;
  return kl_ceil_div(most, d->v * WARP * d->warps * d->rows_in_block);
}

static void make_vars(rows *x) {
  const deal *d = &x->d;
  kl_affs *p = x->g.p;
  uint32_t none, first;
  int64_t at_once = stored_at_once(x), of_block = rows_of_block(d),
          blocks = x->g.x->beside ? 1 : kl_ceil_div(x->g.x->rows, of_block);
  const kl_aff *block = kl_add_var(&x->g, KL_BIND_BLOCK, blocks, "block", &first);
  kl_launch_counted(&x->g, first, of_block);
  const kl_aff *split = kl_add_var(&x->g, KL_BIND_BLOCK, x->joins ? 1 : d->split, "split", &x->split);
  const kl_aff *row_warp = kl_add_var(&x->g, KL_BIND_WARP, d->rows_in_block, "row_warp", &none);
  x->warp = kl_add_var(&x->g, KL_BIND_WARP, d->warps, "warp", &none);
  const kl_aff *row_lane = kl_add_var(&x->g, KL_BIND_LANE, d->rows_in_warp, "row_lane", &none);
  const kl_aff *lane = kl_add_var(&x->g, KL_BIND_LANE, d->lanes, "lane", &x->lane);
  const kl_aff *row_round = kl_add_var(&x->g, KL_BIND_STEP, d->row_rounds, "row_round", &x->row_round);
  const kl_aff *round = kl_add_var(&x->g, KL_BIND_STEP, d->rounds, "round", &x->step);
  const kl_aff *round_k = kl_add_var(&x->g, KL_BIND_STEP, d->rounds_k, "round_k", &x->step_k);
  const kl_aff *k = kl_add_var(&x->g, KL_BIND_REG, d->k + d->more_k, "k", &x->k);
  const kl_aff *h = kl_add_var(&x->g, KL_BIND_REG, d->h, "h", &x->h);
  const kl_aff *v = kl_add_var(&x->g, KL_BIND_REG, d->v, "v", &x->v);
  int64_t of_lane = kl_power_of_two(kl_ceil_div(d->in_block, d->lanes));
  kl_add_var(&x->g, KL_BIND_REG, d->in_block > 1 ? of_lane : 1, "part", &x->part);
  kl_add_var(&x->g, KL_BIND_REG, d->split > 1 ? d->joined : 1, "joined", &x->joined);
  kl_add_var(&x->g, KL_BIND_REG, copies_of_thread(x), "copy", &x->copy);
  const kl_aff *out = kl_add_var(&x->g, KL_BIND_REG, at_once, "out", &none);
  x->row_at_once = kl_aff_addmul(p, row_lane, row_warp, d->rows_in_warp);
  x->row_in_block = kl_aff_addmul(p, x->row_at_once, row_round, d->rows_in_block * d->rows_in_warp);
  x->row = kl_aff_addmul(p, x->row_in_block, block, of_block);
  if (x->g.x->beside) x->row = row_beside(x, row_warp, row_round);
  x->thread = kl_aff_addmul(p, kl_aff_addmul(p, lane, row_lane, d->lanes),
                            kl_aff_addmul(p, x->warp, row_warp, d->warps), d->lanes * d->rows_in_warp);
  x->out_in_block = kl_aff_addmul(p, out, x->thread, at_once);
  x->out = kl_aff_addmul(p, x->out_in_block, block, of_block);
  x->s = kl_aff_addmul(p, x->warp, round, d->warps);
  x->in_row = kl_aff_addmul(p, lane, x->warp, d->lanes);
  const kl_aff *s = kl_aff_addmul(p, x->s, split, d->in_block);
  const kl_aff *kk = kl_aff_addmul(p, kl_aff_addmul(p, k, round_k, d->k), s, d->k * d->rounds_k);
  const kl_aff *j = kl_aff_addmul(p, kl_aff_addmul(p, v, lane, d->v), h, d->v * d->lanes);
  x->shift = kl_aff_modc(p, kl_aff_mulc(p, x->row, x->g.x->length % d->unit), d->unit);
  x->in_order = (kl_shift){.first = kl_aff_addmul(p, kl_aff_modc(p, kl_aff_sub(p, j, x->shift), x->g.x->w), s,
                                                  d->k * d->rounds_k * x->g.x->w),
                           .rounds = (uint32_t)d->k};
  x->in_group = kl_aff_sub(p, kl_aff_addmul(p, j, k, x->g.x->w), x->shift);
  x->r = kl_aff_sub(p, kl_aff_addmul(p, j, kk, x->g.x->w), x->shift);
  if (x->g.x->beside) make_vars_beside(x);
}

static const kl_aff *variable(rows *x, uint32_t var) {
  return var == KL_NONE ? kl_aff_const(x->g.p, 0) : kl_aff_dim(x->g.p, var);
}

static bool first_lane(rows *x, uint32_t outer, uint32_t *guard) {
  bool never = false;
  *guard = outer;
  if (x->lane != KL_NONE) *guard = kl_guard_and(&x->g.w.guards, outer, kl_aff_dim(x->g.p, x->lane), 0, 0, &never);
  return !never;
}

// Where a row's parts lie in shared memory. A lane takes some neighbours, 16 bytes at once; behind these lies a gap as
// wide where they are more, so that what lanes take at one time lies in different banks.
enum { BANKED_BYTES = 16 };

static int64_t parts_of_lane(const rows *x) {
  return x->part == KL_NONE ? 1 : x->g.w.body->vars[x->part].extent;
}

static int64_t gap_of(const rows *x, const kl_folding *f) {
  int64_t bytes = BANKED_BYTES;
  for (uint32_t i = 0; i < f->by->n; i++) bytes = kl_least(bytes, (kl_info(kl_in_bytes(f->by->type[i]))->bits + 7) / 8);
  bool gaps = x->g.c->plan->target.machine == KL_NVPTX && parts_of_lane(x) * bytes > BANKED_BYTES;
  return gaps ? BANKED_BYTES / bytes : 0;
}

static int64_t room_of_row(const rows *x, const kl_folding *f) {
  return x->d.in_block + kl_ceil_div(x->d.in_block, parts_of_lane(x)) * gap_of(x, f);
}

static const kl_aff *place_of_part(rows *x, const kl_folding *f, const kl_aff *part) {
  const kl_aff *run = kl_aff_floordivc(x->g.p, part, parts_of_lane(x));
  const kl_aff *at = kl_aff_addmul(x->g.p, part, run, gap_of(x, f));
  return kl_aff_addmul(x->g.p, at, x->row_at_once, room_of_row(x, f));
}

static void put_parts(rows *x, kl_folding *f, const uint32_t *values, const uint32_t *slots) {
  bool never;
  uint32_t keep;
  first_lane(x, KL_NONE, &keep);
  keep = kl_guard_and(&x->g.w.guards, keep, x->s, 0, x->d.in_block - 1, &never);
  kl_fold_put(f, slots, place_of_part(x, f, x->s), keep, values);
}

// Each lane takes neighbouring parts, as many as a register variable counts; on a GPU as many lanes have all of them.
static kiln_status fold_parts(rows *x, kl_folding *f, uint32_t *values, const uint32_t *slots) {
  kl_affs *p = x->g.p;
  int64_t lanes = kl_least(x->d.lanes, kl_power_of_two(x->d.in_block));
  if (x->g.c->plan->target.machine == KL_HOST) lanes = x->d.lanes;
  const kl_aff *lane = x->lane == KL_NONE ? kl_aff_const(p, 0) : kl_aff_modc(p, kl_aff_dim(p, x->lane), lanes);
  const kl_aff *part = lane;
  if (x->part != KL_NONE) part = kl_aff_addmul(p, kl_aff_dim(p, x->part), lane, parts_of_lane(x));
  bool never;
  uint32_t there = kl_guard_and(&x->g.w.guards, KL_NONE, part, 0, x->d.in_block - 1, &never);
  kl_fold_get(f, slots, place_of_part(x, f, part), there, values);
  KL_TRY(kl_fold_pairs(f, x->part, values));
  return kl_fold_lanes(f, x->lane, lanes, true, KL_NONE, values);
}

// Of a thread's part of a row the pairs of j.
static kiln_status fold_leaves(rows *x, const kl_folding *of, uint32_t *values) {
  kl_folding f = kl_folding_leaves(of);
  bool all = x->d.in_block == 1; // else the first puts it where all find it
  if (x->d.unit > 1) return kl_fold_ring(&f, &(kl_ring){x->v, x->lane, x->h, x->shift, x->d.unit, all}, values);
  KL_TRY(kl_fold_pairs(&f, x->v, values));
  return kl_fold_lanes(&f, x->lane, x->d.lanes, all, x->h, values);
}

// What the block's first thread of a row has made is for others to join.
static void put_partial(rows *x, uint32_t which, const uint32_t *values) {
  kl_folding f = kl_folding_of(&x->g, which);
  bool never;
  uint32_t keep = kl_guard_and(&x->g.w.guards, x->row_guard, x->in_row, 0, 0, &never);
  const kl_aff *split = x->split == KL_NONE ? kl_aff_const(x->g.p, 0) : kl_aff_dim(x->g.p, x->split);
  kl_fold_scratch(&f, x->d.split * x->g.x->rows, x->d.split * kl_rows_counted(&x->g), values, x->partial[which]);
  kl_fold_put(&f, x->partial[which], kl_aff_addmul(x->g.p, split, x->row, x->d.split), keep, values);
}

// Each warp joins all that blocks have made of a row. Who finds what others have stored reads nothing else there, not
// even in vain.
static kiln_status join_partial(rows *x, uint32_t which) {
  kl_affs *p = x->g.p;
  kl_folding f = kl_folding_of(&x->g, which);
  uint32_t values[KL_MAX_VALUES_FOLDED];
  const kl_aff *lane = x->lane == KL_NONE ? kl_aff_const(p, 0) : kl_aff_dim(p, x->lane);
  const kl_aff *part = kl_aff_modc(p, lane, x->d.join_lanes);
  if (x->joined != KL_NONE) part = kl_aff_addmul(p, kl_aff_dim(p, x->joined), part, x->d.joined);
  kl_fold_get(&f, x->partial[which], kl_aff_addmul(p, part, x->row, x->d.split), x->row_guard, values);
  KL_TRY(kl_fold_pairs(&f, x->joined, values));
  KL_TRY(kl_fold_lanes(&f, x->lane, x->d.join_lanes, true, KL_NONE, values));
  return kl_fold_give(&x->g, which, x->row, x->row_guard, values);
}

// All of a level.
static kiln_status join_level(rows *x, uint32_t level) {
  for (uint32_t i = 0; i < x->g.x->n; i++)
    if (x->g.x->level[i] == level) KL_TRY(join_partial(x, i));
  return KILN_OK;
}

// All reductions of a level, in one walk over the row.
static kiln_status fold_level(rows *x, uint32_t level) {
  const kl_reductions *all = x->g.x;
  uint32_t(*slots)[KL_MAX_VALUES_FOLDED] = kl_arena_alloc(x->g.c->arena, all->n * sizeof *slots);
  uint32_t(*values)[KL_MAX_VALUES_FOLDED] = kl_arena_alloc(x->g.c->arena, all->n * sizeof *values);
  if (x->step != KL_NONE) kl_write_loop(&x->g.w, x->step, 0, NULL, NULL, NULL);
  kl_elements elements = {x->row, x->r, x->guard, x->there, x->step_k, x->k, x->d.unit > 1 ? &x->in_order : NULL};
  KL_TRY(kl_fold_elements(&x->g, &elements, level, values));
  for (uint32_t i = 0; i < all->n; i++) {
    if (all->level[i] != level) continue;
    kl_folding f = kl_folding_of(&x->g, i);
    KL_TRY(fold_leaves(x, &f, values[i]));
    if (x->d.in_block == 1) continue;
    kl_fold_room(&f, room_of_row(x, &f) * x->d.rows_in_block * x->d.rows_in_warp, values[i], slots[i]);
    put_parts(x, &f, values[i], slots[i]);
  }
  if (x->step != KL_NONE) kl_write_loop_end(&x->g.w, NULL);
  for (uint32_t i = 0; i < all->n; i++) {
    if (all->level[i] != level) continue;
    kl_folding f = kl_folding_of(&x->g, i);
    if (x->d.in_block > 1) KL_TRY(fold_parts(x, &f, values[i], slots[i]));
    if (x->d.split > 1)
      put_partial(x, i, values[i]);
    else
      KL_TRY(kl_fold_give(&x->g, i, x->row, x->row_guard, values[i]));
  }
  if (!all->cluster) return KILN_OK;
  kl_write_meet(&x->g.w);
  return join_level(x, level);
}

// --- results --------------------------------------------------------------------------------------------------------

// Lanes whose elements are not all of one row store those one by one that are.
static kiln_status store_shifted(rows *x) {
  bool never;
  kl_guards *g = &x->g.w.guards;
  int64_t length = x->g.x->length, last = x->d.v - 1;
  const kl_aff *first = kl_aff_sub(x->g.p, x->r, variable(x, x->v));
  uint32_t keep[3] = {kl_guard_and(g, x->row_guard, first, 0, length - x->d.v, &never),
                      kl_guard_and(g, x->guard, first, -last, -1, &never),
                      kl_guard_and(g, x->guard, first, length - last, length - 1, &never)};
  for (uint32_t i = 0; i < x->g.x->noutputs; i++) {
    const kl_output *o = &x->g.x->outputs[i];
    const kl_aff *at;
    uint32_t step;
    if (o->of_row) continue;
    KL_TRY(kl_want_output(&x->g, o, x->row, x->r, x->guard, &at, &step));
    for (uint32_t k = 0; k < KL_COUNT(keep); k++)
      kl_write_store(&x->g.w, o->slot, kl_slot_of(&x->g, o->slot), at, step, keep[k]);
  }
  return KILN_OK;
}

static kiln_status store_elements(rows *x) {
  if (!kl_has_element_results(&x->g)) return KILN_OK;
  if (x->step != KL_NONE) kl_write_loop(&x->g.w, x->step, 0, NULL, NULL, NULL);
  if (x->step_k != KL_NONE) kl_write_loop(&x->g.w, x->step_k, 0, NULL, NULL, NULL);
  KL_TRY(x->d.unit > 1 ? store_shifted(x) : kl_store_elements(&x->g, x->row, x->r, x->guard));
  if (x->step_k != KL_NONE) kl_write_loop_end(&x->g.w, NULL);
  if (x->step != KL_NONE) kl_write_loop_end(&x->g.w, NULL);
  return KILN_OK;
}

static kiln_status put_rows(rows *x, const uint32_t *meeting) {
  bool never;
  uint32_t owner = kl_guard_and(&x->g.w.guards, x->row_guard, x->in_row, 0, 0, &never);
  if (x->g.x->cluster) owner = kl_guard_and(&x->g.w.guards, owner, kl_aff_dim(x->g.p, x->split), 0, 0, &never);
  for (uint32_t i = 0; i < x->g.x->noutputs; i++) {
    const kl_output *o = &x->g.x->outputs[i];
    const kl_aff *at;
    uint32_t step, slot = meets(x) ? meeting[i] : o->slot;
    if (!o->of_row) continue;
    KL_TRY(kl_want_output(&x->g, o, x->row, x->r, x->row_guard, &at, &step));
    if (meets(x)) step = kl_converted(&x->g, step, kl_slot_of(&x->g, slot)->shape->dtype);
    kl_write_store(&x->g.w, slot, kl_slot_of(&x->g, slot), meets(x) ? x->row_in_block : at, step, owner);
  }
  return KILN_OK;
}

static void store_rows(rows *x, const uint32_t *meeting) {
  bool never;
  uint32_t keep = kl_guard_and(&x->g.w.guards, KL_NONE, x->out_in_block, 0, rows_of_block(&x->d) - 1, &never);
  keep = kl_guard_and(&x->g.w.guards, keep, x->out, 0, x->g.x->rows - 1, &never);
  for (uint32_t i = 0; meets(x) && i < x->g.x->noutputs; i++) {
    const kl_output *o = &x->g.x->outputs[i];
    if (!o->of_row) continue;
    const kl_shape *s = kl_slot_of(&x->g, o->slot)->shape;
    const kl_aff *index[KILN_MAX_RANK];
    kl_output_index(&x->g, o, x->out, x->r, index);
    uint32_t step = kl_write_load(&x->g.w, meeting[i], kl_slot_of(&x->g, meeting[i]), x->out_in_block, keep, NULL);
    step = kl_converted(&x->g, step, s->dtype);
    // The only element's place does not say that what shares a byte with it is written, too.
    const kl_aff *at = s->count == 1 ? x->out : kl_position_of(x->g.p, s, index);
    kl_write_store(&x->g.w, o->slot, kl_slot_of(&x->g, o->slot), at, step, keep);
  }
}

// --- the plan -------------------------------------------------------------------------------------------------------

static kiln_status add_beside(rows *x, uint32_t level) {
  const kl_aff *index[KILN_MAX_RANK];
  kl_reduced_index(x->g.p, x->g.x, x->row, x->r, index);
  return kl_sums_add(&x->g, &x->sums, level, index, x->guard);
}

static kiln_status fold_all(rows *x) {
  for (uint32_t level = 1; level <= x->g.x->levels; level++) {
    KL_TRY(x->g.x->length ? fold_level(x, level) : kl_give_nothing(&x->g, level, x->row, x->row_guard));
    if (x->g.x->beside) KL_TRY(add_beside(x, level));
  }
  return KILN_OK;
}

// Results, of which rows' own meet if there are several.
static kiln_status store_all(rows *x) {
  uint32_t *meeting = KL_NEW_N(x->g.c->arena, uint32_t, x->g.x->noutputs + 1);
  for (uint32_t i = 0; meets(x) && i < x->g.x->noutputs; i++) {
    const kl_output *o = &x->g.x->outputs[i];
    kl_dtype t = kl_in_bytes(kl_slot_of(&x->g, o->slot)->shape->dtype);
    if (o->of_row) meeting[i] = kl_add_shared(x->g.c->cx, x->g.c->plan, &x->g.c->slots, t, rows_of_block(&x->d));
  }
  KL_TRY(store_elements(x));
  KL_TRY(put_rows(x, meeting));
  if (x->row_round != KL_NONE) kl_write_loop_end(&x->g.w, NULL);
  store_rows(x, meeting);
  return x->g.x->beside ? kl_sums_end(&x->g, &x->sums) : KILN_OK;
}

// Neighbouring threads copy neighbouring runs.
static void copy_alike(rows *x) {
  kl_choosing *c = x->g.c;
  const deal *d = &x->d;
  uint32_t *copies = KL_NEW_N(c->arena, uint32_t, c->slots.nargs + 1);
  const kl_aff *run = kl_aff_addmul(x->g.p, x->thread, variable(x, x->copy), WARP * d->warps * d->rows_in_block);
  const kl_aff *at = kl_aff_addmul(x->g.p, variable(x, x->v), run, d->v);
  for (uint32_t i = 0; i < c->slots.nargs; i++) {
    copies[i] = KL_NONE;
    if (!x->alike.of[i]) continue;
    bool never;
    const kl_shape *s = c->slots.v.p[i].shape;
    uint32_t there = kl_guard_and(&x->g.w.guards, KL_NONE, at, 0, s->count - 1, &never);
    copies[i] = kl_add_shared(c->cx, c->plan, &c->slots, s->dtype, s->count);
    uint32_t step = kl_write_load(&x->g.w, i, kl_slot_of(&x->g, i), at, there, NULL);
    kl_write_store(&x->g.w, copies[i], kl_slot_of(&x->g, copies[i]), at, step, there);
  }
  x->g.walk.copies = copies;
}

static uint32_t element_guard(rows *x, uint32_t outer) {
  bool never;
  uint32_t guard = kl_guard_and(&x->g.w.guards, outer, x->r, 0, x->g.x->length - 1, &never);
  if (x->d.unit == 1 || x->d.parts == 1) return guard;
  return kl_guard_and(&x->g.w.guards, guard, x->in_group, 0, x->d.k * x->g.x->w - 1, &never);
}

// What stands in LAST is done by one of the blocks.
static kiln_status write_body(rows *x) {
  bool never, apart = x->d.split > 1 && !x->g.x->cluster, last = apart && !x->joins && !x->g.x->two_launches;
  x->row_guard = kl_guard_and(&x->g.w.guards, KL_NONE, x->row, 0, x->g.x->rows - 1, &never);
  x->guard = element_guard(x, x->row_guard);
  x->there = element_guard(x, KL_NONE);
  if (x->d.unit > 1) {
    const kl_aff *k = x->k == KL_NONE ? kl_aff_const(x->g.p, 0) : kl_aff_dim(x->g.p, x->k);
    const kl_aff *at = kl_aff_sub(x->g.p, x->in_group, kl_aff_mulc(x->g.p, k, x->g.x->w));
    x->in_order.early = kl_guard_and(&x->g.w.guards, KL_NONE, at, -x->d.unit, -1, &never);
  }
  x->g.w.guards.covers = x->d.unit > 1;
  if (x->copies) copy_alike(x);
  if (x->g.x->beside) kl_sums_begin(&x->g, &x->sums);
  if (x->row_round != KL_NONE) kl_write_loop(&x->g.w, x->row_round, 0, NULL, NULL, NULL);
  if (!x->joins) KL_TRY(fold_all(x));
  if (apart && !x->joins && !last) return KILN_OK;
  if (last) kl_begin_last(&x->g, x->split, x->row, x->g.x->rows);
  for (uint32_t level = 1; level <= x->g.x->levels && apart; level++) KL_TRY(join_level(x, level));
  KL_TRY(store_all(x));
  if (last) kl_write_last_end(&x->g.w);
  return KILN_OK;
}

static kiln_status make_launch(rows *x, const char **why_not) {
  kl_body b = {0};
  make_vars(x);
  kl_reducing_begin(&x->g, &b);
  kl_last_launch(x->g.c->plan)->cluster = x->g.x->cluster ? (uint32_t)x->d.split : 0;
  return kl_reducing_end(&x->g, &b, write_body(x), WARP * x->d.warps * x->d.rows_in_block, why_not);
}

// Blocks have the results of several rows, then.
static bool has_parts_of_bytes(const rows *x) {
  const kl_slots *s = &x->g.c->slots;
  for (uint32_t i = 0; i < s->nargs; i++)
    if (s->v.p[i].kind == KL_SLOT_OUT && kl_info(s->v.p[i].shape->dtype)->bits < 8) return true;
  return false;
}

// Does each of n blocks hold its part of a row in registers?
static bool holds_part(const rows *x, int64_t n) {
  return kl_ceil_div(x->d.parts, n) <= MOST_WARPS && x->d.rounds_k == 1;
}

// Neighbouring blocks are a cluster where that takes least: they have all of a row's reductions, and its results, in
// one launch, and read the row once if they hold it, else again for each.
static void split_in_cluster(rows *x, kl_reductions *stage, int64_t blocks, int64_t cost) {
  const kl_strategy *s = &x->g.c->params->strategy;
  int64_t most = kl_least(kl_power_of_two(x->d.parts), kl_most_in_cluster(&x->g.c->plan->target));
  if (most < 2 || rows_of_block(&x->d) > 1 || has_parts_of_bytes(x) || (s->split && !s->cluster) || s->alone) return;
  if (s->cluster) {
    stage->split = kl_least(s->split > 1 ? kl_power_of_two(s->split) : 2, most);
    stage->cluster = kl_ceil_div(x->d.parts, stage->split) <= MOST_PARTS;
    return;
  }
  for (int64_t n = 2; n <= most; n *= 2) {
    int64_t t = kl_cluster_cost(&x->g, blocks, n, holds_part(x, n));
    if (kl_ceil_div(x->d.parts, n) > MOST_PARTS || t >= cost) continue;
    stage->split = n;
    stage->cluster = true;
    cost = t;
  }
}

void kl_split_rows(kl_choosing *c, kl_reductions *stage) {
  rows x = {.g = {.c = c, .p = c->plan->affs, .x = stage}};
  deal_rows(&x);
  if (x.d.parts == 1) return;
  int64_t blocks = kl_ceil_div(stage->rows, rows_of_block(&x.d)), least = kl_ceil_div(x.d.parts, MOST_PARTS);
  int64_t most = kl_power_of_two(x.d.parts);
  if (!c->params->strategy.split && most >= 2 * BLOCK_WARPS) most /= BLOCK_WARPS;
  int64_t cost;
  stage->split = kl_best_split(&x.g, blocks, kl_power_of_two(least), kl_least(most, MOST_JOINED * x.d.lanes),
                               x.d.rounds > 1, &cost);
  split_in_cluster(&x, stage, blocks, cost);
}

kiln_status kl_choose_rows(kl_choosing *c, const kl_reductions *all, const char **why_not) {
  rows x = {.g = {.c = c, .p = c->plan->affs, .x = all}};
  deal_rows(&x);
  if (x.d.in_block > MOST_PARTS) {
    *why_not = "its rows are too long for one block";
    return KILN_OK;
  }
  if (all->beside) KL_TRY(kl_find_alike(&x.g, &x.alike));
  if (all->beside && !deal_beside(&x)) {
    *why_not = "columns beside its rows have no room";
    return KILN_OK;
  }
  if (!all->beside) KL_TRY(deal_rounds(&x));
  x.partial = kl_arena_alloc(c->arena, all->n * sizeof *x.partial);
  KL_TRY(make_launch(&x, why_not));
  if (!*why_not && all->beside) return kl_join_sums(c, &x.sums, why_not);
  if (*why_not || x.d.split == 1 || all->cluster || !all->two_launches) return KILN_OK;
  rows second = {.g = {.c = c, .p = c->plan->affs, .x = all}, .joins = true, .partial = x.partial};
  deal_rows(&second);
  kl_plan_add_launch(c->plan, c->plan->target.block);
  return make_launch(&second, why_not);
}
