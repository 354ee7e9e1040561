// Packing: entries as sorted records, of which arrays are built.
#ifndef KL_SPARSE_PACK_H
#define KL_SPARSE_PACK_H

#include "ir/sparse/store/records.h"
#include "ir/sparse/store/store.h"

// Where a level's coordinate, counted from 0, stands in a key.
typedef struct kl_field {
  uint32_t word;
  unsigned shift;
  uint64_t mask; // of the coordinate; 0: it is always 0
} kl_field;

typedef struct kl_packer {
  kl_store *s;
  kl_arena *arena;
  uint32_t threads;
  kl_record_form form;
  kl_field fields[KL_MOST_LEVELS];
  const uint8_t *level_of; // [words][64]: the level that a key's bit belongs to
  kl_records r;            // sorted by level, each element once
} kl_packer;

static inline int64_t kl_field_get(const kl_packer *p, const uint64_t *key, uint32_t level) {
  kl_field f = p->fields[level];
  return (int64_t)(key[f.word] >> f.shift & f.mask);
}
// The first level in which a key is another than the one before it in memory; the number of levels where there is none.
static inline uint32_t kl_first_difference(const kl_packer *p, const uint64_t *key) {
  const uint64_t *before = key - p->form.words;
  for (uint32_t w = 0; w < p->form.words; w++)
    if (before[w] != key[w]) return p->level_of[w * 64 + 63 - (uint32_t)__builtin_clzll(before[w] ^ key[w])];
  return p->s->e->nlevels;
}

// Arrays become as long as they have to be, and are written where one has room.
kiln_status kl_build(kl_packer *p);

#endif
