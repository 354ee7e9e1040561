// reduce-window and select-and-scatter. Places of the window in padding, or in the holes of a dilated operand, count
// for nothing.
#include "eval/lanes.h"
#include "eval/fold/sum.h"

typedef struct sliding {
  uint32_t rank;
  const kl_window_dim *dim;
  const kl_shape *operand, *result; // the result's elements are windows
  int64_t stride[KILN_MAX_RANK];
  int64_t taps; // of one window
} sliding;

static kiln_status make_sliding(kl_ev *ev, const kl_instr *in, const kl_shape *operand, const kl_shape *result,
                                sliding *s) {
  *s = (sliding){.rank = operand->rank, .dim = in->more->window, .operand = operand, .result = result, .taps = 1};
  if (in->more->nwindow != operand->rank) return kl_ev_refuse(ev, in, "the window has another rank than the operand");
  kl_ev_strides(operand, s->stride);
  for (uint32_t d = 0; d < s->rank; d++)
    if (__builtin_mul_overflow(s->taps, s->dim[d].size, &s->taps))
      return kl_ev_refuse(ev, in, "a window of too many elements");
  return KILN_OK;
}

// Where the windows from `first` on begin, per dimension.
static void find_places(const sliding *s, int64_t first, int64_t n, int64_t *place) {
  for (int64_t i = 0; i < n; i++) {
    int64_t rest = first + i;
    for (uint32_t d = s->rank; d-- > 0;) {
      place[i * s->rank + d] = rest % s->result->dims[d];
      rest /= s->result->dims[d];
    }
  }
}

// The element that a tap of the window at `place` sees; -1 for none.
static int64_t element_at(const sliding *s, const int64_t *place, const int64_t *tap) {
  int64_t at = 0;
  for (uint32_t d = 0; d < s->rank; d++) {
    const kl_window_dim *w = &s->dim[d];
    __int128 x = (__int128)place[d] * w->stride + (__int128)tap[d] * w->window_dilation - w->low;
    if (x < 0 || (w->base_dilation > 1 && x % w->base_dilation)) return -1;
    if (w->base_dilation > 1) x /= w->base_dilation;
    if (x >= s->operand->dims[d]) return -1;
    at += (int64_t)x * s->stride[d];
  }
  return at;
}

static void next_tap(const sliding *s, int64_t *tap) {
  for (uint32_t d = s->rank; d-- > 0;) {
    if (++tap[d] < s->dim[d].size) return;
    tap[d] = 0;
  }
}

// Elements of a value one by one, into planes as wide as the output's.
static void pick(const kl_evval *v, int64_t n, const int64_t *at, bool intervals, const kl_iv_out *out) {
  size_t size = kl_ev_size(v->shape->dtype);
  bool single = kl_ev_single(v);
  const char *from[3] = {kl_ev_plane(v, KL_EV_DATA), kl_ev_plane(v, KL_EV_LO), kl_ev_plane(v, KL_EV_HI)};
  char *to[3] = {out->data, out->lo, out->hi};
  for (int p = 0; p < (intervals ? 3 : 1); p++)
    for (int64_t i = 0; i < n; i++) {
      int64_t k = single || at[i] < 0 ? 0 : at[i];
      memcpy(to[p] + (size_t)i * size, from[p] + (size_t)k * size, size);
    }
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  for (int64_t i = 0; i < n && intervals; i++) out->any[i] = any ? any[single || at[i] < 0 ? 0 : at[i]] : 0;
}

typedef struct picked {
  int64_t at[KL_EV_CHUNK];
  _Alignas(16) char plane[3][16 * KL_EV_CHUNK];
  uint8_t any[KL_EV_CHUNK];
} picked;

static kl_iv_out out_of(picked *p) {
  return (kl_iv_out){p->plane[0], p->plane[1], p->plane[2], p->any};
}
static kl_iv_in in_of(const picked *p) {
  return (kl_iv_in){p->plane[0], p->plane[1], p->plane[2], p->any};
}

// --- reduce-window by combiners -----------------------------------------------------------------------------------

typedef struct fold_job {
  const sliding *s;
  kl_op op;
  bool intervals;
  const kl_evval *operand, *init, *out;
} fold_job;

static void add_picked(const fold_job *job, kl_fold *f, picked *p, int64_t n) {
  kl_iv_out to = out_of(p);
  kl_iv_in from = in_of(p);
  pick(job->operand, n, p->at, job->intervals, &to);
  if (n) kl_fold_add(f, n, &from);
}

static void fold_windows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const fold_job *job = arg;
  const sliding *s = job->s;
  kl_iv_in init = kl_ev_in(job->init, 0);
  kl_iv_out out = kl_ev_out(job->out, 0);
  picked p;
  for (int64_t i = begin; i < end; i++) {
    int64_t place[KILN_MAX_RANK], tap[KILN_MAX_RANK] = {0}, n = 0;
    kl_fold f;
    find_places(s, i, 1, place);
    kl_fold_start(&f, job->op, job->operand->shape->dtype, job->intervals);
    kl_fold_add(&f, 1, &init);
    for (int64_t k = 0; k < s->taps; k++, next_tap(s, tap)) {
      p.at[n] = element_at(s, place, tap);
      n += p.at[n] >= 0;
      if (n == KL_EV_CHUNK) {
        add_picked(job, &f, &p, n);
        n = 0;
      }
    }
    add_picked(job, &f, &p, n);
    kl_fold_store(&f, &out, i);
  }
}

static kiln_status fold(kl_ev *ev, const sliding *s, kl_op op, const kl_evval *operand, const kl_evval *init,
                        kl_evval *out) {
  bool inexact = !kl_ev_exact(operand) || !kl_ev_exact(init);
  bool intervals = ev->intervals && (inexact || kl_fold_rounds(op, operand->shape->dtype));
  KL_TRY(kl_ev_new(ev, s->result, false, intervals, out));
  int64_t grain = s->taps < 1 << 12 ? (1 << 12) / (s->taps + 1) + 1 : 1;
  kl_ev_parallel(ev, s->result->count, grain, fold_windows, &(fold_job){s, op, intervals, operand, init, out});
  if (intervals) kl_ev_settle(ev, out);
  return KILN_OK;
}

// --- any reducer --------------------------------------------------------------------------------------------------

typedef struct lane_job {
  const sliding *s;
  uint32_t n;
  const kl_evval *const *operands, *const *inits;
  kl_evval *out;
  bool intervals;
  kl_ev_lanes *lanes;
  picked *picked; // n per worker
  int64_t *place; // of KL_EV_CHUNK windows per worker
  _Atomic int status;
} lane_job;

static kiln_status combine_tap(const lane_job *job, uint32_t worker, const int64_t *place, const int64_t *tap,
                               int64_t n) {
  picked *p = &job->picked[worker * job->n];
  kl_ev_lanes *w = &job->lanes[worker];
  uint8_t where[KL_EV_CHUNK];
  bool some = false;
  for (int64_t i = 0; i < n; i++) {
    p->at[i] = element_at(job->s, place + i * job->s->rank, tap);
    some |= where[i] = p->at[i] >= 0;
  }
  if (!some) return KILN_OK;
  for (uint32_t k = 0; k < job->n; k++) {
    kl_iv_out to = out_of(&p[k]);
    pick(job->operands[k], n, p->at, job->intervals, &to);
    kl_lanes_point(w, k, in_of(&p[k]));
  }
  return kl_lanes_combine(w, n, where);
}

static void fold_lanes(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  lane_job *job = arg;
  kl_ev_lanes *w = &job->lanes[worker];
  int64_t n = end - begin, tap[KILN_MAX_RANK] = {0}, *place = job->place + worker * KL_EV_CHUNK * job->s->rank;
  find_places(job->s, begin, n, place);
  for (uint32_t k = 0; k < job->n; k++) {
    kl_iv_in init = kl_ev_in(job->inits[k], 0);
    kl_lanes_fill(w, k, n, &init);
  }
  kiln_status status = KILN_OK;
  for (int64_t t = 0; t < job->s->taps && status == KILN_OK; t++, next_tap(job->s, tap))
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
  size_t picked_bytes = sizeof(picked) * job->n * workers;
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

static kiln_status reduce_any(kl_ev *ev, const kl_instr *in, const sliding *s, const kl_ev_program *p,
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
  bool general = false;
  kl_op op;
  for (uint32_t k = 0; k < n; k++)
    general |= !kl_ev_program_combiner(p, k, &op) || !kl_fold_knows(op, operands[k]->shape->dtype);
  for (uint32_t k = 0; k < n; k++) {
    sliding s;
    KL_TRY(make_sliding(ev, in, operands[k]->shape, kl_shape_leaf(in->shape, k), &s));
    if (general) return reduce_any(ev, in, &s, p, operands, out);
    kl_ev_program_combiner(p, k, &op);
    KL_TRY(fold(ev, &s, op, operands[k], operands[n + k], &out[k]));
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

// --- select-and-scatter -------------------------------------------------------------------------------------------

// Each element of `source` goes to the element that its window selects.
typedef struct selection {
  const sliding *s;
  const kl_ev_program *select;
  const kl_evval *operand;
  bool intervals;
  int64_t *target;    // by element of the source; -1: nowhere
  uint8_t *uncertain; // likewise
  kl_ev_regs **regs;
  int64_t *place;
  _Atomic int status;
} selection;

typedef struct choice {
  picked best, next;
  _Alignas(16) uint8_t keep[KL_EV_CHUNK], lo[KL_EV_CHUNK], hi[KL_EV_CHUNK], any[KL_EV_CHUNK];
} choice;

static void take_next(const selection *job, choice *c, int64_t i) {
  size_t size = kl_ev_size(job->operand->shape->dtype), at = (size_t)i * size;
  c->best.at[i] = c->next.at[i];
  for (int p = 0; p < 3; p++) memcpy(c->best.plane[p] + at, c->next.plane[p] + at, size);
  c->best.any[i] = c->next.any[i];
}

// Does `select` keep what was selected so far? Where it may do otherwise, the window is uncertain.
static kiln_status ask(const selection *job, kl_ev_regs *regs, choice *c, int64_t n, uint8_t *uncertain) {
  if (!job->intervals)
    return kl_ev_program_run(job->select, regs, n, (const void *const[2]){c->best.plane[0], c->next.plane[0]},
                             (void *const[1]){c->keep});
  kl_iv_in in[2] = {in_of(&c->best), in_of(&c->next)};
  KL_TRY(kl_ev_program_run_iv(job->select, regs, n, in,
                              &(kl_iv_out){(char *)c->keep, (char *)c->lo, (char *)c->hi, c->any}));
  for (int64_t i = 0; i < n; i++)
    uncertain[i] |= c->best.at[i] >= 0 && c->next.at[i] >= 0 && (c->lo[i] != c->hi[i] || c->any[i]);
  return KILN_OK;
}

static void select_windows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  selection *job = arg;
  int64_t n = end - begin, tap[KILN_MAX_RANK] = {0}, *place = job->place + worker * KL_EV_CHUNK * job->s->rank;
  choice c;
  memset(&c.best, 0, sizeof c.best);
  for (int64_t i = 0; i < n; i++) c.best.at[i] = -1;
  find_places(job->s, begin, n, place);
  kiln_status status = KILN_OK;
  for (int64_t t = 0; t < job->s->taps && status == KILN_OK; t++, next_tap(job->s, tap)) {
    for (int64_t i = 0; i < n; i++) c.next.at[i] = element_at(job->s, place + i * job->s->rank, tap);
    kl_iv_out to = out_of(&c.next);
    pick(job->operand, n, c.next.at, job->intervals, &to);
    status = ask(job, job->regs[worker], &c, n, job->uncertain + begin);
    for (int64_t i = 0; i < n && status == KILN_OK; i++)
      if (c.next.at[i] >= 0 && (c.best.at[i] < 0 || !c.keep[i])) take_next(job, &c, i);
  }
  if (status != KILN_OK) job->status = (int)status;
  memcpy(job->target + begin, c.best.at, (size_t)n * sizeof(int64_t));
}

static kiln_status select_all(kl_ev *ev, selection *job) {
  int64_t count = job->s->result->count;
  uint32_t workers = kl_ev_workers(ev, count, KL_EV_CHUNK);
  size_t place_bytes = sizeof(int64_t) * (KL_EV_CHUNK * workers * (job->s->rank + 1u));
  job->place = kl_try_alloc(ev->cx, place_bytes);
  job->regs = kl_alloc(ev->cx, sizeof *job->regs * workers);
  bool ok = job->place != NULL;
  for (uint32_t k = 0; k < workers && ok; k++)
    ok = (job->regs[k] = kl_ev_regs_new(ev, job->select, KL_EV_CHUNK)) != NULL;
  if (ok) kl_ev_parallel(ev, count, KL_EV_CHUNK, select_windows, job);
  for (uint32_t k = 0; k < workers; k++) kl_ev_regs_free(ev, job->regs[k]);
  kl_free(ev->cx, job->regs, sizeof *job->regs * workers);
  kl_free(ev->cx, job->place, place_bytes);
  return ok ? (kiln_status)job->status : kl_out_of_memory(ev->cx, place_bytes, "a selection");
}

// Everything that an uncertain window sees is open.
static void open_uncertain(const selection *job, kl_evval *out) {
  kl_iv_out to = kl_ev_out(out, 0);
  for (int64_t i = 0; i < job->s->result->count && to.lo; i++) {
    int64_t place[KILN_MAX_RANK], tap[KILN_MAX_RANK] = {0};
    if (!job->uncertain[i]) continue;
    find_places(job->s, i, 1, place);
    for (int64_t t = 0; t < job->s->taps; t++, next_tap(job->s, tap)) {
      int64_t at = element_at(job->s, place, tap);
      if (at >= 0) kl_ev_open_at(out->shape->dtype, &to, at);
    }
  }
}

typedef struct scatter_job {
  kl_op op;
  bool intervals;
  const kl_evval *source, *init, *out;
  const int64_t *first, *order; // of result i: order[first[i]] up to order[first[i + 1]] are its sources
} scatter_job;

static void fold_sources(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const scatter_job *job = arg;
  kl_iv_in init = kl_ev_in(job->init, 0);
  kl_iv_out out = kl_ev_out(job->out, 0);
  picked p;
  for (int64_t i = begin; i < end; i++) {
    kl_fold f;
    kl_fold_start(&f, job->op, job->out->shape->dtype, job->intervals);
    kl_fold_add(&f, 1, &init);
    for (int64_t k = job->first[i], n; k < job->first[i + 1]; k += n) {
      n = job->first[i + 1] - k < KL_EV_CHUNK ? job->first[i + 1] - k : KL_EV_CHUNK;
      kl_iv_out to = out_of(&p);
      kl_iv_in from = in_of(&p);
      pick(job->source, n, job->order + k, job->intervals, &to);
      kl_fold_add(&f, n, &from);
    }
    kl_fold_store(&f, &out, i);
  }
}

// A counting sort by target keeps the order of the sources.
static kiln_status scatter_folds(kl_ev *ev, const selection *sel, scatter_job *job) {
  int64_t results = job->out->shape->count, sources = sel->s->result->count, bytes;
  bool fits = !__builtin_mul_overflow(results + sources + 2, (int64_t)sizeof(int64_t), &bytes);
  int64_t *first = fits ? kl_try_alloc(ev->cx, (size_t)bytes) : NULL, *order = first + results + 2;
  if (!first) return kl_out_of_memory(ev->cx, SIZE_MAX, "a scatter");
  for (int64_t i = 0; i < sources; i++)
    if (sel->target[i] >= 0) first[sel->target[i] + 2]++;
  for (int64_t i = 0; i < results; i++) first[i + 2] += first[i + 1];
  for (int64_t i = 0; i < sources; i++)
    if (sel->target[i] >= 0) order[first[sel->target[i] + 1]++] = i;
  job->first = first;
  job->order = order;
  kl_ev_parallel(ev, results, 1 << 10, fold_sources, job);
  kl_free(ev->cx, first, (size_t)bytes);
  return KILN_OK;
}

static void fill_result(const kl_evval *init, const kl_evval *out) {
  kl_iv_in in = kl_ev_in(init, 0);
  kl_iv_out to = kl_ev_out(out, 0);
  for (int64_t i = 0; i < out->shape->count; i++) kl_iv_copy(out->shape->dtype, &in, &to, i, 1);
}

// Any combination, in the order of the source: result = scatter(result, source).
static kiln_status scatter_any(kl_ev *ev, const selection *sel, const kl_ev_program *p, const scatter_job *job) {
  kl_ev_lanes *w;
  const kl_evval *value = job->out;
  fill_result(job->init, job->out);
  KL_TRY(kl_lanes_new(ev, p, 1, &value, job->intervals, 1, 1, &w));
  kiln_status status = KILN_OK;
  for (int64_t i = 0; i < sel->s->result->count && status == KILN_OK; i++) {
    if (sel->target[i] < 0) continue;
    kl_iv_in old = kl_ev_in(job->out, sel->target[i]);
    kl_iv_out to = kl_ev_out(job->out, sel->target[i]);
    kl_lanes_fill(w, 0, 1, &old);
    kl_lanes_point(w, 0, kl_ev_in(job->source, kl_ev_single(job->source) ? 0 : i));
    status = kl_lanes_combine(w, 1, NULL);
    kl_lanes_take(w, 0, 1, &to);
  }
  kl_lanes_free(ev, w, 1);
  return status;
}

static kiln_status scatter(kl_ev *ev, const selection *sel, const kl_ev_program *p, const kl_evval *const *operands,
                           kl_evval *out) {
  kl_dtype t = out->shape->dtype;
  scatter_job job = {.source = operands[1], .init = operands[2], .out = out, .intervals = !kl_ev_exact(out)};
  bool folds = kl_ev_program_combiner(p, 0, &job.op) && kl_fold_knows(job.op, t);
  return folds ? scatter_folds(ev, sel, &job) : scatter_any(ev, sel, p, &job);
}

static kiln_status select_and_scatter(kl_ev *ev, const kl_instr *in, selection *sel, const kl_ev_program *p,
                                      const kl_evval *const *operands, kl_evval *out) {
  kl_dtype t = in->shape->dtype;
  kl_op op;
  bool folds = kl_ev_program_combiner(p, 0, &op) && kl_fold_knows(op, t);
  bool inexact = sel->intervals || !kl_ev_exact(operands[1]) || !kl_ev_exact(operands[2]) ||
                 (folds ? kl_fold_rounds(op, t) : kl_lanes_want_intervals(ev, p, 2, operands + 1));
  KL_TRY(select_all(ev, sel));
  KL_TRY(kl_ev_new(ev, in->shape, false, ev->intervals && inexact, out));
  KL_TRY(scatter(ev, sel, p, operands, out));
  open_uncertain(sel, out);
  kl_ev_settle(ev, out);
  return KILN_OK;
}

kiln_status kl_ev_select_and_scatter(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                     kl_evval *out) {
  sliding s;
  kl_ev_program *select = NULL, *combine = NULL;
  KL_TRY(make_sliding(ev, in, operands[0]->shape, operands[1]->shape, &s));
  selection sel = {.s = &s, .operand = operands[0]};
  size_t bytes = (size_t)s.result->count * (sizeof(int64_t) + 1) + 1; // a source of as many elements exists
  sel.target = kl_try_alloc(ev->cx, bytes);
  if (!sel.target) return kl_out_of_memory(ev->cx, bytes, "a selection");
  sel.uncertain = (uint8_t *)(sel.target + s.result->count);
  kiln_status status = kl_ev_program_new(ev, in->called[0], &select);
  if (status == KILN_OK) status = kl_ev_program_new(ev, in->called[1], &combine);
  if (status == KILN_OK) {
    sel.select = select;
    sel.intervals = kl_lanes_want_intervals(ev, select, 1, operands);
    status = select_and_scatter(ev, in, &sel, combine, operands, out);
  }
  kl_ev_program_free(ev, select);
  kl_ev_program_free(ev, combine);
  kl_free(ev->cx, sel.target, bytes);
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}
