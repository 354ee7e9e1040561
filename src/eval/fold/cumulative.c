// Windows over all elements up to a place, by reducers of any ops, in the order of scans (docs/numerics.md). Lines are
// lanes; what stands beside a lane's elements are tuples of values, one for each level of blocks.
#include "eval/fold/blocks.h"
#include "eval/fold/sequence.h"
#include "eval/fold/sliding.h"

typedef struct lines {
  uint32_t n, dim;
  bool reverse, intervals;
  const kl_evval *const *operands; // arrays, then initial values
  kl_evval *out;
  int64_t length, inner;
  kl_ev_lanes *lanes; // these by worker
  kl_picked *picked;
  kl_iv_out *tuples;
  _Atomic int status;
} lines;

typedef struct worker {
  const lines *all;
  kl_ev_lanes *lanes;
  kl_picked *picked;
  kl_iv_out *tuples;
  int64_t first, n; // lines
} worker;

static kl_dtype type_of(const worker *w, uint32_t k) {
  return w->all->operands[k]->shape->dtype;
}

static kl_iv_in value(const worker *w, uint32_t tuple, uint32_t k) {
  const kl_iv_out *v = &w->tuples[tuple * w->all->n + k];
  return kl_iv_settled(type_of(w, k), &(kl_iv_in){v->data, v->lo, v->hi, v->any}, w->n);
}

static void copy(const void *arg, uint32_t from, uint32_t to) {
  const worker *w = arg;
  for (uint32_t k = 0; k < w->all->n; k++) {
    kl_iv_in v = value(w, from, k);
    kl_iv_copy(type_of(w, k), &v, &w->tuples[to * w->all->n + k], 0, w->n);
  }
}

// to = a, b joined; of lines that go from the end on b's elements come first in the array.
static kiln_status join(const void *arg, uint32_t a, uint32_t b, uint32_t to) {
  const worker *w = arg;
  uint32_t left = w->all->reverse ? b : a, right = w->all->reverse ? a : b;
  for (uint32_t k = 0; k < w->all->n; k++) {
    kl_iv_in v = value(w, left, k);
    kl_iv_copy(type_of(w, k), &v, &w->lanes->acc[k], 0, w->n);
    kl_lanes_point(w->lanes, k, value(w, right, k));
  }
  KL_TRY(kl_lanes_combine(w->lanes, w->n, NULL));
  for (uint32_t k = 0; k < w->all->n; k++) kl_lanes_take(w->lanes, k, w->n, &w->tuples[to * w->all->n + k]);
  return KILN_OK;
}

static void begin(const void *arg) {
  const worker *w = arg;
  for (uint32_t k = 0; k < w->all->n; k++) {
    kl_iv_in init = kl_ev_in(w->all->operands[w->all->n + k], 0);
    kl_iv_fill(type_of(w, k), &init, &w->tuples[KL_BEFORE * w->all->n + k], w->n);
  }
}

static int64_t place(const worker *w, int64_t line, int64_t i) {
  const lines *x = w->all;
  if (x->reverse) i = x->length - 1 - i;
  return line / x->inner * x->inner * x->length + i * x->inner + line % x->inner;
}

static void fetch(const worker *w, int64_t i) {
  for (uint32_t k = 0; k < w->all->n; k++) {
    const kl_evval *from = w->all->operands[k];
    for (int64_t l = 0; l < w->n; l++) w->picked->at[l] = from->splat ? 0 : place(w, w->first + l, i);
    kl_iv_in v = kl_pick(w->picked, from, w->n, w->all->intervals);
    kl_iv_copy(type_of(w, k), &v, &w->tuples[KL_ELEMENT * w->all->n + k], 0, w->n);
  }
}

static void store(const worker *w, int64_t i) {
  for (uint32_t k = 0; k < w->all->n; k++) {
    kl_iv_out to = kl_ev_out(&w->all->out[k], 0);
    const kl_iv_out *v = &w->tuples[KL_RESULT * w->all->n + k];
    for (int64_t l = 0; l < w->n; l++) {
      size_t at = (size_t)l * kl_ev_size(type_of(w, k));
      kl_iv_in one = {v->data + at, v->lo ? v->lo + at : NULL, v->lo ? v->hi + at : NULL, v->lo ? v->any + l : NULL};
      kl_iv_copy(type_of(w, k), &one, &to, place(w, w->first + l, i), 1);
    }
  }
}

static kiln_status scan(const worker *w) {
  const kl_blocks b = {w, copy, join, begin};
  for (int64_t i = 0; i < w->all->length; i++) {
    fetch(w, i);
    KL_TRY(kl_blocks_next(&b, i));
    store(w, i);
  }
  return KILN_OK;
}

static void scan_lines(void *arg, uint32_t number, int64_t begin, int64_t end) {
  lines *x = arg;
  worker w = {x,     &x->lanes[number], &x->picked[number], x->tuples + (size_t)number * KL_TUPLES * x->n,
              begin, end - begin};
  kiln_status status = scan(&w);
  if (status != KILN_OK) x->status = (int)status;
}

// Planes of 16 bytes for each lane; of a tuple that has no intervals one.
static void place_tuples(const lines *x, char *memory, size_t tuples, size_t plane) {
  for (size_t i = 0; i < tuples; i++) {
    char *p = memory + i * plane * (x->intervals ? 4 : 1);
    x->tuples[i] = (kl_iv_out){p, NULL, NULL, NULL};
    if (x->intervals) x->tuples[i] = (kl_iv_out){p, p + plane, p + 2 * plane, (uint8_t *)p + 3 * plane};
  }
}

static kiln_status scan_all(kl_ev *ev, const kl_ev_program *p, lines *x) {
  int64_t count = x->operands[0]->shape->count / x->length, lanes = count < KL_EV_CHUNK ? count : KL_EV_CHUNK;
  uint32_t workers = kl_ev_workers(ev, count, lanes);
  size_t tuples = (size_t)workers * KL_TUPLES * x->n, plane = (size_t)lanes * KL_SEQUENCE_BYTES;
  size_t bytes = tuples * plane * (x->intervals ? 4 : 1), picked = sizeof(kl_picked) * workers;
  KL_TRY(kl_lanes_new(ev, p, x->n, x->operands, x->intervals, workers, lanes, &x->lanes));
  char *memory = kl_try_alloc(ev->cx, bytes);
  x->picked = kl_try_alloc(ev->cx, picked);
  x->tuples = kl_alloc(ev->cx, tuples * sizeof *x->tuples);
  bool ok = memory && x->picked;
  if (ok) place_tuples(x, memory, tuples, plane);
  if (ok) kl_ev_parallel(ev, count, lanes, scan_lines, x);
  kl_free(ev->cx, x->tuples, tuples * sizeof *x->tuples);
  kl_free(ev->cx, x->picked, picked);
  kl_free(ev->cx, memory, bytes);
  kl_lanes_free(ev, x->lanes, workers);
  return ok ? (kiln_status)x->status : kl_out_of_memory(ev->cx, bytes, "a scan");
}

kiln_status kl_cumulate(kl_ev *ev, const kl_instr *in, const kl_ev_program *p, uint32_t dim, bool reverse,
                        const kl_evval *const *operands, kl_evval *out) {
  const kl_shape *s = operands[0]->shape;
  lines x = {.n = in->noperands / 2, .dim = dim, .reverse = reverse, .operands = operands, .out = out, .inner = 1};
  x.length = s->dims[dim];
  for (uint32_t d = dim + 1; d < s->rank; d++) x.inner *= s->dims[d];
  x.intervals = kl_lanes_want_intervals(ev, p, 2 * x.n, operands);
  for (uint32_t k = 0; k < x.n; k++) KL_TRY(kl_ev_new(ev, kl_shape_leaf(in->shape, k), false, x.intervals, &out[k]));
  if (s->count) KL_TRY(scan_all(ev, p, &x));
  for (uint32_t k = 0; k < x.n; k++) kl_ev_settle(ev, &out[k]);
  return KILN_OK;
}
