// Points and different results of maps: known ones, and random ones against sets made point by point.
#include "map_support.h"

static const struct {
  const char *maps[3];
  int64_t most, points, images;
  bool points_exact, images_exact;
} row[] = {
    {{"(d0, d1) -> (d1, d0), domain: d0 in [0, 99999], d1 in [0, 99999]"},
     10000000000,
     10000000000,
     10000000000,
     true,
     true},
    {{"(d0, d1) -> (d0 * 4096 + d1), domain: d0 in [0, 99999], d1 in [0, 4095]"},
     409600000,
     409600000,
     409600000,
     true,
     true},
    {{"(d0, d1) -> (d0 * 4095 + d1), domain: d0 in [0, 9], d1 in [0, 4095]"}, 40951, 40960, 40951, true, true},
    {{"(d0) -> (d0 / 4096, d0 mod 4096), domain: d0 in [0, 409599999]"}, 409600000, 409600000, 409600000, true, true},
    {{"(d0, d1) -> (d0), domain: d0 in [0, 999], d1 in [0, 9999999]"}, 1000, 10000000000, 1000, true, true},
    {{"(d0)[s0, s1] -> (d0, s0, s1), domain: d0 in [0, 999], s0 in [0, 99], s1 in [0, 99]"},
     10000000,
     10000000,
     10000000,
     true,
     true},
    {{"(d0, d1) -> (d0, d1 - 1), domain: d0 in [0, 99999], d1 in [1, 65536]"},
     6553600000,
     6553600000,
     6553600000,
     true,
     true},
    {{"(d0, d1) -> (d0 / 3, d1), domain: d0 in [0, 99999], d1 in [0, 9], d0 mod 3 in [0, 0]"},
     333340,
     333340,
     333340,
     true,
     true},
    {{"(d0) -> (d0), domain: d0 in [0, 999999999]", "(d0) -> (d0 + 1), domain: d0 in [0, 999999998]"},
     1000000000,
     1999999999,
     1000000000,
     true,
     true},
    {{"(d0) -> (d0), domain: d0 in [0, 99]", "(d0) -> (d0 + 50), domain: d0 in [0, 99]"}, 1000, 200, 150, true, true},
    {{"(d0) -> (d0), domain: d0 in [0, 99]", "KNOWN EMPTY"}, 1000, 100, 100, true, true},
    {{"(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 99], rt0 in [0, 900]"}, 1000, 100, 100, true, true},
    {{"(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 99], rt0 in [0, 900]", "(d0) -> (d0), domain: d0 in [0, 99]"},
     1000,
     200,
     200,
     true,
     false},
    {{"(d0){rt0} -> (d0), domain: d0 in [0, 99], rt0 in [0, 900], d0 + rt0 in [0, 500]"},
     100,
     INT64_MAX,
     100,
     false,
     false},
    {{"(d0, d1) -> (d1), domain: d0 in [0, 99], d1 in [0, 9]",
      "(d0){rt0} -> (rt0 / 2 + d0), domain: d0 in [0, 9], rt0 in [0, 900]"},
     1000,
     1010,
     20,
     true,
     false},
    {{"(d0){rt0} -> (d0 * rt0), domain: d0 in [0, 99], rt0 in [0, 900]"}, 1000, 100, 100, true, false},
    {{"()[s0] -> (), domain: s0 in [0, 6]"}, 1, 7, 1, true, true},
    {{"() -> ()"}, 1, 1, 1, true, true},
    {{"(d0, d1) -> ((d0 * d0 + d1 * 7919) / 3), domain: d0 in [0, 99999], d1 in [0, 99999]"},
     1000000,
     10000000000,
     1000000,
     true,
     false},
};

START_TEST(rows) {
  const kl_map *maps[3];
  uint32_t n = 0;
  for (; n < 3 && row[_i].maps[n]; n++)
    maps[n] = strcmp(row[_i].maps[n], "KNOWN EMPTY")
                  ? read_map(row[_i].maps[n])
                  : read_map("(d0) -> (d0), domain: d0 in [0, 9], d0 mod 3 in [7, 9]");
  kl_map_counts c = kl_map_count(pool, maps, n, row[_i].most, KL_COUNT_QUOTA);
  EXPECT(c.points == row[_i].points && c.images == row[_i].images, "%s: %lld points, %lld results", row[_i].maps[0],
         (long long)c.points, (long long)c.images);
  EXPECT(c.points_exact == row[_i].points_exact && c.images_exact == row[_i].images_exact, "%s: exact %d %d",
         row[_i].maps[0], c.points_exact, c.images_exact);
}
END_TEST

static uint64_t state;
static int64_t between(int64_t lo, int64_t hi) {
  state += 0x9e3779b97f4a7c15ull;
  uint64_t x = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
  return lo + (int64_t)((x ^ (x >> 27)) % (uint64_t)(hi - lo + 1));
}

// a*x + b*y + c*((x + d) / e), and for constraints the same.
typedef struct form {
  int64_t a, b, c, d, e;
} form;

static form any_form(void) {
  return (form){between(-3, 4), between(-2, 5), between(-2, 2) * between(0, 1), between(0, 5), between(1, 4)};
}

static int64_t value(form f, int64_t x, int64_t y) {
  int64_t n = x + f.d, q = n / f.e;
  return f.a * x + f.b * y + f.c * (n % f.e < 0 ? q - 1 : q);
}

static int print(char *out, size_t n, form f, const char *x, const char *y) {
  return snprintf(out, n, "%lld * %s + %lld * %s + %lld * ((%s + %lld) / %lld)", (long long)f.a, x, (long long)f.b, y,
                  (long long)f.c, x, (long long)f.d, (long long)f.e);
}

// Two results over (d0, d1) and (d1, s0), a constraint over two of them; all sets made by hand.
START_TEST(random_maps) {
  for (unsigned seed = 0; seed < 3000; seed++) {
    state = seed;
    int64_t n[3] = {between(1, 9), between(1, 9), between(1, 7)}, lo = between(-9, 5), hi = lo + between(0, 30);
    bool guarded = between(0, 1), three = between(0, 1);
    form f = any_form(), g = any_form(), k = any_form();
    char text[3][160], full[800];
    static bool seen[2000][2000];
    memset(seen, 0, sizeof seen);
    print(text[0], sizeof text[0], f, "d0", "d1");
    print(text[1], sizeof text[1], g, three ? "s0" : "d0", "s0");
    print(text[2], sizeof text[2], k, "d0", three ? "s0" : "d1");
    int at =
        snprintf(full, sizeof full, "(d0, d1)[s0] -> (%s, %s), domain: d0 in [0, %d], d1 in [0, %d], s0 in [0, %d]",
                 text[0], text[1], (int)n[0] - 1, (int)n[1] - 1, (int)n[2] - 1);
    if (guarded) snprintf(full + at, sizeof full - (size_t)at, ", %s in [%d, %d]", text[2], (int)lo, (int)hi);
    int64_t points = 0, images = 0;
    for (int64_t x = 0; x < n[0]; x++)
      for (int64_t y = 0; y < n[1]; y++)
        for (int64_t z = 0; z < n[2]; z++) {
          int64_t c = value(k, x, three ? z : y);
          if (guarded && (c < lo || c > hi)) continue;
          bool *s = &seen[value(f, x, y) + 1000][value(g, three ? z : x, z) + 1000];
          points++;
          images += !*s;
          *s = true;
        }
    const kl_map *m = read_map(full);
    for (int64_t quota = 4; quota <= 4096; quota *= 32) {
      kl_map_counts c = kl_map_count(pool, &m, 1, 1 << 20, quota);
      EXPECT(c.points_exact ? c.points == points : c.points >= points, "seed %u, quota %lld: %lld of %lld points of %s",
             seed, (long long)quota, (long long)c.points, (long long)points, full);
      EXPECT(c.images_exact ? c.images == images : c.images >= images,
             "seed %u, quota %lld: %lld of %lld results of %s", seed, (long long)quota, (long long)c.images,
             (long long)images, full);
      EXPECT(quota < 4096 || (c.points_exact && c.images_exact), "seed %u: not exact: %s", seed, full);
    }
    if (seed % 64 == 0) new_pool();
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("counts", EACH(open_pool, close_pool), {rows, KL_COUNT(row)}, {random_maps});
}
