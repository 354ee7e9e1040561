// LU decompositions with rows exchanged, as LAPACK's getrf has them, batch by batch in long double, with the radii of
// eval.h; and the permutations that exchanges make.
//
// A matrix of m rows and n columns is worked on as one of N = max(m, n) rows and columns, [A, (0; I)] or [A; (0, I)]:
// its factors are those of A, bordered by rows and columns of the unit matrix, which take part in no exchange.
#include "eval/special/num.h"

// Of one worker, N * N each.
typedef struct room {
  num *a;                          // L below the diagonal, U on it and above
  double *slack, *linv, *uinv, *g; // of the operand, rows exchanged; |L^-1|; |U^-1|; |L^-1| E |U^-1|
  num *column;                     // N
  double *aux;                     // N
  int64_t *row;                    // N: of the operand
} room;

typedef struct lu_job {
  const kl_evval *a;
  kl_evval *out, *pivots, *info;
  int64_t m, n, order, steps; // rows, columns; N; exchanges
  bool intervals, is_complex;
  double unit, least; // of the type: u, the least value above zero
  room *room;
} lu_job;

static double gamma_of(const lu_job *job, int64_t n) {
  double nu = (double)n * job->unit * (job->is_complex ? 4 : 1);
  return nu < 0.5 ? nu / (1 - nu) : INFINITY;
}

// --- memory -------------------------------------------------------------------------------------------------------

enum { SQUARES = sizeof(num) + 4 * sizeof(double), LINES = sizeof(num) + sizeof(double) + sizeof(int64_t) };

static size_t bytes_of(int64_t order) {
  size_t n = (size_t)order, square, lines;
  bool over = __builtin_mul_overflow(n, n, &square) || __builtin_mul_overflow(square, (size_t)SQUARES, &square) ||
              __builtin_mul_overflow(n, (size_t)LINES, &lines) || __builtin_add_overflow(square, lines, &square);
  return over ? SIZE_MAX : square;
}

static bool make_room(kl_ev *ev, int64_t order, room *r) {
  size_t n = (size_t)order, bytes = bytes_of(order);
  char *p = bytes == SIZE_MAX ? NULL : kl_try_alloc(ev->cx, bytes);
  if (!p) return false;
  r->a = (num *)p;
  r->column = r->a + n * n;
  r->slack = (double *)(r->column + n);
  r->linv = r->slack + n * n;
  r->uinv = r->linv + n * n;
  r->g = r->uinv + n * n;
  r->aux = r->g + n * n;
  r->row = (int64_t *)(r->aux + n);
  return true;
}

// --- factors ------------------------------------------------------------------------------------------------------

static void load(const lu_job *job, int64_t which, room *r) {
  int64_t order = job->order;
  for (int64_t i = 0; i < order; i++) {
    r->row[i] = i;
    for (int64_t j = 0; j < order; j++) {
      bool inside = i < job->m && j < job->n;
      int64_t at = (which * job->m + i) * job->n + j;
      r->a[i * order + j] = inside
                                ? num_get(job->a->shape->dtype, kl_ev_plane(job->a, KL_EV_DATA), job->a->splat ? 0 : at)
                                : (num){i == j, 0};
      r->slack[i * order + j] = inside ? num_slack(job->a, at) : 0;
    }
  }
}

// How large LAPACK finds a number.
static double height_of(num x) {
  return fabs((double)x.re) + fabs((double)x.im);
}

static void exchange(const lu_job *job, room *r, int64_t i, int64_t k) {
  if (i == k) return;
  for (int64_t j = 0; j < job->n; j++) { // the border stays
    num a = r->a[i * job->order + j];
    double s = r->slack[i * job->order + j];
    r->a[i * job->order + j] = r->a[k * job->order + j];
    r->slack[i * job->order + j] = r->slack[k * job->order + j];
    r->a[k * job->order + j] = a;
    r->slack[k * job->order + j] = s;
  }
  int64_t row = r->row[i];
  r->row[i] = r->row[k];
  r->row[k] = row;
}

// The first of the largest from row k on; row k where one is NaN, which LAPACK leaves open.
static int64_t find_pivot(const lu_job *job, const room *r, int64_t k) {
  int64_t best = k;
  for (int64_t i = k; i < job->m; i++) {
    double height = height_of(r->a[i * job->order + k]);
    if (isnan(height)) return k;
    if (height > height_of(r->a[best * job->order + k])) best = i;
  }
  return best;
}

// Returns the number of the first pivot that is zero, from 1; 0: there is none.
static int64_t factor(const lu_job *job, room *r, int32_t *pivots) {
  int64_t order = job->order, zero = 0;
  for (int64_t k = 0; k < job->steps; k++) {
    int64_t p = find_pivot(job, r, k);
    pivots[k] = (int32_t)(p + 1);
    exchange(job, r, k, p);
    num d = r->a[k * order + k];
    if (d.re == 0 && d.im == 0) {
      if (!zero) zero = k + 1;
      continue; // nor is there anything below
    }
    for (int64_t i = k + 1; i < job->m; i++) {
      num f = r->a[i * order + k] = num_div(r->a[i * order + k], d);
      for (int64_t j = k + 1; j < job->n; j++)
        r->a[i * order + j] = num_sub(r->a[i * order + j], num_mul(f, r->a[k * order + j]));
    }
  }
  return zero;
}

// --- radii --------------------------------------------------------------------------------------------------------

static num l_at(const room *r, int64_t order, int64_t i, int64_t j) {
  return i == j ? (num){1, 0} : i > j ? r->a[i * order + j] : (num){0, 0};
}

static num u_at(const room *r, int64_t order, int64_t i, int64_t j) {
  return i <= j ? r->a[i * order + j] : (num){0, 0};
}

// Magnitudes of the inverses of both factors, column by column.
static void invert(const lu_job *job, room *r) {
  int64_t n = job->order;
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = 0; i < n; i++) {
      num s = {i == j, 0};
      for (int64_t k = j; k < i; k++) s = num_sub(s, num_mul(l_at(r, n, i, k), r->column[k]));
      r->column[i] = i < j ? (num){0, 0} : s;
      r->linv[i * n + j] = num_size(r->column[i]);
    }
    for (int64_t i = n - 1; i >= 0; i--) {
      num s = {i == j, 0};
      for (int64_t k = i + 1; k <= j; k++) s = num_sub(s, num_mul(u_at(r, n, i, k), r->column[k]));
      r->column[i] = i > j ? (num){0, 0} : num_div(s, u_at(r, n, i, i));
      r->uinv[i * n + j] = num_size(r->column[i]);
    }
  }
}

// What any way of making the factors, and the operand's own slack, may change in the matrix: gamma |L| |U| + slack.
static void add_errors(const lu_job *job, room *r) {
  int64_t n = job->order;
  double gamma = gamma_of(job, job->steps + 3);
  for (int64_t i = 0; i < job->m; i++)
    for (int64_t j = 0; j < job->n; j++) {
      double sum = 0;
      for (int64_t k = 0; k <= (i < j ? i : j); k++) sum += num_size(l_at(r, n, i, k)) * num_size(u_at(r, n, k, j));
      r->slack[i * n + j] += gamma * sum + (double)(n + 3) * job->least;
    }
}

// g = |L^-1| E |U^-1|; returns its Frobenius norm.
static double perturbation(const lu_job *job, room *r) {
  int64_t n = job->order;
  double norm = 0;
  invert(job, r);
  add_errors(job, r);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) {
      r->aux[j] = 0;
      for (int64_t k = 0; k <= i; k++) r->aux[j] += r->linv[i * n + k] * r->slack[k * n + j];
    }
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t k = 0; k <= j; k++) sum += r->aux[k] * r->uinv[k * n + j];
      r->g[i * n + j] = sum * (1 + 0x1p-20);
      norm += sum * sum;
    }
  }
  return sqrt(norm) * (1 + 0x1p-20);
}

// With A + E = L (I + G) U, |G| <= g, and I + G = (I + X)(I + Y), X strictly lower and Y upper: X + Y = G - X Y. With
// p the norm of X Y, p <= (|X|^2 + |Y|^2) / 2 <= (norm + p)^2 / 2, so that p <= norm^2 where norm <= 1/4. What changes
// is L X and Y U.
static double radius(const lu_job *job, const room *r, double norm, int64_t i, int64_t j) {
  int64_t n = job->order;
  double sum = 0;
  for (int64_t k = i > j ? j + 1 : i; i > j ? k <= i : k <= j; k++)
    sum += i > j ? num_size(l_at(r, n, i, k)) * (r->g[k * n + j] + norm * norm)
                 : (r->g[i * n + k] + norm * norm) * num_size(u_at(r, n, k, j));
  return sum * (1 + 0x1p-20) + job->least;
}

// Would every device take the row of pivot k, if it took the others before? What it chooses from is l_ik u_kk.
static bool is_sure(const lu_job *job, const room *r, double norm, int64_t k) {
  int64_t n = job->order;
  num u = r->a[k * n + k];
  double du = radius(job, r, norm, k, k), size = num_size(u);
  for (int64_t i = k + 1; i < job->m; i++) {
    num l = r->a[i * n + k];
    double dl = radius(job, r, norm, i, k), d = num_size(l) * du + (size + du) * dl;
    if (!(height_of(num_mul(l, u)) + 1.5 * (d + du) < height_of(u))) return false;
  }
  return size > du;
}

// --- results ------------------------------------------------------------------------------------------------------

static void put_whole(kl_evval *v, int64_t at, int64_t value, bool sure) {
  for (int plane = KL_EV_DATA; plane <= KL_EV_HI; plane++) ((int32_t *)kl_ev_plane(v, plane))[at] = (int32_t)value;
  if (!kl_ev_exact(v)) ((uint8_t *)kl_ev_plane(v, KL_EV_ANY))[at] = !sure;
}

static void lu_one(const lu_job *job, int64_t which, room *r) {
  int64_t n = job->order;
  int32_t *pivots = (int32_t *)kl_ev_plane(job->pivots, KL_EV_DATA) + which * job->steps;
  load(job, which, r);
  int64_t zero = factor(job, r, pivots);
  double norm = job->intervals && !zero ? perturbation(job, r) : 0;
  bool sure = !job->intervals || (!zero && norm <= 0.25);
  for (int64_t k = 0; k < job->steps && job->intervals && sure; k++) sure = is_sure(job, r, norm, k);
  for (int64_t k = 0; k < job->steps; k++) put_whole(job->pivots, which * job->steps + k, pivots[k], sure);
  put_whole(job->info, which, zero, sure);
  for (int64_t i = 0; i < job->m; i++)
    for (int64_t j = 0; j < job->n; j++)
      num_put(job->out, (which * job->m + i) * job->n + j, r->a[i * n + j],
              !sure            ? INFINITY
              : job->intervals ? radius(job, r, norm, i, j)
                               : 0);
}

static void lu_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const lu_job *job = arg;
  for (int64_t i = begin; i < end; i++) lu_one(job, i, &job->room[worker]);
}

static kiln_status run(kl_ev *ev, lu_job *job, int64_t batches) {
  uint32_t workers = kl_ev_workers(ev, batches, 1);
  job->room = kl_alloc(ev->cx, workers * sizeof(room));
  bool ok = true;
  for (uint32_t k = 0; k < workers; k++) ok &= make_room(ev, job->order, &job->room[k]);
  if (ok) kl_ev_parallel(ev, batches, 1, lu_piece, job);
  for (uint32_t k = 0; k < workers; k++)
    if (job->room[k].a) kl_free(ev->cx, job->room[k].a, bytes_of(job->order));
  kl_free(ev->cx, job->room, workers * sizeof(room));
  return ok ? KILN_OK : kl_out_of_memory(ev->cx, bytes_of(job->order), "a matrix");
}

kiln_status kl_ev_lu(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  const kl_shape *s = operands[0]->shape;
  lu_job job = {.a = operands[0],
                .out = &out[0],
                .pivots = &out[1],
                .info = &out[2],
                .m = s->dims[s->rank - 2],
                .n = s->dims[s->rank - 1],
                .is_complex = kl_is_complex(s->dtype),
                .unit = num_unit(num_part(s->dtype)),
                .least = num_least(num_part(s->dtype))};
  int64_t batches = 1;
  for (uint32_t d = 0; d + 2 < s->rank; d++) batches *= s->dims[d];
  job.order = job.m > job.n ? job.m : job.n;
  job.steps = job.m > job.n ? job.n : job.m;
  job.intervals = ev->intervals && s->count > 0;
  kiln_status status = KILN_OK;
  for (int k = 0; k < 3 && status == KILN_OK; k++)
    status = kl_ev_new(ev, kl_shape_leaf(in->shape, (size_t)k), false, job.intervals, &out[k]);
  if (status == KILN_OK && s->count) status = run(ev, &job, batches);
  if (status == KILN_OK) num_close(ev, out);
  for (int k = 1; k < 3 && status == KILN_OK; k++) kl_ev_settle(ev, &out[k]);
  for (int k = 0; k < 3 && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  return status;
}

// --- permutations -------------------------------------------------------------------------------------------------

// Rows 0, 1, ... after row k has changed places with row pivots[k], from 0, for k = 0, 1, ...; an exchange with a row
// that is not there is none. Open from where an exchange is not known.
kiln_status kl_ev_permutation(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                              kl_evval *out) {
  const kl_evval *from = operands[0];
  const kl_shape *s = in->shape;
  int64_t n = s->dims[s->rank - 1], steps = from->shape->dims[from->shape->rank - 1], batches = n ? s->count / n : 0;
  KL_TRY(kl_ev_new(ev, s, false, false, out));
  int32_t *all = kl_ev_plane(out, KL_EV_DATA);
  const int32_t *pivots = kl_ev_plane(from, KL_EV_DATA);
  for (int64_t b = 0; b < batches; b++) {
    int32_t *row = all + b * n;
    for (int64_t i = 0; i < n; i++) row[i] = (int32_t)i;
    for (int64_t k = 0; k < steps; k++) {
      int32_t p = pivots[from->splat ? 0 : b * steps + k], held = row[k];
      if (p < 0 || p >= n) continue;
      row[k] = row[p];
      row[p] = held;
    }
  }
  kiln_status status = kl_ev_exact(from) ? KILN_OK : kl_ev_open(ev, out);
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}
