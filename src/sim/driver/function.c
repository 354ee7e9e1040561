// Functions: attributes, and how many of their blocks a multiprocessor holds.

#include "sim/driver/impl.h"

static const kl_gpu *gpu_of(const kl_cu_function *f) {
  return kl_sim.devices[f->o.context->device].gpu;
}

// --- attributes -----------------------------------------------------------------------------------------------------

static int constant_bytes(const kl_ptx_module *m) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < m->nvars; i++)
    if (m->vars[i].space == KL_PTX_CONST) sum += m->vars[i].bytes;
  return sum < INT32_MAX ? (int)sum : INT32_MAX;
}

int kl_function_registers(const kl_cu_function *f) {
  uint32_t most = f->facts.func->tuning.maxnreg, n = f->facts.registers + 8; // the hardware's own
  if (n > 255) n = 255;
  return (int)(most && n > most ? most : n);
}

int kl_function_threads(const kl_cu_function *f) {
  return f->facts.max_threads ? (int)f->facts.max_threads : 1024;
}

// Whether PTX says how large its clusters are, and how large.
static int cluster_dim(const kl_cu_function *f, int d) {
  const kl_ptx_tuning *t = &f->facts.func->tuning;
  return t->reqnctapercluster[0] ? (int)(t->reqnctapercluster[d] ? t->reqnctapercluster[d] : 1) : f->cluster[d];
}

CUresult kl_cuFuncGetAttribute(int *out, CUfunction_attribute which, CUfunction handle) {
  kl_cu_function *f;
  KL_GIVEN(out);
  KL_RESULT(kl_function_check(handle, &f));
  const kl_ptx_module *ptx = kl_loaded_ptx(f->module->loaded);
  switch (which) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = kl_function_threads(f); break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = (int)f->facts.shared_bytes; break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *out = constant_bytes(ptx); break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *out = (int)f->facts.local_bytes; break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = kl_function_registers(f); break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION: *out = (int)ptx->sm; break;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *out = gpu_of(f)->sm; break;
  case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *out = 0; break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *out = f->dynamic_shared; break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *out = f->carveout; break;
  case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *out = f->cluster_must_be_set; break;
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *out = cluster_dim(f, 0); break;
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *out = cluster_dim(f, 1); break;
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *out = cluster_dim(f, 2); break;
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *out = f->nonportable; break;
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *out = f->scheduling; break;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult kl_cuFuncSetAttribute(CUfunction handle, CUfunction_attribute which, int value) {
  kl_cu_function *f;
  KL_RESULT(kl_function_check(handle, &f));
  switch (which) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    if (value < 0 || (int64_t)value + f->facts.shared_bytes > gpu_of(f)->shared_optin) return CUDA_ERROR_INVALID_VALUE;
    f->dynamic_shared = value;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    f->carveout = value;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    if (value < 0) return CUDA_ERROR_INVALID_VALUE;
    f->cluster[which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: f->cluster_must_be_set = value != 0; return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: f->nonportable = value != 0; return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    if (value < 0 || value > 2) return CUDA_ERROR_INVALID_VALUE;
    f->scheduling = value;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult kl_cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  kl_cu_function *f;
  KL_RESULT(kl_function_check(handle, &f));
  return config < 0 || config > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult kl_cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
  kl_cu_function *f;
  KL_RESULT(kl_function_check(handle, &f));
  return config < 0 || config > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult kl_cuFuncGetModule(CUmodule *out, CUfunction handle) {
  kl_cu_function *f;
  KL_GIVEN(out);
  KL_RESULT(kl_function_check(handle, &f));
  *out = KL_HANDLE(CUmodule, f->module);
  return CUDA_SUCCESS;
}

CUresult kl_cuFuncGetName(const char **out, CUfunction handle) {
  kl_cu_function *f;
  KL_GIVEN(out);
  KL_RESULT(kl_function_check(handle, &f));
  *out = f->name;
  return CUDA_SUCCESS;
}

CUresult kl_cuFuncIsLoaded(CUfunctionLoadingState *out, CUfunction handle) {
  kl_cu_function *f;
  KL_GIVEN(out);
  KL_RESULT(kl_function_check(handle, &f));
  *out = 1;
  return CUDA_SUCCESS;
}

CUresult kl_cuFuncLoad(CUfunction handle) {
  kl_cu_function *f;
  return kl_function_check(handle, &f);
}

// --- occupancy ------------------------------------------------------------------------------------------------------

// Blocks of so many threads that one multiprocessor holds at once, by each of its resources.
int kl_function_resident(const kl_cu_function *f, int threads, uint64_t dynamic) {
  const kl_gpu *g = gpu_of(f);
  uint64_t shared = f->facts.shared_bytes + dynamic;
  if (threads <= 0 || threads > kl_function_threads(f) || shared > g->shared_optin) return 0;
  return (int)kl_gpu_resident(g, (uint32_t)threads, (uint32_t)kl_function_registers(f), (uint32_t)shared).blocks;
}

CUresult kl_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, CUfunction handle, int threads,
                                                                 size_t dynamic, unsigned flags) {
  kl_cu_function *f;
  KL_GIVEN(out);
  if (threads <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_function_check(handle, &f));
  *out = kl_function_resident(f, threads, dynamic);
  return CUDA_SUCCESS;
}

CUresult kl_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction handle, int threads, size_t dynamic) {
  return kl_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, handle, threads, dynamic, CU_OCCUPANCY_DEFAULT);
}

// The block with the most threads at once; of several the largest.
CUresult kl_cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
                                                      CUoccupancyB2DSize shared_of, size_t dynamic, int limit,
                                                      unsigned flags) {
  kl_cu_function *f;
  KL_GIVEN(grid, block);
  if (limit < 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_function_check(handle, &f));
  int most = kl_function_threads(f), best = 0;
  if (limit && limit < most) most = limit;
  *grid = *block = 0;
  for (int threads = most; threads > 0; threads = (threads - 1) / 32 * 32) {
    int n = kl_function_resident(f, threads, shared_of ? shared_of(threads) : dynamic);
    if (n * threads <= best) continue;
    best = n * threads;
    *block = threads;
    *grid = n * gpu_of(f)->multiprocessors;
  }
  return CUDA_SUCCESS;
}

CUresult kl_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle, CUoccupancyB2DSize shared_of,
                                             size_t dynamic, int limit) {
  return kl_cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, shared_of, dynamic, limit,
                                                      CU_OCCUPANCY_DEFAULT);
}

CUresult kl_cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, CUfunction handle, int blocks, int threads) {
  kl_cu_function *f;
  KL_GIVEN(out);
  KL_RESULT(kl_function_check(handle, &f));
  if (blocks <= 0 || threads <= 0 || kl_function_resident(f, threads, 0) < blocks) return CUDA_ERROR_INVALID_VALUE;
  const kl_gpu *g = gpu_of(f);
  uint64_t each = (g->shared / (uint32_t)blocks - g->shared_reserved) / 128 * 128;
  if (each > g->shared_optin) each = g->shared_optin;
  *out = each > f->facts.shared_bytes ? each - f->facts.shared_bytes : 0;
  return CUDA_SUCCESS;
}

static unsigned cluster_of(const CUlaunchConfig *config, const kl_cu_function *f) {
  unsigned n = 1;
  for (int d = 0; d < 3; d++) n *= cluster_dim(f, d) ? (unsigned)cluster_dim(f, d) : 1;
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const CUlaunchAttributeValue *v = &config->attrs[i].value;
      n = v->clusterDim.x * v->clusterDim.y * v->clusterDim.z;
    }
  return n;
}

// Clusters lie within groups of 16 multiprocessors or so, of which tables say nothing: blocks alone are counted.
static CUresult cluster_question(const void *out, CUfunction handle, const CUlaunchConfig *config, kl_cu_function **f,
                                 int *resident) {
  KL_GIVEN(out, config);
  if (config->numAttrs && !config->attrs) return CUDA_ERROR_INVALID_VALUE;
  KL_RESULT(kl_function_check(handle, f));
  if (!gpu_of(*f)->most_cluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
  *resident = threads > 1024 ? 0 : kl_function_resident(*f, (int)threads, config->sharedMemBytes);
  return CUDA_SUCCESS;
}

CUresult kl_cuOccupancyMaxActiveClusters(int *out, CUfunction handle, const CUlaunchConfig *config) {
  kl_cu_function *f;
  int resident;
  KL_RESULT(cluster_question(out, handle, config, &f, &resident));
  unsigned size = cluster_of(config, f);
  if (size == 0 || size > gpu_of(f)->most_cluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *out = resident * gpu_of(f)->multiprocessors / (int)size;
  return CUDA_SUCCESS;
}

CUresult kl_cuOccupancyMaxPotentialClusterSize(int *out, CUfunction handle, const CUlaunchConfig *config) {
  kl_cu_function *f;
  int resident;
  KL_RESULT(cluster_question(out, handle, config, &f, &resident));
  *out = resident == 0 ? 0 : f->nonportable ? gpu_of(f)->most_cluster : 8;
  return CUDA_SUCCESS;
}
