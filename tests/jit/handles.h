// One handle of every kind that code is reached by: artifacts for both machines, loaded on this one and on the stand-in
// for a GPU, and buffers to run them on.
#ifndef TESTS_HANDLES_H
#define TESTS_HANDLES_H

#include "support/context.h"
#include "support/standin.h"
#include <kiln/kiln.h>

static kiln_module *m;
static kiln_artifact *host, *gpu;
static kiln_kernel *on_host;
static kiln_driver *driver;
static kiln_device *device;
static kiln_cuda_kernel *on_gpu;
static float in[256] __attribute__((aligned(16))), out[256] __attribute__((aligned(16)));
static const void *const args[] = {in};
static void *const results[] = {out};

// Of the artifact. A process that was forked since needs its own.
static inline void open_gpu(void) {
  kiln_driver_params dp = {.struct_size = sizeof dp, .resolve = standin_resolve};
  EXPECT(kiln_driver_open(cx, &dp, &driver) == KILN_OK && kiln_device_open(cx, driver, 0, &device) == KILN_OK &&
             kiln_cuda_kernel_create(cx, driver, gpu, kiln_device_context(device), &on_gpu) == KILN_OK,
         "%s", last_finding());
}

// Of these modules in cx; m is the caller's to set.
static inline void open_handles(const kiln_module *for_host, const kiln_module *for_gpu) {
  kiln_compile_params hp = {.struct_size = sizeof hp, .target = "host"};
  standin_reset();
  EXPECT(kiln_compile(cx, for_host, &hp, &host) == KILN_OK && kiln_compile(cx, for_gpu, NULL, &gpu) == KILN_OK &&
             kiln_kernel_load(cx, host, &on_host) == KILN_OK,
         "%s", last_finding());
  open_gpu();
}

// And m.
static inline void close_handles(void) {
  kiln_cuda_kernel_destroy(&on_gpu);
  kiln_device_close(&device);
  kiln_driver_close(&driver);
  kiln_kernel_destroy(&on_host);
  kiln_artifact_destroy(&gpu);
  kiln_artifact_destroy(&host);
  kiln_module_destroy(&m);
}

#endif
