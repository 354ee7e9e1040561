// Running on an NVIDIA GPU, or on the simulator of one: the driver's table makes the difference.

#include "session/session.h"

#include <stdlib.h>
#include <string.h>

// As many threads as --threads says; one run, unless --repeat says more, as its time is the simulator's.
static kiln_status prepare_simulator(session *s) {
  kiln_sim_params p = {.struct_size = sizeof p, .workers = s->how.threads};
  if (!s->a->values[O_REPEAT]) s->repeat = 1;
  return kiln_sim_configure(s->cx, &p);
}

bool session_open_gpu(session *s, bool quiet) {
  bool simulated = s->machine == ON_SIM;
  kiln_driver_params p = {.struct_size = sizeof p, .initialize = true, .resolve = simulated ? kiln_sim_resolve : NULL};
  uint32_t count = 0;
  s->device.struct_size = sizeof s->device;
  kiln_status st = simulated ? prepare_simulator(s) : KILN_OK;
  if (st == KILN_OK) st = kiln_driver_open(s->cx, &p, &s->driver);
  if (st == KILN_OK) st = kiln_device_count(s->cx, s->driver, &count);
  if (st == KILN_OK && count == 0) {
    if (!quiet) fprintf(stderr, "kiln: --device cuda: the driver sees no GPU\n");
    return false;
  }
  if (st == KILN_OK) st = kiln_device_describe(s->cx, s->driver, 0, &s->device);
  if (st != KILN_OK && quiet) kiln_diagnostics_clear(s->cx);
  if (st != KILN_OK && !quiet) report(s->cx, st);
  return st == KILN_OK;
}

// --- buffers --------------------------------------------------------------------------------------------------------

// What a launch is given for parameter i: its address, or its value.
static uint64_t argument(const session *s, const device_buffers *b, size_t i) {
  const kiln_slot *slot = &kiln_artifact_manifest(s->gpu)->slots[i];
  uint64_t value = 0;
  unsigned bits = kiln_dtype_bits(slot->type.dtype);
  if (!slot->by_value) return b->params[i];
  memcpy(&value, s->params[i], bits < 8 ? 1 : bits / 8);
  return value;
}

kiln_status buffers_refill(session *s, kiln_device *dev, device_buffers *b) {
  const kiln_manifest *m = kiln_artifact_manifest(s->gpu);
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < s->nparams && st == KILN_OK; i++) {
    if (!m->slots[i].donated) continue;
    b->arguments[i] = b->results[m->slots[m->slots[i].alias].index];
    st = kiln_device_upload(s->cx, dev, b->arguments[i], s->params[i],
                            (uint64_t)kiln_module_parameter_leaf_bytes(s->m, i));
  }
  return st;
}

kiln_status buffers_make(session *s, kiln_device *dev, device_buffers *b) {
  kiln_status st = KILN_OK;
  b->params = calloc(s->nparams + 1, sizeof *b->params);
  b->arguments = calloc(s->nparams + 1, sizeof *b->arguments);
  b->results = calloc(s->nresults + 1, sizeof *b->results);
  if (!b->params || !b->arguments || !b->results) return KILN_E_MEMORY;
  for (size_t i = 0; i < s->nparams && st == KILN_OK; i++) {
    uint64_t bytes = (uint64_t)kiln_module_parameter_leaf_bytes(s->m, i);
    st = kiln_device_alloc(s->cx, dev, bytes, &b->params[i]);
    if (st == KILN_OK) st = kiln_device_upload(s->cx, dev, b->params[i], s->params[i], bytes);
    b->arguments[i] = argument(s, b, i);
  }
  for (size_t i = 0; i < s->nresults && st == KILN_OK; i++)
    st = kiln_device_alloc(s->cx, dev, (uint64_t)kiln_module_result_leaf_bytes(s->m, i), &b->results[i]);
  if (st == KILN_OK) st = buffers_refill(s, dev, b);
  uint64_t scratch = kiln_artifact_manifest(s->gpu)->scratch_bytes;
  uint64_t zero = kiln_artifact_manifest(s->gpu)->scratch_zero_bytes;
  uint64_t constants = kiln_artifact_manifest(s->gpu)->constant_bytes;
  if (st == KILN_OK && scratch) st = kiln_device_alloc(s->cx, dev, scratch, &b->scratch);
  void *zeros = zero ? calloc(zero, 1) : NULL;
  if (st == KILN_OK && zero) st = zeros ? kiln_device_upload(s->cx, dev, b->scratch, zeros, zero) : KILN_E_MEMORY;
  free(zeros);
  if (st == KILN_OK && constants)
    st = kiln_device_upload(s->cx, dev, b->scratch + zero, kiln_artifact_manifest(s->gpu)->constants, constants);
  return st;
}

void buffers_free(const session *s, kiln_device *dev, device_buffers *b) {
  for (size_t i = 0; dev && b->params && i < s->nparams; i++) kiln_device_free(dev, b->params[i]);
  for (size_t i = 0; dev && b->results && i < s->nresults; i++) kiln_device_free(dev, b->results[i]);
  if (dev) kiln_device_free(dev, b->scratch);
  free(b->params);
  free(b->arguments);
  free(b->results);
}

kiln_status buffers_launch(session *s, kiln_device *dev, kiln_cuda_kernel *k, const device_buffers *b) {
  kiln_cuda_launch_params p = {.struct_size = sizeof p,
                               .stream = kiln_device_stream(dev),
                               .parameters = b->arguments,
                               .results = b->results,
                               .scratch = b->scratch,
                               .count = s->count,
                               .launched = s->by_launch ? session_launched : NULL,
                               .user = s};
  if (s->by_launch) session_begin_launches(s);
  return kiln_cuda_kernel_launch(s->cx, k, &p);
}

kiln_status buffers_download(session *s, kiln_device *dev, const device_buffers *b) {
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < s->nresults && st == KILN_OK; i++)
    st = kiln_device_download(s->cx, dev, s->results[i], b->results[i],
                              (uint64_t)kiln_module_result_leaf_bytes(s->m, i));
  return st;
}

// --- running --------------------------------------------------------------------------------------------------------

// The first run warms up; each of the others is timed by events around it.
static kiln_status time_launches(session *s, kiln_device *dev, kiln_cuda_kernel *k, device_buffers *b) {
  double *times = calloc(s->repeat + 1, sizeof *times);
  kiln_status st = times ? KILN_OK : KILN_E_MEMORY;
  for (size_t i = 0; st == KILN_OK && i <= s->repeat; i++) {
    st = buffers_refill(s, dev, b);
    if (st == KILN_OK) st = kiln_device_mark_begin(s->cx, dev);
    if (st == KILN_OK) st = buffers_launch(s, dev, k, b);
    if (st == KILN_OK) st = kiln_device_mark_end(s->cx, dev);
    if (st == KILN_OK) st = kiln_device_elapsed(s->cx, dev, &times[i]);
  }
  if (st == KILN_OK) s->seconds = median(times + 1, s->repeat);
  free(times);
  return st;
}

kiln_status session_prepare(session *s, kiln_cuda_kernel *k) {
  if (s->ncubins) return kiln_cuda_kernel_prepare_cubins(s->cx, k, s->cubins, s->ncubins);
  return s->cache ? kiln_cache_prepare(s->cx, s->cache, k) : kiln_cuda_kernel_prepare(s->cx, k);
}

static kiln_status run_device(session *s, kiln_device *dev) {
  kiln_cuda_kernel *k = NULL;
  device_buffers b = {0};
  kiln_status st = buffers_make(s, dev, &b);
  if (st == KILN_OK) st = kiln_cuda_kernel_create(s->cx, s->driver, s->gpu, kiln_device_context(dev), &k);
  if (st == KILN_OK) st = session_prepare(s, k);
  if (st == KILN_OK) st = time_launches(s, dev, k, &b);
  if (st == KILN_OK) st = buffers_download(s, dev, &b);
  kiln_cuda_kernel_destroy(&k);
  buffers_free(s, dev, &b);
  return st;
}

int session_run_gpu(session *s) {
  kiln_device *dev = NULL;
  progress("running");
  kiln_status st = kiln_device_open(s->cx, s->driver, 0, &dev);
  if (st == KILN_OK) st = run_device(s, dev);
  kiln_device_close(&dev);
  progress(NULL);
  return report(s->cx, st);
}
