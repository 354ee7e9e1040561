// Tilings as the public API has them: each with a pool of its own, names and shapes as text, other text when asked for.

#include "lower/analysis/tiles/tiles.h"
#include <kiln/tile.h>

struct kiln_tiling {
  kl_ctx *cx;
  kl_arena arena;
  kl_affs *pool;
  kl_tiling t;
  const char **frames;                      // "" or "fusion.1/", by frame
  const char **dims, **runtimes, **regions; // instructions' names
  const char **values, **shapes;
  kl_str *tile_names; // t0, t1, ...
  bool scheduled;
  kl_tile_schedule schedule;
};

_Static_assert((int)KILN_TILE_UNKNOWN == (int)KL_TILE_UNKNOWN && (int)KILN_TILE_COVERS == (int)KL_TILE_COVERS,
               "states are the same");
_Static_assert((int)KILN_REGION_BRANCH == (int)KL_REGION_BRANCH && (int)KILN_REGION_LOOP == (int)KL_REGION_LOOP,
               "kinds of regions are the same");

// --- making ---------------------------------------------------------------------------------------------------------

static const char *name_of(kiln_tiling *h, const kiln_module *m, uint32_t frame, uint32_t instr) {
  kl_str s = kl_symbol_text(&m->names, h->t.frames[frame].comp->instr[instr].name);
  return kl_strf(&h->arena, "%s%.*s", h->frames[frame], KL_FMT(s));
}

static void name_all(kiln_tiling *h, const kiln_module *m) {
  const kl_tiling *t = &h->t;
  h->frames = KL_NEW_N(&h->arena, const char *, t->nframes + 1);
  h->dims = KL_NEW_N(&h->arena, const char *, t->ndims + 1);
  h->runtimes = KL_NEW_N(&h->arena, const char *, t->nruntimes + 1);
  h->regions = KL_NEW_N(&h->arena, const char *, t->nregions + 1);
  h->values = KL_NEW_N(&h->arena, const char *, t->n + 1);
  h->shapes = KL_NEW_N(&h->arena, const char *, t->n + 1);
  h->tile_names = KL_NEW_N(&h->arena, kl_str, t->ndims + 1);
  h->frames[0] = "";
  for (uint32_t f = 1; f < t->nframes; f++)
    h->frames[f] = kl_strf(&h->arena, "%s/", name_of(h, m, t->frames[f].parent, t->frames[f].caller));
  for (uint32_t i = 0; i < t->ndims; i++) {
    h->dims[i] = name_of(h, m, t->dims[i].frame, t->dims[i].instr);
    h->tile_names[i] = kl_str_of(kl_strf(&h->arena, "t%u", i));
  }
  for (uint32_t i = 0; i < t->nruntimes; i++) {
    const kl_runtime *r = t->runtimes[i].from.payload;
    h->runtimes[i] = r ? name_of(h, m, r->frame, r->instr) : "";
  }
  for (uint32_t i = 0; i < t->nregions; i++)
    h->regions[i] = i ? name_of(h, m, t->regions[i].frame, t->regions[i].instr) : "";
  for (uint32_t i = 0; i < t->n; i++) {
    const kl_tiled *v = &t->values[i];
    h->values[i] = name_of(h, m, v->frame, v->instr);
    h->shapes[i] = kl_shape_text(&h->arena, kl_shape_leaf(t->frames[v->frame].comp->instr[v->instr].shape, v->leaf));
  }
}

static kiln_status check_sizes(kl_ctx *cx, const kiln_tiling_params *p, const kl_tiling *t) {
  if (!p->size_count) return KILN_OK;
  if (p->size_count < t->nparallel)
    return kl_invalid(cx, KL_NOWHERE, "expected tile sizes of %u parallel dims at least, found %zu", t->nparallel,
                      p->size_count);
  if (p->size_count > t->ndims)
    return kl_invalid(cx, KL_NOWHERE, "expected tile sizes of %u dims at most, found %zu", t->ndims, p->size_count);
  return KILN_OK;
}

kiln_status kiln_tiling_make(kiln_context *cx, const kiln_module *m, const kiln_tiling_params *params,
                             kiln_tiling **out) {
  kiln_tiling_params p = {.struct_size = sizeof p};
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  if (params) KL_TRY(KL_PARAMS_IN(cx, kiln_tiling_params, params, &p));
  if (p.size_count && !p.sizes) return kl_invalid(cx, KL_NOWHERE, "expected tile sizes, found a NULL pointer");
  for (size_t i = 0; i < p.size_count; i++)
    if (p.sizes[i] < 0)
      return kl_invalid(cx, KL_NOWHERE, "expected a tile size of at least 1, or 0 for an open one, found %lld",
                        (long long)p.sizes[i]);
  if (p.per_block < 0)
    return kl_invalid(cx, KL_NOWHERE, "expected at least 1 tile for a block, or 0 for 1, found %lld",
                      (long long)p.per_block);
  kiln_tiling *h = kl_alloc(cx, sizeof *h);
  h->cx = cx;
  kl_context_hold(cx);
  kl_arena_init(&h->arena, cx);
  h->pool = kl_affs_create(cx, &h->arena);
  uint32_t n = p.size_count < UINT32_MAX ? (uint32_t)p.size_count : UINT32_MAX;
  kl_tiling_make(h->pool, m, &m->comp[m->entry], p.sizes, n, &h->t);
  kiln_status s = check_sizes(cx, &p, &h->t);
  if (s == KILN_OK) {
    name_all(h, m);
    h->scheduled = kl_tile_schedule_make(h->pool, &h->t, p.per_block ? p.per_block : 1, &h->schedule);
    *out = h;
  } else
    kiln_tiling_destroy(&h);
  return s;
}

void kiln_tiling_destroy(kiln_tiling **t) {
  kiln_tiling *h = t ? *t : NULL;
  if (!h) return;
  kl_ctx *cx = h->cx;
  kl_affs_destroy(&h->pool);
  kl_arena_free(&h->arena);
  kl_free(cx, h, sizeof *h);
  kl_context_release(cx);
  *t = NULL;
}

// --- text -----------------------------------------------------------------------------------------------------------

static void put(const kiln_tiling *h, kl_sb *b, const kl_aff *e) {
  kl_aff_names names = {.of = {[KL_AFF_DIM] = h->tile_names}};
  size_t before = b->n;
  if (!kl_aff_print(h->pool, b, e, &names)) {
    b->n = before;
    kl_sb_puts(b, "...");
  }
}

static const char *keep(const kiln_tiling *h, kl_sb *b) {
  const char *text = kl_str_dup((kl_arena *)&h->arena, (kl_str){b->p ? b->p : "", b->n}).p;
  kl_sb_free(b);
  return text;
}

static const char *text_of(const kiln_tiling *h, const kl_aff *e) {
  kl_sb b;
  if (!e) return "";
  kl_sb_init(&b, h->cx);
  put(h, &b, e);
  return keep(h, &b);
}

// c mod s, which normal form has as c - s * (c / s): the size, or NULL.
static const kl_aff *divisor(const kiln_tiling *h, const kl_aff *e) {
  for (uint32_t i = 0; i < h->t.ndims; i++) {
    const kl_aff *c = kl_aff_const(h->pool, e->c), *s = kl_aff_range(h->pool, i);
    if (kl_aff_sub(h->pool, c, kl_aff_mul(h->pool, s, kl_aff_floordiv(h->pool, c, s))) == e) return s;
  }
  return NULL;
}

static void put_condition(const kiln_tiling *h, kl_sb *b, const kl_constraint *c) {
  const kl_aff *s = c->e->n == 1 && c->e->c > 1 ? divisor(h, c->e) : NULL;
  if (s) kl_sbf(b, "%lld mod ", (long long)c->e->c);
  put(h, b, s ? s : c->e);
  if (c->in.lo == c->in.hi)
    kl_sbf(b, " = %lld", (long long)c->in.lo);
  else if (c->in.hi == INT64_MAX)
    kl_sbf(b, " >= %lld", (long long)c->in.lo);
  else if (c->in.lo == INT64_MIN)
    kl_sbf(b, " <= %lld", (long long)c->in.hi);
  else
    kl_sbf(b, " in [%lld, %lld]", (long long)c->in.lo, (long long)c->in.hi);
}

// --- questions ------------------------------------------------------------------------------------------------------

size_t kiln_tiling_dim_count(const kiln_tiling *t) {
  return t ? t->t.ndims : 0;
}
size_t kiln_tiling_parallel_count(const kiln_tiling *t) {
  return t ? t->t.nparallel : 0;
}
size_t kiln_tiling_runtime_count(const kiln_tiling *t) {
  return t ? t->t.nruntimes : 0;
}
size_t kiln_tiling_region_count(const kiln_tiling *t) {
  return t ? t->t.nregions : 0;
}
size_t kiln_tiling_value_count(const kiln_tiling *t) {
  return t ? t->t.n : 0;
}

bool kiln_tiling_dim_at(const kiln_tiling *t, size_t i, kiln_tiling_dim *out) {
  if (!out || i >= kiln_tiling_dim_count(t)) return false;
  const kl_tiling_dim *d = &t->t.dims[i];
  kiln_tiling_dim own = {sizeof own, d->sequential, d->extent, kl_aff_is_const(d->size) ? d->size->c : 0,
                         t->dims[i], d->number};
  return KL_PARAMS_OUT(NULL, kiln_tiling_dim, &own, out) == KILN_OK;
}

bool kiln_tiling_runtime_at(const kiln_tiling *t, size_t i, kiln_tiling_runtime *out) {
  if (!out || i >= kiln_tiling_runtime_count(t)) return false;
  const kl_tiling_runtime *r = &t->t.runtimes[i];
  const kl_runtime *what = r->from.payload;
  kl_sb b;
  kl_sb_init(&b, t->cx);
  for (uint32_t k = 0; k < r->from.nindex; k++) {
    if (k) kl_sb_puts(&b, ", ");
    put(t, &b, r->from.index[k]);
  }
  kiln_tiling_runtime own = {sizeof own, r->in.lo, r->in.hi, t->runtimes[i], what ? what->leaf : 0, keep(t, &b)};
  return KL_PARAMS_OUT(NULL, kiln_tiling_runtime, &own, out) == KILN_OK;
}

bool kiln_tiling_region_at(const kiln_tiling *t, size_t i, kiln_tiling_region *out) {
  if (!out || i >= kiln_tiling_region_count(t)) return false;
  const kl_region *r = &t->t.regions[i];
  kiln_tiling_region own = {sizeof own, (kiln_region_kind)r->kind, r->parent, t->regions[i], r->operand};
  return KL_PARAMS_OUT(NULL, kiln_tiling_region, &own, out) == KILN_OK;
}

bool kiln_tiling_value_at(const kiln_tiling *t, size_t i, kiln_tiled_value *out) {
  if (!out || i >= kiln_tiling_value_count(t)) return false;
  const kl_tiled *v = &t->t.values[i];
  kiln_tiled_value own = {sizeof own,
                          t->values[i],
                          v->leaf,
                          t->shapes[i],
                          v->tile.rank,
                          v->region,
                          (kiln_tile_state)v->tile.state,
                          v->tile.why,
                          v->tile.nboxes,
                          v->tile.nclauses};
  return KL_PARAMS_OUT(NULL, kiln_tiled_value, &own, out) == KILN_OK;
}

bool kiln_tiling_condition_at(const kiln_tiling *t, size_t value, size_t i, const char **text) {
  if (!text || value >= kiln_tiling_value_count(t) || i >= t->t.values[value].tile.nclauses) return false;
  const kl_tile_clause *c = &t->t.values[value].tile.clauses[i];
  kl_sb b;
  kl_sb_init(&b, t->cx);
  for (uint32_t k = 0; k < c->n; k++) {
    if (k) kl_sb_puts(&b, " or ");
    put_condition(t, &b, &c->any[k]);
  }
  *text = keep(t, &b);
  return true;
}

static const kl_tile_box *box_of(const kiln_tiling *t, size_t value, size_t box) {
  bool there = value < kiln_tiling_value_count(t) && box < t->t.values[value].tile.nboxes;
  return there ? &t->t.values[value].tile.boxes[box] : NULL;
}

bool kiln_tiling_box_at(const kiln_tiling *t, size_t value, size_t box, size_t dim, kiln_tile_text *out) {
  const kl_tile_box *b = box_of(t, value, box);
  if (!out || !b || dim >= t->t.values[value].tile.rank) return false;
  const kl_tile_dim *d = &b->dims[dim];
  kiln_tile_text own = {sizeof own,           text_of(t, d->offset), text_of(t, d->size), text_of(t, d->stride),
                        text_of(t, d->lower), text_of(t, d->upper)};
  return KL_PARAMS_OUT(NULL, kiln_tile_text, &own, out) == KILN_OK;
}

bool kiln_tiling_guard_at(const kiln_tiling *t, size_t value, size_t box, size_t i, const char **text) {
  const kl_tile_box *b = box_of(t, value, box);
  kl_sb s;
  if (!text || !b || i >= b->nguards) return false;
  kl_sb_init(&s, t->cx);
  put_condition(t, &s, &b->guards[i]);
  *text = keep(t, &s);
  return true;
}

bool kiln_tiling_evaluate(const kiln_tiling *t, size_t value, size_t box, const int64_t *tiles, const int64_t *sizes,
                          const int64_t *runtime, bool *any, kiln_tile_range *ranges) {
  const kl_tile_box *b = box_of(t, value, box);
  if (!b || !any || (!ranges && t->t.values[value].tile.rank) || (!tiles && t->t.ndims)) return false;
  const kl_map_tile *tile = &t->t.values[value].tile;
  bool open = false;
  for (uint32_t i = 0; i < t->t.ndims; i++) open |= !kl_aff_is_const(t->t.dims[i].size);
  if ((open && !sizes) || (t->t.nruntimes && !runtime) || !kl_tile_clauses_hold(t->pool, tile, sizes, t->t.ndims))
    return false;
  kl_point at = {{tiles, sizes, runtime}};
  *any = true;
  for (uint32_t i = 0; i < b->nguards; i++) {
    int64_t v;
    if (!kl_aff_eval(t->pool, b->guards[i].e, &at, &v)) return false;
    *any &= v >= b->guards[i].in.lo && v <= b->guards[i].in.hi;
  }
  for (uint32_t d = 0; d < tile->rank; d++) {
    const kl_tile_dim *from = &b->dims[d];
    kiln_tile_range r = {.lower = INT64_MIN, .upper = INT64_MAX};
    if (!kl_aff_eval(t->pool, from->offset, &at, &r.offset) || !kl_aff_eval(t->pool, from->size, &at, &r.size) ||
        !kl_aff_eval(t->pool, from->stride, &at, &r.stride) ||
        (from->lower && !kl_aff_eval(t->pool, from->lower, &at, &r.lower)) ||
        (from->upper && !kl_aff_eval(t->pool, from->upper, &at, &r.upper)))
      return false;
    ranges[d] = r;
  }
  return true;
}

// --- blocks ---------------------------------------------------------------------------------------------------------

bool kiln_tiling_schedule(const kiln_tiling *t, kiln_tile_schedule *out) {
  if (!t || !out || !t->scheduled) return false;
  const kl_tile_schedule *s = &t->schedule;
  kiln_tile_schedule own = {sizeof own, s->tiles, s->blocks, s->per_block};
  return KL_PARAMS_OUT(NULL, kiln_tile_schedule, &own, out) == KILN_OK;
}

bool kiln_tiling_schedule_at(const kiln_tiling *t, size_t dim, const char **text) {
  static const kl_str block = {"block", 5}, step = {"step", 4};
  const kl_aff_names names = {.of = {[KL_AFF_DIM] = &block, [KL_AFF_RANGE] = &step}};
  if (!text || !t || !t->scheduled || dim >= t->t.nparallel) return false;
  kl_sb b;
  kl_sb_init(&b, t->cx);
  kl_aff_print(t->pool, &b, t->schedule.map->results[dim], &names);
  *text = keep(t, &b);
  return true;
}

bool kiln_tiling_schedule_tile(const kiln_tiling *t, int64_t block, int64_t step, int64_t *tiles) {
  if (!t || !t->scheduled || (!tiles && t->t.nparallel)) return false;
  kl_point at = {{&block, &step, NULL}};
  return kl_map_contains(t->pool, t->schedule.map, &at) && kl_map_eval(t->pool, t->schedule.map, &at, tiles);
}

// --- good sizes -----------------------------------------------------------------------------------------------------

struct kiln_tile_choices {
  kl_ctx *cx;
  kl_arena arena;
  kl_affs *pool;
  uint32_t n;
  bool all;
  const kl_tile_choice *p;
};

enum { MOST_TRIED = 1 << 16 };

kiln_status kiln_tile_search(kiln_context *cx, const kiln_module *m, const kiln_tile_limits *limits,
                             kiln_tile_choices **out) {
  kiln_tile_limits l = {.struct_size = sizeof l};
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  if (limits) KL_TRY(KL_PARAMS_IN(cx, kiln_tile_limits, limits, &l));
  if (l.elements < 0 || l.registers < 0 || l.shared < 0)
    return kl_invalid(cx, KL_NOWHERE, "expected limits of at least 0, found %lld",
                      (long long)(l.elements < 0    ? l.elements
                                  : l.registers < 0 ? l.registers
                                                    : l.shared));
  kl_tile_limits own = {.elements = l.elements ? l.elements : 1 << 20,
                        .registers = l.registers ? l.registers : 1 << 16,
                        .shared = l.shared ? l.shared : 48 << 10,
                        .divide = l.divide,
                        .most = !l.choices               ? 16
                                : l.choices < UINT32_MAX ? (uint32_t)l.choices
                                                         : UINT32_MAX,
                        .quota = MOST_TRIED};
  kiln_tile_choices *h = kl_alloc(cx, sizeof *h);
  h->cx = cx;
  kl_context_hold(cx);
  kl_arena_init(&h->arena, cx);
  h->pool = kl_affs_create(cx, &h->arena);
  h->p = kl_tiling_search(h->pool, m, &m->comp[m->entry], &own, &h->n, &h->all);
  *out = h;
  return KILN_OK;
}

void kiln_tile_choices_destroy(kiln_tile_choices **c) {
  kiln_tile_choices *h = c ? *c : NULL;
  if (!h) return;
  kl_ctx *cx = h->cx;
  kl_affs_destroy(&h->pool);
  kl_arena_free(&h->arena);
  kl_free(cx, h, sizeof *h);
  kl_context_release(cx);
  *c = NULL;
}

size_t kiln_tile_choice_count(const kiln_tile_choices *c) {
  return c ? c->n : 0;
}
bool kiln_tile_choices_all(const kiln_tile_choices *c) {
  return c && c->all;
}

bool kiln_tile_choice_at(const kiln_tile_choices *c, size_t i, kiln_tile_choice *out) {
  if (!out || i >= kiln_tile_choice_count(c)) return false;
  const kl_tile_choice *x = &c->p[i];
  kiln_tile_choice own = {sizeof own, x->sizes, x->cost, x->blocks, x->registers, x->shared};
  return KL_PARAMS_OUT(NULL, kiln_tile_choice, &own, out) == KILN_OK;
}
