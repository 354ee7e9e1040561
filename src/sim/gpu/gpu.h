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

#endif
