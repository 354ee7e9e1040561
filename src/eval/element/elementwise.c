// Elementwise ops: binding to types, tables, and running over chunks and threads, with or without intervals.
//
// A one-operand op on 8 or 16 bits, and a two-operand op on bytes, is run once on every pattern when the array is
// larger than that: the table then serves the array. Splat operands are spread into a chunk-sized buffer per worker.
#include "eval/impl.h"

// --- binding ------------------------------------------------------------------------------------------------------

static void run_copy(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  memcpy(out, in[0], (size_t)n * kl_ev_size(e->out));
}

#define SELECT_LOOP(T)                                                                                                 \
  do {                                                                                                                 \
    const T *a = in[1], *b = in[2];                                                                                    \
    T *o = out;                                                                                                        \
    for (int64_t i = 0; i < n; i++) o[i] = p[i] ? a[i] : b[i];                                                         \
  } while (0)

static void run_select(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  typedef struct c128 {
    double re, im;
  } c128;
  const uint8_t *p = in[0];
  switch (kl_ev_size(e->out)) {
  case 1: SELECT_LOOP(uint8_t); break;
  case 2: SELECT_LOOP(uint16_t); break;
  case 4: SELECT_LOOP(uint32_t); break;
  case 8: SELECT_LOOP(uint64_t); break;
  default: SELECT_LOOP(c128); break;
  }
}

bool kl_ew_bind(kl_ew *e) {
  kl_class cls = kl_info(e->in[0])->cls;
  e->run = NULL;
  if (cls == KL_CLASS_FLOAT) kl_ew_math(e);
  switch (e->op) {
  case KL_OP_COPY: e->run = e->out == e->in[0] ? run_copy : NULL; break;
  case KL_OP_SELECT:
    e->run = e->in[0] == KILN_PRED && e->out == e->in[1] && e->out == e->in[2] ? run_select : NULL;
    break;
  case KL_OP_COMPARE: e->run = kl_ew_compare(e); break;
  case KL_OP_CONVERT: e->run = kl_ew_convert(e); break;
  case KL_OP_COMPLEX: e->run = kl_ew_complex(e); break;
  case KL_OP_REAL:
    e->run = cls == KL_CLASS_COMPLEX ? kl_ew_complex(e) : cls == KL_CLASS_FLOAT && e->out == e->in[0] ? run_copy : NULL;
    break;
  default:
    if (e->nin > 1 && (e->in[1] != e->in[0] || (e->nin > 2 && e->in[2] != e->in[0]))) return false;
    e->run = cls == KL_CLASS_FLOAT ? kl_ew_float(e) : cls == KL_CLASS_COMPLEX ? kl_ew_complex(e) : kl_ew_int(e);
  }
  return e->run != NULL;
}

// --- tables -------------------------------------------------------------------------------------------------------

#define TABLE_LOOPS(TI, KEY)                                                                                           \
  do {                                                                                                                 \
    const TI *a = in[0];                                                                                               \
    switch (kl_ev_size(e->out)) {                                                                                      \
      TABLE_LOOP(uint8_t, KEY)                                                                                         \
      TABLE_LOOP(uint16_t, KEY)                                                                                        \
      TABLE_LOOP(uint32_t, KEY)                                                                                        \
      TABLE_LOOP(uint64_t, KEY)                                                                                        \
    default:                                                                                                           \
      for (int64_t i = 0; i < n; i++) memcpy((char *)out + 16 * i, (const char *)e->table + 16 * (size_t)(KEY), 16);   \
    }                                                                                                                  \
  } while (0)
#define TABLE_LOOP(TO, KEY)                                                                                            \
  case sizeof(TO):                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((TO *)out)[i] = ((const TO *)e->table)[KEY];                                      \
    break;

static void run_table8(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  TABLE_LOOPS(uint8_t, a[i]);
}
static void run_table16(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  TABLE_LOOPS(uint16_t, a[i]);
}
static void run_table_pair(const kl_ew *e, int64_t n, const void *const in[3], void *out) {
  const uint8_t *b = in[1];
  TABLE_LOOPS(uint8_t, (size_t)a[i] << 8 | b[i]);
}

typedef struct table_job {
  const kl_ew *e;
  char *table;
} table_job;

// Runs the op on the patterns [begin, end), at most 256 and aligned to as many.
static void fill_table(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const table_job *job = arg;
  uint16_t wide[256];
  uint8_t low[256], high[256];
  for (int64_t i = 0; i < 256; i++) {
    wide[i] = (uint16_t)(begin + i);
    low[i] = (uint8_t)i;
    high[i] = (uint8_t)(begin >> 8);
  }
  const void *pair[3] = {high, low, NULL}, *one[3] = {kl_ev_size(job->e->in[0]) == 2 ? (void *)wide : low, NULL, NULL};
  job->e->run(job->e, end - begin, job->e->nin == 2 ? pair : one,
              job->table + begin * (int64_t)kl_ev_size(job->e->out));
}

// Replaces e->run by a table where that pays. *size is the table's, 0 for none.
static void tabulate(const kl_ev *ev, kl_ew *e, int64_t n, size_t *size) {
  size_t width = kl_ev_size(e->in[0]);
  bool pair = e->nin == 2 && width == 1;
  int64_t patterns = width == 1 && !pair ? 256 : 65536;
  *size = 0;
  if (!(e->nin == 1 && width <= 2) && !pair) return;
  if (n < 2 * patterns) return;
  *size = (size_t)patterns * kl_ev_size(e->out);
  char *table = kl_try_alloc(ev->cx, *size);
  if (!table) {
    *size = 0; // the plain loops do as well
    return;
  }
  kl_ev_parallel(ev, patterns, 256, fill_table, &(table_job){e, table});
  e->table = table;
  e->run = pair ? run_table_pair : width == 1 ? run_table8 : run_table16;
}

// --- running ------------------------------------------------------------------------------------------------------

typedef struct worker_state {
  bool ready; // splat buffers are filled
  bool bounds_differ, any;
  _Alignas(16) char splat[3][KL_EV_PLANES][16 * KL_EV_CHUNK];
} worker_state;

typedef struct job {
  const kl_ew *e;
  const kl_evval *in[3];
  uint32_t first[3]; // the first operand that is the same value
  kl_evval *out;
  bool intervals, nan_open[3];
  worker_state *state; // one per worker
  char *scratch;       // kl_iv_scratch_size per worker; NULL without intervals
} job;

static void fill_splats(const job *job, worker_state *w) {
  for (uint32_t k = 0; k < job->e->nin; k++) {
    if (!kl_ev_single(job->in[k])) continue;
    for (int plane = 0; plane < KL_EV_PLANES; plane++) {
      size_t size = plane == KL_EV_ANY ? 1 : kl_ev_size(job->e->in[k]);
      const char *from = kl_ev_plane(job->in[k], plane);
      for (size_t i = 0; from && i < KL_EV_CHUNK; i++) memcpy(w->splat[k][plane] + i * size, from, size);
    }
  }
  w->ready = true;
}

static const char *chunk_of(const job *job, const worker_state *w, uint32_t k, int plane, int64_t at) {
  const kl_evval *v = job->in[k];
  if (!v->plane[plane]) return NULL;
  if (plane != KL_EV_ANY && v->plane[plane] == v->plane[KL_EV_DATA]) plane = KL_EV_DATA; // so that equal stays equal
  if (kl_ev_single(v)) return w->splat[job->first[k]][plane];
  return (const char *)v->plane[plane]->p + (size_t)at * (plane == KL_EV_ANY ? 1 : kl_ev_size(job->e->in[k]));
}

static void run_chunk_interval(const job *job, worker_state *w, uint32_t worker, int64_t at, int64_t n) {
  size_t size = kl_ev_size(job->e->out);
  kl_iv_in in[3] = {{0}, {0}, {0}};
  for (uint32_t k = 0; k < job->e->nin; k++)
    in[k] = (kl_iv_in){chunk_of(job, w, k, KL_EV_DATA, at), chunk_of(job, w, k, KL_EV_LO, at),
                       chunk_of(job, w, k, KL_EV_HI, at), (const uint8_t *)chunk_of(job, w, k, KL_EV_ANY, at)};
  kl_iv_out out = {(char *)kl_ev_plane(job->out, KL_EV_DATA) + (size_t)at * size,
                   (char *)kl_ev_plane(job->out, KL_EV_LO) + (size_t)at * size,
                   (char *)kl_ev_plane(job->out, KL_EV_HI) + (size_t)at * size,
                   (uint8_t *)kl_ev_plane(job->out, KL_EV_ANY) + at};
  kl_iv_run(job->e, (kl_iv_scratch *)(job->scratch + worker * kl_iv_scratch_size), n, in, job->nan_open, &out);
  w->bounds_differ |= memcmp(out.lo, out.data, (size_t)n * size) || memcmp(out.hi, out.data, (size_t)n * size);
  w->any |= memchr(out.any, 1, (size_t)n) != NULL;
}

static void run_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  const job *job = arg;
  worker_state *w = &job->state[worker];
  bool single = false;
  for (uint32_t k = 0; k < job->e->nin; k++) single |= kl_ev_single(job->in[k]);
  if (!w->ready) fill_splats(job, w);
  int64_t step = single || job->intervals ? KL_EV_CHUNK : end - begin;
  for (int64_t at = begin; at < end; at += step) {
    int64_t n = end - at < step ? end - at : step;
    if (job->intervals) {
      run_chunk_interval(job, w, worker, at, n);
      continue;
    }
    const void *in[3] = {NULL, NULL, NULL};
    for (uint32_t k = 0; k < job->e->nin; k++) in[k] = chunk_of(job, w, k, KL_EV_DATA, at);
    job->e->run(job->e, n, in, (char *)kl_ev_plane(job->out, KL_EV_DATA) + (size_t)at * kl_ev_size(job->e->out));
  }
}

// Which results carry their NaN bits unchanged from a parameter or constant.
static bool keeps_bits(kl_op op) {
  return op == KL_OP_SELECT || op == KL_OP_REAL || op == KL_OP_IMAG || op == KL_OP_COMPLEX;
}

static void settle(kl_ev *ev, const job *job, uint32_t workers, kl_evval *out) {
  bool differ = false, any = false;
  for (uint32_t k = 0; k < workers; k++) {
    differ |= job->state[k].bounds_differ;
    any |= job->state[k].any;
  }
  if (!differ && !any)
    kl_ev_drop_interval(ev, out);
  else if (!any)
    kl_ev_drop_any(ev, out);
}

static kiln_status bind(kl_ev *ev, const kl_instr *in, const kl_evval *const operands[3], kl_ew *e) {
  *e = (kl_ew){.op = in->op,
               .nin = in->noperands,
               .out = in->shape->dtype,
               .direction = in->direction,
               .compare = in->compare_type,
               .exponent_bits = in->exponent_bits,
               .mantissa_bits = in->mantissa_bits,
               .fast = ev->fast};
  if (in->noperands < 1 || in->noperands > 3) return kl_fail(ev->cx, KILN_E_INTERNAL, in->span, "operand count");
  for (uint32_t k = 0; k < e->nin; k++) e->in[k] = operands[k]->shape->dtype;
  if (!kl_ew_bind(e))
    return kl_unsupported(ev->cx, in->span, "no evaluation of %s on %s", kl_op_name(in->op), kiln_dtype_name(e->in[0]));
  return KILN_OK;
}

static bool wants_intervals(const kl_ev *ev, const job *job) {
  bool inexact = kl_iv_widens(job->e), open_nan = false;
  for (uint32_t k = 0; k < job->e->nin; k++) {
    inexact |= !kl_ev_exact(job->in[k]);
    open_nan |= job->nan_open[k];
  }
  return ev->intervals && (inexact || (open_nan && job->e->compare == KL_CMP_TOTALORDER));
}

static void set_operands(job *job, const kl_evval *const operands[3]) {
  for (uint32_t k = 0; k < job->e->nin; k++) {
    job->in[k] = operands[k];
    while (!kl_ev_same(operands[job->first[k]], operands[k])) job->first[k]++;
    job->nan_open[k] = !operands[k]->raw && kl_is_float(job->e->in[k]);
  }
}

kiln_status kl_ev_elementwise(kl_ev *ev, const kl_instr *in, const kl_evval *const operands[3], kl_evval *out) {
  kl_ew e;
  KL_TRY(bind(ev, in, operands, &e));
  if (e.run == run_copy) {
    *out = kl_ev_share(operands[0], in->shape);
    return KILN_OK;
  }
  bool splat = in->shape->count > 1;
  job job = {.e = &e, .out = out};
  set_operands(&job, operands);
  for (uint32_t k = 0; k < e.nin; k++) splat &= kl_ev_single(operands[k]);
  job.intervals = wants_intervals(ev, &job);
  KL_TRY(kl_ev_new(ev, in->shape, splat, job.intervals, out));
  out->raw = keeps_bits(e.op);
  for (uint32_t k = e.op == KL_OP_SELECT; k < e.nin; k++) out->raw &= operands[k]->raw;
  int64_t n = splat ? 1 : in->shape->count, grain = job.intervals ? 1 << 13 : 1 << 15;
  if (n == 1 && !job.intervals) { // then every operand has one element, too
    const void *one[3] = {NULL, NULL, NULL};
    for (uint32_t k = 0; k < e.nin; k++) one[k] = kl_ev_plane(operands[k], KL_EV_DATA);
    e.run(&e, 1, one, kl_ev_plane(out, KL_EV_DATA));
    return KILN_OK;
  }
  uint32_t workers = kl_ev_workers(ev, n, grain);
  size_t table, scratch = job.intervals ? workers * kl_iv_scratch_size : 0;
  tabulate(ev, &e, n, &table);
  job.state = kl_try_alloc(ev->cx, workers * sizeof(worker_state));
  job.scratch = scratch ? kl_try_alloc(ev->cx, scratch) : NULL;
  bool ok = job.state && (job.scratch || !scratch);
  if (ok) kl_ev_parallel(ev, n, grain, run_piece, &job);
  if (ok && job.intervals) settle(ev, &job, workers, out);
  kl_free(ev->cx, (void *)e.table, table);
  kl_free(ev->cx, job.scratch, scratch);
  kl_free(ev->cx, job.state, workers * sizeof(worker_state));
  if (ok) return KILN_OK;
  kl_ev_free(ev, out);
  return kl_out_of_memory(ev->cx, workers * sizeof(worker_state) + scratch, "an elementwise op");
}

kiln_status kl_ev_apply_op(kl_ev *ev, kl_op op, const kl_shape *s, const kl_evval *a, const kl_evval *b,
                           kl_evval *out) {
  static const uint32_t places[2] = {0, 1};
  kl_instr in = {.op = op, .shape = s, .noperands = b ? 2 : 1, .operands = places, .more = &kl_no_more};
  return kl_ev_elementwise(ev, &in, (const kl_evval *const[3]){a, b, NULL}, out);
}
