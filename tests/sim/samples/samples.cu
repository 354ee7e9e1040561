// What nvcc makes of these are the samples nvcc_O3.ptx (-O3 -lineinfo -arch=sm_90) and nvcc_G.ptx (-G -arch=sm_75).
extern "C" int printf(const char *, ...);

struct pair {
  int a;
  double b;
  char c[7];
};
struct alignas(16) four {
  float x[4];
};
typedef int (*unary)(int);

__constant__ int table[3] = {1, -2};
__device__ pair global_pair = {1, 2.5, "abc"};
__device__ int counter;
__device__ int *inside = &counter;
__device__ const char *names[2] = {"even", "odd"};
extern __shared__ float dynamic[];

__device__ __noinline__ int triple(int x) {
  return x * 3 + counter;
}
__device__ __noinline__ int factorial(int x) {
  return x <= 1 ? 1 : x * factorial(x - 1);
}
__device__ unary functions[2] = {triple, factorial};
__device__ __noinline__ pair add(pair p, four v) {
  p.a += (int)v.x[1];
  return p;
}

struct base {
  __device__ virtual int apply(int x) = 0;
};
struct plus : base {
  int by;
  __device__ int apply(int x) override { return x + by; }
};

__global__ void __launch_bounds__(256, 2) kernel(int *p, pair s, const four *__restrict__ v, int n) {
  __shared__ int tile[64][2];
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  tile[threadIdx.x & 63][0] = i;
  dynamic[threadIdx.x] = i;
  __syncthreads();
  if (i >= n) return;
  pair t = add(s, v[i]);
  switch (p[i]) {
  case 0: t.a = 5; break;
  case 1: t.a ^= 77; break;
  case 2: t.a *= 13; break;
  case 3: t.a -= n; break;
  case 4: t.b = 1; break;
  case 5: t.a = triple(t.a); break;
  case 6: t.c[1] = 3; break;
  case 7: t.a = __popc(t.a); break;
  }
  plus q;
  q.by = n;
  base *b = &q;
  p[i] = t.a + functions[i & 1](t.a) + table[i % 3] + tile[(threadIdx.x + 1) & 63][0] + (int)dynamic[0] + *inside +
         b->apply(i);
  printf("%d %s %f\n", p[i], names[i & 1], t.b);
  global_pair = t;
  asm volatile("{ .reg .pred p; .reg .u32 r; setp.ne.u32 p, %0, 0; @p bra L; mov.u32 r, 5; L: }" ::"r"(p[i]));
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p bra L; L: }" ::"r"(p[i]));
}
