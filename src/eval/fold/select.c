// select-and-scatter. A window that sees nothing selects nothing. Where the operand is inexact, every comparison on the
// way to what a window selects counts, and which ones are made depends on where the window begins: these are all made.
#include "eval/fold/sequence.h"
#include "eval/fold/sliding.h"

// Each element of `source` goes to the element that its window selects.
typedef struct selection {
  const kl_sliding *s;
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
  kl_picked best, next;
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
  kl_iv_in in[2] = {kl_picked_planes(&c->best, job->operand, true), kl_picked_planes(&c->next, job->operand, true)};
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
  kl_sliding_places(job->s, begin, n, place);
  kiln_status status = KILN_OK;
  for (int64_t t = 0; t < job->s->taps && status == KILN_OK; t++, kl_sliding_next_tap(job->s, tap)) {
    for (int64_t i = 0; i < n; i++) c.next.at[i] = kl_sliding_element(job->s, place + i * job->s->rank, tap);
    kl_pick(&c.next, job->operand, n, job->intervals);
    status = ask(job, job->regs[worker], &c, n, job->uncertain + begin);
    for (int64_t i = 0; i < n && status == KILN_OK; i++)
      if (c.next.at[i] >= 0 && (c.best.at[i] < 0 || !c.keep[i])) take_next(job, &c, i);
  }
  if (status != KILN_OK) job->status = (int)status;
  memcpy(job->target + begin, c.best.at, (size_t)n * sizeof(int64_t));
}

static kiln_status ask_all(kl_ev *ev, selection *job) {
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
    kl_sliding_places(job->s, i, 1, place);
    for (int64_t t = 0; t < job->s->taps; t++, kl_sliding_next_tap(job->s, tap)) {
      int64_t at = kl_sliding_element(job->s, place, tap);
      if (at >= 0) kl_ev_open_at(out->shape->dtype, &to, at);
    }
  }
}

typedef struct scatter_job {
  kl_op op;
  bool intervals;
  const kl_evval *source, *init, *out;
  const kl_sequence *sequence;  // NULL: every order gives the same
  const int64_t *first, *order; // of result i: order[first[i]] up to order[first[i + 1]] are its sources
} scatter_job;

static void join_sources(const scatter_job *job, int64_t i) {
  _Alignas(16) char acc[KL_SEQUENCE_BYTES], x[KL_SEQUENCE_BYTES];
  kl_sequence_load(job->sequence, kl_ev_plane(job->init, KL_EV_DATA), 0, acc);
  for (int64_t k = job->first[i]; k < job->first[i + 1]; k++) {
    kl_sequence_load(job->sequence, kl_ev_plane(job->source, KL_EV_DATA), kl_ev_single(job->source) ? 0 : job->order[k],
                     x);
    kl_sequence_join(job->sequence, acc, x, acc);
  }
  kl_sequence_store(job->sequence, acc, kl_ev_plane(job->out, KL_EV_DATA), i);
}

static void fold_sources(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const scatter_job *job = arg;
  kl_iv_in init = kl_ev_in(job->init, 0);
  kl_iv_out out = kl_ev_out(job->out, 0);
  kl_picked p;
  for (int64_t i = begin; i < end; i++) {
    kl_fold f;
    if (job->sequence) join_sources(job, i);
    if (job->sequence && !job->intervals) continue;
    kl_fold_start(&f, job->op, job->out->shape->dtype, job->intervals);
    kl_fold_add(&f, 1, &init);
    for (int64_t k = job->first[i], n; k < job->first[i + 1]; k += n) {
      n = job->first[i + 1] - k < KL_EV_CHUNK ? job->first[i + 1] - k : KL_EV_CHUNK;
      memcpy(p.at, job->order + k, sizeof *p.at * (size_t)n);
      kl_iv_in x = kl_pick(&p, job->source, n, job->intervals);
      kl_fold_add(&f, n, &x);
    }
    if (job->sequence)
      kl_fold_bound(&f, &out, i);
    else
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

static kiln_status scatter(kl_ev *ev, const kl_comp *by, const selection *sel, const kl_ev_program *p,
                           const kl_evval *const *operands, kl_evval *out) {
  kl_dtype t = out->shape->dtype;
  kl_sequence sequence;
  scatter_job job = {.source = operands[1], .init = operands[2], .out = out, .intervals = !kl_ev_exact(out)};
  bool folds = kl_ev_program_combiner(p, 0, &job.op) && kl_fold_knows(job.op, t);
  if (folds && kl_fold_rounds(job.op, t) && kl_sequence_of(by, &sequence)) job.sequence = &sequence;
  return folds ? scatter_folds(ev, sel, &job) : scatter_any(ev, sel, p, &job);
}

static kiln_status select_and_scatter(kl_ev *ev, const kl_instr *in, selection *sel, const kl_ev_program *p,
                                      const kl_evval *const *operands, kl_evval *out) {
  kl_dtype t = in->shape->dtype;
  kl_op op;
  bool folds = kl_ev_program_combiner(p, 0, &op) && kl_fold_knows(op, t);
  bool inexact = sel->intervals || !kl_ev_exact(operands[1]) || !kl_ev_exact(operands[2]) ||
                 (folds ? kl_fold_rounds(op, t) : kl_lanes_want_intervals(ev, p, 2, operands + 1));
  kiln_status selected;
  if (sel->intervals || !kl_selects_best(ev, sel->s, in->called[0], operands[0], sel->target, &selected))
    selected = ask_all(ev, sel);
  KL_TRY(selected);
  KL_TRY(kl_ev_new(ev, in->shape, false, ev->intervals && inexact, out));
  KL_TRY(scatter(ev, &ev->m->comp[in->called[1]], sel, p, operands, out));
  open_uncertain(sel, out);
  kl_ev_settle(ev, out);
  return KILN_OK;
}

static kiln_status run_selection(kl_ev *ev, const kl_instr *in, selection *sel, const kl_evval *const *operands,
                                 kl_evval *out) {
  kl_ev_program *select = NULL, *combine = NULL;
  int64_t n = sel->s->result->count;
  size_t bytes = (size_t)n * (sizeof(int64_t) + 1) + 1; // a source of as many elements exists
  sel->target = kl_try_alloc(ev->cx, bytes);
  if (!sel->target) return kl_out_of_memory(ev->cx, bytes, "a selection");
  sel->uncertain = (uint8_t *)(sel->target + n);
  kiln_status status = kl_ev_program_new(ev, in->called[0], &select);
  if (status == KILN_OK) status = kl_ev_program_new(ev, in->called[1], &combine);
  if (status == KILN_OK) {
    sel->select = select;
    sel->intervals = kl_lanes_want_intervals(ev, select, 1, operands);
    status = select_and_scatter(ev, in, sel, combine, operands, out);
  }
  kl_ev_program_free(ev, select);
  kl_ev_program_free(ev, combine);
  kl_free(ev->cx, sel->target, bytes);
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}

kiln_status kl_ev_select_and_scatter(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                     kl_evval *out) {
  kl_sliding s;
  KL_TRY(kl_sliding_new(ev, in, operands[0]->shape, operands[1]->shape, &s));
  kiln_status status = run_selection(ev, in, &(selection){.s = &s, .operand = operands[0]}, operands, out);
  kl_sliding_free(ev, &s);
  return status;
}
