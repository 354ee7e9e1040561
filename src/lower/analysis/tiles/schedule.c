// Which block makes which tiles. Blocks that run together are neighbours in the order of tiles; of a contraction they
// should share a tile of one operand, and go on along the other one while the first stays in the cache.
#include "lower/analysis/tiles/tiles.h"

// Result dimensions of a contraction: some of nothing or of groups, batch, left's free, right's free.
typedef struct contraction {
  uint32_t rows, columns, end; // where left's free dimensions, right's begin, and where those end
  int64_t nrows, ncolumns;     // elements along them, those beyond 64 bits as INT64_MAX
} contraction;

static int64_t extent_of(const kl_shape *s, uint32_t first, uint32_t end) {
  int64_t n = 1;
  for (uint32_t d = first; d < end; d++)
    if (__builtin_mul_overflow(n, s->dims[d], &n)) return INT64_MAX;
  return n;
}

static contraction read_contraction(const kl_comp *c, const kl_instr *in) {
  const kl_more *m = in->more;
  const kl_shape *left = kl_operand(c, in, 0)->shape, *right = kl_operand(c, in, 1)->shape, *out = in->shape;
  contraction x = {.end = out->rank};
  x.columns = out->rank - (right->rank - m->rhs_batch.n - m->rhs_contracting.n - m->rhs_group.n);
  x.rows = x.columns - (left->rank - m->lhs_batch.n - m->lhs_contracting.n);
  x.nrows = extent_of(out, x.rows, x.columns);
  x.ncolumns = extent_of(out, x.columns, x.end);
  return x;
}

// Of a contraction whose groups of rows are data, those of one group.
static int64_t rows_at_once(const kl_comp *c, const kl_instr *in, int64_t rows) {
  const kl_shape *sizes = kl_operand(c, in, 2)->shape;
  int64_t groups = sizes->rank ? sizes->dims[sizes->rank - 1] : 1;
  return groups > 1 ? rows / groups : rows;
}

static void mark(kl_affs *p, const kl_tiled *v, uint32_t first, uint32_t end, bool *of_space) {
  bool *own = KL_NEW_N(kl_affs_arena(p), bool, v->ndims + 1);
  bool *const used[KL_AFF_VARS] = {[KL_AFF_DIM] = own};
  const uint32_t n[KL_AFF_VARS] = {[KL_AFF_DIM] = v->ndims};
  for (uint32_t r = first; r < end; r++) kl_aff_mark(p, v->map->results[r], used, n);
  for (uint32_t i = 0; i < v->ndims; i++) of_space[v->dims[i]] |= own[i];
}

// Dims that only rows of the first contraction depend on, if they are to vary fastest.
static void find_rows(kl_affs *p, const kl_tiling *t, bool *fastest) {
  bool *columns = KL_NEW_N(kl_affs_arena(p), bool, t->ndims + 1);
  for (uint32_t i = 0; i < t->n; i++) {
    const kl_tiled *v = &t->values[i];
    const kl_comp *c = t->frames[v->frame].comp;
    const kl_instr *in = &c->instr[v->instr];
    if (kl_op_table[in->op].kind != KL_KIND_DOT || v->map->state != KL_MAP_DEFINED) continue;
    contraction x = read_contraction(c, in);
    if (in->op == KL_OP_RAGGED_DOT && rows_at_once(c, in, x.nrows) >= x.ncolumns) return;
    mark(p, v, x.rows, x.columns, fastest);
    mark(p, v, x.columns, x.end, columns);
    for (uint32_t d = 0; d < t->ndims; d++) fastest[d] &= !columns[d];
    return;
  }
}

static const uint32_t *order_of(kl_affs *p, const kl_tiling *t) {
  bool *fastest = KL_NEW_N(kl_affs_arena(p), bool, t->ndims + 1);
  uint32_t *order = KL_NEW_N(kl_affs_arena(p), uint32_t, t->nparallel + 1), n = 0;
  find_rows(p, t, fastest);
  for (int last = 0; last < 2; last++)
    for (uint32_t d = 0; d < t->nparallel; d++)
      if (fastest[d] == (last == 1)) order[n++] = d;
  return order;
}

// Tiles along a dim; 0 where its size is open.
static int64_t steps(const kl_tiling_dim *d) {
  if (!kl_aff_is_const(d->size)) return 0;
  return d->extent <= 0 ? 1 : (d->extent - 1) / d->size->c + 1;
}

bool kl_tile_schedule_make(kl_affs *p, const kl_tiling *t, int64_t per_block, kl_tile_schedule *out) {
  int64_t all = 1;
  for (uint32_t d = 0; d < t->nparallel; d++) {
    int64_t n = steps(&t->dims[d]);
    if (!n || __builtin_mul_overflow(all, n, &all)) return false;
  }
  if (per_block > all) per_block = all;
  *out = (kl_tile_schedule){.order = order_of(p, t), .per_block = per_block, .tiles = all};
  out->blocks = (all - 1) / per_block + 1;
  kl_map_var block = {.in = {0, out->blocks - 1}}, step = {.in = {0, per_block - 1}};
  const kl_aff *at = kl_aff_add(p, kl_aff_mulc(p, kl_aff_dim(p, 0), per_block), kl_aff_range(p, 0));
  const kl_aff **tiles = KL_NEW_N(kl_affs_arena(p), const kl_aff *, t->nparallel + 1);
  kl_constraint there = {at, {0, all - 1}};
  for (uint32_t i = t->nparallel; i-- > 0;) {
    int64_t n = steps(&t->dims[out->order[i]]);
    tiles[out->order[i]] = i ? kl_aff_modc(p, at, n) : at;
    at = kl_aff_floordivc(p, at, n);
  }
  kl_map m = {.state = KL_MAP_DEFINED, .nresults = t->nparallel, .results = tiles, .nconstraints = 1};
  m.constraints = &there;
  m.nvars[KL_AFF_DIM] = m.nvars[KL_AFF_RANGE] = 1;
  m.vars[KL_AFF_DIM] = &block, m.vars[KL_AFF_RANGE] = &step;
  out->map = kl_map_simplify(p, kl_map_make(p, &m), 0);
  return true;
}
