// Good sizes of tiles: of candidates for each dim, those whose conditions hold, dim by dim; then limits and cost from
// the sizes of all tiles.
#include "lower/analysis/tiles/tiles.h"

#include <stdlib.h>

enum { SECTOR = 32, MOST_DIMS = 32 }; // bytes; dims behind the first ones are taken whole

static int64_t times(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}
static int64_t plus(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

typedef struct condition {
  const kl_tile_clause *clause;
  uint32_t last; // dim that it has: known once that is
} condition;

typedef struct search {
  kl_ctx *cx;
  kl_affs *p;
  kl_arena *arena;
  kl_tiling t; // of open sizes
  const kl_tile_limits *limits;
  VEC(condition) conditions;
  uint32_t *first_instr; // of frames, in `bytes`
  int64_t *bytes;        // by frame and instruction: of its largest tile
  uint64_t ninstr;
  int64_t *sizes;
  uint32_t ndims, looked; // ndims: that are searched
  bool stopped, fits;
  VEC(kl_tile_choice) found;
} search;

// --- what a tiling costs
// ----------------------------------------------------------------------------------------------

static int64_t steps(const search *s, uint32_t dim) {
  int64_t extent = s->t.dims[dim].extent;
  return extent <= 0 ? 1 : (extent - 1) / s->sizes[dim] + 1;
}

static const kl_instr *instr_of(const search *s, const kl_tiled *v) {
  return &s->t.frames[v->frame].comp->instr[v->instr];
}

static int64_t value_at(const search *s, const kl_aff *e) {
  kl_point at = {{NULL, s->sizes, NULL}};
  int64_t v;
  return kl_aff_eval(s->p, e, &at, &v) ? v : INT64_MAX;
}

static int64_t in_bytes(int64_t elements, int64_t bits) {
  int64_t all = times(elements, bits);
  return all == INT64_MAX ? all : (all + 7) / 8;
}

// Bytes of sectors that a run of n elements `stride` apart takes.
static int64_t run_bytes(int64_t n, int64_t stride, int64_t bits) {
  int64_t apart = stride < 0 ? -stride : stride;
  int64_t close = plus(in_bytes(plus(times(n - 1, apart), 1), bits), SECTOR - 1) / SECTOR;
  return times(n < close ? n : close, SECTOR);
}

typedef struct amount {
  int64_t elements, read; // read: bytes of sectors
} amount;

// Of one tile. A run goes on from a dimension to the next slower one where the tile has all of it.
static amount amount_of(const search *s, const kl_tiled *v) {
  const kl_shape *shape = kl_shape_leaf(instr_of(s, v)->shape, v->leaf);
  int64_t bits = kl_info(shape->dtype)->bits;
  amount all = {0, 0};
  if (v->tile.state == KL_TILE_UNKNOWN) return (amount){shape->count, plus(in_bytes(shape->count, bits), SECTOR - 1)};
  for (uint32_t b = 0; b < v->tile.nboxes; b++) {
    int64_t elements = 1, run = 1, stride = 1;
    bool on = true;
    for (uint32_t i = 0; i < shape->rank; i++) {
      uint32_t d = (uint32_t)kl_shape_minor_to_major(shape, i);
      int64_t n = value_at(s, v->tile.boxes[b].dims[d].size);
      if (n > shape->dims[d]) n = shape->dims[d];
      elements = times(elements, n);
      if (on) run = times(run, n);
      if (i == 0 && kl_aff_is_const(v->tile.boxes[b].dims[d].stride)) stride = v->tile.boxes[b].dims[d].stride->c;
      on &= n == shape->dims[d] && stride == 1;
    }
    all.elements = plus(all.elements, elements);
    if (run > 0) all.read = plus(all.read, times(elements / run, run_bytes(run, stride, bits)));
  }
  return all;
}

static bool computes(kl_op_kind k) {
  return k != KL_KIND_PARAMETER && k != KL_KIND_CONSTANT && k != KL_KIND_TUPLE && k != KL_KIND_GTE &&
         k != KL_KIND_CALL && k != KL_KIND_BITCAST && k != KL_KIND_FORWARD;
}

static int64_t *bytes_of(const search *s, uint32_t frame, uint32_t instr) {
  return &s->bytes[s->first_instr[frame] + instr];
}

static void add_value(search *s, const kl_tiled *v, kl_tile_choice *c) {
  kl_op_kind kind = kl_op_table[instr_of(s, v)->op].kind;
  const kl_shape *shape = kl_shape_leaf(instr_of(s, v)->shape, v->leaf);
  amount a = amount_of(s, v);
  int64_t often = c->blocks, bytes = in_bytes(a.elements, kl_info(shape->dtype)->bits), *most;
  for (uint32_t i = 0; i < v->ndims; i++)
    if (s->t.dims[v->dims[i]].sequential) often = times(often, steps(s, v->dims[i]));
  if (kind == KL_KIND_PARAMETER && v->frame == 0) c->cost = plus(c->cost, times(often, a.read));
  if (computes(kind)) c->cost = plus(c->cost, times(often, a.elements));
  s->fits &= a.elements <= s->limits->elements;
  most = bytes_of(s, v->frame, v->instr);
  if (bytes > *most) *most = bytes;
  if (kind == KL_KIND_TRANSPOSE) c->shared = plus(c->shared, bytes);
}

// Once the tiles of operands are known: those come behind their users.
static void add_operands(search *s, const kl_tiled *v, kl_tile_choice *c) {
  const kl_instr *in = instr_of(s, v);
  kl_op_kind kind = kl_op_table[in->op].kind;
  int64_t own = *bytes_of(s, v->frame, v->instr), all = 0;
  if (!computes(kind)) return;
  for (uint32_t i = 0; i < in->noperands; i++) all = plus(all, *bytes_of(s, v->frame, in->operands[i]));
  if (kind == KL_KIND_DOT || kind == KL_KIND_CONVOLUTION)
    c->shared = plus(c->shared, all);
  else
    own = plus(own, all);
  if (own > c->registers) c->registers = own;
}

static int64_t written(const search *s) {
  const kl_comp *c = s->t.frames[0].comp;
  const kl_shape *shape = kl_root(c)->shape;
  int64_t all = 0;
  for (uint32_t l = 0; l < kl_shape_leaf_count(shape); l++) {
    const kl_shape *leaf = kl_shape_leaf(shape, l);
    if (kl_shape_is_array(leaf)) all = plus(all, in_bytes(leaf->count, kl_info(leaf->dtype)->bits));
  }
  return all;
}

static void judge(search *s) {
  kl_tile_choice c = {.cost = written(s), .blocks = 1};
  s->fits = true;
  for (uint32_t d = 0; d < s->t.nparallel; d++) c.blocks = times(c.blocks, steps(s, d));
  memset(s->bytes, 0, s->ninstr * sizeof s->bytes[0]);
  for (uint32_t i = 0; i < s->t.n; i++) add_value(s, &s->t.values[i], &c);
  for (uint32_t i = 0; i < s->t.n; i++) add_operands(s, &s->t.values[i], &c);
  if (!s->fits || c.registers > s->limits->registers || c.shared > s->limits->shared) return;
  c.sizes = kl_arena_dup(s->arena, s->sizes, s->t.ndims * sizeof s->sizes[0]);
  VEC_PUSH(s->cx, &s->found, c);
}

// --- candidates
// -------------------------------------------------------------------------------------------------------

static uint32_t last_dim(const search *s, const kl_tile_clause *c) {
  uint32_t last = 0;
  bool *sizes = KL_NEW_N(s->arena, bool, s->t.ndims + 1);
  bool *const used[KL_AFF_VARS] = {[KL_AFF_RANGE] = sizes};
  const uint32_t n[KL_AFF_VARS] = {[KL_AFF_RANGE] = s->t.ndims};
  for (uint32_t i = 0; i < c->n; i++) kl_aff_mark(s->p, c->any[i].e, used, n);
  for (uint32_t i = 0; i < s->t.ndims; i++)
    if (sizes[i]) last = i;
  return last < s->ndims ? last : s->ndims - 1;
}

static bool same_clause(const kl_tile_clause *a, const kl_tile_clause *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (a->any[i].e != b->any[i].e || a->any[i].in.lo != b->any[i].in.lo || a->any[i].in.hi != b->any[i].in.hi)
      return false;
  return true;
}

// Conditions of all values, each once as far as it is found among the latest.
static void list_conditions(search *s) {
  for (uint32_t i = 0; i < s->t.n; i++) {
    const kl_map_tile *t = &s->t.values[i].tile;
    for (uint32_t k = 0; k < t->nclauses; k++) {
      bool there = false;
      for (size_t o = s->conditions.n; o-- > 0 && o + 64 > s->conditions.n && !there;)
        there = same_clause(s->conditions.p[o].clause, &t->clauses[k]);
      if (!there) VEC_PUSH(s->cx, &s->conditions, (condition){&t->clauses[k], last_dim(s, &t->clauses[k])});
    }
  }
}

static bool conditions_hold(const search *s, uint32_t dim) {
  for (size_t i = 0; i < s->conditions.n; i++) {
    if (s->conditions.p[i].last != dim) continue;
    kl_map_tile one = {.nclauses = 1, .clauses = s->conditions.p[i].clause};
    if (!kl_tile_clauses_hold(s->p, &one, s->sizes, s->t.ndims)) return false;
  }
  return true;
}

static void try_dim(search *s, uint32_t dim);

static void try_size(search *s, uint32_t dim, int64_t size) {
  s->sizes[dim] = size;
  s->stopped = s->stopped || s->looked++ >= s->limits->quota;
  if (!s->stopped && conditions_hold(s, dim)) try_dim(s, dim + 1);
}

// From large to small, so that what a quota leaves out is the small.
static void try_dim(search *s, uint32_t dim) {
  if (dim == s->ndims) {
    judge(s);
    return;
  }
  int64_t extent = s->t.dims[dim].extent > 1 ? s->t.dims[dim].extent : 1, power = 1;
  while (power < extent && power <= INT64_MAX / 2) power *= 2;
  try_size(s, dim, extent);
  for (; power > 0; power /= 2)
    if (power < extent && !(s->limits->divide && extent % power)) try_size(s, dim, power);
}

static int by_cost(const void *a, const void *b, void *n) {
  const kl_tile_choice *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  for (uint32_t i = 0; i < *(const uint32_t *)n; i++)
    if (x->sizes[i] != y->sizes[i]) return x->sizes[i] > y->sizes[i] ? -1 : 1;
  return 0;
}

const kl_tile_choice *kl_tiling_search(kl_affs *p, const kiln_module *m, const kl_comp *c, const kl_tile_limits *limits,
                                       uint32_t *n, bool *all) {
  search s = {.cx = kl_affs_context(p), .p = p, .arena = kl_affs_arena(p), .limits = limits};
  kl_tiling_make(p, m, c, NULL, 0, &s.t);
  s.sizes = KL_NEW_N(s.arena, int64_t, s.t.ndims + 1);
  s.ndims = s.t.ndims < MOST_DIMS ? s.t.ndims : MOST_DIMS;
  for (uint32_t i = 0; i < s.t.ndims; i++) s.sizes[i] = s.t.dims[i].extent > 1 ? s.t.dims[i].extent : 1;
  s.first_instr = KL_NEW_N(s.arena, uint32_t, s.t.nframes + 1);
  for (uint32_t f = 0; f < s.t.nframes; f++) {
    s.first_instr[f] = (uint32_t)s.ninstr;
    s.ninstr += s.t.frames[f].comp->ninstr;
  }
  s.bytes = KL_NEW_N(s.arena, int64_t, s.ninstr + 1);
  list_conditions(&s);
  try_dim(&s, 0);
  if (s.found.n) qsort_r(s.found.p, s.found.n, sizeof s.found.p[0], by_cost, &s.t.ndims);
  if (s.found.n > limits->most) s.found.n = limits->most;
  *n = (uint32_t)s.found.n;
  *all = !s.stopped;
  VEC_FREE(s.cx, &s.conditions);
  return VEC_FREEZE(s.cx, s.arena, &s.found);
}
