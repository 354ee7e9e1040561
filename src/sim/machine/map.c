#include "sim/machine/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

static const uint64_t page = 4096, huge = 2 << 20, least = 1 << 20, most = 256 << 20;

static bool is_middling(uint64_t bytes) {
  return bytes >= least && bytes <= most;
}

static uint64_t mapped(uint64_t bytes) {
  const uint64_t unit = is_middling(bytes) ? huge : page;
  return (bytes + unit - 1) / unit * unit;
}

static void *new_pages(uint64_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

// Where a huge page may begin; what is too much on either side goes back.
static void *new_huge_pages(uint64_t bytes) {
  char *p = new_pages(bytes + huge);
  if (!p) return NULL;
  const uint64_t before = (huge - (uintptr_t)p % huge) % huge, behind = huge - before;
  if (before) munmap(p, before);
  munmap(p + before + bytes, behind);
  madvise(p + before, bytes, MADV_HUGEPAGE); // without them it is slower, and that is all
  return p + before;
}

void *kl_map(uint64_t bytes, kl_map_use use) {
  if (bytes == 0 || bytes > SIZE_MAX / 2) return NULL;
  const bool in_huge = use == KL_MAP_DENSE && is_middling(bytes);
  return in_huge ? new_huge_pages(mapped(bytes)) : new_pages(mapped(bytes));
}

void kl_unmap(void *p, uint64_t bytes) {
  if (p) munmap(p, mapped(bytes));
}
