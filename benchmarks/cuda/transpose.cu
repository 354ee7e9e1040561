// The same computation as examples/transpose.hlo, one element a thread.
extern "C" __global__ void kernel(const float *x, float *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 393216u) return;
  unsigned row = i / 512, column = i % 512;
  y[i] = x[column * 768 + row] * 0.125f;
}
