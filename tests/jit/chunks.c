// Code of many kernels by several threads: the same bytes for any number of them, whatever is asked for beside the
// code; what is wrong in one chunk; cancelling; the caller's memory, which no other thread touches. For ThreadSanitizer
// to watch.
#include "base/threads.h"
#include "emit/harness.h"
#include "jit/chunks.h"
#include "lower/choose/choose.h"
#include "support/context.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

// Kernels of some 1600 instructions each, of which those for GPUs call functions: three chunks.
enum { MANY = 10, DEPTH = 40, ELEMENTS = 5000 };
static const char scattering[] =
    "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
    "g { x = f32[99,64] parameter(0) j = s32[9,1] parameter(1) u = f32[9,64] parameter(2)\n"
    "  ROOT s = f32[99,64] scatter(x, j, u), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }\n";

static char *many_kernels(int kernels, bool scatters) {
  static const char *const ops[] = {"tanh", "sine", "exponential", "cosine", "logistic", "negate"};
  char *text = NULL;
  size_t size;
  FILE *to = open_memstream(&text, &size);
  fprintf(to, "HloModule many\n");
  for (int i = 0; i < kernels; i++) {
    int n = ELEMENTS + i, long_one = i % 3 == 0;
    fprintf(to, "f%d {\n  a0 = f32[%d] parameter(0)\n", i, n);
    for (int k = 1; k < DEPTH; k++)
      if (k % 2)
        fprintf(to, "  a%d = f32[%d] %s(a%d)\n", k, n, ops[long_one || k < DEPTH / 4 ? (i + k / 2) % 5 : 5], k - 1);
      else
        fprintf(to, "  a%d = f32[%d] multiply(a%d, a%d)\n", k, n, k - 1, k / 2);
    fprintf(to, "  ROOT r = f32[%d] add(a%d, a0)\n}\n", n, DEPTH - 1);
  }
  fprintf(to, "%s", scatters ? scattering : "");
  fprintf(to, "ENTRY e {\n");
  for (int i = 0; i < kernels; i++)
    fprintf(to, "  x%d = f32[%d] parameter(%d)\n  y%d = f32[%d] fusion(x%d), kind=kLoop, calls=f%d\n", i, ELEMENTS + i,
            i, i, ELEMENTS + i, i, i);
  if (scatters)
    fprintf(to,
            "  x = f32[99,64] parameter(%d)\n  j = s32[9,1] parameter(%d)\n  u = f32[9,64] parameter(%d)\n"
            "  y = f32[99,64] fusion(x, j, u), kind=kLoop, calls=g\n",
            kernels, kernels + 1, kernels + 2);
  fprintf(to, "  ROOT t = (");
  for (int i = 0; i < kernels; i++) fprintf(to, "%sf32[%d]", i ? ", " : "", ELEMENTS + i);
  fprintf(to, "%s) tuple(", scatters ? ", f32[99,64]" : "");
  for (int i = 0; i < kernels; i++) fprintf(to, "%sy%d", i ? ", " : "", i);
  fprintf(to, "%s)\n}\n", scatters ? ", y" : "");
  fclose(to);
  return text;
}

static kiln_module *parse_many(int kernels) {
  char *text = many_kernels(kernels, false);
  kiln_module *m = parse(text);
  free(text);
  return m;
}

static kiln_artifact *compiled(const kiln_module *m, const kiln_compile_params *how, uint32_t n) {
  kiln_artifact *a = NULL;
  kiln_compile_params p = *how;
  p.threads = n;
  EXPECT(kiln_compile(cx, m, &p, &a) == KILN_OK, "%s", last_finding());
  return a;
}

// --- host code that is run seldom -----------------------------------------------------------------------------------

static const char seldom_and_often[] =
    "HloModule seldom\n"
    "few { a = f32[650] parameter(0)  ROOT r = f32[650] sine(a) }\n"
    "many { a = f32[640000] parameter(0)  ROOT r = f32[640000] sine(a) }\n"
    "sums { a = f32[37,9000] parameter(0)  z = f32[] constant(0)  ROOT r = f32[37] reduce(a, z), dimensions={1}, "
    "to_apply=add }\n"
    "again { a = f32[640] parameter(0)  ROOT r = f32[640] cosine(a) }\n"
    "turned { a = f32[630] parameter(0)  v = f32[630] reverse(a), dimensions={0}  ROOT r = f32[630] tanh(v) }\n"
    "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }\n"
    "less { s = (s32[], s32[], f32[630]) parameter(0)  i = s32[] get-tuple-element(s), index=0\n"
    "  n = s32[] get-tuple-element(s), index=1  ROOT r = pred[] compare(i, n), direction=LT }\n"
    "round { s = (s32[], s32[], f32[630]) parameter(0)  i = s32[] get-tuple-element(s), index=0\n"
    "  n = s32[] get-tuple-element(s), index=1  a = f32[630] get-tuple-element(s), index=2  one = s32[] constant(1)\n"
    "  j = s32[] add(i, one)  turns = f32[630] fusion(a), kind=kLoop, calls=turned\n"
    "  ROOT t = (s32[], s32[], f32[630]) tuple(j, n, turns) }\n"
    "ENTRY e {\n"
    "  x = f32[650] parameter(0)  y = f32[640000] parameter(1)  z = f32[37,9000] parameter(2)\n"
    "  w0 = f32[640] parameter(3)  v = f32[630] parameter(4)  n = s32[] parameter(5)\n"
    "  a = f32[650] fusion(x), kind=kLoop, calls=few  b = f32[640000] fusion(y), kind=kLoop, calls=many\n"
    "  c = f32[37] fusion(z), kind=kInput, calls=sums\n";

static bool says_seldom(const char *plan, const char *kernel) {
  const char *at = strstr(plan, kernel);
  ck_assert_msg(at != NULL, "no %s in %s", kernel, plan);
  const char *found = strstr(at, ", run seldom");
  return found && found < strchr(at, '\n');
}

START_TEST(host_code_that_is_run_seldom) {
  enum { TIMES = 90 };
  char *text = NULL;
  size_t size;
  FILE *to = open_memstream(&text, &size);
  fprintf(to, "%s", seldom_and_often);
  for (int i = 1; i <= TIMES; i++) fprintf(to, "  w%d = f32[640] fusion(w%d), kind=kLoop, calls=again\n", i, i - 1);
  fprintf(to,
          "  i = s32[] constant(0)  s = (s32[], s32[], f32[630]) tuple(i, n, v)\n"
          "  t = (s32[], s32[], f32[630]) while(s), condition=less, body=round\n"
          "  u = f32[630] get-tuple-element(t), index=2\n"
          "  ROOT r = (f32[650], f32[640000], f32[37], f32[640], f32[630]) tuple(a, b, c, w%d, u)\n}\n",
          TIMES);
  fclose(to);
  kiln_module *m = parse(text);
  free(text);
  kiln_compile_params p = {.struct_size = sizeof p, .target = "host", .keep = KILN_KEEP_PLAN};
  kiln_artifact *a = compiled(m, &p, 2);
  size_t n;
  const char *plan = kiln_artifact_text(a, KILN_TEXT_PLAN, &n);
  ck_assert(says_seldom(plan, "kernel a_0:"));
  ck_assert(!says_seldom(plan, "kernel b_1:"));  // many elements
  ck_assert(!says_seldom(plan, "kernel c_2:"));  // many rounds
  ck_assert(!says_seldom(plan, "kernel w1_3:")); // many kernels
  ck_assert(!says_seldom(plan, "kernel turns")); // data says how often
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

// --- tasks ----------------------------------------------------------------------------------------------------------

enum { TASKS = 400 };
typedef struct numbered {
  kl_task task;
  int number;
} numbered;
typedef struct tally {
  atomic_int next, times[TASKS], wrong;
} tally;

// They begin in order, but who has begun first may count last.
static void count_task(void *arg, uint32_t worker, kl_task *t) {
  tally *y = arg;
  numbered *x = (numbered *)t;
  int at = atomic_fetch_add(&y->next, 1);
  atomic_fetch_add(&y->times[x->number], 1);
  if (worker >= 5 || abs(at - x->number) >= 5) atomic_store(&y->wrong, 1);
  if (x->number % 50 == 0) usleep(200);
}

static const uint32_t crews[] = {1, 2, 5};
enum { CREWS = sizeof crews / sizeof *crews };

START_TEST(each_task_is_done_once) {
  static numbered all[TASKS];
  for (uint32_t c = 0; c < CREWS; c++) {
    tally y = {0};
    kl_tasks t;
    kl_tasks_begin(&t, crews[c], count_task, &y);
    ck_assert(!kl_tasks_help(&t)); // there is none
    for (int i = 0; i < TASKS; i++) {
      all[i].number = i;
      kl_tasks_add(&t, &all[i].task);
      if (i % 7 == 0) ck_assert(kl_tasks_help(&t) || kl_tasks_done(&t) == (size_t)i + 1);
    }
    while (kl_tasks_help(&t)) {}
    ck_assert(kl_tasks_done(&t) == TASKS && kl_tasks_waiting(&t) == 0);
    kl_tasks_end(&t);
    for (int i = 0; i < TASKS; i++) ck_assert_int_eq(y.times[i], 1);
    ck_assert(crews[c] > 1 || !y.wrong);
    // What has not begun at the end is not done, and the last has not where all wait for the first.
    y = (tally){0};
    kl_tasks_begin(&t, crews[c], count_task, &y);
    for (int i = 0; i < TASKS; i++) kl_tasks_add(&t, &all[i].task);
    kl_tasks_end(&t);
    int done = 0;
    for (int i = 0; i < TASKS; i++) {
      ck_assert(y.times[i] <= 1 && (!i || y.times[i] <= y.times[i - 1]));
      done += y.times[i];
    }
    ck_assert(crews[c] > 1 || !done);
  }
}
END_TEST

// --- bytes ----------------------------------------------------------------------------------------------------------

static void same_artifacts(const kiln_artifact *a, const kiln_artifact *b) {
  void *bytes[2];
  size_t n[2];
  ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes[0], &n[0]), KILN_OK);
  ck_assert_int_eq(kiln_artifact_save(cx, b, &bytes[1], &n[1]), KILN_OK);
  ck_assert(n[0] == n[1] && memcmp(bytes[0], bytes[1], n[0]) == 0);
  for (int i = 0; i < 2; i++) kiln_artifact_bytes_free(cx, bytes[i], n[i]);
  for (kiln_text_kind k = KILN_TEXT_PTX; k <= KILN_TEXT_HLO; k++) {
    const char *x = kiln_artifact_text(a, k, &n[0]), *y = kiln_artifact_text(b, k, &n[1]);
    ck_assert(!x == !y && n[0] == n[1] && (!x || memcmp(x, y, n[0]) == 0));
  }
}

// One module of PTX, in which each function and each kernel is once, and all that is said of the whole.
static void is_one_module(const kiln_artifact *a, bool lines) {
  size_t size;
  const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, &size);
  const kiln_manifest *f = kiln_artifact_manifest(a);
  char line[300];
  ck_assert_uint_eq(strlen(ptx), size);
  ck_assert_uint_eq(occurrences(ptx, ".version "), 1);
  ck_assert_uint_eq(occurrences(ptx, ".target "), 1);
  ck_assert_uint_eq(occurrences(ptx, ".address_size "), 1);
  ck_assert_uint_eq(occurrences(ptx, "\t.file\t"), lines);
  ck_assert_uint_eq(occurrences(ptx, "\t.section\t"), lines);
  ck_assert(lines == (occurrences(ptx, "\t.loc\t") > 0));
  ck_assert_uint_eq(occurrences(ptx, ".entry "), f->launch_count);
  for (size_t i = 0; i < f->launch_count; i++) {
    snprintf(line, sizeof line, ".entry %s(\n", f->launches[i].kernel);
    ck_assert_uint_eq(occurrences(ptx, line), 1);
  }
  unsigned functions = 0;
  for (const char *at = ptx; (at = strstr(at, ".func ")); at++) {
    const char *end = strchr(at, '\n');
    if (end[-1] != '(') continue; // a declaration
    snprintf(line, sizeof line, "%.*s\n", (int)(end - at), at);
    ck_assert_uint_eq(occurrences(ptx, line), 1);
    functions++;
  }
  ck_assert_uint_ge(functions, 4);
}

static const struct {
  const char *target;
  bool lines, programmatic;
  unsigned chunks; // at least
  kiln_numerics numerics;
} ways[] = {{"sm_90", true, true, 3}, {"sm_70", false, false, 2, KILN_NUMERICS_FAST}, {"host", .chunks = 3}};
enum { HOST_WAY = 2, WAYS = sizeof ways / sizeof *ways };

START_TEST(any_number_of_threads_makes_the_same_bytes) {
  kiln_module *m = parse_many(MANY);
  for (size_t w = 0; w < WAYS; w++) {
    kiln_compile_params p = {.struct_size = sizeof p,
                             .target = ways[w].target,
                             .lineinfo = ways[w].lines,
                             .programmatic = ways[w].programmatic,
                             .numerics = ways[w].numerics,
                             .keep = KILN_KEEP_PLAN | KILN_KEEP_LLVM | KILN_KEEP_EXPLAIN | KILN_KEEP_HLO};
    kiln_artifact *one = compiled(m, &p, 1), *other;
    ck_assert_uint_ge(occurrences(kiln_artifact_text(one, KILN_TEXT_LLVM, NULL), "; ModuleID"), ways[w].chunks);
    if (kiln_artifact_text(one, KILN_TEXT_PTX, NULL)) is_one_module(one, ways[w].lines);
    for (uint32_t c = w == HOST_WAY ? 2 : 1; c < CREWS; c++) {
      other = compiled(m, &p, crews[c]);
      same_artifacts(one, other);
      kiln_artifact_destroy(&other);
    }
    kiln_artifact_destroy(&one);
  }
  kiln_module_destroy(&m);
}
END_TEST

// All kernels are of the latest version of PTX that one of them needs: here of the last one, in the last chunk.
START_TEST(the_version_is_the_latest) {
  for (int scatters = 0; scatters < 2; scatters++) {
    char *text = many_kernels(MANY, scatters);
    kiln_module *m = parse(text);
    kiln_compile_params p = {.struct_size = sizeof p, .keep = KILN_KEEP_LLVM};
    kiln_artifact *a = compiled(m, &p, 2);
    const char *ptx = kiln_artifact_text(a, KILN_TEXT_PTX, NULL);
    ck_assert_uint_ge(occurrences(kiln_artifact_text(a, KILN_TEXT_LLVM, NULL), "; ModuleID"), 3);
    ck_assert_uint_eq(occurrences(ptx, "red.relaxed.gpu.global.add.v") > 0, scatters);
    ck_assert_uint_eq(occurrences(ptx, scatters ? ".version 8.1\n" : ".version 7.8\n"), 1);
    ck_assert_uint_eq(kiln_artifact_manifest(a)->ptx_version, scatters ? 81 : 78);
    kiln_artifact_destroy(&a);
    kiln_module_destroy(&m);
    free(text);
  }
}
END_TEST

// What was compiled in the context before leaves nothing behind: LLVM numbers calls.
START_TEST(a_context_makes_the_same_again) {
  char *text = many_kernels(1, false);
  kiln_module *m = parse(text);
  kiln_compile_params p = {.struct_size = sizeof p, .keep = KILN_KEEP_LLVM};
  kiln_artifact *one = compiled(m, &p, 0), *again = compiled(m, &p, 0);
  ck_assert_uint_eq(occurrences(kiln_artifact_text(one, KILN_TEXT_LLVM, NULL), "; ModuleID"), 1);
  ck_assert_uint_gt(occurrences(kiln_artifact_text(one, KILN_TEXT_PTX, NULL), "call.uni"), 0);
  same_artifacts(one, again);
  kiln_artifact_destroy(&one);
  kiln_artifact_destroy(&again);
  kiln_module_destroy(&m);
  free(text);
}
END_TEST

START_TEST(what_several_threads_make_is_right) {
  char *text = many_kernels(MANY, false);
  kiln_module *m = parse(text);
  run_both_and_check(cx, m, 3, 2, text);
  kiln_module_destroy(&m);
  free(text);
}
END_TEST

// --- what is asked for beside ---------------------------------------------------------------------------------------

typedef struct seen {
  pthread_t caller;
  int steps;
  bool elsewhere;
} seen;

static void on_pass(void *user, const char *kernel, const char *pass, const char *ir) {
  seen *s = user;
  s->steps += strcmp(pass, "dce") == 0;
  s->elsewhere |= !pthread_equal(s->caller, pthread_self());
  ck_assert(strstr(ir, kernel) != NULL);
}

START_TEST(passes_are_shown_on_the_callers_thread) {
  kiln_module *m = parse_many(MANY);
  seen s = {.caller = pthread_self()};
  kiln_compile_params p = {.struct_size = sizeof p}, with = p;
  with.after_pass = on_pass;
  with.user = &s;
  kiln_artifact *a = compiled(m, &p, 3), *b = compiled(m, &with, 3);
  ck_assert(s.steps >= 3 && !s.elsewhere);
  same_artifacts(a, b);
  kiln_artifact_destroy(&a);
  kiln_artifact_destroy(&b);
  kiln_module_destroy(&m);
}
END_TEST

// --- what fails -----------------------------------------------------------------------------------------------------

static kiln_status go_on(void *user) {
  ++*(int *)user;
  return KILN_OK;
}

// Plans for a newer machine, in chunks for an older one, which has no cluster barriers: the kernels that have them fail
// where code is generated. Each is the last of its chunk, so that there is no other in it.
enum { CHUNKS = 7 };
static void chunks_fail(bool with_cluster[CHUNKS], uint32_t threads, char *found, size_t room) {
  static const kl_target newer = {.machine = KL_NVPTX, .sm = 90, .block = 128, .max_bytes = 16};
  const kl_target older = {.machine = KL_NVPTX, .sm = 80, .block = 128, .max_bytes = 16};
  kiln_compile_params p = {.struct_size = sizeof p, .threads = threads};
  kiln_module *m = parse("HloModule m\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
                         "ENTRY e { x = f32[8,600000] parameter(0) t = f32[8,600000] tanh(x) z = f32[] constant(0)\n"
                         "  ROOT s = f32[8] reduce(t, z), dimensions={1}, to_apply=sum }\n");
  kiln_module *filler = parse_many(1);
  kl_arena arena;
  kl_arena_init(&arena, cx);
  kl_unit *units, *of_filler;
  uint32_t n;
  ck_assert_int_eq(kl_plan_units(cx, m, NULL, &arena, &units, &n), KILN_OK);
  ck_assert_int_eq(kl_plan_units(cx, filler, NULL, &arena, &of_filler, &n), KILN_OK);
  kl_chunks *c = kl_chunks_new(cx, &arena, &older, &p);
  for (int i = 0; i < CHUNKS; i++) {
    char name[40];
    for (int k = 0; k < 12; k++) {
      bool last = k == 11 && with_cluster[i];
      snprintf(name, sizeof name, "k%d_%d", i, k);
      kl_plan_params pp = {
          .target = last ? newer : older, .name = name, .strategy = {.cluster = last, .split = last ? 4 : 0}};
      kl_plan *plan = NULL;
      EXPECT(kl_plan_make(cx, last ? m : filler, last ? units[0].comp : of_filler[0].comp, &pp, &arena, &plan) ==
                 KILN_OK,
             "%s", last_finding());
      ck_assert_int_eq(kl_chunks_add(c, plan, 1), KILN_OK);
      kl_plan_free(plan);
    }
  }
  kiln_artifact a = {0};
  int steps = 0;
  kl_arena_init(&a.arena, cx);
  ck_assert_int_eq(kl_chunks_finish(c, &a, go_on, &steps), KILN_E_INTERNAL);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
  snprintf(found, room, "%s", last_finding());
  kiln_diagnostics_clear(cx);
  kl_chunks_free(c);
  kl_arena_free(&a.arena);
  kl_arena_free(&arena);
  kiln_module_destroy(&m);
  kiln_module_destroy(&filler);
}

START_TEST(the_first_chunk_that_fails_is_told) {
  char found[CREWS][500];
  for (uint32_t c = 0; c < CREWS; c++) {
    chunks_fail((bool[CHUNKS]){[2] = true, [3] = true, [4] = true}, crews[c], found[c], sizeof found[c]);
    ck_assert_msg(strstr(found[c], "k2_11: the emitter made an operation outside its table") != NULL, "%s", found[c]);
    ck_assert_str_eq(found[c], found[0]);
  }
}
END_TEST

typedef struct stopper {
  size_t at, steps, last;
  bool back; // progress went back
} stopper;

static void on_progress(void *user, kiln_job *j, size_t done, size_t all) {
  stopper *s = user;
  s->steps++;
  s->back |= done < s->last || done > all || (all && all != 2 * MANY);
  s->last = done;
  if (done >= s->at) kiln_job_cancel(j);
}

START_TEST(jobs_are_cancelled_in_the_middle) {
  kiln_module *m = parse_many(MANY);
  for (size_t at = 0; at <= 2 * MANY; at += 6) {
    stopper s = {.at = at};
    kiln_compile_params p = {.struct_size = sizeof p, .threads = 3};
    kiln_job_params how = {.struct_size = sizeof how, .compile = &p, .progress = on_progress, .user = &s};
    kiln_job *j = NULL;
    kiln_artifact *a = NULL;
    ck_assert_int_eq(kiln_job_start(cx, m, &how, &j), KILN_OK);
    kiln_status st = kiln_job_take(cx, j, &a);
    ck_assert(!s.back && s.steps > 0);
    ck_assert(st == (a ? KILN_OK : KILN_E_CANCELLED) && (at < MANY ? !a : true));
    kiln_artifact_destroy(&a);
    kiln_job_destroy(&j);
    kiln_diagnostics_clear(cx);
  }
  kiln_module_destroy(&m);
}
END_TEST

// --- memory ---------------------------------------------------------------------------------------------------------

typedef struct memory {
  pthread_t owner;
  bool elsewhere;
  size_t calls, code; // code: there is no room for a text of so many bytes and numbers of calls; 0: there is
} memory;

static void *resize(void *user, void *p, size_t old_size, size_t size) {
  memory *y = user;
  if (!pthread_equal(y->owner, pthread_self())) y->elsewhere = true;
  y->calls++;
  bool of_arena = size % 4096 == 0;
  if (y->code && size > y->code && size < y->code + y->code / 8 && !of_arena) return NULL;
  if (size) return realloc(p, size);
  free(p);
  return NULL;
}

static kiln_status compile_in(memory *y, const char *text, const char *target, size_t *code) {
  kiln_context_params cp = {.struct_size = sizeof cp, .allocator = {.user = y, .resize = resize}};
  kiln_compile_params p = {.struct_size = sizeof p, .target = target, .threads = 4};
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_context *own = kiln_context_create(&cp);
  ck_assert_int_eq(kiln_module_parse(own, "test", text, strlen(text), &m), KILN_OK);
  kiln_status st = kiln_compile(own, m, &p, &a);
  ck_assert(st == KILN_OK ? a && !kiln_diagnostics_count(own)
                          : !a && strstr(kiln_diagnostics_get(own, 0)->message, "bytes for an artifact's text"));
  if (a) kiln_artifact_text(a, KILN_TEXT_PTX, code);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&own);
  return st;
}

// The hook is called on the caller's thread alone, and where it has no room for the code there is no artifact.
START_TEST(memory_is_the_callers) {
  char *text = many_kernels(MANY, false);
  memory y = {.owner = pthread_self()};
  size_t code = 0;
  ck_assert_int_eq(compile_in(&y, text, "sm_90", &code), KILN_OK);
  ck_assert_uint_gt(y.calls, 0);
  ck_assert_uint_gt(code, 100000);
  y.code = code;
  ck_assert_int_eq(compile_in(&y, text, "sm_90", &code), KILN_E_MEMORY);
  ck_assert(!y.elsewhere);
  free(text);
}
END_TEST

int main(void) {
  return RUN_TESTS("chunks", EACH(make_context, drop_context), {host_code_that_is_run_seldom}, {each_task_is_done_once},
                   {any_number_of_threads_makes_the_same_bytes}, {the_version_is_the_latest},
                   {a_context_makes_the_same_again}, {what_several_threads_make_is_right},
                   {passes_are_shown_on_the_callers_thread}, {the_first_chunk_that_fails_is_told},
                   {jobs_are_cancelled_in_the_middle}, {memory_is_the_callers});
}
