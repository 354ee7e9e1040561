// The value of a contraction: the one order of docs/numerics.md, a rounding at each step.
#ifndef KL_EVAL_CHAIN_H
#define KL_EVAL_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

enum { KL_CHAINS = 4 };

// out[i][j]: the sum of a[k][i] * b[k][j] over k = 0 .. depth-1; where there are two parts, over the products of k and
// depth + k for each k, in this order. In f64 if `wide`; else in f32, of which all a and b are numbers.
void kl_chain(bool wide, int64_t depth, int parts, const double *a, const double *b, double out[KL_CHAINS][KL_CHAINS]);

#endif
