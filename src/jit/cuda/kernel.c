// Artifacts loaded into a CUDA context: the code, its functions, launches.

#include "jit/cuda/cuda.h"
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
  KL_CLEAR(out);
  KL_EXPECT(cx, d, a, out);
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
  kl_program_make(&k->program, &k->arena, a);
  k->fn = KL_NEW_N(&k->arena, CUfunction, a->manifest.launch_count);
  kiln_status st = copy_code(cx, k, a);
  if (st == KILN_OK)
    *out = k;
  else
    kiln_cuda_kernel_destroy(&k);
  return st;
}

// Failures are not told: the context may be gone already. Its modules went with it then; libraries belong to no
// context.
static void unload(kiln_cuda_kernel *k) {
  CUcontext current = NULL, popped;
  const kl_cuda_table *fn = &k->d->fn;
  if (!k->library && !k->module) return;
  CUresult code = fn->cuCtxGetCurrent(&current);
  bool there = code == CUDA_SUCCESS && current == k->context;
  if (code == CUDA_SUCCESS && !there) code = fn->cuCtxPushCurrent(k->context);
  bool pushed = code == CUDA_SUCCESS && !there;
  if (k->library) fn->cuLibraryUnload(k->library);
  if (k->module && code != CUDA_ERROR_CONTEXT_IS_DESTROYED) fn->cuModuleUnload(k->module);
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

static kiln_status check_ptx(kl_ctx *cx, const kiln_cuda_kernel *k) {
  const kiln_manifest *f = &k->program.manifest;
  int need = f->driver_version, have = k->d->version;
  if (have >= need) return KILN_OK;
  return kl_fail(cx, KILN_E_DEVICE, KL_NOWHERE,
                 "the code is PTX %u.%u: expected a driver for CUDA %d.%d or newer, found one for %d.%d",
                 f->ptx_version / 10, f->ptx_version % 10, need / 1000, need % 1000 / 10, have / 1000,
                 have % 1000 / 10);
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
static kiln_status load_function(kl_ctx *cx, kiln_cuda_kernel *k, const kiln_launch *l, CUfunction *fn) {
  const char *name = l->kernel;
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
  if (l->dynamic_shared_bytes)
    KL_CUDA_TRY(cx, k->d, &k->fate, cuFuncSetAttribute, *fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                (int)l->dynamic_shared_bytes);
  return KILN_OK;
}

static kiln_status load(kl_ctx *cx, kiln_cuda_kernel *k) {
  KL_TRY(load_code(cx, k));
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < k->program.manifest.launch_count && st == KILN_OK; i++)
    st = load_function(cx, k, &k->program.manifest.launches[i], &k->fn[i]);
  if (st != KILN_OK) unload(k);
  return st;
}

kiln_status kiln_cuda_kernel_prepare(kiln_context *cx, kiln_cuda_kernel *k) {
  kl_cuda_scope scope;
  KL_EXPECT(cx, k);
  KL_TRY(kl_cuda_alive(cx, k->d, &k->fate));
  if (atomic_load(&k->ready) || k->program.manifest.launch_count == 0) return KILN_OK;
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
  kiln_cuda_resources r = {sizeof r, (uint32_t)registers, (uint32_t)local, (uint32_t)shared};
  return KL_PARAMS_OUT(cx, kiln_cuda_resources, &r, out);
}

kiln_status kiln_cuda_kernel_resources(kiln_context *cx, kiln_cuda_kernel *k, size_t i, kiln_cuda_resources *out) {
  kl_cuda_scope scope;
  KL_EXPECT(cx, k, out);
  if (i >= k->program.manifest.launch_count)
    return kl_invalid(cx, KL_NOWHERE, "expected a launch below %zu, found %zu", k->program.manifest.launch_count, i);
  KL_TRY(kiln_cuda_kernel_prepare(cx, k));
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  kiln_status st = read_resources(cx, k, k->fn[i], out);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}

// --- launching ----------------------------------------------------------------------------------------------------

typedef struct launch {
  kl_ctx *cx;
  kiln_cuda_kernel *k;
  const kiln_cuda_launch_params *p;
  uint64_t *at;     // by slot
  uint64_t *values; // of one kernel's arguments
  void **args;      // their addresses
} launch;

static kiln_status launch_one(void *user, size_t i);

static kiln_status launch_and_wait(void *user, size_t i) {
  const launch *l = user;
  double start = kl_seconds();
  KL_TRY(launch_one(user, i));
  KL_CUDA_TRY(l->cx, l->k->d, &l->k->fate, cuStreamSynchronize, l->p->stream);
  l->p->launched(l->p->user, i, kl_seconds() - start);
  return KILN_OK;
}

static kiln_status launch_one(void *user, size_t i) {
  const launch *l = user;
  const kiln_launch *at = &l->k->program.manifest.launches[i];
  uint32_t grid = kl_program_grid(&l->k->program, at, l->p->count), n = 0;
  if (grid == 0) return KILN_OK;
  for (size_t s = 0; s < at->argument_count; s++) {
    l->values[s] = kl_program_argument(&at->arguments[s], l->at, l->p->count, l->p->scratch);
    l->args[s] = &l->values[s];
  }
  CUlaunchAttribute attributes[2] = {{0}};
  if (at->cluster[0] * at->cluster[1] * at->cluster[2] > 1)
    attributes[n++] = (CUlaunchAttribute){
        .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        .value = {.clusterDim = {at->cluster[0], at->cluster[1], at->cluster[2]}},
    };
  if (at->programmatic)
    attributes[n++] = (CUlaunchAttribute){
        .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        .value = {.programmaticStreamSerializationAllowed = 1},
    };
  CUlaunchConfig config = {.gridDimX = grid,
                           .gridDimY = at->grid[1],
                           .gridDimZ = at->grid[2],
                           .blockDimX = at->block[0],
                           .blockDimY = at->block[1],
                           .blockDimZ = at->block[2],
                           .sharedMemBytes = at->dynamic_shared_bytes,
                           .hStream = l->p->stream,
                           .attrs = n ? attributes : NULL,
                           .numAttrs = n};
  KL_CUDA_TRY(l->cx, l->k->d, &l->k->fate, cuLaunchKernelEx, &config, l->k->fn[i], l->args, NULL);
  return KILN_OK;
}

// By a copy behind what was launched, which is waited for: a stream that is being captured cannot be.
static kiln_status read_condition(void *user, const kiln_argument *a, bool *again) {
  const launch *l = user;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  uint8_t byte = 0;
  KL_CUDA_TRY(l->cx, l->k->d, &l->k->fate, cuStreamIsCapturing, l->p->stream, &status);
  if (status != CU_STREAM_CAPTURE_STATUS_NONE)
    return kl_unsupported(l->cx, KL_NOWHERE,
                          "the stream is being captured and the module has a loop whose condition is read on the way");
  KL_CUDA_TRY(l->cx, l->k->d, &l->k->fate, cuMemcpyDtoHAsync, &byte,
              kl_program_argument(a, l->at, l->p->count, l->p->scratch), 1, l->p->stream);
  KL_CUDA_TRY(l->cx, l->k->d, &l->k->fate, cuStreamSynchronize, l->p->stream);
  *again = byte != 0;
  return KILN_OK;
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

static kiln_status launch_all(const launch *l) {
  const kiln_manifest *f = &l->k->program.manifest;
  kl_cuda_scope scope;
  KL_TRY(kl_program_arrays(l->cx, &l->k->program, l->p->parameters, l->p->results));
  if (f->parameter_count) memcpy(l->at, l->p->parameters, f->parameter_count * sizeof(uint64_t));
  if (f->result_count) memcpy(l->at + f->parameter_count, l->p->results, f->result_count * sizeof(uint64_t));
  KL_TRY(kl_program_check(l->cx, &l->k->program, l->at, l->p->count, l->p->scratch));
  KL_TRY(kl_cuda_enter(l->cx, l->k->d, &l->k->fate, l->k->context, &scope));
  kiln_status st = prepare_unless_capturing(l);
  kl_runner runner = {(void *)l, l->p->launched ? launch_and_wait : launch_one, read_condition};
  if (st == KILN_OK) st = kl_program_run(&l->k->program, l->at, &runner);
  return kl_cuda_leave(l->cx, l->k->d, &l->k->fate, &scope, st);
}

kiln_status kiln_cuda_kernel_launch(kiln_context *cx, kiln_cuda_kernel *k, const kiln_cuda_launch_params *params) {
  kiln_cuda_launch_params p;
  KL_EXPECT(cx, k, params);
  KL_TRY(KL_PARAMS_IN(cx, kiln_cuda_launch_params, params, &p));
  size_t slots = k->program.manifest.parameter_count + k->program.manifest.result_count;
  size_t words = slots + 2 * k->program.most_arguments + 1;
  uint64_t *memory = kl_alloc(cx, words * sizeof *memory);
  launch l = {cx, k, &p, memory, memory + slots, (void **)(memory + slots + k->program.most_arguments)};
  kiln_status st = launch_all(&l);
  kl_free(cx, memory, words * sizeof *memory);
  return st;
}
