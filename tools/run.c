// kiln run: compile, run, check, report.

#include "npy/npy.h"
#include "session/session.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { O_INPUT = O_VERB, O_OUTPUT, O_CHECK, O_LAUNCHES };
static const option options[] = {
    SESSION_OPTIONS("GPU to compile for (default: the one here, else sm_90)", "auto, cuda, host, sim or eval", "5"),
    {"--input", "K=FILE.npy",
     "values of parameter K, one with a sparse encoding also as FILE.npz or FILE.mtx; parameters without are filled "
     "from the seed",
     true},
    {"--output", "DIR",
     "write results as DIR/result0.npy ..., those with a sparse encoding as DIR/result0.npz; DIR is made if need be"},
    {"--check", NULL,
     "compare every result with the reference evaluator, and with --device sim look for values that were never "
     "written, "
     "races and the like; exit status 1 if anything is wrong"},
    {"--launches", NULL,
     "a table of the launches of the last run: how often, time and share of it, bytes that they read and write; each "
     "is "
     "waited for"},
    {0},
};

// --- inputs ----------------------------------------------------------------------------------------------------------

static int read_input(session *s, size_t k, const char *path) {
  const kiln_module *m = session_module(s);
  kiln_array_type t;
  if (kiln_module_parameter_leaf_encoding(m, k) && stored_is_file(path)) return stored_read(s->cx, &s->stored, k, path);
  if (!kiln_module_parameter_leaf_type(m, k, &t)) {
    fprintf(stderr, "kiln run: --input %zu: the parameter is no array\n", k);
    return EXIT_BAD_INPUT;
  }
  void *elements = malloc((size_t)kiln_npy_bytes(&t) + 1);
  if (!elements) return out_of_memory(kiln_npy_bytes(&t));
  int status = npy_read(path, &t, elements);
  if (!status) kiln_module_parameter_leaf_pack(m, k, elements, session_params(s)[k]);
  free(elements);
  return status;
}

// "K=FILE.npy".
static int take_input(session *s, const char *value, bool *taken) {
  const char *equals = strchr(value, '=');
  char index[24] = "", expected[80];
  unsigned long long k;
  if (equals && equals[1] && (size_t)(equals - value) < sizeof index) memcpy(index, value, (size_t)(equals - value));
  size_t n = kiln_module_parameter_leaf_count(session_module(s));
  if (!n || !number(index, 0, n - 1, &k)) {
    snprintf(expected, sizeof expected, "expected K=FILE.npy, K one of the %zu parameters from 0", n);
    return bad_value(s->a, O_INPUT, value, expected);
  }
  if (taken[k]) return bad_value(s->a, O_INPUT, value, "the parameter has a file already");
  taken[k] = true;
  return read_input(s, k, equals + 1);
}

static int read_inputs(session *s) {
  size_t n = kiln_module_parameter_leaf_count(session_module(s));
  bool *taken = calloc(n + 1, sizeof *taken);
  int status = taken ? 0 : out_of_memory((int64_t)n);
  for (int i = 0; !status && i < s->a->count; i++)
    if (s->a->all[i].option == O_INPUT) status = take_input(s, s->a->all[i].value, taken);
  free(taken);
  return status;
}

// --- results ---------------------------------------------------------------------------------------------------------

// Before anything runs: a folder that cannot be had is found out in time.
static int make_folder(const char *dir) {
  struct stat st;
  if (mkdir(dir, 0777) == 0) return 0;
  int error = errno;
  if (error == EEXIST && stat(dir, &st) == 0) error = !S_ISDIR(st.st_mode) ? ENOTDIR : access(dir, W_OK) ? errno : 0;
  if (error) fprintf(stderr, "kiln run: --output '%s': cannot write there: %s\n", dir, strerror(error));
  return error ? EXIT_BAD_INPUT : 0;
}

static int write_results(session *s, const char *dir) {
  const kiln_module *m = session_module(s);
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    kiln_array_type t;
    const char *sparse = kiln_module_result_leaf_encoding(m, i);
    if (!kiln_module_result_leaf_type(m, i, &t)) continue;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/result%zu.%s", dir, i, sparse ? "npz" : "npy") >= (int)sizeof path) {
      fprintf(stderr, "kiln run: --output: the name of the folder is too long\n");
      return EXIT_BAD_INPUT;
    }
    if (sparse) {
      int status = stored_write(s->cx, &s->stored, i, path);
      if (status) return status;
      continue;
    }
    void *elements = malloc((size_t)kiln_npy_bytes(&t) + 1);
    if (!elements) return out_of_memory(kiln_npy_bytes(&t));
    kiln_module_result_leaf_unpack(m, i, session_results(s)[i], elements);
    int status = npy_write(path, &t, elements);
    free(elements);
    if (status) return status;
  }
  return 0;
}

// --- running --------------------------------------------------------------------------------------------------------

static int run_eval(session *s) {
  kiln_eval_params ep = session_eval_params(s);
  double start = now_seconds();
  progress("evaluating");
  kiln_status st =
      kiln_module_eval(s->cx, session_module(s), (const void *const *)session_params(s), session_results(s), &ep);
  progress(NULL);
  s->seconds = now_seconds() - start;
  return report(s->cx, st);
}

// What the simulator's checks are to look for.
static int check_launches(session *s) {
  kiln_sim_params p = {.struct_size = sizeof p, .checks = KILN_SIM_CHECK_ALL};
  return report(s->cx, kiln_sim_configure(s->cx, &p));
}

static size_t findings_of(const session *s) {
  return s->machine == ON_SIM ? kiln_sim_finding_count() : 0;
}

static void tell_findings(session *s) {
  kiln_sim_finding f = {.struct_size = sizeof f};
  for (size_t i = 0; i < findings_of(s) && kiln_sim_finding_get(s->cx, i, &f) == KILN_OK; i++)
    if (f.line)
      fprintf(stderr, "kiln run: line %u of the PTX: %s\n", f.line, f.text);
    else
      fprintf(stderr, "kiln run: %s\n", f.text);
}

// --- reporting ------------------------------------------------------------------------------------------------------

static void report_kernels(const session *s) {
  const kiln_manifest *m = kiln_artifact_manifest(s->gpu);
  size_t n = m->launch_count;
  for (size_t i = 0; i < n; i++) {
    const kiln_launch *l = &m->launches[i];
    static const char *const when[] = {[KILN_WHEN_ALWAYS] = "",
                                       [KILN_WHEN_APART] = " where results are apart",
                                       [KILN_WHEN_IN_PLACE] = " where they are in place"};
    printf("kernel   %s for %s%s: ", l->kernel, m->target, when[l->when]);
    if (l->grid[0]) {
      printf("grid %u, block %u, ", l->grid[0], l->block[0]);
      if (l->lanes) printf("%u element%s a thread in ", l->lanes, l->lanes == 1 ? "" : "s"); // of loops alone
      printf("%u-byte accesses", l->vector_bytes);
    } else
      printf("no elements, nothing to launch");
    if (n == 1 && !s->saved) printf(", compiled in %.1f ms", s->compile_ms);
    printf("\n");
  }
  if (n > 1 && !s->saved) printf("compile  %.1f ms for all %zu kernels\n", s->compile_ms, n);
}

// A launch is a row; of a loop's all rounds together. Bytes are those of one, by the shapes of what it reads and
// writes.
static void report_launches(const session *s) {
  const kiln_manifest *m = kiln_artifact_manifest(session_on_gpu(s) ? s->gpu : s->host);
  double all = 0;
  for (size_t i = 0; i < m->launch_count; i++) all += s->launch_seconds[i];
  printf("launches %10s %6s %8s %14s  kernel\n", "ms", "share", "times", "bytes");
  for (size_t i = 0; i < m->launch_count; i++)
    printf("         %10.4f %5.1f%% %8zu %14lld  %s\n", s->launch_seconds[i] * 1e3,
           all > 0 ? s->launch_seconds[i] / all * 100 : 0, s->launch_times[i], (long long)m->launches[i].bytes,
           m->launches[i].kernel);
}

static void json_launches(const session *s) {
  const kiln_manifest *m = kiln_artifact_manifest(session_on_gpu(s) ? s->gpu : s->host);
  printf(", \"launches\": [");
  for (size_t i = 0; i < m->launch_count; i++) {
    printf("%s{\"kernel\": ", i ? ", " : "");
    json_string(stdout, m->launches[i].kernel);
    printf(", \"ms\": %.6f, \"times\": %zu, \"bytes\": %lld}", s->launch_seconds[i] * 1e3, s->launch_times[i],
           (long long)m->launches[i].bytes);
  }
  printf("]");
}

static void report_mismatches(const session *s) {
  for (size_t i = 0; i < s->mismatches && i < 16; i++) {
    const kiln_mismatch *x = &s->mismatch[i];
    printf("         result %zu: %lld elements differ, first element %lld: found %s, expected %s\n", x->result,
           (long long)x->count, (long long)x->element, x->found, x->expected);
  }
}

static const char *machine_text(const session *s) {
  switch (s->machine) {
  case ON_EVAL: return "eval, the reference evaluator";
  case ON_CUDA:
  case ON_SIM: return s->device.name;
  default: return "host, this CPU through ORC";
  }
}

static void report_text(const session *s, bool checked) {
  int64_t bytes = session_bytes(s);
  printf("module   %s\n", kiln_module_name(session_module(s)));
  printf("device   %s%s\n", machine_text(s), s->machine == ON_SIM ? ", simulated" : "");
  if (s->gpu) report_kernels(s);
  printf("data     %lld bytes in and out\n", (long long)bytes);
  if (s->by_launch) report_launches(s);
  printf("time     %.3f ms, %.1f GB/s\n", s->seconds * 1e3, s->seconds > 0 ? (double)bytes / s->seconds * 1e-9 : 0);
  if (s->machine == ON_EVAL)
    printf("verdict  none: --check compares with the evaluator, and these are its own results\n");
  else if (s->saved)
    printf("verdict  not checked (an artifact does not say what is right)\n");
  else if (!checked)
    printf("verdict  not checked (--check compares every result with the evaluator)\n");
  else if (!s->mismatches)
    printf("verdict  all %lld results are right (evaluator: %.2f s)\n", (long long)session_elements(s),
           s->check_seconds);
  else
    printf("verdict  WRONG\n");
  report_mismatches(s);
  if (checked && s->machine == ON_SIM) printf("checks   %zu findings in the kernels\n", findings_of(s));
}

static void report_json(const session *s, bool checked) {
  int64_t bytes = session_bytes(s);
  printf("{\"module\": ");
  json_string(stdout, kiln_module_name(session_module(s)));
  printf(", \"device\": \"%s\", \"kernels\": [", machine_name(s->machine));
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
  if (s->by_launch) json_launches(s);
  if (checked) printf(", \"right\": %s", s->mismatches ? "false" : "true");
  if (checked && s->machine == ON_SIM) printf(", \"findings\": %zu", findings_of(s));
  printf("}\n");
}

// --- the verb -------------------------------------------------------------------------------------------------------

static int work(session *s) {
  static int (*const machines[])(session *) = {session_run_gpu, session_run_host, session_run_gpu, run_eval};
  const char *folder = s->a->values[O_OUTPUT];
  bool checked = s->a->values[O_CHECK] && s->machine != ON_EVAL;
  s->by_launch = s->a->values[O_LAUNCHES] && s->machine != ON_EVAL;
  if (checked && s->saved) {
    fprintf(stderr, "kiln run: --check: expected the text of a module, which says what is right; found an artifact\n");
    return EXIT_BAD_INPUT;
  }
  int status = folder ? make_folder(folder) : 0;
  if (!status && checked && s->machine == ON_SIM) status = check_launches(s);
  if (!status) status = machines[s->machine](s);
  if (checked) tell_findings(s);
  if (!status && s->stored.whole && s->machine != ON_EVAL) status = stored_take(s->cx, &s->stored, s->results);
  if (!status && checked) status = session_check(s);
  if (!status && folder) status = write_results(s, folder);
  if (status) return status;
  if (s->a->values[O_JSON])
    report_json(s, checked);
  else
    report_text(s, checked);
  return s->mismatches || (checked && findings_of(s)) ? EXIT_DIFFERS : EXIT_DONE;
}

// One array at a time is between its file and its buffer.
static int64_t largest_file(const session *s) {
  int64_t most = 0;
  const kiln_module *m = session_module(s);
  size_t inputs = s->a->values[O_INPUT] ? kiln_module_parameter_leaf_count(m) : 0;
  size_t outputs = s->a->values[O_OUTPUT] ? kiln_module_result_leaf_count(m) : 0;
  for (size_t i = 0; i < inputs + outputs; i++) {
    kiln_array_type t;
    bool there =
        i < inputs ? kiln_module_parameter_leaf_type(m, i, &t) : kiln_module_result_leaf_type(m, i - inputs, &t);
    if (there && kiln_npy_bytes(&t) > most) most = kiln_npy_bytes(&t);
  }
  return most;
}

static int run(const args *a) {
  static const session_rules rules = {
      .everywhere = true, .saved = true, .repeat = 5, .inputs = read_inputs, .work = work, .beside = largest_file};
  return session_verb(a, &rules);
}

const verb verb_run = {
    "run",
    "run FILE.hlo|FILE.kiln [OPTION]...",
    "compile, run, and with --check compare with the evaluator",
    "Compiles a module, runs it, and with --check compares all results with the reference evaluator. A FILE.kiln, of\n"
    "compile --emit artifact, is run as it is.",
    options,
    run,
    true};
