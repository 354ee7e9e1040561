// Integer points of a polytope, in the manner of Lenstra: first other coordinates (unimodular: the same integer points)
// in which the polytope is about as long in one direction as in another, or so short that few values of a coordinate
// are left; then those values, one coordinate after the other.
//
// The coordinates come from Lovász's reduction of the columns of A, each row in units of half its width, in floating
// point: there every step is an exact integer one on A, so a bad step costs time and never a point. In these
// coordinates floating point also proposes, for every coordinate, sums of rows in which it stands nearly alone, or
// alone among those that are chosen before it. The sums themselves are formed from integers, and are as true as the
// rows. What ends the walk at a place is always a row or such a sum.
#include "ir/index/decide/polytope.h"
#include "ir/index/decide/simplex.h"

#include <math.h>

enum { MOST_SWAPS = 4000, MOST_SWEEPS = 3 };

// Of bounds; of factors in sums of rows, so that there is room for values of coordinates.
static const wide most_number = (wide)1 << 112, most_factor = (wide)1 << 72;

typedef struct bound {
  wide *a, lo, hi;
} bound;

struct kl_polytope {
  kl_ctx *cx;
  uint32_t n, most;
  uint32_t nrows; // as given
  uint32_t nsums; // behind them
  bound *rows;
  wide *cells; // of all rows
  wide *to;    // x as given = origin + to * x
  wide *origin, *x;
  long double *star; // by coordinate: its column less what those before it have of it, as long as there are rows
  long double *mu, *size;
  bool none; // a row holds nowhere
};

kl_polytope *kl_polytope_open(kl_ctx *cx, uint32_t n, uint32_t most) {
  kl_polytope *p = kl_alloc(cx, sizeof *p);
  *p = (kl_polytope){.cx = cx, .n = n, .most = most};
  p->rows = kl_alloc(cx, (most + 2 * n + 1) * sizeof *p->rows);
  p->cells = kl_alloc(cx, (size_t)(most + 2 * n + 1) * (n + 1) * sizeof *p->cells);
  for (uint32_t r = 0; r < most + 2 * n + 1; r++) p->rows[r].a = p->cells + (size_t)r * (n + 1);
  p->to = kl_alloc(cx, ((size_t)n * n + 1) * sizeof *p->to);
  for (uint32_t i = 0; i < n; i++) p->to[(size_t)i * n + i] = 1;
  p->origin = kl_alloc(cx, (n + 1) * sizeof *p->origin);
  p->x = kl_alloc(cx, (n + 1) * sizeof *p->x);
  p->star = kl_alloc(cx, ((size_t)n * most + 1) * sizeof *p->star);
  p->mu = kl_alloc(cx, ((size_t)n * n + 1) * sizeof *p->mu);
  p->size = kl_alloc(cx, (n + 1) * sizeof *p->size);
  return p;
}

void kl_polytope_close(kl_polytope *p) {
  kl_ctx *cx = p->cx;
  uint32_t n = p->n, most = p->most;
  kl_free(cx, p->rows, (most + 2 * n + 1) * sizeof *p->rows);
  kl_free(cx, p->cells, (size_t)(most + 2 * n + 1) * (n + 1) * sizeof *p->cells);
  kl_free(cx, p->to, ((size_t)n * n + 1) * sizeof *p->to);
  kl_free(cx, p->origin, (n + 1) * sizeof *p->origin);
  kl_free(cx, p->x, (n + 1) * sizeof *p->x);
  kl_free(cx, p->star, ((size_t)n * most + 1) * sizeof *p->star);
  kl_free(cx, p->mu, ((size_t)n * n + 1) * sizeof *p->mu);
  kl_free(cx, p->size, (n + 1) * sizeof *p->size);
  kl_free(cx, p, sizeof *p);
}

static bool is_large(wide v) {
  return v > most_number || v < -most_number;
}

static wide magnitude(wide v) {
  return v < 0 ? -v : v;
}

static wide gcd(wide a, wide b) {
  while (b) {
    wide t = a % b;
    a = b;
    b = t;
  }
  return magnitude(a);
}

bool kl_polytope_add(kl_polytope *p, const wide *coef, wide lo, wide hi) {
  wide g = 0;
  if (p->nrows == p->most || is_large(lo) || is_large(hi)) return false;
  for (uint32_t i = 0; i < p->n; i++) {
    if (is_large(coef[i])) return false;
    g = gcd(g, coef[i]);
  }
  if (g == 0) {
    p->none = p->none || lo > 0 || hi < 0;
    return true;
  }
  bound *b = &p->rows[p->nrows++];
  for (uint32_t i = 0; i < p->n; i++) b->a[i] = coef[i] / g;
  b->lo = -kl_floor128(-lo, g);
  b->hi = kl_floor128(hi, g);
  p->none = p->none || b->lo > b->hi;
  return true;
}

// --- other coordinates --------------------------------------------------------------------------------------------

static long double half_width(const bound *b) {
  return ((long double)(b->hi - b->lo) + 1) / 2;
}

// Column k, less what the columns before it have of it.
static void take_column(kl_polytope *p, uint32_t k) {
  uint32_t rows = p->nrows, n = p->n;
  long double *own = p->star + (size_t)k * p->most, sum = 0;
  for (uint32_t r = 0; r < rows; r++) own[r] = (long double)p->rows[r].a[k] / half_width(&p->rows[r]);
  for (uint32_t j = 0; j < k; j++) {
    const long double *other = p->star + (size_t)j * p->most;
    long double dot = 0;
    for (uint32_t r = 0; r < rows; r++) dot += own[r] * other[r];
    long double m = p->size[j] > 0 ? dot / p->size[j] : 0;
    p->mu[(size_t)k * n + j] = m;
    for (uint32_t r = 0; r < rows; r++) own[r] -= m * other[r];
  }
  for (uint32_t r = 0; r < rows; r++) sum += own[r] * own[r];
  p->size[k] = sum;
}

// Column k less q times column j. False where numbers get too large.
static bool subtract_column(kl_polytope *p, uint32_t k, uint32_t j, wide q) {
  bool fits = true;
  for (uint32_t r = 0; r < p->nrows + p->n && fits; r++) {
    wide d, *m = r < p->nrows ? p->rows[r].a : p->to + (size_t)(r - p->nrows) * p->n;
    fits = !__builtin_mul_overflow(q, m[j], &d) && !__builtin_sub_overflow(m[k], d, &m[k]) && !is_large(m[k]);
  }
  return fits;
}

static void swap_columns(kl_polytope *p, uint32_t a, uint32_t b) {
  for (uint32_t r = 0; r < p->nrows + p->n; r++) {
    wide *m = r < p->nrows ? p->rows[r].a : p->to + (size_t)(r - p->nrows) * p->n, t = m[a];
    m[a] = m[b];
    m[b] = t;
  }
}

static void spend(uint32_t *left, uint64_t steps) {
  *left = steps < *left ? *left - (uint32_t)steps : 0;
}

// Makes column k short along those before it. What is large is rounded, so it is done until nothing is large.
static bool shorten(kl_polytope *p, uint32_t k, uint32_t *left) {
  for (int round = 0; round < 64 && *left; round++) {
    bool again = false;
    spend(left, 1 + (uint64_t)p->nrows * (k + 1) / 32);
    take_column(p, k);
    long double *mu = p->mu + (size_t)k * p->n;
    for (uint32_t j = k; j-- > 0;) {
      long double q = roundl(mu[j]);
      if (!(fabsl(mu[j]) > 0.51L)) continue;
      if (!(fabsl(q) < 0x1p100L) || !subtract_column(p, k, j, (wide)q)) return false;
      for (uint32_t i = 0; i < j; i++) mu[i] -= q * p->mu[(size_t)j * p->n + i];
      mu[j] -= q;
      again = true;
    }
    if (!again) return true;
  }
  return false;
}

static bool reduce(kl_polytope *p, uint32_t *left) {
  if (p->n == 0) return true;
  take_column(p, 0);
  for (uint32_t k = 1, swaps = 0; k < p->n;) {
    if (!shorten(p, k, left)) return false;
    long double m = p->mu[(size_t)k * p->n + k - 1];
    if (p->size[k] >= (0.99L - m * m) * p->size[k - 1]) {
      k++;
    } else {
      if (swaps++ == MOST_SWAPS) return false;
      swap_columns(p, k, k - 1);
      if (k > 1)
        k--;
      else
        take_column(p, 0);
    }
  }
  for (uint32_t k = 0; k < p->n; k++) {
    if (!(p->size[k] > 0x1p-200L)) return false; // no row bounds it
  }
  return true;
}

// --- sums of rows -------------------------------------------------------------------------------------------------

// The sum of rows, each with its part of `want` in units of 2^-shift, as the row `out`. False where it does not fit.
static bool sum_rows(const kl_polytope *p, const long double *want, int shift, bound *out) {
  memset(out->a, 0, p->n * sizeof *out->a);
  out->lo = out->hi = 0;
  for (uint32_t r = 0; r < p->nrows; r++) {
    const bound *b = &p->rows[r];
    long double f = roundl(ldexpl(want[r] / half_width(b), shift));
    wide d, e;
    if (!(fabsl(f) < 0x1p110L)) return false;
    wide k = (wide)f;
    for (uint32_t i = 0; i < p->n; i++) {
      if (__builtin_mul_overflow(k, b->a[i], &d) || __builtin_add_overflow(out->a[i], d, &out->a[i])) return false;
    }
    if (__builtin_mul_overflow(k, b->lo, &d) || __builtin_mul_overflow(k, b->hi, &e)) return false;
    if (__builtin_add_overflow(out->lo, k < 0 ? e : d, &out->lo) ||
        __builtin_add_overflow(out->hi, k < 0 ? d : e, &out->hi))
      return false;
  }
  for (uint32_t i = 0; i < p->n; i++) {
    if (magnitude(out->a[i]) > most_factor) return false;
  }
  return !is_large(out->lo) && !is_large(out->hi);
}

static bool sum_finely(const kl_polytope *p, const long double *want, bound *out) {
  for (int shift = 100; shift > 20; shift -= 8) {
    if (sum_rows(p, want, shift, out)) return true;
  }
  return false;
}

// What stands, in sums of rows, for coordinate k alone: `alone`; k and those behind it: `first`.
static void propose(const kl_polytope *p, uint32_t k, long double *first, long double *alone) {
  for (uint32_t r = 0; r < p->nrows; r++)
    alone[(size_t)k * p->most + r] = first[r] = p->star[(size_t)k * p->most + r] / p->size[k];
  for (uint32_t j = k + 1; j < p->n; j++) {
    long double m = p->mu[(size_t)j * p->n + k];
    for (uint32_t r = 0; r < p->nrows; r++) alone[(size_t)k * p->most + r] -= m * alone[(size_t)j * p->most + r];
  }
}

// The point of integers that is nearest to the middle of all rows becomes 0.
static bool recentre(kl_polytope *p, const long double *alone) {
  for (uint32_t k = 0; k < p->n; k++) {
    long double c = 0;
    for (uint32_t r = 0; r < p->nrows; r++) {
      const bound *b = &p->rows[r];
      c += alone[(size_t)k * p->most + r] * (((long double)b->lo + (long double)b->hi) / 2 / half_width(b));
    }
    c = roundl(c);
    if (!(fabsl(c) < 0x1p110L)) return false;
    p->x[k] = (wide)c;
  }
  for (uint32_t k = 0; k < p->n; k++) {
    for (uint32_t r = 0; r < p->nrows + p->n && p->x[k]; r++) {
      wide d;
      if (__builtin_mul_overflow(p->x[k], r < p->nrows ? p->rows[r].a[k] : p->to[(size_t)(r - p->nrows) * p->n + k],
                                 &d))
        return false;
      if (r < p->nrows) {
        bound *b = &p->rows[r];
        if (__builtin_sub_overflow(b->lo, d, &b->lo) || __builtin_sub_overflow(b->hi, d, &b->hi) || is_large(b->lo) ||
            is_large(b->hi))
          return false;
      } else if (__builtin_add_overflow(p->origin[r - p->nrows], d, &p->origin[r - p->nrows])) {
        return false;
      }
    }
  }
  return true;
}

// Bounds of all coordinates at once. The sums for single ones are rows of a matrix whose diagonal is more than twice
// all else in its row. If e is the largest magnitude of a coordinate, then in its row diagonal * e <= bound + (diagonal
// / 2) * e: e <= 2 * bound / diagonal.
static bool first_box(const kl_polytope *p, const bound *alone, wide *most) {
  *most = 0;
  for (uint32_t k = 0; k < p->n; k++) {
    const bound *b = &alone[k];
    wide others = 0, reach = magnitude(b->lo) > magnitude(b->hi) ? magnitude(b->lo) : magnitude(b->hi);
    for (uint32_t i = 0; i < p->n; i++) {
      if (i != k && __builtin_add_overflow(others, magnitude(b->a[i]), &others)) return false;
    }
    if (b->a[k] <= 0 || others > (b->a[k] - 1) / 2) return false;
    wide e = reach / b->a[k] * 2 + 2;
    if (e > *most) *most = e;
  }
  return true;
}

static bool make_sums(kl_polytope *p, wide *most) {
  size_t bytes = ((size_t)p->n * p->most + 1) * sizeof(long double);
  long double *alone = kl_alloc(p->cx, bytes), *first = kl_alloc(p->cx, (p->most + 1) * sizeof *first);
  bound *sums = p->rows + p->nrows;
  for (uint32_t k = p->n; k-- > 0;) propose(p, k, first, alone);
  bool fits = recentre(p, alone) && recentre(p, alone);
  for (uint32_t k = p->n; k-- > 0 && fits;) fits = sum_finely(p, alone + (size_t)k * p->most, &sums[k]);
  fits = fits && first_box(p, sums, most);
  p->nsums = p->n;
  for (uint32_t k = p->n; k-- > 0 && fits;) {
    propose(p, k, first, alone);
    if (sum_finely(p, first, &sums[p->nsums])) p->nsums++;
  }
  kl_free(p->cx, first, (p->most + 1) * sizeof *first);
  kl_free(p->cx, alone, bytes);
  return fits;
}

// --- the walk -----------------------------------------------------------------------------------------------------

typedef struct box {
  wide lo[KL_MOST_COORDINATES], hi[KL_MOST_COORDINATES];
} box;

// Narrows coordinates to what a row leaves of them. False if nothing is left. Numbers that are too large say nothing.
static bool narrow(const kl_polytope *p, const bound *b, box *x, bool *changed) {
  wide low = 0, high = 0, part[KL_MOST_COORDINATES][2];
  for (uint32_t i = 0; i < p->n; i++) {
    wide a = b->a[i], l, h;
    if (__builtin_mul_overflow(a, a < 0 ? x->hi[i] : x->lo[i], &l) ||
        __builtin_mul_overflow(a, a < 0 ? x->lo[i] : x->hi[i], &h) || __builtin_add_overflow(low, l, &low) ||
        __builtin_add_overflow(high, h, &high) || is_large(low) || is_large(high))
      return true;
    part[i][0] = l;
    part[i][1] = h;
  }
  if (low > b->hi || high < b->lo) return false;
  if (low >= b->lo && high <= b->hi) return true;
  for (uint32_t i = 0; i < p->n; i++) {
    wide a = b->a[i];
    if (a == 0 || x->lo[i] == x->hi[i]) continue;
    wide least = b->lo - (high - part[i][1]), greatest = b->hi - (low - part[i][0]); // of a * x
    wide lo = a < 0 ? -kl_floor128(greatest, -a) : -kl_floor128(-least, a);
    wide hi = a < 0 ? kl_floor128(-least, -a) : kl_floor128(greatest, a);
    if (lo > x->lo[i]) {
      x->lo[i] = lo;
      *changed = true;
    }
    if (hi < x->hi[i]) {
      x->hi[i] = hi;
      *changed = true;
    }
    if (x->lo[i] > x->hi[i]) return false;
  }
  return true;
}

static bool propagate(const kl_polytope *p, box *x, uint32_t *left) {
  bool changed = true;
  for (int sweep = 0; changed && sweep < MOST_SWEEPS; sweep++) {
    changed = false;
    spend(left, p->nrows + p->nsums);
    for (uint32_t r = 0; r < p->nrows + p->nsums; r++) {
      if (!narrow(p, &p->rows[r], x, &changed)) return false;
    }
  }
  return true;
}

typedef struct walk {
  kl_polytope *p;
  kl_simplex *reals;
  long double *multiplier;
  uint32_t *left;
  kl_polytope_visit *visit;
  void *state;
  bool refuted; // what was walked last was refuted as a whole
} walk;

static void give_rows(const walk *w) {
  const kl_polytope *p = w->p;
  for (uint32_t r = 0; r < p->nrows; r++) {
    const bound *b = &p->rows[r];
    long double h = half_width(b);
    for (uint32_t i = 0; i < p->n; i++) kl_simplex_coef(w->reals, r, i, (long double)b->a[i] / h);
    kl_simplex_bound(w->reals, p->n + r, (long double)b->lo / h, (long double)b->hi / h);
  }
}

// Is there no point of reals? Yes if a sum of the rows has no value within the box.
static bool refute(const walk *w, const box *x) {
  const kl_polytope *p = w->p;
  wide cells[KL_MOST_COORDINATES];
  bound sum = {.a = cells};
  bool conflict;
  uint32_t steps;
  for (uint32_t i = 0; i < p->n; i++) kl_simplex_bound(w->reals, i, (long double)x->lo[i], (long double)x->hi[i]);
  bool found = kl_simplex_solve(w->reals, &conflict, w->multiplier, &steps);
  spend(w->left, (uint64_t)p->nrows * (1 + steps));
  if (found || !conflict || !sum_finely(p, w->multiplier, &sum)) return false;
  bool changed;
  box y = *x;
  return !narrow(p, &sum, &y, &changed);
}

static kl_truth at_point(const walk *w, const box *x) {
  const kl_polytope *p = w->p;
  for (uint32_t i = 0; i < p->n; i++) {
    p->x[i] = p->origin[i];
    for (uint32_t k = 0; k < p->n; k++) {
      wide d;
      if (__builtin_mul_overflow(p->to[(size_t)i * p->n + k], x->lo[k], &d) ||
          __builtin_add_overflow(p->x[i], d, &p->x[i]))
        return KL_UNKNOWN;
    }
  }
  return w->visit(w->state, p->x);
}

// Narrows the box. True if nothing is left.
static bool is_void(const walk *w, box *x) {
  return !propagate(w->p, x, w->left) || refute(w, x);
}

static kl_truth walk_from(walk *w, const box *from, uint32_t n);

// One value of coordinate k; *end if there is nothing on that side of it, either.
static kl_truth walk_value(walk *w, const box *x, uint32_t k, wide value, bool rise, bool *end) {
  box y = *x;
  y.lo[k] = y.hi[k] = value;
  kl_truth t = walk_from(w, &y, k);
  if (t != KL_YES || !w->refuted) return t;
  y = *x;
  if (rise)
    y.lo[k] = value;
  else
    y.hi[k] = value;
  *end = is_void(w, &y);
  return t;
}

// Where coordinate k should be, given those behind it, to be in the middle.
static wide middle(const walk *w, const box *x, uint32_t k) {
  const kl_polytope *p = w->p;
  long double c = 0;
  for (uint32_t j = k + 1; j < p->n; j++) c -= p->mu[(size_t)j * p->n + k] * (long double)x->lo[j];
  wide at = fabsl(c) < 0x1p110L ? (wide)roundl(c) : 0;
  return at < x->lo[k] ? x->lo[k] : at > x->hi[k] ? x->hi[k] : at;
}

// Values of coordinate n - 1, then of those before it; each from the middle outwards, as long as there are points of
// reals.
static kl_truth walk_from(walk *w, const box *from, uint32_t n) {
  kl_truth all = KL_YES;
  box x = *from;
  w->refuted = false;
  if (!*w->left) return KL_UNKNOWN;
  w->refuted = is_void(w, &x);
  if (w->refuted) return KL_YES;
  while (n && x.lo[n - 1] == x.hi[n - 1]) n--;
  if (n == 0) return at_point(w, &x);
  uint32_t k = n - 1;
  wide up = middle(w, &x, k), down = up - 1;
  bool no_more = false, no_less = false;
  for (bool rise = true; !no_more || !no_less; rise = !rise) {
    no_more = no_more || up > x.hi[k];
    no_less = no_less || down < x.lo[k];
    if (rise ? no_more : no_less) continue;
    kl_truth t = walk_value(w, &x, k, rise ? up : down, rise, rise ? &no_more : &no_less);
    if (t == KL_NO) return KL_NO;
    if (t == KL_UNKNOWN) all = KL_UNKNOWN;
    if (!*w->left) return KL_UNKNOWN;
    up += rise;
    down -= !rise;
  }
  w->refuted = false;
  return all;
}

kl_truth kl_polytope_walk(kl_polytope *p, uint32_t *left, kl_polytope_visit *visit, void *state) {
  walk w = {.p = p, .left = left, .visit = visit, .state = state};
  box x;
  wide most = 0;
  if (p->none) return KL_YES;
  if (!reduce(p, left) || !make_sums(p, &most)) return KL_UNKNOWN;
  for (uint32_t i = 0; i < p->n; i++) {
    x.lo[i] = -most;
    x.hi[i] = most;
  }
  w.reals = kl_simplex_open(p->cx, p->nrows, p->n);
  w.multiplier = kl_alloc(p->cx, (p->nrows + 1) * sizeof *w.multiplier);
  give_rows(&w);
  kl_truth t = walk_from(&w, &x, p->n);
  kl_free(p->cx, w.multiplier, (p->nrows + 1) * sizeof *w.multiplier);
  kl_simplex_close(w.reals);
  return t;
}
