// The machine that executes PTX: memory, kernels made ready, launches. What the driver's entry points stand on.
//
// Warps run 32 lanes in lockstep as long as these agree on where to go; a warp whose lanes part is several strands,
// which are scheduled fairly and join where they meet. So lockstep is never promised, and a lane that waits for another
// one is served. Everything is deterministic: the same launch gives the same bits, whatever the number of workers,
// unless the kernel has a race.
#ifndef KL_MACHINE_H
#define KL_MACHINE_H

#include "sim/ptx/ptx.h"

// --- addresses ----------------------------------------------------------------------------------------------------

// Generic addresses. Windows of 4 GiB for what belongs to a block or thread; all memory of the device lies above. An
// address below the first window belongs to nothing.
#define KL_WINDOW        ((uint64_t)1 << 32)
#define KL_SHARED_WINDOW (1 * KL_WINDOW)
#define KL_LOCAL_WINDOW  (2 * KL_WINDOW)
#define KL_PARAM_WINDOW  (3 * KL_WINDOW)
#define KL_CODE_WINDOW   (4 * KL_WINDOW) // addresses of functions; nothing can be read there
#define KL_DEVICE_MEMORY ((uint64_t)1 << 40)
// A block of a cluster sees the shared memory of block r at r + 1 times this in its own window, its own also at 0.
#define KL_SHARED_RANK   ((uint64_t)1 << 24)
#define KL_FUNCTION_STEP 16

// --- memory of the device -----------------------------------------------------------------------------------------

typedef enum kl_region_kind {
  KL_REGION_USER,     // allocated by the caller
  KL_REGION_VARIABLE, // .global of a module
  KL_REGION_CONST,    // .const of a module: kernels may not write it
  KL_REGION_HOST,     // bytes of the caller's, made visible
} kl_region_kind;

typedef struct kl_region {
  uint64_t base, size;
  char *host;
  uint8_t kind;       // kl_region_kind
  bool freed;         // its addresses are never given again, so that a late use is told from another one
  uint32_t tag;       // the caller's own
  kl_str name;        // of a variable; in its module's arena
  uint8_t *undefined; // of each byte the bits that have no value, ^ flip; NULL: flip everywhere
  uint8_t flip;       // 0: defined to begin with; 0xff: not
} kl_region;

// Regions, by rising base. Changed by the caller's calls only, never while a kernel runs.
typedef struct kl_memory {
  kl_ctx *cx;
  VEC(kl_region) regions;
  size_t freed;  // of these: the newer ones of all that were, so that a late use is noticed
  uint64_t next; // no region begins below
  uint64_t in_use, limit;
} kl_memory;

void kl_memory_init(kl_memory *m, kl_ctx *cx, uint64_t limit);
void kl_memory_free(kl_memory *m);
// Reserves `size` bytes, which read as zero and take no memory before they are written; aligned to 512 bytes, far from
// all others. 0 bytes are not allowed. OUT: MEMORY.
kiln_status kl_memory_alloc(kl_memory *m, uint64_t size, kl_region_kind kind, kl_str name, uint64_t *base);
// Makes bytes of the caller's visible, at the host's own address, or at another one where that is below all memory of
// the device or taken. They stay the caller's, and must stay until they are released. OUT: MEMORY.
kiln_status kl_memory_share(kl_memory *m, void *host, uint64_t size, uint64_t *base);
// Notes something for the caller about the region that begins at `base`; new ones have 0.
void kl_memory_tag(kl_memory *m, uint64_t base, uint32_t tag);
// Gives back what begins at `base`; false if nothing does.
bool kl_memory_release(kl_memory *m, uint64_t base);
// The region that holds `address`, freed ones as well, or NULL.
const kl_region *kl_memory_find(const kl_memory *m, uint64_t address);
// The region nearest to an address that lies in none, and how far: bytes behind its end, or negative before its begin.
const kl_region *kl_memory_nearest(const kl_memory *m, uint64_t address, int64_t *distance);
// The host's address of bytes that lie in one region that is not freed, or NULL.
char *kl_memory_at(const kl_memory *m, uint64_t address, uint64_t size);

// Which bits of the device's memory have a value, as the check of undefined values sees it. What the caller allocates
// has none to begin with; variables, constants and the host's bytes have. The caller says what it writes; what kernels
// write is noted by launches that check it. Bytes that lie in no region are left out.
void kl_memory_define(kl_memory *m, uint64_t address, uint64_t size);
void kl_memory_undefine(kl_memory *m, uint64_t address, uint64_t size);
void kl_memory_define_all(kl_memory *m);                                           // somebody may have written anything
void kl_memory_define_as(kl_memory *m, uint64_t to, uint64_t from, uint64_t size); // a copy within the device
// The first of these bytes that has a bit without a value, and how many follow it; false if there is none.
bool kl_memory_find_undefined(const kl_memory *m, uint64_t address, uint64_t size, uint64_t *at, uint64_t *n);
// The bytes of kl_region.undefined, which then are there; NULL: no memory, and all of the region counts as defined.
uint8_t *kl_region_shadow(kl_region *r);

// --- where something lies ------------------------------------------------------------------------------------------

typedef enum kl_space { KL_SPACE_NONE, KL_SPACE_DEVICE, KL_SPACE_SHARED, KL_SPACE_LOCAL, KL_SPACE_PARAM } kl_space;

// What memory is made of.
typedef enum kl_piece_kind {
  KL_PIECE_NONE,
  KL_PIECE_VARIABLE,   // of a module or a function, or a parameter
  KL_PIECE_ALLOCATION, // of the device's memory
  KL_PIECE_ARGUMENT,   // the same, which a parameter of the kernel points into: `name`
  KL_PIECE_DYNAMIC,    // shared memory that the launch adds
  KL_PIECE_ALLOCA,     // local memory from alloca
} kl_piece_kind;
typedef struct kl_piece {
  uint8_t kind; // kl_piece_kind
  bool freed;
  uint64_t base, size; // in its space
  kl_str name;         // empty: it has none. As long as its module, or region
} kl_piece;

// Bytes of a space, and the piece of memory that they lie in or nearest to.
typedef struct kl_spot {
  uint8_t space;  // kl_space; NONE: a generic address that belongs to none
  uint32_t block; // of shared memory: the rank in the cluster + 1; 0: the thread's own block
  bool generic;   // the access had a generic address of the thread's own spaces
  uint64_t address, bytes;
  kl_piece piece;
} kl_spot;

typedef struct kl_launch kl_launch;
// Of the device's memory; `l`, which may be NULL, says what its parameters point to.
kl_spot kl_spot_in_memory(const kl_memory *m, const kl_launch *l, uint64_t address, uint64_t bytes);
// Appends ", 4 bytes at 0x48 of shared memory, 8 bytes behind the end of a (64 bytes at 0x0)".
void kl_spot_put(kl_sb *b, const kl_spot *s);
// Appends the piece alone: "a (64 bytes at 0x0)".
void kl_piece_put(kl_sb *b, const kl_piece *p);

// --- modules and kernels ------------------------------------------------------------------------------------------

// A module in memory: its variables have addresses. Kernels are decoded when first asked for.
typedef struct kl_loaded kl_loaded;
typedef struct kl_kernel kl_kernel;

kiln_status kl_load(kl_ctx *cx, kl_memory *m, const char *name, kl_str ptx, kl_loaded **out);
void kl_unload(kl_ctx *cx, kl_loaded *l);
const kl_ptx_module *kl_loaded_ptx(const kl_loaded *l);
// Address and size of a module's variable; false if there is none of that name.
bool kl_loaded_variable(const kl_loaded *l, kl_str name, uint64_t *address, uint64_t *bytes);

const kl_loaded *kl_kernel_module(const kl_kernel *k);
// Decodes an entry and all functions that it reaches. UNSUPPORTED: an instruction that the table does not know, by name
// and line; INVALID: operands that do not fit it. The kernel is the module's.
kiln_status kl_kernel_prepare(kl_ctx *cx, kl_loaded *l, kl_str entry, kl_kernel **out);

typedef struct kl_kernel_facts {
  kl_str name;
  uint32_t params;       // how many
  uint32_t param_bytes;  // of all
  uint32_t shared_bytes; // static
  uint32_t local_bytes;  // of a thread, without calls
  uint32_t registers;    // of 32 bits, as PTX has them at most at once: no hardware's number
  uint32_t max_threads;  // of a block, by .maxntid or .reqntid; 0: not said
  const kl_ptx_func *func;
} kl_kernel_facts;
kl_kernel_facts kl_kernel_describe(const kl_kernel *k);
// Where parameter i lies among the kernel's param_bytes.
void kl_kernel_param(const kl_kernel *k, uint32_t i, uint32_t *at, uint32_t *bytes);

// --- launches -----------------------------------------------------------------------------------------------------

typedef enum kl_fault_kind {
  KL_FAULT_NONE,
  KL_FAULT_ADDRESS, // no memory there, or not of this space
  KL_FAULT_MISALIGNED,
  KL_FAULT_READ_ONLY,
  KL_FAULT_STACK,   // calls too deep
  KL_FAULT_TARGET,  // an indirect branch or call to nowhere
  KL_FAULT_BARRIER, // no such barrier, or a count of threads that no warps make
  KL_FAULT_TRAP,
  KL_FAULT_DEADLOCK, // all threads of the blocks that run wait for one another
  KL_FAULT_TIME,     // more branches than allowed
  KL_FAULT_MEMORY,   // the host has none left for the block
} kl_fault_kind;

// How a function came to run: the calls that lead to it, the innermost first.
enum { KL_MOST_CALLS = 8 };
typedef struct kl_calls {
  uint32_t n;    // of these
  uint32_t more; // calls further out that are left away
  struct {
    const kl_ptx_func *func; // the caller
    const kl_ptx_instr *instr;
    uint32_t times; // it calls one within the other
  } of[KL_MOST_CALLS];
} kl_calls;

// What ended a launch. Of several the one of the lowest block, then the earliest.
typedef struct kl_fault {
  kl_fault_kind kind;
  const kl_ptx_func *func;
  const kl_ptx_instr *instr;
  uint32_t block[3], thread[3];
  uint64_t address; // of memory, as the access names it, or a branch's or call's target, or a barrier; 0: none
  kl_spot spot;     // of an access; bytes 0: of none
  kl_calls calls;
} kl_fault;

const char *kl_fault_text(kl_fault_kind kind); // in a few words
// Appends a line of the source as `.loc` has it, and where what it belongs to was inlined: "a.cu:7, inlined at
// a.cu:20"; nothing where it is not known. Without a module only the line.
void kl_source_put(kl_sb *b, const kl_ptx_module *m, kl_ptx_place at);
// Appends the calls: "; called in line 40 of g, called in line 81 of k"; nothing where there are none.
void kl_calls_put(kl_sb *b, const kl_ptx_module *m, const kl_calls *c);

// Of a grid's clusters, or blocks where there are none, by rising number: `run` neighbours from first on, from first +
// stride on, ..., `count` in all; count 0: all of the grid.
typedef struct kl_sample {
  uint64_t first, count, stride, run;
} kl_sample;

typedef struct kl_observer kl_observer;
struct kl_launch {
  const kl_kernel *kernel;
  uint32_t grid[3], block[3], cluster[3]; // cluster 0: as the kernel says, or none
  uint32_t dynamic_shared;
  const void *params;     // param_bytes of them
  bool cooperative;       // all blocks run at once
  unsigned workers;       // threads to run on; 0: as many as the machine has cores
  uint64_t shuffle;       // seed of another order of lanes, warps and blocks; 0: rising
  uint64_t perturb;       // seed of other values of approximations, within their bounds; 0: the nearest ones
  uint64_t most_branches; // backward branches and calls of a block's warps in all; 0: no limit
  kl_sample sample;       // which of them run; they see the whole grid
  bool shadows;           // frames have KL_SHADOW_ROOM behind their registers, for an observer
  kl_observer *const *observers;
  uint32_t nobservers;
};

// Runs a kernel to its end. INVALID: a launch that cannot be (sizes, a required block size), with a finding; DEVICE: a
// fault, described in *fault and as a finding.
kiln_status kl_launch_run(kl_ctx *cx, kl_memory *m, const kl_launch *l, kl_fault *fault);

#endif
