// kiln profile: compiles a module, runs its kernels on the simulator with counters, prints what they cost.

#include "memory.h"
#include "params.h"
#include "stored.h"
#include "profile.h"

#include <kiln/cuda.h>
#include <kiln/sim.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { O_GPU = O_OTHERS, O_SEED = O_GPU + PROFILE_COUNT, O_MEMORY, O_JSON };
static const option options[] = {
    COMPILE_OPTIONS("GPU to compile for (default: that of --gpu)"),
    PROFILE_OPTIONS(
        "the GPU to predict for: A100, H100, H200, L40S, B200, RTX4090 (default: H100, or one of --target)"),
    {"--seed", "N", "seed of the parameters (default 0)"},
    {"--max-memory", "SIZE", "bytes that arrays may take, as 512M or 1.5G (default: what is free)"},
    {"--json", NULL, "report as one JSON object"},
    {0},
};

typedef struct job {
  const args *a;
  kiln_context *cx;
  kiln_module *m; // over arrays, where the file's has sparse tensors
  stored stored;
  kiln_artifact *artifact;
  kiln_simulator *s;
  kiln_sim_module *code;
  kiln_compile_params how;
  kiln_alias aliases[MOST_ALIASES];
  bool named;              // the GPU, by --gpu
  kiln_device_info device; // that one
  profile_how profile;
  unsigned long long seed;
  bool filled; // parameters; else they are zero
  uint64_t *slots, scratch, count;
  kiln_profile **profiles; // of kernels that were launched, in the order in which they first were
  kiln_profile_info *infos;
  uint64_t *times; // that each was launched, of which the first is told
  size_t n;        // of these
  size_t *place;   // by launch: its number among these + 1; 0: it was not launched
} job;

// --- words ----------------------------------------------------------------------------------------------------------

static const struct {
  const char *gpu, *target;
} gpus[] = {{"H100", "sm_90"},  {"A100", "sm_80"}, {"L40S", "sm_89"},
            {"B200", "sm_100"}, {"H200", "sm_90"}, {"RTX4090", "sm_89"}};

static bool same_name(const char *a, const char *b) {
  for (;; a++, b++) {
    while (*a && strchr(" -_", *a)) a++;
    if ((*a | 32) != (*b | 32)) return false;
    if (!*a) return true;
  }
}

// A GPU without a target compiles for itself; a target without a GPU runs on one that it fits.
static int choose(job *j) {
  const char *gpu = j->profile.params.gpu, *target = j->how.target;
  enum { GPUS = sizeof gpus / sizeof gpus[0] };
  for (int k = 0; k < GPUS; k++) {
    j->named |= gpu && same_name(gpu, gpus[k].gpu);
    if (gpu && !target && same_name(gpu, gpus[k].gpu)) j->how.target = gpus[k].target;
    size_t n = strlen(gpus[k].target);
    bool fits = target && strncmp(target, gpus[k].target, n) == 0 && (target[n] < '0' || target[n] > '9');
    if (!gpu && !j->profile.params.gpu && (!target || fits)) j->profile.params.gpu = gpus[k].gpu;
  }
  if (!j->profile.params.gpu) j->profile.params.gpu = gpus[0].gpu;
  if (!j->how.target) j->how.target = gpus[0].target;
  if (strcmp(j->how.target, "host") != 0) return 0;
  return bad_value(j->a, O_TARGET, "host", "expected a GPU's target, as sm_90");
}

static int read_words(job *j) {
  int status = read_params(j->a, j->aliases, &j->how);
  if (!status) status = profile_words(j->a, O_GPU, &j->profile);
  if (!status) status = read_number(j->a, O_SEED, 0, ~0ull, "expected a whole number from 0 to 2^64-1", &j->seed);
  return status ? status : choose(j);
}

// As on the GPU itself, kernels are made for the size of one that is named.
static kiln_status describe(job *j) {
  if (!j->named) return KILN_OK;
  kiln_sim_params sim = {.struct_size = sizeof sim, .devices = j->profile.params.gpu};
  kiln_driver_params driver = {.struct_size = sizeof driver, .initialize = true, .resolve = kiln_sim_resolve};
  kiln_driver *d = NULL;
  j->device.struct_size = sizeof j->device;
  kiln_status st = kiln_sim_configure(j->cx, &sim);
  if (st == KILN_OK) st = kiln_driver_open(j->cx, &driver, &d);
  if (st == KILN_OK) st = kiln_device_describe(j->cx, d, 0, &j->device);
  if (st == KILN_OK && strcmp(j->how.target, j->device.target) == 0) j->how.device = &j->device;
  kiln_driver_close(&d);
  return st;
}

// --- memory ---------------------------------------------------------------------------------------------------------

// Inputs of a sample of blocks that do not fit stay zero: of them only what is touched takes memory.
static int check_memory(job *j, const kiln_manifest *m) {
  int64_t need = (int64_t)m->scratch_bytes, there = kiln_memory_available();
  const char *limit = j->a->values[O_MEMORY];
  char needed[32], most[32];
  if (limit && !memory_parse(limit, &there))
    return bad_value(j->a, O_MEMORY, limit, "expected bytes, as 4096, 512M or 1.5G (K, M, G, T)");
  for (size_t i = 0; i < m->parameter_count + m->result_count; i++) need = memory_add(need, m->slots[i].bytes);
  j->filled = need <= there;
  if (j->filled || j->profile.params.count) return 0;
  memory_text(need, needed, sizeof needed);
  memory_text(there, most, sizeof most);
  fprintf(stderr,
          "kiln profile: parameters and results take %s of memory: there are %s (--blocks runs a sample, whose "
          "parameters are zero; --max-memory sets the limit)\n",
          needed, most);
  return EXIT_BAD_INPUT;
}

static kiln_status make_slot(job *j, const kiln_slot *slot, uint64_t *to) {
  uint64_t bytes = slot->bytes > 0 ? (uint64_t)slot->bytes : 1;
  if (slot->result && slot->donated) return *to = j->slots[slot->alias], KILN_OK;
  kiln_status st = kiln_simulator_alloc(j->cx, j->s, bytes, to);
  if (st != KILN_OK || slot->result || !j->filled) return st;
  void *host = kiln_simulator_bytes(j->s, *to, bytes);
  if (j->stored.whole)
    stored_fill(&j->stored, j->m, slot->index, host);
  else
    kiln_module_parameter_leaf_fill(j->m, slot->index, j->seed, host);
  if (!slot->by_value) return st;
  unsigned bits = kiln_dtype_bits(slot->type.dtype);
  *to = 0;
  memcpy(to, host, bits < 8 ? 1 : bits / 8);
  return st;
}

static int make_memory(job *j) {
  const kiln_manifest *m = kiln_artifact_manifest(j->artifact);
  size_t n = m->parameter_count + m->result_count;
  int status = check_memory(j, m);
  if (status) return status;
  j->slots = calloc(n + 1, sizeof *j->slots);
  j->profiles = calloc(m->launch_count + 1, sizeof *j->profiles);
  j->infos = calloc(m->launch_count + 1, sizeof *j->infos);
  j->times = calloc(m->launch_count + 1, sizeof *j->times);
  j->place = calloc(m->launch_count + 1, sizeof *j->place);
  if (!j->slots || !j->profiles || !j->infos || !j->times || !j->place) return out_of_memory((int64_t)n);
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < n && st == KILN_OK; i++) st = make_slot(j, &m->slots[i], &j->slots[i]);
  if (st == KILN_OK && m->scratch_bytes) st = kiln_simulator_alloc(j->cx, j->s, m->scratch_bytes, &j->scratch);
  if (st == KILN_OK && m->scratch_zero_bytes)
    memset(kiln_simulator_bytes(j->s, j->scratch, m->scratch_zero_bytes), 0, m->scratch_zero_bytes);
  if (st == KILN_OK && m->constant_bytes)
    memcpy(kiln_simulator_bytes(j->s, j->scratch + m->scratch_zero_bytes, m->constant_bytes), m->constants,
           m->constant_bytes);
  return report(j->cx, st);
}

// --- launches -------------------------------------------------------------------------------------------------------

static uint64_t count_of(const job *j) {
  kiln_array_type t;
  uint64_t n = 1;
  if (!kiln_artifact_manifest(j->artifact)->counted || !kiln_module_result_leaf_type(j->m, 0, &t)) return 0;
  for (uint32_t d = 0; d < t.rank; d++) n *= (uint64_t)t.dims[d];
  return n;
}

// Is the launch for results that are where these are?
static bool is_due(const job *j, const kiln_manifest *m, const kiln_launch *l) {
  bool apart = false;
  for (size_t i = 0; i < l->argument_count; i++) {
    const kiln_argument *a = &l->arguments[i];
    if (a->kind != KILN_ARGUMENT_SLOT || !a->output || m->slots[a->slot].alias == KILN_NO_SLOT) continue;
    apart = apart || j->slots[a->slot] != j->slots[m->slots[a->slot].alias];
  }
  return l->when == KILN_WHEN_ALWAYS || (l->when == KILN_WHEN_APART) == apart;
}

// Blocks in the first dimension, for as many elements as there are.
static uint32_t blocks_of(const job *j, const kiln_launch *l) {
  if (!kiln_artifact_manifest(j->artifact)->counted || !l->count_whole) return l->grid[0];
  uint64_t whole = j->count / (uint64_t)l->count_whole, left = j->count % (uint64_t)l->count_whole;
  uint64_t rest = (left + (uint64_t)l->count_rest - 1) / (uint64_t)l->count_rest;
  return (uint32_t)(whole + rest) * l->count_blocks;
}

static kiln_status profile_launch(job *j, const kiln_launch *l, kiln_profile **out) {
  kiln_sim_kernel *k = NULL;
  kiln_sim_launch_params p = {.struct_size = sizeof p, .dynamic_shared_bytes = l->dynamic_shared_bytes};
  uint64_t *values = calloc(l->argument_count + 1, sizeof *values);
  const void **arguments = calloc(l->argument_count + 1, sizeof *arguments);
  kiln_status st = values && arguments ? kiln_sim_module_kernel(j->cx, j->code, l->kernel, &k) : KILN_E_MEMORY;
  for (size_t i = 0; st == KILN_OK && i < l->argument_count; i++) {
    const kiln_argument *a = &l->arguments[i];
    values[i] = a->kind == KILN_ARGUMENT_SLOT      ? j->slots[a->slot]
                : a->kind == KILN_ARGUMENT_SCRATCH ? j->scratch + a->offset
                                                   : j->count;
    arguments[i] = &values[i];
  }
  uint64_t clusters = 1;
  for (int d = 0; d < 3; d++) {
    p.grid[d] = d ? l->grid[d] : blocks_of(j, l);
    p.block[d] = l->block[d];
    p.cluster[d] = l->cluster[d];
    clusters *= p.grid[d] / (l->cluster[d] ? l->cluster[d] : 1);
  }
  p.arguments = arguments;
  kiln_profile_params how = profile_of_grid(&j->profile, clusters);
  if (st == KILN_OK) st = kiln_sim_kernel_profile(j->cx, k, &p, &how, NULL, out);
  free(values);
  free(arguments);
  return st;
}

static int keep_first(job *j, size_t i, kiln_profile *p) {
  j->profiles[j->n] = p;
  int status = profile_assemble(j->cx, p);
  if (!status) status = profile_info(j->cx, p, &j->infos[j->n]);
  if (!status) j->place[i] = ++j->n;
  return status;
}

static int run_launch(job *j, size_t i) {
  const kiln_manifest *m = kiln_artifact_manifest(j->artifact);
  const kiln_launch *l = &m->launches[i];
  kiln_profile *p = NULL;
  if (l->grid[0] == 0 || !is_due(j, m, l)) return 0; // no elements, or others' places
  progress("counting");
  kiln_status st = profile_launch(j, l, &p);
  progress(NULL);
  int status = report(j->cx, st);
  if (!status && !j->place[i])
    status = keep_first(j, i, p);
  else
    kiln_profile_destroy(&p);
  if (!status) j->times[j->place[i] - 1]++;
  return status;
}

// What a step goes by: of a truth 1 or 0.
static int32_t condition_of(const job *j, const kiln_step *s) {
  const kiln_argument *a = &s->condition;
  bool slot = a->kind == KILN_ARGUMENT_SLOT;
  const void *at =
      slot && kiln_artifact_manifest(j->artifact)->slots[a->slot].by_value
          ? (const void *)&j->slots[a->slot]
          : kiln_simulator_bytes(j->s, slot ? j->slots[a->slot] : j->scratch + a->offset, s->condition_bytes);
  int32_t number;
  if (s->condition_bytes == 1) return *(const uint8_t *)at != 0;
  memcpy(&number, at, sizeof number);
  return number;
}

static int run_steps(job *j, size_t first, size_t count);

static int run_while(job *j, size_t i) {
  const kiln_step *s = &kiln_artifact_manifest(j->artifact)->steps[i];
  for (;;) {
    int status = run_steps(j, i + 1, s->count);
    if (status || !condition_of(j, s)) return status;
    status = run_steps(j, i + 1 + s->count, s->body);
    if (status) return status;
  }
}

static int run_branch(job *j, size_t i) {
  const kiln_step *steps = kiln_artifact_manifest(j->artifact)->steps, *s = &steps[i];
  int32_t number = condition_of(j, s);
  size_t which = s->condition_bytes == 1 ? number == 0 : number < 0 ? s->count : (size_t)number, at = i + 1;
  for (size_t k = 0; k < which && k + 1 < s->count; k++) at += 1 + steps[at].body;
  return run_steps(j, at + 1, steps[at].body);
}

static int run_steps(job *j, size_t first, size_t count) {
  const kiln_step *steps = kiln_artifact_manifest(j->artifact)->steps;
  int status = 0;
  for (size_t i = first; i < first + count && !status; i++) {
    const kiln_step *s = &steps[i];
    switch (s->kind) {
    case KILN_STEP_LAUNCHES:
      for (size_t k = 0; k < s->count && !status; k++) status = run_launch(j, s->first + k);
      continue;
    case KILN_STEP_WHILE:
      status = run_while(j, i);
      i += s->count;
      break;
    case KILN_STEP_REPEAT:
      for (uint64_t k = 0; k < s->times && !status; k++) status = run_steps(j, i + 1, s->body);
      break;
    case KILN_STEP_BRANCH: status = run_branch(j, i); break;
    case KILN_STEP_CASE: break; // not outside of branches
    }
    i += s->body;
  }
  return status;
}

// Of a sample of blocks nothing is known that a loop or a branch could go by.
static int check_steps(const job *j, const kiln_manifest *m) {
  bool sampled = j->profile.params.count || !j->filled;
  for (size_t i = 0; i < m->step_count && sampled; i++)
    if (m->steps[i].kind == KILN_STEP_WHILE || m->steps[i].kind == KILN_STEP_BRANCH) {
      fprintf(stderr,
              "kiln profile: the module has loops or branches that go by data: expected no --blocks, and memory "
              "for all inputs\n");
      return EXIT_NOT_SUPPORTED;
    }
  return 0;
}

static int run_launches(job *j) {
  const kiln_manifest *m = kiln_artifact_manifest(j->artifact);
  size_t size;
  const char *ptx = kiln_artifact_text(j->artifact, KILN_TEXT_PTX, &size);
  if (m->launch_count == 0) return 0;
  int status = check_steps(j, m);
  if (!status) status = report(j->cx, kiln_simulator_load(j->cx, j->s, "kernel.ptx", ptx, size, &j->code));
  j->count = count_of(j);
  if (!status && m->step_count) return run_steps(j, 0, m->step_count);
  for (size_t k = 0; k < m->launch_count && !status; k++) status = run_launch(j, k);
  return status;
}

// --- the report -----------------------------------------------------------------------------------------------------

static void report_text(const job *j) {
  double seconds = 0;
  uint64_t launches = 0;
  if (j->profile.params.count && !j->filled) printf("inputs     zero, as there is no memory for them\n");
  for (size_t k = 0; k < j->n; k++) {
    if (k) printf("\n");
    profile_page(stdout, &j->infos[k], j->profile.lines);
    if (j->times[k] > 1) printf("launched   %" PRIu64 " times, of which the first is told\n", j->times[k]);
    launches += j->times[k];
    seconds += (double)j->times[k] * j->infos[k].prediction.seconds;
  }
  if (j->n == 0) printf("no elements, nothing to launch\n");
  if (launches > j->n)
    printf("\n%zu kernels, launched %" PRIu64 " times, predicted %.2f us in all\n", j->n, launches, seconds * 1e6);
  else if (j->n > 1)
    printf("\n%zu kernels, predicted %.2f us in all\n", j->n, seconds * 1e6);
}

static void report_json(const job *j) {
  printf("{\"module\": ");
  json_string(stdout, kiln_module_name(j->m));
  printf(", \"target\": ");
  json_string(stdout, kiln_artifact_manifest(j->artifact)->target);
  printf(", \"filled\": %s, \"kernels\": [", j->filled ? "true" : "false");
  for (size_t k = 0; k < j->n; k++) {
    if (k) printf(", ");
    profile_json(stdout, &j->infos[k], j->profile.lines);
  }
  printf("], \"times\": [");
  for (size_t k = 0; k < j->n; k++) printf("%s%" PRIu64, k ? ", " : "", j->times[k]);
  printf("]}\n");
}

static int open_stored(job *j) {
  kiln_module *whole = j->m;
  if (!stored_is(whole)) return 0;
  j->m = NULL;
  int status = stored_open(j->cx, whole, j->seed, &j->stored);
  return status ? status : stored_make(j->cx, &j->stored, j->a, &j->m);
}

static int work(job *j) {
  int status = read_words(j);
  if (!status) status = open_module(j->cx, j->a->file, j->how.fusion, &j->m);
  j->how.fusion = NULL; // the module is that fusion
  if (!status) status = open_stored(j);
  if (!status) status = report(j->cx, describe(j));
  if (!status) status = report(j->cx, kiln_compile(j->cx, j->m, &j->how, &j->artifact));
  if (!status) status = report(j->cx, kiln_simulator_open(j->cx, &j->s));
  if (!status) status = make_memory(j);
  if (!status) status = run_launches(j);
  if (!status && j->profile.svg) status = profile_draw(j->profile.svg, j->infos, j->n);
  if (!status) (j->a->values[O_JSON] ? report_json : report_text)(j);
  return status;
}

static int run(const args *a) {
  job *j = calloc(1, sizeof *j);
  if (!j) return out_of_memory(sizeof *j);
  *j = (job){.a = a, .cx = kiln_context_create(NULL)};
  int status = j->cx ? work(j) : out_of_memory(sizeof *j);
  for (size_t k = 0; j->profiles && j->profiles[k]; k++) kiln_profile_destroy(&j->profiles[k]);
  kiln_simulator_close(&j->s);
  kiln_artifact_destroy(&j->artifact);
  kiln_module_destroy(&j->m);
  stored_close(&j->stored);
  kiln_context_destroy(&j->cx);
  free(j->slots);
  free(j->profiles);
  free(j->infos);
  free(j->times);
  free(j->place);
  free(j);
  return status;
}

const verb verb_profile = {
    "profile",
    "profile FILE.hlo [OPTION]...",
    "count what kernels cost, without a GPU",
    "Compiles a module, runs its kernels on the simulator with counters, and tells what they cost: "
    "instructions, memory\naccesses, bank conflicts, cache hits, registers, occupancy, and a "
    "predicted time on a GPU.",
    options,
    run,
    true};
