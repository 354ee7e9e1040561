// What is decided completely, over bounds far too wide to enumerate: conditions of one mod or floordiv on a variable,
// mixed-radix digits, conjunctions of congruences with moduli up to those of which a few points are left in all. None
// may be left open. Half of the maps are built around a point, so that they are known not to be empty; of the others,
// and of every inclusion, isl says what is right, where it answers within its quota.
//
// 300 of each kind (support/share.h); KILN_MAP_SEED sets one seed to run alone and print.
#include "map_support.h"
#include "random_maps.h"
#include "support/share.h"

#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/set.h>
#include <stdlib.h>

enum { MOST_VARS = 4, MOST_CONDITIONS = 12, MOST_TERMS = MOST_VARS, ISL_QUOTA = 40000 };

// (c + sum(coef * variable)) / by mod m in [lo, hi]; m = 0: no mod.
typedef struct condition {
  int64_t coef[MOST_VARS], c, by, m, lo, hi;
} condition;

typedef struct instance {
  int n, conditions;
  int64_t lo[MOST_VARS], hi[MOST_VARS], point[MOST_VARS];
  bool planted;
  condition of[MOST_CONDITIONS];
} instance;

static int64_t pick(const int64_t *of, size_t n) {
  return of[rm_bits() % n];
}

static int64_t floor_of(__int128 a, int64_t k) {
  return (int64_t)(a / k - (a % k < 0));
}

static int64_t value(const condition *c, const int64_t *x) {
  __int128 v = c->c;
  for (int i = 0; i < MOST_VARS; i++) v += (__int128)c->coef[i] * x[i];
  int64_t q = floor_of(v, c->by);
  return c->m ? q - c->m * floor_of(q, c->m) : q;
}

// --- families -----------------------------------------------------------------------------------------------------

static void make_bounds(instance *s, int most) {
  static const int64_t size[] = {1000, 1 << 14, 1000000, (int64_t)1 << 31, 1000000000000, (int64_t)1 << 40};
  memset(s, 0, sizeof *s);
  s->n = (int)rm_between(1, most);
  s->planted = rm_bits() % 2;
  for (int i = 0; i < s->n; i++) {
    s->lo[i] = rm_bits() % 2 ? 0 : rm_between(-1000000, 1000000);
    s->hi[i] = s->lo[i] + pick(size, KL_COUNT(size)) + rm_between(-200, 1000);
    s->point[i] = rm_between(s->lo[i], s->hi[i]);
  }
}

// The condition's interval: `width` values, with the planted point's among them if there is one.
static void add(instance *s, condition c, int64_t width) {
  int64_t v = value(&c, s->point), most = c.m ? c.m : INT64_MAX;
  if (width > most) width = most;
  c.lo = (s->planted ? v : c.m ? rm_between(0, c.m - 1) : v + rm_between(-50, 50)) - rm_between(0, width - 1);
  if (c.m && c.lo < 0) c.lo = 0;
  c.hi = c.lo + width - 1;
  if (c.m && c.hi >= c.m) c.hi = c.m - 1;
  if (s->conditions < MOST_CONDITIONS) s->of[s->conditions++] = c;
}

static void make_single(instance *s) {
  static const int64_t k[] = {2, 3, 4, 7, 8, 12, 16, 97, 100, 127, 128, 1000, 4096, 1009};
  make_bounds(s, 4);
  for (int i = 0; i < s->n; i++) {
    condition c = {.by = 1, .c = rm_between(-50, 50)};
    c.coef[i] = rm_bits() % 3 ? 1 : rm_between(-9, 9);
    if (rm_bits() % 3)
      c.m = pick(k, KL_COUNT(k));
    else
      c.by = pick(k, KL_COUNT(k));
    add(s, c, rm_between(1, c.m ? c.m : 100));
  }
}

// Digits of one flat index of all variables, or of every variable's own.
static void make_digits(instance *s) {
  static const int64_t radix[] = {2, 3, 4, 5, 8, 10, 16, 7, 60};
  make_bounds(s, 3);
  bool flat = rm_bits() % 3 == 0;
  for (int i = 0; i < (flat ? 1 : s->n); i++) {
    condition c = {.by = 1, .c = rm_between(-20, 20)};
    for (int j = 0; j < s->n && flat; j++)
      c.coef[j] = pick(radix, KL_COUNT(radix)) * (j ? 1 : pick(radix, KL_COUNT(radix)));
    if (!flat) c.coef[i] = 1;
    for (int d = (int)rm_between(1, s->n > 1 && !flat ? 4 : 8); d > 0; d--) {
      c.m = pick(radix, KL_COUNT(radix));
      if (rm_bits() % 4) add(s, c, rm_bits() % 2 ? 1 : rm_between(1, c.m));
      c.by *= c.m;
    }
  }
}

static void make_congruences(instance *s) {
  static const int64_t small[] = {2, 3, 4, 6, 7, 9, 15, 30, 64, 97},
                       large[] = {1009, 1024, 4093, 99989, 100003, 1000003};
  make_bounds(s, 4);
  double points = 1, left = 1; // how many there are, and how many for each that is left
  for (int i = 0; i < s->n; i++) points *= (double)(s->hi[i] - s->lo[i] + 1);
  for (int n = (int)rm_between(1, 5); n > 0 && left < points; n--) {
    condition c = {.by = 1, .c = rm_between(-9, 9)};
    for (int i = 0; i < s->n; i++) c.coef[i] = rm_between(-9, 9);
    c.m = rm_bits() % 2 ? pick(small, KL_COUNT(small)) : pick(large, KL_COUNT(large));
    left *= (double)c.m;
    add(s, c, 1);
  }
}

// --- text ---------------------------------------------------------------------------------------------------------

static void put_sum(FILE *f, const condition *c, int n) {
  fprintf(f, "(%lld", (long long)c->c);
  for (int i = 0; i < n; i++) fprintf(f, " + %lld * d%d", (long long)c->coef[i], i);
  fputc(')', f);
}

static char *text_of(const instance *s) {
  char *text;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  for (int twice = 0; twice < 2; twice++) {
    fputs(twice ? " -> (" : "(", f);
    for (int i = 0; i < s->n; i++) fprintf(f, "%sd%d", i ? ", " : "", i);
    fputc(')', f);
  }
  fputs(", domain: ", f);
  for (int i = 0; i < s->n; i++)
    fprintf(f, "%sd%d in [%lld, %lld]", i ? ", " : "", i, (long long)s->lo[i], (long long)s->hi[i]);
  for (int i = 0; i < s->conditions; i++) {
    const condition *c = &s->of[i];
    fputs(", (", f);
    put_sum(f, c, s->n);
    fprintf(f, " / %lld)", (long long)c->by);
    if (c->m) fprintf(f, " mod %lld", (long long)c->m);
    fprintf(f, " in [%lld, %lld]", (long long)c->lo, (long long)c->hi);
  }
  fclose(f);
  return text;
}

static isl_set *set_of(isl_ctx *isl, const instance *s) {
  char *text;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  fputs("{ [", f);
  for (int i = 0; i < s->n; i++) fprintf(f, "%sd%d", i ? ", " : "", i);
  fputs("] : 0 = 0", f);
  for (int i = 0; i < s->n; i++) fprintf(f, " and %lld <= d%d <= %lld", (long long)s->lo[i], i, (long long)s->hi[i]);
  for (int i = 0; i < s->conditions; i++) {
    const condition *c = &s->of[i];
    fprintf(f, " and %lld <= floor(", (long long)c->lo);
    put_sum(f, c, s->n);
    fprintf(f, "/%lld)", (long long)c->by);
    if (c->m) fprintf(f, " mod %lld", (long long)c->m);
    fprintf(f, " <= %lld", (long long)c->hi);
  }
  fputs(" }", f);
  fclose(f);
  isl_set *r = isl_set_read_from_str(isl, text);
  free(text);
  return r;
}

// --- judging ------------------------------------------------------------------------------------------------------

static unsigned judged, open_answers;

// `right` as isl says, or isl_bool_error.
static void judge(isl_bool right, kl_truth found, const char *what, const char *why, const char *a, const char *b) {
  open_answers += found == KL_UNKNOWN;
  if (getenv("KILN_MAP_OPEN") && found == KL_UNKNOWN) fprintf(stderr, "# %s\n%s\n%s\n", what, a, b);
  EXPECT(found != KL_UNKNOWN || getenv("KILN_MAP_OPEN"), "%s is left open (%s)\n%s\n%s", what, why, a, b);
  if (right == isl_bool_error || found == KL_UNKNOWN) return;
  judged++;
  EXPECT((found == KL_YES) == (right == isl_bool_true), "%s: isl says %d, found %d\n%s\n%s", what, right, found, a, b);
}

static void one_system(const instance *s, isl_ctx *isl) {
  char *text = text_of(s);
  instance other = *s;
  condition *c = &other.of[other.conditions ? rm_bits() % (uint64_t)other.conditions : 0];
  if (rm_bits() % 2 && c->lo < c->hi) c->lo++;
  if (rm_bits() % 2 && (!c->m || c->hi + 1 < c->m)) c->hi++;
  char *text2 = text_of(&other);
  const kl_map *m = read_map(text), *t = kl_map_simplify(pool, read_map(text2), 0);
  const char *why = "";
  isl_ctx_reset_operations(isl);
  isl_set *a = set_of(isl, s), *b = set_of(isl, &other);
  kl_truth found = kl_map_is_empty(pool, m, KL_MAP_QUOTA, &why);
  EXPECT(!s->planted || found != KL_YES, "empty, but for the planted point\n%s", text);
  judge(s->planted ? isl_bool_false : isl_set_is_empty(a), found, "emptiness", why, text, "");
  isl_ctx_reset_operations(isl);
  isl_bool right = isl_set_is_subset(a, b);
  judge(right, kl_map_included(pool, m, t, KL_MAP_QUOTA, &why), "inclusion", why, text, text2);
  found = kl_map_equal(pool, m, kl_map_simplify(pool, m, 0), KL_MAP_QUOTA, &why);
  judge(isl_bool_true, found, "equality", why, text, "its simplified form");
  isl_set_free(a);
  isl_set_free(b);
  free(text);
  free(text2);
}

static void run(void (*make)(instance *)) {
  const char *alone = getenv("KILN_MAP_SEED");
  uint64_t n = alone ? 1 : share_of(300);
  isl_ctx *isl = isl_ctx_alloc();
  isl_options_set_on_error(isl, ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(isl, ISL_QUOTA);
  judged = open_answers = 0;
  for (uint64_t i = 0; i < n; i++) {
    instance s;
    rm_seed(alone ? strtoull(alone, NULL, 10) : i);
    make(&s);
    if (i % 16 == 15) new_pool();
    one_system(&s, isl);
    isl_ctx_reset_error(isl);
  }
  isl_ctx_free(isl);
  printf("# %llu systems, %u answers judged, %u left open\n", (unsigned long long)n, judged, open_answers);
}

START_TEST(conditions_on_one_variable) {
  run(make_single);
}
END_TEST
START_TEST(digits) {
  run(make_digits);
}
END_TEST
START_TEST(congruences) {
  run(make_congruences);
}
END_TEST

int main(void) {
  return RUN_TESTS("maps that are decided", EACH(open_pool, close_pool), {conditions_on_one_variable}, {digits},
                   {congruences});
}
