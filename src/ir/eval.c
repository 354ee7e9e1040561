// The evaluator's driver: values and their lives, computations instruction by instruction, results.
//
// Only what the root needs is evaluated; each value is freed after its last use. Parameters and constants are borrowed.
#include "ir/eval_impl.h"

#include <fenv.h>

enum {
  MAX_CALL_DEPTH = 256, // nested fusions and calls; each takes C stack
  MAX_LEAVES = 1 << 24, // arrays of one computation; tuples of tuples can name more than memory holds
};

// --- values -------------------------------------------------------------------------------------------------------

static kl_evbuf *new_buffer(kl_ev *ev, void *p, size_t size, bool owned) {
  kl_evbuf *b = kl_alloc(ev->cx, sizeof *b);
  *b = (kl_evbuf){p, size, 1, owned};
  return b;
}

static void release(kl_ev *ev, kl_evbuf *b) {
  if (!b || --b->refs) return;
  if (b->owned) kl_free(ev->cx, b->p, b->size);
  kl_free(ev->cx, b, sizeof *b);
}

static kl_evbuf *retain(kl_evbuf *b) {
  if (b) b->refs++;
  return b;
}

// -1 if the size does not fit.
static int64_t plane_bytes(const kl_shape *s, bool splat, int plane) {
  int64_t bytes, size = plane == KL_EV_ANY ? 1 : (int64_t)kl_ev_size(s->dtype);
  return __builtin_mul_overflow(splat ? 1 : s->count, size, &bytes) ? -1 : bytes;
}

static kl_evbuf *try_buffer(kl_ev *ev, const kl_shape *s, bool splat, int plane) {
  int64_t bytes = plane_bytes(s, splat, plane);
  void *p = bytes < 0 ? NULL : kl_try_alloc(ev->cx, (size_t)bytes);
  return p ? new_buffer(ev, p, (size_t)bytes, true) : NULL;
}

kiln_status kl_ev_new(kl_ev *ev, const kl_shape *s, bool splat, bool inexact, kl_evval *out) {
  *out = (kl_evval){.shape = s, .splat = splat};
  for (int plane = 0; plane < KL_EV_PLANES; plane++) {
    if (plane == KL_EV_DATA || inexact)
      out->plane[plane] = try_buffer(ev, s, splat, plane);
    else
      out->plane[plane] = plane == KL_EV_ANY ? NULL : retain(out->plane[KL_EV_DATA]);
    if (!out->plane[plane] && (plane != KL_EV_ANY || inexact)) {
      int64_t bytes = plane_bytes(s, splat, plane);
      kl_ev_free(ev, out);
      return kl_out_of_memory(ev->cx, bytes < 0 ? SIZE_MAX : (size_t)bytes, "an evaluated array");
    }
  }
  return KILN_OK;
}

kl_evval kl_ev_share(const kl_evval *v, const kl_shape *s) {
  kl_evval r = *v;
  r.shape = s;
  for (int plane = 0; plane < KL_EV_PLANES; plane++) retain(r.plane[plane]);
  return r;
}

void kl_ev_free(kl_ev *ev, kl_evval *v) {
  for (int plane = 0; plane < KL_EV_PLANES; plane++) release(ev, v->plane[plane]);
  *v = (kl_evval){0};
}

void kl_ev_drop_any(kl_ev *ev, kl_evval *v) {
  release(ev, v->plane[KL_EV_ANY]);
  v->plane[KL_EV_ANY] = NULL;
}

void kl_ev_drop_interval(kl_ev *ev, kl_evval *v) {
  kl_ev_drop_any(ev, v);
  for (int plane = KL_EV_LO; plane <= KL_EV_HI; plane++) {
    release(ev, v->plane[plane]);
    v->plane[plane] = retain(v->plane[KL_EV_DATA]);
  }
}

static kl_evval borrow(kl_ev *ev, const kl_shape *s, const void *data) {
  kl_evval v = {.shape = s, .raw = true};
  v.plane[KL_EV_DATA] = new_buffer(ev, (void *)data, 0, false); // never written
  v.plane[KL_EV_LO] = retain(v.plane[KL_EV_DATA]);
  v.plane[KL_EV_HI] = retain(v.plane[KL_EV_DATA]);
  return v;
}

// --- one computation ----------------------------------------------------------------------------------------------

typedef struct frame {
  const kl_comp *comp;
  const kl_evval *params; // leaves of all parameters, in order
  size_t *first;          // ninstr + 1: where each instruction's leaves are in `leaves`
  kl_evval *leaves;
  uint32_t *last_use; // index of the last instruction that reads this one; its own where nobody does
  bool *live;
} frame;

static kiln_status eval_computation(kl_ev *ev, uint32_t comp, const kl_evval *params, kl_evval *results);

static kl_evval *leaves_of(const frame *f, uint32_t i) {
  return &f->leaves[f->first[i]];
}
static size_t leaf_count(const frame *f, uint32_t i) {
  return f->first[i + 1] - f->first[i];
}

static kiln_status init_frame(kl_ev *ev, frame *f) {
  uint32_t n = f->comp->ninstr;
  f->first = kl_alloc(ev->cx, sizeof(size_t) * (n + 1u));
  for (uint32_t i = 0; i < n; i++) {
    size_t leaves = kl_shape_leaf_count(f->comp->instr[i].shape);
    f->first[i + 1] = f->first[i] + leaves;
    if (leaves <= MAX_LEAVES && f->first[i + 1] <= MAX_LEAVES) continue;
    kl_free(ev->cx, f->first, sizeof(size_t) * (n + 1u));
    return kl_unsupported(ev->cx, f->comp->instr[i].span, "more than %d arrays in tuples", MAX_LEAVES);
  }
  f->leaves = kl_alloc(ev->cx, sizeof(kl_evval) * (f->first[n] + 1));
  f->last_use = kl_alloc(ev->cx, sizeof(uint32_t) * n);
  f->live = kl_alloc(ev->cx, n);
  f->live[f->comp->root] = true;
  for (uint32_t i = 0; i < n; i++) f->last_use[i] = i;
  f->last_use[f->comp->root] = UINT32_MAX;
  for (uint32_t i = n; i-- > 0;) {
    const kl_instr *in = &f->comp->instr[i];
    for (uint32_t k = 0; f->live[i] && k < in->noperands; k++) {
      uint32_t from = in->operands[k];
      f->live[from] = true;
      if (f->last_use[from] < i) f->last_use[from] = i;
    }
  }
  return KILN_OK;
}

static void free_leaves(kl_ev *ev, frame *f, uint32_t i) {
  for (size_t k = 0; k < leaf_count(f, i); k++) kl_ev_free(ev, &leaves_of(f, i)[k]);
}

static void free_frame(kl_ev *ev, frame *f) {
  uint32_t n = f->comp->ninstr;
  for (uint32_t i = 0; i < n; i++) free_leaves(ev, f, i);
  kl_free(ev->cx, f->live, n);
  kl_free(ev->cx, f->last_use, sizeof(uint32_t) * n);
  kl_free(ev->cx, f->leaves, sizeof(kl_evval) * (f->first[n] + 1));
  kl_free(ev->cx, f->first, sizeof(size_t) * (n + 1u));
}

static kiln_status eval_parameter(frame *f, const kl_instr *in, kl_evval *out) {
  size_t from = 0;
  for (int64_t p = 0; p < in->number; p++) from += kl_shape_leaf_count(f->comp->instr[f->comp->params[p]].shape);
  for (size_t k = 0; k < kl_shape_leaf_count(in->shape); k++)
    out[k] = kl_ev_share(&f->params[from + k], kl_shape_leaf(in->shape, k));
  return KILN_OK;
}

// Leaves of the operands one after the other: a tuple's value, or the parameters of a call.
static size_t gather_leaves(const frame *f, const kl_instr *in, kl_evval *out) {
  size_t n = 0;
  for (uint32_t k = 0; k < in->noperands; k++)
    for (size_t leaf = 0; leaf < leaf_count(f, in->operands[k]); leaf++) {
      const kl_evval *v = &leaves_of(f, in->operands[k])[leaf];
      out[n++] = kl_ev_share(v, v->shape);
    }
  return n;
}

static kiln_status eval_call(kl_ev *ev, const frame *f, const kl_instr *in, kl_evval *out) {
  size_t n = 0;
  for (uint32_t k = 0; k < in->noperands; k++) n += leaf_count(f, in->operands[k]);
  if (ev->depth >= MAX_CALL_DEPTH)
    return kl_unsupported(ev->cx, in->span, "calls nested more than %d deep", MAX_CALL_DEPTH);
  kl_evval *params = kl_alloc(ev->cx, sizeof(kl_evval) * (n + 1));
  gather_leaves(f, in, params);
  ev->depth++;
  kiln_status status = eval_computation(ev, in->called, params, out);
  ev->depth--;
  for (size_t k = 0; k < n; k++) kl_ev_free(ev, &params[k]);
  kl_free(ev->cx, params, sizeof(kl_evval) * (n + 1));
  return status;
}

static kiln_status eval_gte(const frame *f, const kl_instr *in, kl_evval *out) {
  const kl_shape *tuple = f->comp->instr[in->operands[0]].shape;
  size_t from = 0;
  for (int64_t k = 0; k < in->number; k++) from += kl_shape_leaf_count(tuple->elems[k]);
  for (size_t k = 0; k < kl_shape_leaf_count(in->shape); k++) {
    const kl_evval *v = &leaves_of(f, in->operands[0])[from + k];
    out[k] = kl_ev_share(v, v->shape);
  }
  return KILN_OK;
}

static kiln_status check_leaves(kl_ev *ev, const kl_instr *in) {
  for (size_t k = 0; k < kl_shape_leaf_count(in->shape); k++) {
    const kl_shape *s = kl_shape_leaf(in->shape, k);
    if (!kl_shape_is_array(s))
      return kl_unsupported(ev->cx, in->span, "no evaluation of a value of type %s", kiln_dtype_name(s->dtype));
    for (uint32_t d = 0; s->dynamic && d < s->rank; d++)
      if (s->dynamic[d]) return kl_unsupported(ev->cx, in->span, "no evaluation of dynamic dimensions");
  }
  return KILN_OK;
}

static kiln_status unknown_op(kl_ev *ev, const kl_instr *in) {
  if (in->op != KL_OP_UNKNOWN) return kl_unsupported(ev->cx, in->span, "no evaluation of %s", kl_op_name(in->op));
  kl_str name = kl_symbol_text(&ev->m->names, in->opcode_text);
  return kl_unsupported(ev->cx, in->span, "no evaluation of opcode '%.*s'", KL_FMT(name));
}

static kiln_status eval_array_op(kl_ev *ev, const frame *f, const kl_instr *in, kl_evval *out) {
  const kl_evval **operands = kl_alloc(ev->cx, sizeof(kl_evval *) * (in->noperands + 3u));
  kiln_status status = KILN_OK;
  for (uint32_t k = 0; k < in->noperands && status == KILN_OK; k++) {
    if (leaf_count(f, in->operands[k]) != 1 || !kl_shape_is_array(f->comp->instr[in->operands[k]].shape))
      status = kl_unsupported(ev->cx, in->span, "%s: operand %u is no array", kl_op_name(in->op), k);
    operands[k] = leaves_of(f, in->operands[k]);
  }
  if (status == KILN_OK) {
    if (in->op == KL_OP_BITCAST_CONVERT)
      status = kl_ev_bitcast_convert(ev, in, operands[0], out);
    else if (kl_op_is_elementwise(in->op))
      status = kl_ev_elementwise(ev, in, operands, out);
    else
      status = kl_ev_move(ev, in, operands, out);
  }
  kl_free(ev->cx, operands, sizeof(kl_evval *) * (in->noperands + 3u));
  return status;
}

static kiln_status eval_instruction(kl_ev *ev, frame *f, const kl_instr *in, kl_evval *out) {
  KL_TRY(check_leaves(ev, in));
  switch (in->op) {
  case KL_OP_UNKNOWN: return unknown_op(ev, in);
  case KL_OP_PARAMETER: return eval_parameter(f, in, out);
  case KL_OP_CONSTANT:
    if (!in->literal) return unknown_op(ev, in);
    *out = borrow(ev, in->shape, in->literal->data);
    return KILN_OK;
  case KL_OP_TUPLE: gather_leaves(f, in, out); return KILN_OK;
  case KL_OP_GET_TUPLE_ELEMENT: return eval_gte(f, in, out);
  case KL_OP_FUSION:
  case KL_OP_CALL: return eval_call(ev, f, in, out);
  default: return eval_array_op(ev, f, in, out);
  }
}

// `results` gets the root's leaves, nothing on failure.
static kiln_status eval_computation(kl_ev *ev, uint32_t comp, const kl_evval *params, kl_evval *results) {
  frame f = {.comp = &ev->m->comp[comp], .params = params};
  KL_TRY(init_frame(ev, &f));
  kiln_status status = KILN_OK;
  for (uint32_t i = 0; i < f.comp->ninstr && status == KILN_OK; i++) {
    const kl_instr *in = &f.comp->instr[i];
    if (!f.live[i]) continue;
    status = eval_instruction(ev, &f, in, leaves_of(&f, i));
    for (uint32_t k = 0; k < in->noperands; k++)
      if (f.last_use[in->operands[k]] == i) free_leaves(ev, &f, in->operands[k]);
  }
  if (status == KILN_OK) {
    kl_evval *root = leaves_of(&f, f.comp->root);
    size_t n = leaf_count(&f, f.comp->root);
    memcpy(results, root, sizeof(kl_evval) * n);
    memset(root, 0, sizeof(kl_evval) * n);
  }
  free_frame(ev, &f);
  return status;
}

// --- results ------------------------------------------------------------------------------------------------------

// A plane as memory of its own; shared and borrowed ones are copied.
static void *take_plane(kl_ev *ev, kl_evval *v, int plane) {
  kl_evbuf *b = v->plane[plane];
  size_t size = (size_t)plane_bytes(v->shape, false, plane);
  if (b->owned && b->refs == 1) {
    b->owned = false;
    return b->p;
  }
  void *p = kl_try_alloc(ev->cx, size);
  if (p && size) memcpy(p, b->p, size);
  return p;
}

static size_t bitmap_bytes(int64_t count) {
  return (size_t)(count / 64 + (count % 64 != 0)) * sizeof(uint64_t);
}

static bool take_any(kl_ev *ev, const kl_evval *v, uint64_t **out) {
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  if (!any) return true;
  *out = kl_try_alloc(ev->cx, bitmap_bytes(v->shape->count));
  for (int64_t i = 0; *out && i < v->shape->count; i++) (*out)[i / 64] |= (uint64_t)(any[i] != 0) << (i % 64);
  return *out != NULL;
}

static kiln_status make_result(kl_ev *ev, kl_evval *value, kl_result *r) {
  kl_evval v = *value;
  if (v.splat)
    KL_TRY(kl_ev_expand(ev, value, &v));
  else
    *value = (kl_evval){0};
  bool exact = v.plane[KL_EV_LO] == v.plane[KL_EV_DATA] && v.plane[KL_EV_HI] == v.plane[KL_EV_DATA], ok = true;
  *r = (kl_result){.data.shape = v.shape};
  if (exact) { // the references from lo and hi are the value's own
    release(ev, v.plane[KL_EV_LO]);
    release(ev, v.plane[KL_EV_HI]);
    v.plane[KL_EV_LO] = v.plane[KL_EV_HI] = NULL;
  }
  ok = (r->data.data = take_plane(ev, &v, KL_EV_DATA)) != NULL;
  if (exact) r->lo = r->hi = r->data.data;
  if (!exact) ok = ok && (r->lo = take_plane(ev, &v, KL_EV_LO)) && (r->hi = take_plane(ev, &v, KL_EV_HI));
  ok = ok && take_any(ev, &v, &r->any);
  size_t size = (size_t)plane_bytes(v.shape, false, KL_EV_DATA);
  kl_ev_free(ev, &v);
  if (ok) return KILN_OK;
  kl_result_free(ev->cx, r);
  return kl_out_of_memory(ev->cx, size, "a result");
}

void kl_result_free(kl_ctx *cx, kl_result *r) {
  if (!r->data.shape) return;
  size_t size = (size_t)plane_bytes(r->data.shape, false, KL_EV_DATA);
  if (r->lo != r->data.data) kl_free(cx, r->lo, size);
  if (r->hi != r->data.data) kl_free(cx, r->hi, size);
  kl_free(cx, r->any, bitmap_bytes(r->data.shape->count));
  kl_free(cx, r->data.data, size);
  *r = (kl_result){0};
}

static kiln_status make_results(kl_ev *ev, size_t n, kl_evval *values, kl_result *results) {
  kiln_status status = KILN_OK;
  for (size_t k = 0; k < n; k++) {
    results[k] = (kl_result){0};
    if (status == KILN_OK) status = make_result(ev, &values[k], &results[k]);
    kl_ev_free(ev, &values[k]);
  }
  for (size_t k = 0; k < n && status != KILN_OK; k++) kl_result_free(ev->cx, &results[k]);
  return status;
}

// Leaves of all parameters, in order.
static size_t param_leaves(const kl_comp *c) {
  size_t n = 0;
  for (uint32_t k = 0; k < c->nparams; k++) n += kl_shape_leaf_count(c->instr[c->params[k]].shape);
  return n;
}

static kiln_status borrow_args(kl_ev *ev, const kl_comp *c, const kl_array *args, kl_evval *out) {
  size_t n = 0;
  for (uint32_t k = 0; k < c->nparams; k++) {
    const kl_instr *in = &c->instr[c->params[k]];
    KL_TRY(check_leaves(ev, in));
    for (size_t leaf = 0; leaf < kl_shape_leaf_count(in->shape); leaf++, n++)
      out[n] = borrow(ev, kl_shape_leaf(in->shape, leaf), args[n].data);
  }
  return KILN_OK;
}

kiln_status kl_eval(kl_ctx *cx, const kiln_module *m, uint32_t comp, const kl_array *args, const kl_eval_opts *opts,
                    kl_result *results) {
  static const kl_eval_opts none = {0};
  const kl_comp *c = &m->comp[comp];
  if (!opts) opts = &none;
  kl_ev ev = {cx, m, opts->intervals, opts->threads ? opts->threads : kl_ev_cores(), 0};
  size_t n = kl_shape_leaf_count(kl_root(c)->shape), nparams = param_leaves(c);
  kl_evval *params = kl_alloc(cx, sizeof(kl_evval) * (nparams + 1));
  kl_evval *values = kl_alloc(cx, sizeof(kl_evval) * (n + 1));
  fenv_t env;
  fegetenv(&env);
  fesetenv(FE_DFL_ENV); // whatever the host process set: round to nearest, denormals kept
  kiln_status status = borrow_args(&ev, c, args, params);
  if (status == KILN_OK) status = eval_computation(&ev, comp, params, values);
  if (status == KILN_OK) status = make_results(&ev, n, values, results);
  fesetenv(&env);
  for (size_t k = 0; k < nparams; k++) kl_ev_free(&ev, &params[k]);
  kl_free(cx, values, sizeof(kl_evval) * (n + 1));
  kl_free(cx, params, sizeof(kl_evval) * (nparams + 1));
  return status;
}
