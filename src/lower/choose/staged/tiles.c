// Scans by blocks of threads: each thread has a block of level 0 in registers, 16 neighbouring lanes one of level 1,
// and as many warps as a line has elements for one of level 2, a tile. What their parts make lies in shared memory,
// where all read what comes before their own. Lines that are longer than a tile go tile by tile. Of lines that lie
// beside each other 16 lanes have one each, so that they read and write whole sectors; a tile is then a block of
// level 1.

#include "lower/choose/staged/scan.h"

enum { WARPS = 8, HALF = 16, PADDED = HALF + 1, SHORT = 64, MANY_LINES = 1 << 14, FEW_LINES = 256, MANY_TILES = 4 };
enum { LEVEL = 2, TILE = KL_SCAN_BASE * KL_SCAN_BASE * KL_SCAN_BASE }; // of tiles that have all warps
enum { CHUNK = 16, MOST_BITS = 256 };                                  // bytes; of an element of all arrays
enum { BESIDE = 16, ENOUGH_BLOCKS = 64 };                              // lines of a block that lie beside each other

typedef struct tiles {
  kl_scan_body l;
  kl_scan_nest nest;
  int64_t highs, rows;                // blocks of level 1 of a tile; lines of a block
  uint32_t level;                     // of a tile
  const kl_aff *row, *high, *low, *v; // the line in the block; digits of level 2, 1 and 0
  uint32_t each;                      // the variable of v
  uint32_t next;                      // that of a lane of two
  bool turns;                         // the two take turns in memory
  kl_exchange turn;
  kl_stage_box lows, parts; // over the digits of levels 1 and 2
  uint32_t *slot[2];        // what blocks of levels 0 and 1 make, by value
  int64_t ntiles;
  const kl_aff *tile; // of a block that has one, and is told by others what comes before; NULL: it has a line
  uint32_t along;     // the variable of `tile`
} tiles;

// A thread holds 16 elements, and what they make.
bool kl_scan_is_for_blocks(const kl_scan *x) {
  int64_t lines = x->outer * x->inner, bits = 0;
  for (uint32_t k = 0; k < x->by.n; k++) bits += kl_info(kl_in_bytes(x->by.type[k]))->bits;
  return bits <= MOST_BITS && x->s->c->plan->target.machine == KL_NVPTX && x->length >= SHORT &&
         (x->inner == 1 || lines < MANY_LINES);
}

// Lanes read at a distance of 16, so that there is a gap behind as many.
static const kl_aff *place_of(const tiles *x, const kl_aff *high, const kl_aff *low) {
  kl_affs *p = x->l.b.s->p;
  const kl_aff *at = kl_aff_addmul(p, high, x->row, x->highs);
  return low ? kl_aff_addmul(p, low, at, PADDED) : at;
}

static uint32_t count(const tiles *x) {
  return x->l.x->by.n;
}

static kiln_status put(tiles *x, const uint32_t *slot, const kl_aff *at, const uint32_t *values, uint32_t keep) {
  for (uint32_t k = 0; k < count(x); k++) KL_TRY(kl_stage_store(&x->l.b, slot[k], &at, values[k], keep));
  return KILN_OK;
}

static void get(tiles *x, const uint32_t *slot, const kl_aff *at, uint32_t *values) {
  for (uint32_t k = 0; k < count(x); k++) values[k] = kl_stage_load(&x->l.b, slot[k], &at, KL_NONE, x->l.x->by.type[k]);
}

// Of the parts of a block that `slot` has, at `digit`: what those before `own` make, and what all of them do.
static kiln_status join_parts(tiles *x, kl_stage_box *digit, const uint32_t *slot, const kl_aff *at, const kl_aff *own,
                              uint32_t *before, uint32_t *all) {
  kl_stage_body *b = &x->l.b;
  uint32_t n = count(x), *part = kl_scan_values(&x->l), *values = KL_NEW_N(b->s->c->arena, uint32_t, 2 * n + 1);
  kl_scan_nothing(&x->l, values);
  kl_scan_nothing(&x->l, values + n);
  kl_stage_box_begin(b, digit, 2 * n, values);
  get(x, slot, at, part);
  uint32_t is_own = kl_scan_is(&x->l, kl_aff_sub(b->s->p, digit->at[0], own), 0);
  for (uint32_t k = 0; k < n; k++) values[n + k] = kl_write_choose(&b->w, is_own, values[k], values[n + k]);
  KL_TRY(kl_scan_behind(&x->l, kl_scan_is(&x->l, digit->at[0], 0), values, part, values));
  kl_stage_box_end(b, digit, values);
  memcpy(all, values, n * sizeof *all);
  memcpy(before, values + n, n * sizeof *before);
  return KILN_OK;
}

// What the elements of a thread make, one by one, in a value that has them all.
static uint32_t together(tiles *x, uint32_t *const *made, uint32_t k) {
  kl_arena *arena = x->l.b.s->c->arena;
  uint32_t *guards = KL_NEW_N(arena, uint32_t, KL_SCAN_BASE), *values = KL_NEW_N(arena, uint32_t, KL_SCAN_BASE);
  for (int64_t i = 0; i + 1 < KL_SCAN_BASE; i++) guards[i] = kl_scan_is(&x->l, x->v, i);
  for (uint32_t i = 0; i < KL_SCAN_BASE; i++) values[i] = made[i][k];
  kl_step s = {.kind = KL_STEP_CHOOSE, .dtype = x->l.x->by.type[k], .noperands = KL_SCAN_BASE, .guards = guards};
  s.operands = values;
  return kl_write_step(&x->l.b.w, &s);
}

// A thread's elements lie together, as many bytes as make several sectors, of which each access of 16 bytes would have
// half. So of two chunks of 16 bytes two lanes load and store one of the one's and one of the other's, side by side.
static void set_turns(tiles *x) {
  const kl_shape *whole = x->l.b.s->instr->shape;
  unsigned bits = kl_info(kl_shape_leaf(whole, 0)->dtype)->bits, bytes = bits / 8;
  x->turns = x->l.x->inner == 1 && bytes > 1 && bytes <= CHUNK;
  for (uint32_t k = 1; k < count(x); k++) x->turns &= kl_info(kl_shape_leaf(whole, k)->dtype)->bits == bits;
  x->turn = (kl_exchange){.var = x->each, .distance = bytes ? CHUNK / bytes : 0, .lane = x->next};
}

// The element and its guard, as memory has them.
static const kl_aff *in_memory(tiles *x, const kl_aff *i, uint32_t *there) {
  kl_guards *g = &x->l.b.w.guards;
  uint32_t guard;
  if (!x->turns) return i;
  x->turns = kl_guard_exchanged(g, &x->turn, *there, &guard);
  if (!x->turns) return i;
  *there = guard;
  return kl_dom_simplify(x->l.b.w.body->domain, kl_exchanged(g, &x->turn, i));
}

static uint32_t turned(tiles *x, uint32_t value) {
  bool differs = kl_has_var(x->l.b.w.steps.p[value].vars, x->each);
  return x->turns && differs ? kl_write_exchange(&x->l.b.w, &x->turn, value) : value;
}

// What the thread's elements are. Where of both lanes' alike one lane has all of the one and the other all of the
// other, there is nothing in a thread to exchange.
static kiln_status fetch(tiles *x, const kl_aff **i, uint32_t *there, uint32_t *values) {
  const kl_aff *at = *i;
  uint32_t guard = *there;
  bool alone = false;
  *i = in_memory(x, at, there);
  KL_TRY(kl_scan_fetch(&x->l, *i, *there, values));
  for (uint32_t k = 0; k < count(x) && x->turns; k++) {
    kl_vars vars = x->l.b.w.steps.p[values[k]].vars;
    alone |= kl_has_var(vars, x->next) && !kl_has_var(vars, x->each);
  }
  if (x->turns && alone) {
    x->turns = false;
    *i = at;
    *there = guard;
    return kl_scan_fetch(&x->l, at, guard, values);
  }
  for (uint32_t k = 0; k < count(x); k++) values[k] = turned(x, values[k]);
  return KILN_OK;
}

// What comes before the block's tile: `base`, which comes before the line, and what tiles before make.
static kiln_status wait_for_others(tiles *x, const uint32_t *own, uint32_t *base) {
  kl_writer *w = &x->l.b.w;
  uint32_t *lower = kl_scan_values(&x->l), *higher = kl_scan_values(&x->l), *next = kl_scan_values(&x->l);
  kl_write_before(w, x->along, count(x), base, own, lower, higher);
  KL_TRY(kl_scan_join(&x->l, lower, higher, next));
  kl_write_before_end(w, count(x), next);
  memcpy(base, lower, count(x) * sizeof *base);
  return KILN_OK;
}

static kiln_status write_tile(void *arg, const kl_aff *number, const uint32_t *ahead, uint32_t *chain) {
  tiles *x = arg;
  kl_stage_body *b = &x->l.b;
  kl_affs *p = b->s->p;
  uint32_t n = count(x), *made[KL_SCAN_BASE], *before[2], first = kl_scan_is(&x->l, x->low, 0);
  uint32_t *values = kl_scan_values(&x->l), *all = kl_scan_values(&x->l), *base = kl_scan_values(&x->l);
  const kl_aff *block = kl_aff_addmul(p, x->low, kl_aff_addmul(p, x->high, number, x->highs), HALF);
  const kl_aff *i = kl_dom_simplify(b->w.body->domain, kl_aff_addmul(p, x->v, block, KL_SCAN_BASE));
  bool never;
  uint32_t there = kl_guard_and(&b->w.guards, b->keep, i, 0, x->l.x->length - 1, &never);
  before[0] = kl_scan_values(&x->l), before[1] = kl_scan_values(&x->l);
  memcpy(base, ahead, n * sizeof *base);
  KL_TRY(fetch(x, &i, &there, values));
  for (uint32_t k = 0; k < KL_SCAN_BASE; k++) {
    made[k] = kl_scan_values(&x->l);
    for (uint32_t v = 0; v < n; v++) made[k][v] = kl_write_take(&b->w, values[v], x->each, k);
    if (k) KL_TRY(kl_scan_join(&x->l, made[k - 1], made[k], made[k]));
  }
  KL_TRY(put(x, x->slot[0], place_of(x, x->high, x->low), made[KL_SCAN_BASE - 1], KL_NONE));
  KL_TRY(join_parts(x, &x->lows, x->slot[0], place_of(x, x->high, x->lows.at[0]), x->low, before[0], all));
  KL_TRY(put(x, x->slot[1], place_of(x, x->high, NULL), all, first));
  KL_TRY(join_parts(x, &x->parts, x->slot[1], place_of(x, x->parts.at[0], NULL), x->high, before[1], chain));
  if (x->tile) KL_TRY(wait_for_others(x, chain, base));
  KL_TRY(kl_scan_before(&x->l, kl_scan_is(&x->l, x->high, 0), base, before[1], base));
  KL_TRY(kl_scan_before(&x->l, first, base, before[0], base));
  for (uint32_t k = 0; k < KL_SCAN_BASE; k++) KL_TRY(kl_scan_join(&x->l, base, made[k], made[k]));
  for (uint32_t v = 0; v < n; v++) values[v] = turned(x, together(x, made, v));
  return kl_scan_store(&x->l, i, there, values);
}

static kiln_status write_lines(void *arg) {
  tiles *x = arg;
  const kl_stage *s = x->l.b.s;
  uint32_t *base = kl_scan_values(&x->l);
  for (int level = 0; level < 2; level++) {
    int64_t places = x->rows * x->highs * (level ? 1 : PADDED);
    x->slot[level] = kl_scan_values(&x->l);
    for (uint32_t k = 0; k < count(x); k++)
      x->slot[level][k] = kl_add_shared(s->c->cx, s->c->plan, &s->c->slots, kl_in_bytes(x->l.x->by.type[k]), places);
  }
  kl_scan_guard_lines(&x->l);
  KL_TRY(kl_scan_init(&x->l, base));
  if (x->tile) return write_tile(x, x->tile, base, kl_scan_values(&x->l));
  return kl_scan_nest_write(&x->nest, base);
}

// Do lines lie beside each other, so many that blocks of some of them are enough?
static bool are_beside(const kl_scan *of) {
  return of->inner >= BESIDE && of->outer * ((of->inner - 1) / BESIDE + 1) >= ENOUGH_BLOCKS;
}

// Of the numbers of lines the greater one is counted by threads too, and in any case that of lines beside each other.
static const kl_aff *make_lines(tiles *x, const kl_scan *of, bool spread, bool beside) {
  kl_affs *p = of->s->p;
  uint32_t var;
  x->l = (kl_scan_body){.x = of, .b = {.s = of->s, .keep = KL_NONE}, .numbers = beside ? of->inner : of->outer};
  kl_var_list *vars = &x->l.b.vars;
  const kl_aff *block = kl_new_var(p, vars, KL_BIND_BLOCK, (x->l.numbers - 1) / x->rows + 1, "line", &var);
  if (spread) x->tile = kl_new_var(p, vars, KL_BIND_BLOCK, x->ntiles, "tile", &x->along);
  const kl_aff *other =
      kl_new_var(p, vars, KL_BIND_BLOCK, beside ? of->outer : of->inner, beside ? "outer" : "inner", &var);
  x->l.outer = x->l.inner = other;
  return block;
}

static void number_lines(tiles *x, const kl_aff *block, bool beside) {
  x->l.number = kl_aff_addmul(x->l.x->s->p, x->row, block, x->rows);
  *(beside ? &x->l.inner : &x->l.outer) = x->l.number;
}

// A line has as many warps as make a tile of it, as far as a block has them, and a block as many lines as it has warps.
static void make_lines_of_warps(tiles *x, const kl_scan *of, bool spread) {
  kl_affs *p = of->s->p;
  bool beside = of->inner >= of->outer;
  uint32_t var;
  int64_t of_warp = 2 * HALF * KL_SCAN_BASE, warps = 1;
  while (warps < WARPS && warps * of_warp < of->length) warps *= 2;
  x->highs = 2 * warps;
  x->rows = WARPS / warps;
  x->level = LEVEL;
  const kl_aff *block = make_lines(x, of, spread, beside);
  kl_var_list *vars = &x->l.b.vars;
  x->row = kl_new_var(p, vars, KL_BIND_WARP, x->rows, "row", &var);
  const kl_aff *warp = kl_new_var(p, vars, KL_BIND_WARP, warps, "warp", &var);
  x->high = kl_aff_addmul(p, kl_new_var(p, vars, KL_BIND_LANE, 2, "half", &var), warp, 2);
  const kl_aff *lane = kl_new_var(p, vars, KL_BIND_LANE, HALF / 2, "lane", &var);
  x->low = kl_aff_addmul(p, kl_new_var(p, vars, KL_BIND_LANE, 2, "next", &x->next), lane, 2);
  number_lines(x, block, beside);
}

static void make_lines_of_lanes(tiles *x, const kl_scan *of) {
  kl_affs *p = of->s->p;
  uint32_t var;
  x->highs = 1;
  x->rows = BESIDE;
  x->level = LEVEL - 1;
  x->high = kl_aff_const(p, 0);
  x->next = KL_NONE;
  const kl_aff *block = make_lines(x, of, false, true);
  kl_var_list *vars = &x->l.b.vars;
  const kl_aff *warp = kl_new_var(p, vars, KL_BIND_WARP, WARPS, "warp", &var);
  x->low = kl_aff_addmul(p, kl_new_var(p, vars, KL_BIND_LANE, HALF / WARPS, "half", &var), warp, HALF / WARPS);
  x->row = kl_new_var(p, vars, KL_BIND_LANE, BESIDE, "row", &var);
  number_lines(x, block, true);
}

static void make_vars(tiles *x, const kl_scan *of, bool spread) {
  if (are_beside(of))
    make_lines_of_lanes(x, of);
  else
    make_lines_of_warps(x, of, spread);
  x->v = kl_new_var(of->s->p, &x->l.b.vars, KL_BIND_REG, KL_SCAN_BASE, "v", &x->each);
  set_turns(x);
  int64_t sizes[2] = {HALF, x->highs};
  kl_stage_box_vars(&x->l.b, &x->lows, 1, &sizes[0]);
  kl_stage_box_vars(&x->l.b, &x->parts, 1, &sizes[1]);
}

static kiln_status write_blocks(tiles *x, const kl_scan *of, bool spread) {
  make_vars(x, of, spread);
  x->nest = (kl_scan_nest){.block = write_tile, .arg = x};
  if (!x->tile) kl_scan_nest_vars(&x->nest, &x->l, x->level);
  return kl_stage_write(&x->l.b, of->outer * of->inner * of->length, write_lines, x);
}

// --- what comes before tiles ----------------------------------------------------------------------------------------

// Tiles are blocks of level 2, and nodes before them those of the levels above.
_Static_assert((int)KL_BEFORE_BASE == (int)KL_SCAN_BASE, "blocks join what comes before as scans do");

static int64_t parts_of(const kl_combiner *by) {
  int64_t parts = 0;
  for (uint32_t k = 0; k < by->n; k++) parts += 1 + kl_is_complex(by->type[k]);
  return parts;
}

static bool has_wide_parts(const kl_combiner *by) {
  bool wide = false;
  for (uint32_t k = 0; k < by->n; k++) wide |= kl_info(by->type[k])->bits > (kl_is_complex(by->type[k]) ? 64 : 32);
  return wide;
}

// Are they few enough for 32 bits to number what they leave?
static bool values_fit(const tiles *x, const kl_scan *of) {
  return x->ntiles <= UINT32_MAX / (of->outer * of->inner * kl_levels_before(x->ntiles) * parts_of(&of->by));
}

static void add_tickets(const tiles *x, const kl_scan *of) {
  kl_choosing *c = of->s->c;
  kl_tickets t;
  int64_t blocks = of->outer * of->inner * x->ntiles, parts = parts_of(&of->by);
  kl_dtype word = has_wide_parts(&of->by) ? KILN_U64 : KILN_U32;
  t.counters = kl_add_counters(c->cx, c->plan, &c->slots, blocks + 2);
  t.values = kl_add_scratch(c->cx, c->plan, &c->slots, word, parts * blocks * kl_levels_before(x->ntiles));
  t.told = kl_add_shared(c->cx, c->plan, &c->slots, KILN_U64, 1 + parts);
  kl_last_launch(c->plan)->tickets = kl_arena_dup(c->plan->arena, &t, sizeof t);
}

kiln_status kl_scan_by_blocks(const kl_scan *of) {
  tiles x = {.ntiles = (of->length - 1) / TILE + 1};
  bool few = of->outer * of->inner < FEW_LINES && !are_beside(of) && !of->s->c->params->strategy.alone;
  bool spread = x.ntiles >= MANY_TILES && few && values_fit(&x, of);
  KL_TRY(write_blocks(&x, of, spread));
  if (spread) add_tickets(&x, of);
  return KILN_OK;
}
