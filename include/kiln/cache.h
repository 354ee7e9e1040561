// kiln: compiled artifacts kept, in memory and in a folder; and as bytes.
#ifndef KILN_CACHE_H
#define KILN_CACHE_H

#include <kiln/cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

// --- artifacts as bytes -------------------------------------------------------------------------------------------

// All of an artifact but the texts that were kept beside its code: the same bytes every time. Free with
// kiln_artifact_bytes_free.
KILN_API kiln_status kiln_artifact_save(kiln_context *cx, const kiln_artifact *a, void **bytes, size_t *size);
KILN_API void kiln_artifact_bytes_free(kiln_context *cx, void *bytes, size_t size);
// The artifact again; it is the caller's. One for the host runs on machines with the same instructions as the one that
// compiled it. The bytes are checked for damage and for all that kiln relies on, not for what their code does: load
// what you would run. Errors: INVALID (no artifact, a damaged one, one of another format), MEMORY.
KILN_API kiln_status kiln_artifact_load(kiln_context *cx, const void *bytes, size_t size, kiln_artifact **out);

// --- caches -------------------------------------------------------------------------------------------------------

// Artifacts by what they are made from: the module's contents and names, the parameters of compilation, the target (of
// the host: this CPU), kiln and LLVM as they are built. Serves several threads at once; its folder several processes
// and machines at once. Over network file systems, too: nothing is locked, linked or mapped, a call that fails is a
// miss or a record that is not written, and ages are those of the folder's own clock.
typedef struct kiln_cache kiln_cache;

typedef struct kiln_cache_params {
  size_t struct_size;
  const char *folder;        // NULL: $XDG_CACHE_HOME/kiln, or $HOME/.cache/kiln; "": none, memory alone
  uint64_t max_folder_bytes; // what was used longest ago goes when there is more; 0: 1 GiB
  uint64_t max_memory_bytes; // of artifacts kept in memory, likewise; 0: 256 MiB
  bool read_only;            // the folder is read and not written
} kiln_cache_params;

// The cache is the caller's; `params` may be NULL. A folder that cannot be used is no error: the cache keeps artifacts
// in memory then, and kiln_cache_describe says why. A folder has to be its user's own, and nobody else may write to it,
// since what is in it is run. Errors: MEMORY.
KILN_API kiln_status kiln_cache_open(kiln_context *cx, const kiln_cache_params *params, kiln_cache **out);
// Artifacts taken from it live on.
KILN_API void kiln_cache_close(kiln_cache **c);

// As kiln_compile, but that the artifact may come from the cache, and is put there otherwise. It is the caller's, and
// may be the one that others have, too. One that is found brings no warnings. Not cached, but compiled each time, are
// artifacts with texts (`keep`, `after_pass`, `lineinfo`) and those of sparse tensors. Errors: those of kiln_compile;
// what goes wrong with the folder is a miss.
KILN_API kiln_status kiln_cache_compile(kiln_context *cx, kiln_cache *c, const kiln_module *m,
                                        const kiln_compile_params *params, kiln_artifact **out);

// kiln_cuda_kernel_prepare, but that the machine code which the driver's compiler makes of the PTX, some 10 ms a
// kernel, may come from the folder, and is put there otherwise: by the PTX, the driver's version and the device's
// compute capability. What the driver does not take is made again. A cache without a folder keeps none. Errors: those
// of kiln_cuda_kernel_prepare.
KILN_API kiln_status kiln_cache_prepare(kiln_context *cx, kiln_cache *c, kiln_cuda_kernel *k);

typedef struct kiln_cache_info {
  size_t struct_size;
  const char *folder;    // NULL: there is none in use
  const char *no_folder; // why not; NULL: there is one
  uint64_t memory_hits, folder_hits, misses;
  uint64_t uncached;               // calls that are never cached
  uint64_t damaged;                // records that were no good; misses, too
  uint64_t unwritten;              // records that could not be written
  uint64_t memory_bytes;           // of artifacts in memory
  uint64_t code_hits, code_misses; // kernels whose machine code was there, or was made
} kiln_cache_info;

// Fills *out; strings live as long as the cache.
KILN_API kiln_status kiln_cache_describe(kiln_context *cx, const kiln_cache *c, kiln_cache_info *out);

#ifdef __cplusplus
}
#endif
#endif
