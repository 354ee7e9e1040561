// Tiles of a computation. Every instruction is looked at once everything that uses it has been, as in walks over
// dependences; the maps that lead to it begin at the points of a space that grows on the way: what an instruction folds
// becomes dims of the space, so that both sides of a contraction share theirs.
#include "lower/analysis/tiles/walk.h"

// --- dims of the space ----------------------------------------------------------------------------------------------

static uint32_t dim_of(tile_walk *w, bool sequential, uint32_t frame, uint32_t instr, uint32_t number, int64_t extent) {
  for (uint32_t i = sequential ? w->first_of_instr : (uint32_t)w->dims.n; i < w->dims.n; i++) {
    kl_tiling_dim *d = &w->dims.p[i];
    if (d->frame != frame || d->instr != instr || d->number != number || !d->sequential) continue;
    if (d->extent < extent) d->extent = extent;
    return i;
  }
  VEC_PUSH(w->cx, &w->dims, (kl_tiling_dim){sequential, extent, NULL, frame, instr, number});
  return (uint32_t)w->dims.n - 1;
}

// --- maps over some of the dims
// ---------------------------------------------------------------------------------------

static void mark(tile_walk *w, const kl_aff *e, bool *dims, uint32_t n) {
  bool *const used[KL_AFF_VARS] = {dims};
  const uint32_t count[KL_AFF_VARS] = {n};
  kl_aff_mark(w->p, e, used, count);
}

// Dims that results, constraints, indices of runtime values or bounds of their own make a difference to.
static void mark_needed(tile_walk *w, const kl_map *m, const uint32_t *dims, bool *needed) {
  uint32_t n = m->nvars[KL_AFF_DIM];
  for (uint32_t i = 0; i < m->nresults; i++) mark(w, m->results[i], needed, n);
  for (uint32_t i = 0; i < m->nconstraints; i++) mark(w, m->constraints[i].e, needed, n);
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++)
    for (uint32_t k = 0; k < m->vars[KL_AFF_RT][i].from.nindex; k++)
      mark(w, m->vars[KL_AFF_RT][i].from.index[k], needed, n);
  for (uint32_t i = 0; i < n; i++) {
    kl_interval in = m->vars[KL_AFF_DIM][i].in;
    needed[i] |= in.lo > 0 || in.hi < w->dims.p[dims[i]].extent - 1;
  }
}

// The map over the needed dims alone, in the order of the space. Has no ranges.
static const kl_map *over_needed(tile_walk *w, const kl_map *m, const uint32_t *dims, way *out) {
  uint32_t n = m->nvars[KL_AFF_DIM], k = 0;
  bool *needed = KL_NEW_N(&w->scratch, bool, n + 1);
  uint32_t *order = KL_NEW_N(&w->scratch, uint32_t, n + 1), *ids = KL_NEW_N(kl_affs_arena(w->p), uint32_t, n + 1);
  const kl_aff **to = KL_NEW_N(&w->scratch, const kl_aff *, n + 1);
  mark_needed(w, m, dims, needed);
  bool same = true;
  for (uint32_t i = 0; i < n; i++) {
    if (!needed[i]) continue;
    uint32_t at = k++;
    for (; at > 0 && dims[order[at - 1]] > dims[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  kl_map_var *vars = KL_NEW_N(&w->scratch, kl_map_var, k + 1);
  for (uint32_t i = 0; i < n; i++) to[i] = kl_aff_const(w->p, 0);
  for (uint32_t i = 0; i < k; i++) {
    to[order[i]] = kl_aff_dim(w->p, i);
    vars[i] = m->vars[KL_AFF_DIM][order[i]];
    ids[i] = dims[order[i]];
    same &= order[i] == i;
  }
  out->ndims = k;
  out->dims = ids;
  if (same && k == n) return m;
  kl_aff_subst s = {.to = {to}, .n = {n}};
  kl_map r = *m;
  const kl_aff **results = KL_NEW_N(&w->scratch, const kl_aff *, m->nresults + 1);
  kl_constraint *cs = KL_NEW_N(&w->scratch, kl_constraint, m->nconstraints + 1);
  kl_map_var *rts = KL_NEW_N(&w->scratch, kl_map_var, m->nvars[KL_AFF_RT] + 1);
  kl_aff_replace(w->p, &s, m->results, m->nresults, results);
  for (uint32_t i = 0; i < m->nconstraints; i++) {
    cs[i] = m->constraints[i];
    kl_aff_replace(w->p, &s, &m->constraints[i].e, 1, &cs[i].e);
  }
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++) {
    rts[i] = m->vars[KL_AFF_RT][i];
    const kl_aff **index = KL_NEW_N(kl_affs_arena(w->p), const kl_aff *, rts[i].from.nindex + 1);
    kl_aff_replace(w->p, &s, rts[i].from.index, rts[i].from.nindex, index);
    rts[i].from.index = index;
  }
  r.nvars[KL_AFF_DIM] = k;
  r.vars[KL_AFF_DIM] = vars, r.vars[KL_AFF_RT] = rts;
  r.results = results, r.constraints = cs;
  return kl_map_make(w->p, &r);
}

// Elements of an operand: the way to the instruction, and from there on. What d runs over becomes dims of the space.
static way follow(tile_walk *w, const way *to, const kl_dependence *d, uint32_t frame, uint32_t instr) {
  way out = {.exact = to->exact && d->exact, .remote = to->remote || d->remote, .why = to->why ? to->why : d->why};
  const kl_map *m = kl_map_compose(w->p, to->map, d->map);
  if (m->state != KL_MAP_UNDEFINED) m = kl_map_simplify(w->p, m, KL_MAP_KEEP_POINTS);
  out.map = m;
  if (m->state != KL_MAP_DEFINED) return out;
  uint32_t n = m->nvars[KL_AFF_DIM], nr = m->nvars[KL_AFF_RANGE];
  uint32_t *dims = KL_NEW_N(&w->scratch, uint32_t, n + nr + 1), *which = KL_NEW_N(&w->scratch, uint32_t, nr + 1);
  for (uint32_t i = 0; i < n; i++) dims[i] = to->dims[i];
  for (uint32_t i = 0; i < nr; i++) {
    kl_interval in = m->vars[KL_AFF_RANGE][i].in;
    which[i] = i;
    dims[n + i] = dim_of(w, true, frame, instr, i, in.hi < INT64_MAX ? in.hi + 1 : INT64_MAX);
  }
  if (nr) m = kl_map_ranges_to_dims(w->p, m, which, nr);
  out.map = over_needed(w, m, dims, &out);
  return out;
}

// --- ways to a value ------------------------------------------------------------------------------------------------

static bool same_rt(const kl_map_var *x, const kl_map_var *y) {
  if (x->in.lo != y->in.lo || x->in.hi != y->in.hi || x->from.id != y->from.id || x->from.nindex != y->from.nindex)
    return false;
  for (uint32_t k = 0; k < x->from.nindex; k++)
    if (x->from.index[k] != y->from.index[k]) return false;
  return true;
}

bool walk_same(const way *a, const way *b) {
  const kl_map *x = a->map, *y = b->map;
  if (x->state != y->state || x->nresults != y->nresults || x->nconstraints != y->nconstraints) return false;
  if (a->ndims != b->ndims || x->nvars[KL_AFF_RT] != y->nvars[KL_AFF_RT] || a->remote != b->remote) return false;
  for (uint32_t i = 0; i < a->ndims; i++) {
    kl_interval p = x->vars[KL_AFF_DIM][i].in, q = y->vars[KL_AFF_DIM][i].in;
    if (a->dims[i] != b->dims[i] || p.lo != q.lo || p.hi != q.hi) return false;
  }
  for (uint32_t i = 0; i < x->nresults; i++)
    if (x->results[i] != y->results[i]) return false;
  for (uint32_t i = 0; i < x->nconstraints; i++) {
    const kl_constraint *p = &x->constraints[i], *q = &y->constraints[i];
    if (p->e != q->e || p->in.lo != q->in.lo || p->in.hi != q->in.hi) return false;
  }
  for (uint32_t i = 0; i < x->nvars[KL_AFF_RT]; i++)
    if (!same_rt(&x->vars[KL_AFF_RT][i], &y->vars[KL_AFF_RT][i])) return false;
  return true;
}

static uint32_t depth(const tile_walk *w, uint32_t region) {
  uint32_t n = 0;
  for (; region; region = w->regions.p[region].parent) n++;
  return n;
}

static uint32_t common(const tile_walk *w, uint32_t a, uint32_t b) {
  uint32_t x = depth(w, a), y = depth(w, b);
  for (; x > y; x--) a = w->regions.p[a].parent;
  for (; y > x; y--) b = w->regions.p[b].parent;
  while (a != b) a = w->regions.p[a].parent, b = w->regions.p[b].parent;
  return a;
}

static ways *ways_of(tile_walk *w, uint32_t frame, uint32_t instr, uint32_t leaf) {
  place *at = &w->state.p[frame].at[instr];
  if (!at->leaves) {
    at->n = (uint32_t)kl_shape_leaf_count(w->frames.p[frame].comp->instr[instr].shape);
    at->leaves = KL_NEW_N(&w->scratch, ways, at->n + 1);
  }
  return &at->leaves[leaf];
}

static const char too_many[] = "it is needed in too many ways";

// All elements, as a loop of the value's own.
static way everything(tile_walk *w, uint32_t frame, uint32_t instr, uint32_t leaf) {
  const kl_shape *s = kl_shape_leaf(w->frames.p[frame].comp->instr[instr].shape, leaf);
  uint32_t *dims = KL_NEW_N(kl_affs_arena(w->p), uint32_t, s->rank + 1);
  int64_t sizes[KILN_MAX_RANK];
  for (uint32_t d = 0; d < s->rank; d++) {
    sizes[d] = s->dims[d] < 0 ? INT64_MAX : s->dims[d];
    dims[d] = dim_of(w, true, frame, instr, WALK_WHOLE + leaf * KILN_MAX_RANK + d, sizes[d]);
  }
  return (way){.map = kl_map_identity(w->p, s->rank, sizes), .ndims = s->rank, .dims = dims, .why = too_many};
}

static void insert(tile_walk *w, uint32_t frame, uint32_t instr, uint32_t leaf, way x) {
  ways *all = ways_of(w, frame, instr, leaf);
  if (x.map->state == KL_MAP_EMPTY || (all->n && all->p[0].why == too_many)) return;
  for (size_t i = 0; i < all->n; i++)
    if (walk_same(&all->p[i], &x)) {
      if (x.exact && !all->p[i].exact) all->p[i].exact = true, all->p[i].why = NULL;
      all->p[i].region = common(w, all->p[i].region, x.region);
      return;
    }
  if (all->n == KL_TILING_MOST_WAYS) {
    all->p[0] = everything(w, frame, instr, leaf);
    all->n = 1;
  } else
    VEC_PUSH(w->cx, all, x);
}

// --- regions --------------------------------------------------------------------------------------------------------

static uint32_t region(tile_walk *w, kl_region r) {
  for (uint32_t i = w->first_region; i < w->regions.n; i++) {
    const kl_region *o = &w->regions.p[i];
    if (o->kind == r.kind && o->parent == r.parent && o->frame == r.frame && o->instr == r.instr &&
        o->operand == r.operand)
      return i;
  }
  VEC_PUSH(w->cx, &w->regions, r);
  return (uint32_t)w->regions.n - 1;
}

static bool has_dim_of(const tile_walk *w, const way *x, uint32_t frame, uint32_t instr) {
  for (uint32_t i = 0; i < x->ndims; i++) {
    const kl_tiling_dim *d = &w->dims.p[x->dims[i]];
    if (d->sequential && d->frame == frame && d->instr == instr) return true;
  }
  return false;
}

// Where an operand's tile is made: inside of the loop whose number it depends on, and not before a branch is taken.
static uint32_t region_for(tile_walk *w, const way *x, uint32_t user, uint32_t frame, uint32_t instr,
                           uint32_t operand) {
  const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
  if (has_dim_of(w, x, frame, instr)) return region(w, (kl_region){KL_REGION_LOOP, user, frame, instr, 0});
  if (in->op == KL_OP_CONCATENATE && in->noperands > 1)
    return region(w, (kl_region){KL_REGION_BRANCH, user, frame, instr, operand});
  while (user) {
    const kl_region *r = &w->regions.p[user];
    if (r->kind == KL_REGION_BRANCH || has_dim_of(w, x, r->frame, r->instr)) break;
    user = r->parent;
  }
  return user;
}

// --- the walk -------------------------------------------------------------------------------------------------------

static void operands_of(tile_walk *w, uint32_t frame, uint32_t instr) {
  const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
  place at = w->state.p[frame].at[instr];
  w->first_of_instr = (uint32_t)w->dims.n;
  w->first_region = (uint32_t)w->regions.n;
  for (uint32_t leaf = 0; leaf < at.n; leaf++) {
    if (!at.leaves[leaf].n) continue;
    kl_reader r = {w->p, w->m, w->frames.p, frame, w->runtimes};
    kl_dependences deps = kl_reads(&r, instr, leaf);
    for (size_t k = 0; k < at.leaves[leaf].n; k++)
      for (uint32_t i = 0; i < deps.n; i++) {
        const way *to = &at.leaves[leaf].p[k];
        way x = follow(w, to, &deps.p[i], frame, instr);
        x.region = region_for(w, &x, to->region, frame, instr, deps.p[i].operand);
        insert(w, frame, in->operands[deps.p[i].operand], deps.p[i].leaf, x);
      }
  }
}

static void move_ways(tile_walk *w, uint32_t from_frame, uint32_t from, uint32_t to_frame, uint32_t to) {
  place at = w->state.p[from_frame].at[from];
  for (uint32_t leaf = 0; leaf < at.n; leaf++)
    for (size_t k = 0; k < at.leaves[leaf].n; k++) insert(w, to_frame, to, leaf, at.leaves[leaf].p[k]);
}

static void enter(tile_walk *w, const kl_comp *comp, uint32_t parent, uint32_t caller) {
  walk_frame f = {.next = comp->ninstr, .at = KL_NEW_N(&w->scratch, place, comp->ninstr + 1)};
  w->ninstr += comp->ninstr;
  VEC_PUSH(w->cx, &w->frames, (kl_frame){.comp = comp, .parent = parent, .caller = caller});
  VEC_PUSH(w->cx, &w->state, f);
}

static void begin_call(tile_walk *w, uint32_t frame, uint32_t instr) {
  const kl_comp *callee = &w->m->comp[w->frames.p[frame].comp->instr[instr].called[0]];
  uint32_t f = (uint32_t)w->frames.n;
  enter(w, callee, frame, instr);
  w->state.p[frame].callee = f;
  move_ways(w, frame, instr, f, callee->root);
}

static void end_call(tile_walk *w, uint32_t frame) {
  uint32_t f = w->state.p[frame].callee;
  const kl_instr *in = &w->frames.p[frame].comp->instr[w->frames.p[f].caller];
  const kl_comp *callee = w->frames.p[f].comp;
  w->state.p[frame].callee = 0;
  for (uint32_t i = 0; i < in->noperands; i++) move_ways(w, f, callee->params[i], frame, in->operands[i]);
}

static void unknown_call(tile_walk *w, uint32_t frame, uint32_t instr) {
  static const char why[] = "computations are called too often to be followed";
  const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
  way x = {.map = kl_map_undefined(w->p, why), .why = why};
  for (uint32_t i = 0; i < in->noperands; i++) {
    const kl_shape *s = w->frames.p[frame].comp->instr[in->operands[i]].shape;
    for (uint32_t l = 0; l < kl_shape_leaf_count(s); l++) insert(w, frame, in->operands[i], l, x);
  }
}

static bool keep(tile_walk *w, uint32_t frame, uint32_t instr) {
  place at = w->state.p[frame].at[instr];
  bool any = false;
  for (uint32_t l = 0; l < at.n; l++)
    for (size_t k = 0; k < at.leaves[l].n; k++) {
      VEC_PUSH(w->cx, &w->kept, (kept){frame, instr, l, at.leaves[l].p[k]});
      any = true;
    }
  return any;
}

static void look_at_all(tile_walk *w) {
  uint32_t frame = 0;
  for (;;) {
    walk_frame *f = &w->state.p[frame];
    if (f->callee)
      end_call(w, frame);
    else if (f->next > 0) {
      uint32_t instr = --f->next;
      const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
      if (!keep(w, frame, instr)) continue;
      if (kl_op_table[in->op].kind != KL_KIND_CALL)
        operands_of(w, frame, instr);
      else if (w->ninstr + w->m->comp[in->called[0]].ninstr > KL_TILING_MOST_INSTRS)
        unknown_call(w, frame, instr);
      else {
        begin_call(w, frame, instr);
        frame = w->state.p[frame].callee;
      }
    } else if (frame == 0)
      return;
    else
      frame = w->frames.p[frame].parent;
  }
}

// Every result's leaf with dims of the space: its shape's own, or those of the shape that it goes along with.
static void begin(tile_walk *w, const kl_comp *c, const result_shapes *r) {
  enter(w, c, 0, 0);
  w->state.p[0].next = c->root + 1;
  w->first_dim = KL_NEW_N(&w->scratch, uint32_t, r->n + 1);
  for (uint32_t i = 0; i < r->n; i++) {
    w->first_dim[i] = (uint32_t)w->dims.n;
    for (uint32_t d = 0; d < r->p[i].rank && !r->p[i].along; d++) dim_of(w, false, 0, c->root, d, r->p[i].sizes[d]);
  }
  for (uint32_t l = 0; l < r->nleaves; l++) {
    if (r->of_leaf[l] == NO_RESULT_SHAPE) continue;
    const result_shape *s = &r->p[r->of_leaf[l]];
    uint32_t n = s->along ? s->ndims : s->rank, *dims = KL_NEW_N(kl_affs_arena(w->p), uint32_t, n + 1);
    for (uint32_t d = 0; d < n; d++)
      dims[d] = s->along ? w->first_dim[s->with] + s->dims[d] : w->first_dim[r->of_leaf[l]] + d;
    const kl_map *map = s->along ? s->along : kl_map_identity(w->p, s->rank, s->sizes);
    insert(w, 0, c->root, l, (way){.map = map, .ndims = n, .dims = dims, .exact = true});
  }
}

static void open(tile_walk *w, kl_affs *p, const kiln_module *m, const kl_comp *c, const result_shapes *r) {
  kl_ctx *cx = kl_affs_context(p);
  *w = (tile_walk){.cx = cx, .p = p, .m = m, .runtimes = kl_runtimes_create(cx, kl_affs_arena(p))};
  kl_arena_init(&w->scratch, cx);
  VEC_PUSH(cx, &w->regions, (kl_region){.kind = KL_REGION_TOP});
  begin(w, c, r);
  w->nparallel = (uint32_t)w->dims.n;
  look_at_all(w);
}

void walk_open(tile_walk *w, kl_affs *p, const kiln_module *m, const kl_comp *c) {
  result_shapes r = walk_result_shapes(p, &c->instr[c->root]);
  open(w, p, m, c, &r);
  if (!walk_join_results(w, &r)) return;
  walk_close(w);
  open(w, p, m, c, &r);
}

void walk_close(tile_walk *w) {
  for (size_t f = 0; f < w->frames.n; f++)
    for (uint32_t i = 0; i < w->frames.p[f].comp->ninstr; i++)
      for (uint32_t l = 0; l < w->state.p[f].at[i].n; l++) VEC_FREE(w->cx, &w->state.p[f].at[i].leaves[l]);
  VEC_FREE(w->cx, &w->state);
  VEC_FREE(w->cx, &w->frames);
  VEC_FREE(w->cx, &w->dims);
  VEC_FREE(w->cx, &w->regions);
  VEC_FREE(w->cx, &w->kept);
  kl_runtimes_destroy(&w->runtimes);
  kl_arena_free(&w->scratch);
}
