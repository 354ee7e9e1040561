// Entries of tensors as files have them: the public API, and pairs of .npy files.
#include "ir/files/list.h"
#include "ir/sparse/handle/layout.h"

enum { MOST_RANK = 128 };

kiln_status kl_list_open(kl_ctx *cx, size_t rank, kiln_dtype dtype, int64_t room, kiln_sparse_list **out) {
  kiln_sparse_list *l = kl_alloc(cx, sizeof *l);
  size_t n = (size_t)room, size;
  *out = l;
  l->cx = cx;
  kl_context_hold(cx);
  kl_arena_init(&l->arena, cx);
  l->bytes = kl_info(dtype)->bytes;
  l->sizes = KL_NEW_N(&l->arena, int64_t, rank + 1);
  l->info = (kiln_sparse_list_info){rank, l->sizes, dtype, {.struct_size = sizeof(kiln_sparse_entries)}};
  if (n > (size_t)1 << 48 || __builtin_mul_overflow(n, (rank + 1) * sizeof(int64_t) + l->bytes, &size))
    return kl_out_of_memory(cx, SIZE_MAX, "entries");
  l->coordinates = kl_arena_try_alloc(&l->arena, n * rank * sizeof(int64_t) + 1);
  l->values = kl_arena_try_alloc(&l->arena, n * l->bytes + 1);
  if (!l->coordinates || !l->values) return kl_out_of_memory(cx, size, "entries");
  l->info.entries.coordinates = l->coordinates;
  l->info.entries.values = l->values;
  return KILN_OK;
}

const kiln_sparse_list_info *kiln_sparse_list_describe(const kiln_sparse_list *l) {
  return l ? &l->info : NULL;
}

void kiln_sparse_list_destroy(kiln_sparse_list **l) {
  kiln_sparse_list *own = l ? *l : NULL;
  if (!own) return;
  kl_ctx *cx = own->cx;
  kl_arena_free(&own->arena);
  kl_free(cx, own, sizeof *own);
  kl_context_release(cx);
  *l = NULL;
}

// --- stored tensors -------------------------------------------------------------------------------------------------

static kiln_status count_entry(void *user, const int64_t *coordinates, const void *value) {
  ++*(int64_t *)user;
  return KILN_OK;
}

static kiln_status add_entry(void *user, const int64_t *coordinates, const void *value) {
  kiln_sparse_list *l = user;
  int64_t k = kl_list_add(l);
  if (l->info.rank) memcpy(l->coordinates + k * (int64_t)l->info.rank, coordinates, l->info.rank * sizeof *coordinates);
  memcpy(l->values + (size_t)k * l->bytes, value, l->bytes);
  return KILN_OK;
}

kiln_status kiln_sparse_list_create(kiln_context *cx, const kiln_sparse_layout *l, const kiln_sparse_array *arrays,
                                    kiln_sparse_list **out) {
  int64_t n = 0;
  KL_CLEAR(out);
  KL_EXPECT(cx, l, arrays, out);
  KL_TRY(kiln_sparse_walk(cx, l, arrays, count_entry, &n));
  kiln_sparse_list_info info = {l->type.rank, l->type.sizes, l->type.element.dtype};
  kiln_status status = kl_list_open(cx, info.rank, info.dtype, n, out);
  if (status == KILN_OK && info.rank) memcpy((*out)->sizes, info.sizes, info.rank * sizeof(int64_t));
  if (status == KILN_OK) status = kiln_sparse_walk(cx, l, arrays, add_entry, *out);
  if (status != KILN_OK) kiln_sparse_list_destroy(out);
  return status;
}

// --- arrays of .npy files -------------------------------------------------------------------------------------------

size_t kl_npy_item(const char *dtype) {
  size_t n = 0, unit = dtype[0] && dtype[1] == 'U' ? 4 : 1;
  if (!dtype[0] || !dtype[1]) return 0;
  for (const char *p = dtype + 2; *p; p++) {
    if (*p < '0' || *p > '9' || n > 4096) return 0;
    n = n * 10 + (size_t)(*p - '0');
  }
  return n * unit;
}

// From the first dimension fastest to the last.
static void transpose(const kl_npy_array *x, size_t item, const unsigned char *from, unsigned char *to) {
  int64_t at[KILN_MAX_RANK] = {0};
  for (int64_t i = 0; i < x->count; i++) {
    int64_t place = 0;
    for (uint32_t d = 0; d < x->header.rank; d++) place = place * x->header.dims[d] + at[d];
    memcpy(to + (size_t)place * item, from + (size_t)i * item, item);
    for (uint32_t d = 0; d < x->header.rank && ++at[d] == x->header.dims[d]; d++) at[d] = 0;
  }
}

kiln_status kl_npy_read(kl_ctx *cx, kl_arena *a, const char *name, const char *member, const void *bytes, size_t size,
                        size_t item, kl_npy_array *out) {
  char error[256];
  kiln_npy_header *h = &out->header;
  size_t begin = kiln_npy_header_size(bytes, size, error, sizeof error);
  if (!begin || !kiln_npy_header_read(bytes, size, h, error, sizeof error))
    return kl_invalid(cx, KL_NOWHERE, "%s: %s%s", name, member, error);
  if (!item) item = kl_npy_item(h->dtype);
  if (!item) return kl_invalid(cx, KL_NOWHERE, "%s: %sexpected elements of one size, found %s", name, member, h->dtype);
  out->count = 1;
  for (uint32_t d = 0; d < h->rank; d++)
    if (h->dims[d] == 0) out->count = 0;
  for (uint32_t d = 0; d < h->rank && out->count; d++)
    if (__builtin_mul_overflow(out->count, h->dims[d], &out->count)) out->count = INT64_MAX;
  if ((uint64_t)out->count != (size - begin) / item || (size - begin) % item)
    return kl_invalid(cx, KL_NOWHERE, "%s: %sexpected %lld elements of %zu bytes, found %zu bytes", name, member,
                      (long long)out->count, item, size - begin);
  out->data = (const unsigned char *)bytes + begin;
  if (!h->fortran || h->rank < 2) return KILN_OK;
  unsigned char *data = kl_arena_try_alloc(a, size - begin + 1);
  if (!data) return kl_out_of_memory(cx, size - begin, "elements");
  transpose(out, item, out->data, data);
  out->data = data;
  return KILN_OK;
}

kiln_status kl_npy_type(kl_ctx *cx, const char *name, const char *member, const kl_npy_array *x, kiln_dtype wanted,
                        kiln_dtype *out) {
  *out = wanted ? wanted : kiln_npy_dtype_parse(x->header.dtype);
  if (*out && kiln_npy_dtype_holds(x->header.dtype, *out)) return KILN_OK;
  return kl_invalid(cx, KL_NOWHERE, "%s: %sexpected %s, found %s", name, member,
                    wanted ? kl_info(wanted)->name : "a type of numbers", x->header.dtype);
}

// --- pairs of .npy files --------------------------------------------------------------------------------------------

static int64_t whole_at(kiln_dtype t, const unsigned char *data, int64_t i) {
  uint64_t v = kl_element_get(t, data, i, 0);
  unsigned bits = kl_info(t)->bits;
  if (kl_is_signed(t) && bits < 64 && v >> (bits - 1)) v |= ~0ull << bits;
  return (int64_t)v; // a larger one is refused as negative
}

static kiln_status check_pair(kl_ctx *cx, const kl_npy_array *c, const char *cname, const kl_npy_array *v,
                              const char *vname, const int64_t *sizes, size_t rank) {
  if (c->header.rank != 2 || c->header.dims[1] > MOST_RANK)
    return kl_invalid(cx, KL_NOWHERE, "%s: expected coordinates [entries][dimensions], at most %d of these", cname,
                      MOST_RANK);
  if (v->header.rank != 1 || v->count != c->header.dims[0])
    return kl_invalid(cx, KL_NOWHERE, "%s: expected %lld values, one for each entry", vname,
                      (long long)c->header.dims[0]);
  if (sizes && rank != (size_t)c->header.dims[1])
    return kl_invalid(cx, KL_NOWHERE, "%s: expected coordinates of %zu dimensions, found %lld", cname, rank,
                      (long long)c->header.dims[1]);
  return KILN_OK;
}

static kiln_status fill_pair(const char *name, const kl_npy_array *c, kiln_dtype whole, const kl_npy_array *v,
                             const int64_t *sizes, kiln_sparse_list *l) {
  size_t rank = l->info.rank;
  l->info.entries.count = v->count;
  for (int64_t i = 0; i < v->count * (int64_t)rank; i++) {
    int64_t x = whole_at(whole, c->data, i), d = i % (int64_t)rank;
    if (x < 0 || x == INT64_MAX || (sizes && x >= sizes[d]))
      return kl_invalid(l->cx, KL_NOWHERE, "%s: entry %lld, dimension %lld: expected 0 to %lld, found %lld", name,
                        (long long)(i / (int64_t)rank), (long long)d, sizes ? (long long)sizes[d] - 1 : INT64_MAX - 1,
                        (long long)x);
    if (!sizes && x >= l->sizes[d]) l->sizes[d] = x + 1;
    l->coordinates[i] = x;
  }
  if (sizes && rank) memcpy(l->sizes, sizes, rank * sizeof *sizes);
  if (v->count) memcpy(l->values, v->data, (size_t)v->count * l->bytes);
  return KILN_OK;
}

static kiln_status read_pair(kl_ctx *cx, kl_arena *a, const kiln_sparse_npy *coordinates, const kiln_sparse_npy *values,
                             const int64_t *sizes, size_t rank, kiln_dtype dtype, kiln_sparse_list **out) {
  kl_npy_array c, v;
  kiln_dtype t, whole;
  KL_TRY(kl_npy_read(cx, a, coordinates->name, "", coordinates->bytes, coordinates->size, 0, &c));
  KL_TRY(kl_npy_read(cx, a, values->name, "", values->bytes, values->size, 0, &v));
  KL_TRY(check_pair(cx, &c, coordinates->name, &v, values->name, sizes, rank));
  KL_TRY(kl_npy_type(cx, coordinates->name, "", &c, KILN_DTYPE_NONE, &whole));
  if (!kl_is_int(whole))
    return kl_invalid(cx, KL_NOWHERE, "%s: expected integers, found %s", coordinates->name, c.header.dtype);
  KL_TRY(kl_npy_type(cx, values->name, "", &v, dtype, &t));
  KL_TRY(kl_list_open(cx, (size_t)c.header.dims[1], t, v.count, out));
  return fill_pair(coordinates->name, &c, whole, &v, sizes, *out);
}

kiln_status kiln_sparse_list_read_npy(kiln_context *cx, const kiln_sparse_npy *coordinates,
                                      const kiln_sparse_npy *values, const int64_t *sizes, size_t rank,
                                      kiln_dtype dtype, kiln_sparse_list **out) {
  kl_arena a;
  KL_CLEAR(out);
  KL_EXPECT(cx, coordinates, values, out);
  KL_EXPECT(cx, coordinates->name, coordinates->bytes, values->name, values->bytes);
  kl_arena_init(&a, cx);
  kiln_status status = read_pair(cx, &a, coordinates, values, sizes, rank, dtype, out);
  if (status != KILN_OK) kiln_sparse_list_destroy(out);
  kl_arena_free(&a);
  return status;
}

static void put_npy(kl_ctx *cx, const kiln_array_type *t, const void *data, char **out, size_t *size) {
  unsigned char header[KILN_NPY_WRITTEN];
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_put(&b, (kl_str){(const char *)header, kiln_npy_header_write(t, header)});
  kl_sb_put(&b, (kl_str){data, (size_t)kiln_npy_bytes(t)});
  *out = kl_sb_take(&b, size);
}

kiln_status kiln_sparse_list_write_npy(kiln_context *cx, const kiln_sparse_list *l, char **coordinates,
                                       size_t *coordinates_size, char **values, size_t *values_size) {
  KL_CLEAR(coordinates);
  KL_CLEAR(values);
  KL_EXPECT(cx, l, coordinates, coordinates_size, values, values_size);
  int64_t n = l->info.entries.count;
  kiln_array_type ct = {.dtype = KILN_S64, .rank = 2, .dims = {n, (int64_t)l->info.rank}};
  kiln_array_type vt = {.dtype = l->info.dtype, .rank = 1, .dims = {n}};
  put_npy(cx, &ct, l->coordinates, coordinates, coordinates_size);
  put_npy(cx, &vt, l->values, values, values_size);
  return KILN_OK;
}

// --- one file -------------------------------------------------------------------------------------------------------

static bool is_kind(kiln_sparse_file k) {
  return k >= KILN_SPARSE_MATRIX_MARKET && k <= KILN_SPARSE_NPZ_CSC;
}

kiln_status kiln_sparse_list_read(kiln_context *cx, kiln_sparse_file kind, const char *name, const void *bytes,
                                  size_t size, kiln_dtype dtype, kiln_sparse_list **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, name, bytes, out);
  if (!is_kind(kind)) return kl_invalid(cx, KL_NOWHERE, "expected a kind of file, found %d", (int)kind);
  if (dtype && (dtype >= KILN_DTYPE_COUNT || !kl_is_array_dtype(dtype)))
    return kl_invalid(cx, KL_NOWHERE, "expected the type of an array's elements, found %d", (int)dtype);
  if (kind != KILN_SPARSE_MATRIX_MARKET) return kl_npz_read(cx, name, bytes, size, dtype, out);
  kl_source src = {name, {bytes, size}};
  kl_read_source(cx, &src);
  kiln_status status = kl_matrix_market_read(cx, &src, dtype, out);
  kl_read_source(cx, NULL);
  return status;
}

kiln_status kiln_sparse_list_write(kiln_context *cx, const kiln_sparse_list *l, kiln_sparse_file kind, char **bytes,
                                   size_t *size) {
  KL_CLEAR(bytes);
  KL_EXPECT(cx, l, bytes, size);
  if (!is_kind(kind)) return kl_invalid(cx, KL_NOWHERE, "expected a kind of file, found %d", (int)kind);
  if (kind == KILN_SPARSE_MATRIX_MARKET) {
    kl_sb b;
    kl_sb_init(&b, cx);
    kiln_status status = kl_matrix_market_write(cx, l, &b);
    if (status == KILN_OK)
      *bytes = kl_sb_take(&b, size);
    else
      kl_sb_free(&b);
    return status;
  }
  kl_zip_writer w;
  kl_zip_begin(&w, cx);
  kiln_status status = kl_npz_write(cx, l, kind, &w);
  kl_zip_end(&w, status == KILN_OK ? bytes : NULL, size);
  return status;
}
