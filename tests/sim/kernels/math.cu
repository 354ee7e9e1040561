// Elementary functions: CUDA's own over floats and doubles, and the fast ones of the hardware. What they must give is
// known to a bound only (math.c).
#include "device.h"

#ifdef __CUDACC__
KERNEL3(math_float, const float *__restrict__, in, float *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float x = in[i], p = fabsf(x) + 0.01f, *r = out + i * 24, s, c;
  sincosf(x * 100.0f, &s, &c);
  r[0] = expf(x);
  r[1] = exp2f(x);
  r[2] = expm1f(x);
  r[3] = logf(p);
  r[4] = log2f(p);
  r[5] = log1pf(p);
  r[6] = s;
  r[7] = c;
  r[8] = sinf(x * 1e6f); // reduced by many bits of pi
  r[9] = tanf(x);
  r[10] = atanf(x);
  r[11] = atan2f(x, 1.5f);
  r[12] = asinf(x * 0.05f);
  r[13] = acosf(x * 0.05f);
  r[14] = sinhf(x);
  r[15] = coshf(x);
  r[16] = tanhf(x);
  r[17] = powf(p, 1.7f);
  r[18] = cbrtf(x);
  r[19] = erff(x);
  r[20] = erfcf(x * 0.2f);
  r[21] = rsqrtf(p);
  r[22] = hypotf(x, 3.0f);
  r[23] = fmodf(x, 0.3f);
}

KERNEL3(math_double, const double *__restrict__, in, double *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  double x = in[i], p = fabs(x) + 0.01, *r = out + i * 16;
  r[0] = exp(x);
  r[1] = exp2(x);
  r[2] = log(p);
  r[3] = log2(p);
  r[4] = sin(x * 100.0);
  r[5] = cos(x * 1e8);
  r[6] = tan(x);
  r[7] = atan(x);
  r[8] = tanh(x);
  r[9] = pow(p, 1.7);
  r[10] = cbrt(x);
  r[11] = erf(x);
  r[12] = rsqrt(p);
  r[13] = expm1(x);
  r[14] = log1p(p);
  r[15] = fmod(x, 0.3);
}

KERNEL3(math_fast, const float *__restrict__, in, float *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float x = in[i], p = fabsf(x) + 0.01f, *r = out + i * 10;
  r[0] = __expf(x);
  r[1] = __exp10f(x * 0.25f);
  r[2] = __logf(p);
  r[3] = __log2f(p);
  r[4] = __sinf(x * 0.15f);
  r[5] = __cosf(x * 0.15f);
  r[6] = __fdividef(x, p);
  r[7] = rsqrtf(p);
  r[8] = __frsqrt_rn(p);
  asm("tanh.approx.f32 %0, %1;" : "=f"(r[9]) : "f"(x));
}
#endif
