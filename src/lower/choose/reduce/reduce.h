// Private to src/lower/choose/reduce: reductions as they stand in a computation, and folds as steps.
//
// Which element comes when is a function of the reduction alone, never of the kernel (docs/numerics.md). Reduced
// elements have numbers r in the order of memory; r = (s*K + k)*W + j. Elements of one (s, j) fold in order of k; what
// comes out joins in aligned neighbouring pairs, j below s; init comes in at last. A kernel deals the digits of r to
// variables, and folds over these in that order: a pair of values of one binary digit is a pair of the tree.
#ifndef KL_REDUCE_H
#define KL_REDUCE_H

#include "lower/choose/chooser.h"

// What a reduction does with two tuples of values.
typedef struct kl_reducer {
  const kl_comp *comp, *ordered; // ordered: where the first argument's elements come before the second's
  uint32_t instr;                // the reduce
  uint32_t nvalues;              // of the reduction
  uint32_t n;                    // of the fold: one more, whether there is a value at all, where no identity is known
  kl_dtype *type;                // by value: what is folded in
  bool simple;                   // one op of two values
  kl_plan_op op;                 // simple
  bool commutes;                 // the same whichever argument is the left one
  bool has_identity;
  uint64_t identity[2]; // simple
} kl_reducer;

// What a kernel of reductions stores: a result leaf of an instruction, which has an element for each row or for each
// reduced element.
typedef struct kl_output {
  uint32_t slot;
  uint32_t instr, leaf;
  uint32_t which; // of the reductions, if it is one's own result and goes to scratch memory; else KL_NONE
  bool of_row;
} kl_output;

// Reductions of one computation over the same elements: of arrays of the same dimensions, over the same of these, in
// the same order of memory. And what is stored beside them.
typedef struct kl_reductions {
  uint32_t n;
  const kl_instr **instr; // operands before users
  uint32_t *number;       // of the instruction in its computation
  uint32_t *level;        // one more than those it depends on
  uint32_t levels;
  kl_reducer *reducer;
  const kl_shape *shape;    // of operands
  uint32_t nkept, nreduced; // dimensions, slowest first: reduced in the order of memory, kept in any
  uint32_t kept[KILN_MAX_RANK], reduced[KILN_MAX_RANK];
  int64_t rows, length; // elements kept, and reduced for each
  bool row;             // the fastest dimension is reduced
  bool across;          // neighbours where elements are read are kept: `minor` of them, the last of `kept`
  int64_t minor;
  // Of all that is read, rows lie one behind the other in arrays of a multiple of so many elements; 0: they do not.
  int64_t flat;
  int64_t w, k; // of the order
  uint32_t noutputs;
  const kl_output *outputs;
  int64_t split;     // blocks that make a result together, each some neighbouring groups s; 1: one does
  bool two_launches; // a launch of its own joins what they make
  bool cluster;      // they meet, and all of them have the result
  // Of rows: reductions of the same elements along the rows' other dimensions, in the same launch (beside.c); NULL:
  // none. These are `behind` a level of the rows' own each.
  const struct kl_reductions *beside;
  const uint32_t *behind;
} kl_reductions;

// The reductions of plan->comp, operands before users; domain[i]: of reduction i alone, without instructions.
typedef struct kl_found {
  uint32_t n;
  uint32_t *number;
  kl_reducer *reducer;
  kl_reductions *domain;
} kl_found;

// *why_not as choosers say it.
kiln_status kl_find_reductions(kl_choosing *c, kl_found *out, const char **why_not);
bool kl_same_domain(const kl_reductions *a, const kl_reductions *b);
// Those in the mask, which are over the same elements; there is one.
void kl_reductions_of(kl_choosing *c, const kl_found *all, const bool *in, kl_reductions *out);

// ordered.c: what the reducer of `reduce`, over the elements of x, is where the first argument's come before the
// second's.
const kl_comp *kl_ordered_reducer(kl_choosing *c, const kl_reductions *x, const kl_instr *reduce);

// reading.c: sets `across` and `minor`, and the order of what is kept, by what is read.
kiln_status kl_find_reading(kl_choosing *c, kl_reductions *x);
// Elements of the kept dimensions that come before all reduced ones in an order of all dimensions, the fastest first.
int64_t kl_minor_columns(const kl_reductions *x, const uint32_t *order);

// The index in the reductions' operands of element r of a row, and of a row's results.
void kl_reduced_index(kl_affs *p, const kl_reductions *x, const kl_aff *row, const kl_aff *r, const kl_aff **index);
void kl_kept_index(kl_affs *p, const kl_reductions *x, uint32_t which, const kl_aff *row, const kl_aff **index);

// What a result of the computation is, beside the reductions: an element for each row, or for each reduced element.
typedef enum kl_result_level { KL_RESULT_NEITHER, KL_RESULT_ROW, KL_RESULT_ELEMENT } kl_result_level;
kl_result_level kl_result_of(const kl_reductions *x, const kl_shape *s);
void kl_result_index(kl_affs *p, const kl_reductions *x, const kl_shape *s, const kl_aff *row, const kl_aff *r,
                     const kl_aff **index);

// --- kernels --------------------------------------------------------------------------------------------------------

// A kernel while it is written: its variables, then its body.
typedef struct kl_reducing {
  kl_choosing *c;
  kl_affs *p;
  const kl_reductions *x;
  uint32_t nvars;
  kl_var vars[KL_MAX_VARS];
  kl_writer w;
  kl_walk walk;
} kl_reducing;

// A variable, or where it has one value that and KL_NONE.
const kl_aff *kl_add_var(kl_reducing *g, kl_binding binding, int64_t extent, const char *name, uint32_t *var);
// Where the number of rows comes at run time, and is that of the kept dimensions' slowest: how many of the reductions'
// rows belong to each of these; else 0.
int64_t kl_rows_counted(const kl_reducing *g);
// Of the variable, KL_NONE or the first there is, each value has so many of the reductions' rows: only those are to be
// launched that there are.
void kl_launch_counted(kl_reducing *g, uint32_t var, int64_t rows);
void kl_reducing_begin(kl_reducing *g, kl_body *b);
// Blocks of so many threads; `st` is how writing went. *why_not as choosers say it; kl_taken_elsewhere: something needs
// a reduction's result at other indices than the one at which a row's threads have it.
extern const char kl_taken_elsewhere[];
kiln_status kl_reducing_end(kl_reducing *g, kl_body *b, kiln_status st, int64_t threads, const char **why_not);

int64_t kl_least(int64_t a, int64_t b);
int64_t kl_ceil_div(int64_t a, int64_t b);
int64_t kl_power_of_two(int64_t at_least);
// Bits of the narrowest type of arguments as large as the reductions' operands.
uint32_t kl_narrowest(const kl_reducing *g);
uint32_t kl_converted(kl_reducing *g, uint32_t step, kl_dtype to);

const kl_slot_info *kl_slot_of(const kl_reducing *g, uint32_t slot);
bool kl_has_element_results(const kl_reducing *g);
// Where the element of an output lies, in a row and where it has one for each, element r of it.
void kl_output_index(kl_reducing *g, const kl_output *o, const kl_aff *row, const kl_aff *r, const kl_aff **index);
// That element, of its slot's type, and where it lies.
kiln_status kl_want_output(kl_reducing *g, const kl_output *o, const kl_aff *row, const kl_aff *r, uint32_t guard,
                           const kl_aff **at, uint32_t *step);
kiln_status kl_store_elements(kl_reducing *g, const kl_aff *row, const kl_aff *r, uint32_t guard);

// alike.c: what each row reads alike.
typedef struct kl_alike {
  int64_t bits;  // for a reduced element; 0: there is no such thing
  bool *of;      // by argument: some of it
  int64_t bytes; // of those arguments
  bool copied;   // these are all of it, and can be copied element by element
} kl_alike;
kiln_status kl_find_alike(kl_reducing *g, kl_alike *out);

// --- folds ----------------------------------------------------------------------------------------------------------

typedef struct kl_folding {
  kl_reducing *g;
  const kl_reducer *by;
  bool leaves; // joined are several leaves of a group: elements of the first argument do not all come before the
               // second's
} kl_folding;

enum { KL_MAX_VALUES_FOLDED = 64 };

kl_folding kl_folding_of(kl_reducing *g, uint32_t which);
kl_folding kl_folding_leaves(const kl_folding *f);
// Values of the reduction's operands at an index, where the guard holds, else none: as the fold takes them. there: a
// guard that says less, namely nothing of rows that are not there, whose results nobody takes.
kiln_status kl_fold_values(kl_folding *f, const kl_aff *const *index, uint32_t guard, uint32_t there, uint32_t *values);
// No value.
void kl_fold_nothing(kl_folding *f, uint32_t *values);
kiln_status kl_fold_join(kl_folding *f, const uint32_t *lower, const uint32_t *higher, uint32_t *out);
// Over a reg variable, in place: in order, or in pairs. var KL_NONE: nothing to do.
kiln_status kl_fold_in_order(kl_folding *f, uint32_t var, uint32_t *values);
kiln_status kl_fold_pairs(kl_folding *f, uint32_t var, uint32_t *values);
// Over each group of `lanes` neighbours of a LANE variable, a power of two, and then in pairs over a reg variable,
// which has as many values as a power of two, or KL_NONE: every lane has the result, or only the first if not `all`.
// lane KL_NONE: there is one.
kiln_status kl_fold_lanes(kl_folding *f, uint32_t lane, int64_t lanes, bool all, uint32_t var, uint32_t *values);
// Over elements j of a ring: j + shift = (h*lanes + lane)*V + v modulo their number, in pairs. 0 <= shift < most, all
// powers of two but shift; every lane of the warp has some, and has the result, or only the first if not `all`.
typedef struct kl_ring {
  uint32_t v, lane, h; // v, h: KL_NONE where there is one
  const kl_aff *shift;
  int64_t most;
  bool all;
} kl_ring;
kiln_status kl_fold_ring(kl_folding *f, const kl_ring *ring, uint32_t *values);
// Of rows that begin anywhere in what is read at once elements are read as they lie, in a round more, and those where
// `early` holds belong to the round before: `first` is the element of the first of so many rounds, W apart.
typedef struct kl_shift {
  const kl_aff *first;
  uint32_t early, rounds;
} kl_shift;
// Element r of a row, where the guard holds, in a thread: in order over a loop's `rounds` and reg variable `k`, KL_NONE
// where there is one; shift: NULL, or see there.
typedef struct kl_elements {
  const kl_aff *row, *r;
  uint32_t guard, there, rounds, k; // there: as kl_fold_values has it
  const kl_shift *shift;
} kl_elements;
// All reductions of a level, each fold's values in its place.
kiln_status kl_fold_elements(kl_reducing *g, const kl_elements *e, uint32_t level,
                             uint32_t (*values)[KL_MAX_VALUES_FOLDED]);
// Through shared memory: slots for so many values like these, NULL: any; threads that `keep` says put them; nothing
// where `there` fails.
void kl_fold_room(kl_folding *f, int64_t count, const uint32_t *values, uint32_t *slots);
void kl_fold_put(kl_folding *f, const uint32_t *slots, const kl_aff *at, uint32_t keep, const uint32_t *values);
// The same in scratch memory. row: values of each row whose number comes at run time, where these lie one behind the
// other; else 0.
void kl_fold_scratch(kl_folding *f, int64_t count, int64_t row, const uint32_t *values, uint32_t *slots);
void kl_fold_get(kl_folding *f, const uint32_t *slots, const kl_aff *at, uint32_t there, uint32_t *values);
// With init, and back to the types of the reduction; then the walk has them at `row`.
kiln_status kl_fold_finish(kl_folding *f, uint32_t *values, uint32_t guard);
kiln_status kl_fold_give(kl_reducing *g, uint32_t which, const kl_aff *row, uint32_t guard, uint32_t *values);
// Reductions of a level over nothing.
kiln_status kl_give_nothing(kl_reducing *g, uint32_t level, const kl_aff *row, uint32_t guard);

// --- columns beside rows --------------------------------------------------------------------------------------------

// What a block of teams, which have a row each at one time, makes of columns.
typedef struct kl_sums {
  const kl_reductions *columns;
  int64_t v, padded;         // neighbours that a lane has; sums of a team, whole warps' chunks
  int64_t teams, parts;      // parts: blocks
  const kl_aff *column;      // of a thread's elements
  const kl_aff *team, *part; // the thread's, and the block's
  const kl_aff *run;         // sums that the thread joins of all teams
  uint32_t met;              // variable: whose
  const kl_aff *own;         // where the thread's sums lie
  uint32_t (*slots)[KL_MAX_VALUES_FOLDED], (*partial)[KL_MAX_VALUES_FOLDED];
} kl_sums;

// Bytes of one column's sums.
int64_t kl_sums_bytes(const kl_reductions *columns);
// Before the first row; of a row's elements at an index, those that are behind a level of its reductions; behind all.
void kl_sums_begin(kl_reducing *g, kl_sums *x);
kiln_status kl_sums_add(kl_reducing *g, const kl_sums *x, uint32_t level, const kl_aff *const *index, uint32_t guard);
kiln_status kl_sums_end(kl_reducing *g, const kl_sums *x);
// A launch that joins what blocks have made, and stores the outputs of `columns`.
kiln_status kl_join_sums(kl_choosing *c, const kl_sums *x, const char **why_not);
// rows.c: can one launch make `rows` and these, and is that best?
kiln_status kl_rows_have_columns(kl_choosing *c, const kl_reductions *rows, const kl_reductions *columns, bool *have);

// --- several blocks for a result ------------------------------------------------------------------------------------

// How many blocks make one result together. blocks: of the launch if each made one alone; from `least` to `most`,
// powers of two. again: one that does reads all elements for each level anew. *cost: what it takes, in nanoseconds.
int64_t kl_best_split(const kl_reducing *g, int64_t blocks, int64_t least, int64_t most, bool again, int64_t *cost);
// What a cluster of n blocks for each result takes. held: each of them holds what it reads; else it reads all elements
// for each level anew.
int64_t kl_cluster_cost(const kl_reducing *g, int64_t blocks, int64_t n, bool held);
// Blocks that differ in variable `split`, KL_NONE if there is one, have stored what they have made: what stands behind
// is for the last of them. counter: its number among `counters`.
void kl_begin_last(kl_reducing *g, uint32_t split, const kl_aff *counter, int64_t counters);

// --- choosers -------------------------------------------------------------------------------------------------------

// stage->split as it is best.
void kl_split_rows(kl_choosing *c, kl_reductions *stage);
void kl_split_columns(kl_choosing *c, kl_reductions *stage);
kiln_status kl_choose_rows(kl_choosing *c, const kl_reductions *x, const char **why_not);
kiln_status kl_choose_columns(kl_choosing *c, const kl_reductions *x, const char **why_not);

#endif
