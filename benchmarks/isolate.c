// What compiling in a process of its own takes beside compiling here, and what starting that process takes.

#include "measure.h"

#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 51 };

// Milliseconds.
static double one(kiln_context *cx, const kiln_module *m, const kiln_compile_params *p) {
  kiln_artifact *a = NULL;
  double start = now_ms();
  if (kiln_compile(cx, m, p, &a)) {
    for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
    exit(1);
  }
  double took = now_ms() - start;
  kiln_artifact_destroy(&a);
  return took;
}

static int measure(kiln_context *cx, const char *path) {
  size_t size;
  double here[RUNS], there[RUNS], more[RUNS];
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90"}, q = p;
  q.isolate = true;
  char *text = read_text(path, &size);
  kiln_module *m = NULL;
  if (!text || kiln_module_parse(cx, path, text, size, &m)) return 1;
  one(cx, m, &p);
  double first = one(cx, m, &q);
  for (int i = 0; i < RUNS; i++) {
    here[i] = one(cx, m, &p);
    there[i] = one(cx, m, &q);
    more[i] = there[i] - here[i];
  }
  const char *name = strrchr(path, '/');
  printf("%-28s %9.2f %9.2f %9.2f %9.1f\n", name ? name + 1 : path, median(here, RUNS), median(there, RUNS),
         median(more, RUNS), first);
  kiln_module_destroy(&m);
  free(text);
  return 0;
}

// A context for each, so that each starts a process.
int main(int argc, char **argv) {
  int bad = argc < 2;
  printf("%-28s %9s %9s %9s %9s\n", "ms", "here", "apart", "more", "first");
  for (int i = 1; i < argc; i++) {
    kiln_context *cx = kiln_context_create(NULL);
    bad |= measure(cx, argv[i]);
    kiln_context_destroy(&cx);
  }
  return bad;
}
