// A kernel launched in every way that there is: with buffers looked at each time, frozen, as a CUDA graph; and what is
// said where something is wrong. docs/runtime.md explains it.
//
//   ./launches            on the simulator
//   ./launches LIBRARY    with a CUDA driver: libcuda.so.1
#include <kiln/kiln.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "HloModule scaled_sum\n"
                           "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
                           "ENTRY main {\n"
                           "  x = f32[65536] parameter(0)\n"
                           "  y = f32[65536] multiply(x, x)\n"
                           "  zero = f32[] constant(0)\n"
                           "  ROOT s = f32[] reduce(y, zero), dimensions={0}, to_apply=add\n"
                           "}\n";
enum { COUNT = 65536 };

static kiln_context *cx;

// Ends the program with all that kiln has found.
static void check(kiln_status status) {
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  if (status != KILN_OK) exit(1);
}

typedef struct runtime {
  kiln_driver *driver;
  kiln_device *device; // stands for the caller's own context, stream and memory
  kiln_artifact *artifact;
  kiln_cuda_kernel *kernel;
} runtime;

static void open_runtime(runtime *r, const char *library) {
  kiln_driver_params driver = {.struct_size = sizeof driver, .library = library, .initialize = true};
  kiln_device_info info = {.struct_size = sizeof info};
  if (!library) driver.resolve = kiln_sim_resolve;
  check(kiln_driver_open(cx, &driver, &r->driver));
  check(kiln_device_open(cx, r->driver, 0, &r->device));
  check(kiln_device_describe(cx, r->driver, 0, &info));
  kiln_compile_params params = {.struct_size = sizeof params, .device = &info};
  kiln_module *module = NULL;
  check(kiln_module_parse(cx, "scaled_sum", text, sizeof text - 1, &module));
  check(kiln_compile(cx, module, &params, &r->artifact));
  kiln_module_destroy(&module);
  check(kiln_cuda_kernel_create(cx, r->driver, r->artifact, kiln_device_context(r->device), &r->kernel));
  check(kiln_cuda_kernel_prepare(cx, r->kernel));
}

static void close_runtime(runtime *r) {
  kiln_cuda_kernel_destroy(&r->kernel);
  kiln_artifact_destroy(&r->artifact);
  kiln_device_close(&r->device);
  kiln_driver_close(&r->driver);
}

static uint64_t make_input(runtime *r, float value) {
  static float x[COUNT];
  uint64_t at;
  for (int i = 0; i < COUNT; i++) x[i] = value;
  check(kiln_device_alloc(cx, r->device, sizeof x, &at));
  check(kiln_device_upload(cx, r->device, at, x, sizeof x));
  return at;
}

static void show(runtime *r, const char *what, uint64_t result) {
  float s;
  check(kiln_device_download(cx, r->device, &s, result, sizeof s));
  check(kiln_device_fill(cx, r->device, result, 0, sizeof s));
  printf("%s: %g\n", what, (double)s);
}

int main(int argc, char **argv) {
  runtime r = {0};
  cx = kiln_context_create(NULL);
  if (!cx) return 1;
  open_runtime(&r, argc > 1 ? argv[1] : NULL);
  void *stream = kiln_device_stream(r.device);
  uint64_t ones = make_input(&r, 1), twos = make_input(&r, 2), result, scratch = 0;
  check(kiln_device_alloc(cx, r.device, sizeof(float), &result));

  const kiln_manifest *manifest = kiln_artifact_manifest(r.artifact);
  if (manifest->scratch_bytes) check(kiln_device_alloc(cx, r.device, manifest->scratch_bytes, &scratch));
  check(kiln_cuda_kernel_fill_scratch(cx, r.kernel, stream, scratch));

  kiln_cuda_launch_params launch = {
      .struct_size = sizeof launch, .stream = stream, .parameters = &ones, .results = &result, .scratch = scratch};
  check(kiln_cuda_kernel_launch(cx, r.kernel, &launch));
  show(&r, "launched", result);

  kiln_cuda_frozen *frozen = NULL;
  check(kiln_cuda_frozen_create(cx, r.kernel, &launch, &frozen));
  check(kiln_cuda_frozen_launch(cx, frozen, stream));
  show(&r, "frozen", result);
  launch.parameters = &twos;
  check(kiln_cuda_frozen_bind(cx, frozen, &launch));
  check(kiln_cuda_frozen_launch(cx, frozen, stream));
  show(&r, "frozen, another buffer", result);
  kiln_cuda_frozen_destroy(&frozen);

  kiln_cuda_graph *graph = NULL;
  check(kiln_cuda_graph_create(cx, r.kernel, &launch, &graph));
  check(kiln_cuda_graph_launch(cx, graph, stream));
  show(&r, "a graph", result);
  launch.parameters = &ones;
  check(kiln_cuda_graph_update(cx, graph, &launch));
  check(kiln_cuda_graph_launch(cx, graph, stream));
  show(&r, "a graph, another buffer", result);
  kiln_cuda_graph_destroy(&graph);

  uint64_t skewed = ones + 4;
  launch.parameters = &skewed;
  if (kiln_cuda_kernel_launch(cx, r.kernel, &launch) == KILN_E_INVALID) {
    const char *said = kiln_diagnostics_get(cx, 0)->message;
    printf("refused: %.*s\n", (int)strcspn(said, ","), said);
    kiln_diagnostics_clear(cx);
  }

  kiln_device_free(r.device, ones);
  kiln_device_free(r.device, twos);
  kiln_device_free(r.device, result);
  kiln_device_free(r.device, scratch);
  close_runtime(&r);
  kiln_context_destroy(&cx);
  return 0;
}
