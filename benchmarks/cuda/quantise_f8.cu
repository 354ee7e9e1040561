// The same computation as examples/quantise_f8.hlo, one element a thread.
#include <cuda_fp8.h>
extern "C" __global__ void kernel(const float *x, const float *scale, __nv_fp8_e4m3 *q) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 8388608u) return;
  q[i] = __nv_fp8_e4m3(fminf(fmaxf(x[i] * *scale, -448.0f), 448.0f));
}
