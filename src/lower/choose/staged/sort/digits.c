// Sorts by digits of a key, from the lowest on.
//
// A block has a tile of a line in shared memory, and sorts it by two bits of its key at a time: each thread counts what
// its neighbouring elements have of the four digits, in four parts of a word; a scan over the block says how many
// elements of each digit lie before the thread's; and each element goes to its place. That is stable, so that two bits
// more, and again two, sort by all of them. Elements that are not there have the greatest digit and lie behind all
// others, where they stay.
//
// Lines of one tile are sorted by all bits of the key in one launch. Of longer ones each eight bits are a pass of three
// launches: how many elements of each digit tiles have; how many of the line's lie in tiles before; and the tiles,
// sorted by the digit, whose elements follow those of smaller digits, and of the same digit in tiles before. So a pass
// reads all arrays once, and the key once more, and stores all of them once.

#include "ir/dtype.h"
#include "lower/choose/staged/sort/sort.h"

enum { LANES = 32, WARPS = 8, MOST_WARPS = 16, BESIDE = 8 };
enum { STEP_BITS = 2, PASS_BITS = 8, DIGITS = 1 << PASS_BITS, PART = 16 }; // of a word of u64
enum { MOST_EACH = 16, FEW_EACH = 8, SHORT = 64, VECTOR = 16 };            // elements of a thread; bytes

typedef struct radix {
  const kl_sort *x;
  kl_sort_key key;
  unsigned bits;
  int64_t warps, each, size, tiles; // of a block; of a thread; of a tile; of a line
  int64_t outer, inner;             // lines
  // Of a pass.
  unsigned shift, steps;            // its bits, from the lowest on; two at a time
  int64_t digits;                   // that they make
  const uint32_t *from, *to;        // slots; from NULL: what the op is given; to by array, KL_NONE: nobody wants it
  const kl_shape *shape;            // of `to`; NULL: lines lie behind each other
  bool moves;                       // elements go where they belong in the line, not in the tile
  uint32_t counts, befores, totals; // slots: by line, tile and digit; the same; by line and digit
} radix;

typedef struct body {
  kl_stage_body b;
  radix *r;
  const kl_aff *outer, *inner, *tile, *warp, *lane, *thread;
  const kl_aff *beside; // elements of a thread that lie together
  const kl_aff *apart;  // those that warps have side by side, in vectors
  const kl_aff *singly; // the same, one by one
  uint32_t each;        // the variable of `beside`
  const kl_aff *m;      // numbers of warps, in registers
  uint32_t met;         // its variable
  uint32_t step;
  const kl_aff *round;
} body;

// --- who has what ---------------------------------------------------------------------------------------------------

// Between elements of two threads there is a gap, so that lanes which read vectors of theirs find them in different
// banks.
static int64_t gap_of(const radix *r, uint32_t array) {
  int64_t size = kl_info(kl_in_bytes(r->x->type[array]))->bits / 8;
  return r->each * size >= 4 * VECTOR && size < VECTOR ? VECTOR / size : 0;
}

static int64_t shared_bytes(const radix *r) {
  int64_t bytes = 0, threads = r->warps * LANES;
  for (uint32_t i = 0; i < r->x->n; i++)
    bytes += (r->each + gap_of(r, i)) * threads * kl_info(kl_in_bytes(r->x->type[i]))->bits / 8 + VECTOR;
  return bytes + DIGITS * 8 + MOST_WARPS * 16 + 2 * VECTOR;
}

// As few warps as have a line in as many elements of a thread as make the work of a scan small beside theirs. The most
// that there may be are for a line that has room in no smaller block.
static bool set_tiles(radix *r, int64_t most) {
  int64_t length = r->x->length;
  for (r->warps = 1; r->warps < most && r->warps * LANES * FEW_EACH < length;) r->warps *= 2;
  for (r->each = 1; r->each < MOST_EACH && r->warps * LANES * r->each < length;) r->each *= 2;
  while (r->each && shared_bytes(r) > KL_MOST_SHARED) r->each /= 2;
  r->size = r->each * r->warps * LANES;
  return r->size >= length;
}

static radix radix_of(const kl_sort *x, const kl_sort_key *key) {
  radix r = {.x = x, .key = *key, .bits = kl_sort_key_bits(key)};
  kl_stage_count_lines(x->shape, x->dim, &r.outer, &r.inner);
  if (!set_tiles(&r, WARPS) && !set_tiles(&r, MOST_WARPS)) set_tiles(&r, WARPS);
  if (r.each) r.tiles = (x->length - 1) / r.size + 1;
  return r;
}

kl_sorting kl_sort_digits_way(const kl_sort *x, kl_sorting wanted) {
  kl_sort_key key;
  if (x->length < SHORT || !kl_sort_finds_key(x, &key)) return KL_MERGES;
  radix r = radix_of(x, &key);
  if (!r.each || (r.tiles > 1 && r.each < FEW_EACH / 2)) return KL_MERGES;
  return r.tiles == 1 ? KL_SORTS_BY_DIGITS : wanted;
}

static void begin(body *x, radix *r, int64_t tiles) {
  const kl_stage *s = r->x->s;
  kl_affs *p = s->p;
  uint32_t var;
  *x = (body){.r = r, .b = {.s = s, .keep = KL_NONE}, .met = KL_NONE, .step = KL_NONE};
  kl_var_list *vars = &x->b.vars;
  x->outer = kl_new_var(p, vars, KL_BIND_BLOCK, r->outer, "outer", &var);
  x->inner = kl_new_var(p, vars, KL_BIND_BLOCK, r->inner, "inner", &var);
  x->tile = kl_new_var(p, vars, KL_BIND_BLOCK, tiles, "tile", &var);
  x->warp = kl_new_var(p, vars, KL_BIND_WARP, r->warps, "warp", &var);
  x->lane = kl_new_var(p, vars, KL_BIND_LANE, LANES, "lane", &var);
  x->thread = kl_aff_addmul(p, x->lane, x->warp, LANES);
}

static void add_elements(body *x) {
  const radix *r = x->r;
  kl_affs *p = x->b.s->p;
  int64_t threads = r->warps * LANES, vector = r->each < 4 ? r->each : 4;
  uint32_t var;
  const kl_aff *v = kl_new_var(p, &x->b.vars, KL_BIND_REG, r->each, "v", &x->each);
  x->beside = kl_aff_addmul(p, v, x->thread, r->each);
  const kl_aff *c = kl_new_var(p, &x->b.vars, KL_BIND_REG, r->each / vector, "chunk", &var);
  const kl_aff *at = kl_aff_addmul(p, x->thread, c, threads);
  x->apart = kl_aff_addmul(p, kl_new_var(p, &x->b.vars, KL_BIND_REG, vector, "i", &var), at, vector);
  x->singly = kl_aff_addmul(p, x->thread, kl_new_var(p, &x->b.vars, KL_BIND_REG, r->each, "k", &var), threads);
}

static void add_meeting(body *x) {
  x->m = kl_new_var(x->b.s->p, &x->b.vars, KL_BIND_REG, x->r->warps, "m", &x->met);
}

static const kl_aff *simple(body *x, const kl_aff *e) {
  return kl_dom_simplify(x->b.w.body->domain, e);
}

static uint32_t within(body *x, uint32_t guard, const kl_aff *e, int64_t lo, int64_t hi) {
  bool never;
  return kl_guard_and(&x->b.w.guards, guard, simple(x, e), lo, hi, &never);
}

// The guard that an element of the tile is there.
static uint32_t is_there(body *x, const kl_aff *at) {
  return within(x, KL_NONE, kl_aff_addmul(x->b.s->p, at, x->tile, x->r->size), 0, x->r->x->length - 1);
}

static uint32_t number(body *x, kl_dtype t, uint64_t n) {
  return kl_write_scalar(&x->b.w, t, n, 0);
}

static uint32_t converted(body *x, uint32_t value, kl_dtype t) {
  if (x->b.w.steps.p[value].dtype == t) return value;
  return kl_write_op(&x->b.w, (kl_plan_op){.op = KL_OP_CONVERT}, t, 1, &value);
}

// --- memory ---------------------------------------------------------------------------------------------------------

static uint32_t shared(body *x, kl_dtype t, int64_t count) {
  kl_choosing *c = x->b.s->c;
  return kl_add_shared(c->cx, c->plan, &c->slots, kl_in_bytes(t), count);
}

static uint32_t scratch(const radix *r, kl_dtype t, int64_t count) {
  kl_choosing *c = r->x->s->c;
  return kl_add_scratch(c->cx, c->plan, &c->slots, kl_in_bytes(t), count);
}

static kl_slot_info *slot_of(const radix *r, uint32_t slot) {
  return &r->x->s->c->slots.v.p[slot];
}

static uint32_t load(body *x, uint32_t slot, const kl_aff *at, uint32_t keep, kl_dtype t) {
  at = simple(x, at);
  return kl_stage_load(&x->b, slot, &at, keep, t);
}

static kiln_status store(body *x, uint32_t slot, const kl_aff *at, uint32_t value, uint32_t keep) {
  at = simple(x, at);
  return kl_stage_store(&x->b, slot, &at, value, keep);
}

static const kl_aff *line_of(const body *x) {
  return kl_aff_addmul(x->b.s->p, x->inner, x->outer, x->r->inner);
}

// The place of a digit of a tile, or of a line, in arrays of them.
static const kl_aff *digit_place(const body *x, const kl_aff *tile, const kl_aff *digit) {
  kl_affs *p = x->b.s->p;
  const kl_aff *at = tile ? kl_aff_addmul(p, tile, line_of(x), x->r->tiles) : line_of(x);
  return kl_aff_addmul(p, digit, at, x->r->digits);
}

// Element `at` of the line, of an array that passes leave each other, lies behind those of lines before.
static kiln_status fetch(body *x, uint32_t array, const kl_aff *at, uint32_t keep, uint32_t *value) {
  const radix *r = x->r;
  const kl_sort *s = r->x;
  kl_affs *p = s->s->p;
  const kl_aff *index[KILN_MAX_RANK];
  at = simple(x, at);
  if (r->from) {
    *value = load(x, r->from[array], kl_aff_addmul(p, at, line_of(x), s->length), keep, s->type[array]);
    return KILN_OK;
  }
  if (!s->less && array == 1) {
    *value = kl_stage_number(&x->b, KILN_S32, at);
    return KILN_OK;
  }
  kl_stage_line_index(p, s->shape, s->dim, x->outer, x->inner, at, index);
  return kl_walk_want(&x->b.walk, s->s->instr->operands[array], 0, keep, index, value);
}

static kiln_status leave(body *x, uint32_t array, const kl_aff *at, uint32_t value, uint32_t keep) {
  const radix *r = x->r;
  const kl_sort *s = r->x;
  kl_affs *p = s->s->p;
  const kl_aff *index[KILN_MAX_RANK];
  if (!r->shape) return store(x, r->to[array], kl_aff_addmul(p, at, line_of(x), s->length), value, keep);
  int64_t kept = r->shape->dims[s->dim];
  if (kept < s->length) keep = within(x, keep, at, 0, kept - 1); // of topk
  kl_stage_line_index(p, r->shape, s->dim, x->outer, x->inner, simple(x, at), index);
  return kl_stage_store(&x->b, r->to[array], index, value, keep);
}

// --- scans over a block ---------------------------------------------------------------------------------------------

// What the thread has together with lanes before it, every `apart`-th.
static uint32_t scan_warp(body *x, uint32_t value, uint32_t apart) {
  kl_dtype t = x->b.w.steps.p[value].dtype;
  uint32_t none = number(x, t, 0);
  for (uint32_t d = apart; d < LANES; d *= 2) {
    uint32_t before = kl_write_rotate(&x->b.w, value, LANES - d);
    before = kl_write_choose(&x->b.w, within(x, KL_NONE, x->lane, d, LANES - 1), before, none);
    value = kl_stage_op(&x->b, KL_OP_ADD, value, before);
  }
  return value;
}

// Of what warps have left in a slot, the sum of those before the thread's; and of all.
static void join_warps(body *x, uint32_t met, kl_dtype t, uint32_t *before, uint32_t *all) {
  *before = *all = number(x, t, 0);
  for (uint32_t m = 0; m < x->r->warps; m++) {
    uint32_t one = kl_write_take(&x->b.w, met, x->met, m);
    uint32_t is_before = within(x, KL_NONE, x->warp, m + 1, MOST_WARPS - 1);
    if (m + 1 < x->r->warps) {
      uint32_t counted = kl_write_choose(&x->b.w, is_before, one, number(x, t, 0));
      *before = m ? kl_stage_op(&x->b, KL_OP_ADD, *before, counted) : counted;
    }
    *all = m ? kl_stage_op(&x->b, KL_OP_ADD, *all, one) : one;
  }
}

// Of n values that a thread has side by side, what the first of them make together, by number.
static void add_up(body *x, uint32_t values, int64_t n, uint32_t *sums) {
  for (uint32_t v = 0; v < n; v++) {
    sums[v] = kl_write_take(&x->b.w, values, x->each, v);
    if (v) sums[v] = kl_stage_op(&x->b, KL_OP_ADD, sums[v - 1], sums[v]);
  }
}

// What lies before each of them, where `before` lies before all.
static uint32_t add_before(body *x, uint32_t before, const uint32_t *sums, int64_t n) {
  kl_step s = {.kind = KL_STEP_CHOOSE, .dtype = x->b.w.steps.p[before].dtype, .noperands = (uint32_t)n};
  uint32_t *operands = KL_NEW_N(x->b.s->c->arena, uint32_t, 2 * n), *guards = operands + n;
  for (uint32_t v = 0; v < n; v++) {
    operands[v] = v ? kl_stage_op(&x->b, KL_OP_ADD, before, sums[v - 1]) : before;
    guards[v] = v + 1 < n ? within(x, KL_NONE, kl_aff_dim(x->b.s->p, x->each), v, v) : KL_NONE;
  }
  s.operands = operands;
  s.guards = guards;
  return n > 1 ? kl_write_step(&x->b.w, &s) : before;
}

// What threads before the thread have, of those that are `apart` or more, or a multiple of it, from it; and all of
// these. `slot`: an element for each warp and each number below `apart`.
static kiln_status scan_block(body *x, uint32_t value, uint32_t slot, uint32_t apart, uint32_t *before, uint32_t *all) {
  kl_affs *p = x->b.s->p;
  kl_dtype t = x->b.w.steps.p[value].dtype;
  const kl_aff *among = kl_aff_modc(p, x->lane, apart);
  uint32_t own = scan_warp(x, value, apart), warps;
  *before = kl_stage_op(&x->b, KL_OP_SUBTRACT, own, value);
  uint32_t ends = within(x, KL_NONE, x->lane, LANES - apart, LANES - 1);
  KL_TRY(store(x, slot, kl_aff_addmul(p, among, x->warp, apart), own, ends));
  join_warps(x, load(x, slot, kl_aff_addmul(p, among, x->m, apart), KL_NONE, t), t, &warps, all);
  if (x->r->warps > 1) *before = kl_stage_op(&x->b, KL_OP_ADD, *before, warps);
  return KILN_OK;
}

// --- digits ---------------------------------------------------------------------------------------------------------

// A distance of shifts that is below 2^bits, as what is emitted is to know.
static uint32_t below(body *x, uint32_t distance, unsigned bits) {
  kl_dtype t = x->b.w.steps.p[distance].dtype;
  return kl_stage_op(&x->b, KL_OP_AND, distance, number(x, t, (1u << bits) - 1));
}

// So many bits of an element's key.
static kiln_status digit_of(body *x, uint32_t element, uint32_t shift, unsigned bits, uint32_t *digit) {
  uint32_t key;
  KL_TRY(kl_sort_key_of(x->r->x, &x->r->key, &x->b, element, &key));
  kl_dtype t = x->b.w.steps.p[key].dtype;
  shift = below(x, converted(x, shift, t), kl_info(t)->bits == 64 ? 6 : 5);
  key = kl_stage_op(&x->b, KL_OP_SHR_LOGICAL, key, shift);
  *digit = converted(x, kl_stage_op(&x->b, KL_OP_AND, key, number(x, t, (1u << bits) - 1)), KILN_U32);
  return KILN_OK;
}

static unsigned pass_bits(const radix *r) {
  return r->steps * STEP_BITS;
}

// Of the pass, as an integer that indices are made of.
static kiln_status pass_digit(body *x, uint32_t element, const kl_aff **at) {
  uint32_t digit;
  KL_TRY(digit_of(x, element, number(x, KILN_U32, x->r->shift), pass_bits(x->r), &digit));
  *at = kl_write_index(&x->b.w, converted(x, digit, KILN_S32), (kl_interval){0, x->r->digits - 1});
  return KILN_OK;
}

// --- how many of each digit tiles have ------------------------------------------------------------------------------

// Threads that have a digit each.
static uint32_t has_digit(body *x) {
  return within(x, KL_NONE, x->thread, 0, x->r->digits - 1);
}

static kiln_status write_counts(void *arg) {
  body *x = arg;
  radix *r = x->r;
  kl_affs *p = x->b.s->p;
  uint32_t slot = shared(x, KILN_U32, r->digits), element, there = is_there(x, x->apart);
  const kl_aff *digit;
  KL_TRY(store(x, slot, x->thread, number(x, KILN_U32, 0), has_digit(x)));
  KL_TRY(fetch(x, r->key.array, kl_aff_addmul(p, x->apart, x->tile, r->size), there, &element));
  KL_TRY(pass_digit(x, element, &digit));
  kl_store add = {.how = KL_STORE_COMBINE, .combine = KL_OP_ADD};
  kl_write_change(&x->b.w, &add, slot, slot_of(r, slot), digit, number(x, KILN_U32, 1), there);
  uint32_t count = converted(x, load(x, slot, x->thread, has_digit(x), KILN_U32), r->x->integer);
  return store(x, r->counts, digit_place(x, x->tile, x->thread), count, has_digit(x));
}

static kiln_status count_digits(radix *r) {
  body x;
  begin(&x, r, r->tiles);
  add_elements(&x);
  return kl_stage_write(&x.b, r->x->shape->count, write_counts, &x);
}

// --- how many lie in tiles before -----------------------------------------------------------------------------------

// Eight lanes have digits, whose counts share a sector; of tiles that lie side by side others have the next ones, so
// have warps, and the block goes along the line.
enum { TILES_EACH = 4, TILES_AT_ONCE = TILES_EACH * LANES / BESIDE * WARPS };

static kiln_status write_befores(void *arg) {
  body *x = arg;
  radix *r = x->r;
  kl_affs *p = x->b.s->p;
  kl_dtype t = r->x->integer;
  uint32_t slot = shared(x, t, WARPS * BESIDE), sum = number(x, t, 0), base = sum, one[TILES_EACH], before, all;
  const kl_aff *digit = kl_aff_addmul(p, kl_aff_modc(p, x->lane, BESIDE), x->tile, BESIDE);
  uint32_t has = within(x, KL_NONE, digit, 0, r->digits - 1);
  const kl_aff *tile = kl_aff_addmul(p, x->beside, x->round, TILES_AT_ONCE);
  if (x->step != KL_NONE) kl_write_loop(&x->b.w, x->step, 1, &sum, (kl_vars[]){0}, &base);
  uint32_t there = within(x, has, tile, 0, r->tiles - 1);
  const kl_aff *at = digit_place(x, tile, digit);
  uint32_t counts = kl_write_choose(&x->b.w, there, load(x, r->counts, at, there, t), number(x, t, 0));
  add_up(x, counts, TILES_EACH, one);
  KL_TRY(scan_block(x, one[TILES_EACH - 1], slot, BESIDE, &before, &all));
  before = kl_stage_op(&x->b, KL_OP_ADD, base, before);
  KL_TRY(store(x, r->befores, at, add_before(x, before, one, TILES_EACH), there));
  sum = kl_stage_op(&x->b, KL_OP_ADD, base, all);
  if (x->step != KL_NONE) kl_write_loop_end(&x->b.w, &sum);
  uint32_t first = within(x, within(x, has, x->warp, 0, 0), x->lane, 0, BESIDE - 1);
  return store(x, r->totals, digit_place(x, NULL, digit), sum, first);
}

static kiln_status count_before(radix *r) {
  radix all = *r;
  all.warps = WARPS;
  body x;
  begin(&x, &all, (r->digits - 1) / BESIDE + 1);
  kl_affs *p = r->x->s->p;
  const kl_aff *v = kl_new_var(p, &x.b.vars, KL_BIND_REG, TILES_EACH, "v", &x.each);
  x.beside = kl_aff_addmul(p, v, kl_aff_floordivc(p, x.thread, BESIDE), TILES_EACH);
  add_meeting(&x);
  x.round = kl_new_var(p, &x.b.vars, KL_BIND_STEP, (r->tiles - 1) / TILES_AT_ONCE + 1, "round", &x.step);
  return kl_stage_write(&x.b, r->outer * r->inner * r->tiles * r->digits, write_befores, &x);
}

// --- a tile ---------------------------------------------------------------------------------------------------------

// Where array i has an element of the tile.
static const kl_aff *place_of(const body *x, uint32_t array, const kl_aff *at) {
  kl_affs *p = x->b.s->p;
  int64_t gap = gap_of(x->r, array);
  return gap ? kl_aff_addmul(p, at, kl_aff_floordivc(p, at, x->r->each), gap) : at;
}

// The place of each of the thread's elements by two bits of their keys.
static kiln_status rank(body *x, uint32_t element, uint32_t slot, const kl_aff **at) {
  const radix *r = x->r;
  kl_stage_body *b = &x->b;
  uint32_t digit, before, all, made[MOST_EACH];
  const kl_aff *first = kl_aff_addmul(b->s->p, kl_aff_const(b->s->p, r->shift), x->round, STEP_BITS);
  KL_TRY(digit_of(x, element, kl_stage_number(b, KILN_U32, first), STEP_BITS, &digit));
  digit = kl_write_choose(&b->w, is_there(x, x->beside), digit, number(x, KILN_U32, (1 << STEP_BITS) - 1));
  uint32_t place = below(x, kl_stage_op(b, KL_OP_SHL, digit, number(x, KILN_U32, 4)), 6);
  place = converted(x, place, KILN_U64);
  uint32_t one = kl_stage_op(b, KL_OP_SHL, number(x, KILN_U64, 1), place);
  add_up(x, one, r->each, made);
  KL_TRY(scan_block(x, made[r->each - 1], slot, 1, &before, &all));
  // Of each digit, how many have smaller ones.
  uint32_t starts = number(x, KILN_U64, 1ull << PART | 1ull << 2 * PART | 1ull << 3 * PART);
  before = kl_stage_op(b, KL_OP_ADD, before, kl_stage_op(b, KL_OP_MULTIPLY, all, starts));
  uint32_t those = add_before(x, before, made, r->each);
  those = kl_stage_op(b, KL_OP_SHR_LOGICAL, those, place);
  those = converted(x, kl_stage_op(b, KL_OP_AND, those, number(x, KILN_U64, (1 << PART) - 1)), KILN_S32);
  *at = kl_write_index(&b->w, those, (kl_interval){0, r->size - 1});
  return KILN_OK;
}

// Sorts the tile in the slots, KL_NONE for arrays that nobody wants, by the bits of the pass.
static kiln_status sort_tile(body *x, const uint32_t *slots) {
  const radix *r = x->r;
  const kl_sort *s = r->x;
  uint32_t *values = KL_NEW_N(s->s->c->arena, uint32_t, s->n), slot = shared(x, KILN_U64, r->warps);
  const kl_aff *at;
  if (x->step != KL_NONE) kl_write_loop(&x->b.w, x->step, 0, NULL, NULL, NULL);
  for (uint32_t i = 0; i < s->n; i++) {
    if (slots[i] == KL_NONE) continue;
    const kl_aff *own = kl_aff_addmul(x->b.s->p, x->beside, x->thread, gap_of(r, i));
    values[i] = load(x, slots[i], own, KL_NONE, s->type[i]);
  }
  KL_TRY(rank(x, values[r->key.array], slot, &at));
  for (uint32_t i = 0; i < s->n; i++)
    if (slots[i] != KL_NONE) KL_TRY(store(x, slots[i], place_of(x, i, at), values[i], KL_NONE));
  if (x->step != KL_NONE) kl_write_loop_end(&x->b.w, NULL);
  return KILN_OK;
}

// By digit, what is to be added to the place in the sorted tile: elements of the line with smaller digits, and of the
// same one in tiles before, less those of the tile with smaller ones.
static kiln_status find_moves(body *x, uint32_t *moves) {
  const radix *r = x->r;
  kl_dtype t = r->x->integer;
  uint32_t has = has_digit(x), before, all, slot = shared(x, t, r->warps);
  *moves = shared(x, t, r->digits);
  uint32_t total = load(x, r->totals, digit_place(x, NULL, x->thread), has, t);
  uint32_t own = load(x, r->counts, digit_place(x, x->tile, x->thread), has, t);
  uint32_t in_tiles = load(x, r->befores, digit_place(x, x->tile, x->thread), has, t);
  KL_TRY(scan_block(x, kl_stage_op(&x->b, KL_OP_SUBTRACT, total, own), slot, 1, &before, &all));
  return store(x, *moves, x->thread, kl_stage_op(&x->b, KL_OP_ADD, before, in_tiles), has);
}

static kiln_status leave_sorted(body *x, const uint32_t *slots) {
  const radix *r = x->r;
  const kl_sort *s = r->x;
  uint32_t *values = KL_NEW_N(s->s->c->arena, uint32_t, s->n), moves = KL_NONE;
  const kl_aff *from = r->moves ? x->singly : x->apart, *digit;
  const kl_aff *to = kl_aff_addmul(s->s->p, from, x->tile, r->size);
  if (r->moves) KL_TRY(find_moves(x, &moves));
  for (uint32_t i = 0; i < s->n; i++)
    if (r->to[i] != KL_NONE || i == r->key.array)
      values[i] = load(x, slots[i], place_of(x, i, from), KL_NONE, s->type[i]);
  if (r->moves) {
    KL_TRY(pass_digit(x, values[r->key.array], &digit));
    uint32_t place = kl_stage_number(&x->b, s->integer, from);
    place = kl_stage_op(&x->b, KL_OP_ADD, place, load(x, moves, digit, KL_NONE, s->integer));
    to = kl_write_index(&x->b.w, place, (kl_interval){0, s->length - 1});
  }
  for (uint32_t i = 0; i < s->n; i++)
    if (r->to[i] != KL_NONE) KL_TRY(leave(x, i, to, values[i], is_there(x, from)));
  return KILN_OK;
}

static kiln_status write_tile(void *arg) {
  body *x = arg;
  radix *r = x->r;
  const kl_sort *s = r->x;
  kl_affs *p = x->b.s->p;
  uint32_t *slots = KL_NEW_N(s->s->c->arena, uint32_t, s->n), value, there = is_there(x, x->apart);
  for (uint32_t i = 0; i < s->n; i++) {
    slots[i] = KL_NONE;
    if (r->to[i] == KL_NONE && i != r->key.array) continue;
    slots[i] = shared(x, s->type[i], (r->each + gap_of(r, i)) * r->warps * LANES);
    slot_of(r, slots[i])->scattered = true;
    KL_TRY(fetch(x, i, kl_aff_addmul(p, x->apart, x->tile, r->size), there, &value));
    KL_TRY(store(x, slots[i], place_of(x, i, x->apart), value, KL_NONE));
  }
  KL_TRY(sort_tile(x, slots));
  return leave_sorted(x, slots);
}

static kiln_status sort_tiles(radix *r) {
  body x;
  begin(&x, r, r->tiles);
  add_elements(&x);
  add_meeting(&x);
  x.round = kl_new_var(r->x->s->p, &x.b.vars, KL_BIND_STEP, r->steps, "round", &x.step);
  return kl_stage_write(&x.b, r->x->shape->count, write_tile, &x);
}

// --- all passes -----------------------------------------------------------------------------------------------------

static const uint32_t *new_arrays(const radix *r) {
  const kl_sort *x = r->x;
  uint32_t *slots = KL_NEW_N(x->s->c->arena, uint32_t, x->n);
  for (uint32_t i = 0; i < x->n; i++) {
    bool wanted = i == r->key.array || x->s->slot[i] != KL_NONE;
    slots[i] = wanted ? scratch(r, x->type[i], x->shape->count) : KL_NONE;
  }
  return slots;
}

static radix begin_sort(const kl_sort *x) {
  kl_sort_key key;
  kl_sort_finds_key(x, &key);
  radix r = radix_of(x, &key);
  r.steps = (r.bits + STEP_BITS - 1) / STEP_BITS;
  return r;
}

static kiln_status sort_by_pass(radix *r) {
  KL_TRY(count_digits(r));
  KL_TRY(count_before(r));
  return sort_tiles(r);
}

static kiln_status sort_by_passes(radix *r) {
  const kl_sort *x = r->x;
  unsigned steps = r->steps, most = PASS_BITS / STEP_BITS;
  const uint32_t *arrays[2] = {NULL, NULL};
  int64_t lines = r->outer * r->inner, digits = steps < most ? (int64_t)1 << pass_bits(r) : DIGITS;
  r->counts = scratch(r, x->integer, lines * r->tiles * digits);
  r->befores = scratch(r, x->integer, lines * r->tiles * digits);
  r->totals = scratch(r, x->integer, lines * digits);
  r->moves = true;
  for (unsigned done = 0, turn = 0; done < steps; done += most, turn ^= 1) {
    bool last = steps - done <= most;
    r->shift = done * STEP_BITS;
    r->steps = last ? steps - done : most;
    r->digits = (int64_t)1 << pass_bits(r);
    r->shape = last ? x->out : NULL;
    if (!last && !arrays[turn]) arrays[turn] = new_arrays(r);
    r->to = last ? x->s->slot : arrays[turn];
    for (uint32_t i = 0; i < x->n; i++)
      if (r->to[i] != KL_NONE) slot_of(r, r->to[i])->scattered = true;
    KL_TRY(sort_by_pass(r));
    r->from = r->to;
  }
  return KILN_OK;
}

kiln_status kl_sort_by_digits(const kl_sort *x) {
  radix r = begin_sort(x);
  if (r.tiles > 1) return sort_by_passes(&r);
  r.to = x->s->slot;
  r.shape = x->out;
  return sort_tiles(&r);
}

kiln_status kl_sort_tiles_by_digits(const kl_sort *x, const uint32_t *to, int64_t *size) {
  radix r = begin_sort(x);
  r.to = to;
  r.shape = x->shape;
  *size = r.size;
  return sort_tiles(&r);
}
