// Integer solutions of linear equations, by Hermite's form: steps of Euclid on the columns of the matrix, which keep
// the integer points, make it a staircase, along which the unknowns of the new coordinates follow one by one. Below the
// matrix stand unit rows, which come to say what the unknowns are in new coordinates. Those that no equation fixes are
// free. The solution that is carried along is kept small by what is free: it would grow with every equation.
#include "ir/index/decide/lattice.h"

#include <math.h>

enum { MOST_ROUNDS = 64 };

struct kl_lattice {
  kl_ctx *cx;
  uint32_t rows, n;
  wide *m;        // rows, then n unit rows; n columns
  wide *rhs;      // of the equations
  wide *x;        // a solution of the rows so far, as a column of m
  uint32_t fixed; // columns that rows so far have fixed
};

kl_lattice *kl_lattice_open(kl_ctx *cx, uint32_t rows, uint32_t n) {
  kl_lattice *l = kl_alloc(cx, sizeof *l);
  *l = (kl_lattice){.cx = cx, .rows = rows, .n = n};
  l->m = kl_alloc(cx, (size_t)(rows + n) * (n + 1) * sizeof *l->m);
  l->rhs = kl_alloc(cx, (rows + 1) * sizeof *l->rhs);
  l->x = kl_alloc(cx, (rows + n + 1) * sizeof *l->x);
  for (uint32_t i = 0; i < n; i++) l->m[(size_t)(rows + i) * n + i] = 1;
  return l;
}

void kl_lattice_close(kl_lattice *l) {
  kl_ctx *cx = l->cx;
  kl_free(cx, l->m, (size_t)(l->rows + l->n) * (l->n + 1) * sizeof *l->m);
  kl_free(cx, l->rhs, (l->rows + 1) * sizeof *l->rhs);
  kl_free(cx, l->x, (l->rows + l->n + 1) * sizeof *l->x);
  kl_free(cx, l, sizeof *l);
}

void kl_lattice_add(kl_lattice *l, uint32_t row, uint32_t unknown, int64_t coef) {
  l->m[(size_t)row * l->n + unknown] += coef;
}

void kl_lattice_value(kl_lattice *l, uint32_t row, int64_t value) {
  l->rhs[row] = value;
}

// One column less q times another. False where numbers get too large.
static bool subtract_column(kl_lattice *l, uint32_t from, uint32_t of, wide q) {
  const wide most = (wide)1 << 120;
  for (uint32_t r = 0; r < l->rows + l->n; r++) {
    wide d, *m = &l->m[(size_t)r * l->n];
    if (__builtin_mul_overflow(q, m[of], &d) || __builtin_sub_overflow(m[from], d, &m[from])) return false;
    if (m[from] > most || m[from] < -most) return false;
  }
  return true;
}

static void swap_columns(kl_lattice *l, uint32_t a, uint32_t b) {
  for (uint32_t r = 0; r < l->rows + l->n; r++) {
    wide *m = &l->m[(size_t)r * l->n], t = m[a];
    m[a] = m[b];
    m[b] = t;
  }
}

// Leaves at most one entry of row r at or behind column `at`, in column `at`. False where numbers get too large.
static bool reduce_row(kl_lattice *l, uint32_t r, uint32_t at) {
  const wide *m = &l->m[(size_t)r * l->n];
  for (;;) {
    uint32_t least = UINT32_MAX, others = 0;
    for (uint32_t c = at; c < l->n; c++) {
      wide y = least == UINT32_MAX ? 0 : m[least];
      if (!m[c]) continue;
      others++;
      if (least == UINT32_MAX || (m[c] < 0 ? -m[c] : m[c]) < (y < 0 ? -y : y)) least = c;
    }
    if (others == 0) return true;
    if (least != at) swap_columns(l, least, at);
    if (others == 1) return true;
    for (uint32_t c = at + 1; c < l->n; c++) {
      wide q = m[c] / m[at];
      if (q && !subtract_column(l, c, at, q)) return false;
    }
  }
}

// The solution, plus t times a column. False where numbers get too large.
static bool move(kl_lattice *l, uint32_t column, wide t) {
  for (uint32_t r = 0; r < l->rows + l->n; r++) {
    wide d;
    if (__builtin_mul_overflow(t, l->m[(size_t)r * l->n + column], &d) || __builtin_add_overflow(l->x[r], d, &l->x[r]))
      return false;
  }
  return true;
}

static bool is_large(const kl_lattice *l) {
  const wide most = (wide)1 << 24;
  for (uint32_t i = l->rows; i < l->rows + l->n; i++) {
    const wide *m = &l->m[(size_t)i * l->n];
    bool large = l->x[i] > most || l->x[i] < -most;
    for (uint32_t c = l->fixed; c < l->n && !large; c++) large = m[c] > most || m[c] < -most;
    if (large) return true;
  }
  return false;
}

static long double entry(const kl_lattice *l, uint32_t r, uint32_t column) {
  return (long double)(column == l->n ? l->x[r] : l->m[(size_t)r * l->n + column]);
}

// How often column b goes into column a (l->n: the solution), as vectors of unknowns.
static wide times(const kl_lattice *l, uint32_t a, uint32_t b) {
  long double dot = 0, size = 0;
  for (uint32_t r = l->rows; r < l->rows + l->n; r++) {
    dot += entry(l, r, a) * entry(l, r, b);
    size += entry(l, r, b) * entry(l, r, b);
  }
  long double q = size > 0 ? dot / size : 0;
  return fabsl(q) > 0.51L && fabsl(q) < 0x1p100L ? (wide)roundl(q) : 0;
}

// Shortens free columns, and the solution, by free columns, pair by pair. What floating point says of lengths only
// chooses what is done: each step is a step of integers that keeps the solutions.
static bool make_small(kl_lattice *l, uint32_t *left) {
  bool changed = true;
  for (int round = 0; changed && round < MOST_ROUNDS; round++) {
    uint64_t columns = l->n - l->fixed, steps = (columns + 1) * columns * (1 + l->n / 32);
    if (steps >= *left) return true;
    *left -= (uint32_t)steps;
    changed = false;
    for (uint32_t a = l->fixed; a <= l->n; a++) {
      for (uint32_t b = l->fixed; b < l->n; b++) {
        wide q = a != b ? times(l, a, b) : 0;
        if (q == 0) continue;
        changed = true;
        if (a == l->n ? !move(l, b, -q) : !subtract_column(l, a, b, q)) return false;
      }
    }
  }
  return true;
}

kl_lattice_state kl_lattice_solve(kl_lattice *l, uint32_t *left) {
  for (uint32_t r = 0; r < l->rows; r++) {
    uint32_t at = l->fixed;
    wide rest;
    if (!reduce_row(l, r, at) || __builtin_sub_overflow(l->rhs[r], l->x[r], &rest)) return KL_LATTICE_LARGE;
    wide pivot = at < l->n ? l->m[(size_t)r * l->n + at] : 0;
    if (pivot ? rest % pivot != 0 : rest != 0) return KL_LATTICE_EMPTY;
    if (!pivot) continue;
    if (!move(l, at, rest / pivot)) return KL_LATTICE_LARGE;
    l->fixed++;
    if (is_large(l) && !make_small(l, left)) return KL_LATTICE_LARGE;
  }
  return KL_LATTICE_SOLVED;
}

uint32_t kl_lattice_dimension(const kl_lattice *l) {
  return l->n - l->fixed;
}

wide kl_lattice_unknown(const kl_lattice *l, uint32_t i, const wide **by) {
  *by = l->m + (size_t)(l->rows + i) * l->n + l->fixed;
  return l->x[l->rows + i];
}
