// reduce-window: combiners fold each window, by its elements or by what it shares with others; other reducers run from
// left to right in lanes, one per window.
#include "eval/fold/sequence.h"
#include "eval/fold/sliding.h"

// --- combiners ----------------------------------------------------------------------------------------------------

typedef struct fold_job {
  const kl_sliding *s;
  kl_op op;
  bool intervals;
  int64_t stands; // the data of windows that see at most so many elements
  const kl_evval *operand, *init, *out;
  const kl_sequence *sequence;
  uint32_t dim; // of a scan
  bool reverse;
} fold_job;

static void fold_windows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const fold_job *job = arg;
  kl_iv_in init = kl_ev_in(job->init, 0);
  kl_iv_out out = kl_ev_out(job->out, 0);
  kl_picked p;
  for (int64_t i = begin; i < end; i++) {
    int64_t place[KILN_MAX_RANK], n;
    kl_sliding_walk w;
    kl_fold f;
    kl_sliding_places(job->s, i, 1, place);
    kl_sliding_walk_start(&w, job->s, place);
    kl_fold_start(&f, job->op, job->operand->shape->dtype, job->intervals);
    kl_fold_add(&f, 1, &init);
    while ((n = kl_sliding_walk_next(&w, KL_EV_CHUNK, p.at)) > 0) {
      kl_iv_in x = kl_pick(&p, job->operand, n, job->intervals);
      kl_fold_add(&f, n, &x);
    }
    kl_window_store(&f, job->stands, &out, i);
  }
}

// What sees more elements is summed by what windows share, which has no order.
enum { MOST_IN_ORDER = 256 };

// --- in order -----------------------------------------------------------------------------------------------------

static int64_t seen(const kl_sliding *s, const int64_t *place) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s->rank; d++) n *= s->axis[d].sight[place[d]].count;
  return n;
}

static int64_t most_seen(const kl_sliding *s) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s->rank; d++) n *= s->axis[d].most;
  return n;
}

static void join_windows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const fold_job *job = arg;
  const kl_sequence *q = job->sequence;
  void *to = kl_ev_plane(job->out, KL_EV_DATA);
  const void *from = kl_ev_plane(job->operand, KL_EV_DATA);
  _Alignas(16) char acc[KL_SEQUENCE_BYTES], x[KL_SEQUENCE_BYTES];
  for (int64_t i = begin; i < end; i++) {
    int64_t place[KILN_MAX_RANK], at[KL_EV_CHUNK], n;
    kl_sliding_walk w;
    kl_sliding_places(job->s, i, 1, place);
    if (seen(job->s, place) > job->stands) continue;
    kl_sliding_walk_start(&w, job->s, place);
    kl_sequence_load(q, kl_ev_plane(job->init, KL_EV_DATA), 0, acc);
    while ((n = kl_sliding_walk_next(&w, KL_EV_CHUNK, at)) > 0)
      for (int64_t k = 0; k < n; k++) {
        kl_sequence_load(q, from, job->operand->splat ? 0 : at[k], x);
        kl_sequence_join(q, acc, x, acc);
      }
    kl_sequence_store(q, acc, to, i);
  }
}

static void scan_lines(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const fold_job *job = arg;
  const kl_shape *s = job->operand->shape;
  char *to = kl_ev_plane(job->out, KL_EV_DATA);
  const char *from = kl_ev_plane(job->operand, KL_EV_DATA);
  size_t size = kl_ev_size(s->dtype);
  int64_t n = s->dims[job->dim], inner = 1, step = job->reverse ? -1 : 1;
  _Alignas(16) char init[KL_SEQUENCE_BYTES];
  kl_sequence_load(job->sequence, kl_ev_plane(job->init, KL_EV_DATA), 0, init);
  for (uint32_t d = job->dim + 1; d < s->rank; d++) inner *= s->dims[d];
  for (int64_t i = begin; i < end; i++) {
    int64_t first = i / inner * inner * n + i % inner + (job->reverse ? (n - 1) * inner : 0);
    kl_sequence_line l = {.length = n, .in_stride = step * inner, .out_stride = step * inner};
    l.in = job->operand->splat ? from : from + (size_t)first * size;
    if (job->operand->splat) l.in_stride = 0;
    l.out = to + (size_t)first * size;
    kl_sequence_scan(job->sequence, &l, init);
  }
}

// Does the window go over all elements of a dimension up to a place, or from it on? More than 16 of them are a scan.
static bool is_scan(const kl_instr *in, const kl_shape *s, uint32_t *dim, bool *reverse) {
  bool found = false;
  for (uint32_t d = 0; d < s->rank; d++) {
    const kl_window_dim *w = &in->more->window[d];
    bool plain = w->stride == 1 && w->base_dilation == 1;
    if (plain && w->size == 1 && w->low == 0 && w->high == 0) continue;
    bool up = w->low == w->size - 1 && w->high == 0, down = w->low == 0 && w->high == w->size - 1;
    if (found || !plain || w->window_dilation != 1 || w->size != s->dims[d] || w->size <= 16 || !(up || down))
      return false;
    found = true;
    *dim = d;
    *reverse = down;
  }
  return found;
}

static void join_in_order(kl_ev *ev, bool scan, fold_job *job) {
  const kl_shape *s = job->operand->shape;
  int64_t n = scan ? s->dims[job->dim] : job->s->taps, grain = n < 1 << 10 ? (1 << 10) / (n + 1) + 1 : 1;
  kl_ev_parallel(ev, scan ? s->count / n : job->out->shape->count, grain, scan ? scan_lines : join_windows, job);
}

static kiln_status fold(kl_ev *ev, const kl_instr *in, const kl_sliding *s, kl_op op, const kl_evval *operand,
                        const kl_evval *init, kl_evval *out) {
  kl_sequence sequence;
  bool ordered = kl_fold_rounds(op, operand->shape->dtype) && s->result->count &&
                 kl_sequence_of(&ev->m->comp[in->called[0]], &sequence);
  bool inexact = !kl_ev_exact(operand) || !kl_ev_exact(init);
  bool intervals = ev->intervals && (inexact || kl_fold_rounds(op, operand->shape->dtype));
  KL_TRY(kl_ev_new(ev, s->result, false, intervals, out));
  int64_t grain = s->taps < 1 << 12 ? (1 << 12) / (s->taps + 1) + 1 : 1;
  fold_job job = {.s = s, .op = op, .intervals = intervals, .operand = operand, .init = init, .out = out};
  bool scan = ordered && is_scan(in, operand->shape, &job.dim, &job.reverse);
  job.stands = scan ? most_seen(s) : ordered ? MOST_IN_ORDER : -1;
  job.sequence = &sequence;
  if (ordered) join_in_order(ev, scan, &job);
  if (ordered && !intervals && most_seen(s) <= job.stands) return KILN_OK;
  if (kl_slides(ev, s))
    KL_TRY(kl_slide(ev, s, op, intervals, job.stands, operand, init, out));
  else
    kl_ev_parallel(ev, s->result->count, grain, fold_windows, &job);
  if (intervals) kl_ev_settle(ev, out);
  return KILN_OK;
}

// --- any reducer --------------------------------------------------------------------------------------------------

typedef struct lane_job {
  const kl_sliding *s;
  uint32_t n;
  const kl_evval *const *operands, *const *inits;
  kl_evval *out;
  bool intervals;
  kl_ev_lanes *lanes;
  kl_picked *picked; // one per operand and worker
  int64_t *place;    // of KL_EV_CHUNK windows per worker
  _Atomic int status;
} lane_job;

static kiln_status combine_tap(const lane_job *job, uint32_t worker, const int64_t *place, const int64_t *tap,
                               int64_t n) {
  kl_picked *p = &job->picked[worker * job->n];
  kl_ev_lanes *w = &job->lanes[worker];
  uint8_t where[KL_EV_CHUNK];
  bool some = false, all = true;
  for (int64_t i = 0; i < n; i++) {
    p->at[i] = kl_sliding_element(job->s, place + i * job->s->rank, tap);
    some |= where[i] = p->at[i] >= 0;
    all &= where[i];
  }
  if (!some) return KILN_OK;
  for (uint32_t k = 0; k < job->n; k++) {
    if (k) memcpy(p[k].at, p->at, sizeof *p->at * (size_t)n);
    kl_lanes_point(w, k, kl_pick(&p[k], job->operands[k], n, job->intervals));
  }
  return kl_lanes_combine(w, n, all ? NULL : where);
}

static void fold_lanes(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  lane_job *job = arg;
  kl_ev_lanes *w = &job->lanes[worker];
  int64_t n = end - begin, tap[KILN_MAX_RANK] = {0}, *place = job->place + worker * KL_EV_CHUNK * job->s->rank;
  kl_sliding_places(job->s, begin, n, place);
  for (uint32_t k = 0; k < job->n; k++) {
    kl_iv_in init = kl_ev_in(job->inits[k], 0);
    kl_lanes_fill(w, k, n, &init);
  }
  kiln_status status = KILN_OK;
  for (int64_t t = 0; t < job->s->taps && status == KILN_OK; t++, kl_sliding_next_tap(job->s, tap))
    status = combine_tap(job, worker, place, tap, n);
  if (status != KILN_OK) job->status = (int)status;
  for (uint32_t k = 0; k < job->n; k++) {
    kl_iv_out out = kl_ev_out(&job->out[k], begin);
    kl_lanes_take(w, k, n, &out);
  }
}

static kiln_status run_lanes(kl_ev *ev, const kl_ev_program *p, lane_job *job) {
  int64_t count = job->s->result->count;
  uint32_t workers = kl_ev_workers(ev, count, KL_EV_CHUNK);
  size_t picked_bytes = sizeof(kl_picked) * job->n * workers;
  size_t place_bytes = sizeof(int64_t) * (KL_EV_CHUNK * workers * (job->s->rank + 1u));
  KL_TRY(kl_lanes_new(ev, p, job->n, job->operands, job->intervals, workers, count, &job->lanes));
  job->picked = kl_try_alloc(ev->cx, picked_bytes);
  job->place = kl_try_alloc(ev->cx, place_bytes);
  bool ok = job->picked && job->place;
  if (ok) kl_ev_parallel(ev, count, KL_EV_CHUNK, fold_lanes, job);
  kl_free(ev->cx, job->place, place_bytes);
  kl_free(ev->cx, job->picked, picked_bytes);
  kl_lanes_free(ev, job->lanes, workers);
  return ok ? (kiln_status)job->status : kl_out_of_memory(ev->cx, picked_bytes, "a window");
}

static kiln_status reduce_any(kl_ev *ev, const kl_instr *in, const kl_sliding *s, const kl_ev_program *p,
                              const kl_evval *const *operands, kl_evval *out) {
  uint32_t n = in->noperands / 2;
  lane_job job = {.s = s, .n = n, .operands = operands, .inits = operands + n, .out = out};
  job.intervals = kl_lanes_want_intervals(ev, p, 2 * n, operands);
  for (uint32_t k = 0; k < n; k++) KL_TRY(kl_ev_new(ev, kl_shape_leaf(in->shape, k), false, job.intervals, &out[k]));
  KL_TRY(run_lanes(ev, p, &job));
  for (uint32_t k = 0; k < n; k++) kl_ev_settle(ev, &out[k]);
  return KILN_OK;
}

static kiln_status reduce_window(kl_ev *ev, const kl_instr *in, const kl_ev_program *p, const kl_evval *const *operands,
                                 kl_evval *out) {
  uint32_t n = in->noperands / 2;
  bool general = false, reverse;
  uint32_t dim;
  kl_op op;
  for (uint32_t k = 0; k < n; k++)
    general |= !kl_ev_program_combiner(p, k, &op) || !kl_fold_knows(op, operands[k]->shape->dtype);
  bool scans = is_scan(in, operands[0]->shape, &dim, &reverse) && kl_is_elementwise(&ev->m->comp[in->called[0]]);
  if (scans && general) return kl_cumulate(ev, in, p, dim, reverse, operands, out);
  for (uint32_t k = 0; k < n; k++) {
    kl_sliding s;
    KL_TRY(kl_sliding_new(ev, in, operands[k]->shape, kl_shape_leaf(in->shape, k), &s));
    kl_ev_program_combiner(p, k, &op);
    kiln_status status = general ? reduce_any(ev, in, &s, p, operands, out)
                                 : fold(ev, in, &s, op, operands[k], operands[n + k], &out[k]);
    kl_sliding_free(ev, &s);
    if (status != KILN_OK || general) return status;
  }
  return KILN_OK;
}

static kiln_status reduce_window_typed(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                       kl_evval *out) {
  kl_ev_program *p;
  if (in->noperands < 2) return kl_ev_refuse(ev, in, "no operands");
  KL_TRY(kl_ev_program_new(ev, in->called[0], &p));
  kiln_status status = reduce_window(ev, in, p, operands, out);
  kl_ev_program_free(ev, p);
  for (uint32_t k = 0; k < in->noperands / 2 && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  return status;
}

kiln_status kl_ev_reduce_window(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                kl_evval *out) {
  return kl_ev_widened(ev, c, in, operands, out, reduce_window_typed);
}
