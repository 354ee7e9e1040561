// Private to src/lower/choose: what building the bodies of a plan shares.
#ifndef KL_WALK_H
#define KL_WALK_H

#include "ir/index/layout/map.h"
#include "lower/analysis/reads/reads.h"
#include "lower/choose/choose.h"
#include "lower/plan/write.h"

typedef struct kl_concatenate {
  const kl_instr *instr;
  const int64_t *offsets; // of its operands, and the end
} kl_concatenate;

// A result leaf of an instruction that a launch has left to those behind it.
typedef struct kl_stored_value {
  uint32_t instr, leaf, slot;
} kl_stored_value;

// Slots grow while bodies are walked: array constants are met there. Both bodies see the same constant as one slot.
typedef struct kl_slots {
  VEC(kl_slot_info) v;
  VEC(const kl_array *) constants;
  VEC(uint32_t) constant_slots;
  VEC(kl_concatenate) concatenates;
  VEC(kl_stored_value) stored;
  kl_ids constant_ids, concatenate_ids;
  uint32_t nargs;
  uint32_t *param_base; // first slot of each parameter's leaves
} kl_slots;

// The shape with nothing of its layout but the order of dimensions.
kl_shape *kl_in_order(kl_arena *arena, const kl_shape *s);
// An array of `count` elements, not packed, that a block of the last launch shares: its slot. Its memory is behind that
// of others.
uint32_t kl_add_shared(kl_ctx *cx, kl_plan *p, kl_slots *s, kl_dtype t, int64_t count);

// An array in global memory, not packed, that a launch leaves to those behind it: its slot.
uint32_t kl_add_scratch(kl_ctx *cx, kl_plan *p, kl_slots *s, kl_dtype t, int64_t count);
// Counters of blocks (kl_arrival): their slot.
uint32_t kl_add_counters(kl_ctx *cx, kl_plan *p, kl_slots *s, int64_t count);
// An array for a result leaf of an instruction of plan->comp: whatever body is begun from now on loads it from there.
// Elements are of the type's own bits, or of 8 where these are fewer.
uint32_t kl_store_value(kl_ctx *cx, kl_plan *p, kl_slots *s, uint32_t instr, uint32_t leaf);
// A type that has all values of t and takes whole bytes.
kl_dtype kl_in_bytes(kl_dtype t);

kiln_status kl_plan_refuse_index(kl_ctx *cx, const kl_plan *plan, const char *why);

// --- the walk -------------------------------------------------------------------------------------------------------

// From what is wanted to the steps that make it. A node is an instruction wanted at an index under a guard; nodes are
// interned, so that what two users want alike is made once, as long as the scope is open in which it was made.
typedef struct kl_walk {
  kl_ctx *cx;
  kl_arena *arena;
  kl_plan *plan;
  kl_slots *slots;
  kl_affs *affs;
  kl_writer *w;
  struct kl_runtimes *runtimes;
  bool tiled;                        // some argument lies in tiles
  bool looks;                        // makes no steps
  const kl_aff *unsound;             // an index that cannot be computed, NULL if there is none
  const struct kl_wanted *elsewhere; // what was given, wanted at another index
  bool goes_on;                      // whoever asks sees by himself that there is such, and makes nothing of the steps
  size_t nstored;                    // of slots->stored, those that there were when the walk began
  const uint32_t *copies;            // by argument: a slot with the same elements to load instead, KL_NONE: none; NULL
  VEC(kl_frame) frames;
  VEC(struct kl_wanted *) nodes;
  VEC(uint32_t) given;        // nodes whose steps the chooser gave
  VEC(uint32_t) shared;       // the same, and at other indices they are made
  const kl_aff *const *named; // by name of the writer's: what it stands for
  uint32_t nnamed;
  kl_ids frame_ids, node_ids;
  VEC(uint32_t) stack;
  VEC(struct kl_loop *) loops;    // that have been met
  VEC(struct kl_rounds *) rounds; // that have been begun
} kl_walk;

void kl_walk_begin(kl_walk *w, kl_ctx *cx, kl_plan *plan, kl_slots *slots, kl_writer *writer);
void kl_walk_free(kl_walk *w);
// The step that makes the element `index` of a result leaf of an instruction of plan->comp, where `guard` holds: made
// now, in the writer's innermost nest, if it is not there yet.
kiln_status kl_walk_want(kl_walk *w, uint32_t instr, uint32_t leaf, uint32_t guard, const kl_aff *const *index,
                         uint32_t *step);
// Says what makes that element, whatever the guard. At another index the instruction may not be wanted any more.
void kl_walk_give(kl_walk *w, uint32_t instr, uint32_t leaf, const kl_aff *const *index, uint32_t step);
// The same; at another index it is made.
void kl_walk_share(kl_walk *w, uint32_t instr, uint32_t leaf, const kl_aff *const *index, uint32_t step);
// The results of a computation that is called with scalar values, in the order of its parameters' leaves.
kiln_status kl_walk_call(kl_walk *w, uint32_t caller, const kl_comp *comp, const uint32_t *args, uint32_t *results);

// e in the body's variables, not in names (kl_write_begin_naming).
const kl_aff *kl_real(kl_walk *w, const kl_aff *e);
// The guard that an index in names lies within bounds. Names that keep theirs, which `guard` says, may do so by
// themselves.
uint32_t kl_walk_guard(kl_walk *w, uint32_t guard, const kl_aff *e, int64_t lo, int64_t hi, bool *never);

// --- reducers -------------------------------------------------------------------------------------------------------

// combine.c: a reducer of n values, as it folds: sums and products of floats of 16 bits or fewer in f32.
typedef struct kl_combiner {
  const kl_comp *comp;
  uint32_t caller; // the instruction that has it
  uint32_t n;
  bool simple; // one op of two values, the same whichever comes first
  kl_plan_op op;
  const kl_dtype *type, *given; // by value: what is folded in; what the reducer is written for
} kl_combiner;
kl_combiner kl_combiner_of(kl_arena *arena, const kl_comp *by, uint32_t caller);
// A value to be folded; and what is folded, as one of type t.
uint32_t kl_combiner_take(kl_writer *w, const kl_combiner *x, uint32_t i, uint32_t value);
uint32_t kl_combiner_give(kl_writer *w, const kl_combiner *x, uint32_t i, uint32_t value, kl_dtype t);
kiln_status kl_combine_values(kl_walk *w, const kl_combiner *x, const uint32_t *lower, const uint32_t *higher,
                              uint32_t *out);

// --- windows --------------------------------------------------------------------------------------------------------

// Does it go over all elements up to a place, or `reverse` from it on, of one dimension of more than 16? With a reducer
// of one op, the same from either end, that is a scan.
bool kl_window_is_cumulative(const kl_instr *in, uint32_t *dim, bool *reverse);
// Is it folded where it is wanted?
bool kl_window_is_small(const kl_instr *in);
// The place in a padded and dilated dimension that a tap of the window at `index` looks at, from the first element on.
const kl_aff *kl_window_place(kl_affs *p, const kl_window_dim *x, const kl_aff *index, const kl_aff *tap);
// The element of an array that taps of the window at `index` see, and the guard `guard` and that there is one.
uint32_t kl_window_sees(kl_walk *w, const kl_window_dim *x, const kl_shape *s, const kl_aff *const *index,
                        const kl_aff *const *tap, uint32_t guard, const kl_aff **at, bool *never);

// The results of a computation of arrays at `index`, where its parameters' values are given: where it asks for others,
// that is not supported.
kiln_status kl_walk_apply(kl_walk *w, uint32_t caller, const kl_comp *comp, const kl_aff *const *index,
                          const uint32_t *args, uint32_t *results);

// What a look meets: an instruction wanted at an index, and what it needs, each by its number; of what is loaded the
// slot (KL_NONE for constants), its type, and the place in it.
typedef struct kl_seen {
  uint32_t frame, instr, leaf, guard;
  kl_dtype dtype;
  uint32_t rank;
  const kl_aff *const *index;
  uint32_t nneeds;
  const uint32_t *needs;
  uint32_t slot;
  const kl_aff *place; // NULL: it is not loaded
} kl_seen;

// A result leaf of an instruction of plan->comp, wanted at an index in variables 0 .. nvars-1; `seen`: the number of
// what was met there.
typedef struct kl_look {
  uint32_t instr, leaf;
  const kl_aff *const *index;
  uint32_t seen;
} kl_look;
// Meets all that these need, up to what no kernel makes element by element, without making any of it. VEC_FREE is the
// caller's. Symbols stand for what data says.
typedef struct kl_sights {
  VEC(kl_seen) v;
} kl_sights;
kiln_status kl_walk_look(kl_ctx *cx, kl_plan *plan, kl_slots *slots, uint32_t nvars, const int64_t *extents, uint32_t n,
                         kl_look *looks, kl_sights *out);

// Where a concatenate cuts the results: between two of its operands; or a pad, where what is padded begins and ends.
typedef struct kl_cut {
  uint32_t dim; // of the results
  int64_t at;   // index in it that begins a new operand, or padding
  bool pads;    // a pad's
} kl_cut;

typedef struct kl_cuts {
  VEC(kl_cut) v;
  uint32_t shared; // values that are wanted whichever operand it is
} kl_cuts;

// Results of one size, which a kernel makes together.
typedef struct kl_domain {
  int64_t count;                          // elements of each
  uint32_t n;                             // results, by leaf of the root
  const uint32_t *leaves;                 // in order
  const struct kl_update *const *updates; // by leaf of the root, NULL: none; of those with one only what changes
  uint32_t nparts;
  kl_part *parts; // with dim, lo, size and count
  // Where groups is not 0 (share.c): a thread makes `times` elements that lie `apart`, at_once of them side by side. Of
  // each it makes `pieces`, 1 or 2, that lie `piece` apart: of aligned runs of pieces * piece elements one of the
  // first, and its counterparts. Such groups of apart * times elements there are so many, and the rest behind.
  int64_t groups, apart, times, piece;
  uint32_t at_once, pieces;
} kl_domain;

// Finds the cuts of concatenates of at least `operands`, and of pads if these are 2, along whose dimension an index of
// the domain's results, of one shape, runs, whatever is computed of them on the way.
kiln_status kl_walk_cuts(kl_ctx *cx, kl_plan *plan, kl_slots *slots, const kl_domain *domain, uint32_t operands,
                         kl_cuts *out);

// How often instructions of plan->comp are wanted for one element of each of the roots, arrays of instructions.
typedef struct kl_root_leaf {
  uint32_t instr, leaf;
} kl_root_leaf;
typedef struct kl_survey {
  const bool *given; // by instruction: it is read, not made
  size_t most;       // places to look at
  uint32_t *times;   // by instruction, zero before: at how many indices, under which guards it is wanted
  bool all;          // out: nothing else is; else there was no room
} kl_survey;
void kl_walk_survey(kl_ctx *cx, kl_plan *plan, kl_slots *slots, uint32_t n, const kl_root_leaf *roots, kl_survey *s);

// split.c: sets the domain's parts. One where there is nothing to gain.
kiln_status kl_split_domain(kl_ctx *cx, kl_plan *plan, kl_slots *slots, kl_domain *domain, const kl_plan_params *params,
                            kl_arena *arena);

#endif
