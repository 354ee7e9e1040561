// Is a domain empty? Constraints that share no variable are systems of their own: there is a point if there is one of
// each. So the work for all is the sum of the work for each, where it could be the product.
#include "ir/index/decide/solve.h"

enum { MOST_PARTS = 16, FIRST = 8 }; // of the quota the part that all constraints together get first

typedef struct parts {
  kl_affs *p;
  const kl_map *m;
  uint32_t first[KL_AFF_VARS], n; // variables of all kinds, in a row
  uint32_t *of;                   // by variable: another of its part, at the end itself
  bool *used, *by_kind[KL_AFF_VARS];
} parts;

static uint32_t leader(parts *x, uint32_t i) {
  while (x->of[i] != i) i = x->of[i] = x->of[x->of[i]];
  return i;
}

// Of the variables that an expression has, with `with` (UINT32_MAX: none): one part. One of them, or UINT32_MAX.
static uint32_t join(parts *x, const kl_aff *e, uint32_t with) {
  memset(x->used, 0, x->n * sizeof *x->used);
  kl_aff_mark(x->p, e, x->by_kind, x->m->nvars);
  for (uint32_t i = 0; i < x->n; i++) {
    if (!x->used[i]) continue;
    if (with != UINT32_MAX) x->of[leader(x, with)] = leader(x, i);
    with = i;
  }
  return with;
}

static void open_parts(parts *x, kl_affs *p, const kl_map *m) {
  *x = (parts){.p = p, .m = m};
  for (int k = 0; k < KL_AFF_VARS; k++) {
    x->first[k] = x->n;
    x->n += m->nvars[k];
  }
  x->of = KL_NEW_N(p->arena, uint32_t, x->n + 1);
  x->used = KL_NEW_N(p->arena, bool, x->n + 1);
  for (uint32_t i = 0; i < x->n; i++) x->of[i] = i;
  for (int k = 0; k < KL_AFF_VARS; k++) x->by_kind[k] = x->used + x->first[k];
  for (uint32_t i = 0; i < m->nconstraints; i++) join(x, m->constraints[i].e, UINT32_MAX);
  const kl_map_var *rt = m->vars[KL_AFF_RT];
  for (uint32_t i = 0; i < m->nvars[KL_AFF_RT]; i++) { // elements of one producer may be the same
    uint32_t own = x->first[KL_AFF_RT] + i;
    for (uint32_t k = 0; k < rt[i].from.nindex; k++) join(x, rt[i].from.index[k], own);
    for (uint32_t j = 0; j < i; j++) {
      if (rt[i].from.id && rt[i].from.id == rt[j].from.id) x->of[leader(x, own)] = leader(x, x->first[KL_AFF_RT] + j);
    }
  }
}

// The constraints of one part, and those without a variable; its variables, the others at one value and bound to
// nothing.
static kl_map part_of(parts *x, uint32_t which) {
  kl_map r = *x->m;
  kl_constraint *c = KL_NEW_N(x->p->arena, kl_constraint, r.nconstraints + 1);
  r.constraints = c;
  r.nconstraints = 0;
  for (uint32_t i = 0; i < x->m->nconstraints; i++) {
    uint32_t any = join(x, x->m->constraints[i].e, UINT32_MAX);
    if (any == UINT32_MAX || leader(x, any) == which) c[r.nconstraints++] = x->m->constraints[i];
  }
  for (int k = 0; k < KL_AFF_VARS; k++) {
    kl_map_var *v = KL_NEW_N(x->p->arena, kl_map_var, r.nvars[k] + 1);
    for (uint32_t i = 0; i < r.nvars[k]; i++) {
      v[i] = r.vars[k][i];
      if (leader(x, x->first[k] + i) == which) continue;
      v[i].in.hi = v[i].in.lo;
      v[i].from = (kl_producer){0};
    }
    r.vars[k] = v;
  }
  return r;
}

// Where there are more than MOST_PARTS, the rest become one.
static void list_part(parts *x, uint32_t *list, uint32_t *n, uint32_t member) {
  uint32_t own = leader(x, member), k = 0;
  while (k < *n && list[k] != own) k++;
  if (k < *n) return;
  if (*n < MOST_PARTS)
    list[(*n)++] = own;
  else
    x->of[own] = list[*n - 1];
}

// The leaders of parts that have something to satisfy: constraints, or elements of one producer, which may be the same.
static uint32_t list_parts(parts *x, uint32_t *list) {
  const kl_map_var *rt = x->m->vars[KL_AFF_RT];
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->m->nconstraints; i++) {
    uint32_t any = join(x, x->m->constraints[i].e, UINT32_MAX);
    if (any != UINT32_MAX) list_part(x, list, &n, any);
  }
  for (uint32_t i = 0; i < x->m->nvars[KL_AFF_RT]; i++) {
    bool shared = false;
    for (uint32_t j = 0; j < i && rt[i].from.id; j++) shared |= rt[j].from.id == rt[i].from.id;
    if (shared) list_part(x, list, &n, x->first[KL_AFF_RT] + i);
  }
  return n;
}

kl_truth kl_domain_is_empty(kl_affs *p, const kl_map *m, uint32_t quota, const char **why) {
  kl_truth t = kl_system_is_empty(p, m, quota / FIRST, why);
  uint32_t list[MOST_PARTS];
  parts x;
  if (t != KL_UNKNOWN || m->nconstraints == 0) return t;
  open_parts(&x, p, m);
  uint32_t n = list_parts(&x, list);
  t = KL_NO;
  for (uint32_t i = 0; i < n; i++) {
    kl_map part = part_of(&x, list[i]);
    kl_truth one = kl_system_is_empty(p, &part, quota, why);
    if (one == KL_YES) return KL_YES;
    if (one == KL_UNKNOWN) t = KL_UNKNOWN;
  }
  return n ? t : KL_UNKNOWN;
}

kl_truth kl_domain_excludes(kl_affs *p, const kl_map *m, const kl_aff *e, kl_interval in, uint32_t quota,
                            const char **why) {
  kl_map with = *m;
  kl_constraint *c = KL_NEW_N(p->arena, kl_constraint, m->nconstraints + 1);
  for (uint32_t i = 0; i < m->nconstraints; i++) c[i] = m->constraints[i];
  c[m->nconstraints] = (kl_constraint){e, in};
  with.constraints = c;
  with.nconstraints++;
  return kl_domain_is_empty(p, &with, quota, why);
}
