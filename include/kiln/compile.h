// kiln: from a module to an artifact: PTX for a GPU, or object code for the host.
#ifndef KILN_COMPILE_H
#define KILN_COMPILE_H

#include <kiln/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

// What to keep beside the code itself.
enum {
  KILN_KEEP_PLAN = 1, // the plan as text
  KILN_KEEP_LLVM = 2, // LLVM IR as built, before any pass
};

typedef struct kiln_compile_params {
  size_t struct_size;
  const char *target;      // "sm_75" ... "sm_121", "sm_90a", "sm_100f"; "host" for this machine; NULL: "sm_90"
  const char *fusion;      // name of the one fusion of ENTRY to compile; NULL: all
  uint32_t argument_align; // bytes that every argument is aligned to, a power of two, at least an element's (a complex
                           // element's part's) size; less than 16 makes accesses narrower; 0: 16
  uint32_t keep;           // KILN_KEEP_*
  // Called with the IR of each kernel as built (pass "build") and after each pass. May be NULL. The text lives for the
  // call only.
  void (*after_pass)(void *user, const char *kernel, const char *pass, const char *ir);
  void *user;
} kiln_compile_params;

// An immutable result of compilation, independent of the context that made it. Thread-safe.
typedef struct kiln_artifact kiln_artifact;

// Compiles ENTRY: each `fusion` instruction of it is a kernel; an ENTRY without fusions is one kernel. The artifact is
// the caller's. Errors: INVALID (unknown target, no such fusion), UNSUPPORTED (with the op and the reason), MEMORY.
KILN_API kiln_status kiln_compile(kiln_context *cx, const kiln_module *m, const kiln_compile_params *params,
                                  kiln_artifact **out);
KILN_API void kiln_artifact_destroy(kiln_artifact **a);

typedef enum kiln_text_kind {
  KILN_TEXT_PTX,  // the kernels' PTX, one module
  KILN_TEXT_PLAN, // needs KILN_KEEP_PLAN
  KILN_TEXT_LLVM, // needs KILN_KEEP_LLVM
} kiln_text_kind;
// NUL-terminated text that lives as long as the artifact; NULL if it was not kept or the target has none (PTX on the
// host).
KILN_API const char *kiln_artifact_text(const kiln_artifact *a, kiln_text_kind kind, size_t *size);
KILN_API const char *kiln_artifact_target(const kiln_artifact *a);

// Where an argument of a launch comes from.
typedef enum kiln_buffer_kind { KILN_BUFFER_PARAM, KILN_BUFFER_RESULT, KILN_BUFFER_TEMP } kiln_buffer_kind;

typedef struct kiln_slot {
  kiln_buffer_kind kind;
  uint32_t index; // of the parameter, result or temporary (tuples flattened depth first)
  bool output;    // written, not read
  kiln_array_type type;
  int64_t bytes;
  uint32_t align; // bytes
} kiln_slot;

typedef struct kiln_launch {
  const char *kernel;         // entry name in the PTX
  uint32_t grid[3], block[3]; // grid[0] == 0: zero elements, launch nothing
  uint32_t vector_bytes;      // widest memory access of a thread
  uint32_t lanes;             // elements per thread
  int64_t elements;           // of the flattened domain
  int64_t bytes;              // compulsory traffic: every input and output once
  size_t slot_count;
  const kiln_slot *slots; // kernel arguments in order, each the address of a buffer
} kiln_launch;

// Kernels in order of execution. The pointers live as long as the artifact.
KILN_API size_t kiln_artifact_launch_count(const kiln_artifact *a);
KILN_API const kiln_launch *kiln_artifact_launch(const kiln_artifact *a, size_t i);
// Bytes of scratch memory that the launches need beside their buffers; temporaries lie in it one after the other.
KILN_API uint64_t kiln_artifact_scratch_bytes(const kiln_artifact *a);
// Flattened interface, depth first.
KILN_API size_t kiln_artifact_param_count(const kiln_artifact *a);
KILN_API size_t kiln_artifact_result_count(const kiln_artifact *a);

#ifdef __cplusplus
}
#endif
#endif
