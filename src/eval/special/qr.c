// QR decompositions by Householder's reflections, also of columns exchanged, and products of reflections, as LAPACK has
// them (geqrf, geqp3, orgqr), batch by batch in long double. Beside each number goes a bound of how far any device's
// may lie from it: that of the steps below, whose sums may have any order, from the operand's own slack on.
#include "eval/special/rough.h"

typedef struct qr_job {
  const kl_evval *a, *taus; // taus: of a product
  kl_evval *out, *out_taus; // out_taus: of a decomposition
  const kl_evval *given;    // of columns exchanged: which come first, and
  kl_evval *numbers;        // which are where
  int64_t m, n, steps;
  rough_type type;
  rough *room; // by worker: m * n, twice, then m and n
} qr_job;

static size_t room_of(const qr_job *job) {
  return (size_t)(2 * job->m * job->n + job->m + job->n + 1);
}

// A bound of the error of a sum of n products beside those of what is summed.
static double gamma_of(const qr_job *job, int64_t n) {
  double nu = (double)n * job->type.unit;
  return nu < 0.5 ? nu / (1 - nu) : INFINITY;
}

// --- reflections --------------------------------------------------------------------------------------------------

// Open where something on the way may overflow: what is made of numbers of this size, of which tau is at most 2, and 1
// the largest of v.
static bool may_overflow(const qr_job *job, double size) {
  return size >= job->type.most / 8;
}

// a [m, n] less tau v (v^H a), from row `from` and column `to` on; v is zero above.
static void apply(const qr_job *job, rough *a, const rough *v, rough tau, int64_t from, int64_t to) {
  double gamma = gamma_of(job, job->m - from + 1);
  for (int64_t j = to; j < job->n; j++) {
    rough w = {{0, 0}, 0};
    double sizes = 0;
    for (int64_t i = from; i < job->m; i++) {
      rough x = rough_conj(v[i]), y = a[i * job->n + j];
      w.v = num_add(w.v, num_mul(x.v, y.v));
      w.e += rough_size(x) * rough_size(y) - num_size(x.v) * num_size(y.v);
      sizes += rough_size(x) * rough_size(y);
    }
    w.e += gamma * sizes + (double)job->m * job->type.least;
    if (may_overflow(job, sizes)) w.e = INFINITY;
    for (int64_t i = from; i < job->m; i++) {
      rough *x = &a[i * job->n + j];
      *x = rough_minus(&job->type, *x, rough_times(&job->type, rough_times(&job->type, tau, v[i]), w));
    }
  }
}

typedef struct length {
  rough all;         // of a column from row k on
  bool rest, unsure; // is there more than a real element k?
} length;

static length span_of(const qr_job *job, const rough *a, int64_t k, int64_t column) {
  long double all = 0, below = 0;
  double error = 0, rest = 0;
  for (int64_t i = k; i < job->m; i++) {
    rough x = a[i * job->n + column];
    long double square = x.v.re * x.v.re + x.v.im * x.v.im;
    all += square;
    error += x.e * x.e;
    if (i == k) square = x.v.im * x.v.im;
    below += square;
    if (i > k || kl_is_complex(job->a->shape->dtype)) rest += x.e * x.e;
  }
  rough r = rough_rounded(&job->type, (num){sqrtl(all), 0}, sqrt(error));
  r.e += gamma_of(job, job->m - k + 8) * rough_size(r) + (double)job->m * job->type.least;
  return (length){r, below != 0, rest > 0 && !(sqrtl(below) > sqrt(rest) * (1 + 0x1p-20))};
}

// Column k, v with it, and what is right of it. False: it is open from here on.
static bool reflect(const qr_job *job, rough *a, rough *v, int64_t k, rough *tau) {
  rough alpha = a[k * job->n + k];
  length x = span_of(job, a, k, k);
  *tau = (rough){{0, 0}, 0};
  if (x.unsure) return false;
  if (!x.rest) return true;
  if ((alpha.e >= fabs((double)alpha.v.re) && alpha.e > 0) || may_overflow(job, rough_size(x.all))) return false;
  rough beta = x.all;
  if (!(alpha.v.re < 0)) beta.v.re = -beta.v.re;
  rough off = rough_minus(&job->type, alpha, beta);
  *tau = rough_over(&job->type, (rough){{-off.v.re, -off.v.im}, off.e}, beta);
  v[k] = (rough){{1, 0}, 0};
  for (int64_t i = k + 1; i < job->m; i++) v[i] = rough_over(&job->type, a[i * job->n + k], off);
  apply(job, a, v, rough_conj(*tau), k, k + 1);
  a[k * job->n + k] = beta;
  for (int64_t i = k + 1; i < job->m; i++) a[i * job->n + k] = v[i];
  return true;
}

// --- columns exchanged ----------------------------------------------------------------------------------------------

static int32_t *numbers_of(const qr_job *job, int64_t which) {
  return (int32_t *)kl_ev_plane(job->numbers, KL_EV_DATA) + which * job->n;
}

static bool is_given(const qr_job *job, int64_t which, int32_t number) {
  int64_t at = which * job->n + number - 1;
  return ((const int32_t *)kl_ev_plane(job->given, KL_EV_DATA))[job->given->splat ? 0 : at] != 0;
}

// Which column comes to place k, and do no errors decide?
static int64_t pick(const qr_job *job, const rough *a, const int32_t *numbers, int64_t which, int64_t k, bool *sure) {
  int64_t best = k;
  rough most = {{-1, 0}, 0};
  double others = -1; // most of what another one may be
  *sure = true;
  for (int64_t j = k; j < job->n; j++)
    if (is_given(job, which, numbers[j])) return j;
  for (int64_t j = k; j < job->n; j++) {
    rough x = span_of(job, a, k, j).all;
    bool more = x.v.re > most.v.re;
    if (isnan(x.v.re)) return k;
    others = fmax(others, rough_size(more ? most : x));
    if (more) most = x, best = j;
  }
  *sure = k + 1 == job->n || others < num_size(most.v) - most.e;
  return best;
}

static void exchange(const qr_job *job, rough *a, int32_t *numbers, int64_t k, int64_t p) {
  int32_t number = numbers[k];
  numbers[k] = numbers[p];
  numbers[p] = number;
  for (int64_t i = 0; i < job->m; i++) {
    rough x = a[i * job->n + k];
    a[i * job->n + k] = a[i * job->n + p];
    a[i * job->n + p] = x;
  }
}

// From place k on nothing is known of where columns are.
static void put_numbers(const qr_job *job, int64_t which, int64_t known) {
  const int32_t *numbers = numbers_of(job, which);
  for (int64_t j = 0; j < job->n; j++) {
    int64_t at = which * job->n + j;
    for (int plane = KL_EV_LO; plane <= KL_EV_HI; plane++)
      ((int32_t *)kl_ev_plane(job->numbers, plane))[at] = numbers[j];
    if (!kl_ev_exact(job->numbers)) ((uint8_t *)kl_ev_plane(job->numbers, KL_EV_ANY))[at] = j >= known;
  }
}

static void open_rest(const qr_job *job, rough *a, int64_t k) {
  for (int64_t i = k; i < job->m; i++)
    for (int64_t j = k; j < job->n; j++) a[i * job->n + j].e = INFINITY;
}

static void decompose(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const qr_job *job = arg;
  rough *a = job->room + worker * room_of(job), *v = a + 2 * job->m * job->n;
  int64_t count = job->m * job->n;
  for (int64_t which = begin; which < end; which++) {
    bool known = true;
    int32_t *numbers = job->given ? numbers_of(job, which) : NULL;
    int64_t open = job->n; // from this column on
    for (int64_t i = 0; i < count; i++) a[i] = rough_get(job->a, which * count + i);
    for (int64_t j = 0; numbers && j < job->n; j++) numbers[j] = (int32_t)(j + 1);
    for (int64_t k = 0; k < job->steps; k++) {
      rough tau = {{0, 0}, INFINITY};
      if (known && numbers) {
        bool sure;
        exchange(job, a, numbers, k, pick(job, a, numbers, which, k, &sure));
        if (!sure && open > k) open = k;
      }
      if (known && !reflect(job, a, v, k, &tau)) {
        known = false;
        tau.e = INFINITY;
        open_rest(job, a, k);
        if (open > k + 1) open = k + 1;
      }
      if (k >= open) tau.e = INFINITY;
      rough_put(job->out_taus, which * job->steps + k, tau);
    }
    if (numbers) put_numbers(job, which, open);
    for (int64_t i = 0; i < count; i++) {
      if (numbers && i % job->n >= open) a[i].e = INFINITY;
      rough_put(job->out, which * count + i, a[i]);
    }
  }
}

static void multiply(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const qr_job *job = arg;
  int64_t count = job->m * job->n;
  rough *a = job->room + worker * room_of(job), *q = a + count, *v = q + count;
  for (int64_t which = begin; which < end; which++) {
    for (int64_t i = 0; i < count; i++) {
      a[i] = rough_get(job->a, which * count + i);
      q[i] = (rough){{i / job->n == i % job->n, 0}, 0};
    }
    for (int64_t k = job->steps - 1; k >= 0; k--) {
      v[k] = (rough){{1, 0}, 0};
      for (int64_t i = k + 1; i < job->m; i++) v[i] = a[i * job->n + k];
      apply(job, q, v, rough_get(job->taus, which * job->steps + k), k, 0);
    }
    for (int64_t i = 0; i < count; i++) rough_put(job->out, which * count + i, q[i]);
  }
}

// Matrices without rows have columns all the same, in their order.
static void number_all(const qr_job *job) {
  for (int64_t i = 0; i < job->numbers->shape->count; i++)
    ((int32_t *)kl_ev_plane(job->numbers, KL_EV_DATA))[i] = (int32_t)(i % job->n + 1);
}

// --- ops ----------------------------------------------------------------------------------------------------------

static qr_job job_of(const kl_evval *a, int64_t steps) {
  const kl_shape *s = a->shape;
  return (qr_job){
      .a = a, .m = s->dims[s->rank - 2], .n = s->dims[s->rank - 1], .steps = steps, .type = rough_type_of(s->dtype)};
}

static kiln_status run(kl_ev *ev, qr_job *job, kl_ev_body *body) {
  int64_t count = job->m * job->n, batches = count ? job->a->shape->count / count : 0;
  if (!batches) return KILN_OK;
  size_t workers = kl_ev_workers(ev, batches, 1), bytes;
  if (__builtin_mul_overflow(workers * room_of(job), sizeof(rough), &bytes)) bytes = SIZE_MAX;
  job->room = bytes == SIZE_MAX ? NULL : kl_try_alloc(ev->cx, bytes);
  if (!job->room) return kl_out_of_memory(ev->cx, bytes, "matrices");
  kl_ev_parallel(ev, batches, 1, body, job);
  kl_free(ev->cx, job->room, bytes);
  return KILN_OK;
}

kiln_status kl_ev_qr(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands, kl_evval *out) {
  const kl_shape *taus = kl_shape_leaf(in->shape, 1);
  qr_job job = job_of(operands[0], taus->dims[taus->rank - 1]);
  job.out = &out[0];
  job.out_taus = &out[1];
  bool intervals = ev->intervals && job.a->shape->count > 0;
  KL_TRY(kl_ev_new(ev, kl_shape_leaf(in->shape, 0), false, intervals, &out[0]));
  kiln_status status = kl_ev_new(ev, taus, false, intervals, &out[1]);
  if (status == KILN_OK) status = run(ev, &job, decompose);
  for (int k = 0; k < 2; k++) {
    if (status == KILN_OK)
      num_close(ev, &out[k]);
    else
      kl_ev_free(ev, &out[k]);
  }
  return status;
}

kiln_status kl_ev_pivoted_qr(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                             kl_evval *out) {
  enum { FACTOR, NUMBERS, TAUS, RESULTS };
  const kl_shape *taus = kl_shape_leaf(in->shape, TAUS);
  qr_job job = job_of(operands[0], taus->dims[taus->rank - 1]);
  job.given = operands[1];
  job.out = &out[FACTOR], job.numbers = &out[NUMBERS], job.out_taus = &out[TAUS];
  bool intervals = ev->intervals && job.a->shape->count > 0, open = ev->intervals && !kl_ev_exact(operands[1]);
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < RESULTS && status == KILN_OK; k++)
    status = kl_ev_new(ev, kl_shape_leaf(in->shape, k), false, intervals, &out[k]);
  if (status == KILN_OK && !job.a->shape->count) number_all(&job);
  if (status == KILN_OK) status = run(ev, &job, decompose);
  for (int k = 0; k < RESULTS && open && status == KILN_OK; k++) status = kl_ev_open(ev, &out[k]);
  for (int k = 0; k < RESULTS; k++) {
    if (status != KILN_OK)
      kl_ev_free(ev, &out[k]);
    else if (k != NUMBERS)
      num_close(ev, &out[k]);
    else if (!open)
      kl_ev_settle(ev, &out[k]);
  }
  return status;
}

kiln_status kl_ev_reflections(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                              kl_evval *out) {
  const kl_shape *taus = operands[1]->shape;
  qr_job job = job_of(operands[0], taus->dims[taus->rank - 1]);
  job.taus = operands[1];
  job.out = out;
  KL_TRY(kl_ev_new(ev, in->shape, false, ev->intervals && in->shape->count > 0, out));
  kiln_status status = run(ev, &job, multiply);
  if (status == KILN_OK)
    num_close(ev, out);
  else
    kl_ev_free(ev, out);
  return status;
}
