// How fast it is told which elements need which: along a chain of ops, and where one value is used twice at every step.
//
// CPU times of the thread, medians of several runs; the maps of ENTRY, one way and the other.

#include "measure.h"

#include <kiln/index.h>
#include <kiln/kiln.h>
#include <string.h>

enum { RUNS = 9, MOST = 1 << 18 };

// Lines of a step, from x%1$d to x%2$d.
static const char *const chain[] = {
    "x%2$d = negate(x%1$d)",
    "x%2$d = transpose(x%1$d), dimensions={2,1,0}",
    "x%2$d = reverse(x%1$d), dimensions={0}",
    "x%2$d = transpose(x%1$d), dimensions={2,1,0}",
    "x%2$d = exponential(x%1$d)",
    NULL,
};
static const char *const shared[] = {"h%1$d = negate(x%1$d)\n  x%2$d = add(x%1$d, h%1$d)", NULL};
static const char *const turned[] = {"h%1$d = reverse(x%1$d), dimensions={1}\n  x%2$d = add(x%1$d, h%1$d)", NULL};

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static kiln_module *module_of(kiln_context *cx, const char *const *steps, int n) {
  static char text[MOST];
  kiln_module *m = NULL;
  int at = snprintf(text, MOST, "ENTRY e {\n  x0 = f32[8,12,20] parameter(0)\n"), count = 0;
  while (steps[count]) count++;
  for (int i = 0; i < n; i++) {
    at += snprintf(text + at, MOST - (size_t)at, "  ");
    at += snprintf(text + at, MOST - (size_t)at, steps[i % count], i, i + 1);
    at += snprintf(text + at, MOST - (size_t)at, "\n");
  }
  snprintf(text + at, MOST - (size_t)at, "}\n");
  if (kiln_module_parse(cx, "benchmark", text, strlen(text), &m) == KILN_OK) return m;
  fputs(kiln_diagnostics_get(cx, 0)->text, stderr);
  exit(2);
}

static double index_once(kiln_context *cx, const kiln_module *m, kiln_index_way way) {
  kiln_index_params how = {.struct_size = sizeof how, .way = way};
  kiln_indexing *list;
  double begin = cpu_ms();
  if (kiln_module_index(cx, m, &how, &list) != KILN_OK) exit(4);
  double took = cpu_ms() - begin;
  kiln_indexing_destroy(&list);
  return took;
}

static void measure(kiln_context *cx, const char *what, const char *const *steps, int n) {
  kiln_module *m = module_of(cx, steps, n);
  double back[RUNS], on[RUNS];
  for (int i = -1; i < RUNS; i++) {
    double a = index_once(cx, m, KILN_INDEX_FROM_OUTPUT), b = index_once(cx, m, KILN_INDEX_FROM_INPUT);
    if (i < 0) continue; // to warm up
    back[i] = a;
    on[i] = b;
  }
  printf("%-44s %10.3f %12.3f\n", what, median(back, RUNS), median(on, RUNS));
  kiln_module_destroy(&m);
}

int main(void) {
  kiln_context *cx = kiln_context_create(NULL);
  printf("%-44s %10s %12s\n", "ms", "from output", "from input");
  measure(cx, "a chain of 1000 ops", chain, 1000);
  measure(cx, "2^30 paths that are one", shared, 30);
  measure(cx, "2^30 paths that are two", turned, 30);
  kiln_context_destroy(&cx);
  return 0;
}
