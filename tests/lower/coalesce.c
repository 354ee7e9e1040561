// Sectors of requests, against counting them thread by thread with a set of the sectors of each warp.
#include "lower/analysis/coalesce.h"
#include "ir/map_support.h"
#include "support/share.h"

#include <stdio.h>
#include <stdlib.h>

// element = a*t + b*(t / k) + c*((t + d) / k / j) + e; taking part where lo <= f*t + g*(t / k) <= hi.
typedef struct pattern {
  int64_t a, b, c, d, e, k, j, f, g, lo, hi;
  unsigned bits, bytes;
  bool guarded, else_first;
  int64_t threads;
  uint32_t base;
} pattern;

static int64_t down(int64_t a, int64_t k) {
  int64_t q = a / k;
  return q * k > a ? q - 1 : q;
}

static int by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static int64_t distinct(int64_t *v, size_t n) {
  qsort(v, n, sizeof *v, by_number);
  int64_t d = 0;
  for (size_t i = 0; i < n; i++) d += i == 0 || v[i] != v[i - 1];
  return d;
}

// Byte by byte.
static kl_requests by_hand(const pattern *p) {
  kl_requests sum = {.exact = true};
  for (int64_t w = 0; w * 32 < p->threads; w++) {
    int64_t touched[32 * 16], sectors[32 * 16];
    size_t n = 0;
    for (int64_t t = w * 32; t < w * 32 + 32 && t < p->threads; t++) {
      int64_t q = p->f * t + p->g * down(t, p->k);
      bool in = !p->guarded || (q >= p->lo && q <= p->hi);
      if (!in && !p->else_first) continue;
      int64_t element = p->a * t + p->b * down(t, p->k) + p->c * down(down(t + p->d, p->k), p->j) + p->e;
      int64_t first = in ? down(element * p->bits, 8) : 0;
      for (unsigned i = 0; i < p->bytes; i++) touched[n++] = p->base + first + i;
    }
    for (size_t i = 0; i < n; i++) sectors[i] = down(touched[i], 32);
    sum.requests += n > 0;
    sum.sectors += distinct(sectors, n);
    sum.least += (distinct(touched, n) + 31) / 32;
  }
  return sum;
}

static const kl_aff *times(const kl_aff *e, int64_t k) {
  return kl_aff_mulc(pool, e, k);
}

// Threads in a row: variable 0.
static kl_warps threads_of(int64_t threads) {
  kl_warps w = {.nvars = 1, .extent = {(threads + 31) / 32}, .scale = {32}};
  for (int l = 0; l < KL_WARP; l++) w.lane[0][l] = l;
  return w;
}

static kl_requests counted(const pattern *p) {
  const kl_aff *t = kl_aff_dim(pool, 0), *row = kl_aff_floordivc(pool, t, p->k);
  const kl_aff *far = kl_aff_floordivc(pool, kl_aff_floordivc(pool, kl_aff_addc(pool, t, p->d), p->k), p->j);
  const kl_aff *at = kl_aff_add(pool, kl_aff_add(pool, times(t, p->a), times(row, p->b)), times(far, p->c));
  kl_warps w = threads_of(p->threads);
  kl_constraint k[2] = {{t, {0, p->threads - 1}}, {kl_aff_add(pool, times(t, p->f), times(row, p->g)), {p->lo, p->hi}}};
  kl_request r = {.element = kl_aff_addc(pool, at, p->e),
                  .bits = p->bits,
                  .bytes = p->bytes,
                  .nconditions = p->guarded ? 2 : 1,
                  .conditions = k,
                  .nthere = 1,
                  .otherwise = p->else_first ? kl_aff_const(pool, 0) : NULL};
  return kl_count_requests(&w, &r, p->base, KL_REQUESTS_QUOTA);
}

static void compare(const pattern *p, const char *name) {
  kl_requests want = by_hand(p), got = counted(p);
  EXPECT(got.exact, "%s: not exact", name);
  EXPECT(got.requests == want.requests && got.sectors == want.sectors && got.least == want.least,
         "%s: %lld requests, %lld sectors, %lld would do; by hand %lld, %lld, %lld", name, (long long)got.requests,
         (long long)got.sectors, (long long)got.least, (long long)want.requests, (long long)want.sectors,
         (long long)want.least);
}

// Enough threads that periods are used, and a rest.
enum { MANY = 200000, FEW = 5000 };

static const struct {
  const char *name;
  pattern p;
  int64_t sectors_each; // of a request of 32 threads; 0: not the same for all
} row[] = {
    {"neighbours of 4 bytes", {.a = 1, .k = 1, .j = 1, .bits = 32, .bytes = 4, .threads = MANY}, 4},
    {"neighbours of 16 bytes", {.a = 4, .k = 1, .j = 1, .bits = 32, .bytes = 16, .threads = MANY}, 16},
    {"off by one element", {.a = 1, .e = 1, .k = 1, .j = 1, .bits = 32, .bytes = 4, .threads = MANY}, 5},
    {"an array that begins inside a sector",
     {.a = 1, .k = 1, .j = 1, .bits = 32, .bytes = 4, .threads = MANY, .base = 16},
     5},
    {"one element for all", {.e = 7, .k = 1, .j = 1, .bits = 32, .bytes = 4, .threads = MANY}, 1},
    {"every second", {.a = 2, .k = 1, .j = 1, .bits = 32, .bytes = 4, .threads = MANY}, 8},
    {"downwards", {.a = -1, .e = MANY, .k = 1, .j = 1, .bits = 32, .bytes = 4, .threads = MANY}, 0},
    {"columns", {.a = 1000, .b = -255999, .k = 256, .j = 1, .bits = 32, .bytes = 4, .threads = MANY}, 32},
    {"halves of bytes", {.a = 1, .k = 1, .j = 1, .bits = 4, .bytes = 1, .threads = MANY}, 1},
    {"bits", {.a = 8, .k = 1, .j = 1, .bits = 1, .bytes = 1, .threads = MANY}, 1},
    {"rows of 33", {.a = 1, .b = 7, .k = 33, .j = 1, .bits = 32, .bytes = 4, .threads = MANY}, 0},
    {"digits", {.a = 3, .b = 5, .c = 11, .d = 6, .k = 12, .j = 7, .bits = 16, .bytes = 2, .threads = MANY}, 0},
    {"a guard that holds for the first half",
     {.a = 1, .k = 1, .j = 1, .f = 1, .hi = MANY / 2 + 3, .bits = 32, .bytes = 4, .guarded = true, .threads = MANY},
     0},
    {"a guard of rows, else the first element",
     {.a = 1,
      .e = -40,
      .k = 50,
      .j = 1,
      .f = 1,
      .g = -50,
      .lo = 3,
      .hi = 41,
      .bits = 32,
      .bytes = 4,
      .guarded = true,
      .else_first = true,
      .threads = MANY},
     0},
    {"a guard that moves down",
     {.a = 1,
      .k = 9,
      .j = 1,
      .f = -2,
      .g = 1,
      .lo = -90000,
      .hi = -777,
      .bits = 64,
      .bytes = 8,
      .guarded = true,
      .threads = MANY},
     0},
    {"a guard of digits, else the first element",
     {.a = 1,
      .k = 64,
      .j = 1,
      .f = 1,
      .g = -64,
      .lo = 3,
      .hi = 61,
      .bits = 32,
      .bytes = 4,
      .guarded = true,
      .else_first = true,
      .threads = MANY},
     0},
    {"the same, downwards to it",
     {.a = -1,
      .e = MANY,
      .k = 64,
      .j = 1,
      .f = 1,
      .g = -64,
      .lo = 3,
      .hi = 61,
      .bits = 32,
      .bytes = 4,
      .guarded = true,
      .else_first = true,
      .threads = MANY},
     0},
    {"an element a warp beside the first",
     {.b = 8,
      .k = 32,
      .j = 1,
      .f = 1,
      .g = -32,
      .lo = 3,
      .hi = 30,
      .bits = 32,
      .bytes = 4,
      .guarded = true,
      .else_first = true,
      .threads = MANY},
     0},
    {"a guard that never holds",
     {.a = 1, .k = 1, .j = 1, .f = 1, .lo = -9, .hi = -1, .bits = 32, .bytes = 4, .guarded = true, .threads = MANY},
     0},
    {"no threads", {.a = 1, .k = 1, .j = 1, .bits = 32, .bytes = 4}, 0},
};

START_TEST(rows) {
  const pattern *p = &row[_i].p;
  compare(p, row[_i].name);
  kl_requests s = counted(p);
  if (row[_i].sectors_each)
    EXPECT(s.requests == (p->threads + 31) / 32 && s.sectors == row[_i].sectors_each * s.requests, "%s: %lld sectors",
           row[_i].name, (long long)s.sectors);
}
END_TEST

static uint64_t state;
static int64_t between(int64_t lo, int64_t hi) {
  state += 0x9e3779b97f4a7c15ull;
  uint64_t x = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
  return lo + (int64_t)((x ^ (x >> 27)) % (uint64_t)(hi - lo + 1));
}

START_TEST(random_patterns) {
  for (unsigned seed = 0; seed < share_of(20); seed++) {
    state = seed;
    char name[32];
    static const unsigned bits[] = {1, 4, 8, 16, 32, 64};
    pattern p = {.a = between(-4, 9),
                 .b = between(-40, 40),
                 .c = between(-9, 9),
                 .d = between(0, 9),
                 .e = between(-99, 99),
                 .k = between(1, 40),
                 .j = between(1, 9),
                 .f = between(-3, 3),
                 .g = between(-50, 50),
                 .bits = bits[between(0, 5)],
                 .bytes = 1u << between(0, 4)};
    p.lo = between(-100000, 1000);
    p.hi = p.lo + between(-10, 100000);
    p.guarded = seed % 2;
    p.else_first = seed % 4 == 3;
    p.threads = seed % 3 ? between(131073, 180000) : between(1, FEW);
    p.base = (uint32_t)between(0, 31);
    snprintf(name, sizeof name, "seed %u", seed);
    compare(&p, name);
  }
}
END_TEST

// --- several variables ----------------------------------------------------------------------------------------------

// In variables block, warp, round of a loop and lane: element and condition are sums of them and of a floor of such a
// sum.
enum { BLOCK, WARP, ROUND, LANE, VARS };
typedef struct sum {
  int64_t of[VARS], inner[VARS], c, coef, k;
} sum;

static int64_t value_of(const sum *s, const int64_t *x) {
  int64_t v = s->c, in = 0;
  for (int i = 0; i < VARS; i++) v += s->of[i] * x[i], in += s->inner[i] * x[i];
  return v + s->coef * down(in, s->k);
}

static const kl_aff *sum_of(const sum *s) {
  const kl_aff *v = kl_aff_const(pool, s->c), *in = kl_aff_const(pool, 0);
  for (uint32_t i = 0; i < VARS; i++) {
    v = kl_aff_add(pool, v, times(kl_aff_dim(pool, i), s->of[i]));
    in = kl_aff_add(pool, in, times(kl_aff_dim(pool, i), s->inner[i]));
  }
  return kl_aff_add(pool, v, times(kl_aff_floordivc(pool, in, s->k), s->coef));
}

// Halves of a warp for 8 bytes and quarters for 16 go one after the other, unless all lanes load the same.
static int64_t passes(const int64_t *byte, uint32_t mask, unsigned bytes) {
  int64_t all = 0, places = 0;
  for (unsigned l = 0; l < 32; l++) {
    bool is_new = mask >> l & 1;
    for (unsigned k = 0; k < l; k++) is_new &= !(mask >> k & 1) || byte[k] != byte[l];
    places += is_new;
  }
  if (places == 1) return 1;
  unsigned words = bytes < 4 ? 1 : bytes / 4, together = 32 / words;
  for (unsigned first = 0; first < 32; first += together) {
    int64_t most = 0;
    for (int64_t bank = 0; bank < 32; bank++) {
      int64_t word[32 * 4];
      size_t n = 0;
      for (unsigned l = first; l < first + together; l++)
        for (unsigned k = 0; k < words && mask >> l & 1; k++)
          if (down(byte[l], 4) + k - 32 * down(down(byte[l], 4) + k, 32) == bank) word[n++] = down(byte[l], 4) + k;
      int64_t d = distinct(word, n);
      if (d > most) most = d;
    }
    all += most;
  }
  return all;
}

static kl_requests several_by_hand(const sum *at, const sum *guard, int64_t hi, const int64_t *extent, unsigned bits,
                                   unsigned bytes, bool otherwise, bool shared) {
  kl_requests all = {0};
  for (int64_t n = 0; n < extent[BLOCK] * extent[WARP] * extent[ROUND]; n++) {
    int64_t x[VARS] = {n / extent[ROUND] / extent[WARP], n / extent[ROUND] % extent[WARP], n % extent[ROUND]}, byte[32];
    int64_t touched[32 * 16], sectors[32 * 16];
    uint32_t mask = 0;
    size_t m = 0;
    for (unsigned l = 0; l < 32; l++) {
      x[LANE] = l;
      int64_t g = value_of(guard, x);
      bool in = g >= 0 && g <= hi;
      if (!in && !otherwise) continue;
      mask |= 1u << l;
      byte[l] = in ? down(value_of(at, x) * bits, 8) : 0;
      for (unsigned i = 0; i < bytes; i++) touched[m++] = byte[l] + i;
    }
    for (size_t i = 0; i < m; i++) sectors[i] = down(touched[i], 32);
    all.requests += mask != 0;
    all.lanes += __builtin_popcount(mask);
    if (shared) all.wavefronts += passes(byte, mask, bytes);
    if (!shared) all.sectors += distinct(sectors, m);
    all.unique += distinct(touched, m);
  }
  return all;
}

static sum any_sum(int64_t most) {
  sum s = {.c = between(-3, 40), .coef = between(-9, 9), .k = between(1, 20)};
  static const int64_t even[] = {0, 1, 8, 32, 128, 256};
  for (int i = 0; i < VARS; i++) {
    s.of[i] = between(0, 2) ? even[between(0, 5)] * between(0, 2) : between(-most, most);
    s.inner[i] = between(0, 2) ? 0 : between(-7, 7);
  }
  return s;
}

START_TEST(several_variables) {
  for (unsigned seed = 0; seed < share_of(100); seed++) {
    state = seed;
    int64_t extent[VARS] = {between(1, 70), between(1, 9), between(1, 7), 1};
    sum at = any_sum(50), guard = any_sum(9);
    int64_t hi = between(-10, 3000);
    unsigned bytes = 1u << between(0, 4), bits = 8 * bytes;
    bool otherwise = seed % 2, shared = seed % 3 == 0;
    kl_warps w = {.nvars = VARS, .scale = {1, 1, 1, 0}};
    memcpy(w.extent, extent, sizeof extent);
    for (int l = 0; l < KL_WARP; l++) w.lane[LANE][l] = l;
    kl_constraint k = {sum_of(&guard), {0, hi}};
    kl_request r = {.element = sum_of(&at), .bits = bits, .bytes = bytes, .nconditions = 1, .conditions = &k};
    r.otherwise = otherwise ? kl_aff_const(pool, 0) : NULL;
    r.shared = shared;
    kl_requests want = several_by_hand(&at, &guard, hi, extent, bits, bytes, otherwise, shared);
    kl_requests got = kl_count_requests(&w, &r, 0, KL_REQUESTS_QUOTA);
    EXPECT(got.exact, "seed %u: not exact", seed);
    EXPECT(got.requests == want.requests && got.lanes == want.lanes && got.unique == want.unique &&
               got.sectors == want.sectors && got.wavefronts == want.wavefronts,
           "seed %u: %lld requests, %lld lanes, %lld bytes, %lld sectors, %lld wavefronts; by hand %lld, %lld, %lld, "
           "%lld, %lld",
           seed, (long long)got.requests, (long long)got.lanes, (long long)got.unique, (long long)got.sectors,
           (long long)got.wavefronts, (long long)want.requests, (long long)want.lanes, (long long)want.unique,
           (long long)want.sectors, (long long)want.wavefronts);
  }
}
END_TEST

// Billions of threads cost no more than a period.
START_TEST(large_launches_are_exact) {
  pattern p = {.a = 1000, .b = -255999, .k = 256, .j = 1, .bits = 32, .bytes = 4, .threads = (int64_t)1 << 36};
  kl_requests s = counted(&p);
  EXPECT(s.exact && s.requests == (int64_t)1 << 31 && s.sectors == (int64_t)1 << 36, "%lld sectors",
         (long long)s.sectors);
  p.guarded = true;
  p.f = 1;
  p.hi = ((int64_t)1 << 35) + 15;
  s = counted(&p);
  EXPECT(s.exact && s.sectors == ((int64_t)1 << 35) + 16, "%lld sectors of a guarded half", (long long)s.sectors);
  // No period within the quota: an estimate that says so.
  p = (pattern){.a = 1, .b = 1, .c = 1, .k = 1000003, .j = 999983, .bits = 32, .bytes = 4, .threads = (int64_t)1 << 34};
  s = counted(&p);
  EXPECT(!s.exact && s.sectors >= (int64_t)1 << 31 && s.sectors <= 5 * ((int64_t)1 << 29), "%lld sectors, about",
         (long long)s.sectors);
}
END_TEST

// What XLA's analysis says of the first warp, of which each thread reads `count` times, `step` bytes on.
START_TEST(xla_says) {
  static const struct {
    int64_t stride; // bytes from thread to thread
    unsigned bytes, count;
    int64_t step;
    bool coalesced;
  } say[] = {
      {4, 4, 1, 0, true},
      {16, 16, 1, 0, true},
      {0, 4, 1, 0, true},
      {8, 4, 1, 0, false},
      {4000, 4, 1, 0, false},
      {-4, 4, 1, 0, true},
      {1, 1, 1, 0, true},
      // a loop that fills the holes, and one that does not
      {16, 4, 4, 4, true},
      {16, 4, 3, 4, false},
      {-16, 4, 4, 4, true},
      // 32 rows of 128 bytes each, and of 132: half of the lines of a row are its own
      {4096, 4, 32, 4, true},
      {4096, 4, 33, 4, false},
      // threads beside each other in each of four rows
      {4, 4, 4, 4096, true},
      // nothing is read
      {4, 4, 0, 0, true},
  };
  for (size_t i = 0; i < KL_COUNT(say); i++) {
    kl_request r[40];
    for (unsigned k = 0; k < say[i].count; k++) {
      const kl_aff *at = times(kl_aff_dim(pool, 0), say[i].stride * 8);
      r[k] = (kl_request){
          .element = kl_aff_addc(pool, at, (int64_t)k * say[i].step * 8), .bits = 1, .bytes = say[i].bytes};
    }
    kl_warps w = threads_of(1024);
    EXPECT(kl_is_coalesced_for_xla(cx, &w, r, say[i].count) == say[i].coalesced, "row %zu", i);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("coalescing", EACH(open_pool, close_pool), {rows, KL_COUNT(row)}, {random_patterns},
                   {several_variables}, {large_launches_are_exact}, {xla_says});
}
