// Artifacts loaded into a CUDA context: the code and its functions.

#include "jit/cuda/kernel.h"

#include <stdio.h>

// --- life ---------------------------------------------------------------------------------------------------------

kiln_status kiln_cuda_kernel_create(kiln_context *cx, const kiln_driver *d, const kiln_artifact *a, void *context,
                                    kiln_cuda_kernel **out) {
  CUcontext own = context;
  KL_CLEAR(out);
  KL_EXPECT(cx, d, a, out);
  if (a->host) return kl_invalid(cx, KL_NOWHERE, "expected an artifact for a GPU, found one for the host");
  KL_TRY(kl_cuda_usable(cx, d));
  if (!own) KL_CUDA_TRY(cx, d, NULL, cuCtxGetCurrent, &own);
  if (!own)
    return kl_invalid(cx, KL_NOWHERE, "expected a CUDA context, found none given and none current on this thread");
  kiln_context_params params = {.struct_size = sizeof params, .allocator = cx->allocator};
  kl_ctx *kcx = kiln_context_create(&params);
  if (!kcx) return kl_out_of_memory(cx, sizeof *kcx, "a kernel");
  kiln_cuda_kernel *k = kl_alloc(kcx, sizeof *k);
  *k = (kiln_cuda_kernel){.cx = kcx, .d = d, .context = own, .a = kl_artifact_share(a)};
  kl_arena_init(&k->arena, kcx);
  pthread_mutex_init(&k->loading, NULL);
  kl_program_make(&k->program, &k->arena, a);
  k->fn = KL_NEW_N(&k->arena, CUfunction, a->manifest.launch_count);
  kiln_status st = a->less ? kiln_cuda_kernel_create(cx, d, a->less, own, &k->less) : KILN_OK;
  if (st == KILN_OK)
    *out = k;
  else
    kiln_cuda_kernel_destroy(&k);
  return st;
}

// Failures are not told: the context may be gone already. Its modules went with it then; libraries belong to no
// context. In a child of the process that has loaded it there is nothing to be unloaded.
static void unload(kiln_cuda_kernel *k) {
  CUcontext current = NULL, popped;
  const kl_cuda_table *fn = &k->d->fn;
  if (kl_cuda_is_forked(k->d) || (!k->library && !k->module && !k->conditions)) return;
  CUresult code = fn->cuCtxGetCurrent(&current);
  bool there = code == CUDA_SUCCESS && current == k->context;
  if (code == CUDA_SUCCESS && !there) code = fn->cuCtxPushCurrent(k->context);
  bool pushed = code == CUDA_SUCCESS && !there;
  if (k->library) fn->cuLibraryUnload(k->library);
  if (k->module && code != CUDA_ERROR_CONTEXT_IS_DESTROYED) fn->cuModuleUnload(k->module);
  if (k->conditions && code != CUDA_ERROR_CONTEXT_IS_DESTROYED) fn->cuModuleUnload(k->conditions);
  if (pushed) fn->cuCtxPopCurrent(&popped);
  k->library = NULL;
  k->module = k->conditions = NULL;
}

void kiln_cuda_kernel_destroy(kiln_cuda_kernel **kp) {
  if (!kp || !*kp) return;
  kiln_cuda_kernel *k = *kp;
  kl_ctx *cx = k->cx;
  kiln_cuda_kernel_destroy(&k->less);
  unload(k);
  pthread_mutex_destroy(&k->loading);
  kiln_artifact_destroy(&k->a);
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
  char detail[KL_LOG_BYTES + 100];
  k->error_log[KL_LOG_BYTES - 1] = 0;
  if (k->error_log[0])
    snprintf(detail, sizeof detail, "The driver's compiler says: %s", k->error_log);
  else
    snprintf(detail, sizeof detail, "The code was made for %s.", k->a->target);
  return kl_cuda_failed(cx, k->d, &k->fate, call, code, detail);
}

// PTX, NUL-terminated, as the driver wants it; or machine code, which knows its length.
static kiln_status load_code(kl_ctx *cx, kiln_cuda_kernel *k, const void *image) {
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {k->error_log, (void *)(uintptr_t)(KL_LOG_BYTES - 1)};
  memset(k->error_log, 0, sizeof k->error_log);
  bool libraries = has_libraries(k->d);
  CUresult code = libraries ? k->d->fn.cuLibraryLoadData(&k->library, image, options, values, 2, NULL, NULL, 0)
                            : k->d->fn.cuModuleLoadDataEx(&k->module, image, 2, options, values);
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

static kiln_status load(kl_ctx *cx, kiln_cuda_kernel *k, const void *image) {
  KL_TRY(load_code(cx, k, image));
  kiln_status st = KILN_OK;
  for (size_t i = 0; i < k->program.manifest.launch_count && st == KILN_OK; i++)
    st = load_function(cx, k, &k->program.manifest.launches[i], &k->fn[i]);
  if (st == KILN_OK)
    kl_conditions_load(k);
  else
    unload(k);
  return st;
}

// --- machine code -------------------------------------------------------------------------------------------------

// What the driver's compiler makes of the PTX; the caller's (kl_free with *size + 1).
static CUresult compile_ptx(kl_ctx *cx, const kiln_cuda_kernel *k, void **code, size_t *size) {
  const kl_cuda_table *fn = &k->d->fn;
  CUlinkState link;
  void *made = NULL;
  *code = NULL;
  CUresult st = fn->cuLinkCreate(0, NULL, NULL, &link);
  if (st != CUDA_SUCCESS) return st;
  st = fn->cuLinkAddData(link, CU_JIT_INPUT_PTX, k->a->text[KILN_TEXT_PTX], k->a->text_size[KILN_TEXT_PTX] + 1, "kiln",
                         0, NULL, NULL);
  if (st == CUDA_SUCCESS) st = fn->cuLinkComplete(link, &made, size);
  if (st == CUDA_SUCCESS && (*code = kl_try_alloc(cx, *size + 1))) memcpy(*code, made, *size);
  fn->cuLinkDestroy(link);
  return st != CUDA_SUCCESS || *code ? st : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult find_key(const kiln_cuda_kernel *k, kl_code_key *out) {
  const kl_cuda_table *fn = &k->d->fn;
  CUdevice device;
  int major = 0, minor = 0;
  CUresult st = fn->cuCtxGetDevice(&device);
  if (st == CUDA_SUCCESS) st = fn->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (st == CUDA_SUCCESS) st = fn->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  *out = (kl_code_key){k->a->text[KILN_TEXT_PTX], k->a->text_size[KILN_TEXT_PTX], k->d->version,
                       (uint32_t)(10 * major + minor)};
  return st;
}

// False: there is no code, or the driver does not want it, of which nothing is told.
static bool load_quietly(kl_ctx *cx, kiln_cuda_kernel *k, void *code, size_t size) {
  kl_diag_mark before = kl_diag_here(cx);
  bool loaded = code && load(cx, k, code) == KILN_OK;
  if (!loaded) kl_diag_forget(cx, before, kl_diag_here(cx));
  if (code) kl_free(cx, code, size + 1);
  return loaded;
}

static kiln_status load_kept(kl_ctx *cx, kiln_cuda_kernel *k, const kl_code_store *store) {
  kl_code_key key;
  void *code = NULL;
  size_t size = 0;
  if (find_key(k, &key) != CUDA_SUCCESS) return load(cx, k, key.ptx);
  if (store->get(store->user, cx, &key, &code, &size)) {
    if (load_quietly(cx, k, code, size)) return KILN_OK;
    store->drop(store->user, cx, &key);
  }
  if (compile_ptx(cx, k, &code, &size) == CUDA_SUCCESS) {
    store->put(store->user, cx, &key, code, size);
    if (load_quietly(cx, k, code, size)) return KILN_OK;
    store->drop(store->user, cx, &key);
  }
  KL_TRY(kl_cuda_alive(cx, k->d, &k->fate));
  return load(cx, k, key.ptx);
}

// --- preparing ----------------------------------------------------------------------------------------------------

typedef struct code_source {
  const kiln_cubin *cubin; // the caller's machine code, and behind it that of the kernels for less alignment; or NULL
  const kl_code_store *store; // or NULL
} code_source;

static kiln_status load_from(kl_ctx *cx, kiln_cuda_kernel *k, const code_source *from) {
  if (from->cubin) return load(cx, k, from->cubin->bytes);
  KL_TRY(check_ptx(cx, k));
  return from->store ? load_kept(cx, k, from->store) : load(cx, k, k->a->text[KILN_TEXT_PTX]);
}

static kiln_status prepare(kl_ctx *cx, kiln_cuda_kernel *k, const code_source *from) {
  kl_cuda_scope scope;
  KL_TRY(kl_cuda_alive(cx, k->d, &k->fate));
  if (atomic_load(&k->ready) || k->program.manifest.launch_count == 0) return KILN_OK;
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  code_source of_less = {from->cubin ? from->cubin + 1 : NULL, from->store};
  kiln_status less = k->less ? prepare(cx, k->less, &of_less) : KILN_OK;
  if (less != KILN_OK) return kl_cuda_leave(cx, k->d, &k->fate, &scope, less);
  pthread_mutex_lock(&k->loading);
  kiln_status st = atomic_load(&k->ready) ? KILN_OK : load_from(cx, k, from);
  if (st == KILN_OK) atomic_store(&k->ready, true);
  pthread_mutex_unlock(&k->loading);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}

kiln_status kiln_cuda_kernel_prepare(kiln_context *cx, kiln_cuda_kernel *k) {
  KL_EXPECT(cx, k);
  return prepare(cx, k, &(code_source){0});
}

kiln_status kl_cuda_prepare_kept(kl_ctx *cx, kiln_cuda_kernel *k, const kl_code_store *store) {
  return prepare(cx, k, &(code_source){.store = store});
}

// The driver takes no length: what the file's header says of it has to be there.
static kiln_status check_cubin(kl_ctx *cx, const kiln_cuda_kernel *k, const kiln_cubin *c) {
  int need = kiln_cubin_driver_version(c->bytes, c->size), have = k->d->version;
  if (!c->bytes) return kl_invalid(cx, KL_NOWHERE, "expected a cubin, found NULL");
  if (!kl_cubin_is_whole(c->bytes, c->size))
    return kl_invalid(cx, KL_NOWHERE, "expected a cubin, which is a whole ELF file of 64 bits, found %zu other bytes",
                      c->size);
  if (have >= need) return KILN_OK;
  return kl_fail(
      cx, KILN_E_DEVICE, KL_NOWHERE,
      "the machine code is of CUDA %d's tools: expected a driver for CUDA %d.0 or newer, found one for %d.%d",
      need / 1000, need / 1000, have / 1000, have % 1000 / 10);
}

kiln_status kiln_cuda_kernel_prepare_cubins(kiln_context *cx, kiln_cuda_kernel *k, const kiln_cubin *cubins,
                                            size_t count) {
  KL_EXPECT(cx, k, cubins);
  if (count != (k->less ? 2 : 1))
    return kl_invalid(cx, KL_NOWHERE, "expected %s, found %zu",
                      k->less
                          ? "two cubins, as the artifact has kernels for less alignment, which are code of their own"
                          : "one cubin",
                      count);
  for (size_t i = 0; i < count; i++) KL_TRY(check_cubin(cx, k, &cubins[i]));
  return prepare(cx, k, &(code_source){.cubin = cubins});
}

kiln_status kiln_cuda_kernel_prepare_cubin(kiln_context *cx, kiln_cuda_kernel *k, const void *cubin, size_t size) {
  KL_EXPECT(cx, k, cubin);
  return kiln_cuda_kernel_prepare_cubins(cx, k, &(kiln_cubin){cubin, size}, 1);
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

// --- scratch memory -------------------------------------------------------------------------------------------------

static kiln_status fill_scratch(kl_ctx *cx, kiln_cuda_kernel *k, void *stream, uint64_t scratch) {
  const kiln_manifest *f = &k->a->manifest;
  if (f->scratch_zero_bytes)
    KL_CUDA_TRY(cx, k->d, &k->fate, cuMemsetD8Async, scratch, 0, f->scratch_zero_bytes, stream);
  if (f->constant_bytes)
    KL_CUDA_TRY(cx, k->d, &k->fate, cuMemcpyHtoDAsync, scratch + f->scratch_zero_bytes, f->constants, f->constant_bytes,
                stream);
  return KILN_OK;
}

kiln_status kiln_cuda_kernel_fill_scratch(kiln_context *cx, kiln_cuda_kernel *k, void *stream, uint64_t scratch) {
  kl_cuda_scope scope;
  KL_EXPECT(cx, k);
  KL_TRY(kl_program_check_scratch(cx, &k->program, scratch));
  KL_TRY(kl_cuda_enter(cx, k->d, &k->fate, k->context, &scope));
  kiln_status st = fill_scratch(cx, k, stream, scratch);
  return kl_cuda_leave(cx, k->d, &k->fate, &scope, st);
}
