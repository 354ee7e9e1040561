// Private to src/lower/choose/staged: ops whose results are not made element by element, each in launches of its own.
//
// A stage is such an op of the computation. It reads operands through all that is fused before them, and leaves its
// results where those behind it find them: in a result of the computation that is nothing else, or in scratch memory.
// What is computed of them is a loop behind all stages.
#ifndef KL_STAGED_H
#define KL_STAGED_H

#include "lower/choose/chooser.h"

typedef struct kl_stage {
  kl_choosing *c;
  kl_affs *p;
  const kl_instr *instr;
  uint32_t number; // of the instruction in its computation
  uint32_t *slot;  // by leaf of its result: where elements go; KL_NONE: nobody wants them
} kl_stage;

// The body of a launch while it is written.
typedef struct kl_stage_body {
  const kl_stage *s;
  kl_var_list vars;
  kl_writer w;
  kl_walk walk;
  uint32_t keep;   // the thread's elements are there
  kl_vars element; // the variable of a thread's elements, if it has one of its own
} kl_stage_body;

// body.c
// Begins a launch for `count` elements, each thread `each` neighbours of them; on the host a vector has its lanes of
// them. More variables may follow. Returns the element's number, which may be count or more.
const kl_aff *kl_stage_elements(kl_stage_body *b, const kl_stage *s, int64_t count, int64_t each);
// The index of the element at the place `at` of a shape, and the guard that there is one: sets b->keep.
void kl_stage_index(kl_stage_body *b, const kl_shape *shape, const kl_aff *at, const kl_aff **index);
// Writes the launch's only body.
kiln_status kl_stage_write(kl_stage_body *b, int64_t count, kiln_status (*write)(void *arg), void *arg);

// The shape of what a leaf's elements go to, or of the first leaf that goes anywhere.
const kl_shape *kl_stage_result(const kl_stage *s, uint32_t leaf);
// An element of a slot of the type, or of another of the same values.
uint32_t kl_stage_load(kl_stage_body *b, uint32_t slot, const kl_aff *const *index, uint32_t keep, kl_dtype t);
kiln_status kl_stage_store(kl_stage_body *b, uint32_t slot, const kl_aff *const *index, uint32_t value, uint32_t keep);
// An array of the type, or one of the same values in whole bytes, that a launch leaves to those behind it, with the
// dimensions and in the order of `shape`.
uint32_t kl_stage_scratch(const kl_stage *s, const kl_shape *shape, kl_dtype t);

// Lines of an array along a dimension: `inner` of them lie beside each other, and `outer` such groups behind each
// other.
void kl_stage_count_lines(const kl_shape *s, uint32_t dim, int64_t *outer, int64_t *inner);
// The index of element i of a line.
void kl_stage_line_index(kl_affs *p, const kl_shape *s, uint32_t dim, const kl_aff *outer, const kl_aff *inner,
                         const kl_aff *i, const kl_aff **index);

// Nested loops over the points of a box, the last dimension's the innermost.
typedef struct kl_stage_box {
  uint32_t n;
  uint32_t var[KILN_MAX_RANK];     // KL_NONE: the dimension has one value
  const kl_aff *at[KILN_MAX_RANK]; // the point
  uint32_t nvalues;                // that are carried
  const int64_t *few;              // sizes, if points are written one by one; else NULL
} kl_stage_box;
// Before the body is written: its variables.
void kl_stage_box_vars(kl_stage_body *b, kl_stage_box *x, uint32_t n, const int64_t *sizes);
// Begins the loops: values are carried from point to point, and values are those of the point.
void kl_stage_box_begin(kl_stage_body *b, kl_stage_box *x, uint32_t nvalues, uint32_t *values);
// Ends them: values are the next ones, and then what is there behind.
void kl_stage_box_end(kl_stage_body *b, kl_stage_box *x, uint32_t *values);

// A box that may have so few points that they are written one by one, each with numbers for a point, in the same order.
void kl_stage_box_points(kl_stage_body *b, kl_stage_box *x, uint32_t n, const int64_t *sizes);
// Writes a box of either kind: `write` takes values from one point to the next.
kiln_status kl_stage_box_write(kl_stage_body *b, kl_stage_box *x, uint32_t nvalues, uint32_t *values,
                               kiln_status (*write)(void *arg, uint32_t *values), void *arg);

// A value that is, where the reg variable v is i, the i-th of n values.
uint32_t kl_stage_beside(kl_stage_body *b, const uint32_t *values, const kl_aff *v, int64_t n);

// Integers as values.
kl_dtype kl_stage_integer(int64_t most); // a signed type that holds -most .. most
uint32_t kl_stage_number(kl_stage_body *b, kl_dtype t, const kl_aff *e);
uint32_t kl_stage_op(kl_stage_body *b, kl_op op, uint32_t x, uint32_t y);
uint32_t kl_stage_compare(kl_stage_body *b, kl_direction d, kl_compare_type type, uint32_t x, uint32_t y);
uint32_t kl_stage_select(kl_stage_body *b, uint32_t which, uint32_t yes, uint32_t no);

// By kind of op. *why_not as choosers say it.
typedef kiln_status kl_stage_writer(const kl_stage *s, const char **why_not);
kl_stage_writer kl_stage_sort, kl_stage_window, kl_stage_selection, kl_stage_cumulative, kl_stage_scan;
kl_stage_writer kl_stage_cholesky, kl_stage_triangular_solve, kl_stage_fft;

#endif
