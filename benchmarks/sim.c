// How fast the simulator runs PTX: a loop of ordinary instructions, and the kernels of the HLO files given, as they are
// compiled for sm_90; without checks, under each of them, and under all.
//
// Lane-instructions a second: instructions that warps issue times the lanes that are there, as profiles count them,
// over the processor time of one thread, the system's part of it with it (its ticks are too coarse to take that off).
// Medians of passes that take turns; each launches until about 50 million are done, every time the second launch of a
// simulator of its own: the first one also makes memory, of buffers as of shadows, and is told apart, under all checks.
// Last, seconds that pass while all first launches run on all cores without checks.

#include "measure.h"

#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PASSES = 5, PASS_LANES = 50000000, MOST_SLOTS = 64 };

static const struct {
  const char *name;
  uint32_t checks;
} ways[] = {
    {"none", 0},
    {"memory", KILN_SIM_CHECK_MEMORY},
    {"undefined", KILN_SIM_CHECK_UNDEFINED},
    {"unwritten", KILN_SIM_CHECK_UNWRITTEN},
    {"race,sync", KILN_SIM_CHECK_RACE | KILN_SIM_CHECK_SYNC},
    {"all", KILN_SIM_CHECK_ALL},
};
enum { WAYS = sizeof ways / sizeof *ways };

static const char loop_ptx[] = ".version 7.8\n"
                               ".target sm_90\n"
                               ".address_size 64\n"
                               ".visible .entry loop(.param .u64 out, .param .u32 rounds)\n"
                               "{\n"
                               "  .reg .pred %p<3>;\n"
                               "  .reg .b32 %r<9>;\n"
                               "  .reg .f32 %f<6>;\n"
                               "  .reg .b64 %rd<4>;\n"
                               "  ld.param.u64 %rd1, [out];\n"
                               "  ld.param.u32 %r1, [rounds];\n"
                               "  mov.u32 %r2, %ctaid.x;\n"
                               "  mov.u32 %r3, %ntid.x;\n"
                               "  mov.u32 %r4, %tid.x;\n"
                               "  mad.lo.s32 %r2, %r2, %r3, %r4;\n"
                               "  mov.u32 %r5, 0;\n"
                               "  mov.f32 %f1, 0f3F800000;\n"
                               "again:\n"
                               "  add.s32 %r6, %r5, %r2;\n"
                               "  shl.b32 %r7, %r6, 3;\n"
                               "  xor.b32 %r7, %r7, %r6;\n"
                               "  and.b32 %r7, %r7, 1023;\n"
                               "  cvt.rn.f32.u32 %f2, %r7;\n"
                               "  fma.rn.f32 %f3, %f2, 0f3A800000, %f1;\n"
                               "  mul.f32 %f4, %f3, %f3;\n"
                               "  setp.gt.f32 %p1, %f4, 0f40000000;\n"
                               "  selp.f32 %f5, %f3, %f4, %p1;\n"
                               "  sub.f32 %f1, %f5, %f2;\n"
                               "  max.f32 %f1, %f1, 0f00000000;\n"
                               "  add.s32 %r5, %r5, 1;\n"
                               "  setp.lt.u32 %p2, %r5, %r1;\n"
                               "  @%p2 bra again;\n"
                               "  mul.wide.u32 %rd2, %r2, 4;\n"
                               "  add.s64 %rd3, %rd1, %rd2;\n"
                               "  st.global.f32 [%rd3], %f1;\n"
                               "  ret;\n"
                               "}\n";

// --- something to run -----------------------------------------------------------------------------------------------

// The loop, or what a module becomes.
typedef struct subject {
  const char *name, *ptx;
  size_t size;
  const kiln_manifest *manifest; // NULL: the loop
  kiln_module *module;
  kiln_artifact *artifact;
} subject;

enum { LOOP_BLOCKS = 16, LOOP_THREADS = 256, LOOP_ROUNDS = 2000 };

// A subject in a simulator of its own.
typedef struct session {
  kiln_context *cx;
  kiln_simulator *sim;
  kiln_sim_module *code;
  unsigned workers; // of launches; 0: all cores
  uint64_t at[MOST_SLOTS], scratch;
  kiln_sim_range outputs[MOST_SLOTS], kept;
  size_t noutputs;
} session;

static void must(kiln_context *cx, kiln_status s) {
  if (s == KILN_OK) return;
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  exit(4);
}

static uint64_t memory(session *s, uint64_t bytes) {
  uint64_t address;
  must(s->cx, kiln_simulator_alloc(s->cx, s->sim, bytes ? bytes : 1, &address));
  return address;
}

static void add_slot(session *s, const subject *x, size_t k) {
  const kiln_slot *slot = &x->manifest->slots[k];
  uint64_t bytes = (uint64_t)slot->bytes;
  s->at[k] = memory(s, bytes);
  if (slot->result)
    s->outputs[s->noutputs++] = (kiln_sim_range){s->at[k], bytes};
  else if (bytes)
    kiln_module_parameter_leaf_fill(x->module, slot->index, 0, kiln_simulator_bytes(s->sim, s->at[k], bytes));
}

static void add_scratch(session *s, const kiln_manifest *m) {
  if (!m->scratch_bytes) return;
  s->scratch = memory(s, m->scratch_bytes);
  s->kept = (kiln_sim_range){s->scratch, m->scratch_bytes};
  if (m->scratch_zero_bytes) kiln_simulator_bytes(s->sim, s->scratch, m->scratch_zero_bytes);
}

static session open_session(kiln_context *cx, const subject *x) {
  session s = {.cx = cx, .workers = 1};
  must(cx, kiln_simulator_open(cx, &s.sim));
  must(cx, kiln_simulator_load(cx, s.sim, x->name, x->ptx, x->size, &s.code));
  if (!x->manifest) {
    s.at[0] = memory(&s, LOOP_BLOCKS * LOOP_THREADS * 4);
    s.outputs[s.noutputs++] = (kiln_sim_range){s.at[0], LOOP_BLOCKS * LOOP_THREADS * 4};
    return s;
  }
  for (size_t k = 0; k < x->manifest->parameter_count + x->manifest->result_count; k++) add_slot(&s, x, k);
  add_scratch(&s, x->manifest);
  return s;
}

// --- its launches ---------------------------------------------------------------------------------------------------

static size_t launch_count(const subject *x) {
  return x->manifest ? x->manifest->launch_count : 1;
}

// Launches one kernel, or counts what it does and gives the lane-instructions.
static uint64_t launch(session *s, const char *name, kiln_sim_launch_params *p, bool count) {
  kiln_sim_kernel *kernel;
  kiln_profile *profile;
  kiln_profile_info info = {.struct_size = sizeof info};
  p->struct_size = sizeof *p;
  p->workers = s->workers;
  must(s->cx, kiln_sim_module_kernel(s->cx, s->code, name, &kernel));
  if (!count) {
    must(s->cx, kiln_sim_kernel_launch(s->cx, kernel, p, NULL));
    return 0;
  }
  must(s->cx, kiln_sim_kernel_profile(s->cx, kernel, p, NULL, NULL, &profile));
  must(s->cx, kiln_profile_describe(s->cx, profile, &info));
  kiln_profile_destroy(&profile);
  return info.all_active;
}

static uint64_t launch_loop(session *s, uint32_t checks, bool count) {
  uint32_t rounds = LOOP_ROUNDS;
  const void *arguments[] = {&s->at[0], &rounds};
  kiln_sim_launch_params p = {.grid = {LOOP_BLOCKS},
                              .block = {LOOP_THREADS},
                              .arguments = arguments,
                              .checks = checks,
                              .outputs = s->outputs,
                              .output_count = s->noutputs};
  return launch(s, "loop", &p, count);
}

// Outputs are those of the last launch: what one leaves for the next is no more than that.
static uint64_t launch_kernel(session *s, const subject *x, size_t k, uint32_t checks, bool count) {
  const kiln_launch *l = &x->manifest->launches[k];
  const void *arguments[MOST_SLOTS];
  uint64_t values[MOST_SLOTS];
  for (size_t i = 0; i < l->argument_count; i++) {
    const kiln_argument *a = &l->arguments[i];
    values[i] = a->kind == KILN_ARGUMENT_SLOT ? s->at[a->slot] : s->scratch + a->offset;
    arguments[i] = &values[i];
  }
  kiln_sim_launch_params p = {.dynamic_shared_bytes = l->dynamic_shared_bytes,
                              .arguments = arguments,
                              .checks = checks,
                              .outputs = s->outputs,
                              .output_count = k + 1 == x->manifest->launch_count ? s->noutputs : 0,
                              .scratch = &s->kept,
                              .scratch_count = s->scratch != 0};
  memcpy(p.grid, l->grid, sizeof p.grid);
  memcpy(p.block, l->block, sizeof p.block);
  memcpy(p.cluster, l->cluster, sizeof p.cluster);
  return l->grid[0] ? launch(s, l->kernel, &p, count) : 0;
}

static uint64_t launch_all(session *s, const subject *x, uint32_t checks, bool count) {
  uint64_t lanes = 0;
  for (size_t k = 0; k < launch_count(x); k++)
    lanes += x->manifest ? launch_kernel(s, x, k, checks, count) : launch_loop(s, checks, count);
  return lanes;
}

// --- measuring ------------------------------------------------------------------------------------------------------

typedef struct spent {
  double first, second; // ms
} spent;

// Of one of so many simulators.
static spent pass(kiln_context *cx, const subject *x, uint32_t checks, int simulators) {
  spent t = {0};
  for (int n = 0; n < simulators; n++) {
    session s = open_session(cx, x);
    double begin = processor_ms();
    launch_all(&s, x, checks, false);
    double between = processor_ms();
    launch_all(&s, x, checks, false);
    t.second += (processor_ms() - between) / simulators;
    t.first += (between - begin) / simulators;
    kiln_simulator_close(&s.sim);
  }
  return t;
}

static double seconds_on_all_cores(kiln_context *cx, const subject *x) {
  double t[PASSES];
  for (int n = 0; n < PASSES; n++) {
    session s = open_session(cx, x);
    s.workers = 0;
    double begin = now_ms();
    launch_all(&s, x, 0, false);
    t[n] = (now_ms() - begin) * 1e-3;
    kiln_simulator_close(&s.sim);
  }
  return median(t, PASSES);
}

static void measure(kiln_context *cx, const subject *x) {
  double second[WAYS][PASSES], first[PASSES];
  session s = open_session(cx, x);
  uint64_t lanes = launch_all(&s, x, 0, true);
  kiln_simulator_close(&s.sim);
  for (int n = 0; n < PASSES; n++)
    for (int w = 0; w < WAYS; w++) {
      spent t = pass(cx, x, ways[w].checks, 1 + (int)(PASS_LANES / (lanes + 1)));
      second[w][n] = t.second;
      first[n] = t.first; // of the last way: all checks
    }
  printf("%-24s %10.1f", x->name, (double)lanes * 1e-6);
  for (int w = 0; w < WAYS; w++) printf(" %9.0f", (double)lanes * 1e-3 / median(second[w], PASSES));
  printf(" %9.0f %9.3f\n", (double)lanes * 1e-3 / median(first, PASSES), seconds_on_all_cores(cx, x));
}

static void measure_file(kiln_context *cx, const char *path) {
  const char *name = strrchr(path, '/');
  kiln_compile_params p = {.struct_size = sizeof p, .target = "sm_90"};
  subject x = {0};
  size_t size;
  char *text = read_text(path, &size), *end;
  if (!text) {
    fprintf(stderr, "sim: cannot read %s\n", path);
    exit(4);
  }
  must(cx, kiln_module_parse(cx, path, text, size, &x.module));
  must(cx, kiln_compile(cx, x.module, &p, &x.artifact));
  x.manifest = kiln_artifact_manifest(x.artifact);
  x.ptx = kiln_artifact_text(x.artifact, KILN_TEXT_PTX, &x.size);
  if (x.manifest->parameter_count + x.manifest->result_count > MOST_SLOTS) {
    fprintf(stderr, "sim: %s has more than %d buffers\n", path, MOST_SLOTS);
    exit(4);
  }
  snprintf(text, size + 1, "%s", name ? name + 1 : path);
  if ((end = strstr(text, ".hlo"))) *end = '\0';
  x.name = text;
  measure(cx, &x);
  kiln_artifact_destroy(&x.artifact);
  kiln_module_destroy(&x.module);
  free(text);
}

int main(int argc, char **argv) {
  kiln_context *cx = kiln_context_create(NULL);
  const subject loop = {.name = "loop of 14", .ptx = loop_ptx, .size = sizeof loop_ptx - 1};
  printf("%-24s %10s", "M lane-instructions/s", "M in all");
  for (int w = 0; w < WAYS; w++) printf(" %9s", ways[w].name);
  printf(" %9s %9s\n", "first", "cores, s");
  measure(cx, &loop);
  for (int i = 1; i < argc; i++) measure_file(cx, argv[i]);
  kiln_context_destroy(&cx);
  return 0;
}
