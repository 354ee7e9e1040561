// Random fusions as HLO text, of ops that move, fold and look up elements, over arrays of a few elements.
#ifndef TESTS_READS_RANDOM_H
#define TESTS_READS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

// Writes a module of about `ops` ops; the same seed, the same text. False where it does not fit.
int random_module(uint64_t seed, int ops, char *text, size_t size);

#endif
