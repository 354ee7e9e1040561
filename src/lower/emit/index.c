// Index expressions and guards as IR.
//
// The plan has proved that every value fits the index kind. Sums may wrap on the way. Dividends are made non-negative
// by adding a multiple of the divisor, so that every floor is one unsigned division by a constant.

#include "lower/emit/emit.h"

void kl_set_copy(kl_emit *e, kl_vars regs, unsigned copy) {
  kl_nth_point(e->body, regs, KL_NONE, copy, e->at);
  for (uint32_t v = 0; v < e->body->nvars; v++)
    if (kl_has_var(regs, v)) e->vars[v] = kb_int(&e->k, e->index, 1, e->at[v]);
}

static kb_reg variable(kl_emit *e, uint32_t v, unsigned lanes) {
  kb_reg r = e->vars[v];
  return r.lanes == lanes ? r : kb_splat(&e->k, r, lanes);
}

// Its copy at e->at: all lanes, or the one there.
static kb_reg symbol(kl_emit *e, uint32_t number, unsigned lanes) {
  const kl_body *b = e->body;
  const kl_symbol *s = &b->symbols[number];
  if (kl_is_counted_in(s)) return lanes == 1 ? e->rows : kb_splat(&e->k, e->rows, lanes);
  kl_vars regs = b->steps[s->step].regs, varying = s->vars & kl_bound(b, KL_BIND_LANE);
  kb_reg r = e->vals[s->step].wide[kl_point_number(b, regs, KL_NONE, e->at)].re;
  if (r.lanes == lanes) return r;
  return kb_extract(&e->k, r, varying ? kl_point_number(b, kl_bound(b, KL_BIND_LANE), KL_NONE, e->at) : 0);
}

static kb_reg extremum(kl_emit *e, const kl_aff_atom *a, unsigned lanes) {
  kb_reg r = kl_emit_expr(e, a->arg[0], lanes);
  for (uint32_t i = 1; i < a->n; i++) {
    kb_reg x = kl_emit_expr(e, a->arg[i], lanes);
    r = a->kind == KL_AFF_MIN ? kb_smin(&e->k, r, x) : kb_smax(&e->k, r, x);
  }
  return r;
}

static kb_reg atom_value(kl_emit *e, const kl_aff_atom *a, unsigned lanes) {
  kb *k = &e->k;
  if (a->kind == KL_AFF_DIM) return variable(e, a->var, lanes);
  if (a->kind == KL_AFF_RT) return symbol(e, a->var - KL_FIRST_SYMBOL, lanes);
  if (a->kind == KL_AFF_MIN || a->kind == KL_AFF_MAX) return extremum(e, a, lanes);
  int64_t up = kl_floor_shift(e->body->domain, a);
  kb_reg x = kl_emit_expr(e, a->arg[0], lanes);
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
static kb_reg take_remainders(kl_emit *e, sum *s, int64_t *constant, unsigned lanes) {
  kb *k = &e->k;
  kb_reg total = {0};
  for (uint32_t i = 0; i < s->x->n; i++) {
    const kl_aff_term *f = &s->x->terms[i], *t;
    int64_t g, m;
    if (s->taken[i] || !is_floor(f->atom)) continue;
    if ((t = remainder_of_floor(s, f, &m))) {
      take(s, t);
      total = plus(k, total, scaled(k, kb_andi(k, atom_value(e, t->atom, lanes), m - 1), t->coef));
    } else if (is_remainder_of_sum(s, f, &g)) {
      const kl_aff *b = f->atom->arg[0];
      for (uint32_t j = 0; j < b->n; j++) take(s, find_term(s, b->terms[j].atom));
      *constant -= g * b->c;
      total = plus(k, total, scaled(k, kb_andi(k, kl_emit_expr(e, b, lanes), f->atom->k - 1), g));
    } else {
      continue;
    }
    take(s, f);
  }
  return total;
}

// --- digits of the thread's number ----------------------------------------------------------------------------------

// The digit above variable v among those of a thread's number in its block; KL_NONE: it is the highest.
static uint32_t digit_above(const kl_body *b, uint32_t v) {
  kl_vars lower = ((kl_vars)1 << v) - 1, lanes = kl_bound(b, KL_BIND_LANE), warps = kl_bound(b, KL_BIND_WARP);
  kl_vars in = lanes >> v & 1 && (lanes & lower) ? lanes & lower : lanes >> v & 1 ? warps : warps & lower;
  return in ? 31 - (uint32_t)__builtin_clz(in) : KL_NONE;
}

static const kl_aff_term *find_var(const sum *s, uint32_t v) {
  for (uint32_t i = 0; i < s->x->n; i++)
    if (s->x->terms[i].atom->kind == KL_AFF_DIM && s->x->terms[i].atom->var == v && !s->taken[i])
      return &s->x->terms[i];
  return NULL;
}

// Digits side by side, each as much as those below it have values, are one number: that of the thread, shifted, with
// what is above them cut off, if anything is: then they have 2^n values.
static kb_reg take_digits(kl_emit *e, sum *s, uint32_t v, unsigned shift) {
  kb *k = &e->k;
  const kl_body *b = e->body;
  const kl_aff_term *t = find_var(s, v), *next;
  if (!t) return (kb_reg){0};
  int64_t values = b->vars[v].extent;
  uint32_t above = digit_above(b, v), n = 1;
  take(s, t);
  for (; above != KL_NONE; above = digit_above(b, above), n++) {
    if (!is_power_of_two(values) || !(next = find_var(s, above)) || next->coef != t->coef * values) break;
    if (!is_power_of_two(b->vars[above].extent) && digit_above(b, above) != KL_NONE) break;
    take(s, next);
    values *= b->vars[above].extent;
  }
  if (n == 1) return scaled(k, e->vars[v], t->coef);
  kb_reg r = kb_lshri(k, e->tid, shift);
  return scaled(k, above == KL_NONE ? r : kb_andi(k, r, values - 1), t->coef);
}

static kb_reg take_threads(kl_emit *e, sum *s, kb_reg total) {
  const kl_body *b = e->body;
  kl_vars lanes = kl_bound(b, KL_BIND_LANE);
  if (!e->tid.v || !lanes) return total;
  uint32_t v = 31 - (uint32_t)__builtin_clz(lanes);
  for (int64_t place = 1; v != KL_NONE && is_power_of_two(place); v = digit_above(b, v)) {
    kb_reg r = take_digits(e, s, v, (unsigned)__builtin_ctzll((unsigned long long)place));
    if (r.v) total = plus(&e->k, total, r);
    place *= b->vars[v].extent;
  }
  return total;
}

kb_reg kl_emit_expr(kl_emit *e, const kl_aff *x, unsigned lanes) {
  kb *k = &e->k;
  int64_t constant = x->c;
  sum *s = kl_arena_alloc(e->arena, sizeof *s + x->n * sizeof(bool));
  *s = (sum){.x = x};
  memset(s->taken, 0, x->n * sizeof(bool));
  kb_reg total = take_threads(e, s, take_remainders(e, s, &constant, lanes));
  for (uint32_t i = 0; i < x->n; i++) {
    if (!s->taken[i]) total = plus(k, total, scaled(k, atom_value(e, x->terms[i].atom, lanes), x->terms[i].coef));
  }
  if (!total.v) return kb_int(k, e->index, lanes, constant);
  return kb_addi(k, total, constant);
}

// lo <= x <= hi: one unsigned comparison of x - lo, or one signed one where the other side holds anyway.
static kb_reg in_range(kl_emit *e, const kl_guard *g, unsigned lanes) {
  kb *k = &e->k;
  kb_reg x = kl_emit_expr(e, g->expr, lanes);
  kl_interval in = kl_dom_interval(e->body->domain, g->expr);
  if (in.lo >= g->lo) return kb_icmp(k, LLVMIntSLE, x, kb_ilike(k, x, g->hi));
  if (in.hi <= g->hi) return kb_icmp(k, LLVMIntSGE, x, kb_ilike(k, x, g->lo));
  if (g->lo == g->hi) return kb_icmp(k, LLVMIntEQ, x, kb_ilike(k, x, g->lo));
  return kb_icmp(k, LLVMIntULE, kb_addi(k, x, -g->lo), kb_ilike(k, x, g->hi - g->lo));
}

// --- guards ---------------------------------------------------------------------------------------------------------

// The first point that the guard says the same of, of the variables `vars`.
static void round_down(const kl_body *b, const kl_guard *g, kl_vars vars, int64_t *at) {
  for (uint32_t v = 0; v < b->nvars; v++)
    if (kl_has_var(vars, v)) at[v] -= at[v] % g->uniform[v];
}

// Does the guard say the same for all lanes of a vector?
static bool is_uniform(const kl_body *b, const kl_guard *g, kl_vars lanes) {
  for (uint32_t v = 0; v < b->nvars; v++)
    if (kl_has_var(lanes, v) && g->uniform[v] < b->vars[v].extent) return false;
  return true;
}

static kb_reg range_at(kl_emit *e, const kl_guard *g, kl_vars vars, const int64_t *at, unsigned lanes) {
  kb_reg before[KL_MAX_VARS];
  memcpy(before, e->vars, sizeof before);
  memcpy(e->at, at, e->body->nvars * sizeof *at);
  for (uint32_t v = 0; v < e->body->nvars; v++)
    if (kl_has_var(vars, v)) e->vars[v] = kb_int(&e->k, e->index, 1, at[v]);
  kb_reg r = in_range(e, g, lanes);
  memcpy(e->vars, before, sizeof before);
  return r;
}

static kb_reg *room_for(kl_emit *e, kb_reg **p, kl_vars vars, const int64_t *at) {
  if (!*p) *p = KL_NEW_N(e->arena, kb_reg, kl_extent(e->body, vars));
  return *p + kl_point_number(e->body, vars, KL_NONE, at);
}

kb_reg kl_emit_guard_at(kl_emit *e, uint32_t guard, const int64_t *at) {
  const kl_body *b = e->body;
  const kl_guard *g = &b->guards[guard];
  kl_vars vars = kl_guard_vars(b, guard) & kl_inner(b);
  int64_t first[KL_MAX_VARS];
  memcpy(first, at, b->nvars * sizeof *at);
  round_down(b, g, vars, first);
  kb_reg *slot = room_for(e, &e->guards[guard].scalar, vars, first);
  if (slot->v) return *slot;
  kl_truth known = kl_guard_at(e->plan, b, guard, vars, first);
  if (known != KL_UNKNOWN) return *slot = kb_int(&e->k, KB_I1, 1, known == KL_YES);
  kb_reg r = range_at(e, g, vars, first, 1);
  if (g->outer != KL_NONE) r = kb_and(&e->k, r, kl_emit_guard_at(e, g->outer, first));
  return *slot = r;
}

static kb_reg guard_wide(kl_emit *e, uint32_t guard, const int64_t *at) {
  const kl_body *b = e->body;
  const kl_guard *g = &b->guards[guard];
  kl_vars vars = kl_guard_vars(b, guard) & kl_inner(b), lanes = vars & kl_bound(b, KL_BIND_LANE), regs = vars & ~lanes;
  int64_t first[KL_MAX_VARS];
  memcpy(first, at, b->nvars * sizeof *at);
  for (uint32_t v = 0; v < b->nvars; v++)
    if (kl_has_var(lanes, v)) first[v] = 0;
  if (is_uniform(b, g, lanes)) return kb_splat(&e->k, kl_emit_guard_at(e, guard, first), e->width);
  round_down(b, g, regs, first);
  kb_reg *slot = room_for(e, &e->guards[guard].wide, regs, first);
  if (slot->v) return *slot;
  kb_reg r = range_at(e, g, regs, first, e->width);
  if (g->outer != KL_NONE) r = kb_and(&e->k, r, guard_wide(e, g->outer, first));
  return *slot = r;
}

kb_reg kl_emit_guard_copy(kl_emit *e, uint32_t guard, kl_vars regs, uint32_t run, unsigned copy) {
  int64_t at[KL_MAX_VARS] = {0};
  kl_nth_point(e->body, regs, run != KL_NONE && kl_has_var(regs, run) ? run : KL_NONE, copy, at);
  return e->width == 1 ? kl_emit_guard_at(e, guard, at) : guard_wide(e, guard, at);
}

kb_reg kl_emit_guard(kl_emit *e, uint32_t guard) {
  return kl_emit_guard_at(e, guard, (int64_t[KL_MAX_VARS]){0});
}
