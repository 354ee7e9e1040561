// What the files of this room share: the state of counting. Nobody else includes it.
#ifndef KL_COUNT_COLLECT_H
#define KL_COUNT_COLLECT_H

#include "sim/count/count.h"
#include "sim/decode/blocks.h"
#include "sim/isa/match.h"
#include "sim/machine/observe.h"

// --- caches (cache.c) -----------------------------------------------------------------------------------------------

enum { KL_SECTOR = 32, KL_CACHE_LINE = 128, KL_CACHE_WAYS = 16 };

// Lines of four sectors, the latest used of a set first.
typedef struct kl_cache_line {
  uint64_t number;      // + 1; 0: none
  uint8_t valid, dirty; // sectors
} kl_cache_line;
typedef struct kl_cache {
  kl_cache_line *lines;
  uint32_t sets;
} kl_cache;

typedef struct kl_caches {
  kl_cache *l1; // of each multiprocessor
  uint32_t multiprocessors;
  kl_cache l2;
  uint64_t read, written; // sectors of DRAM
} kl_caches;

typedef enum kl_cache_use {
  KL_USE_LOAD,
  KL_USE_LOAD_L2, // past L1
  KL_USE_STORE,
  KL_USE_ATOMIC,
  KL_USE_LOCAL_STORE, // stays in L1
} kl_cache_use;

bool kl_caches_make(kl_ctx *cx, kl_caches *c, const kl_gpu *g, uint32_t l1_bytes); // false: no memory
void kl_caches_free(kl_ctx *cx, kl_caches *c);
// Sectors of one line, by its number: those that L1 had, and of the others those that L2 had.
void kl_caches_use(kl_caches *c, uint32_t multiprocessor, uint64_t line, uint8_t sectors, kl_cache_use use,
                   uint64_t *l1_hits, uint64_t *l2_hits);
uint64_t kl_caches_dirty(const kl_caches *c); // sectors that L2 has to write back

// --- what was touched (footprint.c) ---------------------------------------------------------------------------------

typedef struct kl_touched {
  uint64_t base, size;
  uint64_t *read, *written; // a bit for each byte; mapped, without memory where nothing is touched
  uint64_t read_bytes, written_bytes;
} kl_touched;
typedef struct kl_footprint {
  kl_ctx *cx;
  const kl_memory *memory;
  VEC(kl_touched) buffers; // by rising base
  size_t last;
} kl_footprint;
void kl_footprint_mark(kl_footprint *f, uint64_t address, uint64_t bytes, bool read, bool written);
void kl_footprint_free(kl_footprint *f);

// Requests by address, up to so many addresses; those that come later are not counted.
typedef struct kl_hot {
  uint64_t *address, *requests;
  size_t n, slots;
} kl_hot;
void kl_hot_add(kl_ctx *cx, kl_hot *h, uint64_t address);
void kl_hot_free(kl_ctx *cx, kl_hot *h);

// --- counting -------------------------------------------------------------------------------------------------------

// How the issues of an op are counted.
typedef enum kl_how {
  KL_HOW_NOT, // not the first op of its instruction
  KL_HOW_PLAIN,
  KL_HOW_GUARD,   // lanes where the guard holds
  KL_HOW_AROUND,  // those where the branch around the instruction is not taken
  KL_HOW_BRANCH,  // a guarded bra: lanes that take it
  KL_HOW_TABLE,   // a branch by index
  KL_HOW_BARRIER, // lanes that name the same barrier as the first; the others come again
  KL_HOW_CALL,    // the same with the callee
  KL_HOW_WAIT,    // of a cluster: once it is over
} kl_how;

// An instruction.
typedef struct kl_site {
  const kl_ptx_instr *instr;
  uint8_t kind;  // kiln_profile_class
  uint8_t flops; // of a lane
  uint8_t use;   // kl_cache_use of global memory
  bool is_const; // .const
  bool is_param; // .param: of the kernel, or a function's
  bool in_loop;
  uint32_t movable; // number of a load that may sink + 1; 0: it may not
  uint32_t enters;  // of the first one of a block: sinks that end there, the first + 1; 0: none
  uint64_t warps, active, lanes, partial, divergent;
  kiln_access_counts *accesses[KILN_ACCESS_COUNT]; // NULL: none of that kind yet
} kl_site;

typedef struct kl_counted { // a function
  const kl_code *code;
  uint8_t *how; // kl_how by op
  kl_site *sites;
  kl_blocks blocks;
} kl_counted;

// A block that a load may go to, and what the load costs there, by the lanes that come (sink.c).
typedef struct kl_sink {
  uint32_t function, instr, block;
  uint32_t next; // of the same block, + 1; 0: the last
  kiln_access_counts counts;
} kl_sink;
typedef struct kl_pending kl_pending;

typedef struct kl_count {
  kl_observer observer; // first
  kl_ctx *cx;
  kl_arena *arena;
  const kl_gpu *gpu;
  kl_counted *functions; // by function of the module
  uint32_t nfunctions;
  kl_caches caches;
  kl_footprint footprint;
  kl_hot hot;
  VEC(kl_sink) sinks;
  uint32_t nmovable;
  void *free_pending; // of blocks that are over
} kl_count;

// Lanes of a warp that access memory of one kind: by rising address.
typedef struct kl_request {
  uint32_t n;
  uint64_t at[KL_LANES];
  uint32_t bytes[KL_LANES];
  uint64_t asked;
  uint32_t width; // of a lane, by the instruction
} kl_request;

kiln_profile_class kl_class_of(kl_isa_index *isa, const kl_ptx_instr *i);
unsigned kl_flops_of(kiln_profile_class c, const kl_ptx_instr *i); // of a lane

// Adds a request of these lanes of a warp to the counts; `size`: bytes of each lane, or NULL: all have `width`. Buffers
// and caches are touched unless c and s are NULL. Addresses of shared memory are those in the block's own, of other
// blocks beyond 2^32.
void kl_count_request(kl_count *c, const kl_site *s, const kl_warp *w, kiln_access_counts *a, const uint64_t *at,
                      uint32_t mask, uint32_t width, const uint32_t *size);
// The observer's.
void kl_count_access(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p);

// Loads that may go behind a branch (sink.c). Finds those of a function; `loop`: of kl_find_loops.
void kl_sinks_find(kl_count *c, kl_counted *f, const uint32_t *loop);
// The observer's, where there are any.
void kl_sinks_begin(kl_observer *o, kl_block *b);
void kl_sinks_end(kl_observer *o, kl_block *b);
// A warp's lanes do such a load; lanes come to a block, whose first sink this is; what they have loaded goes no
// further.
void kl_sinks_load(kl_count *c, const kl_site *s, const kl_warp *w, kiln_access_kind kind, const uint64_t *at,
                   uint32_t width);
void kl_sinks_enter(kl_count *c, const kl_warp *w, uint32_t sink, uint32_t lanes);

// --- afterwards -----------------------------------------------------------------------------------------------------

// A sink of a line of the profile.
typedef struct kl_sunk {
  uint32_t line, block;
  kiln_access_counts counts;
  bool used; // ptxas took it
} kl_sunk;

struct kiln_profile {
  kl_ctx *cx;
  kl_arena arena;
  kiln_profile_info info;
  kiln_profile_line *lines;  // info.lines, to be changed
  uint32_t *ids, most_id;    // by line of the profile: its number in the sources; the highest there is
  uint32_t *blocks, nblocks; // by line: its block, among those of all functions
  kl_sunk *sunk;             // by rising line
  size_t nsunk;
  const kl_gpu *gpu;
  uint32_t ptx_registers;
  char *source, *loops; // for ptxas; loops NULL: there are none
  size_t source_size, loops_size;
  bool calls; // functions
};

// What a SASS opcode is (disasm.c): its class, KILN_CLASS_COUNT if none, and of its ways:
enum {
  KL_SASS_ACCESSES = 1, // memory, but for constants
  KL_SASS_STAYS = 2,    // where it stands, as others see what it does, or lanes meet there
  KL_SASS_JUMPS = 4,    // what is behind it may run less often
};
typedef struct kl_sass_opcode {
  uint8_t kind, is;
} kl_sass_opcode;
kl_sass_opcode kl_sass_opcode_of(kl_str opcode);
// The code of a function: its instructions, to be filled; zero before.
typedef struct kl_sass_code {
  kl_str name;
  kl_sass_instruction *instructions;
  uint32_t n, named; // instructions; those that the text has
} kl_sass_code;
// Fills them from nvdisasm's text, but for their lines, and sorts them. False: it has not all of them.
bool kl_sass_read(const char *text, kl_sass_code *codes, size_t n);
// Counts all that is known of SASS from what was read of it; of `loops` nothing was where `lines` is NULL (issues.c).
void kl_sass_take(kiln_profile *p, const kl_cubin *code, const kl_cubin *loops);
void kl_add_access(kiln_access_counts *to, const kiln_access_counts *from); // of the same kind

// The texts to be assembled (sass.c).
void kl_sass_sources(kiln_profile *p, const kl_ptx_module *ptx);
// By instruction: the innermost loop, from a label to a branch back to it, that it is in: the one behind the label,
// + 1, or 0; and whether it is behind such a label. `loop` may be NULL; the other is zero before.
void kl_find_loops(kl_ctx *cx, const kl_ptx_func *f, uint32_t *loop, uint8_t *header);
// Occupancy and time, from what is known (predict.c).
void kl_predict(kiln_profile *p);

#endif
