// The same computation as examples/multi_output.hlo, one element a thread.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const float *x, __nv_bfloat16 *activation, bool *negative, signed char *quantised) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 4194304u) return;
  float v = x[i];
  activation[i] = __float2bfloat16(tanhf(__bfloat162float(__float2bfloat16(v))));
  negative[i] = v < 0.0f;
  quantised[i] = (signed char)fminf(fmaxf(rintf(v), -128.0f), 127.0f);
}
