// Private to src/lower/choose/scatter: a scatter as it stands in a computation, and kernels of it.
//
// Updates are windows: for each index vector one, which lies in the arrays where the vector says. A window that does
// not lie inside them is skipped. Two forms of kernels: in one each element of a result looks through all windows, in
// their order (ordered.c); in the other each update goes to its element (updates.c).
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
// Where the window begins, by dim of the arrays: from data, held to one place beyond those where it may.
kiln_status kl_window_start(kl_walk *w, const kl_scatter *x, const kl_aff *const *batch, uint32_t guard,
                            const kl_aff **start);
// The guard `outer`, and that the window lies inside the arrays along dim d.
uint32_t kl_window_inside(kl_walk *w, const kl_scatter *x, uint32_t d, const kl_aff *start, uint32_t outer,
                          bool *never);
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
// updates.c
kiln_status kl_choose_updates(kl_choosing *c, const kl_scatter *x, const char **why_not);

#endif
