// Host kernels of kiln beside loops written by hand for the widest vectors of this processor, on all cores: the same
// buffers, the same exp, in turns. By hand a sum is taken in whatever order is quickest; kiln's has the order that
// docs/numerics.md states, which is the same on every machine.

#include "measure.h"

#include <kiln/kiln.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 15, MAX_THREADS = 64 };

// --- loops by hand: rows first .. end - 1 of what is shared out ---------------------------------------------------

typedef struct job {
  const float *in;
  float *out;
  int64_t rows, columns; // of the operand
  int64_t first, end;
} job;

#define VECTOR  16
#define ISA     "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"
#define NAME(n) n##_512
#include "hand.h"
#undef VECTOR
#undef ISA
#undef NAME
#define VECTOR  8
#define ISA     "avx2,fma"
#define NAME(n) n##_256
#include "hand.h"

typedef void (*loop)(const job *);

typedef struct test {
  const char *name, *hlo;
  int64_t rows, columns, results, share; // share: what is dealt out to threads, by so many at a time
  int64_t granule;
  loop wide, narrow;
} test;

#define ADD "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
#define MAX "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"

static const test tests[] = {
    {"softmax f32[4096,1024]",
     "HloModule softmax\n" ADD MAX
     "ENTRY main { x = f32[4096,1024] parameter(0) low = f32[] constant(-inf) zero = f32[] constant(0)\n"
     "m = f32[4096] reduce(x, low), dimensions={1}, to_apply=max mb = f32[4096,1024] broadcast(m), dimensions={0}\n"
     "d = f32[4096,1024] subtract(x, mb) e = f32[4096,1024] exponential(d)\n"
     "s = f32[4096] reduce(e, zero), dimensions={1}, to_apply=add sb = f32[4096,1024] broadcast(s), dimensions={0}\n"
     "ROOT r = f32[4096,1024] divide(e, sb) }\n",
     4096, 1024, 4096 * 1024, 4096, 1, softmax_512, softmax_256},
    {"row sum f32[4096,1024]",
     "HloModule row_sum\n" ADD "ENTRY main { x = f32[4096,1024] parameter(0) zero = f32[] constant(0)\n"
     "ROOT r = f32[4096] reduce(x, zero), dimensions={1}, to_apply=add }\n",
     4096, 1024, 4096, 4096, 1, row_sum_512, row_sum_256},
    {"column sum f32[4096,1024]",
     "HloModule column_sum\n" ADD "ENTRY main { x = f32[4096,1024] parameter(0) zero = f32[] constant(0)\n"
     "ROOT r = f32[1024] reduce(x, zero), dimensions={0}, to_apply=add }\n",
     4096, 1024, 1024, 1024, 64, column_sum_512, column_sum_256},
    {"rows of 32, f32[131072,32]",
     "HloModule short_rows\n" ADD "ENTRY main { x = f32[131072,32] parameter(0) zero = f32[] constant(0)\n"
     "ROOT r = f32[131072] reduce(x, zero), dimensions={1}, to_apply=add }\n",
     131072, 32, 131072, 131072, 16, short_sum_512, short_sum_256},
    {"transpose f32[4096,4096]",
     "HloModule transpose\nENTRY main { x = f32[4096,4096] parameter(0) ROOT r = f32[4096,4096] transpose(x), "
     "dimensions={1,0} }\n",
     4096, 4096, 4096 * 4096, 4096, 64, transpose_512, transpose_256},
};

// --- running ------------------------------------------------------------------------------------------------------

typedef struct part {
  loop fn;
  job job;
} part;

static void *run_part(void *arg) {
  const part *p = arg;
  p->fn(&p->job);
  return NULL;
}

static void run_by_hand(const test *t, loop fn, const float *in, float *out, int64_t threads) {
  part parts[MAX_THREADS];
  pthread_t ids[MAX_THREADS];
  bool started[MAX_THREADS] = {0};
  int64_t granules = t->share / t->granule;
  for (int64_t i = 0; i < threads; i++) {
    int64_t first = granules * i / threads * t->granule, end = granules * (i + 1) / threads * t->granule;
    parts[i] = (part){fn, {in, out, t->rows, t->columns, first, end}};
    if (i) started[i] = pthread_create(&ids[i], NULL, run_part, &parts[i]) == 0;
  }
  for (int64_t i = 0; i < threads; i++)
    if (!started[i]) run_part(&parts[i]);
  for (int64_t i = 1; i < threads; i++)
    if (started[i]) pthread_join(ids[i], NULL);
}

static double greatest_difference(const float *a, const float *b, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    double d = fabs((double)a[i] - (double)b[i]) / (1 + fabs((double)b[i]));
    most = d > most ? d : most;
  }
  return most;
}

static int measure(kiln_context *cx, const test *t, int64_t threads) {
  kiln_compile_params p = {.struct_size = sizeof p, .target = "host"};
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  kiln_kernel *k = NULL;
  loop fn = __builtin_cpu_supports("avx512dq") ? t->wide : t->narrow;
  size_t in_bytes = (size_t)(t->rows * t->columns) * sizeof(float), out_bytes = (size_t)t->results * sizeof(float);
  float *in = aligned_alloc(64, in_bytes), *out[2] = {aligned_alloc(64, out_bytes), aligned_alloc(64, out_bytes)};
  double times[2][RUNS];
  if (!in || !out[0] || !out[1] || kiln_module_parse(cx, t->name, t->hlo, strlen(t->hlo), &m) ||
      kiln_compile(cx, m, &p, &a) || kiln_kernel_load(cx, a, &k)) {
    fprintf(stderr, "%s", kiln_diagnostics_count(cx) ? kiln_diagnostics_get(cx, 0)->text : "hand: no memory\n");
    return 1;
  }
  kiln_module_parameter_leaf_fill(m, 0, 0, in);
  for (int i = -2; i < RUNS; i++) {
    double t0 = now_ms();
    if (kiln_kernel_run(cx, k, (const void *const[]){in}, (void *[]){out[0]}, NULL)) return 1;
    double t1 = now_ms();
    run_by_hand(t, fn, in, out[1], threads);
    double t2 = now_ms();
    if (i >= 0) times[0][i] = t1 - t0, times[1][i] = t2 - t1;
  }
  double apart = greatest_difference(out[0], out[1], t->results);
  double own = median(times[0], RUNS), hand = median(times[1], RUNS);
  double gb = (double)(in_bytes + out_bytes) * 1e-6;
  printf("%-28s %9.3f %9.3f %8.2f %10.1f %10.1f\n", t->name, own, hand, own / hand, gb / own, gb / hand);
  fflush(stdout);
  free(in), free(out[0]), free(out[1]);
  kiln_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  kiln_module_destroy(&m);
  if (apart <= 1e-4) return 0;
  fprintf(stderr, "%s: results are %g apart\n", t->name, apart);
  return 1;
}

int main(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int64_t threads = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : cores;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    printf("This processor has no AVX2, for which the loops are written.\n");
    return 0;
  }
  kiln_context *cx = kiln_context_create(NULL);
  printf("%-28s %9s %9s %8s %10s %10s\n", "ms (median)", "kiln", "by hand", "ratio", "kiln GB/s", "hand GB/s");
  int bad = 0;
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) bad |= measure(cx, &tests[i], threads);
  kiln_context_destroy(&cx);
  return bad;
}
