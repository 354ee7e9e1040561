// cholesky and triangular-solve, batch by batch in long double, with the radii of eval.h.
#include "eval/special/num.h"

// Matrices of one batch are worked on in memory of each worker's own.
typedef struct room {
  num *l, *a;          // n * n
  double *slack, *g;   // n * n
  double *inverse;     // n * n
  num *x;              // n
  double *error, *aux; // n
} room;

typedef struct solve_job {
  const kl_evval *a, *b;
  kl_evval *out, *info; // info: of a factor, whether there is one, as LAPACK says it; or NULL
  int64_t n, rhs;       // order; right-hand sides
  bool lower, intervals;
  bool left, unit, swap, conj;    // triangular-solve: the matrix is solved with its indices swapped, conjugated
  double unit_error, least, most; // of the type: u, the least value above zero, the greatest power of two
  bool is_complex;
  room *room; // per worker
} solve_job;

// A bound of the relative error of a sum of n products, whatever its order; infinite where it says nothing.
static double gamma_of(const solve_job *job, int64_t n) {
  double nu = (double)n * job->unit_error * (job->is_complex ? 4 : 1);
  return nu < 0.5 ? nu / (1 - nu) : INFINITY;
}

// --- memory -------------------------------------------------------------------------------------------------------

static size_t room_bytes(int64_t n, bool square, size_t item) {
  size_t size = (size_t)n;
  if (square && __builtin_mul_overflow(size, (size_t)n, &size)) return SIZE_MAX;
  return __builtin_mul_overflow(size, item, &size) ? SIZE_MAX : size;
}

static void *try_room(kl_ev *ev, int64_t n, bool square, size_t item) {
  size_t size = room_bytes(n, square, item);
  return size == SIZE_MAX ? NULL : kl_try_alloc(ev->cx, size);
}

static void drop_room(kl_ev *ev, void *p, int64_t n, bool square, size_t item) {
  if (p) kl_free(ev->cx, p, room_bytes(n, square, item));
}

static bool make_room(kl_ev *ev, int64_t n, room *r) {
  r->l = try_room(ev, n, true, sizeof(num));
  r->a = try_room(ev, n, true, sizeof(num));
  r->slack = try_room(ev, n, true, sizeof(double));
  r->g = try_room(ev, n, true, sizeof(double));
  r->inverse = try_room(ev, n, true, sizeof(double));
  r->x = try_room(ev, n, false, sizeof(num));
  r->error = try_room(ev, n, false, sizeof(double));
  r->aux = try_room(ev, n, false, sizeof(double));
  return r->l && r->a && r->slack && r->g && r->inverse && r->x && r->error && r->aux;
}

static void free_room(kl_ev *ev, int64_t n, room *r) {
  drop_room(ev, r->l, n, true, sizeof(num));
  drop_room(ev, r->a, n, true, sizeof(num));
  drop_room(ev, r->slack, n, true, sizeof(double));
  drop_room(ev, r->g, n, true, sizeof(double));
  drop_room(ev, r->inverse, n, true, sizeof(double));
  drop_room(ev, r->x, n, false, sizeof(num));
  drop_room(ev, r->error, n, false, sizeof(double));
  drop_room(ev, r->aux, n, false, sizeof(double));
}

static kiln_status run(kl_ev *ev, solve_job *job, int64_t batches, kl_ev_body *body) {
  uint32_t workers = kl_ev_workers(ev, batches, 1);
  job->room = kl_alloc(ev->cx, workers * sizeof(room));
  bool ok = true;
  for (uint32_t k = 0; k < workers; k++) ok &= make_room(ev, job->n, &job->room[k]);
  if (ok) kl_ev_parallel(ev, batches, 1, body, job);
  for (uint32_t k = 0; k < workers; k++) free_room(ev, job->n, &job->room[k]);
  kl_free(ev->cx, job->room, workers * sizeof(room));
  return ok ? KILN_OK : kl_out_of_memory(ev->cx, room_bytes(job->n, true, sizeof(num)), "a matrix");
}

static void set_type(solve_job *job, kl_dtype t) {
  job->is_complex = kl_is_complex(t);
  job->unit_error = num_unit(num_part(t));
  kl_dtype part = num_part(t);
  job->least = num_least(part);
  job->most = 1;
  for (double m = 2; isfinite(m) && kl_float_decode(part, kl_float_encode(part, m)) == m; m *= 2) job->most = m;
}

static int64_t product(const int64_t *dims, uint32_t n) {
  int64_t r = 1;
  for (uint32_t d = 0; d < n; d++) r *= dims[d];
  return r;
}

// --- cholesky -----------------------------------------------------------------------------------------------------

// L L^H = A from the lower triangle and the real parts of the diagonal. Returns how many rows there are of L: fewer
// than n where A is not positive definite, and *pivot is what the next one should have the root of.
static int64_t factor(int64_t n, const num *a, num *l, long double *pivot) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) {
      num s = a[i * n + j];
      for (int64_t k = 0; k < j; k++) s = num_sub(s, num_mul(l[i * n + k], num_conj(l[j * n + k])));
      if (i != j) {
        l[i * n + j] = num_div(s, l[j * n + j]);
        continue;
      }
      *pivot = s.re;
      if (!(s.re > 0) || isinf(s.re)) return i;
      l[i * n + i] = (num){sqrtl(s.re), 0};
    }
  return n;
}

// Magnitudes of the inverse of the first m rows of a lower triangle, column by column.
static void invert(int64_t m, int64_t n, const num *l, num *column, double *inverse) {
  for (int64_t j = 0; j < m; j++)
    for (int64_t i = 0; i < m; i++) {
      num s = {i == j, 0};
      for (int64_t k = j; k < i; k++) s = num_sub(s, num_mul(l[i * n + k], column[k]));
      column[i] = i < j ? (num){0, 0} : num_div(s, l[i * n + i]);
      inverse[i * n + j] = num_size(column[i]);
    }
}

// To the operand's slack in row i, and in its column up to there: E = gamma |L| |L|^H.
static void add_errors(const solve_job *job, room *r, int64_t i) {
  int64_t n = job->n;
  double gamma = gamma_of(job, n + 3);
  for (int64_t j = 0; j <= i; j++) {
    double sum = 0;
    for (int64_t k = 0; k <= j; k++) sum += num_size(r->l[i * n + k]) * num_size(r->l[j * n + k]);
    r->slack[i * n + j] += gamma * sum + (double)(n + 3) * job->least;
    r->slack[j * n + i] = r->slack[i * n + j];
  }
}

// Of the first m rows and columns g = |L^-1| E |L^-H|; returns its Frobenius norm.
static double perturbation(const solve_job *job, room *r, int64_t m) {
  int64_t n = job->n;
  double norm = 0;
  invert(m, n, r->l, r->x, r->inverse);
  for (int64_t i = 0; i < m; i++) add_errors(job, r, i);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < m; j++) {
      r->aux[j] = 0;
      for (int64_t k = 0; k <= i; k++) r->aux[j] += r->inverse[i * n + k] * r->slack[k * n + j];
    }
    for (int64_t j = 0; j < m; j++) {
      double sum = 0;
      for (int64_t k = 0; k <= j; k++) sum += r->aux[k] * r->inverse[j * n + k];
      r->g[i * n + j] = sum;
      norm += sum * sum;
    }
  }
  return sqrt(norm);
}

// With L' = L (I + F), F is lower triangular and F + F^H + F F^H = G', |G'| <= g. So |F| is at most the lower triangle
// of g with half its diagonal, and the square of g's norm, where that norm is at most 1/4.
static double factor_radius(const solve_job *job, const room *r, double norm, int64_t i, int64_t j) {
  int64_t n = job->n;
  double sum = 0;
  for (int64_t k = j; k <= i; k++)
    sum += num_size(r->l[i * n + k]) * (r->g[k * n + j] * (k == j ? 0.5 : 1) + norm * norm);
  return sum * (1 + 0x1p-20) + job->least;
}

// With d = a_mm - |l_m|^2 of a matrix whose first m rows make the factor L, and v = (-l_m L^-1, 1), v A v^H is d. Any
// d' of A + E is the least v' (A + E) v'^H of all v' that end with 1, if what comes before is positive definite, and so
// at most d + |v| |E| |v|^T, in which d is the square of a last l. Is every d' below zero? NaN in the row makes it NaN.
static bool surely_fails(const solve_job *job, room *r, int64_t m, long double d) {
  int64_t n = job->n;
  double sum = 0;
  for (int64_t j = 0; j < m; j++)
    if (isnan(r->a[m * n + j].re) || isnan(r->a[m * n + j].im)) return true;
  if (isnan(r->a[m * n + m].re)) return true;
  r->l[m * n + m] = (num){sqrtl(fabsl(d)), 0};
  add_errors(job, r, m);
  for (int64_t j = 0; j < m; j++) {
    r->aux[j] = 0;
    for (int64_t k = j; k < m; k++) r->aux[j] += num_size(r->l[m * n + k]) * r->inverse[k * n + j];
  }
  r->aux[m] = 1;
  for (int64_t i = 0; i <= m; i++)
    for (int64_t j = 0; j <= m; j++) sum += r->aux[i] * r->slack[i * n + j] * r->aux[j];
  return d + sum * (1 + 0x1p-20) < 0;
}

static void put_info(const solve_job *job, int64_t which, int64_t info, bool sure) {
  for (int plane = KL_EV_DATA; plane <= KL_EV_HI; plane++)
    ((int32_t *)kl_ev_plane(job->info, plane))[which] = (int32_t)info;
  if (!kl_ev_exact(job->info)) ((uint8_t *)kl_ev_plane(job->info, KL_EV_ANY))[which] = !sure;
}

// An element of the operand, in the result as it is.
static void put_given(const solve_job *job, int64_t at) {
  size_t size = kl_ev_size(job->a->shape->dtype);
  int64_t from = job->a->splat ? 0 : at;
  const uint8_t *any = kl_ev_plane(job->a, KL_EV_ANY);
  for (int plane = KL_EV_DATA; plane <= KL_EV_HI; plane++)
    memcpy((char *)kl_ev_plane(job->out, plane) + (size_t)at * size,
           (const char *)kl_ev_plane(job->a, plane) + (size_t)from * size, size);
  if (any && !kl_ev_exact(job->out)) ((uint8_t *)kl_ev_plane(job->out, KL_EV_ANY))[at] = any[from];
}

static void cholesky_one(const solve_job *job, int64_t which, room *r) {
  int64_t n = job->n, base = which * n * n;
  kl_dtype t = job->a->shape->dtype;
  bool open = false;
  long double pivot = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) {
      int64_t at = base + (job->lower ? i * n + j : j * n + i);
      r->a[i * n + j] = num_get(t, kl_ev_plane(job->a, KL_EV_DATA), job->a->splat ? 0 : at);
      r->slack[i * n + j] = num_slack(job->a, at);
      if (i == j) r->slack[i * n + i] += fabs((double)r->a[i * n + i].im); // so far from Hermitian
      open |= isinf(r->slack[i * n + j]);
    }
  int64_t rows = factor(n, r->a, r->l, &pivot);
  bool definite = rows == n;
  double norm = INFINITY;
  if (job->intervals && !open && (definite || job->info)) norm = perturbation(job, r, rows);
  open |= job->intervals && !(norm <= 0.25);
  if (job->info)
    put_info(job, which, definite ? 0 : rows + 1, !open && (definite || surely_fails(job, r, rows, pivot)));
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      int64_t at = base + (job->lower ? i * n + j : j * n + i);
      if (j > i && job->info)
        put_given(job, at);
      else if (j > i)
        num_put(job->out, at, (num){0, 0}, INFINITY);
      else if (!definite)
        num_put(job->out, at, (num){NAN, job->is_complex ? NAN : 0}, INFINITY);
      else
        num_put(job->out, at, r->l[i * n + j],
                open             ? INFINITY
                : job->intervals ? factor_radius(job, r, norm, i, j)
                                 : 0);
    }
}

static void cholesky_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const solve_job *job = arg;
  for (int64_t i = begin; i < end; i++) cholesky_one(job, i, &job->room[worker]);
}

kiln_status kl_ev_cholesky(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                           kl_evval *out) {
  const kl_shape *s = kl_shape_leaf(in->shape, 0), *info = in->shape == s ? NULL : kl_shape_leaf(in->shape, 1);
  if (s->rank < 2 || s->dims[s->rank - 1] != s->dims[s->rank - 2])
    return kl_ev_refuse(ev, in, "its matrices are not square");
  bool intervals = ev->intervals && s->count > 0;
  KL_TRY(kl_ev_new(ev, s, false, intervals, out));
  kiln_status status = info ? kl_ev_new(ev, info, false, intervals, &out[1]) : KILN_OK;
  solve_job job = {.a = operands[0],
                   .out = out,
                   .info = info ? &out[1] : NULL,
                   .n = s->dims[s->rank - 1],
                   .lower = in->more->lower,
                   .intervals = ev->intervals};
  set_type(&job, s->dtype);
  if (status == KILN_OK && s->count) status = run(ev, &job, product(s->dims, s->rank - 2), cholesky_piece);
  if (status == KILN_OK) num_close(ev, out);
  if (status == KILN_OK && info) kl_ev_settle(ev, &out[1]);
  for (int k = 0; k <= !!info && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  return status;
}

// --- triangular-solve ---------------------------------------------------------------------------------------------

// The matrix as it is solved with, its other triangle left out.
static void load_triangle(const solve_job *job, int64_t which, room *r) {
  int64_t n = job->n;
  kl_dtype t = job->a->shape->dtype;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      if (job->lower ? j > i : j < i) continue;
      int64_t at = which * n * n + (job->swap ? j * n + i : i * n + j);
      num v = num_get(t, kl_ev_plane(job->a, KL_EV_DATA), job->a->splat ? 0 : at);
      r->a[i * n + j] = i == j && job->unit ? (num){1, 0} : job->conj ? num_conj(v) : v;
      r->slack[i * n + j] = i == j && job->unit ? 0 : num_slack(job->a, at);
    }
}

// Solves for one right-hand side in r->x. The errors e of any substitution obey, row by row,
//   (|a_ii| - d_ii) e_i <= sum over j before i of |a_ij| e_j + d_ij (|x_j| + e_j), plus d_ii |x_i| and b's slack,
// with d = gamma |a| + slack of a, and beside that what a quotient below the normal numbers loses. A row is open where
// its sum may overflow on the way, and then those that take it.
static void substitute(const solve_job *job, room *r) {
  int64_t n = job->n;
  double gamma = gamma_of(job, n + 2);
  for (int64_t step = 0; step < n; step++) {
    int64_t i = job->lower ? step : n - 1 - step, from = job->lower ? 0 : i + 1, to = job->lower ? i : n;
    const num *row = &r->a[i * n];
    num s = r->x[i];
    double e = r->error[i] + (double)(n + 2) * job->least, size = num_size(s);
    for (int64_t j = from; j < to; j++) s = num_sub(s, num_mul(row[j], r->x[j]));
    r->x[i] = num_div(s, row[i]);
    if (!job->intervals) continue;
    for (int64_t j = from; j < to; j++) {
      double a = num_size(row[j]), d = gamma * a + r->slack[i * n + j];
      e += a * r->error[j] + d * (num_size(r->x[j]) + r->error[j]);
      size += a * num_size(r->x[j]);
    }
    if (!(size + e < job->most / 2) || !(num_size(r->x[i]) < job->most / 2)) e = INFINITY;
    double a = num_size(row[i]), d = job->unit ? gamma : gamma * a + r->slack[i * n + i];
    r->error[i] = a > d ? (e + d * num_size(r->x[i])) / (a - d) * (1 + 0x1p-20) + 4 * job->least : INFINITY;
  }
}

static void solve_one(const solve_job *job, int64_t which, room *r) {
  int64_t n = job->n;
  kl_dtype t = job->b->shape->dtype;
  load_triangle(job, which, r);
  for (int64_t k = 0; k < job->rhs; k++) {
    int64_t base = which * n * job->rhs + (job->left ? k : k * n), stride = job->left ? job->rhs : 1;
    for (int64_t i = 0; i < n; i++) {
      int64_t at = base + i * stride;
      r->x[i] = num_get(t, kl_ev_plane(job->b, KL_EV_DATA), job->b->splat ? 0 : at);
      r->error[i] = num_slack(job->b, at);
    }
    substitute(job, r);
    for (int64_t i = 0; i < n; i++) num_put(job->out, base + i * stride, r->x[i], job->intervals ? r->error[i] : 0);
  }
}

static void solve_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const solve_job *job = arg;
  for (int64_t i = begin; i < end; i++) solve_one(job, i, &job->room[worker]);
}

kiln_status kl_ev_triangular_solve(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                   kl_evval *out) {
  const kl_shape *s = in->shape, *a = operands[0]->shape;
  const kl_more *m = in->more;
  uint32_t rank = s->rank;
  int64_t n = rank < 2 ? 0 : s->dims[m->left_side ? rank - 2 : rank - 1];
  if (rank < 2 || a->rank != rank || a->dims[rank - 1] != n || a->dims[rank - 2] != n)
    return kl_ev_refuse(ev, in, "its matrices do not fit");
  KL_TRY(kl_ev_new(ev, s, false, ev->intervals && s->count > 0, out));
  // X op(A) = B is op(A)^T X^T = B^T.
  bool swap = (m->transpose_a != KL_NO_TRANSPOSE) == m->left_side;
  solve_job job = {.a = operands[0],
                   .b = operands[1],
                   .out = out,
                   .n = n,
                   .rhs = s->dims[m->left_side ? rank - 1 : rank - 2],
                   .lower = m->lower != swap,
                   .intervals = ev->intervals,
                   .left = m->left_side,
                   .unit = m->unit_diagonal,
                   .swap = swap,
                   .conj = m->transpose_a == KL_ADJOINT};
  set_type(&job, s->dtype);
  kiln_status status = s->count ? run(ev, &job, product(s->dims, rank - 2), solve_piece) : KILN_OK;
  if (status == KILN_OK)
    num_close(ev, out);
  else
    kl_ev_free(ev, out);
  return status;
}
