// Devices that the simulator can play, by their published numbers.
#ifndef KL_SIM_GPU_H
#define KL_SIM_GPU_H

#include "base/base.h"

typedef struct kl_gpu {
  const char *name, *model; // "H100", "NVIDIA H100 80GB HBM3"
  uint16_t sm;              // 90
  uint16_t multiprocessors;
  uint64_t memory; // bytes
  uint32_t l2;
  uint32_t clock_khz, memory_clock_khz, bus_bits;
  uint32_t threads, blocks;      // most of a multiprocessor
  uint32_t shared, shared_optin; // bytes of a multiprocessor; of a block that asks for them
  uint32_t shared_reserved;      // bytes of each block for the system
  uint16_t copy_engines;
  uint16_t double_ratio; // throughput of f32 to that of f64
  uint16_t most_cluster; // blocks; 0: no clusters
} kl_gpu;
extern const kl_gpu kl_gpus[];
extern const size_t kl_gpus_n;
// By its name in the table; letters and digits alone count, and no case: "rtx4090" is "RTX 4090". NULL: none.
const kl_gpu *kl_gpu_find(kl_str name);

typedef enum kl_resident_limit {
  KL_RESIDENT_WARPS,
  KL_RESIDENT_BLOCKS,
  KL_RESIDENT_REGISTERS,
  KL_RESIDENT_SHARED,
  KL_RESIDENT_NONE, // no block fits
} kl_resident_limit;

typedef struct kl_resident {
  uint32_t blocks, warps;
  kl_resident_limit limit; // the first that allows no more
} kl_resident;

// Blocks of so many threads, registers of each and bytes of shared memory that a multiprocessor runs at once.
// `registers` 0: not known, no limit.
kl_resident kl_gpu_resident(const kl_gpu *g, uint32_t threads, uint32_t registers, uint32_t shared);
// Bytes of a multiprocessor that are shared memory while so many blocks run; the rest of its memory is L1.
uint32_t kl_gpu_carveout(const kl_gpu *g, uint32_t shared, uint32_t blocks);

#endif
