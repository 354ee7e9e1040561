// Threads that live for one call and take pieces of a range from a counter, or tasks from a list. They inherit the
// floating-point environment of the caller.
#include "base/threads.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

typedef struct crew {
  kl_piece_body *body;
  void *arg;
  int64_t n, grain, pieces;
  _Atomic int64_t next;
} crew;

typedef struct member {
  crew *crew;
  uint32_t worker;
  pthread_t thread;
} member;

static void work(crew *c, uint32_t worker) {
  for (;;) {
    int64_t piece = atomic_fetch_add(&c->next, 1);
    if (piece >= c->pieces) return;
    int64_t begin = piece * c->grain;
    c->body(c->arg, worker, begin, c->n - begin < c->grain ? c->n : begin + c->grain);
  }
}

static void *run_member(void *arg) {
  member *m = arg;
  work(m->crew, m->worker);
  return NULL;
}

uint32_t kl_cores(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > KL_MOST_WORKERS ? KL_MOST_WORKERS : (uint32_t)n;
}

static int64_t piece_count(int64_t n, int64_t grain) {
  return n / grain + (n % grain != 0);
}

uint32_t kl_workers(uint32_t threads, int64_t n, int64_t grain) {
  int64_t pieces = piece_count(n, grain), most = threads < KL_MOST_WORKERS ? threads : KL_MOST_WORKERS;
  return pieces < 1 ? 1 : (uint32_t)(pieces < most ? pieces : most);
}

void kl_parallel(uint32_t threads, int64_t n, int64_t grain, kl_piece_body *body, void *arg) {
  if (n <= 0) return;
  crew c = {body, arg, n, grain, piece_count(n, grain), 0};
  member members[KL_MOST_WORKERS];
  uint32_t workers = kl_workers(threads, n, grain), started = 1;
  // Where no thread can be had, those that run do the work.
  for (; started < workers; started++) {
    members[started] = (member){.crew = &c, .worker = started};
    if (pthread_create(&members[started].thread, NULL, run_member, &members[started])) break;
  }
  work(&c, 0);
  for (uint32_t k = 1; k < started; k++) pthread_join(members[k].thread, NULL);
}

// --- tasks ----------------------------------------------------------------------------------------------------------

// That of a program's first thread: code generation goes deep.
enum { STACK = 8 << 20 };

void kl_tasks_begin(kl_tasks *t, uint32_t threads, kl_task_body *body, void *arg) {
  *t = (kl_tasks){.body = body, .arg = arg, .threads = threads < KL_MOST_WORKERS ? threads : KL_MOST_WORKERS};
  t->end = &t->first;
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->there, NULL);
  pthread_cond_init(&t->ended, NULL);
}

// Under the lock, which is not held while the task is done.
static void do_first(kl_tasks *t, uint32_t worker) {
  kl_task *x = t->first;
  t->first = x->next;
  if (!t->first) t->end = &t->first;
  t->waiting--;
  pthread_mutex_unlock(&t->lock);
  t->body(t->arg, worker, x);
  pthread_mutex_lock(&t->lock);
  t->done++;
  pthread_cond_signal(&t->ended);
}

static void *run_tasks(void *arg) {
  struct kl_hand *h = arg;
  kl_tasks *t = h->t;
  pthread_mutex_lock(&t->lock);
  while (!t->over) {
    if (t->first) {
      do_first(t, h->worker);
      continue;
    }
    t->idle++;
    pthread_cond_wait(&t->there, &t->lock);
    t->idle--;
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

// Where none can be had, those that run do the work, and no more is asked for.
static void start_hand(kl_tasks *t) {
  struct kl_hand *h = &t->hands[t->started + 1];
  pthread_attr_t how;
  sigset_t all, before;
  *h = (struct kl_hand){.t = t, .worker = t->started + 1};
  sigfillset(&all);
  pthread_attr_init(&how);
  pthread_attr_setstacksize(&how, STACK);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&h->id, &how, run_tasks, h) == 0)
    t->started++;
  else
    t->threads = t->started + 1;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&how);
}

void kl_tasks_add(kl_tasks *t, kl_task *x) {
  x->next = NULL;
  pthread_mutex_lock(&t->lock);
  *t->end = x;
  t->end = &x->next;
  t->waiting++;
  t->found++;
  if (t->waiting > t->idle && t->started + 1 < t->threads) start_hand(t);
  pthread_cond_signal(&t->there);
  pthread_mutex_unlock(&t->lock);
}

size_t kl_tasks_waiting(kl_tasks *t) {
  pthread_mutex_lock(&t->lock);
  size_t n = t->waiting;
  pthread_mutex_unlock(&t->lock);
  return n;
}

size_t kl_tasks_done(kl_tasks *t) {
  pthread_mutex_lock(&t->lock);
  size_t n = t->done;
  pthread_mutex_unlock(&t->lock);
  return n;
}

bool kl_tasks_help(kl_tasks *t) {
  pthread_mutex_lock(&t->lock);
  size_t before = t->done;
  bool any = before < t->found;
  if (t->first) do_first(t, 0);
  while (any && t->done == before) pthread_cond_wait(&t->ended, &t->lock);
  pthread_mutex_unlock(&t->lock);
  return any;
}

void kl_tasks_end(kl_tasks *t) {
  pthread_mutex_lock(&t->lock);
  t->over = true;
  pthread_cond_broadcast(&t->there);
  pthread_mutex_unlock(&t->lock);
  for (uint32_t k = 1; k <= t->started; k++) pthread_join(t->hands[k].id, NULL);
  pthread_cond_destroy(&t->ended);
  pthread_cond_destroy(&t->there);
  pthread_mutex_destroy(&t->lock);
}
