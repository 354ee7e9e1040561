// kiln: status codes, contexts, allocation and diagnostics.
//
// Rules that hold for the whole API:
// - A context serves one thread at a time; separate contexts run in parallel.
// - Functions that can fail return kiln_status (or NULL) and leave a diagnostic in the context. A handle or value that
//   they store for the caller is NULL (0) after every failure.
// - A pointer that must be there and is NULL is INVALID; a NULL context, where no diagnostic can go, too. Functions
// that
//   return no status give 0, false, NULL or "" then, -1 for bytes, and what says that nothing is known.
// - A params struct starts with `size_t struct_size`, its size in bytes as the caller knows it; zero in any other field
//   means the default. A program built against an older, smaller struct keeps working, also against a newer one whose
//   unknown bytes are zero. INVALID: a struct_size of 0 or no such size at all, unknown bytes that are not zero.
//   Structs that kiln fills in carry struct_size too; bytes of theirs that it does not know become zero.
// - Destroy functions take the address of the handle, accept NULL and null the handle.
// - Strings are UTF-8, sizes are bytes unless the name says elements.
#ifndef KILN_BASE_H
#define KILN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0

// The command's exit status is 0 for OK, 2 for INVALID and MEMORY, 3 for UNSUPPORTED, 4 for DEVICE, INTERNAL and
// CANCELLED.
typedef enum kiln_status {
  KILN_OK = 0,
  KILN_E_INVALID,     // the caller's input is wrong; the diagnostic says where and what was expected
  KILN_E_UNSUPPORTED, // valid input that this version does not handle; the diagnostic gives the reason
  KILN_E_MEMORY,      // an allocation whose size comes from the input failed
  KILN_E_DEVICE,      // the device or its driver failed
  KILN_E_INTERNAL,    // a defect in kiln; please report it
  KILN_E_CANCELLED,   // the caller has ended it, or its time was over
} kiln_status;

typedef struct kiln_context kiln_context;

// Every block kiln itself allocates passes through this hook; not LLVM's own, nor what kernels on the simulator live
// in, whose threads and devices take memory from the system, as threads that generate code do. `resize` with p == NULL
// allocates, with size == 0 frees and returns NULL; `old_size` is what was asked for p. Blocks are aligned to 16 bytes.
// `out_of_memory` is the last word before kiln aborts because a small metadata allocation failed; allocations whose
// size comes from the input fail with KILN_E_MEMORY instead. A context calls the hook on the thread that uses it. What
// is made from it and outlives it keeps the hook and calls it on the thread that makes or destroys it: where those are
// several threads, the hook must be thread-safe.
typedef struct kiln_allocator {
  void *user;
  void *(*resize)(void *user, void *p, size_t old_size, size_t size);
  void (*out_of_memory)(void *user, size_t size);
} kiln_allocator;

typedef struct kiln_context_params {
  size_t struct_size;
  kiln_allocator allocator; // zero: malloc
} kiln_context_params;

// Returns a new context owned by the caller, or NULL if memory is short or the struct_size of `params` is wrong.
// `params` may be NULL; it is copied.
KILN_API kiln_context *kiln_context_create(const kiln_context_params *params);

// Ends the context. What was made from it may live on, and be destroyed later: artifacts, kernels, drivers and devices
// have memory of their own; modules, builders and maps keep the context's memory, to which findings about them go
// unseen.
KILN_API void kiln_context_destroy(kiln_context **cx);

typedef enum kiln_severity { KILN_ERROR, KILN_WARNING, KILN_NOTE } kiln_severity;

// One finding. Strings live until the next kiln_diagnostics_clear or the context's end.
typedef struct kiln_diagnostic {
  kiln_severity severity;
  kiln_status status;  // KILN_OK for warnings and notes
  const char *file;    // NULL where the finding has no place in a text
  uint32_t line;       // 1-based; 0 without a place
  uint32_t column;     // 1-based byte column
  const char *message; // what was expected and what was found; no place, no newline at the end
  const char *text;    // "FILE:LINE:COL: error: MESSAGE\n" with the source line and a caret where there is a place
} kiln_diagnostic;

KILN_API size_t kiln_diagnostics_count(const kiln_context *cx);
// Returns finding `i` in order of report, or NULL if i is out of range.
KILN_API const kiln_diagnostic *kiln_diagnostics_get(const kiln_context *cx, size_t i);
KILN_API void kiln_diagnostics_clear(kiln_context *cx);

// Bytes of memory that this process can still have without swapping: what the kernel calls available, within the limits
// of its control groups (versions 1 and 2) and its own address space; INT64_MAX where nothing tells. Thread-safe.
KILN_API int64_t kiln_memory_available(void);

KILN_API const char *kiln_status_name(kiln_status s);
// "MAJOR.MINOR.PATCH" of the library; static.
KILN_API const char *kiln_version(void);

#ifdef __cplusplus
}
#endif
#endif
