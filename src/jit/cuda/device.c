// A device with its primary context and one stream, for programs without a runtime of their own.

#include "jit/cuda/cuda.h"

struct kiln_device {
  kl_ctx *cx; // its own
  const kiln_driver *d;
  CUdevice handle;
  CUcontext context;
  kl_cuda_fate fate;
  CUstream stream;
  CUevent begin, end;
};

// Runs `body` with the device's context current.
#define IN_CONTEXT(cx, dev, body)                                                                                      \
  do {                                                                                                                 \
    kl_cuda_scope scope;                                                                                               \
    KL_TRY(kl_cuda_enter((cx), (dev)->d, &(dev)->fate, (dev)->context, &scope));                                       \
    kiln_status st = (body);                                                                                           \
    return kl_cuda_leave((cx), (dev)->d, &(dev)->fate, &scope, st);                                                    \
  } while (0)

// One call of the driver, as a status.
#define CALL(cx, dev, name, ...)                                                                                       \
  ({                                                                                                                   \
    CUresult code = (dev)->d->fn.name(__VA_ARGS__);                                                                    \
    code == CUDA_SUCCESS ? KILN_OK : kl_cuda_failed((cx), (dev)->d, &(dev)->fate, #name, code, NULL);                  \
  })

static kiln_status make_handles(kl_ctx *cx, kiln_device *dev) {
  KL_TRY(CALL(cx, dev, cuStreamCreate, &dev->stream, CU_STREAM_NON_BLOCKING));
  KL_TRY(CALL(cx, dev, cuEventCreate, &dev->begin, 0));
  return CALL(cx, dev, cuEventCreate, &dev->end, 0);
}

static kiln_status open_context(kl_ctx *cx, kiln_device *dev, uint32_t device) {
  KL_TRY(kl_cuda_usable(cx, dev->d));
  KL_TRY(CALL(cx, dev, cuDeviceGet, &dev->handle, (int)device));
  KL_TRY(CALL(cx, dev, cuDevicePrimaryCtxRetain, &dev->context, dev->handle));
  IN_CONTEXT(cx, dev, make_handles(cx, dev));
}

kiln_status kiln_device_open(kiln_context *cx, const kiln_driver *d, uint32_t device, kiln_device **out) {
  KL_CLEAR(out);
  KL_EXPECT(cx, d, out);
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *dcx = kiln_context_create(&own);
  if (!dcx) return kl_out_of_memory(cx, sizeof *dcx, "a device");
  kiln_device *dev = kl_alloc(dcx, sizeof *dev);
  *dev = (kiln_device){.cx = dcx, .d = d};
  kiln_status st = open_context(cx, dev, device);
  if (st == KILN_OK)
    *out = dev;
  else
    kiln_device_close(&dev);
  return st;
}

void kiln_device_close(kiln_device **devp) {
  if (!devp || !*devp) return;
  kiln_device *dev = *devp;
  const kl_cuda_table *fn = &dev->d->fn;
  kl_ctx *cx = dev->cx;
  CUcontext popped;
  if (dev->context && !kl_cuda_is_forked(dev->d)) { // else it is the parent's
    bool pushed = fn->cuCtxPushCurrent(dev->context) == CUDA_SUCCESS;
    if (dev->end) fn->cuEventDestroy(dev->end);
    if (dev->begin) fn->cuEventDestroy(dev->begin);
    if (dev->stream) fn->cuStreamDestroy(dev->stream);
    if (pushed) fn->cuCtxPopCurrent(&popped);
    fn->cuDevicePrimaryCtxRelease(dev->handle);
  }
  kl_free(cx, dev, sizeof *dev);
  kiln_context_destroy(&cx);
  *devp = NULL;
}

void *kiln_device_context(const kiln_device *dev) {
  return dev ? dev->context : NULL;
}

void *kiln_device_stream(const kiln_device *dev) {
  return dev ? dev->stream : NULL;
}

kiln_status kiln_device_alloc(kiln_context *cx, kiln_device *dev, uint64_t bytes, uint64_t *address) {
  CUdeviceptr p = 0;
  KL_CLEAR(address);
  KL_EXPECT(cx, dev, address);
  kl_cuda_scope scope;
  KL_TRY(kl_cuda_enter(cx, dev->d, &dev->fate, dev->context, &scope));
  kiln_status st = CALL(cx, dev, cuMemAlloc, &p, bytes ? bytes : 1);
  bool made = st == KILN_OK;
  st = kl_cuda_leave(cx, dev->d, &dev->fate, &scope, st);
  if (st == KILN_OK) *address = p;
  if (made && st != KILN_OK) kiln_device_free(dev, p);
  return st;
}

void kiln_device_free(kiln_device *dev, uint64_t address) {
  CUcontext popped;
  if (!dev || !address || kl_cuda_is_forked(dev->d)) return;
  bool pushed = dev->d->fn.cuCtxPushCurrent(dev->context) == CUDA_SUCCESS;
  dev->d->fn.cuMemFree(address);
  if (pushed) dev->d->fn.cuCtxPopCurrent(&popped);
}

static kiln_status upload(kl_ctx *cx, kiln_device *dev, uint64_t to, const void *from, uint64_t bytes) {
  KL_TRY(CALL(cx, dev, cuMemcpyHtoDAsync, to, from, bytes, dev->stream));
  return CALL(cx, dev, cuStreamSynchronize, dev->stream);
}

kiln_status kiln_device_upload(kiln_context *cx, kiln_device *dev, uint64_t to, const void *from, uint64_t bytes) {
  KL_EXPECT(cx, dev);
  if (bytes == 0) return KILN_OK;
  KL_EXPECT(cx, from);
  IN_CONTEXT(cx, dev, upload(cx, dev, to, from, bytes));
}

static kiln_status download(kl_ctx *cx, kiln_device *dev, void *to, uint64_t from, uint64_t bytes) {
  KL_TRY(CALL(cx, dev, cuMemcpyDtoHAsync, to, from, bytes, dev->stream));
  return CALL(cx, dev, cuStreamSynchronize, dev->stream);
}

kiln_status kiln_device_download(kiln_context *cx, kiln_device *dev, void *to, uint64_t from, uint64_t bytes) {
  KL_EXPECT(cx, dev);
  if (bytes == 0) return KILN_OK;
  KL_EXPECT(cx, to);
  IN_CONTEXT(cx, dev, download(cx, dev, to, from, bytes));
}

kiln_status kiln_device_copy(kiln_context *cx, kiln_device *dev, uint64_t to, uint64_t from, uint64_t bytes) {
  KL_EXPECT(cx, dev);
  if (bytes == 0) return KILN_OK;
  IN_CONTEXT(cx, dev, CALL(cx, dev, cuMemcpyDtoDAsync, to, from, bytes, dev->stream));
}

kiln_status kiln_device_fill(kiln_context *cx, kiln_device *dev, uint64_t to, uint8_t value, uint64_t bytes) {
  KL_EXPECT(cx, dev);
  if (bytes == 0) return KILN_OK;
  IN_CONTEXT(cx, dev, CALL(cx, dev, cuMemsetD8Async, to, value, bytes, dev->stream));
}

kiln_status kiln_device_synchronize(kiln_context *cx, kiln_device *dev) {
  KL_EXPECT(cx, dev);
  IN_CONTEXT(cx, dev, CALL(cx, dev, cuStreamSynchronize, dev->stream));
}

kiln_status kiln_device_mark_begin(kiln_context *cx, kiln_device *dev) {
  KL_EXPECT(cx, dev);
  IN_CONTEXT(cx, dev, CALL(cx, dev, cuEventRecord, dev->begin, dev->stream));
}

kiln_status kiln_device_mark_end(kiln_context *cx, kiln_device *dev) {
  KL_EXPECT(cx, dev);
  IN_CONTEXT(cx, dev, CALL(cx, dev, cuEventRecord, dev->end, dev->stream));
}

static kiln_status elapsed(kl_ctx *cx, kiln_device *dev, double *seconds) {
  float ms = 0;
  KL_TRY(CALL(cx, dev, cuEventSynchronize, dev->end));
  KL_TRY(CALL(cx, dev, cuEventElapsedTime, &ms, dev->begin, dev->end));
  *seconds = ms * 1e-3;
  return KILN_OK;
}

kiln_status kiln_device_elapsed(kiln_context *cx, kiln_device *dev, double *seconds) {
  KL_CLEAR(seconds);
  KL_EXPECT(cx, dev, seconds);
  IN_CONTEXT(cx, dev, elapsed(cx, dev, seconds));
}
