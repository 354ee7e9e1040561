// kiln: NVIDIA GPUs simulated on this machine's CPU, from PTX.
//
// The simulator implements the CUDA driver's entry points. kiln_sim_resolve gives them to kiln_driver_open, so that
// kernels take the way that they take on a GPU; the library libkilnsim.so exports them under the driver's names and can
// be loaded in the place of libcuda.so.1 by any program of the driver API. docs/simulator.md says what it does and does
// not.
//
// There is one driver in a process, as with CUDA. Its functions are thread-safe.
#ifndef KILN_SIM_H
#define KILN_SIM_H

#include <kiln/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// What launches are checked for: bits. A launch under checks runs on one thread, and slower; what the kernel computes
// does not change.
typedef enum kiln_sim_check {
  // Addresses, alignment, stack, calls: faults, which end a launch with checks or without; and accesses that land
  // beyond
  // the variable that their address comes from.
  KILN_SIM_CHECK_MEMORY = 1,
  KILN_SIM_CHECK_UNDEFINED = 2, // values that were never written, where they decide an address, a branch or an output
  KILN_SIM_CHECK_UNWRITTEN = 4, // bytes of outputs that were not written
  KILN_SIM_CHECK_RACE = 8,      // accesses that nothing orders
  KILN_SIM_CHECK_SYNC = 16,     // barriers and shuffles in which threads are missing
  KILN_SIM_CHECK_ALL = 31,
} kiln_sim_check;

// A call that leads to where something was found.
typedef struct kiln_sim_call {
  const char *function;       // the caller
  uint32_t line, source_line; // of the call
  uint32_t times;             // that it calls one within the other: more than 1 in a recursion
} kiln_sim_call;

// One thing that checks found. Texts and lists live as long as what keeps the finding.
typedef struct kiln_sim_finding {
  size_t struct_size;
  const char *check;            // "memory", "undefined", "unwritten", "race" or "sync"
  const char *what;             // in a few words
  const char *text;             // all of it, in one line
  const char *kernel;           // that was launched; "": none
  uint32_t line, source_line;   // of the PTX text, and of the source by .loc; 0: none
  uint32_t block[3], thread[3]; // where it was first seen
  uint64_t address, bytes;      // of memory, in its space; 0: none
  uint32_t other_line;          // of the earlier one of two accesses
  uint32_t other_block[3], other_thread[3];
  uint64_t times;             // it was seen, by lane or word
  const char *function;       // that has the line: the kernel, or one that it calls
  const kiln_sim_call *calls; // that lead there, the innermost first; of very many the innermost ones
  size_t call_count;
  const char *source;   // the source's line with its file, and what it was inlined into: "a.cu:7, inlined at a.cu:20"
  const char *space;    // of the address: "global", "shared", "local", "param" or "" (none)
  const char *place;    // the variable or the allocation that has the address, or is nearest to it; "": none
  int64_t place_offset; // of the address from its begin, in bytes
  uint64_t place_bytes; // of all of it; 0: none
  uint64_t value, unknown; // what is there, or the address, or how many threads; and its bits without a value
  uint32_t value_bytes;    // 0: not known
  // Where bits without a value come from, in words, and the line that first took them from a register or from memory;
  // or the variable that an access is beyond of.
  const char *origin; // "": not known, or none of these
  uint32_t origin_line;
} kiln_sim_finding;

typedef struct kiln_sim_params {
  size_t struct_size;
  // Names of simulated GPUs, separated by commas: A100, H100, H200, L40S, B200, RTX 4090. NULL: what the environment's
  // KILN_SIM_GPU says, or H100. To be chosen before the driver is first used.
  const char *devices;
  uint32_t workers; // threads that a launch runs on; 0: KILN_SIM_WORKERS, or as many as there are cores
  uint64_t shuffle; // seed of another order of lanes, warps and blocks; 0: KILN_SIM_SHUFFLE, or by rising number
  // Seed of other values of approximations, within the bounds of docs/instructions.md; 0: KILN_SIM_PERTURB, or the
  // nearest values.
  uint64_t perturb;
  uint32_t checks; // kiln_sim_check bits: of all launches; 0: KILN_SIM_CHECK, or none
} kiln_sim_params;

// Sets how the driver's launches run, and which devices there are. What is zero stays as it is. Errors: INVALID (no
// such device; other devices after cuInit).
KILN_API kiln_status kiln_sim_configure(kiln_context *cx, const kiln_sim_params *params);

// What the checks of the driver's launches found, in the order in which it was first seen; also what the host copied
// from the device though nobody had written it. It stays until the process ends, 1000 findings at most. INVALID: there
// are fewer.
KILN_API size_t kiln_sim_finding_count(void);
KILN_API kiln_status kiln_sim_finding_get(kiln_context *cx, size_t i, kiln_sim_finding *out);

// For kiln_driver_params.resolve: the address of an entry point of the simulator, by name and version as
// cuGetProcAddress takes them (12040 is 12.4), or NULL. `user` is ignored.
KILN_API void *kiln_sim_resolve(void *user, const char *name, int version);

// --- PTX of one's own -----------------------------------------------------------------------------------------------

// Memory and modules, without a driver's ways: what `kiln sim` is made of. Everything belongs to the context that it
// was opened in, is called with that one (INVALID: another one), and serves one thread at a time. Its memory outlives
// the context's handle.
typedef struct kiln_simulator kiln_simulator;
KILN_API kiln_status kiln_simulator_open(kiln_context *cx, kiln_simulator **out);
// Ends its modules, kernels and memory as well.
KILN_API void kiln_simulator_close(kiln_simulator **s);

// `bytes` of the device's memory, which read as zero; *address is aligned to 256 bytes, and 0 after a failure. Errors:
// INVALID (no bytes), MEMORY.
KILN_API kiln_status kiln_simulator_alloc(kiln_context *cx, kiln_simulator *s, uint64_t bytes, uint64_t *address);
// False, and nothing happens, unless memory from kiln_simulator_alloc begins at `address`. It is not given again.
KILN_API bool kiln_simulator_free(kiln_simulator *s, uint64_t address);
// The bytes at an address of the device, to be read and written between launches; NULL unless all lie in one piece of
// memory. They stay where they are until that is freed. To the checks they have values from then on; memory that was
// never asked for has none.
KILN_API void *kiln_simulator_bytes(kiln_simulator *s, uint64_t address, uint64_t bytes);

// A module from PTX text, which is copied. `name` is for findings. Errors: INVALID (no PTX; findings with line and
// column), UNSUPPORTED (PTX that is known and refused), MEMORY.
typedef struct kiln_sim_module kiln_sim_module;
KILN_API kiln_status kiln_simulator_load(kiln_context *cx, kiln_simulator *s, const char *name, const char *ptx,
                                         size_t size, kiln_sim_module **out);
// Names of kernels, in the order of the text; NULL if i is out of range.
KILN_API const char *kiln_sim_module_kernel_at(const kiln_sim_module *m, size_t i);
// Address and size of a variable of the module in global or constant memory; false if there is none of that name.
KILN_API bool kiln_sim_module_variable(const kiln_sim_module *m, const char *name, uint64_t *address, uint64_t *bytes);

typedef struct kiln_sim_parameter {
  const char *name;
  const char *type; // of an element, as PTX has it: "u64"
  uint64_t bytes;   // of all
  uint32_t alignment;
} kiln_sim_parameter;

typedef struct kiln_sim_kernel kiln_sim_kernel;
typedef struct kiln_sim_kernel_info {
  const char *name;
  const kiln_sim_parameter *parameters;
  size_t parameter_count;
  uint32_t shared_bytes; // of a block, without the dynamic ones
  uint32_t local_bytes;  // of a thread
  uint32_t most_threads; // of a block; 0: as many as there may be
  uint32_t block[3];     // that every launch must have; 0: any
} kiln_sim_kernel_info;

// Makes a kernel ready; it is the module's. Errors: INVALID (no such kernel; operands that do not fit), UNSUPPORTED (an
// instruction that is not simulated, by name and line).
KILN_API kiln_status kiln_sim_module_kernel(kiln_context *cx, kiln_sim_module *m, const char *name,
                                            kiln_sim_kernel **out);
// Lives as long as the kernel.
KILN_API const kiln_sim_kernel_info *kiln_sim_kernel_describe(const kiln_sim_kernel *k);

typedef struct kiln_sim_range {
  uint64_t address, bytes;
} kiln_sim_range;

typedef struct kiln_sim_launch_params {
  size_t struct_size;
  uint32_t grid[3], block[3], cluster[3]; // 0: 1; a cluster of zeros: as the kernel says
  uint32_t dynamic_shared_bytes;
  const void *const *arguments; // by parameter: its bytes
  bool cooperative;             // all blocks run at once
  uint32_t workers;             // threads to run on; 0: as many as there are cores
  uint64_t shuffle;             // seed of another order of lanes, warps and blocks; 0: by rising number
  uint64_t most_branches;       // of a block: backward branches and calls of all warps; 0: no limit
  // Seed of other values of approximations, within the bounds of docs/instructions.md; 0: the nearest values.
  uint64_t perturb;
  uint32_t checks; // kiln_sim_check bits
  // For checks: bytes that the kernel must write, each range within one allocation, and bytes in which it may leave
  // what it likes. Elsewhere it need not write, but what it leaves must be made from values.
  const kiln_sim_range *outputs, *scratch;
  size_t output_count, scratch_count;
} kiln_sim_launch_params;

// What ended a launch.
typedef struct kiln_sim_fault {
  size_t struct_size;
  const char *what; // in words; NULL: the launch ended well
  uint32_t block[3], thread[3];
  uint32_t line;    // of the PTX text; 0: none
  uint64_t address; // where it is one of memory
} kiln_sim_fault;

// Runs a kernel to its end. `fault` may be NULL; `what` is static. Errors: INVALID (a launch that cannot be; arguments
// that are missing; checks that do not exist; outputs that lie nowhere), DEVICE (a fault in the kernel: a finding says
// what and where, and *fault tells the same; memory is as the threads left it. Or the launch ended well and checks
// found something: fault->what is NULL), MEMORY.
KILN_API kiln_status kiln_sim_kernel_launch(kiln_context *cx, kiln_sim_kernel *k, const kiln_sim_launch_params *params,
                                            kiln_sim_fault *fault);
// What the checks of the last launch found. INVALID: there are fewer. Texts live until the next launch.
KILN_API size_t kiln_simulator_finding_count(const kiln_simulator *s);
KILN_API kiln_status kiln_simulator_finding(kiln_context *cx, const kiln_simulator *s, size_t i, kiln_sim_finding *out);

#ifdef __cplusplus
}
#endif
#endif
