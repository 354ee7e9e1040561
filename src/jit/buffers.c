// Constants and buffers, and where they lie in scratch memory.
//
// One after the other is placed as low as it fits between those that are there at the same time. In which order that
// leaves the fewest gaps differs, so several are tried, until the memory is what the kernel needs that needs most.

#include "jit/kernels.h"

#include <stdlib.h>

// --- constants and buffers ------------------------------------------------------------------------------------------

typedef struct sought {
  const kl_kernels *k;
  const void *data;
  uint64_t bytes;
} sought;

static bool is_constant(const void *arg, uint32_t id) {
  const sought *s = arg;
  const kl_constant *c = &s->k->constants.p[id];
  return c->bytes == s->bytes && memcmp(c->data, s->data, (size_t)s->bytes) == 0;
}

uint64_t kl_add_constant(kl_ctx *cx, kl_kernels *k, const void *data, uint64_t bytes) {
  uint64_t hash = kl_hash(data, (size_t)bytes, 17);
  uint32_t id = kl_ids_find(cx, &k->constant_ids, hash, is_constant, &(sought){k, data, bytes});
  if (id < k->constants.n) return k->constants.p[id].at;
  VEC_PUSH(cx, &k->constants, (kl_constant){k->constant_bytes, bytes, data});
  k->constant_bytes += (bytes + k->scratch_align - 1) / k->scratch_align * k->scratch_align;
  return k->constants.p[id].at;
}

uint32_t kl_add_buffer(kl_ctx *cx, kl_kernels *k, uint64_t bytes, uint32_t first, uint32_t last) {
  VEC_PUSH(cx, &k->buffers, (kl_buffer){.bytes = bytes, .first = first, .last = last});
  return (uint32_t)k->buffers.n - 1;
}

void kl_kernels_free(kl_ctx *cx, kl_kernels *k) {
  VEC_FREE(cx, &k->list);
  VEC_FREE(cx, &k->loops);
  VEC_FREE(cx, &k->steps);
  VEC_FREE(cx, &k->reads);
  VEC_FREE(cx, &k->spares);
  VEC_FREE(cx, &k->buffers);
  VEC_FREE(cx, &k->constants);
  kl_ids_free(cx, &k->constant_ids);
}

// --- where they lie -------------------------------------------------------------------------------------------------

// A buffer in some order of placing.
typedef struct placed {
  kl_buffer *buffer;
  uint32_t number;
  double rank; // the highest first
} placed;

static int by_rank(const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
  if (x->buffer->bytes != y->buffer->bytes) return x->buffer->bytes > y->buffer->bytes ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static int by_place(const void *a, const void *b) {
  const kl_buffer *x = *(kl_buffer *const *)a, *y = *(kl_buffer *const *)b;
  return x->at < y->at ? -1 : x->at > y->at;
}

static uint64_t in_units(uint64_t bytes, uint64_t align) {
  return (bytes + align - 1) / align * align;
}

// Where it fits between those that it meets, which are in order of their places.
static uint64_t lowest_place(kl_buffer *const *meets, size_t n, uint64_t bytes, uint64_t align) {
  uint64_t at = 0;
  for (size_t i = 0; i < n; i++) {
    if (meets[i]->at >= at + bytes) return at;
    uint64_t end = meets[i]->at + in_units(meets[i]->bytes, align);
    if (end > at) at = end;
  }
  return at;
}

typedef struct placer {
  kl_kernels *k;
  size_t n;
  placed *order;
  kl_buffer **done, **meets; // scratch
  uint64_t *live;            // by kernel: bytes that are there
  uint64_t bound;            // the most of them
  uint64_t *best, bytes;     // by buffer: its place in the best way so far, and what that takes
} placer;

// In the order of ranks, each as low as it fits.
static void place_in_order(placer *p) {
  uint64_t align = p->k->scratch_align, all = 0;
  qsort(p->order, p->n, sizeof *p->order, by_rank);
  for (size_t i = 0; i < p->n; i++) {
    kl_buffer *b = p->order[i].buffer;
    size_t nmeets = 0;
    for (size_t j = 0; j < i && b->bytes; j++)
      if (p->done[j]->first <= b->last && b->first <= p->done[j]->last) p->meets[nmeets++] = p->done[j];
    qsort(p->meets, nmeets, sizeof *p->meets, by_place);
    uint64_t bytes = in_units(b->bytes, align);
    b->at = lowest_place(p->meets, nmeets, bytes, align);
    if (b->at + bytes > all) all = b->at + bytes;
    p->done[i] = b;
  }
  if (all >= p->bytes) return;
  p->bytes = all;
  for (size_t i = 0; i < p->n; i++) p->best[i] = p->k->buffers.p[i].at;
}

static void find_live(placer *p) {
  uint32_t n = p->k->n;
  for (size_t i = 0; i < p->n; i++) {
    const kl_buffer *b = &p->k->buffers.p[i];
    uint64_t bytes = in_units(b->bytes, p->k->scratch_align);
    if (b->first >= n) continue;
    p->live[b->first] += bytes;
    if (b->last + 1 < n) p->live[b->last + 1] -= bytes; // what comes and goes, added up below
  }
  for (uint32_t u = 1; u < n; u++) p->live[u] += p->live[u - 1];
  for (uint32_t u = 0; u < n; u++)
    if (p->live[u] > p->bound) p->bound = p->live[u];
}

// Ways to place them: none is the best of all. The last is by where most is there.
enum { WAYS = 5, FEW = 4096 };

static double rank_of(const placer *p, const kl_buffer *b, int way) {
  double bytes = (double)b->bytes, time = (double)(b->last - b->first) + 1, most = 0;
  switch (way) {
  case 0: return bytes;
  case 1: return bytes * time;
  case 2: return time;
  case 3: return -(double)b->first;
  default:
    for (uint32_t u = b->first; u <= b->last && u < p->k->n; u++)
      if ((double)p->live[u] > most) most = (double)p->live[u];
    return most;
  }
}

void kl_place_buffers(kl_ctx *cx, kl_kernels *k) {
  size_t n = k->buffers.n;
  placer p = {.k = k, .n = n, .bytes = UINT64_MAX};
  p.order = kl_alloc(cx, (n + 1) * sizeof *p.order);
  p.done = kl_alloc(cx, (n + 1) * sizeof *p.done);
  p.meets = kl_alloc(cx, (n + 1) * sizeof *p.meets);
  p.best = kl_alloc(cx, (n + 1) * sizeof *p.best);
  p.live = kl_alloc(cx, (k->n + 1) * sizeof *p.live);
  find_live(&p);
  for (int way = 0; way < (n <= FEW ? WAYS : 1) && p.bytes > p.bound; way++) {
    for (size_t i = 0; i < n; i++) {
      kl_buffer *b = &k->buffers.p[i];
      p.order[i] = (placed){b, (uint32_t)i, rank_of(&p, b, way)};
    }
    place_in_order(&p);
  }
  for (size_t i = 0; i < n; i++) k->buffers.p[i].at = p.best[i];
  k->scratch_bytes = n ? p.bytes : 0;
  kl_free(cx, p.order, (n + 1) * sizeof *p.order);
  kl_free(cx, p.done, (n + 1) * sizeof *p.done);
  kl_free(cx, p.meets, (n + 1) * sizeof *p.meets);
  kl_free(cx, p.best, (n + 1) * sizeof *p.best);
  kl_free(cx, p.live, (k->n + 1) * sizeof *p.live);
}
