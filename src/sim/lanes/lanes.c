// The sets of executors, and which of them this machine can run.
#include "sim/lanes/lanes.h"
#include <pthread.h>
#include <stdlib.h>
#ifdef KL_LANES_AVX2
#include <cpuid.h>
#endif

#define DECLARE(set, topic) extern kl_run *const kl_lanes_##set##_##topic[];
#define PLAIN(topic, rows)  DECLARE(plain, topic)
#define AVX2(topic, rows)   DECLARE(avx2, topic)
KL_LANE_TOPICS(PLAIN)
DECLARE(plain, glue)
DECLARE(plain, shadow)
extern const kl_lane_memory kl_lanes_plain_memory;
extern kl_shuffle_all kl_lanes_plain_shuffle;
#ifdef KL_LANES_AVX2
KL_LANE_TOPICS(AVX2)
DECLARE(avx2, glue)
DECLARE(avx2, shadow)
extern const kl_lane_memory kl_lanes_avx2_memory;
extern kl_shuffle_all kl_lanes_avx2_shuffle;
#endif

#define PLAIN_ROWS(topic, rows) .topic##_rows = kl_lanes_plain_##topic,
#define AVX2_ROWS(topic, rows)  .topic##_rows = kl_lanes_avx2_##topic,
static const kl_lane_set plain = {.name = "plain",
                                  KL_LANE_TOPICS(PLAIN_ROWS).glue = kl_lanes_plain_glue,
                                  .shadow = kl_lanes_plain_shadow,
                                  .memory = &kl_lanes_plain_memory,
                                  .shuffle = kl_lanes_plain_shuffle};
#ifdef KL_LANES_AVX2
static const kl_lane_set avx2 = {.name = "avx2",
                                 KL_LANE_TOPICS(AVX2_ROWS).glue = kl_lanes_avx2_glue,
                                 .shadow = kl_lanes_avx2_shadow,
                                 .memory = &kl_lanes_avx2_memory,
                                 .shuffle = kl_lanes_avx2_shuffle};

// F16C is asked of the machine itself: clang 14 knows no such feature here.
static bool has_avx2(void) {
  unsigned a, b, c, d;
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

const kl_lane_set *const *kl_lanes_sets(size_t *n) {
#ifdef KL_LANES_AVX2
  static const kl_lane_set *const sets[] = {&plain, &avx2};
  *n = has_avx2() ? 2 : 1;
#else
  static const kl_lane_set *const sets[] = {&plain};
  *n = 1;
#endif
  return sets;
}

static const kl_lane_set *best;

static void find_best(void) {
  size_t n;
  const kl_lane_set *const *sets = kl_lanes_sets(&n);
  const char *wanted = getenv("KILN_SIM_SET");
  best = sets[n - 1];
  for (size_t i = 0; wanted && i < n; i++) {
    if (strcmp(sets[i]->name, wanted) == 0) best = sets[i];
  }
}

const kl_lane_set *kl_lanes_best(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_best);
  return best;
}
