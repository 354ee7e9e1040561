// Files of sparse tensors: a byte says of which kind, of pairs of .npy files two more where the second begins. What is
// read is within its sizes, is written as every kind that has such tensors, and is as many entries when it is read
// again.
#include <kiln/npy.h>
#include <kiln/sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(kiln_context *cx, bool holds, const char *what) {
  if (holds) return;
  size_t n = kiln_diagnostics_count(cx);
  fprintf(stderr, "%s: %s\n", what, n ? kiln_diagnostics_get(cx, n - 1)->text : "");
  abort();
}

static void check_within(kiln_context *cx, const kiln_sparse_list_info *info) {
  for (int64_t k = 0; k < info->entries.count; k++)
    for (size_t d = 0; d < info->rank; d++) {
      int64_t at = info->entries.coordinates[k * (int64_t)info->rank + (int64_t)d];
      expect(cx, at >= 0 && at < info->sizes[d], "an entry outside the tensor");
    }
}

static void check_again(kiln_context *cx, const kiln_sparse_list *l, kiln_sparse_file kind) {
  const kiln_sparse_list_info *info = kiln_sparse_list_describe(l);
  kiln_sparse_list *again = NULL;
  char *bytes = NULL;
  size_t size;
  bool compressed = kind == KILN_SPARSE_NPZ_CSR || kind == KILN_SPARSE_NPZ_CSC;
  for (size_t d = 0; d < info->rank; d++)
    if (compressed && info->sizes[d] > 1 << 16) return; // an array as long as that
  if (kiln_sparse_list_write(cx, l, kind, &bytes, &size) == KILN_OK) {
    expect(cx, kiln_sparse_list_read(cx, kind, "again", bytes, size, info->dtype, &again) == KILN_OK,
           "what was written is refused");
    int64_t n = kiln_sparse_list_describe(again)->entries.count;
    bool fewer = compressed || info->dtype == KILN_PRED; // sums, and what is false in a pattern
    expect(cx, fewer ? n <= info->entries.count : n == info->entries.count, "other entries than were written");
    kiln_text_free(cx, bytes, size);
  }
  kiln_sparse_list_destroy(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 3) return 0;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_sparse_list *l = NULL;
  kiln_status s;
  size_t n = size - 1;
  if (data[0] % 3 == 2) {
    n = size - 3;
    size_t first = (data[1] | (size_t)data[2] << 8) % (n + 1);
    kiln_sparse_npy c = {"coordinates", data + 3, first}, v = {"values", data + 3 + first, n - first};
    s = kiln_sparse_list_read_npy(cx, &c, &v, NULL, 0, KILN_DTYPE_NONE, &l);
  } else {
    kiln_sparse_file kind = data[0] % 3 ? KILN_SPARSE_NPZ_COO : KILN_SPARSE_MATRIX_MARKET;
    s = kiln_sparse_list_read(cx, kind, "file", data + 1, n, data[0] & 64 ? KILN_F32 : KILN_DTYPE_NONE, &l);
  }
  expect(cx, (s == KILN_OK) == (l != NULL), "status and list");
  expect(cx, s == KILN_OK || kiln_diagnostics_count(cx) > 0, "no finding");
  if (l) {
    check_within(cx, kiln_sparse_list_describe(l));
    for (int kind = 0; kind <= KILN_SPARSE_NPZ_CSC; kind++) check_again(cx, l, (kiln_sparse_file)kind);
  }
  kiln_sparse_list_destroy(&l);
  kiln_context_destroy(&cx);
  return 0;
}
