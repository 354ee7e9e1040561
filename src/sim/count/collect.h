// What the files of this room share: the state of counting. Nobody else includes it.
#ifndef KL_COUNT_COLLECT_H
#define KL_COUNT_COLLECT_H

#include "sim/count/count.h"
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
  uint64_t warps, active, lanes, partial, divergent;
  kiln_access_counts *accesses[KILN_ACCESS_COUNT]; // NULL: none of that kind yet
} kl_site;

typedef struct kl_counted { // a function
  const kl_code *code;
  uint8_t *how; // kl_how by op
  kl_site *sites;
} kl_counted;

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

// Adds a request to the counts. Of global memory: touches buffers and caches. `local`: the number of the warp's own
// memory, for its place in the caches.
void kl_count_global(kl_count *c, kl_site *s, kiln_access_counts *a, const kl_request *r, uint32_t multiprocessor);
void kl_count_local(kl_count *c, kiln_access_counts *a, const kl_request *r, const uint64_t *lane_at, uint32_t mask,
                    uint32_t multiprocessor, uint32_t warp);
// Addresses are those in the block's shared memory, of other blocks beyond 2^32.
void kl_count_shared(kiln_access_counts *a, const uint64_t *at, uint32_t mask, uint32_t bytes);
void kl_count_atomic(kl_count *c, kiln_access_counts *a, const kl_request *r);
// The observer's.
void kl_count_access(kl_observer *o, kl_warp *w, const kl_sim_op *op, const kl_sim_access *m, const kl_places *p);

// --- afterwards -----------------------------------------------------------------------------------------------------

struct kiln_profile {
  kl_ctx *cx;
  kl_arena arena;
  kiln_profile_info info;
  kiln_profile_line *lines; // info.lines, to be changed
  uint32_t *ids, most_id;   // by line of the profile: its number in the sources; the highest there is
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
// By instruction: is it between a label and a branch back to it; is it the one behind such a label? Both zero before.
void kl_find_loops(kl_ctx *cx, const kl_ptx_func *f, uint8_t *in_loop, uint8_t *header);
// Occupancy and time, from what is known (predict.c).
void kl_predict(kiln_profile *p);

#endif
