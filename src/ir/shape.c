// Shapes: interning, construction, comparison, text.
//
// A module's shapes live in its arena and are found again through a hash table, so that equal shapes are one pointer.
// What makes a shape unusable everywhere (more than int64 elements or bytes, tuples too deep or too wide) is refused
// here, once: all later arithmetic on a shape's own extents is then free of overflow.
#include "ir/shape.h"
#include "ir/index/layout/layout.h"

typedef struct shape_table {
  size_t nslots, n;
  const kl_shape **slots;
} shape_table;

// --- equality and hashing -----------------------------------------------------------------------------------------

static bool same_bytes(const void *a, const void *b, size_t size) {
  return size == 0 || memcmp(a, b, size) == 0;
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_tiles(const kl_layout *a, const kl_layout *b) {
  if (a->ntiles != b->ntiles) return false;
  for (uint32_t i = 0; i < a->ntiles; i++)
    if (a->tiles[i].n != b->tiles[i].n ||
        !same_bytes(a->tiles[i].dims, b->tiles[i].dims, a->tiles[i].n * sizeof(int64_t)))
      return false;
  return true;
}

static bool same_layout(const kl_layout *a, const kl_layout *b) {
  if (a->present != b->present) return false;
  if (!a->present) return true;
  return a->rank == b->rank && same_bytes(a->minor_to_major, b->minor_to_major, a->rank * sizeof(int64_t)) &&
         same_tiles(a, b) && same_text(a->dim_level_types, b->dim_level_types) && a->tail_padding == b->tail_padding &&
         a->index_type == b->index_type && a->pointer_type == b->pointer_type && a->element_bits == b->element_bits &&
         a->memory_space == b->memory_space && same_text(a->split_configs, b->split_configs) &&
         same_text(a->physical_shape, b->physical_shape) && a->metadata_prefix == b->metadata_prefix &&
         same_text(a->sparse, b->sparse);
}

static bool same_shape(const kl_shape *a, const kl_shape *b) {
  if (a->dtype != b->dtype || a->rank != b->rank || a->nelems != b->nelems) return false;
  if (!a->dynamic != !b->dynamic || (a->dynamic && !same_bytes(a->dynamic, b->dynamic, a->rank * sizeof(bool))))
    return false;
  return same_bytes(a->dims, b->dims, a->rank * sizeof(int64_t)) &&
         same_bytes(a->elems, b->elems, a->nelems * sizeof(*a->elems)) && same_layout(&a->layout, &b->layout);
}

static uint64_t hash_text(const char *z, uint64_t h) {
  return z ? kl_hash(z, strlen(z), h) : h;
}

static uint64_t hash_layout(const kl_layout *l, uint64_t h) {
  int64_t numbers[] = {l->tail_padding, l->index_type,   l->pointer_type,
                       l->element_bits, l->memory_space, l->metadata_prefix};
  if (l->rank) h = kl_hash(l->minor_to_major, l->rank * sizeof(int64_t), h);
  for (uint32_t i = 0; i < l->ntiles; i++) h = kl_hash(l->tiles[i].dims, l->tiles[i].n * sizeof(int64_t), h);
  h = hash_text(l->dim_level_types, hash_text(l->split_configs, hash_text(l->physical_shape, hash_text(l->sparse, h))));
  return kl_hash(numbers, sizeof numbers, h);
}

static uint64_t hash_shape(const kl_shape *s) {
  uint64_t h = kl_hash(s->dims, s->rank * sizeof(int64_t), (uint64_t)s->dtype << 1 | s->layout.present);
  if (s->nelems) h = kl_hash(s->elems, s->nelems * sizeof(*s->elems), h);
  if (s->layout.present) h = hash_layout(&s->layout, h);
  return h;
}

// --- the table ----------------------------------------------------------------------------------------------------

static shape_table *table_of(kiln_module *m) {
  if (!m->shapes) m->shapes = kl_alloc(m->cx, sizeof(shape_table));
  return m->shapes;
}

void kl_shapes_free(kiln_module *m) {
  shape_table *t = m->shapes;
  if (!t) return;
  kl_free(m->cx, t->slots, t->nslots * sizeof(*t->slots));
  kl_free(m->cx, t, sizeof *t);
  m->shapes = NULL;
}

static const kl_shape **find_slot(shape_table *t, const kl_shape *s) {
  for (size_t i = hash_shape(s) & (t->nslots - 1);; i = (i + 1) & (t->nslots - 1))
    if (!t->slots[i] || same_shape(t->slots[i], s)) return &t->slots[i];
}

static void grow_table(kiln_module *m, shape_table *t) {
  shape_table old = *t;
  t->nslots = old.nslots ? old.nslots * 2 : 64;
  t->slots = kl_alloc(m->cx, t->nslots * sizeof(*t->slots));
  for (size_t i = 0; i < old.nslots; i++)
    if (old.slots[i]) *find_slot(t, old.slots[i]) = old.slots[i];
  kl_free(m->cx, old.slots, old.nslots * sizeof(*old.slots));
}

// --- construction -------------------------------------------------------------------------------------------------

// Elements of an array, dims of 0 counted as 1 while checking, so that strides fit whatever the order of dims. Bytes
// are checked for the packed and the unpacked form.
static bool count_elements(const kl_shape *s, int64_t *out) {
  int64_t padded = 1, count = 1, bytes;
  for (uint32_t i = 0; i < s->rank; i++) {
    bool unknown = s->dims[i] == KL_DIM_UNKNOWN && s->dynamic && s->dynamic[i];
    if (s->dims[i] < 0 && !unknown) return false;
    if (__builtin_mul_overflow(padded, s->dims[i] > 0 ? s->dims[i] : 1, &padded)) return false;
    count = s->dims[i] > 0 ? count : 0;
  }
  int64_t item = kl_is_array_dtype(s->dtype) ? kl_info(s->dtype)->bytes : 1;
  if (__builtin_mul_overflow(padded, item < 8 ? 8 : item, &bytes)) return false; // 8: so that bits fit, too
  *out = count ? padded : 0;
  return true;
}

// Does the array with its padding fit, too? What has no physical layout for another reason is kept as it is.
static bool padding_fits(const kl_shape *s) {
  kl_physical p;
  return kl_layout_is_order(s) || kl_physical_of(s, &p) != KL_PHYSICAL_LARGE;
}

static bool measure(kl_shape *s) {
  s->depth = 0;
  if (s->dtype != KILN_TUPLE) return s->rank <= KILN_MAX_RANK && count_elements(s, &s->count) && padding_fits(s);
  s->count = 0;
  for (uint32_t i = 0; i < s->nelems; i++) {
    const kl_shape *e = s->elems[i];
    s->count += e->dtype == KILN_TUPLE ? e->count : 1;
    if (e->depth + 1 > s->depth) s->depth = e->depth + 1;
    if (s->count > KL_MAX_LEAVES) return false;
  }
  if (s->depth == 0) s->depth = 1;
  return s->depth <= KL_MAX_TUPLE_DEPTH;
}

static const char *dup_text(kl_arena *a, const char *z) {
  return z ? kl_str_dup(a, kl_str_of(z)).p : NULL;
}

static void own_layout(kl_arena *a, kl_layout *l) {
  if (!l->present) {
    *l = (kl_layout){.tail_padding = 1};
    return;
  }
  l->minor_to_major = kl_arena_dup(a, l->minor_to_major, l->rank * sizeof(int64_t));
  kl_tile *tiles = kl_arena_dup(a, l->tiles, l->ntiles * sizeof(kl_tile));
  for (uint32_t i = 0; i < l->ntiles; i++) tiles[i].dims = kl_arena_dup(a, tiles[i].dims, tiles[i].n * sizeof(int64_t));
  l->tiles = tiles;
  l->dim_level_types = dup_text(a, l->dim_level_types);
  l->split_configs = dup_text(a, l->split_configs);
  l->physical_shape = dup_text(a, l->physical_shape);
  l->sparse = dup_text(a, l->sparse);
}

static const uint32_t *number_leaves(kl_arena *a, const kl_shape *s) {
  uint32_t *first = KL_NEW_N(a, uint32_t, s->nelems + 1u);
  for (uint32_t i = 0; i < s->nelems; i++) first[i + 1] = first[i] + (uint32_t)kl_shape_leaf_count(s->elems[i]);
  return first;
}

const kl_shape *kl_shape_intern(kiln_module *m, const kl_shape *s) {
  shape_table *t = table_of(m);
  if (t->n * 2 >= t->nslots) grow_table(m, t);
  const kl_shape **slot = find_slot(t, s);
  if (*slot) return *slot;
  kl_shape own = *s;
  if (!measure(&own)) return NULL;
  own.dims = kl_arena_dup(&m->arena, s->dims, s->rank * sizeof(int64_t));
  own.dynamic = s->dynamic ? kl_arena_dup(&m->arena, s->dynamic, s->rank * sizeof(bool)) : NULL;
  own.elems = kl_arena_dup(&m->arena, s->elems, s->nelems * sizeof(*s->elems));
  own_layout(&m->arena, &own.layout);
  t->n++;
  if (s->dtype == KILN_TUPLE) own.first_leaf = number_leaves(&m->arena, s);
  return *slot = kl_arena_dup(&m->arena, &own, sizeof own);
}

const kl_shape *kl_shape_array(kiln_module *m, kl_dtype t, uint32_t rank, const int64_t *dims) {
  kl_shape s = {.dtype = t, .rank = rank, .dims = dims, .layout.tail_padding = 1};
  return kl_shape_intern(m, &s);
}

const kl_shape *kl_shape_tuple(kiln_module *m, uint32_t n, const kl_shape *const *elems) {
  kl_shape s = {.dtype = KILN_TUPLE, .nelems = n, .elems = elems, .layout.tail_padding = 1};
  return kl_shape_intern(m, &s);
}

// --- questions ----------------------------------------------------------------------------------------------------

const kl_shape *kl_shape_without_encoding(kiln_module *m, const kl_shape *s) {
  if (!s->layout.sparse) return s;
  kl_shape plain = *s;
  plain.layout = (kl_layout){.tail_padding = 1};
  return kl_shape_intern(m, &plain);
}

bool kl_shape_is_array(const kl_shape *s) {
  return kl_is_array_dtype(s->dtype);
}

bool kl_shape_same_dims(const kl_shape *a, const kl_shape *b) {
  return a->rank == b->rank && same_bytes(a->dims, b->dims, a->rank * sizeof(int64_t));
}

bool kl_shape_compatible(const kl_shape *a, const kl_shape *b) {
  if (a == b) return true;
  if (a->dtype != b->dtype || a->nelems != b->nelems || !kl_shape_same_dims(a, b)) return false;
  for (uint32_t i = 0; i < a->nelems; i++)
    if (!kl_shape_compatible(a->elems[i], b->elems[i])) return false;
  return true;
}

int64_t kl_shape_minor_to_major(const kl_shape *s, uint32_t i) {
  return s->layout.present ? s->layout.minor_to_major[i] : (int64_t)s->rank - 1 - i;
}

bool kl_shape_default_layout(const kl_shape *s) {
  for (uint32_t i = 0; i < s->rank && s->layout.present; i++)
    if (s->layout.minor_to_major[i] != (int64_t)s->rank - 1 - i) return false;
  return kl_layout_is_order(s);
}

bool kl_shape_same_in_memory(const kl_shape *a, const kl_shape *b) {
  if (a == b) return true;
  for (uint32_t i = 0; i < a->nelems; i++)
    if (!kl_shape_same_in_memory(a->elems[i], b->elems[i])) return false;
  if (!kl_shape_is_array(a) || (kl_shape_default_layout(a) && kl_shape_default_layout(b))) return true;
  return a->layout.present && b->layout.present && same_layout(&a->layout, &b->layout);
}

int64_t kl_shape_bytes(const kl_shape *s) {
  kl_physical p;
  if (kl_layout_is_order(s)) return kl_shape_dense_bytes(s);
  return kl_physical_of(s, &p) ? -1 : p.bytes;
}

int64_t kl_shape_dense_bytes(const kl_shape *s) {
  if (!kl_shape_is_array(s)) return -1;
  int64_t bits = kl_info(s->dtype)->bits, n;
  if (bits < 8) return s->count / (8 / bits) + (s->count % (8 / bits) != 0);
  return __builtin_mul_overflow(s->count, bits / 8, &n) ? -1 : n;
}

size_t kl_shape_leaf_count(const kl_shape *s) {
  return s->dtype == KILN_TUPLE ? (size_t)s->count : 1;
}

// Elements without leaves share their number with the next one: the last that begins at or before i has it.
uint32_t kl_shape_element_of_leaf(const kl_shape *s, size_t i) {
  uint32_t lo = 0, hi = s->nelems;
  while (hi - lo > 1) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (s->first_leaf[mid] <= i)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

const kl_shape *kl_shape_leaf(const kl_shape *s, size_t i) {
  while (s->dtype == KILN_TUPLE) {
    uint32_t k = kl_shape_element_of_leaf(s, i);
    i -= s->first_leaf[k];
    s = s->elems[k];
  }
  return s;
}

const kl_shape **kl_shape_leaves(const kl_shape *s, const kl_shape **out) {
  if (s->dtype != KILN_TUPLE) {
    *out = s;
    return out + 1;
  }
  for (uint32_t k = 0; k < s->nelems; k++) out = kl_shape_leaves(s->elems[k], out);
  return out;
}

// --- text ---------------------------------------------------------------------------------------------------------

static void put_list(kl_sb *b, const int64_t *v, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (i) kl_sb_putc(b, ',');
    if (v[i] == KL_TILE_COMBINE)
      kl_sb_putc(b, '*');
    else
      kl_sb_i64(b, v[i]);
  }
}

static void put_field(kl_sb *b, const char *key, const char *text) {
  if (text) kl_sbf(b, "%s(%s)", key, text);
}

static void put_number(kl_sb *b, const char *key, int64_t v, int64_t none) {
  if (v != none) kl_sbf(b, "%s(%lld)", key, (long long)v);
}

static void put_layout(kl_sb *b, const kl_layout *l) {
  kl_sb_putc(b, '{');
  put_list(b, l->minor_to_major, l->rank);
  size_t colon = b->n;
  kl_sb_putc(b, ':');
  put_field(b, "D", l->dim_level_types);
  if (l->ntiles) kl_sb_putc(b, 'T');
  for (uint32_t i = 0; i < l->ntiles; i++) {
    kl_sb_putc(b, '(');
    put_list(b, l->tiles[i].dims, l->tiles[i].n);
    kl_sb_putc(b, ')');
  }
  put_number(b, "L", l->tail_padding, 1);
  put_field(b, "#", l->index_type ? kl_info(l->index_type)->name : NULL);
  put_field(b, "*", l->pointer_type ? kl_info(l->pointer_type)->name : NULL);
  put_number(b, "E", l->element_bits, 0);
  put_number(b, "S", l->memory_space, 0);
  put_field(b, "SC", l->split_configs);
  put_field(b, "P", l->physical_shape);
  put_number(b, "M", l->metadata_prefix, 0);
  put_field(b, "SP", l->sparse);
  if (b->n == colon + 1) b->p[--b->n] = 0;
  kl_sb_putc(b, '}');
}

static void put_array(kl_sb *b, const kl_shape *s, bool with_layout) {
  kl_sb_puts(b, kl_info(s->dtype)->name);
  kl_sb_putc(b, '[');
  for (uint32_t i = 0; i < s->rank; i++) {
    if (i) kl_sb_putc(b, ',');
    bool unknown = s->dims[i] == KL_DIM_UNKNOWN;
    if (s->dynamic && s->dynamic[i]) kl_sb_puts(b, unknown ? "?" : "<=");
    if (!unknown) kl_sb_i64(b, s->dims[i]);
  }
  kl_sb_putc(b, ']');
  if (with_layout && s->layout.present) put_layout(b, &s->layout);
}

// Stops early with "..." once `limit` bytes are written.
static void put_shape(kl_sb *b, const kl_shape *s, bool with_layout, size_t limit) {
  if (s->dtype != KILN_TUPLE && !s->nelems) {
    put_array(b, s, with_layout);
    return;
  }
  kl_sb_puts(b, s->dtype == KILN_TUPLE ? "(" : "b(");
  for (uint32_t i = 0; i < s->nelems; i++) {
    if (i) kl_sb_puts(b, ", ");
    if (b->n >= limit) {
      kl_sb_puts(b, "...");
      break;
    }
    put_shape(b, s->elems[i], with_layout, limit);
  }
  kl_sb_putc(b, ')');
}

void kl_shape_print(kl_sb *b, const kl_shape *s, bool with_layout) {
  put_shape(b, s, with_layout, SIZE_MAX);
}

void kl_layout_print(kl_sb *b, const kl_shape *s) {
  int64_t order[KILN_MAX_RANK];
  for (uint32_t i = 0; i < s->rank; i++) order[i] = (int64_t)s->rank - 1 - i;
  put_layout(b, s->layout.present ? &s->layout
                                  : &(kl_layout){.rank = s->rank, .minor_to_major = order, .tail_padding = 1});
}

const char *kl_shape_text(kl_arena *a, const kl_shape *s) {
  kl_sb b;
  kl_sb_init(&b, a->cx);
  put_shape(&b, s, false, 200);
  const char *text = kl_str_dup(a, (kl_str){b.p, b.n}).p;
  kl_sb_free(&b);
  return text;
}
