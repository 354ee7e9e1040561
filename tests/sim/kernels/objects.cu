// What C++ makes of kernels: templates, lambdas, virtual functions, an object with a constructor and overloads, and
// atomic references of the standard library. Twins: objects.c.
#include "device.h"
#include <cuda/atomic>
#include <cuda/std/array>

template <typename T, int N> struct vector {
  T item[N];
  __device__ T dot(const vector &o) const {
    T s = 0;
    for (int i = 0; i < N; i++) s += item[i] * o.item[i];
    return s;
  }
};

// in[n][2][5] -> the dot products of each pair.
template <typename T> __device__ void dots(const T *in, T *out, int n) {
  for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x)) {
    const auto *v = reinterpret_cast<const vector<T, 5> *>(in) + 2 * i;
    out[i] = v[0].dot(v[1]);
  }
}

KERNEL objects_templates(const double *d, double *dout, const int *s, int *sout, int n) {
  dots(d, dout, n);
  dots(s, sout, n);
}

struct shape {
  __device__ virtual float area() const = 0;
  __device__ virtual float grown(float by) const { return area() * by; }
};
struct square : shape {
  float side;
  __device__ square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct box : square {
  float other;
  __device__ box(float s, float o) : square(s), other(o) {}
  __device__ float area() const override { return side * other; }
  __device__ float grown(float by) const override { return square::grown(by) + other; }
};
struct disc : shape {
  float radius;
  __device__ disc(float r) : radius(r) {}
  __device__ float area() const override { return 3.0f * radius * radius; }
};

static __device__ __noinline__ float measure(const shape *s, float by) {
  return s->grown(by) - s->area();
}

KERNEL objects_virtual(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  square a(in[i]);
  box b(in[i], 2.0f);
  disc c(in[i]);
  const shape *all[3] = {&a, &b, &c};
  out[i] = measure(all[i % 3], in[i] + 1.0f) + measure(all[(i / 3) % 3], 0.5f);
}

template <typename F> static __device__ int fold(const int *p, int n, int first, F f) {
  for (int i = 0; i < n; i++) first = f(first, p[i]);
  return first;
}

KERNEL objects_lambda(const int *__restrict__ in, int *__restrict__ out, int width, int n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), odd = 0;
  if (i >= n) return;
  auto pick = [&](int a, int b) {
    odd += b & 1;
    return a * 5 + (b ^ i);
  };
  cuda::std::array<int, 4> ring{};
  int folded = fold(in + i * width, width, 1, pick);
  for (int k = 0; k < width; k++) ring[k % 4] += in[i * width + k];
  out[i] = folded + odd * 1000 + ring[i & 3];
}

// Counts by references of three orders, and a flag that is waited for with acquire.
KERNEL objects_atomic(const unsigned *__restrict__ in, unsigned *counts, unsigned *flag, unsigned *seen, int n) {
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> total(counts[0]), most(counts[1]), done(*flag);
  cuda::atomic_ref<unsigned, cuda::thread_scope_block> block(counts[4 + blockIdx.x]);
  if (i < n) {
    total.fetch_add(in[i], cuda::memory_order_relaxed);
    most.fetch_max(in[i], cuda::memory_order_acq_rel);
    block.fetch_xor(in[i], cuda::memory_order_relaxed);
    cuda::atomic_ref<unsigned> product(counts[2]);
    unsigned old = product.load(cuda::memory_order_relaxed);
    while (!product.compare_exchange_weak(old, old * 5 + 3, cuda::memory_order_seq_cst)) {}
  }
  __syncthreads();
  if (threadIdx.x == 0) done.fetch_add(1, cuda::memory_order_release);
  if (i == 0) {
    while (done.load(cuda::memory_order_acquire) != gridDim.x) {}
    *seen = total.load(cuda::memory_order_relaxed);
  }
}
