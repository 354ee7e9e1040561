// Artifacts loaded into a CUDA context: the code, its functions, launches.

#include "jit/cuda.h"
#include "jit/jit.h"

#include <pthread.h>
#include <stdio.h>

enum { LOG_BYTES = 8192 };

struct kiln_cuda_kernel {
  kl_ctx *cx; // its own
  kl_arena arena;
  const kiln_driver *d;
  CUcontext context;
  kl_cuda_fate fate;
  char target[16];
  char *ptx; // NUL-terminated, as the driver wants it
  kl_program program;
  kl_interface_buffer *interface;
  pthread_mutex_t loading;
  atomic_bool ready;
  CUlibrary library; // where the driver has libraries, else a module
  CUmodule module;
  CUfunction *fn;
  char error_log[LOG_BYTES]; // the driver may write to it as long as the code is loaded
};

// --- life ---------------------------------------------------------------------------------------------------------

static kiln_status copy_code(kl_ctx *cx, kiln_cuda_kernel *k, const kiln_artifact *a) {
  size_t n = a->text_size[KILN_TEXT_PTX];
  k->ptx = kl_arena_try_alloc(&k->arena, n + 1);
  if (!k->ptx) return kl_out_of_memory(cx, n + 1, "a kernel's code");
  memcpy(k->ptx, a->text[KILN_TEXT_PTX], n);
  memcpy(k->target, a->target, sizeof k->target);
  return KILN_OK;
}

kiln_status kiln_cuda_kernel_create(kiln_context *cx, const kiln_driver *d, const kiln_artifact *a, void *context,
                                    kiln_cuda_kernel **out) {
  CUcontext own = context;
  *out = NULL;
  if (a->host) return kl_invalid(cx, KL_NOWHERE, "expected an artifact for a GPU, found one for the host");
  if (!own) KL_CUDA_TRY(cx, d, NULL, cuCtxGetCurrent, &own);
  if (!own)
    return kl_invalid(cx, KL_NOWHERE, "expected a CUDA context, found none given and none current on this thread");
  kiln_context_params params = {.struct_size = sizeof params, .allocator = cx->allocator};
  kl_ctx *kcx = kiln_context_create(&params);
  if (!kcx) return kl_out_of_memory(cx, sizeof *kcx, "a kernel");
  kiln_cuda_kernel *k = kl_alloc(kcx, sizeof *k);
  *k = (kiln_cuda_kernel){.cx = kcx, .d = d, .context = own};
  kl_arena_init(&k->arena, kcx);
  pthread_mutex_init(&k->loading, NULL);
  kl_program_copy(&k->program, &k->arena, a);
  k->fn = KL_NEW_N(&k->arena, CUfunction, a->nlaunches);
  k->interface = KL_NEW_N(&k->arena, kl_interface_buffer, a->nparams + a->nresults);
  kl_program_interface(&k->program, k->interface);
  kiln_status st = copy_code(cx, k, a);
  if (st == KILN_OK)
    *out = k;
  else
    kiln_cuda_kernel_destroy(&k);
  return st;
}

// Failures are not told: the context may be gone already.
static void unload(kiln_cuda_kernel *k) {
  CUcontext current = NULL, popped;
  const kl_cuda_table *fn = &k->d->fn;
  if (!k->library && !k->module) return;
  bool pushed = fn->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != k->context &&
                fn->cuCtxPushCurrent(k->context) == CUDA_SUCCESS;
  if (k->library) fn->cuLibraryUnload(k->library);
  if (k->module) fn->cuModuleUnload(k->module);
  if (pushed) fn->cuCtxPopCurrent(&popped);
  k->library = NULL;
  k->module = NULL;
}

void kiln_cuda_kernel_destroy(kiln_cuda_kernel **kp) {
  if (!kp || !*kp) return;
  kiln_cuda_kernel *k = *kp;
  kl_ctx *cx = k->cx;
  unload(k);
  pthread_mutex_destroy(&k->loading);
  kl_arena_free(&k->arena);
  kl_free(cx, k, sizeof *k);
  kiln_context_destroy(&cx);
  *kp = NULL;
}

// --- loading ------------------------------------------------------------------------------------------------------

// 80 for ".version 8.0".
static int ptx_version(const char *ptx) {
  int major = 0, minor = 0;
  const char *at = strstr(ptx, ".version");
  return at && sscanf(at, ".version %d.%d", &major, &minor) == 2 ? major * 10 + minor : 0;
}

static kiln_status check_ptx(kl_ctx *cx, const kiln_cuda_kernel *k) {
  int ptx = ptx_version(k->ptx), need = kl_cuda_driver_for_ptx(ptx), have = k->d->version;
  if (have >= need) return KILN_OK;
  return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE,
                 "the code is PTX %d.%d: expected a driver for CUDA %d.%d or newer, found one for %d.%d", ptx / 10,
                 ptx % 10, need / 1000, need % 1000 / 10, have / 1000, have % 1000 / 10);
}

static bool has_libraries(const kiln_driver *d) {
  return d->fn.cuLibraryLoadData && d->fn.cuLibraryUnload && d->fn.cuLibraryGetKernel && d->fn.cuKernelGetFunction;
}

// The compiler's log, or what the code was made for where it has said nothing.
static kiln_status load_failed(kl_ctx *cx, kiln_cuda_kernel *k, const char *call, CUresult code) {
  char detail[LOG_BYTES + 100];
  k->error_log[LOG_BYTES - 1] = 0;
  if (k->error_log[0])
    snprintf(detail, sizeof detail, "The driver's compiler says: %s", k->error_log);
  else
    snprintf(detail, sizeof detail, "The code was made for %s.", k->target);
  return kl_cuda_failed(cx, k->d, &k->fate, call, code, detail);
}

static kiln_status load_code(kl_ctx *cx, kiln_cuda_kernel *k) {
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {k->error_log, (void *)(uintptr_t)(LOG_BYTES - 1)};
  memset(k->error_log, 0, sizeof k->error_log);
  bool libraries = has_libraries(k->d);
  CUresult code = libraries ? k->d->fn.cuLibraryLoadData(&k->library, k->ptx, options, values, 2, NULL, NULL, 0)
                            : k->d->fn.cuModuleLoadDataEx(&k->module, k->ptx, 2, options, values);
  if (code == CUDA_SUCCESS) return KILN_OK;
  k->library = NULL;
  k->module = NULL;
  return load_failed(cx, k, libraries ? "cuLibraryLoadData" : "cuModuleLoadDataEx", code);
}

// Drivers load lazily: a function's code may be compiled only when it is asked for.
static kiln_status load_function(kl_ctx *cx, kiln_cuda_kernel *k, const char *name, CUfunction *fn) {
  CUresult code;
  CUkernel kernel;
  if (k->module) {
    if ((code = k->d->fn.cuModuleGetFunction(fn, k->module, name)))
      return load_failed(cx, k, "cuModuleGetFunction", code);
  } else {
    if ((code = k->d->fn.cuLibraryGetKernel(&kernel, k->library, name)))
      return load_failed(cx, k, "cuLibraryGetKernel", code);
    if ((code = k->d->fn.cuKernelGetFunction(fn, kernel))) return load_failed(cx, k, "cuKernelGetFunction", code);
  }
  if (k->d->fn.cuFuncLoad && (code = k->d->fn.cuFuncLoad(*fn))) return load_failed(cx, k, "cuFuncLoad", code);
  return KILN_OK;
}

static kiln_status load(kl_ctx *cx, kiln_cuda_kernel *k) {
  KL_TRY(load_code(cx, k));
  kiln_status st = KILN_OK;
  for (uint32_t i = 0; i < k->program.nlaunches && st == KILN_OK; i++)
    st = load_function(cx, k, k->program.launches[i].kernel, &k->fn[i]);
  if (st != KILN_OK) unload(k);
  return st;
}

kiln_status kiln_cuda_kernel_prepare(kiln_context *cx, kiln_cuda_kernel *k) {
  kl_cuda_scope scope;
  KL_TRY(kl_cuda_alive(cx, k->d, &k->fate));
  if (atomic_load(&k->ready) || k->program.nlaunches == 0) return KILN_OK;
  KL_TRY(check_ptx(cx, k));
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  pthread_mutex_lock(&k->loading);
  kiln_status st = atomic_load(&k->ready) ? KILN_OK : load(cx, k);
  if (st == KILN_OK) atomic_store(&k->ready, true);
  pthread_mutex_unlock(&k->loading);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}

static kiln_status read_resources(kl_ctx *cx, kiln_cuda_kernel *k, CUfunction fn, kiln_cuda_resources *out) {
  int registers = 0, local = 0, shared = 0;
  KL_CUDA_TRY(cx, k->d, &k->fate, cuFuncGetAttribute, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, fn);
  KL_CUDA_TRY(cx, k->d, &k->fate, cuFuncGetAttribute, &local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, fn);
  KL_CUDA_TRY(cx, k->d, &k->fate, cuFuncGetAttribute, &shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, fn);
  kiln_cuda_resources r = {out->struct_size, (uint32_t)registers, (uint32_t)local, (uint32_t)shared};
  memcpy(out, &r, out->struct_size < sizeof r ? out->struct_size : sizeof r);
  return KILN_OK;
}

kiln_status kiln_cuda_kernel_resources(kiln_context *cx, kiln_cuda_kernel *k, size_t i, kiln_cuda_resources *out) {
  kl_cuda_scope scope;
  if (i >= k->program.nlaunches)
    return kl_invalid(cx, KL_NOWHERE, "expected a launch below %u, found %zu", k->program.nlaunches, i);
  KL_TRY(kiln_cuda_kernel_prepare(cx, k));
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  kiln_status st = read_resources(cx, k, k->fn[i], out);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}

// --- buffers ------------------------------------------------------------------------------------------------------

typedef struct launch {
  kl_ctx *cx;
  kiln_cuda_kernel *k;
  const kiln_cuda_launch_params *p;
} launch;

static uint64_t interface_address(const launch *l, uint32_t i) {
  uint32_t n = l->k->program.nparams;
  return i < n ? l->p->parameters[i] : l->p->results[i - n];
}

#define BUFFER_FMT "%s %u"
#define BUFFER(l, i)                                                                                                   \
  (i) < (l)->k->program.nparams ? "parameter" : "result",                                                              \
      (i) < (l)->k->program.nparams ? (i) : (i) - (l)->k->program.nparams

static kiln_status check_address(const launch *l, uint32_t i) {
  const kl_interface_buffer *b = &l->k->interface[i];
  uint64_t at = interface_address(l, i);
  if (b->bytes == 0) return KILN_OK;
  if (at == 0) return kl_invalid(l->cx, KL_NOWHERE, BUFFER_FMT ": expected an address, found 0", BUFFER(l, i));
  if (at % b->align == 0) return KILN_OK;
  return kl_invalid(l->cx, KL_NOWHERE, BUFFER_FMT ": expected an address that is a multiple of %u, found 0x%llx",
                    BUFFER(l, i), b->align, (unsigned long long)at);
}

static kiln_status check_overlap(const launch *l, uint32_t i, uint32_t k) {
  const kl_interface_buffer *a = &l->k->interface[i], *b = &l->k->interface[k];
  uint64_t at = interface_address(l, i), other = interface_address(l, k);
  if (!a->bytes || !b->bytes || at + (uint64_t)a->bytes <= other || other + (uint64_t)b->bytes <= at) return KILN_OK;
  return kl_invalid(l->cx, KL_NOWHERE,
                    BUFFER_FMT " at 0x%llx, %lld bytes: expected to overlap nothing, found it over " BUFFER_FMT
                               " at 0x%llx, %lld bytes",
                    BUFFER(l, i), (unsigned long long)at, (long long)a->bytes, BUFFER(l, k), (unsigned long long)other,
                    (long long)b->bytes);
}

// Results are few; every one is held against all buffers.
static kiln_status check_buffers(const launch *l) {
  const kl_program *p = &l->k->program;
  uint32_t n = p->nparams + p->nresults;
  for (uint32_t i = 0; i < n; i++) KL_TRY(check_address(l, i));
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; l->k->interface[i].output && k < n; k++)
      if (k != i && (k < i || !l->k->interface[k].output)) KL_TRY(check_overlap(l, i, k));
  if (p->ntemps && (l->p->scratch == 0 || l->p->scratch % 256))
    return kl_invalid(l->cx, KL_NOWHERE, "scratch: expected an address that is a multiple of 256, found 0x%llx",
                      (unsigned long long)l->p->scratch);
  return KILN_OK;
}

static uint64_t slot_address(const launch *l, const kiln_slot *s) {
  switch (s->kind) {
  case KILN_BUFFER_PARAM: return l->p->parameters[s->index];
  case KILN_BUFFER_RESULT: return l->p->results[s->index];
  default: return l->p->scratch + kl_scratch_offset(l->k->program.temp_bytes, s->index);
  }
}

// --- launching ----------------------------------------------------------------------------------------------------

static kiln_status launch_one(const launch *l, uint32_t i, uint64_t *addresses, void **args) {
  const kiln_launch *at = &l->k->program.launches[i];
  if (at->grid[0] == 0) return KILN_OK;
  for (size_t s = 0; s < at->slot_count; s++) {
    addresses[s] = slot_address(l, &at->slots[s]);
    args[s] = &addresses[s];
  }
  CUlaunchConfig config = {.gridDimX = at->grid[0],
                           .gridDimY = at->grid[1],
                           .gridDimZ = at->grid[2],
                           .blockDimX = at->block[0],
                           .blockDimY = at->block[1],
                           .blockDimZ = at->block[2],
                           .hStream = l->p->stream};
  KL_CUDA_TRY(l->cx, l->k->d, &l->k->fate, cuLaunchKernelEx, &config, l->k->fn[i], args, NULL);
  return KILN_OK;
}

static kiln_status copy_one(const launch *l, const kl_copy *c) {
  if (c->from.bytes == 0) return KILN_OK;
  KL_CUDA_TRY(l->cx, l->k->d, &l->k->fate, cuMemcpyDtoDAsync, l->p->results[c->result], slot_address(l, &c->from),
              (size_t)c->from.bytes, l->p->stream);
  return KILN_OK;
}

static kiln_status launch_all(const launch *l) {
  const kl_program *p = &l->k->program;
  size_t most = 1;
  for (uint32_t i = 0; i < p->nlaunches; i++)
    if (p->launches[i].slot_count > most) most = p->launches[i].slot_count;
  uint64_t *addresses = kl_alloc(l->cx, most * sizeof *addresses);
  void **args = kl_alloc(l->cx, most * sizeof *args);
  kiln_status st = KILN_OK;
  for (uint32_t i = 0; i < p->nlaunches && st == KILN_OK; i++) st = launch_one(l, i, addresses, args);
  for (uint32_t i = 0; i < p->ncopies && st == KILN_OK; i++) st = copy_one(l, &p->copies[i]);
  kl_free(l->cx, args, most * sizeof *args);
  kl_free(l->cx, addresses, most * sizeof *addresses);
  return st;
}

// Loading while a stream is captured would end the capture.
static kiln_status prepare_unless_capturing(const launch *l) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (atomic_load(&l->k->ready)) return KILN_OK;
  KL_CUDA_TRY(l->cx, l->k->d, &l->k->fate, cuStreamIsCapturing, l->p->stream, &status);
  if (status != CU_STREAM_CAPTURE_STATUS_NONE)
    return kl_invalid(l->cx, KL_NOWHERE,
                      "the stream is being captured and the kernel is not loaded yet: call kiln_cuda_kernel_prepare "
                      "before the capture begins");
  return kiln_cuda_kernel_prepare(l->cx, l->k);
}

kiln_status kiln_cuda_kernel_launch(kiln_context *cx, kiln_cuda_kernel *k, const kiln_cuda_launch_params *params) {
  kiln_cuda_launch_params p = {0};
  kl_cuda_scope scope;
  memcpy(&p, params, params->struct_size < sizeof p ? params->struct_size : sizeof p);
  launch l = {cx, k, &p};
  KL_TRY(check_buffers(&l));
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  kiln_status st = prepare_unless_capturing(&l);
  if (st == KILN_OK) st = launch_all(&l);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}
