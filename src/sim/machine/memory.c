#include "sim/machine/machine.h"
#include "sim/machine/map.h"

enum { ALIGN = 512, APART = 1 << 20, MOST_FREED = 4096 };

void kl_memory_init(kl_memory *m, kl_ctx *cx, uint64_t limit) {
  *m = (kl_memory){.cx = cx, .next = KL_DEVICE_MEMORY, .limit = limit};
}

void kl_memory_free(kl_memory *m) {
  kl_memory_define_all(m);
  for (size_t i = 0; i < m->regions.n; i++)
    if (!m->regions.p[i].freed && m->regions.p[i].kind != KL_REGION_HOST)
      kl_unmap(m->regions.p[i].host, m->regions.p[i].size);
  VEC_FREE(m->cx, &m->regions);
}

// The number of regions that begin at `address` or below.
static size_t regions_up_to(const kl_memory *m, uint64_t address) {
  size_t low = 0, high = m->regions.n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (m->regions.p[middle].base <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Enters a region in its place; what is made last mostly lies last.
static void enter(kl_memory *m, kl_region r) {
  size_t at = regions_up_to(m, r.base);
  VEC_PUSH(m->cx, &m->regions, r);
  memmove(m->regions.p + at + 1, m->regions.p + at, (m->regions.n - 1 - at) * sizeof r);
  m->regions.p[at] = r;
}

// Does no region have bytes of these?
static bool is_unused(const kl_memory *m, uint64_t base, uint64_t size) {
  size_t n = regions_up_to(m, base + size - 1);
  const kl_region *r = n ? &m->regions.p[n - 1] : NULL;
  return !r || r->base + r->size <= base;
}

// Addresses that were never given before.
static uint64_t new_addresses(kl_memory *m, uint64_t size) {
  uint64_t base = m->next;
  while (!is_unused(m, base, size)) { // bytes of the host's lie there
    const kl_region *r = &m->regions.p[regions_up_to(m, base + size - 1) - 1];
    base = (r->base + r->size + APART + ALIGN - 1) / ALIGN * ALIGN;
  }
  m->next = (base + size + APART + ALIGN - 1) / ALIGN * ALIGN;
  return base;
}

kiln_status kl_memory_alloc(kl_memory *m, uint64_t size, kl_region_kind kind, kl_str name, uint64_t *base) {
  kl_region r = {.size = size, .kind = (uint8_t)kind, .name = name, .flip = kind == KL_REGION_USER ? 0xff : 0};
  *base = 0;
  if (size == 0 || size > m->limit - m->in_use) return KILN_E_MEMORY;
  r.host = kl_map(size, KL_MAP_DENSE);
  if (!r.host) return KILN_E_MEMORY;
  r.base = new_addresses(m, size);
  m->in_use += size;
  enter(m, r);
  *base = r.base;
  return KILN_OK;
}

kiln_status kl_memory_share(kl_memory *m, void *host, uint64_t size, uint64_t *base) {
  kl_region r = {.base = (uint64_t)(uintptr_t)host, .size = size, .kind = KL_REGION_HOST, .host = host};
  *base = 0;
  if (size == 0 || r.base + size < r.base) return KILN_E_MEMORY;
  if (r.base < KL_DEVICE_MEMORY || !is_unused(m, r.base, size)) r.base = new_addresses(m, size);
  enter(m, r);
  *base = r.base;
  return KILN_OK;
}

void kl_memory_tag(kl_memory *m, uint64_t base, uint32_t tag) {
  kl_region *r = (kl_region *)kl_memory_find(m, base);
  if (r && r->base == base) r->tag = tag;
}

const kl_region *kl_memory_find(const kl_memory *m, uint64_t address) {
  size_t n = regions_up_to(m, address);
  const kl_region *r = n ? &m->regions.p[n - 1] : NULL;
  return r && address - r->base < r->size ? r : NULL;
}

const kl_region *kl_memory_nearest(const kl_memory *m, uint64_t address, int64_t *distance) {
  size_t n = regions_up_to(m, address);
  const kl_region *below = n ? &m->regions.p[n - 1] : NULL, *above = n < m->regions.n ? &m->regions.p[n] : NULL;
  uint64_t behind = below ? address - (below->base + below->size) : UINT64_MAX;
  uint64_t before = above ? above->base - address : UINT64_MAX;
  *distance = behind <= before ? (int64_t)behind : -(int64_t)before;
  return behind <= before ? below : above;
}

char *kl_memory_at(const kl_memory *m, uint64_t address, uint64_t size) {
  const kl_region *r = kl_memory_find(m, address);
  if (!r || r->freed || size > r->size - (address - r->base)) return NULL;
  return r->host + (address - r->base);
}

// Forgets the older half of what was freed.
static void forget_freed(kl_memory *m) {
  size_t n = 0, forget = m->freed / 2;
  m->freed -= forget;
  for (size_t k = 0; k < m->regions.n; k++)
    if (!m->regions.p[k].freed || forget == 0)
      m->regions.p[n++] = m->regions.p[k];
    else
      forget--;
  m->regions.n = n;
}

bool kl_memory_release(kl_memory *m, uint64_t base) {
  kl_region *r = (kl_region *)kl_memory_find(m, base);
  if (!r || r->freed || r->base != base) return false;
  kl_memory_define(m, base, r->size);
  if (r->kind == KL_REGION_HOST) { // the host may use these addresses for something else
    size_t after = (size_t)(m->regions.p + m->regions.n - (r + 1));
    memmove(r, r + 1, after * sizeof *r);
    m->regions.n--;
    return true;
  }
  kl_unmap(r->host, r->size);
  m->in_use -= r->size;
  r->freed = true;
  r->host = NULL;
  r->name = (kl_str){0};
  if (++m->freed > MOST_FREED && m->freed > m->regions.n / 2) forget_freed(m);
  return true;
}
