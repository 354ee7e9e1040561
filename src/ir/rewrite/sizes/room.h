// One op on arrays of dynamic sizes. Private to this room.
#ifndef KL_SIZES_ROOM_H
#define KL_SIZES_ROOM_H

#include "ir/rewrite/graph.h"
#include "ir/rewrite/sizes/sizes.h"

#define KL_WHOLE UINT32_MAX // as large as its bound

// Of each dimension of an array, its size: a value of the open computation, s32[], from 0 to the bound; or KL_WHOLE.
typedef struct kl_extents {
  uint32_t of[KILN_MAX_RANK];
} kl_extents;

// A value and the extents of its leaves; NULL: all are whole.
typedef struct kl_sized {
  uint32_t value;
  const kl_extents *leaf;
} kl_sized;

// Sizes that have been held between numbers in the open computation, so that the same size is one value.
typedef struct kl_held {
  uint32_t size, value;
  int64_t least, most;
  struct kl_held *next;
} kl_held;

// What loops and branches run, by computation: the types of its parameter and its result, dynamic where what meets
// there is; NULL: nobody runs it.
typedef struct kl_carried {
  const kl_shape *param, *result;
} kl_carried;

// A step that keeps its carries where an element is not there, and what says so comes first.
typedef struct kl_size_step {
  uint32_t of, carries, made; // whose place it takes, in scans with so many carries
  struct kl_size_step *next;
} kl_size_step;

// By computation, the one that takes its place along dynamic dimensions, + 1; 0: there is none.
typedef struct kl_size_called {
  const uint32_t *orders;   // of comparators: parameters 0 and 1 say whether the two are not there
  const uint32_t *reducers; // whether it is there is the first of what is folded
  const uint32_t *picks;    // of selections, as reducers of (whether it is there, element, s64 place)
  const kl_size_step *steps;
  const uint32_t *behind; // of each that was made: whose place it takes
} kl_size_called;

typedef struct kl_sizing {
  kl_graph *g;
  kl_shape_map *known; // shapes without what is dynamic
  const kl_instr *in;
  const kl_shape *const *shapes; // of the operands, as they are written
  uint32_t *values;              // operands; rules may put others in their place
  const kl_sized *operands;
  const kl_size_called *called;
  const kl_carried *carried;
  kl_held **held;
  kl_extents *out; // of the result's leaves, whole at first
  bool refused;
} kl_sizing;

static inline uint32_t kl_extent(const kl_sizing *z, uint32_t k, uint32_t d) {
  return z->operands[k].leaf ? z->operands[k].leaf->of[d] : KL_WHOLE;
}
static inline bool kl_is_sized(const kl_sizing *z, uint32_t k, uint32_t d) {
  return kl_extent(z, k, d) != KL_WHOLE;
}

static inline bool kl_size_has(kl_ints list, uint32_t d) {
  bool any = false;
  for (uint32_t i = 0; i < list.n; i++) any |= list.p[i] == d;
  return any;
}

// "OP: DIMENSION is dynamic: expected ...": where the op is not taken. Returns a value all the same.
uint32_t kl_size_refuse(kl_sizing *z, const char *expected);
// The op on z->values, its type at its bounds; or one on other values, with the name of z->in.
uint32_t kl_size_keep(kl_sizing *z);
uint32_t kl_size_emit(kl_sizing *z, kl_instr in, uint32_t n, const uint32_t *values);
const kl_shape *kl_size_known(kl_sizing *z, const kl_shape *s);

// Sizes: the least of two, the number, sums and so on with numbers.
uint32_t kl_size_least(kl_sizing *z, uint32_t a, uint32_t b);
uint32_t kl_size_number(kl_sizing *z, int64_t v);
uint32_t kl_size_or_bound(kl_sizing *z, uint32_t size, int64_t bound);
uint32_t kl_size_hold(kl_sizing *z, uint32_t size, int64_t least, int64_t most);
// Extents of n leaves, all whole.
kl_extents *kl_size_whole(kl_graph *g, size_t n);
// Which places of an array of this shape lie before all extents: pred, in its dimensions; KL_WHOLE: all do.
uint32_t kl_size_there(kl_sizing *z, const kl_shape *s, const kl_extents *x);
// `value` with `fill`, a value without dimensions, at all places beyond an extent.
uint32_t kl_size_mask(kl_sizing *z, uint32_t value, const kl_extents *x, uint32_t fill);
uint32_t kl_size_zero(kl_sizing *z, kl_dtype t);
// How many windows lie over k elements of an array, of which there is room for `bound`; `size` is what a window has, or
// KL_WHOLE: what `w` says. Of small numbers alone: all that it computes with is below 2^31 then.
uint32_t kl_size_windows(kl_sizing *z, uint32_t k, uint32_t size, const kl_window_dim *w, int64_t bound);
bool kl_size_is_small(const kl_window_dim *w, int64_t bound);
// Is each element a window of its own?
static inline bool kl_size_is_each(const kl_window_dim *w) {
  return w->size == 1 && w->stride == 1 && !w->low && !w->high && w->base_dilation == 1;
}
// Of two operands the lesser extent of each pair of dimensions that is contracted, else KL_WHOLE.
void kl_size_pairs(kl_sizing *z, kl_ints a, kl_ints b, kl_extents x[2]);
// Zeros beyond these in both operands; false: a type has none.
bool kl_size_zeros_beyond(kl_sizing *z, const kl_extents x[2]);

// Bits that the reducer leaves as they are of any element of operand i of n, of type t; false: it is none that has
// such a value.
bool kl_size_neutral(const kiln_module *m, uint32_t reducer, uint32_t n, uint32_t i, kl_dtype t, uint64_t bits[2]);
// What comparators and reducers along dynamic dimensions become: made behind all computations of the graph's module,
// which has no others yet.
kl_size_called kl_size_make_called(kl_sizing *z, const kiln_module *from, const kl_live *live);
// Is this a select-and-scatter whose windows move along a dynamic dimension of its array? And what its select becomes.
bool kl_size_picks(const kl_instr *in, const kl_shape *s);
uint32_t kl_size_make_pick(kl_graph *g, uint32_t select);
// Is the step of a scan with so many carries one that is told of elements? What it becomes then, and that once made,
// or NULL.
bool kl_size_is_told(const kl_comp *step, uint32_t carries);
const kl_size_step *kl_size_step_of(const kl_size_step *all, uint32_t step, uint32_t carries);
uint32_t kl_size_make_step(kl_sizing *z, uint32_t step, uint32_t carries);

bool kl_size_is_dynamic(const kl_shape *s);
// In the graph's scratch, by computation.
const kl_carried *kl_size_carried(kl_graph *g, const kiln_module *m, const kl_live *live);
// The parameter of a computation that loops or branches run, with its sizes; false: it has no such type, which is
// refused where it is run. And what it returns, with its sizes.
bool kl_size_begin(kl_sizing *z, const kl_comp *c, const kl_carried *carried, kl_sized *argument);
uint32_t kl_size_end(kl_sizing *z, const kl_carried *carried, kl_sized root);

// What takes the place of an op some of whose operands have extents, or that sets one. Structure is the driver's.
uint32_t kl_size_op(kl_sizing *z);
uint32_t kl_size_fold(kl_sizing *z);        // fold.c: reduce, reduce-window, dot
uint32_t kl_size_convolution(kl_sizing *z); // windows.c
uint32_t kl_size_select(kl_sizing *z);      // selects.c: select-and-scatter
uint32_t kl_size_scan(kl_sizing *z);        // scans.c
uint32_t kl_size_fft(kl_sizing *z);         // transforms.c
uint32_t kl_size_whole_op(kl_sizing *z);    // wholes.c: cholesky, triangular-solve, batch norms
uint32_t kl_size_placed(kl_sizing *z);      // places.c: dynamic-slice, dynamic-update-slice, gather
uint32_t kl_size_scatter(kl_sizing *z);     // scatters.c
uint32_t kl_size_reshape(kl_sizing *z);     // reshape.c: reshape, dynamic-reshape, and bitcast that is one
uint32_t kl_size_control(kl_sizing *z);     // control.c: while, conditional

#endif
