// Mistakes that are made in a kernel's PTX, one at a time.
#ifndef TESTS_MUTANTS_MUTATE_H
#define TESTS_MUTANTS_MUTATE_H

#include "sim/ptx/ptx.h"

typedef enum mistake {
  STORES,    // a store is left out
  GUARDS,    // a guarded branch is left out, or another instruction's guard
  CONSTANTS, // a register does not get its constant
  INDICES,   // a load's address is far away
  MASKS,     // an index is not cut to its bits, or lanes are missing in a member mask
  ORDERS,    // a barrier, fence or wait is left out, a strong access weakened
  MISTAKES
} mistake;
extern const char *const mistake_names[MISTAKES];

// How many ways there are; each is of one kind.
size_t mutation_count(void);
mistake mutation_kind(size_t way);
// The text with the instruction at `at` changed that way, for the caller to free; NULL: it cannot be.
char *mutate(const char *text, kl_ptx_place at, size_t way);

#endif
