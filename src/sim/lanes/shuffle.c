// Shuffles of all lanes at once.
#include "sim/lanes/shuffle.h"
#include "sim/lanes/masks.h"

// to[i] = a[from[i]], of numbers below 32: of every quarter what lies where the lowest three bits say, then the one
// that the others name.
static inline void take(u32 *to, const u32 *a, const u32 *from) {
#ifdef __AVX2__
  __m256i quarter[4];
  for (int k = 0; k < 4; k++) quarter[k] = _mm256_loadu_si256((const __m256i *)(const void *)(a + 8 * k));
  for (int i = 0; i < KL_LANES; i += 8) {
    __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
    __m256 v[4], odd = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28)),
                 upper = _mm256_castsi256_ps(_mm256_slli_epi32(at, 27));
    for (int k = 0; k < 4; k++) v[k] = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(quarter[k], at));
    v[0] = _mm256_blendv_ps(_mm256_blendv_ps(v[0], v[1], odd), _mm256_blendv_ps(v[2], v[3], odd), upper);
    _mm256_storeu_si256((__m256i *)(void *)(to + i), _mm256_castps_si256(v[0]));
  }
#else
  for (int i = 0; i < KL_LANES; i++) to[i] = a[from[i]];
#endif
}

static inline __attribute__((always_inline)) uint32_t shuffle(kl_shuffle mode, const u32 *a, const u32 *b, const u32 *c,
                                                              uint32_t members, u32 *value) {
  u32 from[KL_LANES];
  s32 in[KL_LANES];
  KL_EACH for (int i = 0; i < KL_LANES; i++) {
    bool inside = false;
    unsigned lane = kl_source_lane(mode, (unsigned)i, b[i], c[i], &inside);
    from[i] = lane;
    in[i] = -(s32)inside;
  }
  if (members != KL_ALL_LANES)
    for (unsigned i = 0; i < KL_LANES; i++) from[i] = members >> from[i] & 1 ? from[i] : i;
  take(value, a, from);
  return bits_of_32(in);
}

extern kl_shuffle_all KL_PASTE(kl_lanes_, KL_SET, _shuffle);
uint32_t KL_PASTE(kl_lanes_, KL_SET, _shuffle)(kl_shuffle mode, const uint32_t a[KL_LANES], const uint32_t b[KL_LANES],
                                               const uint32_t c[KL_LANES], uint32_t members, uint32_t value[KL_LANES]) {
  switch (mode) {
  case KL_SHUFFLE_UP: return shuffle(KL_SHUFFLE_UP, a, b, c, members, value);
  case KL_SHUFFLE_DOWN: return shuffle(KL_SHUFFLE_DOWN, a, b, c, members, value);
  case KL_SHUFFLE_BFLY: return shuffle(KL_SHUFFLE_BFLY, a, b, c, members, value);
  case KL_SHUFFLE_IDX: break;
  }
  return shuffle(KL_SHUFFLE_IDX, a, b, c, members, value);
}
