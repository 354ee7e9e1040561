// What kiln adds to the driver's own call for a launch: a driver that does nothing, so that what is measured is kiln's.
//
// Nanoseconds a launch, medians over many runs: the bare call of the driver, a frozen launch, and
// kiln_cuda_kernel_launch, which checks the buffers each time. Rows: artifacts of one, two and ten launches.

#include "cuda/abi.h"
#include "measure.h"
#include "support/standin.h"

#include <kiln/kiln.h>
#include <string.h>

enum { RUNS = 101, TIMES = 2000, MOST = 10 };

static uint64_t memory[3][1024] __attribute__((aligned(256))); // stands for the device's

static kiln_artifact *compile(kiln_context *cx, int launches) {
  char text[4096];
  size_t n = (size_t)sprintf(text, "HloModule m\nf {\n  p = f32[1024] parameter(0)\n  ROOT r = f32[1024] negate(p)\n}\n"
                                   "ENTRY e {\n  v0 = f32[1024] parameter(0)\n");
  for (int i = 1; i <= launches; i++)
    n += (size_t)sprintf(text + n, "  %sv%d = f32[1024] fusion(v%d), kind=kLoop, calls=f\n",
                         i == launches ? "ROOT " : "", i, i - 1);
  n += (size_t)sprintf(text + n, "}\n");
  kiln_module *m = NULL;
  kiln_artifact *a = NULL;
  if (kiln_module_parse(cx, "launch", text, n, &m) == KILN_OK) kiln_compile(cx, m, NULL, &a);
  kiln_module_destroy(&m);
  return a;
}

typedef CUresult bare_call(const CUlaunchConfig *, CUfunction, void **, void **);

static double bare(void) {
  bare_call *call = (bare_call *)standin_resolve(NULL, "cuLaunchKernelEx", 11080);
  CUlaunchConfig config = {1, 1, 1, 128, 1, 1, 0, NULL, NULL, 0};
  uint64_t values[2] = {1, 2};
  void *args[2] = {&values[0], &values[1]};
  double t[RUNS];
  for (int i = 0; i < RUNS; i++) {
    double start = now_ms();
    for (int k = 0; k < TIMES; k++) call(&config, NULL, args, NULL);
    t[i] = (now_ms() - start) * 1e6 / TIMES;
  }
  return median(t, RUNS);
}

static double frozen(kiln_context *cx, const kiln_cuda_frozen *f) {
  double t[RUNS];
  for (int i = 0; i < RUNS; i++) {
    double start = now_ms();
    for (int k = 0; k < TIMES; k++)
      if (kiln_cuda_frozen_launch(cx, f, NULL)) return -1;
    t[i] = (now_ms() - start) * 1e6 / TIMES;
  }
  return median(t, RUNS);
}

static double checked(kiln_context *cx, kiln_cuda_kernel *k, const kiln_cuda_launch_params *p) {
  double t[RUNS];
  for (int i = 0; i < RUNS; i++) {
    double start = now_ms();
    for (int n = 0; n < TIMES; n++)
      if (kiln_cuda_kernel_launch(cx, k, p)) return -1;
    t[i] = (now_ms() - start) * 1e6 / TIMES;
  }
  return median(t, RUNS);
}

static int measure(kiln_context *cx, const kiln_driver *d, void *context, int launches) {
  kiln_artifact *a = compile(cx, launches);
  kiln_cuda_kernel *k = NULL;
  kiln_cuda_frozen *f = NULL;
  uint64_t in = (uint64_t)(uintptr_t)memory[0], out = (uint64_t)(uintptr_t)memory[1];
  void *scratch = NULL;
  if (!a || kiln_cuda_kernel_create(cx, d, a, context, &k)) return 1;
  const kiln_manifest *m = kiln_artifact_manifest(a);
  if (posix_memalign(&scratch, 256, m->scratch_bytes + 1)) return 1;
  kiln_cuda_launch_params p = {.struct_size = sizeof p,
                               .parameters = &in,
                               .results = &out,
                               .scratch = m->scratch_bytes ? (uint64_t)(uintptr_t)scratch : 0};
  if (kiln_cuda_frozen_create(cx, k, &p, &f)) return 1;
  double once = bare(), all = once * (double)m->launch_count, fast = frozen(cx, f), slow = checked(cx, k, &p);
  printf("%8zu %10.1f %10.1f %16.1f %10.1f %16.1f\n", m->launch_count, all, fast,
         (fast - all) / (double)m->launch_count, slow, (slow - all) / (double)m->launch_count);
  kiln_cuda_frozen_destroy(&f);
  kiln_cuda_kernel_destroy(&k);
  kiln_artifact_destroy(&a);
  free(scratch);
  return 0;
}

int main(void) {
  kiln_context *cx = kiln_context_create(NULL);
  kiln_driver_params dp = {.struct_size = sizeof dp, .resolve = standin_resolve, .initialize = true};
  kiln_driver *d = NULL;
  kiln_device *dev = NULL;
  static const int launches[] = {1, 2, MOST};
  int status = kiln_driver_open(cx, &dp, &d) || kiln_device_open(cx, d, 0, &dev);
  printf("%8s %10s %10s %16s %10s %16s\n", "launches", "bare, ns", "frozen", "more per launch", "checked",
         "more per launch");
  for (size_t i = 0; i < sizeof launches / sizeof *launches && !status; i++)
    status = measure(cx, d, kiln_device_context(dev), launches[i]);
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  kiln_device_close(&dev);
  kiln_driver_close(&d);
  kiln_context_destroy(&cx);
  return status;
}
