// Writing HLO op by op: what takes the place of ops that rewriting steps take apart, and the computations that unpack
// and pack stored tensors.
//
// Values are instructions of the open computation, by index. Shapes have default layouts. An array without elements is
// one like any other: indexing it, and scattering into it, makes what there is to make.
#ifndef KL_GRAPH_H
#define KL_GRAPH_H

#include "ir/rewrite/transform.h"

typedef enum kl_combiner {
  KL_COMBINE_LATER, // the update
  KL_COMBINE_OR,
  KL_COMBINE_ADD,
  KL_COMBINE_MAX,
  KL_COMBINE_SUM, // of pairs (sum, whether there is one): what comes first is the sum itself
  KL_COMBINERS
} kl_combiner;

// The computations of a loop that carries this.
typedef struct kl_graph_loop_of {
  const kl_shape *state;
  uint32_t condition, body;
  struct kl_graph_loop_of *next;
} kl_graph_loop_of;

// The comparator by which the least, or the largest, elements of a first array come first; a second one goes with it.
typedef struct kl_graph_order_of {
  kl_dtype key, beside; // NONE: there is no second one
  bool descending;
  uint32_t comp;
  struct kl_graph_order_of *next;
} kl_graph_order_of;

// Arrays that are too large.
typedef struct kl_graph_large {
  kl_shape shape;
  kl_span span; // of what makes it
  struct kl_graph_large *next;
} kl_graph_large;

typedef struct kl_graph {
  kl_ctx *cx;
  kiln_module *m; // a fork
  kl_emitter e;
  kl_arena scratch;
  kl_dtype index; // of indices: s32 or s64
  kl_span span;
  uint32_t combiners[KL_COMBINERS][KILN_DTYPE_COUNT]; // computations + 1; 0: not made yet
  kl_graph_loop_of *loops;
  kl_graph_order_of *orders;
  kl_graph_large *large; // none yet: NULL
} kl_graph;

// As kl_finish_fork of the graph's module. UNSUPPORTED: it has an array that is too large.
kiln_status kl_graph_finish(kl_graph *g, kiln_module **out);
// An array of that module. One that is too large for a shape has one of its own, with all elements that can be counted,
// so that whoever writes goes on.
const kl_shape *kl_graph_array(kl_graph *g, kl_dtype t, uint32_t rank, const int64_t *dims);

// Makes the computation, if it is not there. Not while another is open.
void kl_graph_combiner(kl_graph *g, kl_combiner what, kl_dtype t);
// The loop that carries this, or NULL; and adds one. Not while a computation is open.
const kl_graph_loop_of *kl_graph_loop(const kl_graph *g, const kl_shape *state);
void kl_graph_add_loop(kl_graph *g, const kl_shape *state, uint32_t condition, uint32_t body);
// Makes that comparator, if it is not there; floats are in their total order. Not while a computation is open.
void kl_graph_comparator(kl_graph *g, kl_dtype key, kl_dtype beside, bool descending);
// Begins and ends a computation; its number. The name is like this.
void kl_graph_begin(kl_graph *g);
uint32_t kl_graph_end(kl_graph *g, const char *name, uint32_t root);

// Computations that were made since there were `n`, at their places: the one with number n + i right behind computation
// behind[i], which it may call and which does not call it. Those behind KL_GRAPH_FIRST come first, and call each other
// alone; `behind` NULL: all do.
#define KL_GRAPH_FIRST UINT32_MAX
void kl_graph_put_made(kl_graph *g, uint32_t n, const uint32_t *behind);

const kl_shape *kl_graph_shape(const kl_graph *g, uint32_t value);
uint32_t kl_graph_parameter(kl_graph *g, uint32_t number, const kl_shape *s, const char *name);
uint32_t kl_graph_tuple(kl_graph *g, uint32_t n, const uint32_t *values);
uint32_t kl_graph_element(kl_graph *g, uint32_t value, uint32_t i);
uint32_t kl_graph_fusion(kl_graph *g, uint32_t comp, uint32_t n, const uint32_t *operands, const char *name);
uint32_t kl_graph_call(kl_graph *g, uint32_t comp, uint32_t n, const uint32_t *operands);
// The loop that carries what `state` has; without one it stays as it is.
uint32_t kl_graph_while(kl_graph *g, uint32_t state);

// Constants: bits of the real and imaginary part, in all elements of an array.
uint32_t kl_graph_bits(kl_graph *g, kl_dtype t, const uint64_t bits[2], uint32_t rank, const int64_t *dims);
uint32_t kl_graph_number(kl_graph *g, kl_dtype t, int64_t v, uint32_t rank, const int64_t *dims);
uint32_t kl_graph_number_like(kl_graph *g, uint32_t like, int64_t v); // of its type and dimensions
uint32_t kl_graph_iota(kl_graph *g, kl_dtype t, uint32_t rank, const int64_t *dims, uint32_t dim);

uint32_t kl_graph_unary(kl_graph *g, kl_op op, uint32_t a);
uint32_t kl_graph_complex(kl_graph *g, uint32_t re, uint32_t im);
uint32_t kl_graph_binary(kl_graph *g, kl_op op, uint32_t a, uint32_t b);
uint32_t kl_graph_with(kl_graph *g, kl_op op, uint32_t a, int64_t b); // a number as the second operand
uint32_t kl_graph_compare(kl_graph *g, kl_direction d, uint32_t a, uint32_t b);
uint32_t kl_graph_compare_with(kl_graph *g, kl_direction d, uint32_t a, int64_t b);
uint32_t kl_graph_select(kl_graph *g, uint32_t p, uint32_t a, uint32_t b);
// The op of an instruction of the module, on these operands.
uint32_t kl_graph_like(kl_graph *g, const kl_instr *in, const uint32_t *operands, const int64_t *size);
uint32_t kl_graph_convert(kl_graph *g, uint32_t a, kl_dtype t);
uint32_t kl_graph_bitcast(kl_graph *g, uint32_t a, kl_dtype t); // the bits as elements of a type as wide
// Unsigned integers as indices: numbers beyond become the largest index.
uint32_t kl_graph_to_index(kl_graph *g, uint32_t a);
// Where elements are, bit by bit, other than the value: pred. NaNs are one value.
uint32_t kl_graph_differs(kl_graph *g, uint32_t a, const uint64_t bits[2]);

uint32_t kl_graph_reshape(kl_graph *g, uint32_t a, uint32_t rank, const int64_t *dims);
uint32_t kl_graph_flat(kl_graph *g, uint32_t a);
uint32_t kl_graph_reverse(kl_graph *g, uint32_t a, uint32_t n, const int64_t *dims);
uint32_t kl_graph_transpose(kl_graph *g, uint32_t a, const int64_t *dims);
// Dimension i of a is dimension dims[i] of the result.
uint32_t kl_graph_broadcast(kl_graph *g, uint32_t a, uint32_t rank, const int64_t *sizes, const int64_t *dims);
uint32_t kl_graph_slice(kl_graph *g, uint32_t a, uint32_t dim, int64_t start, int64_t limit, int64_t stride);
// So many elements along this dimension, from an s32 on.
uint32_t kl_graph_dynamic_slice(kl_graph *g, uint32_t a, uint32_t dim, uint32_t start, int64_t size);
uint32_t kl_graph_pad(kl_graph *g, uint32_t a, uint32_t dim, int64_t low, int64_t high); // with zero
uint32_t kl_graph_concatenate(kl_graph *g, uint32_t n, const uint32_t *values, uint32_t dim);
// a[index] of an array of one dimension, in the shape of the index. Indices outside are held to it.
uint32_t kl_graph_gather(kl_graph *g, uint32_t a, uint32_t index);
// a[b, index[b, i...], ...] of an array of two dimensions or more, [b, i..., ...]. Indices outside are held to it.
uint32_t kl_graph_take(kl_graph *g, uint32_t a, uint32_t index);
// a[b, i, index[b, j]] of an array of three dimensions, [b, i, j].
uint32_t kl_graph_take_columns(kl_graph *g, uint32_t a, uint32_t index);
// Into an array of as many dimensions as there are indices [n], one each, updates [n]; those outside are dropped.
uint32_t kl_graph_scatter(kl_graph *g, uint32_t a, const uint32_t *indices, uint32_t updates, kl_combiner by,
                          bool unique);
// Into an array whose first dimensions have indices [n], one each, updates [n, ...] of the others.
uint32_t kl_graph_scatter_rows(kl_graph *g, uint32_t a, uint32_t n, const uint32_t *indices, uint32_t updates,
                               kl_combiner by);
// A dot with the dimension numbers of `more`, and what else that says as far as `given` has the bits of its rows.
uint32_t kl_graph_dot(kl_graph *g, uint32_t a, uint32_t b, const kl_more *more, uint64_t given, kl_dtype t,
                      uint32_t rank, const int64_t *dims);
// A convolution with the window, labels and groups of `more`.
uint32_t kl_graph_convolution(kl_graph *g, uint32_t a, uint32_t b, const kl_more *more, kl_dtype t, uint32_t rank,
                              const int64_t *dims);
// Of square matrices; of the more of a triangular-solve, what its own attributes say.
uint32_t kl_graph_cholesky(kl_graph *g, uint32_t a, bool lower);
uint32_t kl_graph_triangular_solve(kl_graph *g, uint32_t a, uint32_t b, const kl_more *more);
// Stable, along the last dimension, by the first of one or two arrays, whose order there is: that array, or both.
uint32_t kl_graph_sort(kl_graph *g, uint32_t n, const uint32_t *values, bool descending);
uint32_t kl_graph_topk(kl_graph *g, uint32_t a, int64_t k, bool largest); // (values, s32 indices)
// A scan along dimension `dim`: `step` takes a slice of each of n values, then each of `carries` initial ones, and
// gives outputs and what is carried on; results are the outputs' rows and the last of what is carried.
uint32_t kl_graph_steps(kl_graph *g, uint32_t step, uint32_t n, uint32_t carries, const uint32_t *values, int64_t dim,
                        bool reverse);
// Over one dimension or several; the initial value is 0 or false where none is given.
uint32_t kl_graph_reduce(kl_graph *g, uint32_t a, uint32_t dim, kl_combiner by);
uint32_t kl_graph_reduce_from(kl_graph *g, uint32_t a, uint32_t n, const int64_t *dims, kl_combiner by,
                              uint32_t initial);
uint32_t kl_graph_reduce_over(kl_graph *g, uint32_t a, uint32_t n, const int64_t *dims, kl_combiner by);
// Sums or maxima of a[i, 0..j], of indices [n, m] that are not negative. In blocks, and what comes before each block
// likewise: there is no kernel for scans yet.
uint32_t kl_graph_scan(kl_graph *g, uint32_t a, kl_combiner by);

#endif
