// Rows of what threads do together: barriers, fences, shuffles, votes. PTX ISA 9.7.9.6, 9.7.13.
#ifndef KL_ISA_WARP_H
#define KL_ISA_WARP_H

// clang-format off
// Barriers of a block by their name, which says whether all threads of a warp come.
#define KL_ISA_BARRIERS(X, name, aligned)                                                                              \
  X(barrier,     name ".sync" aligned,                  "a{, b}",             SYNC, OWN,   EXACT, "9.7.13.1")          \
  X(arrive,      name ".arrive" aligned,                "a, b",               SYNC, OWN,   EXACT, "9.7.13.1")          \
  X(barrier_red, name ".red(.and|.or)" aligned ".pred", "p, a{, b}, c",       SYNC, OWN,   EXACT, "9.7.13.1")          \
  X(barrier_red, name ".red.popc" aligned ".u32",       "d, a{, b}, c",       SYNC, OWN,   EXACT, "9.7.13.1")

//  decoded by   pattern                                                      operands               unit  spread grade  section
#define KL_ISA_WARP(X)                                                                                                 \
  KL_ISA_BARRIERS(X, "bar", "")                                                                                        \
  KL_ISA_BARRIERS(X, "bar.cta", "")                                                                                    \
  KL_ISA_BARRIERS(X, "barrier", "{.aligned}")                                                                          \
  KL_ISA_BARRIERS(X, "barrier.cta", "{.aligned}")                                                                      \
  X(warp_sync,   "bar.warp.sync",                                             "mask",                SYNC, OWN,   EXACT, "9.7.13.2") \
  X(cluster_arrive, "barrier.cluster.arrive{.release|.relaxed}{.aligned}",    "",                    SYNC, OWN,   EXACT, "9.7.13.3") \
  X(cluster_wait, "barrier.cluster.wait{.acquire}{.aligned}",                 "",                    SYNC, OWN,   EXACT, "9.7.13.3") \
  X(fence,       "membar(.cta|.gl|.sys)",                                     "",                    SYNC, OWN,   EXACT, "9.7.13.4") \
  X(fence,       "fence{.sc|.acq_rel|.acquire|.release}(.cta|.cluster|.gpu|.sys)", "",               SYNC, OWN,   EXACT, "9.7.13.4") \
  X(fence,       "fence.mbarrier_init.release.cluster",                       "",                    SYNC, OWN,   EXACT, "9.7.13.4") \
  X(fence,       "fence.proxy(.alias|.async.global|.async.shared::cta|.async.shared::cluster|.async)", "", SYNC, OWN, EXACT, "9.7.13.4") \
  X(fence,       "fence(.acquire.sync_restrict::shared::cluster|.release.sync_restrict::shared::cta).cluster", "", SYNC, OWN, EXACT, "9.7.13.4")\
  X(fence,       "fence.proxy.tensormap::generic.release(.cta|.cluster|.gpu|.sys)", "",              SYNC, OWN,   EXACT, "9.7.13.4")\
  X(fence,       "fence.proxy.tensormap::generic.acquire(.cta|.cluster|.gpu|.sys)", "[a], n",        SYNC, OWN,   EXACT, "9.7.13.4")\
  X(fence,       "fence.proxy.async::generic(.acquire.sync_restrict::shared::cluster|.release.sync_restrict::shared::cta).cluster", "", SYNC, OWN, EXACT, "9.7.13.4")\
  X(fence,       "membar.proxy.alias",                                        "",                    SYNC, OWN,   EXACT, "9.7.13.4")\
  X(shfl,        "shfl.sync(.up|.down|.bfly|.idx).b32",                       "d|p, a, b, c, mask",  WARP, OWN,   EXACT, "9.7.9.6") \
  X(vote,        "vote.sync(.all|.any|.uni).pred",                            "p, {!}a, mask",       WARP, OWN,   EXACT, "9.7.13.9") \
  X(vote,        "vote.sync.ballot.b32",                                      "d, {!}a, mask",       WARP, OWN,   EXACT, "9.7.13.9") \
  X(match,       "match.any.sync(.b32|.b64)",                                 "d, a, mask",          WARP, OWN,   EXACT, "9.7.13.10") \
  X(match,       "match.all.sync(.b32|.b64)",                                 "d|p, a, mask",        WARP, OWN,   EXACT, "9.7.13.10") \
  X(redux,       "redux.sync(.add|.min|.max)(.u32|.s32)",                     "d, a, mask",          WARP, OWN,   EXACT, "9.7.13.12") \
  X(redux,       "redux.sync(.and|.or|.xor).b32",                             "d, a, mask",          WARP, OWN,   EXACT, "9.7.13.12") \
  X(redux,       "redux.sync(.min|.max){.abs}{.NaN}.f32",                     "d, a, mask",          WARP, OWN,   EXACT, "9.7.13.12") \
  X(activemask,  "activemask.b32",                                            "d",                   WARP, OWN,   EXACT, "9.7.13.11") \
  X(elect,       "elect.sync",                                                "d|p, mask",           WARP, OWN,   EXACT, "9.7.13.14")
// clang-format on

#endif
