// Random numbers of the tests: the same in every run of a program. Each thread has its own.
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

static _Thread_local uint64_t random_state = 88172645463325252u;

// Begins anew: what is drawn from here on depends on n alone.
static inline void random_seed(uint64_t n) {
  random_state = 88172645463325252u + n * 0x9e3779b97f4a7c15u;
}

// 64 uniform bits (xorshift64*).
static inline uint64_t random_bits(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state * 0x2545f4914f6cdd1du;
}

#endif
