// Reductions: trees in shared memory, shuffles, the last block of all, atomics.
#include "device.h"

// One sum a block.
KERNEL3(reduce_shared, const float *__restrict__, in, float *__restrict__, out, int, n) {
  SHARED1(float, part, 256);
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < (unsigned)n ? in[i] : 0.0f;
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step >>= 1) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

DEVICE float warp_sum(float v) {
  for (int step = 16; step > 0; step >>= 1) v += __shfl_down_sync(0xffffffff, v, step);
  return v;
}

// Grid-stride, then shuffles, then shuffles over the warps' sums.
KERNEL3(reduce_shuffle, const float *__restrict__, in, float *__restrict__, out, int, n) {
  SHARED1(float, warps, 32);
  float sum = 0.0f;
  for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x)) sum += in[i];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0.0f;
    sum = warp_sum(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}

GLOBAL unsigned blocks_done;

// The last block to finish adds what the others left; then it resets the count for the next launch.
KERNEL4(reduce_last_block, const float *__restrict__, in, float *, partial, float *, out, int, n) {
  SHARED1(float, part, 128);
  SHARED(bool, is_last);
  unsigned t = threadIdx.x;
  float sum = 0.0f;
  for (int i = (int)(blockIdx.x * blockDim.x + t); i < n; i += (int)(gridDim.x * blockDim.x)) sum += in[i];
  part[t] = sum;
  __syncthreads();
  for (unsigned step = 64; step > 0; step >>= 1) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
  }
  if (t == 0) {
    partial[blockIdx.x] = part[0];
    __threadfence();
    unsigned before = atomicInc(&blocks_done, gridDim.x - 1);
    __threadfence();
    *is_last = before == gridDim.x - 1;
  }
  __syncthreads();
  if (*is_last) {
    sum = 0.0f;
    for (unsigned i = t; i < gridDim.x; i += blockDim.x) sum += partial[i];
    part[t] = sum;
    __syncthreads();
    for (unsigned step = 64; step > 0; step >>= 1) {
      if (t < step) part[t] += part[t + step];
      __syncthreads();
    }
    if (t == 0) *out = part[0];
  }
}

typedef struct totals {
  unsigned long long sum64;
  double sum_f64;
  float sum_f32;
  int sum, least, most;
  unsigned all, any, parity, turns, down;
} totals;

// Every read-modify-write on one address each.
KERNEL3(reduce_atomics, const int *__restrict__, in, totals *, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  int v = in[i];
  atomicAdd(&out->sum64, (unsigned long long)((long long)v * 1000003));
  atomicAdd(&out->sum_f64, (double)v);
  atomicAdd(&out->sum_f32, (float)(v & 15));
  atomicAdd(&out->sum, v);
  atomicMin(&out->least, v);
  atomicMax(&out->most, v);
  atomicAnd(&out->all, (unsigned)v | 0x5000u);
  atomicOr(&out->any, (unsigned)v);
  atomicXor(&out->parity, (unsigned)v);
  atomicInc(&out->turns, 6);
  atomicDec(&out->down, 9);
}

// The first index of the greatest value: pairs go through 64-bit shuffles, then through a 64-bit atomic maximum.
KERNEL3(reduce_argmax, const int *__restrict__, in, unsigned long long *, best, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned long long key = 0;
  if (i < n) key = (unsigned long long)((unsigned)in[i] ^ 0x80000000u) << 32 | (0xffffffffu - (unsigned)i);
  for (int step = 1; step < 32; step <<= 1) {
    unsigned long long other = __shfl_xor_sync(0xffffffff, key, step);
    key = other > key ? other : key;
  }
  if (threadIdx.x % 32 == 0) atomicMax(best, key);
}

typedef struct moments {
  double count, mean, m2;
} moments;

DEVICE moments merge(moments a, moments b) {
  moments r;
  r.count = a.count + b.count;
  double d = b.mean - a.mean, share = r.count > 0.0 ? b.count / r.count : 0.0;
  r.mean = a.mean + d * share;
  r.m2 = a.m2 + b.m2 + d * d * a.count * share;
  return r;
}

// Welford's mean and variance, merged through shared memory in structs.
KERNEL3(reduce_moments, const float *__restrict__, in, moments *, out, int, n) {
  SHARED1(moments, part, 96);
  unsigned t = threadIdx.x;
  moments m = {0.0, 0.0, 0.0};
  for (int i = (int)(blockIdx.x * blockDim.x + t); i < n; i += (int)(gridDim.x * blockDim.x)) {
    double x = in[i], d = x - m.mean;
    m.count += 1.0;
    m.mean += d / m.count;
    m.m2 += d * (x - m.mean);
  }
  part[t] = m;
  __syncthreads();
  for (unsigned live = blockDim.x; live > 1; live = (live + 1) / 2) {
    unsigned half = (live + 1) / 2;
    if (t + half < live) part[t] = merge(part[t], part[t + half]);
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

// Warp reductions that sm_80 has instructions for, over full warps and over the odd lanes.
KERNEL3(reduce_redux, const unsigned *__restrict__, in, unsigned *__restrict__, out, int, n) {
#if ARCH(80)
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned v = i < n ? in[i] : 0u, *row = out + i / 32 * 10;
  unsigned sum = __reduce_add_sync(0xffffffff, v), least = __reduce_min_sync(0xffffffff, v);
  unsigned most = __reduce_max_sync(0xffffffff, v), all = __reduce_and_sync(0xffffffff, v);
  unsigned any = __reduce_or_sync(0xffffffff, v), parity = __reduce_xor_sync(0xffffffff, v);
  int low = __reduce_min_sync(0xffffffff, (int)v), high = __reduce_max_sync(0xffffffff, (int)v);
  if (threadIdx.x % 32 == 0) {
    row[0] = sum;
    row[1] = least;
    row[2] = most;
    row[3] = all;
    row[4] = any;
    row[5] = parity;
    row[6] = (unsigned)low;
    row[7] = (unsigned)high;
  }
  if (threadIdx.x & 1) {
    sum = __reduce_add_sync(0xaaaaaaaa, v);
    high = __reduce_max_sync(0xaaaaaaaa, (int)v);
    if (threadIdx.x % 32 == 1) {
      row[8] = sum;
      row[9] = (unsigned)high;
    }
  }
#endif
}
