// Private to src/lower/choose: what building the bodies of a plan shares.
#ifndef KL_WALK_H
#define KL_WALK_H

#include "ir/index/layout_map.h"
#include "lower/analysis/reads/reads.h"
#include "lower/choose/choose.h"

typedef struct kl_concatenate {
  const kl_instr *instr;
  const int64_t *offsets; // of its operands, and the end
} kl_concatenate;

// Slots grow while bodies are walked: array constants are met there. Both bodies see the same constant as one slot.
typedef struct kl_slots {
  VEC(kl_slot_info) v;
  VEC(const kl_array *) constants; // constants.p[i] is slot nargs + i
  VEC(kl_concatenate) concatenates;
  kl_ids constant_ids, concatenate_ids;
  uint32_t nargs;
  uint32_t *param_base; // first slot of each parameter's leaves
} kl_slots;

// Lanes of a thread as chunks of 2^(k+1): for each k two variables more, the chunk and the lane in it.
enum { KL_MAX_CHUNKINGS = 8, KL_WALK_VARS = KL_VAR_COUNT + 2 * KL_MAX_CHUNKINGS };

typedef struct kl_guards {
  kl_ctx *cx;
  kl_affs *affs;
  kl_dom *domain; // of the body's variables and those of chunks
  VEC(kl_guard) v;
  kl_ids ids;
  uint32_t lanes;
} kl_guards;

// The guard "lo <= e <= hi and outer", interned; `outer` itself where the condition always holds. *never: it cannot
// hold.
uint32_t kl_guard_and(kl_guards *g, uint32_t outer, const kl_aff *e, int64_t lo, int64_t hi, bool *never);

// The domain of a body's variables, for bodies of up to 2^KL_MAX_CHUNKINGS lanes.
kl_dom *kl_body_domain(kl_affs *p, int64_t threads, uint32_t lanes);

// Plans the access of all lanes to element `linear` (in THREAD and LANE) of a slot. What is stored at once is one run
// upwards, of at most max_vec lanes.
kl_access kl_load_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                       uint32_t guard);
kl_access kl_store_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                        uint32_t max_vec);

// Can e be computed? If not, because it is too large or no value, what is made of it cannot be either.
bool kl_is_sound(const kl_aff *e);
const char *kl_why_unsound(const kl_aff *e);
kiln_status kl_plan_refuse_index(kl_ctx *cx, const kl_plan *plan, const char *why);

// Walks from the roots of plan->comp and fills a body of the part whose lanes, threads and first are set.
kiln_status kl_walk_body(kl_ctx *cx, kl_plan *plan, kl_slots *slots, kl_arena *arena, const kl_part *part,
                         kl_body *body);

// Where a concatenate of many operands cuts the results: between two of its operands.
typedef struct kl_cut {
  uint32_t dim; // of the results
  int64_t at;   // index in it that begins a new operand
} kl_cut;

typedef struct kl_cuts {
  VEC(kl_cut) v;
  uint32_t shared; // values that are wanted whichever operand it is
} kl_cuts;

// Finds the cuts of concatenates of at least `operands` along whose dimension an index of the results runs, whatever is
// computed of them on the way.
kiln_status kl_walk_cuts(kl_ctx *cx, kl_plan *plan, kl_slots *slots, kl_arena *arena, uint32_t operands, kl_cuts *out);

// split.c: the parts of the domain, with dim, lo, size and count. One where there is nothing to gain.
kiln_status kl_split_domain(kl_ctx *cx, kl_plan *plan, kl_slots *slots, const kl_plan_params *params, kl_arena *arena);

#endif
