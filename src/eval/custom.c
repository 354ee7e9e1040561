// Custom calls whose targets are known.
#include "eval/impl.h"
#include "ir/custom/custom.h"

static kiln_status topk(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                        kl_evval *out) {
  kl_more more = *in->more;
  kl_instr own = *in;
  if (!kl_custom_topk(ev->m, in, &more.largest))
    return kl_ev_refuse(ev, in, "TopK calls something else than a comparison of its first two parameters");
  own.op = KL_OP_TOPK;
  own.more = &more;
  return kl_ev_topk(ev, c, &own, operands, out);
}

// An op that a call stands for, with its attributes.
static kiln_status matrices(kl_ev *ev, kl_ev_op *op, const kl_comp *c, const kl_instr *in,
                            const kl_evval *const *operands, kl_evval *out) {
  kl_more more;
  kl_instr own = *in;
  kl_custom_attributes(in, &more);
  own.more = &more;
  return op(ev, c, &own, operands, out);
}

// Anything may be there.
static kiln_status buffer(kl_ev *ev, const kl_instr *in, kl_evval *out) {
  KL_TRY(kl_ev_new(ev, in->shape, false, false, out));
  kiln_status status = kl_ev_open(ev, out);
  if (status != KILN_OK) kl_ev_free(ev, out);
  return status;
}

kiln_status kl_ev_check_custom_call(kl_ev *ev, const kl_comp *c, const kl_instr *in) {
  kl_custom kind = kl_custom_of(c, in);
  // Calls of libraries are ops by now.
  if (kind != KL_CUSTOM_UNKNOWN && kind < KL_CUSTOM_ADVISED) return KILN_OK;
  return kl_unsupported(ev->cx, in->span, "no evaluation of custom-call: only its target %.*s knows what it computes",
                        KL_FMT(in->more->target));
}

kiln_status kl_ev_custom_call(kl_ev *ev, const kl_comp *c, const kl_instr *in, const kl_evval *const *operands,
                              kl_evval *out) {
  switch (kl_custom_of(c, in)) {
  case KL_CUSTOM_REMARK: return kl_ev_forward(ev, c, in, operands, out);
  case KL_CUSTOM_TOPK: return topk(ev, c, in, operands, out);
  case KL_CUSTOM_BUFFER: return buffer(ev, in, out);
  case KL_CUSTOM_POTRF: return matrices(ev, kl_ev_cholesky, c, in, operands, out);
  case KL_CUSTOM_TRSM: return matrices(ev, kl_ev_triangular_solve, c, in, operands, out);
  case KL_CUSTOM_GETRF: return kl_ev_lu(ev, c, in, operands, out);
  case KL_CUSTOM_PERMUTATION: return kl_ev_permutation(ev, c, in, operands, out);
  case KL_CUSTOM_GEQRF: return kl_ev_qr(ev, c, in, operands, out);
  case KL_CUSTOM_GTSV: return kl_ev_gtsv(ev, c, in, operands, out);
  case KL_CUSTOM_GEQP3: return kl_ev_pivoted_qr(ev, c, in, operands, out);
  case KL_CUSTOM_ORGQR: return kl_ev_reflections(ev, c, in, operands, out);
  case KL_CUSTOM_EIGH: return matrices(ev, kl_ev_eigh, c, in, operands, out);
  case KL_CUSTOM_SVD: return kl_ev_svd(ev, c, in, operands, out);
  default: return kl_ev_check_custom_call(ev, c, in);
  }
}
