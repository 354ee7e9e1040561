// The interpreter of plans, and the verifier, on plans by hand: what is right passes, and each promise of plan.h is
// broken once.
#include "interpret/interpret.h"
#include "lower/plan/write.h"
#include "support/suite.h"

static kl_ctx *cx;
static kl_arena arena;

static void open_context(void) {
  cx = kiln_context_create(NULL);
  kl_arena_init(&arena, cx);
}
static void close_context(void) {
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
}

// --- writing ---------------------------------------------------------------------------------------------------------

// Slots of each plan: a parameter, a result, memory that a block shares.
enum { IN, OUT, SHARED, SLOTS };

typedef struct hand {
  kl_plan plan;
  kl_plan_launch launch;
  kl_part part;
  kl_slot_info slots[SLOTS];
  kl_shape shapes[SLOTS];
  int64_t counts[SLOTS];
  kl_writer w;
  uint64_t *want;
} hand;

static kl_shape vector(kl_dtype t, int64_t *count) {
  return (kl_shape){.dtype = t, .rank = 1, .dims = count, .count = *count};
}

// Of f32: so many elements of each slot.
static void begin(hand *h, kl_machine machine, uint32_t block, uint32_t nvars, const kl_var *vars, int64_t in,
                  int64_t out, int64_t shared) {
  memset(h, 0, sizeof *h);
  h->counts[IN] = in, h->counts[OUT] = out, h->counts[SHARED] = shared;
  static const kl_slot_kind kinds[SLOTS] = {KL_SLOT_IN, KL_SLOT_OUT, KL_SLOT_SHARED};
  for (uint32_t i = 0; i < SLOTS; i++) {
    h->shapes[i] = vector(KILN_F32, &h->counts[i]);
    h->slots[i] = (kl_slot_info){
        .kind = kinds[i], .shape = &h->shapes[i], .bytes = 4 * h->counts[i], .align = 16, .alias = KL_NONE};
  }
  h->plan = (kl_plan){.arena = &arena, .name = "k", .kind = "hand", .count = out, .nparts = 1};
  h->plan.affs = kl_affs_create(cx, &arena);
  h->plan.target.machine = machine;
  h->plan.slots = h->slots, h->plan.nslots = SLOTS, h->plan.nargs = SHARED;
  static const uint32_t args[] = {IN, OUT};
  h->launch = (kl_plan_launch){.name = "k", .nparts = 1, .block = block, .nargs = 2, .args = args};
  h->launch.shared_bytes = (uint32_t)(4 * shared);
  h->plan.launches = &h->launch, h->plan.nlaunches = 1;
  h->plan.parts = &h->part;
  kl_body *b = &h->part.main;
  *b = (kl_body){.nvars = nvars, .vars = vars, .width = 1, .blocks = 1};
  for (uint32_t v = 0; v < nvars; v++) {
    if (vars[v].binding == KL_BIND_BLOCK) b->blocks *= vars[v].extent;
    if (vars[v].binding == KL_BIND_LANE && machine == KL_HOST) b->width *= (uint32_t)vars[v].extent;
  }
  h->part.dim = KL_NONE;
  h->part.count = out;
  h->part.blocks = h->part.main_blocks = h->launch.grid = h->launch.iterations = b->blocks;
  h->want = KL_NEW_N(&arena, uint64_t, out + 1);
  kl_write_begin(&h->w, cx, &h->plan, b);
}

static const kl_aff *var(hand *h, uint32_t v) {
  return kl_aff_dim(h->plan.affs, v);
}
static const kl_aff *number(hand *h, int64_t c) {
  return kl_aff_const(h->plan.affs, c);
}
// a + k*b
static const kl_aff *plus(hand *h, const kl_aff *a, int64_t k, const kl_aff *b) {
  return kl_aff_addmul(h->plan.affs, a, b, k);
}
static uint32_t guard(hand *h, const kl_aff *e, int64_t lo, int64_t hi) {
  bool never;
  return kl_guard_and(&h->w.guards, KL_NONE, e, lo, hi, &never);
}
static uint32_t load(hand *h, uint32_t slot, const kl_aff *at, uint32_t g) {
  return kl_write_load(&h->w, slot, &h->slots[slot], at, g, NULL);
}
static void store(hand *h, uint32_t slot, const kl_aff *at, uint32_t value, uint32_t keep) {
  kl_write_store(&h->w, slot, &h->slots[slot], at, value, keep);
}
static const kl_plan_op add = {.op = KL_OP_ADD}, subtract = {.op = KL_OP_SUBTRACT};
static uint32_t op(hand *h, kl_plan_op o, uint32_t a, uint32_t b) {
  return kl_write_op(&h->w, o, KILN_F32, 2, (uint32_t[]){a, b});
}
static uint64_t made(kl_plan_op o, uint64_t a, uint64_t b) {
  return of_op(&o, KILN_F32, KILN_F32, 2, (uint64_t[]){a, b});
}
static uint64_t in(int64_t e) {
  return of_parameter(IN, e);
}

// A sync as the next node.
static void sync(hand *h) {
  VEC_PUSH(cx, &h->w.open.p[h->w.open.n - 1].nodes, (kl_node){.kind = KL_NODE_SYNC});
}

// --- memory that a block shares --------------------------------------------------------------------------------------

// Each block turns its 64 elements around, twice.
enum { RIGHT, NO_SYNC, NO_SECOND_SYNC, HALF, TWICE, SYNC_IN_LANES, SYNC_IN_BLOCK, SYNC_IN_WARP, BEYOND, UNEVEN };

static void turn(hand *h, int how) {
  static const kl_var vars[] = {
      {KL_BIND_BLOCK, 3, "block"}, {KL_BIND_WARP, 2, "warp"}, {KL_BIND_LANE, 32, "lane"}, {KL_BIND_STEP, 2, "round"}};
  begin(h, KL_NVPTX, 64, 4, vars, 384, 384, 64);
  const kl_aff *t = plus(h, var(h, 2), 32, var(h, 1)), *back = plus(h, number(h, 63), -1, t);
  const kl_aff *at = plus(h, plus(h, t, 64, var(h, 0)), 192, var(h, 3));
  kl_write_loop(&h->w, 3, 0, NULL, NULL, NULL);
  uint32_t x = load(h, IN, at, KL_NONE);
  if (how != NO_SECOND_SYNC) sync(h);
  store(h, SHARED, how == TWICE ? var(h, 2) : t, x, how == HALF ? guard(h, var(h, 2), 0, 15) : KL_NONE);
  if (how == SYNC_IN_LANES) kl_write_if(&h->w, guard(h, var(h, 2), 0, 15));
  if (how == SYNC_IN_WARP) kl_write_if(&h->w, guard(h, var(h, 1), 0, 0));
  if (how == SYNC_IN_BLOCK) kl_write_if(&h->w, guard(h, var(h, 0), 0, 1));
  if (how != NO_SYNC) sync(h);
  if (how == SYNC_IN_LANES || how == SYNC_IN_WARP || how == SYNC_IN_BLOCK) kl_write_if_end(&h->w);
  uint32_t y = load(h, SHARED, how == BEYOND ? plus(h, t, 1, number(h, 1)) : back, KL_NONE);
  store(h, OUT, at, y, KL_NONE);
  kl_write_loop_end(&h->w, NULL);
  for (int64_t i = 0; i < 384; i++) h->want[i] = in(i - i % 64 + 63 - i % 64);
}

static void ask_for_more(hand *h, int how) {
  h->slots[SHARED].bytes = 1024;
}

// --- lanes -----------------------------------------------------------------------------------------------------------

enum { FAR = 1, THREE, WHOLE_WARP, SOME_LANES, ONE_WARP, LANE_STRIDE };

// The sum of each warp's elements in pairs; every lane has it.
static void sum_of_lanes(hand *h, int how) {
  static const kl_var vars[] = {{KL_BIND_WARP, 2, "warp"}, {KL_BIND_LANE, 32, "lane"}};
  begin(h, KL_NVPTX, 64, 2, vars, 64, 64, 0);
  const kl_aff *t = plus(h, var(h, 1), 32, var(h, 0));
  uint32_t x = load(h, IN, how == LANE_STRIDE ? plus(h, var(h, 1), 31, var(h, 0)) : t, KL_NONE);
  if (how == SOME_LANES) kl_write_if(&h->w, guard(h, var(h, 1), 0, 15));
  if (how == ONE_WARP) kl_write_if(&h->w, guard(h, var(h, 0), 0, 0));
  for (uint32_t d = 1; d < 32; d *= 2) {
    uint32_t by = how == FAR && d == 4 ? 8 : how == THREE && d == 2 ? 3 : how == WHOLE_WARP && d == 2 ? 32 : d;
    x = op(h, add, x, kl_write_shuffle(&h->w, x, by));
  }
  store(h, OUT, t, x, KL_NONE);
  if (how == SOME_LANES || how == ONE_WARP) kl_write_if_end(&h->w);
  for (int64_t w = 0; w < 2; w++) {
    uint64_t sum[32];
    for (int64_t i = 0; i < 32; i++) sum[i] = in(32 * w + i);
    for (int64_t n = 16; n; n /= 2)
      for (int64_t i = 0; i < n; i++) sum[i] = made(add, sum[2 * i], sum[2 * i + 1]);
    for (int64_t i = 0; i < 32; i++) h->want[32 * w + i] = sum[0];
  }
}

// Eight lanes of a vector take the element of their neighbour. Lanes are no threads of their own: a branch is one for
// all.
static void host_lanes(hand *h, int how) {
  static const kl_var vars[] = {{KL_BIND_BLOCK, 5, "block"}, {KL_BIND_LANE, 8, "lane"}};
  begin(h, KL_HOST, 32, 2, vars, 40, 40, 0);
  const kl_aff *t = plus(h, var(h, 1), 8, var(h, 0));
  uint32_t x = kl_write_shuffle(&h->w, load(h, IN, t, KL_NONE), how == FAR ? 8 : how == THREE ? 2 : 1);
  if (how == SOME_LANES) kl_write_if(&h->w, guard(h, var(h, 1), 0, 3));
  store(h, OUT, t, x, KL_NONE);
  if (how == SOME_LANES) kl_write_if_end(&h->w);
  for (int64_t i = 0; i < 40; i++) h->want[i] = in(i ^ 1);
}

enum { NEARER = 1, ALL_AROUND, RING_IN_LANES };

// Lanes of a warp are a ring, in which each takes the element that is five further.
static void ring(hand *h, int how) {
  static const kl_var vars[] = {{KL_BIND_WARP, 2, "warp"}, {KL_BIND_LANE, 32, "lane"}};
  begin(h, KL_NVPTX, 64, 2, vars, 64, 64, 0);
  const kl_aff *t = plus(h, var(h, 1), 32, var(h, 0));
  uint32_t x = load(h, IN, t, KL_NONE);
  if (how == RING_IN_LANES) kl_write_if(&h->w, guard(h, var(h, 1), 0, 15));
  x = kl_write_rotate(&h->w, x, how == NEARER ? 4 : how == ALL_AROUND ? 32 : 5);
  store(h, OUT, t, x, KL_NONE);
  if (how == RING_IN_LANES) kl_write_if_end(&h->w);
  for (int64_t i = 0; i < 64; i++) h->want[i] = in(i / 32 * 32 + (i + 5) % 32);
}

// --- blocks of a cluster ---------------------------------------------------------------------------------------------

enum { NO_MEETING = 1, MEET_BEFORE, OTHER_CLUSTER, NO_CLUSTER };

// Of two clusters of two blocks each block takes what the other one of its cluster has left.
static void meeting(hand *h, int how) {
  static const uint32_t args[] = {IN, OUT, SHARED};
  static const kl_var vars[] = {{KL_BIND_BLOCK, 2, "set"}, {KL_BIND_BLOCK, 2, "rank"}, {KL_BIND_LANE, 32, "lane"}};
  begin(h, KL_NVPTX, 32, 3, vars, 128, 128, 128);
  h->plan.target.sm = 90;
  h->slots[SHARED].kind = KL_SLOT_SCRATCH;
  h->launch.shared_bytes = 0;
  h->launch.args = args, h->launch.nargs = 3;
  h->launch.cluster = how == NO_CLUSTER ? 0 : 2;
  const kl_aff *at = plus(h, plus(h, var(h, 2), 32, var(h, 1)), 64, var(h, 0));
  const kl_aff *other = plus(h, plus(h, at, 32, number(h, 1)), -64, var(h, 1));
  if (how == OTHER_CLUSTER) other = plus(h, plus(h, at, 64, number(h, 1)), -128, var(h, 0));
  if (how == MEET_BEFORE) kl_write_meet(&h->w);
  store(h, SHARED, at, load(h, IN, at, KL_NONE), KL_NONE);
  if (how == NO_MEETING) sync(h);
  if (how != NO_MEETING && how != MEET_BEFORE) kl_write_meet(&h->w);
  store(h, OUT, at, load(h, SHARED, other, KL_NONE), KL_NONE);
  for (int64_t i = 0; i < 128; i++) h->want[i] = in(i ^ 32);
}

// --- loops -----------------------------------------------------------------------------------------------------------

enum { NEXT_IS_FIRST = 1, CARRIED_BEHIND, INDEX_BEHIND, ONE_ROUND_LESS, BRANCH_BEHIND };

// Two values change places, and take turns in being made less.
static void loop(hand *h, int how) {
  static const kl_var vars[] = {{KL_BIND_LANE, 32, "lane"}, {KL_BIND_STEP, 5, "round"}};
  begin(h, KL_NVPTX, 32, 2, vars, 192, 64, 0);
  uint32_t first[2], now[2], next[2];
  const kl_vars none[2] = {0, 0};
  first[0] = load(h, IN, var(h, 0), KL_NONE);
  first[1] = load(h, IN, plus(h, number(h, 32), 1, var(h, 0)), KL_NONE);
  kl_write_loop(&h->w, 1, 2, first, none, now);
  uint32_t x = load(h, IN, plus(h, plus(h, var(h, 0), 1, number(h, 32)), 32, var(h, 1)), KL_NONE);
  next[0] = now[1];
  next[1] = op(h, subtract, now[0], x);
  if (how == NEXT_IS_FIRST) next[1] = first[0];
  kl_write_loop_end(&h->w, next);
  store(h, OUT, var(h, 0), how == CARRIED_BEHIND ? now[1] : next[1], KL_NONE);
  uint32_t y = how == CARRIED_BEHIND ? first[0] : x;
  if (how == BRANCH_BEHIND) {
    kl_write_if(&h->w, guard(h, var(h, 0), 0, 7));
    y = op(h, add, y, y);
    kl_write_if_end(&h->w);
  }
  const kl_aff *behind = plus(h, number(h, 32), 1, var(h, 0));
  store(h, OUT, how == INDEX_BEHIND ? plus(h, behind, 1, var(h, 1)) : behind, y, KL_NONE);
  for (int64_t i = 0; i < 32; i++) {
    uint64_t a = in(i), b = in(32 + i), s = 0;
    for (int64_t r = 0; r < (how == ONE_ROUND_LESS ? 4 : 5); r++) {
      s = made(subtract, a, in(32 + i + 32 * r));
      a = b, b = s;
    }
    h->want[i] = s;
    h->want[32 + i] = in(32 + i + 32 * 4);
  }
}

enum {
  STORES_INSIDE = 1,
  MADE_INSIDE,
  TESTS_ANOTHER,
  TESTS_MORE_COPIES,
  NO_ROUND,
  ALL_ROUNDS,
  LANES_INSIDE,
  FOR_EVER,
};

static uint32_t is_less(hand *h, uint32_t a, uint32_t b) {
  kl_plan_op o = {.op = KL_OP_COMPARE, .direction = KL_LT};
  return kl_write_op(&h->w, o, KILN_PRED, 2, (uint32_t[]){a, b});
}

static bool less(uint64_t a, uint64_t b) {
  kl_plan_op o = {.op = KL_OP_COMPARE, .direction = KL_LT};
  return integer_of(KILN_PRED, of_op(&o, KILN_F32, KILN_PRED, 2, (uint64_t[]){a, b})) != 0;
}

// Two copies a lane, each with rounds of its own, as long as one value is less than the other, which is less by x in
// each.
static void rounds(hand *h, int how) {
  static const kl_var vars[] = {{KL_BIND_LANE, 32, "lane"}, {KL_BIND_REG, 2, "v"}};
  begin(h, KL_NVPTX, 32, 2, vars, 192, 64, 0);
  const kl_aff *at = plus(h, plus(h, number(h, 0), 2, var(h, 0)), 1, var(h, 1));
  uint32_t first[3], now[3], next[3], other = load(h, IN, plus(h, number(h, 128), 1, var(h, 0)), KL_NONE);
  kl_vars regs[3] = {2, 2, 2};
  first[0] = load(h, IN, at, KL_NONE);
  first[1] = load(h, IN, plus(h, number(h, 64), 1, at), KL_NONE);
  first[2] = is_less(h, first[0], first[1]);
  if (how == TESTS_MORE_COPIES) first[1] = other, regs[1] = 0;
  kl_write_while(&h->w, how == TESTS_ANOTHER ? 1 : 2, 3, first, regs, now);
  uint32_t x = op(h, subtract, now[0], load(h, IN, plus(h, number(h, 64), 1, at), KL_NONE));
  if (how == LANES_INSIDE) x = kl_write_shuffle(&h->w, x, 1);
  next[0] = how == TESTS_MORE_COPIES ? now[0] : now[1];
  next[1] = how == TESTS_MORE_COPIES ? other : x;
  next[2] = how == FOR_EVER ? now[2] : is_less(h, next[0], next[1]);
  if (how == STORES_INSIDE) store(h, OUT, at, x, KL_NONE);
  kl_write_while_end(&h->w, next);
  if (how != STORES_INSIDE) store(h, OUT, at, how == MADE_INSIDE ? x : now[0], KL_NONE);
  for (int64_t i = 0; i < 64; i++) {
    uint64_t a = in(i), b = in(64 + i);
    bool once = how == NO_ROUND;
    while (once ? false : less(a, b)) {
      uint64_t made_now = made(subtract, a, in(64 + i));
      a = b, b = made_now;
      once = how == ALL_ROUNDS;
    }
    h->want[i] = a;
  }
}

// --- registers -------------------------------------------------------------------------------------------------------

enum { OTHER_COPY = 1, TURNED };

// A thread's tile of 4 by 8 is stored the other way round, and column 2 behind it.
static void tile(hand *h, int how) {
  static const kl_var vars[] = {{KL_BIND_LANE, 32, "lane"}, {KL_BIND_REG, 4, "i"}, {KL_BIND_REG, 8, "j"}};
  begin(h, KL_NVPTX, 32, 3, vars, 32 * 32, 32 * 36, 0);
  const kl_aff *i = var(h, 1), *j = var(h, 2), *first = plus(h, number(h, 0), 32, var(h, 0));
  uint32_t x = load(h, IN, plus(h, plus(h, first, 8, i), 1, j), KL_NONE);
  uint32_t column = kl_write_take(&h->w, x, 2, how == OTHER_COPY ? 3 : 2);
  const kl_aff *out = plus(h, number(h, 0), 36, var(h, 0));
  store(h, OUT, how == TURNED ? plus(h, plus(h, out, 8, i), 1, j) : plus(h, plus(h, out, 4, j), 1, i), x, KL_NONE);
  store(h, OUT, plus(h, plus(h, out, 1, number(h, 32)), 1, i), column, KL_NONE);
  for (int64_t t = 0; t < 32; t++)
    for (int64_t r = 0; r < 36; r++) h->want[36 * t + r] = in(32 * t + (r < 32 ? r % 4 * 8 + r / 4 : (r - 32) * 8 + 2));
}

// --- what is said of accesses ----------------------------------------------------------------------------------------

enum {
  MISALIGNED = 1,
  LYING_GUARD,
  OUTSIDE,
  STORED_TWICE,
  NEVER_STORED,
  WIDE_INDEX,
  IDLE_WARP,
  OTHER_STRIDE,
  NARROW_VARS,
  LYING_ELEMENT
};

static kl_access *access_of(hand *h, uint32_t step) {
  return &((kl_step *)h->part.main.steps)[step].access;
}

// 4 elements to each of 32 lanes, but for the last 2: these are made of the first one.
static void copy(hand *h, int how) {
  static const kl_var vars[] = {{KL_BIND_LANE, 32, "lane"}, {KL_BIND_REG, 4, "v"}};
  begin(h, KL_NVPTX, how == IDLE_WARP ? 64 : 32, 2, vars, 126, 128, 0);
  const kl_aff *at = plus(h, var(h, 1), 4, var(h, 0));
  uint32_t there = guard(h, at, 0, 125), keep = KL_NONE;
  uint32_t x = load(h, IN, at, there), y = load(h, IN, number(h, 0), KL_NONE);
  x = kl_write_choose(&h->w, there, x, y);
  if (how == NEVER_STORED) keep = guard(h, at, 0, 100);
  store(h, OUT, at, x, keep);
  if (how == STORED_TWICE) store(h, OUT, plus(h, number(h, 0), 4, var(h, 0)), y, KL_NONE);
  for (int64_t i = 0; i < 128; i++) h->want[i] = in(i < 126 ? i : 0);
}

static void spoil_copy(hand *h, int how) {
  kl_affs *p = h->plan.affs;
  kl_body *b = &h->part.main;
  kl_access *a = access_of(h, 0);
  const kl_aff **base = kl_arena_dup(&arena, a->base, a->nchunks * sizeof *base);
  kl_guard *g = (kl_guard *)b->guards;
  switch (how) {
  case MISALIGNED: a->align = 16; break;
  case LYING_GUARD: g->uniform[1] = 4; break;
  case OUTSIDE: g->hi = 127; break;
  case WIDE_INDEX:
    for (uint32_t c = 0; c < a->nchunks; c++) base[c] = kl_aff_addmul(p, base[c], var(h, 0), (1ll << 31) - 4);
    a->element = kl_aff_addmul(p, a->element, var(h, 0), (1ll << 31) - 4);
    break;
  case OTHER_STRIDE:
    for (uint32_t c = 0; c < a->nchunks; c++) base[c] = kl_aff_addmul(p, base[c], var(h, 0), -1);
    a->align = 4;
    break;
  case NARROW_VARS: ((kl_step *)b->steps)[0].vars = b->steps[0].regs; break;
  case LYING_ELEMENT: a->element = kl_aff_addc(p, a->element, 1); break;
  default: break;
  }
  a->base = base;
}

// --- lanes and copies ------------------------------------------------------------------------------------------------

enum { OTHER_DIGIT = 1, NO_DIGIT, NO_PAIR, EXCHANGE_IN_LANES };

// Pairs of lanes exchange the higher bit of four copies.
static void exchange(hand *h, int how) {
  static const kl_var vars[] = {
      {KL_BIND_LANE, 8, "lane"}, {KL_BIND_REG, 4, "v"}, {KL_BIND_LANE, 2, "high"}, {KL_BIND_LANE, 2, "low"}};
  begin(h, KL_NVPTX, 32, 4, vars, 128, 128, 0);
  const kl_aff *lane = plus(h, plus(h, var(h, 3), 2, var(h, 2)), 4, var(h, 0));
  const kl_aff *at = plus(h, var(h, 1), 4, lane);
  uint32_t x = load(h, IN, at, KL_NONE);
  if (how == EXCHANGE_IN_LANES) kl_write_if(&h->w, guard(h, var(h, 0), 0, 3));
  kl_exchange e = {1, how == NO_DIGIT ? 4 : how == OTHER_DIGIT ? 1 : 2, how == NO_PAIR ? 0 : 2};
  x = kl_write_exchange(&h->w, &e, x);
  store(h, OUT, at, x, KL_NONE);
  if (how == EXCHANGE_IN_LANES) kl_write_if_end(&h->w);
  for (int64_t i = 0; i < 128; i++) {
    int64_t copy = i / 2 % 2, high = i / 8 % 2;
    h->want[i] = in(i + 2 * (high - copy) + 8 * (copy - high));
  }
}

// --- digits ----------------------------------------------------------------------------------------------------------

enum { WIDER_READ = 1, WIDER_WRITE, WIDER_BOTH, OTHER_PLACE, LAST_LANES, EARLIER_READ };

// Each of four warps puts rows of 20 and takes them again, without a sync: nobody else's, because of the guards, which
// leave the last 12 lanes out, or the first. Rows of other rounds are 100 further on.
static void rows_of_warps(hand *h, int how) {
  static const kl_var vars[] = {
      {KL_BIND_WARP, 4, "warp"}, {KL_BIND_LANE, 32, "lane"}, {KL_BIND_STEP, 2, "put"}, {KL_BIND_STEP, 2, "take"}};
  begin(h, KL_NVPTX, 128, 4, vars, 256, 256, 220);
  int64_t from = how >= LAST_LANES ? 12 : 0, end = from + 20;
  const kl_aff *row = plus(h, plus(h, var(h, 1), 20, var(h, 0)), 1, number(h, 5 - from));
  const kl_aff *whole = plus(h, var(h, 1), 32, var(h, 0));
  kl_write_loop(&h->w, 2, 0, NULL, NULL, NULL);
  uint32_t x = load(h, IN, plus(h, whole, 128, var(h, 2)), KL_NONE);
  int64_t last = how == WIDER_WRITE || how == WIDER_BOTH ? 24 : end - 1;
  store(h, SHARED, plus(h, row, 100, var(h, 2)), x, guard(h, var(h, 1), from, last));
  kl_write_loop_end(&h->w, NULL);
  kl_write_loop(&h->w, 3, 0, NULL, NULL, NULL);
  if (how == WIDER_READ || how == WIDER_BOTH) end = 25;
  if (how == EARLIER_READ) from = 7;
  const kl_aff *at = plus(h, row, 100, var(h, 3)), *out = plus(h, whole, 128, var(h, 3));
  kl_write_if(&h->w, guard(h, var(h, 1), from, end - 1));
  uint32_t y = load(h, SHARED, how == OTHER_PLACE ? plus(h, at, 1, number(h, 1)) : at, KL_NONE);
  store(h, OUT, out, y, KL_NONE);
  kl_write_if_end(&h->w);
  x = load(h, IN, out, KL_NONE);
  store(h, OUT, out, x, from ? guard(h, var(h, 1), 0, from - 1) : guard(h, var(h, 1), end, 31));
  kl_write_loop_end(&h->w, NULL);
  for (int64_t i = 0; i < 256; i++) h->want[i] = in(i);
}

// --- one memory for a parameter and a result -------------------------------------------------------------------------

enum { SHIFTED = 1, LATE };

// Elements are turned into twice themselves in place.
static void in_place(hand *h, int how) {
  static const kl_var vars[] = {{KL_BIND_BLOCK, 2, "block"}, {KL_BIND_LANE, 32, "lane"}, {KL_BIND_STEP, 2, "round"}};
  begin(h, KL_NVPTX, 32, 3, vars, 130, 128, 0);
  h->slots[IN].alias = OUT, h->slots[OUT].alias = IN;
  const kl_aff *at = plus(h, plus(h, var(h, 1), 32, var(h, 0)), 64, var(h, 2));
  kl_write_loop(&h->w, 2, 0, NULL, NULL, NULL);
  uint32_t x = load(h, IN, how == SHIFTED ? plus(h, at, 1, number(h, 1)) : at, KL_NONE);
  uint32_t y = op(h, add, x, x);
  store(h, OUT, at, y, KL_NONE);
  if (how == LATE) load(h, IN, at, KL_NONE);
  kl_write_loop_end(&h->w, NULL);
  for (int64_t i = 0; i < 128; i++) h->want[i] = made(add, in(i + (how == SHIFTED)), in(i + (how == SHIFTED)));
}

// --- rows ------------------------------------------------------------------------------------------------------------

typedef struct row {
  const char *what;
  void (*write)(hand *h, int how);
  void (*spoil)(hand *h, int how); // once it is written
  int how;
  const char *says;    // the interpreter; NULL: nothing is broken
  const char *refuted; // what the verifier says; NULL: it believes it, as all that is wrong in values alone
} row;

// clang-format off
static const row rows[] = {
  {"elements turned through shared memory", turn, NULL, RIGHT, NULL, NULL},
  {"no sync between put and get", turn, NULL, NO_SYNC, "slot 2: thread 0 reads element 63, thread 63 writes it", "v1: no sync lies behind store 0, by which another thread may touch the same element of s2"},
  {"no sync between get and the next put", turn, NULL, NO_SECOND_SYNC, "slot 2: thread 0 writes element 0, another reads it", "store 0: no sync lies behind v1, by which another thread may touch the same element of s2"},
  {"elements that nobody has put", turn, NULL, HALF, "slot 2: element 63 is read, and nobody has written it", NULL},
  {"an element that two put", turn, NULL, TWICE, "slot 2: threads 0 and 32 write element 0", "store 0: no sync lies behind store 0, by which another thread may touch the same element of s2"},
  {"a sync of some lanes", turn, NULL, SYNC_IN_LANES, "a sync that thread 16 does not come to", "a sync that not all threads come to"},
  {"a sync of some warps", turn, NULL, SYNC_IN_WARP, "a sync that thread 32 does not come to", "a sync that not all threads come to"},
  {"a sync of some blocks", turn, NULL, SYNC_IN_BLOCK, "slot 2: thread 0 reads element 63, thread 63 writes it", "v1: no sync lies behind store 0, by which another thread may touch the same element of s2"},
  {"beyond the end", turn, NULL, BEYOND, "slot 2: element 64 is read", "v1: elements are not known to lie in 0..63"},
  {"more than there is", turn, ask_for_more, RIGHT, "slot 2: 1024 bytes from 0 on", "s2: bytes 0..1023 of a block are those of others"},
  {"a warp's sum", sum_of_lanes, NULL, RIGHT, NULL, NULL},
  {"another distance", sum_of_lanes, NULL, FAR, "result 0: element 0 comes from elsewhere", NULL},
  {"a distance of two bits, with the same sum", sum_of_lanes, NULL, THREE, NULL, NULL},
  {"a distance of a warp", sum_of_lanes, NULL, WHOLE_WARP, "step 3: distance 32 of 32 lanes", "v3: no lane of 32 is 32 away"},
  {"a shuffle of some lanes", sum_of_lanes, NULL, SOME_LANES, "a shuffle that not all lanes come to", "v1: not all lanes take part"},
  {"a shuffle of some warps", sum_of_lanes, NULL, ONE_WARP, "result 0: element 32 is not written", "s1: 32 elements are stored of 64"},
  {"another stride of warps", sum_of_lanes, NULL, LANE_STRIDE, "result 0: element 32 comes from elsewhere", NULL},
  {"neighbours in a vector", host_lanes, NULL, RIGHT, NULL, NULL},
  {"others in a vector", host_lanes, NULL, THREE, "result 0: element 0 comes from elsewhere", NULL},
  {"beyond a vector", host_lanes, NULL, FAR, "step 1: distance 8 of 8 lanes", "v1: no lane of 8 is 8 away"},
  {"a branch of lanes of a vector", host_lanes, NULL, SOME_LANES, "a branch on guard 0, which is not one for all lanes", "a branch on g0, which is not one condition"},
  {"two values change places", loop, NULL, RIGHT, NULL, NULL},
  {"what is carried is not made anew", loop, NULL, NEXT_IS_FIRST, "result 0: element 0 comes from elsewhere", NULL},
  {"what is carried, behind the loop", loop, NULL, CARRIED_BEHIND, "store 0: step 3 is not to be had", "store 0: v3 is not there"},
  {"what a branch makes, behind it", loop, NULL, BRANCH_BEHIND, "store 1: step 6 is not to be had", "store 1: v6 is not there"},
  {"the round, behind the loop", loop, NULL, INDEX_BEHIND, "store 1: round has no value there", "store 1: its element depends on what is not known there"},
  {"a round less", loop, NULL, ONE_ROUND_LESS, "result 0: element 0 comes from elsewhere", NULL},
  {"rounds of each copy", rounds, NULL, RIGHT, NULL, NULL},
  {"no rounds", rounds, NULL, NO_ROUND, "comes from elsewhere", NULL},
  {"one round", rounds, NULL, ALL_ROUNDS, "comes from elsewhere", NULL},
  {"a store in rounds", rounds, NULL, STORES_INSIDE, "a loop of unknown rounds does more than make values", "a loop of unknown rounds does more than make values"},
  {"what a round makes, behind the loop", rounds, NULL, MADE_INSIDE, "is not to be had", "store 0: v8 is not there"},
  {"rounds while what is no truth", rounds, NULL, TESTS_ANOTHER, "which it does not carry", "a loop while v5, which is no truth that it carries"},
  {"rounds of copies that are not carried", rounds, NULL, TESTS_MORE_COPIES, "the condition has more copies", "v5: v6 has copies that it has not"},
  {"lanes that exchange in a round", rounds, NULL, LANES_INSIDE, "a shuffle that not all lanes come to", "v9: not all lanes take part"},
  {"rounds that do not end", rounds, NULL, FOR_EVER, "a loop that does not end", NULL},
  {"a tile in registers", tile, NULL, RIGHT, NULL, NULL},
  {"another column", tile, NULL, OTHER_COPY, "result 0: element 32 comes from elsewhere", NULL},
  {"a tile as it was", tile, NULL, TURNED, "result 0: element 1 comes from elsewhere", NULL},
  {"a copy", copy, spoil_copy, RIGHT, NULL, NULL},
  {"an alignment that is not there", copy, spoil_copy, MISALIGNED, "is not aligned to 16 bytes", "v0: chunk 1 is not known to be aligned to 16 bytes"},
  {"a guard that changes", copy, spoil_copy, LYING_GUARD, "guard 0 changes where v is 2", "g0: is not known to be the same for 4 values of v"},
  {"beyond a parameter", copy, spoil_copy, OUTSIDE, "slot 0: element 126 is read", "v0: elements are not known to lie in 0..125"},
  {"an element stored twice", copy, NULL, STORED_TWICE, "slot 1: element 0 is written twice", "s1: 160 elements are stored of 128"},
  {"elements not stored", copy, NULL, NEVER_STORED, "result 0: element 101 is not written", "s1: 101 elements are stored of 128"},
  {"an index of more than 32 bits", copy, spoil_copy, WIDE_INDEX, "which 32 bits do not hold", "v0: elements are not known to lie in 0..125"},
  {"warps that do the same", copy, NULL, IDLE_WARP, "slot 1: element 0 is written twice", "variables for 1 warps of 32 lanes in blocks of 64 threads"},
  {"another stride of lanes", copy, spoil_copy, OTHER_STRIDE, "slot 0: element 3 in the place of 4", "v0: chunk 0 is not known to begin where its elements do"},
  {"a value that depends on more", copy, spoil_copy, NARROW_VARS, "step 0: thread 1 has another value than thread 0", "v0: depends on more than it says"},
  {"an element expression of others", copy, spoil_copy, LYING_ELEMENT, "slot 0: element 0 in the place of 1", "v0: chunk 0 is not known to begin where its elements do"},
  {"lanes in a ring", ring, NULL, RIGHT, NULL, NULL},
  {"a lane that is nearer", ring, NULL, NEARER, "result 0: element 0 comes from elsewhere", NULL},
  {"once around", ring, NULL, ALL_AROUND, "step 1: distance 32 of 32 lanes", "v1: no lane of 32 is 32 away"},
  {"a ring of some lanes", ring, NULL, RING_IN_LANES, "a shuffle that not all lanes come to", "v1: not all lanes take part"},
  {"blocks that meet", meeting, NULL, RIGHT, NULL, NULL},
  {"blocks that do not", meeting, NULL, NO_MEETING, "slot 2: element 0 is read, and nobody has written it", "v1: s2 cannot be read"},
  {"blocks that meet too early", meeting, NULL, MEET_BEFORE, "is read, and", "v1: reads of s2 what is not known to be stored before blocks meet"},
  {"blocks of another cluster", meeting, NULL, OTHER_CLUSTER, "slot 2: element 64 is read, and nobody has written it", "v1: may read of s2 what blocks of other clusters store"},
  {"blocks of no cluster", meeting, NULL, NO_CLUSTER, "blocks of no cluster meet", "no cluster of blocks meets"},
  {"lanes exchange copies", exchange, NULL, RIGHT, NULL, NULL},
  {"others", exchange, NULL, OTHER_DIGIT, "result 0: element 1 comes from elsewhere", NULL},
  {"copies that there are not", exchange, NULL, NO_DIGIT, "step 1: digit 4", "v1: exchanges a digit that there is not"},
  {"lanes that are no pair", exchange, NULL, NO_PAIR, "step 1: no lane of two", "v1: exchanges with what is no lane of two"},
  {"an exchange of some lanes", exchange, NULL, EXCHANGE_IN_LANES, "a shuffle that not all lanes come to", "v1: not all lanes take part"},
  {"rows of warps", rows_of_warps, NULL, RIGHT, NULL, NULL},
  {"rows read further than they go", rows_of_warps, NULL, WIDER_READ, "slot 2: thread 20 reads element 25, thread 32 writes it", "v1: no sync lies behind store 0, by which another thread may touch the same element of s2"},
  {"rows written further than they go", rows_of_warps, NULL, WIDER_WRITE, "slot 2: threads 20 and 32 write element 25", "store 0: no sync lies behind store 0, by which another thread may touch the same element of s2"},
  {"rows that are wider", rows_of_warps, NULL, WIDER_BOTH, "slot 2: threads 20 and 32 write element 25", "store 0: no sync lies behind store 0, by which another thread may touch the same element of s2"},
  {"neighbours in rows", rows_of_warps, NULL, OTHER_PLACE, "slot 2: thread 0 reads element 6, thread 1 writes it", "v1: no sync lies behind store 0, by which another thread may touch the same element of s2"},
  {"rows of last lanes", rows_of_warps, NULL, LAST_LANES, NULL, NULL},
  {"rows read from before they begin", rows_of_warps, NULL, EARLIER_READ, "slot 2: element 0 is read, and nobody has written it", "v1: no sync lies behind store 0, by which another thread may touch the same element of s2"},
  {"in place", in_place, NULL, RIGHT, NULL, NULL},
  {"in place of a neighbour", in_place, NULL, SHIFTED, "slot 1: element 1 is written, and another reads it", "v0: what it reads is not known to be overwritten by the same thread, and later, in s1"},
  {"read when it is gone", in_place, NULL, LATE, "slot 0: element 0 is read, and has become a result", "v2: what it reads is not known to be overwritten by the same thread, and later, in s1"},
};
// clang-format on

START_TEST(promises) {
  const row *r = &rows[_i];
  hand h;
  r->write(&h, r->how);
  kl_write_end(&h.w);
  if (r->spoil) r->spoil(&h, r->how);
  const char *why = interpret(&arena, &h.plan, &(leaves){1, &h.want});
  if (r->says)
    EXPECT(why && strstr(why, r->says), "%s: '%s', expected '%s'", r->what, why ? why : "", r->says);
  else
    EXPECT(!why, "%s: %s", r->what, why);
  const char *finding = kl_plan_verify(cx, &h.plan) == KILN_OK ? NULL : kiln_diagnostics_get(cx, 0)->text;
  if (r->refuted)
    EXPECT(finding && strstr(finding, r->refuted), "%s: '%s', expected '%s'", r->what, finding ? finding : "",
           r->refuted);
  else
    EXPECT(!finding, "%s: %s", r->what, finding);
  kl_affs_destroy(&h.plan.affs);
}
END_TEST

// --- where syncs are placed ------------------------------------------------------------------------------------------

// In what is written: ( ) are loops of 3 rounds, p puts an element of each thread, g gets another thread's.
static void follow(hand *h, const char *what) {
  static const kl_var vars[] = {{KL_BIND_LANE, 32, "lane"}, {KL_BIND_STEP, 3, "i"}, {KL_BIND_STEP, 3, "j"}};
  begin(h, KL_NVPTX, 32, 3, vars, 32, 32, 32);
  const kl_aff *other = plus(h, number(h, 31), -1, var(h, 0));
  uint32_t x = load(h, IN, var(h, 0), KL_NONE), loops = 0;
  for (const char *c = what; *c; c++) {
    if (*c == '(') kl_write_loop(&h->w, 1 + loops++, 0, NULL, NULL, NULL);
    if (*c == ')') kl_write_loop_end(&h->w, NULL), loops--;
    if (*c == 'p') store(h, SHARED, var(h, 0), x, KL_NONE);
    if (*c == 'g') load(h, SHARED, other, KL_NONE);
  }
  store(h, OUT, var(h, 0), x, KL_NONE);
  kl_write_end(&h->w);
  kl_plan_place_syncs(&h->plan);
}

static void tell(const hand *h, const kl_seq *s, kl_sb *out) {
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    const kl_body *b = &h->part.main;
    if (n->kind == KL_NODE_SYNC) kl_sb_putc(out, '|');
    if (n->kind == KL_NODE_STORE && b->stores[n->index].access.slot == SHARED) kl_sb_putc(out, 'p');
    if (n->kind == KL_NODE_STEP && b->steps[n->index].kind == KL_STEP_LOAD && b->steps[n->index].access.slot == SHARED)
      kl_sb_putc(out, 'g');
    if (n->kind != KL_NODE_LOOP) continue;
    kl_sb_putc(out, '(');
    tell(h, &n->nest->inside, out);
    kl_sb_putc(out, ')');
  }
}

static const struct {
  const char *what, *placed;
} places[] = {
    {"pg", "p|g"},
    {"(pg)", "(|p|g)"},
    {"p(g)", "p|(g)"},
    {"p(gp)", "p(|g|p)"},
    {"g(pg)", "g(|p|g)"},
    {"g(p)g", "g|(p)|g"},
    {"p(g)p(g)", "p|(g)|p|(g)"},
    {"p(g)(p)", "p|(g)|(p)"},
    {"p((g)p)", "p(|(g)|p)"},
    {"p(p(g))", "p(|p|(g))"},
    {"g((pg))", "g((|p|g))"},
    {"p((g))p", "p|((g))|p"},
    {"p((g)(p))", "p(|(g)|(p))"},
};

// No more than it takes, and where there is a choice not in the loop.
START_TEST(syncs_are_placed) {
  hand h;
  kl_sb placed;
  kl_sb_init(&placed, cx);
  follow(&h, places[_i].what);
  tell(&h, &h.part.main.root, &placed);
  EXPECT(strcmp(placed.p, places[_i].placed) == 0, "%s: %s, expected %s", places[_i].what, placed.p, places[_i].placed);
  EXPECT(kl_plan_verify(cx, &h.plan) == KILN_OK, "%s: %s", placed.p, kiln_diagnostics_get(cx, 0)->text);
  kl_sb_free(&placed);
  kl_affs_destroy(&h.plan.affs);
}
END_TEST

int main(void) {
  return RUN_TESTS("interpret", EACH(open_context, close_context), {promises, KL_COUNT(rows)},
                   {syncs_are_placed, KL_COUNT(places)});
}
