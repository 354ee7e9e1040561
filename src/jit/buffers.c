// Constants and buffers, and where they lie in scratch memory.
//
// One after the other is placed as low as it fits between those that are there at the same time. In which order that
// leaves the fewest gaps differs. No memory does that is less than what the kernel needs that needs most; whatever ends
// above that came too late, and comes earlier the next time. So several orders are mended, round by round, until one
// needs no more than that or so much has been looked at as is worth it.

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
  VEC_FREE(cx, &k->grouped);
  VEC_FREE(cx, &k->reads);
  VEC_FREE(cx, &k->spares);
  VEC_FREE(cx, &k->buffers);
  VEC_FREE(cx, &k->constants);
  kl_ids_free(cx, &k->constant_ids);
}

// --- where they lie -------------------------------------------------------------------------------------------------

// A buffer while it is placed; its bytes in whole units of the alignment.
typedef struct life {
  uint64_t bytes, at;
  uint32_t first, last; // kernels that it is there for
  uint32_t number;
} life;

// Kernels one after the other, and what is placed of the lives that are there for any of them, in order of places.
typedef struct window {
  uint32_t *placed, n, most;
  uint32_t passed; // on the way up
} window;

typedef struct ranked {
  double rank; // the highest first
  uint64_t bytes;
  uint32_t life;
} ranked;

// Orders that are tried: none is the best of all. By need: first what is there for the kernel that needs most.
enum { BY_BYTES, BY_AREA, BY_TIME, BY_FIRST, BY_NEED, ORDERS };

// How often each order is mended, and how many lives are looked at in all before no other is tried: some 40 ms.
enum { ROUNDS = 50, LOOKS = 4000000 };

typedef struct placer {
  const kl_kernels *k;
  size_t n;
  life *lives;
  uint32_t *order[ORDERS], *before; // numbers of lives; before: scratch, as is `ranked`
  ranked *ranked;
  uint32_t length, nwindows; // kernels of a window; windows
  window *windows;
  uint64_t looks;
  uint64_t *live;        // by kernel: bytes that are there
  uint64_t bound;        // the most of them
  uint64_t *best, bytes; // by life: its place in the best way so far, and what that takes
} placer;

static int by_rank(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->life < y->life ? -1 : x->life > y->life;
}

// What no kernel has to do with and what has no bytes lies anywhere, and takes nothing.
static void find_lives(placer *p) {
  const kl_kernels *k = p->k;
  uint64_t align = k->scratch_align;
  for (size_t i = 0; i < k->buffers.n; i++) {
    kl_buffer *b = &k->buffers.p[i];
    b->at = 0;
    if (!b->bytes || b->first > b->last) continue;
    uint64_t bytes = (b->bytes + align - 1) / align * align;
    uint32_t last = b->last < k->n ? b->last : k->n; // behind all of them: whoever launches reads it
    p->lives[p->n++] = (life){.bytes = bytes, .first = b->first, .last = last, .number = (uint32_t)i};
    p->live[b->first] += bytes; // what comes and goes, added up below
    p->live[last + 1] -= bytes;
  }
  for (uint32_t u = 0; u <= k->n; u++) {
    if (u) p->live[u] += p->live[u - 1];
    if (p->live[u] > p->bound) p->bound = p->live[u];
  }
}

// Windows are twice as long as a life is on average: all lives together are in at most one and a half times as many as
// there are of them and, where lives are short, only few in each.
static void find_windows(kl_ctx *cx, placer *p) {
  uint64_t time = 0;
  for (size_t i = 0; i < p->n; i++) time += p->lives[i].last - p->lives[i].first + 1;
  p->length = (uint32_t)(p->n ? 2 * (time / p->n) : 1);
  p->nwindows = p->k->n / p->length + 1;
  p->windows = kl_alloc(cx, p->nwindows * sizeof *p->windows);
  for (size_t i = 0; i < p->n; i++)
    for (uint32_t w = p->lives[i].first / p->length; w <= p->lives[i].last / p->length; w++) p->windows[w].most++;
  for (uint32_t w = 0; w < p->nwindows; w++)
    p->windows[w].placed = kl_alloc(cx, (p->windows[w].most + 1) * sizeof(uint32_t));
}

static void free_windows(kl_ctx *cx, placer *p) {
  for (uint32_t w = 0; w < p->nwindows; w++)
    kl_free(cx, p->windows[w].placed, (p->windows[w].most + 1) * sizeof(uint32_t));
  kl_free(cx, p->windows, p->nwindows * sizeof *p->windows);
}

// The lowest place from b->at on that is free in the window. What has been passed lies below or is there at other
// times, so that a place further up is looked for from there on.
static void go_up(placer *p, window *w, life *b) {
  uint32_t from = w->passed;
  for (; w->passed < w->n; w->passed++) {
    const life *x = &p->lives[w->placed[w->passed]];
    if (x->at >= b->at + b->bytes) break;
    if (x->first <= b->last && b->first <= x->last && x->at + x->bytes > b->at) b->at = x->at + x->bytes;
  }
  p->looks += w->passed - from + 1;
}

// As low as it fits in each window that it is there for: in each it only goes up.
static void place_one(placer *p, uint32_t number) {
  life *b = &p->lives[number];
  window *first = &p->windows[b->first / p->length], *last = &p->windows[b->last / p->length];
  uint64_t before;
  for (window *w = first; w <= last; w++) w->passed = 0;
  b->at = 0;
  do {
    before = b->at;
    for (window *w = first; w <= last; w++) go_up(p, w, b);
  } while (b->at != before);
  for (window *w = first; w <= last; w++) {
    uint32_t i = w->passed;
    while (i && p->lives[w->placed[i - 1]].at > b->at) i--;
    memmove(w->placed + i + 1, w->placed + i, (w->n++ - i) * sizeof *w->placed);
    w->placed[i] = number;
  }
}

static void place_in_order(placer *p, const uint32_t *order) {
  uint64_t all = 0;
  for (uint32_t w = 0; w < p->nwindows; w++) p->windows[w].n = 0;
  for (size_t i = 0; i < p->n; i++) {
    const life *b = &p->lives[order[i]];
    place_one(p, order[i]);
    if (b->at + b->bytes > all) all = b->at + b->bytes;
  }
  if (all >= p->bytes) return;
  p->bytes = all;
  for (size_t i = 0; i < p->n; i++) p->best[i] = p->lives[i].at;
}

static bool is_late(const placer *p, uint32_t number) {
  return p->lives[number].at + p->lives[number].bytes > p->bound;
}

// What has come i-th and ends above the bound comes about i/2-th; those that do and those that do not stay in order.
static void mend(placer *p, uint32_t *order) {
  size_t n = 0, ahead = 0;
  memcpy(p->before, order, p->n * sizeof *order);
  for (size_t i = 0; i < p->n; i++) {
    for (; ahead < p->n && ahead <= 2 * i + 1; ahead++)
      if (is_late(p, p->before[ahead])) order[n++] = p->before[ahead];
    if (!is_late(p, p->before[i])) order[n++] = p->before[i];
  }
}

static double rank_of(const placer *p, const life *b, int by) {
  double bytes = (double)b->bytes, time = (double)(b->last - b->first) + 1;
  uint64_t most = 0;
  switch (by) {
  case BY_BYTES: return bytes;
  case BY_AREA: return bytes * time;
  case BY_TIME: return time;
  case BY_FIRST: return -(double)b->first;
  default:
    for (uint32_t u = b->first; u <= b->last; u++)
      if (p->live[u] > most) most = p->live[u];
    return (double)most;
  }
}

static void rank(placer *p, int by) {
  for (uint32_t i = 0; i < p->n; i++) p->ranked[i] = (ranked){rank_of(p, &p->lives[i], by), p->lives[i].bytes, i};
  qsort(p->ranked, p->n, sizeof *p->ranked, by_rank);
  for (uint32_t i = 0; i < p->n; i++) p->order[by][i] = p->ranked[i].life;
}

static void find_places(placer *p) {
  for (int round = 0; round < ROUNDS; round++)
    for (int by = 0; by < ORDERS; by++) {
      if (!round) rank(p, by);
      place_in_order(p, p->order[by]);
      if (p->bytes == p->bound || p->looks > LOOKS) return;
      mend(p, p->order[by]);
    }
}

void kl_place_buffers(kl_ctx *cx, kl_kernels *k) {
  size_t n = k->buffers.n;
  placer p = {.k = k, .bytes = UINT64_MAX};
  p.lives = kl_alloc(cx, (n + 1) * sizeof *p.lives);
  p.ranked = kl_alloc(cx, (n + 1) * sizeof *p.ranked);
  p.best = kl_alloc(cx, (n + 1) * sizeof *p.best);
  p.before = kl_alloc(cx, (n + 1) * sizeof *p.before);
  p.live = kl_alloc(cx, (k->n + 2u) * sizeof *p.live);
  for (int by = 0; by < ORDERS; by++) p.order[by] = kl_alloc(cx, (n + 1) * sizeof *p.order[by]);
  find_lives(&p);
  find_windows(cx, &p);
  find_places(&p);
  for (size_t i = 0; i < p.n; i++) k->buffers.p[p.lives[i].number].at = p.best[i];
  k->scratch_bytes = p.bytes;
  kl_free(cx, p.lives, (n + 1) * sizeof *p.lives);
  kl_free(cx, p.ranked, (n + 1) * sizeof *p.ranked);
  kl_free(cx, p.best, (n + 1) * sizeof *p.best);
  for (int by = 0; by < ORDERS; by++) kl_free(cx, p.order[by], (n + 1) * sizeof *p.order[by]);
  kl_free(cx, p.before, (n + 1) * sizeof *p.before);
  free_windows(cx, &p);
  kl_free(cx, p.live, (k->n + 2u) * sizeof *p.live);
}
