// Half, bfloat16 and fp8: arithmetic of pairs, saturation, comparisons, conversions of every rounding, atomics, a
// product.
#include "device.h"
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
DEVICE unsigned short simt_fp8_to_half(unsigned char v, __nv_fp8_interpretation_t kind) {
  return __nv_cvt_fp8_to_halfraw(v, kind).x;
}
#else
#include "narrow.h"
#endif

#define PAIRS(r)                                                                                                       \
  r[0] = __hadd2(a, b);                                                                                                \
  r[1] = __hsub2(a, b);                                                                                                \
  r[2] = __hmul2(a, b);                                                                                                \
  r[3] = __hfma2(a, b, c);                                                                                             \
  r[4] = __hmin2(a, b);                                                                                                \
  r[5] = __hmax2(a, b);                                                                                                \
  r[6] = __hneg2(a);                                                                                                   \
  r[7] = __habs2(a);                                                                                                   \
  r[8] = __hgt2(a, b);                                                                                                 \
  r[9] = __heq2(a, c);                                                                                                 \
  r[10] = __hadd2_sat(a, b);                                                                                           \
  r[11] = __hfma2_sat(a, b, c);

KERNEL3(narrow_half, const __half2 *__restrict__, in, __half2 *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  __half2 a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2], *r = out + i * 14;
  PAIRS(r)
  r[12] = __lowhigh2highlow(__hadd2(__half2half2(__low2half(a)), b));
#if ARCH(80)
  r[13] = __hfma2_relu(a, b, c);
#else
  r[13] = __hmax2(__hfma2(a, b, c), __floats2half2_rn(0.0f, 0.0f));
#endif
}

KERNEL3(narrow_bfloat, const __nv_bfloat162 *__restrict__, in, __nv_bfloat162 *__restrict__, out, int, n) {
#if ARCH(80)
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  __nv_bfloat162 a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2], *r = out + i * 12;
  PAIRS(r)
#endif
}

// Floats and integers to halves and back.
KERNEL4(narrow_convert, const float *__restrict__, in, unsigned short *__restrict__, out, float *__restrict__, wide,
        int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float v = in[i];
  unsigned short *r = out + i * 8;
  __half h = __float2half_rn(v);
  r[0] = __half_as_ushort(h);
  r[1] = __half_as_ushort(__float2half_rz(v));
  r[2] = __half_as_ushort(__float2half_rd(v));
  r[3] = __half_as_ushort(__float2half_ru(v));
  r[4] = (unsigned short)__half2short_rn(h);
  r[5] = __half_as_ushort(__int2half_rn((int)__float_as_uint(v) >> 12));
  r[6] = __half_as_ushort(__uint2half_rz(__float_as_uint(v) >> 15));
  r[7] = (unsigned short)__half2int_rz(h);
  __nv_bfloat16 near = __float2bfloat16_rn(v), down = __float2bfloat16_rz(v);
  wide[i * 4] = __half2float(h);
  wide[i * 4 + 1] = __bfloat162float(near);
  wide[i * 4 + 2] = __bfloat162float(down);
  wide[i * 4 + 3] = __half2float(__ushort_as_half((unsigned short)(i * 7)));
}

// Floats to both kinds of fp8, single and in pairs, and every fp8 to half.
KERNEL5(narrow_fp8, const float *__restrict__, in, unsigned char *__restrict__, out, unsigned short *__restrict__,
        pairs, unsigned short *__restrict__, halves, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float v = in[i];
  float2 pair = make_float2(v, -in[n - 1 - i]);
  out[2 * i] = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3);
  out[2 * i + 1] = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E5M2);
  pairs[2 * i] = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
  pairs[2 * i + 1] = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E5M2);
  halves[2 * i] = simt_fp8_to_half((unsigned char)i, __NV_E4M3);
  halves[2 * i + 1] = simt_fp8_to_half((unsigned char)i, __NV_E5M2);
}

// c[m,n] = a[m,k] * b[k,n], two columns a thread, in halves; and the same with float sums.
KERNEL7(narrow_matmul, const __half *__restrict__, a, const __half2 *__restrict__, b, __half2 *__restrict__, c,
        float2 *__restrict__, wide, int, m, int, n, int, k) {
  SHARED2(__half2, tb, 16, 16);
  SHARED2(__half, ta, 16, 18);
  int x = (int)threadIdx.x, y = (int)threadIdx.y, row = (int)blockIdx.y * 16 + y, col = (int)blockIdx.x * 16 + x;
  __half2 sum = __floats2half2_rn(0.0f, 0.0f);
  float2 exact = make_float2(0.0f, 0.0f);
  __half zero = __float2half_rn(0.0f);
  for (int base = 0; base < k; base += 16) {
    ta[y][x] = row < m && base + x < k ? a[row * k + base + x] : zero;
    tb[y][x] = base + y < k && col < n ? b[(base + y) * n + col] : __half2half2(zero);
    __syncthreads();
    for (int i = 0; i < 16; i++) {
      __half2 va = __half2half2(ta[y][i]), vb = tb[i][x];
      float2 fa = __half22float2(va), fb = __half22float2(vb);
      sum = __hfma2(va, vb, sum);
      exact.x = fmaf(fa.x, fb.x, exact.x);
      exact.y = fmaf(fa.y, fb.y, exact.y);
    }
    __syncthreads();
  }
  if (row < m && col < n) {
    c[row * n + col] = sum;
    wide[row * n + col] = exact;
  }
}

#ifdef __CUDACC__
// Sums of whole numbers by atomics on pairs and on single halves.
KERNEL narrow_atomics(const int *__restrict__ in, __half2 *pairs, __half *halves, __nv_bfloat162 *bf_pairs, int n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  int v = in[i];
  atomicAdd(&pairs[i % 5], __floats2half2_rn((float)(v % 3), (float)-(v % 2)));
  atomicAdd(&halves[i % 7], __float2half_rn((float)(v % 4)));
#if __CUDA_ARCH__ >= 800
  atomicAdd(&bf_pairs[i % 31], __floats2bfloat162_rn((float)(v % 2), (float)(v % 3)));
#endif
}

// Powers of two and tanh of the hardware.
KERNEL narrow_approx(const __half *__restrict__ in, unsigned short *__restrict__ out, int n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  unsigned short h = __half_as_ushort(in[i]), e, t;
  unsigned pair = (unsigned)h << 16 | h, e2, t2;
  asm("ex2.approx.f16 %0, %1;" : "=h"(e) : "h"(h));
  asm("tanh.approx.f16 %0, %1;" : "=h"(t) : "h"(h));
  asm("ex2.approx.f16x2 %0, %1;" : "=r"(e2) : "r"(pair));
  asm("tanh.approx.f16x2 %0, %1;" : "=r"(t2) : "r"(pair));
  out[4 * i] = e;
  out[4 * i + 1] = t;
  out[4 * i + 2] = (unsigned short)e2;
  out[4 * i + 3] = (unsigned short)(t2 >> 16);
}
#endif
