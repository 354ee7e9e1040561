// Stencils, convolutions and transposes, by tiles in shared memory with halos and padding.
#include "device.h"

CONSTANT float weights[9];

// Nine taps along a line, zeros outside.
KERNEL3(stencil_line, const float *__restrict__, in, float *__restrict__, out, int, n) {
  SHARED1(float, tile, 128 + 8);
  int t = (int)threadIdx.x, i = (int)(blockIdx.x * 128) + t;
  tile[t + 4] = i < n ? in[i] : 0.0f;
  if (t < 4) {
    tile[t] = i >= 4 && i - 4 < n ? in[i - 4] : 0.0f;
    tile[t + 132] = i + 128 < n ? in[i + 128] : 0.0f;
  }
  __syncthreads();
  float sum = 0.0f;
  UNROLL
  for (int k = 0; k < 9; k++) sum = fmaf(weights[k], tile[t + k], sum);
  if (i < n) out[i] = sum;
}

// One step of Jacobi's iteration on an n by n grid, and the greatest change, as the bits of a float that is not
// negative.
KERNEL4(stencil_jacobi, const double *__restrict__, in, double *__restrict__, out, unsigned *, change, int, n) {
  SHARED2(double, tile, 10, 34);
  int x = (int)threadIdx.x, y = (int)threadIdx.y, col = (int)blockIdx.x * 32 + x, row = (int)blockIdx.y * 8 + y;
  for (int r = y; r < 10; r += 8) {
    for (int c = x; c < 34; c += 32) {
      int gr = min(max((int)blockIdx.y * 8 + r - 1, 0), n - 1), gc = min(max((int)blockIdx.x * 32 + c - 1, 0), n - 1);
      tile[r][c] = in[gr * n + gc];
    }
  }
  __syncthreads();
  if (row >= n || col >= n) return;
  double v = tile[y + 1][x + 1];
  bool inner = row > 0 && col > 0 && row < n - 1 && col < n - 1;
  if (inner) v = 0.25 * (tile[y][x + 1] + tile[y + 2][x + 1] + tile[y + 1][x] + tile[y + 1][x + 2]);
  out[row * n + col] = v;
  float d = (float)fabs(v - tile[y + 1][x + 1]);
  if (d > 0.0f) atomicMax(change, __float_as_uint(d));
}

// A generation of Life on a torus of bytes; the kernel is launched once, each block does its rows of four cells a
// thread.
KERNEL4(stencil_life, const unsigned char *__restrict__, in, unsigned char *__restrict__, out, int, width, int,
        height) {
  int x0 = (int)(blockIdx.x * blockDim.x + threadIdx.x) * 4, y = (int)blockIdx.y;
  const unsigned char *up = in + (y + height - 1) % height * width, *mid = in + y * width;
  const unsigned char *down = in + (y + 1) % height * width;
  for (int x = x0; x < x0 + 4 && x < width; x++) {
    int l = x ? x - 1 : width - 1, r = x + 1 < width ? x + 1 : 0;
    int sum = up[l] + up[x] + up[r] + mid[l] + mid[r] + down[l] + down[x] + down[r];
    out[y * width + x] = sum == 3 || (sum == 2 && mid[x]);
  }
}

// A column of padding keeps the columns of the tile in different banks.
KERNEL4(transpose_padded, const float *__restrict__, in, float *__restrict__, out, int, rows, int, cols) {
  SHARED2(float, tile, 32, 33);
  int x = (int)threadIdx.x, y = (int)threadIdx.y, c0 = (int)blockIdx.x * 32, r0 = (int)blockIdx.y * 32;
  for (int k = y; k < 32; k += 8)
    if (r0 + k < rows && c0 + x < cols) tile[k][x] = in[(r0 + k) * cols + c0 + x];
  __syncthreads();
  for (int k = y; k < 32; k += 8)
    if (c0 + k < cols && r0 + x < rows) out[(c0 + k) * rows + r0 + x] = tile[x][k];
}

// Shorts, two a word, without padding but with the column turned by the row (a swizzle). Extents are multiples of 32.
KERNEL4(transpose_swizzled, const unsigned *__restrict__, in, unsigned *__restrict__, out, int, rows, int, cols) {
  SHARED2(unsigned short, tile, 32, 32);
  int t = (int)threadIdx.x, c0 = (int)blockIdx.x * 32, r0 = (int)blockIdx.y * 32;
  for (int k = t; k < 32 * 16; k += (int)blockDim.x) {
    int r = k / 16, c = k % 16 * 2;
    unsigned v = in[((r0 + r) * cols + c0 + c) / 2];
    tile[r][c ^ (r & 30)] = (unsigned short)v;
    tile[r][(c + 1) ^ (r & 30)] = (unsigned short)(v >> 16);
  }
  __syncthreads();
  for (int k = t; k < 32 * 16; k += (int)blockDim.x) {
    int c = k / 16, r = k % 16 * 2;
    unsigned v = tile[r][c ^ (r & 30)] | (unsigned)tile[r + 1][c ^ ((r + 1) & 30)] << 16;
    out[((c0 + c) * rows + r0 + r) / 2] = v;
  }
}

// Mirrors each block's part in dynamic shared memory that holds doubles, then their indices.
KERNEL4(reverse_dynamic, const double *__restrict__, in, double *__restrict__, out, int *__restrict__, from, int, n) {
  DYNAMIC_SHARED(double, value);
  int *index = (int *)(value + blockDim.x), t = (int)threadIdx.x, base = (int)(blockIdx.x * blockDim.x);
  int count = min(n - base, (int)blockDim.x);
  if (t < count) {
    value[count - 1 - t] = in[base + t];
    index[count - 1 - t] = base + t;
  }
  __syncthreads();
  if (t < count) {
    out[base + t] = value[t];
    from[base + t] = index[t];
  }
}
