// How compiling scales: threads that compile the same module, each with a context of its own, all they can in a while.

#include "measure.h"

#include <kiln/kiln.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 64, TURNS = 5 };
static const double WHILE_MS = 400;

typedef struct crew {
  const char *path, *text;
  size_t size;
  pthread_barrier_t ready; // contexts are warm
  double end;              // set by the one who lets them go
} crew;

typedef struct worker {
  crew *of;
  pthread_t thread;
  long made;
} worker;

static void compile_once(kiln_context *cx, const kiln_module *m) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90"};
  kiln_artifact *a = NULL;
  if (kiln_compile(cx, m, &p, &a)) exit(1);
  kiln_artifact_destroy(&a);
}

static void *work(void *user) {
  worker *w = user;
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  if (kiln_module_parse(cx, w->of->path, w->of->text, w->of->size, &m)) exit(1);
  compile_once(cx, m);
  pthread_barrier_wait(&w->of->ready);
  pthread_barrier_wait(&w->of->ready);
  for (; now_ms() < w->of->end; w->made++) compile_once(cx, m);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  return NULL;
}

// Compilations a second, and processor time of each in ms.
static void run(crew *c, int threads, double *rate, double *each) {
  worker workers[MOST_THREADS];
  long made = 0;
  pthread_barrier_init(&c->ready, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; i++) {
    workers[i] = (worker){.of = c};
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) exit(1);
  }
  pthread_barrier_wait(&c->ready);
  double start = now_ms(), before = processor_ms();
  c->end = start + WHILE_MS;
  pthread_barrier_wait(&c->ready);
  for (int i = 0; i < threads; i++) {
    pthread_join(workers[i].thread, NULL);
    made += workers[i].made;
  }
  *rate = 1e3 * (double)made / (now_ms() - start);
  *each = (processor_ms() - before) / (double)(made ? made : 1);
  pthread_barrier_destroy(&c->ready);
}

static int measure(const char *path, int most) {
  crew c = {.path = path};
  char *text = read_text(path, &c.size);
  const char *name = strrchr(path, '/');
  double one = 0, alone = 0;
  c.text = text;
  if (!text) return 1;
  for (int threads = 1; threads <= most; threads *= 2) {
    double rate[TURNS], each[TURNS];
    for (int t = 0; t < TURNS; t++) run(&c, threads, &rate[t], &each[t]);
    double r = median(rate, TURNS), e = median(each, TURNS);
    if (threads == 1) one = r, alone = e;
    printf("%-28s %8d %10.1f %9.2f %10.2f %9.2f\n", name ? name + 1 : path, threads, r, r / one, e, e / alone);
  }
  free(text);
  return 0;
}

int main(int argc, char **argv) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int bad = argc < 2, most = cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (int)cores;
  printf("%-28s %8s %10s %9s %10s %9s\n", "", "threads", "a second", "speed-up", "ms of one", "to alone");
  for (int i = 1; i < argc; i++) bad |= measure(argv[i], most);
  return bad;
}
