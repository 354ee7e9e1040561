// The driver's entry points on the simulator: what each needs before it does anything, devices, contexts, errors.
#include "cu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- every entry point, with zeros for arguments
// ----------------------------------------------------------------------

typedef enum need { NOTHING, INIT, CONTEXT, UNCAPTURED } need;
typedef CUresult zeros_fn(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);

typedef struct call {
  const char *symbol;
  need need;
  void *fn;
} call;
enum {
#define X(name, symbol, since, need, stream, params, args) AT_##symbol,
  KL_SIM_CALLS(X)
#undef X
      CALLS
};
static call calls[CALLS];

static void open_all(void) {
  cu_open();
#define X(name, symbol, since, need, stream, params, args)                                                             \
  calls[AT_##symbol] = (call){#symbol, need, (void *)cu.symbol};
  KL_SIM_CALLS(X)
#undef X
}

static CUresult with_zeros(const call *c) {
  return ((zeros_fn *)c->fn)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

START_TEST(nothing_works_before_init) {
  open_all();
  for (int i = 0; i < CALLS; i++) {
    if (calls[i].need == NOTHING) continue;
    CUresult code = with_zeros(&calls[i]);
    ck_assert_msg(code == CUDA_ERROR_NOT_INITIALIZED, "%s: %d", calls[i].symbol, code);
  }
}
END_TEST

START_TEST(what_needs_a_context_says_so) {
  open_all();
  WORKS(cu.cuInit(0));
  for (int i = 0; i < CALLS; i++) {
    CUresult code = with_zeros(&calls[i]);
    if (calls[i].need < CONTEXT)
      ck_assert_msg(code != CUDA_ERROR_NOT_INITIALIZED, "%s: %d", calls[i].symbol, code);
    else
      ck_assert_msg(code == CUDA_ERROR_INVALID_CONTEXT, "%s: %d", calls[i].symbol, code);
  }
}
END_TEST

// What may be called with zeros: they free nothing, are stream 0, or set the default.
static const char *const harmless[] = {
    "cuInit",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxReset_v2",
    "cuDevicePrimaryCtxSetFlags_v2",
    "cuCtxSetCurrent",
    "cuCtxPopCurrent_v2",
    "cuCtxSynchronize",
    "cuCtxSynchronize_v2",
    "cuProfilerStart",
    "cuProfilerStop",
    "cuCtxSetFlags",
    "cuCtxSetLimit",
    "cuCtxSetCacheConfig",
    "cuCtxSetSharedMemConfig",
    "cuCtxGetStreamPriorityRange",
    "cuCtxResetPersistingL2Cache",
    "cuMemFree_v2",
    "cuMemFreeHost",
    "cuMemGetInfo_v2",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamCopyAttributes",
    // of no bytes
    "cuMemcpy",
    "cuMemcpyAsync",
    "cuMemcpyPeer",
    "cuMemcpyPeerAsync",
    "cuMemcpyHtoD_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoD_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8_v2",
    "cuMemsetD8Async",
    "cuMemsetD16_v2",
    "cuMemsetD16Async",
    "cuMemsetD32_v2",
    "cuMemsetD32Async",
    "cuMemsetD2D8_v2",
    "cuMemsetD2D8Async",
    "cuMemsetD2D16_v2",
    "cuMemsetD2D16Async",
    "cuMemsetD2D32_v2",
    "cuMemsetD2D32Async",
};

static bool is_harmless(const char *symbol) {
  for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
    if (strcmp(harmless[i], symbol) == 0) return true;
  return false;
}

// In a context of its own each time.
START_TEST(zeros_are_refused) {
  open_all();
  for (int i = 0; i < CALLS; i++) {
    cu_begin();
    CUresult code = with_zeros(&calls[i]);
    ck_assert_msg((code == CUDA_SUCCESS) == is_harmless(calls[i].symbol), "%s: %d", calls[i].symbol, code);
    ck_assert_msg(code != CUDA_ERROR_INVALID_CONTEXT || strstr(calls[i].symbol, "Ctx") ||
                      strstr(calls[i].symbol, "Peer"),
                  "%s: %d", calls[i].symbol, code);
  }
}
END_TEST

static const char trap[] = PTX_HEAD ".visible .entry fails(.param .u64 at) {\n"
                                    "  .reg .b64 %a; ld.param.u64 %a, [at]; st.global.u32 [%a], 1; ret;\n}\n";

static CUresult fault(uint64_t at) {
  CUfunction f = cu_function(cu_module(trap), "fails");
  void *params[] = {&at};
  WORKS(cu_run(f, NULL, params));
  return cu.cuStreamSynchronize(NULL);
}

START_TEST(a_fault_ruins_the_context) {
  open_all();
  cu_begin();
  SAME(fault(8), CUDA_ERROR_ILLEGAL_ADDRESS);
  for (int i = 0; i < CALLS; i++) {
    if (calls[i].need < CONTEXT) continue;
    CUresult code = with_zeros(&calls[i]);
    ck_assert_msg(code == CUDA_ERROR_ILLEGAL_ADDRESS, "%s: %d", calls[i].symbol, code);
  }
  // Another context is not touched, and a new primary one is as good as new.
  CUcontext c, other;
  WORKS(cu.cuCtxGetCurrent(&c));
  WORKS(cu.cuCtxCreate_v2(&other, 0, 0));
  WORKS(cu.cuCtxSynchronize());
  WORKS(cu.cuCtxDestroy_v2(other));
  WORKS(cu.cuDevicePrimaryCtxReset_v2(0));
  SAME(cu.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  WORKS(cu.cuDevicePrimaryCtxRetain(&c, 0));
  WORKS(cu.cuCtxSetCurrent(c));
  WORKS(cu.cuCtxSynchronize());
}
END_TEST

// --- faults by kind
// ---------------------------------------------------------------------------------------------------

typedef struct fault_row {
  const char *body;
  CUresult code;
} fault_row;
static const fault_row fault_rows[] = {
    {"st.global.u32 [8], 1;", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"st.global.u32 [%a+4096], 1;", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"st.global.u32 [%a+1], 1;", CUDA_ERROR_MISALIGNED_ADDRESS},
    {"trap;", CUDA_ERROR_LAUNCH_FAILED},
    {"bar.sync 0, 33;", CUDA_ERROR_ILLEGAL_INSTRUCTION},
    {"L: bra L;", CUDA_ERROR_LAUNCH_TIMEOUT},
    {"ret;", CUDA_SUCCESS},
};

START_TEST(faults_have_their_codes) {
  const fault_row *r = &fault_rows[_i];
  char text[1024];
  setenv("KILN_SIM_LIMIT", "1000", 1);
  cu_begin();
  snprintf(text, sizeof text,
           "%s.visible .entry fails(.param .u64 at) {\n  .reg .b64 %%a; ld.param.u64 %%a, [at]; %s\n ret; }\n",
           PTX_HEAD, r->body);
  CUdeviceptr p = cu_memory(16);
  void *params[] = {&p};
  WORKS(cu_run(cu_function(cu_module(text), "fails"), NULL, params));
  SAME(cu.cuCtxSynchronize(), r->code);
}
END_TEST

// --- the driver's own
// -------------------------------------------------------------------------------------------------

START_TEST(errors_have_names_and_words) {
  const char *name = NULL, *text = NULL;
  cu_open();
#define X(code, value)                                                                                                 \
  if (strncmp(#code, "CUDA_ERROR_", 11) == 0 || strcmp(#code, "CUDA_SUCCESS") == 0) {                                  \
    WORKS(cu.cuGetErrorName((CUresult)value, &name));                                                                  \
    ck_assert_str_eq(name, #code);                                                                                     \
    WORKS(cu.cuGetErrorString((CUresult)value, &text));                                                                \
    ck_assert_uint_gt(strlen(text), 5);                                                                                \
  }
  KL_CUDA_CONSTANTS(X)
  KL_CUDA_RESULTS(X)
#undef X
  SAME(cu.cuGetErrorName((CUresult)12345, &name), CUDA_ERROR_INVALID_VALUE);
  ck_assert_ptr_null(name);
  SAME(cu.cuGetErrorString((CUresult)-1, &text), CUDA_ERROR_INVALID_VALUE);
  ck_assert_ptr_null(text);
}
END_TEST

typedef struct address_row {
  const char *name;
  int version;
  cuuint64_t flags;
  CUresult code;
  int status;
  void **is;    // the entry point, where that is found
  bool differs; // it is another one
} address_row;

START_TEST(entry_points_by_name_and_version) {
  cu_open();
  const address_row rows[] = {
      {"cuMemAlloc", 11080, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS, (void **)&cu.cuMemAlloc_v2, false},
      {"cuMemAlloc", 2000, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, NULL, false},
      {"cuMemAlloc_v2", 12000, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, NULL, false},
      {"cuNothing", 12000, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, NULL, false},
      {"cuGetProcAddress", 11030, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS, (void **)&cu.cuGetProcAddress, false},
      {"cuGetProcAddress", 13000, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS, (void **)&cu.cuGetProcAddress_v2,
       false},
      {"cuCtxCreate", 11030, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS, (void **)&cu.cuCtxCreate_v2, false},
      {"cuCtxCreate", 12040, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS, (void **)&cu.cuCtxCreate_v3, false},
      {"cuCtxCreate", 13000, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS, (void **)&cu.cuCtxCreate_v4, false},
      {"cuGraphInstantiate", 11000, 0, CUDA_SUCCESS, 0, (void **)&cu.cuGraphInstantiate_v2, false},
      {"cuGraphInstantiate", 12000, 0, CUDA_SUCCESS, 0, (void **)&cu.cuGraphInstantiateWithFlags, false},
      {"cuLaunchKernel", 12000, 1, CUDA_SUCCESS, 0, (void **)&cu.cuLaunchKernel, false},
      {"cuLaunchKernel", 12000, 2, CUDA_SUCCESS, 0, (void **)&cu.cuLaunchKernel, true},
      {"cuMemcpyHtoD", 12000, 2, CUDA_SUCCESS, 0, (void **)&cu.cuMemcpyHtoD_v2, true},
      {"cuMemAlloc", 12000, 2, CUDA_SUCCESS, 0, (void **)&cu.cuMemAlloc_v2, false},
      {"cuMemAlloc", 12000, 4, CUDA_ERROR_INVALID_VALUE, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, NULL, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const address_row *r = &rows[i];
    void *p = &p;
    CUdriverProcAddressQueryResult status = 99;
    SAME(cu.cuGetProcAddress_v2(r->name, &p, r->version, r->flags, &status), r->code);
    ck_assert_msg(status == r->status, "%s at %d: %d", r->name, r->version, status);
    if (r->differs)
      ck_assert(p && p != *r->is);
    else
      ck_assert_ptr_eq(p, r->is ? *r->is : NULL);
  }
  void *p;
  SAME(cu.cuGetProcAddress("cuNothing", &p, 12000, 0), CUDA_ERROR_NOT_FOUND);
  ck_assert_ptr_null(kl_sim_resolve(NULL, 12000));
  ck_assert_ptr_null(kl_sim_resolve("cuMemAlloc", 2000));
}
END_TEST

// --- devices
// ----------------------------------------------------------------------------------------------------------

typedef struct gpu_row {
  const char *given, *model;
  int sm, multiprocessors, shared_optin, threads, blocks;
  double gigabytes_per_second;
} gpu_row;
static const gpu_row gpu_rows[] = {
    {"A100", "NVIDIA A100-SXM4-80GB", 80, 108, 166912, 2048, 32, 2039},
    {"h100", "NVIDIA H100 80GB HBM3", 90, 132, 232448, 2048, 32, 3352},
    {"H200", "NVIDIA H200", 90, 132, 232448, 2048, 32, 4917},
    {"L40S", "NVIDIA L40S", 89, 142, 101376, 1536, 24, 864},
    {"B200", "NVIDIA B200", 100, 148, 232448, 2048, 32, 8184},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 101376, 1536, 24, 1008},
    {"RTX 4090", "NVIDIA GeForce RTX 4090", 89, 128, 101376, 1536, 24, 1008},
};

static int attribute(CUdevice_attribute which) {
  int v = -1;
  WORKS(cu.cuDeviceGetAttribute(&v, which, 0));
  return v;
}

START_TEST(devices_of_the_table) {
  const gpu_row *r = &gpu_rows[_i];
  char name[64], cut[7];
  int n = 0, major = 0, minor = 0;
  setenv("KILN_SIM_GPU", r->given, 1);
  cu_open();
  WORKS(cu.cuInit(0));
  WORKS(cu.cuDeviceGetCount(&n));
  ck_assert_int_eq(n, 1);
  WORKS(cu.cuDeviceGetName(name, sizeof name, 0));
  ck_assert_str_eq(name, r->model);
  WORKS(cu.cuDeviceGetName(cut, sizeof cut, 0));
  ck_assert_str_eq(cut, "NVIDIA");
  WORKS(cu.cuDeviceComputeCapability(&major, &minor, 0));
  ck_assert_int_eq(major * 10 + minor, r->sm);
  ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), r->multiprocessors);
  ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), r->shared_optin);
  ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), r->threads);
  ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR), r->blocks);
  double bytes = 2e3 * attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                 attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
  ck_assert_double_eq_tol(bytes * 1e-9, r->gigabytes_per_second, 1);
}
END_TEST

START_TEST(devices_are_asked) {
  char text[32];
  CUdevice d = 7;
  int v;
  setenv("KILN_SIM_GPU", "H100,A100", 1);
  cu_open();
  WORKS(cu.cuInit(0));
  WORKS(cu.cuDeviceGetCount(&v));
  ck_assert_int_eq(v, 2);
  SAME(cu.cuDeviceGet(&d, 2), CUDA_ERROR_INVALID_DEVICE);
  SAME(cu.cuDeviceGet(&d, -1), CUDA_ERROR_INVALID_DEVICE);
  ck_assert_int_eq(d, 7);
  WORKS(cu.cuDeviceGet(&d, 1));
  SAME(cu.cuDeviceGetAttribute(&v, 0, 0), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuDeviceGetAttribute(&v, 100000, 0), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 2), CUDA_ERROR_INVALID_DEVICE);
  WORKS(cu.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1));
  ck_assert_int_eq(v, 32);
#define X(name, value) WORKS(cu.cuDeviceGetAttribute(&v, value, 0));
  KL_CUDA_DEVICE_ATTRIBUTES(X)
#undef X
  WORKS(cu.cuDeviceGetPCIBusId(text, sizeof text, 1));
  WORKS(cu.cuDeviceGetByPCIBusId(&d, text));
  ck_assert_int_eq(d, 1);
  SAME(cu.cuDeviceGetByPCIBusId(&d, "0000:77:00.0"), CUDA_ERROR_INVALID_DEVICE);
  SAME(cu.cuDeviceGetByPCIBusId(&d, "elsewhere"), CUDA_ERROR_INVALID_VALUE);
  CUuuid a, b;
  WORKS(cu.cuDeviceGetUuid_v2(&a, 0));
  WORKS(cu.cuDeviceGetUuid_v2(&b, 1));
  ck_assert(memcmp(&a, &b, sizeof a) != 0);
  WORKS(cu.cuDeviceCanAccessPeer(&v, 0, 1));
  ck_assert_int_eq(v, 1);
  WORKS(cu.cuDeviceCanAccessPeer(&v, 0, 0));
  ck_assert_int_eq(v, 0);
  WORKS(cu.cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
  SAME(cu.cuDeviceGetP2PAttribute(&v, 77, 0, 1), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuInit(1), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuDriverGetVersion(&v));
  ck_assert_int_eq(v, 13000);
}
END_TEST

static const char *const no_gpus[] = {"", "GTX 480", "H100,", ",", "H100,H100,H100,H100,H100,H100,H100,H100,H100"};
START_TEST(devices_that_are_none) {
  const char *name = no_gpus[_i];
  kiln_context *cx = kiln_context_create(NULL);
  kl_sim_options o = {.devices = name};
  ck_assert_int_eq(kl_sim_configure(cx, &o), KILN_E_INVALID);
  ck_assert_uint_eq(kiln_diagnostics_count(cx), 1);
  kiln_context_destroy(&cx);
  cu_open();
  setenv("KILN_SIM_GPU", name, 1);
  SAME(cu.cuInit(0), *name ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS);
}
END_TEST

START_TEST(devices_are_chosen_once) {
  kiln_context *cx = kiln_context_create(NULL);
  kl_sim_options o = {.devices = "L40S"}, other = {.devices = "A100"}, seed = {.shuffle = 3, .perturb = 4};
  char name[64];
  setenv("KILN_SIM_GPU", "H200", 1);
  ck_assert_int_eq(kl_sim_configure(cx, &o), KILN_OK);
  cu_open();
  WORKS(cu.cuInit(0));
  WORKS(cu.cuDeviceGetName(name, sizeof name, 0));
  ck_assert_str_eq(name, "NVIDIA L40S");
  ck_assert_int_eq(kl_sim_configure(cx, &o), KILN_OK);
  ck_assert_int_eq(kl_sim_configure(cx, &seed), KILN_OK);
  ck_assert_int_eq(kl_sim_configure(cx, &other), KILN_E_INVALID);
  kiln_context_destroy(&cx);
}
END_TEST

// --- contexts
// ---------------------------------------------------------------------------------------------------------

START_TEST(contexts_stack) {
  CUcontext a, b, c = NULL, primary;
  CUdevice d;
  cu_open();
  WORKS(cu.cuInit(0));
  WORKS(cu.cuCtxGetCurrent(&c));
  ck_assert_ptr_null(c);
  SAME(cu.cuCtxPopCurrent_v2(&c), CUDA_ERROR_INVALID_CONTEXT);
  WORKS(cu.cuCtxCreate_v2(&a, CU_CTX_SCHED_SPIN, 0));
  WORKS(cu.cuCtxCreate_v4(&b, NULL, 0, 0));
  SAME(cu.cuCtxCreate_v2(&c, 3, 0), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuCtxCreate_v2(&c, 0, 1), CUDA_ERROR_INVALID_DEVICE);
  WORKS(cu.cuCtxGetCurrent(&c));
  ck_assert_ptr_eq(c, b);
  WORKS(cu.cuCtxPushCurrent_v2(a));
  WORKS(cu.cuCtxPopCurrent_v2(&c));
  ck_assert_ptr_eq(c, a);
  WORKS(cu.cuCtxSetCurrent(a)); // in b's place
  WORKS(cu.cuCtxPopCurrent_v2(NULL));
  WORKS(cu.cuCtxGetCurrent(&c));
  ck_assert_ptr_eq(c, a);
  WORKS(cu.cuCtxGetDevice(&d));
  WORKS(cu.cuCtxGetDevice_v2(&d, b));
  WORKS(cu.cuCtxDestroy_v2(b));
  SAME(cu.cuCtxDestroy_v2(b), CUDA_ERROR_INVALID_CONTEXT);
  SAME(cu.cuCtxPushCurrent_v2(b), CUDA_ERROR_INVALID_CONTEXT);
  SAME(cu.cuCtxSetCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
  SAME(cu.cuCtxGetDevice_v2(&d, b), CUDA_ERROR_INVALID_CONTEXT);
  WORKS(cu.cuDevicePrimaryCtxRetain(&primary, 0));
  SAME(cu.cuCtxDestroy_v2(primary), CUDA_ERROR_INVALID_CONTEXT);
  WORKS(cu.cuCtxDestroy_v2(a)); // the current one: it is popped
  WORKS(cu.cuCtxGetCurrent(&c));
  ck_assert_ptr_null(c);
}
END_TEST

START_TEST(primary_contexts_are_counted) {
  CUcontext a, b;
  unsigned flags;
  int active;
  cu_open();
  WORKS(cu.cuInit(0));
  SAME(cu.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  WORKS(cu.cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_YIELD));
  SAME(cu.cuDevicePrimaryCtxSetFlags_v2(0, 0x10000), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
  ck_assert(flags == CU_CTX_SCHED_YIELD && !active);
  WORKS(cu.cuDevicePrimaryCtxRetain(&a, 0));
  WORKS(cu.cuDevicePrimaryCtxRetain(&b, 0));
  ck_assert_ptr_eq(a, b);
  WORKS(cu.cuCtxSetCurrent(a));
  WORKS(cu.cuDevicePrimaryCtxRelease_v2(0));
  WORKS(cu.cuCtxSynchronize());
  WORKS(cu.cuDevicePrimaryCtxRelease_v2(0));
  WORKS(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
  ck_assert(!active);
  SAME(cu.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}
END_TEST

// What was made in a context is gone with it.
START_TEST(contexts_take_all_with_them) {
  CUcontext c;
  CUstream s;
  CUevent e;
  size_t before, after;
  CUdeviceptr base;
  cu_begin();
  WORKS(cu.cuMemGetInfo_v2(&before, NULL));
  WORKS(cu.cuCtxCreate_v2(&c, 0, 0));
  WORKS(cu.cuStreamCreate(&s, 0));
  WORKS(cu.cuEventCreate(&e, 0));
  CUmodule m = cu_module(PTX_HEAD PTX_STORE);
  CUfunction f = cu_function(m, "store");
  CUdeviceptr p = cu_memory(1 << 20);
  WORKS(cu.cuCtxDestroy_v2(c));
  void *params[] = {&p, &p};
  SAME(cu_run(f, NULL, params), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
  SAME(cu.cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
  SAME(cu.cuMemGetAddressRange_v2(&base, NULL, p), CUDA_ERROR_NOT_FOUND);
  WORKS(cu.cuMemGetInfo_v2(&after, NULL));
  ck_assert_uint_eq(before, after);
}
END_TEST

START_TEST(settings_of_contexts) {
  size_t v;
  unsigned flags;
  unsigned long long id;
  int least, greatest;
  cu_begin();
  WORKS(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  WORKS(cu.cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE));
  ck_assert_uint_eq(v, 4096);
  SAME(cu.cuCtxSetLimit(3, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
  SAME(cu.cuCtxGetLimit(&v, 77), CUDA_ERROR_INVALID_VALUE);
  WORKS(cu.cuCtxSetFlags(CU_CTX_SCHED_SPIN));
  WORKS(cu.cuCtxGetFlags(&flags));
  ck_assert_uint_eq(flags, CU_CTX_SCHED_SPIN);
  WORKS(cu.cuCtxGetId(NULL, &id));
  WORKS(cu.cuCtxGetApiVersion(NULL, &flags));
  WORKS(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
  ck_assert(least == 0 && greatest < 0);
  SAME(cu.cuCtxSetCacheConfig(9), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

// Each thread has contexts of its own; nothing is lost between them.
static void *use(void *arg) {
  CUcontext c;
  CUdeviceptr p;
  CUstream s;
  unsigned v = 0;
  for (int i = 0; i < 50; i++) {
    if (cu.cuCtxCreate_v2(&c, 0, 0) || cu.cuMemAlloc_v2(&p, 4096) || cu.cuStreamCreate(&s, 0)) return "made";
    if (cu.cuMemsetD32Async(p, (unsigned)i, 1024, s) || cu.cuMemcpyDtoHAsync_v2(&v, p + 4092, 4, s)) return "used";
    if (v != (unsigned)i) return "wrong";
    if (cu.cuStreamDestroy_v2(s) || cu.cuMemFree_v2(p) || cu.cuCtxDestroy_v2(c)) return "destroyed";
  }
  return NULL;
}

START_TEST(threads_share_the_driver) {
  pthread_t threads[4];
  void *failed;
  cu_begin();
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, use, NULL), 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &failed);
    ck_assert_msg(!failed, "%s", (char *)failed);
  }
}
END_TEST

// --- words
// ------------------------------------------------------------------------------------------------------------

static char told[4096];
static void listen(void *data, CUlogLevel level, char *text, size_t n) {
  ck_assert_ptr_eq(data, &told);
  ck_assert_uint_eq(strlen(text), n);
  ck_assert_int_eq(level, CU_LOG_LEVEL_ERROR);
  snprintf(told, sizeof told, "%s", text);
  int v;
  SAME(cu.cuDeviceGetCount(&v), CUDA_ERROR_NOT_PERMITTED);
}

START_TEST(faults_are_told) {
  CUlogsCallbackHandle h;
  CUlogIterator at;
  char text[1024];
  size_t n = sizeof text;
  cu_begin();
  WORKS(cu.cuLogsRegisterCallback(listen, told, &h));
  WORKS(cu.cuLogsCurrent(&at, 0));
  SAME(fault(8), CUDA_ERROR_ILLEGAL_ADDRESS);
  ck_assert_msg(strstr(told, "fails") && strstr(told, "0x8"), "%s", told);
  WORKS(cu.cuLogsDumpToMemory(&at, text, &n, 0));
  ck_assert_uint_eq(n, strlen(text) + 1);
  ck_assert_msg(strstr(text, "fails") != NULL, "%s", text);
  n = sizeof text;
  WORKS(cu.cuLogsDumpToMemory(&at, text, &n, 0));
  ck_assert_uint_eq(n, 1);
  WORKS(cu.cuLogsUnregisterCallback(h));
  SAME(cu.cuLogsUnregisterCallback(h), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void) {
  return RUN_TESTS("driver", IN_CHILDREN, {nothing_works_before_init}, {what_needs_a_context_says_so},
                   {zeros_are_refused}, {a_fault_ruins_the_context}, {faults_have_their_codes, KL_COUNT(fault_rows)},
                   {errors_have_names_and_words}, {entry_points_by_name_and_version},
                   {devices_of_the_table, KL_COUNT(gpu_rows)}, {devices_are_asked},
                   {devices_that_are_none, KL_COUNT(no_gpus)}, {devices_are_chosen_once}, {contexts_stack},
                   {primary_contexts_are_counted}, {contexts_take_all_with_them}, {settings_of_contexts},
                   {threads_share_the_driver}, {faults_are_told});
}
