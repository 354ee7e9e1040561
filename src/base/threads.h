// Threads for the pieces of one call (threads.c).
#ifndef KL_THREADS_H
#define KL_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Of pieces of a range, by workers that are numbered from 0. Workers never touch a context: allocation and findings
// belong to its own thread.
typedef void kl_piece_body(void *arg, uint32_t worker, int64_t begin, int64_t end);
uint32_t kl_cores(void);
// How many workers kl_parallel uses at most.
uint32_t kl_workers(uint32_t threads, int64_t n, int64_t grain);
// Runs body over pieces of [0, n) of at most `grain`, on up to so many threads. Piece borders are multiples of the
// grain, so nothing depends on the number of workers.
void kl_parallel(uint32_t threads, int64_t n, int64_t grain, kl_piece_body *body, void *arg);

// Tasks that one thread finds one by one, and others do meanwhile, begun in the order in which they were found. Where
// all of them are done depends on nobody: a thread that cannot start leaves its tasks to the others, at last to the
// finder. Threads start when there is something to do that none of those before is free for, and take no signals.
typedef struct kl_task {
  struct kl_task *next;
} kl_task;
typedef void kl_task_body(void *arg, uint32_t worker, kl_task *t); // worker: from 0, the finder, up

enum { KL_MOST_WORKERS = 256 };
typedef struct kl_tasks {
  kl_task_body *body;
  void *arg;
  uint32_t threads, started, idle; // with the finder; without; of these waiting
  kl_task *first, **end;           // that nobody has begun
  size_t waiting, found, done;
  bool over; // nothing is begun any more
  pthread_mutex_t lock;
  pthread_cond_t there, ended;
  struct kl_hand {
    struct kl_tasks *t;
    uint32_t worker;
    pthread_t id;
  } hands[KL_MOST_WORKERS]; // by worker; that of the finder is nobody's
} kl_tasks;

// For up to so many threads, the finder among them. All of these are called by the finder.
void kl_tasks_begin(kl_tasks *t, uint32_t threads, kl_task_body *body, void *arg);
void kl_tasks_add(kl_tasks *t, kl_task *x); // x stays where it is until it is done
size_t kl_tasks_waiting(kl_tasks *t);       // found, and not begun
size_t kl_tasks_done(kl_tasks *t);
// Does the first task that nobody has begun; where there is none, waits for one to be done. False: all are.
bool kl_tasks_help(kl_tasks *t);
// Begins no more of them, waits for those that have begun, and ends the threads.
void kl_tasks_end(kl_tasks *t);

#endif
