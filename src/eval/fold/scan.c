// scan: carries go along one dimension. At each place the computation takes a slice of every input, without that
// dimension, and the carries; it gives a slice of every output and the next carries. The result is (outputs, last
// carries).
//
// An associative scan of elementwise ops whose outputs are its carries goes in blocks; one by combiners whose outputs
// are their carries may be evaluated in any order: each output is then a fold of the initial carry and of all inputs up
// to its place.
#include "eval/fold/blocks.h"
#include "eval/fold/sequence.h"
#include "eval/fold/sum.h"

typedef struct scan {
  const kl_instr *in;
  uint32_t dim, inputs, outputs, carries;
  int64_t length;
  const kl_evval *const *operands; // inputs, then carries
  kl_evval *out;
} scan;

// The walk between a whole array and its slice at 0; `to_slice` gives the direction.
static void slice_walk(const kl_shape *whole, uint32_t dim, bool single, bool to_slice, kl_ev_walk *w) {
  int64_t strides[KILN_MAX_RANK], to = 1;
  kl_ev_strides(whole, strides);
  *w = (kl_ev_walk){0};
  for (uint32_t d = 0; d < whole->rank; d++) to *= d == dim ? 1 : whole->dims[d];
  for (uint32_t d = 0; d < whole->rank; d++) {
    if (d == dim) continue;
    to = whole->dims[d] ? to / whole->dims[d] : 0;
    int64_t far = single ? 0 : strides[d];
    kl_ev_walk_add(w, whole->dims[d], to_slice ? far : to, to_slice ? to : strides[d]);
  }
}

// --- step by step -------------------------------------------------------------------------------------------------

static kiln_status take_slice(kl_ev *ev, const scan *s, uint32_t k, const kl_shape *shape, int64_t at, kl_evval *out) {
  const kl_evval *v = s->operands[k];
  int64_t strides[KILN_MAX_RANK];
  kl_ev_walk w;
  kl_ev_strides(v->shape, strides);
  slice_walk(v->shape, s->dim, v->splat, true, &w);
  w.src_base = v->splat ? 0 : at * strides[s->dim];
  KL_TRY(kl_ev_new(ev, shape, false, !kl_ev_exact(v), out));
  out->raw = v->raw;
  kl_ev_copy_planes(ev, &w, v, out);
  return KILN_OK;
}

static void put_slice(kl_ev *ev, const scan *s, const kl_evval *slice, int64_t at, kl_evval *whole) {
  int64_t strides[KILN_MAX_RANK];
  kl_ev_walk w;
  kl_ev_strides(whole->shape, strides);
  slice_walk(whole->shape, s->dim, false, false, &w);
  w.dst_base = at * strides[s->dim];
  if (slice->splat) memset(w.src, 0, sizeof w.src);
  kl_ev_copy_planes(ev, &w, slice, whole);
}

// Leaf k of the computation's parameters.
static const kl_shape *param_shape(const kl_ev *ev, const scan *s, uint32_t k) {
  const kl_comp *c = &ev->m->comp[s->in->called[0]];
  return c->instr[c->params[k]].shape;
}

static kiln_status run_step(kl_ev *ev, const scan *s, const kl_ev_code *code, int64_t at, kl_evval *params,
                            kl_evval *results) {
  uint32_t nresults = s->outputs + s->carries;
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < s->inputs && status == KILN_OK; k++)
    status = take_slice(ev, s, k, param_shape(ev, s, k), at, &params[k]);
  if (status == KILN_OK) {
    status = kl_ev_run(ev, code, params, results);
    memset(params, 0, sizeof *params * (s->inputs + s->carries));
  }
  for (uint32_t k = 0; k < nresults && status == KILN_OK; k++) {
    if (k < s->outputs) {
      put_slice(ev, s, &results[k], at, &s->out[k]);
      kl_ev_free(ev, &results[k]);
    } else {
      params[s->inputs + k - s->outputs] = results[k];
    }
    results[k] = (kl_evval){0};
  }
  return status;
}

static kiln_status run_steps(kl_ev *ev, const scan *s, const kl_ev_code *code, kl_evval *params, kl_evval *results) {
  for (uint32_t k = 0; k < s->carries; k++)
    params[s->inputs + k] = kl_ev_share(s->operands[s->inputs + k], param_shape(ev, s, s->inputs + k));
  for (int64_t t = 0; t < s->length; t++)
    KL_TRY(run_step(ev, s, code, s->in->more->is_reverse ? s->length - 1 - t : t, params, results));
  for (uint32_t k = 0; k < s->carries; k++) {
    kl_evval *carry = &params[s->inputs + k];
    s->out[s->outputs + k] = *carry;
    s->out[s->outputs + k].shape = kl_shape_leaf(s->in->shape, s->outputs + k);
    *carry = (kl_evval){0};
  }
  return KILN_OK;
}

static kiln_status scan_steps(kl_ev *ev, const scan *s) {
  uint32_t nparams = s->inputs + s->carries, nresults = s->outputs + s->carries;
  kl_ev_code *code;
  KL_TRY(kl_ev_code_new(ev, s->in->called[0], &code));
  kl_evval *params = kl_alloc(ev->cx, sizeof *params * (nparams + 1u));
  kl_evval *results = kl_alloc(ev->cx, sizeof *results * (nresults + 1u));
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < s->outputs && status == KILN_OK; k++)
    status = kl_ev_new(ev, kl_shape_leaf(s->in->shape, k), false, ev->intervals, &s->out[k]);
  if (status == KILN_OK) status = run_steps(ev, s, code, params, results);
  for (uint32_t k = 0; k < nparams; k++) kl_ev_free(ev, &params[k]);
  for (uint32_t k = 0; k < s->outputs && status == KILN_OK; k++) kl_ev_settle(ev, &s->out[k]);
  kl_free(ev->cx, results, sizeof *results * (nresults + 1u));
  kl_free(ev->cx, params, sizeof *params * (nparams + 1u));
  kl_ev_code_free(ev, code);
  return status;
}

// --- in blocks ----------------------------------------------------------------------------------------------------

// Of an associative scan the order is that of blocks. A slice is a value.
typedef struct blocks {
  kl_ev *ev;
  const scan *s;
  const kl_ev_code *code;
  uint32_t n;
  kl_evval *tuples, *params, *results; // KL_TUPLES of n; 2 n; 2 n
} blocks;

static void put(const blocks *b, uint32_t to, uint32_t k, kl_evval v) {
  kl_evval *place = &b->tuples[to * b->n + k];
  kl_ev_free(b->ev, place);
  *place = v;
}

static kl_evval get(const blocks *b, uint32_t from, uint32_t k) {
  const kl_evval *v = &b->tuples[from * b->n + k];
  return kl_ev_share(v, v->shape);
}

static void copy(const void *arg, uint32_t from, uint32_t to) {
  const blocks *b = arg;
  for (uint32_t k = 0; k < b->n; k++) put(b, to, k, get(b, from, k));
}

// to = a, which comes before, and c joined: a carry and an input.
static kiln_status join(const void *arg, uint32_t a, uint32_t c, uint32_t to) {
  const blocks *b = arg;
  for (uint32_t k = 0; k < b->n; k++) {
    b->params[k] = get(b, c, k);
    b->params[b->n + k] = get(b, a, k);
  }
  kiln_status status = kl_ev_run(b->ev, b->code, b->params, b->results);
  memset(b->params, 0, 2 * b->n * sizeof *b->params);
  for (uint32_t k = 0; k < 2 * b->n && status == KILN_OK; k++) {
    if (k < b->n)
      put(b, to, k, b->results[k]);
    else
      kl_ev_free(b->ev, &b->results[k]);
  }
  memset(b->results, 0, 2 * b->n * sizeof *b->results);
  return status;
}

static void begin(const void *arg) {
  const blocks *b = arg;
  for (uint32_t k = 0; k < b->n; k++)
    put(b, KL_BEFORE, k, kl_ev_share(b->s->operands[b->n + k], param_shape(b->ev, b->s, b->n + k)));
}

static kiln_status run_blocks(const blocks *b) {
  const scan *s = b->s;
  const kl_blocks walk = {b, copy, join, begin};
  for (int64_t i = 0; i < s->length; i++) {
    int64_t at = s->in->more->is_reverse ? s->length - 1 - i : i;
    for (uint32_t k = 0; k < b->n; k++) {
      kl_evval slice;
      KL_TRY(take_slice(b->ev, s, k, param_shape(b->ev, s, k), at, &slice));
      put(b, KL_ELEMENT, k, slice);
    }
    KL_TRY(kl_blocks_next(&walk, i));
    for (uint32_t k = 0; k < b->n; k++) put_slice(b->ev, s, &b->tuples[KL_RESULT * b->n + k], at, &s->out[k]);
  }
  for (uint32_t k = 0; k < b->n; k++)
    s->out[b->n + k] = kl_ev_share(&b->tuples[KL_RESULT * b->n + k], kl_shape_leaf(s->in->shape, b->n + k));
  return KILN_OK;
}

static kiln_status scan_blocks(kl_ev *ev, const scan *s) {
  uint32_t n = s->inputs, count = (KL_TUPLES + 4) * n;
  kl_ev_code *code;
  KL_TRY(kl_ev_code_new(ev, s->in->called[0], &code));
  kl_evval *values = kl_alloc(ev->cx, sizeof *values * count);
  memset(values, 0, sizeof *values * count);
  blocks b = {ev, s, code, n, values, values + KL_TUPLES * n, values + (KL_TUPLES + 2) * n};
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < n && status == KILN_OK; k++)
    status = kl_ev_new(ev, kl_shape_leaf(s->in->shape, k), false, ev->intervals, &s->out[k]);
  if (status == KILN_OK) status = run_blocks(&b);
  for (uint32_t i = 0; i < KL_TUPLES * n; i++) kl_ev_free(ev, &values[i]);
  for (uint32_t k = 0; k < n && status == KILN_OK; k++) kl_ev_settle(ev, &s->out[k]);
  kl_free(ev->cx, values, sizeof *values * count);
  kl_ev_code_free(ev, code);
  return status;
}

// Are a step's outputs its carries, of the types of inputs, made by elementwise ops?
static bool is_joining(const kl_ev *ev, const scan *s) {
  const kl_comp *c = &ev->m->comp[s->in->called[0]];
  const kl_instr *root = kl_root(c);
  uint32_t n = s->inputs;
  bool joins = s->length && root->op == KL_OP_TUPLE && root->noperands == 2 * n && c->nparams == 2 * n;
  joins = joins && kl_is_elementwise(c);
  for (uint32_t k = 0; k < n && joins; k++) {
    const kl_shape *a = s->operands[k]->shape, *first = s->operands[0]->shape;
    joins = root->operands[k] == root->operands[n + k] && a->dtype == s->operands[n + k]->shape->dtype &&
            a->dtype == kl_operand(c, root, k)->shape->dtype && a->dtype == param_shape(ev, s, k)->dtype &&
            a->rank == first->rank && memcmp(a->dims, first->dims, a->rank * sizeof *a->dims) == 0;
  }
  return joins;
}

// --- as folds -----------------------------------------------------------------------------------------------------

typedef struct fold_job {
  const scan *s;
  uint32_t k;
  kl_op op;
  bool intervals;
  int64_t inner; // elements behind the dimension
  bool bound;    // the data stands
  const kl_sequence *sequence;
} fold_job;

static void store(const fold_job *job, const kl_fold *f, const kl_iv_out *out, int64_t i) {
  if (job->bound)
    kl_fold_bound(f, out, i);
  else
    kl_fold_store(f, out, i);
}

static void scan_rows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const fold_job *job = arg;
  const scan *s = job->s;
  const kl_evval *v = s->operands[job->k], *init = s->operands[s->inputs + job->k];
  size_t size = kl_ev_size(v->shape->dtype);
  _Alignas(16) char first[KL_SEQUENCE_BYTES];
  for (int64_t row = begin; row < end; row++) {
    bool back = s->in->more->is_reverse;
    int64_t step = back ? -job->inner : job->inner;
    int64_t at =
        row / job->inner * job->inner * s->length + row % job->inner + (back ? (s->length - 1) * job->inner : 0);
    kl_sequence_line l = {.length = s->length, .in_stride = kl_ev_single(v) ? 0 : step, .out_stride = step};
    l.in = (const char *)kl_ev_plane(v, KL_EV_DATA) + (kl_ev_single(v) ? 0 : (size_t)at * size);
    l.out = (char *)kl_ev_plane(&s->out[job->k], KL_EV_DATA) + (size_t)at * size;
    l.last = (char *)kl_ev_plane(&s->out[s->outputs + job->k], KL_EV_DATA) + (size_t)row * size;
    kl_sequence_load(job->sequence, kl_ev_plane(init, KL_EV_DATA), kl_ev_single(init) ? 0 : row, first);
    kl_sequence_scan(job->sequence, &l, first);
  }
}

static void fold_rows(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const fold_job *job = arg;
  const scan *s = job->s;
  const kl_evval *v = s->operands[job->k], *init = s->operands[s->inputs + job->k];
  kl_iv_out out = kl_ev_out(&s->out[job->k], 0), last = kl_ev_out(&s->out[s->outputs + job->k], 0);
  for (int64_t row = begin; row < end; row++) {
    int64_t base = row / job->inner * job->inner * s->length + row % job->inner;
    kl_iv_in x = kl_ev_in(init, kl_ev_single(init) ? 0 : row);
    kl_fold f;
    kl_fold_start(&f, job->op, v->shape->dtype, job->intervals);
    kl_fold_add(&f, 1, &x);
    for (int64_t t = 0; t < s->length; t++) {
      int64_t at = base + (s->in->more->is_reverse ? s->length - 1 - t : t) * job->inner;
      x = kl_ev_in(v, kl_ev_single(v) ? 0 : at);
      kl_fold_add(&f, 1, &x);
      store(job, &f, &out, at);
    }
    store(job, &f, &last, row);
  }
}

// Does a step return twice what one op makes of its input and its carry?
static bool sequence_of(const kl_ev *ev, const scan *s, kl_sequence *out) {
  kl_comp step = ev->m->comp[s->in->called[0]];
  const kl_instr *root = kl_root(&step);
  if (s->inputs != 1 || root->op != KL_OP_TUPLE || root->operands[0] != root->operands[1]) return false;
  step.root = root->operands[0];
  return kl_sequence_of(&step, out);
}

static kiln_status scan_fold(kl_ev *ev, const scan *s, uint32_t k, kl_op op) {
  const kl_evval *v = s->operands[k], *init = s->operands[s->inputs + k];
  bool inexact = !kl_ev_exact(v) || !kl_ev_exact(init);
  fold_job job = {s, k, op, ev->intervals && (inexact || kl_fold_rounds(op, v->shape->dtype)), 1};
  KL_TRY(kl_ev_new(ev, kl_shape_leaf(s->in->shape, k), false, job.intervals, &s->out[k]));
  KL_TRY(kl_ev_new(ev, kl_shape_leaf(s->in->shape, s->outputs + k), false, job.intervals, &s->out[s->outputs + k]));
  for (uint32_t d = s->dim + 1; d < v->shape->rank; d++) job.inner *= v->shape->dims[d];
  int64_t rows = s->out[s->outputs + k].shape->count, grain = s->length < 1 << 12 ? (1 << 12) / (s->length + 1) + 1 : 1;
  kl_sequence sequence;
  job.bound = kl_fold_rounds(op, v->shape->dtype) && sequence_of(ev, s, &sequence);
  job.sequence = &sequence;
  if (job.bound) kl_ev_parallel(ev, rows, grain, scan_rows, &job);
  if (!job.bound || job.intervals) kl_ev_parallel(ev, rows, grain, fold_rows, &job);
  kl_ev_settle(ev, &s->out[k]);
  kl_ev_settle(ev, &s->out[s->outputs + k]);
  return KILN_OK;
}

// Are outputs and carries the same folds of inputs, whatever the order?
static bool is_fold(const scan *s, const kl_ev_program *p, uint32_t k, kl_op *op) {
  kl_op carry;
  return kl_ev_program_combines(p, k, k, s->inputs + k, op) &&
         kl_ev_program_combines(p, s->outputs + k, k, s->inputs + k, &carry) && *op == carry &&
         kl_fold_knows(*op, s->operands[k]->shape->dtype);
}

static kiln_status scan_any(kl_ev *ev, const scan *s) {
  kl_op op;
  bool square = s->inputs == s->outputs && s->inputs == s->carries;
  kl_ev_program *p = s->in->more->is_associative && square ? kl_ev_program_of_arrays(ev, s->in->called[0]) : NULL;
  bool folds = p != NULL;
  for (uint32_t k = 0; k < s->inputs && folds; k++) folds = is_fold(s, p, k, &op);
  bool joins = s->in->more->is_associative && square && !folds && is_joining(ev, s);
  kiln_status status = folds ? KILN_OK : joins ? scan_blocks(ev, s) : scan_steps(ev, s);
  for (uint32_t k = 0; k < s->inputs && folds && status == KILN_OK; k++) {
    is_fold(s, p, k, &op);
    status = scan_fold(ev, s, k, op);
  }
  kl_ev_program_free(ev, p);
  return status;
}

kiln_status kl_ev_scan(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                       kl_evval *out) {
  uint32_t results = (uint32_t)kl_shape_leaf_count(in->shape), carries = (uint32_t)in->more->carries;
  if (in->ndims != 1 || in->more->carries < 0 || in->more->carries > in->noperands || carries > results ||
      in->noperands == carries)
    return kl_ev_refuse(ev, in, "its operands and results are not inputs, outputs and carries along one dimension");
  scan s = {.in = in,
            .dim = (uint32_t)in->dims[0],
            .inputs = in->noperands - carries,
            .outputs = results - carries,
            .carries = carries,
            .operands = operands,
            .out = out};
  s.length = operands[0]->shape->dims[s.dim];
  kiln_status status = scan_any(ev, &s);
  for (uint32_t k = 0; k < results && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  return status;
}
