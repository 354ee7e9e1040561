// The same computation as examples/gelu_erf.hlo, one element a thread.
#include <cuda_fp16.h>
extern "C" __global__ void kernel(const __half *x, __half *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 4194304u) return;
  __half v = x[i];
  __half e = __float2half(erff(__half2float(__hmul(v, __float2half(0.70710678f)))));
  y[i] = __hmul(v, __hmul(__hadd(e, __float2half(1.0f)), __float2half(0.5f)));
}
