// Launches: what may be launched, and with which arguments.

#include "sim/driver/impl.h"

// --- arguments ------------------------------------------------------------------------------------------------------

// Bytes of all parameters from a buffer of the caller's.
static CUresult buffer_of(void **extra, const void **buffer, size_t *size) {
  *buffer = NULL;
  *size = 0;
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (i >= 8 || !extra[i + 1]) return CUDA_ERROR_INVALID_VALUE;
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      *buffer = extra[i + 1];
    else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      memcpy(size, extra[i + 1], sizeof *size);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  return *buffer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_arguments(const kl_cu_function *f, kl_kernel_work *k, void **params, void **extra) {
  const void *buffer = NULL;
  size_t size = 0;
  if (k->nparams && !params && !extra) return CUDA_ERROR_INVALID_VALUE;
  if (extra) KL_RESULT(buffer_of(extra, &buffer, &size));
  if (buffer && size < k->param_bytes) return CUDA_ERROR_INVALID_VALUE;
  if (buffer) memcpy(k->params, buffer, k->param_bytes);
  for (uint32_t i = 0; i < k->nparams; i++) {
    uint32_t at, bytes;
    kl_kernel_param(f->kernel, i, &at, &bytes);
    k->pointers[i] = (char *)k->params + at;
    if (buffer) continue;
    if (!params[i]) return CUDA_ERROR_INVALID_VALUE;
    memcpy(k->pointers[i], params[i], bytes);
  }
  return CUDA_SUCCESS;
}

// Makes the work own its arguments; on a failure it owns nothing.
static CUresult take_arguments(const kl_cu_function *f, kl_kernel_work *k, void **params, void **extra) {
  if (params && extra) return CUDA_ERROR_INVALID_VALUE;
  k->nparams = f->facts.params;
  k->param_bytes = f->facts.param_bytes;
  k->params = kl_try_alloc(kl_sim.cx, k->param_bytes + 1);
  k->pointers = kl_try_alloc(kl_sim.cx, (k->nparams + 1) * sizeof *k->pointers);
  CUresult code = k->params && k->pointers ? copy_arguments(f, k, params, extra) : CUDA_ERROR_OUT_OF_MEMORY;
  if (!code) return CUDA_SUCCESS;
  kl_free(kl_sim.cx, k->params, k->param_bytes + 1);
  kl_free(kl_sim.cx, k->pointers, (k->nparams + 1) * sizeof *k->pointers);
  k->params = NULL;
  k->pointers = NULL;
  return code;
}

// --- shapes ---------------------------------------------------------------------------------------------------------

static CUresult check_cluster(const kl_cu_function *f, const kl_gpu *g, const kl_kernel_work *k) {
  const kl_ptx_tuning *t = &f->facts.func->tuning;
  uint64_t size = 1;
  bool given = k->cluster[0] != 0;
  if (!given && f->cluster_must_be_set && !t->reqnctapercluster[0]) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  for (int d = 0; d < 3; d++) {
    uint64_t required = t->reqnctapercluster[0] ? (t->reqnctapercluster[d] ? t->reqnctapercluster[d] : 1) : 0;
    uint64_t n = given ? k->cluster[d] : required ? required : 1;
    if (n == 0 || k->grid[d] % n || (given && required && n != required)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    size *= n;
  }
  if (size > 1 && (size > g->most_cluster || (size > 8 && !f->nonportable))) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return CUDA_SUCCESS;
}

static CUresult check_shape(const kl_cu_function *f, const kl_kernel_work *k) {
  const kl_gpu *g = kl_sim.devices[f->o.context->device].gpu;
  static const unsigned most_grid[] = {INT32_MAX, 65535, 65535}, most_block[] = {1024, 1024, 64};
  const kl_ptx_tuning *t = &f->facts.func->tuning;
  uint64_t threads = 1, blocks = 1;
  for (int d = 0; d < 3; d++) {
    if (k->grid[d] == 0 || k->grid[d] > most_grid[d] || k->block[d] == 0 || k->block[d] > most_block[d])
      return CUDA_ERROR_INVALID_VALUE;
    if (t->reqntid[0] && k->block[d] != (t->reqntid[d] ? t->reqntid[d] : 1)) return CUDA_ERROR_INVALID_VALUE;
    threads *= k->block[d];
    blocks *= k->grid[d];
  }
  if (threads > 1024 || (f->facts.max_threads && threads > f->facts.max_threads)) return CUDA_ERROR_INVALID_VALUE;
  if (k->shared > (unsigned)f->dynamic_shared) return CUDA_ERROR_INVALID_VALUE;
  if (f->facts.shared_bytes + (uint64_t)k->shared > g->shared_optin) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(check_cluster(f, g, k));
  uint64_t resident = (uint64_t)kl_function_resident(f, (int)threads, k->shared) * g->multiprocessors;
  if (k->cooperative && blocks > resident) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return CUDA_SUCCESS;
}

CUresult kl_kernel_work_check(const kl_kernel_work *k) {
  const kl_cu_function *f = kl_object_find((void *)(uintptr_t)k->function, KL_FUNCTION);
  return f ? check_shape(f, k) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult kl_kernel_work_make(CUfunction handle, const CUlaunchConfig *c, void **params, void **extra, kl_work *out) {
  kl_cu_function *f;
  KL_RESULT(kl_function_check(handle, &f));
  *out = (kl_work){.type = CU_GRAPH_NODE_TYPE_KERNEL, .context = f->o.context->o.handle};
  out->kernel = (kl_kernel_work){.function = f->o.handle,
                                 .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                                 .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                                 .shared = c->sharedMemBytes};
  if (f->o.handle != (uint64_t)(uintptr_t)handle) out->kernel.kern = (CUkernel)handle;
  for (unsigned i = 0; i < c->numAttrs; i++)
    KL_RESULT(kl_kernel_work_attribute(&out->kernel, c->attrs[i].id, &c->attrs[i].value));
  KL_RESULT(check_shape(f, &out->kernel));
  return take_arguments(f, &out->kernel, params, extra);
}

CUresult kl_kernel_work_attribute(kl_kernel_work *k, CUlaunchAttributeID which, const CUlaunchAttributeValue *v) {
  switch (which) {
  case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: k->cooperative = v->cooperative != 0; return CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    k->cluster[0] = v->clusterDim.x, k->cluster[1] = v->clusterDim.y, k->cluster[2] = v->clusterDim.z;
    if (!k->cluster[0] || !k->cluster[1] || !k->cluster[2]) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_PRIORITY: k->priority = v->priority; return CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_IGNORE: // those that say how fast, and not what
  case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
  case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
  case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
  case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
  case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
  case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: return CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
  case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
  case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// --- the calls ------------------------------------------------------------------------------------------------------

CUresult kl_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction handle, void **params, void **extra) {
  kl_cu_stream *s;
  kl_work w;
  KL_GIVEN(config);
  if (config->numAttrs && !config->attrs) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_stream_check(config->hStream, &s));
  KL_RESULT(kl_kernel_work_make(handle, config, params, extra, &w));
  if (w.context == s->o.context->o.handle) return kl_submit(s, &w);
  kl_work_free(&w);
  return CUDA_ERROR_INVALID_HANDLE;
}

CUresult kl_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                           unsigned shared, CUstream stream, void **params, void **extra) {
  CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
  return kl_cuLaunchKernelEx(&c, f, params, extra);
}

CUresult kl_cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                      unsigned bz, unsigned shared, CUstream stream, void **params) {
  CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
  CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, &a, 1};
  return kl_cuLaunchKernelEx(&c, f, params, NULL);
}
