// kiln run: compile, run, check, report.

#include "session.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { O_DEVICE = O_OTHERS, O_INPUT, O_SEED, O_OUTPUT, O_CHECK, O_NUMERICS, O_THREADS, O_REPEAT, O_JSON };
static const option options[] = {
    COMPILE_OPTIONS("GPU to compile for (default: the one here, else sm_90)"),
    {"--device", "NAME", "auto, cuda, host or eval (default auto: cuda if there is a GPU, else host)"},
    {"--input", "K=FILE.npy", "values of parameter K; parameters without are filled from the seed", true},
    {"--seed", "N", "seed of the filled parameters (default 0)"},
    {"--output", "DIR", "write results as DIR/result0.npy ...; DIR is made if need be"},
    {"--check", NULL, "compare every result with the reference evaluator; exit status 1 if any differs"},
    {"--numerics", "MODE", "strict (the default)"},
    {"--threads", "N", "CPU threads (default: all cores)"},
    {"--repeat", "N", "timed runs, of which the median counts (default 5)"},
    {"--json", NULL, "report as one JSON object"},
    {0},
};

// --- results ---------------------------------------------------------------------------------------------------------

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
    void *elements = malloc((size_t)npy_bytes(&t) + 1);
    if (!elements) return out_of_memory(npy_bytes(&t));
    kiln_module_result_unpack(s->m, i, s->results[i], elements);
    int status = npy_write(path, &t, elements);
    free(elements);
    if (status) return status;
  }
  return 0;
}

// --- running --------------------------------------------------------------------------------------------------------

static int run_eval(session *s) {
  kiln_eval_params ep = {.struct_size = sizeof ep, .threads = (uint32_t)s->threads};
  double start = now_seconds();
  progress("evaluating");
  kiln_status st = kiln_module_eval(s->cx, s->m, (const void *const *)s->params, s->results, &ep);
  progress(NULL);
  s->seconds = now_seconds() - start;
  return report(s->cx, st);
}

// --- reporting ------------------------------------------------------------------------------------------------------

static void report_kernels(const session *s) {
  const kiln_manifest *m = kiln_artifact_manifest(s->gpu);
  size_t n = m->launch_count;
  for (size_t i = 0; i < n; i++) {
    const kiln_launch *l = &m->launches[i];
    printf("kernel   %s for %s: ", l->kernel, m->target);
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

static const char *const machine_names[] = {"host", "eval", "cuda"};

static const char *machine_text(const session *s) {
  switch (s->machine) {
  case ON_EVAL: return "eval, the reference evaluator";
  case ON_CUDA: return s->device.name;
  default: return "host, this CPU through ORC";
  }
}

static void report_text(const session *s, bool checked) {
  int64_t bytes = session_bytes(s);
  printf("module   %s\n", kiln_module_name(s->m));
  printf("device   %s\n", machine_text(s));
  if (s->gpu) report_kernels(s);
  printf("data     %lld bytes in and out\n", (long long)bytes);
  printf("time     %.3f ms, %.1f GB/s\n", s->seconds * 1e3, s->seconds > 0 ? (double)bytes / s->seconds * 1e-9 : 0);
  if (s->machine == ON_EVAL)
    printf("verdict  none: --check compares with the evaluator, and these are its own results\n");
  else if (!checked)
    printf("verdict  not checked (--check compares every result with the evaluator)\n");
  else if (!s->mismatches)
    printf("verdict  all %lld results are right (evaluator: %.2f s)\n", (long long)session_elements(s),
           s->check_seconds);
  else
    printf("verdict  WRONG\n");
  report_mismatches(s);
}

static void report_json(const session *s, bool checked) {
  int64_t bytes = session_bytes(s);
  printf("{\"module\": ");
  json_string(stdout, kiln_module_name(s->m));
  printf(", \"device\": \"%s\", \"kernels\": [", machine_names[s->machine]);
  for (size_t i = 0; s->gpu && i < kiln_artifact_manifest(s->gpu)->launch_count; i++) {
    const kiln_launch *l = &kiln_artifact_manifest(s->gpu)->launches[i];
    printf("%s{\"kernel\": ", i ? ", " : "");
    json_string(stdout, l->kernel);
    printf(", \"target\": \"%s\", \"grid\": %u, \"block\": %u, \"lanes\": %u, \"vector_bytes\": %u}",
           kiln_artifact_manifest(s->gpu)->target, l->grid[0], l->block[0], l->lanes, l->vector_bytes);
  }
  printf(
      "], \"compile_ms\": %.3f, \"bytes\": %lld, \"ms\": %.6f, \"gb_per_s\": %.3f, \"results\": %lld, \"checked\": %s",
      s->compile_ms, (long long)bytes, s->seconds * 1e3, s->seconds > 0 ? (double)bytes / s->seconds * 1e-9 : 0,
      (long long)session_elements(s), checked ? "true" : "false");
  if (checked) printf(", \"right\": %s", s->mismatches ? "false" : "true");
  printf("}\n");
}

// --- the verb -------------------------------------------------------------------------------------------------------

static int refuse(const char *what, const char *word, const char *expected, int status) {
  fprintf(stderr, "kiln run: %s '%s': %s\n", what, word, expected);
  return status;
}

// auto: cuda if it is there, else the host.
static int choose_machine(session *s) {
  const char *device = s->a->values[O_DEVICE] ? s->a->values[O_DEVICE] : "auto";
  if (strcmp(device, "sim") == 0)
    return refuse("--device", device, "not supported yet: expected auto, cuda, host or eval", EXIT_NOT_SUPPORTED);
  if (strcmp(device, "eval") == 0)
    s->machine = ON_EVAL;
  else if (strcmp(device, "cuda") == 0 || strcmp(device, "auto") == 0)
    s->machine = session_open_cuda(s, device[0] == 'a') ? ON_CUDA : ON_HOST;
  else if (strcmp(device, "host") != 0)
    return refuse("--device", device, "expected auto, cuda, host, sim or eval", EXIT_BAD_INPUT);
  return strcmp(device, "cuda") == 0 && s->machine != ON_CUDA ? EXIT_DEVICE : 0;
}

static int check_words(session *s) {
  const char *const *v = s->a->values;
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
  int status = session_open(s);
  for (int i = 0; !status && i < s->a->count; i++)
    if (s->a->all[i].option == O_INPUT) status = session_input(s, s->a->all[i].value);
  return status;
}

static int work(session *s) {
  const char *const *v = s->a->values;
  static int (*const machines[])(session *) = {session_run_host, run_eval, session_run_cuda};
  int status = check_words(s);
  if (!status) status = choose_machine(s);
  if (!status) status = prepare(s);
  if (!status) status = machines[s->machine](s);
  bool checked = v[O_CHECK] && s->machine != ON_EVAL;
  if (!status && checked) status = session_check(s);
  if (!status && v[O_OUTPUT]) status = write_results(s, v[O_OUTPUT]);
  if (status) return status;
  if (v[O_JSON])
    report_json(s, checked);
  else
    report_text(s, checked);
  return s->mismatches ? EXIT_DIFFERS : EXIT_DONE;
}

static int run(const args *a) {
  session s = {.a = a, .cx = kiln_context_create(NULL)};
  int status = work(&s);
  session_close(&s);
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
