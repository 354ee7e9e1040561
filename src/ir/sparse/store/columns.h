// Index expressions at many points at once: steps over columns of numbers. Made by one thread, run by any.
#ifndef KL_SPARSE_COLUMNS_H
#define KL_SPARSE_COLUMNS_H

#include "ir/index/aff/aff.h"

enum { KL_BLOCK = 512 }; // numbers of a column

typedef struct kl_column_step kl_column_step;
typedef struct kl_columns {
  uint32_t nvars, nregisters; // registers: variables first
  uint32_t nout, nsteps;
  const uint32_t *out; // registers, each once
  const kl_column_step *steps;
} kl_columns;

// Of n expressions of the dims 0 .. nvars - 1; NULL is 0.
void kl_columns_make(kl_arena *a, const kl_aff *const *e, uint32_t n, uint32_t nvars, kl_columns *out);
// Pointers to registers: the first `nvars`, which are the caller's, are left alone. Scratch has room for the others.
static inline size_t kl_columns_scratch(const kl_columns *c) {
  return (size_t)(c->nregisters - c->nvars) * KL_BLOCK;
}
static inline void kl_columns_open(const kl_columns *c, int64_t *scratch, int64_t **registers) {
  for (uint32_t i = c->nvars; i < c->nregisters; i++) registers[i] = scratch + (size_t)(i - c->nvars) * KL_BLOCK;
}
// At n points; bad[i] becomes true where an expression has no value, or none that 64 bits hold.
void kl_columns_run(const kl_columns *c, int64_t n, int64_t *const *registers, bool *bad);

#endif
