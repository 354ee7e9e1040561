// kiln run: compile, run, check, report.

#include "kiln.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { O_DEVICE, O_FUSION, O_INPUT, O_SEED, O_OUTPUT, O_CHECK, O_NUMERICS, O_TARGET, O_THREADS, O_REPEAT, O_JSON };
static const option options[] = {
    {"--device", "NAME", "auto, host or eval (default auto: host)"},
    {"--fusion", "NAME", "only this fusion of ENTRY"},
    {"--input", "K=FILE.npy", "values of parameter K; parameters without are filled from the seed"},
    {"--seed", "N", "seed of the filled parameters (default 0)"},
    {"--output", "DIR", "write results as DIR/result0.npy ...; DIR is made if need be"},
    {"--check", NULL, "compare every result with the reference evaluator; exit status 1 if any differs"},
    {"--numerics", "MODE", "strict (the default)"},
    {"--target", "TARGET", "GPU whose kernel is reported (default sm_90)"},
    {"--threads", "N", "CPU threads (default: all cores)"},
    {"--repeat", "N", "timed runs, of which the median counts (default 5)"},
    {"--json", NULL, "report as one JSON object"},
    {0},
};

typedef struct session {
  const args *a;
  kiln_context *cx;
  kiln_module *m;
  kiln_artifact *gpu, *host;
  size_t nparams, nresults;
  void **params, **results;
  unsigned long long seed, threads, repeat;
  bool eval;
  double compile_ms, seconds, check_seconds; // seconds: median of the runs
  size_t mismatches;
  kiln_mismatch mismatch[16];
} session;

// --- inputs ---------------------------------------------------------------------------------------------------------

static int out_of_memory(int64_t bytes) {
  fprintf(stderr, "kiln run: no memory for an array of %lld bytes\n", (long long)bytes);
  return EXIT_BAD_INPUT;
}

static int allocate(size_t n, int64_t (*bytes)(const kiln_module *, size_t), const kiln_module *m, void ***out) {
  *out = calloc(n + 1, sizeof(void *));
  for (size_t i = 0; *out && i < n; i++) {
    int64_t b = bytes(m, i);
    if (b < 0) {
      fprintf(stderr, "kiln run: ENTRY's interface has a value that is no array\n");
      return EXIT_NOT_SUPPORTED;
    }
    if (posix_memalign(&(*out)[i], 64, (size_t)b + 64)) {
      (*out)[i] = NULL;
      return out_of_memory(b);
    }
  }
  return *out ? 0 : out_of_memory((int64_t)n);
}

static int64_t element_bytes(const kiln_array_type *t) {
  int64_t n = (int64_t)npy_item_size(t->dtype);
  for (uint32_t d = 0; d < t->rank; d++) n *= t->dims[d];
  return n;
}

static int read_input(session *s, size_t k, const char *path) {
  kiln_array_type t;
  if (!kiln_module_param_type(s->m, k, &t)) {
    fprintf(stderr, "kiln run: --input %zu: the parameter is no array\n", k);
    return EXIT_BAD_INPUT;
  }
  void *elements = malloc((size_t)element_bytes(&t) + 1);
  if (!elements) return out_of_memory(element_bytes(&t));
  int status = npy_read(path, &t, elements);
  if (!status) kiln_module_param_pack(s->m, k, elements, s->params[k]);
  free(elements);
  return status;
}

static int load_inputs(session *s) {
  for (size_t i = 0; i < s->nparams; i++) kiln_module_param_fill(s->m, i, s->seed, s->params[i]);
  for (int i = 0; i < s->a->count; i++) {
    if (s->a->all[i].option != O_INPUT) continue;
    const char *value = s->a->all[i].value, *equals = strchr(value, '=');
    char index[24] = "";
    unsigned long long k;
    if (equals && (size_t)(equals - value) < sizeof index) memcpy(index, value, (size_t)(equals - value));
    if (!equals || !s->nparams || !number(index, 0, s->nparams - 1, &k)) {
      fprintf(stderr, "kiln run: --input '%s': expected K=FILE.npy, K one of the %zu parameters from 0\n", value,
              s->nparams);
      return EXIT_BAD_INPUT;
    }
    int status = read_input(s, k, equals + 1);
    if (status) return status;
  }
  return 0;
}

static int make_folder(const char *dir) {
  if (mkdir(dir, 0777) == 0 || errno == EEXIST) return 0;
  fprintf(stderr, "kiln: cannot make the folder %s: %s\n", dir, strerror(errno));
  return EXIT_BAD_INPUT;
}

static int write_results(session *s, const char *dir) {
  int made = make_folder(dir);
  if (made) return made;
  for (size_t i = 0; i < s->nresults; i++) {
    kiln_array_type t;
    if (!kiln_module_result_type(s->m, i, &t)) continue;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/result%zu.npy", dir, i) >= (int)sizeof path) {
      fprintf(stderr, "kiln run: --output: the name of the folder is too long\n");
      return EXIT_BAD_INPUT;
    }
    void *elements = malloc((size_t)element_bytes(&t) + 1);
    if (!elements) return out_of_memory(element_bytes(&t));
    kiln_module_result_unpack(s->m, i, s->results[i], elements);
    int status = npy_write(path, &t, elements);
    free(elements);
    if (status) return status;
  }
  return 0;
}

// --- running --------------------------------------------------------------------------------------------------------

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int run_host(session *s) {
  kiln_kernel *k = NULL;
  kiln_status st = kiln_kernel_load(s->cx, s->host, &k);
  kiln_run_params rp = {.struct_size = sizeof rp, .threads = (uint32_t)s->threads};
  double *times = calloc(s->repeat + 1, sizeof *times);
  progress("running");
  for (size_t i = 0; times && st == KILN_OK && i <= s->repeat; i++) {
    double start = now_seconds();
    st = kiln_kernel_run(s->cx, k, (const void *const *)s->params, s->results, &rp);
    times[i] = now_seconds() - start;
  }
  progress(NULL);
  if (st == KILN_OK && times) { // the first run warms up
    qsort(times + 1, s->repeat, sizeof *times, by_value);
    s->seconds = times[1 + s->repeat / 2];
  }
  free(times);
  kiln_kernel_destroy(&k);
  return report(s->cx, st);
}

static int run_eval(session *s) {
  kiln_eval_params ep = {.struct_size = sizeof ep, .threads = (uint32_t)s->threads};
  double start = now_seconds();
  progress("evaluating");
  kiln_status st = kiln_module_eval(s->cx, s->m, (const void *const *)s->params, s->results, &ep);
  progress(NULL);
  s->seconds = now_seconds() - start;
  return report(s->cx, st);
}

static int compile_both(session *s) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = s->a->values[O_TARGET]};
  double start = now_seconds();
  kiln_status st = kiln_compile(s->cx, s->m, &p, &s->gpu);
  s->compile_ms = (now_seconds() - start) * 1e3;
  p.target = "host";
  if (st == KILN_OK) st = kiln_compile(s->cx, s->m, &p, &s->host);
  return report(s->cx, st);
}

static int check(session *s) {
  kiln_eval_params ep = {.struct_size = sizeof ep, .threads = (uint32_t)s->threads};
  double start = now_seconds();
  progress("checking");
  kiln_status st = kiln_module_check(s->cx, s->m, (const void *const *)s->params, (const void *const *)s->results,
                                     s->mismatch, 16, &s->mismatches, &ep);
  progress(NULL);
  s->check_seconds = now_seconds() - start;
  return report(s->cx, st);
}

// --- reporting ------------------------------------------------------------------------------------------------------

static int64_t total_bytes(const session *s) {
  int64_t n = 0;
  for (size_t i = 0; i < s->nparams; i++) n += kiln_module_param_bytes(s->m, i);
  for (size_t i = 0; i < s->nresults; i++) n += kiln_module_result_bytes(s->m, i);
  return n;
}

static int64_t result_elements(const session *s) {
  int64_t n = 0;
  for (size_t i = 0; i < s->nresults; i++) {
    kiln_array_type t;
    if (kiln_module_result_type(s->m, i, &t)) n += element_bytes(&t) / (int64_t)npy_item_size(t.dtype);
  }
  return n;
}

static void report_kernels(const session *s) {
  size_t n = kiln_artifact_launch_count(s->gpu);
  for (size_t i = 0; i < n; i++) {
    const kiln_launch *l = kiln_artifact_launch(s->gpu, i);
    printf("kernel   %s for %s: ", l->kernel, kiln_artifact_target(s->gpu));
    if (l->grid[0])
      printf("grid %u, block %u, %u element%s a thread in %u-byte accesses", l->grid[0], l->block[0], l->lanes,
             l->lanes == 1 ? "" : "s", l->vector_bytes);
    else
      printf("no elements, nothing to launch");
    if (n == 1) printf(", compiled in %.1f ms", s->compile_ms);
    printf("\n");
  }
  if (n > 1) printf("compile  %.1f ms for all %zu kernels\n", s->compile_ms, n);
}

static void report_mismatches(const session *s) {
  for (size_t i = 0; i < s->mismatches && i < 16; i++) {
    const kiln_mismatch *x = &s->mismatch[i];
    printf("         result %zu: %lld elements differ, first element %lld: found %s, expected %s\n", x->result,
           (long long)x->count, (long long)x->element, x->found, x->expected);
  }
}

static void report_text(const session *s, bool checked) {
  int64_t bytes = total_bytes(s);
  printf("module   %s\n", kiln_module_name(s->m));
  printf("device   %s\n", s->eval ? "eval, the reference evaluator" : "host, this CPU through ORC");
  if (s->gpu) report_kernels(s);
  printf("data     %lld bytes in and out\n", (long long)bytes);
  printf("time     %.3f ms, %.1f GB/s\n", s->seconds * 1e3, s->seconds > 0 ? (double)bytes / s->seconds * 1e-9 : 0);
  if (s->eval)
    printf("verdict  none: --check compares with the evaluator, and these are its own results\n");
  else if (!checked)
    printf("verdict  not checked (--check compares every result with the evaluator)\n");
  else if (!s->mismatches)
    printf("verdict  all %lld results are right (evaluator: %.2f s)\n", (long long)result_elements(s),
           s->check_seconds);
  else
    printf("verdict  WRONG\n");
  report_mismatches(s);
}

static void report_json(const session *s, bool checked) {
  int64_t bytes = total_bytes(s);
  printf("{\"module\": ");
  json_string(stdout, kiln_module_name(s->m));
  printf(", \"device\": \"%s\", \"kernels\": [", s->eval ? "eval" : "host");
  for (size_t i = 0; s->gpu && i < kiln_artifact_launch_count(s->gpu); i++) {
    const kiln_launch *l = kiln_artifact_launch(s->gpu, i);
    printf("%s{\"kernel\": ", i ? ", " : "");
    json_string(stdout, l->kernel);
    printf(", \"target\": \"%s\", \"grid\": %u, \"block\": %u, \"lanes\": %u, \"vector_bytes\": %u}",
           kiln_artifact_target(s->gpu), l->grid[0], l->block[0], l->lanes, l->vector_bytes);
  }
  printf(
      "], \"compile_ms\": %.3f, \"bytes\": %lld, \"ms\": %.6f, \"gb_per_s\": %.3f, \"results\": %lld, \"checked\": %s",
      s->compile_ms, (long long)bytes, s->seconds * 1e3, s->seconds > 0 ? (double)bytes / s->seconds * 1e-9 : 0,
      (long long)result_elements(s), checked ? "true" : "false");
  if (checked) printf(", \"right\": %s", s->mismatches ? "false" : "true");
  printf("}\n");
}

// --- the verb -------------------------------------------------------------------------------------------------------

static int refuse(const char *what, const char *word, const char *expected, int status) {
  fprintf(stderr, "kiln run: %s '%s': %s\n", what, word, expected);
  return status;
}

static int check_words(session *s) {
  const char *const *v = s->a->values;
  const char *device = v[O_DEVICE] ? v[O_DEVICE] : "auto";
  s->eval = strcmp(device, "eval") == 0;
  if (strcmp(device, "cuda") == 0 || strcmp(device, "sim") == 0)
    return refuse("--device", device, "not supported yet: expected auto, host or eval", EXIT_NOT_SUPPORTED);
  if (!s->eval && strcmp(device, "auto") != 0 && strcmp(device, "host") != 0)
    return refuse("--device", device, "expected auto, cuda, host, sim or eval", EXIT_BAD_INPUT);
  if (v[O_NUMERICS] && strcmp(v[O_NUMERICS], "fast") == 0)
    return refuse("--numerics", "fast", "not supported yet: expected strict", EXIT_NOT_SUPPORTED);
  if (v[O_NUMERICS] && strcmp(v[O_NUMERICS], "strict") != 0)
    return refuse("--numerics", v[O_NUMERICS], "expected strict or fast", EXIT_BAD_INPUT);
  s->seed = s->threads = 0;
  s->repeat = 5;
  if (v[O_SEED] && !number(v[O_SEED], 0, ~0ull, &s->seed))
    return refuse("--seed", v[O_SEED], "expected a whole number from 0 to 2^64-1", EXIT_BAD_INPUT);
  if (v[O_THREADS] && !number(v[O_THREADS], 1, 256, &s->threads))
    return refuse("--threads", v[O_THREADS], "expected 1 to 256", EXIT_BAD_INPUT);
  if (v[O_REPEAT] && !number(v[O_REPEAT], 1, 100000, &s->repeat))
    return refuse("--repeat", v[O_REPEAT], "expected 1 to 100000", EXIT_BAD_INPUT);
  return 0;
}

static int prepare(session *s) {
  int status = open_module(s->cx, s->a->file, s->a->values[O_FUSION], &s->m);
  if (!status && !s->eval) status = compile_both(s);
  if (status) return status;
  s->nparams = kiln_module_param_leaves(s->m);
  s->nresults = kiln_module_result_count(s->m);
  status = allocate(s->nparams, kiln_module_param_bytes, s->m, &s->params);
  if (!status) status = allocate(s->nresults, kiln_module_result_bytes, s->m, &s->results);
  return status ? status : load_inputs(s);
}

static int work(session *s) {
  const char *const *v = s->a->values;
  int status = check_words(s);
  if (!status) status = prepare(s);
  if (!status) status = s->eval ? run_eval(s) : run_host(s);
  bool checked = v[O_CHECK] && !s->eval;
  if (!status && checked) status = check(s);
  if (!status && v[O_OUTPUT]) status = write_results(s, v[O_OUTPUT]);
  if (status) return status;
  if (v[O_JSON])
    report_json(s, checked);
  else
    report_text(s, checked);
  return s->mismatches ? EXIT_DIFFERS : EXIT_DONE;
}

static void release(void ***buffers, size_t n) {
  for (size_t i = 0; *buffers && i < n; i++) free((*buffers)[i]);
  free(*buffers);
}

static int run(const args *a) {
  session s = {.a = a, .cx = kiln_context_create(NULL)};
  int status = work(&s);
  release(&s.params, s.nparams);
  release(&s.results, s.nresults);
  kiln_artifact_destroy(&s.gpu);
  kiln_artifact_destroy(&s.host);
  kiln_module_destroy(&s.m);
  kiln_context_destroy(&s.cx);
  return status;
}

const verb verb_run = {
    "run",
    "run FILE.hlo [OPTION]...",
    "compile, run, and with --check compare with the evaluator",
    "Compiles a module, runs it, and with --check compares all results with the reference evaluator.",
    options,
    run,
    true};
