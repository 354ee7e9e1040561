// What verbs that run modules have in common: a module with its buffers, its artifacts, its check.

#include "session/session.h"

#include "memory.h"
#include <stdlib.h>
#include <string.h>

// --- words ----------------------------------------------------------------------------------------------------------

// In the order of the enumeration; auto is the first that is here.
static const char *const machine_names[] = {"cuda", "host", "sim", "eval"};

const char *machine_name(machine m) {
  return machine_names[m];
}

// What has no use where nothing is compiled.
static int refuse_compiling(const args *a, const char *instead, bool fusion) {
  for (int o = 0; o < O_OTHERS; o++) {
    if ((o == O_FUSION && !fusion) || !a->values[o]) continue;
    fprintf(stderr, "kiln %s: %s says how to compile, and %s\n", a->verb->name, a->verb->options[o].name, instead);
    return EXIT_BAD_INPUT;
  }
  return 0;
}

bool session_on_gpu(const session *s) {
  return s->machine == ON_CUDA || s->machine == ON_SIM;
}

static int choose_machine(session *s, bool everywhere) {
  const char *word = s->a->values[O_DEVICE] ? s->a->values[O_DEVICE] : "auto";
  bool is_auto = strcmp(word, "auto") == 0;
  machine m = ON_CUDA, last = everywhere ? ON_EVAL : ON_HOST;
  while (!is_auto && m <= last && strcmp(word, machine_names[m]) != 0) m++;
  if (m > last)
    return bad_value(s->a, O_DEVICE, word,
                     everywhere ? "expected auto, cuda, host, sim or eval" : "expected auto, cuda or host");
  s->machine = m;
  if (m == ON_EVAL) return refuse_compiling(s->a, "--device eval compiles nothing", false);
  if (m == ON_HOST || session_open_gpu(s, is_auto)) return 0;
  s->machine = ON_HOST;
  return is_auto ? 0 : EXIT_DEVICE;
}

// A folder that cannot be used is no failure.
static int open_cache(session *s) {
  const char *folder = s->a->values[O_CACHE];
  kiln_cache_params p = {.struct_size = sizeof p, .folder = folder && *folder ? folder : NULL};
  kiln_cache_info info = {.struct_size = sizeof info};
  if (!folder) return 0;
  kiln_status st = kiln_cache_open(s->cx, &p, &s->cache);
  if (st == KILN_OK) st = kiln_cache_describe(s->cx, s->cache, &info);
  if (st == KILN_OK && info.no_folder)
    fprintf(stderr, "kiln %s: --cache: nothing is kept: %s\n", s->a->verb->name, info.no_folder);
  return report(s->cx, st);
}

static int read_cubins(session *s) {
  const args *a = s->a;
  if (!a->values[O_CUBIN]) return 0;
  if (!session_on_gpu(s)) return bad_value(a, O_CUBIN, a->values[O_CUBIN], "expected a GPU to run it on");
  s->cubins = calloc((size_t)a->count, sizeof *s->cubins);
  if (!s->cubins) return out_of_memory(a->count);
  for (int i = 0; i < a->count; i++) {
    if (a->all[i].option != O_CUBIN) continue;
    kiln_cubin *c = &s->cubins[s->ncubins];
    if (!(c->bytes = read_file(a->all[i].value, &c->size))) return EXIT_BAD_INPUT;
    s->ncubins++;
  }
  return 0;
}

static int read_words(session *s, const session_rules *rules) {
  s->repeat = rules->repeat;
  int status = read_number(s->a, O_SEED, 0, ~0ull, "expected a whole number from 0 to 2^64-1", &s->seed);
  if (!status) status = read_number(s->a, O_REPEAT, 1, 100000, "expected 1 to 100000", &s->repeat);
  if (s->a->values[O_MEMORY] && !memory_parse(s->a->values[O_MEMORY], &s->memory) && !status)
    status = bad_value(s->a, O_MEMORY, s->a->values[O_MEMORY], "expected bytes, as 4096, 512M or 1.5G (K, M, G, T)");
  if (!status) status = read_params(s->a, s->aliases, &s->how);
  if (!status) status = choose_machine(s, rules->everywhere);
  if (!status) status = open_cache(s);
  return status ? status : read_cubins(s);
}

// --- buffers -------------------------------------------------------------------------------------------------------

enum { ROOM = 64 }; // after each array

static int allocate(size_t n, int64_t (*bytes)(const kiln_module *, size_t), const char *what, const kiln_module *m,
                    void ***out) {
  *out = calloc(n + 1, sizeof(void *));
  for (size_t i = 0; *out && i < n; i++) {
    int64_t b = bytes(m, i);
    if (b < 0) {
      fprintf(stderr, "kiln: %s %zu of ENTRY is no array of known size: a dimension has no bound\n", what, i);
      return EXIT_NOT_SUPPORTED;
    }
    if (posix_memalign(&(*out)[i], 64, (size_t)b + ROOM)) {
      (*out)[i] = NULL;
      return out_of_memory(b);
    }
  }
  return *out ? 0 : out_of_memory((int64_t)n);
}

// --- life -----------------------------------------------------------------------------------------------------------

// What the file has for the machine.
static int choose_saved(session *s) {
  if (!session_on_gpu(s)) return report(s->cx, kiln_bundle_choose(s->cx, s->saved, 0, &s->host));
  return report(s->cx, kiln_bundle_choose(s->cx, s->saved, s->device.sm, &s->gpu));
}

static kiln_status compile(session *s, const kiln_compile_params *p, kiln_artifact **out) {
  return s->cache ? kiln_cache_compile(s->cx, s->cache, s->m, p, out) : kiln_compile(s->cx, s->m, p, out);
}

// The GPU's kernel is made and reported on every machine.
static int compile_both(session *s) {
  kiln_compile_params p = s->how;
  p.fusion = NULL; // the module is that fusion already
  if (session_on_gpu(s)) p.device = &s->device;
  double start = now_seconds();
  kiln_status st = compile(s, &p, &s->gpu);
  s->compile_ms = (now_seconds() - start) * 1e3;
  p.target = "host";
  if (st == KILN_OK && s->machine == ON_HOST) st = compile(s, &p, &s->host);
  return report(s->cx, st);
}

static int64_t elements(const kiln_array_type *t) {
  int64_t n = 1;
  for (uint32_t d = 0; d < t->rank; d++)
    if (t->dims[d] == 0) return 0;
  for (uint32_t d = 0; d < t->rank; d++) n *= t->dims[d];
  return n;
}

// With a run-time count a launch is given the module's own; of what is dynamic its bound.
static int64_t count_of(const session *s) {
  const kiln_artifact *a = s->gpu ? s->gpu : s->host;
  kiln_array_type t;
  return a && kiln_artifact_manifest(a)->counted && kiln_module_result_leaf_type(s->m, 0, &t) ? elements(&t) : 0;
}

// --- memory ---------------------------------------------------------------------------------------------------------

// Arrays in this machine's memory, with what their allocation takes: of sparse tensors the dense ones, too.
static int64_t arrays(const session *s) {
  int64_t n = 0;
  const kiln_module *whole = s->stored.whole;
  for (size_t i = 0; whole && i < s->stored.nparams; i++) n = memory_add(n, kiln_module_parameter_leaf_bytes(whole, i));
  for (size_t i = 0; whole && i < s->stored.nresults; i++) n = memory_add(n, kiln_module_result_leaf_bytes(whole, i));
  for (size_t i = 0; i < s->nparams + s->nresults; i++) {
    int64_t b = i < s->nparams ? kiln_module_parameter_leaf_bytes(s->m, i)
                               : kiln_module_result_leaf_bytes(s->m, i - s->nparams);
    n = memory_add(n, memory_add(b < 0 ? 0 : b, ROOM));
  }
  return n;
}

static int64_t scratch(const kiln_artifact *a) {
  return a ? (int64_t)kiln_artifact_manifest(a)->scratch_bytes : 0;
}

// What cannot be had is refused before any of it is taken: a kernel gives memory away that it does not have.
static int check_memory(session *s, const session_rules *rules) {
  char needed[32], there[32];
  const char *limit = s->a->values[O_MEMORY];
  int64_t need = memory_add(arrays(s), scratch(s->host));
  if (rules->beside) need = memory_add(need, rules->beside(s));
  if (!limit) s->memory = kiln_memory_available();
  memory_text(need, needed, sizeof needed);
  memory_text(s->memory, there, sizeof there);
  if (need > s->memory) {
    fprintf(stderr, "kiln %s: parameters and results take %s of memory: %s %s (--max-memory sets the limit)\n",
            s->a->verb->name, needed, limit ? "the limit is" : "there are", there);
    return EXIT_BAD_INPUT;
  }
  s->memory -= need;
  return 0;
}

static int check_gpu_memory(const session *s, const session_rules *rules) {
  char needed[32], there[32];
  int64_t need = memory_add(session_bytes(s), scratch(s->gpu));
  if (rules->on_gpu) need = memory_add(need, rules->on_gpu(s));
  if (!session_on_gpu(s) || (uint64_t)need <= s->device.memory_bytes) return 0;
  memory_text(need, needed, sizeof needed);
  memory_text((int64_t)s->device.memory_bytes, there, sizeof there);
  fprintf(stderr, "kiln %s: parameters and results take %s of the GPU's memory: %s has %s\n", s->a->verb->name, needed,
          s->device.name, there);
  return EXIT_DEVICE;
}

const kiln_module *session_module(const session *s) {
  return s->stored.whole ? s->stored.whole : s->m;
}
void **session_params(const session *s) {
  return s->stored.whole ? s->stored.params : s->params;
}
void **session_results(const session *s) {
  return s->stored.whole ? s->stored.results : s->results;
}

// Devices run the module over arrays, which are as long as what is to be stored.
static int open_stored(session *s, const session_rules *rules) {
  kiln_module *whole = s->m;
  if (!stored_is(whole)) {
    if (s->a->values[O_ROOM]) return bad_value(s->a, O_ROOM, s->a->values[O_ROOM], "no array has a sparse encoding");
    return 0;
  }
  s->m = NULL;
  int status = stored_open(s->cx, whole, s->seed, &s->stored);
  if (!status && rules->inputs) status = rules->inputs(s);
  return status || s->machine == ON_EVAL ? status : stored_make(s->cx, &s->stored, s->a, &s->m);
}

static int open_saved(session *s, const void *bytes, size_t size) {
  if (s->machine == ON_EVAL) {
    fprintf(stderr, "kiln %s: --device eval: expected the text of a module, found a compiled artifact\n",
            s->a->verb->name);
    return EXIT_BAD_INPUT;
  }
  int status = refuse_compiling(s->a, "the file is compiled already", true);
  return status ? status : saved_open(s->cx, s->a->file, bytes, size, &s->saved, &s->m);
}

static int open_file(session *s, const session_rules *rules) {
  size_t size = 0;
  char *bytes = read_file(s->a->file, &size);
  if (!bytes) return EXIT_BAD_INPUT;
  int status = rules->saved && kiln_bundle_is_saved(bytes, size)
                   ? open_saved(s, bytes, size)
                   : parse_module(s->cx, s->a->file, bytes, size, s->how.fusion, &s->m);
  free(bytes);
  return status;
}

static int open_session(session *s, const session_rules *rules) {
  int status = open_file(s, rules);
  if (!status && !s->saved) status = open_stored(s, rules);
  if (!status && s->machine != ON_EVAL) status = s->saved ? choose_saved(s) : compile_both(s);
  if (status) return status;
  s->count = count_of(s);
  s->nparams = kiln_module_parameter_leaf_count(s->m);
  s->nresults = kiln_module_result_leaf_count(s->m);
  status = check_memory(s, rules);
  if (!status) status = check_gpu_memory(s, rules);
  if (!status) status = allocate(s->nparams, kiln_module_parameter_leaf_bytes, "parameter", s->m, &s->params);
  if (!status) status = allocate(s->nresults, kiln_module_result_leaf_bytes, "result", s->m, &s->results);
  for (size_t i = 0; !status && i < s->nparams; i++)
    if (s->stored.whole)
      stored_fill(&s->stored, s->m, i, s->params[i]);
    else
      kiln_module_parameter_leaf_fill(s->m, i, s->seed, s->params[i]);
  return !status && rules->inputs && !s->stored.whole ? rules->inputs(s) : status;
}

static void release(void ***buffers, size_t n) {
  for (size_t i = 0; *buffers && i < n; i++) free((*buffers)[i]);
  free(*buffers);
}

static void close_session(session *s) {
  release(&s->params, s->nparams);
  release(&s->results, s->nresults);
  free(s->launch_seconds);
  free(s->launch_times);
  kiln_artifact_destroy(&s->gpu);
  kiln_artifact_destroy(&s->host);
  kiln_bundle_destroy(&s->saved);
  kiln_module_destroy(&s->m);
  stored_close(&s->stored);
  kiln_driver_close(&s->driver);
  kiln_cache_close(&s->cache);
  for (size_t i = 0; i < s->ncubins; i++) free((void *)s->cubins[i].bytes);
  free(s->cubins);
  kiln_context_destroy(&s->cx);
}

int session_verb(const args *a, const session_rules *rules) {
  session *s = calloc(1, sizeof *s);
  if (s) *s = (session){.a = a, .cx = kiln_context_create(NULL)};
  int status = s && s->cx ? read_words(s, rules) : out_of_memory(sizeof *s);
  if (!status) status = open_session(s, rules);
  if (!status) status = rules->work(s);
  if (s) close_session(s);
  free(s);
  return status;
}

// --- running and checking -------------------------------------------------------------------------------------------

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double *values, size_t n) {
  qsort(values, n, sizeof *values, by_value);
  return values[n / 2];
}

// Parameters whose memory results are to be lie there, before each run.
static void refill(const session *s, const void **given) {
  const kiln_manifest *m = kiln_artifact_manifest(s->host);
  for (size_t i = 0; i < s->nparams; i++) {
    const kiln_slot *slot = &m->slots[i];
    given[i] = s->params[i];
    if (!slot->donated) continue;
    given[i] = s->results[m->slots[slot->alias].index];
    memcpy(s->results[m->slots[slot->alias].index], s->params[i], (size_t)kiln_module_parameter_leaf_bytes(s->m, i));
  }
}

void session_launched(void *user, size_t launch, double seconds) {
  session *s = user;
  s->launch_seconds[launch] += seconds;
  s->launch_times[launch]++;
}

void session_begin_launches(session *s) {
  size_t n = kiln_artifact_manifest(session_on_gpu(s) ? s->gpu : s->host)->launch_count + 1;
  free(s->launch_seconds);
  free(s->launch_times);
  s->launch_seconds = calloc(n, sizeof *s->launch_seconds);
  s->launch_times = calloc(n, sizeof *s->launch_times);
  if (!s->launch_seconds || !s->launch_times) s->by_launch = false;
}

int session_run_host(session *s) {
  kiln_kernel *k = NULL;
  kiln_status st = kiln_kernel_load(s->cx, s->host, &k);
  kiln_run_params rp = {.struct_size = sizeof rp, .threads = s->how.threads, .count = s->count};
  double *times = calloc(s->repeat + 1, sizeof *times);
  const void **given = calloc(s->nparams + 1, sizeof *given);
  if ((!times || !given) && st == KILN_OK) st = KILN_E_MEMORY;
  progress("running");
  for (size_t i = 0; st == KILN_OK && i <= s->repeat; i++) {
    refill(s, given);
    if (s->by_launch) session_begin_launches(s);
    rp.launched = s->by_launch ? session_launched : NULL;
    rp.user = s;
    double start = now_seconds();
    st = kiln_kernel_run(s->cx, k, given, s->results, &rp);
    times[i] = now_seconds() - start;
  }
  progress(NULL);
  if (st == KILN_OK) s->seconds = median(times + 1, s->repeat); // the first run warms up
  free(times);
  free(given);
  kiln_kernel_destroy(&k);
  return report(s->cx, st);
}

kiln_eval_params session_eval_params(const session *s) {
  return (kiln_eval_params){.struct_size = sizeof(kiln_eval_params),
                            .threads = s->how.threads,
                            .max_bytes = s->memory ? (uint64_t)s->memory : 1,
                            .numerics = s->how.numerics};
}

int session_check(session *s) {
  kiln_eval_params ep = session_eval_params(s);
  double start = now_seconds();
  progress("checking");
  kiln_status st = kiln_module_check(s->cx, session_module(s), (const void *const *)session_params(s),
                                     (const void *const *)session_results(s), s->mismatch, 16, &s->mismatches, &ep);
  progress(NULL);
  s->check_seconds = now_seconds() - start;
  return report(s->cx, st);
}

int64_t session_bytes(const session *s) {
  const kiln_module *m = s->m ? s->m : session_module(s);
  int64_t n = 0;
  for (size_t i = 0; i < kiln_module_parameter_leaf_count(m); i++)
    n = memory_add(n, kiln_module_parameter_leaf_bytes(m, i));
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) n = memory_add(n, kiln_module_result_leaf_bytes(m, i));
  return n;
}

int64_t session_elements(const session *s) {
  int64_t n = 0;
  const kiln_module *m = session_module(s);
  for (size_t i = 0; i < kiln_module_result_leaf_count(m); i++) {
    kiln_array_type t;
    if (kiln_module_result_leaf_type(m, i, &t)) n += elements(&t);
  }
  return n;
}
