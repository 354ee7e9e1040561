// From entries to arrays: level coordinates, a sort by them, sums of entries of one element, then level by level the
// place of every entry. Twice: once to see how large arrays are, once to write them.
#include "ir/sparse/pack.h"

#include <stdlib.h>

// --- sums -----------------------------------------------------------------------------------------------------------

static void add_part(kl_dtype t, void *sum, const void *x, int part) {
  uint64_t a = kl_element_get(t, sum, 0, part), b = kl_element_get(t, x, 0, part);
  kl_dtype own = kl_is_complex(t) ? kl_info(t)->part : t;
  if (own == KILN_PRED)
    a |= b;
  else if (kl_is_float(own))
    a = kl_float_encode(own, kl_float_decode(own, a) + kl_float_decode(own, b));
  else
    a = (a + b) & kl_int_mask(own);
  kl_element_set(t, sum, 0, part, a);
}

void kl_value_add(kl_dtype t, void *sum, const void *x) {
  for (int part = 0; part < (kl_is_complex(t) ? 2 : 1); part++) add_part(t, sum, x, part);
}

// --- entries --------------------------------------------------------------------------------------------------------

typedef struct packer {
  kl_store s;
  int64_t n;             // entries, after sums of elements
  int64_t *levels;       // [n][nlevels], as stored
  int64_t *order, *at;   // entries in order; their place in the level that is built
  unsigned char *values; // [n]
  int64_t need[2 * KL_MOST_LEVELS + 1], start[2 * KL_MOST_LEVELS + 1]; // by buffer, for each batch and of this one
  int64_t places, first, end;                                          // of the level; entries of the batch
  int64_t batch;
  bool write;
} packer;

static const int64_t *levels_of(const packer *p, int64_t k) {
  return p->levels + p->order[k] * (int64_t)p->s.e->nlevels;
}

static int by_levels(const void *a, const void *b, void *arg) {
  const packer *p = arg;
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  uint32_t n = p->s.e->nlevels;
  for (uint32_t l = 0; l < n; l++) {
    int64_t u = p->levels[x * n + l], v = p->levels[y * n + l];
    if (u != v) return u < v ? -1 : 1;
  }
  return x < y ? -1 : x > y;
}

static kiln_status set_levels(packer *p, const kiln_sparse_entries *in) {
  const kl_encoding *e = p->s.e;
  const kl_binding *b = &p->s.l->binding;
  const kl_aff *values[KL_MOST_LEVELS] = {NULL};
  for (uint32_t l = 0; l < e->nlevels; l++)
    if (b->levels[l].count < 0) values[l] = kl_tree_aff(p->s.l->pool, e->levels[l].value);
  for (int64_t k = 0; k < in->count; k++) {
    const int64_t *at = in->coordinates + k * e->ndims;
    for (uint32_t d = 0; d < e->ndims; d++)
      if (at[d] < 0 || at[d] >= p->s.l->type.sizes[d])
        return kl_invalid(p->s.cx, KL_NOWHERE, "entry %lld, dimension %u: expected 0 to %lld, found %lld", (long long)k,
                          d, (long long)p->s.l->type.sizes[d] - 1, (long long)at[d]);
    for (uint32_t l = 0; l < e->nlevels; l++) {
      int64_t v = 0, *out = &p->levels[k * e->nlevels + l];
      if (values[l] && !kl_aff_eval(p->s.l->pool, values[l], &(kl_point){{at}}, &v))
        return kl_unsupported(p->s.cx, KL_NOWHERE, "level %u has a value beyond 64 bits", l);
      *out = values[l] ? v - b->levels[l].lo : 0;
    }
    p->order[k] = k;
  }
  return KILN_OK;
}

// Entries of one element become the first of them.
static void sum_up(packer *p) {
  kl_dtype t = p->s.l->type.element.dtype;
  size_t bytes = kl_info(t)->bytes, row = p->s.e->nlevels * sizeof(int64_t);
  int64_t n = 0;
  for (int64_t k = 0; k < p->n; k++) {
    if (n && memcmp(levels_of(p, k), levels_of(p, n - 1), row) == 0)
      kl_value_add(t, p->values + (size_t)p->order[n - 1] * bytes, p->values + (size_t)p->order[k] * bytes);
    else
      p->order[n++] = p->order[k];
  }
  p->n = n;
}

// A level that counts: slots by how many entries of the dimension's coordinate come before.
static kiln_status count_slots(packer *p, uint32_t level, const int64_t *coordinates) {
  kl_level_extent x = p->s.l->binding.levels[level];
  size_t size = (size_t)p->s.l->type.sizes[x.count] * sizeof(int64_t) + 1;
  int64_t *seen = kl_try_alloc(p->s.cx, size);
  kiln_status status = seen ? KILN_OK : kl_out_of_memory(p->s.cx, size, "counts of entries");
  for (int64_t k = 0; k < p->n && status == KILN_OK; k++) {
    int64_t at = coordinates[p->order[k] * p->s.e->ndims + x.count], slot = seen[at]++;
    p->levels[p->order[k] * p->s.e->nlevels + level] = slot;
    if (slot >= x.size)
      status = kl_invalid(p->s.cx, KL_NOWHERE, "level %u: expected at most %lld entries of coordinate %lld, found more",
                          level, (long long)x.size, (long long)at);
  }
  kl_free(p->s.cx, seen, size);
  return status;
}

// Where all values are one, others are not stored.
static kiln_status check_values(const packer *p) {
  const kl_number *x = &p->s.l->explicit_value;
  kl_dtype t = p->s.l->type.element.dtype;
  uint64_t value[2] = {0};
  if (!x->cls) return KILN_OK;
  for (int part = 0; part < (kl_is_complex(t) ? 2 : 1); part++) kl_element_set(t, value, 0, part, x->bits[part]);
  for (int64_t k = 0; k < p->n; k++)
    if (memcmp(p->values + (size_t)p->order[k] * kl_info(t)->bytes, value, kl_info(t)->bytes))
      return kl_invalid(p->s.cx, KL_NOWHERE, "entry %lld: expected the value %.*s of explicitVal, found another",
                        (long long)p->order[k], KL_FMT(x->text));
  return KILN_OK;
}

static kiln_status arrange(packer *p, const kiln_sparse_entries *in) {
  bool counts = false;
  KL_TRY(set_levels(p, in));
  qsort_r(p->order, (size_t)p->n, sizeof *p->order, by_levels, p);
  sum_up(p);
  KL_TRY(check_values(p));
  for (uint32_t l = 0; l < p->s.e->nlevels; l++)
    if (p->s.l->binding.levels[l].count >= 0) {
      KL_TRY(count_slots(p, l, in->coordinates));
      counts = true;
    }
  if (counts) qsort_r(p->order, (size_t)p->n, sizeof *p->order, by_levels, p);
  return KILN_OK;
}

// --- levels ---------------------------------------------------------------------------------------------------------

static kiln_status put(packer *p, uint32_t level, int32_t buffer, unsigned bits, int64_t i, int64_t v) {
  if (bits < 64 && v >> bits)
    return kl_invalid(p->s.cx, KL_NOWHERE, "level %u: expected a %s of %u bits, found %lld", level,
                      buffer == p->s.of[level].positions ? "position" : "coordinate", bits, (long long)v);
  if (p->write) kl_bits_set(p->s.arrays[buffer].data, bits, p->start[buffer] + i, (uint64_t)v);
  return KILN_OK;
}

static kiln_status put_coordinate(packer *p, uint32_t level, int64_t at, int64_t v) {
  const kl_level_arrays *a = &p->s.of[level];
  return put(p, level, a->coordinates, a->crd_bits, at * a->columns + a->column, v);
}

static kiln_status need(packer *p, int32_t buffer, int64_t n, int64_t times) {
  if (__builtin_mul_overflow(n, times, &n))
    return kl_unsupported(p->s.cx, KL_NOWHERE, "arrays of more elements than 64 bits count");
  if (n > p->need[buffer]) p->need[buffer] = n;
  return KILN_OK;
}

static kiln_status grow(packer *p, int64_t times) {
  if (__builtin_mul_overflow(p->places, times, &p->places))
    return kl_unsupported(p->s.cx, KL_NOWHERE, "a level of more entries than 64 bits count");
  return KILN_OK;
}

// Is entry k in the same node of a compressed level as the one before, which has the same parent? Where coordinates may
// repeat, only what agrees in all levels of the run is one node.
static bool same_node(const packer *p, uint32_t level, int64_t k) {
  bool repeats = p->s.e->levels[level].properties & KILN_LEVEL_NONUNIQUE;
  size_t n = repeats ? p->s.of[level].run : 1;
  return memcmp(levels_of(p, k) + level, levels_of(p, k - 1) + level, n * sizeof(int64_t)) == 0;
}

static kiln_status put_interval(packer *p, uint32_t level, int64_t parent, int64_t lo, int64_t hi) {
  const kl_level_arrays *a = &p->s.of[level];
  if (p->s.e->levels[level].format != KILN_LEVEL_LOOSE_COMPRESSED)
    return put(p, level, a->positions, a->pos_bits, parent + 1, hi);
  KL_TRY(put(p, level, a->positions, a->pos_bits, 2 * parent, lo));
  return put(p, level, a->positions, a->pos_bits, 2 * parent + 1, hi);
}

static kiln_status build_compressed(packer *p, uint32_t level) {
  const kl_level_arrays *a = &p->s.of[level];
  bool loose = p->s.e->levels[level].format == KILN_LEVEL_LOOSE_COMPRESSED;
  int64_t node = 0, k = p->first;
  if (p->places == INT64_MAX) return grow(p, 2);
  KL_TRY(need(p, a->positions, p->places + !loose, loose ? 2 : 1));
  for (int64_t parent = 0; parent < p->places && (p->write || k < p->end); parent++) {
    int64_t lo = node;
    if (!p->write) parent = p->at[k]; // those without entries need no look
    for (int64_t begin = k; k < p->end && p->at[k] == parent; k++) {
      if (k == begin || !same_node(p, level, k)) KL_TRY(put_coordinate(p, level, node++, levels_of(p, k)[level]));
      p->at[k] = node - 1;
    }
    KL_TRY(put_interval(p, level, parent, lo, node));
  }
  p->places = node;
  return need(p, a->coordinates, node, a->columns);
}

static kiln_status build_singleton(packer *p, uint32_t level) {
  const kl_level_arrays *a = &p->s.of[level];
  for (int64_t k = p->first; k < p->end; k++) {
    int64_t v = levels_of(p, k)[level];
    if (k > p->first && p->at[k] == p->at[k - 1] && v != levels_of(p, k - 1)[level])
      return kl_invalid(p->s.cx, KL_NOWHERE,
                        "level %u: expected one coordinate for each entry of the level before, which is unique, found "
                        "%lld and %lld",
                        level, (long long)levels_of(p, k - 1)[level], (long long)v);
    KL_TRY(put_coordinate(p, level, p->at[k], v));
  }
  return need(p, a->coordinates, p->places, a->columns);
}

// A group's slots: the coordinates that entries have, and the smallest others, ascending. k: its first entry.
static kiln_status build_group(packer *p, uint32_t level, int64_t group, int64_t *k) {
  const kl_level *at = &p->s.e->levels[level];
  int64_t groups = p->s.l->binding.levels[level].size / at->m + (p->s.l->binding.levels[level].size % at->m != 0);
  int64_t end = *k, used = 0, slot = 0, parent = group / groups;
  while (end < p->end && p->at[end] == parent && levels_of(p, end)[level] / at->m == group % groups) {
    used += end == *k || levels_of(p, end)[level] != levels_of(p, end - 1)[level];
    end++;
  }
  if (used > at->n)
    return kl_invalid(p->s.cx, KL_NOWHERE, "level %u: expected at most %lld of %lld consecutive entries, found %lld",
                      level, (long long)at->n, (long long)at->m, (long long)used);
  for (int64_t c = 0, fill = at->n - used; c < at->m && slot < at->n; c++) {
    bool mine = false;
    while (*k < end && levels_of(p, *k)[level] % at->m == c) {
      p->at[(*k)++] = group * at->n + slot;
      mine = true;
    }
    if (!mine && fill-- <= 0) continue;
    KL_TRY(put_coordinate(p, level, group * at->n + slot++, c));
  }
  return KILN_OK;
}

static kiln_status build_structured(packer *p, uint32_t level) {
  const kl_level *at = &p->s.e->levels[level];
  int64_t size = p->s.l->binding.levels[level].size, groups = size / at->m + (size % at->m != 0), k = p->first;
  KL_TRY(grow(p, groups));
  int64_t all = p->places;
  KL_TRY(grow(p, at->n));
  KL_TRY(need(p, p->s.of[level].coordinates, p->places, 1));
  for (int64_t g = 0; g < all && (p->write || k < p->end); g++) {
    if (!p->write) g = p->at[k] * groups + levels_of(p, k)[level] / at->m;
    KL_TRY(build_group(p, level, g, &k));
  }
  return KILN_OK;
}

static kiln_status build_level(packer *p, uint32_t level) {
  int64_t size = p->s.l->binding.levels[level].size;
  switch (p->s.e->levels[level].format) {
  case KILN_LEVEL_DENSE:
    KL_TRY(grow(p, size));
    for (int64_t k = p->first; k < p->end; k++) p->at[k] = p->at[k] * size + levels_of(p, k)[level];
    return KILN_OK;
  case KILN_LEVEL_SINGLETON: return build_singleton(p, level);
  case KILN_LEVEL_STRUCTURED: return build_structured(p, level);
  default: return build_compressed(p, level);
  }
}

static kiln_status put_values(packer *p) {
  uint64_t implicit[2];
  size_t bytes = kl_info(p->s.l->type.element.dtype)->bytes;
  int32_t last = (int32_t)p->s.nbuffers - 1;
  KL_TRY(need(p, last, p->places, 1));
  if (!p->write) return KILN_OK;
  kl_value_implicit(&p->s, implicit);
  for (int64_t i = 0; i < p->need[last]; i++) kl_value_set(&p->s, p->start[last] + i, implicit);
  for (int64_t k = p->first; k < p->end; k++)
    kl_value_set(&p->s, p->start[last] + p->at[k], p->values + (size_t)p->order[k] * bytes);
  return KILN_OK;
}

// --- batches --------------------------------------------------------------------------------------------------------

static int64_t batch_of(const packer *p, int64_t k) {
  int64_t b = 0;
  for (uint32_t l = 0; l < p->s.nbatch; l++) b = b * p->s.l->binding.levels[l].size + levels_of(p, k)[l];
  return b;
}

static kiln_status build_batch(packer *p) {
  p->first = p->end;
  while (p->end < p->n && batch_of(p, p->end) == p->batch) p->at[p->end++] = 0;
  p->places = 1;
  for (uint32_t i = 0; i < p->s.nbuffers; i++) p->start[i] = p->need[i] * p->batch;
  for (uint32_t l = p->s.nbatch; l < p->s.e->nlevels; l++) KL_TRY(build_level(p, l));
  return put_values(p);
}

static kiln_status build(packer *p, bool write) {
  int64_t n = 0;
  p->write = write;
  p->end = 0;
  for (uint32_t i = 0; i < p->s.nbuffers; i++) n |= p->need[i];
  if (write && !n) return KILN_OK;
  for (p->batch = 0; p->batch < p->s.batches && (write || p->batch == 0 || p->end < p->n); p->batch++) {
    if (!write && p->end < p->n) p->batch = batch_of(p, p->end); // those without entries need no look
    KL_TRY(build_batch(p));
  }
  return KILN_OK;
}

// --- the whole ------------------------------------------------------------------------------------------------------

// Arrays become as long as they have to be; false where none has room yet.
static kiln_status set_lengths(packer *p, bool *room) {
  kiln_sparse_buffer b;
  *room = false;
  for (uint32_t i = 0; i < p->s.nbuffers; i++) *room |= p->s.arrays[i].data != NULL;
  for (uint32_t i = 0; i < p->s.nbuffers; i++) {
    kiln_sparse_array *a = &p->s.arrays[i];
    int64_t n;
    if (__builtin_mul_overflow(p->need[i], p->s.batches, &n))
      return kl_unsupported(p->s.cx, KL_NOWHERE, "arrays of more elements than 64 bits count");
    if (*room && (a->count < n || (n && !a->data)))
      return kl_invalid(p->s.cx, KL_NOWHERE, "array %u: expected room for %lld elements, found %lld", i, (long long)n,
                        (long long)(a->data ? a->count : 0));
    a->count = n;
    kiln_sparse_layout_buffer_at(p->s.l, i, &b);
    if (*room && n) memset(a->data, 0, (size_t)n / 8 * b.bits + ((size_t)n % 8 * b.bits + 7) / 8);
  }
  return KILN_OK;
}

static bool allocate(packer *p, const kiln_sparse_entries *in, kl_arena *a) {
  size_t n = (size_t)in->count, levels, bytes = kl_info(p->s.l->type.element.dtype)->bytes;
  if (n > (size_t)1 << 48 || __builtin_mul_overflow(n * 8 + 8, (size_t)p->s.e->nlevels + 1, &levels)) return false;
  p->levels = kl_arena_try_alloc(a, levels);
  p->order = kl_arena_try_alloc(a, n * 8 + 8);
  p->at = kl_arena_try_alloc(a, n * 8 + 8);
  p->values = kl_arena_try_alloc(a, n * bytes + 1);
  if (!p->levels || !p->order || !p->at || !p->values) return false;
  if (n) memcpy(p->values, in->values, n * bytes);
  p->n = in->count;
  return true;
}

kiln_status kl_pack(kl_store *s, const kiln_sparse_entries *in) {
  packer p = {.s = *s};
  kl_arena a;
  bool room;
  kl_arena_init(&a, s->cx);
  kiln_status status =
      allocate(&p, in, &a) ? arrange(&p, in) : kl_out_of_memory(s->cx, (size_t)in->count * 8, "entries");
  if (status == KILN_OK) status = build(&p, false);
  if (status == KILN_OK) status = set_lengths(&p, &room);
  if (status == KILN_OK && room) status = build(&p, true);
  kl_arena_free(&a);
  return status;
}
