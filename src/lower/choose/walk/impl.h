// Private to src/lower/choose/walk: nodes, and what they need.
#ifndef KL_WALK_IMPL_H
#define KL_WALK_IMPL_H

#include "lower/choose/walk/walk.h"

// A straight-line body beyond this is refused. ptxas takes a second for a chain of 20,000 steps, but minutes for as
// many of which thousands are held at a time.
enum { KL_MAX_STEPS = 1 << 16, KL_MAX_NODES = 1 << 18 };

// What is wanted: a leaf of an instruction at an index, under a guard.
typedef struct kl_wanted {
  uint32_t frame, instr, leaf, guard;
  uint32_t step, scope; // KL_NONE until made
  bool open;            // its operands have been asked for
  uint32_t rank;
  const kl_aff *index[];
} kl_wanted;

// An entry that is looked for in an array of the walk's.
typedef struct kl_sought {
  const kl_walk *w;
  const void *what;
} kl_sought;

// The nodes a node depends on. `alias`: its value is that of the only one. Operand i of a choice needs guards[i].
// `asks`: these nodes say where others are, which are not known before.
typedef struct kl_node_needs {
  bool alias, asks;
  VEC(uint32_t) nodes;
  VEC(uint32_t) guards;
} kl_node_needs;
void kl_node_needs_free(kl_walk *w, kl_node_needs *d);

// nodes.c
// Is the step made, and to be had where the writer is now?
bool kl_is_made(const kl_walk *w, const kl_wanted *n);
// The node, made if there is none yet.
uint32_t kl_want(kl_walk *w, uint32_t frame, uint32_t instr, uint32_t leaf, uint32_t guard, uint32_t rank,
                 const kl_aff *const *index);
uint32_t kl_walk_enter(kl_walk *w, kl_frame f);

// needs.c
// The guard that an index in names lies within bounds. Names that keep theirs, which `guard` says, may do so by
// themselves.
uint32_t kl_walk_guard(kl_walk *w, uint32_t guard, const kl_aff *e, int64_t lo, int64_t hi, bool *never);
void kl_needs_of_node(kl_walk *w, const kl_wanted *n, kl_node_needs *d);
// Where the operands of a concatenate begin, and behind them the end.
const int64_t *kl_operand_offsets(kl_walk *w, const kl_comp *c, const kl_instr *in);
// Negative: the result has parts of the operand's elements; positive: the other way round.
int kl_width_change(const kl_comp *c, const kl_instr *in);

// window.c: a window's fold, tap by tap.
void kl_need_window(kl_walk *w, kl_node_needs *d, const kl_wanted *n);
kiln_status kl_make_window(kl_walk *w, kl_wanted *n, const kl_node_needs *d);

// facts.c
// Is no element of the difference above 0, whatever is given? NaN aside.
bool kl_is_nonpositive(const kiln_module *m, const kl_comp *c, const kl_instr *in);

// rounds.c: loops whose rounds data says.
void kl_need_rounds(kl_walk *w, kl_node_needs *d, const kl_wanted *n);
kiln_status kl_make_rounds(kl_walk *w, kl_wanted *n, bool *done);
// Sets the step of what rounds carry; false: the node is nothing that they do.
bool kl_find_carried(kl_walk *w, kl_wanted *n);
// Is it what a loop changes?
bool kl_carries(kl_walk *w, const kl_wanted *n);

// steps.c
// Makes what a node needs and then the node. Leaves nothing of its own on the stack but where it fails.
kiln_status kl_resolve(kl_walk *w, uint32_t root, uint32_t *step);
bool kl_is_splat(const kl_instr *in, uint32_t leaf);
bool kl_is_loaded(const kl_instr *in, uint32_t leaf);

#endif
