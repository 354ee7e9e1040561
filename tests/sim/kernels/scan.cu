// Prefix sums: of a block, of warps with segments, work-efficient, and of the whole grid by decoupled look-back.
#include "device.h"

// Hillis and Steele, inclusive, two buffers.
KERNEL3(scan_block, const unsigned *__restrict__, in, unsigned *__restrict__, out, int, n) {
  SHARED2(unsigned, level, 2, 128);
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t, from = 0;
  level[0][t] = i < (unsigned)n ? in[i] : 0u;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step <<= 1) {
    level[from ^ 1][t] = t >= step ? level[from][t] + level[from][t - step] : level[from][t];
    from ^= 1;
    __syncthreads();
  }
  if (i < (unsigned)n) out[i] = level[from][t];
}

// Warps: inclusive sums that start anew at each flag, and exclusive maxima within groups of eight lanes.
KERNEL5(scan_warp, const float *__restrict__, in, const unsigned char *__restrict__, flag, float *__restrict__, sums,
        float *__restrict__, maxima, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), lane = (int)(threadIdx.x % 32);
  float v = i < n ? in[i] : 0.0f, most = v;
  unsigned heads = __ballot_sync(0xffffffff, i < n && flag[i]) | 1u;
  int first = 31 - __clz((int)(heads & (0xffffffffu >> (31 - lane))));
  UNROLL
  for (int step = 1; step < 32; step <<= 1) {
    float below = __shfl_up_sync(0xffffffff, v, step);
    if (lane - step >= first) v += below;
  }
  UNROLL
  for (int step = 1; step < 8; step <<= 1) {
    float below = __shfl_up_sync(0xffffffff, most, step, 8);
    if (lane % 8 >= step) most = fmaxf(most, below);
  }
  most = __shfl_up_sync(0xffffffff, most, 1, 8);
  if (i < n) {
    sums[i] = v;
    maxima[i] = lane % 8 ? most : -INFINITY;
  }
}

#define PAD(i) ((i) + ((i) >> 5)) // a word behind each 32, against bank conflicts

// Blelloch: exclusive, two elements a thread, up and down the tree; also the blocks' totals.
KERNEL4(scan_tree, const int *__restrict__, in, int *__restrict__, out, int *__restrict__, totals, int, n) {
  SHARED1(int, tree, PAD(256));
  int t = (int)threadIdx.x, base = (int)blockIdx.x * 256, offset = 1;
  for (int k = t; k < 256; k += 128) tree[PAD(k)] = base + k < n ? in[base + k] : 0;
  for (int live = 128; live > 0; live >>= 1) {
    __syncthreads();
    if (t < live) tree[PAD(offset * (2 * t + 2) - 1)] += tree[PAD(offset * (2 * t + 1) - 1)];
    offset *= 2;
  }
  if (t == 0) {
    totals[blockIdx.x] = tree[PAD(255)];
    tree[PAD(255)] = 0;
  }
  for (int live = 1; live < 256; live *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < live) {
      int left = PAD(offset * (2 * t + 1) - 1), right = PAD(offset * (2 * t + 2) - 1), v = tree[left];
      tree[left] = tree[right];
      tree[right] += v;
    }
  }
  __syncthreads();
  for (int k = t; k < 256; k += 128)
    if (base + k < n) out[base + k] = tree[PAD(k)];
}

enum { UNKNOWN = 0, AGGREGATE = 1, PREFIX = 2 };

// Merrill and Garland: a tile publishes its sum, adds those of tiles before it until one knows its prefix, and
// publishes its own. State and value share a 64-bit word, so that they change together. Tiles are numbered as blocks
// arrive.
KERNEL5(scan_lookback, const unsigned *__restrict__, in, unsigned *__restrict__, out, unsigned *, arrivals,
        volatile unsigned long long *, tiles, int, n) {
  SHARED1(unsigned, warps, 4);
  SHARED(unsigned, tile_shared);
  SHARED(unsigned, before_shared);
  unsigned t = threadIdx.x, lane = t % 32;
  if (t == 0) *tile_shared = atomicAdd(arrivals, 1u);
  __syncthreads();
  unsigned tile = *tile_shared, i = tile * 128 + t, v = i < (unsigned)n ? in[i] : 0u, sum = v;
  for (unsigned step = 1; step < 32; step <<= 1) {
    unsigned below = __shfl_up_sync(0xffffffff, sum, step);
    if (lane >= step) sum += below;
  }
  if (lane == 31) warps[t / 32] = sum;
  __syncthreads();
  for (unsigned w = 0; w < t / 32; w++) sum += warps[w];
  if (t == 127) {
    tiles[tile] = (unsigned long long)(tile ? AGGREGATE : PREFIX) << 32 | sum;
    unsigned before = 0;
    for (unsigned k = tile; k > 0;) {
      unsigned long long word = tiles[k - 1];
      unsigned state = (unsigned)(word >> 32);
      if (state == UNKNOWN) {
        SPIN();
        continue;
      }
      before += (unsigned)word;
      if (state == PREFIX) break;
      k--;
    }
    if (tile) tiles[tile] = (unsigned long long)PREFIX << 32 | (before + sum);
    *before_shared = before;
  }
  __syncthreads();
  if (i < (unsigned)n) out[i] = *before_shared + sum;
}
