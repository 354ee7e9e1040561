// Executors of the machine's own instructions: what they need beside operands is behind kl_sim_op.imm.
#ifndef KL_EXECUTE_H
#define KL_EXECUTE_H

#include "sim/machine/warp.h"

// Access: imm is a kl_sim_access.
kl_run kl_x_load, kl_x_store, kl_x_atomic; // atomic: d the old value (or none), a and b the operands
// cp.async: imm is a kl_copy; commit_group; wait_group, wait_all: imm groups may be on their way, UINT32_MAX: none.
kl_run kl_x_copy_async, kl_x_copy_commit, kl_x_copy_wait;

// Control. Branch: a a predicate or none, KL_NOT_C, imm the number of the op. Table: a the index, imm a kl_jump_table.
kl_run kl_x_branch, kl_x_branch_table, kl_x_call, kl_x_ret, kl_x_exit, kl_x_trap, kl_x_sleep, kl_x_nothing;
typedef struct kl_jump_table {
  uint32_t n;
  uint32_t ops[];
} kl_jump_table;
// Lanes where predicate a holds go on, until `unguard`; where there are none, imm ops are left out.
kl_run kl_x_guard, kl_x_unguard;

// d = address in the stack frame; imm: offset. 32 or 64 bits.
kl_run kl_x_frame_address_32, kl_x_frame_address_64;
// d = time; imm: bits to shift by, then steps per tick << 8.
kl_run kl_x_clock_32, kl_x_clock_64;
// d = a as an address of the generic space, imm: its window; and back. 64 bits.
kl_run kl_x_to_generic, kl_x_from_generic;
kl_run kl_x_is_space; // d a predicate, a an address, imm: kl_is_space
typedef enum kl_is_space {
  KL_IS_GLOBAL,
  KL_IS_CONST,
  KL_IS_SHARED_CTA,
  KL_IS_SHARED_CLUSTER,
  KL_IS_LOCAL,
  KL_IS_PARAM,
} kl_is_space;
// d = a in the shared memory of block b of the cluster; imm: 1 where a is generic. 32 and 64 bits.
kl_run kl_x_mapa_32, kl_x_mapa_64, kl_x_ctarank_32, kl_x_ctarank_64;
kl_run kl_x_alloca_32, kl_x_alloca_64, kl_x_stacksave_32, kl_x_stacksave_64, kl_x_stackrestore_32, kl_x_stackrestore_64;

// Collectives. a: barrier; b: threads or none; c: predicate; imm: kl_reduction.
kl_run kl_x_barrier, kl_x_arrive, kl_x_cluster_arrive, kl_x_cluster_wait;
typedef enum kl_reduction { KL_REDUCE_NONE, KL_REDUCE_AND, KL_REDUCE_OR, KL_REDUCE_COUNT } kl_reduction;
// Of lanes: f is the mask of those that take part, imm what is done.
kl_run kl_x_warp_sync, kl_x_shuffle, kl_x_vote, kl_x_match, kl_x_redux, kl_x_elect, kl_x_activemask;
// Matrices of 8 by 8 elements of 16 bits, from rows that lanes hold, 16 bytes each, to what lanes are given of them, or
// back: imm is a kl_matrices.
kl_run kl_x_matrices;
typedef struct kl_matrices {
  kl_ref rows[4];  // words of a row: of matrix m row r is lane 8 m + r's
  kl_ref parts[4]; // by matrix: two elements of each lane
  uint8_t count;   // of the matrices: 1, 2, 4; 0: lanes meet and that is all
  bool transposed, to_rows;
} kl_matrices;
typedef struct kl_matrix_half {
  uint8_t lane, word, half; // of a row
} kl_matrix_half;
// Where element `half` of what a lane is given of matrix m stands in the rows. PTX ISA 9.7.14.5.15.
static inline kl_matrix_half kl_matrix_place(bool transposed, unsigned m, unsigned lane, unsigned half) {
  unsigned across = lane / 4, along = 2 * (lane % 4) + half;
  unsigned row = transposed ? along : across, column = transposed ? across : along;
  return (kl_matrix_half){(uint8_t)(8 * m + row), (uint8_t)(column / 2), (uint8_t)(column % 2)};
}
// An op that keeps a call's value in the stack frame, or takes it from there: no instruction's own access.
static inline bool kl_is_keeping(const kl_code *code, uint32_t op) {
  return !code->forms[op] && (code->ops[op].run == kl_x_load || code->ops[op].run == kl_x_store);
}
typedef enum kl_vote { KL_VOTE_ALL, KL_VOTE_ANY, KL_VOTE_UNI, KL_VOTE_BALLOT } kl_vote;
enum { KL_MATCH_ALL = 1, KL_MATCH_64 = 2 };
typedef enum kl_redux {
  KL_REDUX_ADD,
  KL_REDUX_MIN_U,
  KL_REDUX_MAX_U,
  KL_REDUX_MIN_S,
  KL_REDUX_MAX_S,
  KL_REDUX_AND,
  KL_REDUX_OR,
  KL_REDUX_XOR,
  KL_REDUX_MIN_F,
  KL_REDUX_MAX_F,
} kl_redux;

#endif
