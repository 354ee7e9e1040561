// How large tiles are, and who reads what of the operands.

#include "lower/choose/contract/contract.h"

enum {
  WARP = 32,
  SECTOR_BYTES = 32,
  VECTOR_BITS = 128,
  LEAST_DEPTH = 8,
  FEWEST_ROWS = 16,
  MULTIPROCESSORS = 132,
  IDLE_WARPS = 2
};

// Quads of a thread, warps of a block, both ways; the share of all products that a multiprocessor could make in the
// time, by a thread's instructions or by 128 bytes of shared memory in each clock.
typedef struct size {
  int64_t quads[2], warps[2];
  double share;
} size;
static const size sizes[] = {
    {{2, 2}, {4, 2}, 0.84}, // 128 x 128 elements
    {{2, 2}, {2, 2}, 0.83}, // 64 x 128
    {{2, 2}, {2, 1}, 0.80}, // 64 x 64
    {{2, 1}, {2, 2}, 0.64}, // the same, by twice as many threads
    {{1, 1}, {2, 2}, 0.50}, // 32 x 64
};
static const int64_t lanes[2] = {4, 8};

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

// A thread's sums, in registers of 32 bits, twice where there are several leaves.
static int64_t registers_of(const kl_contraction *x, const size *s) {
  int64_t words = kl_info(x->type)->bits / 32 * (x->complex ? 2 : 1);
  return s->quads[0] * s->quads[1] * KL_QUAD * KL_QUAD * words * (x->length > x->leaf ? 2 : 1);
}

static int64_t multiprocessors(const kl_choosing *c) {
  return c->plan->target.multiprocessors ? c->plan->target.multiprocessors : MULTIPROCESSORS;
}

static int64_t tiles_of(const kl_contraction *x, const size *s) {
  int64_t tiles = kl_contract_extent(x, KL_OF_BOTH);
  for (int i = 0; i < 2; i++)
    tiles *=
        ceil_div(kl_contract_extent(x, i ? KL_OF_RIGHT : KL_OF_LEFT), s->quads[i] * KL_QUAD * lanes[i] * s->warps[i]);
  return tiles;
}

// In products that follow each other on a multiprocessor. Of few warps each waits for what it reads some of the time.
static double time_of(const kl_choosing *c, const kl_contraction *x, const size *s) {
  int64_t area = 1;
  for (int i = 0; i < 2; i++) area *= s->quads[i] * KL_QUAD * lanes[i] * s->warps[i];
  int64_t rounds = ceil_div(tiles_of(x, s), multiprocessors(c)), warps = rounds * s->warps[0] * s->warps[1];
  double busy = (double)warps / (double)(warps + IDLE_WARPS);
  return (double)(rounds * area) / (s->share * busy);
}

// Registers of a thread; of wider numbers what is multiplied takes more beside them.
enum { MOST_SUMS = 128, MOST_WIDE_SUMS = 64 };

static const size *best_size(const kl_choosing *c, const kl_contraction *x) {
  const size *best = NULL;
  int64_t most = x->complex || kl_info(x->type)->bits > 32 ? MOST_WIDE_SUMS : MOST_SUMS;
  for (const size *s = sizes; s < sizes + KL_COUNT(sizes); s++)
    if (registers_of(x, s) <= most && (!best || time_of(c, x, s) < time_of(c, x, best))) best = s;
  return best;
}

// What is loaded for an operand's element: what is another one for each pair, if there is any, and not rows' factors or
// indices that say which rows these are; by the widest type. Along which variable elements are neighbours; how many of
// these one access takes; the bits of one.
typedef struct reading {
  bool along_rows, along_pairs;
  int64_t at_once;
  uint32_t bits;
} reading;

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

static kiln_status find_reading(kl_choosing *c, const kl_contraction *x, int side, reading *out) {
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
  *out = (reading){.bits = 0};
  bool of_pairs = false;
  for (size_t i = 0; st == KILN_OK && i < sights.v.n; i++) {
    const kl_seen *s = &sights.v.p[i];
    uint32_t bits = kl_info(s->dtype)->bits;
    if (!s->place) continue;
    int64_t of_row = kl_aff_coef(s->place, side ? KL_OF_RIGHT : KL_OF_LEFT), of_pair = kl_aff_coef(s->place, NUMBER);
    if ((!of_row && !of_pair) || (of_pairs && !of_pair) || (of_pairs == !!of_pair && bits <= out->bits)) continue;
    of_pairs |= of_pair != 0;
    *out = (reading){of_row == 1, of_pair == 1, 1, bits};
    uint32_t row = side ? KL_OF_RIGHT : KL_OF_LEFT;
    if (of_row == 1 || of_pair == 1)
      out->at_once = accessed_at_once(c, s, extents, of_pair == 1 ? NUMBER : row, VECTOR_BITS / (bits < 8 ? 8 : bits));
  }
  VEC_FREE(c->cx, &sights.v);
  if (!out->bits) *out = (reading){.at_once = 1, .bits = kl_info(x->from[side]->dtype)->bits};
  return st;
}

kiln_status kl_contract_runs_along(kl_choosing *c, const kl_contraction *x, bool along[2]) {
  for (int side = 0; side < 2; side++) {
    reading r;
    KL_TRY(find_reading(c, x, side, &r));
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
static void deal_slab(const kl_contract_tile *t, const reading *r, int side, kl_slab *out) {
  int64_t each = t->side[side] * t->depth / t->threads, run = r->at_once;
  *out = (kl_slab){.rows = t->side[side], .along_pairs = r->along_pairs || !r->along_rows};
  out->run = least(least(run, each), 2 * KL_QUAD);
  if (out->along_pairs) out->run = least(out->run, t->depth);
  out->runs = each / out->run;
  int64_t pairs = 8 * SECTOR_BYTES / r->bits, line = least(t->depth, pairs < LEAST_DEPTH ? LEAST_DEPTH : pairs);
  out->line = (out->along_pairs ? line : out->rows) / out->run;
}

// Blocks for each leaf, where there are leaves and else half of a GPU would have none.
static bool splits(const kl_choosing *c, const kl_contraction *x, const size *s, int64_t depth) {
  int64_t asked = c->params->strategy.split;
  if (x->length <= x->piece || x->piece % depth) return false;
  return asked ? asked > 1 : 2 * tiles_of(x, s) <= multiprocessors(c);
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

kiln_status kl_contract_tile_of(kl_choosing *c, const kl_contraction *x, kl_contract_tile *out, const char **why_not) {
  const size *s = best_size(c, x);
  reading r[2];
  *why_not = s ? why_none(c, x) : "its numbers are too wide";
  if (*why_not) return KILN_OK;
  *out = (kl_contract_tile){.threads = WARP, .depth = s->quads[0] * s->quads[1] > 2 ? LEAST_DEPTH : 2 * LEAST_DEPTH};
  for (int i = 0; i < 2; i++) {
    out->quads[i] = s->quads[i];
    out->warps[i] = s->warps[i];
    out->lanes[i] = lanes[i];
    out->side[i] = s->quads[i] * KL_QUAD * lanes[i] * s->warps[i];
    out->threads *= s->warps[i];
    KL_TRY(find_reading(c, x, i, &r[i]));
    while (r[i].along_pairs && out->depth * r[i].bits < SECTOR_BYTES * 8 && out->depth < 2 * LEAST_DEPTH)
      out->depth *= 2;
  }
  out->splits = splits(c, x, s, out->depth);
  for (int i = 0; i < 2; i++) deal_slab(out, &r[i], i, &out->slab[i]);
  return KILN_OK;
}
