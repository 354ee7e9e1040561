// Eigenvalues and eigenvectors of Hermitian matrices, batch by batch in long double, with the radii of eval.h.
#include "eval/special/spectrum.h"

typedef struct eigh_job {
  const kl_evval *a;
  kl_evval *vectors, *values;
  int64_t n;
  bool lower, is_complex;
  double unit, least;
} eigh_job;

typedef struct loaded {
  bool finite;
  double size, slack; // in the Frobenius norm
} loaded;

static loaded load(const eigh_job *job, int64_t which, kl_ev_spectra *r) {
  int64_t n = job->n;
  loaded l = {.finite = true};
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) {
      int64_t at = which * n * n + (job->lower ? i * n + j : j * n + i);
      num x = num_get(job->a->shape->dtype, kl_ev_plane(job->a, KL_EV_DATA), job->a->splat ? 0 : at);
      double slack = num_slack(job->a, at), size;
      if (i == j) x.im = 0;
      if (!job->lower) x = num_conj(x);
      r->a[i * n + j] = x;
      r->a[j * n + i] = num_conj(x);
      size = num_size(x);
      l.finite &= isfinite(size);
      l.size = hypot(l.size, i == j ? size : 1.4143 * size);
      l.slack = hypot(l.slack, i == j ? slack : 1.4143 * slack);
    }
  return l;
}

// All that is known, or not, of a matrix.
static void put_all(const eigh_job *job, int64_t which, long double v, double radius) {
  int64_t n = job->n;
  for (int64_t i = 0; i < n; i++) num_put(job->values, which * n + i, (num){v, 0}, radius);
  for (int64_t i = 0; i < n * n; i++)
    num_put(job->vectors, which * n * n + i, (num){v, job->is_complex ? v : 0}, radius);
}

static void put_vector(const eigh_job *job, int64_t which, int64_t k, const num *v, double radius) {
  int64_t n = job->n, lead = kl_ev_leading(n, v, 1, radius);
  bool open = lead < 0;
  if (open) lead = kl_ev_leading(n, v, 1, 0);
  num phase = kl_ev_phase(v[lead]);
  radius = open ? INFINITY : kl_ev_turned_radius(radius, v[lead], job->is_complex);
  for (int64_t i = 0; i < n; i++) num_put(job->vectors, (which * n + i) * n + k, num_mul(v[i], phase), radius);
}

static void decompose(const void *arg, int64_t which, kl_ev_spectra *r) {
  const eigh_job *job = arg;
  int64_t n = job->n;
  loaded l = load(job, which, r);
  if (!isfinite(l.slack)) return put_all(job, which, 0, INFINITY);
  if (!l.finite) return put_all(job, which, NAN, 0);
  if (!kl_ev_spectrum(n, r)) return put_all(job, which, 0, INFINITY);
  double gamma = kl_ev_spectral_gamma(job->unit, n);
  double error = kl_ev_spectral_error(gamma, job->least, n, l.size, l.slack);
  for (int64_t k = 0; k < n; k++) {
    double below = k ? (double)(r->w[k] - r->w[k - 1]) : INFINITY;
    double above = k + 1 < n ? (double)(r->w[k + 1] - r->w[k]) : INFINITY;
    num_put(job->values, which * n + k, (num){r->w[k], 0}, error);
    put_vector(job, which, k, r->z + k * n, kl_ev_vector_radius(error, fmin(below, above)) + gamma);
  }
}

kiln_status kl_ev_eigh(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                       kl_evval *out) {
  const kl_shape *s = kl_shape_leaf(in->shape, 0);
  kl_dtype part = num_part(s->dtype);
  eigh_job job = {.a = operands[0],
                  .vectors = &out[0],
                  .values = &out[1],
                  .n = s->dims[s->rank - 1],
                  .lower = in->more->lower,
                  .is_complex = kl_is_complex(s->dtype),
                  .unit = num_unit(part) * (kl_is_complex(s->dtype) ? 4 : 1),
                  .least = num_least(part)};
  bool intervals = ev->intervals && s->count > 0;
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < 3 && status == KILN_OK; k++)
    status = kl_ev_new(ev, kl_shape_leaf(in->shape, k), false, intervals && k < 2, &out[k]);
  if (status == KILN_OK && s->count) status = kl_ev_run_spectra(ev, s->count / (job.n * job.n), job.n, &job, decompose);
  for (int k = 0; k < 3; k++) {
    if (status != KILN_OK)
      kl_ev_free(ev, &out[k]);
    else if (k < 2)
      num_close(ev, &out[k]);
  }
  return status;
}
