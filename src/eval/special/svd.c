// Singular values and vectors, batch by batch in long double, with the radii of eval.h.
//
// Those of A [m, n] are eigenvalues of ((0, A), (A^H, 0)): each s of A is one with the vector (u; v) / sqrt 2, -s with
// (u; -v), and all others are 0. An error in A is as large an error in that, twice in the Frobenius norm.
#include "eval/special/spectrum.h"
#include "ir/custom/custom.h"

typedef struct svd_job {
  const kl_evval *a;
  kl_evval *values, *u, *v;
  kl_svd form;
  int64_t m, n, k, of_u, of_v; // k: values; columns of U and of V
  bool is_complex;
  double unit, least;
} svd_job;

typedef struct loaded {
  bool finite;
  double size, slack; // in the Frobenius norm
} loaded;

static loaded load(const svd_job *job, int64_t which, kl_ev_spectra *r) {
  int64_t m = job->m, n = job->n, order = m + n;
  loaded l = {.finite = true};
  memset(r->a, 0, (size_t)(order * order) * sizeof *r->a);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      int64_t at = (which * m + i) * n + j;
      num x = num_get(job->a->shape->dtype, kl_ev_plane(job->a, KL_EV_DATA), job->a->splat ? 0 : at);
      r->a[i * order + m + j] = x;
      r->a[(m + j) * order + i] = num_conj(x);
      l.finite &= isfinite(num_size(x));
      l.size = hypot(l.size, num_size(x));
      l.slack = hypot(l.slack, num_slack(job->a, at));
    }
  return l;
}

// Element i of the u, or of the v, that belongs to a value.
static void put_u(const svd_job *job, int64_t which, int64_t value, int64_t i, num x, double radius) {
  num_put(job->u, (which * job->m + i) * job->of_u + value, x, radius);
}

static void put_v(const svd_job *job, int64_t which, int64_t value, int64_t i, num x, double radius) {
  if (job->form.adjoint)
    num_put(job->v, (which * job->of_v + value) * job->n + i, num_conj(x), radius);
  else
    num_put(job->v, (which * job->n + i) * job->of_v + value, x, radius);
}

static void put_all(const svd_job *job, int64_t which, long double v, double radius) {
  num x = {v, job->is_complex ? v : 0};
  for (int64_t i = 0; i < job->k; i++) num_put(job->values, which * job->k + i, (num){v, 0}, radius);
  if (!job->form.vectors) return;
  for (int64_t i = 0; i < job->m * job->of_u; i++) put_u(job, which, i % job->of_u, i / job->of_u, x, radius);
  for (int64_t i = 0; i < job->n * job->of_v; i++) put_v(job, which, i % job->of_v, i / job->of_v, x, radius);
}

// z: (u; v) / sqrt 2.
static void put_vectors(const svd_job *job, int64_t which, int64_t value, num *z, double radius) {
  int64_t m = job->m, n = job->n;
  for (int64_t i = 0; i < m + n; i++) z[i] = (num){z[i].re * sqrtl(2), z[i].im * sqrtl(2)};
  num *v = z + m;
  int64_t lead = kl_ev_leading(n, v, 1, radius);
  bool open = lead < 0;
  if (open) lead = kl_ev_leading(n, v, 1, 0);
  num phase = lead < 0 ? (num){1, 0} : kl_ev_phase(v[lead]);
  radius = open ? INFINITY : kl_ev_turned_radius(radius, v[lead], job->is_complex);
  for (int64_t i = 0; i < m; i++) put_u(job, which, value, i, num_mul(z[i], phase), radius);
  for (int64_t i = 0; i < n; i++) put_v(job, which, value, i, num_mul(v[i], phase), radius);
}

// No value is below zero.
static void put_value(const svd_job *job, int64_t at, long double v, double radius) {
  num_put(job->values, at, (num){fmaxl(v, 0), 0}, radius);
  if (!kl_ev_exact(job->values) && v < radius)
    num_set(job->values->shape->dtype, kl_ev_plane(job->values, KL_EV_LO), at, (num){0, 0});
}

static void decompose(const void *arg, int64_t which, kl_ev_spectra *r) {
  const svd_job *job = arg;
  int64_t m = job->m, n = job->n, k = job->k, order = m + n;
  loaded l = load(job, which, r);
  if (!isfinite(l.slack)) return put_all(job, which, 0, INFINITY);
  if (!l.finite) return put_all(job, which, NAN, 0);
  if (!kl_ev_spectrum(order, r)) return put_all(job, which, 0, INFINITY);
  double gamma = kl_ev_spectral_gamma(job->unit, order);
  double error = kl_ev_spectral_error(gamma, job->least, order, l.size, l.slack);
  for (int64_t i = 0; i < k; i++) {
    long double value = r->w[order - 1 - i];
    double above = i ? (double)(r->w[order - i] - value) : INFINITY;
    // Below the last are zeros, or else its own opposite.
    double below = (double)(value - (i + 1 < k || m == n ? r->w[order - 2 - i] : 0));
    put_value(job, which * k + i, value, error);
    double radius = 1.4143 * kl_ev_vector_radius(1.4143 * error, fmin(above, below)) + gamma;
    if (job->form.vectors) put_vectors(job, which, i, r->z + (order - 1 - i) * order, radius);
  }
  if (!job->form.vectors) return;
  for (int64_t i = 0; i < m * job->of_u; i++)
    if (i % job->of_u >= k) put_u(job, which, i % job->of_u, i / job->of_u, (num){0, 0}, INFINITY);
  for (int64_t i = 0; i < n * job->of_v; i++)
    if (i % job->of_v >= k) put_v(job, which, i % job->of_v, i / job->of_v, (num){0, 0}, INFINITY);
}

// What no vectors are computed of, what the operand's memory has at the end, and the vectors of nothing.
static bool is_open(const svd_job *job, uint32_t result) {
  bool vectors = result == job->form.u || result == job->form.v;
  return result == 0 || (vectors && (!job->form.vectors || !job->a->shape->count));
}

kiln_status kl_ev_svd(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  enum { RESULTS = 5, INFO = 4 };
  const kl_shape *s = operands[0]->shape;
  svd_job job = {.a = operands[0], .m = s->dims[s->rank - 2], .n = s->dims[s->rank - 1]};
  kl_custom_svd(in, &job.form);
  const kl_shape *u = kl_shape_leaf(in->shape, job.form.u), *v = kl_shape_leaf(in->shape, job.form.v);
  job.values = &out[1], job.u = &out[job.form.u], job.v = &out[job.form.v];
  job.k = job.m < job.n ? job.m : job.n;
  if (job.form.vectors) {
    job.of_u = u->dims[u->rank - 1];
    job.of_v = v->dims[v->rank - (job.form.adjoint ? 2 : 1)];
  }
  job.is_complex = kl_is_complex(s->dtype);
  job.unit = num_unit(num_part(s->dtype)) * (job.is_complex ? 4 : 1);
  job.least = num_least(num_part(s->dtype));
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < RESULTS && status == KILN_OK; k++) {
    const kl_shape *leaf = kl_shape_leaf(in->shape, k);
    bool open = is_open(&job, k), intervals = ev->intervals && leaf->count > 0 && !open && k < INFO;
    status = kl_ev_new(ev, leaf, false, intervals, &out[k]);
    if (status == KILN_OK && open && ev->intervals && leaf->count) status = kl_ev_open(ev, &out[k]);
  }
  if (status == KILN_OK && s->count)
    status = kl_ev_run_spectra(ev, s->count / (job.m * job.n), job.m + job.n, &job, decompose);
  for (uint32_t k = 0; k < RESULTS; k++) {
    if (status != KILN_OK)
      kl_ev_free(ev, &out[k]);
    else if (k < INFO && !is_open(&job, k))
      num_close(ev, &out[k]);
  }
  return status;
}
