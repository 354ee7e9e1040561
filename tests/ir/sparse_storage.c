// Stored sparse tensors: worked examples array by array; every format of a list on many shapes, packed, checked,
// unpacked and converted to every other; arrays with one thing wrong each, refused by the check that is for it.
#include "ir/dtype.h"
#include "support/context.h"

#include <kiln/kiln.h>
#include <stdio.h>

enum { MOST = 12 };

typedef struct stored {
  kiln_sparse_layout *l;
  kiln_sparse_array arrays[MOST];
  kiln_sparse_buffer buffers[MOST];
  size_t n;
} stored;

static stored open(const char *fields, kiln_dtype t, const int64_t *sizes) {
  stored s = {0};
  kiln_encoding *e = NULL;
  EXPECT(kiln_encoding_parse(cx, "test", fields, strlen(fields), NULL, &e) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_sparse_layout_create(cx, e, t, sizes, &s.l) == KILN_OK, "%s\n%s", fields, last_finding());
  kiln_encoding_destroy(&e);
  while (kiln_sparse_layout_buffer_at(s.l, s.n, &s.buffers[s.n])) s.n++;
  return s;
}

// Buffers of exactly the size, so that the sanitizers see what goes beyond, and full of other numbers.
static void allocate(stored *s) {
  for (size_t i = 0; i < s->n; i++) {
    size_t n = (size_t)(s->arrays[i].count * s->buffers[i].bits + 7) / 8;
    s->arrays[i].data = malloc(n + !n);
    memset(s->arrays[i].data, 0xa5, n);
  }
}

static void close(stored *s) {
  for (size_t i = 0; i < s->n; i++) free(s->arrays[i].data);
  kiln_sparse_layout_destroy(&s->l);
}

static kiln_status pack(stored *s, const void *dense) {
  kiln_status status = kiln_sparse_pack_dense(cx, s->l, dense, s->arrays);
  if (status != KILN_OK) return status;
  allocate(s);
  return kiln_sparse_pack_dense(cx, s->l, dense, s->arrays);
}

static uint64_t element(const stored *s, size_t i, int64_t k) {
  unsigned bits = s->buffers[i].bits;
  uint64_t v = 0;
  if (bits < 8) return ((unsigned char *)s->arrays[i].data)[k * bits / 8] >> (k * bits % 8) & ((1u << bits) - 1);
  memcpy(&v, (char *)s->arrays[i].data + k * bits / 8, bits / 8);
  return v;
}

static void put_arrays(const stored *s, char *out, size_t size) {
  size_t at = 0;
  *out = 0;
  for (size_t i = 0; i < s->n; i++) {
    at += (size_t)snprintf(out + at, size - at, "%s%c%zu", i ? " | " : "", "pcv"[s->buffers[i].role],
                           s -> buffers[i].level);
    for (int64_t k = 0; k < s->arrays[i].count; k++) {
      uint64_t v = element(s, i, k);
      if (s->buffers[i].role == KILN_SPARSE_VALUES) v = (uint64_t)kl_float_decode(s->buffers[i].dtype, v);
      at += (size_t)snprintf(out + at, size - at, " %llu", (unsigned long long)v);
    }
  }
}

// --- worked examples ------------------------------------------------------------------------------------------------

#define A "1004 0000 0200 5063"
#define B "120040 030005 006700 008000"
#define O "12005 03000 00607"
#define N "10020304 05607800 00090000 10200034"
#define T "100002 000030 450600"
static const struct {
  const char *fields;
  int64_t sizes[3];
  const char *digits, *arrays;
} worked[] = {
    {"map = (i, j) -> (i : dense, j : compressed)", {4, 4}, A, "p1 0 2 2 3 6 | c1 0 3 1 0 2 3 | v1 1 4 2 5 6 3"},
    {"map = (i, j) -> (i : compressed(nonunique), j : singleton)",
     {4, 4},
     A,
     "p0 0 6 | c0 0 0 0 3 2 1 3 0 3 2 3 3 | v1 1 4 2 5 6 3"},
    {"map = (i, j) -> (i : compressed(nonunique), j : singleton(soa))",
     {4, 4},
     A,
     "p0 0 6 | c0 0 0 2 3 3 3 | c1 0 3 1 0 2 3 | v1 1 4 2 5 6 3"},
    {"map = (i, j) -> (j : dense, i : compressed)", {4, 4}, A, "p1 0 2 3 4 6 | c1 0 3 2 3 0 3 | v1 1 5 2 6 4 3"},
    {"map = (i, j) -> (i : compressed, j : compressed)",
     {4, 4},
     A,
     "p0 0 3 | c0 0 2 3 | p1 0 2 3 6 | c1 0 3 1 0 2 3 | v1 1 4 2 5 6 3"},
    {"map = (i, j) -> (j : compressed, i : compressed), posWidth = 32, crdWidth = 8",
     {4, 4},
     A,
     "p0 0 4 | c0 0 1 2 3 | p1 0 2 3 4 6 | c1 0 3 2 3 0 3 | v1 1 5 2 6 4 3"},
    {"map = (i, j) -> (i : compressed, j : dense)", {4, 4}, A, "p0 0 3 | c0 0 2 3 | v1 1 0 0 4 0 2 0 0 5 0 6 3"},
    {"map = (i, j) -> (i : dense, j : loose_compressed)",
     {4, 4},
     A,
     "p1 0 2 2 2 2 3 3 6 | c1 0 3 1 0 2 3 | v1 1 4 2 5 6 3"},
    {"map = [c](i, j) -> (c*3*i : dense, i : dense, j : compressed)",
     {4, 4},
     A,
     "p2 0 1 1 2 3 4 4 4 5 5 5 5 6 | c2 0 1 0 3 2 3 | v2 1 2 5 4 6 3"},
    {"map = (i) -> (i : compressed)", {8}, "07009003", "p0 0 3 | c0 1 4 7 | v0 7 9 3"},
    {"map = (i, j) -> (i floordiv 2 : dense, j floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)",
     {4, 6},
     B,
     "p1 0 2 3 | c1 0 2 1 | v3 1 2 0 3 4 0 0 5 6 7 8 0"},
    {"map = (i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense)",
     {4, 6},
     B,
     "p1 0 2 4 | c1 0 1 0 1 | v3 1 2 0 0 3 0 0 4 0 0 0 5 0 0 6 0 0 8 7 0 0 0 0 0"},
    {"map = (i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, j mod 3 : dense, i mod 2 : dense)",
     {4, 6},
     B,
     "p1 0 2 4 | c1 0 1 0 1 | v3 1 0 2 3 0 0 0 0 4 0 0 5 0 0 0 0 6 8 7 0 0 0 0 0"},
    {"map = (i, j) -> (i floordiv 2 : compressed, j floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)",
     {4, 6},
     B,
     "p0 0 2 | c0 0 1 | p1 0 2 3 | c1 0 2 1 | v3 1 2 0 3 4 0 0 5 6 7 8 0"},
    {"map = (i, j) -> (j floordiv 2 : dense, i floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)",
     {4, 6},
     B,
     "p1 0 1 2 3 | c1 0 1 0 | v3 1 2 0 3 6 7 8 0 4 0 0 5"},
    {"map = (i, j) -> (i floordiv 2 : dense, j floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)",
     {3, 5},
     O,
     "p1 0 2 4 | c1 0 2 1 2 | v3 1 2 0 3 5 0 0 0 6 0 0 0 7 0 0 0"},
    {"map = (i, j, k) -> (i : dense, j : loose_compressed(nonunique), k : singleton)",
     {3, 2, 3},
     T,
     "p1 0 2 2 3 3 6 | c1 0 0 1 2 1 1 0 0 0 1 1 0 | v2 1 2 3 4 5 6"},
    {"map = (i, j, k) -> (i : dense, j : compressed(nonunique), k : singleton(soa))",
     {3, 2, 3},
     T,
     "p1 0 2 3 6 | c1 0 1 1 0 0 1 | c2 0 2 1 0 1 0 | v2 1 2 3 4 5 6"},
    {"map = (i, j, k) -> (i : compressed, j : compressed, k : compressed)",
     {3, 2, 3},
     T,
     "p0 0 3 | c0 0 1 2 | p1 0 2 3 5 | c1 0 1 1 0 1 | p2 0 1 2 3 5 6 | c2 0 2 1 0 1 0 | v2 1 2 3 4 5 6"},
    {"map = (b, i, j) -> (b : batch, i : dense, j : compressed)",
     {3, 2, 3},
     T,
     "p2 0 1 2 0 0 1 0 2 3 | c2 0 2 0 1 0 0 0 1 0 | v2 1 2 0 3 0 0 4 5 6"},
    {"map = (i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4]), crdWidth = 2",
     {4, 8},
     N,
     "c2 0 3 1 3 1 2 0 1 0 3 0 1 0 2 2 3 | v2 1 2 3 4 5 6 7 8 0 9 0 0 1 2 3 4"},
    {"map = (i, j) -> (j - i : dense, i : dense)", {2, 2}, "12 34", "v1 0 3 1 4 2 0"},
};

static int64_t read_digits(const char *text, float *out) {
  int64_t n = 0;
  for (; *text; text++)
    if (*text != ' ') out[n++] = (float)(*text - '0');
  return n;
}

START_TEST(worked_examples) {
  float dense[64], back[64];
  char text[2000];
  int64_t n = read_digits(worked[_i].digits, dense);
  stored s = open(worked[_i].fields, KILN_F32, worked[_i].sizes);
  EXPECT(pack(&s, dense) == KILN_OK, "%s\n%s", worked[_i].fields, last_finding());
  put_arrays(&s, text, sizeof text);
  EXPECT(strcmp(text, worked[_i].arrays) == 0, "%s\n%s\n%s", worked[_i].fields, worked[_i].arrays, text);
  EXPECT(kiln_sparse_verify(cx, s.l, s.arrays, KILN_SPARSE_CHECK_ORDER) == KILN_OK, "%s", last_finding());
  EXPECT(kiln_sparse_unpack(cx, s.l, s.arrays, back) == KILN_OK, "%s", last_finding());
  EXPECT(memcmp(dense, back, (size_t)n * sizeof *dense) == 0, "%s: another tensor", worked[_i].fields);
  close(&s);
}
END_TEST

// --- every format, to every other -----------------------------------------------------------------------------------

static const char *const formats[] = {
    "map = (i, j) -> (i : dense, j : dense)",
    "map = (i, j) -> (j : dense, i : dense), implicitVal = 3",
    "map = (i, j) -> (i : dense, j : compressed), posWidth = 16, crdWidth = 8",
    "map = (i, j) -> (i : dense, j : compressed(nonunique, nonordered)), crdWidth = 4",
    "map = (i, j) -> (j : dense, i : compressed), implicitVal = 1",
    "map = (i, j) -> (i : compressed, j : compressed), posWidth = 32, crdWidth = 32",
    "map = (i, j) -> (j : compressed, i : compressed)",
    "map = (i, j) -> (i : compressed, j : dense)",
    "map = (i, j) -> (i : dense, j : loose_compressed)",
    "map = (i, j) -> (i : loose_compressed, j : loose_compressed)",
    "map = (i, j) -> (i : compressed(nonunique), j : singleton)",
    "map = (i, j) -> (j : compressed(nonunique), i : singleton(soa, nonunique))",
    "map = (i, j) -> (i : loose_compressed(nonunique), j : singleton(nonordered))",
    "map = (i, j) -> (i : batch, j : compressed)",
    "map = (i, j) -> (i : batch, j : batch)",
    "map = (i, j) -> (i floordiv 2 : batch, j : compressed, i mod 2 : dense)",
    "map = (i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense)",
    "map = (i, j) -> (j floordiv 2 : dense, i floordiv 2 : compressed, i mod 2 : compressed, j mod 2 : dense)",
    ("map = (i, j) -> (i floordiv 3 : compressed(nonunique), j floordiv 2 : singleton, i mod 3 : dense, j mod 2 : "
     "dense)"),
    "map = (i, j) -> (i floordiv 2 : dense, j : compressed, i mod 2 : dense)",
    "map = (i, j) -> (i floordiv 4 : dense, (i mod 4) floordiv 2 : compressed, i mod 2 : dense, j : compressed)",
    "map = (i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[4, 4]), crdWidth = 2",
    "map = (i, j) -> (i : dense, j : structured[3, 3])",
    "map = (i, j) -> (i : compressed, j floordiv 4 : compressed, j mod 4 : structured[4, 4])",
    "map = (i, j) -> (i : structured[2, 2], j : dense)",
    "map = (i, j) -> (j - i : compressed, i : dense)",
    "map = (i, j) -> (i + j : dense, j : compressed)",
    "map = (i, j) -> (40 - i : compressed, j + 5 : compressed)",
    "map = [c](i, j) -> (c*20*i : dense, i : dense, j : compressed)",
    "map = [c](i, j) -> (c*20*j : compressed, j : compressed, i : compressed)",
};
static const int64_t shapes[][2] = {{4, 6}, {1, 1}, {0, 3}, {3, 0}, {7, 5}, {1, 9}, {13, 1}, {5, 16}};
enum { FORMATS = KL_COUNT(formats), SHAPES = KL_COUNT(shapes) };

static uint32_t drawn = 1;
static uint32_t draw(uint32_t n) {
  drawn = drawn * 1664525u + 1013904223u;
  return (drawn >> 8) % n;
}

// About a third of the elements, with negative zeros and NaN among them.
static void fill(uint16_t *dense, int64_t n, uint16_t implicit) {
  static const uint16_t special[] = {0x8000, 0x7e00, 0xfc00, 1};
  for (int64_t i = 0; i < n; i++)
    dense[i] = draw(3) ? implicit : draw(5) ? (uint16_t)(0x3c00 + draw(900)) : special[draw(4)];
}

static uint16_t implicit_of(const char *fields) {
  return strstr(fields, "implicitVal = 3") ? 0x4200 : strstr(fields, "implicitVal = 1") ? 0x3c00 : 0;
}

static void check_conversion(const stored *s, const char *from, const char *to, const int64_t *sizes,
                             const uint16_t *dense, int64_t n) {
  uint16_t back[256];
  stored t = open(to, KILN_F16, sizes);
  EXPECT(kiln_sparse_convert(cx, s->l, s->arrays, t.l, t.arrays) == KILN_OK, "%s to %s\n%s", from, to, last_finding());
  allocate(&t);
  EXPECT(kiln_sparse_convert(cx, s->l, s->arrays, t.l, t.arrays) == KILN_OK, "%s to %s\n%s", from, to, last_finding());
  EXPECT(kiln_sparse_verify(cx, t.l, t.arrays, KILN_SPARSE_CHECK_ORDER) == KILN_OK, "%s\n%s", to, last_finding());
  EXPECT(kiln_sparse_unpack(cx, t.l, t.arrays, back) == KILN_OK, "%s\n%s", to, last_finding());
  EXPECT(memcmp(dense, back, (size_t)n * 2) == 0, "%s to %s of %d x %d: another tensor", from, to, (int)sizes[0],
         (int)sizes[1]);
  close(&t);
}

START_TEST(every_format_to_every_other) {
  uint16_t dense[256];
  const char *from = formats[_i];
  for (int k = 0; k < SHAPES; k++) {
    int64_t n = shapes[k][0] * shapes[k][1];
    stored s = open(from, KILN_F16, shapes[k]);
    fill(dense, n, implicit_of(from));
    EXPECT(pack(&s, dense) == KILN_OK, "%s\n%s", from, last_finding());
    EXPECT(kiln_sparse_verify(cx, s.l, s.arrays, KILN_SPARSE_CHECK_ORDER) == KILN_OK, "%s\n%s", from, last_finding());
    for (int to = 0; to < FORMATS; to++)
      if (implicit_of(formats[to]) == implicit_of(from)) check_conversion(&s, from, formats[to], shapes[k], dense, n);
    close(&s);
  }
}
END_TEST

// --- entries, and what is refused -----------------------------------------------------------------------------------

START_TEST(entries_that_come_again_are_summed) {
  static const int64_t at[] = {0, 1, 2, 2, 0, 1, 1, 0, 0, 1};
  static const int8_t values[] = {1, 8, 2, 4, 127};
  kiln_sparse_entries in = {sizeof in, 5, at, values};
  int8_t back[9];
  for (int i = 0; i < FORMATS; i++) {
    if (implicit_of(formats[i])) continue;
    stored s = open(formats[i], KILN_S8, (int64_t[]){3, 3});
    EXPECT(kiln_sparse_pack(cx, s.l, &in, s.arrays) == KILN_OK, "%s\n%s", formats[i], last_finding());
    allocate(&s);
    EXPECT(kiln_sparse_pack(cx, s.l, &in, s.arrays) == KILN_OK, "%s\n%s", formats[i], last_finding());
    EXPECT(kiln_sparse_unpack(cx, s.l, s.arrays, back) == KILN_OK, "%s\n%s", formats[i], last_finding());
    EXPECT(memcmp(back, (int8_t[]){0, -126, 0, 4, 0, 0, 0, 0, 8}, 9) == 0, "%s", formats[i]);
    close(&s);
  }
}
END_TEST

static const struct {
  const char *fields;
  int64_t sizes[2], at[6], count;
  const char *message;
} refused[] = {
    {"map = (i, j) -> (i : dense, j : compressed), crdWidth = 8",
     {2, 400},
     {0, 300},
     1,
     "level 1: expected a coordinate of 8 bits, found 300"},
    {"map = (i, j) -> (i : dense, j : compressed)",
     {2, 4},
     {0, 4},
     1,
     "entry 0, dimension 1: expected 0 to 3, found 4"},
    {"map = (i, j) -> (i : dense, j : compressed)",
     {2, 4},
     {-1, 0},
     1,
     "entry 0, dimension 0: expected 0 to 1, found -1"},
    {"map = (i, j) -> (i : dense, j : structured[1, 4])",
     {2, 4},
     {0, 1, 0, 2},
     2,
     "level 1: expected at most 1 of 4 consecutive entries, found 2"},
    {"map = [c](i, j) -> (c*1*i : dense, i : dense, j : compressed)", {2, 4}, {1, 1, 1, 2}, 2, "expected a size"},
    {"map = [c](i, j) -> (c*2*i : dense, i : dense, j : compressed)",
     {2, 4},
     {1, 1, 1, 2, 1, 3},
     3,
     "level 0: expected at most 2 entries of coordinate 1, found more"},
    {"map = (i, j) -> (i : compressed, j : singleton)",
     {2, 4},
     {1, 1, 1, 2},
     2,
     "level 1: expected one coordinate for each entry"},
    {"map = (i, j) -> (i : dense, j : dense)", {1ll << 40, 1ll << 40}, {0, 0}, 1, "64 bits"},
    {"map = (i, j) -> (i : dense, j : compressed), explicitVal = 2",
     {2, 4},
     {0, 0},
     1,
     "element (0, 0): expected the value 2 : i64 of explicitVal"},
};

START_TEST(refused_entries) {
  static const int64_t values[] = {1, 1, 1};
  kiln_sparse_entries in = {sizeof in, refused[_i].count, refused[_i].at, values};
  stored s = open(refused[_i].fields, KILN_S64, refused[_i].sizes);
  kiln_status status = kiln_sparse_pack(cx, s.l, &in, s.arrays);
  if (status == KILN_OK) { // a width shows when arrays are written
    allocate(&s);
    status = kiln_sparse_pack(cx, s.l, &in, s.arrays);
  }
  EXPECT(status != KILN_OK, "%s: stored", refused[_i].fields);
  EXPECT(strstr(last_finding(), refused[_i].message) || strstr(refused[_i].message, "a size"), "%s", last_finding());
  for (size_t i = 0; i < s.n; i++) free(s.arrays[i].data), s.arrays[i].data = NULL;
  close(&s);
}
END_TEST

// Sizes beyond all memory cost nothing until there are arrays.
START_TEST(large_sizes_are_measured) {
  static const int64_t at[] = {1ll << 50, 3, (1ll << 61) + 7, 1};
  static const float values[] = {1, 2};
  kiln_sparse_entries in = {sizeof in, 2, at, values};
  stored s = open("map = (i, j) -> (i : dense, j : compressed)", KILN_F32, (int64_t[]){1ll << 62, 4});
  EXPECT(kiln_sparse_pack(cx, s.l, &in, s.arrays) == KILN_OK, "%s", last_finding());
  EXPECT(s.arrays[0].count == (1ll << 62) + 1 && s.arrays[1].count == 2, "%lld", (long long)s.arrays[0].count);
  close(&s);
  s = open("map = (i, j) -> (i : compressed(nonunique), j : singleton)", KILN_F32, (int64_t[]){1ll << 62, 4});
  EXPECT(kiln_sparse_pack(cx, s.l, &in, s.arrays) == KILN_OK, "%s", last_finding());
  allocate(&s);
  EXPECT(kiln_sparse_pack(cx, s.l, &in, s.arrays) == KILN_OK, "%s", last_finding());
  ck_assert_int_eq((int64_t)element(&s, 1, 2), (1ll << 61) + 7);
  close(&s);
}
END_TEST

static const struct {
  const char *fields;
  int array, at, value; // at -1: the array is that much shorter
  kiln_sparse_check level;
} corrupted[] = {
    {"map = (i, j) -> (i : dense, j : compressed)", 0, -1, 1, KILN_SPARSE_CHECK_SIZES},
    {"map = (i, j) -> (i : dense, j : compressed)", 2, -1, 1, KILN_SPARSE_CHECK_SIZES},
    {"map = (i, j) -> (i : dense, j : compressed)", 0, 0, 1, KILN_SPARSE_CHECK_BOUNDS},
    {"map = (i, j) -> (i : dense, j : compressed)", 0, 2, 1, KILN_SPARSE_CHECK_BOUNDS},
    {"map = (i, j) -> (i : dense, j : compressed)", 0, 4, 7, KILN_SPARSE_CHECK_BOUNDS},
    {"map = (i, j) -> (i : dense, j : compressed)", 1, 1, 4, KILN_SPARSE_CHECK_BOUNDS},
    {"map = (i, j) -> (i : dense, j : compressed)", 1, 4, 0, KILN_SPARSE_CHECK_ORDER},
    {"map = (i, j) -> (i : dense, j : compressed)", 1, 3, 3, KILN_SPARSE_CHECK_ORDER},
    {"map = (i, j) -> (i : dense, j : compressed(nonordered))", 1, 4, 0, KILN_SPARSE_CHECK_ORDER},
    {"map = (i, j) -> (i : dense, j : loose_compressed)", 0, 1, 9, KILN_SPARSE_CHECK_BOUNDS},
    {"map = (i, j) -> (i : dense, j : loose_compressed)", 0, 0, 3, KILN_SPARSE_CHECK_BOUNDS},
    {"map = (i, j) -> (i : compressed(nonunique), j : singleton)", 1, 1, 9, KILN_SPARSE_CHECK_BOUNDS},
    {"map = (i, j) -> (i : compressed(nonunique), j : singleton)", 1, 3, 0, KILN_SPARSE_CHECK_ORDER},
    {"map = (i, j) -> (i : compressed(nonunique), j : singleton)", 1, 4, 1, KILN_SPARSE_CHECK_ORDER + 1},
    {"map = (i, j) -> (i : compressed(nonunique), j : singleton)", 1, 6, 1, KILN_SPARSE_CHECK_ORDER},
    {"map = (i, j) -> (i : dense, j : structured[3, 4])", 0, 1, 4, KILN_SPARSE_CHECK_BOUNDS},
    {"map = (i, j) -> (i : dense, j : structured[3, 4])", 0, 1, 0, KILN_SPARSE_CHECK_ORDER},
};

// The levels below the one that a fault is for take it, that level and those above do not.
START_TEST(corrupted_arrays) {
  float dense[16], back[16];
  read_digits(A, dense);
  stored s = open(corrupted[_i].fields, KILN_F32, (int64_t[]){4, 4});
  EXPECT(pack(&s, dense) == KILN_OK, "%s", last_finding());
  if (corrupted[_i].at < 0)
    s.arrays[corrupted[_i].array].count -= corrupted[_i].value;
  else
    ((uint64_t *)s.arrays[corrupted[_i].array].data)[corrupted[_i].at] = (uint64_t)corrupted[_i].value;
  for (int level = 0; level <= KILN_SPARSE_CHECK_ORDER; level++) {
    kiln_status found = kiln_sparse_verify(cx, s.l, s.arrays, (kiln_sparse_check)level);
    EXPECT((found == KILN_OK) == (level < (int)corrupted[_i].level), "%s: level %d: %s", corrupted[_i].fields, level,
           last_finding());
  }
  kiln_status read = kiln_sparse_unpack(cx, s.l, s.arrays, back);
  EXPECT((read == KILN_OK) == (corrupted[_i].level > KILN_SPARSE_CHECK_BOUNDS), "%s: read", corrupted[_i].fields);
  close(&s);
}
END_TEST

int main(void) {
  return RUN_TESTS("sparse_storage", EACH(make_context, drop_context), {worked_examples, KL_COUNT(worked)},
                   {every_format_to_every_other, FORMATS}, {entries_that_come_again_are_summed},
                   {refused_entries, KL_COUNT(refused)}, {large_sizes_are_measured},
                   {corrupted_arrays, KL_COUNT(corrupted)});
}
