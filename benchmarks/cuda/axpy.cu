// The same computation as examples/axpy.hlo, one element a thread.
extern "C" __global__ void kernel(const float *a, const float *x, const float *y, float *z) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 1024u) return;
  z[i] = __fadd_rn(__fmul_rn(*a, x[i]), y[i]);
}
