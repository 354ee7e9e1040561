// Integer solutions of linear equations, one unknown after the other. For solve.c alone.
#ifndef KL_INDEX_LATTICE_H
#define KL_INDEX_LATTICE_H

#include "ir/index/impl.h"

typedef struct kl_lattice kl_lattice;

typedef enum kl_lattice_state {
  KL_LATTICE_SOLVED,
  KL_LATTICE_EMPTY, // no integers satisfy the equations
  KL_LATTICE_LARGE, // numbers get too large to tell
} kl_lattice_state;

// `rows` equations over `n` unknowns. The solutions are wanted of the unknowns order[0] .. order[points - 1], in this
// order; all others follow from them or are free.
kl_lattice *kl_lattice_open(kl_ctx *cx, uint32_t rows, uint32_t n, const uint32_t *order, uint32_t points);
void kl_lattice_close(kl_lattice *l);
void kl_lattice_add(kl_lattice *l, uint32_t row, uint32_t unknown, int64_t coef); // to its coefficient
void kl_lattice_value(kl_lattice *l, uint32_t row, int64_t value);                // the right side

kl_lattice_state kl_lattice_solve(kl_lattice *l);
// Of a solved one, given what was taken of the unknowns before it: unknown order[i] has the values one + t * step, for
// every integer t; step 0: that one alone. False where numbers get too large.
bool kl_lattice_values(const kl_lattice *l, uint32_t i, wide *one, wide *step);
// Takes t for unknown order[i], whose step is not 0.
void kl_lattice_take(kl_lattice *l, uint32_t i, wide t);

#endif
