// The same computation as examples/gelu.hlo, one element a thread.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const __nv_bfloat16 *x, __nv_bfloat16 *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 12582912u) return;
  __nv_bfloat16 v = x[i];
  __nv_bfloat16 cubic = __hmul(__hmul(__hmul(v, v), v), __float2bfloat16(0.044708f));
  __nv_bfloat16 scaled = __hmul(__hadd(v, cubic), __float2bfloat16(0.79785f));
  __nv_bfloat16 t = __float2bfloat16(tanhf(__bfloat162float(scaled)));
  __nv_bfloat16 gate = __hmul(__hadd(t, __float2bfloat16(1.0f)), __float2bfloat16(0.5f));
  y[i] = __hmul(v, gate);
}
