// A naive model of a graph's data movement, for judging plans.
//
// A value is a 64-bit fingerprint of where it comes from: which element of which parameter, which constant, which
// operation, to which type, on which values. Two computations agree exactly if they take the same elements the same
// way, whatever the operations do; but for these, which change no bit of any result. The operands of a sum or product
// may change places. So may all that are joined by one operation of integers or predicates, or by maximum or minimum:
// sums of floats show their tree. An operand that is the identity of an operation may be left out. What is made wider
// without loss and narrow again is what it was.
#ifndef KL_TEST_PLAN_MODEL_H
#define KL_TEST_PLAN_MODEL_H

#include "lower/plan/plan.h"

// Sums and products of floats may be joined in any order, too.
extern bool order_of_sums_is_free;

uint64_t of_parameter(uint32_t slot, int64_t element); // element by its number in memory
uint64_t of_bits(kl_dtype t, const uint64_t bits[2]);
uint64_t of_iota(kl_dtype t, int64_t i);
uint64_t of_part(uint64_t whole, uint64_t part);
uint64_t of_join(uint32_t n, const uint64_t *parts); // the first lowest
// `from` is the type of the first operand.
uint64_t of_op(const kl_plan_op *op, kl_dtype from, kl_dtype to, uint32_t n, const uint64_t *operands);
// x[0] * x[1] + x[2], rounded once: factors may change places.
uint64_t of_fma(kl_dtype t, const uint64_t x[3]);
uint64_t of_instr(const kl_instr *in, kl_dtype from, uint32_t n, const uint64_t *operands);

// The integer that a value of an integer type stands for: that of a small constant or position, else some number.
int64_t integer_of(kl_dtype t, uint64_t x);

// One array per leaf, row-major in logical order.
typedef struct leaves {
  uint32_t n;
  uint64_t **v;
} leaves;

// Row-major position of a multi-index and back.
int64_t at_index(const kl_shape *s, const int64_t *index);
void index_at(const kl_shape *s, int64_t n, int64_t *index);
// Row-major position of the element with this number in memory.
int64_t in_memory(const kl_shape *s, int64_t element);

// One argument per parameter; its slots are its leaves, numbered through.
leaves *number_arguments(kl_arena *arena, const kl_comp *c);
leaves evaluate_graph(kl_arena *arena, const kiln_module *m, const kl_comp *c, const leaves *args);

#endif
