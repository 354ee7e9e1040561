// What stored arrays keep: their sizes; bounds of positions and coordinates; order and uniqueness of coordinates.
#include "base/threads.h"
#include "ir/sparse/store/store.h"

#include <stdlib.h>

typedef struct checker {
  const kl_store *s;
  kiln_sparse_check upto;
  int64_t batch;
  uint32_t level;
} checker;

static kiln_status wrong(const checker *c, const char *what, int64_t at, int64_t expected, int64_t found) {
  return kl_invalid(c->s->cx, KL_NOWHERE, "level %u, batch %lld: %s %lld: expected %lld, found %lld", c->level,
                    (long long)c->batch, what, (long long)at, (long long)expected, (long long)found);
}

// Elements of a buffer for each batch.
static int64_t length(const kl_store *s, int32_t buffer) {
  return s->batches ? s->arrays[buffer].count / s->batches : 0;
}

static uint64_t get(const checker *c, int32_t buffer, unsigned bits, int64_t i) {
  return kl_bits_get(c->s->arrays[buffer].data, bits, length(c->s, buffer) * c->batch + i);
}

static uint64_t position(const checker *c, int64_t i) {
  const kl_level_arrays *a = &c->s->of[c->level];
  return get(c, a->positions, a->pos_bits, i);
}

static uint64_t coordinate(const checker *c, uint32_t level, int64_t i) {
  const kl_level_arrays *a = &c->s->of[level];
  return get(c, a->coordinates, a->crd_bits, i * a->columns + a->column);
}

static kiln_status has(const checker *c, int32_t buffer, const char *what, int64_t need) {
  if (need < 0 || length(c->s, buffer) < need)
    return kl_invalid(c->s->cx, KL_NOWHERE, "level %u: expected %lld %s for each batch at least, found %lld", c->level,
                      (long long)need, what, (long long)length(c->s, buffer));
  return KILN_OK;
}

// Coordinates are looked at in pieces, by all threads where there are many.
enum { PIECE = 1 << 16 };

typedef struct looking {
  const checker *c;
  int64_t n;
  uint64_t size;
  _Atomic int64_t first; // that is too large; n: none is
} looking;

static uint64_t largest(const checker *c, int64_t begin, int64_t end) {
  const kl_level_arrays *a = &c->s->of[c->level];
  const void *data = c->s->arrays[a->coordinates].data;
  int64_t from = length(c->s, a->coordinates) * c->batch + a->column;
  uint64_t most = 0;
  if (a->crd_bits == 32 && a->columns == 1) {
    uint32_t m = 0;
    for (int64_t i = begin; i < end; i++) {
      uint32_t v = ((const kl_u32 *)data)[from + i];
      m = v > m ? v : m;
    }
    return m;
  }
  for (int64_t i = begin; i < end; i++) {
    uint64_t v = kl_bits_get(data, a->crd_bits, from + i * a->columns);
    most = v > most ? v : most;
  }
  return most;
}

static void look(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  looking *l = arg;
  int64_t at = begin, first = atomic_load(&l->first);
  if (begin >= first || largest(l->c, begin, end) < l->size) return;
  while (coordinate(l->c, l->c->level, at) < l->size) at++;
  while (at < first && !atomic_compare_exchange_weak(&l->first, &first, at)) continue;
}

static kiln_status check_coordinates(const checker *c, int64_t n, int64_t size) {
  looking l = {c, n, (uint64_t)size, n};
  kl_parallel(n > 4 * PIECE ? kl_cores() : 1, n, PIECE, look, &l);
  if (l.first == n) return KILN_OK;
  return kl_invalid(c->s->cx, KL_NOWHERE, "level %u, batch %lld: coordinate %lld: expected less than %lld, found %llu",
                    c->level, (long long)c->batch, (long long)l.first, (long long)size,
                    (unsigned long long)coordinate(c, c->level, l.first));
}

// Less than 0, 0 or more: entry q before, like or behind the one after it, by the levels of the run.
static int compare(const checker *c, int64_t q, int64_t r) {
  for (uint32_t l = c->level; l < c->level + c->s->of[c->level].run; l++) {
    uint64_t a = coordinate(c, l, q), b = coordinate(c, l, r);
    if (a != b) return a < b ? -1 : 1;
  }
  return 0;
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static kiln_status check_unique(const checker *c, int64_t lo, int64_t hi) {
  uint64_t *all = kl_try_alloc(c->s->cx, (size_t)(hi - lo) * sizeof *all + 1);
  kiln_status status = KILN_OK;
  if (!all) return kl_out_of_memory(c->s->cx, (size_t)(hi - lo) * sizeof *all + 1, "coordinates");
  for (int64_t q = lo; q < hi; q++) all[q - lo] = coordinate(c, c->level, q);
  qsort(all, (size_t)(hi - lo), sizeof *all, by_value);
  for (int64_t i = 1; i < hi - lo && status == KILN_OK; i++)
    if (all[i] == all[i - 1])
      status = kl_invalid(c->s->cx, KL_NOWHERE, "level %u, batch %lld: expected each coordinate once, found %llu again",
                          c->level, (long long)c->batch, (unsigned long long)all[i]);
  kl_free(c->s->cx, all, (size_t)(hi - lo) * sizeof *all + 1);
  return status;
}

// Entries lo .. hi - 1 belong to one parent.
static kiln_status check_interval(const checker *c, int64_t lo, int64_t hi) {
  unsigned all = 0, first = c->s->e->levels[c->level].properties;
  uint32_t run = c->s->of[c->level].run;
  for (uint32_t l = c->level; l < c->level + run; l++) all |= c->s->e->levels[l].properties;
  unsigned last = c->s->e->levels[c->level + run - 1].properties;
  if (all & KILN_LEVEL_NONORDERED) return first & KILN_LEVEL_NONUNIQUE ? KILN_OK : check_unique(c, lo, hi);
  for (int64_t q = lo; q + 1 < hi; q++) {
    int order = compare(c, q, q + 1);
    bool repeats = order == 0 && !(last & KILN_LEVEL_NONUNIQUE);
    bool head = !(first & KILN_LEVEL_NONUNIQUE) && coordinate(c, c->level, q) == coordinate(c, c->level, q + 1);
    if (order > 0 || repeats || head)
      return kl_invalid(
          c->s->cx, KL_NOWHERE, "level %u, batch %lld: coordinate %lld: expected %s, found %llu behind %llu", c->level,
          (long long)c->batch, (long long)(q + 1), order > 0 ? "ascending coordinates" : "each coordinate once",
          (unsigned long long)coordinate(c, c->level, q + 1), (unsigned long long)coordinate(c, c->level, q));
  }
  return KILN_OK;
}

// *p: entries of the level before; becomes those of this one.
static kiln_status check_compressed(const checker *c, int64_t *p) {
  const kl_level_arrays *a = &c->s->of[c->level];
  bool loose = c->s->e->levels[c->level].format == KILN_LEVEL_LOOSE_COMPRESSED;
  int64_t n = length(c->s, a->coordinates) / a->columns, need, used = 0;
  if (__builtin_mul_overflow(*p, loose ? 2 : 1, &need) || __builtin_add_overflow(need, !loose, &need)) need = -1;
  KL_TRY(has(c, a->positions, "positions", need));
  if (c->upto < KILN_SPARSE_CHECK_BOUNDS) {
    *p = n;
    return KILN_OK;
  }
  if (!loose && position(c, 0) != 0) return wrong(c, "position", 0, 0, (int64_t)position(c, 0));
  for (int64_t i = 0; i < *p; i++) {
    uint64_t lo = position(c, loose ? 2 * i : i), hi = position(c, loose ? 2 * i + 1 : i + 1);
    if (hi > (uint64_t)n) return wrong(c, "end of interval", i, n, (int64_t)hi);
    if (lo > hi) return wrong(c, "end of interval", i, (int64_t)lo, (int64_t)hi);
    if ((int64_t)hi > used) used = (int64_t)hi;
  }
  KL_TRY(check_coordinates(c, used, c->s->l->binding.levels[c->level].size));
  *p = used;
  return KILN_OK;
}

static kiln_status check_order(const checker *c, int64_t parents) {
  bool loose = c->s->e->levels[c->level].format == KILN_LEVEL_LOOSE_COMPRESSED;
  for (int64_t i = 0; i < parents; i++)
    KL_TRY(check_interval(c, (int64_t)position(c, loose ? 2 * i : i), (int64_t)position(c, loose ? 2 * i + 1 : i + 1)));
  return KILN_OK;
}

static kiln_status check_structured(const checker *c, int64_t *p) {
  const kl_level *at = &c->s->e->levels[c->level];
  int64_t size = c->s->l->binding.levels[c->level].size, n;
  if (__builtin_mul_overflow(size / at->m + (size % at->m != 0), at->n, &n) || __builtin_mul_overflow(*p, n, &n))
    n = -1;
  KL_TRY(has(c, c->s->of[c->level].coordinates, "coordinates", n));
  if (c->upto >= KILN_SPARSE_CHECK_BOUNDS) KL_TRY(check_coordinates(c, n, at->m));
  for (int64_t i = 1; i < n && c->upto >= KILN_SPARSE_CHECK_ORDER; i++)
    if (i % at->n && coordinate(c, c->level, i) <= coordinate(c, c->level, i - 1))
      return wrong(c, "of ascending coordinates of a group, number", i, (int64_t)coordinate(c, c->level, i - 1) + 1,
                   (int64_t)coordinate(c, c->level, i));
  *p = n;
  return KILN_OK;
}

static kiln_status check_level(const checker *c, int64_t *p) {
  int64_t size = c->s->l->binding.levels[c->level].size, n;
  switch (c->s->e->levels[c->level].format) {
  case KILN_LEVEL_DENSE:
    if (__builtin_mul_overflow(*p, size, p)) *p = -1;
    return *p < 0 ? kl_unsupported(c->s->cx, KL_NOWHERE, "level %u: more entries than 64 bits hold", c->level)
                  : KILN_OK;
  case KILN_LEVEL_SINGLETON:
    n = c->s->of[c->level].columns;
    if (__builtin_mul_overflow(*p, n, &n)) n = -1;
    KL_TRY(has(c, c->s->of[c->level].coordinates, "coordinates", n));
    return c->upto >= KILN_SPARSE_CHECK_BOUNDS ? check_coordinates(c, *p, size) : KILN_OK;
  case KILN_LEVEL_STRUCTURED: return check_structured(c, p);
  case KILN_LEVEL_BATCH: return KILN_OK;
  default: return check_compressed(c, p);
  }
}

static kiln_status check_batch(checker *c) {
  int64_t p = 1, parents[KL_MOST_LEVELS];
  for (c->level = 0; c->level < c->s->e->nlevels; c->level++) {
    parents[c->level] = p;
    KL_TRY(check_level(c, &p));
  }
  c->level = c->s->e->nlevels ? c->s->e->nlevels - 1 : 0;
  KL_TRY(has(c, (int32_t)c->s->nbuffers - 1, "values", p));
  for (c->level = 0; c->level < c->s->e->nlevels && c->upto >= KILN_SPARSE_CHECK_ORDER; c->level++)
    if (sp_is_compressed(&c->s->e->levels[c->level])) KL_TRY(check_order(c, parents[c->level]));
  return KILN_OK;
}

kiln_status kl_store_check(const kl_store *s, kiln_sparse_check upto) {
  checker c = {.s = s, .upto = upto};
  for (uint32_t i = 0; i < s->nbuffers; i++)
    if (s->arrays[i].count < 0 || (s->arrays[i].count && !s->arrays[i].data) ||
        (s->batches && s->arrays[i].count % s->batches))
      return kl_invalid(s->cx, KL_NOWHERE, "array %u: expected elements, as many for each of %lld batches, found %lld",
                        i, (long long)s->batches, (long long)s->arrays[i].count);
  int64_t any = 0; // where there are no elements, one batch is as good as all
  for (uint32_t i = 0; i < s->nbuffers; i++) any |= s->arrays[i].count;
  for (; c.batch < (any ? s->batches : s->batches > 0); c.batch++) KL_TRY(check_batch(&c));
  return KILN_OK;
}
