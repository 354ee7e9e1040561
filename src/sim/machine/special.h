// Special registers, as arrays of 32 lanes that instructions read like others.
#ifndef KL_SPECIAL_H
#define KL_SPECIAL_H

#include "sim/isa/op.h"
#include "sim/ptx/ptx.h"

// Bytes at the beginning of a block's shared memory that belong to the system, in kernels that ask where they are.
enum { KL_RESERVED_SHARED = 1024 };

// name in PTX, field, bits; in the order of the area
// clang-format off
#define KL_SPECIALS(X)                                                                                                 \
  X("%tid.x", tid_x, 32)  X("%tid.y", tid_y, 32)  X("%tid.z", tid_z, 32)  X("%laneid", laneid, 32)                     \
  X("%ntid.x", ntid_x, 32) X("%ntid.y", ntid_y, 32) X("%ntid.z", ntid_z, 32)                                           \
  X("%ctaid.x", ctaid_x, 32) X("%ctaid.y", ctaid_y, 32) X("%ctaid.z", ctaid_z, 32)                                     \
  X("%nctaid.x", nctaid_x, 32) X("%nctaid.y", nctaid_y, 32) X("%nctaid.z", nctaid_z, 32)                               \
  X("%warpid", warpid, 32) X("%nwarpid", nwarpid, 32) X("%smid", smid, 32) X("%nsmid", nsmid, 32)                      \
  X("%lanemask_eq", lanemask_eq, 32) X("%lanemask_le", lanemask_le, 32) X("%lanemask_lt", lanemask_lt, 32)             \
  X("%lanemask_ge", lanemask_ge, 32) X("%lanemask_gt", lanemask_gt, 32)                                                \
  X("%clusterid.x", clusterid_x, 32) X("%clusterid.y", clusterid_y, 32) X("%clusterid.z", clusterid_z, 32)             \
  X("%nclusterid.x", nclusterid_x, 32) X("%nclusterid.y", nclusterid_y, 32) X("%nclusterid.z", nclusterid_z, 32)       \
  X("%cluster_ctaid.x", cluster_ctaid_x, 32) X("%cluster_ctaid.y", cluster_ctaid_y, 32)                                \
  X("%cluster_ctaid.z", cluster_ctaid_z, 32) X("%cluster_nctaid.x", cluster_nctaid_x, 32)                              \
  X("%cluster_nctaid.y", cluster_nctaid_y, 32) X("%cluster_nctaid.z", cluster_nctaid_z, 32)                            \
  X("%cluster_ctarank", cluster_ctarank, 32) X("%cluster_nctarank", cluster_nctarank, 32)                              \
  X("%dynamic_smem_size", dynamic_smem_size, 32) X("%total_smem_size", total_smem_size, 32)                            \
  X("%aggr_smem_size", aggr_smem_size, 32) X("%zero", zero, 32)                                                        \
  X("%envreg1", grid_state_high, 32) X("%envreg2", grid_state_low, 32)                                                 \
  X("%reserved_smem_offset_end", reserved_end, 32) X("%reserved_smem_offset_1", reserved_half, 32)                     \
  X("%gridid", gridid, 64) X("%zero64", zero64, 64)
// clang-format on

// A predicate is a word; %is_explicit_cluster stands first.
typedef struct kl_special_area {
  _Alignas(64) uint32_t is_explicit_cluster;
  uint32_t unused[15];
#define X(name, field, bits) _Alignas(64) uint##bits##_t field[KL_LANES];
  KL_SPECIALS(X)
#undef X
} kl_special_area;

typedef enum kl_special_kind {
  KL_SPECIAL_NONE, // there is none of that name
  KL_SPECIAL_PRED,
  KL_SPECIAL_PLACE, // at a place of the area
  KL_SPECIAL_CLOCK, // changes as time goes: %clock, %clock_hi, %clock64, %globaltimer and its halves
} kl_special_kind;

typedef struct kl_special {
  kl_special_kind kind;
  uint8_t bits;
  uint32_t at;   // PLACE: in the area; CLOCK: bits to shift the time by
  uint32_t step; // CLOCK: time per tick
} kl_special;
kl_special kl_special_find(kl_str name);

#endif
