// How compiling grows with what is compiled: modules of growing size to PTX and to host code, in milliseconds and MB.
//
// Every row doubles twice; the exponent is that of the time from the first size to the last: 1 is linear. Each compile
// is measured in a child process of its own, so that the peak of its memory is its own. Times are those of all
// processors together, from the parsed module to the artifact; `wall` is the clock's, as kernels are compiled side by
// side; `run` is one launch on the host.

#include "measure.h"

#include <kiln/kiln.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

// --- modules ------------------------------------------------------------------------------------------------------

static void put_fusions(text *t, int n) {
  put(t, "HloModule m\nf {\n  a = f32[64] parameter(0)\n  ROOT r = f32[64] negate(a)\n}\n");
  put(t, "ENTRY e {\n  x0 = f32[64] parameter(0)\n");
  for (int i = 1; i <= n; i++)
    put(t, "  %sx%d = f32[64] fusion(x%d), kind=kLoop, calls=f\n", i == n ? "ROOT " : "", i, i - 1);
  put(t, "}\n");
}

// A tuple of x0 ... of one type.
static void put_tuple(text *t, const char *type, int n) {
  put(t, "  ROOT t = (");
  for (int i = 0; i < n; i++) put(t, i ? ", %s" : "%s", type);
  put(t, ") tuple(");
  for (int i = 0; i < n; i++) put(t, i ? ", x%d" : "x%d", i);
  put(t, ")\n}\n");
}

static void put_scalars(text *t, int n) {
  put(t, "HloModule m\nENTRY e {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n");
  for (int i = 0; i < n; i++) {
    char before[16] = "b";
    if (i) snprintf(before, sizeof before, "x%d", i - 1);
    put(t, "  x%d = f32[] add(a, %s)\n", i, before);
  }
  put_tuple(t, "f32[]", n);
}

static void put_copies(text *t, int n) {
  put(t, "HloModule m\nf {\n  a = f32[] parameter(0)\n  ROOT r = f32[] negate(a)\n}\n");
  put(t, "ENTRY e {\n  a = f32[] parameter(0)\n  x0 = f32[] fusion(a), kind=kLoop, calls=f\n");
  put(t, "  ROOT t = (f32[]");
  for (int i = 1; i < n; i++) put(t, ", f32[]");
  put(t, ") tuple(x0");
  for (int i = 1; i < n; i++) put(t, ", a");
  put(t, ")\n}\n");
}

static void put_operands(text *t, int n) {
  int all = 0;
  put(t, "HloModule m\nENTRY e {\n");
  for (int i = 0; i < n; i++) {
    put(t, "  x%d = f32[%d] parameter(%d)\n", i, 8 + i % 5, i);
    all += 8 + i % 5;
  }
  put(t, "  c = f32[%d] concatenate(", all);
  for (int i = 0; i < n; i++) put(t, i ? ", x%d" : "x%d", i);
  put(t, "), dimensions={0}\n  ROOT r = f32[%d] negate(c)\n}\n", all);
}

static void put_columns(text *t, int n) {
  put(t, "HloModule m\nENTRY e {\n");
  for (int i = 0; i < n; i++) put(t, "  x%d = f32[64,1] parameter(%d)\n", i, i);
  put(t, "  ROOT c = f32[64,%d] concatenate(", n);
  for (int i = 0; i < n; i++) put(t, i ? ", x%d" : "x%d", i);
  put(t, "), dimensions={1}\n}\n");
}

static void put_steps(text *t, int n) {
  static const char *const ops[] = {"add", "multiply", "subtract", "maximum", "minimum"};
  put(t, "HloModule m\nENTRY e {\n  x0 = f32[4096] parameter(0)\n  y = f32[4096] parameter(1)\n");
  for (int i = 1; i <= n; i++) put(t, "  %sx%d = f32[4096] %s(x%d, y)\n", i == n ? "ROOT " : "", i, ops[i % 5], i - 1);
  put(t, "}\n");
}

static void put_parameters(text *t, int n) {
  put(t, "HloModule m\nENTRY e {\n");
  for (int i = 0; i < n; i++) put(t, "  p%d = f32[4096] parameter(%d)\n", i, i);
  for (int i = 1; i < n; i++) {
    char before[16] = "p0";
    if (i > 1) snprintf(before, sizeof before, "s%d", i - 1);
    put(t, "  %ss%d = f32[4096] add(%s, p%d)\n", i == n - 1 ? "ROOT " : "", i, before, i);
  }
  put(t, "}\n");
}

// Each result may lie where its parameter does.
static void put_pairs(text *t, int n) {
  put(t, "HloModule m, input_output_alias={");
  for (int i = 0; i < n; i++) put(t, "%s{%d}: (%d, {}, must-alias)", i ? ", " : "", i, i);
  put(t, "}\nENTRY e {\n");
  for (int i = 0; i < n; i++) put(t, "  p%d = f32[4096] parameter(%d)\n  x%d = f32[4096] negate(p%d)\n", i, i, i, i);
  put_tuple(t, "f32[4096]", n);
}

static void put_calls(text *t, int n) {
  put(t, "HloModule m\n");
  for (int i = 0; i < n; i++) {
    put(t, "f%d {\n  a = f32[64] parameter(0)\n  ROOT r = f32[64] ", i);
    if (i)
      put(t, "call(a), to_apply=f%d\n}\n", i - 1);
    else
      put(t, "negate(a)\n}\n");
  }
  put(t, "ENTRY e {\n  a = f32[64] parameter(0)\n  ROOT r = f32[64] call(a), to_apply=f%d\n}\n", n - 1);
}

// Rounds of a cipher, each of the one before.
static void put_rounds(text *t, int n) {
  static const char type[] = "u32[1280,1280]";
  put(t, "HloModule m\nENTRY e {\n  x0 = %s parameter(0)\n  y0 = %s parameter(1)\n", type, type);
  for (int i = 0; i < 8; i++) {
    put(t, "  c%d = u32[] constant(%d)\n  l%d = %s broadcast(c%d), dimensions={}\n", i, 3 * i + 5, i, type, i);
    put(t, "  d%d = u32[] constant(%d)\n  h%d = %s broadcast(d%d), dimensions={}\n", i, 27 - 3 * i, i, type, i);
  }
  for (int i = 0; i < n / 5; i++) {
    put(t, "  x%d = %s add(x%d, y%d)\n  a%d = %s shift-left(y%d, l%d)\n", i + 1, type, i, i, i, type, i, i % 8);
    put(t, "  b%d = %s shift-right-logical(y%d, h%d)\n  o%d = %s or(a%d, b%d)\n", i, type, i, i % 8, i, type, i, i);
    put(t, "  y%d = %s xor(o%d, x%d)\n", i + 1, type, i, i + 1);
  }
  put(t, "  ROOT r = (%s, %s) tuple(x%d, y%d)\n}\n", type, type, n / 5, n / 5);
}

// No two parts of it are alike: elementwise ops, rows and columns that are moved, sums, products, of any that came
// before.
static void put_plain(text *t, int n) {
  static const char *const unary[] = {"negate", "tanh", "exponential", "abs"};
  static const char *const binary[] = {"add", "subtract", "multiply", "maximum"};
  static const char type[] = "f32[32,48]";
  unsigned long long state = 7;
  put(t, "HloModule m\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n");
  put(t, "ENTRY e {\n  x0 = %s parameter(0)\n  z = f32[] constant(0)\n", type);
  int made = 1;
  for (int ops = 0; ops < n; made++) {
    int drawn[3];
    for (int k = 0; k < 3; k++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      drawn[k] = (int)(state >> 33);
    }
    int back = made < 24 ? made : 24, a = made - 1 - drawn[0] % back, b = made - 1 - drawn[1] % back, by = 1 + b % 9;
    switch (drawn[2] % 16) {
    case 0:
      put(t, "  s%d = f32[32] reduce(x%d, z), dimensions={1}, to_apply=sum\n", made, a);
      put(t, "  x%d = %s broadcast(s%d), dimensions={0}\n", made, type, made);
      ops += 2;
      break;
    case 1:
      put(t, "  s%d = f32[%d,48] slice(x%d), slice={[0:%d],[0:48]}\n", made, 32 - by, a, 32 - by);
      put(t, "  x%d = %s pad(s%d, z), padding=%d_0x0_0\n", made, type, made, by);
      ops += 2;
      break;
    case 2:
      put(t, "  s%d = f32[32,32] dot(x%d, x%d), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n", made, a, b);
      put(t, "  x%d = %s dot(s%d, x%d), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", made, type, made, a);
      ops += 2;
      break;
    case 3:
      put(t, "  s%d = f32[48,32] transpose(x%d), dimensions={1,0}\n", made, a);
      put(t, "  x%d = %s reshape(s%d)\n", made, type, made);
      ops += 2;
      break;
    case 4:
    case 5:
    case 6: put(t, "  x%d = %s %s(x%d)\n", made, type, unary[drawn[1] % 4], a), ops++; break;
    default: put(t, "  x%d = %s %s(x%d, x%d)\n", made, type, binary[drawn[2] / 16 % 4], a, b), ops++; break;
    }
  }
  put(t, "  ROOT r = %s add(x%d, x%d)\n}\n", type, made - 1, made - 2);
}

// --- measuring ----------------------------------------------------------------------------------------------------

static const struct {
  const char *what, *target;
  void (*write)(text *, int);
  int n;
} rows[] = {
    {"ENTRY of fusions", "sm_90", put_fusions, 1500},
    {"ENTRY of fusions", "host", put_fusions, 1500},
    {"tuple of results that are copies", "sm_90", put_copies, 1000},
    {"tuple of scalars", "sm_90", put_scalars, 1000},
    {"tuple of scalars", "host", put_scalars, 2500},
    {"concatenate of operands", "sm_90", put_operands, 500},
    {"concatenate of operands", "host", put_operands, 500},
    {"concatenate of columns", "sm_90", put_columns, 500},
    {"concatenate of columns", "host", put_columns, 500},
    {"fusion of operations", "sm_90", put_steps, 4000},
    {"fusion of operations", "host", put_steps, 4000},
    {"parameters", "sm_90", put_parameters, 1000},
    {"parameters", "host", put_parameters, 1000},
    {"results in place of parameters", "sm_90", put_pairs, 500},
    {"results in place of parameters", "host", put_pairs, 1000},
    {"calls in calls", "sm_90", put_calls, 250},
    {"rounds of a cipher, u32[1280,1280]", "sm_90", put_rounds, 5000},
    {"ENTRY of ops, no two parts alike", "sm_90", put_plain, 2500},
    {"ENTRY of ops, no two parts alike", "host", put_plain, 2500},
};
enum { ROWS = sizeof rows / sizeof *rows, SIZES = 3 };

static double ms_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

typedef struct measured {
  double compile_ms, wall_ms, run_ms, peak_mb;
} measured;

static bool run(kiln_context *cx, const kiln_artifact *a, double *ms) {
  const kiln_manifest *f = kiln_artifact_manifest(a);
  void **buffers = calloc(f->parameter_count + f->result_count, sizeof *buffers);
  kiln_kernel *k;
  kiln_run_params p = {.struct_size = sizeof p, .threads = 1};
  if (kiln_kernel_load(cx, a, &k) != KILN_OK) return false;
  for (size_t i = 0; i < f->parameter_count + f->result_count; i++) buffers[i] = calloc(1, (size_t)f->slots[i].bytes);
  double from = ms_of(CLOCK_PROCESS_CPUTIME_ID);
  bool ok = kiln_kernel_run(cx, k, (const void *const *)buffers, buffers + f->parameter_count, &p) == KILN_OK;
  *ms = ms_of(CLOCK_PROCESS_CPUTIME_ID) - from;
  for (size_t i = 0; i < f->parameter_count + f->result_count; i++) free(buffers[i]);
  free(buffers);
  kiln_kernel_destroy(&k);
  return ok;
}

static int measure(int row, int n, measured *out) {
  text t = {0};
  rows[row].write(&t, n);
  kiln_context *cx = kiln_context_create(NULL);
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_compile_params p = {.struct_size = sizeof p, .target = rows[row].target};
  bool ok = kiln_module_parse(cx, rows[row].what, t.p, t.n, &m) == KILN_OK;
  double from = ms_of(CLOCK_PROCESS_CPUTIME_ID), begun = ms_of(CLOCK_MONOTONIC);
  ok = ok && kiln_compile(cx, m, &p, &a) == KILN_OK;
  out->compile_ms = ms_of(CLOCK_PROCESS_CPUTIME_ID) - from;
  out->wall_ms = ms_of(CLOCK_MONOTONIC) - begun;
  if (ok && strcmp(p.target, "host") == 0) ok = run(cx, a, &out->run_ms);
  if (!ok) fprintf(stderr, "%s\n", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "failed");
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  out->peak_mb = (double)u.ru_maxrss / 1024;
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  kiln_context_destroy(&cx);
  free(t.p);
  return ok ? 0 : 4;
}

static int measure_apart(int row, int n, measured *out) {
  int ends[2], status = 0;
  *out = (measured){0};
  fflush(stdout);
  if (pipe(ends)) return 4;
  pid_t child = fork();
  if (child == 0) {
    measured own = {0};
    status = measure(row, n, &own);
    if (write(ends[1], &own, sizeof own) != sizeof own) status = 4;
    _exit(status);
  }
  close(ends[1]);
  bool whole = read(ends[0], out, sizeof *out) == sizeof *out;
  close(ends[0]);
  if (child < 0 || waitpid(child, &status, 0) < 0 || !whole) return 4;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

int main(void) {
  int worst = 0;
  printf("%-34s %-6s %7s %9s %9s %9s %8s %9s %8s %8s\n", "compile", "target", "n", "n: ms", "2n: ms", "4n: ms",
         "exponent", "4n: wall", "4n: MB", "4n: run");
  for (int r = 0; r < ROWS; r++) {
    measured m[SIZES] = {{0}};
    int status = 0;
    for (int s = 0; s < SIZES && !status; s++) status = measure_apart(r, rows[r].n << s, &m[s]);
    if (status > worst) worst = status;
    if (status) continue;
    printf("%-34s %-6s %7d %9.1f %9.1f %9.1f %8.2f %9.1f %8.1f %8.3f\n", rows[r].what, rows[r].target, rows[r].n,
           m[0].compile_ms, m[1].compile_ms, m[2].compile_ms, log2(m[2].compile_ms / m[0].compile_ms) / 2, m[2].wall_ms,
           m[2].peak_mb, m[2].run_ms);
  }
  return worst;
}
