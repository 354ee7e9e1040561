// Writing plans: what choosers make bodies with.
#ifndef KL_WRITE_H
#define KL_WRITE_H

#include "lower/plan/plan.h"

// --- accesses and guards --------------------------------------------------------------------------------------------

// Inner variables as chunks of 2^(k+1) values, for each k.
enum { KL_MAX_CHUNKINGS = 8, KL_MAX_CHUNK = 1 << KL_MAX_CHUNKINGS };

// The guards of a body, and what accesses are planned with. The body's domain gets two variables more for each inner
// one and each size of chunk: the chunk and the place in it.
typedef struct kl_guards {
  kl_ctx *cx;
  kl_affs *affs;
  const kl_body *body;
  bool host;   // accesses run over lanes only
  bool single; // loads take single elements, and guards differ between any two
  bool covers; // loads of arguments may take whole chunks of which some elements lie off the guard
  bool rows;   // guards say how many rows there are
  bool spares; // loads are for some lanes: others ask for nothing, also where they might
  uint32_t first_chunk[KL_MAX_VARS];
  uint32_t first_name; // dims of kl_write_begin_naming
  VEC(kl_guard) v;
  kl_ids ids;
} kl_guards;

// Sets the body's domain, with `names` of so many values behind what is the body's; its variables and width are there.
enum { KL_MAX_NAMES = 2 * KILN_MAX_RANK };
void kl_guards_begin(kl_guards *g, kl_ctx *cx, kl_affs *p, kl_body *body, uint32_t nnames, const int64_t *names);
void kl_guards_end(kl_guards *g);

// What an EXCHANGE step exchanges: `distance` is a power of two, and `lane` has two values.
typedef struct kl_exchange {
  uint32_t var, distance, lane;
} kl_exchange;
// e, and a guard, where the two have each other's values; false where such a guard never holds.
const kl_aff *kl_exchanged(kl_guards *g, const kl_exchange *x, const kl_aff *e);
bool kl_guard_exchanged(kl_guards *g, const kl_exchange *x, uint32_t guard, uint32_t *out);
// Instructions that the access becomes on a GPU.
uint32_t kl_access_requests(const kl_access *a, const kl_slot_info *info);

// Largest group of values of an inner variable over which e is the same.
uint32_t kl_uniform_over(kl_guards *g, const kl_aff *e, uint32_t var);

// The guard "lo <= e <= hi and outer", interned; `outer` itself where the condition always holds. *never: it cannot
// hold.
uint32_t kl_guard_and(kl_guards *g, uint32_t outer, const kl_aff *e, int64_t lo, int64_t hi, bool *never);
// The variables that its conditions name, while the body, whose guards these become, is written.
kl_vars kl_vars_asked(const kl_guards *g, uint32_t guard);

// Of a guard what a value needs that is wanted at indices in `vars`: conditions that have variables in common with
// them, or with others that have. Without the rest it is wanted for more copies or lanes, but not at more indices.
uint32_t kl_guard_needed(kl_guards *g, uint32_t guard, kl_vars vars);

// Does the guard hold wherever the variable has this value?
bool kl_guard_holds(kl_guards *g, uint32_t guard, uint32_t var, int64_t at);

// Plans the access of all copies to element `linear` of a slot, along the variable that gives the widest accesses. What
// is stored at once is one run upwards, all inside the guard `keep` or all outside, or no more than `least` elements,
// which share a byte; `regs` number the value's copies.
kl_access kl_load_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                       uint32_t guard);
// Of a store that changes what is there: of at most `most` elements at once.
kl_access kl_change_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                         kl_vars regs, uint32_t keep, uint32_t most);
kl_access kl_store_plan(kl_guards *g, kl_arena *arena, const kl_slot_info *info, uint32_t slot, const kl_aff *linear,
                        kl_vars regs, uint32_t keep, uint32_t least);

// counted.c: `guard`, and that the element of a slot with rows is there: one of those that are launched. Of a load also
// without what is not needed of `guard`.
struct kl_writer;
uint32_t kl_guard_rows(struct kl_writer *w, const kl_slot_info *info, const kl_aff *linear, uint32_t guard, bool load);

// Can e be computed? If not, because it is too large or no value, what is made of it cannot be either.
bool kl_is_sound(const kl_aff *e);
const char *kl_why_unsound(const kl_aff *e);

// --- bodies ---------------------------------------------------------------------------------------------------------

// Stores go into the innermost loop or branch that is open, and so do steps, but that a step which would make the same
// in every round of a loop stands before it. What is made inside of a branch is there only inside; what is made in a
// loop, behind it as the last round left it; of a WHILE what it carries.
typedef struct kl_open_nest {
  kl_node_kind kind; // LOOP, WHILE, IF, BEFORE, LAST; STEP: the body
  uint32_t index, scope;
  kl_arrival arrival; // LAST
  VEC(kl_node) nodes;
  VEC(kl_carried) carried;
} kl_open_nest;

// What the writer knows of a step: of a load the elements; the last symbol made of its value, KL_NONE if there is none;
// the nest that it stands in, and variables of loops around it.
typedef struct kl_written {
  const kl_aff *place;
  uint32_t symbol, scope;
  kl_vars loops;
} kl_written;

// Of a symbol: where it is to be had, and the one made before of the same value.
typedef struct kl_named {
  uint32_t scope, before;
} kl_named;

typedef struct kl_writer {
  kl_ctx *cx;
  kl_arena *arena;
  kl_plan *plan;
  kl_body *body;
  kl_guards guards;
  VEC(kl_step) steps;
  VEC(kl_written) written; // by step
  VEC(kl_store) stores;
  VEC(kl_symbol) symbols;
  VEC(kl_named) named; // by symbol
  VEC(kl_open_nest) open;
  VEC(bool) scopes; // by number: open?
  // Exchanges that may make accesses wider: each once more than those before it.
  uint32_t nexchanges;
  const kl_exchange *exchanges;
  // What neighbours exchange of a load that they make once for all rounds of a loop, so that each request is of whole
  // sectors; NULL: nothing.
  const kl_exchange *filling;
  // Loads may take elements of what neighbouring lanes load (shifted.c); how many have. Of a body of threads nothing
  // is: `would`: of one with warps and lanes it may be.
  bool shifts, would_shift;
  uint32_t nshifted;
  uint32_t held;     // words of 32 bits that a thread holds of what stands before loops that it was written in
  bool splits_bytes; // a result is stored in parts of bytes, which other threads may have others of
} kl_writer;

// Begins a body whose variables, width, threads and blocks are set.
void kl_write_begin(kl_writer *w, kl_ctx *cx, kl_plan *p, kl_body *body);
// The same, with names for indices: dims guards.first_name + i, values 0 .. names[i]-1, that stand for expressions in
// the body's variables. An index in names is as simple as these bounds make it, also where the expressions exceed them
// and a guard keeps that off. Nothing is written in names: who has them puts the expressions in their place before.
void kl_write_begin_naming(kl_writer *w, kl_ctx *cx, kl_plan *p, kl_body *body, uint32_t nnames, const int64_t *names);
void kl_write_end(kl_writer *w); // what was written becomes the body's
void kl_write_free(kl_writer *w);

// Where things are written now; where a step stands; and is what stands there still to be had?
uint32_t kl_write_scope(const kl_writer *w);
uint32_t kl_write_scope_of(const kl_writer *w, uint32_t step);
static inline bool kl_scope_is_open(const kl_writer *w, uint32_t scope) {
  return w->scopes.p[scope];
}

uint32_t kl_write_step(kl_writer *w, const kl_step *s); // regs: those of operands, guards and indices, and s->regs
uint32_t kl_write_scalar(kl_writer *w, kl_dtype t, uint64_t bits, uint64_t bits1);
uint32_t kl_write_op(kl_writer *w, kl_plan_op op, kl_dtype t, uint32_t n, const uint32_t *operands);
uint32_t kl_write_fma(kl_writer *w, uint32_t x, uint32_t y, uint32_t z); // x * y + z, rounded once
uint32_t kl_write_take(kl_writer *w, uint32_t value, uint32_t var, uint32_t at);
// Both depend on `var`; `by`, a value of it, does not.
uint32_t kl_write_slide(kl_writer *w, uint32_t value, uint32_t behind, uint32_t var, const kl_aff *by);
uint32_t kl_write_shuffle(kl_writer *w, uint32_t value, uint32_t distance);
uint32_t kl_write_rotate(kl_writer *w, uint32_t value, uint32_t distance);
uint32_t kl_write_any(kl_writer *w, uint32_t value);
// Twice the same is none.
uint32_t kl_write_exchange(kl_writer *w, const kl_exchange *x, uint32_t value);
uint32_t kl_write_choose(kl_writer *w, uint32_t guard, uint32_t yes, uint32_t no); // guard KL_NONE: yes
// A value in the type that it has in memory: a word of as many bits, or of more, which are zero above it.
uint32_t kl_write_word(kl_writer *w, uint32_t value, kl_dtype word);
// An earlier load of the place under the guard, to be had here, of what nobody changes; KL_NONE: there is none.
uint32_t kl_find_load(const kl_writer *w, uint32_t slot, const kl_aff *place, uint32_t guard);
// Loads and stores take as many of the writer's exchanges as make fewer accesses.
uint32_t kl_write_load(kl_writer *w, uint32_t slot, const kl_slot_info *info, const kl_aff *linear, uint32_t guard,
                       const kl_instr *from);
void kl_write_store(kl_writer *w, uint32_t slot, const kl_slot_info *info, const kl_aff *linear, uint32_t value,
                    uint32_t keep);

// Of a slot in mode UPDATE: how is TAKE or COMBINE.
void kl_write_change(kl_writer *w, const kl_store *how, uint32_t slot, const kl_slot_info *info, const kl_aff *linear,
                     uint32_t value, uint32_t keep);
// REPLACE: the element as it is, to be changed by what is written before the end; its copies are numbered by `regs` and
// what the place depends on.
uint32_t kl_write_update(kl_writer *w, bool alone, uint32_t slot, const kl_slot_info *info, const kl_aff *linear,
                         kl_vars regs, uint32_t keep);
void kl_write_update_end(kl_writer *w, uint32_t next);

// The integer or pred `value`, held to the interval, for index expressions: a symbol, or what is known of it.
const kl_aff *kl_write_index(kl_writer *w, uint32_t value, kl_interval in);

// Loops run over a STEP variable. A carried value is first[i], and next[i] of the round before; it depends on regs[i]
// beside those of first[i].
void kl_write_loop(kl_writer *w, uint32_t var, uint32_t n, const uint32_t *first, const kl_vars *regs,
                   uint32_t *carried);
void kl_write_loop_end(kl_writer *w, const uint32_t *next);
// A WHILE. All that it carries depends on regs[i], among them those that the pred `test` does, one of what is carried.
void kl_write_while(kl_writer *w, uint32_t test, uint32_t n, const uint32_t *first, const kl_vars *regs,
                    uint32_t *carried);
void kl_write_while_end(kl_writer *w, const uint32_t *next);
// A BEFORE along BLOCK variable `var`, of n values: first[i], and own[i] as all blocks before have it, are joined by
// what is written before the end, of lower[i] and higher[i], to next[i]. Behind it lower[i] is what comes before the
// block.
void kl_write_before(kl_writer *w, uint32_t var, uint32_t n, const uint32_t *first, const uint32_t *own,
                     uint32_t *lower, uint32_t *higher);
void kl_write_before_end(kl_writer *w, uint32_t n, const uint32_t *next);
// What the last of the blocks that differ in a->of does.
void kl_write_last(kl_writer *w, const kl_arrival *a);
void kl_write_last_end(kl_writer *w);
void kl_write_meet(kl_writer *w);
void kl_write_if(kl_writer *w, uint32_t guard);
void kl_write_if_end(kl_writer *w);

#endif
