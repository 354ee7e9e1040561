// Private to src/lower/choose: what choosers are given, and what they answer.
#ifndef KL_CHOOSER_H
#define KL_CHOOSER_H

#include "lower/choose/walk/walk.h"

// The plan has its module, computation, target and name, and one launch without parts; slots are those of parameters
// and results. A chooser sets count and the block where it is another; it adds parts with bodies, and may add slots,
// and launches behind.
typedef struct kl_choosing {
  kl_ctx *cx;
  kl_plan *plan;
  kl_slots slots;
  const kl_plan_params *params;
  kl_arena *arena;
  VEC(kl_declined) declined;
} kl_choosing;

// Writes the plan and sets *why_not to NULL; or leaves the plan as it was and says in a sentence why not, "" where what
// the chooser is for is not there. An error is one for all choosers.
typedef kiln_status kl_chooser(kl_choosing *c, const char **why_not);

kl_chooser kl_choose_loop, kl_choose_reduction, kl_choose_transposition;
kl_chooser kl_choose_scatter, kl_choose_private_scatter, kl_choose_sorted_scatter;

// Bytes that blocks share without asking for more.
enum { KL_MOST_SHARED = 48 << 10 };

// identity.c: what changes no bit of what the op joins it with, a complex number's parts one by one; false: none that
// is known.
bool kl_identity_of(kl_op op, kl_dtype t, uint64_t bits[2]);

// plan.c: as it was before the chooser began, with so many slots and constants.
void kl_forget_choice(kl_choosing *c, size_t slots, size_t constants);
// loop.c: parts of the last launch, which has none, that make the results which are not made yet. made: by result.
kiln_status kl_loop_results(kl_choosing *c, const bool *made);
// share.c: how many elements of a domain whose parts are known a thread makes, beside the `lanes` that lie together, so
// that what they read alike is read once. has: by argument, whether the domain has to do with it.
kiln_status kl_find_sharing(kl_choosing *c, kl_domain *d, const bool *has, uint32_t lanes);

#endif
