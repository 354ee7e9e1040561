// Private to src/jit/place: computations as they are run, and where their values lie.
#ifndef KL_PLACE_IMPL_H
#define KL_PLACE_IMPL_H

#include "jit/kernels.h"

// A buffer as an argument. Whoever reads or writes it finds it in the layout of its owner: a slot's is the caller's, of
// scratch memory the fusion whose result it is.
typedef struct place {
  kiln_argument argument;
  const kl_shape *shape;
} place;

// Who reads a leaf: an instruction that runs, by a leaf of its operands, counted through them all; or the root.
typedef struct reader {
  uint32_t instr, leaf; // instr: the number of instructions for the root
} reader;

// How a loop is run, as far as its text says.
typedef struct trips {
  bool known, unrolled; // unrolled: body after body, without a state
  uint64_t n;
} trips;

// One time that a computation is run: ENTRY, what a loop runs, a branch.
typedef struct placing {
  kl_ctx *cx;
  kl_kernels *k;
  const kl_comp *c;
  const place *params; // by leaf of its parameters; NULL: they are slots
  uint32_t *param_base, nparams;
  place **at;    // by instruction: of each leaf of what runs
  bool **placed; // of these: written where it is wanted; else it lies where it happens to
  trips *trips;  // by instruction: of loops
  // Who reads what, by instruction and leaf: readers[first[base[instr] + leaf]] and behind it.
  uint32_t *base, *first;
  reader *readers;
  // What runs later than it stands, so that others read what it overwrites: pairs of instructions.
  VEC(reader) later;
  uint32_t *seen, search, looked; // of searches for what is needed
} placing;

// values.c
uint32_t kl_place_leaves(const kl_instr *in);
// The parameter, constant or leaf of what runs that a leaf of `instr` is. *as: the shape it is seen in, if that is not
// its own.
const kl_instr *kl_place_resolve(const kl_comp *c, uint32_t instr, uint32_t *leaf, const kl_shape **as);
place kl_place_of(placing *p, uint32_t instr, uint32_t leaf);
place kl_place_of_leaf(const placing *p, uint32_t i); // of a parameter's leaf, counted through all parameters
place kl_place_buffer(placing *p, const kl_shape *shape);
bool kl_place_same(place a, place b);
bool kl_place_is_buffer(place a); // of scratch memory, and no constant
void kl_place_copy(placing *p, place from, place to, const kl_shape *shape, kl_span span);
// What is done with `c` of these parameters; freed by kl_place_end.
placing kl_place_inside(const placing *p, const kl_comp *c, const place *params);
void kl_place_end(placing *p);
// Says where results are to lie, by leaf, `any`: no matter where; which of them are written there at once (`direct`,
// if it is not NULL). Then runs it, and copies the others.
void kl_place_aim(placing *p, const place *to, const bool *any, bool *direct);
void kl_place_run(placing *p, const place *to, const bool *any);
void kl_place_end_step(kl_ctx *cx, kl_kernels *k); // kernels since the last one are a step
// Where a condition lies is read before the kernel of this number is run, or what is behind all.
void kl_place_read(placing *p, const kiln_argument *condition, uint32_t before);

// order.c
void kl_place_find_readers(placing *p);
const reader *kl_place_readers(const placing *p, uint32_t instr, uint32_t leaf, uint32_t *n);
// May the leaf of what runs be written where it is to lie, in the place of a parameter perhaps, once it is made? What
// reads that is done before, from now on.
bool kl_place_may_write(placing *p, uint32_t instr, uint32_t leaf, place to);
// Instructions in an order in which all are done that are to be done before others.
const uint32_t *kl_place_order(placing *p);

// loops.c, branches.c: add what they run; p->at has the places of their results then.
bool kl_place_keeps(const kl_comp *body, uint32_t leaf); // does it hand the leaf of its state on as it is?
trips kl_place_trips(const placing *p, const kl_instr *loop);
void kl_place_loop(placing *p, uint32_t i);
void kl_place_branches(placing *p, uint32_t i);

#endif
