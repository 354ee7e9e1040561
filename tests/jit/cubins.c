// Machine code that a driver's compiler has made: kept in a folder, found again, made anew where it is damaged, of
// another driver, or refused. And machine code that the caller brings.
#include "jit/linker_library.h"
#include "support/context.h"
#include "support/standin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <kiln/kiln.h>
#include <stdio.h>
#include <unistd.h>

#define S standin_state

static char root[64];
static kiln_artifact *artifact, *other;

static kiln_artifact *compile(const char *op, const char *target) {
  char text[200];
  snprintf(text, sizeof text, "HloModule m\nENTRY e { p = f32[1024] parameter(0) ROOT r = f32[1024] %s(p) }\n", op);
  kiln_module *m = parse(text);
  kiln_compile_params p = {.struct_size = sizeof p, .target = target};
  kiln_artifact *a = NULL;
  EXPECT(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s", last_finding());
  kiln_module_destroy(&m);
  return a;
}

static void setup(void) {
  make_context();
  strcpy(root, "/tmp/kiln-cubins-XXXXXX");
  ck_assert(mkdtemp(root) != NULL);
  artifact = compile("negate", "sm_90");
  other = compile("abs", "sm_90");
  standin_reset();
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
  (void)s, (void)kind, (void)at;
  return remove(path);
}

static void teardown(void) {
  kiln_artifact_destroy(&artifact);
  kiln_artifact_destroy(&other);
  nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  drop_context();
}

// A process: a cache, a driver, a device, and a kernel that is prepared.
typedef struct process {
  kiln_cache *c;
  kiln_driver *d;
  kiln_device *dev;
  kiln_cuda_kernel *k;
} process;

static kiln_status open_process(process *p, const kiln_artifact *a, void *(*resolve)(void *, const char *, int)) {
  kiln_cache_params cp = {.struct_size = sizeof cp, .folder = root};
  kiln_driver_params dp = {.struct_size = sizeof dp, .resolve = resolve, .initialize = true};
  kiln_status st = kiln_cache_open(cx, &cp, &p->c);
  if (st == KILN_OK) st = kiln_driver_open(cx, &dp, &p->d);
  if (st == KILN_OK) st = kiln_device_open(cx, p->d, 0, &p->dev);
  if (st == KILN_OK) st = kiln_cuda_kernel_create(cx, p->d, a, kiln_device_context(p->dev), &p->k);
  return st == KILN_OK ? kiln_cache_prepare(cx, p->c, p->k) : st;
}

static kiln_cache_info close_process(process *p) {
  kiln_cache_info info = {.struct_size = sizeof info};
  if (p->c) EXPECT(kiln_cache_describe(cx, p->c, &info) == KILN_OK, "%s", last_finding());
  kiln_cuda_kernel_destroy(&p->k);
  kiln_device_close(&p->dev);
  kiln_driver_close(&p->d);
  kiln_cache_close(&p->c);
  return info;
}

// What it takes to prepare once more: PTX that is compiled, hits and misses.
static void once(const kiln_artifact *a, long compiled, uint64_t hits, const char *what) {
  process p = {0};
  S.compiled = S.loads = 0;
  EXPECT(open_process(&p, a, standin_resolve) == KILN_OK, "%s: %s", what, last_finding());
  kiln_cache_info info = close_process(&p);
  EXPECT(S.compiled == compiled && info.code_hits == hits && info.code_misses == 1 - hits,
         "%s: compiled %ld times, %llu hits", what, S.compiled, (unsigned long long)info.code_hits);
  EXPECT(S.loads == 1 && standin_is_clean() && kiln_diagnostics_count(cx) == 0, "%s: %ld loads, %s", what, S.loads,
         last_finding());
}

// The driver's own compilation is paid once, not by each process and each start.
START_TEST(the_drivers_compiler_is_paid_once) {
  once(artifact, 1, 0, "first");
  once(artifact, 0, 1, "again");
  once(other, 1, 0, "other code");
  S.version = 12080;
  once(artifact, 1, 0, "another driver");
  once(artifact, 0, 1, "that driver again");
  S.version = 11080; // modules in place of libraries
  once(artifact, 1, 0, "an old driver");
  once(artifact, 0, 1, "the old driver again");
}
END_TEST

// Every byte of every record, changed or cut: the code is made again.
static void for_each_record(void (*body)(const char *path)) {
  char folder[400], path[800];
  DIR *top = opendir(root);
  for (struct dirent *e; (e = readdir(top));) {
    if (e->d_name[0] == '.') continue;
    snprintf(folder, sizeof folder, "%s/%s", root, e->d_name);
    DIR *d = opendir(folder);
    for (struct dirent *f; d && (f = readdir(d));) {
      if (f->d_name[0] == '.') continue;
      snprintf(path, sizeof path, "%s/%s", folder, f->d_name);
      body(path);
    }
    if (d) closedir(d);
  }
  closedir(top);
}

static off_t at;
static bool cut, done;

static void damage(const char *path) {
  int f = open(path, O_RDWR);
  char byte;
  off_t size = lseek(f, 0, SEEK_END);
  done = at >= size;
  if (!done && cut) ck_assert_int_eq(ftruncate(f, at), 0);
  if (!done && !cut) {
    ck_assert_int_eq(pread(f, &byte, 1, at), 1);
    byte ^= 1 << at % 8;
    ck_assert_int_eq(pwrite(f, &byte, 1, at), 1);
  }
  close(f);
}

START_TEST(damaged_code_is_made_again) {
  for (int way = 0; way < 2; way++) {
    cut = way;
    for (at = 0, done = false; !done; at++) {
      once(artifact, way || at ? 0 : 1, way || at ? 1 : 0, "whole");
      for_each_record(damage);
      if (!done) once(artifact, 1, 0, "damaged");
    }
  }
  ck_assert_int_gt(at, 64);
}
END_TEST

// What the driver does not take is dropped, and PTX is what it gets.
START_TEST(refused_code_is_dropped) {
  once(artifact, 1, 0, "first");
  S.refuses_cubins = true;
  process p = {0};
  S.compiled = S.loads = 0;
  EXPECT(open_process(&p, artifact, standin_resolve) == KILN_OK, "%s", last_finding());
  ck_assert_int_eq(S.compiled, 2); // to machine code again, then as PTX
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 0);
  close_process(&p);
  S.refuses_cubins = false;
  once(artifact, 1, 0, "nothing is left");
}
END_TEST

// Each call of the driver fails once, on a way that makes code and on one that finds it: prepared or not, nothing is
// left behind, and then it works.
START_TEST(every_call_may_fail) {
  static const CUresult codes[] = {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_OUT_OF_MEMORY,
                                   CUDA_ERROR_ILLEGAL_ADDRESS};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    for (long call = 1; call < 40; call++) {
      process p = {0};
      standin_reset();
      S.fail_at = call;
      S.code = codes[i];
      kiln_status st = open_process(&p, call % 2 ? artifact : other, standin_resolve);
      EXPECT(st == KILN_OK || st == KILN_E_DEVICE, "call %ld (%s): status %d", call, S.failed, st);
      EXPECT((st == KILN_OK) == (kiln_diagnostics_count(cx) == 0), "call %ld (%s): %s", call, S.failed, last_finding());
      kiln_diagnostics_clear(cx);
      S.fail_at = 0;
      if (p.k && codes[i] != CUDA_ERROR_ILLEGAL_ADDRESS)
        EXPECT(kiln_cache_prepare(cx, p.c, p.k) == KILN_OK, "after call %ld: %s", call, last_finding());
      kiln_diagnostics_clear(cx);
      close_process(&p);
      EXPECT(standin_is_clean(), "left behind after call %ld (%s)", call, S.failed);
      if (call % 5 == 0) nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}
END_TEST

// A read-only folder, or none: as without a cache.
START_TEST(without_a_folder) {
  kiln_cache_params cp = {.struct_size = sizeof cp, .folder = ""};
  kiln_cache *memory = NULL;
  process p = {0};
  EXPECT(kiln_cache_open(cx, &cp, &memory) == KILN_OK && open_process(&p, artifact, standin_resolve) == KILN_OK, "%s",
         last_finding());
  kiln_cuda_kernel *k = NULL;
  S.compiled = 0;
  ck_assert_int_eq(kiln_cuda_kernel_create(cx, p.d, artifact, kiln_device_context(p.dev), &k), KILN_OK);
  ck_assert_int_eq(kiln_cache_prepare(cx, memory, k), KILN_OK);
  ck_assert_int_eq(S.compiled, 1);
  kiln_cuda_kernel_destroy(&k);
  kiln_cache_close(&memory);
  close_process(&p);
}
END_TEST

// On a driver that runs kernels: what is found computes what it should.
START_TEST(found_code_runs) {
  for (int turn = 0; turn < 2; turn++) {
    process p = {0};
    static float x[1024], y[1024];
    uint64_t from, to;
    for (int i = 0; i < 1024; i++) x[i] = (float)i;
    EXPECT(open_process(&p, artifact, kiln_sim_resolve) == KILN_OK, "%s", last_finding());
    EXPECT(kiln_device_alloc(cx, p.dev, sizeof x, &from) == KILN_OK &&
               kiln_device_alloc(cx, p.dev, sizeof x, &to) == KILN_OK &&
               kiln_device_upload(cx, p.dev, from, x, sizeof x) == KILN_OK,
           "%s", last_finding());
    kiln_cuda_launch_params lp = {
        .struct_size = sizeof lp, .stream = kiln_device_stream(p.dev), .parameters = &from, .results = &to};
    EXPECT(kiln_cuda_kernel_launch(cx, p.k, &lp) == KILN_OK &&
               kiln_device_download(cx, p.dev, y, to, sizeof y) == KILN_OK,
           "%s", last_finding());
    for (int i = 0; i < 1024; i++) EXPECT(y[i] == -x[i], "element %d is %g", i, (double)y[i]);
    kiln_device_free(p.dev, from);
    kiln_device_free(p.dev, to);
    ck_assert_uint_eq(close_process(&p).code_hits, (uint64_t)turn);
  }
}
END_TEST

// The caller's own assembler: neither the driver's compiler nor a driver that reads the PTX.
START_TEST(cubins_of_the_callers) {
  static char cubin[64] = "\177ELF\002";
  kiln_artifact *newer = compile("negate", "sm_120");
  kiln_driver_params dp = {.struct_size = sizeof dp, .resolve = standin_resolve, .initialize = true};
  process p = {0};
  S.version = 12000;
  EXPECT(kiln_driver_open(cx, &dp, &p.d) == KILN_OK && kiln_device_open(cx, p.d, 0, &p.dev) == KILN_OK &&
             kiln_cuda_kernel_create(cx, p.d, newer, kiln_device_context(p.dev), &p.k) == KILN_OK,
         "%s", last_finding());
  ck_assert_int_eq(kiln_cuda_kernel_prepare(cx, p.k), KILN_E_DEVICE);
  EXPECT(strstr(last_finding(), "expected a driver for CUDA 12.8 or newer, found one for 12.0"), "%s", last_finding());
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubin(cx, p.k, "//", 2), KILN_E_INVALID);
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubin(cx, p.k, cubin, sizeof cubin - 1), KILN_E_INVALID);
  cubin[40] = 65; // its sections begin behind its end
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubin(cx, p.k, cubin, sizeof cubin), KILN_E_INVALID);
  EXPECT(strstr(last_finding(), "expected a cubin, which is a whole ELF file of 64 bits"), "%s", last_finding());
  cubin[40] = 0;
  ck_assert_int_eq(S.loads, 0);
  S.refuses_cubins = true;
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubin(cx, p.k, cubin, sizeof cubin), KILN_E_DEVICE);
  EXPECT(strstr(last_finding(), "compile for the device's own target"), "%s", last_finding());
  S.refuses_cubins = false;
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubin(cx, p.k, cubin, sizeof cubin), KILN_OK);
  ck_assert_int_eq(kiln_cuda_kernel_prepare(cx, p.k), KILN_OK); // is prepared
  ck_assert_int_eq(S.compiled, 0);
  ck_assert_int_eq(S.loads, 1);
  close_process(&p);
  kiln_artifact_destroy(&newer);
  ck_assert(standin_is_clean());
}
END_TEST

// --- what machine code says of itself -------------------------------------------------------------------------------

// A head of NVIDIA's tools, and nothing behind it.
typedef struct head_case {
  uint8_t abi;
  uint16_t machine;
  uint32_t version;
  int driver;
} head_case;

static void make_head(const head_case *c, char cubin[64]) {
  memset(cubin, 0, 64);
  memcpy(cubin, "\177ELF\002", 5);
  cubin[8] = (char)c->abi;
  memcpy(cubin + 18, &c->machine, sizeof c->machine);
  memcpy(cubin + 20, &c->version, sizeof c->version);
}

// A file that ptxas has made: all of it, the memory that it lies in being no larger.
static char *read_cubin(size_t *size) {
  FILE *f = fopen(KL_CUBIN, "rb");
  EXPECT(f && fseek(f, 0, SEEK_END) == 0, "%s", KL_CUBIN);
  *size = (size_t)ftell(f);
  char *bytes = malloc(*size);
  rewind(f);
  ck_assert_uint_eq(fread(bytes, 1, *size, f), *size);
  fclose(f);
  return bytes;
}

// The release that the tool itself has written into the file, as words.
static int driver_by_words(const char *bytes, size_t size) {
  static const char before[] = ", release ";
  const char *at = memmem(bytes, size, before, sizeof before - 1);
  ck_assert_ptr_nonnull(at);
  return 1000 * atoi(at + sizeof before - 1);
}

START_TEST(machine_code_names_its_driver) {
  static const head_case heads[] = {{7, 190, 118, 11000}, {7, 190, 120, 12000},   {7, 190, 128, 12000},
                                    {8, 190, 1, 0},       {9, 190, 128, 0},       {7, 62, 128, 0},
                                    {7, 190, 0, 0},       {7, 190, UINT32_MAX, 0}};
  char cubin[64];
  size_t size;
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    make_head(&heads[i], cubin);
    ck_assert_int_eq(kiln_cubin_driver_version(cubin, sizeof cubin), heads[i].driver);
    ck_assert_int_eq(kiln_cubin_driver_version(cubin, sizeof cubin - 1), 0);
  }
  ck_assert_int_eq(kiln_cubin_driver_version(NULL, 64), 0);
  char *made = read_cubin(&size);
  ck_assert_int_eq(kiln_cubin_driver_version(made, size), driver_by_words(made, size));
  char *note = memmem(made, size, ".note.nv.cuinfo", 16);
  ck_assert_ptr_nonnull(note);
  memcpy(note, ".note.nv.cuver", 15); // what CUDA 12.8 has for its newest GPUs, without the release
  ck_assert_int_eq(kiln_cubin_driver_version(made, size), 12000);
  free(made);
}
END_TEST

// Any byte changed, any length: a number or 0, and nothing is read behind the end.
START_TEST(damaged_machine_code_names_none_or_some) {
  size_t size, known = 0;
  char *made = read_cubin(&size);
  for (size_t n = 0; n <= size; n++) {
    char *part = malloc(n ? n : 1);
    memcpy(part, made, n);
    known += kiln_cubin_driver_version(part, n) != 0;
    free(part);
  }
  ck_assert_uint_lt(known, size / 2); // without the table of sections, which lies behind all of them, there is none
  for (size_t i = 0; i < size; i++)
    for (int bit = 0; bit < 8; bit++) {
      made[i] ^= (char)(1 << bit);
      int driver = kiln_cubin_driver_version(made, size);
      EXPECT(driver >= 0 && driver % 1000 == 0, "byte %zu: %d", i, driver);
      made[i] ^= (char)(1 << bit);
    }
  free(made);
}
END_TEST

// A driver before the release of the tools that made the code is told before it sees it.
START_TEST(machine_code_needs_a_driver) {
  process p = {0};
  size_t size;
  char *made = read_cubin(&size);
  S.version = 12090;
  kiln_driver_params dp = {.struct_size = sizeof dp, .resolve = standin_resolve, .initialize = true};
  EXPECT(kiln_driver_open(cx, &dp, &p.d) == KILN_OK && kiln_device_open(cx, p.d, 0, &p.dev) == KILN_OK &&
             kiln_cuda_kernel_create(cx, p.d, artifact, kiln_device_context(p.dev), &p.k) == KILN_OK,
         "%s", last_finding());
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubin(cx, p.k, made, size), KILN_E_DEVICE);
  EXPECT(strstr(last_finding(), "of CUDA 13's tools: expected a driver for CUDA 13.0 or newer, found one for 12.9"),
         "%s", last_finding());
  ck_assert_int_eq(S.loads, 0);
  char older[64];
  make_head(&(head_case){7, 190, 129, 12000}, older);
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubin(cx, p.k, older, sizeof older), KILN_OK);
  close_process(&p);
  free(made);
  ck_assert(standin_is_clean());
}
END_TEST

// --- kernels for less alignment -------------------------------------------------------------------------------------

static kiln_artifact *compile_both(void) {
  kiln_module *m = parse("HloModule m\nENTRY e { p = f32[1024] parameter(0) ROOT r = f32[1024] negate(p) }\n");
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90", .least_align = 4};
  kiln_artifact *a = NULL;
  EXPECT(kiln_compile(cx, m, &p, &a) == KILN_OK && kiln_artifact_less(a), "%s", last_finding());
  kiln_module_destroy(&m);
  return a;
}

static void launch_at(kiln_cuda_kernel *k, uint64_t from, uint64_t to) {
  kiln_cuda_launch_params lp = {.struct_size = sizeof lp, .parameters = &from, .results = &to};
  EXPECT(kiln_cuda_kernel_launch(cx, k, &lp) == KILN_OK, "%s", last_finding());
}

// Both have code of their own, and launches take it by the buffers' alignment.
START_TEST(cubins_of_two_alignments) {
  static char wide[64] = "\177ELF\002", less[64] = "\177ELF\002";
  static float x[1028], y[1028];
  kiln_cubin cubins[] = {{wide, sizeof wide}, {less, sizeof less}, {less, sizeof less}};
  kiln_artifact *both = compile_both();
  process p = {0};
  uint64_t from = ((uint64_t)(uintptr_t)x + 15) / 16 * 16, to = ((uint64_t)(uintptr_t)y + 15) / 16 * 16;
  kiln_driver_params dp = {.struct_size = sizeof dp, .resolve = standin_resolve, .initialize = true};
  EXPECT(kiln_driver_open(cx, &dp, &p.d) == KILN_OK && kiln_device_open(cx, p.d, 0, &p.dev) == KILN_OK &&
             kiln_cuda_kernel_create(cx, p.d, both, kiln_device_context(p.dev), &p.k) == KILN_OK,
         "%s", last_finding());
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubin(cx, p.k, wide, sizeof wide), KILN_E_INVALID);
  EXPECT(strstr(last_finding(), "expected two cubins"), "%s", last_finding());
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubins(cx, p.k, cubins, 0), KILN_E_INVALID);
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubins(cx, p.k, cubins, 3), KILN_E_INVALID);
  cubins[1].size = 63;
  ck_assert_int_eq(kiln_cuda_kernel_prepare_cubins(cx, p.k, cubins, 2), KILN_E_INVALID);
  cubins[1].size = 64;
  ck_assert_int_eq(S.loads, 0);
  EXPECT(kiln_cuda_kernel_prepare_cubins(cx, p.k, cubins, 2) == KILN_OK, "%s", last_finding());
  ck_assert_int_eq(S.loads, 2);
  ck_assert(S.images[0] == less && S.images[1] == wide);
  launch_at(p.k, from, to);
  CUfunction by_wide = S.function;
  launch_at(p.k, from + 4, to);
  ck_assert(S.function != by_wide);
  ck_assert_int_eq(S.compiled, 0);
  close_process(&p);
  kiln_artifact_destroy(&both);
  ck_assert(standin_is_clean());
}
END_TEST

// --- by an assembler of the caller's --------------------------------------------------------------------------------

typedef struct assembler {
  bool fails;
  const char *log;
  const void *cubin;
  size_t size;
  int calls; // what follows is what it was called with
  char target[16];
  const char *ptx;
  size_t ptx_size;
} assembler;

static bool by_assembler(void *user, const char *target, const char *ptx, size_t size, kiln_assembly *out) {
  assembler *own = user;
  own->calls++;
  snprintf(own->target, sizeof own->target, "%s", target);
  own->ptx = ptx, own->ptx_size = size;
  if (out->struct_size != sizeof *out || out->cubin || out->size || out->log || strlen(ptx) != size) return false;
  out->log = own->log;
  out->cubin = own->cubin;
  out->size = own->size;
  return !own->fails;
}

START_TEST(the_callers_assembler) {
  static const char code[64] = "\177ELF\002", *words = "ptxas fatal: no such thing";
  assembler own = {.cubin = code, .size = sizeof code};
  kiln_assemble_params p = {
      .struct_size = sizeof p, .library = "/nowhere/lib.so", .assemble = by_assembler, .user = &own};
  void *cubin;
  size_t size, n;
  EXPECT(kiln_artifact_assemble(cx, artifact, &p, &cubin, &size) == KILN_OK, "%s", last_finding());
  ck_assert(size == sizeof code && cubin != code && memcmp(cubin, code, size) == 0);
  ck_assert(own.ptx == kiln_artifact_text(artifact, KILN_TEXT_PTX, &n) && own.ptx_size == n && own.calls == 1);
  ck_assert_str_eq(own.target, "sm_90");
  kiln_artifact_bytes_free(cx, cubin, size);
  own.fails = true;
  ck_assert_int_eq(kiln_artifact_assemble(cx, artifact, &p, &cubin, &size), KILN_E_DEVICE);
  EXPECT(!cubin && !size && strstr(last_finding(), "the caller's assembler has failed"), "%s", last_finding());
  own.log = words;
  ck_assert_int_eq(kiln_artifact_assemble(cx, artifact, &p, &cubin, &size), KILN_E_DEVICE);
  EXPECT(strstr(last_finding(), words), "%s", last_finding());
  own = (assembler){.cubin = NULL, .size = 64};
  ck_assert_int_eq(kiln_artifact_assemble(cx, artifact, &p, &cubin, &size), KILN_E_DEVICE);
  EXPECT(strstr(last_finding(), "has made no machine code"), "%s", last_finding());
  own = (assembler){.cubin = code, .size = 63};
  ck_assert_int_eq(kiln_artifact_assemble(cx, artifact, &p, &cubin, &size), KILN_E_DEVICE);
  EXPECT(!cubin && !size && strstr(last_finding(), "63 bytes that are no whole cubin"), "%s", last_finding());
}
END_TEST

// --- by nvJitLink ---------------------------------------------------------------------------------------------------

static kiln_status assemble(const kiln_artifact *a, const char *library, void **cubin, size_t *size) {
  kiln_assemble_params p = {.struct_size = sizeof p, .library = library};
  return kiln_artifact_assemble(cx, a, &p, cubin, size);
}

// Of the stand-in for it, which is loaded once and for all.
static linker_account *account(void) {
  void *library = dlopen(KL_LINKER, RTLD_NOW | RTLD_LOCAL);
  linker_account *l = library ? dlsym(library, "linker") : NULL;
  EXPECT(l, "%s", KL_LINKER);
  *l = (linker_account){0};
  return l;
}

START_TEST(a_toolkits_library_assembles) {
  linker_account *l = account();
  process p = {0};
  void *cubin;
  size_t size, text;
  kiln_artifact_text(artifact, KILN_TEXT_PTX, &text);
  EXPECT(assemble(artifact, KL_LINKER, &cubin, &size) == KILN_OK, "%s", last_finding());
  ck_assert_uint_eq(size, LINKER_CUBIN_SIZE);
  ck_assert_str_eq(l->option, "-arch=sm_90");
  EXPECT(l->is_ptx && l->ptx_size == text && l->alive == 0, "%zu bytes of PTX", l->ptx_size);
  kiln_driver_params dp = {.struct_size = sizeof dp, .resolve = standin_resolve, .initialize = true};
  EXPECT(kiln_driver_open(cx, &dp, &p.d) == KILN_OK && kiln_device_open(cx, p.d, 0, &p.dev) == KILN_OK &&
             kiln_cuda_kernel_create(cx, p.d, artifact, kiln_device_context(p.dev), &p.k) == KILN_OK &&
             kiln_cuda_kernel_prepare_cubin(cx, p.k, cubin, size) == KILN_OK,
         "%s", last_finding());
  ck_assert_int_eq(S.compiled, 0);
  close_process(&p);
  kiln_artifact_bytes_free(cx, cubin, size);
}
END_TEST

START_TEST(a_toolkits_library_fails) {
  linker_account *l = account();
  void *cubin;
  size_t size;
  for (int k = 1; k <= 5; k++) { // create, add, complete, size, take
    *l = (linker_account){.fail_at = k, .log = k % 2 ? "ptxas fatal: no such \033[1mthing" : NULL};
    ck_assert_int_eq(assemble(artifact, KL_LINKER, &cubin, &size), KILN_E_DEVICE);
    EXPECT(!cubin && !size && l->alive == 0, "call %d: %d handles", k, l->alive);
    EXPECT(strstr(last_finding(), "failed with 7"), "call %d: %s", k, last_finding());
    EXPECT(k % 2 == 0 || k == 1 || strstr(last_finding(), "ptxas fatal"), "call %d: %s", k, last_finding());
    kiln_diagnostics_clear(cx);
  }
  *l = (linker_account){.makes_nothing = true};
  ck_assert_int_eq(assemble(artifact, KL_LINKER, &cubin, &size), KILN_E_DEVICE);
  EXPECT(strstr(last_finding(), "has made no machine code"), "%s", last_finding());
}
END_TEST

START_TEST(no_library_that_assembles) {
  kiln_artifact *host = compile("negate", "host");
  kiln_assemble_params none = {.struct_size = 0};
  void *cubin;
  size_t size;
  ck_assert_int_eq(assemble(artifact, "/nowhere/libnvJitLink.so", &cubin, &size), KILN_E_UNSUPPORTED);
  EXPECT(strstr(last_finding(), "/nowhere/libnvJitLink.so"), "%s", last_finding());
  ck_assert_int_eq(assemble(artifact, "libm.so.6", &cubin, &size), KILN_E_UNSUPPORTED);
  EXPECT(strstr(last_finding(), "libm.so.6 has no function nvJitLinkCreate"), "%s", last_finding());
  ck_assert_int_eq(assemble(host, KL_LINKER, &cubin, &size), KILN_E_INVALID);
  ck_assert_int_eq(kiln_artifact_assemble(cx, artifact, &none, &cubin, &size), KILN_E_INVALID);
  kiln_artifact_destroy(&host);
}
END_TEST

// NVIDIA's own, where there is one: the kernel is in what it makes, and what is no PTX is told.
START_TEST(nvidias_library_assembles) {
  static const char *const places[] = {NULL, "/usr/local/cuda/lib64/libnvJitLink.so",
                                       "/usr/local/cuda/lib/libnvJitLink.so"};
  kiln_status st = KILN_E_UNSUPPORTED;
  void *cubin = NULL;
  size_t size = 0;
  for (size_t i = 0; i < 3 && st == KILN_E_UNSUPPORTED; i++) st = assemble(artifact, places[i], &cubin, &size);
  if (st == KILN_E_UNSUPPORTED) return;
  EXPECT(st == KILN_OK, "%s", last_finding());
  const char *kernel = kiln_artifact_manifest(artifact)->launches[0].kernel;
  EXPECT(size > 64 && memcmp(cubin, "\177ELF\002", 5) == 0 && memmem(cubin, size, kernel, strlen(kernel)), "%zu bytes",
         size);
  ck_assert_int_eq(kiln_cubin_driver_version(cubin, size), driver_by_words(cubin, size));
  kiln_artifact_bytes_free(cx, cubin, size);
}
END_TEST

int main(void) {
  return RUN_TESTS("cubins", EACH(setup, teardown), {the_drivers_compiler_is_paid_once}, {damaged_code_is_made_again},
                   {refused_code_is_dropped}, {every_call_may_fail}, {without_a_folder}, {found_code_runs},
                   {cubins_of_the_callers}, {machine_code_names_its_driver}, {damaged_machine_code_names_none_or_some},
                   {machine_code_needs_a_driver}, {cubins_of_two_alignments}, {the_callers_assembler},
                   {a_toolkits_library_assembles}, {a_toolkits_library_fails}, {no_library_that_assembles},
                   {nvidias_library_assembles});
}
