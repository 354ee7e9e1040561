// The same computation as examples/bias_relu.hlo, one element a thread.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const __nv_bfloat16 *x, const float *bias, __nv_bfloat16 *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 8388608u) return;
  y[i] = __float2bfloat16(fmaxf(__bfloat162float(x[i]) + bias[i % 2048], 0.0f));
}
