// Launches of plans as an artifact lists them. Private to src/jit.
#ifndef KL_LAUNCHES_H
#define KL_LAUNCHES_H

#include "jit/kernels.h"

typedef struct kl_launcher {
  kl_ctx *cx;
  kl_kernels *kernels;
  kl_arena *arena, *scratch; // of what the artifact keeps; of what is needed while it is made
  uint64_t zero_bytes;       // of scratch memory, for counters: in front of all else, once all is placed
} kl_launcher;

// Those of a kernel's plan, each of whose slots beside arguments has a place in scratch memory from now on.
kl_planned kl_describe_launches(kl_launcher *x, const kl_kernel_unit *u, kl_plan *p);
// Where in scratch memory an argument lies, once buffers are placed: it was a number of its kind (kernels.h) before.
void kl_launcher_place(const kl_launcher *x, kiln_argument *a);

#endif
