// Constants and buffers, and where they lie in scratch memory.
//
// The largest are placed first, each at the lowest place where it meets none that is there at the same time. So the
// memory is, but for gaps between buffers of different sizes, what the kernel needs that needs most.

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
  VEC_FREE(cx, &k->buffers);
  VEC_FREE(cx, &k->constants);
  kl_ids_free(cx, &k->constant_ids);
}

// --- where they lie -------------------------------------------------------------------------------------------------

typedef struct placed {
  const kl_buffer *buffer;
  uint32_t number;
} placed;

static int by_size(const void *a, const void *b) {
  const placed *x = a, *y = b;
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

void kl_place_buffers(kl_ctx *cx, kl_kernels *k) {
  size_t n = k->buffers.n, nplaced = 0;
  placed *order = kl_alloc(cx, (n + 1) * sizeof *order);
  kl_buffer **done = kl_alloc(cx, (n + 1) * sizeof *done), **meets = kl_alloc(cx, (n + 1) * sizeof *meets);
  for (size_t i = 0; i < n; i++) order[i] = (placed){&k->buffers.p[i], (uint32_t)i};
  qsort(order, n, sizeof *order, by_size);
  k->scratch_bytes = 0;
  for (size_t i = 0; i < n; i++) {
    kl_buffer *b = &k->buffers.p[order[i].number];
    size_t nmeets = 0;
    for (size_t j = 0; j < nplaced && b->bytes; j++)
      if (done[j]->first <= b->last && b->first <= done[j]->last) meets[nmeets++] = done[j];
    qsort(meets, nmeets, sizeof *meets, by_place);
    uint64_t bytes = in_units(b->bytes, k->scratch_align);
    b->at = lowest_place(meets, nmeets, bytes, k->scratch_align);
    if (b->at + bytes > k->scratch_bytes) k->scratch_bytes = b->at + bytes;
    done[nplaced++] = b;
  }
  kl_free(cx, order, (n + 1) * sizeof *order);
  kl_free(cx, done, (n + 1) * sizeof *done);
  kl_free(cx, meets, (n + 1) * sizeof *meets);
}
