// Entries of tensors as files have them: what readers and writers of each kind share.
#ifndef KL_SPARSE_LIST_H
#define KL_SPARSE_LIST_H

#include "ir/dtype.h"
#include "ir/files/zip.h"
#include <kiln/npy.h>
#include <kiln/sparse.h>

struct kiln_sparse_list {
  kl_ctx *cx;
  kl_arena arena;
  kiln_sparse_list_info info;
  int64_t *sizes, *coordinates;
  unsigned char *values; // unpacked
  size_t bytes;          // of one
};

// Empty, with room for so many entries. MEMORY.
kiln_status kl_list_open(kl_ctx *cx, size_t rank, kiln_dtype dtype, int64_t room, kiln_sparse_list **out);
static inline int64_t kl_list_add(kiln_sparse_list *l) {
  return l->info.entries.count++;
}

// An array of a .npy file, in row-major order.
typedef struct kl_npy_array {
  kiln_npy_header header;
  int64_t count;
  const unsigned char *data;
} kl_npy_array;

// `name` and `member` are for findings. The data points into the bytes, or is in the arena.
kiln_status kl_npy_read(kl_ctx *cx, kl_arena *a, const char *name, const char *member, const void *bytes, size_t size,
                        size_t item, kl_npy_array *out);
// Bytes of an element of that name of numpy's; 0: not one of a fixed size.
size_t kl_npy_item(const char *dtype);
// The type of an array's elements: `wanted`, where it can be that; NONE: the likeliest.
kiln_status kl_npy_type(kl_ctx *cx, const char *name, const char *member, const kl_npy_array *x, kiln_dtype wanted,
                        kiln_dtype *out);

kiln_status kl_matrix_market_read(kl_ctx *cx, const kl_source *src, kiln_dtype dtype, kiln_sparse_list **out);
kiln_status kl_matrix_market_write(kl_ctx *cx, const kiln_sparse_list *l, kl_sb *b);
kiln_status kl_npz_read(kl_ctx *cx, const char *name, const void *bytes, size_t size, kiln_dtype dtype,
                        kiln_sparse_list **out);
kiln_status kl_npz_write(kl_ctx *cx, const kiln_sparse_list *l, kiln_sparse_file kind, kl_zip_writer *w);

#endif
