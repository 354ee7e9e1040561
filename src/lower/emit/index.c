// Index expressions and guards as IR.
//
// The plan has proved that every value fits the index kind. Sums may wrap on the way. Dividends are made non-negative
// by adding a multiple of the divisor, so that every floor is one unsigned division by a constant.

#include "lower/emit/emit.h"

static kb_reg atom_value(kl_emit *e, const kl_aff_atom *a, unsigned lanes, kb_reg lane) {
  kb *k = &e->k;
  if (a->kind == KL_AFF_DIM) return a->var == KL_VAR_THREAD ? kb_splat(k, e->thread, lanes) : lane;
  int64_t up = kl_floor_shift(e->body->domain, a);
  kb_reg x = kl_emit_expr(e, a->arg[0], lanes, lane);
  x = kb_addi(k, x, up * a->k);
  if (e->index != KB_I32) return kb_addi(k, kb_udiv(k, x, kb_ilike(k, x, a->k)), -up);
  int64_t most = kl_dom_interval(e->body->domain, a->arg[0]).hi + up * a->k;
  return kb_addi(k, kb_udiv_most(k, x, (uint32_t)a->k, (uint32_t)most), -up);
}

// --- remainders by powers of two: one AND ---------------------------------------------------------------------------

// An expression has no remainders, b mod k is b - k * floor(b / k). Here they are found again: floors whose coefficient
// is -g * k beside g * b. AND gives the remainder in 0..k-1 of negative b, too, and of b modulo 2^32.
typedef struct sum {
  const kl_aff *x;
  bool taken[]; // terms of x that are part of a remainder
} sum;

static bool is_floor(const kl_aff_atom *a) {
  return a->kind == KL_AFF_FLOOR;
}
static bool is_power_of_two(int64_t k) {
  return k > 0 && (k & (k - 1)) == 0;
}

static const kl_aff_term *find_term(const sum *s, const kl_aff_atom *a) {
  for (uint32_t i = 0; i < s->x->n; i++) {
    if (s->x->terms[i].atom == a && !s->taken[i]) return &s->x->terms[i];
  }
  return NULL;
}

static void take(sum *s, const kl_aff_term *t) {
  s->taken[t - s->x->terms] = true;
}

// b is what stands under the floor: all its terms stand in the sum, times g.
static bool is_remainder_of_sum(const sum *s, const kl_aff_term *f, int64_t *g) {
  const kl_aff *b = f->atom->arg[0];
  if (!is_power_of_two(f->atom->k) || f->coef % f->atom->k != 0) return false;
  *g = -f->coef / f->atom->k;
  for (uint32_t i = 0; i < b->n; i++) {
    const kl_aff_term *t = find_term(s, b->terms[i].atom);
    if (!t || t->coef != *g * b->terms[i].coef) return false;
  }
  return b->n > 0;
}

// b is itself a floor, floor(inner / m), of what stands under this one, floor(inner / (m * k)).
static const kl_aff_term *remainder_of_floor(const sum *s, const kl_aff_term *f, int64_t *k) {
  for (uint32_t i = 0; i < s->x->n; i++) {
    const kl_aff_term *t = &s->x->terms[i];
    if (s->taken[i] || t == f || !is_floor(t->atom) || t->atom->arg[0] != f->atom->arg[0]) continue;
    *k = f->atom->k / t->atom->k;
    if (f->atom->k % t->atom->k == 0 && is_power_of_two(*k) && f->coef == -t->coef * *k) return t;
  }
  return NULL;
}

static kb_reg scaled(kb *k, kb_reg v, int64_t by) {
  return by == 1 ? v : kb_mul(k, v, kb_ilike(k, v, by));
}

static kb_reg plus(kb *k, kb_reg total, kb_reg v) {
  return total.v ? kb_add(k, total, v) : v;
}

// The remainders in the sum, added up; *constant: what the constants under their floors leave behind.
static kb_reg take_remainders(kl_emit *e, sum *s, int64_t *constant, unsigned lanes, kb_reg lane) {
  kb *k = &e->k;
  kb_reg total = {0};
  for (uint32_t i = 0; i < s->x->n; i++) {
    const kl_aff_term *f = &s->x->terms[i], *t;
    int64_t g, m;
    if (s->taken[i] || !is_floor(f->atom)) continue;
    if ((t = remainder_of_floor(s, f, &m))) {
      take(s, t);
      total = plus(k, total, scaled(k, kb_andi(k, atom_value(e, t->atom, lanes, lane), m - 1), t->coef));
    } else if (is_remainder_of_sum(s, f, &g)) {
      const kl_aff *b = f->atom->arg[0];
      for (uint32_t j = 0; j < b->n; j++) take(s, find_term(s, b->terms[j].atom));
      *constant -= g * b->c;
      total = plus(k, total, scaled(k, kb_andi(k, kl_emit_expr(e, b, lanes, lane), f->atom->k - 1), g));
    } else {
      continue;
    }
    take(s, f);
  }
  return total;
}

kb_reg kl_emit_expr(kl_emit *e, const kl_aff *x, unsigned lanes, kb_reg lane) {
  kb *k = &e->k;
  int64_t constant = x->c;
  sum *s = kl_arena_alloc(e->arena, sizeof *s + x->n * sizeof(bool));
  *s = (sum){.x = x};
  memset(s->taken, 0, x->n * sizeof(bool));
  kb_reg total = take_remainders(e, s, &constant, lanes, lane);
  for (uint32_t i = 0; i < x->n; i++) {
    if (!s->taken[i]) total = plus(k, total, scaled(k, atom_value(e, x->terms[i].atom, lanes, lane), x->terms[i].coef));
  }
  if (!total.v) return kb_int(k, e->index, lanes, constant);
  return kb_addi(k, total, constant);
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
  kl_interval in = kl_dom_interval(e->body->domain, g->expr);
  if (in.lo >= g->lo) return kb_icmp(k, LLVMIntSLE, x, kb_ilike(k, x, g->hi));
  if (in.hi <= g->hi) return kb_icmp(k, LLVMIntSGE, x, kb_ilike(k, x, g->lo));
  if (g->lo == g->hi) return kb_icmp(k, LLVMIntEQ, x, kb_ilike(k, x, g->lo));
  return kb_icmp(k, LLVMIntULE, kb_addi(k, x, -g->lo), kb_ilike(k, x, g->hi - g->lo));
}

kb_reg kl_emit_guard_lane(kl_emit *e, uint32_t guard, unsigned lane) {
  const kl_guard *g = &e->body->guards[guard];
  lane -= lane % g->uniform;
  kb_reg *slot = &e->guard_lane[guard * e->lanes + lane];
  if (slot->v) return *slot;
  kl_truth known = kl_guard_at(e->plan, e->body, guard, lane);
  if (known != KL_UNKNOWN) return *slot = kb_int(&e->k, KB_I1, 1, known == KL_YES);
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
