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
  // (a, s32 given) -> (r, s32 numbers, taus): the same of the columns with these numbers, from 1. Round k changes
  // column k with the first from there on that is given, not zero, or else the first of those of greatest length from
  // row k on.
  KL_CUSTOM_GEQP3,
  KL_CUSTOM_ORGQR, // (vectors, taus) -> the first columns of that product, as many as the vectors' array has
  // (lower, diagonal, upper, b) -> (lower, diagonal, upper, x, s32 info), or x alone: A x = b of the tridiagonal A,
  // whose row i is lower[i], diagonal[i], upper[i], by LAPACK's exchanges of rows. info is the number of the first
  // pivot that is zero, from 1, or 0; the diagonals' memory has anything.
  KL_CUSTOM_GTSV,
  // (a) -> (V, w, s32 info): A = V diag(w) V^H of the Hermitian matrix whose named triangle this is, w ascending. Of
  // each column of V the first element of at least 5/8 of the magnitude of the largest is real and positive.
  KL_CUSTOM_EIGH,
  // (a) -> (a, s, U, V^H or V, s32 info): A = U diag(s) V^H, s descending. Of each row of V^H, up to the number of
  // singular values, the first element of at least 5/8 of the magnitude of the largest is real and positive.
  KL_CUSTOM_SVD,
  KL_CUSTOM_ADVISED, // a library's; who lowers the program can have other ops instead
  // What XLA makes of ops for a GPU: calls that are a few ops each (ir/rewrite/expand/library.c). The evaluator has
  // these ops in their place.
  KL_CUSTOM_GEMM,        // a product of matrices, and what becomes of it: kl_gemm
  KL_CUSTOM_GEMM_F8,     // likewise, of scaled floats of 8 bits
  KL_CUSTOM_CONV,        // a convolution, and what becomes of it: kl_after
  KL_CUSTOM_CONV_INPUT,  // what it hands back to its input
  KL_CUSTOM_CONV_KERNEL, // and to its kernel
  KL_CUSTOM_CONV_BIAS,   // one that has a bias, or a side input
  KL_CUSTOM_CONV_STEPS,  // one, and steps behind it: kl_conv_steps
  KL_CUSTOM_ATTENTION,   // kl_attention
  KL_CUSTOM_SOLVE,       // triangular-solve, beside memory
  KL_CUSTOM_SORT,        // stable, along the last dimension: of keys, or of keys and what goes with them
  KL_CUSTOM_THREE_FRY,   // JAX's block cipher: (keys, counters) of two words each -> two words
} kl_custom;

static inline bool kl_custom_is_library(kl_custom kind) {
  return kind >= KL_CUSTOM_GEMM;
}

// By the target, operands, result and configuration: a call that has not what its kind has is unknown, or advised.
kl_custom kl_custom_of(const kl_comp *c, const kl_instr *in);
// Of a call of any kind, by its target alone.
kl_custom kl_custom_named(const kl_instr *in);
// What the attributes of the op say that a call of POTRF or TRSM stands for, and which triangle EIGH names; *more is
// else as no op has it.
void kl_custom_attributes(const kl_instr *in, kl_more *more);
// What a call of SVD gives where.
typedef struct kl_svd {
  bool vectors;  // else what their results have is open
  bool full;     // square matrices of them
  bool adjoint;  // V^H, not V
  uint32_t u, v; // numbers of results
} kl_svd;
void kl_custom_svd(const kl_instr *in, kl_svd *form);
// What to do about a target that is not compiled, "expected ..."; NULL: nobody knows.
const char *kl_custom_advice(const kl_instr *in);
// Of a call whose kind by name is a library's: why it is unknown, "expected ...", and what stands in that place (empty:
// nothing, or it need not be said).
const char *kl_custom_fault(const kl_comp *c, const kl_instr *in, kl_str *found);
// Of topk: are the largest wanted? As the computation it calls compares, or else yes. False: that is no such
// comparison.
bool kl_custom_topk(const kiln_module *m, const kl_instr *in, bool *largest);

// --- products of matrices and convolutions --------------------------------------------------------------------------

typedef enum kl_activation {
  KL_ACTIVATION_NONE,
  KL_ACTIVATION_SIGMOID,
  KL_ACTIVATION_RELU,
  KL_ACTIVATION_RELU6,
  KL_ACTIVATION_TANH,
  KL_ACTIVATION_ELU,
  KL_ACTIVATION_LEAKY_RELU, // x > 0 ? x : slope x
  KL_ACTIVATION_GELU,       // by tanh
  KL_ACTIVATION_GELU_ERF,
  KL_ACTIVATION_SWISH
} kl_activation;

enum { KL_NO_OPERAND = -1 };

// What becomes of sums s of products, in the type `steps`, which is the result's for integers and complex numbers:
//   x = alpha scale s + beta addend + bias,  y = activation(x),  the result y result_scale
// Floats of 8 bits and integers that are made of floats are rounded to nearest and held to their range. The results are
// that, then x (`before`), then the largest |y| (`most`), then memory that nobody reads (`spare`), where they are
// there.
typedef struct kl_after {
  kl_dtype steps;
  double alpha[2], beta; // alpha: real and imaginary part
  kl_activation activation;
  double slope;
  int addend, bias, scale[2], result_scale; // operands, by number
  int64_t bias_dims[KILN_MAX_RANK];         // which dimension of the result each of the bias's is
  bool before, most, spare;
} kl_after;

typedef enum kl_gemm_dims { KL_LHS_BATCH, KL_LHS_CONTRACTING, KL_RHS_BATCH, KL_RHS_CONTRACTING } kl_gemm_dims;
typedef struct kl_gemm {
  uint32_t n[4];
  int64_t dims[4][KILN_MAX_RANK];
  int algorithm; // as of a dot
  kl_after after;
} kl_gemm;

// Reads calls of the kinds GEMM and GEMM_F8, and CONV and its kin. False: they are not what they should be.
bool kl_custom_gemm(const kl_comp *c, const kl_instr *in, kl_gemm *out);
bool kl_custom_conv(const kl_comp *c, const kl_instr *in, kl_after *out);

// Steps behind a convolution forward; each takes values of others, rounded to their types. Results are the value of the
// last one, then of each LARGEST the largest magnitude of its value before that was rounded, then memory.
typedef enum kl_conv_step_kind {
  KL_CONV_STEP_CONV,
  KL_CONV_STEP_ADD,
  KL_CONV_STEP_SCALE,
  KL_CONV_STEP_DIVIDE,
  KL_CONV_STEP_MIN,
  KL_CONV_STEP_MAX,
  KL_CONV_STEP_RELU,
  KL_CONV_STEP_ELU,
  KL_CONV_STEP_LARGEST
} kl_conv_step_kind;
typedef struct kl_conv_step {
  kl_conv_step_kind kind;
  kl_dtype type;     // a float of at most 32 bits
  int a, b, operand; // steps, and an operand by number, in place of b
} kl_conv_step;
enum { KL_MOST_CONV_STEPS = 64 };
typedef struct kl_conv_steps {
  uint32_t n, last, nlargest;
  kl_conv_step step[KL_MOST_CONV_STEPS];
  bool spare;
} kl_conv_steps;
bool kl_custom_steps(const kl_comp *c, const kl_instr *in, kl_conv_steps *out);

bool kl_custom_sort(const kl_instr *in, bool *descending);
bool kl_custom_solve(const kl_instr *in, kl_more *out); // what the attributes of triangular-solve say

// Attention of queries [batch, tokens, heads, width] to keys and values (or heads before tokens), or what its gradient
// hands back to these (ir/rewrite/expand/attention.c).
typedef struct kl_attention {
  bool back;
  uint32_t heads;  // which dimension of what is given they are: 1 or 2; tokens are the other one
  int64_t size[4]; // of scores: batch, heads, queries, keys
  int64_t width;   // of a value
  double scale;
  bool causal;      // a query sees keys up to its own place
  int64_t window;   // and no more of these; 0: all
  int bias;         // an operand
  bool more, spare; // the logarithm of each row's sum, or the bias's gradient, is a result; memory is
} kl_attention;
bool kl_custom_attention(const kl_comp *c, const kl_instr *in, kl_attention *out);

#endif
