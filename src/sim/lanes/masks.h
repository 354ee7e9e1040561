// Predicates of all lanes at once: results of comparisons, as all ones or 0 for every lane, become the bits of a word.
#ifndef KL_LANES_MASKS_H
#define KL_LANES_MASKS_H

#include "sim/lanes/each.h"
#ifdef __SSE2__
#include <immintrin.h>
#endif

static inline uint32_t bits_of_16(const s16 m[KL_LANES]) {
  uint32_t r = 0;
#ifdef __SSE2__
  for (int i = 0; i < KL_LANES; i += 16) {
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)&m[i]);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)&m[i + 8]);
    r |= (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high)) << i;
  }
#else
  for (int i = 0; i < KL_LANES; i++) r |= (uint32_t)(m[i] & 1) << i;
#endif
  return r;
}

static inline uint32_t bits_of_32(const s32 m[KL_LANES]) {
  uint32_t r = 0;
#ifdef __AVX__
  for (int i = 0; i < KL_LANES; i += 8)
    r |= (uint32_t)_mm256_movemask_ps(_mm256_loadu_ps((const float *)(const void *)&m[i])) << i;
#elif defined __SSE2__
  for (int i = 0; i < KL_LANES; i += 4)
    r |= (uint32_t)_mm_movemask_ps(_mm_loadu_ps((const float *)(const void *)&m[i])) << i;
#else
  for (int i = 0; i < KL_LANES; i++) r |= (uint32_t)(m[i] & 1) << i;
#endif
  return r;
}

static inline uint32_t bits_of_64(const s64 m[KL_LANES]) {
  uint32_t r = 0;
#ifdef __AVX__
  for (int i = 0; i < KL_LANES; i += 4)
    r |= (uint32_t)_mm256_movemask_pd(_mm256_loadu_pd((const double *)(const void *)&m[i])) << i;
#elif defined __SSE2__
  for (int i = 0; i < KL_LANES; i += 2)
    r |= (uint32_t)_mm_movemask_pd(_mm_loadu_pd((const double *)(const void *)&m[i])) << i;
#else
  for (int i = 0; i < KL_LANES; i++) r |= (uint32_t)(m[i] & 1) << i;
#endif
  return r;
}

#endif
