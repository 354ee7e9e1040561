// The same computation as examples/dequantise_s4.hlo, one element a thread.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const unsigned char *w, const __nv_bfloat16 *scale, __nv_bfloat16 *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 8388608u) return;
  int v = (int)(w[i / 2] << (i % 2 ? 24 : 28)) >> 28;
  y[i] = __hmul(__float2bfloat16((float)v), scale[i / 2048]);
}
