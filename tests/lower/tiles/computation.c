// Tiles of computations against HLO's definitions element by element: for every tile of the results, what each array's
// tiles hold over all steps of their loops, and what the elements of the results' tile are made from.
#include "lower/analysis/tiles/tiles.h"
#include "../reads/model/model.h"
#include "../reads/random.h"
#include "support/context.h"
#include "support/share.h"

#include <stdio.h>

#define STEPS                                                                                                          \
  "sum { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }\n"                                   \
  "largest { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] maximum(x, y) }\n"                           \
  "less { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = pred[] compare(x, y), direction=LT }\n"               \
  "step { x = f32[8] parameter(0) c = f32[8] parameter(1) s = f32[8] add(x, c) ROOT z = (f32[8], f32[8]) tuple(s, s) " \
  "}\n"                                                                                                                \
  "pair { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3) "                \
  "ROOT z = (f32[], f32[]) tuple(add(a, c), add(b, d)) }\n"

static uint64_t state;
static unsigned pick(unsigned n) { // splitmix64
  state += 0x9e3779b97f4a7c15ull;
  uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (unsigned)((x ^ (x >> 31)) % n);
}

static struct { long modules, tilings, tiles, values, exact, covers, unknown, open, held, along; } count;

// --- one tiling
// -------------------------------------------------------------------------------------------------------

enum { MOST_DIMS = 64, MOST_RUNTIMES = 64 };

typedef struct trial {
  const model *s;
  kl_affs *p;
  const kl_tiling *t;
  const char *text;
  uint32_t frames[256];    // the model's, by the tiling's
  int64_t size[MOST_DIMS]; // of tiles, by dim
  int64_t tid[MOST_DIMS];
  uint8_t *needed, *held, *inexact; // by node; the last by value
  int64_t *owner; // by node, of results that go along with others: one more than the tile that it is in
} trial;

static const model_value *value_of(const trial *k, uint32_t frame, uint32_t instr, uint32_t leaf) {
  return model_find(k->s, k->frames[frame], instr, leaf);
}

static int64_t steps(const trial *k, uint32_t dim) {
  int64_t n = k->t->dims[dim].extent > 1 ? k->t->dims[dim].extent : 1;
  return (n + k->size[dim] - 1) / k->size[dim];
}

static int64_t evaluate(const trial *k, const kl_aff *e, const int64_t *rt) {
  kl_point at = {{k->tid, k->size, rt}};
  int64_t v = 0;
  EXPECT(kl_aff_eval(k->p, e, &at, &v), "no value\n%s", k->text);
  return v;
}

// What the program computes there; `before`: values of earlier ones.
static int64_t runtime_value(const trial *k, const kl_tiling_runtime *r, const int64_t *before) {
  const kl_runtime *what = r->from.payload;
  const model_value *v = value_of(k, what->frame, what->instr, what->leaf);
  int64_t at = 0;
  for (uint32_t i = 0; i < r->from.nindex; i++) {
    int64_t x = evaluate(k, r->from.index[i], before);
    if (x < 0 || x >= v->shape->dims[i]) return r->in.lo; // of a tile that is cut there
    at = at * v->shape->dims[i] + x;
  }
  int64_t found = model_integer(k->s, v->first + at);
  if (!what->clamped) return found;
  return found < what->lo ? what->lo : found > what->hi ? what->hi : found;
}

static void hold_box(trial *k, const kl_tiled *v, const kl_tile_box *b, const int64_t *rt) {
  const model_value *at = value_of(k, v->frame, v->instr, v->leaf);
  int64_t o[KILN_MAX_RANK], s[KILN_MAX_RANK], n[KILN_MAX_RANK], x[KILN_MAX_RANK] = {0}, from[KILN_MAX_RANK],
                                                                to[KILN_MAX_RANK];
  for (uint32_t i = 0; i < b->nguards; i++) {
    int64_t g = evaluate(k, b->guards[i].e, rt);
    if (g < b->guards[i].in.lo || g > b->guards[i].in.hi) return;
  }
  for (uint32_t d = 0; d < v->tile.rank; d++) {
    const kl_tile_dim *t = &b->dims[d];
    o[d] = evaluate(k, t->offset, rt), s[d] = evaluate(k, t->stride, rt), n[d] = evaluate(k, t->size, rt);
    from[d] = t->lower ? evaluate(k, t->lower, rt) : INT64_MIN;
    to[d] = t->upper ? evaluate(k, t->upper, rt) : INT64_MAX;
    if (n[d] <= 0) return;
  }
  for (bool more = true; more;) {
    bool inside = true, there = true;
    int64_t node = 0;
    for (uint32_t d = 0; d < v->tile.rank; d++) {
      int64_t y = o[d] + x[d] * s[d];
      inside &= y >= from[d] && y < to[d];
      there &= y >= 0 && y < at->shape->dims[d];
      node = node * at->shape->dims[d] + y;
    }
    EXPECT(there || !inside || v->tile.state != KL_TILE_EXACT, "%s\nan exact tile of value %u leaves the array",
           k->text, v->instr);
    if (inside && there) k->held[at->first + node] = 1;
    more = false;
    for (uint32_t d = v->tile.rank; d-- > 0 && !more;) {
      more = ++x[d] < n[d];
      if (!more) x[d] = 0;
    }
  }
}

// Over all steps of the loops that it depends on.
static void hold(trial *k, const kl_tiled *v) {
  const model_value *at = value_of(k, v->frame, v->instr, v->leaf);
  if (v->tile.state != KL_TILE_EXACT) k->inexact[at - k->s->values] = 1;
  if (v->tile.state == KL_TILE_UNKNOWN) {
    for (int64_t i = 0; i < at->count; i++) k->held[at->first + i] = 1;
    return;
  }
  for (uint32_t i = 0; i < v->ndims; i++)
    if (k->t->dims[v->dims[i]].sequential) k->tid[v->dims[i]] = 0;
  for (bool more = true; more;) {
    int64_t rt[MOST_RUNTIMES];
    for (uint32_t i = 0; i < k->t->nruntimes; i++) rt[i] = runtime_value(k, &k->t->runtimes[i], rt);
    for (uint32_t b = 0; b < v->tile.nboxes; b++) hold_box(k, v, &v->tile.boxes[b], rt);
    more = false;
    for (uint32_t i = 0; i < v->ndims && !more; i++) {
      uint32_t d = v->dims[i];
      if (!k->t->dims[d].sequential) continue;
      more = ++k->tid[d] < steps(k, d);
      if (!more) k->tid[d] = 0;
    }
  }
}

static const kl_tiled *result(const trial *k, uint32_t leaf) {
  for (uint32_t i = 0; i < k->t->n; i++) {
    const kl_tiled *v = &k->t->values[i];
    if (v->frame == 0 && v->instr == k->t->frames[0].comp->root && v->leaf == leaf) return v;
  }
  return NULL; // of no elements
}

// Has the result dims of its own, from this one on?
static bool has_own(const trial *k, uint32_t leaf, uint32_t rank, uint32_t first) {
  const kl_tiled *v = result(k, leaf);
  bool own = !v || v->ndims == rank;
  for (uint32_t d = 0; v && d < rank && own; d++)
    own = v->dims[d] == first + d && v->map->results[d] == kl_aff_dim(k->p, d);
  return own;
}

// The tiles of a result that goes along with others are what they are said to be, but every element is in one, and in
// one only.
static void need_along(trial *k, uint32_t leaf) {
  const kl_tiled *v = result(k, leaf);
  const model_value *at = value_of(k, v->frame, v->instr, v->leaf);
  int64_t tile = 1;
  for (uint32_t d = 0; d < v->ndims; d++) tile = tile * steps(k, v->dims[d]) + k->tid[v->dims[d]];
  memset(k->held + at->first, 0, (size_t)at->count);
  hold(k, v);
  for (int64_t i = at->first; i < at->first + at->count; i++) {
    if (!k->held[i]) continue;
    k->needed[i] = 1;
    EXPECT(!k->owner[i] || k->owner[i] == tile || v->tile.state != KL_TILE_EXACT,
           "%s\nresult %u: an element in two tiles", k->text, leaf);
    k->owner[i] = tile;
  }
}

// Elements of the results in the tile, and all that they are made from.
static void need(trial *k) {
  const kl_comp *c = k->t->frames[0].comp;
  const kl_shape *s = c->instr[c->root].shape;
  uint32_t n = (uint32_t)kl_shape_leaf_count(s), next = 0;
  memset(k->needed, 0, (size_t)k->s->nnodes);
  uint32_t first[64];
  for (uint32_t l = 0; l < n; l++) {
    const kl_shape *leaf = kl_shape_leaf(s, l);
    if (!kl_shape_is_array(leaf)) continue;
    uint32_t same = 0;
    while (same < l && !kl_shape_same_dims(kl_shape_leaf(s, same), leaf)) same++;
    first[l] = same < l ? first[same] : has_own(k, l, leaf->rank, next) ? next : UINT32_MAX;
    if (first[l] == UINT32_MAX) {
      need_along(k, l);
      continue;
    }
    if (same == l) next += leaf->rank;
    const model_value *v = model_find(k->s, 0, c->root, l);
    for (int64_t i = 0; i < v->count; i++) {
      int64_t left = i;
      bool inside = true;
      for (uint32_t d = leaf->rank; d-- > 0; left /= leaf->dims[d])
        inside &= left % leaf->dims[d] / k->size[first[l] + d] == k->tid[first[l] + d];
      if (inside) k->needed[v->first + i] = 1;
    }
  }
  for (int64_t i = k->s->nnodes; i-- > 0;)
    for (int64_t e = k->s->begin[i]; k->needed[i] && e < k->s->begin[i + 1]; e++)
      k->needed[model_target(k->s, i, &k->s->edges[e])] = 1;
}

static bool holds(const trial *k) {
  for (uint32_t i = 0; i < k->t->n; i++)
    if (!kl_tile_clauses_hold(k->p, &k->t->values[i].tile, k->size, k->t->ndims)) return false;
  return true;
}

static void describe(const trial *k, const model_value *v) {
  for (uint32_t i = 0; i < k->t->n; i++) {
    const kl_tiled *t = &k->t->values[i];
    if (t->instr != v->instr || k->frames[t->frame] != v->frame || t->leaf != v->leaf) continue;
    kl_sb b;
    kl_sb_init(&b, kl_affs_context(k->p));
    kl_map_print(k->p, &b, t->map, KL_MAP_LINE);
    kl_sbf(&b, " state %d %s, dims", t->tile.state, t->tile.why);
    for (uint32_t d = 0; d < t->ndims; d++) kl_sbf(&b, " %u", t->dims[d]);
    for (uint32_t x = 0; x < t->tile.nboxes; x++)
      for (uint32_t d = 0; d < t->tile.rank; d++) {
        const kl_tile_dim *e = &t->tile.boxes[x].dims[d];
        const kl_aff *each[] = {e->offset, e->size, e->stride, e->lower, e->upper};
        kl_sb_puts(&b, d ? "; " : "\n");
        for (int j = 0; j < 5; j++) {
          if (j) kl_sb_puts(&b, ", ");
          if (each[j]) kl_aff_print(k->p, &b, each[j], NULL);
        }
      }
    printf("# %s\n", b.p);
    kl_sb_free(&b);
  }
}

static void judge(trial *k) {
  const model *s = k->s;
  need(k);
  memset(k->held, 0, (size_t)s->nnodes);
  memset(k->inexact, 0, s->nvalues);
  for (uint32_t i = 0; i < k->t->n; i++) hold(k, &k->t->values[i]);
  for (uint32_t i = 0; i < s->nvalues; i++) {
    long missing = 0, extra = 0;
    const model_value *v = &s->values[i];
    for (int64_t n = v->first; n < v->first + v->count; n++) {
      missing += k->needed[n] && !k->held[n];
      extra += k->held[n] && !k->needed[n];
    }
    if (!missing && (!extra || k->inexact[i])) continue;
    describe(k, v);
    char at[512] = "";
    for (uint32_t d = 0; d < k->t->ndims; d++)
      snprintf(at + strlen(at), sizeof at - strlen(at), " %lld*%lld", (long long)k->tid[d], (long long)k->size[d]);
    ck_abort_msg("%s\nframe %u, instruction %u, leaf %u in tile%s: %ld missing, %ld too many", k->text, v->frame,
                 v->instr, v->leaf, at, missing, extra);
  }
  count.tiles++;
}

// Every element of a result that goes along with others is in a tile.
static void all_owned(const trial *k) {
  const kl_comp *c = k->t->frames[0].comp;
  for (uint32_t l = 0, next = 0; l < kl_shape_leaf_count(c->instr[c->root].shape); l++) {
    const kl_shape *leaf = kl_shape_leaf(c->instr[c->root].shape, l);
    uint32_t same = 0;
    if (!kl_shape_is_array(leaf)) continue;
    while (same < l && !kl_shape_same_dims(kl_shape_leaf(c->instr[c->root].shape, same), leaf)) same++;
    if (same < l) continue;
    if (has_own(k, l, leaf->rank, next)) {
      next += leaf->rank;
      continue;
    }
    const model_value *v = model_find(k->s, 0, c->root, l);
    for (int64_t i = v->first; i < v->first + v->count; i++)
      EXPECT(k->owner[i], "%s\nresult %u: an element in no tile", k->text, l);
    count.along++;
  }
}

// All tiles of the parallel dims, or some of very many.
static void judge_all(trial *k) {
  int64_t n = 1;
  memset(k->owner, 0, (size_t)k->s->nnodes * sizeof *k->owner);
  for (uint32_t d = 0; d < k->t->nparallel; d++) n *= steps(k, d);
  for (int64_t i = 0, by = n > 24 ? n / 12 : 1; i < n; i += by) {
    int64_t left = i;
    memset(k->tid, 0, sizeof k->tid);
    for (uint32_t d = k->t->nparallel; d-- > 0; left /= steps(k, d)) k->tid[d] = left % steps(k, d);
    judge(k);
  }
  if (n <= 24) all_owned(k);
}

static void map_frames(trial *k) {
  for (uint32_t f = 0; f < k->t->nframes; f++)
    k->frames[f] = f ? model_callee(k->s, k->frames[k->t->frames[f].parent], k->t->frames[f].caller) : 0;
}

// The tiling of open sizes, and one of these sizes.
static void check_sizes(trial *k, const kiln_module *m, const kl_tiling *open, const int64_t *sizes) {
  const kl_comp *c = &m->comp[m->entry];
  kl_tiling t;
  kl_tiling_make(k->p, m, c, sizes, open->ndims, &t);
  k->t = &t;
  map_frames(k);
  memcpy(k->size, sizes, open->ndims * sizeof *sizes);
  count.tilings++;
  for (uint32_t i = 0; i < t.n; i++) {
    count.values++;
    count.exact += t.values[i].tile.state == KL_TILE_EXACT;
    count.covers += t.values[i].tile.state == KL_TILE_COVERS;
    count.unknown += t.values[i].tile.state == KL_TILE_UNKNOWN;
    EXPECT(t.values[i].tile.state == KL_TILE_EXACT || t.values[i].tile.why[0], "no reason\n%s", k->text);
  }
  judge_all(k);
  k->t = open;
  count.open++;
  if (!holds(k)) return;
  count.held++;
  judge_all(k);
}

static void check(const char *text, uint64_t seed) {
  kiln_module *m = parse(text);
  model s;
  kl_arena arena;
  kl_arena_init(&arena, m->cx);
  trial k = {.s = &s, .p = kl_affs_create(m->cx, &arena), .text = text};
  kl_tiling open;
  kl_tiling_make(k.p, m, &m->comp[m->entry], NULL, 0, &open);
  if (open.ndims <= MOST_DIMS && open.nruntimes <= MOST_RUNTIMES && open.nframes <= KL_COUNT(k.frames) &&
      model_make(&s, m, &m->comp[m->entry], seed, 1 << 18)) {
    k.needed = calloc((size_t)s.nnodes + 1, 1), k.held = calloc((size_t)s.nnodes + 1, 1);
    k.inexact = calloc(s.nvalues + 1, 1), k.owner = calloc((size_t)s.nnodes + 1, sizeof *k.owner);
    count.modules++;
    for (int i = 0; i < 3; i++) {
      int64_t sizes[MOST_DIMS];
      for (uint32_t d = 0; d < open.ndims; d++) {
        int64_t n = open.dims[d].extent > 1 ? open.dims[d].extent : 1;
        sizes[d] = pick(3) ? 1 + pick((unsigned)n) : pick(2) ? n : 1;
      }
      check_sizes(&k, m, &open, sizes);
    }
    free(k.needed), free(k.held), free(k.inexact), free(k.owner);
    model_free(&s);
  }
  kl_affs_destroy(&k.p);
  kl_arena_free(&arena);
  kiln_module_destroy(&m);
}

// clang-format off
// Instructions of ENTRY, parameters first.
static const char *const rows[] = {
  "a = f32[5,7] parameter(0) ROOT r = f32[5,7] negate(a)",
  "a = f32[] parameter(0) ROOT r = f32[] negate(a)",
  "a = f32[2,0] parameter(0) ROOT r = f32[2,0] negate(a)",
  "a = f32[4,6] parameter(0) ROOT r = f32[24] reshape(a)",
  "a = f32[24] parameter(0) ROOT r = f32[2,3,4] reshape(a)",
  "a = f32[2,5,7] parameter(0) ROOT r = f32[7,5,2] reshape(a)",
  "a = f32[8,16] parameter(0) ROOT r = f32[4,32] reshape(a)",
  "a = f32[4,6]{0,1} parameter(0) ROOT r = f32[8,3]{1,0} bitcast(a)",
  "a = f32[4,3] parameter(0) ROOT r = u8[4,12] bitcast(a)",
  "a = f32[5,7] parameter(0) ROOT r = f32[3,7,5] broadcast(a), dimensions={2,1}",
  "a = f32[2,3,4] parameter(0) ROOT r = f32[4,2,3] transpose(a), dimensions={2,0,1}",
  "a = f32[20,9] parameter(0) b = f32[6,9] slice(a), slice={[1:19:3], [0:9]} ROOT r = f32[6,9] reverse(b), dimensions={0,1}",
  "a = f32[5,4] parameter(0) b = f32[3,4] parameter(1) c = f32[6,4] parameter(2) ROOT r = f32[14,4] concatenate(a, b, c), dimensions={0}",
  "a = f32[6] parameter(0) ROOT r = f32[18] concatenate(a, a, a), dimensions={0}",
  "a = f32[4,3] parameter(0) v = f32[] parameter(1) ROOT r = f32[12,8] pad(a, v), padding=1_4_1x4_1_0",
  "a = f32[7] parameter(0) v = f32[] parameter(1) ROOT r = f32[5] pad(a, v), padding=-3_-5_1",
  "a = f32[4,8] parameter(0) b = f32[8,6] parameter(1) ROOT r = f32[4,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
  "a = f32[2,4,8] parameter(0) b = f32[8,2,3] parameter(1) ROOT r = f32[2,4,3] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
  "a = f32[6,9] parameter(0) z = f32[] constant(0) m = f32[6] reduce(a, z), dimensions={1}, to_apply=largest b = f32[6,9] broadcast(m), dimensions={0} "
  "d = f32[6,9] subtract(a, b) e = f32[6,9] exponential(d) s = f32[6] reduce(e, z), dimensions={1}, to_apply=sum c = f32[6,9] broadcast(s), dimensions={0} ROOT r = f32[6,9] divide(e, c)",
  "a = f32[5,6] parameter(0) b = f32[5,6] parameter(1) z = f32[] constant(0) ROOT r = (f32[5], f32[5]) reduce(a, b, z, z), dimensions={1}, to_apply=pair",
  "a = f32[5,6] parameter(0) z = f32[] constant(0) s = f32[5] reduce(a, z), dimensions={1}, to_apply=sum ROOT r = (f32[5], f32[5,6], f32[5,6]) tuple(s, a, f32[5,6] negate(a))",
  "a = f32[9,7] parameter(0) s = f32[] parameter(1) ROOT r = f32[4,5] reduce-window(a, s), window={size=3x3 stride=2x1}, to_apply=sum",
  "a = f32[4,5] parameter(0) s = f32[] parameter(1) ROOT r = f32[6,7] reduce-window(a, s), window={size=2x2 pad=0_0x1_2 lhs_dilate=2x1 rhs_dilate=1x1}, to_apply=sum",
  "a = f32[1,6,5,2] parameter(0) k = f32[3,2,2,3] parameter(1) ROOT r = f32[1,6,4,3] convolution(a, k), window={size=3x2 pad=1_1x0_0}, dim_labels=b01f_01io->b01f",
  "a = f32[9,8] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) b = f32[5,6] dynamic-slice(a, i, j), dynamic_slice_sizes={5,6} ROOT r = f32[2,3] dynamic-slice(b, j, i), dynamic_slice_sizes={2,3}",
  "a = f32[9,8] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) b = f32[6,4] dynamic-slice(a, i, j), dynamic_slice_sizes={6,4} ROOT r = f32[8,3] reshape(b)",
  "a = f32[6,8] parameter(0) u = f32[2,5] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) ROOT r = f32[6,8] dynamic-update-slice(a, u, i, j)",
  "a = f32[9,5] parameter(0) n = s32[4,1] parameter(1) ROOT r = f32[4,2,5] gather(a, n), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={2,5}",
  "a = f32[6] parameter(0) b = f32[4] slice(a), slice={[0:4]} c = f32[4] slice(a), slice={[2:6]} ROOT r = f32[4] add(b, c)",
  "a = f32[6,8] parameter(0) i = s32[] parameter(1) f = f32[4,8] fusion(a, i), kind=kLoop, calls={ p = f32[6,8] parameter(0) q = s32[] parameter(1) z = s32[] constant(0) ROOT d = f32[4,8] dynamic-slice(p, q, z), dynamic_slice_sizes={4,8} } "
  "g = f32[4] fusion(f), kind=kInput, calls={ p = f32[4,8] parameter(0) z = f32[] constant(0) ROOT s = f32[4] reduce(p, z), dimensions={1}, to_apply=sum } ROOT r = f32[4] negate(g)",
  // results of several shapes: an array beside what it is reshaped, transposed, summed to, and what is made with the sums
  "a = f32[4,6] parameter(0) b = f32[24] reshape(a) c = f32[6,4] transpose(a), dimensions={1,0} ROOT r = (f32[4,6], f32[24], f32[6,4]) tuple(f32[4,6] negate(a), b, c)",
  "a = f32[4,6] parameter(0) b = f32[8,3] reshape(a) ROOT r = (f32[4,6], f32[8,3]) tuple(a, b)",
  "a = f32[5,6] parameter(0) z = f32[] constant(0) s = f32[5] reduce(a, z), dimensions={1}, to_apply=sum b = f32[5,6] broadcast(s), dimensions={0} d = f32[5,6] subtract(a, b) ROOT r = (f32[5], f32[5,6], f32[30]) tuple(s, d, f32[30] reshape(d))",
  "a = f32[5,6] parameter(0) z = f32[] constant(0) s = f32[5] reduce(a, z), dimensions={1}, to_apply=sum ROOT r = (f32[5], f32[5,6], f32[]) tuple(s, a, z)",
  "a = f32[4,6] parameter(0) f = (f32[6,4], f32[4,6]) fusion(a), kind=kLoop, calls={ p = f32[4,6] parameter(0) q = f32[4,6] negate(p) t = f32[6,4] transpose(q), dimensions={1,0} ROOT u = (f32[6,4], f32[4,6]) tuple(t, q) } g = f32[6,4] get-tuple-element(f), index=0 ROOT r = f32[24] reshape(g)",
  "a = f32[4,6] parameter(0) ROOT f = (f32[6,4], f32[4,6]) fusion(a), kind=kLoop, calls={ p = f32[4,6] parameter(0) q = f32[4,6] negate(p) t = f32[6,4] transpose(q), dimensions={1,0} ROOT u = (f32[6,4], f32[4,6]) tuple(t, q) }",
  // what scatters may go anywhere that the type of the indices names: all of the updates are covered
  "a = f32[6,5] parameter(0) n = s32[4,1] parameter(1) u = f32[4,5] parameter(2) ROOT r = f32[6,5] scatter(a, n, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
  "a = f32[6,5] parameter(0) ROOT r = f32[6,5] sort(a), dimensions={0}, to_apply=less",
  "a = f32[6] parameter(0) n = s32[5,1] parameter(1) m = s32[4,1] parameter(2) g = f32[5] gather(a, n), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1} "
  "ROOT r = f32[4] gather(g, m), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
};
// clang-format on

START_TEST(every_op) {
  char text[8192];
  snprintf(text, sizeof text, "HloModule m\n" STEPS "ENTRY e {\n%s\n}\n", rows[_i]);
  state = (uint64_t)_i;
  for (uint64_t seed = 0; seed < 8; seed++) check(text, seed);
}
END_TEST

// --- known tilings
// ----------------------------------------------------------------------------------------------------

// clang-format off
// Values as "name[offsets]sizes", each with its region, unless that is 0, its conditions, guards and bounds; "~": covered.
static const struct {
  const char *entry;
  int64_t sizes[4];
  const char *values, *regions;
} known[] = {
  // a in two ways: by the division, and whole rows by the sum
  {"a = f32[2,97] parameter(0) z = f32[] constant(0) s = f32[2] reduce(a, z), dimensions={1}, to_apply=sum b = f32[2,97] broadcast(s), dimensions={0} ROOT r = f32[2,97] divide(a, b)", {1, 10, 97},
   "r[d0, d1 * 10]1x10<97; b[d0, d1 * 10]1x10<97; s[d0]1; z[]; a[d0, d1 * 10]1x10<97; a[d0, 0]1x97", ""},
  // sizes beyond the extents are the extents; the reduction in one step is no loop
  {"a = f32[2,97] parameter(0) z = f32[] constant(0) ROOT r = f32[2] reduce(a, z), dimensions={1}, to_apply=sum", {4, 100},
   "r[0]2; z[]; a[0, 0]2x97", ""},
  // a reduction in steps
  {"a = f32[16,97] parameter(0) z = f32[] constant(0) ROOT r = f32[16] reduce(a, z), dimensions={1}, to_apply=sum", {8, 32},
   "r[d0 * 8]8; z[]; a[d0 * 8, d1 * 32]8x32<97 in 1", "r"},
  // both sides of a contraction share its dim
  {"a = f32[4,8] parameter(0) b = f32[8,16] parameter(1) ROOT d = f32[4,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", {1, 2, 4},
   "d[d0, d1 * 2]1x2; b[d2 * 4, d1 * 2]4x2 in 1; a[d0, d2 * 4]1x4 in 1", "d"},
  {"a = f32[4,8] parameter(0) b = f32[8,16] parameter(1) ROOT d = f32[4,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", {1, 2, 8},
   "d[d0, d1 * 2]1x2; b[0, d1 * 2]8x2; a[d0, 0]1x8", ""},
  // the inner reduction does not depend on the step of the contraction: it stands before that loop
  {"a = f32[4,8] parameter(0) z = f32[] constant(0) s = f32[4] reduce(a, z), dimensions={1}, to_apply=sum c = f32[4,8] broadcast(s), dimensions={0} b = f32[8,16] parameter(1) ROOT d = f32[4,16] dot(c, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", {1, 2, 4, 2},
   "d[d0, d1 * 2]1x2; b[d2 * 4, d1 * 2]4x2 in 1; c[d0, d2 * 4]1x4 in 1; s[d0]1; z[]; a[d0, d3 * 2]1x2 in 2", "d; s"},
  // the scales go four times slower
  {"a = f8e4m3fn[4,128] parameter(0) b = f8e4m3fn[8,128] parameter(1) s = f8e8m0fnu[4,4] parameter(2) t = f8e8m0fnu[8,4] parameter(3) ROOT d = f32[4,8] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}", {2, 8, 8},
   "d[d0 * 2, 0]2x8; t[0, d2 / 4]8x1 in 1; s[d0 * 2, d2 / 4]2x1 in 1; b[0, d2 * 8]8x8 in 1; a[d0 * 2, d2 * 8]2x8 in 1", "d"},
  // an operand each, at its phase; the sizes fit, so nothing is cut
  {"a = bf16[6] parameter(0) b = bf16[6] parameter(1) c = bf16[6] parameter(2) ROOT r = bf16[18] concatenate(a, b, c), dimensions={0}", {3},
   "r[d0 * 3]3; c[d0 * 3 - 12]3 if d0 * 3 >= 10 in 3; b[d0 * 3 - 6]3 if d0 * 3 >= 4 <= 11 in 2; a[d0 * 3]3 if d0 * 3 <= 5 in 1", "r.0; r.1; r.2"},
  // the same operand twice, in two places
  {"a = bf16[6] parameter(0) ROOT r = bf16[12] concatenate(a, a), dimensions={0}", {6},
   "r[d0 * 6]6; a[d0 * 6]6 if d0 * 6 <= 5 in 1; a[d0 * 6 - 6]6 if d0 * 6 >= 1 in 2", "r.0; r.1"},
  // elsewhere refused, as 32 does not divide 33: here cut
  {"a = f32[33,4] parameter(0) b = f32[33,4] parameter(1) ROOT r = f32[66,4] concatenate(a, b), dimensions={0}", {32, 4},
   "r[d0 * 32, 0]32<66x4; b[d0 * 32 - 33, 0]32>=0<33x4 if d0 * 32 >= 2 in 2; a[d0 * 32, 0]32<33x4 if d0 * 32 <= 32 in 1", "r.0; r.1"},
  // what a branch needs is made in it, a loop too
  {"a = f32[10] parameter(0) z = f32[] constant(0) b = f32[5] parameter(1) s = f32[] reduce(b, z), dimensions={0}, to_apply=sum e = f32[] exponential(s) f = f32[10] broadcast(e), dimensions={} c = f32[20] concatenate(a, f), dimensions={0} ROOT r = f32[20] negate(c)", {5, 2},
   "r[d0 * 5]5; c[d0 * 5]5; f[d0 * 5 - 10]5 if d0 * 5 >= 6 in 2; e[] if d0 * 5 >= 6 in 2; s[] if d0 * 5 >= 6 in 2; b[d1 * 2]2<5 if d0 * 5 >= 6 in 3; z[] if d0 * 5 >= 6 in 2; a[d0 * 5]5 if d0 * 5 <= 9 in 1", "c.0; c.1; s in 2"},
  // a dynamic slice begins where the program says
  {"a = f32[20] parameter(0) i = s32[] parameter(1) ROOT r = f32[10] dynamic-slice(a, i), dynamic_slice_sizes={10}", {10},
   "r[0]10; i[]; a[rt0]10", ""},
  // one array in three ways, and j held to two ranges
  {"a = f32[8] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) b = f32[4] dynamic-slice(a, i), dynamic_slice_sizes={4} c = f32[2] dynamic-slice(b, j), dynamic_slice_sizes={2} d = f32[1] slice(c), slice={[0:1]} k = f32[4] slice(a), slice={[1:5]} l = f32[1] dynamic-slice(k, j), dynamic_slice_sizes={1} m = f32[1] slice(a), slice={[0:1]} n = f32[1] add(d, l) ROOT r = f32[1] add(n, m)", {1},
   "r[0]1; n[0]1; m[0]1; l[0]1; k[rt0]1; d[0]1; c[0]1; b[rt1]1; j[]; i[]; a[0]1; a[rt0 + 1]1; a[rt1 + rt2]1", ""},
  // of other devices: which one, the quotient tells
  {"a = f32[16,8] parameter(0) g = f32[64,8] all-gather(a), dimensions={0}, replica_groups={{0,1,2,3}} ROOT r = f32[64,8] negate(g)", {16, 8},
   "r[d0 * 16, 0]16x8; g[d0 * 16, 0]16x8; a[0, 0]16x8", ""},
  // two separate ranges of rows; elsewhere one of twice the size, which are other rows
  {"a = f32[64,8] parameter(0) g = f32[32,8] reduce-scatter(a), dimensions={0}, replica_groups={{0,1}}, to_apply=sum ROOT r = f32[32,8] negate(g)", {8, 8},
   "r[d0 * 8, 0]8x8; g[d0 * 8, 0]8x8; a~[d0 * 8, 0]8x8 +[d0 * 8 + 32, 0]8x8", ""},
  // whole rows collapse
  {"a = f32[48] parameter(0) ROOT r = f32[6,8] reshape(a)", {6, 8},
   "r[0, 0]6x8; a[0]48", ""},
  // elsewhere refused: here a box for each row
  {"a = f32[48] parameter(0) ROOT r = f32[6,8] reshape(a)", {6, 7},
   "r[0, d1 * 7]6x7<8; a[d1 * 7]7<8 +[d1 * 7 + 8]7<16 +[d1 * 7 + 16]7<24 +[d1 * 7 + 24]7<32 +[d1 * 7 + 32]7<40 +[d1 * 7 + 40]7<48", ""},
  // a condition while sizes are open
  {"a = f32[8,2] parameter(0) ROOT r = f32[16] reshape(a)", {0},
   "r[d0 * s0]s0<16; a[(d0 * s0) / 2, (d0 * s0) mod 2]s0 ceildiv 2<8xmin(2, s0) needs s0 mod 2 = 0 or -(s0 * (2 / s0)) + 2 = 0", ""},
  // elsewhere not done: strides below 0
  {"a = f32[7] parameter(0) ROOT r = f32[7] reverse(a), dimensions={0}", {3},
   "r[d0 * 3]3<7; a[-d0 * 3 + 6]3*-1>=0", ""},
  // what has no operands
  {"ROOT i = s32[8,6] iota(), iota_dimension=1", {4, 3},
   "i[d0 * 4, d1 * 3]4x3", ""},
  // fusions around a contraction; elsewhere its dim comes first among the sizes, and numbers of tiles are digits of one
  {"a = f32[8192,256] parameter(0) b = f32[256,512] parameter(1) l = f32[8192,256] fusion(a), kind=kLoop, calls={ p = f32[8192,256] parameter(0) ROOT u = f32[8192,256] abs(p) } "
   "r = f32[256,512] fusion(b), kind=kLoop, calls={ p = f32[256,512] parameter(0) ROOT u = f32[256,512] negate(p) } ROOT d = f32[8192,512] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}", {128, 32, 8},
   "d[d0 * 128, d1 * 32]128x32; r[d2 * 8, d1 * 32]8x32 in 1; u[d2 * 8, d1 * 32]8x32 in 1; p[d2 * 8, d1 * 32]8x32 in 1; l[d0 * 128, d2 * 8]128x8 in 1; u[d0 * 128, d2 * 8]128x8 in 1; p[d0 * 128, d2 * 8]128x8 in 1; b[d2 * 8, d1 * 32]8x32 in 1; a[d0 * 128, d2 * 8]128x8 in 1", "d"},
  // a scan goes over its line in steps, and up to its own element: elsewhere it takes all of the line in one
  {"a = f32[8,12] parameter(0) z = f32[8] parameter(1) s = (f32[8,12], f32[8]) scan(a, z), dimensions={1}, num_carries=1, to_apply=step ROOT r = f32[8,12] get-tuple-element(s), index=0", {2, 4, 3},
   "r[d0 * 2, d1 * 4]2x4; s[d0 * 2, d1 * 4]2x4; z[d0 * 2]2; a[d0 * 2, d2 * 3]2x3<d1 * 4 + 4 if d1 * 4 - d2 * 3 >= -3 in 1", "s"},
  {"a = f32[8,12] parameter(0) z = f32[8] parameter(1) s = (f32[8,12], f32[8]) scan(a, z), dimensions={1}, num_carries=1, to_apply=step ROOT r = f32[8,12] get-tuple-element(s), index=0", {2, 4, 12},
   "r[d0 * 2, d1 * 4]2x4; s[d0 * 2, d1 * 4]2x4; z[d0 * 2]2; a[d0 * 2, 0]2x12<d1 * 4 + 4", ""},
  // from the other end
  {"a = f32[8,12] parameter(0) z = f32[8] parameter(1) s = (f32[8,12], f32[8]) scan(a, z), dimensions={1}, num_carries=1, is_reverse=true, to_apply=step ROOT r = f32[8,12] get-tuple-element(s), index=0", {2, 4, 3},
   "r[d0 * 2, d1 * 4]2x4; s[d0 * 2, d1 * 4]2x4; z[d0 * 2]2; a[d0 * 2, d2 * 3]2x3>=d1 * 4 if d1 * 4 - d2 * 3 <= 2 in 1", "s"},
  // the last carries take whole lines
  {"a = f32[8,12] parameter(0) z = f32[8] parameter(1) s = (f32[8,12], f32[8]) scan(a, z), dimensions={1}, num_carries=1, to_apply=step ROOT r = f32[8] get-tuple-element(s), index=1", {2, 3},
   "r[d0 * 2]2; s.1[d0 * 2]2; z[d0 * 2]2; a[d0 * 2, d1 * 3]2x3 in 1", "s"},
  // more tiles than 32 bits count
  {"a = f32[65538,32768] parameter(0) ROOT r = f32[65538,32768] negate(a)", {1, 1},
   "r[d0, d1]1x1; a[d0, d1]1x1", ""},
  // several results of one instruction are its parts
  {"a = f32[8,6] parameter(0) b = f32[8,6] parameter(1) z = f32[] constant(0) ROOT r = (f32[8], f32[8]) reduce(a, b, z, z), dimensions={1}, to_apply=pair", {4, 3},
   "r[d0 * 4]4; r.1[d0 * 4]4; z[]; b[d0 * 4, d1 * 3]4x3 in 1; a[d0 * 4, d1 * 3]4x3 in 1", "r"},
  // results of several shapes are tiled along the dims of one, where they go along with it; elsewhere each has its own
  {"a = f32[16,96] parameter(0) z = f32[] constant(0) s = f32[16] reduce(a, z), dimensions={1}, to_apply=sum b = f32[16,96] broadcast(s), dimensions={0} d = f32[16,96] subtract(a, b) v = f32[1536] reshape(d) t = f32[96,16] transpose(a), dimensions={1,0} ROOT r = (f32[16], f32[16,96], f32[1536], f32[96,16]) tuple(s, d, v, t)", {8, 96},
   "r[d0 * 8]8; r.1[d0 * 8, 0]8x96; r.2[d0 * 768]768; r.3[0, d0 * 8]96x8; t[0, d0 * 8]96x8; v[d0 * 768]768; d[d0 * 8, 0]8x96; b[d0 * 8, 0]8x96; s[d0 * 8]8; z[]; a[d0 * 8, 0]8x96; a[d0 * 8, 0]8x96", ""},
  // a part of an array goes along with nothing: two dims
  {"a = f32[16] parameter(0) b = f32[8] slice(a), slice={[0:8]} ROOT r = (f32[16], f32[8]) tuple(a, b)", {8, 4},
   "r[d0 * 8]8; r.1[d1 * 4]4; b[d1 * 4]4; a[d0 * 8]8; a[d1 * 4]4", ""},
  // a sum goes along with what it sums, a row at a time
  {"a = f32[16,96] parameter(0) z = f32[] constant(0) s = f32[16] reduce(a, z), dimensions={1}, to_apply=sum ROOT r = (f32[16], f32[16,96]) tuple(s, a)", {4, 32, 48},
   "r[d0 * 4]4; r.1[d0 * 4, d1 * 32]4x32; s[d0 * 4]4; z[]; a[d0 * 4, d1 * 32]4x32; a[d0 * 4, d2 * 48]4x48 in 1", "s"},
  // a sort needs the line
  {"a = f32[6,5] parameter(0) ROOT r = f32[6,5] sort(a), dimensions={1}, to_apply=less", {2, 3},
   "r[d0 * 2, d1 * 3]2x3<5; a~[d0 * 2, 0]2x5", ""},
  // what nobody knows
  {"a = f32[5] parameter(0) ROOT r = f32[5] custom-call(a), custom_call_target=\"x\"", {2},
   "r[d0 * 2]2<5; a~", ""},
};
// clang-format on

static void put(kl_affs *p, kl_sb *b, const char *before, const kl_aff *e) {
  kl_sb_puts(b, before);
  if (e) kl_aff_print(p, b, e, NULL);
}

static void put_tile(kl_affs *p, kl_sb *b, const kl_map_tile *t) {
  for (uint32_t x = 0; x < t->nboxes; x++) {
    const kl_tile_dim *d = t->boxes[x].dims;
    if (x) kl_sb_puts(b, " +");
    kl_sb_putc(b, '[');
    for (uint32_t i = 0; i < t->rank; i++) put(p, b, i ? ", " : "", d[i].offset);
    kl_sb_putc(b, ']');
    for (uint32_t i = 0; i < t->rank; i++) {
      put(p, b, i ? "x" : "", d[i].size);
      if (!kl_aff_is_const(d[i].stride) || d[i].stride->c != 1) put(p, b, "*", d[i].stride);
      if (d[i].lower) put(p, b, ">=", d[i].lower);
      if (d[i].upper) put(p, b, "<", d[i].upper);
    }
    for (uint32_t i = 0; i < t->boxes[x].nguards; i++) {
      const kl_constraint *g = &t->boxes[x].guards[i];
      put(p, b, " if ", g->e);
      if (g->in.lo != INT64_MIN) kl_sbf(b, " >= %lld", (long long)g->in.lo);
      if (g->in.hi != INT64_MAX) kl_sbf(b, " <= %lld", (long long)g->in.hi);
    }
  }
}

static void put_values(const kiln_module *m, kl_affs *p, const kl_tiling *t, kl_sb *b) {
  for (uint32_t i = 0; i < t->n; i++) {
    const kl_tiled *v = &t->values[i];
    kl_str name = kl_symbol_text(&m->names, t->frames[v->frame].comp->instr[v->instr].name);
    kl_sbf(b, "%s%.*s%s", i ? "; " : "", KL_FMT(name), v->tile.state ? "~" : "");
    if (v->leaf) kl_sbf(b, ".%u", v->leaf);
    put_tile(p, b, &v->tile);
    if (v->region) kl_sbf(b, " in %u", v->region);
    for (uint32_t k = 0; k < v->tile.nclauses; k++) {
      kl_sb_puts(b, " needs");
      for (uint32_t c = 0; c < v->tile.clauses[k].n; c++) {
        put(p, b, c ? " or " : " ", v->tile.clauses[k].any[c].e);
        kl_sbf(b, " = %lld", (long long)v->tile.clauses[k].any[c].in.lo);
      }
    }
  }
}

static void put_regions(const kiln_module *m, const kl_tiling *t, kl_sb *b) {
  for (uint32_t i = 1; i < t->nregions; i++) {
    const kl_region *r = &t->regions[i];
    kl_str name = kl_symbol_text(&m->names, t->frames[r->frame].comp->instr[r->instr].name);
    kl_sbf(b, "%s%.*s", i > 1 ? "; " : "", KL_FMT(name));
    if (r->kind == KL_REGION_BRANCH) kl_sbf(b, ".%u", r->operand);
    if (r->parent) kl_sbf(b, " in %u", r->parent);
  }
}

START_TEST(known_tilings) {
  char text[4096];
  snprintf(text, sizeof text, "HloModule m\n" STEPS "ENTRY e {\n%s\n}\n", known[_i].entry);
  kiln_module *m = parse(text);
  kl_arena arena;
  kl_tiling t;
  kl_sb values, regions;
  kl_arena_init(&arena, m->cx);
  kl_affs *p = kl_affs_create(m->cx, &arena);
  uint32_t n = 0;
  while (n < KL_COUNT(known[_i].sizes) && known[_i].sizes[n]) n++;
  kl_tiling_make(p, m, &m->comp[m->entry], known[_i].sizes, n, &t);
  kl_sb_init(&values, m->cx), kl_sb_init(&regions, m->cx);
  put_values(m, p, &t, &values), put_regions(m, &t, &regions);
  ck_assert_str_eq(values.p, known[_i].values);
  ck_assert_str_eq(regions.p ? regions.p : "", known[_i].regions ? known[_i].regions : "");
  kl_sb_free(&values), kl_sb_free(&regions);
  kl_affs_destroy(&p);
  kl_arena_free(&arena);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(random_fusions) {
  static char text[1 << 16];
  for (uint64_t i = 0, n = share_of(4000); i < n; i++) {
    state = i;
    if (random_module(i + 1, 1 + (int)pick(7), text, sizeof text)) check(text, i);
  }
  printf(
      "# %ld modules, %ld tilings, %ld tiles; %ld values: %ld exact, %ld cover, %ld unknown; open sizes: %ld, of which "
      "%ld hold; results that go along with others: %ld\n",
      count.modules, count.tilings, count.tiles, count.values, count.exact, count.covers, count.unknown, count.open,
      count.held, count.along);
}
END_TEST

int main(void) {
  return RUN_TESTS("tiling", EACH(make_context, drop_context), {every_op, KL_COUNT(rows)},
                   {known_tilings, KL_COUNT(known)}, {random_fusions});
}
