// Memory traffic of a plan on a GPU: the instructions that each access becomes, counted over all warps.

#include "lower/analysis/coalesce.h"
#include "lower/plan/plan.h"

// Branches that are open around an access, the outer ones behind it.
typedef struct inside {
  const struct inside *around;
  uint32_t guard;
} inside;

typedef struct counting {
  kl_plan *p;
  const kl_body *body;
  uint32_t block; // threads of one
  uint32_t slot, base;
  int64_t quota; // threads looked at for one instruction
  // The number of a thread; of a round of the loops around, and a thread, where there are loops: variables as
  // expressions of it, and how many there are.
  const kl_aff *vars[KL_MAX_VARS];
  const kl_aff **symbols; // constants
  int64_t threads;
  kl_traffic sum;
  VEC(kl_request) load; // of the load that is counted
} counting;

enum { KL_MAX_CONDITIONS = 64 };

// --- threads --------------------------------------------------------------------------------------------------------

// Digits of a number that counts something: those of the variables of a binding.
static void set_digits(counting *c, kl_vars vars, const kl_aff *number) {
  kl_affs *p = c->p->affs;
  int64_t place = 1;
  for (uint32_t v = c->body->nvars; v-- > 0;) {
    if (!kl_has_var(vars, v)) continue;
    int64_t extent = c->body->vars[v].extent;
    c->vars[v] = kl_aff_modc(p, kl_aff_floordivc(p, number, place), extent);
    place *= extent;
  }
}

static void set_vars(counting *c, kl_vars loops) {
  const kl_body *b = c->body;
  kl_affs *p = c->p->affs;
  const kl_aff *all = kl_aff_dim(p, 0);
  for (uint32_t v = 0; v < b->nvars; v++) c->vars[v] = kl_aff_const(p, 0);
  if (b->threads) {
    c->vars[0] = all;
    c->threads = b->threads;
    return;
  }
  int64_t of_launch = b->blocks * (int64_t)c->block;
  const kl_aff *thread = kl_aff_modc(p, all, of_launch), *in_block = kl_aff_modc(p, thread, c->block);
  set_digits(c, kl_bound(b, KL_BIND_BLOCK), kl_aff_floordivc(p, thread, c->block));
  set_digits(c, kl_bound(b, KL_BIND_WARP), kl_aff_floordivc(p, in_block, KL_WARP));
  set_digits(c, kl_bound(b, KL_BIND_LANE), kl_aff_modc(p, in_block, KL_WARP));
  set_digits(c, loops, kl_aff_floordivc(p, all, of_launch));
  c->threads = of_launch * kl_extent(b, loops);
}

static const kl_aff *of_thread(counting *c, const kl_aff *e) {
  uint32_t nsymbols = c->body->nsymbols ? KL_FIRST_SYMBOL + c->body->nsymbols : 0;
  kl_aff_subst s = {.to = {c->vars, NULL, c->symbols}, .n = {c->body->nvars, 0, nsymbols}};
  kl_aff_replace(c->p->affs, &s, &e, 1, &e);
  return e;
}

static void set_symbols(counting *c) {
  const kl_body *b = c->body;
  c->symbols = KL_NEW_N(c->p->arena, const kl_aff *, KL_FIRST_SYMBOL + b->nsymbols);
  for (uint32_t i = 0; i < KL_FIRST_SYMBOL + b->nsymbols; i++)
    c->symbols[i] = kl_aff_const(c->p->affs, i < KL_FIRST_SYMBOL ? 0 : b->symbols[i - KL_FIRST_SYMBOL].lo);
}

static void note_symbol(void *arg, uint32_t symbol) {
  counting *c = arg;
  c->sum.exact = false;
  c->sum.data = true;
}

// --- accesses -------------------------------------------------------------------------------------------------------

// What the guard and its outer ones say at a point of the inner variables.
static uint32_t conditions_of(counting *c, uint32_t guard, const int64_t *at, uint32_t n, kl_constraint *out) {
  for (; guard != KL_NONE && n < KL_MAX_CONDITIONS; guard = c->body->guards[guard].outer) {
    const kl_guard *g = &c->body->guards[guard];
    const kl_aff *e = at ? kl_at_point(c->p->affs, c->body, g->expr, kl_inner(c->body), at) : g->expr;
    kl_each_symbol(e, note_symbol, c);
    out[n++] = (kl_constraint){of_thread(c, e), {g->lo, g->hi}};
  }
  if (guard != KL_NONE) c->sum.exact = false;
  return n;
}

static void count(counting *c, const kl_aff *element, int64_t bit, uint32_t bytes, uint32_t guard, const int64_t *at,
                  const inside *around, bool store) {
  kl_affs *p = c->p->affs;
  unsigned bits = kl_info(c->p->slots[c->slot].shape->dtype)->bits;
  kl_constraint conditions[KL_MAX_CONDITIONS];
  uint32_t n = 0;
  // Off its guard a load reads as much elsewhere; off a branch nothing is read.
  for (; around; around = around->around) n = conditions_of(c, around->guard, NULL, n, conditions);
  kl_each_symbol(element, note_symbol, c);
  bool guarded = guard != KL_NONE && kl_guard_at(c->p, c->body, guard, kl_inner(c->body), at) != KL_YES;
  if (guarded) n = conditions_of(c, guard, at, n, conditions);
  kl_request r = {kl_aff_addc(p, kl_aff_mulc(p, of_thread(c, element), bits), bit), bytes, n, conditions,
                  !store && guarded};
  kl_sectors s = kl_count_sectors(p, &r, c->threads, c->base, c->quota);
  c->sum.requests += s.requests;
  c->sum.sectors += s.sectors;
  c->sum.least += s.least;
  c->sum.exact = c->sum.exact && s.exact;
  r.nconditions = 0, r.conditions = NULL; // XLA drops them
  if (!store) VEC_PUSH(kl_affs_context(p), &c->load, r);
}

// A chunk of elements side by side is read in pieces of at most 16 bytes; other elements, and the parts of complex
// numbers that are taken one by one, each for themselves. Elements that are all one are read once.
static void count_access(counting *c, const kl_access *a, uint32_t guard, const inside *around, bool store) {
  const kl_dtype_info *t = kl_info(c->p->slots[a->slot].shape->dtype);
  unsigned parts = kl_is_complex(c->p->slots[a->slot].shape->dtype) ? 2 : 1, part = t->bits / parts;
  bool together = a->vec > 1 && a->stride == 1;
  for (uint32_t k = 0; k < a->nchunks; k++) {
    int64_t at[KL_MAX_VARS] = {0};
    kl_nth_point(c->body, a->regs, a->run, k * a->vec, at);
    if (together) {
      uint32_t bytes = a->vec * t->bits / 8, piece = bytes < 16 ? bytes : 16;
      if (a->align && a->align < piece) piece = a->align;
      for (uint32_t i = 0; i < bytes; i += piece) count(c, a->base[k], 8 * (int64_t)i, piece, guard, at, around, store);
      continue;
    }
    for (uint32_t i = 0; i < (a->stride ? a->vec : 1); i++)
      for (uint32_t q = 0; q < (part < 8 ? 1 : parts); q++)
        count(c, a->base[k], (int64_t)i * a->stride * t->bits + q * part, part < 8 ? 1 : part / 8, guard, at, around,
              store);
  }
}

static void count_load(counting *c, const kl_access *a, const inside *around) {
  if (a->slot != c->slot) return;
  c->load.n = 0;
  count_access(c, a, a->guard, around, false);
  c->sum.read = true;
  if (!kl_is_coalesced_for_xla(c->p->affs, c->load.p, (uint32_t)c->load.n, c->threads))
    c->sum.coalesced_for_xla = false;
}

static void count_seq(counting *c, const kl_seq *s, kl_vars loops, const inside *around) {
  const kl_body *b = c->body;
  for (uint32_t i = 0; i < s->n; i++) {
    const kl_node *n = &s->nodes[i];
    switch (n->kind) {
    case KL_NODE_STEP:
      if (b->steps[n->index].kind == KL_STEP_LOAD) count_load(c, &b->steps[n->index].access, around);
      break;
    case KL_NODE_STORE:
      if (b->stores[n->index].access.slot == c->slot)
        count_access(c, &b->stores[n->index].access, b->stores[n->index].keep, around, true);
      break;
    case KL_NODE_LOOP:
      set_vars(c, loops | (kl_vars)1 << n->index);
      count_seq(c, &n->nest->inside, loops | (kl_vars)1 << n->index, around);
      set_vars(c, loops);
      break;
    case KL_NODE_IF: count_seq(c, &n->nest->inside, loops, &(inside){around, n->index}); break;
    case KL_NODE_SYNC: break;
    }
  }
}

static void count_body(counting *c, const kl_body *b) {
  if (kl_body_is_empty(b)) return;
  c->body = b;
  set_symbols(c);
  set_vars(c, 0);
  count_seq(c, &b->root, 0, NULL);
}

static int64_t accesses_of(const kl_body *b) {
  int64_t n = 0;
  for (uint32_t i = 0; i < b->nsteps; i++)
    if (b->steps[i].kind == KL_STEP_LOAD) n += b->steps[i].access.nchunks * b->steps[i].access.vec;
  for (uint32_t i = 0; i < b->nstores; i++) n += b->stores[i].access.nchunks * b->stores[i].access.vec;
  return n;
}

// All instructions of a plan together cost about what one may.
static int64_t quota_of(const kl_plan *p) {
  int64_t accesses = 1;
  for (uint32_t i = 0; i < p->nparts; i++) accesses += accesses_of(&p->parts[i].main) + accesses_of(&p->parts[i].tail);
  return 4 * (int64_t)KL_SECTORS_QUOTA / accesses;
}

kl_traffic kl_plan_traffic(kl_plan *p, uint32_t slot, uint32_t base) {
  counting c = {.p = p, .slot = slot, .base = base, .quota = quota_of(p)};
  c.sum = (kl_traffic){.exact = true, .coalesced_for_xla = true};
  if (p->slots[slot].by_value || p->slots[slot].kind == KL_SLOT_SHARED) return c.sum;
  for (uint32_t i = 0; i < p->nparts; i++) {
    c.block = kl_launch_of(p, i)->block;
    count_body(&c, &p->parts[i].main);
    count_body(&c, &p->parts[i].tail);
  }
  VEC_FREE(kl_affs_context(p->affs), &c.load);
  return c.sum;
}
