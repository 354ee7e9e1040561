// Random draws from a seed that a test sets (splitmix64).
#ifndef TESTS_DRAW_H
#define TESTS_DRAW_H

#include <stdbool.h>
#include <stdint.h>

static uint64_t seed;

static inline uint32_t below(uint32_t n) {
  uint64_t x = seed += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (uint32_t)((x ^ (x >> 31)) % n);
}
static inline bool chance(uint32_t percent) {
  return below(100) < percent;
}

#endif
