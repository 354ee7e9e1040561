// What serves several threads at once, for ThreadSanitizer to watch: a context each, and between them artifacts,
// kernels on the host and kernels behind a driver.
//
// The tests run in order, in one process: the first one is also the first use of LLVM.
//
// All test fusions and examples are compiled, or evenly some of them (support/share.h).

#include "support/share.h"
#include "support/standin.h"
#include "support/suite.h"

#include <dirent.h>
#include <kiln/kiln.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, MOST_FILES = 1000, MOST_BUFFERS = 16 };

// --- threads ------------------------------------------------------------------------------------------------------

typedef struct worker {
  int id;
  pthread_t thread;
  kiln_context *cx;
  void (*body)(struct worker *);
  char failure[1000]; // what was wrong first; Check's own assertions serve the main thread only
} worker;

static pthread_barrier_t together;

__attribute__((format(printf, 2, 3))) static void blame(worker *w, const char *format, ...) {
  va_list list;
  if (w->failure[0]) return;
  va_start(list, format);
  vsnprintf(w->failure, sizeof w->failure, format, list);
  va_end(list);
}

static const char *said(const kiln_context *cx) {
  const kiln_diagnostic *d = kiln_diagnostics_get(cx, 0);
  return d ? d->message : "";
}

#define WORKS(w, call)                                                                                                 \
  do {                                                                                                                 \
    kiln_status status_ = (call);                                                                                      \
    if (status_ != KILN_OK) blame(w, "%s: status %d: %s", #call, status_, said((w)->cx));                              \
  } while (0)

static void *work(void *arg) {
  worker *w = arg;
  w->cx = kiln_context_create(NULL);
  pthread_barrier_wait(&together);
  w->body(w);
  if (kiln_diagnostics_count(w->cx)) blame(w, "left behind: %s", said(w->cx));
  kiln_context_destroy(&w->cx);
  return NULL;
}

// Runs `body` on all threads at once, each with a context of its own.
static void at_once(void (*body)(worker *)) {
  worker all[THREADS] = {0};
  pthread_barrier_init(&together, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    all[i].id = i;
    all[i].body = body;
    ck_assert_int_eq(pthread_create(&all[i].thread, NULL, work, &all[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
  pthread_barrier_destroy(&together);
  for (int i = 0; i < THREADS; i++) ck_assert_msg(!all[i].failure[0], "thread %d: %s", i, all[i].failure);
}

// --- files --------------------------------------------------------------------------------------------------------

typedef struct file {
  char path[500];
  char *text;
  size_t size;
} file;

static file files[MOST_FILES];
static int nfiles;

static void read_file(const char *folder, const char *name) {
  file *f = &files[nfiles++];
  ck_assert_int_le(nfiles, MOST_FILES);
  snprintf(f->path, sizeof f->path, "%s/%s", folder, name);
  FILE *in = fopen(f->path, "rb");
  ck_assert_msg(in != NULL, "%s", f->path);
  fseek(in, 0, SEEK_END);
  f->size = (size_t)ftell(in);
  rewind(in);
  f->text = malloc(f->size + 1);
  ck_assert_uint_eq(fread(f->text, 1, f->size, in), f->size);
  fclose(in);
}

static int is_hlo(const struct dirent *e) {
  const char *dot = strrchr(e->d_name, '.');
  return dot && strcmp(dot, ".hlo") == 0;
}

static void read_folder(const char *folder) {
  struct dirent **list;
  int n = scandir(folder, &list, is_hlo, alphasort);
  ck_assert_msg(n > 0, "%s has no fusions", folder);
  for (int i = 0; i < n; i++) {
    read_file(folder, list[i]->d_name);
    free(list[i]);
  }
  free(list);
}

static void read_files(void) {
  int kept = 0;
  read_folder(KL_TESTS "/fusions");
  read_folder(KL_EXAMPLES);
  for (int i = 0; i < nfiles; i++) {
    if (share_has((uint64_t)i, 6))
      files[kept++] = files[i];
    else
      free(files[i].text);
  }
  nfiles = kept;
}

static void free_files(void) {
  for (int i = 0; i < nfiles; i++) free(files[i].text);
}

// --- compiling ----------------------------------------------------------------------------------------------------

enum { TARGETS = 3 };
static const char *const targets[TARGETS] = {"sm_90", "sm_80", "host"};
static const kiln_text_kind kinds[] = {KILN_TEXT_PTX, KILN_TEXT_PLAN, KILN_TEXT_LLVM};

static kiln_status compile(kiln_context *cx, const file *f, const char *target, kiln_artifact **out) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .keep = KILN_KEEP_PLAN | KILN_KEEP_LLVM};
  kiln_module *m = NULL;
  kiln_status st = kiln_module_parse(cx, f->path, f->text, f->size, &m);
  if (st == KILN_OK) st = kiln_compile(cx, m, &p, out);
  kiln_module_destroy(&m);
  return st;
}

static kiln_artifact *compiled[THREADS][MOST_FILES][TARGETS];

// Odd threads go backwards, and each begins elsewhere.
static void compile_all(worker *w) {
  int first = w->id * nfiles / THREADS;
  for (int i = 0; i < nfiles; i++) {
    int at = (w->id % 2 ? first + nfiles - i : first + i) % nfiles;
    for (int k = 0; k < TARGETS; k++) {
      int t = (w->id + k) % TARGETS;
      if (compile(w->cx, &files[at], targets[t], &compiled[w->id][at][t]) != KILN_OK)
        return blame(w, "%s for %s: %s", files[at].path, targets[t], said(w->cx));
    }
  }
}

static bool same_text(const kiln_artifact *a, const kiln_artifact *b, kiln_text_kind kind) {
  size_t na = 0, nb = 0;
  const char *ta = kiln_artifact_text(a, kind, &na), *tb = kiln_artifact_text(b, kind, &nb);
  return ta && tb ? na == nb && memcmp(ta, tb, na) == 0 : !ta && !tb;
}

START_TEST(compiling_is_the_same_as_alone) {
  read_files();
  at_once(compile_all);
  kiln_context *cx = kiln_context_create(NULL);
  for (int i = 0; i < nfiles; i++)
    for (int t = 0; t < TARGETS; t++) {
      kiln_artifact *alone = NULL;
      ck_assert_msg(compile(cx, &files[i], targets[t], &alone) == KILN_OK, "%s", said(cx));
      ck_assert_int_eq(kiln_artifact_text(alone, KILN_TEXT_PTX, NULL) != NULL, strcmp(targets[t], "host") != 0);
      for (int w = 0; w < THREADS; w++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
          ck_assert_msg(same_text(alone, compiled[w][i][t], kinds[k]), "%s for %s: thread %d has another text %d",
                        files[i].path, targets[t], w, kinds[k]);
        kiln_artifact_destroy(&compiled[w][i][t]);
      }
      kiln_artifact_destroy(&alone);
    }
  kiln_context_destroy(&cx);
  free_files();
}
END_TEST

// --- diagnostics --------------------------------------------------------------------------------------------------

// Three findings that name the thread and the round: two of the text, and a target.
static void complain(worker *w, int round) {
  char name[40], mine[40], text[200];
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  snprintf(name, sizeof name, "thread%d.hlo", w->id);
  snprintf(mine, sizeof mine, "own_%d_%d_", w->id, round);
  snprintf(text, sizeof text, "HloModule m\nENTRY e {\n  ROOT r = f32[4] negate(%sx)\n  s = f32[4] negate(%sy)\n}\n",
           mine, mine);
  if (kiln_module_parse(w->cx, name, text, strlen(text), &m) != KILN_E_INVALID) blame(w, "a wrong module is taken");
  if (kiln_diagnostics_count(w->cx) != 2) blame(w, "2 findings expected: %zu", kiln_diagnostics_count(w->cx));
  static const char good[] = "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] negate(p)\n}\n";
  kiln_compile_params p = {.struct_size = sizeof p, .target = mine};
  WORKS(w, kiln_module_parse(w->cx, name, good, strlen(good), &m));
  if (kiln_compile(w->cx, m, &p, &a) != KILN_E_INVALID) blame(w, "a wrong target is taken");
  if (kiln_diagnostics_count(w->cx) != 3) blame(w, "3 findings expected: %zu", kiln_diagnostics_count(w->cx));
  p.target = "sm_90";
  WORKS(w, kiln_compile(w->cx, m, &p, &a));
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  if (kiln_diagnostics_count(w->cx) != 3) blame(w, "a finding about right input");
  for (size_t i = 0; i < 3; i++) {
    const kiln_diagnostic *d = kiln_diagnostics_get(w->cx, i);
    if (d && !strstr(d->message, mine)) blame(w, "expected a finding of %s: %s", mine, d->text);
    if (d && i < 2 && strcmp(d->file, name) != 0) blame(w, "expected a finding in %s: %s", name, d->text);
  }
  kiln_diagnostics_clear(w->cx);
}

static void complain_often(worker *w) {
  for (int i = 0; i < 100; i++) complain(w, i);
}

START_TEST(diagnostics_are_the_contexts_own) {
  at_once(complain_often);
}
END_TEST

// --- one artifact, one kernel -------------------------------------------------------------------------------------

// The first is large enough for threads of its own, the second needs scratch memory, the third has narrow elements and
// two results, the last no elements.
static const char *const programs[] = {
    "HloModule m\nENTRY e {\n  x = f32[100003] parameter(0)\n  s = f32[100003] logistic(x)\n"
    "  ROOT y = f32[100003] multiply(x, s)\n}\n",
    "HloModule m\nf {\n  p = f32[70,300] parameter(0)\n  ROOT r = f32[70,300] tanh(p)\n}\n"
    "g {\n  p = f32[70,300] parameter(0)\n  ROOT r = f32[300,70] transpose(p), dimensions={1,0}\n}\n"
    "ENTRY e {\n  p = f32[70,300] parameter(0)\n  a = f32[70,300] fusion(p), kind=kLoop, calls=f\n"
    "  ROOT b = f32[300,70] fusion(a), kind=kLoop, calls=g\n}\n",
    "HloModule m\nENTRY e {\n  a = s4[9001] parameter(0)\n  b = bf16[9001] parameter(1)\n"
    "  c = bf16[9001] convert(a)\n  d = bf16[9001] multiply(b, c)\n  n = s4[9001] negate(a)\n"
    "  ROOT t = (bf16[9001], s4[9001]) tuple(d, n)\n}\n",
    "HloModule m\nENTRY e {\n  p = f32[0,5] parameter(0)\n  ROOT r = f32[0,5] negate(p)\n}\n",
};
enum { PROGRAMS = sizeof programs / sizeof *programs, ROUNDS = 20 };

typedef struct results {
  void *at[MOST_BUFFERS];
} results;

static struct program {
  size_t nparams, nresults;
  void *parameters[MOST_BUFFERS];
  int64_t bytes[MOST_BUFFERS]; // of each result
  results right;
  kiln_artifact *artifact;
  kiln_kernel *kernel;
} shared[PROGRAMS];

// Neither NULL nor empty, and with nothing in it.
static void *buffer(int64_t bytes) {
  size_t size = ((size_t)bytes + 64) & ~(size_t)63;
  return memset(aligned_alloc(64, size), 0, size);
}

static results make_results(const struct program *p) {
  results r = {{0}};
  for (size_t i = 0; i < p->nresults; i++) r.at[i] = buffer(p->bytes[i]);
  return r;
}

static void free_results(results *r) {
  for (int i = 0; i < MOST_BUFFERS; i++) free(r->at[i]);
}

static kiln_status run(kiln_context *cx, const kiln_kernel *k, const struct program *p, uint32_t threads,
                       const results *r) {
  kiln_run_params how = {.struct_size = sizeof how, .threads = threads};
  return kiln_kernel_run(cx, k, (const void *const *)p->parameters, r->at, &how);
}

static void make_program(kiln_context *cx, struct program *p, const char *text) {
  kiln_module *m = NULL;
  kiln_compile_params host = {.struct_size = sizeof host, .target = "host"};
  ck_assert_msg(kiln_module_parse(cx, "program", text, strlen(text), &m) == KILN_OK, "%s", said(cx));
  p->nparams = kiln_module_parameter_leaf_count(m);
  p->nresults = kiln_module_result_leaf_count(m);
  for (size_t i = 0; i < p->nparams; i++) {
    p->parameters[i] = buffer(kiln_module_parameter_leaf_bytes(m, i));
    ck_assert(kiln_module_parameter_leaf_fill(m, i, 1, p->parameters[i]));
  }
  for (size_t i = 0; i < p->nresults; i++) p->bytes[i] = kiln_module_result_leaf_bytes(m, i);
  ck_assert_msg(kiln_compile(cx, m, &host, &p->artifact) == KILN_OK, "%s", said(cx));
  ck_assert_msg(kiln_kernel_load(cx, p->artifact, &p->kernel) == KILN_OK, "%s", said(cx));
  p->right = make_results(p);
  ck_assert_int_eq(run(cx, p->kernel, p, 1, &p->right), KILN_OK);
  size_t wrong = 1;
  kiln_mismatch found;
  ck_assert_int_eq(kiln_module_check(cx, m, (const void *const *)p->parameters, (const void *const *)p->right.at,
                                     &found, 1, &wrong, NULL),
                   KILN_OK);
  ck_assert_uint_eq(wrong, 0);
  kiln_module_destroy(&m);
}

static void make_programs(void) {
  kiln_context *cx = kiln_context_create(NULL);
  for (size_t i = 0; i < PROGRAMS; i++) make_program(cx, &shared[i], programs[i]);
  kiln_context_destroy(&cx);
}

static void free_programs(void) {
  for (size_t i = 0; i < PROGRAMS; i++) {
    kiln_kernel_destroy(&shared[i].kernel);
    kiln_artifact_destroy(&shared[i].artifact);
    free_results(&shared[i].right);
    for (size_t k = 0; k < MOST_BUFFERS; k++) free(shared[i].parameters[k]);
  }
}

static void run_and_compare(worker *w, const struct program *p, const kiln_kernel *k, uint32_t threads) {
  results r = make_results(p);
  WORKS(w, run(w->cx, k, p, threads, &r));
  for (size_t i = 0; i < p->nresults; i++)
    if (memcmp(r.at[i], p->right.at[i], (size_t)p->bytes[i]) != 0)
      blame(w, "program %d: result %zu differs", (int)(p - shared), i);
  free_results(&r);
}

static void load_and_run(worker *w) {
  for (int round = 0; round < ROUNDS; round++) {
    const struct program *p = &shared[(round + w->id) % PROGRAMS];
    kiln_kernel *k = NULL;
    WORKS(w, kiln_kernel_load(w->cx, p->artifact, &k));
    if (k) run_and_compare(w, p, k, 1 + (uint32_t)round % 3);
    kiln_kernel_destroy(&k);
  }
}

static void run_often(worker *w) {
  for (int round = 0; round < ROUNDS; round++)
    for (size_t i = 0; i < PROGRAMS; i++) run_and_compare(w, &shared[i], shared[i].kernel, 1 + (uint32_t)round % 3);
}

START_TEST(one_artifact_is_loaded_by_all) {
  make_programs();
  at_once(load_and_run);
  free_programs();
}
END_TEST

START_TEST(one_kernel_is_run_by_all) {
  make_programs();
  at_once(run_often);
  free_programs();
}
END_TEST

// --- one kernel behind a driver -----------------------------------------------------------------------------------

static kiln_driver *driver;
static kiln_cuda_kernel *cuda_kernel;
static uint64_t memory[3 * THREADS][1024] __attribute__((aligned(256)));
#define AT(i) ((uint64_t)(uintptr_t)memory[i])

// Launches of this thread, and those whose arguments are its own buffers.
static _Thread_local uint64_t in, scratch, out;
static _Thread_local void *stream;
static _Thread_local long launches, right_launches;

static void count_launch(const CUlaunchConfig *c, void **arguments) {
  uint64_t from = launches % 2 ? scratch : in, to = launches % 2 ? out : scratch;
  launches++;
  right_launches += c->hStream == stream && memcmp(arguments[0], &from, 8) == 0 && memcmp(arguments[1], &to, 8) == 0;
}

static void make_cuda_kernel(kiln_context *cx, kiln_device **dev) {
  static const char text[] = "HloModule m\nf {\n  p = f32[1024] parameter(0)\n  ROOT r = f32[1024] negate(p)\n}\n"
                             "ENTRY e {\n  p = f32[1024] parameter(0)\n  a = f32[1024] fusion(p), kind=kLoop, calls=f\n"
                             "  ROOT b = f32[1024] fusion(a), kind=kLoop, calls=f\n}\n";
  kiln_driver_params p = {.struct_size = sizeof p, .initialize = true, .resolve = standin_resolve};
  kiln_compile_params how = {.struct_size = sizeof how, .separate_launches = true};
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  ck_assert_msg(kiln_driver_open(cx, &p, &driver) == KILN_OK && kiln_device_open(cx, driver, 0, dev) == KILN_OK &&
                    kiln_module_parse(cx, "two", text, strlen(text), &m) == KILN_OK &&
                    kiln_compile(cx, m, &how, &a) == KILN_OK &&
                    kiln_cuda_kernel_create(cx, driver, a, kiln_device_context(*dev), &cuda_kernel) == KILN_OK,
                "%s", said(cx));
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}

// Even threads prepare first, odd ones leave it to the launch.
static void launch_often(worker *w) {
  in = AT(3 * w->id);
  scratch = AT(3 * w->id + 1);
  out = AT(3 * w->id + 2);
  stream = &in;
  launches = right_launches = 0;
  kiln_cuda_resources res = {.struct_size = sizeof res};
  kiln_cuda_launch_params p = {
      .struct_size = sizeof p, .stream = stream, .parameters = &in, .results = &out, .scratch = scratch};
  if (w->id % 2 == 0) WORKS(w, kiln_cuda_kernel_prepare(w->cx, cuda_kernel));
  for (int i = 0; i < ROUNDS; i++) WORKS(w, kiln_cuda_kernel_launch(w->cx, cuda_kernel, &p));
  WORKS(w, kiln_cuda_kernel_resources(w->cx, cuda_kernel, 1, &res));
  if (launches != 2 * ROUNDS || right_launches != launches)
    blame(w, "expected %d launches of this thread's buffers, found %ld, %ld right", 2 * ROUNDS, launches,
          right_launches);
}

// One frozen launch is everybody's, each on a stream of his own.
static kiln_cuda_frozen *frozen;

static void launch_frozen_often(worker *w) {
  in = AT(0);
  scratch = AT(1);
  out = AT(2);
  stream = &in;
  launches = right_launches = 0;
  for (int i = 0; i < 10 * ROUNDS; i++) WORKS(w, kiln_cuda_frozen_launch(w->cx, frozen, stream));
  if (launches != 20 * ROUNDS || right_launches != launches)
    blame(w, "expected %d launches on this thread's stream, found %ld, %ld right", 20 * ROUNDS, launches,
          right_launches);
}

START_TEST(one_frozen_launch_is_launched_by_all) {
  kiln_context *cx = kiln_context_create(NULL);
  kiln_device *dev = NULL;
  uint64_t from = AT(0), to = AT(2);
  kiln_cuda_launch_params p = {.struct_size = sizeof p, .parameters = &from, .results = &to, .scratch = AT(1)};
  standin_reset();
  standin_state.launched = count_launch;
  make_cuda_kernel(cx, &dev);
  ck_assert_int_eq(kiln_cuda_frozen_create(cx, cuda_kernel, &p, &frozen), KILN_OK);
  at_once(launch_frozen_often);
  ck_assert_int_eq(standin_state.launches, 20 * ROUNDS * THREADS);
  kiln_cuda_frozen_destroy(&frozen);
  kiln_cuda_kernel_destroy(&cuda_kernel);
  kiln_device_close(&dev);
  kiln_driver_close(&driver);
  ck_assert(standin_is_clean());
  kiln_context_destroy(&cx);
}
END_TEST

// Libraries, and the modules of old drivers.
START_TEST(one_cuda_kernel_is_loaded_once) {
  static const int versions[] = {13000, 11080};
  for (int i = 0; i < 20; i++) {
    kiln_context *cx = kiln_context_create(NULL);
    kiln_device *dev = NULL;
    standin_reset();
    standin_state.version = versions[i % 2];
    standin_state.launched = count_launch;
    make_cuda_kernel(cx, &dev);
    at_once(launch_often);
    ck_assert_int_eq(standin_state.loads, 1);
    ck_assert_int_eq(standin_state.launches, 2 * ROUNDS * THREADS);
    kiln_cuda_kernel_destroy(&cuda_kernel);
    kiln_device_close(&dev);
    kiln_driver_close(&driver);
    ck_assert(standin_is_clean());
    kiln_context_destroy(&cx);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("threads", NO_FRAME, {compiling_is_the_same_as_alone}, {one_artifact_is_loaded_by_all},
                   {one_kernel_is_run_by_all}, {diagnostics_are_the_contexts_own}, {one_cuda_kernel_is_loaded_once},
                   {one_frozen_launch_is_launched_by_all});
}
