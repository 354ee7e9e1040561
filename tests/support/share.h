// How much of what they could try the tests try: KILN_TEST_SHARE times what they try by default, which is 1: 0.1 where
// a build is slow, 1000 for a night. A larger share tries what a smaller one does, and more: cases drawn from seeds go
// on, and of sets that are sampled the places come in one order.
#ifndef TESTS_SHARE_H
#define TESTS_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline double test_share(void) {
  const char *text = getenv("KILN_TEST_SHARE");
  char *end = NULL;
  double v = text ? strtod(text, &end) : 1;
  if (v > 0 && v <= 1e9 && (!text || !*end)) return v;
  fprintf(stderr, "KILN_TEST_SHARE=%s: expected a number above 0, at most 1e9\n", text);
  exit(EXIT_FAILURE);
}

// How many are tried of what is tried n times by default; at least one.
static inline uint64_t share_of(uint64_t n) {
  double most = test_share() * (double)n;
  return most < 1 ? 1 : (uint64_t)(most + 0.5);
}
// The same of a set that has no more than `all`.
static inline uint64_t share_up_to(uint64_t n, uint64_t all) {
  uint64_t wanted = share_of(n);
  return wanted < all ? wanted : all;
}

// The k-th of all patterns of so many bits, 1 to 32, in an order in which the first n, however many, lie evenly among
// all: multiples of the golden ratio.
static inline uint32_t share_pattern(uint64_t k, unsigned bits) {
  return (uint32_t)(k * (0x9e3779b97f4a7c15u >> (64 - bits) | 1) & ((1ull << bits) - 1));
}

// Multiples of it modulo n, up to 2^32, go through all n places in an order in which the first ones, however many, lie
// evenly: the number next to the golden ratio of n that has no divisor in common with n.
static inline uint64_t share_step(uint64_t n) {
  uint64_t step = (uint64_t)(0.6180339887498949 * (double)n);
  for (; n; step++) {
    uint64_t a = n, b = step;
    while (b) {
      uint64_t rest = a % b;
      a = b, b = rest;
    }
    if (a == 1) break;
  }
  return step;
}

// Whether case k is tried, where one in `every` is by default. Case 0 is.
static inline bool share_has(uint64_t k, unsigned every) {
  return share_pattern(k, 32) < 0x1p32 * test_share() / every;
}

#endif
