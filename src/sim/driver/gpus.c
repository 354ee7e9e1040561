// Devices that the simulator can play, by their published numbers, and their attributes.

#include "sim/driver/impl.h"

#define MIB *(uint64_t)1048576
#define KIB *1024u

// clang-format off
//  name        model                       sm   SMs  memory      L2            core kHz  memory kHz bus   threads blocks shared   opt-in   reserved copies f32:f64 cluster
const kl_gpu kl_gpus[] = {
  {"A100",     "NVIDIA A100-SXM4-80GB",      80, 108,  81920 MIB,  40960 KIB,   1410000,  1593000, 5120, 2048, 32, 164 KIB, 163 KIB, 1 KIB, 3,  2,  0},
  {"H100",     "NVIDIA H100 80GB HBM3",      90, 132,  81559 MIB,  51200 KIB,   1980000,  2619000, 5120, 2048, 32, 228 KIB, 227 KIB, 1 KIB, 3,  2,  16},
  {"H200",     "NVIDIA H200",                90, 132, 143771 MIB,  61440 KIB,   1980000,  3201000, 6144, 2048, 32, 228 KIB, 227 KIB, 1 KIB, 3,  2,  16},
  {"L40S",     "NVIDIA L40S",                89, 142,  46068 MIB,  98304 KIB,   2520000,  9001000,  384, 1536, 24, 100 KIB,  99 KIB, 1 KIB, 2, 64,  0},
  {"B200",     "NVIDIA B200",               100, 148, 183359 MIB, 129536 KIB,   1965000,  3996000, 8192, 2048, 32, 228 KIB, 227 KIB, 1 KIB, 4,  2,  16},
  {"RTX 4090", "NVIDIA GeForce RTX 4090",    89, 128,  24564 MIB,  73728 KIB,   2520000, 10501000,  384, 1536, 24, 100 KIB,  99 KIB, 1 KIB, 2, 64,  0},
};
// clang-format on
const size_t kl_gpus_n = KL_COUNT(kl_gpus);

// Letters and digits alone count, and no case: "rtx4090" is "RTX 4090".
static bool same_name(kl_str a, const char *b) {
  size_t i = 0;
  for (; *b; b++) {
    if (*b == ' ') continue;
    while (i < a.n && strchr(" -_", a.p[i])) i++;
    if (i >= a.n || (a.p[i] | 32) != (*b | 32)) return false;
    i++;
  }
  return i == a.n;
}

const kl_gpu *kl_gpu_find(kl_str name) {
  for (size_t i = 0; i < kl_gpus_n; i++)
    if (same_name(name, kl_gpus[i].name)) return &kl_gpus[i];
  return NULL;
}

// --- attributes ---------------------------------------------------------------------------------------------------

// What no row names is 0: limits and features that the simulator does not have.
bool kl_gpu_attribute(const kl_gpu *g, int ordinal, CUdevice_attribute which, int *out) {
  *out = 0;
  switch (which) {
#define A(name, value)                                                                                                 \
  case CU_DEVICE_ATTRIBUTE_##name: *out = (int)(value); return true;
    // clang-format off
    A(MAX_THREADS_PER_BLOCK, 1024)
    A(MAX_BLOCK_DIM_X, 1024)
    A(MAX_BLOCK_DIM_Y, 1024)
    A(MAX_BLOCK_DIM_Z, 64)
    A(MAX_GRID_DIM_X, 2147483647)
    A(MAX_GRID_DIM_Y, 65535)
    A(MAX_GRID_DIM_Z, 65535)
    A(MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024)
    A(TOTAL_CONSTANT_MEMORY, 64 * 1024)
    A(WARP_SIZE, 32)
    A(MAX_PITCH, 2147483647)
    A(MAX_REGISTERS_PER_BLOCK, 65536)
    A(CLOCK_RATE, g->clock_khz)
    A(TEXTURE_ALIGNMENT, 512)
    A(MULTIPROCESSOR_COUNT, g->multiprocessors)
    A(CAN_MAP_HOST_MEMORY, 1)
    A(COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT)
    A(MAXIMUM_TEXTURE1D_WIDTH, 131072)
    A(MAXIMUM_TEXTURE2D_WIDTH, 131072)
    A(MAXIMUM_TEXTURE2D_HEIGHT, 65536)
    A(MAXIMUM_TEXTURE3D_WIDTH, 16384)
    A(MAXIMUM_TEXTURE3D_HEIGHT, 16384)
    A(MAXIMUM_TEXTURE3D_DEPTH, 16384)
    A(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768)
    A(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768)
    A(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048)
    A(SURFACE_ALIGNMENT, 512)
    A(CONCURRENT_KERNELS, 1)
    A(ECC_ENABLED, g->bus_bits > 1024) // on-die with high-bandwidth memory
    A(PCI_BUS_ID, ordinal + 1)
    A(PCI_DEVICE_ID, 0)
    A(MEMORY_CLOCK_RATE, g->memory_clock_khz)
    A(GLOBAL_MEMORY_BUS_WIDTH, g->bus_bits)
    A(L2_CACHE_SIZE, g->l2)
    A(MAX_THREADS_PER_MULTIPROCESSOR, g->threads)
    A(ASYNC_ENGINE_COUNT, g->copy_engines)
    A(UNIFIED_ADDRESSING, 1)
    A(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768)
    A(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048)
    A(MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32768)
    A(MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32768)
    A(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192)
    A(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192)
    A(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32768)
    A(TEXTURE_PITCH_ALIGNMENT, 32)
    A(MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768)
    A(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32768)
    A(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046)
    A(MAXIMUM_SURFACE1D_WIDTH, 32768)
    A(MAXIMUM_SURFACE2D_WIDTH, 131072)
    A(MAXIMUM_SURFACE2D_HEIGHT, 65536)
    A(MAXIMUM_SURFACE3D_WIDTH, 16384)
    A(MAXIMUM_SURFACE3D_HEIGHT, 16384)
    A(MAXIMUM_SURFACE3D_DEPTH, 16384)
    A(MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32768)
    A(MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048)
    A(MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32768)
    A(MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32768)
    A(MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048)
    A(MAXIMUM_SURFACECUBEMAP_WIDTH, 32768)
    A(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32768)
    A(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046)
    A(MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 268435456)
    A(MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072)
    A(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000)
    A(MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120)
    A(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768)
    A(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768)
    A(COMPUTE_CAPABILITY_MAJOR, g->sm / 10)
    A(COMPUTE_CAPABILITY_MINOR, g->sm % 10)
    A(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32768)
    A(STREAM_PRIORITIES_SUPPORTED, 1)
    A(GLOBAL_L1_CACHE_SUPPORTED, 1)
    A(LOCAL_L1_CACHE_SUPPORTED, 1)
    A(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, g->shared)
    A(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536)
    A(MANAGED_MEMORY, 1)
    A(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, g->double_ratio)
    A(CONCURRENT_MANAGED_ACCESS, 1)
    A(COMPUTE_PREEMPTION_SUPPORTED, 1)
    A(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1)
    A(COOPERATIVE_LAUNCH, 1)
    A(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, g->shared_optin)
    A(HOST_REGISTER_SUPPORTED, 1)
    A(MAX_BLOCKS_PER_MULTIPROCESSOR, g->blocks)
    A(MAX_PERSISTING_L2_CACHE_SIZE, g->l2 / 4 * 3)
    A(MAX_ACCESS_POLICY_WINDOW_SIZE, 134213632)
    A(RESERVED_SHARED_MEMORY_PER_BLOCK, g->shared_reserved)
    A(READ_ONLY_HOST_REGISTER_SUPPORTED, 1)
    A(MEMORY_POOLS_SUPPORTED, 1)
    A(CLUSTER_LAUNCH, g->most_cluster > 0)
    A(CAN_USE_64_BIT_STREAM_MEM_OPS, 1)
    A(CAN_USE_STREAM_WAIT_VALUE_NOR, 1)
    A(UNIFIED_FUNCTION_POINTERS, 0)
    A(NUMA_ID, -1)
    A(HOST_NUMA_ID, 0)
#undef A
    // clang-format on
  }
  switch (which) {
#define X(name, value)                                                                                                 \
  case value: return true;
    KL_CUDA_DEVICE_ATTRIBUTES(X)
#undef X
  }
  return false;
}
