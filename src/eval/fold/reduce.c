// reduce. Its data is what the tree of the graph gives (tree.c). Sums and products of floats may be right in any order:
// what they may be is a fold over a row of its own for each result, and so are combiners that give the same in every
// order. All other reducers have the one tree.
#include "eval/fold/sum.h"
#include "eval/fold/tree.h"
#include "eval/lanes.h"

typedef struct reduction {
  const kl_instr *in;
  uint32_t n; // operands, and results
  const kl_evval *const *data, *const *init;
  kl_evval *out;
  const kl_comp *reducer;
  kl_ev_program *program;
  kl_fold_tree tree;
  int64_t kept; // results
} reduction;

static bool is_reduced(const kl_instr *in, uint32_t d) {
  for (uint32_t k = 0; k < in->ndims; k++)
    if (in->dims[k] == d) return true;
  return false;
}

// The dimensions to come, major to minor: kept ones in order, reduced ones as operand 0 has them in memory.
static void order_of(const reduction *r, bool kept_first, uint32_t *dims) {
  const kl_shape *s = r->data[0]->shape;
  uint32_t n = 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < s->rank; i++) {
      bool reduced = kept_first ? pass == 1 : pass == 0;
      uint32_t d = reduced ? (uint32_t)kl_shape_minor_to_major(s, s->rank - 1 - i) : i;
      if (is_reduced(r->in, d) == reduced) dims[n++] = d;
    }
}

// The operand in the wanted order of dimensions; its shape stands for its count and type only.
static kiln_status arrange(kl_ev *ev, const reduction *r, uint32_t k, bool kept_first, kl_evval *out) {
  const kl_evval *v = r->data[k];
  const kl_shape *s = v->shape;
  kl_ev_walk w = {0};
  int64_t strides[KILN_MAX_RANK], to = s->count;
  uint32_t order[KILN_MAX_RANK];
  kl_ev_strides(s, strides);
  order_of(r, kept_first, order);
  bool in_order = !v->splat;
  int seen = -1;
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = order[i];
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

// --- the tree -----------------------------------------------------------------------------------------------------

// Is the reducer an add or multiply of its two parameters, and nothing else?
static bool is_one_op(const reduction *r, kl_ew *e) {
  const kl_comp *c = r->reducer;
  const kl_instr *root = kl_root(c);
  if (c->nparams != 2 || (root->op != KL_OP_ADD && root->op != KL_OP_MULTIPLY)) return false;
  const kl_instr *a = kl_operand(c, root, 0), *b = kl_operand(c, root, 1);
  *e = (kl_ew){.op = root->op, .nin = 2, .in = {root->shape->dtype, root->shape->dtype}, .out = root->shape->dtype};
  return a->op == KL_OP_PARAMETER && b->op == KL_OP_PARAMETER && a->number != b->number;
}

// The results that stand ready in r->out: data, with `intervals` all planes.
static kiln_status fold_tree(kl_ev *ev, const reduction *r, bool intervals) {
  kl_ew e;
  bool one_op = !intervals && is_one_op(r, &e);
  kl_evval *elements = kl_alloc(ev->cx, sizeof *elements * r->n);
  kl_tree_job job = {.tree = r->tree,
                     .n = r->n,
                     .kept = r->kept,
                     .intervals = intervals,
                     .program = r->program,
                     .elements = elements,
                     .init = r->init,
                     .out = r->out};
  job.rows = r->tree.row;
  job.in_f32 = one_op && kl_is_float(e.out) && kl_info(e.out)->bits <= 16;
  if (job.in_f32) e.in[0] = e.in[1] = e.out = KILN_F32;
  if (one_op && kl_ew_bind(&e)) job.direct = &e;
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < r->n && status == KILN_OK; k++) status = arrange(ev, r, k, job.rows, &elements[k]);
  if (status == KILN_OK) status = kl_tree_fold(ev, &job);
  for (uint32_t k = 0; k < r->n; k++) kl_ev_free(ev, &elements[k]);
  kl_free(ev->cx, elements, sizeof *elements * r->n);
  return status;
}

static kiln_status new_result(kl_ev *ev, const reduction *r, uint32_t k, bool intervals) {
  return kl_ev_new(ev, kl_shape_leaf(r->in->shape, k), false, intervals, &r->out[k]);
}

// Any reducer.
static kiln_status reduce_any(kl_ev *ev, const reduction *r) {
  bool intervals = kl_lanes_want_intervals(ev, r->program, 2 * r->n, r->data);
  for (uint32_t k = 0; k < r->n; k++) KL_TRY(new_result(ev, r, k, intervals));
  KL_TRY(fold_tree(ev, r, intervals));
  for (uint32_t k = 0; k < r->n; k++) kl_ev_settle(ev, &r->out[k]);
  return KILN_OK;
}

// --- combiners ----------------------------------------------------------------------------------------------------

typedef struct fold_job {
  kl_op op;
  kl_dtype t;
  bool intervals;
  bool bound; // the data stands
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
    if (job->bound)
      kl_fold_bound(&f, &out, i);
    else
      kl_fold_store(&f, &out, i);
  }
}

static kiln_status fold(kl_ev *ev, const reduction *r, uint32_t k, fold_job *job) {
  kl_evval rows;
  KL_TRY(arrange(ev, r, k, true, &rows));
  int64_t grain = job->reduced < 1 << 14 ? (1 << 14) / (job->reduced + 1) + 1 : 1;
  job->rows = &rows;
  kl_ev_parallel(ev, r->kept, grain, fold_rows, job);
  kl_ev_free(ev, &rows);
  if (job->intervals) kl_ev_settle(ev, &r->out[k]);
  return KILN_OK;
}

static fold_job job_of(kl_ev *ev, const reduction *r, uint32_t k) {
  bool inexact = !kl_ev_exact(r->data[k]) || !kl_ev_exact(r->init[k]);
  fold_job job = {.t = r->data[k]->shape->dtype, .init = r->init[k], .out = &r->out[k], .reduced = r->tree.length};
  kl_ev_program_combiner(r->program, k, &job.op);
  job.bound = kl_fold_rounds(job.op, job.t);
  job.intervals = ev->intervals && (inexact || job.bound);
  return job;
}

static kiln_status reduce_combined(kl_ev *ev, const reduction *r) {
  bool rounds = false;
  for (uint32_t k = 0; k < r->n; k++) {
    fold_job job = job_of(ev, r, k);
    rounds |= job.bound;
    KL_TRY(new_result(ev, r, k, job.intervals));
  }
  if (rounds) KL_TRY(fold_tree(ev, r, false));
  for (uint32_t k = 0; k < r->n; k++) {
    fold_job job = job_of(ev, r, k);
    if (!job.bound || job.intervals) KL_TRY(fold(ev, r, k, &job));
  }
  return KILN_OK;
}

static kiln_status reduce(kl_ev *ev, const reduction *r) {
  bool general = false;
  kl_op op;
  for (uint32_t k = 0; k < r->n; k++)
    general |= !kl_ev_program_combiner(r->program, k, &op) || !kl_fold_knows(op, r->data[k]->shape->dtype);
  return general ? reduce_any(ev, r) : reduce_combined(ev, r);
}

static kiln_status reduce_typed(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                kl_evval *out) {
  reduction r = {.in = in, .n = in->noperands / 2, .data = operands, .init = operands + in->noperands / 2, .out = out};
  if (r.n == 0) return kl_ev_refuse(ev, in, "no operands");
  r.reducer = &ev->m->comp[in->called[0]];
  r.tree = kl_reduce_tree(operands[0]->shape, in->ndims, in->dims);
  r.kept = kl_shape_leaf(in->shape, 0)->count;
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

// --- operands and results narrower than accumulators --------------------------------------------------------------

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
