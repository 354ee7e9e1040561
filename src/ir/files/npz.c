// SciPy's .npz archives of sparse arrays: format.npy names the format, shape.npy has the sizes, data.npy the values,
// and others what the format needs. Compressed rows, columns and blocks are read as stored tensors, whose rules say
// what may be wrong with them.
#include "ir/files/list.h"

#include <stdio.h>

enum { MOST_RANK = 128 };

typedef struct reader {
  kl_ctx *cx;
  kl_arena *arena;
  const char *name;
  kl_zip zip;
  kl_npy_array data;
  kiln_dtype dtype; // of values
  size_t rank;
  int64_t sizes[MOST_RANK];
} reader;

// --- members --------------------------------------------------------------------------------------------------------

static kiln_status member(reader *r, const char *name, kl_npy_array *out) {
  const unsigned char *bytes;
  char label[64];
  const kl_zip_member *m = kl_zip_find(&r->zip, name);
  if (!m) return kl_invalid(r->cx, KL_NOWHERE, "%s: expected an array %s, found none", r->name, name);
  KL_TRY(kl_zip_read(&r->zip, m, &bytes));
  snprintf(label, sizeof label, "%s: ", name);
  return kl_npy_read(r->cx, r->arena, r->name, label, bytes, m->size, 0, out);
}

typedef struct wholes {
  const char *name;
  kl_npy_array x;
  kiln_dtype t;
} wholes;

static kiln_status member_wholes(reader *r, const char *name, uint32_t rank, wholes *out) {
  out->name = name;
  KL_TRY(member(r, name, &out->x));
  out->t = kiln_npy_dtype_parse(out->x.header.dtype);
  if (kl_is_int(out->t) && out->x.header.rank == rank) return KILN_OK;
  return kl_invalid(r->cx, KL_NOWHERE, "%s: %s: expected integers of %u dimensions, found %s of %u", r->name, name,
                    rank, out->x.header.dtype, out->x.header.rank);
}

static int64_t whole(const wholes *w, int64_t i) {
  uint64_t v = kl_element_get(w->t, w->x.data, i, 0);
  unsigned bits = kl_info(w->t)->bits;
  if (kl_is_signed(w->t) && bits < 64 && v >> (bits - 1)) v |= ~0ull << bits;
  return (int64_t)v;
}

static kiln_status outside(const reader *r, const wholes *w, int64_t i, int64_t least, int64_t most) {
  return kl_invalid(r->cx, KL_NOWHERE, "%s: %s: element %lld: expected %lld to %lld, found %lld", r->name, w->name,
                    (long long)i, (long long)least, (long long)most, (long long)whole(w, i));
}

static kiln_status counted(const reader *r, const wholes *w, int64_t n) {
  if (w->x.count == n) return KILN_OK;
  return kl_invalid(r->cx, KL_NOWHERE, "%s: %s: expected %lld elements, found %lld", r->name, w->name, (long long)n,
                    (long long)w->x.count);
}

// A text of one-byte or four-byte characters.
static kiln_status read_format(reader *r, char out[8]) {
  kl_npy_array x;
  KL_TRY(member(r, "format.npy", &x));
  const char *t = x.header.dtype;
  bool wide = t[1] == 'U';
  size_t n = kl_npy_item(t) / (wide ? 4 : 1);
  memset(out, 0, 8);
  if (x.count != 1 || (t[1] != 'S' && !wide) || n > 7)
    return kl_invalid(r->cx, KL_NOWHERE, "%s: format.npy: expected the name of a format, found %s", r->name, t);
  for (size_t i = 0; i < n; i++) out[i] = (char)x.data[wide ? 4 * i : i];
  return KILN_OK;
}

static kiln_status read_shape(reader *r) {
  wholes w;
  KL_TRY(member_wholes(r, "shape.npy", 1, &w));
  if (w.x.count > MOST_RANK)
    return kl_invalid(r->cx, KL_NOWHERE, "%s: shape.npy: expected at most %d dimensions, found %lld", r->name,
                      MOST_RANK, (long long)w.x.count);
  r->rank = (size_t)w.x.count;
  for (int64_t d = 0; d < w.x.count; d++) {
    r->sizes[d] = whole(&w, d);
    if (r->sizes[d] < 0) return outside(r, &w, d, 0, INT64_MAX);
  }
  return KILN_OK;
}

static kiln_status is_matrix(const reader *r, uint32_t data_rank, const char *format) {
  if (r->rank == 2 && r->data.header.rank == data_rank) return KILN_OK;
  return kl_invalid(r->cx, KL_NOWHERE, "%s: expected a matrix and data of %u dimensions in format %s, found %zu and %u",
                    r->name, data_rank, format, r->rank, r->data.header.rank);
}

static kiln_status open_list(const reader *r, int64_t room, kiln_sparse_list **out) {
  kiln_status status = kl_list_open(r->cx, r->rank, r->dtype, room, out);
  if (status == KILN_OK && r->rank) memcpy((*out)->sizes, r->sizes, r->rank * sizeof *r->sizes);
  return status;
}

// --- coordinates ----------------------------------------------------------------------------------------------------

// Dimensions d, d + 1 ... by an array of a row for each.
static kiln_status put_coordinates(const reader *r, const wholes *w, uint32_t d, uint32_t rows, kiln_sparse_list *l) {
  int64_t n = r->data.count;
  KL_TRY(counted(r, w, n * rows));
  for (uint32_t k = 0; k < rows; k++)
    for (int64_t i = 0; i < n; i++) {
      int64_t x = whole(w, k * n + i), size = r->sizes[d + k];
      if (x < 0 || x >= size) return outside(r, w, k * n + i, 0, size - 1);
      l->coordinates[i * (int64_t)r->rank + d + k] = x;
    }
  return KILN_OK;
}

static kiln_status read_coo(reader *r, kiln_sparse_list **out) {
  wholes w;
  if (r->data.header.rank != 1)
    return kl_invalid(r->cx, KL_NOWHERE, "%s: data.npy: expected values of one dimension", r->name);
  KL_TRY(open_list(r, r->data.count, out));
  if (kl_zip_find(&r->zip, "coords.npy")) {
    KL_TRY(member_wholes(r, "coords.npy", 2, &w));
    KL_TRY(put_coordinates(r, &w, 0, (uint32_t)r->rank, *out));
  } else {
    KL_TRY(is_matrix(r, 1, "coo"));
    KL_TRY(member_wholes(r, "row.npy", 1, &w));
    KL_TRY(put_coordinates(r, &w, 0, 1, *out));
    KL_TRY(member_wholes(r, "col.npy", 1, &w));
    KL_TRY(put_coordinates(r, &w, 1, 1, *out));
  }
  (*out)->info.entries.count = r->data.count;
  if (r->data.count) memcpy((*out)->values, r->data.data, (size_t)r->data.count * (*out)->bytes);
  return KILN_OK;
}

// --- compressed rows, columns, blocks -------------------------------------------------------------------------------

static kiln_status add_entry(void *user, const int64_t *at, const void *value) {
  kiln_sparse_list *l = user;
  int64_t k = kl_list_add(l);
  memcpy(l->coordinates + 2 * k, at, 2 * sizeof *at);
  memcpy(l->values + (size_t)k * l->bytes, value, l->bytes);
  return KILN_OK;
}

// SciPy's own arrays are those of a stored tensor, but that it has no order among the coordinates of a row.
static kiln_status walk_compressed(reader *r, const char *levels, kiln_sparse_list *l) {
  wholes pos, crd;
  KL_TRY(member_wholes(r, "indptr.npy", 1, &pos));
  KL_TRY(member_wholes(r, "indices.npy", 1, &crd));
  for (int64_t i = 0; i < crd.x.count; i++)
    if (whole(&crd, i) < 0) return outside(r, &crd, i, 0, INT64_MAX);
  const char *text = kl_strf(r->arena, "map = (i, j) -> (%s), posWidth = %u, crdWidth = %u", levels,
                             kl_info(pos.t)->bits, kl_info(crd.t)->bits);
  kiln_encoding *e = NULL;
  kiln_sparse_layout *layout = NULL;
  kiln_sparse_array arrays[3] = {
      {(void *)pos.x.data, pos.x.count}, {(void *)crd.x.data, crd.x.count}, {NULL, r->data.count}};
  size_t size = (size_t)r->data.count * l->bytes;
  kiln_status status = kiln_encoding_parse(r->cx, r->name, text, strlen(text), NULL, &e);
  if (status == KILN_OK) status = kiln_sparse_layout_create(r->cx, e, r->dtype, r->sizes, &layout);
  arrays[2].data = (void *)r->data.data;
  if (kl_info(r->dtype)->bits < 8) { // a byte each in the file
    unsigned bits = kl_info(r->dtype)->bits;
    unsigned char *packed = kl_arena_try_alloc(r->arena, size + 1);
    if (!packed) status = kl_out_of_memory(r->cx, size, "values");
    for (size_t i = 0; packed && i < size; i++)
      packed[i * bits / 8] |= (unsigned char)((r->data.data[i] & ((1u << bits) - 1)) << (i * bits % 8));
    arrays[2].data = packed;
  }
  if (status == KILN_OK) status = kiln_sparse_walk(r->cx, layout, arrays, add_entry, l);
  kiln_sparse_layout_destroy(&layout);
  kiln_encoding_destroy(&e);
  return status == KILN_E_INVALID
             ? kl_fail(r->cx, status, KL_NOWHERE, "%s: indptr, indices and data do not fit together", r->name)
             : status;
}

static kiln_status read_compressed(reader *r, const char *format, kiln_sparse_list **out) {
  bool blocks = strcmp(format, "bsr") == 0;
  KL_TRY(is_matrix(r, blocks ? 3 : 1, format));
  int64_t rows = r->data.header.dims[1], columns = r->data.header.dims[2];
  if (blocks && (rows <= 0 || columns <= 0 || r->sizes[0] % rows || r->sizes[1] % columns))
    return kl_invalid(r->cx, KL_NOWHERE, "%s: data.npy: expected blocks that divide %lld x %lld, found %lld x %lld",
                      r->name, (long long)r->sizes[0], (long long)r->sizes[1], (long long)rows, (long long)columns);
  KL_TRY(open_list(r, r->data.count, out));
  if (!blocks)
    return walk_compressed(r,
                           format[2] == 'r' ? "i : dense, j : compressed(nonunique, nonordered)"
                                            : "j : dense, i : compressed(nonunique, nonordered)",
                           *out);
  // Where a block has one row or column, there is no level for its place within the block.
  const char *row = rows > 1 ? kl_strf(r->arena, " floordiv %lld", (long long)rows) : "";
  const char *column = columns > 1 ? kl_strf(r->arena, " floordiv %lld", (long long)columns) : "";
  const char *rest = rows > 1 ? kl_strf(r->arena, ", i mod %lld : dense", (long long)rows) : "";
  const char *last = columns > 1 ? kl_strf(r->arena, ", j mod %lld : dense", (long long)columns) : "";
  const char *levels =
      kl_strf(r->arena, "i%s : dense, j%s : compressed(nonunique, nonordered)%s%s", row, column, rest, last);
  return walk_compressed(r, levels, *out);
}

// --- diagonals ------------------------------------------------------------------------------------------------------

// data[k][j] is the element of column j on diagonal offsets[k].
static kiln_status read_dia(reader *r, kiln_sparse_list **out) {
  wholes w;
  KL_TRY(is_matrix(r, 2, "dia"));
  KL_TRY(member_wholes(r, "offsets.npy", 1, &w));
  KL_TRY(counted(r, &w, r->data.header.dims[0]));
  KL_TRY(open_list(r, r->data.count, out));
  kiln_sparse_list *l = *out;
  int64_t n = r->data.header.dims[1];
  for (int64_t k = 0; k < w.x.count; k++)
    for (int64_t j = 0; j < n && j < r->sizes[1]; j++) {
      int64_t i;
      if (__builtin_sub_overflow(j, whole(&w, k), &i) || i < 0 || i >= r->sizes[0]) continue;
      int64_t e = kl_list_add(l);
      l->coordinates[2 * e] = i;
      l->coordinates[2 * e + 1] = j;
      memcpy(l->values + (size_t)e * l->bytes, r->data.data + (size_t)(k * n + j) * l->bytes, l->bytes);
    }
  return KILN_OK;
}

// --- the whole ------------------------------------------------------------------------------------------------------

static kiln_status read_all(reader *r, const void *bytes, size_t size, kiln_dtype dtype, kiln_sparse_list **out) {
  char format[8];
  KL_TRY(kl_zip_open(r->cx, r->arena, r->name, bytes, size, &r->zip));
  KL_TRY(read_format(r, format));
  KL_TRY(read_shape(r));
  KL_TRY(member(r, "data.npy", &r->data));
  KL_TRY(kl_npy_type(r->cx, r->name, "data.npy: ", &r->data, dtype, &r->dtype));
  if (strcmp(format, "coo") == 0) return read_coo(r, out);
  if (strcmp(format, "dia") == 0) return read_dia(r, out);
  if (strcmp(format, "csr") == 0 || strcmp(format, "csc") == 0 || strcmp(format, "bsr") == 0)
    return read_compressed(r, format, out);
  return kl_invalid(r->cx, KL_NOWHERE, "%s: format.npy: expected csr, csc, bsr, coo or dia, found another", r->name);
}

kiln_status kl_npz_read(kl_ctx *cx, const char *name, const void *bytes, size_t size, kiln_dtype dtype,
                        kiln_sparse_list **out) {
  kl_arena a;
  reader r = {.cx = cx, .arena = &a, .name = name};
  kl_arena_init(&a, cx);
  kiln_status status = read_all(&r, bytes, size, dtype, out);
  if (status != KILN_OK) kiln_sparse_list_destroy(out);
  kl_arena_free(&a);
  return status;
}

// --- writing --------------------------------------------------------------------------------------------------------

static kiln_status put(kl_zip_writer *w, const char *name, kiln_dtype t, uint32_t rank, const int64_t *dims,
                       const void *data) {
  unsigned char header[KILN_NPY_WRITTEN];
  kiln_array_type type = {.dtype = t, .rank = rank};
  if (rank) memcpy(type.dims, dims, rank * sizeof *dims);
  return kl_zip_add(w, name, header, kiln_npy_header_write(&type, header), data, (size_t)kiln_npy_bytes(&type));
}

static kiln_status put_head(const kiln_sparse_list *l, const char *format, kl_zip_writer *w) {
  static const char name[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '|S3', 'fortran_order': False, 'shape': (), }";
  char header[128];
  memset(header, ' ', sizeof header);
  memcpy(header, name, sizeof name - 1);
  header[127] = '\n';
  KL_TRY(kl_zip_add(w, "format.npy", header, sizeof header, format, 3));
  return put(w, "shape.npy", KILN_S64, 1, &(int64_t){(int64_t)l->info.rank}, l->sizes);
}

static kiln_status write_coo(kl_ctx *cx, kl_arena *a, const kiln_sparse_list *l, kl_zip_writer *w) {
  int64_t n = l->info.entries.count, rank = (int64_t)l->info.rank;
  int64_t *rows = kl_arena_try_alloc(a, (size_t)(n * rank) * sizeof *rows + 1);
  if (!rows) return kl_out_of_memory(cx, (size_t)(n * rank) * sizeof *rows, "coordinates");
  for (int64_t i = 0; i < n; i++)
    for (int64_t d = 0; d < rank; d++) rows[d * n + i] = l->coordinates[i * rank + d];
  if (rank != 2) {
    KL_TRY(put(w, "coords.npy", KILN_S64, 2, (int64_t[]){rank, n}, rows));
    KL_TRY(put(w, "_is_array.npy", KILN_PRED, 0, NULL, "\1"));
  } else {
    KL_TRY(put(w, "row.npy", KILN_S64, 1, &n, rows));
    KL_TRY(put(w, "col.npy", KILN_S64, 1, &n, rows + n));
  }
  return put(w, "data.npy", l->info.dtype, 1, &n, l->values);
}

static kiln_status pack(kl_ctx *cx, kl_arena *a, const kiln_sparse_list *l, const kiln_sparse_layout *layout,
                        kiln_sparse_array arrays[3]) {
  kiln_sparse_buffer b;
  KL_TRY(kiln_sparse_pack(cx, layout, &l->info.entries, arrays));
  for (size_t i = 0; i < 3 && kiln_sparse_layout_buffer_at(layout, i, &b); i++) {
    size_t size = ((size_t)arrays[i].count * b.bits + 7) / 8 + 1;
    arrays[i].data = kl_arena_try_alloc(a, size);
    if (!arrays[i].data) return kl_out_of_memory(cx, size, "arrays");
  }
  return kiln_sparse_pack(cx, layout, &l->info.entries, arrays);
}

static kiln_status write_compressed(kl_ctx *cx, kl_arena *a, const kiln_sparse_list *l, bool rows, kl_zip_writer *w) {
  bool small = l->sizes[0] <= INT32_MAX && l->sizes[1] <= INT32_MAX && l->info.entries.count <= INT32_MAX;
  const char *text = kl_strf(a, "map = (i, j) -> (%s : dense, %s : compressed), posWidth = %d, crdWidth = %d",
                             rows ? "i" : "j", rows ? "j" : "i", small ? 32 : 64, small ? 32 : 64);
  kiln_dtype whole = small ? KILN_S32 : KILN_S64;
  kiln_encoding *e = NULL;
  kiln_sparse_layout *layout = NULL;
  kiln_sparse_array arrays[3] = {{0}};
  kiln_status status = kiln_encoding_parse(cx, "encoding", text, strlen(text), NULL, &e);
  if (status == KILN_OK) status = kiln_sparse_layout_create(cx, e, l->info.dtype, l->sizes, &layout);
  if (status == KILN_OK) status = pack(cx, a, l, layout, arrays);
  if (status == KILN_OK) status = put(w, "indices.npy", whole, 1, &arrays[1].count, arrays[1].data);
  if (status == KILN_OK) status = put(w, "indptr.npy", whole, 1, &arrays[0].count, arrays[0].data);
  if (status == KILN_OK) status = put(w, "data.npy", l->info.dtype, 1, &arrays[2].count, arrays[2].data);
  kiln_sparse_layout_destroy(&layout);
  kiln_encoding_destroy(&e);
  return status;
}

kiln_status kl_npz_write(kl_ctx *cx, const kiln_sparse_list *l, kiln_sparse_file kind, kl_zip_writer *w) {
  static const char *const names[] = {
      [KILN_SPARSE_NPZ_COO] = "coo", [KILN_SPARSE_NPZ_CSR] = "csr", [KILN_SPARSE_NPZ_CSC] = "csc"};
  kl_arena a;
  if (kl_info(l->info.dtype)->bits < 8 || kiln_npy_dtype(l->info.dtype)[1] == 'V')
    return kl_unsupported(cx, KL_NOWHERE, "SciPy has no arrays of %s", kl_info(l->info.dtype)->name);
  if (kind != KILN_SPARSE_NPZ_COO && l->info.rank != 2)
    return kl_unsupported(cx, KL_NOWHERE,
                          "files of compressed rows or columns hold matrices, not tensors of %zu dimensions",
                          l->info.rank);
  KL_TRY(put_head(l, names[kind], w));
  kl_arena_init(&a, cx);
  kiln_status status = kind == KILN_SPARSE_NPZ_COO ? write_coo(cx, &a, l, w)
                                                   : write_compressed(cx, &a, l, kind == KILN_SPARSE_NPZ_CSR, w);
  kl_arena_free(&a);
  return status;
}
