// What the benchmarks measure with.
#ifndef BENCHMARKS_MEASURE_H
#define BENCHMARKS_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// Of all threads of the process, also of those that have ended: what others do on a shared machine is not in it.
static inline double processor_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static inline int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Sorts the n > 0 times.
static inline double median(double *t, int n) {
  qsort(t, (size_t)n, sizeof *t, by_value);
  return t[n / 2];
}

// The file's first MiB, NUL-terminated and for the caller to free; NULL if there is none.
static inline char *read_text(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  char *text = f ? calloc(1, 1 << 20) : NULL;
  *size = text ? fread(text, 1, (1 << 20) - 1, f) : 0;
  if (f) fclose(f);
  return text;
}

#endif
