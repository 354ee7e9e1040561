// Linear programs over reals in floating point: proposals, which polytope.c proves. For polytope.c alone.
#ifndef KL_INDEX_SIMPLEX_H
#define KL_INDEX_SIMPLEX_H

#include "ir/index/impl.h"

typedef struct kl_simplex kl_simplex;

// Variables 0 .. n-1, and n + r, the value of row r: sum(coef * variable) over the first n. All begin without bounds.
kl_simplex *kl_simplex_open(kl_ctx *cx, uint32_t rows, uint32_t n);
void kl_simplex_close(kl_simplex *s);
void kl_simplex_coef(kl_simplex *s, uint32_t row, uint32_t i, long double coef); // before the first solve
void kl_simplex_bound(kl_simplex *s, uint32_t variable, long double lo, long double hi);

// Is there a point within all bounds? If not, and *conflict is set: rows, each times its multiplier, whose sum has no
// value that it could have within bounds, as far as floating point tells. *steps counts pivots.
bool kl_simplex_solve(kl_simplex *s, bool *conflict, long double *multiplier, uint32_t *steps);
// Of the last point.
long double kl_simplex_value(const kl_simplex *s, uint32_t variable);

#endif
