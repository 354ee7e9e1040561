// The plan of one kernel: plain data between the checked graph and the emitter, in a small structured language whose
// variables are bound to the machine (docs/plans.md).
//
// A plan is a list of launches, one behind the other, which may leave each other values in scratch memory. A launch is
// a kernel: a list of parts, each a range of blocks with bodies of its own. A body has variables: numbers of blocks,
// threads, warps and lanes, which the machine gives; those of loops; and `reg` variables, which number the copies of a
// value that a thread holds side by side. Indices and guards are expressions in them, and in symbols: integers that
// data says. A value is made by one step, and is in each thread an array over the reg variables that it depends on.
// Steps and stores are done in the order of a tree of nodes.
//
// Planning may refuse, with a reason; what it lets through, emission can do.
#ifndef KL_PLAN_H
#define KL_PLAN_H

#include "ir/index/domain/domain.h"
#include "ir/hlo.h"

typedef enum kl_machine { KL_NVPTX, KL_HOST } kl_machine;

// What lowering may know of a device. Comes in at the top; lowering never asks the device.
typedef struct kl_target {
  kl_machine machine;
  uint32_t sm;         // 70, 75, 80, 90 ...; 0 on the host
  char variant;        // 'a', 'f' or 0
  uint32_t block;      // threads per block
  uint32_t max_bytes;  // widest memory access
  uint32_t host_lanes; // lanes per iteration on the host
  bool gathers;        // on the host: one instruction loads lanes that lie apart
  // Of one GPU; 0 where the target may be any.
  uint32_t multiprocessors;
  uint32_t shared_bytes; // that a block may ask for
  uint32_t l2_bytes;
} kl_target;

#define KL_NONE UINT32_MAX

// What gives a variable its value. Of several variables of a body with one binding, the later are the faster digits of
// the machine's number.
typedef enum kl_binding {
  KL_BIND_THREAD, // threads of all the body's blocks in one row; on the host an iteration
  KL_BIND_BLOCK,  // the block; on the host an iteration
  KL_BIND_WARP,   // of a block
  KL_BIND_LANE,   // of a warp; on the host of a vector
  KL_BIND_STEP,   // a loop
  KL_BIND_REG,    // nothing: what depends on it is there for each of its values
} kl_binding;

typedef struct kl_var {
  kl_binding binding;
  int64_t extent; // values 0 .. extent-1
  const char *name;
} kl_var;

// Sets of variables are masks. Every index expression of a body is in its variables, dims by number, and its symbols.
enum { KL_MAX_VARS = 32 };
typedef uint32_t kl_vars;

// An integer that an INDEX step makes of data, or where the number of rows comes at run time that number, the first
// symbol of every body, which no step makes. In expressions it is runtime variable KL_FIRST_SYMBOL + its number; those
// below are the analysis' own. It depends on the variables that its step depends on: at a point of the inner ones it is
// the copy there.
enum { KL_FIRST_SYMBOL = 64 };
typedef struct kl_symbol {
  uint32_t step; // KL_NONE: the number of rows
  int64_t lo, hi;
  kl_vars vars;                  // those that the step depends on
  uint16_t uniform[KL_MAX_VARS]; // constant over aligned groups of so many values of an inner one of them
} kl_symbol;

// Most copies of a value in a thread, on the host times the lanes.
enum { KL_MAX_COPIES = 1024 };

// lo <= expr <= hi, and everything `outer` says. Constant over aligned groups of uniform[v] values of variable v, which
// runs over registers or, on the host, over lanes.
typedef struct kl_guard {
  uint32_t outer; // guard index or KL_NONE
  const kl_aff *expr;
  int64_t lo, hi;
  uint16_t uniform[KL_MAX_VARS];
} kl_guard;

// How one step reads or writes a slot. The copies of its value are numbered by its reg variables, the last the fastest,
// but for `run`, which is the fastest here; on the host `run` may be the lanes', each copy a vector of them. These
// elements go in chunks of `vec`; chunk c starts at element base[c] and element i of it is at base[c] + i*stride
// (stride 1: one or more vector accesses; 0: one scalar for all; else one by one). With `reversed`, elements of a
// contiguous chunk run downwards: base[c] is the lowest.
typedef struct kl_access {
  uint32_t slot;
  kl_vars regs; // reg variables that number the copies
  uint32_t run; // variable, or KL_NONE: vec is 1
  uint32_t vec;
  int64_t stride;
  bool reversed;
  uint32_t align; // bytes that every base[c] is aligned to; 0 for sub-byte elements off byte bounds
  uint32_t guard; // KL_NONE, or: where it does not hold, element 0 is read instead of base[c], and of a slot that
                  // shares memory what others do not write; a load may read more than is wanted: whole chunks
  uint32_t nchunks;
  const kl_aff *const *base; // not in reg variables, nor in `run`
  const kl_aff *element;     // that a copy is, in all variables: bases and strides are what it says there
} kl_access;

typedef enum kl_step_kind {
  KL_STEP_LOAD,     // access; of a result that is updated what a launch before has put there, and the thread since:
                    // who writes the plan promises that nobody else changes it
  KL_STEP_SCALAR,   // a constant: bits
  KL_STEP_IOTA,     // expr, converted from s64 to dtype
  KL_STEP_CHOOSE,   // operands[i] under guards[i], the first that holds; the last operand has no guard
  KL_STEP_SPLIT,    // bits of the operand from expr * width of dtype on: one part of a wider element
  KL_STEP_JOIN,     // the operands' bits side by side, the first lowest: one element of parts
  KL_STEP_OP,       // op on operands
  KL_STEP_FMA,      // of f32 or f64: the first operand times the second plus the third, rounded once
  KL_STEP_TAKE,     // the operand where its reg variable `var` is `distance`
  KL_STEP_SLIDE,    // of copies along reg variable `var`, the second operand's behind the first's, that which is `expr`
                    // further on; of 8 or 16 bits, on a GPU, as many as fill words
  KL_STEP_SHUFFLE,  // the operand as the lane has it whose number differs by the bits of `distance`
  KL_STEP_ROTATE,   // the operand as the lane has it whose number is higher by `distance`, in a ring
  KL_STEP_EXCHANGE, // the operand where the digit `distance` of reg variable `var`, floor(var / distance) mod 2, and
                    // variable `lane` have each other's values
  KL_STEP_ANY,      // pred: is the operand true in some lane of the warp? The same in all of them; on a GPU
  KL_STEP_CARRIED,  // what a loop carries: at first what the loop says, then what the round before made
  KL_STEP_INDEX, // the operand, an integer or pred, held to the bounds of symbol `var`: that symbol's value, nobody's
                 // operand
} kl_step_kind;

// What an op step computes, from its operands' dtypes to its own.
typedef struct kl_plan_op {
  kl_op op;
  kl_direction direction;                // compare
  kl_compare_type compare_type;          // compare
  uint32_t exponent_bits, mantissa_bits; // reduce-precision
  bool nonpositive; // the graph says: subtract has no result above 0, exponential no argument; NaN aside
} kl_plan_op;

// A value. Operands are earlier steps; a reg variable that an operand does not depend on finds the same there for each
// of its values.
typedef struct kl_step {
  kl_step_kind kind;
  kl_dtype dtype;
  kl_vars vars;          // variables that the value depends on: where they are the same it is
  kl_vars regs;          // of these, the reg variables: so many copies of it
  const kl_instr *instr; // where it comes from, for text only; NULL: the plan's own
  uint32_t noperands;
  const uint32_t *operands;
  const uint32_t *guards; // CHOOSE: noperands - 1
  kl_plan_op op;          // OP
  kl_access access;       // LOAD
  const kl_aff *expr;     // IOTA, SPLIT, SLIDE
  uint64_t bits[2];       // SCALAR
  uint32_t var, distance; // TAKE, SLIDE, SHUFFLE, ROTATE, EXCHANGE, INDEX
  uint32_t lane;          // EXCHANGE: a LANE variable of two values
} kl_step;

// What a store does with an element. All but PUT are for slots in mode UPDATE, COMBINE for SHARED ones too, and
// indivisible: whatever other threads do to the element comes before or behind.
typedef enum kl_store_how {
  KL_STORE_PUT,     // the value takes its place
  KL_STORE_TAKE,    // the same; of several values any one stays
  KL_STORE_COMBINE, // it becomes `combine` of it and the value; kl_can_combine
  KL_STORE_REPLACE, // it becomes what the UPDATE node makes of it
} kl_store_how;

typedef struct kl_store {
  kl_store_how how;
  kl_op combine; // COMBINE
  bool alone;    // TAKE, REPLACE: the data promises that no other thread touches the element
  uint32_t step;
  kl_access access;
  uint32_t keep; // guard of elements that are stored, KL_NONE if all are; chunks outside are not stored, elements that
                 // share a byte with one inside are stored as 0
} kl_store;

typedef enum kl_node_kind {
  KL_NODE_STEP,  // index
  KL_NODE_STORE, // index
  KL_NODE_LOOP,  // `inside`, for all values of variable `index` in order
  KL_NODE_WHILE, // `inside`, again and again, as long as step `index` is true, a pred that it carries: of each copy and
                 // each lane by itself. Steps and such loops alone.
  KL_NODE_IF,    // `inside` where guard `index` holds; the guard does not depend on reg variables
  KL_NODE_UPDATE, // store `index`, a REPLACE: `inside` makes its value from carried[0].value, the element as it is; it
                  // may be done several times
  KL_NODE_MEET,   // what blocks of a cluster have stored in scratch memory is there for all of them; a SYNC, too
  KL_NODE_SYNC,   // what threads of the block have stored in shared memory is there for all of them
  KL_NODE_BEFORE, // what values other blocks make: those of the launch whose BLOCK variable `index` is lower, and all
                  // others the same. Of n values carried[i] is the left and carried[n + i] the right one of two that
                  // `inside` joins to `next`, of both the same. `first` is on the left what is before all blocks, on
                  // the right what the own block makes: what its first thread has. Behind it the left ones are what
                  // comes before, the same in all threads of the block. In this order: a node of level 0 is a block,
                  // one of level j+1 16 of level j from left to right; what is before all, then of each level, the
                  // highest first, what the nodes before the own make in their node of the next, from left to right.
                  // `inside` makes of these values others, whoever does it, and may be done several times, or never.
                  // At the root, once, of a launch whose blocks have tickets
  KL_NODE_LAST,   // `inside`, by that block which is the last of several to come here: all that they have stored in
                  // scratch memory is there. At the root, once, of a GPU's body.
} kl_node_kind;

typedef struct kl_seq {
  uint32_t n;
  const struct kl_node *nodes;
} kl_seq;

// The step `value` (CARRIED) is `first` in the first round and `next` of the round before in the others. What a loop
// makes may be used behind it: there it is that of the last round. Of a WHILE, which may have no round, what it carries
// is there behind it, as its last round left it, and nothing else. A copy, or lane, that has had its rounds keeps what
// it carries while others have theirs.
typedef struct kl_carried {
  uint32_t value, first, next;
} kl_carried;

typedef struct kl_node {
  kl_node_kind kind;
  uint32_t index;
  const struct kl_nest *nest; // LOOP, WHILE, IF, UPDATE, BEFORE, LAST
} kl_node;

// The blocks that differ in `of`, BLOCK variables, count themselves in element `element`, in the others, of a slot of
// u32 that is zero before. It is zero again when the last has come. Inside, variables of `of` have no values.
typedef struct kl_arrival {
  kl_vars of;
  uint32_t slot;
  const kl_aff *element;
} kl_arrival;

typedef struct kl_nest {
  kl_seq inside;
  uint32_t ncarried; // LOOP, WHILE; BEFORE: two of each value; UPDATE: 1, of which `first` is KL_NONE
  const kl_carried *carried;
  kl_arrival arrival; // LAST
} kl_nest;

// Variables are either THREAD and reg ones, or any but THREAD.
typedef struct kl_body {
  uint32_t nvars;
  const kl_var *vars;
  kl_dom *domain;  // values of the variables and symbols
  int64_t threads; // of a body with a THREAD variable, its extent
  int64_t blocks;  // of one without, the product of its BLOCK variables' extents; a body with neither is empty
  uint32_t width;  // elements of a copy: 1, on the host the lanes
  uint32_t lanes;  // loops over elements: consecutive ones that a thread makes
  int64_t first;   // the same: the first element
  uint32_t nsteps;
  const kl_step *steps;
  uint32_t nsymbols;
  const kl_symbol *symbols;
  uint32_t nguards;
  const kl_guard *guards;
  uint32_t nstores;
  const kl_store *stores;
  kl_seq root;
} kl_body;

// Blocks of one row belong to one part; `main` is what needs no bounds checks, `tail` the rest in blocks of its own.
typedef struct kl_part {
  uint32_t dim; // the part of results whose index in this dimension is lo .. lo+size-1, or KL_NONE: all of them
  int64_t lo, size;
  int64_t count; // elements
  kl_body main, tail;
  int64_t first_block; // blocks of all parts of a launch are in one row
  int64_t blocks;
  int64_t main_blocks;     // of these, the first so many run `main`
  int64_t first_iteration; // on the host the iterations of every `main` of a launch are in one row
} kl_part;

// Results may be the memory of parameters (kl_slot_info.alias). Launches may be for those that are, or are not: who
// launches sees by the addresses.
typedef enum kl_when {
  KL_ALWAYS,
  KL_APART,    // left out where every result that may be a parameter's memory is
  KL_IN_PLACE, // left out where some such result is not
} kl_when;

// Blocks are numbered as they begin, so that those of lower numbers are at work, or done, whatever the machine's order:
// one may wait for them (KL_NODE_BEFORE). The slots are nobody else's.
typedef struct kl_tickets {
  uint32_t counters; // zero before and behind, u32: how many have begun; how many need no others any more; and by block
                     // of how many levels there is what the node makes that it is the last of
  uint32_t values; // SCRATCH, words that hold the parts of values (kl_before_words): of each by block, and by level, of
                   // which there are kl_levels_before
  uint32_t told;   // SHARED, u64, one more than parts: what one thread of a block finds for all
} kl_tickets;

// Levels of nodes before blocks that differ in a variable: nodes of the highest are no more than one of the next.
enum { KL_BEFORE_BASE = 16 };
static inline uint32_t kl_levels_before(int64_t extent) {
  uint32_t n = 1;
  for (int64_t left = extent; left > KL_BEFORE_BASE; n++) left = (left - 1) / KL_BEFORE_BASE + 1;
  return n;
}

// Parts of the values of a BEFORE, two of a complex number; and the words that hold one: u64 where some has more than
// 32 bits, else u32.
static inline uint32_t kl_before_parts(const kl_body *b, const kl_nest *n) {
  uint32_t parts = 0;
  for (uint32_t i = 0; i < n->ncarried / 2; i++) parts += 1u + kl_is_complex(b->steps[n->carried[i].value].dtype);
  return parts;
}
static inline kl_dtype kl_before_words(const kl_body *b, const kl_nest *n) {
  bool wide = false;
  for (uint32_t i = 0; i < n->ncarried / 2; i++) {
    kl_dtype t = b->steps[n->carried[i].value].dtype;
    wide |= kl_info(t)->bits > (kl_is_complex(t) ? 64 : 32);
  }
  return wide ? KILN_U64 : KILN_U32;
}

// A kernel of its own. What it stores is there for the launches behind it; of its own blocks only those that come last
// (KL_NODE_LAST), or that have met (KL_NODE_MEET), find anything of others, and those that wait (KL_NODE_BEFORE)
// values.
typedef struct kl_plan_launch {
  const char *name; // of the kernel, an identifier in PTX
  kl_when when;     // all that are not ALWAYS store in all results that may be parameters' memory
  uint32_t first_part, nparts;
  uint32_t block;        // threads of a block
  uint32_t shared_bytes; // of a block
  uint32_t cluster;      // neighbouring blocks that run at one time and may MEET; 0: none do
  uint32_t resident;     // blocks that a multiprocessor's registers are to hold at once; 0: as many as the assembler
                         // finds best
  bool own_registers;    // they are left to the assembler, however many blocks there are
  uint32_t at_most;      // blocks that registers are for, if a multiprocessor has more; 0: any
  // Where the number of rows comes at run time: value q of the body's first BLOCK variable is launched if
  // group * q < unit * rows, and of group and unit one divides the other. group 0: all blocks are, whatever it is.
  int64_t group, unit;
  int64_t grid;              // blocks; 0: nothing to launch
  int64_t iterations;        // on the host: of `main` in all parts
  const kl_tickets *tickets; // NULL: the machine numbers the blocks. Of a GPU, one part without tail
  uint32_t nargs;            // the kernel's arguments, slots in order
  const uint32_t *args;
} kl_plan_launch;

// Slots: parameter leaves in order, then results, then what the plan adds: constants that are too large for an
// immediate, arrays that a block shares, and arrays in global memory that launches leave to those behind them.
typedef enum kl_slot_kind { KL_SLOT_IN, KL_SLOT_OUT, KL_SLOT_CONST, KL_SLOT_SHARED, KL_SLOT_SCRATCH } kl_slot_kind;
// What launches do to a result in all.
typedef enum kl_result_mode {
  KL_MODE_COVER,    // each element is stored once
  KL_MODE_UPDATE,   // covered, and in launches behind that changed by stores that are no PUT; launches that are APART
                    // cover it with the parameter's elements, which are there already where it is in place
  KL_MODE_GROWS,    // of scratch memory, too: each element is stored once, and launches behind the first that stores
                    // read elements: who writes the plan promises that launches before have stored these
  KL_MODE_IN_PLACE, // covered where it is apart; in place each element is stored at most once, and the others stay
} kl_result_mode;

typedef struct kl_slot_info {
  kl_slot_kind kind;
  kl_result_mode mode; // OUT; SCRATCH: COVER or GROWS
  const kl_shape *shape;
  const kl_shape
      *owner; // IN, OUT: as the buffer's owner has it, where that is more than an order of dimensions (tiles,
              // element bits, padding): `shape` is then the row of its positions; NULL: it is `shape`
  int64_t bytes;
  uint32_t align;
  int64_t row; // of a plan that is counted: the slot has so many elements for each row, one behind the other, and is as
               // long as rows are launched, of which its shape has the most; 0: its shape says how long it is
  const void *data;     // CONST: packed bytes in the shape's layout
  bool given;           // CONST: an argument, not part of the code
  bool by_value;        // IN: the kernel's argument is the value
  uint32_t alias;       // the slot that may be the same memory, KL_NONE if there is none
  uint32_t at;          // SHARED: offset in bytes in the block's memory
  uint32_t launch;      // SHARED: whose blocks
  bool own;             // SHARED: threads that name an element alike are one, and need not wait for each other
  bool scattered;       // OUT, SCRATCH, SHARED: data says where stores go. Who writes the plan promises that those of a
                        // launch put each element there once, of SHARED between two syncs none twice
  bool zero;            // SCRATCH: counters, zero before the first launch and behind the last; nothing loads or stores
  const char *unproved; // OUT: what is not known to the verifier of "each element is stored once"; NULL: it is proved
} kl_slot_info;

// A kind of kernel that was not taken, and why.
typedef struct kl_declined {
  const char *kind, *why;
} kl_declined;

typedef struct kl_plan {
  kl_arena *arena;
  kl_affs *affs; // index expressions
  const kiln_module *module;
  const kl_comp *comp; // what is compiled
  const char *name;    // of the first launch; others' begin with it
  kl_target target;
  const char *kind; // of kernel, in a word
  uint32_t ndeclined;
  const kl_declined *declined;
  int64_t count;          // elements of the domain; 0: nothing to do
  uint32_t nslots, nargs; // nargs: IN and OUT slots, which come first
  kl_slot_info *slots;
  uint32_t nparts; // 1 or more, launch by launch; a domain without elements is one
  kl_part *parts;
  uint32_t nlaunches; // 1 or more
  kl_plan_launch *launches;
  bool index64; // some index does not fit 32 bits
  // The kernel is given a number of rows, from 1 to `rows`, as the number of elements that the first result has in
  // these, `row` each. `flat`: its only part's whole blocks of `main` come first; threads of `tail` count from element
  // 0, and begin where `main` ends. Else guards say which rows there are.
  bool counted, flat;
  int64_t row, rows;
  bool single;       // loads take single elements (write.h)
  bool bounded;      // loads say themselves that they lie in their arrays
  bool together;     // what a thread of a loop makes lies together, whatever the types
  bool few;          // an iteration of the host makes few copies, as the code of each is long
  bool programmatic; // the kernel waits for the one before it
  bool lineinfo;     // code says which instruction of the HLO text it comes from
  bool fast;         // numerics `fast`: functions of f32 may be approximate
  bool in_place;     // results are expected to be parameters' memory where they may: what costs say is of that
  bool seldom;       // on the host: what its code takes to be made counts, not what it takes to run
} kl_plan;

// Frees the expression tables; the plan itself lies in its arena.
void kl_plan_free(kl_plan *p);

// One launch more behind the others, of no parts yet. Parts, and arrays that blocks share, are the last one's.
kl_plan_launch *kl_plan_add_launch(kl_plan *p, uint32_t block);
static inline kl_plan_launch *kl_last_launch(const kl_plan *p) {
  return &p->launches[p->nlaunches - 1];
}
// Adds a part to the last launch, its blocks and iterations behind those that are there. Parts are few.
void kl_plan_add_part(kl_plan *p, const kl_part *part);
// The first launch that stores in a slot; nlaunches: none does.
uint32_t kl_first_writer(const kl_plan *p, uint32_t slot);
// Does the launch store in it?
bool kl_launch_stores(const kl_plan *p, uint32_t launch, uint32_t slot);
static inline bool kl_is_launched(const kl_plan_launch *l, bool in_place) {
  return l->when == KL_ALWAYS || (l->when == KL_IN_PLACE) == in_place;
}
// Is some launch for results in place, or apart, alone?
bool kl_has_conditions(const kl_plan *p);
// May slots be the memory of their aliases while it runs?
bool kl_may_share(const kl_plan *p, const kl_plan_launch *l);
// The launch that a part belongs to.
const kl_plan_launch *kl_launch_of(const kl_plan *p, uint32_t part);
// Sets what each launch takes as arguments: all IN and OUT slots where it is the only one, else those that it touches;
// then SCRATCH slots that it touches.
void kl_plan_find_arguments(kl_plan *p);

// What of a floor's dividend is negative is moved up by this many times the divisor, so that every division is one of
// unsigned numbers.
int64_t kl_floor_shift(kl_dom *d, const kl_aff_atom *floor);

static inline bool kl_body_is_empty(const kl_body *b) {
  return b->threads == 0 && b->blocks == 0;
}
static inline bool kl_has_var(kl_vars vars, uint32_t v) {
  return vars >> v & 1;
}
// Variables of a binding.
kl_vars kl_bound(const kl_body *b, kl_binding binding);
// Those whose values are there side by side: reg variables, on the host lanes too.
kl_vars kl_inner(const kl_body *b);
// BLOCK variables that blocks of a cluster of n differ in: the fastest; 0: no variables number them.
kl_vars kl_cluster_vars(const kl_body *b, uint32_t n);
// Product of the extents of `vars`.
int64_t kl_extent(const kl_body *b, kl_vars vars);
// Number i of the points of `vars`, the last variable the fastest but for `run` (KL_NONE: none), which is faster than
// any: values by variable.
void kl_nth_point(const kl_body *b, kl_vars vars, uint32_t run, uint32_t i, int64_t *at);
// The number of a point.
uint32_t kl_point_number(const kl_body *b, kl_vars vars, uint32_t run, const int64_t *at);
// e with values in the place of `vars`.
const kl_aff *kl_at_point(kl_affs *p, const kl_body *b, const kl_aff *e, kl_vars vars, const int64_t *at);
// Variables that the guard and its outer ones depend on, those too that their symbols depend on.
kl_vars kl_guard_vars(const kl_body *b, uint32_t guard);
kl_vars kl_vars_of(const kl_body *b, const kl_aff *e);
bool kl_has_symbols(const kl_aff *e);
static inline bool kl_is_counted_in(const kl_symbol *s) { // is it the number of rows?
  return s->step == KL_NONE;
}
// Calls f for the number of each symbol in e, once for each place where it stands.
void kl_each_symbol(const kl_aff *e, void (*f)(void *arg, uint32_t symbol), void *arg);
// The same for each step whose value the node itself, not what is inside of it, takes: operands, and those of symbols
// in its indices and guards.
void kl_each_taken(const kl_body *b, const kl_node *n, void (*f)(void *arg, uint32_t step), void *arg);
// On a GPU, do as many copies as fill words go from lane to lane together?
static inline bool kl_moves_words(const kl_body *b, const kl_step *s) {
  unsigned bits = kl_info(s->dtype)->bits;
  return (bits == 8 || bits == 16) && kl_extent(b, s->regs) * bits % 32 == 0;
}
// Does what a guard says, and its outer ones, hold at this point of `vars`, whatever the other variables are? KL_NO: of
// none of their values.
kl_truth kl_guard_at(kl_plan *p, const kl_body *b, uint32_t guard, kl_vars vars, const int64_t *at);
// Most blocks of a cluster on the target; 0: there are none.
uint32_t kl_most_in_cluster(const kl_target *t);
// Multiprocessors that the target has at least; and blocks of so many threads, of a grid of so many, for which a
// multiprocessor is to have registers: 0: for as many as the assembler finds best.
uint32_t kl_fewest_multiprocessors(const kl_target *t);
uint32_t kl_resident(const kl_target *t, int64_t grid, uint32_t block);
// Bytes that a block may share; those that it has without asking for more.
enum { KL_MOST_SHARED = 48 << 10 };
uint32_t kl_most_shared(const kl_target *t);
// Do so many bits, 32 or 64, hold an index, and all that it is made by?
bool kl_expr_fits(kl_dom *d, const kl_aff *e, unsigned bits);
// The same of every index of the body.
bool kl_body_fits(const kl_body *b, unsigned bits);

// Takes steps out that nothing stored takes (live.c), as soon as bodies are written.
void kl_plan_drop_dead(kl_plan *p);

// Puts the stores of bodies without loops and branches where they may stand: behind all loads, but for bodies of many
// results. To be done again once slots are known to share memory.
void kl_plan_order_stores(kl_plan *p);

// Puts steps that only guarded stores need in a branch around these (sink.c). Before syncs are placed.
void kl_plan_sink(kl_plan *p);

// Makes threads of a block wait for each other where shared memory wants it. Branches that depend on threads hold no
// two accesses that would.
void kl_plan_place_syncs(kl_plan *p);

// By slot of p: lets input slot i and output slot result[i] (KL_NONE: none) be the same memory, where every thread
// reads of it only what it writes itself, and before it does: shared[i]. Several inputs may be that memory.
void kl_plan_alias(kl_plan *p, const uint32_t *result, bool *shared);
// Does the target change an element of the slot in one instruction so? *most: elements of one, side by side.
bool kl_can_combine(const kl_target *t, kl_op op, const kl_slot_info *s, uint32_t *most);
// What changes no bit of what the op joins it with, a complex number's parts one by one; false: none that is known.
bool kl_identity_of(kl_op op, kl_dtype t, uint64_t bits[2]);
// AND, OR or XOR: what the op does to each bit of integers, and of pred; UNKNOWN: more than that.
kl_op kl_bitwise(kl_op op, kl_dtype type);
// Can it replace one, whoever else does? Of types of fewer than 16 bits on a GPU, by the 2 bytes it lies in.
bool kl_can_replace(const kl_target *t, const kl_slot_info *s);
// Bits of what is replaced at once for an element.
unsigned kl_replaced_bits(kl_machine machine, kl_dtype type);

// Passes input slot `in` by value; false if it is no rank-0 integer or the machine takes addresses only.
bool kl_plan_by_value(kl_plan *p, uint32_t in);
void kl_plan_print(kl_sb *b, kl_plan *p);
// When it is launched, in words behind its name; "": always.
const char *kl_when_text(const kl_plan_launch *l);

// Proves a plan, as it is about to be emitted, by itself, however it was made: values are there where they are wanted,
// accesses lie in their slots and are aligned as they say, guards are the same over the groups that they name, threads
// that touch one element of shared memory wait for each other, what is overwritten was read before. KILN_E_INTERNAL,
// with what could not be proved, is a defect of whoever wrote the plan. Of results it sets `unproved`, which is no
// failure; that an element is stored twice or never is one. Takes time by the length of the plan.
kiln_status kl_plan_verify(kl_ctx *cx, kl_plan *p);
// The same, for who has another plan where one is more than the verifier follows: without a finding.
bool kl_plan_is_proved(kl_ctx *cx, kl_plan *p);

#endif
