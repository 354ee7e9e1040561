// What the files of the generator share: the pool of values, drawing, and operations by kind.
#ifndef KL_GEN_IMPL_H
#define KL_GEN_IMPL_H

#include "support/gen.h"
#include "support/dtypes.h"
#include <stdio.h>

enum { MAX_VALUES = 400, MAX_ELEMENTS = 6000, MAX_RANK = 6, MAX_ROOTS = 4, MAX_PARAMS = 20, MAX_DEPTH = 2 };

typedef struct value {
  kl_dtype t;
  uint32_t rank;
  int64_t dims[MAX_RANK];
  uint32_t layout[MAX_RANK]; // minor to major
  bool custom;               // the layout is not the default
  bool computed;             // a float that went through arithmetic: the bits of its NaNs are not promised
} value;

// One computation that grows.
typedef struct gen {
  gen_source *src;
  kl_sb *out, body;
  kl_sb *called;   // computations that it calls
  unsigned *calls; // how many there are, of all computations of the module
  value v[MAX_VALUES];
  unsigned n, tuples;
  unsigned params, param[MAX_PARAMS]; // which values are parameters
  unsigned depth;                     // 0: the fusion itself; else it is called, and its parameters are what they are
  bool tiles;                         // some buffers lie in tiles
  bool packed;                        // the parameters are leaves of one tuple
  bool elements;                      // of a map or a reducer: what is one element each
} gen;

// --- drawing ------------------------------------------------------------------------------------------------------

uint64_t gen_next(gen_source *s);
unsigned pick(gen *g, unsigned n); // below n; 0 of none
bool chance(gen *g, unsigned percent);
kl_dtype any_dtype(gen *g); // every type, the usual ones more often
unsigned operand(gen *g);   // mostly a recent value, so that operations build on each other
void shuffle(gen *g, uint32_t n, int64_t *v);
uint32_t draw_set(gen *g, uint32_t k, uint32_t n, int64_t *out); // k of 0 .. n-1 in order; returns k

// --- values -------------------------------------------------------------------------------------------------------

int64_t count(const value *v);
bool same_dims(const value *a, const value *b);
void default_layout(value *v);
bool full(const gen *g);

// Begins "  vN = shape op(" and returns N; in `percent` of cases in another layout.
unsigned begin(gen *g, const value *v, const char *op, unsigned percent);
// The whole line; `attrs` begins with a comma.
unsigned emit(gen *g, const value *v, const char *op, unsigned n, const unsigned *operands, const char *attrs);
// The line of an op whose operands and attributes are `arguments`; where it has several results, at most MAX_ROOTS,
// they are taken out of its tuple.
void put_results(gen *g, unsigned n, const value *v, const char *op, const char *arguments);
// A value of type t with the dims of `like`: `like` itself, another one, or a conversion.
unsigned of_type(gen *g, unsigned like, kl_dtype t);
unsigned scalar_constant(gen *g, kl_dtype t);
unsigned number(gen *g, kl_dtype t, unsigned n); // a constant of an integer type that holds it
// A value of these dims and type from what there is: one of as many elements, a parameter, positions, one for all.
unsigned made(gen *g, const value *v);
unsigned parameter(gen *g, const value *v); // a new one of the fusion
unsigned scalar_of(gen *g, unsigned from);  // the first element of a value that has one

// --- text ---------------------------------------------------------------------------------------------------------

void put_shape(kl_sb *b, const value *v);
void put_tuple(kl_sb *b, unsigned n, const value *const *v); // "(shape, shape)"
void put_shape_elsewhere(gen *g, kl_sb *b, const value *v);  // as another computation may have it
void put_buffer(gen *g, kl_sb *b, const value *v);           // the same for what is a buffer there
void put_list(char *text, size_t size, const char *key, uint32_t n, const int64_t *dims); // ", key={...}"

// --- operations ---------------------------------------------------------------------------------------------------

// Each adds values to the pool, or none where what it has drawn does not do.
typedef void gen_op(gen *g);
gen_op op_unary, op_binary, op_compare, op_select, op_clamp, op_convert, op_bitcast_convert, op_change_width,
    op_reduce_precision, op_complex, op_broadcast, op_reshape, op_transpose, op_reverse, op_slice, op_pad,
    op_concatenate, op_iota, op_bitcast, op_bitcast_width, op_call, op_map, op_conditional;
// Those of whole modules alone.
gen_op op_function, op_whole_binary, op_stochastic_convert, op_concatenate_any, op_tuple, op_computation, op_reduce,
    op_dynamic_slice, op_update_slice, op_gather, op_scatter;

void gen_operations(gen *g, unsigned n);

// Opens a computation of the values `x` of g: their types and dims, or with `elements` of one element each; its
// parameters are n, or with `tuple` one.
void open_computation(gen *g, gen *in, bool elements, bool tuple, unsigned n, const unsigned *x);
// Ends it with roots of its pool, several as a tuple, under `name` and `number`.
void close_computation(gen *g, gen *in, const char *name, unsigned number, unsigned n, const unsigned *roots);
// The last value of the pool with the dims of `like`, as type t.
unsigned last_like(gen *g, const value *like, kl_dtype t);

#endif
