// What a computation's graph says of values, beyond what their operations do.

#include "lower/choose/walk/impl.h"

static bool same_value(const kl_comp *c, const kl_instr *a, const kl_instr *b) {
  if (a == b) return true;
  return a->op == KL_OP_CONVERT && b->op == KL_OP_CONVERT && a->operands[0] == b->operands[0] &&
         a->shape->dtype == b->shape->dtype && kl_operand(c, a, 0)->shape->rank == b->shape->rank;
}

static bool is_maximum(const kiln_module *m, const kl_instr *in) {
  if (in->op != KL_OP_REDUCE || in->noperands != 2) return false;
  const kl_comp *by = &m->comp[in->called[0]];
  const kl_instr *root = kl_root(by);
  uint32_t p = by->params[0], q = by->params[1];
  return root->op == KL_OP_MAXIMUM &&
         ((root->operands[0] == p && root->operands[1] == q) || (root->operands[0] == q && root->operands[1] == p));
}

static bool is_kept(const kl_instr *reduce, int64_t d) {
  for (uint32_t i = 0; i < reduce->ndims; i++)
    if (reduce->dims[i] == d) return false;
  return true;
}

// Does the broadcast put each result of a reduction, whose dimensions of one element are of no account, along the row
// that it was made of?
static bool is_along_rows(const kl_shape *rows, const kl_instr *broadcast, const kl_shape *from,
                          const kl_instr *reduce) {
  uint32_t at = 0;
  for (uint32_t d = 0; d < rows->rank; d++) {
    if (!is_kept(reduce, d) || rows->dims[d] == 1) continue;
    while (at < from->rank && from->dims[at] == 1) at++;
    if (at == from->rank || broadcast->dims[at++] != d) return false;
  }
  while (at < from->rank && from->dims[at] == 1) at++;
  return at == from->rank;
}

static bool keeps_order_of_dims(const kl_shape *a, const kl_shape *b) {
  uint32_t i = 0, j = 0;
  for (;; i++, j++) {
    while (i < a->rank && a->dims[i] == 1) i++;
    while (j < b->rank && b->dims[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->dims[i] != b->dims[j]) return false;
  }
}

static bool is_constant(const kl_comp *c, const kl_instr *in) {
  return in->op == KL_OP_CONSTANT || (in->op == KL_OP_BROADCAST && kl_operand(c, in, 0)->op == KL_OP_CONSTANT);
}

// x - y where y is the greatest of the row of x, or more than that. Rounding keeps order.
bool kl_is_nonpositive(const kiln_module *m, const kl_comp *c, const kl_instr *in) {
  if (in->op != KL_OP_SUBTRACT || !kl_is_float(in->shape->dtype)) return false;
  const kl_instr *x = kl_operand(c, in, 0), *broadcast = kl_operand(c, in, 1);
  if (broadcast->op != KL_OP_BROADCAST) return false;
  const kl_instr *y = kl_operand(c, broadcast, 0);
  bool converted = false;
  for (int i = 0; i < 8 && !is_maximum(m, y); i++) {
    const kl_instr *from = y->noperands ? kl_operand(c, y, 0) : NULL;
    bool reshapes = from && y->op == KL_OP_RESHAPE && keeps_order_of_dims(y->shape, from->shape);
    bool converts = from && y->op == KL_OP_CONVERT && kl_is_float(from->shape->dtype) && !converted;
    bool raises = y->op == KL_OP_MAXIMUM;
    if (raises && is_constant(c, from)) from = kl_operand(c, y, 1);
    if (!reshapes && !converts && !raises) return false;
    converted = converted || converts;
    y = from;
  }
  if (!is_maximum(m, y) || !is_along_rows(x->shape, broadcast, kl_operand(c, broadcast, 0)->shape, y)) return false;
  const kl_instr *of = kl_operand(c, y, 0);
  if (converted && x->op != KL_OP_CONVERT) return false;
  if (converted) x = kl_operand(c, x, 0);
  return of->shape->rank == x->shape->rank && same_value(c, x, of);
}
