// Private to src/lower/choose/staged/linalg: cholesky and triangular-solve.
//
// Both eliminate: in step k all elements that come behind lose the product of two that are done. So each element of a
// result is what is given less its products in the order of k, whatever a block of threads has of the matrix; host and
// GPU have the same bits. Matrices are cut into panels of columns, or rows, for each of which there is a launch; a
// block takes from its part of the panel what earlier panels say, and eliminates in shared memory. Small matrices are
// one panel, several a block.
#ifndef KL_LINALG_H
#define KL_LINALG_H

#include "lower/choose/staged/numbers.h"

// Threads of a block over parts of matrices: lanes run along one direction, warps and copies along the other.
typedef struct kl_grid {
  kl_stage_body b;
  bool host;
  int64_t batch;               // matrices
  int64_t at_once;             // of a block
  int64_t lanes, rows, copies; // of a matrix
  const kl_aff *which, *own;   // the matrix; among those of the block
  const kl_aff *lane, *row, *copy;
  uint32_t copy_var;
  uint32_t there; // the matrix is
} kl_grid;

// Begins a body for matrices whose parts are `width` by `height` in the two directions, and take `bytes` of shared
// memory each. More variables may follow.
void kl_grid_vars(kl_grid *x, const kl_stage *s, int64_t batch, int64_t width, int64_t height, int64_t bytes);
// In the body, before all else.
void kl_grid_begin(kl_grid *x);

// Loops over points of `fast` by `slow`; inside, f and g are the point's, which is there. Accesses in it are guarded by
// `keep`.
typedef struct kl_patch {
  int64_t fast, slow, copies;
  kl_stage_box box;
  const kl_aff *f, *g;
  uint32_t keep, branch;
  // Where the block's patch is one of several: f, or g, that many behind is one of so many; 0: it is the only one.
  const kl_aff *from[2];
  int64_t of[2];
} kl_patch;
void kl_patch_vars(kl_grid *x, kl_patch *t, int64_t fast, int64_t slow); // before the body is written
// The same, from a place on along the fast or the slow direction, of so many.
void kl_patch_vars_of(kl_grid *x, kl_patch *t, int64_t fast, int64_t slow, bool slowly, const kl_aff *from, int64_t of);
void kl_patch_begin(kl_grid *x, kl_patch *t);
void kl_patch_end(kl_grid *x, kl_patch *t);
// The guard that `keep` and lo <= e <= hi; false where it never holds.
bool kl_grid_guard(kl_grid *x, uint32_t keep, const kl_aff *e, int64_t lo, int64_t hi, uint32_t *guard);

// An array in shared memory that each matrix of the block has, of `rows` by `stride`.
typedef struct kl_room {
  uint32_t slot;
  int64_t rows, stride;
} kl_room;
kl_room kl_grid_room(kl_grid *x, kl_dtype whole, int64_t rows, int64_t stride, bool own);
const kl_aff *kl_room_at(kl_grid *x, const kl_room *r, const kl_aff *i, const kl_aff *j);
// Of so many columns, without two lanes in one bank that follow each other down a column.
static inline int64_t kl_odd(int64_t columns) {
  return columns | 1;
}

// Matrices in the last two dimensions of an operand, or of the stage's result as far as launches before have made it;
// with `swaps`, transposed.
typedef struct kl_matrix {
  uint32_t operand; // KL_NONE: the result
  const kl_shape *shape;
  bool swaps, conjugates;
} kl_matrix;
kiln_status kl_matrix_want(kl_grid *x, const kl_matrix *m, const kl_aff *i, const kl_aff *j, uint32_t keep,
                           kl_number *out);
kiln_status kl_matrix_store(kl_grid *x, const kl_matrix *m, const kl_aff *i, const kl_aff *j, kl_number value,
                            uint32_t keep);
int64_t kl_batch_of(const kl_shape *s);

// Rows or columns of a panel, for elements of a type.
int64_t kl_panel_of(kl_dtype whole);

#endif
