// The arrays that a tensor is stored in, level by level.
//
// P(l) counts the entries of level l in one batch, P(-1) = 1. A level of size S has
//   dense                     P(l) = P(l-1) * S
//   batch                     P(l) = P(l-1); all arrays behind it are there S times
//   compressed                P(l-1) + 1 positions; P(l) coordinates, a number that data says
//   loose_compressed          2 * P(l-1) positions; as many coordinates as intervals reach to
//   singleton                 P(l) = P(l-1) coordinates
//   structured[n, m]          P(l) = P(l-1) * n * ceil(S / m) coordinates, each within its group
// A run of a compressed level and singletons without soa has one array of coordinates, entry by entry, with a column
// for each level.
#include "ir/sparse/impl.h"

// A number, or -1 where it is not known.
static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0) return 0;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}
static int64_t plus_one(int64_t a) {
  return a < 0 || a == INT64_MAX ? -1 : a + 1;
}

// Levels that share the coordinates of level l, itself included; 0 for a level that is in the array of another.
static uint32_t run_of(const kl_encoding *e, uint32_t l) {
  const kl_level *at = &e->levels[l];
  uint32_t n = 1;
  if (at->format == KILN_LEVEL_SINGLETON) return at->properties & KILN_LEVEL_SOA ? 1 : 0;
  if (!sp_is_compressed(at)) return 1;
  while (l + n < e->nlevels && e->levels[l + n].format == KILN_LEVEL_SINGLETON &&
         !(e->levels[l + n].properties & KILN_LEVEL_SOA))
    n++;
  return n;
}

static bool has_coordinates(const kl_encoding *e, uint32_t l) {
  kiln_level_format f = e->levels[l].format;
  return f != KILN_LEVEL_DENSE && f != KILN_LEVEL_BATCH && run_of(e, l) > 0;
}

uint32_t kl_encoding_buffer_count(const kl_encoding *e) {
  uint32_t n = 1;
  for (uint32_t l = 0; l < e->nlevels; l++) n += (uint32_t)sp_is_compressed(&e->levels[l]) + has_coordinates(e, l);
  return n;
}

typedef struct entries {
  int64_t batches, n, most; // P(l), and what it cannot exceed
} entries;

static entries behind(const kl_encoding *e, const kl_binding *b, uint32_t l, entries p) {
  const kl_level *at = &e->levels[l];
  int64_t size = b->levels[l].size;
  switch (at->format) {
  case KILN_LEVEL_DENSE: return (entries){p.batches, times(p.n, size), times(p.most, size)};
  case KILN_LEVEL_BATCH: return (entries){times(p.batches, size), p.n, p.most};
  case KILN_LEVEL_SINGLETON: return (entries){p.batches, p.n, times(p.most, size)};
  case KILN_LEVEL_STRUCTURED:
    size = size < 0 || at->m == 0 ? -1 : times(size / at->m + (size % at->m != 0), at->n);
    return (entries){p.batches, times(p.n, size), times(p.most, size)};
  default: return (entries){p.batches, times(p.most, size) == 0 ? 0 : -1, times(p.most, size)};
  }
}

// What the entries of level l cannot exceed: where coordinates of the compressed level may come again, there is one for
// each of those of all singletons behind it.
static int64_t run_most(const kl_encoding *e, const kl_binding *b, uint32_t l, entries p) {
  uint32_t end = l + run_of(e, l), head = l;
  while (head > 0 && e->levels[head].format == KILN_LEVEL_SINGLETON) head--;
  if (sp_is_compressed(&e->levels[head]) && e->levels[head].properties & KILN_LEVEL_NONUNIQUE)
    while (end < e->nlevels && e->levels[end].format == KILN_LEVEL_SINGLETON) end++;
  for (; l < end; l++) p = behind(e, b, l, p);
  return p.most;
}

static void set_positions(const kl_encoding *e, uint32_t l, entries p, kiln_sparse_buffer *out) {
  bool loose = e->levels[l].format == KILN_LEVEL_LOOSE_COMPRESSED;
  *out = (kiln_sparse_buffer){.role = KILN_SPARSE_POSITIONS,
                              .level = l,
                              .bits = e->pos_width ? e->pos_width : 64,
                              .batches = p.batches,
                              .columns = 1,
                              .count = loose ? times(p.n, 2) : plus_one(p.n),
                              .most = loose ? times(p.most, 2) : plus_one(p.most)};
}

static void set_coordinates(const kl_encoding *e, const kl_binding *b, uint32_t l, entries before,
                            kiln_sparse_buffer *out) {
  uint32_t run = run_of(e, l);
  *out = (kiln_sparse_buffer){.role = KILN_SPARSE_COORDINATES,
                              .level = l,
                              .bits = e->crd_width ? e->crd_width : 64,
                              .batches = before.batches,
                              .columns = run,
                              .count = times(behind(e, b, l, before).n, run),
                              .most = times(run_most(e, b, l, before), run)};
}

bool kl_encoding_buffer(const kl_encoding *e, const kl_binding *b, kl_dtype t, uint32_t i, kiln_sparse_buffer *out) {
  entries p = {1, 1, 1};
  for (uint32_t l = 0; l < e->nlevels; l++) {
    if (sp_is_compressed(&e->levels[l]) && i-- == 0) {
      set_positions(e, l, p, out);
      return true;
    }
    if (has_coordinates(e, l) && i-- == 0) {
      set_coordinates(e, b, l, p, out);
      return true;
    }
    p = behind(e, b, l, p);
  }
  if (i) return false;
  *out = (kiln_sparse_buffer){.role = KILN_SPARSE_VALUES,
                              .level = e->nlevels ? e->nlevels - 1 : 0,
                              .bits = t ? kl_info(t)->bits : 0,
                              .dtype = t,
                              .batches = p.batches,
                              .columns = 1,
                              .count = p.n,
                              .most = p.most};
  return true;
}
