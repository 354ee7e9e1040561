// Instructions of indices, addresses and guards. What LLVM makes once is counted once: a sum, but for its constant,
// which goes into the access or the comparison; a quotient; an address of a slot.

#include "lower/plan/cost/impl.h"

enum { MOST_REMEMBERED = 64 };

static bool is_new(kl_indexing *x, kl_flags *seen, uint32_t id) {
  while (seen->n <= id) VEC_PUSH(kl_affs_context(x->p->affs), seen, 0);
  bool before = seen->p[id];
  seen->p[id] = 1;
  return !before;
}

static double of_sum(kl_indexing *x, const kl_aff *e);

// Digits of a thread's number are cut from it; a division by a constant is a product's upper half, shifted.
static double of_atom(kl_indexing *x, const kl_aff_atom *a) {
  if (!is_new(x, &x->atoms, a->id)) return 0;
  double n = 0;
  for (uint32_t i = 0; a->kind >= KL_AFF_VARS && i < a->n; i++) n += of_sum(x, a->arg[i]);
  switch (a->kind) {
  case KL_AFF_DIM: {
    kl_binding of = x->b->vars[a->var].binding;
    return of == KL_BIND_REG || of == KL_BIND_STEP || of == KL_BIND_BLOCK ? 0 : 1;
  }
  case KL_AFF_RANGE:
  case KL_AFF_RT: return 0;
  case KL_AFF_FLOOR: return n + (a->k & (a->k - 1) ? 3 : 1);
  default: return n + 2;
  }
}

static double of_sum(kl_indexing *x, const kl_aff *e) {
  if (e->c) e = kl_aff_addc(x->p->affs, e, -e->c);
  if (e->n == 0 || !is_new(x, &x->sums, e->id)) return 0;
  double n = e->n - 1;
  for (uint32_t i = 0; i < e->n; i++) n += of_atom(x, e->terms[i].atom);
  return n;
}

double kl_index_instructions(kl_indexing *x, const kl_aff *e) {
  return of_sum(x, e);
}

static bool is_new_address(kl_indexing *x, uint32_t slot, const kl_aff *e) {
  size_t first = x->addresses.n > MOST_REMEMBERED ? x->addresses.n - MOST_REMEMBERED : 0;
  for (size_t i = first; i < x->addresses.n; i++)
    if (x->addresses.p[i].slot == slot && x->addresses.p[i].index == e->id) return false;
  VEC_PUSH(kl_affs_context(x->p->affs), &x->addresses, (kl_address){slot, e->id});
  return true;
}

// The slot's pointer and one product for each index but for its constant. Under a guard each chunk has an index of its
// own, that or another; so it has where data says.
double kl_address_instructions(kl_indexing *x, const kl_access *a, uint32_t chunk, bool guarded) {
  const kl_aff *e = a->base[chunk];
  double n = of_sum(x, e);
  if (x->p->slots[a->slot].kind == KL_SLOT_SHARED && !guarded) return n;
  if (guarded) return n + 2 + (e->c != 0);
  if (kl_has_symbols(e)) return n + 2;
  if (e->c) e = kl_aff_addc(x->p->affs, e, -e->c);
  return n + (is_new_address(x, a->slot, e) ? 2 : 0);
}

// Groups of copies that the guard's own condition is the same for, and of these such as it decides.
static kl_open_guard open_of(kl_indexing *x, uint32_t guard) {
  const kl_guard *g = &x->b->guards[guard];
  kl_vars inner = kl_inner(x->b) & kl_vars_of(x->b, g->expr);
  int64_t n = kl_extent(x->b, inner), each = 1, open = 0, all = 0, at[KL_MAX_VARS];
  for (uint32_t v = 0; v < x->b->nvars; v++)
    if (kl_has_var(inner, v) && g->uniform[v]) each *= g->uniform[v];
  for (int64_t i = 0; i < n; i += each < n ? each : n, all++) {
    memset(at, 0, sizeof at);
    kl_nth_point(x->b, inner, KL_NONE, (uint32_t)i, at);
    open += kl_guard_at(x->p, x->b, guard, kl_inner(x->b), at) == KL_UNKNOWN;
  }
  return (kl_open_guard){true, (uint32_t)open, (double)open / (double)(all ? all : 1)};
}

static const kl_open_guard *find_open(kl_indexing *x, uint32_t guard) {
  while (x->open.n <= guard) VEC_PUSH(kl_affs_context(x->p->affs), &x->open, (kl_open_guard){0});
  if (!x->open.p[guard].known) x->open.p[guard] = open_of(x, guard);
  return &x->open.p[guard];
}

// Of a guard's copies, those that it decides: of the others it is known before.
double kl_guard_share(kl_indexing *x, uint32_t guard) {
  return guard == KL_NONE ? 0 : find_open(x, guard)->share;
}

// One comparison for each group of copies that it is the same for: bounds on both sides are those of an unsigned
// number.
double kl_guard_instructions(kl_indexing *x, uint32_t guard) {
  double n = 0;
  for (; guard != KL_NONE; guard = x->b->guards[guard].outer) {
    if (!is_new(x, &x->guards, guard)) return n;
    uint32_t groups = find_open(x, guard)->groups;
    if (groups) n += of_sum(x, x->b->guards[guard].expr) + groups;
  }
  return n;
}

void kl_indexing_free(kl_indexing *x) {
  kl_ctx *cx = kl_affs_context(x->p->affs);
  VEC_FREE(cx, &x->sums);
  VEC_FREE(cx, &x->atoms);
  VEC_FREE(cx, &x->guards);
  VEC_FREE(cx, &x->open);
  VEC_FREE(cx, &x->addresses);
}
