// y = a * x + y, in vectors of four.
extern "C" __global__ void axpy(const float *__restrict__ a, const float4 *__restrict__ x, const float4 *__restrict__ y,
                                float4 *__restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 u = x[i], v = y[i];
  float s = *a;
  out[i] = make_float4(__fadd_rn(__fmul_rn(s, u.x), v.x), __fadd_rn(__fmul_rn(s, u.y), v.y),
                       __fadd_rn(__fmul_rn(s, u.z), v.z), __fadd_rn(__fmul_rn(s, u.w), v.w));
}
