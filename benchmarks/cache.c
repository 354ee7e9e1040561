// What a cache of artifacts takes: a hit in memory, a hit in the folder, a miss, and the loading of what was saved.

#include "measure.h"

#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 201 };

static kiln_cache *open_cache(kiln_context *cx, const char *folder, uint64_t memory) {
  kiln_cache_params p = {.struct_size = sizeof p, .folder = folder, .max_memory_bytes = memory};
  kiln_cache *c = NULL;
  kiln_cache_open(cx, &p, &c);
  return c;
}

// Microseconds of one call, or of `times` on average, where a clock is too coarse for one.
static double one(kiln_context *cx, kiln_cache *c, const kiln_module *m, const kiln_compile_params *p, int times) {
  double start = now_ms();
  for (int i = 0; i < times; i++) {
    kiln_artifact *a = NULL;
    if (kiln_cache_compile(cx, c, m, p, &a)) exit(1);
    kiln_artifact_destroy(&a);
  }
  return (now_ms() - start) * 1e3 / times;
}

static int measure(kiln_context *cx, const char *path, const char *folder) {
  size_t size;
  double memory[RUNS], file[RUNS], miss[9];
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90"};
  char *text = read_text(path, &size);
  kiln_module *m = NULL;
  if (!text || kiln_module_parse(cx, path, text, size, &m)) return 1;
  for (int i = 0; i < 9; i++) {
    kiln_cache *c = open_cache(cx, "", 0);
    miss[i] = one(cx, c, m, &p, 1);
    kiln_cache_close(&c);
  }
  kiln_cache *warm = open_cache(cx, folder, 0), *cold = open_cache(cx, folder, 1);
  one(cx, warm, m, &p, 1);
  for (int i = 0; i < RUNS; i++) {
    memory[i] = one(cx, warm, m, &p, 100);
    file[i] = one(cx, cold, m, &p, 1);
  }
  kiln_cache_info info = {.struct_size = sizeof info};
  kiln_cache_describe(cx, cold, &info);
  const char *name = strrchr(path, '/');
  printf("%-28s %10.2f %10.1f %10.0f\n", name ? name + 1 : path, median(memory, RUNS), median(file, RUNS),
         median(miss, 9));
  kiln_cache_close(&warm);
  kiln_cache_close(&cold);
  kiln_module_destroy(&m);
  free(text);
  return info.folder_hits == RUNS ? 0 : 1;
}

int main(int argc, char **argv) {
  char folder[] = "/tmp/kiln-bench-XXXXXX", command[64];
  kiln_context *cx = kiln_context_create(NULL);
  int status = !cx || !mkdtemp(folder);
  printf("microseconds, medians      %10s %10s %10s\n", "in memory", "in folder", "compiled");
  for (int i = 1; i < argc && !status; i++) status = measure(cx, argv[i], folder);
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command)) status = 1;
  kiln_context_destroy(&cx);
  return status;
}
