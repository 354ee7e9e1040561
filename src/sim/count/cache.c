// The model of the caches: docs/profiler.md has its rules.

#include "sim/count/collect.h"

enum { LINE_SECTORS = KL_CACHE_LINE / KL_SECTOR };

static bool make(kl_ctx *cx, kl_cache *c, uint64_t bytes) {
  uint64_t sets = bytes / (KL_CACHE_LINE * KL_CACHE_WAYS);
  c->sets = sets ? (uint32_t)sets : 1;
  c->lines = kl_try_alloc(cx, (size_t)c->sets * KL_CACHE_WAYS * sizeof *c->lines);
  return c->lines != NULL;
}

static void drop(kl_ctx *cx, kl_cache *c) {
  if (c->lines) kl_free(cx, c->lines, (size_t)c->sets * KL_CACHE_WAYS * sizeof *c->lines);
}

bool kl_caches_make(kl_ctx *cx, kl_caches *c, const kl_gpu *g, uint32_t l1_bytes) {
  *c = (kl_caches){.multiprocessors = g->multiprocessors};
  c->l1 = kl_try_alloc(cx, g->multiprocessors * sizeof *c->l1);
  if (!c->l1 || !make(cx, &c->l2, g->l2)) return false;
  for (uint32_t k = 0; k < c->multiprocessors; k++)
    if (!make(cx, &c->l1[k], l1_bytes)) return false;
  return true;
}

void kl_caches_free(kl_ctx *cx, kl_caches *c) {
  for (uint32_t k = 0; c->l1 && k < c->multiprocessors; k++) drop(cx, &c->l1[k]);
  if (c->l1) kl_free(cx, c->l1, c->multiprocessors * sizeof *c->l1);
  drop(cx, &c->l2);
  *c = (kl_caches){0};
}

static kl_cache_line *set_of(const kl_cache *c, uint64_t line) {
  return &c->lines[(line ^ line >> 10 ^ line >> 20) % c->sets * KL_CACHE_WAYS];
}

// The line, which becomes the latest used of its set; NULL if it is not there.
static kl_cache_line *find(const kl_cache *c, uint64_t line) {
  kl_cache_line *set = set_of(c, line);
  for (unsigned k = 0; k < KL_CACHE_WAYS; k++) {
    if (set[k].number != line + 1) continue;
    kl_cache_line found = set[k];
    memmove(set + 1, set, k * sizeof *set);
    set[0] = found;
    return set;
  }
  return NULL;
}

// Puts the line in the place of the one that was not used for longest, which is returned.
static kl_cache_line replace(const kl_cache *c, uint64_t line) {
  kl_cache_line *set = set_of(c, line), last = set[KL_CACHE_WAYS - 1];
  memmove(set + 1, set, (KL_CACHE_WAYS - 1) * sizeof *set);
  set[0] = (kl_cache_line){.number = line + 1};
  return last;
}

// Sectors that L2 had. A load brings the others from DRAM; a store needs none of what it writes over.
static uint8_t use_l2(kl_caches *c, uint64_t line, uint8_t sectors, bool read, bool write) {
  kl_cache_line *l = find(&c->l2, line);
  if (!l) {
    kl_cache_line last = replace(&c->l2, line);
    c->written += (unsigned)__builtin_popcount(last.dirty);
    l = set_of(&c->l2, line);
  }
  uint8_t hits = l->valid & sectors;
  if (read) c->read += (unsigned)__builtin_popcount(sectors & ~hits);
  l->valid |= sectors;
  if (write) l->dirty |= sectors;
  return hits;
}

// A line that leaves L1 with what only it has.
static void evict_l1(kl_caches *c, kl_cache_line last) {
  if (last.dirty) use_l2(c, last.number - 1, last.dirty, false, true);
}

static kl_cache_line *line_in_l1(kl_caches *c, kl_cache *l1, uint64_t line) {
  kl_cache_line *l = find(l1, line);
  if (l) return l;
  evict_l1(c, replace(l1, line));
  return set_of(l1, line);
}

void kl_caches_use(kl_caches *c, uint32_t multiprocessor, uint64_t line, uint8_t sectors, kl_cache_use use,
                   uint64_t *l1_hits, uint64_t *l2_hits) {
  kl_cache *l1 = &c->l1[multiprocessor % c->multiprocessors];
  kl_cache_line *l = NULL;
  uint8_t have = 0;
  switch (use) {
  case KL_USE_LOAD:
    l = line_in_l1(c, l1, line);
    have = l->valid & sectors;
    l->valid |= sectors;
    break;
  case KL_USE_LOCAL_STORE:
    l = line_in_l1(c, l1, line);
    have = sectors;
    l->valid |= sectors, l->dirty |= sectors;
    break;
  case KL_USE_LOAD_L2:
  case KL_USE_ATOMIC:
    l = find(l1, line);
    if (l) l->valid &= (uint8_t)~sectors;
    break;
  case KL_USE_STORE: break; // what L1 has of it is written as well
  }
  *l1_hits += (unsigned)__builtin_popcount(have);
  sectors &= (uint8_t)~have;
  if (!sectors) return;
  bool write = use == KL_USE_STORE || use == KL_USE_ATOMIC;
  *l2_hits += (unsigned)__builtin_popcount(use_l2(c, line, sectors, use != KL_USE_STORE, write));
}

uint64_t kl_caches_dirty(const kl_caches *c) {
  uint64_t n = 0;
  for (size_t k = 0; k < (size_t)c->l2.sets * KL_CACHE_WAYS; k++)
    n += (unsigned)__builtin_popcount(c->l2.lines[k].dirty);
  return n;
}
