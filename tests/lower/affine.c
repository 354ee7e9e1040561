// Index arithmetic: random constructions against plain integer arithmetic at every point of a small domain, identities
// that the normal form promises, and hand-made rows for printing and the ends of int64.
#include "lower/analysis/index.h"
#include "ir/shape.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>

static kl_ctx *cx;
static kl_arena arena;
static kl_exprs pool;

static void open_pool(void) {
  cx = kiln_context_create(NULL);
  kl_arena_init(&arena, cx);
  kl_exprs_init(&pool, cx, &arena);
}

static void close_pool(void) {
  kl_exprs_free(&pool);
  kl_arena_free(&arena);
  kiln_context_destroy(&cx);
}

static void new_pool(void) {
  kl_exprs_free(&pool);
  kl_arena_free(&arena);
  kl_arena_init(&arena, cx);
  kl_exprs_init(&pool, cx, &arena);
}

static const char *const names[] = {"x", "y", "z", "w"};

// Valid until the next one.
static const char *text_of(const kl_expr *e) {
  static char text[4096];
  kl_sb b;
  kl_sb_init(&b, cx);
  kl_expr_print(&b, e, names);
  snprintf(text, sizeof text, "%s", b.p);
  kl_sb_free(&b);
  return text;
}

static uint64_t state;

static unsigned pick(unsigned n) {
  state += 0x9e3779b97f4a7c15ull;
  uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (unsigned)((x ^ (x >> 31)) % n);
}
static int64_t between(int64_t lo, int64_t hi) {
  return lo + pick((unsigned)(hi - lo + 1));
}

// --- random constructions -------------------------------------------------------------------------------------------
//
// A value is an expression made through the API and, beside it, the table of what the same construction gives in plain
// integers at every point of the domain. Nothing of the table passes through kiln.

enum { VARS = 3, MOST_POINTS = 512, MADE = 28 };

typedef struct domain {
  int64_t lo[VARS], size[VARS];
  int points;
} domain;

typedef struct value {
  const kl_expr *e;
  int64_t at[MOST_POINTS];
} value;

// How a value came about: enough to make it a second time.
typedef struct recipe {
  enum { CONST, VAR, ADD, SUB, ADDC, MUL, DIV, MOD, SUBST, RECIPES } kind;
  unsigned a, b;
  int64_t k;
} recipe;

static domain any_domain(void) {
  domain d = {.points = 1};
  for (int i = 0; i < VARS; i++) {
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8};
    d.lo[i] = pick(2) ? 0 : between(-9, 6);
    d.size[i] = sizes[pick(KL_COUNT(sizes))];
    d.points *= (int)d.size[i];
  }
  return d;
}

static int64_t coordinate(const domain *d, int point, int var) {
  for (int i = 0; i < var; i++) point /= (int)d->size[i];
  return d->lo[var] + point % (int)d->size[var];
}

static int64_t floor_of(int64_t a, int64_t k) {
  return a >= 0 ? a / k : -((-a + k - 1) / k);
}

static recipe any_recipe(unsigned made) {
  static const int64_t factors[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 60};
  recipe r = {.kind = (int)pick(RECIPES), .a = pick(made), .b = pick(made)};
  switch (r.kind) {
  case CONST: r.k = between(-70, 70); break;
  case VAR: r.k = pick(VARS); break;
  case ADDC: r.k = between(-40, 40); break;
  case MUL: r.k = pick(4) ? factors[pick(KL_COUNT(factors))] : between(-7, 7); break;
  case DIV:
  case MOD: r.k = factors[pick(KL_COUNT(factors))]; break;
  default: r.k = pick(VARS); break;
  }
  return r;
}

// The point where the variable has the value that `by` has at this point; -1 if that is outside its range.
static int moved(const domain *d, int point, int var, int64_t by) {
  if (by < d->lo[var] || by >= d->lo[var] + d->size[var]) return -1;
  int step = 1;
  for (int i = 0; i < var; i++) step *= (int)d->size[i];
  return point + (int)(by - coordinate(d, point, var)) * step;
}

static int64_t plain(const domain *d, const recipe *r, const value *a, const value *b, int point) {
  switch (r->kind) {
  case CONST: return r->k;
  case VAR: return coordinate(d, point, (int)r->k);
  case ADD: return a->at[point] + b->at[point];
  case SUB: return a->at[point] - b->at[point];
  case ADDC: return a->at[point] + r->k;
  case MUL: return a->at[point] * r->k;
  case DIV: return floor_of(a->at[point], r->k);
  case MOD: return a->at[point] - r->k * floor_of(a->at[point], r->k);
  case SUBST: return a->at[moved(d, point, (int)r->k, b->at[point])];
  default: return 0;
  }
}

static const kl_expr *make(const domain *d, const recipe *r, const kl_expr *a, const kl_expr *b) {
  kl_exprs *p = &pool;
  switch (r->kind) {
  case CONST: return kl_expr_const(p, r->k);
  case VAR: return kl_expr_var(p, (int32_t)r->k, d->lo[r->k], d->lo[r->k] + d->size[r->k] - 1);
  case ADD: return kl_expr_add(p, a, b);
  case SUB: return kl_expr_sub(p, a, b);
  case ADDC: return kl_expr_addc(p, a, r->k);
  case MUL: return kl_expr_mul(p, a, r->k);
  case DIV: return kl_expr_div(p, a, r->k);
  case MOD: return kl_expr_mod(p, a, r->k);
  case SUBST: return kl_expr_subst(p, a, (int32_t)r->k, b);
  default: return NULL;
  }
}

// A substitute must stay in the range that the expression was simplified for.
static bool possible(const domain *d, const recipe *r, const value *b) {
  for (int i = 0; r->kind == SUBST && i < d->points; i++) {
    if (moved(d, i, (int)r->k, b->at[i]) < 0) return false;
  }
  return true;
}

static void check_value(unsigned seed, const domain *d, const value *v) {
  for (int i = 0; i < d->points; i++) {
    int64_t at[VARS];
    for (int k = 0; k < VARS; k++) at[k] = coordinate(d, i, k);
    int64_t got = kl_expr_eval(v->e, at);
    EXPECT(got == v->at[i], "seed %u: %s at %ld,%ld,%ld is %ld, not %ld", seed, text_of(v->e), (long)at[0], (long)at[1],
           (long)at[2], (long)v->at[i], (long)got);
    EXPECT(v->e->lo <= got && got <= v->e->hi, "seed %u: %s has %ld outside %ld..%ld", seed, text_of(v->e), (long)got,
           (long)v->e->lo, (long)v->e->hi);
  }
}

static void check_normal(unsigned seed, const kl_expr *e) {
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_atom *a = e->terms[i].atom;
    EXPECT(e->terms[i].coef != 0, "seed %u: %s keeps a zero", seed, text_of(e));
    EXPECT(i == 0 || e->terms[i - 1].atom->id < a->id, "seed %u: %s is out of order", seed, text_of(e));
    EXPECT(a->lo <= a->hi && (a->lo < a->hi || a->var < 0), "seed %u: empty atom in %s", seed, text_of(e));
    if (a->var >= 0) continue;
    EXPECT(a->k > 1 && a->inner->n > 0, "seed %u: %s floors for nothing", seed, text_of(e));
    check_normal(seed, a->inner);
  }
}

// Intervals that planning relies on: those of mods and variables.
static void check_tight(unsigned seed, const domain *d, const recipe *r, const value *a, const value *v) {
  if (r->kind == MOD)
    EXPECT(v->e->lo >= 0 && v->e->hi < r->k, "seed %u: (%s) mod %ld in %ld..%ld", seed, text_of(a->e), (long)r->k,
           (long)v->e->lo, (long)v->e->hi);
  if (r->kind == VAR)
    EXPECT(v->e->lo == d->lo[r->k] && v->e->hi == v->e->lo + d->size[r->k] - 1, "seed %u: variable %s in %ld..%ld",
           seed, text_of(v->e), (long)v->e->lo, (long)v->e->hi);
}

// gcd: what is left beside the variable is a multiple of it; coefficient: how far one step of the variable leads.
static void check_questions(unsigned seed, const domain *d, const value *v) {
  for (int32_t var = -1; var < VARS; var++) {
    bool inside = false, uses = var >= 0 && kl_expr_uses(v->e, var, &inside);
    int64_t g = kl_expr_gcd(v->e, var), c = var < 0 ? 0 : kl_expr_coef(v->e, var);
    EXPECT(uses || c == 0, "seed %u: %s has a coefficient of %s but no use", seed, text_of(v->e),
           names[var < 0 ? 0 : var]);
    for (int i = 0; i < d->points; i++) {
      int64_t rest = v->at[i] - (var < 0 ? 0 : c * coordinate(d, i, var));
      EXPECT(g ? rest % g == 0 : rest == 0, "seed %u: %ld does not divide %s beside %d", seed, (long)g, text_of(v->e),
             var);
      if (var < 0 || inside) continue;
      int next = moved(d, i, var, coordinate(d, i, var) + 1);
      EXPECT(next < 0 || v->at[next] - v->at[i] == c, "seed %u: coefficient of %s in %s", seed, names[var],
             text_of(v->e));
    }
  }
}

// One seed: a chain of values, each checked, then made again: the same pointers.
static void one_chain(unsigned seed, bool fresh) {
  static value v[MADE];
  recipe made[MADE];
  state = seed;
  if (fresh) new_pool();
  domain d = any_domain();
  unsigned n = 0;
  while (n < MADE) {
    recipe r = n < VARS ? (recipe){.kind = VAR, .k = n} : any_recipe(n);
    if (!possible(&d, &r, &v[r.b])) continue;
    made[n] = r;
    for (int i = 0; i < d.points; i++) v[n].at[i] = plain(&d, &r, &v[r.a], &v[r.b], i);
    bool small = true;
    for (int i = 0; i < d.points; i++) small = small && llabs(v[n].at[i]) < 1000000;
    if (!small) continue;
    v[n].e = make(&d, &r, v[r.a].e, v[r.b].e);
    check_value(seed, &d, &v[n]);
    check_normal(seed, v[n].e);
    check_tight(seed, &d, &r, &v[r.a], &v[n]);
    check_questions(seed, &d, &v[n]);
    n++;
  }
  for (unsigned i = 0; i < n; i++)
    EXPECT(make(&d, &made[i], v[made[i].a].e, v[made[i].b].e) == v[i].e, "seed %u: value %u made twice differs", seed,
           i);
  EXPECT(!pool.overflow, "seed %u: overflow", seed);
}

START_TEST(random_constructions) {
  for (unsigned seed = 0; seed < 1500; seed++) one_chain(seed, true);
}
END_TEST

START_TEST(random_constructions_in_one_pool) {
  for (unsigned seed = 10000; seed < 10300; seed++) one_chain(seed, false);
}
END_TEST

// --- taking an index apart and putting it together -------------------------------------------------------------------

typedef struct shape_case {
  kl_shape shape;
  int64_t dims[4], layout[4];
} shape_case;

static void set_layout(shape_case *s, unsigned permutation) {
  for (uint32_t i = 0; i < s->shape.rank; i++) s->layout[i] = i;
  for (uint32_t i = s->shape.rank; i > 1; i--) {
    unsigned o = permutation % i;
    permutation /= i;
    int64_t t = s->layout[i - 1];
    s->layout[i - 1] = s->layout[o];
    s->layout[o] = t;
  }
  s->shape.layout = (kl_layout){.present = true, .rank = s->shape.rank, .minor_to_major = s->layout, .tail_padding = 1};
}

static const char *shape_name(const shape_case *s) {
  static char text[128];
  int at = 0;
  for (uint32_t d = 0; d < s->shape.rank; d++) at += sprintf(text + at, "%ld,", (long)s->dims[d]);
  at += sprintf(text + at, " minor to major ");
  for (uint32_t d = 0; d < s->shape.rank; d++) at += sprintf(text + at, "%ld,", (long)s->layout[d]);
  return text;
}

// Every shape of the rank with dims from a short list, under every layout.
static void for_shapes(uint32_t rank, void (*f)(shape_case *)) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 8};
  unsigned shapes = 1, layouts = 1;
  for (uint32_t d = 0; d < rank; d++) shapes *= KL_COUNT(sizes), layouts *= d + 1;
  for (unsigned n = 0; n < shapes; n++) {
    shape_case s = {.shape = {.dtype = KILN_F32, .rank = rank, .count = 1}};
    s.shape.dims = s.dims;
    for (uint32_t d = 0, r = n; d < rank; d++, r /= KL_COUNT(sizes))
      s.shape.count *= s.dims[d] = sizes[r % KL_COUNT(sizes)];
    // All layouts of small ranks, some of each large one.
    for (unsigned l = 0; l < layouts; l += rank < 4 ? 1 : 5) {
      set_layout(&s, l + (rank < 4 ? 0 : n % 5));
      f(&s);
    }
  }
}

static const kl_expr *thread_and_lane(const shape_case *s, int64_t lanes, int64_t first) {
  int64_t threads = (s->shape.count - first) / lanes;
  const kl_expr *t = kl_expr_var(&pool, 0, 0, threads - 1), *j = kl_expr_var(&pool, 1, 0, lanes - 1);
  return kl_expr_addc(&pool, kl_expr_add(&pool, kl_expr_mul(&pool, t, lanes), j), first);
}

static void index_of(const shape_case *s, int64_t element, int64_t *index) {
  for (uint32_t i = 0; i < s->shape.rank; i++) {
    int64_t d = s->layout[i];
    index[d] = element % s->dims[d];
    element /= s->dims[d];
  }
}

static void check_round_trip(shape_case *s, const kl_expr *linear, int64_t lanes, int64_t first) {
  const kl_expr *index[4];
  kl_index_delinearize(&pool, &s->shape, linear, index);
  for (uint32_t d = 0; d < s->shape.rank; d++)
    EXPECT(index[d]->lo >= 0 && index[d]->hi < s->dims[d], "%s: dim %u in %ld..%ld of %s", shape_name(s), d,
           (long)index[d]->lo, (long)index[d]->hi, text_of(index[d]));
  const kl_expr *back = kl_index_linearize(&pool, &s->shape, index);
  EXPECT(back == linear, "%s: %s comes back as %s", shape_name(s), text_of(linear), strdup(text_of(back)));
  for (int64_t e = first; e < first + (s->shape.count - first) / lanes * lanes; e++) {
    int64_t want[4], at[2] = {(e - first) / lanes, (e - first) % lanes};
    index_of(s, e, want);
    for (uint32_t d = 0; d < s->shape.rank; d++)
      EXPECT(kl_expr_eval(index[d], at) == want[d], "%s: element %ld, dim %u", shape_name(s), (long)e, d);
  }
}

static void apart_and_together(shape_case *s) {
  static const struct { int64_t lanes, first; } walks[] = {{1, 0}, {4, 0}, {16, 0}, {2, 6}, {1, 5}, {8, 16}};
  const kl_expr *index[4];
  for (uint32_t d = 0; d < s->shape.rank; d++) index[d] = kl_expr_var(&pool, (int32_t)d, 0, s->dims[d] - 1);
  const kl_expr *linear = kl_index_linearize(&pool, &s->shape, index), *back[4];
  kl_index_delinearize(&pool, &s->shape, linear, back);
  for (uint32_t d = 0; d < s->shape.rank; d++)
    EXPECT(back[d] == index[d], "%s: dim %u comes back as %s", shape_name(s), d, text_of(back[d]));
  for (size_t i = 0; i < KL_COUNT(walks); i++) {
    if (s->shape.count >= walks[i].first + walks[i].lanes)
      check_round_trip(s, thread_and_lane(s, walks[i].lanes, walks[i].first), walks[i].lanes, walks[i].first);
  }
  if (pool.exprs.n > 4000) new_pool();
}

START_TEST(taking_apart_is_undone) {
  for (uint32_t rank = 0; rank <= 4; rank++) for_shapes(rank, apart_and_together);
}
END_TEST

// The same at sizes that cannot be enumerated, around the places where 32 bits end.
START_TEST(large_shapes_come_back) {
  static const int64_t dims[][4] = {
      {1 << 20, 5, 2, 400}, {3, 715827883, 1, 2}, {7, 5, 3, 1 << 30},    {1, 1ll << 40, 3, 5},
      {2, 536870913, 2, 1}, {6, 178956971, 2, 1}, {1000000007, 3, 2, 3}, {5, 2, 5, 1ll << 50},
  };
  for (size_t i = 0; i < KL_COUNT(dims); i++) {
    for (unsigned l = 0; l < 24; l++) {
      shape_case s = {.shape = {.dtype = KILN_S8, .rank = 4, .count = 1}};
      s.shape.dims = memcpy(s.dims, dims[i], sizeof s.dims);
      for (int d = 0; d < 4; d++) s.shape.count *= s.dims[d];
      set_layout(&s, l);
      for (int64_t lanes = 1; lanes <= 16; lanes *= 2) {
        const kl_expr *linear = thread_and_lane(&s, lanes, 0), *index[4];
        kl_index_delinearize(&pool, &s.shape, linear, index);
        const kl_expr *back = kl_index_linearize(&pool, &s.shape, index);
        EXPECT(back == linear, "%s, %ld lanes: %s", shape_name(&s), (long)lanes, text_of(back));
        for (int64_t at[2] = {0}, n = 0; n < 40; n++) {
          at[0] = n % 2 ? s.shape.count / lanes - 1 - n * n : n * n * n * 99991 % (s.shape.count / lanes);
          at[1] = n % lanes;
          int64_t want[4];
          index_of(&s, at[0] * lanes + at[1], want);
          for (int d = 0; d < 4; d++) EXPECT(kl_expr_eval(index[d], at) == want[d], "%s: dim %d", shape_name(&s), d);
        }
      }
      EXPECT(!pool.overflow, "%s: overflow", shape_name(&s));
      new_pool();
    }
  }
}
END_TEST

// --- promises of the normal form ------------------------------------------------------------------------------------

// Identities that hold as pointers, for random values.
START_TEST(equal_means_same) {
  kl_exprs *p = &pool;
  for (unsigned seed = 0; seed < 400; seed++) {
    state = seed;
    if (seed % 8 == 0) new_pool();
    const kl_expr *v[6];
    for (int i = 0; i < 3; i++) v[i] = kl_expr_var(p, i, between(-6, 0), between(1, 9));
    for (int i = 3; i < 6; i++) {
      const kl_expr *e = kl_expr_add(p, kl_expr_mul(p, v[pick((unsigned)i)], between(-9, 9)), v[pick((unsigned)i)]);
      v[i] = pick(2) ? kl_expr_div(p, e, between(2, 12)) : kl_expr_mod(p, e, between(2, 12));
    }
    const kl_expr *a = v[3 + pick(3)], *b = v[pick(6)], *c = v[pick(6)];
    int64_t k = between(2, 24), m = between(-9, 9), n = between(-9, 9);
    const kl_expr *q = kl_expr_div(p, a, k), *r = kl_expr_mod(p, a, k);
    const struct {
      const char *law;
      const kl_expr *x, *y;
    } laws[] = {
        {"a + b = b + a", kl_expr_add(p, a, b), kl_expr_add(p, b, a)},
        {"(a + b) + c = a + (b + c)", kl_expr_add(p, kl_expr_add(p, a, b), c), kl_expr_add(p, a, kl_expr_add(p, b, c))},
        {"(a + b) - b = a", kl_expr_sub(p, kl_expr_add(p, a, b), b), a},
        {"a - a = 0", kl_expr_sub(p, a, a), kl_expr_const(p, 0)},
        {"m*a + n*a = (m + n)*a", kl_expr_add(p, kl_expr_mul(p, a, m), kl_expr_mul(p, a, n)), kl_expr_mul(p, a, m + n)},
        {"m*(n*a) = (m*n)*a", kl_expr_mul(p, kl_expr_mul(p, a, n), m), kl_expr_mul(p, a, m * n)},
        {"m*(a + b) = m*a + m*b", kl_expr_mul(p, kl_expr_add(p, a, b), m),
         kl_expr_add(p, kl_expr_mul(p, a, m), kl_expr_mul(p, b, m))},
        {"(a + m) + n = a + (m + n)", kl_expr_addc(p, kl_expr_addc(p, a, m), n), kl_expr_addc(p, a, m + n)},
        {"k*(a div k) + a mod k = a", kl_expr_add(p, kl_expr_mul(p, q, k), r), a},
        {"(a mod k) mod k = a mod k", kl_expr_mod(p, r, k), r},
        {"(a mod k) div k = 0", kl_expr_div(p, r, k), kl_expr_const(p, 0)},
        {"(k*a) div k = a", kl_expr_div(p, kl_expr_mul(p, a, k), k), a},
        {"(k*a) mod k = 0", kl_expr_mod(p, kl_expr_mul(p, a, k), k), kl_expr_const(p, 0)},
        {"(a + k*m) div k = a div k + m", kl_expr_div(p, kl_expr_addc(p, a, k * m), k), kl_expr_addc(p, q, m)},
        {"a div 1 = a", kl_expr_div(p, a, 1), a},
        {"a mod 1 = 0", kl_expr_mod(p, a, 1), kl_expr_const(p, 0)},
    };
    for (size_t i = 0; i < KL_COUNT(laws); i++)
      EXPECT(laws[i].x == laws[i].y, "seed %u, k = %ld: %s fails for a = %s", seed, (long)k, laws[i].law, text_of(a));
  }
}
END_TEST

// Many expressions, so that both tables grow several times; each is found again.
START_TEST(interning_survives_growth) {
  enum { N = 6000 };
  static const kl_expr *made[N];
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < N; i++) {
      const kl_expr *x = kl_expr_var(&pool, 0, 0, i % 50 + 1000), *y = kl_expr_var(&pool, 1, 0, 99);
      const kl_expr *e = kl_expr_add(&pool, kl_expr_div(&pool, x, 2 + i / 50), kl_expr_mul(&pool, y, i % 7 + 1));
      EXPECT(round == 0 || made[i] == e, "number %d is new", i);
      made[i] = e;
    }
    if (round == 0)
      for (int i = 1; i < N; i++) EXPECT(made[i] != made[i - 1], "numbers %d and %d are the same", i - 1, i);
  }
  // The range is part of a variable.
  EXPECT(kl_expr_var(&pool, 0, 0, 5) != kl_expr_var(&pool, 0, 0, 6), "ranges");
  EXPECT(kl_expr_var(&pool, 0, 0, 5) != kl_expr_var(&pool, 0, -1, 5), "ranges");
  EXPECT(kl_expr_var(&pool, 0, 0, 5) != kl_expr_var(&pool, 1, 0, 5), "numbers");
  EXPECT(kl_expr_var(&pool, 3, 7, 7) == kl_expr_const(&pool, 7), "one value");
}
END_TEST

// --- rows -----------------------------------------------------------------------------------------------------------

// Expressions as postfix: x is -8..7, y is 0..4, z is 0..3, w is 0..1023; numbers; + - *; / and % take a number.
static const kl_expr *postfix(const char *text) {
  const kl_expr *stack[16];
  int n = 0;
  for (const char *p = text; *p; p++) {
    if (*p == ' ') continue;
    if (*p == 'x')
      stack[n++] = kl_expr_var(&pool, 0, -8, 7);
    else if (*p == 'y')
      stack[n++] = kl_expr_var(&pool, 1, 0, 4);
    else if (*p == 'z')
      stack[n++] = kl_expr_var(&pool, 2, 0, 3);
    else if (*p == 'w')
      stack[n++] = kl_expr_var(&pool, 3, 0, 1023);
    else if (*p >= '0' && *p <= '9') {
      char *end;
      stack[n++] = kl_expr_const(&pool, strtoll(p, &end, 10));
      p = end - 1;
    } else {
      const kl_expr *b = stack[--n], *a = stack[--n];
      stack[n++] = *p == '+'   ? kl_expr_add(&pool, a, b)
                   : *p == '-' ? kl_expr_sub(&pool, a, b)
                   : *p == '*' ? kl_expr_mul(&pool, a, b->c)
                   : *p == '/' ? kl_expr_div(&pool, a, b->c)
                               : kl_expr_mod(&pool, a, b->c);
    }
  }
  return stack[0];
}

START_TEST(rows) {
  // gcd: of everything; beside w. coef: of w. under: is w found, and is it below a floor.
  static const struct {
    const char *postfix, *text;
    int64_t lo, hi, gcd, gcd_beside_w, coef_w;
    bool uses_w, under;
  } row[] = {
      {"5", "5", 5, 5, 5, 5, 0, false, false},
      {"0 7 -", "-7", -7, -7, 7, 7, 0, false, false},
      {"x", "x", -8, 7, 1, 1, 0, false, false},
      {"x x -", "0", 0, 0, 0, 0, 0, false, false},
      {"0 x -", "-x", -7, 8, 1, 1, 0, false, false},
      {"x 3 +", "x + 3", -5, 10, 1, 1, 0, false, false},
      {"x 3 -", "x - 3", -11, 4, 1, 1, 0, false, false},
      {"4 x 3 * -", "-x * 3 + 4", -17, 28, 1, 1, 0, false, false},
      {"w 16 * y 4 * + 8 +", "w * 16 + y * 4 + 8", 8, 16392, 4, 4, 16, true, false},
      {"w y 4 * +", "w + y * 4", 0, 1039, 1, 4, 1, true, false},
      {"w 8 /", "w floordiv 8", 0, 127, 1, 1, 0, true, true},
      {"w 8 %", "w - (w floordiv 8) * 8", 0, 7, 1, 8, 1, true, true},
      {"w 8 / 8 /", "w floordiv 64", 0, 15, 1, 1, 0, true, true},
      {"w 8 / 8 %", "w floordiv 8 - (w floordiv 64) * 8", 0, 7, 1, 1, 0, true, true},
      {"w 1024 /", "0", 0, 0, 0, 0, 0, false, false},
      {"w 1024 %", "w", 0, 1023, 1, 0, 1, true, false},
      {"w 1023 /", "w floordiv 1023", 0, 1, 1, 1, 0, true, true},
      {"x 8 /", "x floordiv 8", -1, 0, 1, 1, 0, false, false},
      {"x 8 + 16 /", "0", 0, 0, 0, 0, 0, false, false},
      {"x 9 - 3 /", "x floordiv 3 - 3", -6, -1, 1, 1, 0, false, false},
      {"w 4 * z + 4 /", "w", 0, 1023, 1, 0, 1, true, false},
      {"w 4 * z + 4 %", "z", 0, 3, 1, 1, 0, false, false},
      {"w 4 * z + 8 /", "w floordiv 2", 0, 511, 1, 1, 0, true, true},
      {"w 4 * z + 8 %", "w * 4 + z - (w floordiv 2) * 8", 0, 7, 1, 1, 4, true, true},
      {"w 4 * y + 8 /", "(w * 4 + y) floordiv 8", 0, 512, 1, 1, 0, true, true},
      {"w 6 * y + 4 /", "w + (w * 2 + y) floordiv 4", 0, 1535, 1, 1, 1, true, true},
      {"w 4 * z + 2 / 5 /", "(w * 4 + z) floordiv 10", 0, 409, 1, 1, 0, true, true},
      {"w 2 / 3 * y + 2 *", "(w floordiv 2) * 6 + y * 2", 0, 3074, 2, 2, 0, true, true},
      {"0 w 8 % -", "-w + (w floordiv 8) * 8", -7, 0, 1, 8, -1, true, true},
      {"x 2 * 1 + 2 %", "1", 1, 1, 1, 1, 0, false, false},
  };
  for (size_t i = 0; i < KL_COUNT(row); i++) {
    new_pool();
    const kl_expr *e = postfix(row[i].postfix);
    bool under = false, uses = kl_expr_uses(e, 3, &under);
    EXPECT(strcmp(text_of(e), row[i].text) == 0, "%s: %s", row[i].postfix, text_of(e));
    EXPECT(e->lo == row[i].lo && e->hi == row[i].hi, "%s: in %ld..%ld", row[i].postfix, (long)e->lo, (long)e->hi);
    EXPECT(kl_expr_gcd(e, -1) == row[i].gcd, "%s: gcd %ld", row[i].postfix, (long)kl_expr_gcd(e, -1));
    EXPECT(kl_expr_gcd(e, 3) == row[i].gcd_beside_w, "%s: gcd %ld", row[i].postfix, (long)kl_expr_gcd(e, 3));
    EXPECT(kl_expr_coef(e, 3) == row[i].coef_w, "%s: coefficient", row[i].postfix);
    EXPECT(uses == row[i].uses_w && under == row[i].under, "%s: uses", row[i].postfix);
    EXPECT(kl_expr_is_const(e) == (row[i].lo == row[i].hi), "%s: constant", row[i].postfix);
  }
}
END_TEST

// --- the ends of int64 ----------------------------------------------------------------------------------------------

static const kl_expr *at_the_end(int which) {
  kl_exprs *p = &pool;
  const kl_expr *min = kl_expr_const(p, INT64_MIN), *max = kl_expr_const(p, INT64_MAX);
  const kl_expr *half = kl_expr_var(p, 0, 0, INT64_MAX / 2), *all = kl_expr_var(p, 1, INT64_MIN, INT64_MAX);
  switch (which) {
  // fits
  case 0: return kl_expr_addc(p, max, -1);
  case 1: return kl_expr_addc(p, min, 1);
  case 2: return kl_expr_mul(p, half, 2);
  case 3: return kl_expr_addc(p, kl_expr_mul(p, half, 2), 1);
  case 4: return kl_expr_sub(p, all, all);
  case 5: return kl_expr_div(p, all, INT64_MAX);
  case 6: return kl_expr_div(p, min, 2);
  case 7: return kl_expr_mod(p, max, 1 << 20);
  case 8: return kl_expr_addc(p, kl_expr_mul(p, half, -2), -2);
  case 9: return kl_expr_div(p, kl_expr_div(p, all, INT64_MAX / 2), INT64_MAX / 2);
  // does not
  case 10: return kl_expr_addc(p, max, 1);
  case 11: return kl_expr_addc(p, min, -1);
  case 12: return kl_expr_mul(p, min, -1);
  case 13: return kl_expr_mul(p, half, 3);
  case 14: return kl_expr_addc(p, kl_expr_mul(p, half, 2), 2);
  case 15: return kl_expr_addc(p, all, 1);
  case 16: return kl_expr_add(p, all, half);
  case 17: return kl_expr_mul(p, kl_expr_mul(p, kl_expr_var(p, 2, 0, 1), INT64_MAX), 2);
  case 18: return kl_expr_sub(p, kl_expr_const(p, 0), min);
  default: return kl_expr_mul(p, all, -1);
  }
}

START_TEST(overflow_poisons) {
  static const int64_t range[10][2] = {
      {INT64_MAX - 1, INT64_MAX - 1},
      {INT64_MIN + 1, INT64_MIN + 1},
      {0, INT64_MAX - 1},
      {1, INT64_MAX},
      {0, 0},
      {-2, 1},
      {INT64_MIN / 2, INT64_MIN / 2},
      {1048575, 1048575},
      {INT64_MIN, -2},
      {-1, 0},
  };
  for (int i = 0; i < 20; i++) {
    new_pool();
    const kl_expr *e = at_the_end(i);
    EXPECT(e && pool.overflow == (i >= 10), "case %d: %s", i, text_of(e));
    if (i < 10) EXPECT(e->lo == range[i][0] && e->hi == range[i][1], "case %d: %ld..%ld", i, (long)e->lo, (long)e->hi);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("affine", EACH(open_pool, close_pool), {random_constructions}, {random_constructions_in_one_pool},
                   {taking_apart_is_undone}, {large_shapes_come_back}, {equal_means_same}, {interning_survives_growth},
                   {rows}, {overflow_poisons});
}
