// Threads that wait for each other: locks, flags, named barriers, barriers with votes, scopes, acquire and release.
#include "device.h"

DEVICE void lock(int *mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) __nanosleep(20);
  __threadfence();
}
DEVICE void unlock(int *mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

// One thread of each block enters a critical section and changes plain memory.
KERNEL4(sync_block_lock, const int *__restrict__, in, int *, mutex, long long *, state, int, n) {
  SHARED(int, sum);
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (threadIdx.x == 0) *sum = 0;
  __syncthreads();
  if (i < n) atomicAdd(sum, in[i]);
  __syncthreads();
  if (threadIdx.x == 0) {
    lock(mutex);
    state[0] += *sum;
    state[1] += (long long)*sum * *sum;
    state[2]++;
    unlock(mutex);
  }
}

// Every lane takes the lock: the one that holds it has to go on while the others of its warp spin.
KERNEL4(sync_lane_lock, const int *__restrict__, in, int *, mutex, int *, state, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  while (atomicCAS(mutex, 0, 1) != 0) {}
  __threadfence();
  state[0] += in[i];
  state[1] ^= in[i] * 3;
  if (in[i] > state[2]) state[2] = in[i];
  __threadfence();
  atomicExch(mutex, 0);
}

// A chain of blocks: each adds to the row that the one before left behind its flag.
KERNEL4(sync_block_chain, const float *__restrict__, in, float *, rows, volatile int *, flags, unsigned *, arrivals) {
  SHARED(unsigned, place);
  if (threadIdx.x == 0) *place = atomicAdd(arrivals, 1u);
  __syncthreads();
  unsigned b = *place, t = threadIdx.x, n = blockDim.x;
  float v = in[b * n + t];
  if (b > 0) {
    if (t == 0)
      while (flags[b - 1] == 0) SPIN();
    __threadfence();
    __syncthreads();
    v += rows[(b - 1) * n + (t + 1) % n];
  }
  rows[b * n + t] = v;
  __syncthreads();
  if (t == 0) {
    __threadfence(); // behind the barrier, so that it covers what the others wrote
    flags[b] = 1;
  }
}

// Lanes pass a token from the last to the first, which the order of threads alone would never let arrive.
KERNEL3(sync_lane_chain, const int *__restrict__, in, int *__restrict__, out, int, n) {
  SHARED1(int, value, 128);
  SHARED1(int, ready_words, 128);
  volatile int *ready = ready_words;
  int t = (int)threadIdx.x, i = (int)(blockIdx.x * blockDim.x) + t, v = i < n ? in[i] : 0;
  ready[t] = 0;
  __syncthreads();
  if (t % 32 != 31) {
    while (ready[t + 1] == 0) SPIN();
    __threadfence_block();
    v += value[t + 1] * 3;
  }
  value[t] = v;
  __threadfence_block();
  ready[t] = 1;
  if (i < n) out[i] = v;
}

DEVICE void barrier_sync(unsigned id, unsigned count) {
#ifdef __CUDACC__
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
#else
  simt_barrier(id, count, false);
#endif
}
DEVICE void barrier_arrive(unsigned id, unsigned count) {
#ifdef __CUDACC__
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
#else
  simt_barrier_arrive(id, count);
#endif
}

// Two warps fill two buffers in turn, two others use them: barriers 1 and 2 say "full", 3 and 4 "empty".
KERNEL3(sync_named, const float *__restrict__, in, float *__restrict__, out, int, rounds) {
  SHARED2(float, buffer, 2, 64);
  int t = (int)threadIdx.x, lane = t % 64;
  const float *from = in + blockIdx.x * (unsigned)rounds * 64;
  if (t < 64) {
    for (int k = 0; k < rounds; k++) {
      unsigned side = (unsigned)k & 1;
      if (k >= 2) barrier_sync(3 + side, 128);
      buffer[side][lane] = from[k * 64 + lane] * 2.0f;
      __threadfence_block();
      barrier_arrive(1 + side, 128);
    }
  } else {
    float sum = 0.0f;
    for (int k = 0; k < rounds; k++) {
      unsigned side = (unsigned)k & 1;
      barrier_sync(1 + side, 128);
      sum = fmaf(sum, 0.5f, buffer[side][63 - lane]);
      if (k + 2 < rounds) barrier_arrive(3 + side, 128);
    }
    out[blockIdx.x * 64 + (unsigned)lane] = sum;
  }
}

// Barriers that count, and vote; every thread sees the same.
KERNEL3(sync_votes, const int *__restrict__, in, int *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), v = i < n ? in[i] : 50;
  int small = __syncthreads_count(v < 30), any = __syncthreads_or(v > 98), all = __syncthreads_and(v > 0);
  if (i < n) out[i] = small * 4 + (any ? 2 : 0) + (all ? 1 : 0);
}

// Atomics of the block, of the device and of the system; a compare-and-swap loop for a float maximum, another for
// bytes.
KERNEL5(sync_scopes, const float *__restrict__, in, unsigned *, counts, float *, most, unsigned *, bytes, int, n) {
  SHARED(unsigned, local);
  SHARED(unsigned long long, wide);
  if (threadIdx.x == 0) {
    *local = 0;
    *wide = 0;
  }
  __syncthreads();
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  float v = i < n ? in[i] : 0.0f;
  atomicAdd_block(local, v > 0.5f ? 1u : 0u);
  unsigned long long seen = 0, before;
  do {
    before = seen;
    seen = atomicCAS(wide, before, before * 3 + 1);
  } while (seen != before);
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd_system(&counts[0], *local);
    atomicMax_block(&counts[1 + blockIdx.x], *local);
    atomicOr_system(&counts[1 + blockIdx.x], (unsigned)*wide << 16);
    __threadfence_system();
  }
  unsigned *bits = (unsigned *)most, old = __float_as_uint(0.0f);
  while (v > __uint_as_float(old)) {
    unsigned now = atomicCAS_system(bits, old, __float_as_uint(v));
    if (now == old) break;
    old = now;
  }
  unsigned *word = &bytes[(i / 4) % 8], shift = (unsigned)(i % 4) * 8, was = 0, next;
  do {
    next = was;
    was = atomicCAS(word, next, (next & ~(255u << shift)) | (((next >> shift) + 1u) & 255u) << shift);
  } while (was != next);
}

// Release and acquire without fences; a counter that is reduced with release.
KERNEL4(sync_release, const int *__restrict__, in, int *, data, unsigned *, flag, int *__restrict__, out) {
  unsigned t = threadIdx.x, b = blockIdx.x, n = blockDim.x;
  if (b == 0) {
    data[t] = in[t] * 2;
    __syncthreads();
#ifdef __CUDACC__
    if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1u) : "memory");
#else
    if (t == 0) *flag = 1;
#endif
    out[t] = -in[t];
  } else {
    if (t == 0) {
      unsigned seen;
      do {
#ifdef __CUDACC__
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
#else
        simt_yield();
        seen = *flag;
#endif
      } while (seen == 0);
    }
    __syncthreads();
    out[b * n + t] = data[(t * 5 + b) % n] + in[t];
#ifdef __CUDACC__
    if (t == 0) asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(flag + 1), "r"(b) : "memory");
#else
    if (t == 0) flag[1] += b;
#endif
  }
}

// Clocks do not run backwards, and time passes while a thread sleeps.
KERNEL2(sync_clock, int *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
#ifdef __CUDACC__
  long long start = clock64();
  unsigned low = (unsigned)clock();
  unsigned long long timer, later;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer)::"memory");
  __nanosleep(100u + threadIdx.x % 3u);
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later)::"memory");
  unsigned low_later = (unsigned)clock();
  int forwards = clock64() > start && later >= timer && (int)(low_later - low) > 0;
#else
  int forwards = 1;
#endif
  if (i < n) out[i] = forwards;
}
