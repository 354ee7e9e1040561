// Points, indices, guards.

#include "machine.h"

kl_vars bound_to(const kl_body *b, kl_binding binding) {
  kl_vars vars = 0;
  for (uint32_t v = 0; v < b->nvars; v++) vars |= (kl_vars)(b->vars[v].binding == binding) << v;
  return vars;
}

int64_t points_of(const kl_body *b, kl_vars vars) {
  int64_t n = 1;
  for (uint32_t v = 0; v < b->nvars; v++) n *= has_var(vars, v) ? b->vars[v].extent : 1;
  return n;
}

static void put_digit(const kl_body *b, uint32_t v, int64_t *number, int64_t *at) {
  at[v] = *number % b->vars[v].extent;
  *number /= b->vars[v].extent;
}

void to_point(const kl_body *b, kl_vars vars, uint32_t run, int64_t number, int64_t *at) {
  if (run != KL_NONE) put_digit(b, run, &number, at);
  if (run != KL_NONE) vars &= ~((kl_vars)1 << run);
  for (; vars; vars ^= (kl_vars)1 << (31 - __builtin_clz(vars))) put_digit(b, 31 - __builtin_clz(vars), &number, at);
}

int64_t of_point(const kl_body *b, kl_vars vars, const int64_t *at) {
  int64_t number = 0;
  for (; vars; vars &= vars - 1) {
    uint32_t v = (uint32_t)__builtin_ctz(vars);
    number = number * b->vars[v].extent + at[v];
  }
  return number;
}

kl_vars side_by_side(const machine *m) {
  return bound_to(m->body, KL_BIND_REG) | (m->host ? bound_to(m->body, KL_BIND_LANE) : 0);
}

// --- indices --------------------------------------------------------------------------------------------------------

void names_in(machine *m, const kl_aff *e, named *out) {
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    for (uint32_t k = 0; a->kind >= KL_AFF_VARS && k < a->n; k++) names_in(m, a->arg[k], out);
    if (a->kind == KL_AFF_RT) {
      uint32_t symbol = a->var - KL_FIRST_SYMBOL;
      REQUIRE(m, symbol < m->body->nsymbols, "an index in runtime variable %u", a->var);
      out->symbols[symbol / 64] |= (uint64_t)1 << symbol % 64;
    } else if (a->kind < KL_AFF_VARS) {
      REQUIRE(m, a->kind == KL_AFF_DIM && a->var < m->body->nvars, "an index in variable %u", a->var);
      out->vars |= (kl_vars)1 << a->var;
    }
  }
}

static int64_t symbol_at(const machine *m, uint32_t symbol, uint32_t thread, const int64_t *at) {
  uint32_t step = m->body->symbols[symbol].step;
  return step == KL_NONE ? m->rows : (int64_t)operand_at(m, step, thread, at);
}

// The value in arithmetic of 32 bits: sums wrap, dividends are moved up to be unsigned.
static uint32_t in_32_bits(machine *m, const kl_aff *e, const int64_t *at);

static uint32_t atom_in_32_bits(machine *m, const kl_aff_atom *a, const int64_t *at) {
  switch (a->kind) {
  case KL_AFF_DIM: return (uint32_t)at[a->var];
  case KL_AFF_RT: return (uint32_t)m->symbols[a->var];
  case KL_AFF_MIN:
  case KL_AFF_MAX: {
    int32_t r = (int32_t)in_32_bits(m, a->arg[0], at);
    for (uint32_t i = 1; i < a->n; i++) {
      int32_t x = (int32_t)in_32_bits(m, a->arg[i], at);
      if ((x < r) == (a->kind == KL_AFF_MIN)) r = x;
    }
    return (uint32_t)r;
  }
  case KL_AFF_FLOOR: {
    int64_t lo = kl_dom_interval(m->body->domain, a->arg[0]).lo, up = lo < 0 ? (-lo + a->k - 1) / a->k : 0;
    return (in_32_bits(m, a->arg[0], at) + (uint32_t)(up * a->k)) / (uint32_t)a->k - (uint32_t)up;
  }
  default: broken(m, "an index of another kind");
  }
}

static uint32_t in_32_bits(machine *m, const kl_aff *e, const int64_t *at) {
  uint32_t sum = (uint32_t)e->c;
  for (uint32_t i = 0; i < e->n; i++) sum += (uint32_t)e->terms[i].coef * atom_in_32_bits(m, e->terms[i].atom, at);
  return sum;
}

int64_t exact_at(machine *m, const kl_aff *e, uint32_t thread, const int64_t *at) {
  int64_t v = 0;
  for (uint32_t i = 0; i < m->body->nsymbols; i++)
    if (m->known[i]) m->symbols[KL_FIRST_SYMBOL + i] = symbol_at(m, i, thread, at);
  const kl_point x = {.at = {[KL_AFF_DIM] = at, [KL_AFF_RT] = m->symbols}};
  REQUIRE(m, kl_aff_eval(m->plan->affs, e, &x, &v), "an index without value");
  return v;
}

int64_t value_at(machine *m, const kl_aff *e, uint32_t thread, const int64_t *at) {
  int64_t v = exact_at(m, e, thread, at);
  kl_interval in = kl_dom_interval(m->body->domain, e);
  REQUIRE(m, in.lo <= v && v <= in.hi, "an index is %lld, which is outside %lld..%lld", (ll)v, (ll)in.lo, (ll)in.hi);
  if (!m->plan->index64)
    REQUIRE(m, (int32_t)in_32_bits(m, e, at) == v, "an index is %lld, which 32 bits do not hold", (ll)v);
  return v;
}

// --- guards ---------------------------------------------------------------------------------------------------------

bool holds_at(machine *m, uint32_t guard, uint32_t thread, const int64_t *at) {
  for (; guard != KL_NONE; guard = m->body->guards[guard].outer) {
    const kl_guard *g = &m->body->guards[guard];
    int64_t v = value_at(m, g->expr, thread, at);
    if (v < g->lo || v > g->hi) return false;
  }
  return true;
}

void names_in_guard(machine *m, uint32_t guard, named *out) {
  for (; guard != KL_NONE; guard = m->body->guards[guard].outer) names_in(m, m->body->guards[guard].expr, out);
}

kl_vars vars_of_guard(machine *m, uint32_t guard) {
  named n = {0};
  names_in_guard(m, guard, &n);
  for (uint32_t i = 0; i < m->body->nsymbols; i++) n.vars |= has_symbol(&n, i) ? m->body->symbols[i].vars : 0;
  return n.vars;
}

// --- what is the same over groups ------------------------------------------------------------------------------------

// A guard, or a symbol.
typedef struct said {
  bool is_guard;
  uint32_t number;
  kl_vars vars;
  const uint16_t *uniform;
} said;

static int64_t says(machine *m, const said *x, uint32_t thread, const int64_t *at) {
  return x->is_guard ? holds_at(m, x->number, thread, at) : symbol_at(m, x->number, thread, at);
}

// The thread whose lanes are those of a point.
static uint32_t thread_at(const machine *m, uint32_t thread, const int64_t *at) {
  return m->host ? (uint32_t)of_point(m->body, bound_to(m->body, KL_BIND_LANE), at) : thread;
}

static void check_said(machine *m, const said *x, uint32_t thread) {
  const kl_body *b = m->body;
  kl_vars inner = x->vars & side_by_side(m);
  int64_t at[KL_MAX_VARS];
  memcpy(at, m->vars[thread], sizeof at);
  for (int64_t i = 0, n = points_of(b, inner); i < n; i++) {
    to_point(b, inner, KL_NONE, i, at);
    int64_t what = says(m, x, thread_at(m, thread, at), at);
    for (uint32_t v = 0; v < b->nvars; v++) {
      int64_t here = at[v];
      if (!has_var(inner, v) || b->vars[v].extent == 1) continue;
      at[v] -= here % x->uniform[v];
      REQUIRE(m, says(m, x, thread_at(m, thread, at), at) == what, "%s %u changes where %s is %lld",
              x->is_guard ? "guard" : "symbol", x->number, b->vars[v].name, (ll)here);
      at[v] = here;
    }
  }
}

// Of many threads every so many are looked at, and the last.
enum { LOOKED_AT = 8192 };

static void check_in_threads(machine *m, const said *x) {
  kl_vars inner = x->vars & side_by_side(m);
  uint32_t by = m->host ? m->nthreads : 1 + (uint32_t)(m->nthreads * points_of(m->body, inner) / LOOKED_AT);
  for (uint32_t t = 0; inner && t < m->nthreads; t += by)
    if (m->active[t]) check_said(m, x, t);
  if (inner && m->active[m->nthreads - 1]) check_said(m, x, m->nthreads - 1);
}

static void check_guard(machine *m, uint32_t guard) {
  check_in_threads(m, &(said){true, guard, m->guard_vars[guard], m->body->guards[guard].uniform});
}

// Those that data says.
static bool has_symbols(machine *m, uint32_t guard) {
  named n = {0};
  if (m->body->nsymbols) names_in_guard(m, guard, &n);
  for (uint32_t i = 0; i < m->body->nsymbols; i++)
    if (has_symbol(&n, i) && m->body->symbols[i].step != KL_NONE) return true;
  return false;
}

void check_guards(machine *m, kl_vars open, uint32_t changed) {
  kl_vars steps = bound_to(m->body, KL_BIND_STEP), now = changed == KL_NONE ? 0 : (kl_vars)1 << changed;
  for (uint32_t g = 0; g < m->body->nguards; g++) {
    kl_vars vars = m->guard_vars[g];
    if ((vars & steps & ~open) || (now ? !(vars & now) : vars & steps)) continue;
    if (!has_symbols(m, g)) check_guard(m, g);
  }
}

// Guards in the symbol, if it is the last of theirs.
void check_symbol(machine *m, uint32_t symbol) {
  const kl_symbol *s = &m->body->symbols[symbol];
  check_in_threads(m, &(said){false, symbol, s->vars, s->uniform});
  for (uint32_t g = 0; g < m->body->nguards; g++) {
    named n = {0};
    names_in_guard(m, g, &n);
    bool now = has_symbol(&n, symbol);
    for (uint32_t i = 0; i < m->body->nsymbols; i++) now = now && (!has_symbol(&n, i) || m->known[i]);
    if (now) check_guard(m, g);
  }
}
