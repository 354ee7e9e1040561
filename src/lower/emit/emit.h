// From a plan to an LLVM module. Private to src/lower/emit but for kl_emit_kernel.
//
// Registers. A step's value is held lane by lane in "wide" registers: `width` lanes each, 1 on NVPTX, all lanes of the
// body on the host. Wide kinds: pred I1; integers I32 (of fewer than 32 bits: sign- or zero-extended, and kept so after
// every op), I64; every float narrower than 32 bits F32 holding a value of the type, rounded after every op; F32; F64;
// complex a pair. On NVPTX f16 and bf16 also come packed, <2 x half> and <2 x bfloat>, where the machine computes on
// them, and elements of 4 and 8 bits as words, I32 registers with the bits of lanes side by side, the first lowest
// (those behind the last lane are zero): what memory holds, and what the machine converts pairs of. Narrow floats that
// have only been moved are kept as raw bits (I32), so that moving costs no conversion and keeps every NaN; packed
// registers and words keep them, too. A value is converted between its forms when first asked for, and all forms are
// kept. A choice between bits and what has been computed takes the form that its result is asked for: bits if it may be
// stored, else values.
#ifndef KL_EMIT_H
#define KL_EMIT_H

#include "lower/plan/rounds.h"
#include "lower/emit/kb.h"
#include <llvm-c/Types.h>

// Builds the kernel of each launch of `plan` into `module`, which holds no functions of their names. Cannot fail.
// NVPTX: `void name(ptr addrspace(1) slot, ..., i64 count)` over the launch's arguments, i32 or i64 in place of an
// address where a slot goes by value, `count` only if the plan is counted; exact block size.
// Host: `void name(ptr *slots, i64 begin, i64 end, i64 count)`: iterations begin..end-1 of `main`, and if begin is 0
// also `tail`; `count` counts only if the plan is counted.
void kl_emit_kernel(kl_ctx *cx, LLVMModuleRef module, kl_plan *plan);
// The same of one kernel, for NVPTX: `void name(ptr addrspace(1) argument, ...)`.
void kl_emit_rounds(kl_ctx *cx, LLVMModuleRef module, const kl_rounds *r);

enum { KL_EMIT_LANES = 1024 }; // most elements of a value in a thread, or in a vector of copies

// lo <= value <= hi, of an integer; of type u64 it says nothing beyond 2^63 - 1: then lo is INT64_MIN.
typedef struct kl_range {
  int64_t lo, hi;
} kl_range;

// lo <= value <= hi, of a float that is not NaN.
typedef struct kl_bounds {
  double lo, hi;
} kl_bounds;

// A complex or real register.
typedef struct kl_pair {
  kb_reg re, im; // im only for complex types
} kl_pair;

typedef struct kl_val {
  kl_dtype dtype;
  kl_pair *wide;  // lanes / width registers, or NULL
  kb_reg *packed; // lanes / 2 registers, or NULL
  kb_reg *raw;    // floats below 32 bits: lanes / width registers of bits, or NULL
  kb_reg *words;  // types of 4 and 8 bits: lanes * bits / 32 registers, rounded up, or NULL
} kl_val;

// What has been made of a guard: for each point of the inner variables that it depends on, the condition of a scalar,
// and on the host for each point of its reg variables that of a vector; .v NULL until made.
typedef struct kl_conditions {
  kb_reg *scalar, *wide;
} kl_conditions;

typedef struct kl_emit {
  kb k;
  kl_arena *arena; // scratch
  kl_plan *plan;
  const kl_plan_launch *launch; // whose kernel it is
  LLVMBasicBlockRef end;        // what is behind a block's work, of a kernel of several launches; NULL: nothing is
  bool *others; // by slot: may other blocks change it, each its elements, while this one is at work? NULL: nothing such
  const kl_body *body;
  // The value at hand: its elements, the lanes of a register, and registers, one for each copy.
  unsigned lanes, width, nwide;
  kb_kind index;            // I32 or I64
  kb_reg first_thread;      // I1, on NVPTX: is it that of the block?
  kb_reg ticket;            // I32, where blocks have tickets: the block's number
  kb_reg vars[KL_MAX_VARS]; // values of the body's variables, in index kind; of lanes on the host a vector
  kb_reg rows;              // where guards ask for it: how many there are, in index kind
  kb_reg tid; // the number that WARP and LANE variables are digits of, in index kind; .v NULL: there is none
  int64_t at[KL_MAX_VARS]; // of inner variables: the point where symbols are taken; lanes for scalars only
  kb_reg *slots;           // pointers
  kb_reg nothing;         // what guarded loads of slots that share memory take off their guard; .v NULL: there are none
  kl_val *vals;           // by step
  kl_conditions *guards;  // by guard
  const kl_range *ranges; // by step
  const kl_bounds *bounds; // by step
  bool *wants_bits;        // by step: somebody moves it on, or reads its bits
  bool constant;           // what is being loaded is not written
  unsigned invariant_load; // metadata kind
  LLVMValueRef empty_node;
  struct kl_lines *lines;     // NULL: code says nothing of the text
  struct kl_ahead *ahead;     // NULL: nothing is asked for ahead
  const struct kl_live *live; // of the body, where `live_known`
  bool live_known;
} kl_emit;

// index.c
// e->vars and e->at are those of copy number `copy` of what `regs` number.
void kl_set_copy(kl_emit *e, kl_vars regs, unsigned copy);
kb_reg kl_emit_expr(kl_emit *e, const kl_aff *x, unsigned lanes); // at e->vars and e->at; lanes: 1 or e->width
// I1: at a point of the inner variables; of all lanes of a copy; of a guard that depends on no inner variable.
kb_reg kl_emit_guard_at(kl_emit *e, uint32_t guard, const int64_t *at);
kb_reg kl_emit_guard_copy(kl_emit *e, uint32_t guard, kl_vars regs, uint32_t run, unsigned copy);
kb_reg kl_emit_guard(kl_emit *e, uint32_t guard);

// range.c: what is known of the integers that steps make, by step. Other types have the widest range.
kl_range *kl_ranges(kl_arena *arena, const kl_body *body);
// The same of floats, and of integers as far as they become floats. `ranges` are those of the body.
kl_bounds *kl_float_bounds(kl_arena *arena, const kl_body *body, const kl_range *ranges);

// values.c
// What is at hand now has copies numbered by `regs`.
void kl_emit_shape(kl_emit *e, kl_vars regs);
// v, whose copies are numbered by `from` with the variable `run` the fastest (KL_NONE: none before others), for copies
// that `to` and `to_run` number, which are at hand; v itself where that is the same.
kl_val *kl_numbered(kl_emit *e, kl_val *v, kl_vars from, uint32_t run, kl_vars to, uint32_t to_run);
// Copy pick[i] of v for each i at hand.
kl_val kl_picked(kl_emit *e, kl_val *v, kl_vars from, const unsigned *pick, kl_vars to);
bool kl_has_packed(const kl_emit *e, kl_dtype t);
kl_pair *kl_wide(kl_emit *e, kl_val *v);
kb_reg *kl_packed(kl_emit *e, kl_val *v);
bool kl_has_words(const kl_emit *e, kl_dtype t);
unsigned kl_word_count(const kl_emit *e, kl_dtype t);
kb_reg *kl_words(kl_emit *e, kl_val *v); // where kl_has_words
kb_reg *kl_raw(kl_emit *e, kl_val *v);   // bits of any type but complex, I32 or I64
bool kl_is_narrow_float(kl_dtype t);     // of fewer than 32 bits
kl_val kl_val_of_bits(kl_emit *e, kl_dtype t, const kb_reg *raw);
kl_dtype kl_uint_like(kl_dtype t); // the unsigned integers of the same width
kb_kind kl_wide_kind(kl_dtype t);  // of a part, for complex types
// Between raw bits (I32, or I64 for 64-bit types; the low bits count) and the wide form of a non-complex type.
kb_reg kl_from_bits(kb *k, kl_dtype t, kb_reg bits);
kb_reg kl_to_bits(kb *k, kl_dtype t, kb_reg wide); // bits above the type are zero
kb_reg kl_canon(kb *k, kl_dtype t, kb_reg wide);   // integers: extend again from the type's width

// convert.c: conversions of several lanes at once, on NVPTX.
// Does the machine round F32 to the type's words?
bool kl_rounds_to_words(const kl_emit *e, kl_dtype t);
// Takes wide registers that hold any F32 values, within bounds where they are not NaN, to words of v's type.
void kl_round_to_words(kl_emit *e, kl_val *v, kl_bounds bounds);
// The words of wide registers that hold values of the type; of a type that the machine rounds to.
kb_reg *kl_encode_words(kl_emit *e, const kl_val *v);
// Wide registers of v's words; false where there is no shorter way than lane by lane.
bool kl_decode_words(kl_emit *e, kl_val *v, kl_pair *wide);
// Step s, a conversion; false where it goes by wide registers.
bool kl_convert_lanes(kl_emit *e, const kl_step *s, kl_val *out);

// memory.c: copies are numbered as the access says.
bool kl_is_constant(const kl_emit *e, uint32_t slot);
kb_reg kl_element_at(kl_emit *e, uint32_t slot, kb_reg index); // the address of an element of whole bytes; unsigned
kb_reg kl_emit_address(kl_emit *e, uint32_t slot, const kl_aff *element); // the same, of one for all
kl_val kl_emit_load(kl_emit *e, const kl_access *a, kl_dtype t);
// Of one chunk that is not guarded the elements, one by one; on the host chunks are of one. t: of the slot or of as
// many bits, 8 or more, and no float of fewer than 16.
void kl_emit_load_chunk(kl_emit *e, const kl_access *a, kl_dtype t, uint32_t chunk, kl_pair *out);
void kl_emit_store(kl_emit *e, const kl_store *s, kl_val *v);
void kl_make_store_guards(kl_emit *e, const kl_store *s); // before a branch
// Of one chunk: is it stored (I1)? The address of what lies so many bytes behind its first element. Of a chunk of one
// element of `bits`, the address of the aligned word of `word` bits that it lies in, and where there.
kb_reg kl_kept_in_chunk(kl_emit *e, const kl_store *s, uint32_t chunk);
kb_reg kl_chunk_bytes(kl_emit *e, const kl_access *a, uint32_t chunk, int64_t offset);
kb_reg kl_part_of_word(kl_emit *e, const kl_access *a, uint32_t chunk, unsigned bits, unsigned word, kb_reg *shift);

// update.c: stores that change what is there. v: copies numbered as the access says.
void kl_emit_change(kl_emit *e, const kl_store *s, kl_val *v);
void kl_emit_update(kl_emit *e, const kl_node *node);

// before.c: blocks that wait for those before them.
kb_reg kl_take_ticket(kl_emit *e, kb_reg tid); // for all threads of the block, its number, I32
void kl_emit_before(kl_emit *e, const kl_node *node);

// steps.c
kl_val kl_emit_step(kl_emit *e, const kl_step *s);
void kl_find_wanted_bits(kl_emit *e);

// body.c
// Runs the code emitted between begin and end only where c (a scalar I1) holds.
typedef struct kl_if {
  LLVMBasicBlockRef after;
} kl_if;
kl_if kl_if_begin(kl_emit *e, kb_reg c, const char *name);
void kl_if_end(kl_emit *e, kl_if i);
LLVMBasicBlockRef kl_block(kl_emit *e, const char *name); // a new one of the function
// Values and conditions as they were when a nest began; what is made in it is not there behind it, but of a loop
// `made`.
typedef struct kl_scope {
  kl_val *vals;
  kl_conditions *guards;
} kl_scope;
kl_scope kl_enter(kl_emit *e);
void kl_leave(kl_emit *e, kl_scope s, const kl_seq *made);
// Begins a body, nothing made yet. Then its variables are set and nodes of its root emitted; what they take of others
// is in `vals`.
void kl_body_begin(kl_emit *e, const kl_body *body);
void kl_body_nodes(kl_emit *e, uint32_t first, uint32_t end);
void kl_emit_seq(kl_emit *e, const kl_seq *s);
// Variables of the body, from the number of the block, and from that of the thread in it or the lanes of a vector.
void kl_set_blocks(kl_emit *e, kb_reg block);
void kl_set_rows(kl_emit *e, kb_reg count); // of a kernel that is given its count, as it is given
void kl_set_threads(kl_emit *e, kb_reg tid);
void kl_set_vector(kl_emit *e);

// lines.c: which instruction of the HLO text what is emitted comes from. Nothing where the plan does not ask for it.
typedef struct kl_lines kl_lines;
void kl_lines_begin(kl_emit *e);
void kl_lines_function(kl_emit *e, const char *name); // of e->k.fn, a kernel's
void kl_lines_at(kl_emit *e, const kl_instr *in);     // from here on; NULL: as before
void kl_lines_end(kl_emit *e);

// gpu.c
void kl_attribute(kl_emit *e, unsigned index, const char *name, uint64_t value);
void kl_string_attribute(kl_emit *e, const char *name, const char *value);
// What emits a plan, but for builder and function; constants' names begin with `name`.
// others: its slots may be changed by other blocks that do what other plans say.
kl_emit kl_emit_of_plan(kl_ctx *cx, LLVMModuleRef module, kl_plan *plan, kl_arena *scratch, const char *name,
                        bool others);
void kl_make_constants(kl_emit *e, const char *name);
LLVMValueRef kl_make_shared(kl_emit *e, const char *name, uint32_t bytes);
void kl_set_shared(kl_emit *e, LLVMValueRef base); // of e->launch
void kl_wait_for_previous(kb *k);
// What the block of this number does in e->launch, by its thread `tid`, both in index kind; then it goes to e->end.
void kl_emit_blocks(kl_emit *e, kb_reg block_id, kb_reg tid);
// memory.c: e->nothing.
void kl_make_nothing(kl_emit *e, const char *name);

// host.c
void kl_emit_host(kl_emit *e);

// ahead.c: what the next iteration of the body, which has begun, reads is asked for between its stores: a load has been
// made of a chunk at p; a chunk has been stored.
typedef struct kl_ahead kl_ahead;
void kl_ahead_begin(kl_emit *e);
void kl_ahead_load(kl_emit *e, const kl_access *a, uint32_t chunk, unsigned bits, kb_reg p);
void kl_ahead_store(kl_emit *e);

// elemental.c: one op on wide registers. `from` is the dtype of operand 0, `to` that of the result; `round_to` is `to`,
// or F32 where the caller packs a f16 or bf16 result, because packing rounds.
kl_pair kl_emit_op(kb *k, const kl_plan_op *op, kl_dtype from, kl_dtype to, kl_dtype round_to, const kl_pair *x);
kb_reg kl_emit_convert(kb *k, kl_dtype from, kl_dtype to, kl_dtype round_to, kb_reg x); // no complex type
// The comparison of the bits of two floats in their total order.
kb_reg kl_emit_total_order(kb *k, kl_direction d, kl_dtype t, kb_reg x, kb_reg y);
// outline.c
bool kl_is_long(const kl_emit *e, const kl_body *body); // so long that its functions are called
// The op as a call of a function of the module, which is made if there is none yet; false where it is not called.
bool kl_emit_call(kb *k, const kl_plan_op *op, kl_dtype from, kl_dtype to, kl_dtype round_to, const kl_pair *x,
                  kl_pair *out);
// stochastic.c: `random` unsigned, of as many bits as `from`
kb_reg kl_emit_stochastic(kb *k, kl_dtype from, kl_dtype to, kb_reg x, kb_reg random);
// elemental_complex.c
kl_pair kl_emit_complex_op(kb *k, const kl_plan_op *op, kl_dtype part, const kl_pair *x);

#endif
