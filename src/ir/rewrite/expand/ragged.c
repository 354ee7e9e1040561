// ragged-dot as a dot of tiles that belong to one group each.
//
// Where rows of the left operand are in groups, each group's rows are padded to whole tiles: with G groups that is at
// most G (T - 1) rows more than there are, whatever the groups' sizes. Tile t of group e(t) is a batch of one dot,
// whose left operand is gathered rows and whose right operand is gathered matrices; both are read where they lie. A
// gather puts the rows in their places. Where groups have few rows, each row is a tile, and there is nothing to pad. So
// the work is that of one dot, and each sum has the order of one.
//
// Where what is summed is in groups, tiles are pieces of the sums; those of a group are added by a scatter, unless a
// tile is as long as all of it.
#include "ir/rewrite/expand/room.h"

enum {
  FEWEST_ROWS = 16, // of a tile worth padding
  FEW_IN_GROUP = 4, // rows of a group, on average, that are tiles of their own
  LEAST_TILE = 32,
  MOST_TILE = 128,
  REUSE = 32,      // products of numbers that take the time of reading one
  SMALL = 1 << 24, // products that are not worth a launch more
};

// Operands as left [b,m,k] and right [b,g,k,n], or [b,k,n] where the groups are of k.
typedef struct ragged {
  kl_graph *g;
  const kl_instr *in;
  int64_t b, m, k, groups, n;
  bool sums; // groups are of what is summed
  uint32_t left, right, sizes;
  kl_dtype index; // of rows, tiles and groups
} ragged;

static bool contains(kl_ints list, int64_t d) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.p[i] == d) return true;
  return false;
}

static bool is_batch(const kl_instr *in) {
  return contains(in->more->lhs_batch, in->more->lhs_ragged.p[0]);
}
static bool is_of_sums(const kl_instr *in) {
  return contains(in->more->lhs_contracting, in->more->lhs_ragged.p[0]);
}

static int64_t size_of(const kl_shape *s, kl_ints dims) {
  int64_t n = 1;
  for (uint32_t i = 0; i < dims.n; i++) n *= s->dims[dims.p[i]];
  return n;
}

// A ragged dimension is the only one of its kind, and sizes are one list, or one for each batch.
static bool takes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  const kl_more *more = in->more;
  const kl_shape *lhs = kl_operand(c, in, 0)->shape, *sizes = kl_operand(c, in, 2)->shape;
  if (lhs->dynamic || kl_operand(c, in, 1)->shape->dynamic || more->lhs_ragged.n != 1) return false;
  if (is_batch(in)) return true;
  int64_t groups = sizes->dims[sizes->rank - 1], batches = size_of(lhs, more->lhs_batch);
  bool alone =
      is_of_sums(in) ? more->lhs_contracting.n == 1 : lhs->rank == more->lhs_batch.n + more->lhs_contracting.n + 1;
  return alone && (sizes->count == groups || sizes->count == groups * batches);
}

// Numbers up to what tiles and their rows reach.
static kl_dtype index_type(int64_t rows, int64_t groups) {
  return rows < INT32_MAX / 4 && groups < INT32_MAX / 4 / MOST_TILE ? KILN_S32 : KILN_S64;
}

// Pieces of sums are added in the type that sums have.
static kl_dtype sum_type(const kl_shape *lhs, const kl_shape *rhs, kl_dtype result) {
  kl_dtype own[] = {lhs->dtype, rhs->dtype};
  for (int i = 0; i < 2; i++)
    if (kl_is_float(result) && own[i] == KILN_F64) return KILN_F64;
  for (int i = 0; i < 2; i++)
    if (kl_is_complex(result) && own[i] == KILN_C128) return KILN_C128;
  return kl_is_float(result) && kl_info(result)->bits < 32 ? KILN_F32 : result;
}

static void reducers(kl_graph *g, const kl_comp *c, const kl_instr *in) {
  const kl_shape *lhs = kl_operand(c, in, 0)->shape, *rhs = kl_operand(c, in, 1)->shape;
  kl_dtype t = sum_type(lhs, rhs, in->shape->dtype);
  kl_graph_combiner(g, KL_COMBINE_ADD, KILN_S32);
  kl_graph_combiner(g, KL_COMBINE_ADD, KILN_S64);
  kl_graph_combiner(g, t == KILN_PRED ? KL_COMBINE_OR : KL_COMBINE_ADD, t);
}

// --- operands -------------------------------------------------------------------------------------------------------

static uint32_t append(uint32_t n, int64_t *to, kl_ints dims) {
  for (uint32_t i = 0; i < dims.n; i++) to[n++] = dims.p[i];
  return n;
}

// Dimensions in these lists' order, the last of all that no list has; each list is one dimension.
static uint32_t in_order(kl_graph *g, uint32_t a, uint32_t n, const kl_ints *lists, int free_at, uint32_t rank,
                         const int64_t *dims) {
  const kl_shape *s = kl_graph_shape(g, a);
  int64_t order[KILN_MAX_RANK];
  uint32_t at = 0;
  for (uint32_t i = 0; i <= n; i++) {
    for (uint32_t d = 0; (int)i == free_at && d < s->rank; d++) {
      bool listed = false;
      for (uint32_t k = 0; k < n; k++) listed |= contains(lists[k], d);
      if (!listed) order[at++] = d;
    }
    if (i < n) at = append(at, order, lists[i]);
  }
  return kl_graph_reshape(g, kl_graph_transpose(g, a, order), rank, dims);
}

static ragged operands_of(const kl_expansion *x) {
  kl_graph *g = x->g;
  const kl_more *more = x->in->more;
  const kl_shape *lhs = kl_graph_shape(g, x->operands[0]), *rhs = kl_graph_shape(g, x->operands[1]);
  const kl_shape *sizes = kl_graph_shape(g, x->operands[2]);
  ragged r = {.g = g, .in = x->in, .sums = is_of_sums(x->in), .sizes = x->operands[2]};
  r.b = size_of(lhs, more->lhs_batch);
  r.k = size_of(lhs, more->lhs_contracting);
  r.groups = sizes->dims[sizes->rank - 1];
  r.m = r.n = 1;
  for (uint32_t d = 0; d < lhs->rank; d++)
    if (!contains(more->lhs_batch, d) && !contains(more->lhs_contracting, d)) r.m *= lhs->dims[d];
  for (uint32_t d = 0; d < rhs->rank; d++)
    if (!contains(more->rhs_batch, d) && !contains(more->rhs_contracting, d) && !contains(more->rhs_group, d))
      r.n *= rhs->dims[d];
  r.index = index_type(r.sums ? r.k : r.m, r.groups);
  if (!r.b || !r.m || !r.k || !r.groups || !r.n) return r;
  kl_ints left[] = {more->lhs_batch, more->lhs_contracting};
  kl_ints right[] = {more->rhs_batch, more->rhs_group, more->rhs_contracting};
  r.left = in_order(g, x->operands[0], 2, left, 1, 3, (int64_t[]){r.b, r.m, r.k});
  int64_t grouped[] = {r.b, r.groups, r.k, r.n}, plain[] = {r.b, r.k, r.n};
  r.right = in_order(g, x->operands[1], 3, right, 3, r.sums ? 3 : 4, r.sums ? plain : grouped);
  return r;
}

// --- groups ---------------------------------------------------------------------------------------------------------

static uint32_t op(const ragged *r, kl_op what, uint32_t a, uint32_t b) {
  return kl_graph_binary(r->g, what, a, b);
}

// Sizes from 0 to all that there is, [b,groups].
static uint32_t clamped_sizes(const ragged *r) {
  kl_graph *g = r->g;
  uint32_t s = r->sizes;
  int64_t all[] = {r->b, r->groups}, most = r->sums ? r->k : r->m;
  bool listed = kl_graph_shape(g, s)->count != r->groups || r->b == 1;
  if (kl_graph_shape(g, s)->dtype == KILN_U64) s = kl_graph_with(g, KL_OP_MINIMUM, s, most);
  s = kl_graph_with(g, KL_OP_MAXIMUM, kl_graph_convert(g, s, KILN_S64), 0);
  s = kl_graph_convert(g, kl_graph_with(g, KL_OP_MINIMUM, s, most), r->index);
  if (listed) return kl_graph_reshape(g, s, 2, all);
  return kl_graph_broadcast(g, kl_graph_flat(g, s), 2, all, (int64_t[]){1});
}

// Sums of a row up to each place, [b,groups], none beyond `most`: what is cut off each time cannot overflow.
static uint32_t ends_of(const ragged *r, uint32_t sizes, int64_t most) {
  kl_graph *g = r->g;
  uint32_t wide = kl_graph_scan(g, kl_graph_convert(g, sizes, KILN_S64), KL_COMBINE_ADD);
  return kl_graph_convert(g, kl_graph_with(g, KL_OP_MINIMUM, wide, most), r->index);
}

// What comes before each place.
static uint32_t before(const ragged *r, uint32_t ends) {
  return kl_graph_pad(r->g, ends, 1, 1, -1);
}

// 0 .. n - 1 for each batch, [b,n].
static uint32_t numbers(const ragged *r, int64_t n) {
  return kl_graph_iota(r->g, r->index, 2, (int64_t[]){r->b, n}, 1);
}

// For each i of 0 .. n - 1 the sum of what groups have whose place is i or before it. [b,n]
static uint32_t sum_up_to(const ragged *r, uint32_t places, uint32_t values, int64_t n) {
  kl_graph *g = r->g;
  int64_t all[] = {r->b, n, r->groups};
  uint32_t place = kl_graph_broadcast(g, places, 3, all, (int64_t[]){0, 2});
  uint32_t passed = kl_graph_compare(g, KL_LE, place, kl_graph_iota(g, r->index, 3, all, 1));
  uint32_t value = kl_graph_broadcast(g, values, 3, all, (int64_t[]){0, 2});
  value = kl_graph_select(g, passed, value, kl_graph_number(g, r->index, 0, 3, all));
  return kl_graph_reduce(g, value, 2, KL_COMBINE_ADD);
}

// The group that each i is in, by where groups end: as many as end at it or before it.
static uint32_t groups_of(const ragged *r, uint32_t ends, int64_t n) {
  return sum_up_to(r, ends, kl_graph_number(r->g, r->index, 1, 2, (int64_t[]){r->b, r->groups}), n);
}

// --- tiles ----------------------------------------------------------------------------------------------------------

// Groups padded to tiles of `size`: all of them [b,groups].
typedef struct tiles {
  int64_t size, n;                    // at most so many are not empty
  uint32_t sizes, own, ends, padding; // of each group: rows, tiles, where tiles end, rows that are none
} tiles;

static tiles make_tiles(const ragged *r, uint32_t sizes, int64_t size, int64_t rows) {
  kl_graph *g = r->g;
  tiles t = {.size = size, .sizes = sizes};
  t.n = (rows + r->groups * (size - 1)) / size;
  if (t.n > rows) t.n = rows;
  t.own = kl_graph_with(g, KL_OP_DIVIDE, kl_graph_with(g, KL_OP_ADD, sizes, size - 1), size);
  t.ends = ends_of(r, t.own, t.n);
  t.padding = op(r, KL_OP_SUBTRACT, kl_graph_with(g, KL_OP_MULTIPLY, t.own, size), sizes);
  return t;
}

// The rows of tiles, [b,n,size]: those of the padded groups less the padding before.
static uint32_t rows_of(const ragged *r, const tiles *t) {
  kl_graph *g = r->g;
  int64_t all[] = {r->b, t->n, t->size};
  uint32_t padded = kl_graph_with(g, KL_OP_MULTIPLY, numbers(r, t->n), t->size);
  uint32_t first = op(r, KL_OP_SUBTRACT, padded, sum_up_to(r, t->ends, t->padding, t->n));
  return op(r, KL_OP_ADD, kl_graph_broadcast(g, first, 3, all, (int64_t[]){0, 1}),
            kl_graph_iota(g, r->index, 3, all, 2));
}

// Where rows are among those of tiles, [b,n]; behind all of them, where they are behind the last group.
static uint32_t places_of(const ragged *r, const tiles *t, uint32_t ends, int64_t n) {
  kl_graph *g = r->g;
  int64_t all[] = {r->b, r->groups};
  uint32_t last = kl_graph_compare_with(g, KL_EQ, numbers(r, r->groups), r->groups - 1);
  uint32_t behind = kl_graph_number(g, r->index, t->n * t->size, 2, all);
  uint32_t padding = kl_graph_select(g, last, behind, t->padding);
  return op(r, KL_OP_ADD, numbers(r, n), sum_up_to(r, ends, padding, n));
}

// --- dots -----------------------------------------------------------------------------------------------------------

static kl_ints list(kl_graph *g, uint32_t n, const int64_t *dims) {
  return (kl_ints){n, kl_arena_dup(&g->m->arena, dims, n * sizeof *dims)};
}

// Of [b..,m,k] and [b..,k,n], in this type.
static uint32_t dot(const ragged *r, uint32_t left, uint32_t right, kl_dtype type) {
  static const int64_t batches[] = {0, 1};
  kl_graph *g = r->g;
  kl_more *more = kl_arena_dup(&g->m->arena, r->in->more, sizeof *more);
  const kl_shape *a = kl_graph_shape(g, left), *b = kl_graph_shape(g, right);
  uint32_t n = b->rank - 2;
  int64_t dims[KILN_MAX_RANK], k = n, last = a->rank - 1;
  more->lhs_batch = more->rhs_batch = list(g, n, batches);
  more->lhs_contracting = list(g, 1, &last);
  more->rhs_contracting = list(g, 1, &k);
  more->lhs_ragged = more->rhs_group = (kl_ints){0};
  memcpy(dims, a->dims, (size_t)last * sizeof *dims);
  dims[last] = b->dims[n + 1];
  return kl_graph_dot(g, left, right, more, r->in->given >> 2 & 0x30, type, a->rank, dims);
}

// y where there is a group, else 0; `there`: [b,m].
static uint32_t or_zero(const ragged *r, uint32_t there, uint32_t y) {
  kl_graph *g = r->g;
  int64_t all[] = {r->b, r->m, r->n};
  uint32_t zero = kl_graph_bits(g, r->in->shape->dtype, (uint64_t[2]){0, 0}, 3, all);
  return kl_graph_select(g, kl_graph_broadcast(g, there, 3, all, (int64_t[]){0, 1}), y, zero);
}

// Each row with its group's matrix: [b,m,n].
static uint32_t row_by_row(const ragged *r, uint32_t ends) {
  uint32_t group = groups_of(r, ends, r->m), there = kl_graph_compare_with(r->g, KL_LT, group, r->groups);
  return or_zero(r, there, dot(r, r->left, kl_graph_take(r->g, r->right, group), r->in->shape->dtype));
}

static int64_t tile_of_rows(const ragged *r) {
  int64_t tile = LEAST_TILE;
  while (tile < MOST_TILE && tile * tile < REUSE * (r->m / r->groups)) tile *= 2;
  return tile;
}

static uint32_t tile_by_tile(const ragged *r, uint32_t sizes, uint32_t ends) {
  kl_graph *g = r->g;
  tiles t = make_tiles(r, sizes, tile_of_rows(r), r->m);
  int64_t padded[] = {r->b, t.n * t.size, r->n};
  uint32_t left = kl_graph_take(g, r->left, rows_of(r, &t));
  uint32_t right = kl_graph_take(g, r->right, groups_of(r, t.ends, t.n));
  uint32_t y = kl_graph_reshape(g, dot(r, left, right, r->in->shape->dtype), 3, padded);
  uint32_t place = places_of(r, &t, ends, r->m);
  return or_zero(r, kl_graph_compare_with(g, KL_LT, place, t.n * t.size), kl_graph_take(g, y, place));
}

static uint32_t of_rows(const ragged *r) {
  uint32_t sizes = clamped_sizes(r), ends = ends_of(r, sizes, r->m);
  bool few = r->m < FEWEST_ROWS || r->m / r->groups <= FEW_IN_GROUP;
  if (few) return row_by_row(r, ends);
  return tile_by_tile(r, op(r, KL_OP_SUBTRACT, ends, before(r, ends)), ends);
}

// --- groups of what is summed ---------------------------------------------------------------------------------------

// Where a tile has no pair, both factors are 0: [b,tiles,...,tile,...], pairs in dimension `dim`.
static uint32_t masked(const ragged *r, uint32_t there, uint32_t a, int64_t dim) {
  kl_graph *g = r->g;
  const kl_shape *s = kl_graph_shape(g, a);
  uint32_t zero = kl_graph_bits(g, s->dtype, (uint64_t[2]){0, 0}, s->rank, s->dims);
  return kl_graph_select(g, kl_graph_broadcast(g, there, s->rank, s->dims, (int64_t[]){0, 1, dim}), a, zero);
}

// Pieces of sums, [b,tiles,m,n], with a tile's rows of pairs, [b,tiles,tile], as far as they are before `end`,
// [b,tiles].
static uint32_t pieces(const ragged *r, uint32_t rows, uint32_t end, kl_dtype type) {
  kl_graph *g = r->g;
  const kl_shape *s = kl_graph_shape(g, rows);
  uint32_t there = kl_graph_compare(g, KL_LT, rows, kl_graph_broadcast(g, end, 3, s->dims, (int64_t[]){0, 1}));
  uint32_t left = kl_graph_take(g, kl_graph_transpose(g, r->left, (int64_t[]){0, 2, 1}), rows);
  left = kl_graph_transpose(g, masked(r, there, left, 2), (int64_t[]){0, 1, 3, 2});
  return dot(r, left, masked(r, there, kl_graph_take(g, r->right, rows), 2), type);
}

// Added to what their group has, [groups,b,m,n]; tiles behind the last group have none.
static uint32_t added_up(const ragged *r, uint32_t all, uint32_t of_tile, int64_t n, kl_dtype type) {
  kl_graph *g = r->g;
  int64_t result[] = {r->groups, r->b, r->m, r->n}, flat[] = {r->b * n, r->m, r->n};
  uint32_t batch = kl_graph_iota(g, r->index, 2, (int64_t[]){r->b, n}, 0);
  uint32_t at[] = {kl_graph_flat(g, of_tile), kl_graph_flat(g, batch)};
  uint32_t zero = kl_graph_bits(g, type, (uint64_t[2]){0, 0}, 4, result);
  return kl_graph_scatter_rows(g, zero, 2, at, kl_graph_reshape(g, all, 3, flat),
                               type == KILN_PRED ? KL_COMBINE_OR : KL_COMBINE_ADD);
}

// As long as a group is on average; all of it where there is little to do.
static int64_t tile_of_sums(const ragged *r) {
  int64_t tile = LEAST_TILE, products;
  bool small = !__builtin_mul_overflow(r->groups * r->k, r->b * r->m, &products) &&
               !__builtin_mul_overflow(products, r->n, &products) && products <= SMALL;
  while (tile < r->k / r->groups) tile *= 2;
  return small || tile >= r->k ? r->k : tile;
}

// Each group's pairs from its first on, as many as there are of all groups.
static uint32_t group_by_group(const ragged *r, uint32_t ends) {
  kl_graph *g = r->g;
  int64_t all[] = {r->b, r->groups, r->k};
  uint32_t first = kl_graph_broadcast(g, before(r, ends), 3, all, (int64_t[]){0, 1});
  uint32_t rows = op(r, KL_OP_ADD, first, kl_graph_iota(g, r->index, 3, all, 2));
  return kl_graph_transpose(g, pieces(r, rows, ends, r->in->shape->dtype), (int64_t[]){1, 0, 2, 3});
}

static uint32_t of_sums(const ragged *r) {
  kl_graph *g = r->g;
  kl_dtype type = r->in->shape->dtype, own = sum_type(kl_graph_shape(g, r->left), kl_graph_shape(g, r->right), type);
  uint32_t ends = ends_of(r, clamped_sizes(r), r->k), sizes = op(r, KL_OP_SUBTRACT, ends, before(r, ends));
  int64_t tile = tile_of_sums(r);
  if (tile == r->k) return group_by_group(r, ends);
  tiles t = make_tiles(r, sizes, tile, r->k);
  uint32_t end = sum_up_to(r, before(r, t.ends), t.sizes, t.n); // of the tile's group
  uint32_t all = pieces(r, rows_of(r, &t), end, own);
  return kl_graph_convert(g, added_up(r, all, groups_of(r, t.ends, t.n), t.n, own), type);
}

// --- all of them ----------------------------------------------------------------------------------------------------

// Groups of batches are batches.
static uint32_t plain(const kl_expansion *x) {
  const kl_more *from = x->in->more;
  kl_more *more = kl_arena_dup(&x->g->m->arena, from, sizeof *more);
  more->lhs_ragged = more->rhs_group = (kl_ints){0};
  return kl_graph_dot(x->g, x->operands[0], x->operands[1], more, x->in->given >> 2 & 0x30, x->in->shape->dtype,
                      x->in->shape->rank, x->in->shape->dims);
}

static uint32_t write(const kl_expansion *x) {
  const kl_shape *s = x->in->shape;
  if (is_batch(x->in)) return plain(x);
  ragged r = operands_of(x);
  if (!r.b || !r.m || !r.k || !r.groups || !r.n)
    return kl_graph_bits(x->g, s->dtype, (uint64_t[2]){0, 0}, s->rank, s->dims);
  return kl_graph_reshape(x->g, r.sums ? of_sums(&r) : of_rows(&r), s->rank, s->dims);
}

const kl_expander kl_expand_ragged = {takes, reducers, write};
