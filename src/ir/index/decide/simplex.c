// The simplex method for bounds that come and go (Dutertre, de Moura): some variables are written as sums of the
// others; the others keep within their bounds, and those that are sums are brought within theirs one after the other,
// each by a trade of places. When bounds are loosened nothing has to be done, so a search needs no copies.
#include "ir/index/decide/simplex.h"

#include <math.h>

enum { MOST_PIVOTS = 128, MOST_AGE = 2000 };

static const long double slack = 0x1p-50L, least_pivot = 0x1p-40L;

struct kl_simplex {
  kl_ctx *cx;
  uint32_t rows, n, age; // pivots since the table was made
  long double *given;    // rows of n
  long double *table;    // the variable basic[r] as a sum of the variables other[i]
  uint32_t *basic, *other;
  long double *lo, *hi, *value; // by variable
};

kl_simplex *kl_simplex_open(kl_ctx *cx, uint32_t rows, uint32_t n) {
  kl_simplex *s = kl_alloc(cx, sizeof *s);
  size_t all = (size_t)rows + n;
  *s = (kl_simplex){.cx = cx, .rows = rows, .n = n, .age = MOST_AGE};
  s->given = kl_alloc(cx, ((size_t)rows * n + 1) * sizeof *s->given);
  s->table = kl_alloc(cx, ((size_t)rows * n + 1) * sizeof *s->table);
  s->basic = kl_alloc(cx, (rows + 1) * sizeof *s->basic);
  s->other = kl_alloc(cx, (n + 1) * sizeof *s->other);
  s->lo = kl_alloc(cx, (all + 1) * sizeof *s->lo);
  s->hi = kl_alloc(cx, (all + 1) * sizeof *s->hi);
  s->value = kl_alloc(cx, (all + 1) * sizeof *s->value);
  for (size_t i = 0; i < all; i++) {
    s->lo[i] = -INFINITY;
    s->hi[i] = INFINITY;
  }
  return s;
}

void kl_simplex_close(kl_simplex *s) {
  kl_ctx *cx = s->cx;
  size_t all = (size_t)s->rows + s->n;
  kl_free(cx, s->given, ((size_t)s->rows * s->n + 1) * sizeof *s->given);
  kl_free(cx, s->table, ((size_t)s->rows * s->n + 1) * sizeof *s->table);
  kl_free(cx, s->basic, (s->rows + 1) * sizeof *s->basic);
  kl_free(cx, s->other, (s->n + 1) * sizeof *s->other);
  kl_free(cx, s->lo, (all + 1) * sizeof *s->lo);
  kl_free(cx, s->hi, (all + 1) * sizeof *s->hi);
  kl_free(cx, s->value, (all + 1) * sizeof *s->value);
  kl_free(cx, s, sizeof *s);
}

void kl_simplex_coef(kl_simplex *s, uint32_t row, uint32_t i, long double coef) {
  s->given[(size_t)row * s->n + i] = coef;
}

void kl_simplex_bound(kl_simplex *s, uint32_t variable, long double lo, long double hi) {
  s->lo[variable] = lo;
  s->hi[variable] = hi;
}

long double kl_simplex_value(const kl_simplex *s, uint32_t variable) {
  return s->value[variable];
}

// Rounding gathers in the table: now and then it is made anew.
static void make_table(kl_simplex *s) {
  memcpy(s->table, s->given, (size_t)s->rows * s->n * sizeof *s->table);
  for (uint32_t i = 0; i < s->n; i++) s->other[i] = i;
  for (uint32_t r = 0; r < s->rows; r++) s->basic[r] = s->n + r;
  s->age = 0;
}

// The variables other[i] as near to where they are as their bounds let them be; sums by them.
static void take_values(kl_simplex *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    uint32_t v = s->other[i];
    s->value[v] = fmaxl(s->lo[v], fminl(s->hi[v], s->value[v]));
  }
  for (uint32_t r = 0; r < s->rows; r++) {
    long double sum = 0;
    for (uint32_t i = 0; i < s->n; i++) sum += s->table[(size_t)r * s->n + i] * s->value[s->other[i]];
    s->value[s->basic[r]] = sum;
  }
}

// The variable of row r and other[i] trade places; the row's takes the value `to`.
static void pivot(kl_simplex *s, uint32_t r, uint32_t i, long double to) {
  long double *own = s->table + (size_t)r * s->n, p = own[i];
  uint32_t out = s->basic[r], in = s->other[i];
  long double step = (to - s->value[out]) / p;
  for (uint32_t k = 0; k < s->rows; k++) {
    if (k != r) s->value[s->basic[k]] += s->table[(size_t)k * s->n + i] * step;
  }
  s->value[in] += step;
  s->value[out] = to;
  for (uint32_t j = 0; j < s->n; j++) own[j] = j == i ? 1 / p : -own[j] / p;
  for (uint32_t k = 0; k < s->rows; k++) {
    long double *other = s->table + (size_t)k * s->n, f = other[i];
    if (k == r || f == 0) continue;
    for (uint32_t j = 0; j < s->n; j++) other[j] = (j == i ? 0 : other[j]) + f * own[j];
  }
  s->basic[r] = in;
  s->other[i] = out;
  s->age++;
}

// The row of the least variable out of its bounds, so that no cycle is run through (Bland). UINT32_MAX: none is.
static uint32_t row_out_of_bounds(const kl_simplex *s, bool *low) {
  uint32_t best = UINT32_MAX;
  for (uint32_t r = 0; r < s->rows; r++) {
    uint32_t v = s->basic[r];
    bool below = s->value[v]<s->lo[v] - slack, above = s->value[v]> s->hi[v] + slack;
    if (!below && !above) continue;
    if (best != UINT32_MAX && s->basic[best] < v) continue;
    best = r;
    *low = below;
  }
  return best;
}

static uint32_t column_to_move(const kl_simplex *s, uint32_t r, bool up) {
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < s->n; i++) {
    long double c = s->table[(size_t)r * s->n + i];
    uint32_t v = s->other[i];
    if (!(fabsl(c) > least_pivot)) continue;
    bool rises = (c > 0) == up;
    if (rises ? s->value[v] >= s->hi[v] : s->value[v] <= s->lo[v]) continue;
    if (best == UINT32_MAX || v < s->other[best]) best = i;
  }
  return best;
}

bool kl_simplex_solve(kl_simplex *s, bool *conflict, long double *multiplier, uint32_t *steps) {
  *conflict = false;
  *steps = 0;
  if (s->age >= MOST_AGE) make_table(s);
  take_values(s);
  for (; *steps < MOST_PIVOTS; ++*steps) {
    bool low = false;
    uint32_t r = row_out_of_bounds(s, &low);
    if (r == UINT32_MAX) return true;
    uint32_t i = column_to_move(s, r, low), v = s->basic[r];
    if (i != UINT32_MAX) {
      pivot(s, r, i, low ? s->lo[v] : s->hi[v]);
      continue;
    }
    *conflict = true;
    memset(multiplier, 0, s->rows * sizeof *multiplier);
    if (v >= s->n) multiplier[v - s->n] = 1;
    for (uint32_t k = 0; k < s->n; k++) {
      if (s->other[k] >= s->n) multiplier[s->other[k] - s->n] -= s->table[(size_t)r * s->n + k];
    }
    return false;
  }
  return false;
}
