// kiln: what compilation gives: code, and the manifest that says how to launch it.
#ifndef KILN_ARTIFACT_H
#define KILN_ARTIFACT_H

#include <kiln/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

// An immutable result of compilation, independent of the context that made it. Thread-safe.
typedef struct kiln_artifact kiln_artifact;

KILN_API void kiln_artifact_destroy(kiln_artifact **a);

typedef enum kiln_text_kind {
  KILN_TEXT_PTX,  // the kernels' PTX, one module
  KILN_TEXT_PLAN, // needs KILN_KEEP_PLAN
  KILN_TEXT_LLVM, // needs KILN_KEEP_LLVM
  // What the kernels are to do and what that costs, counted from their plans: in words, and as a JSON array of an
  // object for each plan. Need KILN_KEEP_EXPLAIN.
  KILN_TEXT_EXPLAIN,
  KILN_TEXT_EXPLAIN_JSON,
  KILN_TEXT_HLO, // the module as it was compiled, each fusion of ENTRY a kernel; needs KILN_KEEP_HLO
} kiln_text_kind;
// The same for buffers of less alignment, where that was asked for (least_align in kiln/compile.h), else NULL. Its
// scratch memory is the same: sizes, zeros and constants are those of both. A kernel (kiln/cuda.h) has both, and
// launches what the buffers allow; who launches by the manifest chooses himself. Lives as long as the artifact.
KILN_API const kiln_artifact *kiln_artifact_less(const kiln_artifact *a);

// NUL-terminated text that lives as long as the artifact; NULL if it was not kept or the target has none (PTX on the
// host).
KILN_API const char *kiln_artifact_text(const kiln_artifact *a, kiln_text_kind kind, size_t *size);

// --- the manifest ---------------------------------------------------------------------------------------------------
//
// All of an artifact's interface in one struct: who launches the kernels, here or elsewhere, needs nothing else.

#define KILN_NO_SLOT UINT32_MAX

// What a slot is of a parameter or result: all of it, or one of the arrays that a tensor with an encoding is stored in
// (kiln/sparse.h).
typedef enum kiln_slot_role {
  KILN_SLOT_ARRAY,
  KILN_SLOT_POSITIONS,
  KILN_SLOT_COORDINATES,
  KILN_SLOT_VALUES,
  KILN_SLOT_COUNTS, // of a result: how many elements its arrays have to have, and whether it can be stored
} kiln_slot_role;

// A buffer of the caller: one flattened parameter or result (tuples depth first). Elements are packed, in the layout
// that the module gives the buffer (of one fusion picked out: its operand's or its own in ENTRY); those of less than 8
// bits share bytes, the first in the low bits.
typedef struct kiln_slot {
  bool result;
  uint32_t index;       // among the flattened parameters, or results
  const char *name;     // of the parameter or of the value that is returned; "p{1,0}" for an array inside a tuple
  kiln_array_type type; // with a run-time count: as in the module
  uint8_t minor_to_major[KILN_MAX_RANK]; // its dimensions, the one whose elements are neighbours first
  const char *layout;                    // as HLO text, with tiles and all: "{1,0}", "{1,0:T(8,128)}"; "" for a token
  int64_t bytes;                         // of the buffer; with a run-time count: of the largest one
  uint32_t align;                        // of the buffer's address in bytes, a power of two
  bool counted;                          // holds as many rows as a launch is given, not as many as `type` says:
  int64_t row;                           // so many elements for each count_unit of the count
  bool by_value;                         // a rank-0 integer that is passed itself, not its address
  uint32_t alias; // the slot that may be the same buffer, from the first byte to the last; KILN_NO_SLOT. It may be
                  // another one, too: kernels are right either way
  bool donated;   // the module, or who compiled it, has asked for the alias
  kiln_slot_role role;
  uint32_t leaf, level; // of the module as it was given: the parameter's or result's leaf; of positions and coordinates
                        // the level
} kiln_slot;

typedef enum kiln_argument_kind {
  KILN_ARGUMENT_SLOT,    // the address of a slot's buffer, or its value
  KILN_ARGUMENT_SCRATCH, // an address inside the scratch memory, its constants among it
  KILN_ARGUMENT_COUNT,   // the run-time element count, of the first result, 64 bits
} kiln_argument_kind;

// One parameter of a kernel, 8 bytes; the low ones count where the parameter is narrower.
typedef struct kiln_argument {
  kiln_argument_kind kind;
  uint32_t slot;   // of SLOT
  uint64_t offset; // of SCRATCH: bytes from its beginning
  bool output;     // what is behind the address is written
} kiln_argument;

// Results that have an alias may be the same buffer as it, or another one. A launch may be for one of these alone.
typedef enum kiln_when {
  KILN_WHEN_ALWAYS,
  KILN_WHEN_APART,    // unless each result that is among its arguments and has an alias is the same buffer as that
  KILN_WHEN_IN_PLACE, // only if each is
} kiln_when;

typedef struct kiln_launch {
  const char *kernel;            // entry name in the PTX
  kiln_when when;                // to launch it; else it is left out
  uint32_t grid[3], block[3];    // grid[0] 0: zero elements, launch nothing
  uint32_t cluster[3];           // blocks of a cluster; 1, 1, 1: no clusters
  uint32_t shared_bytes;         // static, in the code
  uint32_t dynamic_shared_bytes; // for the launch to ask for
  bool programmatic;             // waits by itself for the launch before: may be launched while that one runs
  uint32_t vector_bytes;         // widest memory access of a thread
  uint32_t lanes, rest_lanes; // elements of a thread: of whole blocks, and of the blocks behind them; 0 where they vary
  int64_t elements;           // of the largest result; with a run-time count: as in the module
  int64_t bytes;              // compulsory traffic: every input and output once
  size_t argument_count;
  const kiln_argument *arguments; // in the order of the kernel's parameters
  // With a run-time count n, grid[0] is (whole + rest) * count_blocks, where whole = n / count_whole and
  // rest = ceil((n - whole * count_whole) / count_rest); `grid` is that of the largest count. If count_whole is 0 it is
  // what `grid` says, for any n but 0, for which nothing is launched.
  int64_t count_whole, count_rest;
  uint32_t count_blocks;
} kiln_launch;

// Launches one after the other, or a loop of steps, or some of them.
typedef enum kiln_step_kind {
  KILN_STEP_LAUNCHES, // launches from `first` on, `count` of them
  // The `count` steps behind it, which say by a truth whether to go on: if it is one, the `body` steps behind those,
  // and all again.
  KILN_STEP_WHILE,
  KILN_STEP_REPEAT, // the `body` steps behind it, `times` times
  // One of `count` branches, which are the `body` steps behind it: an s32 says which, counted from 0; if there is none
  // of this number, the last. Or a truth: the first if it is one, else the second.
  KILN_STEP_BRANCH,
  KILN_STEP_CASE, // one branch, its first step: the `body` steps behind it
} kiln_step_kind;

typedef struct kiln_step {
  kiln_step_kind kind;
  uint32_t condition_bytes; // of WHILE and BRANCH: 1, a truth, which is a byte that is not 0; 4, an s32
  size_t first, count, body;
  uint64_t times;
  kiln_argument condition; // of WHILE and BRANCH: where that lies, in scratch memory or a slot's buffer; of a slot that
                           // is passed by value, the value itself
} kiln_step;

typedef struct kiln_manifest {
  size_t struct_size;
  const char *kiln_version;     // of the library that compiled it
  const char *module;           // its name
  const char *fusion;           // the one of ENTRY that was picked; NULL: all
  uint8_t hash[KILN_HASH_SIZE]; // of the module's contents: kiln_module_hash
  const char *target;
  uint32_t ptx_version; // 80 for 8.0; 0: the target has none
  int driver_version;   // least one that reads the code, as kiln_driver_version gives it: 12000 for CUDA 12.0; or 0
  size_t parameter_count, result_count;
  const kiln_slot *slots; // all parameters, then all results
  size_t launch_count;
  const kiln_launch *launches; // in order of execution
  uint64_t scratch_bytes; // memory that the launches need beside the buffers; what is in it before does not matter,
  uint64_t scratch_zero_bytes; // but for the first so many bytes: zero before the first launch, and zero again after it
  uint32_t scratch_align;
  bool counted;           // launches take an element count,
  int64_t max_count;      // from 0 to so many,
  int64_t count_unit;     // a multiple of so many
  kiln_numerics numerics; // as compiled
  // Constants too large to be part of the code: so many bytes, to be copied into the scratch memory behind those that
  // are zero, before the first launch. No launch changes them.
  uint64_t constant_bytes;
  const void *constants;
  // What to do, where it is more than all launches one after the other, which is what no steps mean: then launches are
  // in the order of their steps, and each may be done many times.
  size_t step_count;
  const kiln_step *steps;
} kiln_manifest;

// Lives as long as the artifact.
KILN_API const kiln_manifest *kiln_artifact_manifest(const kiln_artifact *a);

#ifdef __cplusplus
}
#endif
#endif
