// CUDA's built-in variables and functions for the host, as the CUDA C++ Programming Guide and the Math API define them.
// Overloaded ones are macros; types they are used with here have at most 64 bits.
#ifndef INTRINSICS_H
#define INTRINSICS_H

#include "integers.h"
#include "roundings.h"
#include "simt.h"
#include <math.h>
#include <string.h>

#define threadIdx (*simt_thread())
#define blockIdx  (*simt_block())
#define blockDim  (*simt_block_size())
#define gridDim   (*simt_grid_size())
#define warpSize  32

#define min(a, b)                                                                                                      \
  ({                                                                                                                   \
    __typeof__(a) min_a = (a);                                                                                         \
    __typeof__(b) min_b = (b);                                                                                         \
    min_a < min_b ? min_a : min_b;                                                                                     \
  })
#define max(a, b)                                                                                                      \
  ({                                                                                                                   \
    __typeof__(a) max_a = (a);                                                                                         \
    __typeof__(b) max_b = (b);                                                                                         \
    max_a < max_b ? max_b : max_a;                                                                                     \
  })

// --- vectors ------------------------------------------------------------------------------------------------------

#define VECTORS(T, name, bytes)                                                                                        \
  typedef struct name##2 {                                                                                             \
    T x, y;                                                                                                            \
  }                                                                                                                    \
  __attribute__((aligned(2 * bytes))) name##2;                                                                         \
  typedef struct name##4 {                                                                                             \
    T x, y, z, w;                                                                                                      \
  }                                                                                                                    \
  __attribute__((aligned(4 * bytes < 16 ? 4 * bytes : 16))) name##4;                                                   \
  SIMT_FN name##2 make_##name##2(T x, T y) {                                                                           \
    return (name##2){x, y};                                                                                            \
  }                                                                                                                    \
  SIMT_FN name##4 make_##name##4(T x, T y, T z, T w) {                                                                 \
    return (name##4){x, y, z, w};                                                                                      \
  }
VECTORS(unsigned char, uchar, 1)
VECTORS(unsigned short, ushort, 2)
VECTORS(int, int, 4)
VECTORS(unsigned, uint, 4)
VECTORS(float, float, 4)
VECTORS(double, double, 8)
VECTORS(unsigned long long, ulonglong, 8)

// --- memory -------------------------------------------------------------------------------------------------------

#define __ldg(p)               (*(p))
#define __ldca(p)              (*(p))
#define __ldcg(p)              (*(p))
#define __ldcs(p)              (*(p))
#define __ldlu(p)              (*(p))
#define __ldcv(p)              (*(p))
#define __stwb(p, v)           ((void)(*(p) = (v)))
#define __stcg(p, v)           ((void)(*(p) = (v)))
#define __stcs(p, v)           ((void)(*(p) = (v)))
#define __stwt(p, v)           ((void)(*(p) = (v)))

#define __threadfence()        simt_yield()
#define __threadfence_block()  simt_yield()
#define __threadfence_system() simt_yield()
#define __nanosleep(ns)        simt_yield()

// Threads change at waits alone, so that plain accesses are atomic; giving way first lets others come between.
#define ATOMIC(p, v, result)                                                                                           \
  ({                                                                                                                   \
    simt_yield();                                                                                                      \
    __typeof__(p) at_ = (p);                                                                                           \
    __typeof__(*(p) + 0) old_ = *at_, by_ = (v);                                                                       \
    (void)by_;                                                                                                         \
    *at_ = (result);                                                                                                   \
    old_;                                                                                                              \
  })
#define atomicAdd(p, v)                          ATOMIC(p, v, old_ + by_)
#define atomicSub(p, v)                          ATOMIC(p, v, old_ - by_)
#define atomicMin(p, v)                          ATOMIC(p, v, by_ < old_ ? by_ : old_)
#define atomicMax(p, v)                          ATOMIC(p, v, by_ > old_ ? by_ : old_)
#define atomicAnd(p, v)                          ATOMIC(p, v, old_ &by_)
#define atomicOr(p, v)                           ATOMIC(p, v, old_ | by_)
#define atomicXor(p, v)                          ATOMIC(p, v, old_ ^ by_)
#define atomicExch(p, v)                         ATOMIC(p, v, by_)
#define atomicInc(p, v)                          ATOMIC(p, v, old_ >= by_ ? 0 : old_ + 1)
#define atomicDec(p, v)                          ATOMIC(p, v, old_ == 0 || old_ > by_ ? by_ : old_ - 1)
#define atomicCAS(p, expect, v)                  ATOMIC(p, v, old_ == (expect) ? by_ : old_)
#define atomicAdd_block                          atomicAdd
#define atomicAdd_system                         atomicAdd
#define atomicCAS_block                          atomicCAS
#define atomicCAS_system                         atomicCAS
#define atomicMax_block                          atomicMax
#define atomicOr_system                          atomicOr
#define atomicExch_block                         atomicExch

#define __pipeline_memcpy_async(to, from, bytes) ((void)memcpy((to), (from), (bytes)))
#define __pipeline_commit()                      ((void)0)
#define __pipeline_wait_prior(n)                 ((void)0)

// --- barriers and warps -------------------------------------------------------------------------------------------

#define __syncthreads()                          ((void)simt_barrier(0, 0, false))
#define __syncthreads_count(p)                   ((int)simt_barrier(0, 0, (p) != 0))
#define __syncthreads_or(p)                      (simt_barrier(0, 0, (p) != 0) != 0)
#define __syncthreads_and(p)                     (simt_barrier(0, 0, (p) == 0) == 0)
#define __syncwarp(...)                          ((void)simt_exchange(SIMT_OPTIONAL(_, ##__VA_ARGS__, 0xffffffffu), 0))
#define __activemask()                           (1u << simt_lane()) // threads come one by one; no kernel may count on more

#define SIMT_OPTIONAL(_, value, ...)             value

// The lane that a shuffle reads, or the own one where that lies outside of the segment (PTX ISA, shfl.sync).
typedef enum simt_shuffle { SIMT_IDX, SIMT_UP, SIMT_DOWN, SIMT_BFLY } simt_shuffle;
SIMT_FN unsigned simt_source(simt_shuffle kind, unsigned b, unsigned width) {
  unsigned lane = simt_lane(), first = lane & ~(width - 1), last = first + width - 1, from = lane;
  switch (kind) {
  case SIMT_IDX: return first + (b & (width - 1));
  case SIMT_UP: return lane < first + b ? lane : lane - b;
  case SIMT_DOWN: return lane + b > last ? lane : lane + b;
  case SIMT_BFLY: from = lane ^ b; return from > last ? lane : from;
  }
  return lane;
}

#define SIMT_SHFL(kind, mask, v, b, width)                                                                             \
  ({                                                                                                                   \
    __typeof__(v) shfl_v = (v);                                                                                        \
    uint64_t shfl_bits = 0;                                                                                            \
    unsigned shfl_from = simt_source(kind, (unsigned)(b), width);                                                      \
    memcpy(&shfl_bits, &shfl_v, sizeof shfl_v);                                                                        \
    shfl_bits = simt_exchange(mask, shfl_bits)[shfl_from];                                                             \
    memcpy(&shfl_v, &shfl_bits, sizeof shfl_v);                                                                        \
    shfl_v;                                                                                                            \
  })
#define __shfl_sync(mask, v, b, ...)      SIMT_SHFL(SIMT_IDX, mask, v, b, SIMT_OPTIONAL(_, ##__VA_ARGS__, 32))
#define __shfl_up_sync(mask, v, b, ...)   SIMT_SHFL(SIMT_UP, mask, v, b, SIMT_OPTIONAL(_, ##__VA_ARGS__, 32))
#define __shfl_down_sync(mask, v, b, ...) SIMT_SHFL(SIMT_DOWN, mask, v, b, SIMT_OPTIONAL(_, ##__VA_ARGS__, 32))
#define __shfl_xor_sync(mask, v, b, ...)  SIMT_SHFL(SIMT_BFLY, mask, v, b, SIMT_OPTIONAL(_, ##__VA_ARGS__, 32))

#define SIMT_LANES(mask)                                                                                               \
  for (unsigned i = 0; i < 32; i++)                                                                                    \
    if ((mask) >> i & 1)

SIMT_FN unsigned __match_any_sync(unsigned mask, uint64_t v) {
  const uint64_t *all = simt_exchange(mask, v);
  unsigned same = 0;
  SIMT_LANES(mask) same |= (unsigned)(all[i] == v) << i;
  return same;
}
SIMT_FN unsigned __match_all_sync(unsigned mask, uint64_t v, int *all_same) {
  unsigned same = __match_any_sync(mask, v);
  *all_same = same == mask;
  return same == mask ? mask : 0;
}
SIMT_FN unsigned __ballot_sync(unsigned mask, int p) {
  const uint64_t *all = simt_exchange(mask, p != 0);
  unsigned set = 0;
  SIMT_LANES(mask) set |= (unsigned)all[i] << i;
  return set;
}
SIMT_FN int __any_sync(unsigned mask, int p) {
  return __ballot_sync(mask, p) != 0;
}
SIMT_FN int __all_sync(unsigned mask, int p) {
  return __ballot_sync(mask, p) == mask;
}

#define SIMT_REDUX(name, T, first, next)                                                                               \
  SIMT_FN T name(unsigned mask, T v) {                                                                                 \
    const uint64_t *all = simt_exchange(mask, (uint64_t)v);                                                            \
    T r = first;                                                                                                       \
    SIMT_LANES(mask) {                                                                                                 \
      T x = (T)all[i];                                                                                                 \
      r = next;                                                                                                        \
    }                                                                                                                  \
    return r;                                                                                                          \
  }
SIMT_REDUX(simt_redux_add, unsigned, 0, r + x)
SIMT_REDUX(simt_redux_umin, unsigned, UINT32_MAX, x < r ? x : r)
SIMT_REDUX(simt_redux_umax, unsigned, 0, x > r ? x : r)
SIMT_REDUX(simt_redux_smin, int, INT32_MAX, x < r ? x : r)
SIMT_REDUX(simt_redux_smax, int, INT32_MIN, x > r ? x : r)
SIMT_REDUX(__reduce_and_sync, unsigned, UINT32_MAX, r &x)
SIMT_REDUX(__reduce_or_sync, unsigned, 0, r | x)
SIMT_REDUX(__reduce_xor_sync, unsigned, 0, r ^ x)
#define __reduce_add_sync(mask, v) ((__typeof__(v))simt_redux_add(mask, (unsigned)(v)))
#define __reduce_min_sync(mask, v) _Generic((v), int : simt_redux_smin, unsigned : simt_redux_umin)(mask, v)
#define __reduce_max_sync(mask, v) _Generic((v), int : simt_redux_smax, unsigned : simt_redux_umax)(mask, v)

#endif
