// Which of a kernel's arguments may be the same memory. Private to src/jit.
#ifndef KL_ALIASES_H
#define KL_ALIASES_H

#include "jit/kernels.h"

// Of all kernels of a module. Borrowed.
typedef struct kl_aliasing {
  kl_kernels *kernels;
  const kiln_compile_params *params;
  kl_machine machine;
  uint32_t *writes; // by slot: the argument of one kernel that writes it
} kl_aliasing;

// What is asked for before the plan is made: partners, and what is lent, in `scratch`.
void kl_ask_for_aliases(const kl_aliasing *x, const kl_kernel_unit *u, kl_arena *scratch, kl_plan_params *pp);
// What the launch may do with the slots of a kernel of this plan, and with what of the state of a loop it reads.
kiln_status kl_bind_slots(kl_ctx *cx, const kl_aliasing *x, kl_kernel_unit *u, kl_plan *p);
// In the slots, after every kernel has agreed.
void kl_declare_aliases(kl_kernels *k);

#endif
