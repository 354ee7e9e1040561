// Private to src/lower/choose/scatter: a scatter as it stands in a computation, and kernels of it.
//
// Updates are windows: for each index vector one, which lies in the arrays where the vector says. A window that does
// not lie inside them is skipped. Forms of kernels: each element of a result looks through all windows, in their order
// (ordered.c); each update goes to its element (updates.c), some of them together (private.c, sorted.c); or warps own
// places, and bring what windows have for these to their elements, in order (owned.c).
#ifndef KL_SCATTER_H
#define KL_SCATTER_H

#include "lower/choose/chooser.h"

enum { KL_MOST_SCATTERED = 32 }; // arrays of one scatter

typedef struct kl_scatter {
  const kl_instr *instr;
  uint32_t number;   // of the instruction in its computation
  uint32_t n;        // arrays, and as many updates
  const kl_comp *by; // the combiner
  const kl_shape *array, *indices, *updates;
  int64_t size[KILN_MAX_RANK]; // of a window, by dim of the arrays
  // By dim of the arrays, -1: none. The updates' dim that runs along the window; the entry of an index vector that says
  // where it begins; the place among `batch` that does.
  int window[KILN_MAX_RANK], entry[KILN_MAX_RANK], batching[KILN_MAX_RANK];
  uint32_t nbatch;
  uint32_t batch[KILN_MAX_RANK]; // the updates' dims that number windows, in order
  bool batched[KILN_MAX_RANK];   // of these, which are a dim of the arrays, too
} kl_scatter;

// The scatter that all results of plan->comp are made of. *why_not as choosers say it.
kiln_status kl_find_scatter(kl_choosing *c, kl_scatter *out, const char **why_not);

// The index in the updates of an element of the window `batch`.
void kl_update_index(const kl_scatter *x, const kl_aff *const *batch, const kl_aff *const *offset,
                     const kl_aff **index);
// Entry k of the index vector of a window.
kiln_status kl_want_entry(kl_walk *w, const kl_scatter *x, const kl_aff *const *batch, int k, uint32_t guard,
                          uint32_t *step);
// Where the window begins, by dim of the arrays: from data, held to one place beyond those where it may.
kiln_status kl_window_start(kl_walk *w, const kl_scatter *x, const kl_aff *const *batch, uint32_t guard,
                            const kl_aff **start);
// The guard `outer`, and that the window lies inside the arrays along dim d.
uint32_t kl_window_inside(kl_walk *w, const kl_scatter *x, uint32_t d, const kl_aff *start, uint32_t outer,
                          bool *never);
// The values that the start of a window is held to along dim d.
kl_interval kl_starts(const kl_scatter *x, uint32_t d);
// What the combiner makes of elements and updates.
kiln_status kl_combine(kl_walk *w, const kl_scatter *x, const uint32_t *elements, const uint32_t *updates,
                       uint32_t *out);

// combiner.c: the op that makes of an array's element and update, in either order, its new element. COPY: the update;
// PARAMETER: the element; UNKNOWN: more than one op, or of other arrays, too.
kl_op kl_combining_op(const kl_scatter *x, uint32_t array);
// The array of the scatter that a result is, as it is; -1: something is computed of it.
int64_t kl_scattered_leaf(const kl_comp *c, const kl_scatter *x, uint32_t result);

// Slots of results begin here.
uint32_t kl_scatter_results(const kl_choosing *c);

// ordered.c
kiln_status kl_choose_ordered(kl_choosing *c, const kl_scatter *x, const char **why_not);
// A launch that stores the operands in the results.
kiln_status kl_copy_operands(kl_choosing *c, const kl_scatter *x, const char **why_not);
// Does an element look through few windows, or are there no updates at all?
bool kl_has_few_windows(const kl_scatter *x);

enum { KL_UPDATING_WARPS = 8, KL_UPDATING_THREADS = 32 * KL_UPDATING_WARPS }; // of a block

// changes.c: updates on their way to elements.
typedef struct kl_updating {
  kl_choosing *c;
  const kl_scatter *x;
  kl_affs *p;
  kl_writer w;
  kl_walk walk;
  int64_t count;                    // of updates
  uint32_t slot[KL_MOST_SCATTERED]; // by array: of its result, KL_NONE: it is none
  kl_store how[KL_MOST_SCATTERED];  // the same: how elements change
} kl_updating;
// Sets `slot` and `how`; false: it cannot be.
bool kl_choose_changes(kl_updating *x, const char **why_not);
// The same where of all threads one alone changes an element, in order.
bool kl_choose_owned_changes(kl_updating *x, const char **why_not);
bool kl_change_together(const kl_scatter *x);
// The place of an update in the arrays, where `outer` holds, and the guard that it has one. *never: it has none.
kiln_status kl_find_target(kl_updating *x, const kl_aff *const *index, uint32_t outer, const kl_aff **to,
                           uint32_t *guard, bool *never);
kiln_status kl_change(kl_updating *x, uint32_t array, const kl_aff *linear, uint32_t value, uint32_t guard);
// The launch that stores the operands in the results, left out where they are there, and one behind it without parts,
// of blocks of so many threads.
kiln_status kl_begin_updates(kl_updating *x, uint32_t block, const char **why_not);
// Begins a kernel in which updates of an element are joined before they come to it: for GPUs, where each array changes
// by an instruction.
kiln_status kl_begin_joins(kl_choosing *c, kl_scatter *s, kl_updating *x, const char **why_not);
// The body of the last launch, which has one part: `write` writes it.
kiln_status kl_write_updates(kl_updating *x, const kl_var_list *vars, kiln_status (*write)(void *arg), void *arg);
// Updates of a thread that are neighbours: of one window, or where windows are of one element of several; 16 bytes of
// the widest.
int64_t kl_neighbours(const kl_updating *x);
// updates.c
kiln_status kl_choose_updates(kl_choosing *c, const kl_scatter *x, const char **why_not);

#endif
