// kiln bench: right, and how fast, beside a plain copy of as many bytes.

#include "memory.h"
#include "session/session.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { O_LOCK = O_VERB, O_NO_CHECK };
static const option options[] = {
    SESSION_OPTIONS("GPU to compile for (default: the one here)", "auto, cuda or host", "20"),
    {"--lock", "FILE", "measure while no other kiln bench holds FILE: several may prepare and check at once"},
    {"--no-check", NULL, "only measure"},
    {0},
};

typedef struct figures {
  double seconds, low, high; // median, a fifth from either end
  double copy_seconds;       // device to device, as many bytes in and out
  double launch_seconds;     // of the host, per launch, without waiting
  bool checked;
  int64_t differing; // elements that differ from the host's results; -1: not compared
  kiln_cuda_resources resources;
} figures;

// --- a GPU ----------------------------------------------------------------------------------------------------------

typedef struct gpu {
  session *s;
  kiln_device *dev;
  kiln_cuda_kernel *k;
  device_buffers b;
  uint64_t flush, flush_bytes; // memory that pushes everything else out of the L2 cache when it is written
  double *times;
} gpu;

// Half of it is the source of copies, half their target.
static int64_t flush_bytes(const session *s) {
  int64_t cache = 4 * (int64_t)s->device.l2_bytes, all = memory_add(session_bytes(s), 512);
  return cache < all ? all : cache;
}

static kiln_status allocate(gpu *g) {
  session *s = g->s;
  kiln_status st = buffers_make(s, g->dev, &g->b);
  g->times = calloc(s->repeat + 1, sizeof *g->times);
  if (!g->times) return KILN_E_MEMORY;
  g->flush_bytes = (uint64_t)flush_bytes(s);
  return st == KILN_OK ? kiln_device_alloc(s->cx, g->dev, g->flush_bytes, &g->flush) : st;
}

static void release(gpu *g) {
  kiln_cuda_kernel_destroy(&g->k);
  buffers_free(g->s, g->dev, &g->b);
  if (g->dev) kiln_device_free(g->dev, g->flush);
  kiln_device_close(&g->dev);
  free(g->times);
}

static kiln_status launch(gpu *g) {
  return buffers_launch(g->s, g->dev, g->k, &g->b);
}

// As many bytes read and written as the module's own.
static kiln_status copy(gpu *g) {
  uint64_t half = (uint64_t)session_bytes(g->s) / 2 / 256 * 256;
  return kiln_device_copy(g->s->cx, g->dev, g->flush + g->flush_bytes / 512 * 256, g->flush, half);
}

// Runs with a cold cache; g->times holds them in order afterwards.
static kiln_status time_runs(gpu *g, kiln_status (*what)(gpu *)) {
  kiln_context *cx = g->s->cx;
  kiln_status st = what(g);
  for (size_t i = 0; i < g->s->repeat && st == KILN_OK; i++) {
    st = kiln_device_fill(cx, g->dev, g->flush, (uint8_t)i, g->flush_bytes);
    if (st == KILN_OK) st = kiln_device_mark_begin(cx, g->dev);
    if (st == KILN_OK) st = what(g);
    if (st == KILN_OK) st = kiln_device_mark_end(cx, g->dev);
    if (st == KILN_OK) st = kiln_device_elapsed(cx, g->dev, &g->times[i]);
  }
  if (st == KILN_OK) median(g->times, g->s->repeat);
  return st;
}

static kiln_status time_launches(gpu *g, double *seconds) {
  enum { LAUNCHES = 200 };
  kiln_status st = kiln_device_synchronize(g->s->cx, g->dev);
  double start = now_seconds();
  for (int i = 0; i < LAUNCHES && st == KILN_OK; i++) st = launch(g);
  *seconds = (now_seconds() - start) / LAUNCHES;
  return st == KILN_OK ? kiln_device_synchronize(g->s->cx, g->dev) : st;
}

// The lock goes with its file's descriptor, also when the process ends. *file: -1 if none is asked for.
static int lock(const session *s, int *file) {
  const char *path = s->a->values[O_LOCK];
  int held = -1;
  *file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
  if (*file >= 0) do {
      held = flock(*file, LOCK_EX);
    } while (held && errno == EINTR);
  if (!path || !held) return 0;
  fprintf(stderr, "kiln: %s: cannot be locked: %s\n", path, strerror(errno));
  return EXIT_BAD_INPUT;
}
static void unlock(int file) {
  if (file >= 0) close(file);
}

// All is loaded and uploaded.
static kiln_status time_gpu(gpu *g, figures *f) {
  session *s = g->s;
  kiln_status st = time_runs(g, copy);
  if (st == KILN_OK) f->copy_seconds = g->times[s->repeat / 2];
  if (st == KILN_OK) st = time_runs(g, launch);
  if (st == KILN_OK) {
    f->seconds = g->times[s->repeat / 2];
    f->low = g->times[s->repeat / 5];
    f->high = g->times[s->repeat - 1 - s->repeat / 5];
  }
  return st == KILN_OK ? time_launches(g, &f->launch_seconds) : st;
}

// *status: that of the lock.
static kiln_status measure_gpu(gpu *g, figures *f, int *status) {
  session *s = g->s;
  kiln_status st = kiln_device_open(s->cx, s->driver, 0, &g->dev);
  if (st == KILN_OK) st = allocate(g);
  if (st == KILN_OK) st = kiln_cuda_kernel_create(s->cx, s->driver, s->gpu, kiln_device_context(g->dev), &g->k);
  if (st == KILN_OK) st = session_prepare(s, g->k);
  if (st == KILN_OK && kiln_artifact_manifest(s->gpu)->launch_count)
    st = kiln_cuda_kernel_resources(s->cx, g->k, 0, &f->resources);
  if (st != KILN_OK) return st;
  int file;
  *status = lock(s, &file);
  if (!*status) st = time_gpu(g, f);
  unlock(file);
  if (*status || !f->checked) return st;
  if (st == KILN_OK) st = buffers_refill(s, g->dev, &g->b);
  if (st == KILN_OK) st = launch(g);
  if (st == KILN_OK) st = kiln_device_synchronize(s->cx, g->dev);
  return st == KILN_OK ? buffers_download(s, g->dev, &g->b) : st;
}

// --- bit for bit ----------------------------------------------------------------------------------------------------

// Bits of the mantissa and of a whole element (a part of a complex one), for formats whose NaN is any pattern above
// infinity's; else the one pattern of NaN, but for its sign where `either`.
typedef struct nan_form {
  kiln_dtype t;
  int bits, mantissa;
  uint64_t only;
  bool either;
} nan_form;

static bool is_nan(const nan_form *f, const uint8_t *p) {
  uint64_t v = 0;
  memcpy(&v, p, (size_t)f->bits / 8);
  uint64_t magnitude = v & ~(1ull << (f->bits - 1));
  if (!f->mantissa) return (f->either ? magnitude : v) == f->only;
  uint64_t infinity = ((1ull << (f->bits - 1)) - 1) >> f->mantissa << f->mantissa;
  return magnitude > infinity;
}

static const nan_form *form_of(kiln_dtype t) {
  static const nan_form forms[] = {
      {KILN_F16, 16, 10, 0, false},
      {KILN_BF16, 16, 7, 0, false},
      {KILN_F32, 32, 23, 0, false},
      {KILN_C64, 32, 23, 0, false},
      {KILN_F64, 64, 52, 0, false},
      {KILN_C128, 64, 52, 0, false},
      {KILN_F8E5M2, 8, 2, 0, false},
      {KILN_F8E4M3, 8, 3, 0, false},
      {KILN_F8E3M4, 8, 4, 0, false},
      {KILN_F8E4M3FN, 8, 0, 0x7f, true},
      {KILN_F8E4M3FNUZ, 8, 0, 0x80, false},
      {KILN_F8E5M2FNUZ, 8, 0, 0x80, false},
      {KILN_F8E4M3B11FNUZ, 8, 0, 0x80, false},
      {KILN_F8E8M0FNU, 8, 0, 0xff, false},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (forms[i].t == t) return &forms[i];
  return NULL;
}

// Elements (parts of complex ones, bytes of types that have no NaN) that differ; NaN is NaN.
static int64_t differing(const session *s, void *const *other) {
  int64_t n = 0;
  for (size_t i = 0; i < s->nresults; i++) {
    kiln_array_type t;
    const nan_form *f = kiln_module_result_leaf_type(s->m, i, &t) ? form_of(t.dtype) : NULL;
    int64_t size = f ? f->bits / 8 : 1;
    for (int64_t k = 0; k < kiln_module_result_leaf_bytes(s->m, i); k += size) {
      const uint8_t *a = (const uint8_t *)s->results[i] + k, *b = (const uint8_t *)other[i] + k;
      n += memcmp(a, b, (size_t)size) != 0 && !(f && is_nan(f, a) && is_nan(f, b));
    }
  }
  return n;
}

// Elementwise fusions promise the same bits on every device, NaN's payloads aside.
static int compare_with_host(session *s, figures *f) {
  void **gpu = calloc(s->nresults + 1, sizeof *gpu);
  int status = gpu ? 0 : out_of_memory((int64_t)s->nresults);
  for (size_t i = 0; !status && i < s->nresults; i++) {
    size_t bytes = (size_t)kiln_module_result_leaf_bytes(s->m, i);
    if (!(gpu[i] = malloc(bytes + 1))) status = out_of_memory((int64_t)bytes);
    if (!status) memcpy(gpu[i], s->results[i], bytes);
  }
  kiln_compile_params p = s->how;
  p.target = "host";
  p.fusion = NULL;
  if (!status) status = report(s->cx, kiln_compile(s->cx, s->m, &p, &s->host));
  unsigned long long repeat = s->repeat;
  double seconds = s->seconds;
  s->repeat = 1;
  if (!status) status = session_run_host(s);
  if (!status) f->differing = differing(s, gpu);
  for (size_t i = 0; !status && i < s->nresults; i++)
    memcpy(s->results[i], gpu[i], (size_t)kiln_module_result_leaf_bytes(s->m, i));
  s->repeat = repeat;
  s->seconds = seconds;
  for (size_t i = 0; gpu && i < s->nresults; i++) free(gpu[i]);
  free(gpu);
  return status;
}

// --- the verb -------------------------------------------------------------------------------------------------------

static double gb_per_s(const session *s, double seconds) {
  return seconds > 0 ? (double)session_bytes(s) / seconds * 1e-9 : 0;
}

static const char *device_name(const session *s) {
  return s->machine == ON_CUDA ? s->device.name : "host";
}

static void report_text(const session *s, const figures *f) {
  printf("%s on %s: %s", kiln_module_name(s->m), device_name(s),
         !f->checked     ? "not checked"
         : s->mismatches ? "WRONG"
                         : "right");
  if (f->differing >= 0) printf(", %lld elements differ from the host's", (long long)f->differing);
  printf("\n%.3f us, %.0f GB/s of %lld bytes", f->seconds * 1e6, gb_per_s(s, f->seconds), (long long)session_bytes(s));
  if (f->copy_seconds > 0)
    printf("; a copy of as many: %.3f us, %.0f GB/s (%.0f %%)", f->copy_seconds * 1e6, gb_per_s(s, f->copy_seconds),
           100 * f->copy_seconds / f->seconds);
  if (s->machine == ON_CUDA)
    printf("\n%u registers, %u bytes of local memory; %.2f us a launch on the CPU", f->resources.registers,
           f->resources.local_bytes, f->launch_seconds * 1e6);
  printf("\ncompiled in %.2f ms\n", s->compile_ms);
  for (size_t i = 0; i < s->mismatches && i < 16; i++)
    printf("result %zu, element %lld: found %s, expected %s\n", s->mismatch[i].result,
           (long long)s->mismatch[i].element, s->mismatch[i].found, s->mismatch[i].expected);
}

static void report_json(const session *s, const figures *f) {
  printf("{\"module\": ");
  json_string(stdout, kiln_module_name(s->m));
  printf(", \"device\": ");
  json_string(stdout, device_name(s));
  printf(", \"right\": %s, \"bytes\": %lld, \"us\": %.4f, \"us_p20\": %.4f, \"us_p80\": %.4f, \"gb_per_s\": %.2f, "
         "\"compile_ms\": %.3f",
         !f->checked     ? "null"
         : s->mismatches ? "false"
                         : "true",
         (long long)session_bytes(s), f->seconds * 1e6, f->low * 1e6, f->high * 1e6, gb_per_s(s, f->seconds),
         s->compile_ms);
  if (s->machine == ON_CUDA)
    printf(", \"copy_us\": %.4f, \"copy_gb_per_s\": %.2f, \"launch_us\": %.4f, \"registers\": %u, \"local_bytes\": %u, "
           "\"unlike_host\": %lld",
           f->copy_seconds * 1e6, gb_per_s(s, f->copy_seconds), f->launch_seconds * 1e6, f->resources.registers,
           f->resources.local_bytes, (long long)f->differing);
  printf("}\n");
}

static int run_on_gpu(session *s, figures *f) {
  gpu g = {.s = s};
  progress("running");
  int status = 0, failed = report(s->cx, measure_gpu(&g, f, &status));
  release(&g);
  progress(NULL);
  return status ? status : failed;
}

static int run_on_host(session *s, figures *f) {
  int file, status = lock(s, &file);
  if (!status) status = session_run_host(s);
  unlock(file);
  f->seconds = f->low = f->high = s->seconds;
  return status;
}

static int measure(session *s, figures *f) {
  bool gpu = s->machine == ON_CUDA;
  int status = (gpu ? run_on_gpu : run_on_host)(s, f);
  if (gpu && !status && f->checked) status = compare_with_host(s, f);
  return status || !f->checked ? status : session_check(s);
}

static int work(session *s) {
  figures f = {.checked = !s->a->values[O_NO_CHECK], .differing = -1, .resources.struct_size = sizeof f.resources};
  int status = measure(s, &f);
  if (status) return status;
  if (s->a->values[O_JSON])
    report_json(s, &f);
  else
    report_text(s, &f);
  return s->mismatches ? EXIT_DIFFERS : EXIT_DONE;
}

// The GPU's results beside the host's.
static int64_t results_again(const session *s) {
  int64_t n = 0;
  for (size_t i = 0; s->machine == ON_CUDA && i < s->nresults; i++)
    n = memory_add(n, kiln_module_result_leaf_bytes(s->m, i));
  return n;
}

static int run(const args *a) {
  static const session_rules rules = {.repeat = 20, .work = work, .beside = results_again, .on_gpu = flush_bytes};
  return session_verb(a, &rules);
}

const verb verb_bench = {"bench",
                         "bench FILE.hlo [OPTION]...",
                         "check, and measure beside a plain copy",
                         "Checks a module against the evaluator and measures it. On a GPU every run begins with a cold "
                         "L2 cache, and a copy\nof as many bytes is measured in the same run.",
                         options,
                         run,
                         true};
