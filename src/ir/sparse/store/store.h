// Stored sparse tensors: what packing, checking and reading share. A tensor is an array of elements for each buffer of
// its layout, in the order of kiln_sparse_layout_buffer_at.
#ifndef KL_SPARSE_STORE_H
#define KL_SPARSE_STORE_H

#include "ir/sparse/store/columns.h"
#include "ir/sparse/impl.h"
#include "ir/sparse/handle/layout.h"

// Where a level's arrays are: numbers of buffers, or -1.
typedef struct kl_level_arrays {
  int32_t positions, coordinates;
  uint32_t column, columns; // of coordinates
  unsigned pos_bits, crd_bits;
  uint32_t run;  // levels from a compressed one to its last singleton
  uint32_t head; // of a singleton: the compressed level before its run
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

// Arrays of the caller's, wherever they begin and whatever he takes them for.
typedef uint16_t __attribute__((aligned(1), may_alias)) kl_u16;
typedef uint32_t __attribute__((aligned(1), may_alias)) kl_u32;
typedef uint64_t __attribute__((aligned(1), may_alias)) kl_u64;

// Elements of 1 to 64 bits; fewer than 8 are packed, the first in the low bits.
static inline uint64_t kl_bits_get(const void *data, unsigned bits, int64_t i) {
  switch (bits) {
  case 8: return ((const uint8_t *)data)[i];
  case 16: return ((const kl_u16 *)data)[i];
  case 32: return ((const kl_u32 *)data)[i];
  case 64: return ((const kl_u64 *)data)[i];
  }
  unsigned per = 8 / bits, shift = (unsigned)(i % per) * bits;
  return ((const uint8_t *)data)[i / per] >> shift & ((1u << bits) - 1);
}
static inline void kl_bits_set(void *data, unsigned bits, int64_t i, uint64_t v) {
  switch (bits) {
  case 8: ((uint8_t *)data)[i] = (uint8_t)v; return;
  case 16: ((kl_u16 *)data)[i] = (uint16_t)v; return;
  case 32: ((kl_u32 *)data)[i] = (uint32_t)v; return;
  case 64: ((kl_u64 *)data)[i] = v; return;
  }
  unsigned per = 8 / bits, shift = (unsigned)(i % per) * bits, mask = (1u << bits) - 1;
  uint8_t *b = (uint8_t *)data + i / per;
  *b = (uint8_t)((*b & ~(mask << shift)) | ((unsigned)v & mask) << shift);
}

// Elements as words of 64 bits: one, or two for those of 16 bytes; what they have no bits for is zero.
enum { KL_VALUE_WORDS = 2 };
static inline uint32_t kl_value_words(const kl_store *s) {
  return kl_info(s->l->type.element.dtype)->bytes > 8 ? 2 : 1;
}
// The value of entries that are not stored.
void kl_value_implicit(const kl_store *s, uint64_t value[KL_VALUE_WORDS]);
// n of an array of values, from number `at` on.
void kl_values_get(const kl_store *s, int64_t at, int64_t n, uint64_t *out);
void kl_values_put(const kl_store *s, int64_t at, int64_t n, const uint64_t *values);
// Of unpacked elements, one behind the other.
void kl_values_unpacked(const kl_store *s, const void *elements, int64_t n, uint64_t *out);
// sum += x, both unpacked: wraps, rounds once, or for pred.
void kl_value_add(kl_dtype t, void *sum, const void *x);

// Entries by block, of which there are at most KL_BLOCK: a column of coordinates for each dimension.
typedef struct kl_entry_block {
  int64_t n;
  int64_t *const *dims;
  const uint64_t *values; // [n][kl_value_words]
} kl_entry_block;
// False ends it.
typedef bool kl_entry_put(void *to, const kl_entry_block *b);

// Where entries come from: pieces, read in any order by workers of their own number, the same every time.
typedef struct kl_entry_source {
  int64_t most; // entries there may be
  int64_t pieces;
  uint32_t workers; // at most
  void (*run)(void *arg, uint32_t worker, int64_t piece, kl_entry_put *put, void *to);
  kiln_status (*found)(void *arg); // what was wrong with entries, once all pieces were read; NULL: nothing ever is
  void *arg;
} kl_entry_source;

// Stored entries, within the tensor's sizes and in the order in which they are stored. The arrays have been checked up
// to their bounds.
typedef struct kl_reading kl_reading;
typedef struct kl_reading_params {
  uint32_t workers;
  bool all;               // also those with the implicit value
  const kl_slice *slices; // by dimension, all known: entries of the slice, by its coordinates; NULL: all entries
} kl_reading_params;
// Lives as long as the arena. MEMORY.
kiln_status kl_reading_open(kl_arena *a, const kl_store *s, const kl_reading_params *params, kl_entry_source *out);

// As kiln_sparse_pack, of entries with a piece or more.
kiln_status kl_pack(kl_store *s, const kl_entry_source *from);

#endif
