// Custom calls that stand for ops.
#include "ir/custom/custom.h"

#include "ir/rewrite/expand/room.h"

static bool takes(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  bool largest;
  kl_custom kind = kl_custom_of(c, in);
  if (kl_custom_is_library(kind)) return true;
  switch (kind) {
  case KL_CUSTOM_BUFFER:
  case KL_CUSTOM_POTRF:
  case KL_CUSTOM_TRSM:
  case KL_CUSTOM_GETRF:
  case KL_CUSTOM_PERMUTATION:
  case KL_CUSTOM_GEQRF:
  case KL_CUSTOM_ORGQR:
  case KL_CUSTOM_GEQP3:
  case KL_CUSTOM_GTSV:
  case KL_CUSTOM_EIGH:
  case KL_CUSTOM_SVD: return true;
  case KL_CUSTOM_TOPK: return kl_custom_topk(m, in, &largest);
  default: return false;
  }
}

static void computations(kl_graph *g, const kl_comp *c, const kl_instr *in) {
  if (kl_custom_is_library(kl_custom_named(in))) kl_expand_library_computations(g, c, in);
  switch (kl_custom_named(in)) {
  case KL_CUSTOM_POTRF: kl_graph_combiner(g, KL_COMBINE_MAX, KILN_S32); break;
  case KL_CUSTOM_GETRF:
  case KL_CUSTOM_PERMUTATION: kl_expand_lu_computations(g, c, in); break;
  case KL_CUSTOM_GEQRF:
  case KL_CUSTOM_ORGQR: kl_expand_qr_computations(g, c, in); break;
  case KL_CUSTOM_GTSV: kl_expand_gtsv_computations(g, kl_operand(c, in, 3)->shape); break;
  case KL_CUSTOM_GEQP3: kl_expand_geqp3_computations(g, kl_operand(c, in, 0)->shape); break;
  case KL_CUSTOM_EIGH: kl_expand_eigh_computations(g, kl_operand(c, in, 0)->shape); break;
  case KL_CUSTOM_SVD: {
    kl_svd form;
    kl_custom_svd(in, &form);
    kl_expand_svd_computations(g, kl_operand(c, in, 0)->shape, &form, in->shape);
    break;
  }
  default: break;
  }
}

static uint32_t write_topk(const kl_expansion *x) {
  bool largest;
  const kl_shape *values = x->in->shape->elems[0];
  kl_custom_topk(x->g->m, x->in, &largest);
  return kl_graph_topk(x->g, x->operands[0], values->dims[values->rank - 1], largest);
}

// The order of the first minor that is not positive: from the first element of the diagonal on that is not, as 0 and
// NaN are not. With j the number of that, of n, it is n + 1 - (n - j), and n - j is the largest of all that are not.
static uint32_t info_of(kl_graph *g, uint32_t factor, uint32_t i, uint32_t j) {
  const kl_shape *s = kl_graph_shape(g, factor);
  int64_t n = s->dims[s->rank - 1], both[] = {s->rank - 2, s->rank - 1};
  uint32_t real = kl_is_complex(s->dtype) ? kl_graph_unary(g, KL_OP_REAL, factor) : factor;
  uint32_t bad = kl_graph_unary(g, KL_OP_NOT, kl_graph_compare_with(g, KL_GT, real, 0));
  bad = kl_graph_binary(g, KL_OP_AND, bad, kl_graph_compare(g, KL_EQ, i, j));
  uint32_t from_end = kl_graph_binary(g, KL_OP_SUBTRACT, kl_graph_number_like(g, i, n), i);
  uint32_t most = kl_graph_reduce_over(g, kl_graph_select(g, bad, from_end, kl_graph_number_like(g, i, 0)), 2, both,
                                       KL_COMBINE_MAX);
  uint32_t info = kl_graph_binary(g, KL_OP_SUBTRACT, kl_graph_number_like(g, most, n + 1), most);
  return kl_graph_select(g, kl_graph_compare_with(g, KL_EQ, most, 0), most, info);
}

static uint32_t write_potrf(const kl_expansion *x) {
  kl_graph *g = x->g;
  kl_more more;
  kl_custom_attributes(x->in, &more);
  const kl_shape *s = kl_graph_shape(g, x->operands[0]);
  uint32_t i = kl_graph_iota(g, KILN_S32, s->rank, s->dims, s->rank - 2);
  uint32_t j = kl_graph_iota(g, KILN_S32, s->rank, s->dims, s->rank - 1);
  uint32_t factor = kl_graph_cholesky(g, x->operands[0], more.lower);
  uint32_t named = kl_graph_compare(g, more.lower ? KL_GE : KL_LE, i, j);
  return kl_graph_tuple(g, 2,
                        (uint32_t[]){kl_graph_select(g, named, factor, x->operands[0]), info_of(g, factor, i, j)});
}

static uint32_t write_trsm(const kl_expansion *x) {
  kl_more more;
  kl_custom_attributes(x->in, &more);
  return kl_graph_triangular_solve(x->g, x->operands[0], x->operands[1], &more);
}

static uint32_t write_eigh(const kl_expansion *x) {
  kl_more more;
  kl_custom_attributes(x->in, &more);
  return kl_expand_eigh(x->g, x->operands[0], more.lower, x->in->shape);
}

static uint32_t write_svd(const kl_expansion *x) {
  kl_svd form;
  kl_custom_svd(x->in, &form);
  return kl_expand_svd(x->g, x->operands[0], &form, x->in->shape);
}

static uint32_t write(const kl_expansion *x) {
  const kl_shape *s = x->in->shape;
  if (kl_custom_is_library(kl_custom_named(x->in))) return kl_expand_library(x);
  switch (kl_custom_named(x->in)) {
  case KL_CUSTOM_TOPK: return write_topk(x);
  case KL_CUSTOM_POTRF: return write_potrf(x);
  case KL_CUSTOM_TRSM: return write_trsm(x);
  case KL_CUSTOM_GETRF: return kl_expand_getrf(x->g, x->operands[0]);
  case KL_CUSTOM_PERMUTATION: return kl_expand_permutation(x->g, x->operands[0], s);
  case KL_CUSTOM_GEQRF: return kl_expand_geqrf(x->g, x->operands[0]);
  case KL_CUSTOM_ORGQR: return kl_expand_orgqr(x->g, x->operands[0], x->operands[1]);
  case KL_CUSTOM_GTSV: return kl_expand_gtsv(x->g, x->operands, s);
  case KL_CUSTOM_GEQP3: return kl_expand_geqp3(x->g, x->operands[0], x->operands[1], s);
  case KL_CUSTOM_EIGH: return write_eigh(x);
  case KL_CUSTOM_SVD: return write_svd(x);
  // Who allocates a buffer and reads it without writing gets zeros.
  default: return kl_graph_bits(x->g, s->dtype, (uint64_t[2]){0, 0}, s->rank, s->dims);
  }
}

const kl_expander kl_expand_custom = {takes, computations, write};
