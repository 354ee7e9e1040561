// The same computation as examples/pad_slice.hlo, one element a thread.
extern "C" __global__ void kernel(const float *x, float *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 4194304u) return;
  float next = i % 2048 == 2047 ? 0.0f : x[i + 1];
  y[i] = next - x[i];
}
