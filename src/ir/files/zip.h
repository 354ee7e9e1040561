// Archives of the ZIP format, as .npz files are: members that are stored or deflated, none encrypted or in parts.
#ifndef KL_ZIP_H
#define KL_ZIP_H

#include "base/base.h"

typedef struct kl_zip_member {
  kl_str name;
  const unsigned char *data; // as it stands in the archive
  size_t packed, size;       // bytes of it, and of what it holds
  uint32_t crc;
  bool deflated;
} kl_zip_member;

typedef struct kl_zip {
  kl_ctx *cx;
  kl_arena *arena;
  const char *name; // in findings
  kl_zip_member *members;
  size_t n;
} kl_zip;

// Reads the directory; members point into the bytes. INVALID: what is wrong, and where.
kiln_status kl_zip_open(kl_ctx *cx, kl_arena *a, const char *name, const void *bytes, size_t size, kl_zip *out);
// NULL: there is none of that name.
const kl_zip_member *kl_zip_find(const kl_zip *z, const char *name);
// What it holds, checked; in the archive's bytes or the arena.
kiln_status kl_zip_read(const kl_zip *z, const kl_zip_member *m, const unsigned char **out);

// An archive of stored members.
typedef struct kl_zip_writer {
  kl_sb bytes, directory;
  size_t n;
} kl_zip_writer;
void kl_zip_begin(kl_zip_writer *w, kl_ctx *cx);
// The data is in two parts, one behind the other. UNSUPPORTED beyond 4 GiB in all.
kiln_status kl_zip_add(kl_zip_writer *w, const char *name, const void *head, size_t head_size, const void *data,
                       size_t size);
// Hands the archive over, or frees it where out is NULL.
void kl_zip_end(kl_zip_writer *w, char **out, size_t *size);

#endif
