// How long maps take: many small ones, and long ones, whose time goes by their size.
#include "map_support.h"
#include "support/slow.h"

#include <kiln/index.h>
#include <time.h>

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Long sums, and many variables and constraints, take time by their size.
START_TEST(long_text_is_read_and_simplified) {
  static const struct {
    int variables, terms, constraints;
  } sizes[] = {{1, 2000, 0}, {2000, 2000, 0}, {3, 2, 3000}, {1000, 1, 1000}};
  for (size_t i = 0; i < KL_COUNT(sizes); i++) {
    kl_sb b;
    kl_sb_init(&b, cx);
    for (int v = 0; v < sizes[i].variables; v++) kl_sbf(&b, "%sd%d", v ? ", " : "(", v);
    kl_sb_puts(&b, ") -> (");
    for (int t = 0; t < sizes[i].terms; t++) {
      kl_sbf(&b, "%s(d%d + %d) mod %d", t ? " + " : "", t % sizes[i].variables, t, t + 2);
    }
    kl_sb_puts(&b, "), domain: ");
    for (int v = 0; v < sizes[i].variables; v++) kl_sbf(&b, "%sd%d in [0, 99]", v ? ", " : "", v);
    for (int c = 0; c < sizes[i].constraints; c++) {
      int v = c % sizes[i].variables, w = (c + 1) % sizes[i].variables;
      kl_sbf(&b, ", d%d * %d + d%d in [1, %d]", v, c % 50 + 2, w, 300 + c % 100);
    }
    kl_source src = {"map", {b.p, b.n}};
    const kl_map *m;
    double begin = cpu_seconds();
    ck_assert_msg(kl_map_parse(pool, &src, &m) == KILN_OK, "%s", last_finding());
    const kl_map *s = kl_map_simplify(pool, m, 0);
    ck_assert_int_eq(s->state, KL_MAP_DEFINED);
    ck_assert_msg(cpu_seconds() - begin < 10, "size %zu took %.2f s", i, cpu_seconds() - begin);
    printf("# %d variables, %d terms, %d constraints: %.3f s\n", sizes[i].variables, sizes[i].terms,
           sizes[i].constraints, cpu_seconds() - begin);
    kl_sb_free(&b);
  }
}
END_TEST

// Reshapes, transposes, slices, windows, bitcasts, pieces, threads: at least 100,000 of them are simplified in a
// second, each without knowledge of the others.
static const char *const small[] = {
    "(d0, d1, d2) -> (d0, d2, d1), domain: d0 in [0, 9], d1 in [0, 19], d2 in [0, 29]",
    "(d0, d1, d2) -> ((100d0 + 10d1 + d2) / 100, ((100d0 + 10d1 + d2) mod 100) / 10, d2 mod 10), domain: d0 in [0, 9], "
    "d1 in [0, 9], d2 in [0, 9]",
    "(d0, d1) -> (-((-11d0 - d1 + 109) / 11) + 9), domain: d0 in [0, 9], d1 in [0, 10]",
    "(d0, d1) -> (((2d1 + d0 / 64) mod 3) * 256 + (d0 mod 64) * 4 + ((128d1 + d0) / 192) * 768), domain: d0 in [0, "
    "127], "
    "d1 in [0, 3071]",
    "(d0, d1, d2) -> (d0 - 5, (d1 - 3) / 7, d2 / 2), domain: d0 in [5, 9], d1 in [3, 17], d2 in [0, 48], "
    "(d1 - 3) mod 7 in [0, 0], d2 mod 2 in [0, 0]",
    "(d0, d1)[s0, s1] -> (d0 * 2 + s0 - 1, d1 + s1), domain: d0 in [0, 6], d1 in [0, 16], s0 in [0, 2], s1 in [0, 1], "
    "d0 * 2 + s0 in [1, 13], d1 + s1 in [0, 16]",
    "(d0, d1){rt0} -> (d0 + rt0, d1), domain: d0 in [0, 3], d1 in [0, 4], rt0 in [0, 6]",
    "(bl_x, th_x)[v] -> ((bl_x * 512 + th_x * 4 + v) / 3000, (bl_x * 512 + th_x * 4 + v) mod 3000), domain: "
    "bl_x in [0, 99], th_x in [0, 127], v in [0, 3], bl_x * 512 + th_x * 4 + v in [0, 50999]",
};

START_TEST(small_maps_are_simplified) {
  enum { ROUNDS = 100, TRIES = 200 };
  kiln_map *m[KL_COUNT(small)], *s;
  double least = 1e9;
  for (size_t i = 0; i < KL_COUNT(small); i++)
    ck_assert(kiln_map_parse(cx, "map", small[i], strlen(small[i]), &m[i]) == KILN_OK);
  // Other work on the machine shows in time of the processor, too: the least of the tries counts, and they end once it
  // is enough.
  for (int k = 0; k < TRIES && least * 100000 >= SLACK; k++) {
    double begin = cpu_seconds();
    for (size_t i = 0; i < ROUNDS * KL_COUNT(small); i++) {
      ck_assert(kiln_map_simplify(cx, m[i % KL_COUNT(small)], &s) == KILN_OK);
      kiln_map_destroy(&s);
    }
    double took = (cpu_seconds() - begin) / (ROUNDS * KL_COUNT(small));
    if (took < least) least = took;
  }
  for (size_t i = 0; i < KL_COUNT(small); i++) kiln_map_destroy(&m[i]);
  printf("# %.0f maps a second\n", 1 / least);
  ck_assert_msg(least * 100000 < SLACK, "%.0f maps a second", 1 / least);
}
END_TEST

int main(void) {
  return RUN_TESTS("time of maps", EACH(open_pool, close_pool), {long_text_is_read_and_simplified},
                   {small_maps_are_simplified});
}
