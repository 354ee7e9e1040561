// What only a branch takes stands in it.
//
// A store that keeps a guard is a branch. Where nothing but stores under one condition takes a value, the steps that
// make it stand in a branch around these stores, loads among them: threads that store nothing load and compute nothing
// for it, and what the branch says, accesses in it need not say again. A branch has one condition in each thread, so
// it is what of a guard is the same for all copies, and nothing that data says.
//
// Stores under one condition that have nothing but steps between them come together at the last of them. Values that
// lanes exchange are made by all. On the host lanes have no branches of their own.

#include "lower/plan/write.h"

enum {
  MOST_STORES = 16, // of a branch: what they take is held at once
  MOST_CHAIN = 16,  // conditions of a guard
  LEAST_COPIES = 8, // that are worth a branch beside those of stores
};

typedef struct sinking {
  kl_plan *p;
  kl_body *b;
  kl_ctx *cx;
  kl_arena *arena; // for as long as a body takes
  kl_step *steps;  // of the body, to be changed
  kl_store *stores;
  uint32_t *uses, *inner; // by step: how often it is taken, and by the branch
  VEC(kl_guard) guards;
  bool data; // a symbol that data says has been met
} sinking;

// A branch around stores: what of the guards that they keep it says, KL_NONE where that is nothing. exact: all of them.
typedef struct branch {
  uint32_t guard;
  bool exact;
  uint32_t first, last; // nodes: its stores are some of these
  uint32_t nstores;
} branch;

static void look_at_guards(sinking *x) {
  x->b->guards = x->guards.p;
  x->b->nguards = (uint32_t)x->guards.n;
}

// --- guards ---------------------------------------------------------------------------------------------------------

static bool is_same(const kl_guard *a, const kl_guard *b) {
  return a->expr == b->expr && a->lo == b->lo && a->hi == b->hi;
}

static uint32_t guard_like(sinking *x, const kl_guard *g) {
  for (uint32_t i = 0; i < x->guards.n; i++)
    if (x->guards.p[i].outer == g->outer && is_same(&x->guards.p[i], g)) return i;
  VEC_PUSH(x->cx, &x->guards, *g);
  look_at_guards(x);
  return (uint32_t)x->guards.n - 1;
}

// Copies have one condition: it says the same for as many as can go together.
static void set_uniform(const kl_body *b, kl_guard *g) {
  for (uint32_t v = 0; v < b->nvars; v++) {
    uint32_t n = 1;
    g->uniform[v] = 0;
    if (!kl_has_var(kl_inner(b), v)) continue;
    while (2 * n <= KL_MAX_CHUNK && b->vars[v].extent % (2 * n) == 0) n *= 2;
    g->uniform[v] = (uint16_t)n;
  }
}

static bool is_one_for_all(const kl_body *b, const kl_guard *g, kl_vars inner) {
  kl_vars vars = kl_vars_of(b, g->expr) & inner;
  for (uint32_t v = 0; v < b->nvars; v++)
    if (kl_has_var(vars, v) && g->uniform[v] < b->vars[v].extent) return false;
  return true;
}

static int64_t floor_of(int64_t a, int64_t by) {
  return a / by - (a % by < 0);
}

// A multiple of what is bounded so as that itself, which is what proofs look for.
static bool in_units(sinking *x, kl_guard *g) {
  kl_affs *p = x->p->affs;
  int64_t c = g->expr->c, by = (int64_t)kl_aff_content(kl_aff_addc(p, g->expr, -c)), lo, hi;
  if (__builtin_sub_overflow(g->lo, c, &lo) || __builtin_sub_overflow(g->hi, c, &hi) || lo < -INT64_MAX) return false;
  g->expr = kl_aff_addc(p, g->expr, -c);
  if (by > 1) g->expr = kl_aff_floordivc(p, g->expr, by), lo = -floor_of(-lo, by), hi = floor_of(hi, by);
  kl_interval in = kl_dom_interval(x->b->domain, g->expr);
  g->lo = lo > in.lo ? lo : in.lo;
  g->hi = hi < in.hi ? hi : in.hi;
  return true;
}

static void note_data(void *arg, uint32_t symbol) {
  sinking *x = arg;
  x->data |= !kl_is_counted_in(&x->b->symbols[symbol]);
}

// Does data say it? Who waits for that has loaded what else he needs meanwhile.
static bool is_of_data(sinking *x, const kl_aff *e) {
  x->data = false;
  kl_each_symbol(e, note_data, x);
  return x->data;
}

// The condition without copies' variables; false where it is not one for all copies, or of data.
static bool without_copies(sinking *x, kl_guard *g) {
  kl_vars inner = kl_inner(x->b);
  int64_t at[KL_MAX_VARS] = {0};
  if (is_of_data(x, g->expr)) return false;
  if (!(kl_vars_of(x->b, g->expr) & inner)) return true;
  if (!is_one_for_all(x->b, g, inner)) return false;
  g->expr = kl_at_point(x->p->affs, x->b, g->expr, inner, at);
  return !g->expr->error && in_units(x, g);
}

static uint32_t chain_of(const sinking *x, uint32_t guard, kl_guard *out) {
  uint32_t n = 0;
  for (; guard != KL_NONE; guard = x->guards.p[guard].outer) {
    if (n == MOST_CHAIN) return 0;
    out[n++] = x->guards.p[guard];
  }
  return n;
}

static branch branch_of(sinking *x, uint32_t keep) {
  kl_guard chain[MOST_CHAIN];
  branch r = {.guard = KL_NONE, .exact = true};
  for (uint32_t i = chain_of(x, keep, chain); i-- > 0;) {
    kl_guard g = chain[i];
    if (!without_copies(x, &g)) {
      r.exact = false;
      continue;
    }
    kl_interval in = kl_dom_interval(x->b->domain, g.expr);
    if (in.lo >= g.lo && in.hi <= g.hi) continue;
    g.outer = r.guard;
    set_uniform(x->b, &g);
    r.guard = guard_like(x, &g);
  }
  return r;
}

// Does the branch say the condition?
static bool says(sinking *x, const branch *r, const kl_guard *c) {
  kl_guard g = *c;
  if (!without_copies(x, &g)) return false;
  for (uint32_t i = r->guard; i != KL_NONE; i = x->guards.p[i].outer)
    if (is_same(&x->guards.p[i], &g)) return true;
  return false;
}

// What of a guard the branch does not say.
static uint32_t rest_of(sinking *x, const branch *r, uint32_t guard) {
  kl_guard chain[MOST_CHAIN];
  uint32_t n = chain_of(x, guard, chain), out = KL_NONE;
  if (n == 0) return guard;
  for (uint32_t i = n; i-- > 0;) {
    if (says(x, r, &chain[i])) continue;
    chain[i].outer = out;
    out = guard_like(x, &chain[i]);
  }
  return out;
}

// --- what may stand there -------------------------------------------------------------------------------------------

static void count_use(void *arg, uint32_t step) {
  uint32_t *uses = arg;
  uses[step]++;
}

static void count_uses(sinking *x, const kl_seq *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_nest *nest = s->nodes[i].nest;
    kl_each_taken(x->b, &s->nodes[i], count_use, x->uses);
    if (!nest) continue;
    if (s->nodes[i].kind == KL_NODE_UPDATE) count_use(x->uses, nest->carried->next);
    count_uses(x, &nest->inside);
  }
}

static bool is_one_memory(const kl_plan *p, uint32_t a, uint32_t b) {
  return a == b || p->slots[a].alias == b || p->slots[b].alias == a;
}

// Is the load the same behind all that comes before the branch's last store? Its own stores stay behind it.
static bool may_wait(const sinking *x, const kl_node *nodes, const branch *r, uint32_t at, bool crosses) {
  const kl_plan *p = x->p;
  uint32_t slot = x->steps[nodes[at].index].access.slot;
  const kl_slot_info *s = &p->slots[slot];
  if ((s->kind == KL_SLOT_IN || s->kind == KL_SLOT_CONST) && s->alias == KL_NONE) return true;
  if (crosses) return false;
  for (uint32_t i = at + 1; i <= r->last; i++) {
    if (nodes[i].kind != KL_NODE_STORE || !is_one_memory(p, x->stores[nodes[i].index].access.slot, slot)) continue;
    if (i < r->first || s->kind == KL_SLOT_SHARED) return false;
  }
  return true;
}

static bool may_move(const sinking *x, const kl_node *nodes, const branch *r, uint32_t at, bool crosses) {
  uint32_t step = nodes[at].index;
  if (x->uses[step] == 0 || x->inner[step] != x->uses[step]) return false;
  switch (x->steps[step].kind) {
  case KL_STEP_SHUFFLE:
  case KL_STEP_ROTATE:
  case KL_STEP_EXCHANGE:
  case KL_STEP_CARRIED: return false;
  case KL_STEP_LOAD: return may_wait(x, nodes, r, at, crosses);
  default: return true;
  }
}

static bool is_work(const kl_step *s) {
  return s->kind != KL_STEP_SCALAR && s->kind != KL_STEP_TAKE && s->kind != KL_STEP_IOTA;
}

// Marks what moves into the branch; is it worth that? moves: by node.
static bool find_moving(sinking *x, const kl_node *nodes, const branch *r, bool *moves) {
  bool crosses = false;
  int64_t copies = 0;
  uint32_t work = 0;
  memset(x->inner, 0, x->b->nsteps * sizeof *x->inner);

  for (uint32_t i = r->last + 1; i-- > 0;) {
    const kl_node *n = &nodes[i];
    moves[i] = n->kind == KL_NODE_STORE ? i >= r->first : n->kind == KL_NODE_STEP && may_move(x, nodes, r, i, crosses);
    crosses |= n->kind != KL_NODE_STEP && n->kind != KL_NODE_STORE;
    if (!moves[i]) continue;
    kl_each_taken(x->b, n, count_use, x->inner);
    if (n->kind != KL_NODE_STEP || !is_work(&x->steps[n->index])) continue;
    work++;
    copies += kl_extent(x->b, x->steps[n->index].regs);
  }
  return r->exact ? work > 0 || r->nstores > 1 : copies >= LEAST_COPIES;
}

// --- branches -------------------------------------------------------------------------------------------------------

static bool is_guarded_store(const sinking *x, const kl_node *n) {
  return n->kind == KL_NODE_STORE && x->stores[n->index].keep != KL_NONE;
}

// Does the step read what stores of the branch so far write?
static bool reads_stored(const sinking *x, const kl_node *nodes, const branch *r, const kl_step *s) {
  if (s->kind != KL_STEP_LOAD) return false;
  for (uint32_t i = r->first; i <= r->last; i++)
    if (nodes[i].kind == KL_NODE_STORE && is_one_memory(x->p, x->stores[nodes[i].index].access.slot, s->access.slot))
      return true;
  return false;
}

// The stores from node `first` on that one branch takes.
static branch find_branch(sinking *x, const kl_node *nodes, uint32_t n, uint32_t first) {
  branch r = branch_of(x, x->stores[nodes[first].index].keep);
  r.first = r.last = first;
  r.nstores = 1;
  for (uint32_t i = first + 1; i < n && r.nstores < MOST_STORES; i++) {
    if (nodes[i].kind == KL_NODE_STEP && !reads_stored(x, nodes, &r, &x->steps[nodes[i].index])) continue;
    if (!is_guarded_store(x, &nodes[i])) break;
    branch other = branch_of(x, x->stores[nodes[i].index].keep);
    if (other.guard != r.guard) break;
    r.exact &= other.exact;
    r.last = i;
    r.nstores++;
  }
  return r;
}

static void take_guard_from(sinking *x, const branch *r, const kl_node *n) {
  if (n->kind == KL_NODE_STORE) {
    kl_store *s = &x->stores[n->index];
    s->keep = rest_of(x, r, s->keep);
  } else if (x->steps[n->index].kind == KL_STEP_LOAD) {
    kl_access *a = &x->steps[n->index].access;
    a->guard = rest_of(x, r, a->guard);
  }
}

// Puts what moves into a branch in the place of its last store; returns how many nodes there are then.
static uint32_t make_branch(sinking *x, kl_node *nodes, uint32_t n, const branch *r, const bool *moves) {
  kl_node *inside = KL_NEW_N(x->p->arena, kl_node, r->last + 1);
  kl_nest *nest = KL_NEW(x->p->arena, kl_nest);
  uint32_t in = 0, out = 0;
  for (uint32_t i = 0; i <= r->last; i++) {
    if (moves[i]) {
      take_guard_from(x, r, &nodes[i]);
      inside[in++] = nodes[i];
    } else {
      nodes[out++] = nodes[i];
    }
  }
  nest->inside = (kl_seq){in, inside};
  nodes[out++] = (kl_node){KL_NODE_IF, r->guard, nest};
  memmove(nodes + out, nodes + r->last + 1, (n - r->last - 1) * sizeof *nodes);
  return n - r->last - 1 + out;
}

static kl_seq sink_in(sinking *x, const kl_seq *s) {
  kl_node *nodes = KL_NEW_N(x->p->arena, kl_node, s->n + 1);
  if (s->n) memcpy(nodes, s->nodes, s->n * sizeof *nodes);
  bool *moves = KL_NEW_N(x->arena, bool, s->n + 1);
  uint32_t n = s->n;
  for (uint32_t i = 0; i < n; i++) {
    if (!nodes[i].nest || nodes[i].kind == KL_NODE_UPDATE) continue;
    kl_nest *nest = kl_arena_dup(x->p->arena, nodes[i].nest, sizeof *nest);
    nest->inside = sink_in(x, &nest->inside);
    nodes[i].nest = nest;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (!is_guarded_store(x, &nodes[i])) continue;
    branch r = find_branch(x, nodes, n, i);
    uint32_t left = n - r.last - 1;
    if (r.guard != KL_NONE && find_moving(x, nodes, &r, moves)) n = make_branch(x, nodes, n, &r, moves);
    i = n - left - 1;
  }
  return (kl_seq){n, nodes};
}

static bool has_guarded_stores(const kl_body *b) {
  for (uint32_t i = 0; i < b->nstores; i++)
    if (b->stores[i].keep != KL_NONE) return true;
  return false;
}

static void sink_body(kl_plan *p, kl_body *b) {
  kl_ctx *cx = kl_affs_context(p->affs);
  kl_arena scratch;
  if (kl_body_is_empty(b) || !b->nsteps || !has_guarded_stores(b)) return;
  kl_arena_init(&scratch, cx);
  sinking x = {.p = p, .b = b, .cx = cx, .arena = &scratch};
  x.steps = kl_arena_dup(p->arena, b->steps, b->nsteps * sizeof *x.steps);
  x.stores = kl_arena_dup(p->arena, b->stores, b->nstores * sizeof *x.stores);
  b->steps = x.steps;
  b->stores = x.stores;
  x.uses = KL_NEW_N(&scratch, uint32_t, b->nsteps + 1);
  x.inner = KL_NEW_N(&scratch, uint32_t, b->nsteps + 1);
  for (uint32_t i = 0; i < b->nguards; i++) VEC_PUSH(cx, &x.guards, b->guards[i]);
  look_at_guards(&x);
  count_uses(&x, &b->root);
  b->root = sink_in(&x, &b->root);
  b->nguards = (uint32_t)x.guards.n;
  b->guards = VEC_FREEZE(cx, p->arena, &x.guards);
  kl_arena_free(&scratch);
}

void kl_plan_sink(kl_plan *p) {
  for (uint32_t i = 0; i < p->nparts && p->target.machine == KL_NVPTX; i++) {
    sink_body(p, &p->parts[i].main);
    sink_body(p, &p->parts[i].tail);
  }
}
