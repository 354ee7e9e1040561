// How long reading HLO text takes, and how much memory: parse and verify, print, of generated modules of growing size,
// or of the files given. Behind them what must not be looked for again and again: the devices of one collective,
// opcodes that nobody knows, the places of findings.
//
// A generated module looks like what XLA prints after optimisation: layouts, metadata, operand types, fusions and
// reducers, comments in long operand lists. Every row is measured in a child process of its own, so that the peak of
// its memory is its own. Times are CPU times of the thread: medians and minima of several runs after one to warm up.

#include "measure.h"

#include <kiln/kiln.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 15, BODY = 40 };

// --- the generator ------------------------------------------------------------------------------------------------

typedef struct text {
  char *p;
  size_t n, cap;
} text;

static void put(text *t, const char *fmt, ...) {
  va_list ap;
  if (t->cap - t->n < 1024) {
    t->cap = t->cap * 2 + 4096;
    t->p = realloc(t->p, t->cap);
    if (!t->p) exit(4);
  }
  va_start(ap, fmt);
  t->n += (size_t)vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
  va_end(ap);
}

#define META(k)                                                                                                        \
  ", metadata={op_name=\"jit(step)/layer_%d/mul\" source_file=\"model.py\" source_line=%d}", k, 100 + k % 400
#define WIDE "f32[128,1024]{1,0}"

// One computation of elementwise ops and their kin; returns its number of instructions.
static int put_body(text *t, int k) {
  put(t, "%%fused_computation.%d (param_0.%d: f32[128,1024], param_1.%d: f32[1024]) -> f32[128,1024] {\n", k, k, k);
  put(t, "  %%param_0.%d = " WIDE " parameter(0)\n  %%param_1.%d = f32[1024]{0} parameter(1)\n", k, k);
  put(t, "  %%constant_%d.0 = f32[] constant(0.0441941730%d)\n", k, k);
  put(t, "  %%broadcast.%d.0 = " WIDE " broadcast(f32[] %%constant_%d.0), dimensions={}\n", k, k);
  put(t, "  %%broadcast.%d.1 = " WIDE " broadcast(f32[1024]{0} %%param_1.%d), dimensions={1}", k, k);
  put(t, META(k));
  put(t, "\n  %%multiply.%d.0 = " WIDE " multiply(" WIDE " %%param_0.%d, " WIDE " %%broadcast.%d.0)\n", k, k, k);
  for (int i = 1; i < BODY; i++) {
    static const char *const ops[] = {"add", "multiply", "maximum", "subtract", "divide"};
    put(t, "  %s%%multiply.%d.%d = " WIDE " %s(" WIDE " %%multiply.%d.%d, " WIDE " %%broadcast.%d.%d)",
        i == BODY - 1 ? "ROOT " : "", k, i, ops[i % 5], k, i - 1, k, i % 2);
    if (i % 4 == 0) put(t, META(k));
    put(t, "\n");
  }
  put(t, "}\n\n");
  return BODY + 5;
}

static const char reducer[] = "%region_0.1 (Arg_0.2: f32[], Arg_1.3: f32[]) -> f32[] {\n"
                              "  %Arg_0.2 = f32[] parameter(0)\n  %Arg_1.3 = f32[] parameter(1)\n"
                              "  ROOT %add.4 = f32[] add(f32[] %Arg_0.2, f32[] %Arg_1.3)\n}\n\n";

static text generate(int instructions) {
  text t = {0};
  int n = 6, bodies = 0;
  put(&t, "HloModule jit_step, is_scheduled=true, "
          "entry_computation_layout={(f32[128,1024]{1,0}, f32[1024]{0})->f32[128]{0}}\n\n");
  put(&t, "%s", reducer);
  for (; n < instructions; bodies++) n += put_body(&t, bodies) + 1;
  put(&t, "ENTRY %%main.1 (Arg_0.1: f32[128,1024], Arg_1.2: f32[1024]) -> f32[128] {\n"
          "  %%fusion.start = " WIDE " parameter(0)\n  %%bias = f32[1024]{0} parameter(1)\n");
  for (int k = 0; k < bodies; k++) {
    char before[40] = "start";
    if (k) snprintf(before, sizeof before, "%d", k - 1);
    put(&t, "  %%fusion.%d = " WIDE " fusion(" WIDE " %%fusion.%s, f32[1024]{0} %%bias), kind=kLoop, ", k, before);
    put(&t, "calls=%%fused_computation.%d", k);
    put(&t, META(k));
    put(&t, ", backend_config={\"operation_queue_id\":\"0\",\"wait_on_operation_queues\":[]}\n");
  }
  put(&t,
      "  %%zero = f32[] constant(0)\n  ROOT %%reduce.1 = f32[128]{0} reduce(" WIDE
      " %%fusion.%d, f32[] %%zero), dimensions={1}, to_apply=%%region_0.1\n}\n",
      bodies - 1);
  return t;
}

// ENTRY with x and so much more.
static text begin_small(void) {
  text t = {0};
  put(&t, "HloModule m\nENTRY e {\n  x = f32[64] parameter(0)\n");
  return t;
}

static text one_group(int devices) {
  text t = begin_small();
  put(&t, "  ROOT r = f32[%lld] all-gather(x), dimensions={0}, replica_groups={{", 64 * (long long)devices);
  for (int i = 0; i < devices; i++) put(&t, i ? ",%d" : "%d", i);
  put(&t, "}}\n}\n");
  return t;
}

static text pairs(int devices) {
  text t = begin_small();
  put(&t, "  ROOT r = f32[64] collective-permute(x), source_target_pairs={");
  for (int i = 0; i < devices; i++) put(&t, i ? ",{%d,%d}" : "{%d,%d}", i, devices - 1 - i);
  put(&t, "}\n}\n");
  return t;
}

static text unknown(int opcodes) {
  text t = begin_small();
  for (int i = 0; i < opcodes; i++) {
    char end[] = "aaaaaa";
    for (int k = 0, rest = i; k < 6; k++, rest /= 26) end[k] = (char)('a' + rest % 26);
    put(&t, "  u%d = f32[64] qz%sxw(x)\n", i, end);
  }
  put(&t, "  ROOT r = f32[64] negate(x)\n}\n");
  return t;
}

static text wrong_on_one_line(int instructions) {
  text t = begin_small();
  for (int i = 0; i < instructions; i++)
    put(&t, " u%d = f32[64] add(x), metadata={op_name=\"jit(step)/layer_%d/mul\" source_file=\"model.py\"}", i, i);
  put(&t, "\n}\n");
  return t;
}

static const struct row {
  const char *name;
  text (*make)(int);
  int n; // counts what the name says
  bool wrong;
} rows[] = {
    {"instructions", generate, 12500, false},
    {"instructions", generate, 25000, false},
    {"instructions", generate, 50000, false},
    {"instructions", generate, 100000, false},
    {"instructions", generate, 200000, false},
    {"devices of a group", one_group, 100000, false},
    {"devices of a group", one_group, 400000, false},
    {"pairs of devices", pairs, 100000, false},
    {"pairs of devices", pairs, 400000, false},
    {"unknown opcodes", unknown, 50000, false},
    {"unknown opcodes", unknown, 200000, false},
    {"findings on one line", wrong_on_one_line, 100000, true},
    {"findings on one line", wrong_on_one_line, 400000, true},
};

static text read_file(const char *path) {
  text t = {0};
  FILE *f = fopen(path, "rb");
  if (!f) {
    perror(path);
    exit(2);
  }
  do {
    t.cap = t.cap * 2 + 65536;
    t.p = realloc(t.p, t.cap);
    if (!t.p) exit(4);
    t.n += fread(t.p + t.n, 1, t.cap - t.n, f);
  } while (t.n == t.cap);
  fclose(f);
  return t;
}

// --- measuring ----------------------------------------------------------------------------------------------------

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double peak_mb(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)u.ru_maxrss / 1024;
}

// `n` counts what times are told of; 0: instructions. A wrong text gives no module, so that nothing is printed.
static int measure(const char *name, const text *t, size_t n, bool wrong) {
  double parse[RUNS], print[RUNS] = {0}, before = peak_mb(), after = 0;
  kiln_context *cx = kiln_context_create(NULL);
  for (int i = -1; i < RUNS; i++) {
    kiln_module *m = NULL;
    char *out = NULL;
    size_t size = 0;
    double a = cpu_ms();
    if ((kiln_module_parse(cx, name, t->p, t->n, &m) != KILN_OK) != wrong) {
      fprintf(stderr, "%s", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : name);
      return 2;
    }
    double b = cpu_ms();
    if (i < 0) after = peak_mb();
    if (m && kiln_module_print(cx, m, &out, &size) != KILN_OK) return 4;
    double c = cpu_ms();
    if (i >= 0) {
      parse[i] = b - a;
      print[i] = c - b;
    }
    if (!n) n = kiln_module_instruction_count(m);
    if (m) kiln_text_free(cx, out, size);
    kiln_module_destroy(&m);
    kiln_diagnostics_clear(cx);
  }
  kiln_context_destroy(&cx);
  double each = median(parse, RUNS), printed = median(print, RUNS);
  printf("%-28s %8.2f %9zu %9.2f %9.2f %8.0f %9.2f %8.1f\n", name, (double)t->n * 1e-6, n, each, parse[0],
         each * 1e6 / (double)n, printed, after - before);
  return 0;
}

// Children start small, whatever was measured before. A row, or else a file.
static int measure_apart(const struct row *r, const char *path) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    text t = r ? r->make(r->n) : read_file(path);
    int status = measure(r ? r->name : path, &t, r && r->make != generate ? (size_t)r->n : 0, r && r->wrong);
    fflush(stdout);
    _exit(status);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) return 4;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

int main(int argc, char **argv) {
  int status = 0;
  if (argc == 3 && strcmp(argv[1], "--print") == 0) { // the generated text itself
    text t = generate(atoi(argv[2]));
    fwrite(t.p, 1, t.n, stdout);
    return 0;
  }
  printf("%-28s %8s %9s %9s %9s %8s %9s %8s\n", "module", "MB", "n", "parse ms", "least ms", "ns each", "print ms",
         "peak MB");
  for (int i = 1; i < argc && !status; i++) status = measure_apart(NULL, argv[i]);
  for (size_t i = 0; argc == 1 && i < sizeof rows / sizeof *rows && !status; i++)
    status = measure_apart(&rows[i], NULL);
  return status;
}
