// What a plan costs, on a GPU if nothing else is said, counted from the plan alone: without code, and for large grids
// as fast as for small ones.
//
// Counts of memory, shuffles and syncs are those of the simulator (kiln/profile.h), by the same names.
#ifndef KL_COST_H
#define KL_COST_H

#include "lower/analysis/coalesce.h"
#include "lower/plan/plan.h"

enum { KL_COST_WIDTHS = 5 };

// Loads, or stores.
typedef struct kl_access_cost {
  kl_requests asked;
  int64_t bytes;                 // that lanes ask for
  int64_t width[KL_COST_WIDTHS]; // requests by bytes of a lane: 1, 2, 4, 8, 16
} kl_access_cost;

typedef struct kl_slot_cost {
  kl_access_cost load, store;
  kl_access_cost change; // of elements that other threads may change, too; where data says which, about
  bool data; // data says where some access goes: counted as if every symbol were 0, or the nearest it can be
  bool coalesced_for_xla; // as XLA's analysis has it of each of its loads; for comparison only, of a thorough count
} kl_slot_cost;

typedef struct kl_cost {
  kl_slot_cost *slots;                                                          // by slot
  kl_access_cost load, store, change, shared_load, shared_store, shared_change; // of all slots
  int64_t shuffles, syncs;                                                      // issues of warps
  int64_t warps;
  int64_t instructions; // issues of warps: estimated
  double registers;     // of a thread, of the launch that has most: estimated
  bool exact;           // false: somewhere some warps stand for all
  bool data;
} kl_cost;

// Of a plan for a GPU whose element count is known; of others all is 0. Buffers begin with a sector. About `quota`
// threads are looked at where memory has no short period. `slots` are the plan's arena's.
enum { KL_COST_THOROUGH = 4 * KL_REQUESTS_QUOTA, KL_COST_QUICK = 1 << 15 };
kl_cost kl_plan_cost(kl_plan *p, int64_t quota);

// What takes a GPU's multiprocessors longest, in clocks of one of them: the memory of the whole GPU, L2, shared memory,
// the issue of instructions, changes of one element, which come one after the other; and a launch. By the H100's
// numbers, whose proportions are those of other GPUs, roughly.
typedef enum kl_cost_limiter {
  KL_LIMIT_DRAM,
  KL_LIMIT_L2,
  KL_LIMIT_SHARED,
  KL_LIMIT_ISSUE,
  KL_LIMIT_MEET,
  KL_LIMITS
} kl_cost_limiter;
typedef struct kl_cost_clocks {
  double of[KL_LIMITS];
  kl_cost_limiter limiter;
  double work; // the longest, and part of the others, which overlap with it
  double all;  // and launches, of all multiprocessors
} kl_cost_clocks;
enum { KL_LAUNCH_CLOCKS = 3500 };
kl_cost_clocks kl_clocks_of(const kl_plan *p, const kl_cost *c);

// Instructions of one iteration of a host's launch, roughly, at least 1: of vectors, of the part whose are most.
double kl_iteration_work(const kl_plan *p, const kl_plan_launch *l);

// Of the part of a plan for the host whose code is the longest, roughly: instructions of the code; steps and stores
// that it is of, whose copies they are; instructions of an iteration outside loops that carry values, and in these.
typedef struct kl_code_size {
  double code;
  uint32_t nodes;
  double outside, carried;
} kl_code_size;
kl_code_size kl_size_of_code(const kl_plan *p);

// How often the host does an instruction of the plan's code, on average, when all of its launches are run.
double kl_times_done(const kl_plan *p);

static inline bool kl_is_exact(const kl_slot_cost *s) {
  return s->load.asked.exact && s->store.asked.exact;
}

#endif
