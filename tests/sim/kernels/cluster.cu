// Clusters: blocks that run together and reach into each other's shared memory (sm_90).
#include "device.h"

#ifdef __CUDACC__
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#if __CUDA_ARCH__ >= 900
DEVICE void cluster_sync() {
  cg::this_cluster().sync();
}
DEVICE unsigned cluster_rank() {
  return cg::this_cluster().block_rank();
}
template <typename T> DEVICE T *cluster_map(T *p, unsigned rank) {
  return cg::this_cluster().map_shared_rank(p, (int)rank);
}
DEVICE void cluster_arrive() {
  cg::this_cluster().barrier_arrive();
}
DEVICE void cluster_wait() {
  cg::this_cluster().barrier_wait();
}
KERNEL __cluster_dims__(2, 1, 1) __launch_bounds__(64) cluster_ring(const int *, int *, int);
#endif
#else
#define cluster_sync()       simt_barrier_cluster()
#define cluster_rank()       simt_cluster_rank()
#define cluster_map(p, rank) ((__typeof__(p))simt_map_shared(p, rank))
#define cluster_arrive()     ((void)0)
#define cluster_wait()       simt_barrier_cluster()
#endif

// Four blocks share a histogram of 256 bins, each holding a quarter in its shared memory.
KERNEL3(cluster_histogram, const unsigned char *__restrict__, in, unsigned *, bins, int, n) {
#if ARCH(90)
  SHARED1(unsigned, part, 64);
  if (threadIdx.x < 64) part[threadIdx.x] = 0;
  cluster_sync();
  for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += (int)(gridDim.x * blockDim.x)) {
    unsigned *far = cluster_map(part, in[i] / 64u);
    atomicAdd(&far[in[i] % 64], 1u);
  }
  cluster_sync();
  if (threadIdx.x < 64) atomicAdd(&bins[cluster_rank() * 64 + threadIdx.x], part[threadIdx.x]);
#endif
}

// The first block of each cluster adds the sums of the others, which wait until it has read them.
KERNEL4(cluster_reduce, const float *__restrict__, in, float *__restrict__, out, unsigned *__restrict__, ranks, int,
        n) {
#if ARCH(90)
  SHARED1(float, sum, 96);
  SHARED(float, total);
  int t = (int)threadIdx.x, i = (int)(blockIdx.x * blockDim.x) + t;
  sum[t] = i < n ? in[i] : 0.0f;
  __syncthreads();
  if (t == 0) {
    float s = 0.0f;
    for (int k = 0; k < 96; k++) s += sum[k];
    *total = s;
    ranks[blockIdx.x] = cluster_rank();
  }
  cluster_sync();
  if (cluster_rank() == 0 && t == 0) {
    float s = 0.0f;
    for (unsigned k = 0; k < 3; k++) s += *cluster_map(total, k);
    out[blockIdx.x / 3] = s;
  }
  cluster_sync();
#endif
}

// Two blocks write into each other's shared memory, and do something else between arriving and waiting.
KERNEL3(cluster_ring, const int *, in, int *, out, int, n) {
#if ARCH(90)
  SHARED1(int, box, 64);
  int t = (int)threadIdx.x, i = (int)(blockIdx.x * 64) + t, v = i < n ? in[i] : -1;
  unsigned next = cluster_rank() ^ 1;
  cluster_sync();
  cluster_map(box, next)[63 - t] = v * 2;
  cluster_arrive();
  v = v * v + 1;
  cluster_wait();
  if (i < n) out[i] = box[t] + v;
#endif
}

// Where a block is in its cluster, of two by two.
KERNEL2(cluster_registers, unsigned *__restrict__, out, unsigned, width) {
#if ARCH(90)
  unsigned x, y, rank, nx, ny, count, gx, gy, explicit_cluster;
#ifdef __CUDACC__
  unsigned is_explicit;
  asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(x));
  asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(y));
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(nx));
  asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(ny));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(gx));
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(gy));
  asm("{\n\t.reg .pred p;\n\tmov.pred p, %%is_explicit_cluster;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(is_explicit));
  explicit_cluster = is_explicit;
#else
  rank = simt_cluster_rank();
  x = blockIdx.x % 2;
  y = blockIdx.y % 2;
  nx = ny = 2;
  count = 4;
  gx = blockIdx.x / 2;
  gy = gridDim.x / 2;
  explicit_cluster = 1;
#endif
  unsigned at = (blockIdx.y * width + blockIdx.x) * blockDim.x + threadIdx.x;
  out[at] = x | y << 4 | rank << 8 | nx << 12 | ny << 16 | count << 20 | explicit_cluster << 24 | gx << 25;
  if (gy * 2 != width) out[at] = 0;
#endif
}
