// What warps ask of memory: for one instruction, the 32-byte sectors that its requests touch, and passes over the banks
// of shared memory.
//
// A request is one execution by the 32 threads of a warp; it costs as many sectors as it touches, whichever threads
// touch them, and whether whole or in part. Counted over all warps, not sampled, in time that does not grow with their
// number: an index made of sums and floors of variables repeats along each of them, but for a constant step, after as
// many of its values as the divisors give, so that one period stands for all; a guard whose index moves on from period
// to period is linear in their numbers, and these are cut where it turns.
#ifndef KL_COALESCE_H
#define KL_COALESCE_H

#include "ir/index/map/map.h"

enum { KL_WARP = 32, KL_SECTOR_BYTES = 32, KL_WARP_VARS = 32 };

// Warps that execute an instruction. In lane l variable v has the values lane[v][l] + scale[v] * x, x from 0 to
// extent[v] - 1; warps are all combinations.
typedef struct kl_warps {
  uint32_t nvars;
  int64_t extent[KL_WARP_VARS], scale[KL_WARP_VARS];
  int64_t lane[KL_WARP_VARS][KL_WARP];
  const int64_t *symbols; // values of runtime variables; NULL: there are none
} kl_warps;

typedef struct kl_request {
  const kl_aff *element; // in variables; what a thread reads begins at bit element * bits + bit of the array
  int64_t bits, bit;
  uint32_t bytes; // that a thread reads or writes, from the byte that the bit lies in
  uint32_t nconditions;
  const kl_constraint *conditions; // of threads that do
  const kl_aff *otherwise; // NULL: the others do nothing; else they read this element, those for which the first
  uint32_t nthere;         // `nthere` conditions hold
  bool shared;             // memory is that which a block shares
} kl_request;

typedef struct kl_requests {
  int64_t requests;                     // of warps with a thread that takes part
  int64_t lanes;                        // that do
  int64_t unique;                       // bytes, different ones of each request
  int64_t sectors;                      // touched, each once a request; not of shared memory
  int64_t least;                        // that would hold the same bytes
  int64_t wavefronts, ideal_wavefronts; // of shared memory: passes over its banks, and the fewest
  bool exact;                           // false: some warps stand for all
} kl_requests;

// `base`: where the array begins, in bytes from the start of a sector; in shared memory from its own start. Where more
// than about `quota` threads would have to be looked at, some warps stand for all.
enum { KL_REQUESTS_QUOTA = 1 << 20 };
kl_requests kl_count_requests(const kl_warps *w, const kl_request *r, uint32_t base, int64_t quota);
void kl_add_requests(kl_requests *to, const kl_requests *x, int64_t times);

// Whether XLA's analysis calls an operand coalesced, for comparison only: the requests are all that each thread reads
// of it in its loop. What the first warp's threads read, whatever conditions say, is taken as runs of neighbouring
// bytes, each of as many lines of 128 bytes as it has, wherever it begins; all together would need more than 0.9 of
// those lines. True for no requests.
bool kl_is_coalesced_for_xla(kl_ctx *cx, const kl_warps *w, const kl_request *requests, uint32_t n);

#endif
