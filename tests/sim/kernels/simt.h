// CUDA's thread hierarchy on the host: every thread of the blocks that run together is a fiber, which gives way where
// it waits. One launch at a time in a thread. Blocks run one after another, those of a cluster together, and all of
// them if the launch is cooperative.
#ifndef SIMT_H
#define SIMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct uint3 {
  unsigned x, y, z;
} uint3;

typedef struct simt_launch {
  void (*kernel)(void *const *args);
  void *const *args;
  uint3 grid, block, cluster;
  size_t dynamic_shared;
  bool cooperative;
  bool reverse; // threads take turns from the last to the first
} simt_launch;

// False if threads wait for each other and none can go on, or memory is short.
bool simt_run(const simt_launch *launch);

// --- for the running thread ---------------------------------------------------------------------------------------

const uint3 *simt_thread(void);
const uint3 *simt_block(void);
const uint3 *simt_block_size(void);
const uint3 *simt_grid_size(void);
unsigned simt_lane(void);
void simt_yield(void); // others run first

// The block's shared memory of this key (an address), of `size` bytes, undefined at first; the same for all its
// threads.
void *simt_shared(const void *key, size_t size);
void *simt_dynamic_shared(void);
// What `p`, in this block's shared memory, is in that of the cluster's block `rank`.
void *simt_map_shared(const void *p, unsigned rank);
unsigned simt_cluster_rank(void);

// Waits for all lanes of `mask`, then returns the 32 values of the warp's lanes; those outside the mask are undefined.
// Valid until the next call.
const uint64_t *simt_exchange(unsigned mask, uint64_t value);

// Barrier `id` of the block, of `count` threads (0: all that have not ended): returns how many came with a predicate.
unsigned simt_barrier(unsigned id, unsigned count, bool predicate);
void simt_barrier_arrive(unsigned id, unsigned count); // does not wait
void simt_barrier_cluster(void);
void simt_barrier_grid(void);

#endif
