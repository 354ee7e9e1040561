// What kernels are written in: CUDA for nvcc, and C for the host, which runs them on simt.h. KERNELn(name, type,
// argument,
// ...) heads a kernel of n arguments; on the host it also makes host_NAME, which takes the arguments' addresses.
#ifndef DEVICE_H
#define DEVICE_H

#ifdef __CUDACC__

#define KERNEL                                                extern "C" __global__ void
#define KERNEL1(name, T0, a0)                                 KERNEL name(T0 a0)
#define KERNEL2(name, T0, a0, T1, a1)                         KERNEL name(T0 a0, T1 a1)
#define KERNEL3(name, T0, a0, T1, a1, T2, a2)                 KERNEL name(T0 a0, T1 a1, T2 a2)
#define KERNEL4(name, T0, a0, T1, a1, T2, a2, T3, a3)         KERNEL name(T0 a0, T1 a1, T2 a2, T3 a3)
#define KERNEL5(name, T0, a0, T1, a1, T2, a2, T3, a3, T4, a4) KERNEL name(T0 a0, T1 a1, T2 a2, T3 a3, T4 a4)
#define KERNEL6(name, T0, a0, T1, a1, T2, a2, T3, a3, T4, a4, T5, a5)                                                  \
  KERNEL name(T0 a0, T1 a1, T2 a2, T3 a3, T4 a4, T5 a5)
#define KERNEL7(name, T0, a0, T1, a1, T2, a2, T3, a3, T4, a4, T5, a5, T6, a6)                                          \
  KERNEL name(T0 a0, T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6)

#define DEVICE      static __device__ __forceinline__
#define DEVICE_CALL static __device__ __noinline__
#define GLOBAL      __device__
#define CONSTANT    __constant__
#define SHARED(T, name)                                                                                                \
  __shared__ T name##_;                                                                                                \
  T *const name = &name##_
#define SHARED1(T, name, n)    __shared__ T name[n]
#define SHARED2(T, name, n, m) __shared__ T name[n][m]
#define DYNAMIC_SHARED(T, name)                                                                                        \
  extern __shared__ __align__(16) unsigned char dynamic_shared[];                                                      \
  T *name = (T *)dynamic_shared
#define UNROLL                  _Pragma("unroll")
#define NO_UNROLL               _Pragma("unroll 1")
#define SPIN()                  ((void)0)
#define ARCH(sm)                (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= (sm)*10)
#define ON_DEVICE(device, host) device
#define ALIGNED(n)              __align__(n)

#else

#include "intrinsics.h"

#define HOST(name, ...)                                                                                                \
  static void name(__VA_ARGS__);                                                                                       \
  static void host_##name(void *const *a)
#define AT(T, i) (*(T *)a[i])
#define KERNEL1(name, T0, a0)                                                                                          \
  HOST(name, T0) {                                                                                                     \
    name(AT(T0, 0));                                                                                                   \
  }                                                                                                                    \
  static void name(T0 a0)
#define KERNEL2(name, T0, a0, T1, a1)                                                                                  \
  HOST(name, T0, T1) {                                                                                                 \
    name(AT(T0, 0), AT(T1, 1));                                                                                        \
  }                                                                                                                    \
  static void name(T0 a0, T1 a1)
#define KERNEL3(name, T0, a0, T1, a1, T2, a2)                                                                          \
  HOST(name, T0, T1, T2) {                                                                                             \
    name(AT(T0, 0), AT(T1, 1), AT(T2, 2));                                                                             \
  }                                                                                                                    \
  static void name(T0 a0, T1 a1, T2 a2)
#define KERNEL4(name, T0, a0, T1, a1, T2, a2, T3, a3)                                                                  \
  HOST(name, T0, T1, T2, T3) {                                                                                         \
    name(AT(T0, 0), AT(T1, 1), AT(T2, 2), AT(T3, 3));                                                                  \
  }                                                                                                                    \
  static void name(T0 a0, T1 a1, T2 a2, T3 a3)
#define KERNEL5(name, T0, a0, T1, a1, T2, a2, T3, a3, T4, a4)                                                          \
  HOST(name, T0, T1, T2, T3, T4) {                                                                                     \
    name(AT(T0, 0), AT(T1, 1), AT(T2, 2), AT(T3, 3), AT(T4, 4));                                                       \
  }                                                                                                                    \
  static void name(T0 a0, T1 a1, T2 a2, T3 a3, T4 a4)
#define KERNEL6(name, T0, a0, T1, a1, T2, a2, T3, a3, T4, a4, T5, a5)                                                  \
  HOST(name, T0, T1, T2, T3, T4, T5) {                                                                                 \
    name(AT(T0, 0), AT(T1, 1), AT(T2, 2), AT(T3, 3), AT(T4, 4), AT(T5, 5));                                            \
  }                                                                                                                    \
  static void name(T0 a0, T1 a1, T2 a2, T3 a3, T4 a4, T5 a5)
#define KERNEL7(name, T0, a0, T1, a1, T2, a2, T3, a3, T4, a4, T5, a5, T6, a6)                                          \
  HOST(name, T0, T1, T2, T3, T4, T5, T6) {                                                                             \
    name(AT(T0, 0), AT(T1, 1), AT(T2, 2), AT(T3, 3), AT(T4, 4), AT(T5, 5), AT(T6, 6));                                 \
  }                                                                                                                    \
  static void name(T0 a0, T1 a1, T2 a2, T3 a3, T4 a4, T5 a5, T6 a6)

#define DEVICE      static inline __attribute__((unused))
#define DEVICE_CALL static __attribute__((noinline, unused))
#define GLOBAL      static __attribute__((unused))
#define CONSTANT    static __attribute__((unused))
#define SHARED(T, name)                                                                                                \
  static const char name##_key;                                                                                        \
  T *const name = simt_shared(&name##_key, sizeof *name)
#define SHARED1(T, name, n)                                                                                            \
  static const char name##_key;                                                                                        \
  T *const name = simt_shared(&name##_key, sizeof *name * (n))
#define SHARED2(T, name, n, m)                                                                                         \
  static const char name##_key;                                                                                        \
  T(*const name)[m] = simt_shared(&name##_key, sizeof *name * (n))
#define DYNAMIC_SHARED(T, name) T *const name = simt_dynamic_shared()
#define UNROLL
#define NO_UNROLL
#define SPIN()                  simt_yield()
#define ARCH(sm)                1
#define ON_DEVICE(device, host) host
#define ALIGNED(n)              __attribute__((aligned(n)))

#endif
#endif
