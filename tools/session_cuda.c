// Running on an NVIDIA GPU.

#include "session.h"

#include <stdlib.h>

bool session_open_cuda(session *s, bool quiet) {
  kiln_driver_params p = {.struct_size = sizeof p, .initialize = true};
  uint32_t count = 0;
  s->device.struct_size = sizeof s->device;
  kiln_status st = kiln_driver_open(s->cx, &p, &s->driver);
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

typedef struct buffers {
  uint64_t *params, *results, scratch;
} buffers;

static kiln_status allocate(session *s, kiln_device *dev, buffers *b) {
  kiln_status st = KILN_OK;
  b->params = calloc(s->nparams + 1, sizeof *b->params);
  b->results = calloc(s->nresults + 1, sizeof *b->results);
  if (!b->params || !b->results) return KILN_E_MEMORY;
  for (size_t i = 0; i < s->nparams && st == KILN_OK; i++) {
    uint64_t bytes = (uint64_t)kiln_module_param_bytes(s->m, i);
    st = kiln_device_alloc(s->cx, dev, bytes, &b->params[i]);
    if (st == KILN_OK) st = kiln_device_upload(s->cx, dev, b->params[i], s->params[i], bytes);
  }
  for (size_t i = 0; i < s->nresults && st == KILN_OK; i++)
    st = kiln_device_alloc(s->cx, dev, (uint64_t)kiln_module_result_bytes(s->m, i), &b->results[i]);
  uint64_t scratch = kiln_artifact_manifest(s->gpu)->scratch_bytes;
  return st == KILN_OK && scratch ? kiln_device_alloc(s->cx, dev, scratch, &b->scratch) : st;
}

static void release(const session *s, kiln_device *dev, buffers *b) {
  for (size_t i = 0; b->params && i < s->nparams; i++) kiln_device_free(dev, b->params[i]);
  for (size_t i = 0; b->results && i < s->nresults; i++) kiln_device_free(dev, b->results[i]);
  kiln_device_free(dev, b->scratch);
  free(b->params);
  free(b->results);
}

// The first run warms up; each of the others is timed by events around it.
static kiln_status launch(session *s, kiln_device *dev, kiln_cuda_kernel *k, const buffers *b) {
  kiln_cuda_launch_params p = {.struct_size = sizeof p,
                               .stream = kiln_device_stream(dev),
                               .parameters = b->params,
                               .results = b->results,
                               .scratch = b->scratch};
  double *times = calloc(s->repeat + 1, sizeof *times);
  kiln_status st = times ? KILN_OK : KILN_E_MEMORY;
  for (size_t i = 0; st == KILN_OK && i <= s->repeat; i++) {
    st = kiln_device_mark_begin(s->cx, dev);
    if (st == KILN_OK) st = kiln_cuda_kernel_launch(s->cx, k, &p);
    if (st == KILN_OK) st = kiln_device_mark_end(s->cx, dev);
    if (st == KILN_OK) st = kiln_device_elapsed(s->cx, dev, &times[i]);
  }
  if (st == KILN_OK) s->seconds = median(times + 1, s->repeat);
  free(times);
  return st;
}

static kiln_status download(session *s, kiln_device *dev, const buffers *b) {
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < s->nresults && st == KILN_OK; i++)
    st = kiln_device_download(s->cx, dev, s->results[i], b->results[i], (uint64_t)kiln_module_result_bytes(s->m, i));
  return st;
}

static kiln_status run_device(session *s, kiln_device *dev) {
  kiln_cuda_kernel *k = NULL;
  buffers b = {0};
  kiln_status st = allocate(s, dev, &b);
  if (st == KILN_OK) st = kiln_cuda_kernel_create(s->cx, s->driver, s->gpu, kiln_device_context(dev), &k);
  if (st == KILN_OK) st = kiln_cuda_kernel_prepare(s->cx, k);
  if (st == KILN_OK) st = launch(s, dev, k, &b);
  if (st == KILN_OK) st = download(s, dev, &b);
  kiln_cuda_kernel_destroy(&k);
  release(s, dev, &b);
  return st;
}

int session_run_cuda(session *s) {
  kiln_device *dev = NULL;
  progress("running");
  kiln_status st = kiln_device_open(s->cx, s->driver, 0, &dev);
  if (st == KILN_OK) st = run_device(s, dev);
  kiln_device_close(&dev);
  progress(NULL);
  return report(s->cx, st);
}
