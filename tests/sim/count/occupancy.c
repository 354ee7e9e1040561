// Blocks that a multiprocessor runs at once: by hand for each limit and device, and everywhere as NVIDIA's own header
// has it, where it is installed.
#include "sim/gpu/gpu.h"
#include "support/suite.h"

#if __has_include(<cuda_occupancy.h>)
#define HAS_NVIDIA 1
struct cudaFuncAttributes;
struct cudaDeviceProp;
#include <cuda_occupancy.h>
#endif
#include <stdio.h>

// By the tables of the CUDA programming guide: 65536 registers, 64 warps and 32 blocks of a multiprocessor (48 and 24
// of sm_89); registers in units of 256 of a warp; shared memory in units of 128 bytes, 1 KiB more of each block.
static const struct {
  const char *gpu;
  uint32_t threads, registers, shared, blocks;
  kl_resident_limit limit;
} rows[] = {
    {"A100", 256, 32, 0, 8, KL_RESIDENT_WARPS},           // 64 / 8
    {"A100", 32, 16, 0, 32, KL_RESIDENT_BLOCKS},          // 64 warps would fit
    {"A100", 256, 33, 0, 6, KL_RESIDENT_REGISTERS},       // 40 * 32 = 1280; 16384 / 1280 = 12 * 4 = 48 / 8
    {"H100", 128, 64, 0, 8, KL_RESIDENT_REGISTERS},       // 2048; 8 * 4 = 32 / 4
    {"H100", 1024, 64, 0, 1, KL_RESIDENT_REGISTERS},      // 32 / 32
    {"H100", 1024, 65, 0, 0, KL_RESIDENT_NONE},           // 72 * 32 * 32 > 65536
    {"H100", 1024, 32, 0, 2, KL_RESIDENT_WARPS},          // 64 / 32
    {"H100", 128, 255, 0, 2, KL_RESIDENT_REGISTERS},      // 8192; 2 * 4 = 8 / 4
    {"H100", 128, 256, 0, 0, KL_RESIDENT_NONE},           // no thread has so many
    {"H100", 256, 32, 33280, 6, KL_RESIDENT_SHARED},      // 33280 + 1024 = 34304; 233472 / 34304
    {"H100", 256, 32, 232448, 1, KL_RESIDENT_SHARED},     // all of it
    {"H100", 256, 32, 232449, 0, KL_RESIDENT_NONE},       // more than a block may have
    {"H200", 96, 40, 0, 16, KL_RESIDENT_REGISTERS},       // 1280; 12 * 4 = 48 / 3
    {"H200", 33, 16, 0, 32, KL_RESIDENT_WARPS},           // 64 / 2, as many as blocks
    {"L40S", 256, 32, 0, 6, KL_RESIDENT_WARPS},           // 48 / 8
    {"L40S", 64, 16, 0, 24, KL_RESIDENT_WARPS},           // 48 / 2
    {"L40S", 32, 16, 0, 24, KL_RESIDENT_BLOCKS},          // 48 warps would fit
    {"L40S", 128, 32, 101376, 1, KL_RESIDENT_SHARED},     // 99 KiB
    {"L40S", 128, 32, 101377, 0, KL_RESIDENT_NONE},       // one byte more
    {"RTX 4090", 1024, 40, 0, 1, KL_RESIDENT_WARPS},      // 48 / 32
    {"RTX 4090", 512, 48, 0, 2, KL_RESIDENT_REGISTERS},   // 1536; 10 * 4 = 40 / 16
    {"B200", 512, 128, 0, 1, KL_RESIDENT_REGISTERS},      // 4096; 4 * 4 = 16 / 16
    {"B200", 128, 24, 227 * 1024, 1, KL_RESIDENT_SHARED}, // 228 KiB in all
    {"B200", 64, 32, 1, 32, KL_RESIDENT_WARPS},           // 1152 bytes each: not the limit
    {"B200", 128, 0, 0, 16, KL_RESIDENT_WARPS},           // registers not known
    {"B200", 0, 32, 0, 0, KL_RESIDENT_NONE},              // nobody
    {"B200", 1025, 32, 0, 0, KL_RESIDENT_NONE},           // too many
};

START_TEST(by_hand) {
  const kl_gpu *g = kl_gpu_find(kl_str_of(rows[_i].gpu));
  ck_assert(g != NULL);
  kl_resident r = kl_gpu_resident(g, rows[_i].threads, rows[_i].registers, rows[_i].shared);
  ck_assert_uint_eq(r.blocks, rows[_i].blocks);
  ck_assert_int_eq(r.limit, rows[_i].limit);
  ck_assert_uint_eq(r.warps, r.blocks * ((rows[_i].threads + 31) / 32));
}
END_TEST

// Shared memory of a multiprocessor, and what is asked for.
static const struct {
  const char *gpu;
  uint32_t shared, blocks, carveout;
} carveouts[] = {
    {"H100", 0, 8, 0},           {"H100", 1, 1, 8192},        {"H100", 7168, 1, 8192},    {"H100", 7169, 1, 16384},
    {"H100", 232448, 1, 233472}, {"A100", 166912, 1, 167936}, {"A100", 40000, 4, 167936}, {"L40S", 65536, 1, 102400},
};

START_TEST(carveout) {
  const kl_gpu *g = kl_gpu_find(kl_str_of(carveouts[_i].gpu));
  ck_assert_uint_eq(kl_gpu_carveout(g, carveouts[_i].shared, carveouts[_i].blocks), carveouts[_i].carveout);
}
END_TEST

#ifdef HAS_NVIDIA
static uint32_t nvidia(const kl_gpu *g, uint32_t threads, uint32_t registers, uint32_t shared) {
  cudaOccDeviceProp p = {.computeMajor = g->sm / 10,
                         .computeMinor = g->sm % 10,
                         .maxThreadsPerBlock = 1024,
                         .maxThreadsPerMultiprocessor = (int)g->threads,
                         .regsPerBlock = 65536,
                         .regsPerMultiprocessor = 65536,
                         .warpSize = 32,
                         .sharedMemPerBlock = 48 * 1024,
                         .sharedMemPerMultiprocessor = g->shared,
                         .numSms = g->multiprocessors,
                         .sharedMemPerBlockOptin = g->shared_optin,
                         .reservedSharedMemPerBlock = g->shared_reserved};
  cudaOccFuncAttributes a = {.maxThreadsPerBlock = 1024,
                             .numRegs = (int)registers,
                             .maxDynamicSharedSizeBytes = g->shared_optin,
                             .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN};
  cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED};
  cudaOccResult r;
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &state, (int)threads, shared)) return 0;
  return (uint32_t)r.activeBlocksPerMultiprocessor;
}
#endif

START_TEST(as_nvidia_has_it) {
#ifdef HAS_NVIDIA
  const kl_gpu *g = &kl_gpus[_i];
  for (uint32_t threads = 1; threads <= 1024; threads += threads < 70 ? 1 : 29)
    for (uint32_t registers = 1; registers < 256; registers++)
      for (uint32_t shared = 0; shared <= g->shared_optin; shared += registers % 16 == 0 ? 1511 : 40009) {
        uint32_t found = kl_gpu_resident(g, threads, registers, shared).blocks, want;
        want = nvidia(g, threads, registers, shared);
        EXPECT(found == want, "%s, %u threads, %u registers, %u bytes: found %u blocks, expected %u", g->name, threads,
               registers, shared, found, want);
      }
#else
  printf("# cuda_occupancy.h is not installed\n");
#endif
}
END_TEST

int main(void) {
  return RUN_TESTS("occupancy", NO_FRAME, {by_hand, (int)KL_COUNT(rows)}, {carveout, (int)KL_COUNT(carveouts)},
                   {as_nvidia_has_it, (int)kl_gpus_n});
}
