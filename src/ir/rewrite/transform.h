// Modules made from modules: copies, what is alive, rewriting.
//
// A checked module never changes. A rewriting step works on a fork, which is a module that may change and borrows what
// it does not change from the original; a copy of the fork, which borrows nothing, is the result.
#ifndef KL_TRANSFORM_H
#define KL_TRANSFORM_H

#include "ir/attrs.h"

// A module with the same computations in arrays of its own, which may be changed. Symbols are the original's, and new
// names may be added. Everything else (shapes, attributes, literals) is borrowed: the original must live longer.
// Destroyed as any module.
kiln_module *kl_fork(kl_ctx *cx, const kiln_module *m);

// Shapes of one module to those of another, by address. Zero-initialise.
typedef struct kl_shape_map {
  size_t nslots, n;
  struct kl_shape_slot {
    const kl_shape *from, *to;
  } * slots;
} kl_shape_map;
// `make` gives what a shape that is not a tuple becomes; tuples are made of what their elements become.
const kl_shape *kl_map_shape(kl_shape_map *map, kiln_module *to, const kl_shape *s,
                             const kl_shape *make(kiln_module *to, const kl_shape *s));
void kl_shape_map_free(kl_ctx *cx, kl_shape_map *map);

// Which parts of a module are needed.
typedef struct kl_live {
  bool *comp;   // by computation: is it reached from ENTRY?
  bool **instr; // by computation (NULL: not reached), by instruction
} kl_live;

// The effects that make an instruction needed, whoever reads its value.
bool kl_op_has_effect(const kl_instr *in);
// Do attributes of unknown ops, which are text, name computations?
bool kl_text_names_computations(const kiln_module *m, kl_arena *arena); // scratch
// What ENTRY needs: in each computation the root, parameters, instructions with an effect (or that call one), and what
// these need; all computations where text names some. The result is in `arena`.
kl_live kl_live_of(const kiln_module *m, kl_arena *arena);

// A module of its own with the same contents: all of them, or those that `live` marks (instructions: only where `instr`
// is not NULL). Computations that are left out must not be called from those that are kept.
kiln_status kl_clone(kl_ctx *cx, const kiln_module *m, const kl_live *live, kiln_module **out);

typedef VEC(uint32_t) kl_by_symbol;

// Appends instructions to a computation of a fork. Names stay distinct.
typedef struct kl_emitter {
  kiln_module *m;
  VEC(kl_instr) instrs;
  kl_by_symbol used;    // equal to `mark` if the open computation has this name
  kl_by_symbol counter; // the last number tried behind this name
  uint32_t mark;
} kl_emitter;

void kl_emit_begin(kl_emitter *e);
// Returns its index. The name is kept if it is free, else a number is put behind it.
uint32_t kl_emit(kl_emitter *e, const kl_instr *in);
// The element of a tuple, by this name or one like it.
uint32_t kl_emit_element(kl_emitter *e, uint32_t value, uint32_t index, uint32_t name);
// `value` as it is, or a copy of it in the layout of `as` where the two lie differently in memory: an op that reads
// memory as it lies (bitcast) sees no difference. Tuples are taken apart and put together again.
uint32_t kl_emit_in_layout(kl_emitter *e, uint32_t value, const kl_shape *as);
// Zeros of the shape, tuples and tokens too, with the name and place of `named`.
uint32_t kl_emit_zeros(kl_emitter *e, const kl_instr *named, const kl_shape *shape);
// Makes what was emitted the computation's instructions.
void kl_emit_end(kl_emitter *e, kl_comp *c, uint32_t root);
void kl_emit_free(kl_emitter *e);

// The last step of a rewriting: checks the fork, copies what is alive, destroys the fork.
kiln_status kl_finish_fork(kl_ctx *cx, kiln_module *fork, kiln_module **out);

#endif
