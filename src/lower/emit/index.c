// Index expressions and guards as IR.
//
// The plan has proved that every value fits the index kind. Sums may wrap on the way. Dividends are made non-negative
// by adding a multiple of the divisor, so that every floor is one unsigned division by a constant.

#include "lower/emit/emit.h"

static kb_reg atom_value(kl_emit *e, const kl_atom *a, unsigned lanes, kb_reg lane) {
  kb *k = &e->k;
  if (a->var == KL_VAR_THREAD) return kb_splat(k, e->thread, lanes);
  if (a->var == KL_VAR_LANE) return lane;
  int64_t up = a->inner->lo < 0 ? (-a->inner->lo + a->k - 1) / a->k : 0;
  kb_reg x = kl_emit_expr(e, a->inner, lanes, lane);
  x = kb_udiv(k, kb_addi(k, x, up * a->k), kb_ilike(k, x, a->k));
  return kb_addi(k, x, -up);
}

kb_reg kl_emit_expr(kl_emit *e, const kl_expr *x, unsigned lanes, kb_reg lane) {
  kb *k = &e->k;
  kb_reg sum = kb_int(k, e->index, lanes, x->c);
  for (uint32_t i = 0; i < x->n; i++) {
    kb_reg v = atom_value(e, x->terms[i].atom, lanes, lane);
    int64_t c = x->terms[i].coef;
    if (c != 1) v = kb_mul(k, v, kb_ilike(k, v, c));
    sum = i == 0 && x->c == 0 ? v : kb_add(k, sum, v);
  }
  return sum;
}

kb_reg kl_emit_lane_numbers(kl_emit *e, unsigned wide) {
  kb_reg c[KL_EMIT_LANES];
  for (unsigned i = 0; i < e->width; i++) c[i] = kb_int(&e->k, e->index, 1, (int64_t)wide * e->width + i);
  if (e->width == 1) return c[0];
  LLVMValueRef v[KL_EMIT_LANES];
  for (unsigned i = 0; i < e->width; i++) v[i] = c[i].v;
  return (kb_reg){LLVMConstVector(v, e->width), (uint8_t)e->index, (uint16_t)e->width};
}

// lo <= x <= hi: one unsigned comparison of x - lo, or one signed one where the other side holds anyway.
static kb_reg in_range(kl_emit *e, const kl_guard *g, unsigned lanes, kb_reg lane) {
  kb *k = &e->k;
  kb_reg x = kl_emit_expr(e, g->expr, lanes, lane);
  if (g->expr->lo >= g->lo) return kb_icmp(k, LLVMIntSLE, x, kb_ilike(k, x, g->hi));
  if (g->expr->hi <= g->hi) return kb_icmp(k, LLVMIntSGE, x, kb_ilike(k, x, g->lo));
  if (g->lo == g->hi) return kb_icmp(k, LLVMIntEQ, x, kb_ilike(k, x, g->lo));
  return kb_icmp(k, LLVMIntULE, kb_addi(k, x, -g->lo), kb_ilike(k, x, g->hi - g->lo));
}

kb_reg kl_emit_guard_lane(kl_emit *e, uint32_t guard, unsigned lane) {
  const kl_guard *g = &e->body->guards[guard];
  lane -= lane % g->uniform;
  kb_reg *slot = &e->guard_lane[guard * e->lanes + lane];
  if (slot->v) return *slot;
  kb_reg r = in_range(e, g, 1, kb_int(&e->k, e->index, 1, lane));
  if (g->outer != KL_NONE) r = kb_and(&e->k, r, kl_emit_guard_lane(e, g->outer, lane));
  return *slot = r;
}

kb_reg kl_emit_guard_wide(kl_emit *e, uint32_t guard, unsigned wide) {
  const kl_guard *g = &e->body->guards[guard];
  if (e->width == 1) return kl_emit_guard_lane(e, guard, wide);
  kb_reg *slot = &e->guard_wide[guard * e->nwide + wide];
  if (slot->v) return *slot;
  kb_reg r;
  if (g->uniform >= e->width)
    r = kb_splat(&e->k, kl_emit_guard_lane(e, guard, wide * e->width), e->width);
  else {
    r = in_range(e, g, e->width, kl_emit_lane_numbers(e, wide));
    if (g->outer != KL_NONE) r = kb_and(&e->k, r, kl_emit_guard_wide(e, g->outer, wide));
  }
  return *slot = r;
}
