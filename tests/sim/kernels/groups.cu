// Cooperative groups: tiles, coalesced and labelled groups, tiles of several warps, copies by a group, and the whole
// grid. Twins: groups.c.
#include "device.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

// Sums, maxima and scans within tiles of 8, 16 and 32; votes and shuffles of a tile.
KERNEL groups_tiles(const int *__restrict__ in, int *__restrict__ out, int n) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto half = cg::tiled_partition<16>(warp);
  auto tile = cg::tiled_partition<8>(half);
  int i = (int)(block.group_index().x * block.group_dim().x + block.thread_rank()), v = i < n ? in[i] : 0;
  int sum = cg::reduce(tile, v, cg::plus<int>()), most = cg::reduce(half, v, cg::greater<int>());
  int all = cg::reduce(warp, v, cg::bit_xor<int>()), before = cg::exclusive_scan(tile, v, cg::plus<int>());
  int until = cg::inclusive_scan(warp, v, cg::plus<int>());
  int next = tile.shfl(v, (int)(tile.thread_rank() + 1) % 8), other = half.shfl_xor(v, 5), any = tile.any(v % 7 == 0);
  int votes = (int)half.ballot(v & 1), down = tile.shfl_down(v, 2);
  tile.sync();
  if (i < n) {
    int *r = out + i * 8;
    r[0] = sum;
    r[1] = most;
    r[2] = all;
    r[3] = before;
    r[4] = until;
    r[5] = next * 3 + other;
    r[6] = any ? votes : -votes;
    r[7] = down + (int)tile.meta_group_rank() * 1000 + (int)half.meta_group_size();
  }
}

// Threads that came into a branch together number themselves; one of them claims room. Where a group's run lies is
// open.
KERNEL groups_coalesced(const int *__restrict__ in, int *__restrict__ out, unsigned *used, int n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n || in[i] % 3 == 0) return;
  cg::coalesced_group active = cg::coalesced_threads();
  unsigned begin = 0;
  if (active.thread_rank() == 0) begin = atomicAdd(used, active.size());
  begin = active.shfl(begin, 0);
  out[begin + active.thread_rank()] = in[i];
}

// Groups of a warp's threads with one label, and of the two halves by a condition.
KERNEL groups_labelled(const int *__restrict__ in, int *__restrict__ out, int n) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), v = i < n ? in[i] : 3;
  auto same = cg::labeled_partition(warp, v % 4);
  int sum = cg::reduce(same, v, cg::plus<int>()), place = (int)same.thread_rank(), size = (int)same.size();
  auto parity = cg::binary_partition(warp, v & 1);
  int least = cg::reduce(parity, v, cg::less<int>()), scan = cg::inclusive_scan(parity, v, cg::plus<int>());
  if (i < n) {
    int *r = out + i * 4;
    r[0] = sum;
    r[1] = place * 100 + size;
    r[2] = least;
    r[3] = scan;
  }
}

// Tiles of 64 threads reach over two warps.
KERNEL groups_wide(const int *__restrict__ in, int *__restrict__ out, int n) {
  __shared__ cg::block_tile_memory<256> room;
  auto block = cg::this_thread_block(room);
  auto tile = cg::tiled_partition<64>(block);
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), v = i < n ? in[i] : 0;
  int sum = cg::reduce(tile, v, cg::plus<int>());
  tile.sync();
  int first = tile.shfl(v, 37), any = tile.any(v > 990);
  if (i < n) out[i] = sum + first * 3 + (any ? 100000 : 0) + (int)tile.meta_group_rank();
}

// A block copies its part to shared memory by itself (asynchronously where the device can), and then mirrors it.
KERNEL groups_copy(const float4 *__restrict__ in, float4 *__restrict__ out, int n) {
  extern __shared__ float4 part[];
  auto block = cg::this_thread_block();
  int size = (int)block.size(), base = (int)blockIdx.x * size, count = min(size, n - base),
      t = (int)block.thread_rank();
  cg::memcpy_async(block, part, in + base, sizeof(float4) * (size_t)count);
  cg::wait(block);
  if (t < count) out[base + t] = part[count - 1 - t];
}

// Rounds over the whole grid: each thread adds what its neighbours had in the round before.
KERNEL groups_grid(unsigned *a, unsigned *b, int rounds, int n) {
  cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < rounds; round++) {
    const unsigned *from = round & 1 ? b : a;
    unsigned *to = round & 1 ? a : b;
    for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size())
      to[i] = from[i] * 3 + from[(i + 1) % n] + from[(i + n - 1) % n];
    grid.sync();
  }
}
