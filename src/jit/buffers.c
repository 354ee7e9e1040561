// Where buffers lie in scratch memory.
//
// The largest are placed first, each at the lowest place where it meets none that is there at the same time. So the
// memory is, but for gaps between buffers of different sizes, what the kernel needs that needs most.

#include "jit/kernels.h"

#include <stdlib.h>

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
