// Float and double arithmetic of every rounding, conversions that clamp, flushed and saturated results, exact math.
#include "device.h"

#define EACH_ROUNDING(X) X(rn, 0) X(rz, 1) X(rd, 2) X(ru, 3)

KERNEL3(rounding_float, const float *__restrict__, in, float *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2], *r = out + i * 32;
#define OPS(mode, k)                                                                                                   \
  r[k] = __fadd_##mode(a, b);                                                                                          \
  r[4 + k] = __fsub_##mode(a, b);                                                                                      \
  r[8 + k] = __fmul_##mode(a, b);                                                                                      \
  r[12 + k] = __fdiv_##mode(a, b);                                                                                     \
  r[16 + k] = __fmaf_##mode(a, b, c);                                                                                  \
  r[20 + k] = __frcp_##mode(b);                                                                                        \
  r[24 + k] = __fsqrt_##mode(fabsf(c));
  EACH_ROUNDING(OPS)
#undef OPS
  r[28] = __saturatef(c);
  r[29] = fminf(a, b) - fmaxf(b, c);
  r[30] = copysignf(floorf(a * 8.0f) + truncf(b * 4.0f), c);
  r[31] = rintf(c * 16.0f) * 2.0f + ceilf(a);
}

KERNEL3(rounding_double, const double *__restrict__, in, double *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  double a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2], *r = out + i * 30;
#define OPS(mode, k)                                                                                                   \
  r[k] = __dadd_##mode(a, b);                                                                                          \
  r[4 + k] = __dsub_##mode(a, b);                                                                                      \
  r[8 + k] = __dmul_##mode(a, b);                                                                                      \
  r[12 + k] = __ddiv_##mode(a, b);                                                                                     \
  r[16 + k] = __fma_##mode(a, b, c);                                                                                   \
  r[20 + k] = __drcp_##mode(b);                                                                                        \
  r[24 + k] = __dsqrt_##mode(fabs(c));
  EACH_ROUNDING(OPS)
#undef OPS
  r[28] = fmin(a, b) + fmax(b, c) + floor(a) + ceil(b) + trunc(c) + rint(a);
  r[29] = __hiloint2double(__double2hiint(a) ^ 0x00100000, __double2loint(b));
}

// Floats to integers, which clamp, and NaN.
KERNEL4(rounding_to_integer, const float *__restrict__, in, const double *__restrict__, wide,
        unsigned long long *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float f = in[i];
  double d = wide[i];
  unsigned long long *r = out + i * 32;
#define OPS(mode, k)                                                                                                   \
  r[k] = (unsigned long long)__float2int_##mode(f);                                                                    \
  r[4 + k] = __float2uint_##mode(f);                                                                                   \
  r[8 + k] = (unsigned long long)__float2ll_##mode(f);                                                                 \
  r[12 + k] = __float2ull_##mode(f);                                                                                   \
  r[16 + k] = (unsigned long long)__double2int_##mode(d);                                                              \
  r[20 + k] = __double2uint_##mode(d);                                                                                 \
  r[24 + k] = (unsigned long long)__double2ll_##mode(d);                                                               \
  r[28 + k] = __double2ull_##mode(d);
  EACH_ROUNDING(OPS)
#undef OPS
}

// Integers and doubles to floats.
KERNEL3(rounding_from_integer, const long long *__restrict__, in, double *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  long long v = in[i];
  int s = (int)(v >> 32);
  double *r = out + i * 28,
         d = __longlong_as_double((v & 0x800fffffffffffffLL) | (0x3ff0000000000000LL + ((v & 255) << 52)));
#define OPS(mode, k)                                                                                                   \
  r[k] = __int2float_##mode(s);                                                                                        \
  r[4 + k] = __uint2float_##mode((unsigned)s);                                                                         \
  r[8 + k] = __ll2float_##mode(v);                                                                                     \
  r[12 + k] = __ull2float_##mode((unsigned long long)v);                                                               \
  r[16 + k] = __ll2double_##mode(v);                                                                                   \
  r[20 + k] = __ull2double_##mode((unsigned long long)v);                                                              \
  r[24 + k] = __double2float_##mode(d);
  EACH_ROUNDING(OPS)
#undef OPS
}

#ifdef __CUDACC__
#define FLUSH(name, code, expr)                                                                                        \
  DEVICE float name(float a, float b) {                                                                                \
    float r;                                                                                                           \
    asm(code : "=f"(r) : "f"(a), "f"(b));                                                                              \
    return r;                                                                                                          \
  }
#else
static float flush(float v) {
  return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v;
}
static float saturate(float v) {
  return __saturatef(v);
}
#define FLUSH(name, code, expr)                                                                                        \
  DEVICE float name(float x, float y) {                                                                                \
    float a = flush(x), b = flush(y);                                                                                  \
    (void)b;                                                                                                           \
    return flush(expr);                                                                                                \
  }
#endif
FLUSH(add_ftz, "add.ftz.f32 %0, %1, %2;", a + b)
FLUSH(mul_ftz_sat, "mul.ftz.sat.f32 %0, %1, %2;", saturate(a *b))
FLUSH(fma_ftz, "fma.rn.ftz.f32 %0, %1, %2, %2;", fmaf(a, b, b))
FLUSH(min_ftz, "min.ftz.f32 %0, %1, %2;", fminf(a, b))
FLUSH(div_ftz, "div.rn.ftz.f32 %0, %1, %2;", a / b)
FLUSH(sqrt_ftz, "sqrt.rn.ftz.f32 %0, %1;", sqrtf(a))
FLUSH(sub_sat, "sub.ftz.sat.f32 %0, %1, %2;", saturate(a - b))

// Denormals in and out as zeros of their sign, and clamps to [0, 1].
KERNEL3(rounding_flush, const float *__restrict__, in, float *__restrict__, out, int, n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float a = in[2 * i], b = in[2 * i + 1], *r = out + i * 7;
  r[0] = add_ftz(a, b);
  r[1] = mul_ftz_sat(a, b);
  r[2] = fma_ftz(a, b);
  r[3] = min_ftz(a, b);
  r[4] = div_ftz(a, b);
  r[5] = sqrt_ftz(fabsf(a), b);
  r[6] = sub_sat(a, b);
}
