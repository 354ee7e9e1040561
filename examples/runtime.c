// kiln inside a runtime that has its own memory, its own CUDA context, its own stream and its own pool on the device.
//
//   ./runtime [LIBRARY]        the CUDA driver, libcuda.so.1 if none is named
//
// The module has two fusions, which are one launch of the artifact, with scratch memory between them.
#include <kiln/kiln.h>

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "HloModule gelu_bias\n"
                           "bias {\n"
                           "  x = f32[512,1024] parameter(0)\n"
                           "  b = f32[1024] parameter(1)\n"
                           "  bb = f32[512,1024] broadcast(b), dimensions={1}\n"
                           "  ROOT y = f32[512,1024] add(x, bb)\n"
                           "}\n"
                           "gate {\n"
                           "  y = f32[512,1024] parameter(0)\n"
                           "  s = f32[512,1024] logistic(y)\n"
                           "  ROOT g = f32[512,1024] multiply(y, s)\n"
                           "}\n"
                           "ENTRY main {\n"
                           "  x = f32[512,1024] parameter(0)\n"
                           "  b = f32[1024] parameter(1)\n"
                           "  y = f32[512,1024] fusion(x, b), kind=kLoop, calls=bias\n"
                           "  ROOT g = f32[512,1024] fusion(y), kind=kLoop, calls=gate\n"
                           "}\n";
enum { ROWS = 512, COLUMNS = 1024, COUNT = ROWS * COLUMNS };

// --- the runtime's own memory ---------------------------------------------------------------------------------------

typedef struct heap {
  size_t now, peak;
} heap;

static void *heap_resize(void *user, void *p, size_t old_size, size_t size) {
  heap *h = user;
  void *q = NULL;
  if (size == 0)
    free(p);
  else if (!(q = realloc(p, size))) // malloc's blocks are aligned to 16 bytes
    return NULL;
  h->now += size - old_size;
  if (h->now > h->peak) h->peak = h->now;
  return q;
}

static void heap_is_out(void *user, size_t size) {
  fprintf(stderr, "runtime: no memory for %zu bytes\n", size);
}

// --- the runtime's own use of the driver ---------------------------------------------------------------------------

static struct {
  int (*init)(unsigned);
  int (*device_get)(int *, int);
  int (*context_create)(void **, unsigned, int);
  int (*context_destroy)(void *);
  int (*stream_create)(void **, unsigned);
  int (*stream_destroy)(void *);
  int (*stream_synchronize)(void *);
  int (*alloc)(uint64_t *, size_t);
  int (*free)(uint64_t);
  int (*upload)(uint64_t, const void *, size_t, void *);
  int (*download)(void *, uint64_t, size_t, void *);
} cuda;

static int open_driver(const char *name) {
  static const struct {
    const char *symbol;
    void *entry;
  } wanted[] = {
      {"cuInit", &cuda.init},
      {"cuDeviceGet", &cuda.device_get},
      {"cuCtxCreate_v2", &cuda.context_create},
      {"cuCtxDestroy_v2", &cuda.context_destroy},
      {"cuStreamCreate", &cuda.stream_create},
      {"cuStreamDestroy_v2", &cuda.stream_destroy},
      {"cuStreamSynchronize", &cuda.stream_synchronize},
      {"cuMemAlloc_v2", &cuda.alloc},
      {"cuMemFree_v2", &cuda.free},
      {"cuMemcpyHtoDAsync_v2", &cuda.upload},
      {"cuMemcpyDtoHAsync_v2", &cuda.download},
  };
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) fprintf(stderr, "runtime: %s\n", dlerror());
  for (size_t i = 0; library && i < sizeof wanted / sizeof wanted[0]; i++) {
    void *at = dlsym(library, wanted[i].symbol);
    if (!at) fprintf(stderr, "runtime: %s has no %s\n", name, wanted[i].symbol);
    if (!at) return 0;
    memcpy(wanted[i].entry, &at, sizeof at);
  }
  return library != NULL;
}

static int ok(const char *what, int code) {
  if (code) fprintf(stderr, "runtime: %s gave %d\n", what, code);
  return code == 0;
}
#define CUDA(call) ok(#call, cuda.call)

// One block of device memory, handed out from the front, by 256 bytes as kiln's scratch memory wants it.
typedef struct pool {
  uint64_t base, used, size;
} pool;

static int take(pool *p, uint64_t bytes, uint64_t *address) {
  uint64_t left = p->size - p->used; // a multiple of 256, too: what fits still fits when rounded up
  if (bytes > left) {
    fprintf(stderr, "runtime: expected %llu bytes of device memory, found %llu left\n", (unsigned long long)bytes,
            (unsigned long long)left);
    return 0;
  }
  *address = p->base + p->used;
  p->used += (bytes + 255) / 256 * 256;
  return 1;
}

// --- kiln -----------------------------------------------------------------------------------------------------------

typedef struct program {
  kiln_context *cx;
  kiln_driver *driver;
  kiln_module *module;
  kiln_artifact *artifact;
  kiln_cuda_kernel *kernel;
} program;

// Everything that kiln found since the last time, with the place where there is one.
static int fine(kiln_context *cx, kiln_status status) {
  for (size_t i = 0; i < kiln_diagnostics_count(cx); i++) fputs(kiln_diagnostics_get(cx, i)->text, stderr);
  kiln_diagnostics_clear(cx);
  return status == KILN_OK;
}

// `context` is current on this thread; kiln makes it so by itself wherever it needs it.
static int compile(program *p, const char *library, void *context) {
  // The process has called cuInit itself.
  kiln_driver_params dp = {.struct_size = sizeof dp, .library = library, .initialize = false};
  kiln_device_info device = {.struct_size = sizeof device};
  kiln_compile_params cp = {.struct_size = sizeof cp, .device = &device};
  return fine(p->cx, kiln_driver_open(p->cx, &dp, &p->driver)) &&
         fine(p->cx, kiln_device_describe(p->cx, p->driver, 0, &device)) &&
         fine(p->cx, kiln_module_parse(p->cx, "gelu_bias", text, sizeof text - 1, &p->module)) &&
         fine(p->cx, kiln_compile(p->cx, p->module, &cp, &p->artifact)) &&
         fine(p->cx, kiln_cuda_kernel_create(p->cx, p->driver, p->artifact, context, &p->kernel)) &&
         fine(p->cx, kiln_cuda_kernel_prepare(p->cx, p->kernel)); // loads now, so that no launch has to
}

// The kernel goes before its context; the artifact could have gone as soon as the kernel was there.
static void release(program *p) {
  kiln_cuda_kernel_destroy(&p->kernel);
  kiln_artifact_destroy(&p->artifact);
  kiln_module_destroy(&p->module);
  kiln_driver_close(&p->driver);
}

static int run(program *p, void *stream, pool *device) {
  static float x[COUNT], b[COLUMNS], y[COUNT];
  const kiln_manifest *m = kiln_artifact_manifest(p->artifact);
  uint64_t params[2], result, scratch;
  if (!take(device, sizeof x, &params[0]) || !take(device, sizeof b, &params[1]) || !take(device, sizeof y, &result) ||
      !take(device, m->scratch_bytes, &scratch))
    return 0;
  kiln_cuda_launch_params launch = {
      .struct_size = sizeof launch, .stream = stream, .parameters = params, .results = &result, .scratch = scratch};
  for (int i = 0; i < COUNT; i++) x[i] = (float)(i % 17) / 4 - 2, y[i] = NAN;
  for (int i = 0; i < COLUMNS; i++) b[i] = (float)(i % 5) / 8;
  if (!CUDA(upload(params[0], x, sizeof x, stream)) || !CUDA(upload(params[1], b, sizeof b, stream)) ||
      !CUDA(upload(result, y, sizeof y, stream)))
    return 0;
  // A launch that cannot be right is refused before anything is enqueued.
  uint64_t wrong = result + 4, right = result;
  launch.results = &wrong;
  printf("a misaligned result is refused: ");
  fflush(stdout);
  if (kiln_cuda_kernel_launch(p->cx, p->kernel, &launch) == KILN_OK) return 0;
  printf("%s\n", kiln_diagnostics_get(p->cx, 0)->message);
  kiln_diagnostics_clear(p->cx);
  launch.results = &right;
  for (int i = 0; i < 3; i++)
    if (!fine(p->cx, kiln_cuda_kernel_launch(p->cx, p->kernel, &launch))) return 0;
  if (!CUDA(download(y, result, sizeof y, stream)) || !CUDA(stream_synchronize(stream))) return 0;
  if (isnan(y[0])) {
    printf("%zu launches, %llu bytes of scratch: the driver ran nothing\n", m->launch_count,
           (unsigned long long)m->scratch_bytes);
    return 1;
  }
  double worst = 0;
  for (int i = 0; i < COUNT; i++) {
    double v = (double)x[i] + (double)b[i % COLUMNS], want = v / (1 + exp(-v));
    worst = fmax(worst, fabs((double)y[i] - want));
  }
  printf("%zu launches, %llu bytes of scratch: largest error %.2g\n", m->launch_count,
         (unsigned long long)m->scratch_bytes, worst);
  return worst < 1e-5;
}

static int with_context(program *p, const char *library, void *context) {
  void *stream = NULL;
  pool device = {.size = 16 << 20};
  int good = CUDA(stream_create(&stream, 1)) && CUDA(alloc(&device.base, device.size)) &&
             compile(p, library, context) && run(p, stream, &device);
  release(p);
  if (device.base) good &= CUDA(free(device.base));
  if (stream) good &= CUDA(stream_destroy(stream));
  return good;
}

int main(int argc, char **argv) {
  const char *library = argc > 1 ? argv[1] : "libcuda.so.1";
  heap host = {0};
  kiln_context_params own = {.struct_size = sizeof own, .allocator = {&host, heap_resize, heap_is_out}};
  program p = {0};
  void *context = NULL;
  int device;
  if (!open_driver(library) || !CUDA(init(0)) || !CUDA(device_get(&device, 0)) ||
      !CUDA(context_create(&context, 0, device)))
    return 1;
  p.cx = kiln_context_create(&own);
  if (!p.cx) fprintf(stderr, "runtime: no memory for a context of kiln's\n");
  int good = p.cx && with_context(&p, library, context);
  kiln_context_destroy(&p.cx);
  good &= CUDA(context_destroy(context));
  printf("kiln used %zu KiB of the runtime's memory at most, %zu bytes are left\n", host.peak / 1024, host.now);
  return good && host.now == 0 ? 0 : 1;
}
