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

// The tensor itself, what is computed of it, and both as they are without an encoding.
static void identity(const format *f, unsigned seed) {
  int64_t sizes[MOST_RANK];
  char encoding[1024], sparse[2048], dense[512], text[MOST_TEXT];
  kiln_dtype t = draw_type();
  draw_sizes(f->rank, sizes);
  draw_encoding(f, encoding);
  put_type(sparse, t, f->rank, sizes, encoding);
  put_type(dense, t, f->rank, sizes, NULL);
  snprintf(text, sizeof text,
           "HloModule m\nENTRY e {\n  a = %s parameter(0)\n  b = %s add(a, a)\n  c = %s copy(a)\n"
           "  ROOT r = (%s, %s, %s) tuple(a, b, c)\n}\n",
           sparse, sparse, dense, sparse, sparse, dense);
  run_sparse(cx, text, seed, seed / 4 % TARGETS, (sparse_room)(seed % ROOMS));
}

START_TEST(every_format) {
  format f = parse_format(formats[_i]);
  for (uint64_t k = 0; k < share_of(1); k++) {
    if (!k && !share_has((uint64_t)_i, 12)) continue;
    random_seed(1000 * (uint64_t)_i + k);
    identity(&f, (unsigned)(_i + 101 * (int)k));
  }
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
  if (!share_has((uint64_t)_i, 24)) return;
  random_seed(5000 + (uint64_t)_i);
  int64_t sizes[MOST_RANK];
  draw_sizes(f.rank, sizes);
  draw_encoding(&f, encoding);
  put_type(sparse, KILN_S32, f.rank, sizes, encoding);
  snprintf(text, sizeof text, "HloModule m\nENTRY e {\n  ROOT a = %s parameter(0)\n}\n", sparse);
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
  return RUN_TESTS("sparse", EACH(make_context, drop_context), {every_format, FORMATS}, {hostile_arrays, FORMATS},
                   {slots_say_what_they_are}, {refused});
}
