// Rows whose number comes at run time: which elements of a slot there are.
//
// Of a slot with `row` elements for each of N rows, element e is there if e < row * N. An index says so best as e = d*a
// + b with 0 <= b < d, where d divides `row`: then e is there if a < row / d * N, whatever b is, so that elements of a
// vector, and all of a row, have one condition. Blocks that are launched say it of the first rows that they have.

#include "lower/plan/write.h"

static int64_t magnitude(int64_t v) {
  return v < 0 ? -v : v;
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

// e as d * *above + *below: terms whose coefficients are multiples of d, and the others.
static void part(kl_affs *p, const kl_aff *e, int64_t d, const kl_aff **above, const kl_aff **below) {
  int64_t rest = e->c % d < 0 ? e->c % d + d : e->c % d;
  *above = kl_aff_const(p, (e->c - rest) / d);
  *below = e;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff *atom = kl_aff_of(p, e->terms[i].atom);
    if (e->terms[i].coef % d) continue;
    *above = kl_aff_addmul(p, *above, atom, e->terms[i].coef / d);
    *below = kl_aff_addmul(p, *below, atom, -e->terms[i].coef);
  }
  *below = kl_aff_addc(p, *below, rest - e->c);
}

// Is e in 0 .. d-1 wherever the guard holds? *always: everywhere.
static bool is_below(kl_guards *g, const kl_aff *e, int64_t d, uint32_t guard, bool *always) {
  kl_interval in = kl_dom_interval(g->body->domain, e);
  *always = in.lo >= 0 && in.hi < d;
  for (; !*always && guard != KL_NONE; guard = g->v.p[guard].outer)
    if (g->v.p[guard].expr == e && g->v.p[guard].lo >= 0 && g->v.p[guard].hi < d) return true;
  return *always;
}

// The largest d that an index can be parted by: a, with 1 <= *units = row / d. *always: whatever the guard says.
static const kl_aff *count_units(kl_guards *g, const kl_aff *e, int64_t row, uint32_t guard, int64_t *units,
                                 bool *always) {
  const kl_aff *best = e, *above, *below;
  *units = row;
  *always = true;
  for (uint32_t i = 0; i <= e->n; i++) {
    int64_t d = i ? gcd(row, magnitude(e->terms[i - 1].coef)) : row;
    bool everywhere;
    if (row / d >= *units) continue;
    part(g->affs, e, d, &above, &below);
    if (!is_below(g, kl_dom_simplify(g->body->domain, below), d, guard, &everywhere)) continue;
    best = above;
    *units = row / d;
    *always = everywhere;
  }
  return best;
}

// Is a < units * N for every block that is launched? Then a is its first row.
static bool is_launched(const kl_writer *w, const kl_aff *a, int64_t units) {
  const kl_plan_launch *l = kl_last_launch(w->plan);
  kl_vars blocks = kl_bound(w->body, KL_BIND_BLOCK);
  int64_t of_group;
  if (!l->group || !blocks || __builtin_mul_overflow(units, l->group, &of_group) || of_group % l->unit) return false;
  of_group /= l->unit;
  const kl_aff *first = kl_aff_dim(w->plan->affs, (uint32_t)__builtin_ctz(blocks));
  kl_interval in = kl_dom_interval(w->body->domain, kl_aff_addmul(w->plan->affs, a, first, -of_group));
  return in.hi < (of_group < units ? of_group : units);
}

uint32_t kl_guard_rows(kl_writer *w, const kl_slot_info *info, const kl_aff *linear, uint32_t guard, bool load) {
  kl_guards *g = &w->guards;
  if (!g->rows || !info->row) return guard;
  kl_affs *p = w->plan->affs;
  int64_t units;
  bool always, never;
  linear = kl_dom_simplify(g->body->domain, linear);
  const kl_aff *a = count_units(g, linear, info->row, guard, &units, &always);
  // A load that stays inside anyway needs no other guard.
  kl_interval in = kl_dom_interval(g->body->domain, linear);
  if (load && always && in.lo >= 0 && in.hi < info->shape->count) guard = KL_NONE;
  if (is_launched(w, a, units)) return guard;
  a = kl_aff_addmul(p, a, kl_aff_rt(p, KL_FIRST_SYMBOL), -units);
  uint32_t all = kl_guard_and(g, guard, a, kl_dom_interval(g->body->domain, a).lo, -1, &never);
  return never ? guard : all;
}
