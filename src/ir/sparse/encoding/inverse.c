// The way from levels back to dimensions: as MLIR infers it, and as functions.
#include "ir/sparse/impl.h"

// --- blocks, as MLIR has them -------------------------------------------------------------------------------------

// "d floordiv c" or "d mod c" with a positive constant.
static bool is_block_part(const kl_tree *e, int64_t *c) {
  return (e->kind == KL_TREE_FLOOR || e->kind == KL_TREE_MOD) && e->a->kind == KL_TREE_DIM && kl_tree_const(e->b, c) &&
         *c > 0;
}

bool sp_is_blocks(const kl_encoding *e) {
  int64_t size[KL_MOST_LEVELS] = {0}; // of blocks by dimension; -1: stands plain
  bool has_block = false;
  for (uint32_t i = 0; i < e->nlevels; i++) {
    const kl_tree *v = e->levels[i].value;
    int64_t c = -1;
    if (v->kind == KL_TREE_DIM) {
      if (size[v->value]) return false;
      size[v->value] = -1;
    } else if (!is_block_part(v, &c)) {
      return false;
    } else if (v->kind == KL_TREE_FLOOR) {
      if (size[v->a->value]) return false;
      size[v->a->value] = c;
    } else {
      if (size[v->a->value] != c) return false;
      has_block = true;
    }
  }
  return has_block;
}

static bool is_permutation(const kl_encoding *e) {
  bool seen[KL_MOST_LEVELS] = {false};
  if (e->nlevels != e->ndims) return false;
  for (uint32_t i = 0; i < e->nlevels; i++) {
    const kl_tree *v = e->levels[i].value;
    if (v->kind != KL_TREE_DIM || seen[v->value]) return false;
    seen[v->value] = true;
  }
  return true;
}

// Of the levels: q * c + r of the dimension's block, NULL where it has not both.
static const kl_tree *block_inverse(kl_encoding *e, uint32_t dim) {
  const kl_tree *quotient = NULL, *rest = NULL, *size = NULL;
  for (uint32_t i = 0; i < e->nlevels; i++) {
    const kl_tree *v = e->levels[i].value;
    if (v->kind >= KL_TREE_CONST || v->a->value != dim) continue;
    const kl_tree *level = kl_tree_leaf(&e->trees, KL_TREE_DIM, i);
    if (v->kind == KL_TREE_FLOOR) {
      quotient = level;
      size = v->b;
    } else if (!rest) {
      rest = level;
    }
  }
  if (!quotient || !rest) return NULL;
  return kl_tree_binary(&e->trees, KL_TREE_ADD, kl_tree_binary(&e->trees, KL_TREE_MUL, quotient, size), rest);
}

// MLIR lists plain dimensions first, in the order of levels, and blocked ones behind them.
static const kl_tree *const *infer_blocked(kl_encoding *e, const kl_tree **out, uint32_t *n) {
  bool blocked[KL_MOST_LEVELS] = {false};
  *n = 0;
  for (uint32_t i = 0; i < e->nlevels; i++) {
    const kl_tree *v = e->levels[i].value;
    if (v->kind == KL_TREE_DIM)
      out[(*n)++] = kl_tree_leaf(&e->trees, KL_TREE_DIM, i);
    else
      blocked[v->a->value] = true;
  }
  for (uint32_t d = 0; d < e->ndims; d++)
    if (blocked[d] && !(out[(*n)++] = block_inverse(e, d))) return NULL;
  return out;
}

const kl_tree *const *sp_infer_blocks(kl_encoding *e, kl_arena *arena, uint32_t *n) {
  const kl_tree **out = KL_NEW_N(arena, const kl_tree *, e->ndims + e->nlevels + 1);
  if (e->nsymbols) return NULL;
  if (is_permutation(e)) {
    *n = e->ndims;
    for (uint32_t i = 0; i < e->nlevels; i++) out[e->levels[i].value->value] = kl_tree_leaf(&e->trees, KL_TREE_DIM, i);
    return out;
  }
  return sp_is_blocks(e) ? infer_blocked(e, out, n) : NULL;
}

// --- counting -----------------------------------------------------------------------------------------------------

// d * (s * K), or d * s.
int32_t sp_counts(const kl_tree *v, int64_t *slots) {
  *slots = -1;
  if (v->kind != KL_TREE_MUL || v->a->kind != KL_TREE_DIM) return -1;
  const kl_tree *s = v->b;
  if (s->kind == KL_TREE_MUL && kl_tree_const(s->b, slots)) s = s->a;
  return s->kind == KL_TREE_SYMBOL && (*slots > 0 || *slots == -1) ? (int32_t)v->a->value : -1;
}

static bool has_symbols(const kl_encoding *e, const kl_tree *v) {
  for (uint32_t s = 0; s < e->nsymbols; s++)
    if (kl_tree_uses(v, KL_TREE_SYMBOL, s)) return true;
  return false;
}

int32_t sp_missing(const kl_encoding *e) {
  for (uint32_t d = 0; d < e->ndims; d++) {
    bool used = false;
    for (uint32_t i = 0; i < e->nlevels && !used; i++)
      used = !has_symbols(e, e->levels[i].value) && kl_tree_uses(e->levels[i].value, KL_TREE_DIM, d);
    if (!used) return (int32_t)d;
  }
  return -1;
}

// --- functions ----------------------------------------------------------------------------------------------------

enum { UNKNOWN_BITS = 40 }; // dimensions of no known size go up to here: beyond what memory holds

static int64_t last_of(int64_t size) {
  return size < 0 ? (int64_t)1 << UNKNOWN_BITS : size > 0 ? size - 1 : 0;
}

// Dimensions that have more than one value, by number, and levels without symbols.
typedef struct chosen {
  uint32_t ndims, dims[KL_MOST_LEVELS], nlevels, levels[KL_MOST_LEVELS];
} chosen;

// The map from these dimensions, the others being 0, to these levels. Undefined where one has no value.
static const kl_map *level_map(const kl_encoding *e, kl_affs *p, const int64_t *last, chosen *c) {
  const kl_aff *results[KL_MOST_LEVELS], *to[KL_MOST_LEVELS];
  kl_map_var dims[KL_MOST_LEVELS] = {0};
  c->ndims = c->nlevels = 0;
  for (uint32_t d = 0; d < e->ndims; d++) {
    to[d] = last[d] > 0 ? kl_aff_dim(p, c->ndims) : kl_aff_const(p, 0);
    if (last[d] == 0) continue;
    dims[c->ndims].in = (kl_interval){0, last[d]};
    c->dims[c->ndims++] = d;
  }
  for (uint32_t i = 0; i < e->nlevels; i++) {
    if (has_symbols(e, e->levels[i].value)) continue;
    const kl_aff *a = kl_tree_aff(p, e->levels[i].value);
    if (a->error) return kl_map_undefined(p, "a level has no value");
    kl_aff_replace(p, &(kl_aff_subst){.to = {to}, .n = {e->ndims}}, &a, 1, &results[c->nlevels]);
    if (results[c->nlevels]->error) return kl_map_undefined(p, "a level has no value");
    c->levels[c->nlevels++] = i;
  }
  kl_map parts = {.nvars = {c->ndims}, .vars = {dims}, .results = results, .nresults = c->nlevels};
  return kl_map_simplify(p, kl_map_make(p, &parts), KL_MAP_KEEP_POINTS);
}

// Dimensions by levels, where they are functions of these.
static bool inverted(const kl_encoding *e, kl_affs *p, const int64_t *last, const kl_aff **out) {
  chosen c;
  const kl_aff *levels[KL_MOST_LEVELS];
  const kl_map *m = level_map(e, p, last, &c);
  if (m->state != KL_MAP_DEFINED) return false;
  for (uint32_t d = 0; d < e->ndims; d++) out[d] = kl_aff_const(p, 0);
  if (c.ndims == 0) return true;
  const kl_map *back = kl_map_invert(p, m, KL_MAP_QUOTA);
  if (back->state != KL_MAP_DEFINED || back->nvars[KL_AFF_RANGE] || back->nvars[KL_AFF_RT]) return false;
  for (uint32_t i = 0; i < c.nlevels; i++) levels[i] = kl_aff_dim(p, c.levels[i]);
  for (uint32_t d = 0; d < c.ndims; d++)
    kl_aff_replace(p, &(kl_aff_subst){.to = {levels}, .n = {c.nlevels}}, &back->results[d], 1, &out[c.dims[d]]);
  return true;
}

bool sp_inverse_follows(const kl_encoding *e) {
  int64_t last[KL_MOST_LEVELS];
  const kl_aff *dims[KL_MOST_LEVELS];
  kl_arena temporary;
  for (uint32_t d = 0; d < e->ndims; d++) last[d] = last_of(-1);
  kl_arena_init(&temporary, e->cx);
  kl_affs *pool = kl_affs_create(e->cx, &temporary);
  bool follows = inverted(e, pool, last, dims);
  kl_affs_destroy(&pool);
  kl_arena_free(&temporary);
  return follows;
}

static bool divides_by_nothing(const kl_tree *v) {
  int64_t c;
  if (v->kind >= KL_TREE_CONST) return false;
  if (kl_tree_const(v->b, &c) && (v->kind == KL_TREE_MOD ? c <= 0 : v->kind >= KL_TREE_FLOOR && c == 0)) return true;
  return divides_by_nothing(v->a) || divides_by_nothing(v->b);
}

bool sp_has_value(const kl_encoding *e, const kl_tree *v) {
  kl_arena temporary;
  if (divides_by_nothing(v)) return false;
  kl_arena_init(&temporary, e->cx);
  kl_affs *pool = kl_affs_create(e->cx, &temporary);
  bool has = !kl_tree_aff(pool, v)->error;
  kl_affs_destroy(&pool);
  kl_arena_free(&temporary);
  return has;
}

// Is h zero at all points of the box?
static bool vanishes(const kl_encoding *e, kl_affs *p, const int64_t *last, const kl_aff *h) {
  kl_map_var dims[KL_MOST_LEVELS] = {0};
  kl_map parts = {.nvars = {e->ndims}, .vars = {dims}, .results = &h, .nresults = 1};
  if (h->error) return false;
  if (kl_aff_is_const(h)) return h->c == 0;
  for (uint32_t d = 0; d < e->ndims; d++) dims[d].in = (kl_interval){0, last[d]};
  const kl_map *m = kl_map_simplify(p, kl_map_make(p, &parts), KL_MAP_KEEP_POINTS);
  if (m->state != KL_MAP_DEFINED) return m->state == KL_MAP_EMPTY;
  if (kl_aff_is_const(m->results[0])) return m->results[0]->c == 0;
  return kl_map_is_empty(p, kl_map_constrain(p, m, m->results[0], (kl_interval){1, INT64_MAX}), KL_MAP_QUOTA, NULL) ==
             KL_YES &&
         kl_map_is_empty(p, kl_map_constrain(p, m, m->results[0], (kl_interval){INT64_MIN, -1}), KL_MAP_QUOTA, NULL) ==
             KL_YES;
}

// The inverse that is written, of the levels' expressions: dimension d where it leads back.
static const kl_aff *round_trip(const kl_encoding *e, kl_affs *p, uint32_t d) {
  const kl_aff *levels[KL_MOST_LEVELS], *out, *g = kl_tree_aff(p, e->inverse[d]);
  kl_aff_subst s = {.to = {levels}, .n = {e->nlevels}};
  if (g->error) return g;
  for (uint32_t i = 0; i < e->nlevels; i++) {
    levels[i] = kl_tree_aff(p, e->levels[i].value);
    if (levels[i]->error) return levels[i];
  }
  kl_aff_replace(p, &s, &g, 1, &out);
  return out;
}

static bool written_holds(const kl_encoding *e, kl_affs *p, const int64_t *last, uint32_t *at) {
  for (uint32_t d = 0; d < e->ndims; d++) {
    *at = d;
    if (e->inverse[d] && !vanishes(e, p, last, kl_aff_sub(p, round_trip(e, p, d), kl_aff_dim(p, d)))) return false;
  }
  return true;
}

// Dimensions reach as far as the inverse can give them: `l mod 8` says that they have 8 elements.
static void written_reach(const kl_encoding *e, int64_t *last) {
  int64_t zero[KL_MOST_LEVELS] = {0}, lo[KL_MOST_LEVELS], hi[KL_MOST_LEVELS], least, most;
  for (uint32_t d = 0; d < e->ndims; d++) last[d] = last_of(-1);
  for (uint32_t i = 0; i < e->nlevels; i++)
    if (!kl_tree_bounds(e->levels[i].value, zero, last, &lo[i], &hi[i])) lo[i] = -last_of(-1), hi[i] = last_of(-1);
  for (uint32_t d = 0; d < e->ndims; d++)
    if (e->inverse[d] && kl_tree_bounds(e->inverse[d], lo, hi, &least, &most) && most >= 0 && most < last[d])
      last[d] = most;
}

bool sp_inverse_holds(const kl_encoding *e, uint32_t *at) {
  int64_t last[KL_MOST_LEVELS];
  kl_arena temporary;
  kl_arena_init(&temporary, e->cx);
  kl_affs *pool = kl_affs_create(e->cx, &temporary);
  written_reach(e, last);
  bool holds = written_holds(e, pool, last, at);
  kl_affs_destroy(&pool);
  kl_arena_free(&temporary);
  return holds;
}

// --- sizes --------------------------------------------------------------------------------------------------------

static kl_level_extent extent_of(const kl_encoding *e, const kl_tree *v, const int64_t *sizes) {
  int64_t zero[KL_MOST_LEVELS] = {0}, last[KL_MOST_LEVELS], lo, hi, slots, size;
  kl_level_extent x = {0, -1, sp_counts(v, &slots)};
  bool known = true;
  if (x.count >= 0) {
    x.size = slots;
    return x;
  }
  for (uint32_t d = 0; d < e->ndims; d++) {
    last[d] = sizes[d] < 0 ? last_of(-1) : sizes[d] - 1;
    known &= sizes[d] >= 0 || !kl_tree_uses(v, KL_TREE_DIM, d) || v->kind == KL_TREE_MOD;
  }
  if (!known || !kl_tree_bounds(v, zero, last, &lo, &hi)) return x;
  if (hi < lo) hi = lo - 1;
  if (__builtin_sub_overflow(hi, lo, &size) || size == INT64_MAX) return x;
  return (kl_level_extent){lo, size + 1, -1};
}

// Dimensions as functions of level expressions: those that are written, else what is found.
static void bind_inverse(const kl_encoding *e, kl_affs *p, const int64_t *last, kl_binding *out) {
  uint32_t at;
  bool written = e->inverse && !e->nsymbols && written_holds(e, p, last, &at);
  if (written && e->complete) {
    for (uint32_t d = 0; d < e->ndims; d++) out->dims[d] = kl_tree_aff(p, e->inverse[d]);
  } else if (!inverted(e, p, last, out->dims)) {
    out->why = e->inverse && !written ? "the inverse that is written does not lead back to every dimension"
                                      : "no way back from levels to dimensions is found";
  }
}

void kl_encoding_bind(const kl_encoding *e, kl_affs *p, const int64_t *sizes, kl_binding *out) {
  int64_t last[KL_MOST_LEVELS];
  out->why = NULL;
  out->unsure = false;
  for (uint32_t i = 0; i < e->nlevels; i++) {
    out->levels[i] = extent_of(e, e->levels[i].value, sizes);
    if (has_symbols(e, e->levels[i].value) && out->levels[i].count < 0)
      out->why = "a symbol counts nothing: expected d * (s * SLOTS)";
  }
  for (uint32_t d = 0; d < e->ndims; d++) {
    last[d] = last_of(sizes[d]);
    out->unsure |= sizes[d] < 0;
  }
  if (!out->why) bind_inverse(e, p, last, out);
}
