// Shuffles of whole warps, in every set of executors: the pseudocode of PTX ISA 9.7.9.6, lane by lane.
#include "../../support/random.h"
#include "../../support/suite.h"
#include "sim/lanes/lanes.h"

typedef struct shuffled {
  uint32_t value[KL_LANES], pval;
} shuffled;

static shuffled by_pseudocode(kl_shuffle mode, const uint32_t *a, const uint32_t *b, const uint32_t *c) {
  shuffled r = {.pval = 0};
  for (int lane = 0; lane < KL_LANES; lane++) {
    int bval = b[lane] % 32, cval = c[lane] % 32, mask = c[lane] / 256 % 32, j = 0;
    int max_lane = (lane & mask) | (cval & ~mask & 31), min_lane = lane & mask;
    bool pval = false;
    if (mode == KL_SHUFFLE_UP) j = lane - bval, pval = j >= max_lane;
    if (mode == KL_SHUFFLE_DOWN) j = lane + bval, pval = j <= max_lane;
    if (mode == KL_SHUFFLE_BFLY) j = lane ^ bval, pval = j <= max_lane;
    if (mode == KL_SHUFFLE_IDX) j = min_lane | (bval & ~mask & 31), pval = j <= max_lane;
    if (!pval) j = lane;
    r.value[lane] = a[j];
    r.pval |= (uint32_t)pval << lane;
  }
  return r;
}

static const kl_shuffle modes[] = {KL_SHUFFLE_UP, KL_SHUFFLE_DOWN, KL_SHUFFLE_BFLY, KL_SHUFFLE_IDX};

static void check(kl_shuffle mode, const uint32_t *a, const uint32_t *b, const uint32_t *c) {
  size_t n;
  const kl_lane_set *const *sets = kl_lanes_sets(&n);
  shuffled want = by_pseudocode(mode, a, b, c);
  for (size_t k = 0; k < n; k++) {
    uint32_t value[KL_LANES], pval = sets[k]->shuffle(mode, a, b, c, KL_ALL_LANES, value);
    ck_assert_msg(pval == want.pval && !memcmp(value, want.value, sizeof value),
                  "%s: mode %d, b %x, c %x: predicates %08x, expected %08x", sets[k]->name, (int)mode, b[0], c[0], pval,
                  want.pval);
  }
}

// Every b, bound and segment, the same for all lanes.
START_TEST(lanes_alike) {
  uint32_t a[KL_LANES], b[KL_LANES], c[KL_LANES];
  for (int i = 0; i < KL_LANES; i++) a[i] = (uint32_t)random_bits();
  for (uint32_t n = 0; n < 1 << 15; n++) {
    for (int i = 0; i < KL_LANES; i++) b[i] = n % 32, c[i] = n / 32 % 32 | n / 1024 << 8;
    check(modes[_i], a, b, c);
  }
}
END_TEST

// Other bits than those that count are set as well, and a lane whose source takes no part keeps its value.
START_TEST(any_lanes) {
  uint32_t a[KL_LANES], b[KL_LANES], c[KL_LANES], value[KL_LANES];
  size_t sets;
  const kl_lane_set *const *set = kl_lanes_sets(&sets);
  for (int n = 0; n < 4000; n++) {
    uint32_t members = (uint32_t)random_bits();
    for (int i = 0; i < KL_LANES; i++) {
      a[i] = (uint32_t)random_bits();
      b[i] = (uint32_t)random_bits();
      c[i] = (uint32_t)random_bits();
    }
    check(modes[_i], a, b, c);
    for (size_t k = 0; k < sets; k++) {
      set[k]->shuffle(modes[_i], a, b, c, members, value);
      for (int i = 0; i < KL_LANES; i++) {
        bool inside;
        unsigned from = kl_source_lane(modes[_i], (unsigned)i, b[i], c[i], &inside);
        ck_assert_uint_eq(value[i], a[members >> from & 1 ? from : (unsigned)i]);
      }
    }
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("lanes: shuffles", NO_FRAME, {lanes_alike, 4}, {any_lanes, 4});
}
