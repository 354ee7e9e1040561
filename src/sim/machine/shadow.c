// Which bits of the device's memory have a value. A region keeps a byte for each of its own, zero where nothing was
// said since it began, so that what nobody touches takes no room.

#include "sim/machine/machine.h"
#include "sim/machine/map.h"

static void set_all(kl_region *r, uint8_t flip) {
  kl_unmap(r->undefined, r->size);
  r->undefined = NULL;
  r->flip = flip;
}

uint8_t *kl_region_shadow(kl_region *r) {
  if (r->undefined) return r->undefined;
  r->undefined = kl_map(r->size, KL_MAP_DENSE);
  if (!r->undefined) r->flip = 0;
  return r->undefined;
}

// The region of some bytes, and how many of these lie in it.
static kl_region *region_of(const kl_memory *m, uint64_t address, uint64_t *size) {
  kl_region *r = (kl_region *)kl_memory_find(m, address);
  if (!r || r->freed) return NULL;
  uint64_t most = r->size - (address - r->base);
  *size = *size < most ? *size : most;
  return r;
}

static void set(kl_memory *m, uint64_t address, uint64_t size, uint8_t undefined) {
  kl_region *r = region_of(m, address, &size);
  if (!r || size == 0) return;
  if (size == r->size) {
    set_all(r, undefined);
    return;
  }
  if ((!r->undefined && r->flip == undefined) || !kl_region_shadow(r)) return;
  memset(r->undefined + (address - r->base), undefined ^ r->flip, size);
}

void kl_memory_define(kl_memory *m, uint64_t address, uint64_t size) {
  set(m, address, size, 0);
}

void kl_memory_undefine(kl_memory *m, uint64_t address, uint64_t size) {
  set(m, address, size, 0xff);
}

void kl_memory_define_all(kl_memory *m) {
  for (size_t k = 0; k < m->regions.n; k++) set_all(&m->regions.p[k], 0);
}

void kl_memory_define_as(kl_memory *m, uint64_t to, uint64_t from, uint64_t size) {
  const kl_region *f = region_of(m, from, &size);
  kl_region *t = region_of(m, to, &size);
  if (!t || size == 0) return;
  if (!f || !f->undefined) {
    set(m, to, size, f ? f->flip : 0);
    return;
  }
  if (!kl_region_shadow(t)) return;
  uint8_t *d = t->undefined + (to - t->base), flip = t->flip ^ f->flip;
  memmove(d, f->undefined + (from - f->base), size);
  for (uint64_t i = 0; flip && i < size; i++) d[i] ^= flip;
}

bool kl_memory_find_undefined(const kl_memory *m, uint64_t address, uint64_t size, uint64_t *at, uint64_t *n) {
  const kl_region *r = region_of(m, address, &size);
  uint64_t k = 0, end;
  if (!r || size == 0) return false;
  if (!r->undefined) {
    *at = address, *n = size;
    return r->flip != 0;
  }
  const uint8_t *u = r->undefined + (address - r->base);
  while (k < size && u[k] == r->flip) k++;
  for (end = k; end < size && (u[end] ^ r->flip) != 0;) end++;
  *at = address + k, *n = end - k;
  return k < size;
}
