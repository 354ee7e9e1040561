// Launches of kernels as members of one kernel (lower/plan/rounds.h), which has the arguments of all of them, each
// once. Private to src/jit.
#ifndef KL_MEMBERS_H
#define KL_MEMBERS_H

#include "jit/kernels.h"

typedef struct kl_gathered {
  kl_ctx *cx;
  kl_kernels *k;
  kl_planned *planned; // by kernel
  VEC(kiln_argument) arguments;
  VEC(kl_member) members;
  VEC(kl_member) known; // of launches whose plans others share
  uint32_t plan_steps;
  const char *why; // they are too many, or some launch cannot be one; NULL: nothing is against it
} kl_gathered;

// None yet.
void kl_gather_anew(kl_gathered *g);
void kl_gather_free(kl_gathered *g);
uint32_t kl_gather_argument(kl_gathered *g, const kiln_argument *a);
// All launches of a kernel.
void kl_gather(kl_gathered *g, uint32_t unit);
// Why they cannot be; NULL: they can.
const char *kl_why_not_gathered(kl_gathered *g, uint32_t unit);
// Steps that a launch's code is of.
uint32_t kl_gathered_steps(const kl_plan *p, const kl_plan_launch *l);
// What a launch of the kernel costs, counted once.
const kl_member *kl_gathered_member(kl_gathered *g, kl_planned *p, uint32_t launch);
// A name that no kernel of launches has: the first one's, what it is, and if that is taken the kernel's number.
const char *kl_gathered_name(const kl_kernels *k, const char *first, const char *what, uint32_t unit);

// A group's launch, in `arena`, from those of its kernels. name: of the kernel that has the code.
kiln_launch kl_grouped_launch(const kl_kernels *k, const kl_grouped *g, const char *name, const kl_planned *planned,
                              kl_arena *arena);

// Kernels first .. end - 1, one behind the other, that become one launch if there is more than one launch of them
// (chain.c). It grows kernel by kernel, as these are planned.
typedef struct kl_chain {
  const kl_target *t;
  const kl_strategy *s;
  kl_sb *why; // what became of launches, for people; NULL: nobody asks
  uint32_t first, end;
  uint32_t *run;            // by kernel: a number that kernels have alike which follow each other whatever data says
  struct kl_beside *beside; // by kernel that others are like
  kl_gathered of;
  kl_rounds rounds; // its shares are the shortest that there can be
  kl_rounds fitted; // the same with what kl_shares_fit finds
  VEC(kl_member) members;
  VEC(uint32_t) same;
  uint64_t bytes;       // of the buffers that are there for all of it
  bool looked;          // at the first kernel
  bool open;            // others may follow, once it is looked at
  bool several;         // it is one launch where there would be several
  double clocks, apart; // estimated: of it as it is; as launches
} kl_chain;

void kl_chain_init(kl_chain *c, kl_ctx *cx, kl_kernels *k, const kl_target *t, const kl_strategy *s,
                   kl_planned *planned, kl_sb *why);
void kl_chain_free(kl_chain *c);
// Begins with a kernel that is planned.
void kl_chain_begin(kl_chain *c, uint32_t unit);
// The kernel behind is one of it, where blocks of both go side by side, and where that takes less time.
bool kl_chain_takes(kl_chain *c, uint32_t unit);
// Nothing is left of it. Where it has several launches, it is one of the kernels' groups; else NULL.
const kl_grouped *kl_chain_end(kl_chain *c);

#endif
