// How large tiles are, and who reads what of the operands.

#include "ir/index/layout/map.h"
#include "lower/choose/contract/contract.h"
#include "lower/plan/cost/cost.h"

enum {
  WARP = 32,
  SECTOR_BYTES = 32,
  VECTOR_BITS = 128,
  BANK_BYTES = 128, // of shared memory that all lanes reach in a pass
  LEAST_DEPTH = 8,
  MOST_OF_RUN = 8,
  FEWEST_ROWS = 16,
  MULTIPROCESSORS = 132,
  SCHEDULERS = 4,
  PRODUCTS = 128,  // of a multiprocessor in a clock
  DRAM_BYTES = 13, // the same
  IDLE = 1024      // products that it could make for a pair while warps wait
};
static const double share_of_leaf = 0.9; // of blocks that have one

// Elements of a thread, lanes and warps across what lies together in the result and along it; the share of all products
// that a multiprocessor could make in the time that a thread's instructions take, or shared memory: in a clock it gives
// a warp 128 bytes, however few lanes want different ones, or one place's 16 to all lanes. So of `a` elements by `b`
// lanes of 4 x 8 take a + b clocks for every pair, those of 1 x 32 a/4 + b, and instructions more than ab/4.
typedef struct size {
  int64_t each[2], lanes[2], warps[2];
  double share;
} size;
static const size sizes[] = {
    {{8, 8}, {4, 8}, {4, 2}, 0.84},   // 128 x 128 elements
    {{8, 8}, {4, 8}, {2, 2}, 0.83},   // 64 x 128
    {{8, 8}, {4, 8}, {2, 1}, 0.77},   // 64 x 64
    {{8, 4}, {1, 32}, {8, 1}, 0.79},  // 64 x 128, by twice as many threads
    {{8, 4}, {1, 32}, {4, 1}, 0.78},  // 32 x 128
    {{16, 2}, {1, 32}, {4, 1}, 0.75}, // 64 x 64, the same
    {{8, 2}, {1, 32}, {4, 1}, 0.66},  // 32 x 64
    {{8, 2}, {1, 32}, {2, 1}, 0.62},  // 16 x 64
};

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

static int64_t side_of(const size *s, int side) {
  return s->each[side] * s->lanes[side] * s->warps[side];
}

// By sides of operands, where neighbours in the result differ in the row of side `along`.
static size turned(const size *s, int along) {
  size out = *s;
  for (int i = 0; i < 2; i++) {
    int from = along ? i : 1 - i;
    out.each[i] = s->each[from];
    out.lanes[i] = s->lanes[from];
    out.warps[i] = s->warps[from];
  }
  return out;
}

static int side_along(const kl_choosing *c, const kl_contraction *x, const kl_contract_outputs *o) {
  kl_affs *p = c->plan->affs;
  const kl_aff *number[KL_CONTRACT_ROLES], *element[KILN_MAX_RANK], *index[KILN_MAX_RANK];
  kl_interval in[KL_CONTRACT_ROLES];
  for (uint32_t r = 0; r < KL_CONTRACT_ROLES; r++) {
    number[r] = kl_aff_dim(p, r);
    in[r] = (kl_interval){0, kl_contract_extent(x, (kl_contract_role)r) - 1};
  }
  kl_contract_element(p, x, number, element);
  kl_contract_output_index(p, x, o, element, index);
  const kl_aff *place = kl_position_of(p, c->slots.v.p[*o->slots].shape, index);
  place = kl_dom_simplify(kl_dom_make(p, KL_CONTRACT_ROLES, in), place);
  return kl_aff_coef(place, KL_OF_LEFT) == 1 ? 0 : 1;
}

// A thread's sums, in registers of 32 bits, twice where it has several leaves.
static int64_t registers_of(const kl_contraction *x, const size *s, bool splits) {
  int64_t words = kl_info(x->type)->bits / 32 * (x->complex ? 2 : 1);
  return s->each[0] * s->each[1] * words * (!splits && x->length > x->leaf ? 2 : 1);
}

static int64_t multiprocessors(const kl_choosing *c) {
  return c->plan->target.multiprocessors ? c->plan->target.multiprocessors : MULTIPROCESSORS;
}

static int64_t tiles_of(const kl_contraction *x, const size *s) {
  int64_t tiles = kl_contract_extent(x, KL_OF_BOTH);
  for (int i = 0; i < 2; i++) tiles *= ceil_div(kl_contract_extent(x, i ? KL_OF_RIGHT : KL_OF_LEFT), side_of(s, i));
  return tiles;
}

// May each leaf have blocks of its own? Only where a GPU has no more tiles than it has multiprocessors.
static bool may_split(const kl_choosing *c, const kl_contraction *x, const size *s, bool splits) {
  int64_t asked = c->params->strategy.split;
  bool may = x->length > x->piece && x->piece % (2 * LEAST_DEPTH) == 0;
  if (asked && may) return splits == (asked > 1);
  return !splits || (may && tiles_of(x, s) <= multiprocessors(c));
}

// In products that follow each other on a multiprocessor. Fewer than four warps leave some of it idle, and for each
// pair all wait for what they read. Blocks of a leaf each begin and end as often as there are leaves, whose sums are
// written and read by another launch.
static double time_of(const kl_choosing *c, const kl_contraction *x, const size *s, bool splits) {
  int64_t leaves = splits ? ceil_div(x->length, x->piece) : 1;
  int64_t rounds = ceil_div(tiles_of(x, s) * leaves, multiprocessors(c)), warps = rounds * s->warps[0] * s->warps[1];
  double sums = (double)(rounds * side_of(s, 0) * side_of(s, 1)), parts = x->complex ? 2 : 1;
  if (warps < SCHEDULERS) sums *= (double)SCHEDULERS / (double)warps;
  double products = (sums + IDLE) * (double)(splits ? x->piece : x->length) * parts * parts / s->share;
  double bytes = (double)(leaves * x->shape->count) * 2 * parts * (kl_info(x->type)->bits / 8);
  double join = KL_LAUNCH_CLOCKS + bytes / (double)(DRAM_BYTES * multiprocessors(c));
  return splits ? products / share_of_leaf + PRODUCTS * join : products;
}

// Registers of a thread's sums; of numbers whose product is several instructions of two registers; of so many sums of a
// leaf that a multiprocessor has few threads; threads of one that have 168 each, enough for as many sums with those of
// leaves before. Bytes that any block may have.
enum { MOST_SUMS = 128, MOST_WIDE_SUMS = 64, MANY_SUMS = 64, ROOMY_THREADS = 384, MOST_SHARED = 48 << 10 };

static bool fits(const kl_contraction *x, const size *s, bool splits) {
  int64_t bytes = kl_info(x->type)->bits / 8 * (x->complex ? 2 : 1);
  int64_t rows = side_of(s, 0) + side_of(s, 1) + 2 * BANK_BYTES / LEAST_DEPTH;
  bool wide = kl_info(x->type)->bits > 32 && (x->complex || kl_is_int(x->type));
  return registers_of(x, s, splits) <= (wide ? MOST_WIDE_SUMS : MOST_SUMS) &&
         rows * 2 * LEAST_DEPTH * bytes <= MOST_SHARED;
}

static bool find_size(const kl_choosing *c, const kl_contraction *x, int along, size *best, bool *splits) {
  bool found = false;
  double least = 0;
  for (size_t i = 0; i < 2 * KL_COUNT(sizes); i++) {
    size s = turned(&sizes[i / 2], along);
    bool split = i % 2;
    if (!may_split(c, x, &s, split) || !fits(x, &s, split)) continue;
    double time = time_of(c, x, &s, split);
    if (found && time >= least) continue;
    *best = s;
    *splits = split;
    least = time;
    found = true;
  }
  return found;
}

enum { NUMBER = KL_CONTRACT_ROLES, READING_VARS };

// Of `most` neighbours or fewer, a power of two: how many one access takes wherever a multiple of as many lies.
static int64_t accessed_at_once(const kl_choosing *c, const kl_seen *s, const int64_t *extents, uint32_t var,
                                int64_t most) {
  enum { CHUNK = READING_VARS, WITHIN, VARS };
  kl_affs *p = c->plan->affs;
  const kl_aff *to[READING_VARS], *at;
  kl_interval in[VARS];
  if (s->slot == KL_NONE) return 1; // a constant, of which nobody knows yet where it lies
  int64_t bits = kl_info(s->dtype)->bits, align = c->slots.v.p[s->slot].align;
  for (uint32_t i = 0; i < READING_VARS; i++) {
    to[i] = kl_aff_dim(p, i);
    in[i] = (kl_interval){0, extents[i] - 1};
  }
  while (most > 1 && most * bits > 8 * align) most /= 2;
  for (; most > 1; most /= 2) {
    bool inside;
    to[var] = kl_aff_addmul(p, kl_aff_dim(p, WITHIN), kl_aff_dim(p, CHUNK), most);
    in[CHUNK] = (kl_interval){0, (extents[var] - 1) / most};
    in[WITHIN] = (kl_interval){0, most - 1};
    kl_aff_replace(p, &(kl_aff_subst){.to = {to}, .n = {READING_VARS}}, &s->place, 1, &at);
    at = kl_dom_simplify(kl_dom_make(p, VARS, in), at);
    if (kl_aff_coef(at, WITHIN) != 1) continue;
    at = kl_aff_sub(p, at, kl_aff_dim(p, WITHIN));
    if (!kl_aff_uses(at, WITHIN, &inside) && kl_aff_content(at) % (uint64_t)most == 0 && at->c % most == 0) break;
  }
  return most;
}

kiln_status kl_contract_reading_of(kl_choosing *c, const kl_contraction *x, int side, kl_contract_reading *out) {
  kl_affs *p = c->plan->affs;
  const kl_aff *number[KL_CONTRACT_ROLES], *element[KILN_MAX_RANK], *at[KILN_MAX_RANK];
  kl_constraint in[2 * KILN_MAX_RANK];
  int64_t extents[READING_VARS];
  uint32_t n;
  for (uint32_t r = 0; r < KL_CONTRACT_ROLES; r++) {
    number[r] = kl_aff_dim(p, r);
    extents[r] = kl_contract_extent(x, (kl_contract_role)r);
  }
  extents[NUMBER] = x->length;
  kl_contract_element(p, x, number, element);
  kl_pair_index(p, x, side, element, kl_aff_dim(p, NUMBER), at, &n, in);
  kl_look look = {.instr = x->instr->operands[side], .index = at};
  kl_sights sights = {{0}};
  kiln_status st = kl_walk_look(c->cx, c->plan, &c->slots, READING_VARS, extents, 1, &look, &sights);
  *out = (kl_contract_reading){.bits = 0};
  bool of_pairs = false;
  for (size_t i = 0; st == KILN_OK && i < sights.v.n; i++) {
    const kl_seen *s = &sights.v.p[i];
    uint32_t bits = kl_info(s->dtype)->bits;
    if (!s->place) continue;
    int64_t of_row = kl_aff_coef(s->place, side ? KL_OF_RIGHT : KL_OF_LEFT), of_pair = kl_aff_coef(s->place, NUMBER);
    if ((!of_row && !of_pair) || (of_pairs && !of_pair) || (of_pairs == !!of_pair && bits <= out->bits)) continue;
    of_pairs |= of_pair != 0;
    *out = (kl_contract_reading){of_row == 1, of_pair == 1, 1, bits};
    uint32_t row = side ? KL_OF_RIGHT : KL_OF_LEFT;
    if (of_row == 1 || of_pair == 1)
      out->at_once = accessed_at_once(c, s, extents, of_pair == 1 ? NUMBER : row, VECTOR_BITS / (bits < 8 ? 8 : bits));
  }
  VEC_FREE(c->cx, &sights.v);
  if (!out->bits) *out = (kl_contract_reading){.at_once = 1, .bits = kl_info(x->from[side]->dtype)->bits};
  return st;
}

kiln_status kl_contract_runs_along(kl_choosing *c, const kl_contraction *x, bool along[2]) {
  for (int side = 0; side < 2; side++) {
    kl_contract_reading r;
    KL_TRY(kl_contract_reading_of(c, x, side, &r));
    along[side] = r.along_rows;
  }
  return KILN_OK;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Runs of one access, a power of two of elements that tile a slab's rows and depth: so lanes take neighbours together,
// whatever the length of rows. Of pairs a sector's lie in a line, or the fewest that banks keep apart: few rows of a
// thread are few addresses.
static void deal_slab(const kl_contract_tile *t, const kl_contract_reading *r, int side, uint32_t bits, kl_slab *out) {
  int64_t each = t->side[side] * t->depth / t->threads, run = r->at_once;
  *out = (kl_slab){.rows = t->side[side], .along_pairs = r->along_pairs || !r->along_rows};
  out->run = least(least(run, each), MOST_OF_RUN);
  if (out->along_pairs) out->run = least(out->run, t->depth);
  out->runs = each / out->run;
  int64_t pairs = 8 * SECTOR_BYTES / r->bits, line = least(t->depth, pairs < LEAST_DEPTH ? LEAST_DEPTH : pairs);
  out->line = (out->along_pairs ? line : out->rows) / out->run;
  out->apart = out->along_pairs ? BANK_BYTES * 8 / bits / line : 0;
}

static const char *why_none(const kl_choosing *c, const kl_contraction *x) {
  if (c->plan->target.machine != KL_NVPTX) return "";
  if (x->type == KILN_PRED) return "predicates are joined element by element";
  if (x->length == 0) return "there is nothing to sum";
  if (c->params->strategy.chooser) return NULL;
  if (x->length < LEAST_DEPTH) return "sums are short";
  for (int r = KL_OF_LEFT; r <= KL_OF_RIGHT; r++)
    if (kl_contract_extent(x, (kl_contract_role)r) < FEWEST_ROWS) return "it has few rows or columns";
  return NULL;
}

// Those that one access brings. Where lanes run along the side, fewer at no more passes, if rows of the next pair could
// not lie as near as banks want them with more.
static int64_t near_each_other(const kl_contraction *x, const size *s, int side, const kl_slab *slab) {
  int64_t near = least(s->each[side], VECTOR_BITS / kl_info(x->type)->bits);
  return slab->along_pairs && s->lanes[side] == WARP ? least(near, slab->apart) : near;
}

kiln_status kl_contract_tile_of(kl_choosing *c, const kl_contraction *x, const kl_contract_outputs *o,
                                kl_contract_tile *out, const char **why_not) {
  size s;
  kl_contract_reading r[2];
  *out = (kl_contract_tile){.threads = WARP, .depth = 2 * LEAST_DEPTH};
  *why_not = why_none(c, x);
  if (!*why_not && !find_size(c, x, side_along(c, x, o), &s, &out->splits)) *why_not = "its numbers are too wide";
  if (*why_not) return KILN_OK;
  out->many_sums = registers_of(x, &s, true) >= MANY_SUMS;
  if (out->many_sums) out->depth = LEAST_DEPTH;
  bool enough = out->many_sums || registers_of(x, &s, out->splits) < MANY_SUMS;
  if (!enough) out->at_most = (uint32_t)(ROOMY_THREADS / (WARP * s.warps[0] * s.warps[1]));
  for (int i = 0; i < 2; i++) {
    out->warps[i] = s.warps[i];
    out->lanes[i] = s.lanes[i];
    out->side[i] = side_of(&s, i);
    out->threads *= s.warps[i];
    KL_TRY(kl_contract_reading_of(c, x, i, &r[i]));
    while (r[i].along_pairs && out->depth * r[i].bits < SECTOR_BYTES * 8 && out->depth < 2 * LEAST_DEPTH)
      out->depth *= 2;
  }
  for (int i = 0; i < 2; i++) {
    deal_slab(out, &r[i], i, kl_info(x->type)->bits, &out->slab[i]);
    out->near[i] = near_each_other(x, &s, i, &out->slab[i]);
    out->groups[i] = s.each[i] / out->near[i];
    if (out->slab[i].along_pairs && out->slab[i].apart < out->near[i]) out->slab[i].apart = out->near[i];
  }
  return KILN_OK;
}
