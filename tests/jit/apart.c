// Compilation in a process of its own: the same artifacts and findings; what dies, hangs or babbles is a status.
#include "support/context.h"

#include <kiln/kiln.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char text[] = "HloModule m\n"
                           "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
                           "ENTRY e { x = f32[64,32] parameter(0) z = f32[] constant(0)\n"
                           "  s = f32[64] reduce(x, z), dimensions={1}, to_apply=add\n"
                           "  b = f32[64,32] broadcast(s), dimensions={0} ROOT d = f32[64,32] subtract(x, b) }\n";

static kiln_compile_params apart(void) {
  return (kiln_compile_params){.struct_size = sizeof(kiln_compile_params), .isolate = true, .worker = KL_WORKER};
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Bytes and all texts.
static void same_artifacts(const kiln_artifact *a, const kiln_artifact *b) {
  void *bytes[2];
  size_t n[2];
  ck_assert_int_eq(kiln_artifact_save(cx, a, &bytes[0], &n[0]), KILN_OK);
  ck_assert_int_eq(kiln_artifact_save(cx, b, &bytes[1], &n[1]), KILN_OK);
  ck_assert_uint_eq(n[0], n[1]);
  ck_assert_int_eq(memcmp(bytes[0], bytes[1], n[0]), 0);
  for (int i = 0; i < 2; i++) kiln_artifact_bytes_free(cx, bytes[i], n[i]);
  for (kiln_text_kind k = KILN_TEXT_PTX; k <= KILN_TEXT_HLO; k++) {
    const char *x = kiln_artifact_text(a, k, &n[0]), *y = kiln_artifact_text(b, k, &n[1]);
    ck_assert(!x == !y && n[0] == n[1] && (!x || strcmp(x, y) == 0));
  }
}

static void same_both_ways(const kiln_module *m, kiln_compile_params p) {
  kiln_artifact *here = NULL, *there = NULL;
  p.isolate = false;
  kiln_status st = kiln_compile(cx, m, &p, &here);
  size_t n = kiln_diagnostics_count(cx);
  p.isolate = true;
  ck_assert_int_eq(kiln_compile(cx, m, &p, &there), st);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 2 * n);
  for (size_t i = 0; i < n; i++)
    ck_assert_str_eq(kiln_diagnostics_get(cx, i)->text, kiln_diagnostics_get(cx, n + i)->text);
  if (st == KILN_OK) same_artifacts(here, there);
  kiln_artifact_destroy(&here);
  kiln_artifact_destroy(&there);
  kiln_diagnostics_clear(cx);
}

// The processes that this one has started and not waited for.
static int children(pid_t *first) {
  DIR *proc = opendir("/proc");
  int n = 0;
  for (struct dirent *e; (e = readdir(proc));) {
    char path[300], line[600], state;
    int pid, parent;
    snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
    FILE *f = e->d_name[0] >= '0' && e->d_name[0] <= '9' ? fopen(path, "r") : NULL;
    if (!f) continue;
    if (fgets(line, sizeof line, f) && sscanf(line, "%d (%*[^)]) %c %d", &pid, &state, &parent) == 3 &&
        parent == getpid()) {
      if (first) *first = pid;
      n++;
    }
    fclose(f);
  }
  closedir(proc);
  return n;
}

START_TEST(artifacts_are_the_same) {
  kiln_module *m = parse(text);
  kiln_compile_params p = apart();
  static const char *const targets[] = {NULL, "sm_80", "sm_100a", "host"};
  for (int i = 0; i < 4; i++) {
    p.target = targets[i];
    same_both_ways(m, p);
  }
  p = apart();
  p.keep = KILN_KEEP_PLAN | KILN_KEEP_LLVM | KILN_KEEP_EXPLAIN | KILN_KEEP_HLO;
  p.numerics = KILN_NUMERICS_FAST;
  p.argument_align = 4;
  p.lineinfo = true;
  p.deterministic = p.separate_launches = true;
  same_both_ways(m, p);
  p = apart();
  p.max_count = 32 * 1000;
  p.programmatic = true;
  same_both_ways(m, p);
  kiln_device_info d = {.struct_size = sizeof d, .target = "sm_90", .sm = 90, .multiprocessors = 132, .threads = 2048};
  p.device = &d;
  same_both_ways(m, p);
  d.struct_size = offsetof(kiln_device_info, memory_bytes);
  same_both_ways(m, p);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(aliases_values_and_sparse_arrays_go_along) {
  kiln_compile_params p = apart();
  kiln_alias alias = {1, 0};
  kiln_module *m = parse("HloModule v\nENTRY e { n = s32[] parameter(0) x = s32[40] parameter(1) "
                         "b = s32[40] broadcast(n), dimensions={} ROOT r = s32[40] add(x, b) }\n");
  p.aliases = &alias;
  p.alias_count = 1;
  p.scalars_by_value = true;
  same_both_ways(m, p);
  kiln_module_destroy(&m);
  char sparse[4000];
  FILE *f = fopen(KL_EXAMPLES "/sparse.hlo", "r");
  sparse[fread(sparse, 1, sizeof sparse - 1, f)] = 0;
  fclose(f);
  m = parse(sparse);
  p = apart();
  same_both_ways(m, p);
  int64_t counts[3] = {-1, 10, 10};
  kiln_sparse_slot slot = {.leaf = 0, .counts = counts};
  p.sparse_slots = &slot;
  p.sparse_slot_count = 1;
  same_both_ways(m, p);
  slot.leaf = 99; // findings of what is wrong are the same as well
  same_both_ways(m, p);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(findings_are_the_same) {
  static const char *const bad[] = {
      "HloModule a\nENTRY e { x = f32[8,8] parameter(0)\n  ROOT y = f32[8,8] custom-call(x), custom_call_target=\"w\" "
      "}\n",
      "HloModule b, what={1}\nENTRY e { x = f32[8] parameter(0), odd_key=3\n ROOT y = f32[8] tanh(x) }\n"};
  kiln_compile_params p = apart();
  for (int i = 0; i < 2; i++) {
    kiln_module *m = parse(bad[i]);
    kiln_diagnostics_clear(cx);
    same_both_ways(m, p);
    p.target = "sm_1";
    same_both_ways(m, p);
    p.target = NULL;
    p.fusion = "none";
    same_both_ways(m, p);
    p.fusion = NULL;
    kiln_module_destroy(&m);
  }
}
END_TEST

// Made call by call, or of another module, whose text it keeps.
START_TEST(modules_without_a_text_of_their_own) {
  kiln_builder *b = kiln_builder_create(cx, "built");
  kiln_builder_begin(b, "main");
  kiln_type t = kiln_type_text(b, "f32[50]");
  kiln_module *m = NULL, *part = NULL;
  kiln_value x = kiln_build_parameter(b, 0, t, "x");
  kiln_builder_end(b, kiln_build(b, "negate", &x, 1, KILN_NO_TYPE, NULL, 0), true);
  ck_assert_int_eq(kiln_builder_finish(b, &m), KILN_OK);
  kiln_builder_destroy(&b);
  same_both_ways(m, apart());
  kiln_module_destroy(&m);
  m = parse(
      "HloModule m\nf { p = f32[64] parameter(0) ROOT r = f32[64] negate(p) }\n"
      "ENTRY e { p = f32[64] parameter(0) a = f32[64] fusion(p), kind=kLoop, calls=f ROOT q = f32[64] tanh(a) }\n");
  ck_assert_int_eq(kiln_module_extract(cx, m, "a", &part), KILN_OK);
  same_both_ways(part, apart());
  kiln_module_destroy(&part);
  kiln_module_destroy(&m);
}
END_TEST

// --- what goes wrong ------------------------------------------------------------------------------------------------

static kiln_status compile(kiln_compile_params p, const char *expected) {
  kiln_module *m = parse(text);
  kiln_artifact *a = (void *)&a;
  kiln_diagnostics_clear(cx);
  kiln_status st = kiln_compile(cx, m, &p, &a);
  if (st != KILN_OK) ck_assert_ptr_null(a);
  if (expected)
    ck_assert_msg(strstr(last_finding(), expected) != NULL, "expected %s, found %s", expected, last_finding());
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  return st;
}

static const struct {
  const char *how, *said;
} bad[] = {
    {"exit", "ended with status 7 before it was done"},
    {"crash", "ended by signal 11 (Segmentation fault) before it was done"},
    {"close", "ended with status 0 before it was done"},
    {"garbage", "gave no answer that kiln understands"},
    {"huge", "gave no answer that kiln understands"},
    {"silent", "ended by signal 9 (Killed) before it was done"},
};

START_TEST(workers_that_are_no_good) {
  kiln_compile_params p = apart();
  p.worker = KL_BAD_WORKER;
  setenv("KILN_BAD_WORKER", bad[_i].how, 1);
  for (int i = 0; i < 2; i++) ck_assert_int_eq(compile(p, bad[_i].said), KILN_E_INTERNAL);
  ck_assert_int_eq(children(NULL), 0);
  ck_assert_int_eq(compile(apart(), NULL), KILN_OK); // the next one is a good one
}
END_TEST

START_TEST(a_worker_that_hangs_is_killed_in_time) {
  kiln_compile_params p = apart();
  p.worker = KL_BAD_WORKER;
  p.time_limit = 0.1;
  setenv("KILN_BAD_WORKER", "hang", 1);
  double start = now();
  ck_assert_int_eq(compile(p, "compiling took longer than the time_limit of 100 ms"), KILN_E_CANCELLED);
  ck_assert(now() - start >= 0.1);
  ck_assert_int_eq(children(NULL), 0);
  p.time_limit = -1;
  ck_assert_int_eq(compile(p, "time_limit: expected seconds from 0"), KILN_E_INVALID);
}
END_TEST

// By whoever: the next compilation has another one.
START_TEST(a_worker_that_is_killed_is_replaced) {
  ck_assert_int_eq(compile(apart(), NULL), KILN_OK);
  pid_t first = 0, second = 0;
  ck_assert_int_eq(children(&first), 1);
  ck_assert_int_eq(compile(apart(), NULL), KILN_OK);
  ck_assert_int_eq(children(&second), 1);
  ck_assert_int_eq(first, second); // it is one for all of the context's compilations
  kill(first, SIGKILL);
  siginfo_t how;
  waitid(P_PID, (id_t)first, &how, WEXITED | WNOWAIT);
  ck_assert_int_eq(compile(apart(), NULL), KILN_OK);
  ck_assert_int_eq(children(&second), 1);
  ck_assert_int_ne(first, second);
  kiln_context_destroy(&cx);
  ck_assert_int_eq(children(NULL), 0); // and ends with it
  cx = kiln_context_create(NULL);
}
END_TEST

START_TEST(a_job_that_is_cancelled_kills_its_worker) {
  kiln_module *m = parse(text);
  kiln_compile_params p = apart();
  p.worker = KL_BAD_WORKER;
  setenv("KILN_BAD_WORKER", "hang", 1);
  kiln_job_params jp = {.struct_size = sizeof jp, .compile = &p};
  kiln_job *j = NULL;
  kiln_artifact *a = NULL;
  ck_assert_int_eq(kiln_job_start(cx, m, &jp, &j), KILN_OK);
  ck_assert(!kiln_job_wait(j, 0.05));
  kiln_job_cancel(j);
  ck_assert_int_eq(kiln_job_take(cx, j, &a), KILN_E_CANCELLED);
  kiln_job_destroy(&j);
  ck_assert_int_eq(children(NULL), 0);
  kiln_module_destroy(&m);
}
END_TEST

static void on_pass(void *user, const char *kernel, const char *pass, const char *ir) {}

START_TEST(what_cannot_be) {
  kiln_compile_params p = apart();
  p.worker = "/nowhere/kiln-worker";
  ck_assert_int_eq(compile(p, "cannot start /nowhere/kiln-worker: No such file or directory"), KILN_E_INVALID);
  p.worker = NULL;
  setenv("KILN_WORKER", "/nowhere/else", 1);
  ck_assert_int_eq(compile(p, "cannot start /nowhere/else"), KILN_E_INVALID);
  setenv("KILN_WORKER", KL_WORKER, 1);
  ck_assert_int_eq(compile(p, NULL), KILN_OK);
  unsetenv("KILN_WORKER");
  p = apart();
  p.after_pass = on_pass;
  ck_assert_int_eq(compile(p, "expected no after_pass"), KILN_E_INVALID);
}
END_TEST

int main(void) {
  return RUN_TESTS("apart", EACH(make_context, drop_context), {artifacts_are_the_same},
                   {aliases_values_and_sparse_arrays_go_along}, {findings_are_the_same},
                   {modules_without_a_text_of_their_own}, {workers_that_are_no_good, sizeof bad / sizeof bad[0]},
                   {a_worker_that_hangs_is_killed_in_time}, {a_worker_that_is_killed_is_replaced},
                   {a_job_that_is_cancelled_kills_its_worker}, {what_cannot_be});
}
