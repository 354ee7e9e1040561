// Results of several shapes. Where a value is needed at the very index of one result, and at a one-to-one map of some
// dims of another, tiles of the one can be those of the other: a sum of rows beside what is made from the rows and
// their sum, an array beside its transpose or reshape. Without that every tile of the one would go with every tile of
// the other.
#include "lower/analysis/tiles/walk.h"

enum { MOST_JOINED = 32 }; // shapes; of more, each has its own dims

result_shapes walk_result_shapes(kl_affs *p, const kl_instr *root) {
  kl_arena *arena = kl_affs_arena(p);
  result_shapes r = {.nleaves = (uint32_t)kl_shape_leaf_count(root->shape)};
  const kl_shape **leaves = KL_NEW_N(arena, const kl_shape *, r.nleaves + 1);
  const kl_shape **first = KL_NEW_N(arena, const kl_shape *, r.nleaves + 1);
  r.p = KL_NEW_N(arena, result_shape, r.nleaves + 1);
  r.of_leaf = KL_NEW_N(arena, uint32_t, r.nleaves + 1);
  kl_shape_leaves(root->shape, leaves);
  for (uint32_t l = 0; l < r.nleaves; l++) {
    uint32_t i = 0;
    r.of_leaf[l] = NO_RESULT_SHAPE;
    if (!kl_shape_is_array(leaves[l])) continue;
    while (i < r.n && !kl_shape_same_dims(first[i], leaves[l])) i++;
    r.of_leaf[l] = i;
    if (i < r.n) continue;
    first[r.n] = leaves[l];
    result_shape *s = &r.p[r.n++];
    s->rank = leaves[l]->rank;
    for (uint32_t d = 0; d < s->rank; d++) s->sizes[d] = leaves[l]->dims[d] < 0 ? INT64_MAX : leaves[l]->dims[d];
  }
  return r;
}

// Are all dims that the way has such of this shape?
static bool over(const tile_walk *w, const result_shapes *r, const way *x, uint32_t shape) {
  if (x->map->state != KL_MAP_DEFINED || !x->exact || x->remote) return false;
  for (uint32_t i = 0; i < x->ndims; i++)
    if (x->dims[i] < w->first_dim[shape] || x->dims[i] >= w->first_dim[shape] + r->p[shape].rank) return false;
  return true;
}

static bool is_whole(const kl_map *m, uint32_t dim, int64_t extent) {
  kl_interval in = m->vars[KL_AFF_DIM][dim].in;
  return in.lo == 0 && in.hi == extent - 1;
}

static bool is_identity(const tile_walk *w, const result_shapes *r, const way *x, uint32_t shape) {
  const result_shape *s = &r->p[shape];
  if (!over(w, r, x, shape) || x->map->nconstraints || x->map->nresults != s->rank) return false;
  for (uint32_t d = 0; d < s->rank; d++) { // a dimension of one element may be left out
    const kl_aff *e = x->map->results[d];
    uint32_t i = 0;
    while (i < x->ndims && x->dims[i] != w->first_dim[shape] + d) i++;
    if (i == x->ndims ? s->sizes[d] != 1 || !kl_aff_is_const(e)
                      : e != kl_aff_dim(w->p, i) || !is_whole(x->map, i, s->sizes[d]))
      return false;
  }
  return true;
}

// The converse where every index of the shape has one point of the way's dims; NULL where not, or not known.
static const kl_map *converse(const tile_walk *w, const result_shapes *r, const way *x, uint32_t with, uint32_t shape) {
  __int128 points = 1, elements = 1;
  const kl_map *m = x->map;
  if (!over(w, r, x, with) || m->nconstraints || m->nvars[KL_AFF_RT] || m->nresults != r->p[shape].rank) return NULL;
  for (uint32_t i = 0; i < x->ndims; i++) {
    int64_t extent = w->dims.p[x->dims[i]].extent;
    if (!is_whole(m, i, extent) || (points *= extent) > INT64_MAX) return NULL;
  }
  for (uint32_t d = 0; d < r->p[shape].rank; d++)
    if ((elements *= r->p[shape].sizes[d]) > INT64_MAX) return NULL;
  if (points != elements) return NULL;
  const kl_map *back = kl_map_invert(w->p, m, KL_MAP_QUOTA);
  return back->state == KL_MAP_DEFINED && !back->nvars[KL_AFF_RANGE] ? back : NULL;
}

// How one shape can go along with another one.
typedef struct edge {
  const kl_map *map; // NULL: it cannot
  uint32_t ndims;
  const uint32_t *dims; // by number of the dimension
} edge;

typedef struct graph {
  const tile_walk *w;
  result_shapes *r;
  edge *edges; // of shape i with shape k: i * n + k
} graph;

static edge *edge_of(const graph *g, uint32_t shape, uint32_t with) {
  return &g->edges[shape * g->r->n + with];
}

// `map`: from these dims of the space, which are those of `with`.
static void enter_edge(const graph *g, uint32_t shape, uint32_t with, const kl_map *map, uint32_t n,
                       const uint32_t *dims) {
  uint32_t *own = KL_NEW_N(kl_affs_arena(g->w->p), uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) own[i] = dims ? dims[i] - g->w->first_dim[with] : i;
  *edge_of(g, shape, with) = (edge){map, n, own};
}

// The way back is one where all dims take part, and bounds say all.
static bool is_plain(const kl_map *back, const result_shape *s) {
  bool plain = !back->nconstraints && !back->nvars[KL_AFF_RT] && back->nvars[KL_AFF_DIM] == s->rank;
  for (uint32_t d = 0; plain && d < s->rank; d++) plain = is_whole(back, d, s->sizes[d]);
  return plain;
}

// Two ways to one value: at the index of a shape, and from dims of another one.
static void connect(const graph *g, const way *from, const way *to) {
  for (uint32_t shape = 0; shape < g->r->n; shape++) {
    if (!is_identity(g->w, g->r, from, shape)) continue;
    for (uint32_t with = 0; with < g->r->n; with++) {
      if (with == shape || !g->r->p[with].rank || edge_of(g, shape, with)->map) continue;
      const kl_map *back = converse(g->w, g->r, to, with, shape);
      if (!back) continue;
      enter_edge(g, shape, with, to->map, to->ndims, to->dims);
      if (to->ndims == g->r->p[with].rank && !edge_of(g, with, shape)->map && is_plain(back, &g->r->p[shape]))
        enter_edge(g, with, shape, back, g->r->p[shape].rank, NULL);
    }
  }
}

// The index of a shape stands as it is among those of a value that is needed at the index of `with`, beside what is
// folded: a sum beside what it sums. Then it goes along with those dims.
static void connect_part(const graph *g, uint32_t shape, uint32_t with, const way *to) {
  const tile_walk *w = g->w;
  const result_shape *a = &g->r->p[shape], *b = &g->r->p[with];
  uint32_t *dims = KL_NEW_N(kl_affs_arena(w->p), uint32_t, b->rank + 1), n = 0;
  const kl_aff *results[KILN_MAX_RANK];
  int64_t sizes[KILN_MAX_RANK];
  for (uint32_t d = 0; d < a->rank; d++) results[d] = a->sizes[d] == 1 ? kl_aff_const(w->p, 0) : NULL;
  for (uint32_t r = 0; r < b->rank; r++)
    for (uint32_t i = 0; i < to->ndims; i++) {
      uint32_t d = to->dims[i] - w->first_dim[shape];
      if (d >= a->rank || results[d] || a->sizes[d] != b->sizes[r] || to->map->results[r] != kl_aff_dim(w->p, i))
        continue;
      results[d] = kl_aff_dim(w->p, n);
      sizes[n] = b->sizes[r];
      dims[n++] = r;
      break;
    }
  for (uint32_t d = 0; d < a->rank; d++)
    if (!results[d]) return;
  const kl_map *map = kl_map_with_results(w->p, kl_map_identity(w->p, n, sizes), results, a->rank);
  *edge_of(g, shape, with) = (edge){map, n, dims};
}

static void connect_parts(const graph *g, const way *from, const way *to) {
  for (uint32_t with = 0; with < g->r->n; with++) {
    if (!g->r->p[with].rank || !is_identity(g->w, g->r, from, with) || to->map->state != KL_MAP_DEFINED) continue;
    for (uint32_t shape = 0; shape < g->r->n; shape++)
      if (shape != with && !edge_of(g, shape, with)->map) connect_part(g, shape, with, to);
  }
}

static bool same_value(const kept *a, const kept *b) {
  return a->frame == b->frame && a->instr == b->instr && a->leaf == b->leaf;
}

static void connect_all(const graph *g) {
  const tile_walk *w = g->w;
  for (size_t first = 0, end; first < w->kept.n; first = end) { // the ways to one value
    for (end = first; end < w->kept.n && same_value(&w->kept.p[first], &w->kept.p[end]);) end++;
    for (size_t i = first; i < end; i++)
      for (size_t k = first; k < end; k++)
        if (i != k) {
          connect(g, &w->kept.p[i].way, &w->kept.p[k].way);
          connect_parts(g, &w->kept.p[i].way, &w->kept.p[k].way);
        }
  }
}

// The shape that most others can go along with, the first among equals; r->n if there is none.
static uint32_t leader(const graph *g, const bool *done) {
  uint32_t best = g->r->n, most = 0;
  for (uint32_t with = 0; with < g->r->n; with++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->r->n; i++) n += !done[i] && i != with && edge_of(g, i, with)->map;
    if (!done[with] && n > most) best = with, most = n;
  }
  return best;
}

bool walk_join_results(const tile_walk *w, result_shapes *r) {
  kl_arena *arena = kl_affs_arena(w->p);
  if (r->n < 2 || r->n > MOST_JOINED) return false;
  graph g = {w, r, KL_NEW_N(arena, edge, r->n * r->n + 1)};
  bool any = false, *done = KL_NEW_N(arena, bool, r->n + 1);
  connect_all(&g);
  for (uint32_t with; (with = leader(&g, done)) < r->n;) {
    done[with] = any = true;
    for (uint32_t i = 0; i < r->n; i++) {
      const edge *e = edge_of(&g, i, with);
      if (done[i] || !e->map) continue;
      done[i] = true;
      result_shape *s = &r->p[i];
      s->with = with, s->along = e->map, s->ndims = e->ndims, s->dims = e->dims;
    }
  }
  return any;
}
