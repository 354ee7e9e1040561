// reduce. Each result of a combiner is a fold over a row of its own: the operand is brought into the order (kept
// dimensions, reduced dimensions). Other reducers run from left to right in lanes, one per result, over the order
// (reduced, kept).
#include "eval/lanes.h"
#include "eval/fold/sum.h"

typedef struct reduction {
  const kl_instr *in;
  uint32_t n; // operands, and results
  const kl_evval *const *data, *const *init;
  kl_evval *out;
  kl_ev_program *program;
  int64_t kept, reduced; // elements
} reduction;

static bool is_reduced(const kl_instr *in, uint32_t d) {
  for (uint32_t k = 0; k < in->ndims; k++)
    if (in->dims[k] == d) return true;
  return false;
}

// The operand in the wanted order of dimensions; in->shape stands for its count and type only.
static kiln_status arrange(kl_ev *ev, const reduction *r, uint32_t k, bool kept_first, kl_evval *out) {
  const kl_evval *v = r->data[k];
  const kl_shape *s = v->shape;
  kl_ev_walk w = {0};
  int64_t strides[KILN_MAX_RANK], to = s->count;
  kl_ev_strides(s, strides);
  bool in_order = !v->splat;
  for (int pass = 0, seen = -1; pass < 2; pass++)
    for (uint32_t d = 0; d < s->rank; d++) {
      if (is_reduced(r->in, d) != (kept_first ? pass == 1 : pass == 0)) continue;
      if (s->dims[d] > 1) {
        in_order &= (int)d > seen;
        seen = (int)d;
      }
      to = s->dims[d] ? to / s->dims[d] : 0;
      kl_ev_walk_add(&w, s->dims[d], v->splat ? 0 : strides[d], to);
    }
  if (in_order) {
    *out = kl_ev_share(v, s);
    return KILN_OK;
  }
  KL_TRY(kl_ev_new(ev, s, false, !kl_ev_exact(v), out));
  kl_ev_copy_planes(ev, &w, v, out);
  return KILN_OK;
}

// --- folds --------------------------------------------------------------------------------------------------------

typedef struct fold_job {
  kl_op op;
  kl_dtype t;
  bool intervals;
  const kl_evval *rows, *init;
  const kl_evval *out;
  int64_t reduced;
} fold_job;

static void fold_rows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const fold_job *job = arg;
  kl_iv_in init = kl_ev_in(job->init, 0);
  kl_iv_out out = kl_ev_out(job->out, 0);
  for (int64_t i = begin; i < end; i++) {
    kl_iv_in row = kl_ev_in(job->rows, i * job->reduced);
    kl_fold f;
    kl_fold_start(&f, job->op, job->t, job->intervals);
    kl_fold_add(&f, 1, &init);
    kl_fold_add(&f, job->reduced, &row);
    kl_fold_store(&f, &out, i);
  }
}

static kiln_status fold(kl_ev *ev, const reduction *r, uint32_t k, kl_op op) {
  kl_dtype t = r->data[k]->shape->dtype;
  bool inexact = !kl_ev_exact(r->data[k]) || !kl_ev_exact(r->init[k]);
  bool intervals = ev->intervals && (inexact || kl_fold_rounds(op, t));
  kl_evval rows;
  KL_TRY(arrange(ev, r, k, true, &rows));
  kiln_status status = kl_ev_new(ev, kl_shape_leaf(r->in->shape, k), false, intervals, &r->out[k]);
  fold_job job = {op, t, intervals, &rows, r->init[k], &r->out[k], r->reduced};
  int64_t grain = r->reduced < 1 << 14 ? (1 << 14) / (r->reduced + 1) + 1 : 1;
  if (status == KILN_OK) {
    kl_ev_parallel(ev, r->kept, grain, fold_rows, &job);
    if (intervals) kl_ev_settle(ev, &r->out[k]);
  }
  kl_ev_free(ev, &rows);
  return status;
}

// --- any reducer --------------------------------------------------------------------------------------------------

typedef struct lane_job {
  const reduction *r;
  const kl_evval *steps; // (reduced, kept), per operand
  bool intervals;
  kl_ev_lanes *lanes;
  _Atomic int status;
} lane_job;

static void fold_lanes(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  lane_job *job = arg;
  const reduction *r = job->r;
  kl_ev_lanes *w = &job->lanes[worker];
  int64_t n = end - begin;
  for (uint32_t k = 0; k < r->n; k++) {
    kl_iv_in init = kl_ev_in(r->init[k], 0);
    kl_lanes_fill(w, k, n, &init);
  }
  kiln_status status = KILN_OK;
  for (int64_t step = 0; step < r->reduced && status == KILN_OK; step++) {
    for (uint32_t k = 0; k < r->n; k++) kl_lanes_point(w, k, kl_ev_in(&job->steps[k], step * r->kept + begin));
    status = kl_lanes_combine(w, n, NULL);
  }
  if (status != KILN_OK) job->status = (int)status;
  for (uint32_t k = 0; k < r->n; k++) {
    kl_iv_out out = kl_ev_out(&r->out[k], begin);
    kl_lanes_take(w, k, n, &out);
  }
}

static kiln_status run_lanes(kl_ev *ev, const reduction *r, lane_job *job) {
  uint32_t workers = kl_ev_workers(ev, r->kept, KL_EV_CHUNK);
  KL_TRY(kl_lanes_new(ev, r->program, r->n, r->data, job->intervals, workers, r->kept, &job->lanes));
  kl_ev_parallel(ev, r->kept, KL_EV_CHUNK, fold_lanes, job);
  kl_lanes_free(ev, job->lanes, workers);
  return (kiln_status)job->status;
}

static kiln_status reduce_any(kl_ev *ev, const reduction *r) {
  kl_evval *steps = kl_alloc(ev->cx, sizeof(kl_evval) * r->n);
  lane_job job = {.r = r, .steps = steps};
  kiln_status status = KILN_OK;
  job.intervals = kl_lanes_want_intervals(ev, r->program, 2 * r->n, r->data);
  for (uint32_t k = 0; k < r->n && status == KILN_OK; k++) status = arrange(ev, r, k, false, &steps[k]);
  for (uint32_t k = 0; k < r->n && status == KILN_OK; k++)
    status = kl_ev_new(ev, kl_shape_leaf(r->in->shape, k), false, job.intervals, &r->out[k]);
  if (status == KILN_OK) status = run_lanes(ev, r, &job);
  for (uint32_t k = 0; k < r->n; k++) {
    kl_ev_free(ev, &steps[k]);
    if (status == KILN_OK) kl_ev_settle(ev, &r->out[k]);
  }
  kl_free(ev->cx, steps, sizeof(kl_evval) * r->n);
  return status;
}

static kiln_status reduce(kl_ev *ev, const reduction *r) {
  bool general = false;
  kl_op op;
  for (uint32_t k = 0; k < r->n; k++)
    general |= !kl_ev_program_combiner(r->program, k, &op) || !kl_fold_knows(op, r->data[k]->shape->dtype);
  if (general) return reduce_any(ev, r);
  for (uint32_t k = 0; k < r->n; k++) {
    kl_ev_program_combiner(r->program, k, &op);
    KL_TRY(fold(ev, r, k, op));
  }
  return KILN_OK;
}

static kiln_status reduce_typed(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                kl_evval *out) {
  reduction r = {.in = in, .n = in->noperands / 2, .data = operands, .init = operands + in->noperands / 2, .out = out};
  if (r.n == 0) return kl_ev_refuse(ev, in, "no operands");
  const kl_shape *s = operands[0]->shape;
  r.kept = kl_shape_leaf(in->shape, 0)->count;
  r.reduced = 1;
  for (uint32_t d = 0; d < s->rank; d++)
    if (is_reduced(in, d) && __builtin_mul_overflow(r.reduced, s->dims[d], &r.reduced))
      r.reduced = 0; // of an empty array
  if (s->count == 0) r.reduced = 0;
  KL_TRY(kl_ev_program_new(ev, in->called[0], &r.program));
  kiln_status status = reduce(ev, &r);
  kl_ev_program_free(ev, r.program);
  for (uint32_t k = 0; k < r.n && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  return status;
}

kiln_status kl_ev_reduce(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                         kl_evval *out) {
  return kl_ev_widened(ev, c, in, operands, out, reduce_typed);
}

// --- operands and results narrower than accumulators
// --------------------------------------------------------------------------

// (a0 .. an-1, x0 .. xn-1) -> ...: operands are x0 .. xn-1, then a0 .. an-1.
static kl_dtype wanted(const kl_ev *ev, const kl_instr *in, uint32_t k) {
  const kl_comp *reducer = &ev->m->comp[in->called[0]];
  return reducer->instr[reducer->params[(k + in->noperands / 2) % in->noperands]].shape->dtype;
}

static kiln_status widen_operands(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                  kl_evval *out, kl_ev_op *op) {
  uint32_t n = in->noperands, narrow = 0;
  for (uint32_t k = 0; k < n; k++) narrow += operands[k]->shape->dtype != wanted(ev, in, k);
  if (!narrow) return op(ev, c, in, operands, out);
  kl_shape *shape = kl_alloc(ev->cx, sizeof *shape * n);
  kl_evval *wide = kl_alloc(ev->cx, sizeof *wide * n);
  const kl_evval **all = kl_alloc(ev->cx, sizeof *all * n);
  const bool *last = ev->last; // of the operands as they were
  ev->last = NULL;
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < n && status == KILN_OK; k++) {
    all[k] = operands[k];
    shape[k] = *operands[k]->shape;
    shape[k].dtype = wanted(ev, in, k);
    if (shape[k].dtype == operands[k]->shape->dtype) continue;
    status = kl_ev_apply_op(ev, KL_OP_CONVERT, &shape[k], operands[k], NULL, &wide[k]);
    all[k] = &wide[k];
  }
  if (status == KILN_OK) status = op(ev, c, in, all, out);
  ev->last = last;
  for (uint32_t k = 0; k < n; k++) kl_ev_free(ev, &wide[k]);
  kl_free(ev->cx, all, sizeof *all * n);
  kl_free(ev->cx, wide, sizeof *wide * n);
  kl_free(ev->cx, shape, sizeof *shape * n);
  return status;
}

kiln_status kl_ev_widened(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                          kl_evval *out, kl_ev_op *op) {
  const kl_shape *result = kl_shape_leaf(in->shape, 0);
  kl_dtype acc = in->noperands == 2 ? wanted(ev, in, 1) : result->dtype;
  if (acc == result->dtype) return widen_operands(ev, c, in, operands, out, op);
  kl_shape wide_shape = *result;
  kl_instr wide_op = *in;
  kl_evval wide = {0};
  wide_shape.dtype = acc;
  wide_op.shape = &wide_shape;
  kiln_status status = widen_operands(ev, c, &wide_op, operands, &wide, op);
  const bool *last = ev->last;
  ev->last = NULL;
  if (status == KILN_OK) status = kl_ev_apply_op(ev, KL_OP_CONVERT, result, &wide, NULL, out);
  ev->last = last;
  kl_ev_free(ev, &wide);
  return status;
}
