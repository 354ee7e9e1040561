// Blocks that a multiprocessor runs at once, by the rules of NVIDIA's occupancy calculator: registers are given to
// warps in units, from the part of the register file that belongs to the warp's scheduler; shared memory to blocks in
// units, beside what the system takes of each.

#include "sim/gpu/gpu.h"

enum { WARP = 32, SCHEDULERS = 4, REGISTERS = 65536, REGISTER_UNIT = 256, SHARED_UNIT = 128, MOST_REGISTERS = 255 };

static uint32_t up(uint32_t n, uint32_t unit) {
  return (n + unit - 1) / unit * unit;
}

static uint32_t by_registers(uint32_t warps, uint32_t registers) {
  if (registers == 0) return UINT32_MAX;
  uint32_t of_warp = up(registers * WARP, REGISTER_UNIT);
  if (registers > MOST_REGISTERS || up(warps, SCHEDULERS) * of_warp > REGISTERS) return 0;
  return REGISTERS / SCHEDULERS / of_warp * SCHEDULERS / warps;
}

static uint32_t by_shared(const kl_gpu *g, uint32_t shared) {
  if (shared > g->shared_optin) return 0;
  uint32_t of_block = up(shared + g->shared_reserved, SHARED_UNIT);
  return of_block ? g->shared / of_block : UINT32_MAX;
}

kl_resident kl_gpu_resident(const kl_gpu *g, uint32_t threads, uint32_t registers, uint32_t shared) {
  uint32_t warps = threads / WARP + (threads % WARP != 0);
  kl_resident r = {.limit = KL_RESIDENT_NONE};
  if (threads == 0 || threads > 1024) return r;
  const uint32_t limits[] = {[KL_RESIDENT_WARPS] = g->threads / WARP / warps,
                             [KL_RESIDENT_BLOCKS] = g->blocks,
                             [KL_RESIDENT_REGISTERS] = by_registers(warps, registers),
                             [KL_RESIDENT_SHARED] = by_shared(g, shared)};
  r.blocks = UINT32_MAX;
  for (uint32_t k = 0; k < KL_COUNT(limits); k++)
    if (limits[k] < r.blocks) r.blocks = limits[k], r.limit = (kl_resident_limit)k;
  if (r.blocks == 0) r.limit = KL_RESIDENT_NONE;
  r.warps = r.blocks * warps;
  return r;
}

uint32_t kl_gpu_carveout(const kl_gpu *g, uint32_t shared, uint32_t blocks) {
  static const uint32_t kib[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};
  uint64_t want = shared ? (uint64_t)up(shared + g->shared_reserved, SHARED_UNIT) * blocks : 0;
  for (size_t k = 0; k < KL_COUNT(kib); k++)
    if (kib[k] * 1024 >= want && kib[k] * 1024 <= g->shared) return kib[k] * 1024;
  return g->shared;
}
