// GPUs: drivers, kernels, devices; kernels as calls of XLA.
#include "misuse.h"

static void null_frozen(void) {
  uint64_t from = (uint64_t)(uintptr_t)in, to = (uint64_t)(uintptr_t)out;
  kiln_cuda_launch_params p = {.struct_size = sizeof p, .parameters = &from, .results = &to};
  kiln_cuda_frozen *f = NULL;
  NULLS(INVALID_CX, kiln_cuda_frozen *, kiln_cuda_frozen_create(NULL, on_gpu, &p, &o));
  NULLS(INVALID, kiln_cuda_frozen *, kiln_cuda_frozen_create(cx, NULL, &p, &o));
  NULLS(INVALID, kiln_cuda_frozen *, kiln_cuda_frozen_create(cx, on_gpu, NULL, &o));
  INVALID(kiln_cuda_frozen_create(cx, on_gpu, &p, NULL));
  ck_assert_int_eq(kiln_cuda_frozen_create(cx, on_gpu, &p, &f), KILN_OK);
  INVALID_CX(kiln_cuda_frozen_bind(NULL, f, &p));
  INVALID(kiln_cuda_frozen_bind(cx, NULL, &p));
  INVALID(kiln_cuda_frozen_bind(cx, f, NULL));
  INVALID_CX(kiln_cuda_frozen_launch(NULL, f, NULL));
  INVALID(kiln_cuda_frozen_launch(cx, NULL, NULL));
  kiln_cuda_frozen_destroy(&f);
  kiln_cuda_frozen_destroy(&f);
  kiln_cuda_frozen_destroy(NULL);
}

static void null_graphs(void) {
  uint64_t from = (uint64_t)(uintptr_t)in, to = (uint64_t)(uintptr_t)out;
  kiln_cuda_launch_params p = {.struct_size = sizeof p, .parameters = &from, .results = &to};
  kiln_cuda_graph *g = NULL;
  NULLS(INVALID_CX, kiln_cuda_graph *, kiln_cuda_graph_create(NULL, on_gpu, &p, &o));
  NULLS(INVALID, kiln_cuda_graph *, kiln_cuda_graph_create(cx, NULL, &p, &o));
  NULLS(INVALID, kiln_cuda_graph *, kiln_cuda_graph_create(cx, on_gpu, NULL, &o));
  INVALID(kiln_cuda_graph_create(cx, on_gpu, &p, NULL));
  ck_assert_int_eq(kiln_cuda_graph_create(cx, on_gpu, &p, &g), KILN_OK);
  INVALID_CX(kiln_cuda_graph_update(NULL, g, &p));
  INVALID(kiln_cuda_graph_update(cx, NULL, &p));
  INVALID(kiln_cuda_graph_update(cx, g, NULL));
  INVALID_CX(kiln_cuda_graph_launch(NULL, g, NULL));
  INVALID(kiln_cuda_graph_launch(cx, NULL, NULL));
  ck_assert_ptr_null(kiln_cuda_graph_handle(NULL));
  kiln_cuda_graph_destroy(&g);
  kiln_cuda_graph_destroy(&g);
  kiln_cuda_graph_destroy(NULL);
}

START_TEST(null_cuda) {
  kiln_device_info info = {.struct_size = sizeof info};
  kiln_cuda_resources r = {.struct_size = sizeof r};
  kiln_cuda_launch_params p = {.struct_size = sizeof p};
  void *context = kiln_device_context(device);
  uint64_t address;
  NULLS(INVALID_CX, kiln_driver *, kiln_driver_open(NULL, NULL, &o));
  INVALID(kiln_driver_open(cx, NULL, NULL));
  kiln_driver_close(NULL);
  ck_assert_int_eq(kiln_driver_version(NULL), 0);
  NULLS(INVALID_CX, uint32_t, kiln_device_count(NULL, driver, &o));
  NULLS(INVALID, uint32_t, kiln_device_count(cx, NULL, &o));
  INVALID(kiln_device_count(cx, driver, NULL));
  INVALID_CX(kiln_device_describe(NULL, driver, 0, &info));
  INVALID(kiln_device_describe(cx, NULL, 0, &info));
  INVALID(kiln_device_describe(cx, driver, 0, NULL));
  NULLS(INVALID_CX, kiln_cuda_kernel *, kiln_cuda_kernel_create(NULL, driver, gpu, context, &o));
  NULLS(INVALID, kiln_cuda_kernel *, kiln_cuda_kernel_create(cx, NULL, gpu, context, &o));
  NULLS(INVALID, kiln_cuda_kernel *, kiln_cuda_kernel_create(cx, driver, NULL, context, &o));
  INVALID(kiln_cuda_kernel_create(cx, driver, gpu, context, NULL));
  kiln_cuda_kernel_destroy(NULL);
  INVALID_CX(kiln_cuda_kernel_prepare(NULL, on_gpu));
  INVALID(kiln_cuda_kernel_prepare(cx, NULL));
  INVALID_CX(kiln_cuda_kernel_prepare_cubin(NULL, on_gpu, "x", 1));
  INVALID(kiln_cuda_kernel_prepare_cubin(cx, NULL, "x", 1));
  INVALID(kiln_cuda_kernel_prepare_cubin(cx, on_gpu, NULL, 1));
  INVALID_CX(kiln_cuda_kernel_prepare_cubins(NULL, on_gpu, &(kiln_cubin){"x", 1}, 1));
  INVALID(kiln_cuda_kernel_prepare_cubins(cx, NULL, &(kiln_cubin){"x", 1}, 1));
  INVALID(kiln_cuda_kernel_prepare_cubins(cx, on_gpu, NULL, 1));
  INVALID(kiln_cuda_kernel_prepare_cubins(cx, on_gpu, &(kiln_cubin){NULL, 64}, 1));
  ck_assert_int_eq(kiln_cubin_driver_version(NULL, 1), 0);
  size_t size;
  NULLS(INVALID_CX, void *, kiln_artifact_assemble(NULL, gpu, NULL, &o, &size));
  NULLS(INVALID, void *, kiln_artifact_assemble(cx, NULL, NULL, &o, &size));
  INVALID(kiln_artifact_assemble(cx, gpu, NULL, NULL, &size));
  NULLS(INVALID, void *, kiln_artifact_assemble(cx, gpu, NULL, &o, NULL));
  INVALID_CX(kiln_cuda_kernel_resources(NULL, on_gpu, 0, &r));
  INVALID(kiln_cuda_kernel_resources(cx, NULL, 0, &r));
  INVALID(kiln_cuda_kernel_resources(cx, on_gpu, 0, NULL));
  INVALID_CX(kiln_cuda_kernel_launch(NULL, on_gpu, &p));
  INVALID(kiln_cuda_kernel_launch(cx, NULL, &p));
  INVALID(kiln_cuda_kernel_launch(cx, on_gpu, NULL));
  kiln_diagnostics_clear(cx);
  ck_assert_int_eq(kiln_cuda_kernel_launch(cx, on_gpu, &p), KILN_E_INVALID);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
  INVALID_CX(kiln_cuda_kernel_fill_scratch(NULL, on_gpu, NULL, 0));
  INVALID(kiln_cuda_kernel_fill_scratch(cx, NULL, NULL, 0));
  null_frozen();
  null_graphs();
  NULLS(INVALID_CX, kiln_device *, kiln_device_open(NULL, driver, 0, &o));
  NULLS(INVALID, kiln_device *, kiln_device_open(cx, NULL, 0, &o));
  INVALID(kiln_device_open(cx, driver, 0, NULL));
  kiln_device_close(NULL);
  ck_assert(!kiln_device_context(NULL) && !kiln_device_stream(NULL));
  NULLS(INVALID_CX, uint64_t, kiln_device_alloc(NULL, device, 8, &o));
  NULLS(INVALID, uint64_t, kiln_device_alloc(cx, NULL, 8, &o));
  INVALID(kiln_device_alloc(cx, device, 8, NULL));
  ck_assert_int_eq(kiln_device_alloc(cx, device, 8, &address), KILN_OK);
  INVALID_CX(kiln_device_upload(NULL, device, address, in, 8));
  INVALID(kiln_device_upload(cx, NULL, address, in, 8));
  INVALID(kiln_device_upload(cx, device, address, NULL, 8));
  ck_assert_int_eq(kiln_device_upload(cx, device, address, NULL, 0), KILN_OK);
  INVALID_CX(kiln_device_download(NULL, device, out, address, 8));
  INVALID(kiln_device_download(cx, NULL, out, address, 8));
  INVALID(kiln_device_download(cx, device, NULL, address, 8));
  ck_assert_int_eq(kiln_device_download(cx, device, NULL, address, 0), KILN_OK);
  INVALID_CX(kiln_device_copy(NULL, device, address, address, 8));
  INVALID(kiln_device_copy(cx, NULL, address, address, 8));
  INVALID_CX(kiln_device_fill(NULL, device, address, 0, 8));
  INVALID(kiln_device_fill(cx, NULL, address, 0, 8));
  INVALID_CX(kiln_device_synchronize(NULL, device));
  INVALID(kiln_device_synchronize(cx, NULL));
  INVALID_CX(kiln_device_mark_begin(NULL, device));
  INVALID(kiln_device_mark_begin(cx, NULL));
  INVALID_CX(kiln_device_mark_end(NULL, device));
  INVALID(kiln_device_mark_end(cx, NULL));
  NULLS(INVALID_CX, double, kiln_device_elapsed(NULL, device, &o));
  NULLS(INVALID, double, kiln_device_elapsed(cx, NULL, &o));
  INVALID(kiln_device_elapsed(cx, device, NULL));
  kiln_device_free(NULL, address);
  kiln_device_free(device, address);
}
END_TEST

START_TEST(null_xla) {
  void *context = kiln_device_context(device);
  NULLS(INVALID_CX, kiln_xla_kernel *, kiln_xla_kernel_create(NULL, gpu, driver, context, &o));
  NULLS(INVALID, kiln_xla_kernel *, kiln_xla_kernel_create(cx, NULL, driver, context, &o));
  NULLS(INVALID, kiln_xla_kernel *, kiln_xla_kernel_create(cx, gpu, NULL, context, &o));
  NULLS(INVALID, kiln_xla_kernel *, kiln_xla_kernel_create(cx, gpu, driver, NULL, &o));
  INVALID(kiln_xla_kernel_create(cx, gpu, driver, context, NULL));
  kiln_xla_kernel_destroy(NULL);
  ck_assert(!kiln_xla_kernel_waits(NULL));
  ck_assert_ptr_null(kiln_xla_call(NULL));
  ck_assert_ptr_null(kiln_xla_call_waiting(NULL));
}
END_TEST

void misuse_devices(Suite *s) {
  ADD("devices", {null_cuda}, {null_xla});
}
