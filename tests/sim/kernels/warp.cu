// Warp primitives: ballots, matches, votes, leaders, aggregated atomics.
#include "device.h"

// Keeps the odd elements, in order within a block; blocks claim room by one atomic. Where a block's run lies is open,
// so the runs' begins are given, too.
KERNEL5(warp_compact, const unsigned *__restrict__, in, unsigned *__restrict__, out, unsigned *, used,
        uint2 *__restrict__, runs, int, n) {
  SHARED1(unsigned, counts, 8);
  SHARED(unsigned, begin);
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t, lane = t % 32, v = i < (unsigned)n ? in[i] : 0u;
  unsigned kept = __ballot_sync(0xffffffff, v & 1), before = (unsigned)__popc(kept & ((1u << lane) - 1u));
  if (lane == 0) counts[t / 32] = (unsigned)__popc(kept);
  __syncthreads();
  if (t == 0) {
    unsigned sum = 0;
    for (unsigned w = 0; w < blockDim.x / 32; w++) {
      unsigned c = counts[w];
      counts[w] = sum;
      sum += c;
    }
    *begin = atomicAdd(used, sum);
    runs[blockIdx.x] = make_uint2(blockIdx.x, sum);
  }
  __syncthreads();
  if (v & 1) out[*begin + counts[t / 32] + before] = v;
}

// The lanes that come together elect the lowest, which claims room for all (warp-aggregated atomic).
KERNEL4(warp_aggregate, const float *__restrict__, in, float *__restrict__, out, unsigned *, used, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float v = in[i];
  if (v > 0.25f) {
    unsigned active = __activemask(), lane = threadIdx.x % 32, begin = 0;
    int leader = __ffs((int)active) - 1;
    if ((int)lane == leader) begin = atomicAdd(used, (unsigned)__popc(active));
    begin = __shfl_sync(active, begin, leader);
    out[begin + (unsigned)__popc(active & ((1u << lane) - 1u))] = v;
  }
}

// Lanes of equal keys, of 32 and 64 bits, and whether all are equal; per lane.
KERNEL4(warp_match, const unsigned *__restrict__, in, unsigned *__restrict__, out, unsigned *__restrict__, all, int,
        n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), same = 0, same64 = 0;
  unsigned v = i < n ? in[i] : 7u, peers = __match_any_sync(0xffffffff, v);
  unsigned long long wide = (unsigned long long)v << 32 | (threadIdx.x & 1);
  unsigned peers64 = __match_any_sync(0xffffffff, wide);
  unsigned mask = __match_all_sync(0xffffffff, v, &same), mask64 = __match_all_sync(0xffffffff, wide, &same64);
  if (i < n) {
    out[i] = peers ^ (peers64 << 1 | peers64 >> 31);
    all[i] = (mask ^ mask64) + (unsigned)same * 2 + (unsigned)same64;
  }
}

// Votes of whole warps and of halves that diverged; shuffles of every kind and width; broadcast of doubles.
KERNEL3(warp_votes, const int *__restrict__, in, int *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), lane = (int)(threadIdx.x % 32), v = i < n ? in[i] : 0, r = 0;
  r += __any_sync(0xffffffff, v > 900);
  r += __all_sync(0xffffffff, v > 10) * 2;
  if (lane < 16) {
    r += __any_sync(0x0000ffff, v > 500) * 4;
    r += __shfl_down_sync(0x0000ffff, v, 3, 16) * 8;
  } else {
    r -= __all_sync(0xffff0000, v < 900) * 4;
    r -= __shfl_up_sync(0xffff0000, v, 5, 16) * 8;
  }
  __syncwarp();
  r += __shfl_sync(0xffffffff, v, lane * 7 + 1) * 3;
  r ^= __shfl_sync(0xffffffff, v, lane + 1, 4) << 20;
  r ^= __shfl_xor_sync(0xffffffff, v, 5, 8) << 16;
  double d = __shfl_sync(0xffffffff, (double)v * 0.5, 31 - lane);
  r += (int)(d * 6.0);
  long long wide = __shfl_down_sync(0xffffffff, (long long)v << 33, 1, 8);
  r ^= (int)(wide >> 30);
  if (i < n) out[i] = r;
}

// Each lane walks a chain of its own length; those still walking vote at each step on who goes on, and the loop ends
// for all together.
KERNEL3(warp_worklist, const unsigned *__restrict__, in, unsigned *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned x = i < n ? in[i] | 1u : 1u, steps = 0, rounds = 0;
  while (__ballot_sync(0xffffffff, x != 1)) {
    if (x != 1) {
      x = x & 1 ? 3 * x + 1 : x / 2;
      steps++;
    }
    rounds++;
  }
  if (i < n) out[i] = steps << 16 | rounds;
}

// Bits turned into a table: 32 words a warp, transposed by shuffles (Hacker's Delight 7-3).
KERNEL3(warp_bit_transpose, const unsigned *__restrict__, in, unsigned *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned x = i < n ? in[i] : 0u, mask = 0x0000ffffu, lane = threadIdx.x % 32;
  for (unsigned step = 16; step > 0; step >>= 1) {
    unsigned y = __shfl_xor_sync(0xffffffff, x, (int)step);
    x = lane & step ? (x & ~mask) | (y >> step & mask) : (x & mask) | (y << step & ~mask);
    mask ^= mask << (step >> 1);
  }
  if (i < n) out[i] = x;
}
