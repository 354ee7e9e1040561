// What computations are taken apart with, into pieces that are computations of their own: whoever decides which
// (fuse.h, split.h) calls them in what stands in the old one's place.
#ifndef KL_PIECE_H
#define KL_PIECE_H

#include "ir/rewrite/transform.h"

// A computation for the part of another one that its roots need, up to what it is handed.
typedef struct kl_piece {
  uint32_t comp;
  uint32_t ninputs;
  const uint32_t *inputs; // instructions of the other one, ascending, in the order of the piece's parameters
  const kl_instr *named;  // that it is called after
} kl_piece;

typedef struct kl_piecer {
  kl_ctx *cx;
  kiln_module *m; // a fork; its computations are in `comps`, and those that are made behind them
  kl_emitter e;
  kl_arena scratch;
  VEC(kl_comp) comps;
  uint32_t *made_of;    // by computation: what stands in its place
  kl_by_symbol is_comp; // names of computations; 0: free
  kl_by_symbol counter; // the last number tried behind this name
  // Of the computation that is taken apart.
  const kl_comp *c;
  uint32_t piece;  // number of the one at hand
  uint32_t *seen;  // by instruction: the last piece that it was found in
  uint32_t *value; // by instruction: in that piece
  VEC(uint32_t) stack;
} kl_piecer;

void kl_piecer_begin(kl_piecer *p, kl_ctx *cx, const kiln_module *m);
// The module with `entry` in ENTRY's place, a copy of what is alive; NULL where `drop`.
kiln_status kl_piecer_end(kl_piecer *p, bool drop, kiln_module **out);

// Pieces are of `c` from now on.
void kl_take_apart(kl_piecer *p, const kl_comp *c);
// Is the instruction handed to the piece, and not made there?
typedef bool kl_is_handed(const void *arg, uint32_t instr);
// The piece of one root, or of a tuple of several. Its name is `before` and that of `named`, or like it. Takes time by
// its own length.
kl_piece kl_make_piece(kl_piecer *p, uint32_t n, const uint32_t *roots, kl_is_handed *is_handed, const void *arg,
                       const char *before, const kl_instr *named);
// Emits the fusion that calls it; value: by instruction of the computation, where it is called.
uint32_t kl_call_piece(kl_piecer *p, const kl_piece *piece, uint32_t name, const kl_shape *shape,
                       const uint32_t *value);
// Emits a tuple that has the name and the place of `like`.
uint32_t kl_emit_tuple(kl_piecer *p, const kl_instr *like, uint32_t n, const uint32_t *values);
// Emits the instruction with other operands, calling what stands in the place of its callees.
uint32_t kl_emit_again(kl_piecer *p, const kl_instr *in, const uint32_t *value);
// Makes what was emitted a computation in the place of number `comp`.
void kl_put_in_place(kl_piecer *p, uint32_t comp, uint32_t root);

#endif
