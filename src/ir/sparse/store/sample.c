// Dense tensors that an encoding can store: groups, slots and unique levels take so many entries and no more, and
// coordinates and positions have so many bits.
#include "ir/sparse/store/sample.h"
#include "ir/sparse/store/store.h"

enum { ONE_IN = 8 };

// How often a key was counted. Keys are hashes that stand for prefixes of coordinates.
typedef struct counter {
  uint64_t *keys; // 0: free
  int64_t *counts;
  size_t slots, n;
} counter;

typedef struct sampler {
  kl_ctx *cx;
  kl_arena arena;
  kl_store s;
  bool storable;
  kl_columns levels; // by dimension
  int64_t **registers;
  bool *bad;
  counter seen;
  int64_t kept, most; // entries; most: that positions count
} sampler;

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// --- counting ------------------------------------------------------------------------------------------------------

static size_t slot_of(const counter *c, uint64_t key) {
  size_t i = key & (c->slots - 1);
  while (c->keys[i] && c->keys[i] != key) i = (i + 1) & (c->slots - 1);
  return i;
}

static bool grow(sampler *x) {
  counter old = x->seen, to = {.slots = old.slots ? old.slots * 2 : 1024, .n = old.n};
  to.keys = kl_arena_try_alloc(&x->arena, to.slots * sizeof *to.keys);
  to.counts = kl_arena_try_alloc(&x->arena, to.slots * sizeof *to.counts);
  if (!to.keys || !to.counts) return false;
  memset(to.keys, 0, to.slots * sizeof *to.keys);
  for (size_t i = 0; i < old.slots; i++) {
    if (!old.keys[i]) continue;
    size_t at = slot_of(&to, old.keys[i]);
    to.keys[at] = old.keys[i];
    to.counts[at] = old.counts[i];
  }
  x->seen = to;
  return true;
}

static int64_t count_of(const sampler *x, uint64_t key) {
  size_t i = slot_of(&x->seen, key);
  return x->seen.keys[i] ? x->seen.counts[i] : 0;
}

static void count(sampler *x, uint64_t key) {
  size_t i = slot_of(&x->seen, key);
  if (!x->seen.keys[i]) {
    x->seen.keys[i] = key;
    x->seen.counts[i] = 0;
    x->seen.n++;
  }
  x->seen.counts[i]++;
}

// --- one element ---------------------------------------------------------------------------------------------------

typedef struct element {
  int64_t level[KL_MOST_LEVELS];     // coordinates from 0 on; of a level that counts, that of its dimension
  uint64_t node[KL_MOST_LEVELS + 1]; // hash of the coordinates before level i
  uint64_t group[KL_MOST_LEVELS];    // of a level that holds so many: where it does
  int64_t room[KL_MOST_LEVELS];      // how many; 0: any number
} element;

static void describe(const sampler *x, int64_t at, element *e) {
  const kl_store *s = &x->s;
  e->node[0] = mix(1);
  for (uint32_t l = 0; l < s->e->nlevels; l++) {
    kl_level_extent extent = s->l->binding.levels[l];
    const kl_level *level = &s->e->levels[l];
    bool counts = extent.count >= 0;
    e->level[l] = counts ? x->registers[extent.count][at] : x->registers[x->levels.out[l]][at] - extent.lo;
    e->node[l + 1] = counts ? e->node[l] : mix(e->node[l] ^ (uint64_t)(e->level[l] + 1));
    e->room[l] = 0;
    if (counts) {
      e->room[l] = extent.size;
      e->group[l] = mix(mix(l + 2) ^ (uint64_t)e->level[l]);
    } else if (level->format == KILN_LEVEL_STRUCTURED) {
      e->room[l] = level->n;
      e->group[l] = mix(e->node[l] ^ mix((uint64_t)(e->level[l] / level->m) + 3));
    }
  }
}

static bool has_room(const sampler *x, const element *e) {
  const kl_store *s = &x->s;
  for (uint32_t l = 0; l < s->e->nlevels; l++) {
    const kl_level_arrays *a = &s->of[l];
    const kl_level *level = &s->e->levels[l];
    bool counts = s->l->binding.levels[l].count >= 0, there = !counts && count_of(x, e->node[l + 1]) > 0;
    int64_t stored = level->format == KILN_LEVEL_STRUCTURED ? e->level[l] % level->m : e->level[l];
    if (a->coordinates >= 0 && a->crd_bits < 64 && !counts && stored >> a->crd_bits) return false;
    if (!there && (counts || level->format == KILN_LEVEL_STRUCTURED) && count_of(x, e->group[l]) >= e->room[l])
      return false;
    bool single = sp_is_compressed(level) && a->run > 1 && !(level->properties & KILN_LEVEL_NONUNIQUE);
    if (single && there && !count_of(x, e->node[l + a->run])) return false;
  }
  return x->kept < x->most;
}

static bool keep(sampler *x, const element *e) {
  while (x->seen.n + 2 * KL_MOST_LEVELS + 2 > x->seen.slots / 2)
    if (!grow(x)) return false;
  for (uint32_t l = 0; l < x->s.e->nlevels; l++) {
    bool counts = x->s.l->binding.levels[l].count >= 0;
    if (e->room[l] && (counts || !count_of(x, e->node[l + 1]))) count(x, e->group[l]);
    if (!counts) count(x, e->node[l + 1]);
  }
  x->kept++;
  return true;
}

// --- all of them ---------------------------------------------------------------------------------------------------

static bool open(sampler *x, const kiln_sparse_layout *l) {
  const kl_aff *values[KL_MOST_LEVELS] = {NULL};
  kl_diag_mark before = kl_diag_here(x->cx);
  x->storable = kl_store_open(x->cx, l, NULL, &x->s) == KILN_OK;
  kl_diag_forget(x->cx, before, kl_diag_here(x->cx));
  x->most = INT64_MAX;
  if (!x->storable) return true;
  for (uint32_t i = 0; i < l->e->nlevels; i++)
    if (l->binding.levels[i].count < 0) values[i] = kl_tree_aff(l->pool, l->e->levels[i].value);
  if (l->e->pos_width && l->e->pos_width < 32) x->most = (1 << l->e->pos_width) - 1;
  kl_columns_make(&x->arena, values, l->e->nlevels, l->e->ndims, &x->levels);
  size_t scratch = kl_columns_scratch(&x->levels);
  x->registers = kl_arena_try_alloc(&x->arena, (x->levels.nregisters + 1u) * sizeof *x->registers);
  x->bad = kl_arena_try_alloc(&x->arena, KL_BLOCK * sizeof *x->bad);
  int64_t *at = kl_arena_try_alloc(&x->arena, (scratch + (size_t)l->e->ndims * KL_BLOCK) * sizeof *at + 1);
  if (!x->registers || !x->bad || !at) return false;
  for (uint32_t d = 0; d < l->e->ndims; d++) x->registers[d] = at + scratch + (size_t)d * KL_BLOCK;
  kl_columns_open(&x->levels, at, x->registers);
  return grow(x);
}

static void put(void *buffer, unsigned bits, int64_t i, const uint64_t value[KL_VALUE_WORDS]) {
  if (bits == 128)
    memcpy((char *)buffer + i * 16, value, 16);
  else
    kl_bits_set(buffer, bits, i, value[0]);
}

static void number_value(kl_dtype t, const kl_number *x, uint64_t value[KL_VALUE_WORDS]) {
  memset(value, 0, KL_VALUE_WORDS * sizeof *value);
  for (int part = 0; x->cls && part < (kl_is_complex(t) ? 2 : 1); part++)
    kl_element_set(t, value, 0, part, x->bits[part]);
}

static bool sample(sampler *x, const kl_shape *s, const kiln_sparse_layout *l, uint64_t stream, void *buffer) {
  uint64_t implicit[KL_VALUE_WORDS], explicit[KL_VALUE_WORDS];
  int64_t index[KL_MOST_LEVELS] = {0};
  unsigned bits = kl_info(s->dtype)->bits;
  element e;
  number_value(s->dtype, &l->implicit_value, implicit);
  number_value(s->dtype, &l->explicit_value, explicit);
  for (int64_t k = 0; k < s->count; k += KL_BLOCK) {
    int64_t n = s->count - k < KL_BLOCK ? s->count - k : KL_BLOCK;
    for (int64_t i = 0; i < n && x->storable; i++) {
      for (uint32_t d = 0; d < s->rank; d++) x->registers[d][i] = index[d];
      for (uint32_t d = s->rank; d-- > 0 && ++index[d] == s->dims[d];) index[d] = 0;
    }
    if (x->storable) kl_columns_run(&x->levels, n, x->registers, x->bad);
    for (int64_t i = 0; i < n; i++) {
      bool kept = mix(stream ^ mix((uint64_t)(k + i))) % ONE_IN == 0;
      if (kept && x->storable) {
        describe(x, i, &e);
        kept = !x->bad[i] && has_room(x, &e);
        if (kept && !keep(x, &e)) return false;
      }
      if (!kept) put(buffer, bits, k + i, implicit);
      if (kept && l->explicit_value.cls) put(buffer, bits, k + i, explicit);
    }
  }
  return true;
}

bool kl_sparse_sample(kl_ctx *cx, const kl_shape *s, uint64_t stream, void *buffer) {
  kiln_sparse_layout *l = NULL;
  sampler x = {.cx = cx};
  if (kl_sparse_layout_of(cx, s, &l) != KILN_OK) return false;
  kl_arena_init(&x.arena, cx);
  bool done = open(&x, l) && sample(&x, s, l, stream, buffer);
  kl_arena_free(&x.arena);
  kiln_sparse_layout_destroy(&l);
  return done;
}
