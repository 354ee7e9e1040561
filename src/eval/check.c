// The evaluator behind the public interface: buffers in, buffers out, and the verdict on results made elsewhere.
#include "eval/arranged.h"
#include "ir/index/layout/layout.h"

#include <stdatomic.h>

// --- one element --------------------------------------------------------------------------------------------------

static bool part_allowed(kl_dtype part, uint64_t data, uint64_t lo, uint64_t hi, uint64_t bits) {
  if (bits == data) return true;
  if (kl_is_float(part)) {
    bool nan = kl_float_is_nan(part, bits);
    if (nan || kl_float_is_nan(part, data)) return nan && kl_float_is_nan(part, data);
  }
  int64_t key = kl_iv_key(part, bits);
  return key >= kl_iv_key(part, lo) && key <= kl_iv_key(part, hi);
}

bool kl_result_allows(const kl_result *r, int64_t i, const uint64_t bits[2]) {
  kl_dtype t = r->data.shape->dtype, part = kl_is_complex(t) ? kl_info(t)->part : t;
  if (r->any && r->any[i / 64] >> (i % 64) & 1) return true;
  for (int lane = 0; lane < (kl_is_complex(t) ? 2 : 1); lane++)
    if (!part_allowed(part, kl_element_get(t, r->data.data, i, lane), kl_element_get(t, r->lo, i, lane),
                      kl_element_get(t, r->hi, i, lane), bits[lane]))
      return false;
  return true;
}

// --- one result ---------------------------------------------------------------------------------------------------

typedef struct compare_job {
  const kl_result *expected;
  const char *found; // unpacked
  _Atomic int64_t count, first;
} compare_job;

static void compare_piece(void *arg, uint32_t worker, int64_t begin, int64_t end) {
  compare_job *job = arg;
  kl_dtype t = job->expected->data.shape->dtype;
  size_t size = kl_ev_size(t);
  const char *data = job->expected->data.data;
  int64_t count = 0, first = INT64_MAX;
  for (int64_t i = begin; i < end; i++) {
    size_t at = (size_t)i * size;
    if (memcmp(data + at, job->found + at, size) == 0) continue;
    uint64_t bits[2] = {kl_element_get(t, job->found, i, 0),
                        kl_is_complex(t) ? kl_element_get(t, job->found, i, 1) : 0};
    // A byte other than 0 and 1 is no pred, though it reads as true.
    bool right = t == KILN_PRED && (uint8_t)job->found[i] > 1 ? false : kl_result_allows(job->expected, i, bits);
    if (right) continue;
    if (count++ == 0) first = i;
  }
  if (!count) return;
  atomic_fetch_add(&job->count, count);
  int64_t seen = atomic_load(&job->first);
  while (first < seen && !atomic_compare_exchange_weak(&job->first, &seen, first)) {}
}

static void element_text(char buf[96], kl_dtype t, const void *data, int64_t i) {
  uint64_t bits[2] = {kl_element_get(t, data, i, 0), kl_is_complex(t) ? kl_element_get(t, data, i, 1) : 0};
  kl_scalar_text(buf, t, bits);
}

static void append(char *to, size_t room, size_t *n, const char *text) {
  while (*text && *n + 1 < room) to[(*n)++] = *text++;
  to[*n] = 0;
}

static void expected_text(char buf[200], const kl_result *r, int64_t i) {
  kl_dtype t = r->data.shape->dtype;
  size_t size = kl_ev_size(t), at = (size_t)i * size, n = 0;
  char lo[96], hi[96];
  bool point = memcmp((char *)r->lo + at, (char *)r->hi + at, size) == 0;
  element_text(lo, t, r->lo, i);
  element_text(hi, t, r->hi, i);
  if (!point) append(buf, 200, &n, "[");
  append(buf, 200, &n, lo);
  if (point) return;
  append(buf, 200, &n, ", ");
  append(buf, 200, &n, hi);
  append(buf, 200, &n, "]");
}

static void found_text(char buf[96], kl_dtype t, const void *data, int64_t i) {
  uint8_t byte = *((const uint8_t *)data + i * (int64_t)kl_ev_size(t));
  size_t n = 0;
  if (t == KILN_PRED && byte > 1)
    append(buf, 96, &n, "a byte that is neither 0 nor 1");
  else
    element_text(buf, t, data, i);
}

static void compare(const kl_ev *ev, const kl_result *expected, const void *found, kiln_mismatch *out) {
  compare_job job = {expected, found, 0, INT64_MAX};
  *out = (kiln_mismatch){0};
  kl_ev_parallel(ev, expected->data.shape->count, 1 << 16, compare_piece, &job);
  out->count = job.count;
  if (!job.count) return;
  out->element = job.first;
  found_text(out->found, expected->data.shape->dtype, found, out->element);
  expected_text(out->expected, expected, out->element);
}

// --- buffers ------------------------------------------------------------------------------------------------------

static bool in_place(const kl_shape *s) {
  return kl_info(s->dtype)->bits >= 8 && kl_shape_default_layout(s);
}

// Are the buffers of these leaves there? `number`: of the first one.
static kiln_status expect_buffers(kl_ctx *cx, const kl_shape *s, const void *const *buffers, size_t number,
                                  const char *what) {
  for (size_t leaf = 0; leaf < kl_shape_leaf_count(s); leaf++) {
    const kl_shape *part = kl_shape_leaf(s, leaf);
    if (!kl_shape_is_array(part)) continue;
    if (!buffers) return kl_invalid(cx, KL_NOWHERE, "expected an array of %ss, found NULL", what);
    if (part->count && !buffers[number + leaf])
      return kl_invalid(cx, KL_NOWHERE, "%s %zu: expected a buffer, found NULL", what, number + leaf);
  }
  return KILN_OK;
}

static kiln_status expect_all(kl_ctx *cx, const kiln_module *m, const void *const *args, const void *const *results) {
  const kl_comp *c = &m->comp[m->entry];
  size_t n = 0;
  for (uint32_t k = 0; k < c->nparams; k++) {
    const kl_shape *s = c->instr[c->params[k]].shape;
    KL_TRY(expect_buffers(cx, s, args, n, "parameter"));
    n += kl_shape_leaf_count(s);
  }
  return expect_buffers(cx, kl_root(c)->shape, results, 0, "result");
}

// Does the layout say where elements lie?
static kiln_status expect_places(kl_ctx *cx, const kl_shape *s, const char *what) {
  kl_physical p;
  kl_physical_error e = kl_layout_is_order(s) ? KL_PHYSICAL_OK : kl_physical_of(s, &p);
  return e ? kl_unsupported(cx, KL_NOWHERE, "%s has %s", what, kl_physical_error_text(e)) : KILN_OK;
}

static kiln_status unpack(kl_ctx *cx, const kl_shape *s, const void *buffer, kl_array *out, const char *what) {
  *out = (kl_array){s, (void *)buffer};
  if (in_place(s)) return KILN_OK;
  KL_TRY(expect_places(cx, s, what));
  int64_t bytes;
  out->data = NULL;
  if (!__builtin_mul_overflow(s->count, (int64_t)kl_ev_size(s->dtype), &bytes))
    out->data = kl_try_alloc(cx, (size_t)bytes);
  if (!out->data) return kl_out_of_memory(cx, SIZE_MAX, what);
  kl_array_unpack(out, buffer);
  return KILN_OK;
}

static void free_unpacked(kl_ctx *cx, kl_array *a, const void *buffer) {
  if (a->data && a->data != buffer) kl_free(cx, a->data, (size_t)a->shape->count * kl_ev_size(a->shape->dtype));
  *a = (kl_array){0};
}

static kiln_status unpack_args(kl_ctx *cx, const kl_interface *io, const void *const *args, kl_array *out) {
  for (size_t n = 0; n < io->nparams; n++) {
    if (!kl_shape_is_array(io->dense[n])) continue; // the evaluator knows which it takes
    KL_TRY(unpack(cx, io->dense[n], args[n], &out[n], "a parameter"));
  }
  return KILN_OK;
}

// An evaluated result, to be laid out as its buffer is.
static void lay_out(const kl_interface *io, kl_result *results) {
  for (size_t k = 0; k < io->nresults; k++)
    if (results[k].data.shape) results[k].data.shape = io->dense[io->nparams + k];
}

// Evaluates ENTRY on packed buffers. `results` has room for its leaves.
static kiln_status eval_entry(kl_ctx *cx, const kiln_module *m, const void *const *args, const kl_eval_opts *opts,
                              kl_result *results) {
  size_t n = m->interface.nparams;
  kl_array *arrays = kl_alloc(cx, sizeof(kl_array) * (n + 1));
  kiln_status status = unpack_args(cx, &m->interface, args, arrays);
  if (status == KILN_OK) status = kl_eval(cx, m, m->entry, arrays, opts, results);
  if (status == KILN_OK) lay_out(&m->interface, results);
  for (size_t k = 0; k < n; k++) free_unpacked(cx, &arrays[k], args[k]);
  kl_free(cx, arrays, sizeof(kl_array) * (n + 1));
  return status;
}

static kiln_status eval_into(kl_ctx *cx, const kiln_module *m, const void *const *args, void *const *results,
                             const kl_eval_opts *opts) {
  size_t n = m->interface.nresults;
  kl_result *values = kl_alloc(cx, sizeof(kl_result) * (n + 1));
  kiln_status status = eval_entry(cx, m, args, opts, values);
  for (size_t k = 0; k < n && status == KILN_OK; k++)
    if (values[k].data.shape) status = expect_places(cx, values[k].data.shape, "a result");
  for (size_t k = 0; k < n; k++) {
    if (status == KILN_OK && values[k].data.shape) kl_array_pack(&values[k].data, results[k]);
    kl_result_free(cx, &values[k]);
  }
  kl_free(cx, values, sizeof(kl_result) * (n + 1));
  return status;
}

static kiln_status check_params(kl_ctx *cx, const kiln_eval_params *p) {
  if ((unsigned)p->numerics <= KILN_NUMERICS_FAST) return KILN_OK;
  return kl_invalid(cx, KL_NOWHERE, "numerics is %d: expected strict (0) or fast (1)", (int)p->numerics);
}

kiln_status kiln_module_eval(kl_ctx *cx, const kiln_module *m, const void *const *args, void *const *results,
                             const kiln_eval_params *params) {
  kiln_eval_params own;
  KL_EXPECT(cx, m);
  KL_TRY(KL_PARAMS_IN(cx, kiln_eval_params, params, &own));
  KL_TRY(check_params(cx, &own));
  KL_TRY(expect_all(cx, m, args, (const void *const *)results));
  kl_memory_limit before = kl_limit_memory(cx, own.max_bytes);
  kiln_status status = eval_into(cx, m, args, results, &(kl_eval_opts){.threads = own.threads});
  cx->limit = before;
  return status;
}

typedef struct verdict {
  kiln_mismatch *out;
  size_t max, count;
} verdict;

static void tell(verdict *v, const kiln_mismatch *m) {
  if (v->count++ < v->max) v->out[v->count - 1] = *m;
}

// Of results that lie together with others each arrangement once, by its first; those whose values differ are told
// already.
static kiln_status judge_arranged(const kl_ev *ev, size_t n, const kl_result *values, const kl_array *found,
                                  const bool *wrong, verdict *v) {
  for (size_t k = 0; k < n; k++) {
    const kl_arrangement *a = values[k].arranged;
    bool told = !a;
    for (size_t i = 0; i < n && a; i++) told |= values[i].arranged == a && (i < k || wrong[i]);
    if (told) continue;
    kiln_mismatch m = {.result = k};
    KL_TRY(kl_check_arranged(ev, a, n, values, found, &m.count, &m.element));
    if (!m.count) continue;
    size_t used = 0;
    found_text(m.found, values[k].data.shape->dtype, found[k].data, m.element);
    append(m.expected, sizeof m.expected, &used, "an element of the sort's line, once, what is beside it with it");
    tell(v, &m);
  }
  return KILN_OK;
}

static kiln_status judge_results(const kl_ev *ev, size_t n, const kl_result *values, const void *const *results,
                                 kl_array *found, bool *wrong, verdict *v) {
  for (size_t k = 0; k < n; k++) {
    kiln_mismatch mismatch;
    if (!values[k].data.shape) continue;
    KL_TRY(unpack(ev->cx, values[k].data.shape, results[k], &found[k], "a result"));
    compare(ev, &values[k], found[k].data, &mismatch);
    mismatch.result = k;
    wrong[k] = mismatch.count;
    if (mismatch.count) tell(v, &mismatch);
    if (!values[k].arranged) free_unpacked(ev->cx, &found[k], results[k]);
  }
  return judge_arranged(ev, n, values, found, wrong, v);
}

static kiln_status judge(kl_ctx *cx, const kiln_module *m, const void *const *args, const void *const *results,
                         const kl_eval_opts *opts, verdict *v) {
  size_t n = m->interface.nresults;
  kl_ev ev = {.cx = cx, .threads = opts->threads ? opts->threads : kl_cores()};
  kl_result *values = kl_alloc(cx, sizeof(kl_result) * (n + 1));
  kl_array *found = kl_alloc(cx, sizeof(kl_array) * (n + 1));
  bool *wrong = kl_alloc(cx, n + 1);
  kiln_status status = eval_entry(cx, m, args, opts, values);
  if (status == KILN_OK) status = judge_results(&ev, n, values, results, found, wrong, v);
  for (size_t k = 0; k < n; k++) {
    free_unpacked(cx, &found[k], results[k]);
    kl_result_free(cx, &values[k]);
  }
  kl_free(cx, wrong, n + 1);
  kl_free(cx, found, sizeof(kl_array) * (n + 1));
  kl_free(cx, values, sizeof(kl_result) * (n + 1));
  return status;
}

kiln_status kiln_module_check(kl_ctx *cx, const kiln_module *m, const void *const *args, const void *const *results,
                              kiln_mismatch *out, size_t max, size_t *count, const kiln_eval_params *params) {
  kiln_eval_params own;
  verdict v = {out, max, 0};
  KL_CLEAR(count);
  KL_EXPECT(cx, m, count);
  if (max) KL_EXPECT(cx, out);
  KL_TRY(KL_PARAMS_IN(cx, kiln_eval_params, params, &own));
  KL_TRY(check_params(cx, &own));
  KL_TRY(expect_all(cx, m, args, results));
  kl_eval_opts opts = {.intervals = true, .fast = own.numerics == KILN_NUMERICS_FAST, .threads = own.threads};
  kl_memory_limit before = kl_limit_memory(cx, own.max_bytes);
  kiln_status status = judge(cx, m, args, results, &opts, &v);
  cx->limit = before;
  *count = v.count;
  return status;
}
