// Code generation and loading. Private to src/jit.
#ifndef KL_JIT_H
#define KL_JIT_H

#include "lower/plan/plan.h"
#include <kiln/run.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/TargetMachine.h>

// Per-context state: target machines made so far.
typedef struct kl_machine_entry {
  uint32_t sm, ptx;
  char variant;
  bool seldom;
  LLVMTargetMachineRef tm;
} kl_machine_entry;

typedef struct kl_jit {
  VEC(kl_machine_entry) machines;
  struct kl_worker *worker; // compiles in a process of its own (apart/); NULL: none yet
} kl_jit;
void kl_worker_end(kl_ctx *cx, struct kl_worker **w);

// The context's state, made at first use. Initialises LLVM's targets once per process; checks LLVM's version.
kiln_status kl_jit_get(kl_ctx *cx, kl_jit **out);

// "sm_90a" or "host" (NULL: sm_90). INVALID for anything else.
kiln_status kl_target_parse(kl_ctx *cx, const char *name, kl_target *out);

// A machine for the target at a PTX version; owned by the context. For the host `ptx` is ignored. seldom: what it
// generates on the host is run so seldom that little work is worth it; the bits are the same.
kiln_status kl_machine_get(kl_ctx *cx, const kl_target *t, uint32_t ptx, bool seldom, LLVMTargetMachineRef *out);
// Triple and data layout of a target; free both with LLVMDisposeMessage.
kiln_status kl_machine_layout(kl_ctx *cx, const kl_target *t, char **triple, char **layout);

typedef void (*kl_after_pass)(void *user, const char *kernel, const char *pass, const char *ir);

// Runs our passes, checks the table and generates code: PTX text of version *ptx (80 for 8.0), or a host object (0).
// The module is consumed either way. The buffer is the caller's (LLVMDisposeMemoryBuffer).
kiln_status kl_codegen(kl_ctx *cx, LLVMContextRef llcx, LLVMModuleRef m, const kl_target *t, bool seldom,
                       const char *name, kl_after_pass after, void *user, uint32_t *ptx, LLVMMemoryBufferRef *out);

// Turns an LLVMErrorRef (consumed) into a status; `doing` says what was attempted.
kiln_status kl_llvm_error(kl_ctx *cx, LLVMErrorRef e, const char *doing);

// An object file.
typedef struct kl_object {
  void *bytes;
  size_t size;
} kl_object;

// Loads objects, which are copied, into this process, as a library that sees none of the process's symbols: what they
// call must be their own. The JIT is the caller's (LLVMOrcDisposeLLJIT), also after a failure; NULL: there is none.
kiln_status kl_objects_load(kl_ctx *cx, const kl_object *objects, size_t n, LLVMOrcLLJITRef *jit,
                            LLVMOrcJITDylibRef *library);
kiln_status kl_object_look_up(kl_ctx *cx, LLVMOrcLLJITRef jit, LLVMOrcJITDylibRef library, const char *name,
                              uintptr_t *address);

// kiln_compile with kernels made as `strategy` says: for tests of them all.
struct kl_strategy;
kiln_status kl_compile_as(kl_ctx *cx, const kiln_module *m, const kiln_compile_params *params,
                          const struct kl_strategy *strategy, kiln_artifact **out);

// What the host needs to run one launch.
typedef struct kl_host_launch {
  int64_t iterations; // of the main body; with a run-time count: of the largest
  int64_t least;      // iterations that are worth a thread
  bool any;           // there is something to run
  bool flat;          // with a run-time count: iterations have whole counts, and a tail the rest
} kl_host_launch;

// What an artifact's loaded forms have in common: its manifest, copied so that the artifact may go before them.
enum { KL_SLOT_READ = 1, KL_SLOT_WRITTEN = 2 };
typedef struct kl_program {
  kiln_manifest manifest;
  uint8_t *use; // by slot: KL_SLOT_*; 0: nothing looks at it
  size_t most_arguments;
} kl_program;
void kl_copy_description(kl_arena *arena, kiln_manifest *f, kiln_slot *slots, size_t n); // its strings, into the arena
// Does it go by what lies where its condition does?
static inline bool kl_reads_condition(const kiln_step *s) {
  return s->kind == KILN_STEP_WHILE || s->kind == KILN_STEP_BRANCH;
}
void kl_program_make(kl_program *p, kl_arena *arena, const kiln_artifact *a);
// Are the caller's arrays of buffers there, as far as they are looked at?
kiln_status kl_program_arrays(kl_ctx *cx, const kl_program *p, const void *parameters, const void *results);
// Checks the buffers of a launch. at: by slot, the address, or the value where the slot goes by value. The message
// names slot and address.
kiln_status kl_program_check(kl_ctx *cx, const kl_program *p, const uint64_t *at, int64_t count, uint64_t scratch);
kiln_status kl_program_check_scratch(kl_ctx *cx, const kl_program *p, uint64_t scratch);
// Are the buffers aligned as the program wants them, as far as they are there?
bool kl_program_is_aligned(const kl_program *p, const uint64_t *parameters, const uint64_t *results, int64_t count);
uint64_t kl_program_argument(const kiln_argument *a, const uint64_t *at, int64_t count, uint64_t scratch);
// Is the launch to be done, with buffers at these addresses, by slot?
bool kl_program_launches(const kl_program *p, const kiln_launch *l, const uint64_t *at);
// Does what the manifest says: launches one after the other, loops and branches by what `read` finds where their
// conditions lie, `bytes` of it, which is called for no value that the caller has passed itself.
typedef struct kl_runner {
  void *user;
  kiln_status (*launch)(void *user, size_t launch);
  kiln_status (*read)(void *user, const kiln_argument *condition, void *to, uint32_t bytes);
} kl_runner;
// Does what the caller has passed say by itself which case a BRANCH step takes? *taken: its number among all steps.
bool kl_program_knows(const kl_program *p, const uint64_t *at, size_t step, size_t *taken);
double kl_seconds(void); // of a clock that goes on
kiln_status kl_program_run(const kl_program *p, const uint64_t *at, const kl_runner *r);
uint32_t kl_program_grid(const kl_program *p, const kiln_launch *l, int64_t count); // blocks; 0: nothing to launch

struct kiln_artifact {
  kl_ctx *cx;            // its own
  _Atomic uint32_t refs; // who has it: the caller, caches
  kl_arena arena;
  char target[16];
  bool host;
  kiln_manifest manifest;
  kiln_launch *launches;
  kl_host_launch *host_launches;
  kl_object *objects; // host: files with all kernels between them
  size_t object_count;
  char *text[6]; // by kiln_text_kind
  size_t text_size[6];
  kiln_artifact *less; // for buffers of less alignment; or NULL
};
// `less` becomes part of `a`, with scratch memory that is the same for both; after a failure it is the caller's.
kiln_status kl_artifact_join(kl_ctx *cx, kiln_artifact *a, kiln_artifact *less);
// The same artifact once more, to be destroyed as often.
kiln_artifact *kl_artifact_share(const kiln_artifact *a);

#endif
