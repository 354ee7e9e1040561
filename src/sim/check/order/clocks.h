// What happens before what: every thread counts its steps, and knows of the others' how far they happened before its
// own next one.
//
// A step ends where others may learn of it (a barrier, a fence, a release). What a thread knows is called its past. It
// is kept by block, in a block by warp, and is shared between threads for as long as it is the same: behind a barrier
// that all of a block wait in, one number says it for the whole block.
#ifndef KL_ORDER_CLOCKS_H
#define KL_ORDER_CLOCKS_H

#include "sim/machine/warp.h"

typedef struct kl_warp_past {
  uint32_t refs;
  uint32_t step[KL_LANES]; // the last of each lane that happened before
} kl_warp_past;

typedef struct kl_block_past {
  uint32_t refs;
  uint32_t least;       // the last step of every thread of a warp that has none of its own
  kl_warp_past *warp[]; // by rank, or NULL
} kl_block_past;

typedef struct kl_past {
  uint32_t refs;
  size_t n, cap;
  struct kl_past_of {
    uint64_t block;
    kl_block_past *past;
  } of[]; // by rising block
} kl_past;

// A thread's past at some time: what its own warp's lanes share stands apart.
typedef struct kl_moment {
  kl_past *past;
  kl_warp_past *own; // all that is known of the own warp; NULL: what `past` says
  uint32_t step;
} kl_moment;

typedef struct kl_clocks {
  kl_ctx *cx;
  uint32_t warps; // of a block
  uint32_t last;  // no step is later
  bool spent;     // a thread has come to the last step: from now on nothing is known
  VEC(void *) free_warps;
  VEC(void *) free_blocks;
} kl_clocks;

// The clocks of a warp's lanes.
typedef struct kl_ticks {
  uint64_t block;
  uint32_t rank; // in the block
  uint32_t step[KL_LANES];
  uint32_t used[KL_LANES]; // the last step with an access
  kl_past *past[KL_LANES]; // NULL: nothing
  kl_warp_past *own[KL_LANES];
  const kl_block_past *mine[KL_LANES]; // the own block's in `past`, or NULL
  uint32_t alike;                      // these lanes are known to be at one step and to know the same; 0: not yet
} kl_ticks;

void kl_ticks_begin(kl_ticks *t, uint64_t block, uint32_t rank);
void kl_ticks_end(kl_clocks *c, kl_ticks *t);

static inline kl_past *kl_past_ref(kl_past *p) {
  if (p) p->refs++;
  return p;
}
void kl_past_drop(kl_clocks *c, kl_past *p);

// Did step `step` of lane `lane` of warp `rank` of `block` happen before what lane `me` does next?
bool kl_knows_far(const kl_ticks *t, unsigned me, uint64_t block, uint32_t rank, unsigned lane, uint32_t step);
static inline uint32_t kl_last_known(const kl_block_past *b, uint32_t rank, unsigned lane) {
  if (!b) return 0;
  return b->warp[rank] ? b->warp[rank]->step[lane] : b->least;
}
static inline bool kl_knows(const kl_ticks *t, unsigned me, uint64_t block, uint32_t rank, unsigned lane,
                            uint32_t step) {
  if (block != t->block) return kl_knows_far(t, me, block, rank, lane, step);
  if (rank == t->rank) {
    if (lane == me) return true;
    if (t->own[me]) return t->own[me]->step[lane] >= step;
  }
  return kl_last_known(t->mine[me], rank, lane) >= step;
}

// Are these lanes at one step, and know the same?
bool kl_are_alike(kl_ticks *t, uint32_t lanes);
// Of these lanes of a warp: those whose step `step` happened before what lane `me` does next, and before that of every
// other lane that is like it; so what is its own is not among them.
uint32_t kl_known_lanes(const kl_ticks *t, unsigned me, uint64_t block, uint32_t rank, uint32_t lanes, uint32_t step);

// The lanes' next step begins.
void kl_tick(kl_clocks *c, kl_ticks *t, uint32_t lanes);

// The lane's past now, and as it was; what is taken is given back.
kl_moment kl_moment_take(const kl_ticks *t, unsigned lane);
void kl_moment_drop(kl_clocks *c, kl_moment *m);
// The same as a past that others can learn: a new reference.
kl_past *kl_past_of_moment(kl_clocks *c, const kl_ticks *t, unsigned lane, const kl_moment *m);

// Both together: takes over the reference of `a`, and leaves b's.
kl_past *kl_past_join(kl_clocks *c, kl_past *a, kl_past *b);
// What these lanes have done up to now, and know, joins `a`, whose reference is taken over.
kl_past *kl_past_gather(kl_clocks *c, kl_past *a, const kl_ticks *t, uint32_t lanes);

// The lanes learn of this past.
void kl_learn(kl_clocks *c, kl_ticks *t, uint32_t lanes, kl_past *p);
// These lanes of the warp learn of each other.
void kl_meet(kl_clocks *c, kl_ticks *t, uint32_t lanes);

// A barrier opens: lanes[k] of warp k of the block, which wait, learn of each other, and of what those that came by
// knew (`came`, or NULL; its reference is taken over). `gone`: lanes that have exited, none of which waits.
void kl_all_meet(kl_clocks *c, kl_ticks *const *warps, const uint32_t *lanes, const uint32_t *gone, bool all,
                 kl_past *came);

void kl_clocks_free(kl_clocks *c);

#endif
