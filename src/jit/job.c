// Compilation in the background: a thread, a context of its own, and what others ask of them.

#include "jit/jit.h"
#include "jit/params.h"
#include <kiln/job.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

struct kiln_job {
  kl_ctx *cx; // the thread's, until it has ended
  kl_arena arena;
  const kiln_module *m;
  kiln_job_params params;
  kiln_compile_params compile; // a copy
  kl_watch watch;
  pthread_t thread;
  pthread_mutex_t lock; // of what follows
  pthread_cond_t changed;
  kiln_job_info info;
  kiln_status status;
  kiln_artifact *a;
  bool has_self; // the thread `self` has begun, and is not done with the job
  pthread_t self;
  bool orphan; // destroyed by one of the caller's functions there, so that the thread does the rest
};

// --- the thread -----------------------------------------------------------------------------------------------------

static void on_step(void *user, size_t done, size_t all) {
  kiln_job *j = user;
  pthread_mutex_lock(&j->lock);
  j->info.done = done;
  j->info.all = all;
  pthread_mutex_unlock(&j->lock);
  if (j->params.progress) j->params.progress(j->params.user, j, done, all);
}

static void destroy(kiln_job *j) {
  kl_ctx *cx = j->cx;
  kiln_artifact_destroy(&j->a);
  pthread_cond_destroy(&j->changed);
  pthread_mutex_destroy(&j->lock);
  kl_arena_free(&j->arena);
  kl_free(cx, j, sizeof *j);
  kiln_context_destroy(&cx);
}

static kiln_job_state state_of(kiln_status st) {
  return st == KILN_OK ? KILN_JOB_DONE : st == KILN_E_CANCELLED ? KILN_JOB_CANCELLED : KILN_JOB_FAILED;
}

// Is this the job's own thread, in one of the caller's functions? Under the lock.
static bool is_own_thread(const kiln_job *j) {
  return j->has_self && pthread_equal(j->self, pthread_self());
}

// The last that the thread does with the job, unless it is told to destroy it meanwhile.
static bool end(kiln_job *j, kiln_status st, kiln_artifact *a) {
  kiln_job_state state = state_of(st);
  pthread_mutex_lock(&j->lock);
  j->status = st;
  j->a = a;
  j->info.state = state;
  if (st == KILN_OK) j->info.done = j->info.all;
  pthread_cond_broadcast(&j->changed);
  pthread_mutex_unlock(&j->lock);
  if (j->params.ended) j->params.ended(j->params.user, j, state);
  pthread_mutex_lock(&j->lock);
  j->has_self = false;
  bool orphan = j->orphan;
  pthread_mutex_unlock(&j->lock);
  return orphan;
}

static void *work(void *arg) {
  kiln_job *j = arg;
  kiln_artifact *a = NULL;
  pthread_mutex_lock(&j->lock);
  j->self = pthread_self();
  j->has_self = true;
  pthread_mutex_unlock(&j->lock);
  kiln_status st = kl_go_on(j->cx, 0, 0);
  if (st == KILN_OK)
    st = j->params.cache ? kiln_cache_compile(j->cx, j->params.cache, j->m, &j->compile, &a)
                         : kiln_compile(j->cx, j->m, &j->compile, &a);
  j->cx->watch = NULL;
  if (end(j, st, a)) {
    pthread_detach(pthread_self());
    destroy(j);
  }
  return NULL;
}

// Signals are for threads that the caller knows of.
static int start_thread(kiln_job *j) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&j->thread, NULL, work, j);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

// --- life -----------------------------------------------------------------------------------------------------------

static void init_lock(kiln_job *j) {
  pthread_condattr_t steady;
  pthread_condattr_init(&steady);
  pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
  pthread_cond_init(&j->changed, &steady);
  pthread_condattr_destroy(&steady);
  pthread_mutex_init(&j->lock, NULL);
}

kiln_status kiln_job_start(kiln_context *cx, const kiln_module *m, const kiln_job_params *params, kiln_job **out) {
  kiln_job_params p;
  kiln_compile_params how;
  KL_CLEAR(out);
  KL_EXPECT(cx, m, out);
  KL_TRY(KL_PARAMS_IN(cx, kiln_job_params, params, &p));
  KL_TRY(KL_PARAMS_IN(cx, kiln_compile_params, p.compile, &how));
  KL_TRY(kl_params_check(cx, &how));
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *jcx = kiln_context_create(&own);
  if (!jcx) return kl_out_of_memory(cx, sizeof *jcx, "a job");
  kiln_job *j = kl_alloc(jcx, sizeof *j);
  *j = (kiln_job){.cx = jcx, .m = m, .params = p, .info = {.struct_size = sizeof j->info}};
  kl_arena_init(&j->arena, jcx);
  init_lock(j);
  j->watch = (kl_watch){.step = on_step, .user = j};
  jcx->watch = &j->watch;
  kiln_status st = kl_params_copy(cx, m, &how, &j->arena, &j->compile);
  *out = j; // before the thread tells of it
  int error = st == KILN_OK ? start_thread(j) : 0;
  if (error) st = kl_fail(cx, KILN_E_MEMORY, KL_NOWHERE, "no thread for a job: %s", strerror(error));
  if (st == KILN_OK) return KILN_OK;
  *out = NULL;
  destroy(j);
  return st;
}

void kiln_job_destroy(kiln_job **jp) {
  if (!jp || !*jp) return;
  kiln_job *j = *jp;
  *jp = NULL;
  atomic_store(&j->watch.stop, true);
  pthread_mutex_lock(&j->lock);
  bool own = j->orphan = is_own_thread(j);
  pthread_mutex_unlock(&j->lock);
  if (own) return;
  pthread_join(j->thread, NULL);
  destroy(j);
}

// --- what others ask ------------------------------------------------------------------------------------------------

kiln_status kiln_job_describe(kiln_context *cx, const kiln_job *j, kiln_job_info *out) {
  KL_EXPECT(cx, j, out);
  kiln_job *own = (kiln_job *)j; // asking changes nothing but the lock
  pthread_mutex_lock(&own->lock);
  kiln_job_info info = own->info;
  pthread_mutex_unlock(&own->lock);
  return KL_PARAMS_OUT(cx, kiln_job_info, &info, out);
}

static struct timespec in(double seconds) {
  struct timespec t;
  if (seconds > 1e9) seconds = 1e9; // a life
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += (time_t)seconds;
  t.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}

bool kiln_job_wait(kiln_job *j, double seconds) {
  if (!j) return false;
  bool for_ever = !(seconds >= 0); // what is no number of seconds, too
  struct timespec until = in(for_ever ? 0 : seconds);
  pthread_mutex_lock(&j->lock);
  int error = is_own_thread(j) ? ETIMEDOUT : 0; // it would wait for itself
  while (j->info.state == KILN_JOB_RUNNING && error != ETIMEDOUT)
    error = for_ever ? pthread_cond_wait(&j->changed, &j->lock) : pthread_cond_timedwait(&j->changed, &j->lock, &until);
  bool ended = j->info.state != KILN_JOB_RUNNING;
  pthread_mutex_unlock(&j->lock);
  return ended;
}

void kiln_job_cancel(kiln_job *j) {
  if (j) atomic_store(&j->watch.stop, true);
}

// What the thread's context has found stays as it is once the thread is done with it.
kiln_status kiln_job_take(kiln_context *cx, kiln_job *j, kiln_artifact **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, j, out);
  if (!kiln_job_wait(j, -1))
    return kl_invalid(cx, KL_NOWHERE, "expected a job that has ended: its own `progress` cannot wait for that");
  for (size_t i = 0; i < kiln_diagnostics_count(j->cx); i++) kl_diag_repeat(cx, kiln_diagnostics_get(j->cx, i));
  if (j->a) *out = kl_artifact_share(j->a);
  return j->status;
}
