// What writes plans: which parts of a module become kernels, which ops can be compiled, and the plan of each kernel.
#ifndef KL_CHOOSE_H
#define KL_CHOOSE_H

#include "lower/plan/plan.h"

// How kernels are made where it is not their cost that says.
typedef struct kl_strategy {
  uint32_t split;      // so many blocks make a result together, as far as it has groups; 1: one does; 0: as cost says
  bool cluster;        // these are a cluster, as far as the target has them and they hold a row
  bool two_launches;   // what they make is joined by a launch of its own, not by the last of them
  bool across;         // neighbours are taken from what is kept, whatever is read
  const char *chooser; // the kind of kernel that is to be written; NULL: the cheapest of those that can be
  uint32_t times;      // of a loop: at most so many elements that lie apart are made by one thread; 0: as cost says
  uint32_t teams; // so many rows come at one time, where a block makes sums of columns beside them; with `times` so
                  // many times as many, which find what rows read alike in shared memory; 0: as cost says, or none
  bool alone;     // blocks do not wait for others, but where the last of them joins what all have made
  // Loops of ENTRY are one kernel of so many blocks where they can be, and launches one behind the other are one where
  // blocks go side by side; KL_NONE: none is; 0: as cost says.
  uint32_t rounds;
  bool often; // code of the host is made as if it were run often
} kl_strategy;

typedef struct kl_plan_params {
  kl_target target;
  const char *name;
  uint32_t align; // of every argument in bytes; 0: 16
  // Of each argument's buffer, parameter leaves in order and then result leaves: types and extents as the computation
  // has them, the layout that of the buffer's owner. NULL: all as in the computation.
  const kl_shape *const *shapes;
  // The domain is cut into parts for concatenates of at least `cut_operands` (0: 9), between operands where a part has
  // rows of `cut_bytes` (0: 128, on the host 1) or 16 operands.
  uint32_t cut_operands, cut_bytes;
  // By argument. Of parameters the result that is to be the same memory where that can be, KL_NONE: none. Of all: may a
  // parameter be written over by a result, though nobody has asked? What comes of it is in the plan's slots. NULL: no.
  const uint32_t *partner;
  const bool
      *must; // by argument, of parameters with a partner: a plan that keeps them apart is of no use. NULL: none is
  const bool *lent;
  const struct kl_counted *counted; // what `comp` and `shapes` come from, if that is kl_plan_recount; else NULL
  bool programmatic, fast, lineinfo;
  bool deterministic; // where the order of operations would show in a result, it is one order
  kl_strategy strategy;
} kl_plan_params;

// Plans a computation as one kernel; what it calls is looked up in `m`. The plan lives in `arena`, but its expression
// tables do not: kl_plan_free.
kiln_status kl_plan_make(kl_ctx *cx, const kiln_module *m, const kl_comp *comp, const kl_plan_params *params,
                         kl_arena *arena, kl_plan **out);

// A computation and the shapes of its arguments, as kl_plan_params has them. Rows are those of the results' slowest
// dimension.
enum { KL_NO_ROWS = -1 };
typedef struct kl_counted {
  const kl_comp *comp;
  const kl_shape *const *shapes;
  int64_t row, rows;        // elements of the first result in a row; rows at most
  const int64_t *row_of;    // by argument: its elements for each row; 0: it has no rows
  const int8_t *const *dim; // by instruction and leaf: its dimension of rows; negative: it has none
} kl_counted;
// A copy with as many rows as `max_count` elements of the first result allow. Whatever a plan of it does for the first
// n rows of each array that has rows is right for arrays of n rows. Refuses, by op, what does not go row by row.
kiln_status kl_plan_recount(kl_ctx *cx, const kl_counted *from, int64_t max_count, kl_arena *arena, kl_counted *out);

// The computation with its calls replaced by what they call, in the arena; `c` itself where it has none, or where that
// would be too long.
const kl_comp *kl_plan_inline(kl_ctx *cx, const kiln_module *m, const kl_comp *c, kl_arena *arena);

// What of a module becomes which kernel.
typedef struct kl_unit {
  const kl_comp *comp;  // to compile, inlined
  const kl_instr *from; // the fusion instruction, or NULL: ENTRY itself
  uint32_t in;          // computation that this is of
} kl_unit;
// Lists the kernels of ENTRY and of what its loops and branches run, computation by computation, each in order: one per
// fusion instruction, or ENTRY as one. `only` names one fusion of ENTRY or is NULL.
kiln_status kl_plan_units(kl_ctx *cx, const kiln_module *m, const char *only, kl_arena *arena, kl_unit **out,
                          uint32_t *n);

// Where a computation is to be cut into several kernels (ir/rewrite/split.h), by instruction: where values would be
// made again and again that are cheaper to write once and read, which is always so where the number of kernels' steps
// would grow without bounds, and is wanted for no other reason with `least`; with `apart`, at all that is not made
// element by element, too. False: nowhere.
typedef struct kl_pieces_params {
  kl_target target;
  bool least, apart;
} kl_pieces_params;
bool kl_plan_pieces(kl_ctx *cx, const kiln_module *m, const kl_comp *c, const kl_pieces_params *params, bool *cut);

// Is an element of the op made of elements of its operands, one by one? Others are made by kernels of their kind.
bool kl_is_walked(const kl_instr *in);
// Is it none, and known? A kernel of its own can make it.
bool kl_is_apart(const kl_instr *in);
// Taps of a window; INT64_MAX: that many or more.
int64_t kl_window_taps(const kl_instr *in);
// Is there a kind of kernel for this op, which is not made element by element?
bool kl_has_chooser(kl_op op);
// Is it made by kernels of its own, wherever it stands: none that is made element by element, a fusion, a loop?
bool kl_needs_kernel(const kl_instr *in);
// ENTRY, and computations that are run for it with kernels of their own, those of its loops and of branches that have
// an op which needs one, by computation; `has` is what kl_find_ops says of such ops. What these call is not among them.
bool *kl_find_run(const kiln_module *m, const bool *has, kl_arena *arena);
// The same without those of loops that become kernels (choose/private.h).
bool *kl_find_fused(kl_ctx *cx, const kiln_module *m, const bool *has, kl_arena *arena);
// Reports what of ENTRY and all that it runs cannot be compiled, each op, up to a number of them; whether a result is
// used or not.
kiln_status kl_plan_check_module(kl_ctx *cx, const kiln_module *m);
// The same of ops with an effect alone (kl_op_has_effect): for a module that becomes one kernel, whose chooser looks at
// what its results are made of.
kiln_status kl_plan_check_effects(kl_ctx *cx, const kiln_module *m);
// Can this op on these types be compiled? Reports the reason if not. And can a result be what it is?
kiln_status kl_plan_check_op(kl_ctx *cx, const kiln_module *m, const kl_comp *c, const kl_instr *in);
kiln_status kl_plan_check_shape(kl_ctx *cx, const kl_instr *in);

#endif
