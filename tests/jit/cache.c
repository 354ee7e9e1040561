// Artifacts as bytes, and caches of them: what is found again, what is damaged, what is killed on the way, what is
// full.
#include "support/share.h"
#include "support/suite.h"

#include "jit/cache/cache.h"
#include <kiln/kiln.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static kiln_context *cx;
static char root[64];

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
  return remove(path);
}

static void setup(void) {
  cx = kiln_context_create(NULL);
  strcpy(root, "/tmp/kiln-cache-XXXXXX");
  ck_assert(mkdtemp(root) != NULL);
}

static void teardown(void) {
  nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  kiln_context_destroy(&cx);
}

static kiln_module *parse(kiln_context *own, const char *text) {
  kiln_module *m = NULL;
  EXPECT(kiln_module_parse(own, "test", text, strlen(text), &m) == KILN_OK, "%s",
         kiln_diagnostics_get(own, 0)->message);
  return m;
}

// A sum by rows and an elementwise kernel, with scratch between them and constants in it.
static char *text_of(int n, const char *name) {
  static char text[1000];
  snprintf(text, sizeof text,
           "HloModule %s\n"
           "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
           "f { x = f32[8,%d] parameter(0) z = f32[] constant(0) "
           "ROOT s = f32[8] reduce(x, z), dimensions={1}, to_apply=add }\n"
           "g { s = f32[8] parameter(0) x = f32[8,%d] parameter(1) b = f32[8,%d] broadcast(s), dimensions={0} "
           "ROOT d = f32[8,%d] subtract(x, b) }\n"
           "ENTRY e { x = f32[8,%d] parameter(0) s = f32[8] fusion(x), kind=kInput, calls=f "
           "ROOT d = f32[8,%d] fusion(s, x), kind=kLoop, calls=g }\n",
           name, n, n, n, n, n, n);
  return text;
}

static kiln_artifact *compile(kiln_context *own, kiln_cache *c, const char *text, const char *target) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target};
  kiln_module *m = parse(own, text);
  kiln_artifact *a = NULL;
  kiln_status st = c ? kiln_cache_compile(own, c, m, &p, &a) : kiln_compile(own, m, &p, &a);
  EXPECT(st == KILN_OK && a, "%s", kiln_diagnostics_get(own, 0)->message);
  kiln_module_destroy(&m);
  return a;
}

static kiln_cache *open_cache(const char *folder, uint64_t most, uint64_t memory, bool read_only) {
  kiln_cache_params p = {.struct_size = sizeof p,
                         .folder = folder,
                         .max_folder_bytes = most,
                         .max_memory_bytes = memory,
                         .read_only = read_only};
  kiln_cache *c = NULL;
  ck_assert_int_eq(kiln_cache_open(cx, &p, &c), KILN_OK);
  return c;
}

static kiln_cache_info told(const kiln_cache *c) {
  kiln_cache_info i = {.struct_size = sizeof i};
  ck_assert_int_eq(kiln_cache_describe(cx, c, &i), KILN_OK);
  return i;
}

#define EXPECT_COUNTS(c, memory, disk, missed)                                                                         \
  do {                                                                                                                 \
    kiln_cache_info i_ = told(c);                                                                                      \
    EXPECT(i_.memory_hits == (memory) && i_.folder_hits == (disk) && i_.misses == (missed), "%d, %d, %d",              \
           (int)i_.memory_hits, (int)i_.folder_hits, (int)i_.misses);                                                  \
  } while (0)

// The bytes are the same again when what was read is written.
static void expect_same(const kiln_artifact *a, const kiln_artifact *b) {
  void *p, *q;
  size_t n, m;
  ck_assert_int_eq(kiln_artifact_save(cx, a, &p, &n), KILN_OK);
  ck_assert_int_eq(kiln_artifact_save(cx, b, &q, &m), KILN_OK);
  ck_assert(n == m && memcmp(p, q, n) == 0);
  kiln_artifact_bytes_free(cx, p, n);
  kiln_artifact_bytes_free(cx, q, m);
}

// Does it compute d = x - sum(x) by rows?
static void expect_right(const kiln_artifact *a, int n) {
  float x[8 * 64] __attribute__((aligned(64))), d[8 * 64] __attribute__((aligned(64)));
  const void *in[] = {x};
  void *out[] = {d};
  kiln_kernel *k = NULL;
  for (int i = 0; i < 8 * n; i++) x[i] = (float)(i % 13);
  ck_assert_int_eq(kiln_kernel_load(cx, a, &k), KILN_OK);
  ck_assert_int_eq(kiln_kernel_run(cx, k, in, out, NULL), KILN_OK);
  for (int r = 0; r < 8; r++) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[r * n + i];
    for (int i = 0; i < n; i++) ck_assert(d[r * n + i] == x[r * n + i] - sum);
  }
  kiln_kernel_destroy(&k);
}

// --- artifacts as bytes -------------------------------------------------------------------------------------------

START_TEST(host_artifacts_are_saved_and_loaded) {
  kiln_artifact *a = compile(cx, NULL, text_of(24, "m"), "host"), *b = NULL;
  void *bytes;
  size_t n;
  ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes, &n), KILN_OK);
  ck_assert_int_eq(kiln_artifact_load(cx, bytes, n, &b), KILN_OK);
  memset(bytes, 0, n);
  kiln_artifact_bytes_free(cx, bytes, n);
  expect_same(a, b);
  kiln_artifact_destroy(&a);
  expect_right(b, 24);
  kiln_artifact_destroy(&b);
}
END_TEST

START_TEST(gpu_artifacts_keep_code_and_manifest) {
  kiln_artifact *a = compile(cx, NULL, text_of(24, "m"), "sm_80"), *b = NULL;
  void *bytes;
  size_t n, in, out;
  ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes, &n), KILN_OK);
  ck_assert_int_eq(kiln_artifact_load(cx, bytes, n, &b), KILN_OK);
  kiln_artifact_bytes_free(cx, bytes, n);
  expect_same(a, b);
  const char *p = kiln_artifact_text(a, KILN_TEXT_PTX, &in), *q = kiln_artifact_text(b, KILN_TEXT_PTX, &out);
  ck_assert(in == out && strcmp(p, q) == 0);
  const kiln_manifest *f = kiln_artifact_manifest(a), *g = kiln_artifact_manifest(b);
  ck_assert_str_eq(g->target, "sm_80");
  ck_assert_str_eq(g->module, "m");
  ck_assert(f->launch_count == g->launch_count && f->scratch_bytes == g->scratch_bytes && g->launch_count > 0);
  for (size_t i = 0; i < g->launch_count; i++) {
    ck_assert_str_eq(f->launches[i].kernel, g->launches[i].kernel);
    ck_assert(memcmp(f->launches[i].grid, g->launches[i].grid, sizeof f->launches[i].grid) == 0);
    ck_assert(memcmp(f->launches[i].arguments, g->launches[i].arguments,
                     f->launches[i].argument_count * sizeof(kiln_argument)) == 0);
  }
  kiln_artifact_destroy(&a);
  kiln_artifact_destroy(&b);
}
END_TEST

// Counts while it is below a limit that comes as data.
static const char loops[] =
    "HloModule loops\n"
    "b { s = (s32[], s32[], f32[8]) parameter(0) i = s32[] get-tuple-element(s), index=0 "
    "n = s32[] get-tuple-element(s), index=1 x = f32[8] get-tuple-element(s), index=2 one = s32[] constant(1) "
    "j = s32[] add(i, one) y = f32[8] add(x, x) r = f32[8] reverse(y), dimensions={0} "
    "ROOT t = (s32[], s32[], f32[8]) tuple(j, n, r) }\n"
    "c { s = (s32[], s32[], f32[8]) parameter(0) i = s32[] get-tuple-element(s), index=0 "
    "n = s32[] get-tuple-element(s), index=1 ROOT l = pred[] compare(i, n), direction=LT }\n"
    "ENTRY e { n = s32[] parameter(0) x = f32[8] parameter(1) z = s32[] constant(0) "
    "s = (s32[], s32[], f32[8]) tuple(z, n, x) w = (s32[], s32[], f32[8]) while(s), condition=c, body=b "
    "ROOT r = f32[8] get-tuple-element(w), index=2 }\n";

START_TEST(loops_are_saved_and_loaded) {
  static float x[8] __attribute__((aligned(64))) = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] __attribute__((aligned(64)));
  static int32_t n __attribute__((aligned(64))) = 3;
  const void *in[] = {&n, x};
  void *out[] = {y}, *bytes;
  size_t size;
  kiln_kernel *k = NULL;
  kiln_artifact *a = compile(cx, NULL, loops, "host"), *b = NULL;
  EXPECT(kiln_artifact_manifest(a)->step_count > 0, "the host decides");
  ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes, &size), KILN_OK);
  ck_assert_int_eq(kiln_artifact_load(cx, bytes, size, &b), KILN_OK);
  kiln_artifact_bytes_free(cx, bytes, size);
  expect_same(a, b);
  ck_assert_int_eq(kiln_kernel_load(cx, b, &k), KILN_OK);
  ck_assert_int_eq(kiln_kernel_run(cx, k, in, out, NULL), KILN_OK);
  for (int i = 0; i < 8; i++) ck_assert(y[i] == 8 * x[7 - i]);
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  kiln_artifact_destroy(&b);
}
END_TEST

// Records that are whole, and lie: the hashes are right, and what they say does not hold together.
START_TEST(lies_are_refused) {
  kiln_artifact *a = compile(cx, NULL, loops, "host"), *b = NULL;
  kiln_manifest *f = &a->manifest;
  kiln_step *steps = (kiln_step *)f->steps;
  kiln_slot *slots = (kiln_slot *)f->slots;
  const kiln_launch *launch = f->launches;
  while (!launch->argument_count) launch++;
  kiln_argument *argument = (kiln_argument *)launch->arguments;
  kiln_step *branch = steps, *loop = steps;
  while (branch->kind != KILN_STEP_BRANCH) branch++; // two rounds of the loop are one of the steps
  while (loop->kind != KILN_STEP_WHILE) loop++;
  struct {
    void *field;
    uint64_t value;
    size_t size;
    const char *says;
  } lies[] = {
      {&slots[0].alias, 77, 4, "an alias is no slot"},
      {&slots[0].align, 12, 4, "an alignment is no power of two"},
      {&slots[0].type.rank, 33, 4, "a value is out of range"},
      {&slots[0].type.dtype, 99, 4, "a value is out of range"},
      {&argument->kind, 3, 4, "a value is out of range"},
      {&f->scratch_bytes, 0, 8, "the scratch"},
      {&f->scratch_zero_bytes, 1u << 30, 8, "the scratch memory is too small"},
      {&steps[0].count, 1u << 20, 8, steps[0].kind == KILN_STEP_WHILE ? "a loop is longer" : "a step is no launches"},
      {&steps[f->step_count - 1].kind, KILN_STEP_WHILE, 4, "a"},
      {&steps[0].kind, KILN_STEP_CASE, 4, "a case is of no branch"},
      {&branch->count, 3, 8, "a branch has other cases"},
      {&branch->count, 1, 8, "a branch has other cases"},
      {&branch->body, 1u << 20, 8, "a loop is longer"},
      {&branch[1].kind, KILN_STEP_LAUNCHES, 4, "a branch has other cases"},
      {&branch[1].body, 1u << 20, 8, "a branch has other cases"},
      {&branch->condition_bytes, 2, 4, "a condition is no truth"},
      {&loop->condition_bytes, 4, 4, "a condition is no truth"},
      {&loop->condition.offset, f->scratch_bytes, 8, "a condition is no memory"},
  };
  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    uint64_t was = 0;
    void *bytes;
    size_t size;
    memcpy(&was, lies[i].field, lies[i].size);
    memcpy(lies[i].field, &lies[i].value, lies[i].size);
    ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes, &size), KILN_OK);
    memcpy(lies[i].field, &was, lies[i].size);
    kiln_status st = kiln_artifact_load(cx, bytes, size, &b);
    const kiln_diagnostic *d = kiln_diagnostics_get(cx, 0);
    EXPECT(st == KILN_E_INVALID && !b && d && strstr(d->message, lies[i].says), "%zu: %s", i, d ? d->message : "fine");
    kiln_artifact_bytes_free(cx, bytes, size);
    kiln_diagnostics_clear(cx);
  }
  kiln_artifact_destroy(&a);
}
END_TEST

// Every bit of every byte, and every length.
START_TEST(damaged_bytes_are_refused) {
  kiln_artifact *a = compile(cx, NULL, text_of(3, "m"), "sm_90"), *b = NULL;
  uint8_t *bytes;
  size_t n;
  ck_assert_int_eq(kiln_artifact_save(cx, a, (void **)&bytes, &n), KILN_OK);
  size_t step = test_share() < 1 ? 7 : 1;
  for (size_t i = 0; i < n; i += step)
    for (int bit = 0; bit < 8; bit++) {
      bytes[i] ^= (uint8_t)(1 << bit);
      kiln_status st = kiln_artifact_load(cx, bytes, n, &b);
      EXPECT(st == KILN_E_INVALID && !b, "bit %d of byte %zu", bit, i);
      bytes[i] ^= (uint8_t)(1 << bit);
      kiln_diagnostics_clear(cx);
    }
  for (size_t i = 0; i < n; i += step) {
    EXPECT(kiln_artifact_load(cx, bytes, i, &b) == KILN_E_INVALID && !b, "%zu bytes", i);
    kiln_diagnostics_clear(cx);
  }
  kiln_artifact_bytes_free(cx, bytes, n);
  kiln_artifact_destroy(&a);
}
END_TEST

// --- hits and misses ----------------------------------------------------------------------------------------------

START_TEST(what_is_compiled_is_found_again) {
  kiln_cache *c = open_cache(root, 0, 0, false);
  kiln_artifact *a = compile(cx, c, text_of(16, "m"), "host"), *b = compile(cx, c, text_of(16, "m"), "host");
  ck_assert_ptr_eq(a, b);
  EXPECT_COUNTS(c, 1, 0, 1);
  kiln_cache_close(&c);
  c = open_cache(root, 0, 0, false);
  kiln_artifact *d = compile(cx, c, text_of(16, "m"), "host");
  EXPECT_COUNTS(c, 0, 1, 0);
  expect_same(a, d);
  kiln_cache_close(&c); // artifacts live on
  kiln_artifact_destroy(&a);
  expect_right(b, 16);
  kiln_artifact_destroy(&b);
  expect_right(d, 16);
  kiln_artifact_destroy(&d);
}
END_TEST

START_TEST(other_modules_names_and_parameters_are_others) {
  kiln_cache *c = open_cache("", 0, 0, false);
  kiln_alias alias = {0, 0};
  kiln_compile_params rows[] = {
      {.target = "sm_90"},     {.target = "sm_80"},
      {.target = "host"},      {.numerics = KILN_NUMERICS_FAST},
      {.fusion = "d"},         {.fusion = "s"},
      {.argument_align = 4},   {.least_align = 4},
      {.deterministic = true}, {.separate_launches = true},
      {.programmatic = true},  {.aliases = &alias, .alias_count = 1},
  };
  enum { ROWS = sizeof rows / sizeof rows[0] };
  const char *names[] = {"m", "other"};
  uint64_t made = 0;
  for (int round = 0; round < 2; round++)
    for (int k = 0; k < 2; k++)
      for (int i = 0; i < ROWS; i++) {
        kiln_module *m = parse(cx, text_of(16, names[k]));
        kiln_artifact *a = NULL;
        rows[i].struct_size = sizeof rows[i];
        ck_assert_int_eq(kiln_cache_compile(cx, c, m, &rows[i], &a), KILN_OK);
        ck_assert_str_eq(kiln_artifact_manifest(a)->module, names[k]);
        kiln_artifact_destroy(&a);
        kiln_module_destroy(&m);
        made += round == 0;
      }
  EXPECT_COUNTS(c, made, 0, made);
  ck_assert(told(c).folder == NULL && told(c).no_folder && told(c).memory_bytes > 0);
  kiln_cache_close(&c);
}
END_TEST

START_TEST(texts_are_compiled_each_time) {
  kiln_cache *c = open_cache("", 0, 0, false);
  kiln_module *m = parse(cx, text_of(16, "m"));
  kiln_compile_params p[] = {{.keep = KILN_KEEP_PLAN}, {.lineinfo = true}};
  for (int i = 0; i < 4; i++) {
    kiln_artifact *a = NULL;
    p[i / 2].struct_size = sizeof p[0];
    ck_assert_int_eq(kiln_cache_compile(cx, c, m, &p[i / 2], &a), KILN_OK);
    ck_assert(i / 2 || kiln_artifact_text(a, KILN_TEXT_PLAN, NULL));
    kiln_artifact_destroy(&a);
  }
  ck_assert_uint_eq(told(c).uncached, 4);
  EXPECT_COUNTS(c, 0, 0, 0);
  kiln_module_destroy(&m);
  kiln_cache_close(&c);
}
END_TEST

START_TEST(failures_are_not_kept) {
  kiln_cache *c = open_cache(root, 0, 0, false);
  kiln_module *m = parse(cx, text_of(16, "m"));
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_1"};
  for (int i = 0; i < 2; i++) {
    kiln_artifact *a = (kiln_artifact *)cx;
    ck_assert_int_eq(kiln_cache_compile(cx, c, m, &p, &a), KILN_E_INVALID);
    ck_assert_ptr_null(a);
  }
  EXPECT_COUNTS(c, 0, 0, 0);
  kiln_module_destroy(&m);
  kiln_cache_close(&c);
}
END_TEST

START_TEST(memory_has_a_limit) {
  kiln_artifact *a = compile(cx, NULL, text_of(1, "m"), "sm_90");
  void *bytes;
  size_t n;
  ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes, &n), KILN_OK);
  kiln_artifact_bytes_free(cx, bytes, n);
  kiln_artifact_destroy(&a);
  kiln_cache *c = open_cache("", 0, 8 * n, false);
  for (int i = 1; i <= 40; i++) {
    a = compile(cx, c, text_of(i, "m"), "sm_90");
    kiln_artifact_destroy(&a);
    ck_assert(told(c).memory_bytes <= 8 * n);
  }
  a = compile(cx, c, text_of(40, "m"), "sm_90"); // the last one is there, the first is not
  kiln_artifact_destroy(&a);
  EXPECT_COUNTS(c, 1, 0, 40);
  a = compile(cx, c, text_of(1, "m"), "sm_90");
  kiln_artifact_destroy(&a);
  EXPECT_COUNTS(c, 1, 0, 41);
  kiln_cache_close(&c);
}
END_TEST

// --- folders ------------------------------------------------------------------------------------------------------

// Calls f with every record's path.
static int walked;
static void (*on_record)(const char *path, size_t bytes);
static int walk_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
  size_t n = strlen(path);
  if (kind == FTW_F && strcmp(path + n - 5, ".kiln") == 0) {
    walked++;
    if (on_record) on_record(path, (size_t)s->st_size);
  }
  return 0;
}
static int records(void (*f)(const char *path, size_t bytes)) {
  walked = 0;
  on_record = f;
  nftw(root, walk_one, 16, FTW_PHYS);
  return walked;
}

static size_t at_byte;
static void flip(const char *path, size_t bytes) {
  uint8_t b;
  int fd = open(path, O_RDWR);
  ck_assert(fd >= 0 && pread(fd, &b, 1, (off_t)(at_byte % bytes)) == 1);
  b ^= 0x10;
  ck_assert(pwrite(fd, &b, 1, (off_t)(at_byte % bytes)) == 1);
  close(fd);
}
static void cut(const char *path, size_t bytes) {
  ck_assert_int_eq(truncate(path, (off_t)(at_byte % bytes)), 0);
}
static void open_to_all(const char *path, size_t bytes) {
  ck_assert_int_eq(chmod(path, 0666), 0);
}
static void make_link(const char *path, size_t bytes) {
  char other[300];
  snprintf(other, sizeof other, "%s.elsewhere", path);
  ck_assert(rename(path, other) == 0 && symlink(other, path) == 0);
}
static void make_folder(const char *path, size_t bytes) {
  ck_assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
}

static size_t all_bytes;
static void add_bytes(const char *path, size_t bytes) {
  all_bytes += bytes;
}

// Whatever has become of the record, there is a right artifact, and afterwards a good record again (but where a link or
// folder stands in its place).
static void expect_mended(void (*harm)(const char *path, size_t bytes)) {
  kiln_cache *c = open_cache(root, 0, 0, false);
  kiln_artifact *a = compile(cx, c, text_of(16, "m"), "host");
  kiln_artifact_destroy(&a);
  kiln_cache_close(&c);
  ck_assert_int_eq(records(harm), 1);
  c = open_cache(root, 0, 0, false);
  a = compile(cx, c, text_of(16, "m"), "host");
  expect_right(a, 16);
  kiln_artifact_destroy(&a);
  EXPECT_COUNTS(c, 0, 0, 1);
  kiln_cache_close(&c);
  c = open_cache(root, 0, 0, true);
  a = compile(cx, c, text_of(16, "m"), "host");
  kiln_artifact_destroy(&a);
  if (harm != make_folder) EXPECT_COUNTS(c, 0, 1, 0);
  kiln_cache_close(&c);
}

START_TEST(damaged_records_are_misses_and_mended) {
  kiln_cache *c = open_cache(root, 0, 0, false);
  kiln_artifact *a = compile(cx, c, text_of(16, "m"), "host");
  kiln_artifact_destroy(&a);
  kiln_cache_close(&c);
  for (size_t i = 0; i < 12; i++) {
    at_byte = i < 4 ? i * 16 : i * 7919;
    expect_mended(flip);
    expect_mended(cut);
  }
  expect_mended(open_to_all);
  expect_mended(make_link);
  expect_mended(make_folder);
}
END_TEST

START_TEST(folders_that_cannot_be_used) {
  char path[200], deep[200];
  snprintf(path, sizeof path, "%s/file", root);
  close(open(path, O_CREAT | O_WRONLY, 0600));
  kiln_cache *c = open_cache(path, 0, 0, false);
  EXPECT(told(c).no_folder && !told(c).folder, "a file");
  kiln_artifact *a = compile(cx, c, text_of(16, "m"), "host"), *b = compile(cx, c, text_of(16, "m"), "host");
  EXPECT_COUNTS(c, 1, 0, 1);
  kiln_artifact_destroy(&a);
  kiln_artifact_destroy(&b);
  kiln_cache_close(&c);
  snprintf(path, sizeof path, "%s/open", root);
  ck_assert(mkdir(path, 0700) == 0 && chmod(path, 0777) == 0);
  c = open_cache(path, 0, 0, false);
  ck_assert_str_eq(told(c).no_folder, "others may write to it");
  kiln_cache_close(&c);
  snprintf(deep, sizeof deep, "%s/a/b/c", root);
  c = open_cache(deep, 0, 0, false);
  ck_assert_str_eq(told(c).folder, deep);
  kiln_cache_close(&c);
  snprintf(deep, sizeof deep, "%s/none", root);
  c = open_cache(deep, 0, 0, true);
  EXPECT(told(c).no_folder, "nothing there to read");
  kiln_cache_close(&c);
}
END_TEST

START_TEST(the_environment_says_where) {
  const char *home = getenv("HOME"), *xdg = getenv("XDG_CACHE_HOME");
  char kept_home[300] = "", kept_xdg[300] = "", expected[300];
  snprintf(kept_home, sizeof kept_home, "%s", home ? home : "");
  snprintf(kept_xdg, sizeof kept_xdg, "%s", xdg ? xdg : "");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", root, 1);
  kiln_cache *c = open_cache(NULL, 0, 0, false);
  snprintf(expected, sizeof expected, "%s/.cache/kiln", root);
  ck_assert_str_eq(told(c).folder, expected);
  kiln_cache_close(&c);
  snprintf(expected, sizeof expected, "%s/xdg", root);
  setenv("XDG_CACHE_HOME", expected, 1);
  c = open_cache(NULL, 0, 0, false);
  strcat(expected, "/kiln");
  ck_assert_str_eq(told(c).folder, expected);
  kiln_cache_close(&c);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  c = open_cache(NULL, 0, 0, false);
  EXPECT(told(c).no_folder && strstr(told(c).no_folder, "HOME"), "%s", told(c).no_folder);
  kiln_cache_close(&c);
  if (home) setenv("HOME", kept_home, 1);
  if (xdg) setenv("XDG_CACHE_HOME", kept_xdg, 1);
}
END_TEST

START_TEST(a_folder_that_is_read_only) {
  kiln_cache *c = open_cache(root, 0, 0, false);
  kiln_artifact *a = compile(cx, c, text_of(16, "m"), "host");
  kiln_artifact_destroy(&a);
  kiln_cache_close(&c);
  c = open_cache(root, 0, 0, true);
  a = compile(cx, c, text_of(16, "m"), "host");
  kiln_artifact_destroy(&a);
  a = compile(cx, c, text_of(17, "m"), "host");
  kiln_artifact_destroy(&a);
  EXPECT_COUNTS(c, 0, 1, 1);
  kiln_cache_close(&c);
  ck_assert_int_eq(records(NULL), 1);
}
END_TEST

START_TEST(a_folder_has_a_limit) {
  enum { MOST = 64 << 10 };
  kiln_cache *c = open_cache(root, MOST, 0, false);
  struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  char fragment[200], fresh[200];
  snprintf(fragment, sizeof fragment, "%s/00", root);
  mkdir(fragment, 0700);
  snprintf(fragment, sizeof fragment, "%s/00/1.kiln.2.3.4", root);
  snprintf(fresh, sizeof fresh, "%s/00/1.kiln.2.3.5", root);
  close(open(fragment, O_CREAT | O_WRONLY, 0600));
  close(open(fresh, O_CREAT | O_WRONLY, 0600));
  utimensat(AT_FDCWD, fragment, old, 0);
  for (int i = 1; i <= 64; i++) {
    kiln_artifact *a = compile(cx, c, text_of(i, "m"), "sm_90");
    kiln_artifact_destroy(&a);
  }
  kiln_cache_close(&c);
  all_bytes = 0;
  int n = records(add_bytes);
  EXPECT(n > 1 && n < 64 && all_bytes <= MOST + MOST / 8, "%d records, %zu bytes", n, all_bytes);
  ck_assert(access(fragment, F_OK) != 0 && access(fresh, F_OK) == 0);
  c = open_cache(root, 1000, 0, false); // none fits
  kiln_artifact *a = compile(cx, c, text_of(65, "m"), "sm_90");
  kiln_artifact_destroy(&a);
  ck_assert_uint_eq(told(c).unwritten, 1);
  kiln_cache_close(&c);
}
END_TEST

// A limit on the size of files stands for a full disk: writing fails in the middle of a record.
START_TEST(a_disk_that_is_full) {
  kiln_cache *c = open_cache(root, 0, 0, false);
  struct rlimit was, little;
  getrlimit(RLIMIT_FSIZE, &was);
  signal(SIGXFSZ, SIG_IGN);
  for (rlim_t most = 0; most < 3000; most += 500) {
    little = (struct rlimit){most, was.rlim_max};
    setrlimit(RLIMIT_FSIZE, &little);
    kiln_artifact *a = compile(cx, c, text_of(8 + (int)(most / 500), "m"), "host");
    setrlimit(RLIMIT_FSIZE, &was);
    expect_right(a, 8 + (int)(most / 500));
    kiln_artifact_destroy(&a);
  }
  ck_assert_uint_eq(told(c).unwritten, 6);
  kiln_cache_close(&c);
  ck_assert_int_eq(records(NULL), 0);
  signal(SIGXFSZ, SIG_DFL);
}
END_TEST

// --- processes and threads ----------------------------------------------------------------------------------------

// In a process of its own: compiles modules in an order of its own through the folder, and checks them.
static int child(int seed, int rounds) {
  kiln_context *own = kiln_context_create(NULL);
  kiln_cache_params p = {.struct_size = sizeof p, .folder = root, .max_memory_bytes = 1, .max_folder_bytes = 96 << 10};
  kiln_cache *c = NULL;
  if (!own || kiln_cache_open(own, &p, &c) != KILN_OK) return 2;
  for (int i = 0; i < rounds; i++) {
    int n = 1 + (seed * 7 + i * 5) % 12;
    kiln_artifact *a = compile(own, c, text_of(n, "m"), "sm_90");
    const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
    char fits[32];
    snprintf(fits, sizeof fits, "f32[8,%d]", n);
    bool right = ptx && kiln_artifact_manifest(a)->slots[0].type.dims[1] == n;
    kiln_artifact_destroy(&a);
    if (!right) return 1;
  }
  kiln_cache_info info = {.struct_size = sizeof info};
  if (kiln_cache_describe(own, c, &info) != KILN_OK || info.damaged) return 3;
  kiln_cache_close(&c);
  kiln_context_destroy(&own);
  return 0;
}

START_TEST(processes_share_a_folder) {
  enum { MOST = 64 };
  int n = (int)share_up_to(MOST, MOST), status, bad = 0;
  pid_t who[MOST];
  for (int i = 0; i < n; i++) {
    who[i] = fork();
    ck_assert(who[i] >= 0);
    if (who[i] == 0) _exit(child(i, 8));
  }
  for (int i = 0; i < n; i++)
    if (waitpid(who[i], &status, 0) != who[i] || status != 0) bad++;
  ck_assert_int_eq(bad, 0);
}
END_TEST

// A writer that does nothing but write: records of one byte's value each, large enough to be met on the way.
enum { RECORD = 300000 };
static _Noreturn void write_forever(void) {
  char why[256];
  kiln_context *own = kiln_context_create(NULL);
  kl_folder *f = kl_folder_open(own, root, 1 << 30, false, why);
  uint8_t *bytes = malloc(RECORD);
  if (!f || !bytes) _exit(1);
  for (unsigned i = 0;; i++) {
    kl_cache_key key = {{i % 3, 0, 0, 0}};
    memset(bytes, (int)i, RECORD);
    kl_folder_put(f, own, &key, bytes, RECORD - i % 3);
  }
}

START_TEST(writers_are_killed) {
  uint64_t rounds = share_of(100), seen = 0;
  char why[256];
  kl_folder *f = kl_folder_open(cx, root, 1 << 30, false, why);
  for (uint64_t i = 0; i < rounds; i++) {
    pid_t who = fork();
    ck_assert(who >= 0);
    if (who == 0) write_forever();
    struct timespec t = {0, 2000000 + 100000L * (long)(i * 37 % 60)};
    nanosleep(&t, NULL);
    kill(who, SIGKILL);
    waitpid(who, NULL, 0);
    for (unsigned k = 0; k < 3; k++) {
      kl_cache_key key = {{k, 0, 0, 0}};
      uint8_t *bytes = NULL;
      size_t n;
      kl_found found = kl_folder_get(f, cx, &key, (void **)&bytes, &n);
      ck_assert(found != KL_FOUND_DAMAGED);
      if (found == KL_FOUND_NOTHING) continue;
      seen++;
      ck_assert_uint_eq(n, RECORD - k);
      for (size_t j = 1; j < n; j++) EXPECT(bytes[j] == bytes[0], "byte %zu is another writer's", j);
      kl_free(cx, bytes, n + 1);
    }
  }
  ck_assert_uint_gt(seen, 0);
  kl_folder_close(&f);
}
END_TEST

static kiln_cache *shared;
static void *work(void *arg) {
  int seed = (int)(intptr_t)arg;
  kiln_context *own = kiln_context_create(NULL);
  intptr_t bad = 0;
  for (int i = 0; i < 40; i++) {
    char text[1000], name[8];
    int n = 1 + (seed + i) % 5;
    snprintf(name, sizeof name, "m%d", n);
    snprintf(text, sizeof text, "HloModule %s\nENTRY e { p = f32[%d] parameter(0) ROOT r = f32[%d] negate(p) }", name,
             n, n);
    kiln_artifact *a = compile(own, shared, text, "sm_90");
    bad += strcmp(kiln_artifact_manifest(a)->module, name) != 0;
    kiln_artifact_destroy(&a);
  }
  kiln_context_destroy(&own);
  return (void *)bad;
}

START_TEST(threads_share_a_cache) {
  enum { N = 4 };
  pthread_t t[N];
  shared = open_cache(root, 0, 20000, false);
  for (intptr_t i = 0; i < N; i++) pthread_create(&t[i], NULL, work, (void *)i);
  for (int i = 0; i < N; i++) {
    void *bad;
    pthread_join(t[i], &bad);
    ck_assert_ptr_null(bad);
  }
  kiln_cache_info i = told(shared);
  ck_assert_uint_eq(i.memory_hits + i.folder_hits + i.misses, 40 * N);
  ck_assert_uint_eq(i.damaged + i.unwritten, 0);
  kiln_cache_close(&shared);
}
END_TEST

int main(void) {
  return RUN_TESTS(
      "cache", EACH(setup, teardown), {host_artifacts_are_saved_and_loaded}, {gpu_artifacts_keep_code_and_manifest},
      {loops_are_saved_and_loaded}, {lies_are_refused}, {damaged_bytes_are_refused}, {what_is_compiled_is_found_again},
      {other_modules_names_and_parameters_are_others}, {texts_are_compiled_each_time}, {failures_are_not_kept},
      {memory_has_a_limit}, {damaged_records_are_misses_and_mended}, {folders_that_cannot_be_used},
      {the_environment_says_where}, {a_folder_that_is_read_only}, {a_folder_has_a_limit}, {a_disk_that_is_full},
      {processes_share_a_folder}, {writers_are_killed}, {threads_share_a_cache});
}
