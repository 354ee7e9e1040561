// How long kiln itself takes: HLO text to PTX, warm, and host kernels, for every file given.
//
// Medians over many runs in one process after a warm-up. Columns: text to checked graph, graph to PTX for sm_90, both
// together, graph to host code, one host run on all cores, and the memory traffic that makes.

#include "measure.h"

#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 41, HOST_RUNS = 9 };

static double run_host(kiln_context *cx, kiln_module *m, double *gb) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = "host"};
  kiln_artifact *a = NULL;
  kiln_kernel *k = NULL;
  void *in[64] = {0}, *out[64] = {0};
  double t[HOST_RUNS + 1] = {0};
  if (kiln_compile(cx, m, &p, &a) || kiln_kernel_load(cx, a, &k)) return -1;
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m) && i < 64; i++) {
    int64_t bytes = kiln_module_parameter_leaf_bytes(m, i);
    in[i] = malloc((size_t)bytes + 64);
    if (in[i]) kiln_module_parameter_leaf_fill(m, i, 0, in[i]);
    *gb += (double)bytes * 1e-9;
  }
  for (size_t i = 0; i < kiln_module_result_leaf_count(m) && i < 64; i++) {
    int64_t bytes = kiln_module_result_leaf_bytes(m, i);
    out[i] = malloc((size_t)bytes + 64);
    *gb += (double)bytes * 1e-9;
  }
  for (int i = 0; i <= HOST_RUNS; i++) {
    double start = now_ms();
    if (kiln_kernel_run(cx, k, (const void *const *)in, out, NULL)) return -1;
    t[i] = now_ms() - start;
  }
  for (int i = 0; i < 64; i++) free(in[i]), free(out[i]);
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  return median(t + 1, HOST_RUNS);
}

static int measure(kiln_context *cx, const char *path) {
  size_t size;
  char *text = read_text(path, &size);
  if (!text) return 1;
  double parse[RUNS], compile[RUNS], both[RUNS], host[RUNS], gb = 0;
  kiln_module *m = NULL;
  for (int i = -3; i < RUNS; i++) {
    kiln_artifact *a = NULL, *h = NULL;
    kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90"};
    kiln_module_destroy(&m);
    double t0 = now_ms();
    if (kiln_module_parse(cx, path, text, size, &m)) return 1;
    double t1 = now_ms();
    if (kiln_compile(cx, m, &p, &a)) return 1;
    double t2 = now_ms();
    p.target = "host";
    if (i >= 0 && i < HOST_RUNS && kiln_compile(cx, m, &p, &h)) return 1;
    double t3 = now_ms();
    kiln_artifact_destroy(&a);
    kiln_artifact_destroy(&h);
    if (i < 0) continue;
    parse[i] = t1 - t0;
    compile[i] = t2 - t1;
    both[i] = t2 - t0;
    host[i] = t3 - t2;
  }
  double run = run_host(cx, m, &gb);
  const char *name = strrchr(path, '/');
  printf("%-24s %8.3f %9.3f %9.3f %11.3f %9.2f %8.1f\n", name ? name + 1 : path, median(parse, RUNS),
         median(compile, RUNS), median(both, RUNS), median(host, HOST_RUNS), run, run > 0 ? gb / run * 1e3 : 0);
  kiln_module_destroy(&m);
  free(text);
  return 0;
}

int main(int argc, char **argv) {
  kiln_context *cx = kiln_context_create(NULL);
  int status = 0;
  printf("%-24s %8s %9s %9s %11s %9s %8s\n", "ms (median)", "parse", "to PTX", "text-PTX", "to host", "host run",
         "GB/s");
  for (int i = 1; i < argc && !status; i++) status = measure(cx, argv[i]);
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  kiln_context_destroy(&cx);
  return status;
}
