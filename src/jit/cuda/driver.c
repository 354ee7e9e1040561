// Opening a driver, naming its failures, describing its devices.

#include "jit/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAST_DRIVER = 11080 };

// --- failures -----------------------------------------------------------------------------------------------------

typedef struct advice {
  CUresult code;
  bool ruins; // the context: no call in it can succeed any more
  const char *text;
} advice;

static const advice advices[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, false, "free device memory, or use a smaller problem"},
    {CUDA_ERROR_NOT_INITIALIZED, false, "call cuInit before, or open the driver with `initialize`"},
    {CUDA_ERROR_DEINITIALIZED, true, "the driver is shutting down: nothing can be done at the process's end"},
    {CUDA_ERROR_STUB_LIBRARY, false, "the toolkit's stub library was found: remove it from the library path"},
    {CUDA_ERROR_NO_DEVICE, false, "no NVIDIA GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {CUDA_ERROR_INVALID_DEVICE, false, "there is no device of this number"},
    {CUDA_ERROR_INVALID_CONTEXT, false, "make a context current on this thread, or give one that still exists"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, true, "the context was destroyed: kernels must be destroyed before it"},
    {CUDA_ERROR_INVALID_IMAGE, false, "the driver takes the code for damaged"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, false, "compile for the device's own target (kiln devices)"},
    {CUDA_ERROR_INVALID_PTX, false, "compile for the device's own target (kiln devices); if it is, please report this"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, false, "install a newer driver"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, false,
     "install the driver's PTX compiler, libnvidia-ptxjitcompiler.so.1, which slim containers lack"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, false, "unset CUDA_DISABLE_PTX_JIT"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, false, "the kernel needs more registers or memory than a block has"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false, "call kiln_cuda_kernel_prepare before the capture begins"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, false, "an earlier call ended the capture: begin it again"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, false, "use the thread that began the capture"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, false, "the kernel's driver and libcuda differ: restart after the update"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, false,
     "this device cannot use the compatibility libraries: remove them"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, true, "the device's memory failed: reset it"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, true, "a kernel used memory that is not its own: check the buffers' sizes"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, true, "a kernel ran longer than the display's watchdog allows"},
    {CUDA_ERROR_ASSERT, true, "a kernel's assertion failed"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, true, "a kernel damaged its stack"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, true, "a kernel holds an instruction that the device lacks"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, true, "a kernel used a misaligned address: check the buffers' alignment"},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, true, "a kernel used memory of the wrong kind"},
    {CUDA_ERROR_INVALID_PC, true, "a kernel jumped to nowhere"},
    {CUDA_ERROR_LAUNCH_FAILED, true, "a kernel failed on the device"},
};

static const advice *advice_for(CUresult code) {
  static const advice none = {0, false, NULL};
  for (size_t i = 0; i < KL_COUNT(advices); i++)
    if (advices[i].code == code) return &advices[i];
  return &none;
}

static const char *code_name(const kiln_driver *d, CUresult code) {
  const char *name = NULL;
  if (!d->fn.cuGetErrorName || d->fn.cuGetErrorName(code, &name) != CUDA_SUCCESS) name = NULL;
  return name ? name : "unknown code";
}

kiln_status kl_cuda_failed(kl_ctx *cx, const kiln_driver *d, kl_cuda_fate *fate, const char *call, CUresult code,
                           const char *detail) {
  const advice *a = advice_for(code);
  const char *what = NULL;
  int expected = 0;
  if (!d->fn.cuGetErrorString || d->fn.cuGetErrorString(code, &what) != CUDA_SUCCESS) what = NULL;
  if (fate && a->ruins) atomic_compare_exchange_strong(fate, &expected, code);
  return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE, "%s failed with %s (%d)%s%s%s%s%s%s", call, code_name(d, code), code,
                 what ? ": " : "", what ? what : "", a->text ? "; " : "", a->text ? a->text : "", detail ? "\n" : "",
                 detail ? detail : "");
}

// --- forks --------------------------------------------------------------------------------------------------------

// A page of the driver's own: its first byte stays, the second page's is wiped in a child.
static kiln_status note_forks(kl_ctx *cx, kiln_driver *d) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return kl_out_of_memory(cx, 2 * page, "a driver");
  d->used = (atomic_bool *)p;
  d->used_here = (atomic_bool *)(p + page);
  if (madvise(p + page, page, MADV_WIPEONFORK) == 0) return KILN_OK;
  d->used_here = d->used; // a kernel before Linux 4.14: forks are not noticed
  return KILN_OK;
}

static void forget_forks(kiln_driver *d) {
  if (d->used) munmap((void *)d->used, 2 * (size_t)sysconf(_SC_PAGESIZE));
}

bool kl_cuda_is_forked(const kiln_driver *d) {
  return atomic_load_explicit(d->used, memory_order_relaxed) &&
         !atomic_load_explicit(d->used_here, memory_order_relaxed);
}

// First uses of several threads at once: `used_here` is set first, so that nobody takes one for a fork.
kiln_status kl_cuda_usable(kl_ctx *cx, const kiln_driver *d) {
  if (atomic_load_explicit(d->used_here, memory_order_relaxed)) return KILN_OK;
  if (atomic_load_explicit(d->used, memory_order_acquire) && !atomic_load_explicit(d->used_here, memory_order_acquire))
    return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE,
                   "the process has forked since the driver was first used, and CUDA does not work in the child: fork "
                   "before, or begin a program of its own (exec)");
  atomic_store_explicit(d->used_here, true, memory_order_relaxed);
  atomic_store_explicit(d->used, true, memory_order_release);
  return KILN_OK;
}

// --- what befell contexts -----------------------------------------------------------------------------------------

kiln_status kl_cuda_alive(kl_ctx *cx, const kiln_driver *d, const kl_cuda_fate *fate) {
  KL_TRY(kl_cuda_usable(cx, d));
  int code = atomic_load(fate);
  if (code == 0) return KILN_OK;
  return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE,
                 "the context is lost since an earlier failure with %s (%d): destroy it and everything made in it",
                 code_name(d, code), code);
}

// --- the current context ------------------------------------------------------------------------------------------

kiln_status kl_cuda_enter(kl_ctx *cx, const kiln_driver *d, kl_cuda_fate *fate, CUcontext context, kl_cuda_scope *out) {
  CUcontext current = NULL;
  out->pushed = false;
  KL_TRY(kl_cuda_alive(cx, d, fate));
  KL_CUDA_TRY(cx, d, fate, cuCtxGetCurrent, &current);
  if (current == context) return KILN_OK;
  KL_CUDA_TRY(cx, d, fate, cuCtxPushCurrent, context);
  out->pushed = true;
  return KILN_OK;
}

kiln_status kl_cuda_leave(kl_ctx *cx, const kiln_driver *d, kl_cuda_fate *fate, kl_cuda_scope *s, kiln_status st) {
  CUcontext popped;
  if (!s->pushed) return st;
  s->pushed = false;
  CUresult code = d->fn.cuCtxPopCurrent(&popped);
  if (code == CUDA_SUCCESS || st != KILN_OK) return st;
  return kl_cuda_failed(cx, d, fate, "cuCtxPopCurrent", code, NULL);
}

// --- opening ------------------------------------------------------------------------------------------------------

typedef CUresult get_proc_address(const char *name, void **out, int version, uint64_t flags, int *status);

typedef struct source {
  const kiln_driver_params *params;
  void *library;
  get_proc_address *get; // NULL where the driver lacks it
} source;

static void *find(const source *s, const char *name, const char *symbol, int version) {
  void *p = NULL;
  int status = 0;
  if (s->params->resolve) return s->params->resolve(s->params->user, name, version);
  if (s->get && s->get(name, &p, version, 0, &status) == CUDA_SUCCESS && p) return p;
  return dlsym(s->library, symbol);
}

static kiln_status open_library(kl_ctx *cx, kiln_driver *d, source *s) {
  const char *name = s->params->library ? s->params->library : "libcuda.so.1";
  if (s->params->resolve) {
    snprintf(d->origin, sizeof d->origin, "the given table");
    return KILN_OK;
  }
  snprintf(d->origin, sizeof d->origin, "%s", name);
  s->library = dlopen(name, RTLD_NOW | RTLD_LOCAL); // never closed: the driver keeps threads and handlers
  if (!s->library)
    return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE, "no CUDA driver: %s. Install NVIDIA's driver, or use the host",
                   dlerror());
  s->get = (get_proc_address *)dlsym(s->library, "cuGetProcAddress_v2");
  return KILN_OK;
}

static kiln_status check_version(kl_ctx *cx, kiln_driver *d, const source *s) {
  CUresult (*version)(int *) = (CUresult(*)(int *))find(s, "cuDriverGetVersion", "cuDriverGetVersion", LEAST_DRIVER);
  if (!version)
    return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE, "%s has no entry point cuDriverGetVersion: is it a CUDA driver?",
                   d->origin);
  CUresult code = version(&d->version);
  if (code != CUDA_SUCCESS) return kl_cuda_failed(cx, d, NULL, "cuDriverGetVersion", code, NULL);
  if (d->version >= LEAST_DRIVER) return KILN_OK;
  return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE,
                 "expected a driver for CUDA %d.%d or newer (R520), found one for %d.%d in %s", LEAST_DRIVER / 1000,
                 LEAST_DRIVER % 1000 / 10, d->version / 1000, d->version % 1000 / 10, d->origin);
}

typedef struct call_row {
  const char *name, *symbol;
  int version, need;
  size_t offset; // in kl_cuda_table
} call_row;

static const call_row call_rows[] = {
#define X(call, symbol, version, need, signature) {#call, #symbol, version, need, offsetof(kl_cuda_table, call)},
    KL_CUDA_CALLS(X)
#undef X
};

static kiln_status fill_table(kl_ctx *cx, kiln_driver *d, const source *s) {
  for (size_t i = 0; i < KL_COUNT(call_rows); i++) {
    const call_row *r = &call_rows[i];
    void *p = find(s, r->name, r->symbol, r->version);
    memcpy((char *)&d->fn + r->offset, &p, sizeof p);
    if (p || !r->need || d->version < r->need) continue;
    return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE, "%s, a driver for CUDA %d.%d, has no entry point %s", d->origin,
                   d->version / 1000, d->version % 1000 / 10, r->name);
  }
  return KILN_OK;
}

kiln_status kiln_driver_open(kiln_context *cx, const kiln_driver_params *params, kiln_driver **out) {
  kiln_driver_params p;
  KL_CLEAR(out);
  KL_EXPECT(cx, out);
  KL_TRY(KL_PARAMS_IN(cx, kiln_driver_params, params, &p));
  kiln_context_params own = {.struct_size = sizeof own, .allocator = cx->allocator};
  kl_ctx *dcx = kiln_context_create(&own);
  if (!dcx) return kl_out_of_memory(cx, sizeof *dcx, "a driver");
  kiln_driver *d = kl_alloc(dcx, sizeof *d);
  d->cx = dcx;
  source s = {.params = &p};
  kiln_status st = note_forks(cx, d);
  if (st == KILN_OK) st = open_library(cx, d, &s);
  if (st == KILN_OK) st = check_version(cx, d, &s);
  if (st == KILN_OK) st = fill_table(cx, d, &s);
  if (st == KILN_OK && p.initialize) st = kl_cuda_usable(cx, d);
  CUresult code = st == KILN_OK && p.initialize ? d->fn.cuInit(0) : CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) st = kl_cuda_failed(cx, d, NULL, "cuInit", code, NULL);
  if (st == KILN_OK)
    *out = d;
  else
    kiln_driver_close(&d);
  return st;
}

void kiln_driver_close(kiln_driver **d) {
  if (!d || !*d) return;
  kl_ctx *cx = (*d)->cx;
  forget_forks(*d);
  kl_free(cx, *d, sizeof **d);
  kiln_context_destroy(&cx);
  *d = NULL;
}

int kiln_driver_version(const kiln_driver *d) {
  return d ? d->version : 0;
}

int kl_cuda_driver_for_ptx(int ptx) {
  static const struct {
    int ptx, driver;
  } rows[] = {{60, 9000},  {61, 9010},  {62, 9020},  {63, 10000}, {64, 10010}, {65, 10020}, {70, 11000},
              {71, 11010}, {72, 11020}, {73, 11030}, {74, 11040}, {75, 11050}, {76, 11060}, {77, 11070},
              {78, 11080}, {80, 12000}, {81, 12010}, {82, 12020}, {83, 12030}, {84, 12040}, {85, 12050},
              {86, 12070}, {87, 12080}, {88, 12090}, {90, 13000}, {91, 13010}};
  for (size_t i = 0; i < KL_COUNT(rows); i++)
    if (rows[i].ptx >= ptx) return rows[i].driver;
  return 0;
}

// --- devices ------------------------------------------------------------------------------------------------------

kiln_status kiln_device_count(kiln_context *cx, const kiln_driver *d, uint32_t *count) {
  int n = 0;
  KL_CLEAR(count);
  KL_EXPECT(cx, d, count);
  KL_TRY(kl_cuda_usable(cx, d));
  KL_CUDA_TRY(cx, d, NULL, cuDeviceGetCount, &n);
  *count = n > 0 ? (uint32_t)n : 0;
  return KILN_OK;
}

static kiln_status read_attribute(kl_ctx *cx, const kiln_driver *d, CUdevice device, CUdevice_attribute which,
                                  uint32_t *out) {
  int v = 0;
  KL_CUDA_TRY(cx, d, NULL, cuDeviceGetAttribute, &v, which, device);
  *out = v > 0 ? (uint32_t)v : 0;
  return KILN_OK;
}

static kiln_status read_attributes(kl_ctx *cx, const kiln_driver *d, CUdevice device, kiln_device_info *info) {
  uint32_t major = 0, minor = 0, clock_khz = 0, bus_bits = 0;
  const struct {
    CUdevice_attribute which;
    uint32_t *to;
  } rows[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->multiprocessors},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &info->threads},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &info->registers},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &info->shared_bytes},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &info->block_shared},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &info->block_shared_optin},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &info->l2_bytes},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &clock_khz},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &bus_bits},
  };
  for (size_t i = 0; i < KL_COUNT(rows); i++) KL_TRY(read_attribute(cx, d, device, rows[i].which, rows[i].to));
  info->sm = major * 10 + minor;
  snprintf(info->target, sizeof info->target, "sm_%u", info->sm);
  info->bytes_per_second = 2e3 * clock_khz * (bus_bits / 8); // two transfers a clock
  return KILN_OK;
}

kiln_status kiln_device_describe(kiln_context *cx, const kiln_driver *d, uint32_t device, kiln_device_info *out) {
  kiln_device_info info = {.struct_size = sizeof info};
  CUdevice handle;
  size_t bytes = 0;
  KL_EXPECT(cx, d, out);
  KL_TRY(kl_cuda_usable(cx, d));
  KL_CUDA_TRY(cx, d, NULL, cuDeviceGet, &handle, (int)device);
  KL_CUDA_TRY(cx, d, NULL, cuDeviceGetName, info.name, (int)sizeof info.name - 1, handle);
  KL_CUDA_TRY(cx, d, NULL, cuDeviceTotalMem, &bytes, handle);
  KL_TRY(read_attributes(cx, d, handle, &info));
  info.memory_bytes = bytes;
  return KL_PARAMS_OUT(cx, kiln_device_info, &info, out);
}
