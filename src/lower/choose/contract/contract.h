// Private to src/lower/choose/contract: dots and convolutions as sums of products, and kernels of them.
//
// An element of the result is the sum of the products of `length` pairs of elements of two operands. Pairs have numbers
// r = 0 .. length-1: of a dot by its contracted dims in the order in which the left side lists them, the first the
// slowest; of a convolution by the places of its window, the last dim the fastest, and then the features of the input.
// They join as docs/numerics.md says, whatever kernel does it.
#ifndef KL_CONTRACT_H
#define KL_CONTRACT_H

#include "lower/choose/chooser.h"

// Which operands an element of the result takes others of along a digit of its index.
typedef enum kl_contract_role { KL_OF_BOTH, KL_OF_LEFT, KL_OF_RIGHT, KL_CONTRACT_ROLES } kl_contract_role;

// Digit floor(index / place) mod extent of a dim of the result's index.
typedef struct kl_contract_digit {
  uint32_t dim;
  int64_t extent, place;
  kl_contract_role role;
} kl_contract_digit;

enum { KL_MOST_DIGITS = KILN_MAX_RANK + 1 };

typedef struct kl_contraction {
  const kl_instr *instr;
  uint32_t number; // of the instruction in its computation
  const kl_shape *shape, *from[2];
  kl_dtype term[2];         // that an operand's elements have where they are multiplied: its own, but of a scaled-dot
  const kl_shape *scale[2]; // of a scaled-dot, whose elements are scaled in the type `term`; NULL
  kl_dtype type; // of sums, of a part where numbers are complex; exact sums wrap in a type of 32 bits or more
  bool complex;
  uint32_t ndigits; // of each role the slowest first, as they are in the result
  kl_contract_digit digits[KL_MOST_DIGITS];
  uint32_t npairs; // digits of r, slowest first
  int64_t pairs[KL_MOST_DIGITS];
  int64_t length, leaf; // leaf: pairs of a leaf; the length where order does not show
  int64_t piece;        // the same of leaves that several blocks have; the length where none is cut
} kl_contraction;

// find.c
// All that the computation's results need. *why_not as choosers say it.
typedef struct kl_contractions {
  uint32_t n;
  kl_contraction *p;
} kl_contractions;
kiln_status kl_find_contractions(kl_choosing *c, kl_contractions *out, const char **why_not);

// Of side 0, the left one, or 1: the index of the operand's element of pair number r of the result's element `index`;
// where one of the *n constraints does not hold, the pair has a zero there. Indices are in names.
void kl_pair_index(kl_affs *p, const kl_contraction *x, int side, const kl_aff *const *index, const kl_aff *r,
                   const kl_aff **at, uint32_t *n, kl_constraint *in);

// terms.c: values as they are summed, a step for each part.
typedef struct kl_parts {
  uint32_t re, im; // im KL_NONE where numbers are not complex
} kl_parts;
// The sum of no pairs, which a leaf begins with; the sum of no leaves.
kl_parts kl_begin_leaf(kl_writer *w, const kl_contraction *x);
kl_parts kl_no_leaf(kl_writer *w, const kl_contraction *x);
// The operand's element of a pair, where `guard` holds.
kiln_status kl_want_term(kl_walk *walk, const kl_contraction *x, int side, const kl_aff *const *index, const kl_aff *r,
                         uint32_t guard, kl_parts *out);
kl_parts kl_add_product(kl_writer *w, const kl_contraction *x, kl_parts a, kl_parts b, kl_parts sum);
kl_parts kl_join_leaf(kl_writer *w, const kl_contraction *x, kl_parts before, kl_parts leaf);
// The result's element.
uint32_t kl_round_sum(kl_writer *w, const kl_contraction *x, kl_parts sum);

// loops.c: sums pair by pair. Loops over whole leaves, the pairs of one, those of the last, KL_NONE: at most one round;
// `regs` number a thread's sums. `at_once` pairs are read at once, those of a leaf that are left over one by one.
typedef struct kl_contract_loops {
  uint32_t leaf, pair, rest, at; // at: reg, of pairs that are read at once
  int64_t at_once;
  kl_vars regs;
} kl_contract_loops;
void kl_contract_loop_vars(kl_affs *p, kl_var_list *vars, const kl_contraction *x, int64_t at_once,
                           kl_contract_loops *out);
// The terms of pair r.
typedef kiln_status kl_contract_pair(void *arg, const kl_aff *r, kl_parts terms[2]);
// The same of one leaf alone, which begins with pair `first`: a whole one, or the one that is not.
void kl_contract_leaf_vars(kl_affs *p, kl_var_list *vars, const kl_contraction *x, int64_t at_once,
                           kl_contract_loops *out);
kiln_status kl_contract_leaf(kl_writer *w, const kl_contraction *x, const kl_contract_loops *loops,
                             kl_contract_pair *pair, void *arg, const kl_aff *first, bool is_short, kl_parts *sum);
kiln_status kl_contract_sum(kl_writer *w, const kl_contraction *x, const kl_contract_loops *loops,
                            kl_contract_pair *pair, void *arg, kl_parts *sum);

// contract.c: where sums go. What a launch makes: results of the computation that have the contraction's elements, each
// once and at one index; or the contraction itself, for launches behind it.
typedef struct kl_contract_outputs {
  const kl_shape *shape;        // of all of them: dims
  uint32_t n;                   // slots
  const uint32_t *slots;        // in order of memory as `shape`'s, or not
  bool stored;                  // the contraction itself
  const kl_aff *const *element; // its element's index, dim i being dim i of an output's index
  const kl_aff *const *index;   // the other way round; NULL: not known
} kl_contract_outputs;
// Gives the sum to the walk and stores outputs' elements at an index in names, where `keep` holds. at: the
// place of the element in the first of them, NULL where the index says it.
kiln_status kl_store_outputs(kl_walk *walk, const kl_contraction *x, const kl_contract_outputs *o,
                             const kl_aff *const *index, const kl_aff *at, kl_parts sum, uint32_t keep);
// The contraction's index there.
void kl_contract_output_element(kl_affs *p, const kl_contraction *x, const kl_contract_outputs *o,
                                const kl_aff *const *index, const kl_aff **element);

// The outputs' index of an element of the contraction, where it is known.
void kl_contract_output_index(kl_affs *p, const kl_contraction *x, const kl_contract_outputs *o,
                              const kl_aff *const *element, const kl_aff **index);

// --- several blocks for an element ----------------------------------------------------------------------------------

// The same contraction, by leaves that may have blocks of their own.
static inline kl_contraction kl_in_pieces(const kl_contraction *x) {
  kl_contraction pieces = *x;
  pieces.leaf = x->piece;
  return pieces;
}

// Leaves' sums in scratch memory, by part, leaf after leaf: in each the place of an element is that in the first
// output.
typedef struct kl_leaf_sums {
  int64_t leaves;
  uint32_t slot[2];
} kl_leaf_sums;
void kl_add_leaf_sums(kl_choosing *c, const kl_contraction *x, kl_leaf_sums *out);
void kl_store_leaf(kl_choosing *c, kl_writer *w, const kl_contraction *x, const kl_leaf_sums *s, const kl_aff *leaf,
                   const kl_aff *at, kl_parts sum, uint32_t keep);
// Is a pair of the last leaf perhaps not there?
static inline bool kl_has_short_leaf(const kl_contraction *x) {
  return x->length % x->leaf != 0;
}
// A term of a pair that changes no bit of a sum, on either side.
uint32_t kl_absent_term(kl_writer *w, const kl_contraction *x, int side);
// elements.c: the last launch of the plan, which has no parts, joins them, and makes the outputs.
kiln_status kl_join_leaves(kl_choosing *c, const kl_contraction *x, const kl_contract_outputs *o,
                           const kl_leaf_sums *sums, const char **why_not);

// --- tiles ----------------------------------------------------------------------------------------------------------

// An element of the result by three numbers: what both operands, the left and the right one take others of along.
int64_t kl_contract_extent(const kl_contraction *x, kl_contract_role role);
void kl_contract_element(kl_affs *p, const kl_contraction *x, const kl_aff *const number[KL_CONTRACT_ROLES],
                         const kl_aff **element);

// How a block reads a slab of an operand, `rows` of its own numbers by `depth` pairs: each thread `runs` of `run`
// neighbours, along pairs or along rows, of which `line` runs lie side by side before the next row's or pair's. In
// shared memory rows of one pair lie together, and `apart` elements are between them and the next pair's.
typedef struct kl_slab {
  int64_t rows, run, runs, line, apart;
  bool along_pairs;
} kl_slab;

// A thread has groups of neighbouring elements both ways, lanes and warps next to each other have the groups between.
typedef struct kl_contract_tile {
  int64_t groups[2], near[2], lanes[2], warps[2]; // down the left operand's rows, and the right one's
  int64_t side[2], threads, depth;                // elements of a block's tile; pairs of a slab
  bool splits;                                    // each leaf has blocks of its own
  bool many_sums;   // of a thread: they and what it multiplies are more than 128 registers
  uint32_t at_most; // blocks of a multiprocessor that have registers for their sums; 0: any
  kl_slab slab[2];
} kl_contract_tile;
// tile_size.c: false where no tile is worth it.
kiln_status kl_contract_tile_of(kl_choosing *c, const kl_contraction *x, const kl_contract_outputs *o,
                                kl_contract_tile *out, const char **why_not);
// What is loaded for an operand's element: what is another one for each pair, if there is any, and not rows' factors or
// indices that say which rows these are; by the widest type. Along which variable elements are neighbours; how many of
// these one access takes; the bits of one.
typedef struct kl_contract_reading {
  bool along_rows, along_pairs;
  int64_t at_once;
  uint32_t bits;
} kl_contract_reading;
kiln_status kl_contract_reading_of(kl_choosing *c, const kl_contraction *x, int side, kl_contract_reading *out);
// Are elements of an operand that differ in the row neighbours in memory?
kiln_status kl_contract_runs_along(kl_choosing *c, const kl_contraction *x, bool along[2]);
// packed.c: the right operand as registers.c reads it best, in the sums' type: for each number of what both operands
// take others along, `count` panels of `width` rows, and as many of these as there are pairs.
typedef struct kl_contract_panels {
  int64_t width, count;
  uint32_t slot[2]; // by part
} kl_contract_panels;
const kl_aff *kl_panel_place(kl_affs *p, const kl_contraction *x, const kl_contract_panels *panels, const kl_aff *batch,
                             const kl_aff *panel, const kl_aff *pair, const kl_aff *row);
// A launch of the host, the last one of the plan, which has no parts, that writes them. width: whole vectors.
kiln_status kl_contract_pack(kl_choosing *c, const kl_contraction *x, int64_t width, kl_contract_panels *out);
// registers.c: on the host, rows of vectors in registers.
kiln_status kl_contract_registers(kl_choosing *c, const kl_contraction *x, const kl_contract_outputs *o,
                                  const char **why_not);
// tile.c
kiln_status kl_contract_tiles(kl_choosing *c, const kl_contraction *x, const kl_contract_outputs *o,
                              const char **why_not);

// few.c: few rows on one side.
kiln_status kl_contract_few(kl_choosing *c, const kl_contraction *x, const kl_contract_outputs *o,
                            const char **why_not);
// elements.c: element by element.
kiln_status kl_contract_elements(kl_choosing *c, const kl_contraction *x, const kl_contract_outputs *o,
                                 const char **why_not);

#endif
