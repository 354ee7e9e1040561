// Index maps of the pure index transforms, output to operand.

#include "lower/analysis/index.h"

static uint32_t minor(const kl_shape *s, uint32_t i, bool logical) {
  return logical ? s->rank - 1 - i : (uint32_t)kl_shape_minor_to_major(s, i);
}

static const kl_expr *linearize(kl_exprs *p, const kl_shape *s, const kl_expr *const *index, bool logical) {
  const kl_expr *sum = kl_expr_const(p, 0);
  int64_t stride = 1;
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = minor(s, i, logical);
    sum = kl_expr_add(p, sum, kl_expr_mul(p, index[d], stride));
    stride *= s->dims[d];
  }
  return sum;
}

// Dim by dim q = dim*(q div dim) + q mod dim, so that linearize gives back `linear` itself. The major-most dim needs no
// mod: the linear index is in bounds.
static void delinearize(kl_exprs *p, const kl_shape *s, const kl_expr *q, const kl_expr **index, bool logical) {
  for (uint32_t i = 0; i < s->rank; i++) {
    uint32_t d = minor(s, i, logical);
    index[d] = i + 1 < s->rank ? kl_expr_mod(p, q, s->dims[d]) : q;
    if (i + 1 < s->rank) q = kl_expr_div(p, q, s->dims[d]);
  }
}

const kl_expr *kl_index_linearize(kl_exprs *p, const kl_shape *s, const kl_expr *const *index) {
  return linearize(p, s, index, false);
}

void kl_index_delinearize(kl_exprs *p, const kl_shape *s, const kl_expr *linear, const kl_expr **index) {
  delinearize(p, s, linear, index, false);
}

const kl_expr *kl_expr_subst(kl_exprs *p, const kl_expr *e, int32_t var, const kl_expr *by) {
  bool inside;
  if (!kl_expr_uses(e, var, &inside)) return e;
  const kl_expr *r = kl_expr_const(p, e->c);
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_atom *a = e->terms[i].atom;
    const kl_expr *x;
    if (a->var == var)
      x = by;
    else if (a->var >= 0)
      x = kl_expr_var(p, a->var, a->lo, a->hi);
    else
      x = kl_expr_div(p, kl_expr_subst(p, a->inner, var, by), a->k);
    r = kl_expr_add(p, r, kl_expr_mul(p, x, e->terms[i].coef));
  }
  return r;
}

static void add_condition(kl_index_map *m, const kl_expr *e, int64_t lo, int64_t hi) {
  if (e->lo >= lo && e->hi <= hi) return;
  m->conditions[m->nconditions++] = (kl_condition){e, lo, hi};
}

// Operand element j of a dim sits at low + j*(interior+1).
static void map_pad(kl_exprs *p, const kl_instr *in, const kl_shape *os, const kl_expr *const *out, kl_index_map *m) {
  for (uint32_t d = 0; d < os->rank; d++) {
    kl_pad_dim pad = in->pad[d];
    const kl_expr *at = kl_expr_addc(p, out[d], -pad.low);
    int64_t step = pad.interior + 1;
    m->index[d] = kl_expr_div(p, at, step);
    add_condition(m, m->index[d], 0, os->dims[d] - 1);
    if (step > 1) add_condition(m, kl_expr_mod(p, at, step), 0, 0);
  }
}

void kl_index_concatenate(kl_exprs *p, const kl_comp *c, const kl_instr *in, uint32_t operand, int64_t offset,
                          const kl_expr *const *out, kl_index_map *m) {
  const kl_shape *os = kl_operand(c, in, operand)->shape;
  int64_t dim = in->dims[0];
  m->rank = os->rank;
  m->nconditions = 0;
  for (uint32_t d = 0; d < os->rank; d++) m->index[d] = out[d];
  m->index[dim] = kl_expr_addc(p, out[dim], -offset);
  add_condition(m, m->index[dim], 0, os->dims[dim] - 1);
}

static void map_concatenate(kl_exprs *p, const kl_comp *c, const kl_instr *in, uint32_t operand,
                            const kl_expr *const *out, kl_index_map *m) {
  int64_t offset = 0;
  for (uint32_t i = 0; i < operand; i++) offset += kl_operand(c, in, i)->shape->dims[in->dims[0]];
  kl_index_concatenate(p, c, in, operand, offset, out, m);
}

void kl_index_operand(kl_exprs *p, const kl_comp *c, const kl_instr *in, uint32_t operand, const kl_expr *const *out,
                      kl_index_map *m) {
  const kl_shape *s = in->shape, *os = kl_operand(c, in, operand)->shape;
  m->rank = os->rank;
  m->nconditions = 0;
  for (uint32_t d = 0; d < os->rank && d < s->rank; d++) m->index[d] = out[d];
  switch (kl_op_table[in->op].kind) {
  case KL_KIND_BROADCAST:
    for (uint32_t d = 0; d < os->rank; d++) m->index[d] = out[in->dims[d]];
    break;
  case KL_KIND_RESHAPE: delinearize(p, os, linearize(p, s, out, true), m->index, true); break;
  case KL_KIND_BITCAST: delinearize(p, os, linearize(p, s, out, false), m->index, false); break;
  case KL_KIND_TRANSPOSE:
    for (uint32_t d = 0; d < s->rank; d++) m->index[in->dims[d]] = out[d];
    break;
  case KL_KIND_SLICE:
    for (uint32_t d = 0; d < s->rank; d++)
      m->index[d] = kl_expr_addc(p, kl_expr_mul(p, out[d], in->slice[d].stride), in->slice[d].start);
    break;
  case KL_KIND_REVERSE:
    for (uint32_t i = 0; i < in->ndims; i++) {
      int64_t d = in->dims[i];
      m->index[d] = kl_expr_sub(p, kl_expr_const(p, s->dims[d] - 1), out[d]);
    }
    break;
  case KL_KIND_CONCATENATE: map_concatenate(p, c, in, operand, out, m); break;
  case KL_KIND_PAD:
    if (operand == 0) map_pad(p, in, os, out, m);
    break;
  default: break;
  }
}
