// Values that were never written: a shadow bit for each bit of registers and memory, set where it has none.
//
// A frame's shadow lies behind its registers, in the same order, so that shadows and registers are operands of one
// executor. Beside it stands a flag for each register: 0 where none of its shadow's bits is set. Memory of a block has
// a shadow as a region has; a region's is the region's own.
#ifndef KL_CHECK_VALUES_H
#define KL_CHECK_VALUES_H

#include "sim/check/checks.h"
#include "sim/lanes/lanes.h"
#include "sim/machine/execute.h"
#include "sim/machine/observe.h"

// Where in a frame of F bytes of registers: zeros as wide as the widest register, the carry's shadow, that of the
// registers, and their flags, by their offset / 4; behind these one that is 0, and one for what nobody reads.
#define CLEAN_AT(F)  ((uint32_t)(F))
#define CARRY_AT(F)  ((uint32_t)(F) + 512)
#define SHADOW_AT(F) ((uint32_t)(F) + 576)
#define FLAGS_AT(F)  (2 * (uint32_t)(F) + 576)

// Operands of an op: results, and sources.
typedef struct operands {
  kl_ref to[4], from[5];
  uint16_t to_bits[4], from_bits[5];
  unsigned nto, nfrom;
  bool takes_carry, gives_carry;
} operands;

// What an op does to shadows. First what is looked at where all have values.
typedef struct spread {
  uint32_t from[5], to[4]; // flags of its sources and destinations: where in the frame
  bool spreads;            // op.run is set
  bool grows;              // alloca
  uint8_t decides;         // kl_found_kind, or 0
  uint8_t decider_bytes;   // 0: a predicate
  uint8_t decider2_bytes;
  kl_ref decider, decider2; // operands that decide where the op goes, what it takes part in or what it addresses
  kl_sim_op op;             // run NULL: nothing here
  const operands *who;      // where op.run is set
} spread;

typedef struct plan {
  const kl_code *code;
  spread *ops;
  uint32_t *rows; // by kl_ref / 4, and behind them the carry: its row of origins + 1; 0: it has none yet
  uint32_t nrows;
} plan;

// Of a frame (its `shadow`; NULL: nothing in it has one): where bits without a value come from, by a register's row,
// then by lane: numbers of origins. What is 0 comes from the register itself, which nothing has set.
typedef struct origin_rows {
  struct origin_rows *next; // of all
  uint32_t n, room;
  uint32_t (*rows)[KL_LANES];
} origin_rows;

// Memory of a block: a byte for each of its own, 0 where nothing has a value.
typedef struct block_shadow {
  struct block_shadow *next; // free ones
  uint8_t *shared;
  uint8_t *stack; // of all lanes, as kl_warp.stack; NULL: none
  // By 4 bytes, where those without a value come from, of what has been stored; NULL: nothing was.
  uint32_t *shared_origins, *stack_origins;
} block_shadow;

// Who left bits without a value at 4 bytes: number of the store + 1, of the thread, and of their origin.
typedef struct left {
  uint64_t store : 20, thread : 44;
  uint32_t origin;
} left;
typedef struct store_place {
  const kl_ptx_func *func;
  const kl_ptx_instr *instr;
  kl_calls calls;
} store_place;

// Memory whose shadow lies in one piece: of a region, of a block, of the parameters; or a lane's bytes alone.
typedef struct area {
  uint64_t base, bytes;
  uint8_t *shadow; // NULL: `flip` everywhere
  uint8_t flip;
} area;

typedef struct values {
  kl_observer observer;
  kl_checks *checks;
  const kl_launch *launch;
  const kl_kernel *kernel;
  kl_arena arena;
  plan *plans; // by function
  uint32_t shared_bytes, warps;
  block_shadow *free;
  uint8_t *params; // by byte of the parameters: 0xff where it has no value
  left **left;     // by region, by 4 bytes; NULL: nothing was left
  VEC(store_place) stores;
  VEC(kl_origin) origins; // by number - 1
  uint32_t *origin_slots; // of a hash table: their numbers, or 0
  uint32_t norigin_slots; // a power of two
  origin_rows *all_rows;
  size_t region; // that was last looked at
  area run;      // where the last load or store and all others of its run lie; no shadow: not known
  bool grows;    // some function has an alloca
} values;

bool values_plan(values *v);
// What op `o` of a row, or of none, does to shadows in frames of so many bytes.
void values_spread(kl_arena *arena, const kl_lane_set *set, uint32_t frame, const kl_form *f, const kl_sim_op *o,
                   spread *out);

static inline values *values_of(kl_observer *o) {
  return (values *)(void *)o;
}
static inline char *shadow_of(const kl_frame *f, kl_ref ref) {
  return (char *)f->regs + SHADOW_AT(f->code->frame_bytes) + (ref & ~(kl_ref)3);
}
static inline uint8_t *flag_of(const kl_frame *f, kl_ref ref) {
  return (uint8_t *)f->regs + FLAGS_AT(f->code->frame_bytes) + (ref >> 2);
}
static inline void set_flag(const kl_frame *f, kl_ref ref) {
  *flag_of(f, ref) = 1;
  ((kl_frame *)f)->lacks = true;
}
static inline bool in_registers(kl_ref ref) {
  return ref != KL_NO_REF && (ref & 3) == KL_IN_REGISTERS;
}
// The bits of a register of `bytes` in a lane that have no value, of a predicate one.
uint64_t values_unknown(const kl_frame *f, kl_ref ref, unsigned bytes, unsigned lane);
void values_set(const kl_frame *f, kl_ref ref, unsigned bytes, unsigned lane, uint64_t unknown);

// A thread of the launch by its number, block after block.
void values_thread(const values *v, uint64_t number, kl_found_at *at);

// --- origin.c: numbers of origins, from 1 on
// --------------------------------------------------------------------------

// Of the bits that a register of lane `lane` lacks, which op `o` reads: made, where nothing has set it.
uint32_t values_origin(values *v, const kl_frame *f, const kl_sim_op *o, kl_ref ref, unsigned lane);
void values_set_origin(values *v, const kl_frame *f, kl_ref ref, unsigned lane, uint32_t origin);
// Of bytes of memory that an op of the strand that runs loads and nobody has stored.
uint32_t values_memory_origin(values *v, const kl_warp *w, const kl_sim_op *o, kl_where where, uint64_t address,
                              unsigned bytes);
// Of what a lane gives that takes no part.
uint32_t values_lane_origin(values *v, const kl_frame *f, const kl_sim_op *o);
// Of what an asynchronous copy is going to write; of bytes without a value that the copy of that origin has taken.
uint32_t values_copy_origin(values *v, const kl_frame *f, const kl_sim_op *o);
uint32_t values_copied_origin(values *v, const kl_warp *w, uint32_t copy, kl_where where, uint64_t address,
                              unsigned bytes);
// What an op has done to shadows, some of whose sources lack bits.
void values_spread_origins(values *v, kl_warp *w, const kl_sim_op *o, const operands *who);
kl_origin values_origin_of(const values *v, uint32_t number);
// A frame begins: its registers have none.
void values_clear_origins(kl_frame *f);
void values_free_origins(values *v);

void values_access(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p);
void values_copy(kl_observer *o, kl_warp *w, kl_flight *f, bool arrives);
void values_meet(kl_observer *o, const kl_party *p);
void values_open(kl_observer *o, kl_block *b, unsigned barrier);
void values_call(kl_observer *o, kl_warp *w, const kl_frame *callee, uint32_t lanes);
void values_ret(kl_observer *o, kl_warp *w, const kl_frame *callee, uint32_t lanes);
void values_begin(kl_observer *o, kl_block *b);
void values_end(kl_observer *o, kl_block *b);
// The stack of a lane, from a place in it on.
uint8_t *values_stack(const kl_warp *w, unsigned lane, uint32_t at);
// Origins of what is stored there, by word; NULL: none are kept yet.
uint32_t *values_stack_origins(const kl_warp *w, unsigned lane, uint32_t at);
bool values_keep_stack_origins(const values *v, const kl_warp *w);
// Judges what stores have left in the caller's memory.
void values_judge(values *v);

#endif
