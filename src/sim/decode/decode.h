// From instructions to ops: what the files of this room share. `kl_decode_function` is what it offers.
#ifndef KL_DECODE_H
#define KL_DECODE_H

#include "sim/decode/blocks.h"
#include "sim/isa/match.h"
#include "sim/lanes/lanes.h"
#include "sim/machine/execute.h"
#include "sim/machine/warp.h"
#include <stdio.h>

// An op, and the row of the table that says what it does: NULL for what a decoder puts around instructions.
typedef struct kl_made_op {
  kl_sim_op op;
  const kl_form *form;
} kl_made_op;

// A call's result that goes to a register: where in the caller's stack frame it arrives.
typedef struct kl_result {
  kl_ref reg;
  uint32_t at, bytes;
} kl_result;

typedef struct kl_decoder {
  kl_ctx *cx;
  kl_loaded *loaded;
  kl_kernel *kernel;
  kl_code *code;
  const kl_ptx_func *f;
  kl_arena *arena;
  const kl_lane_set *set;
  kl_isa_index *isa;
  VEC(kl_made_op) ops;
  VEC(char) constants;
  VEC(uint32_t) labelled;     // ops whose imm is a label's number until the end
  VEC(kl_made_op) after;      // ops that follow the instruction's own
  VEC(kl_result) results;     // of the call at hand
  uint64_t kept_end;          // of what calls keep in the stack frame, behind all variables
  uint32_t *reg_at;           // by register: its kl_ref
  uint32_t frame;             // bytes of registers
  uint32_t temporaries, most; // bytes with the temporaries of the instruction at hand, and of any
  // The instruction at hand.
  const kl_ptx_instr *i;
  kl_match match;
  uint32_t index;
  kiln_status status; // the first failure
  uint32_t findings;
} kl_decoder;

typedef void kl_decode_fn(kl_decoder *d);

// The instruction cannot be: a finding at its place. Counts as a failure.
void kl_d_invalid(kl_decoder *d, const char *fmt, ...) KL_PRINTF(2, 3);
void kl_d_unsupported(kl_decoder *d, const char *fmt, ...) KL_PRINTF(2, 3);

// Adds an op for the instruction at hand and returns it; the pointer holds until the next one. One that does what the
// instruction's row says, one of the machine's own around it, or one of the lanes that no instruction names.
kl_sim_op *kl_d_op(kl_decoder *d, kl_run *run);
kl_sim_op *kl_d_machine_op(kl_decoder *d, kl_run *run);
kl_sim_op *kl_d_glue_op(kl_decoder *d, const char *name);
// The same, not added yet.
kl_made_op kl_d_glue(kl_decoder *d, const char *name);

// --- operands -----------------------------------------------------------------------------------------------------

// So many there must be.
bool kl_d_count(kl_decoder *d, uint32_t least, uint32_t most);
// A register's or constant's place, of so many bits (1: predicate). `wider`: a wider register is taken by its low bits.
// A negated predicate is computed first, unless `negated` takes it.
kl_ref kl_d_source(kl_decoder *d, const kl_ptx_operand *o, unsigned bits, bool wider, bool *negated);
// A destination; a wider register gets the value extended after the instruction.
kl_ref kl_d_target(kl_decoder *d, const kl_ptx_operand *o, unsigned bits, bool wider, bool sign);
// A register of this many bits that no name has, until the instruction ends.
kl_ref kl_d_temporary(kl_decoder *d, unsigned bits);
kl_ref kl_d_constant(kl_decoder *d, uint64_t low, uint64_t high, unsigned bits);
// Bits of a register; 0 if the operand is none.
unsigned kl_d_register_bits(const kl_decoder *d, const kl_ptx_operand *o);
// Address of a variable or function, in its own space; `frame`: counts from the stack frame. False: it has none.
bool kl_d_symbol(kl_decoder *d, const kl_ptx_operand *o, uint64_t *address, kl_where *where, bool *frame);
// An address operand: base, offset, where: `named`, or if NULL as the modifiers say, or where they say nothing as a
// symbol does.
bool kl_d_address(kl_decoder *d, const kl_ptx_operand *o, const kl_where *named, kl_sim_access *out);

// --- functions ----------------------------------------------------------------------------------------------------

// Of a variable in the stack frame; of a parameter in a register, where a call keeps it.
static inline uint32_t kl_d_alignment(const kl_ptx_var *v) {
  return v->reg && v->bytes ? (uint32_t)v->bytes : v->align ? v->align : 1;
}
// What a function does before its first instruction, and where its body ends without ret.
void kl_d_begin(kl_decoder *d);
void kl_d_end(kl_decoder *d);

// --- rows ---------------------------------------------------------------------------------------------------------

void kl_d_lanes(kl_decoder *d); // by the row's operand letters
kl_decode_fn kl_d_move, kl_d_move_special, kl_d_cvta, kl_d_cvta_to, kl_d_isspacep, kl_d_mapa, kl_d_getctarank;
kl_decode_fn kl_d_load, kl_d_store, kl_d_nothing, kl_d_policy, kl_d_copy_async, kl_d_copy_commit, kl_d_copy_wait,
    kl_d_atom, kl_d_red, kl_d_ldmatrix, kl_d_stmatrix;
kl_decode_fn kl_d_branch, kl_d_branch_idx, kl_d_call, kl_d_ret, kl_d_exit, kl_d_trap, kl_d_nanosleep, kl_d_setmaxnreg,
    kl_d_alloca, kl_d_stacksave, kl_d_stackrestore;
kl_decode_fn kl_d_barrier, kl_d_arrive, kl_d_barrier_red, kl_d_warp_sync, kl_d_cluster_arrive, kl_d_cluster_wait,
    kl_d_fence, kl_d_shfl, kl_d_vote, kl_d_match, kl_d_redux, kl_d_activemask, kl_d_elect;

// Gives every register its place.
void kl_d_place_registers(kl_decoder *d);
// Tells of accesses which run they belong to, and of ops whether observers are told of them.
void kl_d_find_runs(kl_decoder *d);
// Decodes a function of the kernel.
kiln_status kl_decode_function(kl_ctx *cx, kl_isa_index *isa, kl_kernel *k, uint32_t function, kl_code **out);
// The function itself, where the number is that of another name for it.
uint32_t kl_d_function(const kl_decoder *d, uint32_t function);

#endif
