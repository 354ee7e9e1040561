// Artifacts as bytes, and folders of such records. Private to src/jit/cache.
#ifndef KL_CACHE_H
#define KL_CACHE_H

#include "jit/jit.h"
#include <kiln/cache.h>
#include <kiln/cuda.h>

// --- records (record.c) -------------------------------------------------------------------------------------------

// All of an artifact but texts that were kept beside its code, the same bytes every time.
void kl_record_write(const kiln_artifact *a, kl_sb *out);
// NULL: these bytes are no record, or damaged, or do not hold together; *why says so, in words. Whatever they are, they
// do no harm here; what the code in them would do is another matter.
kiln_artifact *kl_record_read(const kiln_allocator *allocator, const void *bytes, size_t size, const char **why);

// Machine code as a record; and what is in one, where it lies: NULL if these bytes are none.
void kl_record_write_code(const void *code, size_t n, kl_sb *out);
const void *kl_record_read_code(const void *bytes, size_t size, size_t *n);

// --- keys ---------------------------------------------------------------------------------------------------------

typedef struct kl_cache_key {
  uint64_t v[4];
} kl_cache_key;

// --- folders (folder.c) --------------------------------------------------------------------------------------------

// Records by key, a file each, shared by processes. Calls from several threads at once are fine.
typedef struct kl_folder kl_folder;

// Makes the folder if need be. NULL: it cannot be used, and `text` says why not.
kl_folder *kl_folder_open(kl_ctx *cx, const char *folder, uint64_t most_bytes, bool read_only, char text[256]);
void kl_folder_close(kl_folder **s);

typedef enum kl_found { KL_FOUND_NOTHING, KL_FOUND, KL_FOUND_DAMAGED } kl_found;
// The record of a key, in *bytes, which is the caller's (kl_free with *size + 1).
kl_found kl_folder_get(kl_folder *s, kl_ctx *cx, const kl_cache_key *key, void **bytes, size_t *size);
// A record is there as a whole or not at all, whatever happens meanwhile. False: it could not be written.
bool kl_folder_put(kl_folder *s, kl_ctx *cx, const kl_cache_key *key, const void *bytes, size_t size);
// Takes away what proved damaged.
void kl_folder_drop(kl_folder *s, kl_ctx *cx, const kl_cache_key *key);

#endif
