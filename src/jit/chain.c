// Launches one behind the other as one, whose blocks each do their share of every one (lower/plan/verify/shares.c):
// where that takes less time than launches do, by estimate.
//
// Kernels come one by one, in order. Each goes with those before it, or they end, and others begin with it. All buffers
// that they touch are there from the first to the last, as a block may be at work on the last while another is on the
// first.

#include "jit/members.h"

#include <stdlib.h>

// What takes so much less is worth a kernel of its own, whose code nobody shares.
static const double worth = 0.97;

// Of kernels that are alike: how many there are; of how many kinds those are before them, and behind.
struct kl_beside {
  uint32_t n, before, behind;
};

typedef struct pair {
  uint32_t like, other;
} pair;

static int by_kinds(const void *a, const void *b) {
  const pair *x = a, *y = b;
  if (x->like != y->like) return x->like < y->like ? -1 : 1;
  return x->other < y->other ? -1 : x->other > y->other;
}

// Kinds of kernels `way` from those of each kind; those that are none of one run are of a kind of their own.
static void count_kinds(kl_chain *c, int way, pair *all) {
  const kl_kernels *k = c->of.k;
  for (uint32_t i = 0; i < k->n; i++) {
    bool is = way < 0 ? i > 0 : i + 1 < k->n;
    uint32_t other = way < 0 ? i - 1 : i + 1;
    all[i] = (pair){k->units[i].like, is && c->run[i] == c->run[other] ? k->units[other].like : KL_NONE};
  }
  qsort(all, k->n, sizeof *all, by_kinds);
  for (uint32_t i = 0; i < k->n; i++) {
    struct kl_beside *b = &c->beside[all[i].like];
    bool new = i == 0 || by_kinds(&all[i - 1], &all[i]) != 0;
    *(way < 0 ? &b->before : &b->behind) += new;
    b->n += way < 0;
  }
}

void kl_chain_init(kl_chain *c, kl_ctx *cx, kl_kernels *k, const kl_target *t, const kl_strategy *s,
                   kl_planned *planned, kl_sb *why) {
  *c = (kl_chain){.t = t, .s = s, .why = why, .of = {.cx = cx, .k = k, .planned = planned}};
  c->run = KL_NEW_N(k->arena, uint32_t, k->n + 1);
  for (size_t i = 0; i < k->steps.n; i++) {
    const kiln_step *x = &k->steps.p[i];
    for (size_t u = x->first; x->kind == KILN_STEP_LAUNCHES && u < x->first + x->count; u++) c->run[u] = (uint32_t)i;
  }
  c->beside = KL_NEW_N(k->arena, struct kl_beside, k->n + 1);
  pair *all = KL_NEW_N(k->arena, pair, k->n + 1);
  count_kinds(c, -1, all);
  count_kinds(c, 1, all);
}

void kl_chain_free(kl_chain *c) {
  kl_gather_free(&c->of);
  VEC_FREE(c->of.cx, &c->same);
  VEC_FREE(c->of.cx, &c->members);
}

// --- one kernel more ------------------------------------------------------------------------------------------------

// A parameter and a result may be the same memory.
static uint32_t slot_of(const kl_kernels *k, const kiln_argument *a) {
  const kl_alias_pair *p = a->kind == KILN_ARGUMENT_SLOT ? kl_alias_of(k, a->slot) : NULL;
  return p ? p->parameter : a->slot;
}

static bool may_be_same(const kl_kernels *k, const kiln_argument *a, const kiln_argument *b) {
  return a->kind == b->kind && a->offset == b->offset && slot_of(k, a) == slot_of(k, b);
}

// Of arguments that are there since it was asked last, or no more; and the bytes of what of them is scratch memory.
static void find_same(kl_chain *c) {
  const kiln_argument *all = c->of.arguments.p;
  if (c->same.n > c->of.arguments.n) c->same.n = c->of.arguments.n;
  for (uint32_t i = (uint32_t)c->same.n; i < c->of.arguments.n; i++) {
    uint32_t first = 0;
    while (first < i && !may_be_same(c->of.k, &all[first], &all[i])) first++;
    VEC_PUSH(c->of.cx, &c->same, first);
    bool buffer = all[i].kind == KILN_ARGUMENT_SCRATCH && all[i].offset < c->of.k->buffers.n;
    if (buffer && first == i) c->bytes += c->of.k->buffers.p[all[i].offset].bytes;
  }
  c->rounds.nargs = (uint32_t)c->of.arguments.n;
  c->rounds.same = c->same.p;
}

// One block does them all. Of launches with more threads than this nobody asks.
enum { MOST_IN_ONE = 1 << 14 };

static bool put_in_one(kl_rounds *r) {
  for (uint32_t i = 0; i < r->nmembers; i++)
    if (r->members[i].launch->grid > MOST_IN_ONE / r->members[i].launch->block) return false;
  for (uint32_t i = 0; i < r->nmembers; i++)
    r->members[i].share = r->members[i].launch->grid * r->members[i].launch->block;
  r->grid = 1;
  return true;
}

static bool add_member(kl_chain *c) {
  kl_rounds *r = &c->rounds;
  kl_member *m = &r->members[r->nmembers++];
  if (kl_no_share(m->plan, m->launch)) return false;
  m->share = m->unit;
  r->grid = kl_shares_grid(r);
  return r->nmembers == 1 || kl_share_with(c->of.cx, r) || put_in_one(r);
}

// Buffers that pass from launch to launch share no memory while all are one: of scratch memory no module takes much
// more than its values need. Where they are more than this, a launch is little beside them.
enum { MOST_BYTES = 4 << 20 };

// All launches of the kernel; false: not all can be.
static bool add_kernel(kl_chain *c, uint32_t unit) {
  kl_gather(&c->of, unit);
  find_same(c);
  c->rounds.members = c->of.members.p;
  bool all = !c->of.why && c->bytes <= MOST_BYTES;
  while (all && c->rounds.nmembers < c->of.members.n) all = add_member(c);
  return all;
}

static bool fit(kl_chain *c, bool several) {
  c->members.n = 0;
  for (uint32_t i = 0; i < c->rounds.nmembers; i++) VEC_PUSH(c->of.cx, &c->members, c->rounds.members[i]);
  c->fitted = c->rounds;
  c->fitted.members = c->members.p;
  return kl_shares_fit(&c->fitted, c->t, several);
}

// Is it better than launches that take so long? Where somebody asks for it, wherever blocks go side by side.
static bool is_better(const kl_chain *c, double apart) {
  bool side_by_side = true;
  for (uint32_t i = 0; c->rounds.grid == 1 && i < c->rounds.nmembers; i++)
    side_by_side &= c->rounds.members[i].launch->grid == 1;
  return (c->s->rounds && side_by_side) || c->fitted.clocks < worth * apart;
}

// Looks at the first kernel, once it is asked for.
static void look(kl_chain *c) {
  if (c->looked) return;
  c->looked = true;
  c->open = add_kernel(c, c->first) && c->rounds.nmembers;
  if (!c->open) return;
  if (!fit(c, true)) c->open = false;
  if (!c->open) return;
  c->clocks = c->apart = c->fitted.apart;
  if (c->rounds.nmembers < 2) return;
  c->several = c->open = is_better(c, c->apart);
  c->clocks = c->fitted.clocks;
}

void kl_chain_begin(kl_chain *c, uint32_t unit) {
  c->first = unit;
  c->end = unit + 1;
  kl_gather_anew(&c->of);
  c->same.n = c->bytes = 0;
  c->rounds = (kl_rounds){0};
  c->several = c->looked = false;
}

// Kernels that are alike have one code, but in launches of several only where others are alike, too. Code of few steps
// may be there more often, and so may code of any that would be there an eighth as often as kernels are.
enum { FEW_STEPS = 32, SELDOM = 8 };

static bool multiplies(const kl_chain *c, uint32_t unit, bool behind) {
  const kl_planned *p = &c->of.planned[unit];
  const struct kl_beside *b = &c->beside[c->of.k->units[unit].like];
  uint32_t steps = 0;
  for (uint32_t i = 0; i < p->n; i++) steps += kl_gathered_steps(p->plan, p->launches[i].from);
  return !p->own && steps > FEW_STEPS && (behind ? b->behind : b->before) - 1 > b->n / SELDOM;
}

// Puts back what the last kernel has changed.
static void forget(kl_chain *c, const kl_rounds *before, const int64_t *shares, uint32_t arguments, uint32_t steps,
                   uint64_t bytes) {
  c->rounds = *before;
  c->rounds.members = c->of.members.p;
  c->of.members.n = before->nmembers;
  c->of.arguments.n = arguments;
  c->of.plan_steps = steps;
  c->bytes = bytes;
  for (uint32_t i = 0; i < before->nmembers; i++) c->of.members.p[i].share = shares[i];
  find_same(c);
}

bool kl_chain_takes(kl_chain *c, uint32_t unit) {
  const kl_kernels *k = c->of.k;
  if (c->first == c->end || unit != c->end || c->run[unit] != c->run[c->first] || !c->of.planned[unit].n) return false;
  if (multiplies(c, unit - 1, true) || multiplies(c, unit, false)) return false;
  look(c);
  if (!c->open) return false;
  kl_rounds before = c->rounds;
  uint32_t arguments = (uint32_t)c->of.arguments.n, steps = c->of.plan_steps;
  uint64_t bytes = c->bytes;
  int64_t *shares = KL_NEW_N(k->arena, int64_t, before.nmembers + 1);
  for (uint32_t i = 0; i < before.nmembers; i++) shares[i] = before.members[i].share;
  bool all = add_kernel(c, unit) && fit(c, true), takes = false;
  if (all) {
    double apart = c->clocks + c->fitted.apart - c->apart;
    takes = is_better(c, apart);
    if (!takes && c->why)
      kl_sbf(c->why, "launches up to %s: apart: with those before in one about %llu clocks, and %llu so\n",
             k->units[unit].name, (unsigned long long)c->fitted.clocks, (unsigned long long)apart);
  }
  if (takes) {
    c->several = true;
    c->end = unit + 1;
    c->clocks = c->fitted.clocks;
    c->apart = c->fitted.apart;
  } else {
    forget(c, &before, shares, arguments, steps, bytes);
    c->open = false;
  }
  return takes;
}

// --- all of them ----------------------------------------------------------------------------------------------------

// What is there for some of the kernels is there for all.
static void keep_buffers(kl_kernels *k, uint32_t first, uint32_t end) {
  for (size_t i = 0; i < k->buffers.n; i++) {
    kl_buffer *b = &k->buffers.p[i];
    if (b->last < first || b->first >= end) continue;
    if (b->last < end) b->last = end - 1;
    if (b->first > first) b->first = first;
  }
}

// By the name that its launch has: of the group whose code it is.
static void tell(const kl_chain *c, const kl_grouped *g) {
  if (!c->why) return;
  const kl_rounds *r = &g->rounds;
  for (uint32_t i = 0; i < r->nmembers; i++) kl_sbf(c->why, "%s%s", i ? ", " : "launches ", r->members[i].launch->name);
  kl_sbf(c->why, ": one, %s, of %lld block%s of %u threads: about %llu clocks, %llu as launches\n",
         kl_group_like(c->of.k, g)->rounds.name, (long long)r->grid, r->grid == 1 ? "" : "s", r->block,
         (unsigned long long)r->clocks, (unsigned long long)r->apart);
}

static const kl_grouped *keep(kl_chain *c) {
  kl_kernels *k = c->of.k;
  fit(c, true);
  if (!kl_shares_hold(c->of.cx, &c->fitted)) fit(c, false);
  kl_rounds r = c->fitted;
  r.name = kl_gathered_name(k, r.members[0].launch->name, "chain", c->first);
  r.programmatic = r.members[0].plan->programmatic;
  r.members = kl_arena_dup(k->arena, r.members, r.nmembers * sizeof *r.members);
  r.same = kl_arena_dup(k->arena, r.same, r.nargs * sizeof *r.same);
  r.steps = kl_arena_dup(k->arena, &(kl_round){.kind = KL_ROUND_MEMBERS, .count = r.nmembers}, sizeof(kl_round));
  r.nsteps = 1;
  keep_buffers(k, c->first, c->end);
  kl_grouped g = {.first = c->first, .end = c->end, .step = SIZE_MAX, .rounds = r};
  g.arguments = kl_arena_dup(k->arena, c->of.arguments.p, r.nargs * sizeof *g.arguments);
  VEC_PUSH(c->of.cx, &k->grouped, g);
  tell(c, &k->grouped.p[k->grouped.n - 1]);
  return &k->grouped.p[k->grouped.n - 1];
}

const kl_grouped *kl_chain_end(kl_chain *c) {
  if (c->first < c->end && c->of.planned[c->first].n > 1) look(c);
  const kl_grouped *g = c->several ? keep(c) : NULL;
  c->first = c->end = 0;
  c->several = false;
  return g;
}
