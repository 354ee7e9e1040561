// Integer solutions of linear equations. For solve.c alone.
#ifndef KL_INDEX_LATTICE_H
#define KL_INDEX_LATTICE_H

#include "ir/index/impl.h"

typedef struct kl_lattice kl_lattice;

typedef enum kl_lattice_state {
  KL_LATTICE_SOLVED,
  KL_LATTICE_EMPTY, // no integers satisfy the equations
  KL_LATTICE_LARGE, // numbers get too large to tell
} kl_lattice_state;

// `rows` equations over n unknowns.
kl_lattice *kl_lattice_open(kl_ctx *cx, uint32_t rows, uint32_t n);
void kl_lattice_close(kl_lattice *l);
void kl_lattice_add(kl_lattice *l, uint32_t row, uint32_t unknown, int64_t coef); // to its coefficient
void kl_lattice_value(kl_lattice *l, uint32_t row, int64_t value);                // the right side

// *left counts down, in rows looked at; without any left, numbers are no longer kept small.
kl_lattice_state kl_lattice_solve(kl_lattice *l, uint32_t *left);
// Of a solved one. The solutions are, for all integers t: unknown i is what is returned + sum(by[k] * t[k]), k below
// the dimension.
uint32_t kl_lattice_dimension(const kl_lattice *l);
wide kl_lattice_unknown(const kl_lattice *l, uint32_t i, const wide **by);

#endif
