// What warps ask of memory: for one instruction that all threads of a launch execute, the 32-byte sectors that its
// requests touch.
//
// A request is one execution by the 32 threads of a warp; it costs as many sectors as it touches, whichever threads
// touch them, and whether whole or in part. Counted over all warps, not sampled: an index made of sums and floors of
// the thread number repeats, but for a constant step, after a number of threads that the divisors give, so that one
// period stands for all; a guard whose index moves on is settled but for the periods where its bounds lie.
#ifndef KL_COALESCE_H
#define KL_COALESCE_H

#include "ir/index/map.h"

enum { KL_WARP = 32, KL_SECTOR_BYTES = 32 };

typedef struct kl_request {
  const kl_aff *at; // in bits from the start of the array; dim 0 is the thread
  uint32_t bytes;   // that a thread reads or writes, from the byte that the bit lies in
  uint32_t nconditions;
  const kl_constraint *conditions; // of threads that do, in dim 0
  bool else_first;                 // the others read as many bytes from the start of the array
} kl_request;

typedef struct kl_sectors {
  int64_t requests; // of warps with a thread that takes part
  int64_t sectors;  // touched, each once a request
  int64_t least;    // that would hold the same bytes
  bool exact;       // false: extrapolated from some warps
} kl_sectors;

// Of threads 0 .. threads-1. `base`: where the array begins, in bytes from the start of a sector. Where more than about
// `quota` threads would have to be looked at, some warps stand for all.
enum { KL_SECTORS_QUOTA = 1 << 20 };
kl_sectors kl_count_sectors(kl_affs *p, const kl_request *r, int64_t threads, uint32_t base, int64_t quota);

// Whether XLA's analysis calls an operand coalesced, for comparison only: the requests are all that each thread reads
// of it in its loop. What the first warp's threads read, whatever conditions say, is taken as runs of neighbouring
// bytes, each of as many lines of 128 bytes as it has, wherever it begins; all together would need more than 0.9 of
// those lines. True for no requests.
bool kl_is_coalesced_for_xla(kl_affs *p, const kl_request *requests, uint32_t n, int64_t threads);

#endif
