// Jacobi's rotations, as many at once as there are pairs: a tournament of n rows, an even number, in which each meets
// each other once in n - 1 rounds. Private to this room.
#ifndef KL_EXPAND_JACOBI_H
#define KL_EXPAND_JACOBI_H

#include "ir/rewrite/expand/columns.h"
#include "ir/rewrite/expand/numbers.h"

// Sweeps after which a loop ends that has not reached what it should: it takes a dozen for orders of hundreds.
#define KL_MOST_SWEEPS 40

// n or n + 1.
int64_t kl_even(int64_t n);
// Half a unit in the last place of 1 of the type.
double kl_unit_of(kl_dtype t);

// Whom each row meets in the round, and which of them is the first, [b, n].
typedef struct kl_pairs {
  uint32_t other, first;
} kl_pairs;
kl_pairs kl_pairs_of(const kl_round *x); // of z.m rows; round k from 0

// Of Hermitian ((own, h^H), (h, other)), seen by each row j of a pair, rotations J that make J^H H J diagonal:
// column j becomes cosine j + sine other, own less what `less` says. Of the cosine goes 1 - cosine: where that is small
// it is far more exact than the cosine, and lengths do not drift.
typedef struct kl_rotation {
  uint32_t off, sine, less; // [b, n]; off, which is 1 - cosine, and less are real
} kl_rotation;
// of own and other, real, and h; `none`: pairs that stay as they are.
kl_rotation kl_rotation_of(kl_graph *g, kl_pairs p, uint32_t own, uint32_t other, uint32_t h, uint32_t none);

// J^H a, of a [b, n, any].
uint32_t kl_rotate_rows(kl_graph *g, kl_pairs p, kl_rotation r, uint32_t a);

// [b, n] along dimension 1 or 2 of what is like `to`, [b, ., .].
uint32_t kl_along(kl_graph *g, uint32_t list, uint32_t to, int64_t dim);
// Of places of a [b, m, n]: is the row's number so to the column's?
uint32_t kl_rows_to_columns(kl_graph *g, kl_direction d, uint32_t a);
// The unit matrix, like a.
uint32_t kl_unit_like(kl_graph *g, uint32_t a);
// Rows and columns exchanged, and conjugate.
uint32_t kl_adjoint(kl_graph *g, uint32_t a);
// The first `n` of a dimension.
uint32_t kl_first_of(kl_graph *g, uint32_t a, uint32_t dim, int64_t n);

// What matrices [b, m, n] are divided by, so that no square overflows, [b]: a power of two, the largest part divided by
// which is at least 1 and less than 2, or as near to that as the type has numbers. 1 where all is zero, infinite where
// some is no finite number: `finite` says where not, pred [b].
uint32_t kl_power_of(kl_graph *g, uint32_t a, uint32_t *finite);
// [b] in all places of what is like `to`, [b, ..].
uint32_t kl_of_matrix(kl_graph *g, uint32_t list, uint32_t to);
// a divided by it, and zero where it is not finite; and what is made of it, or NaN there.
uint32_t kl_divided(kl_graph *g, uint32_t a, uint32_t power, uint32_t finite);
uint32_t kl_or_nan(kl_graph *g, uint32_t v, uint32_t finite);

// Of each row of a [b, rows, n], by which it is to be multiplied so that its first element of at least 5/8 of the
// magnitude of its largest one is real and positive: [b, rows], of magnitude 1.
uint32_t kl_phases_of(kl_graph *g, uint32_t a);

// Adds the loop of sweeps that carries (s32 number, parts .., pred whether there is one more), if it is not there.
// `sweep` makes the parts of what `parts` has, and says whether more is to be done.
typedef uint32_t kl_sweep(kl_graph *g, uint32_t *parts);
void kl_add_sweeps(kl_graph *g, const kl_shape *state, kl_sweep *sweep);
const kl_shape *kl_sweeps_of(kl_graph *g, uint32_t n, const kl_shape *const *parts);
// Runs it on parts, which become what it leaves.
void kl_run_sweeps(kl_graph *g, uint32_t n, uint32_t *parts, uint32_t more);

#endif
