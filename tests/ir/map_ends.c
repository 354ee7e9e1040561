// Constraints at the ends of 64 bits, where a bound is none and values go beyond: random maps over boxes that can be
// enumerated, before and after simplification, against every point.
#include "map_support.h"
#include "random_maps.h"
#include "support/share.h"

static const int64_t size[] = {25, 20, 20};

static int64_t near_an_end(void) {
  int64_t k = rm_between(0, 3), x = (int64_t)(rm_bits() >> 1);
  switch (rm_bits() % 4) {
  case 0: return INT64_MAX - k;
  case 1: return INT64_MIN + k;
  case 2: return -x;
  default: return x;
  }
}

static void put_constraint(FILE *f) {
  int64_t x = near_an_end(), lo = x, hi = x;
  switch (rm_bits() % 4) {
  case 0: hi = INT64_MAX; break;
  case 1: lo = INT64_MIN; break;
  case 2: lo = hi = INT64_MAX; break;
  default: lo = hi = INT64_MIN; break;
  }
  fputs(", ", f);
  for (int i = 0; i < 3; i++) {
    int64_t coef = rm_between(-8, 8) * ((int64_t)1 << rm_between(50, 57)) + (rm_bits() % 2 ? rm_between(-5, 5) : 0);
    fprintf(f, "%lld * d%d + ", (long long)coef, i);
  }
  fprintf(f, "%lld in [%lld, %lld]", (long long)rm_between(-3, 3), (long long)lo, (long long)hi);
}

static char *random_text(void) {
  char *text;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  fputs("(d0, d1, d2) -> (), domain: d0 in [0, 24], d1 in [0, 19], d2 in [0, 19]", f);
  for (int c = (int)rm_between(1, 3); c > 0; c--) put_constraint(f);
  if (rm_bits() % 2) fputs(", (3d0 + 5d1 - 7d2) mod 11 in [4, 4]", f);
  if (rm_bits() % 2) fputs(", (d0 + 2d1 + 9d2) mod 13 in [2, 3]", f);
  fclose(f);
  return text;
}

static bool has_point(const kl_map *m) {
  for (int64_t i = 0; i < size[0] * size[1] * size[2]; i++) {
    int64_t x[] = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]};
    kl_point p = {{x, x + 3, x + 3}};
    if (kl_map_contains(pool, m, &p)) return true;
  }
  return false;
}

START_TEST(bounds_at_the_ends) {
  for (uint64_t seed = 0, n = share_of(1500); seed < n; seed++) {
    rm_seed(seed);
    char *text = random_text();
    if (seed % 16 == 0) new_pool();
    const kl_map *m = read_map(text), *s = kl_map_simplify(pool, m, 0);
    kl_truth right = has_point(m) ? KL_NO : KL_YES;
    kl_truth before = kl_map_is_empty(pool, m, KL_MAP_QUOTA, NULL),
             after = kl_map_is_empty(pool, s, KL_MAP_QUOTA, NULL);
    EXPECT(before == right && after == right, "seed %llu: empty %d, found %d, simplified %d\n%s\n%s",
           (unsigned long long)seed, right, before, after, text, print_map(s));
    free(text);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("ends of 64 bits", EACH(open_pool, close_pool), {bounds_at_the_ends});
}
