// The same computation as examples/swiglu.hlo, one element a thread.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const __nv_bfloat16 *gate, const __nv_bfloat16 *up, __nv_bfloat16 *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 8388608u) return;
  float g = __bfloat162float(gate[i]);
  __nv_bfloat16 sigma = __float2bfloat16(1.0f / (1.0f + expf(-g)));
  y[i] = __hmul(__hmul(gate[i], sigma), up[i]);
}
