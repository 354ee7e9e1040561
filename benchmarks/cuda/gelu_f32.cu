// The same computation as examples/gelu_f32.hlo, one element a thread.
extern "C" __global__ void kernel(const float *x, float *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 8388608u) return;
  float v = x[i];
  float t = tanhf((v + v * v * v * 0.044715f) * 0.797884583f);
  y[i] = v * ((t + 1.0f) * 0.5f);
}
