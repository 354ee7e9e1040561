// Random small maps, each at every point of its box, before and after every rewrite: what kiln reads, prints,
// simplifies, composes, decides, against plain integer arithmetic on the tree that the text was made of.
//
// KILN_MAP_FIRST sets the seed to begin with, KILN_MAP_SEED one to run alone and print.
#include "ir/index/map/map.h"
#include "random_maps.h"
#include "support/share.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kl_ctx *cx;
static kl_arena arena;
static kl_affs *pool;
static unsigned unknowns;

static void open_pool(void) {
  cx = kiln_context_create(NULL);
  kl_arena_init(&arena, cx);
  pool = kl_affs_create(cx, &arena);
}
static void close_pool(void) {
  kl_affs_destroy(&pool);
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
}

static const rm_style small = {160, 120, true};
static const rm_style linear_only = {160, 120, false};

static char *text_of(const rm_map *m, bool backwards, bool named) {
  char *text;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  rm_text(m, f, backwards, named);
  fclose(f);
  return text;
}

static const kl_map *read(const char *text) {
  kl_source src = {"map", {text, strlen(text)}};
  const kl_map *m = NULL;
  kiln_status s = kl_map_parse(pool, &src, &m);
  EXPECT(s == KILN_OK, "%s\n%s", text, kiln_diagnostics_get(cx, kiln_diagnostics_count(cx) - 1)->text);
  return m;
}

static char *print(const kl_map *m, kl_map_form form) {
  kl_sb b;
  kl_sb_init(&b, cx);
  EXPECT(kl_map_print(pool, &b, m, form), "too long to print");
  char *text = strdup(b.p);
  kl_sb_free(&b);
  return text;
}

// A point of m's variables, in order of kinds, as kiln has it.
static kl_point at(const kl_map *m, const int64_t *x) {
  return (kl_point){{x, x + m->nvars[0], x + m->nvars[0] + m->nvars[1]}};
}

// Does the map, at every point of the tree's box, hold the same points and results?
static void same_as_tree(const rm_map *t, const kl_map *m, const char *what, const char *text) {
  int64_t x[RM_VARS], results[RM_RESULTS];
  rm_first(t, x);
  do {
    bool in = rm_contains(t, x);
    if (m->state == KL_MAP_EMPTY) {
      EXPECT(!in, "%s: empty, but not at %lld %lld %lld %lld\n%s", what, (long long)x[0], (long long)x[1],
             (long long)x[2], (long long)x[3], text);
      continue;
    }
    kl_point p = at(m, x);
    EXPECT(kl_map_contains(pool, m, &p) == in, "%s: domain differs at %lld %lld %lld %lld (in: %d)\n%s\n%s", what,
           (long long)x[0], (long long)x[1], (long long)x[2], (long long)x[3], in, text, print(m, KL_MAP_LINE));
    if (!in) continue;
    EXPECT(kl_map_eval(pool, m, &p, results), "%s: no value\n%s", what, text);
    for (int i = 0; i < t->nresults; i++) {
      EXPECT(results[i] == rm_value(t, t->results[i], x), "%s: result %d differs at %lld %lld %lld %lld\n%s\n%s", what,
             i, (long long)x[0], (long long)x[1], (long long)x[2], (long long)x[3], text, print(m, KL_MAP_LINE));
    }
  } while (rm_next(t, x));
}

static bool tree_is_empty(const rm_map *t) {
  int64_t x[RM_VARS];
  rm_first(t, x);
  do {
    if (rm_contains(t, x)) return false;
  } while (rm_next(t, x));
  return true;
}

static bool identical(const kl_map *a, const kl_map *b) {
  if (a->state != b->state || a->nresults != b->nresults || a->nconstraints != b->nconstraints) return false;
  for (uint32_t i = 0; i < a->nresults; i++) {
    if (a->results[i] != b->results[i]) return false;
  }
  for (uint32_t i = 0; i < a->nconstraints; i++) {
    const kl_constraint *c = &a->constraints[i], *d = &b->constraints[i];
    if (c->e != d->e || c->in.lo != d->in.lo || c->in.hi != d->in.hi) return false;
  }
  for (int k = 0; k < KL_AFF_VARS; k++) {
    if (a->nvars[k] != b->nvars[k]) return false;
    for (uint32_t i = 0; i < a->nvars[k]; i++) {
      if (a->vars[k][i].in.lo != b->vars[k][i].in.lo || a->vars[k][i].in.hi != b->vars[k][i].in.hi) return false;
    }
  }
  return true;
}

static void check_text(const kl_map *m, const char *text) {
  for (int form = 0; form < 2; form++) {
    char *printed = print(m, (kl_map_form)form);
    const kl_map *again = read(printed);
    char *twice = print(again, (kl_map_form)form);
    EXPECT(strcmp(printed, twice) == 0, "no fixed point\n%s\n%s\n%s", text, printed, twice);
    if (m->state == KL_MAP_DEFINED) EXPECT(identical(m, again), "read back another map\n%s\n%s", text, printed);
    free(printed);
    free(twice);
  }
}

static void check_ranges(const rm_map *t, const kl_map *m, const char *text) {
  kl_interval in[RM_RESULTS];
  int64_t x[RM_VARS];
  EXPECT(kl_map_result_ranges(pool, m, in), "no ranges");
  rm_first(t, x);
  do {
    if (!rm_contains(t, x)) continue;
    for (int i = 0; i < t->nresults; i++) {
      __int128 v = rm_value(t, t->results[i], x);
      EXPECT(v >= in[i].lo && v <= in[i].hi, "result %d leaves [%lld, %lld]\n%s", i, (long long)in[i].lo,
             (long long)in[i].hi, text);
    }
  } while (rm_next(t, x));
}

static void check_order(const rm_map *t, const kl_map *simple, const char *text) {
  char *backwards = text_of(t, true, false), *named = text_of(t, false, true), *first = print(simple, KL_MAP_LINE);
  const kl_map *other = kl_map_simplify(pool, read(backwards), 0);
  EXPECT(identical(simple, other), "order of constraints matters\n%s\n%s\n%s", text, first, print(other, KL_MAP_LINE));
  EXPECT(identical(simple, kl_map_simplify(pool, read(named), 0)), "names matter\n%s", text);
  free(backwards);
  free(named);
  free(first);
}

static void one_map(const rm_map *t) {
  char *text = text_of(t, false, false);
  const kl_map *m = read(text);
  same_as_tree(t, m, "read", text);
  check_text(m, text);
  const kl_map *s = kl_map_simplify(pool, m, 0);
  same_as_tree(t, s, "simplified", text);
  check_text(s, text);
  const kl_map *again = kl_map_simplify(pool, s, 0);
  EXPECT(identical(s, again), "not idempotent\n%s\n%s\n%s", text, print(s, KL_MAP_LINE), print(again, KL_MAP_LINE));
  const kl_map *points = kl_map_simplify(pool, m, KL_MAP_KEEP_POINTS);
  same_as_tree(t, points, "simplified, points kept", text);
  bool empty = tree_is_empty(t);
  kl_truth found = kl_map_is_empty(pool, m, KL_MAP_QUOTA, NULL);
  EXPECT(found == (empty ? KL_YES : KL_NO), "empty: %d, found %d\n%s", empty, found, text);
  found = kl_map_is_empty(pool, s, KL_MAP_QUOTA, NULL);
  EXPECT(found == (empty ? KL_YES : KL_NO), "simplified empty: %d, found %d\n%s", empty, found, text);
  check_ranges(t, m, text);
  check_order(t, s, text);
  free(text);
}

// --- sets of (dims, results) --------------------------------------------------------------------------------------

enum { WIDTH = 2 * RM_VARS + 2 * RM_RESULTS, MOST_ROWS = 70000 };

typedef struct set {
  int64_t (*p)[WIDTH];
  size_t n;
} set;

static int by_row(const void *a, const void *b) {
  return memcmp(a, b, sizeof(int64_t[WIDTH]));
}

// Rows (dims, runtime values, results) or, backwards, (results, runtime values, dims) of a map whose box is small.
static set rows_of(const kl_map *m, bool backwards) {
  set s = {NULL, 0};
  size_t room = 0;
  int64_t x[4 * RM_VARS + 8] = {0}, out[4 * RM_RESULTS];
  int n = 0;
  int64_t lo[4 * RM_VARS + 8], hi[4 * RM_VARS + 8];
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++, n++) {
      lo[n] = x[n] = m->vars[k][i].in.lo;
      hi[n] = m->vars[k][i].in.hi;
    }
  }
  if (m->state != KL_MAP_DEFINED) return s;
  for (;;) {
    kl_point p = at(m, x);
    if (kl_map_contains(pool, m, &p) && kl_map_eval(pool, m, &p, out)) {
      if (s.n == room) s.p = realloc(s.p, (room = room * 2 + 256) * sizeof *s.p);
      int64_t *row = s.p[s.n++], *r = row;
      memset(row, 0, sizeof s.p[0]);
      for (uint32_t i = 0; i < m->nresults && backwards; i++) *r++ = out[i];
      for (uint32_t i = 0; i < m->nvars[KL_AFF_DIM] && !backwards; i++) *r++ = p.at[KL_AFF_DIM][i];
      for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++) *r++ = p.at[KL_AFF_RT][i];
      for (uint32_t i = 0; i < m->nvars[KL_AFF_DIM] && backwards; i++) *r++ = p.at[KL_AFF_DIM][i];
      for (uint32_t i = 0; i < m->nresults && !backwards; i++) *r++ = out[i];
      EXPECT(s.n < MOST_ROWS, "too many rows");
    }
    int i = 0;
    while (i < n && x[i] == hi[i]) {
      x[i] = lo[i];
      i++;
    }
    if (i == n) break;
    x[i]++;
  }
  if (s.n) qsort(s.p, s.n, sizeof *s.p, by_row);
  size_t out_n = 0;
  for (size_t i = 0; i < s.n; i++) {
    if (out_n == 0 || by_row(s.p[out_n - 1], s.p[i]) != 0) memmove(s.p[out_n++], s.p[i], sizeof *s.p);
  }
  s.n = out_n;
  return s;
}

static bool subset(const set *a, const set *b) {
  size_t j = 0;
  for (size_t i = 0; i < a->n; i++) {
    while (j < b->n && by_row(b->p[j], a->p[i]) < 0) j++;
    if (j == b->n || by_row(b->p[j], a->p[i]) != 0) return false;
  }
  return true;
}

static bool same_sets(const set *a, const set *b) {
  return a->n == b->n && subset(a, b);
}

// What renames or removes ranges leaves the set of (dims, results) as it is; the converse has its pairs turned.
static void one_relation(const rm_map *t) {
  char *text = text_of(t, false, false);
  const kl_map *m = read(text);
  set rows = rows_of(m, false);
  const kl_map *same[] = {kl_map_rescale(pool, m), kl_map_remove_unused(pool, m, false, NULL)};
  for (size_t i = 0; i < KL_COUNT(same); i++) {
    if (same[i]->nvars[KL_AFF_RT] != m->nvars[KL_AFF_RT]) continue; // rows would not compare
    set s = rows_of(same[i], false);
    EXPECT(same_sets(&rows, &s), "%s: another set\n%s\n%s", i ? "remove_unused" : "rescale", text,
           print(same[i], KL_MAP_LINE));
    free(s.p);
  }
  const kl_map *back = kl_map_invert(pool, m, KL_MAP_QUOTA);
  if (back->state != KL_MAP_UNDEFINED) {
    int64_t points = kl_map_points(back);
    if (points < MOST_ROWS) {
      set turned = rows_of(m, true), s = rows_of(back, false);
      EXPECT(same_sets(&turned, &s), "converse: another set\n%s\n%s", text, print(back, KL_MAP_LINE));
      free(turned.p);
      free(s.p);
    }
  }
  free(rows.p);
  free(text);
}

// Inclusion both ways of two maps, of which the second is the first a little changed.
static void one_pair(const rm_map *t) {
  rm_map u = *t;
  switch (rm_bits() % 4) {
  case 0:
    if (u.nconstraints) u.clo[0] += rm_between(-1, 1);
    break;
  case 1:
    if (u.nvars) u.hi[0] += rm_between(0, 1);
    break;
  case 2: u.nodes[u.results[0]].v += u.nodes[u.results[0]].op == RM_CONST; break;
  default: break;
  }
  char *ta = text_of(t, false, false), *tb = text_of(&u, false, false);
  const kl_map *a = read(ta), *b = kl_map_simplify(pool, read(tb), 0);
  set sa = rows_of(a, false), sb = rows_of(b, false);
  bool in = subset(&sa, &sb), back = subset(&sb, &sa);
  const char *why = "";
  kl_truth t1 = kl_map_included(pool, a, b, KL_MAP_QUOTA, &why), t2 = kl_map_equal(pool, a, b, KL_MAP_QUOTA, &why);
  EXPECT(t1 == (in ? KL_YES : KL_NO), "included: %d, found %d (%s)\n%s\n%s", in, t1, why, ta, tb);
  EXPECT(t2 == (in && back ? KL_YES : KL_NO), "equal: %d, found %d (%s)\n%s\n%s", in && back, t2, why, ta, tb);
  unknowns += t1 == KL_UNKNOWN || t2 == KL_UNKNOWN;
  free(sa.p);
  free(sb.p);
  free(ta);
  free(tb);
}

// second after first, by hand.
static void one_composition(const rm_map *f, rm_map *g) {
  // Runtime variables would have to be told apart by hand: ranges do as well.
  g->n[1] += g->n[2] + (f->nresults < g->nvars ? g->n[0] - f->nresults : 0);
  if (g->nvars < f->nresults) return;
  g->n[0] = f->nresults;
  g->n[1] = g->nvars - g->n[0];
  g->n[2] = 0;
  if (f->n[2]) return;
  char *tf = text_of(f, false, false), *tg = text_of(g, false, false);
  const kl_map *m = kl_map_compose(pool, read(tf), read(tg));
  const kl_map *s = kl_map_simplify(pool, m, 0);
  int64_t x[RM_VARS], y[RM_VARS], all[2 * RM_VARS], out[RM_RESULTS];
  rm_first(f, x);
  do {
    rm_first(g, y);
    do { // y's ranges run; its dims are f's results
      bool first = true;
      for (int i = 0; i < g->n[0]; i++) first = first && y[i] == g->lo[i];
      if (!first) continue;
      int64_t z[RM_VARS];
      bool in = rm_contains(f, x);
      for (int i = 0; i < g->nvars; i++) z[i] = i < g->n[0] ? (int64_t)rm_value(f, f->results[i], x) : y[i];
      for (int i = 0; i < g->n[0]; i++) in = in && z[i] >= g->lo[i] && z[i] <= g->hi[i];
      in = in && rm_contains(g, z);
      int n = 0; // dims of f, ranges of g, ranges of f
      for (int i = 0; i < f->n[0]; i++) all[n++] = x[i];
      for (int i = g->n[0]; i < g->nvars; i++) all[n++] = y[i];
      for (int i = f->n[0]; i < f->nvars; i++) all[n++] = x[i];
      const kl_map *both[] = {m, s};
      for (int k = 0; k < 2; k++) {
        kl_point p = at(both[k], all);
        bool has = kl_map_contains(pool, both[k], &p);
        EXPECT(has == in, "composed domain differs (%d, found %d)\n%s\n%s\n%s", in, has, tf, tg,
               print(both[k], KL_MAP_LINE));
        if (!in) continue;
        EXPECT(kl_map_eval(pool, both[k], &p, out), "no value");
        for (int i = 0; i < g->nresults; i++) {
          EXPECT(out[i] == rm_value(g, g->results[i], z), "composed result differs\n%s\n%s", tf, tg);
        }
      }
    } while (rm_next(g, y));
  } while (rm_next(f, x));
  free(tf);
  free(tg);
}

// --- the tests ----------------------------------------------------------------------------------------------------

static void run(void (*one)(uint64_t seed), uint64_t usual) {
  const char *alone = getenv("KILN_MAP_SEED"), *from = alone ? alone : getenv("KILN_MAP_FIRST");
  uint64_t first = from ? strtoull(from, NULL, 10) : 0, total = alone ? 1 : share_of(usual);
  for (uint64_t seed = first; seed < first + total; seed++) {
    rm_seed(seed);
    if (seed % 32 == 0 || alone) { // pools of many maps, and pools of few
      close_pool();
      open_pool();
    }
    one(seed);
  }
}

static void announce(const rm_map *t, uint64_t seed) {
  if (!getenv("KILN_MAP_SEED")) return;
  char *text = text_of(t, false, false);
  fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, text);
  free(text);
}

static void seed_map(uint64_t seed) {
  static const rm_style large = {4096, 4000, true}; // as many points as are always enumerated
  rm_map t;
  rm_make(&t, seed % 64 ? &small : &large);
  announce(&t, seed);
  one_map(&t);
}
static void seed_relation(uint64_t seed) {
  rm_map t;
  rm_make(&t, &small);
  announce(&t, seed);
  one_relation(&t);
}
static void seed_pair(uint64_t seed) {
  rm_map t;
  rm_make(&t, &linear_only);
  announce(&t, seed);
  one_pair(&t);
}
static void seed_composition(uint64_t seed) {
  static const rm_style tiny = {24, 20, false};
  rm_map f, g;
  rm_make(&f, &tiny);
  rm_make(&g, &tiny);
  announce(&f, seed);
  announce(&g, seed);
  one_composition(&f, &g);
}

START_TEST(maps) {
  run(seed_map, 4000);
}
END_TEST
START_TEST(relations) {
  run(seed_relation, 4000);
}
END_TEST
START_TEST(pairs) {
  run(seed_pair, 2000);
  ck_assert_msg(unknowns == 0, "%u pairs undecided", unknowns);
}
END_TEST
START_TEST(compositions) {
  run(seed_composition, 4000);
}
END_TEST

int main(void) {
  return RUN_TESTS("random maps", EACH(open_pool, close_pool), {maps}, {relations}, {pairs}, {compositions});
}
