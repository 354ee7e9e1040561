// What the files of the machine share: decoded functions, and the state of blocks, warps and strands. Nobody else
// includes it.
#ifndef KL_MACHINE_WARP_H
#define KL_MACHINE_WARP_H

#include "sim/isa/isa.h"
#include "sim/lanes/memory.h"
#include "sim/lanes/shuffle.h"
#include "sim/machine/machine.h"
#include "sim/machine/special.h"
#include <pthread.h>
#include <stdatomic.h>

// --- decoded functions --------------------------------------------------------------------------------------------

typedef struct kl_code {
  const kl_ptx_func *func;
  uint32_t function; // its number in the module
  kl_sim_op *ops;
  const kl_form *const *forms; // by op: its row; NULL: the machine's own, around instructions
  uint32_t nops;
  uint32_t frame_bytes; // of registers, for 32 lanes
  uint32_t zero_bytes;  // of these, from the first on: what may be read before it is written
  char *constants;
  uint32_t stack_bytes;   // of a thread: results, parameters and local variables
  const uint32_t *var_at; // by variable of the function: in the stack frame, or in shared memory
  const uint32_t *reg_at; // by register: its kl_ref
} kl_code;

struct kl_kernel {
  kl_loaded *of;
  const kl_ptx_func *func;
  const kl_code **codes; // by function of the module; NULL where it is not reached
  kl_code *entry;
  uint32_t shared_bytes;
  uint32_t *shared;     // by variable of the module: where in shared memory
  const bool *used;     // by variable of the module
  uint32_t **shared_of; // by function: the same of its own variables; NULL: the kernel does not reach it
  const uint32_t *param_at;
  uint32_t param_bytes, local_bytes;
  bool has_stack; // threads have local memory, or functions are called
  bool talks;     // blocks may see each other's writes while they run: atomics, fences, volatile accesses
  struct kl_kernel *next;
};

struct kl_loaded {
  kl_ctx *cx;
  kl_arena arena;
  kl_memory *memory;
  kl_ptx_module *ptx;
  uint64_t *address; // of the module's variables; 0: shared
  kl_kernel *kernels;
};

// --- what an instruction has beside its operands, in kl_sim_op.imm
// ----------------------------------------------------

typedef enum kl_where { // which memory an access names
  KL_AT_GENERIC,
  KL_AT_GLOBAL, // and .const
  KL_AT_SHARED, // also shared::cluster
  KL_AT_STACK,  // local memory, and .param of functions
  KL_AT_PARAM,  // of the kernel
} kl_where;

typedef enum kl_atomic_op {
  KL_ATOMIC_AND,
  KL_ATOMIC_OR,
  KL_ATOMIC_XOR,
  KL_ATOMIC_EXCH,
  KL_ATOMIC_CAS,
  KL_ATOMIC_INC,
  KL_ATOMIC_DEC,
  KL_ATOMIC_ADD,
  KL_ATOMIC_MIN,
  KL_ATOMIC_MAX,
} kl_atomic_op;

typedef enum kl_order { KL_WEAK, KL_VOLATILE, KL_RELAXED, KL_ACQUIRE, KL_RELEASE, KL_ACQ_REL } kl_order;
typedef enum kl_scope { KL_SCOPE_NONE, KL_SCOPE_CTA, KL_SCOPE_CLUSTER, KL_SCOPE_GPU, KL_SCOPE_SYS } kl_scope;

enum { KL_MOST_ELEMENTS = 8 };
typedef struct kl_sim_access {
  uint8_t where;        // kl_where
  uint8_t bytes;        // of an element in memory
  uint8_t count;        // elements
  uint8_t order, scope; // kl_order, kl_scope: none where the order is weak
  bool sign;            // a narrow value is extended by its sign
  bool store, frame;    // frame: the offset counts from the stack frame
  bool four;            // four words, from or to as many registers of words
  uint8_t wide;         // bytes of an address register; 0: the address is the offset alone
  kl_ref base;
  int64_t offset;
  kl_ref regs[KL_MOST_ELEMENTS]; // KL_NO_REF: `_`
  uint8_t reg_bytes[KL_MOST_ELEMENTS];
  // Accesses one behind the other, in the same lanes, from the same register with the same values in it: the first one,
  // itself among them; NULL: alone. Of the first, how far from its addresses those of others are, least and most.
  const struct kl_sim_access *run;
  int64_t low, high;
  const kl_ref *from; // operands of a vector atomic, whose old values go to regs
  uint8_t atomic,
      kind; // kl_atomic_op, and of what: 'b', 'u', 's', 'f' (f16, f32, f64), 'h' (f16x2), 'g' (bf16), 'i' (bf16x2)
} kl_sim_access;

typedef struct kl_copy { // cp.async
  kl_sim_access to, from;
  kl_ref size; // bytes taken from the source, the rest is zero; KL_NO_REF: all
} kl_copy;

// An asynchronous copy of a lane on its way.
typedef struct kl_flight {
  char *to;
  const char *from;                  // NULL: nothing is taken
  uint64_t to_address, from_address; // as the instruction has them
  const kl_sim_op *op;
  uint32_t group;             // of its lane
  uint8_t bytes, taken, lane; // taken: from the source, the rest is zero
  bool unsure;                // an observer's: how many are taken has no value
  uint32_t origin;            // an observer's: of the bytes while they are on their way
} kl_flight;

typedef struct kl_transfer { // bytes of a call's argument or result, from frame to frame
  uint32_t caller, callee, bytes;
} kl_transfer;
typedef struct kl_call {
  const kl_code *const *code; // of the callee, which may be decoded later; NULL: indirect, by d's value
  kl_ref target;
  uint8_t target_bytes;
  const kl_transfer *in, *out;
  uint32_t nin, nout;
  uint32_t bytes; // of the callee's stack frame that they reach
} kl_call;

// --- running ------------------------------------------------------------------------------------------------------

typedef struct kl_block kl_block;
typedef struct kl_warp kl_warp;
typedef struct kl_run_state kl_run_state;

// Registers of a call. Lanes of several strands may live in one.
typedef struct kl_frame {
  struct kl_frame *caller; // also the next one of those that wait for use
  const kl_code *code;
  const kl_call *call;
  uint32_t return_to; // op of the caller
  uint32_t lanes;     // that have not left it
  uint32_t depth;
  uint32_t stack; // where its part of a thread's stack begins
  uint32_t top;   // and ends: behind the function's variables and what alloca gave
  size_t bytes;   // of regs
  bool lacks;     // an observer's: some registers may have no value
  void *shadow;   // an observer's: NULL in a new frame, kept where it is used again
  _Alignas(64) char regs[];
} kl_frame;

// Room of an observer behind the registers of a frame (kl_launch.shadows): as much again and a quarter of it, and more.
#define KL_SHADOW_ROOM(frame_bytes) ((size_t)(frame_bytes) + (frame_bytes) / 4 + 1024)

typedef enum kl_wait { KL_READY, KL_AT_BARRIER, KL_AT_WARP, KL_AT_CLUSTER } kl_wait;

// Lanes that are at the same place.
typedef struct kl_strand {
  kl_frame *frame;
  uint32_t pc; // the op that comes next; of one that waits the op it waits in
  uint32_t mask;
  uint32_t turns;      // it has had; the one with the fewest goes first
  uint32_t spent;      // backward branches and calls of this turn
  uint8_t wait;        // kl_wait
  uint8_t barrier;     // AT_BARRIER
  uint32_t expected;   // AT_BARRIER: threads; 0: all of the block
  uint32_t with_lanes; // AT_WARP: the member mask, the same for all of its lanes
} kl_strand;

enum { KL_BARRIERS = 16, KL_MOST_STACK = 1 << 19 };

struct kl_warp {
  kl_lanes x;             // first: what instructions see
  const kl_sim_op *next;  // op to execute
  const kl_sim_op *limit; // the run ends there: the function does, or another strand is at or behind it
  kl_strand strand;       // that runs
  kl_strand waiting[KL_LANES];
  uint32_t nwaiting;
  uint32_t lanes;                // that exist
  uint32_t alive;                // and have not exited
  uint32_t rank;                 // in its block
  bool exited;                   // lanes have exited since others were last asked whether they wait for them
  uint32_t turn;                 // backward branches and calls before others get theirs
  uint32_t rounds;               // of strands that were alone, until lanes went apart; since the warp gave way
  bool alone;                    // no other strand is ready
  uint32_t arrived[KL_BARRIERS]; // lanes that wait at each barrier
  uint32_t phase[KL_LANES];      // of the cluster's barrier, in which each lane has arrived
  kl_block *block;
  const kl_lane_memory *memory;
  kl_shuffle_all *shuffle;
  bool observed;
  kl_flight *flights; // asynchronous copies, oldest first
  uint32_t nflights, flight_room;
  uint32_t group[KL_LANES]; // of copies, that lanes have committed
  char *stack;              // local memory of all lanes, KL_MOST_STACK each; NULL where the kernel needs none
  kl_special_area special;
};

// A barrier of a block, between two times that it opens.
typedef struct kl_barrier {
  uint32_t waiting;  // threads that wait
  uint32_t arrived;  // threads, where a whole warp counts 32
  uint32_t expected; // as the last to arrive said; 0: all
  bool all, any;
  uint32_t count; // predicates that hold
} kl_barrier;

struct kl_block {
  kl_run_state *run;
  struct kl_worker *worker;
  struct kl_cluster *cluster;
  uint64_t number; // in the grid
  uint32_t rank;   // in its cluster
  uint32_t id[3];
  kl_warp *warps;
  uint32_t nwarps, alive; // threads that have not exited
  kl_barrier barriers[KL_BARRIERS];
  char *shared;
  uint32_t shared_bytes;
  uint64_t branches; // backward ones and calls so far
  void *shadow;      // an observer's, from the block's begin to its end
};

// Blocks that run together: a cluster, or one block.
typedef struct kl_cluster {
  struct kl_cluster *next; // of a worker's
  kl_block *blocks;
  uint32_t n;
  uint32_t arrived, phase; // of its barrier
  bool waits;              // it has run for long, perhaps for others
  uint64_t random;         // where the order of the launch is shuffled; else 0
} kl_cluster;

// Of these lanes those for which the cluster's barrier has not opened since they arrived. Others may have arrived anew.
static inline uint32_t kl_cluster_waits(const kl_warp *w, uint32_t lanes) {
  uint32_t waits = 0;
  for (unsigned i = 0; i < KL_LANES; i++) waits |= (uint32_t)(w->phase[i] == w->block->cluster->phase) << i;
  return waits & lanes;
}

// Where the lanes of an access lie on the host.
typedef struct kl_places {
  _Alignas(64) uint64_t address[KL_LANES];
  _Alignas(64) char *host[KL_LANES]; // of the lanes that execute
  // Bit i: lane i and the one before execute, and its bytes lie right behind that one's, by address and on the host.
  // Found for observers only.
  uint32_t joined;
  uint64_t least, most; // the least and the greatest address of those lanes; for observers only as well
  kl_lane_bytes bytes;  // the same places on the host, for moving bytes
  bool follows;         // they are those of the last load or store, which was of the same run, a distance away
} kl_places;

// Places of the last load or store. Where it is of a run, all of which lie in the same memory, the others of the run
// have theirs a distance away.
typedef struct kl_last_places {
  kl_places p;
  const kl_sim_access *run; // NULL: of none
  const kl_warp *warp;
  uint32_t mask;
  int64_t offset; // of the access
} kl_last_places;

// What a thread of the host has for its blocks.
typedef struct kl_worker {
  kl_run_state *run;
  kl_region last; // the region an access was in
  kl_last_places at;
  kl_frame *frames; // free ones
  kl_cluster *free; // free ones
  uint64_t ticks;
} kl_worker;

struct kl_run_state {
  kl_ctx *cx;
  kl_memory *memory;
  const kl_launch *launch;
  const kl_kernel *kernel;
  const char *params;
  kl_observer **steppers; // observers that are told of every op
  uint32_t nsteppers;
  bool tells_all;        // some of these are not seldom
  kl_observer **lookers; // observers that are told of accesses
  uint32_t nlookers;
  uint32_t grid[3], block[3], cluster[3];
  uint32_t threads, warps; // of a block
  uint32_t blocks;         // of a cluster
  uint32_t shared_bytes;
  bool explicit_cluster;
  uint64_t grid_state;           // address of memory that a cooperative launch has for its barrier, or 0
  uint64_t clusters;             // of the grid
  uint64_t starts;               // of these run
  _Atomic uint64_t next;         // so many have started
  _Atomic uint64_t failed_block; // the lowest that failed; UINT64_MAX: none
  pthread_mutex_t lock;          // of the fault
  kl_fault fault;
};

static inline kl_warp *kl_warp_of(kl_lanes *x) {
  return (kl_warp *)x;
}

// A number below n, which is 0 where the launch's order is not shuffled.
uint32_t kl_draw_below(kl_cluster *c, uint32_t n);
// Back to the scheduler after this op.
void kl_stop(kl_warp *w);
// Lanes of the strand that go their own way, from op `pc` on.
kl_strand *kl_split_off(kl_warp *w, uint32_t mask, uint32_t pc);
uint32_t kl_op_number(const kl_warp *w, const kl_sim_op *o);
// Memory aligned to the host's cache lines, zeroed, or NULL; given back with free(). It is the system's: the threads
// that a launch runs on may not call the context's allocator.
void *kl_new_lines(size_t size);
// Registers of a function for 32 lanes, zero where they may be read before they are written; NULL: no memory.
kl_frame *kl_new_frame(kl_worker *worker, const kl_code *code);
void kl_free_frames(kl_worker *worker);
// Lanes leave a frame and all its callers; what nobody is in any more is free.
void kl_leave_frames(kl_worker *worker, kl_frame *f, uint32_t mask);
kl_calls kl_calls_of(const kl_frame *f);
// Of the asynchronous copies some arrive, where the launch's order is shuffled; of lanes that exit all do.
void kl_copies_drift(kl_warp *w);
void kl_copies_after_exit(kl_warp *w, uint32_t lanes);
// Block and thread of a lane.
void kl_thread_of(const kl_warp *w, unsigned lane, uint32_t block[3], uint32_t thread[3]);
// The strand that runs is in this frame.
void kl_enter_frame(kl_warp *w, kl_frame *f);
// Threads have exited: barriers that wait for nobody else open.
void kl_barriers_after_exit(kl_block *b);
void kl_cluster_after_exit(kl_cluster *c);
// Lanes that wait for lanes that have exited since go on.
void kl_warp_after_exit(kl_warp *w);
// Runs strands of the warp until none is ready or its budget is spent. False: none was ready.
bool kl_warp_run(kl_warp *w);
// Sets the lanes that execute.
void kl_set_mask(kl_lanes *x, uint32_t mask);
// The launch ends with a fault of lane `lane`.
void kl_faulted(kl_warp *w, const kl_sim_op *o, kl_fault_kind kind, unsigned lane, uint64_t address);
// The same of an access to memory.
void kl_access_faulted(kl_warp *w, const kl_sim_op *o, kl_fault_kind kind, unsigned lane, const kl_sim_access *m,
                       uint64_t address);
// Where an access of the strand that runs goes.
kl_spot kl_spot_of(const kl_warp *w, kl_where where, uint64_t address, uint64_t bytes);
const kl_ptx_instr *kl_instr_of(const kl_warp *w, const kl_sim_op *o);

#endif
