// The plan of one kernel: plain data between the checked graph and the emitter.
//
// A kernel walks the flattened output domain: N elements in physical order of the roots, `lanes` consecutive ones per
// thread. The domain may be cut into parts, boxes of the results with blocks of their own. A part has two bodies of the
// same form: `main` for whole threads, without bounds checks, and `tail` for the rest, in its own blocks. A body is a
// list of steps in order of emission; each step yields one value per lane.
// Planning may refuse, with a reason; what it lets through, emission can do.
#ifndef KL_PLAN_H
#define KL_PLAN_H

#include "ir/index/domain.h"
#include "ir/hlo.h"

typedef enum kl_machine { KL_NVPTX, KL_HOST } kl_machine;

// What lowering may know of a device. Comes in at the top; lowering never asks the device.
typedef struct kl_target {
  kl_machine machine;
  uint32_t sm;         // 70, 75, 80, 90 ...; 0 on the host
  char variant;        // 'a', 'f' or 0
  uint32_t block;      // threads per block
  uint32_t max_bytes;  // widest memory access
  uint32_t host_lanes; // lanes per iteration on the host
  // Of one GPU; 0 where the target may be any.
  uint32_t multiprocessors;
  uint32_t shared_bytes; // that a block may ask for
  uint32_t l2_bytes;
} kl_target;

// Variables of every index expression in a plan: its dims.
enum { KL_VAR_THREAD, KL_VAR_LANE, KL_VAR_COUNT };

#define KL_NONE UINT32_MAX

// lo <= expr <= hi, and everything `outer` says. Constant over aligned groups of `uniform` lanes.
typedef struct kl_guard {
  uint32_t outer; // guard index or KL_NONE
  const kl_aff *expr;
  int64_t lo, hi;
  uint32_t uniform;
} kl_guard;

// How one step reads or writes a slot. Lanes go in chunks of `vec`; chunk c starts at element base[c] and lane i of it
// is at base[c] + i*stride (stride 1: one or more vector accesses; 0: one scalar for all; else lane by lane). With
// `reversed`, lanes of a contiguous chunk run downwards: base[c] is the lowest element.
typedef struct kl_access {
  uint32_t slot;
  uint32_t vec;
  int64_t stride;
  bool reversed;
  uint32_t align; // bytes that every base[c] is aligned to; 0 for sub-byte elements off byte bounds
  uint32_t guard; // KL_NONE, or: where it does not hold, element 0 is read instead of base[c]
  uint32_t nchunks;
  const kl_aff *const *base; // in KL_VAR_THREAD
} kl_access;

typedef enum kl_step_kind {
  KL_STEP_LOAD,   // access
  KL_STEP_SCALAR, // the same constant in every lane: bits
  KL_STEP_IOTA,   // expr, converted from s64 to dtype
  KL_STEP_CHOOSE, // operands[i] under guards[i], the first that holds; the last operand has no guard
  KL_STEP_SPLIT,  // bits of the operand from expr * width of dtype on: one part of a wider element
  KL_STEP_JOIN,   // the operands' bits side by side, the first lowest: one element of parts
  KL_STEP_OP,     // instr's op on operands
} kl_step_kind;

typedef struct kl_step {
  kl_step_kind kind;
  kl_dtype dtype;
  const kl_instr *instr; // where it comes from; never NULL
  uint32_t noperands;
  const uint32_t *operands; // earlier steps
  const uint32_t *guards;   // CHOOSE: noperands - 1
  kl_access access;         // LOAD
  const kl_aff *expr;       // IOTA, SPLIT, in THREAD and LANE
  uint64_t bits[2];         // SCALAR
} kl_step;

typedef struct kl_store {
  uint32_t step;
  kl_access access;
  uint32_t keep; // guard of lanes inside the domain, KL_NONE if all are; chunks outside are not stored, lanes that
                 // share a byte with one inside are stored as 0
} kl_store;

typedef struct kl_body {
  uint32_t lanes;
  int64_t threads; // 0: the body is empty
  int64_t first;   // first element of the part
  kl_dom *domain;  // values of thread and lane
  uint32_t nsteps;
  const kl_step *steps;
  uint32_t nguards;
  const kl_guard *guards;
  uint32_t nstores;
  const kl_store *stores;
} kl_body;

// The elements of the results whose index in dimension `dim` is lo .. lo+size-1, in physical order.
typedef struct kl_part {
  uint32_t dim; // KL_NONE: all elements
  int64_t lo, size;
  int64_t count; // elements
  kl_body main, tail;
  int64_t first_block; // blocks of all parts are in one row
  int64_t blocks;
  int64_t main_blocks;     // of these, the first so many run `main`
  int64_t first_iteration; // on the host the threads of every `main` are in one row
} kl_part;

// Slots: parameter leaves in order, then results, then constants that are too large for an immediate.
typedef enum kl_slot_kind { KL_SLOT_IN, KL_SLOT_OUT, KL_SLOT_CONST } kl_slot_kind;
typedef struct kl_slot_info {
  kl_slot_kind kind;
  const kl_shape *shape;
  int64_t bytes;
  uint32_t align;
  const void *data; // CONST: packed bytes in the shape's layout
  bool by_value;    // IN: the kernel's argument is the value
  uint32_t alias;   // the slot that may be the same memory, KL_NONE if there is none
} kl_slot_info;

typedef struct kl_plan {
  kl_arena *arena;
  kl_affs *affs; // index expressions
  const kiln_module *module;
  const kl_comp *comp; // what is compiled
  const char *name;    // of the kernel, an identifier in PTX
  kl_target target;
  int64_t count;          // elements of the domain
  uint32_t nslots, nargs; // nargs: IN and OUT slots, which come first
  kl_slot_info *slots;
  uint32_t nparts; // 1 or more; a domain without elements is one
  kl_part *parts;
  int64_t grid;       // blocks; 0: nothing to launch
  int64_t iterations; // threads of `main` in all parts
  bool index64;       // some index does not fit 32 bits
  // The kernel is given its element count n, at most `count`. Its only part's whole blocks of `main` come first;
  // threads of `tail` count from element 0, and begin where `main` ends.
  bool counted;
  bool programmatic; // the kernel waits for the one before it
  bool fast;         // numerics `fast`: functions of f32 may be approximate
} kl_plan;

// Frees the expression tables; the plan itself lies in its arena.
void kl_plan_free(kl_plan *p);

// What of a floor's dividend is negative is moved up by this many times the divisor, so that every division is one of
// unsigned numbers.
int64_t kl_floor_shift(kl_dom *d, const kl_aff_atom *floor);
// e with `lane` in place of the lane.
const kl_aff *kl_at_lane(kl_affs *p, kl_dom *d, const kl_aff *e, const kl_aff *lane);
// Does what a guard says, and its outer ones, hold in this lane of every thread? KL_NO: of none.
kl_truth kl_guard_at(kl_plan *p, const kl_body *b, uint32_t guard, uint32_t lane);
// Do so many bits, 32 or 64, hold every index of the body?
bool kl_body_fits(const kl_body *b, unsigned bits);

// By slot of p: lets input slot i and output slot result[i] (KL_NONE: none) be the same memory, where every thread
// reads of it only what it writes itself, and before it does: shared[i]. Several inputs may be that memory.
void kl_plan_alias(kl_plan *p, const uint32_t *result, bool *shared);
// What all accesses to a slot ask of the memory of a GPU: requests of warps and the sectors they touch, as in
// lower/analysis/coalesce.h.
typedef struct kl_traffic {
  int64_t requests, sectors;
  int64_t least; // sectors that would hold what each request reads or writes
  bool exact;
  bool read;              // some load reads the slot
  bool coalesced_for_xla; // as XLA's analysis has it of each of those loads; for comparison only
} kl_traffic;
// `base`: where the slot's memory begins, in bytes from the start of a sector.
kl_traffic kl_plan_traffic(kl_plan *p, uint32_t slot, uint32_t base);

// Passes input slot `in` by value; false if it is no rank-0 integer or the machine takes addresses only.
bool kl_plan_by_value(kl_plan *p, uint32_t in);
void kl_plan_print(kl_sb *b, kl_plan *p);

#endif
