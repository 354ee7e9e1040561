// What the files of this room share: the types of PTX, loops over lanes and the shapes of executors. Included by these
// alone, each compiled once for every instruction set (KL_SET), so that everything here is static.
#ifndef KL_LANES_EACH_H
#define KL_LANES_EACH_H

#include "sim/isa/isa.h"
#include "sim/lanes/lanes.h"
#include <math.h>

#define KL_PASTE_(a, b, c) a##b##c
#define KL_PASTE(a, b, c)  KL_PASTE_(a, b, c)

// The types of PTX. A register is read as what an instruction takes it for.
typedef uint8_t __attribute__((may_alias)) u8;
typedef int8_t __attribute__((may_alias)) s8;
typedef uint16_t __attribute__((may_alias)) u16;
typedef int16_t __attribute__((may_alias)) s16;
typedef uint32_t __attribute__((may_alias)) u32;
typedef int32_t __attribute__((may_alias)) s32;
typedef uint64_t __attribute__((may_alias)) u64;
typedef int64_t __attribute__((may_alias)) s64;
typedef float __attribute__((may_alias)) f32;
typedef double __attribute__((may_alias)) f64;
typedef struct b128 {
  uint64_t low, high;
} __attribute__((may_alias)) b128;

#define SIGNED(T) ((T)-1 < (T)1)

// The word of a predicate.
#define PRED(ref) (*AT(u32, ref))

// Lanes do not depend on one another: an operand may be the destination itself, but never overlaps it otherwise.
#ifdef __clang__
#define KL_EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define KL_EACH _Pragma("GCC ivdep")
#endif

// d[i] = value, where lane i executes; `on` is the one of x's masks that is as wide as d.
#define LANES(on, d, value)                                                                                            \
  do {                                                                                                                 \
    if (x->mask == KL_ALL_LANES) {                                                                                     \
      KL_EACH for (int i = 0; i < KL_LANES; i++)(d)[i] = (value);                                                      \
    } else {                                                                                                           \
      KL_EACH for (int i = 0; i < KL_LANES; i++)(d)[i] = x->on[i] ? (value) : (d)[i];                                  \
    }                                                                                                                  \
  } while (0)
// The same for what is rare or does not vectorise: the value is not computed where a lane does not execute.
#define SLOWLY(d, value)                                                                                               \
  do {                                                                                                                 \
    for (int i = 0; i < KL_LANES; i++)                                                                                 \
      if (x->mask >> i & 1) (d)[i] = (value);                                                                          \
  } while (0)
#define ALL(n, statement)                                                                                              \
  do {                                                                                                                 \
    KL_EACH for (int i = 0; i < (n); i++) statement;                                                                   \
  } while (0)

// Executors of one expression: of a[i], b[i], c[i] of the types A B C, and the flags, into d[i] of type D. UNARY,
// BINARY and TERNARY vectorise.
#define EXECUTOR(name) static void name(kl_lanes *x, const kl_sim_op *o)
#define UNARY(name, on, D, A, value)                                                                                   \
  EXECUTOR(name) {                                                                                                     \
    const A *a = AT(A, o->a);                                                                                          \
    D *d = AT(D, o->d);                                                                                                \
    const uint32_t flags = o->flags;                                                                                   \
    (void)flags;                                                                                                       \
    LANES(on, d, value);                                                                                               \
  }
#define BINARY(name, on, D, A, B, value)                                                                               \
  EXECUTOR(name) {                                                                                                     \
    const A *a = AT(A, o->a);                                                                                          \
    const B *b = AT(B, o->b);                                                                                          \
    D *d = AT(D, o->d);                                                                                                \
    const uint32_t flags = o->flags;                                                                                   \
    (void)flags;                                                                                                       \
    LANES(on, d, value);                                                                                               \
  }
#define TERNARY(name, on, D, A, B, C, value)                                                                           \
  EXECUTOR(name) {                                                                                                     \
    const A *a = AT(A, o->a);                                                                                          \
    const B *b = AT(B, o->b);                                                                                          \
    const C *c = AT(C, o->c);                                                                                          \
    D *d = AT(D, o->d);                                                                                                \
    const uint32_t flags = o->flags;                                                                                   \
    (void)flags;                                                                                                       \
    LANES(on, d, value);                                                                                               \
  }
#define SLOW_UNARY(name, D, A, value)                                                                                  \
  EXECUTOR(name) {                                                                                                     \
    const A *a = AT(A, o->a);                                                                                          \
    D *d = AT(D, o->d);                                                                                                \
    const uint32_t flags = o->flags;                                                                                   \
    (void)flags;                                                                                                       \
    SLOWLY(d, value);                                                                                                  \
  }
#define SLOW_BINARY(name, D, A, B, value)                                                                              \
  EXECUTOR(name) {                                                                                                     \
    const A *a = AT(A, o->a);                                                                                          \
    const B *b = AT(B, o->b);                                                                                          \
    D *d = AT(D, o->d);                                                                                                \
    const uint32_t flags = o->flags;                                                                                   \
    (void)flags;                                                                                                       \
    SLOWLY(d, value);                                                                                                  \
  }
#define SLOW_TERNARY(name, D, A, B, C, value)                                                                          \
  EXECUTOR(name) {                                                                                                     \
    const A *a = AT(A, o->a);                                                                                          \
    const B *b = AT(B, o->b);                                                                                          \
    const C *c = AT(C, o->c);                                                                                          \
    D *d = AT(D, o->d);                                                                                                \
    const uint32_t flags = o->flags;                                                                                   \
    (void)flags;                                                                                                       \
    SLOWLY(d, value);                                                                                                  \
  }

// Writes a value of 32 bits for every lane into d, where it executes: a pair of 16 bits is one value.
#define PUT(T, on, r)                                                                                                  \
  do {                                                                                                                 \
    T *d_ = AT(T, o->d);                                                                                               \
    LANES(on, d_, (r)[i]);                                                                                             \
  } while (0)

// Bit i of a predicate's word, as something to test for.
static const uint32_t kl_bit[KL_LANES] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
    1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
    1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

// Sets predicate `ref` to the bits of p in the lanes that execute.
static inline void put_pred(kl_lanes *x, kl_ref ref, uint32_t p) {
  if (ref == KL_NO_REF) return;
  u32 *d = AT(u32, ref);
  *d = (*d & ~x->mask) | (p & x->mask);
}

// The executors of a topic, in the order of its rows, as kl_lanes_SET_TOPIC.
#define KL_EXECUTOR_OF(executor, ...) executor,
#define KL_TOPIC(topic, rows)                                                                                          \
  extern kl_run *const KL_PASTE(kl_lanes_, KL_SET, _##topic)[];                                                        \
  kl_run *const KL_PASTE(kl_lanes_, KL_SET, _##topic)[] = {rows(KL_EXECUTOR_OF)}

#endif
