#include "gpu_cuda.h"

#include "bits.h"
#include "suite.h"
#include <stdio.h>

enum { MOST = 64 };

typedef struct buffer {
  const void *host; // the caller's
  uint64_t bytes, address;
} buffer;

struct gpu_cuda_run {
  kiln_context *cx;
  const kiln_manifest *m;
  int64_t count;
  buffer buffers[MOST];
  size_t n;
  uint64_t params[MOST], results[MOST], scratch;
};

// One for the whole program.
static struct {
  kiln_context *cx;
  kiln_driver *driver;
  kiln_device *device;
  kiln_device_info info;
  unsigned compared, others;
} gpu;

static void check(kiln_context *cx, kiln_status st, const char *what) {
  size_t n = kiln_diagnostics_count(cx);
  EXPECT(st == KILN_OK, "%s on the GPU: %s", what, n ? kiln_diagnostics_get(cx, n - 1)->text : "");
}

static void close_gpu(void) {
  fprintf(stderr, "# %u runs have the same bits on %s, %u others ran\n", gpu.compared, gpu.info.name, gpu.others);
  kiln_device_close(&gpu.device);
  kiln_driver_close(&gpu.driver);
  kiln_context_destroy(&gpu.cx);
}

static bool open_gpu(void) {
  kiln_driver_params p = {.struct_size = sizeof p, .library = getenv("KILN_TEST_CUDA"), .initialize = true};
  if (!p.library || gpu.device) return p.library;
  gpu.cx = kiln_context_create(NULL);
  gpu.info.struct_size = sizeof gpu.info;
  check(gpu.cx, kiln_driver_open(gpu.cx, &p, &gpu.driver), "a driver");
  check(gpu.cx, kiln_device_describe(gpu.cx, gpu.driver, 0, &gpu.info), "a device");
  check(gpu.cx, kiln_device_open(gpu.cx, gpu.driver, 0, &gpu.device), "a device");
  atexit(close_gpu);
  return true;
}

// PTX for an older GPU runs, that for one GPU alone (sm_90a) only there.
static bool is_for_it(const kiln_manifest *m) {
  char *end;
  unsigned long sm = strncmp(m->target, "sm_", 3) == 0 ? strtoul(m->target + 3, &end, 10) : 0;
  return sm && (*end ? sm == gpu.info.sm : sm <= gpu.info.sm);
}

static uint64_t bytes_of(const gpu_cuda_run *g, const kiln_slot *slot) {
  if (!slot->counted) return (uint64_t)slot->bytes;
  uint64_t n = (uint64_t)(g->count / g->m->count_unit * slot->row);
  return (n * kiln_dtype_bits(slot->type.dtype) + 7) / 8;
}

static uint64_t upload(gpu_cuda_run *g, const void *host, uint64_t bytes) {
  uint64_t address;
  for (size_t k = 0; k < g->n; k++)
    if (g->buffers[k].host == host && g->buffers[k].bytes == bytes) return g->buffers[k].address;
  ck_assert_uint_lt(g->n, MOST);
  check(g->cx, kiln_device_alloc(g->cx, gpu.device, bytes, &address), "memory");
  check(g->cx, kiln_device_upload(g->cx, gpu.device, address, host, bytes), "memory");
  g->buffers[g->n++] = (buffer){host, bytes, address};
  return address;
}

static uint64_t argument(gpu_cuda_run *g, const kiln_slot *slot, const void *host) {
  uint64_t v = 0;
  unsigned bits = kiln_dtype_bits(slot->type.dtype);
  if (!slot->by_value) return upload(g, host, bytes_of(g, slot));
  memcpy(&v, host, bits < 8 ? 1 : bits / 8);
  return v;
}

static void make_scratch(gpu_cuda_run *g) {
  const kiln_manifest *m = g->m;
  if (!m->scratch_bytes) return;
  char *first = calloc(m->scratch_bytes, 1);
  if (m->constant_bytes) memcpy(first + m->scratch_zero_bytes, m->constants, m->constant_bytes);
  g->scratch = upload(g, first, m->scratch_bytes);
  free(first);
  g->buffers[g->n - 1].host = NULL;
}

gpu_cuda_run *gpu_cuda_begin(kiln_context *cx, const kiln_artifact *a, const void *const *params, void *const *results,
                             int64_t count) {
  const kiln_manifest *m = kiln_artifact_manifest(a);
  kiln_cuda_kernel *k = NULL;
  if (!open_gpu() || !is_for_it(m)) return NULL;
  gpu_cuda_run *g = calloc(1, sizeof *g);
  *g = (gpu_cuda_run){.cx = cx, .m = m, .count = count};
  for (size_t i = 0; i < m->parameter_count + m->result_count; i++) {
    const kiln_slot *slot = &m->slots[i];
    const void *host = slot->result ? results[slot->index] : params[slot->index];
    (slot->result ? g->results : g->params)[slot->index] = argument(g, slot, host);
  }
  make_scratch(g);
  kiln_cuda_launch_params p = {.struct_size = sizeof p,
                               .stream = kiln_device_stream(gpu.device),
                               .parameters = g->params,
                               .results = g->results,
                               .scratch = g->scratch,
                               .count = count};
  check(cx, kiln_cuda_kernel_create(cx, gpu.driver, a, kiln_device_context(gpu.device), &k), "a kernel");
  check(cx, kiln_cuda_kernel_launch(cx, k, &p), "a launch");
  check(cx, kiln_device_synchronize(cx, gpu.device), "a run");
  kiln_cuda_kernel_destroy(&k);
  return g;
}

void gpu_cuda_end(gpu_cuda_run *g, void *const *results, bool same) {
  if (!g) return;
  for (size_t i = 0; i < g->m->result_count; i++) {
    const kiln_slot *slot = &g->m->slots[g->m->parameter_count + i];
    uint64_t bytes = bytes_of(g, slot);
    char *found = malloc(bytes + 1);
    check(g->cx, kiln_device_download(g->cx, gpu.device, found, g->results[slot->index], bytes), "results");
    EXPECT(!same || same_bits(slot->type.dtype, found, results[slot->index], bytes),
           "result %u of %s has other bits on %s than on the simulator", slot->index, g->m->module, gpu.info.name);
    free(found);
  }
  (same ? ++gpu.compared : ++gpu.others);
  for (size_t k = 0; k < g->n; k++) kiln_device_free(gpu.device, g->buffers[k].address);
  free(g);
}
