// Files of sparse tensors: Matrix Market texts, SciPy's archives as SciPy writes them, pairs of .npy files; written,
// read again and the same; each corrupted, refused with its place.
#include "support/context.h"

#include <kiln/kiln.h>
#include <stdio.h>

static char *read_bytes(const char *name, size_t *size) {
  char path[512];
  snprintf(path, sizeof path, KL_TESTS "/ir/data/sparse/%s", name);
  FILE *f = fopen(path, "rb");
  char *bytes = malloc(1 << 16);
  EXPECT(f != NULL, "no %s", path);
  *size = fread(bytes, 1, 1 << 16, f);
  fclose(f);
  return bytes;
}

static kiln_status read_text(const char *text, kiln_dtype t, kiln_sparse_list **out) {
  return kiln_sparse_list_read(cx, KILN_SPARSE_MATRIX_MARKET, "m.mtx", text, strlen(text), t, out);
}

// Row-major sums of entries.
static void dense_of(const kiln_sparse_list *l, double *out, size_t most) {
  const kiln_sparse_list_info *info = kiln_sparse_list_describe(l);
  memset(out, 0, most * sizeof *out);
  for (int64_t k = 0; k < info->entries.count; k++) {
    size_t at = 0;
    double v = 0;
    for (size_t d = 0; d < info->rank; d++) {
      int64_t c = info->entries.coordinates[k * (int64_t)info->rank + (int64_t)d];
      EXPECT(c >= 0 && c < info->sizes[d], "entry %d, dimension %d: %d", (int)k, (int)d, (int)c);
      at = at * (size_t)info->sizes[d] + (size_t)c;
    }
    EXPECT(at < most, "a larger tensor");
    switch (info->dtype) {
    case KILN_F32: v = ((const float *)info->entries.values)[k]; break;
    case KILN_F64: v = ((const double *)info->entries.values)[k]; break;
    case KILN_S64: v = (double)((const int64_t *)info->entries.values)[k]; break;
    case KILN_S8: v = ((const int8_t *)info->entries.values)[k]; break;
    case KILN_PRED: v = ((const uint8_t *)info->entries.values)[k]; break;
    case KILN_C128:
      v = ((const double *)info->entries.values)[2 * k] + 1000 * ((const double *)info->entries.values)[2 * k + 1];
      break;
    default: ck_abort_msg("another type");
    }
    out[at] += v;
  }
}

static void expect_dense(const kiln_sparse_list *l, const double *want, size_t n, const char *what) {
  double have[64];
  dense_of(l, have, n);
  for (size_t i = 0; i < n; i++)
    EXPECT(have[i] == want[i], "%s: element %d is %g, not %g", what, (int)i, have[i], want[i]);
}

// --- Matrix Market --------------------------------------------------------------------------------------------------

static const struct {
  const char *text;
  kiln_dtype as;
  int n;
  double dense[9];
} texts[] = {
    {"%%MatrixMarket matrix coordinate real general\n% a comment\n\n2 3 3\n1 1 1.5\n2 3 -2e0\n 1  3\t4 \n",
     KILN_DTYPE_NONE,
     6,
     {1.5, 0, 4, 0, 0, -2}},
    {"%%MATRIXMARKET Matrix Coordinate Integer General\r\n2 2 2\r\n1 2 +7\r\n1 2 1\r\n",
     KILN_DTYPE_NONE,
     4,
     {0, 8, 0, 0}},
    {"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
     KILN_DTYPE_NONE,
     9,
     {0, 1, 0, 1, 0, 0, 0, 0, 1}},
    {"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1", KILN_F32, 4, {0, 0, 1, 0}},
    {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 -3\n", KILN_F32, 4, {0, 3, -3, 0}},
    {"%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 127\n", KILN_S8, 4, {0, -127, 127, 0}},
    {"%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 5 0\n2 1 1 2\n",
     KILN_DTYPE_NONE,
     4,
     {5, 1 - 2000., 1 + 2000., 0}},
    {"%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n0\n5\n6\n", KILN_DTYPE_NONE, 6, {1, 3, 5, 2, 0, 6}},
    {"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n", KILN_DTYPE_NONE, 4, {1, 2, 2, 3}},
    {"%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n",
     KILN_DTYPE_NONE,
     9,
     {0, -1, -2, 1, 0, -3, 2, 3, 0}},
    {"%%MatrixMarket matrix coordinate real general\n0 3 0\n", KILN_DTYPE_NONE, 0, {0}},
};

START_TEST(texts_read) {
  kiln_sparse_list *l = NULL, *again = NULL;
  char *bytes;
  size_t size;
  EXPECT(read_text(texts[_i].text, texts[_i].as, &l) == KILN_OK, "%s", last_finding());
  expect_dense(l, texts[_i].dense, (size_t)texts[_i].n, texts[_i].text);
  EXPECT(kiln_sparse_list_write(cx, l, KILN_SPARSE_MATRIX_MARKET, &bytes, &size) == KILN_OK, "%s", last_finding());
  EXPECT(read_text(bytes, KILN_DTYPE_NONE, &again) == KILN_OK || texts[_i].as, "%s\n%s", last_finding(), bytes);
  if (!again) EXPECT(read_text(bytes, texts[_i].as, &again) == KILN_OK, "%s\n%s", last_finding(), bytes);
  expect_dense(again, texts[_i].dense, (size_t)texts[_i].n, bytes);
  kiln_text_free(cx, bytes, size);
  kiln_sparse_list_destroy(&again);
  kiln_sparse_list_destroy(&l);
}
END_TEST

#define HEAD "%%MatrixMarket matrix coordinate real general\n"
static const struct {
  const char *text, *finding;
  kiln_dtype as;
} wrong[] = {
    {"", "m.mtx:1:1: error: expected %%MatrixMarket, found the end of the text", KILN_DTYPE_NONE},
    {"%%MatrixMarket tensor", "m.mtx:1:16: error: expected matrix, found 'tensor'", KILN_DTYPE_NONE},
    {"%%MatrixMarket matrix sparse", "expected coordinate or array, found 'sparse'", KILN_DTYPE_NONE},
    {"%%MatrixMarket matrix array pattern general", "expected an array's", KILN_DTYPE_NONE},
    {"%%MatrixMarket matrix coordinate real hermitian", "the symmetry of what is not complex", KILN_DTYPE_NONE},
    {"%%MatrixMarket matrix coordinate real general x\n", "m.mtx:1:47: error: expected the end of the line, found 'x'",
     KILN_DTYPE_NONE},
    {"%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n",
     "m.mtx:2:3: error: expected as many columns as rows, found '3'", KILN_DTYPE_NONE},
    {HEAD "2 3\n", "m.mtx:2:4: error: expected the number of entries, found the end of the line", KILN_DTYPE_NONE},
    {HEAD "2 3 -1\n", "expected the number of entries, found '-1'", KILN_DTYPE_NONE},
    {HEAD "2 3 1000000000000\n", "m.mtx:2:5: error: expected 1000000000000 entries, found a text that is too short",
     KILN_DTYPE_NONE},
    {HEAD "2 3 2\n1 1 1.000\n", "m.mtx:4:1: error: expected 2 entries, found 1", KILN_DTYPE_NONE},
    {HEAD "2 3 1\n1 1 1\n2 2 2\n", "m.mtx:4:1: error: expected 1 entries, found more", KILN_DTYPE_NONE},
    {HEAD "2 3 1\n0 1 1\n", "m.mtx:3:1: error: expected a row, 1 to 2, found 0", KILN_DTYPE_NONE},
    {HEAD "2 3 1\n1 4 1\n", "m.mtx:3:3: error: expected a column, 1 to 3, found 4", KILN_DTYPE_NONE},
    {HEAD "2 3 1\n1 1\n", "m.mtx:3:4: error: expected a number, found the end of the line", KILN_DTYPE_NONE},
    {HEAD "2 3 1\n1 1 1x\n", "m.mtx:3:5: error: '1x'", KILN_DTYPE_NONE},
    {HEAD "2 3 1\n1 1 1 0\n", "m.mtx:3:7: error: expected the end of the line, found '0'", KILN_DTYPE_NONE},
    {HEAD "2 3 1\n1 1 300\n", "out of range for s8", KILN_S8},
    {"%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 -128\n", "out of range for s8", KILN_S8},
    {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n",
     "m.mtx:3:3: error: expected a column that is not the row", KILN_DTYPE_NONE},
    {"%%MatrixMarket matrix coordinate complex general\n2 2 1\n2 2 1 1\n", "expected a complex type", KILN_F32},
    {"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3.0000\n",
     "m.mtx:6:1: error: expected 4 elements, found fewer", KILN_DTYPE_NONE},
};

START_TEST(wrong_texts) {
  kiln_sparse_list *l = (kiln_sparse_list *)&l;
  EXPECT(read_text(wrong[_i].text, wrong[_i].as, &l) == KILN_E_INVALID, "taken: %s", wrong[_i].text);
  EXPECT(l == NULL && strstr(last_finding(), wrong[_i].finding), "%s\n%s", wrong[_i].text, last_finding());
}
END_TEST

// --- SciPy's archives -----------------------------------------------------------------------------------------------

static const char *const archives[] = {"csr.npz", "csc.npz", "bsr.npz", "dia.npz", "coo.npz", "stored.npz"};

static void read_dense(double *out) {
  size_t size;
  char *text = read_bytes("dense.txt", &size), *p = text;
  text[size] = 0;
  for (int i = 0; i < 48; i++) out[i] = strtod(p, &p);
  free(text);
}

static kiln_sparse_list *read_archive(const char *name) {
  kiln_sparse_list *l = NULL;
  size_t size;
  char *bytes = read_bytes(name, &size);
  EXPECT(kiln_sparse_list_read(cx, KILN_SPARSE_NPZ_COO, name, bytes, size, KILN_DTYPE_NONE, &l) == KILN_OK, "%s",
         last_finding());
  free(bytes);
  return l;
}

// Every kind of file that is written gives the same matrix.
START_TEST(archives_read) {
  double dense[48];
  kiln_sparse_list *l = read_archive(archives[_i]), *again = NULL;
  const kiln_sparse_list_info *info = kiln_sparse_list_describe(l);
  read_dense(dense);
  EXPECT(info->rank == 2 && info->sizes[0] == 6 && info->sizes[1] == 8 && info->dtype == KILN_F32, "another type");
  expect_dense(l, dense, 48, archives[_i]);
  for (int kind = KILN_SPARSE_MATRIX_MARKET; kind <= KILN_SPARSE_NPZ_CSC; kind++) {
    char *bytes;
    size_t size;
    EXPECT(kiln_sparse_list_write(cx, l, (kiln_sparse_file)kind, &bytes, &size) == KILN_OK, "%s", last_finding());
    EXPECT(kiln_sparse_list_read(cx, (kiln_sparse_file)kind, "again", bytes, size, KILN_F32, &again) == KILN_OK || kind,
           "%s", last_finding());
    if (again) expect_dense(again, dense, 48, "again");
    kiln_text_free(cx, bytes, size);
    kiln_sparse_list_destroy(&again);
  }
  kiln_sparse_list_destroy(&l);
}
END_TEST

START_TEST(tensor_of_three_dimensions) {
  double dense[24] = {[1 * 2 + 0] = 0};
  dense[(0 * 4 + 3) * 2 + 1] = 1;
  dense[(2 * 4 + 1) * 2 + 1] = 2;
  dense[(1 * 4 + 0) * 2 + 0] = 3.5;
  kiln_sparse_list *l = read_archive("coo3.npz"), *again = NULL;
  char *bytes, *values;
  size_t size, values_size;
  expect_dense(l, dense, 24, "coo3");
  EXPECT(kiln_sparse_list_write(cx, l, KILN_SPARSE_NPZ_COO, &bytes, &size) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_sparse_list_read(cx, KILN_SPARSE_NPZ_CSR, "again", bytes, size, KILN_DTYPE_NONE, &again) == KILN_OK, "%s",
         last_finding());
  expect_dense(again, dense, 24, "again");
  kiln_text_free(cx, bytes, size);
  kiln_sparse_list_destroy(&again);
  EXPECT(kiln_sparse_list_write(cx, l, KILN_SPARSE_NPZ_CSR, &bytes, &size) == KILN_E_UNSUPPORTED && !bytes, "written");
  EXPECT(kiln_sparse_list_write_npy(cx, l, &bytes, &size, &values, &values_size) == KILN_OK, "%s", last_finding());
  kiln_sparse_npy c = {"c.npy", bytes, size}, v = {"v.npy", values, values_size};
  EXPECT(kiln_sparse_list_read_npy(cx, &c, &v, (int64_t[]){3, 4, 2}, 3, KILN_F32, &again) == KILN_OK, "%s",
         last_finding());
  expect_dense(again, dense, 24, "pair");
  kiln_sparse_list_destroy(&again);
  EXPECT(kiln_sparse_list_read_npy(cx, &c, &v, NULL, 0, KILN_DTYPE_NONE, &again) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_sparse_list_describe(again)->sizes[1] == 4, "the least sizes");
  kiln_sparse_list_destroy(&again);
  EXPECT(kiln_sparse_list_read_npy(cx, &c, &v, (int64_t[]){3, 3, 2}, 3, KILN_F32, &again) == KILN_E_INVALID &&
             strstr(last_finding(), "c.npy: entry 0, dimension 1: expected 0 to 2, found 3"),
         "%s", last_finding());
  EXPECT(kiln_sparse_list_read_npy(cx, &c, &v, (int64_t[]){3, 3}, 2, KILN_F32, &again) == KILN_E_INVALID, "%s",
         last_finding());
  EXPECT(kiln_sparse_list_read_npy(cx, &v, &v, NULL, 0, KILN_F32, &again) == KILN_E_INVALID &&
             strstr(last_finding(), "v.npy: expected coordinates"),
         "%s", last_finding());
  EXPECT(kiln_sparse_list_read_npy(cx, &c, &v, NULL, 0, KILN_S32, &again) == KILN_E_INVALID &&
             strstr(last_finding(), "v.npy: expected s32, found <f4"),
         "%s", last_finding());
  v.size--;
  EXPECT(kiln_sparse_list_read_npy(cx, &c, &v, NULL, 0, KILN_F32, &again) == KILN_E_INVALID &&
             strstr(last_finding(), "v.npy: expected 3 elements of 4 bytes, found 11 bytes"),
         "%s", last_finding());
  kiln_text_free(cx, bytes, size);
  kiln_text_free(cx, values, values_size);
  kiln_sparse_list_destroy(&l);
}
END_TEST

// Every byte that is changed, and every place where the file ends early: refused, or what it changed is none of the
// matrix's numbers (names and dates that nobody reads).
START_TEST(corrupted_archives) {
  double dense[48], have[48];
  size_t size;
  char *bytes = read_bytes(archives[_i], &size);
  read_dense(dense);
  for (size_t at = 0; at < 2 * size; at++) {
    char *copy = malloc(size);
    kiln_sparse_list *l = NULL;
    size_t n = at < size ? size : at - size;
    memcpy(copy, bytes, size);
    if (at < size) copy[at] = (char)(copy[at] ^ (1 << at % 8));
    kiln_status s = kiln_sparse_list_read(cx, KILN_SPARSE_NPZ_COO, "a.npz", copy, n, KILN_F32, &l);
    EXPECT(s == KILN_OK || (s == KILN_E_INVALID && strstr(last_finding(), "a.npz: ")), "byte %d: %s", (int)at,
           last_finding());
    if (s == KILN_OK) {
      EXPECT(n == size, "taken: cut at %d", (int)n);
      dense_of(l, have, 48);
      EXPECT(memcmp(dense, have, sizeof dense) == 0, "taken: byte %d", (int)at);
    }
    kiln_sparse_list_destroy(&l);
    kiln_diagnostics_clear(cx);
    free(copy);
  }
  free(bytes);
}
END_TEST

START_TEST(what_is_asked_for_in_vain) {
  kiln_sparse_list *l = NULL;
  char *bytes = (char *)&l;
  size_t size;
  EXPECT(kiln_sparse_list_read(cx, (kiln_sparse_file)9, "x", "", 0, KILN_F32, &l) == KILN_E_INVALID, "a kind");
  EXPECT(kiln_sparse_list_read(cx, KILN_SPARSE_NPZ_COO, "x", "", 0, KILN_TUPLE, &l) == KILN_E_INVALID, "a type");
  EXPECT(kiln_sparse_list_read(cx, KILN_SPARSE_NPZ_COO, "x", "", 0, KILN_F32, &l) == KILN_E_INVALID, "nothing");
  EXPECT(read_text(HEAD "2 2 1\n1 2 1.5\n", KILN_BF16, &l) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_sparse_list_write(cx, l, (kiln_sparse_file)-1, &bytes, &size) == KILN_E_INVALID && !bytes, "a kind");
  EXPECT(kiln_sparse_list_write(cx, l, KILN_SPARSE_NPZ_COO, &bytes, &size) == KILN_E_UNSUPPORTED, "bf16");
  EXPECT(strstr(last_finding(), "SciPy has no arrays of bf16"), "%s", last_finding());
  kiln_sparse_list_destroy(&l);
  kiln_sparse_list_destroy(&l);
  kiln_sparse_list_destroy(NULL);
  ck_assert_ptr_null(kiln_sparse_list_describe(NULL));
}
END_TEST

int main(void) {
  return RUN_TESTS("sparse_files", EACH(make_context, drop_context), {texts_read, sizeof texts / sizeof *texts},
                   {wrong_texts, sizeof wrong / sizeof *wrong}, {archives_read, 6}, {tensor_of_three_dimensions},
                   {corrupted_archives, 6}, {what_is_asked_for_in_vain});
}
