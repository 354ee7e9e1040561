// Structure and control flow: tuples, calls, loops, conditionals, tokens, and asynchronous pairs, which are evaluated
// where they start.
#include "eval/impl.h"

// --- structure ----------------------------------------------------------------------------------------------------

static void take_leaves(kl_ev *ev, const kl_evval *const *operands, size_t n, kl_evval *out) {
  for (size_t k = 0; k < n; k++) out[k] = kl_ev_take(ev, operands, k, operands[k]->shape);
}

kiln_status kl_ev_forward(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                          kl_evval *out) {
  take_leaves(ev, operands, kl_shape_leaf_count(in->shape), out);
  return KILN_OK;
}

kiln_status kl_ev_token(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                        kl_evval *out) {
  out[0] = (kl_evval){.shape = in->shape};
  return KILN_OK;
}

static size_t operand_leaves(const kl_comp *c, const kl_instr *in) {
  size_t n = 0;
  for (uint32_t k = 0; k < in->noperands; k++) n += kl_shape_leaf_count(kl_operand(c, in, k)->shape);
  return n;
}

// Evaluates a computation on `n` of the operands' leaves.
static kiln_status call(kl_ev *ev, uint32_t comp, const kl_evval *const *operands, size_t n, kl_evval *out) {
  kl_ev_code *code;
  kl_evval *params = kl_alloc(ev->cx, sizeof(kl_evval) * (n + 1));
  kiln_status status = kl_ev_code_new(ev, comp, &code);
  if (status == KILN_OK) {
    take_leaves(ev, operands, n, params);
    status = kl_ev_run(ev, code, params, out);
    kl_ev_code_free(ev, code);
  }
  kl_free(ev->cx, params, sizeof(kl_evval) * (n + 1));
  return status;
}

kiln_status kl_ev_call(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                       kl_evval *out) {
  return call(ev, in->called[0], operands, operand_leaves(c, in), out);
}

// --- control ------------------------------------------------------------------------------------------------------

// The one element of an integer or pred; false where it is not known exactly.
static bool read_scalar(const kl_evval *v, int64_t *out) {
  kl_dtype t = v->shape->dtype;
  const void *data = kl_ev_plane(v, KL_EV_DATA);
  const uint8_t *any = kl_ev_plane(v, KL_EV_ANY);
  uint64_t bits = kl_element_get(t, data, 0, 0);
  *out = t == KILN_PRED ? bits != 0 : kl_int_decode(t, bits);
  return !(any && any[0]) && kl_element_get(t, kl_ev_plane(v, KL_EV_LO), 0, 0) == bits &&
         kl_element_get(t, kl_ev_plane(v, KL_EV_HI), 0, 0) == bits;
}

// Leaf k of the result is known within bounds only: an array whose size is known for certain.
static kiln_status open_leaf(kl_ev *ev, const kl_instr *in, size_t k, kl_evval *v) {
  if (kl_shape_leaf(in->shape, k)->dynamic)
    return kl_ev_refuse(ev, in, "a size of its result is known within bounds only");
  return kl_ev_open(ev, v);
}

typedef struct loop {
  const kl_ev_code *condition, *body;
  size_t n; // leaves of the state
  kl_evval *state;
  bool uncertain; // some condition is known within bounds only
} loop;

static kiln_status test(kl_ev *ev, loop *l, kl_evval *params, bool *again) {
  kl_evval result;
  int64_t value;
  for (size_t k = 0; k < l->n; k++) params[k] = kl_ev_share(&l->state[k], l->state[k].shape);
  KL_TRY(kl_ev_run(ev, l->condition, params, &result));
  l->uncertain |= !read_scalar(&result, &value);
  *again = value;
  kl_ev_free(ev, &result);
  return KILN_OK;
}

// The state is the body's while it runs, so that it can write on arrays that nobody else holds.
static kiln_status iterate(kl_ev *ev, loop *l, kl_evval *params) {
  for (;;) {
    bool again;
    KL_TRY(test(ev, l, params, &again));
    if (!again) return KILN_OK;
    memcpy(params, l->state, sizeof(kl_evval) * l->n);
    memset(l->state, 0, sizeof(kl_evval) * l->n);
    KL_TRY(kl_ev_run(ev, l->body, params, l->state));
  }
}

// Does every iteration hand element k of the state on as it is?
static bool passes(const kl_comp *body, uint32_t k) {
  const kl_instr *root = kl_root(body);
  if (root->op != KL_OP_TUPLE) return false;
  const kl_instr *part = kl_operand(body, root, k);
  return part->op == KL_OP_GET_TUPLE_ELEMENT && part->number == k && kl_operand(body, part, 0)->op == KL_OP_PARAMETER;
}

// Where the number of iterations is not certain, only what no iteration changes is.
static kiln_status open_changed(kl_ev *ev, const kl_instr *in, const kl_comp *body, kl_evval *state) {
  const kl_shape *shape = in->shape;
  kiln_status status = KILN_OK;
  if (shape->dtype != KILN_TUPLE) return open_leaf(ev, in, 0, state);
  size_t at = 0;
  for (uint32_t k = 0; k < shape->nelems && status == KILN_OK; k++) {
    size_t n = kl_shape_leaf_count(shape->elems[k]);
    for (size_t leaf = 0; leaf < n && !passes(body, k) && status == KILN_OK; leaf++)
      status = open_leaf(ev, in, at + leaf, &state[at + leaf]);
    at += n;
  }
  return status;
}

kiln_status kl_ev_while(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                        kl_evval *out) {
  kl_ev_code *condition = NULL, *body = NULL;
  size_t n = kl_shape_leaf_count(in->shape);
  loop l = {.n = n, .state = out};
  kl_evval *params = kl_alloc(ev->cx, sizeof(kl_evval) * (n + 1));
  take_leaves(ev, operands, n, out);
  kiln_status status = kl_ev_code_new(ev, in->called[0], &condition);
  if (status == KILN_OK) status = kl_ev_code_new(ev, in->called[1], &body);
  l.condition = condition;
  l.body = body;
  if (status == KILN_OK) status = iterate(ev, &l, params);
  if (status == KILN_OK && l.uncertain) status = open_changed(ev, in, &ev->m->comp[in->called[1]], out);
  for (size_t k = 0; k < n && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  kl_ev_code_free(ev, body);
  kl_ev_code_free(ev, condition);
  kl_free(ev->cx, params, sizeof(kl_evval) * (n + 1));
  return status;
}

// Operand 0 selects: true is the first branch; an index out of range the last one.
kiln_status kl_ev_conditional(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                              kl_evval *out) {
  int64_t value;
  bool known = read_scalar(operands[0], &value);
  uint32_t branch = in->ncalled - 1;
  if (operands[0]->shape->dtype == KILN_PRED)
    branch = value ? 0 : 1;
  else if (value >= 0 && value < in->ncalled)
    branch = (uint32_t)value;
  size_t from = 1;
  for (uint32_t k = 0; k < branch; k++) from += kl_shape_leaf_count(kl_operand(c, in, k + 1)->shape);
  size_t n = kl_shape_leaf_count(kl_operand(c, in, branch + 1)->shape);
  const bool *last = ev->last;
  if (last) ev->last += from;
  KL_TRY(call(ev, in->called[branch], operands + from, n, out));
  size_t leaves = kl_shape_leaf_count(in->shape);
  kiln_status status = KILN_OK;
  for (size_t k = 0; k < leaves && !known && status == KILN_OK; k++) status = open_leaf(ev, in, k, &out[k]);
  for (size_t k = 0; k < leaves && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  return status;
}

// --- asynchronous pairs -------------------------------------------------------------------------------------------

// What a device would keep in the rest of a start's tuple.
static kiln_status fill_contexts(kl_ev *ev, const kl_shape *tuple, size_t from, kl_evval *out) {
  size_t n = kl_shape_leaf_count(tuple);
  kiln_status status = KILN_OK;
  for (size_t k = from; k < n && status == KILN_OK; k++) {
    const kl_shape *s = kl_shape_leaf(tuple, k);
    if (s->dtype == KILN_TOKEN)
      out[k] = (kl_evval){.shape = s};
    else
      status = kl_ev_new(ev, s, false, false, &out[k]);
  }
  for (size_t k = 0; k < n && status != KILN_OK; k++) kl_ev_free(ev, &out[k]);
  return status;
}

// copy-start: (copy, operand, context ...).
kiln_status kl_ev_copy_async(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                             kl_evval *out) {
  if (in->op == KL_OP_COPY_DONE) return kl_ev_forward(ev, c, in, operands, out);
  size_t n = operand_leaves(c, in);
  if (kl_shape_leaf_count(in->shape) < 2 * n) return kl_ev_refuse(ev, in, "its result is no (copy, operand, ...)");
  for (size_t k = 0; k < 2 * n; k++) out[k] = kl_ev_share(operands[k % n], operands[k % n]->shape);
  return fill_contexts(ev, in->shape, 2 * n, out);
}

// The op that an async-start in short form stands for.
static kiln_status apply_wrapped(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                                 kl_evval *out) {
  kl_instr wrapped = *in;
  kl_op_kind kind = kl_op_table[in->wrapped].kind;
  if (kind == KL_KIND_PARAMETER || kind == KL_KIND_CONSTANT || kind == KL_KIND_ASYNC || kind == KL_KIND_GTE)
    return kl_ev_refuse(ev, in, "it wraps an op that does nothing");
  wrapped.op = in->wrapped;
  wrapped.wrapped = KL_OP_UNKNOWN;
  wrapped.shape = in->shape->elems[1];
  bool sized = false;
  for (uint32_t k = 0, n = 0; k < in->noperands; k++)
    for (size_t leaf = 0; leaf < kl_shape_leaf_count(kl_operand(c, in, k)->shape); leaf++, n++)
      sized |= !kl_shape_compatible(operands[n]->shape, kl_shape_leaf(kl_operand(c, in, k)->shape, leaf));
  return (sized ? kl_ev_sized : kl_ev_apply)(ev, c, &wrapped, operands, out);
}

static bool is_start(const kl_shape *s, size_t operands) {
  return s->dtype == KILN_TUPLE && s->nelems >= 2 && kl_shape_leaf_count(s->elems[0]) == operands;
}

// async-start: ((operands), results, context ...).
static kiln_status start(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                         kl_evval *out) {
  size_t n = operand_leaves(c, in);
  if (!is_start(in->shape, n)) return kl_ev_refuse(ev, in, "its result is no ((operands), results, ...)");
  const kl_shape *result = in->shape->elems[1];
  ev->last = NULL; // the operands are results, too
  if (in->wrapped)
    KL_TRY(apply_wrapped(ev, c, in, operands, out + n));
  else if (in->ncalled == 1)
    KL_TRY(call(ev, in->called[0], operands, n, out + n));
  else
    return kl_ev_refuse(ev, in, "it names no computation");
  take_leaves(ev, operands, n, out);
  return fill_contexts(ev, in->shape, n + kl_shape_leaf_count(result), out);
}

kiln_status kl_ev_async(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                        kl_evval *out) {
  if (in->op == KL_OP_ASYNC_START) return start(ev, c, in, operands, out);
  if (in->op == KL_OP_ASYNC_UPDATE) return kl_ev_forward(ev, c, in, operands, out);
  const kl_shape *tuple = kl_operand(c, in, 0)->shape;
  if (tuple->dtype != KILN_TUPLE || tuple->nelems < 2 || !kl_shape_compatible(tuple->elems[1], in->shape))
    return kl_ev_refuse(ev, in, "its operand is no ((operands), results, ...)");
  size_t skip = kl_shape_leaf_count(tuple->elems[0]);
  if (ev->last) ev->last += skip;
  return kl_ev_forward(ev, c, in, operands + skip, out);
}
