// Lanes of an access, as those see them who look on.
#ifndef KL_MACHINE_ACCESS_H
#define KL_MACHINE_ACCESS_H

#include "sim/machine/warp.h"

// Lanes from `first` on whose bytes lie one behind the other, as far as that goes: what observers look at as one piece.
typedef struct kl_stretch {
  unsigned first, n;
} kl_stretch;
// Takes the stretch that the lowest of these lanes begins away from them; there is one.
static inline kl_stretch kl_next_stretch(const kl_places *p, uint32_t *lanes) {
  unsigned first = (unsigned)__builtin_ctz(*lanes);
  unsigned n = (unsigned)__builtin_ctzll(~(uint64_t)p->joined >> (first + 1)) + 1;
  *lanes &= (uint32_t) ~(((UINT64_C(1) << n) - 1) << first);
  return (kl_stretch){first, n};
}

// Are lanes that lie right behind another one few?
static inline bool kl_is_scattered(const kl_places *p) {
  enum { FEW = 12 };
  if (!p->joined || p->joined == KL_ALL_LANES << 1) return !p->joined;
  return __builtin_popcount(p->joined) < FEW;
}

// Of an access of op `o`, each by itself. False after a fault, which ends the launch.
bool kl_access_places(kl_lanes *x, const kl_sim_op *o, const kl_sim_access *m, kl_places *out);

#endif
