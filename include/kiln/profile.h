// kiln: what a kernel costs, counted on the simulator: instructions, memory accesses, caches; and what that takes on a
// GPU. docs/profiler.md says what each number means, which ones are exact and which are models.
#ifndef KILN_PROFILE_H
#define KILN_PROFILE_H

#include <kiln/sim.h>

#ifdef __cplusplus
extern "C" {
#endif

// What an instruction of PTX is. FMA, ADD and MULTIPLY are floating-point arithmetic; OTHER is the rest of its type:
// comparisons, minima, absolute values, divisions and roots that are no approximations.
typedef enum kiln_profile_class {
  KILN_CLASS_INTEGER,  // additions, shifts, logic, comparisons, selection, moves
  KILN_CLASS_MULTIPLY, // integer products and divisions
  KILN_CLASS_F32_FMA,
  KILN_CLASS_F32_ADD, // and subtract
  KILN_CLASS_F32_MULTIPLY,
  KILN_CLASS_F32_OTHER,
  KILN_CLASS_F64_FMA,
  KILN_CLASS_F64_ADD,
  KILN_CLASS_F64_MULTIPLY,
  KILN_CLASS_F64_OTHER,
  KILN_CLASS_HALF_FMA, // f16, bf16 and their pairs
  KILN_CLASS_HALF_ADD,
  KILN_CLASS_HALF_MULTIPLY,
  KILN_CLASS_HALF_OTHER,
  KILN_CLASS_CONVERT,
  KILN_CLASS_SPECIAL, // approximations: ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh
  KILN_CLASS_LOAD,    // of all spaces, kernel parameters among them; prefetches
  KILN_CLASS_STORE,
  KILN_CLASS_ATOMIC,
  KILN_CLASS_BRANCH,  // bra, brx.idx
  KILN_CLASS_CONTROL, // calls, returns, exits, the rest of control flow
  KILN_CLASS_BARRIER, // of blocks and clusters
  KILN_CLASS_FENCE,
  KILN_CLASS_WARP, // shuffles, votes, matches, reductions and barriers of a warp's lanes
  KILN_CLASS_COUNT,
} kiln_profile_class;
// "f32 fma"; NULL if there is no such class.
KILN_API const char *kiln_profile_class_name(kiln_profile_class c);

typedef enum kiln_access_kind {
  KILN_ACCESS_GLOBAL_LOAD,
  KILN_ACCESS_GLOBAL_STORE,
  KILN_ACCESS_GLOBAL_ATOMIC,
  KILN_ACCESS_LOCAL_LOAD, // PTX's .local; what ptxas spills is not seen here
  KILN_ACCESS_LOCAL_STORE,
  KILN_ACCESS_SHARED_LOAD,
  KILN_ACCESS_SHARED_STORE,
  KILN_ACCESS_SHARED_ATOMIC,
  KILN_ACCESS_CONSTANT, // kernel parameters and .const: requests, lanes, bytes and widths only
  KILN_ACCESS_COUNT,
} kiln_access_kind;
KILN_API const char *kiln_access_kind_name(kiln_access_kind k);

// A request is one instruction of one warp with at least one lane.
typedef struct kiln_access_counts {
  kiln_access_kind kind;
  uint64_t requests, lanes;
  uint64_t bytes;         // that lanes ask for
  uint64_t unique_bytes;  // different ones of each request, summed
  uint64_t width[6];      // requests by bytes of a lane: 1, 2, 4, 8, 16, 32
  uint64_t sectors;       // of 32 bytes: different ones of each request, summed; not of shared memory
  uint64_t ideal_sectors; // the fewest that hold so many unique bytes, request by request
  uint64_t l1_hits;       // of these sectors, by the model of the caches
  uint64_t l2_hits;       // of those that were no L1 hits
  uint64_t wavefronts;    // of shared memory: passes over its 32 banks
  uint64_t ideal_wavefronts;
  uint64_t remote;      // of shared memory: requests with a lane in another block of the cluster
  uint64_t addresses;   // of atomics: different ones of each request, summed
  uint32_t most_on_one; // of atomics: lanes of one request on one address, at most
} kiln_access_counts;

// An instruction of the PTX text.
typedef struct kiln_profile_line {
  uint32_t line; // of the text, from 1
  const char *function, *text;
  kiln_profile_class kind;
  bool in_loop;                       // between a label and a branch back to it
  uint64_t warps;                     // warps issued it so often, those whose guard holds in no lane included
  uint64_t active;                    // lanes that were there
  uint64_t lanes;                     // lanes whose guard held
  uint64_t partial;                   // of the issues: lanes of the warp that had not exited were missing
  uint64_t divergent;                 // of the issues: lanes went two ways
  const kiln_access_counts *accesses; // by kind, those that there are
  size_t access_count;
  uint32_t sass;          // instructions that ptxas made of it; see kiln_profile_assembly
  uint64_t sass_executed; // issues of these by warps; see kiln_profile_sass
} kiln_profile_line;

// Memory of the launch that the kernel touched.
typedef struct kiln_profile_buffer {
  uint64_t address, bytes;
  uint64_t read_bytes, written_bytes; // different ones, atomics counted as both
} kiln_profile_buffer;

typedef enum kiln_occupancy_limit {
  KILN_LIMIT_WARPS,
  KILN_LIMIT_BLOCKS,
  KILN_LIMIT_REGISTERS,
  KILN_LIMIT_SHARED,
  KILN_LIMIT_NONE, // no block fits
} kiln_occupancy_limit;

typedef struct kiln_occupancy {
  uint32_t registers;  // of a thread
  bool registers_real; // ptxas's; else those that the PTX holds at once
  uint32_t shared_bytes;
  uint32_t blocks, warps;       // of a multiprocessor at once
  uint32_t most_warps;          // that it can have
  uint32_t carveout, l1_bytes;  // shared memory of a multiprocessor, and what is left as L1
  kiln_occupancy_limit limiter; // the first in the order of the enumeration that allows no more
  double waves;                 // blocks of the grid over those that run at once
} kiln_occupancy;

// A row of the roofline: so much work at such a rate.
typedef struct kiln_profile_rate {
  const char *name; // "DRAM"
  const char *unit; // of the amount: "bytes"
  double amount;
  double rate;    // a second, of the whole GPU
  double seconds; // amount / rate, with the tail of the last wave where the row is a multiprocessor's own
} kiln_profile_rate;

typedef struct kiln_prediction {
  double seconds;
  const char *limiter; // name of the longest row
  const kiln_profile_rate *rates;
  size_t rate_count;
  const char *const *assumptions; // sentences
  size_t assumption_count;
} kiln_prediction;

// What ptxas made of the kernel.
typedef struct kiln_profile_sass {
  bool known;
  uint32_t registers, stack_bytes, spill_store_bytes, spill_load_bytes; // of a thread; spills 0 without a log
  uint32_t shared_bytes;                                                // static
  uint64_t instructions;                                                // in the code
  // Issues by warps: with nvdisasm's text each instruction as often as its basic block runs, else as often as its line
  // of the PTX.
  uint64_t executed;
  bool estimated; // there are loops or calls
} kiln_profile_sass;

typedef struct kiln_profile_info {
  size_t struct_size;
  const char *kernel, *gpu;
  uint32_t sm; // of the GPU: 90 for sm_90
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared_bytes;    // of a block, static and dynamic
  uint64_t blocks, sampled; // of the grid; of these ran
  // Counts are of the blocks that ran. Times `scale` they stand for the grid: exact where all ran, else an estimate.
  double scale;
  uint64_t warps[KILN_CLASS_COUNT], lanes[KILN_CLASS_COUNT];
  uint64_t all_warps, all_active, all_lanes, partial;
  uint64_t branches, divergent_branches;
  uint64_t f32_flops, f64_flops, half_flops; // an fma counts 2, each half of a pair its own
  kiln_access_counts accesses[KILN_ACCESS_COUNT];
  uint64_t hottest_address, hottest_requests; // of global atomics: the address that most requests change
  uint64_t dram_read, dram_written; // bytes, by the model of the caches: what L2 misses; what it has to write back
  uint64_t dram_dirty;              // bytes that it still holds at the end and will write back
  const kiln_profile_buffer *buffers;
  size_t buffer_count;
  const kiln_profile_line *lines; // of all functions that the kernel reaches, in the order of the text
  size_t line_count;
  kiln_profile_sass sass;
  kiln_occupancy occupancy;
  kiln_prediction prediction;
  bool sass_classified;                  // the texts of nvdisasm were given: of sass.executed
  uint64_t sass_warps[KILN_CLASS_COUNT]; // those of each class, by what the hardware's instruction is
  uint64_t sass_other;                   // and of none
  // As ptxas has it, where sass_classified: by line of `lines`, of those that access memory other than constants in how
  // many of its `warps` it still does. None: ptxas left it out, mostly as another one has the same value; fewer: it
  // went behind a branch. NULL: not known.
  const uint64_t *kept_warps;
  // accesses[] of what is left: of lanes that come to a branch that a load went to, else a line's counts times its
  // share
  kiln_access_counts kept[KILN_ACCESS_COUNT];
} kiln_profile_info;

typedef struct kiln_profile_params {
  size_t struct_size;
  const char *gpu; // "H100" if NULL; A100, H200, L40S, B200, RTX 4090
  // Of the grid's blocks (clusters, where there are some) run `run` neighbours from first on, from first + stride on,
  // ..., `count` in all; 0: all of the grid. A stride or run of 0 is 1; a run is no longer than the stride.
  uint64_t first, count, stride, run;
} kiln_profile_params;

// What was counted of one launch. Belongs to the caller; outlives simulator and context; one thread at a time.
typedef struct kiln_profile kiln_profile;

// Runs a kernel as kiln_sim_kernel_launch does, on one thread, and counts. The same launch gives the same counts.
// `params` and `fault` may be NULL. Errors: those of kiln_sim_kernel_launch; INVALID (no such GPU; blocks that the grid
// does not have; checks, which are a launch of their own). *out is NULL after a failure.
KILN_API kiln_status kiln_sim_kernel_profile(kiln_context *cx, kiln_sim_kernel *k, const kiln_sim_launch_params *launch,
                                             const kiln_profile_params *params, kiln_sim_fault *fault,
                                             kiln_profile **out);
KILN_API void kiln_profile_destroy(kiln_profile **p);
// Fills what *out has room for; texts and arrays live as long as the profile. kiln_profile_assembled changes them.
KILN_API kiln_status kiln_profile_describe(kiln_context *cx, const kiln_profile *p, kiln_profile_info *out);

// --- what ptxas makes of it -----------------------------------------------------------------------------------------

// The kernel's PTX with a .loc for each instruction, to be assembled with `ptxas -lineinfo -v`: as it is, or with loops
// that ptxas may not unroll, so that what a round executes can be told. Lives as long as the profile. *size may be
// NULL; NULL for the second where there are no loops.
KILN_API const char *kiln_profile_source(const kiln_profile *p, bool keep_loops, size_t *size);

typedef struct kiln_profile_assembly {
  size_t struct_size;
  const void *cubin, *loops_cubin; // of the two sources; the second may be NULL
  size_t cubin_size, loops_cubin_size;
  const char *log; // what ptxas -v said of the first, or NULL
  // What `nvdisasm -c` says of the two cubins, for the classes of their instructions; NULL: not known. Of both, or of
  // none.
  const char *sass, *loops_sass;
} kiln_profile_assembly;

// Takes registers, spills and the instructions of each line from ptxas's output, and predicts anew. Errors: INVALID (no
// cubin, one that is damaged, or that has not the kernel; a text that is not of the cubin): the profile stays as it
// was.
KILN_API kiln_status kiln_profile_assembled(kiln_context *cx, kiln_profile *p, const kiln_profile_assembly *assembly);

#ifdef __cplusplus
}
#endif
#endif
