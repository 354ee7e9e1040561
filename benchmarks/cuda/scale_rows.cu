// The same computation as examples/scale_rows.hlo, one element a thread.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const __nv_bfloat16 *x, const float *mean_square, const __nv_bfloat16 *weight,
                                  __nv_bfloat16 *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 8388608u) return;
  float factor = rsqrtf(mean_square[i / 4096] + 1e-6f);
  y[i] = __hmul(__float2bfloat16(__bfloat162float(x[i]) * factor), weight[i % 4096]);
}
