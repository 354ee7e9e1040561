// kiln: from a module to an artifact: PTX for a GPU, or object code for the host.
#ifndef KILN_COMPILE_H
#define KILN_COMPILE_H

#include <kiln/artifact.h>
#include <kiln/sparse.h>

#ifdef __cplusplus
extern "C" {
#endif

// What to keep beside the code itself.
enum {
  KILN_KEEP_PLAN = 1,    // the plan as text
  KILN_KEEP_LLVM = 2,    // LLVM IR as built, before any pass; of many kernels several modules, one behind the other
  KILN_KEEP_EXPLAIN = 4, // what was fused, why plans are as they are, and what they cost
  KILN_KEEP_HLO = 8,     // the module as it was compiled
};

// Flattened parameter and result of what is compiled that may be the same buffer.
typedef struct kiln_alias {
  uint32_t parameter, result;
} kiln_alias;

typedef struct kiln_compile_params {
  size_t struct_size;
  const char *target;      // "sm_70" ... "sm_121", "sm_90a", "sm_100f"; "host" for this machine; NULL: that of
                           // `device`, or "sm_90"
  const char *fusion;      // name of the one fusion of ENTRY to compile; NULL: all
  uint32_t argument_align; // bytes that every argument is aligned to, a power of two, at least an element's (a complex
                           // element's part's) size; less than 16 makes accesses narrower; 0: 16
  uint32_t keep;           // KILN_KEEP_*
  // Called with the IR of each module of kernels as built (pass "build") and after each pass. May be NULL. The text
  // lives for the call only.
  void (*after_pass)(void *user, const char *kernel, const char *pass, const char *ir);
  void *user;
  // Pairs beside those of the module's input_output_alias. Each parameter and result may have one partner, of the same
  // size and element width. A pair is refused where a kernel could read what has been overwritten (a may-alias of the
  // module is dropped with a warning then). A result that is a parameter but for what a dynamic-update-slice or scatter
  // changes is paired with it unasked where nothing else reads the parameter.
  const kiln_alias *aliases;
  size_t alias_count;
  bool scalars_by_value; // rank-0 integer parameters are kernel arguments themselves; not on the host
  // Not 0: the number of rows is given at run time, as a count of the first result's elements, from 0 to this. Rows are
  // those of the results' slowest dimension in memory; whatever size that has in the module, a launch may have any
  // other. The fusion must make row i of its results of row i of those parameters that have rows, which lie one behind
  // the other, and of others. Each row has the bits that a kernel of any other size gives it. The count is a multiple
  // of the first result's elements in a row; up to 2^30 it costs nothing, more may need 64-bit indices. Where 0 is
  // given and that dimension is dynamic in the module (`f32[<=4096,64]`), its bound is meant.
  int64_t max_count;
  bool programmatic; // kernels may be launched while the one before still runs, and wait for it; sm_90 and newer
  const struct kiln_device_info *device; // the GPU to compile for (kiln/cuda.h); NULL: any of the target
  kiln_numerics numerics;                // STRICT, or what GPUs do faster
  bool lineinfo; // PTX names the line of the module's text that each instruction comes from; the code stays the same
  bool deterministic; // the same bits every time for scatter, too: updates whose order shows are made one after the
                      // other, by a slower kernel
  // Of leaves with an encoding: how long their arrays are. What is compiled is kiln_module_densify's module, whose
  // leaves are the artifact's slots, and which other parameters speak of. No run-time count.
  const kiln_sparse_slot *sparse_slots;
  size_t sparse_slot_count;
  // Not 0: a power of two below argument_align. The artifact also has kernels for buffers that are aligned to no more
  // than this (kiln_artifact_less), which are launched where one is not aligned to argument_align. They take as long to
  // compile and to load as the others. On the host any buffer does, and this is nothing.
  uint32_t least_align;
  // Code is made in a process of its own, so that nothing that LLVM does there reaches this one: a crash is INTERNAL,
  // with the signal. The first compilation of a context starts it, and it lives until the context ends; the same
  // artifact and findings come of it. No after_pass.
  bool isolate;
  double time_limit;  // of `isolate`: seconds, after which the process is killed: CANCELLED; 0: none
  const char *worker; // of `isolate`: the program; NULL: $KILN_WORKER, or kiln-worker beside the library
                      // (kiln/worker.h)
  uint32_t threads;   // of the CPU that make code of many kernels, the caller's among them; 0: one for each core. The
                      // same artifact and findings come of any number. A few kernels take the caller's alone, and so
                      // does after_pass
  // Each kernel has launches of its own, also where several could be one, in less time; and loops of ENTRY whose rounds
  // are several launches stay so, and are steps of the artifact, also where one block would run all of their rounds in
  // one launch: for GPUs that others are to have meanwhile, or that end what takes long. The same bits.
  bool separate_launches;
} kiln_compile_params;

// Compiles ENTRY: each `fusion` instruction of it is a kernel, and other instructions are put into fusions by what
// moving and making values costs; an ENTRY without fusions that one kernel can make is one kernel. A result that no
// kernel writes (a parameter, or another result once more) gets a kernel that copies it. The artifact is the caller's.
// Errors: INVALID (unknown target, no such fusion, no such alias), UNSUPPORTED (a finding for each op that is not
// compiled, with the reason), MEMORY.
KILN_API kiln_status kiln_compile(kiln_context *cx, const kiln_module *m, const kiln_compile_params *params,
                                  kiln_artifact **out);

// Would kiln_compile succeed? The same status and findings, by plans alone: nothing is generated. With `fusion` set
// (kiln_module_fusions lists them), says so of that one.
KILN_API kiln_status kiln_compile_check(kiln_context *cx, const kiln_module *m, const kiln_compile_params *params);

#ifdef __cplusplus
}
#endif
#endif
