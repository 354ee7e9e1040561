// Memory: vector accesses, cache hints, constant and initialised tables, pointers of unknown space, special registers,
// grids of three dimensions, threads that end early, output by printf.
#include "device.h"
#ifdef __CUDACC__
#include <cstdio>
#define PRINT(...) printf(__VA_ARGS__)
#else
#define PRINT(...) ((void)0)
#endif

typedef struct ALIGNED(16) halfwords {
  ushort4 low, high;
} halfwords;

// Loads and stores of 2 to 16 bytes.
KERNEL6(memory_vectors, const float4 *__restrict__, f, const uchar4 *__restrict__, b, const halfwords *__restrict__, h,
        float2 *, sums, ushort2 *, packed, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float4 v = f[i];
  uchar4 c = b[i];
  halfwords w = h[i];
  double2 unused = *(const double2 *)&f[i];
  sums[i] = make_float2(v.x + v.y + (float)c.x, v.z + v.w - (float)c.w);
  ushort2 p;
  p.x = (unsigned short)(w.low.x + w.low.y * 3 + w.high.w + c.y);
  p.y = (unsigned short)(w.high.x ^ w.high.y ^ w.low.z ^ w.low.w ^ w.high.z ^ c.z ^ (unsigned)(unused.x != unused.x));
  packed[i] = p;
}

// Loads and stores with each cache operator.
KERNEL3(memory_hints, const float *__restrict__, in, float *, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float a = __ldg(in + i), b = __ldca(in + (i + 1) % n), c = __ldcg(in + (i + 2) % n), d = __ldcs(in + (i + 3) % n);
  float e = __ldlu(in + (i + 4) % n), f = __ldcv(in + (i + 5) % n);
  const float2 g = __ldg((const float2 *)in + i / 2);
  __stwb(out + i, a + b * 2.0f);
  __stcg(out + n + i, c - d);
  __stcs(out + 2 * n + i, e * f);
  __stwt(out + 3 * n + i, g.x + g.y);
}

CONSTANT int primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
CONSTANT const double harmonic[4] = {1.0, 0.5, 1.0 / 3.0, 0.25};
GLOBAL const char words[3][8] = {"zero", "one\n", "two\x7f\xff"};
GLOBAL struct {
  short kind;
  float weight;
  unsigned long long mask;
} kinds[3] = {{-1, 0.25f, 0x0123456789abcdefULL}, {2, -1.5f, ~0ULL}, {3, 1e-3f, 1ULL << 40}};
GLOBAL int counter = 5;
GLOBAL int *counter_address = &counter;
GLOBAL int scratch[64];

// Initialised tables in constant and global memory, one that points to another, and a zeroed one.
KERNEL3(memory_tables, const unsigned *__restrict__, in, double *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  unsigned v = in[i], k = v % 3;
  double r = primes[v % 16] * harmonic[v >> 4 & 3] + (double)words[k][v >> 8 & 7];
  r += (double)kinds[k].kind * (double)kinds[k].weight + (double)(kinds[k].mask >> (v & 63));
  r += (double)*counter_address + (double)scratch[v % 64];
  out[i] = r;
}

DEVICE_CALL int sum_of(const int *p, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s = s * 3 + p[i];
  return s;
}

// One function reads shared, local and global memory through pointers of no stated space.
KERNEL3(memory_generic, const int *, in, int *__restrict__, out, int, n) {
  SHARED1(int, shared, 64 + 8);
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), t = (int)threadIdx.x, local[8];
  shared[t] = i < n ? in[i] : 1;
  if (t < 8) shared[64 + t] = t * t;
  __syncthreads();
  if (i >= n) return;
  for (int k = 0; k < 8; k++) local[k] = shared[t] + k * i;
  const int *from = i % 3 == 0 ? shared + t : i % 3 == 1 ? local : in + (i + 8 <= n ? i : 0);
  int count = n < 8 && i % 3 == 2 ? n : 8;
  int r = sum_of(from, count);
  local[r & 7] = i;
  out[i] = r + local[(i + 1) & 7];
}

// Where a thread is: lane, masks, positions in three dimensions.
KERNEL5(memory_registers, unsigned *__restrict__, out, unsigned, x, unsigned, y, unsigned, z, unsigned *__restrict__,
        seen) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x,
           size = blockDim.x * blockDim.y * blockDim.z;
  unsigned gx = blockIdx.x * blockDim.x + threadIdx.x, gy = blockIdx.y * blockDim.y + threadIdx.y;
  unsigned gz = blockIdx.z * blockDim.z + threadIdx.z, lane, lt, le, eq, ge, gt, inside;
#ifdef __CUDACC__
  unsigned sm, sms, warp, warps;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sms));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(warps));
  inside = sm < sms && warp < warps;
#else
  lane = simt_lane();
  eq = 1u << lane;
  lt = eq - 1;
  le = lt | eq;
  ge = ~lt;
  gt = ~le;
  inside = 1;
#endif
  seen[block * size + t] = (lane ^ lt ^ le << 1 ^ eq ^ ge >> 2 ^ gt << 2) + inside + (unsigned)warpSize;
  if (gx < x && gy < y && gz < z) out[(gz * y + gy) * x + gx] = block << 16 | t;
}

// Whole warps and single lanes end before barriers that the others use.
KERNEL3(memory_early_exit, const int *__restrict__, in, int *__restrict__, out, int, n) {
  SHARED1(int, part, 128);
  int t = (int)threadIdx.x, i = (int)(blockIdx.x * blockDim.x) + t;
  if (i >= n) return;
  part[t] = in[i];
  if (t >= 96) {
    out[i] = -1;
    return;
  }
  __syncthreads();
  int last = min(n - (int)(blockIdx.x * blockDim.x), 96) - 1;
  int v = part[last - t];
  __syncthreads();
  if (t % 5 == 4) {
    out[i] = -2;
    return;
  }
  part[t] = v * 2;
  __syncthreads();
  out[i] = part[t / 2] + v;
}

// What is printed does not change what is computed.
KERNEL3(memory_printf, const float *__restrict__, in, float *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float v = in[i];
  if (v > 0.9f) PRINT("thread %d of block %u: %f is above %s, %lld\n", i, blockIdx.x, (double)v, "0.9", (long long)n);
  if (i == 0) PRINT("hello\n");
  out[i] = v * 2.0f;
}

// Bytes that make a larger number wherever it lies, as files hold them.
KERNEL3(memory_unaligned, const unsigned char *__restrict__, in, unsigned long long *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  unsigned long long v = 0;
  double d;
  for (int k = 0; k < 8; k++) v |= (unsigned long long)in[i * 9 + k] << 8 * k;
  memcpy(&d, in + i * 9 + 1, sizeof d);
  out[i] = v ^ (unsigned long long)__double_as_longlong(d);
}
