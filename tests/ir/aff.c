// Expressions: one normal form, exact arithmetic to the ends of 64 bits, error values, sharing.
#include "ir/index/domain/domain.h"
#include "map_support.h"

#include <stdlib.h>
#include <time.h>

static int64_t between(uint64_t *state, int64_t lo, int64_t hi) {
  *state += 0x9e3779b97f4a7c15ull;
  uint64_t x = (*state ^ (*state >> 30)) * 0xbf58476d1ce4e5b9ull;
  return lo + (int64_t)((x ^ (x >> 27)) % (uint64_t)(hi - lo + 1));
}

static const kl_aff *num(int64_t c) {
  return kl_aff_const(pool, c);
}
static const kl_aff *dim(uint32_t i) {
  return kl_aff_dim(pool, i);
}

// Valid as long as the pool.
static const char *text_of(const kl_aff *e) {
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "");
  ck_assert(kl_aff_print(pool, &b, e, NULL));
  const char *text = kl_str_dup(&arena, (kl_str){b.p, b.n}).p;
  kl_sb_free(&b);
  return text;
}

// The first result of "(d0, d1, d2, d3) -> (TEXT)".
static const kl_aff *expr(const char *text) {
  char full[512];
  snprintf(full, sizeof full,
           "(d0, d1, d2, d3) -> (%s), domain: d0 in [-99, 99], d1 in [-99, 99], d2 in [-99, 99], d3 in [-99, 99]",
           text);
  return read_map(full)->results[0];
}

// Pairs that are one expression, whatever the values of variables.
static const char *const same[][2] = {
    {"d1 * 2 + 5 + (d0 - d1) * 3", "d0 * 3 - d1 + 5"},
    {"(2 * (d0 + 1) + 3) * 4", "d0 * 8 + 20"},
    {"(d0 * 8 + 3) / 4", "d0 * 2"},
    {"(d0 * 8 + 3) ceildiv 4", "d0 * 2 + 1"},
    {"(d0 * 2 + d1) mod 2", "d1 mod 2"},
    {"(d0 mod 21) mod 7", "d0 mod 7"},
    {"d0 / -3", "-(d0 ceildiv 3)"},
    {"d0 ceildiv -2", "(d0 / 2) * -1"},
    {"(d0 * 6) / -3", "d0 * -2"},
    {"d0 mod -3", "d0 mod 3"},
    {"5 / 2 mod -3", "2"},
    {"-7 mod 3", "2"},
    {"-7 / 2", "-4"},
    {"-7 ceildiv 2", "-3"},
    {"7 / -2", "-4"},
    {"d0 / 1", "d0"},
    {"d0 mod 1", "0"},
    {"d0 / 4 * 4 + d0 mod 4", "d0"},
    {"(d0 / 2) / 3", "d0 / 6"},
    {"(d0 * 4 + d1 * 6) / 10", "(d0 * 2 + d1 * 3) / 5"},
    {"(d0 + 7) / 4", "(d0 + 3) / 4 + 1"},
    {"((d0 / 4) mod 2) * 4 + d0 mod 4", "d0 mod 8"},
    {"(109 - 11 * d0 - d1) / 11", "9 - d0 - d1 ceildiv 11 + (10 - d1) / 11 + d1 ceildiv 11"},
    {"min(d0, d0 + 1)", "d0"},
    {"max(d0 + 3, d1 + 3)", "max(d0, d1) + 3"},
    {"min(d0 * 4, d1 * 6)", "min(d0 * 2, d1 * 3) * 2"},
    {"min(-d0, -d1)", "-max(d0, d1)"},
    {"min(d0, min(d1, d2))", "min(min(d2, d0), d1)"},
    {"max(d0, d1 + max(d2, d3))", "max(max(d1 + d2, d0), d1 + d3)"},
    {"(d0 + 2) * (d1 - 3)", "d0 * d1 - d0 * 3 + d1 * 2 - 6"},
    {"d0 * d1 * d0", "d0 * (d0 * d1)"},
    {"(d0 + d1) * (d0 - d1)", "d0 * d0 - d1 * d1"},
    {"(d0 + d1) / (d2 + d2 - 2 * d2 + 3)", "(d0 + d1) / 3"},
    {"d0 / d1 - d0 / d1", "0"},
    {"d0 mod d1 + max(d1, -d1) * (d0 / max(d1, -d1))", "d0"},
};

START_TEST(one_normal_form) {
  const kl_aff *a = expr(same[_i][0]), *b = expr(same[_i][1]);
  ck_assert_msg(a == b, "%s is %s\n%s is %s", same[_i][0], text_of(a), same[_i][1], text_of(b));
}
END_TEST

// Identities that hold as pointers, for random values of bounded variables.
START_TEST(equal_means_same) {
  kl_affs *p = pool;
  kl_dom *dom = kl_dom_make(p, 3, (kl_interval[]){{-6, 9}, {0, 7}, {-3, 1}});
  for (unsigned seed = 0; seed < 400; seed++) {
    uint64_t state = seed;
    const kl_aff *v[6];
    for (uint32_t i = 0; i < 3; i++) v[i] = dim(i);
    for (uint32_t i = 3; i < 6; i++) {
      const kl_aff *x = v[between(&state, 0, i - 1)], *y = v[between(&state, 0, i - 1)];
      const kl_aff *e = kl_aff_addmul(p, x, y, between(&state, -9, 9));
      int64_t by = between(&state, 2, 12);
      v[i] = between(&state, 0, 1) ? kl_aff_floordivc(p, e, by) : kl_aff_modc(p, e, by);
    }
    const kl_aff *a = v[between(&state, 3, 5)], *b = v[between(&state, 0, 5)], *c = v[between(&state, 0, 5)];
    int64_t k = between(&state, 2, 24), m = between(&state, -9, 9), n = between(&state, -9, 9);
    const kl_aff *q = kl_aff_floordivc(p, a, k), *r = kl_aff_modc(p, a, k);
    const struct {
      const char *law;
      const kl_aff *x, *y;
    } laws[] = {
        {"a + b = b + a", kl_aff_add(p, a, b), kl_aff_add(p, b, a)},
        {"(a + b) + c = a + (b + c)", kl_aff_add(p, kl_aff_add(p, a, b), c), kl_aff_add(p, a, kl_aff_add(p, b, c))},
        {"(a + b) - b = a", kl_aff_sub(p, kl_aff_add(p, a, b), b), a},
        {"m*a + n*a = (m + n)*a", kl_aff_addmul(p, kl_aff_mulc(p, a, m), a, n), kl_aff_mulc(p, a, m + n)},
        {"m*(n*a) = (m*n)*a", kl_aff_mulc(p, kl_aff_mulc(p, a, n), m), kl_aff_mulc(p, a, m * n)},
        {"m*(a + b) = m*a + m*b", kl_aff_mulc(p, kl_aff_add(p, a, b), m), kl_aff_addmul(p, kl_aff_mulc(p, a, m), b, m)},
        {"k*(a div k) + a mod k = a", kl_aff_addmul(p, r, q, k), a},
        {"(a mod k) mod k = a mod k", kl_aff_modc(p, r, k), r},
        {"(a mod k) div k = 0", kl_aff_floordivc(p, r, k), num(0)},
        {"(k*a) div k = a", kl_aff_floordivc(p, kl_aff_mulc(p, a, k), k), a},
        {"(a + k*m) div k = a div k + m", kl_aff_floordivc(p, kl_aff_addc(p, a, k * m), k), kl_aff_addc(p, q, m)},
    };
    for (size_t i = 0; i < KL_COUNT(laws); i++)
      EXPECT(kl_dom_simplify(dom, laws[i].x) == kl_dom_simplify(dom, laws[i].y),
             "seed %u, k = %ld: %s fails for a = %s", seed, (long)k, laws[i].law, text_of(a));
  }
}
END_TEST

START_TEST(errors_are_values) {
  const kl_aff *big = num(INT64_MAX), *least = num(INT64_MIN);
  const struct {
    const kl_aff *e;
    kl_aff_error error;
  } rows[] = {
      {kl_aff_addc(pool, big, 1), KL_AFF_OVERFLOW},
      {kl_aff_addc(pool, least, -1), KL_AFF_OVERFLOW},
      {kl_aff_mulc(pool, least, -1), KL_AFF_OVERFLOW},
      {kl_aff_mul(pool, big, big), KL_AFF_OVERFLOW},
      {kl_aff_mulc(pool, kl_aff_mulc(pool, dim(0), INT64_MAX), 2), KL_AFF_OVERFLOW},
      {kl_aff_add(pool, kl_aff_mulc(pool, dim(0), INT64_MAX), dim(0)), KL_AFF_OVERFLOW},
      {kl_aff_floordivc(pool, dim(0), INT64_MIN), KL_AFF_OVERFLOW},
      {kl_aff_floordivc(pool, least, -1), KL_AFF_OVERFLOW},
      {kl_aff_floordivc(pool, dim(0), 0), KL_AFF_DIV_BY_ZERO},
      {kl_aff_modc(pool, dim(0), 0), KL_AFF_DIV_BY_ZERO},
      {kl_aff_ceildiv(pool, dim(0), num(0)), KL_AFF_DIV_BY_ZERO},
      {kl_aff_mod(pool, dim(0), num(0)), KL_AFF_DIV_BY_ZERO},
  };
  for (size_t i = 0; i < KL_COUNT(rows); i++) {
    const kl_aff *e = rows[i].e;
    ck_assert_msg(e->error == rows[i].error, "row %zu: %d", i, e->error);
    // handed on by everything
    const kl_aff *after[] = {
        kl_aff_add(pool, e, dim(0)),      kl_aff_add(pool, dim(0), e),  kl_aff_mulc(pool, e, 3),
        kl_aff_mul(pool, dim(1), e),      kl_aff_floordivc(pool, e, 4), kl_aff_modc(pool, e, 4),
        kl_aff_floordiv(pool, dim(0), e), kl_aff_mod(pool, e, dim(0)),  kl_aff_min(pool, e, dim(0)),
        kl_aff_max(pool, num(1), e),      kl_aff_addc(pool, e, 1)};
    for (size_t j = 0; j < KL_COUNT(after); j++) ck_assert_msg(after[j]->error == e->error, "row %zu, %zu", i, j);
    kl_map m = {.nresults = 1, .results = &e};
    ck_assert_int_eq(kl_map_make(pool, &m)->state, KL_MAP_UNDEFINED);
  }
}
END_TEST

// The ends of 64 bits, where a step in between does not fit.
START_TEST(arithmetic_is_exact_at_the_ends) {
  const kl_aff *x = dim(0);
  ck_assert_ptr_eq(kl_aff_sub(pool, kl_aff_mulc(pool, x, INT64_MIN), kl_aff_mulc(pool, x, INT64_MIN)), num(0));
  ck_assert_ptr_eq(kl_aff_floordivc(pool, num(INT64_MIN), 2), num(INT64_MIN / 2));
  ck_assert_ptr_eq(kl_aff_modc(pool, num(INT64_MIN), 3), num(1));
  const kl_aff *f = kl_aff_modc(pool, x, INT64_MAX);
  int64_t at[] = {INT64_MIN, -1, 0, INT64_MAX - 1, INT64_MAX},
          want[] = {INT64_MAX - 1, INT64_MAX - 1, 0, INT64_MAX - 1, 0};
  for (int i = 0; i < 5; i++) {
    int64_t v;
    kl_point p = {{&at[i]}};
    ck_assert(kl_aff_eval(pool, f, &p, &v));
    ck_assert_int_eq(v, want[i]);
  }
  int64_t v;
  kl_point p = {{(int64_t[]){INT64_MAX, 0}}};
  ck_assert(!kl_aff_eval(pool, kl_aff_addc(pool, x, 1), &p, &v));
  ck_assert(!kl_aff_eval(pool, kl_aff_mulc(pool, x, 2), &p, &v));
  ck_assert(!kl_aff_eval(pool, kl_aff_floordiv(pool, x, dim(1)), &p, &v)); // divides by 0
  ck_assert(kl_aff_eval(pool, kl_aff_addmul(pool, kl_aff_mulc(pool, x, 2), kl_aff_floordivc(pool, x, 2), -4), &p, &v));
  ck_assert_int_eq(v, 2);
}
END_TEST

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// What the text would need 2^n terms for takes n nodes, and walks take n steps. The text itself is refused.
START_TEST(shared_parts_are_shared) {
  const kl_aff *rows[4] = {dim(0), dim(0), dim(0), dim(0)};
  for (int i = 0; i < 200; i++) {
    rows[0] = kl_aff_add(pool, kl_aff_floordivc(pool, kl_aff_addc(pool, rows[0], i), 2),
                         kl_aff_floordivc(pool, kl_aff_addc(pool, rows[0], 5), 3));
    rows[1] = kl_aff_max(pool, kl_aff_add(pool, rows[1], dim(1)),
                         kl_aff_add(pool, kl_aff_floordivc(pool, rows[1], 2), dim(0)));
    rows[2] = kl_aff_modc(pool, kl_aff_add(pool, rows[2], kl_aff_modc(pool, rows[2], 7 + i)), 1000 + i);
    rows[3] = kl_aff_floordiv(pool, rows[3], kl_aff_addc(pool, rows[3], 1));
  }
  const double begin = seconds();
  for (int i = 0; i < 4; i++) {
    int64_t v = 0, at[2] = {1000000, 3};
    kl_point p = {{at}};
    ck_assert(i == 3 || kl_aff_eval(pool, rows[i], &p, &v));
    const kl_aff *to[2] = {kl_aff_addc(pool, dim(1), 5), dim(0)};
    kl_aff_subst s = {.to = {to}, .n = {2}};
    const kl_aff *r;
    kl_aff_replace(pool, &s, &rows[i], 1, &r);
    bool d[2] = {false}, *used[] = {d, NULL, NULL};
    kl_aff_mark(pool, r, used, (uint32_t[]){2, 0, 0});
    ck_assert(r->error || d[1] || d[0]);
  }
  ck_assert_msg(seconds() - begin < 2, "walks took %.3f s", seconds() - begin);
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_sb_puts(&b, "before");
  ck_assert(!kl_aff_print(pool, &b, rows[0], NULL));
  ck_assert_str_eq(b.p, "before");
  kl_sb_free(&b);
}
END_TEST

// Chains: each step a map of its own, composed and simplified as they come.
START_TEST(chains_compose_fast) {
  static const char *const steps[] = {
      "(d0, d1) -> (d0 + 1, d1), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
      "(d0, d1) -> (d1, d0), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
      ("(d0, d1) -> ((d0 * 1000001 + d1) / 1000001, (d0 * 1000001 + d1) mod 1000001), domain: d0 in [0, 1000000], "
       "d1 in [0, 1000000]"),
      "(d0, d1) -> (d0, -d1 + 1000000), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
      "(d0, d1) -> ((d0 / 4) * 4 + d0 mod 4, d1), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
  };
  const kl_map *step[KL_COUNT(steps)], *m = read_map("(d0, d1) -> (d0, d1), domain: d0 in [0, 99], d1 in [0, 99]");
  for (size_t i = 0; i < KL_COUNT(steps); i++) step[i] = read_map(steps[i]);
  double begin = seconds();
  for (int i = 0; i < 1000; i++) m = kl_map_simplify(pool, kl_map_compose(pool, m, step[i % 5]), 0);
  double took = seconds() - begin;
  ck_assert_int_eq(m->state, KL_MAP_DEFINED);
  ck_assert_uint_le(m->results[0]->size + m->results[1]->size, 4);
  ck_assert_msg(took < 1, "a chain of 1000 took %.3f s", took); // of 0.05 s in a release build, see the benchmark
}
END_TEST

START_TEST(nested_divisions_go_deep) {
  const kl_aff *e = dim(0);
  uint32_t most = 0;
  for (int i = 0; i < 5000 && !e->error; i++) {
    most = e->depth;
    e = kl_aff_floordivc(pool, kl_aff_add(pool, kl_aff_mulc(pool, e, 2), dim((uint32_t)i % 3)), 3);
    kl_map m = {.nvars = {3}, .nresults = 1, .results = &e};
    kl_map_var v[3] = {{.in = {0, 99}}, {.in = {0, 99}}, {.in = {0, 99}}};
    m.vars[0] = v;
    if (i % 499 == 0) ck_assert_int_eq(kl_map_simplify(pool, kl_map_make(pool, &m), 0)->state, KL_MAP_DEFINED);
  }
  ck_assert_int_eq(e->error, KL_AFF_TOO_LARGE);
  ck_assert_uint_gt(most, 1000);
}
END_TEST

int main(void) {
  return RUN_TESTS("expressions", EACH(open_pool, close_pool), {one_normal_form, KL_COUNT(same)}, {equal_means_same},
                   {errors_are_values}, {arithmetic_is_exact_at_the_ends}, {shared_parts_are_shared},
                   {chains_compose_fast}, {nested_divisions_go_deep});
}
