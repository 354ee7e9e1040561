// Code generation and loading. Private to src/jit.
#ifndef KL_JIT_H
#define KL_JIT_H

#include "lower/analysis/plan.h"
#include <kiln/run.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>

// Per-context state: target machines made so far.
typedef struct kl_machine_entry {
  uint32_t sm, ptx;
  char variant;
  LLVMTargetMachineRef tm;
} kl_machine_entry;

typedef struct kl_jit {
  VEC(kl_machine_entry) machines;
} kl_jit;

// The context's state, made at first use. Initialises LLVM's targets once per process; checks LLVM's version.
kiln_status kl_jit_get(kl_ctx *cx, kl_jit **out);

// "sm_90a" or "host" (NULL: sm_90). INVALID for anything else.
kiln_status kl_target_parse(kl_ctx *cx, const char *name, kl_target *out);

// A machine for the target at a PTX version; owned by the context. For the host `ptx` is ignored.
kiln_status kl_machine_get(kl_ctx *cx, const kl_target *t, uint32_t ptx, LLVMTargetMachineRef *out);
// Triple and data layout of a target; free both with LLVMDisposeMessage.
kiln_status kl_machine_layout(kl_ctx *cx, const kl_target *t, char **triple, char **layout);

typedef void (*kl_after_pass)(void *user, const char *kernel, const char *pass, const char *ir);

// Runs our passes, checks the table and generates code: PTX text, or a host object. The module is consumed either way.
// The buffer is the caller's (LLVMDisposeMemoryBuffer).
kiln_status kl_codegen(kl_ctx *cx, LLVMContextRef llcx, LLVMModuleRef m, const kl_target *t, const char *name,
                       kl_after_pass after, void *user, LLVMMemoryBufferRef *out);

// Turns an LLVMErrorRef (consumed) into a status; `doing` says what was attempted.
kiln_status kl_llvm_error(kl_ctx *cx, LLVMErrorRef e, const char *doing);

// What the host needs to run one launch.
typedef struct kl_host_launch {
  int64_t iterations; // of the main body
  bool any;           // there is something to run
} kl_host_launch;

// A result that no kernel writes: it is a parameter, or a result that another one repeats.
typedef struct kl_copy {
  kiln_slot from;
  uint32_t result;
} kl_copy;

// An artifact's launches and buffers, in an arena.
typedef struct kl_program {
  uint32_t nlaunches, ntemps, ncopies, nparams, nresults;
  kiln_launch *launches;
  int64_t *temp_bytes;
  kl_copy *copies;
} kl_program;
void kl_program_copy(kl_program *p, kl_arena *arena, const kiln_artifact *a);
// Where temporary i begins in one block of scratch memory; the number of temporaries gives its size.
uint64_t kl_scratch_offset(const int64_t *temp_bytes, uint32_t i);

// A parameter or result as the caller hands it over. No bytes: nothing looks at it.
typedef struct kl_interface_buffer {
  int64_t bytes;
  uint32_t align;
  bool output;
} kl_interface_buffer;
// Parameters, then results: nparams + nresults entries.
void kl_program_interface(const kl_program *p, kl_interface_buffer *out);

struct kiln_artifact {
  kl_ctx *cx; // its own
  kl_arena arena;
  char target[16];
  bool host;
  uint32_t nlaunches;
  kiln_launch *launches;
  kl_host_launch *host_launches;
  void *object; // host: an object file with all kernels
  size_t object_size;
  uint32_t ntemps;
  int64_t *temp_bytes;
  uint32_t ncopies;
  kl_copy *copies;
  uint32_t nparams, nresults;
  char *text[3]; // by kiln_text_kind
  size_t text_size[3];
};

#endif
