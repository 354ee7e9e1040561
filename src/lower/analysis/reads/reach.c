// Walks over computations. Backward, an instruction is looked at once everything that uses it has been, so its maps are
// all there; its operands come earlier in the computation. Forward, likewise, with operands and users exchanged. A call
// is a frame of its own: it is walked whole between its caller's instruction and the next.
#include "lower/analysis/reads/reach.h"

#include <stdlib.h>

typedef VEC(kl_dependence) map_set;

typedef struct place {
  map_set *leaves; // by leaf of the instruction; NULL: not reached
  uint32_t n;
} place;

typedef struct walk_frame {
  place *at;       // by instruction
  uint32_t next;   // backward: one more than the next instruction; forward: the next
  uint32_t callee; // the frame entered for the instruction looked at, or 0
} walk_frame;

typedef struct walk {
  kl_ctx *cx;
  kl_affs *p;
  const kiln_module *m;
  kl_reach_way way;
  const kl_shape *start;
  uint64_t ninstr; // of all frames
  kl_arena scratch;
  VEC(kl_frame) frames;
  VEC(walk_frame) state;
  struct kl_runtimes *runtimes;
  VEC(kl_reach_value) values;
} walk;

// --- sets of maps -------------------------------------------------------------------------------------------------

static bool same_vars(const kl_map *a, const kl_map *b, int kind) {
  if (a->nvars[kind] != b->nvars[kind]) return false;
  for (uint32_t i = 0; i < a->nvars[kind]; i++) {
    const kl_map_var *x = &a->vars[kind][i], *y = &b->vars[kind][i];
    if (x->in.lo != y->in.lo || x->in.hi != y->in.hi || x->from.id != y->from.id || x->from.nindex != y->from.nindex)
      return false;
    for (uint32_t k = 0; k < x->from.nindex; k++)
      if (x->from.index[k] != y->from.index[k]) return false;
  }
  return true;
}

// The same map to the letter; expressions are interned.
static bool same_map(const kl_map *a, const kl_map *b) {
  if (a == b) return true;
  if (a->state != b->state || a->nresults != b->nresults || a->nconstraints != b->nconstraints) return false;
  for (uint32_t i = 0; i < a->nresults; i++)
    if (a->results[i] != b->results[i]) return false;
  for (uint32_t i = 0; i < a->nconstraints; i++) {
    const kl_constraint *x = &a->constraints[i], *y = &b->constraints[i];
    if (x->e != y->e || x->in.lo != y->in.lo || x->in.hi != y->in.hi) return false;
  }
  return same_vars(a, b, KL_AFF_DIM) && same_vars(a, b, KL_AFF_RANGE) && same_vars(a, b, KL_AFF_RT);
}

static map_set *set_of(walk *w, uint32_t frame, uint32_t instr, uint32_t leaf) {
  place *at = &w->state.p[frame].at[instr];
  if (!at->leaves) {
    at->n = (uint32_t)kl_shape_leaf_count(w->frames.p[frame].comp->instr[instr].shape);
    at->leaves = KL_NEW_N(&w->scratch, map_set, at->n + 1);
  }
  return &at->leaves[leaf];
}

static const char too_many[] = "it is reached in too many ways";

// Along an extent; one that is not known has no end.
static kl_interval along(int64_t size) {
  return (kl_interval){0, size < 0 ? INT64_MAX : size - 1};
}

// Every element, from anywhere: what is left to say of too many maps.
static kl_dependence everything(walk *w, const map_set *set, const kl_shape *s) {
  uint32_t nd = w->start->rank;
  kl_map_var *vars = KL_NEW_N(kl_affs_arena(w->p), kl_map_var, nd + s->rank + 1);
  const kl_aff **results = KL_NEW_N(kl_affs_arena(w->p), const kl_aff *, s->rank + 1);
  for (uint32_t d = 0; d < nd; d++) vars[d].in = along(w->start->dims[d]);
  for (uint32_t d = 0; d < s->rank; d++) {
    vars[nd + d].in = along(s->dims[d]);
    results[d] = kl_aff_range(w->p, d);
  }
  kl_map all = {.nvars = {nd, s->rank}, .vars = {vars, vars + nd}, .nresults = s->rank, .results = results};
  kl_dependence d = {.map = kl_map_make(w->p, &all), .why = too_many};
  for (size_t i = 0; i < set->n; i++) d.remote = d.remote || set->p[i].remote;
  return d;
}

static bool is_everything(const map_set *set) {
  return set->n && set->p[0].why == too_many;
}

// Known already? The same elements, known to be needed, are more than those that may be.
static bool is_there(map_set *set, const kl_dependence *d) {
  for (size_t i = 0; i < set->n; i++) {
    kl_dependence *old = &set->p[i];
    if (old->remote != d->remote || !same_map(old->map, d->map)) continue;
    if (d->exact && !old->exact) *old = *d;
    return true;
  }
  return false;
}

static void insert(walk *w, uint32_t frame, uint32_t instr, uint32_t leaf, kl_dependence d) {
  map_set *set = set_of(w, frame, instr, leaf);
  d.operand = d.leaf = 0;
  if (is_everything(set)) set->p[0].remote = set->p[0].remote || d.remote;
  if (is_everything(set) || is_there(set, &d)) return;
  if (set->n && d.map->state == KL_MAP_EMPTY) return;
  if (set->n == 1 && set->p[0].map->state == KL_MAP_EMPTY) set->n = 0;
  if (set->n < KL_REACH_MOST_MAPS) {
    VEC_PUSH(w->cx, set, d);
    return;
  }
  set->p[0] = everything(w, set, kl_shape_leaf(w->frames.p[frame].comp->instr[instr].shape, leaf));
  set->n = 1;
}

// Maps to the one, and from there to the other.
static kl_dependence compose(walk *w, const kl_dependence *to, const kl_dependence *on) {
  kl_dependence d = {
      .exact = to->exact && on->exact, .remote = to->remote || on->remote, .why = to->why ? to->why : on->why};
  const kl_map *m = kl_map_compose(w->p, to->map, on->map);
  m = kl_map_simplify(w->p, m, KL_MAP_KEEP_POINTS);
  const kl_map *less = kl_map_eliminate(w->p, m);
  if (less != m) m = kl_map_simplify(w->p, less, KL_MAP_KEEP_POINTS);
  d.map = kl_map_remove_unused(w->p, m, false, NULL);
  if (d.map->state == KL_MAP_UNDEFINED) d.exact = false, d.why = d.map->why;
  return d;
}

// --- steps --------------------------------------------------------------------------------------------------------

static kl_reader reader(walk *w, uint32_t frame) {
  return (kl_reader){w->p, w->m, w->frames.p, frame, w->runtimes};
}

static void reads_of(walk *w, uint32_t frame, uint32_t instr) {
  const kl_comp *c = w->frames.p[frame].comp;
  const kl_instr *in = &c->instr[instr];
  place at = w->state.p[frame].at[instr];
  for (uint32_t leaf = 0; leaf < at.n; leaf++) {
    if (!at.leaves[leaf].n) continue;
    kl_reader r = reader(w, frame);
    kl_dependences deps = kl_reads(&r, instr, leaf);
    for (uint32_t i = 0; i < deps.n; i++)
      for (size_t k = 0; k < at.leaves[leaf].n; k++)
        insert(w, frame, in->operands[deps.p[i].operand], deps.p[i].leaf,
               compose(w, &at.leaves[leaf].p[k], &deps.p[i]));
  }
}

// Forward: what is reached of the operands goes into the results.
static void feeds_of(walk *w, uint32_t frame, uint32_t instr) {
  const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
  uint32_t results = (uint32_t)kl_shape_leaf_count(in->shape);
  for (uint32_t leaf = 0; leaf < results; leaf++) {
    kl_reader r = reader(w, frame);
    kl_dependences deps = kl_reads(&r, instr, leaf);
    for (uint32_t i = 0; i < deps.n; i++) {
      place from = w->state.p[frame].at[in->operands[deps.p[i].operand]];
      if (!from.n || !from.leaves[deps.p[i].leaf].n) continue;
      kl_dependence d = kl_converse(&r, instr, &deps.p[i], KL_MAP_QUOTA);
      const map_set *set = &from.leaves[deps.p[i].leaf];
      for (size_t k = 0; k < set->n; k++) insert(w, frame, instr, leaf, compose(w, &set->p[k], &d));
    }
  }
}

static void move_set(walk *w, uint32_t from_frame, uint32_t from, uint32_t to_frame, uint32_t to) {
  place at = w->state.p[from_frame].at[from];
  for (uint32_t leaf = 0; leaf < at.n; leaf++)
    for (size_t k = 0; k < at.leaves[leaf].n; k++) insert(w, to_frame, to, leaf, at.leaves[leaf].p[k]);
}

static uint32_t enter(walk *w, const kl_comp *comp, uint32_t parent, uint32_t caller) {
  walk_frame f = {.next = w->way == KL_REACH_OPERANDS ? comp->ninstr : 0};
  f.at = KL_NEW_N(&w->scratch, place, comp->ninstr + 1);
  w->ninstr += comp->ninstr;
  VEC_PUSH(w->cx, &w->frames, (kl_frame){.comp = comp, .parent = parent, .caller = caller});
  VEC_PUSH(w->cx, &w->state, f);
  return (uint32_t)w->frames.n - 1;
}

static bool is_reached(const walk *w, uint32_t frame, uint32_t instr) {
  place at = w->state.p[frame].at[instr];
  for (uint32_t l = 0; l < at.n; l++)
    if (at.leaves[l].n) return true;
  return false;
}

// Begins a call: hands on what is reached of the call (or of its operands) to its computation.
static void begin_call(walk *w, uint32_t frame, uint32_t instr) {
  const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
  const kl_comp *callee = &w->m->comp[in->called[0]];
  uint32_t f = enter(w, callee, frame, instr);
  w->state.p[frame].callee = f;
  if (w->way == KL_REACH_OPERANDS)
    move_set(w, frame, instr, f, callee->root);
  else
    for (uint32_t i = 0; i < in->noperands; i++) move_set(w, frame, in->operands[i], f, callee->params[i]);
}

static void end_call(walk *w, uint32_t frame, uint32_t instr) {
  const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
  uint32_t f = w->state.p[frame].callee;
  const kl_comp *callee = w->frames.p[f].comp;
  w->state.p[frame].callee = 0;
  if (w->way == KL_REACH_USERS)
    move_set(w, f, callee->root, frame, instr);
  else
    for (uint32_t i = 0; i < in->noperands; i++) move_set(w, f, callee->params[i], frame, in->operands[i]);
}

static bool feeds_anything(const walk *w, uint32_t frame, uint32_t instr) {
  const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
  for (uint32_t i = 0; i < in->noperands; i++)
    if (is_reached(w, frame, in->operands[i])) return true;
  return false;
}

static void keep_values(walk *w, uint32_t frame, uint32_t instr) {
  place at = w->state.p[frame].at[instr];
  for (uint32_t l = 0; l < at.n; l++) {
    if (!at.leaves[l].n) continue;
    kl_reach_value v = {frame, instr, l, (uint32_t)at.leaves[l].n, NULL};
    v.maps = kl_arena_dup(kl_affs_arena(w->p), at.leaves[l].p, at.leaves[l].n * sizeof(kl_dependence));
    VEC_PUSH(w->cx, &w->values, v);
  }
}

static bool is_call(const kl_instr *in) {
  return kl_op_table[in->op].kind == KL_KIND_CALL;
}

static void unknown_call(walk *w, uint32_t frame, uint32_t instr) {
  static const char why[] = "computations are called too often to be followed";
  const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
  kl_dependence d = {.map = kl_map_undefined(w->p, why), .why = why};
  uint32_t n = w->way == KL_REACH_OPERANDS ? in->noperands : 1;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t to = w->way == KL_REACH_OPERANDS ? in->operands[i] : instr;
    const kl_shape *s = w->frames.p[frame].comp->instr[to].shape;
    for (uint32_t l = 0; l < kl_shape_leaf_count(s); l++) insert(w, frame, to, l, d);
  }
}

// Looks at an instruction; the frame to go on in.
static uint32_t look_at(walk *w, uint32_t frame, uint32_t instr) {
  const kl_instr *in = &w->frames.p[frame].comp->instr[instr];
  bool back = w->way == KL_REACH_OPERANDS, calls = is_call(in), reached = is_reached(w, frame, instr);
  if (back ? !reached : reached || !feeds_anything(w, frame, instr)) {
    if (reached) keep_values(w, frame, instr); // forward: where the walk began, or a parameter
    return frame;
  }
  if (back) keep_values(w, frame, instr);
  if (calls && w->ninstr + w->m->comp[in->called[0]].ninstr <= KL_REACH_MOST_INSTRS) {
    begin_call(w, frame, instr);
    return w->state.p[frame].callee;
  }
  if (calls)
    unknown_call(w, frame, instr);
  else if (back)
    reads_of(w, frame, instr);
  else
    feeds_of(w, frame, instr);
  if (!back) keep_values(w, frame, instr);
  return frame;
}

static void walk_all(walk *w) {
  uint32_t frame = 0;
  for (;;) {
    walk_frame *f = &w->state.p[frame];
    bool back = w->way == KL_REACH_OPERANDS;
    if (f->callee) {
      uint32_t caller = w->frames.p[f->callee].caller;
      end_call(w, frame, caller);
      if (!back) keep_values(w, frame, caller);
    } else if (back ? f->next > 0 : f->next < w->frames.p[frame].comp->ninstr)
      frame = look_at(w, frame, back ? --f->next : f->next++);
    else if (frame == 0)
      return;
    else
      frame = w->frames.p[frame].parent;
  }
}

static void free_sets(walk *w) {
  for (size_t f = 0; f < w->frames.n; f++)
    for (uint32_t i = 0; i < w->frames.p[f].comp->ninstr; i++)
      for (uint32_t l = 0; l < w->state.p[f].at[i].n; l++) VEC_FREE(w->cx, &w->state.p[f].at[i].leaves[l]);
}

static const kl_map *identity(walk *w) {
  uint32_t n = w->start->rank;
  kl_map_var *dims = KL_NEW_N(kl_affs_arena(w->p), kl_map_var, n + 1);
  const kl_aff **results = KL_NEW_N(kl_affs_arena(w->p), const kl_aff *, n + 1);
  for (uint32_t d = 0; d < n; d++) {
    dims[d].in = along(w->start->dims[d]);
    results[d] = kl_aff_dim(w->p, d);
  }
  kl_map m = {.nvars = {n}, .vars = {dims}, .nresults = n, .results = results};
  return kl_map_make(w->p, &m);
}

static int by_place(const void *a, const void *b) {
  const kl_reach_value *x = a, *y = b;
  if (x->frame != y->frame) return x->frame < y->frame ? -1 : 1;
  if (x->instr != y->instr) return x->instr < y->instr ? -1 : 1;
  return x->leaf < y->leaf ? -1 : x->leaf > y->leaf;
}

void kl_reach_make(kl_affs *p, const kiln_module *m, const kl_comp *comp, uint32_t instr, uint32_t leaf,
                   kl_reach_way way, kl_reach *out) {
  kl_ctx *cx = kl_affs_context(p);
  walk w = {.cx = cx, .p = p, .m = m, .way = way, .runtimes = kl_runtimes_create(cx, kl_affs_arena(p))};
  const kl_shape *s = w.start = kl_shape_leaf(comp->instr[instr].shape, leaf);
  kl_arena_init(&w.scratch, cx);
  enter(&w, comp, 0, 0);
  w.state.p[0].next = instr + (way == KL_REACH_OPERANDS);
  if (kl_shape_is_array(s)) insert(&w, 0, instr, leaf, (kl_dependence){.map = identity(&w), .exact = true});
  walk_all(&w);
  free_sets(&w);
  if (w.values.n > 1) qsort(w.values.p, w.values.n, sizeof *w.values.p, by_place);
  *out = (kl_reach){.nframes = (uint32_t)w.frames.n, .n = (uint32_t)w.values.n, .runtimes = w.runtimes};
  out->frames = VEC_FREEZE(cx, kl_affs_arena(p), &w.frames);
  out->values = VEC_FREEZE(cx, kl_affs_arena(p), &w.values);
  VEC_FREE(cx, &w.state);
  kl_arena_free(&w.scratch);
}

void kl_reach_free(kl_reach *r) {
  kl_runtimes_destroy(&r->runtimes);
}

kl_reach_value kl_reach_find(const kl_reach *r, uint32_t frame, uint32_t instr, uint32_t leaf) {
  kl_reach_value key = {.frame = frame, .instr = instr, .leaf = leaf};
  const kl_reach_value *v = r->n ? bsearch(&key, r->values, r->n, sizeof key, by_place) : NULL;
  return v ? *v : key;
}
