// Sums and differences in several words. A lane that does not execute keeps its carry.
#include "sim/isa/carry.h"
#include "sim/lanes/each.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

// What is above the U of a value is its carry. A difference is the sum with the complement and 1, as GPUs have it: its
// carry is set where nothing was borrowed, and where CC.CF goes from a difference to a sum, or back, that shows.
// kl_sim_op says where the operands lie; in: CC.CF counts; out: it is set.
#define CARRY(name, U, wide, value, out)                                                                               \
  EXECUTOR(name) {                                                                                                     \
    U *d = AT(U, o->d);                                                                                                \
    u32 carries = 0;                                                                                                   \
    for (int i = 0; i < KL_LANES; i++) {                                                                               \
      if (!(x->mask >> i & 1)) continue;                                                                               \
      wide v = (value);                                                                                                \
      d[i] = (U)v;                                                                                                     \
      carries |= ((u32)(v >> (8 * sizeof(U))) & 1) << i;                                                               \
    }                                                                                                                  \
    if (out) x->carry = (x->carry & ~x->mask) | carries;                                                               \
  }
#define A(T) AT(T, o->a)[i]
#define B(T) AT(T, o->b)[i]
#define C(T) AT(T, o->c)[i]
#define CF   (x->carry >> i & 1)

#define SUMS(bits, U, wide)                                                                                            \
  CARRY(add_cc_##bits, U, wide, (wide)A(U) + B(U), true)                                                               \
  CARRY(addc_##bits, U, wide, (wide)A(U) + B(U) + CF, false)                                                           \
  CARRY(addc_cc_##bits, U, wide, (wide)A(U) + B(U) + CF, true)                                                         \
  CARRY(sub_cc_##bits, U, wide, (wide)A(U) + (U)~B(U) + 1, true)                                                       \
  CARRY(subc_##bits, U, wide, (wide)A(U) + (U)~B(U) + CF, false)                                                       \
  CARRY(subc_cc_##bits, U, wide, (wide)A(U) + (U)~B(U) + CF, true)
SUMS(32, u32, u64)
SUMS(64, u64, u128)

#define LOW(U, wide)              ((wide)(U)(A(U) * B(U)))
#define HIGH_U(U, wide)           ((wide)(U)((wide)A(U) * B(U) >> (8 * sizeof(U))))
#define HIGH_S(U, wide, S, swide) ((wide)(U)((wide)((swide)A(S) * B(S)) >> (8 * sizeof(U))))
#define PRODUCT(half, U, wide, product)                                                                                \
  CARRY(mad_##half##_cc_##U, U, wide, product + C(U), true)                                                            \
  CARRY(madc_##half##_##U, U, wide, product + C(U) + CF, false)                                                        \
  CARRY(madc_##half##_cc_##U, U, wide, product + C(U) + CF, true)
#define SIGNED_PRODUCT(S, U, wide, product)                                                                            \
  CARRY(mad_hi_cc_##S, U, wide, product + C(U), true)                                                                  \
  CARRY(madc_hi_##S, U, wide, product + C(U) + CF, false)                                                              \
  CARRY(madc_hi_cc_##S, U, wide, product + C(U) + CF, true)
PRODUCT(lo, u32, u64, LOW(u32, u64))
PRODUCT(hi, u32, u64, HIGH_U(u32, u64))
SIGNED_PRODUCT(s32, u32, u64, HIGH_S(u32, u64, s32, s64))
PRODUCT(lo, u64, u128, LOW(u64, u128))
PRODUCT(hi, u64, u128, HIGH_U(u64, u128))
SIGNED_PRODUCT(s64, u64, u128, HIGH_S(u64, u128, s64, s128))

KL_TOPIC(carry, KL_ISA_CARRY);
