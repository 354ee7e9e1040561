// Matrix products: tiles in shared memory, blocks in registers, a pipeline of asynchronous copies, doubles.
#include "device.h"
#ifdef __CUDACC__
#include <cuda_pipeline.h>
#endif

// c[m,n] = a[m,k] * b[k,n], one element a thread, tiles of 16 by 16.
KERNEL6(matmul_tiled, const float *__restrict__, a, const float *__restrict__, b, float *__restrict__, c, int, m, int,
        n, int, k) {
  SHARED2(float, ta, 16, 16);
  SHARED2(float, tb, 16, 16);
  int x = (int)threadIdx.x, y = (int)threadIdx.y, row = (int)blockIdx.y * 16 + y, col = (int)blockIdx.x * 16 + x;
  float sum = 0.0f;
  for (int base = 0; base < k; base += 16) {
    ta[y][x] = row < m && base + x < k ? a[row * k + base + x] : 0.0f;
    tb[y][x] = base + y < k && col < n ? b[(base + y) * n + col] : 0.0f;
    __syncthreads();
    UNROLL
    for (int i = 0; i < 16; i++) sum = fmaf(ta[y][i], tb[i][x], sum);
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

// Squares of n, a multiple of 64: 4 by 4 elements a thread, tiles of 64 by 64 by 8, vector loads; alpha and beta.
KERNEL6(matmul_register, const float *__restrict__, a, const float *__restrict__, b, float *__restrict__, c, int, n,
        float, alpha, float, beta) {
  SHARED2(float, ta, 8, 64 + 4);
  SHARED2(float, tb, 8, 64);
  int t = (int)threadIdx.x, tx = t % 16, ty = t / 16, row0 = (int)blockIdx.y * 64, col0 = (int)blockIdx.x * 64;
  float acc[4][4] = {{0.0f}};
  for (int base = 0; base < n; base += 8) {
    if (t < 128) {
      float4 v = *(const float4 *)&a[(row0 + t / 2) * n + base + t % 2 * 4];
      ta[t % 2 * 4 + 0][t / 2] = v.x;
      ta[t % 2 * 4 + 1][t / 2] = v.y;
      ta[t % 2 * 4 + 2][t / 2] = v.z;
      ta[t % 2 * 4 + 3][t / 2] = v.w;
    } else {
      int u = t - 128;
      *(float4 *)&tb[u / 16][u % 16 * 4] = *(const float4 *)&b[(base + u / 16) * n + col0 + u % 16 * 4];
    }
    __syncthreads();
    UNROLL
    for (int i = 0; i < 8; i++) {
      float4 va = *(const float4 *)&ta[i][ty * 4], vb = *(const float4 *)&tb[i][tx * 4];
      const float ra[4] = {va.x, va.y, va.z, va.w}, rb[4] = {vb.x, vb.y, vb.z, vb.w};
      UNROLL
      for (int p = 0; p < 4; p++) {
        UNROLL
        for (int q = 0; q < 4; q++) acc[p][q] = fmaf(ra[p], rb[q], acc[p][q]);
      }
    }
    __syncthreads();
  }
  UNROLL
  for (int p = 0; p < 4; p++) {
    float4 *to = (float4 *)&c[(row0 + ty * 4 + p) * n + col0 + tx * 4], old = *to;
    *to = make_float4(alpha * acc[p][0] + beta * old.x, alpha * acc[p][1] + beta * old.y,
                      alpha * acc[p][2] + beta * old.z, alpha * acc[p][3] + beta * old.w);
  }
}

// y[m] = a[m,k] * x[k] in doubles, a warp a row; k a multiple of 2.
KERNEL5(matvec_double, const double2 *__restrict__, a, const double2 *__restrict__, x, double *__restrict__, y, int, m,
        int, k) {
  int warp = (int)(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
  if (warp >= m) return;
  double sum = 0.0;
  for (int i = lane; i < k / 2; i += 32) {
    double2 va = a[warp * (k / 2) + i], vx = x[i];
    sum = fma(va.y, vx.y, fma(va.x, vx.x, sum));
  }
  for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (lane == 0) y[warp] = sum;
}

// Products of a row with a vector, in chunks of 64 that two asynchronous copies bring ahead; k a multiple of 64.
KERNEL4(matvec_pipeline, const float *__restrict__, a, const float *__restrict__, x, float *__restrict__, y, int, k) {
  SHARED2(float, chunk, 2, 128);
  int t = (int)threadIdx.x, chunks = k / 64, row = (int)blockIdx.x;
  const float *from = t < 16 ? a + (long long)row * k + t * 4 : x + (t - 16) * 4;
  float sum = 0.0f;
  if (t < 32) __pipeline_memcpy_async(&chunk[0][t * 4], from, 16);
  __pipeline_commit();
  for (int i = 0; i < chunks; i++) {
    if (i + 1 < chunks && t < 32) __pipeline_memcpy_async(&chunk[(i + 1) & 1][t * 4], from + (i + 1) * 64, 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum = fmaf(chunk[i & 1][t], chunk[i & 1][64 + t], sum);
    __syncthreads();
  }
  SHARED1(float, part, 64);
  part[t] = sum;
  __syncthreads();
  if (t < 32) {
    sum = part[t] + part[t + 32];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (t == 0) y[row] = sum;
  }
}
