// What values depend on: steps and symbols say it themselves, and guards, groups and branches believe them.
//
// A step depends on what its operands, expressions and guards do. A symbol is the same over a group if nothing that its
// step is made of changes in it; as long as no operand has copies along a variable, nothing does.

#include "lower/plan/verify/check.h"

static kl_vars guard_vars(const kl_body *b, uint32_t guard) {
  return guard == KL_NONE ? 0 : kl_guard_vars(b, guard);
}

// What is carried differs from round to round, and as whatever it began with. Behind a loop there is what its last
// round left.
static kl_vars depends_on(const kl_check *k, const kl_step *s) {
  const kl_body *b = k->body;
  kl_vars r = s->regs;
  for (uint32_t i = 0; i < s->noperands; i++) r |= b->steps[s->operands[i]].vars;
  for (uint32_t i = 0; s->kind == KL_STEP_CHOOSE && i + 1 < s->noperands; i++) r |= guard_vars(b, s->guards[i]);
  if (s->kind == KL_STEP_LOAD) r |= kl_vars_of(b, s->access.element) | guard_vars(b, s->access.guard);
  if (s->kind == KL_STEP_CARRIED) r |= ~kl_bound(b, KL_BIND_REG) & ~k->gone;
  if (s->kind == KL_STEP_EXCHANGE) r |= (kl_vars)1 << s->var | (kl_vars)1 << s->lane;
  if (s->expr) r |= kl_vars_of(b, s->expr);
  if (s->kind == KL_STEP_TAKE) r &= ~((kl_vars)1 << s->var);
  if (s->kind != KL_STEP_CARRIED) r &= ~kl_bound(b, KL_BIND_STEP) | k->loops;
  if (s->kind == KL_STEP_ANY) r &= ~kl_bound(b, KL_BIND_LANE);
  return r & (kl_vars)(((uint64_t)1 << b->nvars) - 1);
}

// --- groups of symbols ----------------------------------------------------------------------------------------------

static bool guard_stays(const kl_body *b, uint32_t guard, uint32_t var, int64_t u) {
  for (; guard != KL_NONE; guard = b->guards[guard].outer)
    if (kl_has_var(kl_vars_of(b, b->guards[guard].expr), var) && !kl_same_over(b, &b->guards[guard], var, u))
      return false;
  return true;
}

static bool expr_stays(const kl_body *b, const kl_aff *e, uint32_t var, int64_t u) {
  int64_t each;
  return !kl_has_var(kl_vars_of(b, e), var) || (kl_spread(b, e, var, u, &each) && each == 0);
}

// Is what the step itself adds to its operands the same over groups? A lane's neighbours have other values of their
// own.
static bool step_stays(const kl_body *b, const kl_step *s, uint32_t var, int64_t u) {
  switch (s->kind) {
  case KL_STEP_CARRIED: return false;
  case KL_STEP_SHUFFLE:
  case KL_STEP_ROTATE: return b->vars[var].binding == KL_BIND_REG;
  case KL_STEP_EXCHANGE: return b->vars[var].binding == KL_BIND_REG && (var != s->var || s->distance % u == 0);
  case KL_STEP_SLIDE: return var != s->var && expr_stays(b, s->expr, var, u);
  case KL_STEP_LOAD: return guard_stays(b, s->access.guard, var, u) && expr_stays(b, s->access.element, var, u);
  case KL_STEP_CHOOSE:
    for (uint32_t i = 0; i + 1 < s->noperands; i++)
      if (!guard_stays(b, s->guards[i], var, u)) return false;
    return true;
  default: return !s->expr || expr_stays(b, s->expr, var, u);
  }
}

// Steps on the way to the value, the last first: each is there before who takes it.
static bool value_stays(kl_check *k, uint32_t value, uint32_t var, int64_t u) {
  const kl_body *b = k->body;
  bool *counts = KL_NEW_N(k->arena, bool, value + 1);
  counts[value] = true;
  for (uint32_t i = value + 1; i-- > 0;) {
    const kl_step *s = &b->steps[i];
    if (!counts[i] || !kl_has_var(s->vars, var)) continue;
    if (!step_stays(b, s, var, u)) return false;
    for (uint32_t o = 0; o < s->noperands; o++) {
      if (s->operands[o] >= i) return false;
      counts[s->operands[o]] = true;
    }
  }
  return true;
}

static kiln_status check_symbol(kl_check *k, uint32_t step) {
  const kl_body *b = k->body;
  const kl_step *s = &b->steps[step];
  if (s->var >= b->nsymbols || b->symbols[s->var].step != step) return kl_refute(k, "makes no symbol");
  const kl_symbol *made = &b->symbols[s->var];
  if (s->vars & ~made->vars) return kl_refute(k, "its symbol depends on more than it says");
  for (uint32_t v = 0; v < b->nvars; v++) {
    uint16_t u = made->uniform[v];
    if (!kl_has_var(made->vars & kl_inner(b), v) || u <= 1) continue;
    if (!value_stays(k, step, v, u))
      return kl_refute(k, "its symbol is not known to be the same for %u values of %s", u, b->vars[v].name);
  }
  return KILN_OK;
}

kiln_status kl_check_dependence(kl_check *k, uint32_t step) {
  const kl_step *s = &k->body->steps[step];
  kl_look_at(k, KL_OF_STEP, step);
  if (depends_on(k, s) & ~s->vars) return kl_refute(k, "depends on more than it says");
  return s->kind == KL_STEP_INDEX ? check_symbol(k, step) : KILN_OK;
}
