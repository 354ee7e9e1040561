// Custom calls whose targets are known.
#ifndef KL_CUSTOM_H
#define KL_CUSTOM_H

#include "ir/hlo.h"

typedef enum kl_custom {
  KL_CUSTOM_UNKNOWN,
  KL_CUSTOM_REMARK, // says something of its operand, and hands that on
  KL_CUSTOM_TOPK,   // is topk
  KL_CUSTOM_BUFFER, // memory whose contents nobody has said
  // (a) -> (factor, s32 info): cholesky as LAPACK has it. The factor has the triangle that is named; the other one is
  // as in a. Of a matrix that is not positive definite, info is the order of the first leading minor that is not, and
  // what the factor has is open; else it is 0.
  KL_CUSTOM_POTRF,
  KL_CUSTOM_TRSM, // is triangular-solve
  // (a) -> (factors, s32 pivots, s32 info): P A = L U, as LAPACK has it. Row k has changed places with row pivots[k],
  // from 1; info is the number of the first pivot that is zero, or 0.
  KL_CUSTOM_GETRF,
  KL_CUSTOM_PERMUTATION, // (s32 pivots) -> rows in the order that these make, all from 0
  // (a) -> (r, taus): A = Q R as LAPACK has it. Below R's diagonal stand the vectors of the reflections 1 - tau v v^H
  // whose product Q is.
  KL_CUSTOM_GEQRF,
  KL_CUSTOM_ORGQR,   // (vectors, taus) -> the first columns of that product, as many as the vectors' array has
  // (a) -> (V, w, s32 info): A = V diag(w) V^H of the Hermitian matrix whose named triangle this is, w ascending. Of each
  // column of V the first element of at least 5/8 of the magnitude of the largest is real and positive.
  KL_CUSTOM_EIGH,
  KL_CUSTOM_ADVISED, // a library's; who lowers the program can have other ops instead
} kl_custom;

// By the target, operands, result and configuration: a call that has not what its kind has is unknown, or advised.
kl_custom kl_custom_of(const kl_comp *c, const kl_instr *in);
// Of a call of any kind, by its target alone.
kl_custom kl_custom_named(const kl_instr *in);
// What the attributes of the op say that a call of POTRF or TRSM stands for, and which triangle EIGH names; *more is else as no op has it.
void kl_custom_attributes(const kl_instr *in, kl_more *more);
// What to do about a target that is not compiled, "expected ..."; NULL: nobody knows.
const char *kl_custom_advice(const kl_instr *in);
// Of topk: are the largest wanted? As the computation it calls compares, or else yes. False: that is no such
// comparison.
bool kl_custom_topk(const kiln_module *m, const kl_instr *in, bool *largest);

#endif
