// The same computation as examples/concatenate.hlo, one element a thread.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
                                  __nv_bfloat16 *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 4194304u) return;
  unsigned row = i / 2048, column = i % 2048;
  y[i] = column < 1024   ? q[row * 1024 + column]
         : column < 1536 ? k[row * 512 + column - 1024]
                         : v[row * 512 + column - 1536];
}
