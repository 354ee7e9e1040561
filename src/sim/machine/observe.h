// Who looks on while a kernel runs: checks and counters. They are told what happens in the order in which it happens,
// and change nothing of what the kernel computes. A launch with observers runs on one of the host's threads, so that
// what they see is the same every time.
#ifndef KL_MACHINE_OBSERVE_H
#define KL_MACHINE_OBSERVE_H

#include "sim/machine/access.h"

// Lanes of a warp that meet in a collective, each with the op and the frame it is at.
typedef struct kl_party {
  uint32_t mask;
  bool together; // they are one strand, the one that runs: all at one op
  const kl_sim_op *op[KL_LANES];
  const kl_frame *frame[KL_LANES];
  kl_warp *w;
} kl_party;

struct kl_observer {
  // Each may be NULL. A block is at its first instruction; it is over, or the launch failed.
  void (*begin)(kl_observer *, kl_block *);
  void (*end)(kl_observer *, kl_block *);
  // An op comes next, in the lanes of w->x.mask. One that must wait, or whose lanes part first, comes again.
  void (*step)(kl_observer *, kl_warp *w, const kl_sim_op *);
  bool seldom; // step: of ops that are `told`, and of all in frames that lack something; others may come as well
  // Its lanes' places are found, and nothing has moved yet. cp.async: the source, then the target; then, lane by lane,
  // that the copy is on its way, and at some later time that it is about to arrive.
  void (*access)(kl_observer *, kl_warp *w, const kl_sim_op *, const kl_sim_access *, const kl_places *);
  void (*copy)(kl_observer *, kl_warp *w, kl_flight *, bool arrives);
  // Lanes are about to begin in a callee's frame (w->strand still has the caller's), or to leave it for its caller's.
  void (*call)(kl_observer *, kl_warp *w, const kl_frame *callee, uint32_t lanes);
  void (*ret)(kl_observer *, kl_warp *w, const kl_frame *callee, uint32_t lanes);
  // All lanes of a collective are there; it is about to be performed.
  void (*meet)(kl_observer *, const kl_party *);
  // Lanes are about to arrive at a barrier, which `expected` threads open (0: all of the block), and wait there or not.
  void (*arrive)(kl_observer *, kl_warp *w, const kl_sim_op *, unsigned barrier, uint32_t expected, uint32_t lanes);
  // A barrier opens: w->arrived says which lanes have come, those that wait are still in w->waiting.
  void (*open)(kl_observer *, kl_block *, unsigned barrier);
  void (*open_cluster)(kl_observer *, kl_cluster *);
  // The launch fails with this fault. It may not be the one that is reported: that is the lowest block's.
  void (*fault)(kl_observer *, kl_warp *w, const kl_sim_op *, const kl_fault *);
};

// Tells all observers of a block's launch.
#define KL_TELL(block, what, ...)                                                                                      \
  do {                                                                                                                 \
    const kl_launch *l_ = (block)->run->launch;                                                                        \
    for (uint32_t k_ = 0; k_ < l_->nobservers; k_++)                                                                   \
      if (l_->observers[k_]->what) l_->observers[k_]->what(l_->observers[k_], __VA_ARGS__);                            \
  } while (0)

#endif
