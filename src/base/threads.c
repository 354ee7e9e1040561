// Threads that live for one call and take pieces of a range from a counter. They inherit the floating-point environment
// of the caller.
#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

enum { MAX_WORKERS = 256 };

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
  return n < 1 ? 1 : n > MAX_WORKERS ? MAX_WORKERS : (uint32_t)n;
}

static int64_t piece_count(int64_t n, int64_t grain) {
  return n / grain + (n % grain != 0);
}

uint32_t kl_workers(uint32_t threads, int64_t n, int64_t grain) {
  int64_t pieces = piece_count(n, grain), most = threads < MAX_WORKERS ? threads : MAX_WORKERS;
  return pieces < 1 ? 1 : (uint32_t)(pieces < most ? pieces : most);
}

void kl_parallel(uint32_t threads, int64_t n, int64_t grain, kl_piece_body *body, void *arg) {
  if (n <= 0) return;
  crew c = {body, arg, n, grain, piece_count(n, grain), 0};
  member members[MAX_WORKERS];
  uint32_t workers = kl_workers(threads, n, grain), started = 1;
  // Where no thread can be had, those that run do the work.
  for (; started < workers; started++) {
    members[started] = (member){.crew = &c, .worker = started};
    if (pthread_create(&members[started].thread, NULL, run_member, &members[started])) break;
  }
  work(&c, 0);
  for (uint32_t k = 1; k < started; k++) pthread_join(members[k].thread, NULL);
}
