// What is asked of maps: is one empty, included in another, equal to it? Over bounds too wide to look at every point.
#include "map_support.h"

// Domains far too large to enumerate.
static const struct {
  const char *in;
  kl_truth empty;
} emptiness[] = {
    // intervals
    {"(d0) -> (), domain: d0 in [0, 1000000000000], d0 in [5, 9]", KL_NO},
    {"(d0, d1) -> (), domain: d0 in [0, 1000000000], d1 in [0, 1000000000], d0 + d1 in [2000000001, 3000000000]",
     KL_YES},
    // one mod or division
    {"(d0) -> (), domain: d0 in [0, 1000000000000], d0 mod 1000 in [990, 995], (d0 / 1000) mod 7 in [3, 3]", KL_NO},
    {"(d0) -> (), domain: d0 in [7, 1000000000000], d0 mod 12 in [3, 4], d0 mod 4 in [1, 2]", KL_YES},
    {"(d0) -> (), domain: d0 in [1000000007, 1000000012], d0 mod 1000 in [0, 6]", KL_YES},
    // digits
    {"(d0) -> (), domain: d0 in [0, 999999999999], d0 / 1000000000 in [7, 7], (d0 / 1000000) mod 1000 in [999, 999], "
     "(d0 / 1000) mod 1000 in [0, 0], d0 mod 1000 in [999, 999]",
     KL_NO},
    {"(d0) -> (), domain: d0 in [0, 7998999999], d0 / 1000000000 in [7, 7], (d0 / 1000000) mod 1000 in [999, 999], "
     "d0 mod 1000 in [999, 999]",
     KL_YES},
    // congruences
    {"(d0, d1) -> (), domain: d0 in [0, 1000000000], d1 in [0, 1000000000], (d0 + d1) mod 2 in [0, 0], "
     "(d0 - d1) mod 2 in [1, 1]",
     KL_YES},
    {"(d0, d1) -> (), domain: d0 in [0, 1000000000], d1 in [0, 1000000000], (d0 + 2d1) mod 1009 in [3, 3], "
     "(2d0 + 4d1) mod 1009 in [7, 7]",
     KL_YES},
    {"(d0, d1) -> (), domain: d0 in [0, 1000000000], d1 in [0, 1000000000], (d0 + 2d1) mod 1009 in [3, 3], "
     "(3d0 - d1) mod 2003 in [1, 1]",
     KL_NO},
    {"(d0, d1) -> (), domain: d0 in [0, 1000000000], d1 in [0, 1000000000], (d0 + 2d1) mod 100003 in [3, 3], "
     "(3d0 + 5d1) mod 100003 in [1, 1], (4d0 + 7d1) mod 100003 in [5, 5]",
     KL_YES},
    {"(d0, d1, d2) -> (), domain: d0 in [0, 1000000], d1 in [0, 1000000], d2 in [0, 1000000], "
     "(d0 + d1) mod 6 in [1, 1], (d1 + d2) mod 6 in [1, 1], (d0 + d2) mod 6 in [1, 1]",
     KL_YES},
    {"(d0, d1, d2) -> (), domain: d0 in [0, 1000000], d1 in [0, 1000000], d2 in [0, 1000000], "
     "(d0 + d1) mod 6 in [1, 1], (d1 + d2) mod 6 in [1, 1], (d0 + d2) mod 6 in [2, 2]",
     KL_NO},
    {"(d0) -> (), domain: d0 in [0, 1000000000000], d0 mod 97 in [5, 5], d0 mod 89 in [7, 7], d0 mod 83 in [11, 11], "
     "d0 mod 79 in [1, 1]",
     KL_NO},
    {"(d0, d1, d2, d3) -> (), domain: d0 in [0, 1099511627865], d1 in [0, 2147484471], d2 in [0, 2147483866], "
     "d3 in [0, 10241], (d0 * 2 + d1 * 4 - d2 * 7 + d3) mod 30 in [27, 27], (2d0 + 7d1 - 7d2 - 3d3 + 6) mod 15 in "
     "[14, 14], (8d0 - 9d1 + 5d2 - 6d3) mod 7 in [6, 6], (-2d0 - 4d1 - 2d2 - 7d3 + 5) mod 1009 in [844, 844]",
     KL_NO},
    // several together
    {"(d0, d1) -> (), domain: d0 in [0, 1000000], d1 in [0, 1000000], d0 - d1 in [1, 7], d1 - d0 in [0, 7]", KL_YES},
    {"(d0, d1, d2) -> (), domain: d0 in [0, 1000000], d1 in [0, 1000000], d2 in [0, 1000000], d0 - d1 in [1, 9], "
     "d1 - d2 in [1, 9], d2 - d0 in [1, 9]",
     KL_YES},
    {"(d0, d1) -> (), domain: d0 in [0, 1000000], d1 in [0, 1000000], min(d0, d1) in [500, 600], "
     "max(d0, d1) in [100, 499]",
     KL_YES},
    // moduli that together are more than there are points to try
    {"(d0, d1, d2) -> (), domain: d0 in [0, 1000000824], d1 in [590049, 1000000590353], d2 in [904233, 1904687], "
     "(5d0 - 5d1 + 4d2) mod 100003 in [46543, 46543], (7d0 - 8d1 - d2) mod 99991 in [5, 5], (3d0 + 11d1 + 2d2) mod "
     "99989 "
     "in [17, 17]",
     KL_NO},
    // ends of 64 bits are no bounds: an interval of nothing but an end is no single value
    {"(d0, d1) -> (), domain: d0 in [0, 4611686018427387904], d1 in [0, 4611686018427387904], 2d0 + 2d1 in "
     "[9223372036854775807, 9223372036854775807], (d0 + 3d1) mod 1009 in [5, 5], (5d0 - d1) mod 1013 in [7, 7]",
     KL_NO},
    // Left open: a product of two variables, of which only the intervals are known. (1000003 is a prime.)
    {"(d0, d1) -> (), domain: d0 in [2, 40000], d1 in [2, 40000], d0 * d1 in [1000003, 1000003]", KL_UNKNOWN},
};

START_TEST(emptiness_is_decided) {
  const char *why = NULL;
  kl_truth t = kl_map_is_empty(pool, read_map(emptiness[_i].in), KL_MAP_QUOTA, &why);
  ck_assert_msg(t == emptiness[_i].empty, "%s\nfound %d (%s)", emptiness[_i].in, t, why ? why : "");
}
END_TEST

static const struct {
  const char *a, *b;
  kl_truth included, equal;
} relations[] = {
    {"(d0) -> (d0 mod 8), domain: d0 in [0, 1000000]", "(d0) -> (d0 - (d0 / 8) * 8), domain: d0 in [0, 1000000]",
     KL_YES, KL_YES},
    // residues written in two ways
    {"(d0) -> ((2d0) / 3), domain: d0 in [-1000000, 1000000]",
     "(d0) -> (d0 - d0 ceildiv 3), domain: d0 in [-1000000, 1000000]", KL_YES, KL_YES},
    {"(d0) -> (d0), domain: d0 in [0, 1000000]", "(d0) -> (d0 / 2 + (d0 + 1) / 2), domain: d0 in [0, 1000000]", KL_YES,
     KL_YES},
    {"(d0) -> (d0 / 6), domain: d0 in [0, 1000000]", "(d0) -> ((d0 / 2) / 3), domain: d0 in [0, 2000000]", KL_YES,
     KL_NO},
    {"(d0) -> (d0 / 6), domain: d0 in [0, 1000000]", "(d0) -> ((d0 + 1) / 6), domain: d0 in [0, 1000000]", KL_NO,
     KL_NO},
    // range variables under other names, in another order, split in two
    {"(d0)[s0, s1] -> (d0, s0, s1), domain: d0 in [0, 9], s0 in [0, 1023], s1 in [0, 4095]",
     "(d0)[s0, s1] -> (d0, s1, s0), domain: d0 in [0, 9], s0 in [0, 4095], s1 in [0, 1023]", KL_YES, KL_YES},
    {"(d0)[s0] -> (d0, s0), domain: d0 in [0, 9], s0 in [0, 8191]",
     "(d0)[s0, s1] -> (d0, s0 * 128 + s1), domain: d0 in [0, 9], s0 in [0, 63], s1 in [0, 127]", KL_YES, KL_YES},
    {"(d0)[s0] -> (d0, s0), domain: d0 in [0, 9], s0 in [0, 8192]",
     "(d0)[s0, s1] -> (d0, s0 * 128 + s1), domain: d0 in [0, 9], s0 in [0, 63], s1 in [0, 127]", KL_NO, KL_NO},
    {"(d0)[s0] -> (s0 * 4), domain: d0 in [0, 9], s0 in [0, 99999]",
     "(d0)[s0] -> (s0 * 2), domain: d0 in [0, 9], s0 in [0, 999999]", KL_YES, KL_NO},
    {"(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 99999], s0 mod 3 in [1, 1]",
     "(d0)[s0] -> (s0 * 3 + 1), domain: d0 in [0, 9], s0 in [0, 33332]", KL_YES, KL_YES},
    // a range that no result asks for may have other values
    {"(d0)[s0, s1] -> (d0 * 7), domain: d0 in [0, 99999], s0 in [0, 10], s1 in [6, 7]",
     "(d0)[s0, s1] -> (d0 * 7), domain: d0 in [0, 99999], s0 in [0, 10], s1 in [7, 7]", KL_YES, KL_YES},
    {"(d0) -> (d0), domain: d0 in [3, 2]", "(d0, d1) -> (d0), domain: d0 in [0, 1], d1 in [0, 1]", KL_YES, KL_NO},
    {"(d0) -> (d0), domain: d0 in [0, 2]", "(d0, d1) -> (d0), domain: d0 in [0, 1], d1 in [0, 1]", KL_NO, KL_NO},
    // conditions on one variable each: mods, divisions, digits
    {"(d0, d1) -> (d0, d1), domain: d0 in [0, 10665], d1 in [0, 1000000000702], (d0 + 42) mod 127 in [3, 36], "
     "(d1 + 13) mod 128 in [59, 81]",
     "(d0, d1) -> (d0, d1), domain: d0 in [88, 10662], d1 in [46, 1000000000702], d0 mod 127 in [88, 121], "
     "d1 mod 128 in [46, 68]",
     KL_YES, KL_YES},
    {"(d0, d1) -> (d0, d1), domain: d0 in [0, 1000700], d1 in [0, 1099511627967], (-7d0 - 46) mod 4096 in [1570, "
     "2900], "
     "(d1 + 14) / 97 in [1908, 2008]",
     "(d0, d1) -> (d0, d1), domain: d0 in [165, 1000363], d1 in [185062, 194858], (d0 * 7) mod 4096 in [1150, 2480]",
     KL_YES, KL_YES},
    {"(d0) -> (d0), domain: d0 in [224619, 1099511852570], (d0 + 18) mod 4 in [2, 3], ((d0 + 18) / 4) mod 10 in [0, "
     "5], "
     "((d0 + 18) / 40) mod 16 in [7, 12], ((d0 + 18) / 640) mod 10 in [9, 9]",
     "(d0) -> (d0), domain: d0 in [230024, 1099511852565], (d0 + 18) mod 40 in [0, 23], d0 mod 4 in [0, 1], d0 mod 640 "
     "in "
     "[262, 501], d0 mod 6400 in [5742, 6381]",
     KL_YES, KL_YES},
    {"(d0, d1) -> (d0, d1), domain: d0 in [-13361, 987604], d1 in [0, 2147484155], ((d0 - 3) / 16) mod 16 in [2, 12], "
     "((d0 - 3) / 256) mod 10 in [4, 6], d1 mod 16 in [7, 15]",
     "(d0, d1) -> (d0, d1), domain: d0 in [-13361, 987604], d1 in [0, 2147484155], ((d0 - 3) / 16) mod 16 in [2, 12], "
     "d1 mod 16 in [7, 15]",
     KL_YES, KL_NO},
    // a constraint's value may lie beyond 64 bits, and yet above its only bound
    {"(d0, d1) -> (), domain: d0 in [0, 11], d1 in [0, 85], min(-((d1 * 1000000007) ceildiv 3), (d1 / d0) * 2) in "
     "[-28333333532, -3]",
     "(d0, d1) -> (), domain: d0 in [0, 11], d1 in [0, 85], -min(-((d1 * 1000000007) ceildiv 3), (d1 / d0) * 2) * "
     "1000000007 in [2147483519, 9223372036854775807]",
     KL_YES, KL_YES},
    // What is not decided, and why. Two ranges with sums that overlap: no formula tells which they were.
    {"(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 19998]",
     "(d0)[s0, s1] -> (s0 + s1), domain: d0 in [0, 9], s0 in [0, 9999], s1 in [0, 9999]", KL_UNKNOWN, KL_UNKNOWN},
    {"UNDEFINED", "UNDEFINED", KL_UNKNOWN, KL_UNKNOWN},
};

START_TEST(inclusion_is_decided) {
  const char *why = "";
  const kl_map *a = read_map(relations[_i].a), *b = read_map(relations[_i].b);
  kl_truth in = kl_map_included(pool, a, b, KL_MAP_QUOTA, &why), eq = kl_map_equal(pool, a, b, KL_MAP_QUOTA, &why);
  ck_assert_msg(in == relations[_i].included && eq == relations[_i].equal, "%s\n%s\nincluded %d, equal %d (%s)",
                relations[_i].a, relations[_i].b, in, eq, why);
}
END_TEST

// The map with its two runtime variables bound to elements d1 and d2 of one array.
static const kl_map *bound(const char *text) {
  kl_map m = *read_map(text);
  kl_map_var *v = kl_arena_dup(&arena, m.vars[KL_AFF_RT], 2 * sizeof *v);
  for (uint32_t i = 0; i < 2; i++) {
    const kl_aff *index = kl_aff_dim(pool, i + 1);
    v[i].from = (kl_producer){7, NULL, 1, kl_arena_dup(&arena, &index, sizeof index)};
  }
  m.vars[KL_AFF_RT] = v;
  return kl_map_make(pool, &m);
}

// What is asked of some variables does not depend on values elsewhere that can, but need not, be those of one element.
// The product is left open (see above), so that parts are looked at one by one.
START_TEST(runtime_values_are_a_part_of_their_own) {
  const kl_map *m = bound(
      "(d0, d1, d2, d3, d4){rt0, rt1} -> (), domain: d0 in [0, 20], d1 in [0, 9], d2 in [0, 9], d3 in [2, 40000], "
      "d4 in [2, 40000], rt0 in [0, 5], rt1 in [2, 9], d0 mod 7 in [3, 3], d3 * d4 in [1000003, 1000003]");
  ck_assert_int_eq(kl_map_is_empty(pool, m, KL_MAP_QUOTA, NULL), KL_UNKNOWN);
}
END_TEST

int main(void) {
  return RUN_TESTS("decisions about maps", EACH(open_pool, close_pool), {emptiness_is_decided, KL_COUNT(emptiness)},
                   {inclusion_is_decided, KL_COUNT(relations)}, {runtime_values_are_a_part_of_their_own});
}
