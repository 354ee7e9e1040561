// Compilation in the background: waiting, asking, cancelling, destroying at any time, from several threads.
#include "support/context.h"

#include <kiln/kiln.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char small[] = "HloModule small\nENTRY e { x = f32[100] parameter(0) ROOT y = f32[100] tanh(x) }\n";

// So many kernels, none of which is like another.
static char *large(int kernels) {
  char *text = NULL;
  size_t n;
  FILE *to = open_memstream(&text, &n);
  fprintf(to, "HloModule large\n");
  for (int i = 0; i < kernels; i++)
    fprintf(to, "f%d { x = f32[%d] parameter(0) a = f32[%d] tanh(x) ROOT b = f32[%d] exponential(a) }\n", i, i + 8,
            i + 8, i + 8);
  fprintf(to, "ENTRY e {\n");
  for (int i = 0; i < kernels; i++)
    fprintf(to, "  x%d = f32[%d] parameter(%d)\n  y%d = f32[%d] fusion(x%d), kind=kLoop, calls=f%d\n", i, i + 8, i, i,
            i + 8, i, i);
  fprintf(to, "  ROOT t = (");
  for (int i = 0; i < kernels; i++) fprintf(to, "%sf32[%d]", i ? ", " : "", i + 8);
  fprintf(to, ") tuple(");
  for (int i = 0; i < kernels; i++) fprintf(to, "%sy%d", i ? ", " : "", i);
  fprintf(to, ")\n}\n");
  fclose(to);
  return text;
}

static kiln_module *parse_large(int kernels) {
  char *text = large(kernels);
  kiln_module *m = parse(text);
  free(text);
  return m;
}

static kiln_job *start(const kiln_module *m, const kiln_job_params *p) {
  kiln_job *j = NULL;
  EXPECT(kiln_job_start(cx, m, p, &j) == KILN_OK && j, "%s", last_finding());
  return j;
}

static kiln_job_info told(const kiln_job *j) {
  kiln_job_info info = {.struct_size = sizeof info};
  ck_assert_int_eq(kiln_job_describe(cx, j, &info), KILN_OK);
  return info;
}

static void same_code(const kiln_artifact *a, const kiln_artifact *b) {
  ck_assert_str_eq(kiln_artifact_text(a, KILN_TEXT_PTX, NULL), kiln_artifact_text(b, KILN_TEXT_PTX, NULL));
}

// What is copied may go as soon as the job has started.
START_TEST(a_job_gives_what_compiling_gives) {
  kiln_module *m = parse_large(3);
  char target[8] = "sm_80", fusion[8] = "y1";
  kiln_alias alias = {0, 0};
  kiln_compile_params p = {
      .struct_size = sizeof p, .target = target, .fusion = fusion, .aliases = &alias, .alias_count = 1};
  kiln_job_params jp = {.struct_size = sizeof jp, .compile = &p};
  kiln_artifact *now = NULL, *a = NULL, *again = NULL;
  ck_assert_int_eq(kiln_compile(cx, m, &p, &now), KILN_OK);
  kiln_job *j = start(m, &jp);
  memset(target, 'x', sizeof target - 1);
  memset(fusion, 'x', sizeof fusion - 1);
  alias.parameter = 99;
  ck_assert_int_eq(kiln_job_take(cx, j, &a), KILN_OK);
  ck_assert_int_eq(kiln_job_take(cx, j, &again), KILN_OK);
  ck_assert_ptr_eq(a, again);
  same_code(now, a);
  ck_assert_uint_eq(kiln_artifact_manifest(a)->slots[1].alias, 0);
  kiln_job_info info = told(j);
  ck_assert(info.state == KILN_JOB_DONE && info.all == 2 && info.done == 2);
  kiln_job_destroy(&j);
  ck_assert_ptr_null(j);
  kiln_artifact_destroy(&now);
  kiln_artifact_destroy(&again);
  ck_assert_str_eq(kiln_artifact_manifest(a)->target, "sm_80");
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(findings_are_those_of_compiling) {
  static const char text[] = "HloModule m\nENTRY e { x = f32[8,8] parameter(0) ROOT y = f32[8,8] custom-call(x), "
                             "custom_call_target=\"what\" }\n";
  kiln_module *m = parse(text);
  kiln_artifact *a = (void *)&a;
  kiln_status st = kiln_compile(cx, m, NULL, &a);
  char *expected = strdup(last_finding());
  kiln_diagnostic d = *kiln_diagnostics_get(cx, 0);
  ck_assert_int_eq(st, KILN_E_UNSUPPORTED);
  kiln_diagnostics_clear(cx);
  kiln_job *j = start(m, NULL);
  a = (void *)&a;
  ck_assert_int_eq(kiln_job_take(cx, j, &a), st);
  ck_assert_ptr_null(a);
  ck_assert_int_eq(told(j).state, KILN_JOB_FAILED);
  kiln_job_destroy(&j); // findings that were taken stay
  ck_assert_str_eq(last_finding(), expected);
  ck_assert(kiln_diagnostics_get(cx, 0)->line == d.line && kiln_diagnostics_get(cx, 0)->status == d.status);
  ck_assert_str_eq(kiln_diagnostics_get(cx, 0)->file, "test");
  free(expected);
  kiln_module_destroy(&m);
}
END_TEST

// --- callbacks ------------------------------------------------------------------------------------------------------

typedef struct seen {
  atomic_int steps, ends;
  atomic_size_t done, all;
  atomic_int state;
  atomic_bool cancel, go;    // cancel at the first step; wait for `go` in the first
  bool hold, destroy, early; // early: destroyed by the first step, which waits and takes in vain before
  atomic_bool refused;
  _Atomic(kiln_job *) job;
} seen;

static void on_progress(void *user, kiln_job *j, size_t done, size_t all) {
  seen *s = user;
  int before = s->steps++;
  s->done = done;
  s->all = all;
  if (s->cancel) kiln_job_cancel(j);
  if (s->early && !before) {
    kiln_context *own = kiln_context_create(NULL);
    kiln_artifact *a = (void *)s;
    s->refused = !kiln_job_wait(j, -1) && kiln_job_take(own, j, &a) == KILN_E_INVALID && !a;
    kiln_context_destroy(&own);
    kiln_job_destroy(&j);
  }
  while (s->hold && !before && !s->go) usleep(1000);
}

static void on_end(void *user, kiln_job *j, kiln_job_state state) {
  seen *s = user;
  s->state = state;
  if (s->destroy) kiln_job_destroy(&j);
  s->ends++; // the last: who waits for it may be gone then
}

static kiln_job_params watched(seen *s) {
  return (kiln_job_params){.struct_size = sizeof(kiln_job_params), .progress = on_progress, .ended = on_end, .user = s};
}

START_TEST(progress_and_end_are_told) {
  kiln_module *m = parse_large(5);
  seen s = {0};
  kiln_job_params p = watched(&s);
  kiln_job *j = start(m, &p);
  ck_assert(kiln_job_wait(j, -1) && kiln_job_wait(j, 0) && kiln_job_wait(j, NAN));
  kiln_job_destroy(&j); // waits for the callback
  ck_assert_int_eq(s.ends, 1);
  ck_assert_int_eq(s.state, KILN_JOB_DONE);
  ck_assert_int_ge(s.steps, 6);
  ck_assert_uint_eq(s.all, 10);
  ck_assert_uint_eq(s.done, 5); // only the code is left
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(a_wait_has_an_end) {
  kiln_module *m = parse_large(2);
  seen s = {.hold = true};
  kiln_job_params p = watched(&s);
  kiln_job *j = start(m, &p);
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  ck_assert(!kiln_job_wait(j, 0) && !kiln_job_wait(j, 0.05));
  clock_gettime(CLOCK_MONOTONIC, &b);
  ck_assert_double_ge((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec), 0.05);
  ck_assert_int_eq(told(j).state, KILN_JOB_RUNNING);
  s.go = true;
  ck_assert(kiln_job_wait(j, 1e300));
  kiln_job_destroy(&j);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(a_job_that_is_cancelled_gives_nothing) {
  kiln_module *m = parse_large(40);
  seen s = {.cancel = true};
  kiln_job_params p = watched(&s);
  kiln_job *j = start(m, &p);
  kiln_artifact *a = (void *)&a;
  ck_assert_int_eq(kiln_job_take(cx, j, &a), KILN_E_CANCELLED);
  ck_assert_ptr_null(a);
  ck_assert_str_eq(kiln_diagnostics_get(cx, 0)->message, "cancelled before it was done");
  ck_assert_int_eq(told(j).state, KILN_JOB_CANCELLED);
  kiln_job_destroy(&j);
  ck_assert_int_eq(s.state, KILN_JOB_CANCELLED);
  ck_assert_int_le(s.steps, 2);
  kiln_module_destroy(&m);
}
END_TEST

// At whatever moment.
START_TEST(jobs_are_destroyed_while_they_run) {
  kiln_module *m = parse_large(6);
  for (int i = 0; i < 40; i++) {
    seen s = {0};
    kiln_job_params p = watched(&s);
    kiln_job *j = start(m, &p);
    if (i % 2) kiln_job_wait(j, i * 1e-4);
    if (i % 3 == 0) kiln_job_cancel(j);
    kiln_job_destroy(&j);
    ck_assert_int_eq(s.ends, 1);
  }
  kiln_job_destroy(NULL);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(the_end_may_destroy_the_job) {
  kiln_module *m = parse(small);
  for (int i = 0; i < 10; i++) {
    seen s = {.destroy = true};
    kiln_job_params p = watched(&s);
    kiln_job *j = NULL;
    ck_assert_int_eq(kiln_job_start(cx, m, &p, &j), KILN_OK);
    while (!s.ends) usleep(500);
  }
  usleep(20000); // the last thread is on its way out
  kiln_module_destroy(&m);
}
END_TEST

// As a program may do that has changed its mind.
START_TEST(a_step_may_destroy_the_job) {
  kiln_module *m = parse_large(6);
  for (int i = 0; i < 10; i++) {
    seen s = {.early = true, .destroy = i % 2};
    kiln_job_params p = watched(&s);
    kiln_job *j = NULL;
    ck_assert_int_eq(kiln_job_start(cx, m, &p, &j), KILN_OK);
    while (!s.ends) usleep(500);
    EXPECT(s.refused && s.state == KILN_JOB_CANCELLED && s.steps == 1, "%d steps, state %d", s.steps, s.state);
  }
  usleep(20000); // the last thread is on its way out
  kiln_module_destroy(&m);
}
END_TEST

// --- several --------------------------------------------------------------------------------------------------------

static void *take(void *arg) {
  kiln_context *own = kiln_context_create(NULL);
  kiln_artifact *a = NULL;
  if (kiln_job_take(own, arg, &a) != KILN_OK) a = NULL;
  kiln_context_destroy(&own);
  return a;
}

START_TEST(several_threads_take_what_several_jobs_make) {
  enum { JOBS = 4, TAKERS = 3 };
  kiln_module *m = parse_large(4);
  kiln_cache *c = NULL;
  kiln_cache_params cp = {.struct_size = sizeof cp, .folder = ""};
  ck_assert_int_eq(kiln_cache_open(cx, &cp, &c), KILN_OK);
  kiln_job *jobs[JOBS];
  pthread_t threads[JOBS][TAKERS];
  kiln_artifact *first = NULL;
  kiln_job_params p = {.struct_size = sizeof p, .cache = c};
  for (int i = 0; i < JOBS; i++) jobs[i] = start(m, &p);
  for (int i = 0; i < JOBS; i++)
    for (int k = 0; k < TAKERS; k++) pthread_create(&threads[i][k], NULL, take, jobs[i]);
  for (int i = 0; i < JOBS; i++)
    for (int k = 0; k < TAKERS; k++) {
      void *got;
      pthread_join(threads[i][k], &got);
      kiln_artifact *a = got;
      ck_assert_ptr_nonnull(a);
      if (first) same_code(first, a);
      if (first)
        kiln_artifact_destroy(&a);
      else
        first = a;
    }
  for (int i = 0; i < JOBS; i++) kiln_job_destroy(&jobs[i]);
  kiln_artifact_destroy(&first);
  kiln_cache_close(&c);
  kiln_module_destroy(&m);
}
END_TEST

START_TEST(params_that_are_wrong_are_told_at_once) {
  kiln_module *m = parse(small);
  kiln_job *j = (void *)&j;
  kiln_compile_params p = {.struct_size = sizeof p, .alias_count = 1};
  kiln_job_params jp = {.struct_size = sizeof jp, .compile = &p};
  ck_assert_int_eq(kiln_job_start(cx, m, &jp, &j), KILN_E_INVALID);
  ck_assert_ptr_null(j);
  p = (kiln_compile_params){.struct_size = 1};
  ck_assert_int_eq(kiln_job_start(cx, m, &jp, &j), KILN_E_INVALID);
  jp.struct_size = 0;
  ck_assert_int_eq(kiln_job_start(cx, m, &jp, &j), KILN_E_INVALID);
  kiln_module_destroy(&m);
}
END_TEST

int main(void) {
  return RUN_TESTS("job", EACH(make_context, drop_context), {a_job_gives_what_compiling_gives},
                   {findings_are_those_of_compiling}, {progress_and_end_are_told}, {a_wait_has_an_end},
                   {a_job_that_is_cancelled_gives_nothing}, {jobs_are_destroyed_while_they_run},
                   {the_end_may_destroy_the_job}, {a_step_may_destroy_the_job},
                   {several_threads_take_what_several_jobs_make}, {params_that_are_wrong_are_told_at_once});
}
