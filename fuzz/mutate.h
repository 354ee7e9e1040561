// Mutations that keep HLO text close to being valid: a byte-wise fuzzer hardly gets beyond the first syntax error.
#ifndef KL_FUZZ_MUTATE_H
#define KL_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

// Changes the text in place; returns its new size, at most `max`. The same seed gives the same change.
size_t kl_mutate(uint8_t *data, size_t size, size_t max, unsigned seed);

#endif
