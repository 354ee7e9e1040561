// Sums of products: result[i, j] = sum over k of lhs[i, k] * rhs[j, k], where each side says which element of its
// operand that is, or that it is zero. dot and convolution in all their forms come down to this.
#ifndef KL_EVAL_CONTRACT_H
#define KL_EVAL_CONTRACT_H

#include "eval/fold/sum.h"

// Writes the linear indices of elements [0, depth) of row i; -1 stands for a zero.
typedef void kl_side_index(const void *arg, int64_t i, int64_t *at);
typedef struct kl_side {
  const kl_evval *v;
  kl_side_index *index;
  const void *arg;
  int64_t rows;
} kl_side;

typedef struct kl_contraction {
  kl_side lhs, rhs;
  int64_t depth;
  kl_dtype t;      // of the result; integers are converted to it first
  kl_dtype acc;    // floats: products and sums are rounded to this
  kl_dtype sum;    // floats: the data are sums of this type, f32 or f64, in the order of docs/numerics.md
  kl_dtype narrow; // operands beyond its normal range open what they meet; KILN_DTYPE_NONE: none do
  double extra;    // error besides those roundings, relative to the sum of the sizes; per_term: times the terms
  double per_term;
  const int64_t *row_at, *col_at; // the result's element is row_at[i] + col_at[j]
} kl_contraction;

// How products of operands a and b are accumulated for a result of type t: f64 where any is f64, else f32.
kl_dtype kl_accumulation_type(kl_dtype a, kl_dtype b, kl_dtype t);
// May exact operands give results with intervals?
bool kl_contraction_rounds(const kl_contraction *c);
// `out` has all planes or data alone, and room for every row_at[i] + col_at[j].
kiln_status kl_contract(kl_ev *ev, const kl_contraction *c, kl_evval *out);

#endif
