// What takes the place of each op. Private to this room.
#ifndef KL_EXPAND_ROOM_H
#define KL_EXPAND_ROOM_H

#include "ir/rewrite/expand/expand.h"
#include "ir/rewrite/graph.h"

// An op that is to be written out, and its operands as values of the open computation.
typedef struct kl_expansion {
  kl_graph *g;
  const kl_instr *in;
  const uint32_t *operands;
  const kl_comp *c; // as it is before, and the number of the op in it
  uint32_t at;
} kl_expansion;

// Of one op: is it written out, given its operands' shapes; which computations that takes; the value that takes its
// place, an array or a tuple in layouts of its own.
typedef struct kl_expander {
  bool (*takes)(const kiln_module *m, const kl_comp *c, const kl_instr *in);
  void (*computations)(kl_graph *g, const kl_comp *c, const kl_instr *in); // NULL: none
  uint32_t (*write)(const kl_expansion *x);
} kl_expander;

// Words of the Philox generator, u32 or u64 as the shape has them, in its order: rng-bit-generator's of such a state.
uint32_t kl_expand_words(kl_graph *g, const kl_shape *s, uint64_t key, const uint64_t counter[2]);
// The key of every rng: "kiln".
#define KL_RANDOM_KEY 0x6b696c6eu

// ThreeFry's 20 rounds of two arrays of words, in place. The words of the key are one each, or arrays like these.
void kl_expand_three_fry(kl_graph *g, const uint32_t key[2], uint32_t x[2]);

// A call of a library of XLA:GPU, as ops; and the computations of these (library.c, conv.c, attention.c).
uint32_t kl_expand_library(const kl_expansion *x);
void kl_expand_library_computations(kl_graph *g, const kl_comp *c, const kl_instr *in);
uint32_t kl_expand_attention(const kl_expansion *x);
void kl_expand_attention_computations(kl_graph *g);
// Sums of products in type t, of the kinds of convolutions.
uint32_t kl_expand_conv(const kl_expansion *x, const kl_shape *to, kl_dtype t);

// A custom call's decomposition of matrices, (factors, pivots from 1, info); and the permutation of pivots from 0, of
// this shape. Their computations (lu.c).
uint32_t kl_expand_getrf(kl_graph *g, uint32_t a);
uint32_t kl_expand_permutation(kl_graph *g, uint32_t pivots, const kl_shape *to);
void kl_expand_lu_computations(kl_graph *g, const kl_comp *c, const kl_instr *in);
// (R with the reflections' vectors below, taus); and the first columns of the product of such reflections (qr.c).
uint32_t kl_expand_geqrf(kl_graph *g, uint32_t a);
uint32_t kl_expand_orgqr(kl_graph *g, uint32_t a, uint32_t taus);
void kl_expand_qr_computations(kl_graph *g, const kl_comp *c, const kl_instr *in);
// The loop that decomposes matrices of this shape, or that multiplies so many reflections of their columns.
void kl_expand_qr_loop(kl_graph *g, const kl_shape *s, int64_t steps, bool product);
// The same of columns exchanged, the longest of what is left first: (R with vectors, numbers of columns from 1, taus).
// `given`: columns that are to come first, where not zero.
uint32_t kl_expand_geqp3(kl_graph *g, uint32_t a, uint32_t given, const kl_shape *results);
void kl_expand_geqp3_computations(kl_graph *g, const kl_shape *s);
// What solves tridiagonal systems, of the three diagonals and right-hand sides: a tuple as gtsv has it, or x alone
// (gtsv.c).
uint32_t kl_expand_gtsv(kl_graph *g, const uint32_t *operands, const kl_shape *results);
void kl_expand_gtsv_computations(kl_graph *g, const kl_shape *sides);
// (V, w, info) of the matrices' named triangle, as a call gives them; its computations (eigh.c).
uint32_t kl_expand_eigh(kl_graph *g, uint32_t a, bool lower, const kl_shape *results);
void kl_expand_eigh_computations(kl_graph *g, const kl_shape *s);
// What a call gives that decomposes matrices into singular values and vectors, in this form (svd.c).
struct kl_svd;
uint32_t kl_expand_svd(kl_graph *g, uint32_t a, const struct kl_svd *form, const kl_shape *results);
void kl_expand_svd_computations(kl_graph *g, const kl_shape *s, const struct kl_svd *form, const kl_shape *results);

extern const kl_expander kl_expand_rng, kl_expand_random, kl_expand_norm, kl_expand_ragged, kl_expand_custom,
    kl_expand_size, kl_expand_pieces;

#endif
