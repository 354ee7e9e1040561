// Private to tests/lower/interpret: a plan at work.
#ifndef KL_TEST_MACHINE_H
#define KL_TEST_MACHINE_H

#include "interpret.h"

#include <setjmp.h>
#include <ucontext.h>

enum { WARP = 32, MOST_SYMBOLS = 256 };

// What a byte of memory that a block shares has seen since the block began: the thread that wrote it last, for which
// slot, and between which syncs; the thread that read it last, or several.
enum { NOBODY = -1, SEVERAL = -2, CHANGED = -3, NOT = -1 };
typedef struct shared_byte {
  uint32_t slot, written, read; // syncs before
  int32_t writer, reader;
  kl_op combine; // of a writer CHANGED: what several threads have changed it by
} shared_byte;

// Threads of a group share memory and wait for each other: those of a block; one thread of a loop over elements; on the
// host the lanes of a vector, which is all there is of a block or an iteration.
typedef struct machine {
  kl_arena *arena;
  const kl_plan *plan;
  const kl_plan_launch *launch;
  const kl_body *body;
  bool host;
  bool in_place;  // results that may be parameters' memory are it
  uint32_t pairs; // of these; of one alone all are apart where it is
  int64_t rows;   // that are launched, where their number comes at run time
  jmp_buf stop;
  const char *why; // what is broken

  uint32_t nthreads;            // of the group
  int64_t (*vars)[KL_MAX_VARS]; // by thread
  bool *active;                 // by thread: not kept out by a branch
  int64_t group;                // numbered through all bodies

  kl_vars *guard_vars; // by guard: as vars_of_guard
  bool *known;         // by symbol: it has been made
  int64_t *symbols;    // room for runtime variables' values
  uint32_t *copies;    // by step: of its value in a thread
  size_t *first;       // by step: of these among the values of a thread
  size_t each;         // values of a thread
  uint64_t *vals;

  uint64_t **elements;  // by slot: results, scratch and shared memory, as they are now; NULL: not looked at
  uint8_t **stored;     // by result and scratch slot: elements that have been, 1 + the launch; NULL as elements
  int64_t **writers;    // by scratch slot: the group that has stored an element
  int64_t *arrived;     // by group: the counter in which it has counted itself, NOT: none yet
  int64_t no_group;     // the number of one that never counts itself
  int64_t last;         // the counter whose last block the group is, NOT: it is none
  int64_t **met_before; // by scratch slot: how often the group that has stored an element had met others by then
  int64_t met;          // how often the group has
  uint64_t *before;     // by line of blocks, and block in it: what it has made; NULL: none has waited
  ucontext_t *own,
      *others;       // of a cluster's block: where it goes on, and where it goes to meet the others; NULL: it is alone
  int64_t **readers; // by result whose memory a parameter may be: who has read an element of that, + 1
  shared_byte *shared; // by byte
  uint32_t syncs;      // that the group has passed
} machine;

_Noreturn void broken(machine *m, const char *fmt, ...) KL_PRINTF(2, 3);

// Not a function: most conditions hold, and their words would be computed.
#define REQUIRE(m, cond, ...)                                                                                          \
  do {                                                                                                                 \
    if (!(cond)) broken(m, __VA_ARGS__);                                                                               \
  } while (0)

// index.c: points are values by variable.
static inline bool has_var(kl_vars vars, uint32_t v) {
  return vars >> v & 1;
}
kl_vars bound_to(const kl_body *b, kl_binding binding);
// Product of the extents.
int64_t points_of(const kl_body *b, kl_vars vars);
// Point number n of `vars`, of which `run` (KL_NONE: none) is the fastest, else the last; and back, the last the
// fastest.
void to_point(const kl_body *b, kl_vars vars, uint32_t run, int64_t n, int64_t *at);
int64_t of_point(const kl_body *b, kl_vars vars, const int64_t *at);
// Variables that are values side by side: registers, on the host lanes.
kl_vars side_by_side(const machine *m);
// Elements that a slot has; of rows as many as are launched.
static inline int64_t length_of(const machine *m, const kl_slot_info *s) {
  return s->row ? s->row * m->rows : s->shape->count;
}
// Variables and symbols, added to those that are there; a guard's are those of its outer ones, too.
typedef struct named {
  kl_vars vars;
  uint64_t symbols[MOST_SYMBOLS / 64];
} named;
static inline bool has_symbol(const named *n, uint32_t symbol) {
  return n->symbols[symbol / 64] >> symbol % 64 & 1;
}
void names_in(machine *m, const kl_aff *e, named *out);
void names_in_guard(machine *m, uint32_t guard, named *out);
// Variables whose values say what a guard says.
kl_vars vars_of_guard(machine *m, uint32_t guard);
// The value of an index in a thread at a point, which is what the domain says of it and fits the plan's index type.
int64_t value_at(machine *m, const kl_aff *e, uint32_t thread, const int64_t *at);
int64_t exact_at(machine *m, const kl_aff *e, uint32_t thread, const int64_t *at); // the same, whatever it fits
bool holds_at(machine *m, uint32_t guard, uint32_t thread, const int64_t *at);
// Guards and symbols are as uniform as they say, at the group's values of other variables. Guards: those that depend on
// STEP variable `changed`, or with KL_NONE on none, and on no other of those than are `open`; or those that depend on a
// symbol which is known now.
void check_guards(machine *m, kl_vars open, uint32_t changed);
void check_symbol(machine *m, uint32_t symbol);

// structure.c: what must hold of a body whatever is executed.
void check_body(machine *m);

// memory.c
void clear_shared(machine *m);
void run_load(machine *m, uint32_t step);
void run_store(machine *m, const kl_store *s);
// The element of a store that changes what is there, number i of those that an active thread has: false where it is not
// kept. Then what becomes of it.
bool changed_element(machine *m, const kl_store *s, uint32_t actor, int64_t i, int64_t *e, uint32_t *thread,
                     int64_t *at);
uint64_t element_now(machine *m, uint32_t slot, int64_t e);
void change_element(machine *m, uint32_t slot, int64_t e, uint64_t value);
uint32_t actors(const machine *m);

// nodes.c: the root, for a group whose threads are there.
void run_group(machine *m);
static inline uint64_t *values_of(const machine *m, uint32_t step, uint32_t thread) {
  return m->vals + thread * m->each + m->first[step];
}
// The host has one warp a group.
static inline uint32_t lanes_in_warp(const machine *m) {
  return m->host ? m->body->width : WARP;
}
// The step's value in a thread at a point.
uint64_t operand_at(const machine *m, uint32_t step, uint32_t thread, const int64_t *at);

#endif
