// Tridiagonal systems, as LAPACK's gtsv solves them, batch by batch in long double. Beside each number goes a bound of
// how far any device's may lie from it, from step to step; a system is open where bounds decide which row stays.
#include "eval/special/rough.h"

enum { LOWER, DIAGONAL, UPPER, SIDE, INFO, RESULTS };

// A row that stays: three elements; the factor of it that goes from the other one, and whether the two change places.
typedef struct row {
  rough d, u, v, f;
  bool exchanged;
} row;

typedef struct gtsv_job {
  const kl_evval *const *in;
  kl_evval *x, *info; // info: NULL, nobody asks
  int64_t m, n;
  rough_type type;
  row *rows;    // by worker: m
  rough *sides; // by worker: m
} gtsv_job;

// How large LAPACK finds a number.
static double height_of(rough x) {
  return fabs((double)x.v.re) + fabs((double)x.v.im);
}

static rough element(const gtsv_job *job, int which, int64_t i) {
  return rough_get(job->in[which], i);
}

static bool is_tame(const gtsv_job *job, rough x) {
  return rough_size(x) < job->type.most / 8; // so that no step overflows; false of NaN
}

// Rows that stay, and the number of the first pivot that is zero, from 1, or 0. False: errors decide, or a step may
// overflow.
static bool eliminate(const gtsv_job *job, int64_t which, row *rows, int64_t *info) {
  const rough_type *t = &job->type;
  int64_t m = job->m, base = which * m;
  rough zero = {{0, 0}, 0}, d = element(job, DIAGONAL, base), u = m > 1 ? element(job, UPPER, base) : zero;
  bool sure = true;
  *info = 0;
  for (int64_t i = 0; i < m; i++) {
    row *r = &rows[i];
    *r = (row){d, u, zero, zero, false};
    if (i + 1 < m) {
      rough l = element(job, LOWER, base + i + 1), e = element(job, DIAGONAL, base + i + 1);
      rough w = i + 2 < m ? element(job, UPPER, base + i + 1) : zero;
      double own = height_of(d), other = height_of(l), error = 1.5 * (d.e + l.e);
      if (kl_is_complex(job->x->shape->dtype)) error += 2 * t->unit * (own + other); // the sums of their parts
      sure &= is_tame(job, l) && is_tame(job, e) && is_tame(job, w) && (fabs(own - other) > error || error == 0);
      r->exchanged = !(own >= other);
      if (r->exchanged) {
        *r = (row){l, e, w, rough_over(t, d, l), true};
        d = rough_minus(t, u, rough_times(t, r->f, e));
        u = rough_times(t, r->f, (rough){{-w.v.re, -w.v.im}, w.e});
      } else {
        if (d.v.re != 0 || d.v.im != 0) r->f = rough_over(t, l, d);
        d = rough_minus(t, e, rough_times(t, r->f, u));
        u = w;
      }
    }
    bool none = r->d.v.re == 0 && r->d.v.im == 0;
    sure &= is_tame(job, r->d) && is_tame(job, r->u) && (none ? r->d.e == 0 : num_size(r->d.v) > r->d.e);
    if (none && !*info) *info = i + 1;
  }
  return sure;
}

static void solve(const gtsv_job *job, int64_t which, int64_t k, const row *rows, rough *c, bool known) {
  const rough_type *t = &job->type;
  rough zero = {{0, 0}, 0}, next = zero, after = zero;
  for (int64_t i = 0; i < job->m; i++) c[i] = element(job, SIDE, (which * job->m + i) * job->n + k);
  for (int64_t i = 0; i + 1 < job->m; i++) {
    rough other = rows[i].exchanged ? c[i] : c[i + 1];
    if (rows[i].exchanged) c[i] = c[i + 1];
    c[i + 1] = rough_minus(t, other, rough_times(t, rows[i].f, c[i]));
    known &= is_tame(job, c[i]) && is_tame(job, c[i + 1]);
  }
  for (int64_t i = job->m - 1; i >= 0; i--) {
    rough x = rough_minus(t, c[i], rough_times(t, rows[i].u, next));
    x = rough_over(t, rough_minus(t, x, rough_times(t, rows[i].v, after)), rows[i].d);
    known &= is_tame(job, x);
    after = next;
    next = x;
    if (!known) x.e = INFINITY;
    rough_put(job->x, (which * job->m + i) * job->n + k, x);
  }
}

static void put_info(const gtsv_job *job, int64_t which, int64_t info, bool sure) {
  for (int plane = KL_EV_DATA; plane <= KL_EV_HI; plane++)
    ((int32_t *)kl_ev_plane(job->info, plane))[which] = (int32_t)info;
  if (!kl_ev_exact(job->info)) ((uint8_t *)kl_ev_plane(job->info, KL_EV_ANY))[which] = !sure;
}

static void solve_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const gtsv_job *job = arg;
  row *rows = job->rows + (int64_t)worker * job->m;
  rough *sides = job->sides + (int64_t)worker * job->m;
  for (int64_t which = begin; which < end; which++) {
    int64_t info;
    bool sure = eliminate(job, which, rows, &info);
    if (job->info) put_info(job, which, info, sure);
    for (int64_t k = 0; k < job->n; k++) solve(job, which, k, rows, sides, sure && !info);
  }
}

static kiln_status run(kl_ev *ev, gtsv_job *job, int64_t batches) {
  size_t workers = kl_ev_workers(ev, batches, 1), count, bytes;
  if (__builtin_mul_overflow(workers, (size_t)job->m, &count) ||
      __builtin_mul_overflow(count, sizeof(row) + sizeof(rough), &bytes))
    bytes = SIZE_MAX;
  char *memory = bytes == SIZE_MAX ? NULL : kl_try_alloc(ev->cx, bytes);
  if (!memory) return kl_out_of_memory(ev->cx, bytes, "tridiagonal systems");
  job->rows = (row *)memory;
  job->sides = (rough *)(job->rows + count);
  kl_ev_parallel(ev, batches, 1, solve_piece, job);
  kl_free(ev->cx, memory, bytes);
  return KILN_OK;
}

kiln_status kl_ev_gtsv(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                       kl_evval *out) {
  bool all = in->shape->dtype == KILN_TUPLE;
  uint32_t results = all ? RESULTS : 1;
  const kl_shape *s = operands[SIDE]->shape;
  gtsv_job job = {.in = operands,
                  .x = &out[all ? SIDE : 0],
                  .info = all ? &out[INFO] : NULL,
                  .m = s->dims[s->rank - 2],
                  .n = s->dims[s->rank - 1],
                  .type = rough_type_of(s->dtype)};
  int64_t batches = 1;
  for (uint32_t d = 0; d + 2 < s->rank; d++) batches *= s->dims[d];
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < results && status == KILN_OK; k++) {
    const kl_shape *leaf = kl_shape_leaf(in->shape, k);
    bool diagonal = all && k < SIDE, intervals = ev->intervals && leaf->count > 0;
    status = kl_ev_new(ev, leaf, false, intervals && !diagonal, &out[k]);
    if (status == KILN_OK && diagonal && intervals) status = kl_ev_open(ev, &out[k]);
  }
  if (status == KILN_OK && batches && job.m) status = run(ev, &job, batches);
  for (uint32_t k = 0; k < results; k++)
    if (status != KILN_OK) kl_ev_free(ev, &out[k]);
  if (status == KILN_OK) num_close(ev, job.x);
  if (status == KILN_OK && job.info) kl_ev_settle(ev, job.info);
  return status;
}
