// Private to src/lower/choose: what choosers are given, and what they answer.
#ifndef KL_CHOOSER_H
#define KL_CHOOSER_H

#include "lower/choose/walk/walk.h"

// How much of a reduction is in one launch: all that may be; results in a loop behind it; and no reduction in the
// launch of one that it needs.
typedef enum kl_effort { KL_TOGETHER, KL_RESULTS_APART, KL_LEVELS_APART, KL_EFFORTS } kl_effort;

// How keys are sorted, where a comparator has them: runs are merged; of a block's tile sorted by digits, and merged;
// all passes are by digits; of topk, threads keep the first of what they have seen.
typedef enum kl_sorting { KL_MERGES, KL_MERGES_SORTED_TILES, KL_SORTS_BY_DIGITS, KL_KEEPS_FEW } kl_sorting;

// The plan has its module, computation, target and name, and one launch without parts; slots are those of parameters
// and results. A chooser sets count and the block where it is another; it adds parts with bodies, and may add slots,
// and launches behind.
typedef struct kl_choosing {
  kl_ctx *cx;
  kl_plan *plan;
  kl_slots slots;
  const kl_plan_params *params;
  kl_arena *arena;
  bool apart; // no result is to be written over a parameter by a chooser's own wish
  kl_sorting sorting;
  VEC(kl_declined) declined;
  kl_effort effort; // of reductions: the least to begin with; what was taken
} kl_choosing;

// Writes the plan and sets *why_not to NULL; or leaves the plan as it was and says in a sentence why not, "" where what
// the chooser is for is not there. An error is one for all choosers.
typedef kiln_status kl_chooser(kl_choosing *c, const char **why_not);

kl_chooser kl_choose_loop, kl_choose_reduction, kl_choose_transposition, kl_choose_in_place;
kl_chooser kl_choose_contraction, kl_choose_tiled_contraction, kl_choose_few_contraction, kl_choose_staged,
    kl_choose_radix_sort, kl_choose_tile_sort, kl_choose_top;
bool kl_is_staged(kl_op op); // has it launches of its own? (staged/)
kl_chooser kl_choose_scatter, kl_choose_private_scatter, kl_choose_sorted_scatter, kl_choose_owned_scatter,
    kl_choose_warp_scatter;

// vars.c: variables of a body that is to be written.
typedef struct kl_var_list {
  uint32_t n;
  kl_var v[KL_MAX_VARS];
} kl_var_list;
// One more; 0 and KL_NONE where it has one value.
const kl_aff *kl_new_var(kl_affs *p, kl_var_list *vars, kl_binding binding, int64_t extent, const char *name,
                         uint32_t *var);
// They are the body's, which has BLOCK variables.
void kl_take_vars(kl_arena *arena, const kl_var_list *vars, kl_body *b);

// plan.c: as it was before the chooser began, with so many slots and constants.
void kl_forget_choice(kl_choosing *c, size_t slots, size_t constants);

// A result that is a dynamic-update-slice of a parameter, at the same places in memory.
typedef struct kl_update {
  const kl_instr *instr;
  uint32_t parameter;     // its slot
  const kl_shape *memory; // where elements of the dynamic-update-slice lie
} kl_update;

// loop.c: parts of the last launch, which has none, that make the results which are not made yet. made: by result.
// updates: by result, NULL: none; of those that are one only what changes is made.
kiln_status kl_loop_results(kl_choosing *c, const bool *made, const kl_update *const *updates);
// share.c: how many elements of a domain whose parts are known a thread makes, beside `lanes`, which lie together or in
// chunks, so that what they read alike is read once. has: by argument, whether the domain has to do with it.
kiln_status kl_find_sharing(kl_choosing *c, kl_domain *d, const bool *has, uint32_t lanes, bool chunks);

// in_place.c: the slot of the parameter leaf that a leaf of an instruction is, whose elements lie where those of
// `memory` do, through tuples, copies and bitcasts. KL_NONE: it is none, or lies otherwise.
uint32_t kl_parameter_behind(const kl_choosing *c, uint32_t instr, uint32_t leaf, const kl_shape *memory);
// May a result be written over a parameter?
bool kl_may_overwrite(const kl_choosing *c, uint32_t parameter, uint32_t result);
// Makes it so.
void kl_overwrite(kl_choosing *c, uint32_t parameter, uint32_t result);
// The element at the place `at` of the update's memory, where `keep` holds, and its place in the result; stores it
// there.
kiln_status kl_want_update(kl_walk *w, const kl_update *u, const kl_aff *at, uint32_t keep, const kl_aff **linear,
                           uint32_t *value);
void kl_store_update(kl_walk *w, const kl_update *u, uint32_t slot, const kl_aff *linear, uint32_t value,
                     uint32_t keep);
// Elements that lie together both in the update and in the result, from an aligned one on: a power of two.
uint32_t kl_update_neighbours(const kl_choosing *c, const kl_update *u);

#endif
