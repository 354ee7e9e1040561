// Sorting: networks in shared memory and in a warp, odd-even transposition, merging, a pass of a radix sort.
#include "device.h"

// Bitonic: pairs of key and value, 512 a block, each block its own run. The tail is padded with the greatest key.
KERNEL3(sort_bitonic, unsigned *, keys, unsigned *, values, int, n) {
  SHARED1(unsigned, key, 512);
  SHARED1(unsigned, value, 512);
  unsigned t = threadIdx.x, base = blockIdx.x * 512;
  for (unsigned i = t; i < 512; i += 256) {
    bool inside = base + i < (unsigned)n;
    key[i] = inside ? keys[base + i] : 0xffffffffu;
    value[i] = inside ? values[base + i] : 0u;
  }
  for (unsigned size = 2; size <= 512; size <<= 1) {
    for (unsigned step = size / 2; step > 0; step >>= 1) {
      __syncthreads();
      unsigned low = 2 * t - (t & (step - 1)), high = low + step;
      bool rising = (low & size) == 0;
      if ((key[low] > key[high]) == rising) {
        unsigned k = key[low], v = value[low];
        key[low] = key[high];
        value[low] = value[high];
        key[high] = k;
        value[high] = v;
      }
    }
  }
  __syncthreads();
  for (unsigned i = t; i < 512; i += 256) {
    if (base + i < (unsigned)n) {
      keys[base + i] = key[i];
      values[base + i] = value[i];
    }
  }
}

// Odd-even transposition of a block's shorts in dynamic shared memory; as many threads as elements.
KERNEL2(sort_odd_even, short *, data, int, n) {
  DYNAMIC_SHARED(short, s);
  int t = (int)threadIdx.x, base = (int)(blockIdx.x * blockDim.x), count = min(n - base, (int)blockDim.x);
  if (t < count) s[t] = data[base + t];
  __syncthreads();
  for (int round = 0; round < count; round++) {
    if ((t & 1) == (round & 1) && t + 1 < count && s[t] > s[t + 1]) {
      short v = s[t];
      s[t] = s[t + 1];
      s[t + 1] = v;
    }
    __syncthreads();
  }
  if (t < count) data[base + t] = s[t];
}

// 32 floats a warp, by exchanges in registers.
KERNEL2(sort_warp, float *, data, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), lane = (int)(threadIdx.x % 32);
  float v = i < n ? data[i] : INFINITY;
  for (int size = 2; size <= 32; size <<= 1) {
    for (int step = size / 2; step > 0; step >>= 1) {
      float other = __shfl_xor_sync(0xffffffff, v, step);
      bool rising = (lane & size) == 0, lower = (lane & step) == 0;
      v = rising == lower ? fminf(v, other) : fmaxf(v, other);
    }
  }
  if (i < n) data[i] = v;
}

// Merges sorted a[na] and b[nb]: each thread finds its place on the merge path and merges eight elements.
KERNEL5(sort_merge, const int *__restrict__, a, const int *__restrict__, b, int *__restrict__, out, int, na, int, nb) {
  int first = (int)(blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (first >= na + nb) return;
  int low = max(0, first - nb), high = min(first, na);
  while (low < high) {
    int mid = (low + high) / 2;
    if (a[mid] <= b[first - 1 - mid])
      low = mid + 1;
    else
      high = mid;
  }
  int i = low, j = first - low, end = min(first + 8, na + nb);
  for (int k = first; k < end; k++) {
    bool from_a = j >= nb || (i < na && a[i] <= b[j]);
    out[k] = from_a ? a[i++] : b[j++];
  }
}

// One stable pass over a digit of four bits by a single block: counts by ballot, offsets by a scan, scatter. Warps take
// turns in chunks, so that equal digits keep their order. 128 threads.
KERNEL4(sort_radix_pass, const unsigned *__restrict__, in, unsigned *__restrict__, out, int, shift, int, n) {
  SHARED2(unsigned, counts, 16, 4);
  SHARED1(unsigned, base, 16);
  unsigned t = threadIdx.x, lane = t % 32, warp = t / 32, run = (unsigned)n, from = blockIdx.x * run;
  if (t < 16) base[t] = 0;
  __syncthreads();
  for (unsigned i = t; i < run; i += 128) atomicAdd(&base[in[from + i] >> shift & 15], 1u);
  __syncthreads();
  if (t == 0) {
    unsigned sum = 0;
    for (int d = 0; d < 16; d++) {
      unsigned c = base[d];
      base[d] = sum;
      sum += c;
    }
  }
  for (unsigned chunk = 0; chunk < run; chunk += 128) {
    unsigned i = chunk + t, digit = i < run ? in[from + i] >> shift & 15 : 16u, peers = 0xffffffffu, rank;
    for (int bit = 0; bit < 5; bit++) {
      unsigned ones = __ballot_sync(0xffffffff, digit >> bit & 1);
      peers &= digit >> bit & 1 ? ones : ~ones;
    }
    rank = (unsigned)__popc(peers & ((1u << lane) - 1));
    if (t < 64) counts[t / 4][t % 4] = 0;
    __syncthreads();
    if (digit < 16 && rank == 0) counts[digit][warp] = (unsigned)__popc(peers);
    __syncthreads();
    if (digit < 16) {
      unsigned to = base[digit] + rank;
      for (unsigned w = 0; w < warp; w++) to += counts[digit][w];
      out[from + to] = in[from + i];
    }
    __syncthreads();
    if (t < 16) base[t] += counts[t][0] + counts[t][1] + counts[t][2] + counts[t][3];
    __syncthreads();
  }
}
