// Histograms: by atomics in global and shared memory, and with lanes of equal bins together.
#include "device.h"

KERNEL3(histogram_global, const unsigned char *__restrict__, in, unsigned *__restrict__, bins, int, n) {
  for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x))
    atomicAdd(&bins[in[i]], 1u);
}

// A private histogram of 256 bins a block, sixteen bytes a load.
KERNEL3(histogram_shared, const uint4 *__restrict__, in, unsigned *__restrict__, bins, int, n) {
  SHARED1(unsigned, local, 256);
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  int vectors = n / 16;
  for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < vectors; i += (int)(gridDim.x * blockDim.x)) {
    uint4 v = in[i];
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
    UNROLL
    for (int k = 0; k < 4; k++) {
      UNROLL
      for (int b = 0; b < 32; b += 8) atomicAdd(&local[words[k] >> b & 255], 1u);
    }
  }
  if (blockIdx.x == 0) {
    const unsigned char *tail = (const unsigned char *)in;
    for (int i = vectors * 16 + (int)threadIdx.x; i < n; i += (int)blockDim.x) atomicAdd(&local[tail[i]], 1u);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i]) atomicAdd(&bins[i], local[i]);
}

// One atomic for each distinct bin of a warp.
KERNEL4(histogram_match, const float *__restrict__, in, unsigned *__restrict__, bins, int, nbin, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), lane = (int)(threadIdx.x % 32);
  unsigned mask = __ballot_sync(0xffffffff, i < n);
  if (i >= n) return;
  int bin = (int)(in[i] * (float)nbin);
  bin = min(max(bin, 0), nbin - 1);
  unsigned peers = __match_any_sync(mask, (unsigned)bin);
  if (__ffs((int)peers) - 1 == lane) atomicAdd(&bins[bin], (unsigned)__popc(peers));
}

// Counters of 8 bits, packed four to a word, each thread its own: no atomics. Dynamic shared memory [64
// words][threads].
KERNEL3(histogram_private, const unsigned char *__restrict__, in, unsigned *__restrict__, bins, int, n) {
  DYNAMIC_SHARED(unsigned char, counts);
  unsigned t = threadIdx.x, threads = blockDim.x;
  for (unsigned i = t; i < 64 * threads; i += threads) ((unsigned *)counts)[i] = 0;
  __syncthreads();
  int begin = (int)blockIdx.x * 128 * (int)threads;
  for (int k = 0; k < 128; k++) {
    int i = begin + k * (int)threads + (int)t;
    if (i < n) counts[((in[i] >> 2) * threads + t) * 4 + (in[i] & 3)]++;
  }
  __syncthreads();
  for (unsigned bin = t; bin < 256; bin += threads) {
    unsigned sum = 0;
    for (unsigned k = 0; k < threads; k++) sum += counts[((bin >> 2) * threads + (k + t) % threads) * 4 + (bin & 3)];
    atomicAdd(&bins[bin], sum);
  }
}
