// Which bytes of which buffers a launch touched, and which addresses its atomics met at.

#include "sim/count/collect.h"
#include "sim/machine/map.h"

// --- bytes ----------------------------------------------------------------------------------------------------------

static size_t map_bytes(const kl_touched *t) {
  return (size_t)(t->size / 64 + 2) * 8;
}

static uint64_t *map(const kl_touched *t) {
  return kl_map(map_bytes(t), KL_MAP_DENSE);
}

static kl_touched *enter(kl_footprint *f, uint64_t address) {
  const kl_region *r = kl_memory_find(f->memory, address);
  if (!r) return NULL;
  kl_touched t = {.base = r->base, .size = r->size};
  size_t k = f->buffers.n;
  VEC_PUSH(f->cx, &f->buffers, t);
  for (; k > 0 && f->buffers.p[k - 1].base > t.base; k--) f->buffers.p[k] = f->buffers.p[k - 1];
  f->buffers.p[k] = t;
  f->last = k;
  return &f->buffers.p[k];
}

static kl_touched *buffer_of(kl_footprint *f, uint64_t address) {
  size_t low = 0, high = f->buffers.n;
  if (f->last < high && address - f->buffers.p[f->last].base < f->buffers.p[f->last].size)
    return &f->buffers.p[f->last];
  while (low < high) {
    size_t middle = (low + high) / 2;
    const kl_touched *t = &f->buffers.p[middle];
    if (address < t->base)
      high = middle;
    else if (address - t->base >= t->size)
      low = middle + 1;
    else
      return &f->buffers.p[f->last = middle];
  }
  return enter(f, address);
}

// Sets the bits; how many were not set before.
static uint64_t set_bits(uint64_t *bits, uint64_t from, uint64_t n) {
  uint64_t fresh = 0;
  while (n > 0) {
    uint64_t in = 64 - from % 64 < n ? 64 - from % 64 : n;
    uint64_t mask = (in == 64 ? ~0ull : (1ull << in) - 1) << from % 64, *word = &bits[from / 64];
    fresh += (unsigned)__builtin_popcountll(mask & ~*word);
    *word |= mask;
    from += in, n -= in;
  }
  return fresh;
}

void kl_footprint_mark(kl_footprint *f, uint64_t address, uint64_t bytes, bool read, bool written) {
  kl_touched *t = buffer_of(f, address);
  if (!t) return;
  uint64_t from = address - t->base, n = bytes < t->size - from ? bytes : t->size - from;
  if (read && !t->read) t->read = map(t);
  if (written && !t->written) t->written = map(t);
  if (read && t->read) t->read_bytes += set_bits(t->read, from, n);
  if (written && t->written) t->written_bytes += set_bits(t->written, from, n);
}

void kl_footprint_free(kl_footprint *f) {
  for (size_t k = 0; k < f->buffers.n; k++) {
    kl_touched *t = &f->buffers.p[k];
    kl_unmap(t->read, map_bytes(t));
    kl_unmap(t->written, map_bytes(t));
  }
  VEC_FREE(f->cx, &f->buffers);
}

// --- addresses of atomics -------------------------------------------------------------------------------------------

enum { MOST_HOT = 1 << 20, FIRST_HOT = 1 << 10 };

static size_t slot_of(const kl_hot *h, uint64_t address) {
  size_t k = (size_t)(address * 0x9e3779b97f4a7c15 >> 20) & (h->slots - 1);
  while (h->requests[k] && h->address[k] != address) k = (k + 1) & (h->slots - 1);
  return k;
}

static bool grow(kl_ctx *cx, kl_hot *h) {
  kl_hot next = {.slots = h->slots ? h->slots * 4 : FIRST_HOT};
  next.address = kl_try_alloc(cx, next.slots * sizeof(uint64_t));
  next.requests = kl_try_alloc(cx, next.slots * sizeof(uint64_t));
  if (!next.address || !next.requests) {
    kl_hot_free(cx, &next);
    return false;
  }
  for (size_t k = 0; k < h->slots; k++) {
    if (!h->requests[k]) continue;
    size_t to = slot_of(&next, h->address[k]);
    next.address[to] = h->address[k];
    next.requests[to] = h->requests[k];
  }
  next.n = h->n;
  kl_hot_free(cx, h);
  *h = next;
  return true;
}

void kl_hot_add(kl_ctx *cx, kl_hot *h, uint64_t address) {
  if (h->slots == 0 && !grow(cx, h)) return;
  size_t k = slot_of(h, address);
  if (!h->requests[k]) {
    if (h->n >= MOST_HOT) return;
    if (h->n >= h->slots / 2) {
      if (!grow(cx, h)) return;
      k = slot_of(h, address);
    }
    h->n++;
  }
  h->address[k] = address;
  h->requests[k]++;
}

void kl_hot_free(kl_ctx *cx, kl_hot *h) {
  if (h->address) kl_free(cx, h->address, h->slots * sizeof(uint64_t));
  if (h->requests) kl_free(cx, h->requests, h->slots * sizeof(uint64_t));
  *h = (kl_hot){0};
}
