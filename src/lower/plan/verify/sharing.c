// What threads do to each other's elements.
//
// Two accesses of one shared slot, one of them a write, that no sync lies between must touch an element from one thread
// only, but for changes by one op, which may come in any order. That holds where both name it by one expression that
// tells threads apart; else no point of two threads may give both the same element. Behind the end of a loop comes its
// beginning; a sync in a branch may not have taken place.
//
// What is overwritten by a result in its memory is read by the thread that overwrites it, and before.

#include "lower/plan/verify/check.h"

typedef struct sharing {
  kl_check *k;
  kl_vars threads;    // variables that number the threads of a block
  VEC(uint32_t) live; // events that no sync lies behind
} sharing;

// --- two accesses ---------------------------------------------------------------------------------------------------

static void box_of(sharing *x, const kl_event *e, kl_vars vars, kl_points *box) {
  kl_conditions c;
  kl_conditions_at(x->k, e->place, e->guard, &c);
  kl_points_of(x->k, vars, &c, box);
  kl_points_narrow(box);
}

// Of points of either, those with one element are of one thread.
static bool tells_threads(sharing *x, const kl_event *a, const kl_event *b) {
  const kl_aff *e = a->a->element;
  kl_vars vars = x->threads | kl_vars_of(x->k->body, e);
  kl_points of_a, of_b;
  kl_form form;
  box_of(x, a, vars, &of_a);
  box_of(x, b, vars, &of_b);
  for (uint32_t v = 0; v < of_a.n; v++) {
    if (of_b.lo[v] < of_a.lo[v]) of_a.lo[v] = of_b.lo[v];
    if (of_b.hi[v] > of_a.hi[v]) of_a.hi[v] = of_b.hi[v];
  }
  of_a.c.n = 0;
  return kl_points_differ(&of_a, e, &form) == KL_YES;
}

static bool are_apart(sharing *x, const kl_aff *a, const kl_aff *b) {
  kl_interval of_a = kl_dom_interval(x->k->body->domain, a), of_b = kl_dom_interval(x->k->body->domain, b);
  return of_a.hi < of_b.lo || of_b.hi < of_a.lo;
}

// Variables of the second access are those of the body again, behind them; blocks are the same, or where they are not
// those that the accesses' places know.
typedef struct pair {
  kl_affs *affs;
  uint32_t nvars;
  const kl_aff *second[KL_MAX_VARS];
  kl_map_var vars[2 * KL_MAX_VARS];
  kl_constraint c[2 * KL_MOST_CONDITIONS + 2];
  uint32_t n;
} pair;

static const kl_aff *of_second(pair *p, const kl_aff *e) {
  kl_aff_replace(p->affs, &(kl_aff_subst){.to = {p->second}, .n = {p->nvars}}, &e, 1, &e);
  return e;
}

// Of two threads a symbol is two numbers: what is said of it is left out.
static void constrain(pair *p, const kl_condition *c, const kl_aff *e) {
  if (!kl_has_symbols(e)) p->c[p->n++] = (kl_constraint){e, {c->lo, c->hi}};
}

static void open_pair(sharing *x, pair *p, const kl_event *a, const kl_event *b, bool same_block) {
  const kl_body *body = x->k->body;
  kl_conditions c;
  *p = (pair){.affs = x->k->p->affs, .nvars = body->nvars};
  for (uint32_t v = 0; v < body->nvars; v++) {
    bool same = same_block && body->vars[v].binding == KL_BIND_BLOCK;
    p->second[v] = kl_aff_dim(p->affs, same ? v : body->nvars + v);
    p->vars[v].in = (kl_interval){0, body->vars[v].extent - 1};
    p->vars[body->nvars + v].in = same ? (kl_interval){0, 0} : p->vars[v].in;
  }
  kl_conditions_at(x->k, a->place, a->guard, &c);
  for (uint32_t i = 0; i < c.n; i++) constrain(p, &c.c[i], c.c[i].e);
  kl_conditions_at(x->k, b->place, b->guard, &c);
  for (uint32_t i = 0; i < c.n; i++) constrain(p, &c.c[i], of_second(p, c.c[i].e));
  p->c[p->n++] = (kl_constraint){kl_aff_sub(p->affs, a->a->element, of_second(p, b->a->element)), {0, 0}};
}

enum { QUOTA = 1 << 12 };

// Are there no two threads in this order that touch one element?
static bool excludes(pair *p, uint32_t v, bool up) {
  kl_map m = {.state = KL_MAP_DEFINED, .nconstraints = p->n + 1, .constraints = p->c};
  m.nvars[KL_AFF_DIM] = 2 * p->nvars;
  m.vars[KL_AFF_DIM] = p->vars;
  const kl_aff *way = kl_aff_sub(p->affs, p->second[v], kl_aff_dim(p->affs, v));
  p->c[p->n] = (kl_constraint){way, up ? (kl_interval){1, INT64_MAX} : (kl_interval){INT64_MIN, -1}};
  return kl_map_is_empty(p->affs, kl_map_make(p->affs, &m), QUOTA, NULL) == KL_YES;
}

// The greatest number that divides the coefficients of e above `most`, and g.
static int64_t common(const kl_aff *e, int64_t most, int64_t g) {
  for (uint32_t i = 0; i < e->n; i++) {
    int64_t a = e->terms[i].coef, b = g;
    if (a == INT64_MIN) return 1;
    a = a < 0 ? -a : a;
    if (a <= most) continue;
    for (g = a; b;) {
      int64_t r = g % b;
      g = b;
      b = r;
    }
  }
  return g;
}

// e without its multiples of g, and without variable v, whose coefficient is *own.
static const kl_aff *lower_digits(kl_affs *p, const kl_aff *e, int64_t g, uint32_t v, int64_t *own) {
  const kl_aff *low = kl_aff_const(p, e->c);
  *own = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    const kl_aff_atom *a = e->terms[i].atom;
    if (a->kind == KL_AFF_DIM && a->var == v)
      *own = e->terms[i].coef;
    else if (!g || e->terms[i].coef % g)
      low = kl_aff_addmul(p, low, kl_aff_of(p, a), e->terms[i].coef);
  }
  return low;
}

static bool are_nearer(kl_interval a, kl_interval b, int64_t than) {
  __int128 up = (__int128)a.hi - b.lo, down = (__int128)b.hi - a.lo;
  return up < than && down < than;
}

// How often e has what it has of a condition's first term; 0: not so.
static int64_t times_in(const kl_aff *e, const kl_aff *condition) {
  const kl_aff_atom *first = condition->n ? condition->terms[0].atom : NULL;
  for (uint32_t i = 0; first && i < e->n; i++)
    if (e->terms[i].atom == first && e->terms[i].coef % condition->terms[0].coef == 0)
      return e->terms[i].coef / condition->terms[0].coef;
  return 0;
}

// What e is where the access takes place, by the intervals of its variables, and by each condition of it or a part.
static kl_interval bounds_of(sharing *x, const kl_event *event, const kl_aff *e) {
  kl_dom *d = x->k->body->domain;
  kl_affs *p = x->k->p->affs;
  kl_interval in = kl_dom_interval(d, e);
  kl_conditions c;
  kl_conditions_at(x->k, event->place, event->guard, &c);
  for (uint32_t i = 0; i < c.n; i++) {
    int64_t n = times_in(e, c.c[i].e);
    if (n <= 0) continue;
    kl_interval rest = kl_dom_interval(d, kl_aff_sub(p, e, kl_aff_mulc(p, c.c[i].e, n)));
    __int128 lo = (__int128)n * c.c[i].lo + rest.lo, hi = (__int128)n * c.c[i].hi + rest.hi;
    if (lo > in.lo && lo <= in.hi) in.lo = (int64_t)lo;
    if (hi < in.hi && hi >= in.lo) in.hi = (int64_t)hi;
  }
  return in;
}

// Two accesses' elements, less what they have in common where variables that are known to be the same are.
typedef struct digits {
  const kl_event *event[2];
  const kl_aff *e[2];
} digits;

static void take_out(sharing *x, digits *d, uint32_t v) {
  kl_affs *p = x->k->p->affs;
  int64_t own, other;
  lower_digits(p, d->e[0], 0, v, &own);
  lower_digits(p, d->e[1], 0, v, &other);
  for (unsigned i = 0; i < 2 && own == other; i++)
    d->e[i] = kl_aff_sub(p, d->e[i], kl_aff_mulc(p, kl_aff_dim(p, v), own));
}

// Is v a digit of both, C v + low with terms beside it that are multiples of M? With low parts nearer than C, and C v +
// low nearer than M, equal elements have the same v.
static bool is_same_digit(sharing *x, const digits *d, uint32_t v) {
  const kl_body *body = x->k->body;
  kl_affs *p = x->k->p->affs;
  int64_t own, other, of_v = 0;
  lower_digits(p, d->e[0], 0, v, &own);
  if (own <= 0) return false;
  int64_t g = common(d->e[1], own, common(d->e[0], own, 0));
  const kl_aff *low_a = lower_digits(p, d->e[0], g, v, &own), *low_b = lower_digits(p, d->e[1], g, v, &other);
  if (own != other || kl_has_var(kl_vars_of(body, low_a) | kl_vars_of(body, low_b), v)) return false;
  kl_interval in_a = bounds_of(x, d->event[0], low_a), in_b = bounds_of(x, d->event[1], low_b);
  if (!are_nearer(in_a, in_b, own)) return false;
  if (!g) return true;
  if (__builtin_mul_overflow(own, body->vars[v].extent - 1, &of_v)) return false;
  return are_nearer(in_a, in_b, g - of_v);
}

// Of these variables those that are not known to be the same where the two touch one element. Each that is takes its
// part away from what is left.
static kl_vars less_same_digits(sharing *x, const kl_event *a, const kl_event *b, kl_vars vars) {
  digits d = {{a, b}, {a->a->element, b->a->element}};
  kl_vars before;
  do {
    before = vars;
    for (uint32_t v = 0; v < x->k->body->nvars; v++) {
      if (!kl_has_var(vars, v)) continue;
      if (x->k->body->vars[v].extent > 1 && !is_same_digit(x, &d, v)) continue;
      vars &= ~((kl_vars)1 << v);
      take_out(x, &d, v);
    }
  } while (vars && vars != before);
  return vars;
}

// Do the two touch one element only where they have the same values of these variables?
static bool excludes_others(sharing *x, const kl_event *a, const kl_event *b, kl_vars vars, bool same_block) {
  pair p;
  if (kl_has_symbols(a->a->element) || kl_has_symbols(b->a->element)) return false;
  vars = less_same_digits(x, a, b, vars);
  if (!vars) return true;
  open_pair(x, &p, a, b, same_block);
  for (uint32_t v = 0; v < p.nvars; v++)
    if (kl_has_var(vars, v) && !(excludes(&p, v, true) && excludes(&p, v, false))) return false;
  return true;
}

static bool changes_alike(const kl_body *b, const kl_event *x, const kl_event *y) {
  return x->kind == KL_CHANGES && y->kind == KL_CHANGES && b->stores[x->number].combine == b->stores[y->number].combine;
}

static kiln_status check_pair(sharing *x, const kl_event *a, const kl_event *b) {
  kl_check *k = x->k;
  if (a->a->slot != b->a->slot || (a->kind == KL_READS && b->kind == KL_READS)) return KILN_OK;
  if (changes_alike(k->body, a, b)) return KILN_OK;
  if (a == b && k->p->slots[a->a->slot].scattered && kl_has_symbols(a->a->element)) return KILN_OK;
  if (a->a->element == b->a->element ? tells_threads(x, a, b) : are_apart(x, a->a->element, b->a->element))
    return KILN_OK;
  if (excludes_others(x, a, b, x->threads, true)) return KILN_OK;
  kl_look_at(k, b->kind == KL_READS ? KL_OF_STEP : KL_OF_STORE, b->number);
  const char *what = a->kind == KL_READS ? "v" : "store ";
  return kl_refute(k, "no sync lies behind %s%u, by which another thread may touch the same element of s%u", what,
                   a->number, a->a->slot);
}

// --- all of them ----------------------------------------------------------------------------------------------------

static kiln_status add(sharing *x, uint32_t event) {
  const kl_event *e = &x->k->events.p[event];
  if (x->k->p->slots[e->a->slot].kind != KL_SLOT_SHARED) return KILN_OK;
  bool known = false;
  for (size_t i = 0; i < x->live.n; i++) {
    known = known || x->live.p[i] == event;
    KL_TRY(check_pair(x, &x->k->events.p[x->live.p[i]], e));
  }
  if (known) return KILN_OK;
  KL_TRY(check_pair(x, e, e));
  VEC_PUSH(x->k->cx, &x->live, event);
  return KILN_OK;
}

static kiln_status follow(sharing *x, uint32_t *event);

// Behind a branch is what was before it and what is at its end.
static kiln_status follow_branch(sharing *x, uint32_t *event) {
  size_t n = x->live.n;
  uint32_t *before = kl_arena_dup(x->k->arena, x->live.p, n * sizeof *before);
  KL_TRY(follow(x, event));
  for (size_t i = 0; i < n; i++) {
    bool there = false;
    for (size_t j = 0; j < x->live.n && !there; j++) there = x->live.p[j] == before[i];
    if (!there) VEC_PUSH(x->k->cx, &x->live, before[i]);
  }
  return KILN_OK;
}

// To the end of the nest that is open; *event is behind it then.
static kiln_status follow(sharing *x, uint32_t *event) {
  const kl_check *k = x->k;
  uint32_t begin = *event;
  for (bool again = false;;) {
    bool end = *event == k->events.n || k->events.p[*event].kind == KL_LEAVES;
    if (end) {
      bool loop = *event < k->events.n && k->events.p[*event].place->kind == KL_NODE_LOOP;
      if (loop && !again) {
        again = true;
        *event = begin;
        continue;
      }
      ++*event;
      return KILN_OK;
    }
    const kl_event *e = &k->events.p[(*event)++];
    if (e->kind == KL_ENTERS)
      KL_TRY(e->place->kind == KL_NODE_LOOP ? follow(x, event) : follow_branch(x, event));
    else if (e->kind == KL_SYNCS)
      x->live.n = 0;
    else
      KL_TRY(add(x, (uint32_t)(e - k->events.p)));
  }
}

// --- one memory -----------------------------------------------------------------------------------------------------

static bool is_in_loop(const kl_place *p) {
  while (p && p->kind != KL_NODE_LOOP) p = p->up;
  return p != NULL;
}

// The store behind an event that overwrites what it reads, and nothing else.
static const kl_event *overwriter(const kl_check *k, uint32_t event) {
  const kl_event *e = &k->events.p[event];
  for (uint32_t i = event + 1; i < k->events.n; i++) {
    const kl_event *w = &k->events.p[i];
    if (w->kind == KL_WRITES && w->a->slot == k->p->slots[e->a->slot].alias && w->a->element == e->a->element &&
        (e->guard == KL_NONE || e->guard == w->guard))
      return w;
  }
  return NULL;
}

// What one round of a loop stores, a later one must not read.
static bool overwrites_once(kl_check *k, const kl_event *w) {
  kl_points points;
  kl_form form;
  if (!is_in_loop(w->place)) return true;
  return kl_stores_once(k, &k->body->stores[w->number], w->place, &points, &form) == KL_YES;
}

static kiln_status check_aliases(kl_check *k) {
  if (!kl_may_share(k->p, k->launch)) return KILN_OK;
  for (uint32_t i = 0; i < k->events.n; i++) {
    const kl_event *e = &k->events.p[i];
    if (e->kind != KL_READS || k->p->slots[e->a->slot].alias == KL_NONE) continue;
    uint32_t result = k->p->slots[e->a->slot].alias;
    if (k->launch - k->p->launches < kl_first_writer(k->p, result)) continue;
    const kl_event *w = overwriter(k, i);
    kl_look_at(k, KL_OF_STEP, e->number);
    if (!w)
      return kl_refute(k, "what it reads is not known to be overwritten by the same thread, and later, in s%u", result);
    if (!overwrites_once(k, w))
      return kl_refute(k, "what it reads may have been overwritten in s%u by another round", result);
  }
  return KILN_OK;
}

// --- blocks that come last ------------------------------------------------------------------------------------------

static kl_vars gone_at(const kl_place *p) {
  kl_vars gone = 0;
  for (; p; p = p->up) gone |= p->gone;
  return gone;
}

// What the block that comes last reads has been stored before, by blocks that it is the last of.
static kiln_status check_found(sharing *x, const kl_event *read) {
  kl_check *k = x->k;
  kl_vars others = kl_bound(k->body, KL_BIND_BLOCK) & ~gone_at(read->place);
  for (uint32_t i = 0; i < k->events.n; i++) {
    const kl_event *w = &k->events.p[i];
    if (w->kind != KL_WRITES || w->a->slot != read->a->slot) continue;
    kl_look_at(k, KL_OF_STEP, read->number);
    if (gone_at(w->place)) return kl_refute(k, "reads of s%u what blocks that come last store", w->a->slot);
    if (!excludes_others(x, w, read, others, false))
      return kl_refute(k, "may read of s%u what others store than those it comes last of", w->a->slot);
  }
  return KILN_OK;
}

static bool stores(const kl_body *b, uint32_t slot) {
  for (uint32_t i = 0; i < b->nstores; i++)
    if (b->stores[i].access.slot == slot) return true;
  return false;
}

// Do blocks of the cluster meet between two events, the first before the second?
static bool meet_between(const kl_check *k, uint32_t first, uint32_t second) {
  for (uint32_t i = first; i < second; i++)
    if (k->events.p[i].kind == KL_SYNCS && k->events.p[i].number == 1) return true;
  return false;
}

// What blocks of a cluster read of each other they have stored before they met, and nobody stores it again.
static kiln_status check_met(sharing *x, uint32_t event) {
  kl_check *k = x->k;
  const kl_event *read = &k->events.p[event];
  kl_vars others = kl_bound(k->body, KL_BIND_BLOCK) & ~kl_cluster_vars(k->body, k->launch->cluster);
  for (uint32_t i = 0; i < k->events.n; i++) {
    const kl_event *w = &k->events.p[i];
    if (w->kind != KL_WRITES || w->a->slot != read->a->slot) continue;
    kl_look_at(k, KL_OF_STEP, read->number);
    if (!meet_between(k, i, event))
      return kl_refute(k, "reads of s%u what is not known to be stored before blocks meet", w->a->slot);
    if (!excludes_others(x, w, read, others, false))
      return kl_refute(k, "may read of s%u what blocks of other clusters store", w->a->slot);
  }
  return KILN_OK;
}

// Other bodies of the launch store nothing of it.
static kiln_status check_last(sharing *x) {
  kl_check *k = x->k;
  const kl_plan_launch *l = k->launch;
  for (uint32_t i = 0; i < k->events.n; i++) {
    const kl_event *e = &k->events.p[i];
    if (e->kind != KL_READS || k->p->slots[e->a->slot].kind != KL_SLOT_SCRATCH) continue;
    if (kl_first_writer(k->p, e->a->slot) < l - k->p->launches) continue;
    for (uint32_t p = l->first_part; p < l->first_part + l->nparts; p++) {
      const kl_body *bodies[2] = {&k->p->parts[p].main, &k->p->parts[p].tail};
      for (int t = 0; t < 2; t++)
        if (bodies[t] != k->body && stores(bodies[t], e->a->slot))
          return kl_refute(k, "reads of s%u what another part stores", e->a->slot);
    }
    KL_TRY(gone_at(e->place) ? check_found(x, e) : check_met(x, i));
  }
  return KILN_OK;
}

kiln_status kl_check_sharing(kl_check *k) {
  sharing x = {.k = k, .threads = kl_bound(k->body, KL_BIND_WARP) | kl_bound(k->body, KL_BIND_LANE)};
  uint32_t event = 0;
  kiln_status st = KILN_OK;
  if (k->launch->shared_bytes) st = follow(&x, &event);
  VEC_FREE(k->cx, &x.live);
  if (st == KILN_OK) st = check_last(&x);
  return st == KILN_OK ? check_aliases(k) : st;
}
