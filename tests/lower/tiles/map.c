// Tiles of maps against enumeration: for every tile and runtime value, the elements that a map gives for the points of
// the tile, and those that the tile's boxes have. Sizes as numbers, and as variables wherever the clauses hold.
#include "support/share.h"
#include "support/slow.h"
#include "ir/map_support.h"
#include "enumerate.h"

#include <time.h>

enum { MOST_POINTS = 4096 };

typedef struct tally {
  long maps, tilings, tiles, exact, covers, unknown, boxes, symbolic, held, precise;
} tally;
static tally count;

// Of the random maps, how many tiles are covered only, and why. All of 6000 maps; another reason, or another number,
// is a change that should be looked at.
typedef struct reason {
  const char *why;
  long expected, n;
} reason;
static reason covers[] = {
    {"a constraint ties variables together in a way that no box has", 663, 0},
    {"an index is no sum of digits of a tile", 300, 0}, // floors of sums that no neighbour completes, mins
    {"the sum of a tile's dimensions has gaps", 46, 0},
    {"results depend on each other", 13, 0},
    {"the digits of a sum with gaps", 10, 0},
    {"a tile that is cut has gaps in its sums", 0, 0}, // among more maps
};

// How many tiles are one exact box of these sizes, and a condition of open sizes denies it: the first one that fails.
static reason rejected[] = {
    // sizes as 2 for rows of 3 that begin at 1: the few tiles that there are happen to lie within rows
    {"a tile's digits are not a box", 10, 0},
    // a part of the minor dimension, of one row: it lies within the row, but does not divide it
    {"a row of a tile does not begin at its multiple", 7, 0},
    // bounds in a whole dimension: (d0 * 5 + d1 - 2), d1 from 2 to 6 of 7, is a row of five, not of seven
    {"a tile that is cut has gaps in its sums", 5, 0},
    // one value by a remainder, as d0 mod 3 = 2, or a quotient of a part of a row
    {"results depend on each other", 3, 0},
};

static void count_reason(reason *list, size_t n, const char *why) {
  size_t i = 0;
  while (i < n && strcmp(list[i].why, why) != 0) i++;
  EXPECT(i < n, "a reason that is not listed: %s", why);
  list[i].n++;
}

static void print_reasons(const reason *list, size_t n, const char *what, bool all) {
  for (size_t i = 0; i < n; i++) {
    printf("# %ld %s: %s\n", list[i].n, what, list[i].why);
    if (all) ck_assert_int_eq(list[i].n, list[i].expected);
  }
}

static uint64_t state;
static unsigned pick(unsigned n) { // splitmix64
  state += 0x9e3779b97f4a7c15ull;
  uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (unsigned)((x ^ (x >> 31)) % n);
}

// --- enumeration ----------------------------------------------------------------------------------------------------

static volume v;

static const char *describe(const kl_map_tile *t) {
  kl_sb b;
  kl_sb_init(&b, cx);
  tile_describe(pool, &b, t);
  const char *text = kl_str_dup(&arena, (kl_str){b.p, b.n}).p;
  kl_sb_free(&b);
  return text;
}

static const char *numbers(const int64_t *x, uint32_t n) {
  char text[256] = "";
  for (uint32_t i = 0; i < n; i++) snprintf(text + strlen(text), sizeof text - strlen(text), " %lld", (long long)x[i]);
  return kl_str_dup(&arena, kl_str_of(text)).p;
}

static void judge(const kl_map *m, const kl_map_tile *t, const int64_t *extents, const int64_t *ts) {
  uint32_t nd = m->nvars[KL_AFF_DIM];
  finding f;
  enumerated answer = enumerate_tiles(&v, t, &(enumeration){extents, ts, NULL, INT64_MAX}, &f);
  count.tiles += f.tiles;
  EXPECT(answer == ENUMERATED_RIGHT, "%s\nsizes%s, tile%s, runtime%s: %lld missing, %lld too many\n%s", print_map(m),
         numbers(ts, nd), numbers(f.tile, nd), numbers(f.runtime, m->nvars[KL_AFF_RT]), (long long)f.missing,
         (long long)f.extra, describe(t));
}

static void find(const kl_map *m, const int64_t *extents, const int64_t *ts, const int64_t *shape, kl_map_tile *out) {
  const kl_aff *sizes[24];
  uint32_t nd = m->nvars[KL_AFF_DIM];
  for (uint32_t i = 0; i < nd; i++) sizes[i] = ts ? kl_aff_const(pool, ts[i]) : kl_aff_range(pool, i);
  kl_tile_grid g = {nd, extents, sizes};
  kl_tile_of_map(pool, m, &g, shape, out);
}

// The reason for the first condition that the sizes do not satisfy, or NULL.
static const char *fails(const kl_map_tile *t, const int64_t *ts, uint32_t n) {
  for (uint32_t i = 0; i < t->nclauses; i++) {
    kl_map_tile one = {.nclauses = 1, .clauses = &t->clauses[i]};
    if (!kl_tile_clauses_hold(pool, &one, ts, n)) return t->clauses[i].why;
  }
  return NULL;
}

// One map with one list of sizes. The symbolic tile, where it holds, says the same.
static void check_sizes(const kl_map *m, const int64_t *extents, const int64_t *shape, const kl_map_tile *symbolic,
                        const int64_t *ts) {
  kl_map_tile t;
  find(m, extents, ts, shape, &t);
  count.tilings++;
  count.exact += t.state == KL_TILE_EXACT;
  count.covers += t.state == KL_TILE_COVERS;
  count.unknown += t.state == KL_TILE_UNKNOWN;
  count.boxes += t.nboxes;
  if (t.state != KL_TILE_EXACT) count_reason(covers, KL_COUNT(covers), t.why);
  if (t.state != KL_TILE_UNKNOWN) judge(m, &t, extents, ts);
  if (symbolic->state == KL_TILE_UNKNOWN) return;
  count.symbolic++;
  const char *why = fails(symbolic, ts, m->nvars[KL_AFF_DIM]);
  if (why) {
    if (t.state == KL_TILE_EXACT && t.nboxes == 1) count_reason(rejected, KL_COUNT(rejected), why);
    return;
  }
  count.held++;
  count.precise += symbolic->state == KL_TILE_EXACT;
  judge(m, symbolic, extents, ts);
}

// --- random maps ----------------------------------------------------------------------------------------------------

static int64_t product(const int64_t *x, uint32_t n) {
  int64_t p = 1;
  for (uint32_t i = 0; i < n; i++) p *= x[i];
  return p;
}

// Another shape of as many elements.
static uint32_t reshaped(const int64_t *dims, uint32_t n, int64_t *out) {
  int64_t left = product(dims, n);
  uint32_t k = 0, most = 1 + pick(4);
  while (k + 1 < most) {
    int64_t d = 1 + (int64_t)pick(6);
    if (left % d) continue;
    out[k++] = d, left /= d;
  }
  out[k++] = left;
  return k;
}

typedef struct building {
  uint32_t rank;
  int64_t dims[8];        // of the array indexed
  const kl_aff *index[8]; // over its dims, ranges, runtime variables of the op
  kl_map_var ranges[4], rts[4];
  kl_constraint cs[16];
  uint32_t nranges, nrts, ncs;
} building;

static void constrain(building *b, const kl_aff *e, int64_t lo, int64_t hi) {
  b->cs[b->ncs++] = (kl_constraint){e, {lo, hi}};
}

// What one op reads of its operand: shape `from` of the result, that of the operand in b.
static void random_op(building *b, const int64_t *from, uint32_t n) {
  *b = (building){.rank = n};
  uint32_t d = n ? pick(n) : 0;
  for (uint32_t i = 0; i < n; i++) b->dims[i] = from[i], b->index[i] = kl_aff_dim(pool, i);
  const kl_aff *x = kl_aff_dim(pool, d), *s;
  unsigned op = pick(n ? 12 : 1);
  switch (op) {
  default: { // reshape
    const kl_aff *at = kl_aff_const(pool, 0);
    b->rank = reshaped(from, n, b->dims);
    for (uint32_t i = 0; i < n; i++) at = kl_aff_add(pool, kl_aff_mulc(pool, at, from[i]), kl_aff_dim(pool, i));
    for (uint32_t i = b->rank; i-- > 0;) {
      b->index[i] = i ? kl_aff_modc(pool, at, b->dims[i]) : at;
      if (i) at = kl_aff_floordivc(pool, at, b->dims[i]);
    }
    break;
  }
  case 4: // transpose
    for (uint32_t i = 0; i < n; i++) {
      b->index[i] = kl_aff_dim(pool, (i + d) % n);
      b->dims[i] = from[(i + d) % n];
    }
    break;
  case 5: { // slice
    int64_t start = pick(5), stride = 1 + pick(3);
    b->index[d] = kl_aff_addc(pool, kl_aff_mulc(pool, x, stride), start);
    b->dims[d] = (from[d] - 1) * stride + 1 + start + pick(4);
    break;
  }
  case 6: b->index[d] = kl_aff_addc(pool, kl_aff_mulc(pool, x, -1), from[d] - 1); break; // reverse
  case 7: {                                                                              // pad
    int64_t low = pick(4), interior = pick(3), m = 1 + (from[d] > low ? (from[d] - low - 1) / (interior + 1) : 0);
    m = m > 1 ? m - pick(2) : m;
    const kl_aff *e = kl_aff_addc(pool, x, -low);
    if (interior) constrain(b, kl_aff_modc(pool, e, interior + 1), 0, 0);
    b->index[d] = kl_aff_floordivc(pool, e, interior + 1);
    constrain(b, b->index[d], 0, m - 1);
    b->dims[d] = m;
    break;
  }
  case 8: // broadcast's operand
    b->rank = n - 1;
    for (uint32_t i = d; i + 1 < n; i++) b->index[i] = b->index[i + 1], b->dims[i] = b->dims[i + 1];
    break;
  case 9: { // reduce, or window
    s = kl_aff_range(pool, b->nranges);
    int64_t size = 1 + pick(4);
    b->ranges[b->nranges++] = (kl_map_var){.in = {0, size - 1}};
    if (pick(2) && n < 5) {
      b->rank = n + 1;
      for (uint32_t i = n; i > d; i--) b->index[i] = b->index[i - 1], b->dims[i] = b->dims[i - 1];
      b->index[d] = s, b->dims[d] = size;
      break;
    }
    int64_t stride = 1 + pick(2), dilation = 1 + pick(2), low = pick(3), hole = 1 + pick(2);
    int64_t m = 1 + (from[d] - 1) * stride / hole;
    const kl_aff *at = kl_aff_addc(pool, kl_aff_addmul(pool, kl_aff_mulc(pool, x, stride), s, dilation), -low);
    b->index[d] = kl_aff_floordivc(pool, at, hole);
    if (hole > 1) constrain(b, kl_aff_modc(pool, at, hole), 0, 0);
    constrain(b, b->index[d], 0, m - 1);
    b->dims[d] = m;
    break;
  }
  case 10: { // dynamic slice, or update
    int64_t m = from[d] + pick(4);
    b->rts[0] = (kl_map_var){.in = {0, m - from[d]}};
    b->nrts = 1;
    b->dims[d] = m;
    if (pick(2)) {
      b->index[d] = kl_aff_add(pool, x, kl_aff_rt(pool, 0));
    } else {
      m = 1 + pick((unsigned)from[d]);
      b->rts[0].in.hi = from[d] - m;
      b->index[d] = kl_aff_sub(pool, x, kl_aff_rt(pool, 0));
      constrain(b, b->index[d], 0, m - 1);
      b->dims[d] = m;
    }
    break;
  }
  case 11: // the same index twice
    if (n > 3) break;
    b->rank = n + 1;
    b->index[n] = x, b->dims[n] = from[d];
    break;
  }
}

static const kl_map *op_map(const building *b, const int64_t *from, uint32_t n) {
  kl_map_var dims[8];
  for (uint32_t i = 0; i < n; i++) dims[i] = (kl_map_var){.in = {0, from[i] - 1}};
  kl_map m = {.state = KL_MAP_DEFINED, .nresults = b->rank, .results = b->index, .nconstraints = b->ncs};
  m.constraints = b->cs;
  m.nvars[0] = n, m.nvars[1] = b->nranges, m.nvars[2] = b->nrts;
  m.vars[0] = dims, m.vars[1] = b->ranges, m.vars[2] = b->rts;
  return kl_map_make(pool, &m);
}

static void one_random(void) {
  int64_t dims[8] = {0}, shape[8] = {0};
  uint32_t n = pick(4), ops = 1 + pick(3);
  for (uint32_t i = 0; i < n; i++) shape[i] = dims[i] = 1 + pick(9);
  uint32_t rank = n;
  const kl_map *m = kl_map_identity(pool, n, dims);
  for (uint32_t i = 0; i < ops; i++) {
    building b;
    random_op(&b, shape, rank);
    m = kl_map_compose(pool, m, op_map(&b, shape, rank));
    memcpy(shape, b.dims, sizeof shape);
    rank = b.rank;
  }
  m = kl_map_simplify(pool, m, KL_MAP_KEEP_POINTS);
  if (m->state != KL_MAP_DEFINED || m->nvars[KL_AFF_RANGE] + n > 20 || kl_map_points(m) > MOST_POINTS) return;
  if (!volume_open(&v, pool, m)) return;
  count.maps++;
  kl_map_tile symbolic;
  find(m, dims, NULL, shape, &symbolic);
  for (int k = 0; k < 4; k++) {
    int64_t ts[8];
    for (uint32_t i = 0; i < n; i++) ts[i] = pick(3) ? 1 + pick((unsigned)dims[i]) : pick(2) ? dims[i] : 1;
    check_sizes(m, dims, shape, &symbolic, ts);
  }
}

// --- tiles of known maps, sizes open ---------------------------------------------------------------------------------

// clang-format off
static const struct {
  const char *map;
  int64_t extents[4], shape[5]; // extents 0: as far as the bounds go
  const char *tile;
} known[] = {
    // a dimension of one element has tiles of one, so it plays no part in size and stride; elsewhere it may be told a size that is a product with it
    {"(d0, d1, d2, d3) -> (d0 * 11 + d1, d2, d3), domain: d0 in [0, 0], d1 in [0, 10], d2 in [0, 16], d3 in [0, 18]", {0}, {11, 17, 19},
     "exact \n"
     "offset d1 * s1, size s1, stride 1, below 11; offset d2 * s2, size s2, stride 1, below 17; offset d3 * s3, size s3, stride 1, below 19; \n"},
    // elsewhere the size of the first dimension is (s0 + 47) / 48, which is 1
    {"(d0, d1) -> (0, d0 / 6, d0 mod 6, d1), domain: d0 in [0, 47], d1 in [0, 3]", {0}, {1, 8, 6, 4},
     "exact \n"
     "offset 0, size 1, stride 0; offset (d0 * s0) / 6, size s0 ceildiv 6, stride 1, below 8; offset (d0 * s0) mod 6, size min(6, s0), stride 1; offset d1 * s1, size s1, stride 1, below 4; \n"
     "  needs s0 mod 6 in [0, 0] or -(s0 * (6 / s0)) + 6 in [0, 0]\n"},
    // conditions are one list of "or"s each, elsewhere six "and"s of two
    {"(d0, d1, d2, d3) -> (d0 * 48 + d1 * 6 + d2, d3), domain: d0 in [0, 3], d1 in [0, 7], d2 in [0, 5], d3 in [0, 3]", {0}, {192, 4},
     "exact \n"
     "offset (d0 * s0) * 48 + (d1 * s1) * 6 + d2 * s2, size s0 * s1 * s2, stride ((min(1, s1 - 1)) * (min(1, s2 - 1))) * 42 - min(1, s1 - 1) * 42 - min(1, s2 - 1) * 47 + 48, below min(3, d0 * s0 + s0 - 1) * 48 + min(7, d1 * s1 + s1 - 1) * 6 + min(5, d2 * s2 + s2 - 1) + 1; offset d3 * s3, size s3, stride 1, below 4; \n"
     "  needs s2 in [1, 1] or s2 in [6, 6] or s1 in [1, 1]\n"
     "  needs s2 in [1, 1] or s2 in [6, 6] or s0 in [1, 1]\n"
     "  needs s2 in [1, 1] or s1 in [8, 8] or s0 in [1, 1]\n"
     "  needs s1 in [1, 1] or s1 in [8, 8] or s0 in [1, 1]\n"},
    // elsewhere refused: the divisors 12 and 4 are a chain
    {"(d0, d1, d2) -> (d0 * 3 + d1 / 4, d1 mod 4, d2), domain: d0 in [0, 3], d1 in [0, 11], d2 in [0, 18]", {0}, {12, 4, 19},
     "exact \n"
     "offset (d0 * s0) * 3 + (d1 * s1) / 4, size s0 * (s1 ceildiv 4), stride -min(1, s1 ceildiv 4 - 1) * 2 + 3, below min(3, d0 * s0 + s0 - 1) * 3 + min(2, (d1 * s1) / 4 + s1 ceildiv 4 - 1) + 1; offset (d1 * s1) mod 4, size min(4, s1), stride 1; offset d2 * s2, size s2, stride 1, below 19; \n"
     "  needs s1 mod 4 in [0, 0] or -(s1 * (4 / s1)) + 4 in [0, 0]\n"
     "  needs s1 ceildiv 4 in [1, 1] or s1 ceildiv 4 in [3, 3] or s0 in [1, 1]\n"},
    {"(d0)[s0] -> (s0, d0), domain: d0 in [0, 149], s0 in [0, 124]", {0}, {125, 150},
     "exact \n"
     "offset 0, size 125, stride 1; offset d0 * s0, size s0, stride 1, below 150; \n"},
    {"(d0) -> (-d0 + 178), domain: d0 in [0, 178]", {0}, {179},
     "exact \n"
     "offset -(d0 * s0) + 178, size s0, stride -1, from 0; \n"},
    {"(d0, d1) -> (d0 * 2 + 40, d1 * 4 + 20), domain: d0 in [0, 9], d1 in [0, 20]", {0}, {60, 104},
     "exact \n"
     "offset (d0 * s0) * 2 + 40, size s0, stride 2, below 59; offset (d1 * s1) * 4 + 20, size s1, stride 4, below 101; \n"},
    // elsewhere offsets alone: the bounds are lost
    {"(d0, d1, d2) -> (d0, d1 - 5, d2), domain: d0 in [0, 1], d1 in [5, 15], d2 in [0, 6]", {2, 33, 7}, {2, 11, 7},
     "exact \n"
     "offset d0 * s0, size s0, stride 1, below 2; offset d1 * s1 - 5, size s1, stride 1, from 0, below 11; offset d2 * s2, size s2, stride 1, below 7;   if d1 * s1 + s1 in [6, 9223372036854775807]  if d1 * s1 in [-9223372036854775808, 15]\n"},
    // left padding; elsewhere no bounds
    {"(d0, d1) -> (d0 - 2, d1 - 1), domain: d0 in [2, 5], d1 in [1, 4]", {8, 8}, {4, 4},
     "exact \n"
     "offset d0 * s0 - 2, size s0, stride 1, from 0, below 4; offset d1 * s1 - 1, size s1, stride 1, from 0, below 4;   if d0 * s0 + s0 in [3, 9223372036854775807]  if d0 * s0 in [-9223372036854775808, 5]  if d1 * s1 + s1 in [2, 9223372036854775807]  if d1 * s1 in [-9223372036854775808, 4]\n"},
    {"(d0, d1){rt0} -> (d0 + rt0, d1), domain: d0 in [0, 3], d1 in [0, 4], rt0 in [0, 6]", {0}, {10, 5},
     "exact \n"
     "offset d0 * s0 + rt0, size s0, stride 1, below rt0 + 4; offset d1 * s1, size s1, stride 1, below 5; \n"},
    // elsewhere without bounds
    {"(d0, d1){rt0} -> (d0 - rt0, d1), domain: d0 in [0, 9], d1 in [0, 4], rt0 in [0, 6], d0 - rt0 in [0, 3]", {0}, {4, 5},
     "exact \n"
     "offset d0 * s0 - rt0, size s0, stride 1, from 0, below 4; offset d1 * s1, size s1, stride 1, below 5;   if d0 * s0 + s0 - rt0 in [1, 9223372036854775807]  if rt0 - d0 * s0 in [-3, 9223372036854775807]\n"},
    {"(d0, d1, d2, d3){rt0, rt1} -> (d1 + rt0, d2 + rt1, d3), domain: d0 in [0, 0], d1 in [0, 6], d2 in [0, 7], d3 in [0, 3], rt0 in [0, 26], rt1 in [0, 68]", {0}, {33, 76, 4},
     "exact \n"
     "offset d1 * s1 + rt0, size s1, stride 1, below rt0 + 7; offset d2 * s2 + rt1, size s2, stride 1, below rt1 + 8; offset d3 * s3, size s3, stride 1, below 4; \n"},
    // elsewhere without the condition, and wrong without it: 4 of the rows of 6 are no rectangle
    {"(d0, d1) -> (0, -(d0 / 6) + 7, -(d0 mod 6) + 5, d1), domain: d0 in [0, 47], d1 in [0, 3]", {0}, {1, 8, 6, 4},
     "exact \n"
     "offset 0, size 1, stride 0; offset -((d0 * s0) / 6) + 7, size s0 ceildiv 6, stride -1, from 0; offset (-(d0 * s0) - 1) mod 6, size min(6, s0), stride -1; offset d1 * s1, size s1, stride 1, below 4; \n"
     "  needs s0 mod 6 in [0, 0] or -(s0 * (6 / s0)) + 6 in [0, 0]\n"},
    // strides are above 0, elsewhere below; the elements are the same
    {"(d0, d1, d2, d3) -> (d0 * 24 - d1 * 6 - d2 + 23, d3), domain: d0 in [0, 1], d1 in [0, 3], d2 in [0, 5], d3 in [0, 3]", {0}, {48, 4},
     "exact \n"
     "offset (d0 * s0) * 24 - s1 * 6 - (d1 * s1) * 6 - d2 * s2 - s2 + 30, size s0 * s1 * s2, stride ((min(1, s1 - 1)) * (min(1, s2 - 1))) * 18 - min(1, s1 - 1) * 18 - min(1, s2 - 1) * 23 + 24, from (d0 * s0) * 24 - min(3, d1 * s1 + s1 - 1) * 6 - min(5, d2 * s2 + s2 - 1) + 23, below min(1, d0 * s0 + s0 - 1) * 24 - (d1 * s1) * 6 - d2 * s2 + 24; offset d3 * s3, size s3, stride 1, below 4; \n"
     "  needs s2 in [1, 1] or s2 in [6, 6] or s1 in [1, 1]\n"
     "  needs s2 in [1, 1] or s2 in [6, 6] or s0 in [1, 1]\n"
     "  needs s2 in [1, 1] or s1 in [4, 4] or s0 in [1, 1]\n"
     "  needs s1 in [1, 1] or s1 in [4, 4] or s0 in [1, 1]\n"},
    {"()[s0, s1] -> (s0 * 2 + s1), domain: s0 in [0, 8], s1 in [0, 1]", {0}, {18},
     "exact \n"
     "offset 0, size 18, stride 1; \n"},
    // elsewhere four "and"s of two
    {"(d0) -> (d0 / 35, (d0 / 7) mod 5, d0 mod 7), domain: d0 in [0, 104]", {0}, {3, 5, 7},
     "exact \n"
     "offset (d0 * s0) / 35, size s0 ceildiv 35, stride 1, below 3; offset ((d0 * s0) / 7) mod 5, size min(5, s0 ceildiv 7), stride 1; offset (d0 * s0) mod 7, size min(7, s0), stride 1; \n"
     "  needs s0 mod 7 in [0, 0] or -(s0 * (7 / s0)) + 7 in [0, 0]\n"
     "  needs s0 mod 35 in [0, 0] or -(s0 * (35 / s0)) + 35 in [0, 0]\n"},
    {"(d0, d1) -> (0, d0 / 6, d0 mod 6, d1 / 8, d1 mod 8), domain: d0 in [0, 47], d1 in [0, 31]", {0}, {1, 8, 6, 4, 8},
     "exact \n"
     "offset 0, size 1, stride 0; offset (d0 * s0) / 6, size s0 ceildiv 6, stride 1, below 8; offset (d0 * s0) mod 6, size min(6, s0), stride 1; offset (d1 * s1) / 8, size s1 ceildiv 8, stride 1, below 4; offset (d1 * s1) mod 8, size min(8, s1), stride 1; \n"
     "  needs s0 mod 6 in [0, 0] or -(s0 * (6 / s0)) + 6 in [0, 0]\n"
     "  needs s1 mod 8 in [0, 0] or -(s1 * (8 / s1)) + 8 in [0, 0]\n"},
    // the constraint holds anyway
    {"(d0, d1)[s0] -> (d0 * 2048 + d1, s0), domain: d0 in [0, 3], d1 in [0, 2047], s0 in [0, 49], d0 * 2048 + d1 in [0, 8191]", {0}, {8192, 50},
     "exact \n"
     "offset (d0 * s0) * 2048 + d1 * s1, size s0 * s1, stride -min(1, s1 - 1) * 2047 + 2048, below min(3, d0 * s0 + s0 - 1) * 2048 + min(2047, d1 * s1 + s1 - 1) + 1; offset 0, size 50, stride 1; \n"
     "  needs s1 in [1, 1] or s1 in [2048, 2048] or s0 in [1, 1]\n"},
    // right padding
    {"(d0, d1)[s0] -> (d0 * 2048 + d1, s0), domain: d0 in [0, 3], d1 in [0, 2047], s0 in [0, 49], d0 * 2048 + d1 in [0, 4096]", {0}, {4097, 50},
     "exact \n"
     "offset (d0 * s0) * 2048 + d1 * s1, size s0 * s1, stride -min(1, s1 - 1) * 2047 + 2048, below min(4096, min(3, d0 * s0 + s0 - 1) * 2048 + min(2047, d1 * s1 + s1 - 1)) + 1; offset 0, size 50, stride 1; \n"
     "  needs s1 in [1, 1] or s1 in [2048, 2048] or s0 in [1, 1]\n"},
    // elsewhere refused: the lower bound cuts as the upper one does
    {"(d0, d1)[s0] -> (d0 * 2048 + d1, s0), domain: d0 in [0, 3], d1 in [0, 2047], s0 in [0, 49], d0 * 2048 + d1 in [2, 4096]", {0}, {4097, 50},
     "exact \n"
     "offset (d0 * s0) * 2048 + d1 * s1, size s0 * s1, stride -min(1, s1 - 1) * 2047 + 2048, from 2, below min(4096, min(3, d0 * s0 + s0 - 1) * 2048 + min(2047, d1 * s1 + s1 - 1)) + 1; offset 0, size 50, stride 1; \n"
     "  needs s1 in [1, 1] or s1 in [2048, 2048] or s0 in [1, 1]\n"},
    // elsewhere refused: every fifth column is no box of a sum; all are covered
    {"(d0, d1)[s0] -> (d0 * 2048 + d1, s0), domain: d0 in [0, 3], d1 in [0, 2047], s0 in [0, 49], d1 mod 5 in [0, 0]", {0}, {8192, 50},
     "covers a constraint ties variables together in a way that no box has\n"
     "offset (d0 * s0) * 2048 + d1 * s1, size s0 * s1, stride -min(1, s1 - 1) * 2047 + 2048, below min(3, d0 * s0 + s0 - 1) * 2048 + min(2047, d1 * s1 + s1 - 1) + 1; offset 0, size 50, stride 1; \n"
     "  needs s1 in [1, 1] or s1 in [2048, 2048] or s0 in [1, 1]\n"},
    {"(d0, d1, d2)[s0] -> (d0, d1, d2 * 128 + s0), domain: d0 in [0, 1], d1 in [0, 4], d2 in [0, 2], s0 in [0, 127]", {0}, {2, 5, 384},
     "exact \n"
     "offset d0 * s0, size s0, stride 1, below 2; offset d1 * s1, size s1, stride 1, below 5; offset (d2 * s2) * 128, size s2 * 128, stride 1, below min(2, d2 * s2 + s2 - 1) * 128 + 128; \n"},
    // elsewhere of size s0; a dim of one point has tiles of one
    {"(d0) -> (d0), domain: d0 in [0, 0]", {0}, {1},
     "exact \n"
     "offset 0, size 1, stride 1; \n"},
    // elsewhere refused: here one point at a time while sizes are open, and point by point where they are numbers
    {"(d0) -> ((d0 * 5 + 18) / 6, (d0 * 5 + 18) mod 6), domain: d0 in [0, 4]", {0}, {8, 6},
     "exact \n"
     "offset ((d0 * s0) * 5) / 6 + 3, size (s0 * 5 + 1) / 6, stride 1, below 7; offset ((d0 * s0) * 5) mod 6, size min(6, s0 * 5 - 4), stride 1, below -(((d0 * s0) * 5) / 6) * 6 + 21; \n"
     "  needs s0 in [1, 1]\n"
     "  needs (1 / (s0 * 5 - 4)) * 4 - (s0 * (1 / (s0 * 5 - 4))) * 5 + 1 in [0, 0]\n"},

    // the same, misaligned
    {"(d0) -> ((d0 * 5 + 20) / 6, (d0 * 5 + 20) mod 6), domain: d0 in [0, 4]", {0}, {8, 6},
     "exact \n"
     "offset ((d0 * s0) * 5 + 2) / 6 + 3, size (s0 * 5 + 1) / 6, stride 1, below 7; offset ((d0 * s0) * 5 + 2) mod 6, size min(6, s0 * 5 - 4), stride 1, below -(((d0 * s0) * 5 + 2) / 6) * 6 + 23; \n"
     "  needs s0 in [1, 1]\n"
     "  needs (1 / (s0 * 5 - 4)) * 4 - (s0 * (1 / (s0 * 5 - 4))) * 5 + 1 in [0, 0]\n"},

    // a window with holes: of single points it has a stride of its own, else they must fill the holes, and the last too
    {"(d0)[s0] -> (d0 + s0 * 2), domain: d0 in [0, 6], s0 in [0, 2]", {0}, {11},
     "exact \n"
     "offset d0 * s0, size s0 * (min(1, s0 - 1)) + min(1, s0 - 1) + 3, stride -min(1, s0 - 1) + 2, below min(6, d0 * s0 + s0 - 1) + 5; \n"
     "  needs s0 in [1, 1] or -(s0 * (7 / s0)) + 7 in [0, 0]\n"
     "  needs s0 in [1, 1] or s0 - min(1, s0 - 1) - 1 in [0, 9223372036854775807]\n"},
    // of single rows those of a window's parts go on, whatever the columns' holes are
    {"(d0, d1) -> (d0 * 6 + d1), domain: d0 in [0, 3], d1 in [0, 7]", {0}, {26},
     "exact \n"
     "offset (d0 * s0) * 6 + d1 * s1, size (s0 * (min(1, s1 - 1))) * 5 - min(1, s1 - 1) * 6 + s1 * (min(1, s1 - 1)) + s0, stride -min(1, s1 - 1) * 5 + 6, below min(3, d0 * s0 + s0 - 1) * 6 + min(7, d1 * s1 + s1 - 1) + 1; \n"
     "  needs s1 in [1, 1] or s0 in [1, 1] or -(s1 * (8 / s1)) + 8 in [0, 0]\n"
     "  needs s0 in [1, 1] or s1 in [1, 1] or s1 - min(1, s1 - 1) * 5 - 1 in [0, 9223372036854775807]\n"},
    // in one tile alone
    {"(d0, d1) -> (d0, d1, d1), domain: d0 in [0, 6], d1 in [3, 3]", {7, 5}, {7, 4, 4},
     "exact \n"
     "offset d0 * s0, size s0, stride 1, below 7; offset 3, size 1, stride 1; offset 3, size 1, stride 1;   if d1 * s1 in [-9223372036854775808, 3]  if d1 * s1 + s1 in [4, 9223372036854775807]\n"},
    // elsewhere refused: a range that begins at 5 is as good as one from 0
    {"(d0)[s0] -> (d0, s0 - 5), domain: d0 in [0, 1], s0 in [5, 15]", {0}, {2, 11},
     "exact \n"
     "offset d0 * s0, size s0, stride 1, below 2; offset 0, size 11, stride 1; \n"},
};
// clang-format on

START_TEST(known_maps) {
  const kl_map *m = read_map(known[_i].map);
  kl_map_tile t;
  int64_t extents[4];
  for (uint32_t i = 0; i < m->nvars[KL_AFF_DIM]; i++)
    extents[i] = known[_i].extents[i] ? known[_i].extents[i] : m->vars[KL_AFF_DIM][i].in.hi + 1;
  find(m, extents, NULL, known[_i].shape, &t);
  const char *text = describe(&t);
  ck_assert_str_eq(text, known[_i].tile);
}
END_TEST

// Maps that were tiled wrongly once.
static const struct {
  const char *map;
  int64_t shape[4], sizes[4];
} wrong_once[] = {
    // the constraint makes the second result a digit, and is lost where that is taken for granted
    {"(d0, d1, d2)[s0] -> ((d0 * 40 + d1 * 8 + d2) / 180, (d0 * 40 + d1 * 8 + d2) mod 180 + s0 - 1), domain: "
     "d0 in [0, 8], d1 in [0, 4], d2 in [0, 7], s0 in [0, 1], (d0 * 40 + d1 * 8 + d2) mod 180 + s0 in [1, 180]",
     {2, 180},
     {1, 5, 2}},
    // a number that begins one behind a multiple of its size
    {"(d0, d1, d2) -> ((d0 + d1 + d2) ceildiv 2 - 1, (d0 + d1 + d2 + 1) mod 2), domain: d0 in [1, 4], d1 in [0, 0], "
     "d2 in [0, 0]",
     {2, 2},
     {4, 1, 1}},
    // tiles of 4 in rows of 6 do not begin at multiples of 4 in every row
    {"(d0, d1) -> ((d0 * 6 + d1) / 4, (d0 * 6 + d1) mod 4), domain: d0 in [0, 1], d1 in [0, 5]", {3, 4}, {1, 4}},
    // a whole minor dimension of which bounds cut some
    {"(d0, d1, d2)[s0] -> (0, d0 * 7 + d1 * 7 + d2 + s0 - 1), domain: d0 in [0, 6], d1 in [0, 0], d2 in [1, 6], "
     "s0 in [0, 0]",
     {1, 49},
     {3, 1, 7}},
    // of a sum of two with one coefficient, tiles do not begin at multiples of their size
    {"(d0)[s0] -> ((d0 * 2 + s0) / 4, (s0 / 2 + d0) mod 2), domain: d0 in [0, 7], s0 in [1, 3], d0 * 2 + s0 in [1, "
     "16], "
     "s0 mod 2 in [1, 1]",
     {5, 2},
     {1}},
    // quotients of a size that is open do not begin at multiples of theirs
    {"(d0, d1) -> (0, (d1 * 2 + d0) / 4, (d0 / 2 + d1) mod 2, 0), domain: d0 in [0, 6], d1 in [0, 0], d0 mod 2 in [0, "
     "0]",
     {1, 2, 2, 1},
     {3, 1}},
    // a dim that only a condition has
    {"(d0, d1, d2){rt0} -> (d0, 0, d2), domain: d0 in [0, 3], d1 in [2, 4], d2 in [0, 6], rt0 in [0, 2], "
     "d1 - rt0 in [2, 2]",
     {4, 1, 7},
     {2, 1, 7}},
};

// A result of which nothing is known, of no array that would bound it, is not covered by what indices of arrays are.
static const struct {
  const char *map;
  int64_t extents[3];
  const char *why;
} anything[] = {
    {"(d0, d1, d2) -> (-d0 * 2 - d1 * 9223372036854775807 - d2, (d0 * 10 + d1 * 8 + d2) / 7, (d1 mod 4) * 2 + d2), "
     "domain: d0 in [0, 2], d1 in [1, 4], d2 in [0, 1]",
     {3, 5, 2},
     "a number leaves 64 bits"},
    // a coefficient that has no magnitude
    {"(d0, d1) -> (d0 * -9223372036854775808 + d1 * 3), domain: d0 in [0, 1], d1 in [0, 9]",
     {2, 10},
     "a number leaves 64 bits"},
};

START_TEST(what_may_be_anything_is_unknown) {
  kl_map_tile t;
  for (int open = 0; open < 2; open++) {
    find(read_map(anything[_i].map), anything[_i].extents, open ? NULL : anything[_i].extents, NULL, &t);
    ck_assert_int_eq(t.state, KL_TILE_UNKNOWN);
    ck_assert_str_eq(t.why, anything[_i].why);
  }
}
END_TEST

START_TEST(wrong_once_is_right) {
  const kl_map *m = read_map(wrong_once[_i].map);
  int64_t extents[4];
  kl_map_tile symbolic;
  for (uint32_t i = 0; i < m->nvars[KL_AFF_DIM]; i++) extents[i] = m->vars[KL_AFF_DIM][i].in.hi + 1;
  ck_assert(volume_open(&v, pool, m));
  find(m, extents, NULL, wrong_once[_i].shape, &symbolic);
  check_sizes(m, extents, wrong_once[_i].shape, &symbolic, wrong_once[_i].sizes);
}
END_TEST

// The stride of what collapses (4, 8, 6) is that of the last dimension of more than one element.
static const struct {
  int64_t sizes[4], stride;
} strides[] = {
    {{4, 8, 6, 4}, 1},  {{1, 1, 6, 4}, 1}, {{1, 8, 1, 4}, 6},
    {{2, 1, 1, 4}, 48}, {{2, 8, 1, 4}, 6}, {{1, 1, 1, 4}, 48}, // of one element any stride will do; elsewhere 0
};

START_TEST(strides_of_collapses) {
  static const int64_t extents[] = {4, 8, 6, 4}, shape[] = {192, 4};
  kl_map_tile t;
  find(read_map("(d0, d1, d2, d3) -> (d0 * 48 + d1 * 6 + d2, d3), domain: d0 in [0, 3], d1 in [0, 7], d2 in [0, 5], "
                "d3 in [0, 3]"),
       extents, NULL, shape, &t);
  static const int64_t tid[4];
  kl_point at = {{tid, strides[_i].sizes, NULL}};
  int64_t stride;
  ck_assert(kl_aff_eval(pool, t.boxes[0].dims[0].stride, &at, &stride));
  ck_assert_int_eq(stride, strides[_i].stride);
}
END_TEST

// --- speed -----------------------------------------------------------------------------------------------------------

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static const kl_map *reshape_map(const int64_t *from, const int64_t *to) {
  const kl_aff *at = kl_aff_const(pool, 0), *index[8];
  for (uint32_t i = 0; i < 8; i++) at = kl_aff_add(pool, kl_aff_mulc(pool, at, from[i]), kl_aff_dim(pool, i));
  for (uint32_t i = 8; i-- > 0;) {
    index[i] = i ? kl_aff_modc(pool, at, to[i]) : at;
    if (i) at = kl_aff_floordivc(pool, at, to[i]);
  }
  return kl_map_simplify(pool, kl_map_with_results(pool, kl_map_identity(pool, 8, from), index, 8), KL_MAP_KEEP_POINTS);
}

// Reshapes of rank 8, with and without common divisors, under sizes that fit and that do not.
static const struct {
  int64_t from[8], to[8];
} eights[] = {
    {{8, 4, 6, 8, 2, 16, 4, 8}, {4, 8, 12, 4, 32, 2, 8, 4}},
    {{2, 3, 5, 7, 2, 3, 5, 7}, {7, 5, 3, 2, 7, 5, 3, 2}},
    {{6, 6, 6, 6, 6, 6, 6, 6}, {4, 9, 4, 9, 4, 9, 4, 9}},
    {{3, 4, 3, 4, 3, 4, 3, 4}, {4, 3, 4, 3, 4, 3, 4, 3}},
};

START_TEST(rank_eight_is_fast) {
  const kl_map *m = reshape_map(eights[_i].from, eights[_i].to);
  double longest = 0;
  state = 1;
  for (int k = 0; k < 40; k++) {
    int64_t ts[8];
    for (uint32_t i = 0; i < 8; i++) ts[i] = pick(2) ? eights[_i].from[i] : 1 + pick((unsigned)eights[_i].from[i]);
    kl_map_tile t;
    double begin = cpu_ms();
    find(m, eights[_i].from, k ? ts : NULL, eights[_i].to, &t);
    double took = cpu_ms() - begin;
    if (took > longest) longest = took;
    ck_assert(t.state != KL_TILE_UNKNOWN);
  }
  printf("# %.2f ms\n", longest);
  ck_assert_msg(longest < 10 * SLACK, "%f ms", longest);
}
END_TEST

START_TEST(random_maps_have_right_tiles) {
  uint64_t n = share_of(6000);
  count = (tally){0};
  for (size_t i = 0; i < KL_COUNT(covers); i++) covers[i].n = 0;
  for (size_t i = 0; i < KL_COUNT(rejected); i++) rejected[i].n = 0;
  for (uint64_t i = 0; i < n; i++) {
    state = i * 7919 + 17;
    one_random();
    if (i % 64 == 63) close_pool(), open_pool();
  }
  printf("# %ld maps, %ld tilings, %ld tiles; %ld exact, %ld cover, %ld unknown; %ld boxes; symbolic: %ld, of which "
         "%ld hold, %ld of them exact\n",
         count.maps, count.tilings, count.tiles, count.exact, count.covers, count.unknown, count.boxes, count.symbolic,
         count.held, count.precise);
  print_reasons(covers, KL_COUNT(covers), "are covered", n == 6000);
  print_reasons(rejected, KL_COUNT(rejected), "are denied", n == 6000);
  ck_assert_int_eq(count.unknown, 0);
}
END_TEST

int main(void) {
  return RUN_TESTS("tiles", EACH(open_pool, close_pool), {known_maps, KL_COUNT(known)},
                   {wrong_once_is_right, KL_COUNT(wrong_once)}, {what_may_be_anything_is_unknown, KL_COUNT(anything)},
                   {strides_of_collapses, KL_COUNT(strides)}, {rank_eight_is_fast, KL_COUNT(eights)},
                   {random_maps_have_right_tiles});
}
