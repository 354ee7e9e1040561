// Result shapes of control flow, order, asynchrony and the host's ops.
#include "ir/rules/infer.h"

static const kl_shape *written(rule *r) {
  return r->want ? r->want : fail(r, "expected a result type, found none");
}

// --- loops and branches -------------------------------------------------------------------------------------------

const kl_shape *kl_infer_while(rule *r) {
  const kl_shape *s = operand(r, 0);
  bool ok = kl_rule_called(r, 0, "condition", 1, &s, kl_rule_scalar_of(r, KILN_PRED));
  return kl_rule_called(r, 1, "body", 1, &s, s) && ok ? s : NULL;
}

// Which form the attributes have, and how many branches.
static bool count_branches(const rule *r, uint32_t *n) {
  bool pair = r->in->given & 3, list = r->in->given & 4;
  *n = r->in->ncalled;
  if (pair == list || (pair && *n != 2))
    return refuse(r, "expected either true_computation and false_computation or branch_computations, found %s",
                  list   ? "both"
                  : pair ? "one of the first two"
                         : "neither");
  if (*n == 0) return refuse(r, "expected at least one branch, found none");
  kl_dtype t = operand(r, 0)->dtype;
  if (!kl_rule_scalar(r, 0)) return false;
  if (t != KILN_PRED && t != KILN_S32)
    return refuse(r, "expected pred[] or s32[] to choose a branch, found %s", text(r, operand(r, 0)));
  if ((pair || t == KILN_PRED) && *n != 2) return refuse(r, "expected 2 branches for a choice by pred, found %u", *n);
  return !pair || t == KILN_PRED || refuse(r, "expected pred[] to choose, found %s", text(r, operand(r, 0)));
}

const kl_shape *kl_infer_conditional(rule *r) {
  uint32_t n;
  if (r->in->noperands == 0) return fail(r, "expected an operand that chooses the branch, found none");
  if (!count_branches(r, &n)) return NULL;
  if (r->in->noperands != n + 1)
    return fail(r, "expected %u operands, the choice and one for each branch, found %u", n + 1, r->in->noperands);
  const kl_shape *result = kl_root(kl_rule_callee(r, 0))->shape;
  for (uint32_t i = 0; i < n; i++) {
    const kl_shape *param = operand(r, i + 1);
    if (!kl_rule_called(r, i, "branch", 1, &param, i ? result : NULL)) return NULL;
  }
  return result;
}

const kl_shape *kl_infer_custom_call(rule *r) {
  return written(r);
}

// --- order --------------------------------------------------------------------------------------------------------

static bool is_token(const rule *r, uint32_t i) {
  if (operand(r, i)->dtype == KILN_TOKEN) return true;
  return refuse(r, "expected a token for operand %u ('%.*s'), found %s", i, KL_FMT(operand_name(r, i)),
                text(r, operand(r, i)));
}

// The result is operand 0; what comes behind only orders.
const kl_shape *kl_infer_forward(rule *r) {
  return operand(r, 0);
}

const kl_shape *kl_infer_token(rule *r) {
  for (uint32_t i = 0; i < r->in->noperands; i++)
    if (!is_token(r, i)) return NULL;
  return kl_shape_intern(r->m, &(kl_shape){.dtype = KILN_TOKEN});
}

// copy-start gives (target, source, context); copy-done takes it.
const kl_shape *kl_infer_copy_async(rule *r) {
  const kl_shape *s = operand(r, 0);
  if (r->in->op == KL_OP_COPY_START) {
    const kl_shape *elems[3] = {s, s, kl_rule_scalar_of(r, KILN_U32)}, *w = r->want;
    bool own = w && w->dtype == KILN_TUPLE && w->nelems == 3; // the context's type is the backend's
    if (own) elems[2] = w->elems[2];
    return kl_rule_tuple(r, 3, elems);
  }
  if (s->dtype != KILN_TUPLE || s->nelems != 3 || !kl_shape_compatible(s->elems[0], s->elems[1]))
    return fail(r, "expected the result of copy-start, a tuple of the copy, its source and a context, found %s",
                text(r, s));
  return s->elems[0];
}

// --- asynchrony ---------------------------------------------------------------------------------------------------

// ((operands), result, contexts...)
static bool is_async_state(const kl_shape *s) {
  return s->dtype == KILN_TUPLE && s->nelems >= 2 && s->elems[0]->dtype == KILN_TUPLE;
}

static bool takes_async_state(const rule *r) {
  if (r->in->noperands != 1) return refuse(r, "expected 1 operand, found %u", r->in->noperands);
  return is_async_state(operand(r, 0)) ||
         refuse(r, "expected a tuple of operands, result and contexts from the op that starts, found %s",
                text(r, operand(r, 0)));
}

static bool check_started(const rule *r) {
  const kl_shape *s = r->want, *in = s->elems[0];
  if (in->nelems != r->in->noperands)
    return refuse(r, "expected the operands' types (%u) in front of the result, found %s", r->in->noperands,
                  text(r, s));
  for (uint32_t i = 0; i < in->nelems; i++)
    if (!kl_shape_compatible(in->elems[i], operand(r, i)))
      return refuse(r, "expected %s of operand %u in front of the result, found %s", text(r, operand(r, i)), i,
                    text(r, in->elems[i]));
  if (r->in->wrapped) { // the short form carries the wrapped op's attributes
    kl_instr wrapped = *r->in;
    const kl_shape *out = NULL;
    wrapped.op = r->in->wrapped;
    wrapped.wrapped = KL_OP_UNKNOWN;
    wrapped.shape = s->elems[1];
    return kl_infer_shape(r->m, r->c, &wrapped, &out) == KILN_OK;
  }
  if (r->in->ncalled != 1) return true;
  return kl_rule_called(r, 0, "asynchronous computation", in->nelems, in->elems, s->elems[1]);
}

const kl_shape *kl_infer_async(rule *r) {
  if (r->in->op != KL_OP_ASYNC_START) {
    if (!takes_async_state(r)) return NULL;
    return r->in->op == KL_OP_ASYNC_UPDATE ? operand(r, 0) : operand(r, 0)->elems[1];
  }
  if (!r->in->wrapped && r->in->ncalled != 1) return fail(r, "expected a computation to call, found none");
  if (!r->want || !is_async_state(r->want))
    return fail(r, "expected a result type ((operands), result, contexts...), found %s",
                r->want ? text(r, r->want) : "none");
  return check_started(r) ? r->want : NULL;
}

// --- the host -----------------------------------------------------------------------------------------------------

static const kl_shape *with_token(rule *r, const kl_shape *s) {
  const kl_shape *elems[2] = {s, kl_shape_intern(r->m, &(kl_shape){.dtype = KILN_TOKEN})};
  return kl_rule_tuple(r, 2, elems);
}

static const kl_shape *infer_infeed(rule *r) {
  const kl_shape *w = written(r);
  if (!is_token(r, 0) || !w) return NULL;
  if (w->dtype == KILN_TUPLE && w->nelems == 2 && w->elems[1]->dtype == KILN_TOKEN) return w;
  return fail(r, "expected a result of data and a token, found %s", text(r, w));
}

static const kl_shape *infer_outfeed(rule *r) {
  const kl_shape *s = r->in->more->outfeed;
  if (!is_token(r, 1)) return NULL;
  if (s && !kl_shape_compatible(s, operand(r, 0)))
    return fail(r, "expected outfeed_shape %s as operand 0, found %s", text(r, operand(r, 0)), text(r, s));
  return operand(r, 1);
}

// send gives (data, context, token), recv the same; -done takes it.
static bool is_transfer(const kl_shape *s) {
  return s->dtype == KILN_TUPLE && s->nelems == 3 && s->elems[2]->dtype == KILN_TOKEN;
}

static const kl_shape *infer_transfer(rule *r, uint32_t token) {
  const kl_shape *w = written(r);
  if (!is_token(r, token) || !w) return NULL;
  if (!is_transfer(w)) return fail(r, "expected a result of data, a context and a token, found %s", text(r, w));
  if (token == 0 || kl_shape_compatible(w->elems[0], operand(r, 0))) return w;
  return fail(r, "expected %s, the type of operand 0, first in the result, found %s", text(r, operand(r, 0)),
              text(r, w->elems[0]));
}

const kl_shape *kl_infer_host(rule *r) {
  switch (r->in->op) {
  case KL_OP_INFEED: return infer_infeed(r);
  case KL_OP_OUTFEED: return infer_outfeed(r);
  case KL_OP_SEND: return infer_transfer(r, 1);
  case KL_OP_RECV: return infer_transfer(r, 0);
  default: break;
  }
  const kl_shape *s = operand(r, 0);
  if (!is_transfer(s))
    return fail(r, "expected the result of %s, found %s", r->in->op == KL_OP_SEND_DONE ? "send" : "recv", text(r, s));
  return r->in->op == KL_OP_SEND_DONE ? s->elems[2] : with_token(r, s->elems[0]);
}
