// Stored sparse tensors: what packing, checking and walking share. A tensor is an array of elements for each buffer of
// its layout, in the order of kiln_sparse_layout_buffer_at.
#ifndef KL_SPARSE_STORE_H
#define KL_SPARSE_STORE_H

#include "ir/sparse/impl.h"
#include "ir/sparse/layout.h"

// Where a level's arrays are: numbers of buffers, or -1.
typedef struct kl_level_arrays {
  int32_t positions, coordinates;
  uint32_t column, columns; // of coordinates
  unsigned pos_bits, crd_bits;
  uint32_t run; // levels from a compressed one to its last singleton
} kl_level_arrays;

typedef struct kl_store {
  kl_ctx *cx;
  const kiln_sparse_layout *l;
  const kl_encoding *e;
  kiln_sparse_array *arrays;
  kl_level_arrays of[KL_MOST_LEVELS];
  uint32_t nbuffers, nbatch; // leading batch levels
  int64_t batches;
} kl_store;

// UNSUPPORTED, with the reason, where such a tensor cannot be stored: sizes that are not known, elements that kiln has
// no type for, no way back from levels.
kiln_status kl_store_open(kl_ctx *cx, const kiln_sparse_layout *l, kiln_sparse_array *arrays, kl_store *out);
kiln_status kl_store_check(const kl_store *s, kiln_sparse_check level);

// Elements of 2 to 64 bits; fewer than 8 are packed, the first in the low bits.
static inline uint64_t kl_bits_get(const void *data, unsigned bits, int64_t i) {
  uint64_t v = 0;
  if (bits >= 8) {
    memcpy(&v, (const char *)data + i * (int64_t)(bits / 8), bits / 8);
    return v;
  }
  unsigned per = 8 / bits, shift = (unsigned)(i % per) * bits;
  return ((const unsigned char *)data)[i / per] >> shift & ((1u << bits) - 1);
}
static inline void kl_bits_set(void *data, unsigned bits, int64_t i, uint64_t v) {
  if (bits >= 8) {
    memcpy((char *)data + i * (int64_t)(bits / 8), &v, bits / 8);
    return;
  }
  unsigned per = 8 / bits, shift = (unsigned)(i % per) * bits, mask = (1u << bits) - 1;
  unsigned char *b = (unsigned char *)data + i / per;
  *b = (unsigned char)((*b & ~(mask << shift)) | ((unsigned)v & mask) << shift);
}
// A value between the unpacked form and an array of values.
void kl_value_get(const kl_store *s, int64_t at, void *value);
void kl_value_set(const kl_store *s, int64_t at, const void *value);
// The value of entries that are not stored.
void kl_value_implicit(const kl_store *s, void *value);

// Calls `visit` for every stored entry within the tensor's sizes, in the order in which they are stored: its
// coordinates, and where its value is. The arrays have been checked up to their bounds.
typedef kiln_status kl_visit(void *arg, const int64_t *coordinates, int64_t at);
kiln_status kl_store_walk(const kl_store *s, kl_visit *visit, void *arg);

#endif
