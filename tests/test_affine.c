// Index arithmetic: random constructions against plain integer arithmetic at every point of a small domain, identities
// that the normal form promises, and hand-made rows for printing and the ends of int64.
#include "lower/analysis/index.h"
#include "ir/shape.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(cond, ...)                                                                                              \
  do {                                                                                                                 \
    if (!(cond)) ck_abort_msg(__VA_ARGS__);                                                                            \
  } while (0)

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
  int64_t q = 0; // by definition: the largest q with q*k <= a
  q = a >= 0 ? a / k : -((-a + k - 1) / k);
  return q;
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

// Intervals that planning relies on.
static void check_tight(unsigned seed, const recipe *r, const value *a, const value *v) {
  if (r->kind == MOD)
    EXPECT(v->e->lo >= 0 && v->e->hi < r->k, "seed %u: (%s) mod %ld in %ld..%ld", seed, text_of(a->e), (long)r->k,
           (long)v->e->lo, (long)v->e->hi);
  if (r->kind == VAR) EXPECT(v->e->hi - v->e->lo >= 0, "seed %u: variable", seed);
}

// gcd: what is left beside the variable is a multiple of it; coefficient: how far one step of the variable leads.
static void check_questions(unsigned seed, const domain *d, const value *v) {
  for (int32_t var = -1; var < VARS; var++) {
    bool inside = false, uses = var >= 0 && kl_expr_uses(v->e, var, &inside);
    int64_t g = kl_expr_gcd(v->e, var), c = var < 0 ? 0 : kl_expr_coef(v->e, var);
    EXPECT(uses || c == 0, "seed %u: %s has a coefficient of %s but no use", seed, text_of(v->e),
           names[var < 0 ? 0 : var]);
    int64_t one[1] = {0};
    for (int i = 0; i < d->points; i++) {
      int64_t rest = v->at[i] - (var < 0 ? 0 : c * coordinate(d, i, var));
      EXPECT(g ? rest % g == 0 : rest == 0, "seed %u: %ld does not divide %s beside %d", seed, (long)g, text_of(v->e),
             var);
      if (var < 0 || inside) continue;
      int next = moved(d, i, var, coordinate(d, i, var) + 1);
      EXPECT(next < 0 || v->at[next] - v->at[i] == c, "seed %u: coefficient of %s in %s", seed, names[var],
             text_of(v->e));
      if (!uses) one[0]++;
    }
  }
}

// One seed: a chain of values, each checked, then made again in another order of interning: the same pointers.
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
    check_tight(seed, &r, &v[r.a], &v[n]);
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

// --- taking an index apart and putting it together --------------------------------------------------------------------

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
    for (uint32_t d = 0, r = n; d < rank; d++, r /= KL_COUNT(sizes)) s.shape.count *= s.dims[d] = sizes[r % KL_COUNT(sizes)];
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
  static const struct {
    int64_t lanes, first;
  } walks[] = {{1, 0}, {4, 0}, {16, 0}, {2, 6}, {1, 5}, {8, 16}};
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

int main(void) {
  const TTest *tests[] = {random_constructions, random_constructions_in_one_pool, taking_apart_is_undone};
  Suite *s = suite_create("affine");
  TCase *c = tcase_create("affine");
  tcase_add_checked_fixture(c, open_pool, close_pool);
  tcase_set_timeout(c, 60);
  for (size_t i = 0; i < KL_COUNT(tests); i++) tcase_add_test(c, tests[i]);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_set_fork_status(r, CK_NOFORK);
  srunner_set_tap(r, "-");
  srunner_run_all(r, CK_SILENT);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
