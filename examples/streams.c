// kiln inside a runtime with a pool of streams: several requests are under way at once, each with two kernels side by
// side and a third one behind both. Events alone order them; the host waits only for a place that it wants again. All
// launches are frozen before the first request comes.
//
//   ./streams            on the simulator
//   ./streams LIBRARY    with a CUDA driver: libcuda.so.1
//
// A place has buffers for one request and two streams of the pool:
//
//   stream   copy x -- (arrived) -- mean -------------- wait (gated) -- join -- copy y -- (done)
//   beside   wait (arrived) -------- gate -- (gated)
#include <kiln/kiln.h>

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 32, COLUMNS = 256, COUNT = ROWS * COLUMNS, PLACES = 3, STREAMS = 4, REQUESTS = 10 };
enum { MEAN, GATE, JOIN, KERNELS };
static const char *const texts[KERNELS] = {
    "HloModule mean\n"
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
    "ENTRY main {\n"
    "  x = f32[32,256] parameter(0)\n"
    "  zero = f32[] constant(0)\n"
    "  s = f32[32] reduce(x, zero), dimensions={1}, to_apply=add\n"
    "  n = f32[] constant(256)\n"
    "  ns = f32[32] broadcast(n), dimensions={}\n"
    "  ROOT m = f32[32] divide(s, ns)\n"
    "}\n",
    "HloModule gate\n"
    "ENTRY main {\n"
    "  x = f32[32,256] parameter(0)\n"
    "  ROOT g = f32[32,256] logistic(x)\n"
    "}\n",
    "HloModule join\n"
    "ENTRY main {\n"
    "  x = f32[32,256] parameter(0)\n"
    "  m = f32[32] parameter(1)\n"
    "  g = f32[32,256] parameter(2)\n"
    "  ms = f32[32,256] broadcast(m), dimensions={0}\n"
    "  d = f32[32,256] subtract(x, ms)\n"
    "  ROOT y = f32[32,256] multiply(d, g)\n"
    "}\n",
};

// --- the driver, as the runtime itself uses it
// ------------------------------------------------------------------------

static struct {
  int (*init)(unsigned);
  int (*device_get)(int *, int);
  int (*context_create)(void **, unsigned, int);
  int (*context_destroy)(void *);
  int (*stream_create)(void **, unsigned);
  int (*stream_destroy)(void *);
  int (*stream_synchronize)(void *);
  int (*stream_wait)(void *, void *, unsigned);
  int (*event_create)(void **, unsigned);
  int (*event_destroy)(void *);
  int (*event_record)(void *, void *);
  int (*event_synchronize)(void *);
  int (*alloc)(uint64_t *, size_t);
  int (*free)(uint64_t);
  int (*alloc_host)(void **, size_t);
  int (*free_host)(void *);
  int (*upload)(uint64_t, const void *, size_t, void *);
  int (*download)(void *, uint64_t, size_t, void *);
} cuda;
enum { NON_BLOCKING = 1, WITHOUT_TIME = 2 };

static int ok(const char *what, int code) {
  if (code) fprintf(stderr, "streams: %s gave %d\n", what, code);
  return code == 0;
}
#define CUDA(call) ok(#call, cuda.call)

static int open_driver(const char *name) {
  static const struct {
    const char *symbol;
    int version; // the version of CUDA whose signature is meant
    void *entry;
  } wanted[] = {
      {"cuInit", 2000, &cuda.init},
      {"cuDeviceGet", 2000, &cuda.device_get},
      {"cuCtxCreate", 3020, &cuda.context_create},
      {"cuCtxDestroy", 4000, &cuda.context_destroy},
      {"cuStreamCreate", 2000, &cuda.stream_create},
      {"cuStreamDestroy", 4000, &cuda.stream_destroy},
      {"cuStreamSynchronize", 2000, &cuda.stream_synchronize},
      {"cuStreamWaitEvent", 3020, &cuda.stream_wait},
      {"cuEventCreate", 2000, &cuda.event_create},
      {"cuEventDestroy", 4000, &cuda.event_destroy},
      {"cuEventRecord", 2000, &cuda.event_record},
      {"cuEventSynchronize", 2000, &cuda.event_synchronize},
      {"cuMemAlloc", 3020, &cuda.alloc},
      {"cuMemFree", 3020, &cuda.free},
      {"cuMemAllocHost", 3020, &cuda.alloc_host},
      {"cuMemFreeHost", 2000, &cuda.free_host},
      {"cuMemcpyHtoDAsync", 3020, &cuda.upload},
      {"cuMemcpyDtoHAsync", 3020, &cuda.download},
  };
  int (*find)(const char *, void **, int, uint64_t) = NULL;
  void *library = name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
  void *at = library ? dlsym(library, "cuGetProcAddress") : NULL;
  if (name && !at) fprintf(stderr, "streams: %s\n", dlerror());
  if (name && !at) return 0;
  memcpy(&find, &at, sizeof at);
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    if (!name) at = kiln_sim_resolve(NULL, wanted[i].symbol, wanted[i].version);
    if (name && find(wanted[i].symbol, &at, wanted[i].version, 0)) at = NULL;
    if (!at) fprintf(stderr, "streams: the driver has no %s\n", wanted[i].symbol);
    if (!at) return 0;
    memcpy(wanted[i].entry, &at, sizeof at);
  }
  return 1;
}

// --- places for requests
// ----------------------------------------------------------------------------------------------

typedef struct place {
  float *host;     // COUNT numbers to the device, COUNT from it; pinned, so that copies do not wait
  uint64_t device; // all of its buffers on the device are one block
  uint64_t x, mean, gate, y, scratch[KERNELS];
  void *stream, *beside; // of the pool, and not the place's alone
  void *arrived, *gated, *done;
  kiln_cuda_frozen *launches[KERNELS];
  int request; // under way; -1: none
} place;

typedef struct runtime {
  kiln_context *cx;
  kiln_driver *driver;
  void *context;
  kiln_artifact *artifacts[KERNELS];
  kiln_cuda_kernel *kernels[KERNELS];
  void *streams[STREAMS];
  int next_stream;
  place places[PLACES];
  int right, wrong; // requests
} runtime;

static int fine(runtime *r, kiln_status status) {
  for (size_t i = 0; i < kiln_diagnostics_count(r->cx); i++) fputs(kiln_diagnostics_get(r->cx, i)->text, stderr);
  kiln_diagnostics_clear(r->cx);
  return status == KILN_OK;
}

static void *stream_of_pool(runtime *r) {
  return r->streams[r->next_stream++ % STREAMS];
}

// Hands out the next bytes behind *end, aligned for any kernel and for scratch memory.
static uint64_t take(uint64_t *end, uint64_t bytes) {
  uint64_t at = *end;
  *end += (bytes + 255) / 256 * 256;
  return at;
}

// Lays the place's buffers out from `base` on; returns the address behind them.
static uint64_t lay_out(runtime *r, place *p, uint64_t base) {
  uint64_t end = base;
  p->x = take(&end, COUNT * sizeof(float));
  p->mean = take(&end, ROWS * sizeof(float));
  p->gate = take(&end, COUNT * sizeof(float));
  p->y = take(&end, COUNT * sizeof(float));
  // Kernels that may run at the same time need scratch memory each.
  for (int k = 0; k < KERNELS; k++) p->scratch[k] = take(&end, kiln_artifact_manifest(r->artifacts[k])->scratch_bytes);
  return end;
}

static int freeze(runtime *r, place *p) {
  const uint64_t parameters[KERNELS][3] = {{p->x}, {p->x}, {p->x, p->mean, p->gate}};
  const uint64_t results[KERNELS] = {p->mean, p->gate, p->y};
  for (int k = 0; k < KERNELS; k++) {
    kiln_cuda_launch_params launch = {
        .struct_size = sizeof launch, .parameters = parameters[k], .results = &results[k], .scratch = p->scratch[k]};
    if (!fine(r, kiln_cuda_kernel_fill_scratch(r->cx, r->kernels[k], p->stream, p->scratch[k])) ||
        !fine(r, kiln_cuda_frozen_create(r->cx, r->kernels[k], &launch, &p->launches[k])))
      return 0;
  }
  return CUDA(stream_synchronize(p->stream)); // scratch memory is ready for both streams
}

static int open_place(runtime *r, place *p) {
  p->request = -1;
  p->stream = stream_of_pool(r);
  p->beside = stream_of_pool(r);
  if (!CUDA(alloc(&p->device, lay_out(r, p, 0))) || !CUDA(alloc_host((void **)&p->host, 2 * COUNT * sizeof(float))))
    return 0;
  lay_out(r, p, p->device);
  return CUDA(event_create(&p->arrived, WITHOUT_TIME)) && CUDA(event_create(&p->gated, WITHOUT_TIME)) &&
         CUDA(event_create(&p->done, WITHOUT_TIME)) && freeze(r, p);
}

static void close_place(place *p) {
  for (int k = 0; k < KERNELS; k++) kiln_cuda_frozen_destroy(&p->launches[k]);
  if (p->arrived) CUDA(event_destroy(p->arrived));
  if (p->gated) CUDA(event_destroy(p->gated));
  if (p->done) CUDA(event_destroy(p->done));
  if (p->host) CUDA(free_host(p->host));
  if (p->device) CUDA(free(p->device));
}

// --- requests
// ---------------------------------------------------------------------------------------------------------

static float input(int request, int i) {
  return (float)((i * 7 + request * 13) % 61) / 16 - 1.5f;
}

// Nothing here waits: the host is ahead of the device.
static int begin(runtime *r, place *p, int request) {
  float *x = p->host, *y = p->host + COUNT;
  for (int i = 0; i < COUNT; i++) x[i] = input(request, i);
  p->request = request;
  return CUDA(upload(p->x, x, COUNT * sizeof *x, p->stream)) && CUDA(event_record(p->arrived, p->stream)) &&
         CUDA(stream_wait(p->beside, p->arrived, 0)) &&
         fine(r, kiln_cuda_frozen_launch(r->cx, p->launches[MEAN], p->stream)) &&
         fine(r, kiln_cuda_frozen_launch(r->cx, p->launches[GATE], p->beside)) &&
         CUDA(event_record(p->gated, p->beside)) && CUDA(stream_wait(p->stream, p->gated, 0)) &&
         fine(r, kiln_cuda_frozen_launch(r->cx, p->launches[JOIN], p->stream)) &&
         CUDA(download(y, p->y, COUNT * sizeof *y, p->stream)) && CUDA(event_record(p->done, p->stream));
}

// Waits for the request that has the place, if one has, and looks at its result.
static int end(runtime *r, place *p) {
  const float *y = p->host + COUNT;
  if (p->request < 0) return 1;
  if (!CUDA(event_synchronize(p->done))) return 0;
  double worst = 0;
  for (int row = 0; row < ROWS; row++) {
    double mean = 0;
    for (int i = 0; i < COLUMNS; i++) mean += (double)input(p->request, row * COLUMNS + i) / COLUMNS;
    for (int i = 0; i < COLUMNS; i++) {
      double x = (double)input(p->request, row * COLUMNS + i),
             error = y[row * COLUMNS + i] - (x - mean) / (1 + exp(-x));
      worst = error == error ? fmax(worst, fabs(error)) : INFINITY;
    }
  }
  if (worst < 1e-5)
    r->right++;
  else
    r->wrong++;
  p->request = -1;
  return 1;
}

static int serve(runtime *r) {
  for (int request = 0; request < REQUESTS; request++) {
    place *p = &r->places[request % PLACES];
    if (!end(r, p) || !begin(r, p, request)) return 0;
  }
  for (int i = 0; i < PLACES; i++)
    if (!end(r, &r->places[i])) return 0;
  return 1;
}

// --- the runtime
// ------------------------------------------------------------------------------------------------------

static int compile(runtime *r, int k, const kiln_device_info *device) {
  kiln_compile_params params = {.struct_size = sizeof params, .device = device};
  kiln_module *module = NULL;
  int good = fine(r, kiln_module_parse(r->cx, "streams", texts[k], strlen(texts[k]), &module)) &&
             fine(r, kiln_compile(r->cx, module, &params, &r->artifacts[k])) &&
             fine(r, kiln_cuda_kernel_create(r->cx, r->driver, r->artifacts[k], r->context, &r->kernels[k])) &&
             fine(r, kiln_cuda_kernel_prepare(r->cx, r->kernels[k]));
  kiln_module_destroy(&module);
  return good;
}

static int open_runtime(runtime *r, const char *library) {
  kiln_driver_params dp = {.struct_size = sizeof dp, .library = library, .resolve = library ? NULL : kiln_sim_resolve};
  kiln_device_info device = {.struct_size = sizeof device};
  int number;
  r->cx = kiln_context_create(NULL);
  if (!r->cx || !open_driver(library) || !CUDA(init(0)) || !CUDA(device_get(&number, 0)) ||
      !CUDA(context_create(&r->context, 0, number)) || !fine(r, kiln_driver_open(r->cx, &dp, &r->driver)) ||
      !fine(r, kiln_device_describe(r->cx, r->driver, 0, &device)))
    return 0;
  for (int k = 0; k < KERNELS; k++)
    if (!compile(r, k, &device)) return 0;
  for (int i = 0; i < STREAMS; i++)
    if (!CUDA(stream_create(&r->streams[i], NON_BLOCKING))) return 0;
  for (int i = 0; i < PLACES; i++)
    if (!open_place(r, &r->places[i])) return 0;
  return 1;
}

static void close_runtime(runtime *r) {
  for (int i = 0; i < STREAMS; i++)
    if (r->streams[i]) CUDA(stream_synchronize(r->streams[i]));
  for (int i = 0; i < PLACES; i++) close_place(&r->places[i]);
  for (int i = 0; i < STREAMS; i++)
    if (r->streams[i]) CUDA(stream_destroy(r->streams[i]));
  for (int k = 0; k < KERNELS; k++) kiln_cuda_kernel_destroy(&r->kernels[k]);
  for (int k = 0; k < KERNELS; k++) kiln_artifact_destroy(&r->artifacts[k]);
  kiln_driver_close(&r->driver);
  if (r->context) CUDA(context_destroy(r->context));
  kiln_context_destroy(&r->cx);
}

int main(int argc, char **argv) {
  runtime r = {0};
  int good = open_runtime(&r, argc > 1 ? argv[1] : NULL) && serve(&r);
  close_runtime(&r);
  printf("%d of %d requests are right: %d at a time, on %d streams\n", r.right, REQUESTS, PLACES, STREAMS);
  return good && r.right == REQUESTS ? 0 : 1;
}
