// Integer solutions of linear equations, by Hermite's form: steps of Euclid on the columns of the matrix, which keep
// the integer points, make it a staircase, along which the unknowns of the new coordinates follow one by one. Below the
// matrix stand unit rows for the unknowns that are wanted; they come to say what these are in new coordinates. Those
// that no equation fixes are free, and the unit rows are made a staircase along them as well: unknown i then moves in
// steps of its pivot once the ones before it are chosen.
#include "ir/index/lattice.h"

struct kl_lattice {
  kl_ctx *cx;
  uint32_t rows, n, points;
  wide *m;       // rows, then a unit row for each point; n columns
  wide *rhs;     // of the equations
  wide *x;       // new coordinates, as far as they are fixed or taken
  uint32_t *end; // by point: how many coordinates it takes from those before it; its own is the next, if it has one
};

kl_lattice *kl_lattice_open(kl_ctx *cx, uint32_t rows, uint32_t n, const uint32_t *order, uint32_t points) {
  kl_lattice *l = kl_alloc(cx, sizeof *l);
  *l = (kl_lattice){.cx = cx, .rows = rows, .n = n, .points = points};
  l->m = kl_alloc(cx, (size_t)(rows + points) * (n + 1) * sizeof *l->m);
  l->rhs = kl_alloc(cx, (rows + 1) * sizeof *l->rhs);
  l->x = kl_alloc(cx, (n + 1) * sizeof *l->x);
  l->end = kl_alloc(cx, (points + 1) * sizeof *l->end);
  for (uint32_t i = 0; i < points; i++) l->m[(size_t)(rows + i) * n + order[i]] = 1;
  return l;
}

void kl_lattice_close(kl_lattice *l) {
  kl_ctx *cx = l->cx;
  kl_free(cx, l->m, (size_t)(l->rows + l->points) * (l->n + 1) * sizeof *l->m);
  kl_free(cx, l->rhs, (l->rows + 1) * sizeof *l->rhs);
  kl_free(cx, l->x, (l->n + 1) * sizeof *l->x);
  kl_free(cx, l->end, (l->points + 1) * sizeof *l->end);
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
  for (uint32_t r = 0; r < l->rows + l->points; r++) {
    wide d, *m = &l->m[(size_t)r * l->n];
    if (__builtin_mul_overflow(q, m[of], &d) || __builtin_sub_overflow(m[from], d, &m[from])) return false;
    if (m[from] > most || m[from] < -most) return false;
  }
  return true;
}

static void swap_columns(kl_lattice *l, uint32_t a, uint32_t b) {
  for (uint32_t r = 0; r < l->rows + l->points; r++) {
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

// The sum of a row's entries before column `end`, times the coordinates. False where numbers get too large.
static bool sum_row(const kl_lattice *l, uint32_t r, uint32_t end, wide *sum) {
  *sum = 0;
  for (uint32_t c = 0; c < end; c++) {
    wide d;
    if (__builtin_mul_overflow(l->m[(size_t)r * l->n + c], l->x[c], &d) || __builtin_add_overflow(*sum, d, sum))
      return false;
  }
  return true;
}

static wide step_of(const kl_lattice *l, uint32_t i) {
  return l->end[i] < l->n ? l->m[(size_t)(l->rows + i) * l->n + l->end[i]] : 0;
}

kl_lattice_state kl_lattice_solve(kl_lattice *l) {
  uint32_t at = 0;
  for (uint32_t r = 0; r < l->rows; r++) {
    wide sum, left;
    if (!reduce_row(l, r, at) || !sum_row(l, r, at, &sum) || __builtin_sub_overflow(l->rhs[r], sum, &left))
      return KL_LATTICE_LARGE;
    wide pivot = at < l->n ? l->m[(size_t)r * l->n + at] : 0;
    if (pivot ? left % pivot != 0 : left != 0) return KL_LATTICE_EMPTY;
    if (pivot) l->x[at++] = left / pivot;
  }
  for (uint32_t i = 0; i < l->points; i++) {
    if (!reduce_row(l, l->rows + i, at)) return KL_LATTICE_LARGE;
    l->end[i] = at;
    at += step_of(l, i) != 0;
  }
  return KL_LATTICE_SOLVED;
}

bool kl_lattice_values(const kl_lattice *l, uint32_t i, wide *one, wide *step) {
  *step = step_of(l, i);
  return sum_row(l, l->rows + i, l->end[i], one);
}

void kl_lattice_take(kl_lattice *l, uint32_t i, wide steps) {
  l->x[l->end[i]] = steps;
}
