// From the ways in which values are needed to their tiles, over the variables of the whole space.
#include "lower/analysis/tiles/walk.h"

typedef struct maker {
  tile_walk *w;
  kl_affs *p;
  kl_ctx *cx;
  kl_arena *arena;
  kl_tiling *out;
  kl_tiling_dim *dims;
  VEC(kl_tiling_runtime) runtimes;
  VEC(kl_tiled) values;
  kl_ids ids;          // by what tiles follow from
  VEC(uint32_t) first; // by those numbers: the first value of such a tile
  const kept *asked;   // for ids
} maker;

// --- sizes ----------------------------------------------------------------------------------------------------------

static void set_sizes(maker *k, const int64_t *sizes, uint32_t nsizes) {
  for (uint32_t i = 0; i < k->w->dims.n; i++) {
    kl_tiling_dim *d = &k->dims[i];
    int64_t most = d->extent > 1 ? d->extent : 1, size = nsizes == 0 ? 0 : i < nsizes ? sizes[i] : most;
    d->size =
        size <= 0 && most > 1 ? kl_aff_range(k->p, i) : kl_aff_const(k->p, size > most || size <= 0 ? most : size);
  }
}

// --- runtime values -------------------------------------------------------------------------------------------------

// One value for a whole tile? Its index then has only dims of size 1, or none; of sizes that are open, that is asked
// for. And what it has of other runtime variables are such that have one value.
static bool fixed(const kl_map_var *rt, const maker *k, const way *x, const bool *loose, bool *ask) {
  uint32_t nrt = x->map->nvars[KL_AFF_RT];
  bool dims[KL_TILE_MOST_VARIABLES] = {false}, *rts = KL_NEW_N(k->arena, bool, nrt + 1);
  bool *const used[KL_AFF_VARS] = {[KL_AFF_DIM] = dims, [KL_AFF_RT] = rts};
  const uint32_t n[KL_AFF_VARS] = {[KL_AFF_DIM] = x->ndims, [KL_AFF_RT] = nrt};
  for (uint32_t i = 0; i < rt->from.nindex; i++) kl_aff_mark(k->p, rt->from.index[i], used, n);
  for (uint32_t i = 0; i < nrt; i++)
    if (rts[i] && loose[i]) return false;
  for (uint32_t i = 0; i < x->ndims; i++) {
    const kl_aff *size = k->dims[x->dims[i]].size;
    if (!dims[i] || (kl_aff_is_const(size) && size->c == 1)) continue;
    if (kl_aff_is_const(size)) return false;
    ask[i] = true;
  }
  return true;
}

// Marks runtime variables that have several values in a tile. Those that depend on one are such too.
static bool mark_loose(const maker *k, const way *x, bool *loose, bool *ask) {
  uint32_t n = x->map->nvars[KL_AFF_RT];
  bool any = false;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < n; i++) {
      if (loose[i] || fixed(&x->map->vars[KL_AFF_RT][i], k, x, loose, ask)) continue;
      loose[i] = more = any = true;
    }
  }
  return any;
}

// Runtime variables that are others from point to point of a tile become ranges: any value.
static const kl_map *spread(maker *k, const way *x, const bool *loose) {
  const kl_map *m = x->map;
  uint32_t nrt = m->nvars[KL_AFF_RT], nloose = 0, nkept = 0;
  const kl_aff **to = KL_NEW_N(k->arena, const kl_aff *, nrt + 1);
  kl_map_var *ranges = KL_NEW_N(k->arena, kl_map_var, nrt + 1), *rts = KL_NEW_N(k->arena, kl_map_var, nrt + 1);
  for (uint32_t i = 0; i < nrt; i++) {
    kl_map_var v = m->vars[KL_AFF_RT][i];
    to[i] = loose[i] ? kl_aff_range(k->p, nloose) : kl_aff_rt(k->p, nkept);
    if (loose[i])
      ranges[nloose++] = (kl_map_var){.in = v.in};
    else
      rts[nkept++] = v;
  }
  kl_aff_subst s = {.to = {[KL_AFF_RT] = to}, .n = {[KL_AFF_RT] = nrt}};
  for (uint32_t i = 0; i < nkept; i++) {
    const kl_aff **index = KL_NEW_N(k->arena, const kl_aff *, rts[i].from.nindex + 1);
    kl_aff_replace(k->p, &s, rts[i].from.index, rts[i].from.nindex, index);
    rts[i].from.index = index;
  }
  kl_map r = *m;
  const kl_aff **results = KL_NEW_N(k->arena, const kl_aff *, m->nresults + 1);
  kl_constraint *cs = KL_NEW_N(k->arena, kl_constraint, m->nconstraints + 1);
  kl_aff_replace(k->p, &s, m->results, m->nresults, results);
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    cs[i] = m->constraints[i];
    kl_aff_replace(k->p, &s, &m->constraints[i].e, 1, &cs[i].e);
  }
  r.nvars[KL_AFF_RANGE] = nloose, r.nvars[KL_AFF_RT] = nkept;
  r.vars[KL_AFF_RANGE] = ranges, r.vars[KL_AFF_RT] = rts;
  r.results = results, r.constraints = cs;
  return kl_map_make(k->p, &r);
}

// The number of a runtime variable in the whole space; its index over numbers of tiles: where it counts, of size 1.
static uint32_t enter_runtime(maker *k, const kl_map_var *v, const kl_aff_subst *to) {
  const kl_aff **index = KL_NEW_N(k->arena, const kl_aff *, v->from.nindex + 1);
  kl_aff_replace(k->p, to, v->from.index, v->from.nindex, index);
  for (uint32_t i = 0; i < k->runtimes.n; i++) {
    const kl_tiling_runtime *o = &k->runtimes.p[i];
    bool same = o->from.id == v->from.id && o->from.nindex == v->from.nindex && o->in.lo == v->in.lo &&
                o->in.hi == v->in.hi && v->from.id;
    for (uint32_t j = 0; same && j < v->from.nindex; j++) same = o->from.index[j] == index[j];
    if (same) return i;
  }
  kl_tiling_runtime r = {v->in, v->from};
  r.from.index = index;
  VEC_PUSH(k->cx, &k->runtimes, r);
  return (uint32_t)k->runtimes.n - 1;
}

// Enters the map's runtime variables, those that others depend on first. to[i] is not NULL for those that are entered.
static void enter_runtimes(maker *k, const kl_map *m, const kl_aff_subst *points, const kl_aff **to) {
  uint32_t n = m->nvars[KL_AFF_RT];
  const kl_aff **known = KL_NEW_N(k->arena, const kl_aff *, n + 1);
  kl_aff_subst s = *points;
  s.to[KL_AFF_RT] = known, s.n[KL_AFF_RT] = n;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < n; i++) {
      const kl_map_var *v = &m->vars[KL_AFF_RT][i];
      bool *rts = KL_NEW_N(k->arena, bool, n + 1), ready = !to[i];
      bool *const used[KL_AFF_VARS] = {[KL_AFF_RT] = rts};
      const uint32_t count[KL_AFF_VARS] = {[KL_AFF_RT] = n};
      for (uint32_t j = 0; j < v->from.nindex; j++) kl_aff_mark(k->p, v->from.index[j], used, count);
      for (uint32_t j = 0; j < n; j++) {
        known[j] = to[j] ? to[j] : kl_aff_const(k->p, 0);
        ready &= !rts[j] || to[j];
      }
      if (!ready) continue;
      to[i] = kl_aff_rt(k->p, enter_runtime(k, v, &s));
      more = true;
    }
  }
}

// --- numbering ------------------------------------------------------------------------------------------------------

static const kl_aff *moved(maker *k, const kl_aff_subst *s, const kl_aff *e) {
  if (e) kl_aff_replace(k->p, s, &e, 1, &e);
  return e;
}

static const kl_constraint *moved_all(maker *k, const kl_aff_subst *s, const kl_constraint *c, uint32_t n) {
  kl_constraint *to = KL_NEW_N(k->arena, kl_constraint, n + 1);
  for (uint32_t i = 0; i < n; i++) to[i] = (kl_constraint){moved(k, s, c[i].e), c[i].in};
  return to;
}

static void renumber(maker *k, const kl_aff_subst *s, kl_map_tile *t) {
  kl_tile_box *boxes = KL_NEW_N(k->arena, kl_tile_box, t->nboxes + 1);
  kl_tile_clause *clauses = KL_NEW_N(k->arena, kl_tile_clause, t->nclauses + 1);
  for (uint32_t b = 0; b < t->nboxes; b++) {
    const kl_tile_box *from = &t->boxes[b];
    kl_tile_dim *dims = KL_NEW_N(k->arena, kl_tile_dim, t->rank + 1);
    for (uint32_t d = 0; d < t->rank; d++)
      dims[d] = (kl_tile_dim){moved(k, s, from->dims[d].offset), moved(k, s, from->dims[d].size),
                              moved(k, s, from->dims[d].stride), moved(k, s, from->dims[d].lower),
                              moved(k, s, from->dims[d].upper)};
    boxes[b] = (kl_tile_box){dims, from->nguards, moved_all(k, s, from->guards, from->nguards)};
  }
  for (uint32_t i = 0; i < t->nclauses; i++)
    clauses[i] =
        (kl_tile_clause){t->clauses[i].n, moved_all(k, s, t->clauses[i].any, t->clauses[i].n), t->clauses[i].why};
  t->boxes = boxes, t->clauses = clauses;
}

// --- tiles ----------------------------------------------------------------------------------------------------------

static const char differs[] = "a value that the program computes differs within the tile";

// Asks for size 1 of the dims, in conditions besides those that there are.
static void ask_for_points(maker *k, const way *x, const bool *ask, kl_map_tile *t) {
  kl_tile_clause *all = KL_NEW_N(k->arena, kl_tile_clause, t->nclauses + x->ndims + 1);
  for (uint32_t i = 0; i < t->nclauses; i++) all[i] = t->clauses[i];
  for (uint32_t i = 0; i < x->ndims; i++) {
    if (!ask[i]) continue;
    kl_constraint one = {kl_aff_range(k->p, i), {1, 1}};
    all[t->nclauses++] = (kl_tile_clause){1, kl_arena_dup(k->arena, &one, sizeof one), differs};
  }
  t->clauses = all;
}

static void make_tile(maker *k, const kept *v, kl_map_tile *t) {
  const way *x = &v->way;
  const kl_shape *s = kl_shape_leaf(k->out->frames[v->frame].comp->instr[v->instr].shape, v->leaf);
  uint32_t n = x->ndims, nrt = x->map->nvars[KL_AFF_RT];
  *t = (kl_map_tile){.state = KL_TILE_UNKNOWN, .why = x->map->why ? x->map->why : "", .rank = s->rank};
  if (x->map->state == KL_MAP_UNDEFINED) return;
  if (n > KL_TILE_MOST_VARIABLES) {
    t->why = "it depends on too many dims";
    return;
  }
  bool ask[KL_TILE_MOST_VARIABLES] = {false}, *loose = KL_NEW_N(k->arena, bool, nrt + 1), any = false;
  int64_t extents[KL_TILE_MOST_VARIABLES];
  const kl_aff *sizes[KL_TILE_MOST_VARIABLES], *tids[KL_TILE_MOST_VARIABLES], *open[KL_TILE_MOST_VARIABLES];
  const kl_aff *points[KL_TILE_MOST_VARIABLES];
  for (uint32_t i = 0; i < n; i++) {
    const kl_tiling_dim *d = &k->dims[x->dims[i]];
    extents[i] = d->extent;
    sizes[i] = kl_aff_is_const(d->size) ? d->size : kl_aff_range(k->p, i);
    tids[i] = kl_aff_dim(k->p, x->dims[i]);
    open[i] = kl_aff_range(k->p, x->dims[i]);
    points[i] = kl_aff_mul(k->p, tids[i], d->size);
    if (kl_aff_is_const(d->size) && d->size->c >= d->extent) tids[i] = points[i] = kl_aff_const(k->p, 0);
  }
  any = mark_loose(k, x, loose, ask);
  const kl_map *m = any ? spread(k, x, loose) : x->map;
  kl_tile_grid grid = {n, extents, sizes};
  kl_tile_of_map(k->p, m, &grid, s->dims, t);
  if (t->state == KL_TILE_UNKNOWN) return;
  const char *why = !x->exact ? x->why : any ? differs : NULL;
  if (why && t->state == KL_TILE_EXACT) t->state = KL_TILE_COVERS, t->why = why;
  kl_tile_clip(k->p, t, s->dims);
  ask_for_points(k, x, ask, t);
  const kl_aff **rts = KL_NEW_N(k->arena, const kl_aff *, nrt + 1);
  kl_aff_subst at = {.to = {points}, .n = {n}};
  enter_runtimes(k, m, &at, rts);
  kl_aff_subst all = {.to = {tids, open, rts}, .n = {n, n, m->nvars[KL_AFF_RT]}};
  renumber(k, &all, t);
}

static bool same_shape(const maker *k, const kept *a, const kept *b) {
  const kl_shape *x = kl_shape_leaf(k->out->frames[a->frame].comp->instr[a->instr].shape, a->leaf);
  const kl_shape *y = kl_shape_leaf(k->out->frames[b->frame].comp->instr[b->instr].shape, b->leaf);
  return kl_shape_same_dims(x, y);
}

// Tiles follow from the way and the shape: of those that are alike one is made.
static bool is_asked(const void *arg, uint32_t id) {
  const maker *k = arg;
  const kept *v = &k->w->kept.p[k->first.p[id]];
  const way *a = &k->asked->way, *b = &v->way;
  return a->map->state == KL_MAP_DEFINED && a->exact == b->exact && a->why == b->why && walk_same(a, b) &&
         same_shape(k, k->asked, v);
}

static uint64_t hash_way(const way *x) {
  uint64_t h = x->map->nresults;
  for (uint32_t i = 0; i < x->map->nresults; i++) h = kl_hash(&x->map->results[i]->id, sizeof(uint32_t), h);
  return kl_hash(x->dims, x->ndims * sizeof x->dims[0], h);
}

static void make_values(maker *k) {
  for (uint32_t i = 0; i < k->w->kept.n; i++) {
    const kept *v = k->asked = &k->w->kept.p[i];
    kl_tiled t = {v->frame,    v->instr,      v->leaf, v->way.region, v->way.map, v->way.ndims,
                  v->way.dims, v->way.remote, {0}};
    uint32_t id = kl_ids_find(k->cx, &k->ids, hash_way(&v->way), is_asked, k);
    if (id < k->first.n) {
      t.tile = k->values.p[k->first.p[id]].tile;
    } else {
      VEC_PUSH(k->cx, &k->first, i);
      make_tile(k, v, &t.tile);
    }
    VEC_PUSH(k->cx, &k->values, t);
  }
}

// --- regions --------------------------------------------------------------------------------------------------------

// Loops of one step are none: what stands in them stands where they do.
static void drop_single_steps(maker *k, kl_region *r, uint32_t *n) {
  uint32_t *to = KL_NEW_N(k->arena, uint32_t, *n + 1), kept = 0;
  bool *loops = KL_NEW_N(k->arena, bool, *n + 1);
  for (uint32_t i = 0; i < k->values.n; i++) {
    const kl_tiled *v = &k->values.p[i];
    for (uint32_t d = 0; d < v->ndims; d++) {
      const kl_tiling_dim *dim = &k->dims[v->dims[d]];
      if (!dim->sequential || (kl_aff_is_const(dim->size) && dim->size->c >= dim->extent)) continue;
      for (uint32_t at = v->region; at; at = r[at].parent)
        loops[at] |= r[at].kind == KL_REGION_LOOP && r[at].frame == dim->frame && r[at].instr == dim->instr;
    }
  }
  for (uint32_t i = 0; i < *n; i++) {
    bool stays = i == 0 || r[i].kind == KL_REGION_BRANCH || loops[i];
    uint32_t parent = to[r[i].parent];
    to[i] = stays ? kept : parent;
    if (!stays) continue;
    r[kept] = r[i];
    r[kept++].parent = parent;
  }
  for (uint32_t i = 0; i < k->values.n; i++) k->values.p[i].region = to[k->values.p[i].region];
  *n = kept;
}

void kl_tiling_make(kl_affs *p, const kiln_module *m, const kl_comp *c, const int64_t *sizes, uint32_t nsizes,
                    kl_tiling *out) {
  tile_walk w;
  walk_open(&w, p, m, c);
  maker k = {.w = &w, .p = p, .cx = w.cx, .arena = kl_affs_arena(p), .out = out};
  *out = (kl_tiling){.nframes = (uint32_t)w.frames.n, .ndims = (uint32_t)w.dims.n, .nparallel = w.nparallel};
  out->frames = kl_arena_dup(k.arena, w.frames.p, w.frames.n * sizeof w.frames.p[0]);
  k.dims = KL_NEW_N(k.arena, kl_tiling_dim, w.dims.n + 1);
  for (uint32_t i = 0; i < w.dims.n; i++) k.dims[i] = w.dims.p[i];
  set_sizes(&k, sizes, nsizes);
  make_values(&k);
  kl_region *regions = kl_arena_dup(k.arena, w.regions.p, w.regions.n * sizeof w.regions.p[0]);
  out->nregions = (uint32_t)w.regions.n;
  drop_single_steps(&k, regions, &out->nregions);
  out->dims = k.dims;
  out->regions = regions;
  out->n = (uint32_t)k.values.n;
  out->nruntimes = (uint32_t)k.runtimes.n;
  out->values = VEC_FREEZE(k.cx, k.arena, &k.values);
  out->runtimes = VEC_FREEZE(k.cx, k.arena, &k.runtimes);
  kl_ids_free(k.cx, &k.ids);
  VEC_FREE(k.cx, &k.first);
  walk_close(&w);
}
