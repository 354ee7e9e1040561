// Integer points of small polytopes, and of lattices, against all points of their boxes: a walk says that there is none
// exactly where there is none, and visits none from outside. Rows and unknowns are also given in skewed coordinates, in
// which the box is long and thin.
#include "ir/index/decide/lattice.h"
#include "ir/index/decide/polytope.h"
#include "map_support.h"
#include "random_maps.h"

enum { MOST_N = 4, MOST_ROWS = 5, EACH_WAY = 4000 };

typedef struct problem {
  uint32_t n, rows;
  int64_t lo[MOST_N], hi[MOST_N]; // of x
  int64_t a[MOST_ROWS][MOST_N], least[MOST_ROWS], most[MOST_ROWS];
  int64_t skew[MOST_N][MOST_N]; // x = skew * y, of determinant 1
  unsigned visits;
} problem;

static void make(problem *p) {
  memset(p, 0, sizeof *p);
  p->n = (uint32_t)rm_between(1, MOST_N);
  p->rows = (uint32_t)rm_between(0, MOST_ROWS);
  for (uint32_t i = 0; i < p->n; i++) {
    p->lo[i] = rm_between(-9, 9);
    p->hi[i] = p->lo[i] + rm_between(0, 9);
    p->skew[i][i] = 1;
  }
  for (uint32_t r = 0; r < p->rows; r++) {
    for (uint32_t i = 0; i < p->n; i++) p->a[r][i] = rm_between(-30, 30);
    p->least[r] = rm_between(-200, 200);
    p->most[r] = p->least[r] + rm_between(0, rm_bits() % 2 ? 3 : 60);
  }
  for (int step = 0; p->n > 1 && step < 6; step++) { // column i += k * column j
    uint32_t i = (uint32_t)rm_between(0, p->n - 1), j = (i + 1) % p->n;
    int64_t k = rm_between(-50, 50);
    for (uint32_t r = 0; r < p->n; r++) p->skew[r][i] += k * p->skew[r][j];
  }
}

static bool satisfies(const problem *p, const int64_t *x) {
  for (uint32_t i = 0; i < p->n; i++) {
    if (x[i] < p->lo[i] || x[i] > p->hi[i]) return false;
  }
  for (uint32_t r = 0; r < p->rows; r++) {
    int64_t v = 0;
    for (uint32_t i = 0; i < p->n; i++) v += p->a[r][i] * x[i];
    if (v < p->least[r] || v > p->most[r]) return false;
  }
  return true;
}

static unsigned count(const problem *p) {
  int64_t x[MOST_N];
  unsigned n = 0;
  memcpy(x, p->lo, sizeof x);
  for (;;) {
    n += satisfies(p, x);
    uint32_t i = 0;
    while (i < p->n && x[i] == p->hi[i]) {
      x[i] = p->lo[i];
      i++;
    }
    if (i == p->n) return n;
    x[i]++;
  }
}

static kl_truth visit(void *state, const wide *y) {
  problem *p = state;
  int64_t x[MOST_N] = {0};
  for (uint32_t i = 0; i < p->n; i++) {
    for (uint32_t k = 0; k < p->n; k++) x[i] += (int64_t)(p->skew[i][k] * y[k]);
  }
  EXPECT(satisfies(p, x), "a point from outside");
  p->visits++;
  return KL_YES; // to be shown the others as well
}

static void add(kl_polytope *q, const problem *p, const int64_t *a, int64_t lo, int64_t hi, wide by) {
  wide in_y[MOST_N] = {0};
  for (uint32_t k = 0; k < p->n; k++) {
    for (uint32_t i = 0; i < p->n; i++) in_y[k] += by * a[i] * p->skew[i][k];
  }
  EXPECT(kl_polytope_add(q, in_y, by * lo, by * hi), "does not fit");
}

START_TEST(all_points_are_visited) {
  for (unsigned seed = 0; seed < EACH_WAY; seed++) {
    problem p;
    uint32_t left = UINT32_MAX;
    rm_seed(seed);
    make(&p);
    kl_polytope *q = kl_polytope_open(cx, p.n, p.n + p.rows);
    for (uint32_t i = 0; i < p.n; i++) {
      int64_t unit[MOST_N] = {0};
      unit[i] = 1;
      add(q, &p, unit, p.lo[i], p.hi[i], 1);
    }
    for (uint32_t r = 0; r < p.rows; r++) add(q, &p, p.a[r], p.least[r], p.most[r], seed % 3 ? 1 : (wide)1 << 40);
    kl_truth t = kl_polytope_walk(q, &left, visit, &p);
    EXPECT(t == KL_YES, "seed %u: %d", seed, t); // no visit said KL_NO
    EXPECT(p.visits == count(&p), "seed %u: %u of %u points", seed, p.visits, count(&p));
    kl_polytope_close(q);
  }
}
END_TEST

// Without bounds, or without work, nothing is said.
START_TEST(what_is_not_known_is_said) {
  problem p = {.n = 2, .lo = {0, 0}, .hi = {9, 9}, .skew = {{1, 0}, {0, 1}}};
  uint32_t left = UINT32_MAX;
  kl_polytope *q = kl_polytope_open(cx, 2, 2);
  add(q, &p, (int64_t[]){1, 0, 0, 0}, 0, 9, 1);
  ck_assert_int_eq(kl_polytope_walk(q, &left, visit, &p), KL_UNKNOWN);
  kl_polytope_close(q);
  q = kl_polytope_open(cx, 2, 2);
  add(q, &p, (int64_t[]){1, 0, 0, 0}, 0, 9, 1);
  add(q, &p, (int64_t[]){0, 1, 0, 0}, 0, 9, 1);
  left = 3;
  ck_assert_int_eq(kl_polytope_walk(q, &left, visit, &p), KL_UNKNOWN);
  kl_polytope_close(q);
  q = kl_polytope_open(cx, 1, 1);
  ck_assert(!kl_polytope_add(q, (wide[]){(wide)1 << 120}, 0, 1));
  ck_assert(kl_polytope_add(q, (wide[]){6}, 13, 17)); // holds nowhere
  left = UINT32_MAX;
  ck_assert_int_eq(kl_polytope_walk(q, &left, visit, &p), KL_YES);
  kl_polytope_close(q);
}
END_TEST

// Every solution of one or two equations in a box is a point of the lattice, and every point of the lattice a solution.
START_TEST(lattices_are_all_solutions) {
  for (unsigned seed = 0; seed < EACH_WAY; seed++) {
    int64_t a[2][3], b[2], x[3];
    uint32_t left = UINT32_MAX, rows = seed % 2 + 1;
    bool any = false;
    rm_seed(seed);
    for (uint32_t r = 0; r < 2; r++) {
      for (uint32_t i = 0; i < 3; i++) a[r][i] = rm_between(-12, 12);
      b[r] = rm_between(-20, 20);
    }
    kl_lattice *l = kl_lattice_open(cx, rows, 3);
    for (uint32_t r = 0; r < rows; r++) {
      for (uint32_t i = 0; i < 3; i++) kl_lattice_add(l, r, i, a[r][i]);
      kl_lattice_value(l, r, b[r]);
    }
    kl_lattice_state state = kl_lattice_solve(l, &left);
    for (x[0] = -15; x[0] <= 15 && !any; x[0]++) {
      for (x[1] = -15; x[1] <= 15 && !any; x[1]++) {
        for (x[2] = -15; x[2] <= 15 && !any; x[2]++) {
          any = true;
          for (uint32_t r = 0; r < rows; r++) any &= a[r][0] * x[0] + a[r][1] * x[1] + a[r][2] * x[2] == b[r];
        }
      }
    }
    EXPECT(state == KL_LATTICE_SOLVED || (state == KL_LATTICE_EMPTY && !any), "seed %u: state %d", seed, state);
    for (uint32_t n = 0, d = state ? 0 : kl_lattice_dimension(l); n <= d && !state; n++) {
      for (uint32_t r = 0; r < rows; r++) { // the solution itself, and one step along each direction
        wide sum = 0;
        for (uint32_t i = 0; i < 3; i++) {
          const wide *by;
          wide v = kl_lattice_unknown(l, i, &by);
          sum += a[r][i] * (n < d ? v + 1000003 * by[n] : v);
        }
        EXPECT(sum == b[r], "seed %u: no solution", seed);
      }
    }
    kl_lattice_close(l);
  }
}
END_TEST

int main(void) {
  return RUN_TESTS("points of lattices and polytopes", EACH(open_pool, close_pool), {all_points_are_visited},
                   {what_is_not_known_is_said}, {lattices_are_all_solutions});
}
