// Solving results for variables, the converse of a map, and range variables on a residue class.
//
// A result c + sum(coef_i * unit_i), units with u_i >= 0 values 0..u_i - 1 once shifted, is a mixed-radix number if, in
// order of |coef|, each coefficient exceeds what all below it can come to. Then its digits follow from its value Y from
// the top: unit = floor(Y / coef), Y := Y - coef*unit. Digits of one variable, x mod m and (x / m) mod b and so on up
// to a floor or the variable's whole range, make up the variable. What is found this way is a proposal: whoever
// uses it proves it, by putting the results in.

#include "ir/index/decide/solve.h"
#include <stdlib.h>

// A piece of a variable that is known: floor(x / a) mod b, or floor(x / a) itself (b = 0), x = variable + shift.
typedef struct piece {
  int64_t a, b;
  const kl_aff *shift; // over known variables, in m's space
  const kl_aff *value; // in the target space
} piece;

typedef struct unknown {
  kl_aff_kind kind;
  uint32_t i;
  VEC(piece) pieces;
  const kl_aff *value;
} unknown;

typedef struct solver {
  kl_affs *p;
  kl_ctx *cx;
  const kl_map *m;
  kl_dom dom;         // of m's bounds
  kl_aff_subst known; // what m's variables are in the target space; NULL: not yet known
  const kl_aff **to[KL_AFF_VARS];
  VEC(unknown) unknowns;
} solver;

static unknown *find_unknown(solver *s, const kl_aff_atom *v) {
  for (uint32_t i = 0; i < s->unknowns.n; i++) {
    unknown *u = &s->unknowns.p[i];
    if (u->kind == v->kind && u->i == v->var && !u->value) return u;
  }
  return NULL;
}

static bool is_known(solver *s, const kl_aff *e) {
  bool *used[KL_AFF_VARS];
  for (int k = 0; k < KL_AFF_VARS; k++) used[k] = KL_NEW_N(s->p->arena, bool, s->m->nvars[k] + 1);
  kl_aff_mark(s->p, e, used, s->m->nvars);
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < s->m->nvars[k]; i++) {
      if (used[k][i] && !s->to[k][i]) return false;
    }
  }
  return true;
}

static const kl_aff *in_target(solver *s, const kl_aff *e) {
  const kl_aff *r;
  kl_aff_replace(s->p, &s->known, &e, 1, &r);
  return r;
}

// x = variable + shift, the shift known. NULL if x is not so.
static unknown *as_shifted(solver *s, const kl_aff *x, const kl_aff **shift) {
  unknown *u = NULL;
  const kl_aff *rest = x;
  for (uint32_t i = 0; i < x->n; i++) {
    const kl_aff_atom *a = x->terms[i].atom;
    if (is_known(s, kl_aff_of(s->p, a))) continue;
    if (u || a->kind >= KL_AFF_VARS || x->terms[i].coef != 1) return NULL;
    u = find_unknown(s, a);
    rest = kl_aff_sub(s->p, x, kl_aff_of(s->p, a));
  }
  *shift = rest;
  return u && !rest->error ? u : NULL;
}

// floor(e / 1) or e = floor(x / a): x and a.
static const kl_aff *floored(const kl_aff *e, int64_t *a) {
  *a = 1;
  if (e->n != 1 || e->c != 0 || e->terms[0].coef != 1 || e->terms[0].atom->kind != KL_AFF_FLOOR) return e;
  *a = e->terms[0].atom->k;
  return e->terms[0].atom->arg[0];
}

// The unit has this value in the target space.
static bool learn(solver *s, const kl_unit *u, const kl_aff *value) {
  piece d = {.b = u->atom ? 0 : u->b, .value = value};
  const kl_aff *x = floored(u->atom ? kl_aff_of(s->p, u->atom) : u->sub, &d.a);
  unknown *v = as_shifted(s, x, &d.shift);
  if (!v) return false;
  for (uint32_t i = 0; i < v->pieces.n; i++) {
    const piece *o = &v->pieces.p[i];
    if (o->a == d.a && o->b == d.b && o->shift == d.shift) return false;
  }
  VEC_PUSH(s->cx, &v->pieces, d);
  return true;
}

// --- digits of a result -------------------------------------------------------------------------------------------

typedef struct digit {
  kl_unit u;
  kl_span64 in;
} digit;

static int by_weight(const void *a, const void *b) {
  const digit *x = a, *y = b;
  uint64_t cx = kl_abs64(x->u.coef), cy = kl_abs64(y->u.coef);
  return (cx > cy) - (cx < cy);
}

// Units of e with variables not yet known; the rest of e, known, in *rest (m's space). False if they are no mixed-radix
// number.
static bool digits_of(solver *s, const kl_aff *e, digit *d, uint32_t *n, const kl_aff **rest) {
  kl_units u;
  if (!kl_aff_units(s->p, e, 0, &u) || u.c > INT64_MAX || u.c < INT64_MIN) return false;
  *n = 0;
  *rest = kl_aff_const(s->p, (int64_t)u.c);
  for (uint32_t i = 0; i < u.n; i++) {
    const kl_aff *x = kl_unit_value(s->p, &u.u[i]);
    if (x->error || u.u[i].coef == INT64_MIN) return false;
    if (is_known(s, x))
      *rest = kl_aff_addmul(s->p, *rest, x, u.u[i].coef);
    else
      d[(*n)++] = (digit){u.u[i], kl_dom_range(&s->dom, x)};
  }
  if (*n == 0 || (*rest)->error) return false;
  qsort(d, *n, sizeof *d, by_weight);
  wide below = 0;
  for (uint32_t i = 0; i < *n; i++) {
    wide weight = kl_abs64(d[i].u.coef);
    bool open = d[i].in.lo == INT64_MIN || d[i].in.hi == INT64_MAX;
    if (weight <= below || (open && *n > 1)) return false;
    if (!open) below += weight * ((wide)d[i].in.hi - d[i].in.lo);
    if (below > INT64_MAX) return false;
  }
  return true;
}

// Y = sum(coef * unit), from the top.
static bool take_digits(solver *s, const digit *d, uint32_t n, const kl_aff *y) {
  kl_affs *p = s->p;
  bool any = false;
  for (uint32_t i = 0; i < n; i++) { // so that every digit starts at 0
    int64_t end = d[i].u.coef < 0 ? d[i].in.hi : d[i].in.lo;
    if (n > 1) y = kl_aff_addmul(p, y, kl_aff_const(p, end), -d[i].u.coef);
  }
  for (uint32_t i = n; i-- > 0;) {
    int64_t c = d[i].u.coef, weight = c < 0 ? -c : c, end = n == 1 ? 0 : c < 0 ? d[i].in.hi : d[i].in.lo;
    const kl_aff *q = kl_aff_floordivc(p, y, weight);
    y = kl_aff_addmul(p, y, q, -weight);
    const kl_aff *value = kl_aff_addc(p, c < 0 ? kl_aff_mulc(p, q, -1) : q, end);
    if (value->error || y->error) return any;
    any = learn(s, &d[i].u, value) || any;
  }
  return any;
}

// --- variables of their pieces ------------------------------------------------------------------------------------

// variable + shift from pieces of the same shift: the part below `m` is known to be `low`.
static const kl_aff *assemble(solver *s, const unknown *u, const kl_aff *shift) {
  kl_affs *p = s->p;
  const kl_aff *low = kl_aff_const(p, 0), *x = kl_aff_add(p, kl_aff_var(p, u->kind, u->i), shift);
  kl_span64 in = kl_dom_range(&s->dom, x);
  int64_t m = 1;
  for (uint32_t round = 0; round <= u->pieces.n; round++) {
    if (in.lo >= 0 && in.hi < m) return low;
    if (in.lo > INT64_MIN && in.hi < INT64_MAX && kl_floor64(in.lo, m) == kl_floor64(in.hi, m)) {
      wide base = (wide)kl_floor64(in.lo, m) * m;
      return base < INT64_MIN ? NULL : kl_aff_addc(p, low, (int64_t)base);
    }
    const piece *next = NULL;
    for (uint32_t i = 0; i < u->pieces.n; i++) {
      const piece *d = &u->pieces.p[i];
      if (d->shift == shift && d->a == m && (!next || d->b == 0 || (next->b && d->b > next->b))) next = d;
    }
    if (!next) return NULL;
    low = kl_aff_addmul(p, low, next->value, m);
    if (next->b == 0) return low;
    if (low->error || __builtin_mul_overflow(m, next->b, &m)) return NULL;
  }
  return NULL;
}

static bool settle(solver *s, unknown *u) {
  for (uint32_t i = 0; i < u->pieces.n; i++) {
    const kl_aff *shift = u->pieces.p[i].shift, *x = assemble(s, u, shift);
    if (!x || x->error) continue;
    u->value = kl_aff_sub(s->p, x, in_target(s, shift));
    if (u->value->error) u->value = NULL;
    if (!u->value) continue;
    s->to[u->kind][u->i] = u->value;
    return true;
  }
  return false;
}

// Proposes values, in the target space, of m's variables that `to` does not have, such that m's results are y. What is
// not found stays NULL.
static void solve(solver *s, const kl_aff *const *y) {
  digit d[KL_MOST_UNITS];
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < s->m->nresults; i++) {
      uint32_t n;
      const kl_aff *rest;
      if (!digits_of(s, s->m->results[i], d, &n, &rest)) continue;
      const kl_aff *value = kl_aff_sub(s->p, y[i], in_target(s, rest));
      if (!value->error && take_digits(s, d, n, value)) more = true;
    }
    for (uint32_t i = 0; i < s->unknowns.n; i++) {
      if (!s->unknowns.p[i].value && settle(s, &s->unknowns.p[i])) more = true;
    }
  }
}

static void open_solver(solver *s, kl_affs *p, const kl_map *m) {
  *s = (solver){.p = p, .cx = p->cx, .m = m};
  s->dom = (kl_dom){.p = p};
  for (int k = 0; k < KL_AFF_VARS; k++) {
    s->to[k] = KL_NEW_N(p->arena, const kl_aff *, m->nvars[k] + 1);
    s->known.to[k] = s->to[k];
    s->known.n[k] = m->nvars[k];
    s->dom.n[k] = m->nvars[k];
    s->dom.vars[k] = KL_NEW_N(p->arena, kl_span64, m->nvars[k] + 1);
    for (uint32_t i = 0; i < m->nvars[k]; i++) s->dom.vars[k][i] = kl_span_of(m->vars[k][i].in);
  }
  s->dom.stamp = kl_affs_stamp(p);
}

static void close_solver(solver *s) {
  for (uint32_t i = 0; i < s->unknowns.n; i++) VEC_FREE(s->cx, &s->unknowns.p[i].pieces);
  VEC_FREE(s->cx, &s->unknowns);
}

static void ask(solver *s, kl_aff_kind kind) {
  for (uint32_t i = 0; i < s->m->nvars[kind]; i++) VEC_PUSH(s->cx, &s->unknowns, (unknown){.kind = kind, .i = i});
}

// Is e 0 at every point of m?
static bool is_zero(kl_affs *p, const kl_map *m, const kl_aff *e, uint32_t quota) {
  static const kl_interval outside[] = {{1, INT64_MAX}, {INT64_MIN, -1}};
  bool zero = true;
  for (int i = 0; i < 2 && zero; i++) {
    zero = kl_domain_excludes(p, m, e, outside[i], quota, NULL) == KL_YES;
  }
  return zero;
}

// Is `value` right: with m's own results for the target's dims (`back`), is it the variable at every point of m?
static bool is_left_inverse(kl_affs *p, const kl_map *m, const kl_aff *value, const kl_aff *var,
                            const kl_aff_subst *back, uint32_t quota) {
  const kl_aff *e;
  kl_aff_replace(p, back, &value, 1, &e);
  const kl_aff *gap = kl_aff_sub(p, e, var);
  const kl_map *test = kl_map_simplify(p, kl_map_with_results(p, m, &gap, 1), 0);
  if (test->state == KL_MAP_EMPTY) return true;
  if (test->state != KL_MAP_DEFINED) return false;
  if (kl_aff_is_const(test->results[0])) return test->results[0]->c == 0;
  return is_zero(p, test, test->results[0], quota);
}

bool kl_map_solve_ranges(kl_affs *p, const kl_map *m, const kl_aff_subst *known, const kl_aff *const *y, uint32_t quota,
                         const kl_aff **out, bool *unique) {
  solver s;
  open_solver(&s, p, m);
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k] && k != KL_AFF_RANGE; i++) s.to[k][i] = known->to[k][i];
  }
  ask(&s, KL_AFF_RANGE);
  solve(&s, y);
  bool all = true;
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RANGE]; i++) {
    out[i] = s.to[KL_AFF_RANGE][i];
    all = all && out[i];
  }
  close_solver(&s);
  *unique = false;
  if (!all || !m->nvars[KL_AFF_RANGE]) return all;
  // Once more in m's own space: is it a left inverse?
  solver own;
  open_solver(&own, p, m);
  kl_aff_subst self = {.n = {0}};
  for (int k = 0; k < KL_AFF_VARS; k++) {
    for (uint32_t i = 0; i < m->nvars[k] && k != KL_AFF_RANGE; i++) own.to[k][i] = kl_aff_var(p, (kl_aff_kind)k, i);
  }
  ask(&own, KL_AFF_RANGE);
  solve(&own, m->results);
  *unique = true;
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RANGE] && *unique; i++) {
    const kl_aff *v = own.to[KL_AFF_RANGE][i];
    *unique = v && is_left_inverse(p, m, v, kl_aff_range(p, i), &self, quota);
  }
  close_solver(&own);
  return all;
}

// Does the index of a runtime variable need the variable's own value?
static bool is_circular(kl_affs *p, const kl_map *m) {
  uint32_t n = m->nvars[KL_AFF_RT], known = 0, before;
  bool *done = KL_NEW_N(p->arena, bool, n + 1);
  do {
    before = known;
    for (uint32_t i = 0; i < n; i++) {
      const kl_producer *from = &m->vars[KL_AFF_RT][i].from;
      bool *used[KL_AFF_VARS], ready = !done[i];
      for (int k = 0; ready && k < KL_AFF_VARS; k++) used[k] = KL_NEW_N(p->arena, bool, m->nvars[k] + 1);
      for (uint32_t j = 0; ready && j < from->nindex; j++) kl_aff_mark(p, from->index[j], used, m->nvars);
      for (uint32_t j = 0; ready && j < n; j++) ready = !used[KL_AFF_RT][j] || done[j];
      if (ready) done[i] = true, known++;
    }
  } while (known > before && known < n);
  return known < n;
}

// --- the converse -------------------------------------------------------------------------------------------------

static kl_interval span_interval(const kl_span64 *s) {
  return (kl_interval){s->lo, s->hi};
}

// The converse of s->m from its solved variables: see kl_map_invert.
static const kl_map *converse(solver *s) {
  kl_affs *p = s->p;
  const kl_map *m = s->m;
  uint32_t nd = m->nvars[KL_AFF_DIM], nr = m->nvars[KL_AFF_RANGE], free_ranges = 0, n = 0;
  kl_map r = {.nvars = {m->nresults, 0, m->nvars[KL_AFF_RT]}, .nresults = nd};
  kl_map_var *dims = KL_NEW_N(p->arena, kl_map_var, m->nresults + 1),
             *ranges = KL_NEW_N(p->arena, kl_map_var, nd + nr + 1);
  kl_map_var *rts = KL_NEW_N(p->arena, kl_map_var, m->nvars[KL_AFF_RT] + 1);
  kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, nd + nr + m->nconstraints + m->nresults + 1);
  bool *solved[KL_AFF_VARS] = {KL_NEW_N(p->arena, bool, nd + 1), KL_NEW_N(p->arena, bool, nr + 1), NULL};
  for (int k = 0; k <= KL_AFF_RANGE; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) {
      solved[k][i] = s->to[k][i] != NULL;
      if (solved[k][i]) continue;
      ranges[free_ranges].in = m->vars[k][i].in;
      s->to[k][i] = kl_aff_range(p, free_ranges++);
    }
  }
  const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, nd + 1);
  for (uint32_t i = 0; i < nd; i++) results[i] = s->to[KL_AFF_DIM][i];
  for (int k = 0; k <= KL_AFF_RANGE; k++) {
    for (uint32_t i = 0; i < m->nvars[k]; i++) {
      if (solved[k][i]) c[n++] = (kl_constraint){s->to[k][i], m->vars[k][i].in};
    }
  }
  for (uint32_t i = 0; i < m->nconstraints; i++)
    c[n++] = (kl_constraint){in_target(s, m->constraints[i].e), m->constraints[i].in};
  for (uint32_t i = 0; i < m->nresults; i++) {
    kl_span64 in = kl_dom_range(&s->dom, m->results[i]);
    dims[i].in = span_interval(&in);
    c[n++] = (kl_constraint){kl_aff_sub(p, in_target(s, m->results[i]), kl_aff_dim(p, i)), {0, 0}};
  }
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++) {
    rts[i] = m->vars[KL_AFF_RT][i];
    const kl_aff **index = KL_NEW_N(p->arena, const kl_aff *, rts[i].from.nindex + 1);
    for (uint32_t j = 0; j < rts[i].from.nindex; j++) index[j] = in_target(s, rts[i].from.index[j]);
    rts[i].from.index = index;
  }
  r.nvars[KL_AFF_RANGE] = free_ranges;
  r.vars[KL_AFF_DIM] = dims;
  r.vars[KL_AFF_RANGE] = ranges;
  r.vars[KL_AFF_RT] = rts;
  r.results = results;
  r.constraints = c;
  r.nconstraints = n;
  if (is_circular(p, &r)) return kl_map_undefined(p, "a formula for the converse needs a runtime value to find it");
  return kl_map_simplify(p, kl_map_make(p, &r), 0);
}

static const kl_map *empty_converse(kl_affs *p, const kl_map *m) {
  kl_map e = {.state = KL_MAP_EMPTY,
              .nvars = {m->nresults, 0, m->nvars[KL_AFF_RT]},
              .vars = {KL_NEW_N(p->arena, kl_map_var, m->nresults + 1), NULL, m->vars[KL_AFF_RT]},
              .nresults = m->nvars[KL_AFF_DIM]};
  const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, e.nresults + 1);
  for (uint32_t i = 0; i < e.nresults; i++) results[i] = kl_aff_const(p, 0);
  e.results = results;
  return kl_map_make(p, &e);
}

const kl_map *kl_map_invert(kl_affs *p, const kl_map *m, uint32_t quota) {
  if (m->state == KL_MAP_UNDEFINED) return m;
  m = kl_map_simplify(p, m, 0);
  solver s;
  open_solver(&s, p, m);
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++) s.to[KL_AFF_RT][i] = kl_aff_rt(p, i);
  if (m->state == KL_MAP_DEFINED) {
    const kl_aff **y = KL_NEW_N(p->arena, const kl_aff *, m->nresults + 1);
    for (uint32_t i = 0; i < m->nresults; i++) y[i] = kl_aff_dim(p, i);
    ask(&s, KL_AFF_DIM);
    ask(&s, KL_AFF_RANGE);
    solve(&s, y);
  }
  kl_aff_subst back = {.to = {m->results}, .n = {m->nresults}};
  const kl_map *r = NULL;
  for (int k = 0; k <= KL_AFF_RANGE && !r && m->state == KL_MAP_DEFINED; k++) {
    for (uint32_t i = 0; i < m->nvars[k] && !r; i++) {
      if (s.to[k][i] && !is_left_inverse(p, m, s.to[k][i], kl_aff_var(p, (kl_aff_kind)k, i), &back, quota)) {
        r = kl_map_undefined(p, "a formula for the converse could not be proved");
      }
    }
  }
  if (!r && m->state == KL_MAP_EMPTY) r = empty_converse(p, m);
  if (!r) r = converse(&s);
  close_solver(&s);
  return r;
}

// --- range variables on a residue class ---------------------------------------------------------------------------

// The constraint fixes a range variable's class: its number, modulus and residue.
static bool fixes_range(kl_affs *p, const kl_constraint *c, uint32_t *i, int64_t *m, int64_t *r) {
  kl_units u;
  if (!kl_is_value(c->in) || !kl_aff_units(p, c->e, 0, &u) || u.n != 1 || u.u[0].atom || u.u[0].coef != 1) return false;
  const kl_aff_atom *v = kl_aff_is_var(u.u[0].sub);
  if (!v || v->kind != KL_AFF_RANGE || u.c != 0) return false;
  *i = v->var;
  *m = u.u[0].b;
  *r = c->in.lo;
  return true;
}

const kl_map *kl_map_rescale(kl_affs *p, const kl_map *m) {
  const kl_map *s = kl_map_simplify(p, m, 0); // classes of one variable are joined, bounds are on the class
  if (s->state != KL_MAP_DEFINED) return s;
  for (uint32_t j = 0; j < s->nconstraints; j++) {
    uint32_t i;
    int64_t mod, r;
    if (!fixes_range(p, &s->constraints[j], &i, &mod, &r)) continue;
    kl_map parts = *s;
    const kl_aff **to = KL_NEW_N(p->arena, const kl_aff *, s->nvars[KL_AFF_RANGE] + 1);
    for (uint32_t k = 0; k < s->nvars[KL_AFF_RANGE]; k++) to[k] = kl_aff_range(p, k);
    to[i] = kl_aff_addc(p, kl_aff_mulc(p, to[i], mod), r);
    kl_aff_subst by = {.to = {NULL, to, NULL}, .n = {0, s->nvars[KL_AFF_RANGE], 0}};
    kl_map_var *v = kl_arena_dup(p->arena, s->vars[KL_AFF_RANGE], s->nvars[KL_AFF_RANGE] * sizeof *v);
    v[i].in =
        (kl_interval){(int64_t)kl_floor128((wide)v[i].in.lo - r, mod), (int64_t)kl_floor128((wide)v[i].in.hi - r, mod)};
    const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, s->nresults + 1);
    kl_aff_replace(p, &by, s->results, s->nresults, results);
    kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, s->nconstraints + 1);
    parts.nconstraints = 0;
    for (uint32_t k = 0; k < s->nconstraints; k++) {
      if (k == j) continue;
      c[parts.nconstraints] = s->constraints[k];
      kl_aff_replace(p, &by, &s->constraints[k].e, 1, &c[parts.nconstraints++].e);
    }
    kl_map_var *rts = KL_NEW_N(p->arena, kl_map_var, s->nvars[KL_AFF_RT] + 1);
    for (uint32_t k = 0; k < s->nvars[KL_AFF_RT]; k++) {
      rts[k] = s->vars[KL_AFF_RT][k];
      const kl_aff **index = KL_NEW_N(p->arena, const kl_aff *, rts[k].from.nindex + 1);
      kl_aff_replace(p, &by, rts[k].from.index, rts[k].from.nindex, index);
      rts[k].from.index = index;
    }
    parts.vars[KL_AFF_RANGE] = v;
    parts.vars[KL_AFF_RT] = rts;
    parts.results = results;
    parts.constraints = c;
    return kl_map_rescale(p, kl_map_make(p, &parts)); // one variable less that is on a class
  }
  return s;
}

// --- range variables that an equation fixes -----------------------------------------------------------------------

static bool hold_range(kl_affs *p, const kl_map *m, const kl_aff *const *e, uint32_t n, uint32_t i) {
  bool *used[KL_AFF_VARS];
  for (int k = 0; k < KL_AFF_VARS; k++) used[k] = KL_NEW_N(p->arena, bool, m->nvars[k] + 1);
  for (uint32_t j = 0; j < n; j++) kl_aff_mark(p, e[j], used, m->nvars);
  return used[KL_AFF_RANGE][i];
}

// c says s + rest = v or rest - s = v, and rest does not hold s, nor do results where `shown`: what s is. NULL: it says
// nothing of the kind.
static const kl_aff *fixed_range(kl_affs *p, const kl_map *m, const kl_constraint *c, bool shown, uint32_t *i) {
  if (!kl_is_value(c->in) || c->e->partial) return NULL;
  for (uint32_t t = 0; t < c->e->n; t++) {
    const kl_aff_term *x = &c->e->terms[t];
    if (x->atom->kind != KL_AFF_RANGE || (x->coef != 1 && x->coef != -1)) continue;
    const kl_aff *rest = kl_aff_addmul(p, c->e, kl_aff_of(p, x->atom), -x->coef);
    const kl_aff *s = kl_aff_mulc(p, kl_aff_sub(p, kl_aff_const(p, c->in.lo), rest), x->coef);
    *i = x->atom->var;
    if (shown && hold_range(p, m, m->results, m->nresults, *i)) continue;
    if (!s->error && !hold_range(p, m, &rest, 1, *i)) return s;
  }
  return NULL;
}

// m with e for range variable i, whose bounds are then e's; without constraint j.
static const kl_map *put_in(kl_affs *p, const kl_map *m, uint32_t i, const kl_aff *e, uint32_t j) {
  kl_map parts = *m;
  const kl_aff **to = KL_NEW_N(p->arena, const kl_aff *, m->nvars[KL_AFF_RANGE] + 1);
  for (uint32_t k = 0; k < m->nvars[KL_AFF_RANGE]; k++) to[k] = k == i ? e : kl_aff_range(p, k);
  kl_aff_subst by = {.to = {NULL, to, NULL}, .n = {0, m->nvars[KL_AFF_RANGE], 0}};
  const kl_aff **results = KL_NEW_N(p->arena, const kl_aff *, m->nresults + 1);
  kl_aff_replace(p, &by, m->results, m->nresults, results);
  kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, m->nconstraints + 1);
  for (uint32_t k = 0; k < m->nconstraints; k++) {
    c[k].in = k == j ? m->vars[KL_AFF_RANGE][i].in : m->constraints[k].in;
    if (k == j)
      c[k].e = e;
    else
      kl_aff_replace(p, &by, &m->constraints[k].e, 1, &c[k].e);
  }
  kl_map_var *rts = KL_NEW_N(p->arena, kl_map_var, m->nvars[KL_AFF_RT] + 1);
  for (uint32_t k = 0; k < m->nvars[KL_AFF_RT]; k++) {
    rts[k] = m->vars[KL_AFF_RT][k];
    const kl_aff **index = KL_NEW_N(p->arena, const kl_aff *, rts[k].from.nindex + 1);
    kl_aff_replace(p, &by, rts[k].from.index, rts[k].from.nindex, index);
    rts[k].from.index = index;
  }
  parts.vars[KL_AFF_RT] = rts;
  parts.results = results;
  parts.constraints = c;
  return kl_map_make(p, &parts);
}

// Variables that no result holds go first: others then have a simple result.
const kl_map *kl_map_eliminate(kl_affs *p, const kl_map *m) {
  for (int shown = 1; shown >= 0; shown--)
    for (uint32_t j = 0; m->state == KL_MAP_DEFINED && j < m->nconstraints; j++) {
      uint32_t i;
      const kl_aff *e = fixed_range(p, m, &m->constraints[j], shown, &i);
      if (!e) continue;
      const kl_map *less = put_in(p, m, i, e, j);
      // It stays where arithmetic leaves 64 bits, or where what it is needs a runtime value that it says where to find.
      if (less->state == KL_MAP_UNDEFINED || is_circular(p, less)) continue;
      m = less;
      j = UINT32_MAX; // from the start: one variable less
    }
  return m;
}
