// Sparse parameters and results on the host, on the simulator and by the evaluator: every format, unpacked and packed
// by kernels.
#include "harness.h"
#include "sparse_run.h"
#include "support/context.h"
#include "support/dtypes.h"
#include "support/random.h"
#include "support/share.h"
#include "support/sparse_formats.h"

enum { MOST_TEXT = 1 << 14, GUARD = 64 };

static void draw_sizes(int rank, int64_t sizes[MOST_RANK]) {
  static const int64_t some[] = {1, 2, 3, 5, 8, 13, 17}, few[] = {1, 2, 3};
  for (int d = 0; d < rank; d++)
    sizes[d] = rank > 3 ? few[random_bits() % 3] : some[random_bits() % (rank > 2 ? 5 : 7)];
  if (rank && random_bits() % 16 == 0) sizes[random_bits() % (unsigned)rank] = 0;
}

static void put_type(char *text, kiln_dtype t, int rank, const int64_t *sizes, const char *encoding) {
  int n = sprintf(text, "%s[", kiln_dtype_name(t));
  for (int d = 0; d < rank; d++) n += sprintf(text + n, d ? ",%d" : "%d", (int)sizes[d]);
  n += sprintf(text + n, "]");
  if (!encoding) return;
  n += sprintf(text + n, "{");
  for (int d = rank; d-- > 0;) n += sprintf(text + n, d ? "%d," : "%d", d);
  sprintf(text + n, ":SP(%s)}", encoding);
}

static kiln_dtype draw_type(void) {
  kiln_dtype t;
  do t = (kiln_dtype)(1 + random_bits() % (KILN_DTYPE_COUNT - 1));
  while (!kl_is_array_dtype(t));
  return t;
}

static void draw_encoding(const format *f, char out[1024]) {
  static const unsigned widths[] = {0, 8, 16, 32, 64};
  print_format(f, widths[random_bits() % 5] | (random_bits() % 4 ? 0 : 16), widths[random_bits() % 5], out);
  if (strstr(out, "posWidth = 8") || strstr(out, "posWidth = 24") || strstr(out, "posWidth = 48") ||
      strstr(out, "posWidth = 80"))
    print_format(f, 32, 0, out);
}

// What a pred leaves of it, which has a structure of its own; the tensor itself and what is computed of it, which may
// have its structure; and it without an encoding.
static void parts_of(kiln_dtype t, int rank, const int64_t *sizes, const char *encoding, unsigned seed) {
  char sparse[2048], dense[512], which[512], text[MOST_TEXT];
  const char *none = strstr(encoding, "implicitVal = 1") ? "1" : "0";
  if (kl_is_complex(t)) none = "(0, 0)";
  if (t == KILN_PRED) none = strcmp(none, "1") == 0 ? "true" : "false";
  if (t == KILN_F8E8M0FNU) none = "5.8774717541114375e-39"; // of bits 0
  put_type(sparse, t, rank, sizes, encoding);
  put_type(dense, t, rank, sizes, NULL);
  put_type(which, KILN_PRED, rank, sizes, NULL);
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n  a = %s parameter(0)\n  p = %s parameter(1)\n  n = %s[] constant(%s)\n"
           "  z = %s broadcast(n), dimensions={}\n  s = %s select(p, a, z)\n  b = %s add(a, a)\n  c = %s copy(a)\n"
           "  ROOT r = (%s, %s, %s, %s) tuple(s, a, b, c)\n}\n",
           sparse, which, kiln_dtype_name(t), none, dense, sparse, sparse, dense, sparse, sparse, sparse, dense);
  run_sparse(cx, text, seed, seed / 4 % TARGETS, (sparse_room)(seed % ROOMS));
}

static void of_format(const format *f, unsigned seed) {
  int64_t sizes[MOST_RANK];
  char encoding[1024];
  kiln_dtype t = draw_type();
  draw_sizes(f->rank, sizes);
  draw_encoding(f, encoding);
  parts_of(t, f->rank, sizes, encoding, seed);
}

START_TEST(every_format) {
  format f = parse_format(formats[_i]);
  for (uint64_t k = 0; k < share_of(1); k++) {
    if (!k && !share_has((uint64_t)_i, 16)) continue;
    random_seed(1000 * (uint64_t)_i + k);
    of_format(&f, (unsigned)(_i + 101 * (int)k));
  }
}
END_TEST

START_TEST(other_encodings) {
  static const kiln_dtype types[] = {KILN_F32, KILN_S32, KILN_BF16, KILN_U8, KILN_F64};
  for (uint64_t k = 0; k < share_of(1); k++) {
    if (!k && !share_has((uint64_t)_i, 2)) continue;
    random_seed(9000 + 100 * (uint64_t)_i + k);
    kiln_dtype t = types[random_bits() % 5];
    parts_of(t, 2, (int64_t[]){1 + (int64_t)(random_bits() % 9), (int64_t)(random_bits() % 14)}, others[_i],
             (unsigned)(_i + 7 * (int)k));
  }
}
END_TEST

// --- entries that come again ----------------------------------------------------------------------------------------

// Coordinates in any order, some of them again: sums in the order of entries, the first of which is one itself.
static void check_repeated(kiln_dtype t, const char *values, const char *encoding, const char *implicit) {
  enum { N = 7 };
  static const uint64_t positions[] = {0, N}, coordinates[2 * N] = {1, 2, 0, 0, 1, 2, 2, 1, 1, 2, 0, 0, 2, 0};
  char text[MOST_TEXT], full[256], dense[16 * 9], out[3][16 * 9] = {{0}};
  const char *name = kiln_dtype_name(t);
  kiln_encoding *e = NULL;
  kiln_sparse_layout *l = NULL;
  snprintf(full, sizeof full, "%s%s", encoding, implicit);
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n  a = %s[3,3]{1,0:SP(%s)} parameter(0)\n  ROOT r = %s[3,3] copy(a)\n}\n", name,
           full, name);
  kiln_module *m = parse(text), *stored = NULL;
  kiln_sparse_slot slot = {.counts = (int64_t[]){2, 2 * N, N}};
  ck_assert_msg(kiln_module_densify(cx, m, &slot, 1, &stored) == KILN_OK, "%s", last_finding());
  const void *in[] = {positions, coordinates, values};
  run_on(cx, stored, HOST, 1, 0, in, (void *[]){out[0]}, text);
  run_on(cx, stored, 3, 1, 0, in, (void *[]){out[1]}, text);
  ck_assert(kiln_module_eval(cx, stored, in, (void *[]){out[2]}, NULL) == KILN_OK);
  ck_assert(kiln_encoding_parse(cx, "test", full, strlen(full), NULL, &e) == KILN_OK);
  ck_assert(kiln_sparse_layout_create(cx, e, t, (int64_t[]){3, 3}, &l) == KILN_OK);
  kiln_sparse_array arrays[] = {{(void *)positions, 2}, {(void *)coordinates, 2 * N}, {(void *)values, N}};
  ck_assert_msg(kiln_sparse_unpack(cx, l, arrays, dense) == KILN_OK, "%s", last_finding());
  size_t bytes = 9 * (size_t)kiln_dtype_bits(t) / 8;
  for (int k = 0; k < 3; k++) ck_assert_msg(memcmp(out[k], dense, bytes) == 0, "%d of %s", k, text);
  kiln_sparse_layout_destroy(&l);
  kiln_encoding_destroy(&e);
  kiln_module_destroy(&stored);
  kiln_module_destroy(&m);
}

START_TEST(repeated_entries) {
  static const float f[] = {1e8f, 2, 1, -0.0f, -1e8f, 3, -0.0f};
  static const double d[] = {1e16, 2, 1, -0.0, -1e16, 3, -0.0};
  static const uint16_t b[] = {0x4380, 0x4000, 0x3f80, 0x8000, 0xc380, 0x4040, 0x8000};
  static const int32_t i[] = {1 << 30, 2, 1 << 30, 4, 1 << 30, 6, 7};
  static const uint8_t u[] = {200, 2, 100, 4, 5, 6, 7}, p[] = {1, 0, 0, 1, 0, 1, 0};
  static const float c[] = {1e8f, 1, 2, 3, 1, 1e8f, -0.0f, 5, -1e8f, 2, 6, 7, -0.0f, -0.0f};
  static const char *const encodings[] = {
      "map = (i, j) -> (i : compressed(nonunique, nonordered), j : singleton(nonunique, nonordered))",
      "map = (i, j) -> (j : compressed(nonunique, nonordered), i : singleton(nonunique, nonordered))"};
  check_repeated(KILN_F32, (const char *)f, encodings[_i], "");
  check_repeated(KILN_F32, (const char *)f, encodings[_i], ", implicitVal = 2.0 : f32");
  check_repeated(KILN_F64, (const char *)d, encodings[_i], "");
  check_repeated(KILN_BF16, (const char *)b, encodings[_i], "");
  check_repeated(KILN_S32, (const char *)i, encodings[_i], "");
  check_repeated(KILN_S32, (const char *)i, encodings[_i], ", implicitVal = 5 : i32");
  check_repeated(KILN_U8, (const char *)u, encodings[_i], "");
  check_repeated(KILN_PRED, (const char *)p, encodings[_i], "");
  check_repeated(KILN_C64, (const char *)c, encodings[_i], "");
}
END_TEST

// --- compiled as it is given ---------------------------------------------------------------------------------------

static const char csr_twice[] =
    "HloModule m\nENTRY e {\n"
    "  a = f32[4,8]{1,0:SP(map = (i, j) -> (i : dense, j : compressed), crdWidth = 32)} parameter(0)\n"
    "  b = f32[4,8] parameter(1)\n"
    "  ROOT r = f32[4,8]{1,0:SP(map = (i, j) -> (j : dense, i : compressed), posWidth = 16)} multiply(a, b)\n}\n";

START_TEST(slots_say_what_they_are) {
  static const struct {
    kiln_slot_role role;
    uint32_t leaf, level;
    int64_t bytes;
  } expected[] = {{KILN_SLOT_POSITIONS, 0, 1, 40}, {KILN_SLOT_COORDINATES, 0, 1, 28},
                  {KILN_SLOT_VALUES, 0, 1, 28},    {KILN_SLOT_ARRAY, 1, 0, 128},
                  {KILN_SLOT_POSITIONS, 0, 1, 18}, {KILN_SLOT_COORDINATES, 0, 1, 256},
                  {KILN_SLOT_VALUES, 0, 1, 128},   {KILN_SLOT_COUNTS, 0, 0, 32}};
  kiln_module *m = parse(csr_twice), *stored = NULL;
  kiln_sparse_slot slot = {.leaf = 0, .counts = (int64_t[]){-1, 7, 7}};
  kiln_compile_params p = {.struct_size = sizeof p, .sparse_slots = &slot, .sparse_slot_count = 1};
  kiln_artifact *a = NULL, *b = NULL;
  ck_assert_msg(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s", last_finding());
  const kiln_manifest *f = kiln_artifact_manifest(a);
  ck_assert_uint_eq(f->parameter_count + f->result_count, 8);
  for (size_t i = 0; i < 8; i++)
    ck_assert_msg(f->slots[i].role == expected[i].role && f->slots[i].leaf == expected[i].leaf &&
                      f->slots[i].level == expected[i].level && f->slots[i].bytes == expected[i].bytes,
                  "slot %zu: role %d of leaf %u, level %u, %lld bytes", i, (int)f->slots[i].role, f->slots[i].leaf,
                  f->slots[i].level, (long long)f->slots[i].bytes);
  // The same kernels as those of the module over arrays; the hash is of what was given.
  kiln_compile_params plain = {.struct_size = sizeof plain};
  uint8_t hash[KILN_HASH_SIZE];
  ck_assert_msg(kiln_module_densify(cx, m, &slot, 1, &stored) == KILN_OK, "%s", last_finding());
  ck_assert_msg(kiln_compile(cx, stored, &plain, &b) == KILN_OK, "%s", last_finding());
  ck_assert_str_eq(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), kiln_artifact_text(b, KILN_TEXT_PTX, NULL));
  ck_assert(kiln_module_hash(cx, m, hash) == KILN_OK);
  ck_assert(memcmp(hash, f->hash, sizeof hash) == 0);
  kiln_artifact_destroy(&a);
  kiln_artifact_destroy(&b);
  kiln_module_destroy(&stored);
  kiln_module_destroy(&m);
}
END_TEST

// --- values alone ---------------------------------------------------------------------------------------------------

#define CSR "{1,0:SP(map = (i, j) -> (i : dense, j : compressed)%s)}"

typedef struct elementwise {
  const char *op, *implicit; // of what is made of a; the result's implicit value
  bool kept;                 // it has a's structure
} elementwise;
static const elementwise elementwises[] = {
    {"sqrt(a)", "", true},
    {"tanh(a)", "", true},
    {"multiply(a, a)", "", true},
    {"multiply(a, twos)", "", true},
    {"maximum(a, zeros)", "", true},
    {"select(p, a, zeros)", "", true},
    {"subtract(a, a)", "", true},
    {"exponential(a)", ", implicitVal = 1.0 : f32", true},
    {"negate(a)", ", implicitVal = -0.0 : f32", true},
    {"add(a, twos)", ", implicitVal = 2.0 : f32", true},
    // The implicit value becomes another one, or it is not known what.
    {"negate(a)", "", false},
    {"exponential(a)", "", false},
    {"add(a, twos)", "", false},
    {"divide(a, a)", "", false},
    {"log(a)", "", false},
    {"multiply(a, d)", "", false},
    {"reverse(a), dimensions={0}", "", false},
};

// Twice a sum is the sum of twice, but other functions do not go through sums.
START_TEST(entries_that_come_again_are_no_values) {
  kiln_module *stored = NULL,
              *m = parse("HloModule m\nENTRY e {\n  a = f32[3,3]{1,0:SP(map = (i, j) -> (i : compressed("
                         "nonunique), j : singleton(nonunique)))} parameter(0)\n  ROOT r = f32[3,3]{1,0:"
                         "SP(map = (i, j) -> (i : compressed(nonunique), j : singleton(nonunique)))} "
                         "sqrt(a)\n}\n");
  char *printed = NULL;
  size_t size;
  ck_assert_msg(kiln_module_densify(cx, m, NULL, 0, &stored) == KILN_OK, "%s", last_finding());
  ck_assert(kiln_module_print(cx, stored, &printed, &size) == KILN_OK);
  ck_assert(strstr(printed, "keep_0") == NULL);
  kiln_text_free(cx, printed, size);
  kiln_module_destroy(&stored);
  kiln_module_destroy(&m);
}
END_TEST

// Each with one room at least.
START_TEST(elementwise_functions) {
  const elementwise *r = &elementwises[_i];
  char text[MOST_TEXT], result[512];
  snprintf(result, sizeof result, "f32[5,7]" CSR, r->implicit);
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n  a = f32[5,7]" CSR " parameter(0)\n  d = f32[5,7] parameter(1)\n"
           "  two = f32[] constant(2)\n  twos = f32[5,7] broadcast(two), dimensions={}\n  zero = f32[] constant(0)\n"
           "  zeros = f32[5,7] broadcast(zero), dimensions={}\n  p = pred[5,7] compare(a, twos), direction=LT\n"
           "  ROOT r = %s %s\n}\n",
           "", result, r->op);
  kiln_module *m = parse(text), *stored = NULL;
  char *printed = NULL;
  size_t size;
  ck_assert_msg(kiln_module_densify(cx, m, NULL, 0, &stored) == KILN_OK, "%s", last_finding());
  ck_assert(kiln_module_print(cx, stored, &printed, &size) == KILN_OK);
  ck_assert_msg((strstr(printed, "keep_0") != NULL) == r->kept, "%.2000s", printed);
  ck_assert_msg((strstr(printed, "unpack_0") == NULL) == r->kept, "%.2000s", printed);
  kiln_text_free(cx, printed, size);
  kiln_module_destroy(&stored);
  kiln_module_destroy(&m);
  for (int room = 0; room < ROOM_LESS; room++)
    if (share_has((uint64_t)(_i * ROOM_LESS + room), room == _i % ROOM_LESS ? 1 : 6))
      run_sparse(cx, text, (unsigned)_i, 3, (sparse_room)room);
}
END_TEST

// Two parameters whose positions and coordinates are said to be the same, in one kernel without a dense tensor.
START_TEST(two_of_one_structure) {
  char text[MOST_TEXT];
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n  a = f32[5,7]" CSR " parameter(0)\n  b = f32[5,7]" CSR " parameter(1)\n"
           "  ROOT r = f32[5,7]" CSR " multiply(a, b)\n}\n",
           "", "", "");
  kiln_module *m = parse(text), *stored = NULL;
  kiln_sparse_slot slots[] = {{.leaf = 0, .counts = (int64_t[]){6, 4, 4}}, {.leaf = 1, .shares = true, .with = 0}};
  ck_assert_msg(kiln_module_densify(cx, m, slots, 2, &stored) == KILN_OK, "%s", last_finding());
  ck_assert_uint_eq(kiln_module_parameter_leaf_count(stored), 4);
  uint64_t positions[] = {0, 2, 2, 2, 3, 4}, coordinates[] = {1, 5, 0, 6}, p[6], c[4];
  int64_t counts[4];
  float x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, -8}, z[4];
  run_on(cx, stored, HOST, 1, 0, (const void *[]){positions, coordinates, x, y}, (void *[]){p, c, z, counts}, text);
  ck_assert(memcmp(p, positions, sizeof p) == 0 && memcmp(c, coordinates, sizeof c) == 0);
  ck_assert(z[0] == 5 && z[1] == 12 && z[2] == 21 && z[3] == -32);
  ck_assert(counts[0] == 6 && counts[1] == 4 && counts[2] == 4 && counts[3] == 0);
  kiln_module_destroy(&stored);
  // Without saying so they are two tensors.
  ck_assert_msg(kiln_module_densify(cx, m, NULL, 0, &stored) == KILN_OK, "%s", last_finding());
  ck_assert_uint_eq(kiln_module_parameter_leaf_count(stored), 6);
  kiln_module_destroy(&stored);
  slots[1].with = 1;
  ck_assert(kiln_module_densify(cx, m, slots, 2, &stored) == KILN_E_INVALID);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(refused) {
  static const int64_t few[] = {3, 7, 7};
  static const struct {
    kiln_sparse_slot slots[2];
    size_t n;
    const char *found;
  } rows[] = {
      {{{.leaf = 1}}, 1, "expected the number of a parameter with an encoding, found 1"},
      {{{.result = true, .leaf = 1}}, 1, "expected the number of a result with an encoding, found 1"},
      {{{.leaf = 0}, {.leaf = 0}}, 2, "expected parameter 0 once, found it again"},
      {{{.leaf = 0, .counts = few}},
       1,
       "parameter 0: expected 5 or more positions of level 1 for each of 1 batches, found 3"},
  };
  kiln_module *m = parse(csr_twice), *stored = NULL,
              *plain = parse("HloModule m\nENTRY e { ROOT a = f32[] parameter(0) }");
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    kiln_compile_params p = {.struct_size = sizeof p, .sparse_slots = rows[i].slots, .sparse_slot_count = rows[i].n};
    ck_assert(kiln_module_densify(cx, m, rows[i].slots, rows[i].n, &stored) == KILN_E_INVALID);
    ck_assert_msg(strstr(last_finding(), rows[i].found) != NULL, "%s", last_finding());
    ck_assert(kiln_compile_check(cx, m, &p) == KILN_E_INVALID);
  }
  kiln_compile_params p = {.struct_size = sizeof p, .sparse_slots = rows[0].slots, .sparse_slot_count = 1};
  ck_assert(kiln_compile_check(cx, plain, &p) == KILN_E_INVALID);
  p = (kiln_compile_params){.struct_size = sizeof p, .max_count = 100};
  ck_assert(kiln_compile_check(cx, m, &p) == KILN_E_UNSUPPORTED);
  kiln_module_destroy(&plain);
  kiln_module_destroy(&m);
}
END_TEST

// Whatever is in a parameter's arrays, kernels end, and write nothing beside their results. That they read nothing
// beside their arrays is proved of every plan.
START_TEST(hostile_arrays) {
  char text[MOST_TEXT], encoding[1024], sparse[2048];
  format f = parse_format(formats[_i]);
  if (!share_has((uint64_t)_i, 32)) return;
  random_seed(5000 + (uint64_t)_i);
  int64_t sizes[MOST_RANK];
  draw_sizes(f.rank, sizes);
  draw_encoding(&f, encoding);
  put_type(sparse, KILN_S32, f.rank, sizes, encoding);
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n  a = %s parameter(0)\n  ROOT b = %s reverse(a), dimensions={}\n}\n", sparse,
           sparse);
  kiln_module *m = parse(text), *stored = NULL;
  ck_assert_msg(kiln_module_densify(cx, m, NULL, 0, &stored) == KILN_OK, "%s\n%s", last_finding(), text);
  void *in[MOST_BUFFERS] = {NULL}, *out[MOST_BUFFERS] = {NULL};
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(stored); i++) {
    int64_t n = kiln_module_parameter_leaf_bytes(stored, i);
    in[i] = malloc((size_t)n + 1);
    for (int64_t k = 0; k < n; k++) ((uint8_t *)in[i])[k] = (uint8_t)(random_bits() % 3 ? random_bits() : 255);
  }
  for (size_t i = 0; i < kiln_module_result_leaf_count(stored); i++) {
    size_t n = (size_t)kiln_module_result_leaf_bytes(stored, i);
    out[i] = malloc(n + GUARD);
    memset(out[i], 0x5a, n + GUARD);
  }
  run_on(cx, stored, HOST, 1, 0, (const void *const *)in, out, text);
  for (size_t i = 0; i < kiln_module_result_leaf_count(stored); i++)
    for (size_t k = 0; k < GUARD; k++)
      ck_assert(((uint8_t *)out[i])[(size_t)kiln_module_result_leaf_bytes(stored, i) + k] == 0x5a);
  for (size_t i = 0; i < MOST_BUFFERS; i++) free(in[i]), free(out[i]);
  kiln_module_destroy(&stored);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("sparse", EACH(make_context, drop_context), {every_format, FORMATS}, {other_encodings, OTHERS},
                   {hostile_arrays, FORMATS}, {elementwise_functions, KL_COUNT(elementwises)}, {two_of_one_structure},
                   {entries_that_come_again_are_no_values}, {repeated_entries, 2}, {slots_say_what_they_are},
                   {refused});
}
