// The same computation as examples/complex_multiply.hlo, one element a thread.
extern "C" __global__ void kernel(const float2 *a, const float2 *b, float2 *y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 2097152u) return;
  float2 p = a[i], q = b[i];
  y[i] = make_float2(p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x);
}
