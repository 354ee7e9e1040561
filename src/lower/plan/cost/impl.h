// Private to src/lower/plan/cost.
#ifndef KL_COST_IMPL_H
#define KL_COST_IMPL_H

#include "lower/plan/cost/cost.h"
#include "lower/plan/live.h"

// change.c: of threads, how many an index lies in the bounds for, if data takes any of its values alike.
double kl_share_of(const kl_body *b, const kl_aff *e, int64_t lo, int64_t hi);
// What a change's requests become, counted with any symbols, where these are any numbers, and for a share of threads.
// bytes: of a lane.
void kl_spread_change(const kl_slot_info *s, const kl_store *store, kl_requests *q, uint32_t bytes, double share);
double kl_change_instructions(const kl_slot_info *s, const kl_store *store); // beside the request itself

// address.c: what of a body's indices is there already, by number.
typedef VEC(uint8_t) kl_flags;
typedef struct kl_address {
  uint32_t slot, index;
} kl_address;
typedef struct kl_open_guard {
  bool known;
  uint32_t groups; // of copies, that it decides
  double share;    // these of all
} kl_open_guard;
typedef struct kl_indexing {
  kl_plan *p;
  const kl_body *b;
  kl_flags sums, atoms, guards;
  VEC(kl_open_guard) open; // by guard
  VEC(kl_address) addresses;
} kl_indexing;
// Instructions of a warp, those that are not there yet: of an index; of the address of a chunk; of a guard and its
// outer ones.
double kl_index_instructions(kl_indexing *x, const kl_aff *e);
double kl_address_instructions(kl_indexing *x, const kl_access *a, uint32_t chunk, bool guarded);
double kl_guard_instructions(kl_indexing *x, uint32_t guard);
double kl_guard_share(kl_indexing *x, uint32_t guard);
void kl_indexing_free(kl_indexing *x);

// Shuffles of an EXCHANGE step.
int64_t kl_exchanged_words(const kl_body *b, const kl_step *s);
// Instructions of a warp for a step, requests, shuffles, indices and guards aside.
double kl_step_instructions(const kl_plan *p, const kl_body *b, const kl_step *s);
// The same of an OP step's function for one element.
double kl_function_instructions(const kl_body *b, const kl_step *s);
// registers.c: of a thread, about.
double kl_body_registers(kl_plan *p, const kl_plan_launch *l, const kl_body *b);
// Of the kernel, once for all steps of an op and type: where quotients and the like go that are not as most are.
double kl_rest_instructions(const kl_body *b);

#endif
